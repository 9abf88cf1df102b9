/* Tests src/width/hypotheses.c: figures on nets whose answers are known, the refusals, the
 * threads. */
#include "width_nets.h"
#include "linalg/matrix.h"
#include "width/hypotheses.h"

typedef struct scene {
    stage s;
    pare_model *m;
    pare_mat x;
    pare_graph g;
    pare_input in;
    pare_inputs set;
} scene;

/* A plain net of one layer; nodes come in two kinds, unit vectors e0 and e1. */
static void scene_open(scene *c, net_shape shape, size_t nodes)
{
    stage_open(&c->s, 5);
    const net n = rand_net(&c->s, shape);
    c->m = model_of(&c->s, &n);
    c->x = mat_zeros(&c->s.w, nodes, shape.features);
    for (size_t i = 0; i < nodes; i++) pare_row_mut(&c->x, i)[i % 2] = 1;
    c->g = rand_graph(&c->s, nodes, 3, NULL);
    c->in = input_of(&c->x, &c->g);
    c->set = (pare_inputs){1, &c->in};
    assert_work(&c->s);
}

static void scene_close(scene *c)
{
    pare_model_free(c->m);
    stage_close(&c->s);
}

static pare_width_facts width_facts(scene *c, pare_width_facts_opts o, int threads)
{
    pare_width_facts v;
    const pare_exec exec = {.threads = threads};
    assert_ok(pare_width_check_hypotheses(&v, c->s.w.arena, c->m, &c->set, &o, &exec, &c->s.err),
              &c->s.err);
    return v;
}

static void two_kinds_of_nodes_are_two_rows_four_pairs_and_one_dimension(void **state)
{
    (void)state;
    scene c;
    const pare_width_facts_opts o = PARE_WIDTH_FACTS_OPTS_DEFAULT;
    scene_open(&c, (net_shape){.features = 8, .dim = 8, .layers = 1, .heads = 1}, 40);
    const pare_width_facts v = width_facts(&c, o, 1);
    assert_int_equal(v.dim, 1); /* an eighth */
    assert_int_equal(v.nlayers, 1);
    assert_int_equal(v.npoints, 3);
    assert_int_equal(v.layers[0].rows, 2);
    assert_int_equal(v.layers[0].pairs, 4);
    assert_int_equal(v.layers[0].jl_dim, pare_jl_dim(4, 0.5, 0.01));
    /* Two points lie on a line; after attention rows are mixtures of two values: on a line too. */
    assert_near(v.points[0].residual_est, 0, 1e-12);
    assert_near(v.points[1].residual_est, 0, 1e-10);
    assert_true(v.points[2].residual_est > 1e-6); /* behind the relu no longer */
    /* Keys differ in one direction only: one dimension says all that softmax sees. */
    assert_int_equal(v.nheads, 1);
    assert_int_equal(v.heads[0].needed, 1);
    assert_int_equal(v.heads[0].dim, 8);
    assert_true(v.heads[0].form_est[0] > 0);
    assert_true(v.heads[0].form_est[1] < 1e-4 * v.heads[0].form_est[0]);
    scene_close(&c);
}

static void what_stands_in_the_way_is_seen(void **state)
{
    (void)state;
    scene plain, rich;
    pare_width_facts_opts o = PARE_WIDTH_FACTS_OPTS_DEFAULT;
    o.dim = 3;
    scene_open(&plain, (net_shape){.features = 8, .dim = 8, .layers = 1, .heads = 1}, 30);
    scene_open(&rich,
               (net_shape){.features = 8,
                           .dim = 8,
                           .layers = 2,
                           .heads = 2,
                           .classes = 2,
                           .ffn = 12,
                           .residual = true},
               30);
    const pare_width_facts a = width_facts(&plain, o, 1), b = width_facts(&rich, o, 1);
    assert_false(a.layers[0].skip || a.layers[0].bias);
    assert_true(a.layers[0].relu && a.layers[0].scaled);
    assert_true(b.layers[1].skip && b.layers[1].bias);
    assert_int_equal(b.layers[0].nheads, 2);
    assert_int_equal(b.layers[0].qk_dim, 4);
    assert_int_equal(b.nheads, 4);
    assert_int_equal(b.heads[3].layer, 1);
    assert_int_equal(b.heads[3].head, 1);
    assert_int_equal(b.layers[0].units, 12);
    /* The scores sum to the rank: none is below rank / units, none above 1. */
    for (size_t i = 0; i < 2; i++) {
        const pare_width_facts_layer *const l = &b.layers[i];
        assert_int_equal(l->rank, 3);
        assert_le((double)l->rank / (double)l->units, l->leverage_est);
        assert_le(l->leverage_est, 1 + 1e-12);
        assert_near(l->draws, ceil(6.52 * 3 * log(3 / 0.005)), 0);
    }
    /* Both heads see the same pairs: the lemma must serve twice as many. */
    assert_int_equal(b.layers[0].jl_dim, pare_jl_dim(2 * (double)b.layers[0].pairs, 0.5, 0.01));
    scene_close(&plain);
    scene_close(&rich);
}

