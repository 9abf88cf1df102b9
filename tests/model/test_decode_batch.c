/* Tests src/model/decode.c with several texts: each is what it would be alone, to the bit. */
#include <enclose_models.h>
#include "model/decode_state.h"

enum { TEXTS = 17, TOKENS = 14, WILD = 60 };

typedef struct text {
    int64_t ids[TOKENS];
    size_t prompt, n; /* the prompt is fed at once, the rest token by token */
} text;

static void some_texts(text *t, size_t n, const pare_model *m, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 5);
    for (size_t i = 0; i < n; i++) {
        t[i].n = 2 + pare_rng_below(&r, TOKENS - 1);
        t[i].prompt = 1 + pare_rng_below(&r, t[i].n - 1);
        for (size_t j = 0; j < TOKENS; j++)
            t[i].ids[j] = (int64_t)pare_rng_below(&r, m->stem.vocab);
    }
}

static pare_decoder *decoder(const pare_model *m, size_t texts, int threads)
{
    const pare_exec x = {.threads = threads};
    pare_err err = {0};
    pare_decoder *d = NULL;
    assert_ok(pare_decoder_new_texts(&d, m, texts, TOKENS, &x, &err), &err);
    return d;
}

/* The logits after the first `len` tokens, alone. */
static void assert_alone(pare_decoder *one, const text *t, size_t len, const float *got,
                         size_t cols)
{
    const float *want;
    pare_err err = {0};
    pare_decoder_reset(one);
    assert_ok(pare_decoder_feed(one, t->ids, len, &want, &err), &err);
    assert_memory_equal(want, got, cols * sizeof *got);
}

/* All texts that are not at their end take one more token; returns how many did. */
static size_t one_step(pare_decoder *d, pare_decoder *one, const text *t, size_t texts, size_t cols)
{
    size_t who[TEXTS], n = 0, ld;
    int64_t ids[TEXTS];
    const float *got;
    pare_err err = {0};
    for (size_t i = 0; i < texts; i++) {
        const size_t len = pare_decoder_tokens_of(d, i);
        if (len == t[i].n) continue;
        who[n] = i;
        ids[n++] = t[i].ids[len];
    }
    if (n == 0) return 0;
    assert_ok(pare_decoder_step_texts(d, who, ids, n, &got, &ld, &err), &err);
    for (size_t k = 0; k < n; k++)
        assert_alone(one, &t[who[k]], pare_decoder_tokens_of(d, who[k]), got + k * ld, cols);
    return n;
}

static void assert_each_is_as_alone(const pare_model *m, size_t texts, int threads, uint64_t seed)
{
    const size_t cols = pare_model_outputs(m);
    text t[TEXTS];
    const float *got;
    pare_err err = {0};
    pare_decoder *const d = decoder(m, texts, threads), *const one = decoder(m, 1, 1);
    some_texts(t, texts, m, seed);
    for (int again = 0; again < 2; again++) {
        for (size_t i = texts; i-- > 0;) {
            assert_ok(pare_decoder_feed_text(d, i, t[i].ids, t[i].prompt, &got, &err), &err);
            assert_alone(one, &t[i], t[i].prompt, got, cols);
        }
        while (one_step(d, one, t, texts, cols)) continue;
        for (size_t i = 0; i < texts; i++) pare_decoder_reset_text(d, i);
    }
    pare_decoder_free(d);
    pare_decoder_free(one);
}

static void a_text_is_what_it_is_alone_on_wild_models(void **state)
{
    (void)state;
    size_t done = 0;
    for (uint64_t seed = 1; done < WILD; seed++) {
        pare_model *const m = some_model(seed, 1);
        if (!pare_decoder_refuses(m)) {
            m->pattern.window = 1 + seed % 5;
            m->pattern.sinks = seed % 4;
            assert_each_is_as_alone(m, 1 + seed % 7, 1, seed);
            done++;
        }
        pare_model_free(m);
    }
}

/* Wide enough that products and heads are spread over the threads; every size of tile. */
static void a_text_is_what_it_is_alone_on_any_threads(void **state)
{
    (void)state;
    static const size_t texts[] = {1, 2, 3, 5, 12, TEXTS};
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = PARE_RANDOM_LLAMA;
    o.dim = 192;
    o.heads = 6;
    o.layers = 2;
    o.vocab = 997;
    o.context = TOKENS;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        assert_each_is_as_alone(m, texts[k], k % 2 ? 3 : 1, k);
    pare_model_free(m);
}

static void one_bad_token_and_no_text_moves(void **state)
{
    (void)state;
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    const size_t who[] = {0, 2};
    const int64_t bad[] = {1, 1 << 20}, good[] = {1, 2};
    const float *got;
    size_t ld;
    o.context = TOKENS;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    pare_decoder *const d = decoder(m, 3, 1);
    assert_status(pare_decoder_step_texts(d, who, bad, 2, &got, &ld, &err), PARE_ERR_INPUT, &err);
    assert_null(got);
    assert_status(pare_decoder_step_texts(d, who, bad, 0, &got, &ld, &err), PARE_ERR_INPUT, &err);
    assert_int_equal(pare_decoder_tokens_of(d, 0), 0);
    for (size_t i = 0; i < TOKENS; i++)
        assert_ok(pare_decoder_step_texts(d, who, good, 2, &got, &ld, &err), &err);
    assert_status(pare_decoder_step_texts(d, who, good, 2, &got, &ld, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "there is room for 14");
    assert_int_equal(pare_decoder_tokens_of(d, 1), 0);
    pare_decoder_free(d);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_what_it_is_alone_on_wild_models),
        cmocka_unit_test(a_text_is_what_it_is_alone_on_any_threads),
        cmocka_unit_test(one_bad_token_and_no_text_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
