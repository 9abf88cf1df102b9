/* panel.h - panels of queries, one query in each vector lane: masks, packing, and buffers. */
#ifndef PARE_ATTENTION_PANEL_H
#define PARE_ATTENTION_PANEL_H
#include "tile.h"
#include <pare/attention.h>

/* Query i sees key j when  j < vis0 + i  and  (j + window > i  or  j < sinks). */
typedef struct key_mask {
    int64_t vis0;         /* PARE_VIS_ALL: no limit; causal: 1 */
    size_t window, sinks; /* SIZE_MAX: no limit */
} key_mask;

/* Any vis0 is legal; those that show all or no keys are clamped to where no sum overflows. */
static inline key_mask staircase_mask(int64_t vis0, size_t nq, size_t nk)
{
    if (vis0 >= (int64_t)nk) vis0 = PARE_VIS_ALL;
    if (vis0 < -(int64_t)nq) vis0 = -(int64_t)nq;
    return (key_mask){vis0, SIZE_MAX, SIZE_MAX};
}

typedef struct panel {
    size_t first, rows, v, p; /* queries first .. first + rows - 1; v vectors, p = v lanes */
} panel;

/* Queries of a panel, at most. */
static inline size_t panel_lanes(const tile_kernel *k)
{
    return k->lanes * k->vecs;
}

/* The panel of queries first, first + 1, ... below end. */
static inline panel panel_from(const tile_kernel *k, size_t first, size_t end)
{
    const size_t most = panel_lanes(k), rows = end - first < most ? end - first : most;
    const size_t v = (rows + k->lanes - 1) / k->lanes;
    return (panel){first, rows, v, v * k->lanes};
}

static inline size_t padded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Shrinks the keys [*from, *to) of a tile to those around what some query of the panel sees; *from
 * stays a multiple of TILE_STEP, where kernels may begin. False when none is visible. */
bool visible_keys(size_t *from, size_t *to, const key_mask *m, const panel *p, size_t nk);
/* Scores of keys [from, to) that a query of the panel does not see become -inf, and those of the
 * keys that pad to a multiple of TILE_STEP. */
void mask_tile(float *s, const key_mask *m, const panel *p, size_t from, size_t to, size_t nk);

/* to (cols x p) = scale from^T; columns behind `rows` are 0. */
void pack_queries(float *to, size_t p, const float *from, size_t ld, size_t rows, size_t cols,
                  float scale);
/* to (rows x cols) = from^T with row i times by[i], or added to it; from is cols x p. */
void unpack(float *to, size_t ld, const float *from, size_t p, size_t rows, size_t cols,
            const float *by, bool add);
/* to (padded rows x padded cols) = from (rows x cols); padding is 0. */
void copy_tile(float *to, const float *from, size_t ld, size_t rows, size_t cols,
               size_t padded_cols);

/* Arrays of floats in one allocation, each aligned to 64 bytes. They are laid out twice by the same
 * calls of layout_take: once to count (it returns NULL), and after layout_alloc to get them. The
 * caller frees `base`. */
enum { FLOAT_ALIGN = 16 }; /* floats: 64 bytes */
typedef struct layout {
    float *v;
    size_t used;
    void *base;
} layout;
float *layout_take(layout *l, size_t floats);
float *layout_take_zeroed(layout *l, size_t floats);
bool layout_alloc(layout *l); /* false: out of memory */

#endif
