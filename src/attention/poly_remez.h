/* poly_remez.h - what a polynomial in place of e^x misses. */
#ifndef PARE_ATTENTION_POLY_REMEZ_H
#define PARE_ATTENTION_POLY_REMEZ_H
#include <pare/poly.h>

/* max |p(x) e^-x - 1| over |x| <= bound from above, p(x) = c[0] + c[1] x + ... as these very
 * doubles; degree <= PARE_POLY_MOST_DEGREE. At most 2 % above the truth, or where f64 itself ends:
 * about 2^-46 e^(2 bound). inf where a coefficient is not finite, or e^(2 bound) is too large. */
pare_ub poly_relative_error(const double *c, size_t degree, double bound);
#endif
