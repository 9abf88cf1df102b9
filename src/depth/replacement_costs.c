/* replacement_costs.c - pare_depth_replacement_costs: every kind of replacement in every attention
 * layer, alone and together. The replacements are those that `pare depth` would write
 * (replace_layers.h); they are measured and thrown away. */
#include "replace_layers.h"
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include <pare/depth.h>
#include <math.h>
#include <string.h>

enum { CHOICE_TOKENS = 512 }; /* that layers are chosen by */

typedef struct costs_job {
    pare_work work;
    pare_replacement_costs *out;
    pare_arena *keep; /* the caller's */
    const pare_inputs *fit, *heldout;
    const pare_replacement_costs_opts *o;
    pare_inputs choose;
    selection c;      /* on `heldout` */
    selection chosen; /* the same on `choose` */
    double without;   /* |h - h without attention|^2; nan: some layer has no skip */
} costs_job;

static void open_job(costs_job *j)
{
    selection *const c = &j->c;
    pare_replacement_costs *const out = j->out;
    selection_open(c);
    out->nlayers = c->n;
    out->kinds = pare_alloc(j->keep, c->n + 1, sizeof *out->kinds);
    out->curves = pare_alloc(j->keep, PARE_DEPTH_KINDS, sizeof *out->curves);
    if (!out->kinds || !out->curves) pare_work_keep(&j->work, pare_no_memory(j->work.err));
    for (size_t l = 0; !j->work.st && l < c->n; l++) {
        const pare_attn *const a = c->layers[l].attn;
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            out->kinds[l][k] =
                (pare_replacement_cost){.refused = replacement_refused(c->m, a, kind_at(k)),
                                        .local = NAN,
                                        .loo = NAN,
                                        .metric = NAN,
                                        .macs = NAN};
            c->allowed[l][k] = !out->kinds[l][k].refused;
        }
        for (size_t h = 0; h < a->nheads; h++)
            out->state += 4 * (double)(a->heads[h].dk + a->heads[h].dv);
    }
}

/* Multiplications of a pass over one of the inputs. */
static double macs_on(const pare_model *m, const pare_input *in)
{
    const uint64_t edges = in->graph ? in->graph->ptr[in->graph->n] : 0;
    return (double)in->batch * (double)pare_model_macs(m, in->tokens, edges);
}

/* Multiplications of everything: half a pass for each layer alone, two thirds of one for each
 * candidate of the greedy choice. */
static double total_macs(const costs_job *j)
{
    const double n = (double)j->c.n, each = PARE_DEPTH_KINDS;
    double heldout = 0, choose = 0;
    for (size_t i = 0; i < j->heldout->n; i++) heldout += macs_on(j->c.m, &j->heldout->in[i]);
    for (size_t i = 0; i < j->choose.n; i++) choose += macs_on(j->c.m, &j->choose.in[i]);
    return heldout * each * (n * (j->o->metric ? 2 : 1) + n) + choose * each * n * n / 3;
}

/* ---- one layer alone ------------------------------------------------------------------------- */

static double largest_difference(const pare_mat *a, const pare_mat *b)
{
    double most = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t k = 0; k < a->cols; k++)
            most = fmax(most, fabs(pare_row(a, i)[k] - pare_row(b, i)[k]));
    return most;
}

/* The largest change of an entry of the layer's own output. */
static void local_errors(costs_job *j)
{
    const selection *const c = &j->c;
    for (size_t i = 0; !j->work.st && i < j->heldout->n; i++) {
        const pare_input *const in = &j->heldout->in[i];
        pare_work scratch = scratch_open(&j->work);
        const residual_streams s = residual_streams_of(&scratch, c->m, in);
        for (size_t l = 0; !scratch.st && l < c->n; l++) {
            pare_block block;
            const pare_mark mark = pare_arena_mark(scratch.arena);
            const pare_mat *const x = &s.at[c->layers[l].block];
            const pare_model branch = submodel_branch(&block, c->m, c->layers[l].attn);
            const pare_mat exact = submodel_run(&scratch, &branch, in, x);
            for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
                pare_replacement_cost *const to = &j->out->kinds[l][k];
                if (to->refused) continue;
                const pare_model cut = submodel_branch(&block, c->m, &c->made[l][k]);
                const pare_mat other = submodel_run(&scratch, &cut, in, x);
                if (scratch.st) break;
                to->local =
                    fmax(isnan(to->local) ? 0 : to->local, largest_difference(&exact, &other));
            }
            pare_arena_reset(scratch.arena, mark);
        }
        scratch_close(&scratch, &j->work);
        if (!j->work.st)
            j->work.st = pare_progress(j->work.exec, "replace within a layer", i + 1, j->heldout->n,
                                       j->work.err);
    }
}

/* The metric of a plan's model, and the share of multiplications it saves. */
static void measure_plan(costs_job *j, double *metric, double *macs, const kind_plan plan)
{
    const selection *const c = &j->c;
    if (j->work.st) return;
    const pare_mark mark = pare_arena_mark(j->work.arena);
    const pare_model m = selection_model(c, plan, &j->work);
    *metric = NAN;
    if (!j->work.st && j->heldout->n > 0)
        *macs = 1 - macs_on(&m, &j->heldout->in[0]) / macs_on(c->m, &j->heldout->in[0]);
    if (!j->work.st && j->o->metric) j->work.st = j->o->metric(j->o->self, metric, &m, j->work.err);
    pare_arena_reset(j->work.arena, mark);
}

