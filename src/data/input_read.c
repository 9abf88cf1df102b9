/* `--input`: one .npy for the model to run on. */
#include "base/array.h"
#include <pare/data.h>
#include "name_file.h"
#include "dataset.h"

/* A leading batch is optional. */
static pare_status place(pare_input *in, const pare_array *a, const pare_model *m, pare_err *err)
{
    char shape[128];
    const size_t own = m->stem.ids ? 1 : 2; /* dimensions of one sequence */
    const bool batched = a->ndim == own + 1;
    const bool kind = m->stem.ids ? pare_array_is_integer(a) : a->dtype != PARE_TEXT;
    if ((a->ndim != own && !batched) || !kind)
        return pare_fail(err, PARE_ERR_INPUT, "the array is %s %s, the model takes %s",
                         pare_dtype_name(a->dtype), pare_shape_text(shape, a->shape, a->ndim),
                         m->stem.ids ? "ids: integers [T] or [B, T]"
                                     : "vectors: numbers [T, d] or [B, T, d]");
    in->batch = batched ? a->shape[0] : 1;
    in->tokens = a->shape[batched];
    in->width = m->stem.ids ? 0 : a->shape[batched + 1];
    if (in->batch == 0 || in->tokens == 0)
        return pare_fail(err, PARE_ERR_INPUT, "the array %s is empty",
                         pare_shape_text(shape, a->shape, a->ndim));
    if (!m->stem.ids && in->width != m->stem.width)
        return pare_fail(err, PARE_ERR_INPUT, "vectors %s, but the model takes the width %zu",
                         pare_shape_text(shape, a->shape, a->ndim), m->stem.width);
    return PARE_OK;
}

static pare_status read_input(pare_input *in, size_t *ndim, size_t shape[4], pare_arena *arena,
                              const pare_model *m, const char *path, pare_err *err)
{
    pare_array a;
    pare_status st = pare_npy_read(&a, arena, path, err);
    if (st == PARE_OK) st = place(in, &a, m, err);
    if (st) return st;
    if (m->stem.ids)
        in->ids = pare_array_ids(arena, &a);
    else
        in->x = pare_array_numbers(arena, &a);
    if (!in->ids && !in->x) return pare_no_memory(err);
    *ndim = 0;
    if (a.ndim == (m->stem.ids ? 2 : 3)) shape[(*ndim)++] = in->batch;
    if (m->top.pool == PARE_POOL_NONE) shape[(*ndim)++] = in->tokens;
    shape[(*ndim)++] = pare_model_outputs(m);
    return pare_input_check(m, in, err);
}

pare_status pare_input_read(pare_input *out, size_t *ndim, size_t shape[4], pare_arena *a,
                            const pare_model *m, const char *path, pare_err *err)
{
    *out = (pare_input){0};
    const pare_status st = read_input(out, ndim, shape, a, m, path, err);
    if (st) pare_blame(err, path);
    return st;
}
