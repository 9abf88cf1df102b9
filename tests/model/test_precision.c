/* Tests src/model/precision.c: what weights are rounded to and stored in. */
#include "model/precision.h"
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
    for (size_t i = 0; i < n; i++) v[i] = pare_weight_at(w, i) * (1 + 0x1p-26) + 0x1p-45;
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
        assert_ok(pare_model_round(m, NULL, precisions[i], &err), &err);
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

/* 65519 is the largest number that rounds to an f16; beyond f32 there is 1e300. */
static void a_number_that_would_become_infinite_is_refused_with_its_tensor(void **state)
{
    (void)state;
    static const struct {
        pare_dtype t;
        double fits, is_beyond;
    } cases[] = {
        {PARE_F16, -65519, -65520}, {PARE_BF16, 3.39e38, 3.4e38}, {PARE_F32, 3.4e38, 1e300}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pare_err err = {0};
        pare_model *m = small(&err);
        pare_weight *const w = &m->blocks[0].attn.wq;
        widen(m, w);
        double *const v = (double *)(uintptr_t)w->data;
        v[3] = cases[i].is_beyond;
        assert_int_equal(pare_model_round(m, NULL, cases[i].t, &err), PARE_ERR_INPUT);
        assert_non_null(strstr(err.msg, "tensor blocks.0.attn.wq has"));
        v[3] = cases[i].fits;
        assert_ok(pare_model_round(m, NULL, cases[i].t, &err), &err);
        assert_near(pare_weight_at(w, 3) / cases[i].fits, 1, 0x1p-8);
        pare_model_free(m);
    }
}

static pare_weight *weight_named(pare_model *m, const char *name);

/* Of a model that mixes f16, f32 and f64 every tensor keeps its type; one that the model does not
 * have gets the type of most bytes. */
static void a_cut_of_mixed_types_keeps_each(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *const like = small(&err), *const m = small(&err);
    assert_ok(pare_model_round(like, NULL, PARE_F16, &err), &err);
    widen(like, &like->blocks[0].attn.wk);
    float *const gain = (float *)(uintptr_t)weight_named(like, "blocks.0.attn.in_norm.gain")->data;
    gain[0] = 1 + 0x1p-20f; /* no f16: the file has this tensor in f32 */
    assert_ok(pare_model_each_weight(m, widen_each, m, &err), &err);
    like->blocks[0].attn.wo = (pare_weight){0};
    assert_int_equal(pare_model_precision(like), PARE_F16);
    assert_ok(pare_model_round(m, like, (pare_dtype)0, &err), &err);
    static const struct {
        const char *name;
        double unit; /* of the type that it is rounded to */
    } all[] = {{"blocks.0.attn.wq", 0x1p-11},
               {"blocks.0.attn.wk", 0},
               {"blocks.0.attn.in_norm.gain", 0x1p-24},
               {"blocks.0.attn.wo", 0x1p-11}};
    pare_model *const exact = small(&err);
    assert_ok(pare_model_each_weight(exact, widen_each, exact, &err), &err);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const pare_weight *const w = weight_named(m, all[k].name);
        const pare_weight *const x = weight_named(exact, all[k].name);
        double worst = 0;
        for (size_t i = 0; i < w->cols * w->rows; i++) {
            const double v = pare_weight_at(x, i);
            worst = fmax(worst, fabs(pare_weight_at(w, i) - v) / fmax(fabs(v), 0x1p-14));
        }
        assert_le(worst, all[k].unit);
        assert_true(worst >= all[k].unit / 8);
    }
    pare_model_free(exact);
    pare_model_free(like);
    pare_model_free(m);
}

/* Rounded frequencies would turn late tokens by wrong angles. */
static void a_type_that_is_asked_for_may_be_wider(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *m = small(&err), *like = small(&err);
    const float was = (float)pare_weight_at(&m->blocks[0].attn.wq, 5);
    widen(like, &like->blocks[0].attn.wq);
    assert_ok(pare_model_round(m, like, (pare_dtype)0, &err), &err);
    assert_int_equal(m->blocks[0].attn.wq.dtype, PARE_F32);
    assert_ok(pare_model_round(m, NULL, PARE_F64, &err), &err);
    assert_int_equal(pare_model_precision(m), PARE_F64);
    assert_true(pare_weight_at(&m->blocks[0].attn.wq, 5) == (double)was);
    pare_model_free(like);
    pare_model_free(m);
}

static void rotary_frequencies_are_not_rounded(void **state)
{
    (void)state;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_err err = {0};
    pare_model *m = NULL;
    o.kind = PARE_RANDOM_LLAMA;
    o.dim = 8, o.heads = 2, o.ffn = 12, o.vocab = 11, o.context = 9;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    const pare_weight before = m->blocks[0].attn.freqs;
    assert_int_equal(before.dtype, PARE_F64);
    assert_ok(pare_model_round(m, NULL, PARE_F16, &err), &err);
    assert_memory_equal(&before, &m->blocks[0].attn.freqs, sizeof before);
    pare_model_free(m);
}

typedef struct name_search {
    const char *name;
    pare_weight *w;
} name_search;

static pare_status compare(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    name_search *const s = self;
    (void)vector, (void)err;
    if (strcmp(name, s->name) == 0) s->w = w;
    return PARE_OK;
}

static pare_weight *weight_named(pare_model *m, const char *name)
{
    pare_err err = {0};
    name_search s = {name, NULL};
    assert_ok(pare_model_each_weight(m, compare, &s, &err), &err);
    assert_non_null(s.w);
    return s.w;
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
        cmocka_unit_test(a_number_that_would_become_infinite_is_refused_with_its_tensor),
        cmocka_unit_test(a_cut_of_mixed_types_keeps_each),
        cmocka_unit_test(a_type_that_is_asked_for_may_be_wider),
        cmocka_unit_test(rotary_frequencies_are_not_rounded),
        cmocka_unit_test(saving_narrows_only_what_stays_exact),
        cmocka_unit_test(the_precision_is_no_part_of_what_a_model_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
