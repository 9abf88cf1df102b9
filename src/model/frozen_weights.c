/* frozen_weights.c - random weights that are never trained (edge-popup).
 *
 * One block of Philox is one normal weight: its four words are the eight 16-bit numbers. One word
 * is one sign. |v| < 2^18 is exact in f32, so the product with the unit is the only rounding. */
#include "base/support.h"
#include "frozen.h"

#include <math.h>

enum { PARTS = 8, MEAN = PARTS * 65535 / 2 };

/* The variance of a number that is uniform on 0 .. 65535 is (2^32 - 1) / 12. */
float pare_frozen_unit(pare_frozen_kind kind, double std)
{
    if (kind == PARE_FROZEN_SIGNED) return (float)std;
    return (float)(std / sqrt(PARTS * 4294967295.0 / 12));
}

static void block_of(uint32_t word[4], const pare_frozen *f, uint64_t block)
{
    const uint32_t key[2] = {(uint32_t)f->seed, (uint32_t)(f->seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)f->stream,
                                 (uint32_t)(f->stream >> 32)};
    pare_philox(word, counter, key);
}

void pare_frozen_fill(float *out, const pare_frozen *f, uint64_t first, size_t count)
{
    uint32_t word[4] = {0};
    if (f->kind == PARE_FROZEN_NORMAL) {
        for (size_t i = 0; i < count; i++) {
            block_of(word, f, first + i);
            uint32_t sum = 0;
            for (int k = 0; k < 4; k++) sum += (word[k] & 0xffff) + (word[k] >> 16);
            const int32_t v = (int32_t)sum - MEAN;
            out[i] = (float)(v ? v : 1) * f->unit; /* a weight that is 0 would be no weight */
        }
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t at = first + i;
        if (i == 0 || at % 4 == 0) block_of(word, f, at / 4);
        out[i] = word[at % 4] >> 31 ? -f->unit : f->unit;
    }
}
