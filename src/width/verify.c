/* verify.c - prove a width cut again, from the two model files and the data alone.
 *
 * The headline does not depend on how the cut was made: both models are enclosed on all rows of the
 * data, and the distance between the enclosures is proven. The theorems beside it (labels,
 * attention weights, balls, edits) are of the same kind. The hypotheses are those of the theorem
 * behind the method, checked on the input model's own residual stream with the dimensions of the
 * output model: they explain why the cut is as good as it is, and nothing else depends on them. Of
 * several inputs they use the first. */
#include "prove.h"
#include "cert/ball.h"
#include "cert/conformal.h"
#include "cert/outputs.h"
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include <pare/fold.h>
#include <pare/width.h>
#include <math.h>
#include <string.h>

#define EXACT 1e-9 /* of the largest entry: what counts as lying in a subspace */
#define EPS   0.5  /* of the Johnson-Lindenstrauss lemma as it is checked */
#define DELTA 0.01

/* One certificate that is proven again. */
typedef struct proof {
    pare_work w;
    pare_arena *keep; /* of the certificate: what must outlive this */
    pare_cert *cert;
    const pare_cert *claimed;
    pare_width_method method;
    const pare_model *f, *g; /* input model, output model */
    const pare_inputs *set;
    pare_model *f_wo, *g_wo;         /* with the identity where an output projection is missing */
    pare_model *f_folded, *g_folded; /* those, folded */
    net nf, ng;
    activations af, ag;          /* on the first input */
    size_t rounded_f, rounded_g; /* weights that folding rounded */
    pare_steps steps;
} proof;

static void add_claim(proof *v, pare_claim c)
{
    if (!v->w.st) v->w.st = pare_cert_add(v->cert, v->keep, c, v->w.err);
}

/* A text made by pare_sprintf: NULL is a failure. */
static const char *checked_text(proof *v, const char *text)
{
    if (!v->w.st && !text) v->w.st = pare_no_memory(v->w.err);
    return text;
}

static pare_truth truth(bool holds)
{
    return holds ? PARE_TRUE : PARE_FALSE;
}

/* How far an f64 computation on rows of that size may be off on another machine. */
static double f64_noise(double scale)
{
    return 1e-9 * scale;
}

static bool cuts_scores(const proof *v)
{
    return v->method == PARE_WIDTH_JL || v->method == PARE_WIDTH_QK;
}

/* The points of the residual stream: h_0, z_0, h_1, ..., h_L. */
static size_t npoints(const proof *v)
{
    return 2 * v->nf.nlayers + 1;
}

static const pare_mat *stream_point(const activations *p, size_t i)
{
    return i % 2 ? &p->z[i / 2] : &p->h[i / 2];
}

/* "h2" or "z2": the residual stream before layer 2, and between its attention and its FFN. */
static const char *point_name(proof *v, size_t i)
{
    return checked_text(v, pare_sprintf(v->keep, "%c%zu", i % 2 ? 'z' : 'h', i / 2));
}

/* ---- hypotheses ----------------------------------------------------------------------------- */

/* Proposition 4.1, Theorem 4.2: how near every row of the stream is to as many dimensions as the
 * output model has. */
static void add_subspaces(proof *v)
{
    for (size_t i = 0; !v->w.st && i < npoints(v); i++) {
        const pare_mark mark = pare_arena_mark(v->w.arena);
        const pare_mat *const h = stream_point(&v->af, i);
        const size_t d = stream_point(&v->ag, i)->cols;
        const double scale = pare_mat_max_abs(h);
        if (v->method == PARE_WIDTH_EXACT) {
            const basis b = basis_within(&v->w, h, EXACT * scale, true);
            add_claim(v, (pare_claim){.kind = PARE_STREAM_RANK,
                                      .p = {(double)d, EXACT},
                                      .text = point_name(v, i),
                                      .value = (double)basis_dim(&b)});
        } else {
            const basis b = basis_pca(&v->w, h, d, true);
            add_claim(v, (pare_claim){.kind = PARE_STREAM_RESIDUAL,
                                      .p = {(double)d},
                                      .text = point_name(v, i),
                                      .value = basis_residual(&v->w, &b, h),
                                      .slack = f64_noise(scale)});
        }
        pare_arena_reset(v->w.arena, mark);
    }
}

