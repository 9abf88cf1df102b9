/* pare/forward.h - running a model: the f64 reference and the f32 engine, and a trace. */
#ifndef PARE_FORWARD_H
#define PARE_FORWARD_H
#include <pare/model.h>
#include <pare/poly.h>
#include <pare/ranks.h>

/* One input: a sequence, a batch of equal length, or a graph (batch 1, tokens = nodes). */
typedef struct pare_input {
    size_t batch, tokens, width; /* width: of x */
    const int64_t *ids;          /* batch x tokens, or NULL */
    const double *x;             /* batch x tokens x width, or NULL */
    const pare_graph *graph;     /* the data's own edges; NULL unless the pattern is a graph */
    /* What the data say each output row should be (-1: not counted), or NULL. No part of the input:
     * nothing is computed from it and it is not hashed. */
    const int64_t *target;
    bool continues; /* the text of the input before it goes on here; also no part of the input */
} pare_input;

/* Ids in range, length within the context, widths equal, everything finite. */
PARE_MUST_USE pare_status pare_input_check(const pare_model *m, const pare_input *in,
                                           pare_err *err);
/* Rows of the output: batch x tokens, or batch when the head pools. Columns: pare_model_outputs. */
size_t pare_output_rows(const pare_model *m, const pare_input *in);

/* What the trace shows: the input and the output of every sublayer, rows = batch x tokens. */
typedef enum pare_tap {
    PARE_TAP_STEM,     /* what block 0 receives */
    PARE_TAP_ATTN_IN,  /* the stream before the attention sublayer of `block` */
    PARE_TAP_ATTN_OUT, /* after it */
    PARE_TAP_FFN_IN,
    PARE_TAP_FFN_OUT,
    PARE_TAP_TOP /* after the head's norm */
} pare_tap;

typedef struct pare_trace {
    /* v: rows x cols f64 or f32 by dtype, valid during the call only. */
    void (*fn)(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v, size_t rows,
               size_t cols);
    void *self;
    /* May be NULL, as may fn. What became of one head of one sequence whose attention is of kind
     * POLY, in f32; one call at a time, in any order. */
    void (*poly)(void *self, size_t block, size_t head, const pare_poly_report *report);
} pare_trace;

/* out: rows x columns, row-major, given by the caller. trace and exec may be NULL. */
PARE_MUST_USE pare_status pare_forward_f64(double *out, const pare_model *m, const pare_input *in,
                                           const pare_trace *trace, const pare_exec *exec,
                                           pare_err *err);
PARE_MUST_USE pare_status pare_forward_f32(float *out, const pare_model *m, const pare_input *in,
                                           const pare_trace *trace, const pare_exec *exec,
                                           pare_err *err);

/* One head of one sequence; arrays of the pass's type, rows `ld` numbers apart. */
typedef struct pare_attend_job {
    size_t n, dk, dv;
    const void *q, *k, *v; /* n x dk, n x dk, n x dv */
    size_t ldq, ldk, ldv;
    double scale; /* of the scores */
    void *y;      /* n x dv */
    size_t ldy;
} pare_attend_job;
/* Who computes attention in the place of the pass: called from one thread at a time, once for all
 * heads and sequences of a layer that are at hand. Heads of every kind, also polynomial ones, are
 * exact softmax to it. */
typedef struct pare_attender {
    pare_status (*fn)(void *self, size_t block, pare_dtype t, const pare_attend_job *jobs,
                      size_t count, const pare_pattern *p, const pare_graph *g, pare_err *err);
    void *self;
    /* Processes that make the same pass together, and come to `fn` together: they share the rows of
     * everything else as well, where the engine goes by ranges of rows. NULL: alone. */
    const pare_ranks *ranks;
} pare_attender;
/* out: of type t, PARE_F32 or PARE_F64. `by` NULL: the same as above. */
PARE_MUST_USE pare_status pare_forward_by(void *out, pare_dtype t, const pare_model *m,
                                          const pare_input *in, const pare_attender *by,
                                          const pare_trace *trace, const pare_exec *exec,
                                          pare_err *err);

/* n inputs, of different lengths too, side by side: `by` gets the heads of all of them at once,
 * input after input, so that it may put several into one call. out[i]: of input i, as above. No
 * graphs. */
PARE_MUST_USE pare_status pare_forward_together(void *const *out, pare_dtype t, const pare_model *m,
                                                const pare_input *in, size_t n,
                                                const pare_attender *by, const pare_exec *exec,
                                                pare_err *err);

/* A set of inputs with where it came from: what certificates speak about. */
typedef struct pare_inputs {
    size_t n;
    pare_input *in; /* n */
} pare_inputs;

/* `n` seeded random inputs that suit the model, of `tokens` tokens (0: min(context, 64)): uniform
 * ids, or standard normal vectors; for a graph pattern a ring of `tokens` nodes with both
 * neighbours. In the arena. */
PARE_MUST_USE pare_status pare_inputs_random(pare_inputs *out, pare_arena *a, const pare_model *m,
                                             size_t n, size_t tokens, uint64_t seed, pare_err *err);
/* Inputs [first, first + count) of a set, with no more than `tokens` tokens of each (0: all); their
 * numbers stay where they are. PARE_ERR_INPUT when there are not so many, or when a batch or a
 * graph would have to be cut. */
PARE_MUST_USE pare_status pare_inputs_part(pare_inputs *out, pare_arena *a, const pare_inputs *all,
                                           size_t first, size_t count, size_t tokens,
                                           pare_err *err);
/* One hash over everything in the set: ids, vectors, edges, shapes. */
PARE_MUST_USE pare_status pare_inputs_sha256(char hex[PARE_SHA256_HEX], const pare_inputs *in,
                                             pare_err *err);
#endif
