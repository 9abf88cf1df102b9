/* lower_bound.c - a lower bound on the distance from a network to EVERY one-layer network of
 * softmax heads and an identity skip.
 *
 * Two tokens x1 u, x2 u along one direction u, no biases. A head whose scores are b x_i x_j along u
 * weighs the own token by p = sigmoid(b x1 (x1 - x2)), so any number of heads gives, in every entry
 * of the output,
 *     out_1 = x1 u + a x2 + (x1 - x2) F(x1 (x1 - x2)),   a = sum v,  F(t) = sum v sigmoid(b t),
 * and F(t) + F(-t) = a. At points with x1 (x1 - x2) = +t or -t the output is thus x1 u + a A + F(t)
 * B with (A, B) = (x2, x1 - x2) or (x1, x2 - x1): two unknown numbers. Let y be f's output minus
 * x1 u. Of two such points, for every F(t),
 *     max error >= |A' - a B'|,  A' = (B_j y_i - B_i y_j) / (|B_i| + |B_j|),
 *                                B' = (B_j A_i - B_i A_j) / (|B_i| + |B_j|);
 * where x1 = x2 the output is x1 u + a x1, and one point does: A' = y, B' = x1. Of two such pairs
 * P, Q, for every a (weak duality: a signed measure on four points) max error >= |A'_P B'_Q - A'_Q
 * B'_P| / (|B'_P| + |B'_Q|). The pairs are searched in doubles on a grid; what they prove is
 * computed in intervals.
 *
 * depth_lower_bound: f of width 1, one head a layer, with x2 = x1 - t / x1 as the real number it
 * is. A network whose weights are those of f replicated (W kron J_k / k) is the same function of
 * replicated inputs: the bound holds for it as well, while its entries fall as 1 / k. So max-entry
 * smallness alone implies nothing (docs/errata.md).
 * depth_lower_model: f a stored model of any width and number of heads, u all ones, on a grid whose
 * points are doubles; enclosures of its outputs are what y is. */
#include "cert/prove.h"
#include "linalg/bounds.h"
#include "model/model_facts.h"
#include "depth_bounds.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- intervals ------------------------------------------------------------------------------- */

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

/* Around four numbers; where one is no number (0 times inf), everything. */
static iv hull(double p, double q, double r, double s)
{
    if (isnan(p) || isnan(q) || isnan(r) || isnan(s)) return (iv){-INFINITY, INFINITY};
    return outward(fmin(fmin(p, q), fmin(r, s)), fmax(fmax(p, q), fmax(r, s)));
}

static iv iv_mul(iv a, iv b)
{
    return hull(a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi);
}

static iv iv_div(iv a, iv b)
{
    if (!(b.lo > 0 || b.hi < 0)) return (iv){-INFINITY, INFINITY};
    return hull(a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi);
}

static iv iv_abs(iv a)
{
    const double most = fmax(fabs(a.lo), fabs(a.hi));
    const bool through = a.lo <= 0 && a.hi >= 0;
    return (iv){through ? 0 : fmin(fabs(a.lo), fabs(a.hi)), most};
}

/* 1 / (1 + e^-x), every operation outwards */
static iv iv_sigmoid(iv a)
{
    const double most = nextafter(1 + pare_exp_up(-a.lo), INFINITY);
    const double least = fmax(1, nextafter(1 + pare_exp_down(-a.hi), 0));
    return (iv){fmax(0, nextafter(1 / most, 0)), fmin(1, nextafter(1 / least, INFINITY))};
}

/* ---- the network ----------------------------------------------------------------------------- */

typedef struct net {
    const double (*layers)[2];
    size_t n;
} net;

/* f's first output minus x1. */
static iv net_output(const net *f, iv x1, iv x2)
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

/* ---- four points ----------------------------------------------------------------------------- */

/* |error| >= |y - a A - F(t) B| for the a and F of every one-layer network. */
typedef struct point {
    iv a, b, y;
    uint64_t t; /* points of one t share F(t), and stand together; 0: b is 0, the tokens equal */
} point;

typedef struct points {
    size_t n, capacity;
    point *at;
} points;

/* Two points of one t, or one whose tokens are equal. */
typedef struct pair {
    const point *i, *j; /* j NULL: i alone */
    double a, b;        /* A', B' as estimates */
} pair;

