/* The data of a cut of a language model or an encoder (width_text.h). */
#include "width_text.h"

#include <math.h>

static pare_status parts_of_file(cli *c, width_data *out, const pare_dataset *all, size_t windows)
{
    const size_t n = all->inputs.n;
    size_t held = n / 4 ? n / 4 : 1;
    out->same = n == 1;
    const size_t fit = out->same ? 1 : n - held, first = n - held;
    if (held > WIDTH_HELD_OUT) held = WIDTH_HELD_OUT;
    pare_status st = pare_inputs_part(&out->fit, c->arena, &all->inputs, 0,
                                      fit < windows ? fit : windows, 0, &c->err);
    out->held.data = *all;
    if (!st)
        st = pare_inputs_part(&out->held.data.inputs, c->arena, &all->inputs, first, held, 0,
                              &c->err);
    out->held.data.target = all->target + first;
    out->held.part = true;
    out->held.first = first;
    out->held.tokens = WIDTH_PROVEN_TOKENS;
    if (st) return st;
    return pare_inputs_part(&out->held.set, c->arena, &all->inputs, first,
                            held < WIDTH_PROVEN ? held : WIDTH_PROVEN, WIDTH_PROVEN_TOKENS,
                            &c->err);
}

pare_status width_data_load(cli *c, width_data *out, const pare_model *m, const char *data,
                            size_t windows)
{
    *out = (width_data){0};
    pare_status st = cli_inputs(c, &out->held, m, data, 0);
    if (st || !data) return st;
    const pare_dataset all = out->held.data;
    return cli_name(c, parts_of_file(c, out, &all, windows), data);
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

pare_status width_output_error(cli *c, double *out, const pare_model *f, const pare_model *g,
                               const width_data *d)
{
    const pare_inputs *const set = d->held.path ? &d->held.data.inputs : &d->held.set;
    double apart = 0, size = 0;
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < set->n; i++)
        st = add_squares(c, &apart, &size, f, g, &set->in[i]);
    *out = size > 0 ? sqrt(apart / size) : 0;
    return st;
}
