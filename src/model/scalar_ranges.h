/* scalar_ranges.h - which values the numbers of an architecture may have. */
#ifndef PARE_MODEL_SCALAR_RANGES_H
#define PARE_MODEL_SCALAR_RANGES_H
#include <pare/base.h>

typedef enum scalar {
    SCALAR_BASE,      /* of sinusoidal positions */
    SCALAR_FREQUENCY, /* of rotary positions, radians per token */
    SCALAR_EPS,
    SCALAR_SHIFT,
    SCALAR_DIVISOR,
    SCALAR_VARIANCE, /* of a batch norm */
    SCALAR_ROOT,     /* var + eps of a batch norm */
    SCALAR_SCALE,    /* of scores */
    SCALAR_TOLERANCE,
    SCALARS
} scalar;

/* PARE_ERR_INPUT unless the value is in the range of the scalar; the message says what
 * it is ("blocks.3.attn.in_norm.eps", of `at` and the scalar's key), its value and the range.
 * index: of an entry, or RANGE_NO_INDEX. */
#define RANGE_NO_INDEX SIZE_MAX
PARE_MUST_USE pare_status range_check(scalar s, const char *at, size_t index, double value,
                                      pare_err *err);
#endif
