// ptx: sm_70 6.3
// K13: the L1 cache, tags and data. Each step stores four words a thread through the L1 to memory behind the output, and reads
// them through the L1 as other threads, one, one and two words at a time in strides of 16 bytes. Steps take turns with four
// quarters of 64 bytes a thread, so that a full block keeps 64 KiB in the L1 and overwrites what is there: a line that was
// not updated, or another line served for it, gives other words.
#include "golden.h"
KERNEL(k13_l1, 8, {
  u32 *part = out + slots * 8 * n + slot * 16 * n + (i & 3) * 4 * n;
  u32 key = mix(slot, i & 3, launch), p = (t * 5 + i) & (n - 1), k = key ^ p * 0x85EBCA6Bu, c = i * 0x9E3779B9u;
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(part + 4 * p), "r"(x[4] ^ k), "r"(x[5] ^ k), "r"(x[6] ^ k), "r"(x[7] ^ k) : "memory");
  __syncthreads();
  _Pragma("unroll") for (u32 j = 0; j < 2; j++) {
    u32 q = (t * (2 * j + 3) + i * 7 + j) & (n - 1), v;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(part + 4 * q + j) : "memory");
    v = rotl(x[j] ^ v ^ key ^ q * 0x85EBCA6Bu ^ c, 11); x[j] = x[j + 4]; x[j + 4] = v;
  }
  u32 q = t ^ (i & (n - 1)), a, b; k = key ^ q * 0x85EBCA6Bu ^ c;
  asm volatile("ld.global.ca.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(part + 4 * q + 2) : "memory");
  a = rotl(x[2] ^ a ^ k, 11); x[2] = x[6]; x[6] = a;
  b = rotl(x[3] ^ b ^ k, 11); x[3] = x[7]; x[7] = b;
})
