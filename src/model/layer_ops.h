/* layer_ops.h - what flows through a forward pass: n rows of d numbers, f64 or f32.
 *
 * One story for both passes: the steps below have one name each. The f64 reference works row by row
 * in plain C; the f32 engine has kernels of its own (vector_kernels.h), products are in linalg. What is rare
 * or cheap in either pass goes through rows_map: f64 arithmetic, rounded once when it is stored. */
#ifndef PARE_MODEL_LAYER_OPS_H
#define PARE_MODEL_LAYER_OPS_H
#include "scratch_stack.h"
#include <pare/model.h>

typedef struct rows {
    pare_dtype t;
    size_t n, d;
    void *v; /* n x d, row-major */
} rows;

/* How a step works: its threads, its working memory, where it says what went wrong. */
typedef struct rows_ctx {
    scratch *scratch;
    const pare_exec *exec;
    pare_err *err;
} rows_ctx;

PARE_MUST_USE pare_status rows_new(rows *out, const rows_ctx *c, pare_dtype t, size_t n, size_t d);
rows rows_part(const rows *r, size_t first, size_t n); /* a view */
void rows_load(double *to, const rows *r, size_t i);
void rows_store(rows *r, size_t i, const double *from);

/* y_i = fn(x_i): v holds the row (and, after the call, the result; it has room for the wider of the
 * two). y may be x. */
typedef void row_fn(const void *ctx, size_t i, double *v);
PARE_MUST_USE pare_status rows_map(rows *y, const rows *x, row_fn *fn, const void *ctx,
                                   const rows_ctx *c);

/* y = x w^T + b. */
PARE_MUST_USE pare_status rows_dense(rows *y, const rows *x, const pare_weight *w,
                                     const pare_weight *b, const rows_ctx *c);
PARE_MUST_USE pare_status rows_norm(rows *y, const rows *x, const pare_norm *n, const rows_ctx *c);
/* y = act(y); with u: y = act(y) u, entry by entry. */
PARE_MUST_USE pare_status rows_act(rows *y, const rows *u, pare_act a, const rows_ctx *c);
/* y += x, or y += w x with w 1 x d. */
PARE_MUST_USE pare_status rows_add(rows *y, const rows *x, const pare_weight *w, const rows_ctx *c);
/* y += b, the same for every row */
PARE_MUST_USE pare_status rows_shift(rows *y, const pare_weight *b, const rows_ctx *c);
/* y += skip(x) */
PARE_MUST_USE pare_status rows_skip(rows *y, const rows *x, const pare_skip *s, const rows_ctx *c);
#endif
