/* One budget, spent over the directions (pare/plan.h). */
#include "plan_directions.h"
#include "cert/prove.h"
#include "model/stopwatch.h"
#include <pare/plan.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HALVINGS = 3,      /* between the two settings that a budget lies between ... */
    MOST_HALVINGS = 8, /* ... while nothing meets both an eps and a size */
    MOST_SINGLES = 1 + PARE_PLAN_WAYS * (PLAN_SETTINGS + MOST_HALVINGS + HALVINGS)
};

typedef struct search {
    const pare_model *m;
    const pare_inputs *fit, *on;
    const pare_plan_opts *o;
    const pare_exec *exec;
    pare_arena *arena;
    pare_err *err;
    pare_plan *plan;
    pare_steps steps;
} search;

/* ---- one try --------------------------------------------------------------------------------- */

double pare_plan_over(const pare_plan_opts *o, double error, uint64_t bytes, double ms)
{
    double most = fmax(error / o->eps, ms / o->max_ms);
    if (o->eps == 0) most = error > 0 ? INFINITY : 0;
    return fmax(most, (double)bytes / (double)o->max_bytes);
}

static pare_status look(const search *s, pare_plan_try *t, const pare_model *m, uint64_t bytes)
{
    t->parameters = pare_model_size(m, 1, 0).parameters;
    t->bytes = bytes + s->o->frame_bytes;
    const pare_status st = pare_forward_ms(&t->ms, &m, 1, &s->on->in[0], s->arena, s->exec, s->err);
    t->over = pare_plan_over(s->o, t->error, t->bytes, t->ms);
    return st;
}

/* How long a step takes, roughly, beside a cut in width: for the progress. */
static double step_time(const pare_plan_step *s)
{
    return s->way == PARE_PLAN_WEIGHTS ? 8 : 1;
}

static double try_time(const pare_plan_try *t)
{
    double sum = 0.2;
    for (size_t i = 0; i < t->nsteps; i++) sum += step_time(&t->steps[i]);
    return sum;
}

static pare_status attempt(search *s, pare_plan_try *t)
{
    pare_model *made[PARE_PLAN_WAYS] = {NULL};
    const pare_model *last = s->m;
    uint64_t bytes = pare_model_size(last, 1, 0).bytes;
    pare_status st = PARE_OK;
    s->exec = pare_step(&s->steps, "try cuts", try_time(t));
    t->error = 0;
    for (size_t i = 0; i < t->nsteps && !st; i++) {
        double gap = 0;
        st = pare_plan_make(&made[i], &bytes, &t->steps[i], last, s->fit, s->o->seed, s->exec,
                            s->err);
        const pare_model *const from = s->o->seen ? s->m : last;
        if (!st) st = pare_measure(&gap, from, made[i], s->on, s->exec, s->err);
        t->error = s->o->seen ? gap : t->error + gap;
        last = made[i];
    }
    if (!st) st = look(s, t, last, bytes);
    for (size_t i = PARE_PLAN_WAYS; i-- > 0;) pare_model_free(made[i]);
    if (plan_refused(st)) {
        t->refused = pare_strdup(s->arena, s->err->msg);
        t->over = INFINITY;
        st = t->refused ? PARE_OK : pare_no_memory(s->err);
    }
    if (!st && s->o->note) s->o->note(s->o->self, t);
    return st;
}

/* ---- the order of tries ---------------------------------------------------------------------- */

static bool first_wins(const pare_plan_try *a, const pare_plan_try *b, bool by_bytes)
{
    const bool fits_a = a->over <= 1, fits_b = b->over <= 1;
    if (fits_a != fits_b) return fits_a;
    if (!fits_a) return a->over < b->over;
    if (by_bytes && a->bytes != b->bytes) return a->bytes < b->bytes;
    if (a->error != b->error) return a->error < b->error;
    return a->bytes < b->bytes;
}

/* A stable sort: of equals the one that was made first, which has fewer steps. */
static void order(pare_plan_try *t, size_t n, bool by_bytes)
{
    for (size_t i = 1; i < n; i++) {
        const pare_plan_try one = t[i];
        size_t k = i;
        for (; k > 0 && first_wins(&one, &t[k - 1], by_bytes); k--) t[k] = t[k - 1];
        t[k] = one;
    }
}

/* ---- mixtures -------------------------------------------------------------------------------- */

