// ptx: sm_70 6.3
// K11: shared memory. Each step writes two words a thread to places that depend on the step, in widths of 8 to 64 bits and
// strides of 1 to 32 banks, and reads them as another thread. Then a march over all dynamic shared memory the block has:
// the address in the data, written, read, written inverted, read. What the march reads is compared with what it wrote, and
// the difference goes into the state, so that the result does not depend on how much shared memory a GPU has.
#include "golden.h"
extern __shared__ u32 all[];
DEV u32 place(u32 t, u32 i, u32 n) { return (t * (2 * (i % 16) + 1) + i) & (n - 1); } // an odd factor: a permutation
KERNEL(k11_smem, 4, {
  u32 p = place(t, i, n), q = place(t ^ (i & n - 1), i + 1, n);
  u64 *wide = (u64 *)all;
  volatile unsigned char *bytes = (volatile unsigned char *)(all + 2 * n);
  volatile u16 *halves = (volatile u16 *)(all + 3 * n);
  wide[p] = (u64)x[2] << 32 | x[1];
  bytes[4 * p] = x[3]; bytes[4 * p + 1] = x[3] >> 8; bytes[4 * p + 2] = x[3] >> 16; bytes[4 * p + 3] = x[3] >> 24;
  halves[2 * p] = x[3] ^ x[1]; halves[2 * p + 1] = (x[3] ^ x[1]) >> 16;
  __syncthreads();
  u64 a = wide[q];
  u32 u = (u32)a ^ rotl((u32)(a >> 32), 9) ^ rotl(all[2 * n + q], 17) ^ rotl(all[3 * n + q], 23) ^ i * 0x9E3779B9u;
  __syncthreads();
  if ((i & 15) == 15) {
    u32 size; asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    volatile u32 *m = all;
    for (u32 k = t; k < size / 4; k += n) m[k] = k * 0x85EBCA6Bu ^ i;
    __syncthreads();
    for (u32 k = t ^ 1; k < size / 4; k += n) { u ^= rotl(m[k] ^ k * 0x85EBCA6Bu ^ i, k / n); m[k] = ~(k * 0x85EBCA6Bu ^ i); }
    __syncthreads();
    for (u32 k = t ^ 2; k < size / 4; k += n) u ^= rotl(m[k] ^ ~(k * 0x85EBCA6Bu ^ i), k / n);
    __syncthreads();
  }
  u32 y = rotl(x[0] ^ u, 11);
  x[0] = x[1]; x[1] = x[2]; x[2] = x[3]; x[3] = y;
})
