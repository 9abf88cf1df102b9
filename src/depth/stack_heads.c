/* stack_heads.c - heads of several layers side by side in one attention. */
#include "linalg/matrix.h"
#include "one_layer.h"
#include <string.h>

static double *alloc_numbers(head_stack *s, size_t rows, size_t cols)
{
    size_t n;
    if (!pare_mul(&n, rows + 1, cols + 1)) pare_work_keep(&s->work, pare_no_memory(s->work.err));
    return pare_work_alloc(&s->work, s->work.st ? 0 : n, sizeof(double));
}

static size_t outputs_of(const pare_attn *at)
{
    const pare_head *const last = &at->heads[at->nheads - 1];
    return pare_has(&at->wo) ? at->wo.cols : last->o + last->dv;
}

void stack_begin(head_stack *s, const pare_model *m)
{
    s->d = pare_model_width(m, 0);
    s->heads_capacity = s->q_capacity = s->k_capacity = 1;
    s->v_capacity = s->o_capacity = s->d; /* of the uniform head */
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const at = &m->blocks[b].attn;
        if (at->kind == PARE_ATTN_NONE) continue;
        s->heads_capacity += at->nheads;
        s->q_capacity += at->wq.rows;
        s->k_capacity += at->wk.rows;
        s->v_capacity += at->wv.rows;
        s->o_capacity += at->nheads ? outputs_of(at) : 0;
    }
    s->heads = pare_work_alloc(&s->work, s->heads_capacity, sizeof *s->heads);
    s->wq = alloc_numbers(s, s->q_capacity, s->d);
    s->wk = alloc_numbers(s, s->k_capacity, s->d);
    s->wv = alloc_numbers(s, s->v_capacity, s->d);
    s->wo = alloc_numbers(s, s->o_capacity, s->d);
    s->bq = alloc_numbers(s, s->q_capacity, 1);
    s->bk = alloc_numbers(s, s->k_capacity, 1);
    s->bv = alloc_numbers(s, s->v_capacity, 1);
}

static void put_weight(double *to, const pare_weight *w)
{
    for (size_t i = 0; pare_has(w) && i < w->rows * w->cols; i++) to[i] = pare_weight_at(w, i);
}

/* Values that several heads share (and so their columns) stay shared: rows of wv and columns of wo
 * are counted apart. */
void stack_attn(head_stack *s, const pare_attn *at, const pare_mat *wo)
{
    if (s->work.st || at->nheads == 0) return;
    const size_t no = s->no, outs = outputs_of(at);
    PARE_ASSERT(s->nheads + at->nheads <= s->heads_capacity && no + outs <= s->o_capacity);
    for (size_t h = 0; h < at->nheads; h++) {
        pare_head *const to = &s->heads[s->nheads + h];
        *to = at->heads[h];
        to->q += s->nq;
        to->k += s->nk;
        to->v += s->nv;
        to->o += no;
    }
    put_weight(s->wq + s->nq * s->d, &at->wq);
    put_weight(s->wk + s->nk * s->d, &at->wk);
    put_weight(s->wv + s->nv * s->d, &at->wv);
    put_weight(s->bq + s->nq, &at->bq);
    put_weight(s->bk + s->nk, &at->bk);
    put_weight(s->bv + s->nv, &at->bv);
    /* columns of wo as rows; heads side by side have those of the identity */
    for (size_t c = 0; c < outs; c++)
        for (size_t i = 0; i < s->d; i++)
            s->wo[(no + c) * s->d + i] = wo ? pare_row(wo, i)[c]
                                         : pare_has(&at->wo)
                                             ? pare_weight_at(&at->wo, i * at->wo.cols + c)
                                             : (double)(i == c);
    s->any_bq |= pare_has(&at->bq);
    s->any_bk |= pare_has(&at->bk);
    s->any_bv |= pare_has(&at->bv);
    s->nheads += at->nheads;
    s->nq += at->wq.rows;
    s->nk += at->wk.rows;
    s->nv += at->wv.rows;
    s->no += outs;
}

void stack_uniform(head_stack *s, const pare_mat *m)
{
    if (s->work.st) return;
    s->heads[s->nheads++] = (pare_head){
        .dk = 1, .dv = s->d, .q = s->nq, .k = s->nk, .v = s->nv, .o = s->no, .scale = 1};
    for (size_t i = 0; i < s->d; i++) {
        for (size_t j = 0; j < s->d; j++) s->wv[(s->nv + i) * s->d + j] = pare_row(m, j)[i];
        s->wo[(s->no + i) * s->d + i] = 1;
    }
    s->nq += 1;
    s->nk += 1;
    s->nv += s->d;
    s->no += s->d;
}

void stack_end(head_stack *s, pare_attn *out, pare_attn_kind kind, const double *bo,
               pare_dtype dtype)
{
    double *const wo = alloc_numbers(s, s->no, s->d);
    *out = (pare_attn){.kind = kind, .din = s->d, .dout = s->d, .nheads = s->nheads};
    out->skip.kind = PARE_SKIP_IDENTITY;
    if (s->work.st) return;
    for (size_t c = 0; c < s->no; c++)
        for (size_t i = 0; i < s->d; i++) wo[i * s->no + c] = s->wo[c * s->d + i];
    out->heads = s->heads;
    const bool constant = kind == PARE_ATTN_CONSTQ;
    if (!constant) out->wq = work_weight(&s->work, s->wq, s->nq, s->d, dtype);
    if (constant || s->any_bq) out->bq = work_weight(&s->work, s->bq, 1, s->nq, dtype);
    out->wk = work_weight(&s->work, s->wk, s->nk, s->d, dtype);
    if (s->any_bk) out->bk = work_weight(&s->work, s->bk, 1, s->nk, dtype);
    out->wv = work_weight(&s->work, s->wv, s->nv, s->d, dtype);
    if (s->any_bv) out->bv = work_weight(&s->work, s->bv, 1, s->nv, dtype);
    out->wo = work_weight(&s->work, wo, s->d, s->no, dtype);
    if (bo) out->bo = work_weight(&s->work, bo, 1, s->d, dtype);
}
