/* pair.h - two models that differ only in their attentions, run side by side on every input near a
 * given one. Private to the room; pair.c tells the story, include/pare/ball.h the statement.
 *
 * The law of a pair. For every input of the ball let X, Y be the exact streams of f and g (real
 * numbers, stored weights) at some place, and h[0], h[1] the doubles kept here. Then for every row
 *
 *     |X - h[0]| <= r[0],   |Y - h[1]| <= r[1],
 *     |(X - Y) - (h[0] - h[1])| <= v,           |X - Y| <= z
 *
 * in two norms at once: the euclidean one and the largest entry. v, the variation of the
 * difference, is what makes the bound: r[0] + r[1] bounds it too, but is far larger where f and g
 * do nearly the same. The doubles are any: what is exact at them is enclosed anew at every step
 * (enclose.h), and the step's rounding joins the radii. */
#ifndef PARE_CERT_PAIR_H
#define PARE_CERT_PAIR_H
#include "enclose.h"
#include "prove.h"

/* ---- distances ----------------------------------------------------------------------------- */

typedef struct dist { /* of a row: euclidean, and its largest entry; upper bounds */
    double two, max;
} dist;

static inline dist dist_of(double both)
{
    return (dist){both, both};
}
static inline dist dist_add(dist a, dist b)
{
    return (dist){up_add(a.two, b.two), up_add(a.max, b.max)};
}
static inline dist dist_mul(double k, dist a)
{
    return (dist){up_mul(k, a.two), up_mul(k, a.max)};
}
static inline dist dist_min(dist a, dist b)
{
    return (dist){up_min(a.two, b.two), up_min(a.max, b.max)};
}
static inline dist dist_max(dist a, dist b)
{
    return (dist){up_max(a.two, b.two), up_max(a.max, b.max)};
}
/* Each norm of a row of d numbers bounds the other. */
static inline dist dist_tidy(dist a, size_t d)
{
    a.max = up_min(a.max, a.two);
    a.two = up_min(a.two, up_mul(up_sqrt((double)d), a.max));
    return a;
}

/* Of a matrix y = W x: how much longer a row can get. */
typedef struct op {
    size_t out;
    double two, max; /* |W|_2; largest sum of |entries| of a row */
    double cross;    /* largest euclidean norm of a row: from the euclidean norm to entries */
} op;

static inline dist op_move(const op *o, dist x)
{
    const double max = up_min(up_mul(o->max, x.max), up_mul(o->cross, x.two));
    return dist_tidy((dist){up_mul(o->two, x.two), max}, o->out);
}
static inline op op_identity(size_t d)
{
    return (op){d, 1, 1, 1};
}

/* A vector t that is multiplied with a row that moves: |t.x| <= lever_move. */
typedef struct lever {
    double two, one; /* euclidean, sum of |entries| */
} lever;

static inline double lever_move(lever t, dist x)
{
    return up_min(up_mul(t.two, x.two), up_mul(t.one, x.max));
}
lever lever_of(const double *t, size_t n);
/* |t - s| of stored numbers. */
lever lever_apart(const double *t, const double *s, size_t n);
/* Raised by what t may be off by, euclidean. */
static inline lever lever_raise(lever t, double off, size_t n)
{
    return (lever){up_add(t.two, off), up_fma(up_sqrt((double)n), off, t.one)};
}

/* ---- norms of the weights, made once for a pair (pair_ops.c) -------------------------------- */

typedef struct unit_norms { /* of the rows of a matrix */
    double *two, *one;
} unit_norms;

typedef struct head_ops {
    op v;                  /* Wo Wv of the head */
    double qk2, qk1;       /* |scale| sup |a Wq^T Wk b|: euclidean, and for |a|, |b|_max <= 1 */
    double fq, fk, fv, fo; /* Frobenius norms */
    double q2, k2;         /* |Wq|_2, |Wk|_2 */
} head_ops;

/* One attention branch = sum_j U^j x E_j + sum_h (P_h - U) x V_h + constants: a linear part, and
 * what its weights differ from uniform ones. */
typedef struct branch_ops {
    head_ops *heads; /* none unless the kind has heads */
    size_t powers;
    op *e; /* of E_0 ... */
} branch_ops;

typedef struct attn_ops {
    branch_ops b[2];
    bool same;   /* the two are the same function */
    bool paired; /* both have softmax heads with the same values */
    bool scored; /* and the same queries and keys */
    size_t powers;
    op *apart; /* of the differences of the E_j */
    op skip;
} attn_ops;

typedef struct ffn_ops {
    op *layers, skip;
    unit_norms *units;
} ffn_ops;

