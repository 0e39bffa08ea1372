// ptx: sm_70 6.3
// K1: the 32-bit multiplier. p = A·B + (C0:B) by mad.wide; the two halves of p are added to the other half of the state.
#include "golden.h"
KERNEL(k01_imad, 4, {
  u64 p, q = (u64)(x[0] ^ i * 0x9E3779B9u) << 32 | x[1];
  asm volatile("mad.wide.u32 %0, %1, %2, %3;" : "=l"(p) : "r"(x[0]), "r"(x[1]), "l"(q));
  u32 c = rotl(x[2] ^ (u32)p, 7), d = rotl(x[3] ^ (u32)(p >> 32), 13);
  x[2] = x[0]; x[3] = x[1];
  x[0] = c; x[1] = d;
})
