/* A bound that is put together layer by layer (docs/theory/width.md section 6). The input model is
 * never run from end to end: every one of its layers is applied once to the rows that the small
 * model had before it.
 *
 *     B_0     = |h_0 - H_0|                         H_k: the small model's rows, decoded
 *     B_{k+1} = |layer_k(H_k) - H_{k+1}| + move_k(H_k, B_k)
 *
 * says |h_k - H_k| <= B_k row by row, whatever the H_k are. So the decoder need not be known: it is
 * fitted, from the small model's rows to layer_k(H_k), and then is just rows of doubles in the
 * proof. Where a cut left the coordinates alone (queries and keys) there is nothing to decode.
 * The parts compose: a cut of another layer adds its own local error to the same sum. */
#include "prove.h"
#include <string.h>

#define RCOND 1e-10

pare_mat nearest_rows(work *w, const pare_mat *small, const pare_mat *target)
{
    const double *const from = w_col_means(w, small), *const to = w_col_means(w, target);
    if (w->st) return (pare_mat){0};
    const pare_mat a = w_centred(w, small, from), b = w_centred(w, target, to);
    pare_mat map = w_mat(w, small->cols, target->cols);
    if (!w->st) w->st = pare_lstsq(&map, NULL, &a, &b, RCOND, w->a, w->err);
    pare_mat y = w_mul(w, &a, false, &map, false);
    for (size_t i = 0; !w->st && i < y.rows; i++)
        for (size_t j = 0; j < y.cols; j++) pare_row_mut(&y, i)[j] += to[j];
    return y;
}

/* |x_i - y_i| of doubles; the differences round once. */
static pare_ub apart(const pare_mat *x, const pare_mat *y, size_t i, double *room)
{
    for (size_t j = 0; j < x->cols; j++) room[j] = pare_row(x, i)[j] - pare_row(y, i)[j];
    return pare_ub_mul(vector_norm(room, x->cols), pare_ub_exact(1 + 0x1p-51));
}

/* The rows that stand for f's from here on: `next` of radii r is where f's layer arrives. */
static pare_mat settle(work *w, const pare_mat *next, const pare_ub *r, const pare_mat *small,
                       bool same, pare_ub *b)
{
    pare_mat h = w_mat(w, next->rows, next->cols);
    const pare_mark mark = pare_arena_mark(w->a);
    double *const room = w_vec(w, next->cols);
    const pare_mat y = same ? *small : nearest_rows(w, small, next);
    if (!w->st && (y.rows != h.rows || y.cols != h.cols))
        w_fail(w, PARE_ERR_VERIFY, "rows of %zu and %zu numbers at one place of the stream", h.cols,
               y.cols);
    for (size_t i = 0; !w->st && i < h.rows; i++) {
        memcpy(pare_row_mut(&h, i), pare_row(&y, i), h.cols * sizeof *h.v);
        b[i] = pare_ub_add(r[i], apart(next, &h, i, room));
    }
    pare_arena_reset(w->a, mark);
    return h;
}

pare_mat local_path(work *w, const tube *f, const pare_mat *small, bool same, pare_ub *b)
{
    pare_ub *const r = w_alloc(w, f->in->tokens, sizeof *r);
    if (w->st) return (pare_mat){0};
    const pare_mat first = tube_stem(w, f, r);
    pare_mat h = settle(w, &first, r, &small[0], same, b);
    for (size_t l = 0; !w->st && l < f->n->nlayers; l++) {
        const pare_mat next = tube_layer(w, f, l, &h, b, r);
        h = settle(w, &next, r, &small[l + 1], same, b);
        if (!w->st)
            w->st = pare_progress(w->exec, "prove layer by layer", l + 1, f->n->nlayers, w->err);
    }
    return h;
}

pare_ub local_gap(work *w, const tube *f, const pare_mat *small, bool same,
                  const pare_enclosure *out)
{
    const pare_mark mark = pare_arena_mark(w->a);
    pare_ub most = pare_ub_exact(0), *const b = w_alloc(w, f->in->tokens, sizeof *b);
    pare_mat h = {0};
    pare_enclosure top = {0};
    if (!w->st) h = local_path(w, f, small, same, b);
    if (!w->st) top = tube_top(w, f, &h);
    if (!w->st && (top.rows != out->rows || top.cols != out->cols))
        w_fail(w, PARE_ERR_VERIFY, "outputs [%zu, %zu] and [%zu, %zu] of the models", top.rows,
               top.cols, out->rows, out->cols);
    for (size_t i = 0; !w->st && i < top.rows; i++)
        for (size_t c = 0; c < top.cols; c++) {
            const double y = top.mid[i * top.cols + c], z = out->mid[i * top.cols + c];
            const pare_ub far = y == z ? pare_ub_exact(0) : pare_ub_of(y - z);
            const pare_ub rounds =
                pare_ub_add(pare_ub_exact(top.rad[i]), pare_ub_exact(out->rad[i]));
            most = pare_ub_max(most, pare_ub_add(pare_ub_fma(f->top[c], b[i], far), rounds));
        }
    pare_arena_reset(w->a, mark);
    return w->st ? pare_ub_inf() : most;
}

pare_ub local_of_set(work *w, const pair *p, const pare_inputs *set)
{
    pare_ub most = pare_ub_exact(0);
    pare_model_norms *norms = NULL;
    if (tube_refuses(p->f)) return pare_ub_inf();
    if (!w->st) w->st = pare_model_norms_new(&norms, w->a, p->g, W_QUIET(w), w->err);
    for (size_t i = 0; !w->st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(w->a);
        const pare_input *const in = &set->in[i];
        pare_enclosure out = {0};
        const points small = points_of(w, p->small, p->ng, in);
        const tube f = tube_new(w, p->f, p->nf, p->rounded_f, in, &small.graph);
        if (!w->st) w->st = pare_enclose(&out, w->a, p->g, norms, in, W_QUIET(w), w->err);
        if (!w->st) most = pare_ub_max(most, local_gap(w, &f, small.h, p->same, &out));
        pare_arena_reset(w->a, mark);
    }
    return w->st ? pare_ub_inf() : most;
}
