/* plan.c - search for the cuts that meet a budget (pare/plan.h).
 *
 * First every direction alone: at its listed settings, then by bisection between the two settings
 * that the budget lies between. Then mixtures of two or three directions, those with the best
 * predicted result first (errors add, sizes and times multiply). */
#include "base/support.h"
#include "data/evaluate.h"
#include "formats/export_like.h"
#include "model/model_facts.h"
#include "model/model_file.h"
#include "plan_directions.h"
#include "reduce_parts.h"
#include "cert/prove.h"
#include "model/stopwatch.h"
#include <pare/plan.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HALVINGS = 3,      /* between the two settings that a budget lies between ... */
    MOST_HALVINGS = 8, /* ... while nothing meets both an eps and a size */
    MOST_SINGLES = 2 + PARE_PLAN_DIRECTIONS * (PLAN_SETTINGS + MOST_HALVINGS + HALVINGS)
};

typedef struct search {
    const pare_model *m;
    const pare_inputs *fit, *on;
    const pare_plan_opts *o;
    uint64_t file_bytes; /* of the model as it is; 0: not known */
    const pare_exec *exec;
    pare_arena *arena;
    pare_err *err;
    pare_plan *plan;
    pare_steps steps;
} search;

/* ---- one try --------------------------------------------------------------------------------- */

double pare_plan_over(const pare_plan_opts *o, double error, uint64_t bytes, double ms)
{
    if (!(error < INFINITY) || !(ms < INFINITY))
        return INFINITY; /* nan as well, which fmax drops */
    double most = fmax(error / o->eps, ms / o->max_ms);
    if (o->eps == 0) most = error > 0 ? INFINITY : 0;
    return fmax(most, (double)bytes / (double)o->max_bytes);
}

/* Relative time of a step, for the progress bar; a cut in width is 1. */
static double step_time(pare_plan_direction direction)
{
    return direction == PARE_PLAN_WEIGHTS ? 8 : direction == PARE_PLAN_QUANT ? 2 : 1;
}

/* Of the file or the folder that the cut would be. */
static pare_status count_bytes(search *s, uint64_t *out, const pare_model *cut)
{
    int64_t growth = 0;
    if (!s->o->folder) return model_file_bytes(out, cut, s->err);
    const pare_status st =
        pare_export_like_growth(&growth, cut, s->m, s->o->folder, s->o->dtype, s->err);
    *out = (uint64_t)((int64_t)s->file_bytes + growth);
    return st;
}

/* By the measure that the task of the data calls for. */
static pare_status measure_loss(search *s, pare_plan_try *t, const pare_model *last)
{
    pare_comparison c;
    const bool embeds = pare_model_embeds(s->m);
    t->loss = NAN;
    if (!s->o->scored || !(embeds || pare_dataset_has_targets(s->m, s->o->scored))) return PARE_OK;
    const pare_status st =
        pare_evaluate_against(&c, last, s->m, s->o->scored, false, s->exec, s->err);
    if (st) return st;
    const char *const metric = c.model.metric;
    const double more = c.model.value - c.reference.value;
    if (embeds) {
        s->plan->loss = "1 - the mean cosine to the model's embeddings";
        t->loss = 1 - c.cosine.mean;
    } else if (strcmp(metric, "perplexity") == 0) {
        const double nats = c.model.nats_per_byte - c.reference.nats_per_byte;
        s->plan->loss = isfinite(nats) ? "nats per byte, more than of the model"
                                       : "nats per token, more than of the model";
        t->loss = isfinite(nats) ? nats : c.model.scores.nats - c.reference.scores.nats;
    } else {
        const bool error = strcmp(metric, "mse") == 0;
        s->plan->loss = error                        ? "mean squared error, more than of the model"
                        : strcmp(metric, "auc") == 0 ? "AUC, less than of the model"
                                                     : "accuracy, less than of the model";
        t->loss = (error ? more : -more) + 0.0; /* not -0 */
    }
    if (t->nsteps == 0) t->loss = 0;
    return PARE_OK;
}

