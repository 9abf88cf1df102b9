/* pare/attention.h - who sees whom, and plain attention over it. */
#ifndef PARE_ATTENTION_H
#define PARE_ATTENTION_H
#include <pare/linalg.h>

/* The rows (queries) are tokens 0..n-1, and so are the keys.
 *   full    every key;             causal  keys <= query;
 *   window  keys <= query that are among the last `window` or the first `sinks`;
 *   graph   the keys a CSR lists.
 * Self loops and the expander belong to the model, not to the data. */
typedef enum pare_pattern_kind {
    PARE_FULL,
    PARE_CAUSAL,
    PARE_WINDOW,
    PARE_GRAPH
} pare_pattern_kind;

#define PARE_MAX_EXPANDER 65536
typedef struct pare_pattern {
    pare_pattern_kind kind;
    size_t window, sinks;   /* PARE_WINDOW: window >= 1 */
    bool self_loops;        /* PARE_GRAPH */
    size_t expander_degree; /* PARE_GRAPH: 0 = none; even; at most PARE_MAX_EXPANDER in a model */
    uint64_t expander_seed;
} pare_pattern;

/* A graph as compressed rows by query: the keys of i are idx[ptr[i]] .. idx[ptr[i+1]-1], ascending
 * and distinct. */
typedef struct pare_graph {
    size_t n;
    const size_t *ptr;   /* n + 1 */
    const uint32_t *idx; /* ptr[n] */
} pare_graph;

/* The keys one query sees: at most two ranges [from, to), or a list. */
typedef struct pare_keys {
    size_t from[2], to[2];
    const uint32_t *list; /* graph only; NULL otherwise */
    size_t count;         /* in all */
} pare_keys;

/* g is NULL unless the pattern is a graph. */
pare_keys pare_visible(const pare_pattern *p, const pare_graph *g, size_t n, size_t query);
/* The k-th visible key. */
static inline size_t pare_key(const pare_keys *k, size_t i)
{
    if (k->list) return k->list[i];
    const size_t first = k->to[0] - k->from[0];
    return i < first ? k->from[0] + i : k->from[1] + (i - first);
}
/* True when no row can be without a key, for every input: only then may constants leave the sum. */
bool pare_never_empty(const pare_pattern *p);
/* The graph a model attends over: the data's, plus self loops and expander where the pattern has
 * them. The expander is the union of degree/2 random permutations and their inverses (Philox). */
PARE_MUST_USE pare_status pare_graph_complete(pare_graph *out, pare_arena *a,
                                              const pare_graph *data, const pare_pattern *p,
                                              pare_err *err);

/* One head: y_i = sum_j softmax_j(scale q_i.k_j) v_j over the visible j; 0 for an empty row.
 * q n x dk, k n x dk, v n x dv, y n x dv. Rows in fixed blocks over the threads. */
PARE_MUST_USE pare_status pare_attend_f64(pare_mat *y, const pare_mat *q, const pare_mat *k,
                                          const pare_mat *v, double scale, const pare_pattern *p,
                                          const pare_graph *g, const pare_exec *exec,
                                          pare_err *err);
typedef struct pare_mat32 { /* the f32 engine's view */
    size_t rows, cols, ld;
    float *v;
} pare_mat32;
/* The same in f32: tiles of keys with an online softmax where rows see many keys, lists where they
 * see few; the queries are scaled first. O(n (dk + dv)) memory and one number an edge of a graph,
 * never n x n. Vector units are chosen at run time: bits may differ between CPUs, not between
 * numbers of threads. A nan or an infinity in a value may spread to up to 63 neighbouring rows that
 * do not see it. y may not overlap q, k, v. */
PARE_MUST_USE pare_status pare_attend_f32(pare_mat32 *y, const pare_mat32 *q, const pare_mat32 *k,
                                          const pare_mat32 *v, float scale, const pare_pattern *p,
                                          const pare_graph *g, const pare_exec *exec,
                                          pare_err *err);
/* The same where all rows of q are equal: linear in time under every pattern but a graph, where it
 * is one row of values an edge. */
PARE_MUST_USE pare_status pare_attend_same_f32(pare_mat32 *y, const pare_mat32 *q,
                                               const pare_mat32 *k, const pare_mat32 *v,
                                               float scale, const pare_pattern *p,
                                               const pare_graph *g, const pare_exec *exec,
                                               pare_err *err);
/* y_i = sum_j w_j x_j / sum_j w_j over the keys that row i sees, 0 where it sees none. w_j >= 1, at
 * most 1e260 (on a graph 1e9); NULL: all 1. y may not overlap x. */
PARE_MUST_USE pare_status pare_mean_f32(pare_mat32 *y, const pare_mat32 *x, const double *w,
                                        const pare_pattern *p, const pare_graph *g,
                                        const pare_exec *exec, pare_err *err);

/* ---- gradients ------------------------------------------------------------------------------- */

/* A graph seen from its keys: the queries that see key j are by_key.idx[by_key.ptr[j]] ..., and
 * edge[] says where each of them stands in the graph's own idx. The f32 engine visits the edges in
 * an order of its own, which is chosen here, too. */
typedef struct pare_visits pare_visits;
typedef struct pare_turned {
    pare_graph by_key;
    const uint32_t *edge;              /* ptr[n] */
    const pare_visits *queries, *keys; /* the order for each query, for each key */
} pare_turned;
/* width: how many numbers of keys and values a head has; the order suits it, and is right for any.
 * PARE_ERR_INPUT beyond 2^32 - 1 edges. */
