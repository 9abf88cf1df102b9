/* What is proven about the outputs on the given inputs: how far they are apart, and for which rows
 * the largest entry is the same in both models. One pass of f64 enclosures serves both; where it
 * is too wide to say much about the distance, pare_prove_gap goes on with wide midpoints. */
#include "prove.h"
#include <math.h>

#define SHARE 3e-5 /* of the measured distance: as in pare_prove_gap */

static double most(double a, double b) /* a nan wins and is inf */
{
    return a >= b ? a : isnan(a) || isnan(b) ? INFINITY : b;
}

static size_t largest(const double *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Entry c is above all others, whatever the exact values within `rad` are. The difference of two
 * doubles is rounded once: the margin is taken one step smaller. */
static bool surely_largest(const double *v, size_t n, size_t c, double rad)
{
    const double need = pare_ub_mul(pare_ub_exact(2), pare_ub_of(rad)).v;
    for (size_t i = 0; i < n; i++)
        if (i != c && !(nextafter(v[c] - v[i], -INFINITY) > need)) return false;
    return true;
}

void outputs_compare_row(output_bound *out, const pare_enclosure *f, const pare_enclosure *g,
                         size_t i)
{
    const double *const a = f->mid + i * f->cols, *const b = g->mid + i * g->cols;
    double apart = 0;
    for (size_t k = 0; k < f->cols; k++) {
        apart = most(apart, fabs(a[k] - b[k]));
        out->gap.scale = most(out->gap.scale, fabs(a[k]));
    }
    const pare_ub slack = pare_ub_add(pare_ub_exact(f->rad[i]), pare_ub_exact(g->rad[i]));
    const pare_ub far = apart == 0 ? pare_ub_exact(0) : pare_ub_of(apart);
    out->gap.measured = most(out->gap.measured, apart);
    out->gap.slack = most(out->gap.slack, slack.v);
    out->gap.proven = pare_ub_max(out->gap.proven, pare_ub_add(far, slack));
    out->gap.rounding = pare_ub_max(out->gap.rounding, pare_ub_exact(g->rad32[i]));
    const size_t c = largest(a, f->cols);
    out->rows++;
    out->certain +=
        surely_largest(a, f->cols, c, f->rad[i]) && surely_largest(b, g->cols, c, g->rad[i]);
}

static void compare_input(work *w, output_bound *out, const pare_model *const m[2],
                          pare_model_norms *const norms[2], const pare_input *in)
{
    pare_enclosure e[2];
    pare_arena *const a = pare_arena_new();
    if (!a) w->st = pare_no_memory(w->err);
    for (int k = 0; k < 2 && !w->st; k++)
        w->st = pare_enclose(&e[k], a, m[k], norms[k], in, w->exec, w->err);
    if (!w->st && (e[0].rows != e[1].rows || e[0].cols != e[1].cols))
        w_fail(w, PARE_ERR_INPUT, "outputs [%zu, %zu] and [%zu, %zu] of the models", e[0].rows,
               e[0].cols, e[1].rows, e[1].cols);
    for (size_t i = 0; !w->st && i < e[0].rows; i++) outputs_compare_row(out, &e[0], &e[1], i);
    for (int k = 0; in->target && k < 2 && !w->st; k++) /* of the one input there is */
        out->auc[k] = auc_interval(w, &e[k], in->target);
    pare_arena_free(a);
}

void outputs_compare(work *w, output_bound *out, const pare_model *f, const pare_model *g,
                     const pare_inputs *set)
{
    const pare_model *const m[2] = {f, g};
    pare_model_norms *norms[2] = {0};
    *out = (output_bound){.auc = {{1, 0}, {1, 0}}};
    for (int k = 0; k < 2 && !w->st; k++)
        w->st = pare_model_norms_new(&norms[k], w->a, m[k], w->exec, w->err);
    for (size_t i = 0; !w->st && i < set->n; i++) {
        compare_input(w, out, m, norms, &set->in[i]);
        pare_progress(w->exec, "prove", i + 1, set->n);
    }
    for (int k = 0; k < 2 && set->n != 1; k++) out->auc[k] = (auc_bound){1, 0};
    if (w->st || out->gap.proven.v <= (1 + SHARE) * out->gap.measured) return;
    pare_gap again;
    w->st = pare_prove_gap(&again, f, g, set, w->exec, w->err);
    if (!w->st) out->gap = again;
}
