/* A model whose trainable weights lie side by side.
 *
 * Two walks over the same list of weights: the first counts, the second copies and leads the
 * model's pointers into the arrays. What is not trained and is no running figure (the rotary
 * frequencies) is copied as it is, so that the model borrows nothing. */
#include <pare/gradient.h>
#include <math.h>
#include <string.h>

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

/* w as numbers of the type of p at element `at` of `to`; PARE_ERR_NONFINITE where f32 cannot hold
 * one. */
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

static pare_status copy_frozen(pare_params *p, pare_weight *w, pare_err *err)
{
    const size_t n = w->rows * w->cols, size = pare_dtype_size(w->dtype);
    void *const to = pare_alloc(p->arena, n ? n : 1, size);
    if (!to) return pare_no_memory(err);
    memcpy(to, w->data, n * size);
    w->data = to;
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
        return copy_frozen(p, w, err);
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

static pare_status pack(pare_params *p, pare_err *err)
{
    pare_status st = pare_model_visit(p->model, count_one, p, err);
    if (st) return st;
    const size_t size = pare_dtype_size(p->dtype);
    packing k = {.p = p};
    p->slots = pare_alloc(p->arena, p->nslots ? p->nslots : 1, sizeof *p->slots);
    p->values = pare_alloc(p->arena, p->count ? p->count : 1, size);
    p->stats = pare_alloc(p->arena, p->nstats ? p->nstats : 1, size);
    if (!p->slots || !p->values || !p->stats) return pare_no_memory(err);
    return pare_model_visit(p->model, pack_one, &k, err);
}

/* The tokenizer's bytes may lie in the arena of the model that was given. */
static pare_status copy_vocab(pare_params *p, pare_err *err)
{
    pare_model *const m = p->model;
    if (!m->vocab) return PARE_OK;
    uint8_t *const to = pare_alloc(p->arena, m->vocab_bytes ? m->vocab_bytes : 1, 1);
    if (!to) return pare_no_memory(err);
    memcpy(to, m->vocab, m->vocab_bytes);
    m->vocab = to;
    return PARE_OK;
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
    if (!st) st = pack(p, err);
    if (!st) st = copy_vocab(p, err);
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
