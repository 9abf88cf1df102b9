/* cut_shape.c - how large the parts of a model are (cut_shape.h). */
#include "cut_shape.h"

#include <string.h>

static void add_width(width_range *r, size_t width)
{
    if (r->n == 0 || width < r->least) r->least = width;
    if (r->n == 0 || width > r->most) r->most = width;
    r->sum += width;
    r->n++;
}

/* Parameters by the name of the part they belong to: "blocks.3.attn.wq". */
static pare_status add_weight(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    cut_shape *const s = self;
    const uint64_t n = pare_has(w) ? (uint64_t)w->rows * w->cols : 0;
    (void)vector;
    (void)err;
    if (strstr(name, ".attn."))
        s->attention += n;
    else if (strstr(name, ".ffn."))
        s->ffn += n;
    else
        s->rest += n;
    return PARE_OK;
}

void cut_shape_of(cut_shape *out, const pare_model *m)
{
    *out = (cut_shape){0};
    /* The visitor hands out mutable weights; counting does not touch them. */
    const pare_status st = pare_model_visit((pare_model *)m, add_weight, out, NULL);
    PARE_ASSERT(st == PARE_OK);
    for (size_t b = 0; b <= m->nblocks; b++) add_width(&out->stream, pare_model_width(m, b));
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        out->exact += a->kind == PARE_ATTN_EXACT;
        out->replaced += a->kind != PARE_ATTN_EXACT && a->kind != PARE_ATTN_NONE;
        /* What stands in the place of attention may have heads of another meaning. */
        const bool softmax = a->kind == PARE_ATTN_EXACT || a->kind == PARE_ATTN_POLY;
        for (size_t h = 0; softmax && h < a->nheads; h++) {
            add_width(&out->qk, a->heads[h].dk);
            add_width(&out->values, a->heads[h].dv);
        }
        /* The last map of a feed-forward layer leads back into the stream. */
        for (size_t l = 0; l + 1 < f->nlayers; l++)
            if (f->kind == PARE_FFN_MLP || l == 0) add_width(&out->hidden, f->layers[l].w.rows);
    }
}

const char *cut_range_words(char buf[48], const width_range *r)
{
    if (r->least == r->most)
        snprintf(buf, 48, "%zu", r->most);
    else
        snprintf(buf, 48, "%zu to %zu", r->least, r->most);
    return buf;
}
