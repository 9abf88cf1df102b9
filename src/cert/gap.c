/* gap.c - how far two models are apart on a set of inputs, proven.
 *
 * For every input and every output entry, with midpoints F, G and radii rf, rg of its row,
 *     |f - g| <= |F - G| + rf + rg,
 * and the largest of these is the bound. Each model's weights are bounded once; then one group of
 * sequences at a time is enclosed, so memory does not grow with the set. */
#include "enclose.h"

enum { ROWS = 512 }; /* tokens enclosed at a time, at least one sequence */

typedef struct prover {
    const pare_model *f, *g;
    pare_model_norms *nf, *ng;
    const pare_exec *exec;
    pare_gap *gap;
} prover;

static double most(double a, double b) /* a nan wins and is inf */
{
    return up_max(a, b);
}

static void compare(pare_gap *gap, const pare_enclosure *f, const pare_enclosure *g)
{
    for (size_t i = 0; i < f->rows; i++) {
        const double slack = up_add(f->rad[i], g->rad[i]);
        double apart = 0;
        for (size_t k = 0; k < f->cols; k++) {
            const double x = f->mid[i * f->cols + k], y = g->mid[i * g->cols + k];
            apart = most(apart, fabs(x - y));
            gap->scale = most(gap->scale, fabs(x));
        }
        /* The difference was rounded once; where it is exactly 0 so were the midpoints equal. */
        const double bound = up_add(apart == 0 ? 0 : up(apart), slack);
        gap->measured = most(gap->measured, apart);
        gap->slack = most(gap->slack, slack);
        gap->proven = pare_ub_max(gap->proven, pare_ub_exact(bound));
        gap->rounding = pare_ub_max(gap->rounding, pare_ub_exact(g->rad32[i]));
    }
}

static pare_status one_group(const prover *p, const pare_input *in, pare_err *err)
{
    pare_enclosure f, g;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_enclose(&f, a, p->f, p->nf, in, p->exec, err);
    if (st == PARE_OK) st = pare_enclose(&g, a, p->g, p->ng, in, p->exec, err);
    if (st == PARE_OK && (f.rows != g.rows || f.cols != g.cols))
        st = pare_fail(err, PARE_ERR_INPUT, "gap: outputs [%zu, %zu] and [%zu, %zu] of the models",
                       f.rows, f.cols, g.rows, g.cols);
    if (st == PARE_OK) compare(p->gap, &f, &g);
    pare_arena_free(a);
    return st;
}

static pare_status one_input(const prover *p, const pare_input *in, pare_err *err)
{
    const size_t fit = in->tokens > 0 ? ROWS / in->tokens : 0, step = fit > 0 ? fit : 1;
    pare_status st = PARE_OK;
    if (in->batch == 0) return pare_input_check(p->f, in, err);
    for (size_t b = 0; st == PARE_OK && b < in->batch; b += step) {
        pare_input part = *in;
        part.batch = in->batch - b < step ? in->batch - b : step;
        if (in->ids) part.ids = in->ids + b * in->tokens;
        if (in->x) part.x = in->x + b * in->tokens * in->width;
        st = one_group(p, &part, err);
    }
    return st;
}

pare_status pare_prove_gap(pare_gap *out, const pare_model *f, const pare_model *g,
                           const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    *out = (pare_gap){.proven = pare_ub_inf(), .rounding = pare_ub_inf(), .slack = INFINITY};
    pare_gap gap = {0};
    prover p = {.f = f, .g = g, .exec = exec, .gap = &gap};
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_model_norms_new(&p.nf, a, f, exec, err);
    if (st == PARE_OK) st = pare_model_norms_new(&p.ng, a, g, exec, err);
    for (size_t i = 0; st == PARE_OK && i < set->n; i++) {
        st = one_input(&p, &set->in[i], err);
        pare_progress(exec, "prove", i + 1, set->n);
    }
    if (st == PARE_OK) *out = gap;
    pare_arena_free(a);
    return st;
}
