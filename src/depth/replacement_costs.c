/* pare_depth_costs: every kind in the place of every attention, alone and together. What stands in
 * its place is what `pare depth` would write (replace_layers.h); it is tried and thrown away. */
#include "replace_layers.h"
#include <pare/xray.h>
#include <math.h>
#include <string.h>

enum { CHOICE_TOKENS = 512 }; /* that layers are chosen by */

typedef struct costs_job {
    pare_xray_costs *out;
    pare_arena *keep; /* the caller's */
    const pare_inputs *fit, *look;
    const pare_xray_costs_opts *o;
    layer *layers;
    pare_inputs choose;
    selection c;      /* on `look` */
    selection chosen; /* the same on `choose` */
    double nothing;   /* |h - h without attention|^2; nan: not to be had */
} costs_job;

static pare_attn_kind kind_at(size_t k)
{
    return (pare_attn_kind)(PARE_ATTN_ZERO + k);
}

/* ---- opening --------------------------------------------------------------------------------- */

static pare_status list_layers(costs_job *j)
{
    selection *const c = &j->c;
    pare_xray_costs *const out = j->out;
    out->nlayers = c->n = list_softmax_layers(NULL, c->m);
    out->kinds = pare_alloc(j->keep, c->n + 1, sizeof *out->kinds);
    out->curves = pare_alloc(j->keep, PARE_DEPTH_KINDS, sizeof *out->curves);
    j->layers = pare_alloc(c->a, c->n + 1, sizeof *j->layers);
    c->made = pare_alloc(c->a, c->n + 1, sizeof *c->made);
    c->allowed = pare_alloc(c->a, c->n + 1, sizeof *c->allowed);
    c->loo = pare_alloc(c->a, c->n + 1, sizeof *c->loo);
    if (!out->kinds || !out->curves || !j->layers || !c->made || !c->allowed || !c->loo)
        return pare_no_memory(c->err);
    c->layers = j->layers;
    list_softmax_layers(j->layers, c->m);
    for (size_t l = 0; l < c->n; l++) {
        const pare_attn *const a = j->layers[l].a;
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            out->kinds[l][k] = (pare_xray_kind){.refused = replacement_refused(c->m, a, kind_at(k)),
                                                .local = NAN,
                                                .loo = NAN,
                                                .metric = NAN,
                                                .macs = NAN};
            c->allowed[l][k] = !out->kinds[l][k].refused;
            c->loo[l][k] = NAN;
        }
        for (size_t h = 0; h < a->nheads; h++)
            out->state += 4 * (double)(a->heads[h].dk + a->heads[h].dv);
    }
    return PARE_OK;
}

static pare_status make_kinds(costs_job *j)
{
    selection *const c = &j->c;
    const wanted all = {.fit = true, .mix = true, .pool = true};
    wanted some = all;
    some.pool = false; /* where no layer can have it, its sums are not gathered */
    for (size_t l = 0; l < c->n; l++) some.pool |= c->allowed[l][PARE_ATTN_POOL - PARE_ATTN_ZERO];
    pare_status st = calibrate(j->layers, c->n, c->a, c->m, j->fit, some, c->exec, c->err);
    for (size_t l = 0; !st && l < c->n; l++)
        for (size_t k = 0; !st && k < PARE_DEPTH_KINDS; k++)
            if (c->allowed[l][k])
                st = replacement_make(&c->made[l][k], c->a, &j->layers[l], kind_at(k), c->err);
    return st;
}

static size_t tokens_of(const pare_inputs *in)
{
    size_t n = 0;
    for (size_t i = 0; i < in->n; i++) n += in->in[i].batch * in->in[i].tokens;
    return n;
}

static pare_inputs first_of(const pare_inputs *all, size_t tokens)
{
    pare_inputs some = {.in = all->in};
    while (some.n < all->n && tokens_of(&some) < tokens) some.n++;
    return some;
}

/* Multiplications of a pass over one of the inputs. */
static double macs_on(const pare_model *m, const pare_input *in)
{
    const uint64_t edges = in->graph ? in->graph->ptr[in->graph->n] : 0;
    return (double)in->batch * (double)pare_model_size(m, in->tokens, edges).macs;
}

/* ... over all, times the passes that trying everything takes: a half for each layer alone, two
 * thirds for each candidate of the greedy choice. */
static double effort(const costs_job *j)
{
    const double n = (double)j->c.n, each = PARE_DEPTH_KINDS;
    double look = 0, choose = 0;
    for (size_t i = 0; i < j->look->n; i++) look += macs_on(j->c.m, &j->look->in[i]);
    for (size_t i = 0; i < j->choose.n; i++) choose += macs_on(j->c.m, &j->choose.in[i]);
    return look * each * (n * (j->o->metric ? 2 : 1) + n) + choose * each * n * n / 3;
}

/* ---- one layer alone ------------------------------------------------------------------------- */

static double apart(const pare_mat *a, const pare_mat *b)
{
    double most = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t k = 0; k < a->cols; k++)
            most = fmax(most, fabs(pare_row(a, i)[k] - pare_row(b, i)[k]));
    return most;
}

