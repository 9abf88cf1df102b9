/* pare/train.h - training: fresh models, tasks from files, gradients, AdamW, checkpoints,
 * distillation, many runs, and edge-popup (which part of a random network already is a model?). */
#ifndef PARE_TRAIN_H
#define PARE_TRAIN_H
#include <pare/run.h>

/* ---- edge-popup ------------------------------------------------------------------------------ */

/* Edge-popup: which part of a random network already is a model?
 *
 * Weights w are frozen; every matrix has scores s. The K = N - floor((1 - keep) N) largest |s| of
 * a matrix (of equals, those that come first) are its mask m, and w m is the weight that is used.
 * On the backward pass the mask counts as |s|: d loss / d s = (d loss / d (w m)) w sign(s), for
 * what is left out as well. Scores begin uniform on +-1 / sqrt(columns); AdamW moves them; no
 * weight ever moves. The result is a seed and a mask.
 *
 *   pare_frozen_gpt src = {.kind = PARE_FROZEN_NORMAL, .seed = 1, .qk_scale = 2.4};
 *   pare_init init = {.kind = PARE_INIT_GPT, ..., .source = &src};     frozen weights
 *   pare_popup pop = {.keep = 0.3};
 *   pare_train_opts o = {..., .popup = &pop};                          pare_train finds the mask */

/* How the frozen weights of a GPT are made. The spread is that of GPT-2 at width 768 and keeps its
 * activations at other widths: std = 0.02 sqrt(768 / d), the last map of each branch by
 * 1 / sqrt(2 layers), queries and keys by qk_scale. Layer norms are plain, there are no biases, and
 * the gain of the last norm is the constant sqrt(768 / d): without it the logits of a narrow model
 * could not grow. */
typedef struct pare_frozen_gpt {
    pare_frozen_kind kind;
    uint64_t seed;
    double qk_scale;
} pare_frozen_gpt;

/* (head width)^(1/4): what the theory multiplies queries and keys with. */
double pare_popup_theory_scale(size_t dk);

typedef struct pare_popup {
    double keep; /* of the weights of every matrix: above 0, at most 1 */
} pare_popup;

/* From now on m is saved as a ticket (pare/model.h): seed and masks. PARE_ERR_VERIFY names a number
 * that is neither 0 nor that of the source. */
PARE_MUST_USE pare_status pare_popup_code(pare_model *m, const pare_frozen_gpt *from,
                                          pare_err *err);

/* ---- fresh models ---------------------------------------------------------------------------- */

/* Fresh models to be trained. Same options, same seed, same bytes. */

typedef enum pare_init_kind {
    PARE_INIT_GRAPH,  /* vectors on nodes: map, attention over edges, batch norm after the skip */
    PARE_INIT_MLP,    /* the same without attention */
    PARE_INIT_GCN,    /* the same with uniform attention, normalized by the degree */
    PARE_INIT_GPT,    /* ids, learned positions, causal, layer norm before, tied head */
    PARE_INIT_ENCODER /* ids or vectors, full attention, pooled or per-token head */
} pare_init_kind;

typedef struct pare_init {
    pare_init_kind kind;
    size_t dim, layers, heads;
    size_t ffn; /* hidden width; 0: dim (graph kinds), 4 dim (others) */
    size_t vocab, context;
    size_t features;        /* vectors: their width */
    size_t outputs;         /* classes or numbers; GPT: the vocabulary */
    bool self_loops, full;  /* graph: which pairs attend */
    size_t expander_degree; /* graph: 0 = none */
    pare_pool pool;         /* encoder */
    pare_variant variant;   /* what is left out */
    uint64_t seed;
    /* GPT: frozen weights, no biases, plain norms; NULL: from `seed`, to be trained
     */
    const pare_frozen_gpt *source;
} pare_init;

