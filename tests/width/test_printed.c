/* Tests src/width/printed.c: the formulas that Shirzad 2024 prints, with the numbers of the errata.
 */
#include "../../src/width/prove.h"
#include "width_nets.h"
#include <claims.h>

/* One dimension, beta = 3, sqrt(alpha) = 1, e = .1: printed .69, while the truth is 1.89. */
static void the_step_of_theorem_3_3_is_the_printed_one(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 1);
    double three = 3, row = 1, moved = 1.1;
    net_head head = {.wq = pare_mat_of(&three, 1, 1), .wk = pare_mat_of(&three, 1, 1), .scale = 1};
    net_layer layer = {.nheads = 1, .heads = &head};
    const net f = {.nlayers = 1, .layers = &layer};
    pare_mat h = pare_mat_of(&row, 1, 1), k = pare_mat_of(&moved, 1, 1);
    const points pf = {.nlayers = 1, .h = &h}, pg = {.nlayers = 1, .h = &k};
    pare_cert cert = {0};
    printed_formulas(&s->w, &cert, s->w.a, PARE_WIDTH_JL, &f, &f, &pf, &pg);
    assert_ok(s->w.st, &s->err);
    assert_int_equal(cert.nclaims, 1);
    assert_near(claim_value(&cert, PARE_PAPER_SCORES), .69, 1e-9);
    assert_true(9 * (1.1 * 1.1 - 1) > cert.claims[0].value);
    cert = (pare_cert){0};
    printed_formulas(&s->w, &cert, s->w.a, PARE_WIDTH_JL, &f, &f, &pf, &pf);
    assert_true(cert.nclaims == 1 && claim_value(&cert, PARE_PAPER_SCORES) == 0);
    stage_close(s);
}

/* |c| = 2: the printed bias is -12, and the selector 4 - 12 is 0 at its own centre. */
static void the_bias_of_theorem_4_4_is_the_printed_one(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 1);
    double rows[] = {2, 0, 0, 1, 2, 0, 0, 1}, w1[4] = {0};
    net_layer layer = {.w1 = pare_mat_of(w1, 2, 2)};
    const net g = {.nlayers = 1, .layers = &layer};
    pare_mat z = pare_mat_of(rows, 4, 2);
    const points p = {.nlayers = 1, .z = &z};
    pare_cert cert = {0};
    printed_formulas(&s->w, &cert, s->w.a, PARE_WIDTH_CLUSTER, &g, &g, &p, &p);
    assert_ok(s->w.st, &s->err);
    assert_int_equal(cert.nclaims, 1);
    assert_near(claim_value(&cert, PARE_PAPER_SELECTOR), -12, 1e-12);
    cert = (pare_cert){0};
    printed_formulas(&s->w, &cert, s->w.a, PARE_WIDTH_QK, &g, &g, &p, &p);
    assert_int_equal(cert.nclaims, 0);
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_of_theorem_3_3_is_the_printed_one),
        cmocka_unit_test(the_bias_of_theorem_4_4_is_the_printed_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
