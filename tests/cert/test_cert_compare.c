/* Tests src/cert/compare.c: which claims follow from which proofs. */
#include "cert_toy.h"

static pare_status compare(toy *t, const pare_cert *claimed, const pare_cert *again)
{
    t->err = (pare_err){0};
    return pare_cert_compare(claimed, again, &t->err);
}

static pare_cert *proof(toy *t)
{
    pare_cert *const c = toy_made(t, '1', '2');
    c->claims[TOY_APRIORI].value = 8;
    c->claims[TOY_BALL].value = 1e-6;
    c->proven = 0.5;
    c->measured = 0.25;
    c->measured_radius = 1e-9;
    c->evidence = true;
    return c;
}

/* Without its claim number i. */
static void leave_out(pare_cert *c, size_t i)
{
    c->claims[i] = c->claims[--c->nclaims];
}

static double *bound(pare_cert *c, size_t i)
{
    double *const field[] = {&c->proven, &c->claims[TOY_APRIORI].value, &c->claims[TOY_BALL].value,
                             &c->claims[TOY_DRAWN].value};
    return field[i];
}

static void a_larger_bound_is_true_and_a_smaller_or_nan_one_is_not(void **state)
{
    (void)state;
    static const char *const names[] = {"proven", "apriori.outputs", "ball.outputs",
                                        "new_input.outputs"};
    toy t;
    toy_begin(&t);
    for (size_t i = 0; i < 4; i++) {
        pare_cert *const c = proof(&t);
        const pare_cert *const again = proof(&t);
        const double v = *bound(c, i);
        assert_ok(compare(&t, c, again), &t.err);
        *bound(c, i) = v * 1.5;
        assert_ok(compare(&t, c, again), &t.err);
        *bound(c, i) = INFINITY;
        assert_ok(compare(&t, c, again), &t.err);
        *bound(c, i) = nextafter(v, 0);
        assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
        assert_contains(t.err.msg, names[i]);
        *bound(c, i) = NAN;
        assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
        *bound(c, i) = v;
        pare_cert *const lost = proof(&t); /* a proof that forgot this bound */
        *bound(lost, i) = NAN;
        assert_status(compare(&t, c, lost), PARE_ERR_VERIFY, &t.err);
        *bound(lost, i) = INFINITY; /* a proof that found nothing */
        assert_status(compare(&t, c, lost), PARE_ERR_VERIFY, &t.err);
        *bound(c, i) = INFINITY;
        assert_ok(compare(&t, c, lost), &t.err);
    }
    toy_end(&t);
}

/* What nothing can be below: the other way round. */
static void a_lower_bound_must_not_grow(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t);
    const pare_cert *const again = proof(&t);
    double *const least = &c->claims[TOY_LEAST].value, v = *least;
    static const double good[] = {1, 0.5, 0};
    for (size_t i = 0; i < 3; i++) {
        *least = v * good[i];
        assert_ok(compare(&t, c, again), &t.err);
    }
    const double bad[] = {nextafter(v, 1), 1.5 * v, INFINITY, NAN};
    for (size_t i = 0; i < 4; i++) {
        *least = bad[i];
        assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
        assert_contains(t.err.msg, "one_layer.least");
    }
    toy_end(&t);
}

/* Both were proven again, and they contradict one another: one of the proofs is wrong. */
static void a_lower_bound_above_its_upper_bound_is_refused(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    c->claims[TOY_LEAST].value = again->claims[TOY_LEAST].value = 8.5; /* a priori: 8 */
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "above the upper bound");
    c->claims[TOY_APRIORI].value = 9;
    assert_ok(compare(&t, c, again), &t.err);
    toy_end(&t);
}

