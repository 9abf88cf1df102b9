/* Tests src/text/generate.c: what is generated for a prompt is what the decoder and the sampler give
 * for it alone, whatever else is generated at the same time. */
#include <pare_test.h>
#include "text/text_internal.h"

enum { PROMPTS = 60, TOKENS = 9 }; /* more than go together */

typedef struct scene {
    pare_arena *a;
    pare_err err;
    pare_model *m;
    pare_tokenizer *tok;
    int64_t ids[PROMPTS][4];
    pare_input in[PROMPTS];
    pare_generation made;
    size_t begun, tokens, ended, rounds, most_rounds;
} scene;

static void open_scene(scene *s, size_t context)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = 16;
    o.context = context;
    *s = (scene){.a = pare_arena_new(), .most_rounds = SIZE_MAX};
    assert_non_null(s->a);
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(
        pare_tokenizer_new(&s->tok, s->a, s->m->tokenizer, s->m->vocab, s->m->vocab_bytes, &s->err),
        &s->err);
    for (size_t i = 0; i < PROMPTS; i++) {
        for (size_t k = 0; k < 4; k++) s->ids[i][k] = (int64_t)((17 * i + 5 * k) % 250);
        s->in[i] = (pare_input){.batch = 1, .tokens = 1 + i % 4, .ids = s->ids[i]};
    }
}

static void close_scene(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
}

static void on_begin(void *self, size_t i)
{
    scene *const s = self;
    assert_int_equal(i, s->begun++); /* in their order */
}

static void on_token(void *self, size_t i, int64_t id)
{
    scene *const s = self;
    assert_int_equal(s->made.each[i].ids[s->made.each[i].n - 1], id);
    s->tokens++;
}

static void on_end(void *self, size_t i, pare_generate_end why)
{
    scene *const s = self;
    assert_int_equal(s->made.each[i].end, why);
    s->ended++;
}

static bool on_round(void *self)
{
    scene *const s = self;
    return s->rounds++ < s->most_rounds;
}

static void generate(scene *s)
{
    const pare_generate_opts o = {.tokenizer = s->tok,
                                  .tokens = TOKENS,
                                  .sample = PARE_SAMPLE_OPTS_DEFAULT,
                                  .seed = 3,
                                  .events = {s, on_begin, on_token, on_end, on_round}};
    s->begun = s->tokens = s->ended = s->rounds = 0;
    assert_ok(
        pare_generate(&s->made, s->a, s->m, &(pare_inputs){PROMPTS, s->in}, &o, NULL, &s->err),
        &s->err);
    assert_int_equal(s->made.stats.tokens, s->tokens);
}

static void each_prompt_is_continued_as_if_it_were_alone(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, 64);
    generate(&s);
    assert_true(s.begun == PROMPTS && s.ended == PROMPTS);
    for (size_t i = 0; i < PROMPTS; i++) {
        const pare_sample_opts sample = PARE_SAMPLE_OPTS_DEFAULT;
        pare_sampler by;
        pare_decoder *d = NULL;
        const float *logits;
        size_t n = 0;
        assert_ok(pare_sampler_new(&by, s.a, pare_model_outputs(s.m), &sample, 3, 0, &s.err),
                  &s.err);
        assert_ok(pare_decoder_new(&d, s.m, 0, NULL, &s.err), &s.err);
        assert_ok(pare_decoder_prefill(d, s.in[i].ids, s.in[i].tokens, &logits, &s.err), &s.err);
        for (int64_t id; n < TOKENS; n++) {
            assert_ok(pare_sample(&id, &by, logits, &s.err), &s.err);
            if (pare_is_end_of_text(s.tok, id)) break;
            assert_int_equal(s.made.each[i].ids[n], id);
            assert_ok(pare_decoder_step(d, id, &logits, &s.err), &s.err);
        }
        assert_int_equal(s.made.each[i].n, n);
        assert_int_equal(s.made.each[i].end, n < TOKENS ? PARE_END_TEXT : PARE_END_TOKENS);
        pare_decoder_free(d);
    }
    close_scene(&s);
}

static void a_full_context_ends_a_text(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, 6);
    generate(&s);
    for (size_t i = 0; i < PROMPTS; i++) {
        assert_true(s.made.each[i].end == PARE_END_CONTEXT || s.made.each[i].end == PARE_END_TEXT);
        assert_le(s.in[i].tokens + s.made.each[i].n, 7); /* the last one is not read */
    }
    close_scene(&s);
}

static void it_stops_when_a_round_is_refused(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, 64);
    s.most_rounds = 2;
    generate(&s);
    assert_int_equal(s.rounds, 3);
    assert_int_equal(s.made.each[0].n, 3); /* one when it was read, one for each round */
    assert_int_equal(s.made.each[PROMPTS - 1].end, PARE_END_NONE);
    close_scene(&s);
}

static void models_that_write_no_text_are_refused(void **state)
{
    (void)state;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = PARE_RANDOM_BERT;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_non_null(pare_generate_refuses(m));
    pare_model_free(m);
}

static void numbers_of_tokens_that_no_memory_holds_are_refused(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, 16);
    const size_t wrong[] = {0, SIZE_MAX, (size_t)1 << 32};
    for (size_t i = 0; i < 3; i++) {
        pare_generate_opts o = {
            .tokenizer = s.tok, .tokens = wrong[i], .sample = PARE_SAMPLE_OPTS_DEFAULT};
        assert_int_equal(
            pare_generate(&s.made, s.a, s.m, &(pare_inputs){PROMPTS, s.in}, &o, NULL, &s.err),
            PARE_ERR_INPUT);
        assert_contains(s.err.msg, "tokens were asked for");
    }
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_prompt_is_continued_as_if_it_were_alone),
        cmocka_unit_test(a_full_context_ends_a_text),
        cmocka_unit_test(it_stops_when_a_round_is_refused),
        cmocka_unit_test(models_that_write_no_text_are_refused),
        cmocka_unit_test(numbers_of_tokens_that_no_memory_holds_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
