// ptx: sm_70 6.3
// K6: the FP16 fused multiply-add, two at a time, as K4.
#include "golden.h"
DEV u32 operand(u32 x, u32 mask, u32 base) { return (x & (0x83FF83FFu | mask << 10 | mask << 26)) + (base << 10 | base << 26); }
KERNEL(k06_hfma2, 4, {
  u32 mode = i & 3;
  u32 m = mode == 0 ? 3 : 7;
  u32 ba = mode == 0 ? 13 : mode == 1 ? 8 : mode == 2 ? 0 : 14;
  u32 bb = mode == 2 ? 8 : ba;
  u32 d;
  asm volatile("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(operand(x[1], m, ba)), "r"(operand(x[2] ^ i * 0x9E3779B9u, m, bb)), "r"(operand(x[3], m, ba)));
  u32 y = rotl(x[0] ^ d, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
