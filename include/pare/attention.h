/* pare/attention.h - which keys a query sees, and attention over them: softmax in f64 and f32,
 * polynomial attention with a proven error; and the oracle, an engine that takes only M tokens. */
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
/* Visible key number i. */
static inline size_t pare_key(const pare_keys *k, size_t i)
{
    if (k->list) return k->list[i];
    const size_t first = k->to[0] - k->from[0];
    return i < first ? k->from[0] + i : k->from[1] + (i - first);
}
/* The graph a model attends over: the data's, plus self loops and expander where the pattern has
 * them. The expander is the union of degree/2 random permutations and their inverses (Philox).
 * In the arena; it may share the arrays of `data`, which must live as long. */
PARE_MUST_USE pare_status pare_graph_complete(pare_graph *out, pare_arena *a,
                                              const pare_graph *data, const pare_pattern *p,
                                              pare_err *err);

/* What one head of attention reads: queries, keys, values, the scale of the scores, and which keys
 * a query sees. All borrowed for the call. */
typedef struct pare_attention_args {
    const pare_mat *q, *k, *v; /* n x dk, n x dk, n x dv */
    double scale;
    const pare_pattern *pattern;
    const pare_graph *graph; /* NULL unless the pattern is a graph */
} pare_attention_args;
typedef struct pare_attention_args32 { /* the same for the f32 engine, which rounds the scale */
    const pare_mat32 *q, *k, *v;
    double scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
} pare_attention_args32;

/* One head: y_i = sum_j softmax_j(scale q_i.k_j) v_j over the visible j; 0 for an empty row.
 * y n x dv. Rows in fixed blocks over the threads. */
PARE_MUST_USE pare_status pare_attend_f64(pare_mat *y, const pare_attention_args *x,
                                          const pare_exec *exec, pare_err *err);
/* The same in f32: tiles of keys with an online softmax where rows see many keys, lists where they
 * see few; the queries are scaled first. O(n (dk + dv)) memory and one number an edge of a graph,
 * never n x n. Vector units are chosen at run time: bits may differ between CPUs, not between
 * numbers of threads. A nan or an infinity in a value may spread to up to 63 neighboring rows that
 * do not see it. y may not overlap q, k, v. */
PARE_MUST_USE pare_status pare_attend_f32(pare_mat32 *y, const pare_attention_args32 *x,
                                          const pare_exec *exec, pare_err *err);

/* ---- polynomial attention -------------------------------------------------------------------- */

/* Polynomial attention: softmax attention in linear time, with a proven error.
 *
 * With centered queries and keys, q' = scale (q - qc) and k' = k - kc,
 *     softmax_j(scale q_i.k_j) = softmax_j(log w_j + q'_i.k'_j),   w_j = e^(scale qc.k'_j),
 * exactly. A polynomial p(x) = sum_m coef_m x^m close to e^x then gives
 *     y_i = phi(q'_i) S / phi(q'_i) s,   S = sum_j w_j psi(k'_j) v_j,   s = sum_j w_j psi(k'_j)
 * over all monomials of degree <= g: C(d + g, g) numbers a row instead of a row of n scores.
 *
 * What is promised. For every row and every column c of the values
 *     |y_ic - exact_ic| <= bound_i range_c + 2^-24 |y_ic|,   range_c = max_j v_jc - min_j v_jc,
 * where exact is softmax attention of the stored numbers in real arithmetic, and bound_i <=
 * tolerance covers the polynomial and all roundings of its evaluation (the second term is the
 * rounding of the result itself). A row for which this cannot be shown is computed by the exact
 * kernel, and counted; its error is that kernel's rounding alone.
 *
 * Patterns: full and causal; all others are exact attention. */

typedef enum pare_poly_kind {
    PARE_POLY_AUTO,    /* option only: the cheapest of what follows */
    PARE_POLY_EXACT,   /* no polynomial: it would be slower, larger, or cannot meet the tolerance */
    PARE_POLY_TAYLOR,  /* rows are certified one by one by their moments */
    PARE_POLY_REMEZ,   /* the error on [-B, B] is within the tolerance for every row */
    PARE_POLY_ADAPTIVE /* the same with chosen monomials */
} pare_poly_kind;

typedef struct pare_poly_opts {
    double tolerance;    /* of the range of the values; > 0 */
    pare_poly_kind kind; /* AUTO, or one that is forced */
    int degree;          /* -1: the planner's choice */
    size_t heavy;        /* so many longest centered keys are handled exactly for all rows */
    size_t max_bytes;    /* of features and state; 0: 256 MiB */
    bool always;         /* do not ask whether the exact kernel would be faster */
} pare_poly_opts;
#define PARE_POLY_OPTS_DEFAULT                                                                     \
    {                                                                                              \
        .tolerance = 1e-3, .kind = PARE_POLY_AUTO, .degree = -1                                    \
    }

