/* Tests src/formats/import.c: which importer is asked, and that no damage makes one of them crash. */
#include "../model/sample_models.h"

static void what_is_no_model_is_told_what_is_understood(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    test_path(path, dir, "a");
    make(&s, "encoder.conv.kernel", 3, 4, 0);
    make(&s, "decoder.lstm.kernel", 3, 4, 0);
    write_tensors(&s, path, 0, s.n, PARE_F32, NULL, 0);
    REFUSED(path, "encoder.conv.kernel", "decoder.lstm.kernel", "2 tensors", "pare reads", "GPT-2");
    write_tensors(&s, path, 0, 0, PARE_F32, NULL, 0);
    REFUSED(path, "0 tensors");
    write_text(path, "");
    REFUSED(path, "pare reads");
    write_text(path, "once upon a time there was a file that was not a model at all");
    REFUSED(path, "pare reads");
    write_text(path, "{\"a\": 1, \"b\": 2}");
    REFUSED(path, "weight_map");
    write_text(path, "PK\003\004 and then nothing");
    REFUSED(path, "");
    const pare_array one = {.dtype = PARE_F64, .ndim = 1, .shape = {1}, .data = s.t[0].v};
    pare_err err = {0};
    const char *const name = "who_is_this";
    assert_ok(pare_npz_write(path, 1, &name, &one, false, true, &err), &err);
    REFUSED(path, "who_is_this", "pare reads");
    REFUSED(dir, ".safetensors");
    pare_model *m = NULL;
    assert_status(pare_model_load(&m, test_path(path, dir, "missing"), &err), PARE_ERR_IO, &err);
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void a_weight_that_is_no_number_is_refused_by_name(void **state)
{
    (void)state;
    char dir[200], path[300];
    size_t bytes = 0;
    pare_model *m = NULL;
    pare_err err = {0};
    test_mkdir(dir);
    sample_gpt2(test_path(path, dir, "a"));
    assert_ok(pare_model_load(&m, path, &err), &err);
    pare_model_free(m);
    uint8_t *file = test_read_file(path, &bytes);
    const float nan = NAN;
    memcpy(file + bytes - 4, &nan, 4); /* the last number of ln_f.weight */
    test_write_file(path, file, bytes);
    assert_status(pare_model_load(&m, path, &err), PARE_ERR_NONFINITE, &err);
    assert_contains(err.msg, "head.norm.gain");
    char *dtype = strstr((char *)file + 8, "\"F32\"");
    assert_non_null(dtype);
    memcpy(dtype, "\"I32\"", 5); /* the first tensor: wte.weight */
    test_write_file(path, file, bytes);
    REFUSED(path, "wte.weight", "I32");
    free(file);
    test_rmdir(dir);
}

static void may_fail_but_not_fall(const char *path, const uint8_t *file, size_t bytes, bool must)
{
    pare_model *m = NULL;
    pare_err err = {0};
    test_write_file(path, file, bytes);
    const pare_status st = pare_model_load(&m, path, &err);
    if (must) assert_int_equal(st, PARE_ERR_INPUT);
    assert_true(st == PARE_OK || st == PARE_ERR_INPUT || st == PARE_ERR_NONFINITE);
    pare_model_free(m);
}

static void a_cut_foreign_file_is_refused(void **state)
{
    (void)state;
    void (*const samples[])(const char *) = {sample_gpt2, sample_bin, sample_npz};
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "a");
    for (size_t k = 0; k < 3; k++) {
        size_t bytes = 0;
        samples[k](path);
        uint8_t *file = test_read_file(path, &bytes);
        for (size_t i = 0; i < 300; i++) may_fail_but_not_fall(path, file, i * bytes / 300, true);
        free(file);
    }
    test_rmdir(dir);
}

static void a_damaged_foreign_file_never_crashes(void **state)
{
    (void)state;
    void (*const samples[])(const char *) = {sample_gpt2, sample_bin, sample_npz};
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "a");
    pare_rng rng = pare_rng_at(NAIVE_SEED, 1);
    for (size_t k = 0; k < 3; k++) {
        size_t bytes = 0;
        samples[k](path);
        uint8_t *file = test_read_file(path, &bytes);
        for (size_t at = 0; at < bytes; at++) {
            const uint8_t old = file[at];
            if (at % 2)
                file[at] = (uint8_t)(old ^ (1u << pare_rng_below(&rng, 8)));
            else
                file[at] = (uint8_t) "0\"{}9,:-["[pare_rng_below(&rng, 9)];
            may_fail_but_not_fall(path, file, bytes, false);
            file[at] = old;
        }
        free(file);
    }
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_model_is_told_what_is_understood),
        cmocka_unit_test(a_weight_that_is_no_number_is_refused_by_name),
        cmocka_unit_test(a_cut_foreign_file_is_refused),
        cmocka_unit_test(a_damaged_foreign_file_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
