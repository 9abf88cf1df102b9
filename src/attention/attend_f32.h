/* attend_f32.h - attention of the f32 engine with chosen kernels: the tests run every variant. */
#ifndef PARE_ATTENTION_ATTEND_F32_H
#define PARE_ATTENTION_ATTEND_F32_H
#include "sparse.h"
#include "tile.h"

typedef struct attend_kernels {
    const char *name; /* "avx512", "avx2", "portable" */
    tile_kernel tile;
    sparse_kernel sparse;
} attend_kernels;

/* The variants this CPU can run, best first; the last is the portable one. Returns how many. */
size_t attention_kernels(attend_kernels out[3]);
PARE_MUST_USE pare_status attend_f32_with(const attend_kernels *kernels, pare_mat32 *y,
                                          const pare_mat32 *q, const pare_mat32 *k,
                                          const pare_mat32 *v, float scale, const pare_pattern *p,
                                          const pare_graph *g, const pare_exec *exec,
                                          pare_err *err);
/* The same, and saves what the backward pass needs; no scores without a transposed graph. */
PARE_MUST_USE pare_status attend_save_f32_with(const attend_kernels *kernels, pare_mat32 *y,
                                               const pare_saved32 *saved, const pare_mat32 *q,
                                               const pare_mat32 *k, const pare_mat32 *v,
                                               float scale, const pare_pattern *p,
                                               const pare_graph *g,
                                               const pare_transposed_graph *transpose,
                                               const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status attend_backward_f32_with(
    const attend_kernels *kernels, pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
    const pare_mat32 *dy, const pare_mat32 *q, const pare_mat32 *k, const pare_mat32 *v,
    const pare_mat32 *y, const pare_saved32 *saved, float scale, const pare_pattern *p,
    const pare_graph *g, const pare_transposed_graph *transpose, const pare_exec *exec,
    pare_err *err);

#endif
