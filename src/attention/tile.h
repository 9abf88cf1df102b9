/* tile.h - one panel of queries against one tile of keys: the inner kernels of dense attention.
 *
 * A panel holds up to vecs * lanes queries, one per vector lane: all its arrays have P = v * lanes
 * columns (v = the vectors in use), so that neither row maxima nor row sums ever go across lanes,
 * and keys and values are read as they are, one number broadcast to all queries. Rows of keys
 * are padded to a multiple of TILE_STEP, columns of values to one of COLUMN_STEP; arrays are
 * aligned to 64 bytes. */
#ifndef PARE_ATTENTION_TILE_H
#define PARE_ATTENTION_TILE_H
#include <pare/base.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    TILE_KEYS = 64,  /* the scores of a tile (64 x 64 f32) stay in the first-level cache */
    PANEL_ROWS = 64, /* at most */
    TILE_STEP = 4,   /* keys that the kernels take at a time, and columns of values */
    COLUMN_STEP = 2  /* the last columns of values may be two */
};

typedef struct tile_kernel {
    const char *name;
    size_t lanes, vecs; /* of one vector; most vectors of a panel */
    /* s (keys x P) = k (keys x dk) q (dk x P), or added to it */
    void (*scores)(float *s, const float *q, const float *k, size_t keys, size_t dk, size_t v,
                   bool add);
    /* Scores become weights e^(s - m), where m (P) is the running maximum, raised first if need be;
     * rescale (P) = e^(old m - m); l (P) = rescale l + sum of the weights. A row that has seen only
     * -inf keeps m = -inf and weighs nothing. */
    void (*weights)(float *s, float *m, float *l, float *rescale, size_t keys, size_t v);
    /* o (dv x P) = rescale o + x^T s, x keys x dv */
    void (*values)(float *o, const float *rescale, const float *s, const float *x, size_t keys,
                   size_t dv, size_t v);
    /* Backward: scores s become weights w = e^(s - lse), and t = dy.v becomes w (t - mean); lse and
     * mean are P long. */
    void (*softmax_backward)(float *s, float *t, const float *lse, const float *mean, size_t keys,
                             size_t v);
} tile_kernel;

extern const tile_kernel tile_portable, tile_avx2, tile_avx512;

/* The kernels this CPU can run, best first; the last is the portable one. Returns how many. */
size_t tile_kernels(tile_kernel out[3]);

#endif
