/* heldout.c - which inputs a reduction is fitted to, measured and proven on (pare/cert.h). */
#include "base/support.h"
#include "conformal.h"
#include "outputs.h"
#include "data/graph_data.h"
#include "data/heldout_draw.h"
#include "heldout.h"
#include "model/inputs.h"

const char pare_some_were_seen[] = "it is proven on inputs that the cut was fitted to";

size_t pare_default_tokens(const pare_model *m)
{
    return m->context && m->context < PARE_RANDOM_TOKENS ? m->context : PARE_RANDOM_TOKENS;
}

pare_status pare_cert_inputs_load(pare_cert_inputs *out, pare_arena *a, const pare_model *m,
                                  const char *path, const pare_data_opts *o, pare_err *err)
{
    *out = (pare_cert_inputs){.path = path, .split = o->split, .column = o->column};
    if (!path) {
        out->tokens = pare_default_tokens(m);
        return pare_inputs_random(&out->set, a, m, PARE_RANDOM_INPUTS, out->tokens, o->seed, err);
    }
    pare_files *const files = pare_files_new();
    if (!files) return pare_no_memory(err);
    pare_status st = pare_dataset_load_files(&out->data, a, m, path, o, files, err);
    size_t texts; /* of the model itself: their hash is that of the token ids */
    if (!st)
        st = pare_data_is_self(path, &texts)
                 ? pare_inputs_sha256(out->sha256, &out->data.inputs, err)
                 : pare_files_identity(out->sha256, files, path, err);
    pare_files_free(files);
    if (!st && out->data.inputs.n == 0)
        st = pare_fail(err, PARE_ERR_INPUT, "%s: no input in it suits the model", path);
    out->set = out->data.inputs;
    if (st) out->data.notes = (pare_text_notes){0};
    return pare_err_path(err, st, path);
}

/* ---- what is fitted to, what is held out ------------------------------------------------------ */

/* 0: all of them. Every set of token ids has the limit, also where none is so long: a rule that
 * looked at them could not promise anything of one more, which may be longer. */
static size_t token_limit(const pare_model *m, size_t tokens)
{
    return m->embedding.ids ? tokens : 0;
}

/* What is measured on: at most PARE_HELDOUT_INPUTS of those held out; what is proven on: the first
 * ones of them, cut to the limit. */
static pare_status hold_out(pare_heldout *h, pare_arena *a, const pare_model *m,
                            const pare_cert_inputs *from, const pare_heldout_draw *d,
                            const pare_heldout_opts *o, pare_err *err)
{
    const pare_dataset *const all = &from->data;
    const size_t tokens = token_limit(m, o->proven_tokens);
    const bool graphs = all->task == PARE_TASK_NODES; /* all of them, as they come */
    const size_t measured = graphs ? d->held : pare_min_size(d->held, PARE_HELDOUT_INPUTS),
                 proven = graphs ? d->held : pare_min_size(d->held, o->prove);
    size_t *numbers = NULL, n = 0;
    h->held = *from;
    pare_status st = pare_heldout_numbers(&numbers, &n, a, d, 0, measured, false, err);
    if (!st) st = pare_dataset_pick(&h->held.data, a, all, numbers, n, err);
    if (!st) st = pare_heldout_proven(&numbers, &n, a, d, proven, err);
    if (!st) st = pare_inputs_pick(&h->held.set, a, &all->inputs, numbers, n, tokens, err);
    if (st) return st;
    h->held.whole = true;
    for (size_t i = 0; i < n; i++)
        h->held.whole =
            h->held.whole && h->held.set.in[i].tokens == all->inputs.in[numbers[i]].tokens;
    h->units = measured;
    h->documents = d->documents;
    h->of = d->n;
    h->more = proven < d->held;
    if (!pare_may_be_independent(&h->held.set))
        h->no_new_inputs = "windows of one text are not independent draws";
    h->held.part = tokens > 0 || n < all->inputs.n;
    h->held.numbers = n < all->inputs.n ? numbers : NULL;
    h->held.tokens = tokens;
    return PARE_OK;
}

