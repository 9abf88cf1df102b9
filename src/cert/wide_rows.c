/* wide_rows.c - sums, products and norms of rows in double-double.
 *
 * Long sums of products keep a pair (h, l) per entry: h + term exactly by a two-sum, all small parts
 * added up in l in f64. With v = 2^-53, n terms between two wide_tidy and A the sum of all |terms|:
 * a term's product is split exactly, its small part (error of the product, hi lo, lo hi; lo lo left
 * out) is below 3 v |term| and rounded with 7 v^2 |term|; the two-sum leaves at most v A; so l stays
 * below (n + 3) v A, and each addition to it is off by v times that. A term costs (n + 4) v^2 A,
 * plus 8 v^2 of itself. With n <= RUN = 256 that is below 270 v^2 A for each term: inside
 * the one WIDE_UNIT = 1024 v^2 that the kernel counts for each. */
#include "wide.h"

enum { RUN = 256 };

WIDE_INLINE void take(double *h, double *l, double xh, double xl, double yh, double yl)
{
    const dd p = dd_product(xh, yh), s = dd_two_sum(*h, p.hi);
    *h = s.hi;
    *l += s.lo + fma(xh, yl, fma(xl, yh, p.lo));
}

WIDE_INLINE dd dot(const double *xh, const double *xl, const double *yh, const double *yl, size_t n)
{
    double h = 0, l = 0;
    for (size_t k = 0; k < n; k++) {
        take(&h, &l, xh[k], xl[k], yh[k], yl[k]);
        if (k % RUN == RUN - 1) {
            const dd s = dd_two_sum(h, l);
            h = s.hi;
            l = s.lo;
        }
    }
    return dd_two_sum(h, l);
}

WIDE_INLINE void gather(double *yh, double *yl, dd p, const double *xh, const double *xl, size_t n)
{
    for (size_t k = 0; k < n; k++) take(&yh[k], &yl[k], p.hi, p.lo, xh[k], xl[k]);
}

WIDE_FMA static dd dot_fma(const double *xh, const double *xl, const double *yh, const double *yl,
                           size_t n)
{
    return dot(xh, xl, yh, yl, n);
}

WIDE_FMA static void gather_fma(double *yh, double *yl, dd p, const double *xh, const double *xl,
                                size_t n)
{
    gather(yh, yl, p, xh, xl, n);
}

dd wide_dot(const double *xh, const double *xl, const double *yh, const double *yl, size_t n)
{
    return wide_has_fma() ? dot_fma(xh, xl, yh, yl, n) : dot(xh, xl, yh, yl, n);
}

void wide_tidy(double *hi, double *lo, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const dd s = dd_two_sum(hi[k], lo[k]);
        hi[k] = s.hi;
        lo[k] = s.lo;
    }
}

void wide_gather(double *yh, double *yl, dd p, const double *xh, const double *xl, size_t n,
                 size_t terms)
{
    if (terms % RUN == RUN - 1) wide_tidy(yh, yl, n);
    if (wide_has_fma())
        gather_fma(yh, yl, p, xh, xl, n);
    else
        gather(yh, yl, p, xh, xl, n);
}

static dd get(const double *hi, const double *lo, size_t k)
{
    return (dd){hi[k], lo[k]};
}

static void set(double *hi, double *lo, size_t k, dd x)
{
    hi[k] = x.hi;
    lo[k] = x.lo;
}

void wide_sum_row(double *yh, double *yl, const double *xh, const double *xl, size_t n)
{
    for (size_t k = 0; k < n; k++) set(yh, yl, k, dd_add(get(yh, yl, k), get(xh, xl, k)));
}

void wide_div_row(double *hi, double *lo, double by, size_t n)
{
    for (size_t k = 0; k < n; k++) set(hi, lo, k, dd_div_d(get(hi, lo, k), by));
}

/* ---- norms ------------------------------------------------------------------------------------ */

void wide_offset(double *hi, double *lo, const pare_weight *offset, size_t n)
{
    for (size_t k = 0; pare_has(offset) && k < n; k++)
        set(hi, lo, k, dd_add_d(get(hi, lo, k), pare_weight_at(offset, k)));
}

void wide_centre(double *hi, double *lo, size_t n)
{
    dd s = dd_of(0);
    for (size_t k = 0; k < n; k++) s = dd_add(s, get(hi, lo, k));
    const dd mean = dd_div_d(s, (double)n);
    for (size_t k = 0; k < n; k++) set(hi, lo, k, dd_sub(get(hi, lo, k), mean));
}

void wide_divide(double *hi, double *lo, const pare_norm *norm, size_t n)
{
    const dd s = wide_dot(hi, lo, hi, lo, n);
    const dd mean = dd_div_d(dd_add_d(s, norm->shift), norm->divisor);
    const dd root = dd_sqrt(dd_add_d(mean, norm->eps));
    for (size_t k = 0; k < n; k++) /* zero stays zero */
        set(hi, lo, k, root.hi > 0 ? dd_div(get(hi, lo, k), root) : dd_of(0));
}

void wide_batch(double *hi, double *lo, const pare_norm *norm, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const dd root = dd_sqrt(dd_two_sum(pare_weight_at(&norm->var, k), norm->eps));
        const dd x = dd_add_d(get(hi, lo, k), -pare_weight_at(&norm->mean, k));
        set(hi, lo, k, dd_div(x, root));
    }
}

void wide_affine(double *hi, double *lo, const pare_norm *norm, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        dd x = get(hi, lo, k);
        if (pare_has(&norm->gain)) x = dd_mul_d(x, pare_weight_at(&norm->gain, k));
        if (pare_has(&norm->bias)) x = dd_add_d(x, pare_weight_at(&norm->bias, k));
        set(hi, lo, k, x);
    }
}
