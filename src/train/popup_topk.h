/* popup_topk.h - the K largest |scores| of many matrices at once. Private to src/train. */
#ifndef PARE_SRC_POPUP_TOPK_H
#define PARE_SRC_POPUP_TOPK_H
#include <pare/base.h>

typedef struct topk_matrix {
    size_t offset, count, keep; /* 1 <= keep <= count; offset: in the arrays of topk_apply */
} topk_matrix;

typedef struct topk topk;
/* In the arena; `m` is borrowed. */
PARE_MUST_USE pare_status topk_new(topk **out, pare_arena *a, const topk_matrix *m, size_t matrices,
                                   pare_err *err);
/* out = weight at the `keep` largest |score| of each matrix, of equals at the first; +0 elsewhere.
 * What lies between the matrices is left alone. */
void topk_apply(topk *s, float *out, const float *weight, const float *score,
                const pare_exec *exec);
#endif
