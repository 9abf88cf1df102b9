/* tile_rows.h - the weighted values of a tile, summed in rows, as the output has them. */
#ifndef PARE_ATTENTION_TILE_ROWS_H
#define PARE_ATTENTION_TILE_ROWS_H
#include <pare/base.h>
#include <stddef.h>

enum { ROWS_STEP = 16 }; /* columns */

/* Sums to which rows x are added: sum = keep sum + by x in f64, not fused. */
typedef struct tile_sums {
    double *sum;
    size_t ld;
    const double *keep, *by; /* of each row */
} tile_sums;

/* Weights of a tile, as tile.h leaves them: s is keys x p, a query in each column. */
typedef struct tile_weights {
    const float *s, *rescale;
    const float *by; /* p: final factors of the rows; or NULL */
    size_t p, keys;
    const tile_sums *into; /* y is added to these sums instead of written; or NULL */
} tile_weights;

/* y (rows x cols) = by (rescale old + s^T x), cols a multiple of ROWS_STEP: the same sums as
 * tile_kernel.values, in the same order. old is rows x cols without gaps and may be y; NULL: 0. */
typedef void tile_rows_fn(float *y, size_t ldy, const float *old, size_t rows,
                          const tile_weights *w, const float *x, size_t ldx, size_t cols);
/* NULL where the CPU has no vectors for it. */
tile_rows_fn *tile_rows_kernel(void);

/* rows x cols numbers of x, row i times times[i] (NULL: 1) in f32, into the sums. */
void tile_rows_add(const tile_sums *into, const float *x, size_t ldx, const float *times,
                   size_t rows, size_t cols);

#endif
