/* recognize_collapse.c - which one-layer collapse of f a model g may be. Kinds, numbers of heads
 * and the first keys and values decide; the distance of all other numbers is part of the bound. */
#include "one_layer.h"
#include "theorem2_parallel.h"
#include "attention/attend.h"
#include "model/model_equality.h"
#include <pare/depth.h>

/* The queries of the last head are zero. */
static bool last_is_uniform(const pare_attn *at)
{
    const pare_head *const h = at->nheads ? &at->heads[at->nheads - 1] : NULL;
    if (!h) return false;
    for (size_t i = h->q * at->wq.cols; pare_has(&at->wq) && i < (h->q + h->dk) * at->wq.cols; i++)
        if (pare_weight_at(&at->wq, i) != 0) return false;
    for (size_t j = 0; pare_has(&at->bq) && j < h->dk; j++)
        if (pare_weight_at(&at->bq, h->q + j) != 0) return false;
    return true;
}

/* The first rows of w are all of `first`. */
static bool begins_with(const pare_weight *w, const pare_weight *first)
{
    if (!pare_has(w) || !pare_has(first) || w->cols != first->cols || w->rows < first->rows)
        return false;
    for (size_t i = 0; i < first->rows * first->cols; i++)
        if (pare_weight_at(w, i) != pare_weight_at(first, i)) return false;
    return true;
}

static bool begins_as(const pare_attn *at, const pare_attn *first)
{
    return begins_with(&at->wk, &first->wk) && begins_with(&at->wv, &first->wv);
}

bool collapse_fits(const pare_model *f, const pare_model *g, pare_collapse kind, size_t keep)
{
    if (g->nblocks != 1 || impure_model(NULL, f) || (!pare_collapse_keeps(kind) && keep > 0))
        return false;
    const pare_attn *const at = &g->blocks[0].attn;
    const pare_attn *const kept = &f->blocks[keep].attn, *first = NULL;
    const size_t d = pare_model_width(f, 0);
    size_t all = 0; /* heads of f */
    for (size_t b = 0; b < f->nblocks; b++) {
        if (f->blocks[b].attn.kind == PARE_ATTN_NONE) continue;
        if (!first) first = &f->blocks[b].attn;
        all += f->blocks[b].attn.nheads;
    }
    if (!first) first = &f->blocks[0].attn;
    const size_t own = kept->kind == PARE_ATTN_NONE ? 0 : kept->nheads;
    const bool heads = pare_attn_is_softmax(at->kind);
    if (pare_model_width(g, 0) != d || pare_model_width(g, 1) != d ||
        g->blocks[0].ffn.kind != PARE_FFN_NONE || at->in_norm.kind != PARE_NORM_NONE ||
        at->out_norm.kind != PARE_NORM_NONE || (heads && impure_block(&g->blocks[0], d)))
        return false;
    if (needs_full_attention(kind) && f->pattern.kind != PARE_FULL) return false;
    /* A row that sees nothing does not move with the others. */
    if ((kind == PARE_ONE_UMIX || kind == PARE_ONE_PARALLEL) && !pare_never_empty(&f->pattern))
        return false;
    if (kind == PARE_ONE_RANKONE && at->skip.kind != PARE_SKIP_IDENTITY) return false;
    switch (kind) {
    case PARE_ONE_IDENTITY:
        return at->kind == PARE_ATTN_ZERO || at->kind == PARE_ATTN_CONST ||
               at->kind == PARE_ATTN_NONE;
    case PARE_ONE_KEEP:
    case PARE_ONE_KEEPBIAS:
        return heads && own > 0 && at->nheads == own && begins_as(at, kept) &&
               (kind == PARE_ONE_KEEP) ==
                   (pare_same_weight(&kept->bq, &at->bq) && pare_same_weight(&kept->bo, &at->bo));
    case PARE_ONE_PARALLEL:
        return heads && at->nheads == all && f->nblocks > 1 && begins_as(at, first);
    case PARE_ONE_UNIFORM:
        return at->kind == PARE_ATTN_UNIFORM;
    case PARE_ONE_UNIFORM_KEEP:
        return heads && at->nheads == own + 1 && last_is_uniform(at) && begins_as(at, kept);
    case PARE_ONE_PARALLEL_UNIFORM:
        return heads && at->nheads == all + 1 && last_is_uniform(at) && begins_as(at, first);
    case PARE_ONE_RANKONE:
        return at->kind == PARE_ATTN_CONSTQ && at->nheads == all;
    case PARE_ONE_UMIX:
        return at->kind == PARE_ATTN_UMIX;
    case PARE_ONES:
        break;
    }
    return false;
}
