/* gemv_portable.c - pare_panels_apply for every CPU: vectors of four, which all compilers can lower. */
#include <string.h>

#define TARGET
enum { VEC = 4, TALL = 1, SHORT = 1, WIDE = 1 };
typedef float vec __attribute__((vector_size(16)));

static inline vec vec_zero(void)
{
    return (vec){0, 0, 0, 0};
}
static inline vec vec_load(const float *p)
{
    vec a;
    memcpy(&a, p, sizeof a);
    return a;
}
static inline void vec_store(float *p, vec a)
{
    memcpy(p, &a, sizeof a);
}
static inline vec vec_set(float a)
{
    return (vec){a, a, a, a};
}
static inline vec vec_add(vec a, vec b)
{
    return a + b;
}
static inline vec vec_fma(vec a, vec b, vec c)
{
    return a * b + c;
}

#include "gemv_tile.h"

void gemv_portable(const gemv_job *j)
{
    gemv_all(j);
}