/* Proposition 4.3: the draws that sampling by leverage scores needs. */
static void add_leverage_draws(proof *v)
{
    for (size_t l = 0; !v->w.st && l < v->nf.nlayers; l++) {
        const size_t k = v->ng.layers[l].w1.rows;
        const size_t d = k < v->ng.layers[l].w1.cols ? k : v->ng.layers[l].w1.cols;
        add_claim(v, (pare_claim){.kind = PARE_LEVERAGE_DRAWS,
                                  .p = {(double)l, (double)d},
                                  .holds = truth((double)k >= leverage_draws(d)),
                                  .value = (double)k,
                                  .limit = leverage_draws(d)});
    }
}

/* Theorem 4.4: radius and separation of the clusters. */
static void add_clusters(proof *v)
{
    for (size_t l = 0; !v->w.st && l < v->nf.nlayers; l++) {
        const size_t k = v->ng.layers[l].w1.rows;
        const clusters c = clusters_of(&v->w, &v->af.z[l], k);
        const cluster_facts f = clusters_check(&v->w, &v->af.z[l], &c);
        add_claim(v, (pare_claim){.kind = PARE_CLUSTER_RADIUS,
                                  .p = {(double)l, (double)k},
                                  .holds = truth(f.eps <= 1),
                                  .value = f.eps,
                                  .limit = 1,
                                  .slack = f64_noise(1)});
        add_claim(v, (pare_claim){.kind = PARE_CLUSTER_SEPARATION,
                                  .p = {(double)l},
                                  .holds = truth(f.sep < 1),
                                  .value = f.sep,
                                  .limit = 1,
                                  .slack = f64_noise(1)});
    }
}

/* Largest |s - s^| / |scale||q||k| over the pairs of one head, on the stream of the cut model. */
static double score_distortion(proof *v, const net_head *a, const net_head *b, const pare_mat *h)
{
    pare_work *const w = &v->w;
    const pare_graph *const g = &v->ag.graph;
    const pare_mat q = affine_rows(w, h, &a->wq, a->bq), k = affine_rows(w, h, &a->wk, NULL);
    const double *const s = head_scores(w, a, h, g), *const t = head_scores(w, b, h, g);
    double worst = 0;
    for (size_t i = 0; !w->st && i < g->n; i++)
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            const double *const qi = pare_row(&q, i), *const kj = pare_row(&k, g->idx[e]);
            const double size =
                fabs(a->scale) * sqrt(vec_dot(qi, qi, q.cols)) * sqrt(vec_dot(kj, kj, k.cols));
            if (size > 0) worst = fmax(worst, fabs(s[e] - t[e]) / size);
        }
    return worst;
}

