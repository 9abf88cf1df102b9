/* poly_remez.c - polynomials of least relative error for e^x on [-B, B], and proofs of their error
 * (docs/theory/depth.md "Polynomials of least relative error").
 *
 * Remez: p and E solve  p(x_k) + (-1)^k E e^(x_k) = e^(x_k)  at g + 2 points; the points move to
 * the extrema of f(x) = p(x) e^-x - 1 until these are level. The exchange breaks down where f is
 * near rounding; so the best of its polynomials, the Chebyshev interpolant and Taylor's is taken,
 * by a grid. All this is an estimate.
 *
 * The proof does not depend on it: it takes p with its coefficients and bounds |f| on [-B, B]. On a
 * cell [a, b] of width h, f lies within h^2/8 sup|f''| of the chord, so
 *
 *     |f| <= max(|f(a)|, |f(b)|) + h^2/8 sup|f''|,    f'' = (p - 2 p' + p'') e^-x =: r e^-x,
 *
 * and sup|r| over the cell is at most the sum of |r_k| (h/2)^k with r expanded at the middle. Cells
 * are halved until the second term is a hundredth of the largest value seen. Every value counts its
 * roundings: Horner's rule 2 g + 2 of them (gamma_(2g+2) sum |c_k| |x|^k), e^-x EXP_ERROR, the rest
 * by pare_ub; the expansion gamma_(4g+16) times the sum of |terms|, which is R(|middle| + h/2). */
#include "poly_remez.h"
#include "linalg/bounds.h"
#include "linalg/elementary.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum {
    POINTS = POLY_MAX_DEGREE + 2,
    PER_POINT = 32,            /* places of the grid for each point of the exchange */
    GRID = PER_POINT * POINTS, /* at most */
    ROUNDS = 30,               /* of the exchange: it converges quadratically */
    HALVINGS = 60              /* of a cell: by then it is below any spacing of doubles */
};
#define EXP_ERROR 0x1p-51 /* of pare_exp: 2 u are 2^-52 */
#define MAX_BOUND 300.0   /* e^(2 bound) must stay a double */
#define FINE      0.01    /* of the largest value: what a cell may add to its ends */

static double value(const double *c, size_t degree, double x)
{
    double s = c[degree];
    for (size_t k = degree; k-- > 0;) s = s * x + c[k];
    return s;
}

/* ---- the proof ------------------------------------------------------------------------------- */

/* sum |c_k| x^k, x >= 0, from above. */
static pare_ub size_at(const double *c, size_t degree, double x)
{
    pare_ub s = pare_ub_exact(c[degree]);
    for (size_t k = degree; k-- > 0;) s = pare_ub_fma(s, pare_ub_exact(x), pare_ub_exact(c[k]));
    return s;
}

static pare_ub exp_ub(double x)
{
    return (pare_ub){pare_exp_up(x)};
}

/* |p(x) e^-x - 1| = e^-x |p(x) - e^x|, from above. */
static pare_ub error_at(const double *c, size_t degree, double x)
{
    const double e = pare_exp(x), p = value(c, degree, x), gap = fabs(p - e);
    pare_ub error = pare_ub_of(gap);
    error = pare_ub_add(
        error, pare_ub_mul(pare_gamma(2 * degree + 2, PARE_UNIT_F64), size_at(c, degree, fabs(x))));
    error = pare_ub_add(error, pare_ub_mul(pare_ub_of(e), pare_ub_exact(EXP_ERROR)));
    return pare_ub_mul(error, exp_ub(-x));
}

typedef struct proof {
    const double *c;
    size_t degree;
    double r[POLY_MAX_DEGREE + 1];     /* p - 2 p' + p'' */
    double abs_r[POLY_MAX_DEGREE + 1]; /* the sum of |terms| of each */
    pare_ub largest;                   /* value at an end of a cell so far */
    pare_ub all;                       /* over the cells done */
} proof;

/* sup |f''| over [mid - half, mid + half]. */
static pare_ub second_derivative(const proof *w, double mid, double half)
{
    const size_t g = w->degree;
    double t[POLY_MAX_DEGREE + 1];
    memcpy(t, w->r, (g + 1) * sizeof *t);
    for (size_t k = 0; k < g; k++) /* repeated synthetic division: r expanded at mid */
        for (size_t i = g; i-- > k;) t[i] += mid * t[i + 1];
    pare_ub s = size_at(t, g, half);
    const double far = nextafter(fabs(mid) + half, INFINITY);
    /* abs_r itself is within 4 roundings of the sum of the terms' sizes: 2 more in gamma */
    s = pare_ub_add(s,
                    pare_ub_mul(pare_gamma(4 * g + 16, PARE_UNIT_F64), size_at(w->abs_r, g, far)));
    return pare_ub_mul(s, exp_ub(-nextafter(mid - half, -INFINITY)));
}

