/* poly_remez.h - polynomials in place of e^x on [-bound, bound], with proven relative errors. */
#ifndef PARE_ATTENTION_POLY_REMEZ_H
#define PARE_ATTENTION_POLY_REMEZ_H
#include <pare/linalg.h>

enum { POLY_MAX_DEGREE = 24 };

typedef struct poly_fit {
    size_t degree;
    double c[POLY_MAX_DEGREE + 1]; /* p(x) = c[0] + c[1] x + ... as these very doubles */
    pare_ub error;                 /* >= max |p(x) e^-x - 1| over |x| <= bound; inf: unknown */
} poly_fit;

/* Of degree <= POLY_MAX_DEGREE, bound >= 0. The best relative error there is (within the grid of
 * the exchange); its proof is at most 2 % above it, or where f64 itself ends: about
 * 2^-50 e^(2 bound). */
poly_fit poly_remez(double bound, size_t degree);
/* The polynomial 1 + x + x^2/2 + ... */
poly_fit poly_taylor(double bound, size_t degree);
/* max |p(x) e^-x - 1| over |x| <= bound, from above. */
pare_ub poly_relative_error(const double *c, size_t degree, double bound);
/* What a relative error of the weights does to their shares: weights within 1 +- e of the true ones
 * give a total variation of at most e / (1 + sqrt(1 - e^2)) = tanh(atanh(e) / 2);
 * inf for e >= 1. */
pare_ub poly_variation(pare_ub relative);
/* The smallest degree <= most whose proven variation is at most `variation`; false: there is none,
 * and *out is the best of those tried. */
bool poly_least_degree(poly_fit *out, double bound, double variation, size_t most);
#endif
