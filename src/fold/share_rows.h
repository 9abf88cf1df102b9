/* share_rows.h - tokens of dead vocabulary get one row of the embedding (share_rows.c); what is proven
 * of it (share_rows_bound.c, share_rows_prover.c). */
#ifndef PARE_FOLD_SHARE_ROWS_H
#define PARE_FOLD_SHARE_ROWS_H
#include "base/work.h"
#include <pare/fold.h>

/* Shares the rows within `distance` of the closest group of rows; below 0 (or nan): those before a gap
 * in the distances. Tokens of `data` (NULL: none) keep their rows unless these are before the gap.
 * Nothing else is folded. PARE_ERR_PROMISE: there is no gap, or nothing to share; PARE_ERR_INPUT: a
 * model without an embedding, or with shared rows. `in` is not changed and need not outlive *out. */
PARE_MUST_USE pare_status pare_share_rows(pare_model **out, pare_share_report *report,
                                          const pare_model *in, const pare_inputs *data,
                                          double distance, const pare_exec *exec, pare_err *err);
/* How it is proven, and proven again by pare_verify_file. */
extern const pare_prover pare_share_rows_prover;

/* Of outputs, over all inputs (`all`) and over those without a token that shares (`without`). */
typedef struct share_bound {
    pare_ub all;
    pare_ub without;   /* of the outputs of shared tokens; the others do not change */
    pare_ub kl;        /* of the softmax of an output row, without */
    const char *state; /* what bounds the final state, or why nothing does */
    bool bounded;
} share_bound;

/* f and g are the same but for rows of the embedding. No kl where outputs are no logits: inf. */
void share_rows_bound(share_bound *out, pare_work *w, const pare_model *f, const pare_model *g);
#endif
