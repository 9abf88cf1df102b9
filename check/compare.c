/* compare.c - both models on one input, layer by layer side by side: the difference of the outputs,
 * which rows keep their largest entry, and what claims about one layer are about. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

/* ---- figures --------------------------------------------------------------------------------- */

size_t figure_place(figure x, size_t l)
{
    return x < RATIO ? (size_t)x : (size_t)x + 3 * l;
}

figures *figures_new(job *j, size_t nlayers)
{
    figures *const f = take(j, 1, sizeof *f);
    const size_t n = figure_place(RATIO, nlayers);
    bool *const has = take(j, n, sizeof *has);
    if (!f || !has) return NULL;
    *f = (figures){.n = n, .v = _arb_vec_init((slong)n), .has = has};
    return f;
}

void figures_free(figures *f)
{
    if (f) _arb_vec_clear(f->v, (slong)f->n);
}

/* The larger of both, or the sum. Of a nan the other is not taken: what is not known must not look
 * known. */
static void raise_at(figures *f, size_t at, const arb_t x, slong prec)
{
    arb_ptr most = f->v + at;
    f->has[at] = true;
    if (!arb_is_finite(x) || !arb_is_finite(most))
        arb_indeterminate(most);
    else if (at >= SQUARES && at <= WITHOUT)
        arb_add(most, most, x, prec);
    else
        arb_max(most, most, x, prec);
}

static void raise_figure(figures *f, figure x, size_t l, const arb_t by, slong prec)
{
    raise_at(f, figure_place(x, l), by, prec);
}

void figures_join(figures *all, const figures *one, slong prec)
{
    for (size_t i = 0; i < all->n; i++)
        if (one->has[i]) raise_at(all, i, one->v + i, prec);
    all->rows += one->rows;
    all->changed += one->changed;
    all->open += one->open;
}

/* ---- one layer ------------------------------------------------------------------------------- */

/* Largest |ln(a / a^)| over the heads, queries with two keys at least, and their keys. */
static void compare_weights(evaluation r[2], size_t l, const balls z[2], figures *out)
{
    const size_t tokens = r->in.tokens;
    const slong prec = r->prec;
    balls q[2], k[2];
    uint32_t *const keys = flint_malloc(tokens * sizeof *keys);
    arb_ptr log[2] = {_arb_vec_init((slong)tokens), _arb_vec_init((slong)tokens)};
    for (int s = 0; s < 2; s++)
        queries_and_keys(&r[s], &r[s].m->layers[l].attn, z[s], &q[s], &k[s]);
    for (size_t i = 0; !r->j->t.code && i < tokens; i++) {
        const size_t n = visible(r, i, keys);
        for (size_t h = 0; n > 1 && h < r->m->layers[l].attn.nheads; h++) {
            for (int s = 0; s < 2; s++) {
                const head *const at = &r[s].m->layers[l].attn.heads[h];
                log_weights(log[s], at, row_of(q[s], i) + at->q, k[s], keys, n, prec);
            }
            _arb_vec_sub(log[0], log[0], log[1], (slong)n, prec);
            for (size_t e = 0; e < n; e++) {
                arb_abs(log[0] + e, log[0] + e);
                raise_figure(out, RATIO, l, log[0] + e, prec);
            }
        }
    }
    out->has[figure_place(RATIO, l)] = true;
    for (int s = 0; s < 2; s++) _arb_vec_clear(log[s], (slong)tokens);
    flint_free(keys);
}

/* Largest euclidean distance of a row. */
static void compare_lengths(balls a, balls b, figures *out, figure x, size_t l, slong prec)
{
    arb_ptr sum = _arb_vec_init(2), apart = sum + 1;
    for (size_t i = 0; b.v && i < a.n; i++) {
        arb_zero(sum);
        for (size_t k = 0; k < a.d; k++) {
            arb_sub(apart, row_of(a, i) + k, row_of(b, i) + k, prec);
            arb_addmul(sum, apart, apart, prec);
        }
        arb_sqrtpos(sum, sum, prec);
        raise_figure(out, x, l, sum, prec);
    }
    _arb_vec_clear(sum, 2);
}

static bool has_softmax(const attention *a)
{
    return a->kind == ATTN_EXACT || a->kind == ATTN_POLY || a->kind == ATTN_CONSTQ ||
           a->kind == ATTN_MEANQ;
}

static bool same_pattern(const model *a, const model *b)
{
    return a->pattern == b->pattern && a->window == b->window && a->sinks == b->sinks &&
           a->self_loops == b->self_loops && a->degree == b->degree &&
           (a->degree == 0 || a->expander_seed == b->expander_seed);
}

