/* length_cert_file.c - a plan, and the certificate of its run, as JSON files: writing and reading
 * them, hashing the files it is about, comparing its claims with a run (docs/format.md). */
#include "length_cert_file.h"
#include "base/support.h"
#include "data/graph_data.h"
#include "attend_plan.h"
#include "linalg/bounds.h"
#include "model/model_facts.h"

#include <math.h>
#include <string.h>

#define SCHEMA    2
#define TOLERANCE 3.0   /* of what was measured: relative, for another CPU */
#define OTHER_RUN 1.001 /* times what is proven of another CPU's numbers */

enum { MODEL = PARE_LENGTH_MODEL, PLAN = PARE_LENGTH_PLAN, DATA = PARE_LENGTH_DATA };
const char *const pare_length_file_keys[PARE_LENGTH_FILES] = {"input", "plan", "data"};
static const char norm[] = "largest absolute difference of an output entry of a head's attention "
                           "from real arithmetic";

pare_status pare_length_oracle(pare_oracle *out, const pare_length_plan *plan,
                               const pare_exec *exec, pare_err *err)
{
    const pare_oracle_caps *const k = &plan->caps;
    if (k->features & PARE_ORC_STRICT && !(k->features & PARE_ORC_QKV))
        return pare_oracle_paper(out, k, exec, err);
    return pare_oracle_cpu(out, k->dtype, k->max_len, exec, err);
}

pare_status pare_length_plan_write(const char *path, const pare_length_plan *plan, bool overwrite,
                                   pare_err *err)
{
    cJSON *json = NULL;
    pare_status st = pare_length_plan_json(&json, plan, err);
    if (!st) st = pare_json_write(json, path, overwrite, err);
    cJSON_Delete(json);
    return st;
}

pare_status pare_length_plan_text(char **out, pare_arena *a, const pare_length_plan *plan,
                                  pare_err *err)
{
    cJSON *json = NULL;
    pare_status st = pare_length_plan_json(&json, plan, err);
    if (!st) st = pare_json_print(out, NULL, a, json, 2, err);
    cJSON_Delete(json);
    return st;
}

/* What `json` says of the engine. */
static pare_status read_plan_file(pare_length_plan_file *out, const cJSON *json, pare_err *err)
{
    static const char *const keys[] = {"length", "layers", "heads", "features"};
    const cJSON *oracle;
    const char *type, *word;
    size_t n[4];
    pare_status st = PARE_OK;
    if (!pare_json_has(json, "pare_plan"))
        st = pare_fail(err, PARE_ERR_INPUT, "is not a plan of pare length");
    if (!st) st = pare_json_object(&oracle, json, "oracle", err);
    for (size_t i = 0; i < 4 && !st; i++) st = pare_json_size(&n[i], oracle, keys[i], err);
    if (!st) st = pare_json_string(&type, oracle, "dtype", err);
    if (!st) st = pare_json_string(&word, json, "mode", err);
    if (!st && (n[0] < 1 || n[0] > UINT32_MAX || n[1] > UINT32_MAX || n[2] > UINT32_MAX ||
                n[3] > UINT32_MAX || pare_length_mode_of(word) < 1))
        st = pare_fail(err, PARE_ERR_INPUT,
                       "is not a plan of `pare length`: its engine or its mode is impossible");
    if (st) return st;
    const bool f64 = strcmp(type, pare_dtype_name(PARE_F64)) == 0;
    out->mode = (pare_length_mode)pare_length_mode_of(word);
    out->engine = (pare_oracle_caps){.max_len = (uint32_t)n[0],
                                     .layers = (uint32_t)n[1],
                                     .heads = (uint32_t)n[2],
                                     .features = (uint32_t)n[3],
                                     .dtype = f64 ? PARE_F64 : PARE_F32};
    return pare_json_size(&out->tokens, json, "tokens", err);
}

pare_status pare_length_plan_read(pare_length_plan_file *out, pare_arena *a, const char *path,
                                  pare_err *err)
{
    cJSON *json = NULL;
    *out = (pare_length_plan_file){.path = path};
    pare_status st = pare_json_read(&json, path, err);
    if (!st) st = read_plan_file(out, json, err);
    if (!st) st = pare_json_print(&out->text, NULL, a, json, 0, err);
    cJSON_Delete(json);
    return pare_err_path(err, st, path);
}

