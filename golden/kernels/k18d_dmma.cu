// ptx: sm_80 7.0
// K18d: the tensor core, FP64, m8n8k4. Four products accumulate on a fresh C, and every bit of each D is absorbed.
//
// Operands are exact: of each pair one has 31 significant bits and the other 16, in units whose product is u, so a product is
// below 2^47 u and 16 of them below 2^51 u. C is an odd multiple of u/2 below 2^50 u. So no sum is zero, and all are
// multiples of u/2 below 2^53 of them: whatever the order of the sum, nothing is rounded.
#include "golden.h"
// A double of random sign and mantissa, the low bits of which are cleared by keep; exponent e, the bias included.
DEV double one(u32 h, u32 l, u64 keep, u32 e) {
  u64 x = (u64)h << 32 | l;
  return __builtin_bit_cast(double, (x & (0x8000000000000000ull | keep)) | (u64)e << 52);
}
KERNEL(k18d_dmma, 8, {
  u32 lane = t & 31, g = lane >> 2, q = lane & 3;
  u32 s = g * 5 + i & 3, tb = g * 3 + i & 3, tc[2] = {q * 6 + i & 3, q * 6 + 3 + i & 3}, r = q + (i >> 2) & 3;
  double d[2];
  u32 y[4] = {x[0], x[1], x[2], x[3]};
  _Pragma("unroll") for (u32 j = 0; j < 2; j++) {
    // An odd multiple of u/2 in [2^49, 2^50) u. u is 2^-45 times the powers of row and column.
    u64 v = ((u64)rotl(x[4 + 2 * j], 9) << 32 | rotl(x[5 + 2 * j], 13)) ^ i * 0x9E3779B97F4A7C15ull;
    d[j] = __builtin_bit_cast(double, (v & 0x800FFFFFFFFFFFF8ull) | 4u | (u64)(1023 + 4 + s + tc[j]) << 52);
  }
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) {
    u64 wide = 0x000FFFFFFFC00000ull, small = 0x000FFFE000000000ull;
    u32 key = (i * 4 + j) * 0x85EBCA6Bu;
    double a = one(rotl(x[4], 8 * j) ^ key, rotl(x[5], 8 * j) ^ key, j & 1 ? small : wide, 1023 + s + r);
    double b = one(rotl(x[6], 8 * j) ^ key, rotl(x[7], 8 * j) ^ key, j & 1 ? wide : small, 1023 + tb - r);
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(b));
    u64 e = __builtin_bit_cast(u64, d[0]), f = __builtin_bit_cast(u64, d[1]);
    y[0] = rotl(y[0] ^ (u32)e, 5); y[1] = rotl(y[1] ^ (u32)(e >> 32), 11);
    y[2] = rotl(y[2] ^ (u32)f, 17); y[3] = rotl(y[3] ^ (u32)(f >> 32), 23);
  }
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) { x[j] = x[j + 4]; x[j + 4] = y[j]; }
})
