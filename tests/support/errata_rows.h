/* errata_rows.h - a test of a row of docs/errata.md calls the definition that `pare repro errata`
 * prints, and compares both of its sides with numbers known by hand. */
#ifndef TEST_ERRATA_ROWS_H
#define TEST_ERRATA_ROWS_H
#include <pare_test.h>
#include "../../studies/study_errata.h"

/* Both sides of the row of this test; the example is inside the hypotheses. */
static inline sides row_sides(const char *test, row_verdict class)
{
    const erratum *const e = erratum_of(test);
    pare_err err = {0};
    sides s;
    if (!e) fail_msg("no row of studies/errata_*.c has the test %s", test);
    assert_ok(erratum_evaluate(&s, e, &err), &err);
    print_message("%s, %s: printed %.6g, is %.6g, holds %.6g\n", e->paper, e->where, s.printed,
                  s.is, s.holds);
    assert_string_equal(erratum_class(e->class), erratum_class(class));
    assert_false(s.outside);
    /* What holds instead is not broken by the example. */
    if (e->claim == AT_MOST && !isnan(s.holds)) assert_le(s.is, s.holds * (1 + 1e-9));
    return s;
}

static inline void near_by_hand(double is, double by_hand)
{
    if (isnan(by_hand))
        assert_true(isnan(is));
    else
        assert_near(is, by_hand, 1e-3 * fabs(by_hand) + 1e-12);
}

static inline sides row_as_known(const char *test, row_verdict class, bool refuted, double printed,
                                 double is, double holds)
{
    const sides s = row_sides(test, class);
    near_by_hand(s.printed, printed);
    near_by_hand(s.is, is);
    near_by_hand(s.holds, holds);
    assert_true(erratum_refuted(erratum_of(test), &s) == refuted);
    return s;
}

/* The example refutes the statement: printed, is and holds (nan: no number) as known by hand. */
#define false_as_printed(printed, is, holds)                                                       \
    row_as_known(__func__, MISPRINT, true, (printed), (is), (holds))
#define false_step(printed, is, holds)                                                             \
    row_as_known(__func__, STEP_FALSE, true, (printed), (is), (holds))
#define false_reading(printed, is, holds)                                                          \
    row_as_known(__func__, IMPRECISE, true, (printed), (is), (holds))
/* The statement holds on the example, and is loose. */
#define only_loose(printed, is, holds)                                                             \
    row_as_known(__func__, IMPRECISE, false, (printed), (is), (holds))
#endif
