/* unpack_certs.h - two certificates in a folder of their own, to be unpacked: one of a cut of a graph
 * model, one of a length run. */
#ifndef UNPACK_CERTS_H
#define UNPACK_CERTS_H
#include <pare_test.h>

#include <pare/cut.h>
#include <pare/fold.h>
#include <pare/length.h>
#include <pare/plan.h>

typedef struct unpack_certs {
    char dir[200], cut[320], length[320], to[300];
    pare_err err;
} unpack_certs;

static inline void make_cut(unpack_certs *s, pare_arena *a)
{
    char in[300], out[300];
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL, *g = NULL;
    pare_inputs set;
    pare_fold_report report;
    pare_cert cert;
    o.kind = PARE_RANDOM_GRAPH;
    o.dim = 4, o.heads = 1, o.layers = 1, o.ffn = 4;
    assert_ok(pare_random_model(&m, &o, &s->err), &s->err);
    m->pattern.self_loops = true;
    m->pattern.expander_degree = 2;
    assert_ok(pare_model_save(m, test_path(in, s->dir, "in.st"), false, NULL, &s->err), &s->err);
    assert_ok(pare_inputs_random(&set, a, m, 2, 4, 5, &s->err), &s->err);
    assert_ok(pare_fold(&g, &report, m, &s->err), &s->err);
    const pare_publish_opts p = {.in_path = in,
                                 .out_path = test_path(out, s->dir, "out.st"),
                                 .max_error = INFINITY,
                                 .seed = 5,
                                 .tokens = 4,
                                 .set = &set,
                                 .prover = &pare_fold_prover};
    assert_ok(pare_publish(&cert, a, m, &g, &p, &s->err), &s->err);
    snprintf(s->cut, sizeof s->cut, "%s.cert.json", out);
    pare_model_free(g);
    pare_model_free(m);
}

static inline void make_length(unpack_certs *s, pare_arena *a)
{
    char model[300], plan_path[300];
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_length_head *heads;
    size_t count;
    pare_length_input in;
    pare_length_plan plan;
    pare_length_cert cert;
    pare_oracle orc;
    pare_oracle_caps caps;
    o.dim = 4, o.heads = 2, o.layers = 1, o.ffn = 4, o.vocab = 5;
    assert_ok(pare_random_model(&m, &o, &s->err), &s->err);
    assert_ok(pare_model_save(m, test_path(model, s->dir, "m.st"), false, NULL, &s->err), &s->err);
    assert_ok(pare_oracle_cpu(&orc, PARE_F32, 4, NULL, &s->err), &s->err);
    orc.ops->caps(orc.self, &caps);
    pare_oracle_free(&orc);
    assert_ok(pare_length_input_read(&in, a, m, NULL, 9, 5, &s->err), &s->err);
    assert_ok(pare_length_heads(&heads, &count, a, m, &s->err), &s->err);
    const pare_length_shape shape = {
        .heads = heads, .count = count, .tokens = 9, .pattern = &m->pattern};
    const pare_length_opts plain = PARE_LENGTH_OPTS_DEFAULT;
    assert_ok(pare_length_plan_make(&plan, a, &shape, &caps, &plain, &s->err), &s->err);
    test_path(plan_path, s->dir, "p.json");
    assert_ok(pare_length_plan_write(plan_path, &plan, false, &s->err), &s->err);
    assert_ok(pare_length_oracle(&orc, &plan, NULL, &s->err), &s->err);
    const pare_length_pass pass = {.oracle = &orc, .model = m, .in = &in.in, .n = 1};
    assert_ok(pare_length_certify(&cert, &pass, &plan, 4, NULL, &s->err), &s->err);
    pare_oracle_free(&orc);
    const pare_length_cert_opts w = {.model = model, .plan = plan_path, .rows = 4, .seed = 5};
    assert_ok(pare_length_cert_write(&cert, &plan, &w, &s->err), &s->err);
    snprintf(s->length, sizeof s->length, "%s.cert.json", plan_path);
    pare_model_free(m);
}

static inline void unpack_certs_make(unpack_certs *s)
{
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    *s = (unpack_certs){0};
    test_mkdir(s->dir);
    test_path(s->to, s->dir, "to");
    make_cut(s, a);
    make_length(s, a);
    pare_arena_free(a);
}

static inline pare_status unpack_once(unpack_certs *s, const char *cert, bool overwrite)
{
    pare_unpacked u;
    pare_arena *const a = pare_arena_new();
    s->err = (pare_err){0};
    if (!a) return pare_no_memory(&s->err);
    const pare_status st = pare_unpack_file(&u, a, cert, s->to, overwrite, NULL, &s->err);
    pare_arena_free(a);
    return st;
}
#endif
