/* matrix.h - products, panels and factorizations that only the library's own modules need. */
#ifndef PARE_LINALG_MATRIX_H
#define PARE_LINALG_MATRIX_H
#include <pare/linalg.h>

/* ---- views ----------------------------------------------------------------------------------- */

/* Row i, to read and to write; and a view of rows x cols numbers without gaps. */
static inline const double *pare_row(const pare_mat *m, size_t i)
{
    return m->v + i * m->ld;
}
static inline double *pare_row_mut(pare_mat *m, size_t i)
{
    return m->v + i * m->ld;
}
/* The part of m that starts at (r, c): a view. */
pare_mat pare_mat_part(const pare_mat *m, size_t r, size_t c, size_t rows, size_t cols);
double pare_mat_max_abs(const pare_mat *m); /* largest |entry| */
double pare_mat_fro_est(const pare_mat *m); /* |m|_F */

/* rows x cols of w from (r, c), widened into out (which has that shape). */
void pare_weight_widen(pare_mat *out, const pare_weight *w, size_t r, size_t c);
/* n x n, in the arena, f32 or f64. */
PARE_MUST_USE pare_status pare_weight_identity(pare_weight *out, pare_arena *a, size_t n,
                                               pare_dtype t, pare_err *err);
bool pare_weight_finite(const pare_weight *w, size_t *where); /* *where: first bad element */

/* ---- products -------------------------------------------------------------------------------- */

/* The same for f32, with leading dimensions: c (m x n), inner k. */
void pare_gemm_f32(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, bool ta,
                   const float *b, size_t ldb, bool tb, float beta, float *c, size_t ldc);
/* y (n x out) = x (n x in) w^T + b; b may be absent. f32 weights are widened by tiles, never
 * whole. Same bits for any number of threads. y does not alias x. */
PARE_MUST_USE pare_status pare_dense_f64(pare_mat *y, const pare_mat *x, const pare_weight *w,
                                         const pare_weight *b, const pare_exec *exec,
                                         pare_err *err);

/* The backward pass of y = x w^T + b, each part where its pointer is not NULL: dx = dy w (added to
 * dx where `add`), dw (out x in, no gaps) += dy^T x, db (out) += the sum of dy's rows. Sums over
 * rows are cut by the shapes alone: same bits for any number of threads. */
PARE_MUST_USE pare_status pare_dense_backward_f32(float *dx, size_t lddx, bool add, float *dw,
                                                  float *db, const float *dy, size_t lddy,
                                                  const float *x, size_t ldx, size_t n,
                                                  const pare_weight *w, const pare_exec *exec,
                                                  pare_err *err);
PARE_MUST_USE pare_status pare_dense_backward_f64(double *dx, size_t lddx, bool add, double *dw,
                                                  double *db, const double *dy, size_t lddy,
                                                  const double *x, size_t ldx, size_t n,
                                                  const pare_weight *w, const pare_exec *exec,
                                                  pare_err *err);

/* A matrix made ready for few rows at a time: f32, in panels of PARE_PANEL outputs (the last one
 * filled up with zeros), so that every load serves a whole vector of outputs. */
enum { PARE_PANEL = 32 };
enum { PARE_PANEL_PARTS = 3 };
struct packed_matrix;
typedef struct pare_panels {
    size_t in, out; /* out: a multiple of PARE_PANEL; 0 = absent */
    /* Parts that are packed already (packed.h) are read as they are, each by a product of its own. */
    const struct packed_matrix *packed[PARE_PANEL_PARTS];
    size_t npacked;    /* 0: v */
    const float *v;    /* out / PARE_PANEL panels, each in x PARE_PANEL */
    const float *bias; /* out, or NULL */
} pare_panels;
/* Columns [from, from + in) of a stored matrix with its bias (NULL or absent: none). */
typedef struct pare_part {
    const pare_weight *w, *b;
    size_t from;
} pare_part;
static inline size_t pare_padded(size_t n) /* up to whole panels */
{
    return (n + PARE_PANEL - 1) / PARE_PANEL * PARE_PANEL;
}
/* Copies the parts one below the other, each beginning with a panel of its own: the outputs of part
 * p follow those of the parts before it at their padded sizes. */
PARE_MUST_USE pare_status pare_panels_new(pare_panels *out, pare_arena *a, const pare_part *part,
                                          size_t parts, size_t in, const pare_exec *exec,
                                          pare_err *err);
/* y (n x out) = x (n x in) W^T + b, added to y where `add`. What is filled up gives 0. A row's bits
 * depend on that row alone: not on n, nor on the threads. y does not alias x. No parts are packed. */
void pare_panels_apply(float *y, size_t ldy, const pare_panels *p, const float *x, size_t ldx,
                       size_t n, bool add, const pare_exec *exec);

/* ---- factorizations: estimates, never proofs ------------------------------------------------- */

/* Symmetric a = v diag(w) v^T, w ascending, v in columns; the lower triangle is read. v may be
 * NULL. */
PARE_MUST_USE pare_status pare_eigh(double *w, pare_mat *v, const pare_mat *a, pare_arena *scratch,
                                    pare_err *err);
/* The inverse of a symmetric positive definite a, of which the lower triangle is read; one that is
 * not is PARE_ERR_INPUT. No alias. */
PARE_MUST_USE pare_status pare_spd_inverse(pare_mat *inverse, const pare_mat *a, pare_err *err);
/* a (m x n, m >= n) = q r: q m x n with orthonormal columns, r n x n upper. */
PARE_MUST_USE pare_status pare_qr(pare_mat *q, pare_mat *r, const pare_mat *a, pare_arena *scratch,
                                  pare_err *err);
/* x = argmin |a x - b|_F (a m x n, b m x p, x n x p), rank-revealing with relative cut rcond; of
 * all solutions the shortest. rank may be NULL. */
PARE_MUST_USE pare_status pare_lstsq(pare_mat *x, size_t *rank, const pare_mat *a,
                                     const pare_mat *b, double rcond, pare_arena *scratch,
                                     pare_err *err);
#endif