/* Theorem 3.3: the dimension that the lemma needs, and the distortion of the draw itself. */
static void add_projections(proof *v)
{
    for (size_t l = 0; !v->w.st && l < v->nf.nlayers; l++) {
        const pare_mark mark = pare_arena_mark(v->w.arena);
        const net_layer *const lf = &v->nf.layers[l], *const lg = &v->ng.layers[l];
        size_t rows, pairs, dk = SIZE_MAX;
        double eps = 0;
        jl_distinct(&v->w, &rows, &pairs, &v->ag.h[l], &v->ag.graph);
        for (size_t i = 0; !v->w.st && i < lf->nheads; i++) {
            if (lg->heads[i].wq.rows < dk) dk = lg->heads[i].wq.rows;
            eps = fmax(eps, score_distortion(v, &lf->heads[i], &lg->heads[i], &v->ag.h[l]));
        }
        if (v->w.st) return;
        const double all = (double)(pairs ? pairs : 1) * (double)lf->nheads;
        const size_t needed = pare_jl_dim(all, EPS, DELTA);
        add_claim(v, (pare_claim){.kind = PARE_JL_DIMENSION,
                                  .p = {(double)l, EPS, DELTA},
                                  .holds = truth(dk >= needed),
                                  .value = (double)dk,
                                  .limit = (double)needed});
        add_claim(v, (pare_claim){.kind = PARE_JL_DISTORTION,
                                  .p = {(double)l},
                                  .holds = truth(eps <= EPS),
                                  .value = eps,
                                  .limit = EPS,
                                  .slack = f64_noise(1)});
        pare_arena_reset(v->w.arena, mark);
    }
}

/* ---- evidence: figures that prove nothing --------------------------------------------------- */

/* How far the bilinear form is from the best of its rank: the lower bound beside it. */
static void add_qk_optimality(proof *v)
{
    for (size_t l = 0; !v->w.st && l < v->nf.nlayers; l++)
        for (size_t i = 0; !v->w.st && i < v->nf.layers[l].nheads; i++) {
            const pare_mark mark = pare_arena_mark(v->w.arena);
            const net_head *const a = &v->nf.layers[l].heads[i];
            const net_head *const b = &v->ng.layers[l].heads[i];
            qk_fit fit;
            (void)qk_optimal(&v->w, a, &v->ag.h[l], &v->ag.graph, b->wq.rows, &fit);
            const qk_bounds q = qk_bounds_of(&v->w, a, b, &v->ag.h[l], &v->ag.graph);
            add_claim(v, (pare_claim){.kind = PARE_QK_OPTIMALITY,
                                      .p = {(double)l, (double)i, (double)b->wq.rows},
                                      .value = q.reached.v,
                                      .limit = q.least,
                                      .slack = 1e-6 * fit.total}); /* f32 weights, and rounding */
            pare_arena_reset(v->w.arena, mark);
        }
}

/* Eckart-Young at point i of the stream: what is left of the input model's rows `a` when they are
 * decoded from the cut's rows, and from the best rows of that width. */
static void add_stream_optimality(proof *v, pare_kind kind, size_t i, const pare_mat *a)
{
    const pare_mat *const x = stream_point(&v->ag, i);
    const double scale = pare_mat_fro_est(a), rows = sqrt((double)a->rows);
    const double left = decoding_residual_est(&v->w, a, x);
    const double least = residual_lower_bound(&v->w, a, NULL, x->cols);
    add_claim(v, (pare_claim){.kind = kind,
                              .p = {(double)x->cols},
                              .text = point_name(v, i),
                              .value = left / rows,
                              .limit = least / rows,
                              .slack = f64_noise(100 * scale) / rows});
}

static void add_evidence(proof *v)
{
    if (!v->cert->evidence) return;
    if (v->method == PARE_WIDTH_QK) add_qk_optimality(v);
    for (size_t i = 0; !cuts_scores(v) && !v->w.st && i < npoints(v); i++)
        add_stream_optimality(v, PARE_STREAM_OPTIMALITY, i, stream_point(&v->af, i));
    if (v->method != PARE_WIDTH_AUTO || v->w.st) return;
    /* The same in the gradient metric, by which `auto` cuts. True of every metric; the seed says
     * which one this is. */
    const pare_mat *const metric =
        gradient_metric(&v->w, v->f_folded, v->set->in, v->claimed->seed);
    for (size_t i = 0; !v->w.st && i < npoints(v); i++) {
        const pare_mark mark = pare_arena_mark(v->w.arena);
        const pare_mat root = metric_root(&v->w, &metric[i], NULL);
        const pare_mat a = mat_mul(&v->w, stream_point(&v->af, i), false, &root, false);
        add_stream_optimality(v, PARE_STREAM_OPTIMALITY_WEIGHTED, i, &a);
        pare_arena_reset(v->w.arena, mark);
    }
}

