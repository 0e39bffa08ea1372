// ptx: sm_70 6.3
// K5: the FP64 fused multiply-add, as K4. The state is four 64-bit words.
#include "golden.h"
DEV double number(u64 x, u64 keep, u64 base) { return __builtin_bit_cast(double, (x & keep) + (base << 52)); }
DEV u64 word(double f) { return __builtin_bit_cast(u64, f); }
DEV double fma(double a, double b, double c) { double d; asm volatile("fma.rn.f64 %0, %1, %2, %3;" : "=d"(d) : "d"(a), "d"(b), "d"(c)); return d; }

#define FRACTION 0xFFFFFFFFFFFFFull
#define WIDTH(e) (0x800FFFFFFFFFFFFFull | (e) << 52)
#define POWER(e) (0x8000000000000000ull | (e) << 52)

KERNEL(k05_dfma, 8, {
  u64 w0 = (u64)x[1] << 32 | x[0], p = (u64)x[3] << 32 | x[2], q = (u64)x[5] << 32 | x[4], r = (u64)x[7] << 32 | x[6];
  q ^= i * 0x9E3779B97F4A7C15ull;
  u32 mode = i & 3;
  u64 m = WIDTH(mode == 0 ? 15ull : 511ull);
  u64 ba = mode == 0 ? 1008 : mode == 1 ? 512 : mode == 2 ? 0 : 1022;
  u64 bb = mode == 2 ? 512 : ba;
  u64 u = word(fma(number(p, m, ba), number(q, m, bb), number(r, m, ba)));

  u32 kind = i >> 2 & 7;
  u64 ka = kind == 4 ? WIDTH(0ull) : kind == 5 ? WIDTH(511ull) : kind == 6 ? POWER(0ull) : WIDTH(31ull);
  u64 kb = kind == 0 || kind == 7 ? POWER(0ull) : kind == 3 ? POWER(31ull) : kind == 4 ? WIDTH(511ull) : kind == 5 ? WIDTH(0ull) : WIDTH(31ull);
  u64 kc = kind == 1 || kind == 6 ? POWER(0ull) : kind == 4 || kind == 5 ? WIDTH(511ull) : WIDTH(31ull);
  u64 ea = kind == 4 || kind == 6 ? 0 : kind == 5 ? 1023 : 1008;
  u64 eb = kind == 0 || kind == 4 ? 1023 : kind == 5 || kind == 7 ? 0 : 1008;
  u64 ec = kind == 0 || kind == 7 ? 1008 : 0;
  bool sparse = i >> 5 & 1;
  u64 ones = sparse ? FRACTION >> (r & 63) : 0, few = sparse ? ~(FRACTION >> (p & 31)) : ~0ull;
  double a = number(p | ones, ka, ea), b = number(q & few, kb, eb);
  u64 power = (word(a) & 0x7FF0000000000000ull) + (word(b) & 0x7FF0000000000000ull) - (1023ull << 52);
  u64 near = power + ((r >> 52 & 3) << 52) - ((sparse ? 55ull : 2ull) << 52) | r & few & FRACTION, close = power | (word(a) ^ (r & FRACTION) >> (r >> 58)) & FRACTION;
  u64 opposite = ~(p ^ q) & 0x8000000000000000ull;
  u64 c = kind == 2 ? opposite | near : kind == 3 ? opposite | close : word(number(r, kc, ec));
  double d = fma(a, b, __builtin_bit_cast(double, c));
  u = (u << 5 | u >> 59) ^ word(d);
  u = (u << 5 | u >> 59) ^ word(fma(b, a, -d));
  u64 y = w0 ^ u;
  _Pragma("unroll") for (u32 w = 0; w < 6; w++) x[w] = x[w + 2];
  x[6] = rotl((u32)(y >> 32), 11); x[7] = rotl((u32)y, 19);
})
