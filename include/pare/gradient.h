/* pare/gradient.h - exact gradients of every model: a pass that remembers, and its way back.
 *
 *   pare_params *p;  pare_tape *t;                 a trainable copy; memory that is used again
 *   pare_tape_forward(t, &input, &mode, &y, err)   y: rows x outputs, in the tape
 *   ... dy = d loss / d y ...
 *   pare_tape_backward(t, dy, NULL, grad, err)     grad += d loss / d values
 *
 * One story for f32 (fast: training) and f64 (plain: what tests and proofs compare with). */
#ifndef PARE_GRADIENT_H
#define PARE_GRADIENT_H
#include <pare/forward.h>

/* ---- parameters --------------------------------------------------------------------------- */

typedef struct pare_slot { /* one trainable weight: values[offset] .. + rows * cols */
    const char *name;      /* as in the file: "blocks.0.attn.wq" */
    size_t offset, rows, cols;
    bool vector; /* biases, gains: weight decay leaves them alone */
} pare_slot;

/* A model whose trainable weights lie side by side in one array, in the order of
 * pare_model_visit; gradients and the optimiser's moments are arrays of the same shape. Not
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

/* The weights of a model copied into one array that an optimiser walks; freed with
 * pare_params_free.
 */
PARE_MUST_USE pare_status pare_params_new(pare_params **out, const pare_model *m, pare_dtype dtype,
                                          pare_err *err);
void pare_params_free(pare_params *p); /* accepts NULL */

/* ---- the tape ----------------------------------------------------------------------------- */

typedef struct pare_mode {
    bool training;   /* batch norms use the batch (and move their running figures), dropout works */
    double dropout;  /* share of the entries set to 0, the others grown by 1 / (1 - share): after
                        the attention branch, after an FFN's activation, after the FFN branch */
    double momentum; /* of the running figures; torch's 0.1 */
    uint64_t seed, step; /* of the masks: a pure function of (seed, step, place) */
} pare_mode;

typedef struct pare_tape pare_tape;
/* `p` and `exec` are borrowed for as long as the tape lives. */
PARE_MUST_USE pare_status pare_tape_new(pare_tape **out, pare_params *p, const pare_exec *exec,
                                        pare_err *err);
void pare_tape_free(pare_tape *t); /* accepts NULL */
/* One head of one sequence in the backward pass. */
typedef struct pare_attend_grad {
    pare_attend_job job; /* of the forward pass, with its y */
    const void *lse;     /* n: log of the sum of e^score of each row, as the forward pass left it */
    const void *dy;      /* n x dv: d loss / d y */
    size_t lddy;
    void *dq, *dk, *dv; /* n x dk, n x dk, n x dv: written, not added to */
    size_t lddq, lddk, lddv;
} pare_attend_grad;
/* Who computes softmax attention in the place of the tape, in both passes: for engines that take
 * fewer tokens than a sequence has. Called from the thread of the tape. */
typedef struct pare_attention_provider {
    const char *id; /* part of a checkpoint's fingerprint: "oracle 16" */
    /* All heads of all sequences of a layer; lse[i]: n numbers of type t, written for jobs[i]. */
    pare_status (*forward)(void *self, pare_dtype t, const pare_attend_job *jobs, void *const *lse,
                           size_t count, const pare_pattern *p, pare_err *err);
    /* One of these jobs. */
    pare_status (*backward)(void *self, pare_dtype t, const pare_attend_grad *g,
                            const pare_pattern *p, pare_err *err);
    void *self;
} pare_attention_provider;
/* From now on softmax attention is the provider's, which is borrowed; NULL: the tape's own.
 * PARE_ERR_INPUT for a model that attends over a graph or by polynomials. */
PARE_MUST_USE pare_status pare_tape_attend_by(pare_tape *t, const pare_attention_provider *by,
                                              pare_err *err);
/* Runs the model and keeps what the way back needs. *y (may be NULL) and the streams below stay
 * valid until the next forward. Without `training` y is what pare_forward gives, up to rounding.
 * Memory is O(rows): attention is computed again on the way back, never n x n. A graph that was
 * given before (same pointers) is not completed and turned again. */
PARE_MUST_USE pare_status pare_tape_forward(pare_tape *t, const pare_input *in,
                                            const pare_mode *mode, const void **y, pare_err *err);
/* How the heads of kind poly of a block were computed in the passes of this tape, one head of one
 * sequence at a time; all 0 in f64, and for other kinds. */
typedef struct pare_poly_use {
    uint64_t polynomial, exact;
    char why[160]; /* of the last pass, its first head: as a plan of pare/poly.h says it */
} pare_poly_use;
const pare_poly_use *pare_tape_poly_use(const pare_tape *t, size_t block);
/* The stream where block b begins (b = nblocks: at the head), rows x pare_model_width. */
const void *pare_tape_stream(const pare_tape *t, size_t block);
/* Adds the gradient of the last forward pass to grad (p->count numbers; NULL: not wanted).
 * dy: rows x outputs, NULL = 0. dstream: NULL, or nblocks + 1 arrays (each may be NULL) that are
 * d loss / d stream for losses that look at hidden states. */
PARE_MUST_USE pare_status pare_tape_backward(pare_tape *t, const void *dy,
                                             const void *const *dstream, void *grad, pare_err *err);
/* After a backward: d loss / d stream where block b begins: what a gradient metric is made of. */
const void *pare_tape_dstream(const pare_tape *t, size_t block);
#endif
