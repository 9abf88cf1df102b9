/* plan_directions.c - each direction's settings, cut and prover (plan_directions.h). */
#include "plan_directions.h"

#include <math.h>
#include "reduce_parts.h"
#include "verify_file.h"
#include "quant/quant_internal.h"
#include "ticket/ticket_internal.h"
#include <pare/plan.h>

enum { TEXT_TOKENS = 256 }; /* of each input that a width cut of a text model looks at */

/* ---- settings -------------------------------------------------------------------------------- */

/* From one less down to `least`, evenly where there are many. */
static size_t count_down(double out[PLAN_SETTINGS], size_t from, size_t least)
{
    size_t n = 0, last = from;
    const size_t settings = from - least;
    for (size_t i = 1; i <= PLAN_SETTINGS && from > least; i++) {
        const size_t k = settings <= PLAN_SETTINGS
                             ? from - (i < settings ? i : settings)
                             : least + (settings - 1) * (PLAN_SETTINGS - i) / (PLAN_SETTINGS - 1);
        if (k < last) out[n++] = (double)k;
        last = k < last ? k : last;
    }
    return n;
}

static size_t exact_layers(const pare_model *m)
{
    size_t n = 0;
    for (size_t b = 0; b < m->nblocks; b++) n += m->blocks[b].attn.kind == PARE_ATTN_EXACT;
    return n;
}

/* As many in every block of a folder. */
static size_t hidden_units(const pare_model *m)
{
    return m->nblocks && m->blocks[0].ffn.nlayers ? m->blocks[0].ffn.layers[0].w.rows : 0;
}

size_t plan_settings(double out[PLAN_SETTINGS], pare_plan_direction direction, const pare_model *m,
                     bool folder)
{
    static const double shares[] = {0.9, 0.75, 0.6, 0.5, 0.35, 0.25}, bits[] = {16, 12, 10, 8},
                        integers[] = {8, 6, 5, 4, 3};
    const pare_reduce_opts blocks = {.kind = PARE_REDUCE_DEPTH, .depth.blocks = 1};
    size_t n = 0;
    if (direction == PARE_PLAN_WEIGHTS) { /* a ticket is a file */
        for (size_t i = 0; i < sizeof bits / sizeof *bits && !folder; i++) out[n++] = bits[i];
    } else if (direction == PARE_PLAN_QUANT) { /* as well */
        for (size_t i = 0; i < sizeof integers / sizeof *integers && !folder; i++)
            out[n++] = integers[i];
    } else if (direction == PARE_PLAN_DEPTH) { /* of a folder one block stays */
        if (!folder || !reduce_fits_folder(m, &blocks, NULL))
            n = count_down(out, exact_layers(m), folder ? 1 : 0);
    } else if (folder) {
        double last = (double)hidden_units(m);
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
            const double units = floor(shares[i] * (double)hidden_units(m));
            if (units >= 1 && units < last) out[n++] = last = units;
        }
    } else if (pare_width_is_text(m, PARE_WIDTH_AUTO)) {
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) out[n++] = shares[i];
    } else {
        for (size_t d = pare_model_width(m, 0) / 2; d >= 2 && n < PLAN_SETTINGS; d /= 2)
            out[n++] = (double)d;
    }
    return n;
}

plan_ends plan_ends_of(pare_plan_direction direction, const pare_model *m, bool folder)
{
    const plan_ends none = {NAN, NAN}, shares = {1, 0.05},
                    dims = {(double)pare_model_width(m, 0), NAN},
                    units = {(double)hidden_units(m), 1};
    if (direction != PARE_PLAN_WIDTH) return none;
    if (folder) return units;
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
    if (s->direction == PARE_PLAN_QUANT) {
        pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
        pare_quant_report report;
        o.bits = s->setting < PARE_PLAN_BYTES ? s->setting : 0;
        o.max_bytes = s->setting < PARE_PLAN_BYTES ? 0 : (size_t)s->setting;
        o.dtype = s->dtype;
        o.seed = seed;
        o.fit = fit;
        return pare_quant(out, &report, in, &o, exec, err);
    }
    if (s->direction == PARE_PLAN_WIDTH) {
        pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
        pare_width_report report;
        o.seed = seed;
        o.tokens = TEXT_TOKENS;
        o.dtype = s->dtype;
        o.standard = s->folder;
        if (s->folder)
            o.ffn_dim = (size_t)s->setting;
        else if (s->setting < 1)
            o.keep = s->setting;
        else
            o.dim = (size_t)s->setting;
        return pare_width(out, &report, in, fit, &o, exec, err);
    }
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report report;
    *(s->folder ? &o.blocks : &o.layers) = (size_t)s->setting;
    o.dtype = s->dtype;
    return pare_depth(out, &report, in, fit, &o, exec, err);
}

const pare_prover *pare_plan_prover(const pare_plan_step *s)
{
    static const char *const reductions[] = {[PARE_PLAN_WIDTH] = "width.auto",
                                             [PARE_PLAN_DEPTH] = "depth",
                                             [PARE_PLAN_WEIGHTS] = "ticket",
                                             [PARE_PLAN_QUANT] = "quant"};
    return pare_prover_of(reductions[s->direction]);
}

const char *const pare_plan_direction_names[] = {"width", "depth", "ticket", "quant", NULL};

const char *pare_plan_step_name(char buf[48], const pare_plan_step *s)
{
    const bool depth = s->direction == PARE_PLAN_DEPTH;
    const bool quant = s->direction == PARE_PLAN_QUANT;
    const char *const format = quant && s->setting < PARE_PLAN_BYTES ? "quant --bits %.0f"
                               : quant                               ? "quant --max-bytes %.0f"
                               : depth && s->folder                  ? "depth --blocks %.0f"
                               : depth                               ? "depth --layers %.0f"
                               : s->direction == PARE_PLAN_WEIGHTS   ? "ticket --bits %.0f"
                               : s->folder                           ? "width --ffn-dim %.0f"
                               : s->setting < 1                      ? "width --keep %.2g"
                                                                     : "width --dim %.0f";
    snprintf(buf, 48, format, s->setting);
    return buf;
}
