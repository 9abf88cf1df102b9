/* plan_directions.c - each direction's settings, cut and prover (plan_directions.h). */
#include "plan_directions.h"

#include <math.h>
#include "verify_file.h"
#include "ticket/ticket_internal.h"
#include <pare/plan.h>

enum { TEXT_TOKENS = 256 }; /* of each input that a width cut of a text model looks at */

/* ---- settings -------------------------------------------------------------------------------- */

size_t plan_settings(double out[PLAN_SETTINGS], pare_plan_direction direction, const pare_model *m)
{
    static const double shares[] = {0.9, 0.75, 0.6, 0.5, 0.35, 0.25}, bits[] = {16, 12, 10, 8};
    size_t n = 0;
    if (direction == PARE_PLAN_WEIGHTS) {
        for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) out[n++] = bits[i];
    } else if (direction == PARE_PLAN_DEPTH) {
        /* From one layer less down to none, evenly where there are many. */
        size_t layers = 0;
        for (size_t b = 0; b < m->nblocks; b++) layers += m->blocks[b].attn.kind == PARE_ATTN_EXACT;
        size_t last = layers;
        for (size_t i = 1; i <= PLAN_SETTINGS && layers > 0; i++) {
            const size_t k = layers <= PLAN_SETTINGS
                                 ? layers - (i < layers ? i : layers)
                                 : (layers - 1) * (PLAN_SETTINGS - i) / (PLAN_SETTINGS - 1);
            if (k < last) out[n++] = (double)k;
            last = k < last ? k : last;
        }
    } else if (pare_width_is_text(m, PARE_WIDTH_AUTO)) {
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) out[n++] = shares[i];
    } else {
        for (size_t d = pare_model_width(m, 0) / 2; d >= 2 && n < PLAN_SETTINGS; d /= 2)
            out[n++] = (double)d;
    }
    return n;
}

plan_ends plan_ends_of(pare_plan_direction direction, const pare_model *m)
{
    const plan_ends none = {NAN, NAN}, shares = {1, 0.05},
                    dims = {(double)pare_model_width(m, 0), NAN};
    if (direction != PARE_PLAN_WIDTH) return none;
    return pare_width_is_text(m, PARE_WIDTH_AUTO) ? shares : dims;
}

bool plan_refused(pare_status st)
{
    return st == PARE_ERR_INPUT || st == PARE_ERR_USAGE || st == PARE_ERR_NONFINITE ||
           st == PARE_ERR_NUMERIC || st == PARE_ERR_PROMISE;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

pare_status pare_plan_make(pare_model **out, const pare_plan_step *s, const pare_model *in,
                           const pare_inputs *fit, uint64_t seed, const pare_exec *exec,
                           pare_err *err)
{
    if (s->direction == PARE_PLAN_WEIGHTS) {
        pare_ticket_opts o = PARE_TICKET_OPTS_DEFAULT;
        pare_ticket_report report;
        o.bits = (size_t)s->setting;
        o.seed = seed;
        o.dtype = s->dtype;
        return pare_ticket(out, &report, in, &o, exec, err);
    }
    if (s->direction == PARE_PLAN_WIDTH) {
        pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
        pare_width_report report;
        o.seed = seed;
        o.tokens = TEXT_TOKENS;
        o.dtype = s->dtype;
        if (s->setting < 1)
            o.keep = s->setting;
        else
            o.dim = (size_t)s->setting;
        return pare_width(out, &report, in, fit, &o, exec, err);
    }
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report report;
    o.layers = (size_t)s->setting;
    o.dtype = s->dtype;
    return pare_depth(out, &report, in, fit, &o, exec, err);
}

const pare_prover *pare_plan_prover(const pare_plan_step *s)
{
    static const char *const reductions[] = {[PARE_PLAN_WIDTH] = "width.auto",
                                             [PARE_PLAN_DEPTH] = "depth",
                                             [PARE_PLAN_WEIGHTS] = "ticket"};
    return pare_prover_of(reductions[s->direction]);
}

const char *const pare_plan_direction_names[] = {"width", "depth", "ticket", NULL};

const char *pare_plan_step_name(char buf[48], const pare_plan_step *s)
{
    const char *const format = s->direction == PARE_PLAN_DEPTH     ? "depth --layers %.0f"
                               : s->direction == PARE_PLAN_WEIGHTS ? "ticket --bits %.0f"
                               : s->setting < 1                    ? "width --keep %.2g"
                                                                   : "width --dim %.0f";
    snprintf(buf, 48, format, s->setting);
    return buf;
}