/* ---- bounds --------------------------------------------------------------------------------- */

/* From norms alone, for every input whose rows are not longer: only where the matrices are the
 * model's own, not rounded by a fold. */
static void add_apriori(proof *v)
{
    const size_t rounded = v->rounded_f + v->rounded_g;
    pare_ub x = pare_ub_exact(0);
    for (size_t k = 0; k < v->set->n; k++) {
        const pare_input *const in = &v->set->in[k];
        for (size_t i = 0; i < in->tokens; i++) {
            const pare_weight row = {PARE_F64, 1, in->width, in->x + i * in->width};
            x = pare_ub_max(x, pare_norm_fro(&row));
        }
    }
    add_claim(v, (pare_claim){.kind = PARE_APRIORI_FOLDED,
                              .holds = truth(rounded == 0),
                              .value = (double)rounded});
    if (v->w.st || rounded > 0) return;
    const pare_ub bound = apriori_gap(&v->w, &v->nf, &v->ng, x);
    if (isinf(bound.v)) return;
    add_claim(v, (pare_claim){.kind = PARE_APRIORI_OUTPUTS,
                              .value = bound.v,
                              .domain = checked_text(
                                  v, pare_sprintf(v->keep,
                                                  "every input whose rows have a euclidean "
                                                  "length of at most %.17g",
                                                  x.v))});
}

/* part / of, rounded up: both are below 2^53. */
static double share_rounded_up(size_t part, size_t of)
{
    const double s = (double)part / (double)(of ? of : 1);
    return s > 0 ? fmin(1, nextafter(s, 2)) : 0;
}

/* Progress: in units of one enclosure of both models, as measured on graphs of 10,000 nodes. */
enum { EDITS_TIME = 60 };
static const double evidence_time = 2, layerwise_time = 2.5;

static double attention_time(const proof *v, size_t l)
{
    return 0.05 + (double)l / (double)(v->nf.nlayers ? v->nf.nlayers : 1);
}

static double total_time(const proof *v)
{
    double sum = 1 + (v->cert->evidence ? evidence_time : 0);
    for (size_t l = 0; l < v->nf.nlayers; l++) sum += attention_time(v, l);
    if (!propagation_refuses(v->f)) sum += layerwise_time;
    for (size_t i = 0; i < v->claimed->nclaims; i++) {
        if (v->claimed->claims[i].kind == PARE_BALL_OUTPUTS) sum += layerwise_time;
        if (v->claimed->claims[i].kind == PARE_EDITS_OUTPUTS) sum += EDITS_TIME;
    }
    return sum;
}

static void begin_step(proof *v, const char *what, double time)
{
    v->w.exec = pare_step(&v->steps, what, time);
}

static void add_attention_ratios(proof *v)
{
    for (size_t l = 0; !v->w.st && l < v->nf.nlayers; l++) {
        begin_step(v, "prove attention", attention_time(v, l));
        const ratio_bound r = attention_ratios(&v->w, v->f, v->g, v->set, l);
        add_claim(
            v, (pare_claim){.kind = PARE_ATTENTION_RATIO, .p = {(double)l}, .value = r.proven.v});
        add_claim(v, (pare_claim){.kind = PARE_ATTENTION_RATIO_SEEN,
                                  .p = {(double)l},
                                  .value = r.measured,
                                  .slack = f64_noise(1)});
    }
}

