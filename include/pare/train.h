/* pare/train.h - losses, AdamW, schedules, and runs that survive being killed.
 *
 * A run is a pure function of (start model, lesson, options, seed): not of threads, ranks, clocks,
 * nor of how often it was stopped and taken up again. */
#ifndef PARE_TRAIN_H
#define PARE_TRAIN_H
#include <pare/gradient.h>
#include <pare/popup.h>

/* ---- losses ------------------------------------------------------------------------------- */

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
/* value: rows x cols, a nan = not counted. Mean over the entries that count. */
PARE_MUST_USE pare_status pare_loss_mse(double *loss, void *dy, const pare_logits *y,
                                        const double *value, double weight, const pare_exec *exec,
                                        pare_err *err);
/* temperature^2 KL(teacher || y) of the softened rows, mean over all rows; teacher: as y. */
PARE_MUST_USE pare_status pare_loss_kl(double *loss, void *dy, const pare_logits *y,
                                       const void *teacher, double temperature, double weight,
                                       const pare_exec *exec, pare_err *err);

/* ---- optimiser ---------------------------------------------------------------------------- */

typedef struct pare_adamw {
    double beta1, beta2, eps, weight_decay; /* decay: matrices only unless decay_vectors */
    bool decay_vectors;                     /* torch's default: everything decays */
} pare_adamw;
#define PARE_ADAMW_DEFAULT                                                                         \
    {                                                                                              \
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.01                            \
    }
/* values -= lr ( m^ / (sqrt v^ + eps) + weight_decay values ), f32; step counts from 1. */
void pare_adamw_step(pare_params *p, const float *grad, float *m, float *v, uint64_t step,
                     double lr, const pare_adamw *o, const pare_exec *exec);
/* Euclidean norm of grad (in f64, fixed blocks); grad is scaled down to `clip` when that is > 0 and
 * smaller. An inf or nan comes back as such and leaves grad alone. */
double pare_clip(float *grad, size_t count, double clip, const pare_exec *exec);
/* Linear from 0 to lr over `warmup` steps, then a half cosine down to `last`; step from 0. The ends
 * are outside: lr (step + 1) / (warmup + 1) first, and `last` is what step = steps would have. */
double pare_cosine(uint64_t step, uint64_t steps, uint64_t warmup, double lr, double last);

/* ---- what is learnt ----------------------------------------------------------------------- */

typedef struct pare_batch {
    pare_input in;
    const int64_t *label; /* one per output row, -1 = not counted; or NULL and then */
    const double *value;  /* rows x outputs, nan = not counted */
} pare_batch;

typedef enum pare_fold_part { PARE_PART_VAL, PARE_PART_TEST } pare_fold_part;

/* A lesson gives the batch of a step, and a mark for what was learnt. */
typedef struct pare_lesson {
    void *self;
    const char *id;     /* what is taught from which data (hashes, split, window): part of a
                           checkpoint's fingerprint; NULL: "" */
    const char *metric; /* "auc", "accuracy", "nats", "mse" */
    bool more_is_better;
    bool fixed;     /* every step has the same batch: what a teacher says of it is asked once */
    uint64_t epoch; /* steps of one epoch */
    /* A pure function of (self, seed, step); memory from the arena lives until the next batch. */
    pare_status (*batch)(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err);
    pare_status (*score)(void *self, double *out, const pare_model *m, pare_fold_part part,
                         const pare_exec *exec, pare_err *err);
} pare_lesson;

/* ---- a run -------------------------------------------------------------------------------- */

typedef struct pare_train_log { /* one line of the log */
    uint64_t step, steps;
    double loss, lr, norm; /* of this step; norm: of the gradient before clipping */
    double val;            /* nan unless this step was marked */
    double test;           /* nan unless it was the best mark so far */
    bool best;
} pare_train_log;

typedef struct pare_train_opts {
    uint64_t steps;      /* in all */
    uint64_t warmup;     /* of them */
    uint64_t mark_every; /* steps between two marks; the last step is always marked */
    uint64_t keep_every; /* steps between two checkpoints; 0: none */
    double lr, last_lr;
    double clip; /* 0: none */
    double dropout;
    pare_adamw adamw;
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
    const char *checkpoint; /* path; NULL: none. Written every keep_every steps and at the end */
    bool resume;            /* go on from it when it is there; PARE_ERR_INPUT when it is damaged or
                               of another run, by name of what differs */
    void (*log)(void *self, const pare_train_log *line);
    /* At the end, for each block of kind poly: how its heads were computed; may be NULL. */
    void (*poly)(void *self, size_t block, const pare_poly_use *use);
    void *log_self; /* of both */
} pare_train_opts;

typedef struct pare_train_result {
    double val, test; /* of the best mark by validation */
    double loss;      /* of the last step */
    uint64_t best_step, steps;
    bool diverged; /* a loss was not finite; the model is the best one before that */
} pare_train_result;

/* Trains a copy of `start`; *out (caller frees) is the model with the best validation mark.
 * PARE_ERR_NUMERIC when the run diverged before its first mark. */
PARE_MUST_USE pare_status pare_train(pare_model **out, pare_train_result *result,
                                     const pare_model *start, const pare_lesson *lesson,
                                     const pare_train_opts *opts, const pare_exec *exec,
                                     pare_err *err);
#endif