static pare_status local_on(costs_job *j, const pare_input *in, pare_arena *a)
{
    const selection *const c = &j->c;
    residual_streams s;
    pare_block block;
    pare_mat exact, other;
    pare_status st = residual_streams_of(&s, a, c->m, in, c->exec, c->err);
    for (size_t l = 0; !st && l < c->n; l++) {
        const pare_mark mark = pare_arena_mark(a);
        const pare_mat *const x = &s.at[j->layers[l].block];
        const pare_model alone = submodel_branch(&block, c->m, j->layers[l].a);
        st = submodel_run(&exact, a, &alone, in, x, c->exec, c->err);
        for (size_t k = 0; !st && k < PARE_DEPTH_KINDS; k++) {
            pare_xray_kind *const to = &j->out->kinds[l][k];
            if (to->refused) continue;
            const pare_model cut = submodel_branch(&block, c->m, &c->made[l][k]);
            st = submodel_run(&other, a, &cut, in, x, c->exec, c->err);
            if (!st) to->local = fmax(isnan(to->local) ? 0 : to->local, apart(&exact, &other));
        }
        pare_arena_reset(a, mark);
    }
    return st;
}

static pare_status local_all(costs_job *j)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < j->look->n; i++) {
        pare_arena *const a = pare_arena_new();
        st = a ? local_on(j, &j->look->in[i], a) : pare_no_memory(j->c.err);
        pare_arena_free(a);
        if (!st)
            st = pare_progress(j->c.exec, "replace within a layer", i + 1, j->look->n, j->c.err);
    }
    return st;
}

/* The model of a way; its blocks in the arena. */
static pare_status model_of(pare_model *out, const selection *c, const kind_plan plan,
                            pare_arena *a)
{
    *out = *c->m;
    out->blocks = pare_alloc(a, c->m->nblocks + 1, sizeof *out->blocks);
    if (!out->blocks) return pare_no_memory(c->err);
    memcpy(out->blocks, c->m->blocks, c->m->nblocks * sizeof *out->blocks);
    for (size_t l = 0; l < c->n; l++)
        if (plan[l] != PARE_ATTN_EXACT)
            out->blocks[c->layers[l].block].attn = c->made[l][plan[l] - PARE_ATTN_ZERO];
    return PARE_OK;
}

/* What the outputs are worth and what is saved. */
static pare_status weigh(double *metric, double *macs, const costs_job *j, const kind_plan plan)
{
    const selection *const c = &j->c;
    const pare_mark mark = pare_arena_mark(c->a);
    pare_model m;
    pare_status st = model_of(&m, c, plan, c->a);
    *metric = NAN;
    if (!st && j->look->n > 0)
        *macs = 1 - macs_on(&m, &j->look->in[0]) / macs_on(c->m, &j->look->in[0]);
    if (!st && j->o->metric) st = j->o->metric(j->o->self, metric, &m, c->err);
    pare_arena_reset(c->a, mark);
    return st;
}

static kind_plan new_plan(const selection *c)
{
    const kind_plan plan = pare_alloc(c->a, c->n + 1, sizeof *plan);
    for (size_t l = 0; plan && l < c->n; l++) plan[l] = PARE_ATTN_EXACT;
    return plan;
}

static pare_status alone_all(costs_job *j)
{
    selection *const c = &j->c;
    pare_status st = selection_leave_one_out(c);
    const kind_plan plan = new_plan(c);
    if (!st && !plan) st = pare_no_memory(c->err);
    for (size_t l = 0; !st && l < c->n; l++)
        for (size_t k = 0; !st && k < PARE_DEPTH_KINDS; k++) {
            pare_xray_kind *const to = &j->out->kinds[l][k];
            if (to->refused) continue;
            to->loo = c->size > 0 ? sqrt(c->loo[l][k] / c->size) : 0;
            plan[l] = kind_at(k);
            st = weigh(&to->metric, &to->macs, j, plan);
            plan[l] = PARE_ATTN_EXACT;
            if (!st)
                st = pare_progress(c->exec, "replace one layer", l * PARE_DEPTH_KINDS + k + 1,
                                   c->n * PARE_DEPTH_KINDS, c->err);
        }
    return st;
}

/* ---- one layer after the other --------------------------------------------------------------- */

/* Of the exact layers of `way` the one whose replacement costs least becomes `kind`. */
static pare_status replace_next(kind_plan plan, const selection *c, pare_attn_kind kind)
{
    kind_plan *const plans = pare_alloc(c->a, c->n + 1, sizeof *plans);
    size_t *const which = pare_alloc(c->a, c->n + 1, sizeof *which);
    double *const err2 = pare_alloc(c->a, c->n + 1, sizeof *err2);
    size_t count = 0, best = 0;
    if (!plans || !which || !err2) return pare_no_memory(c->err);
    for (size_t l = 0; l < c->n; l++) {
        if (plan[l] != PARE_ATTN_EXACT) continue;
        if (!(plans[count] = new_plan(c))) return pare_no_memory(c->err);
        memcpy(plans[count], plan, c->n * sizeof *plan);
        plans[count][l] = kind;
        which[count++] = l;
    }
    const pare_status st = selection_errors(err2, c, plans, count);
    for (size_t i = 1; i < count; i++)
        if (err2[i] < err2[best]) best = i;
    if (!st) plan[which[best]] = kind;
    return st;
}

