/* sparse.h - sparse attention: every query has a list of keys (CSR graphs, short windows), and its
 * backward pass. */
#ifndef PARE_ATTENTION_SPARSE_H
#define PARE_ATTENTION_SPARSE_H
#include <math.h>
#include "attend.h"

enum {
    SCORE_PAD = 16,   /* floats that a kernel may write behind the scores of a row */
    EDGES_AHEAD = 32, /* entries behind a list of edges that a kernel may read */
    SMALL_DIM = 8,    /* rows of at most so many columns: several fit one vector register */
    FEW_KEYS = 8      /* rows of at most so many keys are computed two at a time */
};

/* The matrix whose rows a list of keys selects. */
typedef struct sparse_rows {
    const float *v;
    size_t ld, width;
} sparse_rows;

static inline sparse_rows rows_of(const pare_mat32 *m)
{
    return (sparse_rows){m->v, m->ld, m->cols};
}

static inline float *row_of(const pare_mat32 *m, size_t i)
{
    return m->v + i * m->ld;
}

/* Online softmax of a row after some of its keys: the largest score, sum_j e^(s_j - row_max), and
 * the factor e^(old row_max - row_max) by which the last keys have rescaled what was summed
 * before. */
typedef struct softmax_state {
    float row_max, sum, rescale;
} softmax_state;
#define SOFTMAX_EMPTY ((softmax_state){-INFINITY, 0, 0})

/* Two rows with few keys each. */
typedef struct row_pair {
    const float *q[2];
    float *y[2];
    const uint32_t *idx[2];
    size_t n[2];
    sparse_rows k, v;
    float scale;
} row_pair;

/* Attention over the keys idx[0 .. n-1], n > 0, and its gradient. */
typedef struct sparse_kernel {
    const char *name;
    /* s_j = scale x.rows_idx[j]; s has a capacity of n + SCORE_PAD floats. */
    void (*scores)(float *s, const float *x, const sparse_rows *rows, float scale,
                   const uint32_t *idx, size_t n);
    /* Adds keys to a row: s_j = e^(s_j - row_max); s as above. The scores are copied to `saved`
     * where that is not NULL. */
    softmax_state (*weights)(float *s, float *saved, size_t n, softmax_state before);
    /* y = old y + by sum_j s_j rows_idx[j]; where old is 0, y is not read. */
    void (*values)(float *y, const float *s, const sparse_rows *rows, const uint32_t *idx, size_t n,
                   float by, float old);
    /* y = sum_j pair[2 from_j] rows_idx[j] and z = sum_j pair[2 from_j + 1] more_idx[j]; `add`: y
     * and z are added to. May read EDGES_AHEAD entries behind `from`. */
    void (*weighted_sums)(float *y, float *z, const float *pair, const uint32_t *from,
                          const sparse_rows *rows, const sparse_rows *more, const uint32_t *idx,
                          size_t n, bool add);
    /* p_j = e^(s_j - lse) and ds_j = scale p_j (t_j - mean): p_j goes to pair[2 j], ds_j to
     * pair[2 j + 1] and to ds[j]; ds has a capacity of n + SCORE_PAD floats. */
    void (*softmax_backward)(float *pair, float *ds, const float *s, const float *t, float lse,
                             float mean, float scale, size_t n);
    /* Two rows at once, from scores to values: 1 to FEW_KEYS keys each, k and v at most SMALL_DIM
     * wide; `state` as returned by `weights`, or NULL. The function is NULL where there is none. */
    void (*two_rows)(const row_pair *p, softmax_state state[2]);
} sparse_kernel;

/* The kernels this CPU can run, best first; the last is the portable one. Returns how many. */
size_t sparse_kernels(sparse_kernel out[3]);

typedef struct sparse_job {
    pare_mat32 y;
    float *lse;    /* n: log sum_j e^(s_j) of each row, -inf for an empty row; or NULL */
    float *scores; /* one per edge, in the order of the schedule; or NULL */
    const pare_mat32 *q, *k, *v;
    float scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
    const pare_visits *schedule; /* by query; or NULL */
    const sparse_kernel *kernel;
} sparse_job;

/* All rows, over the threads. */
PARE_MUST_USE pare_status sparse_attend(const sparse_job *w, const pare_exec *exec, pare_err *err);

/* Adds the gradients to dq, dk, dv. A graph comes with its transpose; a window with neither. */
typedef struct sparse_backward_job {
    pare_mat32 dq, dk, dv;
    const pare_mat32 *dy, *q, *k, *v, *y;
    pare_kept32 saved;
    float scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
    const pare_turned *transpose;
    const sparse_kernel *kernel;
} sparse_backward_job;

PARE_MUST_USE pare_status sparse_backward(const sparse_backward_job *w, const pare_exec *exec,
                                          pare_err *err);

/* ---- cache blocking over the keys (sparse_blocks.c) ------------------------------------------ */

/* A segment: the edges first .. first + count - 1 of a row, count > 0, whose keys are in one
 * block. */
typedef void key_segment_fn(void *ctx, size_t row, size_t first, size_t count);

/* How many keys of `width` floats each make a block that stays in the cache while all rows use it;
 * g->n where blocking does not pay. */
size_t key_block_size(const pare_graph *g, size_t width);
/* Calls fn for every segment, block after block, the rows of a block over the threads. The segments
 * of one row come in order and never at the same time. */
PARE_MUST_USE pare_status for_key_blocks(const pare_graph *g, size_t block, key_segment_fn *fn,
                                         void *ctx, const pare_exec *exec, pare_err *err);

#endif
