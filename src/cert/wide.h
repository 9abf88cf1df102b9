/* wide.h - double-double arithmetic for the wide midpoints of the proof kernel.
 *
 * A dd is an unevaluated sum hi + lo with |lo| <= ulp(hi)/2, so lo is below 2^-53 |hi| and about
 * 106 bits are kept. With v = 2^-53 and all numbers between WIDE_TINY and WIDE_BIG, the operations
 * below have these relative errors ("Tight and rigorous error bounds for basic building
 * blocks of double-word arithmetic", ACM TOMS 44(2), 2017; the root: "Accurate calculation of
 * euclidean norms using double-word arithmetic", ACM TOMS 49(1), 2023; each also measured against
 * 113 bits in tests/cert/test_wide_math.c):
 *
 *     dd + double 2 v^2   dd + dd 3 v^2 + 13 v^3   dd * double 2 v^2   dd * dd 5 v^2
 *     dd / double 3 v^2   dd / dd 15 v^2 + 56 v^3  sqrt 25/8 v^2
 *
 * The kernel counts each of them as one WIDE_UNIT = 2^-102 = 16 v^2. A sum of products or numbers
 * (wide_dot, wide_gather, wide_total, wide_dense) is within one unit of the sum A of its terms'
 * sizes, however long it is:
 *
 * Lemma (sums). Each sum keeps h, l, m. A term x y with x = xh + xl, y = yh + yl becomes p + e
 * exactly (the product of the hi), and f = e + xl yh + xh yl, below 4 v |x y| and rounded with
 * 7 v^2 |x y| (xl yl, below v^2 |x y|, left out). p goes into h, what that two-sum leaves (below
 * v A) and f go into l by two-sums; what these leave (below (n + 4) v^2 A, twice) is added up in m
 * in f64, where n terms round with less than 3 (n + 4)^3 v^3 A in all. The pair made of h + l + m
 * at the end rounds once more, v^2 A. So the sum is within (9 + 3 (n + 4)^3 v) v^2 A: one unit for
 * n <= WIDE_TERMS = 2^17, and (n / WIDE_TERMS)^3 more beyond.
 *
 * Why WIDE_TINY = 2^-400: the low half of a product is exact while the product is above 2^-968, and
 * off by 2^-1074 below; divisors stay above 2^-310 (enclose_norm.c asks for it), so that even
 * divided by them it is far below 2^-400. Nothing above WIDE_BIG is claimed. */
#ifndef PARE_CERT_WIDE_H
#define PARE_CERT_WIDE_H
#include <pare/model.h>
#include <math.h>

