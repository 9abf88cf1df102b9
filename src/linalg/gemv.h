/* gemv.h - the kernels behind pare_panels_apply, one table for each kind of CPU. */
#ifndef PARE_LINALG_GEMV_H
#define PARE_LINALG_GEMV_H
#include <pare/base.h>

/* n rows of x against `panels` panels that follow one another. */
typedef struct gemv_job {
    float *y;
    const float *w, *x, *bias; /* bias may be NULL */
    size_t ldy, ldx, in, n, panels;
    bool add;
} gemv_job;

typedef void gemv_fn(const gemv_job *j);
gemv_fn gemv_portable;
#if defined(__x86_64__)
gemv_fn gemv_avx2, gemv_avx512;
#endif
#endif
