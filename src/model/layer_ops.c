/* layer_ops.c - the operations of a forward pass on rows, in f64 (the reference) or f32; those
 * entry by entry are in layer_elementwise.c. */
#include "linalg/matrix.h"
#include "linalg/packed.h"
#include "layer_ops.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 }; /* rows per unit of work: fixed */

void *rows_scratch(rows_ctx *c, size_t count, size_t size)
{
    if (c->work.st) return NULL;
    void *const v = scratch_get(c->scratch, count, size);
    if (!v) c->work.st = pare_no_memory(c->work.err);
    return v;
}

rows rows_new(rows_ctx *c, pare_dtype t, size_t n, size_t d)
{
    size_t count;
    if (!pare_mul(&count, n, d)) count = SIZE_MAX; /* refused below */
    return (rows){t, n, d, rows_scratch(c, count, pare_dtype_size(t))};
}

rows rows_part(const rows *r, size_t first, size_t n)
{
    char *const v = (char *)r->v + first * r->d * pare_dtype_size(r->t);
    return (rows){r->t, n, r->d, v};
}

void rows_load(double *to, const rows *r, size_t i)
{
    if (r->t == PARE_F64) {
        memcpy(to, (const double *)r->v + i * r->d, r->d * sizeof *to);
        return;
    }
    const float *const from = (const float *)r->v + i * r->d;
    for (size_t j = 0; j < r->d; j++) to[j] = (double)from[j];
}

void rows_store(rows *r, size_t i, const double *from)
{
    if (r->t == PARE_F64) {
        memcpy((double *)r->v + i * r->d, from, r->d * sizeof *from);
        return;
    }
    float *const to = (float *)r->v + i * r->d;
    for (size_t j = 0; j < r->d; j++) to[j] = (float)from[j];
}

/* ---- maps of rows ---------------------------------------------------------------------------- */

typedef struct map_job {
    rows *y;
    const rows *x;
    row_fn *fn;
    const void *self;
    atomic_bool no_memory;
} map_job;

static void map_block(void *ctx, size_t b)
{
    map_job *const w = ctx;
    const size_t wide = w->x->d > w->y->d ? w->x->d : w->y->d;
    const size_t end = (b + 1) * BLOCK < w->y->n ? (b + 1) * BLOCK : w->y->n;
    double *const v = malloc((wide ? wide : 1) * sizeof *v);
    if (!v) {
        atomic_store(&w->no_memory, true);
        return;
    }
    for (size_t i = b * BLOCK; i < end; i++) {
        rows_load(v, w->x, i);
        w->fn(w->self, i, v);
        rows_store(w->y, i, v);
    }
    free(v);
}

void rows_each(rows *y, const rows *x, row_fn *fn, const void *self, rows_ctx *c)
{
    if (c->work.st) return;
    PARE_ASSERT(y->n == x->n);
    map_job w = {.y = y, .x = x, .fn = fn, .self = self};
    pare_parallel(c->work.exec, (y->n + BLOCK - 1) / BLOCK, map_block, &w);
    if (atomic_load(&w.no_memory)) c->work.st = pare_no_memory(c->work.err);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void packed_dense(rows *y, const rows *x, const packed_matrix *w, const pare_weight *b,
                         rows_ctx *c)
{
    const scratch_mark mark = scratch_save(c->scratch);
    void *const working = rows_scratch(c, packed_scratch(w, x->n, c->int8) + 1, 1);
    const packed_product p = {y->v, y->d, y->d, w, rows_floats(b, c), x->v, x->d, x->n, false};
    if (!c->work.st) packed_apply(&p, &(packed_work){c->int8, working, c->work.exec});
    scratch_reset(c->scratch, mark);
}

void rows_dense(rows *y, const rows *x, const pare_weight *w, const pare_weight *b, rows_ctx *c)
{
    if (c->work.st) return;
    PARE_ASSERT(y->n == x->n && y->d == w->rows && x->d == w->cols && y->t == x->t);
    if (y->t == PARE_F32 && packed_of(w)) {
        packed_dense(y, x, packed_of(w), b, c);
    } else if (y->t == PARE_F32) {
        pare_mat32 out = {y->n, y->d, y->d, y->v};
        const pare_mat32 in = {x->n, x->d, x->d, x->v};
        c->work.st = pare_dense_f32(&out, &in, w, b, c->work.exec, c->work.err);
    } else {
        pare_mat out = pare_mat_of(y->v, y->n, y->d);
        const pare_mat in = pare_mat_of(x->v, x->n, x->d);
        c->work.st = pare_dense_f64(&out, &in, w, b, c->work.exec, c->work.err);
    }
}

void rows_skip(rows *y, const rows *x, const pare_skip *s, rows_ctx *c)
{
    if (s->kind == PARE_SKIP_NONE) return;
    if (s->kind != PARE_SKIP_DENSE) {
        rows_add(y, x, s->kind == PARE_SKIP_DIAGONAL ? &s->w : NULL, c);
        return;
    }
    rows mapped = rows_new(c, y->t, y->n, y->d);
    rows_dense(&mapped, x, &s->w, NULL, c);
    rows_add(y, &mapped, NULL, c);
}
