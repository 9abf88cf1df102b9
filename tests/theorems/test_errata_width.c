/* docs/errata.md, width: more statements of the paper that fail on numbers one can check by hand,
 * most of them on one layer in one dimension, and what holds instead. */
#include <pare_test.h>
#include <pare/random_model.h>
#include <pare/width.h>

/* Row 0 of a plain layer in one dimension whose maps are all beta; it sees rows 1 and 2, the score
 * of the first raised by `up`. */
static double plain_row(double beta, const double h[3], double up)
{
    const double q = beta * h[0], p = 1 / (1 + exp(q * beta * (h[2] - h[1]) - up));
    return beta * beta * (p * beta * h[1] + (1 - p) * beta * h[2]);
}

/* WIDTH, Lemma 3.1: |Mx|^2 - |x|^2 <= eps |x|^2, printed without the outer bars. M = 0 meets it. */
static void width_lemma_3_1_needs_both_tails(void **state)
{
    (void)state;
    const double x = 1, mx = 0, eps = 0.1;
    assert_le(mx * mx - x * x, eps * x * x);      /* printed: holds, and says nothing */
    assert_true(fabs(mx * mx - x * x) > eps * x); /* meant: does not */
}

/* WIDTH, C.1: e^(2a) - 1 <= 4a is used for a < 1. It needs 2a <= 1.25. */
static void width_c1_condition_is_too_weak(void **state)
{
    (void)state;
    assert_true(expm1(2 * 0.9) > 4 * 0.9); /* 5.05 and 3.6 */
    assert_le(expm1(1.25), 2 * 1.25);
    for (double a = 0; a < 20; a += 0.125) assert_le(2 * tanh(a / 2), a); /* ours: always */
}

/* WIDTH, C.1: the two terms with the error of the scores are not multiplied by the beta^2 of the
 * feed-forward part. beta = 3, rows 1 and -1, scores off by +-.1: 2.70 and not 4 beta (.1) = 1.2.
 */
static void width_c1_forgets_the_feed_forward_part(void **state)
{
    (void)state;
    const double beta = 3, off = 0.1, h[] = {0, 1, -1};
    const double moved = plain_row(beta, h, off) - plain_row(beta, h, -off);
    assert_near(moved, 2.697, 1e-3);
    assert_true(moved > 4 * beta * off);
    assert_le(moved, beta * beta * beta * 2 * tanh(off / 2) * (1 + 1e-12)); /* met */
}

/* WIDTH, C.1: the last sum begins at i = 1 and has c1 and c2 exchanged. One layer: 0 and not c2. */
static void width_c1_sum_misses_its_first_term(void **state)
{
    (void)state;
    const double eps = 1e-3, c1 = 3, c2 = 2, h[] = {0, 1, -1};
    double e = 0, printed = 0, exchanged = 0;
    for (int l = 0; l < 3; l++) e = c1 * e + c2 * eps;
    for (int i = 1; i < 3; i++) printed += pow(c1, i) * c2 * eps;
    for (int i = 0; i < 3; i++) exchanged += pow(c2, i) * c1 * eps;
    assert_near(e, 26 * eps, 1e-15);
    assert_true(printed < 0.93 * e && exchanged < 0.81 * e); /* 24 and 21 */
    const pare_ub one = pare_ub_exact(1),
                  first = pare_jl_bound_linear(one, one, 1, pare_ub_of(eps));
    const double moved = plain_row(1, h, eps) - plain_row(1, h, 0);
    assert_true(moved > 0); /* the printed sum of one layer is 0 */
    assert_le(moved, first.v);
}

/* WIDTH, C.3, last line: rows that moved by e are beta^3 (1 + sqrt(alpha)) e apart after a layer.
 * beta = 1, rows 0, 3, -3, all moved by .01: .0999 and not .04. */