static pare_status put_point(pare_xray_point *to, const costs_job *j, const kind_plan plan)
{
    bool *const kept = pare_alloc(j->keep, j->c.n + 1, sizeof *kept);
    double err2 = 0;
    if (!kept) return pare_no_memory(j->c.err);
    *to = (pare_xray_point){.kept = kept};
    for (size_t l = 0; l < j->c.n; l++) to->exact += kept[l] = plan[l] == PARE_ATTN_EXACT;
    pare_status st = selection_errors(&err2, &j->c, &(kind_plan){plan}, 1);
    if (st) return st;
    to->error = j->c.size > 0 ? sqrt(err2 / j->c.size) : 0;
    to->lost = j->nothing > 0 ? sqrt(err2 / j->nothing) : err2 > 0 ? NAN : 0;
    return weigh(&to->metric, &to->macs, j, plan);
}

static pare_status curve_of(costs_job *j, size_t k)
{
    const selection *const c = &j->c;
    pare_xray_curve *const to = &j->out->curves[j->out->ncurves];
    const kind_plan plan = new_plan(c);
    for (size_t l = 0; l < c->n; l++)
        if (!c->allowed[l][k]) return PARE_OK;
    *to = (pare_xray_curve){kind_at(k), pare_alloc(j->keep, c->n + 1, sizeof *to->points)};
    if (!plan || !to->points) return pare_no_memory(c->err);
    pare_status st = put_point(&to->points[0], j, plan);
    for (size_t i = 1; !st && i <= c->n; i++) {
        st = replace_next(plan, &j->chosen, kind_at(k));
        if (!st) st = put_point(&to->points[i], j, plan);
    }
    if (!st) j->out->ncurves++;
    return st;
}

/* |h - h'|^2 of the model whose attentions say nothing at all. */
static pare_status measure_nothing(costs_job *j)
{
    const selection *const c = &j->c;
    const kind_plan plan = new_plan(c);
    j->nothing = NAN;
    if (!plan) return pare_no_memory(c->err);
    for (size_t l = 0; l < c->n; l++) {
        if (!c->allowed[l][0]) return PARE_OK;
        plan[l] = PARE_ATTN_ZERO;
    }
    return selection_errors(&j->nothing, c, &(kind_plan){plan}, 1);
}

static pare_status curves_all(costs_job *j)
{
    j->chosen = j->c;
    j->chosen.data = &j->choose;
    j->chosen.hidden = NULL;
    j->chosen.size = 0;
    pare_status st = selection_open(&j->chosen);
    if (!st) st = measure_nothing(j);
    for (size_t k = 0; !st && k < PARE_DEPTH_KINDS; k++) {
        st = curve_of(j, k);
        if (!st)
            st = pare_progress(j->c.exec, "replace one after the other", k + 1, PARE_DEPTH_KINDS,
                               j->c.err);
    }
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_status try_all(costs_job *j, const pare_exec *exec)
{
    pare_steps steps = pare_steps_of(exec, 10 + 45 + 45);
    (void)pare_step(&steps, "replace within a layer", 10);
    pare_status st = make_kinds(j);
    if (!st) st = local_all(j);
    (void)pare_step(&steps, "replace one layer", 45);
    if (!st) st = selection_open(&j->c);
    if (!st) st = alone_all(j);
    (void)pare_step(&steps, "replace one after the other", 45);
    return st ? st : curves_all(j);
}

pare_status pare_depth_costs(pare_xray_costs *out, pare_arena *a, const pare_model *m,
                             const pare_inputs *fit, const pare_inputs *look,
                             const pare_xray_costs_opts *o, const pare_exec *exec, pare_err *err)
{
    pare_arena *const scratch = pare_arena_new();
    const pare_exec silent = pare_silent(exec);
    costs_job j = {.out = out, .keep = a, .fit = fit, .look = look, .o = o};
    j.c = (selection){.m = m, .data = look, .a = scratch, .exec = &silent, .err = err};
    j.choose = first_of(fit, CHOICE_TOKENS);
    *out = (pare_xray_costs){0};
    pare_status st = scratch ? list_layers(&j) : pare_no_memory(err);
    const double work = st ? 0 : effort(&j);
    if (!st && out->nlayers > 0 && o->macs > 0 && work > o->macs)
        out->skipped =
            pare_sprintf(a, "trying every kind in every layer takes %.2g multiplications", work);
    else if (!st && out->nlayers > 0)
        st = try_all(&j, exec);
    pare_arena_free(scratch);
    return st;
}
