/* From the slopes of monomials to those of their parents and variables, one row in each lane. A run
 * has one variable: its numbers and its slopes stay in registers. */
#include "poly_gradient_kernels.h"
#include <pare/vexp.h>

#define INLINE static inline __attribute__((always_inline))

typedef float four __attribute__((vector_size(16), may_alias));

static void slopes4(float *dfrom, float *dx, const float *dto, size_t first, const float *from,
                    const poly_run *runs, size_t n, const float *x, size_t v)
{
    for (const poly_run *r = runs; r < runs + n; r++)
        for (size_t e = 0; e < v; e++) {
            const four by = ((const four *)x)[r->var * v + e];
            four sum = ((const four *)dx)[r->var * v + e];
            for (size_t i = 0; i < r->count; i++) {
                const size_t at = (r->from + i) * v + e;
                const four d = ((const four *)dto)[(r->to - first + i) * v + e];
                ((four *)dfrom)[at] += d * by;
                sum += d * ((const four *)from)[at];
            }
            ((four *)dx)[r->var * v + e] = sum;
        }
}

#if defined(__x86_64__)
/* v is a constant where this is inlined. */
INLINE PARE_AVX512 void run16(float *dfrom, float *dx, const float *dto, const float *from,
                              const float *x, size_t count, const size_t v)
{
    __m512 by[4], sum[4];
#pragma GCC unroll 4
    for (size_t e = 0; e < v; e++) {
        by[e] = _mm512_load_ps(x + 16 * e);
        sum[e] = _mm512_load_ps(dx + 16 * e);
    }
    for (size_t i = 0; i < count; i++, dfrom += 16 * v, dto += 16 * v, from += 16 * v)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) {
            const __m512 d = _mm512_load_ps(dto + 16 * e), p = _mm512_load_ps(dfrom + 16 * e);
            _mm512_store_ps(dfrom + 16 * e, _mm512_fmadd_ps(d, by[e], p));
            sum[e] = _mm512_fmadd_ps(d, _mm512_load_ps(from + 16 * e), sum[e]);
        }
#pragma GCC unroll 4
    for (size_t e = 0; e < v; e++) _mm512_store_ps(dx + 16 * e, sum[e]);
}

PARE_AVX512 static void slopes16(float *dfrom, float *dx, const float *dto, size_t first,
                                 const float *from, const poly_run *runs, size_t n, const float *x,
                                 size_t v)
{
    const size_t p = 16 * v;
    for (const poly_run *r = runs; r < runs + n; r++) {
        float *const df = dfrom + r->from * p, *const to = dx + r->var * p;
        const float *const d = dto + (r->to - first) * p, *const f = from + r->from * p;
        if (v == 1) run16(df, to, d, f, x + r->var * p, r->count, 1);
        if (v == 2) run16(df, to, d, f, x + r->var * p, r->count, 2);
        if (v == 3) run16(df, to, d, f, x + r->var * p, r->count, 3);
        if (v == 4) run16(df, to, d, f, x + r->var * p, r->count, 4);
    }
}

PARE_AVX2 static void slopes8(float *dfrom, float *dx, const float *dto, size_t first,
                              const float *from, const poly_run *runs, size_t n, const float *x,
                              size_t v)
{
    const size_t p = 8 * v;
    for (const poly_run *r = runs; r < runs + n; r++)
        for (size_t e = 0; e < p; e += 8) {
            const __m256 by = _mm256_load_ps(x + r->var * p + e);
            __m256 sum = _mm256_load_ps(dx + r->var * p + e);
            for (size_t i = 0; i < r->count; i++) {
                const size_t at = (r->from + i) * p + e;
                const __m256 d = _mm256_load_ps(dto + (r->to - first + i) * p + e);
                _mm256_store_ps(dfrom + at, _mm256_fmadd_ps(d, by, _mm256_load_ps(dfrom + at)));
                sum = _mm256_fmadd_ps(d, _mm256_load_ps(from + at), sum);
            }
            _mm256_store_ps(dx + r->var * p + e, sum);
        }
}
#endif

poly_slopes *poly_slopes_for(const tile_kernel *k)
{
#if defined(__x86_64__)
    if (k->lanes == 16) return slopes16;
    if (k->lanes == 8) return slopes8;
#endif
    return slopes4;
}