static void measured_is_compared_on_both_sides(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    const double good[] = {0.25, 0.25 * (1 - 0.9e-3), 0.25 * (1 + 0.9e-3)};
    const double bad[] = {0.25 * (1 - 1.1e-3), 0.25 * (1 + 1.1e-3), 0, INFINITY, NAN};
    for (size_t i = 0; i < 3; i++) {
        c->measured = good[i];
        assert_ok(compare(&t, c, again), &t.err);
    }
    for (size_t i = 0; i < 5; i++) {
        c->measured = bad[i];
        assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
        assert_contains(t.err.msg, "measured");
    }
    c->measured = 0.35;
    again->measured_radius = 0.051; /* two machines, each off by a radius */
    assert_ok(compare(&t, c, again), &t.err);
    again->measured_radius = 0.049;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    again->measured_radius = INFINITY; /* knows nothing: then the figure must be right */
    c->proven = again->proven = INFINITY;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    c->measured = 0.25;
    assert_ok(compare(&t, c, again), &t.err);
    again->measured_radius = NAN;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    toy_end(&t);
}

static void measured_above_proven_by_more_than_its_radius_is_false(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    c->measured = again->measured = 0.5000001; /* proven: 0.5 */
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "above the proven");
    again->measured_radius = 0.9e-7;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    again->measured_radius = 1.1e-7; /* the measurement itself is not better than this */
    assert_ok(compare(&t, c, again), &t.err);
    again->measured_radius = NAN; /* and one that does not know proves nothing */
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    /* However large the outputs are, 5.55 above 5e-7 is no rounding (A1). */
    c->proven = again->proven = 5e-7;
    c->measured = again->measured = 5.55;
    again->measured_radius = 1e-5;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    toy_end(&t);
}

/* Each case changes one thing of the claim; the proof stays. */
static void change(pare_cert *c, size_t i)
{
    pare_claim *const k = c->claims;
    switch (i) {
    case 0:
        c->reduction = "other";
        break;
    case 1:
        c->norm = "2";
        break;
    case 2:
        c->domain = "all inputs";
        break;
    case 3:
        k[TOY_TRUE].holds = PARE_FALSE;
        break;
    case 4:
        k[TOY_TRUE].holds = PARE_UNKNOWN;
        break;
    case 5:
        k[TOY_OPEN].holds = PARE_TRUE;
        break;
    case 6:
        k[TOY_OPEN].text = "another reason";
        break;
    case 7:
        k[TOY_TRUE].value *= 1.002;
        break;
    case 8:
        k[TOY_TRUE].limit = INFINITY;
        break;
    case 9:
        k[TOY_TRUE].limit = NAN;
        break;
    case 10:
        k[TOY_BALL].p[0] = 0.2;
        break;
    case 11:
        k[TOY_BALL].domain = "everywhere";
        break;
    case 12:
        k[TOY_DRAWN].probability = nextafter(0.875, 1);
        break;
    case 13:
        k[TOY_DRAWN].p[0] = 9;
        break;
    case 14:
        k[TOY_SEEN].value *= 1.002;
        break;
    case 15:
        k[TOY_SEEN].value = INFINITY;
        break;
    case 16:
        k[TOY_PAPER].value *= 1.002;
        break;
    case 17:
        k[TOY_PAPER].value *= -1;
        break;
    case 18:
        k[TOY_OPTIMAL].value *= 1.002;
        break;
    case 19:
        k[TOY_OPTIMAL].limit *= 1.002;
        break;
    case 20:
        k[TOY_SEEN].kind = PARE_ROW_ERROR; /* one that nobody has measured */
        break;
    default:
        fail();
    }
}

static void every_word_and_figure_must_be_the_same(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    for (size_t i = 0; i <= 20; i++) {
        pare_cert *const c = proof(&t);
        change(c, i);
        const pare_status st = compare(&t, c, proof(&t));
        if (st != PARE_ERR_VERIFY) fail_msg("case %zu: status %d", i, (int)st);
    }
    toy_end(&t);
}

