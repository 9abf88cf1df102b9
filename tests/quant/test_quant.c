/* Tests src/quant/{quant,allocate_bits,encode}.c: what becomes of a model, its bytes, and the inputs
 * that weight the errors. */
#include "base/array.h"
#include "data/evaluate.h"
#include "model/model_file.h"
#include "quant/quant_internal.h"
#include <math.h>
#include <pare/pare.h>
#include <pare_test.h>
#include <sys/stat.h>

typedef struct stage {
    pare_arena *a;
    pare_model *m;
    pare_inputs set;
    char dir[200], path[300];
} stage;

static void open_stage(stage *s, pare_random_kind kind, size_t inputs)
{
    pare_err err = {0};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = kind, o.dim = 16, o.heads = 2, o.layers = 2, o.vocab = 60, o.context = 12;
    s->a = pare_arena_new();
    assert_non_null(s->a);
    test_mkdir(s->dir);
    test_path(s->path, s->dir, "m");
    assert_ok(pare_random_model(&s->m, &o, &err), &err);
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, inputs, 8, 3, &err), &err);
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static pare_model *make(stage *s, pare_quant_report *r, const pare_quant_opts *o,
                        const pare_exec *exec)
{
    pare_model *g = NULL;
    pare_err err = {0};
    assert_ok(pare_quant(&g, r, s->m, o, exec, &err), &err);
    return g;
}

static size_t saved_bytes(stage *s, const pare_model *g)
{
    struct stat st;
    pare_err err = {0};
    assert_ok(pare_model_save(g, s->path, true, NULL, &err), &err);
    assert_int_equal(stat(s->path, &st), 0);
    return (size_t)st.st_size;
}

static void every_kind_of_model_is_saved_and_loads_to_the_same_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int affine = 0; affine < 2; affine++) {
            stage s;
            pare_quant_report r;
            pare_model *again = NULL;
            pare_err err = {0};
            char before[PARE_SHA256_HEX], after[PARE_SHA256_HEX];
            pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
            open_stage(&s, (pare_random_kind)kind, 4);
            o.bits = 4, o.group = 8, o.affine = affine, o.fit = &s.set;
            pare_model *const g = make(&s, &r, &o, NULL);
            saved_bytes(&s, g);
            assert_ok(pare_model_load(&again, s.path, &err), &err);
            assert_ok(pare_model_sha256(before, g, &err), &err);
            assert_ok(pare_model_sha256(after, again, &err), &err);
            assert_string_equal(before, after);
            assert_int_equal(again->nints, r.n);
            assert_true(r.n >= 12);
            for (size_t i = 0; i < r.n; i++) {
                assert_int_equal(r.matrix[i].bytes, again->ints[i].bytes);
                assert_true(r.matrix[i].bits == 4);
                assert_int_equal(r.matrix[i].group, r.matrix[i].cols < 8 ? r.matrix[i].cols : 8);
                assert_true(r.matrix[i].error > 0.01 && r.matrix[i].error < 0.2);
            }
            pare_model_free(again);
            pare_model_free(g);
            close_stage(&s);
        }
}

/* All budgets between the least and the most: the file never has more bytes, and it has nearly as
 * many; more bytes do not hurt. */
static void the_bytes_promised_are_the_bytes_written(void **state)
{
    (void)state;
    stage s;
    pare_quant_report r;
    pare_err err = {0};
    pare_model *none = NULL;
    double first = 0, last = 0;
    open_stage(&s, PARE_RANDOM_GPT, 6);
    pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
    o.fit = &s.set, o.bits = 2;
    pare_model *g = make(&s, &r, &o, NULL);
    const size_t least = saved_bytes(&s, g);
    pare_model_free(g);
    o.bits = 8;
    g = make(&s, &r, &o, NULL);
    const size_t most = saved_bytes(&s, g);
    pare_model_free(g);
    o.bits = 0;
    for (size_t budget = least; budget <= most + 100; budget += (most - least) / 9) {
        double error;
        o.max_bytes = budget;
        g = make(&s, &r, &o, NULL);
        const size_t is = saved_bytes(&s, g);
        assert_true(is <= budget);
        assert_true(is + 160 >= (budget < most ? budget : most));
        assert_ok(pare_output_error(&error, s.m, g, &s.set, s.a, NULL, &err), &err);
        print_message("%zu of %zu bytes: outputs change by %.4f\n", is, budget, error);
        if (budget == least) first = error;
        last = error;
        pare_model_free(g);
    }
    assert_le(last, 0.05 * first);
    o.max_bytes = least - 1;
    assert_status(pare_quant(&none, &r, s.m, &o, NULL, &err), PARE_ERR_PROMISE, &err);
    assert_null(none);
    char numbers[100];
    snprintf(numbers, sizeof numbers, "the file has %zu bytes, more than max_bytes %zu", least,
             least - 1);
    assert_contains(err.msg, numbers);
    close_stage(&s);
}

