// ptx: sm_70 6.3
// K14: instruction fetch. A step is 4,352 pieces of straight code, each with a constant of its own: some 136 KiB of machine
// code, more than the instruction caches of an SM hold. Code of another place has another constant.
#include "golden.h"
template <u32 FROM, u32 N> DEV void piece(u32 *x, u32 i) {
  if constexpr (N == 1) x[FROM % 4] = rotl32(x[FROM % 4] + x[(FROM + 1) % 4] * ((FROM + 1) * 0x9E3779B1u | 1), 7);
  else { piece<FROM, N / 2>(x, i); piece<FROM + N / 2, N - N / 2>(x, i); }
}
KERNEL(k14_icache, 4, {
  x[0] ^= i * 0x9E3779B9u;
  piece<0, 4352>(x, i);
})
