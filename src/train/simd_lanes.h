/* simd_lanes.h - the f32 kernels of training: sixteen SIMD lanes.
 *
 * Each is written once, in plain C over 16 lanes, and compiled for several instruction sets; the
 * choice is made at run time. No operation is fused and sums have one order, so every instruction
 * set gives the same bits. All operands are loaded before a result is stored: results may overwrite
 * their operands. */
#ifndef PARE_SRC_LANES_H
#define PARE_SRC_LANES_H
#include "base/simd.h"
#include "tape.h"
#include <string.h>

enum { LANES = 16 };

/* NAME(): the loop `run(job, span)`, which is always inlined, compiled for each instruction set. */
#define LANES_DISPATCH(name, run)                                                                  \
    static void name##_portable(void *job, const span *s)                                          \
    {                                                                                              \
        run(job, s);                                                                               \
    }                                                                                              \
    PARE_AVX2 static void name##_avx2(void *job, const span *s)                                    \
    {                                                                                              \
        run(job, s);                                                                               \
    }                                                                                              \
    PARE_AVX512 static void name##_avx512(void *job, const span *s)                                \
    {                                                                                              \
        run(job, s);                                                                               \
    }                                                                                              \
    static span_fn *name(void)                                                                     \
    {                                                                                              \
        static span_fn *const best[] = {name##_portable, name##_avx2, name##_avx512};              \
        return best[simd_best()];                                                                  \
    }

/* Sixteen numbers, in as many registers as they need: arrays would go through memory. Passed by
 * address, since passing by value depends on the instruction set. */
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));
typedef float lanes_unaligned
    __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef double lanes_f64 __attribute__((vector_size(LANES * sizeof(double)), aligned(8)));
typedef uint8_t lanes_u8 __attribute__((vector_size(LANES), aligned(1), may_alias));

/* Entries of the chunk that begins at j; the last chunk of a row may be shorter. */
PARE_INLINE size_t lanes_count(size_t j, size_t d)
{
    return d - j < LANES ? d - j : LANES;
}

/* Entries [j, j + n) of a row, 0 behind them; all `absent` where there is no row. */
PARE_INLINE void lanes_load(lanes *v, const float *from, size_t j, size_t n, float absent)
{
    if (!from)
        *v = (lanes){0} + absent;
    else if (n == LANES)
        *v = *(const lanes_unaligned *)(from + j);
    else {
        float some[LANES] = {0};
        memcpy(some, from + j, n * sizeof *some);
        *v = *(const lanes_unaligned *)some;
    }
}

PARE_INLINE void lanes_store(float *to, const lanes *v, size_t j, size_t n)
{
    if (n == LANES)
        *(lanes_unaligned *)(to + j) = *v;
    else
        memcpy(to + j, v, n * sizeof *to);
}

/* The factors of dropout for n entries from `at` on: 0 or its scale. */
PARE_INLINE void lanes_dropout(lanes *k, const dropout_mask *mask, size_t at, size_t n)
{
    uint8_t some[LANES] = {0};
    if (!mask || !mask->keep) {
        *k = (lanes){0} + 1;
        return;
    }
    const uint8_t *const keep = n == LANES ? mask->keep + at : some;
    if (n < LANES) memcpy(some, mask->keep + at, n);
    *k = __builtin_convertvector(*(const lanes_u8 *)keep, lanes) * (float)mask->scale;
}

/* The sum of sixteen partial sums, as a tree. */
PARE_INLINE float lanes_total(const lanes *part)
{
    float s[LANES];
    *(lanes_unaligned *)s = *part;
    for (size_t w = LANES / 2; w > 0; w /= 2)
        for (size_t l = 0; l < w; l++) s[l] += s[l + w];
    return s[0];
}

/* The f32 sums of a span in f64. */
PARE_INLINE void lanes_widen(double *sum, const float *part, size_t d)
{
    for (size_t j = 0; j < d; j++) sum[j] = (double)part[j];
}
#endif
