/* cost_estimates.c - what each direction offers, in one line (pare_cost_estimate).
 *
 * One cut of each direction, chosen by what the parts of the probe found, made as `pare plan` makes
 * it, measured and proven on inputs that it was not fitted to; and what prevents it, or a deeper
 * one. */
#include "plan_directions.h"
#include "probe.h"

#include "cert/outputs.h"
#include "model/inputs.h"
#include <pare/plan.h>

#include <math.h>
#include <stdarg.h>
#include <string.h>

enum {
    PROVEN_INPUTS = 8,
    PROVEN_TOKENS = 64, /* of a text */
    TICKET_BITS = 10
};
static const double text_share = 0.75;     /* of the parameters of a text model */
static const double most_parameters = 2e7; /* of models that are cut without being asked */
static const double most_ticket = 2e5;     /* a ticket of more takes its time */
static const double most_work = 2e9;       /* multiply-adds of the passes that are proven */

typedef struct estimator {
    pare_probe *p;
    const pare_model *m;
    const pare_inputs *in; /* NULL: no data */
    probe_halves halves;
    pare_dataset part;    /* the targets of halves.heldout */
    double metric_before; /* of the model on halves.heldout */
    const pare_probe_opts *o;
    const pare_exec *exec;
    pare_err *err;
} estimator;

static pare_status write_text(const estimator *e, const char **to, const char *fmt, ...)
    PARE_PRINTF(3, 4);
static pare_status write_text(const estimator *e, const char **to, const char *fmt, ...)
{
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *const copy = pare_strdup(e->p->arena, text);
    if (!copy) return pare_no_memory(e->err);
    *to = copy;
    return PARE_OK;
}

static pare_cost_estimate *add_estimate(const estimator *e, const char *direction)
{
    pare_cost_estimate *const t = &e->p->estimates[e->p->nestimates++];
    *t = (pare_cost_estimate){.direction = direction,
                              .can = PARE_UNKNOWN,
                              .cut = "",
                              .left = "",
                              .proven = pare_ub_inf(),
                              .measured = NAN,
                              .metric = NAN,
                              .domain = "",
                              .why = ""};
    return t;
}

/* Why no cut is made, or "". */
static const char *why_no_cut(const estimator *e)
{
    return !e->in          ? "it depends on data, and none are given"
           : e->o->no_cuts ? "no cuts were tried"
           : (double)e->p->parameters > most_parameters
               ? "trying cuts of so large a model takes long; pare plan does it"
               : "";
}

/* ---- the cost of one cut --------------------------------------------------------------------- */

/* before: the metric of the model itself on the same inputs. */
static bool is_acceptable(const pare_probe *p, double measured, double before, double metric)
{
    if (!p->metric || isnan(metric)) return measured <= PARE_PROBE_LOST * p->output;
    if (strcmp(p->metric, "nats") == 0) return metric - before <= PARE_PROBE_NATS;
    return before - metric <= PARE_PROBE_LOSS;
}

/* On a part of the second half: texts are cut short, all else is whole. */
static pare_status prove_cut(const estimator *e, pare_cost_estimate *t, const pare_model *g)
{
    const pare_exec silent = pare_exec_silent(e->exec);
    const pare_inputs *const all = &e->halves.heldout;
    const size_t n = all->n < PROVEN_INPUTS ? all->n : PROVEN_INPUTS;
    bool longer = e->part.task == PARE_TASK_TEXT;
    for (size_t i = 0; i < n; i++) longer = longer && all->in[i].tokens > PROVEN_TOKENS;
    pare_inputs set;
    pare_gap gap;
    pare_status st =
        pare_inputs_part(&set, e->p->arena, all, 0, n, longer ? PROVEN_TOKENS : 0, e->err);
    if (st) return st;
    if (!(pare_passes_work(e->m, g, &set) <= most_work))
        return pare_measure(&t->measured, e->m, g, &set, &silent, e->err);
    st = pare_prove_gap(&gap, e->m, g, &set, &silent, e->err);
    if (st) return st;
    t->proven = gap.proven;
    t->measured = gap.measured;
    const size_t tokens = set.in[0].tokens;
    if (set.n == 1) return write_text(e, &t->domain, "one input of %zu tokens", tokens);
    return write_text(e, &t->domain, "%zu inputs it was not fitted to, the first of %zu tokens",
                      set.n, tokens);
}