static void replace_each_alone(costs_job *j)
{
    selection *const c = &j->c;
    selection_leave_one_out(c);
    const kind_plan plan = selection_plan(c);
    for (size_t l = 0; l < c->n; l++)
        for (size_t k = 0; !j->work.st && k < PARE_DEPTH_KINDS; k++) {
            pare_replacement_cost *const to = &j->out->kinds[l][k];
            if (to->refused) continue;
            to->loo = c->size > 0 ? sqrt(c->loo[l][k] / c->size) : 0;
            plan[l] = kind_at(k);
            measure_plan(j, &to->metric, &to->macs, plan);
            plan[l] = PARE_ATTN_EXACT;
            if (!j->work.st)
                j->work.st =
                    pare_progress(j->work.exec, "replace one layer", l * PARE_DEPTH_KINDS + k + 1,
                                  c->n * PARE_DEPTH_KINDS, j->work.err);
        }
}

/* ---- one layer after the other --------------------------------------------------------------- */

static void measure_point(pare_replacement_point *to, costs_job *j, const kind_plan plan)
{
    bool *const kept = j->work.st ? NULL : pare_alloc(j->keep, j->c.n + 1, sizeof *kept);
    double err2 = 0;
    if (!kept && !j->work.st) j->work.st = pare_no_memory(j->work.err);
    if (j->work.st) return;
    *to = (pare_replacement_point){.kept = kept};
    for (size_t l = 0; l < j->c.n; l++) to->exact += kept[l] = plan[l] == PARE_ATTN_EXACT;
    selection_errors(&err2, &j->c, &(kind_plan){plan}, 1);
    to->error = j->c.size > 0 ? sqrt(err2 / j->c.size) : 0;
    to->lost = j->without > 0 ? sqrt(err2 / j->without) : err2 > 0 ? NAN : 0;
    measure_plan(j, &to->metric, &to->macs, plan);
}

/* All layers become the k-th kind, one after the other, greedily. */
static void trace_curve(costs_job *j, size_t k)
{
    const selection *const c = &j->c;
    pare_replacement_curve *const to = &j->out->curves[j->out->ncurves];
    const kind_plan plan = selection_plan(c), as = selection_plan(c);
    const bool *const keep_none = pare_work_alloc(&j->work, c->n, sizeof *keep_none);
    for (size_t l = 0; l < c->n; l++)
        if (!c->allowed[l][k]) return;
    for (size_t l = 0; !j->work.st && l < c->n; l++) as[l] = kind_at(k);
    *to = (pare_replacement_curve){kind_at(k), pare_alloc(j->keep, c->n + 1, sizeof *to->points)};
    if (!to->points) pare_work_keep(&j->work, pare_no_memory(j->work.err));
    for (size_t i = 0; !j->work.st && i <= c->n; i++) {
        if (i > 0) selection_replace_next(plan, &j->chosen, as, keep_none);
        measure_point(&to->points[i], j, plan);
    }
    if (!j->work.st) j->out->ncurves++;
}

static void trace_curves(costs_job *j)
{
    const selection *const c = &j->c;
    const kind_plan none = selection_plan(c);
    bool all = true;
    j->chosen = *c;
    j->chosen.data = &j->choose;
    j->chosen.hidden = NULL;
    j->chosen.size = 0;
    selection_measure(&j->chosen);
    for (size_t l = 0; !j->work.st && l < c->n; l++) {
        all &= c->allowed[l][0];
        none[l] = PARE_ATTN_ZERO;
    }
    j->without = NAN;
    if (all) selection_errors(&j->without, c, &none, 1);
    for (size_t k = 0; !j->work.st && k < PARE_DEPTH_KINDS; k++) {
        trace_curve(j, k);
        if (!j->work.st)
            j->work.st = pare_progress(j->work.exec, "replace one after the other", k + 1,
                                       PARE_DEPTH_KINDS, j->work.err);
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void measure_all(costs_job *j, const pare_exec *exec)
{
    selection *const c = &j->c;
    calibration want = {.fit = true, .mix = true};
    pare_steps steps = pare_steps_of(exec, 10 + 45 + 45);
    for (size_t l = 0; l < c->n; l++) want.pool |= c->allowed[l][PARE_ATTN_POOL - PARE_ATTN_ZERO];
    (void)pare_step(&steps, "replace within a layer", 10);
    calibrate(&j->work, c->layers, c->n, c->m, j->fit, want);
    selection_make(c);
    local_errors(j);
    (void)pare_step(&steps, "replace one layer", 45);
    if (!j->work.st) selection_measure(c);
    replace_each_alone(j);
    (void)pare_step(&steps, "replace one after the other", 45);
    if (!j->work.st) trace_curves(j);
}

pare_status pare_depth_replacement_costs(pare_replacement_costs *out, pare_arena *a,
                                         const pare_model *m, const pare_input_split *data,
                                         const pare_replacement_costs_opts *o,
                                         const pare_exec *exec, pare_err *err)
{
    const pare_exec silent = pare_exec_silent(exec);
    costs_job j = {.work = {.arena = pare_arena_new(), .exec = &silent, .err = err},
                   .out = out,
                   .keep = a,
                   .fit = data->fit,
                   .heldout = data->heldout,
                   .o = o,
                   .choose = selection_inputs(data->fit, CHOICE_TOKENS)};
    j.c = (selection){.work = &j.work, .m = m, .data = data->heldout};
    *out = (pare_replacement_costs){0};
    if (!j.work.arena) return pare_no_memory(err);
    open_job(&j);
    const double macs = j.work.st ? 0 : total_macs(&j);
    if (!j.work.st && out->nlayers > 0 && o->macs > 0 && macs > o->macs)
        out->skipped =
            pare_sprintf(a, "trying every kind in every layer takes %.2g multiplications", macs);
    else if (!j.work.st && out->nlayers > 0)
        measure_all(&j, exec);
    pare_arena_free(j.work.arena);
    return j.work.st;
}
