/* tape_norm.h - what the plain norms and their f32 loops share. */
#ifndef PARE_SRC_TAPE_NORM_H
#define PARE_SRC_TAPE_NORM_H
#include "tape.h"

typedef enum norm_op {
    NORM_ROWS,            /* there, row by row */
    NORM_ROWS_BACKWARD,   /* and back; sums: gain, bias, offset */
    NORM_SUM,             /* batch, f64: column sums, */
    NORM_SQUARES,         /* then squared distances from the mean; */
    NORM_MOMENTS,         /* f32: at once (column_moments) */
    NORM_COLUMNS,         /* there */
    NORM_SUMS_BACKWARD,   /* sums: dy u, dy */
    NORM_COLUMNS_BACKWARD /* back */
} norm_op;

typedef struct norm_job {
    norm_op op;
    const norm_saved *k;
    const pare_norm *n;
    const rows *x, *dy, *plus;
    rows *y;                         /* back: dx */
    const double *s1, *s2;           /* batch, back: means of dy u and of dy */
    float *mean, *by, *shift, *lean; /* f32, batch: see norm_columns_f32 */
} norm_job;

/* y = (x - mean) by + shift;  dx = (dy - shift - (x - mean) lean) by. */
span_fn *norm_f32(void);
#endif
