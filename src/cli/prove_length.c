/* Certificates of length runs: hashes of model, data and plan, the bounds, and what was measured.
 * Proven again by running the same plan on the same input and, on another engine (f64, with a
 * reference in the place of partial results; or the one that is asked for), the model once more. */
#include "prove_length.h"
#include "engine.h"
#include "out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA    2
#define TOLERANCE 3.0   /* of what was measured: relative, for another CPU */
#define OTHER_RUN 1.001 /* times what is proven of another CPU's numbers */

pare_status length_oracle(pare_oracle *out, const pare_length_plan *plan, const pare_exec *exec,
                          pare_err *err)
{
    const pare_oracle_caps *const k = &plan->caps;
    if (k->features & PARE_ORC_STRICT && !(k->features & PARE_ORC_QKV))
        return pare_oracle_paper(out, k->dtype, k->max_len, k->layers ? k->layers : 1,
                                 k->heads ? k->heads : 1, k->features, exec, err);
    return pare_oracle_cpu(out, k->dtype, k->max_len, exec, err);
}

static pare_status read_input(cli *c, length_input *out, const pare_model *m, const char *data,
                              size_t tokens, uint64_t seed, pare_files *files)
{
    pare_dataset set;
    pare_inputs some;
    pare_status st =
        data ? cli_name(c, pare_dataset_load_files(&set, c->arena, m, data, 0, 0, files, &c->err),
                        data)
             : pare_inputs_random(&some, c->arena, m, 1, tokens, seed, &c->err);
    if (!st && data && !set.inputs.n)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: no input in it suits the model", data);
    if (st) return st;
    *out = (length_input){.in = data ? set.inputs.in[0] : some.in[0]};
    out->in.batch = 1;
    if (m->pattern.kind != PARE_GRAPH) return PARE_OK;
    out->graph = &out->whole;
    return pare_graph_complete(&out->whole, c->arena, out->in.graph, &m->pattern, &c->err);
}

