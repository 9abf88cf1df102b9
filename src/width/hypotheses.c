/* A look at a model through the theorems about width (pare/survey.h): the same streams and the same
 * figures that the cuts and the hypotheses of their certificates use. */
#include "cuts.h"
#include <pare/fold.h>
#include <pare/survey.h>
#include <math.h>
#include <string.h>

#define WORTH 0.01 /* of the scores in the metric of the data: what may be lost unseen */

typedef struct look {
    pare_work w;
    pare_arena *keep;
    pare_survey *out;
    net n;
    activations p;
} look;

static void *kept(look *l, size_t count, size_t size)
{
    void *const p = l->w.st ? NULL : pare_alloc(l->keep, count > 0 ? count : 1, size);
    if (!p && !l->w.st) l->w.st = pare_no_memory(l->w.err);
    return p;
}

/* ---- places of the stream ------------------------------------------------------------------- */

static void look_at_points(look *l)
{
    pare_survey *const out = l->out;
    out->npoints = 2 * l->n.nlayers + 1;
    out->points = kept(l, out->npoints, sizeof *out->points);
    for (size_t i = 0; !l->w.st && i < out->npoints; i++) {
        const pare_mark mark = pare_arena_mark(l->w.arena);
        const pare_mat *const h = i % 2 ? &l->p.z[i / 2] : &l->p.h[i / 2];
        pare_survey_point *const at = &out->points[i];
        const basis b = basis_pca(&l->w, h, out->dim, true);
        at->residual_est = basis_residual(&l->w, &b, h);
        at->width = h->cols;
        snprintf(at->name, sizeof at->name, "%c%zu", i % 2 ? 'z' : 'h', i / 2);
        pare_arena_reset(l->w.arena, mark);
        if (!l->w.st)
            l->w.st = pare_progress(l->w.exec, "survey stream", i + 1, out->npoints, l->w.err);
    }
}

/* ---- layers --------------------------------------------------------------------------------- */

static bool any(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0) return true;
    return false;
}

static void what_it_is(pare_survey_layer *at, const net_layer *l)
{
    at->skip = l->r1.v || l->r2.v;
    at->relu = l->act == PARE_ACT_RELU;
    at->nheads = l->nheads;
    at->bias = any(l->c1, l->heads[0].wo.rows) || any(l->b1, l->w1.rows) || any(l->c2, l->w2.rows);
    for (size_t i = 0; i < l->nheads; i++) {
        const net_head *const hd = &l->heads[i];
        at->bias = at->bias || any(hd->bq, hd->wq.rows) || any(hd->bv, hd->wv.rows);
        at->scaled = at->scaled || hd->scale != 1;
        if (hd->wq.rows > at->qk_dim) at->qk_dim = hd->wq.rows;
    }
}

static void lemma(look *l, pare_survey_layer *at, size_t i)
{
    jl_distinct(&l->w, &at->rows, &at->pairs, &l->p.h[i], &l->p.graph);
    if (l->w.st) return;
    const double all = (double)(at->pairs ? at->pairs : 1) * (double)at->nheads;
    at->jl_dim = pare_jl_dim(all, l->out->eps, l->out->delta);
}

static void units(look *l, pare_survey_layer *at, size_t i)
{
    const basis b = basis_pca(&l->w, &l->p.p[i], l->out->dim, true);
    const double *const scores = leverage_scores(&l->w, &b.u, &at->rank);
    at->units = l->n.layers[i].w1.rows;
    for (size_t u = 0; !l->w.st && u < at->units; u++)
        at->leverage_est = fmax(at->leverage_est, scores[u]);
    at->draws = leverage_draws(at->rank ? at->rank : 1);
}

static void groups(look *l, pare_survey_layer *at, size_t i, size_t most)
{
    const pare_mat *const z = &l->p.z[i];
    const clusters c = clusters_of(&l->w, z, most < z->rows ? most : z->rows);
    const cluster_facts f = clusters_check(&l->w, z, &c);
    at->clusters = f.k;
    at->radius_est = f.eps;
    at->separation_est = f.k > 1 ? f.sep : 0; /* one cluster is apart from all others */
    at->least_est = f.least;
    at->most_est = f.most;
}

