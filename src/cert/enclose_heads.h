/* enclose_heads.h - what the two halves of a softmax head share. */
#ifndef PARE_CERT_ENCLOSE_HEADS_H
#define PARE_CERT_ENCLOSE_HEADS_H
#include "enclose.h"

typedef struct side {   /* queries, keys or values of all heads, each head with its own columns */
    pare_mat x, lo;     /* rows x sum of widths; lo of wide midpoints only */
    size_t *at, *width; /* of each head */
    double *norm;       /* rows x heads, of the midpoints, from above */
    double *r[ENGINES]; /* rows x heads */
} side;

typedef struct heads {
    const enclose_ctx *c;
    const pare_attn *at;
    const attn_norms *n;
    side q, k, v;
    flow *o;       /* outputs side by side */
    double *slack; /* of kind poly: by sequence and head, what tolerance the f32 engine uses */
} heads;

static inline double *part(const side *s, size_t i, size_t g)
{
    return s->x.v + i * s->x.ld + s->at[g];
}

static inline double *part_lo(const side *s, size_t i, size_t g)
{
    return s->lo.v + i * s->lo.ld + s->at[g];
}

enum { COVARIANCE_KEYS = 256 /* beyond, n dk dv per row is too much work for what it gains */ };

typedef struct scratch {
    double *p;             /* weights of the visible keys */
    double *p_lo, *rest;   /* wide only: lo of p, and what is left of a sum (dv) */
    double *c;             /* centre of the keys */
    double *k_off, *v_off; /* |k_j - c|, |v_j - o| */
    double *cov;           /* dv x dk */
    double *kc, *pv;       /* k_j - c and p_j (v_j - o), row by row: COVARIANCE_KEYS at most */
} scratch;

/* What is known of one head and row. */
typedef struct head_row {
    const heads *h;
    const pare_head *d;
    const pare_keys *keys;
    size_t i, g, first;       /* row, head, first row of its sequence */
    double range, others;     /* of the midpoint scores; weight beside the largest over it */
    double delta[ENGINES];    /* score errors, largest over the keys */
    double products[ENGINES]; /* |scale| |q| |k|, largest */
    double v_reach[ENGINES], v_radius[ENGINES];
    double diameter; /* of the exact values */
    const scratch *s;
    const double *out; /* the midpoint of the output (its hi) */
    double out_lo;     /* how far hi is from it: 0 unless wide */
} head_row;

static inline size_t key_row(const head_row *w, size_t j)
{
    return w->first + pare_key(w->keys, j);
}
static inline radii side_radii(const side *s, size_t at)
{
    return (radii){{s->r[0][at], s->r[1][at]}};
}

/* Queries, keys and values of the heads on z, turned where positions are rotary. */
PARE_MUST_USE pare_status enclose_sides(heads *h, const flow *z, pare_err *err);
/* Whether it is said what the heads do: none writes over another, turns are unambiguous. */
bool enclose_heads_clear(const enclose_ctx *c, const pare_attn *at, const attn_norms *n);
/* The radii of one head's output row, once its midpoints are known (enclose_weights.c). */
radii enclose_head_radii(head_row *w);
/* Fills h->o from the sides (enclose_softmax.c). */
PARE_MUST_USE pare_status enclose_softmax(heads *h, pare_err *err);
/* h->slack, for kind poly (enclose_poly.c). */
PARE_MUST_USE pare_status enclose_poly_slack(heads *h, pare_err *err);

#endif