/* Makes the cut, says what is left of the model, and what the cut costs. */
static pare_status estimate_cut(const estimator *e, pare_cost_estimate *t,
                                const pare_plan_step *step)
{
    char words[48];
    pare_model *g = NULL;
    pare_err why = {0};
    const pare_exec silent = pare_exec_silent(e->exec);
    pare_status st = pare_plan_make(&g, step, e->m, &e->halves.fit, e->o->seed, &silent, &why);
    if (plan_refused(st)) {
        t->can = PARE_FALSE;
        return write_text(e, &t->why, "%s", why.msg);
    }
    if (st) return pare_fail(e->err, st, "%s", why.msg);
    st = write_text(e, &t->cut, "%s", pare_plan_step_name(words, step));
    const pare_size before = pare_model_size(e->m, 1, 0), after = pare_model_size(g, 1, 0);
    if (!st && step->direction == PARE_PLAN_WIDTH)
        st = write_text(e, &t->left, "%.3g %% of the parameters",
                        100 * (double)after.parameters / (double)before.parameters);
    else if (!st && step->direction == PARE_PLAN_DEPTH)
        st = write_text(e, &t->left, "%.0f of %zu attentions", step->setting,
                        e->p->depth.stats.nlayers);
    else if (!st)
        st = write_text(e, &t->left, "%.3g %% of the bytes",
                        100 * (double)after.bytes / (double)before.bytes);
    if (!st) st = prove_cut(e, t, g);
    if (!st && e->p->metric)
        st = probe_metric(&t->metric, g, &e->part, &e->halves.heldout, &silent, e->err);
    t->can = is_acceptable(e->p, t->measured, e->metric_before, t->metric) ? PARE_TRUE : PARE_FALSE;
    pare_model_free(g);
    return st;
}

/* ---- the directions -------------------------------------------------------------------------- */

static pare_status estimate_width(const estimator *e)
{
    const pare_probe *const p = e->p;
    pare_cost_estimate *const t = add_estimate(e, "width");
    pare_plan_step step = {.direction = PARE_PLAN_WIDTH, .setting = text_share};
    t->why = why_no_cut(e);
    if (*t->why) return PARE_OK;
    /* The narrowest acceptable row of the table, and the first that is not. */
    const pare_cut_cost *best = NULL, *below = NULL;
    for (size_t i = 0; i < p->ncuts; i++) {
        const pare_cut_cost *const c = &p->cuts[i];
        if (c->method != PARE_WIDTH_AUTO || c->refused) continue;
        if (is_acceptable(p, c->largest, p->metric_before, c->metric))
            best = c;
        else if (!below)
            below = c;
    }
    if (!pare_width_is_text(e->m, PARE_WIDTH_AUTO)) {
        const size_t d = best ? best->dim : pare_model_width(e->m, 0) / 2;
        step.setting = (double)(d > 2 ? d : 2);
    }
    const pare_status st = estimate_cut(e, t, &step);
    if (st || *t->why) return st;
    char next[160] = "", theory[400] = "";
    if (below && p->metric)
        snprintf(next, sizeof next, "%s is %.4g at %zu dimensions; ", p->metric, below->metric,
                 below->dim);
    else if (below)
        snprintf(next, sizeof next, "outputs are %.3g apart at %zu dimensions; ", below->largest,
                 below->dim);
    for (size_t i = 0; i < p->nfindings && !*theory; i++)
        if (p->findings[i].holds == PARE_FALSE && p->findings[i].factor > 1)
            snprintf(theory, sizeof theory,
                     "no bound for all inputs: a hypothesis of %s fails by a factor of %.3g (%s)",
                     p->findings[i].theorem, p->findings[i].factor, p->findings[i].what);
    if (!p->has_width_facts) snprintf(theory, sizeof theory, "there is no bound for all inputs");
    return write_text(e, &t->why, "%s%s", next, theory);
}

static pare_status estimate_depth(const estimator *e)
{
    const pare_depth_probe *const d = &e->p->depth;
    pare_cost_estimate *const t = add_estimate(e, "depth");
    pare_attn_kind kind;
    t->why = why_no_cut(e);
    if (*t->why) return PARE_OK;
    if (!e->p->has_depth) {
        t->can = PARE_FALSE;
        t->why = "the model has no softmax attention";
        return PARE_OK;
    }
    if (d->costs.skipped) {
        t->why = d->costs.skipped;
        return PARE_OK;
    }
    size_t exact = 0;
    for (; exact + 1 < d->stats.nlayers; exact++) {
        const pare_replacement_point *const at = probe_best_point(&d->costs, exact, &kind);
        if (at && at->lost <= PARE_PROBE_LOST) break;
    }
    const pare_status st = estimate_cut(
        e, t, &(pare_plan_step){.direction = PARE_PLAN_DEPTH, .setting = (double)exact});
    if (st || *t->why || !*d->violated) return st;
    return write_text(e, &t->why, "no bound for all inputs: %s", d->violated);
}

