// ptx: sm_75 6.3
// K26: the uniform datapath, which computes once for a warp what all lanes share. Beside the state of each lane runs a chain of
// four words that depends on the step alone, so that the assembler places it there: multiply, logic, shifts, counts, carries
// and selections. It is a Feistel chain of its own, and each step's word goes into every lane's state.
#include "golden.h"
#define CHAIN                                                                            \
  u32 f = b * c + d;                                                                     \
  f = rotl32(f, 7) ^ (b & ~c | d);                                                       \
  f += __builtin_popcount(c ^ f) << 3;                                                   \
  f = rotl32(f ^ __builtin_bitreverse32(d), 9) - (b >> 5);                               \
  f = (f < c ? f + 0x85EBCA6Bu : f ^ d) + (f << 4);                                      \
  u32 e = rotl32(a ^ f ^ i * 0x9E3779B9u, 11);                                           \
  a = b; b = c; c = d; d = e;
KERNEL_WITH(k26_uniform, 4, u32 a = 0x243F6A88u; u32 b = 0x85A308D3u; u32 c = 0x13198A2Eu; u32 d = 0x03707344u;, {
  CHAIN
  u32 y = rotl(x[0] ^ e ^ x[1] ^ rotl(x[2], 3) ^ rotl(x[3], 6), 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
