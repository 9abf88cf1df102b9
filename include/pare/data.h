/* pare/data.h - graphs, data sets with targets, metrics, evaluation, and generators of test
 * data. */
#ifndef PARE_DATA_H
#define PARE_DATA_H
#include <pare/run.h>

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef struct pare_graph_data {
    pare_graph graph; /* both directions of every edge, no self loops added */
    size_t features, classes, splits;
    const double *x;                   /* n x features */
    const int64_t *labels;             /* n, 0 .. classes-1 */
    const uint8_t *train, *val, *test; /* splits x n of 0/1; NULL when the file has none */
} pare_graph_data;
/* The heterophilous-graphs keys, the gnn-benchmark CSR keys, the packed bits of amazon_photo. In
 * the arena. */
PARE_MUST_USE pare_status pare_graph_load(pare_graph_data *out, pare_arena *a, const char *path,
                                          pare_err *err);
/* From undirected edges, nedges pairs of nodes, listed once (duplicates and self loops in the list
 * are dropped); in the arena. */
PARE_MUST_USE pare_status pare_graph_from_edges(pare_graph *out, pare_arena *a, size_t n,
                                                const int64_t *edges, size_t nedges, pare_err *err);

/* ---- data sets: inputs with targets ---------------------------------------------------------- */

typedef enum pare_task_kind {
    PARE_TASK_NODES,    /* a graph: accuracy, or AUC for two classes */
    PARE_TASK_TEXT,     /* next token: perplexity */
    PARE_TASK_SENTENCE, /* one label per input: accuracy */
    PARE_TASK_TOKENS,   /* labels per token (sorting): accuracy */
    PARE_TASK_VALUES    /* numbers to be met (angular velocity): mean squared error */
} pare_task_kind;

typedef struct pare_dataset {
    pare_task_kind task;
    pare_inputs inputs;
    const int64_t *const *target; /* per input, one per output row; -1 = not counted */
    const double *value;          /* values only: nvalues per input, one after another */
    size_t nvalues;
    size_t split;          /* of a graph */
    size_t skipped;        /* texts without a token */
    pare_text_notes notes; /* of texts */
    /* Of texts: how many documents, how they are separated (in words; NULL: the file is one). */
    size_t documents;
    const char *separated;
    const char *between; /* .txt: the text that separates them */
} pare_dataset;

typedef struct pare_data_opts {
    size_t split;  /* of a graph */
    size_t window; /* tokens per window of text; 0: the context, at most 512 */
    bool whole;    /* a .txt is one document, whatever lines are in it (for llama2.c's tokenizer
                           lines <|endoftext|> separate documents all the same) */
    const char *column;    /* of .csv, .tsv and .jsonl: which one is the text */
    uint64_t seed;         /* of texts that the model writes itself, ... */
    const pare_exec *exec; /* ... and their threads and progress */
} pare_data_opts;
#define PARE_DATA_OPTS_DEFAULT                                                                     \
    {                                                                                              \
        0                                                                                          \
    }

/* By extension: .npz graph or {inputs, targets}; .txt, .csv, .tsv and .jsonl through the model's
 * tokenizer; .npy ids [B, T] as text, or without targets: ids of a model that pools, vectors [T, d],
 * [B, T, d]; "self:N": N texts that the language model writes itself.
 * Graph: one input, targets on the test nodes of that split.
 * Documents: of .txt lines <|endoftext|> separate them; without one every line is a text to a model that
 * pools, and blank lines separate those of others, else the file is one document. Rows of the other
 * files, without the white space around them nothing is changed: .csv as in RFC 4180, .tsv without quotes, .jsonl a
 * line each. Their text is the column `column`: its name, or (.csv, .tsv) its number from 1; NULL:
 * `text`, or else `sentence`, or else the only one but for `label`. The first row names the columns
 * if the text is asked for by its name or one of them is text, sentence or label.
 * Models with an output per token: each document in windows, which do not overlap; every token but
 * the first of a document is a target once, the first of a window as the target of the last of the
 * window before. A last window of one token is dropped.
 * Models that pool: an input each, longer ones than the context cut to it (notes.longer) with the tokens
 * that end every text; with a target where there is a column `label`. Texts without
 * a token are skipped and counted.
 * {inputs, targets}: inputs [n, T] or [n, T, d], targets [n, T], [n] or absent (none counts).
 * {inputs, values}: values [n] or [n, k], one row per input of a model that pools; before vectors
 * stands a row of zeros, the regression token of pare_task_series. Everything lives in the
 * arena. `opts` NULL: the defaults. */
PARE_MUST_USE pare_status pare_dataset_load(pare_dataset *out, pare_arena *a, const pare_model *m,
                                            const char *path, const pare_data_opts *opts,
                                            pare_err *err);
/* Texts of a model itself: each begins with what begins every text, or with the end-of-text token, has
 * at most PARE_SELF_TOKENS tokens, sampled at temperature 1, and depends on the seed and its number
 * alone. Whether data of that name are such texts, and how many: */
enum { PARE_SELF_TOKENS = 128 };
bool pare_data_is_self(const char *path, size_t *n);
/* The one rule for held-out data: of a data set the inputs that no command fits a cut to, and on
 * which all of them measure. The seed permutes the inputs before any is looked at, and the first
 * PARE_HELDOUT_INPUTS are held out, but at most a quarter of them; of a text of 16 documents or more
 * whole documents. A set of one input is held out as it is, and so are graphs, whose test masks hold
 * out nodes. In the arena; shares what it is made
 * of. */
