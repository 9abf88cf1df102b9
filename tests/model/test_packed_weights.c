/* Tests src/model/model_file.c, layer_ops.c and decode.c: models whose matrices stay packed compute
 * what the same models with expanded weights do. */
#include <enclose_models.h>
#include <packed_files.h>
#include "model/decode_state.h"
#include "model/model_file.h"

enum { MODELS = 600 };

static char folder[200];

static double norm(const double *v, size_t n)
{
    double most = 1;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(v[i]));
    return most;
}

/* Random models of all kinds, as files of random bits and groups. */
static void outputs_are_those_of_the_expanded_weights(void **state)
{
    (void)state;
    char path[300];
    test_path(path, folder, "packed.safetensors");
    size_t packed_models = 0, decoded = 0;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        pare_model *const m = some_model(seed, 1);
        const pare_input in = some_input(m, seed, 1, 0);
        pare_err err = {0};
        const size_t n = pare_output_rows(m, &in) * pare_model_outputs(m);
        double *const want = calloc(n, sizeof *want), *const wide = calloc(n, sizeof *wide);
        float *const plain = calloc(n, sizeof *plain), *const got = calloc(n, sizeof *got);
        save_quantized(m, path, seed);
        pare_model *const expanded = load_packed(path, false), *const packed =
                                                                   load_packed(path, true);
        packed_models += packed->nblocks && packed->blocks[0].attn.wk.dtype == PARE_U8;
        assert_ok(pare_forward_f64(want, expanded, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f64(wide, packed, &in, NULL, NULL, &err), &err);
        assert_memory_equal(wide, want, n * sizeof *want);
        assert_ok(pare_forward_f32(plain, expanded, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f32(got, packed, &in, NULL, NULL, &err), &err);
        /* Deep random models amplify roundings: as much as those of the other engine, about. */
        double away = 0, usual = 0;
        for (size_t i = 0; i < n; i++) {
            away = fmax(away, fabs((double)got[i] - want[i]));
            usual = fmax(usual, fabs((double)plain[i] - want[i]));
        }
        if (!(away <= 30 * usual + 2e-5 * norm(want, n)))
            fail_msg("seed %d: packed %g, expanded %g from the reference", (int)seed, away, usual);
        if (!pare_decoder_refuses(packed) && in.batch == 1) {
            pare_decoder *d = NULL;
            const float *logits;
            const size_t cols = pare_model_outputs(m), last = (in.tokens - 1) * cols;
            assert_ok(pare_decoder_new(&d, packed, 0, NULL, &err), &err);
            assert_ok(pare_decoder_prefill(d, in.ids, in.tokens, &logits, &err), &err);
            for (size_t j = 0; j < cols; j++)
                assert_near((double)logits[j], want[last + j], 30 * usual + 1e-4 * norm(want, n));
            pare_decoder_free(d);
            decoded++;
        }
        pare_model_free(packed);
        pare_model_free(expanded);
        pare_model_free(m);
        free(want), free(wide), free(plain), free(got);
    }
    assert_true(packed_models > 10 && decoded > 10);
}

/* A language model, an encoder: what enters packed integers is rounded to 8 bits. */
static void the_int8_engine_is_near_and_has_the_same_bits_on_any_threads(void **state)
{
    (void)state;
    char path[300];
    test_path(path, folder, "int8.safetensors");
    for (int kind = 0; kind < 2; kind++) {
        pare_err err = {0};
        pare_model *m = NULL;
        const pare_random_model_opts o = {.kind = kind ? PARE_RANDOM_BERT : PARE_RANDOM_LLAMA,
                                          .dim = 64,
                                          .layers = 3,
                                          .heads = 4,
                                          .vocab = 300,
                                          .context = 64,
                                          .classes = 40,
                                          .seed = 4};
        assert_ok(pare_random_model(&m, &o, &err), &err);
        save_quantized(m, path, 7);
        pare_model *const packed = load_packed(path, true);
        int64_t ids[60];
        for (size_t i = 0; i < 60; i++) ids[i] = (int64_t)(37 * i % 300);
        const pare_input in = {.batch = 1, .tokens = 60, .ids = ids};
        const size_t n = pare_output_rows(m, &in) * pare_model_outputs(m);
        double *const want = calloc(n, sizeof *want), dot = 0, a = 0, b = 0, away = 0;
        float *const one = calloc(n, sizeof *one), *const two = calloc(n, sizeof *two);
        const pare_exec int8 = {.threads = 1, .int8 = true}, threads = {.threads = 3, .int8 = true};
        assert_ok(pare_forward_f64(want, packed, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f32(one, packed, &in, NULL, &int8, &err), &err);
        assert_ok(pare_forward_f32(two, packed, &in, NULL, &threads, &err), &err);
        assert_memory_equal(one, two, n * sizeof *one);
        for (size_t i = 0; i < n; i++) {
            dot += (double)one[i] * want[i];
            a += (double)one[i] * (double)one[i];
            b += want[i] * want[i];
            away = fmax(away, fabs((double)one[i] - want[i]));
        }
        assert_true(dot > 0.995 * sqrt(a * b));
        assert_true(away > 1e-5 * norm(want, n)); /* it was the int8 engine */
        if (!kind) {
            pare_decoder *d[3];
            const float *logits[3];
            const size_t last = n - pare_model_outputs(m);
            for (int t = 0; t < 3; t++) {
                assert_ok(pare_decoder_new(&d[t], packed, 0, t == 1 ? &threads : &int8, &err),
                          &err);
                for (size_t i = 0; t == 2 && i < 59; i++)
                    assert_ok(pare_decoder_step(d[t], ids[i], &logits[t], &err), &err);
                const size_t done = t == 2 ? 59 : 0;
                assert_ok(pare_decoder_prefill(d[t], ids + done, 60 - done, &logits[t], &err),
                          &err);
            }
            for (size_t j = 0; j < 300; j++) {
                assert_true(logits[0][j] == logits[1][j] && logits[0][j] == logits[2][j]);
                assert_near((double)logits[0][j], want[last + j], 0.1 * norm(want, n));
            }
            for (int t = 0; t < 3; t++) pare_decoder_free(d[t]);
        }
        free(want), free(one), free(two);
        pare_model_free(packed);
        pare_model_free(m);
    }
}

static void half_precision_stays_packed_and_gives_the_same_numbers(void **state)
{
    (void)state;
    char path[300], hex[PARE_SHA256_HEX];
    test_path(path, folder, "half.safetensors");
    for (int bf16 = 0; bf16 < 2; bf16++) {
        pare_err err = {0};
        pare_model *m = NULL;
        pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
        o.seed = 2;
        assert_ok(pare_random_model(&m, &o, &err), &err);
        assert_ok(pare_model_round(m, NULL, bf16 ? PARE_BF16 : PARE_F16, &err), &err);
        assert_ok(pare_model_save(m, path, true, hex, &err), &err);
        pare_model *const packed = load_packed(path, true);
        assert_int_equal(packed->blocks[1].attn.wq.dtype, PARE_U8);
        const int64_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6};
        const float *x, *y;
        pare_decoder *d = NULL, *e = NULL;
        assert_ok(pare_decoder_new(&d, m, 0, NULL, &err), &err);
        assert_ok(pare_decoder_new(&e, packed, 0, NULL, &err), &err);
        assert_ok(pare_decoder_prefill(d, ids, 8, &x, &err), &err);
        assert_ok(pare_decoder_prefill(e, ids, 8, &y, &err), &err);
        for (size_t j = 0; j < o.vocab; j++) assert_near((double)x[j], (double)y[j], 1e-4);
        pare_decoder_free(d);
        pare_decoder_free(e);
        pare_model_free(packed);
        pare_model_free(m);
    }
}

static void a_packed_model_is_not_saved_and_has_no_hash(void **state)
{
    (void)state;
    char path[300], out[300], hex[PARE_SHA256_HEX];
    test_path(path, folder, "a.safetensors");
    test_path(out, folder, "b.safetensors");
    pare_err err = {0};
    pare_model *m = NULL;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    save_quantized(m, path, 1);
    pare_model_free(m);
    m = load_packed(path, true);
    assert_status(pare_model_save(m, out, true, hex, &err), PARE_ERR_INPUT, &err);
    assert_non_null(strstr(err.msg, "packed"));
    assert_false(pare_file_exists(out));
    assert_status(pare_model_sha256(hex, m, &err), PARE_ERR_INPUT, &err);
    pare_model_free(m);
}

static int open_folder(void **state)
{
    (void)state;
    test_mkdir(folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    test_rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_are_those_of_the_expanded_weights),
        cmocka_unit_test(the_int8_engine_is_near_and_has_the_same_bits_on_any_threads),
        cmocka_unit_test(half_precision_stays_packed_and_gives_the_same_numbers),
        cmocka_unit_test(a_packed_model_is_not_saved_and_has_no_hash),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
