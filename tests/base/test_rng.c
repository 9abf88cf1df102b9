/* Tests src/base/rng.c. */
#include "base/support.h"
#include <pare_test.h>

static void philox_gives_the_published_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < 3; i++) {
        uint32_t out[4];
        pare_philox(out, known[i].counter, known[i].key);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

/* The ticket's source weights: seed and stream to integers, across several blocks. */
static void the_stream_is_laid_out_as_tickets_expect(void **state)
{
    (void)state;
    static const int32_t want[] = {6803087,  -15026673, 6977581,  4979339, -13922825,
                                   -2753727, 5514793,   13969273, 3414929, 14639131};
    pare_rng r = pare_rng_at(20240229, UINT64_C(0x0001000200030000));
    for (size_t i = 0; i < 10; i++) {
        const int32_t w = (int32_t)(2 * (pare_rng_u32(&r) >> 8) + 1) - (1 << 24);
        assert_int_equal(w, want[i]);
    }
}

static void seed_stream_and_block_use_all_their_bits(void **state)
{
    (void)state;
    pare_rng base = pare_rng_at(5, 6);
    pare_rng seed = pare_rng_at(5 + (UINT64_C(1) << 40), 6);
    pare_rng stream = pare_rng_at(5, 6 + (UINT64_C(1) << 40));
    pare_rng far = base;
    far.block = UINT64_C(1) << 40;
    const uint64_t v = pare_rng_u64(&base);
    assert_true(v != pare_rng_u64(&seed));
    assert_true(v != pare_rng_u64(&stream));
    assert_true(v != pare_rng_u64(&far));
}

static void u64_is_two_words_low_first(void **state)
{
    (void)state;
    pare_rng a = pare_rng_at(1, 2), b = a;
    const uint64_t lo = pare_rng_u32(&b), hi = pare_rng_u32(&b);
    assert_true(pare_rng_u64(&a) == (hi << 32 | lo));
}

static void uniform_and_normal_have_their_moments(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(77, 0);
    const int n = 200000;
    double su = 0, suu = 0, sn = 0, snn = 0, snnnn = 0, lo = 1, hi = 0;
    for (int i = 0; i < n; i++) {
        const double u = pare_rng_uniform(&r), z = pare_rng_normal(&r);
        assert_true(u >= 0 && u < 1 && isfinite(z));
        lo = u < lo ? u : lo;
        hi = u > hi ? u : hi;
        su += u, suu += u * u, sn += z, snn += z * z, snnnn += z * z * z * z;
    }
    /* five standard errors each */
    assert_near(su / n, 0.5, 5 * 0.2887 / sqrt(n));
    assert_near(suu / n, 1.0 / 3, 5 * 0.3 / sqrt(n));
    assert_near(sn / n, 0, 5 / sqrt(n));
    assert_near(snn / n, 1, 5 * 1.4143 / sqrt(n));
    assert_near(snnnn / n, 3, 5 * 9.8 / sqrt(n));
    assert_le(lo, 1e-4);
    assert_le(1 - 1e-4, hi);
}

static void below_is_uniform_also_where_a_plain_remainder_is_not(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(9, 0);
    int count[7] = {0};
    for (int i = 0; i < 70000; i++) count[pare_rng_below(&r, 7)]++;
    for (int k = 0; k < 7; k++) assert_near(count[k], 10000, 5 * sqrt(10000));
    /* For n = 3 * 2^62 a product without rejection hits every third value twice: residues mod 3
     * would be 1/2, 1/4, 1/4. */
    const uint64_t n = UINT64_C(3) << 62;
    int residue[3] = {0};
    for (int i = 0; i < 30000; i++) {
        const uint64_t v = pare_rng_below(&r, n);
        assert_true(v < n);
        residue[v % 3]++;
    }
    for (int k = 0; k < 3; k++) assert_near(residue[k], 10000, 5 * sqrt(10000));
    for (int i = 0; i < 20; i++) assert_true(pare_rng_below(&r, 1) == 0);
}

static void shuffle_is_a_permutation_and_all_orders_are_as_frequent(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(10, 0);
    int orders[27] = {0};
    for (int i = 0; i < 6000; i++) {
        uint32_t v[3] = {0, 1, 2};
        pare_rng_shuffle(&r, v, 3);
        assert_int_equal(1u << v[0] | 1u << v[1] | 1u << v[2], 7);
        orders[9 * v[0] + 3 * v[1] + v[2]]++;
    }
    int kinds = 0;
    for (int k = 0; k < 27; k++) {
        if (orders[k]) assert_near(orders[k], 1000, 5 * sqrt(1000));
        kinds += orders[k] > 0;
    }
    assert_int_equal(kinds, 6);
    pare_rng_shuffle(&r, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_published_answers),
        cmocka_unit_test(the_stream_is_laid_out_as_tickets_expect),
        cmocka_unit_test(seed_stream_and_block_use_all_their_bits),
        cmocka_unit_test(u64_is_two_words_low_first),
        cmocka_unit_test(uniform_and_normal_have_their_moments),
        cmocka_unit_test(below_is_uniform_also_where_a_plain_remainder_is_not),
        cmocka_unit_test(shuffle_is_a_permutation_and_all_orders_are_as_frequent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
