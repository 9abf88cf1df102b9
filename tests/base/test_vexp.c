/* Tests src/base/vexp.c: every variant against exp in f64. */
#include <pare_test.h>
#include "base/vmath.h"
#include "base/vexp.h"

#ifndef STEP
#define STEP 211 /* odd: no bit is left out; long_vexp.c takes every f32 */
#endif

enum { CHUNK = 4096 };

/* Errors in units of the last place of the f32 nearest to the true value. */
static double ulps(float got, double want)
{
    if (want >= 0x1.ffffffp+127) return isinf(got) ? 0 : INFINITY;
    const float near = (float)want;
    const double ulp = near < 0x1p-126f ? 0x1p-149 : ldexp(1, ilogbf(near) - 23);
    return fabs((double)got - want) / ulp;
}

static float of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* All positive bit patterns `first`, first + step, ... below `end`, and their negatives. */
static double worst(const exp_variant *v, uint32_t first, uint32_t end, uint32_t step)
{
    static float x[CHUNK], y[CHUNK];
    double most = 0;
    for (uint32_t at = first; at < end;) {
        size_t n = 0;
        for (; n + 2 <= CHUNK && at < end; at += step) {
            x[n++] = of_bits(at);
            x[n++] = -of_bits(at);
        }
        v->run(y, x, n);
        for (size_t i = 0; i < n; i++) {
            const double e = ulps(y[i], exp((double)x[i]));
            if (!(e <= most)) most = e;
        }
    }
    return most;
}

static void every_variant_is_within_two_ulp(void **state)
{
    (void)state;
    exp_variant v[3];
    const size_t n = exp_variants(v);
    for (size_t i = 0; i < n; i++) {
        /* 0 .. 2^-30, where e^x is 1, then up to 105 */
        const double small = worst(&v[i], 0, 0x30800000, 65537);
        const double e = worst(&v[i], 0x30800000, 0x42d20000, STEP);
        print_message("%s: %.3f ulp\n", v[i].name, e);
        assert_le(small, 1);
        assert_le(e, 2);
    }
}

static void far_ends_and_nan_are_exact(void **state)
{
    (void)state;
    const float x[] = {-104, -104.01f, -105,     -1e4f, -1e30f, -INFINITY, 89,
                       100,  1e30f,    INFINITY, NAN,   0,      -0.0f};
    enum { COUNT = sizeof x / sizeof *x };
    exp_variant v[3];
    const size_t n = exp_variants(v);
    for (size_t k = 0; k < n; k++) {
        float y[COUNT];
        v[k].run(y, x, COUNT);
        for (size_t i = 0; i < 6; i++) assert_true(y[i] == 0);
        for (size_t i = 6; i < 10; i++) assert_true(y[i] == INFINITY);
        assert_true(isnan(y[10]) && y[11] == 1 && y[12] == 1);
        v[k].run(y, (const float[]){88.72283f, -103.9f, -87.5f}, 3);
        assert_true(isfinite(y[0]) && y[1] == 0x1p-149f && y[2] > 0 && y[2] < 0x1p-126f);
    }
}

/* The end of an array goes another way than its middle. */
static void an_element_does_not_depend_on_its_place(void **state)
{
    (void)state;
    exp_variant v[3];
    const size_t variants = exp_variants(v);
    float x[41], whole[41], part[41];
    for (size_t i = 0; i < 41; i++) x[i] = 3 - 2.7f * (float)i;
    for (size_t k = 0; k < variants; k++) {
        v[k].run(whole, x, 41);
        for (size_t n = 0; n <= 40; n++) {
            memset(part, 0x55, sizeof part);
            v[k].run(part, x, n);
            assert_memory_equal(part, whole, n * sizeof *part);
            assert_true(part[n] == of_bits(0x55555555));
        }
        memcpy(part, x, sizeof x);
        v[k].run(part, part, 41);
        assert_memory_equal(part, whole, sizeof part);
    }
    pare_exp_f32(part, x, 41);
    v[0].run(whole, x, 41);
    assert_memory_equal(part, whole, sizeof part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_is_within_two_ulp),
        cmocka_unit_test(far_ends_and_nan_are_exact),
        cmocka_unit_test(an_element_does_not_depend_on_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
