/* inputs.h - running a model: the f64 reference and the f32 engine, and a trace. */
#ifndef PARE_MODEL_INPUTS_H
#define PARE_MODEL_INPUTS_H
#include <pare/run.h>

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
/* A pass; out: of type t, PARE_F32 or PARE_F64. `by` NULL: pare_forward_f32 or pare_forward_f64. */
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

/* How many inputs of a set, from number `first` on, pare_forward_set had best take together: at least
 * one, and no more than a few MB of outputs. It depends on shapes alone. */
size_t pare_inputs_together(const pare_model *m, const pare_inputs *set, size_t first);

/* Sequence b of a batch, by itself. */
static inline pare_input pare_input_sequence(const pare_input *in, size_t b)
{
    pare_input one = *in;
    one.batch = 1;
    if (one.ids) one.ids += b * one.tokens;
    if (one.x) one.x += b * one.tokens * one.width;
    return one;
}

/* Inputs [first, first + count) of a set, with no more than `tokens` tokens of each (0: all); their
 * numbers stay where they are. PARE_ERR_INPUT when there are not so many, or when a batch or a
 * graph would have to be cut. */
PARE_MUST_USE pare_status pare_inputs_part(pare_inputs *out, pare_arena *a, const pare_inputs *all,
                                           size_t first, size_t count, size_t tokens,
                                           pare_err *err);
/* The same of inputs by their numbers, each smaller than all->n. */
PARE_MUST_USE pare_status pare_inputs_pick(pare_inputs *out, pare_arena *a, const pare_inputs *all,
                                           const size_t *numbers, size_t count, size_t tokens,
                                           pare_err *err);
/* One hash over everything in the set: ids, vectors, edges, shapes. */
PARE_MUST_USE pare_status pare_inputs_sha256(char hex[PARE_SHA256_HEX], const pare_inputs *in,
                                             pare_err *err);
#endif