static double midpoint(iv x)
{
    return x.lo / 2 + x.hi / 2;
}

static pair pair_of(const point *i, const point *j)
{
    if (!j) return (pair){i, NULL, midpoint(i->y), midpoint(i->a)};
    const double bi = midpoint(i->b), bj = midpoint(j->b), size = fabs(bi) + fabs(bj);
    return (pair){i, j, (bj * midpoint(i->y) - bi * midpoint(j->y)) / size,
                  (bj * midpoint(i->a) - bi * midpoint(j->a)) / size};
}

static void take_worse(pair *worst, double *most, pair p, double a)
{
    const double e = fabs(p.a - a * p.b);
    if (e > *most) *most = e, *worst = p;
}

/* The pair with the largest |A' - a B'|. */
static pair worst_at(const points *p, double a)
{
    pair worst = {0};
    double most = -1;
    for (size_t i = 0; i < p->n; i++) {
        if (p->at[i].t == 0) take_worse(&worst, &most, pair_of(&p->at[i], NULL), a);
        for (size_t j = i; p->at[i].t != 0 && j-- > 0 && p->at[j].t == p->at[i].t;)
            take_worse(&worst, &most, pair_of(&p->at[i], &p->at[j]), a);
    }
    return worst;
}

/* A', B' in intervals. */
static void prove_pair(const pair *p, iv *a, iv *b)
{
    const point *const i = p->i, *const j = p->j;
    *a = i->y;
    *b = i->a;
    if (!j) return;
    const iv size = iv_add(iv_abs(i->b), iv_abs(j->b));
    *a = iv_div(iv_sub(iv_mul(j->b, i->y), iv_mul(i->b, j->y)), size);
    *b = iv_div(iv_sub(iv_mul(j->b, i->a), iv_mul(i->b, j->a)), size);
}

static double prove_pairs(const pair *p, const pair *q)
{
    iv ap, bp, aq, bq;
    if (!p->i || !q->i) return 0;
    prove_pair(p, &ap, &bp);
    prove_pair(q, &aq, &bq);
    const iv top = iv_abs(iv_sub(iv_mul(ap, bq), iv_mul(aq, bp)));
    const iv below = iv_add(iv_abs(bp), iv_abs(bq));
    const double lb = below.hi > 0 ? nextafter(top.lo / below.hi, 0) : 0;
    return lb > 0 && isfinite(lb) ? lb : 0;
}

/* |A' - a B'| is convex in a: the slope of the worst pair says on which side the least is. With a =
 * 0 no error is above max |y|, so the least has |a| <= 2 max |y| / x1 for equal tokens x1. */
static double least_error(const points *p)
{
    pair left = {0}, right = {0};
    double most = 0, equal = 0;
    for (size_t i = 0; i < p->n; i++) {
        most = fmax(most, fabs(midpoint(p->at[i].y)));
        if (p->at[i].t == 0) equal = fmax(equal, fabs(midpoint(p->at[i].a)));
    }
    if (!(most > 0) || !(equal > 0) || !isfinite(most / equal)) return 0;
    double lo = -4 * most / equal, hi = -lo;
    for (size_t step = 0; step < 40; step++) {
        const double a = lo / 2 + hi / 2;
        const pair p1 = worst_at(p, a);
        const bool falls = (p1.a - a * p1.b) * p1.b > 0; /* |.| falls as a grows */
        if (falls)
            lo = a, left = p1;
        else
            hi = a, right = p1;
    }
    return prove_pairs(&left, &right);
}

/* ---- width 1 --------------------------------------------------------------------------------- */

/* |x2| <= box for the x2 that is meant, x1 - t / x1: |x1^2 - t| <= box |x1|. On the edge only where
 * all of it is exact. */
static bool is_inside(double x1, double t, double box)
{
    const double square = x1 * x1, edge = box * fabs(x1), off = square - t;
    if (fabs(off) < edge * (1 - 1e-12)) return true;
    const bool exact = fma(x1, x1, -square) == 0 && fma(box, fabs(x1), -edge) == 0 &&
                       off + t == square && square - off == t;
    return exact && fabs(off) <= edge;
}