static void clusters_are_those_of_the_theorem(void **state)
{
    (void)state;
    scene c;
    pare_width_facts_opts o = PARE_WIDTH_FACTS_OPTS_DEFAULT;
    o.clusters = 40;
    scene_open(&c, (net_shape){.features = 8, .dim = 8, .layers = 1, .heads = 1}, 20);
    const pare_width_facts fine = width_facts(&c, o, 1);
    o.clusters = 1;
    const pare_width_facts one = width_facts(&c, o, 1);
    assert_int_equal(one.layers[0].clusters, 1);
    assert_near(one.layers[0].separation_est, 0, 0);
    assert_near(one.layers[0].least_est, one.layers[0].most_est, 0);
    assert_le(fine.layers[0].clusters, 20); /* never more than nodes */
    assert_true(fine.layers[0].radius_est < one.layers[0].radius_est);
    scene_close(&c);
}

static void threads_do_not_show_and_the_model_is_left_alone(void **state)
{
    (void)state;
    scene c;
    const pare_width_facts_opts o = PARE_WIDTH_FACTS_OPTS_DEFAULT;
    char before[PARE_SHA256_HEX], after[PARE_SHA256_HEX];
    scene_open(
        &c,
        (net_shape){
            .features = 8, .dim = 16, .layers = 2, .heads = 2, .classes = 2, .residual = true},
        200);
    assert_ok(pare_model_sha256(before, c.m, &c.s.err), &c.s.err);
    const pare_width_facts a = width_facts(&c, o, 1), b = width_facts(&c, o, 3);
    for (size_t i = 0; i < a.nlayers; i++) {
        assert_memory_equal(&a.layers[i].radius_est, &b.layers[i].radius_est, sizeof(double));
        assert_memory_equal(&a.layers[i].leverage_est, &b.layers[i].leverage_est, sizeof(double));
    }
    for (size_t i = 0; i < a.nheads; i++)
        assert_memory_equal(a.heads[i].form_est, b.heads[i].form_est,
                            a.heads[i].n * sizeof(double));
    assert_ok(pare_model_sha256(after, c.m, &c.s.err), &c.s.err);
    assert_string_equal(before, after);
    scene_close(&c);
}

static void models_of_other_forms_are_refused_by_name(void **state)
{
    (void)state;
    stage s;
    pare_model *m = NULL;
    pare_inputs set;
    pare_width_facts v;
    const pare_width_facts_opts o = PARE_WIDTH_FACTS_OPTS_DEFAULT;
    const pare_random_model_opts r = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    stage_open(&s, 1);
    assert_ok(pare_random_model(&m, &r, &s.err), &s.err);
    assert_ok(pare_inputs_random(&set, s.w.arena, m, 1, 8, 1, &s.err), &s.err);
    assert_status(pare_width_check_hypotheses(&v, s.w.arena, m, &set, &o, NULL, &s.err),
                  PARE_ERR_INPUT, &s.err);
    assert_contains(s.err.msg, "ids");
    pare_model_free(m);
    scene c;
    scene_open(&c, (net_shape){.features = 8, .dim = 8, .layers = 1, .heads = 1}, 8);
    pare_input two[2] = {c.in, c.in};
    const pare_inputs both = {2, two};
    assert_status(pare_width_check_hypotheses(&v, c.s.w.arena, c.m, &both, &o, NULL, &c.s.err),
                  PARE_ERR_INPUT, &c.s.err);
    assert_contains(c.s.err.msg, "2 inputs");
    scene_close(&c);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_kinds_of_nodes_are_two_rows_four_pairs_and_one_dimension),
        cmocka_unit_test(what_stands_in_the_way_is_seen),
        cmocka_unit_test(clusters_are_those_of_the_theorem),
        cmocka_unit_test(threads_do_not_show_and_the_model_is_left_alone),
        cmocka_unit_test(models_of_other_forms_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
