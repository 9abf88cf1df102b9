/* The inner loops of polynomial attention: AVX-512, AVX2 with FMA, and portable.
 *
 * Monomials of one key lie side by side, so that a run is a vector times one number and the sum
 * over keys broadcasts a value to a vector of monomials; monomials of a panel of queries lie one
 * row of lanes each, so that a run is a plain product of vectors. gather holds columns x vectors of
 * sums in registers. */
#include "poly_kernels.h"
#include <pare/vexp.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- portable ------------------------------------------------------------------------------- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static void row_portable(float *phi, const poly_run *runs, size_t n, const float *x)
{
    for (const poly_run *r = runs; r < runs + n; r++) {
        const four by = {x[r->var], x[r->var], x[r->var], x[r->var]};
        for (size_t i = 0; i < r->count; i += 4)
            *(four *)(phi + r->to + i) = *(const four *)(phi + r->from + i) * by;
    }
}

static void columns_portable(float *to, size_t first, const float *from, const poly_run *runs,
                             size_t n, const float *x, size_t v)
{
    for (const poly_run *r = runs; r < runs + n; r++) {
        const four *const by = (const four *)x + r->var * v;
        const four *const f = (const four *)from + r->from * v;
        four *const t = (four *)to + (r->to - first) * v;
        for (size_t i = 0; i < r->count; i++)
            for (size_t e = 0; e < v; e++) t[i * v + e] = f[i * v + e] * by[e];
    }
}

static void gather_portable(float *s, size_t lds, const float *phi, size_t ldphi, const float *u,
                            size_t ldu, size_t keys, size_t features, size_t cols)
{
    for (size_t f = 0; f < features; f += 8)
        for (size_t c = 0; c < cols; c += TILE_STEP) {
            four acc[TILE_STEP][2] = {{{0}}};
            for (size_t j = 0; j < keys; j++) {
                const four a = *(const four *)(phi + j * ldphi + f);
                const four b = *(const four *)(phi + j * ldphi + f + 4);
                for (size_t r = 0; r < TILE_STEP; r++) {
                    const float x = u[j * ldu + c + r];
                    acc[r][0] += (four){x, x, x, x} * a;
                    acc[r][1] += (four){x, x, x, x} * b;
                }
            }
            for (size_t r = 0; r < TILE_STEP; r++) {
                *(four *)(s + (c + r) * lds + f) += acc[r][0];
                *(four *)(s + (c + r) * lds + f + 4) += acc[r][1];
            }
        }
}

static void flush_portable(double *to, float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] += (double)from[i];
        from[i] = 0;
    }
}

static void narrow_portable(float *to, double fade, const double *before, const double *now,
                            const double *by, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = (float)((fade * before[i] + now[i]) * by[i]);
}

#if defined(__x86_64__)
/* ---- AVX-512 -------------------------------------------------------------------------------- */

#define INLINE512 INLINE PARE_AVX512

PARE_AVX512 static void row_avx512(float *phi, const poly_run *runs, size_t n, const float *x)
{
    for (const poly_run *r = runs; r < runs + n; r++) {
        const __m512 by = _mm512_set1_ps(x[r->var]);
        for (size_t i = 0; i < r->count; i += 16)
            _mm512_storeu_ps(phi + r->to + i, _mm512_mul_ps(_mm512_loadu_ps(phi + r->from + i), by));
    }
}

INLINE512 void columns16(float *to, const float *from, const float *x, size_t count, const size_t v)
{
    __m512 by[4];
#pragma GCC unroll 4
    for (size_t e = 0; e < v; e++) by[e] = _mm512_load_ps(x + 16 * e);
    for (size_t i = 0; i < count; i++, to += 16 * v, from += 16 * v)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++)
            _mm512_store_ps(to + 16 * e, _mm512_mul_ps(_mm512_load_ps(from + 16 * e), by[e]));
}

