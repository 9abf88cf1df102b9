/* pare/length.h - N tokens on an engine that takes only M: attention as a plan of small oracle
 * calls.
 *
 * A pattern is covered by disjoint staircase tiles; a tile is one call (or part of one), and the
 * results of a row are merged in f64. Scores are scale q.k.
 *   native    tile calls that return (m, l, acc): an oracle with PARE_ORC_PARTIAL
 *   zeroref   plain softmax calls with one key of zeros, the reference, whose weight says how much
 *             the other keys weigh together: exact on any softmax oracle
 *   strict    the same, merged by calls too; nothing is computed outside (PARE_ORC_STRICT)
 *   paper     the algorithm of Yu 2025 (unions, subtraction, a dominating token), for comparison
 *   sample    some keys for each query, with a bound for each row that holds with probability
 *   chunk     each chunk attends to itself: what others do; no bound at all */
#ifndef PARE_LENGTH_H
#define PARE_LENGTH_H
#include <pare/json.h>
#include <pare/oracle.h>

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Query p = 0 .. nq-1 of the tile sees the first min(nk, max(0, vis0 + p)) keys of its list. */
typedef struct pare_tile {
    size_t q0;       /* the first query; the others follow upwards, or downwards if q_down */
    size_t k0;       /* the first key behind the shared ones; likewise */
    uint32_t nq, nk; /* nk with the shared ones */
    uint32_t shared; /* the first keys of the list are tokens 0 .. shared-1: sinks */
    bool q_down, k_down;
    int64_t vis0;         /* PARE_VIS_ALL: every query sees every key */
    const uint32_t *keys; /* nk tokens instead of k0, upwards or downwards from here; NULL = none */
    const uint32_t *rows; /* nq queries instead of q0; NULL = none */
} pare_tile;

size_t pare_tile_query(const pare_tile *t, size_t p); /* which token query p is */
size_t pare_tile_key(const pare_tile *t, size_t x);   /* which token key x is */
size_t pare_tile_sees(const pare_tile *t, size_t p);  /* how many keys */

typedef pare_status (*pare_tile_fn)(void *ctx, const pare_tile *t);
/* Gives every tile of a cover of the pattern to `fn`, in a fixed order and one at a time, with at
 * most bq queries and bk keys each: every visible pair is in exactly one tile, and no other pair
 * is. Ends early when fn does not answer PARE_OK. */
PARE_MUST_USE pare_status pare_tiles(size_t n, const pare_pattern *p, const pare_graph *g,
                                     uint32_t bq, uint32_t bk, pare_tile_fn fn, void *ctx);

/* ---- attention through an oracle ------------------------------------------------------------- */

typedef enum pare_length_mode {
    PARE_LENGTH_AUTO, /* native where the oracle has partial results, else zeroref */
    PARE_LENGTH_NATIVE,
    PARE_LENGTH_ZEROREF,
    PARE_LENGTH_STRICT,
    PARE_LENGTH_PAPER,
    PARE_LENGTH_SAMPLE,
    PARE_LENGTH_CHUNK
} pare_length_mode;
#define PARE_LENGTH_MODES 7
const char *pare_length_mode_name(pare_length_mode m); /* "auto", "native", ... */
/* The mode of that name; -1 when there is none. */
int pare_length_mode_of(const char *name);

/* The reference's logit: 0, or near the row's largest. */
typedef enum pare_reference {
    PARE_REF_AUTO, /* 0 where norms prove it safe, else probes; mean where w_min is large (f16) */
    PARE_REF_ZERO,
    PARE_REF_PROBE, /* the largest logit of a few visible keys */
    PARE_REF_MEAN   /* q times the softmax mean of the keys: safe for any data, one more round */
} pare_reference;

typedef struct pare_length_opts { /* all zero is a good choice */
    pare_length_mode mode;
    uint32_t length;   /* M; 0 = the oracle's own; at most that */
    uint32_t features; /* use only these of the oracle's; 0 = all; STATIC may be added */
    pare_reference reference;
    bool no_pack;        /* one tile a call, also where several fit */
    bool host_remainder; /* full pattern, full oracle: the keys left over on the host */
    bool one_vector;     /* zeroref, strict: query and key of a row are the same token's (full) */
    bool no_fallback;    /* bad or unproven rows are reported, not computed again */
    size_t batch_bytes;  /* of calls under way at a time; 0 = a default */
    double eps, delta;   /* sample: 0 = 0.5 and 0.01; paper: eps 0 = 1e-6 */
    uint32_t blocks;     /* sample: key blocks of each query block to begin with; 0 = 1 */
    uint64_t seed;       /* sample: another one for data that depend on what was drawn before */
    bool inverse;        /* paper: r / (1 - r) instead of r */
} pare_length_opts;

/* One head. All arrays are of the oracle's dtype; y overlaps nothing. */
typedef struct pare_length_job {
    size_t n, dk, dv;
    const void *q, *k, *v; /* n x dk, n x dk, n x dv */
    size_t ldq, ldk, ldv;
    double scale;
    void *y; /* n x dv */
    size_t ldy;
    void *lse;     /* native: n, log of the sum of e^score of each row, for the way back; or NULL */
    double *bound; /* sample: n, the bound of each row's |error|_2, or inf; or NULL */
} pare_length_job;

