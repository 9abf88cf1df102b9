/* half_precision.c - half precision widened to f32, which is exact: every f16 and bf16 is an
 * f32. */
#include "array.h"

#include <string.h>

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

float pare_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = h >> 10 & 0x1Fu, fraction = h & 0x3FFu;
    if (exponent == 31) return from_bits(sign | 0x7F800000u | fraction << 13); /* inf, nan */
    if (exponent > 0) return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
    const float tiny = (float)fraction * 0x1p-24f; /* zero and subnormals */
    return sign ? -tiny : tiny;
}

float pare_bf16_to_f32(uint16_t h)
{
    return from_bits((uint32_t)h << 16);
}
