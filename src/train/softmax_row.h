/* softrow.h - one row of logits through a softmax: what the losses share.
 *
 * A row is read three times: its top, the sum of e^(x - top), and the way back. With rows of some
 * thousand numbers the second and third time come out of the cache. */
#ifndef PARE_SRC_SOFTROW_H
#define PARE_SRC_SOFTROW_H
#include <pare/array.h>

/* softmax of by * x, held as its two constants: p_i = e^(by (x_i - top)) / sum. */
typedef struct soft {
    double top, sum; /* top: of x. A row with a nan or +inf has sum nan */
} soft;

soft soft_of_f32(const float *x, size_t n, float by);
soft soft_of_f64(const double *x, size_t n, double by);

/* dy_i += w p_i */
void soft_back_f32(float *dy, const float *x, size_t n, soft s, float w);
void soft_back_f64(double *dy, const double *x, size_t n, soft s, double w);

/* The sum of p_i (log p_i - log q_i) with p of teacher t, q of y, both of by * x;
 * dy_i += w (q_i - p_i). */
double soft_kl_f32(float *dy, const float *y, soft q, const float *t, soft p, size_t n, float by,
                   float w);
double soft_kl_f64(double *dy, const double *y, soft q, const double *t, soft p, size_t n,
                   double by, double w);
#endif
