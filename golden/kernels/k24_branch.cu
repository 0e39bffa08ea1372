// ptx: sm_70 6.3
// K24: the scheduler: lanes part by the bits of their own state, four levels deep, with a warp barrier in between, walk loops
// of different length, and meet again.
#include "golden.h"
#define OP(f) asm volatile(f : "+r"(u) : "r"(x[1]), "r"(b))
KERNEL(k24_branch, 4, {
  u32 b = x[2] ^ i * 0x9E3779B9u, u = x[3], s = x[1];
  if (s & 1) { if (s & 2) OP("add.u32 %0, %0, %1;"); else OP("xor.b32 %0, %0, %2;"); OP("mul.lo.u32 %0, %0, 0x85EBCA6B;"); }
  else { OP("sub.u32 %0, %0, %2;"); if (s & 4) OP("not.b32 %0, %0;"); }
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  if (s & 8) {
    for (u32 k = s >> 4 & 7; k; k--) { OP("mad.lo.u32 %0, %0, 0x9E3779B1, %1;"); if (u & 1) break; }
  } else if (s & 0x100) { OP("shf.l.wrap.b32 %0, %0, %0, 13;"); }
  else { OP("mad.lo.u32 %0, %1, %2, %0;"); }
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
