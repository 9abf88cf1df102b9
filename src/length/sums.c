/* What is known of the rows: sums in f64, whatever the oracle's type (spec of length, 4.6). */
#include "codes.h"
#include "rounds.h"
#include <math.h>
#include <pare/vexp.h>
#include <string.h>

pare_status sums_new(run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        head *const h = &r->heads[i];
        h->num = pare_alloc(r->arena, r->n * h->job.dv, sizeof *h->num);
        h->den = pare_alloc(r->arena, r->n, sizeof *h->den);
        h->top = pare_alloc(r->arena, r->n, sizeof *h->top);
        h->bad = pare_alloc(r->arena, r->n, 1);
        if (!h->num || !h->den || !h->top || !h->bad) return pare_no_memory(r->err);
        for (size_t j = 0; j < r->n; j++) h->top[j] = -INFINITY;
    }
    return PARE_OK;
}

static void clear_stripe(run *r, size_t at, size_t first, size_t end)
{
    head *const h = &r->heads[at];
    for (size_t i = first; i < end; i++) {
        if (!h->bad[i]) continue;
        memset(h->num + i * h->job.dv, 0, h->job.dv * sizeof *h->num);
        h->den[i] = 0;
        h->top[i] = -INFINITY;
        if (h->nparts) h->nparts[i] = 0;
    }
}

void sums_clear_bad(run *r)
{
    run_rows(r, clear_stripe, r);
}

/* Eight at a time: vector units of any width do it in as many pieces as they need. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef float eight32 __attribute__((vector_size(32), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* `eights` of sums stay in registers over all addends. Multiplying by 1 changes nothing. */
INLINE void add_eights(double *sum, const addends *a, size_t row, size_t at, const size_t eights)
{
    eight s[8];
#pragma GCC unroll 8
    for (size_t e = 0; e < eights; e++) s[e] = *(const eight *)(sum + at + 8 * e);
    for (size_t t = 0; t < a->count; t++) {
        const float *const x = (const float *)a->x[t] + row * a->ld + at;
        const double by = a->by[t][row], keep = a->keep[t][row];
        if (keep != 1) {
#pragma GCC unroll 8
            for (size_t e = 0; e < eights; e++) s[e] *= keep;
        }
#pragma GCC unroll 8
        for (size_t e = 0; e < eights; e++)
            s[e] += by * __builtin_convertvector(*(const eight32 *)(x + 8 * e), eight);
    }
#pragma GCC unroll 8
    for (size_t e = 0; e < eights; e++) *(eight *)(sum + at + 8 * e) = s[e];
}

INLINE void add_row(double *sum, size_t n, const addends *a, size_t row, const size_t eights)
{
    size_t c = 0;
    for (; c + 8 * eights <= n; c += 8 * eights) add_eights(sum, a, row, c, eights);
    for (; c + 8 <= n; c += 8) add_eights(sum, a, row, c, 1);
    for (; c < n; c++)
        for (size_t t = 0; t < a->count; t++)
            sum[c] = a->keep[t][row] * sum[c] +
                     a->by[t][row] * (double)((const float *)a->x[t])[row * a->ld + c];
}

static void add_f64(double *sum, size_t rows, size_t n, const addends *a)
{
    for (size_t i = 0; i < rows; i++, sum += n)
        for (size_t t = 0; t < a->count; t++)
            for (size_t c = 0; c < n; c++)
                sum[c] =
                    a->keep[t][i] * sum[c] + a->by[t][i] * ((const double *)a->x[t])[i * a->ld + c];
}

static void add_f32(double *sum, size_t rows, size_t n, const addends *a)
{
    for (size_t i = 0; i < rows; i++) add_row(sum + i * n, n, a, i, 2);
}

#if defined(__x86_64__)
/* The same sums: products and additions are not fused. */
PARE_AVX2 static void add_avx2(double *sum, size_t rows, size_t n, const addends *a)
{
    for (size_t i = 0; i < rows; i++) add_row(sum + i * n, n, a, i, 4);
}

PARE_AVX512 static void add_avx512(double *sum, size_t rows, size_t n, const addends *a)
{
    for (size_t i = 0; i < rows; i++) add_row(sum + i * n, n, a, i, 8);
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
    (void)r;
    const double *const num = h->num + i * h->job.dv;
    double zero = h->den[i] - h->den[i];
    for (size_t c = 0; c < h->job.dv; c++) zero += num[c] - num[c]; /* 0, or nan */
    return zero == 0;
}

bool sums_empty(const run *r, size_t i)
{
    return r->p->kind == PARE_GRAPH && pare_visible(r->p, r->g, r->n, i).count == 0;
}

static void write_stripe(run *r, size_t at, size_t first, size_t end)
{
    const head *const h = &r->heads[at];
    const size_t dv = h->job.dv;
    const bool f32 = r->caps.dtype == PARE_F32;
    for (size_t i = first; i < end; i++) {
        const double *const num = h->num + i * dv, den = h->den[i], by = den > 0 ? 1 / den : 0;
        float *const y32 = (float *)h->job.y + i * h->job.ldy;
        double *const y64 = (double *)h->job.y + i * h->job.ldy;
        if (h->job.lse) num_put(r->caps.dtype, h->job.lse, i, h->top[i] + log(den));
        for (size_t c = 0; f32 && c < dv; c++) y32[c] = (float)(num[c] * by);
        for (size_t c = 0; !f32 && c < dv; c++) y64[c] = num[c] / (den > 0 ? den : 1);
    }
}

void sums_write(run *r)
{
    run_rows(r, write_stripe, r);
}
