/* forward_plan.h - a forward pass as a list of steps.
 *
 * Attention looks at whole sequences. Every other step works row by row, and so do the steps
 * between two attentions taken together. */
#ifndef PARE_MODEL_FORWARD_PLAN_H
#define PARE_MODEL_FORWARD_PLAN_H
#include "forward_parts.h"

typedef enum step_kind {
    EMBEDDING,
    PROJECT,   /* queries, keys, values */
    ATTEND,    /* softmax over the sequence */
    HEADS_OUT, /* wo, skip, norm */
    ATTENTION, /* a sublayer without softmax heads */
    FFN,
    HEAD_NORM,
    HEAD
} step_kind;

typedef struct step {
    step_kind kind;
    size_t block;
    bool by_rows;
    size_t side, din, dout; /* which of the two buffers holds the stream before it; its widths */
} step;

typedef struct plan {
    const pare_model *m;
    step *steps;
    size_t count;
    bool small; /* rows go in ranges */
    bool fused; /* ... through several steps at once */
    /* Ranges lie apart, each with capacity for the widest rows: a stream that changes its width
     * does not move the rows of one range over those of another. */
    bool apart;
} plan;

/* In scratch; nothing after a failure. f64 passes are never small; a traced one is never fused. */
void plan_new(plan *l, rows_ctx *c, const pare_model *m, pare_dtype t, bool traced);
/* The sequences [0, n) in chunks: chunk i has those from first[i] on, up to first[i + 1]. As many as fit
 * into the rows that suit the model, at least one. In scratch, `*chunks` + 1. */
size_t *plan_chunks(size_t *chunks, const plan *l, const sequence_layout *s, rows_ctx *c);
size_t plan_stream_width(const pare_model *m); /* widest */
head_rows plan_heads(const pare_model *m);     /* widest of each; d alone */
#endif
