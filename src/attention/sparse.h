/* listed.h - attention of a row over a list of keys: graphs, short windows; and the way back. */
#ifndef PARE_ATTENTION_LISTED_H
#define PARE_ATTENTION_LISTED_H
#include <math.h>
#include <pare/attention.h>

enum {
    LIST_PAD = 16,   /* floats that a kernel may write beyond the scores of a row */
    LIST_AHEAD = 32, /* places beyond a list of pairs that a kernel may read */
    LIST_NARROW = 8, /* columns, at most, of rows of which several fit a register */
    LIST_FEW = 8     /* keys, at most, of rows that come in pairs */
};

/* Rows of a matrix that a list names. */
typedef struct list_rows {
    const float *v;
    size_t ld, width;
} list_rows;

/* Of the weights of a row so far: its largest score, sum_j e^(s_j - top), and the factor by which
 * what was added up before the last keys came has become smaller. */
typedef struct list_sum {
    float top, sum, fade;
} list_sum;
#define LIST_NOTHING ((list_sum){-INFINITY, 0, 0})

/* Two rows that see few keys each. */
typedef struct list_pair {
    const float *q[2];
    float *y[2];
    const uint32_t *idx[2];
    size_t n[2];
    list_rows k, v;
    float scale;
} list_pair;

/* What attention over idx[0 .. n-1], n > 0, and its gradient are made of. */
typedef struct list_kernel {
    const char *name;
    /* s_j = scale x.rows_idx[j]; s has room for n + LIST_PAD floats. */
    void (*scores)(float *s, const float *x, const list_rows *rows, float scale,
                   const uint32_t *idx, size_t n);
    /* More keys for a row: s_j = e^(s_j - top); s as above. The scores go to `kept` where that is
     * not NULL. */
    list_sum (*weights)(float *s, float *kept, size_t n, list_sum so_far);
    /* y = old y + by sum_j s_j rows_idx[j]; where old is 0, y is not read. */
    void (*values)(float *y, const float *s, const list_rows *rows, const uint32_t *idx, size_t n,
                   float by, float old);
    /* y = sum_j pair[2 from_j] rows_idx[j], z = sum_j pair[2 from_j + 1] more_idx[j], added to what
     * is there or not; LIST_AHEAD more entries of `from` may be read. */
    void (*both)(float *y, float *z, const float *pair, const uint32_t *from, const list_rows *rows,
                 const list_rows *more, const uint32_t *idx, size_t n, bool add);
    /* p_j = e^(s_j - lse) and ds_j = scale p_j (t_j - mean), the first into pair[2 j], the second
     * into pair[2 j + 1] and ds[j]; ds has room for n + LIST_PAD floats. */
    void (*slopes)(float *pair, float *ds, const float *s, const float *t, float lse, float mean,
                   float scale, size_t n);
    /* Two rows at once, from scores to values, 1 to LIST_FEW keys each, k and v at most LIST_NARROW
     * wide; sums as of `weights`, unless NULL. NULL: there is none. */
    void (*pair)(const list_pair *p, list_sum sum[2]);
} list_kernel;

/* The kernels this CPU can run, best first; the last is the portable one. Returns how many. */
size_t list_kernels(list_kernel out[3]);

typedef struct listed_job {
    pare_mat32 y;
    float *lse;    /* n, log of the sum of each row's e^score, -inf for an empty row; or NULL */
    float *scores; /* of each edge, in the order of the visits; or NULL */
    const pare_mat32 *q, *k, *v;
    float scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
    const pare_visits *visits; /* by query; or NULL */
    const list_kernel *kernel;
} listed_job;

/* All rows, over the threads. */
PARE_MUST_USE pare_status listed_attend(const listed_job *w, const pare_exec *exec, pare_err *err);

/* Adds the gradients to dq, dk, dv. A graph comes with `turned`; a window is given neither. */
typedef struct listed_backward_job {
    pare_mat32 dq, dk, dv;
    const pare_mat32 *dy, *q, *k, *v, *y;
    pare_kept32 kept;
    float scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
    const pare_turned *turned;
    const list_kernel *kernel;
} listed_backward_job;

PARE_MUST_USE pare_status listed_backward(const listed_backward_job *w, const pare_exec *exec,
                                          pare_err *err);

/* ---- rows in blocks of keys (list_sweep.c) ----------------------------------------------------
 */

/* Some keys of a row: edges first .. first + count - 1 of the graph, 0 < count <= most. */
typedef void list_segment(void *ctx, size_t row, size_t first, size_t count);

/* How many keys, of `width` floats each, are to be taken at a time: a block that stays in the cache
 * while all rows visit it; g->n where that does not pay. */
size_t list_block(const pare_graph *g, size_t width);
/* Calls fn for every edge, block after block of keys, in each of them over the threads. What
 * belongs to one row comes in order and not at once. */
PARE_MUST_USE pare_status list_sweep(const pare_graph *g, size_t block, size_t most,
                                     list_segment *fn, void *ctx, const pare_exec *exec,
                                     pare_err *err);

#endif
