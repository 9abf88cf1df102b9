/* Tests src/length/sums.c, fades.c: what a merge computes, on every vector unit. */
#include "../../src/length/rounds.h"
#include <pare_test.h>

enum { SEED = 20261117 };

/* In units of the last place of the f64 nearest to the true value. */
static double ulps(double got, long double want)
{
    return (double)(fabsl((long double)got - want) / ldexpl(1, ilogb((double)want) - 52));
}

static void a_fade_is_the_exponential(void **state)
{
    (void)state;
    fades_fn *v[3];
    const size_t variants = fades_variants(v);
    pare_rng r = pare_rng_at(SEED, 1);
    for (size_t round = 0; round < 2000; round++) {
        double x[37], y[37];
        const double reach = round % 2 ? 708 : 2;
        for (size_t i = 0; i < 37; i++) x[i] = -reach * pare_rng_uniform(&r);
        for (size_t e = 0; e < variants; e++) {
            memcpy(y, x, sizeof x);
            v[e](y, 37);
            for (size_t i = 0; i < 37; i++)
                if (!(ulps(y[i], expl((long double)x[i])) <= 1.5))
                    fail_msg("seed %d: e^%a is not %a", SEED, x[i], y[i]);
        }
    }
}

static void fades_end_where_numbers_are_no_longer_normal(void **state)
{
    (void)state;
    fades_fn *v[3];
    const size_t variants = fades_variants(v);
    for (size_t e = 0; e < variants; e++) {
        double x[] = {0.0, -0.0, -708, -708.0000000000001, -745, -1e300, -INFINITY, NAN, -0x1p-60};
        v[e](x, 9);
        assert_true(x[0] == 1 && x[1] == 1 && x[8] == 1);
        assert_true(x[2] >= 0x1p-1022);
        for (size_t i = 3; i < 7; i++) assert_true(x[i] == 0);
        assert_true(isnan(x[7]));
    }
}

/* Also: a number does not depend on where it stands. */
static void variants_fade_to_the_same_bits(void **state)
{
    (void)state;
    fades_fn *v[3];
    const size_t variants = fades_variants(v);
    pare_rng r = pare_rng_at(SEED, 2);
    double x[20], all[20], one;
    for (size_t i = 0; i < 20; i++) x[i] = -40 * pare_rng_uniform(&r);
    for (size_t e = 0; e < variants; e++)
        for (size_t n = 1; n <= 20; n++) {
            memcpy(all, x, sizeof x);
            v[e](all, n);
            for (size_t i = 0; i < n; i++) {
                one = x[i];
                v[variants - 1](&one, 1);
                assert_memory_equal(&one, &all[i], sizeof one);
            }
        }
}

typedef struct rows {
    float x[ADDENDS][STRIPE * 140];
    double want[STRIPE * 131], got[STRIPE * 131];
    addends a;
} rows;

static void fill(rows *w, pare_rng *r, size_t n)
{
    w->a.ld = n + 9;
    for (size_t t = 0; t < ADDENDS; t++) {
        w->a.x[t] = w->x[t];
        for (size_t i = 0; i < STRIPE * w->a.ld; i++) w->x[t][i] = (float)pare_rng_normal(r);
        for (size_t i = 0; i < STRIPE; i++) {
            w->a.keep[t][i] = pare_rng_uniform(r) < 0.5 ? 1 : pare_rng_uniform(r);
            w->a.by[t][i] = pare_rng_uniform(r);
        }
    }
    for (size_t i = 0; i < STRIPE * n; i++) w->want[i] = pare_rng_normal(r);
    memcpy(w->got, w->want, sizeof w->got);
}

/* One product, one product, one sum: neither fused nor in another order. */
static void sums_are_those_of_one_addend_after_the_other(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 7, 8, 16, 33, 64, 72, 131};
    static rows w;
    sums_add_fn *v[3];
    const size_t variants = sums_variants(v);
    pare_rng r = pare_rng_at(SEED, 3);
    for (size_t e = 0; e < variants; e++)
        for (size_t x = 0; x < sizeof widths / sizeof *widths; x++) {
            const size_t n = widths[x], count = x % 2 ? STRIPE : 3;
            fill(&w, &r, n);
            w.a.count = x % 3 ? ADDENDS : 1;
            for (size_t i = 0; i < count; i++)
                for (size_t t = 0; t < w.a.count; t++)
                    for (size_t c = 0; c < n; c++) {
                        const double kept = w.a.keep[t][i] * w.want[i * n + c];
                        const double more = w.a.by[t][i] * (double)w.x[t][i * w.a.ld + c];
                        w.want[i * n + c] = kept + more;
                    }
            assert_true(v[e](w.got, count, n, &w.a));
            assert_memory_equal(w.got, w.want, sizeof w.got);
            w.x[0][(count - 1) * w.a.ld + n - 1] = x % 2 ? NAN : INFINITY;
            assert_false(v[e](w.got, count, n, &w.a));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fade_is_the_exponential),
        cmocka_unit_test(fades_end_where_numbers_are_no_longer_normal),
        cmocka_unit_test(variants_fade_to_the_same_bits),
        cmocka_unit_test(sums_are_those_of_one_addend_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
