/* tile_rows.h - the weighted values of a tile in rows, where they stand in the end. */
#ifndef PARE_ATTENTION_TILE_ROWS_H
#define PARE_ATTENTION_TILE_ROWS_H
#include <stddef.h>

enum { ROWS_STEP = 16 }; /* columns */

/* Weights of a tile, as tile.h leaves them: s is keys x p, a query in each column. */
typedef struct tile_weights {
    const float *s, *fade; /* fade NULL: y begins here */
    const float *by;       /* p: what y is multiplied by in the end; or NULL */
    size_t p, keys;
} tile_weights;

/* y (rows x cols) = by (fade y + s^T x), cols a multiple of ROWS_STEP: number for number the sums
 * of tile_kernel.values, in the same order. */
typedef void tile_rows_fn(float *y, size_t ldy, size_t rows, const tile_weights *w, const float *x,
                          size_t ldx, size_t cols);
/* NULL where the CPU has no vectors for it. */
tile_rows_fn *tile_rows_kernel(void);

#endif
