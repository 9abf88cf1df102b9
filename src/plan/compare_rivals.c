/* compare_rivals.c - ways to store weights in few bits, side by side: each makes the model by itself
 * with as many stored bits as the others, and is measured on the same inputs. */
#include "base/support.h"
#include "quant/quant_internal.h"
#include "ticket/ticket_internal.h"
#include <math.h>
#include <pare/cut.h>
#include <string.h>

#define LEAST_BITS 2.0
#define MOST_BITS  6.0

typedef struct rival_maker {
    const char *name;
    double work; /* about, beside the others */
    pare_status (*make)(pare_model **g, const pare_model *f, const pare_rivals_opts *o,
                        const pare_inputs *fit, const pare_exec *exec, pare_err *err);
} rival_maker;

/* ---- making ---------------------------------------------------------------------------------- */

static pare_status make_quant(pare_model **g, const pare_model *f, pare_quant_method method,
                              double bits, size_t group, const pare_rivals_opts *o,
                              const pare_inputs *fit, const pare_exec *exec, pare_err *err)
{
    pare_quant_report report;
    const pare_quant_opts q = {
        .method = method, .bits = bits, .group = group, .seed = o->seed, .fit = fit};
    return pare_quant(g, &report, f, &q, exec, err);
}

/* Weights that share a scale of 16 bits, so that scales take what is behind the point. */
static size_t group_of(double bits)
{
    const double left = bits - floor(bits);
    return left > 0 ? (size_t)ceil(16 / left) : 0;
}

static pare_status make_rtn(pare_model **g, const pare_model *f, const pare_rivals_opts *o,
                            const pare_inputs *fit, const pare_exec *exec, pare_err *err)
{
    return make_quant(g, f, PARE_QUANT_RTN, floor(o->bits), group_of(o->bits), o, fit, exec, err);
}

static pare_status make_gptq(pare_model **g, const pare_model *f, const pare_rivals_opts *o,
                             const pare_inputs *fit, const pare_exec *exec, pare_err *err)
{
    return make_quant(g, f, PARE_QUANT_GPTQ, floor(o->bits), group_of(o->bits), o, fit, exec, err);
}

static pare_status make_seedlm(pare_model **g, const pare_model *f, const pare_rivals_opts *o,
                               const pare_inputs *fit, const pare_exec *exec, pare_err *err)
{
    return make_quant(g, f, PARE_QUANT_SEEDLM, floor(o->bits), 0, o, fit, exec, err);
}

static pare_status make_trellis(pare_model **g, const pare_model *f, const pare_rivals_opts *o,
                                const pare_inputs *fit, const pare_exec *exec, pare_err *err)
{
    return make_quant(g, f, PARE_QUANT_TRELLIS, floor(8 * o->bits) / 8, 0, o, fit, exec, err);
}

static pare_status make_masks(pare_model **g, const pare_model *f, const pare_rivals_opts *o,
                              const pare_inputs *fit, const pare_exec *exec, pare_err *err)
{
    pare_ticket_report report;
    pare_ticket_opts t = PARE_TICKET_OPTS_DEFAULT;
    t.mode = PARE_TICKET_FACTORED;
    t.method = PARE_TICKET_FEEDBACK;
    t.bits = PARE_TICKET_STORED_BITS;
    t.stored = o->bits;
    t.seed = o->seed;
    t.fit = fit;
    return pare_ticket(g, &report, f, &t, exec, err);
}

static const rival_maker makers[PARE_RIVALS] = {{"rtn", 1, make_rtn},
                                                {"gptq", 2, make_gptq},
                                                {"seedlm", 4, make_seedlm},
                                                {"masks", 20, make_masks},
                                                {"trellis", 3, make_trellis}};

/* ---- measuring ------------------------------------------------------------------------------- */

/* Over the weights that g holds coded: their number, bytes, squares, and those of the errors. */
typedef struct weight_sums {
    const pare_model *g;
    const pare_weight *was; /* those of f, in the order of the file */
    pare_weight *all;       /* NULL: to be compared with `was` */
    size_t n, weights, bytes;
    double square, error;
} weight_sums;

static const pare_coded *coded_of(const pare_model *g, const char *name)
{
    for (size_t i = 0; i < g->ncoded; i++)
        if (strcmp(g->coded[i].name, name) == 0) return &g->coded[i];
    return NULL;
}

static pare_status visit_weight(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    weight_sums *const s = self;
    const size_t at = s->n++;
    (void)vector;
    (void)err;
    if (s->all) {
        s->all[at] = *w;
        return PARE_OK;
    }
    const pare_coded *const c = s->was ? coded_of(s->g, name) : NULL;
    if (!c) return PARE_OK;
    const size_t n = w->rows * w->cols;
    s->weights += n;
    s->bytes += c->bytes;
    for (size_t i = 0; i < n; i++) {
        const double x = pare_weight_at(&s->was[at], i), e = pare_weight_at(w, i) - x;
        s->square += x * x;
        s->error += e * e;
    }
    return PARE_OK;
}

