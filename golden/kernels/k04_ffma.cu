// ptx: sm_70 6.3
// K4: the FP32 fused multiply-add, round to nearest even, subnormals kept. The exponents' range goes with the step: near
// one, wide gaps, subnormal operands and results, large. No overflow and no NaN can occur.
#include "golden.h"
DEV float operand(u32 x, u32 mask, u32 base) { return __builtin_bit_cast(float, (x & (0x807FFFFFu | mask << 23)) + (base << 23)); }
KERNEL(k04_ffma, 4, {
  u32 mode = i & 3;
  u32 m = mode == 0 ? 15 : 63;
  u32 ba = mode == 0 ? 112 : mode == 1 ? 64 : mode == 2 ? 0 : 126;
  u32 bb = mode == 2 ? 64 : ba;
  float d, a = operand(x[1], m, ba), b = operand(x[2] ^ i * 0x9E3779B9u, m, bb), c = operand(x[3], m, ba);
  asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  u32 y = rotl(x[0] ^ __builtin_bit_cast(u32, d), 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
