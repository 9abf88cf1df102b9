/* cuts.h - the constructions for graph transformers, one file each, and what they share. All use
 * nets (folded_net.h), allocate from w->arena and leave their inputs alone. */
#ifndef PARE_SRC_WIDTH_CUTS_H
#define PARE_SRC_WIDTH_CUTS_H
#include "folded_net.h"
#include <pare/width.h>

/* ---- affine bases (basis.c): h ~ U h^ + mu, h^ = U^T (h - mu) ---- */

typedef struct basis {
    pare_mat u; /* D x d, orthonormal columns */
    double *mu; /* D */
} basis;

/* Least squares over the rows; `d` is cut down to the rank of the (centered) rows, but not below 1.
 * Without `center` mu is 0. */
basis basis_pca(pare_work *w, const pare_mat *h, size_t d, bool center);
/* The least d whose largest residual is at most tol. */
basis basis_within(pare_work *w, const pare_mat *h, double tol, bool center);
/* A smaller largest residual than least squares (weights that follow the worst rows). */
basis basis_minmax(pare_work *w, const pare_mat *h, size_t d);
/* U = I, mu = 0: the stream stays as it is. */
basis basis_identity(pare_work *w, size_t d);
pare_mat basis_coords(pare_work *w, const basis *b, const pare_mat *h); /* n x d */
double basis_residual(pare_work *w, const basis *b, const pare_mat *h); /* of the worst row */
size_t basis_dim(const basis *b);

/* ---- queries and keys ---- */

/* The head in new coordinates of its input, with as few dimensions as lose nothing (qk.c);
 * wv, bv, wo stay those of `hd`. */
net_head qk_exact(pare_work *w, const net_head *hd, const basis *b);

/* The best bilinear form of rank d in the metric of the data (qk.c). */
typedef struct qk_fit {
    size_t rank; /* of the form in that metric */
    /* |Cq^1/2 (B - B^) Ck^1/2|_F; the least of any form of this rank. Both are estimates, as LAPACK
     * and products in f64 give them: qk_bounds_of (prove.h) bounds them. */
    double objective, least;
    double total; /* the same for B^ = 0: the size of the scores */
} qk_fit;
net_head qk_optimal(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g,
                    size_t d, qk_fit *fit);

/* The same, with the estimates of what is lost in `note`. */
net_head qk_reduced(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g,
                    size_t d, pare_width_head *note);

/* The singular values of the form in that metric, descending. */
double *qk_singular_values(pare_work *w, size_t *n, const net_head *hd, const pare_mat *h,
                           const pare_graph *g);

/* Random projections (jl.c). */
typedef struct jl_draws {
    size_t trials;
    pare_rng rng;
    double best, first; /* largest half-oscillation of the score error: kept draw, first draw */
} jl_draws;
net_head jl_search(pare_work *w, const net_head *hd, const pare_mat *h, const pare_graph *g,
                   size_t d, jl_draws *draws);
/* Different rows of h (bit for bit), and different pairs of them among the listed ones. */
void jl_distinct(pare_work *w, size_t *rows, size_t *pairs, const pare_mat *h, const pare_graph *g);
/* One row of each kind. */
size_t *jl_representatives(pare_work *w, size_t *count, const pare_mat *h);
/* M (d x D) with independent entries N(0, 1/d). */
pare_mat jl_map(pare_work *w, size_t d, size_t from, pare_rng *rng);

/* ---- hidden units from which the others are decoded (select_units.c, leverage.c) ---- */

typedef struct unit_selection {
    size_t n, *which;               /* ascending */
    pare_mat decode;                /* F x n: p ~ decode p_S + offset */
    double *offset;                 /* F */
    double pinv_norm, limit, units; /* spread, limit, units of pare_width_hidden */
} unit_selection;

/* k of the rows of q (F x d, orthonormal columns) by greedy removal. */
size_t *eliminate_rows(pare_work *w, const pare_mat *q, size_t k);
/* |Q_S^+|_2 of selected rows. */
double pinv_norm(pare_work *w, const pare_mat *q, const size_t *which, size_t k);
/* sqrt(d (F - d + 1) / (k - d + 1)): what greedy removal guarantees for |Q_S^+|_F. */
double pinv_norm_limit(size_t f, size_t d, size_t k);
/* |Q row|^2 of an orthonormal basis of a's columns. */
double *leverage_scores(pare_work *w, const pare_mat *a, size_t *rank);
/* k draws; the rows hit, ascending; weights may be NULL. */
size_t *leverage_sample(pare_work *w, const double *scores, size_t f, size_t k, pare_rng *rng,
                        size_t *hit, double *weight);
