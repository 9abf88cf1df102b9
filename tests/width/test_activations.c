/* Tests src/width/activations.c, folded_net.c, net_forward.c: the streams are those of the model,
 * and a net is the model it was read from. */
#include "width_nets.h"

static void streams_are_the_golden_ones(void **state)
{
    (void)state;
    NEED_SHARED(TINY);
    stage s;
    tiny t;
    stage_open(&s, 1);
    tiny_open(&s, &t);
    const net n = net_read(&s.w, t.m);
    const activations p = activations_of(&s.w, t.m, &n, &t.in);
    assert_work(&s);
    const struct {
        const char *name;
        const pare_mat *got;
    } all[] = {{"h0", &p.h[0]}, {"z0", &p.z[0]}, {"p0", &p.p[0]}, {"h1", &p.h[1]}, {"h2", &p.h[2]}};
    for (size_t i = 0; i < 5; i++) {
        const pare_mat want = tiny_mat(&s, &t, all[i].name);
        assert_le(mats_apart(all[i].got, &want), 1e-12);
    }
    const pare_mat want = tiny_mat(&s, &t, "out"), got = output_of(&s, t.m, &t.in);
    assert_le(mats_apart(&got, &want), 1e-12);
    const double *const scores = head_scores(&s.w, &n.layers[0].heads[0], &p.h[0], &p.graph);
    const pare_mat scores0 = tiny_mat(&s, &t, "scores0");
    for (size_t e = 0; e < scores0.cols; e++) assert_near(scores[e], scores0.v[e], 1e-12);
    tiny_close(&t);
    stage_close(&s);
}

/* The same layer by our own steps. */
static void steps_are_those_of_the_forward_pass(void **state)
{
    (void)state;
    static const size_t alone[] = {3, 17, SIZE_MAX};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        stage s;
        stage_open(&s, seed);
        const net n = rand_net(&s, (net_shape){.features = 5,
                                               .dim = 8,
                                               .layers = 2,
                                               .classes = 3,
                                               .heads = seed % 2 ? 2 : 1,
                                               .ffn = 11,
                                               .residual = seed > 4});
        const pare_mat x = rand_mat(&s, 30, 5, 1);
        const pare_graph g = rand_graph(&s, 30, 4, alone);
        pare_model *const m = model_of(&s, &n);
        const pare_input in = input_of(&x, &g);
        const net back = net_read(&s.w, m);
        const activations p = activations_of(&s.w, m, &back, &in);
        for (size_t i = 0; i < 2; i++) {
            const pare_mat z = layer_attention(&s.w, &back.layers[i], &p.h[i], &p.graph);
            const pare_mat h = layer_ffn(&s.w, &back.layers[i], &z, &p.p[i]);
            assert_work(&s);
            if (!(mats_apart(&z, &p.z[i]) <= 1e-13 && mats_apart(&h, &p.h[i + 1]) <= 1e-13))
                fail_msg("seed %llu: a step differs", (unsigned long long)seed);
        }
        assert_int_equal(net_parameters(&back), pare_model_size(m, 1, 1).parameters);
        pare_model_free(m);
        stage_close(&s);
    }
}

/* A key bias adds q_i.b to a whole row: softmax does not see it; and a row without keys is 0. */
static void a_row_without_keys_is_zero_and_row_constants_are_invisible(void **state)
{
    (void)state;
    static const size_t alone[] = {5, SIZE_MAX};
    stage s;
    stage_open(&s, 7);
    const net n = rand_net(
        &s, (net_shape){
                .features = 6, .dim = 10, .layers = 1, .classes = 2, .heads = 2, .residual = true});
    const pare_graph g = rand_graph(&s, 30, 4, alone);
    const pare_mat h = rand_mat(&s, 30, 10, 1);
    const pare_mat o = head_pooled(&s.w, &n.layers[0].heads[0], &h, &g);
    assert_work(&s);
    for (size_t j = 0; j < o.cols; j++) assert_true(pare_row(&o, 5)[j] == 0);
    double *const a = head_scores(&s.w, &n.layers[0].heads[0], &h, &g);
    double *const b = head_scores(&s.w, &n.layers[0].heads[0], &h, &g);
    for (size_t i = 0; i < g.n; i++)
        for (size_t e = g.ptr[i]; e < g.ptr[i + 1]; e++) b[e] += (double)i;
    assert_le(score_half_range(a, b, &g), 1e-13);
    b[g.ptr[2]] += 0.5; /* one entry of a row: half of it is seen */
    assert_near(score_half_range(a, b, &g), 0.25, 1e-13);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_the_golden_ones),
        cmocka_unit_test(steps_are_those_of_the_forward_pass),
        cmocka_unit_test(a_row_without_keys_is_zero_and_row_constants_are_invisible),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
