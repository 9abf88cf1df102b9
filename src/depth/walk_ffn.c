/* walk_ffn.c - Theorem 1, an FFN (or the head) that both models have.
 *
 * One number norms: |ffn(x) - ffn(y)| <= L |x - y| with L = product of the layers' norms and of
 * the activations' Lipschitz constants; for a gated FFN on the set it is used on.
 *
 * BOX: between two points of the set every activation has a secant slope, which lies between the
 * least and the largest derivative over the range its input can have. So
 *     ffn(x) - ffn(y) = (x - y) J,   J = T + W_1 diag(s_1) W_2 ...
 * for some slopes in known intervals; J is an interval matrix, and |J| its bound. A unit that is
 * never (or always) switched on in the set costs nothing. Centres go through the FFN itself. */
#include "walk.h"
#include "linalg/bounds.h"
#include "model/model_facts.h"
#include <math.h>

/* What the functions and the formula lose, as the enclosures of cert count it. */
static double act_slack(pare_act a, double x)
{
    const bool exact = a == PARE_ACT_NONE || a == PARE_ACT_RELU;
    return exact ? 0 : 16 * PARE_UNIT_F64 * fabs(x) + 1024 * 0x1p-1022;
}

static imat act_row(pare_work *k, pare_act a, const imat *x)
{
    imat y = imat_copy(k, x);
    if (!y.rad.v) y.rad = work_matrix(k, 1, x->mid.cols);
    for (size_t j = 0; !k->st && j < x->mid.cols; j++) {
        const double v = x->mid.v[j];
        const pare_ub r = {x->rad.v ? x->rad.v[j] : 0}, slack = pare_ub_of(act_slack(a, v));
        y.mid.v[j] = pare_act_f64(a, v);
        y.rad.v[j] = pare_ub_fma(pare_ub_exact(pare_act_lipschitz(a)), r, slack).v;
    }
    return y;
}

/* ---- intervals of a row of units ------------------------------------------------------------- */

typedef struct span {
    pare_mat lo, hi; /* 1 x units */
} span;

static span span_around(pare_work *k, const imat *centre, const pare_mat *r)
{
    const size_t n = centre->mid.cols;
    span s = {work_matrix(k, 1, n), work_matrix(k, 1, n)};
    for (size_t j = 0; !k->st && j < n; j++) {
        const pare_ub c = {centre->rad.v ? centre->rad.v[j] : 0};
        const double wide = pare_ub_add(c, (pare_ub){r->v[j]}).v, x = centre->mid.v[j];
        s.lo.v[j] = nextafter(x - wide, -INFINITY);
        s.hi.v[j] = nextafter(x + wide, INFINITY);
    }
    return s;
}

static span span_both(pare_work *k, const span *a, const span *b)
{
    span s = {work_matrix(k, 1, a->lo.cols), work_matrix(k, 1, a->lo.cols)};
    for (size_t j = 0; !k->st && j < s.lo.cols; j++) {
        s.lo.v[j] = fmin(a->lo.v[j], b->lo.v[j]);
        s.hi.v[j] = fmax(a->hi.v[j], b->hi.v[j]);
    }
    return s;
}

/* [lo, hi] as midpoint and radius. */
static imat span_row(pare_work *k, const span *s)
{
    const size_t n = s->lo.cols;
    imat m = {work_matrix(k, 1, n), work_matrix(k, 1, n)};
    for (size_t j = 0; !k->st && j < n; j++) {
        const double mid = s->lo.v[j] / 2 + s->hi.v[j] / 2;
        const double r = fmax(s->hi.v[j] - mid, mid - s->lo.v[j]);
        m.mid.v[j] = isfinite(mid) ? mid : 0;
        m.rad.v[j] = isfinite(mid) && r == 0 ? 0 : pare_ub_of(isfinite(mid) ? r : INFINITY).v;
    }
    return m;
}

/* Least and largest derivative of the activation over [lo, hi]. */
static void slopes_of(pare_act a, double lo, double hi, double *least, double *most)
{
    const double far = fmax(fabs(lo), fabs(hi)), l = pare_act_lipschitz(a);
    const double near = lo <= 0 && hi >= 0 ? 0 : fmin(fabs(lo), fabs(hi));
    *least = 1 - l; /* gelu and silu: f'(x) = 1 - f'(-x) */
    *most = l;
    if (a == PARE_ACT_NONE) *least = 1;
    if (a == PARE_ACT_RELU) *least = lo >= 0 ? 1 : 0, *most = hi <= 0 ? 0 : 1;
    if (a == PARE_ACT_TANH) {
        const double tf = pare_tanh_up(far), tn = pare_tanh_down(near);
        *least = fmax(0, 1 - tf * tf - 0x1p-51); /* two roundings */
        *most = fmin(1, 1 - tn * tn + 0x1p-51);
    }
    if (!(far < INFINITY)) *least = fmin(*least, 1 - l), *most = l;
}

