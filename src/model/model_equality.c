/* model_equality.c - are two models, or parts of them, the same in weights and settings? */
#include "model_equality.h"
#include "shared_rows.h"
#include <string.h>

bool pare_same_weight(const pare_weight *a, const pare_weight *b)
{
    if (!pare_has(a) || !pare_has(b)) return pare_has(a) == pare_has(b);
    if (a->dtype != b->dtype || a->rows != b->rows || a->cols != b->cols) return false;
    if (a->data == b->data) return true;
    return memcmp(a->data, b->data, a->rows * a->cols * pare_dtype_size(a->dtype)) == 0;
}

bool pare_same_norm(const pare_norm *a, const pare_norm *b)
{
    if (a->kind == PARE_NORM_NONE && b->kind == PARE_NORM_NONE) return true;
    /* Only what the kind reads. */
    const bool divides = a->kind == PARE_NORM_LAYER || a->kind == PARE_NORM_RMS;
    if (divides && (a->divisor != b->divisor || a->shift != b->shift)) return false;
    return a->kind == b->kind && (a->kind == PARE_NORM_MEAN || a->eps == b->eps) &&
           pare_same_weight(&a->gain, &b->gain) && pare_same_weight(&a->bias, &b->bias) &&
           pare_same_weight(&a->offset, &b->offset) && pare_same_weight(&a->mean, &b->mean) &&
           pare_same_weight(&a->var, &b->var);
}

bool pare_same_skip(const pare_skip *a, const pare_skip *b)
{
    const bool weightless = a->kind == PARE_SKIP_NONE || a->kind == PARE_SKIP_IDENTITY;
    return a->kind == b->kind && (weightless || pare_same_weight(&a->w, &b->w));
}

static bool same_dense(const pare_dense *a, const pare_dense *b)
{
    return pare_same_weight(&a->w, &b->w) && pare_same_weight(&a->b, &b->b);
}

/* Polynomial attention approximates the exact one. */
static pare_attn_kind exact_kind(pare_attn_kind k)
{
    return k == PARE_ATTN_POLY ? PARE_ATTN_EXACT : k;
}

bool pare_same_attn(const pare_attn *a, const pare_attn *b)
{
    if (exact_kind(a->kind) != exact_kind(b->kind)) return false;
    if (a->kind == PARE_ATTN_NONE) return true;
    if (a->din != b->din || a->dout != b->dout || a->nheads != b->nheads) return false;
    for (size_t h = 0; h < a->nheads; h++) {
        const pare_head *const x = &a->heads[h], *const y = &b->heads[h];
        if (x->dk != y->dk || x->dv != y->dv || x->q != y->q || x->k != y->k || x->v != y->v ||
            x->o != y->o || x->scale != y->scale || x->freq != y->freq || x->planes != y->planes)
            return false;
    }
    return pare_same_weight(&a->wq, &b->wq) && pare_same_weight(&a->bq, &b->bq) &&
           pare_same_weight(&a->wk, &b->wk) && pare_same_weight(&a->bk, &b->bk) &&
           pare_same_weight(&a->wv, &b->wv) && pare_same_weight(&a->bv, &b->bv) &&
           pare_same_weight(&a->wo, &b->wo) && pare_same_weight(&a->bo, &b->bo) &&
           pare_same_weight(&a->freqs, &b->freqs) && pare_same_weight(&a->matrix, &b->matrix) &&
           pare_same_weight(&a->mix, &b->mix) && pare_same_norm(&a->in_norm, &b->in_norm) &&
           pare_same_norm(&a->out_norm, &b->out_norm) && pare_same_skip(&a->skip, &b->skip);
}

bool pare_same_ffn(const pare_ffn *a, const pare_ffn *b)
{
    if (a->kind != b->kind) return false;
    if (a->kind == PARE_FFN_NONE) return true;
    if (a->din != b->din || a->dout != b->dout || a->nlayers != b->nlayers || a->act != b->act)
        return false;
    for (size_t l = 0; l < a->nlayers; l++)
        if (!same_dense(&a->layers[l], &b->layers[l])) return false;
    return pare_same_norm(&a->in_norm, &b->in_norm) && pare_same_norm(&a->out_norm, &b->out_norm) &&
           pare_same_skip(&a->skip, &b->skip);
}

bool pare_same_rows(const pare_embedding *a, const pare_embedding *b)
{
    if (!a->rows || !b->rows) return !a->rows && !b->rows;
    return a->vocab == b->vocab && memcmp(a->rows, b->rows, a->vocab * sizeof *a->rows) == 0;
}

const char *pare_model_ends_differ(const pare_model *f, const pare_model *g)
{
    const pare_embedding *const a = &f->embedding, *const b = &g->embedding;
    const pare_pattern *const p = &f->pattern, *const q = &g->pattern;
    const pare_output_head *const s = &f->head, *const t = &g->head;
    if (a->ids != b->ids || a->width != b->width || a->vocab != b->vocab ||
        !pare_same_rows(a, b) || !pare_same_weight(&a->table, &b->table) || a->pos.kind != b->pos.kind ||
        !pare_same_weight(&a->pos.table, &b->pos.table) ||
        (a->pos.kind == PARE_POS_SINUSOIDAL && a->pos.base != b->pos.base) ||
        a->pos.interleaved != b->pos.interleaved || a->pos.after_map != b->pos.after_map ||
        !same_dense(&a->map, &b->map) || !pare_same_norm(&a->norm, &b->norm))
        return "the stems differ";
    if (p->kind != q->kind ||
        (p->kind == PARE_WINDOW && (p->window != q->window || p->sinks != q->sinks)) ||
        (p->kind == PARE_GRAPH &&
         (p->self_loops != q->self_loops || p->expander_degree != q->expander_degree ||
          (p->expander_degree && p->expander_seed != q->expander_seed))))
        return "the patterns differ";
    if (!pare_same_norm(&s->norm, &t->norm) || s->pool != t->pool ||
        !same_dense(&s->dense, &t->dense) || s->act != t->act || s->tied != t->tied ||
        s->normalize != t->normalize || !same_dense(&s->out, &t->out))
        return "the heads of the models differ";
    return NULL;
}
