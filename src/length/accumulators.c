/* What is known of the rows: sums in f64, whatever the oracle's type (docs/theory/length.md
 * "Merging"). */
#include "group_codes.h"
#include "rounds.h"
#include <math.h>
#include <pare/vexp.h>
#include <string.h>

pare_status sums_new(run *r)
{
    const pare_status st = held_new(r);
    for (size_t i = 0; i < r->count && !st; i++) {
        head *const h = &r->heads[i];
        h->den = pare_alloc(r->arena, r->n, sizeof *h->den);
        h->top = pare_alloc(r->arena, r->n, sizeof *h->top);
        h->bad = pare_alloc(r->arena, r->n, 1);
        if (!h->den || !h->top || !h->bad) return pare_no_memory(r->err);
        for (size_t j = 0; j < r->n; j++) h->top[j] = -INFINITY;
    }
    return st;
}

static void clear_stripe(run *r, size_t at, size_t first, size_t end)
{
    head *const h = &r->heads[at];
    for (size_t i = first; i < end; i++) {
        if (!h->bad[i]) continue;
        if (held_all(r)) memset(held_row(r, h, i), 0, h->job.dv * sizeof *h->num);
        h->den[i] = 0;
        h->top[i] = -INFINITY;
        if (h->nparts) h->nparts[i] = 0;
    }
}

void sums_clear_bad(run *r)
{
    run_rows(r, clear_stripe, r);
}

/* Four at a time: baseline vector units do it in pairs. */
typedef double quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef float quad32 __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* 0, or a nan where a sum is none. */
INLINE double add_rest(double *sum, size_t n, const addends *a, size_t row, size_t c)
{
    double zero = 0;
    for (; c < n; c++) {
        for (size_t t = 0; t < a->count; t++)
            sum[c] = a->keep[t][row] * sum[c] +
                     a->by[t][row] * (double)((const float *)a->x[t])[row * a->ld + c];
        zero += sum[c] * 0;
    }
    return zero;
}

/* `quads` of sums stay in registers over all addends. Multiplying by 1 changes nothing. */
INLINE void add_quads(double *sum, const addends *a, size_t row, size_t at, quad *zero,
                      const size_t quads)
{
    quad s[8];
#pragma GCC unroll 8
    for (size_t e = 0; e < quads; e++) s[e] = *(const quad *)(sum + at + 4 * e);
    for (size_t t = 0; t < a->count; t++) {
        const float *const x = (const float *)a->x[t] + row * a->ld + at;
        const double by = a->by[t][row], keep = a->keep[t][row];
        if (keep != 1) {
#pragma GCC unroll 8
            for (size_t e = 0; e < quads; e++) s[e] *= keep;
        }
#pragma GCC unroll 8
        for (size_t e = 0; e < quads; e++)
            s[e] += by * __builtin_convertvector(*(const quad32 *)(x + 4 * e), quad);
    }
#pragma GCC unroll 8
    for (size_t e = 0; e < quads; e++) {
        *(quad *)(sum + at + 4 * e) = s[e];
        *zero += s[e] * 0.0;
    }
}

INLINE bool add_rows(double *sum, size_t rows, size_t n, const addends *a, const size_t quads)
{
    quad zeros = {0};
    double zero = 0;
    for (size_t i = 0; i < rows; i++, sum += n) {
        size_t c = 0;
        for (; c + 4 * quads <= n; c += 4 * quads) add_quads(sum, a, i, c, &zeros, quads);
        for (; c + 4 <= n; c += 4) add_quads(sum, a, i, c, &zeros, 1);
        zero += add_rest(sum, n, a, i, c);
    }
    for (size_t e = 0; e < 4; e++) zero += zeros[e];
    return zero == 0;
}

static bool add_f64(double *sum, size_t rows, size_t n, const addends *a)
{
    double zero = 0;
    for (size_t i = 0; i < rows; i++, sum += n)
        for (size_t c = 0; c < n; c++) {
            for (size_t t = 0; t < a->count; t++)
                sum[c] =
                    a->keep[t][i] * sum[c] + a->by[t][i] * ((const double *)a->x[t])[i * a->ld + c];
            zero += sum[c] * 0;
        }
    return zero == 0;
}

static bool add_f32(double *sum, size_t rows, size_t n, const addends *a)
{
    return add_rows(sum, rows, n, a, 2);
}

#if defined(__x86_64__)
/* The same sums: products and additions are not fused. */
PARE_AVX2 static bool add_avx2(double *sum, size_t rows, size_t n, const addends *a)
{
    return add_rows(sum, rows, n, a, 8);
}