pare_status pare_length_plan_open(pare_length_plan *out, pare_arena *a,
                                  const pare_length_plan_file *file, const pare_graph *g,
                                  pare_err *err)
{
    cJSON *json = NULL;
    pare_status st = pare_json_parse(&json, file->text, strlen(file->text), err);
    if (!st) st = pare_length_plan_parse(out, a, json, g, err);
    cJSON_Delete(json);
    return pare_err_path(err, st, file->path);
}

/* ---- reading what it is about ---------------------------------------------------------------- */

static pare_status read_input(pare_length_input *out, pare_arena *a, const pare_model *m,
                              const char *data, size_t tokens, uint64_t seed, pare_files *files,
                              pare_err *err)
{
    pare_dataset set;
    pare_inputs some;
    pare_status st =
        data ? pare_err_path(err, pare_dataset_load_files(&set, a, m, data, NULL, files, err), data)
             : pare_inputs_random(&some, a, m, 1, tokens, seed, err);
    if (!st && data && !set.inputs.n)
        st = pare_fail(err, PARE_ERR_INPUT, "%s: no input in it suits the model", data);
    if (st) return st;
    *out = (pare_length_input){.in = data ? set.inputs.in[0] : some.in[0]};
    out->in.batch = 1;
    if (m->pattern.kind != PARE_GRAPH) return PARE_OK;
    out->graph = &out->whole;
    return pare_graph_complete(&out->whole, a, out->in.graph, &m->pattern, err);
}

pare_status pare_length_input_read(pare_length_input *out, pare_arena *a, const pare_model *m,
                                   const char *data, size_t tokens, uint64_t seed, pare_err *err)
{
    pare_files *const files = pare_files_new();
    if (!files) return pare_no_memory(err);
    const pare_status st = read_input(out, a, m, data, tokens, seed, files, err);
    pare_files_free(files);
    return st;
}

/* The hash of what was read through `files` for the thing at `path`; also where it could not be
 * parsed (`st`): it may be another file than the certificate says. */
static pare_status add_hash(pare_work *w, const char **sha256, const pare_files *files,
                            const char *path, pare_status st)
{
    char *const hex = pare_alloc(w->arena, PARE_SHA256_HEX, 1);
    if (!hex) return pare_no_memory(w->err);
    if (!path || pare_files_count(files) == 0) return st;
    const pare_status hashed = pare_files_identity(hex, files, path, st ? NULL : w->err);
    if (!hashed) *sha256 = hex;
    return st ? st : hashed;
}

pare_status length_read_model(pare_work *w, pare_length_file *is, pare_model **m, const char *path)
{
    char *const hex = pare_alloc(w->arena, PARE_SHA256_HEX, 1);
    pare_files *const files = pare_files_new();
    *is = (pare_length_file){.path = path, .architecture = hex};
    pare_status st = hex && files ? PARE_OK : pare_no_memory(w->err);
    if (!st) st = pare_err_path(w->err, pare_model_load_as(m, path, NULL, files, w->err), path);
    if (files) st = add_hash(w, &is->sha256, files, path, st);
    if (!st) st = pare_architecture_sha256(hex, *m, w->err);
    pare_files_free(files);
    return st;
}

pare_status length_read_plan(pare_work *w, pare_length_file *is, cJSON **json, const char *path)
{
    pare_blob *b = NULL;
    pare_files *const files = pare_files_new();
    *is = (pare_length_file){.path = path};
    pare_status st = files ? pare_files_read(files, &b, path, w->err) : pare_no_memory(w->err);
    if (!st) st = pare_json_parse(json, (const char *)b->data, b->bytes, w->err);
    if (files) st = add_hash(w, &is->sha256, files, path, st);
    pare_blob_release(b);
    pare_files_free(files);
    return pare_err_path(w->err, st, path);
}

