/* model_size.c - the size of a model, and the multiplications of one pass. */
#include "linalg/packed.h"
#include "model_facts.h"
#include "precision.h"
#include "shared_rows.h"
#include <string.h>

typedef struct weight_count {
    const pare_model *m;
    pare_dtype precision;
    pare_size *size;
} weight_count;

static pare_status count(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)vector, (void)err;
    const weight_count *const c = self;
    if (!pare_has(w)) return PARE_OK;
    const uint64_t n = (uint64_t)w->rows * w->cols;
    c->size->parameters += n;
    for (size_t i = 0; i < c->m->ncoded; i++)
        if (strcmp(c->m->coded[i].name, name) == 0) {
            c->size->bytes += c->m->coded[i].bytes;
            return PARE_OK;
        }
    for (size_t i = 0; i < c->m->nints; i++)
        if (c->m->ints[i].of == w->data) { /* as it was read */
            c->size->bytes += c->m->ints[i].bytes;
            return PARE_OK;
        }
    if (packed_of(w)) {
        c->size->bytes += packed_of(w)->bytes;
        return PARE_OK;
    }
    c->size->bytes += n * pare_dtype_size(weight_stored_dtype(w, c->precision));
    return PARE_OK;
}

static uint64_t map_macs(const pare_weight *w, uint64_t rows)
{
    return pare_has(w) ? rows * w->rows * w->cols : 0;
}

uint64_t pare_model_macs(const pare_model *m, size_t tokens, uint64_t edges)
{
    const uint64_t t = tokens, out_rows = m->head.pool == PARE_POOL_NONE ? t : 1;
    uint64_t pairs = edges; /* that see each other */
    for (size_t i = 0; !edges && m->pattern.kind != PARE_GRAPH && i < tokens; i++)
        pairs += pare_visible(&m->pattern, NULL, tokens, i).count;
    uint64_t macs = map_macs(&m->embedding.map.w, t) + map_macs(&m->head.dense.w, out_rows);
    macs += map_macs(m->head.tied ? &m->embedding.table : &m->head.out.w, out_rows);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE) {
            const pare_weight *const maps[] = {&a->wq, &a->wk, &a->wv, &a->wo, &a->matrix, &a->mix};
            const uint64_t each = pare_attn_is_softmax(a->kind) ? pairs : t;
            for (size_t i = 0; i < 6; i++) macs += map_macs(maps[i], t);
            for (size_t h = 0; h < a->nheads; h++) macs += each * (a->heads[h].dk + a->heads[h].dv);
            if (a->skip.kind == PARE_SKIP_DENSE) macs += map_macs(&a->skip.w, t);
        }
        if (f->kind == PARE_FFN_NONE) continue;
        if (f->skip.kind == PARE_SKIP_DENSE) macs += map_macs(&f->skip.w, t);
        for (size_t l = 0; l < f->nlayers; l++) macs += map_macs(&f->layers[l].w, t);
    }
    return macs;
}

pare_size pare_model_size(const pare_model *m, size_t tokens, uint64_t edges)
{
    pare_size s = {.macs = pare_model_macs(m, tokens, edges)};
    weight_count counted = {m, m->precision, &s};
    /* The visitor hands out mutable weights; counting does not touch them. */
    const pare_status st = pare_model_each_weight((pare_model *)m, count, &counted, NULL);
    PARE_ASSERT(st == PARE_OK);
    if (m->embedding.rows) s.bytes += pare_shared_bytes(&m->embedding);
    return s;
}
