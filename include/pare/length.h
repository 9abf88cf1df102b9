/* pare/length.h - N tokens on an engine that takes only M: attention as a plan of small oracle
 * calls.
 *
 * An oracle is such an engine as an interface. A pattern is covered by disjoint staircase tiles; a
 * tile is one call (or part of one), and the results of a row are merged in f64. Scores are scale
 * q.k.
 *   native    tile calls that return (m, l, acc): an oracle with PARE_ORC_PARTIAL
 *   zeroref   plain softmax calls with one key of zeros, the reference, whose weight says how much
 *             the other keys weigh together: exact on any softmax oracle
 *   strict    the same, merged by calls too; nothing is computed outside (PARE_ORC_STRICT)
 *   paper     the algorithm of Yu 2025 (unions, subtraction, a dominating token), for comparison
 *   sample    some keys for each query, with a bound for each row that holds with probability
 *   chunk     each chunk attends to itself: what others do; no bound at all */
#ifndef PARE_LENGTH_H
#define PARE_LENGTH_H
#include <pare/run.h>

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
#define PARE_LENGTH_OPTS_DEFAULT                                                                   \
    {                                                                                              \
        .mode = PARE_LENGTH_AUTO                                                                   \
    }

/* One head. All arrays are of the oracle's dtype; y overlaps nothing. */
typedef struct pare_length_job {
    size_t n, dk, dv;
    const void *q, *k, *v; /* n x dk, n x dk, n x dv */
    size_t ldq, ldk, ldv;
    double scale;
    void *y; /* n x dv */
    size_t ldy;
    void
        *lse; /* native: n, log of the sum of e^score of each row, for the backward pass; or NULL */
    double *bound; /* sample: n, the bound of each row's |error|_2, or inf; or NULL */
} pare_length_job;

