/* tile_rows.h - the weighted values of a tile in rows, where they stand in the end. */
#ifndef PARE_ATTENTION_TILE_ROWS_H
#define PARE_ATTENTION_TILE_ROWS_H
#include <stddef.h>

enum { ROWS_STEP = 16 }; /* columns */

/* Weights of a tile, as tile.h leaves them: s is keys x p, a query in each column. */
typedef struct tile_weights {
    const float *s, *fade;
    const float *by; /* p: what sums are multiplied by in the end; or NULL */
    size_t p, keys;
} tile_weights;

/* y (rows x cols) = by (fade old + s^T x), cols a multiple of ROWS_STEP: number for number the sums
 * of tile_kernel.values, in the same order. old is rows x cols without gaps and may be y; NULL: 0.
 */
typedef void tile_rows_fn(float *y, size_t ldy, const float *old, size_t rows,
                          const tile_weights *w, const float *x, size_t ldx, size_t cols);
/* NULL where the CPU has no vectors for it. */
tile_rows_fn *tile_rows_kernel(void);

#endif
