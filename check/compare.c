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

figures *new_figures(job *j, const model *f, const input *in, const wanted *w)
{
    figures *const out = take(j, 1, sizeof *out);
    const size_t n = figure_place(RATIO, f->nlayers), rows = !in ? 0 : f->pool ? 1 : in->tokens;
    *out = (figures){.n = n, .v = take_balls(j, n), .has = take(j, n, sizeof *out->has)};
    if (w->of[COSINE]) out->cosines = take_balls(j, rows);
    for (int s = 0; s < 2 && (f->pool || f->outputs == 2); s++)
        out->y[s] = new_balls(j, rows, f->outputs);
    return out;
}

/* The larger of both, or the sum. Of a nan the other is not taken: what is not known must not look
 * known. */
static void raise_at(figures *f, size_t at, const arb_t x, slong prec)
{
    arb_ptr most = f->v + at;
    f->has[at] = true;
    if (!arb_is_finite(x) || !arb_is_finite(most))
        arb_indeterminate(most);
    else if (at >= KL_SUM && at <= WITHOUT)
        arb_add(most, most, x, prec);
    else
        arb_max(most, most, x, prec);
}

static void raise_abs(figures *f, figure x, size_t l, arb_t by, slong prec)
{
    arb_abs(by, by);
    raise_at(f, figure_place(x, l), by, prec);
}

void join_figures(figures *all, const figures *one, slong prec)
{
    for (size_t i = 0; i < all->n; i++)
        if (one->has[i]) raise_at(all, i, one->v + i, prec);
    all->rows += one->rows;
    all->changed += one->changed;
    all->open += one->open;
}

/* ---- one layer ------------------------------------------------------------------------------- */

/* Largest |ln(a / a^)| over the heads, queries with two keys at least, and their keys. */
static void compare_weights(const evaluation r[2], size_t l, const balls z[2], figures *out)
{
    const size_t tokens = r->in->tokens;
    const slong prec = r->prec;
    balls q[2], k[2];
    uint32_t *const keys = take(r->j, tokens, sizeof *keys);
    arb_ptr log[2] = {take_balls(r->j, tokens), take_balls(r->j, tokens)};
    for (int s = 0; s < 2; s++)
        queries_and_keys(&r[s], &r[s].m->layers[l].attn, z[s], &q[s], &k[s]);
    for (size_t i = 0; i < tokens; i++) {
        const size_t n = visible(r, i, keys);
        for (size_t h = 0; n > 1 && h < r->m->layers[l].attn.nheads; h++) {
            for (int s = 0; s < 2; s++) {
                const head *const at = &r[s].m->layers[l].attn.heads[h];
                attention_weights(log[s], true, at, row_of(q[s], i) + at->q, k[s], keys, n, prec);
            }
            _arb_vec_sub(log[0], log[0], log[1], (slong)n, prec);
            for (size_t e = 0; e < n; e++) raise_abs(out, RATIO, l, log[0] + e, prec);
        }
    }
    out->has[figure_place(RATIO, l)] = true;
}

/* Largest euclidean distance of a row. */
static void compare_lengths(job *j, balls a, balls b, figures *out, figure x, size_t l, slong prec)
{
    arb_ptr sum = take_balls(j, 2), apart = sum + 1;
    for (size_t i = 0; i < a.n; i++) {
        arb_zero(sum);
        for (size_t k = 0; k < a.d; k++) {
            arb_sub(apart, row_of(a, i) + k, row_of(b, i) + k, prec);
            arb_addmul(sum, apart, apart, prec);
        }
        arb_sqrtpos(sum, sum, prec);
        raise_abs(out, x, l, sum, prec);
    }
}

