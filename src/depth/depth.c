/* pare_depth: from a model and its data to one with fewer attention layers (pare/depth.h). Gather,
 * make every kind that is allowed, choose, write. */
#include "replace_layers.h"
#include <math.h>
#include <string.h>

/* Tokens that layers are chosen by; kinds are fitted to all that are given. */
#define CHOICE_TOKENS 2048

typedef struct scene {
    const pare_model *in;
    const pare_depth_opts *o;
    size_t n, exact; /* attention layers; those that stay */
    layer *layers;
    bool *keep;
    selection c;
    pare_inputs chosen_by;
    kind_plan as, plan; /* what each would get; what it gets */
    pare_arena *a;
    const pare_exec *exec;
    pare_exec quiet; /* its threads and stop flag */
    pare_err *err;
} scene;

/* ---- options --------------------------------------------------------------------------------- */

static size_t exact_layers(const pare_depth_opts *o)
{
    return o->layers == PARE_DEPTH_UNSET ? o->nexact : o->layers;
}

bool pare_depth_needs_data(const pare_model *m, const pare_depth_opts *opts)
{
    const size_t n = list_softmax_layers(NULL, m), exact = exact_layers(opts);
    if (exact >= n) return false;
    return opts->kind == PARE_ATTN_NONE || replacement_is_fitted(opts->kind) ||
           exact > opts->nexact;
}

static pare_status check_count(const scene *s)
{
    const pare_depth_opts *const o = s->o;
    if (o->layers == PARE_DEPTH_UNSET && o->nexact == 0)
        return pare_fail(s->err, PARE_ERR_USAGE,
                         "set layers or exact: how many attention layers stay, or which");
    if (s->exact > s->n)
        return pare_fail(s->err, PARE_ERR_USAGE,
                         "%zu attention layer%s to stay, but the model has %zu", s->exact,
                         s->exact == 1 ? " is" : "s are", s->n);
    if (s->exact < o->nexact)
        return pare_fail(s->err, PARE_ERR_USAGE, "%zu attention layer%s to stay, but %zu are named",
                         s->exact, s->exact == 1 ? " is" : "s are", o->nexact);
    return PARE_OK;
}

static pare_status mark_exact(const scene *s)
{
    for (size_t i = 0; i < s->o->nexact; i++) {
        size_t l = 0;
        while (l < s->n && s->layers[l].block != s->o->exact[i]) l++;
        if (l == s->n)
            return pare_fail(
                s->err, PARE_ERR_USAGE,
                "layer %zu is to stay, but the model has no attention there (layers are "
                "counted from 0)",
                s->o->exact[i]);
        if (s->keep[l])
            return pare_fail(s->err, PARE_ERR_USAGE, "layer %zu is named twice", s->o->exact[i]);
        s->keep[l] = true;
    }
    return PARE_OK;
}

/* A kind that was asked for must do for every layer that may be replaced; auto takes what does. */
static pare_status allow(const scene *s)
{
    const pare_attn_kind asked = s->o->kind;
    for (size_t l = 0; l < s->n; l++)
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            const pare_attn_kind kind = (pare_attn_kind)(PARE_ATTN_ZERO + k);
            if (s->keep[l] || s->exact == s->n || (asked && asked != kind)) continue;
            const char *const why = replacement_refused(s->in, s->layers[l].a, kind);
            if (why && asked)
                return pare_fail(s->err, PARE_ERR_INPUT, "layer %zu cannot be %s: %s",
                                 s->layers[l].block, pare_attn_name(kind), why);
            s->c.allowed[l][k] = !why;
        }
    return PARE_OK;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static wanted wants(const scene *s)
{
    wanted w = {.influence = s->o->select == PARE_DEPTH_INFLUENCE};
    for (size_t l = 0; l < s->n; l++)
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            if (!s->c.allowed[l][k]) continue;
            w.fit |= replacement_is_fitted((pare_attn_kind)(PARE_ATTN_ZERO + k));
            w.mix |= PARE_ATTN_ZERO + k == PARE_ATTN_AFFMIX;
            w.pool |= PARE_ATTN_ZERO + k == PARE_ATTN_POOL;
        }
    return w;
}

static pare_status make_all(scene *s)
{
    pare_status st = PARE_OK;
    for (size_t l = 0; !st && l < s->n; l++)
        for (size_t k = 0; !st && k < PARE_DEPTH_KINDS; k++)
            if (s->c.allowed[l][k])
                st = replacement_make(&s->c.made[l][k], s->a, &s->layers[l],
                                      (pare_attn_kind)(PARE_ATTN_ZERO + k), s->err);
    return st;
}