/* Weights as torch's Linear (graph kinds, encoder) or as GPT-2 (std 0.02, the residual maps by
 * 1 / sqrt(2 layers)). Without skips and norms every map keeps the mean square of its inputs
 * instead, or nothing would reach the last layer. PARE_ERR_USAGE names what does not fit. Caller
 * frees with pare_model_free. */
PARE_MUST_USE pare_status pare_init_model(pare_model **out, const pare_init *o, pare_err *err);

/* ---- gradients ------------------------------------------------------------------------------- */

/* Exact gradients of every model: a pass that remembers, and its backward pass.
 *
 *   pare_params *p;  pare_tape *t;                 a trainable copy; memory that is used again
 *   pare_tape_forward(t, &input, &mode, &y, err)   y: rows x outputs, in the tape
 *   ... dy = d loss / d y ...
 *   pare_tape_backward(t, dy, NULL, grad, err)     grad += d loss / d values
 *
 * One story for f32 (fast: training) and f64 (plain: what tests and proofs compare with). */

/* ---- parameters ------------------------------------------------------------------------------ */

typedef struct pare_slot { /* one trainable weight: values[offset] .. + rows * cols */
    const char *name;      /* as in the file: "blocks.0.attn.wq" */
    size_t offset, rows, cols;
    bool vector; /* biases, gains: weight decay leaves them alone */
} pare_slot;

/* A model whose trainable weights lie side by side in one array, in the order of
 * pare_model_each_weight; gradients and the optimizer's moments are arrays of the same shape. Not
 * trained: rotary frequencies, and the running mean and variance of batch norms, which lie in
 * `stats` in the same way. A tied head is trained through the embedding. */
typedef struct pare_params {
    pare_model *model; /* its weights point into values and stats */
    pare_dtype dtype;  /* of both arrays: PARE_F32 or PARE_F64 */
    size_t count, nslots;
    pare_slot *slots;
    void *values; /* count */
    size_t nstats;
    void *stats; /* nstats */
    pare_arena *arena;
} pare_params;

/* The weights of a model copied into one array that an optimizer walks; freed with
 * pare_params_free.
 */
PARE_MUST_USE pare_status pare_params_new(pare_params **out, const pare_model *m, pare_dtype dtype,
                                          pare_err *err);
void pare_params_free(pare_params *p); /* accepts NULL */

/* ---- the tape -------------------------------------------------------------------------------- */

typedef struct pare_mode {
    bool training;   /* batch norms use the batch (and move their running figures), dropout works */
    double dropout;  /* share of the entries set to 0, the others grown by 1 / (1 - share): after
                        the attention branch, after an FFN's activation, after the FFN branch */
    double momentum; /* of the running figures; torch's 0.1 */
    uint64_t seed, step; /* of the masks: a pure function of (seed, step, place) */
} pare_mode;

typedef struct pare_tape pare_tape;
/* Freed with pare_tape_free; `p` and `exec` are borrowed for as long as it lives. */
PARE_MUST_USE pare_status pare_tape_new(pare_tape **out, pare_params *p, const pare_exec *exec,
                                        pare_err *err);
void pare_tape_free(pare_tape *t); /* accepts NULL */
/* Runs the model and keeps what the backward pass needs. *y (may be NULL) stays
 * valid until the next forward. Without `training` y is what pare_forward_f32 or _f64 gives, up to
 * rounding. Memory is O(rows): attention is computed again on the backward pass, never n x n. A
 * graph that was given before (same pointers) is not completed and transposed again. */
PARE_MUST_USE pare_status pare_tape_forward(pare_tape *t, const pare_input *in,
                                            const pare_mode *mode, const void **y, pare_err *err);
/* How the heads of kind poly of a block were computed in the passes of this tape, one head of one
 * sequence at a time; all 0 in f64, and for other kinds. */
