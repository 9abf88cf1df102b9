/* Tests src/cert/publish.c and src/fold/fold_prover.c: a fold appears with a certificate that
 * verifies, or not at all; and no field of it, no byte of its files, can change unseen. */
#include "../cert/cert_tamper.h"
#include <dirent.h>
#include "cert/prove.h"
#include <pare/fold.h>

typedef struct stage {
    char dir[200], in[300], out[300], cert[320];
    pare_model *m;
    pare_arena *a;
    pare_inputs set;
    pare_publish_opts opts;
    pare_err err;
} stage;

static void open_stage(stage *s, pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    *s = (stage){0};
    o.kind = kind;
    o.dim = 8;
    o.heads = 2;
    o.layers = 1;
    o.ffn = 8;
    o.vocab = 7;
    o.context = 6;
    test_mkdir(s->dir);
    test_path(s->in, s->dir, "in");
    test_path(s->out, s->dir, "out");
    snprintf(s->cert, sizeof s->cert, "%s.cert.json", s->out);
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_model_save(s->m, s->in, false, NULL, &s->err), &s->err);
    s->a = pare_arena_new();
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, 3, 6, 5, &s->err), &s->err);
    s->opts = (pare_publish_opts){.in_path = s->in,
                                  .out_path = s->out,
                                  .max_error = INFINITY,
                                  .seed = 5,
                                  .tokens = 6,
                                  .set = &s->set,
                                  .prover = &pare_fold_prover};
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static pare_status publish(stage *s, pare_cert *cert)
{
    pare_model *g = NULL;
    pare_fold_report r;
    assert_ok(pare_fold(&g, &r, s->m, &s->err), &s->err);
    const pare_status st = pare_publish(cert, s->a, s->m, &g, &s->opts, &s->err);
    pare_model_free(g);
    return st;
}

static pare_status verify(stage *s, const char *cert)
{
    const pare_verify_opts o = {.provers = &pare_fold_prover, .nprovers = 1};
    return pare_cert_verify(cert, &o, &s->err);
}

static size_t files_in(const char *dir)
{
    DIR *const d = opendir(dir);
    size_t n = 0;
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void a_fold_of_every_kind_verifies(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        stage s;
        pare_cert cert;
        open_stage(&s, (pare_random_kind)kind);
        assert_ok(publish(&s, &cert), &s.err);
        assert_true(cert.measured <= cert.proven && cert.proven < 1e-3);
        assert_true(cert.measured > 0); /* f32 weights were rounded */
        assert_ok(verify(&s, s.cert), &s.err);
        assert_int_equal(files_in(s.dir), 3);
        close_stage(&s);
    }
}

static void a_promise_that_cannot_be_kept_leaves_nothing(void **state)
{
    (void)state;
    stage s;
    pare_cert cert;
    open_stage(&s, PARE_RANDOM_GPT);
    s.opts.max_error = 1e-300;
    assert_status(publish(&s, &cert), PARE_ERR_PROMISE, &s.err);
    assert_int_equal(files_in(s.dir), 1);
    close_stage(&s);
}

static void what_exists_is_not_overwritten_unasked(void **state)
{
    (void)state;
    stage s;
    pare_cert cert;
    open_stage(&s, PARE_RANDOM_LLAMA);
    test_write_file(s.cert, "mine", 4);
    assert_status(publish(&s, &cert), PARE_ERR_IO, &s.err);
    assert_int_equal(files_in(s.dir), 2);
    s.opts.overwrite = true;
    assert_ok(publish(&s, &cert), &s.err);
    assert_ok(verify(&s, s.cert), &s.err);
    close_stage(&s);
}

/* A model that is not the fold: the hypothesis fails, the proven bound is still true. */
static void another_model_is_certified_as_what_it_is(void **state)
{
    (void)state;
    stage s;
    pare_cert cert;
    pare_model *g = NULL;
    open_stage(&s, PARE_RANDOM_GPT);
    assert_ok(pare_model_clone(&g, s.m, &s.err), &s.err);
    assert_ok(pare_publish(&cert, s.a, s.m, &g, &s.opts, &s.err), &s.err);
    assert_int_equal(pare_cert_find(&cert, PARE_FOLD_SAME)->holds, PARE_FALSE);
    assert_true(cert.measured == 0);
    assert_true(isinf(pare_cert_apriori(&cert)));
    assert_ok(verify(&s, s.cert), &s.err);
    close_stage(&s);
}

