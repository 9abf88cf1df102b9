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
    c->apriori = 8;
    c->proven = 0.5;
    c->rounding = 1e-6;
    return c;
}

static double *bound(pare_cert *c, size_t i)
{
    double *const field[] = {&c->apriori, &c->proven, &c->rounding, &c->statements[0].bound};
    return field[i];
}

static void a_larger_bound_is_true_and_a_smaller_or_nan_one_is_not(void **state)
{
    (void)state;
    static const char *const names[] = {"apriori", "proven", "rounding", "statements[0].bound"};
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

static void measured_is_compared_on_both_sides(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    again->measured = 0.25;
    again->measured_slack = 1e-9;
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
    again->measured_slack = 0.11; /* rounding may be the whole difference */
    assert_ok(compare(&t, c, again), &t.err);
    again->measured_slack = INFINITY; /* knows nothing: then the figure must be right */
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    again->measured_slack = NAN;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    toy_end(&t);
}

static void measured_above_proven_is_false(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    c->measured = again->measured = 0.5000001; /* proven: 0.5 */
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "above the proven");
    again->measured_slack = 2e-7; /* the measurement itself is not better than this */
    assert_ok(compare(&t, c, again), &t.err);
    toy_end(&t);
}

/* Each case changes one thing of the claim; the proof stays. */
static void change(pare_cert *c, size_t i)
{
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
        c->nhypotheses = 1;
        break;
    case 4:
        c->hypotheses[0].name = "tiny";
        break;
    case 5:
        c->hypotheses[0].holds = PARE_FALSE;
        break;
    case 6:
        c->hypotheses[1].holds = PARE_TRUE;
        break;
    case 7:
        c->hypotheses[0].value *= 1.002;
        break;
    case 8:
        c->hypotheses[0].limit = INFINITY;
        break;
    case 9:
        c->hypotheses[0].limit = NAN;
        break;
    case 10:
        c->hypotheses[1].value = 0;
        break;
    case 11:
        c->nstatements = 0;
        break;
    case 12:
        c->statements[0].name = "held in";
        break;
    case 13:
        c->statements[0].norm = "2";
        break;
    case 14:
        c->statements[0].domain = "all";
        break;
    case 15:
        c->statements[0].probability = 0.9001;
        break;
    case 16:
        c->npaper = 0;
        break;
    case 17:
        c->paper[0].name = "theorem 5";
        break;
    case 18:
        c->paper[0].value *= 1.002;
        break;
    case 19:
        c->paper[0].value = -c->paper[0].value;
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
    for (size_t i = 0; i < 20; i++) {
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
    pare_cert *const c = proof(&t);
    c->hypotheses[0].value *= 1 + 0.9e-3;
    c->hypotheses[0].limit *= 1 - 0.9e-3;
    c->paper[0].value *= 1 - 0.9e-3;
    c->statements[0].probability = nextafter(c->statements[0].probability, 0);
    assert_ok(compare(&t, c, proof(&t)), &t.err);
    toy_end(&t);
}

/* What nothing can beat is a bound from below: the other way round. */
static void a_lower_bound_must_not_grow(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t), *const again = proof(&t);
    c->hypotheses[0].name = again->hypotheses[0].name = "what is left, and the least of any 8";
    again->hypotheses[0].value = c->hypotheses[0].value = 1.0002;
    again->hypotheses[0].limit = c->hypotheses[0].limit = 1;
    assert_ok(compare(&t, c, again), &t.err);
    c->hypotheses[0].limit = 1 - 0.9e-3;
    assert_ok(compare(&t, c, again), &t.err);
    c->hypotheses[0].limit = 1 + 1e-5;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "hypotheses[0].limit");
    c->hypotheses[0].limit = 1;
    c->hypotheses[0].value = 1 - 1e-4;
    assert_status(compare(&t, c, again), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "below the limit");
    toy_end(&t);
}

static void a_probability_must_not_grow(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = proof(&t);
    c->statements[0].probability *= 1 + 1e-10;
    assert_status(compare(&t, c, proof(&t)), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "probability");
    toy_end(&t);
}

static void a_vacuous_slack_is_cut_to_what_rounding_can_do(void **state)
{
    (void)state;
    const pare_gap tight = {.slack = 1e-14, .scale = 2}, vacuous = {.slack = INFINITY, .scale = 2},
                   lost = {.slack = NAN, .scale = 2};
    assert_true(pare_measured_slack(&tight) == 1e-14);
    assert_near(pare_measured_slack(&vacuous), 2e-9, 1e-20);
    assert_near(pare_measured_slack(&lost), 2e-9, 1e-20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_larger_bound_is_true_and_a_smaller_or_nan_one_is_not),
        cmocka_unit_test(measured_is_compared_on_both_sides),
        cmocka_unit_test(measured_above_proven_is_false),
        cmocka_unit_test(every_word_and_figure_must_be_the_same),
        cmocka_unit_test(figures_of_another_cpu_are_the_same),
        cmocka_unit_test(a_lower_bound_must_not_grow),
        cmocka_unit_test(a_probability_must_not_grow),
        cmocka_unit_test(a_vacuous_slack_is_cut_to_what_rounding_can_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
