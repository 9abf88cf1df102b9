/* rows_f64.h - plain loops over rows of f64 numbers, in the order of their columns. */
#ifndef PARE_ATTENTION_ROWS_F64_H
#define PARE_ATTENTION_ROWS_F64_H
#include <pare/base.h>
#include <stddef.h>

static inline double dot_f64(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

/* to += by x */
static inline void add_scaled_f64(double *to, double by, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += by * x[i];
}

#endif
