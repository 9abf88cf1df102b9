/* pare/backend.h - whole models through an oracle, and oracles that are other programs. */
#ifndef PARE_BACKEND_H
#define PARE_BACKEND_H
#include <pare/gradient.h>
#include <pare/length.h>
#include <pare/ranks.h>

/* One pass of a model whose attention, and nothing else, goes through the oracle. `out` is of the
 * oracle's dtype. *stats (may be NULL) adds up over layers.
 *
 * Several ranks share the heads, the calls and, where the engine goes by ranges of rows, the rows
 * of everything else, each with an oracle of its own; all of them come with the same model and
 * input, and have the whole output in the end. Its bits do not depend on their number. NULL: one
 * process.
 */
PARE_MUST_USE pare_status pare_length_forward(void *out, const pare_oracle *orc,
                                              const pare_length_opts *opts, const pare_ranks *ranks,
                                              const pare_model *m, const pare_input *in,
                                              pare_length_stats *stats, const pare_trace *trace,
                                              const pare_exec *exec, pare_err *err);
/* `count` inputs, of different lengths too, through a model whose attention is packed: as many of
 * them in one call as it holds (pare_length_pack), for each head of each layer. out[i]: of input i,
 * of the oracle's dtype. `penalty` 0: nothing leaks. *cert (may be NULL): rounding bounds and
 * distances from long double of `rows` rows of every head and input, 0 = all; for a penalty of 0.
 */
PARE_MUST_USE pare_status pare_length_pack_forward(void *const *out, const pare_oracle *orc,
                                                   const pare_model *m, const pare_input *in,
                                                   size_t count, double penalty, size_t rows,
                                                   pare_pack_stats *stats, pare_length_cert *cert,
                                                   const pare_exec *exec, pare_err *err);
/* A head that a pass hands over (pare_attender), as a job of this direction. */
pare_length_job pare_length_job_of(const pare_attend_job *j);
/* The softmax heads of a model by layer, as a plan wants them; none is 0. In the arena. */
PARE_MUST_USE pare_status pare_length_heads(pare_length_head **out, size_t *count, pare_arena *a,
                                            const pare_model *m, pare_err *err);
/* PARE_ERR_INPUT unless a plan that was read is for these very heads, and for what they see. */
PARE_MUST_USE pare_status pare_length_plan_fits(const pare_length_plan *plan, pare_arena *a,
                                                const pare_model *m, pare_err *err);
/* Whether positions say something about tokens beyond the context the model was made with: learned
 * ones do not. */
bool pare_length_may_exceed(const pare_model *m);

/* ---- training through an oracle ----------------------------------------------------------------
 */

/* The attention of one training run: give &by to pare_tape_attend_by or pare_train_opts.attention.
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

/* ---- another program (docs/pipe.md) ------------------------------------------------------------
 */

#define PARE_PIPE_VERSION 1
#define PARE_PIPE_TIMEOUT 60.0 /* seconds */

typedef struct pare_pipe_opts {
    const char *command; /* for sh -c */
    uint32_t length;     /* M that it is asked for; it may answer less; 0: its own */
    uint32_t dk, dv;     /* widest head, for its information */
    pare_dtype dtype;    /* PARE_F32 or PARE_F64 */
    double timeout;      /* seconds for an answer; 0 = PARE_PIPE_TIMEOUT */
} pare_pipe_opts;

/* Starts the program and asks what it can do. Calls go over its standard input, results come from
 * its standard output. Whatever it does wrong (it ends, is silent, or answers something else than
 * results of these calls) is PARE_ERR_IO with the number of the call, counted from 0. The process
 * is ended with the oracle. */
PARE_MUST_USE pare_status pare_oracle_pipe(pare_oracle *out, const pare_pipe_opts *o,
                                           pare_err *err);
#endif
