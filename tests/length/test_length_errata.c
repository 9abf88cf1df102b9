/* What is wrong, as printed, in Yu 2025: a counter-example each (docs/errata.md). And
 * many short inputs in one call. */
#include "length_cases.h"

/* ---- Theorem 4.2 ----------------------------------------------------------------------------- */

enum { G = 7, SHORT = 9 };

static void separate(length_case *c, const pare_pattern *p)
{
    for (size_t g = 0; g < G; g++) length_case_exact(&c[g], p, NULL);
}

static double packed_error(length_case *c, const pare_pattern *p, pare_dtype t, double by,
                           uint64_t *calls)
{
    pare_length_job jobs[G];
    double off = 0;
    pare_err err = {0};
    pare_oracle orc = cpu_oracle(t, 64, NULL);
    for (size_t g = 0; g < G; g++) jobs[g] = job_of(&c[g], t);
    assert_ok(pare_length_pack(&orc, jobs, G, p, by, calls, &err), &err);
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

/* Theorem 4.2: the error display has B where the penalty is B^2; what holds is 2 C2 (G - 1) e^(2 C1
 * - P).
 */
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

/* ---- the others ------------------------------------------------------------------------------ */

/* Lemma 3.1: eps = 2^-N makes C >= N log 2, and r = e^-C is no number of f64 beyond N = 1075. */
static void length_eps_of_two_to_the_minus_n_underflows(void **state)
{
    (void)state;
    assert_true(exp(-1074 * log(2)) > 0);
    assert_true(exp(-1076 * log(2)) == 0);
}

/* Lemma 3.1: "subtracting gives a (1 + eps / 10) approximation" of the other block's mass: all
 * digits go.
 */
static void length_lemma_3_1_subtraction_loses_every_digit(void **state)
{
    (void)state;
    const double own = exp(60), other = 1, both = own + other; /* a hot block */
    assert_true(fabs((both - own) - other) / other == 1);
}

/* Lemma 3.3: identity value columns of the same head are multiplied by its attention matrix. */
static void length_lemma_3_3_a_head_cannot_attend_and_copy(void **state)
{
    (void)state;
    const double x[4] = {1, 0, -1, 0}, zero[2] = {0}, identity[4] = {1, 0, 0, 1};
    double y[4];
    const pare_head_w h = {zero, zero, identity, 2, 1, 2}; /* uniform attention, values passed on */
    const pare_call c = {.kind = PARE_CALL_STRICT,
                         .u.s = {.x = x, .n = 2, .din = 2, .heads = &h, .y = y, .dout = 2}};
    pare_oracle o;
    pare_err err = {0};
    assert_ok(pare_oracle_paper(&o, PARE_F64, 2, 1, 1, PARE_ORC_FULL, NULL, &err), &err);
    assert_ok(o.ops->evaluate(o.self, &c, 1, &err), &err);
    assert_true(y[0] == 0 && y[2] == 0); /* 1 and -1 were to pass */
    pare_oracle_free(&o);
}

/* Theorem 5.1: adding the first s keys counts those twice that are in the window: rows i < r + s
 * - 1. */
static void length_theorem_5_1_counts_sinks_twice(void **state)
{
    (void)state;
    const size_t r = 4, s = 3;
    for (size_t i = 0; i < 12; i++) {
        size_t twice = 0;
        for (size_t j = 0; j <= i; j++) twice += j < s && j + r > i;
        assert_true((twice > 0) == (i < r + s - 1));
    }
}

/* Theorem 4.1: what a call on one chunk gives is the same whatever stands in the others, but the
 * permuted rows are not: the look-up of Lemma A.3, asked for "the other chunk's first token", gives
 * its own.
 */
static void length_theorem_4_1_cannot_permute_across_chunks(void **state)
{
    (void)state;
    static const double inputs[2][4] = {{1, 2, 3, 4}, {1, 2, 5, 6}}; /* chunks of two */
    const double second[2] = {0, 512}, bit[2] = {0, 1}, value[2] = {1, 0};
    const pare_head_w h = {second, bit, value,
                           2,      1,   1}; /* a row takes the position of its own code */
    double row[2];
    pare_oracle o;
    pare_err err = {0};
    assert_ok(pare_oracle_paper(&o, PARE_F64, 2, 1, 1, PARE_ORC_FULL, NULL, &err), &err);
    for (size_t x = 0; x < 2; x++) {
        const double tokens[4] = {inputs[x][0], -1, inputs[x][1], 1}; /* the first chunk, codes */
        double y[2];
        const pare_call c = {
            .kind = PARE_CALL_STRICT,
            .u.s = {.x = tokens, .n = 2, .din = 2, .heads = &h, .y = y, .dout = 1}};
        assert_ok(o.ops->evaluate(o.self, &c, 1, &err), &err);
        assert_true(y[1] == inputs[x][1]); /* a token of its own chunk */
        row[x] = y[1];
    }
    assert_true(row[0] == row[1] && inputs[0][2] != inputs[1][2]);
    pare_oracle_free(&o);
}

/* Theorem 4.1: M >= 800 ln(40 N) / (eps^2 D^2) with D <= 1 is above N for all N below 40,000, even
 * at eps = 1/2. */
static void length_theorem_4_1_asks_for_more_than_all_keys(void **state)
{
    (void)state;
    for (double n = 16; n < 40000; n *= 1.1) assert_true(800 * log(40 * n) / 0.25 > n);
}

/* Theorem 4.1: N / M cancels: the estimator is the softmax over the sampled keys. */
static void length_theorem_4_1_factor_cancels(void **state)
{
    (void)state;
    const double a[3] = {1, 2, 4}, v[3] = {1, -1, 3};
    double num = 0, den = 0, scaled_num = 0, scaled_den = 0;
    for (int i = 0; i < 3; i++) {
        num += a[i] * v[i], den += a[i];
        scaled_num += 8 * a[i] * v[i], scaled_den += 8 * a[i];
    }
    assert_true(num / den == scaled_num / scaled_den);
}

/* Lemma 3.1: with entries bounded by B, logits reach d^3 B^4, not d B^2. */
static void length_logits_grow_with_the_cube_of_the_width(void **state)
{
    (void)state;
    const double d = 4, b = 2; /* all entries of X, Wq, Wk are B */
    const double q = d * b * b, logit = d * q * q;
    assert_true(logit == d * d * d * b * b * b * b);
    assert_true(logit > d * b * b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_inputs_share_a_call),
        cmocka_unit_test(a_small_penalty_leaks_what_is_said),
        cmocka_unit_test(length_eps_of_two_to_the_minus_n_underflows),
        cmocka_unit_test(length_lemma_3_1_subtraction_loses_every_digit),
        cmocka_unit_test(length_lemma_3_3_a_head_cannot_attend_and_copy),
        cmocka_unit_test(length_theorem_5_1_counts_sinks_twice),
        cmocka_unit_test(length_theorem_4_1_cannot_permute_across_chunks),
        cmocka_unit_test(length_theorem_4_1_asks_for_more_than_all_keys),
        cmocka_unit_test(length_theorem_4_1_factor_cancels),
        cmocka_unit_test(length_logits_grow_with_the_cube_of_the_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
