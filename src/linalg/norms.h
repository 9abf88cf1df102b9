/* norms.h - private to linalg: what the proofs of norms share. */
#ifndef PARE_LINALG_NORMS_H
#define PARE_LINALG_NORMS_H
#include <pare/linalg.h>

/* Multiplication by 2^-e, which brings the largest |entry| into [1/2, 1) so that no square
 * overflows or vanishes. Exact, except that entries 2^1022 times smaller than the largest may lose
 * bits: at most 2^-1075 each, after scaling. */
typedef struct unit_scale {
    int e;
    double first, second; /* two factors, as 2^1074 is no double */
} unit_scale;

unit_scale pare_unit_scale_of(double largest); /* largest > 0, finite */
static inline double scaled(const unit_scale *s, double x)
{
    return x * s->first * s->second;
}
/* a 2^e: the scaling undone. */
pare_ub pare_unscaled(const unit_scale *s, pare_ub a);

/* |t|_F for t = 2^-e w, and also for t with what scaling rounded. */
pare_ub pare_unit_fro(const pare_weight *w, const unit_scale *s);

/* The exact sum of nonnegative terms when `computed` is it after at most `roundings` roundings on
 * the way of each term: computed / (1 - gamma_roundings). Any order of summation. */
pare_ub pare_sum_up(double computed, size_t roundings);
/* count * size, rounded up (ub.c): the absolute terms of underflow. */
pare_ub pare_times(size_t count, double size);

/* -- spectral.c, seen by its test -- */

/* t t^T of the scaled matrix t, over its smaller side k. */
typedef struct gram {
    pare_mat g;     /* k x k: upper triangle fl(t t^T), lower triangle and diagonal scratch */
    double *diag;   /* k: diagonal of fl(t t^T) */
    double *sums;   /* k: scratch of the residual */
    pare_mat panel; /* 3 panel_rows x k: scratch */
    pare_ub error;  /* on |fl(t t^T) - t t^T|_2 */
} gram;

PARE_MUST_USE pare_status pare_gram_of(gram *out, const pare_weight *w, const unit_scale *s,
                                       pare_ub fro, pare_arena *scratch, pare_err *err);
/* Estimate of the largest eigenvalue, from below but for rounding. */
PARE_MUST_USE pare_status pare_gram_top_est(double *est, const gram *g, pare_arena *scratch,
                                            pare_err *err);
/* Proven bound on the largest eigenvalue of t t^T from any lower triangular L, which lies where the
 * scratch is: c + |c I - t t^T - L L^T|. Good when L is a Cholesky factor of c I - t t^T; true for
 * every L and every c >= 0. */
pare_ub pare_gram_bound(gram *g, double c);
/* The same with L from Cholesky; +inf when that breaks down, as it does when c is too small. */
PARE_MUST_USE pare_status pare_gram_prove(pare_ub *out, gram *g, double c, pare_err *err);
#endif
