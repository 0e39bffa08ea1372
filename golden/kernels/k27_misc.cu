// ptx: sm_70 6.3
// K27: what no other kernel reaches: chains of carries over 128 bits, predicates and their logic, selections, minima and maxima
// one after the other, sums that feed a maximum, byte differences, and comparisons of FP32 and FP64.
#include "golden.h"
DEV float number(u32 x) { return __builtin_bit_cast(float, x & 0xBFFFFFFFu); } // no infinity, no NaN
DEV double wide(u32 h, u32 l) { return __builtin_bit_cast(double, (u64)(h & 0xBFFFFFFFu) << 32 | l); }
KERNEL(k27_misc, 4, {
  u32 a = x[1], b = x[2] ^ i * 0x9E3779B9u, c = x[3], r0, r1, r2, r3, u;
  asm volatile("{ add.cc.u32 %0, %4, %5; addc.cc.u32 %1, %5, %6; addc.cc.u32 %2, %6, %4; addc.u32 %3, %4, %4; }"
               : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3) : "r"(a), "r"(b), "r"(c));
  u = rotl(rotl(rotl(r0, 5) ^ r1, 5) ^ r2, 5) ^ r3;
  asm volatile("{ sub.cc.u32 %0, %3, %4; subc.cc.u32 %1, %4, %5; subc.u32 %2, %5, %3; }" : "=&r"(r0), "=&r"(r1), "=&r"(r2) : "r"(a), "r"(b), "r"(c));
  u = rotl(rotl(rotl(u, 5) ^ r0, 5) ^ r1, 5) ^ r2;
  asm volatile("{ mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, %4; }" : "=&r"(r0), "=&r"(r1) : "r"(a), "r"(b), "r"(c));
  u = rotl(rotl(u, 5) ^ r0, 5) ^ r1;
  asm volatile("{ .reg .pred p, q, s, v;\n\tsetp.lt.s32 p, %1, %2;\n\tsetp.hi.u32 q, %2, %3;\n\tsetp.eq.u32 s, %4, 0;\n\tand.pred v, p, q;\n\txor.pred v, v, s;\n\tor.pred s, p, v;\n\tnot.pred q, s;\n\t"
               "selp.u32 %0, %1, %3, v;\n\t@q xor.b32 %0, %0, %2;\n\t@!p add.u32 %0, %0, %3; }" : "=&r"(r0) : "r"(a), "r"(b), "r"(c), "r"(c & 3));
  u = rotl(u, 5) ^ r0;
  asm volatile("{ min.s32 %0, %1, %2; max.s32 %0, %0, %3; }" : "=&r"(r0) : "r"(a), "r"(b), "r"(c)); u = rotl(u, 5) ^ r0;
  asm volatile("{ add.s32 %0, %1, %2; max.s32 %0, %0, %3; }" : "=&r"(r0) : "r"(b), "r"(c), "r"(a)); u = rotl(u, 5) ^ r0;
  asm volatile("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(r0) : "r"(a), "r"(b), "r"(c)); u = rotl(u, 5) ^ r0;
  float f;
  double d;
  asm volatile("min.f32 %0, %1, %2;" : "=f"(f) : "f"(number(a)), "f"(number(c))); u = rotl(u, 5) ^ __builtin_bit_cast(u32, f);
  asm volatile("max.f32 %0, %1, %2;" : "=f"(f) : "f"(number(b)), "f"(number(c))); u = rotl(u, 5) ^ __builtin_bit_cast(u32, f);
  asm volatile("{ .reg .pred p; setp.ge.f32 p, %1, %2; selp.u32 %0, %3, %4, p; }" : "=r"(r0) : "f"(number(a)), "f"(number(b)), "r"(b), "r"(c)); u = rotl(u, 5) ^ r0;
  asm volatile("min.f64 %0, %1, %2;" : "=d"(d) : "d"(wide(a, b)), "d"(wide(b, c)));
  u = rotl(u, 5) ^ (u32)__builtin_bit_cast(u64, d); u = rotl(u, 5) ^ (u32)(__builtin_bit_cast(u64, d) >> 32);
  asm volatile("{ .reg .pred p; setp.lt.f64 p, %1, %2; selp.u32 %0, %3, %4, p; }" : "=r"(r0) : "d"(wide(c, a)), "d"(wide(a, b)), "r"(a), "r"(b)); u = rotl(u, 5) ^ r0;
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
