// ptx: sm_80 7.0
// K18q: the tensor core, INT4 operands and INT32 accumulators, m16n8k64, as K18i.
#include "golden.h"
KERNEL(k18q_mma_s4, 10, {
  u32 d[4], y[4] = {x[0], x[1], x[2], x[3]};
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) d[j] = rotl(x[6 + j], 9) ^ i * 0x9E3779B9u;
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) {
    u32 key = (i * 4 + j) * 0x85EBCA6Bu, a[6];
    _Pragma("unroll") for (u32 k = 0; k < 6; k++) a[k] = rotl(x[4 + k], 8 * j) ^ key;
    asm volatile("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
    _Pragma("unroll") for (u32 k = 0; k < 4; k++) y[k] = rotl(y[k] ^ d[k % 4], 5 + 6 * k);
  }
  _Pragma("unroll") for (u32 w = 0; w < 6; w++) x[w] = x[w + 4];
  _Pragma("unroll") for (u32 j = 0; j < 4; j++) x[6 + j] = y[j];
})
