/* Tests src/data/random_model.c. */
#include "base/support.h"
#include <pare/run.h>
#include <pare_test.h>

#include <math.h>
#include <string.h>

static pare_model *make(pare_random_model_opts o)
{
    pare_model *m = NULL;
    pare_err err = {0};
    if (pare_random_model(&m, &o, &err)) fail_msg("%s", err.msg);
    return m;
}

static pare_random_model_opts small(pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.kind = kind;
    o.dim = 24;
    o.heads = 3;
    o.context = 10;
    return o;
}

/* One hash over all weights, in file order. */
static pare_status add_weight(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    (void)name, (void)vector, (void)err;
    if (pare_has(w)) pare_sha256_add(self, w->data, w->rows * w->cols * pare_dtype_size(w->dtype));
    return PARE_OK;
}

static void hash(char hex[PARE_SHA256_HEX], pare_model *m)
{
    pare_sha256 h;
    assert_int_equal(pare_sha256_begin(&h, NULL), PARE_OK);
    assert_int_equal(pare_model_visit(m, add_weight, &h, NULL), PARE_OK);
    pare_sha256_end(&h, hex);
}

static void every_kind_is_a_model_that_runs(void **state)
{
    (void)state;
    for (int k = PARE_RANDOM_GPT; k <= PARE_RANDOM_GRAPH; k++) {
        pare_model *m = make(small((pare_random_kind)k));
        pare_arena *a = pare_arena_new();
        pare_inputs set;
        double y[10 * 256];
        pare_err err = {0};
        assert_non_null(a);
        assert_int_equal(pare_inputs_random(&set, a, m, 1, 10, 5, &err), PARE_OK);
        assert_int_equal(pare_forward_f64(y, m, &set.in[0], NULL, NULL, &err), PARE_OK);
        const size_t n = pare_output_rows(m, &set.in[0]) * pare_model_outputs(m);
        for (size_t i = 0; i < n; i++) assert_true(isfinite(y[i]));
        assert_true(y[0] != y[1]);
        pare_arena_free(a);
        pare_model_free(m);
    }
}

static void bits_depend_on_the_seed_and_not_on_the_threads(void **state)
{
    (void)state;
    char one[PARE_SHA256_HEX], two[PARE_SHA256_HEX], other[PARE_SHA256_HEX];
    pare_random_model_opts o = small(PARE_RANDOM_GPT);
    o.vocab = 9000; /* more than three blocks of numbers in one tensor */
    const pare_exec both = {.threads = 2};
    pare_model *a = make(o);
    o.exec = &both;
    pare_model *b = make(o);
    o.seed = 1;
    pare_model *c = make(o);
    hash(one, a);
    hash(two, b);
    hash(other, c);
    assert_string_equal(one, two);
    assert_string_not_equal(one, other);
    pare_model_free(a);
    pare_model_free(b);
    pare_model_free(c);
}

static void moments(double *mean, double *sigma, const pare_weight *w)
{
    const size_t n = w->rows * w->cols;
    double s = 0, q = 0;
    for (size_t i = 0; i < n; i++) s += pare_weight_at(w, i);
    for (size_t i = 0; i < n; i++) q += pow(pare_weight_at(w, i) - s / (double)n, 2);
    *mean = s / (double)n;
    *sigma = sqrt(q / (double)n);
}

static void weights_have_the_spread_that_was_asked_for(void **state)
{
    (void)state;
    double mean, sigma;
    pare_random_model_opts o = small(PARE_RANDOM_GPT);
    o.vocab = 9000;
    pare_model *m = make(o);
    moments(&mean, &sigma, &m->stem.embedding); /* 216000 numbers: 1 % is far out */
    assert_true(fabs(mean) < 0.01 * sigma);
    assert_true(fabs(sigma * sqrt(24) - 1) < 0.01);
    pare_model_free(m);
    o.sigma = 0.02;
    m = make(o);
    moments(&mean, &sigma, &m->stem.embedding);
    assert_true(fabs(sigma / 0.02 - 1) < 0.01);
    pare_model_free(m);
}

static pare_status not_zero(void *self, const char *name, pare_weight *w, bool vector,
                            pare_err *err)
{
    (void)self, (void)vector, (void)err;
    if (!pare_has(w)) return PARE_OK;
    for (size_t i = 0; i < w->rows * w->cols; i++)
        if (pare_weight_at(w, i) == 0) fail_msg("%s[%zu] is zero", name, i);
    return PARE_OK;
}

/* Else a fold of a random model would prove nothing about biases and gains. */
static void there_is_something_to_fold(void **state)
{
    (void)state;
    pare_model *m = make(small(PARE_RANDOM_GRAPH));
    const pare_attn *a = &m->blocks[0].attn;
    assert_int_equal(pare_model_visit(m, not_zero, NULL, NULL), PARE_OK);
    assert_true(pare_has(&a->bk) && pare_has(&a->bv) && pare_has(&a->out_norm.mean));
    for (size_t i = 0; i < a->out_norm.var.cols; i++)
        assert_true(pare_weight_at(&a->out_norm.var, i) > 0);
    assert_true(pare_weight_at(&a->out_norm.gain, 0) != 1);
    pare_model_free(m);
}

static void heads_share_keys_in_order(void **state)
{
    (void)state;
    pare_random_model_opts o = small(PARE_RANDOM_LLAMA);
    o.heads = 6;
    o.kv_heads = 2;
    pare_model *m = make(o);
    const size_t first_rows[6] = {0, 0, 0, 4, 4, 4};
    for (size_t h = 0; h < 6; h++) {
        assert_int_equal(m->blocks[0].attn.heads[h].k, first_rows[h]);
        assert_int_equal(m->blocks[0].attn.heads[h].q, 4 * h);
    }
    assert_int_equal(m->blocks[0].attn.wk.rows, 8);
    pare_model_free(m);
}

static void refused(pare_random_model_opts o, const char *word)
{
    pare_model *m = NULL;
    pare_err err = {0};
    assert_int_equal(pare_random_model(&m, &o, &err), PARE_ERR_USAGE);
    assert_null(m);
    if (!strstr(err.msg, word)) fail_msg("'%s' does not name %s", err.msg, word);
}

static void options_that_do_not_fit_are_named(void **state)
{
    (void)state;
    pare_random_model_opts o = small(PARE_RANDOM_GPT);
    o.heads = 5;
    refused(o, "heads 5");
    o = small(PARE_RANDOM_GPT);
    o.dim = 0;
    refused(o, "dim");
    o = small(PARE_RANDOM_GPT);
    o.layers = 0;
    refused(o, "layers");
    o = small(PARE_RANDOM_GPT);
    o.sigma = NAN;
    refused(o, "sigma");
    o = small(PARE_RANDOM_LLAMA);
    o.kv_heads = 2;
    refused(o, "kv_heads 2");
    o = small(PARE_RANDOM_LLAMA);
    o.dim = 9;
    refused(o, "even");
    o = small(PARE_RANDOM_BERT);
    o.classes = 0;
    refused(o, "classes");
    o = small(PARE_RANDOM_GRAPH);
    o.features = 0;
    refused(o, "features");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_a_model_that_runs),
        cmocka_unit_test(bits_depend_on_the_seed_and_not_on_the_threads),
        cmocka_unit_test(weights_have_the_spread_that_was_asked_for),
        cmocka_unit_test(there_is_something_to_fold),
        cmocka_unit_test(heads_share_keys_in_order),
        cmocka_unit_test(options_that_do_not_fit_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
