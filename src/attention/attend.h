/* attend.h - attention for the library's own modules: equal queries, means, gradients, partial
 * results of a range of keys. */
#ifndef PARE_ATTENTION_ATTEND_H
#define PARE_ATTENTION_ATTEND_H
#include <pare/attention.h>

/* True when no row can be without a key, for every input: only then may constants leave the sum. */
bool pare_never_empty(const pare_pattern *p);

/* The same where all rows of q are equal: linear in time under every pattern but a graph, where it
 * is one row of values an edge. */
PARE_MUST_USE pare_status pare_attend_same_f32(pare_mat32 *y, const pare_attention_args32 *x,
                                               const pare_exec *exec, pare_err *err);
/* y_i = sum_j w_j x_j / sum_j w_j over the keys that row i sees, 0 where it sees none. w_j >= 1, at
 * most 1e260 (on a graph 1e9); NULL: all 1. y may not overlap x. */
PARE_MUST_USE pare_status pare_mean_f32(pare_mat32 *y, const pare_mat32 *x, const double *w,
                                        const pare_pattern *p, const pare_graph *g,
                                        const pare_exec *exec, pare_err *err);

/* ---- gradients ------------------------------------------------------------------------------- */

/* A graph seen from its keys: the queries that see key j are by_key.idx[by_key.ptr[j]] ..., and
 * edge[] says where each of them stands in the graph's own idx. The f32 engine visits the edges in
 * an order of its own, which is chosen here, too. */
typedef struct pare_edge_schedule pare_edge_schedule;
typedef struct pare_transposed_graph {
    pare_graph by_key;
    const uint32_t *edge;                     /* ptr[n] */
    const pare_edge_schedule *queries, *keys; /* the order for each query, for each key */
} pare_transposed_graph;
/* width: how many numbers of keys and values a head has; the order suits it, and is right for any.
 * PARE_ERR_INPUT beyond 2^32 - 1 edges. */
PARE_MUST_USE pare_status pare_graph_transpose(pare_transposed_graph *out, pare_arena *a,
                                               const pare_graph *g, size_t width, pare_err *err);

/* The same graph with its nodes in an order that suits attention of that width: node i of `out` is
 * node (*order)[i] of `g`. Where the order makes no difference, *order is NULL and *out is *g. */
PARE_MUST_USE pare_status pare_graph_order(pare_graph *out, const uint32_t **order, pare_arena *a,
                                           const pare_graph *g, size_t width, pare_err *err);

/* What a pass of the f32 engine leaves for its backward pass. */
typedef struct pare_saved32 {
    float *lse; /* n */
    float
        *scores; /* of a graph, or NULL: a number an edge. The backward pass is faster with them. */
    float
        *edge_scratch; /* of a graph, or NULL: two numbers an edge, for the backward pass to use */
    bool fresh;        /* of a graph: dq, dk, dv hold nothing yet and are written, not added to */
} pare_saved32;

/* pare_attend_* that also keep what the backward pass needs: lse_i = log sum_j e^(scale q_i.k_j)
 * over the visible j, -inf for an empty row. */
PARE_MUST_USE pare_status pare_attend_saving_f64(pare_mat *y, double *lse, const pare_mat *q,
                                                 const pare_mat *k, const pare_mat *v, double scale,
                                                 const pare_pattern *p, const pare_graph *g,
                                                 const pare_exec *exec, pare_err *err);
/* `transposed` goes with `g`; both are NULL unless the pattern is a graph. */
PARE_MUST_USE pare_status pare_attend_saving_f32(pare_mat32 *y, const pare_saved32 *kept,
                                                 const pare_mat32 *q, const pare_mat32 *k,
                                                 const pare_mat32 *v, float scale,
                                                 const pare_pattern *p, const pare_graph *g,
                                                 const pare_transposed_graph *transposed,
                                                 const pare_exec *exec, pare_err *err);
/* Adds to dq, dk, dv the gradient for d loss / d y = dy. Weights are computed again from lse: no
 * n x n memory, two numbers an edge of a graph. `transposed` as above. The outputs overlap nothing
 * else. Same bits for any number of threads. */
PARE_MUST_USE pare_status pare_attend_backward_f64(
    pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy, const pare_mat *q,
    const pare_mat *k, const pare_mat *v, const pare_mat *y, const double *lse, double scale,
    const pare_pattern *p, const pare_graph *g, const pare_transposed_graph *transposed,
    const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status pare_attend_backward_f32(
    pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv, const pare_mat32 *dy, const pare_mat32 *q,
    const pare_mat32 *k, const pare_mat32 *v, const pare_mat32 *y, const pare_saved32 *kept,
    float scale, const pare_pattern *p, const pare_graph *g,
    const pare_transposed_graph *transposed, const pare_exec *exec, pare_err *err);

/* ---- partial results ------------------------------------------------------------------------- */

/* Attention of a block of queries over a range of keys, not yet normalized:
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
/* The backward pass of such a block: adds to dq (nq x dk), dk (nk x dk), dv (nk x dv) what these
 * pairs contribute, where y (nq x dv) and lse (nq) are those of all keys of a row. Bits do not
 * depend on the threads. */
PARE_MUST_USE pare_status pare_attend_partial_backward_f32(
    pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv, const pare_mat32 *dy, const pare_mat32 *q,
    const pare_mat32 *k, const pare_mat32 *v, const pare_mat32 *y, const float *lse, float scale,
    int64_t vis0, const pare_exec *exec, pare_err *err);
void pare_attend_partial_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy,
                                      const pare_mat *q, const pare_mat *k, const pare_mat *v,
                                      const pare_mat *y, const double *lse, double scale,
                                      int64_t vis0);
#endif
