/* pare/fold.h - the exact reduction: the same function, written with less.
 *
 *   batch norm          into the maps and the skip before it (post) or after it (pre)
 *   layer and rms norm  their gain and bias into the maps that read them (pre-norm; the division
 *                       itself stays)
 *   mean-only norm      into the maps that read it (pre-norm)
 *   key biases          dropped unless positions are rotary: softmax does not see a row constant
 *   value biases        into the output bias, only where no row can be empty
 *
 * In real numbers the function does not change at all; the stored weights are rounded once, and
 * the certificate says what that costs. */
#ifndef PARE_FOLD_H
#define PARE_FOLD_H
#include <pare/cert.h>

typedef struct pare_fold_report {
    size_t norms, key_biases, value_biases; /* how many were folded */
    size_t rounded;                         /* weights that had to be rounded */
} pare_fold_report;

/* `in` is not changed and need not outlive *out. Caller frees *out with pare_model_free. */
PARE_MUST_USE pare_status pare_fold(pare_model **out, pare_fold_report *report,
                                    const pare_model *in, pare_err *err);
/* How it is proven, and proven again by pare_verify_file. */
extern const pare_prover pare_fold_prover;

/* ---- dead vocabulary ------------------------------------------------------------------------- */

/* Rows of the embedding that are nearly one vector (training never moved them) become one row, which
 * their tokens share. The tokenizer stays as it is. On inputs without these tokens nothing else
 * changes than, with a tied head, their own outputs, and these by no more than is proven. */

typedef struct pare_share_report {
    size_t rows, shared; /* tokens; those that share */
    size_t kept;         /* near tokens that keep their row because they occur in the data */
    double limit;        /* distance up to which rows were shared; found: by the gap behind it */
    bool found;
    double farthest; /* of a row from the one that stands for it */
} pare_share_report;

/* Shares the rows within `distance` of the closest group of rows; below 0 (or nan): those before a gap
 * in the distances. Tokens of `data` (NULL: none) keep their rows unless these are before the gap.
 * Nothing else is folded. PARE_ERR_PROMISE: there is no gap, or nothing to share; PARE_ERR_INPUT: a
 * model without an embedding, or with shared rows. `in` is not changed and need not outlive *out. */
PARE_MUST_USE pare_status pare_share_rows(pare_model **out, pare_share_report *report,
                                          const pare_model *in, const pare_inputs *data,
                                          double distance, const pare_exec *exec, pare_err *err);
extern const pare_prover pare_share_rows_prover;
#endif
