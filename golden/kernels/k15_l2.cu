// ptx: sm_70 6.3
// K15: the crossbar and the L2. Each step reads 32 bytes that the host wrote for another SM's block, past the L1: every SM
// goes round all of them in its own order, so that each reads from every slice what all others read too. What comes back is
// un-keyed with the other's key: then it is the same word for all.
#include "golden.h"
KERNEL(k15_l2, 8, {
  u32 s = (slot + 1 + i * 7) % slots, q = (t + i * 37) & (n - 1), v[8], c = i * 0x9E3779B9u;
  _Pragma("unroll") for (u32 w = 0; w < 8; w++)
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v[w]) : "l"(in + (s * 8 + w) * n + q) : "memory");
  _Pragma("unroll") for (u32 w = 0; w < 8; w++) v[w] ^= mix(s, w * n + q, launch);
  _Pragma("unroll") for (u32 w = 0; w < 4; w++) {
    u32 y = rotl(x[w] ^ v[w] ^ rotl(v[w + 4], 9) ^ rotl(x[w + 4], 3) * 0x85EBCA6Bu ^ c, 11);
    x[w] = x[w + 4]; x[w + 4] = y;
  }
})
