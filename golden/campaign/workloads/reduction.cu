// ptx: sm_70 6.3
// Sums, a scan and a histogram: what all-reduce buffers, data loaders and routers of experts do.
#include "workload.h"
WORKLOAD(reduction) {
  SHARE
  __shared__ u32 total[4];
  u32 *bins = out + 15 * THREADS, scan = 0;
  float mean = 0;
  for (u32 s = 0; s < steps; s++) {
    u32 x = bits[s * THREADS + t & 2047];
    asm volatile("red.global.add.u32 [%0], %1;" :: "l"(bins + (x >> 25)), "r"(x & 255) : "memory");
    u32 old;
    asm volatile("atom.global.max.u32 %0, [%1], %2;" : "=r"(old) : "l"(out + 14 * THREADS + t), "r"(x) : "memory");
    scan += x ^ old;
    for (u32 n = 1; n < 32; n <<= 1) { u32 o = shflUp(scan, n); if ((t & 31) >= n) scan += o; }
    if ((t & 31) == 31) total[t >> 5] = scan;
    __syncthreads();
    for (u32 i = 0; i < t >> 5; i++) scan += total[i];
    __syncthreads();
    float f = reals[s * THREADS + t & 2047];
    for (u32 m = 16; m; m >>= 1) f += shflXor(f, m);
    mean = fma(f, 0.03125f, mean);
    out[(s & 7) * THREADS + t] = scan;
  }
  out[8 * THREADS + t] = asBits(mean);
}
