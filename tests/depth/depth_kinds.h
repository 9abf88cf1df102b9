/* depth_kinds.h - models of every kind with other attention put in the place of their own, and with
 * the norms that divide made affine. */
#ifndef TEST_DEPTH_KINDS_H
#define TEST_DEPTH_KINDS_H
#include "depth_nets.h"
#include <enclose_models.h>

static inline void forget_queries(maker *k, pare_attn *at)
{
    at->kind = PARE_ATTN_CONSTQ;
    at->wq = (pare_weight){0};
    at->bq = weight(k, 1, at->heads[at->nheads - 1].q + at->heads[at->nheads - 1].dk, 0, 1);
}

static inline void become_linear(maker *k, pare_attn *at)
{
    const pare_attn old = *at;
    *at = (pare_attn){.kind = PARE_ATTN_LINEAR, .din = old.din, .dout = old.dout, .bo = old.bo};
    at->in_norm = old.in_norm, at->out_norm = old.out_norm, at->skip = old.skip;
    at->matrix = matrix(k, at->dout, at->din);
}

static inline void become_zero(pare_attn *at)
{
    const pare_attn old = *at;
    *at = (pare_attn){.kind = PARE_ATTN_ZERO, .din = old.din, .dout = old.dout, .bo = old.bo};
    at->in_norm = old.in_norm, at->out_norm = old.out_norm, at->skip = old.skip;
}

static inline bool has_heads(const pare_attn *at)
{
    return at->nheads > 0 && at->kind != PARE_ATTN_POOL;
}

/* Another attention in the place of some. */
static inline void replace(maker *k, pare_attn *at)
{
    if (at->kind == PARE_ATTN_NONE) return;
    switch (pick(k, 9)) {
    case 0:
        become_zero(at);
        break;
    case 1:
    case 2:
        if (has_heads(at)) make_uniform(k->m, at);
        break;
    case 3:
        become_linear(k, at);
        break;
    case 4:
        if (has_heads(at) && !pare_model_is_rotary(k->m)) forget_queries(k, at);
        break;
    case 5: /* other queries */
        if (has_heads(at) && pare_has(&at->wq)) at->wq = matrix(k, at->wq.rows, at->wq.cols);
        break;
    case 6: /* other values */
        if (has_heads(at)) at->wv = matrix(k, at->wv.rows, at->wv.cols);
        break;
    case 7:
        if (has_heads(at) && pare_has(&at->wq) && k->m->pattern.kind == PARE_FULL)
            at->kind = at->kind == PARE_ATTN_MEANQ ? PARE_ATTN_EXACT : PARE_ATTN_MEANQ;
        break;
    default:
        break; /* stays */
    }
}

static inline void soften(pare_norm *n)
{
    if (n->kind == PARE_NORM_LAYER) n->kind = PARE_NORM_MEAN;
    if (n->kind == PARE_NORM_RMS) *n = (pare_norm){0};
}

static inline void soften_all(pare_model *m)
{
    soften(&m->embedding.norm);
    soften(&m->head.norm);
    for (size_t b = 0; b < m->nblocks; b++) {
        soften(&m->blocks[b].attn.in_norm);
        soften(&m->blocks[b].attn.out_norm);
        soften(&m->blocks[b].ffn.in_norm);
        soften(&m->blocks[b].ffn.out_norm);
    }
}
#endif
