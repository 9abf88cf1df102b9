/* depth_trained.c - E8 and E9: a trained model. What its attention looks like, what each kind costs
 * in its place, and that the mean distance of the attention weights from simpler ones predicts what
 * is lost. */
#include "study_depth.h"
#include <pare/depth.h>
#include <math.h>
#include <string.h>

enum { FIT_TOKENS = 3200, HELDOUT_TOKENS = 1024 };

/* ---- inputs ---------------------------------------------------------------------------------- */

typedef struct split_inputs {
    pare_inputs fit, heldout;
    size_t first; /* number of look's first input */
} split_inputs;

/* How many of the inputs have so many tokens together. */
static size_t take(const pare_inputs *all, size_t tokens)
{
    size_t n = 0;
    for (size_t have = 0; n < all->n && have < tokens; n++)
        have += all->in[n].batch * all->in[n].tokens;
    return n;
}

/* Fitted to the first ones, measured on others as far as there are any. */
static split_inputs split(const setting *s)
{
    const pare_inputs *const all = &s->data->inputs;
    const size_t heldout = take(all, s->full ? 4 * HELDOUT_TOKENS : HELDOUT_TOKENS);
    const size_t fit = take(all, FIT_TOKENS);
    size_t first = all->n >= 2 * heldout ? all->n / 2 : all->n > 1 ? 1 : 0;
    if (first + heldout > all->n) first = all->n - heldout;
    const size_t less = first > 0 && fit > first ? first : fit;
    return (split_inputs){{less, all->in}, {heldout, all->in + first}, first};
}

typedef struct grader {
    const setting *s;
    const split_inputs *x;
} grader;

/* Mean cross entropy of the targets, in nats; nan: there are none. */
static pare_status nats_of(void *self, double *out, const pare_model *m, pare_err *err)
{
    const grader *const g = self;
    pare_arena *const a = pare_arena_new();
    pare_metric *metric = NULL;
    pare_scores scores = {.nats = NAN};
    const size_t cols = pare_model_outputs(m);
    pare_status st = a ? pare_metric_new(&metric, a, cols, err) : pare_no_memory(err);
    for (size_t i = 0; !st && i < g->x->heldout.n; i++) {
        const pare_input *const in = &g->x->heldout.in[i];
        const size_t rows = pare_output_rows(m, in);
        double *const y = pare_alloc(a, rows * cols + 1, sizeof *y);
        float *const f = pare_alloc(a, rows * cols + 1, sizeof *f);
        st = y && f ? pare_forward_f64(y, m, in, NULL, NULL, err) : pare_no_memory(err);
        for (size_t k = 0; !st && k < rows * cols; k++) f[k] = (float)y[k];
        if (!st) st = pare_metric_add(metric, f, g->s->data->target[g->x->first + i], rows, err);
    }
    if (!st && pare_metric_scores(&scores, metric, NULL)) scores.nats = NAN;
    *out = scores.nats;
    pare_arena_free(a);
    return st;
}

/* ---- E8 -------------------------------------------------------------------------------------- */

enum { LAYER_ROWS = 4 + PARE_DEPTH_KINDS };

/* The number of layers; of each layer means over its heads and the cost of each kind in its place;
 * of each kind its curve, lost fraction and nats (nan where there is none). */
static pare_status trained_run(trial *t)
{
    const split_inputs x = split(t->s);
    const pare_exec silent = pare_exec_silent(t->exec);
    grader g = {t->s, &x};
    const pare_replacement_costs_opts o = {.metric = nats_of, .self = &g};
    pare_attention_stats ray;
    pare_replacement_costs costs;
    pare_status st = pare_depth_attention_stats(
        &ray, t->a, t->s->trained, &(pare_input_split){.fit = &x.fit, .heldout = &x.heldout},
        &silent, t->err);
    if (!st) st = trial_progress(t, 1, 8);
    if (!st)
        st = pare_depth_replacement_costs(&costs, t->a, t->s->trained,
                                          &(pare_input_split){.fit = &x.fit, .heldout = &x.heldout},
                                          &o, &silent, t->err);
    if (st) return st;
    append_number(&t->out, (double)ray.nlayers);
    for (size_t l = 0; l < ray.nlayers; l++) {
        const pare_layer_stats *const at = &ray.layers[l];
        double range = 0, tvu = 0, tvq = 0;
        for (size_t h = at->first; h < at->first + at->nheads; h++) {
            range += ray.heads[h].range_mean / (double)at->nheads;
            tvu += ray.heads[h].tv_uniform / (double)at->nheads;
            tvq += ray.heads[h].tv_constq / (double)at->nheads;
        }
        append_numbers(t, (double[]){range, tvu, tvq, at->share}, 4);
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) append_number(&t->out, costs.kinds[l][k].loo);
    }
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
        const pare_replacement_curve *of = NULL;
        for (size_t i = 0; i < costs.ncurves; i++)
            if (costs.curves[i].kind == (pare_attn_kind)(PARE_ATTN_ZERO + k)) of = &costs.curves[i];
        for (size_t i = 0; i <= costs.nlayers; i++) {
            append_number(&t->out, of ? of->points[i].lost : NAN);
            append_number(&t->out, of ? of->points[i].metric : NAN);
        }
    }
    return trial_progress(t, 8, 8);
}

