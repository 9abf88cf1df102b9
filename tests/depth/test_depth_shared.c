/* Real nets: the sentiment model whose attention is uniform for all it matters, and the small
 * character model, of which one exact layer is enough. */
#include "depth_texts.h"
#include <claims.h>
#include <pare/depth.h>

#define BERT "../shared/data/models/bert_sst_3layer.safetensors"
enum { SENTENCES = 60, LENGTH = 24 };

/* Sentences of words at random: what holds for all of them holds for these. */
static void attention_of_the_sentiment_model_is_uniform(void **state)
{
    (void)state;
    NEED_SHARED(BERT);
    pare_err err = {0};
    pare_model *m = NULL, *g = NULL;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report r;
    pare_inputs set;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    assert_ok(pare_model_load(&m, BERT, &err), &err);
    assert_ok(pare_inputs_random(&set, a, m, SENTENCES, LENGTH, 7, &err), &err);
    o.kind = PARE_ATTN_UNIFORM;
    o.layers = 0;
    assert_false(pare_depth_needs_data(m, &o));
    assert_ok(pare_depth(&g, &r, m, NULL, &o, NULL, &err), &err);
    for (size_t b = 0; b < g->nblocks; b++)
        assert_true(!pare_has(&g->blocks[b].attn.wq) && !pare_has(&g->blocks[b].attn.wk));
    assert_true(pare_model_size(g, 1, 0).bytes < pare_model_size(m, 1, 0).bytes);
    const pare_cert claimed = {.data = {.kind = "random", .count = SENTENCES, .tokens = LENGTH}};
    pare_cert cert = claimed;
    assert_ok(pare_depth_prover.prove(&cert, a, &claimed, m, g, &set, NULL, &err), &err);
    print_message("measured %.3g, proven %.3g, for all sequences %.3g\n", cert.measured,
                  cert.proven, pare_cert_apriori(&cert));
    assert_true(cert.measured < 1e-6 && cert.proven < 1e-6);
    assert_true(claim_value(&cert, PARE_ROWS_CHANGED) == 0); /* all labels are certain */
    const pare_claim *const score = claim_must(&cert, PARE_APRIORI_SCORE);
    assert_string_equal(score->domain, "all token sequences");
    assert_true(score->value <= 1e-4);
    pare_model_free(m);
    pare_model_free(g);
    pare_arena_free(a);
}

/* An independent numpy implementation (nats above the model): pool .0285, linear .0616; those of
 * zero and of the best of all kinds are in long_depth_shared.c. */
static void one_layer_of_the_character_model_is_enough(void **state)
{
    (void)state;
    NEED_SHARED(CHARACTERS);
    task l;
    open_characters(&l);
    const double base = nats(&l, l.m);
    const double pool = nats_of_cut(&l, PARE_ATTN_POOL, 1, PARE_DEPTH_GREEDY) - base;
    const double linear = nats_of_cut(&l, PARE_ATTN_LINEAR, 1, PARE_DEPTH_GREEDY) - base;
    print_message("above %.4f nats: pool %.4f, linear %.4f\n", base, pool, linear);
    assert_true(pool <= 0.05);
    assert_near(linear, 0.0616, 0.004);
    close_characters(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_of_the_sentiment_model_is_uniform),
        cmocka_unit_test(one_layer_of_the_character_model_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
