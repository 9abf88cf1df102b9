/* gap.c - how far two models are apart on a set of inputs, proven.
 *
 * For every input and every output entry, with midpoints F, G and radii rf, rg of its row,
 *     |f - g| <= |F - G| + rf + rg,
 * and the largest of these is the bound. Each model's weights are bounded once; then one group of
 * sequences at a time is enclosed, so memory does not grow with the set.
 *
 * First in f64: that gives `measured`, its slack and bounds. Through many layers the worst-case
 * stretching of 2^-53 may be larger than the difference itself; then, unless it is too much work,
 * everything is enclosed again with wide midpoints, and the smaller of both bounds is taken (both
 * are true). The rule:
 *     again, if  proven > (1 + SHARE) measured  and the work of both models is at most WORK.
 * It depends on shapes and on the f64 result alone, so a verifier goes the same way. (On another
 * CPU the f64 result has other last bits. SHARE is below the 1e-4 by which writers raise a bound:
 * where the two would go different ways, one proves what the other has written.) */
#include "enclose.h"
#include <pare/exchange.h>

enum { ROWS = 512 }; /* tokens enclosed at a time, at least one sequence */
#define SHARE 3e-5
#define WORK  2e10   /* multiplications, about ten seconds on two cores */
enum { PAIR = 256 }; /* multiplications that the weight of one key costs beside its products */

typedef struct prover {
    const pare_model *f, *g;
    pare_model_norms *nf, *ng;
    const pare_exec *exec;
    bool wide;
    pare_gap *gap;
    double *each; /* bounds of the sequences by themselves; NULL: not asked for */
} prover;

static double most(double a, double b) /* a nan wins and is inf */
{
    return up_max(a, b);
}

/* |F - G| of one entry. A wide difference is within 2^-52 of its hi, relatively. */
static double apart_at(const pare_enclosure *f, const pare_enclosure *g, size_t k)
{
    if (!f->lo) return fabs(f->mid[k] - g->mid[k]);
    const double d = fabs(dd_sub((dd){f->mid[k], f->lo[k]}, (dd){g->mid[k], g->lo[k]}).hi);
    return d == 0 ? 0 : up(d);
}

/* Sequences of `rows` output rows each; *each is the first one's bound. */
static void compare(pare_gap *gap, double *each, size_t rows, const pare_enclosure *f,
                    const pare_enclosure *g)
{
    for (size_t i = 0; i < f->rows; i++) {
        const double slack = up_add(f->rad[i], g->rad[i]);
        double apart = 0;
        for (size_t k = 0; k < f->cols; k++) {
            apart = most(apart, apart_at(f, g, i * f->cols + k));
            gap->scale = most(gap->scale, fabs(f->mid[i * f->cols + k]));
        }
        /* The difference was rounded once; where it is exactly 0 so were the midpoints equal. */
        const double bound = up_add(apart == 0 ? 0 : up(apart), slack);
        gap->measured = most(gap->measured, apart);
        gap->slack = most(gap->slack, slack);
        gap->proven = pare_ub_max(gap->proven, pare_ub_exact(bound));
        gap->rounding = pare_ub_max(gap->rounding, pare_ub_exact(g->rad32[i]));
        if (each) each[i / rows] = most(each[i / rows], bound);
    }
}

static pare_status enclose(pare_enclosure *out, pare_arena *a, const prover *p, const pare_model *m,
                           const pare_model_norms *n, const pare_input *in, pare_err *err)
{
    return p->wide ? pare_enclose_wide(out, a, m, n, in, p->exec, err)
                   : pare_enclose(out, a, m, n, in, p->exec, err);
}

static pare_status one_group(const prover *p, double *each, const pare_input *in, pare_err *err)
{
    pare_enclosure f, g;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = enclose(&f, a, p, p->f, p->nf, in, err);
    if (st == PARE_OK) st = enclose(&g, a, p, p->g, p->ng, in, err);
    if (st == PARE_OK && (f.rows != g.rows || f.cols != g.cols))
        st = pare_fail(err, PARE_ERR_INPUT, "gap: outputs [%zu, %zu] and [%zu, %zu] of the models",
                       f.rows, f.cols, g.rows, g.cols);
    if (st == PARE_OK) compare(p->gap, each, f.rows / in->batch, &f, &g);
    pare_arena_free(a);
    return st;
}

