/* sampling_bound.c - the bound of a sampled row: Yu 2025, Theorem 4.1, with a bound that can be
 * checked (docs/theory/length.md "Sampling (Theorem 4.1)").
 *
 * With a_j = e^(l_j - c) and z_j = a_j (v_j - y),
 *
 *     sum_j z_j = 0,   y' - y = sum_S z_j / sum_S a_j.
 *
 * For n keys drawn without replacement and |z_j| <= R
 *
 *     P(|sum_S z| >= s) <= 2 exp(-s^2 / (2 n R^2)):
 *
 * Pinelis' bound on E cosh(lambda |.|) in a Hilbert space, and Hoeffding's reduction to drawing
 * with replacement; free of the dimension. The denominator D = sum_S a_j is observed. So with
 *
 *     kappa = (n amax / D) sqrt(2 ln(2/delta') / n) < 1,   amax >= max_j a_j,
 *
 * with probability at least 1 - delta'
 *
 *     |y' - y| <= kappa max_j |v_j - y'| / (1 - kappa).
 *
 * c = q.kbar and amax = e^(|q| max_j |k_j - kbar|): O(N d) altogether.
 * delta' = delta / (rows x heads x passes).
 *
 * Where keys E are seen beside and the n drawn ones stand for a population of P keys, each P / n
 * times,
 *
 *     y' - y = (P / n) sum_S (z_j - mean z) / D,   D = sum_E a + (P / n) sum_S a:
 *
 * the same with terms of at most 2 R, kappa = (2 P amax / D) sqrt(2 ln(2/delta') / n). */
#include "linalg/bounds.h"
#include "numbers.h"
#include "rounding.h"
#include "sampling.h"
#include <math.h>

#define GUARD (1 + 1e-12) /* for the few roundings of f64 in a bound */

/* ---- geometry -------------------------------------------------------------------------------- */

/* What the root of a sum of so many squares may be too small by, but for a few roundings. */
static double rounded_up(size_t squares)
{
    return 1 + (double)squares * 0x1p-54;
}

static void mean_row(const length_run *r, double *mean, const void *x, size_t ld, size_t cols)
{
    for (size_t i = 0; i < r->in.n; i++)
        for (size_t c = 0; c < cols; c++)
            mean[c] += num_at(r->in.caps.dtype, x, i * ld + c) / (double)r->in.n;
}

/* Largest distance of a row from `from` (NULL: from 0). */
static double radius(const length_run *r, const double *from, const void *x, size_t ld, size_t cols)
{
    double most = 0;
    for (size_t i = 0; i < r->in.n; i++) {
        double s = 0;
        for (size_t c = 0; c < cols; c++) {
            const double d = num_at(r->in.caps.dtype, x, i * ld + c) - (from ? from[c] : 0);
            s += d * d;
        }
        most = fmax(most, s);
    }
    return sqrt(most) * rounded_up(cols);
}

/* ---- the bound ------------------------------------------------------------------------------- */

static double norm_of(const length_run *r, const void *x, size_t at, size_t cols)
{
    double s = 0;
    for (size_t c = 0; c < cols; c++) {
        const double v = num_at(r->in.caps.dtype, x, at + c);
        s += v * v;
    }
    return sqrt(s) * rounded_up(cols);
}

/* In norm: the weights sum to 1, so that sum_j p_j |v_j| is at most the longest value; what is lost
 * is lost in each column. Factor and absent are 2^-40 too large: more than the roundings here. */
static double rounded_row(const rounding *e, double longest, size_t dv)
{
    return e->factor * longest + e->absent * sqrt((double)dv) * (longest + 1);
}

static rounding rounding_of_row(const sampling *s, size_t a, size_t i, double q, double n)
{
    const length_run *const r = s->r;
    const head_state *const h = &r->heads[a];
    const double k = s->geo[a].longest_key, m = r->in.rule.m, dk = (double)h->job.dk;
    const row_facts f = {.dk = h->job.dk,
                         .size = q * k,
                         .entries = sqrt(dk) * (q + k),
                         .range = 2 * q * k + fabs(h->ref_logit[i]),
                         .max_logit = -INFINITY,
                         .n = n,
                         .m = m,
                         .parts = 2 * n / (m - 1) + 72};
    return rounding_of(&r->in.caps, &f);
}

double sampling_exact_bound(const sampling *s, size_t a, size_t i)
{
    const length_run *const r = s->r;
    const pare_length_job *const j = &r->heads[a].job;
    const rounding e =
        rounding_of_row(s, a, i, norm_of(r, j->q, i * j->ldq, j->dk), (double)r->in.n);
    return rounded_row(&e, s->geo[a].longest_value, j->dv);
}

