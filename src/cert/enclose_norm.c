/* enclose_norm.c - layer, rms, batch and mean norms.
 *
 * Layer and rms divide by the root of a sum of squares: with D the divisor and
 * c = shift + D eps >= 0,
 *     phi(x) = x / sqrt((|x|^2 + shift) / D + eps) = sqrt(D) x / s(x),   s(x) = sqrt(|x|^2 + c).
 *
 * Lemma.  |phi(x) - phi(y)| <= sqrt(D) |x - y| / sqrt(s(x) s(y)).
 * Proof.  Put X = (x, sqrt c), Y = (y, sqrt c): |X| = s(x), |X - Y| = |x - y|. Then
 *     |X/|X| - Y/|Y||^2 = (2 |X||Y| - 2 X.Y) / (|X||Y|) <= |X - Y|^2 / (|X||Y|)
 * as 2 |X||Y| <= |X|^2 + |Y|^2; and phi is sqrt(D) times the first entries of X/|X|.  []
 * Also |phi| < sqrt(D), so nothing moves by more than 2 sqrt(D).
 *
 * Local rounding. Centring (a projection, so distances do not grow): the mean is off by
 * gamma_{d+1} |x|_2 / sqrt(d), the row with the subtraction by gamma_{d+2} |x|_2. Then
 * s^2 / D is a sum of positive terms, one root, one division, gain: each entry gets a factor
 * within 1 -+ theta, theta = gamma_{d+12}, plus tiny (d + D + 8) / s^2 for squares that underflow,
 * which no longer is small when s^2 comes near the smallest numbers of the engine.
 *
 * In double-double, v = 2^-53: centring 3 + 3 + 3 v^2; the root half of 9 (sum) + 2 + 3 + 2 v^2 and
 * 25/8 of its own, the division 15: below 27 v^2, two units; gain and bias 4 v^2; batch norms 2 + 4
 * + 15 + 4 v^2. */
#include "linalg/bounds.h"
#include "enclose.h"

typedef struct norm_parts { /* constants of one norm, from above */
    const pare_norm *n;
    size_t d;
    bool wide;
    double gain, bias2, offset2; /* max|gain| (1 when absent), |bias|_2, |offset|_2 */
    double scale, mean2, least;  /* batch: max|gain / sqrt(var + eps)|, |mean|_2, min(var + eps) */
} norm_parts;

static double fro(const pare_weight *w)
{
    return pare_has(w) ? pare_norm_fro(w).v : 0;
}

static norm_parts parts_of(const pare_norm *n, const flow *x)
{
    const size_t d = x->x.cols;
    norm_parts p = {.n = n, .d = d, .wide = x->wide};
    p.bias2 = fro(&n->bias);
    p.offset2 = fro(&n->offset);
    p.gain = pare_has(&n->gain) ? pare_norm_max(&n->gain).v : 1;
    if (n->kind != PARE_NORM_BATCH) return p;
    p.mean2 = fro(&n->mean);
    p.least = INFINITY;
    for (size_t k = 0; k < d; k++) {
        const double v = pare_weight_at(&n->var, k) + n->eps; /* both >= 0 for a checked model */
        const double g = pare_has(&n->gain) ? fabs(pare_weight_at(&n->gain, k)) : 1;
        const double low = down(v);
        if (!(low > 0)) p.least = 0;
        if (low < p.least) p.least = low;
        p.scale = up_max(p.scale, up_div(g, down(sqrt(low))));
    }
    return p;
}

/* ---- midpoints; in a wide flow the same steps are in wide_rows.c ------------------------------
 */

static void add_offset(double *x, const norm_parts *p)
{
    if (!pare_has(&p->n->offset)) return;
    for (size_t k = 0; k < p->d; k++) x[k] += pare_weight_at(&p->n->offset, k);
}

static void centre(double *x, size_t d)
{
    double s = 0;
    for (size_t k = 0; k < d; k++) s += x[k];
    const double mean = s / (double)d;
    for (size_t k = 0; k < d; k++) x[k] -= mean;
}

static void divide(double *x, const norm_parts *p)
{
    double s = 0;
    for (size_t k = 0; k < p->d; k++) s += x[k] * x[k];
    const double root = sqrt((s + p->n->shift) / p->n->divisor + p->n->eps);
    for (size_t k = 0; k < p->d; k++) x[k] = root > 0 ? x[k] / root : 0; /* zero stays zero */
}

