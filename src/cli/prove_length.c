/* Certificates of length runs: hashes of model and plan, the bounds, and what was measured. Proven
 * again by running the same plan on the same input and, on another engine (f64, with a reference in
 * the place of partial results), the model once more. */
#include "prove_length.h"
#include "out.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA 1

pare_status length_oracle(pare_oracle *out, const pare_length_plan *plan, const pare_exec *exec,
                          pare_err *err)
{
    const pare_oracle_caps *const k = &plan->caps;
    if (k->features & PARE_ORC_STRICT && !(k->features & PARE_ORC_QKV))
        return pare_oracle_paper(out, k->dtype, k->max_len, k->layers ? k->layers : 1,
                                 k->heads ? k->heads : 1, k->features, exec, err);
    return pare_oracle_cpu(out, k->dtype, k->max_len, exec, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool add_file(cJSON *to, const char *key, const char *path, const char *sha)
{
    cJSON *const o = pare_json_add_object(to, key);
    return o && pare_json_add_string(o, "path", path) && pare_json_add_string(o, "sha256", sha);
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

static bool fill(cJSON *o, cli *c, const char *model, const char *plan, const char *sha[2],
                 size_t rows, const pare_length_plan *p, const pare_length_cert *k)
{
    return o && pare_json_add_size(o, "pare_length", SCHEMA) &&
           pare_json_add_u64(o, "seed", c->seed) && add_file(o, "input", model, sha[0]) &&
           add_file(o, "plan", plan, sha[1]) && pare_json_add_size(o, "tokens", p->tokens) &&
           pare_json_add_string(o, "mode", pare_length_mode_name(p->opts.mode)) &&
           pare_json_add_size(o, "length", p->caps.max_len) &&
           pare_json_add_string(o, "norm",
                                "largest absolute difference of an output entry of a "
                                "head's attention from real arithmetic") &&
           pare_json_add_string(o, "domain", "one seeded random input; rows evenly of each head") &&
           pare_json_add_size(o, "rows_of_a_head", rows) && add_run(o, k) &&
           pare_json_add_number(o, "apriori", pare_ub_written(pare_ub_of(k->apriori))) &&
           pare_json_add_number(o, "proven", pare_ub_written(pare_ub_of(k->proven))) &&
           pare_json_add_number(o, "measured", k->measured);
}

pare_status length_cert_write(cli *c, const char *model, const char *plan_path, size_t rows,
                              const pare_length_plan *plan, const pare_length_cert *cert)
{
    char of_model[PARE_SHA256_HEX], of_plan[PARE_SHA256_HEX];
    const char *const path = cli_suffixed(c, plan_path, ".cert.json");
    pare_status st = path ? pare_sha256_file(of_model, model, &c->err) : c->err.code;
    if (!st) st = pare_sha256_file(of_plan, plan_path, &c->err);
    if (st) return st;
    const char *sha[2] = {of_model, of_plan};
    const char *const a = pare_path_relative(c->arena, path, model);
    const char *const b = pare_path_relative(c->arena, path, plan_path);
    cJSON *const o = cJSON_CreateObject();
    char *text = NULL;
    size_t bytes = 0;
    st = a && b && fill(o, c, a, b, sha, rows, plan, cert) ? PARE_OK : pare_no_memory(&c->err);
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
    const char *model, *plan;
    const char *sha[2];
    uint64_t seed;
    size_t rows, calls;
    double apriori, proven, measured;
} claim;

bool length_cert_is(const cJSON *json)
{
    return pare_json_has(json, "pare_length");
}

static pare_status read_file(cli *c, const char *cert, const cJSON *json, const char *key,
                             const char **path, const char **sha)
{
    const cJSON *o;
    const char *relative;
    pare_status st = pare_json_object(&o, json, key, &c->err);
    if (!st) st = pare_json_string(&relative, o, "path", &c->err);
    if (!st) st = pare_json_string(sha, o, "sha256", &c->err);
    if (st) return st;
    *path = pare_path_beside(c->arena, cert, relative);
    return *path ? PARE_OK : pare_no_memory(&c->err);
}

static pare_status read_claim(cli *c, claim *k, const char *path, const cJSON *json)
{
    const cJSON *run;
    size_t schema;
    pare_status st = pare_json_size(&schema, json, "pare_length", &c->err);
    if (!st && schema != SCHEMA)
        st = pare_fail(&c->err, PARE_ERR_INPUT, "%s: of version %zu, not %d", path, schema, SCHEMA);
    if (st || (st = read_file(c, path, json, "input", &k->model, &k->sha[0])) ||
        (st = read_file(c, path, json, "plan", &k->plan, &k->sha[1])) ||
        (st = pare_json_u64(&k->seed, json, "seed", &c->err)) ||
        (st = pare_json_size(&k->rows, json, "rows_of_a_head", &c->err)) ||
        (st = pare_json_object(&run, json, "run", &c->err)) ||
        (st = pare_json_size(&k->calls, run, "calls", &c->err)) ||
        (st = pare_json_bound(&k->apriori, json, "apriori", &c->err)) ||
        (st = pare_json_bound(&k->proven, json, "proven", &c->err)))
        return st;
    return pare_json_bound(&k->measured, json, "measured", &c->err);
}

static pare_status check_hash(cli *c, const char *path, const char *sha)
{
    char now[PARE_SHA256_HEX];
    const pare_status st = pare_sha256_file(now, path, &c->err);
    if (st || strcmp(now, sha) == 0) return st;
    return pare_fail(&c->err, PARE_ERR_VERIFY,
                     "%s: sha256 is %.12s..., the certificate says %.12s...", path, now, sha);
}

static pare_status not_true(cli *c, const char *what, double says, double is)
{
    return pare_fail(&c->err, PARE_ERR_VERIFY, "%s: the certificate says %.6g, it is %.6g", what,
                     says, is);
}

static pare_status compare(cli *c, const claim *k, const pare_length_cert *now)
{
    if (!now->sound) return not_true(c, "measured is not within proven", k->proven, now->measured);
    if (k->calls != now->calls) return not_true(c, "calls", (double)k->calls, (double)now->calls);
    if (!(now->apriori <= k->apriori * 1.001))
        return not_true(c, "a priori", k->apriori, now->apriori);
    if (!(now->proven <= k->proven * 1.001)) return not_true(c, "proven", k->proven, now->proven);
    /* Bits differ between CPUs; both are within what is proven. */
    if (!(k->measured <= k->proven && k->measured >= 0))
        return not_true(c, "measured", k->measured, now->measured);
    if (!(now->measured <= k->measured + k->proven))
        return not_true(c, "measured", k->measured, now->measured);
    return PARE_OK;
}

/* The same model on the same input by another engine: f64, plain softmax calls. */
static pare_status other_engine(cli *c, const pare_length_plan *plan, const pare_model *m,
                                const pare_input *in, double *off)
{
    pare_length_plan other;
    pare_oracle orc;
    pare_length_cert cert;
    pare_oracle_caps caps;
    pare_status st = pare_oracle_cpu(
        &orc, PARE_F64, plan->caps.max_len < 2 ? 2 : plan->caps.max_len, &c->exec, &c->err);
    if (st) return st;
    orc.ops->caps(orc.self, &caps);
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF};
    st = pare_length_plan_make(&other, c->arena, plan->heads, plan->nheads, plan->tokens,
                               &plan->pattern, NULL, &caps, &o, &c->err);
    if (!st) st = pare_length_certify(&cert, &other, &orc, m, in, 16, &c->exec, &c->err);
    pare_oracle_free(&orc);
    if (!st && !cert.sound) st = not_true(c, "another engine", cert.proven, cert.measured);
    *off = st ? INFINITY : cert.measured;
    return st;
}

static pare_status prove(cli *c, const claim *k, pare_length_cert *now, double *other)
{
    pare_model *m = NULL;
    cJSON *json = NULL;
    pare_length_plan plan;
    pare_inputs in;
    pare_oracle orc = {0};
    pare_status st = check_hash(c, k->model, k->sha[0]);
    if (!st) st = check_hash(c, k->plan, k->sha[1]);
    if (!st) st = cli_load(c, &m, k->model);
    if (!st) st = pare_json_read(&json, k->plan, &c->err);
    if (!st) st = pare_length_plan_parse(&plan, c->arena, json, NULL, &c->err);
    if (!st) st = pare_inputs_random(&in, c->arena, m, 1, plan.tokens, k->seed, &c->err);
    if (!st) st = length_oracle(&orc, &plan, &c->exec, &c->err);
    if (!st) st = pare_length_certify(now, &plan, &orc, m, &in.in[0], k->rows, &c->exec, &c->err);
    if (!st) st = compare(c, k, now);
    if (!st) st = other_engine(c, &plan, m, &in.in[0], other);
    pare_oracle_free(&orc);
    cJSON_Delete(json);
    pare_model_free(m);
    return st;
}

pare_status length_cert_verify(cli *c, const char *path, const cJSON *json)
{
    claim k;
    pare_length_cert now;
    double other = INFINITY;
    pare_status st = read_claim(c, &k, path, json);
    if (!st) st = prove(c, &k, &now, &other);
    if (st) return st;
    if (c->json) {
        cJSON *const root = out_json_begin(c);
        return out_json(c, root,
                        root && pare_json_add_bool(root, "holds", true) &&
                            pare_json_add_number(root, "proven", now.proven) &&
                            pare_json_add_number(root, "measured", now.measured) &&
                            pare_json_add_number(root, "other_engine", other));
    }
    out_row("certificate", "%s (length)", path);
    out_verdict("input", true, "holds", "   %s: sha256 %.12s...", k.model, k.sha[0]);
    out_verdict("plan", true, "holds", "   %s: sha256 %.12s..., %zu calls", k.plan, k.sha[1],
                k.calls);
    out_verdict("a priori", true, "holds", "   %.4g", k.apriori);
    out_verdict("proven", true, "holds", "   %.4g", k.proven);
    out_verdict("measured", true, "holds", "   %.4g", k.measured);
    out_verdict("elsewhere", true, "holds", "   %.4g in f64, with a reference", other);
    return PARE_OK;
}
