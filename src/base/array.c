/* array.c - arrays: element types, and elements as numbers. */
#include "array.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "arrays are read as little-endian");

static const struct {
    const char *name;
    size_t size;
    bool integer;
} types[] = {
    [PARE_BOOL] = {"BOOL", 1, true},  [PARE_U8] = {"U8", 1, true},
    [PARE_I8] = {"I8", 1, true},      [PARE_U16] = {"U16", 2, true},
    [PARE_I16] = {"I16", 2, true},    [PARE_U32] = {"U32", 4, true},
    [PARE_I32] = {"I32", 4, true},    [PARE_U64] = {"U64", 8, true},
    [PARE_I64] = {"I64", 8, true},    [PARE_F16] = {"F16", 2, false},
    [PARE_BF16] = {"BF16", 2, false}, [PARE_F32] = {"F32", 4, false},
    [PARE_F64] = {"F64", 8, false},   [PARE_TEXT] = {"TEXT", 0, false},
};

size_t pare_dtype_size(pare_dtype t)
{
    return types[t].size;
}

const char *pare_dtype_name(pare_dtype t)
{
    return types[t].name;
}

size_t pare_array_count(const pare_array *a)
{
    size_t n = 1;
    for (size_t i = 0; i < a->ndim; i++) n *= a->shape[i];
    return n;
}

bool pare_array_is_integer(const pare_array *a)
{
    return types[a->dtype].integer;
}

/* An integer element as its 64 bits, sign-extended when the type has a sign. */
static uint64_t integer_bits(const pare_array *a, size_t i)
{
    const size_t size = types[a->dtype].size;
    const uint8_t *p = (const uint8_t *)a->data + i * size;
    uint64_t u = 0;
    memcpy(&u, p, size); /* little-endian; memcpy because the data may not be aligned */
    switch (a->dtype) {
    case PARE_BOOL:
        return u != 0;
    case PARE_I8:
        return (uint64_t)(int64_t)(int8_t)(uint8_t)u;
    case PARE_I16:
        return (uint64_t)(int64_t)(int16_t)(uint16_t)u;
    case PARE_I32:
        return (uint64_t)(int64_t)(int32_t)(uint32_t)u;
    default:
        return u;
    }
}

static double float_value(const pare_array *a, size_t i)
{
    const size_t size = types[a->dtype].size;
    const uint8_t *p = (const uint8_t *)a->data + i * size;
    uint16_t h;
    float f;
    double d;
    switch (a->dtype) {
    case PARE_F16:
        memcpy(&h, p, size);
        return (double)pare_f16_to_f32(h);
    case PARE_BF16:
        memcpy(&h, p, size);
        return (double)pare_bf16_to_f32(h);
    case PARE_F32:
        memcpy(&f, p, size);
        return (double)f;
    default:
        memcpy(&d, p, size);
        return d;
    }
}

double pare_array_f64(const pare_array *a, size_t i)
{
    PARE_ASSERT(a->dtype != PARE_TEXT);
    if (!types[a->dtype].integer) return float_value(a, i);
    const uint64_t u = integer_bits(a, i);
    return a->dtype == PARE_U64 ? (double)u : (double)(int64_t)u;
}

int64_t pare_array_i64(const pare_array *a, size_t i)
{
    PARE_ASSERT(a->dtype != PARE_TEXT);
    if (types[a->dtype].integer) {
        const uint64_t u = integer_bits(a, i);
        return a->dtype == PARE_U64 && u > INT64_MAX ? INT64_MAX : (int64_t)u;
    }
    const double d = float_value(a, i);
    if (isnan(d)) return 0;
    if (d >= 0x1p63) return INT64_MAX;
    return d < -0x1p63 ? INT64_MIN : (int64_t)d;
}

const char *pare_shape_text(char buf[128], const size_t *shape, size_t ndim)
{
    /* 8 numbers of at most 20 digits do not all fit: cut, never overrun. */
    size_t used = 1;
    buf[0] = '[';
    for (size_t i = 0; i < ndim && used < 120; i++) {
        const int n = snprintf(buf + used, 126 - used, "%s%zu", i ? ", " : "", shape[i]);
        used = used + (size_t)n < 125 ? used + (size_t)n : 125;
    }
    buf[used] = ']';
    buf[used + 1] = '\0';
    return buf;
}