typedef struct pare_poly_use {
    uint64_t polynomial, exact;
    char why[160]; /* of the last pass, its first head: as pare_poly_report has it */
} pare_poly_use;
/* Adds the gradient of the last forward pass to grad (p->count numbers; NULL: not wanted).
 * dy: rows x outputs, NULL = 0. dstream: NULL, or nblocks + 1 arrays (each may be NULL) that are
 * d loss / d stream for losses that look at hidden states. */
PARE_MUST_USE pare_status pare_tape_backward(pare_tape *t, const void *dy,
                                             const void *const *dstream, void *grad, pare_err *err);

/* ---- losses, optimizer, a run ---------------------------------------------------------------- */

/* Losses, AdamW, schedules, and runs that survive being killed.
 *
 * A run is a pure function of (start model, task, options, seed): not of threads, ranks, clocks,
 * nor of how often it was stopped and taken up again. */

/* ---- losses ---------------------------------------------------------------------------------- */

/* Each writes the mean over what counts to *loss and adds weight * its gradient to dy (rows x
 * cols, of y's type). Sums are made in f64. PARE_ERR_INPUT when nothing counts. */
typedef struct pare_logits {
    pare_dtype dtype;
    size_t rows, cols;
    const void *v;
} pare_logits;
/* label: one per row, -1 = not counted. */
PARE_MUST_USE pare_status pare_loss_cross_entropy(double *loss, void *dy, const pare_logits *y,
                                                  const int64_t *label, double weight,
                                                  const pare_exec *exec, pare_err *err);

/* ---- optimizer ------------------------------------------------------------------------------- */

typedef struct pare_adamw_opts {
    double beta1, beta2, eps, weight_decay; /* decay: matrices only unless decay_vectors */
    bool decay_vectors;                     /* torch's default: everything decays */
} pare_adamw_opts;
#define PARE_ADAMW_OPTS_DEFAULT                                                                    \
    {                                                                                              \
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01                            \
    }
typedef struct pare_adamw_state {
    float *m, *v;  /* p->count each: running means of the gradients and of their squares */
    uint64_t step; /* the number of this step: the first is 1 */
} pare_adamw_state;
/* values -= lr ( m^ / (sqrt v^ + eps) + weight_decay values ), f32; m and v are updated. */
void pare_adamw_step(pare_params *p, const float *grad, const pare_adamw_state *s, double lr,
                     const pare_adamw_opts *o, const pare_exec *exec);

/* ---- what is learned ------------------------------------------------------------------------- */

typedef struct pare_batch {
    pare_inputs in;       /* side by side; they may differ in length */
    const int64_t *label; /* one per output row, -1 = not counted; or NULL and then */
    const double *value;  /* rows x outputs, nan = not counted */
} pare_batch;

typedef enum pare_fold_part { PARE_PART_VAL, PARE_PART_TEST } pare_fold_part;

/* A task gives the batch of a step, and a score for what was learned. */
typedef struct pare_task {
    void *self;
    const char *id;     /* what is learned from which data (hashes, split, window): part of a
                           checkpoint's fingerprint; NULL: "" */
    const char *metric; /* "auc", "accuracy", "nats", "mse" */
    bool more_is_better;
    bool fixed;     /* every step has the same batch: the teacher's outputs are computed once */
    uint64_t epoch; /* steps of one epoch */
    /* A pure function of (self, seed, step); memory from the arena lives until the next batch. */
    pare_status (*batch)(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err);
    pare_status (*score)(void *self, double *out, const pare_model *m, pare_fold_part part,
                         const pare_exec *exec, pare_err *err);
} pare_task;

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct pare_train_log { /* one line of the log */
    uint64_t step, steps;
    double loss, lr, norm; /* of this step; norm: of the gradient before clipping */
    double val;            /* nan unless the model was scored after this step */
    double test;           /* nan unless it was the best score so far */
    bool best;
} pare_train_log;

