/* layer_ops_f32.h - the steps of layer_ops.h as the f32 engine takes them. */
#ifndef PARE_MODEL_LAYER_OPS_F32_H
#define PARE_MODEL_LAYER_OPS_F32_H
#include "layer_ops.h"

PARE_MUST_USE pare_status rows_norm_f32(rows *y, const rows *x, const pare_norm *n,
                                        const rows_ctx *c);
PARE_MUST_USE pare_status rows_act_f32(rows *y, const rows *u, pare_act a, const rows_ctx *c);
PARE_MUST_USE pare_status rows_add_f32(rows *y, const rows *x, const pare_weight *w,
                                       const rows_ctx *c);
PARE_MUST_USE pare_status rows_shift_f32(rows *y, const pare_weight *b, const rows_ctx *c);
#endif