/* What a run did. */
typedef struct pare_length_stats {
    pare_length_mode mode;    /* the one that was used */
    uint64_t calls;           /* of the plan: known beforehand */
    uint64_t merge_calls;     /* of them: strict merges, paper's aggregation */
    uint64_t fallback_calls;  /* further calls, for rows the first ones could not settle */
    uint64_t rounds;          /* sets of calls that wait for one another */
    uint64_t bad_rows;        /* rows the fall-back computed again */
    uint64_t max_partials;    /* most partial results of one row */
    pare_reference reference; /* the one that was used (not native) */
    double lmax;              /* at least the largest |logit| */
    bool simulated;           /* false: n <= M, one plain call for each head */
    /* sample */
    double bound;    /* the largest error bound of a row that was not computed exactly */
    double relative; /* the largest such bound relative to the row's norm */
    uint64_t exact_rows, unproven_rows;
} pare_length_stats;

/* Attention of `count` heads over one pattern, all in the same rounds. `opts` NULL = all zero.
 * stats may be NULL. The result depends neither on the threads nor on the size of the batches. An
 * oracle that answers nan, or nothing, is an error that names the call. `exec` is for the work
 * outside the oracle. */
PARE_MUST_USE pare_status pare_length_attend(const pare_oracle *orc, const pare_length_opts *opts,
                                             const pare_length_job *jobs, size_t count,
                                             const pare_pattern *p, const pare_graph *g,
                                             pare_length_stats *stats, const pare_exec *exec,
                                             pare_err *err);

/* What packing did; calls of pare_length_pack add to it. */
typedef struct pare_pack_stats {
    uint64_t calls, alone; /* of the oracle; those of the same inputs one by one */
    uint64_t max_len;      /* rows of the longest call */
    uint32_t dk, dv;       /* widest vectors of a call: queries and keys with their codes, values */
    uint32_t code;         /* numbers of the longest code among dk */
    uint64_t d_token;      /* of a token that holds query, key and value */
    double penalty;        /* between inputs, the largest */
    double
        leak; /* no output moves further (in norm) by other inputs' weight: 0 where none passes */
} pare_pack_stats;
/* The other way round: many short inputs (one head each, equal widths) in as few calls of the
 * oracle as next fit gives, isolated by codes; equal to separate calls up to rounding. Full or
 * causal, or windows that no input fills. `by`: the penalty between inputs, 0 = so large that
 * nothing leaks. *stats may be NULL. */
PARE_MUST_USE pare_status pare_length_pack(const pare_oracle *orc, const pare_length_job *jobs,
                                           size_t count, const pare_pattern *p, double by,
                                           pare_pack_stats *stats, pare_err *err);

/* The gradient of one head of a native run. The job is that of the run, with its y and lse. */
typedef struct pare_length_grad {
    pare_length_job job;
    const void *dy; /* n x dv: d loss / d y */
    size_t lddy;
    void *dq, *dk, *dv; /* n x dk, n x dk, n x dv: written */
    size_t lddq, lddk, lddv;
} pare_length_grad;
/* By the tiles of a native plan of that length, one at a time on the built-in engine, added in f64:
 * no N x N memory. An oracle that is a black box has no gradient. *count (may be NULL): the tiles
 * are added to its calls, and max_len is raised to the rows of the largest. */
PARE_MUST_USE pare_status pare_length_backward(const pare_length_grad *g, pare_dtype dtype,
                                               uint32_t length, const pare_pattern *p,
                                               const pare_graph *graph, pare_oracle_count *count,
                                               const pare_exec *exec, pare_err *err);

/* How far rounding can take the exact modes (native, zeroref) from attention over the stored
 * numbers in real arithmetic: bound[i] for every column of row i, underflow included. A theorem,
 * for engines whose caps say the truth and rows that pass (pare_length_attend ends with an error
 * otherwise). O(n^2 (dk + dv)). */
PARE_MUST_USE pare_status pare_length_rounding(double *bound, const pare_length_job *job,
                                               const pare_pattern *p, const pare_graph *g,
                                               const pare_oracle_caps *caps,
                                               const pare_length_opts *opts, const pare_exec *exec,
                                               pare_err *err);

/* The oracle of Yu 2025: `layers` of `heads` softmax heads over tokens and weights of the caller's
 * choice, and token functions; strict calls and nothing else. features: PARE_ORC_FULL and / or
 * PARE_ORC_CAUSAL; RESIDUAL and WIDE_HEAD where it has them. Slow and plain: a referee. */
PARE_MUST_USE pare_status pare_oracle_paper(pare_oracle *out, pare_dtype dtype, uint32_t max_len,
                                            uint32_t layers, uint32_t heads, uint32_t features,
                                            const pare_exec *exec, pare_err *err);

/* ---- plans: pure functions of the sizes ------------------------------------------------------ */

/* A tile in a call: query p in row q_at + p; key x in row k_at + x, but the first `shared` keys in
 * rows 1 + x, where other tiles of the call find them too. */
