/* measured_difference.c - the measured tier: run both models, look at the largest difference.
 * Evidence, not a bound. */
#include "prove.h"
#include "cert_internal.h"

#include <math.h>

static pare_status same_shape(const pare_model *f, const pare_model *g, const pare_input *in,
                              size_t i, pare_err *err)
{
    const size_t rf = pare_output_rows(f, in), rg = pare_output_rows(g, in);
    const size_t cf = pare_model_outputs(f), cg = pare_model_outputs(g);
    if (rf == rg && cf == cg) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT,
                     "the outputs of the two models differ in shape on input %zu: [%zu, %zu] and "
                     "[%zu, %zu]",
                     i, rf, cf, rg, cg);
}

static pare_status largest_gap(double *out, pare_arena *a, const pare_model *f, const pare_model *g,
                               const pare_input *in, size_t i, const pare_exec *exec, pare_err *err)
{
    size_t n = 0;
    if (!pare_mul(&n, pare_output_rows(f, in), pare_model_outputs(f))) return pare_no_memory(err);
    double *const yf = pare_alloc(a, n ? n : 1, sizeof *yf);
    double *const yg = pare_alloc(a, n ? n : 1, sizeof *yg);
    if (!yf || !yg) return pare_no_memory(err);
    pare_status st = pare_forward_f64(yf, f, in, NULL, exec, err);
    if (st == PARE_OK) st = pare_forward_f64(yg, g, in, NULL, exec, err);
    for (size_t k = 0; st == PARE_OK && k < n; k++) {
        const double d = fabs(yf[k] - yg[k]);
        if (!isfinite(d)) /* fmax would drop the nan and call the models equal */
            return pare_fail(err, PARE_ERR_NONFINITE,
                             "output %zu of input %zu is %g in one model and %g in the other", k, i,
                             yf[k], yg[k]);
        if (d > *out) *out = d;
    }
    return st;
}

pare_status pare_measure(double *out, const pare_model *f, const pare_model *g,
                         const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    if (set->n == 0) return pare_fail(err, PARE_ERR_INPUT, "there is no input to measure on");
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_mark start = pare_arena_mark(a);
    double largest = 0;
    pare_status st = PARE_OK;
    for (size_t i = 0; st == PARE_OK && i < set->n; i++) {
        st = same_shape(f, g, &set->in[i], i, err);
        if (st == PARE_OK) st = largest_gap(&largest, a, f, g, &set->in[i], i, exec, err);
        pare_arena_reset(a, start);
        if (!st) st = pare_progress(exec, "measure", i + 1, set->n, err);
    }
    pare_arena_free(a);
    if (st == PARE_OK) *out = largest;
    return st;
}