pare_status length_input_read(cli *c, length_input *out, const pare_model *m, const char *data,
                              size_t tokens, uint64_t seed)
{
    pare_files *const files = pare_files_new();
    if (!files) return pare_no_memory(&c->err);
    const pare_status st = read_input(c, out, m, data, tokens, seed, files);
    pare_files_free(files);
    return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool add_run(cJSON *to, const pare_length_cert *k)
{
    cJSON *const o = pare_json_add_object(to, "run");
    return o && pare_json_add_size(o, "calls", k->calls) &&
           pare_json_add_size(o, "rounds", k->rounds) &&
           pare_json_add_size(o, "bad_rows", k->bad_rows) &&
           pare_json_add_size(o, "fallback_calls", k->fallback_calls) &&
           pare_json_add_number(o, "lmax", k->lmax);
}

/* The files a certificate speaks of; data is an option. */
enum { MODEL, PLAN, DATA, FILES };
static const char *const file_keys[FILES] = {"input", "plan", "data"};
typedef struct file {
    const char *path, *sha, *architecture; /* the last of the model alone */
} file;

static bool add_file(cJSON *to, const char *key, const file *f)
{
    cJSON *const o = pare_json_add_object(to, key);
    return o && pare_json_add_string(o, "path", f->path) &&
           pare_json_add_string(o, "sha256", f->sha) &&
           (!f->architecture || pare_json_add_string(o, "architecture", f->architecture));
}

static bool add_files(cJSON *to, const file f[FILES])
{
    bool ok = true;
    for (size_t i = 0; i < FILES && ok; i++)
        if (f[i].path) ok = add_file(to, file_keys[i], &f[i]);
    return ok;
}

static const char norm[] = "largest absolute difference of an output entry of a head's attention "
                           "from real arithmetic";

const char *length_cert_domain(bool data)
{
    return data ? "the first input of the data; rows evenly of each head"
                : "one seeded random input; rows evenly of each head";
}

/* Raised for the numbers of another CPU: that is done here, so that verify believes no bound below
 * the one it proves. */
double length_cert_written(double bound)
{
    return pare_ub_written(pare_ub_mul(pare_ub_of(bound), pare_ub_exact(OTHER_RUN)));
}

static bool fill(cJSON *o, cli *c, const file f[FILES], size_t rows, const pare_length_plan *p,
                 const pare_length_cert *k)
{
    return o && pare_json_add_size(o, "pare_length", SCHEMA) &&
           pare_json_add_u64(o, "seed", c->seed) && add_files(o, f) &&
           pare_json_add_size(o, "tokens", p->tokens) &&
           pare_json_add_string(o, "mode", pare_length_mode_name(p->opts.mode)) &&
           pare_json_add_size(o, "length", p->caps.max_len) &&
           pare_json_add_string(o, "norm", norm) &&
           pare_json_add_string(o, "domain", length_cert_domain(f[DATA].path)) &&
           pare_json_add_size(o, "rows_of_a_head", rows) && add_run(o, k) &&
           pare_json_add_number(o, "apriori", length_cert_written(k->apriori)) &&
           pare_json_add_number(o, "proven", length_cert_written(k->proven)) &&
           pare_json_add_number(o, "measured", k->measured) &&
           pare_json_add_number(o, "tolerance", TOLERANCE);
}

/* ---- which files ----------------------------------------------------------------------------- */

/* What was read through `files` for the thing at `path`; also where it could not be parsed (`st`):
 * it may be another file than the certificate says. */
static pare_status identity(cli *c, const char **sha, const pare_files *files, const char *path,
                            pare_status st)
{
    char *const hex = pare_alloc(c->arena, PARE_SHA256_HEX, 1);
    if (!hex) return pare_no_memory(&c->err);
    if (!path || pare_files_count(files) == 0) return st;
    const pare_status hashed = pare_files_identity(hex, files, path, st ? NULL : &c->err);
    if (!hashed) *sha = hex;
    return st ? st : hashed;
}

static pare_status read_model(cli *c, file *is, pare_model **m, const char *path)
{
    char *const hex = pare_alloc(c->arena, PARE_SHA256_HEX, 1);
    pare_files *const files = pare_files_new();
    *is = (file){.path = path, .architecture = hex};
    pare_status st = hex && files ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = cli_name(c, pare_model_load_files(m, path, files, &c->err), path);
    if (files) st = identity(c, &is->sha, files, path, st);
    if (!st) st = pare_architecture_sha256(hex, *m, &c->err);
    pare_files_free(files);
    return st;
}

static pare_status read_plan(cli *c, file *is, cJSON **json, const char *path)
{
    pare_blob *b = NULL;
    pare_files *const files = pare_files_new();
    *is = (file){.path = path};
    pare_status st = files ? pare_files_read(files, &b, path, &c->err) : pare_no_memory(&c->err);
    if (!st) st = pare_json_parse(json, (const char *)b->data, b->bytes, &c->err);
    if (files) st = identity(c, &is->sha, files, path, st);
    pare_blob_release(b);
    pare_files_free(files);
    return cli_name(c, st, path);
}

static pare_status read_data(cli *c, file *is, length_input *in, const pare_model *m,
                             const char *path, size_t tokens, uint64_t seed)
{
    pare_files *const files = pare_files_new();
    *is = (file){.path = path};
    pare_status st =
        files ? read_input(c, in, m, path, tokens, seed, files) : pare_no_memory(&c->err);
    if (files) st = identity(c, &is->sha, files, path, st);
    pare_files_free(files);
    return st;
}

pare_status length_cert_write(cli *c, const char *model, const char *data, const char *plan_path,
                              size_t rows, const pare_length_plan *plan,
                              const pare_length_cert *cert)
{
    const char *const path = cli_suffixed(c, plan_path, ".cert.json");
    file f[FILES] = {{0}};
    pare_model *m = NULL;
    cJSON *json = NULL;
    length_input in;
    pare_status st = path ? read_model(c, &f[MODEL], &m, model) : c->err.code;
    if (!st) st = read_plan(c, &f[PLAN], &json, plan_path);
    if (!st && pare_length_may_exceed(m)) m->context = 0;
    if (!st && data) st = read_data(c, &f[DATA], &in, m, data, 0, 0);
    pare_model_free(m);
    cJSON_Delete(json);
    for (size_t i = 0; i < FILES && !st; i++)
        if (f[i].path && !(f[i].path = pare_path_relative(c->arena, path, f[i].path)))
            st = pare_no_memory(&c->err);
    if (st) return st;
    cJSON *const o = cJSON_CreateObject();
    char *text = NULL;
    size_t bytes = 0;
    st = fill(o, c, f, rows, plan, cert) ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = pare_json_print(&text, &bytes, c->arena, o, 2, &c->err);
    cJSON_Delete(o);
    pare_out *out = NULL;
    if (!st) st = pare_out_open(&out, path, c->force, &c->err);
    if (!st) st = pare_out_write(out, text, bytes, &c->err);
    if (!st) st = pare_out_write(out, "\n", 1, &c->err);
    if (!st) return pare_out_commit(out, &c->err);
    pare_out_abort(out);
    return st;
}

/* ---- proving it again ------------------------------------------------------------------------ */

typedef struct claim {
    file f[FILES];
    uint64_t seed;
    size_t rows, tokens, length;
    const char *mode, *norm, *domain;
    size_t calls, rounds, bad_rows, fallback_calls;
    double lmax, apriori, proven, measured, tolerance;
} claim;

bool length_cert_is(const cJSON *json)
{
    return pare_json_has(json, "pare_length");
}

static pare_status read_file(cli *c, file *out, const char *cert, const cJSON *json,
                             const char *key, const char *instead)
{
    const cJSON *o;
    const char *relative;
    pare_status st = pare_json_object(&o, json, key, &c->err);
    if (!st) st = pare_json_string(&relative, o, "path", &c->err);
    if (!st) st = pare_json_string(&out->sha, o, "sha256", &c->err);
    if (!st && strcmp(key, file_keys[MODEL]) == 0)
        st = pare_json_string(&out->architecture, o, "architecture", &c->err);
    if (st) return st;
    out->path = instead ? instead : pare_path_beside(c->arena, cert, relative);
    return out->path ? PARE_OK : pare_no_memory(&c->err);
}

static pare_status read_files(cli *c, claim *k, const char *path, const cJSON *json,
                              const length_verify *where)
{
    const char *const instead[FILES] = {where->model, where->plan, where->data};
    pare_status st = PARE_OK;
    for (size_t i = 0; i < FILES && !st; i++)
        if (i != DATA || pare_json_has(json, file_keys[i]))
            st = read_file(c, &k->f[i], path, json, file_keys[i], instead[i]);
    return st;
}

/* Every key of `theirs`, down to the last, is one of `ours`. */
static pare_status keys_among(const cJSON *theirs, const cJSON *ours, pare_err *err)
{
    const cJSON *at = NULL;
    pare_status st = PARE_OK;
    cJSON_ArrayForEach(at, theirs)
    {
        const cJSON *const own = cJSON_GetObjectItemCaseSensitive(ours, at->string);
        if (st) break;
        st = own ? keys_among(at, own, err)
                 : pare_fail(err, PARE_ERR_INPUT, "unknown key \"%.80s\"",
                             at->string ? at->string : "");
    }
    return st;
}

/* No claim hides behind a key that nobody looks at: an empty certificate has all there are. */
static pare_status known_keys(cli *c, const claim *k, const cJSON *json)
{
    const pare_length_plan plan = {0};
    cJSON *const o = cJSON_CreateObject();
    const pare_status st = fill(o, c, k->f, 0, &plan, &(pare_length_cert){0})
                               ? keys_among(json, o, &c->err)
                               : pare_no_memory(&c->err);
    cJSON_Delete(o);
    return st;
}

static pare_status read_claim(cli *c, claim *k, const char *path, const cJSON *json,
                              const length_verify *where)
{
    const cJSON *run;
    size_t schema;
    pare_status st = pare_json_size(&schema, json, "pare_length", &c->err);
    if (!st && schema != SCHEMA)
        st = pare_fail(&c->err, PARE_ERR_INPUT,
                       "pare_length: schema %zu is not read, only %d; make the certificate again "
                       "with the same command",
                       schema, SCHEMA);
    *k = (claim){0};
    if (st || (st = read_files(c, k, path, json, where)) || (st = known_keys(c, k, json)) ||
        (st = pare_json_u64(&k->seed, json, "seed", &c->err)) ||
        (st = pare_json_size(&k->rows, json, "rows_of_a_head", &c->err)) ||
        (st = pare_json_size(&k->tokens, json, "tokens", &c->err)) ||
        (st = pare_json_size(&k->length, json, "length", &c->err)) ||
        (st = pare_json_string(&k->mode, json, "mode", &c->err)) ||
        (st = pare_json_string(&k->norm, json, "norm", &c->err)) ||
        (st = pare_json_string(&k->domain, json, "domain", &c->err)) ||
        (st = pare_json_object(&run, json, "run", &c->err)) ||
        (st = pare_json_size(&k->calls, run, "calls", &c->err)) ||
        (st = pare_json_size(&k->rounds, run, "rounds", &c->err)) ||
        (st = pare_json_size(&k->bad_rows, run, "bad_rows", &c->err)) ||
        (st = pare_json_size(&k->fallback_calls, run, "fallback_calls", &c->err)) ||
        (st = pare_json_bound(&k->lmax, run, "lmax", &c->err)) ||
        (st = pare_json_bound(&k->apriori, json, "apriori", &c->err)) ||
        (st = pare_json_bound(&k->proven, json, "proven", &c->err)))
        return st;
    st = pare_json_bound(&k->measured, json, "measured", &c->err);
    return st ? st : pare_json_number(&k->tolerance, json, "tolerance", &c->err);
}

/* `st`: whether it could be read. */
static pare_status same_file(cli *c, pare_status st, const file *claimed, const file *is)
{
    if (is->sha && claimed->sha && strcmp(claimed->sha, is->sha) != 0)
        return pare_fail(&c->err, PARE_ERR_VERIFY,
                         "%s: sha256 is %.12s..., the certificate says %.12s...", is->path, is->sha,
                         claimed->sha);
    if (st) return st;
    if (is->architecture && strcmp(claimed->architecture, is->architecture) != 0)
        return pare_fail(&c->err, PARE_ERR_VERIFY,
                         "%s: another architecture than the certificate says: sha256 %.12s..., not "
                         "%.12s...",
                         is->path, is->architecture, claimed->architecture);
    return PARE_OK;
}

static pare_status not_true(cli *c, const char *what, double says, double is)
{
    return pare_fail(&c->err, PARE_ERR_VERIFY, "%s: the certificate says %.6g, it is %.6g", what,
                     says, is);
}

static pare_status not_the_word(cli *c, const char *what, const char *says, const char *is)
{
    if (strcmp(says, is) == 0) return PARE_OK;
    return pare_fail(&c->err, PARE_ERR_VERIFY, "%s: the certificate says \"%s\", it is \"%s\"",
                     what, says, is);
}

/* What it says it is about is what the files say. */
static pare_status compare_plan(cli *c, const claim *k, const pare_length_plan *p)
{
    if (k->tokens != p->tokens) return not_true(c, "tokens", (double)k->tokens, (double)p->tokens);
    if (k->length != p->caps.max_len)
        return not_true(c, "length", (double)k->length, p->caps.max_len);
    pare_status st = not_the_word(c, "mode", k->mode, pare_length_mode_name(p->opts.mode));
    if (!st) st = not_the_word(c, "norm", k->norm, norm);
    return st ? st : not_the_word(c, "domain", k->domain, length_cert_domain(k->f[DATA].path));
}

/* No more trouble than it says. */
static pare_status compare_run(cli *c, const claim *k, const pare_length_cert *now)
{
    const struct {
        const char *what;
        double says, is;
    } at_most[] = {{"rounds", (double)k->rounds, (double)now->rounds},
                   {"bad rows", (double)k->bad_rows, (double)now->bad_rows},
                   {"fall-back calls", (double)k->fallback_calls, (double)now->fallback_calls},
                   {"lmax", k->lmax * OTHER_RUN, now->lmax}};
    for (size_t i = 0; i < sizeof at_most / sizeof *at_most; i++)
        if (!(at_most[i].is <= at_most[i].says))
            return not_true(c, at_most[i].what, at_most[i].says, at_most[i].is);
    return PARE_OK;
}

/* What may be measured here where another CPU has measured so much. Its vectors have other lengths
 * and its products other orders: every rounding may be another one, but they are as many and as
 * large, so that the largest of all rows is much the same (kernels of four CPUs differed by 2.2 at
 * most). A row may be right to the last bit there and be rounded here: half a unit of the largest
 * entry. */
static double as_elsewhere(double measured, const pare_length_cert *now, pare_dtype t)
{
    const double half_unit = t == PARE_F64 ? 0x1p-53 : 0x1p-24;
    return (1 + TOLERANCE) * measured + half_unit * now->largest;
}

static pare_status compare(cli *c, const claim *k, const pare_length_cert *now, pare_dtype t)
{
    const pare_status st = compare_run(c, k, now);
    if (st) return st;
    if (k->tolerance != TOLERANCE) return not_true(c, "tolerance", k->tolerance, TOLERANCE);
    if (!now->sound) return not_true(c, "measured is not within proven", k->proven, now->measured);
    if (k->calls != now->calls) return not_true(c, "calls", (double)k->calls, (double)now->calls);
    if (!(now->apriori <= k->apriori)) return not_true(c, "a priori", k->apriori, now->apriori);
    if (!(now->proven <= k->proven)) return not_true(c, "proven", k->proven, now->proven);
    if (!(k->measured <= k->proven && now->measured <= as_elsewhere(k->measured, now, t)))
        return not_true(c, "measured", k->measured, now->measured);
    return PARE_OK;
}

/* The same model on the same input by another engine. */
static pare_status other_engine(cli *c, const pare_length_plan *plan, const pare_model *m,
                                const pare_input *in, const char *backend, double *off)
{
    pare_length_plan other;
    pare_oracle orc;
    pare_length_cert cert;
    pare_oracle_caps caps = {.max_len = plan->caps.max_len, .dtype = plan->caps.dtype};
    pare_length_opts o = {0};
    if (!backend) {
        if (caps.max_len < 2) caps.max_len = 2; /* a row for the reference */
        caps.dtype = PARE_F64;
        o.mode = PARE_LENGTH_ZEROREF;
    } else if (engine_is_strict(backend)) {
        o.mode = PARE_LENGTH_STRICT;
    }
    pare_status st = engine_open(c, &orc, backend ? backend : "cpu", m, &caps, PARE_PIPE_TIMEOUT);
    if (st) return st;
    orc.ops->caps(orc.self, &caps);
    st = pare_length_plan_make(&other, c->arena, plan->heads, plan->nheads, plan->tokens,
                               &plan->pattern, plan->graph, &caps, &o, &c->err);
    if (!st) st = pare_length_certify(&cert, &other, &orc, m, in, 16, &c->exec, &c->err);
    pare_oracle_free(&orc);
    if (!st && !cert.sound) st = not_true(c, "another engine", cert.proven, cert.measured);
    *off = st ? INFINITY : cert.measured;
    return st;
}

/* Files as they were, each read once: the model, the plan, and what it was run on. */
static pare_status read_all(cli *c, const claim *k, pare_model **m, cJSON **json,
                            pare_length_plan *plan, length_input *in)
{
    file is;
    size_t tokens = 0;
    pare_status st = same_file(c, read_model(c, &is, m, k->f[MODEL].path), &k->f[MODEL], &is);
    if (!st) st = same_file(c, read_plan(c, &is, json, k->f[PLAN].path), &k->f[PLAN], &is);
    if (!st) st = pare_json_size(&tokens, *json, "tokens", &c->err);
    if (!st && pare_length_may_exceed(*m)) (*m)->context = 0;
    if (!st)
        st = same_file(c, read_data(c, &is, in, *m, k->f[DATA].path, tokens, k->seed), &k->f[DATA],
                       &is);
    if (!st && in->in.tokens != tokens)
        st = pare_fail(&c->err, PARE_ERR_VERIFY, "%s: is for %zu tokens, the input has %zu",
                       k->f[PLAN].path, tokens, in->in.tokens);
    return st ? st : pare_length_plan_parse(plan, c->arena, *json, in->graph, &c->err);
}

static pare_status prove(cli *c, const claim *k, const char *backend, pare_length_cert *now,
                         double *other)
{
    pare_model *m = NULL;
    cJSON *json = NULL;
    pare_length_plan plan;
    length_input in;
    pare_oracle orc = {0};
    pare_status st = read_all(c, k, &m, &json, &plan, &in);
    if (!st) st = length_oracle(&orc, &plan, &c->exec, &c->err);
    if (!st) st = cli_name(c, pare_length_plan_fits(&plan, c->arena, m, &c->err), k->f[PLAN].path);
    if (!st) st = compare_plan(c, k, &plan);
    if (!st) st = pare_length_certify(now, &plan, &orc, m, &in.in, k->rows, &c->exec, &c->err);
    if (!st) st = compare(c, k, now, plan.caps.dtype);
    if (!st) st = other_engine(c, &plan, m, &in.in, backend, other);
    pare_oracle_free(&orc);
    cJSON_Delete(json);
    pare_model_free(m);
    return st;
}

pare_status length_cert_holds(cli *c, const char *path, const cJSON *json)
{
    const length_verify as_it_says = {0};
    claim k;
    pare_length_cert now;
    double other;
    const pare_status st = read_claim(c, &k, path, json, &as_it_says);
    return st ? st : prove(c, &k, NULL, &now, &other);
}

pare_status length_cert_verify(cli *c, const char *path, const cJSON *json,
                               const length_verify *where)
{
    claim k;
    pare_length_cert now;
    double other = INFINITY;
    pare_status st = where->backend ? engine_check(c, where->backend) : PARE_OK;
    if (!st) st = read_claim(c, &k, path, json, where);
    if (!st) st = prove(c, &k, where->backend, &now, &other);
    if (st) return st;
    if (c->json) {
        cJSON *const root = out_json_begin(c);
        return out_json(c, root,
                        root && pare_json_add_bool(root, "holds", true) &&
                            pare_json_add_number(root, "proven", now.proven) &&
                            pare_json_add_number(root, "measured", now.measured) &&
                            pare_json_add_number(root, "other_engine", other));
    }
    char proven[40], apriori[40];
    pare_ub_format(proven, pare_ub_exact(k.proven), 4);
    pare_ub_format(apriori, pare_ub_exact(k.apriori), 4);
    out_verdict("verdict", true, "HOLDS",
                "  no output of a head's attention is off by more than %s", proven);
    out_row("", "on %s", k.domain);
    out_row("certificate", "%s (length)", path);
    for (size_t i = 0; i < FILES; i++)
        if (k.f[i].path)
            out_verdict(file_keys[i], true, "holds", "   %s: sha256 %.12s...", k.f[i].path,
                        k.f[i].sha);
    out_verdict("calls", true, "holds", "   %zu", k.calls);
    out_verdict("a priori", true, "holds", "   %s", apriori);
    out_verdict("proven", true, "holds", "   %s", proven);
    out_verdict("measured", true, "holds", "   %.4g", k.measured);
    out_verdict("other engine", true, "holds", "   %s: largest difference %.4g",
                where->backend ? where->backend : "the f64 engine of pare", other);
    return PARE_OK;
}