/* What add_quads does, for 64 columns: compilers take conversions of eight floats apart. */
PARE_AVX512 static void add_64(double *sum, const addends *a, size_t row, size_t at,
                               __m512d zero[8])
{
    __m512d s[8];
#pragma GCC unroll 8
    for (size_t e = 0; e < 8; e++) s[e] = _mm512_loadu_pd(sum + at + 8 * e);
    for (size_t t = 0; t < a->count; t++) {
        const float *const x = (const float *)a->x[t] + row * a->ld + at;
        const __m512d by = _mm512_set1_pd(a->by[t][row]), keep = _mm512_set1_pd(a->keep[t][row]);
#pragma GCC unroll 4
        for (size_t e = 0; e < 4; e++) __builtin_prefetch(x + a->ld + 16 * e);
        if (a->keep[t][row] != 1) {
#pragma GCC unroll 8
            for (size_t e = 0; e < 8; e++) s[e] = _mm512_mul_pd(s[e], keep);
        }
#pragma GCC unroll 8
        for (size_t e = 0; e < 8; e++)
            s[e] =
                _mm512_add_pd(s[e], _mm512_mul_pd(by, _mm512_cvtps_pd(_mm256_loadu_ps(x + 8 * e))));
    }
#pragma GCC unroll 8
    for (size_t e = 0; e < 8; e++) {
        _mm512_storeu_pd(sum + at + 8 * e, s[e]);
        zero[e] = _mm512_fmadd_pd(s[e], _mm512_setzero_pd(), zero[e]);
    }
}

PARE_AVX512 static bool add_avx512(double *sum, size_t rows, size_t n, const addends *a)
{
    __m512d wide[8] = {_mm512_setzero_pd()}; /* they do not wait for one another */
    quad zeros = {0};
    double zero = 0;
    for (size_t i = 0; i < rows; i++, sum += n) {
        size_t c = 0;
        for (; c + 64 <= n; c += 64) add_64(sum, a, i, c, wide);
        for (; c + 4 <= n; c += 4) add_quads(sum, a, i, c, &zeros, 1);
        zero += add_rest(sum, n, a, i, c);
    }
    for (size_t e = 0; e < 4; e++) zero += zeros[e];
    for (size_t e = 0; e < 8; e++) zero += _mm512_reduce_add_pd(wide[e]);
    return zero == 0;
}
#endif

size_t sums_variants(sums_add_fn *out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) out[n++] = add_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) out[n++] = add_avx2;
#endif
    out[n++] = add_f32;
    return n;
}

sums_add_fn *sums_adder(pare_dtype t)
{
    sums_add_fn *v[3];
    sums_variants(v);
    return t == PARE_F32 ? v[0] : add_f64;
}

bool sums_finite(const run *r, const head *h, size_t i)
{
    const double *const num = held_row(r, h, i);
    double zero = h->den[i] * 0; /* 0, or nan */
    quad zeros[4] = {{0}};       /* they do not wait for one another */
    size_t c = 0;
    for (; c + 16 <= h->job.dv; c += 16)
        for (size_t e = 0; e < 4; e++) zeros[e] += *(const quad *)(num + c + 4 * e) * 0.0;
    for (; c < h->job.dv; c++) zero += num[c] * 0;
    zeros[0] += zeros[1] + (zeros[2] + zeros[3]);
    for (size_t e = 0; e < 4; e++) zero += zeros[0][e];
    return zero == 0;
}

bool sums_empty(const run *r, size_t i)
{
    return r->p->kind == PARE_GRAPH && pare_visible(r->p, r->g, r->n, i).count == 0;
}

static void write_f32(float *y, const double *num, double by, size_t n)
{
    size_t c = 0;
    for (; c + 4 <= n; c += 4)
        *(quad32 *)(y + c) = __builtin_convertvector(*(const quad *)(num + c) * by, quad32);
    for (; c < n; c++) y[c] = (float)(num[c] * by);
}

void sums_write_rows(run *r, size_t at, size_t first, size_t end)
{
    const head *const h = &r->heads[at];
    const size_t dv = h->job.dv;
    for (size_t i = first; i < end; i++) {
        const double *const num = held_row(r, h, i), den = h->den[i];
        double *const y = (double *)h->job.y + i * h->job.ldy;
        if (h->job.lse) num_put(r->caps.dtype, h->job.lse, i, h->top[i] + log(den));
        if (r->caps.dtype == PARE_F32)
            write_f32((float *)h->job.y + i * h->job.ldy, num, den > 0 ? 1 / den : 0, dv);
        else
            for (size_t c = 0; c < dv; c++) y[c] = num[c] / (den > 0 ? den : 1);
    }
}

void sums_write(run *r)
{
    if (held_all(r)) run_rows(r, sums_write_rows, r);
}