/* Errors add up; sizes and times shrink by the factors of their parts. */
static bool foretell(pare_plan_try *out, const pare_plan_try *a, const pare_plan_try *b,
                     const pare_plan_try *plain, const pare_plan_opts *o)
{
    if (a->nsteps == 0 || b->nsteps == 0 || a->refused || b->refused) return false;
    if (a->steps[a->nsteps - 1].way >= b->steps[0].way)
        return false; /* in their order, each once */
    *out = *a;
    for (size_t i = 0; i < b->nsteps; i++) out->steps[out->nsteps++] = b->steps[i];
    out->error = a->error + b->error;
    const double part = (double)b->bytes / (double)plain->bytes;
    out->bytes = (uint64_t)((double)a->bytes * part);
    out->ms = a->ms * b->ms / plain->ms;
    out->over = pare_plan_over(o, out->error, out->bytes, out->ms);
    return true;
}

/* Pairs of what was tried alone, and a third direction on top of them, the most promising first. */
static pare_status mixtures(search *s, const pare_plan_try *singles, size_t n)
{
    const size_t room = n * n + n * n * n / 4 + 1;
    pare_plan_try *list = pare_alloc(s->arena, room, sizeof *list);
    size_t pairs = 0;
    if (!list) return pare_no_memory(s->err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n && pairs < room; k++)
            pairs += foretell(&list[pairs], &singles[i], &singles[k], &singles[0], s->o);
    size_t all = pairs;
    for (size_t i = 0; i < pairs; i++)
        for (size_t k = 0; k < n && all < room; k++)
            all += foretell(&list[all], &list[i], &singles[k], &singles[0], s->o);
    order(list, all, isfinite(s->o->eps));
    pare_status st = PARE_OK;
    for (size_t i = 0; i < all && i < s->o->mixtures && !st; i++) {
        st = attempt(s, &list[i]);
        s->plan->tries[s->plan->n++] = list[i];
    }
    return st;
}

/* ---- one direction --------------------------------------------------------------------------- */

static pare_status try_one(search *s, pare_plan_way way, double setting)
{
    pare_plan_try *t = &s->plan->tries[s->plan->n++];
    *t = (pare_plan_try){.nsteps = 1, .steps = {{way, setting}}};
    return attempt(s, t);
}

/* Two settings of one direction; a smaller setting is a deeper cut. */
typedef struct setting_gap {
    double mild, deep;
} setting_gap;

/* The tries of one direction so far. */
typedef struct way_tries {
    search *s;
    pare_plan_way way;
    size_t first;
} way_tries;

typedef bool meets(const search *s, const pare_plan_try *t);

static bool small_enough(const search *s, const pare_plan_try *t)
{
    return pare_plan_over(s->o, 0, t->bytes, t->ms) <= 1;
}

static bool exact_enough(const search *s, const pare_plan_try *t)
{
    return t->error <= s->o->eps;
}

static bool all_met(const search *s, const pare_plan_try *t)
{
    return small_enough(s, t) && exact_enough(s, t);
}

/* Deepest or mildest of those that were made, lie beyond a setting, and meet what is asked; `none`
 * where there is no such. */
static double mildest(const way_tries *w, double below, meets *asked, double none)
{
    double most = -INFINITY;
    for (size_t i = w->first; i < w->s->plan->n; i++) {
        const pare_plan_try *const t = &w->s->plan->tries[i];
        const double x = t->steps[0].setting;
        if (!t->refused && x < below && (!asked || asked(w->s, t))) most = fmax(most, x);
    }
    return isinf(most) ? none : most;
}

static double deepest(const way_tries *w, double above, meets *asked, double none)
{
    double least = INFINITY;
    for (size_t i = w->first; i < w->s->plan->n; i++) {
        const pare_plan_try *const t = &w->s->plan->tries[i];
        const double x = t->steps[0].setting;
        if (!t->refused && x > above && (!asked || asked(w->s, t))) least = fmin(least, x);
    }
    return isinf(least) ? none : least;
}

static bool any_fits(const way_tries *w)
{
    return !isnan(mildest(w, INFINITY, all_met, NAN));
}

/* Sizes fall as cuts deepen: the mildest that is small enough, which errs least, or nearly so. */
static setting_gap size_gap(const way_tries *w)
{
    const plan_ends end = plan_ends_of(w->way, w->s->m);
    const double deep = mildest(w, INFINITY, small_enough, end.deepest);
    return (setting_gap){deepest(w, deep, NULL, end.mildest), deep};
}

