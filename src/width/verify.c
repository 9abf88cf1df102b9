/* Proving a width cut again, from the two files and the data alone.
 *
 * The headline does not ask how the cut was made: both models are enclosed on all rows of the data,
 * and what lies between them is proven. The statements (classes, attention weights) are of the same
 * kind. The hypotheses are those of the theorem behind the method, looked at on the input model's
 * own streams with the dimensions that the output model has: they say why the cut is as good as it
 * is, and nothing else rests on them. Of several inputs they look at the first. */
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
    work w;
    pare_arena *keep; /* of the certificate: what must outlive this */
    pare_cert *cert;
    size_t room;         /* hypotheses and statements that fit */
    pare_model *jf, *jg; /* with the identity in the place of a wo that is not there */
    pare_model *ff, *gf; /* those, folded */
    net f, g;
    points pf, pg;
    size_t rounded[2];           /* weights that folding rounded */
    const pare_statement *asked; /* the statements of the certificate as it came */
    size_t nasked;
} view;

/* ---- lists ---------------------------------------------------------------------------------- */

static void suppose(view *v, pare_truth holds, double value, double limit, const char *name)
{
    if (!v->w.st && !name) v->w.st = pare_no_memory(v->w.err);
    if (v->w.st) return;
    PARE_ASSERT(v->cert->nhypotheses < v->room);
    v->cert->hypotheses[v->cert->nhypotheses++] = (pare_hypothesis){name, holds, value, limit};
}

static void state_on(view *v, const char *domain, const char *norm, double bound, const char *name)
{
    if (!v->w.st && (!name || !domain)) v->w.st = pare_no_memory(v->w.err);
    if (v->w.st) return;
    PARE_ASSERT(v->cert->nstatements < v->room);
    v->cert->statements[v->cert->nstatements++] = (pare_statement){name, norm, domain, 1, bound};
}

static void state(view *v, const char *norm, double bound, const char *name)
{
    state_on(v, v->cert->domain, norm, bound, name);
}

static pare_truth truth(bool holds)
{
    return holds ? PARE_TRUE : PARE_FALSE;
}

/* Below what the eye of f64 sees, as one value on every machine. */
static double visible(double value, double scale)
{
    return value > EXACT * scale ? value : 0;
}

/* ---- hypotheses ----------------------------------------------------------------------------- */

static const pare_mat *point(const points *p, size_t i)
{
    return i % 2 ? &p->z[i / 2] : &p->h[i / 2];
}

/* Proposition 4.1, Theorem 4.2: how near every row of the stream is to as many dimensions as the
 * output model has. */
static void subspaces(view *v, bool exact)
{
    for (size_t i = 0; !v->w.st && i < 2 * v->f.nlayers + 1; i++) {
        const pare_mark mark = pare_arena_mark(v->w.a);
        const pare_mat *const h = point(&v->pf, i);
        const size_t d = point(&v->pg, i)->cols;
        const double scale = w_largest(h);
        const basis b =
            exact ? basis_within(&v->w, h, EXACT * scale, true) : basis_pca(&v->w, h, d, true);
        const char at = i % 2 ? 'z' : 'h';
        if (exact)
            suppose(v, truth(basis_dim(&b) <= d), (double)basis_dim(&b), (double)d,
                    pare_sprintf(v->keep, "%c%zu: affine rank of the stream, and its new width", at,
                                 i / 2));
        else
            suppose(v, PARE_TRUE, visible(basis_residual(&v->w, &b, h), scale), NAN,
                    pare_sprintf(v->keep,
                                 "%c%zu: largest distance of a row from an affine subspace of %zu "
                                 "dimensions",
                                 at, i / 2, d));
        pare_arena_reset(v->w.a, mark);
    }
}

/* Proposition 4.3: the draws that sampling by leverage scores asks for. */
static void units(view *v)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++) {
        const size_t k = v->g.layers[l].w1.rows;
        const size_t d = k < v->g.layers[l].w1.cols ? k : v->g.layers[l].w1.cols;
        suppose(v, truth((double)k >= leverage_draws(d)), (double)k, leverage_draws(d),
                pare_sprintf(v->keep,
                             "layer %zu: hidden units, and the draws that sampling by leverage "
                             "scores asks for at rank %zu",
                             l, d));
    }
}