pare_status pare_count_seen(size_t *seen, pare_arena *scratch, const pare_inputs *fit,
                            const pare_inputs *on, size_t tokens, pare_err *err)
{
    const pare_mark mark = pare_arena_mark(scratch);
    pare_input_hashes known, asked;
    pare_status st = pare_input_hashes_make(&known, scratch, fit, tokens, err);
    if (!st) st = pare_input_hashes_make(&asked, scratch, on, tokens, err);
    *seen = 0;
    for (size_t i = 0; !st && i < asked.n; i++)
        *seen += pare_inputs_meet(&(pare_input_hashes){tokens, 1, &asked.sha256[i]}, &known);
    pare_arena_reset(scratch, mark);
    return st;
}

pare_status pare_heldout_split(pare_heldout *out, pare_arena *a, const pare_model *m,
                               const pare_cert_inputs *data, const pare_cert_inputs *heldout,
                               const pare_heldout_opts *o, pare_err *err)
{
    const pare_cert_inputs *const from = heldout ? heldout : data;
    const size_t fit_limit = token_limit(m, o->fit_tokens),
                 usual = o->prove > PARE_HELDOUT_INPUTS ? o->prove : PARE_HELDOUT_INPUTS;
    const bool graphs = from->data.task == PARE_TASK_NODES;
    pare_heldout_draw held, all;
    size_t *numbers = NULL, n = 0;
    *out = (pare_heldout){.nothing_fitted = o->nothing_fitted};
    if (heldout) out->fit_notes = data->data.notes;
    pare_status st = pare_heldout_draw_make(&held, a, &from->data.inputs, graphs ? SIZE_MAX : usual,
                                            graphs || heldout, o->seed, err);
    if (!st) st = hold_out(out, a, m, from, &held, o, err);
    if (st) return pare_err_path(err, st, from->path);
    /* Fitted to: what is not held out, in the order of the draw; of a file of its own all of it. */
    st = heldout ? pare_heldout_draw_make(&all, a, &data->data.inputs, 0, false, o->seed, err)
                 : PARE_OK;
    const pare_heldout_draw *const d = heldout ? &all : &held;
    const size_t rest = d->held < d->n ? d->held : 0;
    out->apart = heldout || rest > 0;
    if (!st) st = pare_heldout_numbers(&numbers, &n, a, d, rest, d->n - rest, false, err);
    if (!st)
        st = pare_inputs_pick(&out->fit, a, &data->data.inputs, numbers,
                              pare_min_size(n, o->most_fitted), fit_limit, err);
    if (st) return pare_err_path(err, st, data->path);
    /* A text that is proven on counts as seen if what is left of it is what the cut was fitted
     * to. */
    const size_t held_limit = out->held.tokens;
    out->compared_tokens =
        fit_limit && (!held_limit || fit_limit < held_limit) ? fit_limit : held_limit;
    if (!st && !o->nothing_fitted)
        st = pare_count_seen(&out->seen, a, &out->fit, &out->held.set, out->compared_tokens, err);
    if (out->seen) out->no_new_inputs = pare_some_were_seen;
    return pare_err_path(err, st, from->path);
}

pare_status pare_heldout_load(pare_heldout *out, pare_arena *a, const pare_model *m,
                              const pare_heldout_opts *o, pare_err *err)
{
    const char *const data = o->data, *const heldout = o->heldout;
    pare_cert_inputs first, second;
    const pare_data_opts read = {
        .split = o->split, .column = o->column, .seed = o->seed, .exec = o->exec};
    *out = (pare_heldout){0};
    pare_status st = pare_cert_inputs_load(&first, a, m, data, &read, err);
    if (heldout)
        out->fit_notes = first.data.notes;
    else
        out->held = first;
    if (!st && heldout) {
        st = pare_cert_inputs_load(&second, a, m, heldout, &read, err);
        out->held = second;
    }
    if (st || !data) return st;
    return pare_heldout_split(out, a, m, &first, heldout ? &second : NULL, o, err);
}

const pare_inputs *pare_heldout_measured(const pare_heldout *h)
{
    return h->held.path ? &h->held.data.inputs : &h->held.set;
}
