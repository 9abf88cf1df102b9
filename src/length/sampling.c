/* Sampling (Theorem 4.1, with a bound of our own that can be checked; spec of length, 4.8).
 *
 * Query block t sees g blocks of M - 1 keys, drawn without replacement. With a_j = e^(l_j - c) and
 * z_j = a_j (v_j - y), sum_j z_j = 0 and y' - y = sum_S z_j / sum_S a_j. For n keys drawn without
 * replacement and |z_j| <= R, P(|sum_S z| >= s) <= 2 exp(-s^2 / (2 n R^2)): Pinelis' bound on
 * E cosh(lambda |.|) in a Hilbert space, and Hoeffding's reduction to drawing with replacement;
 * free of the dimension. The denominator is observed, abar = (1/n) sum_S a_j. So with kappa = (amax
 * / abar) sqrt(2 ln(2/delta') / n),   amax >= max_j a_j, and kappa < 1, with probability at least 1
 * - delta': |y' - y| <= kappa max_j |v_j - y'| / (1 - kappa). c = q.kbar, amax = e^(|q| max_j |k_j
 * - kbar|): O(N d) altogether. delta' = delta / (rows x heads x looks). Rows whose bound is too
 * large look again at twice as many keys, in the end at all of them, regrouped. The paper's own
 * condition on M is vacuous at any size in use (errata E15). */
#include "codes.h"
#include "rounding.h"
#include "rounds.h"
#include <math.h>
#include <string.h>

typedef struct geometry { /* of one head: all proven upper bounds */
    double *kbar, *vbar;
    double key_radius, value_radius; /* max |k_j - kbar|, max |v_j - vbar| */
    double longest_key, longest_value;
} geometry;

typedef struct sampling {
    run *r;
    geometry *geo;
    uint32_t **rows; /* of each head: those still to be settled */
    size_t *count;
    uint32_t *order; /* room for a permutation */
    double eps, log_term;
    uint64_t looks;
    size_t keys; /* drawn for each query block in this look */
} sampling;

/* ---- geometry -------------------------------------------------------------------------------- */

static void mean_row(const run *r, double *mean, const void *x, size_t ld, size_t cols)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t c = 0; c < cols; c++) mean[c] += num_at(r->caps.dtype, x, i * ld + c);
    for (size_t c = 0; c < cols; c++) mean[c] /= (double)r->n;
}

/* Largest distance of a row from `from` (NULL: from 0), rounded up. */
static double radius(const run *r, const double *from, const void *x, size_t ld, size_t cols)
{
    double most = 0;
    for (size_t i = 0; i < r->n; i++) {
        double s = 0;
        for (size_t c = 0; c < cols; c++) {
            const double d = num_at(r->caps.dtype, x, i * ld + c) - (from ? from[c] : 0);
            s += d * d;
        }
        most = fmax(most, s);
    }
    return sqrt(most) * (1 + (double)(cols + 8) * 0x1p-52);
}

static pare_status measure(sampling *s)
{
    run *const r = s->r;
    s->geo = pare_alloc(r->arena, r->count, sizeof *s->geo);
    if (!s->geo) return pare_no_memory(r->err);
    for (size_t a = 0; a < r->count; a++) {
        const pare_length_job *const j = &r->heads[a].job;
        geometry *const g = &s->geo[a];
        g->kbar = pare_alloc(r->arena, j->dk, sizeof *g->kbar);
        g->vbar = pare_alloc(r->arena, j->dv, sizeof *g->vbar);
        if (!g->kbar || !g->vbar) return pare_no_memory(r->err);
        mean_row(r, g->kbar, j->k, j->ldk, j->dk);
        mean_row(r, g->vbar, j->v, j->ldv, j->dv);
        g->key_radius = radius(r, g->kbar, j->k, j->ldk, j->dk);
        g->value_radius = radius(r, g->vbar, j->v, j->ldv, j->dv);
        g->longest_key = radius(r, NULL, j->k, j->ldk, j->dk);
        g->longest_value = radius(r, NULL, j->v, j->ldv, j->dv);
    }
    return PARE_OK;
}

static pare_status references(sampling *s)
{
    run *const r = s->r;
    for (size_t a = 0; a < r->count; a++) {
        head *const h = &r->heads[a];
        h->c = pare_alloc(r->arena, r->n, sizeof *h->c);
        if (!h->c) return pare_no_memory(r->err);
        for (size_t i = 0; i < r->n; i++) {
            double c = 0;
            for (size_t e = 0; e < h->job.dk; e++)
                c += num_at(r->caps.dtype, h->job.q, i * h->job.ldq + e) * s->geo[a].kbar[e];
            h->c[i] = reference_logit(r, c);
        }
    }
    return PARE_OK;
}

/* ---- the bound ------------------------------------------------------------------------------- */

static double norm_of(const run *r, const void *x, size_t at, size_t cols)
{
    double s = 0;
    for (size_t c = 0; c < cols; c++) {
        const double v = num_at(r->caps.dtype, x, at + c);
        s += v * v;
    }
    return sqrt(s) * (1 + (double)(cols + 8) * 0x1p-52);
}

