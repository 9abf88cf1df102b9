/* modes.h - the modes of attention through an oracle, and the kinds of calls they are made of. */
#ifndef PARE_LENGTH_MODES_H
#define PARE_LENGTH_MODES_H
#include "rounds.h"

PARE_MUST_USE pare_status native_attend(length_run *r);
PARE_MUST_USE pare_status zeroref_attend(length_run *r);
PARE_MUST_USE pare_status strict_attend(length_run *r);
PARE_MUST_USE pare_status paper_attend(length_run *r);
PARE_MUST_USE pare_status sample_attend(length_run *r);
PARE_MUST_USE pare_status chunk_attend(length_run *r);

/* mode_zeroref.c: rounds of zero-reference calls until no row is bad: accumulators (or partial
 * results) are complete then. */
PARE_MUST_USE pare_status zeroref_rounds(length_run *r, const call_ops *ops);
/* Rows that are bad after the rounds so far get a reference of their own; an error if that does not
 * help. */
PARE_MUST_USE pare_status zeroref_retry_bad_rows(length_run *r, const call_ops *ops);

/* ---- softmax_calls.c ------------------------------------------------------------------------- */

extern const call_ops zeroref_calls, plain_calls, mean_calls;
/* For calls of these ops that share them: blocks of keys with their values, laid out once, where
 * all heads have the same widths. */
PARE_MUST_USE pare_status softmax_lay_out_blocks(length_run *r, const call_ops *ops);
bool zeroref_merge(length_run *r, const pending_call *e, size_t row, size_t i, size_t n,
                   double *scale_old, double *scale_new);
/* Row i after a round: marks it as bad; where only bad rows were asked, clears the mark if it can
 * be trusted now. */
void zeroref_judge_row(const length_run *r, head_state *h, size_t i);

/* ---- reference.c ----------------------------------------------------------------------------- */

/* lmax of every head, and ref_logit where the options ask for probes or norms do not suffice. */
PARE_MUST_USE pare_status reference_choose(length_run *r);
/* As a call can hold it: the same number in every call, and on the host. */
double reference_logit(const length_run *r, double c);
#endif
