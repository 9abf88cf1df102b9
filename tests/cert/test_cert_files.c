/* Tests src/cert/file_ref.c and src/cert/measured_difference.c: what a certificate takes from files and runs.
 */
#include "model/model_facts.h"
#include "cert_toy.h"
#include <sys/stat.h>

/* The files of a list, each read once. */
static pare_files *read_files(toy *t, const char *const *names, size_t n)
{
    pare_files *const f = pare_files_new();
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) {
        pare_blob *b = NULL;
        assert_ok(pare_files_read(f, &b, toy_path(t, names[i]), &t->err), &t->err);
        pare_blob_release(b);
    }
    return f;
}

static void tensors_are_hashed_by_their_raw_bytes(void **state)
{
    (void)state;
    static const float bias[] = {1.5f, 1.75f}; /* of toy_model(1.5), by hand */
    static const char *const name[] = {"m.pare"};
    char hex[PARE_SHA256_HEX];
    toy t;
    toy_begin(&t);
    pare_model *const m = toy_model(1.5, 2);
    pare_file_ref r;
    assert_int_equal(mkdir(toy_path(&t, "sub"), 0777), 0);
    test_write_file(toy_path(&t, "m.pare"), "abc", 3);
    pare_files *const files = read_files(&t, name, 1);
    assert_ok(pare_file_ref_make(&r, t.a, toy_path(&t, "sub/c.json"), toy_path(&t, "m.pare"), files,
                                 m, &t.err),
              &t.err);
    assert_string_equal(r.path, "../m.pare");
    assert_string_equal(r.sha256,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(r.nfiles, 1);
    assert_string_equal(r.files[0].name, "m.pare");
    assert_string_equal(r.files[0].sha256, r.sha256);
    assert_int_equal(r.ntensors, 2); /* absent weights have no hash */
    assert_string_equal(r.tensors[1].name, "head.out.bias");
    assert_ok(pare_sha256_of(hex, bias, sizeof bias, &t.err), &t.err);
    assert_string_equal(r.tensors[1].sha256, hex);
    assert_string_equal(r.tensors[0].name, "head.out.weight");
    assert_string_not_equal(r.tensors[0].sha256, hex);
    assert_ok(pare_architecture_sha256(hex, m, &t.err), &t.err);
    assert_string_equal(r.architecture, hex);
    m->vocab = (const uint8_t *)"abc";
    m->vocab_bytes = 3;
    assert_ok(pare_file_ref_make(&r, t.a, toy_path(&t, "c.json"), toy_path(&t, "m.pare"), files, m,
                                 &t.err),
              &t.err);
    assert_int_equal(r.ntensors, 3);
    assert_string_equal(r.tensors[2].name, "vocab");
    assert_string_equal(r.tensors[2].sha256, r.sha256);
    pare_files_free(files);
    pare_model_free(m);
    toy_end(&t);
}

/* Every file that was read is in the list, sorted; the hash of the whole is that of the lines. */
static void a_model_of_several_files_lists_each_of_them(void **state)
{
    (void)state;
    static const char *const names[] = {"m/b.safetensors", "m/config.json", "m/a.safetensors"};
    static const char *const sorted[] = {"a.safetensors", "b.safetensors", "config.json"};
    char hex[3][PARE_SHA256_HEX], want[PARE_SHA256_HEX];
    toy t;
    toy_begin(&t);
    pare_model *const m = toy_model(0, 2);
    pare_file_ref r;
    assert_int_equal(mkdir(toy_path(&t, "m"), 0777), 0);
    test_write_file(toy_path(&t, "m/a.safetensors"), "a", 1);
    test_write_file(toy_path(&t, "m/b.safetensors"), "b", 1);
    test_write_file(toy_path(&t, "m/config.json"), "c", 1);
    test_write_file(toy_path(&t, "m/notes.txt"), "not read, so not counted", 24);
    pare_files *const files = read_files(&t, names, 3);
    for (size_t k = 0; k < 2; k++) { /* by the folder, and by one of its files */
        const char *const path = toy_path(&t, k ? "m/b.safetensors" : "m");
        assert_ok(pare_file_ref_make(&r, t.a, toy_path(&t, "c.json"), path, files, m, &t.err),
                  &t.err);
        assert_int_equal(r.nfiles, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_ok(pare_sha256_of(hex[i], &"abc"[i], 1, &t.err), &t.err);
            assert_string_equal(r.files[i].name, sorted[i]);
            assert_string_equal(r.files[i].sha256, hex[i]);
        }
        /* The identity sorts whole lines: by hash first. */
        char *line[3];
        for (size_t i = 0; i < 3; i++) {
            line[i] = pare_sprintf(t.a, "%s  %s\n", hex[i], sorted[i]);
            for (size_t j = i; j > 0 && strcmp(line[j - 1], line[j]) > 0; j--) {
                char *const swap = line[j];
                line[j] = line[j - 1];
                line[j - 1] = swap;
            }
        }
        const char *const all = pare_sprintf(t.a, "%s%s%s", line[0], line[1], line[2]);
        assert_ok(pare_sha256_of(want, all, strlen(all), &t.err), &t.err);
        assert_string_equal(r.sha256, want);
    }
    pare_files_free(files);
    pare_model_free(m);
    toy_end(&t);
}

/* ---- inputs -----------------------------------------------------------------------------------
 */

static void inputs_are_hashed_one_by_one_and_sorted(void **state)
{
    (void)state;
    static const double x[4 * TOY_WIDTH] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
    toy t;
    toy_begin(&t);
    pare_input both = {.batch = 4, .tokens = 1, .width = TOY_WIDTH, .x = x};
    pare_input one[2] = {both, both}, two = both;
    one[0].batch = one[1].batch = 1;
    one[1].x += 2 * TOY_WIDTH;
    two.batch = 2;
    two.tokens = 2; /* the first token of the second is the third row */
    const pare_inputs batch = {1, &both}, apart = {2, one}, longer = {1, &two};
    pare_input_hashes a, b, c, d;
    assert_ok(pare_input_hashes_make(&a, t.a, &batch, 0, &t.err), &t.err);
    assert_ok(pare_input_hashes_make(&b, t.a, &apart, 0, &t.err), &t.err);
    assert_ok(pare_input_hashes_make(&c, t.a, &longer, 1, &t.err), &t.err);
    assert_ok(pare_input_hashes_make(&d, t.a, &longer, 0, &t.err), &t.err);
    assert_int_equal(a.n, 4);
    for (size_t i = 1; i < 4; i++) assert_true(strcmp(a.sha256[i - 1], a.sha256[i]) <= 0);
    assert_int_equal(b.n, 2);
    assert_int_equal(c.n, 2);
    assert_int_equal(c.tokens, 1);
    for (size_t i = 0; i < 2; i++) assert_string_equal(b.sha256[i], c.sha256[i]);
    assert_true(pare_inputs_meet(&a, &b) && pare_inputs_meet(&b, &a) && pare_inputs_meet(&c, &a));
    assert_false(pare_inputs_meet(&a, &d)); /* whole, they are other inputs */
    const pare_input_hashes none = {0};
    assert_false(pare_inputs_meet(&a, &none) || pare_inputs_meet(&none, &a));
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
        cmocka_unit_test(a_model_of_several_files_lists_each_of_them),
        cmocka_unit_test(inputs_are_hashed_one_by_one_and_sorted),
        cmocka_unit_test(measured_is_the_largest_difference_over_all_inputs),
        cmocka_unit_test(models_of_different_outputs_are_not_compared),
        cmocka_unit_test(outputs_that_overflow_are_not_called_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
