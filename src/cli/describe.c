/* describe.c - the parts of a model in words, for pare info and pare probe (describe.h). */
#include "describe.h"

#include <stdarg.h>
#include <string.h>

typedef struct text {
    char *buf;
    size_t at;
} text;

static void append(text *t, const char *fmt, ...) PARE_PRINTF(2, 3);
static void append(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(t->buf + t->at, DESCRIBE_BYTES - t->at, fmt, args);
    va_end(args);
    t->at += n > 0 ? (size_t)n : 0;
    if (t->at >= DESCRIBE_BYTES) t->at = DESCRIBE_BYTES - 1; /* cut off */
}

/* ---- blocks -------------------------------------------------------------------------------- */

size_t describe_kv_heads(const pare_attn *a)
{
    size_t distinct = 0;
    for (size_t h = 0; h < a->nheads; h++) {
        bool seen = false;
        for (size_t i = 0; i < h && !seen; i++) seen = a->heads[i].k == a->heads[h].k;
        distinct += !seen;
    }
    return distinct;
}

/* "pre layer norm" when both sublayers agree, else each one's. */
static void append_norm(text *t, const char *where, const pare_block *b, const pare_norm *attn,
                        const pare_norm *ffn)
{
    const pare_norm_kind a = b->attn.kind == PARE_ATTN_NONE ? ffn->kind : attn->kind;
    const pare_norm_kind f = b->ffn.kind == PARE_FFN_NONE ? a : ffn->kind;
    if (a == PARE_NORM_NONE && f == PARE_NORM_NONE) return;
    if (a == f)
        append(t, ", %s %s norm", where, pare_norm_name(a));
    else
        append(t, ", %s norm %s then %s", where, pare_norm_name(a), pare_norm_name(f));
}

void describe_block(char buf[DESCRIBE_BYTES], const pare_block *b)
{
    text t = {buf, 0};
    const pare_attn *const a = &b->attn;
    const pare_ffn *const f = &b->ffn;
    if (a->kind == PARE_ATTN_NONE)
        append(&t, "no attention");
    else if (a->kind == PARE_ATTN_EXACT)
        append(&t, "attention");
    else
        append(&t, "%s attention", pare_attn_name(a->kind));
    if (a->kind != PARE_ATTN_NONE && a->nheads) {
        size_t dk[2] = {a->heads[0].dk, a->heads[0].dk}, dv[2] = {a->heads[0].dv, a->heads[0].dv};
        for (size_t h = 1; h < a->nheads; h++) {
            const pare_head *x = &a->heads[h];
            if (x->dk < dk[0]) dk[0] = x->dk;
            if (x->dk > dk[1]) dk[1] = x->dk;
            if (x->dv < dv[0]) dv[0] = x->dv;
            if (x->dv > dv[1]) dv[1] = x->dv;
        }
        append(&t, " %zu %s of %zu", a->nheads, a->nheads == 1 ? "head" : "heads", dk[0]);
        if (dk[1] != dk[0]) append(&t, " to %zu", dk[1]);
        if (dv[0] != dk[0] || dv[1] != dk[1]) {
            append(&t, " (values %zu", dv[0]);
            if (dv[1] != dv[0]) append(&t, " to %zu", dv[1]);
            append(&t, ")");
        }
        const size_t kv = describe_kv_heads(a);
        if (kv != a->nheads) append(&t, " sharing %zu keys and values", kv);
    }
    if (a->kind != PARE_ATTN_NONE && a->skip.kind != PARE_SKIP_IDENTITY)
        append(&t, " (skip %s)", pare_skip_name(a->skip.kind));
    if (f->kind == PARE_FFN_NONE) {
        append(&t, ", no MLP");
    } else if (f->kind == PARE_FFN_GATED) {
        append(&t, ", gated %zu-%zu-%zu", f->din, f->layers[0].w.rows, f->dout);
    } else {
        append(&t, ", %s %zu", f->nlayers == 1 ? "linear" : "MLP", f->din);
        for (size_t l = 0; l < f->nlayers; l++) append(&t, "-%zu", f->layers[l].w.rows);
    }
    if (f->kind == PARE_FFN_GATED || (f->kind != PARE_FFN_NONE && f->nlayers > 1))
        append(&t, " %s", pare_act_name(f->act));
    if (f->kind != PARE_FFN_NONE && f->skip.kind != PARE_SKIP_IDENTITY)
        append(&t, " (skip %s)", pare_skip_name(f->skip.kind));
    const size_t before = t.at;
    append_norm(&t, "pre", b, &b->attn.in_norm, &b->ffn.in_norm);
    append_norm(&t, "post", b, &b->attn.out_norm, &b->ffn.out_norm);
    if (t.at == before) append(&t, ", no norm");
}

/* ---- ends ---------------------------------------------------------------------------------- */

