/* poly_back.h - what the files of the way back through polynomial attention share. */
#ifndef PARE_ATTENTION_POLY_BACK_H
#define PARE_ATTENTION_POLY_BACK_H
#include "poly.h"
#include "poly_gradient_kernels.h"

typedef struct poly_back {
    poly_job w; /* without a column for moments: u = weight [value - centre, 1] */
    const pare_mat32 *dy;
    const uint8_t *exact; /* rows that are left out; NULL: none */
    pare_mat32 dq, dk, dv;
    poly_slopes *slopes;
    float to_q, to_k; /* dq in units of the slope of a centred query; likewise dk */
    float *g;         /* n x cols4: slopes of numerator and denominator, in units of e^-shift */
    float *du;        /* causal: n x cols4, slopes of u by pairs of one chunk */
} poly_back;

/* What the heavy keys get from the queries of one stretch. */
typedef struct poly_heavy_slopes {
    float *dx, *du; /* nheavy x d, nheavy x cols4 */
} poly_heavy_slopes;

/* Room of one thread. */
typedef struct poly_back_room {
    poly_panel_room r; /* r.q: the centred rows of a panel, whichever side they are of */
    float *in;         /* cols4 x p: g, or u */
    float *dlow, *dtop;
    float *dx;                /* d4 x p */
    float *e, *heavy_e, *t;   /* keys x p */
    float *x_rows, *g_rows;   /* p x whole vectors */
    float *out;               /* keys x whole vectors */
    float *heavy_u, *heavy_k; /* nheavy x cols4, x d */
    float *fade, *by;         /* nheavy; p */
} poly_back_room;
size_t poly_back_floats(const poly_back *b);
poly_back_room poly_back_at(const poly_back *b, float *at);

/* The queries of a chunk: dq, g, and what their direct pairs give to keys. state NULL: none. */
void poly_queries_back(const poly_back *b, const poly_back_room *r, const float *state,
                       size_t chunk, const poly_heavy_slopes *heavy);
/* The keys of a chunk from the sums of g over queries: dk and dv. */
void poly_keys_back(const poly_back *b, const poly_back_room *r, const float *state, size_t chunk);
/* dk and dv of heavy key h. */
void poly_heavy_back(const poly_back *b, const poly_heavy_slopes *s, size_t h);
/* Adds the queries of a chunk, times g, to what the room holds. */
void poly_add_queries(const poly_room *r, const poly_back *b, size_t chunk);
/* Rows [first, end) by the exact kernel, under the causal pattern or, all of them, under the full
 * (poly_backward_exact.c). */
PARE_MUST_USE pare_status poly_run_back(const poly_back *b, size_t first, size_t end,
                                        const pare_exec *exec, pare_err *err);
/* The rows that b->exact marks. */
PARE_MUST_USE pare_status poly_exact_back(const poly_back *b, const pare_exec *exec, pare_err *err);
#endif
