/* Tests src/length/length_cert_file.c and verify.c: a certificate that a library user writes holds,
 * and none that was changed does. */
#include <pare_test.h>
#include <pare/cut.h>

typedef struct scene {
    char dir[200], model[300], plan[300], cert[300];
    pare_arena *a;
    pare_err err;
} scene;

/* A plan of 24 tokens on an engine of 8, run, certified and written. */
static void open_scene(scene *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_length_head *heads;
    size_t count;
    pare_length_input in;
    pare_length_plan plan;
    pare_length_cert cert;
    pare_oracle orc;
    pare_oracle_caps caps;
    o.dim = 8;
    o.heads = 2;
    *s = (scene){.a = pare_arena_new()};
    assert_non_null(s->a);
    test_mkdir(s->dir);
    test_path(s->model, s->dir, "m.st");
    test_path(s->plan, s->dir, "p.json");
    test_path(s->cert, s->dir, "p.json.cert.json");
    assert_ok(pare_random_model(&m, &o, &s->err), &s->err);
    assert_ok(pare_model_save(m, s->model, false, NULL, &s->err), &s->err);
    assert_ok(pare_oracle_cpu(&orc, PARE_F32, 8, NULL, &s->err), &s->err);
    orc.ops->caps(orc.self, &caps);
    pare_oracle_free(&orc);
    assert_ok(pare_length_input_read(&in, s->a, m, NULL, 24, 5, &s->err), &s->err);
    assert_ok(pare_length_heads(&heads, &count, s->a, m, &s->err), &s->err);
    assert_ok(pare_length_plan_make(
                  &plan, s->a,
                  &(pare_length_shape){
                      .heads = heads, .count = count, .tokens = 24, .pattern = &m->pattern},
                  &caps, &(pare_length_opts)PARE_LENGTH_OPTS_DEFAULT, &s->err),
              &s->err);
    assert_ok(pare_length_plan_write(s->plan, &plan, false, &s->err), &s->err);
    assert_ok(pare_length_oracle(&orc, &plan, NULL, &s->err), &s->err);
    assert_ok(pare_length_certify(&cert,
                                  &(pare_length_pass){.oracle = &orc, .model = m, .in = &in.in},
                                  &plan, 16, NULL, &s->err),
              &s->err);
    pare_oracle_free(&orc);
    assert_ok(pare_length_cert_write(&cert, &plan,
                                     &(pare_length_cert_opts){
                                         .model = s->model, .plan = s->plan, .rows = 16, .seed = 5},
                                     &s->err),
              &s->err);
    pare_model_free(m);
}

static void close_scene(scene *s)
{
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

/* Writes the certificate with the first `from` in it become `to`, and verifies it. */
static pare_status verify_changed(scene *s, const char *from, const char *to)
{
    size_t bytes;
    char *const text = (char *)test_read_file(s->cert, &bytes), *const at = strstr(text, from);
    if (!at) print_error("%s is not in %s", from, text);
    assert_non_null(at);
    char *const new = pare_sprintf(s->a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    test_write_file(s->cert, new, strlen(new));
    const pare_status st = pare_verify_file(s->cert, NULL, &s->err);
    test_write_file(s->cert, text, bytes);
    free(text);
    return st;
}

static void a_certificate_holds_by_itself_and_on_another_engine(void **state)
{
    (void)state;
    scene s;
    pare_verified v;
    open_scene(&s);
    assert_ok(pare_verify_file_report(&v, s.a, s.plan, NULL, &s.err), &s.err);
    assert_true(v.is_length && strcmp(v.path, s.cert) == 0);
    assert_le(v.length.again.proven, v.length.claims.proven);
    assert_le(v.length.other_engine, 1e-12); /* in f64 */
    assert_ok(pare_verify_file(s.cert,
                               &(pare_verify_file_opts){.engine = &(pare_engine){.name = "paper"}},
                               &s.err),
              &s.err);
    assert_status(
        pare_verify_file(s.cert, &(pare_verify_file_opts){.engine = &(pare_engine){.name = "gpu"}},
                         &s.err),
        PARE_ERR_USAGE, &s.err);
    assert_contains(s.err.msg, "'gpu' is none of cpu");
    close_scene(&s);
}

static void no_change_survives(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    assert_int_equal(verify_changed(&s, "\"proven\": ", "\"proven\": 1e-9, \"x\": "),
                     PARE_ERR_INPUT); /* an unknown key */
    assert_contains(s.err.msg, "unknown key \"x\"");
    assert_int_equal(verify_changed(&s, "\"tokens\": 24", "\"tokens\": 25"), PARE_ERR_VERIFY);
    assert_int_equal(verify_changed(&s, "\"tolerance\": 3", "\"tolerance\": 4"), PARE_ERR_VERIFY);
    assert_int_equal(verify_changed(&s, "\"calls\": ", "\"calls\": 1"), PARE_ERR_VERIFY);
    assert_int_equal(verify_changed(&s, "real arithmetic", "whole arithmetic"), PARE_ERR_VERIFY);
    assert_int_equal(verify_changed(&s, "\"pare_length\": 2", "\"pare_length\": 1"),
                     PARE_ERR_INPUT);
    assert_int_equal(verify_changed(&s, "\"seed\"", "\"seed\""), PARE_OK);
    test_write_file(s.plan, "{}", 2);
    assert_status(pare_verify_file(s.cert, NULL, &s.err), PARE_ERR_VERIFY, &s.err);
    assert_contains(s.err.msg, "sha256");
    close_scene(&s);
}

static void a_plan_says_which_engine_it_is_for(void **state)
{
    (void)state;
    scene s;
    pare_length_plan_file file;
    open_scene(&s);
    assert_ok(pare_length_plan_read(&file, s.a, s.plan, &s.err), &s.err);
    assert_true(file.engine.max_len == 8 && file.engine.dtype == PARE_F32 &&
                file.mode == PARE_LENGTH_NATIVE && file.tokens == 24);
    assert_status(pare_length_plan_read(&file, s.a, s.cert, &s.err), PARE_ERR_INPUT, &s.err);
    assert_contains(s.err.msg, "is not a plan of pare length");
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_holds_by_itself_and_on_another_engine),
        cmocka_unit_test(no_change_survives),
        cmocka_unit_test(a_plan_says_which_engine_it_is_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
