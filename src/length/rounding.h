/* rounding.h - how far rounding can take a run from real numbers. */
#ifndef PARE_LENGTH_ROUNDING_H
#define PARE_LENGTH_ROUNDING_H
#include "calls.h"

/* Of one row: computed = real within `factor` sum_j p_j |v_j| + `absent` max|v| in each column. */
typedef struct rounding {
    double factor, absent;
} rounding;
/* size >= sum_c |q_c k_jc| of every key seen, range >= the range of its logits with the reference's
 * (c or 0) and at least 0; n keys seen, calls of at most m rows, parts partial results. native: no
 * reference. merges: levels of strict merges. Rounds up. */
/* Row i of a job of the plan: the bound of these numbers, and the one of norms alone. */
PARE_MUST_USE pare_status rounding_row(double *bound, double *apriori, const pare_length_plan *plan,
                                       const pare_length_job *j, size_t i, pare_err *err);
rounding rounding_of(const pare_oracle_caps *caps, size_t dk, double size, double range, double n,
                     double m, double parts, bool native, double merges);
#endif
