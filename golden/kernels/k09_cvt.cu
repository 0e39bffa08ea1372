// ptx: sm_70 6.3
// K9: conversions between FP16, FP32, FP64 and integers of 32 and 64 bits, in every integer rounding.
#include "golden.h"
// FP32 of magnitude 2^-16 to 2^15 and 2^-32 to 2^31: what FP16 and integers take without overflow.
DEV float small(u32 x) { return __builtin_bit_cast(float, (x & 0x8F7FFFFFu) + (112u << 23)); }
DEV float wide(u32 x) { return __builtin_bit_cast(float, (x & 0x9F7FFFFFu) + (96u << 23)); }
#define INTO(T, expr) do { T v; asm volatile expr; u = rotl(u, 5) ^ (u32)v; } while (0)
KERNEL(k09_cvt, 4, {
  u32 a = x[1], b = x[2] ^ i * 0x9E3779B9u, c = x[3], u = 0;
  u64 n = (u64)a << 32 | b;
  float f = small(c), g = wide(b), r;
  double d, e = __builtin_bit_cast(double, (u64)((a & 0x81FFFFFFu) + (1007u << 20)) << 32 | c);
  u16 h;
  asm volatile("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); u = rotl(u, 5) ^ h;
  asm volatile("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((u16)(c & 0xBFFF))); u = rotl(u, 5) ^ __builtin_bit_cast(u32, r);
  asm volatile("cvt.rn.f32.f64 %0, %1;" : "=f"(r) : "d"(e)); u = rotl(u, 5) ^ __builtin_bit_cast(u32, r);
  asm volatile("cvt.f64.f32 %0, %1;" : "=d"(d) : "f"(f));
  u = rotl(u, 5) ^ (u32)__builtin_bit_cast(u64, d); u = rotl(u, 5) ^ (u32)(__builtin_bit_cast(u64, d) >> 32);
  asm volatile("cvt.rn.f32.u32 %0, %1;" : "=f"(r) : "r"(a)); u = rotl(u, 5) ^ __builtin_bit_cast(u32, r);
  asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(r) : "r"(b)); u = rotl(u, 5) ^ __builtin_bit_cast(u32, r);
  asm volatile("cvt.rn.f32.u64 %0, %1;" : "=f"(r) : "l"(n)); u = rotl(u, 5) ^ __builtin_bit_cast(u32, r);
  asm volatile("cvt.rn.f64.s64 %0, %1;" : "=d"(d) : "l"(n));
  u = rotl(u, 5) ^ (u32)__builtin_bit_cast(u64, d); u = rotl(u, 5) ^ (u32)(__builtin_bit_cast(u64, d) >> 32);
  INTO(u32, ("cvt.rzi.s32.f32 %0, %1;" : "=r"(v) : "f"(g)));
  INTO(u32, ("cvt.rni.s32.f32 %0, %1;" : "=r"(v) : "f"(f)));
  INTO(u32, ("cvt.rmi.s32.f32 %0, %1;" : "=r"(v) : "f"(g)));
  INTO(u32, ("cvt.rpi.s32.f32 %0, %1;" : "=r"(v) : "f"(f)));
  INTO(u32, ("cvt.rzi.u32.f64 %0, %1;" : "=r"(v) : "d"(e)));
  INTO(u64, ("cvt.rni.s64.f64 %0, %1;" : "=l"(v) : "d"(e)));
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
