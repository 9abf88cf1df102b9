/* The data of a cut that is fitted to several inputs (cut_data.h). */
#include "cut_data.h"

#include <math.h>
#include <string.h>

/* 0: all of them. */
static size_t tokens_of(const pare_dataset *all, size_t tokens, const cut_plan *plan)
{
    size_t longest = 0;
    if (!plan->only_texts) return tokens;
    for (size_t i = 0; i < all->inputs.n; i++)
        if (all->inputs.in[i].tokens > longest) longest = all->inputs.in[i].tokens;
    return all->task == PARE_TASK_TEXT && longest > tokens ? tokens : 0;
}

/* How many of the inputs one can afford to prove on: one at least. */
static size_t affordable(const pare_model *m, const pare_inputs *set, double work)
{
    size_t n = 0;
    for (double sum = 0; n < set->n; n++) {
        const pare_inputs one = {1, &set->in[n]};
        sum += pare_passes_work(m, m, &one);
        if (n > 0 && sum > work) break;
    }
    return n;
}

/* Inputs [first, first + count) of the file are held out. */
static pare_status hold(cli *c, cert_inputs *held, const pare_model *m, const pare_dataset *all,
                        size_t first, size_t count, const cut_plan *plan)
{
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
    set.n = affordable(m, &set, plan->work);
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

pare_status cut_data_load(cli *c, cut_data *out, const pare_model *m, const char *data,
                          const cut_plan *plan)
{
    *out = (cut_data){0};
    pare_status st = cli_inputs(c, &out->held, m, data, plan->split);
    if (st || !data) return st;
    const pare_dataset all = out->held.data;
    const size_t n = all.inputs.n, quarter = n / 4 ? n / 4 : 1;
    const bool whole = n == 1 || plan->unseen;
    out->same = n == 1 && !plan->unseen;
    st = fit_to(c, out, &all, whole ? n : n - quarter, plan);
    if (!st) st = hold(c, &out->held, m, &all, whole ? 0 : n - quarter, whole ? n : quarter, plan);
    return cli_name(c, st, data);
}

/* By content: a copy is no other data. */
static pare_status same_file(bool *same, const char *a, const char *b, pare_err *err)
{
    char x[PARE_SHA256_HEX] = "", y[PARE_SHA256_HEX] = "";
    pare_status st = pare_sha256_file(x, a, err);
    if (!st) st = pare_sha256_file(y, b, err);
    *same = !st && strcmp(x, y) == 0;
    return st;
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
    st = hold(c, &out->held, m, &all, 0, all.inputs.n, plan);
    if (!st && !plan->unseen) st = same_file(&out->same, data, heldout, &c->err);
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

pare_status cut_output_error(cli *c, double *out, const pare_model *f, const pare_model *g,
                             const cut_data *d)
{
    const pare_inputs *const set = d->held.path ? &d->held.data.inputs : &d->held.set;
    double apart = 0, size = 0;
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < set->n; i++)
        st = add_squares(c, &apart, &size, f, g, &set->in[i]);
    *out = size > 0 ? sqrt(apart / size) : 0;
    return st;
}
