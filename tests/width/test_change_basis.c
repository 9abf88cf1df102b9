/* Tests src/width/change_basis.c: outputs stay, skips become identities, singular ones are
 * refused. */
#include "width_nets.h"

static net dense_net(stage *s, size_t d)
{
    net n = rand_net(
        s, (net_shape){
               .features = 4, .dim = d, .layers = 3, .classes = 3, .heads = 2, .residual = true});
    for (size_t l = 0; l < 3; l++) {
        n.layers[l].r1 = rand_map(s, d, d, 1);
        n.layers[l].r2 = rand_map(s, d, d, 1);
    }
    return n;
}

static void outputs_stay_and_skips_are_identities(void **state)
{
    (void)state;
    static const size_t alone[] = {2, SIZE_MAX};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        stage st, *const s = &st;
        double cond = 0;
        stage_open(s, seed);
        const net n = dense_net(s, 6), fixed = net_identity_skips(&s->w, &n, &cond);
        assert_work(s);
        const pare_graph g = rand_graph(s, 15, 4, alone);
        const pare_mat x = rand_mat(s, 15, 4, 1);
        const pare_input in = input_of(&x, &g);
        pare_model *const a = model_of(s, &n), *const b = model_of(s, &fixed);
        const pare_mat y = output_of(s, a, &in), z = output_of(s, b, &in);
        assert_true(cond > 1);
        assert_le(mats_apart(&y, &z), 1e-13 * cond * cond + 1e-9);
        for (size_t l = 0; l < 3; l++) {
            assert_int_equal(b->blocks[l].attn.skip.kind, PARE_SKIP_IDENTITY);
            assert_int_equal(b->blocks[l].ffn.skip.kind, PARE_SKIP_IDENTITY);
        }
        pare_model_free(a);
        pare_model_free(b);
        stage_close(s);
    }
}

static void what_has_no_inverse_is_refused_by_name(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        stage st, *const s = &st;
        double cond;
        stage_open(s, 3);
        net n = dense_net(s, 6);
        if (what == 0) /* a gain of 0 in a batch norm: a row of zeros */
            for (size_t j = 0; j < 6; j++) pare_row_mut(&n.layers[1].r2, 4)[j] = 0;
        if (what == 1) n.layers[1].r2.v = NULL;
        if (what == 2) n.layers[1].r2.rows = 5;
        (void)net_identity_skips(&s->w, &n, &cond);
        assert_int_equal(s->w.st, PARE_ERR_INPUT);
        assert_non_null(strstr(s->err.msg, "layer 1: the skip around the hidden layer is"));
        stage_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_stay_and_skips_are_identities),
        cmocka_unit_test(what_has_no_inverse_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
