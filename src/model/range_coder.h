/* range_coder.h - a binary range coder in 32 bits: bits for which both sides know a probability. */
#ifndef PARE_MODEL_RANGE_CODER_H
#define PARE_MODEL_RANGE_CODER_H
#include <pare/base.h>

typedef struct range_encoder {
    uint8_t *to;
    size_t capacity, n; /* n may go beyond capacity: the rest is counted only */
    uint64_t low;
    uint32_t range;
    uint8_t cache;
    uint64_t waiting;
} range_encoder;
void range_encode_open(range_encoder *e, uint8_t *to, size_t capacity);
/* p of 2^of, that the bit is 1: above 0, below 2^of; of <= 16. */
void range_encode(range_encoder *e, uint32_t p, unsigned of, bool one);
size_t range_encode_close(range_encoder *e); /* bytes that were needed */

typedef struct range_decoder {
    const uint8_t *from;
    size_t bytes, at;
    uint32_t code, range;
} range_decoder;
void range_decode_open(range_decoder *d, const uint8_t *from, size_t bytes);
bool range_decode(range_decoder *d, uint32_t p, unsigned of);
bool range_decode_closed(const range_decoder *d); /* all bytes were used, and no more */
#endif
