/* fold_parts.h - folding piece by piece, so that the verifier can redo one block at a time. */
#ifndef PARE_FOLD_FOLD_PARTS_H
#define PARE_FOLD_FOLD_PARTS_H
#include <pare/fold.h>

/* Where new weights go, what is known of the model, what was done so far. */
typedef struct folder {
    pare_arena *arena;
    bool rotary, never_empty;
    pare_fold_report *report;
    pare_err *err;
} folder;

/* Each changes the struct in place; the weights it replaces are new ones in the arena. */
PARE_MUST_USE pare_status fold_attention(folder *f, pare_attn *a);
PARE_MUST_USE pare_status fold_ffn(folder *f, pare_ffn *n);
PARE_MUST_USE pare_status fold_stem(folder *f, pare_stem *s);
PARE_MUST_USE pare_status fold_top(folder *f, pare_top *t);

/* How many settings (everything but the weights) of two models differ: a block, and what is around
 * the blocks with the pattern (compare_settings.c). */
size_t block_settings_differ(const pare_block *a, const pare_block *b);
size_t end_settings_differ(const pare_model *a, const pare_model *b);

/* ---- affine maps around a linear one (affine.c) ---- */

/* A computed number that knows whether it is the real one: a fold without any rounding has error
 * zero a priori, and that must not be said lightly. */
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
    bool centred;
} affine;

/* What a norm does before its division (all of it for batch and mean-only norms); false when it
 * does nothing. */
PARE_MUST_USE pare_status norm_affine(folder *f, affine *out, bool *any, const pare_norm *n,
                                      size_t d);
/* (w, b) reads the affine map's output:  w (s P x + t) + b  =  w' x + b'.  b may be absent. */
PARE_MUST_USE pare_status fold_before(folder *f, pare_weight *w, pare_weight *b, const affine *m);
/* (w, b) writes what it reads:  s (w x + b) + t. Rows repeat with period d (stacked matrices).
 * w or b may be absent; t is added to b only. */
PARE_MUST_USE pare_status scale_rows(folder *f, pare_weight *w, const affine *m);
PARE_MUST_USE pare_status affine_bias(folder *f, pare_weight *b, const affine *m, pare_dtype dtype);
/* The same for a skip; identity becomes diagonal. */
PARE_MUST_USE pare_status scale_skip(folder *f, pare_skip *s, const affine *m, pare_dtype dtype);

/* Computed values as a weight of the given type; counts those that are not the real numbers. */
PARE_MUST_USE pare_status store(folder *f, pare_weight *out, const number *v, size_t rows,
                                size_t cols, pare_dtype dtype);
#endif
