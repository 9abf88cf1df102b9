/* Between stored weights and matrices (stored_weights.h). */
#include "stored_weights.h"

/* ---- reading -------------------------------------------------------------------------------- */

pare_mat read_part(work *w, const pare_weight *from, size_t r, size_t c, size_t rows, size_t cols)
{
    pare_mat m = w_mat(w, rows, cols);
    if (!w->st && rows > 0 && cols > 0) pare_weight_widen(&m, from, r, c);
    return m;
}

pare_mat read_all(work *w, const pare_weight *from)
{
    return read_part(w, from, 0, 0, from->rows, from->cols);
}

double *read_bias(work *w, const pare_weight *b, size_t at, size_t n)
{
    double *const v = w_vec(w, n);
    for (size_t i = 0; !w->st && pare_has(b) && i < n; i++) v[i] = pare_weight_at(b, at + i);
    return v;
}

pare_mat read_join(work *w, const pare_attn *a, const pare_head *h)
{
    if (pare_has(&a->wo)) return read_part(w, &a->wo, 0, h->o, a->dout, h->dv);
    pare_mat m = w_mat(w, a->dout, h->dv);
    for (size_t j = 0; !w->st && j < h->dv; j++) pare_row_mut(&m, h->o + j)[j] = 1;
    return m;
}

static pare_status see_dtype(void *self, const char *name, pare_weight *v, bool vector,
                             pare_err *err)
{
    (void)name, (void)err;
    if (pare_has(v) && !vector && v->dtype == PARE_F64) *(pare_dtype *)self = PARE_F64;
    return PARE_OK;
}

pare_dtype read_dtype(work *w, const pare_model *m)
{
    pare_dtype t = PARE_F32;
    pare_model walked = *m; /* the visitor only looks */
    if (!w->st) w->st = pare_model_visit(&walked, see_dtype, &t, w->err);
    return t;
}

/* ---- writing -------------------------------------------------------------------------------- */

pare_weight store_room(store *o, size_t rows, size_t cols)
{
    size_t count = 0;
    pare_weight v = {o->t, rows, cols, NULL};
    if (o->st) return v;
    if (pare_mul(&count, rows, cols)) v.data = pare_alloc(o->a, count, pare_dtype_size(o->t));
    if (!v.data) o->st = pare_no_memory(o->err);
    return v;
}

void store_put(store *o, pare_weight *v, size_t r, size_t c, const pare_mat *m)
{
    for (size_t i = 0; !o->st && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) {
            const size_t k = (r + i) * v->cols + c + j;
            if (o->t == PARE_F64)
                ((double *)(uintptr_t)v->data)[k] = pare_row(m, i)[j];
            else
                ((float *)(uintptr_t)v->data)[k] = (float)pare_row(m, i)[j];
        }
}

pare_weight store_all(store *o, const pare_mat *m)
{
    pare_weight v = store_room(o, m->rows, m->cols);
    store_put(o, &v, 0, 0, m);
    return v;
}

bool all_zero(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0) return false;
    return true;
}

bool is_join(const pare_mat *m, size_t first)
{
    for (size_t r = 0; r < m->rows; r++)
        for (size_t j = 0; j < m->cols; j++)
            if (pare_row(m, r)[j] != (r == first + j ? 1 : 0)) return false;
    return true;
}

pare_weight store_bias(store *o, double *v, size_t n)
{
    if (o->st || all_zero(v, n)) return (pare_weight){0};
    const pare_mat m = pare_mat_of(v, 1, n);
    return store_all(o, &m);
}

static pare_skip_kind kind_of(const pare_mat *r)
{
    bool identity = true;
    if (!r->v) return PARE_SKIP_NONE;
    if (r->rows != r->cols) return PARE_SKIP_DENSE;
    for (size_t i = 0; i < r->rows; i++)
        for (size_t j = 0; j < r->cols; j++) {
            if (i != j && pare_row(r, i)[j] != 0) return PARE_SKIP_DENSE;
            if (i == j && pare_row(r, i)[j] != 1) identity = false;
        }
    return identity ? PARE_SKIP_IDENTITY : PARE_SKIP_DIAGONAL;
}

pare_skip store_skip(store *o, const pare_mat *r)
{
    pare_skip s = {.kind = kind_of(r)};
    if (s.kind == PARE_SKIP_DENSE) s.w = store_all(o, r);
    if (s.kind == PARE_SKIP_DIAGONAL) s.w = store_room(o, 1, r->rows);
    for (size_t i = 0; !o->st && s.kind == PARE_SKIP_DIAGONAL && i < r->rows; i++) {
        const pare_mat entry = pare_mat_part(r, i, i, 1, 1);
        store_put(o, &s.w, 0, i, &entry);
    }
    return s;
}

size_t store_skip_count(const pare_mat *r)
{
    const pare_skip_kind k = kind_of(r);
    return k == PARE_SKIP_DENSE ? r->rows * r->cols : k == PARE_SKIP_DIAGONAL ? r->rows : 0;
}
