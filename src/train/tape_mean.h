/* tape_mean.h - what the plain means and their f32 loop share. */
#ifndef PARE_SRC_TAPE_MEAN_H
#define PARE_SRC_TAPE_MEAN_H
#include "tape.h"

typedef struct mean_job {
    const pare_tape *t;
    const rows *x;
    rows *y;
    double *room; /* 2 rows for each sequence */
    bool transposed;
} mean_job;

/* The rows that row i of U (or of U^T) adds up, and the share of row `at` among them. */
pare_keys mean_keys(const mean_job *w, size_t i);
double mean_weight(const mean_job *w, const pare_keys *seen, size_t at);
span_fn *mean_f32(void);
#endif
