// ptx: sm_80 7.0
// A product of the tensor cores: bf16 operands of a normal distribution, FP32 sums that grow over all of k.
#include "workload.h"
WORKLOAD(gemm_bf16) {
  SHARE
  float d[4] = {0, 0, 0, 0};
  for (u32 s = 0; s < 2 * steps; s++) {
    u32 r[6];
    _Pragma("unroll") for (u32 i = 0; i < 6; i++) {
      float lo = reals[2 * (t + 31 * i + 97 * s) & 2047], hi = reals[2 * (t + 31 * i + 97 * s) + 1 & 2047];
      r[i] = bf16(lo) | bf16(hi) << 16;
    }
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
  }
  for (u32 i = 0; i < 4; i++) out[i * THREADS + t] = asBits(d[i]);
}