/* What a run did. */
typedef struct pare_length_stats {
    pare_length_mode mode; /* the one that was used */
    uint64_t calls;        /* of the plan: known beforehand */
    uint64_t merge_calls;  /* of them: strict merges, paper's aggregation */
    uint64_t
        fallback_calls; /* further calls, for rows that the first ones could not compute well enough */
    uint64_t rounds;    /* sets of calls that wait for one another */
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

/* The heads of one layer, all over one pattern. */
typedef struct pare_length_layer {
    const pare_length_job *jobs;
    size_t count;
    const pare_pattern *pattern;
    const pare_graph *graph; /* NULL unless the pattern is one */
} pare_length_layer;

/* Attention of the heads of a layer, all in the same rounds. `opts` NULL = all zero.
 * stats may be NULL. The result depends neither on the threads nor on the size of the batches. An
 * oracle that answers nan, or nothing, is an error that names the call. `exec` is for the work
 * outside the oracle. */
PARE_MUST_USE pare_status pare_length_attend(const pare_oracle *orc, const pare_length_opts *opts,
                                             const pare_length_layer *layer,
                                             pare_length_stats *stats, const pare_exec *exec,
                                             pare_err *err);

/* What packing did. */
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

/* The oracle of Yu 2025: layers of softmax heads over tokens and weights of the caller's choice,
 * and token functions; strict calls and nothing else. Of `like` are read dtype, max_len, layers and
 * heads (0: one), and features: PARE_ORC_FULL and / or PARE_ORC_CAUSAL (0: both), RESIDUAL and
 * WIDE_HEAD where it is to have them. Slow and plain, to compare with. `exec` is borrowed for as
 * long as the oracle lives. Free with pare_oracle_free. */
PARE_MUST_USE pare_status pare_oracle_paper(pare_oracle *out, const pare_oracle_caps *like,
                                            const pare_exec *exec, pare_err *err);

/* ---- plans: pure functions of the sizes ------------------------------------------------------ */

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
/* What a plan is for: some heads of a model, and what they see. */
typedef struct pare_length_shape {
    const pare_length_head *heads; /* by layer */
    size_t count, tokens;          /* heads; tokens of the input */
    const pare_pattern *pattern;
    const pare_graph *graph; /* NULL unless the pattern is one; must outlive the plan */
} pare_length_shape;

/* The plan; everything lives in the arena but for the graph. Refuses
 * what pare_length_attend would refuse for its sizes, and what would take more than a minute or so
 * to count: a head with more than 4e9 / (M + 8) calls of M tokens. */
PARE_MUST_USE pare_status pare_length_plan_make(pare_length_plan *out, pare_arena *a,
                                                const pare_length_shape *shape,
                                                const pare_oracle_caps *caps,
                                                const pare_length_opts *opts, pare_err *err);
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
/* A model on one or several inputs whose attention, and nothing else, goes through an oracle. */
typedef struct pare_length_pass {
    const pare_oracle *oracle;
    const pare_model *model;
    const pare_input *in;
    size_t n; /* pare_length_pack_forward: so many inputs; others read the first */
    /* pare_length_forward alone, may be NULL: the streams as they are, and the other processes. */
    const pare_trace *trace;
    const pare_ranks *ranks;
} pare_length_pass;
/* Runs the plan on an input. rows: to judge, of each head, evenly; 0 = all. Exact modes only. */
PARE_MUST_USE pare_status pare_length_certify(pare_length_cert *out, const pare_length_pass *pass,
                                              const pare_length_plan *plan, size_t rows,
                                              const pare_exec *exec, pare_err *err);

/* ---- whole models through an oracle ---------------------------------------------------------- */

/* One pass. `out` is of the oracle's dtype. *stats (may be NULL) adds up over layers. `opts` NULL
 * = all zero.
 *
 * Several ranks share the heads, the calls and, where the engine goes by ranges of rows, the rows
 * of everything else, each with an oracle of its own; all of them come with the same model and
 * input, and have the whole output in the end. Its bits do not depend on their number. */
PARE_MUST_USE pare_status pare_length_forward(void *out, pare_length_stats *stats,
                                              const pare_length_pass *pass,
                                              const pare_length_opts *opts, const pare_exec *exec,
                                              pare_err *err);

typedef struct pare_pack_opts {
    double penalty; /* between inputs of one call; 0: such that nothing leaks */
    size_t rows;    /* to judge, of every head and input; 0 = all */
} pare_pack_opts;
#define PARE_PACK_OPTS_DEFAULT                                                                     \
    {                                                                                              \
        .penalty = 0                                                                               \
    }
/* Several inputs, of different lengths too, through a model whose attention is packed: as many of
 * them in one call as it holds, for each head of each layer. out[i]: of input i, of the oracle's
 * dtype. *cert (may be NULL): rounding bounds and distances from long double, for a penalty of 0.
 * `opts` may be NULL. */
PARE_MUST_USE pare_status pare_length_pack_forward(void *const *out, pare_pack_stats *stats,
                                                   pare_length_cert *cert,
                                                   const pare_length_pass *pass,
                                                   const pare_pack_opts *opts,
                                                   const pare_exec *exec, pare_err *err);
/* The softmax heads of a model by layer, as a plan wants them; none is 0. In the arena. */
PARE_MUST_USE pare_status pare_length_heads(pare_length_head **out, size_t *count, pare_arena *a,
                                            const pare_model *m, pare_err *err);
/* PARE_ERR_INPUT unless a plan that was read is for these very heads, and for what they see. */
PARE_MUST_USE pare_status pare_length_plan_fits(const pare_length_plan *plan, pare_arena *a,
                                                const pare_model *m, pare_err *err);
/* Whether positions say something about tokens beyond the context the model was made with: learned
 * ones do not. */
bool pare_length_may_exceed(const pare_model *m);

/* ---- training through an oracle -------------------------------------------------------------- */

/* The attention of one training run: give &by to pare_train_opts.attention.
 * Stays where it is while it is open. */
typedef struct pare_length_training {
    pare_attention_provider by;
    pare_oracle_count forward;  /* calls of the oracle */
    pare_oracle_count backward; /* tiles of the backward pass: calls and max_len alone */
    pare_oracle oracle;
    pare_oracle_caps caps;
    const pare_exec *exec;
    char id[32];
} pare_length_training;
/* Takes the oracle over, also when this fails. It must have partial results (PARE_ORC_PARTIAL), and
 * the type of the tape. The backward pass is by tiles of the same length on the built-in kernels.
 */
PARE_MUST_USE pare_status pare_length_training_open(pare_length_training *w, pare_oracle oracle,
                                                    const pare_exec *exec, pare_err *err);
void pare_length_training_close(pare_length_training *w); /* accepts one that is all zero */

/* ---- engines by name ------------------------------------------------------------------------- */

#define PARE_PIPE_TIMEOUT 60.0 /* seconds that another program has for an answer (docs/pipe.md) */

/* An attention engine by its name:
 *   cpu            the kernels of this library; mpi: the same, in every process of an mpirun
 *   paper          the strict oracle of Yu 2025: slow, a reference
 *   pipe:COMMAND   another program, run by the shell (docs/pipe.md)
 *   onnx:FILE      ONNX Runtime by the program onnx.js, which node runs */
typedef struct pare_engine {
    const char *name;
    const char *onnx_client; /* the path of onnx.js; NULL: onnx:FILE is refused */
    double timeout;          /* seconds for an answer of a program; 0: PARE_PIPE_TIMEOUT */
} pare_engine;

/* PARE_ERR_USAGE when there is none of that name. */
PARE_MUST_USE pare_status pare_engine_check(const char *name, pare_err *err);
/* Whether it takes strict calls and no others. */
bool pare_engine_is_strict(const char *name);
/* One for calls of like->max_len tokens in like->dtype, whose heads are as wide as those of the
 * model; a strict one has like's layers, heads and features (0: one head, both masks). Freed with
 * pare_oracle_free. */
PARE_MUST_USE pare_status pare_engine_open(pare_oracle *out, const pare_engine *e,
                                           const pare_model *m, const pare_oracle_caps *like,
                                           const pare_exec *exec, pare_err *err);

/* ---- certificates of a run ------------------------------------------------------------------- */

/* The certificate of a length run as a file: written, read, proven again.
 *
 *     pare_length_input_read(&in, arena, model, data, tokens, seed, &err);
 *     pare_length_plan_make(&plan, ...);                      and write it to plan.json
 *     pare_length_oracle(&oracle, &plan, &exec, &err);
 *     pare_length_certify(&cert, &pass, &plan, rows, &exec, &err);
 *     pare_length_cert_write(&cert, &plan, &files, &err);     plan.json.cert.json
 *     pare_verify_file("plan.json", NULL, &err);              (pare/cut.h)
 *
 * The file has hashes of model, plan and data, the bounds, and what was measured. It is proven
 * again by running the same plan on the same input and, on another engine, the model once more. */

enum { PARE_LENGTH_ROWS = 256 }; /* of each head, usually */

/* What a plan is run on: the first input of the data, or (data NULL) `tokens` seeded tokens. */
typedef struct pare_length_input {
    pare_input in;
    pare_graph whole;
    const pare_graph *graph; /* that the model attends over; NULL unless its pattern is one */
} pare_length_input;
/* In the arena; `graph` points into *out, which stays where it is. */
PARE_MUST_USE pare_status pare_length_input_read(pare_length_input *out, pare_arena *a,
                                                 const pare_model *m, const char *data,
                                                 size_t tokens, uint64_t seed, pare_err *err);
/* The built-in engine that a plan is for: the kernels, or the strict oracle. Free with
 * pare_oracle_free. */
PARE_MUST_USE pare_status pare_length_oracle(pare_oracle *out, const pare_length_plan *plan,
                                             const pare_exec *exec, pare_err *err);

/* ---- the file of a plan ---------------------------------------------------------------------- */

/* The text of its file, in the arena. */
PARE_MUST_USE pare_status pare_length_plan_text(char **out, pare_arena *a,
                                                const pare_length_plan *plan, pare_err *err);
PARE_MUST_USE pare_status pare_length_plan_write(const char *path, const pare_length_plan *plan,
                                                 bool overwrite, pare_err *err);
/* What the file of a plan holds before its input is known. */
typedef struct pare_length_plan_file {
    const char *path;
    char *text;              /* in the arena */
    pare_oracle_caps engine; /* max_len, layers, heads, features and dtype */
    pare_length_mode mode;
    size_t tokens;
} pare_length_plan_file;
/* PARE_ERR_INPUT: the file is no plan. */
PARE_MUST_USE pare_status pare_length_plan_read(pare_length_plan_file *out, pare_arena *a,
                                                const char *path, pare_err *err);
/* The whole plan; `g`: as pare_length_shape.graph. */
PARE_MUST_USE pare_status pare_length_plan_open(pare_length_plan *out, pare_arena *a,
                                                const pare_length_plan_file *file,
                                                const pare_graph *g, pare_err *err);

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct pare_length_cert_opts {
    const char *model, *plan; /* files; the certificate is plan.cert.json */
    const char *data;         /* NULL: the input was drawn from the seed */
    size_t rows;              /* of each head, as certified; 0: all */
    uint64_t seed;
    bool overwrite;
} pare_length_cert_opts;
#define PARE_LENGTH_CERT_OPTS_DEFAULT                                                              \
    {                                                                                              \
        .rows = PARE_LENGTH_ROWS                                                                   \
    }
/* Reads the files once more, hashes them, and writes PLAN.cert.json. */
PARE_MUST_USE pare_status pare_length_cert_write(const pare_length_cert *cert,
                                                 const pare_length_plan *plan,
                                                 const pare_length_cert_opts *o, pare_err *err);
/* A bound as the file has it: raised for the roundings of another CPU. */
double pare_length_cert_written(double bound);
/* What inputs it is about, in words. */
const char *pare_length_cert_domain(bool data);
/* The files it speaks of; data is optional. */
enum { PARE_LENGTH_MODEL, PARE_LENGTH_PLAN, PARE_LENGTH_DATA, PARE_LENGTH_FILES };
extern const char *const pare_length_file_keys[PARE_LENGTH_FILES]; /* "input", "plan", "data" */
typedef struct pare_length_file {
    const char *path, *sha256, *architecture; /* path NULL: none; the last of the model alone */
} pare_length_file;

/* What it claims. */
typedef struct pare_length_claims {
    pare_length_file files[PARE_LENGTH_FILES];
    uint64_t seed;
    size_t rows, tokens, length;
    const char *mode, *norm, *domain;
    size_t calls, rounds, bad_rows, fallback_calls;
    double lmax, apriori, proven, measured, tolerance;
} pare_length_claims;

/* What was proven again of the certificate of a run (pare_verify_file_report). */
typedef struct pare_length_verified {
    pare_length_claims claims;
    pare_length_cert again; /* what was proven and measured here */
    double other_engine;    /* largest difference that the other engine has measured */
} pare_length_verified;
/* One call of the largest size of a plan on the built-in engine: the best of a few, in
 * milliseconds; -1: the plan has none, or they are too large to try. */
PARE_MUST_USE pare_status pare_length_call_ms(double *ms, const pare_length_plan *plan,
                                              pare_arena *scratch, const pare_exec *exec,
                                              pare_err *err);
#endif
