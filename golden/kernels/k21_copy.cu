// ptx: sm_70 6.3
// K21, K22: what the copy tests run on the GPU. k21_fill writes a pattern, k21_check compares with it. Copies are made by the
// copy engines, on the host's call: these kernels only make and look at what is copied. ref.Pattern is the same function.
//
// seen holds, as 32-bit words: words that were right, words that were wrong, the lowest index of a wrong one, and all bits that
// differed in any. Words are read past the L1, which a copy does not reach.
#include "golden.h"

DEV u32 pattern(u32 kind, u32 key, u32 i) {
  switch (kind) {
  case 0: return mix(0, i, key);
  case 1: { u32 h = mix(1, i >> 1, key); return i & 1 ? ~h : h; }
  case 2: return i * 4 + key;
  default: return mix(3, i >> 5, key) ^ 1u << (i & 31);
  }
}

DEV u32 blocks() { return __nvvm_read_ptx_sreg_nctaid_x(); }

// flip is XORed into every word: all ones make the pattern's complement, so that every bit of it must be copied.
extern "C" __global__ void __launch_bounds__(1024) k21_fill(u32 *p, u32 words, u32 kind, u32 key, u32 flip) {
  _Pragma("nounroll") for (u32 i = bid() * ntid() + tid(); i < words; i += blocks() * ntid())
    p[i] = pattern(kind, key, i) ^ flip;
}

extern "C" __global__ void __launch_bounds__(1024) k21_check(const u32 *p, u32 words, u32 kind, u32 key, u32 *seen) {
  u32 right = 0, wrong = 0, first = 0xFFFFFFFFu, bits = 0, old;
  _Pragma("nounroll") for (u32 i = bid() * ntid() + tid(); i < words; i += blocks() * ntid()) {
    u32 v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p + i) : "memory");
    u32 d = v ^ pattern(kind, key, i);
    right += d == 0;
    wrong += d != 0;
    if (d && i < first) first = i;
    bits |= d;
  }
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(seen), "r"(right) : "memory");
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(seen + 1), "r"(wrong) : "memory");
  asm volatile("atom.global.min.u32 %0, [%1], %2;" : "=r"(old) : "l"(seen + 2), "r"(first) : "memory");
  asm volatile("atom.global.or.b32 %0, [%1], %2;" : "=r"(old) : "l"(seen + 3), "r"(bits) : "memory");
}
