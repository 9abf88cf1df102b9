/* bounds.h - arithmetic of upper and lower bounds, elementary functions rounded up and down,
 * norms. */
#ifndef PARE_LINALG_BOUNDS_H
#define PARE_LINALG_BOUNDS_H
#include <pare/linalg.h>

/* ---- upper bounds ---------------------------------------------------------------------------- */

/* Each result is at least what real arithmetic would give. */
pare_ub pare_ub_add(pare_ub a, pare_ub b);
pare_ub pare_ub_mul(pare_ub a, pare_ub b);    /* 0 * inf = inf: nothing is known */
pare_ub pare_ub_div(pare_ub a, double lower); /* a / lower, lower > 0 a lower bound; else inf */
pare_ub pare_ub_min(pare_ub a, pare_ub b);    /* both are true, so the smaller is */
pare_ub pare_ub_sqrt(pare_ub a);
pare_ub pare_ub_fma(pare_ub a, pare_ub b, pare_ub c); /* a*b + c */
/* gamma_n = n u / (1 - n u) for unit roundoff u, rounded up; inf when n u >= 1. */
pare_ub pare_gamma(size_t n, double u);
/* Unit roundoffs; not PARE_U64 / PARE_U32, which are dtypes in array.h. */
#define PARE_UNIT_F64 0x1p-53
#define PARE_UNIT_F32 0x1p-24
/* As a certificate writes it: one part in 1e4 higher, so that another CPU can prove it again. */
double pare_ub_written(pare_ub a);

/* ---- lower bounds ---------------------------------------------------------------------------- */

/* Each result is at most what real arithmetic would give, and never below 0. */
pare_lb pare_lb_of(double computed); /* one rounding below it: next double down; nan -> 0 */
pare_lb pare_lb_add(pare_lb a, pare_lb b);
pare_lb pare_lb_sub(pare_lb a, pare_ub b);
pare_lb pare_lb_mul(pare_lb a, pare_lb b);
pare_lb pare_lb_div(pare_lb a, pare_ub b); /* DBL_MAX where it is larger */
pare_lb pare_lb_sqrt(pare_lb a);
pare_lb pare_lb_max(pare_lb a, pare_lb b); /* both are true, so the larger is */
pare_lb pare_lb_min(pare_lb a, pare_lb b);
/* As a certificate writes it: one part in 1e4 lower, so that another CPU can prove it again. */
double pare_lb_written(pare_lb a);

/* ---- elementary functions in bounds (directed.c) --------------------------------------------- */

/* Doubles that are certainly not below (up) or above (down) the function's value at exactly x: the
 * nearest such double, but for about one argument in 2^45. Any x; for a nan, and for log below 0,
 * nothing is known: inf and 0, inf and -1, 1 and -1, inf and -inf. */
double pare_exp_up(double x);
double pare_exp_down(double x);
double pare_expm1_up(double x);
double pare_expm1_down(double x);
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
pare_ub pare_norm_max_row2(const pare_weight *w); /* largest euclidean norm of a row */
/* sup |u B v^T| over |u|_inf, |v|_inf <= 1: min(sum |B_ij|, sqrt(rows cols) |B|_2). */
PARE_MUST_USE pare_status pare_norm_bilinear_inf(pare_ub *out, const pare_weight *w,
                                                 pare_arena *scratch, pare_err *err);
#endif
