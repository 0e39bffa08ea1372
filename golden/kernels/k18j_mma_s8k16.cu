// ptx: sm_75 6.5
// K18j: the tensor core, INT8 operands and INT32 accumulators, in the shape that Turing has: m8n8k16, signed by unsigned. The
// operands are the state's own words, as in K18i.
#include "golden.h"
KERNEL(k18j_mma_s8k16, 10, {
  u32 d[2], y[4] = {x[0], x[1], x[2], x[3]};
  _Pragma("unroll") for (u32 j = 0; j < 2; j++) d[j] = rotl(x[6 + j], 9) ^ i * 0x9E3779B9u;
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) {
    u32 key = (i * 4 + j) * 0x85EBCA6Bu, a[2];
    _Pragma("unroll") for (u32 k = 0; k < 2; k++) a[k] = rotl(x[4 + k], 8 * j) ^ key;
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+r"(d[0]), "+r"(d[1])
                 : "r"(a[0]), "r"(a[1]));
    _Pragma("unroll") for (u32 k = 0; k < 4; k++) y[k] = rotl(y[k] ^ d[k % 2], 5 + 6 * k);
  }
  _Pragma("unroll") for (u32 w = 0; w < 6; w++) x[w] = x[w + 4];
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) x[6 + j] = y[j];
})