/* Weights on the rows of each model; branches on the rows that enter the one of f. */
static void look_at_attention(evaluation r[2], size_t l, const balls x[2], const wanted *w,
                              figures *out)
{
    const attention *const a = &r[0].m->layers[l].attn, *const b = &r[1].m->layers[l].attn;
    balls_list *const mark[2] = {r[0].kept, r[1].kept};
    if (a->kind == ATTN_ABSENT || b->kind == ATTN_ABSENT) return;
    const balls z[2] = {normalized(&r[0], x[0], &a->in_norm), normalized(&r[1], x[1], &b->in_norm)};
    if (w->of[RATIO] && has_softmax(a) && has_softmax(b) && a->nheads == b->nheads &&
        same_pattern(r[0].m, r[1].m))
        compare_weights(r, l, z, out);
    if (w->of[ATTENTION] && a->in == b->in && a->out == b->out)
        compare_lengths(attention_branch(&r[0], a, z[0]), attention_branch(&r[1], b, z[0]), out,
                        ATTENTION, l, r->prec);
    for (int s = 0; s < 2; s++) drop_since(&r[s], mark[s], (balls){0});
}

static void look_at_ffn(evaluation r[2], size_t l, balls x, const wanted *w, figures *out)
{
    const ffn *const f = &r[0].m->layers[l].ffn, *const g = &r[1].m->layers[l].ffn;
    balls_list *const mark[2] = {r[0].kept, r[1].kept};
    if (!w->of[FFN] || !f->there || !g->there || f->in != g->in || f->out != g->out) return;
    const balls z = normalized(&r[0], x, &f->in_norm);
    compare_lengths(ffn_branch(&r[0], f, z), ffn_branch(&r[1], g, z), out, FFN, l, r->prec);
    for (int s = 0; s < 2; s++) drop_since(&r[s], mark[s], (balls){0});
}

/* ---- the outputs ----------------------------------------------------------------------------- */

/* The entry that is above all others for certain; SIZE_MAX: not known, or two are equal. */
static size_t largest_entry(arb_srcptr x, size_t d)
{
    size_t best = 0;
    for (size_t k = 1; k < d; k++)
        if (arf_cmp(arb_midref(x + k), arb_midref(x + best)) > 0) best = k;
    for (size_t k = 0; k < d; k++)
        if (k != best && !arb_gt(x + best, x + k)) return SIZE_MAX;
    return best;
}

static void compare_outputs(balls f, balls g, figures *out, slong prec)
{
    arb_ptr x = _arb_vec_init(2), y = x + 1;
    for (size_t i = 0; g.v && i < f.n; i++) {
        arb_srcptr a = row_of(f, i), b = row_of(g, i);
        for (size_t k = 0; k < f.d; k++) {
            arb_sub(x, a + k, b + k, prec);
            arb_abs(x, x);
            raise_figure(out, DIFFERENCE, 0, x, prec);
            arb_sqr(x, x, prec);
            raise_figure(out, APART, 0, x, prec);
            arb_abs(x, a + k);
            raise_figure(out, LARGEST, 0, x, prec);
            arb_sqr(x, x, prec);
            raise_figure(out, SQUARES, 0, x, prec);
        }
        const size_t most_f = largest_entry(a, f.d), most_g = largest_entry(b, f.d);
        const bool known = most_f != SIZE_MAX && most_g != SIZE_MAX;
        out->rows++;
        out->changed += known && most_f != most_g;
        out->open += !known;
        if (f.d != 2) continue;
        arb_sub(x, a + 1, a, prec);
        arb_sub(y, b + 1, b, prec);
        arb_sub(x, x, y, prec);
        arb_abs(x, x);
        raise_figure(out, SCORE, 0, x, prec);
    }
    compare_lengths(f, g, out, ROW, 0, prec);
    _arb_vec_clear(x, 2);
}

/* How far an entry differs between two tokens: largest minus least of each column. */
static void spread(figures *out, balls x, slong prec)
{
    arb_ptr high = _arb_vec_init(2), low = high + 1;
    for (size_t k = 0; k < x.d; k++) {
        arb_set(high, x.v + k);
        arb_set(low, x.v + k);
        for (size_t i = 1; i < x.n; i++) {
            arb_max(high, high, row_of(x, i) + k, prec);
            arb_min(low, low, row_of(x, i) + k, prec);
        }
        arb_sub(high, high, low, prec);
        raise_figure(out, COLLAPSE, 0, high, prec);
    }
    _arb_vec_clear(high, 2);
}

