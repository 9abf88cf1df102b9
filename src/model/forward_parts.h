/* forward_parts.h - the layers of a forward pass, one function each. */
#ifndef PARE_MODEL_FORWARD_PARTS_H
#define PARE_MODEL_FORWARD_PARTS_H
#include "inputs.h"
#include "rotary.h"
#include "sequence_layout.h"
#include <pare/run.h>

/* Attention that the caller computes, and how it failed: a pass itself only runs out of memory. */
typedef struct external_attention {
    const pare_attender *attender;
    pare_status st;
    pare_err err;
} external_attention;

/* One pass over some sequences. After a failure (ctx.work.st) its steps do nothing; a thread works with
 * a copy of its own. */
typedef struct pass {
    const pare_model *m;
    const sequence_layout *layout; /* of the whole input */
    size_t from, count;            /* the sequences of the chunk at hand, */
    size_t row;                    /* which begin in this row of the input */
    size_t first;                  /* row of the chunk where the rows of a step begin */
    const pare_graph *graph;       /* completed; NULL unless the pattern is a graph */
    const angles *angles;          /* rotary positions */
    const pare_trace *trace;       /* or NULL */
    external_attention *external;  /* or NULL */
    rows_ctx ctx;
} pass;

/* Sequence i of the chunk: its first row there, and how many it has. */
static inline size_t pass_row(const pass *p, size_t i)
{
    return sequence_start(p->layout, p->from + i) - p->row;
}
static inline size_t pass_tokens(const pass *p, size_t i)
{
    return sequence_length(p->layout, p->from + i);
}

/* Queries, keys, values and outputs of all heads, packed in rows. */
typedef struct head_rows {
    rows q, k, v, y;
} head_rows;

/* A branch is the sublayer without skip and norms, at the normed input z.
 *
 * Softmax heads come in three steps: project (row by row), attend (all rows of a sequence at once),
 * and output (row by row). Everything else is one call. */
bool attention_has_heads(const pare_attn *a);
bool attention_by_rows(const pare_attn *a); /* a row needs no other row */
/* The shape of n rows of heads, without memory. */
head_rows attention_shape(const pare_attn *a, pare_dtype t, size_t n);
void attention_project(pass *p, head_rows *h, const rows *z, const pare_attn *a);
void attention_attend(pass *p, head_rows *h, const pare_attn *a);
/* What p->external is asked for: the heads of the rows at hand, sequence after sequence, into jobs;
 * returns how many. And the call. */
size_t attention_jobs(pare_attend_job *jobs, const pass *p, const head_rows *r, const pare_attn *a);
void attention_external(pass *p, pare_dtype t, const pare_attn *a, const pare_attend_job *jobs,
                        size_t count);
/* y = heads wo^T + bo; heads + bo where there is no wo. */
void attention_output(pass *p, rows *y, const rows *heads, const pare_attn *a);
void attention_branch(pass *p, rows *y, const rows *z, const pare_attn *a);
void ffn_branch(pass *p, rows *y, const rows *z, const pare_ffn *f);

/* x begins with row p->first of the chunk. */
void forward_embedding(pass *p, rows *x, const pare_input *in);
/* x has gone through the head's norm. */
void forward_head(pass *p, rows *out, const rows *x);
#endif
