/* Tests src/depth/one_layer_search.c: the layer that a collapse keeps is asked for or the best, the
 * error that is reported is the model's, and the certificate of a collapse verifies. */
#include "depth_models.h"

/* Attention and skips alone. */
static void pure(stage *s, size_t layers, uint64_t seed)
{
    stage_open(s, PARE_RANDOM_BERT, layers, seed);
    s->m->embedding.norm = s->m->head.norm = (pare_norm){0};
    for (size_t b = 0; b < layers; b++) {
        s->m->blocks[b].ffn = (pare_ffn){0};
        s->m->blocks[b].attn.out_norm = (pare_norm){0};
    }
    assert_ok(pare_model_check(s->m, &s->err), &s->err);
}

static pare_status collapse(stage *s, pare_model **g, pare_depth_one_report *r, pare_collapse which,
                            size_t keep, const pare_inputs *data)
{
    const pare_depth_one_opts o = {.which = which, .keep = keep};
    return pare_depth_one_layer(g, r, s->m, data, &o, NULL, &s->err);
}

static void the_best_layer_is_kept(void **state)
{
    (void)state;
    static const pare_collapse keeping[] = {PARE_ONE_KEEP, PARE_ONE_KEEPBIAS,
                                            PARE_ONE_UNIFORM_KEEP};
    for (uint64_t seed = 1; seed < 4; seed++)
        for (size_t k = 0; k < 3; k++) {
            stage s;
            pare_depth_one_report best, r;
            pare_model *g = NULL;
            double least = INFINITY;
            size_t at = 0;
            pure(&s, 3, seed);
            assert_ok(collapse(&s, &g, &best, keeping[k], PARE_DEPTH_UNSET, &s.set), &s.err);
            assert_int_equal(g->nblocks, 1);
            pare_model_free(g);
            for (size_t b = 0; b < 3; b++) {
                assert_ok(collapse(&s, &g, &r, keeping[k], b, &s.set), &s.err);
                assert_int_equal(r.keep, b);
                if (r.error_est < least) least = r.error_est, at = b;
                pare_model_free(g);
            }
            assert_int_equal(best.keep, at);
            assert_true(best.error_est == least);
            stage_close(&s);
        }
}

static void every_collapse_is_certified(void **state)
{
    (void)state;
    for (int k = 0; k < PARE_ONES; k++) {
        stage s;
        pare_depth_one_report r;
        pare_model *g = NULL;
        pure(&s, 2, 7);
        assert_ok(collapse(&s, &g, &r, (pare_collapse)k, PARE_DEPTH_UNSET, &s.set), &s.err);
        const pare_cert claimed = {
            .reduction = "depth",
            .data = {.kind = "random", .count = INPUTS, .tokens = TOKENS, .candidates = 1}};
        pare_cert cert = claimed;
        assert_ok(pare_depth_prover.prove(&cert, s.a, &claimed, s.m, g, &s.set, NULL, &s.err),
                  &s.err);
        print_message("%s: measured %.3g, proven %.3g, a priori %.3g\n", pare_collapse_names[k],
                      cert.measured, cert.proven, pare_cert_apriori(&cert));
        assert_true(cert.measured > 0 && cert.measured <= cert.proven);
        assert_true(cert.proven <= pare_cert_apriori(&cert));
        assert_non_null(pare_cert_find(&cert, PARE_NEW_INPUT_OUTPUTS));
        assert_near(cert.measured, apart(&s, s.m, g), 1e-9);
        pare_model_free(g);
        stage_close(&s);
    }
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    stage s;
    pare_depth_one_report r;
    pare_model *g = NULL;
    pure(&s, 2, 8);
    assert_status(collapse(&s, &g, &r, PARE_ONE_KEEP, PARE_DEPTH_UNSET, NULL), PARE_ERR_USAGE,
                  &s.err);
    assert_contains(s.err.msg, "which layer");
    assert_status(collapse(&s, &g, &r, PARE_ONE_KEEP, 5, NULL), PARE_ERR_USAGE, &s.err);
    assert_status(collapse(&s, &g, &r, PARE_ONE_UNIFORM, 1, NULL), PARE_ERR_USAGE, &s.err);
    assert_status(collapse(&s, &g, &r, PARE_ONE_RANKONE, PARE_DEPTH_UNSET, NULL), PARE_ERR_USAGE,
                  &s.err);
    s.m->blocks[1].attn.skip.kind = PARE_SKIP_NONE;
    assert_status(collapse(&s, &g, &r, PARE_ONE_UNIFORM, PARE_DEPTH_UNSET, NULL), PARE_ERR_INPUT,
                  &s.err);
    assert_null(g);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_layer_is_kept),
        cmocka_unit_test(every_collapse_is_certified),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