pare_status length_read_data(pare_work *w, pare_length_file *is, pare_length_input *in,
                             const pare_model *m, const char *path, size_t tokens, uint64_t seed)
{
    pare_files *const files = pare_files_new();
    *is = (pare_length_file){.path = path};
    pare_status st = files ? read_input(in, w->arena, m, path, tokens, seed, files, w->err)
                           : pare_no_memory(w->err);
    if (files) st = add_hash(w, &is->sha256, files, path, st);
    pare_files_free(files);
    return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

const char *pare_length_cert_domain(bool data)
{
    return data ? "the first input of the data; rows evenly of each head"
                : "one seeded random input; rows evenly of each head";
}

/* Raised here and not by the prover, so that verifying accepts no bound below the one it proves. */
double pare_length_cert_written(double bound)
{
    return pare_ub_written(pare_ub_mul(pare_ub_of(bound), pare_ub_exact(OTHER_RUN)));
}

static bool add_files(cJSON *to, const pare_length_file f[PARE_LENGTH_FILES])
{
    bool ok = true;
    for (size_t i = 0; i < PARE_LENGTH_FILES && ok; i++) {
        if (!f[i].path) continue;
        cJSON *const o = pare_json_add_object(to, pare_length_file_keys[i]);
        ok = o && pare_json_add_string(o, "path", f[i].path) &&
             pare_json_add_string(o, "sha256", f[i].sha256) &&
             (!f[i].architecture || pare_json_add_string(o, "architecture", f[i].architecture));
    }
    return ok;
}

static bool add_run(cJSON *to, const pare_length_cert *k)
{
    cJSON *const o = pare_json_add_object(to, "run");
    return o && pare_json_add_size(o, "calls", k->calls) &&
           pare_json_add_size(o, "rounds", k->rounds) &&
           pare_json_add_size(o, "bad_rows", k->bad_rows) &&
           pare_json_add_size(o, "fallback_calls", k->fallback_calls) &&
           pare_json_add_number(o, "lmax", k->lmax);
}

static bool add_all(cJSON *o, uint64_t seed, const pare_length_file f[PARE_LENGTH_FILES],
                    size_t rows, const pare_length_plan *p, const pare_length_cert *k)
{
    return o && pare_json_add_size(o, "pare_length", SCHEMA) &&
           pare_json_add_u64(o, "seed", seed) && add_files(o, f) &&
           pare_json_add_size(o, "tokens", p->tokens) &&
           pare_json_add_string(o, "mode", pare_length_mode_name(p->opts.mode)) &&
           pare_json_add_size(o, "length", p->caps.max_len) &&
           pare_json_add_string(o, "norm", norm) &&
           pare_json_add_string(o, "domain", pare_length_cert_domain(f[DATA].path)) &&
           pare_json_add_size(o, "rows_of_a_head", rows) && add_run(o, k) &&
           pare_json_add_number(o, "apriori", pare_length_cert_written(k->apriori)) &&
           pare_json_add_number(o, "proven", pare_length_cert_written(k->proven)) &&
           pare_json_add_number(o, "measured", k->measured) &&
           pare_json_add_number(o, "tolerance", TOLERANCE);
}

pare_status pare_length_cert_write(const pare_length_cert *cert, const pare_length_plan *plan,
                                   const pare_length_cert_opts *o, pare_err *err)
{
    pare_work w = {.arena = pare_arena_new(), .err = err};
    const char *const path = w.arena ? pare_sprintf(w.arena, "%s.cert.json", o->plan) : NULL;
    pare_length_file f[PARE_LENGTH_FILES] = {{0}};
    pare_model *m = NULL;
    cJSON *json = NULL;
    pare_length_input in;
    pare_status st = path ? length_read_model(&w, &f[MODEL], &m, o->model) : pare_no_memory(err);
    if (!st) st = length_read_plan(&w, &f[PLAN], &json, o->plan);
    if (!st && pare_length_may_exceed(m)) m->context = 0;
    if (!st && o->data) st = length_read_data(&w, &f[DATA], &in, m, o->data, 0, 0);
    pare_model_free(m);
    cJSON_Delete(json);
    for (size_t i = 0; i < PARE_LENGTH_FILES && !st; i++)
        if (f[i].path && !(f[i].path = pare_path_relative(w.arena, path, f[i].path)))
            st = pare_no_memory(err);
    if (!st) {
        cJSON *const root = cJSON_CreateObject();
        st = add_all(root, o->seed, f, o->rows, plan, cert)
                 ? pare_json_write(root, path, o->overwrite, err)
                 : pare_no_memory(err);
        cJSON_Delete(root);
    }
    pare_arena_free(w.arena);
    return st;
}

/* ---- reading --------------------------------------------------------------------------------- */

bool pare_is_length_cert(const cJSON *json)
{
    return pare_json_has(json, "pare_length");
}

static pare_status read_string(pare_work *w, const char **out, const cJSON *json, const char *key)
{
    const char *text;
    const pare_status st = pare_json_string(&text, json, key, w->err);
    if (st) return st;
    *out = pare_strdup(w->arena, text);
    return *out ? PARE_OK : pare_no_memory(w->err);
}

static pare_status read_files(pare_work *w, pare_length_claims *k, const char *path,
                              const cJSON *json, const pare_length_verify_opts *where)
{
    const char *const instead[PARE_LENGTH_FILES] = {where->model, where->plan, where->data};
    pare_status st = PARE_OK;
    for (size_t i = 0; i < PARE_LENGTH_FILES && !st; i++) {
        const char *const key = pare_length_file_keys[i];
        pare_length_file *const f = &k->files[i];
        const cJSON *o;
        const char *relative;
        if (i == DATA && !pare_json_has(json, key)) continue;
        st = pare_json_object(&o, json, key, w->err);
        if (!st) st = pare_json_string(&relative, o, "path", w->err);
        if (!st) st = read_string(w, &f->sha256, o, "sha256");
        if (!st && i == MODEL) st = read_string(w, &f->architecture, o, "architecture");
        if (st) return st;
        f->path = instead[i] ? instead[i] : pare_path_beside(w->arena, path, relative);
        if (!f->path) st = pare_no_memory(w->err);
    }
    return st;
}

/* Every key of `theirs`, down to the last, is one of `ours`. */
static pare_status check_keys(const cJSON *theirs, const cJSON *ours, pare_err *err)
{
    const cJSON *at = NULL;
    pare_status st = PARE_OK;
    cJSON_ArrayForEach(at, theirs)
    {
        const cJSON *const own = cJSON_GetObjectItemCaseSensitive(ours, at->string);
        if (st) break;
        st = own ? check_keys(at, own, err)
                 : pare_fail(err, PARE_ERR_INPUT, "unknown key \"%.80s\"",
                             at->string ? at->string : "");
    }
    return st;
}

/* No claim hides behind a key that nobody looks at: an empty certificate has all there are. */
static pare_status check_all_keys(const pare_length_claims *k, const cJSON *json, pare_err *err)
{
    const pare_length_plan plan = {0};
    cJSON *const o = cJSON_CreateObject();
    const pare_status st = add_all(o, 0, k->files, 0, &plan, &(pare_length_cert){0})
                               ? check_keys(json, o, err)
                               : pare_no_memory(err);
    cJSON_Delete(o);
    return st;
}

pare_status length_read_claims(pare_work *w, pare_length_claims *k, const char *path,
                               const cJSON *json, const pare_length_verify_opts *where)
{
    const cJSON *run;
    size_t schema;
    pare_err *const err = w->err;
    pare_status st = pare_json_size(&schema, json, "pare_length", err);
    if (!st && schema != SCHEMA)
        st = pare_fail(err, PARE_ERR_INPUT,
                       "pare_length: schema %zu is not read, only %d; make the certificate again "
                       "with the same command",
                       schema, SCHEMA);
    *k = (pare_length_claims){0};
    if (st || (st = read_files(w, k, path, json, where)) || (st = check_all_keys(k, json, err)) ||
        (st = pare_json_u64(&k->seed, json, "seed", err)) ||
        (st = pare_json_size(&k->rows, json, "rows_of_a_head", err)) ||
        (st = pare_json_size(&k->tokens, json, "tokens", err)) ||
        (st = pare_json_size(&k->length, json, "length", err)) ||
        (st = read_string(w, &k->mode, json, "mode")) ||
        (st = read_string(w, &k->norm, json, "norm")) ||
        (st = read_string(w, &k->domain, json, "domain")) ||
        (st = pare_json_object(&run, json, "run", err)) ||
        (st = pare_json_size(&k->calls, run, "calls", err)) ||
        (st = pare_json_size(&k->rounds, run, "rounds", err)) ||
        (st = pare_json_size(&k->bad_rows, run, "bad_rows", err)) ||
        (st = pare_json_size(&k->fallback_calls, run, "fallback_calls", err)) ||
        (st = pare_json_bound(&k->lmax, run, "lmax", err)) ||
        (st = pare_json_bound(&k->apriori, json, "apriori", err)) ||
        (st = pare_json_bound(&k->proven, json, "proven", err)) ||
        (st = pare_json_bound(&k->measured, json, "measured", err)))
        return st;
    return pare_json_number(&k->tolerance, json, "tolerance", err);
}

/* ---- comparing ------------------------------------------------------------------------------- */

pare_status length_same_file(const pare_length_file *claimed, const pare_length_file *is,
                             pare_status st, pare_err *err)
{
    if (is->sha256 && claimed->sha256 && strcmp(claimed->sha256, is->sha256) != 0)
        return pare_fail(err, PARE_ERR_VERIFY,
                         "%s: sha256 is %.12s..., the certificate says %.12s...", is->path,
                         is->sha256, claimed->sha256);
    if (st) return st;
    if (is->architecture && strcmp(claimed->architecture, is->architecture) != 0)
        return pare_fail(err, PARE_ERR_VERIFY,
                         "%s: another architecture than the certificate says: sha256 %.12s..., not "
                         "%.12s...",
                         is->path, is->architecture, claimed->architecture);
    return PARE_OK;
}

pare_status length_not_true(const char *what, double claimed, double is, pare_err *err)
{
    return pare_fail(err, PARE_ERR_VERIFY, "%s: the certificate says %.6g, it is %.6g", what,
                     claimed, is);
}

pare_status length_compare_plan(const pare_length_claims *k, const pare_length_plan *p,
                                pare_err *err)
{
    if (k->tokens != p->tokens)
        return length_not_true("tokens", (double)k->tokens, (double)p->tokens, err);
    if (k->length != p->caps.max_len)
        return length_not_true("length", (double)k->length, p->caps.max_len, err);
    const struct {
        const char *what, *claimed, *is;
    } words[] = {{"mode", k->mode, pare_length_mode_name(p->opts.mode)},
                 {"norm", k->norm, norm},
                 {"domain", k->domain, pare_length_cert_domain(k->files[DATA].path)}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].claimed, words[i].is) != 0)
            return pare_fail(err, PARE_ERR_VERIFY, "%s: the certificate says \"%s\", it is \"%s\"",
                             words[i].what, words[i].claimed, words[i].is);
    return PARE_OK;
}

