/* What is known of the rows: sums in f64, whatever the oracle's type (spec of length, 4.6). */
#include "codes.h"
#include "rounds.h"
#include <math.h>
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

/* Four at a time: baseline vector units do it in pairs. */
typedef double quad __attribute__((vector_size(32), aligned(8)));
typedef float quad32 __attribute__((vector_size(16), aligned(4)));

static inline __attribute__((always_inline)) void add_f32(double *sum, double keep, double by,
                                                          const float *x, size_t n)
{
    size_t c = 0;
    for (; c + 4 <= n; c += 4) {
        quad *const s = (quad *)(sum + c);
        const quad f = __builtin_convertvector(*(const quad32 *)(x + c), quad);
        *s = keep * *s + by * f;
    }
    for (; c < n; c++) sum[c] = keep * sum[c] + by * (double)x[c];
}

#if defined(__x86_64__)
/* The same sums: products and additions are not fused. */
__attribute__((target("avx2"))) void sums_add_wide(double *sum, double keep, double by,
                                                   const float *x, size_t n)
{
    add_f32(sum, keep, by, x, n);
}

bool sums_wide(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
void sums_add_wide(double *sum, double keep, double by, const float *x, size_t n)
{
    add_f32(sum, keep, by, x, n);
}

bool sums_wide(void)
{
    return false;
}
#endif

void sums_add(double *sum, double keep, double by, pare_dtype t, const void *x, size_t n)
{
    if (t == PARE_F32) {
        if (sums_wide())
            sums_add_wide(sum, keep, by, x, n);
        else
            add_f32(sum, keep, by, x, n);
        return;
    }
    const double *const v = x;
    for (size_t c = 0; c < n; c++) sum[c] = keep * sum[c] + by * v[c];
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
    const size_t dv = h->job.dv, size = pare_dtype_size(r->caps.dtype);
    for (size_t i = first; i < end; i++) {
        char *const y = (char *)h->job.y + i * h->job.ldy * size;
        if (h->job.lse) num_put(r->caps.dtype, h->job.lse, i, h->top[i] + log(h->den[i]));
        const double by = h->den[i] > 0 ? 1 / h->den[i] : 0, *const num = h->num + i * dv;
        for (size_t c = 0; c < dv; c++) {
            if (r->caps.dtype == PARE_F32)
                ((float *)(void *)y)[c] = (float)(num[c] * by);
            else
                ((double *)(void *)y)[c] = num[c] / (h->den[i] > 0 ? h->den[i] : 1);
        }
    }
}

void sums_write(run *r)
{
    run_rows(r, write_stripe, r);
}
