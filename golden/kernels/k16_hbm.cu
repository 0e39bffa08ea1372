// ptx: sm_70 6.3
// K16: the path to memory and a slice of it. Behind the output lies a ring of chunks for each slot, as many as a sixteenth of
// the threads, 32 bytes a thread each. A step reads the chunk that was written one round before, as another warp, and then
// overwrites it: with words of the state, and with their complements. A full block's ring is 2 MiB, so that between a write
// and its read all blocks together have moved several times what the L2 holds.
#include "golden.h"
#define GET(a, b, c, d, addr) asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(addr) : "memory")
#define PUT(addr, a, b, c, d) asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(addr), "r"(a), "r"(b), "r"(c), "r"(d) : "memory")
KERNEL(k16_hbm, 8, {
  u32 round = n / 16, c = i & (round - 1), key = mix(slot, c, launch);
  u32 *ring = out + (u64)slots * 8 * n + (slot * round + c) * 8 * n;
  if (i >= round) {
    u32 q = t ^ (33 & (n - 1)), k = key ^ q * 0x85EBCA6Bu, a, b, d, e;
    GET(a, b, d, e, ring + 4 * q);
    x[0] ^= a ^ k; x[1] ^= b ^ k; x[2] ^= d ^ k; x[3] ^= e ^ k;
    GET(a, b, d, e, ring + 4 * n + 4 * q);
    x[0] ^= rotl(a ^ ~k, 9); x[1] ^= rotl(b ^ ~k, 9); x[2] ^= rotl(d ^ ~k, 9); x[3] ^= rotl(e ^ ~k, 9);
  }
  __syncthreads();
  u32 k = key ^ t * 0x85EBCA6Bu;
  PUT(ring + 4 * t, x[4] ^ k, x[5] ^ k, x[6] ^ k, x[7] ^ k);
  PUT(ring + 4 * n + 4 * t, x[4] ^ ~k, x[5] ^ ~k, x[6] ^ ~k, x[7] ^ ~k);
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) {
    u32 y = rotl(x[j] ^ i * 0x9E3779B9u, 11);
    x[j] = x[j + 4]; x[j + 4] = y;
  }
})
