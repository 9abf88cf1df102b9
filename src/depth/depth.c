/* depth.c - pare_depth: from a model and its data to one with fewer attention layers
 * (pare/depth.h). Calibrate, make every replacement that is allowed, choose, write. */
#include "replace_layers.h"
#include <math.h>
#include <string.h>

/* Tokens that layers are chosen by; replacements are fitted to all that are given. */
#define CHOICE_TOKENS 2048

typedef struct depth_job {
    pare_work work;
    const pare_model *in;
    const pare_depth_opts *o;
    size_t exact; /* attention layers that stay */
    bool *keep;   /* which of them are named */
    selection c;
    pare_inputs chosen_by;
    kind_plan as, plan; /* what each layer would get; what it gets */
} depth_job;

/* ---- options --------------------------------------------------------------------------------- */

static size_t exact_layers(const pare_depth_opts *o)
{
    return o->layers == PARE_DEPTH_UNSET ? o->nexact : o->layers;
}

bool pare_depth_needs_data(const pare_model *m, const pare_depth_opts *opts)
{
    const size_t n = list_softmax_layers(NULL, m), exact = exact_layers(opts);
    if (opts->blocks) return true;
    if (exact >= n) return false;
    return opts->kind == PARE_ATTN_NONE || replacement_is_fitted(opts->kind) ||
           exact > opts->nexact;
}

static void check_options(depth_job *s)
{
    const pare_depth_opts *const o = s->o;
    const size_t n = s->c.n;
    const char *const are = s->exact == 1 ? " is" : "s are";
    for (size_t i = 0; !s->work.st && i < o->nexact; i++) {
        size_t l = 0;
        while (l < n && s->c.layers[l].block != o->exact[i]) l++;
        if (l == n)
            pare_work_fail(&s->work, PARE_ERR_USAGE,
                           "layer %zu is to stay, but the model has no attention there (layers are "
                           "counted from 0)",
                           o->exact[i]);
        else if (s->keep[l])
            pare_work_fail(&s->work, PARE_ERR_USAGE, "layer %zu is named twice", o->exact[i]);
        else
            s->keep[l] = true;
    }
    if (o->layers == PARE_DEPTH_UNSET && o->nexact == 0)
        pare_work_fail(&s->work, PARE_ERR_USAGE,
                       "set layers or exact: how many attention layers stay, or which");
    if (s->exact > n)
        pare_work_fail(&s->work, PARE_ERR_USAGE,
                       "%zu attention layer%s to stay, but the model has %zu", s->exact, are, n);
    if (s->exact < o->nexact)
        pare_work_fail(&s->work, PARE_ERR_USAGE, "%zu attention layer%s to stay, but %zu are named",
                       s->exact, are, o->nexact);
}

/* A kind that was requested must do for every layer that may be replaced; auto takes those that do.
 * Returns what must be calibrated for the kinds that are allowed. */
static calibration allow_kinds(depth_job *s)
{
    const pare_attn_kind asked = s->o->kind;
    calibration c = {.influence = s->o->select == PARE_DEPTH_INFLUENCE};
    for (size_t l = 0; !s->work.st && l < s->c.n; l++)
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            const pare_attn_kind kind = kind_at(k);
            if (s->keep[l] || s->exact == s->c.n || (asked && asked != kind)) continue;
            const char *const why = replacement_refused(s->in, s->c.layers[l].attn, kind);
            if (why && asked)
                pare_work_fail(&s->work, PARE_ERR_INPUT, "layer %zu cannot be %s: %s",
                               s->c.layers[l].block, pare_attn_name(kind), why);
            s->c.allowed[l][k] = !why;
            if (why) continue;
            c.fit |= replacement_is_fitted(kind);
            c.mix |= kind == PARE_ATTN_AFFMIX;
            c.pool |= kind == PARE_ATTN_POOL;
        }
    return c;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Replacements that cost least alone need not do so together: tries one kind for all layers. */
static void try_one_kind(depth_job *s)
{
    kind_plan plans[PARE_DEPTH_KINDS + 1];
    double err2[PARE_DEPTH_KINDS + 1];
    size_t count = 1, best = 0;
    plans[0] = s->plan;
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
        bool all = true;
        const kind_plan plan = selection_plan(&s->c);
        for (size_t l = 0; plan && l < s->c.n; l++) {
            if (s->plan[l] == PARE_ATTN_EXACT) continue;
            plan[l] = kind_at(k);
            all &= s->c.allowed[l][k];
        }
        if (all) plans[count++] = plan;
    }
    selection_errors(err2, &s->c, plans, count);
    for (size_t p = 1; !s->work.st && p < count; p++)
        if (err2[p] < err2[best]) best = p;
    if (!s->work.st) memcpy(s->plan, plans[best], s->c.n * sizeof *s->plan);
}

