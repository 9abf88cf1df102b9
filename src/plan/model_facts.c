/* model_facts.c - how large a model file and its parts are (pare/cut.h). */
#include "base/support.h"
#include "model/precision.h"
#include "cert/heldout.h"
#include "reduce.h"

#include <string.h>

pare_status pare_model_facts_of(pare_model_facts *out, const char *path, const pare_model *m,
                                const pare_input *in, pare_arena *scratch, pare_err *err)
{
    *out = (pare_model_facts){.path = path, .tokens = in ? in->tokens : pare_default_tokens(m)};
    uint64_t edges = 0;
    if (in && in->graph) { /* visible pairs, with what the model adds to the graph */
        const pare_mark mark = pare_arena_mark(scratch);
        pare_graph whole = {0};
        const pare_status st = pare_graph_complete(&whole, scratch, in->graph, &m->pattern, err);
        if (!st) edges = whole.ptr[whole.n];
        pare_arena_reset(scratch, mark);
        if (st) return st;
    }
    out->size = pare_model_size(m, out->tokens, edges);
    out->dtype = pare_model_precision(m);
    out->file_bytes = pare_path_bytes(path);
    return PARE_OK;
}

/* ---- widths ---------------------------------------------------------------------------------- */

static void add_width(pare_width_range *r, size_t width)
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
    pare_model_shape *const s = self;
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

void pare_model_shape_of(pare_model_shape *out, const pare_model *m)
{
    *out = (pare_model_shape){0};
    /* The visitor hands out mutable weights; counting does not touch them. */
    const pare_status st = pare_model_each_weight((pare_model *)m, add_weight, out, NULL);
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