pare_status depth_lower_bound(depth_lower *out, const double (*layers)[2], size_t nlayers,
                              double box, size_t grid, pare_err *err)
{
    const net f = {layers, nlayers};
    points p = {0};
    *out = (depth_lower){0};
    if (!(box > 0) || !isfinite(box) || grid < 2 || nlayers == 0) return PARE_OK;
    p.capacity = 1 + 4 * grid * 2 * (2 * grid + 1);
    p.at = calloc(p.capacity, sizeof *p.at);
    if (!p.at) return pare_no_memory(err);
    const iv edge = iv_of(box);
    p.at[p.n++] = (point){edge, iv_of(0), net_output(&f, edge, edge), 0};
    for (size_t k = 1; k < 4 * grid; k++)
        for (size_t i = 0; i < 2 * (2 * grid + 1); i++) { /* both signs, all points of the grid */
            const double size = 2 * box * box * (double)k / (double)(4 * grid);
            const double t = i > 2 * grid ? -size : size;
            const double x1 = box * ((double)(i % (2 * grid + 1)) / (double)grid - 1);
            if (x1 == 0 || !is_inside(x1, t, box)) continue;
            const iv one = iv_of(x1), d = iv_div(iv_of(t), one), two = iv_sub(one, d);
            PARE_ASSERT(p.n < p.capacity);
            p.at[p.n++] = (point){t > 0 ? two : one, t > 0 ? d : iv_sub(iv_of(0), d),
                                  net_output(&f, one, two), k};
        }
    out->lb = least_error(&p);
    free(p.at);
    return PARE_OK;
}

/* ---- a stored model -------------------------------------------------------------------------- */

enum { GRID = 12, WIDEST = 64, DEEPEST = 64 };

static bool is_zero(const pare_weight *w)
{
    return !pare_has(w) || pare_norm_max(w).v == 0;
}

/* Key biases add the same number to all scores of a query: softmax does not see them. */
static bool bias_free(const pare_model *m)
{
    for (size_t l = 0; l < m->nblocks; l++) {
        const pare_attn *const at = &m->blocks[l].attn;
        if (!is_zero(&at->bq) || !is_zero(&at->bv) || !is_zero(&at->bo)) return false;
    }
    return true;
}

/* Attention over all tokens and identity skips, nothing in front and nothing behind: exactly the
 * nets of the lemma above. The stream is the given vectors as they are (no embedding, positions,
 * map or norm), and the output is the stream (no norm, pooling, dense layer, activation,
 * classifier or normalization). Every part of a pare_model that changes its function is named here or in
 * of_heads, in_the_class, bias_free; a new one must be. */
static bool is_bare(const pare_model *m)
{
    const pare_embedding *const s = &m->embedding;
    const pare_output_head *const t = &m->head;
    if (s->ids || pare_has(&s->table) || s->pos.kind != PARE_POS_NONE || pare_has(&s->pos.table) ||
        pare_has(&s->map.w) || pare_has(&s->map.b) || s->norm.kind != PARE_NORM_NONE)
        return false;
    if (t->norm.kind != PARE_NORM_NONE || t->pool != PARE_POOL_NONE || pare_has(&t->dense.w) ||
        pare_has(&t->dense.b) || t->act != PARE_ACT_NONE || t->tied || pare_has(&t->out.w) ||
        pare_has(&t->out.b) || t->normalize)
        return false;
    if (m->pattern.kind != PARE_FULL || (m->context > 0 && m->context < 2)) return false;
    for (size_t l = 0; l < m->nblocks; l++) {
        const pare_attn *const a = &m->blocks[l].attn;
        for (size_t h = 0; pare_attn_has_softmax(a->kind) && h < a->nheads; h++)
            if (a->heads[h].planes > 0) return false;
        if (m->blocks[l].ffn.kind != PARE_FFN_NONE || a->in_norm.kind != PARE_NORM_NONE ||
            a->out_norm.kind != PARE_NORM_NONE || a->skip.kind != PARE_SKIP_IDENTITY ||
            a->din != s->width || a->dout != s->width || pare_has(&a->freqs))
            return false;
    }
    return true;
}

static bool of_heads(const pare_model *m)
{
    for (size_t l = 0; l < m->nblocks; l++)
        if (m->blocks[l].attn.kind != PARE_ATTN_EXACT) return false;
    return true;
}

