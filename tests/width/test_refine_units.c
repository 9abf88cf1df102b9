/* Tests src/width/refine_units.c: hidden units moved to where they say more. */
#include "width_nets.h"

enum { N = 1500 /* more than one block of nodes */ };

/* y = z A + act(W z + b) B + c */
static pare_mat said_by(stage *s, const net_layer *l, const pare_mat *z, const pare_mat *a,
                        const pare_mat *b)
{
    const pare_mat p = layer_hidden(&s->w, l, z);
    pare_mat y = mat_mul(&s->w, z, false, a, false);
    assert_work(s);
    pare_gemm(&y, 1, &p, false, b, false, 1);
    for (size_t i = 0; i < y.rows; i++) pare_row_mut(&y, i)[0] += 3;
    return y;
}

static net_layer rand_units(stage *s, size_t k, size_t d, pare_act act)
{
    return (net_layer){.w1 = rand_mat(s, k, d, 1), .b1 = rand_vec(s, k, 0.5), .act = act};
}

/* The squares that the best linear map leaves, by a fit that is not ours. */
static double squares_left(stage *s, const net_layer *l, const pare_mat *z, const pare_mat *y)
{
    const pare_mat p = layer_hidden(&s->w, l, z);
    pare_mat phi = mat_zeros(&s->w, z->rows, z->cols + p.cols);
    for (size_t i = 0; i < z->rows; i++) {
        memcpy(pare_row_mut(&phi, i), pare_row(z, i), z->cols * sizeof(double));
        memcpy(pare_row_mut(&phi, i) + z->cols, pare_row(&p, i), p.cols * sizeof(double));
    }
    const rrr_fit f = rrr(&s->w, &phi, y, y->cols, NULL);
    const pare_mat h = rrr_coords(&s->w, &f, &phi), back = affine_rows(&s->w, &h, &f.u, f.to);
    double sum = 0;
    assert_work(s);
    for (size_t i = 0; i < y->rows; i++)
        for (size_t j = 0; j < y->cols; j++)
            sum += pow(pare_row(y, i)[j] - pare_row(&back, i)[j], 2);
    return sum;
}

/* Units that were moved a little find back: nothing is left but rounding. With a wrong slope
 * or a wrong equation it would still go down, but not there in so few steps. */
static void units_find_back_to_where_they_were(void **state)
{
    (void)state;
    static const pare_act acts[] = {PARE_ACT_RELU, PARE_ACT_GELU, PARE_ACT_TANH, PARE_ACT_SILU};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        stage s;
        stage_open(&s, seed);
        const pare_mat z = rand_mat(&s, N, 4, 1), a = rand_mat(&s, 4, 6, 1);
        const pare_mat b = rand_mat(&s, 3, 6, 1);
        net_layer l = rand_units(&s, 3, 4, acts[seed % 4]);
        const pare_mat y = said_by(&s, &l, &z, &a, &b);
        for (size_t i = 0; i < 12; i++) l.w1.v[i] += 0.1 * pare_rng_normal(&s.rng);
        const double before = squares_left(&s, &l, &z, &y);
        const units_fit f = refine_units(&s.w, &l, &z, &y, NULL);
        assert_work(&s);
        assert_near(f.before, before, 1e-4 * before);
        const double after = squares_left(&s, &l, &z, &y);
        if (!(after <= 2e-11 * before)) fail_msg("seed %d: %g -> %g", (int)seed, before, after);
        assert_near(f.after, after, 1e-3 * before);
        stage_close(&s);
    }
}

/* Whatever the target, the activation, dead units, few nodes: never more squares than before. */
static void it_never_says_less(void **state)
{
    (void)state;
    static const pare_act acts[] = {PARE_ACT_RELU, PARE_ACT_GELU, PARE_ACT_GELU_TANH,
                                    PARE_ACT_SILU, PARE_ACT_TANH, PARE_ACT_NONE};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        stage s;
        stage_open(&s, seed);
        const size_t n = seed % 3 ? 200 : 20;
        const pare_mat z = rand_mat(&s, n, 5, 1), y = rand_mat(&s, n, 4, 1);
        net_layer l = rand_units(&s, 4, 5, acts[seed % 6]);
        if (seed % 2) l.b1[1] = -1e3; /* of ReLU: dead */
        const double before = squares_left(&s, &l, &z, &y);
        refine_units(&s.w, &l, &z, &y, NULL);
        assert_work(&s);
        assert_le(squares_left(&s, &l, &z, &y), before * (1 + 1e-6) + 1e-9);
        stage_close(&s);
    }
}

/* Output 0 is about one unit, output 1 about another, and there is one unit: the metric says
 * which. */
static void the_metric_decides_where_to(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        stage s;
        stage_open(&s, 3);
        const pare_mat z = rand_mat(&s, N, 2, 1);
        pare_mat y = mat_zeros(&s.w, N, 2), g = mat_zeros(&s.w, 2, 2);
        for (size_t i = 0; i < N; i++)
            for (size_t j = 0; j < 2; j++) pare_row_mut(&y, i)[j] = fmax(pare_row(&z, i)[j], 0);
        g.v[0] = which ? 1e-3 : 1, g.v[3] = which ? 1 : 1e-3;
        net_layer l = {.w1 = rand_mat(&s, 1, 2, 0), .b1 = rand_vec(&s, 1, 0), .act = PARE_ACT_RELU};
        l.w1.v[0] = l.w1.v[1] = 1;
        refine_units(&s.w, &l, &z, &y, &g);
        assert_work(&s);
        assert_le(fabs(l.w1.v[!which]), 0.2 * fabs(l.w1.v[which]));
        stage_close(&s);
    }
}

static void many_units_are_left_alone(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 4);
    const pare_mat z = rand_mat(&s, 50, 16, 1), y = rand_mat(&s, 50, 16, 1);
    net_layer l = rand_units(&s, 19, 16, PARE_ACT_RELU);
    const pare_mat before = l.w1;
    assert_true(isnan(refine_units(&s.w, &l, &z, &y, NULL).after));
    assert_true(l.w1.v == before.v);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_find_back_to_where_they_were),
        cmocka_unit_test(it_never_says_less),
        cmocka_unit_test(the_metric_decides_where_to),
        cmocka_unit_test(many_units_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