static bool has_softmax(const sublayer *a)
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
static void look_at(const evaluation r[2], size_t l, bool ffn, const balls x[2], const wanted *w,
                    figures *out)
{
    const layer *const f = &r[0].m->layers[l], *const g = &r[1].m->layers[l];
    const sublayer *const a = ffn ? &f->ffn : &f->attn, *const b = ffn ? &g->ffn : &g->attn;
    block *const mark = r->j->blocks;
    const bool ratio = w->of[RATIO] && !ffn && has_softmax(a) && has_softmax(b) &&
                       a->nheads == b->nheads && same_pattern(r[0].m, r[1].m);
    if (!a->there || !b->there) return;
    const balls z[2] = {normalized(&r[0], x[0], &a->in_norm), normalized(&r[1], x[1], &b->in_norm)};
    if (ratio) compare_weights(r, l, z, out);
    if (w->of[ATTENTION] && a->in == b->in && a->out == b->out)
        compare_lengths(r->j, branch(&r[0], a, z[0]), branch(&r[1], b, z[0]), out,
                        ffn ? FFN : ATTENTION, l, r->prec);
    release(r->j, mark);
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

void cosine_distance(arb_t out, arb_srcptr a, arb_srcptr b, size_t d, arb_ptr t, slong prec)
{
    arb_dot(t, NULL, 0, a, 1, a, 1, (slong)d, prec);
    arb_dot(t + 1, NULL, 0, b, 1, b, 1, (slong)d, prec);
    arb_dot(t + 2, NULL, 0, a, 1, b, 1, (slong)d, prec);
    arb_mul(t, t, t + 1, prec);
    if (arb_is_zero(t)) {
        arb_set_ui(out, 2);
        return;
    }
    arb_rsqrt(t, t, prec);
    arb_mul(out, t, t + 2, prec);
    arb_sub_ui(out, out, 1, prec);
    arb_neg(out, out);
}

/* sum p ln(p / q), p and q the softmax of a and b; t: room for 2 d + 1. */
static void divergence(arb_srcptr a, arb_srcptr b, size_t d, arb_ptr t, slong prec)
{
    arb_ptr p = t + 1, q = p + d;
    _arb_vec_set(p, a, (slong)d);
    _arb_vec_set(q, b, (slong)d);
    log_softmax(p, d, prec);
    log_softmax(q, d, prec);
    _arb_vec_sub(q, p, q, (slong)d, prec);
    for (size_t k = 0; k < d; k++) arb_exp(p + k, p + k, prec);
    arb_dot(t, NULL, 0, p, 1, q, 1, (slong)d, prec);
}

static void compare_rows(arb_srcptr a, arb_srcptr b, size_t d, const wanted *w, figures *out,
                         arb_ptr x, slong prec) /* x: room for 2 d + 4 */
{
    for (size_t k = 0; k < d; k++) {
        arb_sub(x, a + k, b + k, prec);
        raise_abs(out, DIFFERENCE, 0, x, prec);
        arb_sqr(x, x, prec);
        raise_at(out, APART, x, prec);
        arb_set(x, a + k);
        raise_abs(out, LARGEST, 0, x, prec);
        arb_sqr(x, x, prec);
        raise_at(out, SQUARES, x, prec);
    }
    const size_t most_a = largest_entry(a, d), most_b = largest_entry(b, d);
    const bool known = most_a != SIZE_MAX && most_b != SIZE_MAX;
    out->changed += known && most_a != most_b;
    out->open += !known;
    if (d == 2) {
        arb_sub(x, a + 1, a, prec);
        arb_sub(x, x, b + 1, prec);
        arb_add(x, x, b, prec);
        raise_abs(out, SCORE, 0, x, prec);
    }
    if (out->cosines) {
        arb_ptr c = out->cosines + out->rows;
        cosine_distance(c, a, b, d, x, prec);
        raise_at(out, COSINE, c, prec);
    }
    if (w->of[KL] || w->of[KL_SUM]) {
        divergence(a, b, d, x, prec);
        raise_at(out, KL, x, prec);
        raise_at(out, KL_SUM, x, prec);
    }
    out->rows++;
}

/* How far an entry differs between two tokens: largest minus least of each column. */
static void spread(job *j, figures *out, balls x, slong prec)
{
    arb_ptr high = take_balls(j, 2), low = high + 1;
    for (size_t k = 0; k < x.d; k++) {
        arb_set(high, x.v + k);
        arb_set(low, x.v + k);
        for (size_t i = 1; i < x.n; i++) {
            arb_max(high, high, row_of(x, i) + k, prec);
            arb_min(low, low, row_of(x, i) + k, prec);
        }
        arb_sub(high, high, low, prec);
        raise_abs(out, COLLAPSE, 0, high, prec);
    }
}

/* |S - S without attention|^2, where every layer has a skip. */
static void without_attention(const evaluation *e, balls y, figures *out)
{
    for (size_t l = 0; l < e->m->nlayers; l++)
        if (e->m->layers[l].attn.there && e->m->layers[l].attn.skip == SKIP_NONE) return;
    balls x = embed(e);
    for (size_t l = 0; l < e->m->nlayers; l++) {
        x = apply_sublayer(e, &e->m->layers[l].attn, x, true);
        x = apply_sublayer(e, &e->m->layers[l].ffn, x, false);
    }
    const balls none = apply_head(e, x);
    for (size_t i = 0; i < none.n * none.d; i++) {
        arb_sub(none.v + i, y.v + i, none.v + i, e->prec);
        arb_sqr(none.v + i, none.v + i, e->prec);
        raise_at(out, WITHOUT, none.v + i, e->prec);
    }
}

/* ---- both models ----------------------------------------------------------------------------- */

/* Each half of each layer: the feed-forward part comes after attention. */
static void run_layers(const evaluation r[2], balls x[2], const wanted *w, figures *out)
{
    const size_t n[2] = {r[0].m->nlayers, r[1].m->nlayers}, most = n[0] > n[1] ? n[0] : n[1];
    const double work = work_of(r[0].m, r->in) + work_of(r[1].m, r->in);
    for (size_t half = 0; half < 2 * most; half++) {
        const size_t l = half / 2;
        if (n[0] == n[1]) look_at(r, l, half % 2, x, w, out);
        for (int s = 0; s < 2; s++) {
            const layer *const at = &r[s].m->layers[l];
            if (l < n[s])
                x[s] = apply_sublayer(&r[s], half % 2 ? &at->ffn : &at->attn, x[s], false);
        }
        show_progress(r->j, work / 2 / (double)most);
    }
}

void compare(job *j, const model *f, const model *g, const input *in, const wanted *w, figures *out,
             slong prec)
{
    block *const mark = j->blocks;
    if ((in->x || in->shift) && f->width != g->width)
        fail(j, NOT_TRUE, "the models take rows of %zu and %zu numbers", f->width, g->width);
    if (f->outputs != g->outputs || !f->pool != !g->pool)
        fail(j, NOT_TRUE, "the models have %zu and %zu outputs", f->outputs, g->outputs);
    const evaluation r[2] = {begin_evaluation(j, f, in, prec), begin_evaluation(j, g, in, prec)};
    balls x[2] = {embed(&r[0]), embed(&r[1])};
    run_layers(r, x, w, out);
    if (w->of[COLLAPSE]) spread(j, out, x[0], prec);
    if (w->of[HIDDEN] && x[0].d == x[1].d) compare_lengths(j, x[0], x[1], out, HIDDEN, 0, prec);
    const balls y[2] = {apply_head(&r[0], x[0]), apply_head(&r[1], x[1])};
    arb_ptr room = take_balls(j, 2 * y->d + 4);
    for (size_t i = 0; i < y->n; i++)
        compare_rows(row_of(y[0], i), row_of(y[1], i), y->d, w, out, room, prec);
    compare_lengths(j, y[0], y[1], out, ROW, 0, prec);
    if (w->of[WITHOUT]) without_attention(r, y[0], out);
    for (int s = 0; out->y[s].v && s < 2; s++)
        _arb_vec_set(out->y[s].v, y[s].v, (slong)(y->n * y->d));
    release(j, mark);
}
