// ptx: sm_70 6.3
// Layer norm of rows of 128, and a gated linear unit in packed FP16 on what comes out.
#include "workload.h"
WORKLOAD(norm) {
  SHARE
  __shared__ float part[4];
  for (u32 s = 0; s < steps; s++) {
    float x = reals[(s * THREADS + t) & 2047] * 3 + 0.5f, sum = x;
    for (u32 m = 16; m; m >>= 1) sum += shflXor(sum, m);
    if ((t & 31) == 0) part[t >> 5] = sum;
    __syncthreads();
    float mean = (part[0] + part[1] + part[2] + part[3]) * (1.0f / 128), d = x - mean;
    __syncthreads();
    sum = d * d;
    for (u32 m = 16; m; m >>= 1) sum += shflXor(sum, m);
    if ((t & 31) == 0) part[t >> 5] = sum;
    __syncthreads();
    float var = (part[0] + part[1] + part[2] + part[3]) * (1.0f / 128);
    __syncthreads();
    float y = d / __builtin_sqrtf(var + 1e-5f);
    float g = reals[1024 + (s + t) % 1024], b = reals[(2 * t + s) & 1023];
    y = fma(y, g, b);
    u32 h = halves(y, d), w = halves(g, x), c = halves(b, mean), r;
    asm volatile("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(h), "r"(w), "r"(c));
    out[(s & 7) * THREADS + t] = asBits(y);
    out[(8 + (s & 7)) * THREADS + t] = r;
  }
}
