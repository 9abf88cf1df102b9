/* Tests src/width/cut_subspaces.c: `exact` loses nothing, `lowrank` loses what the residual
 * says. */
#include "width_nets.h"

static const size_t alone[] = {3, 17, SIZE_MAX};

/* Shirzad 2024, Proposition 4.1: hidden maps with 4 directions, features of rank 3; several
 * heads. */
static void at_the_rank_of_the_data_outputs_are_equal(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        stage s;
        pare_model *cut = NULL;
        pare_width_report r;
        double scale;
        stage_open(&s, seed);
        const size_t heads = 1 + seed % 2;
        const net n = rand_net(
            &s, (net_shape){.features = 12, .dim = 24, .layers = 3, .heads = heads, .lowrank = 4});
        const pare_mat x = rand_product(&s, 60, 3, 12);
        const pare_graph g = rand_graph(&s, 60, 5, alone);
        const pare_width_opts o = {.method = PARE_WIDTH_EXACT, .max_move = INFINITY, .trials = 1};
        const double moved = cut_moves(&s, &cut, &r, &scale, &n, &x, &g, &o);
        if (!(moved <= 1e-8 * scale))
            fail_msg("seed %llu: outputs move by %g of %g", (unsigned long long)seed, moved, scale);
        /* rank 3 in; pooled: heads times that; hidden: 4 units and what follows them. An isolated
         * node adds a point to each. */
        assert_int_equal(r.points[0].after, 3);
        assert_true(r.points[1].after <= 3 * heads);
        assert_true(r.points[2].after <= 4 && r.hidden[0].after <= 4);
        assert_true(r.dim < 24 && r.qk_dim <= 4);
        pare_model_free(cut);
        stage_close(&s);
    }
}

/* The skip and the heads multiply the rank: 6 of the data become 2 + 2 * 2 (+1). */
static void with_a_skip_and_heads_the_stream_has_a_higher_rank(void **state)
{
    (void)state;
    stage s;
    pare_model *cut = NULL;
    pare_width_report r;
    double scale;
    stage_open(&s, 5);
    const net n = rand_net(
        &s,
        (net_shape){
            .features = 12, .dim = 24, .layers = 1, .classes = 3, .heads = 2, .residual = true});
    const pare_mat x = rand_product(&s, 60, 2, 12);
    const pare_graph g = rand_graph(&s, 60, 5, alone);
    const pare_width_opts o = {.method = PARE_WIDTH_EXACT, .max_move = INFINITY, .trials = 1};
    const double moved = cut_moves(&s, &cut, &r, &scale, &n, &x, &g, &o);
    assert_le(moved, 1e-7 * scale);
    assert_int_equal(r.points[0].after, 2);
    assert_true(r.points[1].after > 2 && r.points[1].after <= 7);
    pare_model_free(cut);
    stage_close(&s);
}

/* All dimensions kept, in new coordinates: equal, also for nodes without keys and value
 * biases; with the stream in its old ones too. */
static void with_all_dimensions_nothing_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        stage s;
        pare_model *cut = NULL;
        pare_width_report r;
        double scale;
        stage_open(&s, seed);
        const net n = rand_net(&s, (net_shape){.features = 12,
                                               .dim = 16,
                                               .layers = 2,
                                               .classes = 3,
                                               .heads = 2,
                                               .residual = true,
                                               .ffn = 20});
        const pare_mat x = rand_mat(&s, 60, 12, 1);
        const pare_graph g = rand_graph(&s, 60, 5, alone);
        pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
        o.method = PARE_WIDTH_LOWRANK;
        o.dim = 16;
        o.basis = (pare_width_basis)(seed % 2);
        if (seed > 3) o.ffn_dim = 20;
        if (seed > 4) o.qk_dim = 8;
        const double moved = cut_moves(&s, &cut, &r, &scale, &n, &x, &g, &o);
        assert_le(moved, 1e-9 * scale);
        assert_int_equal(r.points[0].after, 12); /* its rank: the guard */
        pare_model_free(cut);
        stage_close(&s);
    }
}

/* Shirzad 2024, Theorem 4.2: features and hidden maps at distance eps from low rank: an error of
 * order eps. */