/* Theorem 4.4 */
static void separation(view *v)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++) {
        const size_t k = v->g.layers[l].w1.rows;
        const clusters c = clusters_of(&v->w, &v->pf.z[l], k);
        const cluster_facts f = clusters_check(&v->w, &v->pf.z[l], &c);
        const char *const name = pare_sprintf(
            v->keep, "layer %zu: radius of %zu clusters relative to their centres (eps)", l, k);
        suppose(v, truth(f.eps <= 1), f.eps > EXACT ? f.eps : 0, 1, name);
        suppose(v, truth(f.sep < 1), fabs(f.sep) > EXACT ? f.sep : 0, 1,
                pare_sprintf(v->keep, "layer %zu: separation of the clusters", l));
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
    const pare_mat q = w_dense(&v->w, h, &a->wq, a->bq), k = w_dense(&v->w, h, &a->wk, NULL);
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
        const pare_mark mark = pare_arena_mark(v->w.a);
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
        suppose(
            v, truth(dk >= asked), (double)dk, (double)asked,
            pare_sprintf(v->keep,
                         "layer %zu: dimension of queries and keys, and what the lemma asks for "
                         "(eps %g, delta %g; %zu different rows, %zu pairs)",
                         l, EPS, DELTA, rows, pairs));
        suppose(v, truth(eps <= EPS), eps > EXACT ? eps : 0, EPS,
                pare_sprintf(v->keep, "layer %zu: largest |q.k - q^.k^| / |q||k| as drawn", l));
        pare_arena_reset(v->w.a, mark);
    }
}

/* How far the form is from the best of its rank: the lower bound beside it. */
static void forms(view *v)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++)
        for (size_t i = 0; !v->w.st && i < v->f.layers[l].nheads; i++) {
            const pare_mark mark = pare_arena_mark(v->w.a);
            const net_head *const a = &v->f.layers[l].heads[i], *const b = &v->g.layers[l].heads[i];
            qk_fit best;
            (void)qk_optimal(&v->w, a, &v->pg.h[l], &v->pg.graph, b->wq.rows, &best);
            const double lost = qk_objective(&v->w, a, b, &v->pg.h[l], &v->pg.graph);
            if (v->w.st) return;
            const double unseen = 1e-6 * best.total; /* f32 weights, and rounding */
            suppose(v, truth(lost <= best.least * (1 + 1e-3) + unseen), lost > unseen ? lost : 0,
                    best.least > unseen ? best.least : 0,
                    pare_sprintf(v->keep,
                                 "layer %zu head %zu: score error in the metric of the data, and "
                                 "the least of any form of rank %zu",
                                 l, i, b->wq.rows));
            pare_arena_reset(v->w.a, mark);
        }
}

/* Eckart-Young for the stream: what this cut's rows can say of the input model's, and what the best
 * rows of that width could. */
static void streams(view *v)
{
    for (size_t i = 0; !v->w.st && i < 2 * v->f.nlayers + 1; i++) {
        const pare_mat *const a = point(&v->pf, i), *const x = point(&v->pg, i);
        const double scale = w_fro(a), root = sqrt((double)a->rows);
        const double left = visible(decoded_residual(&v->w, a, x), 100 * scale);
        const double least = visible(least_residual(&v->w, a, NULL, x->cols), 100 * scale);
        suppose(v, PARE_TRUE, left / root, least / root,
                pare_sprintf(v->keep,
                             "%c%zu: what %zu numbers a row leave of it (root mean square, "
                             "f64), " PARE_WIDTH_LEAST " %zu",
                             i % 2 ? 'z' : 'h', i / 2, x->cols, x->cols));
    }
}

/* The same in the metric of the slopes, which is what `auto` cuts by: a direction counts as much as
 * the outputs move with it. True of every metric; which one this is, the seed says. */
static void streams_by_slopes(view *v, const pare_inputs *set, uint64_t seed)
{
    const pare_mat *const metric = v->w.st ? NULL : gradient_metric(&v->w, v->ff, set->in, seed);
    for (size_t i = 0; !v->w.st && i < 2 * v->f.nlayers + 1; i++) {
        const pare_mark mark = pare_arena_mark(v->w.a);
        const pare_mat *const x = point(&v->pg, i), root = metric_root(&v->w, &metric[i], NULL);
        const pare_mat a = w_mul(&v->w, point(&v->pf, i), false, &root, false);
        const double scale = w_fro(&a), rows = sqrt((double)a.rows);
        const double left = visible(decoded_residual(&v->w, &a, x), 100 * scale);
        const double least = visible(least_residual(&v->w, &a, NULL, x->cols), 100 * scale);
        suppose(v, PARE_TRUE, left / rows, least / rows,
                pare_sprintf(v->keep,
                             "in the metric of the slopes, %c%zu: what %zu numbers a row leave of "
                             "it (f64), " PARE_WIDTH_LEAST " %zu",
                             i % 2 ? 'z' : 'h', i / 2, x->cols, x->cols));
        pare_arena_reset(v->w.a, mark);
    }
}

