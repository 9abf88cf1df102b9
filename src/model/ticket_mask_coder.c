/* ticket_mask_coder.c - arithmetic coding of mask bits, at less than one bit each.
 *
 * The reader knows the items that the bits of an entry choose from, how many of them are chosen on
 * average, and that the sum will be a weight of ordinary size.
 *
 * The items of an entry are coded with the largest |x| first. Let S be the sum of those chosen so
 * far, R and Q the sum and the sum of squares of those that follow, each chosen with probability t.
 * The sum will be about N(S + t R, t (1 - t) Q) without this item, and weights are about
 * N(0, width^2). So
 *
 *     log odds of 1  =  prior  -  x (2 (S + t R) + x) / (2 (t (1 - t) Q + width^2))
 *
 * in integers: items in 2^-16 (rounded down), the odds in 1/16, a table of 12-bit probabilities,
 * and a binary range coder with 32 bits. Encoder and decoder agree on every machine. t is 1/2 and
 * the prior 0; where bits were chosen by what they cost there are few ones, t is 1/4, and the prior
 * is one number for each rank. */
#include "ticket_factored.h"
#include <math.h>
#include <string.h>

enum { ITEM_SHIFT = 32, LEAST = 16, ONE = 1 << PROBABILITY_BITS };
enum { PARTS = 32, EVEN = 16, FEW = 8 }; /* t is so many parts of one */

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

uint32_t mask_coder_width(double mean_square)
{
    const double w = sqrt(mean_square) * 0x1p16;
    return w < 1 ? 1 : w > CODER_MAX_WIDTH ? CODER_MAX_WIDTH : (uint32_t)w;
}

bool mask_bytes_suffice(size_t bytes, uint64_t bits)
{
    /* log2(4096 / (4096 - LEAST)) is above 1/256 */
    return bytes >= 4 && bits / PARE_CODED_PER_BYTE <= bytes;
}

float power_of_two(int exponent)
{
    return ldexpf(1, exponent);
}

/* ---- probabilities    ------------------------------------------------------------------------ */

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

void mask_entry_init(mask_entry *e, const int64_t *item, size_t count)
{
    e->count = count;
    for (size_t u = 0; u < count; u++) {
        size_t at = u;
        for (; at > 0 && magnitude(item[e->order[at - 1]]) < magnitude(item[u]); at--)
            e->order[at] = e->order[at - 1];
        e->order[at] = (uint8_t)u;
    }
    e->rest[count] = e->squares[count] = 0;
    for (size_t k = count; k-- > 0;) {
        /* rounded down: shifting a negative number right is not C's promise */
        const int64_t x = item[e->order[k]];
        e->item[k] = x >= 0 ? x >> ITEM_SHIFT : -((-x - 1) >> ITEM_SHIFT) - 1;
        e->rest[k] = e->rest[k + 1] + e->item[k];
        e->squares[k] = e->squares[k + 1] + e->item[k] * e->item[k];
    }
}

uint32_t mask_probability(const mask_entry *e, size_t k, int64_t sum, const pare_bridge *b)
{
    const int64_t x = e->item[k], t = b->ranks ? FEW : EVEN, w = b->width;
    /* times 32^2: 2 (S + t R) + x = (32 S + t R + 16 x) / 16; t (1 - t) Q + w^2 likewise */
    const int64_t above =
        -PARTS * LOG_ODDS_STEPS * x * (PARTS * sum + t * e->rest[k + 1] + PARTS / 2 * x);
    const int64_t below = t * (PARTS - t) * e->squares[k + 1] + PARTS * PARTS * w * w;
    const int64_t steps = (int64_t)(magnitude(above) / (uint64_t)below);
    /* and a half */
    const int64_t odds = (above < 0 ? -steps - 1 : steps) + (b->ranks ? b->prior[k] : 0);
    const int64_t size = odds < 0 ? -odds - 1 : odds;
    const uint32_t p = sigmoid[size < SIGMOIDS ? size : SIGMOIDS - 1];
    return odds < 0 ? ONE - p : p;
}

/* ---- the coder ------------------------------------------------------------------------------- */

void mask_encode_open(mask_encoder *e, uint8_t *to, size_t capacity, const pare_bridge *model)
{
    e->model = *model;
    range_encode_open(&e->out, to, capacity);
}

void mask_encode(mask_encoder *e, const uint8_t *bit, const int64_t *item, size_t count)
{
    mask_entry t;
    int64_t sum = 0;
    mask_entry_init(&t, item, count);
    for (size_t k = 0; k < count; k++) {
        const bool one = bit[t.order[k]];
        range_encode(&e->out, mask_probability(&t, k, sum, &e->model), PROBABILITY_BITS, one);
        if (one) sum += t.item[k];
    }
}

size_t mask_encode_close(mask_encoder *e)
{
    return range_encode_close(&e->out);
}

void mask_decode_open(mask_decoder *d, const uint8_t *from, size_t bytes, const pare_bridge *model)
{
    d->model = *model;
    range_decode_open(&d->in, from, bytes);
}

void mask_decode(mask_decoder *d, uint8_t *bit, const int64_t *item, size_t count)
{
    mask_entry t;
    int64_t sum = 0;
    mask_entry_init(&t, item, count);
    for (size_t k = 0; k < count; k++) {
        const bool one =
            range_decode(&d->in, mask_probability(&t, k, sum, &d->model), PROBABILITY_BITS);
        bit[t.order[k]] = one;
        if (one) sum += t.item[k];
    }
}

bool mask_decode_closed(const mask_decoder *d)
{
    return range_decode_closed(&d->in);
}
