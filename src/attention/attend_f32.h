/* attend_f32.h - pare_attend_f32 and its way back with chosen kernels (the tests run every
 * variant), and which kind of kernel serves a pattern. */
#ifndef PARE_ATTENTION_ATTEND_F32_H
#define PARE_ATTENTION_ATTEND_F32_H
#include "sparse.h"
#include "panel.h"
#include "tile.h"
#include <pare/attention.h>

typedef struct attend_kernels {
    const char *name; /* "avx512", "avx2", "portable" */
    tile_kernel tile;
    list_kernel list;
} attend_kernels;

/* The variants this CPU can run, best first; the last is the portable one. Returns how many. */
size_t attention_kernels(attend_kernels out[3]);
PARE_MUST_USE pare_status attend_f32_with(const attend_kernels *kernels, pare_mat32 *y,
                                          const pare_mat32 *q, const pare_mat32 *k,
                                          const pare_mat32 *v, float scale, const pare_pattern *p,
                                          const pare_graph *g, const pare_exec *exec,
                                          pare_err *err);
/* The same with what the way back needs. Without a graph turned no scores are kept. */
PARE_MUST_USE pare_status attend_keep_f32_with(const attend_kernels *kernels, pare_mat32 *y,
                                               const pare_kept32 *kept, const pare_mat32 *q,
                                               const pare_mat32 *k, const pare_mat32 *v,
                                               float scale, const pare_pattern *p,
                                               const pare_graph *g, const pare_turned *turned,
                                               const pare_exec *exec, pare_err *err);
PARE_MUST_USE pare_status attend_backward_f32_with(
    const attend_kernels *kernels, pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
    const pare_mat32 *dy, const pare_mat32 *q, const pare_mat32 *k, const pare_mat32 *v,
    const pare_mat32 *y, const pare_kept32 *kept, float scale, const pare_pattern *p,
    const pare_graph *g, const pare_turned *turned, const pare_exec *exec, pare_err *err);

/* Few keys a row: lists; many: tiles, for which this is who sees whom. */
bool as_list(const pare_pattern *p);
sight sight_of(const pare_pattern *p);

#endif
