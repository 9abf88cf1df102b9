/* pair_norm.c - norms, between two streams that move.
 *
 * Batch and mean norms are affine: distances are multiplied by the largest |gain / sqrt(var + eps)|
 * (batch), or projected (mean: no longer in the euclidean norm, at most twice in the largest
 * entry).
 *
 * Layer and rms norms are phi(x) = sqrt(D) x / s(x), s(x)^2 = |x|^2 + c, after the projection, and
 * before gain and bias; c = shift + D eps. With x = h + a, |a| <= r, low = |h| - r:
 *     |phi(x) - phi(h)| <= sqrt(D) r / sqrt(s(h) s(low))          (lemma of enclose_norm.c)
 *     entry by entry <= sqrt(D) ( |a|_max / s(low) + |h|_max r / (s(h) s(low)) ).
 *
 * The difference. With x = h + a, y = k + b (h, k the doubles of f and g),
 *     [phi(x) - phi(h)] - [phi(y) - phi(k)]
 *         = int_0^1 J(h + t a)(a - b) dt + int_0^1 [J(h + t a) - J(k + t b)] b dt,
 * J = sqrt(D) (I / s - x x^T / s^3), |J| <= sqrt(D) / s (its eigenvalues are 1/s and c/s^3).
 * Lemma. The second derivative is at most (2 / sqrt 3) sqrt(D) / s^2.
 * Proof. As a symmetric trilinear form its norm is taken at three equal unit vectors u (Banach):
 *     3 | -(x.u) / s^3 + (x.u)^3 / s^5 | = 3 (w - w^3) / s^2,  w = |x.u| / s <= 1,
 * which is largest at w = 1 / sqrt 3.  []
 * So the second integral is at most (2/sqrt 3) sqrt(D) E |b| / s^2, E the distance of the two
 * points (|h - k| at one end, at most z at the other), s over the segment between them. That
 * segment's points are no shorter than ((|h| - r_f) + (|k| - r_g) - E) / 2. The same with a in the
 * place of b, and J at g's points; the smaller one counts. */
#include "linalg/bounds.h"
#include "pair.h"
#include <string.h>

typedef struct row_view {  /* of one path, after offset and centring; doubles and what they lack */
    double low, high, max; /* |h| from below and above, largest entry */
} row_view;

typedef struct job {
    const pair_ctx *c;
    const pair *x;
    pair *y;
    const pare_norm *n;
    pare_mat mid[2]; /* offset and centered */
    double gain;     /* largest, or of a batch norm the largest factor */
    double root, shift;
} job;

static bool divides(const pare_norm *n)
{
    return n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
}

static bool centres(const pare_norm *n)
{
    return n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_MEAN;
}

/* s(x) for |x| >= length, from below. */
static double s_of(const job *j, double length)
{
    const double l = length > 0 ? length : 0;
    return down(sqrt(down(down(l * l) + j->shift)));
}

/* The row with offset and centered, as doubles; *off: how far they may be from it. */
static row_view view(job *j, size_t p, size_t i)
{
    const size_t d = j->x->h[p].cols;
    double *const m = pare_row_mut(&j->mid[p], i), mean = 0, size = 0;
    for (size_t k = 0; k < d; k++) {
        const double o = pare_has(&j->n->offset) ? pare_weight_at(&j->n->offset, k) : 0;
        m[k] = pare_row(&j->x->h[p], i)[k] + o;
        mean += m[k];
    }
    size = enclose_norm_up(m, d);
    for (size_t k = 0; centres(j->n) && k < d; k++) m[k] -= mean / (double)d;
    const double off = up_fma(gamma_of(2 * d + 8, PARE_UNIT_F64), size, 0x1p-1000);
    return (row_view){down_sub(enclose_norm_down(m, d), off), up_add(enclose_norm_up(m, d), off),
                      up_add(enclose_max_up(m, d), off)};
}

/* What centring makes of a distance. */
static dist centered(const job *j, dist r)
{
    if (!centres(j->n)) return r;
    return (dist){r.two, up_min(r.two, up_mul(2, r.max))};
}

/* How far phi moves from the doubles. */
static dist own_move(const job *j, const row_view *w, dist r)
{
    const double at = s_of(j, w->low), least = s_of(j, down_sub(w->low, r.two));
    const double between = down(sqrt(down(at * least)));
    const double two = up_min(up_div(r.two, between), 2);
    const double turn = up_div(up_mul(w->max, r.two), down(at * least));
    const double max = up_add(up_div(r.max, least), turn);
    return (dist){up_mul(j->root, two), up_mul(j->root, up_min(two, max))};
}

