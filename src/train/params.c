/* params.c - a model whose trainable weights lie side by side, and plain deep copies.
 *
 * Two walks over the same list of weights: the first counts, the second copies and points the model
 * into the arrays. What is neither trained nor a running statistic (the rotary frequencies) is
 * copied as it is, so that the model borrows nothing. */
#include "base/support.h"
#include "model/model_facts.h"
#include <pare/train.h>
#include "params.h"
#include <math.h>
#include <string.h>

/* ---- copies ----------------------------------------------------------------------------------- */

static const void *copy_bytes(pare_arena *a, const void *from, size_t n, size_t size)
{
    void *const to = pare_alloc(a, n ? n : 1, size);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

static pare_status copy_weight(pare_arena *a, pare_weight *w, pare_err *err)
{
    w->data = copy_bytes(a, w->data, w->rows * w->cols, pare_dtype_size(w->dtype));
    return w->data ? PARE_OK : pare_no_memory(err);
}

/* The tokenizer's bytes and the rows of tokens may lie in the arena of the model that was copied. */
static pare_status copy_vocab(pare_arena *a, pare_model *m, pare_err *err)
{
    pare_embedding *const s = &m->embedding;
    const bool vocab = m->vocab, rows = s->rows;
    if (vocab) m->vocab = copy_bytes(a, m->vocab, m->vocab_bytes, 1);
    if (rows) s->rows = copy_bytes(a, s->rows, s->vocab, sizeof *s->rows);
    return vocab == (m->vocab != NULL) && rows == (s->rows != NULL) ? PARE_OK : pare_no_memory(err);
}

static pare_status copy_one(void *self, const char *name, pare_weight *w, bool vector,
                            pare_err *err)
{
    (void)name, (void)vector;
    return pare_has(w) ? copy_weight(self, w, err) : PARE_OK;
}

pare_status model_deep_copy(pare_model **out, const pare_model *m, pare_err *err)
{
    pare_model *copy = NULL;
    *out = NULL;
    pare_status st = pare_model_clone(&copy, m, err);
    if (st) return st;
    st = pare_model_each_weight(copy, copy_one, copy->arena, err);
    if (!st) st = copy_vocab(copy->arena, copy, err);
    if (!st) pare_model_unshare(copy); /* nothing of m is left in it */
    if (st)
        pare_model_free(copy);
    else
        *out = copy;
    return st;
}

/* ---- parameters side by side ------------------------------------------------------------------- */

typedef struct packing {
    pare_params *p;
    size_t slots, values, stats; /* filled so far */
} packing;

typedef enum part { VALUE, STAT, FROZEN } part;

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), e = strlen(end);
    return n >= e && strcmp(name + n - e, end) == 0;
}

/* Only batch norms have a mean and a variance. */
static part part_of(const char *name)
{
    if (ends_with(name, "norm.mean") || ends_with(name, "norm.var")) return STAT;
    return ends_with(name, ".freqs") ? FROZEN : VALUE;
}

static pare_status count_one(void *self, const char *name, pare_weight *w, bool vector,
                             pare_err *err)
{
    pare_params *const p = self;
    const part k = part_of(name);
    size_t n;
    (void)vector;
    if (!pare_has(w) || k == FROZEN) return PARE_OK;
    if (!pare_mul(&n, w->rows, w->cols) ||
        !pare_add(k == STAT ? &p->nstats : &p->count, n, k == STAT ? p->nstats : p->count))
        return pare_no_memory(err);
    p->nslots += k == VALUE;
    return PARE_OK;
}

/* Converts w to the type of p, from element `at` of `to` on; PARE_ERR_NONFINITE where f32 cannot
 * hold a number. */
static pare_status copy_numbers(pare_params *p, void *to, size_t at, const char *name,
                                pare_weight *w, pare_err *err)
{
    char *const place = (char *)to + at * pare_dtype_size(p->dtype);
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        const double v = pare_weight_at(w, i);
        if (p->dtype == PARE_F64)
            ((double *)(void *)place)[i] = v;
        else
            ((float *)(void *)place)[i] = (float)v;
        if (!isfinite(p->dtype == PARE_F64 ? v : (double)(float)v))
            return pare_fail(err, PARE_ERR_NONFINITE, "tensor %s holds %g at [%zu, %zu]", name, v,
                             i / w->cols, i % w->cols);
    }
    w->dtype = p->dtype;
    w->data = place;
    return PARE_OK;
}

static pare_status pack_one(void *self, const char *name, pare_weight *w, bool vector,
                            pare_err *err)
{
    packing *const k = self;
    pare_params *const p = k->p;
    const size_t n = w->rows * w->cols;
    if (!pare_has(w)) return PARE_OK;
    switch (part_of(name)) {
    case FROZEN:
        return copy_weight(p->arena, w, err);
    case STAT:
        k->stats += n;
        return copy_numbers(p, p->stats, k->stats - n, name, w, err);
    case VALUE:
        break;
    }
    pare_slot *const s = &p->slots[k->slots++];
    *s = (pare_slot){pare_strdup(p->arena, name), k->values, w->rows, w->cols, vector};
    if (!s->name) return pare_no_memory(err);
    k->values += n;
    return copy_numbers(p, p->values, s->offset, name, w, err);
}

pare_status pare_params_new(pare_params **out, const pare_model *m, pare_dtype dtype, pare_err *err)
{
    PARE_ASSERT(dtype == PARE_F32 || dtype == PARE_F64);
    *out = NULL;
    pare_arena *const a = pare_arena_new();
    pare_params *const p = a ? pare_alloc(a, 1, sizeof *p) : NULL;
    if (!p) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    p->arena = a;
    p->dtype = dtype;
    pare_status st = pare_model_clone(&p->model, m, err);
    if (!st) st = pare_model_each_weight(p->model, count_one, p, err);
    if (!st) {
        const size_t size = pare_dtype_size(dtype);
        packing k = {.p = p};
        p->slots = pare_alloc(a, p->nslots ? p->nslots : 1, sizeof *p->slots);
        p->values = pare_alloc(a, p->count ? p->count : 1, size);
        p->stats = pare_alloc(a, p->nstats ? p->nstats : 1, size);
        st = p->slots && p->values && p->stats ? pare_model_each_weight(p->model, pack_one, &k, err)
                                               : pare_no_memory(err);
    }
    if (!st) st = copy_vocab(a, p->model, err);
    if (st)
        pare_params_free(p);
    else
        *out = p;
    return st;
}

void pare_params_free(pare_params *p)
{
    if (!p) return;
    pare_model_free(p->model);
    pare_arena_free(p->arena); /* p itself lives there */
}
