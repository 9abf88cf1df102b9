/* Tests src/length/merge_softmax.c, accumulate.c: what a merge computes, on every vector unit. */
#include "length/run.h"
#include <pare_test.h>

enum { SEED = 20261117 };

/* In units of the last place of the f64 nearest to the true value. */
static double ulps(double got, long double want)
{
    return (double)(fabsl((long double)got - want) / ldexpl(1, ilogb((double)want) - 52));
}

enum { ROWS = 37 };
typedef struct merged {
    double m[ROWS], l[ROWS], row_max[ROWS], weight_sum[ROWS], scale_old[ROWS], scale_new[ROWS];
    float mf[ROWS], lf[ROWS];
} merged;

static void merge_with(merge_partial_fn *fn, merged *w, size_t n, bool f32)
{
    const partial_merge f = {f32 ? (const void *)w->mf : w->m,
                             f32 ? (const void *)w->lf : w->l,
                             w->row_max,
                             w->weight_sum,
                             w->scale_old,
                             w->scale_new};
    fn(&f, n, f32);
}

static void the_side_with_the_smaller_maximum_is_rescaled(void **state)
{
    (void)state;
    merge_partial_fn *v[3];
    const size_t variants = merge_partial_variants(v);
    pare_rng r = pare_rng_at(SEED, 1);
    for (size_t round = 0; round < 2000; round++) {
        merged w, x;
        const double reach = round % 2 ? 708 : 2;
        for (size_t i = 0; i < ROWS; i++) {
            w.m[i] = reach * (pare_rng_uniform(&r) - 0.5);
            w.row_max[i] = reach * (pare_rng_uniform(&r) - 0.5);
            w.l[i] = 1 + pare_rng_uniform(&r);
            w.weight_sum[i] = 1 + pare_rng_uniform(&r);
        }
        for (size_t e = 0; e < variants; e++) {
            x = w;
            merge_with(v[e], &x, ROWS, false);
            for (size_t i = 0; i < ROWS; i++) {
                const bool higher = w.m[i] > w.row_max[i];
                const double got = higher ? x.scale_old[i] : x.scale_new[i];
                const double gap = fabs(w.m[i] - w.row_max[i]);
                if (!(ulps(got, expl(-(long double)gap)) <= 1.5))
                    fail_msg("seed %d: e^-%a is not %a", SEED, gap, got);
                assert_true((higher ? x.scale_new[i] : x.scale_old[i]) == 1);
                assert_true(x.row_max[i] == (higher ? w.m[i] : w.row_max[i]));
                assert_true(x.weight_sum[i] ==
                            x.scale_old[i] * w.weight_sum[i] + x.scale_new[i] * w.l[i]);
            }
        }
    }
}

static void a_nan_is_not_rescaled_away(void **state)
{
    (void)state;
    merge_partial_fn *v[3];
    const size_t variants = merge_partial_variants(v);
    const double m[] = {0,        -0.0, -708,     -708.0000000000001, -745, -1e300,
                        -0x1p-60, NAN,  INFINITY, -INFINITY,          0,    0};
    for (size_t e = 0; e < variants; e++) {
        merged w = {.l = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, NAN, 0}};
        memcpy(w.m, m, sizeof m);
        merge_with(v[e], &w, 12, false);
        assert_true(w.scale_new[0] == 1 && w.scale_new[1] == 1 && w.scale_new[6] == 1 &&
                    w.scale_new[2] >= 0x1p-1022);
        for (size_t i = 3; i < 6; i++) assert_true(w.scale_new[i] == 0 && w.weight_sum[i] == 0);
        for (size_t i = 7; i < 12; i++) assert_true(isnan(w.weight_sum[i]));
        w = (merged){.l = {1}, .m = {-3}, .row_max = {-INFINITY}}; /* the first result of a row */
        merge_with(v[e], &w, 1, false);
        assert_true(w.scale_old[0] == 0 && w.scale_new[0] == 1 && w.weight_sum[0] == 1 &&
                    w.row_max[0] == -3);
    }
}

/* Also: a row does not depend on where it stands, nor on the type its numbers came in. */
static void variants_merge_to_the_same_bits(void **state)
{
    (void)state;
    merge_partial_fn *v[3];
    const size_t variants = merge_partial_variants(v);
    pare_rng r = pare_rng_at(SEED, 2);
    merged w = {.m = {0}};
    for (size_t i = 0; i < ROWS; i++) {
        w.m[i] = (double)(w.mf[i] = (float)(40 * pare_rng_normal(&r)));
        w.l[i] = (double)(w.lf[i] = (float)(1 + pare_rng_uniform(&r)));
        w.row_max[i] = 40 * pare_rng_normal(&r);
    }
    for (size_t e = 0; e < variants; e++)
        for (size_t n = 1; n <= ROWS; n++) {
            merged x = w, y = w;
            merge_with(v[e], &x, n, n % 2);
            for (size_t i = 0; i < n; i++) {
                const partial_merge one = {w.m + i,          w.l + i,         y.row_max + i,
                                           y.weight_sum + i, y.scale_old + i, y.scale_new + i};
                v[variants - 1](&one, 1, false);
            }
            assert_memory_equal(x.scale_old, y.scale_old, n * sizeof(double));
            assert_memory_equal(x.scale_new, y.scale_new, n * sizeof(double));
            assert_memory_equal(x.row_max, y.row_max, n * sizeof(double));
            assert_memory_equal(x.weight_sum, y.weight_sum, n * sizeof(double));
        }
}

