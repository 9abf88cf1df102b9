/* hadamard.c - fast Hadamard transforms of orders 2^a (q + 1).
 *
 * Paley's matrix of order q + 1 is I + S: S has ones in the first row, -1 below its corner, and the
 * Legendre symbol of i - j elsewhere. S S^T = q I and S^T = -S for q = 3 mod 4, so that
 * (I + S)(I + S)^T = (q + 1) I. */
#include "hadamard.h"
#include "base/simd.h"
#include "base/support.h"
#include <string.h>

static bool is_prime(unsigned q)
{
    if (q < 2) return false;
    for (unsigned d = 2; d * d <= q; d++)
        if (q % d == 0) return false;
    return true;
}

bool hadamard_exists(hadamard h)
{
    if (h.twos > HADAMARD_MOST_TWOS || h.paley > HADAMARD_MOST_PALEY) return false;
    return h.paley == 1 || (h.paley % 4 == 0 && is_prime(h.paley - 1));
}

hadamard hadamard_for(size_t n, size_t most)
{
    hadamard best = {1, 0};
    for (unsigned paley = 1; paley <= HADAMARD_MOST_PALEY; paley++)
        for (unsigned twos = 0; twos <= HADAMARD_MOST_TWOS; twos++) {
            const hadamard h = {paley, twos};
            const size_t order = hadamard_order(h);
            if (hadamard_exists(h) && order <= most && n % order == 0 &&
                order > hadamard_order(best))
                best = h;
        }
    return best;
}

/* ---- Paley's factor -------------------------------------------------------------------------- */

/* sign[i paley + j] */
static void paley_signs(int8_t *sign, unsigned paley)
{
    const unsigned q = paley - 1;
    bool square[HADAMARD_MOST_PALEY] = {false};
    for (unsigned i = 1; i < q; i++) square[i * i % q] = true;
    for (unsigned i = 0; i < paley; i++)
        for (unsigned j = 0; j < paley; j++)
            sign[i * paley + j] = i == j || i == 0                    ? 1
                                  : j == 0                            ? -1
                                  : square[(i - 1 + q - (j - 1)) % q] ? 1
                                                                      : -1;
}

/* ---- integers, many columns at once ---------------------------------------------------------- */

typedef int32_t lanes __attribute__((vector_size(64), aligned(4), may_alias));
enum { PIECES = HADAMARD_LANES / 16 };

PARE_INLINE void butterflies(int32_t *v, size_t n, unsigned twos)
{
    const size_t order = (size_t)1 << twos;
    for (size_t block = 0; block < n; block += order)
        for (size_t half = 1; half < order; half *= 2)
            for (size_t i = 0; i < order; i += 2 * half)
                for (size_t k = i; k < i + half; k++) {
                    lanes *const x = (lanes *)(v + (block + k) * HADAMARD_LANES);
                    lanes *const y = (lanes *)(v + (block + k + half) * HADAMARD_LANES);
                    for (int p = 0; p < PIECES; p++) {
                        const lanes s = x[p] + y[p], d = x[p] - y[p];
                        x[p] = s, y[p] = d;
                    }
                }
}

/* Rows k, k + step, ... of a block. */
PARE_INLINE void paley_lanes(int32_t *v, size_t step, unsigned paley, const int8_t *sign)
{
    int32_t in[HADAMARD_MOST_PALEY * HADAMARD_LANES];
    for (unsigned j = 0; j < paley; j++)
        memcpy(in + j * HADAMARD_LANES, v + j * step * HADAMARD_LANES, HADAMARD_LANES * sizeof *in);
    for (unsigned i = 0; i < paley; i++) {
        lanes sum[PIECES] = {{0}};
        for (unsigned j = 0; j < paley; j++) {
            const lanes *const x = (const lanes *)(in + j * HADAMARD_LANES);
            for (int p = 0; p < PIECES; p++)
                if (sign[i * paley + j] > 0)
                    sum[p] += x[p];
                else
                    sum[p] -= x[p];
        }
        memcpy(v + i * step * HADAMARD_LANES, sum, sizeof sum);
    }
}

PARE_INLINE void all_lanes(int32_t *v, size_t n, hadamard h)
{
    int8_t sign[HADAMARD_MOST_PALEY * HADAMARD_MOST_PALEY];
    const size_t step = (size_t)1 << h.twos;
    butterflies(v, n, h.twos);
    if (h.paley == 1) return;
    paley_signs(sign, h.paley);
    for (size_t block = 0; block < n; block += hadamard_order(h))
        for (size_t k = 0; k < step; k++)
            paley_lanes(v + (block + k) * HADAMARD_LANES, step, h.paley, sign);
}

static void lanes_portable(int32_t *v, size_t n, hadamard h)
{
    all_lanes(v, n, h);
}
PARE_AVX2 static void lanes_avx2(int32_t *v, size_t n, hadamard h)
{
    all_lanes(v, n, h);
}
PARE_AVX512 static void lanes_avx512(int32_t *v, size_t n, hadamard h)
{
    all_lanes(v, n, h);
}

void hadamard_lanes(int32_t *v, size_t n, hadamard h)
{
    PARE_ASSERT(n % hadamard_order(h) == 0);
    switch (simd_best()) {
    case SIMD_AVX512:
        lanes_avx512(v, n, h);
        break;
    case SIMD_AVX2:
        lanes_avx2(v, n, h);
        break;
    default:
        lanes_portable(v, n, h);
        break;
    }
}

/* ---- doubles --------------------------------------------------------------------------------- */

static void paley_apply(double *v, size_t step, unsigned paley, const int8_t *sign, bool transposed)
{
    double in[HADAMARD_MOST_PALEY];
    for (unsigned j = 0; j < paley; j++) in[j] = v[j * step];
    for (unsigned i = 0; i < paley; i++) {
        double sum = 0;
        for (unsigned j = 0; j < paley; j++)
            sum += sign[transposed ? j * paley + i : i * paley + j] * in[j];
        v[i * step] = sum;
    }
}

void hadamard_apply(double *v, size_t n, size_t stride, hadamard h, bool transposed)
{
    int8_t sign[HADAMARD_MOST_PALEY * HADAMARD_MOST_PALEY];
    const size_t twos = (size_t)1 << h.twos;
    PARE_ASSERT(n % hadamard_order(h) == 0);
    for (size_t half = 1; half < twos; half *= 2)
        for (size_t i = 0; i < n; i += 2 * half)
            for (size_t k = i; k < i + half; k++) {
                const double x = v[k * stride], y = v[(k + half) * stride];
                v[k * stride] = x + y, v[(k + half) * stride] = x - y;
            }
    if (h.paley == 1) return;
    paley_signs(sign, h.paley);
    for (size_t block = 0; block < n; block += hadamard_order(h))
        for (size_t k = 0; k < twos; k++)
            paley_apply(v + (block + k) * stride, twos * stride, h.paley, sign, transposed);
}