static void batch(double *x, const norm_parts *p)
{
    for (size_t k = 0; k < p->d; k++) {
        const double v = pare_weight_at(&p->n->var, k) + p->n->eps;
        x[k] = (x[k] - pare_weight_at(&p->n->mean, k)) / sqrt(v);
    }
}

static void gain_and_bias(double *x, const norm_parts *p)
{
    for (size_t k = 0; k < p->d; k++) {
        if (pare_has(&p->n->gain)) x[k] *= pare_weight_at(&p->n->gain, k);
        if (pare_has(&p->n->bias)) x[k] += pare_weight_at(&p->n->bias, k);
    }
}

/* ---- radii ---------------------------------------------------------------------------------- */

/* x + offset; `norm` is |x| before. */
static radii after_offset(const norm_parts *p, double norm, radii r)
{
    if (!pare_has(&p->n->offset)) return r;
    radii y;
    for (size_t e = 0; e < ENGINES; e++) {
        const engine *const g = enclose_engine(p->wide, e);
        const double size = up_add(reach(norm, r, e), p->offset2);
        const double local =
            up_fma(roundings(g, 0, 2, 1), size, up_mul(g->tiny, up_sqrt((double)p->d)));
        y.r[e] = in_range(g, size, up_add(r.r[e], local));
    }
    return y;
}

static radii after_centring(const norm_parts *p, double norm, radii r)
{
    radii y;
    for (size_t e = 0; e < ENGINES; e++) {
        const engine *const g = enclose_engine(p->wide, e);
        const double size = reach(norm, r, e);
        const double under = up_mul(g->tiny, up_mul(2, up_sqrt((double)p->d)));
        const double local = up_fma(roundings(g, p->d, 3, 1), size, under);
        y.r[e] = in_range(g, up_mul(size, up_sqrt((double)p->d)), up_add(r.r[e], local));
    }
    return y;
}

/* x sqrt(D) / s(x) for a midpoint with low <= |x| <= high. *size: bound on |phi| of all points. */
static double root_radius(const norm_parts *p, double low, double high, radii r, size_t e,
                          double *size)
{
    const engine *const g = enclose_engine(p->wide, e);
    const double d = (double)p->d, div = p->n->divisor, top = up_sqrt(div);
    const double c = down(down(div * p->n->eps) + p->n->shift);
    const double exact = down_sub(low, r.r[0]), own = down_sub(exact, r.r[e]);
    const double s2 = down(down(own * own) + c); /* the smallest s^2 of the points */
    const double s_own = down(sqrt(s2)), s_exact = down(sqrt(down(down(exact * exact) + c)));
    const double far = reach(high, r, e);
    *size = up_min(top, up_mul(top, up_div(far, s_own)));
    const double lost = up_div(up_mul(g->tiny, up_add(up_add(d, div), 8)), s2);
    const double theta = up_add(roundings(g, p->d, 12, 2), up_mul(2, lost));
    if (!(theta < 0.01) || !(up_mul(far, far) <= g->big) || !(up_div(up_add(div, 1), s2) <= g->big))
        return INFINITY;
    const double between = down(sqrt(down(s_exact * s_own)));
    const double move = up_min(up_mul(top, up_div(r.r[e], between)), up_mul(2, top));
    return up_add(move, up_fma(theta, *size, up_mul(g->tiny, up_mul(2, up_sqrt(d)))));
}

/* y gain + bias for points of norm <= size. */
static double affine_radius(const norm_parts *p, double size, double r, size_t e)
{
    const engine *const g = enclose_engine(p->wide, e);
    const double terms = up_fma(p->gain, size, p->bias2);
    const double under = up_mul(g->tiny, up_fma(4, up_sqrt((double)p->d), up_add(size, p->gain)));
    if (!pare_has(&p->n->gain) && !pare_has(&p->n->bias)) return r;
    const double local = up_fma(roundings(g, 0, 5, 1), up_mul(2, terms), under);
    return in_range(g, up_max(terms, p->gain), up_fma(p->gain, r, local));
}

