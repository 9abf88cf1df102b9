/* sequence_layout.h - where the sequences of a batch lie: one behind the other, without padding. What looks
 * at other tokens (attention, means, pooling) stays within a sequence; everything else goes by rows,
 * to which it makes no difference whose they are. So no output depends on what else is in the batch. */
#ifndef PARE_MODEL_SEQUENCE_LAYOUT_H
#define PARE_MODEL_SEQUENCE_LAYOUT_H
#include <pare/run.h>

typedef struct sequence_layout {
    size_t n, rows, longest; /* rows: of all of them */
    const size_t *start;     /* n + 1: the first row of each; NULL: all have `longest` rows */
    const uint32_t *of;      /* rows: whose each is; NULL with start */
} sequence_layout;

static inline size_t sequence_start(const sequence_layout *s, size_t i)
{
    return s->start ? s->start[i] : i * s->longest;
}
static inline size_t sequence_length(const sequence_layout *s, size_t i)
{
    return s->start ? s->start[i + 1] - s->start[i] : s->longest;
}
static inline size_t sequence_of(const sequence_layout *s, size_t row)
{
    return s->of ? s->of[row] : row / s->longest;
}
/* The place of a row in its sequence. */
static inline size_t sequence_position(const sequence_layout *s, size_t row)
{
    return s->of ? row - s->start[s->of[row]] : row % s->longest;
}

/* Those of one input: batch x tokens rows. */
static inline sequence_layout sequences_of_input(const pare_input *in)
{
    return (sequence_layout){in->batch, in->batch * in->tokens, in->tokens, NULL, NULL};
}

/* All inputs of a set as one, in the arena, and where its sequences lie: those of one input are shared
 * as they are. `joined` says what a model reads of ids and x, and no more; its tokens are those of the longest.
 * PARE_ERR_INPUT: an input that the model does not take, or several of a model of graphs. */
PARE_MUST_USE pare_status sequences_join(pare_input *joined, sequence_layout *out, pare_arena *a,
                                         const pare_model *m, const pare_inputs *set,
                                         pare_err *err);
#endif
