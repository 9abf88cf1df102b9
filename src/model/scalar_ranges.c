/* scalar_ranges.c - the table of legal values for the numbers of an architecture (docs/format.md).
 *
 * Inside these ranges the proof kernel's errors are what it counts (src/cert/enclose.h,
 * src/linalg/dd.c); what is outside is refused when a model is read, imported, reduced or written.
 * No model in use comes near an end. A nan is outside of every range. */
#include "scalar_ranges.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct range {
    const char *name, *more; /* the key, and what stands behind an entry's index */
    double low, high;
    bool open; /* low itself is outside */
} range;

static const range ranges[SCALARS] = {
    /* Below 1 angles grow with the column, beyond what sines are proven for; 1 turns all columns
     * alike. Above 1e30 all columns but the first stand still. */
    [SCALAR_BASE] = {"positions.base", "", 1, 1e30, true},
    /* Sines are proven up to an angle of 2^30; beyond, a row has the bound inf. */
    [SCALAR_FREQUENCY] = {"freqs", "", -1e9, 1e9, false},
    /* Negative: the root of a negative number. 1e30: an f32, and its quotients too. 0 is legal; a
     * row whose root may be 0 has the bound inf. */
    [SCALAR_EPS] = {"eps", "", 0, 1e30, false},
    [SCALAR_SHIFT] = {"shift", "", 0, 1e30, false},
    /* Squares of a stream (2^1000 at most) divided by it are finite. */
    [SCALAR_DIVISOR] = {"divisor", "", 1e-6, 1e30, false},
    /* Of a negative variance and a larger eps f32 may leave any number. */
    [SCALAR_VARIANCE] = {"var", "", 0, 1e30, false},
    [SCALAR_ROOT] = {"var", " + eps", 0, 2e30, true},
    [SCALAR_SCALE] = {"heads", ".scale", -1e30, 1e30, false},
    /* In shares of the range of the values: 1 promises nothing. */
    [SCALAR_TOLERANCE] = {"tolerance", "", 0, 1, true},
};

/* The shortest decimal text of v that is not taken for another number near it. */
static void write_number(char text[32], double v)
{
    snprintf(text, 32, "%g", v);
    if (strtod(text, NULL) != v) snprintf(text, 32, "%.17g", v);
}

pare_status range_check(scalar s, const char *at, size_t index, double value, pare_err *err)
{
    const range *const r = &ranges[s];
    if (value >= r->low && value <= r->high && !(r->open && value == r->low)) return PARE_OK;
    char is[32], low[32], high[32], entry[32] = "";
    write_number(is, value);
    write_number(low, r->low);
    write_number(high, r->high);
    if (index != RANGE_NO_INDEX) snprintf(entry, sizeof entry, "[%zu]", index);
    return pare_fail(err, PARE_ERR_INPUT, "%s.%s%s%s is %s, must be %s %s and at most %s", at,
                     r->name, entry, r->more, is, r->open ? "above" : "at least", low, high);
}
