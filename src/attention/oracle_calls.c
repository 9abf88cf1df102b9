/* oracle_calls.c - qkv and partial calls in one form. */
#include "oracle_calls.h"

pare_call_partial oracle_partial_of(const pare_call *c)
{
    if (c->kind == PARE_CALL_PARTIAL) return c->u.p;
    const pare_call_qkv *const a = &c->u.a;
    return (pare_call_partial){.q = a->q,
                               .k = a->k,
                               .v = a->v,
                               .ldq = a->dk,
                               .ldk = a->dk,
                               .ldv = a->dv,
                               .nq = a->n,
                               .nk = a->n,
                               .dk = a->dk,
                               .dv = a->dv,
                               .vis0 = a->causal ? 1 : PARE_VIS_ALL,
                               .acc = a->y,
                               .ldacc = a->dv};
}

size_t oracle_visible_keys(const pare_call_partial *p, size_t i)
{
    if (p->vis0 >= (int64_t)p->nk) return p->nk;
    const int64_t n = p->vis0 + (int64_t)i;
    return n <= 0 ? 0 : n < (int64_t)p->nk ? (size_t)n : p->nk;
}
