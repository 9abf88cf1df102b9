/* half_precision.c - half precision widened to f32, which is exact: every f16 and bf16 is an
 * f32. And numbers rounded to it. */
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

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The exponent e with 2^e <= |x| < 2^(e+1); of zeros and subnormals: less than any here. */
static int exponent_of(double x)
{
    return (int)(bits_of(x) >> 52 & 0x7FFu) - 1023;
}

/* The multiple of 2^q nearest to x, ties to even, where |x| < 2^(q + 51): the sum with 1.5 2^(52+q)
 * has exactly that last bit. */
static double to_multiple(double x, int q)
{
    const uint64_t bits = (uint64_t)(52 + q + 1023) << 52 | UINT64_C(1) << 51;
    double large;
    memcpy(&large, &bits, sizeof large);
    volatile const double sum = x + large;
    return sum - large;
}

/* x to `digits` binary digits, the last of them never below 2^least, as a half precision with an
 * exponent of so many bits: the fraction and the exponent are one number that carries over. */
static uint16_t round_to(double x, int digits, int least, uint16_t infinity)
{
    const uint16_t sign = bits_of(x) >> 63 ? 0x8000u : 0;
    if (x != x) return (uint16_t)(infinity | 1u << (digits - 2) | sign);
    const double size = sign ? -x : x;
    const int top = exponent_of(size), lowest = least + digits - 1; /* lowest normal exponent */
    if (top > 127) return (uint16_t)(infinity | sign);
    const int e = top < lowest ? lowest : top, q = e - (digits - 1);
    const uint64_t scale_bits = (uint64_t)(1023 - q) << 52;
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    /* Below the lowest normal number the leading digit is 0: that is how subnormals are coded. */
    const uint32_t fraction = (uint32_t)(to_multiple(size, q) * scale);
    const uint32_t code = fraction + ((uint32_t)(e - lowest) << (digits - 1));
    return (uint16_t)((code < infinity ? code : infinity) | sign);
}

uint16_t pare_f16_of(double x)
{
    return round_to(x, 11, -24, 0x7C00u);
}

uint16_t pare_bf16_of(double x)
{
    return round_to(x, 8, -133, 0x7F80u);
}
