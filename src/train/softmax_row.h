/* softmax_row.h - one row of logits through a softmax: what the losses share.
 *
 * A row is read three times: for its maximum, for the sum of exp(x - max), and in the backward
 * pass. With rows of some thousand numbers the second and third time come out of the cache. */
#ifndef PARE_SRC_SOFTMAX_ROW_H
#define PARE_SRC_SOFTMAX_ROW_H
#include <pare/base.h>

/* softmax of scale * x by its two constants: p_i = exp(scale (x_i - row_max)) / sum. */
typedef struct softmax_row {
    double row_max, sum; /* row_max: of x. A row with a nan or +inf has sum nan */
} softmax_row;

softmax_row softmax_row_f32(const float *x, size_t n, float scale);
softmax_row softmax_row_f64(const double *x, size_t n, double scale);

/* dy_i += w p_i */
void softmax_backward_f32(float *dy, const float *x, size_t n, softmax_row s, float w);
void softmax_backward_f64(double *dy, const double *x, size_t n, softmax_row s, double w);

/* The sum of p_i (log p_i - log q_i) with p of teacher t, q of y, both of scale * x;
 * dy_i += w (q_i - p_i). */
double softmax_kl_f32(float *dy, const float *y, softmax_row q, const float *t, softmax_row p,
                      size_t n, float scale, float w);
double softmax_kl_f64(double *dy, const double *y, softmax_row q, const double *t, softmax_row p,
                      size_t n, double scale, double w);
#endif
