// ptx: sm_70 6.3
// Top-k sampling and hashing: a bitonic sort, a random number generator, gathers at hashed 64-bit indices, and branches.
#include "workload.h"
WORKLOAD(sort) {
  SHARE
  u32 key = bits[t];
  u64 state = (u64)bits[t] << 32 | bits[THREADS + t];
  for (u32 s = 0; s < steps; s++) {
    for (u32 size = 2; size <= 32; size <<= 1)
      for (u32 d = size >> 1; d; d >>= 1) {
        u32 o = shflXor(key, d);
        bool up = (t & size) == 0, low = (t & d) == 0;
        key = (key < o) == (up == low) ? key : o;
      }
    // PCG (O'Neill, 2014), and a hash of what it gives.
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    u32 x = (u32)((state >> 18 ^ state) >> 27), rot = (u32)(state >> 59);
    x = x >> rot | x << (-rot & 31);
    u32 h = (x ^ key) * 0x9E3779B1u;
    h ^= h >> 15; h *= 0x85EBCA77u; h ^= h >> 13;
    u32 y = bits[((u64)h * 2048u) >> 32];
    if (y & 1) y = (y ^ h) + key; else if (y & 2) y = ~(y & h) - x;
    for (u32 i = y & 3; i; i--) y = y * 3 + i;
    key = key ^ y >> 7 ^ s;
    out[(s & 7) * THREADS + t] = key; out[(8 + (s & 7)) * THREADS + t] = y;
  }
}
