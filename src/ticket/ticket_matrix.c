/* ticket_matrix.c - one matrix as a ticket: the side of its blocks, the scale, the fit, the
 * bytes. */
#include "linalg/matrix.h"
#include "ticket_matrix.h"
#include "fit_feedback.h"
#include <math.h>
#include <string.h>

enum {
    SPARE = 16, /* units beyond `bits` for each block: a few columns must not depend on luck */
    FRAME = 64, /* bytes of a ticket beside its masks, where all units are in blocks */
    /* scales are tried on a few rows and columns, by a shorter search */
    SAMPLE_ROWS = 1024,
    SAMPLE_COLUMNS = 8,
    SAMPLE_DONORS = 4
};
#define LEAST_RATE 0.5

static pare_status fit_by(fit_result *r, pare_arena *a, const fit_problem *p, bool brief,
                          const pare_ticket_opts *o, const pare_exec *exec, pare_err *err)
{
    const fit_best_opts best = {
        .seed = o->seed, .donors = brief ? SAMPLE_DONORS : 0, .no_trade = brief};
    if (o->method == PARE_TICKET_BEST) return fit_best(r, a, p, &best, exec, err);
    return p->inputs ? fit_relu_block(r, a, p, exec, err) : fit_block(r, a, p, exec, err);
}

/* ---- the scale ------------------------------------------------------------------------------- */

/* Columns at equal distances, and the one with the largest entry: entries beyond all sums must
 * be in the sample. */
static pare_mat sample_of(pare_arena *a, const pare_mat *w)
{
    const size_t rows = w->rows < SAMPLE_ROWS ? w->rows : SAMPLE_ROWS;
    const size_t cols = w->cols < SAMPLE_COLUMNS ? w->cols : SAMPLE_COLUMNS;
    double most = -1;
    size_t largest = 0;
    for (size_t i = 0; i < w->rows; i++)
        for (size_t j = 0; j < w->cols; j++)
            if (fabs(pare_row(w, i)[j]) > most) {
                most = fabs(pare_row(w, i)[j]);
                largest = j;
            }
    pare_mat s = pare_mat_new(a, rows, cols);
    for (size_t j = 0; s.v && j < cols; j++) {
        const size_t from = j || cols == w->cols ? j * w->cols / cols : largest;
        for (size_t i = 0; i < rows; i++)
            pare_row_mut(&s, i)[j] = pare_row(w, i * w->rows / rows)[from];
    }
    return s;
}

/* Some columns with a source of their own; a matrix no larger than that is its own sample, since
 * few units have luck of their own. */
static pare_status make_sample(fit_problem *s, pare_arena *a, const fit_problem *p,
                               const pare_ticket_opts *o, pare_err *err)
{
    *s = *p;
    if (p->a <= SAMPLE_ROWS && p->b <= SAMPLE_COLUMNS) return PARE_OK;
    *s = (fit_problem){.w = sample_of(a, &p->w)};
    if (!s->w.v) return pare_no_memory(err);
    s->a = s->w.rows;
    s->b = s->w.cols;
    s->n = p->n / p->b * s->b;
    s->A = fit_draw(a, o->seed, 2, s->a * s->n); /* streams 2 and 3 are no matrix's */
    s->B = fit_draw(a, o->seed, 3, s->n * s->b);
    return s->A && s->B ? PARE_OK : pare_no_memory(err);
}

/* The power of two with the least error on a sample, downwards from the largest entry: too small,
 * and large entries are beyond all sums; too large, and the sums are far apart. */
static pare_status choose_exponent(int *out, pare_arena *a, const fit_problem *p,
                                   const pare_ticket_opts *o, const pare_exec *exec, pare_err *err)
{
    const double largest = pare_mat_max_abs(&p->w);
    fit_problem s;
    *out = 0;
    if (!isfinite(largest) || !(largest > 0)) return PARE_OK;
    double least = INFINITY;
    int e = fit_first_exponent(largest, 0);
    pare_status st = make_sample(&s, a, p, o, err);
    for (int worse = 0; !st && worse < 2 && e >= -64; e--) {
        double error = INFINITY;
        s.scale = ldexp(1, e);
        if (pare_mat_max_abs(&s.w) / s.scale < 2048) {
            fit_result r;
            const pare_mark mark = pare_arena_mark(a);
            st = fit_by(&r, a, &s, true, o, exec, err);
            if (!st) error = 0;
            for (size_t i = 0; !st && i < r.e.rows; i++)
                for (size_t j = 0; j < r.e.cols; j++)
                    error += pare_row(&r.e, i)[j] * pare_row(&r.e, i)[j];
            pare_arena_reset(a, mark);
        }
        worse = error < least ? 0 : worse + 1;
        if (error < least) *out = e;
        least = fmin(least, error);
    }
    return st;
}

/* ---- the fit --------------------------------------------------------------------------------- */

/* The blocks are on the smaller side: n units are then n / min(rows, cols) items an entry. A unit
 * of a ReLU reads one input: there they are on that side. */