PARE_AVX512 static void columns_avx512(float *to, size_t first, const float *from,
                                       const poly_run *runs, size_t n, const float *x, size_t v)
{
    for (const poly_run *r = runs; r < runs + n; r++) {
        float *const t = to + (r->to - first) * 16 * v;
        const float *const f = from + r->from * 16 * v, *const by = x + r->var * 16 * v;
        if (v == 1) columns16(t, f, by, r->count, 1);
        if (v == 2) columns16(t, f, by, r->count, 2);
        if (v == 3) columns16(t, f, by, r->count, 3);
        if (v == 4) columns16(t, f, by, r->count, 4);
    }
}

/* `cols` columns by `v` vectors, constants where this is inlined. */
INLINE512 void sums16(float *s, size_t lds, const float *phi, size_t ldphi, const float *u,
                      size_t ldu, size_t keys, const size_t cols, const size_t v)
{
    __m512 acc[8][3];
#pragma GCC unroll 8
    for (size_t c = 0; c < cols; c++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) acc[c][e] = _mm512_setzero_ps();
    for (size_t j = 0; j < keys; j++, phi += ldphi, u += ldu) {
        __m512 part[3];
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) part[e] = _mm512_loadu_ps(phi + 16 * e);
#pragma GCC unroll 8
        for (size_t c = 0; c < cols; c++) {
            const __m512 b = _mm512_set1_ps(u[c]);
#pragma GCC unroll 3
            for (size_t e = 0; e < v; e++) acc[c][e] = _mm512_fmadd_ps(b, part[e], acc[c][e]);
        }
    }
#pragma GCC unroll 8
    for (size_t c = 0; c < cols; c++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) {
            float *const at = s + c * lds + 16 * e;
            _mm512_storeu_ps(at, _mm512_add_ps(_mm512_loadu_ps(at), acc[c][e]));
        }
}

INLINE512 void strip16(float *s, size_t lds, const float *phi, size_t ldphi, const float *u,
                       size_t ldu, size_t keys, size_t cols, const size_t v)
{
    size_t c = 0;
    for (; c + 8 <= cols; c += 8) sums16(s + c * lds, lds, phi, ldphi, u + c, ldu, keys, 8, v);
    if (c < cols) sums16(s + c * lds, lds, phi, ldphi, u + c, ldu, keys, 4, v);
}

PARE_AVX512 static void gather_avx512(float *s, size_t lds, const float *phi, size_t ldphi,
                                      const float *u, size_t ldu, size_t keys, size_t features,
                                      size_t cols)
{
    size_t f = 0;
    for (; f + 48 <= features; f += 48) strip16(s + f, lds, phi + f, ldphi, u, ldu, keys, cols, 3);
    if (f + 32 == features) strip16(s + f, lds, phi + f, ldphi, u, ldu, keys, cols, 2);
    if (f + 16 == features) strip16(s + f, lds, phi + f, ldphi, u, ldu, keys, cols, 1);
}

PARE_AVX512 static void flush_avx512(double *to, float *from, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        const __m512d add = _mm512_cvtps_pd(_mm256_loadu_ps(from + i));
        _mm512_storeu_pd(to + i, _mm512_add_pd(_mm512_loadu_pd(to + i), add));
        _mm256_storeu_ps(from + i, _mm256_setzero_ps());
    }
}

PARE_AVX512 static void narrow_avx512(float *to, double fade, const double *before,
                                      const double *now, const double *by, size_t n)
{
    const size_t whole = n / 8 * 8;
    const __m512d f = _mm512_set1_pd(fade);
    for (size_t i = 0; i < whole; i += 8) {
        const __m512d sum =
            _mm512_fmadd_pd(f, _mm512_loadu_pd(before + i), _mm512_loadu_pd(now + i));
        _mm256_storeu_ps(to + i, _mm512_cvtpd_ps(_mm512_mul_pd(sum, _mm512_loadu_pd(by + i))));
    }
    for (size_t i = whole; i < n; i++)
        to[i] = (float)(__builtin_fma(fade, before[i], now[i]) * by[i]);
}

/* ---- AVX2 ----------------------------------------------------------------------------------- */

#define INLINE256 INLINE PARE_AVX2

