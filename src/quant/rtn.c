/* rtn.c - round to nearest, with the scale of each group chosen by its weighted square error.
 *
 * A group of weights w with worth h becomes d q + m. For a range of integers [least, most] several
 * first scales are tried, from one that reaches the largest weight to one that cuts it off. With
 * the integers of each, the best d (and m) in the least-squares sense follow,
 *
 *     d = sum h w q / sum h q^2            symmetric; affine: the line through the points (q, w)
 *
 * are rounded to f16, and w is rounded again. What counts is the error after that. */
#include "base/array.h"
#include "encode.h"
#include <math.h>

typedef struct group {
    const float *w;
    const double *worth;
    size_t n;
    const group_range *r;
} group;

static float rounded_scale(double v, const group_range *r)
{
    return r->wide ? (float)v : pare_f16_to_f32(pare_f16_of(v));
}

#define ROUND 0x1.8p52 /* what a double is rounded to an integer by, ties to even */

int nearest_code(double w, group_scale s, const group_range *r)
{
    if (s.scale == 0) return r->least > 0 || r->most < 0 ? r->least : 0;
    const double q = (w - (double)s.offset) / (double)s.scale;
    if (q <= r->least) return r->least;
    if (q >= r->most) return r->most;
    return (int)(q + ROUND - ROUND);
}

static double worth_of(const group *g, size_t i)
{
    return g->worth ? g->worth[i] : 1;
}

static double error_of(const group *g, group_scale s)
{
    double sum = 0;
    for (size_t i = 0; i < g->n; i++) {
        const double w = (double)g->w[i];
        const double e = w - (double)s.scale * nearest_code(w, s, g->r) - (double)s.offset;
        sum += worth_of(g, i) * e * e;
    }
    return sum;
}

/* The best scale for the integers that `s` leads to. */
static group_scale refit(const group *g, group_scale s)
{
    double h = 0, hq = 0, hw = 0, hqq = 0, hqw = 0;
    for (size_t i = 0; i < g->n; i++) {
        const double w = (double)g->w[i], q = nearest_code(w, s, g->r), v = worth_of(g, i);
        h += v;
        hq += v * q;
        hw += v * w;
        hqq += v * q * q;
        hqw += v * q * w;
    }
    if (!g->r->affine) return hqq > 0 ? (group_scale){rounded_scale(hqw / hqq, g->r), 0} : s;
    const double spread = h * hqq - hq * hq;
    if (!(spread > 0)) return s;
    const float d = rounded_scale((h * hqw - hq * hw) / spread, g->r);
    return (group_scale){d, rounded_scale((hw - (double)d * hq) / h, g->r)};
}

typedef struct best {
    group_scale s;
    double error;
} best;

static void try_scale(best *b, const group *g, double scale, double offset)
{
    const group_scale first = {rounded_scale(scale, g->r), rounded_scale(offset, g->r)};
    const group_scale s[2] = {first, refit(g, first)};
    for (int k = 0; k < 2; k++) {
        const double e = error_of(g, s[k]);
        if (!(e < b->error)) continue;
        b->s = s[k];
        b->error = e;
    }
}

enum { STEPS_OUT = 3, STEPS_IN = 12 };
#define STEP 0.06 /* of the scale that reaches the largest weight */

group_scale best_scale(const float *w, const double *worth, size_t n, const group_range *r)
{
    const group g = {w, worth, n, r};
    double low = (double)w[0], high = low;
    for (size_t i = 1; i < n; i++) {
        low = fmin(low, (double)w[i]);
        high = fmax(high, (double)w[i]);
    }
    best b = {{0, r->affine ? rounded_scale(high, r) : 0}, INFINITY};
    if (low == high && (r->affine || low == 0)) {
        if (r->affine) return b.s;
        return (group_scale){0, 0};
    }
    const double levels = (double)(r->most - r->least);
    for (int k = -STEPS_OUT; k <= STEPS_IN; k++) {
        const double part = 1 - STEP * k;
        if (part < 0.3 || (k > 2 && levels > 100)) break; /* of many levels none is worth a cut */
        if (r->affine) {
            const double d = part * (high - low) / levels, middle = (high + low) / 2;
            try_scale(&b, &g, d, middle - d * (r->most + r->least) / 2.0);
            continue;
        }
        /* The side that has one integer more may take either end. */
        const double end = -low > high ? low : high;
        try_scale(&b, &g, part * end / r->least, 0);
        try_scale(&b, &g, part * end / r->most, 0);
    }
    return b.s;
}

/* ---- matrices -------------------------------------------------------------------------------- */

typedef struct sweep {
    quant_groups *to;
    const quant_job *job;
    const group_range *r;
    const double *worth;
} sweep;

static void scale_row(void *self, size_t i)
{
    const sweep *const s = self;
    const quant_job *const job = s->job;
    for (size_t g = 0; g < s->to->groups; g++) {
        const size_t from = g * job->group, left = job->cols - from;
        const group_scale scale =
            best_scale(job->w + i * job->cols + from, s->worth ? s->worth + from : NULL,
                       left < job->group ? left : job->group, s->r);
        s->to->scale[i * s->to->groups + g] = scale.scale;
        if (s->to->offset) s->to->offset[i * s->to->groups + g] = scale.offset;
    }
}

void quant_scales(quant_groups *to, const quant_job *job, const group_range *r, const double *worth)
{
    sweep s = {to, job, r, worth};
    pare_parallel(job->exec, job->rows, scale_row, &s);
}

static void round_row(void *self, size_t i)
{
    const sweep *const s = self;
    const quant_job *const job = s->job;
    for (size_t j = 0; j < job->cols; j++) {
        const size_t at = i * s->to->groups + j / job->group;
        const group_scale scale = {s->to->scale[at], s->to->offset ? s->to->offset[at] : 0};
        s->to->q[i * job->cols + j] =
            (int8_t)nearest_code((double)job->w[i * job->cols + j], scale, s->r);
    }
}

pare_status quant_rtn(quant_groups *to, const quant_job *job, const group_range *r,
                      pare_arena *scratch, pare_err *err)
{
    double *worth = NULL;
    if (job->moments) {
        worth = pare_alloc(scratch, job->cols, sizeof *worth);
        if (!worth) return pare_no_memory(err);
        for (size_t j = 0; j < job->cols; j++) worth[j] = job->moments->v[j * job->moments->ld + j];
    }
    quant_scales(to, job, r, worth);
    sweep s = {to, job, r, worth};
    pare_parallel(job->exec, job->rows, round_row, &s);
    return pare_stopped(job->exec, err);
}
