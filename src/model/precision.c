/* precision.c - the precision that weights are stored in (precision.h). */
#include "precision.h"
#include "base/array.h"
#include "base/support.h"
#include <math.h>
#include <string.h>

/* ---- the floating type that holds most bytes -------------------------------------------------- */

static const pare_dtype types[] = {PARE_F16, PARE_BF16, PARE_F32, PARE_F64};

void precision_count(precision_counts *c, pare_dtype t, size_t numbers)
{
    for (size_t i = 0; i < 4; i++)
        if (types[i] == t) c->bytes[i] += (double)numbers * (double)pare_dtype_size(t);
}

pare_dtype precision_of(const precision_counts *c)
{
    size_t most = 2; /* f32 where there are none */
    for (size_t i = 0; i < 4; i++)
        if (c->bytes[i] > c->bytes[most]) most = i;
    return types[most];
}

static pare_status count_weight(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    (void)name, (void)vector, (void)err;
    if (pare_has(w)) precision_count(self, w->dtype, w->rows * w->cols);
    return PARE_OK;
}

pare_dtype pare_model_precision(const pare_model *m)
{
    precision_counts c = {{0}};
    for (size_t i = 0; i < 4; i++)
        if (types[i] == m->precision) return m->precision;
    /* The visitor hands out mutable weights; counting does not touch them. */
    const pare_status st = pare_model_each_weight((pare_model *)m, count_weight, &c, NULL);
    PARE_ASSERT(st == PARE_OK);
    return precision_of(&c);
}

/* ---- stored weights -------------------------------------------------------------------------- */

/* x rounded to the nearest number of type t, ties to even; infinite where it overflows. */
static double rounded(double x, pare_dtype t)
{
    switch (t) {
    case PARE_F16:
        return (double)pare_f16_to_f32(pare_f16_of(x));
    case PARE_BF16:
        return (double)pare_bf16_to_f32(pare_bf16_of(x));
    case PARE_F32:
        return (double)(float)x;
    default:
        return x;
    }
}

/* Whether every number is one of type t. */
static bool is_exact(const pare_weight *w, pare_dtype t)
{
    if (t == w->dtype || t == PARE_F64) return true;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        const double x = pare_weight_at(w, i);
        if (rounded(x, t) != x) return false;
    }
    return true;
}

pare_dtype weight_stored_dtype(const pare_weight *w, pare_dtype precision)
{
    if (w->dtype != PARE_F32 && w->dtype != PARE_F64) return w->dtype; /* bytes of a vocabulary */
    /* What is held in f64 keeps its bytes, and their hash, in a file of f32. */
    if (precision == PARE_F32) return w->dtype;
    const pare_dtype tried[] = {precision, PARE_F32};
    for (size_t i = 0; i < 2; i++)
        if (pare_dtype_size(tried[i]) <= pare_dtype_size(w->dtype) && is_exact(w, tried[i]))
            return tried[i];
    return w->dtype;
}

void weight_store(void *out, pare_dtype t, const pare_weight *w)
{
    const size_t n = w->rows * w->cols;
    if (t == w->dtype) {
        memcpy(out, w->data, n * pare_dtype_size(t));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const double x = pare_weight_at(w, i);
        if (t == PARE_F16)
            ((uint16_t *)out)[i] = pare_f16_of(x);
        else if (t == PARE_BF16)
            ((uint16_t *)out)[i] = pare_bf16_of(x);
        else if (t == PARE_F32)
            ((float *)out)[i] = (float)x;
        else
            ((double *)out)[i] = x;
    }
}

/* ---- rounding a model ------------------------------------------------------------------------ */

/* Whether rounding to t makes no number infinite. */
static bool fits(const pare_weight *w, pare_dtype t)
{
    for (size_t i = 0; i < w->rows * w->cols; i++)
        if (!isfinite(rounded(pare_weight_at(w, i), t))) return false;
    return true;
}

static pare_status round_weight(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    pare_model *const m = self;
    (void)vector;
    if (!pare_has(w)) return PARE_OK;
    for (size_t i = 0; i < m->ncoded; i++)
        if (strcmp(m->coded[i].name, name) == 0) return PARE_OK;
    pare_dtype t = m->precision;
    if (t == PARE_F64 || (t == PARE_F32 && w->dtype == PARE_F32)) return PARE_OK;
    if (w->dtype == PARE_F32 && is_exact(w, t)) return PARE_OK;
    if (!fits(w, t)) t = PARE_F32;
    if (!fits(w, t) || w->dtype == t) return PARE_OK;
    const size_t n = w->rows * w->cols;
    float *const to = pare_alloc(m->arena, n, sizeof *to);
    if (!to) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) to[i] = (float)rounded(pare_weight_at(w, i), t);
    *w = (pare_weight){PARE_F32, w->rows, w->cols, to};
    return PARE_OK;
}

pare_status pare_model_round(pare_model *m, pare_dtype precision, pare_err *err)
{
    m->precision = precision;
    return pare_model_each_weight(m, round_weight, m, err);
}
