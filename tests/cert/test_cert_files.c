/* Tests src/cert/file_ref.c and src/cert/measure.c: what a certificate takes from files and runs.
 */
#include "cert_toy.h"
#include <sys/stat.h>

static void tensors_are_hashed_by_their_raw_bytes(void **state)
{
    (void)state;
    static const float bias[] = {1.5f, 1.75f}; /* of toy_model(1.5), by hand */
    char hex[PARE_SHA256_HEX];
    toy t;
    toy_begin(&t);
    pare_model *const m = toy_model(1.5, 2);
    pare_file_ref r;
    assert_int_equal(mkdir(toy_path(&t, "sub"), 0777), 0);
    test_write_file(toy_path(&t, "m.pare"), "abc", 3);
    assert_ok(
        pare_file_ref_make(&r, t.a, toy_path(&t, "sub/c.json"), toy_path(&t, "m.pare"), m, &t.err),
        &t.err);
    assert_string_equal(r.path, "../m.pare");
    assert_string_equal(r.sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(r.ntensors, 2); /* absent weights have no hash */
    assert_string_equal(r.tensors[1].name, "top.out.bias");
    assert_ok(pare_sha256_of(hex, bias, sizeof bias, &t.err), &t.err);
    assert_string_equal(r.tensors[1].sha256, hex);
    assert_string_equal(r.tensors[0].name, "top.out.weight");
    assert_string_not_equal(r.tensors[0].sha256, hex);
    m->vocab = (const uint8_t *)"abc";
    m->vocab_bytes = 3;
    assert_ok(
        pare_file_ref_make(&r, t.a, toy_path(&t, "c.json"), toy_path(&t, "m.pare"), m, &t.err),
        &t.err);
    assert_int_equal(r.ntensors, 3);
    assert_string_equal(r.tensors[2].name, "vocab");
    assert_string_equal(r.tensors[2].sha256, r.sha256);
    pare_model_free(m);
    toy_end(&t);
}

static const char *folder_hash(toy *t, const pare_model *m)
{
    pare_file_ref *const r = pare_alloc(t->a, 1, sizeof *r);
    assert_non_null(r);
    assert_ok(pare_file_ref_make(r, t->a, "c.json", toy_path(t, "m"), m, &t->err), &t->err);
    return r->sha256;
}

static void a_folder_is_hashed_without_what_pare_wrote_there(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_model *const m = toy_model(0, 2);
    char want[PARE_SHA256_HEX], one[PARE_SHA256_HEX];
    assert_int_equal(mkdir(toy_path(&t, "m"), 0777), 0);
    assert_int_equal(mkdir(toy_path(&t, "m/sub"), 0777), 0);
    /* Made in an order that is sorted neither forwards nor backwards. */
    test_write_file(toy_path(&t, "m/b.safetensors"), "abc", 3);
    test_write_file(toy_path(&t, "m/d.txt"), "abc", 3);
    test_write_file(toy_path(&t, "m/a.json"), "", 0);
    test_write_file(toy_path(&t, "m/c.txt"), "abc", 3);
    assert_ok(pare_sha256_of(one, "abc", 3, &t.err), &t.err);
    assert_ok(pare_sha256_of(want, "", 0, &t.err), &t.err);
    const char *const lines = pare_sprintf(
        t.a, "%s  a.json\n%s  b.safetensors\n%s  c.txt\n%s  d.txt\n", want, one, one, one);
    assert_ok(pare_sha256_of(want, lines, strlen(lines), &t.err), &t.err);
    assert_string_equal(folder_hash(&t, m), want);
    test_write_file(toy_path(&t, "m/out.pare"), "x", 1);
    test_write_file(toy_path(&t, "m/out.pare.cert.json"), "x", 1);
    test_write_file(toy_path(&t, "m/out.pare.run.json"), "x", 1);
    test_write_file(toy_path(&t, "m/.hidden"), "x", 1);
    test_write_file(toy_path(&t, "m/new.pare.part-7"), "x", 1);
    test_write_file(toy_path(&t, "m/new.pare.7-0.tmp"), "x", 1);
    assert_int_equal(mkfifo(toy_path(&t, "m/pipe"), 0600), 0); /* reading it would never end */
    assert_string_equal(folder_hash(&t, m), want);
    test_write_file(toy_path(&t, "m/b.safetensors"), "abd", 3);
    assert_string_not_equal(folder_hash(&t, m), want);
    assert_int_equal(unlink(toy_path(&t, "m/pipe")), 0);
    const char *const before = folder_hash(&t, m);
    test_write_file(toy_path(&t, "m/model.part-1.safetensors"), "x", 1); /* a shard, not ours */
    assert_string_not_equal(folder_hash(&t, m), before);
    test_write_file(toy_path(&t, "m/config.json.cert.json"), "x", 1);
    test_write_file(toy_path(&t, "m/config.json"), "x", 1);
    const char *const with = folder_hash(&t, m);
    test_write_file(toy_path(&t, "m/config.json"), "y", 1);
    assert_string_not_equal(folder_hash(&t, m), with);
    pare_model_free(m);
    toy_end(&t);
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_model *const m = toy_model(0, 2);
    pare_file_ref r;
    assert_status(pare_file_ref_make(&r, t.a, "c.json", toy_path(&t, "none"), m, &t.err),
                  PARE_ERR_IO, &t.err);
    assert_contains(t.err.msg, "none");
    pare_model_free(m);
    toy_end(&t);
}

static void measured_is_the_largest_difference_over_all_inputs(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_model *const f = toy_model(0, 2), *const g = toy_model(0, 2);
    /* g's second row is f's plus (0, 0, 1): the difference is |x_2|, largest in the middle input.
     */
    static const float w[] = {0, 0.25f, 0.5f, 0.75f, 1, 2.25f};
    static const double x[3][3] = {{1, 1, 0.5}, {9, 9, -3}, {1, 1, 2}};
    g->top.out.w.data = w;
    pare_input in[3];
    for (size_t i = 0; i < 3; i++)
        in[i] = (pare_input){.batch = 1, .tokens = 1, .width = 3, .x = x[i]};
    const pare_inputs set = {3, in};
    double d = -1;
    assert_ok(pare_measure(&d, f, g, &set, NULL, &t.err), &t.err);
    assert_true(d == 3);
    assert_ok(pare_measure(&d, g, g, &set, NULL, &t.err), &t.err);
    assert_true(d == 0);
    const pare_inputs none = {0, in};
    assert_status(pare_measure(&d, f, g, &none, NULL, &t.err), PARE_ERR_INPUT, &t.err);
    pare_model_free(f);
    pare_model_free(g);
    toy_end(&t);
}

static void models_of_different_outputs_are_not_compared(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_model *const f = toy_model(0, 2), *const g = toy_model(0, 3);
    static const double x[6] = {0};
    pare_input in = {.batch = 1, .tokens = 2, .width = 3, .x = x};
    const pare_inputs set = {1, &in};
    double d = -1;
    assert_status(pare_measure(&d, f, g, &set, NULL, &t.err), PARE_ERR_INPUT, &t.err);
    assert_contains(t.err.msg, "[2, 2]");
    assert_contains(t.err.msg, "[2, 3]");
    pare_model_free(g);
    pare_model *const pooled = toy_model(0, 2);
    pooled->top.pool = PARE_POOL_MEAN;
    assert_status(pare_measure(&d, f, pooled, &set, NULL, &t.err), PARE_ERR_INPUT, &t.err);
    assert_contains(t.err.msg, "[1, 2]");
    pare_model_free(f);
    pare_model_free(pooled);
    toy_end(&t);
}

static void outputs_that_overflow_are_not_called_equal(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_model *const f = toy_model(0, 2);
    static const double x[3] = {1.7e308, 1.7e308, 1.7e308}; /* 2.25e308 in the first output */
    static const float w[] = {1, 1, 1, 1, 1, 1};
    f->top.out.w.data = w;
    pare_input in = {.batch = 1, .tokens = 1, .width = 3, .x = x};
    const pare_inputs set = {1, &in};
    double d = -1;
    assert_status(pare_measure(&d, f, f, &set, NULL, &t.err), PARE_ERR_NONFINITE, &t.err);
    pare_model_free(f);
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_hashed_by_their_raw_bytes),
        cmocka_unit_test(a_folder_is_hashed_without_what_pare_wrote_there),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
        cmocka_unit_test(measured_is_the_largest_difference_over_all_inputs),
        cmocka_unit_test(models_of_different_outputs_are_not_compared),
        cmocka_unit_test(outputs_that_overflow_are_not_called_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
