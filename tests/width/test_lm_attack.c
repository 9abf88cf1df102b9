/* A tenth of the attack on certificates of cut language models; long_lm_attack.c is all of it. */
#include "lm_attack.h"

static void no_certificate_is_broken(void **state)
{
    (void)state;
    la_many(1, 20);
}

/* Sliced models with rotary angles of millions, whose rounding is most of what is not exact. */
static void rounded_angles_are_covered(void **state)
{
    (void)state;
    la_tally sum = {.least = 1};
    const uint64_t first = 13, period = 2 * LA_TEMPERS * LA_METHODS * LA_KINDS;
    for (uint64_t k = 0; k < 8; k++) la_one(&sum, first + k * period);
    assert_int_equal(sum.by_kind[PARE_RANDOM_LLAMA], 8);
    assert_int_equal(sum.by_method[PARE_WIDTH_SLICE], 8);
}

static pare_model *with_heads(size_t heads)
{
    pare_err err = {0};
    pare_model *m = NULL;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = LA_DIM, o.heads = heads, o.vocab = LA_VOCAB, o.context = LA_TOKENS;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static size_t statements(const pare_model *f, const pare_model *g)
{
    pare_err err = {0};
    pare_inputs set;
    pare_arena *const a = pare_arena_new();
    const pare_prover *const prover = &pare_width_provers[PARE_WIDTH_SVD];
    const pare_cert claimed = {.reduction = prover->reduction,
                               .data = {.kind = "random", .count = 1, .tokens = LA_TOKENS}};
    pare_cert cert = claimed;
    assert_ok(pare_inputs_random(&set, a, f, 1, LA_TOKENS, 1, &err), &err);
    assert_ok(prover->prove(&cert, a, &claimed, f, g, &set, NULL, &err), &err);
    const size_t theorems =
        claims_of(&cert, PARE_ROWS_CHANGED) + claims_of(&cert, PARE_ATTENTION_RATIO);
    pare_arena_free(a);
    return theorems;
}

/* A certificate may come with any two models. */
static void nothing_is_said_of_weights_that_do_not_correspond(void **state)
{
    (void)state;
    pare_model *const f = with_heads(2), *const g = with_heads(4), *const h = with_heads(2);
    assert_int_equal(statements(f, h), 1 + f->nblocks);
    assert_int_equal(statements(f, g), 1);
    h->blocks[1].attn.kind = PARE_ATTN_POLY;
    h->blocks[1].attn.tolerance = 1e-3;
    assert_int_equal(statements(f, h), 1);
    pare_model_free(f);
    pare_model_free(g);
    pare_model_free(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_certificate_is_broken),
        cmocka_unit_test(rounded_angles_are_covered),
        cmocka_unit_test(nothing_is_said_of_weights_that_do_not_correspond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
