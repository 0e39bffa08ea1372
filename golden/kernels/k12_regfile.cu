// ptx: sm_70 6.3
// K12: the register file, as 1,024 threads of 64 registers: 44 words a thread stay in registers from load to store. In each
// step every word is exchanged with its neighbour's bits and turned, so that each register holds fresh data and is read twice
// while the other 31 warps run.
#include "golden.h"
REGISTERS(k12_regfile, 44, {
  _Pragma("unroll") for (u32 w = 0; w < 44; w++) x[w] = rotl(x[w] ^ x[(w + 1) % 44] ^ (i * 44 + w) * 0x9E3779B9u, 1 + w % 31);
})
