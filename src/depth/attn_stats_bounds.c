/* attn_stats_bounds.c - adds the statistics of all sequences up: means, maxima, and the bounds on
 * replacing an attention layer that follow from them.
 *
 * Local errors (docs/theory/depth.md "Local bounds"): by Lemmas T and K
 *     |(P - P') Z V| <= tanh(range / 4) diam(Z V),   head by head,
 * where range is that of a row's scores in P minus those in P'; a polynomial's total variation is
 * proven by itself. They hold, up to the rounding of f64, for every input whose ranges, diameters
 * and entries are no larger. What stands in the place of f32 weights is rounded to f32: the one
 * matrix and the one bias of `uniform`, the one direction of a `constq` head. */
#include "attn_stats.h"
#include "attention/polynomial.h"
#include "linalg/bounds.h"
#include <pare/depth.h>
#include <math.h>

/* nan: not known; the larger of two that may be. */
static double larger_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

void head_totals_add(head_totals *to, const head_stats *s)
{
    head_stats *const a = &to->all;
    a->rows += s->rows;
    a->wide += s->wide;
    a->range += s->range;
    a->tv_uniform += s->tv_uniform;
    a->tv_constq += s->tv_constq;
    a->tv_meanq += s->tv_meanq;
    a->entropy += s->entropy;
    a->range_max = fmax(a->range_max, s->range_max);
    a->constq_max = fmax(a->constq_max, s->constq_max);
    a->meanq_max = fmax(a->meanq_max, s->meanq_max);
    a->theta = larger_known(a->theta, s->theta);
    a->rho = larger_known(a->rho, s->rho);
    a->tau = larger_known(a->tau, s->tau);
    a->diam = fmax(a->diam, s->diam);
    a->poly_b = fmax(a->poly_b, s->poly_b);
    if (isnan(s->theta)) return;
    to->theta += s->theta;
    to->thetas++;
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void finish_head(pare_head_stats *h, const head_totals *s, bool full, size_t dk)
{
    const head_stats *const a = &s->all;
    const double rows = a->rows ? (double)a->rows : NAN;
    h->range_mean = a->range / rows;
    h->range_max = a->range_max;
    h->constq_max = a->constq_max;
    h->meanq_max = full ? a->meanq_max : NAN;
    h->theta = a->theta;
    h->theta_mean = s->thetas ? s->theta / (double)s->thetas : NAN;
    h->rho = a->rho;
    h->tau = a->tau;
    h->tv_uniform = a->tv_uniform / rows;
    h->tv_constq = a->tv_constq / rows;
    h->tv_meanq = full ? a->tv_meanq / rows : NAN;
    h->entropy = a->wide ? a->entropy / (double)a->wide : NAN;
    h->k_paper = expm1(a->theta) * h->value_max;
    h->k_sound = (full ? pare_tanh_up(a->theta / 2) : 1) * h->vz.v;
    h->k_seen = a->res_out;
    h->diam = a->diam;
    h->poly_b = a->poly_b;
    const bool found = pare_poly_degree(&h->poly_degree, &h->poly_tv, h->poly_b, PARE_STATS_POLY);
    h->poly_features = found ? pare_monomials_count(dk, h->poly_degree) : SIZE_MAX;
    if (found) return;
    h->poly_degree = SIZE_MAX;
    h->poly_tv = pare_ub_inf();
}

/* ---- layers ---------------------------------------------------------------------------------- */

static pare_ub perturbation_bound(double range, double diam)
{
    return pare_ub_mul(pare_ub_tanh(pare_ub_of(range / 4)), pare_ub_of(diam));
}

static void add_to(pare_ub *sum, pare_ub part)
{
    *sum = pare_ub_add(*sum, part);
}

/* What one head adds to the bounds of its layer. */
static void add_head(pare_layer_stats *at, const pare_head_stats *x, pare_ub unit)
{
    pare_ub *const b = at->bound;
    const pare_ub size = pare_ub_mul(x->vz, pare_ub_of(at->z));
    const double off = 4 * unit.v * x->direction * at->z; /* of the range: two scores, twice */
    add_to(&b[PARE_ATTN_ZERO - PARE_ATTN_ZERO], size);
    add_to(&b[PARE_ATTN_UNIFORM - PARE_ATTN_ZERO],
           pare_ub_fma(unit, size, perturbation_bound(x->range_max, x->diam)));
    add_to(&b[PARE_ATTN_CONSTQ - PARE_ATTN_ZERO], perturbation_bound(x->constq_max + off, x->diam));
    add_to(&b[PARE_ATTN_MEANQ - PARE_ATTN_ZERO],
           isnan(x->meanq_max) ? pare_ub_inf() : perturbation_bound(x->meanq_max, x->diam));
    add_to(&at->bound_poly, pare_ub_mul(x->poly_tv, pare_ub_of(x->diam)));
}

static void finish_layer(pare_layer_stats *at, const layer_stats *s, const pare_head_stats *heads,
                         bool rounded)
{
    const pare_ub unit = pare_ub_exact(rounded ? PARE_UNIT_F32 : 0);
    const double n = s->sequences ? (double)s->sequences : NAN;
    at->res_x = s->res_x / n;
    at->res_x1 = s->res_x1 / n;
    at->res_f = s->res_f / n;
    at->share = s->share / n;
    at->varied = s->varied / n;
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) at->bound[k] = pare_ub_inf();
    at->bound[PARE_ATTN_ZERO - PARE_ATTN_ZERO] = at->constant;
    at->bound[PARE_ATTN_UNIFORM - PARE_ATTN_ZERO] = pare_ub_mul(unit, at->value_bias);
    at->bound[PARE_ATTN_CONSTQ - PARE_ATTN_ZERO] = pare_ub_exact(0);
    at->bound[PARE_ATTN_MEANQ - PARE_ATTN_ZERO] = pare_ub_exact(0);
    at->bound_poly = pare_ub_exact(0);
    for (size_t h = at->first; h < at->first + at->nheads; h++) add_head(at, &heads[h], unit);
}

void attn_stats_finish(pare_attention_stats *out, const pare_model *m, const layer_stats *layers,
                       const head_totals *heads)
{
    const bool full = m->pattern.kind == PARE_FULL;
    for (size_t h = 0; h < out->nheads; h++) {
        pare_head_stats *const to = &out->heads[h];
        finish_head(to, &heads[h], full, m->blocks[to->block].attn.heads[to->head].dk);
    }
    for (size_t l = 0; l < out->nlayers; l++)
        finish_layer(&out->layers[l], &layers[l], out->heads,
                     m->blocks[out->layers[l].block].attn.wv.dtype == PARE_F32);
}
