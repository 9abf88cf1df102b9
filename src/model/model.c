/* model.c - making, freeing and copying models, and their widths. */
#include "base/support.h"
#include "model_facts.h"
#include <stdlib.h>
#include <string.h>

pare_status pare_model_new(pare_model **out, pare_err *err)
{
    *out = NULL;
    pare_arena *const a = pare_arena_new();
    pare_model *const m = a ? pare_alloc(a, 1, sizeof *m) : NULL;
    if (!m) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    m->arena = a;
    *out = m;
    return PARE_OK;
}

void pare_model_free(pare_model *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->nblobs; i++) pare_blob_release(m->blobs[i]);
    pare_model_unshare(m);
    pare_arena_free(m->arena); /* m itself lives there */
}

void pare_model_unshare(pare_model *m)
{
    for (size_t i = 0; i < m->nshared; i++) pare_arena_free(m->shared[i]);
    m->nshared = 0;
}

/* From now on m keeps the memory alive that the weights of `in` lie in. */
static pare_status share_arenas(pare_model *m, const pare_model *in, pare_err *err)
{
    m->nshared = 0;
    m->shared = pare_alloc(m->arena, in->nshared + 1, sizeof(pare_arena *));
    if (!m->shared) return pare_no_memory(err);
    for (size_t i = 0; i < in->nshared; i++)
        m->shared[m->nshared++] = pare_arena_retain(in->shared[i]);
    if (in->arena) m->shared[m->nshared++] = pare_arena_retain(in->arena);
    return PARE_OK;
}

pare_status pare_model_keep(pare_model *m, pare_blob *b, pare_err *err)
{
    for (size_t i = 0; i < m->nblobs; i++)
        if (m->blobs[i] == b) return PARE_OK;
    pare_blob **const more = pare_alloc(m->arena, m->nblobs + 1, sizeof(pare_blob *));
    if (!more) return pare_no_memory(err);
    if (m->nblobs) memcpy(more, m->blobs, m->nblobs * sizeof(pare_blob *));
    more[m->nblobs++] = pare_blob_retain(b);
    m->blobs = more;
    return PARE_OK;
}

static void *copy_array(pare_arena *a, const void *from, size_t n, size_t size)
{
    void *const to = pare_alloc(a, n ? n : 1, size);
    if (to && n) memcpy(to, from, n * size);
    return to;
}

pare_status pare_model_clone(pare_model **out, const pare_model *in, pare_err *err)
{
    pare_model *m = NULL;
    pare_status st = pare_model_new(&m, err);
    if (st) return st;
    pare_arena *const a = m->arena;
    *m = *in;
    m->arena = a;
    m->blobs = NULL;
    m->nblobs = 0;
    st = share_arenas(m, in, err);
    m->notes = NULL; /* about the file that `in` came from */
    m->coded = NULL; /* of weights that whoever clones is about to change */
    m->ncoded = 0;
    m->name = in->name ? pare_strdup(a, in->name) : NULL;
    m->blocks = copy_array(a, in->blocks, in->nblocks, sizeof *m->blocks);
    bool ok = m->blocks && (m->name || !in->name);
    for (size_t b = 0; ok && b < m->nblocks; b++) {
        pare_attn *const at = &m->blocks[b].attn;
        pare_ffn *const f = &m->blocks[b].ffn;
        at->heads = copy_array(a, at->heads, at->nheads, sizeof *at->heads);
        f->layers = copy_array(a, f->layers, f->nlayers, sizeof *f->layers);
        ok = at->heads && f->layers;
    }
    if (!st && !ok) st = pare_no_memory(err);
    for (size_t i = 0; !st && i < in->nblobs; i++) st = pare_model_keep(m, in->blobs[i], err);
    if (st) {
        pare_model_free(m);
        m = NULL;
    }
    *out = m;
    return st;
}

size_t pare_model_width(const pare_model *m, size_t b)
{
    size_t d = pare_has(&m->embedding.map.w) ? m->embedding.map.w.rows : m->embedding.width;
    for (size_t i = 0; i < b && i < m->nblocks; i++) {
        if (m->blocks[i].attn.kind != PARE_ATTN_NONE) d = m->blocks[i].attn.dout;
        if (m->blocks[i].ffn.kind != PARE_FFN_NONE) d = m->blocks[i].ffn.dout;
    }
    return d;
}

size_t pare_model_outputs(const pare_model *m)
{
    if (m->head.tied) return m->embedding.vocab;
    if (pare_has(&m->head.out.w)) return m->head.out.w.rows;
    if (pare_has(&m->head.dense.w)) return m->head.dense.w.rows;
    return pare_model_width(m, m->nblocks);
}

bool pare_model_is_rotary(const pare_model *m)
{
    return m->embedding.pos.kind == PARE_POS_ROTARY;
}