/* Without making a ticket: the first error of an entry for which a ticket is smaller than f32. */
static pare_status estimate_by_entries(const estimator *e, pare_cost_estimate *t, const char *why)
{
    const pare_ticket_probe *const k = &e->p->ticket;
    for (size_t i = k->nneeds; i-- > 0;) {
        const pare_probe_need *const n = &k->needs[i];
        if (!n->seen || n->factored >= k->f32) continue;
        const pare_status st = write_text(e, &t->left, "%.3g %% of the bytes, entries within %.0e",
                                          100 * (double)n->factored / (double)k->f32, n->error);
        return st ? st
                  : write_text(e, &t->why, "what that does to the outputs is not known: %s", why);
    }
    t->can = PARE_FALSE;
    t->why = "masks that reproduce the weights take more bytes than the weights";
    return PARE_OK;
}

static pare_status estimate_weights(const estimator *e)
{
    const pare_ticket_probe *const k = &e->p->ticket;
    pare_cost_estimate *const t = add_estimate(e, "weights");
    const char *const why = why_no_cut(e);
    if (!e->p->has_ticket) {
        t->can = PARE_FALSE;
        t->why = "the model has no matrices";
        return PARE_OK;
    }
    if (*why) return estimate_by_entries(e, t, why);
    if ((double)e->p->parameters > most_ticket)
        return estimate_by_entries(e, t,
                                   "trying it on so many weights takes long; pare ticket does it");
    const pare_status st = estimate_cut(
        e, t, &(pare_plan_step){.direction = PARE_PLAN_WEIGHTS, .setting = TICKET_BITS});
    if (st || *t->why) return st;
    double least = INFINITY; /* error that Lemma S proves a mask for */
    size_t items = 0;
    for (size_t i = 0; i < k->nneeds; i++)
        if (k->needs[i].proven && k->needs[i].error < least) {
            least = k->needs[i].error;
            items = k->needs[i].proven;
        }
    if (isinf(least))
        return write_text(e, &t->why, "no accuracy of the weights is proven in advance");
    return write_text(
        e, &t->why,
        "no accuracy of the weights below %.0e is proven in advance (with %zu random numbers each)",
        least, items);
}

/* A length plan is the model itself, evaluated otherwise: nothing is lost but roundings. */
static pare_status estimate_length(const estimator *e)
{
    const pare_length_probe *const l = &e->p->length;
    pare_cost_estimate *const t = add_estimate(e, "length");
    if (!e->p->has_length) {
        t->can = e->m->pattern.kind == PARE_GRAPH && !e->in ? PARE_UNKNOWN : PARE_FALSE;
        t->why = t->can == PARE_FALSE ? "the model has no softmax attention" : why_no_cut(e);
        return PARE_OK;
    }
    /* The engine of a quarter of the tokens or less, and where there is none the smallest. */
    const pare_probe_engine *engine = &l->engines[0];
    for (size_t i = 0; i < l->nengines; i++)
        if (4 * (size_t)l->engines[i].m <= l->tokens) engine = &l->engines[i];
    t->can = PARE_TRUE;
    t->proven = pare_ub_exact(0);
    t->domain = "all inputs, in exact arithmetic; the certificate of a run bounds its rounding";
    pare_status st = write_text(e, &t->cut, "length --oracle %u", engine->m);
    if (!st)
        st = write_text(e, &t->left, "%zu tokens in %llu calls", l->tokens,
                        (unsigned long long)engine->native);
    for (size_t i = 0; !st && !*t->why && i < l->nmodes; i++)
        if (*l->modes[i].why_not)
            st = strncmp(l->modes[i].why_not, "mode ", 5) == 0
                     ? write_text(e, &t->why, "%s", l->modes[i].why_not)
                     : write_text(e, &t->why, "mode %s is not possible: %s",
                                  pare_length_mode_name(l->modes[i].mode), l->modes[i].why_not);
    return st;
}

pare_status probe_estimates(pare_probe *p, const pare_model *m, const pare_dataset *data,
                            const pare_inputs *in, const pare_probe_opts *o, const pare_exec *exec,
                            pare_err *err)
{
    static const struct {
        pare_probe_part part;
        pare_status (*estimate)(const estimator *);
    } directions[] = {{PARE_PROBE_WIDTH, estimate_width},
                      {PARE_PROBE_DEPTH, estimate_depth},
                      {PARE_PROBE_TICKET, estimate_weights},
                      {PARE_PROBE_LENGTH, estimate_length}};
    const size_t n = sizeof directions / sizeof *directions;
    estimator e = {.p = p, .m = m, .in = data ? in : NULL, .o = o, .exec = exec, .err = err};
    pare_status st = PARE_OK;
    if (data) {
        e.halves = probe_halve(in, o->depth_tokens);
        e.part = *data;
        e.part.target = data->target ? data->target + e.halves.first : NULL;
        if (p->metric)
            st = probe_metric(&e.metric_before, m, &e.part, &e.halves.heldout, exec, err);
    }
    for (size_t i = 0; !st && i < n; i++) {
        const bool asked = o->part == PARE_PROBE_ALL || o->part == directions[i].part;
        st = pare_progress(exec, "price directions", i, n, err);
        if (!st && asked) st = directions[i].estimate(&e);
    }
    return st;
}
