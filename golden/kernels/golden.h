// What every kernel shares: the launch arguments, the claim of an SM, keyed loads and stores, and the canary.
//
// Compiled by stock clang without the CUDA toolkit, so this file declares what it needs itself.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

#define DEV static __device__ inline __attribute__((always_inline))

DEV u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEV u32 ntid() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEV u32 bid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEV u32 smid() { u32 r; asm volatile("mov.u32 %0, %%smid;" : "=r"(r)); return r; }
DEV u64 clock64() { u64 r; asm volatile("mov.u64 %0, %%clock64;" : "=l"(r)); return r; }
DEV u64 globaltimer() { u64 r; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(r)); return r; }
DEV u32 rotl32(u32 x, u32 k) { return __builtin_rotateleft32(x, k); } // in the open, for the compiler and the assembler to place
DEV u32 rotl(u32 x, u32 k) { u32 r; asm("shf.l.wrap.b32 %0, %1, %1, %2;" : "=r"(r) : "r"(x), "r"(k)); return r; }

// ref.Mix is the same function: the key of one word.
DEV u32 mix(u32 slot, u32 index, u32 launch) {
  u32 x = index * 0x9E3779B9u ^ slot * 0x85EBCA6Bu ^ launch * 0xC2B2AE35u;
  x ^= x >> 16; x *= 0x7FEB352Du;
  x ^= x >> 15; x *= 0x846CA68Bu;
  return x ^ x >> 16;
}

// The arguments of every kernel. in and out hold `words` 32-bit words a thread for each slot, word-major, keyed by mix;
// claim holds one word a slot and one more that counts; where holds WHERE words a slot.
#define ARGS u32 *out, const u32 *in, u32 *claim, u32 *where, u32 slots, u32 want, u32 steps, u32 launch, \
             u32 injectSlot, u32 injectThread, u32 injectStep, u32 injectMask
#define WHERE 16
#define DONE 0x600DD00Du
#define LOST 0xFFFFFFFFu

// Thread 0 claims the SM that the block runs on. A block that finds it taken stays resident, so that the SM takes no
// third block, until all SMs are claimed or 2 ms have passed.
DEV u32 claimSM(u32 *claim, u32 *where, u32 slots, u32 want) {
  __shared__ u32 mine;
  if (tid() == 0) {
    u32 sm = smid(), got = LOST, old = 1;
    if (sm < slots) asm volatile("atom.global.cas.b32 %0, [%1], 0, %2;" : "=r"(old) : "l"(claim + sm), "r"(bid() + 1) : "memory");
    if (old == 0) {
      u32 n; u64 c = clock64(), g = globaltimer();
      asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(n) : "l"(claim + slots) : "memory");
      u32 *w = where + sm * WHERE;
      w[0] = sm; w[2] = bid(); w[4] = (u32)c; w[5] = (u32)(c >> 32); w[8] = (u32)g; w[9] = (u32)(g >> 32);
      got = sm;
    } else {
      u64 start = globaltimer();
      u32 n;
      do {
        asm volatile("nanosleep.u32 1000;");
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(claim + slots) : "memory");
      } while (n < want && globaltimer() - start < 2000000ull);
    }
    mine = got;
  }
  __syncthreads();
  return mine;
}

DEV void finish(u32 *where, u32 slot) {
  __syncthreads();
  if (tid() == 0) {
    u64 c = clock64(), g = globaltimer();
    u32 *w = where + slot * WHERE;
    w[1] = smid(); w[6] = (u32)c; w[7] = (u32)(c >> 32); w[10] = (u32)g; w[11] = (u32)(g >> 32);
    w[3] = DONE;
  }
}

// KERNEL opens a kernel whose state is WORDS words a thread, held in x; STEP is what one step does, written in terms of x
// and the step i. One word of it is struck by the canary's mask at its step.
#define KERNEL(name, WORDS, ...) KERNEL_WITH(name, WORDS, , __VA_ARGS__)

// KERNEL_WITH has declarations before the first step.
#define KERNEL_WITH(name, WORDS, BEFORE, ...)                                                             \
  extern "C" __global__ void __launch_bounds__(1024) name(ARGS) {                                         \
    u32 slot = claimSM(claim, where, slots, want);                                                        \
    if (slot == LOST) return;                                                                             \
    u32 t = tid(), n = ntid(), x[WORDS];                                                                  \
    u32 strike = slot == injectSlot && t == injectThread ? injectStep : 0xFFFFFFFFu;                      \
    _Pragma("unroll") for (u32 w = 0; w < WORDS; w++)                                                     \
      x[w] = in[(slot * WORDS + w) * n + t] ^ mix(slot, w * n + t, launch);                               \
    BEFORE                                                                                                \
    _Pragma("nounroll") for (u32 i = 0; i < steps; i++) {                                                 \
      __VA_ARGS__                                                                                         \
      x[0] ^= i == strike ? injectMask : 0;                                                               \
    }                                                                                                     \
    _Pragma("unroll") for (u32 w = 0; w < WORDS; w++)                                                     \
      out[(slot * WORDS + w) * n + t] = x[w] ^ mix(slot, w * n + t, launch);                              \
    finish(where, slot);                                                                                  \
  }

// REGISTERS is KERNEL for a state that fills the registers. A word's index is counted up from
// a number that the assembler does not see through: else it would compute the keys of all words first, and keep them.
#define INDEX(w) if (w) asm volatile("add.u32 %0, %0, %1;" : "+r"(at) : "r"(n)); \
                 else asm volatile("shfl.sync.idx.b32 %0, %1, %1, 31, 0xffffffff;" : "=r"(at) : "r"(t))
#define REGISTERS(name, WORDS, ...)                                                                       \
  extern "C" __global__ void __launch_bounds__(1024) name(ARGS) {                                         \
    u32 slot = claimSM(claim, where, slots, want);                                                        \
    if (slot == LOST) return;                                                                             \
    u32 t = tid(), n = ntid(), x[WORDS], at = 0;                                                          \
    u32 strike = slot == injectSlot && t == injectThread ? injectStep : 0xFFFFFFFFu;                      \
    _Pragma("unroll") for (u32 w = 0; w < WORDS; w++) {                                                   \
      INDEX(w);                                                                                           \
      x[w] = in[slot * WORDS * n + at] ^ mix(slot, at, launch);                                           \
    }                                                                                                     \
    _Pragma("nounroll") for (u32 i = 0; i < steps; i++) {                                                 \
      __VA_ARGS__                                                                                         \
      x[0] ^= i == strike ? injectMask : 0;                                                               \
    }                                                                                                     \
    _Pragma("unroll") for (u32 w = 0; w < WORDS; w++) {                                                   \
      INDEX(w);                                                                                           \
      out[slot * WORDS * n + at] = x[w] ^ mix(slot, at, launch);                                          \
    }                                                                                                     \
    finish(where, slot);                                                                                  \
  }
