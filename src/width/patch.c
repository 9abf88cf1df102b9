/* patch.c - rows through a net, with radii.
 *
 * A map: with |X - M| <= r for the row it reads,
 *     |(W X + b) - fl(W M + b)| <= |W|_2 r + round (|W|_F |M| + |b|) + b_off,
 * where `round` is gamma_{in+3} and the drift of W. A sum of maps (branch and skip) is one sum of
 * more terms: their roundings are counted for each with the length of both.
 * Activations: |act(x) - act(y)| <= slope |x - y|; ReLU is exact, the others are off by 16 u |x|.
 * The last map: entry o moves by |w_o| r at most. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "patch.h"
#include <string.h>

double patch_norm(const double *x, size_t n)
{
    double part[4] = {0}, s = 0;
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t t = 0; t < 4; t++) part[t] += x[i + t] * x[i + t];
    for (; i < n; i++) s += x[i] * x[i];
    return raised(sqrt(s + ((part[0] + part[1]) + (part[2] + part[3]))));
}

/* ---- room ----------------------------------------------------------------------------------- */

patch_rows patch_rows_new(pare_work *w, const patch_net *p, size_t n)
{
    patch_rows t = {.n = n};
    size_t read = 0, heads = 0;
    for (size_t l = 0; l < p->nlayers; l++) {
        if (p->layers[l].qkv.w.rows > read) read = p->layers[l].qkv.w.rows;
        if (p->layers[l].nheads > heads) heads = p->layers[l].nheads;
    }
    t.h = mat_zeros(w, n, p->widest);
    t.qkv = mat_zeros(w, n, read);
    t.rad = vec_zeros(w, n);
    t.norm = vec_zeros(w, n);
    t.mark = pare_work_alloc(w, n * heads, sizeof *t.mark);
    return t;
}

patch_scratch patch_scratch_new(pare_work *w, const patch_net *p, size_t room, size_t keys)
{
    return (patch_scratch){.room = room,
                           .a = mat_zeros(w, room, p->widest),
                           .b = mat_zeros(w, room, p->widest),
                           .rad = vec_zeros(w, room),
                           .norm = vec_zeros(w, room),
                           .weight = vec_zeros(w, keys)};
}

/* Rows [from, to) of m, the first `cols` columns of them. */
static pare_mat rows_of(const pare_mat *m, size_t from, size_t to, size_t cols)
{
    return pare_mat_part(m, from, 0, to - from, cols);
}

/* ---- maps ----------------------------------------------------------------------------------- */

static double map_radius(const patch_map *m, double norm, double rad)
{
    return m->two * rad + m->round * (m->fro * norm + m->b2) + m->b_off;
}

/* y = W x + b, or y += W x. */
static void apply(pare_mat *y, const patch_map *m, const pare_mat *x, bool add)
{
    for (size_t i = 0; !add && i < y->rows; i++)
        memcpy(pare_row_mut(y, i), m->b, y->cols * sizeof *m->b);
    if (m->w.v && !m->diagonal) pare_gemm(y, 1, x, false, &m->w, true, 1);
    for (size_t i = 0; m->diagonal && i < y->rows; i++)
        for (size_t k = 0; k < y->cols; k++) pare_row_mut(y, i)[k] += m->w.v[k] * pare_row(x, i)[k];
}

/* ---- the ends ------------------------------------------------------------------------------- */

void patch_enter(const patch_net *p, patch_rows *t, const pare_mat *x, size_t from, size_t to)
{
    const size_t d = p->stem.w.rows;
    pare_mat h = rows_of(&t->h, from, to, d);
    const pare_mat in = rows_of(x, from, to, x->cols);
    apply(&h, &p->stem, &in, false);
    for (size_t i = from; i < to; i++) {
        t->rad[i] = raised(map_radius(&p->stem, patch_norm(pare_row(x, i), x->cols), 0));
        t->norm[i] = patch_norm(pare_row(&t->h, i), d);
    }
}

