/* Tests the rows of Yu 2025 in docs/errata.md: the definitions of studies/errata_length.c
 * beside numbers known by hand. And many short inputs in one call (Theorem 4.2). */
#include "length/attend_plan.h"
#include "length_cases.h"
#include <errata_rows.h>

/* ---- Theorem 4.2 ----------------------------------------------------------------------------- */

enum { G = 7, SHORT = 9 };

static void separate(length_case *c, const pare_pattern *p)
{
    for (size_t g = 0; g < G; g++) length_case_exact(&c[g], p, NULL);
}

static double packed_error(length_case *c, const pare_pattern *p, pare_dtype t, double by,
                           uint64_t *calls)
{
    pare_length_job inputs[G];
    double off = 0;
    pare_err err = {0};
    pare_oracle orc = cpu_oracle(t, 64, NULL);
    for (size_t g = 0; g < G; g++) inputs[g] = job_of(&c[g], t);
    pare_pack_stats stats = {0};
    assert_ok(pare_length_pack(&orc, inputs, G, p, by, &stats, &err), &err);
    if (calls) *calls = stats.calls;
    for (size_t g = 0; g < G; g++) off = fmax(off, error_in(&c[g], t));
    pare_oracle_free(&orc);
    return off;
}

static void short_inputs_share_a_call(void **state)
{
    (void)state;
    const pare_pattern patterns[] = {{.kind = PARE_FULL}, {.kind = PARE_CAUSAL}};
    for (int p = 0; p < 2; p++)
        for (int kind = 0; kind < REGIMES; kind++) {
            length_case c[G];
            uint64_t calls;
            double most[2] = {0};
            for (size_t g = 0; g < G; g++) c[g] = length_case_new(SHORT, 3, 2, (regime)kind, g);
            separate(c, &patterns[p]);
            for (size_t g = 0; g < G; g++) {
                most[0] = fmax(most[0], allowed(&c[g], PARE_F32));
                most[1] = fmax(most[1], allowed(&c[g], PARE_F64));
            }
            assert_true(packed_error(c, &patterns[p], PARE_F32, 0, &calls) <= 2 * most[0]);
            assert_int_equal(calls, 1); /* 63 of 64 rows */
            assert_true(packed_error(c, &patterns[p], PARE_F64, 0, &calls) <= 2 * most[1]);
            for (size_t g = 0; g < G; g++) length_case_free(&c[g]);
        }
}

/* What holds of a penalty P is 2 C2 (G - 1) e^(2 C1 - P). */
static void a_small_penalty_leaks_what_is_said(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL};
    length_case c[G];
    double q = 0, k = 0, v = 0, last = INFINITY;
    for (size_t g = 0; g < G; g++) {
        c[g] = length_case_new(SHORT, 3, 2, BENIGN, g);
        for (size_t i = 0; i < SHORT; i++) {
            double s[3] = {0};
            for (size_t e = 0; e < 3; e++) {
                s[0] += c[g].q[i * 3 + e] * c[g].q[i * 3 + e];
                s[1] += c[g].k[i * 3 + e] * c[g].k[i * 3 + e];
                if (e < 2) s[2] += c[g].v[i * 2 + e] * c[g].v[i * 2 + e];
            }
            q = fmax(q, sqrt(s[0])), k = fmax(k, sqrt(s[1])), v = fmax(v, sqrt(s[2]));
        }
    }
    separate(c, &full);
    for (double p = 4; p <= 64; p *= 2) {
        const double off = packed_error(c, &full, PARE_F64, p, NULL);
        assert_true(off <= 2 * v * (G - 1) * exp(2 * q * k - p) + 1e-14);
        assert_true(off <= last);
        last = off;
        if (p == 4) assert_true(off > 1e-3); /* it does leak */
    }
    for (size_t g = 0; g < G; g++) length_case_free(&c[g]);
}

/* ---- rows of docs/errata.md ------------------------------------------------------------------ */

/* 1 / (1 + e^10), and 1 when it is transposed back. */
static void length_lemma_3_1_oracle_returns_a_share(void **state)
{
    (void)state;
    false_step(1, 4.53979e-5, 1);
}

static void length_logits_grow_with_the_cube_of_the_width(void **state)
{
    (void)state;
    false_step(16, 1024, 1024);
}