/* Every input in the ball of radius rho around each of the given ones. */
static void add_ball(proof *v, const model_pair *p, double rho)
{
    char r[40];
    const ball_bound b = ball_of_set(&v->w, p, v->set, rho);
    pare_ball_text(r, rho);
    const char *const domain = checked_text(
        v,
        pare_sprintf(v->keep, "every input whose feature rows are each within %s %s of those of %s",
                     r, pare_ball_norm_words[PARE_BALL_TWO], v->cert->domain));
    pare_claim c = pare_ball_claim(rho, PARE_BALL_TWO);
    c.domain = domain;
    c.value = b.apart.v;
    add_claim(v, c);
    c.kind = PARE_BALL_ROWS_CHANGED;
    c.value = share_rounded_up(b.rows - b.certain, b.rows);
    add_claim(v, c);
}

/* Every edit of one node, to one of the most frequent rows. */
static void add_edits(proof *v, size_t rows)
{
    if (v->set->n > 1)
        pare_work_fail(&v->w, PARE_ERR_INPUT, "edits are proven on one graph, not on %zu inputs",
                       v->set->n);
    if (v->w.st) return;
    const edits_bound e = edits_prove(&v->w, v->f, v->g, &v->set->in[0], rows);
    if (v->w.st) return;
    pare_claim c = pare_width_edits(rows);
    c.domain = checked_text(v, edits_domain(v->keep, v->cert->domain, &e));
    c.value = e.proven.v;
    add_claim(v, c);
    c.kind = PARE_EDITS_ROWS_CHANGED;
    c.value = share_rounded_up(e.pairs - e.certain, e.pairs);
    add_claim(v, c);
}

/* Layer by layer, and the balls and edits that the certificate speaks of. */
static void add_layerwise(proof *v, double scale)
{
    const model_pair p = {v->f,   v->g,         v->g_folded,  &v->nf,
                          &v->ng, v->rounded_f, v->rounded_g, cuts_scores(v)};
    double rho;
    pare_ball_norm norm;
    const char *const why = propagation_refuses(v->f);
    if (why) add_claim(v, (pare_claim){.kind = PARE_LOCAL_APPLIES, .text = why});
    /* A gap of rounding alone differs between machines: it is raised to EXACT. */
    const pare_ub gap = v->w.st ? pare_ub_inf() : layerwise_gap_of_set(&v->w, &p, v->set);
    if (!isinf(gap.v))
        add_claim(v, (pare_claim){.kind = PARE_LOCAL_OUTPUTS, .value = fmax(gap.v, EXACT * scale)});
    for (size_t i = 0; !v->w.st && i < v->claimed->nclaims; i++) {
        const pare_claim *const c = &v->claimed->claims[i];
        if (pare_ball_asked(&rho, &norm, c) && norm == PARE_BALL_TWO) {
            begin_step(v, "prove the ball", layerwise_time);
            add_ball(v, &p, rho);
        }
        if (c->kind != PARE_EDITS_OUTPUTS || !(c->p[0] >= 0 && c->p[0] <= 0x1p40)) continue;
        begin_step(v, "prove edits", EDITS_TIME);
        add_edits(v, (size_t)c->p[0]);
    }
}

/* Theorem 4.2 in the form that holds: not of this cut, but of some net of its width. */
static void add_lowrank_theorem(proof *v)
{
    size_t d = 0; /* the cut's widest rows: h_0 may need fewer dimensions, and then loses nothing */
    /* For several inputs one subspace for all rows would have to be found. */
    const char *const why = v->set->n > 1  ? "one input"
                            : v->rounded_f ? "a model that is folded already"
                                           : lowrank_refuses(&v->nf);
    add_claim(v, (pare_claim){.kind = PARE_PLAIN_APPLIES,
                              .holds = truth(!why),
                              .text = why ? why : "nothing that this net lacks"});
    if (why || v->w.st) return;
    for (size_t l = 0; l <= v->ng.nlayers; l++)
        if (v->ag.h[l].cols > d) d = v->ag.h[l].cols;
    const lowrank_facts p = lowrank_measure(&v->w, v->f, &v->nf, v->set, d);
    const double printed = pare_lowrank_printed(p.maps.v, p.rows.v, v->nf.nlayers, p.eps.v);
    add_claim(v, (pare_claim){.kind = PARE_PLAIN_EPS, .p = {(double)d}, .value = p.eps.v});
    add_claim(v, (pare_claim){.kind = PARE_PLAIN_OUTPUTS, .p = {(double)d}, .value = p.bound.v});
    add_claim(v, (pare_claim){.kind = PARE_PAPER_PLAIN, .value = printed});
}

