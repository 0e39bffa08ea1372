// ptx: sm_70 6.3
// K5: the FP64 fused multiply-add, as K4. The state is four 64-bit words.
#include "golden.h"
DEV double operand(u64 x, u64 mask, u64 base) { return __builtin_bit_cast(double, (x & (0x800FFFFFFFFFFFFFull | mask << 52)) + (base << 52)); }
KERNEL(k05_dfma, 8, {
  u32 mode = i & 3;
  u64 m = mode == 0 ? 15 : 511;
  u64 ba = mode == 0 ? 1008 : mode == 1 ? 512 : mode == 2 ? 0 : 1022;
  u64 bb = mode == 2 ? 512 : ba;
  u64 w0 = (u64)x[1] << 32 | x[0], w1 = (u64)x[3] << 32 | x[2], w2 = (u64)x[5] << 32 | x[4], w3 = (u64)x[7] << 32 | x[6];
  double d, a = operand(w1, m, ba), b = operand(w2 ^ i * 0x9E3779B97F4A7C15ull, m, bb), c = operand(w3, m, ba);
  asm volatile("fma.rn.f64 %0, %1, %2, %3;" : "=d"(d) : "d"(a), "d"(b), "d"(c));
  u64 y = w0 ^ __builtin_bit_cast(u64, d);
  _Pragma("unroll") for (u32 w = 0; w < 6; w++) x[w] = x[w + 2];
  x[6] = rotl((u32)(y >> 32), 11); x[7] = rotl((u32)y, 19);
})
