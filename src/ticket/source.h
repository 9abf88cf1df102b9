/* source.h - the random network a ticket is cut from, as integers. */
#ifndef PARE_SRC_TICKET_SOURCE_H
#define PARE_SRC_TICKET_SOURCE_H
#include <pare/base.h>

/* A weight is an odd integer w, |w| < 2^24, and stands for w 2^-24: uniform on (-1, 1), never 0,
 * exact in f32. Products have the unit 2^-48, and sums of 4096 of them fit an int64: everything a
 * ticket is made of is exact, the same on any machine and for any number of threads. */
#define SOURCE_UNIT 0x1p-48 /* of a product */

/* Which matrix of the network: no two of one network may have the same stream. */
typedef enum source_matrix {
    SOURCE_Q,
    SOURCE_K,
    SOURCE_V,
    SOURCE_O,
    SOURCE_W1,
    SOURCE_W2
} source_matrix;
uint64_t source_stream(size_t layer, size_t head, source_matrix m);

/* Elements first .. first + count - 1 of the matrix, row by row. */
void source_weights(int32_t *out, uint64_t seed, uint64_t stream, uint64_t first, size_t count);
#endif
