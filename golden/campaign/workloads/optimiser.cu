// ptx: sm_70 6.3
// AdamW: moments and bias correction in FP32, the weight rounded to BF16 by a random word.
#include "workload.h"
WORKLOAD(optimiser) {
  SHARE
  float w = reals[t], m = 0, v = 0, c1 = 1, c2 = 1;
  for (u32 s = 0; s < 2 * steps; s++) {
    float g = reals[(s + 1) * THREADS + t & 2047] * 0.02f;
    m = fma(0.9f, m, 0.1f * g);
    v = fma(0.999f, v, 0.001f * g * g);
    c1 *= 0.9f; c2 *= 0.999f;
    float mh = m / (1 - c1), vh = v / (1 - c2);
    w = fma(-0.001f, mh / (__builtin_sqrtf(vh) + 1e-8f), w - 0.00001f * w);
    u32 r = asBits(w) + (bits[s * THREADS + t & 2047] & 0xFFFF);
    out[(s & 7) * THREADS + t] = r >> 16 | asBits(g) << 16;
  }
  out[8 * THREADS + t] = asBits(w); out[9 * THREADS + t] = asBits(m); out[10 * THREADS + t] = asBits(v);
}
