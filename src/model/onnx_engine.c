/* The one small engine of a plan: plain softmax attention with fixed shapes. */
#include "onnx.h"
#include <pare/export.h>

pare_status pare_export_engine(const pare_engine_shape *s, const char *path, bool overwrite,
                               uint64_t *bytes, pare_err *err)
{
    onnx g = {.err = err};
    const dimension keys[] = {{NULL, s->batch}, {NULL, s->rows}, {NULL, s->dk}};
    const dimension values[] = {{NULL, s->batch}, {NULL, s->rows}, {NULL, s->dv}};
    if (!(g.arena = pare_arena_new())) return pare_no_memory(err);
    onnx_value(&g, ONNX_INPUT, "q", ONNX_FLOAT, keys, 3);
    onnx_value(&g, ONNX_INPUT, "k", ONNX_FLOAT, keys, 3);
    onnx_value(&g, ONNX_INPUT, "v", ONNX_FLOAT, values, 3);
    onnx_value(&g, ONNX_OUTPUT, "y", ONNX_FLOAT, values, 3);
    const value k = "k";
    const value turned = onnx_node(&g, "Transpose", &k, 1, NUMBERS("perm", 3, 0, 2, 1));
    const value scores = onnx_op2(&g, "MatMul", "q", turned);
    const value weights = onnx_node(&g, "Softmax", &scores, 1, ONE_NUMBER("axis", -1));
    onnx_rename(&g, onnx_op2(&g, "MatMul", weights, "v"), "y");
    const pare_status st = onnx_write(&g, "attention", path, overwrite, bytes);
    onnx_free(&g);
    pare_arena_free(g.arena);
    return st;
}

pare_status pare_engine_for(pare_engine_shape *out, const pare_model *m, size_t rows, size_t batch,
                            pare_err *err)
{
    size_t dk = 0, dv = 0;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        for (size_t h = 0; h < a->nheads; h++) {
            if (a->heads[h].dk > dk) dk = a->heads[h].dk;
            if (a->heads[h].dv > dv) dv = a->heads[h].dv;
        }
    }
    if (!dk || !dv) return pare_fail(err, PARE_ERR_INPUT, "the model has no attention heads");
    *out = (pare_engine_shape){batch, rows, dk + 1, dv + 2};
    return PARE_OK;
}
