/* The rounding bound (spec of length, 6, with the underflow term of amendment 2).
 *
 * Let u be the oracle's unit roundoff. A logit is off by at most lambda = gamma_{dk+4} sum_c |q_c
 * k_c|
 * (+ what underflows), subtracting the largest adds u times the range of the logits, e^x adds
 * exp_err u, and an engine that goes through the keys of a call in pieces rescales at most m times,
 * (exp_err + 1) u each: every weight of a call is its exact value times e^+-delta, up to a factor
 * common to the call,
 *     delta = lambda + u (range + 2 lambda) + (exp_err + 1) u (m + 2).
 * Sums of at most m + 2 terms add gamma_{m+4}. In a native plan the common factor is e^(m_t), which
 * the call hands out off by at most lambda and its own rounding; with a reference it cancels in acc
 * / w and r / w, whose three parts each carry delta. The merge (f64) adds gamma_{parts+8} of f64
 * and the rounding of the result. So acc / w and r / w are sums whose terms are within e^+-theta,
 *     theta = 2 delta + 2 gamma_{m+4} + lambda + gamma64_{parts+8} + 4 u,
 * and a ratio of such sums obeys |y' - y| <= (e^(2 theta) - 1) sum_j p_j |v_j|.
 * What is below the smallest normal number is lost: a weight or a product of a call is off by tiny
 * more, at most m of them in a sum, that is divided by w >= w_min (native: by the row's own weight,
 * at least 1 in the call that has the largest logit, and every other call's is multiplied by a
 * factor at most 1). Over all calls: n + m parts weights, absent = 4 (n + (m + 4) parts) tiny /
 * w_min. */
#include "rounding.h"
#include <math.h>

static double gamma_of(double n, double u)
{
    return n * u < 1 ? n * u / (1 - n * u) * (1 + 0x1p-50) : INFINITY;
}

rounding rounding_of(const pare_oracle_caps *caps, size_t dk, double size, double range, double n,
                     double m, double parts, bool native)
{
    const bool f32 = caps->dtype == PARE_F32;
    const double u = f32 ? 0x1p-24 : 0x1p-53, tiny = f32 ? 0x1p-126 : 0x1p-1022;
    const double lambda = gamma_of((double)dk + 4, u) * size + ((double)dk + 2) * tiny;
    const double flush = isfinite(caps->exp_flush) ? caps->exp_flush + 2 : 800;
    const double gap = fmin(range + 2 * lambda, flush);
    const double delta = lambda + u * (gap + 2 * lambda) + (caps->exp_err + 1) * u * (m + 2);
    const double theta =
        2 * delta + 2 * gamma_of(m + 4, u) + lambda + gamma_of(parts + 8, 0x1p-53) + 4 * u;
    const double least = native ? 1 : caps->w_min;
    rounding r = {expm1(2 * theta) * (1 + 0x1p-40), 4 * (n + (m + 4) * parts) * tiny / least};
    if (!(r.factor >= 0)) r.factor = INFINITY;
    if (!(r.absent >= 0)) r.absent = INFINITY;
    return r;
}
