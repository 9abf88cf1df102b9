/* probe_cuts.c - what each cut in width would cost: every method at a few widths is made, run in
 * f64 beside the model, and thrown away. */
#include "base/support.h"
#include "plan_directions.h"
#include "probe.h"
#include <math.h>
#include <string.h>

/* Outputs of one model on all inputs. */
typedef struct outputs {
    double *y;
    size_t n;
} outputs;

static pare_status run_model(outputs *out, pare_arena *a, const pare_model *m,
                             const pare_inputs *in, const pare_exec *exec, pare_err *err)
{
    const pare_exec silent = pare_exec_silent(exec);
    const size_t cols = pare_model_outputs(m);
    pare_status st = PARE_OK;
    out->n = 0;
    for (size_t i = 0; i < in->n; i++) out->n += pare_output_rows(m, &in->in[i]) * cols;
    out->y = pare_alloc(a, out->n ? out->n : 1, sizeof *out->y);
    if (!out->y) return pare_no_memory(err);
    double *y = out->y;
    for (size_t i = 0; !st && i < in->n; i++) {
        st = pare_forward_f64(y, m, &in->in[i], NULL, &silent, err);
        y += pare_output_rows(m, &in->in[i]) * cols;
    }
    return st;
}

/* The metric that the labels allow and its name; nan without labels. */
static pare_status score_outputs(double *out, const char **name, pare_arena *a, const outputs *y,
                                 const pare_model *m, const pare_dataset *d, const pare_inputs *in,
                                 pare_err *err)
{
    const size_t cols = pare_model_outputs(m);
    pare_metric *metric = NULL;
    pare_scores s;
    bool labeled = false;
    *out = NAN;
    *name = NULL;
    for (size_t i = 0; !labeled && i < in->n; i++)
        for (size_t r = 0; !labeled && r < pare_output_rows(m, &in->in[i]); r++)
            labeled = d->target[i][r] >= 0;
    if (!labeled) return PARE_OK;
    float *f = pare_alloc(a, y->n ? y->n : 1, sizeof *f);
    if (!f) return pare_no_memory(err);
    for (size_t i = 0; i < y->n; i++) f[i] = (float)y->y[i];
    pare_status st = pare_metric_new(&metric, a, cols, err);
    for (size_t i = 0; !st && i < in->n; i++) {
        const size_t rows = pare_output_rows(m, &in->in[i]);
        st = pare_metric_add(metric, f, d->target[i], rows, err);
        f += rows * cols;
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
    outputs y = {0};
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? run_model(&y, a, m, in, exec, err) : pare_no_memory(err);
    if (!st) p->output = 0;
    for (size_t i = 0; !st && i < y.n; i++) p->output = fmax(p->output, fabs(y.y[i]));
    if (!st) st = score_outputs(&p->metric_before, &p->metric, a, &y, m, data, in, err);
    pare_arena_free(a);
    return st;
}

pare_status probe_metric(double *out, const pare_model *m, const pare_dataset *data,
                         const pare_inputs *in, const pare_exec *exec, pare_err *err)
{
    outputs y = {0};
    const char *name;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? run_model(&y, a, m, in, exec, err) : pare_no_memory(err);
    if (!st) st = score_outputs(out, &name, a, &y, m, data, in, err);
    pare_arena_free(a);
    return st;
}

/* ---- one cut -------------------------------------------------------------------------------- */

typedef struct trials {
    pare_cut_cost *cuts;
    const pare_model *m;
    const pare_dataset *data;
    const pare_inputs *in;
    const pare_probe_opts *o;
    const pare_exec *exec; /* one thread: the cuts themselves run in parallel */
    outputs before;
    pare_err *err; /* of each cut */
} trials;

/* Methods that cut queries and keys, not the residual stream. */
static bool cuts_scores(pare_width_method m)
{
    return m == PARE_WIDTH_JL || m == PARE_WIDTH_QK;
}

static void try_cut(void *ctx, size_t i)
{
    const trials *const t = ctx;
    pare_cut_cost *const c = &t->cuts[i];
    pare_err *const err = &t->err[i];
    pare_width_opts w = PARE_WIDTH_OPTS_DEFAULT;
    pare_model *small = NULL;
    pare_width_report r = {0};
    w.method = c->method;
    w.trials = t->o->trials;
    w.seed = t->o->seed;
    *(cuts_scores(c->method) ? &w.qk_dim : &w.dim) = c->dim;
    if (c->method == PARE_WIDTH_LEVERAGE) w.ffn_dim = c->dim;
    c->largest = c->rms = c->metric = NAN;
    err->code = pare_width(&small, &r, t->m, t->in, &w, t->exec, err);
    if (err->code) return;
    c->stream = r.dim;
    c->qk = r.qk_dim;
    c->ffn = r.ffn_dim;
    c->parameters = pare_model_size(small, 1, 1).parameters;
    outputs y = {0};
    const char *name;
    double square = 0;
    pare_arena *const a = pare_arena_new();
    err->code = a ? run_model(&y, a, small, t->in, t->exec, err) : pare_no_memory(err);
    c->largest = 0;
    for (size_t k = 0; !err->code && k < y.n; k++) {
        const double off = fabs(y.y[k] - t->before.y[k]);
        if (!(off <= c->largest)) c->largest = off; /* a nan is not small */
        square += off * off;
    }
    c->rms = sqrt(square / (double)(y.n ? y.n : 1));
    if (!err->code) err->code = score_outputs(&c->metric, &name, a, &y, small, t->data, t->in, err);
    pare_arena_free(a);
    pare_model_free(small);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* The rows of the table, method by method, widest first. Without dims: a quarter, an eighth, a
 * sixteenth; models that the theorems do not cover tolerate less: three quarters, a half, a
 * quarter. */
static pare_status list_cuts(pare_probe *p, const pare_model *m, const pare_probe_opts *o,
                             pare_err *err)
{
    enum { WIDTHS = 3 };
    const size_t n = o->dims ? o->ndims : WIDTHS;
    size_t widest_stream = 0, widest_qk = 0;
    for (size_t b = 0; b <= m->nblocks; b++) {
        const size_t d = pare_model_width(m, b);
        if (d > widest_stream) widest_stream = d;
        for (size_t h = 0; b < m->nblocks && h < m->blocks[b].attn.nheads; h++)
            if (m->blocks[b].attn.heads[h].dk > widest_qk)
                widest_qk = m->blocks[b].attn.heads[h].dk;
    }
    p->cuts = pare_alloc(p->arena, PARE_WIDTH_METHODS * (n + 1), sizeof *p->cuts);
    if (!p->cuts) return pare_no_memory(err);
    for (pare_width_method method = 0; method < PARE_WIDTH_METHODS; method++) {
        const size_t most = cuts_scores(method) ? widest_qk : widest_stream;
        if (method == PARE_WIDTH_EXACT) {
            p->cuts[p->ncuts++] = (pare_cut_cost){.method = method};
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            const size_t d = o->dims              ? o->dims[i]
                             : p->has_width_facts ? most >> (2 + i)
                                                  : most * (3 - i) / 4;
            if (d > 0 && d < most)
                p->cuts[p->ncuts++] = (pare_cut_cost){.method = method, .dim = d};
        }
    }
    return PARE_OK;
}

pare_status probe_cuts(pare_probe *p, const pare_model *m, const pare_dataset *data,
                       const pare_inputs *in, const pare_probe_opts *o, const pare_exec *exec,
                       pare_err *err)
{
    pare_exec one = pare_exec_silent(exec);
    one.threads = 1;
    trials t = {.m = m, .data = data, .in = in, .o = o, .exec = &one};
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? run_model(&t.before, a, m, in, exec, err) : pare_no_memory(err);
    if (!st) st = list_cuts(p, m, o, err);
    pare_err *const why = st ? NULL : pare_alloc(a, p->ncuts ? p->ncuts : 1, sizeof *why);
    if (!st && !why) st = pare_no_memory(err);
    /* A few at a time, so that there is something to show. */
    const size_t n = p->ncuts, some = exec && exec->threads > 1 ? 2 * (size_t)exec->threads : 1;
    for (size_t at = 0; !st && at < n; at += some) {
        t.cuts = p->cuts + at;
        t.err = why + at;
        st = pare_parallel_until(exec, n - at < some ? n - at : some, try_cut, &t, err);
        if (!st) st = pare_progress(exec, "try cuts", at + some < n ? at + some : n, n, err);
    }
    /* A cut that cannot be made is a line of the table, not a failure. Rows that are refused for
     * the same reason share the string. */
    for (size_t i = 0; !st && i < n; i++) {
        const char *const last = i > 0 ? p->cuts[i - 1].refused : NULL;
        if (why[i].code == PARE_OK) continue;
        if (!plan_refused(why[i].code)) {
            st = pare_fail(err, why[i].code, "%s", why[i].msg);
            break;
        }
        const bool same = last && strcmp(last, why[i].msg) == 0;
        p->cuts[i].refused = same ? last : pare_strdup(p->arena, why[i].msg);
        if (!p->cuts[i].refused) st = pare_no_memory(err);
    }
    pare_arena_free(a);
    return st;
}
