/* verify.c - prove the certificate of a length run again.
 *
 * The files are compared by their hashes, the plan is run on the same input, and every figure is
 * held against what comes out. Then another engine runs the model on that input once more: a fault
 * of the built-in kernels, which wrote the certificate, would show there. */
#include "attend_plan.h"
#include "length_cert_file.h"

#include <math.h>

/* The same model on the same input by another engine; *off: the largest difference it measured. */
static pare_status run_other_engine(pare_work *w, const pare_length_plan *plan, const pare_model *m,
                                    const pare_input *in, const pare_engine *engine, double *off)
{
    const pare_engine own = {.name = "cpu"};
    pare_length_plan other;
    pare_oracle orc;
    pare_length_cert cert;
    pare_oracle_caps caps = {.max_len = plan->caps.max_len, .dtype = plan->caps.dtype};
    pare_length_opts o = PARE_LENGTH_OPTS_DEFAULT;
    if (!engine) {
        if (caps.max_len < 2) caps.max_len = 2; /* a row for the reference */
        caps.dtype = PARE_F64;
        o.mode = PARE_LENGTH_ZEROREF;
    } else if (pare_engine_is_strict(engine->name)) {
        o.mode = PARE_LENGTH_STRICT;
    }
    pare_status st = pare_engine_open(&orc, engine ? engine : &own, m, &caps, w->exec, w->err);
    if (st) return st;
    orc.ops->caps(orc.self, &caps);
    st = pare_length_plan_make(&other, w->arena,
                               &(pare_length_shape){.heads = plan->heads,
                                                    .count = plan->nheads,
                                                    .tokens = plan->tokens,
                                                    .pattern = &plan->pattern,
                                                    .graph = plan->graph},
                               &caps, &o, w->err);
    if (!st)
        st = pare_length_certify(&cert, &(pare_length_pass){.oracle = &orc, .model = m, .in = in},
                                 &other, 16, w->exec, w->err);
    pare_oracle_free(&orc);
    if (!st && !cert.sound)
        st = length_not_true("another engine", cert.proven, cert.measured, w->err);
    *off = st ? INFINITY : cert.measured;
    return st;
}

pare_status length_read_all(pare_work *w, const pare_length_claims *k, pare_model **m,
                            size_t *context, cJSON **json, pare_length_plan *plan,
                            pare_length_input *in)
{
    const pare_length_file *const f = k->files;
    const char *const plan_path = f[PARE_LENGTH_PLAN].path;
    pare_length_file is;
    size_t tokens = 0;
    pare_status st = length_read_model(w, &is, m, f[PARE_LENGTH_MODEL].path);
    st = length_same_file(&f[PARE_LENGTH_MODEL], &is, st, w->err);
    if (st) return st;
    st = length_read_plan(w, &is, json, plan_path);
    st = length_same_file(&f[PARE_LENGTH_PLAN], &is, st, w->err);
    if (!st) st = pare_json_size(&tokens, *json, "tokens", w->err);
    if (st) return st;
    *context = (*m)->context;
    if (pare_length_may_exceed(*m)) (*m)->context = 0;
    st = length_read_data(w, &is, in, *m, f[PARE_LENGTH_DATA].path, tokens, k->seed);
    st = length_same_file(&f[PARE_LENGTH_DATA], &is, st, w->err);
    if (!st && in->in.tokens != tokens)
        st = pare_fail(w->err, PARE_ERR_VERIFY, "%s: is for %zu tokens, the input has %zu",
                       plan_path, tokens, in->in.tokens);
    return st ? st : pare_length_plan_parse(plan, w->arena, *json, in->graph, w->err);
}

pare_status pare_length_cert_verify(pare_length_verified *out, pare_arena *a, const char *path,
                                    const cJSON *json, const pare_length_verify_opts *o,
                                    const pare_exec *exec, pare_err *err)
{
    pare_work w = {.arena = a, .exec = exec, .err = err};
    pare_length_claims *const k = &out->claims;
    pare_model *m = NULL;
    cJSON *plan_json = NULL;
    pare_length_plan plan;
    pare_length_input in;
    pare_oracle orc = {0};
    size_t context;
    *out = (pare_length_verified){.other_engine = INFINITY};
    pare_status st = o->engine ? pare_engine_check(o->engine->name, err) : PARE_OK;
    if (!st) st = length_read_claims(&w, k, path, json, o);
    if (!st) st = length_read_all(&w, k, &m, &context, &plan_json, &plan, &in);
    if (!st) st = pare_length_oracle(&orc, &plan, exec, err);
    if (!st)
        st = pare_err_path(err, pare_length_plan_fits(&plan, a, m, err),
                           k->files[PARE_LENGTH_PLAN].path);
    if (!st) st = length_compare_plan(k, &plan, err);
    if (!st)
        st = pare_length_certify(&out->again,
                                 &(pare_length_pass){.oracle = &orc, .model = m, .in = &in.in},
                                 &plan, k->rows, exec, err);
    if (!st) st = length_compare_run(k, &out->again, plan.caps.dtype, err);
    if (!st) st = run_other_engine(&w, &plan, m, &in.in, o->engine, &out->other_engine);
    pare_oracle_free(&orc);
    cJSON_Delete(plan_json);
    pare_model_free(m);
    return st;
}
