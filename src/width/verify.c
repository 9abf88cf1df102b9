/* Proving a width cut again, from the two files and the data alone.
 *
 * The headline does not ask how the cut was made: both models are enclosed on all rows of the data,
 * and what lies between them is proven. The theorems beside it (labels, attention weights) are of
 * the same kind. The hypotheses are those of the theorem behind the method, looked at on the input
 * model's own streams with the dimensions that the output model has: they say why the cut is as
 * good as it is, and nothing else rests on them. Of several inputs they look at the first. */
#include "prove.h"
#include <pare/exchange.h>
#include <pare/fold.h>
#include <pare/publish.h>
#include <math.h>
#include <string.h>

#define EXACT 1e-9 /* of the largest entry: what counts as lying in a subspace */
#define EPS   0.5  /* of the Johnson-Lindenstrauss lemma as it is looked at */
#define DELTA 0.01

/* Everything the hypotheses look at. */
typedef struct view {
    pare_work w;
    pare_arena *keep; /* of the certificate: what must outlive this */
    pare_cert *cert;
    pare_model *jf, *jg; /* with the identity in the place of a wo that is not there */
    pare_model *ff, *gf; /* those, folded */
    net f, g;
    activations pf, pg;
    size_t rounded[2]; /* weights that folding rounded */
    const pare_cert *claimed;
    pare_steps steps;
} view;

static void add(view *v, pare_claim c)
{
    if (!v->w.st) v->w.st = pare_cert_add(v->cert, v->keep, c, v->w.err);
}

/* A word of a claim, made by pare_sprintf. */
static const char *word(view *v, const char *text)
{
    if (!v->w.st && !text) v->w.st = pare_no_memory(v->w.err);
    return text;
}

static pare_truth truth(bool holds)
{
    return holds ? PARE_TRUE : PARE_FALSE;
}

/* Absolute, of an f64 computation on rows of that size: what it may be off by on another machine.
 */
static double f64_noise(double scale)
{
    return 1e-9 * scale;
}

/* "h2" or "z2": the residual stream before layer 2, and between its attention and its FFN. */
static const char *point_name(view *v, size_t i)
{
    return word(v, pare_sprintf(v->keep, "%c%zu", i % 2 ? 'z' : 'h', i / 2));
}

/* ---- hypotheses ----------------------------------------------------------------------------- */

static const pare_mat *point(const activations *p, size_t i)
{
    return i % 2 ? &p->z[i / 2] : &p->h[i / 2];
}

/* Proposition 4.1, Theorem 4.2: how near every row of the stream is to as many dimensions as the
 * output model has. */
static void subspaces(view *v, bool exact)
{
    for (size_t i = 0; !v->w.st && i < 2 * v->f.nlayers + 1; i++) {
        const pare_mark mark = pare_arena_mark(v->w.arena);
        const pare_mat *const h = point(&v->pf, i);
        const size_t d = point(&v->pg, i)->cols;
        const double scale = mat_max_abs(h);
        const basis b =
            exact ? basis_within(&v->w, h, EXACT * scale, true) : basis_pca(&v->w, h, d, true);
        if (exact)
            add(v, (pare_claim){.kind = PARE_STREAM_RANK,
                                .p = {(double)d, EXACT},
                                .text = point_name(v, i),
                                .value = (double)basis_dim(&b)});
        else
            add(v, (pare_claim){.kind = PARE_STREAM_RESIDUAL,
                                .p = {(double)d},
                                .text = point_name(v, i),
                                .value = basis_residual(&v->w, &b, h),
                                .slack = f64_noise(scale)});
        pare_arena_reset(v->w.arena, mark);
    }
}

/* Proposition 4.3: the draws that sampling by leverage scores asks for. */
static void units(view *v)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++) {
        const size_t k = v->g.layers[l].w1.rows;
        const size_t d = k < v->g.layers[l].w1.cols ? k : v->g.layers[l].w1.cols;
        add(v, (pare_claim){.kind = PARE_LEVERAGE_DRAWS,
                            .p = {(double)l, (double)d},
                            .holds = truth((double)k >= leverage_draws(d)),
                            .value = (double)k,
                            .limit = leverage_draws(d)});
    }
}