/* Theorem 4.4 in the form that holds, of this very cut. */
static void add_cluster_theorem(proof *v, double scale)
{
    if (v->w.st || v->rounded_f + v->rounded_g > 0 || v->set->n > 1) return;
    const pare_ub bound = cluster_gap(&v->w, v->f, v->g, &v->nf, &v->ng, &v->af, &v->set->in[0]);
    if (isinf(bound.v)) return;
    add_claim(v, (pare_claim){.kind = PARE_CLUSTER_OUTPUTS,
                              .p = {(double)v->ng.wh.cols},
                              .value = fmax(bound.v, EXACT * scale)});
}

/* ---- all of it ------------------------------------------------------------------------------ */

bool same_pattern(const pare_pattern *a, const pare_pattern *b)
{
    if (a->kind != b->kind) return false;
    if (a->kind == PARE_WINDOW) return a->window == b->window && a->sinks == b->sinks;
    if (a->kind != PARE_GRAPH) return true;
    return a->self_loops == b->self_loops && a->expander_degree == b->expander_degree &&
           (a->expander_degree == 0 || a->expander_seed == b->expander_seed);
}

/* Folds both models, reads them, checks that they can be compared, and runs them. */
static void set_up(proof *v)
{
    pare_fold_report rf = {0}, rg = {0};
    pare_work *const w = &v->w;
    if (v->set->n == 0)
        pare_work_fail(w, PARE_ERR_INPUT, "a width certificate needs a graph, there is none");
    if (!w->st) w->st = pare_model_clone(&v->f_wo, v->f, w->err);
    if (!w->st) w->st = pare_model_clone(&v->g_wo, v->g, w->err);
    if (!w->st) w->st = insert_identity_wo(v->f_wo, w->err);
    if (!w->st) w->st = insert_identity_wo(v->g_wo, w->err);
    if (!w->st) w->st = pare_fold(&v->f_folded, &rf, v->f_wo, w->err);
    if (!w->st) w->st = pare_fold(&v->g_folded, &rg, v->g_wo, w->err);
    if (w->st) return;
    v->rounded_f = rf.rounded;
    v->rounded_g = rg.rounded;
    v->nf = net_read(w, v->f_folded);
    v->ng = net_read(w, v->g_folded);
    if (!w->st && v->nf.nlayers != v->ng.nlayers)
        pare_work_fail(w, PARE_ERR_VERIFY, "the models have %zu and %zu layers", v->nf.nlayers,
                       v->ng.nlayers);
    if (!w->st && !same_pattern(&v->f->pattern, &v->g->pattern))
        pare_work_fail(w, PARE_ERR_VERIFY, "the models have other patterns of attention");
    for (size_t l = 0; !w->st && l < v->nf.nlayers; l++)
        if (v->nf.layers[l].nheads != v->ng.layers[l].nheads)
            pare_work_fail(w, PARE_ERR_VERIFY, "layer %zu of the models has %zu and %zu heads", l,
                           v->nf.layers[l].nheads, v->ng.layers[l].nheads);
    if (w->st) return;
    v->af = activations_of(w, v->f_folded, &v->nf, &v->set->in[0]);
    v->ag = activations_of(w, v->g_folded, &v->ng, &v->set->in[0]);
}

