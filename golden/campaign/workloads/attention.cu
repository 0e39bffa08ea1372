// ptx: sm_70 6.3
// One head of attention: scores, a softmax over 32 keys in a warp, and the weighted sum of values.
#include "workload.h"
WORKLOAD(attention) {
  SHARE
  __shared__ float k[32][17], v[32][17];
  for (u32 i = t; i < 512; i += THREADS) { k[i >> 4][i & 15] = reals[i]; v[i >> 4][i & 15] = reals[512 + i]; }
  __syncthreads();
  u32 lane = t & 31;
  for (u32 s = 0; s < steps; s++) {
    const float *q = reals + 1024 + ((t >> 5) * 64 + s * 16 & 1023);
    float score = 0;
    for (u32 i = 0; i < 16; i++) score = fma(q[i], k[lane][i], score);
    score *= 0.25f;
    float top = score;
    for (u32 m = 16; m; m >>= 1) { float o = shflXor(top, m); top = o > top ? o : top; }
    float p = ex2((score - top) * 1.44269504f), sum = p;
    for (u32 m = 16; m; m >>= 1) sum += shflXor(sum, m);
    p = p / sum;
    float o[4];
    _Pragma("unroll") for (u32 i = 0; i < 4; i++) {
      o[i] = p * v[lane][i + (s & 3) * 4];
      for (u32 m = 16; m; m >>= 1) o[i] += shflXor(o[i], m);
    }
    out[(s & 7) * THREADS + t] = asBits(p);
    out[(8 + (s & 7)) * THREADS + t] = asBits(lane & 2 ? (lane & 1 ? o[3] : o[2]) : lane & 1 ? o[1] : o[0]);
  }
}