/* What a call with a reference says, one row at a time. */
static void merge_reference_row(double mass, double w, double least, double most, double *scale_new,
                                double *weight_sum)
{
    const bool sound = w >= least && mass >= 0 && w + mass <= most;
    *scale_new = sound ? 1 / w : 0;
    *weight_sum += sound ? mass * (1 / w) : (double)NAN;
}

static void results_are_divided_by_the_weight_of_the_reference(void **state)
{
    (void)state;
    const double least = 0x1p-80, most = 1.0625, just = nextafter(least, 0),
                 odd[] = {0,     -0.0,     -0x1p-149, 1,        1.0625,    1.0626, just,
                          least, 0x1p-126, 1e30,      INFINITY, -INFINITY, NAN};
    enum { ODD = sizeof odd / sizeof *odd };
    merge_reference_fn *v[3];
    const size_t variants = merge_reference_variants(v);
    pare_rng r = pare_rng_at(SEED, 4);
    for (size_t e = 0; e < variants; e++)
        for (size_t n = 1; n <= STRIPE; n++) {
            double wide[2][STRIPE], weight_sum[2][STRIPE], scale_old[STRIPE] = {0},
                                                           scale_new[2][STRIPE];
            float narrow[2][STRIPE];
            for (size_t i = 0; i < 2 * n; i++)
                narrow[i % 2][i / 2] =
                    (float)(wide[i % 2][i / 2] = n % 3 ? (double)(float)pare_rng_uniform(&r) / 2
                                                       : odd[pare_rng_u32(&r) % ODD]);
            for (size_t f32 = 0; f32 < 2; f32++) {
                for (size_t i = 0; i < n; i++) weight_sum[0][i] = weight_sum[1][i] = (double)i;
                const reference_merge s = {f32 ? (const void *)narrow[0] : wide[0],
                                           f32 ? (const void *)narrow[1] : wide[1],
                                           weight_sum[0],
                                           scale_old,
                                           scale_new[0],
                                           least,
                                           most};
                v[e](&s, n, f32);
                for (size_t i = 0; i < n; i++) {
                    const double mass = f32 ? (double)narrow[0][i] : wide[0][i];
                    const double w = f32 ? (double)narrow[1][i] : wide[1][i];
                    merge_reference_row(mass, w, least, most, &scale_new[1][i], &weight_sum[1][i]);
                    if (scale_old[i] != 1 || scale_new[0][i] != scale_new[1][i] ||
                        !(weight_sum[0][i] == weight_sum[1][i] ||
                          (isnan(weight_sum[0][i]) && isnan(weight_sum[1][i]))))
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
            w->a.scale_old[t][i] = pare_rng_uniform(r) < 0.5 ? 1 : pare_rng_uniform(r);
            w->a.scale_new[t][i] = pare_rng_uniform(r);
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
    accumulate_fn *v[3];
    const size_t variants = accumulate_variants(v);
    pare_rng r = pare_rng_at(SEED, 3);
    for (size_t e = 0; e < variants; e++)
        for (size_t x = 0; x < sizeof widths / sizeof *widths; x++) {
            const size_t n = widths[x], count = x % 2 ? STRIPE : 3;
            fill(&w, &r, n);
            w.a.count = x % 3 ? ADDENDS : 1;
            for (size_t i = 0; i < count; i++)
                for (size_t t = 0; t < w.a.count; t++)
                    for (size_t c = 0; c < n; c++) {
                        const double kept = w.a.scale_old[t][i] * w.want[i * n + c];
                        const double more = w.a.scale_new[t][i] * (double)w.x[t][i * w.a.ld + c];
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
    double num[64] = {0}, weight_sum = 1;
    for (size_t x = 0; x < sizeof widths / sizeof *widths; x++) {
        const head_state h = {.acc = num, .weight_sum = &weight_sum, .job.dv = widths[x]};
        const length_run r = {.window = {.first = 0}};
        assert_true(accumulators_finite(&r, &h, 0));
        for (size_t c = 0; c < widths[x]; c++) {
            num[c] = c % 2 ? INFINITY : NAN;
            assert_false(accumulators_finite(&r, &h, 0));
            num[c] = 0;
        }
        weight_sum = NAN;
        assert_false(accumulators_finite(&r, &h, 0));
        weight_sum = 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_side_with_the_smaller_maximum_is_rescaled),
        cmocka_unit_test(a_nan_is_not_rescaled_away),
        cmocka_unit_test(variants_merge_to_the_same_bits),
        cmocka_unit_test(results_are_divided_by_the_weight_of_the_reference),
        cmocka_unit_test(sums_are_those_of_one_addend_after_the_other),
        cmocka_unit_test(a_row_with_one_number_that_is_none_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
