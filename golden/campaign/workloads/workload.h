// What every workload shares: a block works on its own 128 threads' share of random numbers and writes every result.
//
// reals holds numbers of a normal distribution, bits random words, WORDS of each a thread and block; out likewise, and is
// zero at the start.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef unsigned short u16;
#define DEV static __device__ inline __attribute__((always_inline))
#define THREADS 128
#define WORDS 16
#define ALL 0xFFFFFFFFu

DEV u32 tid() { return __nvvm_read_ptx_sreg_tid_x(); }
DEV u32 bid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEV u32 asBits(float x) { return __builtin_bit_cast(u32, x); }
DEV float asFloat(u32 x) { return __builtin_bit_cast(float, x); }
DEV float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEV float ex2(float x) { float r; asm volatile("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
DEV float shflXor(float x, u32 m) { u32 r; asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(r) : "r"(asBits(x)), "r"(m)); return asFloat(r); }
DEV u32 shflXor(u32 x, u32 m) { u32 r; asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=r"(r) : "r"(x), "r"(m)); return r; }
DEV u32 shflUp(u32 x, u32 n) { u32 r; asm volatile("shfl.sync.up.b32 %0, %1, %2, 0, -1;" : "=r"(r) : "r"(x), "r"(n)); return r; }
DEV u32 half(float x) { u16 r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x)); return r; }
DEV float fromHalf(u32 x) { float r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"((u16)x)); return r; }
DEV u32 halves(float lo, float hi) { return half(lo) | half(hi) << 16; }
DEV u32 bf16(float x) { u32 b = asBits(x); return (b + 0x7FFF + (b >> 16 & 1)) >> 16; }

#define WORKLOAD(name) extern "C" __global__ void __launch_bounds__(THREADS) name(u32 *out, const float *reals, const u32 *bits, u32 steps)
#define SHARE u32 t = tid(); reals += bid() * THREADS * WORDS; bits += bid() * THREADS * WORDS; out += bid() * THREADS * WORDS; (void)reals; (void)bits;