static double exact_bound(const sampling *s, size_t a, size_t i)
{
    const run *const r = s->r;
    const head *const h = &r->heads[a];
    const double n = (double)r->n, m = r->rule.m;
    const double most = norm_of(r, h->job.q, i * h->job.ldq, h->job.dk) * s->geo[a].longest_key;
    const rounding e = rounding_of(&r->caps, h->job.dk, most, 2 * most + fabs(h->c[i]), n, m,
                                   n / (m - 1) + 1, false, 0);
    return (e.factor + e.absent * sqrt((double)h->job.dv)) * s->geo[a].longest_value * (1 + 1e-12);
}

/* Bound of row i after a look; *size is the length of the estimate, from below. */
static double row_bound(const sampling *s, size_t a, size_t i, double *size)
{
    const run *const r = s->r;
    const head *const h = &r->heads[a];
    const geometry *const g = &s->geo[a];
    const double n = (double)s->keys, q = norm_of(r, h->job.q, i * h->job.ldq, h->job.dk);
    const double most = q * g->longest_key, m = r->rule.m;
    const rounding e = rounding_of(&r->caps, h->job.dk, most, 2 * most + fabs(h->c[i]), n, m,
                                   n / (m - 1) + 1, false, 0);
    double far = 0, length = 0; /* of the estimate from vbar, and from 0 */
    for (size_t c = 0; c < h->job.dv; c++) {
        const double y = h->num[i * h->job.dv + c] / h->den[i];
        far += (y - g->vbar[c]) * (y - g->vbar[c]);
        length += y * y;
    }
    const double u = r->caps.dtype == PARE_F32 ? 0x1p-24 : 0x1p-53;
    const double shift = 2 * u * fabs(h->c[i]) + 1e-12 * (1 + most); /* of c from q.kbar */
    const double amax = exp(q * g->key_radius + shift) * (1 + e.factor) * (1 + 1e-12);
    const double kappa = amax / (h->den[i] / n) * s->log_term / sqrt(n) * (1 + 1e-12);
    const double spread = (sqrt(far) + g->value_radius) * (1 + 1e-12);
    const double rounded =
        (e.factor + e.absent * sqrt((double)h->job.dv)) * g->longest_value * (1 + 1e-12);
    *size = sqrt(length) * (1 - 1e-12);
    if (!(kappa < 1) || h->bad[i] || !(h->den[i] >= r->caps.w_min)) return INFINITY;
    return (kappa * (spread + rounded) / (1 - kappa) + rounded) * (1 + 1e-12);
}

/* ---- looks ----------------------------------------------------------------------------------- */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The first s->keys of a random order of all keys, anew for every block of queries. */
static void draw(sampling *s, size_t a, size_t block)
{
    run *const r = s->r;
    pare_rng g = pare_rng_at(r->o.seed, (s->looks << 48) ^ (a << 32) ^ block);
    for (uint32_t i = 0; i < r->n; i++) s->order[i] = i;
    for (size_t i = 0; i < s->keys; i++) {
        const size_t j = i + pare_rng_below(&g, r->n - i);
        const uint32_t t = s->order[i];
        s->order[i] = s->order[j];
        s->order[j] = t;
    }
}

/* Calls of every block of unsettled queries with the keys in `order`; copies live in the arena, for
 * calls may wait in a batch. */
static pare_status ask(sampling *s, bool all)
{
    run *const r = s->r;
    pare_status st = PARE_OK;
    const size_t m = r->rule.m;
    for (r->at = 0; r->at < r->count && !st; r->at++)
        for (size_t q = 0; q < s->count[r->at] && !st; q += m) {
            const size_t nq = least(m, s->count[r->at] - q);
            uint32_t *const keys = pare_alloc(r->arena, s->keys, sizeof *keys);
            if (!keys) return pare_no_memory(r->err);
            if (!all) draw(s, r->at, q / m);
            for (uint32_t i = 0; all && i < r->n; i++) s->order[i] = i;
            memcpy(keys, s->order, s->keys * sizeof *keys);
            for (size_t k = 0; k < s->keys && !st; k += m - 1) {
                const placed p = {.t = {.rows = s->rows[r->at] + q,
                                        .nq = (uint32_t)nq,
                                        .keys = keys + k,
                                        .nk = (uint32_t)least(m - 1, s->keys - k),
                                        .vis0 = PARE_VIS_ALL},
                                  .k_at = 1};
                st = run_call(r, &p, 1, (uint32_t)(nq > p.t.nk + 1 ? nq : p.t.nk + 1));
            }
        }
    return st;
}

static void begin_look(sampling *s)
{
    run *const r = s->r;
    for (size_t a = 0; a < r->count; a++)
        for (size_t x = 0; x < s->count[a]; x++) {
            const size_t i = s->rows[a][x];
            memset(r->heads[a].num + i * r->heads[a].job.dv, 0,
                   r->heads[a].job.dv * sizeof(double));
            r->heads[a].den[i] = 0;
            r->heads[a].bad[i] = 0;
        }
}

