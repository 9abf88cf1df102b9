/* poly_cost.c - the cost of polynomial attention and of the exact kernel, in multiply-adds of the
 * kernels: features and e^x count by their measured time in this unit. */
#include "poly.h"

#define EXP_COST     14.0 /* of one score beside its products */
#define FEATURE_COST 31.0 /* of one monomial of a query and a key beside its products */

double poly_exact_cost(double pairs, size_t d, size_t dv)
{
    return pairs * ((double)(d + dv) + EXP_COST);
}

/* Measured: bench/poly and the sizes around it; within a quarter from 4 to 32 dimensions. */
double poly_cost(double rows, size_t features, size_t d, size_t cols, bool causal)
{
    const double r = (double)features, c = (double)padded(cols, TILE_STEP);
    const double row = 5000 + 700 * (double)d, chunk = causal ? 3500 + 0.8 * r * c : 0;
    return rows * (row + 1.12 * r * (c + FEATURE_COST) + chunk);
}

/* Moments have one column, and only some of the rows. */
double poly_moment_cost(double keys, double rows, size_t features, size_t d, bool causal)
{
    return poly_cost(keys + rows, features, d, 1, causal) / 2;
}

bool poly_fits(size_t features, size_t cols, size_t max_bytes)
{
    /* the sums of all segments, and the workspace of a thread */
    const double bytes = 8.0 * 20 * (double)padded(cols, TILE_STEP) + 4.0 * POLY_KEYS;
    return features <= POLY_MAX_FEATURES && (double)features * bytes <= (double)max_bytes;
}
