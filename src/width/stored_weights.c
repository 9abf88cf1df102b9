/* stored_weights.c - between stored weights and matrices (stored_weights.h). */
#include "linalg/matrix.h"
#include "stored_weights.h"

/* ---- reading -------------------------------------------------------------------------------- */

pare_mat read_matrix_part(pare_work *w, const pare_weight *from, size_t r, size_t c, size_t rows,
                          size_t cols)
{
    pare_mat m = mat_zeros(w, rows, cols);
    if (!w->st && rows > 0 && cols > 0) pare_weight_widen(&m, from, r, c);
    return m;
}

pare_mat read_matrix(pare_work *w, const pare_weight *from)
{
    return read_matrix_part(w, from, 0, 0, from->rows, from->cols);
}

double *read_vector(pare_work *w, const pare_weight *b, size_t at, size_t n)
{
    double *const v = vec_zeros(w, n);
    for (size_t i = 0; !w->st && pare_has(b) && i < n; i++) v[i] = pare_weight_at(b, at + i);
    return v;
}

pare_mat read_wo(pare_work *w, const pare_attn *a, const pare_head *h)
{
    if (pare_has(&a->wo)) return read_matrix_part(w, &a->wo, 0, h->o, a->dout, h->dv);
    pare_mat m = mat_zeros(w, a->dout, h->dv);
    for (size_t j = 0; !w->st && j < h->dv; j++) pare_row_mut(&m, h->o + j)[j] = 1;
    return m;
}

pare_mat read_skip(pare_work *w, const pare_skip *s, size_t din)
{
    pare_mat r = {0};
    if (s->kind == PARE_SKIP_NONE) return r;
    if (s->kind == PARE_SKIP_DENSE) return read_matrix(w, &s->w);
    r = mat_identity(w, din);
    for (size_t i = 0; !w->st && s->kind == PARE_SKIP_DIAGONAL && i < din; i++)
        pare_row_mut(&r, i)[i] = pare_weight_at(&s->w, i);
    return r;
}

void refuse_model(pare_work *w, const char *where, size_t block, const char *what)
{
    if (block == SIZE_MAX)
        pare_work_fail(w, PARE_ERR_INPUT, "%s: %s: width cannot cut this", where, what);
    else
        pare_work_fail(w, PARE_ERR_INPUT, "block %zu, %s: %s: width cannot cut this", block, where,
                       what);
}

static pare_status note_f64(void *self, const char *name, pare_weight *v, bool vector,
                            pare_err *err)
{
    (void)name, (void)err;
    if (pare_has(v) && !vector && v->dtype == PARE_F64) *(pare_dtype *)self = PARE_F64;
    return PARE_OK;
}

pare_dtype memory_dtype(const pare_model *m, pare_dtype dtype)
{
    pare_dtype t = dtype == PARE_F64 ? PARE_F64 : PARE_F32;
    if (dtype) return t;
    /* The visitor hands out mutable weights; looking does not touch them. */
    const pare_status st = pare_model_each_weight((pare_model *)m, note_f64, &t, NULL);
    PARE_ASSERT(st == PARE_OK);
    return t;
}

/* ---- writing -------------------------------------------------------------------------------- */

pare_weight writer_reserve(weight_writer *o, size_t rows, size_t cols)
{
    size_t count = 0;
    pare_weight v = {o->dtype, rows, cols, NULL};
    if (o->w.st) return v;
    if (pare_mul(&count, rows, cols))
        v.data = pare_alloc(o->w.arena, count, pare_dtype_size(o->dtype));
    if (!v.data) o->w.st = pare_no_memory(o->w.err);
    return v;
}

void writer_put(weight_writer *o, pare_weight *v, size_t r, size_t c, const pare_mat *m)
{
    for (size_t i = 0; !o->w.st && i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++) {
            const size_t k = (r + i) * v->cols + c + j;
            if (o->dtype == PARE_F64)
                ((double *)(uintptr_t)v->data)[k] = pare_row(m, i)[j];
            else
                ((float *)(uintptr_t)v->data)[k] = (float)pare_row(m, i)[j];
        }
}

pare_weight writer_matrix(weight_writer *o, const pare_mat *m)
{
    pare_weight v = writer_reserve(o, m->rows, m->cols);
    writer_put(o, &v, 0, 0, m);
    return v;
}

bool all_zero(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0) return false;
    return true;
}

bool is_identity_wo(const pare_mat *m, size_t first)
{
    for (size_t r = 0; r < m->rows; r++)
        for (size_t j = 0; j < m->cols; j++)
            if (pare_row(m, r)[j] != (r == first + j ? 1 : 0)) return false;
    return true;
}

pare_weight writer_vector(weight_writer *o, double *v, size_t n)
{
    if (o->w.st || all_zero(v, n)) return (pare_weight){0};
    const pare_mat m = pare_mat_of(v, 1, n);
    return writer_matrix(o, &m);
}

pare_dense writer_dense(weight_writer *o, const pare_mat *m, double *b)
{
    const pare_weight w = writer_matrix(o, m);
    return (pare_dense){w, writer_vector(o, b, m->rows)};
}

static pare_skip_kind skip_kind_of(const pare_mat *r)
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

pare_skip writer_skip(weight_writer *o, const pare_mat *r)
{
    pare_skip s = {.kind = skip_kind_of(r)};
    if (s.kind == PARE_SKIP_DENSE) s.w = writer_matrix(o, r);
    if (s.kind == PARE_SKIP_DIAGONAL) s.w = writer_reserve(o, 1, r->rows);
    for (size_t i = 0; !o->w.st && s.kind == PARE_SKIP_DIAGONAL && i < r->rows; i++) {
        const pare_mat entry = pare_mat_part(r, i, i, 1, 1);
        writer_put(o, &s.w, 0, i, &entry);
    }
    return s;
}

size_t skip_parameters(const pare_mat *r)
{
    const pare_skip_kind k = skip_kind_of(r);
    return k == PARE_SKIP_DENSE ? r->rows * r->cols : k == PARE_SKIP_DIAGONAL ? r->rows : 0;
}