PARE_AVX2 static void row_avx2(float *phi, const poly_run *runs, size_t n, const float *x)
{
    for (const poly_run *r = runs; r < runs + n; r++) {
        const __m256 by = _mm256_set1_ps(x[r->var]);
        for (size_t i = 0; i < r->count; i += 8)
            _mm256_storeu_ps(phi + r->to + i, _mm256_mul_ps(_mm256_loadu_ps(phi + r->from + i), by));
    }
}

PARE_AVX2 static void columns_avx2(float *to, size_t first, const float *from, const poly_run *runs,
                                   size_t n, const float *x, size_t v)
{
    for (const poly_run *r = runs; r < runs + n; r++)
        for (size_t e = 0; e < v; e++) {
            const __m256 by = _mm256_load_ps(x + 8 * (r->var * v + e));
            const float *const f = from + 8 * (r->from * v + e);
            float *const t = to + 8 * ((r->to - first) * v + e);
            for (size_t i = 0; i < r->count; i++)
                _mm256_store_ps(t + 8 * v * i, _mm256_mul_ps(_mm256_load_ps(f + 8 * v * i), by));
        }
}

/* Four columns by `v` vectors. */
INLINE256 void sums8(float *s, size_t lds, const float *phi, size_t ldphi, const float *u,
                     size_t ldu, size_t keys, const size_t v)
{
    __m256 acc[TILE_STEP][2];
#pragma GCC unroll 4
    for (size_t c = 0; c < TILE_STEP; c++)
#pragma GCC unroll 2
        for (size_t e = 0; e < v; e++) acc[c][e] = _mm256_setzero_ps();
    for (size_t j = 0; j < keys; j++, phi += ldphi, u += ldu) {
        __m256 part[2];
#pragma GCC unroll 2
        for (size_t e = 0; e < v; e++) part[e] = _mm256_loadu_ps(phi + 8 * e);
#pragma GCC unroll 4
        for (size_t c = 0; c < TILE_STEP; c++) {
            const __m256 b = _mm256_set1_ps(u[c]);
#pragma GCC unroll 2
            for (size_t e = 0; e < v; e++) acc[c][e] = _mm256_fmadd_ps(b, part[e], acc[c][e]);
        }
    }
#pragma GCC unroll 4
    for (size_t c = 0; c < TILE_STEP; c++)
#pragma GCC unroll 2
        for (size_t e = 0; e < v; e++) {
            float *const at = s + c * lds + 8 * e;
            _mm256_storeu_ps(at, _mm256_add_ps(_mm256_loadu_ps(at), acc[c][e]));
        }
}

PARE_AVX2 static void gather_avx2(float *s, size_t lds, const float *phi, size_t ldphi,
                                  const float *u, size_t ldu, size_t keys, size_t features,
                                  size_t cols)
{
    for (size_t f = 0; f < features; f += 16)
        for (size_t c = 0; c < cols; c += TILE_STEP)
            sums8(s + c * lds + f, lds, phi + f, ldphi, u + c, ldu, keys, 2);
}

PARE_AVX2 static void flush_avx2(double *to, float *from, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        const __m256d add = _mm256_cvtps_pd(_mm_loadu_ps(from + i));
        _mm256_storeu_pd(to + i, _mm256_add_pd(_mm256_loadu_pd(to + i), add));
        _mm_storeu_ps(from + i, _mm_setzero_ps());
    }
}
#endif

size_t poly_kernels(poly_kernel out[3])
{
    tile_kernel tiles[3];
    const size_t n = tile_kernels(tiles);
    for (size_t i = 0; i < n; i++)
        out[i] = (poly_kernel){tiles[i].name,  tiles[i],       row_portable,   columns_portable,
                               gather_portable, flush_portable, narrow_portable};
#if defined(__x86_64__)
    for (size_t i = 0; i < n; i++) {
        if (tiles[i].lanes == 16)
            out[i] = (poly_kernel){tiles[i].name, tiles[i],     row_avx512,   columns_avx512,
                                   gather_avx512, flush_avx512, narrow_avx512};
        if (tiles[i].lanes == 8)
            out[i] = (poly_kernel){tiles[i].name, tiles[i],   row_avx2,       columns_avx2,
                                   gather_avx2,   flush_avx2, narrow_portable};
    }
#endif
    return n;
}
