/* cert_json.c - a certificate as JSON text. The order of the keys is the order of reading: what was
 * done, to which files, on which inputs, what is claimed. */
#include "prove.h"
#include "linalg/bounds.h"
#include "cert_internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const pare_section_keys[PARE_SECTIONS] = {"hypotheses", "theorems", "observations",
                                                      "evidence", "paper"};

/* ---- what is written of a bound ---------------------------------------------------------------
 */

/* What bounds from above the figure that a lower bound bounds from below (inf: nothing does), and
 * what it is called. */
static double upper_of(const char **name, const pare_cert *c, const pare_claim *lower)
{
    const pare_kind kind = lower->kind == PARE_AUC_LEAST ? PARE_AUC_MOST : PARE_APRIORI_OUTPUTS;
    const pare_claim *const high = pare_cert_find(c, kind);
    *name = lower->kind == PARE_OUTPUTS_LEAST ? "headline.proven" : pare_kinds[kind].name;
    if (lower->kind == PARE_OUTPUTS_LEAST) return c->proven;
    return high && strcmp(high->domain, lower->domain) == 0 ? high->value : INFINITY;
}

pare_status cert_bounds_meet(const pare_cert *c, pare_err *err)
{
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *const low = &c->claims[i];
        if (pare_kinds[low->kind].section != PARE_THEOREM || !pare_kinds[low->kind].lower) continue;
        const char *name;
        const double high = upper_of(&name, c, low);
        if (!(high >= low->value))
            return pare_fail(err, PARE_ERR_VERIFY,
                             "%s: the lower bound %.9g is above the upper bound %.9g (%s)",
                             pare_kinds[low->kind].name, low->value, high, name);
    }
    return PARE_OK;
}

pare_status pare_cert_inflate(pare_cert *c, pare_err *err)
{
    c->proven = pare_ub_written((pare_ub){c->proven});
    for (size_t i = 0; i < c->nclaims; i++) {
        pare_claim *const t = &c->claims[i];
        const pare_kind_row *const row = &pare_kinds[t->kind];
        if (row->section != PARE_THEOREM) continue;
        t->value = row->lower ? pare_lb_written((pare_lb){t->value})
                              : pare_ub_written((pare_ub){t->value});
        if (row->ceiling > 0 && t->value > row->ceiling) t->value = row->ceiling;
    }
    return cert_bounds_meet(c, err);
}

/* ---- pieces: each is false only when memory is out ----------------------------------------- */

/* "inf", a number, or null for what does not apply. */
static bool add_maybe(cJSON *to, const char *key, double v, bool applies)
{
    return applies ? pare_json_add_number(to, key, v) : pare_json_add_null(to, key);
}

static bool add_named(cJSON *to, const char *key, const pare_named_hash *h, size_t n)
{
    cJSON *const o = pare_json_add_object(to, key);
    bool ok = o != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = pare_json_add_string(o, h[i].name, h[i].sha256);
    return ok;
}

/* Whether the importer was told anything. */
static bool is_told(const pare_load_opts *o)
{
    return o->pool != PARE_POOL_NONE || o->normalize;
}

static bool add_file(cJSON *to, const char *key, const pare_file_ref *f)
{
    cJSON *const o = pare_json_add_object(to, key);
    return o && pare_json_add_string(o, "path", f->path) &&
           pare_json_add_string(o, "sha256", f->sha256) &&
           add_named(o, "files", f->files, f->nfiles) &&
           pare_json_add_string(o, "architecture", f->architecture) &&
           add_named(o, "tensors", f->tensors, f->ntensors) &&
           (!is_told(&f->read_as) ||
            pare_json_add_record(o, "read_as", "pool:s normalize:b",
                                 pare_pool_name(f->read_as.pool), f->read_as.normalize));
}

static bool add_hashes(cJSON *to, const char *key, const pare_input_hashes *h)
{
    cJSON *const o = pare_json_add_object(to, key);
    cJSON *const list =
        o && pare_json_add_size(o, "tokens", h->tokens) ? pare_json_add_array(o, "inputs") : NULL;
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < h->n; i++) ok = pare_json_add_string(list, NULL, h->sha256[i]);
    return ok;
}

