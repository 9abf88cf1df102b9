/* Tests src/length/accumulators.c, merge_softmax.c: what a merge computes, on every vector unit. */
#include "length/rounds.h"
#include <pare_test.h>

enum { SEED = 20261117 };

/* In units of the last place of the f64 nearest to the true value. */
static double ulps(double got, long double want)
{
    return (double)(fabsl((long double)got - want) / ldexpl(1, ilogb((double)want) - 52));
}

enum { ROWS = 37 };
typedef struct faded {
    double m[ROWS], l[ROWS], top[ROWS], den[ROWS], keep[ROWS], by[ROWS];
    float mf[ROWS], lf[ROWS];
} faded;

static void fade_with(fade_fn *fn, faded *w, size_t n, bool f32)
{
    const fading f = {f32 ? (const void *)w->mf : w->m,
                      f32 ? (const void *)w->lf : w->l,
                      w->top,
                      w->den,
                      w->keep,
                      w->by};
    fn(&f, n, f32);
}

static void the_smaller_maximum_fades(void **state)
{
    (void)state;
    fade_fn *v[3];
    const size_t variants = fade_variants(v);
    pare_rng r = pare_rng_at(SEED, 1);
    for (size_t round = 0; round < 2000; round++) {
        faded w, x;
        const double reach = round % 2 ? 708 : 2;
        for (size_t i = 0; i < ROWS; i++) {
            w.m[i] = reach * (pare_rng_uniform(&r) - 0.5);
            w.top[i] = reach * (pare_rng_uniform(&r) - 0.5);
            w.l[i] = 1 + pare_rng_uniform(&r);
            w.den[i] = 1 + pare_rng_uniform(&r);
        }
        for (size_t e = 0; e < variants; e++) {
            x = w;
            fade_with(v[e], &x, ROWS, false);
            for (size_t i = 0; i < ROWS; i++) {
                const bool higher = w.m[i] > w.top[i];
                const double got = higher ? x.keep[i] : x.by[i];
                const double gap = fabs(w.m[i] - w.top[i]);
                if (!(ulps(got, expl(-(long double)gap)) <= 1.5))
                    fail_msg("seed %d: e^-%a is not %a", SEED, gap, got);
                assert_true((higher ? x.by[i] : x.keep[i]) == 1);
                assert_true(x.top[i] == (higher ? w.m[i] : w.top[i]));
                assert_true(x.den[i] == x.keep[i] * w.den[i] + x.by[i] * w.l[i]);
            }
        }
    }
}

static void what_is_no_number_does_not_fade_away(void **state)
{
    (void)state;
    fade_fn *v[3];
    const size_t variants = fade_variants(v);
    const double m[] = {0,        -0.0, -708,     -708.0000000000001, -745, -1e300,
                        -0x1p-60, NAN,  INFINITY, -INFINITY,          0,    0};
    for (size_t e = 0; e < variants; e++) {
        faded w = {.l = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, NAN, 0}};
        memcpy(w.m, m, sizeof m);
        fade_with(v[e], &w, 12, false);
        assert_true(w.by[0] == 1 && w.by[1] == 1 && w.by[6] == 1 && w.by[2] >= 0x1p-1022);
        for (size_t i = 3; i < 6; i++) assert_true(w.by[i] == 0 && w.den[i] == 0);
        for (size_t i = 7; i < 12; i++) assert_true(isnan(w.den[i]));
        w = (faded){.l = {1}, .m = {-3}, .top = {-INFINITY}}; /* the first result of a row */
        fade_with(v[e], &w, 1, false);
        assert_true(w.keep[0] == 0 && w.by[0] == 1 && w.den[0] == 1 && w.top[0] == -3);
    }
}