/* Errors rise, more or less: the deepest that is exact enough, which has the smallest file. */
static setting_gap error_gap(const way_tries *w)
{
    const plan_ends end = plan_ends_of(w->way, w->s->m);
    const double mild = deepest(w, -INFINITY, exact_enough, end.mildest);
    return (setting_gap){mild, mildest(w, mild, NULL, end.deepest)};
}

/* A few more between them; `beyond`: so many more while nothing meets all. */
static pare_status narrow(const way_tries *w, setting_gap gap(const way_tries *), int beyond)
{
    for (int i = 0; i < HALVINGS + beyond; i++) {
        const setting_gap g = gap(w);
        const bool share = w->way == PARE_PLAN_WIDTH && g.mild <= 1;
        const double mid = share ? (g.mild + g.deep) / 2 : floor((g.mild + g.deep) / 2);
        if (!(mid > g.deep && mid < g.mild)) return PARE_OK; /* whole numbers, or an end is nan */
        if (i >= HALVINGS && any_fits(w)) return PARE_OK;
        const pare_status st = try_one(w->s, w->way, mid);
        if (st || w->s->plan->tries[w->s->plan->n - 1].refused) return st;
    }
    return PARE_OK;
}

/* With both an eps and a size first what is small enough, for nothing milder can do; then what has
 * the smallest file of those that are exact enough as well. */
static pare_status one_way(search *s, pare_plan_way way)
{
    const way_tries w = {s, way, s->plan->n};
    const bool sized = isfinite(s->o->max_ms) || s->o->max_bytes != UINT64_MAX;
    const bool exact = isfinite(s->o->eps);
    double setting[PLAN_SETTINGS];
    const size_t n = plan_settings(setting, way, s->m);
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) st = try_one(s, way, setting[i]);
    if (!st && n && sized && (!exact || !any_fits(&w)))
        st = narrow(&w, size_gap, exact ? MOST_HALVINGS - HALVINGS : 0);
    if (!st && n && exact && (!sized || any_fits(&w))) st = narrow(&w, error_gap, 0);
    return st;
}

static pare_status alone(search *s)
{
    s->plan->tries[s->plan->n++] = (pare_plan_try){0}; /* the model as it is */
    pare_status st = attempt(s, &s->plan->tries[0]);
    for (int way = 0; way < PARE_PLAN_WAYS && !st; way++)
        if (s->o->ways >> way & 1) st = one_way(s, (pare_plan_way)way);
    s->plan->singles = s->plan->n;
    return st;
}

/* The time of all tries, as far as it is known beforehand. */
static double foreseen(const pare_model *m, const pare_plan_opts *o)
{
    double setting[PLAN_SETTINGS], sum = 0.2, each = 0;
    size_t ways = 0;
    for (int way = 0; way < PARE_PLAN_WAYS; way++) {
        if (!(o->ways >> way & 1)) continue;
        const pare_plan_step s = {(pare_plan_way)way, 0};
        const size_t n = plan_settings(setting, s.way, m);
        const bool narrowed = n > 0 && !isnan(plan_ends_of(s.way, m).mildest);
        sum += (double)(n + (narrowed ? HALVINGS : 0)) * (0.2 + step_time(&s));
        each += n > 0 ? step_time(&s) : 0;
        ways += n > 0;
    }
    return sum + (ways > 1 ? (double)o->mixtures * (0.2 + 2 * each / (double)ways) : 0);
}

pare_status pare_plan_search(pare_plan *out, pare_arena *a, const pare_model *m,
                             const pare_inputs *fit, const pare_inputs *on,
                             const pare_plan_opts *opts, const pare_exec *exec, pare_err *err)
{
    search s = {m, fit, on, opts, exec, a, err, out, pare_steps_of(exec, foreseen(m, opts))};
    *out = (pare_plan){.tries = pare_alloc(a, MOST_SINGLES + opts->mixtures, sizeof *out->tries)};
    if (!out->tries) return pare_no_memory(err);
    pare_status st = alone(&s);
    if (!st) st = mixtures(&s, out->tries, out->singles);
    if (st) return st;
    order(out->tries, out->n, isfinite(opts->eps));
    while (out->fit < out->n && out->tries[out->fit].over <= 1) out->fit++;
    return PARE_OK;
}
