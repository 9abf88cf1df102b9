/* reduce_quant.c - models whose matrices are integers with scales (reduce.c). */
#include "cert/outputs.h"
#include "linalg/bounds.h"
#include "quant/quant_internal.h"
#include "reduce_parts.h"
#include <pare/cut.h>

#include <math.h>

static pare_status make_quant(reducer *r, pare_model **small)
{
    return pare_err_path(
        r->err, pare_quant(small, &r->out->quant, r->m, &r->out->quant_made, r->exec, r->err),
        r->o->from);
}

/* The fewest bits whose proven bound is small enough. It need not fall with every bit, so that the
 * answer is one that was proven, not the least there is. */
static pare_status search_bits(reducer *r)
{
    pare_quant_opts *const q = &r->out->quant_made;
    const quant_bits range = quant_bits_of(q->method);
    int low = 0, high = (int)((range.most - range.least) / range.step) + 1;
    const int none = high;
    while (low < high) {
        pare_model *g = NULL;
        pare_output_bound bound;
        const int next = (low + high) / 2;
        q->bits = range.least + next * range.step;
        pare_status st = make_quant(r, &g);
        if (!st)
            st = pare_outputs_compare(&bound, NULL, r->m, g, &r->out->inputs.held.set, false,
                                      r->exec, r->err);
        pare_model_free(g);
        if (st) return st;
        if (pare_ub_written(bound.gap.proven) <= r->o->max_error)
            high = next;
        else
            low = next + 1;
    }
    q->bits = range.least + high * range.step;
    if (high < none) return PARE_OK;
    return pare_fail(r->err, PARE_ERR_PROMISE,
                     "up to %g bits a weight are not proven to stay within max_error %g; nothing "
                     "was written",
                     range.most, r->o->max_error);
}

/* Second moments need some rows for each of their columns, and more say little more: of the usual
 * number of inputs those that have so many tokens are enough. */
static void limit_fit(reducer *r)
{
    enum { ENOUGH_TOKENS = 16384 };
    static const pare_reduce_opts usual = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_QUANT);
    pare_inputs *const fit = &r->out->inputs.fit;
    size_t tokens = 0, n = 0;
    if (r->o->fit_inputs != usual.fit_inputs) return; /* as the caller wants it */
    while (n < fit->n && tokens < ENOUGH_TOKENS) {
        tokens += fit->in[n].batch * fit->in[n].tokens;
        n++;
    }
    fit->n = n;
}

pare_status reduce_quant(reducer *r)
{
    const pare_reduce_opts *const o = r->o;
    pare_reduction *const out = r->out;
    pare_quant_opts *const q = &out->quant_made;
    pare_quant_report *const report = &out->quant;
    const bool search = !(o->quant.bits > 0) && !o->quant.max_bytes && isfinite(o->max_error);
    pare_model *small = NULL;
    pare_status st = reduce_load(r, (pare_heldout_opts){.nothing_fitted = !o->data});
    if (!st && o->data) st = reduce_new_inputs(r, search);
    *q = o->quant;
    q->dtype = o->dtype;
    q->seed = o->seed;
    if (!st && o->data) limit_fit(r);
    if (o->data) q->fit = &out->inputs.fit;
    if (!q->fit && q->method == PARE_QUANT_GPTQ) q->method = PARE_QUANT_RTN;
    if (search) reduce_phase(r, "find the number of bits", 60);
    if (!st && search) st = search_bits(r);
    reduce_phase(r, NULL, search ? 15 : 40);
    if (!st) st = make_quant(r, &small);
    /* The report lives in the model, which publishing frees. */
    if (!st &&
        !(report->matrix = reduce_copy(r, report->matrix, report->n, sizeof *report->matrix)))
        st = pare_no_memory(r->err);
    for (size_t i = 0; !st && i < report->n; i++)
        if (!(report->matrix[i].name = pare_strdup(r->arena, report->matrix[i].name)))
            st = pare_no_memory(r->err);
    if (!st) st = reduce_event(r, PARE_REDUCE_MADE);
    reduce_phase(r, NULL, search ? 20 : 54);
    if (!st) st = reduce_publish(r, &small, "quant");
    pare_model_free(small);
    out->held_out = out->inputs.apart;
    if (!st) st = reduce_measure(r);
    return st ? st : reduce_output_error(r);
}