/* The same for the outputs, where they have more entries than the last rows have numbers. */
static void best_outputs(view *v, const pare_output_bound *o, const pare_model *f,
                         const pare_inputs *set)
{
    const size_t d = v->pg.h[v->g.nlayers].cols;
    if (v->w.st || v->f.wh.rows <= d) return;
    suppose(v, PARE_TRUE, o->gap.measured, least_of_outputs(&v->w, f, set, d),
            pare_sprintf(v->keep,
                         "outputs: largest difference, " PARE_WIDTH_LEAST
                         " model whose last rows have %zu numbers",
                         d));
}

static void look(view *v, pare_width_method method)
{
    if (method == PARE_WIDTH_EXACT || method == PARE_WIDTH_LOWRANK || method == PARE_WIDTH_LEVERAGE)
        subspaces(v, method == PARE_WIDTH_EXACT);
    if (method == PARE_WIDTH_LEVERAGE) units(v);
    if (method == PARE_WIDTH_CLUSTER) separation(v);
    if (method == PARE_WIDTH_JL) lemma(v);
    if (method == PARE_WIDTH_QK) forms(v);
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
    suppose(v, truth(rounded == 0), (double)rounded, 0,
            "a priori: the models are folded already (weights that folding would round)");
    v->cert->apriori = INFINITY;
    if (!v->w.st && rounded == 0) v->cert->apriori = apriori_gap(&v->w, &v->f, &v->g, x).v;
}

static double share(size_t part, size_t of)
{
    return (double)part / (double)(of ? of : 1);
}

static void classes(view *v, const pare_output_bound *o)
{
    const double changed = share(o->rows - o->certain, o->rows);
    state(v, "share of the output rows", changed, "rows whose largest entry may have changed");
}

static void weights(view *v, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    for (size_t l = 0; !v->w.st && l < v->f.nlayers; l++) {
        const ratio_bound r = ratios_of_layer(&v->w, f, g, set, l);
        state(v, "largest |ln(a / a^)| over the attention weights", r.proven.v,
              pare_sprintf(v->keep, "attention weights of layer %zu", l));
        suppose(v, PARE_UNKNOWN, r.measured > EXACT ? r.measured : 0, NAN,
                pare_sprintf(v->keep, "layer %zu: largest |ln(a / a^)| as measured", l));
        pare_progress(v->w.exec, "prove attention", l + 1, v->f.nlayers);
    }
}

/* The scores of a two-class model put the nodes of the test mask into an order: how good it is. */
static void aucs(view *v, const pare_output_bound *o)
{
    static const char *const norm = "area under the ROC curve of the test rows";
    const pare_auc_bound f = o->auc[0], g = o->auc[1];
    if (!(f.low <= f.high && g.low <= g.high)) return;
    state(v, norm, g.high, PARE_AUC);
    state(v, norm, pare_ub_of(1 - g.low).v, PARE_AUC_BELOW);
    const double apart = fmax(f.high - g.low, g.high - f.low);
    state(v, "difference of the areas under the ROC curve of the test rows", pare_ub_of(apart).v,
          PARE_AUC_APART);
}

/* ---- statements that stand beside the headline ---------------------------------------------- */

static void one_ball(view *v, const pair *p, const pare_inputs *set, double rho)
{
    char r[40];
    const ball_bound b = ball_of_set(&v->w, p, set, rho);
    pare_ball_text(r, rho);
    const char *const domain = pare_sprintf(
        v->keep, "every input whose feature rows are each within %s (euclidean) of those of %s", r,
        v->cert->domain);
    state_on(v, domain, PARE_NORM_HEADLINE, b.apart.v,
             pare_sprintf(v->keep, PARE_BALL_NAME "%s: outputs", r));
    state_on(v, domain, "share of the output rows", share(b.rows - b.certain, b.rows),
             pare_sprintf(v->keep, PARE_BALL_NAME "%s: rows whose largest entry may differ", r));
}

