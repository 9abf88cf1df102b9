/* vexp.h - the variants of pare_exp_f32, so that the tests can run each one. */
#ifndef PARE_BASE_VEXP_H
#define PARE_BASE_VEXP_H
#include <pare/vmath.h>

typedef struct exp_variant {
    const char *name;
    void (*run)(float *y, const float *x, size_t n);
} exp_variant;

/* The variants this CPU can run, best first; the last is the portable one. Returns how many. */
size_t exp_variants(exp_variant out[3]);

#endif
