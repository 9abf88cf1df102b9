/* bound_rows.h - given rows of one sequence, and what attention (bound_rows.c) and feed-forward
 * parts (bound_ffn_rows.c) make of their differences. */
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

/* y = m x (with the last column of m for the constant 1 where `one`), and |y_k| with its slack. */
typedef struct image {
    pare_mat y;     /* n x out, midpoints */
    double *slack;  /* n: how far the exact image of the exact row may be */
    double *length; /* n: |exact image| from above */
} image;

typedef struct rows_view {
    pare_work *p;
    const given_rows *x;
    size_t n;
    double *norm; /* |x_k| from above, radius included */
} rows_view;
rows_view rows_view_of(pare_work *p, const given_rows *x);
/* Z M (transpose false: M is in x out) or Z M^T. `two`: |M|_2 of the part that multiplies x. */
image rows_image(const rows_view *v, const rmat *m, bool transpose, bool one, pare_ub two);

/* The same for a feed-forward part: |f(x_i) - g(x~_i)| of the branch alone. */
void ffn_rows_move(pare_work *p, pare_ub *out, const pare_ffn *f, const pare_ffn *g,
                   const ffn_sizes *s, const given_rows *x);

/* Theorem C: |out_i - out~_i| of the branch alone, into out (n). */
void attn_rows_move(pare_work *p, pare_ub *out, const pare_attn *f, const pare_attn *g,
                    const attn_sizes *s, const given_rows *x);
#endif
