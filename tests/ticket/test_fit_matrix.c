/* Tests src/ticket/fit_matrix.c: what pare_ticket_fit gives is a masked random product, on the side
 * that was asked for. */
#include <pare/ticket.h>
#include <pare_test.h>

static void a_fit_is_near_and_both_sides_are_what_they_say(void **state)
{
    pare_err err = {0};
    double v[8] = {.3, -.2, .15, .4, -.35, .05, .22, -.1}, y[8];
    const pare_mat w = pare_mat_of(v, 8, 1);
    pare_mat out = pare_mat_of(y, 8, 1);
    pare_fit_opts o = {.seed = 3, .left = 1, .right = 2, .hidden = 24, .scale = 1};
    double most[2] = {0, 0};
    (void)state;
    /* 24 items an entry by the one column, 3 by the eight rows */
    for (int rows = 0; rows < 2; rows++) {
        o.side = rows ? PARE_FIT_ROWS : PARE_FIT_SMALLER;
        assert_ok(pare_ticket_fit(&out, &w, &o, NULL, &err), &err);
        for (size_t i = 0; i < 8; i++) most[rows] = fmax(most[rows], fabs(y[i] - v[i]));
    }
    assert_true(most[0] < 3e-7 && most[1] > .15);
}

static void donors_help_on_the_same_source(void **state)
{
    pare_err err = {0};
    double block = 0, best = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        double v[16], y[16];
        pare_rng r = pare_rng_at(seed, 3);
        for (size_t i = 0; i < 16; i++) v[i] = .25 * pare_rng_normal(&r);
        const pare_mat w = pare_mat_of(v, 4, 4);
        pare_mat out = pare_mat_of(y, 4, 4);
        for (int b = 0; b < 2; b++) {
            const pare_fit_opts o = {.seed = seed,
                                     .left = 1,
                                     .right = 2,
                                     .hidden = 40,
                                     .scale = 1,
                                     .best = b,
                                     .donors = 8};
            double e = 0;
            assert_ok(pare_ticket_fit(&out, &w, &o, NULL, &err), &err);
            for (size_t i = 0; i < 16; i++) e = fmax(e, fabs(y[i] - v[i]));
            *(b ? &best : &block) += log(e) / 10;
        }
    }
    assert_true(best < block - log(3));
}

static void what_cannot_be_is_refused(void **state)
{
    pare_err err = {0};
    double v[4] = {1, 2, 3, 4}, y[4];
    const pare_mat w = pare_mat_of(v, 2, 2);
    pare_mat out = pare_mat_of(y, 2, 2);
    pare_fit_opts o = {.left = 7, .right = 7, .hidden = 8, .scale = 1};
    (void)state;
    assert_status(pare_ticket_fit(&out, &w, &o, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "stream");
    o.right = 8, o.hidden = 1;
    assert_status(pare_ticket_fit(&out, &w, &o, NULL, &err), PARE_ERR_INPUT, &err);
    o.hidden = 8, v[0] = 5000;
    assert_status(pare_ticket_fit(&out, &w, &o, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "scale");
    static const double scales[] = {0, -1, NAN, INFINITY};
    v[0] = 1;
    for (size_t i = 0; i < 4; i++) {
        o.scale = scales[i];
        assert_status(pare_ticket_fit(&out, &w, &o, NULL, &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, "positive");
    }
    o.scale = 1, v[0] = NAN;
    assert_status(pare_ticket_fit(&out, &w, &o, NULL, &err), PARE_ERR_NONFINITE, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_is_near_and_both_sides_are_what_they_say),
        cmocka_unit_test(donors_help_on_the_same_source),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