/* A smaller bound, another hash or seed, another hypothesis: still a readable certificate, so the
 * verdict must be "not true" and nothing softer. */
static bool must_be_false(const cJSON *parent, const cJSON *v, tamper how)
{
    static const char *const keys[] = {"proven", "measured", "bound",     "sha256", "inputs_sha256",
                                       "seed",   "holds",    "value",     "limit",  "sentence",
                                       "side",   "norm",     "tolerance", "domain", "architecture"};
    const bool subtle = how == TAMPER_LESS || how == TAMPER_LAST || how == TAMPER_FLIP;
    if (!subtle || !v->string || (how == TAMPER_FLIP && !cJSON_IsBool(v))) return false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(v->string, keys[i]) == 0) return true;
    return tamper_is(parent, "tensors") || tamper_is(parent, "files");
}

/* One setting of the model at a time; false when there is no such setting. */
static bool change_setting(pare_model *m, int which)
{
    pare_attn *const at = &m->blocks[0].attn;
    pare_ffn *const f = &m->blocks[0].ffn;
    switch (which) {
    case 0:
        at->in_norm.eps = nextafter(at->in_norm.eps, 1);
        return true;
    case 1:
        f->in_norm.divisor *= 1 + 1e-12;
        return true;
    case 2:
        m->top.norm.shift += 1e-14;
        return true;
    case 3:
        at->heads[1].scale *= 1 + 1e-15;
        return true;
    case 4: /* the inputs are shorter than the window */
        m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 6};
        return true;
    case 5:
        m->context++;
        return true;
    case 6:
        m->stem.norm = (pare_norm){.kind = PARE_NORM_MEAN};
        return true;
    case 7:
        f->act = f->act == PARE_ACT_GELU ? PARE_ACT_GELU_TANH : PARE_ACT_GELU;
        return true;
    case 8: /* with one key and query in common, heads change places unseen */
        at->heads[1].k = at->heads[0].k;
        return true;
    default:
        return false;
    }
}

/* The same weights under other settings are another function: nothing holds a priori. */
static void no_setting_of_the_output_can_change_unseen(void **state)
{
    (void)state;
    stage s;
    pare_model *folded = NULL;
    pare_fold_report r;
    open_stage(&s, PARE_RANDOM_GPT);
    assert_ok(pare_fold(&folded, &r, s.m, &s.err), &s.err);
    const pare_data_ref data = {.kind = "random", .count = s.set.n, .tokens = 6};
    const pare_cert claimed = {.data = data};
    size_t tried = 0;
    for (int which = -1;; which++) {
        pare_model *g = NULL;
        pare_cert again = {0};
        assert_ok(pare_model_clone(&g, folded, &s.err), &s.err);
        const bool more = which < 0 || change_setting(g, which);
        if (more) {
            assert_ok(
                pare_fold_prover.prove(&again, s.a, &claimed, folded, g, &s.set, NULL, &s.err),
                &s.err);
            const double apriori = pare_cert_apriori(&again);
            if ((apriori == 0) != (which < 0) || (again.proven == 0) != (which < 0) ||
                (pare_cert_find(&again, PARE_FOLD_SAME)->holds == PARE_TRUE) != (which < 0))
                fail_msg("setting %d: a priori %g, proven %g", which, apriori, again.proven);
            tried++;
        }
        pare_model_free(g);
        if (!more) break;
    }
    assert_int_equal(tried, 10);
    pare_model_free(folded);
    close_stage(&s);
}

