/* rows.h - what flows through a forward pass: n rows of d numbers, f64 or f32.
 *
 * Products and attention exist once per type, in linalg and attention. Everything else works row by
 * row in f64 and rounds once when the row is stored: one piece of code for both passes. */
#ifndef PARE_SRC_ROWS_H
#define PARE_SRC_ROWS_H
#include <pare/model.h>

typedef struct rows {
    pare_dtype t;
    size_t n, d;
    void *v; /* n x d, row-major */
} rows;

PARE_MUST_USE pare_status rows_new(rows *out, pare_arena *a, pare_dtype t, size_t n, size_t d,
                                   pare_err *err);
rows rows_part(const rows *r, size_t first, size_t n); /* a view */
void rows_load(double *to, const rows *r, size_t i);
void rows_store(rows *r, size_t i, const double *from);

/* y_i = fn(x_i): v holds the row (and, after the call, the result; it has room for the wider of the
 * two). y may be x. */
typedef void row_fn(const void *ctx, size_t i, double *v);
PARE_MUST_USE pare_status rows_map(rows *y, const rows *x, row_fn *fn, const void *ctx,
                                   const pare_exec *exec, pare_err *err);
/* y_i = fn(y_i, x_i). */
typedef void row_fn2(const void *ctx, double *v, const double *x);
PARE_MUST_USE pare_status rows_map2(rows *y, const rows *x, row_fn2 *fn, const void *ctx,
                                    const pare_exec *exec, pare_err *err);

/* y = x w^T + b. */
PARE_MUST_USE pare_status rows_dense(rows *y, const rows *x, const pare_weight *w,
                                     const pare_weight *b, const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status rows_norm(rows *y, const rows *x, const pare_norm *n,
                                    const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status rows_act(rows *y, pare_act a, const pare_exec *exec, pare_err *err);
/* y += skip(x); `scratch` serves the dense kind. */
PARE_MUST_USE pare_status rows_skip(rows *y, const rows *x, const pare_skip *s, pare_arena *scratch,
                                    const pare_exec *exec, pare_err *err);
#endif
