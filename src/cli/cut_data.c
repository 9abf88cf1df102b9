/* The data of a cut that is fitted to several inputs (cut_data.h). */
#include "cut_data.h"
#include <pare/exchange.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 0: all of them. Texts have the limit also where none of these is so long: a rule that looked at
 * them could not promise anything of one more, which may be longer. */
static size_t tokens_of(const pare_dataset *all, size_t tokens, const cut_plan *plan)
{
    return plan->only_texts && all->task != PARE_TASK_TEXT ? 0 : tokens;
}

static double work_of(const pare_model *m, const pare_input *in)
{
    pare_input one = *in;
    return pare_passes_work(m, m, &(pare_inputs){1, &one});
}

/* How many of the inputs one can afford to prove on: one at least. */
static size_t affordable(const pare_model *m, const pare_inputs *set, double work)
{
    size_t n = 0;
    for (double sum = 0; n < set->n; n++) {
        sum += work_of(m, &set->in[n]);
        if (n > 0 && sum > work) break;
    }
    return n;
}

static bool same_work(const pare_model *m, const pare_inputs *set)
{
    for (size_t i = 1; i < set->n; i++)
        if (work_of(m, &set->in[i]) != work_of(m, &set->in[0])) return false;
    return true;
}

/* As affordable. Where inputs differ in size, those that are left are the smaller ones rather than
 * the larger, and how many they are depends on what they are: a new one is not like them. */
static void afford(cut_data *d, const pare_model *m, pare_inputs *set, double work)
{
    const size_t n = affordable(m, set, work);
    if (n < set->n && !same_work(m, set))
        d->no_next = "the inputs differ in size and are too many to prove on all of them";
    set->n = n;
}

/* Inputs [first, first + count) of the file are held out. */
static pare_status hold(cli *c, cut_data *out, const pare_model *m, const pare_dataset *all,
                        size_t first, size_t count, const cut_plan *plan)
{
    cert_inputs *const held = &out->held;
    const size_t tokens = tokens_of(all, plan->proven_tokens, plan);
    pare_inputs set;
    held->data = *all;
    held->data.target = all->target ? all->target + first : NULL;
    held->data.value = all->value ? all->value + first * all->nvalues : NULL;
    pare_status st = pare_inputs_part(&held->data.inputs, c->arena, &all->inputs, first,
                                      count < plan->held ? count : plan->held, 0, &c->err);
    if (!st)
        st = pare_inputs_part(&set, c->arena, &all->inputs, first,
                              count < plan->proven ? count : plan->proven, tokens, &c->err);
    if (st) return st;
    const size_t wanted = set.n;
    afford(out, m, &set, plan->work);
    out->more = set.n == wanted && set.n < held->data.inputs.n;
    if (!pare_may_be_draws(&set)) out->no_next = "windows of one text are not independent draws";
    held->set = set;
    held->part = tokens > 0 || set.n < all->inputs.n;
    held->first = first;
    held->tokens = tokens;
    return PARE_OK;
}

static pare_status fit_to(cli *c, cut_data *out, const pare_dataset *all, size_t count,
                          const cut_plan *plan)
{
    return pare_inputs_part(&out->fit, c->arena, &all->inputs, 0,
                            count < plan->windows ? count : plan->windows,
                            tokens_of(all, plan->fit_tokens, plan), &c->err);
}

/* ---- what the cut has seen ------------------------------------------------------------------- */

const char cut_saw_some[] = "it is proven on inputs that the cut was fitted to";

pare_status cut_has_seen(cli *c, size_t *seen, const pare_inputs *fit, const pare_inputs *on,
                         size_t tokens)
{
    const pare_mark mark = pare_arena_mark(c->arena);
    pare_input_hashes known, asked;
    pare_status st = pare_input_hashes_make(&known, c->arena, fit, tokens, &c->err);
    if (!st) st = pare_input_hashes_make(&asked, c->arena, on, tokens, &c->err);
    *seen = 0;
    for (size_t i = 0; !st && i < asked.n; i++)
        *seen += pare_inputs_meet(&(pare_input_hashes){tokens, 1, &asked.sha256[i]}, &known);
    pare_arena_reset(c->arena, mark);
    return st;
}

