/* random_source.c - the random weights that tickets choose from.
 *
 * Philox4x32-10 with the seed as its key and (element / 4, stream) as its counter: any part of any
 * matrix can be made by itself. Of each word the upper 24 bits count. */
#include "base/support.h"
#include "source.h"

uint64_t pare_source_stream(size_t layer, size_t head, pare_source_matrix m)
{
    PARE_ASSERT(layer < 1 << 16 && head < 1 << 16);
    return (uint64_t)layer << 48 | (uint64_t)head << 32 | (uint64_t)m << 24;
}

void pare_source_weights(int32_t *out, uint64_t seed, uint64_t stream, uint64_t first, size_t count)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4] = {0};
    for (size_t i = 0; i < count; i++) {
        const uint64_t element = first + i;
        if (i == 0 || element % 4 == 0) {
            const uint64_t block = element / 4;
            const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                         (uint32_t)(stream >> 32)};
            pare_philox(word, counter, key);
        }
        out[i] = (int32_t)(2 * (word[element % 4] >> 8)) + 1 - (1 << 24);
    }
}
