/* trellis_table.c - the table that a path reads: normal quantiles, in the order of a seed.
 *
 * An entry is round(UNIT x) for the quantile x: how many thresholds (v + 1/2) / UNIT are below x,
 * counted by their probabilities. Density and integral take +, - and * of f64 alone, so they are the
 * same everywhere; and no quantile is so near to a threshold that a better integral would give
 * another entry (tests/model/test_trellis.c). */
#include "base/support.h"
#include "trellis.h"

/* exp(-x^2 / 2) / sqrt(2 pi) for 0 <= x <= 5: Taylor's series at a 1024th, squared ten times. */
static double density(double x)
{
    const double y = -x * x * 0x1p-11;
    double e = 1;
    for (int k = 8; k > 0; k--) e = 1 + y * e / k;
    for (int k = 0; k < 10; k++) e *= e;
    return e * 0.3989422804014326779399461;
}

void trellis_quantiles(int16_t *out, size_t n)
{
    const double h = 1.0 / TRELLIS_UNIT;
    double below = 0.5, left = 0; /* of the interval that is next */
    size_t i = n / 2;
    PARE_ASSERT(n % 2 == 0);
    for (int v = 0; i < n; v++) { /* entries v: quantiles up to (v + 1/2) h, by Simpson's rule */
        const double right = ((double)v + 0.5) * h, mid = (left + right) / 2;
        below += (right - left) * (density(left) + 4 * density(mid) + density(right)) / 6;
        left = right;
        for (; i < n && ((double)i + 0.5) < below * (double)n; i++) {
            out[i] = (int16_t)v;
            out[n - 1 - i] = (int16_t)-v;
        }
    }
}

void trellis_table(int16_t *table, uint32_t *scratch, uint64_t seed, uint64_t stream,
                   unsigned state_bits)
{
    const size_t n = (size_t)1 << state_bits;
    pare_rng r = pare_rng_at(seed, stream);
    trellis_quantiles(table, n);
    for (size_t i = 0; i < n; i++) scratch[i] = (uint32_t)(uint16_t)table[i];
    pare_rng_shuffle(&r, scratch, n);
    for (size_t i = 0; i < n; i++) table[i] = (int16_t)(uint16_t)scratch[i];
}

void trellis_order(uint32_t *out, const pare_trellis *t)
{
    pare_rng r = pare_rng_at(t->seed, t->stream + 3);
    for (size_t i = 0; i < t->rows; i++) out[i] = (uint32_t)i;
    if (t->shuffled) pare_rng_shuffle(&r, out, t->rows);
}

void trellis_signs(int8_t *out, const pare_trellis *t, int side)
{
    const size_t n = side == 1 ? t->rows : t->cols;
    const bool rotated = hadamard_order(side == 1 ? t->row : t->col) > 1;
    pare_rng r = pare_rng_at(t->seed, t->stream + (uint64_t)side);
    for (size_t i = 0; i < n; i++) out[i] = rotated && pare_rng_u32(&r) >> 31 ? -1 : 1;
}
