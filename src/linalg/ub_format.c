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

/* Plain for numbers one likes to read plain, with an exponent for the others, as %g does. */
static const char *format(char buf[40], double v, int digits, bool upwards)
{
    const size_t keep = digits < 1 ? 1 : digits > most_digits ? most_digits : (size_t)digits;
    /* v = d0.d1 d2 d3 ... * 10^exponent with all its digits. */
    char text[all_digits + 16], digit[all_digits + 1];
    snprintf(text, sizeof text, "%.*e", all_digits - 1, v);
    const char *e = strchr(text, 'e');
    PARE_ASSERT(e != NULL);
    digit[0] = text[0]; /* text[1] is the point, in whatever locale */
    memcpy(digit + 1, e - (all_digits - 1), all_digits - 1);
    digit[all_digits] = '\0';
    int exponent = (int)strtol(e + 1, NULL, 10);
    /* Cut; upwards, add one in the last place if anything but zeros was cut. */
    bool carry = upwards && strspn(digit + keep, "0") != strlen(digit + keep);
    size_t n = keep;
    for (size_t i = keep; carry && i-- > 0;) {
        carry = digit[i] == '9';
        digit[i] = carry ? '0' : (char)(digit[i] + 1);
    }
    if (carry) { /* 99..9 became 100..0 */
        digit[0] = '1';
        exponent++;
    }
    while (n > 1 && digit[n - 1] == '0') n--;
    digit[n] = '\0';
    if (exponent < -4 || exponent >= (int)keep)
        snprintf(buf, 40, "%c%s%.16se%+03d", digit[0], n > 1 ? "." : "", digit + 1, exponent);
    else if (exponent < 0)
        snprintf(buf, 40, "0.%.*s%.17s", -exponent - 1, "000", digit);
    else if ((int)n <= exponent + 1)
        snprintf(buf, 40, "%.17s%.*s", digit, exponent + 1 - (int)n, "00000000000000000");
    else
        snprintf(buf, 40, "%.*s.%.17s", exponent + 1, digit, digit + exponent + 1);
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