/* What may be measured here where another CPU has measured so much. Its vectors have other lengths
 * and its products other orders: every rounding may be another one, but they are as many and as
 * large, so that the largest of all rows is much the same (kernels of four CPUs differed by 2.2 at
 * most). A row may be right to the last bit there and be rounded here: half a unit of the largest
 * entry. */
static double allowed_here(double measured, const pare_length_cert *now, pare_dtype t)
{
    const double half_unit = t == PARE_F64 ? 0x1p-53 : 0x1p-24;
    return (1 + TOLERANCE) * measured + half_unit * now->largest;
}

pare_status length_compare_run(const pare_length_claims *k, const pare_length_cert *now,
                               pare_dtype t, pare_err *err)
{
    const struct {
        const char *what;
        double claimed, is;
    } at_most[] = {{"rounds", (double)k->rounds, (double)now->rounds},
                   {"bad rows", (double)k->bad_rows, (double)now->bad_rows},
                   {"fall-back calls", (double)k->fallback_calls, (double)now->fallback_calls},
                   {"lmax", k->lmax * OTHER_RUN, now->lmax}};
    for (size_t i = 0; i < sizeof at_most / sizeof *at_most; i++)
        if (!(at_most[i].is <= at_most[i].claimed))
            return length_not_true(at_most[i].what, at_most[i].claimed, at_most[i].is, err);
    if (k->tolerance != TOLERANCE)
        return length_not_true("tolerance", k->tolerance, TOLERANCE, err);
    if (!now->sound)
        return length_not_true("measured is not within proven", k->proven, now->measured, err);
    if (k->calls != now->calls)
        return length_not_true("calls", (double)k->calls, (double)now->calls, err);
    if (!(now->apriori <= k->apriori))
        return length_not_true("a priori", k->apriori, now->apriori, err);
    if (!(now->proven <= k->proven)) return length_not_true("proven", k->proven, now->proven, err);
    if (!(k->measured <= k->proven && now->measured <= allowed_here(k->measured, now, t)))
        return length_not_true("measured", k->measured, now->measured, err);
    return PARE_OK;
}