/* How the rows were computed. */
typedef struct pare_poly_report {
    pare_poly_kind kind;
    char why[160];
    size_t degree, features, rows;
    size_t rows_moment; /* certified only by the full moment of degree g + 1 */
    size_t rows_exact;  /* computed by the exact kernel */
    pare_ub proven;     /* largest bound_i of the rows that a polynomial gave; 0 without such */
    pare_ub
        worst_case; /* the same for any logits within the range of these; 0 without a polynomial */
} pare_poly_report;

/* Attention by the polynomial that suits the data; which one depends on the data, the sizes and the
 * options alone. y may not overlap q, k, v. PARE_ERR_NONFINITE for a nan or an infinity. */
PARE_MUST_USE pare_status pare_poly_f32(pare_mat32 *y, pare_poly_report *report,
                                        const pare_attention_args32 *x, const pare_poly_opts *opts,
                                        const pare_exec *exec, pare_err *err);
/* The reference form in f64, plain loops, patterns full and causal alone. bound: n, the bound_i of
 * the rows in real arithmetic; may be NULL, as may report. */
PARE_MUST_USE pare_status pare_poly_f64(pare_mat *y, double *bound, pare_poly_report *report,
                                        const pare_attention_args *x, const pare_poly_opts *opts,
                                        pare_err *err);

/* ---- the oracle: an engine that takes at most M tokens --------------------------------------- */

/* As an interface: what the length direction
 * plans for, and what a trainer can swap. Backends implement pare_oracle_ops; the built-in one sits
 * on the attention kernels. A call is one small piece of attention; calls of one round are
 * independent of one another. Scores are plain q.k: a scale is folded into q. */

enum {                               /* what an oracle can do */
       PARE_ORC_FULL = 1u << 0,      /* unmasked softmax over the call */
       PARE_ORC_CAUSAL = 1u << 1,    /* position p sees positions <= p */
       PARE_ORC_BIAS = 1u << 2,      /* additive n x n bias */
       PARE_ORC_PARTIAL = 1u << 3,   /* tile calls that return (m, l, acc) */
       PARE_ORC_QKV = 1u << 4,       /* q, k, v given directly: no tokens, no weights */
       PARE_ORC_STRICT = 1u << 5,    /* tokens, weights and token functions: Yu 2025's oracle */
       PARE_ORC_RESIDUAL = 1u << 6,  /* strict: layers have skip connections */
       PARE_ORC_WIDE_HEAD = 1u << 7, /* strict: heads of a layer may differ in dv */
       PARE_ORC_STATIC = 1u << 8,    /* every call must have exactly max_len rows */
       PARE_ORC_SPLIT = 1u << 9,     /* qkv: values may stand in two arrays */
       PARE_ORC_WHOLE = 1u << 10,    /* writes every number of an answer, or fails */
       PARE_ORC_ADD = 1u << 11       /* adds rows of an answer to sums, f32 only */
};

typedef struct pare_oracle_caps {
    uint32_t size;                                    /* of this struct, as the backend knows it */
    uint32_t features;                                /* PARE_ORC_... */
    uint32_t max_len;                                 /* M */
    uint32_t layers, heads, d_model, d_k, d_v, batch; /* 0 = any */
    pare_dtype dtype;                                 /* of all arrays of a call */
    double
        exp_flush;  /* exp(-x) is exactly 0 for x >= exp_flush; INFINITY if it is clamped instead */
    double exp_err; /* relative error of exp in units of the unit roundoff */
    double w_min;   /* smallest softmax weight to be trusted */
} pare_oracle_caps;

#define PARE_VIS_ALL INT64_MAX /* of vis0: every query sees every key */
/* Query p sees the first min(nk, max(0, vis0 + p)) keys. Out: row maximum, row sum of weights, and
 * the unnormalized sum_j e^(s_pj - m_p) v_j; m = -inf, l = 0, acc = 0 where nothing is seen. */
typedef struct pare_call_partial {
    const void *q, *k, *v;
    size_t ldq, ldk, ldv;
    uint32_t nq, nk, dk, dv;
    int64_t vis0;
    void *m, *l, *acc;
    size_t ldacc;
} pare_call_partial;

/* y = softmax(mask(q k^T) + bias) v, rows side by side without gaps. Where the oracle can do with
 * values in two arrays, v2 has more columns of them, and y2 what becomes of these. */