/* An engine refuses what is longer than it takes. */
static void length_lemma_3_1_unions_are_too_long(void **state)
{
    (void)state;
    const double x[33] = {0}, zero = 0;
    double y[33];
    const pare_head_w h = {&zero, &zero, &zero, 1, 1, 1};
    const pare_call c = {.kind = PARE_CALL_STRICT,
                         .u.s = {.x = x, .n = 33, .din = 1, .heads = &h, .y = y, .dout = 1}};
    pare_oracle o;
    pare_err err = {0};
    false_step(16, 33, NAN);
    assert_ok(pare_oracle_paper(&o,
                                &(pare_oracle_caps){.max_len = 16,
                                                    .layers = 1,
                                                    .heads = 1,
                                                    .features = PARE_ORC_FULL,
                                                    .dtype = PARE_F64},
                                NULL, &err),
              &err);
    assert_true(o.ops->evaluate(o.self, &c, 1, &err) != PARE_OK);
    pare_oracle_free(&o);
}

/* 2e-7 e^60. */
static void length_lemma_3_1_subtraction_loses_every_digit(void **state)
{
    (void)state;
    false_step(1e-7, 2.28401e19, NAN);
}

/* 2.001e-6 / 1e-3. */
static void length_lemma_3_1_sums_of_mixed_signs_are_not_relative(void **state)
{
    (void)state;
    false_step(1e-6, 2.001e-3, 2.001e-3);
}

static void length_lemma_3_3_a_head_cannot_attend_and_copy(void **state)
{
    (void)state;
    false_step(1, 0, NAN);
}

/* (H' - 1) L' with a wide head. That more cannot be done is not shown: the row says open. */
static void length_lemma_3_3_our_plans_hold_fewer_instances(void **state)
{
    (void)state;
    const sides s = row_sides(__func__, STEP_FALSE);
    assert_true(s.printed == 6 && s.is == 4 && s.holds == 4);
    assert_true(erratum_of(__func__)->stands);
}

static void length_theorem_3_5_counts_the_diagonal_twice(void **state)
{
    (void)state;
    false_step(1, 2, 1);
}

/* A call on the first chunk gives a token of the first chunk. */
static void length_theorem_4_1_cannot_permute_across_chunks(void **state)
{
    (void)state;
    false_step(3, 2, NAN);
}

static void length_theorem_5_1_prefix_is_not_shifted(void **state)
{
    (void)state;
    false_step(7, 11, 7);
}

/* 2e-6 e^60 / 8. In f64: windows_by_subtraction_are_wrong. */
static void length_theorem_5_1_windows_lose_every_digit(void **state)
{
    (void)state;
    false_step(1e-6, 2.85502e19, NAN);
}

static void length_theorem_5_1_counts_sinks_twice(void **state)
{
    (void)state;
    false_step(0, 3, NAN);
}

/* The nearest number of 24 bits is 2^-25 of 1/3 away from it. */
static void length_few_bits_do_not_carry_two_to_the_minus_n(void **state)
{
    (void)state;
    false_reading(-64, -25, NAN);
}

/* e^-4; e^-16 / (1 + e^-16); 2 e^-16. */
static void length_theorem_4_2_penalty_leaves_far_less(void **state)
{
    (void)state;
    only_loose(.0183156, 1.12535e-7, 2.2507e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_inputs_share_a_call),
        cmocka_unit_test(a_small_penalty_leaks_what_is_said),
        cmocka_unit_test(length_lemma_3_1_oracle_returns_a_share),
        cmocka_unit_test(length_logits_grow_with_the_cube_of_the_width),
        cmocka_unit_test(length_lemma_3_1_unions_are_too_long),
        cmocka_unit_test(length_lemma_3_1_subtraction_loses_every_digit),
        cmocka_unit_test(length_lemma_3_1_sums_of_mixed_signs_are_not_relative),
        cmocka_unit_test(length_lemma_3_3_a_head_cannot_attend_and_copy),
        cmocka_unit_test(length_lemma_3_3_our_plans_hold_fewer_instances),
        cmocka_unit_test(length_theorem_3_5_counts_the_diagonal_twice),
        cmocka_unit_test(length_theorem_4_1_cannot_permute_across_chunks),
        cmocka_unit_test(length_theorem_5_1_prefix_is_not_shifted),
        cmocka_unit_test(length_theorem_5_1_windows_lose_every_digit),
        cmocka_unit_test(length_theorem_5_1_counts_sinks_twice),
        cmocka_unit_test(length_few_bits_do_not_carry_two_to_the_minus_n),
        cmocka_unit_test(length_theorem_4_2_penalty_leaves_far_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