static void prove_cell(proof *w, double a, pare_ub fa, double b, pare_ub fb, int left)
{
    const double mid = a + (b - a) / 2;
    /* mid is rounded: the wider half serves for both */
    const double half = nextafter(fmax(b - mid, mid - a), INFINITY);
    pare_ub rise = pare_ub_mul(pare_ub_exact(half), pare_ub_exact(half));
    rise = pare_ub_mul(pare_ub_mul(rise, pare_ub_exact(0.5)), second_derivative(w, mid, half));
    /* A cell may add little to its ends: beside the error, and beside what the error leaves to 1,
     * where the shares of attention are lost. */
    const double largest = w->largest.v, rest = largest < 1 ? 1 - largest : 1;
    if (left == 0 || mid <= a || mid >= b || rise.v <= FINE * largest * fmax(rest, 1e-4)) {
        w->all = pare_ub_max(w->all, pare_ub_add(pare_ub_max(fa, fb), rise));
        return;
    }
    const pare_ub fm = error_at(w->c, w->degree, mid);
    w->largest = pare_ub_max(w->largest, fm);
    prove_cell(w, a, fa, mid, fm, left - 1);
    prove_cell(w, mid, fm, b, fb, left - 1);
}

pare_ub poly_relative_error(const double *c, size_t degree, double bound)
{
    PARE_ASSERT(degree <= POLY_MAX_DEGREE && bound >= 0);
    for (size_t k = 0; k <= degree; k++)
        if (!isfinite(c[k])) return pare_ub_inf();
    if (!(bound < MAX_BOUND)) return pare_ub_inf();
    const pare_ub fa = error_at(c, degree, -bound), fb = error_at(c, degree, bound);
    if (bound == 0) return fb;
    proof w = {.c = c, .degree = degree, .largest = pare_ub_max(fa, fb)};
    for (size_t k = 0; k <= degree; k++) {
        const double k1 = (double)(k + 1), first = k + 1 <= degree ? k1 * c[k + 1] : 0;
        const double second = k + 2 <= degree ? k1 * (k1 + 1) * c[k + 2] : 0;
        w.r[k] = c[k] - 2 * first + second;
        w.abs_r[k] = fabs(c[k]) + 2 * fabs(first) + fabs(second);
    }
    prove_cell(&w, -bound, fa, bound, fb, HALVINGS);
    return w.all;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* The polynomial of degree n - 1 through (t_k, y_k), as coefficients: divided differences, which
 * are then multiplied out. */
static void interpolate(double *c, const double *t, const double *y, size_t n)
{
    double d[POINTS];
    memcpy(d, y, n * sizeof *d);
    for (size_t k = 1; k < n; k++)
        for (size_t i = n; i-- > k;) d[i] = (d[i] - d[i - 1]) / (t[i] - t[i - k]);
    memset(c, 0, n * sizeof *c);
    for (size_t k = n; k-- > 0;) { /* c = c (x - t_k) + d_k */
        for (size_t i = n; i-- > 1;) c[i] = c[i - 1] - t[k] * c[i];
        c[0] = d[k] - t[k] * c[0];
    }
}

typedef struct grid {
    size_t n;
    double bound, t[GRID + 1], decay[GRID + 1]; /* t ascending from -1 to 1; e^(-bound t) */
} grid;

static double error_est(const grid *g, const double *c, size_t degree, size_t i)
{
    return value(c, degree, g->t[i]) * g->decay[i] - 1;
}

static double largest_est(const grid *g, const double *c, size_t degree)
{
    double largest = 0;
    for (size_t i = 0; i <= g->n; i++) {
        const double f = fabs(error_est(g, c, degree, i));
        if (!(f <= largest)) largest = f; /* a nan stays */
    }
    return largest;
}

/* The points move to the largest |f| between changes of sign: `need` of them; of more, the smaller
 * end is dropped. False: there are fewer. */
static bool move_points(double *t, const grid *g, const double *f, size_t need)
{
    size_t at[GRID + 1], count = 0, first = 0;
    for (size_t i = 0; i <= g->n; i++) {
        if (i == 0 || (f[i] > 0) != (f[i - 1] > 0)) at[count++] = i;
        if (fabs(f[i]) > fabs(f[at[count - 1]])) at[count - 1] = i;
    }
    while (count - first > need) {
        if (fabs(f[at[first]]) < fabs(f[at[count - 1]]))
            first++;
        else
            count--;
    }
    if (count - first < need) return false;
    for (size_t k = 0; k < need; k++) {
        const size_t i = at[first + k];
        t[k] = g->t[i];
        if (i == 0 || i == g->n) continue;
        /* |f| peaks near it: the vertex of the parabola through it and its neighbors */
        const double a = g->t[i] - g->t[i - 1], b = g->t[i + 1] - g->t[i];
        const double left = (f[i] - f[i - 1]) / a, right = (f[i + 1] - f[i]) / b;
        const double x = g->t[i] + 0.5 * (a * b) * (left / a + right / b) / (left - right);
        if (x > g->t[i - 1] && x < g->t[i + 1]) t[k] = x;
    }
    for (size_t k = 1; k < need; k++)
        if (!(t[k] > t[k - 1])) return false;
    return true;
}

typedef struct choice {
    double c[POLY_MAX_DEGREE + 1]; /* in t = x / bound */
    double est;
} choice;

static void keep_if_better(choice *best, const grid *g, const double *c, size_t degree)
{
    const double est = largest_est(g, c, degree);
    if (!(est < best->est)) return;
    best->est = est;
    memcpy(best->c, c, (degree + 1) * sizeof *c);
}

static void run_exchange(choice *best, const grid *g, size_t degree)
{
    double t[POINTS], c[POLY_MAX_DEGREE + 1], f[GRID + 1];
    for (size_t k = 0; k < degree + 2; k++) t[k] = -cos(M_PI * (double)k / (double)(degree + 1));
    for (int round = 0; round < ROUNDS; round++) {
        const double before = best->est;
        /* The system on the points t (times the bound): E from the highest divided differences of
         * both sides, then p through all points but the last. */
        double over = 0, under = 0, y[POINTS];
        for (size_t k = 0; k < degree + 2; k++) {
            double w = 1;
            for (size_t i = 0; i < degree + 2; i++)
                if (i != k) w /= 2 * (t[k] - t[i]); /* 2: they shrink as 2^-n */
            y[k] = exp(g->bound * t[k]);
            over += w * y[k];
            under += (k % 2 ? -w : w) * y[k];
        }
        const double e = over / under;
        for (size_t k = 0; k < degree + 2; k++) y[k] *= k % 2 ? 1 + e : 1 - e;
        interpolate(c, t, y, degree + 1);
        keep_if_better(best, g, c, degree);
        if (round > 1 && !(best->est < before * (1 - 1e-9))) return; /* level, or at its end */
        for (size_t i = 0; i <= g->n; i++) f[i] = error_est(g, c, degree, i);
        if (!move_points(t, g, f, degree + 2)) return;
    }
}

/* ---- results --------------------------------------------------------------------------------- */

poly_fit poly_taylor(double bound, size_t degree)
{
    poly_fit fit = {.degree = degree};
    double term = 1;
    for (size_t k = 0; k <= degree; k++) {
        if (k) term /= (double)k;
        fit.c[k] = term;
    }
    fit.error = poly_relative_error(fit.c, degree, bound);
    return fit;
}

poly_fit poly_remez(double bound, size_t degree)
{
    PARE_ASSERT(degree <= POLY_MAX_DEGREE && bound >= 0);
    if (bound == 0 || !(bound < MAX_BOUND)) return poly_taylor(bound, degree);
    grid g = {.n = PER_POINT * (degree + 2), .bound = bound};
    for (size_t i = 0; i <= g.n; i++) {
        g.t[i] = -cos(M_PI * (double)i / (double)g.n);
        g.decay[i] = exp(-bound * g.t[i]);
    }
    choice best = {.est = INFINITY};
    double t[POINTS], y[POINTS], c[POLY_MAX_DEGREE + 1];
    for (size_t k = 0; k <= degree; k++) { /* the Chebyshev interpolant */
        t[k] = -cos(M_PI * ((double)k + 0.5) / (double)(degree + 1));
        y[k] = exp(bound * t[k]);
    }
    interpolate(c, t, y, degree + 1);
    keep_if_better(&best, &g, c, degree);
    run_exchange(&best, &g, degree);
    c[0] = 1; /* Taylor's, in t */
    for (size_t k = 1; k <= degree; k++) c[k] = c[k - 1] * bound / (double)k;
    if (!(best.est < largest_est(&g, c, degree))) return poly_taylor(bound, degree);
    poly_fit fit = {.degree = degree};
    double power = 1;
    for (size_t k = 0; k <= degree; k++, power *= bound) fit.c[k] = best.c[k] / power;
    fit.error = poly_relative_error(fit.c, degree, bound);
    return fit;
}

pare_ub poly_variation(pare_ub relative)
{
    if (!(relative.v < 1)) return pare_ub_inf();
    /* 1 - e^2 from below, its root from below */
    const double rest = nextafter(1 - pare_ub_mul(relative, relative).v, 0);
    return pare_ub_div(relative, nextafter(1 + nextafter(sqrt(rest), 0), 0));
}

bool poly_least_degree(poly_fit *out, double bound, double variation, size_t most)
{
    for (size_t g = 0; g <= most && g <= POLY_MAX_DEGREE; g++) {
        const poly_fit fit = poly_remez(bound, g);
        if (g == 0 || fit.error.v < out->error.v) *out = fit;
        if (poly_variation(fit.error).v <= variation) return true;
    }
    return false;
}
