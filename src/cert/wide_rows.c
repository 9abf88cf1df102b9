/* wide_rows.c - sums, products and norms of rows in double-double. Sums are those of the lemma in
 * wide.h. */
#include "wide.h"

PARE_DD_INLINE void take(double *h, double *l, double *m, dd x, dd y)
{
    const dd p = dd_product(x.hi, y.hi);
    dd_take(h, l, m, p.hi, fma(x.hi, y.lo, fma(x.lo, y.hi, p.lo)));
}

PARE_DD_INLINE dd dot(const double *xh, const double *xl, const double *yh, const double *yl,
                      size_t n)
{
    double h = 0, l = 0, m = 0;
    for (size_t k = 0; k < n; k++) take(&h, &l, &m, (dd){xh[k], xl[k]}, (dd){yh[k], yl[k]});
    return dd_settle(h, l, m);
}

PARE_DD_INLINE void gather(wide_sums y, dd p, const double *xh, const double *xl, size_t n)
{
    for (size_t k = 0; k < n; k++) take(&y.h[k], &y.l[k], &y.m[k], p, (dd){xh[k], xl[k]});
}

PARE_DD_FMA static dd dot_fma(const double *xh, const double *xl, const double *yh,
                              const double *yl, size_t n)
{
    return dot(xh, xl, yh, yl, n);
}

PARE_DD_FMA static void gather_fma(wide_sums y, dd p, const double *xh, const double *xl, size_t n)
{
    gather(y, p, xh, xl, n);
}

dd wide_dot(const double *xh, const double *xl, const double *yh, const double *yl, size_t n)
{
    return pare_has_fma() ? dot_fma(xh, xl, yh, yl, n) : dot(xh, xl, yh, yl, n);
}

void wide_gather(wide_sums y, dd p, const double *xh, const double *xl, size_t n)
{
    if (pare_has_fma())
        gather_fma(y, p, xh, xl, n);
    else
        gather(y, p, xh, xl, n);
}

dd wide_total(const double *xh, const double *xl, size_t n)
{
    double h = 0, l = 0, m = 0;
    for (size_t k = 0; k < n; k++) dd_take(&h, &l, &m, xh[k], xl[k]);
    return dd_settle(h, l, m);
}

void wide_tidy(wide_sums y, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const dd s = dd_settle(y.h[k], y.l[k], y.m[k]);
        y.h[k] = s.hi;
        y.l[k] = s.lo;
    }
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

/* ---- norms ------------------------------------------------------------------------------------
 */

void wide_offset(double *hi, double *lo, const pare_weight *offset, size_t n)
{
    for (size_t k = 0; pare_has(offset) && k < n; k++)
        set(hi, lo, k, dd_add_d(get(hi, lo, k), pare_weight_at(offset, k)));
}

void wide_centre(double *hi, double *lo, size_t n)
{
    const dd mean = dd_div_d(wide_total(hi, lo, n), (double)n);
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
