/* pare/lesson.h - lessons from files: graphs, text, sequences.
 *
 *   pare_lesson lesson;  pare_lesson_facts facts;
 *   pare_lesson_graph(&lesson, &facts, arena, &opts, err)    what the data are, and ask of a model
 *   pare_init_model(&m, ...)                                 one that suits the facts
 *   pare_train(&out, &result, m, &lesson, ...)
 *
 * The mark of a model whose outputs are not finite is nan: the run has diverged.
 * Everything lives in the arena. A lesson is only read while it is used: several runs may share
 * it. Messages name the file, and the node or the row. */
#ifndef PARE_LESSON_H
#define PARE_LESSON_H
#include <pare/data.h>
#include <pare/train.h>

typedef struct pare_lesson_facts { /* what a model must take and give */
    size_t features;               /* vectors of this width, or */
    size_t ids;                    /* ids below this one */
    size_t outputs;                /* classes, ids or numbers */
    size_t tokens;                 /* of one input (a graph: nodes) */
    pare_pool pool;                /* one output row per input (FIRST) or per token (NONE) */
    size_t train, val, test;       /* nodes, tokens or rows */
    pare_text_notes notes;         /* of the training text */
} pare_lesson_facts;

/* ---- nodes of a graph: all of it in every step -------------------------------------------- */

typedef struct pare_graph_lesson {
    const char *path;
    size_t split;           /* of pare_graph_masks */
    bool largest_component; /* leave the other nodes out; the masks stay those of the whole graph */
    bool full;              /* for a model that does not attend over the edges */
    size_t classes;         /* that the model knows; 0: those of the file */
} pare_graph_lesson;
/* Metric: AUC for two classes, else accuracy. PARE_ERR_INPUT: an empty part, a part of a single
 * class where AUC needs both, labels beyond `classes` (or beyond the number of nodes). */
PARE_MUST_USE pare_status pare_lesson_graph(pare_lesson *out, pare_lesson_facts *facts,
                                            pare_arena *a, const pare_graph_lesson *o,
                                            pare_err *err);

/* ---- text: the next token ------------------------------------------------------------------ */

typedef struct pare_text_lesson {
    const char *train, *val, *test; /* .txt or .npy of ids. val, test NULL: cut from the end of
                                       train, PARE_TEXT_SHARE of its tokens each */
    pare_tokenizer_kind tokenizer;
    const uint8_t *vocab; /* borrowed */
    size_t vocab_bytes;
    size_t window, batch; /* a batch: `batch` windows that begin anywhere in the training text */
    size_t mark_tokens;   /* a mark looks at windows side by side, as many as hold these tokens,
                             spread evenly over the text; 0: at the whole text */
} pare_text_lesson;
#define PARE_TEXT_SHARE 0.05
/* Metric: nats, the mean cross entropy per token. */
PARE_MUST_USE pare_status pare_lesson_text(pare_lesson *out, pare_lesson_facts *facts,
                                           pare_arena *a, const pare_text_lesson *o, pare_err *err);

/* ---- sentences with labels ------------------------------------------------------------------ */

/* .tsv with the header sentence, label, as pare_dataset_load reads it. Sentences differ in length:
 * a batch holds sentences of one length, that of a row that is drawn first, so that every row is
 * equally likely. */
typedef struct pare_sentence_lesson {
    const char *train, *val, *test; /* val, test NULL: PARE_SERIES_SHARE of the training rows each,
                                       drawn by pare_rng_at(0, split) */
    pare_tokenizer_kind tokenizer;
    const uint8_t *vocab; /* borrowed */
    size_t vocab_bytes;
    size_t split, batch;
    size_t outputs; /* classes that the model knows; 0: those of the files */
    size_t context; /* longer sentences are left out; 0: none is */
} pare_sentence_lesson;
/* Metric: accuracy. */
PARE_MUST_USE pare_status pare_lesson_sentences(pare_lesson *out, pare_lesson_facts *facts,
                                                pare_arena *a, const pare_sentence_lesson *o,
                                                pare_err *err);

/* ---- sequences: {inputs, targets} or {inputs, values} -------------------------------------- */

/* inputs: ids [n,T] or vectors [n,T,d]. targets: ids [n,T] (-1 = not counted) or one class [n];
 * values: numbers [n] or [n,k], one row per sequence. Before vectors with values stands a row of
 * zeros, the regression token: its position and the map's bias are learnt, and the output is read
 * there. */
typedef struct pare_series_lesson {
    const char *train, *val, *test; /* .npz. val, test NULL: PARE_SERIES_SHARE of the training rows
                                       each, drawn by pare_rng_at(0, split) */
    size_t split, batch;
    size_t ids, outputs; /* that the model knows; 0: those of the files */
} pare_series_lesson;
#define PARE_SERIES_SHARE 0.1
/* Metric: accuracy over the targets that count, or mse over the values. */
PARE_MUST_USE pare_status pare_lesson_series(pare_lesson *out, pare_lesson_facts *facts,
                                             pare_arena *a, const pare_series_lesson *o,
                                             pare_err *err);
#endif
