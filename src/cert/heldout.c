/* heldout.c - which inputs a reduction is fitted to, measured and proven on (pare/cert.h). */
#include "base/support.h"
#include "conformal.h"
#include "outputs.h"
#include "data/graph_data.h"
#include "heldout.h"
#include "model/inputs.h"

const char pare_some_were_seen[] = "it is proven on inputs that the cut was fitted to";

size_t pare_default_tokens(const pare_model *m)
{
    return m->context && m->context < PARE_RANDOM_TOKENS ? m->context : PARE_RANDOM_TOKENS;
}

pare_status pare_cert_inputs_load(pare_cert_inputs *out, pare_arena *a, const pare_model *m,
                                  const char *path, size_t split, uint64_t seed, pare_err *err)
{
    *out = (pare_cert_inputs){.path = path, .split = split};
    if (!path) {
        out->tokens = pare_default_tokens(m);
        return pare_inputs_random(&out->set, a, m, PARE_RANDOM_INPUTS, out->tokens, seed, err);
    }
    pare_files *const files = pare_files_new();
    if (!files) return pare_no_memory(err);
    pare_status st = pare_dataset_load_files(&out->data, a, m, path, split, 0, files, err);
    if (!st) st = pare_files_identity(out->sha256, files, path, err);
    pare_files_free(files);
    if (!st && out->data.inputs.n == 0)
        st = pare_fail(err, PARE_ERR_INPUT, "%s: no input in it suits the model", path);
    out->set = out->data.inputs;
    if (st) out->data.notes = (pare_text_notes){0};
    return pare_err_path(err, st, path);
}

/* ---- what is fitted to, what is held out ------------------------------------------------------ */

/* 0: all of them. Texts have the limit also where none of these is so long: a rule that looked at
 * them could not promise anything of one more, which may be longer. */
static size_t token_limit(const pare_dataset *all, size_t tokens, const pare_heldout_opts *o)
{
    return o->cut_only_texts && all->task != PARE_TASK_TEXT ? 0 : tokens;
}

static double work_of(const pare_model *m, const pare_input *in)
{
    pare_input one = *in;
    return pare_passes_work(m, m, &(pare_inputs){1, &one});
}

/* Leaves as many of the inputs as one can afford to prove on, one at least. Where inputs differ in
 * size, those that are left are the smaller ones rather than the larger, and how many they are
 * depends on what they are: a new one is not like them. */
static void leave_affordable(pare_heldout *h, const pare_model *m, pare_inputs *set, double work)
{
    size_t n = 0;
    for (double sum = 0; n < set->n; n++) {
        sum += work_of(m, &set->in[n]);
        if (n > 0 && sum > work) break;
    }
    bool same_work = true;
    for (size_t i = 1; same_work && n < set->n && i < set->n; i++)
        same_work = work_of(m, &set->in[i]) == work_of(m, &set->in[0]);
    if (!same_work)
        h->no_new_inputs = "the inputs differ in size and are too many to prove on all of them";
    set->n = n;
}

/* Inputs [first, first + count) of the file are held out. */
static pare_status hold_out(pare_heldout *h, pare_arena *a, const pare_model *m,
                            const pare_cert_inputs *from, size_t first, size_t count,
                            const pare_heldout_opts *o, pare_err *err)
{
    const pare_dataset *const all = &from->data;
    const size_t tokens = token_limit(all, o->proven_tokens, o);
    pare_inputs set;
    h->held = *from;
    pare_dataset *const measured = &h->held.data;
    measured->target = all->target ? all->target + first : NULL;
    measured->value = all->value ? all->value + first * all->nvalues : NULL;
    pare_status st = pare_inputs_part(&measured->inputs, a, &all->inputs, first,
                                      pare_min_size(count, o->most_measured), 0, err);
    if (!st)
        st = pare_inputs_part(&set, a, &all->inputs, first, pare_min_size(count, o->most_proven),
                              tokens, err);
    if (st) return st;
    const size_t wanted = set.n;
    leave_affordable(h, m, &set, o->work);
    h->more = set.n == wanted && set.n < measured->inputs.n;
    if (!pare_may_be_independent(&set))
        h->no_new_inputs = "windows of one text are not independent draws";
    h->held.set = set;
    h->held.part = tokens > 0 || set.n < all->inputs.n;
    h->held.first = first;
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
    const size_t n = data->data.inputs.n, quarter = n / 4 ? n / 4 : 1;
    const bool all_held = heldout || n == 1 || o->nothing_fitted;
    const size_t fitted = all_held ? n : n - quarter,
                 fit_limit = token_limit(&data->data, o->fit_tokens, o);
    *out = (pare_heldout){.apart = heldout || !all_held, .nothing_fitted = o->nothing_fitted};
    if (heldout) out->fit_notes = data->data.notes;
    pare_status st = pare_inputs_part(&out->fit, a, &data->data.inputs, 0,
                                      pare_min_size(fitted, o->most_fitted), fit_limit, err);
    if (st) return pare_err_path(err, st, data->path);
    st = all_held ? hold_out(out, a, m, from, 0, from->data.inputs.n, o, err)
                  : hold_out(out, a, m, from, n - quarter, quarter, o, err);
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
    *out = (pare_heldout){0};
    pare_status st = pare_cert_inputs_load(&first, a, m, data, o->split, o->seed, err);
    if (heldout)
        out->fit_notes = first.data.notes;
    else
        out->held = first;
    if (!st && heldout) {
        st = pare_cert_inputs_load(&second, a, m, heldout, o->split, o->seed, err);
        out->held = second;
    }
    if (st || !data) return st;
    return pare_heldout_split(out, a, m, &first, heldout ? &second : NULL, o, err);
}

const pare_inputs *pare_heldout_measured(const pare_heldout *h)
{
    return h->held.path ? &h->held.data.inputs : &h->held.set;
}
