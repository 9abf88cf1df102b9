/* Heads without wo are the output as they are. What folding does to a norm behind them is then in
 * their values, where its roundings mix with those of other norms: a proof that counts a fold's
 * roundings folds a model in which the identity stands in wo's place, and finds them there. */
#include "prove.h"

static bool side_by_side(const pare_attn *a)
{
    const bool softmax = a->kind == PARE_ATTN_EXACT || a->kind == PARE_ATTN_POLY ||
                         a->kind == PARE_ATTN_MEANQ || a->kind == PARE_ATTN_CONSTQ;
    return softmax && !pare_has(&a->wo);
}

static pare_status put_identity(pare_model *m, pare_attn *a, pare_err *err)
{
    size_t n;
    const pare_dtype t = a->wv.dtype;
    void *const one =
        pare_mul(&n, a->dout, a->dout) ? pare_alloc(m->arena, n, pare_dtype_size(t)) : NULL;
    if (!one) return pare_no_memory(err);
    for (size_t i = 0; i < a->dout; i++) {
        if (t == PARE_F64)
            ((double *)one)[i * a->dout + i] = 1;
        else
            ((float *)one)[i * a->dout + i] = 1;
    }
    a->wo = (pare_weight){t, a->dout, a->dout, one};
    return PARE_OK;
}

pare_status join_heads(pare_model *m, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b < m->nblocks; b++)
        if (side_by_side(&m->blocks[b].attn)) st = put_identity(m, &m->blocks[b].attn, err);
    return st;
}
