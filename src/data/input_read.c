/* input_read.c - `--input`: one .npy for the model to run on. */
#include "base/array.h"
#include "dataset.h"

/* A leading batch is optional. */
static pare_status read_input(pare_input *in, size_t *ndim, size_t out_shape[4], pare_arena *arena,
                              const pare_model *m, const char *path, pare_err *err)
{
    const bool ids = m->embedding.ids;
    const size_t own = ids ? 1 : 2; /* dimensions of one sequence */
    pare_array a;
    char shape[128];
    pare_status st = pare_npy_read(&a, arena, path, err);
    if (st) return st;
    pare_shape_text(shape, a.shape, a.ndim);
    const bool batched = a.ndim == own + 1;
    if ((a.ndim != own && !batched) || (ids ? !pare_array_is_integer(&a) : a.dtype == PARE_TEXT))
        return pare_fail(
            err, PARE_ERR_INPUT, "the array is %s %s, the model takes %s", pare_dtype_name(a.dtype),
            shape, ids ? "ids: integers [T] or [B, T]" : "vectors: numbers [T, d] or [B, T, d]");
    in->batch = batched ? a.shape[0] : 1;
    in->tokens = a.shape[batched];
    in->width = ids ? 0 : a.shape[batched + 1];
    if (in->batch == 0 || in->tokens == 0)
        return pare_fail(err, PARE_ERR_INPUT, "the array %s is empty", shape);
    if (!ids && in->width != m->embedding.width)
        return pare_fail(err, PARE_ERR_INPUT, "vectors %s, but the model takes the width %zu",
                         shape, m->embedding.width);
    st = pare_input_fill(in, arena, &a, m, err);
    if (st) return st;
    *ndim = 0;
    if (batched) out_shape[(*ndim)++] = in->batch;
    if (m->head.pool == PARE_POOL_NONE) out_shape[(*ndim)++] = in->tokens;
    out_shape[(*ndim)++] = pare_model_outputs(m);
    return pare_input_check(m, in, err);
}

pare_status pare_input_read(pare_input *out, size_t *ndim, size_t shape[4], pare_arena *a,
                            const pare_model *m, const char *path, pare_err *err)
{
    *out = (pare_input){0};
    const pare_status st = read_input(out, ndim, shape, a, m, path, err);
    if (st) pare_err_name_file(err, path);
    return st;
}
