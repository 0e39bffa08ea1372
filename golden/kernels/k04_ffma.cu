// ptx: sm_70 6.3
// K4: the FP32 fused multiply-add, round to nearest even, subnormals kept. Each step has three: one whose exponents' range goes
// with the step (near one, wide gaps, subnormal operands and results, large), one of a kind that goes with the step, and what
// that one left unrounded. The kinds: sums, products, an addend near the product's opposite, one within few bits of it, subnormal
// factors, and zeros. No overflow and no NaN can occur.
#include "golden.h"
DEV float number(u32 x, u32 keep, u32 base) { return __builtin_bit_cast(float, (x & keep) + (base << 23)); }
DEV u32 word(float f) { return __builtin_bit_cast(u32, f); }
DEV float fma(float a, float b, float c) { float d; asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c)); return d; }

// What an operand keeps of a word: sign and fraction, with so much of the exponent; and without the fraction.
#define WIDTH(e) (0x807FFFFFu | (e) << 23)
#define POWER(e) (0x80000000u | (e) << 23)

KERNEL(k04_ffma, 4, {
  u32 p = x[1], q = x[2] ^ i * 0x9E3779B9u, r = x[3];
  u32 mode = i & 3;
  u32 m = WIDTH(mode == 0 ? 15u : 63u);
  u32 ba = mode == 0 ? 112 : mode == 1 ? 64 : mode == 2 ? 0 : 126;
  u32 bb = mode == 2 ? 64 : ba;
  u32 u = word(fma(number(p, m, ba), number(q, m, bb), number(r, m, ba)));

  u32 kind = i >> 2 & 7;
  u32 ka = kind == 4 ? WIDTH(0u) : kind == 5 ? WIDTH(63u) : kind == 6 ? POWER(0u) : WIDTH(31u);
  u32 kb = kind == 0 || kind == 7 ? POWER(0u) : kind == 3 ? POWER(31u) : kind == 4 ? WIDTH(63u) : kind == 5 ? WIDTH(0u) : WIDTH(31u);
  u32 kc = kind == 1 || kind == 6 ? POWER(0u) : kind == 4 || kind == 5 ? WIDTH(63u) : WIDTH(31u);
  u32 ea = kind == 4 || kind == 6 ? 0 : kind == 5 ? 127 : 112;
  u32 eb = kind == 0 || kind == 4 ? 127 : kind == 5 || kind == 7 ? 0 : 112;
  u32 ec = kind == 0 || kind == 2 || kind == 3 || kind == 7 ? 112 : 0;
  // Every other round of kinds, a ends in ones, and b and an addend near the opposite have few bits: carries as long as a number, and ties.
  bool sparse = i >> 5 & 1;
  u32 ones = sparse ? 0x7FFFFFu >> (r & 31) : 0, few = sparse ? (u32)((int)0xFF800000 >> (p & 15)) : 0xFFFFFFFFu;
  float a = number(p | ones, ka, ea), b = number(q & few, kb, eb);
  // The product's opposite: its exponent, and the fraction of a, from some bit on turned over by r.
  u32 power = (word(a) & 0x7F800000u) + (word(b) & 0x7F800000u) - (127u << 23);
  u32 near = power + ((r >> 23 & 3) << 23) - ((sparse ? 26u : 2u) << 23) | r & few & 0x7FFFFFu, close = power | (word(a) ^ (r & 0x7FFFFFu) >> (r >> 27)) & 0x7FFFFFu;
  u32 opposite = ~(p ^ q) & 0x80000000u;
  u32 c = kind == 2 ? opposite | near : kind == 3 ? opposite | close : word(number(r, kc, ec));
  float d = fma(a, b, __builtin_bit_cast(float, c));
  u = rotl(u, 5) ^ word(d);
  u = rotl(u, 5) ^ word(fma(b, a, -d));
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