double sampling_bound(const sampling *s, size_t a, size_t i, const drawn *d, double *size)
{
    const length_run *const r = s->r;
    const head_state *const h = &r->heads[a];
    const geometry *const g = &s->geo[a];
    const double q = norm_of(r, h->job.q, i * h->job.ldq, h->job.dk), most = q * g->longest_key;
    const rounding e = rounding_of_row(s, a, i, q, d->n + (d->beside ? r->in.rule.m : 0));
    double far = 0, length = 0; /* of the estimate from vbar, and from 0 */
    for (size_t c = 0; c < h->job.dv; c++) {
        const double y = h->acc[i * h->job.dv + c] / h->weight_sum[i];
        far += (y - g->vbar[c]) * (y - g->vbar[c]);
        length += y * y;
    }
    const double u = r->in.caps.dtype == PARE_F32 ? 0x1p-24 : 0x1p-53;
    const double shift = (u + (double)h->job.dk * 0x1p-53) * most; /* c from q.kbar */
    const double amax = pare_exp_up(q * g->key_radius + shift) * (1 + e.factor);
    const double kappa =
        (d->beside ? 2 : 1) * amax * d->of / h->weight_sum[i] * s->log_term / sqrt(d->n) * GUARD;
    const double spread = sqrt(far) * rounded_up(h->job.dv) + g->value_radius;
    const double rounded = rounded_row(&e, g->longest_value, h->job.dv);
    *size = sqrt(length) / rounded_up(h->job.dv) / GUARD;
    if (!(kappa < 1) || !accumulators_finite(r, h, i) || !(h->weight_sum[i] >= r->in.caps.w_min))
        return INFINITY;
    return kappa * (spread + rounded) / (1 - kappa) + rounded; /* with what kappa has too much */
}

bool sampling_accept(const sampling *s, size_t a, size_t i, double bound, double size, bool must)
{
    length_run *const r = s->r;
    const double relative = bound / fmax(size - bound, 0);
    const bool good = relative <= s->eps;
    if (!good && !must) return false;
    r->stats->bound = fmax(r->stats->bound, bound);
    r->stats->relative = fmax(r->stats->relative, isnan(relative) ? INFINITY : relative);
    r->stats->unproven_rows += !good;
    if (r->heads[a].job.bound) r->heads[a].job.bound[i] = bound;
    return true;
}

/* ---- what is drawn --------------------------------------------------------------------------- */

const uint32_t *sampling_draw(sampling *s, size_t a, size_t block, size_t of)
{
    length_run *const r = s->r;
    pare_rng g = pare_rng_at(r->in.opts.seed, (s->passes << 48) ^ (a << 32) ^ block);
    uint32_t *const keys = pare_alloc(r->arena, s->keys, sizeof *keys);
    if (!keys) return NULL;
    for (uint32_t i = 0; i < of; i++) s->order[i] = i;
    for (size_t i = 0; i < s->keys; i++) {
        const size_t j = i + pare_rng_below(&g, of - i);
        keys[i] = s->order[j];
        s->order[j] = s->order[i];
    }
    return keys;
}

/* ---- all heads ------------------------------------------------------------------------------- */

pare_status sampling_new(sampling *s, length_run *r)
{
    const size_t n = r->in.n;
    const double delta = r->in.opts.delta > 0 ? r->in.opts.delta : 0.01;
    double passes = 1;
    *s = (sampling){.r = r, .eps = r->in.opts.eps > 0 ? r->in.opts.eps : 0.5};
    s->keys = (r->in.opts.blocks ? r->in.opts.blocks : 1) * (size_t)(r->in.rule.m - 1);
    for (size_t k = s->keys; 2 * k < n; k *= 2) passes++;
    s->log_term = sqrt(2 * pare_log_up(2 * (double)n * (double)r->in.nheads * passes / delta));
    s->order = pare_alloc(r->arena, n, sizeof *s->order);
    s->geo = pare_alloc(r->arena, r->in.nheads, sizeof *s->geo);
    if (!s->order || !s->geo) return pare_no_memory(r->in.err);
    r->stats->reference = PARE_REF_MEAN;
    for (size_t a = 0; a < r->in.nheads; a++) {
        head_state *const h = &r->heads[a];
        const pare_length_job *const j = &h->job;
        geometry *const g = &s->geo[a];
        g->kbar = pare_alloc(r->arena, j->dk, sizeof *g->kbar);
        g->vbar = pare_alloc(r->arena, j->dv, sizeof *g->vbar);
        h->ref_logit = pare_alloc(r->arena, n, sizeof *h->ref_logit);
        if (!g->kbar || !g->vbar || !h->ref_logit) return pare_no_memory(r->in.err);
        mean_row(r, g->kbar, j->k, j->ldk, j->dk);
        mean_row(r, g->vbar, j->v, j->ldv, j->dv);
        g->key_radius = radius(r, g->kbar, j->k, j->ldk, j->dk);
        g->value_radius = radius(r, g->vbar, j->v, j->ldv, j->dv);
        g->longest_key = radius(r, NULL, j->k, j->ldk, j->dk);
        g->longest_value = radius(r, NULL, j->v, j->ldv, j->dv);
        for (size_t i = 0; i < n; i++) {
            double c = 0;
            for (size_t e = 0; e < j->dk; e++)
                c += num_at(r->in.caps.dtype, j->q, i * j->ldq + e) * g->kbar[e];
            h->ref_logit[i] = reference_logit(r, c);
        }
    }
    return PARE_OK;
}