PARE_MUST_USE pare_status pare_graph_turn(pare_turned *out, pare_arena *a, const pare_graph *g,
                                          size_t width, pare_err *err);

/* The same graph with its nodes in an order that suits attention of that width: node i of `out` is
 * node (*order)[i] of `g`. Where the order makes no difference, *order is NULL and *out is *g. */
PARE_MUST_USE pare_status pare_graph_order(pare_graph *out, const uint32_t **order, pare_arena *a,
                                           const pare_graph *g, size_t width, pare_err *err);

/* What a pass of the f32 engine leaves for its way back. */
typedef struct pare_kept32 {
    float *lse;    /* n */
    float *scores; /* of a graph, or NULL: a number an edge. The way back is faster with them. */
    float *room;   /* of a graph, or NULL: two numbers an edge, for the way back to use */
    bool fresh;    /* of a graph: dq, dk, dv hold nothing yet and are written, not added to */
} pare_kept32;

/* pare_attend_* that also keep what the way back needs: lse_i = log sum_j e^(scale q_i.k_j) over
 * the visible j, -inf for an empty row. */
PARE_MUST_USE pare_status pare_attend_keep_f64(pare_mat *y, double *lse, const pare_mat *q,
                                               const pare_mat *k, const pare_mat *v, double scale,
                                               const pare_pattern *p, const pare_graph *g,
                                               const pare_exec *exec, pare_err *err);
/* `turned` goes with `g`; both are NULL unless the pattern is a graph. */
PARE_MUST_USE pare_status pare_attend_keep_f32(pare_mat32 *y, const pare_kept32 *kept,
                                               const pare_mat32 *q, const pare_mat32 *k,
                                               const pare_mat32 *v, float scale,
                                               const pare_pattern *p, const pare_graph *g,
                                               const pare_turned *turned, const pare_exec *exec,
                                               pare_err *err);
/* Adds to dq, dk, dv the gradient for d loss / d y = dy. Weights are computed again from lse: no
 * n x n memory, two numbers an edge of a graph. `turned` as above. The outputs overlap nothing
 * else. Same bits for any number of threads. */
PARE_MUST_USE pare_status pare_attend_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv,
                                                   const pare_mat *dy, const pare_mat *q,
                                                   const pare_mat *k, const pare_mat *v,
                                                   const pare_mat *y, const double *lse,
                                                   double scale, const pare_pattern *p,
                                                   const pare_graph *g, const pare_turned *turned,
                                                   const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status pare_attend_backward_f32(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                                   const pare_mat32 *dy, const pare_mat32 *q,
                                                   const pare_mat32 *k, const pare_mat32 *v,
                                                   const pare_mat32 *y, const pare_kept32 *kept,
                                                   float scale, const pare_pattern *p,
                                                   const pare_graph *g, const pare_turned *turned,
                                                   const pare_exec *exec, pare_err *err);

/* ---- partial results ------------------------------------------------------------------------- */

/* Query p (0, 1, ...) sees the first min(nk, max(0, vis0 + p)) keys. */
#define PARE_VIS_ALL INT64_MAX

/* Attention of a block of queries over a range of keys, not yet normalised:
 *     m_p = max_j s_pj,  l_p = sum_j e^(s_pj - m_p),  acc_p = sum_j e^(s_pj - m_p) v_j
 * over the visible j, with s = scale q.k; m = -inf, l = 0, acc = 0 where nothing is visible. */
typedef struct pare_partial {
    pare_mat32 acc; /* nq x dv */
    float *m, *l;   /* nq */
} pare_partial;

/* q nq x dk, k nk x dk, v nk x dv; the output is borrowed memory of the caller. A result depends
 * neither on the threads nor on the other queries. */
PARE_MUST_USE pare_status pare_attend_partial_f32(pare_partial *out, const pare_mat32 *q,
                                                  const pare_mat32 *k, const pare_mat32 *v,
                                                  float scale, int64_t vis0, const pare_exec *exec,
                                                  pare_err *err);
/* y (nq x dv) = attention over the union of `count` disjoint ranges of keys, from their partial
 * results; in f64 whatever the engine's type: y = sum_t e^(m_t - m) acc_t / sum_t e^(m_t - m) l_t
 * with m = max_t m_t, rounded once to f32. A row that saw nothing is 0. */
void pare_merge_partials(pare_mat32 *y, const pare_partial *parts, size_t count);
/* The way back of such a block: adds to dq (nq x dk), dk (nk x dk), dv (nk x dv) what these pairs
 * contribute, where y (nq x dv) and lse (nq) are those of all keys of a row. Bits do not depend on
 * the threads. */
PARE_MUST_USE pare_status pare_attend_partial_backward_f32(
    pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv, const pare_mat32 *dy, const pare_mat32 *q,
    const pare_mat32 *k, const pare_mat32 *v, const pare_mat32 *y, const float *lse, float scale,
    int64_t vis0, const pare_exec *exec, pare_err *err);
void pare_attend_partial_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy,
                                      const pare_mat *q, const pare_mat *k, const pare_mat *v,
                                      const pare_mat *y, const double *lse, double scale,
                                      int64_t vis0);
#endif