/* Our audit: nats added with one exact layer, with none; linear fits of the spec, pool. */
static const double tiny_one[PARE_DEPTH_KINDS] = {.2729, .2105, .1972, .1329,
                                                  NAN,   .0616, .0630, .0285};
static const double tiny_none[PARE_DEPTH_KINDS] = {1.2011, .8691, .7527, .3831,
                                                   NAN,    .6115, .5648, .147};

static void trained_table(table_writer *w, const numbers *part, size_t n)
{
    static const char *const what[] = {"mean logit range", "mean TV from uniform",
                                       "mean TV from one query", "|F| / |X|"};
    const size_t layers = (size_t)part[0].v[0];
    const double *const v = part[0].v + 1, *const curves = v + layers * LAYER_ROWS;
    const size_t each = 2 * (layers + 1), pool = (PARE_ATTN_POOL - PARE_ATTN_ZERO) * each;
    bool nothing = true, better = true;
    (void)n;
    begin_table(w, "E8 trained",
                "a trained model: its attention, what each kind costs in the place of one layer, "
                "and of all but some (greedy, backwards): fitted kinds cost far less than dropping",
                -3);
    for (size_t i = 0; i < layers * LAYER_ROWS; i++) {
        const size_t r = i % LAYER_ROWS;
        if (isnan(v[i])) continue;
        row_ours(w, row_text(w, "layer %zu", i / LAYER_ROWS),
                 r < 4 ? what[r]
                       : row_text(w, "%s alone: relative error", pare_depth_kind_names[r - 4]),
                 v[i]);
    }
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
        const double *const c = curves + k * each;
        double at[64], lost[64];
        if (isnan(c[0])) continue;
        for (size_t i = 0; i <= layers && i < 64; i++) {
            at[i] = (double)(layers - i);
            lost[i] = c[2 * i];
            if (k < 3 && i > 0 && !(curves[pool + 2 * i] < c[2 * i])) better = false;
        }
        if (!(fabs(c[0]) <= 1e-9)) nothing = false;
        row_curve(w, "lost, by exact layers", pare_depth_kind_names[k], at, lost,
                  layers < 63 ? layers + 1 : 64);
    }
    for (size_t k = 0; k < 2 * PARE_DEPTH_KINDS; k++) {
        const size_t kind = k % PARE_DEPTH_KINDS;
        const bool one = k < PARE_DEPTH_KINDS;
        const double *const c = curves + kind * each;
        const double reference = one ? tiny_one[kind] : tiny_none[kind];
        if (isnan(c[0])) continue;
        row_ratio(w, one ? "one exact" : "none exact",
                  row_text(w, "%s: nats added", pare_depth_kind_names[kind]),
                  w->s->tiny ? reference : NAN, c[2 * (layers - one) + 1] - c[1], 1.6);
    }
    row_holds(w, "curves", "replacing nothing loses nothing", nothing, NAN);
    row_shape(w, "curves", "pool loses less than zero, const and uniform", better, NAN);
}

const experiment trained = {.file_prefix = "trained",
                            .parts = 1,
                            .cost = 30,
                            .trained = true,
                            .run = trained_run,
                            .table = trained_table};

/* ---- E9 -------------------------------------------------------------------------------------- */

static const double scales[] = {1, .7, .5, .35, .2, .1};
enum { SCALES = 6, SCALE_ROWS = 5 };

/* The model without its head: what is compared are hidden rows. */
static pare_model hidden_of(const pare_model *m)
{
    pare_model h = *m;
    h.head = (pare_output_head){.norm = m->head.norm, .pool = m->head.pool};
    return h;
}

