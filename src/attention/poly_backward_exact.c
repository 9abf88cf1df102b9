/* poly_backward_exact.c - gradients of the rows that polynomial attention has left to the exact
 * kernel. */
#include "poly_backward.h"
#include "tiled.h"
#include <string.h>

typedef struct exact_rows {
    pare_mat32 q, dy, dq;    /* of these rows, */
    pare_mat32 k, v, dk, dv; /* of the keys that the last of them sees */
    key_mask mask;
} exact_rows;

/* Forward for y and lse, then backward. */
static pare_status rows_backward(const exact_rows *x, const poly_job *w, const pare_exec *exec,
                                 pare_err *err)
{
    const size_t n = x->q.rows, dv = x->v.cols;
    const float scale = (float)w->plan->scale;
    pare_arena *const a = pare_arena_new();
    pare_mat32 y = {n, dv, dv, a ? pare_alloc(a, n, dv * sizeof(float)) : NULL};
    float *const lse = a ? pare_alloc(a, n, sizeof *lse) : NULL;
    pare_status st = y.v && lse ? PARE_OK : pare_no_memory(err);
    const tiled_job forward = {.q = &x->q,
                               .k = &x->k,
                               .v = &x->v,
                               .scale = scale,
                               .mask = x->mask,
                               .kernel = &w->kernel->tile,
                               .y = y,
                               .lse = lse};
    const tiled_backward_job backward = {.dq = x->dq,
                                         .dk = x->dk,
                                         .dv = x->dv,
                                         .dy = &x->dy,
                                         .q = &x->q,
                                         .k = &x->k,
                                         .v = &x->v,
                                         .y = &y,
                                         .lse = lse,
                                         .scale = scale,
                                         .mask = x->mask,
                                         .kernel = &w->kernel->tile};
    if (!st) st = tiled_attend(&forward, exec, err);
    if (!st) st = tiled_backward(&backward, exec, err);
    pare_arena_free(a);
    return st;
}

static pare_mat32 rows_at(const pare_mat32 *m, size_t first, size_t rows)
{
    return (pare_mat32){rows, m->cols, m->ld, m->v + first * m->ld};
}

pare_status poly_exact_range_backward(const poly_backward_job *b, size_t first, size_t end,
                                      const pare_exec *exec, pare_err *err)
{
    const poly_job *const w = &b->w;
    const bool causal = w->plan->causal;
    const size_t keys = causal ? end : w->n, rows = end - first;
    const exact_rows x = {.q = rows_at(w->q, first, rows),
                          .dy = rows_at(b->dy, first, rows),
                          .dq = rows_at(&b->dq, first, rows),
                          .k = rows_at(w->k, 0, keys),
                          .v = rows_at(w->v, 0, keys),
                          .dk = rows_at(&b->dk, 0, keys),
                          .dv = rows_at(&b->dv, 0, keys),
                          .mask = {causal ? (int64_t)first + 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX}};
    return rows_backward(&x, w, exec, err);
}

static void copy_rows(pare_mat32 *to, const pare_mat32 *from, const uint8_t *which)
{
    for (size_t i = 0, at = 0; i < from->rows; i++)
        if (which[i])
            memcpy(to->v + at++ * to->ld, from->v + i * from->ld, to->cols * sizeof *to->v);
}

/* `count` scattered rows under the full pattern: packed, and their dq scattered back. */
static pare_status packed_backward(const poly_backward_job *b, size_t count, const pare_exec *exec,
                                   pare_err *err)
{
    const poly_job *const w = &b->w;
    const size_t d = w->d, dv = w->dv;
    pare_arena *const a = pare_arena_new();
    float *const packed = a ? pare_alloc(a, count, (2 * d + dv) * sizeof *packed) : NULL;
    if (!packed) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    exact_rows x = {.q = {count, d, d, packed},
                    .dq = {count, d, d, packed + count * d},
                    .dy = {count, dv, dv, packed + 2 * count * d},
                    .k = *w->k,
                    .v = *w->v,
                    .dk = b->dk,
                    .dv = b->dv,
                    .mask = {PARE_VIS_ALL, SIZE_MAX, SIZE_MAX}};
    copy_rows(&x.q, w->q, b->exact);
    copy_rows(&x.dy, b->dy, b->exact);
    const pare_status st = rows_backward(&x, w, exec, err);
    for (size_t i = 0, at = 0; !st && i < w->n; i++) {
        if (!b->exact[i]) continue;
        for (size_t c = 0; c < d; c++) b->dq.v[i * b->dq.ld + c] += x.dq.v[at * d + c];
        at++;
    }
    pare_arena_free(a);
    return st;
}

pare_status poly_exact_rows_backward(const poly_backward_job *b, const pare_exec *exec,
                                     pare_err *err)
{
    const size_t n = b->w.n;
    size_t count = 0;
    pare_status st = PARE_OK;
    for (size_t i = 0; b->exact && i < n; i++) count += b->exact[i] != 0;
    if (count == 0) return PARE_OK;
    if (count == n) return poly_exact_range_backward(b, 0, n, exec, err);
    if (!b->w.plan->causal) return packed_backward(b, count, exec, err);
    for (size_t i = 0, end; !st && i < n; i = end) { /* each run of marked rows */
        end = i + 1;
        if (!b->exact[i]) continue;
        while (end < n && b->exact[end]) end++;
        st = poly_exact_range_backward(b, i, end, exec, err);
    }
    return st;
}
