/* wide.h - sums and rows in double-double (linalg/dd.h) for the wide midpoints of the proof kernel.
 *
 * The kernel counts each operation on numbers between WIDE_TINY and WIDE_BIG as one WIDE_UNIT =
 * 2^-102 = 16 v^2, v = 2^-53. A sum of products or numbers
 * (wide_dot, wide_gather, wide_total) is within one unit of the sum A of its terms' sizes, however
 * long it is:
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
#include "linalg/dd.h"
#include <pare/model.h>

#define WIDE_UNIT  PARE_DD_UNIT
#define WIDE_TERMS ((size_t)1 << 17)
#define WIDE_TINY  0x1p-400
#define WIDE_BIG   0x1p400

/* One term of the lemma. */
PARE_DD_INLINE void dd_take(double *h, double *l, double *m, double p, double f)
{
    const dd a = dd_two_sum(*h, p), b = dd_two_sum(*l, a.lo), c = dd_two_sum(b.hi, f);
    *h = a.hi;
    *l = c.hi;
    *m += b.lo + c.lo;
}
PARE_DD_INLINE dd dd_settle(double h, double l, double m)
{
    const dd s = dd_two_sum(h, l);
    return dd_two_sum(s.hi, s.lo + m);
}

/* ---- functions (wide_math.c) ---------------------------------------------------------------- */

dd wide_exp(dd x); /* 4 units, relative; 0 below -300, which is within WIDE_TINY of it */
/* Entry j of the sinusoidal position `pos` of width d: the angle pos base^(-j'/d), j' = j without
 * its last bit, is within (4 |ln base| + 10) WIDE_UNIT pos of itself for every base > 1 and
 * pos <= 2^30; nan beyond. */
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
 * and any processor. Output o of a row is within one unit of |x|_2 |w_o|_2 + |b_o| (its lemma is in
 * wide_dense.c). */
PARE_MUST_USE pare_status wide_dense(wide_mat *y, const wide_mat *x, const pare_weight *w,
                                     const pare_weight *b, const pare_exec *exec, pare_err *err);
/* The same on a lower level of the processor than the best it has (tests compare the bits). */
typedef enum wide_level { WIDE_PLAIN, WIDE_AVX2, WIDE_AVX512 } wide_level;
wide_level wide_best_level(void);
PARE_MUST_USE pare_status wide_dense_on(wide_level level, wide_mat *y, const wide_mat *x,
                                        const pare_weight *w, const pare_weight *b,
                                        const pare_exec *exec, pare_err *err);
#endif
