/* pare/oracle.h - an engine that takes at most M tokens, as an interface: what the length direction
 * plans for, and what a trainer can swap. Backends implement pare_oracle_ops; the built-in one sits
 * on the attention kernels. A call is one small piece of attention; calls of one round are
 * independent of one another. Scores are plain q.k: a scale is folded into q. */
#ifndef PARE_ORACLE_H
#define PARE_ORACLE_H
#include <pare/attention.h>

enum {                               /* what an oracle can do */
       PARE_ORC_FULL = 1u << 0,      /* unmasked softmax over the call */
       PARE_ORC_CAUSAL = 1u << 1,    /* position p sees positions <= p */
       PARE_ORC_BIAS = 1u << 2,      /* additive n x n bias */
       PARE_ORC_PARTIAL = 1u << 3,   /* tile calls that return (m, l, acc) */
       PARE_ORC_QKV = 1u << 4,       /* q, k, v given directly: no tokens, no weights */
       PARE_ORC_STRICT = 1u << 5,    /* tokens, weights and token functions: Yu 2025's oracle */
       PARE_ORC_RESIDUAL = 1u << 6,  /* strict only */
       PARE_ORC_WIDE_HEAD = 1u << 7, /* strict only */
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

/* Query p sees the first min(nk, max(0, vis0 + p)) keys. Out: row maximum, row sum of weights, and
 * the unnormalised sum_j e^(s_pj - m_p) v_j; m = -inf, l = 0, acc = 0 where nothing is seen. */
typedef struct pare_call_partial {
    const void *q, *k, *v;
    size_t ldq, ldk, ldv;
    uint32_t nq, nk, dk, dv;
    int64_t vis0; /* PARE_VIS_ALL: all keys */
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
 * the referee). max_len 0 means any length. `exec` is borrowed for as long as the oracle lives.
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
 * into *count, which is the caller's and must outlive the oracle. */
PARE_MUST_USE pare_status pare_oracle_counting(pare_oracle *out, pare_oracle inner,
                                               pare_oracle_count *count, pare_err *err);

/* What `checked` looks at and finds. */
typedef struct pare_oracle_check {
    double fraction;         /* in: of the calls, evenly; 1: all */
    uint64_t calls, checked; /* out; strict calls are never checked */
    double deviation;        /* out: the largest difference seen, of any output number ... */
    double used;             /* ... and the largest part of its bound that a difference took */
} pare_oracle_check;
/* Passes everything on to `inner`, which it owns as above, and computes partial and qkv calls anew
 * in f64 at the barrier. Where a number is further away than the rounding of the oracle's dtype and
 * exp_err explains, or is a nan, the barrier answers PARE_ERR_VERIFY and names the call (counted
 * from 0 since the oracle was made) and the number. The inputs of a call must live until then. */
PARE_MUST_USE pare_status pare_oracle_checked(pare_oracle *out, pare_oracle inner,
                                              pare_oracle_check *check, pare_err *err);

/* An oracle that fails where it is told to: for tests of what sits on top of one. */
typedef enum pare_fault_kind {
    PARE_FAULT_REFUSE, /* evaluate fails with PARE_ERR_IO, nothing is run */
    PARE_FAULT_LOSE,   /* the barrier fails with PARE_ERR_IO */
    PARE_FAULT_NAN,    /* the first number of the last row becomes a nan */
    PARE_FAULT_SHORT,  /* the last row is not written */
    PARE_FAULT_WRONG   /* the first number of the last row is off by `by`, added */
} pare_fault_kind;
typedef struct pare_fault {
    uint64_t call; /* counted from 0 since the oracle was made */
    pare_fault_kind kind;
    double by;
} pare_fault;
/* Passes everything on to `inner`, which it owns as above; `faults` is borrowed. The row meant is
 * that of acc or y. */
PARE_MUST_USE pare_status pare_oracle_faulty(pare_oracle *out, pare_oracle inner,
                                             const pare_fault *faults, size_t n, pare_err *err);
void pare_oracle_free(pare_oracle *o); /* accepts an oracle that is all zero */

#endif
