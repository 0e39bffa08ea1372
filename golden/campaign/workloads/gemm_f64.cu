// ptx: sm_70 6.3
// A product in FP64, operands read through the cache.
#include "workload.h"
WORKLOAD(gemm_f64) {
  SHARE
  double c[2] = {0, 0};
  for (u32 s = 0; s < 8 * steps; s++) {
    double a = reals[(t >> 4) * 32 + s & 2047] + 1e-9 * reals[s & 2047], b = reals[1024 + (t & 15) * 32 + s & 2047] * 0.3333333333333;
    c[0] = __builtin_fma(a, b, c[0]);
    c[1] = __builtin_fma(b, b, c[1]) - a;
  }
  for (u32 r = 0; r < 2; r++) {
    u64 v = __builtin_bit_cast(u64, c[r]);
    out[2 * r * THREADS + t] = (u32)v;
    out[(2 * r + 1) * THREADS + t] = (u32)(v >> 32);
  }
}
