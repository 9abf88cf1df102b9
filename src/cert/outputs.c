/* What is proven about the outputs on the given inputs: how far they are apart, and for which rows
 * the largest entry is the same in both models. One pass of f64 enclosures serves both; where it
 * is too wide to say much about the distance, pare_prove_gap goes on with wide midpoints. */
#include <pare/outputs.h>
#include <math.h>

#define SHARE     3e-5 /* of the measured distance: as in pare_prove_gap */
#define WIDE_WORK 2e10 /* multiplications: beyond it wide midpoints take minutes */

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

void pare_outputs_row(pare_output_bound *out, const pare_enclosure *f, const pare_enclosure *g,
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

/* ---- all rows -------------------------------------------------------------------------------- */

/* Both models with their norms, made once. */
typedef struct both {
    const pare_model *m[2];
    pare_model_norms *norms[2];
    const pare_exec *exec;
    pare_err *err;
} both;

static pare_status both_new(both *b, pare_arena *a, const pare_model *f, const pare_model *g,
                            const pare_exec *exec, pare_err *err)
{
    *b = (both){{f, g}, {NULL, NULL}, exec, err};
    pare_status st = PARE_OK;
    for (int k = 0; k < 2 && !st; k++)
        st = pare_model_norms_new(&b->norms[k], a, b->m[k], exec, err);
    return st;
}

static pare_status compare_input(pare_output_bound *out, const both *b, const pare_input *in,
                                 pare_arena *a)
{
    pare_enclosure e[2];
    pare_status st = PARE_OK;
    for (int k = 0; k < 2 && !st; k++)
        st = pare_enclose(&e[k], a, b->m[k], b->norms[k], in, b->exec, b->err);
    if (!st && (e[0].rows != e[1].rows || e[0].cols != e[1].cols))
        return pare_fail(b->err, PARE_ERR_INPUT, "outputs [%zu, %zu] and [%zu, %zu] of the models",
                         e[0].rows, e[0].cols, e[1].rows, e[1].cols);
    for (size_t i = 0; !st && i < e[0].rows; i++) pare_outputs_row(out, &e[0], &e[1], i);
    for (int k = 0; in->target && k < 2 && !st; k++) /* of the one input there is */
        st = pare_auc_interval(&out->auc[k], a, &e[k], in->target, b->err);
    return st;
}

/* What lies below a wide midpoint counts as radius: then it is an enclosure like any other. */
static void without_low_parts(pare_enclosure *e)
{
    for (size_t i = 0; i < e->rows; i++) {
        double low = 0;
        for (size_t k = 0; k < e->cols; k++) low = fmax(low, fabs(e->lo[i * e->cols + k]));
        e->rad[i] = pare_ub_add(pare_ub_exact(e->rad[i]), pare_ub_exact(low)).v;
    }
}

static pare_status compare_wide(pare_output_bound *out, const both *b, const pare_input *in,
                                pare_arena *a)
{
    pare_enclosure e[2];
    pare_status st = PARE_OK;
    for (int k = 0; k < 2 && !st; k++) {
        st = pare_enclose_wide(&e[k], a, b->m[k], b->norms[k], in, b->exec, b->err);
        if (!st) without_low_parts(&e[k]);
    }
    for (size_t i = 0; !st && i < e[0].rows; i++) pare_outputs_row(out, &e[0], &e[1], i);
    return st;
}

/* Input by input, each with memory of its own. */
static pare_status each_input(pare_output_bound *out, const pare_model *f, const pare_model *g,
                              const pare_inputs *set, bool wide, const pare_exec *exec,
                              pare_err *err)
{
    both b;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? both_new(&b, a, f, g, exec, err) : pare_no_memory(err);
    for (size_t i = 0; !st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(a);
        st = wide ? compare_wide(out, &b, &set->in[i], a) : compare_input(out, &b, &set->in[i], a);
        pare_arena_reset(a, mark);
        pare_progress(exec, "prove", i + 1, set->n);
    }
    pare_arena_free(a);
    return st;
}

pare_status pare_outputs_compare(pare_output_bound *out, const pare_model *f, const pare_model *g,
                                 const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    *out = (pare_output_bound){.auc = {{1, 0}, {1, 0}}};
    pare_status st = each_input(out, f, g, set, false, exec, err);
    for (int k = 0; k < 2 && set->n != 1; k++) out->auc[k] = (pare_auc_bound){1, 0};
    if (st || out->gap.proven.v <= (1 + SHARE) * out->gap.measured) return st;
    pare_gap again;
    st = pare_prove_gap(&again, f, g, set, exec, err);
    if (!st) out->gap = again;
    return st;
}

double pare_passes_work(const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    double sum = 0;
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        const uint64_t edges = in->graph ? in->graph->ptr[in->graph->n] : 0;
        sum += (double)in->batch * ((double)pare_model_size(f, in->tokens, edges).macs +
                                    (double)pare_model_size(g, in->tokens, edges).macs);
    }
    return sum;
}

/* Through many layers f64 alone says too little about single rows. */
pare_status pare_outputs_certain(pare_output_bound *o, const pare_model *f, const pare_model *g,
                                 const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    pare_output_bound wide = {0};
    if (o->certain == o->rows || pare_passes_work(f, g, set) > WIDE_WORK) return PARE_OK;
    const pare_status st = each_input(&wide, f, g, set, true, exec, err);
    if (!st && wide.certain > o->certain) o->certain = wide.certain;
    return st;
}
