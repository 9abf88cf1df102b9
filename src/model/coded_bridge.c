/* The bits of an entry cost less than one bit each: whoever reads them knows the items they choose
 * from, and that the sum will be a weight of ordinary size.
 *
 * The items of an entry are coded with the largest |x| first. When S is the sum of those chosen so
 * far, m and V half the sum and a quarter of the sum of squares of those that follow, the sum will
 * be about N(S + m, V) without this item, and weights are about N(0, width^2). So
 *
 *   log odds of 1  =  - x (2 (S + m) + x) / (2 (V + width^2))
 *
 * in integers: items in 2^-16 (rounded down), the odds in 1/16, a table of 12-bit probabilities,
 * and a binary range coder with 32 bits. Encoder and decoder agree on every machine. */
#include "coded_factored.h"
#include <math.h>
#include <string.h>

enum { ITEM_SHIFT = 32, ODDS = 16, LEAST = 16, ONE_BITS = 12, ONE = 1 << ONE_BITS };

/* round(4096 / (1 + exp(-(k + 1/2) / 16))), at most 4096 - LEAST */
enum { SIGMOIDS = 96 };
static const uint16_t sigmoid[SIGMOIDS] = {
    2080, 2144, 2208, 2271, 2334, 2397, 2458, 2519, 2580, 2639, 2697, 2754, 2810, 2864, 2917, 2969,
    3019, 3068, 3116, 3161, 3206, 3249, 3290, 3330, 3368, 3404, 3440, 3473, 3506, 3536, 3566, 3594,
    3621, 3647, 3671, 3694, 3716, 3737, 3757, 3776, 3794, 3811, 3827, 3843, 3857, 3871, 3884, 3896,
    3907, 3918, 3929, 3938, 3948, 3956, 3965, 3972, 3980, 3986, 3993, 3999, 4005, 4010, 4015, 4020,
    4025, 4029, 4033, 4037, 4040, 4043, 4047, 4050, 4052, 4055, 4057, 4060, 4062, 4064, 4066, 4068,
    4069, 4071, 4073, 4074, 4075, 4077, 4078, 4079, 4080, 4080, 4080, 4080, 4080, 4080, 4080, 4080,
};

uint32_t bridge_width(double mean_square)
{
    const double w = sqrt(mean_square) * 0x1p16;
    return w < 1 ? 1 : w > BRIDGE_WIDEST ? BRIDGE_WIDEST : (uint32_t)w;
}

bool bridge_may_hold(size_t bytes, uint64_t bits)
{
    /* log2(4096 / (4096 - LEAST)) is above 1/256 */
    return bytes >= 4 && bits / 256 / 8 <= bytes;
}

float bridge_power(int exponent)
{
    return ldexpf(1, exponent);
}

/* ---- what is expected ------------------------------------------------------------------------ */

typedef struct entry {
    size_t count;
    uint8_t order[BRIDGE_UNITS];
    int64_t item[BRIDGE_UNITS]; /* in that order, in 2^-16 */
    int64_t rest, squares;      /* of those that follow */
    int64_t sum;                /* of those chosen */
} entry;

static uint64_t size_of(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

static void entry_open(entry *e, const int64_t *item, size_t count)
{
    *e = (entry){.count = count};
    for (size_t u = 0; u < count; u++) {
        size_t at = u;
        for (; at > 0 && size_of(item[e->order[at - 1]]) < size_of(item[u]); at--)
            e->order[at] = e->order[at - 1];
        e->order[at] = (uint8_t)u;
    }
    for (size_t k = 0; k < count; k++) {
        /* rounded down: shifting a negative number right is not C's promise */
        const int64_t x = item[e->order[k]];
        e->item[k] = x >= 0 ? x >> ITEM_SHIFT : -((-x - 1) >> ITEM_SHIFT) - 1;
        e->rest += e->item[k];
        e->squares += e->item[k] * e->item[k];
    }
}

/* Of 4096, that item k is chosen. Takes it out of those that follow. */
static uint32_t chance(entry *e, size_t k, uint32_t width)
{
    const int64_t x = e->item[k];
    e->rest -= x;
    e->squares -= x * x;
    /* times 4: 2 (S + m) = 2 S + rest; 2 (V + w^2) = squares / 2 + 2 w^2 */
    const int64_t above = -2 * ODDS * x * (2 * e->sum + e->rest + x);
    const int64_t below = e->squares + 4 * (int64_t)width * width;
    const uint64_t odds = size_of(above) / (uint64_t)below;
    const uint32_t p = sigmoid[odds < SIGMOIDS ? odds : SIGMOIDS - 1];
    return above < 0 ? ONE - p : p;
}

/* ---- the coder ------------------------------------------------------------------------------- */

void bridge_encode_open(bridge_encoder *e, uint8_t *to, size_t room, uint32_t width)
{
    e->width = width;
    range_encode_open(&e->out, to, room);
}

void bridge_encode(bridge_encoder *e, const uint8_t *bit, const int64_t *item, size_t count)
{
    entry t;
    entry_open(&t, item, count);
    for (size_t k = 0; k < count; k++) {
        const bool one = bit[t.order[k]];
        range_encode(&e->out, chance(&t, k, e->width), ONE_BITS, one);
        if (one) t.sum += t.item[k];
    }
}

size_t bridge_encode_close(bridge_encoder *e)
{
    return range_encode_close(&e->out);
}

void bridge_decode_open(bridge_decoder *d, const uint8_t *from, size_t bytes, uint32_t width)
{
    d->width = width;
    range_decode_open(&d->in, from, bytes);
}

void bridge_decode(bridge_decoder *d, uint8_t *bit, const int64_t *item, size_t count)
{
    entry t;
    entry_open(&t, item, count);
    for (size_t k = 0; k < count; k++) {
        const bool one = range_decode(&d->in, chance(&t, k, d->width), ONE_BITS);
        bit[t.order[k]] = one;
        if (one) t.sum += t.item[k];
    }
}

bool bridge_decode_closed(const bridge_decoder *d)
{
    return range_decode_closed(&d->in);
}
