/* A certificate as JSON text. The order of the keys is the order of reading: what was done, to
 * which files, on which inputs, what is claimed, under which hypotheses. */
#include "cert_parts.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void pare_cert_inflate(pare_cert *c)
{
    double *const tiers[] = {&c->apriori, &c->proven, &c->rounding};
    for (size_t i = 0; i < 3; i++) *tiers[i] = pare_ub_written((pare_ub){*tiers[i]});
    for (size_t i = 0; i < c->nstatements; i++)
        c->statements[i].bound = pare_ub_written((pare_ub){c->statements[i].bound});
}

static bool is_part(const pare_data_ref *d)
{
    return strcmp(d->kind, "part") == 0;
}

pare_status cert_seal(char hex[PARE_SHA256_HEX], const pare_cert *c, pare_err *err)
{
    const pare_data_ref *const d = &c->data;
    char numbers[160];
    int n = snprintf(numbers, sizeof numbers, "%d\n%" PRIu64 "\n%zu\n%zu\n%zu\n", PARE_CERT_SCHEMA,
                     c->seed, d->split, d->count, d->tokens);
    if (is_part(d)) snprintf(numbers + n, sizeof numbers - (size_t)n, "%zu\n", d->first);
    const char *const parts[] = {"pare ",   numbers, c->reduction,    "\n", d->kind, "\n",
                                 d->sha256, "\n",    d->inputs_sha256};
    pare_sha256 h;
    const pare_status st = pare_sha256_begin(&h, err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        pare_sha256_add(&h, parts[i], strlen(parts[i]));
    pare_sha256_end(&h, hex);
    return PARE_OK;
}

/* ---- pieces: each is false only when memory is out ----------------------------------------- */

/* "inf", a number, or null for a nan: does not apply. */
static bool add_maybe(cJSON *to, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(to, key) : pare_json_add_number(to, key, v);
}

static bool add_file(cJSON *to, const char *key, const pare_file_ref *f)
{
    cJSON *const o = pare_json_add_object(to, key);
    if (!o || !pare_json_add_string(o, "path", f->path) ||
        !pare_json_add_string(o, "sha256", f->sha256))
        return false;
    cJSON *const t = pare_json_add_object(o, "tensors");
    for (size_t i = 0; t && i < f->ntensors; i++)
        if (!pare_json_add_string(t, f->tensors[i].name, f->tensors[i].sha256)) return false;
    return t != NULL;
}

static bool add_data(cJSON *to, const pare_data_ref *d, const char *seal)
{
    cJSON *const o = pare_json_add_object(to, "data");
    if (!o || !pare_json_add_string(o, "kind", d->kind)) return false;
    const bool ok = d->path ? pare_json_add_string(o, "path", d->path) &&
                                  pare_json_add_string(o, "sha256", d->sha256) &&
                                  pare_json_add_size(o, "split", d->split) &&
                                  (!is_part(d) || pare_json_add_size(o, "first", d->first)) &&
                                  pare_json_add_size(o, "count", d->count) &&
                                  (!is_part(d) || pare_json_add_size(o, "tokens", d->tokens))
                            : pare_json_add_size(o, "count", d->count) &&
                                  pare_json_add_size(o, "tokens", d->tokens);
    return ok && pare_json_add_string(o, "inputs_sha256", d->inputs_sha256) &&
           pare_json_add_string(o, "seal", seal);
}

static bool add_hypotheses(cJSON *to, const pare_cert *c)
{
    cJSON *const list = pare_json_add_array(to, "hypotheses");
    for (size_t i = 0; list && i < c->nhypotheses; i++) {
        const pare_hypothesis *const h = &c->hypotheses[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        if (!o || !pare_json_add_string(o, "name", h->name)) return false;
        if (!(h->holds == PARE_UNKNOWN ? pare_json_add_null(o, "holds")
                                       : pare_json_add_bool(o, "holds", h->holds == PARE_TRUE)))
            return false;
        if (!add_maybe(o, "value", h->value) || !add_maybe(o, "limit", h->limit)) return false;
    }
    return list != NULL;
}

static bool add_statements(cJSON *to, const pare_cert *c)
{
    cJSON *const list = pare_json_add_array(to, "statements");
    for (size_t i = 0; list && i < c->nstatements; i++) {
        const pare_statement *const s = &c->statements[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        if (!o || !pare_json_add_string(o, "name", s->name) ||
            !pare_json_add_string(o, "norm", s->norm) ||
            !pare_json_add_string(o, "domain", s->domain) ||
            !pare_json_add_number(o, "probability", s->probability) ||
            !pare_json_add_number(o, "bound", s->bound))
            return false;
    }
    return list != NULL;
}

static bool add_paper(cJSON *to, const pare_cert *c)
{
    cJSON *const o = pare_json_add_object(to, "paper_not_sound");
    for (size_t i = 0; o && i < c->npaper; i++)
        if (!pare_json_add_number(o, c->paper[i].name, c->paper[i].value)) return false;
    return o != NULL;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static pare_status check_bound(const char *what, const char *name, double v, pare_err *err)
{
    if (v >= 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_NONFINITE, "%s%s%s is %g: no certificate can say that", what,
                     *name ? " " : "", name, v);
}

/* A nan that got this far is a computation that went wrong: nothing may be written. */
static pare_status check_numbers(const pare_cert *c, pare_err *err)
{
    const struct {
        const char *what;
        double v;
    } tiers[] = {{"apriori", c->apriori},
                 {"proven", c->proven},
                 {"measured", c->measured},
                 {"rounding", c->rounding}};
    pare_status st = PARE_OK;
    for (size_t i = 0; st == PARE_OK && i < 4; i++)
        st = check_bound(tiers[i].what, "", tiers[i].v, err);
    for (size_t i = 0; st == PARE_OK && i < c->nstatements; i++) {
        const pare_statement *const s = &c->statements[i];
        st = check_bound("the bound of statement", s->name, s->bound, err);
        if (st == PARE_OK && !(s->probability > 0 && s->probability <= 1))
            st = pare_fail(err, PARE_ERR_NONFINITE, "statement %s has probability %g", s->name,
                           s->probability);
    }
    for (size_t i = 0; st == PARE_OK && i < c->npaper; i++)
        if (isnan(c->paper[i].value))
            st = pare_fail(err, PARE_ERR_NONFINITE, "paper_not_sound %s is nan", c->paper[i].name);
    return st;
}

static pare_status fill(cJSON *o, const pare_cert *c, pare_err *err)
{
    char seal[PARE_SHA256_HEX];
    pare_status st = check_numbers(c, err);
    if (st == PARE_OK) st = cert_seal(seal, c, err);
    if (st != PARE_OK) return st;
    const bool ok = pare_json_add_size(o, "pare", PARE_CERT_SCHEMA) &&
                    pare_json_add_string(o, "reduction", c->reduction) &&
                    pare_json_add_u64(o, "seed", c->seed) && add_file(o, "input", &c->input) &&
                    add_file(o, "output", &c->output) && add_data(o, &c->data, seal) &&
                    pare_json_add_string(o, "norm", c->norm) &&
                    pare_json_add_string(o, "domain", c->domain) &&
                    pare_json_add_number(o, "apriori", c->apriori) &&
                    pare_json_add_number(o, "proven", c->proven) &&
                    pare_json_add_number(o, "measured", c->measured) &&
                    pare_json_add_number(o, "rounding", c->rounding) && add_hypotheses(o, c) &&
                    add_statements(o, c) && add_paper(o, c);
    cJSON *const chain = ok ? pare_json_add_array(o, "chain") : NULL;
    if (!chain) return pare_no_memory(err);
    for (size_t i = 0; st == PARE_OK && i < c->nchain; i++) {
        cJSON *const link = pare_json_add_object(chain, NULL);
        st = link ? fill(link, c->chain[i], err) : pare_no_memory(err);
    }
    return st;
}

pare_status pare_cert_json(cJSON **out, const pare_cert *c, pare_err *err)
{
    PARE_ASSERT(c->reduction && c->norm && c->domain && c->input.path && c->output.path);
    PARE_ASSERT(c->data.kind && (strcmp(c->data.kind, "random") != 0) == (c->data.path != NULL));
    cJSON *const root = cJSON_CreateObject();
    *out = NULL;
    if (!root) return pare_no_memory(err);
    const pare_status st = fill(root, c, err);
    if (st == PARE_OK)
        *out = root;
    else
        cJSON_Delete(root);
    return st;
}

pare_status pare_cert_write(const pare_cert *c, const char *path, bool overwrite, pare_err *err)
{
    cJSON *root = NULL;
    pare_out *file = NULL;
    char *text = NULL;
    size_t bytes = 0;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_cert_json(&root, c, err);
    if (st == PARE_OK) st = pare_json_print(&text, &bytes, a, root, 2, err);
    if (st == PARE_OK) st = pare_out_open(&file, path, overwrite, err);
    if (st == PARE_OK) {
        st = pare_out_write(file, text, bytes, err);
        if (st == PARE_OK) st = pare_out_write(file, "\n", 1, err);
        if (st == PARE_OK)
            st = pare_out_commit(file, err);
        else
            pare_out_abort(file);
    }
    cJSON_Delete(root);
    pare_arena_free(a);
    return st;
}