typedef struct pare_train_opts {
    uint64_t steps;      /* in all */
    uint64_t warmup;     /* of them */
    uint64_t eval_every; /* steps between two scores; after the last step there is always one */
    uint64_t checkpoint_every; /* steps between two checkpoints; 0: none */
    double lr, last_lr;
    double clip; /* 0: none */
    double dropout;
    pare_adamw_opts adamw;
    uint64_t seed;             /* of batches, dropout and scores */
    const pare_popup *popup;   /* NULL: weights are trained; else which of them are kept */
    const pare_model *teacher; /* or NULL */
    /* Computes the attention of the model that learns, in both passes; NULL: the tape does. Scores
     * and the teacher are not its work. */
    const pare_attention_provider *attention;
    double distill; /* loss = (1 - distill) loss + distill KL; 0..1 */
    double temperature;
    double hidden; /* + hidden * mean square of (stream - teacher's), over the places where widths
                      are equal; place b of L blocks looks at place b K / L of the teacher's K */
    const char
        *checkpoint; /* path; NULL: none. Written every checkpoint_every steps and at the end */
    bool resume;     /* go on from it when it is there; PARE_ERR_INPUT when it is damaged or
                               of another run, by name of what differs */
    void (*log)(void *self, const pare_train_log *line);
    /* At the end, for each block of kind poly: how its heads were computed; may be NULL. */
    void (*poly)(void *self, size_t block, const pare_poly_use *use);
    void *log_self; /* of both */
} pare_train_opts;
#define PARE_TRAIN_OPTS_DEFAULT                                                                    \
    {                                                                                              \
        .steps = 1000, .eval_every = 50, .lr = 1e-3, .clip = 1, .adamw = PARE_ADAMW_OPTS_DEFAULT,  \
        .temperature = 1                                                                           \
    }

typedef struct pare_train_result {
    double val, test; /* of the best score by validation */
    double loss;      /* of the last step */
    uint64_t best_step, steps;
    bool diverged; /* a loss was not finite; the model is the best one before that */
} pare_train_result;

/* Trains a copy of `start`; *out (freed with pare_model_free) is the model with the best validation
 * score. PARE_ERR_NUMERIC when the run diverged before its first score. */
PARE_MUST_USE pare_status pare_train(pare_model **out, pare_train_result *result,
                                     const pare_model *start, const pare_task *task,
                                     const pare_train_opts *opts, const pare_exec *exec,
                                     pare_err *err);

/* ---- tasks from files ------------------------------------------------------------------------ */

/* Graphs, text, sequences.
 *
 *   pare_task task;  pare_task_facts facts;
 *   pare_task_graph(&task, &facts, arena, &opts, err)    what the data are, and ask of a model
 *   pare_init_model(&m, ...)                                 one that suits the facts
 *   pare_train(&out, &result, m, &task, ...)
 *
 * The score of a model whose outputs are not finite is nan: the run has diverged.
 * Everything lives in the arena. A task is only read while it is used: several runs may share
 * it. Messages name the file, and the node or the row. */

/* What the scores of a part are taken on. */
typedef struct pare_scored_part {
    size_t inputs;  /* so many, or documents, */
    size_t counted; /* with so many targets that count; */
    size_t
        of; /* drawn by the seed from so many of the training file; 0: all of a file of its own, or
                       of a fixed share (of a graph: nodes of a mask) */
    bool documents; /* documents were drawn, not single inputs */
} pare_scored_part;
typedef struct pare_task_facts { /* what a model must take and give */
    size_t features;             /* vectors of this width, or */
    size_t ids;                  /* ids below this one */
    size_t outputs;              /* classes, ids or numbers */
    size_t tokens;               /* of one input (a graph: nodes) */
    pare_pool pool;              /* one output row per input (FIRST) or per token (NONE) */
    size_t train, val, test;     /* nodes, tokens or rows */
    pare_scored_part on[2];      /* by pare_fold_part */
    pare_text_notes notes;       /* of the training text */
} pare_task_facts;

/* ---- nodes of a graph: all of it in every step ----------------------------------------------- */

