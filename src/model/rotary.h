/* rotary.h - positions that turn queries and keys. */
#ifndef PARE_MODEL_ROTARY_H
#define PARE_MODEL_ROTARY_H
#include "layer_ops.h"

/* Cosines and sines of position x frequency, made once per pass: angles and functions in f64, the
 * result rounded to the type of the pass. One table for all blocks with the same frequencies. */
typedef struct angles {
    const struct angles *next;
    pare_weight freqs;
    const void *cosine, *sine; /* tokens x freqs.cols */
} angles;

PARE_MUST_USE pare_status angles_new(const angles **out, scratch *s, const pare_model *m,
                                     size_t tokens, pare_dtype t, pare_err *err);

/* Turns q and k (packed rows of all heads) in place: plane f of a head by position * freqs[f].
 * Row i has position (first + i) % tokens. Keys shared by several heads are turned once. */
PARE_MUST_USE pare_status rotate(rows *q, rows *k, const pare_attn *a, const angles *list,
                                 size_t first, size_t tokens, bool interleaved, const rows_ctx *c);
#endif
