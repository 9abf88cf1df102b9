/* onnx_engine.c - the one small engine of a plan: plain softmax attention with fixed shapes. */
#include "onnx.h"
#include <float.h>
#include <pare/model.h>

/* 0 where row i sees row j <= i, very low elsewhere; runtimes compute it once, when they load. */
static value causal_mask(onnx *g, size_t rows)
{
    const int64_t first = 0, last = 1;
    const value at =
        onnx_op3(g, "Range", onnx_number(g, 0), onnx_number(g, (int64_t)rows), onnx_number(g, 1));
    const value key = onnx_op2(g, "Unsqueeze", at, onnx_numbers(g, 1, &first));
    const value query = onnx_op2(g, "Unsqueeze", at, onnx_numbers(g, 1, &last));
    return onnx_op3(g, "Where", onnx_op2(g, "LessOrEqual", key, query), onnx_real(g, 0),
                    onnx_real(g, -FLT_MAX));
}

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
    const char *const y = s->causal ? "causal_y" : "y";
    onnx_value(&g, ONNX_OUTPUT, y, ONNX_FLOAT, values, 3);
    const value k = "k";
    const value transposed = onnx_node(&g, "Transpose", &k, 1, NUMBERS("perm", 3, 0, 2, 1));
    value scores = onnx_op2(&g, "MatMul", "q", transposed);
    if (s->causal) scores = onnx_op2(&g, "Add", scores, causal_mask(&g, s->rows));
    const value weights = onnx_node(&g, "Softmax", &scores, 1, ONE_NUMBER("axis", -1));
    onnx_rename(&g, onnx_op2(&g, "MatMul", weights, "v"), y);
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
    *out = (pare_engine_shape){batch, rows, dk + 1, dv + 2, false};
    return PARE_OK;
}