static span slopes(pare_work *k, pare_act a, const span *s)
{
    span out = {work_matrix(k, 1, s->lo.cols), work_matrix(k, 1, s->lo.cols)};
    for (size_t j = 0; !k->st && j < s->lo.cols; j++)
        slopes_of(a, s->lo.v[j], s->hi.v[j], &out.lo.v[j], &out.hi.v[j]);
    return out;
}

/* The activation's values over [lo, hi]; all fall and then rise, or only rise. */
static span values(pare_work *k, pare_act a, const span *s)
{
    span out = {work_matrix(k, 1, s->lo.cols), work_matrix(k, 1, s->lo.cols)};
    const double floor = a == PARE_ACT_GELU || a == PARE_ACT_GELU_TANH ? -0.171
                         : a == PARE_ACT_SILU                          ? -0.2785
                                                                       : INFINITY;
    for (size_t j = 0; !k->st && j < s->lo.cols; j++) {
        const double lo = s->lo.v[j], hi = s->hi.v[j], at_lo = pare_act_f64(a, lo),
                     at_hi = pare_act_f64(a, hi);
        const double slack = act_slack(a, fmax(fabs(lo), fabs(hi)));
        const double least = lo < 0 ? fmin(fmin(at_lo, at_hi), floor) : at_lo;
        out.lo.v[j] = least - slack;
        out.hi.v[j] = fmax(at_lo, at_hi) + slack;
    }
    return out;
}

/* ---- BOX ------------------------------------------------------------------------------------- */

/* What a set of tokens does to the units: a span for every layer that an activation follows (for a
 * gated FFN: of gate and up), the center behind it, and the Jacobian's enclosure. */
typedef struct passage {
    span *units;
    imat centre, jacobian;
} passage;

static imat affine_row(pare_work *k, const imat *x, const imat *w, const imat *b)
{
    const imat y = imat_mul(k, x, w);
    return imat_sum(k, &y, b);
}

static imat to_units(pare_work *k, const token_norm *in, const imat *w)
{
    return in->kind == NORM_BOX && in->q.mid.v ? imat_mul(k, &in->back, w) : *w;
}

static span seen_units(pare_work *k, const imat *centre, const imat *j, const token_set *r)
{
    const pare_mat size = imat_abs(k, j), wide = up_mul(k, &r->w, &size);
    return span_around(k, centre, &wide);
}

/* The last layer writes coordinates: turned before slopes are unknown, or their radii would mix. */
static imat from_units(pare_work *k, const token_norm *out, const imat *w)
{
    return out->q.mid.v ? imat_mul(k, w, &out->q) : *w;
}

/* r NULL: the spans are given. */
static void through_mlp(pare_work *k, passage *p, const eff_ffn *f, const token_norm *in,
                        const token_norm *out, const token_set *r)
{
    imat j = to_units(k, in, &f->w[0]), c = {0};
    if (r) c = affine_row(k, &r->c, &f->w[0], &f->b[0]);
    for (size_t l = 1; !k->st && l < f->nlayers; l++) {
        if (r) p->units[l - 1] = seen_units(k, &c, &j, r);
        const span s = slopes(k, f->act, &p->units[l - 1]);
        const imat row = span_row(k, &s), bent = imat_scale_columns(k, &j, &row);
        const imat w = l + 1 == f->nlayers ? from_units(k, out, &f->w[l]) : f->w[l];
        j = imat_mul(k, &bent, &w);
        if (!r) continue;
        const imat a = act_row(k, f->act, &c);
        c = affine_row(k, &a, &f->w[l], &f->b[l]);
    }
    p->jacobian = f->nlayers == 1 ? from_units(k, out, &j) : j;
    p->centre = c;
}

