/* poly_backward.h - what the files of the backward pass of polynomial attention share. */
#ifndef PARE_ATTENTION_POLY_BACKWARD_H
#define PARE_ATTENTION_POLY_BACKWARD_H
#include "poly.h"

typedef struct poly_backward_job {
    poly_job w; /* without a column for moments: u = weight [value - center, 1] */
    const pare_mat32 *dy;
    const uint8_t *exact; /* rows that are left out; NULL: none */
    pare_mat32 dq, dk, dv;
    float to_q, to_k; /* dq per gradient of a centered query; dk likewise */
    float *g;         /* n x cols4: gradients of numerator and denominator, in units of e^-shift */
    float *du;        /* causal: n x cols4, gradients of u by pairs of one chunk */
} poly_backward_job;

/* Gradients of the heavy keys from the queries of one segment. */
typedef struct poly_heavy_gradients {
    float *dx, *du; /* nheavy x d, nheavy x cols4 */
} poly_heavy_gradients;

/* Workspace of a thread. */
typedef struct poly_backward_workspace {
    poly_panel_workspace r; /* r.q: the centered rows of a panel, of queries or of keys */
    float *in;              /* cols4 x p: g, or u */
    float *dlow, *dhigh;
    float *dx;                /* d4 x p */
    float *e, *heavy_e, *t;   /* keys x p */
    float *x_rows, *g_rows;   /* p x whole vectors */
    float *out;               /* keys x whole vectors */
    float *heavy_u, *heavy_k; /* nheavy x cols4, x d */
    float *rescale, *by;      /* nheavy; p */
} poly_backward_workspace;
poly_backward_workspace poly_backward_workspace_new(const poly_backward_job *b, layout *l);

/* The queries of a chunk: dq, g, and the gradients of keys with exact weights. state NULL: none. */
void poly_queries_backward(const poly_backward_job *b, const poly_backward_workspace *r,
                           const float *state, size_t chunk, const poly_heavy_gradients *heavy);
/* The keys of a chunk from the sums of g over queries: dk and dv. */
void poly_keys_backward(const poly_backward_job *b, const poly_backward_workspace *r,
                        const float *state, size_t chunk);
/* dk and dv of heavy key h. */
void poly_heavy_key_backward(const poly_backward_job *b, const poly_heavy_gradients *s, size_t h);
/* Adds the queries of a chunk, times g, to the sums of the workspace. */
void poly_add_queries(const poly_workspace *r, const poly_backward_job *b, size_t chunk);
/* Rows [first, end) by the exact kernel, under the causal pattern or, all of them, under the full
 * (poly_backward_exact.c). */
PARE_MUST_USE pare_status poly_exact_range_backward(const poly_backward_job *b, size_t first,
                                                    size_t end, const pare_exec *exec,
                                                    pare_err *err);
/* The rows that b->exact marks. */
PARE_MUST_USE pare_status poly_exact_rows_backward(const poly_backward_job *b,
                                                   const pare_exec *exec, pare_err *err);
#endif
