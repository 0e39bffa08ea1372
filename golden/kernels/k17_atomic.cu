// ptx: sm_70 6.3
// K17: atomics in the L2, on this block's own part of the output: add, xor, min, max, exchange and compare-and-swap, 32 and
// 64 bits, each word struck by one thread that is not its writer.
#include "golden.h"
#define ATOM(op, addr, v) ({ u32 r; asm volatile("atom.global." op " %0, [%1], %2;" : "=r"(r) : "l"(addr), "r"(v) : "memory"); r; })
KERNEL(k17_atomic, 4, {
  u32 *mine = out + slot * 4 * n;
  u32 *p = mine + t, *q = mine + (t * 5 + i & n - 1);
  p[0] = x[1]; p[n] = x[2];
  ((u64 *)(mine + 2 * n))[t] = (u64)x[3] << 32 | x[1];
  __syncthreads();
  u32 a = x[2] ^ i * 0x9E3779B9u, u;
  switch (i % 5) {
  case 0: u = ATOM("add.u32", q, a); break;
  case 1: u = ATOM("xor.b32", q, a); break;
  case 2: u = ATOM("min.s32", q, a); break;
  case 3: u = ATOM("max.u32", q, a); break;
  default: u = ATOM("exch.b32", q, a);
  }
  u = rotl(u, 5) ^ ATOM("and.b32", q + n, a);
  u64 *w = (u64 *)(mine + 2 * n) + (t * 5 + i & n - 1), r;
  asm volatile("atom.global.add.u64 %0, [%1], %2;" : "=l"(r) : "l"(w), "l"((u64)a << 32 | x[3]) : "memory");
  u = rotl(u, 5) ^ (u32)r; u = rotl(u, 5) ^ (u32)(r >> 32);
  __syncthreads();
  u32 old, now;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(p) : "memory");
  asm volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(now) : "l"(p), "r"(i & 1 ? old : ~old), "r"(a) : "memory");
  u = rotl(u, 5) ^ old; u = rotl(u, 5) ^ now;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(p) : "memory"); u = rotl(u, 5) ^ old;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(p + n) : "memory"); u = rotl(u, 5) ^ old;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(mine + 2 * n + 2 * t) : "memory"); u = rotl(u, 5) ^ old;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(old) : "l"(mine + 2 * n + 2 * t + 1) : "memory"); u = rotl(u, 5) ^ old;
  __syncthreads();
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