static void no_field_of_the_certificate_can_change_unseen(void **state)
{
    (void)state;
    stage s;
    pare_cert cert;
    char *text = NULL, bad[330];
    size_t bytes = 0, tried = 0, exactly = 0;
    open_stage(&s, PARE_RANDOM_GPT);
    assert_ok(publish(&s, &cert), &s.err);
    assert_ok(pare_text_read(&text, &bytes, s.a, s.cert, &s.err), &s.err);
    snprintf(bad, sizeof bad, "%s/bad.json", s.dir);
    for (size_t node = 0, more = 1; more; node++) {
        more = 0;
        for (int how = 0; how < TAMPER_KINDS; how++) {
            cJSON *root = NULL, *parent = NULL;
            size_t left = node, n = 0;
            char *out = NULL;
            bool harmless;
            assert_ok(pare_json_parse(&root, text, bytes, &s.err), &s.err);
            cJSON *const v = tamper_find(root, NULL, &parent, &left);
            more |= v != NULL;
            const bool strict = v && must_be_false(parent, v, (tamper)how);
            if (v && tamper_one(parent, v, (tamper)how, &harmless)) {
                assert_ok(pare_json_print(&out, &n, s.a, root, 2, &s.err), &s.err);
                test_write_file(bad, out, n);
                const int code = pare_exit_code(verify(&s, bad));
                if (harmless ? code != 0 : code != 4 && (strict || code != 2))
                    fail_msg("node %zu, change %d: exit %d: %s\n%s", node, how, code, s.err.msg,
                             out);
                tried++;
                exactly += strict && !harmless;
            }
            cJSON_Delete(root);
        }
    }
    assert_true(tried > 300 && exactly > 40);
    close_stage(&s);
}

/* Smaller by 1.1e-3 is a lie; a thousandth of that is noise between machines. */
static void a_bound_smaller_by_a_thousandth_is_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"proven", "measured", "engine.rounding"};
    stage s;
    pare_cert cert;
    char *text = NULL, *out = NULL, bad[330];
    size_t bytes = 0, n = 0;
    open_stage(&s, PARE_RANDOM_GRAPH);
    assert_ok(publish(&s, &cert), &s.err);
    assert_ok(pare_text_read(&text, &bytes, s.a, s.cert, &s.err), &s.err);
    snprintf(bad, sizeof bad, "%s/bad.json", s.dir);
    for (size_t i = 0; i < 3; i++) {
        cJSON *root = NULL;
        assert_ok(pare_json_parse(&root, text, bytes, &s.err), &s.err);
        const cJSON *const headline = cJSON_GetObjectItemCaseSensitive(root, "headline");
        cJSON *v = cJSON_GetObjectItemCaseSensitive(headline, keys[i]);
        for (const cJSON *t = cJSON_GetObjectItemCaseSensitive(root, "theorems")->child; !v && t;
             t = t->next)
            if (tamper_has(t, "kind", keys[i])) v = cJSON_GetObjectItemCaseSensitive(t, "bound");
        assert_non_null(v);
        cJSON_SetNumberValue(v, v->valuedouble * (1 - 1.1e-3));
        assert_ok(pare_json_print(&out, &n, s.a, root, 2, &s.err), &s.err);
        test_write_file(bad, out, n);
        assert_status(verify(&s, bad), PARE_ERR_VERIFY, &s.err);
        assert_contains(s.err.msg, keys[i]);
        cJSON_Delete(root);
    }
    close_stage(&s);
}

static void no_byte_of_the_files_can_change_unseen(void **state)
{
    (void)state;
    stage s;
    pare_cert cert;
    open_stage(&s, PARE_RANDOM_BERT);
    assert_ok(publish(&s, &cert), &s.err);
    const char *const names[] = {s.in, s.out};
    for (size_t f = 0; f < 2; f++) {
        char *text = NULL;
        size_t bytes = 0;
        assert_ok(pare_text_read(&text, &bytes, s.a, names[f], &s.err), &s.err);
        for (size_t i = 0; i < bytes; i += 1 + bytes / 200) {
            text[i] ^= 1;
            test_write_file(names[f], text, bytes);
            assert_status(verify(&s, s.cert), PARE_ERR_VERIFY, &s.err);
            text[i] ^= 1;
        }
        test_write_file(names[f], text, bytes);
        assert_ok(verify(&s, s.cert), &s.err);
        assert_int_equal(unlink(names[f]), 0);
        assert_int_equal(pare_exit_code(verify(&s, s.cert)), 2);
        test_write_file(names[f], text, bytes);
    }
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fold_of_every_kind_verifies),
        cmocka_unit_test(a_promise_that_cannot_be_kept_leaves_nothing),
        cmocka_unit_test(what_exists_is_not_overwritten_unasked),
        cmocka_unit_test(another_model_is_certified_as_what_it_is),
        cmocka_unit_test(no_setting_of_the_output_can_change_unseen),
        cmocka_unit_test(no_field_of_the_certificate_can_change_unseen),
        cmocka_unit_test(a_bound_smaller_by_a_thousandth_is_refused),
        cmocka_unit_test(no_byte_of_the_files_can_change_unseen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
