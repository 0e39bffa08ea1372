// ptx: sm_70 6.3
// K10: shuffles of all four modes, votes and matches over lanes whose words all differ.
#include "golden.h"
KERNEL(k10_shuffle, 4, {
  u32 lane = t & 31, b = x[2] ^ i * 0x9E3779B9u, u, v, p;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(u) : "r"(x[1]), "r"(b & 31));
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(v) : "r"(x[3]), "r"(1u << i % 5)); u = rotl(u, 5) ^ v;
  asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, 0xffffffff;" : "=r"(v) : "r"(b), "r"(1 + i % 31)); u = rotl(u, 5) ^ v;
  asm volatile("shfl.sync.down.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(v) : "r"(x[1] ^ x[3]), "r"(1 + i % 29)); u = rotl(u, 5) ^ v;
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, %2; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(v) : "r"(x[1]), "r"(b)); u = rotl(u, 5) ^ v;
  asm volatile("match.any.sync.b32 %0, %1, 0xffffffff;" : "=r"(v) : "r"(x[3] >> 28)); u = rotl(u, 5) ^ v;
  // Segments of eight lanes: the clamp and the segment mask in the shuffle's third operand.
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, %3, 0x1807, 0xffffffff; selp.u32 %1, 1, 0, p; }" : "=r"(v), "=r"(p) : "r"(x[1]), "r"(1 + i % 7));
  u = rotl(u, 5) ^ v; u = rotl(u, 5) ^ p ^ lane;
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