/* (x - mean) gain / sqrt(var + eps) + bias, also when it is folded into x a + b: a sum of three
 * products of at most 12 roundings each. */
static double batch_radius(const norm_parts *p, double norm, radii r, size_t e)
{
    const engine *const g = enclose_engine(p->wide, e);
    const double size = up_add(reach(norm, r, e), p->mean2);
    const double terms = up_add(up_fma(p->scale, size, p->bias2), size);
    if (!(p->least > g->tiny / g->u) || !(up_div(1, p->least) <= g->big)) return INFINITY;
    const double more = up_add(up_add(p->gain, p->scale), size);
    const double under = up_mul(g->tiny, up_mul(8, up_add(up_sqrt((double)p->d), more)));
    const double local = up_fma(roundings(g, 0, 16, 2), up_fma(p->scale, size, p->bias2), under);
    return in_range(g, up_max(terms, p->gain), up_fma(p->scale, r.r[e], local));
}

typedef struct norm_job {
    flow *x;
    norm_parts p;
} norm_job;

typedef enum step { STEP_OFFSET, STEP_CENTRE, STEP_DIVIDE, STEP_BATCH, STEP_AFFINE } step;

static void move_wide(double *hi, double *lo, const norm_parts *p, step s)
{
    switch (s) {
    case STEP_OFFSET:
        wide_offset(hi, lo, &p->n->offset, p->d);
        break;
    case STEP_CENTRE:
        wide_centre(hi, lo, p->d);
        break;
    case STEP_DIVIDE:
        wide_divide(hi, lo, p->n, p->d);
        break;
    case STEP_BATCH:
        wide_batch(hi, lo, p->n, p->d);
        break;
    case STEP_AFFINE:
        wide_affine(hi, lo, p->n, p->d);
        break;
    }
}

/* One step of the midpoint of row i. */
static void move(const norm_job *j, size_t i, step s)
{
    const norm_parts *const p = &j->p;
    double *const x = pare_row_mut(&j->x->x, i);
    if (p->wide) {
        move_wide(x, pare_row_mut(&j->x->lo, i), p, s);
        return;
    }
    switch (s) {
    case STEP_OFFSET:
        add_offset(x, p);
        break;
    case STEP_CENTRE:
        centre(x, p->d);
        break;
    case STEP_DIVIDE:
        divide(x, p);
        break;
    case STEP_BATCH:
        batch(x, p);
        break;
    case STEP_AFFINE:
        gain_and_bias(x, p);
        break;
    }
}

static void norm_row(void *ctx, size_t i)
{
    const norm_job *const j = ctx;
    const norm_parts *const p = &j->p;
    const pare_norm_kind kind = p->n->kind;
    radii r = flow_radii(j->x, i), y;
    double norm = flow_norm(j->x, i);
    if (kind == PARE_NORM_BATCH) {
        for (size_t e = 0; e < ENGINES; e++) y.r[e] = batch_radius(p, norm, r, e);
        move(j, i, STEP_BATCH);
        move(j, i, STEP_AFFINE);
        flow_set(j->x, i, y);
        return;
    }
    r = after_offset(p, norm, r);
    move(j, i, STEP_OFFSET);
    if (kind == PARE_NORM_LAYER || kind == PARE_NORM_MEAN) {
        r = after_centring(p, flow_norm(j->x, i), r);
        move(j, i, STEP_CENTRE);
    }
    norm = flow_norm(j->x, i);
    const bool divides = kind != PARE_NORM_MEAN;
    const double low = flow_norm_down(j->x, i);
    for (size_t e = 0; e < ENGINES; e++) {
        double size = reach(norm, r, e);
        y.r[e] = divides ? root_radius(p, low, norm, r, e, &size) : r.r[e];
        y.r[e] = affine_radius(p, size, y.r[e], e);
    }
    if (divides) move(j, i, STEP_DIVIDE);
    move(j, i, STEP_AFFINE);
    flow_set(j->x, i, y);
}

pare_status enclose_norm(flow *x, const enclose_ctx *c, const pare_norm *n, pare_err *err)
{
    (void)err;
    if (n->kind == PARE_NORM_NONE) return PARE_OK;
    norm_job j = {x, parts_of(n, x)};
    enclose_rows(c->exec, x->x.rows, norm_row, &j);
    return PARE_OK;
}
