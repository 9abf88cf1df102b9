/* pair_top.c - the last map of a pair: how far outputs are apart, and which classes are certain.
 *
 * With F, G the outputs at the doubles (enclosed) and w_o the row of output o,
 *     |f - g|_o <= |F - G|_o + |w_o| v + rounding,   and   <= |w_o| z.
 * Output c is the largest throughout the ball where for every other k
 *     F_c - F_k > |w_c - w_k| r_f + rounding,
 * and a row is certain when that holds in both models for the same c. */
#include "model/model_facts.h"
#include "linalg/bounds.h"
#include "pair.h"

typedef struct ends {
    const pair_ctx *c;
    const pair *x;
    const pare_weight *w; /* NULL: the rows are the outputs */
    size_t outputs;
    pare_mat y[2];
    double *off[2]; /* rounding of an entry, by row */
} ends;

static pare_status evaluate(ends *e, size_t p, pare_err *err)
{
    const pair_ctx *const c = e->c;
    const size_t rows = e->x->h[p].rows;
    e->off[p] = pare_alloc(c->a, rows, sizeof *e->off[p]);
    if (!e->off[p]) return pare_no_memory(err);
    e->y[p] = e->x->h[p];
    if (!e->w) return PARE_OK;
    e->y[p] = pare_mat_new(c->a, rows, e->outputs);
    if (!e->y[p].v) return pare_no_memory(err);
    const flow from = pair_flow(c, &e->x->h[p]);
    pare_mat none = {0};
    const pare_status st =
        enclose_product(&e->y[p], &none, &from, e->w, &c->c[p].m->head.out.b, c->exec, err);
    for (size_t i = 0; i < rows; i++)
        e->off[p][i] = enclose_entry_radius(enclose_engine(false, 0), &c->c[p].norms->out,
                                            flow_norm(&from, i), 0);
    return st;
}

/* Row c of the last map, or its difference to row k, as a lever. */
static lever row_lever(const ends *e, size_t c)
{
    if (!e->w) return (lever){1, 1};
    return (lever){e->c->ops->out_units.two[c], e->c->ops->out_units.one[c]};
}

static lever rows_lever(const ends *e, size_t c, size_t k)
{
    if (!e->w) return (lever){1.4142136, 2};
    const size_t d = e->w->cols;
    double square = 0, one = 0;
    for (size_t j = 0; j < d; j++) {
        const double x = pare_weight_at(e->w, c * d + j) - pare_weight_at(e->w, k * d + j);
        square += x * x;
        one += fabs(x);
    }
    const double more = 1 + 0x1p-40 + 4 * (double)d * PARE_UNIT_F64;
    return (lever){up_fma(more, sqrt(square), 0x1p-500), up_mul(more, one)};
}

/* |F - G| of two numbers, rounded up. */
static double apart_up(double a, double b)
{
    return a == b ? 0 : up(fabs(a - b));
}

static double both_off(const ends *e, size_t i)
{
    return up_add(e->off[0][i], e->off[e->x->one ? 0 : 1][i]);
}

static size_t path(const ends *e, size_t p)
{
    return e->x->one ? 0 : p;
}

static bool stays(const ends *e, size_t p, size_t i, size_t c)
{
    const double *const y = pare_row(&e->y[path(e, p)], i);
    const double twice = up_mul(2, e->off[path(e, p)][i]);
    for (size_t k = 0; k < e->outputs; k++) {
        if (k == c) continue;
        const double need = up_add(lever_move(rows_lever(e, c, k), e->x->r[p][i]), twice);
        if (!(y[c] > y[k]) || !(down(y[c] - y[k]) > need)) return false;
    }
    return true;
}

static void largest(pare_ub *to, double x)
{
    *to = pare_ub_max(*to, pare_ub_exact(x));
}

static void entries(pare_ball *out, const ends *e, size_t i)
{
    const pair *const x = e->x;
    const double *const f = pare_row(&e->y[0], i), *const g = pare_row(&e->y[path(e, 1)], i);
    const double off = x->one ? 0 : both_off(e, i);
    for (size_t o = 0; o < e->outputs; o++) {
        const lever w = row_lever(e, o);
        const double by_v = up_add(apart_up(f[o], g[o]), up_add(lever_move(w, x->v[i]), off));
        largest(&out->apart, up_min(by_v, lever_move(w, x->z[i])));
        largest(&out->moves, up_add(lever_move(w, x->r[0][i]), e->off[0][i]));
    }
}

/* The euclidean distance of a row, and for two outputs that of their differences. */
static void whole_row(pare_ball *out, const ends *e, size_t i)
{
    const pair *const x = e->x;
    const op map = e->w ? e->c->ops->out : op_identity(e->outputs);
    const double off = x->one ? 0 : both_off(e, i);
    const double all = up_mul(off, up_sqrt((double)e->outputs));
    const double apart = row_apart(&e->y[0], &e->y[path(e, 1)], i).two;
    const double by_v = up_add(apart, up_add(op_move(&map, x->v[i]).two, all));
    largest(&out->rows2, up_min(by_v, op_move(&map, x->z[i]).two));
    if (e->outputs != 2) return;
    const double *const f = pare_row(&e->y[0], i), *const g = pare_row(&e->y[path(e, 1)], i);
    const lever w = rows_lever(e, 1, 0);
    double diff = fabs((f[1] - f[0]) - (g[1] - g[0]));
    const double size = fabs(f[0]) + fabs(f[1]) + fabs(g[0]) + fabs(g[1]);
    diff = x->one ? 0 : up_fma(0x1p-50, size, up(diff));
    const double by_difference = up_add(diff, up_add(lever_move(w, x->v[i]), up_mul(2, off)));
    largest(&out->difference, up_min(by_difference, lever_move(w, x->z[i])));
}

pare_status pair_outputs(pare_ball *out, const pair_ctx *c, const pair *x, pare_err *err)
{
    const pare_model *const m = c->c[0].m;
    const pare_weight *const w = pare_head_weight(m);
    /* Normalized rows have been through the last map. */
    ends e = {.c = c, .x = x, .w = pare_has(w) && !m->head.normalize ? w : NULL};
    e.outputs = e.w ? w->rows : x->h[0].cols;
    pare_status st = PARE_OK;
    for (size_t p = 0; st == PARE_OK && p < pair_paths(x); p++) st = evaluate(&e, p, err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < x->h[0].rows; i++) {
        const double *const f = pare_row(&e.y[0], i);
        size_t best = 0;
        entries(out, &e, i);
        whole_row(out, &e, i);
        for (size_t o = 1; o < e.outputs; o++)
            if (f[o] > f[best]) best = o;
        out->rows++;
        out->certain += stays(&e, 0, i, best) && stays(&e, 1, i, best);
    }
    return PARE_OK;
}