double leverage_draws(size_t d);              /* k >= 6.52 d ln(d / .005) */
double leverage_constant(size_t d, double k); /* C = sqrt(1 + 800 d / k), probability .99 a node */

unit_selection select_all_units(pare_work *w, size_t f);
/* As many as the rank of the centered activations: nothing is lost on the data. */
unit_selection select_units_exact(pare_work *w, const pare_mat *p, double cut);
unit_selection select_units(pare_work *w, const pare_mat *p, size_t k, const pare_width_opts *o,
                            uint64_t stream);

/* k columns of `pool` (ascending) that, with those of `base`, explain most of y in the metric g
 * (NULL: the identity): omp.c. */
size_t *omp_units(pare_work *w, const pare_mat *base, const pare_mat *pool, const pare_mat *y,
                  size_t k, const pare_mat *g);

/* Squares of y in the metric: all, and those that the layer leaves unexplained, before and
 * after. */
typedef struct units_fit {
    double all, before, after;
} units_fit;
/* Moves the units of l (w1, b1) so that with the stream z they explain more of y (refine_units.c),
 * never less; leaves them alone, and returns nan, where there are too many. */
units_fit refine_units(pare_work *w, net_layer *l, const pare_mat *z, const pare_mat *y,
                       const pare_mat *g);

/* ---- regression in the gradient metric (gradient_metric.c, rrr.c) ---- */

/* 2 blocks + 1 matrices, one for each stream point of the folded model. */
pare_mat *gradient_metric(pare_work *w, const pare_model *folded, const pare_input *in,
                          uint64_t seed);
/* g^1/2 with the ridge that regressions use; inverse may be NULL. */
pare_mat metric_root(pare_work *w, const pare_mat *g, pare_mat *inverse);

/* h^ = (phi - from) c, y ~ u h^ + to; the columns of h^ have mean 0 and variance 1. */
typedef struct rrr_fit {
    pare_mat c, u;
    double *from, *to;
} rrr_fit;
/* g: NULL, the identity. The rank is at most d, and at most that of the fit (but 1). */
rrr_fit rrr(pare_work *w, const pare_mat *phi, const pare_mat *y, size_t d, const pare_mat *g);
pare_mat rrr_coords(pare_work *w, const rrr_fit *f, const pare_mat *phi);
double *rrr_offset(pare_work *w, const rrr_fit *f); /* -c^T from */

/* ---- whole nets ---- */

typedef struct cut_record {
    pare_width_point *points;  /* 2 L + 1 */
    pare_width_head *heads;    /* sum of heads */
    pare_width_hidden *hidden; /* L */
    size_t npoints, nheads, nhidden;
} cut_record;
cut_record record_new(pare_work *w, const net *n);
/* Point k of the stream: h0 z0 h1 ... */
void record_point(cut_record *r, size_t k, size_t before, size_t after, double residual_est);

net cut_subspaces(pare_work *w, const net *n, const activations *p, const pare_width_opts *o,
                  cut_record *r);
/* jl and qk: queries and keys alone, layer by layer on the stream that is already cut. */
net cut_scores(pare_work *w, const net *n, const activations *p, const pare_width_opts *o,
               cut_record *r);

/* The practical pipeline (cut_auto.c). metric: one for each stream point, h0 z0 h1 ...; NULL:
 * every direction counts the same, units stay as chosen, values have no bias. */
net cut_auto(pare_work *w, const net *n, const activations *p, const pare_mat *metric,
             const pare_width_opts *o, cut_record *r);

/* Theorem 4.4 (cut_cluster.c). */
typedef struct clusters {
    size_t k, *label; /* n */
    pare_mat center;  /* k x D */
} clusters;
typedef struct cluster_facts {
    size_t k;                     /* clusters found */
    double eps, least, most, sep; /* radius, gamma_1, gamma_2, separation (must be below 1) */
    double onehot;                /* how far the codes are from one-hot */
    double values; /* start jl: largest |v^.v^' - v.v'| over all pairs of values; 0 elsewhere */
} cluster_facts;
/* At most k, fewer when there are fewer different rows; every one has a node. */
clusters clusters_of(pare_work *w, const pare_mat *z, size_t k);
cluster_facts clusters_check(pare_work *w, const pare_mat *z, const clusters *c);
/* facts: one for each layer. */
net cut_cluster(pare_work *w, const net *n, const activations *p, const pare_width_opts *o,
                cut_record *r, cluster_facts *facts);

/* ---- a change of basis (change_basis.c) ---- */

/* The same function with every skip the identity. Fails (PARE_ERR_INPUT, naming the layer) where a
 * skip is not square or not invertible. cond: of the worst change of coordinates. */
net net_identity_skips(pare_work *w, const net *n, double *cond);
#endif
