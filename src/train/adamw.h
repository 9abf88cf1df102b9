/* adamw.h - the variants of the optimizer's kernel, so that the tests can run each one. */
#ifndef PARE_SRC_ADAMW_H
#define PARE_SRC_ADAMW_H
#include <pare/base.h>

typedef struct adamw_rates { /* of one step, in f32 */
    float b1, a1, b2, a2, eps;
    float lr;    /* lr / (1 - b1^t) */
    float root;  /* 1 / sqrt(1 - b2^t) */
    float decay; /* lr * weight_decay, where it applies */
} adamw_rates;

typedef struct adamw_piece { /* the same range of the four arrays */
    float *x, *m, *v;
    const float *g;
} adamw_piece;

typedef struct adamw_variant {
    const char *name;
    void (*run)(adamw_piece p, size_t n, const adamw_rates *r);
} adamw_variant;

/* The variants this CPU can run, best first; the last is the portable one. Returns how many. */
size_t adamw_variants(adamw_variant out[3]);
#endif