enum { PARE_HELDOUT_INPUTS = 128, PARE_PROVEN_TOKENS = 32 };
PARE_MUST_USE pare_status pare_dataset_heldout(pare_dataset *out, pare_arena *a,
                                               const pare_dataset *d, uint64_t seed, pare_err *err);
/* Ids [T], [B,T] or vectors [T,d], [B,T,d] from .npy, checked against the model; in the arena.
 * shape / ndim: of the output that a user expects ([T,V], [B,T,V], pooled [C] or [B,C]). */
PARE_MUST_USE pare_status pare_input_read(pare_input *out, size_t *ndim, size_t shape[4],
                                          pare_arena *a, const pare_model *m, const char *path,
                                          pare_err *err);

/* ---- metrics --------------------------------------------------------------------------------- */

/* Collects output rows and scores them. */
typedef struct pare_metric pare_metric;
/* In the arena, for rows of `classes` logits. */
PARE_MUST_USE pare_status pare_metric_new(pare_metric **out, pare_arena *a, size_t classes,
                                          pare_err *err);
/* rows x classes logits with their targets (-1 = skip). */
PARE_MUST_USE pare_status pare_metric_add(pare_metric *m, const float *logits,
                                          const int64_t *target, size_t rows, pare_err *err);
typedef struct pare_scores {
    size_t counted;
    double accuracy, nats, perplexity; /* nats: mean cross entropy */
    double auc;                        /* two classes only; nan otherwise or when undefined */
} pare_scores;
/* PARE_ERR_INPUT when no row was counted. */
PARE_MUST_USE pare_status pare_metric_scores(pare_scores *out, pare_metric *m, pare_err *err);
/* KL(reference || model), row by row. */
typedef struct pare_kl_report {
    size_t rows;
    double mean, median, p999, max; /* p999: the smallest that 99.9 % of the rows do not exceed */
    double same_top;                /* share of rows with equal argmax */
} pare_kl_report;

/* ---- generators: each writes an .npz or an .npy --------------------------------------------- */

/* side x side board: node_features, node_labels, edges, and ten stratified splits. */
PARE_MUST_USE pare_status pare_make_minesweeper(const char *path, size_t side, uint64_t seed,
                                                bool overwrite, pare_err *err);
/* Points turning on a circle at a constant angular velocity w: token t = 1, 2, ... is
 * (cos, sin)(w t + phase), w uniform in [-pi, pi), the phase in [0, pi); inputs [n, tokens, 2], the
 * velocity as values [n, 1]. */
PARE_MUST_USE pare_status pare_make_angular(const char *path, size_t n, size_t tokens,
                                            uint64_t seed, bool overwrite, pare_err *err);
/* Sequences to sort: inputs [n, 2*length-1] ids, targets the sorted half (-1 before). */
PARE_MUST_USE pare_status pare_make_sort(const char *path, size_t n, size_t length, size_t symbols,
                                         uint64_t seed, bool overwrite, pare_err *err);
/* Random ids [n, tokens] below vocab, or standard normal vectors [n, tokens, width]; .npy. */
PARE_MUST_USE pare_status pare_make_random_ids(const char *path, size_t n, size_t tokens,
                                               size_t vocab, uint64_t seed, bool overwrite,
                                               pare_err *err);
PARE_MUST_USE pare_status pare_make_random_vectors(const char *path, size_t n, size_t tokens,
                                                   size_t width, uint64_t seed, bool overwrite,
                                                   pare_err *err);

/* ---- evaluation ------------------------------------------------------------------------------ */

/* How good a model is on a dataset, and how far its outputs are from another's. */

typedef struct pare_evaluation {
    /* The metric that the task calls for: "perplexity" of text, "auc" of the nodes of a graph with
     * two classes, "mse" of values, "cosine" of embeddings (the mean cosine to the
     * reference's), "accuracy" of all others. */
    const char *metric;
    double value;
    pare_scores scores;   /* of values and cosines: nothing but how many were counted */
    double nats_per_byte; /* of text: the bytes are those of the predicted tokens; else nan */
} pare_evaluation;

/* One pass over every input: by the f32 engine, or by the f64 reference (f64) rounded to f32.
 * PARE_ERR_NONFINITE: an output is no number. PARE_ERR_INPUT: no target counts; embeddings are scored
 * against a reference alone. */
PARE_MUST_USE pare_status pare_evaluate(pare_evaluation *out, const pare_model *m,
                                        const pare_dataset *d, bool f64, const pare_exec *exec,
                                        pare_err *err);
/* Cosines between the embeddings of two models; of an embedding that is 0 it is 0. */
typedef struct pare_cosine_report {
    size_t rows;
    double mean, median, p05, p01, least; /* p05: 5 % of the rows have less */
} pare_cosine_report;
typedef struct pare_comparison {
    pare_evaluation model, reference;
    pare_cosine_report cosine; /* of two models whose outputs are embeddings; else all 0 */
    /* KL(reference || model) between their predictions, on the rows that the metric counts; of
     * values (PARE_TASK_VALUES) and of embeddings there is none: all 0. */
    pare_kl_report kl;
} pare_comparison;
/* The same of two models at once. PARE_ERR_INPUT: the reference does not take these inputs or has
 * outputs of another shape. */
PARE_MUST_USE pare_status pare_evaluate_against(pare_comparison *out, const pare_model *m,
                                                const pare_model *reference, const pare_dataset *d,
                                                bool f64, const pare_exec *exec, pare_err *err);
#endif
