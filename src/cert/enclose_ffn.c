/* enclose_ffn.c - activations and feed-forward branches.
 *
 * Activations work entry by entry with a Lipschitz constant La (pare_act_lipschitz), so a row moves
 * by La |x - x'|.
 * Local rounding: each is x times a factor in [0, 1] (or tanh) that is off by a few u and no more
 * than 16 u |x| in all: the factor's function 8 u, its argument's roundings (at most 8 u relative)
 * times max |t sech^2 t| < 0.45, and four operations. Where an exponential leaves the range, x
 * times it is below 1024 tiny. In double-double: wide_act_units.
 *
 * Gated: a = act(g), |a' u' - a u| <= |a' - a|_2 |u'|_max + |a|_max |u' - u|_2, one rounding. */
#include "model/model_facts.h"
#include "enclose.h"

typedef struct act_job {
    flow *x;
    pare_act act;
} act_job;

static void act_row(void *ctx, size_t i)
{
    const act_job *const j = ctx;
    const size_t d = j->x->x.cols;
    double *const x = pare_row_mut(&j->x->x, i);
    const radii r = flow_radii(j->x, i);
    const double norm = flow_norm(j->x, i), slope = pare_act_lipschitz(j->act);
    if (j->x->wide)
        wide_act_row(j->act, x, pare_row_mut(&j->x->lo, i), d);
    else
        for (size_t k = 0; k < d; k++) x[k] = pare_act_f64(j->act, x[k]);
    if (j->act == PARE_ACT_RELU) return; /* exact, and moves nothing apart */
    for (size_t e = 0; e < ENGINES; e++) {
        const engine *const g = enclose_engine(j->x->wide, e);
        const double size = reach(norm, r, e);
        const double under = up_mul(g->tiny, up_mul(1024, up_sqrt((double)d)));
        const double local =
            up_fma(up_mul(g->wide ? wide_act_units(j->act) : 16, g->u), size, under);
        j->x->r[e][i] = in_range(g, size, up_fma(slope, r.r[e], local));
    }
}

void enclose_act(flow *x, pare_act act, const pare_exec *exec)
{
    if (act == PARE_ACT_NONE) return;
    act_job j = {x, act};
    enclose_rows(exec, x->x.rows, act_row, &j);
}

/* a *= u, entry by entry. */
static void multiply(flow *a, const flow *u)
{
    const size_t d = a->x.cols;
    for (size_t i = 0; i < a->x.rows; i++) {
        double *const x = pare_row_mut(&a->x, i);
        const double *const y = pare_row(&u->x, i);
        const radii ra = flow_radii(a, i), ru = flow_radii(u, i);
        const double more = a->wide ? 1 + LO_SHARE : 1;
        const double amax = up_mul(enclose_max_up(x, d), more);
        const double umax = up_mul(enclose_max_up(y, d), more), u2 = flow_norm(u, i);
        for (size_t k = 0; k < d; k++) {
            if (a->wide)
                flow_put(a, i, k, dd_mul(flow_at(a, i, k), flow_at(u, i, k)));
            else
                x[k] *= y[k];
        }
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const g = enclose_engine(a->wide, e);
            const double most_u = reach(umax, ru, e), most_a = reach(amax, ra, e);
            const double exact_a = up_add(amax, ra.r[0]);
            const double move = up_fma(ra.r[e], most_u, up_mul(exact_a, ru.r[e]));
            const double terms = up_mul(most_a, reach(u2, ru, e));
            const double local = up_fma(g->u, terms, up_mul(g->tiny, up_sqrt((double)d)));
            a->r[e][i] = in_range(g, terms, up_add(move, local));
        }
    }
}

static pare_status gated(flow *y, const enclose_ctx *c, const flow *z, const pare_ffn *f,
                         const ffn_norms *n, pare_err *err)
{
    const pare_dense *const l = f->layers;
    flow gate, upward;
    pare_status st = enclose_dense(&gate, c, z, &l[0].w, &l[0].b, &n->layers[0], err);
    if (st == PARE_OK) st = enclose_dense(&upward, c, z, &l[1].w, &l[1].b, &n->layers[1], err);
    if (st != PARE_OK) return st;
    enclose_act(&gate, f->act, c->exec);
    multiply(&gate, &upward);
    return enclose_dense(y, c, &gate, &l[2].w, &l[2].b, &n->layers[2], err);
}

pare_status enclose_ffn(flow *y, const enclose_ctx *c, const flow *z, const pare_ffn *f,
                        const ffn_norms *n, pare_err *err)
{
    if (f->kind == PARE_FFN_GATED) return gated(y, c, z, f, n, err);
    flow x = *z;
    for (size_t l = 0; l < f->nlayers; l++) {
        const pare_dense *const dense = &f->layers[l];
        const pare_status st = enclose_dense(y, c, &x, &dense->w, &dense->b, &n->layers[l], err);
        if (st != PARE_OK) return st;
        if (l + 1 < f->nlayers) enclose_act(y, f->act, c->exec);
        x = *y;
    }
    return PARE_OK;
}