/* Also: a row does not depend on where it stands, nor on the type its numbers came in. */
static void variants_fade_to_the_same_bits(void **state)
{
    (void)state;
    fade_fn *v[3];
    const size_t variants = fade_variants(v);
    pare_rng r = pare_rng_at(SEED, 2);
    faded w = {.m = {0}};
    for (size_t i = 0; i < ROWS; i++) {
        w.m[i] = (double)(w.mf[i] = (float)(40 * pare_rng_normal(&r)));
        w.l[i] = (double)(w.lf[i] = (float)(1 + pare_rng_uniform(&r)));
        w.top[i] = 40 * pare_rng_normal(&r);
    }
    for (size_t e = 0; e < variants; e++)
        for (size_t n = 1; n <= ROWS; n++) {
            faded x = w, y = w;
            fade_with(v[e], &x, n, n % 2);
            for (size_t i = 0; i < n; i++) {
                const fading one = {w.m + i, w.l + i, y.top + i, y.den + i, y.keep + i, y.by + i};
                v[variants - 1](&one, 1, false);
            }
            assert_memory_equal(x.keep, y.keep, n * sizeof(double));
            assert_memory_equal(x.by, y.by, n * sizeof(double));
            assert_memory_equal(x.top, y.top, n * sizeof(double));
            assert_memory_equal(x.den, y.den, n * sizeof(double));
        }
}

/* What a call with a reference says, one row at a time. */
static void share_one(double mass, double w, double least, double most, double *by, double *den)
{
    const bool sound = w >= least && mass >= 0 && w + mass <= most;
    *by = sound ? 1 / w : 0;
    *den += sound ? mass * (1 / w) : (double)NAN;
}

static void results_are_divided_by_what_the_reference_weighs(void **state)
{
    (void)state;
    const double least = 0x1p-80, most = 1.0625, just = nextafter(least, 0),
                 odd[] = {0,     -0.0,     -0x1p-149, 1,        1.0625,    1.0626, just,
                          least, 0x1p-126, 1e30,      INFINITY, -INFINITY, NAN};
    enum { ODD = sizeof odd / sizeof *odd };
    share_fn *v[3];
    const size_t variants = share_variants(v);
    pare_rng r = pare_rng_at(SEED, 4);
    for (size_t e = 0; e < variants; e++)
        for (size_t n = 1; n <= STRIPE; n++) {
            double wide[2][STRIPE], den[2][STRIPE], keep[STRIPE] = {0}, by[2][STRIPE];
            float narrow[2][STRIPE];
            for (size_t i = 0; i < 2 * n; i++)
                narrow[i % 2][i / 2] =
                    (float)(wide[i % 2][i / 2] = n % 3 ? (double)(float)pare_rng_uniform(&r) / 2
                                                       : odd[pare_rng_u32(&r) % ODD]);
            for (size_t f32 = 0; f32 < 2; f32++) {
                for (size_t i = 0; i < n; i++) den[0][i] = den[1][i] = (double)i;
                const sharing s = {f32 ? (const void *)narrow[0] : wide[0],
                                   f32 ? (const void *)narrow[1] : wide[1],
                                   den[0],
                                   keep,
                                   by[0],
                                   least,
                                   most};
                v[e](&s, n, f32);
                for (size_t i = 0; i < n; i++) {
                    const double mass = f32 ? (double)narrow[0][i] : wide[0][i];
                    const double w = f32 ? (double)narrow[1][i] : wide[1][i];
                    share_one(mass, w, least, most, &by[1][i], &den[1][i]);
                    if (keep[i] != 1 || by[0][i] != by[1][i] ||
                        !(den[0][i] == den[1][i] || (isnan(den[0][i]) && isnan(den[1][i]))))
                        fail_msg("seed %d, row %zu of %zu: %a beside %a", SEED, i, n, mass, w);
                }
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

static void a_row_with_one_number_that_is_none_is_found(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 15, 16, 37, 64};
    double num[64] = {0}, den = 1;
    for (size_t x = 0; x < sizeof widths / sizeof *widths; x++) {
        const head h = {.num = num, .den = &den, .job.dv = widths[x]};
        const run r = {.first = 0};
        assert_true(sums_finite(&r, &h, 0));
        for (size_t c = 0; c < widths[x]; c++) {
            num[c] = c % 2 ? INFINITY : NAN;
            assert_false(sums_finite(&r, &h, 0));
            num[c] = 0;
        }
        den = NAN;
        assert_false(sums_finite(&r, &h, 0));
        den = 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smaller_maximum_fades),
        cmocka_unit_test(what_is_no_number_does_not_fade_away),
        cmocka_unit_test(variants_fade_to_the_same_bits),
        cmocka_unit_test(results_are_divided_by_what_the_reference_weighs),
        cmocka_unit_test(sums_are_those_of_one_addend_after_the_other),
        cmocka_unit_test(a_row_with_one_number_that_is_none_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
