/* verify_file.c - certificates by their path: which file it is, which prover it needs
 * (pare/cut.h). */
#include "length/length_cert_file.h"
#include "cert/prove.h"
#include "data/graph_data.h"
#include "verify_file.h"
#include <pare/plan.h>

#include <string.h>

/* ---- provers --------------------------------------------------------------------------------- */

enum { SINGLE = 5, PROVERS = SINGLE + PARE_WIDTH_METHODS };
static const pare_prover *const single[SINGLE] = {&pare_fold_prover, &pare_share_rows_prover,
                                                  &pare_depth_prover, &pare_ticket_prover,
                                                  &pare_quant_prover};

static const pare_prover *prover_at(size_t i)
{
    return i < SINGLE ? single[i] : &pare_width_provers[i - SINGLE];
}

const pare_prover *pare_prover_of(const char *reduction)
{
    for (size_t i = 0; i < PROVERS; i++)
        if (strcmp(prover_at(i)->reduction, reduction) == 0) return prover_at(i);
    return NULL;
}

/* pare_verify_opts.load */
pare_status pare_certificate_inputs(pare_inputs *out, pare_arena *a, const pare_model *m,
                                    const char *path, const pare_data_opts *o, pare_files *files,
                                    pare_err *err)
{
    pare_dataset d = {0};
    const pare_status st = pare_dataset_load_files(&d, a, m, path, o, files, err);
    *out = d.inputs;
    return st;
}

pare_status pare_verify_cert(pare_cert **again, pare_arena *a, const pare_cert *cert,
                             const char *path, const pare_verify_file_opts *opts, pare_err *err)
{
    const pare_verify_file_opts none = {0}, *const o = opts ? opts : &none;
    pare_prover provers[PROVERS];
    for (size_t i = 0; i < PROVERS; i++) provers[i] = *prover_at(i);
    const pare_verify_opts v = {.input = o->input,
                                .output = o->output,
                                .data = o->data,
                                .provers = provers,
                                .nprovers = PROVERS,
                                .load = pare_certificate_inputs,
                                .evidence = o->evidence,
                                .exec = o->exec};
    return pare_cert_check(again, a, cert, path, &v, err);
}

/* ---- which certificate ----------------------------------------------------------------------- */

pare_status pare_find_certificate(const char **out, pare_arena *a, const char *path, pare_err *err)
{
    static const char tail[] = ".cert.json";
    size_t n = strlen(path), t = sizeof tail - 1;
    *out = path;
    if (n > t && strcmp(path + n - t, tail) == 0) return PARE_OK;
    while (n > 1 && path[n - 1] == '/') n--;
    const char *const name = pare_strndup(a, path, n);
    const char *const beside = name ? pare_sprintf(a, "%s%s", name, tail) : NULL;
    const char *const inside = name ? pare_sprintf(a, "%s/pare%s", name, tail) : NULL;
    if (!beside || !inside) return pare_no_memory(err);
    if (pare_file_exists(beside))
        *out = beside;
    else if (pare_file_exists(inside))
        *out = inside;
    else if (pare_is_dir(path))
        return pare_fail(err, PARE_ERR_INPUT,
                         "%s is a folder, and there is no certificate %s beside it or %s in it",
                         path, beside, inside);
    return PARE_OK;
}

/* What was read is not JSON (`why`): a model, most likely. */
static pare_status not_a_certificate(const char *path, const pare_err *why, pare_err *err)
{
    pare_model *m = NULL;
    const bool model = pare_model_load(&m, path, NULL) == PARE_OK;
    pare_model_free(m);
    if (model)
        return pare_fail(err, PARE_ERR_INPUT,
                         "%s is a model, and there is no certificate %s.cert.json beside it; every "
                         "cut writes one",
                         path, path);
    if (strstr(why->msg, "line 1, column 1:"))
        return pare_fail(err, PARE_ERR_INPUT, "%s is not JSON; give a certificate (OUT.cert.json)",
                         path);
    /* Damaged JSON: its message says where, and may begin with the path. */
    const size_t n = strlen(path);
    const bool named = strncmp(why->msg, path, n) == 0 && strncmp(why->msg + n, ": ", 2) == 0;
    return pare_fail(err, PARE_ERR_INPUT, "%s is not a certificate: %s", path,
                     why->msg + (named ? n + 2 : 0));
}

pare_status pare_certificate_open(cJSON **json, const char **found, char sha256[PARE_SHA256_HEX],
                                  pare_arena *a, const char *path, pare_err *err)
{
    pare_blob *b = NULL;
    pare_err why = {0};
    *json = NULL;
    *found = path;
    pare_status st = pare_find_certificate(found, a, path, err);
    if (!st) st = pare_blob_open(&b, *found, err); /* once */
    if (st) return st;
    st = pare_sha256_of(sha256, b->data, b->bytes, err);
    if (!st && (st = pare_json_read_blob(json, b, &why)))
        st = st == PARE_ERR_INPUT ? not_a_certificate(*found, &why, err)
                                  : pare_fail(err, st, "%s", why.msg);
    pare_blob_release(b);
    if (st || pare_is_length_cert(*json) || pare_json_has(*json, "pare")) return st;
    return pare_fail(err, PARE_ERR_INPUT,
                     pare_json_has(*json, "pare_plan") ? "%s is a plan without a certificate"
                                                       : "%s is JSON, but not a certificate",
                     *found);
}

pare_status pare_certificate_parse(pare_cert **out, pare_arena *a, const cJSON *json,
                                   const char *path, const pare_verify_file_opts *o, pare_err *err)
{
    if (o->engine)
        return pare_fail(err, PARE_ERR_USAGE,
                         "an engine has no effect: %s is not about a length run", path);
    const pare_status st = pare_cert_parse(out, a, json, path, err);
    if (st || !o->data || (*out)->data.path) return st;
    return pare_fail(
        err, PARE_ERR_USAGE,
        "data has no effect: %s is about random inputs made from its seed, not about a "
        "file",
        path);
}

/* ---- verifying ------------------------------------------------------------------------------- */

pare_status pare_verify_file_report(pare_verified *out, pare_arena *a, const char *path,
                                    const pare_verify_file_opts *opts, pare_err *err)
{
    const pare_verify_file_opts none = {0}, *const o = opts ? opts : &none;
    cJSON *json = NULL;
    char sha256[PARE_SHA256_HEX];
    *out = (pare_verified){0};
    pare_status st = pare_certificate_open(&json, &out->path, sha256, a, path, err);
    if (!st && pare_is_length_cert(json)) {
        out->is_length = true;
        st = pare_length_cert_verify(
            &out->length, a, out->path, json,
            &(pare_length_verify_opts){o->input, o->output, o->data, o->engine}, o->exec, err);
    } else if (!st) {
        st = pare_certificate_parse(&out->claimed, a, json, out->path, o, err);
        if (!st) st = pare_verify_cert(&out->again, a, out->claimed, out->path, o, err);
    }
    cJSON_Delete(json);
    /* A refusal is about the certificate itself. */
    return st == PARE_ERR_VERIFY ? st : pare_err_path(err, st, out->path);
}

pare_status pare_verify_file(const char *path, const pare_verify_file_opts *opts, pare_err *err)
{
    pare_verified v;
    pare_arena *const a = pare_arena_new();
    const pare_status st =
        a ? pare_verify_file_report(&v, a, path, opts, err) : pare_no_memory(err);
    pare_arena_free(a);
    return st;
}
