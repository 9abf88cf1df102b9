/* unreachable.c - a lower bound on the distance from a network to EVERY one-layer network.
 *
 * Width 1, two tokens, no biases. A head with wq wk = b, wv = v weighs the own token by
 * p = sigmoid(b x1 (x1 - x2)), so any number of them gives
 *     out_1 = x1 + a x2 + (x1 - x2) F(x1 (x1 - x2)),   a = sum v,  F(t) = sum v sigmoid(b t),
 * and F(t) + F(-t) = a. At points with x1 (x1 - x2) = +t or -t the output is thus x1 + a A + F(t) B
 * with (A, B) = (x2, x1 - x2) or (x1, x2 - x1): two unknown numbers. Let y be f's output minus x1.
 * Of two such points, for every F(t),
 *     max error >= |A' - a B'|,  A' = (B_j y_i - B_i y_j) / (|B_i| + |B_j|),
 *                                B' = (B_j A_i - B_i A_j) / (|B_i| + |B_j|);
 * where x1 = x2 the output is x1 + a x1, and one point does: A' = y, B' = x1. Of two such pairs P,
 * Q, for every a (weak duality: a signed measure on four points) max error >= |A'_P B'_Q - A'_Q
 * B'_P| / (|B'_P| + |B'_Q|). The pairs are searched in doubles on a grid; what they prove is
 * computed in intervals, with x2 = x1 - t / x1 as the real number it is. A network whose weights
 * are those of f replicated (W kron J_k / k) is the same function of replicated inputs: the bound
 * holds for it as well, while its entries fall as 1 / k. So max-entry smallness alone implies
 * nothing (docs/errata.md). */
#include "theory.h"
#include <math.h>
#include <stdlib.h>

/* ---- intervals ---------------------------------------------------------------------------------
 */

typedef struct iv {
    double lo, hi;
} iv;

static iv outward(double lo, double hi)
{
    return (iv){nextafter(lo, -INFINITY), nextafter(hi, INFINITY)};
}

static iv iv_of(double x)
{
    return (iv){x, x};
}

static iv iv_add(iv a, iv b)
{
    return outward(a.lo + b.lo, a.hi + b.hi);
}

static iv iv_sub(iv a, iv b)
{
    return outward(a.lo - b.hi, a.hi - b.lo);
}

static iv iv_mul(iv a, iv b)
{
    const double p = a.lo * b.lo, q = a.lo * b.hi, r = a.hi * b.lo, s = a.hi * b.hi;
    return outward(fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)));
}

/* b does not hold 0 */
static iv iv_div(iv a, iv b)
{
    const double p = a.lo / b.lo, q = a.lo / b.hi, r = a.hi / b.lo, s = a.hi / b.hi;
    return outward(fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)));
}

static iv iv_abs(iv a)
{
    const double most = fmax(fabs(a.lo), fabs(a.hi));
    const bool through = a.lo <= 0 && a.hi >= 0;
    return (iv){through ? 0 : fmin(fabs(a.lo), fabs(a.hi)), most};
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* libm's exp is within 4 ulp; three roundings more. */
static iv iv_sigmoid(iv a)
{
    const double slack = 32 * PARE_UNIT_F64, least = 0x1p-1022; /* what underflows */
    return (iv){fmax(0, sigmoid(a.lo) * (1 - slack) - least),
                fmin(1, sigmoid(a.hi) * (1 + slack) + least)};
}

/* ---- the network ---------------------------------------------------------------------------- */

typedef struct net {
    const double (*layers)[2];
    size_t n;
} net;

/* f's first output minus x1. */
static double output_est(const net *f, double x1, double x2)
{
    double y1 = x1, y2 = x2;
    for (size_t l = 0; l < f->n; l++) {
        const double b = f->layers[l][0], v = f->layers[l][1], d = y1 - y2;
        const double p = sigmoid(b * y1 * d), q = sigmoid(-b * y2 * d);
        const double z1 = y1 + v * (y2 + p * d), z2 = y2 + v * (y1 - q * d);
        y1 = z1;
        y2 = z2;
    }
    return y1 - x1;
}

static iv output(const net *f, iv x1, iv x2)
{
    iv y1 = x1, y2 = x2;
    for (size_t l = 0; l < f->n; l++) {
        const iv b = iv_of(f->layers[l][0]), v = iv_of(f->layers[l][1]), d = iv_sub(y1, y2);
        const iv p = iv_sigmoid(iv_mul(iv_mul(b, y1), d));
        const iv q = iv_sigmoid(iv_mul(iv_mul(b, y2), iv_sub(y2, y1)));
        const iv z1 = iv_add(y1, iv_mul(v, iv_add(y2, iv_mul(p, d))));
        const iv z2 = iv_add(y2, iv_mul(v, iv_sub(y1, iv_mul(q, d))));
        y1 = z1;
        y2 = z2;
    }
    return iv_sub(y1, x1);
}

/* ---- the search ----------------------------------------------------------------------------- */

typedef struct point {
    double x1, t; /* x1 (x1 - x2) = t, of either sign */
    double a, b, y;
} point;

typedef struct pair {
    point i, j;
    bool single; /* i alone, with equal tokens */
    double a, b; /* A', B' */
} pair;

static point point_at(const net *f, double x1, double t)
{
    const double d = t / x1, x2 = x1 - d;
    return (point){x1, t, t > 0 ? x2 : x1, t > 0 ? d : -d, output_est(f, x1, x2)};
}

static pair pair_of(const point *i, const point *j)
{
    const double size = fabs(i->b) + fabs(j->b);
    return (pair){*i, *j, false, (j->b * i->y - i->b * j->y) / size,
                  (j->b * i->a - i->b * j->a) / size};
}

/* |x2| <= box for the x2 that is meant, x1 - t / x1: |x1^2 - t| <= box |x1|. On the edge only where
 * all of it is exact. */
static bool inside(double x1, double t, double box)
{
    const double square = x1 * x1, edge = box * fabs(x1), off = square - t;
    if (fabs(off) < edge * (1 - 1e-12)) return true;
    const bool exact = fma(x1, x1, -square) == 0 && fma(box, fabs(x1), -edge) == 0 &&
                       off + t == square && square - off == t;
    return exact && fabs(off) <= edge;
}

/* All points of the grid whose product is t or -t, within the box. */
static size_t points_of(point *out, const net *f, double t, double box, size_t grid)
{
    size_t n = 0;
    for (size_t s = 0; s < 2; s++)
        for (size_t i = 0; i <= 2 * grid; i++) {
            const double x1 = box * ((double)i / (double)grid - 1), sign = s ? -1 : 1;
            if (x1 == 0 || !inside(x1, sign * t, box)) continue;
            out[n++] = point_at(f, x1, sign * t);
        }
    return n;
}

typedef struct search {
    const net *f;
    double box;
    size_t grid;
    point *points; /* 2 (2 grid + 1) */
} search;

/* Largest |A' - a B'| over all pairs, and the pair. */
static double worst_at(const search *s, double a, pair *worst)
{
    const double y = output_est(s->f, s->box, s->box);
    double most = fabs(y - a * s->box);
    *worst = (pair){.i = {.x1 = s->box, .y = y}, .single = true, .a = y, .b = s->box};
    for (size_t k = 1; k < 4 * s->grid; k++) {
        const double t = 2 * s->box * s->box * (double)k / (double)(4 * s->grid);
        const size_t n = points_of(s->points, s->f, t, s->box, s->grid);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < i; j++) {
                const pair p = pair_of(&s->points[i], &s->points[j]);
                const double e = fabs(p.a - a * p.b);
                if (e > most) most = e, *worst = p;
            }
    }
    return most;
}

