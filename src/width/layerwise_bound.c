/* layerwise_bound.c - a bound from the errors of the single layers (docs/theory/width.md section
 * 6). The input model is never run from end to end: every one of its layers is applied once to the
 * rows that the small model had before it. With H_k the small model's rows, decoded,
 *
 *     B_0     = |h_0 - H_0|
 *     B_{k+1} = |layer_k(H_k) - H_{k+1}| + move_k(H_k, B_k)
 *
 * gives |h_k - H_k| <= B_k row by row, whatever the H_k are. So the decoder need not be known: it
 * is fitted, from the small model's rows to layer_k(H_k), and then is just rows of doubles in the
 * proof. Where a cut left the coordinates alone (queries and keys) there is nothing to decode.
 * The parts compose: a cut of another layer adds its own local error to the same sum. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "prove.h"
#include <string.h>

#define RCOND 1e-10

pare_mat decode_rows(pare_work *w, const pare_mat *small, const pare_mat *target)
{
    const double *const from = mat_col_means(w, small), *const to = mat_col_means(w, target);
    if (w->st) return (pare_mat){0};
    const pare_mat a = mat_centered(w, small, from), b = mat_centered(w, target, to);
    pare_mat map = mat_zeros(w, small->cols, target->cols);
    if (!w->st) w->st = pare_lstsq(&map, NULL, &a, &b, RCOND, w->arena, w->err);
    pare_mat y = mat_mul(w, &a, false, &map, false);
    for (size_t i = 0; !w->st && i < y.rows; i++)
        for (size_t j = 0; j < y.cols; j++) pare_row_mut(&y, i)[j] += to[j];
    return y;
}

/* The decoded rows H_{k+1}, and B_{k+1}: `next` with radii r is the output of f's layer. */
static pare_mat decode_next(pare_work *w, const pare_mat *next, const pare_ub *r,
                            const pare_mat *small, bool same, pare_ub *b)
{
    pare_mat h = mat_zeros(w, next->rows, next->cols);
    const pare_mark mark = pare_arena_mark(w->arena);
    double *const gap = vec_zeros(w, next->cols);
    const pare_mat y = same ? *small : decode_rows(w, small, next);
    if (!w->st && (y.rows != h.rows || y.cols != h.cols))
        pare_work_fail(w, PARE_ERR_VERIFY, "rows of %zu and %zu numbers at one place of the stream",
                       h.cols, y.cols);
    for (size_t i = 0; !w->st && i < h.rows; i++) {
        memcpy(pare_row_mut(&h, i), pare_row(&y, i), h.cols * sizeof *h.v);
        /* |next_i - h_i|: the differences round once. */
        for (size_t j = 0; j < h.cols; j++) gap[j] = pare_row(next, i)[j] - pare_row(&h, i)[j];
        const pare_ub off = pare_ub_mul(vector_norm(gap, h.cols), pare_ub_exact(1 + 0x1p-51));
        b[i] = pare_ub_add(r[i], off);
    }
    pare_arena_reset(w->arena, mark);
    return h;
}

pare_mat layerwise_path(pare_work *w, const propagation *f, const pare_mat *small, bool same,
                        pare_ub *b)
{
    pare_ub *const r = pare_work_alloc(w, f->in->tokens, sizeof *r);
    if (w->st) return (pare_mat){0};
    const pare_mat first = propagation_embedding(w, f, r);
    pare_mat h = decode_next(w, &first, r, &small[0], same, b);
    for (size_t l = 0; !w->st && l < f->n->nlayers; l++) {
        const pare_mat next = propagation_layer(w, f, l, &h, b, r);
        h = decode_next(w, &next, r, &small[l + 1], same, b);
        if (!w->st)
            w->st = pare_progress(w->exec, "prove layer by layer", l + 1, f->n->nlayers, w->err);
    }
    return h;
}

pare_ub layerwise_gap(pare_work *w, const propagation *f, const pare_mat *small, bool same,
                      const pare_enclosure *out)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    pare_ub most = pare_ub_exact(0), *const b = pare_work_alloc(w, f->in->tokens, sizeof *b);
    pare_mat h = {0};
    pare_enclosure head = {0};
    if (!w->st) h = layerwise_path(w, f, small, same, b);
    if (!w->st) head = propagation_head(w, f, &h);
    if (!w->st && (head.rows != out->rows || head.cols != out->cols))
        pare_work_fail(w, PARE_ERR_VERIFY, "outputs [%zu, %zu] and [%zu, %zu] of the models",
                       head.rows, head.cols, out->rows, out->cols);
    for (size_t i = 0; !w->st && i < head.rows; i++)
        for (size_t c = 0; c < head.cols; c++) {
            const double y = head.mid[i * head.cols + c], z = out->mid[i * head.cols + c];
            const pare_ub far = y == z ? pare_ub_exact(0) : pare_ub_of(y - z);
            const pare_ub rounds =
                pare_ub_add(pare_ub_exact(head.rad[i]), pare_ub_exact(out->rad[i]));
            most = pare_ub_max(most, pare_ub_add(pare_ub_fma(f->top[c], b[i], far), rounds));
        }
    pare_arena_reset(w->arena, mark);
    return w->st ? pare_ub_inf() : most;
}

pare_ub layerwise_gap_of_set(pare_work *w, const model_pair *p, const pare_inputs *set)
{
    pare_ub most = pare_ub_exact(0);
    pare_model_norms *norms = NULL;
    if (propagation_refuses(p->f)) return pare_ub_inf();
    if (!w->st) w->st = pare_model_norms_new(&norms, w->arena, p->g, SILENT_EXEC(w), w->err);
    for (size_t i = 0; !w->st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_input *const in = &set->in[i];
        pare_enclosure out = {0};
        const activations small = activations_of(w, p->small, p->ng, in);
        const propagation f = propagation_new(w, p->f, p->nf, p->rounded_f, in, &small.graph);
        if (!w->st) w->st = pare_enclose(&out, w->arena, p->g, norms, in, SILENT_EXEC(w), w->err);
        if (!w->st) most = pare_ub_max(most, layerwise_gap(w, &f, small.h, p->same, &out));
        pare_arena_reset(w->arena, mark);
    }
    return w->st ? pare_ub_inf() : most;
}
