/* layer_ops.h - the operations of a forward pass on n rows (tokens) of d numbers, f64 or f32.
 *
 * One name per operation for both number types. The f64 reference works row by row in plain C; the
 * f32 engine has kernels of its own (vector_kernels.h); products are in linalg. What is rare or
 * cheap in either pass goes through rows_each: f64 arithmetic, rounded once when it is stored.
 *
 * After the first failure in a rows_ctx every operation does nothing (base/work.h). Code that reads
 * results by hand asks c->work.st first. */
#ifndef PARE_MODEL_LAYER_OPS_H
#define PARE_MODEL_LAYER_OPS_H
#include "base/work.h"
#include "scratch_stack.h"
#include <pare/model.h>

typedef struct rows {
    pare_dtype t;
    size_t n, d;
    void *v; /* n x d, row-major */
} rows;

/* What an operation works with: threads, the first error, memory. */
typedef struct rows_ctx {
    pare_work work; /* without an arena */
    scratch *scratch;
    bool int8; /* f32: products of packed integers round their inputs too */
} rows_ctx;

/* Not cleared. NULL only after a failure. */
void *rows_scratch(rows_ctx *c, size_t count, size_t size);
rows rows_new(rows_ctx *c, pare_dtype t, size_t n, size_t d);
rows rows_part(const rows *r, size_t first, size_t n); /* a view */
void rows_load(double *to, const rows *r, size_t i);
void rows_store(rows *r, size_t i, const double *from);

/* y_i = fn(x_i): v holds the row and, after the call, the result; it has the capacity of the wider
 * of the two. y may be x. */
typedef void row_fn(const void *self, size_t i, double *v);
void rows_each(rows *y, const rows *x, row_fn *fn, const void *self, rows_ctx *c);

/* A stored vector as floats: itself, or rounded into scratch; NULL when it is absent. */
const float *rows_floats(const pare_weight *w, rows_ctx *c);
/* y = x w^T + b. */
void rows_dense(rows *y, const rows *x, const pare_weight *w, const pare_weight *b, rows_ctx *c);
void rows_norm(rows *y, const rows *x, const pare_norm *n, rows_ctx *c);
/* y = act(y); with u: y = act(y) u, entry by entry. */
void rows_act(rows *y, const rows *u, pare_act a, rows_ctx *c);
/* y += x, or y += w x with w 1 x d. */
void rows_add(rows *y, const rows *x, const pare_weight *w, rows_ctx *c);
/* y += b, the same for every row. */
void rows_shift(rows *y, const pare_weight *b, rows_ctx *c);
/* y += skip(x). */
void rows_skip(rows *y, const rows *x, const pare_skip *s, rows_ctx *c);
#endif
