/* listed.h - attention of a row over a list of keys: graphs, short windows; and the way back. */
#ifndef PARE_ATTENTION_LISTED_H
#define PARE_ATTENTION_LISTED_H
#include <pare/attention.h>

enum { LIST_PAD = 16 /* floats that a kernel may write beyond the scores of a row */ };

/* The keys and values of one head. */
typedef struct list_data {
    const float *k, *v;
    size_t ldk, ldv, dk, dv;
    float scale;
} list_data;

typedef struct list_sum {
    float top, sum;
} list_sum;

typedef struct list_kernel {
    const char *name;
    /* y (dv) = the average over keys idx[0 .. n-1], n > 0, for the query q (dk); s is room for
     * n + LIST_PAD floats. Returns the largest score and the sum of e^(score - largest). */
    list_sum (*row)(float *y, const float *q, const list_data *e, const uint32_t *idx, size_t n,
                    float *s);
} list_kernel;

/* The kernels this CPU can run, best first; the last is the portable one. Returns how many. */
size_t list_kernels(list_kernel out[3]);

typedef struct listed_job {
    pare_mat32 y;
    float *lse; /* n, log of the sum of each row's e^score, -inf for an empty row; or NULL */
    const pare_mat32 *q, *k, *v;
    float scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
    const list_kernel *kernel;
} listed_job;

/* All rows, over the threads. */
PARE_MUST_USE pare_status listed_attend(const listed_job *w, const pare_exec *exec, pare_err *err);

/* Adds the gradients to dq, dk, dv. A graph comes with `turned`; a window is given neither. */
typedef struct listed_backward_job {
    pare_mat32 dq, dk, dv;
    const pare_mat32 *dy, *q, *k, *v, *y;
    const float *lse;
    float scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
    const pare_turned *turned;
    const list_kernel *kernel;
} listed_backward_job;

PARE_MUST_USE pare_status listed_backward(const listed_backward_job *w, const pare_exec *exec,
                                          pare_err *err);

#endif
