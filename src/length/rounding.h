/* rounding.h - how far rounding can take a run from real numbers. */
#ifndef PARE_LENGTH_ROUNDING_H
#define PARE_LENGTH_ROUNDING_H
#include "calls.h"

/* Of one row: computed = real within `factor` sum_j p_j |v_j| + `absent` (max|v| + 1) in each
 * column: lost weights take values with them, lost products are lost whatever the value. */
typedef struct rounding {
    double factor, absent;
} rounding;
/* What is known of a row. */
typedef struct row_facts {
    size_t dk;
    double size;      /* >= sum_c |q_c k_jc| of every key seen */
    double entries;   /* >= sum_c |k_jc| of every key seen, and sum_c |q_c|, together */
    double range;     /* >= the range of its logits with the reference's (c or 0), >= 0 */
    double max_logit; /* <= its largest logit, up to the error of a logit in f64; -INFINITY where
                         the reference may be above all of them */
    double n;         /* keys seen */
    double m;         /* rows of a call, at most */
    double parts;     /* partial results */
    double merges;    /* levels of strict merges */
    bool native;      /* no reference */
} row_facts;
/* Rounds up. */
rounding rounding_of(const pare_oracle_caps *caps, const row_facts *f);
/* The bound of a column; mean >= sum_j p_j |v_j|, largest >= max|v|. */
double rounding_bound(const rounding *r, double mean, double largest);

/* Row i of a job of the plan: the bound of these numbers, and the one of norms alone. `rows`: of
 * its calls where they hold more than the plan says, other inputs' (else 0). */
PARE_MUST_USE pare_status rounding_row(double *bound, double *apriori, const pare_length_plan *plan,
                                       const pare_length_job *j, size_t i, size_t rows,
                                       pare_err *err);
#endif
