#include "model_copy.h"
#include <string.h>

static const void *copy(pare_arena *a, const void *from, size_t n, size_t size)
{
    void *const to = pare_alloc(a, n ? n : 1, size);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

static pare_status own_weight(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    (void)name, (void)vector;
    if (!pare_has(w)) return PARE_OK;
    w->data = copy(self, w->data, w->rows * w->cols, pare_dtype_size(w->dtype));
    return w->data ? PARE_OK : pare_no_memory(err);
}

pare_status model_deep_copy(pare_model **out, const pare_model *m, pare_err *err)
{
    pare_model *twin = NULL;
    *out = NULL;
    pare_status st = pare_model_clone(&twin, m, err);
    if (st) return st;
    st = pare_model_visit(twin, own_weight, twin->arena, err);
    if (!st && twin->vocab) {
        twin->vocab = copy(twin->arena, twin->vocab, twin->vocab_bytes, 1);
        if (!twin->vocab) st = pare_no_memory(err);
    }
    if (st)
        pare_model_free(twin);
    else
        *out = twin;
    return st;
}
