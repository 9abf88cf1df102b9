/* ub_format.c - an upper bound as decimal text that is never below it, a lower bound as one that is
 * never above it.
 *
 * Printing and reading back cannot tell: a text below the bound may read back as the bound itself.
 * So we print the double with all its digits (767 at most, and printf is exact), cut, and add one
 * in the last place kept when anything but zeros was cut off. A lower bound is only cut. */
#include <pare/linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { all_digits = 780, most_digits = 17 };

/* |v| = 0.d1 d2 d3 ... * 10^(exponent + 1); returns the exponent of d1. */
static int decimal_of(char digit[all_digits + 1], double v)
{
    char text[all_digits + 16];
    snprintf(text, sizeof text, "%.*e", all_digits - 1, v);
    digit[0] = text[0]; /* text[1] is the point, in whatever locale */
    const char *e = strchr(text, 'e');
    PARE_ASSERT(e != NULL);
    const size_t rest = all_digits - 1;
    memcpy(digit + 1, e - rest, rest);
    digit[all_digits] = '\0';
    return (int)strtol(e + 1, NULL, 10);
}

static int cut_down(char *digit, size_t digits, int exponent)
{
    digit[digits] = '\0';
    return exponent;
}

/* Keeps `digits` digits, one more in the last place when something was cut; new exponent. */
static int cut_up(char *digit, size_t digits, int exponent)
{
    const bool exact = strspn(digit + digits, "0") == strlen(digit + digits);
    digit[digits] = '\0';
    if (exact) return exponent;
    for (size_t i = digits; i-- > 0;) {
        if (digit[i]++ != '9') return exponent;
        digit[i] = '0';
    }
    digit[0] = '1'; /* 99..9 became 100..0 */
    return exponent + 1;
}

static void drop_zeros(char *digit)
{
    size_t n = strlen(digit);
    while (n > 1 && digit[n - 1] == '0') digit[--n] = '\0';
}

/* Plain for numbers one likes to read plain, with an exponent for the others, as %g does. */
static void lay_out(char buf[40], const char *digit, size_t digits, int exponent)
{
    const int n = (int)strlen(digit);
    if (exponent < -4 || exponent >= (int)digits) {
        snprintf(buf, 40, "%c%s%.16se%+03d", digit[0], n > 1 ? "." : "", digit + 1, exponent);
    } else if (exponent < 0) {
        snprintf(buf, 40, "0.%.*s%.17s", -exponent - 1, "000", digit);
    } else if (n <= exponent + 1) {
        snprintf(buf, 40, "%.17s%.*s", digit, exponent + 1 - n, "00000000000000000");
    } else {
        snprintf(buf, 40, "%.*s.%.17s", exponent + 1, digit, digit + exponent + 1);
    }
}

static const char *format(char buf[40], double v, int digits, bool upwards)
{
    const size_t keep = digits < 1 ? 1 : digits > most_digits ? most_digits : (size_t)digits;
    char digit[all_digits + 1];
    const int first = decimal_of(digit, v);
    const int exponent = upwards ? cut_up(digit, keep, first) : cut_down(digit, keep, first);
    drop_zeros(digit);
    lay_out(buf, digit, keep, exponent);
    return buf;
}

const char *pare_ub_format(char buf[40], pare_ub a, int digits)
{
    if (a.v > 0 && !isinf(a.v)) return format(buf, a.v, digits, true);
    snprintf(buf, 40, "%s", a.v == 0 ? "0" : "inf");
    return buf;
}

const char *pare_lb_format(char buf[40], pare_lb a, int digits)
{
    if (a.v > 0 && !isinf(a.v)) return format(buf, a.v, digits, false);
    snprintf(buf, 40, "0"); /* inf is no lower bound */
    return buf;
}