static void the_error_is_of_the_order_of_the_distance(void **state)
{
    (void)state;
    double error[3];
    for (int k = 0; k < 3; k++) {
        const double eps = pow(10, -3 - k);
        stage s;
        pare_model *cut = NULL;
        pare_width_report r;
        stage_open(&s, 5);
        const net n = rand_net(
            &s, (net_shape){.features = 12, .dim = 24, .layers = 3, .heads = 1, .lowrank = 4});
        pare_mat x = rand_product(&s, 60, 4, 12);
        const pare_graph g = rand_graph(&s, 60, 5, NULL);
        for (size_t i = 0; i < 60 * 12; i++) x.v[i] = 0.3 * x.v[i] + eps * pare_rng_normal(&s.rng);
        for (size_t l = 0; l < 3; l++)
            for (size_t i = 0; i < 24 * 24; i++)
                n.layers[l].w1.v[i] += eps * pare_rng_normal(&s.rng);
        pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
        o.method = PARE_WIDTH_LOWRANK;
        o.dim = 5;
        error[k] = cut_moves(&s, &cut, &r, NULL, &n, &x, &g, &o);
        pare_model_free(cut);
        stage_close(&s);
    }
    for (int k = 0; k < 2; k++) {
        assert_true(error[k] / error[k + 1] > 5);
        assert_true(error[k] / error[k + 1] < 20);
    }
}

static void outputs_are_the_golden_ones(void **state)
{
    (void)state;
    NEED_SHARED(TINY);
    stage s;
    tiny t;
    pare_model *cut = NULL;
    pare_width_report r;
    stage_open(&s, 1);
    tiny_open(&s, &t);
    const pare_inputs set = {1, &t.in};
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = PARE_WIDTH_LOWRANK;
    o.dim = 6;
    assert_ok(pare_width(&cut, &r, t.m, &set, &o, NULL, &s.err), &s.err);
    const pare_mat want = tiny_mat(&s, &t, "static6_out"), got = output_of(&s, cut, &t.in);
    assert_le(mats_apart(&got, &want), 1e-7);
    pare_model_free(cut);
    tiny_close(&t);
    stage_close(&s);
}

/* More dimensions, less error; and every part can be cut alone. */
static void each_dimension_can_be_cut_alone(void **state)
{
    (void)state;
    static const size_t sizes[][3] = {{8, 0, 0}, {0, 4, 0}, {0, 0, 10}, {8, 3, 10}};
    for (size_t k = 0; k < 4; k++) {
        stage s;
        pare_model *cut = NULL;
        pare_width_report r;
        double scale;
        stage_open(&s, 5);
        const net n = rand_net(&s, (net_shape){.features = 12,
                                               .dim = 16,
                                               .layers = 2,
                                               .classes = 3,
                                               .heads = 2,
                                               .residual = true,
                                               .ffn = 20});
        const pare_mat x = rand_mat(&s, 60, 12, 1);
        const pare_graph g = rand_graph(&s, 60, 5, NULL);
        pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
        o.method = PARE_WIDTH_LEVERAGE;
        o.dim = sizes[k][0];
        o.qk_dim = sizes[k][1];
        o.ffn_dim = sizes[k][2];
        const double moved = cut_moves(&s, &cut, &r, &scale, &n, &x, &g, &o);
        assert_true(moved > 0 && moved < scale);
        const pare_block *const b = &cut->blocks[1];
        assert_int_equal(b->attn.din, o.dim ? o.dim : 16);
        assert_int_equal(b->attn.heads[1].dk, o.qk_dim ? o.qk_dim : 8);
        assert_int_equal(b->ffn.layers[0].w.rows, o.ffn_dim ? o.ffn_dim : o.dim ? o.dim : 20);
        assert_true(b->attn.heads[0].scale == n.layers[1].heads[0].scale);
        if (o.qk_dim) assert_true(r.heads[0].scores_est > 0 && r.heads[0].least_est > 0);
        pare_model_free(cut);
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_rank_of_the_data_outputs_are_equal),
        cmocka_unit_test(with_a_skip_and_heads_the_stream_has_a_higher_rank),
        cmocka_unit_test(with_all_dimensions_nothing_changes),
        cmocka_unit_test(the_error_is_of_the_order_of_the_distance),
        cmocka_unit_test(outputs_are_the_golden_ones),
        cmocka_unit_test(each_dimension_can_be_cut_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
