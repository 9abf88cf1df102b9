/* forward_parts.h - the parts of a forward pass, one sublayer each. */
#ifndef PARE_SRC_FORWARD_PARTS_H
#define PARE_SRC_FORWARD_PARTS_H
#include "rows.h"

/* One pass over some sequences of equal length. */
typedef struct pass {
    const pare_model *m;
    size_t tokens;           /* rows per sequence */
    const pare_graph *graph; /* completed; NULL unless the pattern is a graph */
    pare_arena *scratch;     /* reset after every sublayer */
    const pare_exec *exec;
    pare_err *err;
} pass;

/* y = the attention branch at z (normed input): no skip, no outer norm. */
PARE_MUST_USE pare_status attention_branch(pass *p, rows *y, const rows *z, const pare_attn *a);
PARE_MUST_USE pare_status ffn_branch(pass *p, rows *y, const rows *z, const pare_ffn *f);
#endif