/* Makes the cuts of t, measures them, and notes by what factor the budget is missed. */
static pare_status make_try(search *s, pare_plan_try *t)
{
    pare_model *made[PARE_PLAN_DIRECTIONS] = {NULL};
    const pare_model *last = s->m;
    pare_status st = PARE_OK;
    double time = 0.2;
    for (size_t i = 0; i < t->nsteps; i++) time += step_time(t->steps[i].direction);
    s->exec = pare_step(&s->steps, "try cuts", time);
    t->error = 0;
    for (size_t i = 0; i < t->nsteps && !st; i++) {
        double gap = 0;
        t->steps[i].dtype = s->o->dtype;
        t->steps[i].folder = s->o->folder != NULL;
        st = pare_plan_make(&made[i], &t->steps[i], last, s->fit, s->o->seed, s->exec, s->err);
        const bool whole = s->o->seen || s->o->folder;
        if (!st) st = pare_measure(&gap, whole ? s->m : last, made[i], s->on, s->exec, s->err);
        t->error = whole ? gap : t->error + gap;
        last = made[i];
    }
    if (!st) st = measure_loss(s, t, last);
    t->bytes = s->file_bytes;
    if (!st && (t->nsteps > 0 || t->bytes == 0)) st = count_bytes(s, &t->bytes, last);
    if (!st) {
        t->parameters = pare_model_size(last, 1, 0).parameters;
        st = pare_forward_ms(&t->ms, &last, 1, &s->on->in[0], s->arena, s->exec, s->err);
        t->over = pare_plan_over(s->o, t->error, t->bytes, t->ms);
    }
    for (size_t i = PARE_PLAN_DIRECTIONS; i-- > 0;) pare_model_free(made[i]);
    if (plan_refused(st)) {
        t->refused = pare_strdup(s->arena, s->err->msg);
        t->over = INFINITY;
        st = t->refused ? PARE_OK : pare_no_memory(s->err);
    }
    if (!st && s->o->note) s->o->note(s->o->self, t);
    return st;
}

/* ---- the order of tries ---------------------------------------------------------------------- */

static bool is_better(const pare_plan_try *a, const pare_plan_try *b, bool by_bytes)
{
    const bool fits_a = a->over <= 1, fits_b = b->over <= 1;
    if (fits_a != fits_b) return fits_a;
    if (!fits_a) return a->over < b->over;
    if (by_bytes && a->bytes != b->bytes) return a->bytes < b->bytes;
    if (!by_bytes && !isnan(a->loss) && !isnan(b->loss)) { /* better than the model: no loss */
        const double loss_a = fmax(a->loss, 0), loss_b = fmax(b->loss, 0);
        if (loss_a != loss_b) return loss_a < loss_b;
    }
    if (a->error != b->error) return a->error < b->error;
    return a->bytes < b->bytes;
}

/* A stable sort: of equals the one that was made first, which has fewer steps. */
static void sort_tries(pare_plan_try *t, size_t n, bool by_bytes)
{
    for (size_t i = 1; i < n; i++) {
        const pare_plan_try one = t[i];
        size_t k = i;
        for (; k > 0 && is_better(&one, &t[k - 1], by_bytes); k--) t[k] = t[k - 1];
        t[k] = one;
    }
}

/* ---- mixtures -------------------------------------------------------------------------------- */

/* The predicted result of a and then b: errors add up; sizes and times shrink by the factors of
 * their parts. False where the two cannot follow each other. */
static bool predict(pare_plan_try *out, const pare_plan_try *a, const pare_plan_try *b,
                    const pare_plan_try *plain, const pare_plan_opts *o)
{
    if (a->nsteps == 0 || b->nsteps == 0 || a->refused || b->refused) return false;
    if (a->steps[a->nsteps - 1].direction >= b->steps[0].direction)
        return false; /* in their order, each once */
    if (a->steps[a->nsteps - 1].direction == PARE_PLAN_WEIGHTS)
        return false; /* the numbers of a ticket would be stored as integers, and it would be gone */
    *out = *a;
    for (size_t i = 0; i < b->nsteps; i++) out->steps[out->nsteps++] = b->steps[i];
    out->error = a->error + b->error;
    out->loss = a->loss + b->loss;
    const double part = (double)b->bytes / (double)plain->bytes;
    out->bytes = (uint64_t)((double)a->bytes * part);
    const pare_plan_step *const last = &b->steps[b->nsteps - 1];
    if (last->direction == PARE_PLAN_QUANT && last->setting >= PARE_PLAN_BYTES)
        out->bytes = b->bytes; /* whatever comes before it */
    out->ms = a->ms * b->ms / plain->ms;
    out->over = pare_plan_over(o, out->error, out->bytes, out->ms);
    return true;
}

