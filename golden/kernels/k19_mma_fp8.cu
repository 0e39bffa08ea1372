// ptx: sm_89 8.4
// K19: the tensor core, FP8 operands and FP32 accumulators, m16n8k32: E4M3 by E4M3, and each with E5M2.
//
// Such a core keeps 14 bits of a sum, so each product starts from a fresh C: operands have 4 or 3 significant bits in units
// whose product is u; a product is at most 225 u and 32 of them at most 7,200 u. C is an odd multiple of u/2 below 512 u.
// So every sum is an odd multiple of u/2 below 2^14 of them.
#include "golden.h"
// Four numbers of random sign and mantissa of M bits, exponent e, the bias included.
template <u32 M> DEV u32 four(u32 x, u32 e) { return (x & 0x80808080u) | (x & 0x01010101u * ((1u << M) - 1)) | e * 0x01010101u << M; }
template <u32 J> DEV void product(float *d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
#define MMA(ta, tb) asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." ta "." tb ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
  if constexpr (J == 0) MMA("e4m3", "e4m3");
  if constexpr (J == 1) MMA("e5m2", "e4m3");
  if constexpr (J == 2) MMA("e4m3", "e5m2");
  if constexpr (J == 3) MMA("e5m2", "e5m2");
}
// The J-th product of step i. Significands are 8 to 15 or 4 to 7: u is 2^-6, 2^-5 or 2^-4 times the powers of row and column.
template <u32 J> DEV void tile(u32 *x, u32 *y, u32 i, u32 lane) {
  u32 g = lane >> 2, q = lane & 3;
  u32 sLow = g * 5 + i & 3, sHigh = (g + 8) * 5 + i & 3, tb = g * 3 + i & 3, tc0 = q * 6 + i & 3, tc1 = q * 6 + 3 + i & 3;
  u32 r = q + (i >> 2) & 3, key = (i * 4 + J) * 0x85EBCA6Bu;
  constexpr u32 MA = J & 1 ? 2 : 3, MB = J & 2 ? 2 : 3, EA = J & 1 ? 15 : 7, EB = J & 2 ? 15 : 7;
  float d[4];
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) {
    // An odd multiple of u/2 in [256, 512) u: nine bits behind the leading one, the last of them set.
    u32 e = 127 + 8 - MA - MB + (j < 2 ? sLow : sHigh) + (j & 1 ? tc1 : tc0);
    d[j] = __builtin_bit_cast(float, ((rotl(x[6 + j], 9 + 7 * J) ^ key) & 0x807F8000u) | 1u << 14 | e << 23);
  }
  u32 a[4];
  _Pragma("unroll") for (u32 k = 0; k < 4; k++) a[k] = four<MA>(rotl(x[4 + k], 8 * J) ^ key, EA - 3 + (k & 1 ? sHigh : sLow) + r);
  u32 b0 = four<MB>(rotl(x[8], 8 * J) ^ key, EB + 3 + tb - r), b1 = four<MB>(rotl(x[9], 8 * J) ^ key, EB + 3 + tb - r);
  product<J>(d, a[0], a[1], a[2], a[3], b0, b1);
  _Pragma("unroll") for (u32 k = 0; k < 4; k++) y[k] = rotl(y[k] ^ __builtin_bit_cast(u32, d[k]), 5 + 6 * k);
}
KERNEL(k19_mma_fp8, 10, {
  u32 y[4] = {x[0], x[1], x[2], x[3]};
  tile<0>(x, y, i, t & 31); tile<1>(x, y, i, t & 31); tile<2>(x, y, i, t & 31); tile<3>(x, y, i, t & 31);
  _Pragma("unroll") for (u32 w = 0; w < 6; w++) x[w] = x[w + 4];
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) x[6 + j] = y[j];
})