typedef struct pare_placed {
    pare_tile t;
    uint32_t q_at, k_at, shared;
} pare_placed;

typedef struct pare_length_head {
    size_t layer, dk, dv;
} pare_length_head;

typedef struct pare_length_cost {
    uint64_t calls;        /* all: of all heads and layers, merges too */
    uint64_t instances;    /* attention over at most M rows; a call may hold several */
    uint64_t merge_calls;  /* of the calls: strict merges, paper's aggregation */
    uint64_t rounds;       /* sets of calls that wait for one another */
    uint64_t max_len;      /* rows of the longest call */
    uint64_t d_k, d_v;     /* numbers of a query or key, of a value, in the widest call: those of
                              the head, and codes, the reference's logit and its two columns */
    uint64_t d_token;      /* of a token that holds query, key and value: 2 d_k + d_v of a call; of
                              a strict one all its slots and the code of the position */
    uint64_t max_partials; /* most partial results of one row */
    double pairs, computed_pairs; /* visible ones, and those the calls go through */
    double flops, outside_flops;  /* of the calls; of the merge on the host */
    double direct_flops;          /* of attention without calls */
    double bytes_in, bytes_out;   /* to and from the oracle */
    double weight_bytes;          /* of them distinct weights, sent once: not of N */
    double scratch_bytes;         /* beside queries, keys, values and outputs, at most */
    uint64_t theorem;             /* calls of the algorithm of Yu 2025; 0 = it has none */
    uint64_t lower;               /* no cover of what the calls see, by pieces of M x M pairs of one
                                     head and as many in a call as it holds, has fewer; 0 = n/a */
    uint64_t formula;             /* the closed form of `calls`; 0 = none is known */
} pare_length_cost;

typedef struct pare_length_plan {
    size_t tokens, layers, nheads;
    const pare_length_head *heads; /* by layer */
    pare_pattern pattern;
    const pare_graph *graph; /* NULL unless the pattern is one */
    pare_oracle_caps caps;   /* of the oracle it is for: max_len, layers, heads, features, dtype */
    pare_length_opts opts;   /* mode: never AUTO */
    pare_length_cost cost;
} pare_length_plan;

enum { PARE_LENGTH_MOST_TOKENS = 1 << 27 };
/* The plan for `count` heads of a model; everything lives in the arena but for the graph. Refuses
 * what pare_length_attend would refuse for its sizes, and what would take more than a minute or so
 * to count: a head with more than 4e9 / (M + 8) calls of M tokens. */
PARE_MUST_USE pare_status pare_length_plan_make(pare_length_plan *out, pare_arena *a,
                                                const pare_length_head *heads, size_t count,
                                                size_t tokens, const pare_pattern *p,
                                                const pare_graph *g, const pare_oracle_caps *caps,
                                                const pare_length_opts *opts, pare_err *err);
/* The calls of one head, one at a time: they are generated, not stored (native and zeroref). */
typedef pare_status (*pare_length_call_fn)(void *ctx, const pare_placed *tiles, size_t count,
                                           uint32_t rows);
PARE_MUST_USE pare_status pare_length_plan_calls(const pare_length_plan *plan,
                                                 pare_length_call_fn fn, void *ctx, pare_err *err);
/* One layer's heads through any oracle that is at least what the plan is for. */
PARE_MUST_USE pare_status pare_length_plan_attend(const pare_length_plan *plan,
                                                  const pare_oracle *orc,
                                                  const pare_length_job *jobs, size_t count,
                                                  pare_length_stats *stats, const pare_exec *exec,
                                                  pare_err *err);
/* As JSON (no times, no host facts), and back: the costs of the sizes must be those that are
 * written. */
PARE_MUST_USE pare_status pare_length_plan_json(cJSON **out, const pare_length_plan *plan,
                                                pare_err *err);
PARE_MUST_USE pare_status pare_length_plan_parse(pare_length_plan *out, pare_arena *a,
                                                 const cJSON *json, const pare_graph *g,
                                                 pare_err *err);

/* ---- the certificate of a run ---------------------------------------------------------------- */

/* The attention of every head of a model over one input, through a plan: the largest difference of
 * an output entry from attention over the same stored numbers in real arithmetic, on `rows` rows.
 */
typedef struct pare_length_cert {
    double apriori;               /* from norms alone */
    double proven, proven_median; /* the rounding bound of these numbers */
    double measured;              /* against long double */
    double largest;               /* entry of the outputs in these rows */
    size_t rows;
    bool sound; /* measured <= proven <= apriori in every row */
    uint64_t calls, rounds, bad_rows, fallback_calls;
    double lmax;
} pare_length_cert;
struct pare_model;
struct pare_input;
/* Runs it. rows: of each head, evenly; 0 = all. Exact modes only. */
PARE_MUST_USE pare_status pare_length_certify(pare_length_cert *out, const pare_length_plan *plan,
                                              const pare_oracle *orc, const struct pare_model *m,
                                              const struct pare_input *in, size_t rows,
                                              const pare_exec *exec, pare_err *err);

#endif
