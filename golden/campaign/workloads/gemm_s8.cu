// ptx: sm_80 7.0
// Quantised inference: weights and activations to int8 by a scale, the tensor cores' product, back to FP32.
#include "workload.h"
DEV u32 quant(float x, float scale) {
  s32 q;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(q) : "f"(x * scale));
  q = q < -127 ? -127 : q > 127 ? 127 : q;
  return (u32)q & 255;
}
WORKLOAD(gemm_s8) {
  SHARE
  s32 d[4] = {0, 0, 0, 0};
  for (u32 s = 0; s < steps; s++) {
    u32 r[6];
    _Pragma("unroll") for (u32 i = 0; i < 6; i++) {
      r[i] = 0;
      _Pragma("unroll") for (u32 h = 0; h < 4; h++) r[i] |= quant(reals[4 * (t + 31 * i + 97 * s) + h & 2047], 40.0f) << 8 * h;
    }
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]));
  }
  for (u32 i = 0; i < 4; i++) out[i * THREADS + t] = asBits((float)d[i] * 0.000625f);
}
