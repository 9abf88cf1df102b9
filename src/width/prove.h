/* prove.h - what is proven about a cut, piece by piece (verify.c puts it together). */
#ifndef PARE_SRC_WIDTH_PROVE_H
#define PARE_SRC_WIDTH_PROVE_H
#include "cuts.h"
#include "cert/prove.h"
#include <pare/width.h>

/* ---- from norms alone (apriori.c) ---- */

/* sup over inputs with |x_i|_2 <= x of |f - g| (largest entry): |f| + |g|, and for nets that differ
 * only in their queries and keys the recursion of Theorem 3.3 as it is true, if smaller. */
pare_ub apriori_gap(pare_work *w, const net *f, const net *g, pare_ub x);
/* ---- attention weights (attention_ratios.c) ---- */

/* Both models must see the same keys: attention weights are compared key by key. */
bool same_pattern(const pare_pattern *a, const pare_pattern *b);
/* Largest |ln(a / a^)| over all weights of layer `l` on the inputs: proven, and as measured. Both
 * models have as many heads there. */
typedef struct ratio_bound {
    pare_ub proven;
    double measured;
} ratio_bound;
ratio_bound attention_ratios(pare_work *w, const pare_model *f, const pare_model *g,
                             const pare_inputs *set, size_t l);

/* ---- all single-node edits of a graph (edits.c) ---- */

typedef struct edits_bound {
    size_t rows, different; /* that a node is given; how many the data has */
    size_t edits;
    size_t pairs, certain; /* edits and nodes they reach; those with the same largest entry */
    pare_ub proven;        /* largest |f - g|, the graph without an edit included */
    double measured, slack;
} edits_bound;
/* The `most` most frequent rows of the data; 0: all. */
edits_bound edits_prove(pare_work *w, const pare_model *f, const pare_model *g,
                        const pare_input *in, size_t most);
/* The domain in words, where `text` says which graph. NULL when memory is out. */
const char *edits_domain(pare_arena *a, const char *text, const edits_bound *e);

/* ---- norms to the last digits (singular_bounds.c) ---- */

pare_ub vector_norm(const double *v, size_t n);
pare_ub fro_norm(const pare_mat *m);
/* What a computed product of two matrices with these Frobenius norms may be off by, in that norm:
 * `inner` terms to a sum (and a bias, or a scaling, among them). */
pare_ub product_rounding(size_t inner, pare_ub a, pare_ub b);
typedef struct singular_bounds {
    size_t n;
    double *low;   /* low[i] <= sigma_i, descending */
    pare_ub *high; /* sigma_i <= high[i] */
} singular_bounds;
singular_bounds singular_bounds_of(pare_work *w, const pare_mat *a);
pare_ub spectral_norm(pare_work *w,
                      const pare_mat *m); /* |m|_2, within 1e-12 of it; of no matrix: 0 */

/* ---- how far a layer moves its rows (move.c) ---- */

typedef struct mover mover; /* one layer and its norms */
/* `off`: entries of r1, wo, r2, w2 may be wrong by this share of themselves (a fold's
 * roundings). */
mover *mover_new(pare_work *w, const net_layer *l, double off);
pare_ub mover_stretch(const mover *m); /* of the hidden layer with its skip: a Lipschitz constant */
pare_ub mover_longest(const mover *m); /* largest |row| of W1 */
/* |layer(H')_i - layer(H)_i| <= out[i] in the euclidean norm for all H' with |h'_i - h_i| <= e[i].
 * `hidden` encloses W1 z + b1 at H: the rows before the activation. */
void move_layer(pare_work *w, pare_ub *out, const mover *mv, const pare_mat *h, const pare_ub *e,
                const pare_graph *g, const pare_enclosure *hidden);

/* ---- a path through the layers, and how far the exact one may be from it (tube.c) ---- */

typedef struct propagation { /* one model on one input */
    const pare_model *m;     /* itself: what is enclosed */
    const net *n;            /* folded: what its norms are of */
    const pare_input *in;
    const pare_graph *g; /* complete */
    mover **layers;
    pare_ub *top; /* |row| of the last map, for every output */
    pare_ub map;  /* |We|_2 */
    pare_ub off;  /* share of themselves by which folded entries may be wrong */
} propagation;

/* Whether the folded matrices are the model's own up to a share of themselves; else why not. */
const char *propagation_refuses(const pare_model *m);
/* `rounded`: weights that folding had to round. */
propagation propagation_new(pare_work *w, const pare_model *m, const net *n, size_t rounded,
                            const pare_input *in, const pare_graph *g);
/* Rows of h_0; radii of rows, euclidean. */
pare_mat propagation_embedding(pare_work *w, const propagation *t, pare_ub *r);
/* layer(H) in *out (n x width), and in r how far layer(H') is from it for |h'_i - h_i| <= e[i]. */
pare_mat propagation_layer(pare_work *w, const propagation *t, size_t l, const pare_mat *h,
                           const pare_ub *e, pare_ub *r);
/* Outputs at the rows of h_L, with the radii of their entries (rounding alone). */
pare_enclosure propagation_head(pare_work *w, const propagation *t, const pare_mat *h);

typedef struct model_pair {          /* the models of a certificate */
    const pare_model *f, *g, *small; /* small: g folded */
    const net *nf, *ng;
    size_t rounded_f, rounded_g; /* by folding */
    bool same;                   /* the streams have the same coordinates */
} model_pair;

/* ---- heads without wo (identity_wo.c) ---- */

/* The identity in the place of every wo that is not there; m is the caller's own copy. */
PARE_MUST_USE pare_status insert_identity_wo(pare_model *m, pare_err *err);

