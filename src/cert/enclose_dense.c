/* enclose_dense.c - maps y = W x + b, sums, skips, and the euclidean norms they need.
 *
 * Exact map:      |W x + b - (W x' + b)| <= |W|_2 |x - x'|.
 * Local rounding: an entry is a sum of in + 1 terms in any order,
 *                     |fl_o - y_o| <= gamma_{in+2} (sum_k |W_ok| |x_k| + |b_o|) + (in + 2) tiny,
 *                 and as | |W| |x| |_2 <= |W|_F |x|_2 the row is off by at most
 *                     gamma_{in+2} (|W|_F |x|_2 + |b|_2) + sqrt(out) (in + 2) tiny.
 * An engine that rounds W and b to its own type first adds one factor (1 + d) to each term, and
 * tiny per entry where that underflows: at most tiny sqrt(in) |x|_2 per output. */
#include "linalg/bounds.h"
#include "enclose.h"

/* What a square that underflows is off by; 2^-1074 would do, and cost 150 cycles each time. */
static const double lost = 0x1p-1022;

static double square_up(double s, size_t n)
{
    const double g = gamma_of(n + 1, PARE_UNIT_F64);
    return up_add(up_mul(s, up_add(1, g)), up_mul((double)n, lost));
}

double enclose_norm_up(const double *x, size_t n)
{
    return up_sqrt(square_up(pare_squares(x, n), n));
}

double enclose_norm_down(const double *x, size_t n)
{
    const double s = pare_squares(x, n);
    if (!(s <= DBL_MAX)) return 0;
    const double g = gamma_of(n + 1, PARE_UNIT_F64);
    const double rest = down_sub(s, up_add(up_mul(s, g), up_mul((double)n, lost)));
    return down(sqrt(rest));
}

double enclose_distance_up(const double *x, const double *y, size_t n)
{
    double s = 0;
    for (size_t k = 0; k < n; k++) {
        const double d = x[k] - y[k];
        s += d * d;
    }
    return up_sqrt(square_up(s, n + 2)); /* two more factors for the rounded difference, squared */
}

double enclose_max_up(const double *x, size_t n)
{
    double m = 0;
    for (size_t k = 0; k < n; k++) m = up_max(m, fabs(x[k]));
    return m;
}

const engine *enclose_engine(bool wide, size_t e)
{
    static const engine f64 = {PARE_UNIT_F64, 0x1p-1022, PARE_UNIT_F64, 0x1p1000, false, false};
    static const engine f32 = {PARE_UNIT_F32, 0x1p-126, PARE_UNIT_F64, 0x1p120, false, true};
    static const engine dd106 = {WIDE_UNIT, WIDE_TINY, WIDE_UNIT, WIDE_BIG, true, false};
    return e == 1 ? &f32 : wide ? &dd106 : &f64;
}

pare_status enclose_flow_new(flow *f, const enclose_ctx *c, size_t rows, size_t cols, pare_err *err)
{
    *f = (flow){.x = pare_mat_new(c->a, rows, cols), .wide = c->wide};
    f->lo = c->wide ? pare_mat_new(c->a, rows, cols) : (pare_mat){.rows = rows};
    for (size_t e = 0; e < ENGINES; e++) f->r[e] = pare_alloc(c->a, rows, sizeof *f->r[e]);
    if ((!f->x.v || (c->wide && !f->lo.v)) && rows * cols != 0) return pare_no_memory(err);
    return f->r[0] && f->r[1] ? PARE_OK : pare_no_memory(err);
}

/* ---- rows over the threads ------------------------------------------------------------------ */

enum { ROWS = 16 };

typedef struct row_job {
    size_t n;
    void (*fn)(void *ctx, size_t i);
    void *ctx;
} row_job;

static void row_block(void *ctx, size_t b)
{
    const row_job *const j = ctx;
    const size_t end = j->n - b * ROWS < ROWS ? j->n : (b + 1) * ROWS;
    for (size_t i = b * ROWS; i < end; i++) j->fn(j->ctx, i);
}

void enclose_rows(const pare_exec *exec, size_t n, void (*fn)(void *ctx, size_t i), void *ctx)
{
    row_job j = {n, fn, ctx};
    pare_parallel(exec, (n + ROWS - 1) / ROWS, row_block, &j);
}

/* ---- the map -------------------------------------------------------------------------------- */

/* The roundings of one map whose terms |W||x| + |b| have the norm `terms`. */
static double dense_relative(const engine *e, const dense_norms *n, double terms)
{
    const double local = roundings(e, n->in, e->narrows && n->wide ? 4 : 2, 1);
    const double most = up_max(terms, n->row2); /* W itself must be in range, whatever x is */
    return in_range(e, most, up_mul(local, terms));
}

/* Its underflows, per entry. */
static double dense_underflow(const engine *e, const dense_norms *n, double size)
{
    const bool rounds = e->narrows && n->wide;
    const double narrowing = rounds ? up_mul(up_sqrt((double)n->in), size) : 0;
    return up_mul(e->tiny, up_add((double)n->in + 2, narrowing));
}

