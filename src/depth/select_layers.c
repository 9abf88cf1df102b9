/* select_layers.c - which layers are replaced, by their cost on the data: the squared distance
 * of the hidden rows that the head reads (docs/theory/depth.md "Which layers go"). Ties go to
 * the lower index.
 *
 * Plans are compared input by input. A plan runs from the first block in which it differs from what
 * has already run, so that going backwards one layer at a time costs about half of a pass for each
 * candidate. */
#include "linalg/matrix.h"
#include "replace_layers.h"
#include <math.h>
#include <string.h>

const char *const pare_depth_select_names[] = {"greedy", "exhaustive", "loo", "block-influence",
                                               NULL};

/* ---- plans ----------------------------------------------------------------------------------- */

void selection_open(selection *c)
{
    pare_work *const w = c->work;
    c->n = list_softmax_layers(NULL, c->m);
    c->layers = pare_work_alloc(w, c->n, sizeof *c->layers);
    c->made = pare_work_alloc(w, c->n, sizeof *c->made);
    c->allowed = pare_work_alloc(w, c->n, sizeof *c->allowed);
    c->loo = pare_work_alloc(w, c->n, sizeof *c->loo);
    if (w->st) return;
    list_softmax_layers(c->layers, c->m);
    for (size_t l = 0; l < c->n; l++)
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) c->loo[l][k] = NAN;
}

void selection_make(selection *c)
{
    pare_work *const w = c->work;
    for (size_t l = 0; l < c->n; l++)
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++)
            if (!w->st && c->allowed[l][k])
                w->st =
                    replacement_make(&c->made[l][k], w->arena, &c->layers[l], kind_at(k), w->err);
}

kind_plan selection_plan(const selection *c)
{
    const kind_plan plan = pare_work_alloc(c->work, c->n, sizeof *plan);
    for (size_t l = 0; plan && l < c->n; l++) plan[l] = PARE_ATTN_EXACT;
    return plan;
}

pare_model selection_model(const selection *c, const kind_plan plan, pare_work *w)
{
    pare_model m = *c->m;
    pare_block *const blocks = pare_work_alloc(w, c->m->nblocks, sizeof *blocks);
    if (w->st) return m;
    m.blocks = blocks;
    memcpy(m.blocks, c->m->blocks, c->m->nblocks * sizeof *m.blocks);
    for (size_t l = 0; l < c->n; l++)
        if (plan[l] != PARE_ATTN_EXACT)
            m.blocks[c->layers[l].block].attn = c->made[l][plan[l] - PARE_ATTN_ZERO];
    return m;
}

pare_inputs selection_inputs(const pare_inputs *all, size_t tokens)
{
    pare_inputs some = {.in = all->in};
    for (size_t t = 0; some.n < all->n && t < tokens; some.n++)
        t += all->in[some.n].batch * all->in[some.n].tokens;
    return some;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static double squared_distance(const pare_mat *a, const pare_mat *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            const double x = pare_row(a, i)[j] - pare_row(b, i)[j];
            sum += x * x;
        }
    return sum;
}

/* err2 of all plans, each from the first layer in which it differs from the plan `base`. */
static void errors_from(double *err2, const selection *c, const kind_plan base,
                        const kind_plan *plans, size_t count)
{
    pare_work *const w = c->work;
    if (w->st) return;
    for (size_t p = 0; p < count; p++) err2[p] = 0;
    for (size_t i = 0; !w->st && i < c->data->n; i++) {
        const pare_input *const in = &c->data->in[i];
        pare_work scratch = scratch_open(w);
        const pare_model m = selection_model(c, base, &scratch);
        const residual_streams s = residual_streams_of(&scratch, &m, in);
        for (size_t p = 0; !scratch.st && p < count; p++) {
            const pare_mark mark = pare_arena_mark(scratch.arena);
            pare_mat h = s.hidden;
            size_t l = 0;
            while (l < c->n && base[l] == plans[p][l]) l++;
            if (l < c->n) {
                const size_t b = c->layers[l].block;
                const pare_model changed = selection_model(c, plans[p], &scratch);
                const pare_model rest = submodel_from(&changed, b);
                h = submodel_run(&scratch, &rest, in, &s.at[b]);
            }
            if (!scratch.st) err2[p] += squared_distance(&c->hidden[i], &h);
            pare_arena_reset(scratch.arena, mark);
        }
        scratch_close(&scratch, w);
        if (!w->st) w->st = pare_progress(w->exec, "choose", i + 1, c->data->n, w->err);
    }
}

void selection_errors(double *err2, const selection *c, const kind_plan *plans, size_t count)
{
    errors_from(err2, c, selection_plan(c), plans, count);
}

void selection_measure(selection *c)
{
    pare_work *const w = c->work;
    const pare_model s = submodel_hidden(c->m);
    c->hidden = pare_work_alloc(w, c->data->n, sizeof *c->hidden);
    for (size_t i = 0; !w->st && i < c->data->n; i++) {
        const pare_input *const in = &c->data->in[i];
        const pare_mat h = work_matrix(w, pare_output_rows(&s, in), pare_model_outputs(&s));
        if (!w->st) w->st = pare_forward_f64(h.v, &s, in, NULL, w->exec, w->err);
        for (size_t k = 0; !w->st && k < h.rows * h.cols; k++) c->size += h.v[k] * h.v[k];
        c->hidden[i] = h;
    }
}