/* ---- every input near the given one (ball_bound.c) ---- */

/* The last rows of the path from the given input; r: how far those of any input are from them
 * whose rows are each within rho of the given ones. */
pare_mat ball_path(pare_work *w, const propagation *t, double rho, pare_ub *r);
typedef struct ball_bound {
    pare_ub apart;        /* largest difference of an output entry */
    size_t rows, certain; /* rows whose largest entry is the same one in both models, throughout */
} ball_bound;
ball_bound ball_compare(pare_work *w, const propagation *f, const propagation *g, double rho);
ball_bound ball_of_set(pare_work *w, const model_pair *p, const pare_inputs *set, double rho);

/* ---- layer by layer (layerwise_bound.c) ---- */

/* f is never run from end to end: its layers are applied to the rows the small model had, brought
 * to f's coordinates by least squares (or taken as they are, `same`). small: h_0 .. h_L of the
 * small model. Returns the last of the rows that stand for f's; b: how far f's own may be. */
pare_mat layerwise_path(pare_work *w, const propagation *f, const pare_mat *small, bool same,
                        pare_ub *b);
/* Largest difference of an output entry; `out` encloses the small model's outputs. */
pare_ub layerwise_gap(pare_work *w, const propagation *f, const pare_mat *small, bool same,
                      const pare_enclosure *out);
pare_ub layerwise_gap_of_set(pare_work *w, const model_pair *p, const pare_inputs *set);
/* The affine map of the small rows that is nearest to `target`, applied to them. */
pare_mat decode_rows(pare_work *w, const pare_mat *small, const pare_mat *target);

/* ---- Theorem 4.2 (lowrank_bound.c) ---- */

const char *lowrank_refuses(const net *n); /* which hypothesis fails; NULL: none */
typedef struct lowrank_facts {
    pare_ub maps, rows, eps; /* largest norms of maps and rows; farthest from d dimensions */
    pare_ub bound;           /* some net of width d is this near, decoded: last rows, euclidean */
} lowrank_facts;
lowrank_facts lowrank_measure(pare_work *w, const pare_model *m, const net *n,
                              const pare_inputs *set, size_t d);
pare_ub largest_map_norm(pare_work *w,
                         const net *n); /* the largest norm of a map, scales multiplied in */

/* ---- Theorem 4.4 (cluster_bound.c) ---- */

/* Largest difference of an output entry on one input, from the radii of f's clusters and the errors
 * of g's codes in the last layer; inf where that has a skip or is not ReLU. nf, ng: the models'
 * matrices, not rounded by a fold. */
pare_ub cluster_gap(pare_work *w, const pare_model *f, const pare_model *g, const net *nf,
                    const net *ng, const activations *pf, const pare_input *in);

/* ---- what Shirzad 2024 prints (paper_formulas.c) ---- */

/* jl, cluster: formulas for the certificate's list `paper`. What jl.distortion says in `cert` is
 * the eps of Theorem 3.3. */
void add_paper_formulas(pare_work *w, pare_cert *cert, pare_arena *keep, pare_width_method method,
                        const net *f, const net *g, const activations *pf, const activations *pg);

/* ---- the best form of a rank (qk.c) ---- */

/* |Rq (B - B^) Rk|_F for the forms of two heads on one stream, from above (`reached`; inf where
 * their scales differ), and for every form of b's rank from below (`least`, one part in 1e4 lower).
 * A theorem about the f64 weights of `a` and `b` and the f64 metric Rq, Rk that qk.c computes from
 * h: least <= reached always. Not about a metric of exact streams. */
typedef struct qk_bounds {
    pare_ub reached;
    double least;
} qk_bounds;
qk_bounds qk_bounds_of(pare_work *w, const net_head *a, const net_head *b, const pare_mat *h,
                       const pare_graph *g);

/* ---- what no cut can beat (lower_bounds.c) ---- */

/* From below, a theorem: |a - b|_F for any b whose rows are an affine map of d numbers each. rad:
 * how far the rows meant are from those of a, euclidean. NULL: a is meant as it is stored; with a
 * the rows that an f64 pass computed it then says something of these doubles, nothing of the
 * model's own stream: evidence. */
double residual_lower_bound(pare_work *w, const pare_mat *a, const double *rad, size_t d);
/* A theorem of the same kind: the rows meant lie in no affine subspace of fewer dimensions. That
 * they lie in one of so many can not be proven from enclosures: a numerical rank (basis_within) is
 * an observation. */
size_t affine_rank_at_least(pare_work *w, const pare_mat *a, const double *rad);
double entry_lower_bound(pare_work *w, const pare_mat *a, const double *rad,
                         size_t d); /* |a - b|_max */
/* The largest difference of an output entry on the set, at least, for any model with an affine head
 * on rows of d numbers. */
double outputs_lower_bound(pare_work *w, const pare_model *f, const pare_inputs *set, size_t d);
/* The rows of f at a place of its stream (2 l: before layer l, 2 l + 1: behind its attention) on
 * one input, and in rad[0..tokens) how far the exact ones are, euclidean. rad is in w's arena. */
pare_mat stream_enclosed(pare_work *w, double **rad, const pare_model *f, size_t place,
                         const pare_input *in);
/* What the best affine map of x leaves of a: an estimate. */
double decoding_residual_est(pare_work *w, const pare_mat *a, const pare_mat *x);

/* ---- models with norms (lm_verify.c): a pare_prover's function ---- */

pare_status lm_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed, const pare_model *f,
                     const pare_model *g, const pare_inputs *set, const pare_exec *exec,
                     pare_err *err);
#endif
