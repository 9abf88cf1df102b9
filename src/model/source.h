/* source.h - the random network that tickets are cut from, as integers.
 *
 * A weight is an odd integer w, |w| < 2^24, and stands for w 2^-24: uniform on (-1, 1), never 0,
 * exact in f32. Products have the unit 2^-48, and sums of 4096 of them fit an int64: everything a
 * ticket is made of is exact, the same on any machine and for any number of threads. */
#ifndef PARE_MODEL_SOURCE_H
#define PARE_MODEL_SOURCE_H
#include <pare/model.h>

#define PARE_SOURCE_UNIT 0x1p-48 /* of a product */
#define PARE_SOURCE_MOST 4096    /* products in a sum */

/* Which matrix of the network: no two of one network may have the same stream. */
typedef enum pare_source_matrix {
    PARE_SOURCE_Q,
    PARE_SOURCE_K,
    PARE_SOURCE_V,
    PARE_SOURCE_O,
    PARE_SOURCE_W1, /* layers 0, 2, ... of a feed-forward part, numbered by `head` */
    PARE_SOURCE_W2, /* layers 1, 3, ... */
    PARE_SOURCE_BQ = 16,
    PARE_SOURCE_BK,
    PARE_SOURCE_BV,
    PARE_SOURCE_BO,
    PARE_SOURCE_B1, /* numbered as W1 and W2 */
    PARE_SOURCE_B2,
    PARE_SOURCE_MATRIX = 32,
    PARE_SOURCE_MIX,
    PARE_SOURCE_ATTN_SKIP,
    PARE_SOURCE_FFN_SKIP,
    PARE_SOURCE_EMBEDDING = 64, /* these have PARE_SOURCE_ENDS in the place of a layer */
    PARE_SOURCE_POSITIONS,
    PARE_SOURCE_MAP,
    PARE_SOURCE_DENSE,
    PARE_SOURCE_OUT,
    PARE_SOURCE_MAP_BIAS,
    PARE_SOURCE_DENSE_BIAS,
    PARE_SOURCE_OUT_BIAS
} pare_source_matrix;
enum { PARE_SOURCE_ENDS = 0xffff };

/* layer << 48 | head << 32 | matrix << 24. The lowest 24 bits number what one ticket draws. */
uint64_t pare_source_stream(size_t layer, size_t head, pare_source_matrix m);
/* Of the weight that has this name in a file; false: a gain, or what else is never drawn. */
bool pare_source_find(uint64_t *out, const char *name);
/* Of one that is known to have a stream. */
uint64_t pare_source_of(const char *name);
#endif
