/* probe.c - a probe from its parts (pare/plan.h). What a part cannot determine about a model is a
 * sentence in the result, not a failure. */
#include "width/hypotheses.h"
#include "probe.h"
#include "model/model_facts.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { MOST_UNTOLD = 16 };
#define MOST_OUTPUTS    ((size_t)1 << 25) /* numbers that are kept to compare cuts with */
#define MOST_PARAMETERS 20000000          /* of models whose cuts are tried without being asked */

void norm_add(norm_sum *s, double v)
{
    const double off = v - s->mean;
    s->n++;
    s->mean += off / (double)s->n;
    s->m2 += off * (v - s->mean);
    if (v > s->sup) s->sup = v;
}

pare_norms norm_end(const norm_sum *s)
{
    return (pare_norms){.n = s->n,
                        .mean = s->n ? s->mean : NAN,
                        .std = s->n > 1 ? sqrt(s->m2 / (double)(s->n - 1))
                               : s->n   ? 0
                                        : NAN,
                        .sup = s->n ? s->sup : NAN};
}

pare_status probe_untold(pare_probe *p, pare_err *err, const char *fmt, ...)
{
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (size_t i = 0; i < p->nuntold; i++)
        if (strcmp(p->untold[i], text) == 0) return PARE_OK;
    if (p->nuntold == MOST_UNTOLD) return PARE_OK;
    const char *const copy = pare_strdup(p->arena, text);
    if (!copy) return pare_no_memory(err);
    p->untold[p->nuntold++] = copy;
    return PARE_OK;
}

static pare_status probe_width_facts(pare_probe *p, const pare_model *m, const pare_inputs *in,
                                     const pare_probe_opts *o, const pare_exec *exec, pare_err *err)
{
    pare_err why = {0};
    const pare_status st =
        pare_width_check_hypotheses(&p->width_facts, p->arena, m, in, &o->width_facts, exec, &why);
    p->has_width_facts = !st;
    if (st == PARE_ERR_INPUT)
        return probe_untold(
            p, err,
            "leverage scores, clusters, attention scores, theorems: these are about graph "
            "transformers without layer norms (%s)",
            why.msg);
    return st ? pare_fail(err, st, "%s", why.msg) : PARE_OK;
}

static pare_status try_width_cuts(pare_probe *p, const pare_model *m, const pare_dataset *data,
                                  const pare_inputs *in, const pare_probe_opts *o,
                                  const pare_exec *exec, pare_err *err)
{
    if (o->no_cuts) return PARE_OK;
    if (!o->dims && p->parameters > MOST_PARAMETERS)
        return probe_untold(p, err,
                            "what cuts would cost: with %llu parameters that takes long; dims says "
                            "which to try",
                            (unsigned long long)p->parameters);
    pare_status st = probe_cuts(p, m, data, in, o, exec, err);
    if (st || p->ncuts == 0) return st;
    for (size_t i = 0; i < p->ncuts; i++)
        if (!p->cuts[i].refused) return PARE_OK;
    /* A table without one line is a sentence. */
    st = probe_untold(p, err, "what cuts would cost: %s", p->cuts[0].refused);
    p->ncuts = 0;
    return st;
}

static pare_status probe_with_data(pare_probe *p, const pare_model *m, const pare_dataset *data,
                                   const pare_probe_opts *o, const pare_exec *exec, pare_err *err)
{
    const size_t most = MOST_OUTPUTS / (pare_model_outputs(m) + 1);
    const size_t tokens = o->tokens < most ? o->tokens : most;
    const bool width = o->part == PARE_PROBE_ALL || o->part == PARE_PROBE_WIDTH,
               depth = o->part == PARE_PROBE_ALL || o->part == PARE_PROBE_DEPTH;
    /* The first inputs of the data that hold so many tokens; at least one. */
    pare_inputs in = {.in = data->inputs.in};
    for (size_t have = 0; in.n < data->inputs.n && (in.n == 0 || have < tokens); in.n++)
        have += in.in[in.n].batch * in.in[in.n].tokens;
    /* Shares of the time, as seen on the two models that come with pare. */
    pare_steps s = pare_steps_of(exec, 5 + (width ? 2 + 23 : 0) + (depth ? 40 : 0) + 30);
    exec = pare_step(&s, "look at the data", 5);
    pare_status st = probe_stream(p, m, &in, exec, err);
    if (!st) st = probe_outputs(p, m, data, &in, exec, err);
    if (!st && !p->metric)
        st = probe_untold(p, err,
                          pare_model_embeds(m) ? "accuracy: the outputs are embeddings"
                                               : "accuracy: the data have no labels to score");
    if (width) exec = pare_step(&s, "check theorems", 2);
    if (!st && width) st = probe_width_facts(p, m, &in, o, exec, err);
    if (!st && width) st = probe_theorems(p, m, err);
    if (width) exec = pare_step(&s, "try cuts in width", 23);
    if (!st && width) st = try_width_cuts(p, m, data, &in, o, exec, err);
    if (depth) exec = pare_step(&s, "try cuts in depth", 40);
    if (!st && depth) st = probe_depth(p, m, data, &in, o, exec, err);
    exec = pare_step(&s, "price directions", 30);
    return st ? st : probe_estimates(p, m, data, &in, o, exec, err);
}

pare_status pare_probe_model(pare_probe **out, const pare_model *m, const pare_dataset *data,
                             const pare_probe_opts *o, const pare_exec *exec, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    pare_probe *const p = a ? pare_alloc(a, 1, sizeof *p) : NULL;
    pare_status st = PARE_OK;
    *out = NULL;
    if (p) {
        *p = (pare_probe){.arena = a,
                          .metric_before = NAN,
                          .output = NAN,
                          .parameters = pare_model_size(m, 1, 1).parameters,
                          .vectors = norm_end(&(norm_sum){0}),
                          .untold = pare_alloc(a, MOST_UNTOLD, sizeof *p->untold)};
    }
    if (!p || !p->untold) st = pare_no_memory(err);
    pare_steps s = pare_steps_of(exec, 100);
    exec = pare_step(&s, "look at the weights", 1);
    if (!st) st = probe_weights(p, m, exec, err);
    exec = pare_step(&s, "look at the weights", 1);
    if (!st && (o->part == PARE_PROBE_ALL || o->part == PARE_PROBE_TICKET))
        st = probe_ticket(p, m, o->seed, exec, err);
    if (!st && (o->part == PARE_PROBE_ALL || o->part == PARE_PROBE_LENGTH))
        st = probe_length(p, m, data, o->seed, exec, err);
    exec = pare_step(&s, NULL, 98);
    if (!st)
        st = data ? probe_with_data(p, m, data, o, exec, err)
                  : probe_estimates(p, m, NULL, NULL, o, exec, err);
    if (!st && !data && o->part < PARE_PROBE_TICKET)
        st = probe_untold(p, err,
                          "the stream, the theorems, attention, what cuts would cost: these "
                          "depend on data, and none were given");
    if (st)
        pare_arena_free(a); /* p itself lives there */
    else
        *out = p;
    return st;
}

void pare_probe_free(pare_probe *p)
{
    if (p) pare_arena_free(p->arena); /* p itself lives there */
}