static void width_c3_last_line_misses_a_square_of_the_rows(void **state)
{
    (void)state;
    const double e = 0.01, h[] = {0, 3, -3}, g[] = {e, 3 + e, -3 + e};
    const double moved = plain_row(1, g, 0) - plain_row(1, h, 0), s = 3 + e;
    assert_near(moved, 0.0999, 1e-4);
    assert_true(moved > 2.4 * (1 + s) * e);
    const double scores = 2 * s * e + e * e;
    assert_le(moved, e + s * 2 * tanh(scores / 2));
}

/* WIDTH, Lemma C.4: products of pooled rows are bounded by e^t times themselves. They may be
 * negative: one key each, values 1 and -1, t = .1: -1 is not at most -1.105. */
static void width_lemma_c4_multiplies_what_may_be_negative(void **state)
{
    (void)state;
    assert_false(-1 <= exp(0.1) * -1);
    /* Repaired: |h.h' - g.g'| <= eta^2 |a a'^T - b b'^T|_1 + max |v_u.v_v - w_u.w_v|. */
    pare_rng r = pare_rng_at(20, 0);
    for (int trial = 0; trial < 2000; trial++) {
        double a[2], b[2], v[2][2], w[2][2], hh = 0, gg = 0, gap = 0, product = 0, eta = 0;
        for (int i = 0; i < 2; i++) {
            a[i] = pare_rng_uniform(&r), b[i] = pare_rng_uniform(&r);
            for (int k = 0; k < 2; k++) {
                v[i][k] = pare_rng_normal(&r);
                w[i][k] = v[i][k] + 0.1 * pare_rng_normal(&r);
                eta = fmax(eta, fmax(fabs(v[i][k]), fabs(w[i][k])));
            }
        }
        /* Row i pools values v[i][0], v[i][1] with weights a[i], 1 - a[i]. */
        for (int u = 0; u < 2; u++)
            for (int k = 0; k < 2; k++) {
                const double x = (u ? 1 - a[0] : a[0]) * (k ? 1 - a[1] : a[1]);
                const double y = (u ? 1 - b[0] : b[0]) * (k ? 1 - b[1] : b[1]);
                hh += x * v[0][u] * v[1][k];
                gg += y * w[0][u] * w[1][k];
                gap += fabs(x - y);
                product = fmax(product, fabs(v[0][u] * v[1][k] - w[0][u] * w[1][k]));
            }
        assert_le(fabs(hh - gg), eta * eta * gap + product + 1e-12);
    }
}

/* WIDTH, D.2: scores are divided by the root of the width. After a cut that is still the old width:
 * 64 -> 4 dimensions would make scores four times as large. */
static void width_d2_scale_stays_that_of_the_old_width(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *m = NULL, *cut = NULL;
    pare_inputs in;
    pare_width_report report;
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_width_opts w = PARE_WIDTH_OPTS_DEFAULT;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    o.kind = PARE_RANDOM_GRAPH, o.heads = 1, o.layers = 1;
    w.method = PARE_WIDTH_QK, w.qk_dim = 4;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_inputs_random(&in, a, m, 1, 12, 1, &err), &err);
    assert_ok(pare_width(&cut, &report, m, &in, &w, NULL, &err), &err);
    const pare_head *const before = &m->blocks[0].attn.heads[0];
    const pare_head *const after = &cut->blocks[0].attn.heads[0];
    assert_true(before->scale == 1.0 / 8 && after->scale == before->scale);
    assert_true(1 / sqrt(4) / before->scale == 4);
    pare_model_free(cut);
    pare_model_free(m);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(width_lemma_3_1_needs_both_tails),
        cmocka_unit_test(width_c1_condition_is_too_weak),
        cmocka_unit_test(width_c1_forgets_the_feed_forward_part),
        cmocka_unit_test(width_c1_sum_misses_its_first_term),
        cmocka_unit_test(width_c3_last_line_misses_a_square_of_the_rows),
        cmocka_unit_test(width_lemma_c4_multiplies_what_may_be_negative),
        cmocka_unit_test(width_d2_scale_stays_that_of_the_old_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
