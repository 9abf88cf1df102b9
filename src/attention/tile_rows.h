/* tile_rows.h - the weighted values of a tile in rows, where they stand in the end. */
#ifndef PARE_ATTENTION_TILE_ROWS_H
#define PARE_ATTENTION_TILE_ROWS_H
#include <stddef.h>

enum { ROWS_STEP = 16 }; /* columns */

/* Sums that rows x are added to: sum = keep sum + by x in f64, not fused. */
typedef struct tile_sums {
    double *sum;
    size_t ld;
    const double *keep, *by; /* of each row */
} tile_sums;

/* Weights of a tile, as tile.h leaves them: s is keys x p, a query in each column. */
typedef struct tile_weights {
    const float *s, *fade;
    const float *by; /* p: what sums are multiplied by in the end; or NULL */
    size_t p, keys;
    const tile_sums *into; /* what becomes of y, which is not written then; or NULL */
} tile_weights;

/* y (rows x cols) = by (fade old + s^T x), cols a multiple of ROWS_STEP: number for number the sums
 * of tile_kernel.values, in the same order. old is rows x cols without gaps and may be y; NULL: 0.
 */
typedef void tile_rows_fn(float *y, size_t ldy, const float *old, size_t rows,
                          const tile_weights *w, const float *x, size_t ldx, size_t cols);
/* NULL where the CPU has no vectors for it. */
tile_rows_fn *tile_rows_kernel(void);

/* rows x cols numbers of x, row i times times[i] (NULL: 1) in f32, into the sums. */
void tile_rows_add(const tile_sums *into, const float *x, size_t ldx, const float *times,
                   size_t rows, size_t cols);

#endif
