/* What each cut would cost: every method at a few widths is made, run in f64 beside the model, and
 * thrown away. */
#include "base/support.h"
#include "plan_directions.h"
#include "probe.h"
#include <math.h>
#include <string.h>

/* Outputs of one model on all inputs, with the metric that the labels allow. */
typedef struct answers {
    double *y;
    size_t n;
} answers;

static size_t count_outputs(const pare_model *m, const pare_inputs *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->n; i++) n += pare_output_rows(m, &in->in[i]) * pare_model_outputs(m);
    return n;
}

static pare_status answer(answers *out, pare_arena *a, const pare_model *m, const pare_inputs *in,
                          const pare_exec *exec, pare_err *err)
{
    const pare_exec silent = pare_silent(exec);
    pare_status st = PARE_OK;
    out->n = count_outputs(m, in);
    out->y = pare_alloc(a, out->n ? out->n : 1, sizeof *out->y);
    if (!out->y) return pare_no_memory(err);
    double *at = out->y;
    for (size_t i = 0; !st && i < in->n; i++) {
        st = pare_forward_f64(at, m, &in->in[i], NULL, &silent, err);
        at += pare_output_rows(m, &in->in[i]) * pare_model_outputs(m);
    }
    return st;
}

static bool labelled(const pare_model *m, const pare_dataset *d, const pare_inputs *in)
{
    for (size_t i = 0; i < in->n; i++)
        for (size_t r = 0; r < pare_output_rows(m, &in->in[i]); r++)
            if (d->target[i][r] >= 0) return true;
    return false;
}

/* nan without labels. *name: of the metric. */
static pare_status mark(double *out, const char **name, pare_arena *a, const answers *y,
                        const pare_model *m, const pare_dataset *d, const pare_inputs *in,
                        pare_err *err)
{
    const size_t cols = pare_model_outputs(m);
    pare_metric *metric = NULL;
    pare_scores s;
    size_t done = 0;
    *out = NAN;
    *name = NULL;
    if (!labelled(m, d, in)) return PARE_OK;
    float *const f = pare_alloc(a, y->n ? y->n : 1, sizeof *f);
    if (!f) return pare_no_memory(err);
    for (size_t i = 0; i < y->n; i++) f[i] = (float)y->y[i];
    pare_status st = pare_metric_new(&metric, a, cols, err);
    for (size_t i = 0; !st && i < in->n; i++) {
        const size_t rows = pare_output_rows(m, &in->in[i]);
        st = pare_metric_add(metric, f + done, d->target[i], rows, err);
        done += rows * cols;
    }
    if (!st) st = pare_metric_scores(&s, metric, err);
    if (st) return st;
    const bool auc = d->task == PARE_TASK_NODES && !isnan(s.auc);
    *name = d->task == PARE_TASK_TEXT ? "nats" : auc ? "auc" : "accuracy";
    *out = d->task == PARE_TASK_TEXT ? s.nats : auc ? s.auc : s.accuracy;
    return PARE_OK;
}

pare_status probe_outputs(pare_probe *p, const pare_model *m, const pare_dataset *data,
                          const pare_inputs *in, const pare_exec *exec, pare_err *err)
{
    answers y = {0};
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? answer(&y, a, m, in, exec, err) : pare_no_memory(err);
    if (!st) p->output = 0;
    for (size_t i = 0; !st && i < y.n; i++) p->output = fmax(p->output, fabs(y.y[i]));
    if (!st) st = mark(&p->metric_before, &p->metric, a, &y, m, data, in, err);
    pare_arena_free(a);
    return st;
}

pare_status probe_metric(double *out, const pare_model *m, const pare_dataset *data,
                         const pare_inputs *in, const pare_exec *exec, pare_err *err)
{
    answers y = {0};
    const char *name;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? answer(&y, a, m, in, exec, err) : pare_no_memory(err);
    if (!st) st = mark(out, &name, a, &y, m, data, in, err);
    pare_arena_free(a);
    return st;
}

/* ---- one cut -------------------------------------------------------------------------------- */

typedef struct trial {
    pare_probe *p;
    const pare_model *m;
    const pare_dataset *data;
    const pare_inputs *in;
    const pare_probe_opts *o;
    const pare_exec *exec; /* one thread: the cuts themselves are shared out */
    answers before;
    pare_err *err; /* of each cut */
} trial;

static pare_status compare(pare_cut_cost *c, const trial *t, const pare_model *small, pare_err *err)
{
    answers y = {0};
    const char *name;
    double square = 0;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? answer(&y, a, small, t->in, t->exec, err) : pare_no_memory(err);
    c->largest = 0;
    for (size_t i = 0; !st && i < y.n; i++) {
        const double off = fabs(y.y[i] - t->before.y[i]);
        if (!(off <= c->largest)) c->largest = off; /* a nan is not small */
        square += off * off;
    }
    c->rms = sqrt(square / (double)(y.n ? y.n : 1));
    if (!st) st = mark(&c->metric, &name, a, &y, small, t->data, t->in, err);
    pare_arena_free(a);
    return st;
}

static bool of_scores(pare_width_method m)
{
    return m == PARE_WIDTH_JL || m == PARE_WIDTH_QK;
}

