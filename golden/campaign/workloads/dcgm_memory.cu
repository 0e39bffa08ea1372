// ptx: sm_70 6.3
// What DCGM's memory test does: fill with one byte, read it back, count what differs; 0x00, 0xAA, 0x55, 0xFF, 0x00.
#include "workload.h"
WORKLOAD(dcgm_memory) {
  SHARE
  volatile unsigned char *bytes = (volatile unsigned char *)(out + 2 * THREADS);
  u32 wrong = 0;
  for (u32 i = 0; i < 5 * steps; i++) {
    u32 j = i % 5, v = j == 1 ? 0xAA : j == 2 ? 0x55 : j == 3 ? 0xFF : 0;
    for (u32 k = 0; k < 32; k++) bytes[k * THREADS + t] = (unsigned char)v;
    __syncthreads();
    for (u32 k = 0; k < 32; k++) wrong += bytes[k * THREADS + t] != v;
    __syncthreads();
  }
  out[t] = wrong;
}
