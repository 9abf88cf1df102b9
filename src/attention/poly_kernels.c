/* poly_kernels.c - the inner loops of polynomial attention: AVX-512, AVX2 with FMA, and portable.
 *
 * The monomials of one key are contiguous, so that a run is a vector times one number and the sum
 * over keys broadcasts a value to a vector of monomials; the monomials of a panel of queries have
 * one row of lanes each, so that a run is a product of vectors. accumulate holds columns x vectors
 * of sums in registers. In the backward pass a run has one variable: its numbers and its gradient
 * stay in registers. */
#include "poly_kernels.h"
#include "base/vexp.h"

#define INLINE static inline __attribute__((always_inline))

/* ---- portable ------------------------------------------------------------------------------- */

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* Rows that are computed together: a run reads what the run before has stored, and a load across
 * two recent stores waits for both; with other rows in between it does not. */
enum { ROWS_AT_ONCE = 8 };

static size_t some(size_t rows)
{
    return rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
}

static void rows_portable(float *phi, size_t ldphi, const poly_run *runs, size_t n, const float *x,
                          size_t ldx, size_t rows)
{
    for (size_t m; (m = some(rows)) > 0; rows -= m, phi += m * ldphi, x += m * ldx)
        for (const poly_run *r = runs; r < runs + n; r++)
            for (size_t j = 0; j < m; j++) {
                const float f = x[j * ldx + r->var], *const from = phi + j * ldphi + r->from;
                float *const to = phi + j * ldphi + r->to;
                for (size_t i = 0; i < r->count; i += 4)
                    *(four *)(to + i) = *(const four *)(from + i) * (four){f, f, f, f};
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

/* s[i] += sum[i] for i < count, of n. */
static void add_some(float *s, const float *sum, size_t count, size_t n)
{
    for (size_t i = 0; i < n && i < count; i++) s[i] += sum[i];
}

static void accumulate_portable(float *s, size_t lds, const poly_keys *k, const float *phi,
                                const float *x, size_t count)
{
    for (size_t i = 0; i < count; i += 8)
        for (size_t c = 0; c < k->cols; c += TILE_STEP) {
            four acc[TILE_STEP][2] = {{{0}}};
            for (size_t j = 0; j < k->keys; j++) {
                const float f = x ? x[j * k->ldx] : 1;
                const four *const at = (const four *)(phi + j * k->ldphi + i);
                const four a = at[0] * (four){f, f, f, f}, b = at[1] * (four){f, f, f, f};
                for (size_t r = 0; r < TILE_STEP; r++) {
                    const float y = k->u[j * k->ldu + c + r];
                    acc[r][0] += (four){y, y, y, y} * a;
                    acc[r][1] += (four){y, y, y, y} * b;
                }
            }
            for (size_t r = 0; r < TILE_STEP; r++)
                add_some(s + (c + r) * lds + i, (const float *)acc[r], count - i, 8);
        }
}

static void flush_portable(double *to, float *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] += (double)from[i];
        from[i] = 0;
    }
}

static void update_state_portable(float *to, double *now, float *from, const poly_rescale *f,
                                  const double *before, const double *by, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        now[i] = (now[i] + (double)from[i]) * f->now;
        from[i] = 0;
        to[i] = (float)((f->before * before[i] + now[i]) * by[i]);
    }
}

static void monomials_backward_portable(float *dfrom, float *dx, const float *dto, size_t first,
                                        const float *from, const poly_run *runs, size_t n,
                                        const float *x, size_t v)
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
/* ---- AVX-512 -------------------------------------------------------------------------------- */

#define INLINE512 INLINE PARE_AVX512

PARE_AVX512 static void rows_avx512(float *phi, size_t ldphi, const poly_run *runs, size_t n,
                                    const float *x, size_t ldx, size_t rows)
{
    for (size_t m; (m = some(rows)) > 0; rows -= m, phi += m * ldphi, x += m * ldx)
        for (const poly_run *r = runs; r < runs + n; r++)
            for (size_t j = 0; j < m; j++) {
                const __m512 by = _mm512_set1_ps(x[j * ldx + r->var]);
                const float *const from = phi + j * ldphi + r->from;
                float *const to = phi + j * ldphi + r->to;
                for (size_t i = 0; i < r->count; i += 16)
                    _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_loadu_ps(from + i), by));
            }
}

/* Sixteen monomials of `rows` rows: each factor is a shuffle of the variables, in the order of
 * rows_avx512, so that the bits are the same. Nothing waits for a recent store. */