typedef struct pare_task_graph_opts {
    const char *path;
    size_t split;           /* which of the splits of the file */
    bool largest_component; /* leave the other nodes out; the masks stay those of the whole graph */
    bool full;              /* for a model that does not attend over the edges */
    size_t classes;         /* that the model knows; 0: those of the file */
} pare_task_graph_opts;
#define PARE_TASK_GRAPH_OPTS_DEFAULT                                                               \
    {                                                                                              \
        .path = NULL                                                                               \
    }
/* Metric: AUC for two classes, else accuracy. PARE_ERR_INPUT: an empty part, a part of a single
 * class where AUC needs both, labels beyond `classes` (or beyond the number of nodes). */
PARE_MUST_USE pare_status pare_task_graph(pare_task *out, pare_task_facts *facts, pare_arena *a,
                                          const pare_task_graph_opts *o, pare_err *err);

/* ---- text: the next token -------------------------------------------------------------------- */

/* The parts of a file without `val` and `test` follow the one rule (pare_dataset_heldout): what `seed` holds
 * out is for testing, so that a score is what pare_evaluate gives on it, as many inputs more are for validation, and
 * nothing of either is trained on. `shares`: fixed shares of the file instead, as the studies of the
 * papers were made; text is one document then. */
typedef struct pare_task_text_opts {
    const char *train, *val, *test; /* .txt or .npy of ids. shares: PARE_TEXT_SHARE of the tokens
                                       each, from the end */
    bool shares;
    uint64_t seed;      /* of what is held out */
    bool whole;         /* a .txt is one document (pare_data_opts) */
    size_t eval_window; /* tokens of the windows of a score; 0: window */
    pare_tokenizer_kind tokenizer;
    const uint8_t *vocab; /* borrowed */
    size_t vocab_bytes;
    size_t window,
        batch; /* a batch: `batch` windows that begin anywhere in the training text, shorter
                             ones where a piece of it is shorter */
    size_t eval_tokens; /* a score is taken over windows side by side, as many as hold these tokens,
                             spread evenly over the part; 0: over all of it */
} pare_task_text_opts;
#define PARE_TASK_TEXT_OPTS_DEFAULT                                                                \
    {                                                                                              \
        .tokenizer = PARE_TOK_BYTES, .window = 64, .batch = 16                                     \
    }
#define PARE_TEXT_SHARE 0.05
/* Metric: nats, the mean cross entropy per token. */
PARE_MUST_USE pare_status pare_task_text(pare_task *out, pare_task_facts *facts, pare_arena *a,
                                         const pare_task_text_opts *o, pare_err *err);

/* ---- sentences with labels ------------------------------------------------------------------- */

/* .tsv with the header sentence, label, as pare_dataset_load reads it. A batch is rows drawn with
 * repetition, of different lengths side by side. */
typedef struct pare_task_sentences_opts {
    const char *train, *val, *test; /* shares: PARE_SERIES_SHARE of the training rows each, drawn by
                                       pare_rng_at(0, split) */
    bool shares;
    uint64_t seed; /* of what is held out */
    pare_tokenizer_kind tokenizer;
    const uint8_t *vocab; /* borrowed */
    size_t vocab_bytes;
    size_t split, batch;
    size_t outputs; /* classes that the model knows; 0: those of the files */
    size_t context; /* longer sentences are cut; 0: none is */
} pare_task_sentences_opts;
#define PARE_TASK_SENTENCES_OPTS_DEFAULT                                                           \
    {                                                                                              \
        .tokenizer = PARE_TOK_BYTES, .batch = 16                                                   \
    }
/* Metric: accuracy. */
PARE_MUST_USE pare_status pare_task_sentences(pare_task *out, pare_task_facts *facts, pare_arena *a,
                                              const pare_task_sentences_opts *o, pare_err *err);

/* ---- sequences: {inputs, targets} or {inputs, values} ---------------------------------------- */

