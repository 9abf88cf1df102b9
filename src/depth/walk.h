/* walk.h - two models side by side, sublayer after sublayer: what is known of the tokens of f and
 * of g, and how far they are apart. Theorem 1 (theorem1_recurrence.c) is a walk from the embedding
 * to the head. */
#ifndef PARE_SRC_DEPTH_WALK_H
#define PARE_SRC_DEPTH_WALK_H
#include "effective_maps.h"
#include "token_norm.h"

/* Tokens: each within w of the center c, two of one input at most d apart. */
typedef struct token_set {
    imat c;        /* 1 x width */
    pare_mat w, d; /* in the norm's numbers */
} token_set;

typedef struct track {
    token_norm at;
    token_set x, y; /* of f, of g */
    pare_mat e;     /* token i of f minus token i of g */
    pare_mat m;     /* the mean over the tokens of that; empty: nothing better than e is known */
} track;

typedef struct mask_facts { /* what the pattern is known to be */
    bool full, never_empty; /* every token sees all; every token sees one at least */
} mask_facts;

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
attn_pair attn_pair_of(pare_work *k, const eff_attn *f, const eff_attn *g, bool same);

track walk_attention(pare_work *k, const attn_pair *p, const token_norm *out, const track *t,
                     mask_facts s);
/* The same FFN in both. */
track walk_ffn(pare_work *k, const eff_ffn *f, const token_norm *out, const track *t);
/* Behind the head: bounds on the outputs' differences, one by one (1 x dout). */
pare_mat walk_output_head(pare_work *k, const eff_ffn *f, const track *t);

/* ---- scores (walk_scores.c) ------------------------------------------------------------------ */

/* Largest row range of a head's scores over tokens of this set, and the total variation between
 * its weights and uniform ones that follows (Lemma T). */
pare_ub score_range(pare_work *k, const token_norm *at, const eff_head *h, const token_set *r);
pare_ub softmax_variation(pare_ub range);
/* size of c B + l as a functional, plus w |B|: what multiplies differences of keys. */
pare_mat slope(pare_work *k, const token_norm *at, const imat *b, const imat *l,
               const token_set *r);
/* |q_i| or |k_j| of a rotary head: (c m + m0) and what w adds. */
pare_ub rotary_length(pare_work *k, const token_norm *at, const imat *m, const imat *m0,
                      const token_set *r);
/* d B d: how much the scores of two rows can differ beside what is constant in a row. */
pare_ub interaction(pare_work *k, const token_norm *at, const imat *b, const pare_mat *d);
/* Lemma R's tau. */
pare_ub contraction(pare_work *k, const token_norm *at, const eff_head *h, const token_set *r,
                    mask_facts s);
/* |Cov(mean query's scores, z)| over a sequence of such tokens is at most this times the standard
 * deviation of z, in the largest entry and entry by entry (INF, BOX). */
pare_ub mean_query(pare_work *k, const token_norm *at, const eff_head *h, const token_set *r);
/* |x m|_2 <= size(x) . this (k x 1) */
pare_mat euclidean_norm_of_map(pare_work *k, const token_norm *in, const imat *m);
#endif
