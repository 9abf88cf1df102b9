/* Tests src/cert/clopper_pearson.c: the binomial tail is never below its value in whole numbers,
 * and the share that comes of it covers every small source, drawn in every way. */
#include <pare_test.h>
#include "cert/conformal.h"

enum { TRIES = 10, PARTS = 64, SEED = 7 };

static uint64_t power(uint64_t a, size_t n)
{
    uint64_t v = 1;
    while (n-- > 0) v *= a;
    return v;
}

static uint64_t choose(size_t n, size_t k)
{
    uint64_t v = 1;
    for (size_t i = 1; i <= k; i++) v = v * (n - k + i) / i;
    return v;
}

/* p = a / 64: T(p) 64^n is a sum of whole numbers of at most 60 bits. */
static void the_tail_is_that_of_whole_numbers(void **state)
{
    (void)state;
    for (size_t n = 1; n <= TRIES; n++)
        for (size_t a = 0; a <= PARTS; a++) {
            uint64_t sum = 0;
            for (size_t k = 0; k < n; k++) {
                sum += choose(n, k) * power(a, k) * power(PARTS - a, n - k);
                const long double exact = ldexpl((long double)sum, -6 * (int)n);
                const double got = pare_binomial_tail(n, k, (double)a / PARTS).v;
                assert_true((long double)got >= exact);
                assert_true((long double)got <= exact * (1 + 1e-14L) + 1e-300L);
            }
        }
}

/* One try fails with probability 1 - p, which is not always a double. */
static void one_minus_p_is_rounded_up(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(SEED, 9);
    print_message("seed %d\n", SEED);
    for (int i = 0; i < 1000; i++) {
        const double p = ldexp(pare_rng_uniform(&r), -(int)pare_rng_below(&r, 60));
        assert_true((long double)pare_binomial_tail(1, 0, p).v >= 1 - (long double)p);
    }
}

/* Where the first term underflows and the sum has thousands of others, by logarithms. */
static void long_tails_are_as_near(void **state)
{
    (void)state;
    static const struct {
        size_t n, k;
        double p;
    } c[] = {{20000, 0, 0.001}, {20000, 1000, 0.053}, {20000, 9999, 0.5}, {100000, 99000, 0.991}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const long double n = (long double)c[i].n, p = c[i].p;
        long double sum = 0;
        for (size_t j = 0; j <= c[i].k; j++) {
            const long double v = (long double)j;
            sum += expl(lgammal(n + 1) - lgammal(v + 1) - lgammal(n - v + 1) + v * logl(p) +
                        (n - v) * log1pl(-p));
        }
        const double got = pare_binomial_tail(c[i].n, c[i].k, c[i].p).v;
        print_message("%zu of %zu, %g: %.12g\n", c[i].k, c[i].n, c[i].p, got);
        assert_near(got, (double)sum, 1e-9 * (double)sum);
    }
}

/* Where the tail meets delta: not less, and hardly more. */
static void the_share_is_where_the_tail_is_delta(void **state)
{
    (void)state;
    static const double confidence[] = {0.5, 0.9, 0.95, 0.999};
    static const size_t n[] = {1, 2, 9, 100, 872};
    for (size_t i = 0; i < 5; i++)
        for (size_t c = 0; c < 4; c++)
            for (size_t k = 0; k < n[i]; k = 3 * k + 1) {
                const double p = pare_share_above(n[i], k, confidence[c]);
                const double delta = 1 - confidence[c];
                assert_true(p > 0 && p <= 1);
                assert_le(pare_binomial_tail(n[i], k, p).v, delta);
                assert_true(pare_binomial_tail(n[i], k, p * (1 - 1e-9)).v > delta);
                if (k == 0) assert_near(p, -expm1(log(delta) / (double)n[i]), 1e-9 * p);
                if (k + 1 == n[i]) assert_near(p, pow(1 - delta, 1 / (double)n[i]), 1e-12);
            }
    /* 20 draws, none, one and two left out: of the tables, at 95 %. */
    assert_near(pare_share_above(20, 0, 0.95), 0.1391, 5e-5);
    assert_near(pare_share_above(20, 1, 0.95), 0.2161, 5e-5);
    assert_near(pare_share_above(20, 2, 0.95), 0.2826, 5e-5);
}