/* |h - h'|_F with the attention of the first layer exact and `kind` elsewhere. */
static pare_status lost_with(double *out, const compared *c, const pare_model *m,
                             const pare_inputs *fit, pare_attn_kind kind)
{
    size_t first = 0;
    pare_model *cut = NULL;
    pare_depth_report report;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    while (first < m->nblocks && m->blocks[first].attn.kind == PARE_ATTN_NONE) first++;
    o.kind = kind;
    o.layers = 1;
    o.exact = &first;
    o.nexact = 1;
    pare_status st = pare_depth(&cut, &report, m, fit, &o, NULL, c->err);
    if (!st) {
        const pare_model h = hidden_of(cut);
        st = compared_model(out, c, &h, san_distance);
    }
    pare_model_free(cut);
    return st;
}

static pare_status scaled_run(trial *t)
{
    const double scale = scales[t->part];
    const split_inputs x = split(t->s);
    pare_model *m = NULL;
    compared c;
    pare_attention_stats ray;
    double whole = NAN, uniform = NAN, constq = NAN, range = 0, tvu = 0, tvq = 0;
    pare_status st = san_scaled(&m, t->s->trained, scale, scale, t->err);
    const pare_model h = hidden_of(st ? t->s->trained : m);
    pare_model none = h; /* without attention; the constant rows bo stay */
    none.blocks = pare_alloc(t->a, h.nblocks + 1, sizeof *none.blocks);
    if (!st && !none.blocks) st = pare_no_memory(t->err);
    for (size_t b = 0; !st && b < h.nblocks; b++) {
        none.blocks[b] = h.blocks[b];
        if (h.blocks[b].attn.kind != PARE_ATTN_NONE) none.blocks[b].attn.kind = PARE_ATTN_ZERO;
    }
    if (!st) st = compared_open(&c, t->a, &h, &x.heldout, NULL, t->err);
    if (!st) st = compared_model(&whole, &c, &none, san_distance);
    if (!st) st = lost_with(&uniform, &c, m, &x.fit, PARE_ATTN_UNIFORM);
    if (!st) st = trial_progress(t, 1, 2);
    if (!st) st = lost_with(&constq, &c, m, &x.fit, PARE_ATTN_CONSTQ);
    if (!st)
        st = pare_depth_attention_stats(
            &ray, t->a, m, &(pare_input_split){.fit = &x.fit, .heldout = &x.heldout}, NULL, t->err);
    for (size_t i = 0; !st && i < ray.nheads; i++) {
        range += ray.heads[i].range_mean / (double)ray.nheads;
        tvu += ray.heads[i].tv_uniform / (double)ray.nheads;
        tvq += ray.heads[i].tv_constq / (double)ray.nheads;
    }
    append_numbers(t, (double[]){uniform / whole, constq / whole, range, tvu, tvq}, SCALE_ROWS);
    pare_model_free(m);
    return st;
}

/* Our audit: lost with uniform, with constq; mean range, TVu, TVq. */
static const double scale_seen[SCALES][SCALE_ROWS] = {
    {.5096, .3633, 7.57, .537, .308}, {.3434, .2370, 3.71, .339, .192},
    {.1963, .1343, 1.85, .193, .110}, {.0958, .0665, .90, .100, .058},
    {.0297, .0210, .29, .033, .020},  {.0072, .0051, .07, .008, .005}};

static void scaled_table(table_writer *w, const numbers *part, size_t n)
{
    static const char *const what[SCALE_ROWS] = {"uniform: lost fraction", "constq: lost fraction",
                                                 "mean logit range", "mean TV from uniform",
                                                 "mean TV from one query"};
    double tv[SCALES], lost[SCALES], least = INFINITY, most = 0;
    begin_table(
        w, "E9 scaled",
        "the same with queries, keys and values times s, the first layer exact: what uniform "
        "loses of what attention does is near the mean TV of the weights from uniform",
        -3);
    for (size_t i = 0; i < n; i++) {
        const char *const data = row_text(w, "s = %g", scales[i]);
        for (size_t k = 0; k < SCALE_ROWS; k++)
            row_ratio(w, data, what[k], w->s->tiny ? scale_seen[i][k] : NAN, part[i].v[k], 1.25);
        lost[i] = part[i].v[0];
        tv[i] = part[i].v[3];
        least = fmin(least, lost[i] / tv[i]);
        most = fmax(most, lost[i] / tv[i]);
    }
    row_curve(w, "lost against TV", "uniform", tv, lost, n);
    row_curve(w, "lost against TV", "the diagonal", tv, tv, n);
    row_shape(w, "all s", "lost / TV, least", least > 0.25, least);
    row_shape(w, "all s", "lost / TV, largest", most < 4, most);
}

const experiment scaled = {.file_prefix = "scaled",
                           .parts = SCALES,
                           .cost = 4,
                           .trained = true,
                           .run = scaled_run,
                           .table = scaled_table};
