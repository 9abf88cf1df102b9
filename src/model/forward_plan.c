/* forward_plan.c - the steps of a forward pass, and how its rows are cut (forward_plan.h). */
#include "model_facts.h"
#include "forward_plan.h"

enum {
    CHUNK = 4 << 20,        /* numbers a chunk of sequences may hold in its widest buffer */
    SMALL_CHUNK = 1024,     /* rows a chunk of a small model aims at: its buffers suit a cache */
    SMALL_WEIGHT = 1 << 18, /* entries of the largest matrix of a small model: 1 MB */
};

size_t plan_stream_width(const pare_model *m)
{
    size_t w =
        m->embedding.width > pare_model_width(m, 0) ? m->embedding.width : pare_model_width(m, 0);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE && a->dout > w) w = a->dout;
        if (f->kind != PARE_FFN_NONE && f->dout > w) w = f->dout;
    }
    return w;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t entries(const pare_weight *w)
{
    return pare_has(w) ? w->rows * w->cols : 0;
}

/* Entries of the largest matrix that meets every token; the head is looked at by itself. */
static size_t largest_weight(const pare_model *m)
{
    size_t n = entries(&m->embedding.map.w);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        n = larger(n, larger(entries(&a->wq), larger(entries(&a->wk), entries(&a->wv))));
        n = larger(n, larger(entries(&a->wo), larger(entries(&a->matrix), entries(&a->mix))));
        for (size_t l = 0; l < f->nlayers; l++) n = larger(n, entries(&f->layers[l].w));
    }
    return n;
}

/* Adds a step; one that makes a new stream leaves it in the other buffer. */
static void add_step(plan *l, step_kind kind, size_t block, bool by_rows, size_t dout)
{
    const step *const last = l->count ? &l->steps[l->count - 1] : NULL;
    step s = {kind, block, by_rows, 0, dout, dout};
    if (last) {
        const bool moved = last->kind == HEADS_OUT || last->kind == ATTENTION || last->kind == FFN;
        s.side = moved ? !last->side : last->side;
        s.din = last->dout;
    }
    l->steps[l->count++] = s;
}

void plan_new(plan *l, rows_ctx *c, const pare_model *m, pare_dtype t, bool traced)
{
    const bool small = t == PARE_F32 && largest_weight(m) <= SMALL_WEIGHT;
    *l = (plan){.m = m, .small = small, .fused = small && !traced};
    l->steps = rows_scratch(c, 4 * m->nblocks + 3, sizeof *l->steps);
    if (!l->steps) return;
    size_t d = pare_model_width(m, 0);
    add_step(l, EMBEDDING, 0, true, d);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE && attention_has_heads(a)) {
            add_step(l, PROJECT, b, true, d);
            add_step(l, ATTEND, b, false, d);
            add_step(l, HEADS_OUT, b, true, d = a->dout);
        } else if (a->kind != PARE_ATTN_NONE) {
            add_step(l, ATTENTION, b, attention_by_rows(a), d = a->dout);
        }
        if (f->kind != PARE_FFN_NONE) add_step(l, FFN, b, true, d = f->dout);
    }
    add_step(l, HEAD_NORM, 0, true, d);
    const bool small_head = entries(pare_head_weight(m)) <= SMALL_WEIGHT;
    add_step(l, HEAD, 0, m->head.pool == PARE_POOL_NONE && small_head, d);

    /* A stream that changes its width moves rows. Ranges can keep out of one another's way as long
     * as nobody looks at the whole stream: attention looks at the rows of its heads. */
    bool changes = false, whole = false;
    for (size_t i = 0; i < l->count; i++) {
        const step *const s = &l->steps[i];
        changes = changes || s->din != s->dout;
        whole = whole || (!s->by_rows && s->kind != ATTEND);
    }
    l->apart = l->fused && changes && !whole;
    if (changes && !l->apart) l->fused = false;
}

static size_t chunk_rows(const plan *l)
{
    size_t widest = plan_stream_width(l->m);
    for (size_t b = 0; b < l->m->nblocks; b++)
        for (size_t i = 0; i < l->m->blocks[b].ffn.nlayers; i++)
            widest = larger(widest, l->m->blocks[b].ffn.layers[i].w.rows);
    return l->small ? SMALL_CHUNK : CHUNK / larger(widest, 1);
}

size_t *plan_chunks(size_t *chunks, const plan *l, const sequence_layout *s, rows_ctx *c)
{
    size_t *const first = rows_scratch(c, s->n + 1, sizeof *first);
    const size_t most = first ? chunk_rows(l) : 0;
    size_t begin = 0; /* row of the chunk at hand */
    *chunks = 0;
    for (size_t i = 0; first && i < s->n; i++) {
        const size_t end = sequence_start(s, i) + sequence_length(s, i);
        if (i > 0 && end - begin <= most) continue;
        first[(*chunks)++] = i;
        begin = sequence_start(s, i);
    }
    if (first) first[*chunks] = s->n;
    return first;
}

/* The widest of each over the blocks. */
head_rows plan_heads(const pare_model *m)
{
    head_rows h = {0};
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        if (a->kind == PARE_ATTN_NONE || !attention_has_heads(a)) continue;
        const head_rows s = attention_shape(a, PARE_F64, 0);
        h.q.d = larger(h.q.d, s.q.d);
        h.k.d = larger(h.k.d, s.k.d);
        h.v.d = larger(h.v.d, s.v.d);
        h.y.d = larger(h.y.d, s.y.d);
    }
    return h;
}
