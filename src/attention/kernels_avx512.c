/* kernels_avx512.c - the attention kernels with AVX-512. */
#if defined(__x86_64__)
#define VEC_AVX512
#include "poly_lanes.h"
#include "tile_lanes.h"

/* Sixteen monomials of `rows` rows: each factor is a shuffle of the variables, in the order of
 * poly_rows, so that the bits are the same. Nothing waits for a recent store. */
VEC_INLINE void products16(float *phi, size_t ldphi, const poly_factors *m, const __m512 *x,
                           const size_t rows, const size_t degree)
{
    const __m512 one = _mm512_set1_ps(1);
    for (size_t e = 0; e < m->ld; e += 16) {
        __m512i at[POLY_FACTORS];
#pragma GCC unroll 4
        for (size_t f = 0; f < degree; f++) at[f] = _mm512_loadu_si512(m->factor + f * m->ld + e);
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++) {
            __m512 p = _mm512_permutex2var_ps(x[r], at[0], one);
#pragma GCC unroll 4
            for (size_t f = 1; f < degree; f++)
                p = _mm512_mul_ps(p, _mm512_permutex2var_ps(x[r], at[f], one));
            _mm512_storeu_ps(phi + r * ldphi + e, p);
        }
    }
}

VEC_INLINE void products_of(float *phi, size_t ldphi, const poly_factors *m, const float *x,
                            size_t ldx, size_t d, size_t rows, const size_t degree)
{
    const __mmask16 on = (__mmask16)((1u << d) - 1);
    size_t j = 0;
    for (; j + 4 <= rows; j += 4, x += 4 * ldx, phi += 4 * ldphi) {
        const __m512 some[4] = {_mm512_maskz_loadu_ps(on, x), _mm512_maskz_loadu_ps(on, x + ldx),
                                _mm512_maskz_loadu_ps(on, x + 2 * ldx),
                                _mm512_maskz_loadu_ps(on, x + 3 * ldx)};
        products16(phi, ldphi, m, some, 4, degree);
    }
    for (; j < rows; j++, x += ldx, phi += ldphi) {
        const __m512 one = _mm512_maskz_loadu_ps(on, x);
        products16(phi, ldphi, m, &one, 1, degree);
    }
}

VEC_TARGET static void poly_products(float *phi, size_t ldphi, const poly_factors *m,
                                     const float *x, size_t ldx, size_t d, size_t rows)
{
    if (m->degree == 1) products_of(phi, ldphi, m, x, ldx, d, rows, 1);
    if (m->degree == 2) products_of(phi, ldphi, m, x, ldx, d, rows, 2);
    if (m->degree == 3) products_of(phi, ldphi, m, x, ldx, d, rows, 3);
    if (m->degree == 4) products_of(phi, ldphi, m, x, ldx, d, rows, 4);
}

VEC_TARGET static void poly_update_state(float *to, double *now, float *from, const poly_rescale *f,
                                         const double *before, const double *by, size_t n)
{
    const size_t whole = n / 8 * 8;
    const __m512d rescale = _mm512_set1_pd(f->before), own = _mm512_set1_pd(f->now);
    for (size_t i = 0; i < whole; i += 8) {
        const __m512d add = _mm512_cvtps_pd(_mm256_loadu_ps(from + i));
        const __m512d sum = _mm512_mul_pd(_mm512_add_pd(_mm512_loadu_pd(now + i), add), own);
        const __m512d all = _mm512_fmadd_pd(rescale, _mm512_loadu_pd(before + i), sum);
        _mm512_storeu_pd(now + i, sum);
        _mm256_storeu_ps(from + i, _mm256_setzero_ps());
        _mm256_storeu_ps(to + i, _mm512_cvtpd_ps(_mm512_mul_pd(all, _mm512_loadu_pd(by + i))));
    }
    for (size_t i = whole; i < n; i++) {
        now[i] = (now[i] + (double)from[i]) * f->now;
        from[i] = 0;
        to[i] = (float)(__builtin_fma(f->before, before[i], now[i]) * by[i]);
    }
}

const tile_kernel tile_avx512 = {
    "avx512", VEC, TILE_VECS, tile_scores, tile_weights, tile_values, tile_softmax_backward};
const poly_kernel poly_avx512 = {.name = "avx512",
                                 .products = poly_products,
                                 .rows = poly_rows,
                                 .columns = poly_columns,
                                 .accumulate = poly_accumulate,
                                 .flush = poly_flush,
                                 .update_state = poly_update_state,
                                 .monomials_backward = poly_monomials_backward};
#else
typedef int attention_kernels_avx512_are_for_x86;
#endif
