/* Tests src/quant/rtn.c: scales beside a search over all of them on tiny groups, and what is rounded
 * with them. */
#include "base/array.h"
#include "quant/encode.h"
#include <math.h>
#include <pare_test.h>

enum { SEED = 11 };
static pare_arena *arena;

static int set_up(void **state)
{
    (void)state;
    return (arena = pare_arena_new()) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pare_arena_free(arena);
    return 0;
}

static group_range range_of(unsigned bits, bool affine)
{
    return (group_range){.least = pare_int_groups_least(bits, affine),
                         .most = pare_int_groups_most(bits, affine),
                         .affine = affine};
}

/* By the definition: the integer whose number is nearest. */
static double error_by_search(const float *w, const double *worth, size_t n, group_scale s,
                              const group_range *r)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double best = INFINITY;
        for (int q = r->least; q <= r->most; q++) {
            const double e = (double)w[i] - (double)s.scale * q - (double)s.offset;
            best = fmin(best, e * e);
        }
        sum += (worth ? worth[i] : 1) * best;
    }
    return sum;
}

static double error_of(const float *w, const double *worth, size_t n, group_scale s,
                       const group_range *r)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const int q = nearest_code((double)w[i], s, r);
        const double e = (double)w[i] - (double)s.scale * q - (double)s.offset;
        assert_true(q >= r->least && q <= r->most);
        sum += (worth ? worth[i] : 1) * e * e;
    }
    return sum;
}

static void draw(pare_rng *g, float *w, double *worth, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w[i] = (float)pare_rng_normal(g);
        worth[i] = exp(2 * pare_rng_normal(g));
    }
}

static void the_nearest_integer_is_the_nearest(void **state)
{
    (void)state;
    pare_rng g = pare_rng_at(SEED, 1);
    float w[16];
    double worth[16];
    for (int t = 0; t < 2000; t++) {
        const group_range r = range_of(2 + (unsigned)(t % 7), t & 1);
        const group_scale s = {(float)pare_rng_normal(&g) / 4,
                               t & 1 ? (float)pare_rng_normal(&g) : 0};
        draw(&g, w, worth, 16);
        const double most = error_by_search(w, worth, 16, s, &r);
        assert_near(error_of(w, worth, 16, s, &r), most, 1e-9 * most);
    }
    /* ties go to the even integer, as in numpy.rint */
    const group_range r = range_of(8, false);
    const group_scale one = {1, 0};
    static const double half[][2] = {{0.5, 0},  {1.5, 2},   {2.5, 2},
                                     {-0.5, 0}, {-1.5, -2}, {126.5, 126}};
    for (size_t i = 0; i < sizeof half / sizeof *half; i++)
        assert_int_equal(nearest_code(half[i][0], one, &r), (int)half[i][1]);
    assert_int_equal(nearest_code(1e300, one, &r), 127);
    assert_int_equal(nearest_code(-1e300, one, &r), -128);
}

/* Beside all f16 scales up to 1.6 times the one that reaches the largest weight. The search of
 * best_scale is not complete: how far off it may be is what is written here. */
static void no_other_scale_is_much_better(void **state)
{
    (void)state;
    pare_rng g = pare_rng_at(SEED, 2);
    double sum[2] = {0}, worst = 1;
    for (int t = 0; t < 600; t++) {
        const unsigned bits = 2 + (unsigned)(t % 5);
        const group_range r = range_of(bits, false);
        const size_t n = t % 3 ? 8 : 32;
        float w[32], largest = 0;
        double worth[32], best = INFINITY;
        draw(&g, w, worth, n);
        for (size_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(w[i]));
        const double *const h = t & 1 ? worth : NULL;
        for (int k = 1; k <= 1600; k++)
            for (int sign = -1; sign <= 1; sign += 2) {
                const double d = sign * (double)largest / r.most * k / 1000;
                const group_scale s = {pare_f16_to_f32(pare_f16_of(d)), 0};
                best = fmin(best, error_of(w, h, n, s, &r));
            }
        const double is = error_of(w, h, n, best_scale(w, h, n, &r), &r);
        sum[0] += is;
        sum[1] += best;
        worst = fmax(worst, is / best);
    }
    print_message("errors %.3f times those of the best scales, at most %.2f times\n",
                  sum[0] / sum[1], worst);
    assert_le(sum[0] / sum[1], 1.02);
    assert_le(worst, 5);
}