/* Pairs of what was tried alone, and a third direction on top of them, the most promising first. */
static pare_status try_mixtures(search *s, const pare_plan_try *singles, size_t n)
{
    const size_t capacity = n * n + n * n * n / 4 + 1;
    pare_plan_try *list = pare_alloc(s->arena, capacity, sizeof *list);
    size_t pairs = 0;
    if (!list) return pare_no_memory(s->err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && pairs < capacity; k++)
            pairs += predict(&list[pairs], &singles[i], &singles[k], &singles[0], s->o);
    size_t all = pairs;
    for (size_t i = 0; i < pairs; i++)
        for (size_t k = 0; k < n && all < capacity; k++)
            all += predict(&list[all], &list[i], &singles[k], &singles[0], s->o);
    sort_tries(list, all, isfinite(s->o->eps));
    pare_status st = PARE_OK;
    for (size_t i = 0; i < all && i < s->o->mixtures && !st; i++) {
        st = make_try(s, &list[i]);
        s->plan->tries[s->plan->n++] = list[i];
    }
    return st;
}

/* ---- one direction --------------------------------------------------------------------------- */

static pare_status try_setting(search *s, pare_plan_direction direction, double setting)
{
    pare_plan_try *t = &s->plan->tries[s->plan->n++];
    *t = (pare_plan_try){.nsteps = 1, .steps = {{.direction = direction, .setting = setting}}};
    return make_try(s, t);
}

/* The tries of one direction so far. */
typedef struct way_tries {
    search *s;
    pare_plan_direction direction;
    size_t first;
} way_tries;

/* Parts of the budget. */
enum { SMALL = 1, EXACT = 2 };

/* Of the tries that were made and meet these parts of the budget: the largest setting below `limit`
 * (sign 1) or the smallest above it (sign -1); `none` where there is no such. A smaller setting is
 * a deeper cut. */
static double nearest_setting(const way_tries *w, int sign, double limit, int parts, double none)
{
    const pare_plan_opts *const o = w->s->o;
    double best = -INFINITY;
    for (size_t i = w->first; i < w->s->plan->n; i++) {
        const pare_plan_try *const t = &w->s->plan->tries[i];
        const double x = sign * t->steps[0].setting;
        const bool meets = (!(parts & SMALL) || pare_plan_over(o, 0, t->bytes, t->ms) <= 1) &&
                           (!(parts & EXACT) || t->error <= o->eps);
        if (!t->refused && x < sign * limit && meets) best = fmax(best, x);
    }
    return isinf(best) ? none : sign * best;
}

static bool any_fits(const way_tries *w)
{
    return !isnan(nearest_setting(w, 1, INFINITY, SMALL | EXACT, NAN));
}

/* Bisects between the mildest cut that is small enough and the next milder one (sizes fall as cuts
 * deepen), or between the deepest cut that is exact enough and the next deeper one (errors rise,
 * more or less). `extra`: so many more steps while nothing meets the whole budget. */
static pare_status bisect(const way_tries *w, int part, int extra)
{
    const plan_ends end = plan_ends_of(w->direction, w->s->m, w->s->o->folder);
    for (int i = 0; i < HALVINGS + extra; i++) {
        double mild, deep;
        if (part == SMALL) {
            deep = nearest_setting(w, 1, INFINITY, SMALL, end.deepest);
            mild = nearest_setting(w, -1, deep, 0, end.mildest);
        } else {
            mild = nearest_setting(w, -1, -INFINITY, EXACT, end.mildest);
            deep = nearest_setting(w, 1, mild, 0, end.deepest);
        }
        const bool share = w->direction == PARE_PLAN_WIDTH && mild <= 1;
        const double mid = share ? (mild + deep) / 2 : floor((mild + deep) / 2);
        if (!(mid > deep && mid < mild)) return PARE_OK; /* whole numbers, or an end is nan */
        if (i >= HALVINGS && any_fits(w)) return PARE_OK;
        const pare_status st = try_setting(w->s, w->direction, mid);
        if (st || w->s->plan->tries[w->s->plan->n - 1].refused) return st;
    }
    return PARE_OK;
}