/* ---- coverage -------------------------------------------------------------------------------- */

static int falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

enum { SIZE = 6, DRAWN = 5 };
typedef size_t counts[DRAWN][SIZE + 1];

/* n draws from SIZE equally likely errors, in all SIZE^n ways: in how many of them so many of the
 * source are above the (k + 1)-th largest draw. */
static void count_above(counts c, const double *source, size_t n)
{
    memset(c, 0, sizeof(counts));
    for (uint64_t way = 0; way < power(SIZE, n); way++) {
        double draw[DRAWN];
        uint64_t rest = way;
        for (size_t i = 0; i < n; i++, rest /= SIZE) draw[i] = source[rest % SIZE];
        qsort(draw, n, sizeof *draw, falling);
        for (size_t k = 0; k < n; k++) {
            size_t above = 0;
            for (size_t i = 0; i < SIZE; i++) above += source[i] > draw[k];
            c[k][above]++;
        }
    }
}

/* Of all ways the part in which more than p of the source is above. */
static double misses(const size_t *above, size_t n, double p)
{
    size_t bad = 0;
    for (size_t i = 0; i <= SIZE; i++)
        if ((double)i > p * SIZE) bad += above[i];
    return (double)bad / (double)power(SIZE, n);
}

/* Sources with and without ties; the last ones are nearly met. */
static void every_way_to_draw_from_a_small_source_is_covered(void **state)
{
    (void)state;
    static const double sources[][SIZE] = {
        {0, 1, 2, 3, 4, 5}, {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 1}, {0, 0, 0, 0, 1, 1},
        {0, 0, 1, 1, 2, 2}, {0, 0, 0, 1, 2, 3}, {0, 0, 0, 1, 1, 1}, {0, 1, 1, 1, 1, 1}};
    double nearest = 0;
    for (size_t s = 0; s < sizeof sources / sizeof *sources; s++)
        for (size_t n = 1; n <= DRAWN; n++) {
            counts above;
            count_above(above, sources[s], n);
            for (size_t k = 0; k < n; k++)
                for (double delta = 0.01; delta <= 0.5; delta += 0.01) {
                    const double bad = misses(above[k], n, pare_share_above(n, k, 1 - delta));
                    assert_le(bad, delta);
                    nearest = fmax(nearest, bad / delta);
                }
        }
    print_message("the nearest is %.4f of what is allowed\n", nearest);
    assert_true(nearest > 0.95);
}

/* Without ties the promise is kept exactly: uniform draws, 1 - b of the source is above b. */
static void random_draws_miss_as_often_as_they_may(void **state)
{
    (void)state;
    enum { GAMES = 20000, DRAWS = 20 };
    print_message("seed %d\n", SEED);
    for (size_t k = 0; k < 5; k += 2) {
        pare_rng r = pare_rng_at(SEED, k);
        const double p = pare_share_above(DRAWS, k, 0.9);
        size_t bad = 0;
        for (int game = 0; game < GAMES; game++) {
            double draw[DRAWS];
            for (size_t i = 0; i < DRAWS; i++) draw[i] = pare_rng_uniform(&r);
            qsort(draw, DRAWS, sizeof *draw, falling);
            bad += 1 - draw[k] > p;
        }
        /* 2000 of them, give or take 42; five of these either way */
        print_message("%zu left out: %zu of %d missed, at most %g allowed\n", k, bad, GAMES,
                      0.1 * GAMES);
        assert_true(bad > 1790 && bad < 2210);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tail_is_that_of_whole_numbers),
        cmocka_unit_test(one_minus_p_is_rounded_up),
        cmocka_unit_test(long_tails_are_as_near),
        cmocka_unit_test(the_share_is_where_the_tail_is_delta),
        cmocka_unit_test(every_way_to_draw_from_a_small_source_is_covered),
        cmocka_unit_test(random_draws_miss_as_often_as_they_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