/* First integral: J at the points of one path. */
static dist first_order(const job *j, const row_view *w, dist r, dist v)
{
    const double least = s_of(j, down_sub(w->low, r.two)), far = up_add(w->max, r.max);
    const double two = up_div(v.two, least);
    const double turn = up_div(up_mul(far, v.two), down(least * least));
    const double max = up_add(up_div(v.max, least), turn);
    return (dist){up_mul(j->root, two), up_mul(j->root, up_min(two, max))};
}

static dist difference_move(const job *j, const row_view w[2], const dist r[2], dist v, double e)
{
    const double sum = down(down_sub(w[0].low, r[0].two) + down_sub(w[1].low, r[1].two));
    const double s = s_of(j, down_sub(sum, e) / 2);
    const double bend = up_div(up_mul(1.1547006, up_mul(j->root, e)), down(s * s));
    const dist f = dist_add(first_order(j, &w[0], r[0], v), dist_of(up_mul(bend, r[1].two)));
    const dist g = dist_add(first_order(j, &w[1], r[1], v), dist_of(up_mul(bend, r[0].two)));
    return dist_min(f, g);
}

static dist apart_move(const job *j, const row_view w[2], const dist r[2], dist z)
{
    const double f = s_of(j, down_sub(w[0].low, r[0].two));
    const double g = s_of(j, down_sub(w[1].low, r[1].two));
    return dist_of(up_mul(j->root, up_min(2, up_div(z.two, down(sqrt(down(f * g)))))));
}

static void row(void *ctx, size_t i)
{
    job *const j = ctx;
    const pair *const x = j->x;
    pair *const y = j->y;
    dist r[2], v = centered(j, x->v[i]), z = centered(j, x->z[i]);
    row_view w[2];
    for (size_t p = 0; p < pair_paths(x); p++) {
        r[p] = centered(j, x->r[p][i]);
        if (divides(j->n)) w[p] = view(j, p, i);
        y->r[p][i] = dist_mul(j->gain, divides(j->n) ? own_move(j, &w[p], r[p]) : r[p]);
    }
    if (x->one) return;
    if (divides(j->n)) {
        const double apart = row_apart(&x->h[0], &x->h[1], i).two;
        v = difference_move(j, w, r, v, up_max(apart, z.two));
        z = apart_move(j, w, r, z);
    }
    y->v[i] = dist_mul(j->gain, v);
    y->z[i] = dist_mul(j->gain, z);
}

/* max |gain|, or max |gain / sqrt(var + eps)| of a batch norm. */
static double largest_gain(const pare_norm *n, size_t d)
{
    double most = 0;
    for (size_t k = 0; k < d; k++) {
        const double g = pare_has(&n->gain) ? fabs(pare_weight_at(&n->gain, k)) : 1;
        if (n->kind != PARE_NORM_BATCH) {
            most = up_max(most, g);
            continue;
        }
        const double var = down(pare_weight_at(&n->var, k) + n->eps);
        most = up_max(most, up_div(g, down(sqrt(var))));
    }
    return most;
}

pare_status pair_norm(pair *y, const pair_ctx *c, const pair *x, const pare_norm *n, pare_err *err)
{
    const size_t rows = x->h[0].rows, d = x->h[0].cols;
    if (n->kind == PARE_NORM_NONE) {
        *y = *x;
        return PARE_OK;
    }
    pare_status st = pair_new(y, c, x, rows, d, err);
    job j = {.c = c, .x = x, .y = y, .n = n, .gain = largest_gain(n, d)};
    for (size_t p = 0; st == PARE_OK && p < pair_paths(x); p++) {
        j.mid[p] = pare_mat_new(c->a, rows, d);
        if (!j.mid[p].v && rows > 0) st = pare_no_memory(err);
    }
    if (st != PARE_OK) return st;
    j.root = up_sqrt(n->divisor);
    j.shift = down(down(n->divisor * n->eps) + n->shift);
    enclose_rows(c->exec, rows, row, &j);
    for (size_t p = 0; p < pair_paths(x); p++) {
        flow to;
        st = enclose_flow_new(&to, &c->c[p], rows, d, err);
        if (st != PARE_OK) return st;
        memcpy(to.x.v, x->h[p].v, rows * d * sizeof(double));
        st = enclose_norm(&to, &c->c[p], n, err);
        if (st != PARE_OK) return st;
        pair_take(y, p, &to);
    }
    pair_settle(y);
    return PARE_OK;
}
