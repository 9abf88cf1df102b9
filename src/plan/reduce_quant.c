/* reduce_quant.c - models whose matrices are integers with scales (reduce.c). */
#include "quant/quant_internal.h"
#include "reduce_parts.h"
#include <pare/cut.h>

pare_status reduce_quant(reducer *r)
{
    const pare_reduce_opts *const o = r->o;
    pare_reduction *const out = r->out;
    pare_quant_opts *const q = &out->quant_made;
    pare_quant_report *const report = &out->quant;
    pare_model *small = NULL;
    pare_status st = reduce_load(r, (pare_heldout_opts){.nothing_fitted = !o->data});
    *q = o->quant;
    q->dtype = o->dtype;
    q->seed = o->seed;
    if (o->data) q->fit = &out->inputs.fit;
    reduce_phase(r, NULL, 40);
    if (!st)
        st = pare_err_path(r->err, pare_quant(&small, report, r->m, q, r->exec, r->err), o->from);
    /* The report lives in the model, which publishing frees. */
    if (!st &&
        !(report->matrix = reduce_copy(r, report->matrix, report->n, sizeof *report->matrix)))
        st = pare_no_memory(r->err);
    for (size_t i = 0; !st && i < report->n; i++)
        if (!(report->matrix[i].name = pare_strdup(r->arena, report->matrix[i].name)))
            st = pare_no_memory(r->err);
    if (!st) st = reduce_event(r, PARE_REDUCE_MADE);
    reduce_phase(r, NULL, 54);
    if (!st) st = reduce_publish(r, &small, "quant");
    pare_model_free(small);
    out->held_out = out->inputs.apart;
    if (!st) st = reduce_measure(r);
    return st ? st : reduce_output_error(r);
}
