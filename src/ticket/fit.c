/* fit.c - shared by all ways to fit a matrix: targets, the residual from the masks, transposition.
  */
#include "model/source.h"
#include "linalg/matrix.h"
#include "fit.h"
#include <math.h>

pare_status fit_result_new(fit_result *out, pare_arena *a, const fit_problem *p, pare_err *err)
{
    *out = (fit_result){.ma = pare_bits_new(a, p->a, p->n),
                        .mb = pare_bits_new(a, p->n, p->b),
                        .own = pare_alloc(a, p->n + 1, sizeof *out->own),
                        .donor = PARE_NO_COLUMN};
    if (!out->ma.v || !out->mb.v || !out->own) return pare_no_memory(err);
    for (size_t k = 0; k < p->n; k++) out->own[k] = PARE_NO_COLUMN;
    return PARE_OK;
}

const int32_t *fit_draw(pare_arena *a, uint64_t seed, uint64_t stream, size_t count)
{
    int32_t *const w = pare_alloc(a, count + 1, sizeof *w);
    if (w) pare_source_weights(w, seed, stream, 0, count);
    return w;
}

int fit_first_exponent(double largest, int above)
{
    return (int)fmax(-64, fmin(64, ceil(log2(largest)) + above));
}

pare_status fit_check(const fit_problem *p, pare_err *err)
{
    if (p->n < p->b)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ticket of %zu x %zu needs at least %zu hidden units, has %zu", p->a,
                         p->b, p->b, p->n);
    for (size_t i = 0; i < p->a; i++)
        for (size_t j = 0; j < p->b; j++) {
            const double w = pare_row(&p->w, i)[j], t = w / p->scale;
            if (!isfinite(w))
                return pare_fail(err, PARE_ERR_NONFINITE, "entry (%zu, %zu) is %g", i, j, w);
            if (!(fabs(t) < 2048))
                return pare_fail(err, PARE_ERR_INPUT,
                                 "a ticket's target entry (%zu, %zu) is %g, %g of its scale: the "
                                 "limit is 2048; a larger scale is needed",
                                 i, j, w, t);
        }
    return PARE_OK;
}

pare_status fit_targets(int64_t **out, pare_arena *a, const fit_problem *p, pare_err *err)
{
    const pare_status st = fit_check(p, err);
    if (st) return st;
    *out = pare_alloc(a, p->a * p->b + 1, sizeof **out);
    if (!*out) return pare_no_memory(err);
    for (size_t i = 0; i < p->a; i++)
        for (size_t j = 0; j < p->b; j++)
            (*out)[i * p->b + j] = llrint(pare_row(&p->w, i)[j] / p->scale / PARE_SOURCE_UNIT);
    return PARE_OK;
}

void fit_put_unit(fit_result *r, const fit_problem *p, size_t k, size_t j, size_t c,
                  const uint64_t *mask, size_t words)
{
    pare_bit_set(&r->mb, k, j);
    r->own[k] = (uint32_t)j;
    for (size_t i = 0; i < p->a; i++)
        if (mask[(j * p->a + i) * words + c / 64] >> (c % 64) & 1) pare_bit_set(&r->ma, i, k);
}

void fit_put_blocks(fit_result *r, const fit_problem *p, size_t items, const uint64_t *mask,
                    size_t words)
{
    for (size_t j = 0; j < p->b; j++)
        for (size_t c = 0; c < items; c++) fit_put_unit(r, p, j * items + c, j, c, mask, words);
}

typedef struct residual_job {
    const fit_problem *p;
    fit_result *r;
    uint32_t *units; /* b x n: a buffer for the units that serve a column */
} residual_job;

static void residual_column(void *ctx, size_t j)
{
    const residual_job *const job = ctx;
    const fit_problem *const p = job->p;
    uint32_t *const unit = job->units + j * p->n;
    size_t count = 0;
    for (size_t k = 0; k < p->n; k++)
        if (pare_bit(&job->r->mb, k, j)) unit[count++] = (uint32_t)k;
    for (size_t i = 0; i < p->a; i++) {
        int64_t sum = 0;
        for (size_t c = 0; c < count; c++)
            if (pare_bit(&job->r->ma, i, unit[c])) sum += fit_item(p, i, unit[c], j);
        /* an exact integer as two doubles: the difference from W is rounded where it is small */
        const double target = pare_row(&p->w, i)[j] / p->scale / PARE_SOURCE_UNIT;
        const double high = (double)sum, low = (double)(sum - (int64_t)high);
        const double difference = (target - high) - low;
        pare_row_mut(&job->r->e, i)[j] = difference * PARE_SOURCE_UNIT * p->scale;
    }
}

pare_status fit_residual(fit_result *r, pare_arena *a, const fit_problem *p, const pare_exec *exec,
                         pare_err *err)
{
    r->e = pare_mat_new(a, p->a, p->b);
    const pare_mark mark = pare_arena_mark(a);
    residual_job job = {p, r, pare_alloc(a, p->b * p->n + 1, sizeof *job.units)};
    if (!r->e.v || !job.units) return pare_no_memory(err);
    pare_parallel(exec, p->b, residual_column, &job);
    pare_arena_reset(a, mark);
    return PARE_OK;
}

pare_mat fit_transposed_mat(pare_arena *a, const pare_mat *m)
{
    pare_mat t = pare_mat_new(a, m->cols, m->rows);
    for (size_t i = 0; t.v && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(&t, j)[i] = pare_row(m, i)[j];
    return t;
}

static const int32_t *transposed_integers(pare_arena *a, const int32_t *m, size_t rows, size_t cols)
{
    int32_t *const t = pare_alloc(a, rows * cols + 1, sizeof *t);
    for (size_t i = 0; t && i < rows; i++)
        for (size_t j = 0; j < cols; j++) t[j * rows + i] = m[i * cols + j];
    return t;
}

pare_status fit_transpose(fit_problem *out, pare_arena *a, const fit_problem *p, pare_err *err)
{
    *out = (fit_problem){.a = p->b, .b = p->a, .n = p->n, .scale = p->scale};
    out->w = fit_transposed_mat(a, &p->w);
    out->A = transposed_integers(a, p->B, p->n, p->b);
    out->B = transposed_integers(a, p->A, p->a, p->n);
    if (!out->w.v || !out->A || !out->B) return pare_no_memory(err);
    return PARE_OK;
}

static pare_bits bits_transposed(pare_arena *a, const pare_bits *m)
{
    pare_bits t = pare_bits_new(a, m->cols, m->rows);
    for (size_t i = 0; t.v && i < m->rows; i++)
        for (size_t k = 0; k < m->cols; k++)
            if (pare_bit(m, i, k)) pare_bit_set(&t, k, i);
    return t;
}

pare_status fit_transpose_back(fit_result *out, pare_arena *a, const fit_result *r, pare_err *err)
{
    out->own = r->own; /* of the transposed problem: it has no other form */
    out->donor = r->donor;
    out->ma = bits_transposed(a, &r->mb);
    out->mb = bits_transposed(a, &r->ma);
    out->e = fit_transposed_mat(a, &r->e);
    if (!out->ma.v || !out->mb.v || !out->e.v) return pare_no_memory(err);
    return PARE_OK;
}