void describe_input(char buf[DESCRIBE_BYTES], const pare_model *m)
{
    text t = {buf, 0};
    const pare_embedding *s = &m->embedding;
    if (s->ids)
        append(&t, "token ids below %zu, embedding of %zu numbers", s->vocab, s->width);
    else
        append(&t, "vectors of %zu numbers", s->width);
    if (s->rows) append(&t, ", %zu tokens share a row", s->vocab + 1 - s->table.rows);
    if (pare_has(&s->map.w)) append(&t, ", map %zu-%zu", s->map.w.cols, s->map.w.rows);
    if (s->norm.kind != PARE_NORM_NONE) append(&t, ", %s norm", pare_norm_name(s->norm.kind));
}

void describe_positions(char buf[DESCRIBE_BYTES], const pare_model *m)
{
    text t = {buf, 0};
    const pare_positions *p = &m->embedding.pos;
    append(&t, "%s", pare_position_name(p->kind));
    if (p->kind == PARE_POS_SINUSOIDAL) append(&t, ", base %g", p->base);
    if (p->kind == PARE_POS_ROTARY) {
        append(&t, ", %s", p->interleaved ? "interleaved" : "half-split");
        for (size_t b = 0; b < m->nblocks; b++) {
            const pare_attn *a = &m->blocks[b].attn;
            if (a->nheads == 0) continue;
            append(&t, ", %zu of %zu dimensions", 2 * a->heads[0].planes, a->heads[0].dk);
            break;
        }
    }
}

void describe_pattern(char buf[DESCRIBE_BYTES], const pare_model *m)
{
    text t = {buf, 0};
    const pare_pattern *p = &m->pattern;
    append(&t, "%s", pare_pattern_name(p->kind));
    if (p->kind == PARE_WINDOW) append(&t, " of %zu, %zu sinks", p->window, p->sinks);
    if (p->kind != PARE_GRAPH) return;
    append(&t, p->self_loops ? ", self loops" : ", no self loops");
    if (p->expander_degree)
        append(&t, ", expander of degree %zu (seed %llu)", p->expander_degree,
               (unsigned long long)p->expander_seed);
}

void describe_head(char buf[DESCRIBE_BYTES], const pare_model *m)
{
    text t = {buf, 0};
    const pare_output_head *h = &m->head;
    if (h->norm.kind != PARE_NORM_NONE) append(&t, "%s norm, ", pare_norm_name(h->norm.kind));
    if (h->pool != PARE_POOL_NONE) append(&t, "pooled (%s), ", pare_pool_name(h->pool));
    if (pare_has(&h->dense.w)) append(&t, "dense %zu-%zu ", h->dense.w.cols, h->dense.w.rows);
    if (pare_has(&h->dense.w) || h->act != PARE_ACT_NONE) append(&t, "%s, ", pare_act_name(h->act));
    append(&t, "%zu outputs%s%s", pare_model_outputs(m),
           h->pool == PARE_POOL_NONE ? " per token" : "", h->tied ? ", tied to the embedding" : "");
    if (h->normalize) append(&t, ", normalized to length 1");
}

const char *describe_task(const pare_model *m)
{
    if (m->pattern.kind == PARE_GRAPH) return "graph transformer";
    if (m->head.pool != PARE_POOL_NONE)
        return m->embedding.ids ? "encoder of texts, one output per text"
                                : "encoder of sequences, one output per sequence";
    if (m->pattern.kind == PARE_FULL) return "encoder, one output per token";
    return m->embedding.ids ? "language model" : "causal encoder, one output per token";
}

void describe_kind(char buf[DESCRIBE_BYTES], const pare_model *m)
{
    char in[DESCRIBE_BYTES], out[DESCRIBE_BYTES], pattern[DESCRIBE_BYTES];
    text t = {buf, 0};
    describe_input(in, m);
    describe_head(out, m);
    describe_pattern(pattern, m);
    append(&t, "%s: %s; attention %s; positions %s; %s", describe_task(m), in, pattern,
           pare_position_name(m->embedding.pos.kind), out);
}

/* ---- file ---------------------------------------------------------------------------------- */

const char *describe_format(pare_files *files, const char *path)
{
    bool folder = false;
    pare_blob *b = NULL;
    if (pare_files_is_dir(files, &folder, path, NULL)) return "unknown";
    if (folder) return "folder, imported";
    if (pare_files_read(files, &b, path, NULL)) return "unknown";
    const char *kind = "llama2.c .bin, imported";
    if (b->bytes > 4 && memcmp(b->data, "PK\3\4", 4) == 0) {
        kind = "npz, imported";
    } else if (b->bytes > 9 && b->data[8] == '{') {
        uint64_t header = 0;
        for (size_t i = 8; i-- > 0;) header = header << 8 | b->data[i];
        if (header > b->bytes - 8) header = b->bytes - 8;
        const bool ours = memmem(b->data + 8, (size_t)header, "\"pare\":", 7) != NULL;
        kind = ours ? "pare file" : "safetensors, imported";
    }
    pare_blob_release(b);
    return kind;
}
