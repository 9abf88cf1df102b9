/* vmath.h - elementary functions over arrays, in f32. */
#ifndef PARE_BASE_VMATH_H
#define PARE_BASE_VMATH_H
#include <pare/base.h>

/* y_i = e^(x_i) within 2 ulp for every f32 (tested on all of them); exactly 0 for x <= -104, inf
 * where e^x is beyond f32, nan for nan. y may be x. The same bits at every position: an element
 * does not depend on where in the array it stands. */
void pare_exp_f32(float *y, const float *x, size_t n);
#endif
