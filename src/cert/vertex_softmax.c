/* vertex_softmax.c - the largest value of c.softmax(s) when every score may move within its own
 * interval.
 *
 * Claim. Let w_j = e^(s_j) be free in [low_j, high_j], low_j > 0, and
 *     f(w) = sum_j c_j w_j / sum_j w_j.
 * With c sorted in descending order, the maximum of f is attained where for some k the first k
 * weights are high and all others low.
 * Proof. f is continuous on a compact box, so there is a maximum f*, at some w*. As
 *     df / dw_j = (c_j - f) / sum w
 * and f along one w_j is monotone (a quotient of two affine functions), a w*_j with c_j > f* is
 * high, or raising it would raise f; one with c_j < f* is low; and where c_j = f* any value of w_j
 * gives f* again. So w* may be taken high for c_j >= f* and low for the others: a threshold.  []
 * All n + 1 thresholds are tried by running sums: n steps, after a sort that depends on c alone.
 * (tests/cert/test_vertex_softmax.c compares with all 2^n corners.)
 *
 * Rounding. With the least c subtracted all terms of both sums are >= 0, and each passes at most
 * 2 n + 4 roundings (its own difference and product, and the running sum): a quotient is within a
 * factor 1 + gamma_{4 n + 16} of the true one. Products that underflow are off by less than 2^-1022
 * each, over a denominator of at least 2^-500; where that is smaller, the answer is the largest c,
 * which bounds every convex combination. */
#include "linalg/bounds.h"
#include "pair.h"

double vertex_softmax(const double *c, const uint32_t *order, const double *low, const double *high,
                      size_t n)
{
    const double least = c[order[n - 1]], most = up(c[order[0]] - least);
    double num = 0, den = 0;
    for (size_t j = 0; j < n; j++) {
        num += (c[j] - least) * low[j];
        den += low[j];
    }
    if (!(den >= 0x1p-500)) return most;
    double best = num / den;
    for (size_t k = 0; k < n; k++) {
        const size_t j = order[k];
        const double more = high[j] - low[j];
        num += (c[j] - least) * more;
        den += more;
        if (num > best * den) best = num / den;
    }
    if (!(den <= DBL_MAX) || !(num <= DBL_MAX)) return most;
    const double g = gamma_of(4 * n + 16, PARE_UNIT_F64);
    return up_min(most, up_add(up_fma(g, best, best), up_mul((double)n, 0x1p-500)));
}
