/* Tests src/text/unicode.c. */
#include <pare_test.h>
#include "text/unicode.h"

static void classes_are_those_of_the_pattern(void **state)
{
    (void)state;
    static const struct {
        uint32_t c;
        pare_char_class kind;
    } known[] = {
        {'a', PARE_CHAR_LETTER},     {'Z', PARE_CHAR_LETTER},    {'0', PARE_CHAR_NUMBER},
        {'_', PARE_CHAR_OTHER},      {' ', PARE_CHAR_SPACE},     {'\t', PARE_CHAR_SPACE},
        {'\r', PARE_CHAR_SPACE},     {0x1C, PARE_CHAR_OTHER},    {0x85, PARE_CHAR_SPACE},
        {0xA0, PARE_CHAR_SPACE},     {0xB2, PARE_CHAR_NUMBER},   {0xBD, PARE_CHAR_NUMBER},
        {0xE9, PARE_CHAR_LETTER},    {0xD7, PARE_CHAR_OTHER},    {0x301, PARE_CHAR_OTHER},
        {0x3000, PARE_CHAR_SPACE},   {0x200B, PARE_CHAR_OTHER},  {0x4E2D, PARE_CHAR_LETTER},
        {0x2160, PARE_CHAR_NUMBER},  {0x1F600, PARE_CHAR_OTHER}, {0x20000, PARE_CHAR_LETTER},
        {0x10FFFF, PARE_CHAR_OTHER}, {0, PARE_CHAR_OTHER},       {PARE_NO_CHAR, PARE_CHAR_OTHER},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (pare_char_kind(known[i].c) != known[i].kind) {
            print_error("U+%04X\n", known[i].c);
            fail();
        }
}

static void every_code_point_survives_utf8(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        char s[4];
        size_t n;
        const size_t put = pare_utf8_put(s, c);
        if (pare_utf8_next(s, put, &n) != c || n != put) {
            print_error("U+%04X\n", c);
            fail();
        }
        if (put > 1) { /* cut off, it is no character */
            assert_int_equal(pare_utf8_next(s, put - 1, &n), PARE_NO_CHAR);
            assert_int_equal(n, 1);
        }
    }
}

static void bad_utf8_is_one_byte_each(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80",         "\xC0\x80",         "\xC1\xBF",         "\xE0\x80\x80",
        "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xFF",         "\xC3\x28"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n = 0;
        assert_int_equal(pare_utf8_next(bad[i], strlen(bad[i]), &n), PARE_NO_CHAR);
        assert_int_equal(n, 1);
    }
}

static void lower_case_is_one_code_point(void **state)
{
    (void)state;
    assert_int_equal(pare_char_lower('A'), 'a');
    assert_int_equal(pare_char_lower('Z'), 'z');
    assert_int_equal(pare_char_lower('['), '[');
    assert_int_equal(pare_char_lower('a'), 'a');
    assert_int_equal(pare_char_lower(0xC9), 0xE9);
    assert_int_equal(pare_char_lower(0xD7), 0xD7);
    assert_int_equal(pare_char_lower(0x100), 0x101);
    assert_int_equal(pare_char_lower(0x101), 0x101);
    assert_int_equal(pare_char_lower(0x130), 0x130); /* two code points in lower case */
    assert_int_equal(pare_char_lower(0x212A), 'k');
    assert_int_equal(pare_char_lower(0x23A), 0x2C65);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_those_of_the_pattern),
        cmocka_unit_test(every_code_point_survives_utf8),
        cmocka_unit_test(bad_utf8_is_one_byte_each),
        cmocka_unit_test(lower_case_is_one_code_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