/* The kind asked for or, of those allowed, the one that costs least alone; of equals the first. */
static void settle_kinds(scene *s)
{
    for (size_t l = 0; l < s->n; l++) {
        size_t best = PARE_DEPTH_KINDS;
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            if (!s->c.allowed[l][k]) continue;
            if (best == PARE_DEPTH_KINDS || s->c.loo[l][k] < s->c.loo[l][best]) best = k;
        }
        s->as[l] =
            best == PARE_DEPTH_KINDS ? PARE_ATTN_EXACT : (pare_attn_kind)(PARE_ATTN_ZERO + best);
    }
}

/* What costs least alone need not do so together: one kind for all layers that go may be better. */
static pare_status one_kind_for_all(scene *s)
{
    kind_plan plans[PARE_DEPTH_KINDS + 1];
    double err2[PARE_DEPTH_KINDS + 1];
    size_t count = 1, best = 0;
    plans[0] = s->plan;
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
        bool all = true;
        const kind_plan plan = pare_alloc(s->a, s->n, sizeof *plan);
        if (!plan) return pare_no_memory(s->err);
        for (size_t l = 0; l < s->n; l++) {
            const bool gone = s->plan[l] != PARE_ATTN_EXACT;
            plan[l] = gone ? (pare_attn_kind)(PARE_ATTN_ZERO + k) : PARE_ATTN_EXACT;
            all &= !gone || s->c.allowed[l][k];
        }
        if (all) plans[count++] = plan;
    }
    const pare_status st = selection_errors(err2, &s->c, plans, count);
    for (size_t w = 1; !st && w < count; w++)
        if (err2[w] < err2[best]) best = w;
    if (!st) memcpy(s->plan, plans[best], s->n * sizeof *s->plan);
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_inputs some_inputs(const pare_inputs *data)
{
    size_t n = 0, tokens = 0;
    while (n < data->n && tokens < CHOICE_TOKENS) {
        tokens += data->in[n].batch * data->in[n].tokens;
        n++;
    }
    return (pare_inputs){n, data->in};
}

static pare_status open_scene(scene *s)
{
    selection *const c = &s->c;
    const size_t n = s->n ? s->n : 1;
    s->layers = pare_alloc(s->a, n, sizeof *s->layers);
    s->keep = pare_alloc(s->a, n, sizeof *s->keep);
    s->as = pare_alloc(s->a, n, sizeof *s->as);
    s->plan = pare_alloc(s->a, n, sizeof *s->plan);
    c->made = pare_alloc(s->a, n, sizeof *c->made);
    c->allowed = pare_alloc(s->a, n, sizeof *c->allowed);
    c->loo = pare_alloc(s->a, n, sizeof *c->loo);
    if (!s->layers || !s->keep || !s->as || !s->plan || !c->made || !c->allowed || !c->loo)
        return pare_no_memory(s->err);
    list_softmax_layers(s->layers, s->in);
    for (size_t l = 0; l < s->n; l++)
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) c->loo[l][k] = NAN;
    c->layers = s->layers;
    return PARE_OK;
}

static pare_status choose(scene *s, const pare_inputs *data)
{
    const wanted w = wants(s);
    const bool fits = data && (w.fit || w.influence), any_kind = s->o->kind == PARE_ATTN_NONE;
    pare_status st = PARE_OK;
    pare_steps steps = pare_steps_of(s->exec, (fits ? 1 : 0) + 6 + 1 + (any_kind ? 1 : 0));
    s->exec = s->c.exec = pare_step(&steps, "calibrate", fits ? 1 : 0);
    if (data && (w.fit || w.influence))
        st = calibrate(s->layers, s->n, s->a, s->in, data, w, s->exec, s->err);
    if (!st) st = make_all(s);
    if (!st && data) {
        s->chosen_by = some_inputs(data);
        s->c.data = &s->chosen_by;
        (void)pare_step(&steps, "choose layers", 6); /* every layer in every kind */
        st = selection_open(&s->c);
        if (!st) st = selection_leave_one_out(&s->c);
    }
    if (st) {
        s->exec = s->c.exec = &s->quiet;
        return st;
    }
    settle_kinds(s);
    (void)pare_step(&steps, "choose layers", 1);
    st = select_layers(s->plan, &s->c, s->as, s->keep, s->exact, s->o->select);
    (void)pare_step(&steps, "choose layers", any_kind ? 1 : 0);
    if (!st && any_kind && s->exact < s->n) st = one_kind_for_all(s);
    s->exec = s->c.exec = &s->quiet;
    return st;
}

