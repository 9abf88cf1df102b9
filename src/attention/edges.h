/* edges.h - attention of a row over a list of keys: graphs, short windows. */
#ifndef PARE_ATTENTION_EDGES_H
#define PARE_ATTENTION_EDGES_H
#include <pare/attention.h>

enum { EDGES_PAD = 16 /* floats that a kernel may write beyond the scores of a row */ };

/* The keys and values of one head. */
typedef struct edge_data {
    const float *k, *v;
    size_t ldk, ldv, dk, dv;
    float scale;
} edge_data;

typedef struct edge_kernel {
    const char *name;
    /* y (dv) = the average over keys idx[0 .. n-1], n > 0, for the query q (dk); s is room for
     * n + EDGES_PAD floats. */
    void (*row)(float *y, const float *q, const edge_data *e, const uint32_t *idx, size_t n,
                float *s);
} edge_kernel;

/* The kernels this CPU can run, best first; the last is the portable one. Returns how many. */
size_t edge_kernels(edge_kernel out[3]);

typedef struct edges_job {
    pare_mat32 y;
    const pare_mat32 *q, *k, *v;
    float scale;
    const pare_pattern *pattern;
    const pare_graph *graph;
    const edge_kernel *kernel;
} edges_job;

/* All rows, over the threads. */
PARE_MUST_USE pare_status edges_attend(const edges_job *w, const pare_exec *exec, pare_err *err);

#endif
