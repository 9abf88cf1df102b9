/* weight.c - stored matrices: widened by parts, checked once. */
#include "packed.h"
#include <math.h>
#include <string.h>

void pare_weight_widen(pare_mat *out, const pare_weight *w, size_t r, size_t c)
{
    PARE_ASSERT(w->dtype == PARE_F32 || w->dtype == PARE_F64 || packed_of(w));
    PARE_ASSERT(r <= w->rows && out->rows <= w->rows - r);
    PARE_ASSERT(c <= w->cols && out->cols <= w->cols - c);
    if (out->cols == 0) return;
    for (size_t i = 0; i < out->rows; i++) {
        double *to = pare_row_mut(out, i);
        const size_t at = (r + i) * w->cols + c;
        if (w->dtype == PARE_F64) {
            memcpy(to, (const double *)w->data + at, out->cols * sizeof *to);
            continue;
        }
        for (size_t j = 0; packed_of(w) && j < out->cols; j++) to[j] = pare_weight_at(w, at + j);
        if (packed_of(w)) continue;
        const float *from = (const float *)w->data + at;
        for (size_t j = 0; j < out->cols; j++) to[j] = (double)from[j];
    }
}

bool pare_weight_finite(const pare_weight *w, size_t *where)
{
    PARE_ASSERT(w->dtype == PARE_F32 || w->dtype == PARE_F64 || packed_of(w));
    if (packed_of(w)) return packed_finite(packed_of(w), where);
    const size_t count = pare_has(w) ? w->rows * w->cols : 0;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(pare_weight_at(w, i))) {
            if (where) *where = i;
            return false;
        }
    return true;
}

pare_status pare_weight_identity(pare_weight *out, pare_arena *a, size_t n, pare_dtype t,
                                 pare_err *err)
{
    size_t count;
    PARE_ASSERT(t == PARE_F32 || t == PARE_F64);
    void *const v = pare_mul(&count, n, n) ? pare_alloc(a, count, pare_dtype_size(t)) : NULL;
    if (!v) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (t == PARE_F64)
            ((double *)v)[i * n + i] = 1;
        else
            ((float *)v)[i * n + i] = 1;
    }
    *out = (pare_weight){t, n, n, v};
    return PARE_OK;
}
