/* polynomial.h - polynomial attention: softmax attention in linear time, with a proven error.
 *
 * With centered queries and keys, q' = scale (q - qc) and k' = k - kc,
 *     softmax_j(scale q_i.k_j) = softmax_j(log w_j + q'_i.k'_j),   w_j = e^(scale qc.k'_j),
 * exactly. A polynomial p(x) = sum_m coef_m x^m close to e^x then gives
 *     y_i = phi(q'_i) S / phi(q'_i) s,   S = sum_j w_j psi(k'_j) v_j,   s = sum_j w_j psi(k'_j)
 * over all monomials of degree <= g: C(d + g, g) numbers a row instead of a row of n scores.
 *
 * What is promised. For every row and every column c of the values
 *     |y_ic - exact_ic| <= bound_i range_c + 2^-24 |y_ic|,   range_c = max_j v_jc - min_j v_jc,
 * where exact is softmax attention of the stored numbers in real arithmetic, and bound_i <=
 * tolerance covers the polynomial and all roundings of its evaluation (the second term is the
 * rounding of the result itself). A row for which this cannot be shown is computed by the exact
 * kernel, and counted; its error is that kernel's rounding alone.
 *
 * Patterns: full and causal; all others are exact attention. */
#ifndef PARE_ATTENTION_POLYNOMIAL_H
#define PARE_ATTENTION_POLYNOMIAL_H
#include <pare/attention.h>

/* ---- monomials ------------------------------------------------------------------------------- */

/* Entry e is the monomial of entry parent[e] < e times variable var[e]; entry 0 is the constant 1
 * (parent and var 0). power[e] is its degree, weight[e] the number of its orderings |a|!/a!, so
 * that (x.y)^m = sum over power[e] = m of weight[e] x^e y^e. Ascending by degree. */
typedef struct pare_monomials {
    size_t d, degree, count;
    const uint32_t *parent, *var, *power; /* count */
    const double *weight;                 /* count */
} pare_monomials;

/* C(d + degree, degree); SIZE_MAX when that is more than can be counted. */
size_t pare_monomials_count(size_t d, size_t degree);
/* All monomials of degree <= `degree`, in the arena. Within a degree they are sorted by their
 * largest variable, so that those of degree m with largest variable v are x_v times the first
 * C(v + m - 1, m - 1) of degree m - 1: long runs of one multiplication each. */
PARE_MUST_USE pare_status pare_monomials_graded(pare_monomials *out, pare_arena *a, size_t d,
                                                size_t degree, pare_err *err);
/* The best set of monomials for coordinates of unequal size, a_i >= |q'_i| |k'_i| for all pairs:
 * downward closed, chosen best first until the tail e^(sum a) - sum_set a^alpha/alpha! is at most
 * tol, or `most` entries are reached. *tail bounds |e^x - p(x)|, p with the coefficients 1/m!. */
PARE_MUST_USE pare_status pare_monomials_adaptive(pare_monomials *out, pare_ub *tail, pare_arena *a,
                                                  const double *size, size_t d, double tol,
                                                  size_t most, pare_err *err);

/* ---- polynomials ----------------------------------------------------------------------------- */

/* The smallest degree whose best polynomial (Remez, relative error) on [-B, B] moves a softmax by
 * at most `variation`, and what is proven for it; false: none up to 24, *degree and *tv are the
 * best that was tried. What a probe says of a head: C(d + degree, degree) features would do. */
bool pare_poly_degree(size_t *degree, pare_ub *tv, double B, double variation);

/* ---- the plan of one head -------------------------------------------------------------------- */

const char *pare_poly_kind_name(pare_poly_kind k); /* "auto", "exact", "taylor", ... */

