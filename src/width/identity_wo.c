/* identity_wo.c - the identity as the output projection of heads that have none.
 *
 * Without Wo the values of the heads are the output. Folding a norm behind them then changes the
 * values, where its roundings mix with those of other norms. A proof that counts the roundings of a
 * fold uses a model with Wo = I instead, and finds them in Wo. */
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "prove.h"

pare_status insert_identity_wo(pare_model *m, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b < m->nblocks; b++) {
        pare_attn *const a = &m->blocks[b].attn;
        if (pare_attn_has_softmax(a->kind) && !pare_has(&a->wo))
            st = pare_weight_identity(&a->wo, m->arena, a->dout, a->wv.dtype, err);
    }
    return st;
}
