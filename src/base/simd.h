/* simd.h - the instruction sets that kernels are compiled for, and the one test of the CPU.
 *
 * A kernel is either plain C, compiled once for each set (the attributes below), or written over
 * the vector type of base/vec.h, in a file for each set. */
#ifndef PARE_BASE_SIMD_H
#define PARE_BASE_SIMD_H
#include <stdbool.h>

#define PARE_INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define PARE_AVX2   __attribute__((target("avx2,fma")))
#define PARE_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
#else
#define PARE_AVX2
#define PARE_AVX512
#endif

typedef enum simd_isa { SIMD_PORTABLE, SIMD_AVX2, SIMD_AVX512 } simd_isa;

/* The best set that this CPU has; it has those below as well. */
static inline simd_isa simd_best(void)
{
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return SIMD_PORTABLE;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return SIMD_AVX512;
    return SIMD_AVX2;
#else
    return SIMD_PORTABLE;
#endif
}

/* Four floats, doubles: what every compiler can lower to any CPU. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef double four_f64 __attribute__((vector_size(32), aligned(8), may_alias));
#endif
