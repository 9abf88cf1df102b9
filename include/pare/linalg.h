/* pare/linalg.h - matrices as views, stored weights, factorisations, and upper bounds.
 *
 * Rigor is in the type: a pare_ub is a proven upper bound, its operations round up, +inf is a
 * valid (vacuous) one and nan never is. A plain double whose name ends in _est is an estimate.
 * Rounding mode must be to nearest. OpenBLAS is set to one thread at the first call; work is split
 * by pare_parallel in blocks that do not depend on the number of threads. */
#ifndef PARE_LINALG_H
#define PARE_LINALG_H
#include <pare/array.h>

/* ---- views ---------------------------------------------------------------------------- */

typedef struct pare_mat { /* rows x cols, row-major, row i starts at v + i*ld; owns nothing */
    size_t rows, cols, ld;
    double *v;
} pare_mat;

/* Row i, to read and to write; and a view of rows x cols numbers without gaps. */
static inline const double *pare_row(const pare_mat *m, size_t i)
{
    return m->v + i * m->ld;
}
static inline double *pare_row_mut(pare_mat *m, size_t i)
{
    return m->v + i * m->ld;
}
static inline pare_mat pare_mat_of(double *v, size_t rows, size_t cols)
{
    const pare_mat m = {rows, cols, cols, v};
    return m;
}
/* Rows x cols of zeros in the arena; v is NULL when memory is out. */
pare_mat pare_mat_new(pare_arena *a, size_t rows, size_t cols);
/* The part of m that starts at (r, c): a view. */
pare_mat pare_mat_part(const pare_mat *m, size_t r, size_t c, size_t rows, size_t cols);

/* A stored matrix [rows = out, cols = in], f32 or f64; a vector is 1 x n; data NULL = absent. */
typedef struct pare_weight {
    pare_dtype dtype; /* PARE_F32 or PARE_F64 */
    size_t rows, cols;
    const void *data;
} pare_weight;

/* Whether the weight is there. */
static inline bool pare_has(const pare_weight *w)
{
    return w->data != NULL;
}
static inline double pare_weight_at(const pare_weight *w, size_t i) /* row-major element i */
{
    return w->dtype == PARE_F32 ? (double)((const float *)w->data)[i]
                                : ((const double *)w->data)[i];
}
/* rows x cols of w from (r, c), widened into out (which has that shape). */
void pare_weight_widen(pare_mat *out, const pare_weight *w, size_t r, size_t c);
/* n x n, in the arena, f32 or f64. */
PARE_MUST_USE pare_status pare_weight_identity(pare_weight *out, pare_arena *a, size_t n,
                                               pare_dtype t, pare_err *err);
bool pare_weight_finite(const pare_weight *w, size_t *where); /* *where: first bad element */

/* ---- products ------------------------------------------------------------------------- */

/* c = alpha op(a) op(b) + beta c; op is the transpose where ta / tb. c aliases neither. */
void pare_gemm(pare_mat *c, double alpha, const pare_mat *a, bool ta, const pare_mat *b, bool tb,
               double beta);
/* The same for f32, with leading dimensions: c (m x n), inner k. */
void pare_gemm_f32(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, bool ta,
                   const float *b, size_t ldb, bool tb, float beta, float *c, size_t ldc);
/* The same by the BLAS alone, on one thread: the yardstick of benchmarks. */
void pare_blas_f32(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, bool ta,
                   const float *b, size_t ldb, bool tb, float beta, float *c, size_t ldc);
/* y (n x out) = x (n x in) w^T + b; b may be absent. f32 weights are widened by tiles, never
 * whole. Same bits for any number of threads. y does not alias x. */
PARE_MUST_USE pare_status pare_dense_f64(pare_mat *y, const pare_mat *x, const pare_weight *w,
                                         const pare_weight *b, const pare_exec *exec,
                                         pare_err *err);
/* The f32 engine's: n rows with leading dimensions ldx, ldy. */
PARE_MUST_USE pare_status pare_dense_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t n,
                                         const pare_weight *w, const pare_weight *b,
                                         const pare_exec *exec, pare_err *err);

