/* kl_bound.c - a proven upper bound on the Kullback-Leibler divergence of two output rows,
 *
 *     KL = sum_k p_k ln(p_k / q_k),    p = softmax(f), q = softmax(g),
 *
 * from midpoints F, G and radii |f_k - F_k| <= a, |g_k - G_k| <= b. Let P, Q be the softmax of the
 * midpoints, D = G - F, and S = max D - min D.
 *
 * Lemma (midpoints). KL(P, Q) <= E_P[ h(D - c) ] for every c, h(x) = e^x - 1 - x >= 0.
 * Proof. KL(P, Q) = ln E_P[e^D] - E_P[D] = ln E_P[e^(D - c)] - E_P[D - c], and ln y <= y - 1. []
 * With c = ln E_P[e^D] both sides are equal, and another c costs (its error)^2 / 2 only: c is
 * computed as it comes. All terms are positive, so nothing cancels however close the models are.
 *
 * Lemma (radii). KL(p, q) <= KL(P, Q) + (a/2)(S + 2a) + b (min(2, S/2) + a) + b^2/2.
 * Proof. TV, half the sum of |p_k - P_k|, is at most tanh(a/2) <= a/2 (enclose_tv), and for P and Q at
 * most S/4, as adding a constant to G changes nothing. First p for P, with e = f - F:
 *     KL(p, Q) - KL(P, Q) = E_p[e] - ln E_P[e^e] + E_P[D] - E_p[D]
 *                        <= (E_p - E_P)[e] + (E_P - E_p)[D]              (Jensen)
 *                        <= TV (max e - min e + S) <= (a/2)(2a + S).
 * Then q for Q, with e = g - G:
 *     KL(p, q) - KL(p, Q) = ln E_Q[e^e] - E_p[e] <= (E_Q - E_p)[e] + b^2/2      (Hoeffding)
 *                        <= b (|Q - P|_1 + |P - p|_1) + b^2/2. []
 *
 * And KL(p, q) <= max(g - f) - min(g - f) <= S + 2 (a + b), which serves where S is large.
 *
 * Rounding. Differences of entries are off by 2^-53 of themselves, which h is given as an interval;
 * exponents are at most 4096 units of 2^-53 off where they are above -700, and below e^-700 a weight
 * counts as 1e-303 in the sum and as 0 in what divides it. */
#include "enclose.h"
#include "linalg/bounds.h"
#include "linalg/elementary.h"

#define SPREAD 500.0 /* of D: up to it exponents stay in range */
#define LOWEST (-700.0)
#define BELOW  1e-303 /* e^-699 is less */
enum { OFF = 4096 };  /* units of 2^-53 of an exponent, and what rounds a term */

typedef struct kl_row {
    const double *f, *g;
    size_t n;
    double f_max, g_max;
    double spread;    /* S, rounded up */
    double low, high; /* min D, max D, as computed */
} kl_row;

static kl_row row_of(const double *f, const double *g, size_t n)
{
    kl_row r = {f, g, n, f[0], g[0], 0, INFINITY, -INFINITY};
    bool known = true;
    for (size_t k = 0; k < n; k++) {
        const double d = g[k] - f[k];
        known = known && isfinite(d);
        r.f_max = fmax(r.f_max, f[k]);
        r.g_max = fmax(r.g_max, g[k]);
        r.low = fmin(r.low, d);
        r.high = fmax(r.high, d);
    }
    /* Each end is off by half a unit in its last place. */
    const double ends = up_mul(0x1p-53, up_add(fabs(r.low), fabs(r.high)));
    r.spread = known ? up_add(up(r.high - r.low), ends) : INFINITY;
    return r;
}

/* ln E_P[e^D], as it comes, between min D and max D. */
static double center_of(const kl_row *r)
{
    double f_sum = 0, g_sum = 0;
    for (size_t k = 0; k < r->n; k++) {
        f_sum += pare_exp(r->f[k] - r->f_max);
        g_sum += pare_exp(r->g[k] - r->g_max);
    }
    const double c = (r->g_max - r->f_max) + log(g_sum / f_sum);
    return fmin(fmax(c, r->low), r->high);
}

/* h(x) = e^x - 1 - x from above, for x in [-2 SPREAD, 20]. Near 0 by Taylor's formula: x^2/2 + x^3/6 +
 * x^4/24 e^y with y between 0 and x, and e^(1/64) < 1.016. */
static double h_up(double x)
{
    if (fabs(x) <= 0x1p-6) {
        const double last = x > 0 ? 1.016 : 1;
        return x * x * (0.5 + x * (1.0 / 6 + x * (last / 24))) * (1 + 0x1p-48) + DBL_MIN;
    }
    const double e = pare_exp(x);
    return (e - 1 - x) + 0x1p-50 * (e + 1 + fabs(x));
}

/* E_P[h(D - c)], rounded up. */
static double expected_h(const kl_row *r, double c)
{
    double sum = 0, weights = 0;
    for (size_t k = 0; k < r->n; k++) {
        const double a = r->f[k] - r->f_max, d = r->g[k] - r->f[k], x = d - c;
        const double w = a > LOWEST ? pare_exp(a) : 0;
        const double off = 0x1.01p-53 * (fabs(d) + fabs(x)); /* of x */
        weights += w;
        if (x <= 19) {
            const double end = x < -off ? x - off : fabs(x) + off; /* h(y) >= h(-y) for y > 0 */
            sum += (w > 0 ? w : BELOW) * h_up(end);
        } else { /* w h(x) <= e^(a + x) */
            sum += a + x + off > LOWEST ? pare_exp(a + x + off) : BELOW;
        }
    }
    const double factor = up_add(1, gamma_of(r->n + OFF, PARE_UNIT_F64));
    return up_div(up_mul(up_mul(sum, factor), factor), down(weights));
}

pare_ub pare_kl_bound(const double *f, double f_radius, const double *g, double g_radius, size_t n)
{
    const kl_row r = row_of(f, g, n);
    const double s = r.spread, a = f_radius, b = g_radius;
    const double range = up_add(s, up_mul(2, up_add(a, b)));
    if (!(s <= SPREAD)) return pare_ub_exact(range);
    const double middle = up_min(expected_h(&r, center_of(&r)), s);
    const double of_f = up_mul(0.5 * a, up_add(s, 2 * a));
    const double of_g = up_mul(b, up_add(up_add(up_min(2, 0.5 * s), a), 0.5 * b));
    return pare_ub_exact(up_min(up_add(middle, up_add(of_f, of_g)), range));
}