/* |S - S without attention|^2, where every layer has a skip. */
static void without_attention(evaluation r, balls y, figures *out)
{
    r.kept = NULL;
    for (size_t l = 0; l < r.m->nlayers; l++)
        if (r.m->layers[l].attn.kind != ATTN_ABSENT && r.m->layers[l].attn.skip == SKIP_NONE)
            return;
    balls x = embed(&r);
    for (size_t l = 0; l < r.m->nlayers; l++) {
        x = attention_sublayer(&r, &r.m->layers[l].attn, x, true);
        x = ffn_sublayer(&r, &r.m->layers[l].ffn, x);
    }
    const balls none = apply_head(&r, x);
    for (size_t i = 0; i < none.n * none.d; i++) {
        arb_sub(none.v + i, y.v + i, none.v + i, r.prec);
        arb_sqr(none.v + i, none.v + i, r.prec);
        raise_figure(out, WITHOUT, 0, none.v + i, r.prec);
    }
    drop_since(&r, NULL, (balls){0});
}

/* ---- both models ----------------------------------------------------------------------------- */

static void run_layers(evaluation r[2], balls x[2], const wanted *w, figures *out)
{
    const size_t n[2] = {r[0].m->nlayers, r[1].m->nlayers}, most = n[0] > n[1] ? n[0] : n[1];
    const double work = work_of(r[0].m, &r->in) + work_of(r[1].m, &r->in);
    for (size_t l = 0; l < most && !r->j->t.code; l++) {
        if (n[0] == n[1]) look_at_attention(r, l, x, w, out);
        for (int s = 0; s < 2; s++)
            if (l < n[s]) x[s] = attention_sublayer(&r[s], &r[s].m->layers[l].attn, x[s], false);
        if (n[0] == n[1]) look_at_ffn(r, l, x[0], w, out);
        for (int s = 0; s < 2; s++)
            if (l < n[s]) x[s] = ffn_sublayer(&r[s], &r[s].m->layers[l].ffn, x[s]);
        show_progress(r->j, work / (double)most);
    }
}

/* Whether both models take the input, and their outputs can be compared. */
static bool comparable(job *j, const model *f, const model *g, const input *in)
{
    if ((in->x || in->shift) && f->width != g->width)
        return fail(j, NOT_TRUE, "the models take rows of %zu and %zu numbers", f->width, g->width);
    if (!fits(j, f, in) || !fits(j, g, in)) return false;
    if (f->outputs != g->outputs || !f->pool != !g->pool)
        return fail(j, NOT_TRUE, "the models have %zu and %zu outputs", f->outputs, g->outputs);
    return true;
}

bool compare(job *j, const model *f, const model *g, const input *in, const wanted *w, figures *out,
             arb_ptr scores[2], slong prec)
{
    evaluation r[2] = {{j, f, *in, prec, NULL}, {j, g, *in, prec, NULL}};
    balls x[2], y[2];
    if (!comparable(j, f, g, in)) return false;
    for (int s = 0; s < 2; s++) {
        if (r[s].m->pattern == GRAPH) r[s].in.complete = complete_graph(j, r[s].m, in->edges);
        x[s] = embed(&r[s]);
    }
    run_layers(r, x, w, out);
    if (w->of[COLLAPSE] && x[0].v) spread(out, x[0], prec);
    if (w->of[HIDDEN] && x[0].d == x[1].d) compare_lengths(x[0], x[1], out, HIDDEN, 0, prec);
    for (int s = 0; s < 2; s++) y[s] = apply_head(&r[s], x[s]);
    compare_outputs(y[0], y[1], out, prec);
    if (w->of[WITHOUT]) without_attention(r[0], y[0], out);
    for (int s = 0; scores && s < 2; s++)
        for (size_t i = 0; i < y[s].n; i++)
            arb_sub(scores[s] + i, row_of(y[s], i) + 1, row_of(y[s], i), prec);
    for (int s = 0; s < 2; s++) drop_since(&r[s], NULL, (balls){0});
    return j->t.code == 0;
}

/* ---- the area under the ROC curve ------------------------------------------------------------ */

/* A pair of a negative and a positive counts 1 where the positive is above, 1/2 where both are equal:
 * pairs that surely count, and those that may. */
bool auc_interval(job *j, arb_srcptr s, size_t n, const int64_t *target, interval *out)
{
    double all = 0, sure = 0, may = 0;
    for (size_t p = 0; p < n && !j->t.code; p++)
        for (size_t q = 0; target[p] == 1 && q < n; q++) {
            if (target[q] != 0) continue;
            all++;
            sure += arb_gt(s + p, s + q);
            may += !arb_lt(s + p, s + q);
        }
    *out = (interval){sure == 0 ? 0 : nextafter(sure / all, 0),
                      may == all ? 1 : nextafter(may / all, 2)};
    return all > 0;
}
