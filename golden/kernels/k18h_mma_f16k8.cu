// ptx: sm_75 6.5
// K18h: the tensor core, FP16 operands and FP32 accumulators, in the shape that Turing has: m16n8k8. Data as in K18.
#include "golden.h"

// Two f16 with random sign and mantissa, the low bits of which are cleared by keep; exponent e, the bias included.
DEV u32 pair(u32 x, u32 keep, u32 e) { return (x & (0x80008000u | keep)) | e << 10 | e << 26; }

KERNEL(k18h_mma_f16k8, 10, {
  u32 lane = t & 31, g = lane >> 2, q = lane & 3;
  u32 sLow = g * 5 + i & 3, sHigh = (g + 8) * 5 + i & 3;   // of rows g and g+8
  u32 tb = g * 3 + i & 3, tc0 = q * 6 + i & 3, tc1 = q * 6 + 3 + i & 3; // of column g, and of columns 2q and 2q+1
  u32 r = q + (i >> 2) & 3;                                  // of this thread's k
  float d[4];
  u32 y[4] = {x[0], x[1], x[2], x[3]};
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) {
    // An odd multiple of u/2 in [2^21, 2^22) u. u is 2^-17 times the powers of row and column.
    u32 e = 127 + 4 + (j < 2 ? sLow : sHigh) + (j & 1 ? tc1 : tc0);
    d[j] = __builtin_bit_cast(float, ((rotl(x[6 + j], 9) ^ i * 0x9E3779B9u) & 0x807FFFFCu) | 2u | e << 23);
  }
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) {
    u32 keepA = j & 1 ? 0x03C003C0u : 0x03FF03FFu, keepB = j & 1 ? 0x03FF03FFu : 0x03C003C0u;
    u32 key = (i * 4 + j) * 0x85EBCA6Bu;
    u32 a0 = pair(rotl(x[4], 8 * j) ^ key, keepA, 12 + sLow + r), a1 = pair(rotl(x[5], 8 * j) ^ key, keepA, 12 + sHigh + r);
    u32 b0 = pair(rotl(x[8], 8 * j) ^ key, keepB, 15 + tb - r);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(b0));
    // At once: a wrong bit below u/2 would be cut off when the sum grows.
    _Pragma("unroll") for (u32 k = 0; k < 4; k++) y[k] = rotl(y[k] ^ __builtin_bit_cast(u32, d[k]), 5 + 6 * k);
  }
  _Pragma("unroll") for (u32 w = 0; w < 6; w++) x[w] = x[w + 4];
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) x[6 + j] = y[j];
})
