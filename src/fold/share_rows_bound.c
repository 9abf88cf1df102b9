/* share_rows_bound.c - how far shared rows move outputs, over all inputs.
 *
 * The final state h is what the last map reads. Behind a norm that divides, h = gain o u + bias with
 * |u|_2 <= sqrt(divisor), as |u|^2 = n |x|^2 / (|x|^2 + shift + n eps) with shift, eps >= 0; the mean of
 * such rows over tokens is one more point of the same ellipsoid. So for every vector d
 *
 *     |h . d| <= sqrt(divisor) |gain o d|_2 + |bias . d| =: size(d).
 *
 * Where a maximum over tokens, an activation (|act(z)| <= |z|, |tanh| <= 1) or a dense layer comes in
 * between, h is in a box: |h_j| <= c_j, and size(d) = sum_j c_j |d_j|.
 *
 * Theorem. Let f and g be the same but for rows of the embedding, e_v in f and e'_v in g.
 *  - On inputs without a token whose row changed both have the same final states. With a head of its own
 *    all outputs are the same. With a tied head output v moves by |h . (e_v - e'_v)| <= size(e_v - e'_v).
 *  - If no output moves by more than B, then KL(softmax f, softmax g) <= min(B^2 / 2, 2 B).
 *  - On all inputs output v moves by at most size(w_v) + size(w'_v), w and w' the rows of the last maps.
 * Proof of the second: KL = ln E_p[e^D] - E_p[D] for D = g - f in [-B, B], p = softmax f, which is at most
 * (2 B)^2 / 8 (Hoeffding) and at most max D - min D. [] */
#include "cert/enclose.h"
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include "share_rows.h"
#include <math.h>

typedef struct final_state {
    bool bounded;
    const pare_norm *norm; /* what the rows have passed last; then, if `box`, what follows */
    double radius;         /* sqrt(divisor), rounded up */
    const double *box;     /* c_j; NULL: the ellipsoid */
    size_t d;
} final_state;

static double size_at(const pare_weight *w, size_t i, double otherwise)
{
    return pare_has(w) ? fabs(pare_weight_at(w, i)) : otherwise;
}

/* d_j = a_j - b_j, in magnitude from above; b may be NULL. */
static double entry_up(const pare_weight *a, size_t i, const pare_weight *b, size_t k)
{
    const double x = pare_weight_at(a, i), y = b ? pare_weight_at(b, k) : 0;
    return x == y ? 0 : b ? up(fabs(x - y)) : fabs(x);
}

/* size(row i of a - row k of b). */
static double row_size(const final_state *s, const pare_weight *a, size_t i, const pare_weight *b,
                       size_t k)
{
    double squares = 0, rest = 0;
    if (!s->bounded) return INFINITY;
    for (size_t j = 0; j < s->d; j++) {
        const double d = entry_up(a, i * s->d + j, b, k * s->d + j);
        if (s->box) {
            rest = up_fma(s->box[j], d, rest);
            continue;
        }
        const double g = up_mul(size_at(&s->norm->gain, j, 1), d);
        squares = up_fma(g, g, squares);
        rest = up_fma(size_at(&s->norm->bias, j, 0), d, rest);
    }
    return s->box ? rest : up_fma(s->radius, up_sqrt(squares), rest);
}

/* The norm that the rows have passed last before the head's own parts; NULL: the stream as it comes. */
static const pare_norm *last_norm(const pare_model *m)
{
    if (m->head.norm.kind != PARE_NORM_NONE) return &m->head.norm;
    for (size_t b = m->nblocks; b-- > 0;) {
        if (m->blocks[b].ffn.kind != PARE_FFN_NONE) return &m->blocks[b].ffn.out_norm;
        if (m->blocks[b].attn.kind != PARE_ATTN_NONE) return &m->blocks[b].attn.out_norm;
    }
    return &m->embedding.norm;
}

static double *entry_bounds(pare_work *w, const final_state *s)
{
    double *const c = pare_work_alloc(w, s->d, sizeof *c);
    for (size_t j = 0; c && j < s->d; j++)
        c[j] = up_fma(s->radius, size_at(&s->norm->gain, j, 1), size_at(&s->norm->bias, j, 0));
    return c;
}

static double *dense_bounds(pare_work *w, const final_state *s, const pare_dense *map)
{
    double *const c = pare_work_alloc(w, map->w.rows, sizeof *c);
    for (size_t i = 0; c && i < map->w.rows; i++)
        c[i] = up_add(row_size(s, &map->w, i, NULL, 0), size_at(&map->b, i, 0));
    return c;
}

static final_state read_state(pare_work *w, const pare_model *m, const char **words)
{
    const pare_output_head *const t = &m->head;
    const pare_norm *const n = last_norm(m);
    final_state s = {.norm = n, .d = pare_model_width(m, m->nblocks)};
    s.bounded = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    *words = s.bounded ? "it is behind a norm that divides by its length"
                       : "no norm that divides by the length of its input stands before the head";
    if (!s.bounded) return s;
    s.radius = up_sqrt(n->divisor);
    if (t->pool == PARE_POOL_MAX || (t->act != PARE_ACT_NONE && !pare_has(&t->dense.w)))
        s.box = entry_bounds(w, &s);
    if (pare_has(&t->dense.w)) {
        s.box = dense_bounds(w, &s, &t->dense);
        s.d = t->dense.w.rows;
    }
    if (t->act == PARE_ACT_TANH && !w->st) {
        double *const c = pare_work_alloc(w, s.d, sizeof *c);
        for (size_t j = 0; c && j < s.d; j++) c[j] = up_min(1, s.box[j]);
        s.box = c;
    }
    s.bounded = !w->st;
    return s;
}

static void take_most(pare_ub *to, double x)
{
    *to = pare_ub_max(*to, pare_ub_exact(x));
}

/* Outputs that are the final state itself, or of length 1. */
static double without_map(const final_state *s, const pare_model *m)
{
    double most = 0;
    for (size_t j = 0; s->bounded && j < s->d; j++)
        most = up_max(most, s->box ? s->box[j]
                                   : up_fma(s->radius, size_at(&s->norm->gain, j, 1),
                                            size_at(&s->norm->bias, j, 0)));
    const double twice = s->bounded ? up_mul(2, most) : INFINITY;
    return m->head.normalize ? up_min(2, twice) : twice;
}

void share_rows_bound(share_bound *out, pare_work *w, const pare_model *f, const pare_model *g)
{
    const final_state s = read_state(w, f, &out->state);
    const pare_weight *const a = pare_head_weight(f), *const b = pare_head_weight(g);
    const uint32_t *const p = pare_output_map(f), *const q = pare_output_map(g);
    const bool mapped = pare_has(a) && !f->head.normalize;
    out->bounded = s.bounded;
    out->all = out->without = pare_ub_exact(0);
    out->kl = pare_ub_inf();
    if (w->st) return;
    if (!mapped) take_most(&out->all, without_map(&s, f));
    for (size_t o = 0; mapped && o < pare_model_outputs(f); o++) {
        const size_t i = p ? p[o] : o, k = q ? q[o] : o;
        take_most(&out->all, up_add(row_size(&s, a, i, NULL, 0), row_size(&s, b, k, NULL, 0)));
        if (f->head.tied) take_most(&out->without, row_size(&s, a, i, b, k));
    }
    const double most = out->without.v;
    if (mapped && pare_model_outputs(f) >= 2)
        out->kl = pare_ub_exact(up_min(up_mul(0.5 * most, most), up_mul(2, most)));
}
