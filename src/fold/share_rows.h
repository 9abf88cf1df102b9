/* share_rows.h - what is proven of a model whose tokens share rows (share_rows_bound.c). */
#ifndef PARE_FOLD_SHARE_ROWS_H
#define PARE_FOLD_SHARE_ROWS_H
#include "base/work.h"
#include <pare/fold.h>

/* Of outputs, over all inputs (`all`) and over those without a token that shares (`without`). */
typedef struct share_bound {
    pare_ub all;
    pare_ub without; /* of the outputs of shared tokens; the others do not change */
    pare_ub kl;      /* of the softmax of an output row, without */
    const char *state; /* what bounds the final state, or why nothing does */
    bool bounded;
} share_bound;

/* f and g are the same but for rows of the embedding. No kl where outputs are no logits: inf. */
void share_rows_bound(share_bound *out, pare_work *w, const pare_model *f, const pare_model *g);
#endif
