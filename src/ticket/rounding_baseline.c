/* rounding_baseline.c - the baseline: a round-to-nearest quantizer with the bytes of a ticket. */
#include "linalg/matrix.h"
#include "model/feedback.h"
#include "model/source.h"
#include "ticket_internal.h"
#include "ticket_matrix.h"
#include <math.h>
#include <string.h>

enum { SCALE_BITS = 32 }; /* one f32 for each matrix */
#define MOST_LEVELS 0x1p24

typedef struct rounder {
    const pare_ticket_report *of;
    const pare_model *in;
    pare_model *m;
    const pare_inputs *fit; /* NULL: no feedback */
    const pare_exec *exec;
    double bits; /* stored, over all matrices */
} rounder;

typedef struct grid {
    double most, step;
    pare_mat to;
} grid;

static double nearest(void *self, size_t output, size_t input, double goal, double worth)
{
    grid *const g = self;
    (void)worth;
    const double inside = fmax(-g->most, fmin(g->most, goal));
    const double v = g->most > 0 ? nearbyint((inside + g->most) / g->step) * g->step - g->most : 0;
    return pare_row_mut(&g->to, output)[input] = (float)v;
}

/* The levels nearest to w; with feedback to what it should be by then. */
static pare_status round_matrix(pare_mat *to, const rounder *r, const pare_mat *w, double levels,
                                uint64_t stream, pare_arena *a, pare_err *err)
{
    input_moments moments = {0};
    feedback f;
    pare_mat aim = *w;
    grid g = {.most = pare_mat_max_abs(w), .to = *to};
    g.step = 2 * g.most / (levels - 1);
    double *const buffer = pare_alloc(a, w->cols, sizeof *buffer);
    pare_status st = buffer ? PARE_OK : pare_no_memory(err);
    if (!st && r->fit)
        st = input_moments_of(&moments, a, r->in, r->m, stream, r->fit, r->exec, err);
    if (!st) st = feedback_of(&f, a, w->cols, &moments, err);
    if (!st && f.push.v) { /* rows are known, and not all of them zeros */
        aim = pare_mat_new(a, w->rows, w->cols);
        st = aim.v ? feedback_aim(&aim, w, &moments, a, err) : pare_no_memory(err);
    }
    for (size_t i = 0; !st && i < w->rows; i++)
        feedback_run(&f, pare_row(&aim, i), buffer, i, nearest, &g);
    return st;
}

static pare_status round_one(void *self, const char *name, pare_weight *w, bool vector,
                             pare_err *err)
{
    rounder *const r = self;
    size_t t = 0;
    (void)vector;
    while (t < r->of->n && strcmp(r->of->matrix[t].name, name) != 0) t++;
    if (!pare_has(w) || t == r->of->n) return PARE_OK;
    const size_t count = w->rows * w->cols;
    /* levels at equal distances; their number need not be a power of two */
    const double bits = (8 * (double)r->of->matrix[t].bytes - SCALE_BITS) / (double)count;
    const double levels = fmin(fmax(floor(exp2(bits)), 2), MOST_LEVELS);
    pare_arena *const scratch = pare_arena_new();
    float *const to = pare_alloc(r->m->arena, count, sizeof *to);
    if (!scratch || !to) {
        pare_arena_free(scratch);
        return pare_no_memory(err);
    }
    pare_mat wide = pare_mat_new(scratch, w->rows, w->cols),
             levelled = pare_mat_new(scratch, w->rows, w->cols);
    pare_status st = wide.v && levelled.v ? PARE_OK : pare_no_memory(err);
    if (!st) pare_weight_widen(&wide, w, 0, 0);
    if (!st) st = round_matrix(&levelled, r, &wide, levels, pare_source_of(name), scratch, err);
    for (size_t i = 0; !st && i < count; i++) to[i] = (float)levelled.v[i];
    pare_arena_free(scratch);
    if (st) return st;
    r->bits += (double)count * log2(levels) + SCALE_BITS;
    *w = (pare_weight){PARE_F32, w->rows, w->cols, to};
    return PARE_OK;
}

pare_status pare_ticket_rounded(pare_model **out, double *bits, const pare_model *in,
                                const pare_ticket_report *of, const pare_inputs *fit,
                                const pare_exec *exec, pare_err *err)
{
    pare_model *m = NULL;
    pare_status st = pare_model_clone(&m, in, err);
    rounder r = {.of = of, .in = in, .m = m, .fit = fit, .exec = exec};
    if (!st) st = pare_model_each_weight(m, round_one, &r, err);
    if (!st) st = pare_model_check(m, err);
    if (st) {
        pare_model_free(m);
        m = NULL;
    }
    *bits = of->weights ? r.bits / (double)of->weights : 0;
    *out = m;
    return st;
}
