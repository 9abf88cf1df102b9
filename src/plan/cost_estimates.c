/* Each direction in one line (pare_prospect): one cut that it offers, chosen by what the parts of
 * the probe saw, made as `pare plan` makes it, measured and proven on inputs that it was not fitted
 * to; and what blocks it, or more of it. */
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

typedef struct screen {
    pare_probe *p;
    const pare_model *m;
    const pare_inputs *in; /* NULL: no data */
    probe_halves h;
    pare_dataset part; /* the targets of h.look */
    double before;     /* the metric of the model on h.look */
    const pare_probe_opts *o;
    const pare_exec *exec;
    pare_err *err;
} screen;

/* ---- words ----------------------------------------------------------------------------------- */

static pare_status say(const screen *s, const char **to, const char *fmt, ...) PARE_PRINTF(3, 4);
static pare_status say(const screen *s, const char **to, const char *fmt, ...)
{
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *const kept = pare_strdup(s->p->arena, text);
    if (!kept) return pare_no_memory(s->err);
    *to = kept;
    return PARE_OK;
}

static pare_prospect *open_line(const screen *s, const char *direction)
{
    pare_prospect *const t = &s->p->prospects[s->p->nprospects++];
    *t = (pare_prospect){.direction = direction,
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
static const char *no_look(const screen *s)
{
    return !s->in          ? "it depends on data, and none are given"
           : s->o->no_cuts ? "no cuts were tried"
           : (double)s->p->parameters > most_parameters
               ? "trying cuts of so large a model takes long; pare plan does it"
               : "";
}

/* ---- the price ------------------------------------------------------------------------------- */

/* before: the metric of the model itself on the same inputs. */
static bool bearable(const pare_probe *p, double measured, double before, double metric)
{
    if (!p->metric || isnan(metric)) return measured <= PARE_PROBE_LOST * p->output;
    if (strcmp(p->metric, "nats") == 0) return metric - before <= PARE_PROBE_NATS;
    return before - metric <= PARE_PROBE_LOSS;
}

/* The part of the second half that is proven on: texts are cut short, all else is whole. */
static pare_status few(const screen *s, pare_inputs *out)
{
    const pare_inputs *const all = &s->h.look;
    const size_t n = all->n < PROVEN_INPUTS ? all->n : PROVEN_INPUTS;
    bool longer = s->part.task == PARE_TASK_TEXT;
    for (size_t i = 0; i < n; i++) longer = longer && all->in[i].tokens > PROVEN_TOKENS;
    return pare_inputs_part(out, s->p->arena, all, 0, n, longer ? PROVEN_TOKENS : 0, s->err);
}

static pare_status prove(const screen *s, pare_prospect *t, const pare_model *g)
{
    const pare_exec silent = pare_silent(s->exec);
    pare_inputs set;
    pare_gap gap;
    pare_status st = few(s, &set);
    if (st) return st;
    if (!(pare_passes_work(s->m, g, &set) <= most_work))
        return pare_measure(&t->measured, s->m, g, &set, &silent, s->err);
    st = pare_prove_gap(&gap, s->m, g, &set, &silent, s->err);
    if (st) return st;
    t->proven = gap.proven;
    t->measured = gap.measured;
    const size_t tokens = set.in[0].tokens;
    if (set.n == 1) return say(s, &t->domain, "one input of %zu tokens", tokens);
    return say(s, &t->domain, "%zu inputs it was not fitted to, the first of %zu tokens", set.n,
               tokens);
}

static pare_status say_left(const screen *s, pare_prospect *t, const pare_plan_step *step,
                            const pare_model *g, uint64_t bytes)
{
    const pare_size before = pare_model_size(s->m, 1, 0), after = pare_model_size(g, 1, 0);
    if (step->way == PARE_PLAN_WIDTH)
        return say(s, &t->left, "%.3g %% of the parameters",
                   100 * (double)after.parameters / (double)before.parameters);
    if (step->way == PARE_PLAN_DEPTH)
        return say(s, &t->left, "%.0f of %zu attentions", step->setting, s->p->depth.xray.nlayers);
    return say(s, &t->left, "%.3g %% of the bytes", 100 * (double)bytes / (double)before.bytes);
}

static pare_status price(const screen *s, pare_prospect *t, const pare_plan_step *step)
{
    char words[48];
    pare_model *g = NULL;
    uint64_t bytes = 0;
    pare_err why = {0};
    const pare_exec silent = pare_silent(s->exec);
    pare_status st = pare_plan_make(&g, &bytes, step, s->m, &s->h.fit, s->o->seed, &silent, &why);
    if (plan_refused(st)) {
        t->can = PARE_FALSE;
        return say(s, &t->why, "%s", why.msg);
    }
    if (st) return pare_fail(s->err, st, "%s", why.msg);
    st = say(s, &t->cut, "%s", pare_plan_step_name(words, step));
    if (!st) st = say_left(s, t, step, g, bytes);
    if (!st) st = prove(s, t, g);
    if (!st && s->p->metric)
        st = probe_metric(&t->metric, g, &s->part, &s->h.look, &silent, s->err);
    t->can = bearable(s->p, t->measured, s->before, t->metric) ? PARE_TRUE : PARE_FALSE;
    pare_model_free(g);
    return st;
}

/* ---- width ----------------------------------------------------------------------------------- */

/* The narrowest row of the table that may be borne; *below: the next one, which may not. NULL where
 * none may. */
static const pare_cut_cost *narrowest(const pare_probe *p, const pare_cut_cost **below)
{
    const pare_cut_cost *best = NULL;
    *below = NULL;
    for (size_t i = 0; i < p->ncuts; i++) {
        const pare_cut_cost *const c = &p->cuts[i];
        if (c->method != PARE_WIDTH_AUTO || c->refused) continue;
        if (bearable(p, c->largest, p->metric_before, c->metric))
            best = c;
        else if (!*below)
            *below = c;
    }
    return best;
}

static pare_status why_not_narrower(const screen *s, pare_prospect *t, const pare_cut_cost *below)
{
    const pare_probe *const p = s->p;
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
    if (!p->has_survey) snprintf(theory, sizeof theory, "there is no bound for all inputs");
    return *t->why ? PARE_OK : say(s, &t->why, "%s%s", next, theory);
}

static pare_status width(const screen *s)
{
    pare_prospect *const t = open_line(s, "width");
    const pare_cut_cost *below, *const row = narrowest(s->p, &below);
    pare_plan_step step = {PARE_PLAN_WIDTH, text_share};
    t->why = no_look(s);
    if (*t->why) return PARE_OK;
    if (!pare_width_is_text(s->m, PARE_WIDTH_AUTO)) {
        const size_t d = row ? row->dim : pare_model_width(s->m, 0) / 2;
        step.setting = (double)(d > 2 ? d : 2);
    }
    const pare_status st = price(s, t, &step);
    return st ? st : why_not_narrower(s, t, below);
}

/* ---- depth ----------------------------------------------------------------------------------- */

static pare_status depth(const screen *s)
{
    const pare_depth_probe *const d = &s->p->depth;
    pare_prospect *const t = open_line(s, "depth");
    const size_t layers = d->xray.nlayers;
    pare_attn_kind kind;
    t->why = no_look(s);
    if (*t->why) return PARE_OK;
    if (!s->p->has_depth) {
        t->can = PARE_FALSE;
        t->why = "the model has no softmax attention";
        return PARE_OK;
    }
    if (d->costs.skipped) {
        t->why = d->costs.skipped;
        return PARE_OK;
    }
    size_t exact = 0;
    for (; exact + 1 < layers; exact++) {
        const pare_xray_point *const at = probe_best_point(&d->costs, exact, &kind);
        if (at && at->lost <= PARE_PROBE_LOST) break;
    }
    const pare_status st = price(s, t, &(pare_plan_step){PARE_PLAN_DEPTH, (double)exact});
    if (st || *t->why || !*d->violated) return st;
    return say(s, &t->why, "no bound for all inputs: %s", d->violated);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* What the entries alone say: the first error for which a ticket is smaller than f32. */
static pare_status by_entries(const screen *s, pare_prospect *t, const char *why)
{
    const pare_ticket_probe *const k = &s->p->ticket;
    for (size_t i = k->nneeds; i-- > 0;) {
        const pare_probe_need *const n = &k->needs[i];
        if (!n->seen || n->factored >= k->f32) continue;
        const pare_status st = say(s, &t->left, "%.3g %% of the bytes, entries within %.0e",
                                   100 * (double)n->factored / (double)k->f32, n->error);
        return st ? st : say(s, &t->why, "what that does to the outputs is not known: %s", why);
    }
    t->can = PARE_FALSE;
    t->why = "masks that reproduce the weights take more bytes than the weights";
    return PARE_OK;
}

/* The least error that Lemma S proves a mask for. */
static pare_status why_not_lighter(const screen *s, pare_prospect *t)
{
    const pare_ticket_probe *const k = &s->p->ticket;
    double least = INFINITY;
    size_t items = 0;
    for (size_t i = 0; i < k->nneeds; i++)
        if (k->needs[i].proven && k->needs[i].error < least) {
            least = k->needs[i].error;
            items = k->needs[i].proven;
        }
    if (*t->why) return PARE_OK;
    if (isinf(least)) return say(s, &t->why, "no accuracy of the weights is proven in advance");
    return say(
        s, &t->why,
        "no accuracy of the weights below %.0e is proven in advance (with %zu random numbers each)",
        least, items);
}

static pare_status weights(const screen *s)
{
    pare_prospect *const t = open_line(s, "weights");
    const char *const why = no_look(s);
    if (!s->p->has_ticket) {
        t->can = PARE_FALSE;
        t->why = "the model has no matrices";
        return PARE_OK;
    }
    if (*why) return by_entries(s, t, why);
    if ((double)s->p->parameters > most_ticket)
        return by_entries(s, t, "trying it on so many weights takes long; pare ticket does it");
    const pare_status st = price(s, t, &(pare_plan_step){PARE_PLAN_WEIGHTS, TICKET_BITS});
    return st ? st : why_not_lighter(s, t);
}

/* ---- length ---------------------------------------------------------------------------------- */

/* The engine of a quarter of the tokens or less, and where there is none the smallest. */
static const pare_probe_engine *quarter(const pare_length_probe *l)
{
    const pare_probe_engine *best = &l->engines[0];
    for (size_t i = 0; i < l->nengines; i++)
        if (4 * (size_t)l->engines[i].m <= l->tokens) best = &l->engines[i];
    return best;
}

/* The plan is the model itself in other words: nothing is lost but roundings. */
static pare_status length(const screen *s)
{
    const pare_length_probe *const l = &s->p->length;
    pare_prospect *const t = open_line(s, "length");
    if (!s->p->has_length) {
        t->can = s->m->pattern.kind == PARE_GRAPH && !s->in ? PARE_UNKNOWN : PARE_FALSE;
        t->why = t->can == PARE_FALSE ? "the model has no softmax attention" : no_look(s);
        return PARE_OK;
    }
    const pare_probe_engine *const e = quarter(l);
    t->can = PARE_TRUE;
    t->proven = pare_ub_exact(0);
    t->domain =
        "all inputs, in exact arithmetic; `pare length --certify` bounds the rounding of a run";
    pare_status st = say(s, &t->cut, "length --oracle %u", e->m);
    if (!st)
        st = say(s, &t->left, "%zu tokens in %llu calls", l->tokens, (unsigned long long)e->native);
    for (size_t i = 0; !st && !*t->why && i < l->nmodes; i++)
        if (*l->modes[i].why_not)
            st = strncmp(l->modes[i].why_not, "mode ", 5) == 0
                     ? say(s, &t->why, "%s", l->modes[i].why_not)
                     : say(s, &t->why, "mode %s is not possible: %s",
                           pare_length_mode_name(l->modes[i].mode), l->modes[i].why_not);
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

pare_status probe_prospects(pare_probe *p, const pare_model *m, const pare_dataset *data,
                            const pare_inputs *in, const pare_probe_opts *o, const pare_exec *exec,
                            pare_err *err)
{
    screen s = {.p = p, .m = m, .in = data ? in : NULL, .o = o, .exec = exec, .err = err};
    pare_status st = PARE_OK;
    if (data) {
        s.h = probe_halve(in, o->depth_tokens);
        s.part = *data;
        s.part.target = data->target ? data->target + s.h.first : NULL;
        if (p->metric) st = probe_metric(&s.before, m, &s.part, &s.h.look, exec, err);
    }
    static const struct {
        pare_probe_part part;
        pare_status (*line)(const screen *s);
    } lines[] = {{PARE_PROBE_WIDTH, width},
                 {PARE_PROBE_DEPTH, depth},
                 {PARE_PROBE_TICKET, weights},
                 {PARE_PROBE_LENGTH, length}};
    for (size_t i = 0; !st && i < sizeof lines / sizeof *lines; i++) {
        if (!st) st = pare_progress(exec, "price directions", i, sizeof lines / sizeof *lines, err);
        if (o->part == PARE_PROBE_ALL || o->part == lines[i].part) st = lines[i].line(&s);
    }
    return st;
}

bool probe_prospects_json(cJSON *to, const pare_probe *p)
{
    cJSON *const list = pare_json_add_array(to, "directions");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nprospects; i++) {
        const pare_prospect *const t = &p->prospects[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "direction", t->direction) &&
             probe_truth(o, "can", t->can) && pare_json_add_string(o, "cut", t->cut) &&
             pare_json_add_string(o, "left", t->left) &&
             pare_json_add_number(o, "proven", t->proven.v) &&
             probe_number(o, "measured", t->measured) && probe_number(o, "metric", t->metric) &&
             pare_json_add_string(o, "domain", t->domain) && pare_json_add_string(o, "why", t->why);
    }
    return ok;
}