/* Theorem 4.4 */
static void separation(view *v)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++) {
        const size_t k = v->g.layers[l].w1.rows;
        const clusters c = clusters_of(&v->w, &v->pf.z[l], k);
        const cluster_facts f = clusters_check(&v->w, &v->pf.z[l], &c);
        add(v, (pare_claim){.kind = PARE_CLUSTER_RADIUS,
                            .p = {(double)l, (double)k},
                            .holds = truth(f.eps <= 1),
                            .value = f.eps,
                            .limit = 1,
                            .slack = f64_noise(1)});
        add(v, (pare_claim){.kind = PARE_CLUSTER_SEPARATION,
                            .p = {(double)l},
                            .holds = truth(f.sep < 1),
                            .value = f.sep,
                            .limit = 1,
                            .slack = f64_noise(1)});
    }
}

static double row_norm(const pare_mat *m, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < m->cols; j++) sum += pare_row(m, i)[j] * pare_row(m, i)[j];
    return sqrt(sum);
}

/* Largest |s - s^| / |scale||q||k| over the pairs of one head, on the stream of the cut model. */
static double drawn_eps(view *v, const net_head *a, const net_head *b, const pare_mat *h)
{
    const pare_graph *const g = &v->pg.graph;
    const pare_mat q = affine_rows(&v->w, h, &a->wq, a->bq),
                   k = affine_rows(&v->w, h, &a->wk, NULL);
    const double *const s = head_scores(&v->w, a, h, g), *const t = head_scores(&v->w, b, h, g);
    double worst = 0;
    for (size_t i = 0; !v->w.st && i < g->n; i++)
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            const double size = fabs(a->scale) * row_norm(&q, i) * row_norm(&k, g->idx[e]);
            if (size > 0) worst = fmax(worst, fabs(s[e] - t[e]) / size);
        }
    return worst;
}

/* Theorem 3.3: what the lemma asks for, and what the draw really is. */
static void lemma(view *v)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++) {
        const pare_mark mark = pare_arena_mark(v->w.arena);
        size_t rows, pairs, dk = SIZE_MAX;
        double eps = 0;
        jl_distinct(&v->w, &rows, &pairs, &v->pg.h[l], &v->pg.graph);
        for (size_t i = 0; !v->w.st && i < v->f.layers[l].nheads; i++) {
            const net_head *const a = &v->f.layers[l].heads[i], *const b = &v->g.layers[l].heads[i];
            if (b->wq.rows < dk) dk = b->wq.rows;
            eps = fmax(eps, drawn_eps(v, a, b, &v->pg.h[l]));
        }
        if (v->w.st) return;
        const double all = (double)(pairs ? pairs : 1) * (double)v->f.layers[l].nheads;
        const size_t asked = pare_jl_dim(all, EPS, DELTA);
        add(v, (pare_claim){.kind = PARE_JL_DIMENSION,
                            .p = {(double)l, EPS, DELTA},
                            .holds = truth(dk >= asked),
                            .value = (double)dk,
                            .limit = (double)asked});
        add(v, (pare_claim){.kind = PARE_JL_DISTORTION,
                            .p = {(double)l},
                            .holds = truth(eps <= EPS),
                            .value = eps,
                            .limit = EPS,
                            .slack = f64_noise(1)});
        pare_arena_reset(v->w.arena, mark);
    }
}

/* How far the form is from the best of its rank: the lower bound beside it. */
static void forms(view *v)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++)
        for (size_t i = 0; !v->w.st && i < v->f.layers[l].nheads; i++) {
            const pare_mark mark = pare_arena_mark(v->w.arena);
            const net_head *const a = &v->f.layers[l].heads[i], *const b = &v->g.layers[l].heads[i];
            qk_fit fit;
            (void)qk_optimal(&v->w, a, &v->pg.h[l], &v->pg.graph, b->wq.rows, &fit);
            const qk_bounds q = qk_bounds_of(&v->w, a, b, &v->pg.h[l], &v->pg.graph);
            add(v, (pare_claim){.kind = PARE_QK_OPTIMALITY,
                                .p = {(double)l, (double)i, (double)b->wq.rows},
                                .value = q.reached.v,
                                .limit = q.least,
                                .slack = 1e-6 * fit.total}); /* f32 weights, and rounding */
            pare_arena_reset(v->w.arena, mark);
        }
}

/* Eckart-Young for the stream: what is left of the input model's rows when they are decoded from
 * this cut's, and from the best rows of that width; `root` NULL, or the root of a metric. */