typedef struct pare_call_qkv {
    const void *q, *k, *v; /* n x dk, n x dk, n x dv */
    uint32_t n, dk, dv;
    bool causal;
    const void *bias; /* n x n; NULL = none */
    void *y;          /* n x dv */
    const void *v2;   /* n x dv2 */
    void *y2;
    uint32_t dv2; /* 0 = none */
} pare_call_qkv;

/* A token function: pure, aware of the position, applied row by row. */
typedef struct pare_tokfn {
    const char *name;
    uint32_t din, dout;
    void (*fn)(const void *ctx, uint32_t pos, const void *in, void *out);
    const void *ctx;
    uint64_t flops;
} pare_tokfn;

typedef struct pare_head_w {
    const void *wq, *wk, *wv;
    uint32_t din, dk, dv;
} pare_head_w;

typedef struct pare_call_strict {
    const void *x; /* n x din */
    uint32_t n, din;
    bool causal;
    const pare_tokfn *phi;    /* NULL = identity */
    const pare_head_w *heads; /* layers * heads */
    const pare_tokfn *psi;    /* layers; with RESIDUAL its input is (state, heads' outputs) */
    void *y;                  /* n x dout */
    uint32_t dout;
} pare_call_strict;

/* Where the first `rows` rows of an answer go when they are not written but added up. Row p, x:
 *     sum_c = keep sum_c + by x_c,   sum + p ld, in f64, not fused.
 * `weigh` tells keep and by of n <= 64 rows (row + p is the first of them) from what else the call
 * answers about these: m and l of a partial call, or the two columns of y2, each by itself, of one
 * that has two. It is called once for each row of a call, by any thread, never by two of them for
 * the same row. Nothing is written to m, l, acc, y and y2. Calls that add to the same rows, with
 * the same ctx, do it in the order in which they are handed in. */
typedef struct pare_call_sums {
    void (*weigh)(void *ctx, size_t row, size_t n, const void *a, const void *b, double *keep,
                  double *by); /* NULL: the answer is written */
    void *ctx;
    double *sum;
    size_t ld, row;
    uint32_t rows;
} pare_call_sums;

typedef struct pare_call {
    enum { PARE_CALL_PARTIAL, PARE_CALL_QKV, PARE_CALL_STRICT } kind;
    union {
        pare_call_partial p;
        pare_call_qkv a;
        pare_call_strict s;
    } u;
    pare_call_sums into; /* partial and qkv calls, where the oracle can */
} pare_call;

/* `evaluate` checks all its calls first and refuses (PARE_ERR_INPUT, nothing written) those with
 * more than max_len rows, of a kind or with widths that the oracle has not; it may return before
 * the work is done. After `barrier`, the end of a round, all outputs are valid. Outputs of
 * different calls must not overlap. The arithmetic inside a call depends neither on the other calls
 * nor on threads or ranks. */
typedef struct pare_oracle_ops {
    void (*caps)(void *self, pare_oracle_caps *out);
    pare_status (*evaluate)(void *self, const pare_call *calls, size_t n, pare_err *err);
    pare_status (*barrier)(void *self, pare_err *err);
    void (*destroy)(void *self);
} pare_oracle_ops;

typedef struct pare_oracle {
    const pare_oracle_ops *ops;
    void *self;
} pare_oracle;

/* The built-in kernels: PARTIAL and QKV (full, causal), PARE_F32 (fast) or PARE_F64 (plain loops,
 * to compare with). max_len 0 means any length. `exec` is borrowed for as long as the oracle lives.
 * Free with pare_oracle_free. */
PARE_MUST_USE pare_status pare_oracle_cpu(pare_oracle *out, pare_dtype dtype, uint32_t max_len,
                                          const pare_exec *exec, pare_err *err);

/* What went through an oracle; refused batches are not counted. */
typedef struct pare_oracle_count {
    uint64_t calls, rounds, max_len; /* max_len: most rows (queries or keys) of a call */
    uint64_t flops;                  /* of visible pairs: 2 (dk + dv) + 5 each */
    uint64_t bytes_in, bytes_out;
} pare_oracle_count;
/* Passes everything on to `inner`, which it owns from then on (also when this fails), and counts
 * into *count, which is the caller's and must outlive the oracle. Free with pare_oracle_free. */
PARE_MUST_USE pare_status pare_oracle_counting(pare_oracle *out, pare_oracle inner,
                                               pare_oracle_count *count, pare_err *err);

void pare_oracle_free(pare_oracle *o); /* accepts an oracle that is all zero */
#endif