static void through_gate(pare_work *k, passage *p, const eff_ffn *f, const token_norm *in,
                         const token_norm *out, const token_set *r)
{
    const imat gate = to_units(k, in, &f->w[0]), up = to_units(k, in, &f->w[1]);
    if (r) {
        const imat cg = affine_row(k, &r->c, &f->w[0], &f->b[0]);
        const imat cu = affine_row(k, &r->c, &f->w[1], &f->b[1]), a = act_row(k, f->act, &cg);
        const imat both = imat_scale_columns(k, &a, &cu);
        p->centre = affine_row(k, &both, &f->w[2], &f->b[2]);
        p->units[0] = seen_units(k, &cg, &gate, r);
        p->units[1] = seen_units(k, &cu, &up, r);
    }
    if (k->st) return;
    const span s = slopes(k, f->act, &p->units[0]), v = values(k, f->act, &p->units[0]);
    const imat slope = span_row(k, &s), value = span_row(k, &v), other = span_row(k, &p->units[1]);
    const imat weight = imat_scale_columns(k, &slope, &other);
    const imat left = imat_scale_columns(k, &gate, &weight),
               right = imat_scale_columns(k, &up, &value);
    const imat j = imat_sum(k, &left, &right);
    const imat down = from_units(k, out, &f->w[2]);
    p->jacobian = imat_mul(k, &j, &down);
}

static passage pass_through(pare_work *k, const eff_ffn *f, const token_norm *in,
                            const token_norm *out, const token_set *r, const span *given)
{
    passage p = {0};
    p.units = pare_alloc(k->arena, f->nlayers + 1, sizeof *p.units);
    if (!p.units) pare_work_keep(k, pare_no_memory(k->err));
    if (k->st) return p;
    for (size_t l = 0; given && l < f->nlayers; l++) p.units[l] = given[l];
    if (f->gated)
        through_gate(k, &p, f, in, out, r);
    else
        through_mlp(k, &p, f, in, out, r);
    const imat t = map_in_bases(k, in, out, &f->t);
    p.jacobian = imat_sum(k, &p.jacobian, &t);
    if (!r) return p;
    const imat skipped = imat_mul(k, &r->c, &f->t), sum = imat_sum(k, &p.centre, &skipped);
    p.centre = imat_sum(k, &sum, &f->outside);
    return p;
}

static token_set reached(pare_work *k, const passage *p, const token_set *r)
{
    const pare_mat j = imat_abs(k, &p->jacobian);
    return (token_set){p->centre, up_mul(k, &r->w, &j), up_mul(k, &r->d, &j)};
}

/* The error's Jacobian: its secants run between a point of one set and a point of the other. */
static pare_mat between(pare_work *k, const eff_ffn *f, const token_norm *in, const token_norm *out,
                        const passage *x, const passage *y)
{
    const size_t n = f->gated ? 2 : f->nlayers - 1;
    span *const s = pare_alloc(k->arena, f->nlayers + 1, sizeof *s);
    if (!s) pare_work_keep(k, pare_no_memory(k->err));
    for (size_t l = 0; !k->st && l < n; l++) s[l] = span_both(k, &x->units[l], &y->units[l]);
    if (k->st) return (pare_mat){0};
    const passage p = pass_through(k, f, in, out, NULL, s);
    return imat_abs(k, &p.jacobian);
}

static track box_step(pare_work *k, const eff_ffn *f, const token_norm *out, const track *t)
{
    const passage x = pass_through(k, f, &t->at, out, &t->x, NULL);
    const passage y = pass_through(k, f, &t->at, out, &t->y, NULL);
    if (k->st) return (track){.at = *out};
    const pare_mat j = between(k, f, &t->at, out, &x, &y);
    track n = {.at = *out, .x = reached(k, &x, &t->x), .y = reached(k, &y, &t->y)};
    n.e = up_mul(k, &t->e, &j);
    return n;
}

/* ---- one number ------------------------------------------------------------------------------ */

/* Largest unit of a layer over the set: |c w + b|_max + size of w. */
static pare_ub largest_unit(pare_work *k, const token_norm *in, const imat *w, const imat *b,
                            const token_set *r, pare_ub norm)
{
    const imat row = affine_row(k, &r->c, w, b);
    const pare_ub centre = imat_max_abs(k, &row);
    (void)in;
    return k->st ? pare_ub_inf() : pare_ub_fma((pare_ub){r->w.v[0]}, norm, centre);
}

static pare_ub norm_of(pare_work *k, const token_norm *in, const imat *w)
{
    return in->kind == NORM_INF ? imat_map_inf(k, w) : imat_map_two(k, w);
}