/* Weights that are scale times integers, plus an offset: nothing is lost. */
static void numbers_of_a_grid_stay(void **state)
{
    (void)state;
    pare_rng g = pare_rng_at(SEED, 3);
    for (int t = 0; t < 400; t++) {
        const unsigned bits = 2 + (unsigned)(t % 7);
        const bool affine = t & 1;
        const group_range r = range_of(bits, affine);
        const float d = 0.125f, m = affine ? -1.5f : 0;
        float w[24];
        for (size_t i = 0; i < 24; i++)
            w[i] =
                d * (float)(r.least + (int)pare_rng_below(&g, (uint64_t)(r.most - r.least + 1))) +
                m;
        w[5] = d * (float)r.least + m; /* both ends are there */
        w[7] = d * (float)r.most + m;
        assert_true(error_of(w, NULL, 24, best_scale(w, NULL, 24, &r), &r) == 0);
    }
}

/* What the data show to matter is rounded better, and the weighted error is smaller for it. */
static void weighting_lowers_the_weighted_error(void **state)
{
    (void)state;
    pare_rng g = pare_rng_at(SEED, 4);
    double with = 0, without = 0;
    for (int t = 0; t < 300; t++) {
        const group_range r = range_of(2 + (unsigned)(t % 3), t & 1);
        float w[32];
        double worth[32];
        draw(&g, w, worth, 32);
        with += error_of(w, worth, 32, best_scale(w, worth, 32, &r), &r);
        without += error_of(w, worth, 32, best_scale(w, NULL, 32, &r), &r);
    }
    print_message("weighted error %.3f of that without weights\n", with / without);
    assert_le(with, 0.8 * without);
}

static void odd_groups_have_scales(void **state)
{
    (void)state;
    static const float zeros[4] = {0}, same[4] = {3, 3, 3, 3}, one[1] = {-7};
    for (int affine = 0; affine < 2; affine++)
        for (unsigned bits = 2; bits <= 8; bits++) {
            const group_range r = range_of(bits, affine);
            assert_true(error_of(zeros, NULL, 4, best_scale(zeros, NULL, 4, &r), &r) == 0);
            assert_le(error_of(same, NULL, 4, best_scale(same, NULL, 4, &r), &r), 1e-5);
            assert_le(error_of(one, NULL, 1, best_scale(one, NULL, 1, &r), &r), 1e-4);
        }
}

/* Scales of weights near the ends of f16 are f32; those of others are f16 numbers. */
static void scales_are_wide_where_f16_would_lose_them(void **state)
{
    (void)state;
    static const double size[] = {1e-7, 1e-3, 1, 1e4, 7e4, 1e20};
    static const bool wide[] = {true, false, false, false, true, true};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        pare_rng g = pare_rng_at(SEED, 5);
        float w[64], *made;
        double largest = 0, error = 0, of = 0;
        for (size_t i = 0; i < 64; i++) {
            w[i] = (float)pare_rng_normal(&g);
            largest = fmax(largest, fabs((double)w[i]));
        }
        for (size_t i = 0; i < 64; i++) w[i] = (float)((double)w[i] * size[k] / largest);
        const quant_job job = {
            .rows = 2, .cols = 32, .w = w, .method = PARE_QUANT_RTN, .bits = 4, .group = 16};
        pare_coded c;
        pare_err err = {0};
        assert_ok(quant_matrix(&c, &made, arena, &job, &err), &err);
        assert_int_equal(c.bytes, pare_coded_groups_bytes(2, 32, 16, 4, false, wide[k]));
        const pare_weight weight = {PARE_F32, 2, 32, w};
        assert_int_equal(quant_is_wide(&weight, 4), wide[k]);
        for (size_t i = 0; i < 64; i++) {
            const double x = (double)w[i];
            error += (x - (double)made[i]) * (x - (double)made[i]);
            of += x * x;
        }
        assert_le(error, 0.02 * of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_integer_is_the_nearest),
        cmocka_unit_test(no_other_scale_is_much_better),
        cmocka_unit_test(numbers_of_a_grid_stay),
        cmocka_unit_test(weighting_lowers_the_weighted_error),
        cmocka_unit_test(odd_groups_have_scales),
        cmocka_unit_test(scales_are_wide_where_f16_would_lose_them),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