typedef struct pair_ops {
    op map, dense, out;
    unit_norms dense_units, out_units;
    attn_ops *attn; /* nblocks */
    ffn_ops *ffn;
} pair_ops;

PARE_MUST_USE pare_status pair_ops_new(pair_ops **out, pare_arena *a, const pare_model *f,
                                       const pare_model *g, const pare_model_norms *norms,
                                       pare_err *err);
/* W_q, W_k, W_v of a head as [dk or dv, din]; W_o as [dout, dv] whatever the kind. */
PARE_MUST_USE pare_status head_matrix(pare_mat *out, pare_arena *a, const pare_attn *at, size_t h,
                                      char which, pare_err *err);
bool attn_has_heads(const pare_attn *at);
/* Whether its rows are looked at: a constant has no use for them, nor for their norm. */
bool attn_reads(const pare_attn *at);
/* Why the two are no pair; NULL: they are. */
const char *pair_refuses(const pare_model *f, const pare_model *g);

/* ---- the streams --------------------------------------------------------------------------- */

typedef struct pair {
    pare_mat h[2];
    dist *r[2], *v, *z;
    double *off[2]; /* what of r[] is the rounding of the last step */
    bool one;       /* both streams are still the same: h[1] is h[0], r[1] is r[0], v and z are 0 */
} pair;

typedef struct pair_ctx {
    enclose_ctx c[2]; /* of f and g; one arena */
    const pair_ops *ops;
    pare_arena *a;
    const pare_exec *exec;
    const double *zeros; /* as many as there are rows */
} pair_ctx;

static inline size_t pair_paths(const pair *x)
{
    return x->one ? 1 : 2;
}
/* Room for rows x cols; `one` as in `like`. */
PARE_MUST_USE pare_status pair_new(pair *y, const pair_ctx *c, const pair *like, size_t rows,
                                   size_t cols, pare_err *err);
/* The doubles of one path as exact rows. */
flow pair_flow(const pair_ctx *c, const pare_mat *h);
/* y gets f's midpoints and rounding on path p, where its distances are already. */
void pair_take(pair *y, size_t p, const flow *f);
/* What each of r, v, z says of the others. */
void pair_settle(pair *x);
dist row_apart(const pare_mat *a, const pare_mat *b, size_t i);

/* ---- pieces; each makes y in the arena ------------------------------------------------------ */

PARE_MUST_USE pare_status pair_dense(pair *y, const pair_ctx *c, const pair *x,
                                     const pare_weight *w, const pare_weight *b, const op *o,
                                     const dense_norms *n, pare_err *err);
PARE_MUST_USE pare_status pair_norm(pair *y, const pair_ctx *c, const pair *x, const pare_norm *n,
                                    pare_err *err);
/* In place. `from` through a map with rows of these norms made x; NULL: nothing is known. */
PARE_MUST_USE pare_status pair_act(pair *x, const pair_ctx *c, pare_act act, const pair *from,
                                   const unit_norms *u, pare_err *err);
PARE_MUST_USE pare_status pair_ffn(pair *y, const pair_ctx *c, const pair *x, size_t b,
                                   pare_err *err);
PARE_MUST_USE pare_status pair_attn(pair *y, const pair_ctx *c, const pair *x, size_t b,
                                    pare_err *err);
/* y += skip(x) */
PARE_MUST_USE pare_status pair_skip(pair *y, const pair_ctx *c, const pair *x, const pare_skip *s,
                                    const op *o, const dense_norms *n, pare_err *err);
/* The last map and what follows from it. */
PARE_MUST_USE pare_status pair_outputs(pare_ball *out, const pair_ctx *c, const pair *x,
                                       pare_err *err);

/* ---- softmax heads (pair_heads.c, pair_softmax.c) ------------------------------------------- */

/* What one sublayer's heads do to row i, over all heads; after the output map. */
typedef struct head_moves {
    dist *own[2];  /* how far sum_h P_h z V_h may move, by path */
    dist *rest[2]; /* sum_h (P_h - U) z V_h */
    dist *apart;   /* the difference of both paths' sums, for paired heads */
} head_moves;
/* z: the normed rows. Lists that are not wanted are NULL. */
PARE_MUST_USE pare_status pair_heads(head_moves *m, const pair_ctx *c, const pair *z, size_t b,
                                     pare_err *err);

/* ---- softmax on a box (vertex_softmax.c) ---------------------------------------------------- */

/* Upper bound on max over low_j <= w_j <= high_j of sum_j (c_j - min c) w_j / sum_j w_j; `order`
 * lists c in descending order, n >= 1, low >= 0. */
double vertex_softmax(const double *c, const uint32_t *order, const double *low, const double *high,
                      size_t n);
#endif
