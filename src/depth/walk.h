/* walk.h - two models side by side, sublayer after sublayer: what is known of the tokens of f and
 * of g, and how far they are apart. Theorem 1 (recurrence.c) is a walk from stem to head. */
#ifndef PARE_SRC_DEPTH_WALK_H
#define PARE_SRC_DEPTH_WALK_H
#include "effective_maps.h"
#include "token_norm.h"

/* Tokens: each within w of the centre c, two of one input at most d apart. */
typedef struct reach {
    imat c;        /* 1 x width */
    pare_mat w, d; /* in the ruler's numbers */
} reach;

typedef struct track {
    ruler at;
    reach x, y; /* of f, of g */
    pare_mat e; /* token i of f minus token i of g */
    pare_mat m; /* the mean over the tokens of that; empty: nothing better than e is known */
} track;

typedef struct sight {      /* what the pattern is known to be */
    bool full, never_empty; /* every token sees all; every token sees one at least */
} sight;

/* The attention of a block in both models, with what differs. */
typedef struct attn_pair {
    const eff_attn *f, *g;
    bool same;       /* the same sublayer: all differences are exactly zero */
    bool paired;     /* head by head */
    size_t npowers;  /* of the differences, at least 1 */
    imat ft, gt;     /* T + all M + all V: what happens to a common row */
    imat fv;         /* sum of f's V_h */
    imat t, *mix;    /* f minus g */
    imat *v, *b, *l; /* paired heads */
    imat inside, outside;
} attn_pair;
/* walk_pairs.c */
attn_pair attn_pair_of(calc *k, const eff_attn *f, const eff_attn *g, bool same);

track walk_attention(calc *k, const attn_pair *p, const ruler *out, const track *t, sight s);
/* The same FFN in both. */
track walk_ffn(calc *k, const eff_ffn *f, const ruler *out, const track *t);
/* Behind the head: bounds on the outputs' differences, one by one (1 x dout). */
pare_mat walk_top(calc *k, const eff_ffn *f, const track *t);

/* ---- scores (walk_scores.c) ------------------------------------------------------------------ */

/* Largest row range of a head's scores over tokens of this reach, and the total variation between
 * its weights and uniform ones that follows (Lemma T). */
pare_ub score_range(calc *k, const ruler *at, const eff_head *h, const reach *r);
pare_ub softmax_variation(pare_ub range);
/* size of c B + l as a functional, plus w |B|: what multiplies differences of keys. */
pare_mat slope(calc *k, const ruler *at, const imat *b, const imat *l, const reach *r);
/* |q_i| or |k_j| of a rotary head: (c m + m0) and what w adds. */
pare_ub turning_length(calc *k, const ruler *at, const imat *m, const imat *m0, const reach *r);
/* d B d: how much the scores of two rows can differ beside what is constant in a row. */
pare_ub interaction(calc *k, const ruler *at, const imat *b, const pare_mat *d);
/* Lemma R's tau. */
pare_ub contraction(calc *k, const ruler *at, const eff_head *h, const reach *r, sight s);
/* |Cov(mean query's scores, z)| over a sequence of such tokens is at most this times the standard
 * deviation of z, in the largest entry and entry by entry (INF, BOX). */
pare_ub mean_query(calc *k, const ruler *at, const eff_head *h, const reach *r);
/* |x m|_2 <= size(x) . this (k x 1) */
pare_mat ruler_to_two(calc *k, const ruler *in, const imat *m);
#endif
