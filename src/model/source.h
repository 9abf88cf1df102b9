/* source.h - the random network that tickets are cut from, as integers.
 *
 * A weight is an odd integer w, |w| < 2^24, and stands for w 2^-24: uniform on (-1, 1), never 0,
 * exact in f32. Products have the unit 2^-48, and sums of 4096 of them fit an int64: everything a
 * ticket is made of is exact, the same on any machine and for any number of threads. */
#ifndef PARE_MODEL_SOURCE_H
#define PARE_MODEL_SOURCE_H
#include <pare/model.h>

/* layer << 48 | head << 32 | matrix << 24. The lowest 24 bits number what one ticket draws. */
uint64_t pare_source_stream(size_t layer, size_t head, pare_source_matrix m);
#endif