/* ---- the proof ------------------------------------------------------------------------------ */

typedef struct proven_point {
    iv a, b, y;
} proven_point;

static proven_point prove_point(const net *f, const point *p)
{
    const iv x1 = iv_of(p->x1), d = iv_div(iv_of(p->t), x1), x2 = iv_sub(x1, d);
    const iv minus = iv_sub(iv_of(0), d);
    return (proven_point){p->t > 0 ? x2 : x1, p->t > 0 ? d : minus, output(f, x1, x2)};
}

/* A', B' in intervals. */
static void prove_pair(const net *f, const pair *p, iv *a, iv *b)
{
    if (p->single) {
        *b = iv_of(p->i.x1);
        *a = output(f, *b, *b);
        return;
    }
    const proven_point i = prove_point(f, &p->i), j = prove_point(f, &p->j);
    const iv size = iv_add(iv_abs(i.b), iv_abs(j.b));
    *a = iv_div(iv_sub(iv_mul(j.b, i.y), iv_mul(i.b, j.y)), size);
    *b = iv_div(iv_sub(iv_mul(j.b, i.a), iv_mul(i.b, j.a)), size);
}

static double prove(const net *f, const pair *p, const pair *q)
{
    iv ap, bp, aq, bq;
    prove_pair(f, p, &ap, &bp);
    prove_pair(f, q, &aq, &bq);
    const iv top = iv_abs(iv_sub(iv_mul(ap, bq), iv_mul(aq, bp)));
    const iv below = iv_add(iv_abs(bp), iv_abs(bq));
    const double lb = below.hi > 0 ? nextafter(top.lo / below.hi, 0) : 0;
    return lb > 0 && isfinite(lb) ? lb : 0;
}

pare_status depth_lower_bound(depth_lower *out, const double (*layers)[2], size_t nlayers,
                              double box, size_t grid, pare_err *err)
{
    const net f = {layers, nlayers};
    search s = {&f, box, grid, NULL};
    *out = (depth_lower){0};
    if (!(box > 0) || !isfinite(box) || grid < 2 || nlayers == 0) return PARE_OK;
    s.points = calloc(2 * (2 * grid + 1), sizeof *s.points);
    if (!s.points) return pare_no_memory(err);
    /* |A' - a B'| is convex in a: the slope of the worst pair says on which side the least is */
    double lo = -1, hi = 1;
    pair left = {0}, right = {0}, p;
    for (size_t l = 0; l < nlayers; l++) hi *= 2 + fabs(layers[l][1]);
    lo = -hi;
    for (size_t step = 0; step < 40; step++) {
        const double a = lo / 2 + hi / 2;
        (void)worst_at(&s, a, &p);
        const bool falls = (p.a - a * p.b) * p.b > 0; /* |.| falls as a grows */
        if (falls)
            lo = a, left = p;
        else
            hi = a, right = p;
    }
    out->lb = prove(&f, &left, &right);
    free(s.points);
    return PARE_OK;
}
