/* wide_quad.h - references for double-double: the functions of enclose_quad.h with arguments
 * reduced first, so that their own errors stay below 2^-110 (times n for n terms), which is a
 * sixteenth of 2^-106 = v^2. */
#ifndef TEST_WIDE_QUAD_H
#define TEST_WIDE_QUAD_H
#include "cert/wide.h"
#include <enclose_quad.h>

#define V2 0x1p-106 /* v^2, v = 2^-53 */

static inline quad q_of(dd x)
{
    return (quad)x.hi + (quad)x.lo;
}

/* k and what is left of x in multiples of a constant in three doubles; k times each is exact. */
static inline quad q_left(quad x, const double part[3], double *k)
{
    *k = floor((double)x / part[0] + 0.5);
    for (int i = 0; i < 3; i++) x -= (quad)*k * (quad)part[i];
    return x;
}

static const double ln2_parts[3] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56,
                                    0x1.7b57a079a1934p-111};
static const double quarter_parts[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                        -0x1.f1976b7ed8fbcp-110};

static inline quad qr_exp(quad x)
{
    double k;
    const quad r = q_left(x, ln2_parts, &k);
    return q_exp(r) * (quad)ldexp(1, (int)k);
}

static inline quad qr_tanh(quad x)
{
    if (x < 0) return -qr_tanh(-x);
    if (x > 100) return 1;
    const quad y = x < (quad)0.1 ? q_em1_small(2 * x) : qr_exp(2 * x) - 1;
    return y / (y + 2);
}

static inline quad qr_erf(quad x)
{
    if (x < 0) return -qr_erf(-x);
    if (x > 11) return 1;
    quad term = x, sum = 0;
    for (int n = 0; n < 700; n++) {
        sum += term;
        term *= 2 * x * x / (2 * n + 3);
    }
    return 2 / q_sqrt(q_pi()) * qr_exp(-x * x) * sum;
}

static inline void qr_sincos(quad x, quad *s, quad *c)
{
    double k;
    const quad r = q_left(x, quarter_parts, &k);
    quad a, b;
    q_sincos(r, &a, &b);
    switch ((int)(k - 4 * floor(k / 4))) {
    case 0:
        *s = a, *c = b;
        break;
    case 1:
        *s = b, *c = -a;
        break;
    case 2:
        *s = -a, *c = -b;
        break;
    default:
        *s = -b, *c = a;
    }
}

static inline quad qr_act(pare_act act, quad x)
{
    const quad half = (quad)0.5, c = (quad)44715 / 1000000;
    switch (act) {
    case PARE_ACT_GELU:
        return half * x * (1 + qr_erf(x / q_sqrt(2)));
    case PARE_ACT_GELU_TANH:
        return half * x * (1 + qr_tanh(q_sqrt(2 / q_pi()) * (x + c * x * x * x)));
    case PARE_ACT_SILU:
        return x > -1000 ? x < 1000 ? x / (1 + qr_exp(-x)) : x : 0;
    case PARE_ACT_TANH:
        return qr_tanh(x);
    case PARE_ACT_NONE:
    case PARE_ACT_RELU:
        break;
    }
    return q_act(act, x);
}

/* hi and a random lo that ends 106 bits below its first: 113 bits hold both. */
static inline dd with_lo(pare_rng *r, double hi)
{
    const double bits = floor(0x1p53 * pare_rng_uniform(r)) - 0x1p52;
    return hi == 0 ? dd_of(0) : dd_two_sum(hi, ldexp(bits, ilogb(hi) - 105));
}

/* A number of about that size, either sign. */
static inline dd random_dd(pare_rng *r, double size)
{
    return with_lo(r, size * (1 + pare_rng_uniform(r)) * (pare_rng_below(r, 2) ? 1 : -1));
}
#endif
