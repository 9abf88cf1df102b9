/* Tests pare_forward_set (src/model/forward.c, sequence_layout.c): inputs of different lengths that go
 * through a model together come out as each does alone. */
#include <enclose_models.h>
#include "base/simd.h"

/* The outputs of every input by itself, one after the other. */
static void one_by_one(void *out, pare_dtype t, const pare_model *m, const pare_inputs *set)
{
    pare_err err = {0};
    char *to = out;
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        if (t == PARE_F64)
            assert_ok(pare_forward_f64((double *)(void *)to, m, in, NULL, NULL, &err), &err);
        else
            assert_ok(pare_forward_f32((float *)(void *)to, m, in, NULL, NULL, &err), &err);
        to += pare_output_rows(m, in) * pare_model_outputs(m) * pare_dtype_size(t);
    }
}

/* With AVX-512 every product is our own and the bits are the same; BLAS sums in an order that depends
 * on how many rows there are. */
static void check_set(const pare_model *m, const pare_inputs *set, int threads, const char *what)
{
    const pare_exec x = {.threads = threads};
    pare_err err = {0};
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        n += pare_output_rows(m, &set->in[i]) * pare_model_outputs(m);
    float *const alone = calloc(n, sizeof *alone), *const all = calloc(n, sizeof *all);
    double *const alone64 = calloc(n, sizeof *alone64), *const all64 = calloc(n, sizeof *all64);
    one_by_one(alone, PARE_F32, m, set);
    one_by_one(alone64, PARE_F64, m, set);
    assert_ok(pare_forward_set(all, PARE_F32, m, set, &x, &err), &err);
    assert_ok(pare_forward_set(all64, PARE_F64, m, set, &x, &err), &err);
    double scale = 1;
    for (size_t i = 0; i < n; i++) scale = fmax(scale, fabs(alone64[i]));
    for (size_t i = 0; i < n; i++) {
        const double f32 = simd_best() >= SIMD_AVX512 ? 0 : 2e-4 * scale;
        if (!(fabs(all64[i] - alone64[i]) <= 1e-11 * scale) ||
            !(fabs((double)all[i] - (double)alone[i]) <= f32))
            fail_msg("%s, entry %zu of %zu: %.17g and %.9g, alone %.17g and %.9g", what, i, n,
                     all64[i], (double)all[i], alone64[i], (double)alone[i]);
    }
    free(alone), free(all), free(alone64), free(all64);
}

/* Every kind of attention, pooling, pattern and position; a few tokens each, graphs among them. */
static void an_input_does_not_depend_on_those_beside_it(void **state)
{
    (void)state;
    enum { INPUTS = 6 };
    size_t ragged = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        pare_model *const m = seed % 2 ? some_model(seed, 0.5) : some_encoder(seed, 0.5);
        pare_input in[INPUTS];
        char what[32];
        for (uint64_t i = 0; i < INPUTS; i++) in[i] = some_input(m, 1000 * seed + i, 1, 0);
        for (size_t i = 1; i < INPUTS && m->pattern.kind != PARE_GRAPH; i++)
            ragged += in[i].tokens != in[0].tokens;
        snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
        check_set(m, &(pare_inputs){INPUTS, in}, 1 + (int)(seed % 3), what);
        pare_model_free(m);
    }
    assert_true(ragged > 400);
}

/* Sequences that fill several chunks and ranges, of models whose rows are cut in every way. */
static void also_where_they_are_many(void **state)
{
    (void)state;
    static const struct {
        pare_random_kind kind;
        size_t dim, ffn, vocab, n, longest;
    } shape[] = {{PARE_RANDOM_BERT, 16, 0, 64, 120, 90},
                 {PARE_RANDOM_LLAMA, 16, 44, 64, 60, 400},
                 {PARE_RANDOM_GPT, 32, 0, 40000, 3, 60}, /* a large head */
                 {PARE_RANDOM_BERT, 256, 1100, 64, 70, 70}};
    pare_err err = {0};
    for (size_t k = 0; k < sizeof shape / sizeof *shape; k++)
        for (size_t pool = PARE_POOL_NONE; pool <= PARE_POOL_LAST; pool++) {
            pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
            pare_model *m;
            pare_inputs set = {.n = shape[k].n};
            char what[32];
            o.kind = shape[k].kind;
            o.dim = shape[k].dim;
            o.ffn = shape[k].ffn;
            o.vocab = shape[k].vocab;
            o.context = shape[k].longest;
            o.layers = 1;
            if (pool != PARE_POOL_NONE && o.kind != PARE_RANDOM_BERT) continue;
            assert_ok(pare_random_model(&m, &o, &err), &err);
            m->head.pool = (pare_pool)pool;
            set.in = pare_alloc(m->arena, set.n, sizeof *set.in);
            pare_rng r = pare_rng_at(k, 5);
            for (size_t i = 0; i < set.n; i++) {
                pare_inputs one;
                const size_t tokens = 1 + (size_t)pare_rng_below(&r, shape[k].longest);
                assert_ok(pare_inputs_random(&one, m->arena, m, 1, tokens, i, &err), &err);
                set.in[i] = one.in[0];
            }
            snprintf(what, sizeof what, "shape %zu, pooling %zu", k, pool);
            check_set(m, &set, 1 + (int)(pool % 3), what);
            pare_model_free(m);
        }
}

static void an_unfit_input_is_refused_and_no_input_is_fine(void **state)
{
    (void)state;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m;
    pare_err err = {0};
    float y[1] = {7};
    const int64_t ids[] = {1, 2, 3}, bad[] = {1, 256};
    pare_input in[] = {{.batch = 1, .tokens = 3, .ids = ids},
                       {.batch = 1, .tokens = 2, .ids = bad}};
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_forward_set(y, PARE_F32, m, &(pare_inputs){0, in}, NULL, &err), &err);
    assert_true(y[0] == 7);
    float *const out = calloc(5 * 256, sizeof *out);
    assert_int_equal(pare_forward_set(out, PARE_F32, m, &(pare_inputs){2, in}, NULL, &err),
                     PARE_ERR_INPUT);
    assert_non_null(strstr(err.msg, "256"));
    free(out);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_input_does_not_depend_on_those_beside_it),
        cmocka_unit_test(also_where_they_are_many),
        cmocka_unit_test(an_unfit_input_is_refused_and_no_input_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
