/* Proving a ticket again, from the two files and the inputs alone: loading the ticket draws its
 * source anew from the seed, and both models are enclosed on every input. */
#include <pare/outputs.h>
#include <pare/publish.h>
#include <pare/ticket_bounds.h>
#include <math.h>

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    pare_output_bound o;
    again->nhypotheses = again->nstatements = again->npaper = 0;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    again->statements = pare_alloc(a, 1, sizeof *again->statements);
    if (!again->domain || !again->statements) return pare_no_memory(err);
    pare_status st = pare_outputs_compare(&o, f, g, set, exec, err);
    if (!st) st = pare_outputs_certain(&o, f, g, set, exec, err);
    if (st) return st;
    again->apriori = INFINITY;
    again->proven = o.gap.proven.v;
    again->measured = o.gap.measured;
    again->measured_slack = pare_measured_slack(&o.gap);
    again->rounding = o.gap.rounding.v;
    const double rows = (double)(o.rows ? o.rows : 1);
    again->statements[again->nstatements++] =
        (pare_statement){"rows whose largest entry may have changed", "share of the output rows",
                         again->domain, 1, (double)(o.rows - o.certain) / rows};
    return PARE_OK;
}

const pare_prover pare_ticket_prover = {"ticket", prove};