/* The time of all tries, as far as it is known beforehand. */
static double expected_time(const pare_model *m, const pare_plan_opts *o)
{
    double setting[PLAN_SETTINGS], sum = 0.2, each = 0;
    size_t directions = 0;
    for (pare_plan_direction direction = 0; direction < PARE_PLAN_DIRECTIONS; direction++) {
        const bool tried = o->directions >> direction & 1;
        const size_t n = tried ? plan_settings(setting, direction, m, o->folder) : 0;
        if (n == 0) continue;
        const int halvings = isnan(plan_ends_of(direction, m, o->folder).mildest) ? 0 : HALVINGS;
        sum += (double)(n + (size_t)halvings) * (0.2 + step_time(direction));
        each += step_time(direction);
        directions++;
    }
    return sum + (directions > 1 ? (double)o->mixtures * (0.2 + 2 * each / (double)directions) : 0);
}

pare_status pare_plan_search(pare_plan *out, pare_arena *a, const pare_model *m,
                             const pare_input_split *data, const pare_plan_opts *opts,
                             const pare_exec *exec, pare_err *err)
{
    pare_err own = {0}; /* why a cut is refused is kept with the try */
    if (!err) err = &own;
    search s = {.m = m,
                .fit = data->fit,
                .on = data->heldout,
                .o = opts,
                .file_bytes = opts->files ? pare_files_bytes(opts->files) : 0,
                .exec = exec,
                .arena = a,
                .err = err,
                .plan = out,
                .steps = pare_steps_of(exec, expected_time(m, opts))};
    /* No cut has a smaller error than none: where that is all that counts nothing else is tried. */
    const bool whole =
        opts->files && isinf(opts->eps) && isinf(opts->max_ms) && s.file_bytes <= opts->max_bytes;
    const unsigned directions = whole ? 0 : opts->directions;
    if (opts->folder) {
        const pare_reduce_opts units = {.kind = PARE_REDUCE_WIDTH, .width.method = PARE_WIDTH_AUTO};
        const pare_status st = reduce_fits_folder(m, &units, err);
        if (st) return st;
    }
    *out = (pare_plan){.tries = pare_alloc(a, MOST_SINGLES + opts->mixtures, sizeof *out->tries)};
    if (!out->tries) return pare_no_memory(err);
    out->tries[out->n++] = (pare_plan_try){0}; /* the model as it is */
    pare_status st = make_try(&s, &out->tries[0]);
    for (pare_plan_direction direction = 0; direction < PARE_PLAN_DIRECTIONS && !st; direction++)
        if (directions >> direction & 1) {
            /* With both an eps and a size: first what is small enough, since no milder cut can
             * be; then the smallest file of those that are exact enough as well. */
            const way_tries w = {&s, direction, s.plan->n};
            const bool sized = isfinite(s.o->max_ms) || s.o->max_bytes != UINT64_MAX;
            const bool exact = isfinite(s.o->eps);
            double setting[PLAN_SETTINGS];
            const size_t n = plan_settings(setting, direction, s.m, opts->folder);
            for (size_t i = 0; i < n && !st; i++) st = try_setting(&s, direction, setting[i]);
            if (!st && n && sized && (!exact || !any_fits(&w)))
                st = bisect(&w, SMALL, exact ? MOST_HALVINGS - HALVINGS : 0);
            if (!st && n && exact && (!sized || any_fits(&w))) st = bisect(&w, EXACT, 0);
            if (!st && n && direction == PARE_PLAN_QUANT && opts->max_bytes < SIZE_MAX / 2)
                st = try_setting(&s, direction, (double)opts->max_bytes);
        }
    out->singles = out->n;
    if (!st) st = try_mixtures(&s, out->tries, out->singles);
    if (st) return st;
    sort_tries(out->tries, out->n, isfinite(opts->eps));
    while (out->fit < out->n && out->tries[out->fit].over <= 1) out->fit++;
    return PARE_OK;
}
