/* patch.h - a graph net on a few rows at a time, each with a proven radius.
 *
 * What is proven. For every row let X be the exact stream (real numbers, stored weights) and M the
 * f64 numbers computed here. Then |X - M|_2 <= rad, and at the end every output entry is within the
 * row's radius of the exact one. Unlike the enclosures of <pare/cert.h> these speak of M alone, of
 * no other engine; and everything a radius needs of attention is a handful of numbers per row, so
 * that they cost little beside the products. Each file begins with its inequalities.
 *
 * Assumed, as there: + - * / sqrt round to nearest (or are fused, in any order). exp is pare_exp,
 * within 2 u, where 8 u are counted.
 *
 * Rounding of the radii themselves: sums, products and roots of fewer than 1000 numbers that are
 * not negative are off by less than 2^-42 of themselves; they are raised by 2^-40 (`raised`).
 * Underflow: as long as no norm is above PATCH_BIG, all results below 2^-1022 of one row together
 * move it by less than PATCH_TINY, which every step adds. Beyond that range a radius is inf. */
#ifndef PARE_SRC_WIDTH_PATCH_H
#define PARE_SRC_WIDTH_PATCH_H
#include "folded_net.h"
#include <math.h>

#define PATCH_BIG  0x1p200
#define PATCH_TINY 0x1p-250

static inline double raised(double x) /* a nan becomes inf: nothing is known */
{
    return x <= PATCH_BIG ? x * (1 + 0x1p-40) + PATCH_TINY : INFINITY;
}

enum { PATCH_WIDEST = 1000 }; /* rows of a net that is read have fewer numbers */

/* y = W x + b. The exact matrix is within `drift` of W entry by entry, relatively: 0, unless
 * folding has rounded it. The norms hold for the exact one as well. */
typedef struct patch_map {
    pare_mat w;      /* out x in; v NULL: absent */
    const double *b; /* out */
    bool diagonal;   /* a skip: w is 1 x d, and y_k = w_k x_k */
    double two, fro; /* |W|_2, |W|_F; diagonal: both the largest entry */
    double row2;     /* longest row */
    double b2, bmax; /* |b|_2, largest |b_k| */
    double b_off;    /* |exact b - b|_2 */
    double round;    /* roundings relative to |W|_F |x| + |b|, drift among them */
} patch_map;

typedef struct patch_head {
    size_t dk, dv;
    size_t q, k, v; /* columns of the rows that attention reads */
    size_t o;       /* columns of what it gives */
    double scale, round;
    patch_map mq, mk, mv; /* norms only: the products are made for all heads at once */
    double *center;       /* dk: any point near the keys */
} patch_head;

typedef struct patch_layer {
    size_t nheads, din, dout, pooled; /* pooled: sum of dv */
    patch_head *heads;
    patch_map qkv, wo, skip1;
    patch_map w1, w2, skip2;
    pare_act act;
    double slope; /* of act, at most */
} patch_layer;

typedef struct patch_net {
    size_t nlayers, widest; /* widest: of everything a row passes through */
    patch_layer *layers;
    patch_map stem, top;
} patch_net;

/* PARE_ERR_INPUT names what is not covered. A batch norm is folded in f64, and what that rounds is
 * part of the maps' drift. */
patch_net patch_read(pare_work *w, const pare_model *m);

/* ---- rows ----------------------------------------------------------------------------------- */

/* What one head reads of one row, from above. */
typedef struct patch_mark {
    double q_norm, q_rad, k_norm, k_rad, v_norm, v_rad;
    double k_off2; /* |k - center|^2 */
} patch_mark;

/* Rows of the stream where a layer begins, and what its attention reads of them. */
typedef struct patch_rows {
    size_t n;
    pare_mat h;
    double *rad, *norm;
    pare_mat qkv;
    patch_mark *mark; /* n x heads */
} patch_rows;

/* Room for n rows of any layer. */
patch_rows patch_rows_new(pare_work *w, const patch_net *p, size_t n);

/* Who sees whom among rows of two lists: numbers below `split` are rows of `base`, the others, less
 * it, rows of `own` (which may be NULL). */
typedef struct patch_view {
    const patch_rows *base, *own;
    size_t split, rows;
    const uint32_t *self; /* which row each row was */
    const size_t *ptr;    /* its keys: idx[ptr[i]] .. */
    const uint32_t *idx;
} patch_view;

/* What is computed on the way, for `room` rows. */
typedef struct patch_scratch {
    size_t room;
    pare_mat a, b;
    double *rad, *norm;
    double *weight; /* of one row's keys */
} patch_scratch;
patch_scratch patch_scratch_new(pare_work *w, const patch_net *p, size_t room, size_t keys);

/* Rows [from, to) of `t`: features in, the stream of layer 0 out. */
void patch_enter(const patch_net *p, patch_rows *t, const pare_mat *x, size_t from, size_t to);
/* Rows [from, to) of layer `l`: what its attention reads of their stream. */
void patch_project(const patch_layer *l, patch_rows *t, size_t from, size_t to);
/* Rows [from, to) of the view through layer `l`: into the same rows of `next`. */
void patch_step(const patch_layer *l, const patch_view *v, patch_rows *next, patch_scratch *s,
                size_t from, size_t to);
/* Outputs and the radius of each row's entries. */
void patch_leave(const patch_net *p, const patch_rows *t, pare_mat *y, double *rad, size_t from,
                 size_t to);

/* ---- pieces --------------------------------------------------------------------------------- */

/* |x|_2, from above. */
double patch_norm(const double *x, size_t n);
/* The heads of row i of the view: their outputs side by side; the radius of all of them. */
double patch_attend(double *out, const patch_layer *l, const patch_view *v, size_t i,
                    double *weight);
#endif