static void figures_of_another_cpu_are_the_same(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    c->claims[TOY_TRUE].value *= 1 + 0.9e-3;
    c->claims[TOY_TRUE].limit *= 1 - 0.9e-3;
    c->claims[TOY_PAPER].value *= 1 - 0.9e-3;
    c->claims[TOY_SEEN].value *= 1 - 0.9e-3;
    c->claims[TOY_OPTIMAL].value *= 1 + 0.9e-3;
    c->claims[TOY_DRAWN].probability = 0.8; /* less is said */
    assert_ok(compare(&t, c, again), &t.err);
    /* What f64 alone may change in a figure that is nearly 0. */
    c->claims[TOY_SEEN].value = 3e-16;
    again->claims[TOY_SEEN].value = 5e-16;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    again->claims[TOY_SEEN].slack = 2.1e-16;
    assert_ok(compare(&t, c, again), &t.err);
    again->claims[TOY_SEEN].slack = INFINITY; /* knows nothing: then the figure must be right */
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    toy_end(&t);
}

/* The engine of this machine may be worse by the tolerance (3), or better by any factor. */
static void the_distance_of_an_engine_has_one_side(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t);
    const pare_cert *const again = proof(&t); /* 1e-6 */
    static const double good[] = {1e-6, 1e-5, 1, INFINITY, 0.26e-6},
                        bad[] = {0.24e-6, 0, -1, -INFINITY, NAN};
    for (size_t i = 0; i < 5; i++) {
        c->claims[TOY_ENGINE].value = good[i];
        assert_ok(compare(&t, c, again), &t.err);
    }
    for (size_t i = 0; i < 5; i++) {
        c->claims[TOY_ENGINE].value = bad[i];
        assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
        assert_contains(t.err.msg, "engine.distance");
    }
    toy_end(&t);
}

static void only_what_could_speak_against_the_cut_must_be_there(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    for (size_t i = 0; i < TOY_CLAIMS; i++) {
        pare_cert *const c = proof(&t);
        const pare_kind kind = c->claims[i].kind;
        const pare_section s = pare_kinds[kind].section;
        leave_out(c, i);
        const pare_status st = compare(&t, c, proof(&t));
        if (s == PARE_HYPOTHESIS || s == PARE_OBSERVATION) {
            assert_int_equal(st, PARE_ERR_VERIFY);
            assert_contains(t.err.msg, "leaves out");
            assert_contains(t.err.msg, pare_kinds[kind].name);
        } else {
            assert_ok(st, &t.err);
        }
        pare_cert *const less = proof(&t); /* a proof without it does not prove it */
        leave_out(less, i);
        assert_status(compare(&t, proof(&t), less), PARE_ERR_VERIFY, &t.err);
        assert_contains(t.err.msg, "no such claim");
    }
    toy_end(&t);
}

static void evidence_is_compared_where_it_was_computed(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    c->claims[TOY_OPTIMAL].value = 77;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "stream.optimality");
    again->evidence = false;
    leave_out(again, TOY_OPTIMAL);
    assert_ok(compare(&t, c, again), &t.err);
    /* An optimum above what was reached is no optimum, also when both are found again. */
    again->evidence = true;
    *c = *proof(&t), *again = *proof(&t);
    c->claims[TOY_OPTIMAL].value = again->claims[TOY_OPTIMAL].value = 0.2499;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "the limit is above it");
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_larger_bound_is_true_and_a_smaller_or_nan_one_is_not),
        cmocka_unit_test(a_lower_bound_must_not_grow),
        cmocka_unit_test(a_lower_bound_above_its_upper_bound_is_refused),
        cmocka_unit_test(measured_is_compared_on_both_sides),
        cmocka_unit_test(measured_above_proven_by_more_than_its_radius_is_false),
        cmocka_unit_test(every_word_and_figure_must_be_the_same),
        cmocka_unit_test(figures_of_another_cpu_are_the_same),
        cmocka_unit_test(the_distance_of_an_engine_has_one_side),
        cmocka_unit_test(only_what_could_speak_against_the_cut_must_be_there),
        cmocka_unit_test(evidence_is_compared_where_it_was_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