/* Bits that follow the losses do better than the same for all in as many bytes. */
static void dealt_bits_do_better_than_the_same_for_all(void **state)
{
    (void)state;
    stage s;
    pare_quant_report r;
    pare_err err = {0};
    double same, allocated;
    open_stage(&s, PARE_RANDOM_GPT, 12);
    /* half of the matrices hardly matter */
    float *const wo = (float *)s.m->blocks[0].attn.wo.data;
    for (size_t i = 0; i < s.m->blocks[0].attn.wo.rows * s.m->blocks[0].attn.wo.cols; i++)
        wo[i] *= 0.01F;
    pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
    o.fit = &s.set, o.bits = 4;
    pare_model *g = make(&s, &r, &o, NULL);
    o.max_bytes = saved_bytes(&s, g);
    assert_ok(pare_output_error(&same, s.m, g, &s.set, s.a, NULL, &err), &err);
    pare_model_free(g);
    o.bits = 0;
    g = make(&s, &r, &o, NULL);
    assert_true(saved_bytes(&s, g) <= o.max_bytes);
    assert_ok(pare_output_error(&allocated, s.m, g, &s.set, s.a, NULL, &err), &err);
    for (size_t i = 0; i < r.n; i++)
        if (strcmp(r.matrix[i].name, "blocks.0.attn.wo") == 0) assert_le(r.matrix[i].bits, 3);
    pare_model_free(g);
    print_message("outputs change by %.4f, with 4 bits for all %.4f\n", allocated, same);
    assert_le(allocated, 0.9 * same);
    close_stage(&s);
}

static void threads_change_no_byte(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, PARE_RANDOM_GPT, 6);
    for (int budget = 0; budget < 2; budget++) {
        char first[PARE_SHA256_HEX] = "", sha[PARE_SHA256_HEX];
        for (int threads = 1; threads <= 5; threads += 2) {
            pare_quant_report r;
            pare_err err = {0};
            const pare_exec exec = {.threads = threads};
            pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
            o.fit = &s.set, o.bits = budget ? 0 : 3, o.max_bytes = budget ? 12000 : 0;
            pare_model *const g = make(&s, &r, &o, &exec);
            assert_ok(pare_model_save(g, s.path, true, sha, &err), &err);
            if (*first) assert_string_equal(sha, first);
            memcpy(first, sha, sizeof first);
            pare_model_free(g);
        }
    }
    close_stage(&s);
}

/* The user's inputs use some of the directions much more than others: weighting by them helps on
 * other inputs of the same kind. */
static void importance_from_the_data_helps(void **state)
{
    (void)state;
    stage s;
    pare_err err = {0};
    pare_inputs other;
    double error[3];
    open_stage(&s, PARE_RANDOM_GPT, 40);
    assert_ok(pare_inputs_random(&other, s.a, s.m, 20, 8, 99, &err), &err);
    float *const e = (float *)s.m->embedding.table.data; /* two of the 16 features are large */
    for (size_t i = 0; i < s.m->embedding.table.rows; i++)
        for (size_t j = 0; j < 2; j++) e[i * 16 + j] *= 8;
    for (int how = 0; how < 3; how++) { /* no data; rtn; gptq */
        pare_quant_report r;
        pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
        o.bits = 3, o.embedding_bits = 8;
        o.method = how == 2 ? PARE_QUANT_GPTQ : PARE_QUANT_RTN;
        if (how) o.fit = &s.set;
        pare_model *const g = make(&s, &r, &o, NULL);
        assert_ok(pare_output_error(&error[how], s.m, g, &other, s.a, NULL, &err), &err);
        for (size_t i = 0; i < r.n; i++)
            assert_int_equal(r.matrix[i].measured,
                             how && strncmp(r.matrix[i].name, "embedding.positions", 19) != 0);
        pare_model_free(g);
    }
    print_message("outputs change by %.4f without data, %.4f weighted, %.4f with feedback\n",
                  error[0], error[1], error[2]);
    assert_le(error[1], 0.95 * error[0]);
    assert_le(error[2], 0.9 * error[1]);
    close_stage(&s);
}

static void what_cannot_be_is_refused_by_name(void **state)
{
    (void)state;
    stage s;
    pare_quant_report r;
    pare_err err = {0};
    pare_model *g = NULL;
    pare_quant_opts o = PARE_QUANT_OPTS_DEFAULT;
    open_stage(&s, PARE_RANDOM_GPT, 1);
    static const double bits[] = {1, 9, 4.5};
    for (size_t i = 0; i < 3; i++) {
        o.bits = bits[i];
        assert_status(pare_quant(&g, &r, s.m, &o, NULL, &err), PARE_ERR_USAGE, &err);
        assert_contains(err.msg, "bits");
    }
    o.bits = 8;
    ((float *)s.m->blocks[1].attn.wk.data)[17] = 0x1p120F;
    assert_status(pare_quant(&g, &r, s.m, &o, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "blocks.1.attn.wk: weight 17");
    assert_null(g);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_model_is_saved_and_loads_to_the_same_bits),
        cmocka_unit_test(the_bytes_promised_are_the_bytes_written),
        cmocka_unit_test(dealt_bits_do_better_than_the_same_for_all),
        cmocka_unit_test(threads_change_no_byte),
        cmocka_unit_test(importance_from_the_data_helps),
        cmocka_unit_test(what_cannot_be_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
