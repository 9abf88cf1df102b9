/* tape_kernels.h - what the plain f64 code of a step shares with its f32 kernel. */
#ifndef PARE_SRC_TAPE_KERNELS_H
#define PARE_SRC_TAPE_KERNELS_H
#include "tape.h"

/* Activations: forward (post) or backward (d, dfactor). */
typedef struct act_job {
    const act_step *s;
    rows *post, *d, *dfactor;
} act_job;
span_fn *act_f32(void);

typedef struct dropout_job {
    rows *y;
    const rows *x, *plus;
    const dropout_mask *k;
} dropout_job;
span_fn *dropout_f32(void);

typedef struct dropout_draw_job {
    uint32_t key[2], threshold; /* an entry is dropped with probability threshold / 2^16 */
    size_t d;
    uint8_t *keep;
} dropout_draw_job;
span_fn *dropout_draw_lanes(void);

typedef struct mean_job {
    const pare_tape *t;
    const rows *x;
    rows *y;
    double *scratch; /* 2 rows for each sequence */
    bool transposed;
} mean_job;
/* The rows that row i of U (or of U^T) adds up, and the weight of row `at` among them. */
pare_keys mean_keys(const mean_job *w, size_t i);
double mean_weight(const mean_job *w, const pare_keys *keys, size_t at);
span_fn *mean_f32(void);

typedef enum norm_op {
    NORM_ROWS,            /* forward, row by row */
    NORM_ROWS_BACKWARD,   /* sums: gain, bias, offset */
    NORM_SUM,             /* batch norm, f64: column sums, */
    NORM_SQUARES,         /* then squared distances from the mean; */
    NORM_MOMENTS,         /* f32: both at once (column_moments) */
    NORM_COLUMNS,         /* forward */
    NORM_SUMS_BACKWARD,   /* sums: dy u, dy */
    NORM_COLUMNS_BACKWARD /* dx */
} norm_op;

/* In f32 a batch norm is, per column,
 *
 *     y  = (x - mean) scale + shift
 *     dx = (dy - shift - (x - mean) coupling) scale */
typedef struct norm_job {
    norm_op op;
    const norm_saved *k;
    const pare_norm *n;
    const rows *x, *dy, *plus;
    rows *y;                                /* backward: dx */
    const double *mean_dyu, *mean_dy;       /* batch norm, backward: over the rows */
    float *mean, *scale, *shift, *coupling; /* batch norm in f32; else NULL */
} norm_job;
span_fn *norm_f32(void);
#endif
