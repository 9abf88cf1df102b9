/* bound_rows.h - given rows of one sequence, and what attention makes of their differences
 * (bound_rows.c). */
#ifndef PARE_SRC_TICKET_BOUND_ROWS_H
#define PARE_SRC_TICKET_BOUND_ROWS_H
#include "bounds.h"

typedef struct given_rows {
    pare_mat z;        /* n x din, midpoints of f's rows */
    const double *rad; /* n: how far f's exact rows may be from them; NULL: they are exact */
    const double *d;   /* n: how far g's rows may be from f's; NULL: they are the same */
    const pare_pattern *pattern;
    const pare_graph *graph; /* completed; NULL unless the pattern is a graph */
} given_rows;

/* Theorem C: |out_i - out~_i| of the branch alone, into out (n). */
void attn_rows_move(proof *p, pare_ub *out, const pare_attn *f, const pare_attn *g,
                    const attn_sizes *s, const given_rows *x);
#endif
