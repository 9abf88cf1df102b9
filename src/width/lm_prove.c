/* Proving the cut of a model with norms again, from the two files and the inputs alone. */
#include "prove.h"
#include <pare/publish.h>
#include <math.h>

pare_status lm_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed, const pare_model *f,
                     const pare_model *g, const pare_inputs *set, const pare_exec *exec,
                     pare_err *err)
{
    work w = {pare_arena_new(), exec, err, PARE_OK};
    output_bound o;
    if (!w.a) return pare_no_memory(err);
    outputs_compare(&w, &o, f, g, set);
    again->nhypotheses = again->nstatements = 0;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    again->statements = pare_alloc(a, 1, sizeof *again->statements);
    again->hypotheses = pare_alloc(a, 1, sizeof *again->hypotheses);
    if (!w.st && (!again->domain || !again->statements || !again->hypotheses))
        w.st = pare_no_memory(err);
    if (!w.st) {
        const double share = (double)(o.rows - o.certain) / (double)(o.rows ? o.rows : 1);
        again->statements[again->nstatements++] =
            (pare_statement){"rows whose largest entry may have changed", "share of the output rows",
                             again->domain, 1, share};
        again->apriori = INFINITY;
        again->proven = o.gap.proven.v;
        again->measured = o.gap.measured;
        again->measured_slack = pare_measured_slack(&o.gap);
        again->rounding = o.gap.rounding.v;
    }
    pare_arena_free(w.a);
    return w.st;
}
