/* range_coder.c - the range is cut in the ratio of the probabilities; a byte is
 * written when its value is certain. */
#include "range_coder.h"

enum { MIN_RANGE = 1 << 24 };

void range_encode_open(range_encoder *e, uint8_t *to, size_t capacity)
{
    *e = (range_encoder){.to = to, .capacity = capacity, .range = UINT32_MAX};
}

static void put_byte(range_encoder *e, uint8_t v)
{
    /* the first one is always 0 and is not written */
    if (e->n > 0 && e->n <= e->capacity) e->to[e->n - 1] = v;
    e->n++;
}

/* A byte is certain when no carry can reach it any more. */
static void shift_byte(range_encoder *e)
{
    if ((uint32_t)e->low < UINT32_C(0xff000000) || e->low >> 32) {
        const uint8_t carry = (uint8_t)(e->low >> 32);
        put_byte(e, (uint8_t)(e->cache + carry));
        for (; e->waiting > 0; e->waiting--) put_byte(e, (uint8_t)(0xff + carry));
        e->cache = (uint8_t)(e->low >> 24);
    } else {
        e->waiting++;
    }
    e->low = (uint64_t)((uint32_t)e->low << 8);
}

void range_encode(range_encoder *e, uint32_t p, unsigned of, bool one)
{
    const uint32_t bound = (e->range >> of) * p;
    if (one) {
        e->range = bound;
    } else {
        e->low += bound;
        e->range -= bound;
    }
    for (; e->range < MIN_RANGE; e->range <<= 8) shift_byte(e);
}

size_t range_encode_close(range_encoder *e)
{
    for (int i = 0; i < 5; i++) shift_byte(e);
    return e->n - 1;
}

static uint8_t next_byte(range_decoder *d)
{
    const size_t at = d->at++;
    return at < d->bytes ? d->from[at] : 0;
}

void range_decode_open(range_decoder *d, const uint8_t *from, size_t bytes)
{
    *d = (range_decoder){.from = from, .bytes = bytes, .range = UINT32_MAX};
    for (int i = 0; i < 4; i++) d->code = d->code << 8 | next_byte(d);
}

bool range_decode(range_decoder *d, uint32_t p, unsigned of)
{
    const uint32_t bound = (d->range >> of) * p;
    const bool one = d->code < bound;
    if (one) {
        d->range = bound;
    } else {
        d->code -= bound;
        d->range -= bound;
    }
    for (; d->range < MIN_RANGE; d->range <<= 8) d->code = d->code << 8 | next_byte(d);
    return one;
}

/* Of all numbers in the last range the writer gives the lowest: no bit is left to chance. */
bool range_decode_closed(const range_decoder *d)
{
    return d->at == d->bytes && d->code == 0;
}