#define WIDE_UNIT  0x1p-102
#define WIDE_TERMS ((size_t)1 << 17)
#define WIDE_TINY  0x1p-400
#define WIDE_BIG   0x1p400
/* Inlined into functions that are compiled twice, with and without the processor's fma. */
#define WIDE_INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define WIDE_FMA __attribute__((target("avx2,fma")))
static inline bool wide_has_fma(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define WIDE_FMA
static inline bool wide_has_fma(void)
{
    return false; /* fma() is whatever the compiler makes of it */
}
#endif

typedef struct dd {
    double hi, lo;
} dd;

WIDE_INLINE dd dd_of(double x)
{
    return (dd){x, 0};
}
WIDE_INLINE dd dd_neg(dd x)
{
    return (dd){-x.hi, -x.lo};
}
/* a + b exactly, for any a, b. */
WIDE_INLINE dd dd_two_sum(double a, double b)
{
    const double s = a + b, t = s - a;
    return (dd){s, (a - (s - t)) + (b - t)};
}
/* The same for |a| >= |b| (or a = 0). */
WIDE_INLINE dd dd_fast_sum(double a, double b)
{
    const double s = a + b;
    return (dd){s, b - (s - a)};
}
/* a b exactly. */
WIDE_INLINE dd dd_product(double a, double b)
{
    const double p = a * b;
    return (dd){p, fma(a, b, -p)};
}
WIDE_INLINE dd dd_add_d(dd x, double y)
{
    const dd s = dd_two_sum(x.hi, y);
    return dd_fast_sum(s.hi, x.lo + s.lo);
}
WIDE_INLINE dd dd_add(dd x, dd y)
{
    const dd s = dd_two_sum(x.hi, y.hi), t = dd_two_sum(x.lo, y.lo);
    const dd v = dd_fast_sum(s.hi, s.lo + t.hi);
    return dd_fast_sum(v.hi, t.lo + v.lo);
}
WIDE_INLINE dd dd_sub(dd x, dd y)
{
    return dd_add(x, dd_neg(y));
}
WIDE_INLINE dd dd_mul_d(dd x, double y)
{
    const dd p = dd_product(x.hi, y);
    return dd_fast_sum(p.hi, fma(x.lo, y, p.lo));
}
WIDE_INLINE dd dd_mul(dd x, dd y)
{
    const dd p = dd_product(x.hi, y.hi);
    return dd_fast_sum(p.hi, p.lo + fma(x.lo, y.hi, fma(x.hi, y.lo, x.lo * y.lo)));
}
WIDE_INLINE dd dd_div_d(dd x, double y)
{
    const double q = x.hi / y;
    const dd p = dd_product(q, y);
    return dd_fast_sum(q, ((x.hi - p.hi) - p.lo + x.lo) / y);
}
WIDE_INLINE dd dd_div(dd x, dd y)
{
    const double q = x.hi / y.hi;
    const dd p = dd_mul_d(y, q);
    return dd_fast_sum(q, ((x.hi - p.hi) + (x.lo - p.lo)) / y.hi);
}
WIDE_INLINE dd dd_sqrt(dd x)
{
    const double s = sqrt(x.hi);
    if (!(s > 0)) return dd_of(s);
    return dd_fast_sum(s, (x.lo + fma(-s, s, x.hi)) / (2 * s));
}

/* One term of the lemma. */
WIDE_INLINE void dd_take(double *h, double *l, double *m, double p, double f)
{
    const dd a = dd_two_sum(*h, p), b = dd_two_sum(*l, a.lo), c = dd_two_sum(b.hi, f);
    *h = a.hi;
    *l = c.hi;
    *m += b.lo + c.lo;
}
WIDE_INLINE dd dd_settle(double h, double l, double m)
{
    const dd s = dd_two_sum(h, l);
    return dd_two_sum(s.hi, s.lo + m);
}

/* ---- functions (wide_math.c) ---------------------------------------------------------------- */

/* Errors in units; where they come from is in wide_math.c. */
dd wide_exp(dd x);  /* 4, relative; 0 below -300; inf above 300 */
dd wide_tanh(dd x); /* 28, relative */
dd wide_erf(dd x);  /* 207, absolute */
dd wide_log(double x);
/* 4, absolute; nan for |x| > 2^30 */
void wide_sincos(dd x, dd *sine, dd *cosine);
/* Entry j of the sinusoidal position `pos` of width d: the angle pos base^(-j'/d), j' = j without
 * its last bit, is within (|ln base| + 10) WIDE_UNIT of itself. */
dd wide_wave(double base, size_t pos, size_t j, size_t d);
/* Within wide_act_units(act) WIDE_UNIT |x| + 1024 WIDE_TINY. */
dd wide_act(pare_act act, dd x);
double wide_act_units(pare_act act);

/* ---- rows (wide_rows.c): hi and lo are n numbers each ---------------------------------------- */

/* wide_act_row and wide_exp_row are in wide_math.c. */
void wide_act_row(pare_act act, double *hi, double *lo, size_t n);
void wide_exp_row(double *hi, double *lo, dd top, size_t n); /* x_k = exp(x_k - top) */
dd wide_dot(const double *xh, const double *xl, const double *yh, const double *yl, size_t n);
dd wide_total(const double *xh, const double *xl, size_t n);
/* y += p x entry by entry; y is h, l, m of the lemma, zeros at first. wide_tidy makes pairs of the
 * sums. */
typedef struct wide_sums {
    double *h, *l, *m;
} wide_sums;
void wide_gather(wide_sums y, dd p, const double *xh, const double *xl, size_t n);
void wide_tidy(wide_sums y, size_t n);
void wide_sum_row(double *yh, double *yl, const double *xh, const double *xl, size_t n);
void wide_div_row(double *hi, double *lo, double by, size_t n);
/* The steps of a norm, in place. */
void wide_offset(double *hi, double *lo, const pare_weight *offset, size_t n);
void wide_centre(double *hi, double *lo, size_t n);
void wide_divide(double *hi, double *lo, const pare_norm *norm, size_t n);
void wide_batch(double *hi, double *lo, const pare_norm *norm, size_t n);
void wide_affine(double *hi, double *lo, const pare_norm *norm, size_t n);

/* ---- the product (wide_dense.c) -------------------------------------------------------------- */

typedef struct wide_mat { /* one matrix: rows x cols twice */
    pare_mat hi, lo;
} wide_mat;
/* y (n x out) = x (n x in) w^T + b; b may be NULL or absent. Same bits for any number of threads
 * and any processor. An entry is a sum of the lemma, its last term b. */
void wide_dense(wide_mat *y, const wide_mat *x, const pare_weight *w, const pare_weight *b,
                const pare_exec *exec);
/* The same on a lower level of the processor than the best it has (tests compare the bits). */
typedef enum wide_level { WIDE_PLAIN, WIDE_AVX2, WIDE_AVX512 } wide_level;
wide_level wide_best_level(void);
void wide_dense_on(wide_level level, wide_mat *y, const wide_mat *x, const pare_weight *w,
                   const pare_weight *b, const pare_exec *exec);
#endif
