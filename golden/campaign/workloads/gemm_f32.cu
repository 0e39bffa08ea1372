// ptx: sm_70 6.3
// A 64x32 by 32x32 product in FP32 from shared memory, four rows a thread.
#include "workload.h"
WORKLOAD(gemm_f32) {
  SHARE
  __shared__ float a[32][33], b[32][33];
  float c[4] = {0, 0, 0, 0};
  for (u32 s = 0; s < steps; s++) {
    for (u32 i = 0; i < 8; i++) {
      u32 at = i * THREADS + t;
      a[at >> 5][at & 31] = reals[at + s & 2047];
      b[at >> 5][at & 31] = reals[at + 1024 + 7 * s & 2047];
    }
    __syncthreads();
    u32 col = t & 31, row = t >> 5;
    for (u32 k = 0; k < 32; k++)
      _Pragma("unroll") for (u32 r = 0; r < 4; r++) c[r] = fma(a[row + 4 * r][k], b[k][col], c[r]);
    __syncthreads();
  }
  _Pragma("unroll") for (u32 r = 0; r < 4; r++) out[r * THREADS + t] = asBits(c[r]);
}
