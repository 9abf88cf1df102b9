/* accumulate.c - acc = scale_old acc + scale_new x, for the rows of several calls at once.
 *
 * Accumulators are f64, whatever the oracle's type. Products and sums are not fused, so every CPU
 * gives the same bits. `zero` collects 0 times every accumulator: it is 0 as long as all of them
 * are finite, and a nan afterwards. */
#include "merge_softmax.h"
#include "numbers.h"
#include "base/vexp.h"

/* Four at a time: vector units of the baseline CPU do it in pairs. */

#define INLINE static inline __attribute__((always_inline))

/* The columns left over, one by one. */
INLINE double add_rest(double *acc, size_t n, const addends *a, size_t row, size_t c)
{
    double zero = 0;
    for (; c < n; c++) {
        for (size_t t = 0; t < a->count; t++)
            acc[c] = a->scale_old[t][row] * acc[c] +
                     a->scale_new[t][row] * (double)((const float *)a->x[t])[row * a->ld + c];
        zero += acc[c] * 0;
    }
    return zero;
}

/* So many vectors of accumulators stay in registers over all addends. A factor of 1 is skipped. */
INLINE void add_vectors(double *acc, const addends *a, size_t row, size_t at, double4 *zero,
                        const size_t vectors)
{
    double4 s[8];
#pragma GCC unroll 8
    for (size_t e = 0; e < vectors; e++) s[e] = *(const double4 *)(acc + at + 4 * e);
    for (size_t t = 0; t < a->count; t++) {
        const float *const x = (const float *)a->x[t] + row * a->ld + at;
        const double scale_new = a->scale_new[t][row], scale_old = a->scale_old[t][row];
        if (scale_old != 1) {
#pragma GCC unroll 8
            for (size_t e = 0; e < vectors; e++) s[e] *= scale_old;
        }
#pragma GCC unroll 8
        for (size_t e = 0; e < vectors; e++)
            s[e] += scale_new * __builtin_convertvector(*(const float4 *)(x + 4 * e), double4);
    }
#pragma GCC unroll 8
    for (size_t e = 0; e < vectors; e++) {
        *(double4 *)(acc + at + 4 * e) = s[e];
        *zero += s[e] * 0.0;
    }
}

INLINE bool add_rows(double *acc, size_t rows, size_t n, const addends *a, const size_t vectors)
{
    double4 zeros = {0};
    double zero = 0;
    for (size_t i = 0; i < rows; i++, acc += n) {
        size_t c = 0;
        for (; c + 4 * vectors <= n; c += 4 * vectors) add_vectors(acc, a, i, c, &zeros, vectors);
        for (; c + 4 <= n; c += 4) add_vectors(acc, a, i, c, &zeros, 1);
        zero += add_rest(acc, n, a, i, c);
    }
    for (size_t e = 0; e < 4; e++) zero += zeros[e];
    return zero == 0;
}

static bool add_f64(double *acc, size_t rows, size_t n, const addends *a)
{
    double zero = 0;
    for (size_t i = 0; i < rows; i++, acc += n)
        for (size_t c = 0; c < n; c++) {
            for (size_t t = 0; t < a->count; t++)
                acc[c] = a->scale_old[t][i] * acc[c] +
                         a->scale_new[t][i] * ((const double *)a->x[t])[i * a->ld + c];
            zero += acc[c] * 0;
        }
    return zero == 0;
}

static bool add_f32(double *acc, size_t rows, size_t n, const addends *a)
{
    return add_rows(acc, rows, n, a, 2);
}

#if defined(__x86_64__)
PARE_AVX2 static bool add_avx2(double *acc, size_t rows, size_t n, const addends *a)
{
    return add_rows(acc, rows, n, a, 8);
}

/* What add_vectors does, for 64 columns: compilers take conversions of eight floats apart. */
PARE_AVX512 static void add_64(double *acc, const addends *a, size_t row, size_t at,
                               __m512d zero[8])
{
    __m512d s[8];
#pragma GCC unroll 8
    for (size_t e = 0; e < 8; e++) s[e] = _mm512_loadu_pd(acc + at + 8 * e);
    for (size_t t = 0; t < a->count; t++) {
        const float *const x = (const float *)a->x[t] + row * a->ld + at;
        const __m512d scale_new = _mm512_set1_pd(a->scale_new[t][row]),
                      scale_old = _mm512_set1_pd(a->scale_old[t][row]);
#pragma GCC unroll 4
        for (size_t e = 0; e < 4; e++) __builtin_prefetch(x + a->ld + 16 * e);
        if (a->scale_old[t][row] != 1) {
#pragma GCC unroll 8
            for (size_t e = 0; e < 8; e++) s[e] = _mm512_mul_pd(s[e], scale_old);
        }
#pragma GCC unroll 8
        for (size_t e = 0; e < 8; e++)
            s[e] = _mm512_add_pd(
                s[e], _mm512_mul_pd(scale_new, _mm512_cvtps_pd(_mm256_loadu_ps(x + 8 * e))));
    }
#pragma GCC unroll 8
    for (size_t e = 0; e < 8; e++) {
        _mm512_storeu_pd(acc + at + 8 * e, s[e]);
        zero[e] = _mm512_fmadd_pd(s[e], _mm512_setzero_pd(), zero[e]);
    }
}

PARE_AVX512 static bool add_avx512(double *acc, size_t rows, size_t n, const addends *a)
{
    __m512d wide[8] = {_mm512_setzero_pd()}; /* eight independent chains of sums */
    double4 zeros = {0};
    double zero = 0;
    for (size_t i = 0; i < rows; i++, acc += n) {
        size_t c = 0;
        for (; c + 64 <= n; c += 64) add_64(acc, a, i, c, wide);
        for (; c + 4 <= n; c += 4) add_vectors(acc, a, i, c, &zeros, 1);
        zero += add_rest(acc, n, a, i, c);
    }
    for (size_t e = 0; e < 4; e++) zero += zeros[e];
    for (size_t e = 0; e < 8; e++) zero += _mm512_reduce_add_pd(wide[e]);
    return zero == 0;
}
#endif

size_t accumulate_variants(accumulate_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX512) out[n++] = add_avx512;
    if (simd_best() >= SIMD_AVX2) out[n++] = add_avx2;
#endif
    out[n++] = add_f32;
    return n;
}

accumulate_fn *accumulate_fn_for(pare_dtype t)
{
    accumulate_fn *v[3];
    accumulate_variants(v);
    return t == PARE_F32 ? v[0] : add_f64;
}
