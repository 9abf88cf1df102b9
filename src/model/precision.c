/* precision.c - the precision that weights are stored in (precision.h). */
#include "precision.h"
#include "base/array.h"
#include "base/support.h"
#include <math.h>
#include <string.h>

/* ---- types ----------------------------------------------------------------------------------- */

static const pare_dtype types[] = {PARE_F16, PARE_BF16, PARE_F32, PARE_F64};
enum { F16, BF16, F32, F64, NTYPES };

static bool is_half(pare_dtype t)
{
    return t == PARE_F16 || t == PARE_BF16;
}

void precision_count(precision_counts *c, pare_dtype t, size_t numbers)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i] == t) c->bytes[i] += (double)numbers * (double)pare_dtype_size(t);
}

pare_dtype precision_of(const precision_counts *c)
{
    const bool half = c->bytes[F16] > 0 || c->bytes[BF16] > 0;
    if (half) return c->bytes[F16] >= c->bytes[BF16] ? PARE_F16 : PARE_BF16;
    return c->bytes[F64] > c->bytes[F32] ? PARE_F64 : PARE_F32;
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

/* A quick look at an f32: the fraction of a half precision ends in zeros, and between 2^-14 and 2^16
 * an f16 is normal. */
static bool is_surely_exact(float x, pare_dtype t)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t exponent = bits >> 23 & 0xFF;
    return t == PARE_BF16 ? (bits & 0xFFFF) == 0
                          : (bits & 0x1FFF) == 0 && exponent >= 127 - 14 && exponent < 127 + 16;
}

/* Whether every number is one of type t. */
static bool is_exact(const pare_weight *w, pare_dtype t)
{
    const float *const f = w->dtype == PARE_F32 && is_half(t) ? w->data : NULL;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        if (f && is_surely_exact(f[i], t)) continue;
        const double x = pare_weight_at(w, i);
        if (rounded(x, t) != x) return false;
    }
    return true;
}

pare_dtype weight_stored_dtype(const pare_weight *w, pare_dtype precision)
{
    return w->dtype == PARE_F32 && is_half(precision) && is_exact(w, precision) ? precision
                                                                                : w->dtype;
}

void weight_store(void *out, pare_dtype t, const pare_weight *w)
{
    const size_t n = w->rows * w->cols;
    if (t == w->dtype) {
        memcpy(out, w->data, n * pare_dtype_size(t));
        return;
    }
    PARE_ASSERT(is_half(t));
    for (size_t i = 0; i < n; i++) {
        const double x = pare_weight_at(w, i);
        ((uint16_t *)out)[i] = t == PARE_F16 ? pare_f16_of(x) : pare_bf16_of(x);
    }
}

/* ---- the precision of a model ---------------------------------------------------------------- */

typedef struct stored_bytes {
    const pare_model *m;
    double of[NTYPES];
} stored_bytes;

static pare_status add_bytes(void *self, const char *name, pare_weight *w, bool vector,
                             pare_err *err)
{
    stored_bytes *const s = self;
    (void)name, (void)vector, (void)err;
    if (!pare_has(w)) return PARE_OK;
    const pare_dtype t = weight_stored_dtype(w, s->m->precision);
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i] == t) s->of[i] += (double)(w->rows * w->cols) * (double)pare_dtype_size(t);
    return PARE_OK;
}

pare_dtype pare_model_precision(const pare_model *m)
{
    stored_bytes s = {m, {0}};
    size_t most = F32; /* where there are no weights */
    /* The visitor hands out mutable weights; counting does not touch them. */
    const pare_status st = pare_model_each_weight((pare_model *)m, add_bytes, &s, NULL);
    PARE_ASSERT(st == PARE_OK);
    for (size_t i = 0; i < NTYPES; i++)
        if (s.of[i] > s.of[most]) most = i;
    return types[most];
}

/* ---- rounding a model ------------------------------------------------------------------------ */

/* What the weight of this name is stored in. */
typedef struct type_search {
    const pare_model *m;
    const char *name;
    pare_dtype type;
} type_search;

static pare_status compare_name(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    type_search *const s = self;
    (void)vector, (void)err;
    if (pare_has(w) && strcmp(name, s->name) == 0)
        s->type = weight_stored_dtype(w, s->m->precision);
    return PARE_OK;
}

typedef struct rounding {
    pare_model *m;
    const pare_model *like; /* NULL: all weights to `type` */
    pare_dtype type;        /* of what `like` does not have */
} rounding;

/* Frequencies of rotary positions are computed, not learned, and say where a token is: they stay. */
static bool is_frequencies(const char *name)
{
    const char *const last = strrchr(name, '.');
    return last && strcmp(last, ".freqs") == 0;
}

static pare_status widen(pare_model *m, pare_weight *w, pare_err *err)
{
    const size_t n = w->rows * w->cols;
    if (w->dtype == PARE_F64) return PARE_OK;
    double *const to = pare_alloc(m->arena, n, sizeof *to);
    if (!to) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) to[i] = pare_weight_at(w, i);
    *w = (pare_weight){PARE_F64, w->rows, w->cols, to};
    return PARE_OK;
}

static pare_status round_weight(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    const rounding *const r = self;
    type_search s = {r->like, name, r->type};
    (void)vector;
    if (!pare_has(w) || is_frequencies(name)) return PARE_OK;
    for (size_t i = 0; i < r->m->ncoded; i++)
        if (strcmp(r->m->coded[i].name, name) == 0) return PARE_OK;
    pare_status st = PARE_OK;
    if (r->like) st = pare_model_each_weight((pare_model *)r->like, compare_name, &s, err);
    if (st) return st;
    const size_t n = w->rows * w->cols;
    if (s.type == PARE_F64) return r->like ? PARE_OK : widen(r->m, w, err);
    if (w->dtype == PARE_F32 && is_exact(w, s.type)) return PARE_OK;
    float *const to = pare_alloc(r->m->arena, n, sizeof *to);
    if (!to) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const double x = pare_weight_at(w, i), y = rounded(x, s.type);
        if (isinf(y) && isfinite(x))
            return pare_fail(err, PARE_ERR_INPUT,
                             "tensor %s has %g, beyond the largest %s; choose a wider precision",
                             name, x, pare_dtype_name(s.type));
        to[i] = (float)y;
    }
    *w = (pare_weight){PARE_F32, w->rows, w->cols, to};
    return PARE_OK;
}

pare_status pare_model_round(pare_model *m, const pare_model *like, pare_dtype dtype, pare_err *err)
{
    PARE_ASSERT(dtype || like);
    rounding r = {m, dtype ? NULL : like, dtype ? dtype : pare_model_precision(like)};
    m->precision = dtype ? dtype : like->precision;
    return pare_model_each_weight(m, round_weight, &r, err);
}