static void look_at_layers(look *l, size_t groups_at_most)
{
    pare_survey *const out = l->out;
    out->nlayers = l->n.nlayers;
    out->layers = kept(l, out->nlayers, sizeof *out->layers);
    for (size_t i = 0; !l->w.st && i < out->nlayers; i++) {
        const pare_mark mark = pare_arena_mark(l->w.arena);
        what_it_is(&out->layers[i], &l->n.layers[i]);
        lemma(l, &out->layers[i], i);
        units(l, &out->layers[i], i);
        groups(l, &out->layers[i], i, groups_at_most);
        pare_arena_reset(l->w.arena, mark);
        if (!l->w.st)
            l->w.st = pare_progress(l->w.exec, "survey layers", i + 1, out->nlayers, l->w.err);
    }
}

/* ---- heads ---------------------------------------------------------------------------------- */

/* The first d after which the rest of the squares is small. */
static size_t enough(const double *s, size_t n)
{
    double all = 0, left = 0;
    for (size_t i = 0; i < n; i++) all += s[i] * s[i];
    size_t d = n;
    for (; d > 0; d--) {
        left += s[d - 1] * s[d - 1];
        if (!(left <= WORTH * WORTH * all)) break;
    }
    return d;
}

static void look_at_head(look *l, pare_survey_head *at, size_t layer, size_t head)
{
    const net_head *const hd = &l->n.layers[layer].heads[head];
    const pare_mark mark = pare_arena_mark(l->w.arena);
    size_t n = 0;
    const double *const s = qk_singular_values(&l->w, &n, hd, &l->p.h[layer], &l->p.graph);
    *at = (pare_survey_head){.layer = layer, .head = head, .dim = hd->wq.rows};
    at->n = n < at->dim ? n : at->dim; /* the others are 0: the form has no higher rank */
    at->form_est = kept(l, at->n, sizeof *at->form_est);
    if (!l->w.st) memcpy(at->form_est, s, at->n * sizeof *s);
    if (!l->w.st) at->needed = enough(at->form_est, at->n);
    pare_arena_reset(l->w.arena, mark);
}

static void look_at_heads(look *l)
{
    pare_survey *const out = l->out;
    size_t done = 0;
    for (size_t i = 0; i < l->n.nlayers; i++) out->nheads += l->n.layers[i].nheads;
    out->heads = kept(l, out->nheads, sizeof *out->heads);
    for (size_t i = 0; !l->w.st && i < l->n.nlayers; i++)
        for (size_t k = 0; !l->w.st && k < l->n.layers[i].nheads; k++) {
            look_at_head(l, &out->heads[done++], i, k);
            if (!l->w.st)
                l->w.st = pare_progress(l->w.exec, "survey heads", done, out->nheads, l->w.err);
        }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void set_up(look *l, const pare_model *folded, const pare_inputs *data, size_t dim)
{
    l->n = net_read(&l->w, folded);
    if (!l->w.st && data->n != 1)
        pare_work_fail(&l->w, PARE_ERR_INPUT,
                       "a survey needs one graph with its features, not %zu inputs", data->n);
    if (!l->w.st) l->p = activations_of(&l->w, folded, &l->n, &data->in[0]);
    if (l->w.st) return;
    const size_t eighth = (l->n.we.rows + 7) / 8;
    l->out->dim = dim ? dim : eighth > 0 ? eighth : 1;
}

pare_status pare_width_survey(pare_survey *out, pare_arena *a, const pare_model *m,
                              const pare_inputs *data, const pare_survey_opts *o,
                              const pare_exec *exec, pare_err *err)
{
    look l = {.w = {pare_arena_new(), exec, err, PARE_OK}, .keep = a, .out = out};
    pare_model *folded = NULL;
    pare_fold_report report;
    *out = (pare_survey){.eps = o->eps, .delta = o->delta};
    if (!l.w.arena) return pare_no_memory(err);
    l.w.st = pare_fold(&folded, &report, m, err);
    if (!l.w.st) set_up(&l, folded, data, o->dim);
    if (!l.w.st) look_at_points(&l);
    if (!l.w.st) look_at_layers(&l, o->clusters ? o->clusters : out->dim);
    if (!l.w.st) look_at_heads(&l);
    pare_model_free(folded);
    pare_arena_free(l.w.arena);
    return l.w.st;
}