/* Uniform attention is a head whose scores are 0, and none at all has a = F = 0. Maps of the own
 * token (linear, umix, another skip) are not of the form above. */
static bool in_the_class(const pare_model *g)
{
    const pare_attn_kind k = g->blocks[0].attn.kind;
    return is_bare(g) && bias_free(g) &&
           (of_heads(g) || k == PARE_ATTN_UNIFORM || k == PARE_ATTN_ZERO);
}

bool depth_lower_applies(const pare_model *f, const pare_model *g)
{
    const size_t d = f->embedding.width;
    return f->nblocks > 1 && f->nblocks <= DEEPEST && d > 0 && d <= WIDEST && is_bare(f) &&
           of_heads(f) && bias_free(f) && g->nblocks == 1 && g->embedding.width == d &&
           in_the_class(g);
}

/* A point of the grid: tokens i h and j h in every entry. i > 0: without biases f(-x) = -f(x), so
 * the others say the same. */
typedef struct spot {
    int i, j;
    uint64_t t; /* |i (i - j)| */
} spot;

static int by_t(const void *x, const void *y)
{
    const spot *const a = x, *const b = y;
    if (a->t != b->t) return a->t < b->t ? -1 : 1;
    return a->i != b->i ? a->i - b->i : a->j - b->j;
}

static size_t spots_within(spot *out, double h, double diam)
{
    size_t n = 0;
    for (int i = 1; i <= GRID; i++)
        for (int j = -GRID; j <= GRID; j++) {
            if (!(abs(i - j) * h <= diam)) continue;
            out[n++] = (spot){i, j, (uint64_t)i * (uint64_t)abs(i - j)};
        }
    qsort(out, n, sizeof *out, by_t);
    return n;
}

static pare_status enclose_spots(pare_enclosure *e, pare_arena *a, const pare_model *f,
                                 const spot *s, size_t n, double h, const pare_exec *exec,
                                 pare_err *err)
{
    const size_t d = f->embedding.width;
    double *const x = pare_alloc(a, 2 * n * d, sizeof *x);
    pare_model_norms *norms = NULL;
    if (!x) return pare_no_memory(err);
    for (size_t k = 0; k < 2 * n * d; k++) x[k] = h * (k / d % 2 ? s[k / d / 2].j : s[k / d / 2].i);
    const pare_input in = {.batch = n, .tokens = 2, .width = d, .x = x};
    const pare_exec quiet = pare_exec_silent(exec);
    const pare_status st = pare_model_norms_new(&norms, a, f, &quiet, err);
    return st ? st : pare_enclose(e, a, f, norms, &in, &quiet, err);
}

pare_status depth_lower_model(depth_lower *out, const pare_model *f, const depth_domain *d,
                              const pare_exec *exec, pare_err *err)
{
    int e2;
    const double m2 = frexp(d->phi0 / GRID, &e2), diam = d->diam0 >= 0 ? d->diam0 : 2 * d->phi0;
    const double h = ldexp(floor(ldexp(m2, 20)), e2 - 20); /* few bits: all points are doubles */
    spot s[GRID * (2 * GRID + 1)];
    point at[GRID * (2 * GRID + 1)];
    pare_enclosure e = {0};
    *out = (depth_lower){0};
    if (!(h > 0x1p-500) || !(h < 0x1p500)) return PARE_OK;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const points p = {spots_within(s, h, diam), GRID * (2 * GRID + 1), at};
    const pare_status st = enclose_spots(&e, a, f, s, p.n, h, exec, err);
    for (size_t c = 0; !st && c < e.cols; c++) {
        for (size_t k = 0; k < p.n; k++) {
            const double x1 = h * s[k].i, x2 = h * s[k].j, far = h * abs(s[k].i - s[k].j);
            const double mid = e.mid[2 * k * e.cols + c], rad = e.rad[2 * k];
            const iv y = outward(mid - rad, mid + rad);
            const iv wide = {nextafter(y.lo, -INFINITY), nextafter(y.hi, INFINITY)};
            at[k] = (point){iv_of(s[k].j < s[k].i ? x2 : x1), iv_of(far), iv_sub(wide, iv_of(x1)),
                            s[k].t};
        }
        out->lb = fmax(out->lb, least_error(&p));
    }
    pare_arena_free(a);
    return st;
}
