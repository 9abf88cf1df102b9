/* Tests src/width/omp.c: the units that say most about what comes next. */
#include "width_nets.h"

/* y = base A + a few units B: those and no others, whatever their order and size. */
static void units_that_were_planted_are_found(void **state)
{
    (void)state;
    static const size_t planted[] = {2, 7, 11};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        stage s;
        stage_open(&s, seed);
        const pare_mat base = rand_mat(&s, 200, 4, 1), a = rand_mat(&s, 4, 6, 30);
        pare_mat pool = rand_mat(&s, 200, 15, 1);
        for (size_t i = 0; i < 200; i++) /* a large one that the base explains, and an empty one */
            pare_row_mut(&pool, i)[0] = 100 * pare_row(&base, i)[1], pare_row_mut(&pool, i)[1] = 0;
        const pare_mat few = mat_take_cols(&s.w, &pool, planted, 3), b = rand_mat(&s, 3, 6, 1);
        pare_mat y = mat_mul(&s.w, &base, false, &a, false);
        pare_gemm(&y, 1, &few, false, &b, false, 1);
        const size_t *const which = omp_units(&s.w, &base, &pool, &y, 3, NULL);
        assert_work(&s);
        for (size_t k = 0; k < 3; k++) assert_int_equal(which[k], planted[k]);
        stage_close(&s);
    }
}

/* One unit is for output 0, a stronger one for output 1: the metric says which counts. */
static void the_metric_decides_what_counts(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 2);
    const pare_mat base = rand_mat(&s, 100, 2, 1), pool = rand_mat(&s, 100, 5, 1);
    pare_mat y = mat_zeros(&s.w, 100, 2), g = mat_zeros(&s.w, 2, 2);
    for (size_t i = 0; i < 100; i++) {
        pare_row_mut(&y, i)[0] = pare_row(&pool, i)[3];
        pare_row_mut(&y, i)[1] = 5 * pare_row(&pool, i)[1];
    }
    assert_int_equal(omp_units(&s.w, &base, &pool, &y, 1, NULL)[0], 1);
    g.v[0] = 100, g.v[3] = 0.001;
    assert_int_equal(omp_units(&s.w, &base, &pool, &y, 1, &g)[0], 3);
    assert_work(&s);
    stage_close(&s);
}

/* Dead units, fewer nodes than units, all of them asked for: every unit once. */
static void all_of_them_can_be_asked_for(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 2);
    const pare_mat base = rand_mat(&s, 5, 8, 1), y = rand_mat(&s, 5, 3, 1);
    const pare_mat pool = mat_zeros(&s.w, 5, 9);
    const size_t *const which = omp_units(&s.w, &base, &pool, &y, 9, NULL);
    assert_work(&s);
    for (size_t k = 0; k < 9; k++) assert_int_equal(which[k], k);
    stage_close(&s);
}

static void the_choice_is_the_golden_one(void **state)
{
    (void)state;
    NEED_SHARED(TINY);
    stage s;
    tiny t;
    stage_open(&s, 1);
    tiny_open(&s, &t);
    const pare_mat z = tiny_mat(&s, &t, "z0"), p = tiny_mat(&s, &t, "p0"),
                   h = tiny_mat(&s, &t, "h1"), want = tiny_mat(&s, &t, "omp_rows");
    const size_t *const which = omp_units(&s.w, &z, &p, &h, want.cols, NULL);
    assert_work(&s);
    for (size_t k = 0; k < want.cols; k++) assert_int_equal(which[k], (size_t)want.v[k]);
    tiny_close(&t);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(units_that_were_planted_are_found),
        cmocka_unit_test(the_metric_decides_what_counts),
        cmocka_unit_test(all_of_them_can_be_asked_for),
        cmocka_unit_test(the_choice_is_the_golden_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
