// ptx: sm_70 6.3
// K2: the logic unit. U runs all 256 tables of LOP3 on three words of the state.
#include "golden.h"
template <u32 TABLE> DEV u32 lop3(u32 a, u32 b, u32 c) {
  u32 r;
  asm volatile("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
  return r;
}
// All tables below TABLE, one after the other: each result is turned one bit further than the next.
template <u32 TABLE> DEV u32 tables(u32 a, u32 b, u32 c) {
  if constexpr (TABLE == 0) return 0;
  else return rotl(tables<TABLE - 1>(a, b, c), 1) ^ lop3<TABLE - 1>(a, b, c);
}
KERNEL(k02_lop3, 4, {
  u32 y = rotl(x[0] ^ tables<256>(x[1], x[2] ^ i * 0x9E3779B9u, x[3]), 9);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