/* inputs: ids [n,T] or vectors [n,T,d]. targets: ids [n,T] (-1 = not counted) or one class [n];
 * values: numbers [n] or [n,k], one row per sequence. Before vectors with values stands a row of
 * zeros, the regression token: its position and the map's bias are learned, and the output is read
 * there. */
typedef struct pare_task_series_opts {
    const char *train, *val,
        *test; /* .npz. shares: PARE_SERIES_SHARE of the training rows each, drawn
                                       by pare_rng_at(0, split) */
    bool shares;
    uint64_t seed; /* of what is held out */
    size_t split, batch;
    size_t ids, outputs; /* that the model knows; 0: those of the files */
} pare_task_series_opts;
#define PARE_TASK_SERIES_OPTS_DEFAULT                                                              \
    {                                                                                              \
        .batch = 64                                                                                \
    }
#define PARE_SERIES_SHARE 0.1
/* Metric: accuracy over the targets that count, or mse over the values. */
PARE_MUST_USE pare_status pare_task_series(pare_task *out, pare_task_facts *facts, pare_arena *a,
                                           const pare_task_series_opts *o, pare_err *err);

/* ---- many runs ------------------------------------------------------------------------------- */

/* Many independent runs: over seeds or splits, over a grid of settings.
 *
 * Runs are dealt to the ranks, and within a rank to the threads: one thread each where there are at
 * least as many runs as threads, all threads for one run after the other else. The results depend
 * on neither. */

typedef struct pare_setting { /* one point of a grid */
    double lr;
    uint64_t epochs;
} pare_setting;

/* What one run is made of. */
typedef struct pare_run_parts {
    const pare_model *start;
    const pare_task *task;
    pare_train_opts opts; /* a log is called from one thread at a time */
    void *own;            /* the opener's */
} pare_run_parts;

/* Who knows how to begin run `run` (0 .. runs - 1) under setting number `at` (the seed, the split,
 * the name of the checkpoint come from them). Called from several threads at once, and more than
 * once for a run; the same parts must come out on every rank. `close` comes after every `open` that
 * succeeded; it may be NULL. */
typedef struct pare_run_source {
    void *self;
    size_t runs, settings; /* how many there are: at least 1 */
    pare_status (*open)(void *self, pare_run_parts *out, size_t run, size_t at, pare_err *err);
    void (*close)(void *self, pare_run_parts *parts);
} pare_run_source;

typedef struct pare_spread {
    size_t n;
    double mean, std; /* std: with n - 1; 0 for one run; nan for none */
} pare_spread;

typedef struct pare_runs_result {
    size_t runs, settings;
    pare_train_result *each; /* settings x runs; one that diverged before its first score has
                                diverged, best_step 0 and val nan */
    pare_spread *val, *test; /* per setting, over the runs that have a score */
    size_t setting;          /* the best mean validation; one with a run that diverged comes after
                                all that have none; the first among equals */
    size_t best;             /* its run with the best validation, of those that did not diverge
                                while there is one */
    pare_arena *arena;
} pare_runs_result;

/* All runs of `source` under all its settings. Afterwards *out (freed with pare_model_free; may be
 * NULL: not wanted) is the model of the best run and *result (freed with pare_runs_free) is the
 * same on every rank. PARE_ERR_NUMERIC when no run
 * has a score; any other failure of a run is a failure of all, and the first by number is reported.
 */
PARE_MUST_USE pare_status pare_runs(pare_model **out, pare_runs_result **result,
                                    const pare_run_source *source, const pare_exec *exec,
                                    const pare_ranks *ranks, pare_err *err);
void pare_runs_free(pare_runs_result *r); /* accepts NULL */

/* All pairs of learning rates and epochs, learning rates outermost: nlr x nepochs in the arena. */
PARE_MUST_USE pare_status pare_grid(pare_setting **out, pare_arena *a, const double *lr, size_t nlr,
                                    const uint64_t *epochs, size_t nepochs, pare_err *err);
#endif
