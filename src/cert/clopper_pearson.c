/* clopper_pearson.c - which share of a source may lie above what n draws have shown (Clopper and
 * Pearson, 1934).
 *
 * Let T(p) = P(at most k of n tries succeed), each with probability p: it falls from 1 to 0. If
 * T(p) <= delta then, with confidence 1 - delta, at most p of the source is above the (k + 1)-th
 * largest of n draws (conformal.c has the proof, which allows ties). For k = 0, T(p) = (1 - p)^n.
 *
 * T is summed from its largest term, which is the last one where p is above k / n:
 *     T(p) = t_k S_k,   t_j = C(n, j) p^j q^(n-j),   S_j = 1 + S_(j-1) t_(j-1) / t_j,  q = 1 - p,
 *     t_(j-1) / t_j = j q / ((n - j + 1) p).
 * All factors are positive and every operation rounds up: what comes out is at least T(p) for this
 * very double p. p is then found by halving, where the upper end always has T <= delta: that T
 * falls is used to find a small p, not to trust it. */
#include "conformal.h"
#include "linalg/bounds.h"
#include <math.h>

enum { HALVINGS = 64 };

static pare_ub count(size_t n) /* of things in memory: below 2^53 */
{
    return pare_ub_exact((double)n);
}

/* C(n, k) p^k q^(n-k): factors (n - k + i) p / i and q, in an order that keeps the product near 1,
 * so that it does not overflow and underflows only where it is that small in the end. */
static pare_ub last_term(size_t n, size_t k, double p, pare_ub q)
{
    pare_ub t = pare_ub_exact(1);
    size_t i = 0, rest = n - k;
    while (i < k || rest > 0) {
        if (rest > 0 && (t.v > 1 || i == k)) {
            t = pare_ub_mul(t, q);
            rest--;
        } else {
            i++;
            const pare_ub up = pare_ub_mul(count(n - k + i), pare_ub_exact(p));
            t = pare_ub_mul(t, pare_ub_div(up, (double)i));
        }
    }
    return t;
}

pare_ub pare_binomial_tail(size_t n, size_t k, double p)
{
    PARE_ASSERT(k < n && p >= 0 && p <= 1);
    const pare_ub q = p == 0 ? pare_ub_exact(1) : pare_ub_of(1 - p);
    if (p == 0) return pare_ub_exact(1);
    pare_ub sum = pare_ub_exact(1);
    for (size_t j = 1; j <= k; j++) {
        const pare_ub up = pare_ub_mul(count(j), q);
        const pare_ub ratio = pare_ub_div(pare_ub_div(up, (double)(n - j + 1)), p);
        sum = pare_ub_fma(sum, ratio, pare_ub_exact(1));
    }
    return pare_ub_min(pare_ub_mul(sum, last_term(n, k, p, q)), pare_ub_exact(1));
}

double pare_share_above(size_t n, size_t k, double confidence)
{
    PARE_ASSERT(k < n && confidence >= 0.5 && confidence < 1);
    const double delta = 1 - confidence; /* exact: the confidence is at least a half */
    double low = 0, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        const double p = low + (high - low) / 2;
        if (pare_binomial_tail(n, k, p).v <= delta)
            high = p;
        else
            low = p;
    }
    return high;
}
