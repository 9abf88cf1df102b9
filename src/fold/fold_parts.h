/* fold_parts.h - folding piece by piece, so that the verifier can redo one block at a time. */
#ifndef PARE_FOLD_FOLD_PARTS_H
#define PARE_FOLD_FOLD_PARTS_H
#include "base/work.h"
#include <pare/fold.h>

/* Where new weights go, what is known of the model, what was done so far. After the first failure
 * every step does nothing (base/work.h). */
typedef struct folder {
    pare_work work;
    bool rotary, never_empty;
    /* Only what tensors that the model has can hold: no bias is made where there is none, and norms
     * whose gains are 1 and biases 0 already, as well as biases of 0, are let be. */
    bool standard;
    pare_fold_report *report;
} folder;
folder folder_of(const pare_model *m, bool standard, pare_arena *a, pare_fold_report *report,
                 pare_err *err);

/* pare_fold; `standard`: as a Hugging Face folder of the model's family can hold it. */
PARE_MUST_USE pare_status fold_model(pare_model **out, pare_fold_report *report,
                                     const pare_model *in, bool standard, pare_err *err);

/* Each changes the struct in place; the weights it replaces are new ones in the arena. */
void fold_attention(folder *f, pare_attn *a);
void fold_ffn(folder *f, pare_ffn *n);
void fold_embedding(folder *f, pare_embedding *s);
void fold_head(folder *f, pare_output_head *t);

/* The entries in which the weights of two models differ; every weight when their lists have other
 * lengths. Nothing is changed. */
PARE_MUST_USE pare_status fold_count_different(size_t *out, pare_arena *scratch, pare_model *m,
                                               pare_model *g, pare_err *err);
/* How many settings (everything but the weights) of two models differ: of a block, and of what is
 * around the blocks with the pattern (compare_settings.c). */
size_t block_settings_differ(const pare_block *a, const pare_block *b);
size_t outer_settings_differ(const pare_model *a, const pare_model *b);

/* ---- affine maps around a linear one (affine.c) ---- */

/* A computed number that knows whether it is the real one: a fold without any rounding has error
 * zero a priori, and that claim must be exact. */
typedef struct number {
    double v;
    bool exact;
} number;
number number_product(number a, number b);
number number_sum(number a, number b);
number number_of(const pare_weight *w, size_t i, double otherwise); /* absent weight: otherwise */

/* y = scale * P x + shift, entry by entry; P = I or the projection x - mean x. */
typedef struct affine {
    number *scale, *shift; /* d each */
    size_t d;
    bool centered;
} affine;

/* What a norm does besides its division (all of it for batch and mean-only norms); false when it
 * does nothing, or after a failure. */
bool norm_affine(folder *f, affine *out, const pare_norm *n, size_t d);
/* Whether every number of a weight is v; also of one that is absent. */
bool weight_is(const pare_weight *w, double v);
/* (w, b) reads the affine map's output:  w (s P x + t) + b  =  w' x + b'.  b may be absent. */
void fold_before(folder *f, pare_weight *w, pare_weight *b, const affine *m);
/* The affine map reads what (w, b) writes:  s (w x + b) + t. Rows repeat with period d (stacked
 * matrices). w or b may be absent; t is added to b only. */
void scale_rows(folder *f, pare_weight *w, const affine *m);
void affine_bias(folder *f, pare_weight *b, const affine *m, pare_dtype dtype);
/* The same for a skip; identity becomes diagonal. */
void scale_skip(folder *f, pare_skip *s, const affine *m, pare_dtype dtype);

/* Stores entry i of a weight under construction; counts those that are not the real numbers. */
void put_number(folder *f, void *data, pare_dtype t, size_t i, number v);
#endif