/* Lipschitz constant of the branch up to (not with) its last layer, on the sets a and b. */
static pare_ub inner_lipschitz(pare_work *k, const eff_ffn *f, const token_norm *in,
                               const token_set *a, const token_set *b)
{
    const pare_ub la = pare_ub_exact(pare_act_lipschitz(f->act));
    pare_ub l = pare_ub_exact(1);
    for (size_t i = 0; !f->gated && i + 1 < f->nlayers; i++)
        l = pare_ub_mul(l, pare_ub_mul(la, norm_of(k, in, &f->w[i])));
    if (!f->gated) return l;
    const pare_ub ng = norm_of(k, in, &f->w[0]), nu = norm_of(k, in, &f->w[1]);
    const pare_ub gate = pare_ub_max(largest_unit(k, in, &f->w[0], &f->b[0], a, ng),
                                     largest_unit(k, in, &f->w[0], &f->b[0], b, ng));
    const pare_ub up = pare_ub_max(largest_unit(k, in, &f->w[1], &f->b[1], a, nu),
                                   largest_unit(k, in, &f->w[1], &f->b[1], b, nu));
    return pare_ub_mul(la, pare_ub_fma(gate, nu, pare_ub_mul(up, ng)));
}

static imat centre_through(pare_work *k, const eff_ffn *f, const imat *c)
{
    const imat first = affine_row(k, c, &f->w[0], &f->b[0]);
    imat y = first;
    if (f->gated) {
        const imat up = affine_row(k, c, &f->w[1], &f->b[1]), a = act_row(k, f->act, &first);
        const imat both = imat_scale_columns(k, &a, &up);
        y = affine_row(k, &both, &f->w[2], &f->b[2]);
    }
    for (size_t l = 1; !f->gated && !k->st && l < f->nlayers; l++) {
        const imat a = act_row(k, f->act, &y);
        y = affine_row(k, &a, &f->w[l], &f->b[l]);
    }
    const imat skipped = imat_mul(k, c, &f->t), sum = imat_sum(k, &y, &skipped);
    return imat_sum(k, &sum, &f->outside);
}

static pare_ub lipschitz_of(pare_work *k, const eff_ffn *f, const token_norm *in,
                            const token_set *a, const token_set *b)
{
    const pare_ub inner = inner_lipschitz(k, f, in, a, b);
    const pare_ub last = norm_of(k, in, &f->w[f->nlayers - 1]);
    return pare_ub_fma(inner, last, norm_of(k, in, &f->t));
}

static track number_step(pare_work *k, const eff_ffn *f, const token_norm *out, const track *t)
{
    const pare_ub lx = lipschitz_of(k, f, &t->at, &t->x, &t->x);
    const pare_ub ly = lipschitz_of(k, f, &t->at, &t->y, &t->y);
    const pare_ub le = lipschitz_of(k, f, &t->at, &t->x, &t->y);
    return (track){
        .at = *out,
        .x = {centre_through(k, f, &t->x.c), up_scale(k, &t->x.w, lx), up_scale(k, &t->x.d, lx)},
        .y = {centre_through(k, f, &t->y.c), up_scale(k, &t->y.w, ly), up_scale(k, &t->y.d, ly)},
        .e = up_scale(k, &t->e, le)};
}

track walk_ffn(pare_work *k, const eff_ffn *f, const token_norm *out, const track *t)
{
    if (k->st || f->nlayers == 0) {
        track same = *t;
        return same;
    }
    return t->at.kind == NORM_BOX ? box_step(k, f, out, t) : number_step(k, f, out, t);
}

/* ---- the head -------------------------------------------------------------------------------- */

pare_mat walk_output_head(pare_work *k, const eff_ffn *f, const track *t)
{
    if (k->st) return (pare_mat){0};
    if (t->at.kind == NORM_BOX) {
        const token_norm out = norm_plain(NORM_BOX, f->dout);
        return box_step(k, f, &out, t).e;
    }
    /* Every output is one column times the hidden row. */
    const pare_ub inner = inner_lipschitz(k, f, &t->at, &t->x, &t->y);
    const imat *const last = &f->w[f->nlayers - 1], turned = imat_transposed(k, last);
    pare_mat e = work_matrix(k, 1, f->dout);
    for (size_t j = 0; !k->st && j < f->dout; j++) {
        const imat column = imat_part(&turned, j, 0, 1, turned.mid.cols);
        const pare_ub size =
            t->at.kind == NORM_INF ? imat_sum_abs(k, &column) : imat_fro(k, &column);
        const pare_ub moved = pare_ub_mul(inner, (pare_ub){t->e.v[0]});
        e.v[j] = moved.v == 0 ? 0 : pare_ub_mul(size, moved).v;
    }
    return e;
}
