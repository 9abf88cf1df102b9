/* What each direction offers to a plan: its settings, its cut, its prover (plan_directions.h). */
#include "plan_directions.h"

#include <math.h>
#include "verify_file.h"
#include "ticket/ticket_internal.h"
#include <pare/plan.h>

enum { TEXT_TOKENS = 256 }; /* of each input that a width cut of a text model looks at */

/* ---- settings -------------------------------------------------------------------------------- */

static size_t width_settings(double *out, const pare_model *m)
{
    static const double shares[] = {0.9, 0.75, 0.6, 0.5, 0.35, 0.25};
    size_t n = 0;
    if (pare_width_is_text(m, PARE_WIDTH_AUTO)) {
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) out[n++] = shares[i];
        return n;
    }
    for (size_t d = pare_model_width(m, 0) / 2; d >= 2 && n < PLAN_SETTINGS; d /= 2)
        out[n++] = (double)d;
    return n;
}

static size_t exact_layers(const pare_model *m)
{
    size_t n = 0;
    for (size_t b = 0; b < m->nblocks; b++) n += m->blocks[b].attn.kind == PARE_ATTN_EXACT;
    return n;
}

/* From one less down to none, evenly where there are many. */
static size_t depth_settings(double *out, const pare_model *m)
{
    const size_t layers = exact_layers(m);
    size_t n = 0, last = layers;
    for (size_t i = 1; i <= PLAN_SETTINGS && layers > 0; i++) {
        const size_t k = layers <= PLAN_SETTINGS
                             ? layers - (i < layers ? i : layers)
                             : (layers - 1) * (PLAN_SETTINGS - i) / (PLAN_SETTINGS - 1);
        if (k < last) out[n++] = (double)k;
        last = k < last ? k : last;
    }
    return n;
}

static size_t ticket_settings(double *out)
{
    static const double bits[] = {16, 12, 10, 8};
    const size_t n = sizeof bits / sizeof *bits;
    for (size_t i = 0; i < n; i++) out[i] = bits[i];
    return n;
}

size_t plan_settings(double out[PLAN_SETTINGS], pare_plan_way way, const pare_model *m)
{
    switch (way) {
    case PARE_PLAN_WIDTH:
        return width_settings(out, m);
    case PARE_PLAN_DEPTH:
        return depth_settings(out, m);
    case PARE_PLAN_WEIGHTS:
        return ticket_settings(out);
    default:
        return 0;
    }
}

plan_ends plan_ends_of(pare_plan_way way, const pare_model *m)
{
    const plan_ends none = {NAN, NAN}, shares = {1, 0.05},
                    dims = {(double)pare_model_width(m, 0), NAN};
    if (way != PARE_PLAN_WIDTH) return none;
    return pare_width_is_text(m, PARE_WIDTH_AUTO) ? shares : dims;
}

bool plan_refused(pare_status st)
{
    return st == PARE_ERR_INPUT || st == PARE_ERR_USAGE || st == PARE_ERR_NONFINITE ||
           st == PARE_ERR_NUMERIC || st == PARE_ERR_PROMISE;
}

/* ---- cuts ------------------------------------------------------------------------------------ */

static pare_status cut_width(pare_model **out, double setting, const pare_model *in,
                             const pare_inputs *fit, uint64_t seed, const pare_exec *exec,
                             pare_err *err)
{
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    pare_width_report report;
    o.seed = seed;
    o.tokens = TEXT_TOKENS;
    if (setting < 1)
        o.keep = setting;
    else
        o.dim = (size_t)setting;
    return pare_width(out, &report, in, fit, &o, exec, err);
}

static pare_status cut_depth(pare_model **out, double setting, const pare_model *in,
                             const pare_inputs *fit, const pare_exec *exec, pare_err *err)
{
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report report;
    o.layers = (size_t)setting;
    return pare_depth(out, &report, in, fit, &o, exec, err);
}

static pare_status cut_weights(pare_model **out, uint64_t *bytes, double setting,
                               const pare_model *in, uint64_t seed, const pare_exec *exec,
                               pare_err *err)
{
    pare_ticket_opts o = PARE_TICKET_OPTS;
    pare_ticket_report report;
    o.bits = (size_t)setting;
    o.seed = seed;
    const pare_status st = pare_ticket(out, &report, in, &o, exec, err);
    if (!st) *bytes = report.bytes + report.number_bytes;
    return st;
}

pare_status pare_plan_make(pare_model **out, uint64_t *bytes, const pare_plan_step *s,
                           const pare_model *in, const pare_inputs *fit, uint64_t seed,
                           const pare_exec *exec, pare_err *err)
{
    if (s->way == PARE_PLAN_WEIGHTS)
        return cut_weights(out, bytes, s->setting, in, seed, exec, err);
    const pare_status st = s->way == PARE_PLAN_WIDTH
                               ? cut_width(out, s->setting, in, fit, seed, exec, err)
                               : cut_depth(out, s->setting, in, fit, exec, err);
    if (!st) *bytes = pare_model_size(*out, 1, 0).bytes;
    return st;
}

const pare_prover *pare_plan_prover(const pare_plan_step *s)
{
    static const char *const reductions[] = {[PARE_PLAN_WIDTH] = "width.auto",
                                             [PARE_PLAN_DEPTH] = "depth",
                                             [PARE_PLAN_WEIGHTS] = "ticket"};
    return pare_prover_of(reductions[s->way]);
}

const char *const pare_plan_way_names[] = {"width", "depth", "ticket", NULL};

const char *pare_plan_step_name(char buf[48], const pare_plan_step *s)
{
    switch (s->way) {
    case PARE_PLAN_WIDTH:
        snprintf(buf, 48, s->setting < 1 ? "width --keep %.2g" : "width --dim %.0f", s->setting);
        break;
    case PARE_PLAN_DEPTH:
        snprintf(buf, 48, "depth --layers %.0f", s->setting);
        break;
    default:
        snprintf(buf, 48, "ticket --bits %.0f", s->setting);
    }
    return buf;
}