/* Rows that are proven leave the list. */
static pare_status settle(sampling *s, bool stay)
{
    run *const r = s->r;
    for (size_t a = 0; a < r->count; a++) {
        uint32_t *const rows = s->rows[a], *const kept = pare_alloc(r->arena, s->count[a] + 1, 4);
        size_t left = 0;
        if (!kept) return pare_no_memory(r->err);
        for (size_t x = 0; x < s->count[a]; x++) {
            double size;
            const double e = row_bound(s, a, rows[x], &size), relative = e / fmax(size - e, 0);
            const bool good = relative <= s->eps;
            if (good || stay) {
                r->stats->bound = fmax(r->stats->bound, e);
                r->stats->relative =
                    fmax(r->stats->relative, isnan(relative) ? INFINITY : relative);
                r->stats->unproven_rows += !good;
                if (r->heads[a].job.bound) r->heads[a].job.bound[rows[x]] = e;
            } else {
                kept[left++] = rows[x];
            }
        }
        s->rows[a] = kept;
        s->count[a] = left;
    }
    return PARE_OK;
}

static size_t unsettled(const sampling *s)
{
    size_t n = 0;
    for (size_t a = 0; a < s->r->count; a++) n += s->count[a];
    return n;
}

static pare_status look(sampling *s, bool all)
{
    run *const r = s->r;
    begin_look(s);
    run_begin(r, &zeroref_calls);
    pare_status st = run_end(r, ask(s, all));
    r->extra = true;
    s->looks++;
    return st;
}

/* What is left is computed exactly. */
static pare_status exact(sampling *s)
{
    run *const r = s->r;
    s->keys = r->n;
    r->stats->exact_rows = unsettled(s);
    const pare_status st = look(s, true);
    for (size_t a = 0; a < r->count; a++) /* what is left is rounding */
        for (size_t x = 0; r->heads[a].job.bound && x < s->count[a]; x++)
            r->heads[a].job.bound[s->rows[a][x]] = exact_bound(s, a, s->rows[a][x]);
    return st ? st : zeroref_settle(r, &zeroref_calls);
}

static pare_status start(sampling *s)
{
    run *const r = s->r;
    const double delta = r->o.delta > 0 ? r->o.delta : 0.01;
    s->eps = r->o.eps > 0 ? r->o.eps : 0.5;
    s->rows = pare_alloc(r->arena, r->count, sizeof *s->rows);
    s->count = pare_alloc(r->arena, r->count, sizeof *s->count);
    s->order = pare_alloc(r->arena, r->n, sizeof *s->order);
    if (!s->rows || !s->count || !s->order) return pare_no_memory(r->err);
    for (size_t a = 0; a < r->count; a++) {
        s->rows[a] = pare_alloc(r->arena, r->n, sizeof **s->rows);
        if (!s->rows[a]) return pare_no_memory(r->err);
        for (uint32_t i = 0; i < r->n; i++) s->rows[a][i] = i;
        s->count[a] = r->n;
    }
    double looks = 1;
    for (size_t k = s->keys; 2 * k < r->n; k *= 2) looks++;
    s->log_term = sqrt(2 * log(2 * (double)r->n * (double)r->count * looks / delta)) * (1 + 1e-12);
    return PARE_OK;
}

pare_status sample_attend(run *r)
{
    sampling s = {.r = r};
    const size_t g = r->o.blocks ? r->o.blocks : 1;
    s.keys = g * (r->rule.m - 1);
    pare_status st = sums_new(r);
    if (!st) st = reference_choose(r);
    if (!st && r->rule.plain) {
        st = run_round(r, &plain_calls);
        if (!st) sums_write(r);
        return st;
    }
    if (!st) st = measure(&s);
    if (!st) st = references(&s);
    r->stats->reference = PARE_REF_MEAN;
    if (!st) st = start(&s);
    while (!st && s.keys < r->n && unsettled(&s)) {
        st = look(&s, false);
        if (!st) st = settle(&s, r->o.no_fallback);
        s.keys *= 2;
    }
    if (!st && unsettled(&s)) st = exact(&s);
    if (!st) sums_write(r);
    return st;
}

/* ---- each chunk by itself: the baseline ------------------------------------------------------ */

pare_status chunk_attend(run *r)
{
    const size_t m = r->rule.m;
    pare_status st = sums_new(r);
    if (st) return st;
    run_begin(r, &plain_calls);
    for (r->at = 0; r->at < r->count; r->at++)
        for (size_t b = 0; b < r->n && !st; b += m) {
            const uint32_t n = (uint32_t)least(m, r->n - b);
            const placed p = {.t = {.q0 = b,
                                    .nq = n,
                                    .k0 = b,
                                    .nk = n,
                                    .vis0 = r->rule.kind == CALL_CAUSAL ? 1 : PARE_VIS_ALL}};
            st = run_call(r, &p, 1, n);
        }
    st = run_end(r, st);
    if (!st) sums_write(r);
    return st;
}
