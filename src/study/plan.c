/* One budget, spent over the directions (pare/plan.h). */
#include "plan_ways.h"
#include <pare/stopwatch.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HALVINGS = 3, /* between the last setting that fits and the first that does not */
    MOST_SINGLES = 1 + PARE_PLAN_WAYS * (PLAN_SETTINGS + HALVINGS)
};

typedef struct search {
    const pare_model *m;
    const pare_inputs *fit, *on;
    const pare_plan_opts *o;
    const pare_exec *exec;
    pare_arena *arena;
    pare_err *err;
    pare_plan *plan;
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

static pare_status attempt(const search *s, pare_plan_try *t)
{
    pare_model *made[PARE_PLAN_WAYS] = {NULL};
    const pare_model *last = s->m;
    uint64_t bytes = pare_model_size(last, 1, 0).bytes;
    pare_status st = PARE_OK;
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

static pare_status try_one(search *s, pare_plan_way way, double setting, bool *fits)
{
    pare_plan_try *t = &s->plan->tries[s->plan->n++];
    *t = (pare_plan_try){.nsteps = 1, .steps = {{way, setting}}};
    const pare_status st = attempt(s, t);
    *fits = !st && !t->refused && t->over <= 1;
    return st;
}

/* The budget lies between two settings: a few more between them. */
static pare_status halve(search *s, pare_plan_way way, double in, double out)
{
    pare_status st = PARE_OK;
    for (int i = 0; i < HALVINGS && !st; i++) {
        bool fits;
        double mid = (in + out) / 2;
        if (fmax(in, out) > 1) mid = floor(mid); /* but for shares they are whole numbers */
        if (mid == in || mid == out) return PARE_OK;
        st = try_one(s, way, mid, &fits);
        if (fits)
            in = mid;
        else
            out = mid;
    }
    return st;
}

static pare_status one_way(search *s, pare_plan_way way)
{
    double setting[PLAN_SETTINGS];
    bool fits[PLAN_SETTINGS];
    pare_status st = PARE_OK;
    const size_t n = plan_settings(setting, way, s->m);
    for (size_t i = 0; i < n && !st; i++) st = try_one(s, way, setting[i], &fits[i]);
    for (size_t i = 1; i < n && !st; i++)
        if (fits[i] != fits[i - 1])
            return fits[i] ? halve(s, way, setting[i], setting[i - 1])
                           : halve(s, way, setting[i - 1], setting[i]);
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

pare_status pare_plan_search(pare_plan *out, pare_arena *a, const pare_model *m,
                             const pare_inputs *fit, const pare_inputs *on,
                             const pare_plan_opts *opts, const pare_exec *exec, pare_err *err)
{
    search s = {m, fit, on, opts, exec, a, err, out};
    *out = (pare_plan){.tries = pare_alloc(a, MOST_SINGLES + opts->mixtures, sizeof *out->tries)};
    if (!out->tries) return pare_no_memory(err);
    pare_status st = alone(&s);
    if (!st) st = mixtures(&s, out->tries, out->singles);
    if (st) return st;
    order(out->tries, out->n, isfinite(opts->eps));
    while (out->fit < out->n && out->tries[out->fit].over <= 1) out->fit++;
    return PARE_OK;
}