static pare_status make_problem(fit_problem *p, bool *transposed, pare_arena *a,
                                const matrix_job *job, pare_err *err)
{
    const pare_ticket_opts *const o = job->o;
    const bool signs = job->relu == PARE_RELU_SIGNS;
    *transposed = job->vector || (!job->relu && job->w.rows < job->w.cols);
    *p = (fit_problem){.w = *transposed ? fit_transposed_mat(a, &job->w) : job->w};
    if (!p->w.v) return pare_no_memory(err);
    p->a = p->w.rows;
    p->b = p->w.cols;
    p->n = o->hidden ? o->hidden : o->bits * p->b + (o->method == PARE_TICKET_BEST ? SPARE : 0);
    if (p->n < p->b)
        return pare_fail(err, PARE_ERR_INPUT,
                         "%zu x %zu needs at least %zu hidden units (one for each block), not %zu",
                         job->w.rows, job->w.cols, p->b, p->n);
    if (job->relu) p->inputs = signs ? p->b / 2 : p->b;
    p->A = fit_draw(a, o->seed, job->stream, p->a * p->n);
    p->B = fit_draw(a, o->seed, job->stream + 1, p->n * (job->relu ? p->inputs : p->b));
    if (!p->A || !p->B) return pare_no_memory(err);
    return job->relu ? fit_relu_sides(&p->B, a, p->B, p->n, p->inputs, signs, err) : PARE_OK;
}

static pare_status fit_with_feedback(fit_result *r, pare_bridge *bridge, int *exponent,
                                     pare_arena *a, fit_problem *p, const matrix_job *job,
                                     bool transposed, pare_err *err)
{
    feedback f;
    fit_feedback_opts o = {.f = &f, .aim = job->w, .columns = transposed};
    /* the stored bits of an entry, without header and checksum */
    const double frame = 8 * FRAME / (double)(job->w.rows * job->w.cols);
    const double rate = job->o->stored > 0 ? fmax(job->o->stored - frame, LEAST_RATE) : 0;
    pare_status st = feedback_of(&f, a, job->w.cols, job->moments, err);
    if (!st && f.push.v) { /* rows are known, and not all of them zeros */
        o.aim = pare_mat_new(a, job->w.rows, job->w.cols);
        st = o.aim.v ? feedback_aim(&o.aim, &job->w, job->moments, a, err) : pare_no_memory(err);
    }
    *exponent = job->o->strict ? 0 : job->o->exponent;
    if (!st) st = feedback_choose_rate(&o, exponent, a, p, rate, job->exec, err);
    if (!st) st = fit_feedback(r, a, p, &o, job->exec, err);
    *bridge = o.price > 0 ? o.bridge : (pare_bridge){0};
    return st;
}

/* Of what the file expands to, not of what the search reports. */
static void fill_report(pare_ticket_matrix *r, const matrix_job *job, const fit_problem *p,
                        const pare_weight *w, int exponent, size_t bytes)
{
    const size_t count = w->rows * w->cols;
    double sum = 0;
    *r = (pare_ticket_matrix){.name = job->name,
                              .rows = w->rows,
                              .cols = w->cols,
                              .hidden = p->n,
                              .exponent = exponent,
                              .bytes = bytes};
    for (size_t i = 0; i < count; i++) {
        const double e = pare_weight_at(w, i) - pare_row(&job->w, i / w->cols)[i % w->cols];
        r->largest = fmax(r->largest, fabs(e));
        sum += e * e;
    }
    r->rms = sqrt(sum / (double)count);
    /* the items of one sign add up to an eighth of their number, on average */
    r->reach = pare_mat_max_abs(&job->w) / ldexp((double)(p->n / p->b) / 8, exponent);
}

pare_status matrix_ticket(pare_coded *coded, pare_weight *expanded, pare_ticket_matrix *report,
                          pare_arena *a, const matrix_job *job, pare_err *err)
{
    const pare_ticket_opts *const o = job->o;
    fit_problem p;
    fit_result r;
    bool transposed = false;
    int exponent = 0;
    pare_bridge bridge = {0};
    pare_arena *const scratch = pare_arena_new();
    pare_status st =
        scratch ? make_problem(&p, &transposed, scratch, job, err) : pare_no_memory(err);
    if (!st && o->method == PARE_TICKET_FEEDBACK) {
        st = fit_with_feedback(&r, &bridge, &exponent, scratch, &p, job, transposed, err);
    } else if (!st) {
        exponent = o->strict ? 0 : o->exponent;
        if (exponent == PARE_TICKET_CHOOSE)
            st = choose_exponent(&exponent, scratch, &p, o, job->exec, err);
        p.scale = ldexp(1, exponent);
        if (!st) st = fit_by(&r, scratch, &p, false, o, job->exec, err);
    }
    if (!st) {
        const pare_factored f = {.seed = o->seed,
                                 .stream = job->stream,
                                 .rows = job->w.rows,
                                 .cols = job->w.cols,
                                 .n = p.n,
                                 .transposed = transposed,
                                 .relu = job->relu,
                                 .exponent = exponent,
                                 .own = r.own,
                                 .donor = r.donor,
                                 .ma = r.ma,
                                 .mb = r.mb,
                                 .bridge = bridge};
        st = pare_coded_factored(coded, a, &f, o->coding, err);
    }
    if (!st) st = pare_coded_expand(expanded, NULL, a, coded->data, coded->bytes, SIZE_MAX, err);
    if (!st) fill_report(report, job, &p, expanded, exponent, coded->bytes);
    pare_arena_free(scratch);
    if (st && st != PARE_ERR_MEMORY) {
        char where[160];
        snprintf(where, sizeof where, "tensor %s", job->name);
        pare_err_prefix(err, where);
    }
    return st;
}
