/* task.h - what the training tasks share. Private to src/train. */
#ifndef PARE_TRAIN_TASK_H
#define PARE_TRAIN_TASK_H
#include "base/work.h"
#include "data/heldout_draw.h"
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

/* Which inputs of a file belong to which part. */
typedef struct task_parts {
    size_t *number[PARTS], n[PARTS];
    bool documents; /* whole documents were drawn, ... */
    size_t of;      /* ... of so many; else inputs of so many */
    size_t drawn[PARTS];
} task_parts;
/* By the one rule: what `seed` holds out is for testing (where `test`), as much again for validation
 * (where `val`), the rest, ascending, to train on. PARE_ERR_INPUT: nothing would be left. */
PARE_MUST_USE pare_status task_draw_parts(task_parts *out, pare_arena *a, const pare_inputs *all,
                                          bool val, bool test, uint64_t seed, const char *path,
                                          pare_err *err);
/* The same by shares of a shuffled list of all inputs: the last `share` of it is for testing. */
void task_share_parts(task_parts *out, size_t *order, size_t n, size_t share, bool val, bool test);
/* What the scores of part VAL or TEST are taken on; p NULL: all of a file of its own. */
void task_note_part(pare_task_facts *f, const pare_dataset *d, const task_parts *p, size_t part);

/* The score of a model on a part, as pare_evaluate has it; of text the nats. A model whose outputs are
 * not finite is no error: nan. */
PARE_MUST_USE pare_status task_score(double *out, const pare_model *m, const pare_dataset *d,
                                     const pare_exec *exec, pare_err *err);
#endif