/* ---- the result ------------------------------------------------------------------------------ */

static pare_status write_model(pare_model **out, const scene *s)
{
    pare_model *m = NULL;
    pare_status st = pare_model_clone(&m, s->in, s->err);
    for (size_t l = 0; !st && l < s->n; l++)
        if (s->plan[l] != PARE_ATTN_EXACT)
            st = replacement_make(&m->blocks[s->layers[l].block].attn, m->arena, &s->layers[l],
                                  s->plan[l], s->err);
    if (!st) st = pare_model_check(m, s->err);
    if (st) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}

static double relative(double err2, double size2)
{
    return size2 > 0 || isnan(err2) ? sqrt(err2 / size2) : 0;
}

static pare_depth_layer describe(const scene *s, size_t l)
{
    pare_depth_layer d = {.block = s->layers[l].block,
                          .kind = s->plan[l] == PARE_ATTN_EXACT ? s->layers[l].a->kind : s->plan[l],
                          .loo_est = NAN,
                          .influence_est = NAN};
    if (s->o->select == PARE_DEPTH_INFLUENCE && s->layers[l].tokens > 0)
        d.influence_est = s->layers[l].influence / s->layers[l].tokens;
    /* Of a layer that stays: what it would have cost. */
    const pare_attn_kind k = s->plan[l] == PARE_ATTN_EXACT ? s->as[l] : s->plan[l];
    if (k != PARE_ATTN_EXACT) d.loo_est = relative(s->c.loo[l][k - PARE_ATTN_ZERO], s->c.size);
    return d;
}

static pare_status report_on(pare_depth_report *r, pare_model *m, const scene *s)
{
    double err2 = NAN;
    *r = (pare_depth_report){.nlayers = s->n, .exact = s->exact, .error_est = NAN};
    r->layers = pare_alloc(m->arena, s->n ? s->n : 1, sizeof *r->layers);
    if (!r->layers) return pare_no_memory(s->err);
    for (size_t l = 0; l < s->n; l++) {
        r->layers[l] = describe(s, l);
        if (s->plan[l] == PARE_ATTN_EXACT || !replacement_is_fitted(s->plan[l])) continue;
        const size_t unknowns = replacement_unknowns(s->layers[l].a, s->plan[l]);
        r->tokens = (size_t)s->layers[l].tokens;
        if (unknowns > r->unknowns) r->unknowns = unknowns;
    }
    if (!s->c.data) return PARE_OK;
    const pare_status st = selection_errors(&err2, &s->c, &s->plan, 1);
    r->error_est = relative(err2, s->c.size);
    return st;
}

pare_status pare_depth(pare_model **out, pare_depth_report *report, const pare_model *in,
                       const pare_inputs *data, const pare_depth_opts *opts, const pare_exec *exec,
                       pare_err *err)
{
    scene s = {
        .in = in, .o = opts, .n = list_softmax_layers(NULL, in), .exact = exact_layers(opts)};
    *out = NULL;
    s.a = pare_arena_new();
    if (!s.a) return pare_no_memory(err);
    s.exec = exec;
    s.quiet = pare_silent(exec);
    s.err = err;
    s.c = (selection){.m = in, .n = s.n, .a = s.a, .exec = exec, .err = err};
    pare_status st = open_scene(&s);
    if (!st) st = mark_exact(&s);
    if (!st) st = check_count(&s);
    if (!st) st = allow(&s);
    if (!st && (!data || data->n == 0) && pare_depth_needs_data(in, opts))
        st = pare_fail(err, PARE_ERR_USAGE, "this cut needs data: %s",
                       opts->kind && !replacement_is_fitted(opts->kind)
                           ? "layers are chosen by it"
                           : "what replaces attention is fitted to it");
    if (!st) st = choose(&s, data && data->n ? data : NULL);
    if (!st) st = write_model(out, &s);
    if (!st) st = report_on(report, *out, &s);
    if (st) {
        pare_model_free(*out);
        *out = NULL;
    }
    pare_arena_free(s.a);
    return st;
}
