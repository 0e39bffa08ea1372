// ptx: sm_70 6.3
// K7: correctly rounded quotient, reciprocal and root in FP32 and FP64: a seed from the special function unit, refined by
// FFMA or DFMA. Low bits of the seed may be healed by the refinement: this kernel's masked share.
#include "golden.h"
DEV float operand(u32 x) { return __builtin_bit_cast(float, (x & 0x8FFFFFFFu) + (48u << 23)); }
DEV double operand(u32 h, u32 l) { return __builtin_bit_cast(double, (u64)((h & 0x8FFFFFFFu) + (896u << 20)) << 32 | l); }
KERNEL(k07_divsqrt, 4, {
  float a = operand(x[1]), b = operand(x[2] ^ i * 0x9E3779B9u), f;
  float r = __builtin_bit_cast(float, __builtin_bit_cast(u32, b) & 0x7FFFFFFFu);
  double c = operand(x[2] ^ i * 0x9E3779B9u, x[3]), d = operand(x[3], x[1]), g;
  double s = __builtin_bit_cast(double, __builtin_bit_cast(u64, c) & 0x7FFFFFFFFFFFFFFFull);
  u32 u;
  asm volatile("div.rn.f32 %0, %1, %2;" : "=f"(f) : "f"(a), "f"(b)); u = __builtin_bit_cast(u32, f);
  asm volatile("rcp.rn.f32 %0, %1;" : "=f"(f) : "f"(a)); u = rotl(u, 5) ^ __builtin_bit_cast(u32, f);
  asm volatile("sqrt.rn.f32 %0, %1;" : "=f"(f) : "f"(r)); u = rotl(u, 5) ^ __builtin_bit_cast(u32, f);
  asm volatile("div.rn.f64 %0, %1, %2;" : "=d"(g) : "d"(c), "d"(d));
  u64 h = __builtin_bit_cast(u64, g); u = rotl(u, 5) ^ (u32)h; u = rotl(u, 5) ^ (u32)(h >> 32);
  asm volatile("rcp.rn.f64 %0, %1;" : "=d"(g) : "d"(d));
  h = __builtin_bit_cast(u64, g); u = rotl(u, 5) ^ (u32)h; u = rotl(u, 5) ^ (u32)(h >> 32);
  asm volatile("sqrt.rn.f64 %0, %1;" : "=d"(g) : "d"(s));
  h = __builtin_bit_cast(u64, g); u = rotl(u, 5) ^ (u32)h; u = rotl(u, 5) ^ (u32)(h >> 32);
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
