/* What polynomial attention and the exact kernel cost, in multiply-adds of our kernels: features
 * and e^x count by what they cost in these units. */
#include "poly.h"

#define EXP_WORK     14.0 /* of one score beside its products */
#define FEATURE_WORK 31.0 /* of one monomial of a query and a key beside its products */

double poly_exact_cost(double pairs, size_t d, size_t dv)
{
    return pairs * ((double)(d + dv) + EXP_WORK);
}

/* Measured: bench/poly and the sizes around it; within a quarter from 4 to 32 dimensions. */
double poly_cost(double rows, size_t features, size_t d, size_t cols, bool causal)
{
    const double r = (double)features, c = (double)padded(cols, TILE_STEP);
    const double row = 5000 + 700 * (double)d, chunk = causal ? 3500 + 0.8 * r * c : 0;
    return rows * (row + 1.12 * r * (c + FEATURE_WORK) + chunk);
}

/* Moments have one column, and only some of the rows. */
double poly_moment_cost(double keys, double rows, size_t features, size_t d, bool causal)
{
    return poly_cost(keys + rows, features, d, 1, causal) / 2;
}

/* Sums of all stretches, and a thread's room. */
static double bytes_of(size_t features, size_t cols)
{
    return (double)features * (8.0 * 20 * (double)padded(cols, TILE_STEP) + 4.0 * POLY_KEYS);
}

bool poly_fits(size_t features, size_t cols, size_t max_bytes)
{
    return features <= POLY_MAX_FEATURES && bytes_of(features, cols) <= (double)max_bytes;
}