/* Only claims about new inputs need it. */
static bool add_heldout(cJSON *to, const pare_data_ref *d)
{
    if (d->candidates == 0) return true;
    cJSON *const word = pare_json_add_object(to, "writers_word");
    return word && add_hashes(word, "fitted", &d->fitted) &&
           pare_json_add_size(word, "candidates", d->candidates) &&
           add_hashes(to, "heldout", &d->heldout);
}

static bool add_data(cJSON *to, const pare_data_ref *d)
{
    cJSON *const o = pare_json_add_object(to, "data");
    const bool part = strcmp(d->kind, "part") == 0;
    bool ok = o && pare_json_add_string(o, "kind", d->kind);
    if (ok && d->path)
        ok = pare_json_add_string(o, "path", d->path) &&
             pare_json_add_string(o, "sha256", d->sha256) &&
             pare_json_add_size(o, "split", d->split) &&
             (!d->column || pare_json_add_string(o, "column", d->column));
    if (ok && part && !d->numbers) ok = pare_json_add_size(o, "first", d->first);
    if (ok && part && d->numbers) {
        cJSON *const list = pare_json_add_array(o, "numbers");
        ok = list != NULL;
        for (size_t i = 0; ok && i < d->count; i++)
            ok = pare_json_add_size(list, NULL, d->numbers[i]);
    }
    ok = ok && pare_json_add_size(o, "count", d->count);
    if (ok && (part || !d->path)) ok = pare_json_add_size(o, "tokens", d->tokens);
    return ok && pare_json_add_string(o, "inputs_sha256", d->inputs_sha256) && add_heldout(o, d);
}

static bool add_parameters(cJSON *to, const pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    cJSON *const o = pare_json_add_object(to, "parameters");
    bool ok = o != NULL;
    for (size_t i = 0; ok && i < PARE_PARAMETERS && row->parameters[i]; i++)
        ok = pare_json_add_number(o, row->parameters[i], c->p[i]);
    return ok && (!row->text || pare_json_add_string(o, row->text, c->text));
}

static bool add_truth(cJSON *to, pare_truth t)
{
    return t == PARE_UNKNOWN ? pare_json_add_null(to, "holds")
                             : pare_json_add_bool(to, "holds", t == PARE_TRUE);
}

static bool add_theorem(cJSON *o, const pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    return pare_json_add_string(o, "side", row->lower ? "lower" : "upper") &&
           pare_json_add_number(o, "bound", c->value) &&
           (!pare_kind_is_drawn(c->kind) ||
            pare_json_add_number(o, "probability", c->probability)) &&
           pare_json_add_string(o, "norm", row->norm) &&
           pare_json_add_string(o, "domain", c->domain);
}

bool cert_add_claim(cJSON *list, pare_arena *a, const pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    const char *const sentence = pare_claim_sentence(a, c);
    cJSON *const o = sentence ? pare_json_add_object(list, NULL) : NULL;
    bool ok = o && pare_json_add_string(o, "kind", row->name) && add_parameters(o, c);
    if (ok && row->section == PARE_HYPOTHESIS) ok = add_truth(o, c->holds);
    if (ok && row->section == PARE_THEOREM) ok = add_theorem(o, c);
    if (ok && row->section != PARE_THEOREM) ok = add_maybe(o, "value", c->value, row->has_value);
    if (ok && (row->section == PARE_HYPOTHESIS || row->section == PARE_EVIDENCE))
        ok = add_maybe(o, "limit", c->limit, row->has_limit);
    if (ok && row->section == PARE_OBSERVATION)
        ok = pare_json_add_number(o, "tolerance", row->tolerance);
    if (ok && row->section == PARE_PAPER) ok = pare_json_add_bool(o, "sound", false);
    return ok && pare_json_add_string(o, "sentence", sentence);
}