INLINE512 void products16(float *phi, size_t ldphi, const poly_factors *m, const __m512 *x,
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

INLINE512 void products_of(float *phi, size_t ldphi, const poly_factors *m, const float *x,
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

PARE_AVX512 static void products_avx512(float *phi, size_t ldphi, const poly_factors *m,
                                        const float *x, size_t ldx, size_t d, size_t rows)
{
    if (m->degree == 1) products_of(phi, ldphi, m, x, ldx, d, rows, 1);
    if (m->degree == 2) products_of(phi, ldphi, m, x, ldx, d, rows, 2);
    if (m->degree == 3) products_of(phi, ldphi, m, x, ldx, d, rows, 3);
    if (m->degree == 4) products_of(phi, ldphi, m, x, ldx, d, rows, 4);
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

/* `cols` columns by `v` vectors, constants where this is inlined; `last` masks the last vector. */
INLINE512 void sums16(float *s, size_t lds, const poly_keys *k, const float *u, const float *phi,
                      const float *x, __mmask16 last, const size_t cols, const size_t v)
{
    __m512 acc[12][3];
#pragma GCC unroll 12
    for (size_t c = 0; c < cols; c++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) acc[c][e] = _mm512_setzero_ps();
    for (size_t j = 0; j < k->keys; j++, phi += k->ldphi, u += k->ldu) {
        __m512 part[3];
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) {
            part[e] = _mm512_loadu_ps(phi + 16 * e);
            if (x) part[e] = _mm512_mul_ps(part[e], _mm512_set1_ps(x[j * k->ldx]));
        }
#pragma GCC unroll 12
        for (size_t c = 0; c < cols; c++) {
            const __m512 b = _mm512_set1_ps(u[c]);
#pragma GCC unroll 3
            for (size_t e = 0; e < v; e++) acc[c][e] = _mm512_fmadd_ps(b, part[e], acc[c][e]);
        }
    }
#pragma GCC unroll 12
    for (size_t c = 0; c < cols; c++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) {
            float *const at = s + c * lds + 16 * e;
            const __mmask16 m = e + 1 < v ? (__mmask16)0xffff : last;
            const __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(m, at), acc[c][e]);
            _mm512_mask_storeu_ps(at, m, sum);
        }
}

/* All of `count` for some columns, v vectors at a time. */
INLINE512 void strip16(float *s, size_t lds, const poly_keys *k, size_t c, const float *phi,
                       const float *x, size_t count, const size_t cols, const size_t v)
{
    size_t i = 0;
    s += c * lds;
    for (; i + 16 * v <= count; i += 16 * v)
        sums16(s + i, lds, k, k->u + c, phi + i, x, 0xffff, cols, v);
    for (; i < count; i += 16) {
        const size_t left = count - i;
        const __mmask16 last = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
        sums16(s + i, lds, k, k->u + c, phi + i, x, last, cols, 1);
    }
}

PARE_AVX512 static void accumulate_avx512(float *s, size_t lds, const poly_keys *k,
                                          const float *phi, const float *x, size_t count)
{
    for (size_t c = 0, take; c < k->cols; c += take) {
        const size_t left = k->cols - c;
        take = left == 4 ? 4 : left % 8 ? 12 : 8;
        if (take == 4) strip16(s, lds, k, c, phi, x, count, 4, 3);
        if (take == 8) strip16(s, lds, k, c, phi, x, count, 8, 3);
        if (take == 12) strip16(s, lds, k, c, phi, x, count, 12, 2);
    }
}

PARE_AVX512 static void flush_avx512(double *to, float *from, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        const __m512d add = _mm512_cvtps_pd(_mm256_loadu_ps(from + i));
        _mm512_storeu_pd(to + i, _mm512_add_pd(_mm512_loadu_pd(to + i), add));
        _mm256_storeu_ps(from + i, _mm256_setzero_ps());
    }
}

PARE_AVX512 static void update_state_avx512(float *to, double *now, float *from,
                                            const poly_rescale *f, const double *before,
                                            const double *by, size_t n)
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

