/* Which layers go, by what they cost on the data: the squared distance of the hidden rows that the
 * head reads (docs/theory/depth.md "Which layers go"). Ties go to the lower index.
 *
 * Ways to replace layers are compared input by input. A way runs from the first block in which it
 * differs from what has already run, so that going backwards one layer at a time costs about half
 * of a pass for each candidate. */
#include "replace_layers.h"
#include <math.h>
#include <string.h>

const char *const pare_depth_select_names[] = {"greedy", "exhaustive", "loo", "block-influence",
                                               NULL};

/* ---- models of a way ------------------------------------------------------------------------- */

/* The input model with the layers of a way in their places; blocks in the arena. */
static pare_status plan_model(pare_model *out, const selection *c, const kind_plan plan,
                              pare_arena *a)
{
    *out = *c->m;
    out->blocks = pare_alloc(a, c->m->nblocks ? c->m->nblocks : 1, sizeof *out->blocks);
    if (!out->blocks) return pare_no_memory(c->err);
    memcpy(out->blocks, c->m->blocks, c->m->nblocks * sizeof *out->blocks);
    for (size_t l = 0; l < c->n; l++)
        if (plan[l] != PARE_ATTN_EXACT)
            out->blocks[c->layers[l].block].attn = c->made[l][plan[l] - PARE_ATTN_ZERO];
    return PARE_OK;
}

static size_t first_difference(const selection *c, const kind_plan a, const kind_plan b)
{
    for (size_t l = 0; l < c->n; l++)
        if (a[l] != b[l]) return l;
    return c->n;
}

static double apart2(const pare_mat *a, const pare_mat *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            const double x = pare_row(a, i)[j] - pare_row(b, i)[j];
            sum += x * x;
        }
    return sum;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* All ways on one input, from the streams of the model `base`. */
static pare_status ways_on_input(double *err2, const selection *c, size_t i, const kind_plan base,
                                 const kind_plan *plans, size_t count, pare_arena *a)
{
    const pare_input *const in = &c->data->in[i];
    pare_model m;
    residual_streams s = {0};
    pare_status st = plan_model(&m, c, base, a);
    if (!st) st = residual_streams_of(&s, a, &m, in, c->exec, c->err);
    for (size_t w = 0; !st && w < count; w++) {
        const pare_mark mark = pare_arena_mark(a);
        const size_t l = first_difference(c, base, plans[w]);
        pare_mat h = s.hidden;
        if (l < c->n) {
            const size_t b = c->layers[l].block;
            st = plan_model(&m, c, plans[w], a);
            const pare_model rest = submodel_from(&m, b);
            if (!st) st = submodel_run(&h, a, &rest, in, &s.at[b], c->exec, c->err);
        }
        if (!st) err2[w] += apart2(&c->hidden[i], &h);
        pare_arena_reset(a, mark);
    }
    return st;
}

static pare_status errors_from(double *err2, const selection *c, const kind_plan base,
                               const kind_plan *plans, size_t count)
{
    pare_status st = PARE_OK;
    for (size_t w = 0; w < count; w++) err2[w] = 0;
    for (size_t i = 0; !st && i < c->data->n; i++) {
        pare_arena *const a = pare_arena_new();
        st = a ? ways_on_input(err2, c, i, base, plans, count, a) : pare_no_memory(c->err);
        pare_arena_free(a);
        if (!st) st = pare_progress(c->exec, "choose", i + 1, c->data->n, c->err);
    }
    return st;
}

static kind_plan plan_new(const selection *c)
{
    const kind_plan plan = pare_alloc(c->a, c->n ? c->n : 1, sizeof *plan);
    for (size_t l = 0; plan && l < c->n; l++) plan[l] = PARE_ATTN_EXACT;
    return plan;
}

pare_status selection_errors(double *err2, const selection *c, const kind_plan *plans, size_t count)
{
    const kind_plan exact = plan_new(c);
    return exact ? errors_from(err2, c, exact, plans, count) : pare_no_memory(c->err);
}

pare_status selection_open(selection *c)
{
    const pare_model s = submodel_hidden(c->m);
    c->hidden = pare_alloc(c->a, c->data->n, sizeof *c->hidden);
    pare_status st = c->hidden || c->data->n == 0 ? PARE_OK : pare_no_memory(c->err);
    for (size_t i = 0; !st && i < c->data->n; i++) {
        const pare_input *const in = &c->data->in[i];
        pare_mat *const h = &c->hidden[i];
        *h = pare_mat_new(c->a, pare_output_rows(&s, in), pare_model_outputs(&s));
        if (!h->v) return pare_no_memory(c->err);
        st = pare_forward_f64(h->v, &s, in, NULL, c->exec, c->err);
        for (size_t k = 0; k < h->rows * h->cols; k++) c->size += h->v[k] * h->v[k];
    }
    return st;
}

/* ---- each alone ------------------------------------------------------------------------------ */

pare_status selection_leave_one_out(selection *c)
{
    const size_t most = c->n * PARE_DEPTH_KINDS;
    kind_plan *const plans = pare_alloc(c->a, most + 1, sizeof *plans);
    double *const err2 = pare_alloc(c->a, most + 1, sizeof *err2);
    size_t count = 0;
    if (!plans || !err2) return pare_no_memory(c->err);
    for (size_t l = 0; l < c->n; l++)
        for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
            if (!c->allowed[l][k]) continue;
            if (!(plans[count] = plan_new(c))) return pare_no_memory(c->err);
            plans[count++][l] = (pare_attn_kind)(PARE_ATTN_ZERO + k);
        }
    const pare_status st = selection_errors(err2, c, plans, count);
    for (size_t l = c->n; !st && l-- > 0;)
        for (size_t k = PARE_DEPTH_KINDS; k-- > 0;)
            if (c->allowed[l][k]) c->loo[l][k] = err2[--count];
    return st;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* Of the layers that are exact and need not be, the one of least cost. */