/* Both models have the same weights, in the same order. */
static pare_status compare_weights(pare_rival *r, const pare_model *f, pare_model *g, pare_arena *a,
                                   pare_err *err)
{
    pare_model *copy = NULL;
    weight_sums s = {.g = g};
    pare_status st = pare_model_clone(&copy, f, err);
    if (!st) st = pare_model_each_weight(copy, visit_weight, &s, err);
    pare_weight *const was = st ? NULL : pare_alloc(a, s.n + 1, sizeof *was);
    if (!st && !was) st = pare_no_memory(err);
    s = (weight_sums){.g = g, .all = was};
    if (!st) st = pare_model_each_weight(copy, visit_weight, &s, err);
    s = (weight_sums){.g = g, .was = was};
    if (!st) st = pare_model_each_weight(g, visit_weight, &s, err);
    pare_model_free(copy);
    r->bits = s.weights ? 8 * (double)s.bytes / (double)s.weights : NAN;
    r->error = s.square > 0 ? s.error / s.square : 0;
    r->bytes = pare_model_size(g, 1, 0).bytes;
    return st;
}

static pare_status measure(pare_rival *r, const pare_model *f, pare_model *g,
                           const pare_rivals_inputs *on, pare_arena *a, const pare_exec *exec,
                           pare_err *err)
{
    pare_status st = compare_weights(r, f, g, a, err);
    if (!st) st = pare_evaluate_against(&r->inside, g, f, &on->data.held.data, false, exec, err);
    if (!st && on->other.inputs.n)
        st = pare_evaluate_against(&r->outside, g, f, &on->other, false, exec, err);
    return st;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static pare_status load(pare_rivals_inputs *on, pare_arena *a, const pare_model *m,
                        const pare_rivals_opts *o, const pare_exec *exec, pare_err *err)
{
    const pare_heldout_opts h = {.data = o->data,
                                 .column = o->column,
                                 .seed = o->seed,
                                 .most_fitted = o->fit_inputs,
                                 .fit_tokens = o->fit_tokens,
                                 .prove = 1,
                                 .proven_tokens = PARE_PROVEN_TOKENS,
                                 .exec = exec};
    const pare_data_opts d = {.column = o->column, .seed = o->seed, .exec = exec};
    pare_dataset all;
    pare_status st = pare_heldout_load(&on->data, a, m, &h, err);
    if (st || !o->other) return st;
    st = pare_dataset_load(&all, a, m, o->other, &d, err);
    return st ? st : pare_dataset_heldout(&on->other, a, &all, o->seed, err);
}

/* Which makers `methods` names. */
static pare_status choose(bool wanted[PARE_RIVALS], const char *methods, pare_err *err)
{
    for (size_t k = 0; k < PARE_RIVALS; k++) wanted[k] = !methods;
    for (const char *at = methods; at && *at;) {
        const size_t n = strcspn(at, ",");
        size_t k = 0;
        while (k < PARE_RIVALS &&
               (strlen(makers[k].name) != n || strncmp(makers[k].name, at, n) != 0))
            k++;
        if (k == PARE_RIVALS)
            return pare_fail(err, PARE_ERR_USAGE,
                             "'%.*s' is none of the methods rtn, gptq, seedlm, masks, trellis",
                             n < 40 ? (int)n : 40, at);
        wanted[k] = true;
        at += n + (at[n] == ',');
    }
    return PARE_OK;
}

pare_status pare_compare_rivals(pare_rivals *out, pare_arena *a, const pare_model *m,
                                const pare_rivals_opts *o, const pare_exec *exec, pare_err *err)
{
    bool wanted[PARE_RIVALS];
    double all = 0;
    *out = (pare_rivals){0};
    if (!(o->bits >= LEAST_BITS && o->bits <= MOST_BITS))
        return pare_fail(err, PARE_ERR_USAGE, "%g bits: methods are compared at %g to %g", o->bits,
                         LEAST_BITS, MOST_BITS);
    pare_status st = choose(wanted, o->methods, err);
    for (size_t k = 0; !st && k < PARE_RIVALS; k++) all += wanted[k] ? makers[k].work : 0;
    pare_steps steps = pare_steps_of(exec, all);
    if (!st) st = load(&out->on, a, m, o, NULL, err);
    for (size_t k = 0; !st && k < PARE_RIVALS; k++) {
        if (!wanted[k]) continue;
        pare_rival *const r = &out->of[out->n++];
        const pare_exec *const own = pare_step(&steps, makers[k].name, makers[k].work);
        pare_model *g = NULL;
        const double start = pare_seconds();
        r->method = makers[k].name;
        st = makers[k].make(&g, m, o, &out->on.data.fit, own, err);
        r->seconds = pare_seconds() - start;
        if (!st) st = measure(r, m, g, &out->on, a, own, err);
        pare_model_free(g);
    }
    return st;
}