static bool add_sections(cJSON *to, pare_arena *a, const pare_cert *c)
{
    bool ok = true;
    for (size_t s = 0; ok && s < PARE_SECTIONS; s++) {
        cJSON *const list = pare_json_add_array(to, pare_section_keys[s]);
        ok = list != NULL;
        for (size_t i = 0; ok && i < c->nclaims; i++)
            if (pare_kinds[c->claims[i].kind].section == s)
                ok = cert_add_claim(list, a, &c->claims[i]);
    }
    return ok;
}

static bool add_headline(cJSON *to, const pare_cert *c)
{
    cJSON *const o = pare_json_add_object(to, "headline");
    return o && pare_json_add_number(o, "proven", c->proven) &&
           pare_json_add_number(o, "measured", c->measured) &&
           pare_json_add_string(o, "norm", c->norm) && pare_json_add_string(o, "domain", c->domain);
}

static bool add_certificate(cJSON *o, pare_arena *a, const pare_cert *c)
{
    if (!o || !pare_json_add_size(o, "pare", PARE_CERT_SCHEMA)) return false;
    cJSON *const reduction = pare_json_add_object(o, "reduction");
    bool ok = reduction && pare_json_add_string(reduction, "name", c->reduction) &&
              pare_json_add_u64(reduction, "seed", c->seed) && add_file(o, "input", &c->input) &&
              add_file(o, "output", &c->output) && add_data(o, &c->data) && add_headline(o, c) &&
              add_sections(o, a, c);
    cJSON *const chain = ok ? pare_json_add_array(o, "chain") : NULL;
    ok = chain != NULL;
    for (size_t i = 0; ok && i < c->nchain; i++)
        ok = add_certificate(pare_json_add_object(chain, NULL), a, c->chain[i]);
    return ok;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static pare_status refuse_figure(const char *what, double v, pare_err *err)
{
    return pare_fail(err, PARE_ERR_NONFINITE, "%s is %g: not a figure that can be written", what,
                     v);
}

static pare_status check_figures(const pare_cert *c, pare_err *err)
{
    if (!(c->proven >= 0)) return refuse_figure("proven", c->proven, err);
    if (!(c->measured >= 0 && isfinite(c->measured)))
        return refuse_figure("measured", c->measured, err);
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *const t = &c->claims[i];
        const pare_kind_row *const row = &pare_kinds[t->kind];
        const bool bound = row->section == PARE_THEOREM;
        if (bound ? !(t->value >= 0) : row->has_value && isnan(t->value))
            return refuse_figure(row->name, t->value, err);
        if (row->has_limit && isnan(t->limit)) return refuse_figure(row->name, t->limit, err);
        if (pare_kind_is_drawn(t->kind) && !(t->probability > 0 && t->probability < 1))
            return refuse_figure(row->name, t->probability, err);
    }
    pare_status st = PARE_OK;
    for (size_t i = 0; st == PARE_OK && i < c->nchain; i++) st = check_figures(c->chain[i], err);
    return st;
}

pare_status pare_cert_json(cJSON **out, const pare_cert *c, pare_err *err)
{
    *out = NULL;
    pare_status st = check_figures(c, err);
    if (st != PARE_OK) return st;
    pare_arena *const a = pare_arena_new();
    cJSON *const root = cJSON_CreateObject();
    if (!a || !add_certificate(root, a, c)) {
        cJSON_Delete(root);
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    pare_arena_free(a);
    *out = root;
    return PARE_OK;
}

pare_status pare_cert_text(char **out, pare_arena *a, const pare_cert *c, pare_err *err)
{
    cJSON *root = NULL;
    pare_status st = pare_cert_json(&root, c, err);
    if (!st) st = pare_json_print(out, NULL, a, root, 2, err);
    cJSON_Delete(root);
    return st;
}

pare_status pare_cert_write(const pare_cert *c, const char *path, bool overwrite, pare_err *err)
{
    cJSON *root = NULL;
    pare_status st = pare_cert_json(&root, c, err);
    if (!st) st = pare_json_write(root, path, overwrite, err);
    cJSON_Delete(root);
    return st;
}
