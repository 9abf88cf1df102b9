/* hypotheses.c - the hypotheses of the theorems about width, checked on a model and its data
 * (pare/width.h): the same activations and figures that the cuts and their certificates use. */
#include "cuts.h"
#include "stored_weights.h"
#include "hypotheses.h"
#include <pare/fold.h>
#include <math.h>
#include <string.h>

#define NEGLIGIBLE 0.01 /* share of the scores, in the metric of the data, that may be lost */

typedef struct facts_job {
    pare_work w;
    pare_arena *keep; /* of the result */
    pare_width_facts *out;
    net n;
    activations p;
} facts_job;

static void *alloc_result(facts_job *l, size_t count, size_t size)
{
    void *const p = l->w.st ? NULL : pare_alloc(l->keep, count > 0 ? count : 1, size);
    if (!p && !l->w.st) l->w.st = pare_no_memory(l->w.err);
    return p;
}

/* Every point of the stream: how near its rows are to a subspace. */
static void stream_facts(facts_job *l)
{
    pare_work *const w = &l->w;
    pare_width_facts *const out = l->out;
    out->npoints = 2 * l->n.nlayers + 1;
    out->points = alloc_result(l, out->npoints, sizeof *out->points);
    for (size_t i = 0; !w->st && i < out->npoints; i++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat *const h = i % 2 ? &l->p.z[i / 2] : &l->p.h[i / 2];
        pare_width_facts_point *const at = &out->points[i];
        const basis b = basis_pca(w, h, out->dim, true);
        at->residual_est = basis_residual(w, &b, h);
        at->width = h->cols;
        snprintf(at->name, sizeof at->name, "%c%zu", i % 2 ? 'z' : 'h', i / 2);
        pare_arena_reset(w->arena, mark);
        if (!w->st) w->st = pare_progress(w->exec, "survey stream", i + 1, out->npoints, w->err);
    }
}

static void describe_layer(pare_width_facts_layer *at, const net_layer *l)
{
    at->skip = l->r1.v || l->r2.v;
    at->relu = l->act == PARE_ACT_RELU;
    at->nheads = l->nheads;
    at->units = l->w1.rows;
    at->bias = !all_zero(l->c1, l->heads[0].wo.rows) || !all_zero(l->b1, l->w1.rows) ||
               !all_zero(l->c2, l->w2.rows);
    for (size_t i = 0; i < l->nheads; i++) {
        const net_head *const hd = &l->heads[i];
        at->bias = at->bias || !all_zero(hd->bq, hd->wq.rows) || !all_zero(hd->bv, hd->wv.rows);
        at->scaled = at->scaled || hd->scale != 1;
        if (hd->wq.rows > at->qk_dim) at->qk_dim = hd->wq.rows;
    }
}

/* Every layer: the dimension of the Johnson-Lindenstrauss lemma, the leverage of hidden units, and
 * clusters of nodes. */
static void facts_of_layers(facts_job *l, size_t max_clusters)
{
    pare_work *const w = &l->w;
    pare_width_facts *const out = l->out;
    out->nlayers = l->n.nlayers;
    out->layers = alloc_result(l, out->nlayers, sizeof *out->layers);
    for (size_t i = 0; !w->st && i < out->nlayers; i++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        pare_width_facts_layer *const at = &out->layers[i];
        describe_layer(at, &l->n.layers[i]);
        jl_distinct(w, &at->rows, &at->pairs, &l->p.h[i], &l->p.graph);
        const double pairs = (double)(at->pairs ? at->pairs : 1) * (double)at->nheads;
        if (!w->st) at->jl_dim = pare_jl_dim(pairs, out->eps, out->delta);

        const basis b = basis_pca(w, &l->p.p[i], out->dim, true);
        const double *const scores = leverage_scores(w, &b.u, &at->rank);
        for (size_t u = 0; !w->st && u < at->units; u++)
            at->leverage_est = fmax(at->leverage_est, scores[u]);
        at->draws = leverage_draws(at->rank ? at->rank : 1);

        const pare_mat *const z = &l->p.z[i];
        const clusters c = clusters_of(w, z, max_clusters < z->rows ? max_clusters : z->rows);
        const cluster_facts f = clusters_check(w, z, &c);
        at->clusters = f.k;
        at->radius_est = f.eps;
        at->separation_est = f.k > 1 ? f.sep : 0; /* one cluster is apart from all others */
        at->least_est = f.least;
        at->most_est = f.most;
        pare_arena_reset(w->arena, mark);
        if (!w->st) w->st = pare_progress(w->exec, "survey layers", i + 1, out->nlayers, w->err);
    }
}