/* The way back of y = x w^T + b, each part where its pointer is not NULL: dx = dy w (added to dx
 * where `add`), dw (out x in, no gaps) += dy^T x, db (out) += the sum of dy's rows. Sums over rows
 * are cut by the shapes alone: same bits for any number of threads. */
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
typedef struct pare_panels {
    size_t in, out;    /* out: a multiple of PARE_PANEL; 0 = absent */
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
 * depend on that row alone: not on n, nor on the threads. y does not alias x. */
void pare_panels_apply(float *y, size_t ldy, const pare_panels *p, const float *x, size_t ldx,
                       size_t n, bool add, const pare_exec *exec);

/* ---- factorisations: estimates, never proofs ------------------------------------------- */

/* A nan or an inf is PARE_ERR_NONFINITE, before LAPACK is called; empty matrices are legal. */

/* a = u diag(s) vt, thin: u rows x k, s k (descending), vt k x cols, k = min(rows, cols).
 * Divide and conquer (dgesdd; dgesvd is 24 times slower). u, vt may be NULL (both or none). */
PARE_MUST_USE pare_status pare_svd(pare_mat *u, double *s, pare_mat *vt, const pare_mat *a,
                                   pare_arena *scratch, pare_err *err);
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

/* ---- upper bounds ---------------------------------------------------------------------- */

typedef struct pare_ub {
    double v; /* >= 0, or +inf; never nan */
} pare_ub;

/* Each result is at least what real arithmetic would give. */
pare_ub pare_ub_of(double computed); /* one rounding above |computed|: next double up; nan -> inf */
pare_ub pare_ub_exact(double value); /* a number known exactly */
pare_ub pare_ub_inf(void);           /* says nothing, and is true */
pare_ub pare_ub_add(pare_ub a, pare_ub b);
pare_ub pare_ub_mul(pare_ub a, pare_ub b);    /* 0 * inf = inf: nothing is known */
pare_ub pare_ub_div(pare_ub a, double lower); /* a / lower, lower > 0 a lower bound; else inf */
pare_ub pare_ub_max(pare_ub a, pare_ub b);
pare_ub pare_ub_min(pare_ub a, pare_ub b); /* both are true, so the smaller is */
pare_ub pare_ub_sqrt(pare_ub a);
pare_ub pare_ub_fma(pare_ub a, pare_ub b, pare_ub c); /* a*b + c */
/* gamma_n = n u / (1 - n u) for unit roundoff u, rounded up; inf when n u >= 1. */
pare_ub pare_gamma(size_t n, double u);
/* Unit roundoffs; not PARE_U64 / PARE_U32, which are dtypes in array.h. */
#define PARE_UNIT_F64 0x1p-53
#define PARE_UNIT_F32 0x1p-24
/* Decimal text that is never below the bound, `digits` significant; "inf" for inf. */
const char *pare_ub_format(char buf[40], pare_ub a, int digits);
/* As a certificate writes it: one part in 1e4 higher, so that another CPU can prove it again. */
double pare_ub_written(pare_ub a);

/* ---- lower bounds ---------------------------------------------------------------------- */

/* A proven lower bound on a number that is not negative: finite; 0 is vacuous. */
typedef struct pare_lb {
    double v;
} pare_lb;

/* Each result is at most what real arithmetic would give, and never below 0. */
pare_lb pare_lb_of(double computed); /* one rounding below it: next double down; nan -> 0 */
pare_lb pare_lb_exact(double value); /* a number known exactly; 0 for what is negative or nan */
pare_lb pare_lb_add(pare_lb a, pare_lb b);
pare_lb pare_lb_sub(pare_lb a, pare_ub b);
pare_lb pare_lb_mul(pare_lb a, pare_lb b);
pare_lb pare_lb_div(pare_lb a, pare_ub b); /* DBL_MAX where it is larger */
pare_lb pare_lb_sqrt(pare_lb a);
pare_lb pare_lb_max(pare_lb a, pare_lb b); /* both are true, so the larger is */
pare_lb pare_lb_min(pare_lb a, pare_lb b);
/* Decimal text that is never above the bound, `digits` significant. */
const char *pare_lb_format(char buf[40], pare_lb a, int digits);
/* As a certificate writes it: one part in 1e4 lower, so that another CPU can prove it again. */
double pare_lb_written(pare_lb a);

/* ---- elementary functions in bounds (directed.c) ---------------------------------------- */

/* Doubles that are certainly not below (up) or above (down) the function's value at exactly x: the
 * nearest such double, but for about one argument in 2^45. Any x; for a nan, and for log below 0,
 * nothing is known: inf and 0, inf and -1, 1 and -1, inf and -inf. */
double pare_exp_up(double x);
double pare_exp_down(double x);
double pare_expm1_up(double x);
double pare_expm1_down(double x);
double pare_tanh_up(double x); /* for x > 0 also <= x */
double pare_tanh_down(double x);
double pare_log_up(double x);
double pare_log_down(double x);
/* The same of bounds. */
pare_ub pare_ub_exp(pare_ub a);
pare_ub pare_ub_expm1(pare_ub a);
pare_ub pare_ub_tanh(pare_ub a); /* <= 1 and <= a */
pare_ub pare_ub_log(pare_ub a);  /* 0 for a <= 1 */
pare_lb pare_lb_exp(pare_lb a);
pare_lb pare_lb_expm1(pare_lb a);
pare_lb pare_lb_tanh(pare_lb a);
pare_lb pare_lb_log(pare_lb a); /* 0 for a <= 1 */

/* Sum of the squares, not scaled: each is rounded once, and by at most n - 1 additions. */
double pare_squares(const double *v, size_t n);

/* Norms of a stored or widened matrix, all proven. */
pare_ub pare_norm_fro(const pare_weight *w);
pare_ub pare_norm_max(const pare_weight *w); /* largest |entry| (exact) */
pare_ub pare_norm_max_row(
    const pare_weight *w); /* max row sum of |entries|: inf -> inf for x W^T */
pare_ub pare_norm_max_col(const pare_weight *w);
pare_ub pare_norm_max_row2(const pare_weight *w); /* largest euclidean norm of a row */
/* |w|_2. An estimate by Lanczos iteration is proven from above by a Cholesky factorisation of
 * s^2 I - w w^T whose residual is added; within 0.1 % of the truth, never below it. Scratch holds
 * min(rows, cols)^2 doubles. PARE_ERR_NONFINITE, and every other failure: *out is +inf. */
PARE_MUST_USE pare_status pare_norm_spectral(pare_ub *out, const pare_weight *w,
                                             pare_arena *scratch, pare_err *err);
/* sup |u B v^T| over |u|_inf, |v|_inf <= 1: min(sum |B_ij|, sqrt(rows cols) |B|_2). */
PARE_MUST_USE pare_status pare_norm_bilinear_inf(pare_ub *out, const pare_weight *w,
                                                 pare_arena *scratch, pare_err *err);
/* r = Res(z) = z - 1 y', y_j the midrange of column j; r may be z itself. *max: proven bound on
 * max|Res(z)|; may be NULL. PARE_ERR_NONFINITE (z holds a nan or an inf): *max is +inf. */
PARE_MUST_USE pare_status pare_res(pare_mat *r, pare_ub *max, const pare_mat *z);
#endif
