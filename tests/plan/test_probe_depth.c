/* Tests src/plan/probe_depth*.c and probe_depth_verdict.c: networks whose verdict is known, what is
 * proven is never below what is seen, and the model of the showcase. */
#include <pare_test.h>
#include "plan/probe.h"
#include "../../studies/attention_nets.h"

typedef struct scene {
    pare_arena *a;
    pare_err err;
    pare_model *m;
    pare_dataset data;
    const int64_t *target[4];
} scene;

static void scene_layers(scene *s, size_t layers, double size, bool no_skip)
{
    const san_shape shape = {.layers = layers,
                             .heads = 2,
                             .dim = 4,
                             .scale = 0.5,
                             .size = size,
                             .draw = SAN_EVEN,
                             .no_skip = no_skip};
    const san_tokens t = {.n = 4, .tokens = 8, .dim = 4, .spread = 1};
    static const int64_t none[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
    pare_rng rng = pare_rng_at(3, 0);
    memset(s, 0, sizeof *s);
    s->a = pare_arena_new();
    assert_non_null(s->a);
    assert_ok(san_new(&s->m, &shape, &rng, &s->err), &s->err);
    assert_ok(san_inputs(&s->data.inputs, s->a, &t, &rng, &s->err), &s->err);
    for (size_t i = 0; i < 4; i++) s->target[i] = none;
    s->data.target = s->target;
    s->data.task = PARE_TASK_TOKENS;
}

static void scene_open(scene *s, double size, bool no_skip)
{
    scene_layers(s, 3, size, no_skip);
}

static pare_probe *probe(scene *s)
{
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    pare_probe *p = NULL;
    o.part = PARE_PROBE_DEPTH;
    assert_ok(pare_probe_model(&p, s->m, &s->data, &o, NULL, &s->err), &s->err);
    assert_true(p->has_depth);
    return p;
}

static void scene_close(scene *s, pare_probe *p)
{
    pare_probe_free(p);
    pare_model_free(s->m);
    pare_arena_free(s->a);
}

static void small_weights_are_collapsible_and_it_is_proved(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 0.02, false);
    pare_probe *const p = probe(&s);
    const pare_depth_probe *const d = &p->depth;
    assert_int_equal(d->verdict, PARE_DEPTH_PROVED);
    assert_string_equal(d->violated, "");
    assert_contains(d->why, "parallel+uniform"); /* the least of the four */
    assert_contains(d->why, "all inputs with entries at most");
    assert_int_equal(d->nbounds, 4);
    for (size_t i = 0; i < 4; i++) assert_le(d->bounds[i].measured, d->bounds[i].bound.v);
    assert_true(d->bounds[3].bound.v < d->bounds[1].bound.v);
    assert_true(d->bounds[1].bound.v < d->bounds[0].bound.v);
    assert_int_equal(d->stats.fitted, 2);
    assert_int_equal(d->stats.inputs, 2);
    scene_close(&s, p);
}

static void large_weights_are_not_and_the_range_is_named(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 3, false);
    pare_probe *const p = probe(&s);
    assert_int_equal(p->depth.verdict, PARE_DEPTH_NOT);
    assert_contains(p->depth.violated, "logit ranges are not small: block");
    assert_contains(p->depth.why, "measured");
    scene_close(&s, p);
}

/* A curve begins with nothing lost; every cost is that of the model that pare depth would write. */
static void curves_cost_what_the_cut_models_cost(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 0.7, false);
    pare_probe *const p = probe(&s);
    const pare_replacement_costs *const c = &p->depth.costs;
    assert_int_equal(c->ncurves, PARE_DEPTH_KINDS);
    for (size_t i = 0; i < c->ncurves; i++) {
        assert_near(c->curves[i].points[0].error, 0, 0);
        assert_int_equal(c->curves[i].points[0].exact, 3);
        assert_int_equal(c->curves[i].points[3].exact, 0);
    }
    assert_near(c->curves[0].points[3].lost, 1, 1e-12); /* zero loses all of it */
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report report;
    pare_model *cut = NULL;
    double *y, *z;
    size_t n;
    const pare_inputs heldout = {2, s.data.inputs.in + 2};
    o.kind = PARE_ATTN_UNIFORM;
    o.layers = 0;
    assert_ok(pare_depth(&cut, &report, s.m, NULL, &o, NULL, &s.err), &s.err);
    assert_ok(san_answers(&y, &n, s.a, s.m, &heldout, &s.err), &s.err);
    assert_ok(san_answers(&z, &n, s.a, cut, &heldout, &s.err), &s.err);
    const double error = san_distance(y, z, n) / san_distance(y, NULL, n);
    assert_near(c->curves[2].points[3].error, error, 1e-9);
    assert_near(p->depth.bounds[1].measured, san_largest(y, z, n), 1e-12);
    pare_model_free(cut);
    scene_close(&s, p);
}

static void a_layer_without_skip_refuses_zero(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 0.7, true);
    pare_probe *const p = probe(&s);
    assert_false(p->depth.stats.layers[0].skip);
    assert_contains(p->depth.costs.kinds[0][0].refused, "no skip");
    assert_true(isnan(p->depth.costs.kinds[0][0].loo));
    assert_contains(p->depth.bounds[0].why, "no skip");
    scene_close(&s, p);
}

static void the_budget_of_multiplications_is_kept(void **state)
{
    (void)state;
    scene s;
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    pare_probe *p = NULL;
    scene_open(&s, 0.7, false);
    o.part = PARE_PROBE_DEPTH;
    o.depth_macs = 1000;
    assert_ok(pare_probe_model(&p, s.m, &s.data, &o, NULL, &s.err), &s.err);
    assert_contains(p->depth.costs.skipped, "multiplications");
    assert_contains(p->untold[p->nuntold - 1], "depth_macs");
    assert_int_equal(p->depth.costs.ncurves, 0);
    scene_close(&s, p);
}