void patch_leave(const patch_net *p, const patch_rows *t, pare_mat *y, double *rad, size_t from,
                 size_t to)
{
    const patch_map *const m = &p->top;
    pare_mat out = rows_of(y, from, to, m->w.rows);
    const pare_mat h = rows_of(&t->h, from, to, m->w.cols);
    apply(&out, m, &h, false);
    for (size_t i = from; i < to; i++) {
        const double local = m->round * (m->row2 * t->norm[i] + m->bmax) + m->b_off;
        rad[i] = raised(m->row2 * t->rad[i] + local);
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

static double off_centre(const double *k, const double *center, size_t n)
{
    double s = 0;
    for (size_t c = 0; c < n; c++) s += (k[c] - center[c]) * (k[c] - center[c]);
    return raised(s);
}

static patch_mark mark_of(const patch_head *hd, const double *qkv, double norm, double rad)
{
    return (patch_mark){.q_norm = patch_norm(qkv + hd->q, hd->dk),
                        .q_rad = raised(map_radius(&hd->mq, norm, rad)),
                        .k_norm = patch_norm(qkv + hd->k, hd->dk),
                        .k_rad = raised(map_radius(&hd->mk, norm, rad)),
                        .v_norm = patch_norm(qkv + hd->v, hd->dv),
                        .v_rad = raised(map_radius(&hd->mv, norm, rad)),
                        .k_off2 = off_centre(qkv + hd->k, hd->center, hd->dk)};
}

void patch_project(const patch_layer *l, patch_rows *t, size_t from, size_t to)
{
    pare_mat y = rows_of(&t->qkv, from, to, l->qkv.w.rows);
    const pare_mat h = rows_of(&t->h, from, to, l->din);
    apply(&y, &l->qkv, &h, false);
    for (size_t i = from; i < to; i++)
        for (size_t g = 0; g < l->nheads; g++)
            t->mark[i * l->nheads + g] =
                mark_of(&l->heads[g], pare_row(&t->qkv, i), t->norm[i], t->rad[i]);
}

/* The stream that row i of the view had, copied; its radius and norm. */
static void fetch(double *to, double *rad, double *norm, const patch_view *v, size_t i, size_t d)
{
    const uint32_t row = v->self[i];
    const bool base = row < v->split;
    const patch_rows *const t = base ? v->base : v->own;
    const size_t at = base ? row : row - v->split;
    memcpy(to, pare_row(&t->h, at), d * sizeof *to);
    *rad = t->rad[at];
    *norm = t->norm[at];
}

/* z = Wo o + R1 h + c1, into `next`. */
static void attention_part(const patch_layer *l, const patch_view *v, patch_rows *next,
                           patch_scratch *s, size_t from, size_t to)
{
    const size_t n = to - from;
    pare_mat o = rows_of(&s->a, 0, n, l->pooled), h = rows_of(&s->b, 0, n, l->din);
    pare_mat z = rows_of(&next->h, from, to, l->dout);
    for (size_t i = 0; i < n; i++) {
        double rad, norm;
        const double r = patch_attend(pare_row_mut(&o, i), l, v, from + i, s->weight);
        fetch(pare_row_mut(&h, i), &rad, &norm, v, from + i, l->din);
        const double branch = map_radius(&l->wo, patch_norm(pare_row(&o, i), l->pooled), r);
        next->rad[from + i] = raised(branch + map_radius(&l->skip1, norm, rad));
    }
    apply(&z, &l->wo, &o, false);
    apply(&z, &l->skip1, &h, true);
    for (size_t i = from; i < to; i++) next->norm[i] = patch_norm(pare_row(&next->h, i), l->dout);
}

/* ---- feed-forward --------------------------------------------------------------------------- */

static double activate(double *t, size_t n, const patch_layer *l, double rad)
{
    if (l->act == PARE_ACT_RELU) {
        for (size_t k = 0; k < n; k++) t[k] = t[k] > 0 ? t[k] : 0;
        return rad;
    }
    const double local = 16 * PARE_UNIT_F64 * patch_norm(t, n);
    for (size_t k = 0; k < n; k++) t[k] = pare_act_f64(l->act, t[k]);
    return raised(l->slope * rad + local);
}

/* h' = W2 act(W1 z + b1) + R2 z + c2; z is in `next` and is overwritten. */
static void hidden_part(const patch_layer *l, patch_rows *next, patch_scratch *s, size_t from,
                        size_t to)
{
    const size_t n = to - from, hidden = l->w1.w.rows, dout = l->w2.w.rows;
    pare_mat a = rows_of(&s->a, 0, n, hidden), y = rows_of(&s->b, 0, n, dout);
    const pare_mat z = rows_of(&next->h, from, to, l->w1.w.cols);
    apply(&a, &l->w1, &z, false);
    for (size_t i = 0; i < n; i++) {
        const double norm = next->norm[from + i], rad = next->rad[from + i];
        const double before = raised(map_radius(&l->w1, norm, rad));
        const double after = activate(pare_row_mut(&a, i), hidden, l, before);
        const double branch = map_radius(&l->w2, patch_norm(pare_row(&a, i), hidden), after);
        s->rad[i] = raised(branch + map_radius(&l->skip2, norm, rad));
    }
    apply(&y, &l->w2, &a, false);
    apply(&y, &l->skip2, &z, true);
    for (size_t i = 0; i < n; i++) {
        memcpy(pare_row_mut(&next->h, from + i), pare_row(&y, i), dout * sizeof *y.v);
        next->rad[from + i] = s->rad[i];
        next->norm[from + i] = patch_norm(pare_row(&y, i), dout);
    }
}

void patch_step(const patch_layer *l, const patch_view *v, patch_rows *next, patch_scratch *s,
                size_t from, size_t to)
{
    PARE_ASSERT(to - from <= s->room);
    attention_part(l, v, next, s, from, to);
    hidden_part(l, next, s, from, to);
}
