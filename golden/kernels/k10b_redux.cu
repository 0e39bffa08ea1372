// ptx: sm_80 7.0
// K10b: reductions over the lanes of a warp, in all their operations.
#include "golden.h"
#define REDUX(op, v) ({ u32 r; asm volatile("redux.sync." op " %0, %1, 0xffffffff;" : "=r"(r) : "r"(v)); r; })
KERNEL(k10b_redux, 4, {
  u32 b = x[2] ^ i * 0x9E3779B9u, u = REDUX("add.u32", x[1]);
  u = rotl(u, 5) ^ REDUX("xor.b32", b);
  u = rotl(u, 5) ^ REDUX("min.s32", x[3]);
  u = rotl(u, 5) ^ REDUX("max.u32", rotl(x[1], 7));
  u = rotl(u, 5) ^ REDUX("and.b32", x[3] | b | x[1] | rotl(b, 11) | 0xF0F0F0F0u);
  u = rotl(u, 5) ^ REDUX("or.b32", x[3] & b & x[1] & rotl(b, 11));
  u32 y = rotl(x[0] ^ u ^ x[1], 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
