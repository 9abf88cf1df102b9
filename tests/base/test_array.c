/* Tests src/base/array.c and src/base/half_precision.c. */
#include <pare_test.h>
#include "base/array.h"

static void every_f16_and_bf16_is_widened_exactly(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        const double sign = h & 0x8000 ? -1 : 1;
        const int e = (int)(h >> 10 & 31), f = (int)(h & 1023);
        const double want = e == 31  ? (f ? NAN : INFINITY)
                            : e == 0 ? ldexp(f, -24)
                                     : ldexp(1024 + f, e - 25);
        const double got = (double)pare_f16_to_f32((uint16_t)h);
        assert_true(isnan(want) ? isnan(got) : got == sign * want);
        assert_true(isnan(want) || !signbit(got) == !(h & 0x8000)); /* -0 as well */
        const int be = (int)(h >> 7 & 255), bf = (int)(h & 127);
        const double bwant = be == 255 ? (bf ? NAN : INFINITY)
                             : be == 0 ? ldexp(bf, -133)
                                       : ldexp(128 + bf, be - 134);
        const double bgot = (double)pare_bf16_to_f32((uint16_t)h);
        assert_true(isnan(bwant) ? isnan(bgot) : bgot == sign * bwant);
    }
}

/* Worked out by hand: ties, subnormals, the largest numbers, signs. */
static void rounding_to_half_precision_is_to_nearest_ties_to_even(void **state)
{
    (void)state;
    static const struct {
        double x;
        uint16_t f16, bf16;
    } table[] = {
        {0, 0, 0},
        {-0.0, 0x8000, 0x8000},
        {1, 0x3C00, 0x3F80},
        {-2, 0xC000, 0xC000},
        {1 + 0x1p-11, 0x3C00, 0x3F80},           /* f16 tie, down to even */
        {1 + 0x3p-11, 0x3C02, 0x3F80},           /* f16 tie, up to even */
        {1 + 0x1p-11 + 0x1p-40, 0x3C01, 0x3F80}, /* beyond f32: must not round twice */
        {1 + 0x1p-8, 0x3C04, 0x3F80},            /* bf16 tie, down */
        {1 + 0x3p-8, 0x3C0C, 0x3F82},            /* bf16 tie, up */
        {1 + 0x1p-8 + 0x1p-45, 0x3C04, 0x3F81},  /* the same of bf16 */
        {2 - 0x1p-12, 0x4000, 0x4000},           /* carries into the exponent */
        {65504, 0x7BFF, 0x4780},                 /* the largest f16 */
        {65519.99, 0x7BFF, 0x4780},              /* still rounds to it */
        {65520, 0x7C00, 0x4780},                 /* the tie goes to infinity */
        {-1e300, 0xFC00, 0xFF80},
        {0x1.FEp127, 0x7C00, 0x7F7F},        /* the largest bf16 */
        {0x1.FFp127, 0x7C00, 0x7F80},        /* tie to infinity */
        {0x1p-14, 0x0400, 0x3880},           /* the smallest normal f16 */
        {0x1p-14 - 0x1p-25, 0x0400, 0x3880}, /* tie: subnormal up to normal */
        {0x1p-14 - 0x1p-24, 0x03FF, 0x3880}, /* the largest subnormal */
        {0x1p-24, 0x0001, 0x3380},           /* the smallest */
        {0x1p-25, 0x0000, 0x3300},           /* tie to 0 */
        {0x1.8p-24, 0x0002, 0x33C0},         /* tie to even */
        {-0x1.000001p-25, 0x8001, 0xB300},   /* just beyond the tie */
        {0x1p-133, 0x0000, 0x0001},          /* the smallest bf16 */
        {0x1p-134, 0x0000, 0x0000},          /* tie to 0 */
        {0x1.8p-133, 0x0000, 0x0002},
        {0x1p-126 - 0x1p-134, 0x0000, 0x0080}, /* subnormal up to normal */
        {4.9e-324, 0x0000, 0x0000},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        assert_int_equal(pare_f16_of(table[i].x), table[i].f16);
        assert_int_equal(pare_bf16_of(table[i].x), table[i].bf16);
    }
    for (unsigned h = 0; h < 65536; h++) { /* what is half precision stays */
        if ((h & 0x7C00) != 0x7C00)
            assert_int_equal(pare_f16_of((double)pare_f16_to_f32((uint16_t)h)), h);
        if ((h & 0x7F80) != 0x7F80)
            assert_int_equal(pare_bf16_of((double)pare_bf16_to_f32((uint16_t)h)), h);
    }
    assert_true(isnan(pare_f16_to_f32(pare_f16_of(NAN))));
    assert_true(isnan(pare_bf16_to_f32(pare_bf16_of(NAN))));
    assert_int_equal(pare_f16_of(INFINITY), 0x7C00);
}

