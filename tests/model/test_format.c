/* Tests src/model/{save,load,seal,arch_*}.c: the file that is written is the file that is read, and
 * a damaged one is refused. */
#include <pare_test.h>
#include <pare/run.h>

static pare_model *small(pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = kind;
    o.dim = 8;
    o.heads = 2;
    o.ffn = 12;
    o.vocab = 11;
    o.context = 9;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static double *run64(const pare_model *m, size_t *n)
{
    pare_arena *const a = pare_arena_new();
    pare_inputs set;
    pare_err err = {0};
    assert_ok(pare_inputs_random(&set, a, m, 1, 5, 7, &err), &err);
    *n = pare_output_rows(m, &set.in[0]) * pare_model_outputs(m);
    double *const out = calloc(*n, sizeof *out);
    assert_ok(pare_forward_f64(out, m, &set.in[0], NULL, NULL, &err), &err);
    pare_arena_free(a);
    return out;
}

static void a_saved_model_loads_to_the_same_bits(void **state)
{
    (void)state;
    char dir[200], path[300], again[300], one[65], two[65];
    pare_err err = {0};
    test_mkdir(dir);
    for (int kind = 0; kind < 4; kind++) {
        pare_model *m = small((pare_random_kind)kind), *l = NULL;
        size_t n = 0, k = 0;
        assert_ok(pare_model_save(m, test_path(path, dir, "m"), true, one, &err), &err);
        assert_ok(pare_sha256_file(two, path, &err), &err);
        assert_string_equal(one, two);
        assert_ok(pare_model_load(&l, path, &err), &err);
        double *const before = run64(m, &n), *const after = run64(l, &k);
        assert_int_equal(n, k);
        assert_memory_equal(before, after, n * sizeof *before);
        assert_ok(pare_model_save(l, test_path(again, dir, "again"), true, two, &err), &err);
        assert_string_equal(one, two); /* same model, same bytes */
        free(before);
        free(after);
        pare_model_free(m);
        pare_model_free(l);
    }
    test_rmdir(dir);
}

static char *slurp(const char *path, size_t *bytes)
{
    pare_blob *b = NULL;
    pare_err err = {0};
    assert_ok(pare_blob_open(&b, path, &err), &err);
    char *const copy = malloc(b->bytes);
    memcpy(copy, b->data, b->bytes);
    *bytes = b->bytes;
    pare_blob_release(b);
    return copy;
}

static void refused(const char *path, const void *data, size_t bytes, const char *what, size_t at)
{
    pare_model *m = NULL;
    pare_err err = {0};
    test_write_file(path, data, bytes);
    const pare_status st = pare_model_load(&m, path, &err);
    if (pare_exit_code(st) != 2) {
        print_error("%s at %zu gives exit %d: %s\n", what, at, pare_exit_code(st), err.msg);
        fail();
    }
    assert_null(m);
    assert_true(strlen(err.msg) > 0);
}

static void a_file_cut_anywhere_or_with_any_header_byte_changed_is_refused(void **state)
{
    (void)state;
    char dir[200], path[300], bad[300];
    pare_err err = {0};
    size_t bytes = 0;
    test_mkdir(dir);
    pare_model *const m = small(PARE_RANDOM_GPT);
    assert_ok(pare_model_save(m, test_path(path, dir, "m"), false, NULL, &err), &err);
    char *const file = slurp(path, &bytes);
    test_path(bad, dir, "bad");
    for (size_t i = 0; i < 2000; i++) refused(bad, file, bytes * i / 2000, "cut", bytes * i / 2000);
    refused(bad, file, bytes - 1, "cut", bytes - 1);
    uint64_t header = 0;
    memcpy(&header, file, 8);
    for (size_t i = 0; i < 8 + header; i++) {
        const char was = file[i];
        for (int flip = 1; flip <= 0x20; flip += 0x1f) { /* lowest bit; the case bit */
            file[i] = (char)(was ^ flip);
            refused(bad, file, bytes, "header byte changed", i);
        }
        file[i] = was;
    }
    free(file);
    pare_model_free(m);
    test_rmdir(dir);
}

static void one_byte_too_many_is_refused(void **state)
{
    (void)state;
    char dir[200], path[300];
    pare_err err = {0};
    size_t bytes = 0;
    test_mkdir(dir);
    pare_model *const m = small(PARE_RANDOM_GRAPH);
    assert_ok(pare_model_save(m, test_path(path, dir, "m"), false, NULL, &err), &err);
    char *const file = slurp(path, &bytes), *const longer = calloc(bytes + 1, 1);
    memcpy(longer, file, bytes);
    refused(path, longer, bytes + 1, "trailing byte", bytes);
    free(longer);
    free(file);
    pare_model_free(m);
    test_rmdir(dir);
}

/* The seal covers the header, not the data: a nan in the data must be found by looking. */
static void a_nan_weight_is_refused_with_its_name(void **state)
{
    (void)state;
    char dir[200], path[300];
    pare_err err = {0};
    size_t bytes = 0;
    test_mkdir(dir);
    pare_model *m = small(PARE_RANDOM_LLAMA);
    assert_ok(pare_model_save(m, test_path(path, dir, "m"), false, NULL, &err), &err);
    pare_model_free(m);
    char *const file = slurp(path, &bytes);
    memset(file + bytes - 4, 0xff, 4); /* the last number of the last tensor */
    test_write_file(path, file, bytes);
    m = NULL;
    assert_status(pare_model_load(&m, path, &err), PARE_ERR_NONFINITE, &err);
    assert_contains(err.msg, "top.out.weight");
    assert_contains(err.msg, path);
    free(file);
    test_rmdir(dir);
}

static void saving_never_overwrites_unasked(void **state)
{
    (void)state;
    char dir[200], path[300];
    pare_err err = {0};
    test_mkdir(dir);
    pare_model *const m = small(PARE_RANDOM_BERT);
    assert_ok(pare_model_save(m, test_path(path, dir, "m"), false, NULL, &err), &err);
    assert_status(pare_model_save(m, path, false, NULL, &err), PARE_ERR_IO, &err);
    assert_ok(pare_model_save(m, path, true, NULL, &err), &err);
    pare_model_free(m);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_saved_model_loads_to_the_same_bits),
        cmocka_unit_test(a_file_cut_anywhere_or_with_any_header_byte_changed_is_refused),
        cmocka_unit_test(one_byte_too_many_is_refused),
        cmocka_unit_test(a_nan_weight_is_refused_with_its_name),
        cmocka_unit_test(saving_never_overwrites_unasked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
