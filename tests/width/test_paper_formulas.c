/* Tests src/width/paper_formulas.c: the formulas that Shirzad 2024 prints, with the numbers of the
 * errata. */
#include "width/prove.h"
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
    const activations pf = {.nlayers = 1, .h = &h}, pg = {.nlayers = 1, .h = &k};
    pare_cert cert = {0};
    add_paper_formulas(&s->w, &cert, s->w.arena, PARE_WIDTH_JL, &f, &f, &pf, &pg);
    assert_ok(s->w.st, &s->err);
    assert_int_equal(cert.nclaims, 1);
    assert_near(claim_value(&cert, PARE_PAPER_SCORES), .69, 1e-9);
    assert_true(9 * (1.1 * 1.1 - 1) > cert.claims[0].value);
    cert = (pare_cert){0};
    add_paper_formulas(&s->w, &cert, s->w.arena, PARE_WIDTH_JL, &f, &f, &pf, &pf);
    assert_true(cert.nclaims == 1 && claim_value(&cert, PARE_PAPER_SCORES) == 0);
    stage_close(s);
}

/* beta = 2, alpha = 9: c1 = 8 + 144 + 48 = 200, c2 = 16 (27 + 18 + 3) = 768. */
static void the_constants_of_theorem_3_3_are_the_printed_ones(void **state)
{
    (void)state;
    assert_near(pare_jl_printed(2, 3, 1, 1e-3), .768, 1e-12);
    assert_near(pare_jl_printed(2, 3, 2, 1e-3), 200 * .768 + .768, 1e-9);
    assert_true(pare_jl_printed(2, 3, 0, 1e-3) == 0);
}

/* In the certificate of a jl cut of a plain net: the eps of its worst layer, its longest row and
 * its largest map. Not of a net with a skip. */
static void theorem_3_3_stands_in_the_list_of_plain_nets(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 1);
    net n = rand_net(s, (net_shape){.features = 2, .dim = 2, .layers = 2, .heads = 1});
    for (size_t l = 0; l < 2; l++) {
        net_head *const hd = &n.layers[l].heads[0];
        const pare_mat *const all[] = {&hd->wq, &hd->wk, &hd->wv, &n.layers[l].w1, &n.layers[l].w2};
        for (size_t k = 0; k < 5; k++)
            for (size_t i = 0; i < 4; i++) all[k]->v[i] = i % 3 == 0 ? 2 : 0;
        hd->scale = 1;
    }
    double rows[] = {3, 0}, longer[] = {0, 1};
    pare_mat h[] = {pare_mat_of(rows, 1, 2), pare_mat_of(longer, 1, 2)};
    const activations p = {.nlayers = 2, .h = h};
    pare_cert cert = {0};
    const double eps[] = {1e-4, 1e-3};
    for (size_t l = 0; l < 2; l++)
        assert_ok(pare_cert_add(&cert, s->w.arena,
                                (pare_claim){.kind = PARE_JL_DISTORTION,
                                             .p = {(double)l},
                                             .holds = PARE_TRUE,
                                             .value = eps[l],
                                             .limit = 1},
                                &s->err),
                  &s->err);
    add_paper_formulas(&s->w, &cert, s->w.arena, PARE_WIDTH_JL, &n, &n, &p, &p);
    assert_ok(s->w.st, &s->err);
    assert_near(claim_value(&cert, PARE_PAPER_JL), 201 * .768, 1e-6);
    cert.nclaims = 2;
    n.layers[1].r2 = mat_identity(&s->w, 2);
    add_paper_formulas(&s->w, &cert, s->w.arena, PARE_WIDTH_JL, &n, &n, &p, &p);
    assert_null(pare_cert_find(&cert, PARE_PAPER_JL));
    stage_close(s);
}

/* beta = 4, alpha = 1: 4 eps + 64 (1 + 8 + 4) e = 836 eps from e = eps. */
static void the_last_line_of_theorem_4_2_is_the_printed_one(void **state)
{
    (void)state;
    assert_near(pare_lowrank_printed(4, 1, 1, 1e-3), .836, 1e-12);
    assert_near(pare_lowrank_printed(4, 1, 2, 1e-3), .004 + 832 * .836, 1e-9);
    assert_near(pare_lowrank_printed(1, 3, 1, .01), .01 + 76 * .01, 1e-12);
    assert_true(pare_lowrank_printed(4, 1, 0, 1e-3) == 1e-3);
}

/* |c| = 2: the printed bias is -12, and the selector 4 - 12 is 0 at its own center. */
static void the_bias_of_theorem_4_4_is_the_printed_one(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 1);
    double rows[] = {2, 0, 0, 1, 2, 0, 0, 1}, w1[4] = {0};
    net_layer layer = {.w1 = pare_mat_of(w1, 2, 2)};
    const net g = {.nlayers = 1, .layers = &layer};
    pare_mat z = pare_mat_of(rows, 4, 2);
    const activations p = {.nlayers = 1, .z = &z};
    pare_cert cert = {0};
    add_paper_formulas(&s->w, &cert, s->w.arena, PARE_WIDTH_CLUSTER, &g, &g, &p, &p);
    assert_ok(s->w.st, &s->err);
    assert_int_equal(cert.nclaims, 1);
    assert_near(claim_value(&cert, PARE_PAPER_SELECTOR), -12, 1e-12);
    cert = (pare_cert){0};
    add_paper_formulas(&s->w, &cert, s->w.arena, PARE_WIDTH_QK, &g, &g, &p, &p);
    assert_int_equal(cert.nclaims, 0);
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_of_theorem_3_3_is_the_printed_one),
        cmocka_unit_test(the_constants_of_theorem_3_3_are_the_printed_ones),
        cmocka_unit_test(theorem_3_3_stands_in_the_list_of_plain_nets),
        cmocka_unit_test(the_last_line_of_theorem_4_2_is_the_printed_one),
        cmocka_unit_test(the_bias_of_theorem_4_4_is_the_printed_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