double enclose_dense_radius(const engine *e, const dense_norms *n, double size, double r)
{
    const double terms = up_fma(n->fro, size, n->b2);
    const double relative = dense_relative(e, n, terms);
    const double under = up_mul(up_sqrt((double)n->out), dense_underflow(e, n, size));
    return up_fma(n->two, r, up_add(relative, under));
}

double enclose_entry_radius(const engine *e, const dense_norms *n, double size, double r)
{
    const double terms = up_fma(n->row2, size, n->bmax);
    const double local = up_add(dense_relative(e, n, terms), dense_underflow(e, n, size));
    return up_fma(n->row2, r, local);
}

pare_status enclose_product(pare_mat *y, pare_mat *lo, const flow *x, const pare_weight *w,
                            const pare_weight *b, const pare_exec *exec, pare_err *err)
{
    if (!x->wide) return pare_dense_f64(y, &x->x, w, b, exec, err);
    wide_mat to = {*y, *lo};
    const wide_mat from = {x->x, x->lo};
    return wide_dense(&to, &from, w, b, exec, err);
}

pare_status enclose_dense(flow *y, const enclose_ctx *c, const flow *x, const pare_weight *w,
                          const pare_weight *b, const dense_norms *n, pare_err *err)
{
    pare_status st = enclose_flow_new(y, c, x->x.rows, w->rows, err);
    if (st == PARE_OK) st = enclose_product(&y->x, &y->lo, x, w, b, c->exec, err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < x->x.rows; i++) {
        const radii r = flow_radii(x, i);
        const double norm = flow_norm(x, i);
        for (size_t e = 0; e < ENGINES; e++)
            y->r[e][i] =
                enclose_dense_radius(enclose_engine(c->wide, e), n, reach(norm, r, e), r.r[e]);
    }
    return PARE_OK;
}

/* ---- sums and skips ------------------------------------------------------------------------- */

/* fl(a + b) = (a + b)(1 + d): the row is off by u (|a| + |b|); sums do not underflow. */
void enclose_sum(flow *y, const flow *x)
{
    const size_t d = y->x.cols;
    for (size_t i = 0; i < y->x.rows; i++) {
        double *const to = pare_row_mut(&y->x, i);
        const double *const from = pare_row(&x->x, i);
        const radii ry = flow_radii(y, i), rx = flow_radii(x, i);
        const double ny = flow_norm(y, i), nx = flow_norm(x, i);
        if (y->wide)
            wide_sum_row(to, pare_row_mut(&y->lo, i), from, pare_row(&x->lo, i), d);
        else
            for (size_t k = 0; k < d; k++) to[k] += from[k];
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const g = enclose_engine(y->wide, e);
            const double size = up_add(reach(ny, ry, e), reach(nx, rx, e));
            const double r = up_add(ry.r[e], rx.r[e]);
            y->r[e][i] = in_range(g, size, up_fma(g->u, size, r));
        }
    }
}

/* w_k x_k: the largest |w_k| moves, two roundings (one of them w's own). */
static pare_status diagonal(flow *y, const enclose_ctx *c, const flow *x, const pare_weight *w,
                            pare_err *err)
{
    const pare_status st = enclose_flow_new(y, c, x->x.rows, x->x.cols, err);
    if (st != PARE_OK) return st;
    const size_t d = x->x.cols;
    const double most = pare_norm_max(w).v;
    for (size_t i = 0; i < x->x.rows; i++) {
        const radii r = flow_radii(x, i);
        const double norm = flow_norm(x, i);
        for (size_t k = 0; k < d; k++) {
            const double by = pare_weight_at(w, k);
            if (x->wide)
                flow_put(y, i, k, dd_mul_d(flow_at(x, i, k), by));
            else
                pare_row_mut(&y->x, i)[k] = by * pare_row(&x->x, i)[k];
        }
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const g = enclose_engine(c->wide, e);
            const double at = reach(norm, r, e), size = up_mul(most, at);
            const double local = up_mul(roundings(g, 0, 2, 1), size);
            const double under = up_mul(g->tiny, up_add(up_sqrt((double)d), at));
            const double move = up_fma(most, r.r[e], up_add(local, under));
            y->r[e][i] = in_range(g, up_max(size, most), move);
        }
    }
    return PARE_OK;
}

pare_status enclose_skip(flow *y, const enclose_ctx *c, const flow *x, const pare_skip *skip,
                         const dense_norms *n, pare_err *err)
{
    flow t;
    pare_status st = PARE_OK;
    switch (skip->kind) {
    case PARE_SKIP_NONE:
        return PARE_OK;
    case PARE_SKIP_IDENTITY:
        enclose_sum(y, x);
        return PARE_OK;
    case PARE_SKIP_DIAGONAL:
        st = diagonal(&t, c, x, &skip->w, err);
        break;
    case PARE_SKIP_DENSE:
        st = enclose_dense(&t, c, x, &skip->w, NULL, n, err);
        break;
    }
    if (st == PARE_OK) enclose_sum(y, &t);
    return st;
}