static pare_status one_input(const prover *p, double *each, const pare_input *in, pare_err *err)
{
    const size_t fit = in->tokens > 0 ? ROWS / in->tokens : 0, step = fit > 0 ? fit : 1;
    pare_status st = PARE_OK;
    if (in->batch == 0) return pare_input_check(p->f, in, err);
    for (size_t b = 0; st == PARE_OK && b < in->batch; b += step) {
        pare_input part = *in;
        part.batch = in->batch - b < step ? in->batch - b : step;
        if (in->ids) part.ids = in->ids + b * in->tokens;
        if (in->x) part.x = in->x + b * in->tokens * in->width;
        st = one_group(p, each ? each + b : NULL, &part, err);
    }
    return st;
}

static pare_status whole_set(prover *p, pare_gap *gap, const pare_inputs *set, pare_err *err)
{
    pare_status st = PARE_OK;
    size_t at = 0;
    *gap = (pare_gap){0};
    p->gap = gap;
    for (size_t i = 0; st == PARE_OK && i < set->n; i++) {
        st = one_input(p, p->each ? p->each + at : NULL, &set->in[i], err);
        at += set->in[i].batch;
        pare_progress(p->exec, p->wide ? "prove (wide)" : "prove", i + 1, set->n);
    }
    return st;
}

static double pairs_of(const pare_model *m, const pare_input *in)
{
    const double t = (double)in->tokens;
    double n = 0;
    if (m->pattern.kind == PARE_GRAPH) {
        if (in->graph) n = (double)in->graph->ptr[in->graph->n];
        return n + t * (1 + (double)m->pattern.expander_degree);
    }
    for (size_t i = 0; i < in->tokens; i++)
        n += (double)pare_visible(&m->pattern, NULL, in->tokens, i).count;
    return n;
}

static double work_of(const pare_model *m, const pare_inputs *set)
{
    double heads = 0, work = 0;
    for (size_t b = 0; b < m->nblocks; b++)
        if (m->blocks[b].attn.kind != PARE_ATTN_NONE) heads += (double)m->blocks[b].attn.nheads;
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        const double pairs = pairs_of(m, in);
        const uint64_t macs = pare_model_size(m, in->tokens, (uint64_t)pairs).macs;
        work += (double)in->batch * ((double)macs + PAIR * heads * pairs);
    }
    return work;
}

bool enclose_goes_wide(const pare_gap *gap, const pare_model *f, const pare_model *g,
                       const pare_inputs *set)
{
    if (gap->proven.v <= (1 + SHARE) * gap->measured) return false;
    return work_of(f, set) + work_of(g, set) <= WORK;
}

/* The set once more with wide midpoints; measured, slack and scale stay those of f64. */
static pare_status again_wide(prover *p, pare_gap *gap, pare_arena *a, const pare_inputs *set,
                              pare_err *err)
{
    pare_gap wide;
    double *const narrow = p->each;
    const size_t n = narrow ? pare_draws(set) : 0;
    p->wide = true;
    if (narrow) p->each = pare_alloc(a, n, sizeof *p->each);
    if (n > 0 && !p->each) return pare_no_memory(err);
    const pare_status st = whole_set(p, &wide, set, err);
    if (st != PARE_OK) return st;
    gap->proven = pare_ub_min(gap->proven, wide.proven);
    gap->rounding = pare_ub_min(gap->rounding, wide.rounding);
    for (size_t i = 0; i < n; i++) narrow[i] = fmin(narrow[i], p->each[i]);
    return PARE_OK;
}

static pare_status prove(pare_gap *out, double *each, const pare_model *f, const pare_model *g,
                         const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    pare_gap gap = {0};
    prover p = {.f = f, .g = g, .exec = exec, .each = each};
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_model_norms_new(&p.nf, a, f, exec, err);
    if (st == PARE_OK) st = pare_model_norms_new(&p.ng, a, g, exec, err);
    if (st == PARE_OK) st = whole_set(&p, &gap, set, err);
    if (st == PARE_OK && enclose_goes_wide(&gap, f, g, set)) st = again_wide(&p, &gap, a, set, err);
    if (st == PARE_OK) *out = gap;
    pare_arena_free(a);
    return st;
}

pare_status pare_prove_gap(pare_gap *out, const pare_model *f, const pare_model *g,
                           const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    *out = (pare_gap){.proven = pare_ub_inf(), .rounding = pare_ub_inf(), .slack = INFINITY};
    return prove(out, NULL, f, g, set, exec, err);
}

pare_status pare_prove_each(double *each, const pare_model *f, const pare_model *g,
                            const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    pare_gap gap;
    for (size_t i = 0, n = pare_draws(set); i < n; i++) each[i] = 0;
    return prove(&gap, each, f, g, set, exec, err);
}