/* A single attention: to keep the last of one replaces nothing, and nothing is claimed of it. */
static void one_attention_that_stays_is_no_collapse(void **state)
{
    (void)state;
    const double sizes[] = {0.02, 0.5, 3};
    for (size_t k = 0; k < 3; k++) {
        scene s;
        scene_layers(&s, 1, sizes[k], false);
        pare_probe *const p = probe(&s);
        const pare_depth_probe *const d = &p->depth;
        assert_int_equal(d->nbounds, 2); /* uniform, and the same beside one another */
        for (size_t i = 0; i < d->nbounds; i++) assert_contains(d->bounds[i].what, "uniform");
        assert_null(strstr(d->why, "0 of 1"));
        if (d->verdict == PARE_DEPTH_PROVED) assert_contains(d->why, "in all 1 attentions");
        if (d->verdict == PARE_DEPTH_MEASURED) assert_contains(d->why, "for 1 of 1 attentions");
        if (k == 0) assert_int_equal(d->verdict, PARE_DEPTH_PROVED);
        if (k == 2) assert_int_equal(d->verdict, PARE_DEPTH_NOT);
        scene_close(&s, p);
    }
}

/* Weights that no proof reaches and that a fitted kind replaces: measured, with what is lost. */
static void what_a_kind_replaces_on_the_data_is_measured(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 0.2, false);
    pare_probe *const p = probe(&s);
    assert_int_equal(p->depth.verdict, PARE_DEPTH_MEASURED);
    assert_contains(p->depth.why, "attentions loses");
    assert_contains(p->depth.why, "measured");
    assert_true(*p->depth.violated != 0);
    scene_close(&s, p);
}

/* What was not tried is not known; that it is not possible would be another thing. */
static void what_was_not_tried_is_not_known(void **state)
{
    (void)state;
    for (int budget = 0; budget < 2; budget++) {
        scene s;
        pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
        pare_probe *p = NULL;
        scene_open(&s, 0.2, false); /* it can be: see above */
        o.part = PARE_PROBE_DEPTH;
        o.no_cuts = !budget;
        if (budget) o.depth_macs = 1000;
        assert_ok(pare_probe_model(&p, s.m, &s.data, &o, NULL, &s.err), &s.err);
        assert_int_equal(p->depth.verdict, PARE_DEPTH_UNKNOWN);
        assert_string_equal(pare_depth_verdict_names[p->depth.verdict], "not known");
        assert_contains(p->depth.why, "was not tried");
        assert_contains(p->depth.why, budget ? "multiplications" : "no_cuts");
        scene_close(&s, p);
    }
}

/* Kinds that were tried and lose too much are counted; others may do. */
static void what_was_tried_and_fails_says_how_much_it_loses(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 3, false);
    pare_probe *const p = probe(&s);
    assert_string_equal(pare_depth_verdict_names[p->depth.verdict],
                        "not collapsible by the kinds tried");
    assert_contains(p->depth.why, "the best of 8 kinds");
    assert_contains(p->depth.why, "at most 10 % would be acceptable");
    scene_close(&s, p);
}

#define BERT  "../shared/data/models/bert_sst_3layer.safetensors"
#define WORDS "../shared/data/models/bert_sst_vocab.txt"
#define SST   "../shared/data/text/sst_dev.tsv"

static void the_showcase_is_collapsible_and_why(void **state)
{
    (void)state;
    NEED_SHARED(SST);
    scene s = {.a = pare_arena_new()};
    pare_blob *words = NULL;
    assert_ok(pare_model_load(&s.m, BERT, &s.err), &s.err);
    assert_ok(pare_blob_open(&words, WORDS, &s.err), &s.err);
    s.m->tokenizer = PARE_TOK_WORDS;
    s.m->vocab = words->data;
    s.m->vocab_bytes = words->bytes;
    assert_ok(pare_dataset_load(&s.data, s.a, s.m, SST, NULL, &s.err), &s.err);
    pare_probe *const p = probe(&s);
    const pare_depth_probe *const d = &p->depth;
    assert_int_equal(d->verdict, PARE_DEPTH_PROVED);
    assert_contains(d->why, "with uniform weights in all 3 attentions");
    assert_contains(d->why, "all token sequences");
    assert_contains(d->why, "logit ranges are at most");
    assert_le(d->bounds[1].difference.v, 3e-4);
    assert_le(d->bounds[1].measured, d->bounds[1].bound.v);
    for (size_t l = 0; l < 3; l++) {
        const pare_replacement_cost *const uniform = &d->costs.kinds[l][2];
        assert_le(uniform->local, d->stats.layers[l].bound[PARE_ATTN_UNIFORM - PARE_ATTN_ZERO].v);
    }
    pare_blob_release(words);
    scene_close(&s, p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_weights_are_collapsible_and_it_is_proved),
        cmocka_unit_test(large_weights_are_not_and_the_range_is_named),
        cmocka_unit_test(curves_cost_what_the_cut_models_cost),
        cmocka_unit_test(a_layer_without_skip_refuses_zero),
        cmocka_unit_test(the_budget_of_multiplications_is_kept),
        cmocka_unit_test(one_attention_that_stays_is_no_collapse),
        cmocka_unit_test(what_a_kind_replaces_on_the_data_is_measured),
        cmocka_unit_test(what_was_not_tried_is_not_known),
        cmocka_unit_test(what_was_tried_and_fails_says_how_much_it_loses),
        cmocka_unit_test(the_showcase_is_collapsible_and_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
