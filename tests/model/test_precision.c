/* Tests src/model/precision.c: what weights are rounded to and stored in. */
#include <pare_test.h>
#include <pare/run.h>

static const pare_dtype precisions[] = {PARE_F16, PARE_BF16, PARE_F32, PARE_F64};

static pare_model *small(pare_err *err)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    o.kind = PARE_RANDOM_GPT;
    o.dim = 8, o.heads = 2, o.ffn = 12, o.vocab = 11, o.context = 9;
    assert_ok(pare_random_model(&m, &o, err), err);
    return m;
}

/* The weight of this model as f64, with digits that f32 does not have. */
static void widen(pare_model *m, pare_weight *w)
{
    const size_t n = w->rows * w->cols;
    double *const v = pare_alloc(m->arena, n, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = pare_weight_at(w, i) * (1 + 0x1p-40) + 0x1p-45;
    *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
}

static pare_status widen_each(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    (void)name, (void)vector, (void)err;
    if (pare_has(w)) widen(self, w);
    return PARE_OK;
}

static void each_precision_survives_the_file_bit_for_bit(void **state)
{
    (void)state;
    char dir[200], path[300], one[PARE_SHA256_HEX], two[PARE_SHA256_HEX];
    pare_err err = {0};
    uint64_t bytes[4];
    test_mkdir(dir);
    test_path(path, dir, "m.st");
    for (size_t i = 0; i < 4; i++) {
        pare_model *m = small(&err), *again = NULL;
        assert_ok(pare_model_each_weight(m, widen_each, m, &err), &err);
        assert_ok(pare_model_round(m, precisions[i], &err), &err);
        assert_ok(pare_model_save(m, path, true, NULL, &err), &err);
        assert_ok(pare_model_load(&again, path, &err), &err);
        assert_int_equal(again->precision, precisions[i]);
        assert_ok(pare_model_sha256(one, m, &err), &err);
        assert_ok(pare_model_sha256(two, again, &err), &err);
        assert_string_equal(one, two);
        bytes[i] = pare_model_size(again, 1, 0).bytes;
        pare_model_free(m);
        pare_model_free(again);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_int_equal(2 * bytes[0], bytes[2]);
    assert_int_equal(2 * bytes[2], bytes[3]);
    test_rmdir(dir);
}

static void a_number_beyond_f16_keeps_its_tensor_in_f32(void **state)
{
    (void)state;
    char dir[200], path[300];
    pare_err err = {0};
    pare_model *m = small(&err), *again = NULL;
    test_mkdir(dir);
    pare_weight *const w = &m->blocks[0].attn.wq;
    widen(m, w);
    ((double *)(uintptr_t)w->data)[3] = 65520; /* the smallest number that rounds to infinity */
    ((double *)(uintptr_t)w->data)[4] = 1 + 0x1p-11;
    assert_ok(pare_model_round(m, PARE_F16, &err), &err);
    assert_true(pare_weight_at(w, 3) == 65520);
    assert_true(pare_weight_at(w, 4) == 1 + 0x1p-11);
    assert_ok(pare_model_save(m, test_path(path, dir, "m.st"), false, NULL, &err), &err);
    assert_ok(pare_model_load(&again, path, &err), &err);
    assert_int_equal(again->precision, PARE_F16); /* all others */
    assert_true(pare_weight_at(&again->blocks[0].attn.wq, 3) == 65520);
    assert_true(pare_weight_at(&again->blocks[0].attn.wq, 4) == 1 + 0x1p-11);
    pare_model_free(m);
    pare_model_free(again);
    test_rmdir(dir);
}

static void a_number_beyond_f32_keeps_its_tensor_in_f64(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *m = small(&err);
    pare_weight *const w = &m->blocks[0].attn.wq;
    widen(m, w);
    ((double *)(uintptr_t)w->data)[3] = 1e300;
    assert_ok(pare_model_round(m, PARE_BF16, &err), &err);
    assert_int_equal(w->dtype, PARE_F64);
    assert_true(pare_weight_at(w, 3) == 1e300);
    pare_model_free(m);
}

static void saving_narrows_only_what_stays_exact(void **state)
{
    (void)state;
    char dir[200], path[300];
    pare_err err = {0};
    pare_model *m = small(&err), *again = NULL;
    test_mkdir(dir);
    m->precision = PARE_F16; /* not rounded: random f32 numbers are no f16 */
    assert_ok(pare_model_save(m, test_path(path, dir, "m.st"), false, NULL, &err), &err);
    assert_ok(pare_model_load(&again, path, &err), &err);
    const pare_weight *const a = &m->blocks[0].attn.wq, *const b = &again->blocks[0].attn.wq;
    assert_int_equal(b->dtype, PARE_F32);
    assert_memory_equal(a->data, b->data, a->rows * a->cols * sizeof(float));
    pare_model_free(m);
    pare_model_free(again);
    test_rmdir(dir);
}

static void the_precision_is_no_part_of_what_a_model_is(void **state)
{
    (void)state;
    char one[PARE_SHA256_HEX], two[PARE_SHA256_HEX];
    pare_err err = {0};
    pare_model *m = small(&err), *copy = NULL;
    assert_int_equal(pare_model_precision(m), PARE_F32);
    m->precision = PARE_BF16;
    assert_ok(pare_model_clone(&copy, m, &err), &err);
    assert_int_equal(copy->precision, PARE_BF16);
    copy->precision = PARE_F64;
    assert_ok(pare_model_sha256(one, m, &err), &err);
    assert_ok(pare_model_sha256(two, copy, &err), &err);
    assert_string_equal(one, two);
    pare_model_free(m);
    pare_model_free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_precision_survives_the_file_bit_for_bit),
        cmocka_unit_test(a_number_beyond_f16_keeps_its_tensor_in_f32),
        cmocka_unit_test(a_number_beyond_f32_keeps_its_tensor_in_f64),
        cmocka_unit_test(saving_narrows_only_what_stays_exact),
        cmocka_unit_test(the_precision_is_no_part_of_what_a_model_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