static void one_stream(view *v, pare_kind kind, size_t i, const pare_mat *a)
{
    const pare_mat *const x = point(&v->pg, i);
    const double scale = mat_fro_est(a), rows = sqrt((double)a->rows);
    const double left = decoding_residual_est(&v->w, a, x);
    const double least = residual_lower_bound(&v->w, a, NULL, x->cols);
    add(v, (pare_claim){.kind = kind,
                        .p = {(double)x->cols},
                        .text = point_name(v, i),
                        .value = left / rows,
                        .limit = least / rows,
                        .slack = f64_noise(100 * scale) / rows});
}

static void streams(view *v)
{
    for (size_t i = 0; !v->w.st && i < 2 * v->f.nlayers + 1; i++)
        one_stream(v, PARE_STREAM_OPTIMALITY, i, point(&v->pf, i));
}

/* The same in the gradient metric, which is what `auto` cuts by: a direction counts as much as the
 * outputs move with it. True of every metric; which one this is, the seed says. */
static void streams_by_gradients(view *v, const pare_inputs *set, uint64_t seed)
{
    const pare_mat *const metric = v->w.st ? NULL : gradient_metric(&v->w, v->ff, set->in, seed);
    for (size_t i = 0; !v->w.st && i < 2 * v->f.nlayers + 1; i++) {
        const pare_mark mark = pare_arena_mark(v->w.arena);
        const pare_mat root = metric_root(&v->w, &metric[i], NULL);
        const pare_mat a = mat_mul(&v->w, point(&v->pf, i), false, &root, false);
        one_stream(v, PARE_STREAM_OPTIMALITY_WEIGHTED, i, &a);
        pare_arena_reset(v->w.arena, mark);
    }
}

/* What no model of that width can beat, where the outputs have more entries than its last rows have
 * numbers. */
static void least_outputs(view *v, const pare_model *f, const pare_inputs *set)
{
    const size_t d = v->pg.h[v->g.nlayers].cols;
    if (v->w.st || v->f.wh.rows <= d) return;
    add(v, (pare_claim){.kind = PARE_OUTPUTS_LEAST,
                        .p = {(double)d},
                        .value = outputs_lower_bound(&v->w, f, set, d)});
}

/* Figures that prove nothing, computed where they are wanted. */
static void evidence(view *v, pare_width_method method, const pare_inputs *set, uint64_t seed)
{
    const bool scores = method == PARE_WIDTH_JL || method == PARE_WIDTH_QK;
    if (!v->cert->evidence) return;
    if (method == PARE_WIDTH_QK) forms(v);
    if (!scores) streams(v);
    if (method == PARE_WIDTH_AUTO) streams_by_gradients(v, set, seed);
}

static void look(view *v, pare_width_method method)
{
    if (method == PARE_WIDTH_EXACT || method == PARE_WIDTH_LOWRANK || method == PARE_WIDTH_LEVERAGE)
        subspaces(v, method == PARE_WIDTH_EXACT);
    if (method == PARE_WIDTH_LEVERAGE) units(v);
    if (method == PARE_WIDTH_CLUSTER) separation(v);
    if (method == PARE_WIDTH_JL) lemma(v);
}

/* ---- bounds --------------------------------------------------------------------------------- */

/* From norms alone, for every input whose rows are not longer: only where the matrices are the
 * model's own, not rounded by a fold. */
static void from_norms(view *v, size_t rounded, const pare_inputs *set)
{
    pare_ub x = pare_ub_exact(0);
    for (size_t k = 0; k < set->n; k++) {
        const pare_input *const in = &set->in[k];
        for (size_t i = 0; i < in->tokens; i++) {
            const pare_weight row = {PARE_F64, 1, in->width, in->x + i * in->width};
            x = pare_ub_max(x, pare_norm_fro(&row));
        }
    }
    add(v, (pare_claim){.kind = PARE_APRIORI_FOLDED,
                        .holds = truth(rounded == 0),
                        .value = (double)rounded});
    if (v->w.st || rounded > 0) return;
    const pare_ub bound = apriori_gap(&v->w, &v->f, &v->g, x);
    if (isinf(bound.v)) return;
    add(v, (pare_claim){.kind = PARE_APRIORI_OUTPUTS,
                        .value = bound.v,
                        .domain = word(v, pare_sprintf(v->keep,
                                                       "every input whose rows have a euclidean "
                                                       "length of at most %.17g",
                                                       x.v))});
}