/* A text that is proven on counts as seen if what is left of it is what the cut was fitted to. */
static pare_status look_for_seen(cli *c, cut_data *out, const pare_dataset *from,
                                 const cut_plan *plan)
{
    const size_t fit = tokens_of(from, plan->fit_tokens, plan), held = out->held.tokens;
    const size_t tokens = fit && (!held || fit < held) ? fit : held;
    out->compared_tokens = tokens;
    out->nothing_fitted = plan->unseen;
    if (plan->unseen) return PARE_OK;
    const pare_status st = cut_has_seen(c, &out->seen, &out->fit, &out->held.set, tokens);
    if (out->seen) out->no_next = cut_saw_some;
    return st;
}

/* ---- loading --------------------------------------------------------------------------------- */

pare_status cut_data_load(cli *c, cut_data *out, const pare_model *m, const char *data,
                          const cut_plan *plan)
{
    *out = (cut_data){0};
    pare_status st = cli_inputs(c, &out->held, m, data, plan->split);
    if (st || !data) return st;
    const pare_dataset all = out->held.data;
    const size_t n = all.inputs.n, quarter = n / 4 ? n / 4 : 1;
    const bool whole = n == 1 || plan->unseen;
    out->apart = !whole;
    st = fit_to(c, out, &all, whole ? n : n - quarter, plan);
    if (!st) st = hold(c, out, m, &all, whole ? 0 : n - quarter, whole ? n : quarter, plan);
    if (!st) st = look_for_seen(c, out, &all, plan);
    return cli_name(c, st, data);
}

pare_status cut_data_load_two(cli *c, cut_data *out, const pare_model *m, const char *data,
                              const char *heldout, const cut_plan *plan)
{
    cert_inputs fit;
    *out = (cut_data){0};
    pare_status st = cli_inputs(c, &fit, m, data, plan->split);
    if (!st) st = cli_name(c, fit_to(c, out, &fit.data, fit.data.inputs.n, plan), data);
    if (!st) st = cli_inputs(c, &out->held, m, heldout, plan->split);
    if (st) return st;
    const pare_dataset all = out->held.data;
    out->apart = true;
    st = hold(c, out, m, &all, 0, all.inputs.n, plan);
    if (!st) st = look_for_seen(c, out, &fit.data, plan);
    return cli_name(c, st, heldout);
}

/* Sums of squares of the difference and of f over one input. */
static pare_status add_squares(cli *c, double *apart, double *size, const pare_model *f,
                               const pare_model *g, const pare_input *in)
{
    const pare_mark mark = pare_arena_mark(c->arena);
    const size_t n = pare_output_rows(f, in) * pare_model_outputs(f);
    float *const a = pare_alloc(c->arena, n, sizeof *a), *const b =
                                                             pare_alloc(c->arena, n, sizeof *b);
    pare_status st = a && b ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = forward_floats(c, a, f, in, false);
    if (!st) st = forward_floats(c, b, g, in, false);
    for (size_t i = 0; !st && i < n; i++) {
        *apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        *size += (double)a[i] * (double)a[i];
    }
    pare_arena_reset(c->arena, mark);
    return st;
}

static const pare_inputs *measured_on(const cut_data *d)
{
    return d->held.path ? &d->held.data.inputs : &d->held.set;
}

size_t cut_error_inputs(const cut_data *d)
{
    return measured_on(d)->n;
}

pare_status cut_output_error(cli *c, double *out, const pare_model *f, const pare_model *g,
                             const cut_data *d)
{
    const pare_inputs *const set = measured_on(d);
    double apart = 0, size = 0;
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < set->n; i++)
        st = add_squares(c, &apart, &size, f, g, &set->in[i]);
    *out = size > 0 ? sqrt(apart / size) : 0;
    return st;
}
