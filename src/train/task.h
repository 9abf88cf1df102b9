/* lesson_parts.h - what the lessons share. Private to src/train. */
#ifndef PARE_TRAIN_LESSON_PARTS_H
#define PARE_TRAIN_LESSON_PARTS_H
#include <pare/lesson.h>

/* The numbers a step draws its batch with: far from those of fresh weights and of dropout. */
static inline pare_rng task_rng(uint64_t seed, uint64_t step)
{
    return pare_rng_at(seed, ((uint64_t)3 << 61) + step);
}

/* The file's name before a message that does not begin with it. Returns st. */
pare_status task_prefix_error(pare_status st, pare_err *err, const char *path);

/* "WHAT HASH HASH ..." in the arena: the hashes of the files whose paths are not NULL. */
pare_status task_fingerprint(const char **out, pare_arena *a, const char *what,
                             const char *const *path, size_t paths, pare_err *err);

/* What pare_dataset_load asks of a model: how text is read, and one output per token or, with
 * `outputs`, one of so many classes per text. */
pare_status task_text_reader(pare_model *m, pare_arena *a, pare_tokenizer_kind tokenizer,
                             const uint8_t *vocab, size_t vocab_bytes, size_t outputs,
                             pare_err *err);

/* Rows of `in` through the f32 engine, into the arena. */
pare_status task_forward(float **y, pare_arena *a, const pare_model *m, const pare_input *in,
                         const pare_exec *exec, pare_err *err);

/* The status of a mark: a model whose outputs are not finite has none, *mark is nan. */
pare_status task_score_status(pare_status st, double *mark, pare_err *err);

/* Most numbers a marking pass asks for at once: large vocabularies get fewer rows. */
enum { TASK_MAX_OUTPUTS = 1 << 22 };
/* Inputs of `rows` output rows each that one marking pass takes together, at least 1. */
size_t task_batch_limit(const pare_model *m, size_t rows, size_t batch);
#endif
