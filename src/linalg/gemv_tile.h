/* gemv_tile.h - the kernel of y = x W^T on panels, written once over a vector (base/vec.h).
 *
 * Each output is one chain of sums over the inputs in their order, whatever the tile: so a row's
 * bits do not depend on how many rows came along. Many chains at once hide the time of a sum: of
 * many rows (a prompt), or of many panels (one token). */
#include "base/vec.h"
#include "matrix.h"
#include "gemv.h"

/* Rows of a tall and of a short tile, panels of a wide one: 12 rows x 32 outputs fill 24 of the 32
 * registers of AVX-512, 3 x 32 fill 12 of the 16 of AVX2. */
enum {
    VECS = PARE_PANEL / VEC,
    TALL = VEC == 16  ? 12
           : VEC == 8 ? 3
                      : 1,
    SHORT = VEC == 16  ? 4
            : VEC == 8 ? 2
                       : 1,
    WIDE = VEC == 16  ? 4
           : VEC == 8 ? 2
                      : 1
};

/* One row of results: += bias, += y. */
VEC_INLINE void gemv_finish(const gemv_job *j, size_t row, size_t panel, size_t v, const vec *sum)
{
    const size_t at = panel * PARE_PANEL + v * VEC;
    float *const y = j->y + row * j->ldy + at;
    vec r = *sum;
    if (j->bias) r += vec_load(j->bias + at);
    if (j->add) r += vec_load(y);
    vec_store(y, r);
}

/* `rows` rows, one panel: a constant wherever it is called, at most TALL. */
VEC_INLINE void gemv_tile(const gemv_job *j, size_t row, size_t panel, size_t rows)
{
    const float *w = j->w + panel * j->in * PARE_PANEL, *const x = j->x + row * j->ldx;
    vec sum[TALL][VECS];
#pragma GCC unroll 16
    for (size_t t = 0; t < rows; t++)
#pragma GCC unroll 16
        for (size_t v = 0; v < VECS; v++) sum[t][v] = vec_set(0);
    for (size_t i = 0; i < j->in; i++, w += PARE_PANEL) {
#pragma GCC unroll 16
        for (size_t t = 0; t < rows; t++) {
            const vec a = vec_set(x[t * j->ldx + i]);
#pragma GCC unroll 16
            for (size_t v = 0; v < VECS; v++)
                sum[t][v] = vec_fma(a, vec_load(w + v * VEC), sum[t][v]);
        }
    }
#pragma GCC unroll 16
    for (size_t t = 0; t < rows; t++)
#pragma GCC unroll 16
        for (size_t v = 0; v < VECS; v++) gemv_finish(j, row + t, panel, v, &sum[t][v]);
}

/* All rows, one panel: tall tiles, short ones, and what is left. */
VEC_TARGET static void gemv_panel(const gemv_job *j, size_t panel)
{
    size_t r = 0;
    for (; r + TALL <= j->n; r += TALL) gemv_tile(j, r, panel, TALL);
    for (; r + SHORT <= j->n; r += SHORT) gemv_tile(j, r, panel, SHORT);
    for (; r < j->n; r++) gemv_tile(j, r, panel, 1);
}

/* One row, `panels` panels: a constant wherever it is called, at most WIDE. */
VEC_INLINE void gemv_flat(const gemv_job *j, size_t row, size_t panel, size_t panels)
{
    const size_t step = j->in * PARE_PANEL;
    const float *w = j->w + panel * step, *const x = j->x + row * j->ldx;
    vec sum[WIDE][VECS];
#pragma GCC unroll 16
    for (size_t p = 0; p < panels; p++)
#pragma GCC unroll 16
        for (size_t v = 0; v < VECS; v++) sum[p][v] = vec_set(0);
    for (size_t i = 0; i < j->in; i++, w += PARE_PANEL) {
        const vec a = vec_set(x[i]);
#pragma GCC unroll 16
        for (size_t p = 0; p < panels; p++)
#pragma GCC unroll 16
            for (size_t v = 0; v < VECS; v++)
                sum[p][v] = vec_fma(a, vec_load(w + p * step + v * VEC), sum[p][v]);
    }
#pragma GCC unroll 16
    for (size_t p = 0; p < panels; p++)
#pragma GCC unroll 16
        for (size_t v = 0; v < VECS; v++) gemv_finish(j, row, panel + p, v, &sum[p][v]);
}

/* One row, all panels. */
VEC_TARGET static void gemv_row(const gemv_job *j, size_t row)
{
    size_t p = 0;
    for (; p + WIDE <= j->panels; p += WIDE) gemv_flat(j, row, p, WIDE);
    for (; p + (WIDE + 1) / 2 <= j->panels; p += (WIDE + 1) / 2)
        gemv_flat(j, row, p, (WIDE + 1) / 2);
    for (; p < j->panels; p++) gemv_flat(j, row, p, 1);
}

/* Many rows go panel by panel, so that a panel is read once and stays in the cache for all rows. */
VEC_INLINE void gemv_all(const gemv_job *j)
{
    if (j->n == 1 || TALL == 1)
        for (size_t r = 0; r < j->n; r++) gemv_row(j, r);
    else
        for (size_t p = 0; p < j->panels; p++) gemv_panel(j, p);
}