static void all_edits(view *v, const pare_model *f, const pare_model *g, const pare_inputs *set,
                      size_t rows)
{
    if (set->n > 1)
        w_fail(&v->w, PARE_ERR_INPUT, "edits are proven on one graph, not on %zu inputs", set->n);
    if (v->w.st) return;
    const edits_bound e = edits_prove(&v->w, f, g, &set->in[0], rows);
    if (v->w.st) return;
    const char *const domain = edits_domain(v->keep, v->cert->domain, &e);
    state_on(v, domain, PARE_NORM_HEADLINE, e.proven.v, edits_name(v->keep, rows));
    state_on(v, domain, "share of the pairs of an edit and a node it reaches",
             share(e.pairs - e.certain, e.pairs),
             "nodes that an edit reaches whose largest entry may differ");
}

/* A statement that stands there twice is proven once, and then there are too many of them. */
static bool asked_first(const view *v, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(v->asked[k].name, v->asked[i].name) == 0) return false;
    return true;
}

/* Layer by layer, and the balls and edits that the certificate speaks of. */
static void near_by(view *v, pare_width_method method, const pare_model *f, const pare_model *g,
                    const pare_inputs *set, double scale)
{
    const bool scores = method == PARE_WIDTH_JL || method == PARE_WIDTH_QK;
    const pair p = {f, g, v->gf, &v->f, &v->g, v->rounded[0], v->rounded[1], scores};
    double rho;
    size_t rows;
    const char *const why = tube_refuses(f);
    if (why)
        suppose(v, PARE_FALSE, NAN, NAN, pare_sprintf(v->keep, "layer by layer: not with %s", why));
    /* Rounding alone is not the same on every machine: below what is visible it is raised. */
    state(v, PARE_NORM_HEADLINE, fmax(local_of_set(&v->w, &p, set).v, EXACT * scale),
          "layer by layer, without a run of the input model from end to end");
    for (size_t i = 0; !v->w.st && i < v->nasked; i++)
        if (asked_first(v, i) && ball_radius(&rho, v->asked[i].name)) one_ball(v, &p, set, rho);
    for (size_t i = 0; !v->w.st && i < v->nasked; i++)
        if (asked_first(v, i) && edits_asked(&rows, v->asked[i].name))
            all_edits(v, f, g, set, rows);
}