/* The first d after which the rest of the squares is negligible. */
static size_t effective_rank(const double *s, size_t n)
{
    double all = 0, left = 0;
    for (size_t i = 0; i < n; i++) all += s[i] * s[i];
    size_t d = n;
    for (; d > 0; d--) {
        left += s[d - 1] * s[d - 1];
        if (!(left <= NEGLIGIBLE * NEGLIGIBLE * all)) break;
    }
    return d;
}

/* Every head: the singular values of its scores. */
static void facts_of_heads(facts_job *l)
{
    pare_work *const w = &l->w;
    pare_width_facts *const out = l->out;
    size_t done = 0;
    for (size_t i = 0; i < l->n.nlayers; i++) out->nheads += l->n.layers[i].nheads;
    out->heads = alloc_result(l, out->nheads, sizeof *out->heads);
    for (size_t i = 0; !w->st && i < l->n.nlayers; i++)
        for (size_t k = 0; !w->st && k < l->n.layers[i].nheads; k++) {
            const net_head *const hd = &l->n.layers[i].heads[k];
            const pare_mark mark = pare_arena_mark(w->arena);
            pare_width_facts_head *const at = &out->heads[done++];
            size_t n = 0;
            const double *const s = qk_singular_values(w, &n, hd, &l->p.h[i], &l->p.graph);
            *at = (pare_width_facts_head){.layer = i, .head = k, .dim = hd->wq.rows};
            at->n = n < at->dim ? n : at->dim; /* the others are 0: the form has no higher rank */
            at->form_est = alloc_result(l, at->n, sizeof *at->form_est);
            if (!w->st) memcpy(at->form_est, s, at->n * sizeof *s);
            if (!w->st) at->needed = effective_rank(at->form_est, at->n);
            pare_arena_reset(w->arena, mark);
            if (!w->st) w->st = pare_progress(w->exec, "survey heads", done, out->nheads, w->err);
        }
}

pare_status pare_width_check_hypotheses(pare_width_facts *out, pare_arena *a, const pare_model *m,
                                        const pare_inputs *data, const pare_width_facts_opts *o,
                                        const pare_exec *exec, pare_err *err)
{
    facts_job l = {.w = {pare_arena_new(), exec, err, PARE_OK}, .keep = a, .out = out};
    pare_model *folded = NULL;
    pare_fold_report report;
    *out = (pare_width_facts){.eps = o->eps, .delta = o->delta};
    if (!l.w.arena) return pare_no_memory(err);
    l.w.st = pare_fold(&folded, &report, m, err);
    if (!l.w.st) l.n = net_read(&l.w, folded);
    if (!l.w.st && data->n != 1)
        pare_work_fail(&l.w, PARE_ERR_INPUT,
                       "a survey needs one graph with its features, not %zu inputs", data->n);
    if (!l.w.st) l.p = activations_of(&l.w, folded, &l.n, &data->in[0]);
    if (!l.w.st) {
        const size_t eighth = (l.n.we.rows + 7) / 8;
        out->dim = o->dim ? o->dim : eighth > 0 ? eighth : 1;
        stream_facts(&l);
        if (!l.w.st) facts_of_layers(&l, o->clusters ? o->clusters : out->dim);
        if (!l.w.st) facts_of_heads(&l);
    }
    pare_model_free(folded);
    pare_arena_free(l.w.arena);
    return l.w.st;
}
