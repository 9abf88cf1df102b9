/* reduce_ticket.c - models as a seed and masks, beside plain rounding to as many bytes
 * (reduce.c). */
#include "cert/heldout.h"
#include "reduce_parts.h"
#include "cert/outputs.h"
#include "data/evaluate.h"
#include "linalg/bounds.h"
#include "ticket/ticket_internal.h"
#include <pare/cut.h>

#include <math.h>

enum {
    FEWEST_BITS = 2,
    MOST_BITS = 26, /* more do not serve an f32 */
    SEARCH_STEP = 3
};

static pare_status make_ticket(reducer *r, pare_model **small)
{
    return pare_err_path(
        r->err, pare_ticket(small, &r->out->ticket, r->m, &r->out->ticket_made, r->exec, r->err),
        r->o->from);
}

/* The fewest bits whose proven bound is small enough: it need not fall with every bit, so that the
 * answer is one that was proven, not the least there is. Few bits are quick: upwards until one is
 * enough, then by halves. */
static pare_status search_bits(reducer *r)
{
    pare_ticket_opts *const t = &r->out->ticket_made;
    size_t low = FEWEST_BITS, high = MOST_BITS + 1;
    while (low < high) {
        pare_model *g = NULL;
        pare_output_bound bound;
        const bool found = high <= MOST_BITS;
        const size_t next = low + (found ? (high - low) / 2 : SEARCH_STEP);
        t->bits = next < MOST_BITS ? next : MOST_BITS;
        pare_status st = make_ticket(r, &g);
        if (!st)
            st = pare_outputs_compare(&bound, NULL, r->m, g, &r->out->inputs.held.set, false,
                                      r->exec, r->err);
        pare_model_free(g);
        if (st) return st;
        if (pare_ub_written(bound.gap.proven) <= r->o->max_error)
            high = t->bits;
        else
            low = t->bits + 1;
    }
    t->bits = high;
    if (high <= MOST_BITS) return PARE_OK;
    return pare_fail(r->err, PARE_ERR_PROMISE,
                     "no ticket of up to %d bits a weight is proven to stay within max_error %g; "
                     "nothing was written",
                     MOST_BITS, r->o->max_error);
}

/* Plain rounding into as many bytes; `fit` NULL: without feedback. */
static pare_status compare_rounding(reducer *r, pare_rounded *to, const pare_inputs *fit)
{
    const pare_reduction *const out = r->out;
    const pare_cert_inputs *const held = &out->inputs.held;
    pare_model *g = NULL;
    pare_status st = pare_ticket_rounded(&g, &to->bits, r->m, &out->ticket, fit, r->exec, r->err);
    if (!st) st = pare_measure(&to->measured, r->m, g, &held->set, r->exec, r->err);
    if (!st)
        st = pare_output_error(&to->error, r->m, g, pare_heldout_measured(&out->inputs), r->arena,
                               r->exec, r->err);
    to->has_metric = !st && out->has_metric;
    pare_comparison scores = {0};
    if (to->has_metric) /* of embeddings the cosine to the model's own */
        st = pare_evaluate_against(&scores, g, r->m, &held->data, false, r->exec, r->err);
    to->metric = scores.model;
    if (to->has_metric && !st) reduce_in_nats(&to->metric);
    pare_model_free(g);
    return st;
}

pare_status reduce_ticket(reducer *r)
{
    const pare_reduce_opts *const o = r->o;
    pare_reduction *const out = r->out;
    pare_ticket_opts *const t = &out->ticket_made;
    pare_ticket_report *const report = &out->ticket;
    const bool search = !o->ticket.hidden && !o->ticket.bits;
    const bool feedback = o->ticket.method == PARE_TICKET_FEEDBACK;
    pare_model *small = NULL;
    pare_status st = reduce_load(r, (pare_heldout_opts){.nothing_fitted = !feedback});
    *t = o->ticket;
    t->seed = o->seed;
    t->dtype = o->dtype;
    if (feedback && o->data) t->fit = &out->inputs.fit;
    if (search) reduce_phase(r, "find the number of bits", 60);
    if (!st && search) st = search_bits(r);
    reduce_phase(r, NULL, search ? 15 : 50);
    if (!st) st = make_ticket(r, &small);
    /* The report lives in the ticket, which publishing frees. */
    if (!st &&
        !(report->matrix = reduce_copy(r, report->matrix, report->n, sizeof *report->matrix)))
        st = pare_no_memory(r->err);
    for (size_t i = 0; !st && i < report->n; i++)
        if (!(report->matrix[i].name = pare_strdup(r->arena, report->matrix[i].name)))
            st = pare_no_memory(r->err);
    if (!st) st = reduce_event(r, PARE_REDUCE_MADE);
    reduce_phase(r, NULL, search ? 20 : 44);
    if (!st) st = reduce_publish(r, &small, "ticket");
    pare_model_free(small);
    out->held_out = out->inputs.apart;
    if (!st) st = reduce_measure(r);
    if (!st) st = reduce_output_error(r);
    if (st || report->merged) return st;
    st = compare_rounding(r, &out->rounded, NULL);
    if (!st && t->fit) st = compare_rounding(r, &out->rounded_with_feedback, t->fit);
    return st;
}
