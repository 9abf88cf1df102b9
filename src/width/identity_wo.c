/* Heads without wo are the output as they are. What folding does to a norm behind them is then in
 * their values, where its roundings mix with those of other norms: a proof that counts a fold's
 * roundings folds a model in which the identity stands in wo's place, and finds them there. */
#include "prove.h"

static bool side_by_side(const pare_attn *a)
{
    return pare_attn_has_softmax(a->kind) && !pare_has(&a->wo);
}

pare_status insert_identity_wo(pare_model *m, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b < m->nblocks; b++) {
        pare_attn *const a = &m->blocks[b].attn;
        if (side_by_side(a)) st = pare_weight_identity(&a->wo, m->arena, a->dout, a->wv.dtype, err);
    }
    return st;
}
