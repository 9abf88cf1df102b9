/* compare.c - both models on one input, layer by layer side by side: the difference of the outputs,
 * which rows keep their largest entry, and what claims about one layer are about. */
#include "check.h"

/* ---- figures --------------------------------------------------------------------------------- */

size_t figure_place(figure x, size_t block)
{
    return x < RATIO ? (size_t)x : (size_t)x + 3 * block;
}

size_t count_figures(const model *f)
{
    return figure_place(RATIO, f->blocks);
}

interval *new_figures(size_t n)
{
    interval *const v = take(n, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = (interval){-1, -1};
    return v;
}

interval interval_of(const arb_t x)
{
    interval v = {-INFINITY, INFINITY};
    arf_t low, high;
    if (!arb_is_finite(x)) return v;
    arf_init(low);
    arf_init(high);
    arb_get_interval_arf(low, high, x, 64);
    v = (interval){arf_get_d(low, ARF_RND_FLOOR), arf_get_d(high, ARF_RND_CEIL)};
    arf_clear(low);
    arf_clear(high);
    return v;
}

/* a + b, rounded outwards where it is not exact. */
static double sum(double a, double b, double towards)
{
    const double s = a + b;
    return s - a == b && s - b == a ? s : nextafter(s, towards);
}

void join_figure(interval *all, size_t place, interval one)
{
    interval *const to = &all[place];
    if (one.high < 0) return;
    one.low = fmax(one.low, 0);
    if (to->high < 0)
        *to = one;
    else if (place >= KL_SUM && place <= CHANGED)
        *to = (interval){sum(to->low, one.low, 0), sum(to->high, one.high, INFINITY)};
    else
        *to = (interval){fmax(to->low, one.low), fmax(to->high, one.high)};
}

void note(interval *all, size_t place, arb_t x)
{
    arb_abs(x, x);
    join_figure(all, place, interval_of(x));
}

/* ---- one block ------------------------------------------------------------------------------- */

/* Largest |ln(a / a^)| over the heads, queries with two keys at least, and their keys. */
static void compare_weights(const evaluation r[2], const part p[2], const balls z[2], interval *out)
{
    const cJSON *const pattern = find(r[0].m->architecture, "pattern");
    const size_t tokens = r->in->tokens;
    uint32_t *const keys = take(tokens, sizeof *keys);
    arb_ptr log[2] = {take_balls(tokens), take_balls(tokens)};
    heads h[2];
    for (int s = 0; s < 2; s++) h[s] = attention_heads(&r[s], p[s], z[s]);
    if (!h->n || h[0].n != h[1].n ||
        !cJSON_Compare(pattern, find(r[1].m->architecture, "pattern"), true))
        return;
    *out = (interval){0, 0};
    for (size_t i = 0; i < tokens; i++) {
        const size_t n = visible(r, i, keys);
        for (size_t t = 0; n > 1 && t < h->n; t++) {
            for (int s = 0; s < 2; s++) log_weights(log[s], &h[s].list[t], i, keys, n);
            _arb_vec_sub(log[0], log[0], log[1], (slong)n, bits);
            for (size_t k = 0; k < n; k++) note(out, 0, log[0] + k);
        }
    }
}

/* Largest euclidean distance of a row. */
static void compare_rows(balls a, balls b, interval *out, size_t place)
{
    arb_ptr size = take_balls(1), apart = take_balls(a.d);
    for (size_t i = 0; a.d == b.d && i < a.n; i++) {
        _arb_vec_sub(apart, row_of(a, i), row_of(b, i), (slong)a.d, bits);
        arb_dot(size, NULL, 0, apart, 1, apart, 1, (slong)a.d, bits);
        arb_sqrtpos(size, size, bits);
        note(out, place, size);
    }
}

/* Weights on the rows of each model; branches on the rows that enter the one of f. */
static void compare_part(const evaluation r[2], size_t block, const part p[2], const balls x[2],
                         unsigned wanted, interval *out)
{
    chunk *const mark = now->memory;
    const figure what = p->ffn ? FFN : ATTENTION;
    if (!p[0].o || !p[1].o || !(wanted & (BIT(RATIO) | BIT(what)))) return;
    const balls z[2] = {part_input(&r[0], p[0], x[0]), part_input(&r[1], p[1], x[1])};
    if (!p->ffn && wanted & BIT(RATIO)) compare_weights(r, p, z, &out[figure_place(RATIO, block)]);
    if (wanted & BIT(what) && z[0].d == z[1].d)
        compare_rows(branch(&r[0], p[0], z[0]), branch(&r[1], p[1], z[0]), out,
                     figure_place(what, block));
    release(mark, NULL, NULL);
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

/* 1 - a.b / (|a| |b|); of a row of zeros 2. t: room for 3. */
void cosine_distance(arb_t out, arb_srcptr a, arb_srcptr b, size_t d, arb_ptr t)
{
    arb_dot(t, NULL, 0, a, 1, a, 1, (slong)d, bits);
    arb_dot(t + 1, NULL, 0, b, 1, b, 1, (slong)d, bits);
    arb_dot(t + 2, NULL, 0, a, 1, b, 1, (slong)d, bits);
    arb_mul(t, t, t + 1, bits);
    arb_set_ui(out, 2);
    if (arb_is_zero(t)) return;
    arb_rsqrt(t, t, bits);
    arb_mul(out, t, t + 2, bits);
    arb_sub_ui(out, out, 1, bits);
    arb_neg(out, out);
}

/* sum p ln(p / q), p and q the softmax of a and b. t: room for 2 d + 1. */
static void divergence(arb_srcptr a, arb_srcptr b, size_t d, arb_ptr t)
{
    arb_ptr p = t + 1, q = p + d;
    _arb_vec_set(p, a, (slong)d);
    _arb_vec_set(q, b, (slong)d);
    log_softmax(p, d);
    log_softmax(q, d);
    _arb_vec_sub(q, p, q, (slong)d, bits);
    for (size_t k = 0; k < d; k++) arb_exp(p + k, p + k, bits);
    arb_dot(t, NULL, 0, p, 1, q, 1, (slong)d, bits);
}

/* One row of f and g; x: room for 2 d + 4. */
static void compare_outputs(const model *g, arb_srcptr a, arb_srcptr b, size_t d, unsigned wanted,
                            interval *out, arb_ptr x)
{
    for (size_t k = 0; k < d; k++) {
        arb_sub(x, a + k, b + k, bits);
        note(out, DIFFERENCE, x);
        if (g->vocab == d && !token_shares(g, k)) note(out, OTHERS, x);
        arb_sqr(x, x, bits);
        note(out, APART, x);
        arb_sqr(x, a + k, bits);
        note(out, SQUARES, x);
    }
    const size_t most_a = largest_entry(a, d), most_b = largest_entry(b, d);
    const bool known = most_a != SIZE_MAX && most_b != SIZE_MAX;
    join_figure(out, ROWS, (interval){1, 1});
    join_figure(out, CHANGED, (interval){known && most_a != most_b, !known || most_a != most_b});
    if (d == 2) {
        arb_sub(x, a + 1, a, bits);
        arb_sub(x, x, b + 1, bits);
        arb_add(x, x, b, bits);
        note(out, SCORE, x);
    }
    if (wanted & BIT(COSINE)) {
        cosine_distance(x + 3, a, b, d, x);
        note(out, COSINE, x + 3);
    }
    if (wanted & (BIT(KL) | BIT(KL_SUM))) {
        divergence(a, b, d, x);
        note(out, KL, x);
        note(out, KL_SUM, x);
    }
}

/* How far an entry differs between two tokens: largest minus least of each column. */
static void spread(balls x, interval *out)
{
    arb_ptr high = take_balls(2), low = high + 1;
    for (size_t k = 0; k < x.d; k++) {
        arb_set(high, x.v + k);
        arb_set(low, x.v + k);
        for (size_t i = 1; i < x.n; i++) {
            arb_max(high, high, row_of(x, i) + k, bits);
            arb_min(low, low, row_of(x, i) + k, bits);
        }
        arb_sub(high, high, low, bits);
        note(out, COLLAPSE, high);
    }
}

/* ---- both models ----------------------------------------------------------------------------- */

void compare(const model m[2], const input *in, unsigned wanted, interval *out, balls y[2])
{
    if ((in->width || in->shift) && m[0].width != m[1].width)
        fail(NOT_TRUE, "the models take rows of %zu and %zu numbers", m[0].width, m[1].width);
    chunk *const mark = now->memory;
    const evaluation r[2] = {begin_evaluation(&m[0], in), begin_evaluation(&m[1], in)};
    const size_t n[2] = {m[0].blocks, m[1].blocks}, most = n[0] > n[1] ? n[0] : n[1];
    const double work = work_of(&m[0], in) + work_of(&m[1], in);
    balls x[2] = {embed(&r[0]), embed(&r[1])};
    for (size_t half = 0; half < 2 * most; half++) {
        const part p[2] = {part_of(&m[0], half / 2, half % 2), part_of(&m[1], half / 2, half % 2)};
        if (n[0] == n[1]) compare_part(r, half / 2, p, x, wanted, out);
        for (int s = 0; s < 2; s++) x[s] = apply_part(&r[s], p[s], x[s]);
        show_progress(work / 2 / (double)most);
    }
    if (wanted & BIT(COLLAPSE)) spread(x[0], out);
    if (wanted & BIT(HIDDEN)) compare_rows(x[0], x[1], out, HIDDEN);
    for (int s = 0; s < 2; s++) y[s] = apply_head(&r[s], x[s]);
    if (y[0].n != y[1].n || y[0].d != y[1].d)
        fail(NOT_TRUE, "the models have %zu and %zu outputs", y[0].d, y[1].d);
    arb_ptr room = take_balls(2 * y->d + 4);
    for (size_t i = 0; i < y->n; i++)
        compare_outputs(&m[1], row_of(y[0], i), row_of(y[1], i), y->d, wanted, out, room);
    compare_rows(y[0], y[1], out, ROW);
    release(mark, y[0].v, y[1].v);
}