void selection_leave_one_out(selection *c)
{
    const size_t most = c->n * PARE_DEPTH_KINDS;
    kind_plan *const plans = pare_work_alloc(c->work, most, sizeof *plans);
    double *const err2 = pare_work_alloc(c->work, most, sizeof *err2);
    size_t count = 0;
    for (size_t l = 0; l < c->n; l++)
        for (size_t k = 0; !c->work->st && k < PARE_DEPTH_KINDS; k++) {
            if (!c->allowed[l][k]) continue;
            const kind_plan plan = selection_plan(c);
            if (plan) plan[l] = kind_at(k);
            plans[count++] = plan;
        }
    selection_errors(err2, c, plans, count);
    for (size_t l = c->n; !c->work->st && l-- > 0;)
        for (size_t k = PARE_DEPTH_KINDS; k-- > 0;)
            if (c->allowed[l][k]) c->loo[l][k] = err2[--count];
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Replaces, of the layers that are exact and need not be, the one of least cost. */
static void replace_cheapest(kind_plan plan, const selection *c, const kind_plan as,
                             const bool *keep, const double *cost)
{
    size_t best = c->n;
    for (size_t l = 0; l < c->n; l++)
        if (plan[l] == PARE_ATTN_EXACT && !keep[l] && (best == c->n || cost[l] < cost[best]))
            best = l;
    plan[best] = as[best];
}

void selection_replace_next(kind_plan out, const selection *c, const kind_plan as, const bool *keep)
{
    pare_work *const w = c->work;
    kind_plan *const plans = pare_work_alloc(w, c->n, sizeof *plans);
    double *const err2 = pare_work_alloc(w, c->n, sizeof *err2);
    double *const cost = pare_work_alloc(w, c->n, sizeof *cost);
    size_t count = 0;
    for (size_t l = 0; !w->st && l < c->n; l++) {
        if (out[l] != PARE_ATTN_EXACT || keep[l]) continue;
        plans[count] = selection_plan(c);
        if (w->st) return;
        memcpy(plans[count], out, c->n * sizeof *out);
        plans[count++][l] = as[l];
    }
    errors_from(err2, c, out, plans, count);
    if (w->st) return;
    for (size_t l = c->n; l-- > 0;)
        if (out[l] == PARE_ATTN_EXACT && !keep[l]) cost[l] = err2[--count];
    replace_cheapest(out, c, as, keep, cost);
}

/* Binomial(of, k); more than the most: one above it. */
static size_t number_of_choices(size_t of, size_t k)
{
    double n = 1;
    for (size_t i = 0; i < k; i++) n = n * (double)(of - i) / (double)(i + 1);
    return n > PARE_DEPTH_MOST_CHOICES + 0.5 ? PARE_DEPTH_MOST_CHOICES + 1 : (size_t)(n + 0.5);
}

/* The next choice of `count` numbers below `of`, in lexical order. */
static void next_choice(size_t *pick, size_t count, size_t of)
{
    for (size_t k = count; k-- > 0;)
        if (pick[k] < of - count + k) {
            pick[k]++;
            while (++k < count) pick[k] = pick[k - 1] + 1;
            return;
        }
}

static void exhaustive(kind_plan out, const selection *c, const kind_plan as, const bool *keep,
                       size_t replaced)
{
    pare_work *const w = c->work;
    size_t *const open = pare_work_alloc(w, c->n, sizeof *open);
    size_t *const pick = pare_work_alloc(w, replaced, sizeof *pick);
    size_t of = 0, best = 0;
    for (size_t l = 0; !w->st && l < c->n; l++)
        if (!keep[l]) open[of++] = l;
    const size_t all = number_of_choices(of, replaced);
    if (!w->st && all > PARE_DEPTH_MOST_CHOICES)
        pare_work_fail(w, PARE_ERR_USAGE,
                       "exhaustive: more than %d choices of %zu layers out of %zu; greedy "
                       "looks at fewer",
                       PARE_DEPTH_MOST_CHOICES, replaced, of);
    kind_plan *const plans = pare_work_alloc(w, all, sizeof *plans);
    double *const err2 = pare_work_alloc(w, all, sizeof *err2);
    for (size_t k = 0; !w->st && k < replaced; k++) pick[k] = k;
    for (size_t p = 0; !w->st && p < all; p++) {
        plans[p] = selection_plan(c);
        for (size_t k = 0; plans[p] && k < replaced; k++)
            plans[p][open[pick[k]]] = as[open[pick[k]]];
        next_choice(pick, replaced, of);
    }
    selection_errors(err2, c, plans, all);
    for (size_t p = 1; !w->st && p < all; p++)
        if (err2[p] < err2[best]) best = p;
    if (!w->st) memcpy(out, plans[best], c->n * sizeof *out);
}

void select_layers(kind_plan out, const selection *c, const kind_plan as, const bool *keep,
                   size_t exact, pare_depth_select how)
{
    const size_t replaced = c->n - exact;
    size_t open = 0;
    double *const cost = pare_work_alloc(c->work, c->n, sizeof *cost);
    if (c->work->st) return;
    for (size_t l = 0; l < c->n; l++) {
        out[l] = PARE_ATTN_EXACT;
        open += !keep[l];
        if (how == PARE_DEPTH_INFLUENCE)
            cost[l] = c->layers[l].influence;
        else
            cost[l] = as[l] != PARE_ATTN_EXACT ? c->loo[l][as[l] - PARE_ATTN_ZERO] : NAN;
    }
    PARE_ASSERT(replaced <= open);
    if (replaced == open || how == PARE_DEPTH_LOO || how == PARE_DEPTH_INFLUENCE)
        for (size_t k = 0; k < replaced; k++) replace_cheapest(out, c, as, keep, cost);
    else if (how == PARE_DEPTH_EXHAUSTIVE)
        exhaustive(out, c, as, keep, replaced);
    else
        for (size_t k = 0; !c->work->st && k < replaced; k++)
            selection_replace_next(out, c, as, keep);
}
