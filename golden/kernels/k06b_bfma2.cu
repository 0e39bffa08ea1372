// ptx: sm_80 7.0
// K6b: the BF16 fused multiply-add, two at a time, as K4.
#include "golden.h"
DEV u32 operand(u32 x, u32 mask, u32 base) { return (x & (0x807F807Fu | mask << 7 | mask << 23)) + (base << 7 | base << 23); }
KERNEL(k06b_bfma2, 4, {
  u32 mode = i & 3;
  u32 m = mode == 0 ? 7 : 63;
  u32 ba = mode == 0 ? 120 : mode == 1 ? 64 : mode == 2 ? 0 : 126;
  u32 bb = mode == 2 ? 64 : ba;
  u32 d;
  asm volatile("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(operand(x[1], m, ba)), "r"(operand(x[2] ^ i * 0x9E3779B9u, m, bb)), "r"(operand(x[3], m, ba)));
  u32 y = rotl(x[0] ^ d, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