/* part / of, rounded up: both are below 2^53. */
static double share(size_t part, size_t of)
{
    const double s = (double)part / (double)(of ? of : 1);
    return s > 0 ? fmin(1, nextafter(s, 2)) : 0;
}

/* ---- progress: in units of one enclosure of both models, as measured on graphs of 10,000 nodes --
 */

enum { EDITS_TIME = 60 };
static const double evidence_time = 2, local_time = 2.5;

static double time_of_layer(const view *v, size_t l)
{
    return 0.05 + (double)l / (double)(v->f.nlayers ? v->f.nlayers : 1);
}

/* What follows set_up. */
static double time_left(const view *v, const pare_model *f)
{
    double sum = 1 + (v->cert->evidence ? evidence_time : 0);
    for (size_t l = 0; l < v->f.nlayers; l++) sum += time_of_layer(v, l);
    if (!tube_refuses(f)) sum += local_time;
    for (size_t i = 0; i < v->claimed->nclaims; i++) {
        if (v->claimed->claims[i].kind == PARE_BALL_OUTPUTS) sum += local_time;
        if (v->claimed->claims[i].kind == PARE_EDITS_OUTPUTS) sum += EDITS_TIME;
    }
    return sum;
}

static void step(view *v, const char *what, double time)
{
    v->w.exec = pare_step(&v->steps, what, time);
}

static void weights(view *v, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++) {
        step(v, "prove attention", time_of_layer(v, l));
        const ratio_bound r = attention_ratios(&v->w, f, g, set, l);
        add(v, (pare_claim){.kind = PARE_ATTENTION_RATIO, .p = {(double)l}, .value = r.proven.v});
        add(v, (pare_claim){.kind = PARE_ATTENTION_RATIO_SEEN,
                            .p = {(double)l},
                            .value = r.measured,
                            .slack = f64_noise(1)});
    }
}

/* ---- statements that stand beside the headline ---------------------------------------------- */

static void one_ball(view *v, const model_pair *p, const pare_inputs *set, double rho)
{
    char r[40];
    const ball_bound b = ball_of_set(&v->w, p, set, rho);
    pare_ball_text(r, rho);
    const char *const domain =
        word(v, pare_sprintf(v->keep,
                             "every input whose feature rows are each within %s %s of those of %s",
                             r, pare_ball_norm_words[PARE_BALL_TWO], v->cert->domain));
    pare_claim c = pare_ball_claim(rho, PARE_BALL_TWO);
    c.domain = domain;
    c.value = b.apart.v;
    add(v, c);
    c.kind = PARE_BALL_ROWS_CHANGED;
    c.value = share(b.rows - b.certain, b.rows);
    add(v, c);
}

static void all_edits(view *v, const pare_model *f, const pare_model *g, const pare_inputs *set,
                      size_t rows)
{
    if (set->n > 1)
        pare_work_fail(&v->w, PARE_ERR_INPUT, "edits are proven on one graph, not on %zu inputs",
                       set->n);
    if (v->w.st) return;
    const edits_bound e = edits_prove(&v->w, f, g, &set->in[0], rows);
    if (v->w.st) return;
    pare_claim c = pare_width_edits(rows);
    c.domain = word(v, edits_domain(v->keep, v->cert->domain, &e));
    c.value = e.proven.v;
    add(v, c);
    c.kind = PARE_EDITS_ROWS_CHANGED;
    c.value = share(e.pairs - e.certain, e.pairs);
    add(v, c);
}