static void elements_are_numbers_whatever_their_type(void **state)
{
    (void)state;
    const uint8_t ones[16] = {255, 255, 255, 255, 255, 255, 255, 255,
                              255, 255, 255, 255, 255, 255, 255, 255};
    static const struct {
        pare_dtype t;
        size_t size;
        const char *name;
        double as_f64;
        int64_t as_i64;
    } want[] = {
        {PARE_BOOL, 1, "BOOL", 1, 1}, {PARE_U8, 1, "U8", 255, 255},
        {PARE_I8, 1, "I8", -1, -1},   {PARE_U16, 2, "U16", 65535, 65535},
        {PARE_I16, 2, "I16", -1, -1}, {PARE_U32, 4, "U32", 4294967295.0, 4294967295},
        {PARE_I32, 4, "I32", -1, -1}, {PARE_U64, 8, "U64", 0x1p64, INT64_MAX},
        {PARE_I64, 8, "I64", -1, -1},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const pare_array a = {.dtype = want[i].t, .ndim = 1, .shape = {2}, .data = ones};
        assert_int_equal(pare_dtype_size(want[i].t), want[i].size);
        assert_string_equal(pare_dtype_name(want[i].t), want[i].name);
        assert_true(pare_array_is_integer(&a));
        assert_true(pare_array_f64(&a, 1) == want[i].as_f64);
        assert_true(pare_array_i64(&a, 1) == want[i].as_i64);
    }
}

static void floats_are_read_unaligned_and_cut_to_integers_safely(void **state)
{
    (void)state;
    uint8_t bytes[64] = {0};
    const double d[] = {1.75, -2.5, 1e300, -1e300, NAN};
    const float f[] = {1.75f, -2.5f};
    const uint16_t half[] = {0x3C00, 0xC000}, brain[] = {0x3F80, 0xC000};
    pare_array a = {.dtype = PARE_F64, .ndim = 1, .shape = {5}, .data = bytes + 1};
    memcpy(bytes + 1, d, sizeof d);
    assert_false(pare_array_is_integer(&a));
    assert_true(pare_array_f64(&a, 1) == -2.5);
    assert_int_equal(pare_array_i64(&a, 0), 1);
    assert_int_equal(pare_array_i64(&a, 1), -2);
    assert_true(pare_array_i64(&a, 2) == INT64_MAX && pare_array_i64(&a, 3) == INT64_MIN);
    assert_int_equal(pare_array_i64(&a, 4), 0);
    memcpy(bytes + 1, f, sizeof f);
    a.dtype = PARE_F32;
    assert_true(pare_array_f64(&a, 0) == 1.75 && pare_array_f64(&a, 1) == -2.5);
    memcpy(bytes + 1, half, sizeof half);
    a.dtype = PARE_F16;
    assert_true(pare_array_f64(&a, 0) == 1 && pare_array_f64(&a, 1) == -2);
    memcpy(bytes + 1, brain, sizeof brain);
    a.dtype = PARE_BF16;
    assert_true(pare_array_f64(&a, 0) == 1 && pare_array_f64(&a, 1) == -2);
}

static void shapes_are_printed_and_never_overrun(void **state)
{
    (void)state;
    char buf[128];
    const size_t s[8] = {3, 4, 0};
    const size_t huge[8] = {SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX,
                            SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX};
    assert_string_equal(pare_shape_text(buf, s, 2), "[3, 4]");
    assert_string_equal(pare_shape_text(buf, s, 0), "[]");
    assert_true(strlen(pare_shape_text(buf, huge, 8)) < 128);
    assert_int_equal(buf[strlen(buf) - 1], ']');
    const pare_array scalar = {.dtype = PARE_F32}, none = {.ndim = 3, .shape = {3, 4, 0}};
    assert_int_equal(pare_array_count(&scalar), 1);
    assert_int_equal(pare_array_count(&none), 0);
    assert_int_equal(pare_dtype_size(PARE_TEXT), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_and_bf16_is_widened_exactly),
        cmocka_unit_test(rounding_to_half_precision_is_to_nearest_ties_to_even),
        cmocka_unit_test(elements_are_numbers_whatever_their_type),
        cmocka_unit_test(floats_are_read_unaligned_and_cut_to_integers_safely),
        cmocka_unit_test(shapes_are_printed_and_never_overrun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
