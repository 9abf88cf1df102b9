/* forward_parts.h - the parts of a forward pass, one sublayer each. */
#ifndef PARE_MODEL_FORWARD_PARTS_H
#define PARE_MODEL_FORWARD_PARTS_H
#include "rotary.h"
#include <pare/forward.h>

/* Attention that somebody else computes, and how that failed: a pass itself only knows memory. */
typedef struct elsewhere {
    const pare_attender *by;
    pare_status st;
    pare_err err;
} elsewhere;

/* One pass over some sequences of equal length. */
typedef struct pass {
    const pare_model *m;
    size_t tokens;           /* rows per sequence */
    size_t first;            /* row of the batch at hand where the rows of a step begin */
    const pare_graph *graph; /* completed; NULL unless the pattern is a graph */
    const angles *angles;    /* rotary positions */
    const pare_trace *trace; /* or NULL */
    elsewhere *elsewhere;    /* or NULL */
    rows_ctx ctx;
} pass;

/* Queries, keys, values and outputs of all heads, packed in rows. */
typedef struct head_rows {
    rows q, k, v, y;
} head_rows;

/* A branch is the sublayer without skip and norms, at the normed input z.
 *
 * Softmax heads come in three: project (row by row), attend (all rows of a sequence at once), and
 * join (row by row). Everything else is one call. */
bool attention_has_heads(const pare_attn *a);
bool attention_by_rows(const pare_attn *a); /* a row needs no other row */
/* The shape of n rows of heads, without memory. */
head_rows attention_shape(const pare_attn *a, pare_dtype t, size_t n);
PARE_MUST_USE pare_status attention_project(const pass *p, head_rows *h, const rows *z,
                                            const pare_attn *a);
PARE_MUST_USE pare_status attention_attend(const pass *p, head_rows *h, const pare_attn *a);
/* What p->elsewhere is asked for: the heads of the rows at hand, sequence after sequence, into
 * jobs; how many. And the question. */
size_t attention_jobs(pare_attend_job *jobs, const pass *p, const head_rows *r, const pare_attn *a);
PARE_MUST_USE pare_status attention_elsewhere(const pass *p, pare_dtype t, const pare_attn *a,
                                              const pare_attend_job *jobs, size_t count);
/* y = heads wo^T + bo; heads + bo where there is no wo. */
PARE_MUST_USE pare_status attention_join(const pass *p, rows *y, const rows *heads,
                                         const pare_attn *a);
PARE_MUST_USE pare_status attention_branch(const pass *p, rows *y, const rows *z,
                                           const pare_attn *a);
PARE_MUST_USE pare_status ffn_branch(const pass *p, rows *y, const rows *z, const pare_ffn *f);

/* x begins with row `first` of the input. */
PARE_MUST_USE pare_status forward_stem(const pass *p, rows *x, const pare_input *in, size_t first);
/* x has gone through the head's norm. */
PARE_MUST_USE pare_status forward_top(const pass *p, rows *out, const rows *x);
const pare_weight *forward_top_weight(const pare_model *m); /* tied or not; may be absent */
#endif
