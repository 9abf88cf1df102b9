/* enclose_heads.h - what the two halves of a softmax head share. */
#ifndef PARE_CERT_ENCLOSE_HEADS_H
#define PARE_CERT_ENCLOSE_HEADS_H
#include "enclose.h"

typedef struct side { /* queries, keys or values of all heads, each head with its own columns */
    pare_mat x;         /* rows x sum of widths */
    size_t *at, *width; /* of each head */
    double *norm;       /* rows x heads, of the midpoints, from above */
    double *r[ENGINES]; /* rows x heads */
} side;

typedef struct heads {
    const enclose_ctx *c;
    const pare_attn *at;
    const attn_norms *n;
    side q, k, v;
    flow *o; /* outputs side by side */
} heads;

static inline double *part(const side *s, size_t i, size_t g)
{
    return s->x.v + i * s->x.ld + s->at[g];
}

/* Fills h->o from the sides. */
PARE_MUST_USE pare_status enclose_softmax(heads *h, pare_err *err);
#endif
