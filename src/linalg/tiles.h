/* tiles.h - private to linalg: sizes and counts of tiles. */
#ifndef PARE_LINALG_TILES_H
#define PARE_LINALG_TILES_H
#include <stddef.h>

static inline size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Blocks of `size` that cover n. */
static inline size_t blocks_of(size_t n, size_t size)
{
    return n / size + (n % size != 0);
}
#endif