typedef struct pare_poly_plan {
    pare_poly_kind kind; /* never AUTO */
    char why[160];       /* in words: "exact: ...", "degree 3, 969 features" */
    bool causal;
    size_t n, d, dv;
    double scale, tolerance;
    size_t max_bytes;      /* of features and state */
    const double *qc, *kc; /* d: midranges of queries and keys; f32 numbers for f32 data */
    pare_ub B;             /* |q'_i.k'_j| <= B for all pairs but those of heavy keys */
    pare_ub query;         /* |q'_i|_2 <= query for all queries */
    pare_ub key;           /* |k'_j|_2 <= key for all but the heavy keys */
    const float *query_norms, *key_norms; /* n: |q'_i|_2 and |k'_j|_2 from above; f32 plans */
    size_t degree;
    const double *coef;   /* table.degree + 1; 0 beyond `degree` */
    pare_ub eps, tv;      /* relative error of p on [-B, B]; what it means for the result */
    pare_monomials table; /* empty for EXACT */
    size_t nheavy;
    const size_t *heavy; /* ascending */
} pare_poly_plan;

#define PARE_POLY_BYTES ((size_t)256 << 20)

/* Reads q, k (n x d) and decides; in the arena. PARE_ERR_NONFINITE for a nan or an infinity.
 * The choice depends on the data, the sizes and the options alone. */
PARE_MUST_USE pare_status pare_poly_plan_f64(pare_poly_plan *out, pare_arena *a, const pare_mat *q,
                                             const pare_mat *k, size_t dv, double scale,
                                             const pare_pattern *p, const pare_poly_opts *opts,
                                             pare_err *err);
PARE_MUST_USE pare_status pare_poly_plan_f32(pare_poly_plan *out, pare_arena *a,
                                             const pare_mat32 *q, const pare_mat32 *k, size_t dv,
                                             double scale, const pare_pattern *p,
                                             const pare_poly_opts *opts, const pare_exec *exec,
                                             pare_err *err);

/* ---- the forward pass ------------------------------------------------------------------------ */

/* What a caller may want besides y; each pointer may be NULL. */
typedef struct pare_poly_saved {
    double *bound;  /* n: bound_i, in units of the range; 0 where the row is exact */
    float *lse;     /* n: log sum_j e^(scale q_i.k_j), as what has computed the row gives it */
    uint8_t *exact; /* n: 1 where the exact kernel was used */
} pare_poly_saved;

/* The reference form in f64, plain loops: bounds are those of real arithmetic, and `chunk` rows
 * (0: 64) are exact within themselves under the causal pattern. */
PARE_MUST_USE pare_status pare_poly_attend_f64(pare_mat *y, double *bound, pare_poly_report *report,
                                               const pare_poly_plan *plan, const pare_mat *q,
                                               const pare_mat *k, const pare_mat *v, size_t chunk,
                                               pare_err *err);
/* y (n x dv). `plan` is of these very q and k. Same bits for any number of threads. Memory
 * O(n (d + dv)) and the plan's features. y may not overlap q, k, v. */
PARE_MUST_USE pare_status pare_poly_attend_f32(pare_mat32 *y, const pare_poly_saved *kept,
                                               pare_poly_report *report, const pare_poly_plan *plan,
                                               const pare_mat32 *q, const pare_mat32 *k,
                                               const pare_mat32 *v, const pare_exec *exec,
                                               pare_err *err);

/* ---- the backward pass ---------------------------------------------------------------------------- */

/* Adds to dq, dk, dv the gradient for d loss / d y = dy, in linear time and memory. The function
 * that is differentiated is the one the forward pass computes, with its plan held constant: the
 * centre of the queries, the polynomial, the heavy keys, the chunks and the rows that are exact;
 * only the centre of the keys moves, with their mean, so that the sum of dk over the keys is 0 as
 * it is for attention itself. Attention does not depend on the centres: what is left out by holding
 * them is no part of its gradient, only of the approximation's error. `exact` marks the rows of the
 * exact kernel (NULL: none). For a plan of kind EXACT this is pare_attend_backward_*. The outputs
 * overlap nothing else. Over the threads; same bits for any number of them. `plan` is of these very
 * q and k, `exact` what the forward pass has kept. */
PARE_MUST_USE pare_status pare_poly_backward_f32(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                                 const pare_mat32 *dy, const pare_poly_plan *plan,
                                                 const pare_mat32 *q, const pare_mat32 *k,
                                                 const pare_mat32 *v, const uint8_t *exact,
                                                 const pare_exec *exec, pare_err *err);
#endif