/* v is a constant where this is inlined. */
INLINE512 void run_backward16(float *dfrom, float *dx, const float *dto, const float *from,
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

PARE_AVX512 static void monomials_backward_avx512(float *dfrom, float *dx, const float *dto,
                                                  size_t first, const float *from,
                                                  const poly_run *runs, size_t n, const float *x,
                                                  size_t v)
{
    const size_t p = 16 * v;
    for (const poly_run *r = runs; r < runs + n; r++) {
        float *const df = dfrom + r->from * p, *const to = dx + r->var * p;
        const float *const d = dto + (r->to - first) * p, *const f = from + r->from * p;
        if (v == 1) run_backward16(df, to, d, f, x + r->var * p, r->count, 1);
        if (v == 2) run_backward16(df, to, d, f, x + r->var * p, r->count, 2);
        if (v == 3) run_backward16(df, to, d, f, x + r->var * p, r->count, 3);
        if (v == 4) run_backward16(df, to, d, f, x + r->var * p, r->count, 4);
    }
}

/* ---- AVX2 ----------------------------------------------------------------------------------- */

#define INLINE256 INLINE PARE_AVX2

PARE_AVX2 static void rows_avx2(float *phi, size_t ldphi, const poly_run *runs, size_t n,
                                const float *x, size_t ldx, size_t rows)
{
    for (size_t m; (m = some(rows)) > 0; rows -= m, phi += m * ldphi, x += m * ldx)
        for (const poly_run *r = runs; r < runs + n; r++)
            for (size_t j = 0; j < m; j++) {
                const __m256 by = _mm256_set1_ps(x[j * ldx + r->var]);
                const float *const from = phi + j * ldphi + r->from;
                float *const to = phi + j * ldphi + r->to;
                for (size_t i = 0; i < r->count; i += 8)
                    _mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_loadu_ps(from + i), by));
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

PARE_AVX2 static void accumulate_avx2(float *s, size_t lds, const poly_keys *k, const float *phi,
                                      const float *x, size_t count)
{
    for (size_t i = 0; i < count; i += 16)
        for (size_t c = 0; c < k->cols; c += TILE_STEP) {
            __m256 acc[TILE_STEP][2];
#pragma GCC unroll 4
            for (size_t r = 0; r < TILE_STEP; r++) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
            for (size_t j = 0; j < k->keys; j++) {
                const __m256 f = _mm256_set1_ps(x ? x[j * k->ldx] : 1);
                const float *const at = phi + j * k->ldphi + i;
                const __m256 a = _mm256_mul_ps(_mm256_loadu_ps(at), f);
                const __m256 b = _mm256_mul_ps(_mm256_loadu_ps(at + 8), f);
#pragma GCC unroll 4
                for (size_t r = 0; r < TILE_STEP; r++) {
                    const __m256 y = _mm256_set1_ps(k->u[j * k->ldu + c + r]);
                    acc[r][0] = _mm256_fmadd_ps(y, a, acc[r][0]);
                    acc[r][1] = _mm256_fmadd_ps(y, b, acc[r][1]);
                }
            }
            for (size_t r = 0; r < TILE_STEP; r++)
                add_some(s + (c + r) * lds + i, (const float *)acc[r], count - i, 16);
        }
}

PARE_AVX2 static void flush_avx2(double *to, float *from, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        const __m256d add = _mm256_cvtps_pd(_mm_loadu_ps(from + i));
        _mm256_storeu_pd(to + i, _mm256_add_pd(_mm256_loadu_pd(to + i), add));
        _mm_storeu_ps(from + i, _mm_setzero_ps());
    }
}

PARE_AVX2 static void monomials_backward_avx2(float *dfrom, float *dx, const float *dto,
                                              size_t first, const float *from, const poly_run *runs,
                                              size_t n, const float *x, size_t v)
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

size_t poly_kernels(poly_kernel out[3])
{
    tile_kernel tiles[3];
    const size_t n = tile_kernels(tiles);
    for (size_t i = 0; i < n; i++)
        out[i] = (poly_kernel){.name = tiles[i].name,
                               .tile = tiles[i],
                               .rows = rows_portable,
                               .columns = columns_portable,
                               .accumulate = accumulate_portable,
                               .flush = flush_portable,
                               .update_state = update_state_portable,
                               .monomials_backward = monomials_backward_portable};
#if defined(__x86_64__)
    for (size_t i = 0; i < n; i++) {
        if (tiles[i].lanes == 16)
            out[i] = (poly_kernel){.name = tiles[i].name,
                                   .tile = tiles[i],
                                   .products = products_avx512,
                                   .rows = rows_avx512,
                                   .columns = columns_avx512,
                                   .accumulate = accumulate_avx512,
                                   .flush = flush_avx512,
                                   .update_state = update_state_avx512,
                                   .monomials_backward = monomials_backward_avx512};
        if (tiles[i].lanes == 8)
            out[i] = (poly_kernel){.name = tiles[i].name,
                                   .tile = tiles[i],
                                   .rows = rows_avx2,
                                   .columns = columns_avx2,
                                   .accumulate = accumulate_avx2,
                                   .flush = flush_avx2,
                                   .update_state = update_state_portable,
                                   .monomials_backward = monomials_backward_avx2};
    }
#endif
    return n;
}
