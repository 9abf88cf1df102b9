/* task.h - what the training tasks share. Private to src/train. */
#ifndef PARE_TRAIN_TASK_H
#define PARE_TRAIN_TASK_H
#include "base/work.h"
#include <pare/data.h>
#include <pare/train.h>

enum { TRAIN, VAL, TEST, PARTS };
extern const char *const task_part_name[PARTS];

/* Draws the batch of a step: streams far from those of fresh weights and of dropout. */
static inline pare_rng task_rng(uint64_t seed, uint64_t step)
{
    return pare_rng_at(seed, ((uint64_t)3 << 61) + step);
}

/* The file's name before a message that does not begin with it. Returns st. */
pare_status task_prefix_error(pare_status st, pare_err *err, const char *path);

/* Appends the hashes of the files whose paths are not NULL: "WHAT HASH HASH ..." in the arena. */
pare_status task_fingerprint(const char **what, pare_arena *a, const char *const *path,
                             size_t paths, pare_err *err);

/* A model as pare_dataset_load wants it: how text is read, and one output per token or, with
 * `outputs`, one of so many classes per text. */
pare_status task_text_reader(pare_model *m, pare_arena *a, pare_tokenizer_kind tokenizer,
                             const uint8_t *vocab, size_t vocab_bytes, size_t outputs,
                             pare_err *err);

/* One evaluation of a model, batch after batch. */
typedef struct task_eval {
    pare_work work; /* its arena is emptied after every batch */
    const pare_model *m;
    pare_arena *metric_arena;
    pare_metric *metric; /* of batches with labels */
    double squares;      /* of batches with values: the sum of squared errors */
    pare_mark empty;     /* of the arena */
} task_eval;
void task_eval_open(task_eval *e, const pare_model *m, const pare_exec *exec, pare_err *err);
/* `count` labels or values. */
void task_eval_batch(task_eval *e, const pare_batch *b, size_t count);
/* Frees everything. *scores is set from the labels; NULL: not wanted. A model whose outputs are not
 * finite is no error: *diverged. */
pare_status task_eval_close(task_eval *e, pare_scores *scores, bool *diverged);

/* The most inputs of `rows` output rows each that one pass evaluates together, at least 1: large
 * vocabularies get fewer. */
size_t task_eval_limit(const pare_model *m, size_t rows, size_t batch);
#endif