/* Layer by layer, and the balls and edits that the certificate speaks of. */
static void near_by(view *v, pare_width_method method, const pare_model *f, const pare_model *g,
                    const pare_inputs *set, double scale)
{
    const bool scores = method == PARE_WIDTH_JL || method == PARE_WIDTH_QK;
    const model_pair p = {f, g, v->gf, &v->f, &v->g, v->rounded[0], v->rounded[1], scores};
    double rho;
    pare_ball_norm norm;
    const char *const why = tube_refuses(f);
    if (why) add(v, (pare_claim){.kind = PARE_LOCAL_APPLIES, .text = why});
    /* Rounding alone is not the same on every machine: below what f64 sees it is raised. */
    const pare_ub local = v->w.st ? pare_ub_inf() : layerwise_gap_of_set(&v->w, &p, set);
    if (!isinf(local.v))
        add(v, (pare_claim){.kind = PARE_LOCAL_OUTPUTS, .value = fmax(local.v, EXACT * scale)});
    for (size_t i = 0; !v->w.st && i < v->claimed->nclaims; i++) {
        const pare_claim *const c = &v->claimed->claims[i];
        if (pare_ball_asked(&rho, &norm, c) && norm == PARE_BALL_TWO) {
            step(v, "prove the ball", local_time);
            one_ball(v, &p, set, rho);
        }
        if (c->kind != PARE_EDITS_OUTPUTS || !(c->p[0] >= 0 && c->p[0] <= 0x1p40)) continue;
        step(v, "prove edits", EDITS_TIME);
        all_edits(v, f, g, set, (size_t)c->p[0]);
    }
}

/* Theorem 4.2 in the form that holds: not of this cut, but of some net of its width. */
static void theorem(view *v, const pare_model *f, const pare_inputs *set)
{
    size_t d = 0; /* the cut's widest rows: h_0 may need fewer dimensions, and then loses nothing */
    /* One subspace for the rows of all inputs would have to be found. */
    const char *const why = set->n > 1      ? "one input"
                            : v->rounded[0] ? "a model that is folded already"
                                            : lowrank_refuses(&v->f);
    add(v, (pare_claim){.kind = PARE_PLAIN_APPLIES,
                        .holds = truth(!why),
                        .text = why ? why : "nothing that this net lacks"});
    if (why || v->w.st) return;
    for (size_t l = 0; l <= v->g.nlayers; l++)
        if (v->pg.h[l].cols > d) d = v->pg.h[l].cols;
    const lowrank_facts p = lowrank_measure(&v->w, f, &v->f, set, d);
    add(v, (pare_claim){.kind = PARE_PLAIN_EPS, .p = {(double)d}, .value = p.eps.v});
    add(v, (pare_claim){.kind = PARE_PLAIN_OUTPUTS, .p = {(double)d}, .value = p.bound.v});
    add(v, (pare_claim){.kind = PARE_PAPER_PLAIN,
                        .value = pare_lowrank_printed(p.maps.v, p.rows.v, v->f.nlayers, p.eps.v)});
}

