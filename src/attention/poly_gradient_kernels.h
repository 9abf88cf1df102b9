/* poly_slopes.h - the way back from monomials to their variables: an inner loop of poly_backward.
 */
#ifndef PARE_ATTENTION_POLY_SLOPES_H
#define PARE_ATTENTION_POLY_SLOPES_H
#include "poly_kernels.h"

/* For v vectors of rows side by side, and every monomial e = parent x_var of the runs:
 *     dfrom_parent += dto_e x_var,   dx_var += dto_e from_parent.
 * In dto monomial `first` stands first, in dfrom and from the constant. */
typedef void poly_slopes(float *dfrom, float *dx, const float *dto, size_t first, const float *from,
                         const poly_run *runs, size_t n, const float *x, size_t v);
/* The one for a kernel's lanes. */
poly_slopes *poly_slopes_for(const tile_kernel *k);
#endif