static void prove_all(proof *v)
{
    pare_output_bound o;
    pare_work *const w = &v->w;
    pare_cert *const c = v->cert;
    set_up(v);
    if (w->st) return;
    v->steps = pare_steps_of(w->exec, total_time(v));
    begin_step(v, "prove", 1);
    c->norm = PARE_NORM_HEADLINE;
    c->domain = pare_domain_text(v->keep, &v->claimed->data);
    if (!c->domain) w->st = pare_no_memory(w->err);
    if (!w->st)
        w->st = pare_outputs_compare(&o, v->keep, v->f, v->g, v->set, false, w->exec, w->err);
    begin_step(v, "prove", c->evidence ? evidence_time : 0);
    add_apriori(v);
    /* Heads of f are applied to the stream of g below, so both must have the same widths. */
    for (size_t i = 0; !w->st && cuts_scores(v) && i < npoints(v); i++)
        if (stream_point(&v->af, i)->cols != stream_point(&v->ag, i)->cols)
            pare_work_fail(w, PARE_ERR_VERIFY,
                           "queries and keys alone were cut, but the streams of the "
                           "models have other widths");
    if (!w->st) w->st = pare_cert_take_outputs(c, v->keep, &o, w->err);

    const pare_width_method method = v->method;
    const bool lowrank = method == PARE_WIDTH_LOWRANK || method == PARE_WIDTH_LEVERAGE;
    if (lowrank || method == PARE_WIDTH_EXACT) add_subspaces(v);
    if (method == PARE_WIDTH_LEVERAGE) add_leverage_draws(v);
    if (method == PARE_WIDTH_CLUSTER) add_clusters(v);
    if (method == PARE_WIDTH_JL) add_projections(v);
    if (!w->st) add_evidence(v);
    /* What no model of that width can beat, where the outputs have more entries than its last rows
     * have numbers. */
    const size_t d = v->ag.h[v->ng.nlayers].cols;
    if (!w->st && v->nf.wh.rows > d)
        add_claim(v, (pare_claim){.kind = PARE_OUTPUTS_LEAST,
                                  .p = {(double)d},
                                  .value = outputs_lower_bound(w, v->f, v->set, d)});
    if (w->st) return;

    add_attention_ratios(v);
    begin_step(v, "prove layer by layer", propagation_refuses(v->f) ? 0 : layerwise_time);
    add_layerwise(v, o.gap.scale);
    if (lowrank) add_lowrank_theorem(v);
    if (method == PARE_WIDTH_CLUSTER) add_cluster_theorem(v, o.gap.scale);
    add_paper_formulas(w, c, v->keep, method, &v->nf, &v->ng, &v->af, &v->ag);
    if (!w->st) w->st = pare_add_new_inputs(c, v->keep, &v->claimed->data, v->set, o.each, w->err);
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    size_t m = 0; /* the name of the reduction says which method it is about */
    while (m < PARE_WIDTH_METHODS &&
           strcmp(pare_width_provers[m].reduction, claimed->reduction) != 0)
        m++;
    PARE_ASSERT(m < PARE_WIDTH_METHODS);
    if (pare_width_is_text(f, (pare_width_method)m))
        return lm_prove(again, a, claimed, f, g, set, exec, err);
    proof v = {.w = {pare_arena_new(), exec, err, PARE_OK},
               .keep = a,
               .cert = again,
               .claimed = claimed,
               .method = (pare_width_method)m,
               .f = f,
               .g = g,
               .set = set};
    if (!v.w.arena) return pare_no_memory(err);
    prove_all(&v);
    pare_model_free(v.f_folded);
    pare_model_free(v.g_folded);
    pare_model_free(v.f_wo);
    pare_model_free(v.g_wo);
    pare_arena_free(v.w.arena);
    return v.w.st;
}

const pare_prover pare_width_provers[PARE_WIDTH_METHODS] = {
    {"width.exact", prove},   {"width.lowrank", prove}, {"width.leverage", prove},
    {"width.cluster", prove}, {"width.jl", prove},      {"width.qk", prove},
    {"width.auto", prove},    {"width.slice", prove},   {"width.svd", prove}};