/* Theorem 4.2 in the form that holds: not of this cut, but of some net of its width. */
static void theorem(view *v, const pare_model *f, const pare_inputs *set)
{
    size_t d = SIZE_MAX;
    /* One subspace for the rows of all inputs would have to be found. */
    const char *const why = set->n > 1      ? "one input"
                            : v->rounded[0] ? "a model that is folded already"
                                            : plain_refuses(&v->f);
    suppose(v, truth(!why), NAN, NAN,
            why ? pare_sprintf(v->keep, "Theorem 4.2 asks for %s", why)
                : "Theorem 4.2 covers nets of this kind");
    if (why || v->w.st) return;
    for (size_t l = 0; l <= v->g.nlayers; l++)
        if (v->pg.h[l].cols < d) d = v->pg.h[l].cols;
    const plain_facts p = plain_measure(&v->w, f, &v->f, set, d);
    suppose(v, PARE_TRUE, p.eps.v, NAN,
            pare_sprintf(v->keep, "Theorem 4.2: eps, for subspaces of %zu dimensions", d));
    state(v, "largest euclidean distance of the last rows, decoded", p.bound.v,
          pare_sprintf(v->keep, "Theorem 4.2 as it is true: some net of width %zu", d));
    v->cert->paper = pare_alloc(v->keep, 1, sizeof *v->cert->paper);
    if (!v->w.st && !v->cert->paper) v->w.st = pare_no_memory(v->w.err);
    if (v->w.st) return;
    v->cert->paper[v->cert->npaper++] =
        (pare_named){"Theorem 4.2 by the last line of its proof", plain_printed(&p, v->f.nlayers)};
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
    work *const w = &v->w;
    if (set->n == 0) w_fail(w, PARE_ERR_INPUT, "a width certificate needs a graph, there is none");
    if (!w->st) w->st = pare_model_clone(&v->jf, f, w->err);
    if (!w->st) w->st = pare_model_clone(&v->jg, g, w->err);
    if (!w->st) w->st = join_heads(v->jf, w->err);
    if (!w->st) w->st = join_heads(v->jg, w->err);
    if (!w->st) w->st = pare_fold(&v->ff, &rf, v->jf, w->err);
    if (!w->st) w->st = pare_fold(&v->gf, &rg, v->jg, w->err);
    if (w->st) return 0;
    v->f = net_read(w, v->ff);
    v->g = net_read(w, v->gf);
    if (!w->st && v->f.nlayers != v->g.nlayers)
        w_fail(w, PARE_ERR_VERIFY, "the models have %zu and %zu layers", v->f.nlayers,
               v->g.nlayers);
    if (!w->st && !same_pattern(&f->pattern, &g->pattern))
        w_fail(w, PARE_ERR_VERIFY, "the models have other patterns of attention");
    for (size_t l = 0; !w->st && l < v->f.nlayers; l++)
        if (v->f.layers[l].nheads != v->g.layers[l].nheads)
            w_fail(w, PARE_ERR_VERIFY, "layer %zu of the models has %zu and %zu heads", l,
                   v->f.layers[l].nheads, v->g.layers[l].nheads);
    if (w->st) return 0;
    v->pf = points_of(w, v->ff, &v->f, &set->in[0]);
    v->pg = points_of(w, v->gf, &v->g, &set->in[0]);
    v->rounded[0] = rf.rounded;
    v->rounded[1] = rg.rounded;
    v->room = 16 + 2 * v->nasked;
    for (size_t l = 0; l < v->f.nlayers; l++) v->room += 10 + 2 * v->f.layers[l].nheads;
    v->cert->hypotheses = pare_alloc(v->keep, v->room, sizeof *v->cert->hypotheses);
    v->cert->statements = pare_alloc(v->keep, v->room, sizeof *v->cert->statements);
    if (!w->st && (!v->cert->hypotheses || !v->cert->statements)) w->st = pare_no_memory(w->err);
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
    c->norm = PARE_NORM_HEADLINE;
    c->domain = pare_domain_text(v->keep, &claimed->data);
    if (!c->domain) v->w.st = pare_no_memory(v->w.err);
    if (!v->w.st) v->w.st = pare_outputs_compare(&o, f, g, set, v->w.exec, v->w.err);
    from_norms(v, rounded, set);
    const bool scores = method == PARE_WIDTH_JL || method == PARE_WIDTH_QK;
    if (!v->w.st && scores && !same_stream(v))
        w_fail(&v->w, PARE_ERR_VERIFY,
               "queries and keys alone were cut, but the streams of the "
               "models have other widths");
    look(v, method);
    if (!scores) streams(v);
    if (method == PARE_WIDTH_AUTO) streams_by_slopes(v, set, claimed->seed);
    best_outputs(v, &o, f, set);
    if (v->w.st) return;
    classes(v, &o);
    aucs(v, &o);
    weights(v, f, g, set);
    near_by(v, method, f, g, set, o.gap.scale);
    if (method == PARE_WIDTH_LOWRANK || method == PARE_WIDTH_LEVERAGE) theorem(v, f, set);
    printed_formulas(&v->w, c, v->keep, method, &v->f, &v->g, &v->pf, &v->pg);
    c->proven = o.gap.proven.v;
    c->measured = o.gap.measured;
    c->measured_slack = pare_measured_slack(&o.gap);
    c->rounding = o.gap.rounding.v;
    if (!v->w.st)
        v->w.st = pare_exchange_say(c, v->keep, &claimed->data, v->asked, v->nasked, f, g, set,
                                    v->w.exec, v->w.err);
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
    view v = {.w = {pare_arena_new(), exec, err, PARE_OK},
              .keep = a,
              .cert = again,
              .asked = claimed->statements, /* of `again` itself when it is made */
              .nasked = claimed->nstatements};
    if (!v.w.a) return pare_no_memory(err);
    again->nhypotheses = again->nstatements = again->npaper = 0;
    prove_all(&v, method_of(claimed->reduction), claimed, f, g, set);
    pare_model_free(v.ff);
    pare_model_free(v.gf);
    pare_model_free(v.jf);
    pare_model_free(v.jg);
    pare_arena_free(v.w.a);
    return v.w.st;
}

const pare_prover pare_width_provers[PARE_WIDTH_METHODS] = {
    {"width.exact", prove},   {"width.lowrank", prove}, {"width.leverage", prove},
    {"width.cluster", prove}, {"width.jl", prove},      {"width.qk", prove},
    {"width.auto", prove},    {"width.slice", prove},   {"width.svd", prove}};