static void choose_layers(depth_job *s, const pare_inputs *data, calibration want)
{
    pare_work *const w = &s->work;
    const bool fits = data && (want.fit || want.influence), any_kind = s->o->kind == PARE_ATTN_NONE;
    pare_steps steps = pare_steps_of(w->exec, (fits ? 1 : 0) + 6 + 1 + (any_kind ? 1 : 0));
    w->exec = pare_step(&steps, "calibrate", fits ? 1 : 0);
    if (fits) calibrate(w, s->c.layers, s->c.n, s->in, data, want);
    selection_make(&s->c);
    if (!w->st && data) {
        s->chosen_by = selection_inputs(data, CHOICE_TOKENS);
        s->c.data = &s->chosen_by;
        (void)pare_step(&steps, "choose layers", 6); /* every layer in every kind */
        selection_measure(&s->c);
        selection_leave_one_out(&s->c);
    }
    if (w->st) return;
    /* the requested kind or, of those allowed, the first that costs least alone */
    for (size_t l = 0; l < s->c.n; l++) {
        size_t best = PARE_DEPTH_KINDS;
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            if (!s->c.allowed[l][k]) continue;
            if (best == PARE_DEPTH_KINDS || s->c.loo[l][k] < s->c.loo[l][best]) best = k;
        }
        s->as[l] = best == PARE_DEPTH_KINDS ? PARE_ATTN_EXACT : kind_at(best);
    }
    (void)pare_step(&steps, "choose layers", 1);
    select_layers(s->plan, &s->c, s->as, s->keep, s->exact, s->o->select);
    (void)pare_step(&steps, "choose layers", any_kind ? 1 : 0);
    if (!w->st && any_kind && s->exact < s->c.n) try_one_kind(s);
}

/* ---- the result ------------------------------------------------------------------------------ */

static pare_model *write_model(depth_job *s)
{
    pare_model *m = NULL;
    pare_work *const w = &s->work;
    if (!w->st) w->st = pare_model_clone(&m, s->in, w->err);
    for (size_t l = 0; !w->st && l < s->c.n; l++) {
        const softmax_layer *const layer = &s->c.layers[l];
        if (s->plan[l] != PARE_ATTN_EXACT)
            w->st = replacement_make(&m->blocks[layer->block].attn, m->arena, layer, s->plan[l],
                                     w->err);
    }
    if (!w->st) w->st = pare_model_round(m, s->in, s->o->dtype, w->err);
    if (!w->st) w->st = pare_model_check(m, w->err);
    return m;
}

static double relative_error(double err2, double size2)
{
    return size2 > 0 || isnan(err2) ? sqrt(err2 / size2) : 0;
}

static void fill_report(pare_depth_report *r, depth_job *s, pare_model *m)
{
    double err2 = NAN;
    *r = (pare_depth_report){.nlayers = s->c.n, .exact = s->exact, .error_est = NAN};
    r->layers = pare_alloc(m->arena, s->c.n ? s->c.n : 1, sizeof *r->layers);
    if (!r->layers) pare_work_keep(&s->work, pare_no_memory(s->work.err));
    if (s->work.st) return;
    for (size_t l = 0; l < s->c.n; l++) {
        const softmax_layer *const from = &s->c.layers[l];
        const bool stays = s->plan[l] == PARE_ATTN_EXACT;
        const pare_attn_kind k = stays ? s->as[l] : s->plan[l]; /* what it would have cost */
        pare_depth_layer *const to = &r->layers[l];
        *to = (pare_depth_layer){.block = from->block,
                                 .kind = stays ? from->attn->kind : s->plan[l],
                                 .loo_est = NAN,
                                 .influence_est = NAN};
        if (s->o->select == PARE_DEPTH_INFLUENCE && from->tokens > 0)
            to->influence_est = from->influence / from->tokens;
        if (k != PARE_ATTN_EXACT)
            to->loo_est = relative_error(s->c.loo[l][k - PARE_ATTN_ZERO], s->c.size);
        if (stays || !replacement_is_fitted(k)) continue;
        const size_t unknowns = replacement_unknowns(from->attn, k);
        r->tokens = (size_t)from->tokens;
        if (unknowns > r->unknowns) r->unknowns = unknowns;
    }
    if (!s->c.data) return;
    selection_errors(&err2, &s->c, &s->plan, 1);
    r->error_est = relative_error(err2, s->c.size);
}

pare_status pare_depth(pare_model **out, pare_depth_report *report, const pare_model *in,
                       const pare_inputs *data, const pare_depth_opts *opts, const pare_exec *exec,
                       pare_err *err)
{
    const pare_exec silent = pare_exec_silent(exec);
    depth_job s = {.work = {.arena = pare_arena_new(), .exec = exec, .err = err},
                   .in = in,
                   .o = opts,
                   .exact = exact_layers(opts)};
    pare_work *const w = &s.work;
    *out = NULL;
    if (!w->arena) return pare_no_memory(err);
    if (opts->blocks) {
        const pare_inputs some = data ? selection_inputs(data, CHOICE_TOKENS) : (pare_inputs){0};
        if (opts->layers != PARE_DEPTH_UNSET || opts->nexact)
            pare_work_fail(w, PARE_ERR_USAGE, "set blocks, or layers and exact, but not both");
        if (!w->st) depth_drop_blocks(w, out, report, in, &some, opts->blocks);
        pare_arena_free(w->arena);
        return w->st;
    }
    s.c = (selection){.work = w, .m = in};
    selection_open(&s.c);
    s.keep = pare_work_alloc(w, s.c.n, sizeof *s.keep);
    s.as = selection_plan(&s.c);
    s.plan = selection_plan(&s.c);
    if (!w->st) check_options(&s);
    const calibration want = allow_kinds(&s);
    const bool any_data = data && data->n > 0;
    if (!w->st && !any_data && pare_depth_needs_data(in, opts))
        pare_work_fail(w, PARE_ERR_USAGE, "this cut needs data: %s",
                       opts->kind && !replacement_is_fitted(opts->kind)
                           ? "layers are chosen by it"
                           : "what replaces attention is fitted to it");
    if (!w->st) choose_layers(&s, any_data ? data : NULL, want);
    w->exec = &silent;
    pare_model *m = write_model(&s);
    if (!w->st) fill_report(report, &s, m);
    if (w->st) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    pare_arena_free(w->arena);
    return w->st;
}
