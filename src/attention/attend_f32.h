/* attend_f32.h - pare_attend_f32 with chosen kernels: for the tests, which run every variant. */
#ifndef PARE_ATTENTION_ATTEND_F32_H
#define PARE_ATTENTION_ATTEND_F32_H
#include "edges.h"
#include "tile.h"
#include <pare/attention.h>

typedef struct attend_kernels {
    const char *name; /* "avx512", "avx2", "portable" */
    tile_kernel tile;
    edge_kernel edge;
} attend_kernels;

/* The variants this CPU can run, best first; the last is the portable one. Returns how many. */
size_t attention_kernels(attend_kernels out[3]);
PARE_MUST_USE pare_status attend_f32_with(const attend_kernels *kernels, pare_mat32 *y,
                                          const pare_mat32 *q, const pare_mat32 *k,
                                          const pare_mat32 *v, float scale, const pare_pattern *p,
                                          const pare_graph *g, const pare_exec *exec,
                                          pare_err *err);

#endif