static size_t least(const selection *c, const kind_plan plan, const bool *keep, const double *cost)
{
    size_t best = c->n;
    for (size_t l = 0; l < c->n; l++)
        if (plan[l] == PARE_ATTN_EXACT && !keep[l] && (best == c->n || cost[l] < cost[best]))
            best = l;
    return best;
}

static void by_cost(kind_plan out, const selection *c, const kind_plan as, const bool *keep,
                    size_t gone, const double *cost)
{
    for (size_t k = 0; k < gone; k++) {
        const size_t l = least(c, out, keep, cost);
        out[l] = as[l];
    }
}

static pare_status greedy(kind_plan out, const selection *c, const kind_plan as, const bool *keep,
                          size_t gone)
{
    kind_plan *const plans = pare_alloc(c->a, c->n + 1, sizeof *plans);
    double *const err2 = pare_alloc(c->a, c->n + 1, sizeof *err2);
    double *const cost = pare_alloc(c->a, c->n + 1, sizeof *cost);
    if (!plans || !err2 || !cost) return pare_no_memory(c->err);
    for (size_t l = 0; l < c->n; l++)
        if (!(plans[l] = plan_new(c))) return pare_no_memory(c->err);
    for (size_t k = 0; k < gone; k++) {
        size_t count = 0;
        for (size_t l = 0; l < c->n; l++) {
            if (out[l] != PARE_ATTN_EXACT || keep[l]) continue;
            memcpy(plans[count], out, c->n * sizeof *out);
            plans[count++][l] = as[l];
        }
        const pare_status st = errors_from(err2, c, out, plans, count);
        if (st) return st;
        count = 0;
        for (size_t l = 0; l < c->n; l++)
            if (out[l] == PARE_ATTN_EXACT && !keep[l]) cost[l] = err2[count++];
        const size_t l = least(c, out, keep, cost);
        out[l] = as[l];
    }
    return PARE_OK;
}

/* Choices of `gone` out of `of`; more than the most: one above it. */
static size_t choices(size_t of, size_t gone)
{
    double n = 1;
    for (size_t k = 0; k < gone; k++) n = n * (double)(of - k) / (double)(k + 1);
    return n > PARE_DEPTH_MOST_CHOICES + 0.5 ? PARE_DEPTH_MOST_CHOICES + 1 : (size_t)(n + 0.5);
}

/* The next choice of `gone` numbers below `of`, in lexical order; false after the last. */
static bool next_choice(size_t *pick, size_t gone, size_t of)
{
    for (size_t k = gone; k-- > 0;)
        if (pick[k] < of - gone + k) {
            pick[k]++;
            while (++k < gone) pick[k] = pick[k - 1] + 1;
            return true;
        }
    return false;
}

static pare_status exhaustive(kind_plan out, const selection *c, const kind_plan as,
                              const bool *keep, size_t gone)
{
    size_t *const free = pare_alloc(c->a, c->n + 1, sizeof *free);
    size_t *const pick = pare_alloc(c->a, gone + 1, sizeof *pick);
    size_t of = 0, best = 0;
    if (!free || !pick) return pare_no_memory(c->err);
    for (size_t l = 0; l < c->n; l++)
        if (!keep[l]) free[of++] = l;
    const size_t all = choices(of, gone);
    if (all > PARE_DEPTH_MOST_CHOICES)
        return pare_fail(c->err, PARE_ERR_USAGE,
                         "exhaustive: more than %d choices of %zu layers out of %zu; greedy "
                         "looks at fewer",
                         PARE_DEPTH_MOST_CHOICES, gone, of);
    kind_plan *const plans = pare_alloc(c->a, all, sizeof *plans);
    double *const err2 = pare_alloc(c->a, all, sizeof *err2);
    if (!plans || !err2) return pare_no_memory(c->err);
    for (size_t k = 0; k < gone; k++) pick[k] = k;
    for (size_t w = 0; w < all; w++) {
        if (!(plans[w] = plan_new(c))) return pare_no_memory(c->err);
        for (size_t k = 0; k < gone; k++) plans[w][free[pick[k]]] = as[free[pick[k]]];
        (void)next_choice(pick, gone, of);
    }
    const pare_status st = selection_errors(err2, c, plans, all);
    for (size_t w = 1; w < all; w++)
        if (err2[w] < err2[best]) best = w;
    if (!st) memcpy(out, plans[best], c->n * sizeof *out);
    return st;
}

pare_status select_layers(kind_plan out, const selection *c, const kind_plan as, const bool *keep,
                          size_t exact, pare_depth_select how)
{
    const size_t gone = c->n - exact;
    size_t free = 0;
    double *const cost = pare_alloc(c->a, c->n + 1, sizeof *cost);
    if (!cost) return pare_no_memory(c->err);
    for (size_t l = 0; l < c->n; l++) {
        out[l] = PARE_ATTN_EXACT;
        free += !keep[l];
        const bool known = c->loo && as[l] != PARE_ATTN_EXACT;
        if (how == PARE_DEPTH_INFLUENCE)
            cost[l] = c->layers[l].influence;
        else
            cost[l] = known ? c->loo[l][as[l] - PARE_ATTN_ZERO] : NAN;
    }
    PARE_ASSERT(gone <= free);
    if (gone == free || how == PARE_DEPTH_LOO || how == PARE_DEPTH_INFLUENCE) {
        by_cost(out, c, as, keep, gone, cost);
        return PARE_OK;
    }
    return how == PARE_DEPTH_EXHAUSTIVE ? exhaustive(out, c, as, keep, gone)
                                        : greedy(out, c, as, keep, gone);
}
