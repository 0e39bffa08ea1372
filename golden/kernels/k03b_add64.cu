// ptx: sm_70 6.3
// K3b: the 64-bit adder that addresses are made with, the low halves by IADD3, the high ones with the carry by IMAD.X. The state is four 64-bit words. Every other step
// the second word is the first one's complement but for its lowest bits, so that a carry runs from there to the top, or nothing
// does.
#include "golden.h"
KERNEL(k03b_add64, 8, {
  u64 w0 = (u64)x[1] << 32 | x[0], w1 = (u64)x[3] << 32 | x[2], w2 = (u64)x[5] << 32 | x[4], w3 = (u64)x[7] << 32 | x[6];
  u64 key = i * 0x9E3779B97F4A7C15ull, a, b, d;
  a = w1;
  b = w2 ^ key;
  if (i & 1) b = ~a ^ b >> (w3 & 63);
  asm volatile("add.u64 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  u64 e;
  asm volatile("add.u64 %0, %1, %2;" : "=l"(e) : "l"(w3 ^ key), "l"(d));
  u64 y = w0 ^ d ^ (e << 23 | e >> 41);
  _Pragma("unroll") for (u32 w = 0; w < 6; w++) x[w] = x[w + 2];
  x[6] = rotl((u32)(y >> 32), 11); x[7] = rotl((u32)y, 19);
})
