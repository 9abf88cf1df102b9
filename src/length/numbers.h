/* numbers.h - entries of arrays of either type, read and written as f64; vectors of four. */
#ifndef PARE_LENGTH_NUMBERS_H
#define PARE_LENGTH_NUMBERS_H
#include <pare/base.h>

/* At any address. */
typedef double double4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef float float4 __attribute__((vector_size(16), aligned(4), may_alias));

static inline size_t num_size(pare_dtype t)
{
    return t == PARE_F32 ? sizeof(float) : sizeof(double);
}

static inline double num_at(pare_dtype t, const void *v, size_t i)
{
    return t == PARE_F32 ? (double)((const float *)v)[i] : ((const double *)v)[i];
}

static inline void num_put(pare_dtype t, void *v, size_t i, double x)
{
    if (t == PARE_F32)
        ((float *)v)[i] = (float)x;
    else
        ((double *)v)[i] = x;
}
#endif
