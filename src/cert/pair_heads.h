/* pair_heads.h - softmax heads of a pair: what pair_heads.c prepares and pair_softmax.c uses. */
#ifndef PARE_CERT_PAIR_HEADS_H
#define PARE_CERT_PAIR_HEADS_H
#include "enclose_heads.h"
#include "pair.h"

/* One head of one path, at the doubles. */
typedef struct head_view {
    const enclose_ctx *c;
    const heads *h;
    const pare_head *d;
    const head_ops *o;
    size_t g;        /* its number */
    bool turned;     /* rotary: queries and keys turn with their places */
    bool moves;      /* the query depends on the rows */
    pare_mat u;      /* rows x dout: Wo Wv z */
    double *u_off;   /* what u may be off by, euclidean */
    pare_mat key;    /* rows x din: scale Wq^T k; turned, or of a query that does not move: none */
    double *key_off; /* same */
    pare_mat turn;   /* rows x din: scale Wk^T q; turned: none */
    double *turn_off;
    lever *far;      /* |key - the middle of all keys|, for every row */
    dist diameter;   /* of u, with u_off */
    uint32_t *order; /* dout x rows: u by columns, descending; NULL: too much work */
    const dist *r;   /* of the rows */
    const dist *rq;  /* of what the query depends on */
} head_view;

/* Both paths of one head. */
typedef struct head_pair {
    const pair_ctx *c;
    const pair *z;
    const attn_ops *o;
    size_t paths;
    head_view view[2];
    bool paired;     /* their difference is wanted */
    dist diameter;   /* of u[0] - u[1] */
    lever *far;      /* of the differences of the keys from their middle; scored heads */
    const dist *vq;  /* of what the queries depend on: the variation of the difference */
    bool covariance; /* worth its work */
} head_pair;

/* Where the results of all heads are added up. */
typedef struct head_sums {
    dist *own[2], *rest[2], *swing[2], *apart; /* rows each */
    pare_mat vertex[2];                        /* rows x dout; v NULL: not done */
} head_sums;

/* |score| of the middle: every row of all heads, added to the sums. */
PARE_MUST_USE pare_status pair_softmax(const head_pair *h, head_sums *s, pare_err *err);
/* max - min by columns, and the largest distance of two rows. */
dist rows_diameter(const pare_mat *u, const double *off);
/* |x_j - middle| of the given rows; `list` NULL: all rows. The middle is written to `centre`. */
void far_from_middle(lever *far, const pare_mat *x, const double *off, const pare_keys *keys,
                     double *centre);
#endif