/* Theorem 4.4 in the form that holds, of this very cut. */
static void clusters_to_outputs(view *v, size_t rounded, const pare_model *f, const pare_model *g,
                                const pare_inputs *set, double scale)
{
    if (v->w.st || rounded > 0 || set->n > 1) return;
    const pare_ub bound = cluster_gap(&v->w, f, g, &v->f, &v->g, &v->pf, &set->in[0]);
    if (isinf(bound.v)) return;
    add(v, (pare_claim){.kind = PARE_CLUSTER_OUTPUTS,
                        .p = {(double)v->g.wh.cols},
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

static size_t set_up(view *v, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    pare_fold_report rf = {0}, rg = {0};
    pare_work *const w = &v->w;
    if (set->n == 0)
        pare_work_fail(w, PARE_ERR_INPUT, "a width certificate needs a graph, there is none");
    if (!w->st) w->st = pare_model_clone(&v->jf, f, w->err);
    if (!w->st) w->st = pare_model_clone(&v->jg, g, w->err);
    if (!w->st) w->st = insert_identity_wo(v->jf, w->err);
    if (!w->st) w->st = insert_identity_wo(v->jg, w->err);
    if (!w->st) w->st = pare_fold(&v->ff, &rf, v->jf, w->err);
    if (!w->st) w->st = pare_fold(&v->gf, &rg, v->jg, w->err);
    if (w->st) return 0;
    v->f = net_read(w, v->ff);
    v->g = net_read(w, v->gf);
    if (!w->st && v->f.nlayers != v->g.nlayers)
        pare_work_fail(w, PARE_ERR_VERIFY, "the models have %zu and %zu layers", v->f.nlayers,
                       v->g.nlayers);
    if (!w->st && !same_pattern(&f->pattern, &g->pattern))
        pare_work_fail(w, PARE_ERR_VERIFY, "the models have other patterns of attention");
    for (size_t l = 0; !w->st && l < v->f.nlayers; l++)
        if (v->f.layers[l].nheads != v->g.layers[l].nheads)
            pare_work_fail(w, PARE_ERR_VERIFY, "layer %zu of the models has %zu and %zu heads", l,
                           v->f.layers[l].nheads, v->g.layers[l].nheads);
    if (w->st) return 0;
    v->pf = activations_of(w, v->ff, &v->f, &set->in[0]);
    v->pg = activations_of(w, v->gf, &v->g, &set->in[0]);
    v->rounded[0] = rf.rounded;
    v->rounded[1] = rg.rounded;
    return rf.rounded + rg.rounded;
}

/* Streams of one width at every point: what looks at f's heads on g's stream needs it. */
static bool same_stream(const view *v)
{
    for (size_t i = 0; i < 2 * v->f.nlayers + 1; i++)
        if (point(&v->pf, i)->cols != point(&v->pg, i)->cols) return false;
    return true;
}

static void prove_all(view *v, pare_width_method method, const pare_cert *claimed,
                      const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    pare_output_bound o;
    pare_cert *const c = v->cert;
    const size_t rounded = set_up(v, f, g, set);
    if (v->w.st) return;
    v->steps = pare_steps_of(v->w.exec, time_left(v, f));
    step(v, "prove", 1);
    c->norm = PARE_NORM_HEADLINE;
    c->domain = pare_domain_text(v->keep, &claimed->data);
    if (!c->domain) v->w.st = pare_no_memory(v->w.err);
    if (!v->w.st) v->w.st = pare_outputs_compare(&o, f, g, set, false, v->w.exec, v->w.err);
    step(v, "prove", v->cert->evidence ? evidence_time : 0);
    from_norms(v, rounded, set);
    const bool scores = method == PARE_WIDTH_JL || method == PARE_WIDTH_QK;
    if (!v->w.st && scores && !same_stream(v))
        pare_work_fail(&v->w, PARE_ERR_VERIFY,
                       "queries and keys alone were cut, but the streams of the "
                       "models have other widths");
    if (!v->w.st) v->w.st = pare_cert_take_outputs(c, v->keep, &o, v->w.err);
    look(v, method);
    if (!v->w.st) evidence(v, method, set, claimed->seed);
    least_outputs(v, f, set);
    if (v->w.st) return;
    weights(v, f, g, set);
    step(v, "prove layer by layer", tube_refuses(f) ? 0 : local_time);
    near_by(v, method, f, g, set, o.gap.scale);
    if (method == PARE_WIDTH_LOWRANK || method == PARE_WIDTH_LEVERAGE) theorem(v, f, set);
    if (method == PARE_WIDTH_CLUSTER) clusters_to_outputs(v, rounded, f, g, set, o.gap.scale);
    add_paper_formulas(&v->w, c, v->keep, method, &v->f, &v->g, &v->pf, &v->pg);
    if (!v->w.st)
        v->w.st = pare_add_new_inputs(c, v->keep, &claimed->data, f, g, set, v->w.exec, v->w.err);
}

/* The certificate says by its name which method it is about. */
static pare_width_method method_of(const char *reduction)
{
    size_t m = 0;
    while (m < PARE_WIDTH_METHODS && strcmp(pare_width_provers[m].reduction, reduction) != 0) m++;
    PARE_ASSERT(m < PARE_WIDTH_METHODS);
    return (pare_width_method)m;
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    if (pare_width_is_text(f, method_of(claimed->reduction)))
        return lm_prove(again, a, claimed, f, g, set, exec, err);
    view v = {
        .w = {pare_arena_new(), exec, err, PARE_OK}, .keep = a, .cert = again, .claimed = claimed};
    if (!v.w.arena) return pare_no_memory(err);
    prove_all(&v, method_of(claimed->reduction), claimed, f, g, set);
    pare_model_free(v.ff);
    pare_model_free(v.gf);
    pare_model_free(v.jf);
    pare_model_free(v.jg);
    pare_arena_free(v.w.arena);
    return v.w.st;
}

const pare_prover pare_width_provers[PARE_WIDTH_METHODS] = {
    {"width.exact", prove},   {"width.lowrank", prove}, {"width.leverage", prove},
    {"width.cluster", prove}, {"width.jl", prove},      {"width.qk", prove},
    {"width.auto", prove},    {"width.slice", prove},   {"width.svd", prove}};