static pare_width_opts asked(pare_width_method method, size_t dim, const pare_probe_opts *o)
{
    pare_width_opts w = PARE_WIDTH_OPTS_DEFAULT;
    w.method = method;
    w.trials = o->trials;
    w.seed = o->seed;
    *(of_scores(method) ? &w.qk_dim : &w.dim) = dim;
    if (method == PARE_WIDTH_LEVERAGE) w.ffn_dim = dim;
    return w;
}

static void try_cut(void *ctx, size_t i)
{
    trial *const t = ctx;
    pare_cut_cost *const c = &t->p->cuts[i];
    const pare_width_opts w = asked(c->method, c->dim, t->o);
    pare_err *const err = &t->err[i];
    pare_model *small = NULL;
    pare_width_report r = {0};
    c->largest = c->rms = c->metric = NAN;
    err->code = pare_width(&small, &r, t->m, t->in, &w, t->exec, err);
    if (err->code) return;
    c->stream = r.dim;
    c->qk = r.qk_dim;
    c->ffn = r.ffn_dim;
    c->parameters = pare_model_size(small, 1, 1).parameters;
    err->code = compare(c, t, small, err);
    pare_model_free(small);
}

/* ---- the table ------------------------------------------------------------------------------ */

static size_t widest_of(const pare_model *m, bool scores)
{
    size_t most = 0;
    for (size_t b = 0; b <= m->nblocks; b++) {
        const size_t d = pare_model_width(m, b);
        if (!scores && d > most) most = d;
        for (size_t h = 0; scores && b < m->nblocks && h < m->blocks[b].attn.nheads; h++)
            if (m->blocks[b].attn.heads[h].dk > most) most = m->blocks[b].attn.heads[h].dk;
    }
    return most;
}

static pare_cut_cost *add(pare_probe *p, pare_width_method method, size_t dim)
{
    pare_cut_cost *const c = &p->cuts[p->ncuts++];
    *c = (pare_cut_cost){.method = method, .dim = dim};
    return c;
}

/* A quarter, an eighth, a sixteenth; models that the theorems do not cover bear less: three
 * quarters, a half, a quarter. */
static size_t usual_width(const pare_probe *p, size_t most, size_t i)
{
    return p->has_survey ? most >> (2 + i) : most * (3 - i) / 4;
}

/* The rows of the table, method by method, widest first. */
static pare_status list_cuts(pare_probe *p, const pare_model *m, const pare_probe_opts *o,
                             pare_err *err)
{
    enum { WIDTHS = 3 };
    const size_t n = o->dims ? o->ndims : WIDTHS;
    p->cuts = pare_alloc(p->arena, PARE_WIDTH_METHODS * (n + 1), sizeof *p->cuts);
    if (!p->cuts) return pare_no_memory(err);
    for (int k = 0; k < PARE_WIDTH_METHODS; k++) {
        const pare_width_method method = (pare_width_method)k;
        const size_t most = widest_of(m, of_scores(method));
        if (method == PARE_WIDTH_EXACT) {
            (void)add(p, method, 0);
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            const size_t d = o->dims ? o->dims[i] : usual_width(p, most, i);
            if (d > 0 && d < most) (void)add(p, method, d);
        }
    }
    return PARE_OK;
}

/* A cut that cannot be made is a line of the table, not a failure. The same words are said once:
 * rows that share them share the string. */
static pare_status settle(pare_probe *p, const pare_err *of, pare_err *err)
{
    for (size_t i = 0; i < p->ncuts; i++) {
        pare_cut_cost *const c = &p->cuts[i];
        if (of[i].code == PARE_OK) continue;
        if (!plan_refused(of[i].code)) return pare_fail(err, of[i].code, "%s", of[i].msg);
        const char *const last = i > 0 ? p->cuts[i - 1].refused : NULL;
        const bool same = last && strcmp(last, of[i].msg) == 0;
        c->refused = same ? last : pare_strdup(p->arena, of[i].msg);
        if (!c->refused) return pare_no_memory(err);
    }
    return PARE_OK;
}

/* A few at a time, so that there is something to show. */
static pare_status try_all(trial *t, const pare_exec *exec, pare_err *err)
{
    pare_status st = PARE_OK;
    const size_t n = t->p->ncuts, some = exec && exec->threads > 1 ? 2 * (size_t)exec->threads : 1;
    for (size_t at = 0; !st && at < n; at += some) {
        trial now = *t;
        pare_probe part = *t->p;
        part.cuts += at;
        now.p = &part;
        now.err += at;
        st = pare_parallel_until(exec, n - at < some ? n - at : some, try_cut, &now, err);
        if (!st) st = pare_progress(exec, "try cuts", at + some < n ? at + some : n, n, err);
    }
    return st;
}

pare_status probe_cuts(pare_probe *p, const pare_model *m, const pare_dataset *data,
                       const pare_inputs *in, const pare_probe_opts *o, const pare_exec *exec,
                       pare_err *err)
{
    pare_exec one = pare_silent(exec);
    one.threads = 1;
    trial t = {.p = p, .m = m, .data = data, .in = in, .o = o, .exec = &one};
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? answer(&t.before, a, m, in, exec, err) : pare_no_memory(err);
    if (!st) st = list_cuts(p, m, o, err);
    if (!st) t.err = pare_alloc(a, p->ncuts ? p->ncuts : 1, sizeof *t.err);
    if (!st && !t.err) st = pare_no_memory(err);
    if (!st) st = try_all(&t, exec, err);
    if (!st) st = settle(p, t.err, err);
    pare_arena_free(a);
    return st;
}
