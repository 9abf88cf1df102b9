/* rounds.h - the executor: one round of calls for all heads, built, evaluated and merged in batches
 * of bounded memory. */
#ifndef PARE_LENGTH_ROUNDS_H
#define PARE_LENGTH_ROUNDS_H
#include "run.h"

/* All calls of the pattern for all heads; only those with a bad row where round.only_bad. */
PARE_MUST_USE pare_status round_pattern(length_run *r, const call_ops *ops);
/* Calls of tiles that the caller chooses: begin, any number of round_add_call (a call_fn, for head
 * r->round.head), end. */
void round_begin(length_run *r, const call_ops *ops);
pare_status round_add_call(void *run, const placed *tiles, size_t count, uint32_t n);
PARE_MUST_USE pare_status round_end(length_run *r, pare_status so_far);

/* merge_rows.c: the batch's results into the accumulators; its first call with an answer that is
 * not finite, or SIZE_MAX. */
size_t merge_batch(length_run *r);

/* ---- oracle_accumulate.c: an oracle that adds rows to the accumulators itself ---------------- */

bool can_fuse(const length_run *r, const call_ops *ops);
/* Where the rows of a call go; nowhere, where the round is not fused. */
pare_call_sums fused_sums(const length_run *r, const pending_call *e);
/* The first call of the batch, from `from` on, whose answer is not finite. */
size_t fused_find_failed(const length_run *r, size_t from);
#endif
