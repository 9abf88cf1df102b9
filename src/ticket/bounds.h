/* bounds.h - a target f and its ticket g side by side: how large what differs is. Private.
 *
 * All norms are euclidean, all figures proven from above with the rounding of their own evaluation.
 * A `span` is what is known of a row where both models stand: |x| <= f, |x~| <= g, |x - x~| <= d,
 * and least <= |P x| where P takes the mean away if the next norm does. */
#ifndef PARE_SRC_TICKET_BOUNDS_H
#define PARE_SRC_TICKET_BOUNDS_H
#include "radius_matrix.h"
#include <pare/model.h>

typedef struct span {
    pare_ub f, g, d;
    double least; /* a lower bound on |P x|; 0: nothing is known */
} span;
/* What follows from the triangle inequality among the three. */
span span_tightened(span s);

/* x -> w x + b, or a form [x 1] W: |w x + b| is at most both w |x| + b and whole |(x, 1)|. */
typedef struct affine {
    pare_ub w, b, whole;
} affine;
pare_ub affine_at(const affine *m, pare_ub x);
affine affine_sizes(pare_work *p, const rmat *w, const rmat *b); /* b: a column */

/* ---- heads (head_pair.c) --------------------------------------------------------------------- */

/* Scores are [x_i 1] G x_k but for what is constant in a row; under rotary positions they are
 * R_i q_i . R_k k_k, and there the key bias counts. Values are V x_k; their biases are the layer's.
 * Of f, of g (t for tilde), and f minus g (e). */
typedef struct head_pair {
    bool factored; /* scores by queries and keys: rotary, or too wide for norms of products */
    bool wide;
    rmat g, gt, ge;        /* (din + 1) x din */
    rmat q, qt, qe;        /* turns: dk x (din + 1), the scale in it */
    rmat k, kt, ke;        /* turns: dk x (din + 1) */
    rmat v, vt, ve;        /* dout x din, or dv x din where there is no wo */
    rmat o, ot, w, wt;     /* wide: V = o w; dout x dv, dv x din */
    rmat inside, inside_t; /* what the value bias gives: dout x 1 */
} head_pair;
/* Makes it in the proof's arena. */
head_pair head_pair_of(pare_work *p, const pare_attn *f, const pare_attn *g, size_t h);

typedef struct head_sizes {
    bool factored;
    affine g, gt, ge, q, qt, qe, k, kt, ke;
    pare_ub v, vt, ve;
    pare_ub g_max, v_max, ge_max, ve_max; /* largest entries */
} head_sizes;
head_sizes head_sizes_of(pare_work *p, const head_pair *h);

/* ---- layers ---------------------------------------------------------------------------------- */

typedef struct dense_sizes { /* of f, of g, of the difference: map, bias */
    affine f, g, e;
    pare_ub row_f, row_g, max_f, max_g; /* longest row of the map; largest entry of the bias */
    pare_ub w_max, e_max;               /* largest entries of the map, of the difference */
} dense_sizes;

typedef struct skip_sizes {
    bool there;
    pare_ub f, g, e;
} skip_sizes;

typedef struct norm_sizes {
    pare_norm_kind kind;
    pare_ub gain_f, gain_g, gain_e; /* largest |entry|; batch: of gain / sqrt(var + eps) */
    pare_ub bias_f, bias_g, bias_e; /* length */
    pare_ub offset;                 /* length of what is added first (batch: minus the mean) */
    pare_ub root;                   /* sqrt(divisor) */
    double c;                       /* shift + divisor eps, from below */
} norm_sizes;

typedef struct attn_sizes {
    pare_attn_kind kind;
    size_t nheads;
    head_sizes *heads;
    pare_ub bias, bias_g, bias_e;    /* rows that see a key: all value biases and bo */
    pare_ub empty, empty_g, empty_e; /* rows that see none: bo */
    bool may_be_empty;
    norm_sizes in, out;
    skip_sizes skip;
} attn_sizes;

/* How the layers of a feed-forward part of g stand for those of f. */
typedef enum ffn_form {
    FFN_EQUAL, /* one by one */
    FFN_SPLIT, /* a ReLU ticket: two for the first, which tell the signs of its inputs apart */
    FFN_PAIRS  /* a ReLU ticket as it is in its source: two for each */
} ffn_form;

typedef struct ffn_sizes {
    pare_ffn_kind kind;
    size_t nlayers;
    dense_sizes *layers;
    ffn_form form;
    double slope; /* of the activation */
    norm_sizes in, out;
    skip_sizes skip;
} ffn_sizes;

/* The reason why models cannot be compared goes to `why` (200 characters); it is empty where
 * nothing is. */
attn_sizes attn_sizes_of(pare_work *p, const pare_model *f, const pare_model *g, size_t b,
                         char *why);
ffn_sizes ffn_sizes_of(pare_work *p, const pare_ffn *f, const pare_ffn *g, char *why);
norm_sizes norm_sizes_of(const pare_norm *f, const pare_norm *g, size_t width, char *why);
skip_sizes skip_sizes_of(pare_work *p, const pare_skip *f, const pare_skip *g, char *why);
dense_sizes dense_sizes_of(pare_work *p, const pare_dense *f, const pare_dense *g, char *why);
/* What two layers in the place of one do to (x+, x-) or, `after_relu`, to x, which is then never
 * negative (relu_pair.c): f's map of x, g's map of that, and the difference. */
typedef struct relu_maps {
    rmat f, g, e;                /* o x d; o x 2 d or o x d */
    rmat f_bias, g_bias, e_bias; /* o x 1 */
} relu_maps;
relu_maps relu_pair_maps(pare_work *p, const pare_dense *f, const pare_dense *inner,
                         const pare_dense *outer, bool after_relu);
dense_sizes relu_pair_sizes(pare_work *p, const pare_dense *f, const pare_dense *inner,
                            const pare_dense *outer, bool after_relu, char *why);
void bounds_refuse(char *why, const char *fmt, ...) PARE_PRINTF(2, 3); /* keeps the first */

/* ---- moves: one span in, one span out -------------------------------------------------------- */

span norm_move(const norm_sizes *n, span s);
span dense_move(const dense_sizes *m, span s);
span skip_move(const skip_sizes *k, span s, span branch); /* skip(s) + branch */
span attn_move(const attn_sizes *m, span s);              /* the branch alone: Theorem B */
span ffn_move(const ffn_sizes *m, span s);                /* the branch alone */
/* From layer l of a part that is not gated on; s: what enters it, behind the activation. */
span ffn_move_from(const ffn_sizes *m, size_t l, span s);
/* lambda: the most that a score of head h can change, up to what is constant in its row. */
pare_ub head_scores_move(const head_sizes *h, span s);

/* The form that Otsuka 2025 prints, with the errors as they are. */
double paper_form(const attn_sizes *m, size_t d1, size_t d2, double alpha);
#endif
