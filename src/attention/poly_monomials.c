/* poly_monomials.c - all monomials up to a degree, and their order in the kernels.
 *
 * (x.y)^m = sum over |a| = m of m!/a! x^a y^a: symmetric monomials, C(d + g, g) of them up to
 * degree g, where the full tensors would have sum d^m. Within degree m they are sorted by their
 * largest variable v: those with largest variable v are x_v times all of degree m - 1 without a
 * larger one, and these are a prefix of degree m - 1. So a whole degree is d runs, each one
 * multiplication of consecutive numbers. */
#include "poly.h"
#include <math.h>

size_t pare_monomials_count(size_t d, size_t degree)
{
    size_t c = 1; /* C(d + i, i): each product is divisible by i */
    for (size_t i = 1; i <= degree; i++) {
        size_t next;
        if (!pare_mul(&next, c, d + i)) return SIZE_MAX;
        c = next / i;
    }
    return c;
}

pare_status pare_monomials_graded(pare_monomials *out, pare_arena *a, size_t d, size_t degree,
                                  pare_err *err)
{
    const size_t n = pare_monomials_count(d, degree);
    if (n > POLY_MAX_FEATURES)
        return pare_fail(err, PARE_ERR_INPUT, "monomials of degree %zu in %zu variables: too many",
                         degree, d);
    uint32_t *const parent = pare_alloc(a, n, sizeof *parent);
    uint32_t *const var = pare_alloc(a, n, sizeof *var);
    uint32_t *const power = pare_alloc(a, n, sizeof *power);
    double *const weight = pare_alloc(a, n, sizeof *weight);
    if (!parent || !var || !power || !weight) return pare_no_memory(err);
    weight[0] = 1;
    size_t count = 1;
    for (size_t m = 1, first = 0; m <= degree; m++) {
        const size_t level = first;
        first = count;
        for (size_t v = 0; v < d; v++) {
            const size_t prefix =
                m == 1 ? 1
                       : pare_monomials_count(v + 1, m - 1) - pare_monomials_count(v + 1, m - 2);
            for (size_t from = level; from < level + prefix; from++) { /* x_v times this entry */
                const size_t e = count++;
                size_t times = 1; /* power of v: counted down the parents */
                for (size_t p = from; p && var[p] == v; p = parent[p]) times++;
                parent[e] = (uint32_t)from;
                var[e] = (uint32_t)v;
                power[e] = (uint32_t)m;
                weight[e] = weight[from] * (double)m / (double)times;
            }
        }
    }
    *out = (pare_monomials){d, degree, n, parent, var, power, weight};
    PARE_ASSERT(count == n);
    return PARE_OK;
}

/* ---- runs and blocks ------------------------------------------------------------------------ */

/* A run reads nothing that it writes: its monomials are of one degree. */
static bool continues_run(const pare_monomials *m, const poly_run *r, size_t e)
{
    return m->var[e] == r->var && m->parent[e] == r->from + r->count &&
           m->power[e] == m->power[r->to];
}

/* Runs over blocks, none across two. */
static void cut_blocks(poly_table *t)
{
    const pare_monomials *const m = t->m;
    poly_block *b = NULL;
    poly_run *r = NULL;
    for (size_t e = 0; e < m->count; e++) {
        PARE_ASSERT(e == 0 || m->power[e] >= m->power[e - 1]);
        if (!b || b->count == POLY_BLOCK || m->power[e] != m->power[b->first]) {
            b = &t->blocks[t->nblocks++];
            *b = (poly_block){.first = e, .run = t->nruns};
            r = NULL;
        }
        b->count++;
        if (e == 0) continue; /* the constant is no product */
        if (r && continues_run(m, r, e)) {
            r->count++;
            continue;
        }
        r = &t->runs[t->nruns++];
        *r = (poly_run){.to = e, .from = m->parent[e], .count = 1, .var = m->var[e]};
        b->nruns++;
    }
}

pare_status poly_table_new(poly_table *out, pare_arena *a, const pare_monomials *m, pare_err *err)
{
    poly_table *const t = out;
    poly_run *r = NULL;
    *t = (poly_table){.m = m, .ld = padded(m->count, POLY_LANES)};
    t->runs = pare_alloc(a, m->count, sizeof *t->runs);
    t->whole = pare_alloc(a, m->count, sizeof *t->whole);
    t->blocks = pare_alloc(a, m->count, sizeof *t->blocks);
    if (!t->runs || !t->whole || !t->blocks) return pare_no_memory(err);
    while (t->low < m->count && m->power[t->low] < m->power[m->count - 1]) t->low++;
    cut_blocks(t);
    /* Whole runs, behind the variables themselves; the long ones of the highest degree, at the end,
     * need not be stored. */
    while (1 + t->copied < m->count && m->parent[1 + t->copied] == 0 &&
           m->var[1 + t->copied] == t->copied)
        t->copied++;
    for (size_t e = 1 + t->copied; e < m->count; e++) {
        if (r && continues_run(m, r, e)) {
            r->count++;
            continue;
        }
        r = &t->whole[t->nwhole++];
        *r = (poly_run){.to = e, .from = m->parent[e], .count = 1, .var = m->var[e]};
    }
    t->nstored = t->nwhole;
    t->stored = m->count;
    while (t->nstored > 0 && t->whole[t->nstored - 1].count >= POLY_LONG_RUN &&
           t->whole[t->nstored - 1].to >= t->low)
        t->stored = t->whole[--t->nstored].to;
    t->ldphi = padded(t->stored + 2 * POLY_LANES, POLY_LANES);
    if (t->ldphi / 16 % 2 == 0) t->ldphi += 16; /* an odd number of cache lines: uses all sets */
    /* The variables of the stored monomials, in the order of multiplication. */
    const size_t degree = m->power[t->stored - 1], ld = padded(t->stored, POLY_LANES);
    if (m->d > POLY_LANES || degree == 0 || degree > POLY_FACTORS) return PARE_OK;
    uint32_t *const factor = pare_alloc(a, degree * ld, sizeof *factor);
    if (!factor) return pare_no_memory(err);
    for (size_t i = 0; i < degree * ld; i++) factor[i] = POLY_LANES;
    for (size_t e = 1; e < t->stored; e++)
        for (size_t p = e; p > 0; p = m->parent[p]) factor[(m->power[p] - 1) * ld + e] = m->var[p];
    t->factors = (poly_factors){factor, degree, ld};
    return PARE_OK;
}
