/* panel.h - panels of queries, one in each vector lane: who sees whom, and packing. */
#ifndef PARE_ATTENTION_PANEL_H
#define PARE_ATTENTION_PANEL_H
#include "tile.h"
#include <pare/attention.h>

/* Query i sees key j when  j < vis0 + i  and  (j + window > i  or  j < sinks). */
typedef struct sight {
    int64_t vis0;         /* PARE_VIS_ALL: no limit; causal: 1 */
    size_t window, sinks; /* SIZE_MAX: no limit */
} sight;

/* Any vis0 is legal; those that show all or nothing are brought to where no sum overflows. */
static inline sight sight_of_stairs(int64_t vis0, size_t nq, size_t nk)
{
    if (vis0 >= (int64_t)nk) vis0 = PARE_VIS_ALL;
    if (vis0 < -(int64_t)nq) vis0 = -(int64_t)nq;
    return (sight){vis0, SIZE_MAX, SIZE_MAX};
}

typedef struct panel {
    size_t first, rows, v, p; /* queries first .. first + rows - 1; v vectors, p = v lanes */
} panel;

static inline size_t padded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* The keys of a tile that some query of the panel sees, as [*from, *to) around them: from a
 * multiple of TILE_STEP on, since that is where kernels may begin. False when there are none. */
bool seen_keys(size_t *from, size_t *to, const sight *s, const panel *p, size_t nk);
/* Scores of keys [from, to) that a query of the panel must not see become -inf, and those of the
 * keys that fill up to a multiple of TILE_STEP. */
void hide_tile(float *s, const sight *sees, const panel *p, size_t from, size_t to, size_t nk);

/* to (cols x p) = scale from^T; columns beyond `rows` are 0. */
void pack_queries(float *to, size_t p, const float *from, size_t ld, size_t rows, size_t cols,
                  float scale);
/* to (rows x cols) = from^T with row i times by[i], or added to it; from is cols x p. */
void unpack(float *to, size_t ld, const float *from, size_t p, size_t rows, size_t cols,
            const float *by, bool add);
/* to (padded rows x padded cols) = from (rows x cols); what is added is 0. */
void copy_tile(float *to, const float *from, size_t ld, size_t rows, size_t cols,
               size_t padded_cols);

#endif
