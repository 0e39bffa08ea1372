// ptx: sm_70 6.3
// K3: the rest of the integer unit: high products, byte products and permutes, bit reversal and counts, fields, minimum
// and maximum, sums of differences, carries, and 64-bit division, which is MUFU.RCP and IMAD underneath.
#include "golden.h"
KERNEL(k03_mixed, 4, {
  u32 a = x[1], b = x[2] ^ i * 0x9E3779B9u, c = x[3], u, v;
  asm volatile("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(u) : "r"(a), "r"(b), "r"(c));
  asm volatile("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(v) : "r"(b), "r"(c), "r"(a)); u = rotl(u, 3) ^ v;
  asm volatile("mul.hi.u32 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b)); u = rotl(u, 3) ^ v;
  asm volatile("mad.hi.s32 %0, %1, %2, %3;" : "=r"(v) : "r"(b), "r"(c), "r"(a)); u = rotl(u, 3) ^ v;
  asm volatile("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(c)); u = rotl(u, 3) ^ v;
  asm volatile("brev.b32 %0, %1;" : "=r"(v) : "r"(b)); u = rotl(u, 3) ^ v;
  asm volatile("popc.b32 %0, %1;" : "=r"(v) : "r"(a)); u = rotl(u, 3) ^ v;
  asm volatile("clz.b32 %0, %1;" : "=r"(v) : "r"(c)); u = rotl(u, 3) ^ v;
  asm volatile("bfind.s32 %0, %1;" : "=r"(v) : "r"(b)); u = rotl(u, 3) ^ v;
  asm volatile("bfe.u32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b & 31), "r"(c & 31)); u = rotl(u, 3) ^ v;
  asm volatile("bfe.s32 %0, %1, %2, %3;" : "=r"(v) : "r"(b), "r"(c & 31), "r"(a & 31)); u = rotl(u, 3) ^ v;
  asm volatile("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(v) : "r"(a), "r"(b), "r"(c & 31), "r"(c >> 5 & 31)); u = rotl(u, 3) ^ v;
  asm volatile("min.s32 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b)); u = rotl(u, 3) ^ v;
  asm volatile("max.u32 %0, %1, %2;" : "=r"(v) : "r"(b), "r"(c)); u = rotl(u, 3) ^ v;
  asm volatile("sad.u32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(c)); u = rotl(u, 3) ^ v;
  asm volatile("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(a), "r"(b), "r"(c)); u = rotl(u, 3) ^ v;
  u32 w;
  asm volatile("{ add.cc.u32 %0, %2, %3; addc.u32 %1, %3, %4; }" : "=&r"(v), "=r"(w) : "r"(a), "r"(b), "r"(c)); u = rotl(rotl(u, 3) ^ v, 3) ^ w;
  u64 n = (u64)a << 32 | b, d = (u64)(c & 0xFFFF) << 32 | (b ^ c) | 1, q, r;
  asm volatile("div.u64 %0, %1, %2;" : "=l"(q) : "l"(n), "l"(d));
  asm volatile("rem.u64 %0, %1, %2;" : "=l"(r) : "l"(n), "l"(d));
  u = rotl(u, 3) ^ (u32)q; u = rotl(u, 3) ^ (u32)r; u = rotl(u, 3) ^ (u32)(r >> 32);
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
