/* pare/linalg.h - matrices as views, stored weights, products, and upper and lower bounds as types.
 *
 * Rigor is in the type: a pare_ub is a proven upper bound, its operations round up, +inf is a valid
 * (vacuous) one and nan never is. A plain double whose name ends in _est is an estimate. Rounding
 * mode must be to nearest. OpenBLAS is set to one thread at the first call; work is split by
 * pare_parallel in blocks that do not depend on the number of threads. */
#ifndef PARE_LINALG_H
#define PARE_LINALG_H
#include <pare/base.h>

/* ---- views ----------------------------------------------------------------------------------- */

typedef struct pare_mat { /* rows x cols, row-major, row i starts at v + i*ld; owns nothing */
    size_t rows, cols, ld;
    double *v;
} pare_mat;
typedef struct pare_mat32 { /* the same in f32 */
    size_t rows, cols, ld;
    float *v;
} pare_mat32;

/* A view of rows x cols numbers without gaps. */
static inline pare_mat pare_mat_of(double *v, size_t rows, size_t cols)
{
    const pare_mat m = {rows, cols, cols, v};
    return m;
}
/* Rows x cols of zeros in the arena; v is NULL when memory is out. */
pare_mat pare_mat_new(pare_arena *a, size_t rows, size_t cols);

/* A stored matrix [rows = out, cols = in], f32 or f64; a vector is 1 x n; data NULL = absent. In a
 * model that was loaded to run packed (pare_load_opts) a matrix may have type PARE_U8: integers or
 * numbers of half precision in the order in which a product reads them. */
typedef struct pare_weight {
    pare_dtype dtype; /* PARE_F32, PARE_F64, or PARE_U8: data is a pare_packed_weight */
    size_t rows, cols;
    const void *data;
} pare_weight;

/* A quantized matrix: entry (i, j) is scale[i, g] q[i, j] + offset[i, g] with g = j / group, in f32,
 * product and sum each rounded to nearest. Scales are rows x ceil(cols / group), and so are offsets. */
typedef struct pare_int_groups {
    const void *of; /* the data of the f32 matrix with exactly these numbers */
    size_t rows, cols;
    size_t group;  /* columns that share a scale; the last group of a row may have fewer */
    unsigned bits; /* 1 .. 8, of q */
    const int8_t *q;
    const float *scale, *offset; /* offset NULL: 0 */
    size_t bytes;                /* that all of it takes in its file */
} pare_int_groups;

/* Whether the weight is there. */
static inline bool pare_has(const pare_weight *w)
{
    return w->data != NULL;
}
/* What begins a packed weight. */
typedef struct pare_packed_weight {
    double (*at)(const struct pare_packed_weight *self, size_t i); /* pare_weight_at */
    bool integers; /* with scales; else numbers of half precision */
} pare_packed_weight;
static inline double pare_weight_at(const pare_weight *w, size_t i) /* row-major element i */
{
    if (w->dtype == PARE_F32) return (double)((const float *)w->data)[i];
    if (w->dtype == PARE_F64) return ((const double *)w->data)[i];
    const pare_packed_weight *const p = (const pare_packed_weight *)w->data;
    return p->at(p, i);
}

/* ---- products -------------------------------------------------------------------------------- */

/* c = alpha op(a) op(b) + beta c; op is the transpose where ta / tb. c aliases neither. */
void pare_gemm(pare_mat *c, double alpha, const pare_mat *a, bool ta, const pare_mat *b, bool tb,
               double beta);
/* The same in f32 by the BLAS alone, on one thread: what benchmarks compare with. */
void pare_blas_f32(pare_mat32 *c, float alpha, const pare_mat32 *a, bool ta, const pare_mat32 *b,
                   bool tb, float beta);
/* y (n x out) = x (n x in) w^T + b in f32; b may be absent. y does not alias x. Same bits for any
 * number of threads. */
PARE_MUST_USE pare_status pare_dense_f32(pare_mat32 *y, const pare_mat32 *x, const pare_weight *w,
                                         const pare_weight *b, const pare_exec *exec,
                                         pare_err *err);

/* ---- factorizations: estimates, never proofs ------------------------------------------------- */

/* a = u diag(s) vt, thin: u rows x k, s k (descending), vt k x cols, k = min(rows, cols).
 * Divide and conquer (dgesdd; dgesvd is 24 times slower). u, vt may be NULL (both or none). */
PARE_MUST_USE pare_status pare_svd(pare_mat *u, double *s, pare_mat *vt, const pare_mat *a,
                                   pare_arena *scratch, pare_err *err);

/* ---- upper bounds ---------------------------------------------------------------------------- */

typedef struct pare_ub {
    double v; /* >= 0, or +inf; never nan */
} pare_ub;

/* Each result is at least what real arithmetic would give. */
pare_ub pare_ub_of(double computed); /* one rounding above |computed|: next double up; nan -> inf */
pare_ub pare_ub_exact(double value); /* a number known exactly */
pare_ub pare_ub_inf(void);           /* vacuous */
pare_ub pare_ub_max(pare_ub a, pare_ub b);
/* Decimal text that is never below the bound, `digits` significant; "inf" for inf. */
const char *pare_ub_format(char buf[40], pare_ub a, int digits);

/* ---- lower bounds ---------------------------------------------------------------------------- */

/* A proven lower bound on a number that is not negative: finite; 0 is vacuous. */
typedef struct pare_lb {
    double v;
} pare_lb;

/* Each result is at most what real arithmetic would give, and never below 0. */
pare_lb pare_lb_exact(double value); /* a number known exactly; 0 for what is negative or nan */
/* Decimal text that is never above the bound, `digits` significant. */
const char *pare_lb_format(char buf[40], pare_lb a, int digits);

/* ---- elementary functions in bounds ------------------------------------------------------- */

/* A double that is certainly not below tanh(x): the nearest such double, but for about one argument
 * in 2^45. 1 for a nan. */
double pare_tanh_up(double x); /* for x > 0 also <= x */

/* ---- norms, all proven ---------------------------------------------------------------------- */

/* The largest sum of absolute values in a column. */
pare_ub pare_norm_max_col(const pare_weight *w);
/* |w|_2. An estimate by Lanczos iteration is proven from above by a Cholesky factorization of
 * s^2 I - w w^T whose residual is added: usually within 1e-10 of the truth, at worst the Frobenius
 * norm, never below the truth. Scratch holds
 * min(rows, cols)^2 doubles. PARE_ERR_NONFINITE, and every other failure: *out is +inf. */
PARE_MUST_USE pare_status pare_norm_spectral(pare_ub *out, const pare_weight *w,
                                             pare_arena *scratch, pare_err *err);
/* r = Res(z) = z - 1 y', y_j the midrange of column j; r may be z itself. *max: proven bound on
 * max|Res(z)|; may be NULL. PARE_ERR_NONFINITE (z holds a nan or an inf): *max is +inf. */
PARE_MUST_USE pare_status pare_res(pare_mat *r, pare_ub *max, const pare_mat *z);
#endif
