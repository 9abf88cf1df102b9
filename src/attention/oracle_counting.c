/* oracle_counting.c - an oracle that forwards everything and counts it: a plan predicts these
 * counts. */
#include <pare/attention.h>
#include <stdlib.h>

typedef struct counting {
    pare_oracle inner;
    pare_oracle_count *count;
    uint64_t bytes; /* of one number */
} counting;

static void caps(void *self, pare_oracle_caps *out)
{
    const counting *const o = self;
    o->inner.ops->caps(o->inner.self, out);
}

static void count_head(const counting *o, uint64_t nq, uint64_t nk, uint64_t dk, uint64_t dv,
                       int64_t vis0, uint64_t extra_out)
{
    pare_oracle_count *const c = o->count;
    uint64_t pairs = 0; /* visible pairs (query, key) */
    for (uint64_t p = 0; vis0 < (int64_t)nk && p < nq; p++) {
        const int64_t n = vis0 + (int64_t)p;
        pairs += n <= 0 ? 0 : (uint64_t)n < nk ? (uint64_t)n : nk;
    }
    if (vis0 >= (int64_t)nk) pairs = nq * nk;
    c->flops += pairs * (2 * (dk + dv) + 5);
    c->bytes_in += o->bytes * (nq * dk + nk * (dk + dv));
    c->bytes_out += o->bytes * nq * (dv + extra_out);
    if (nq > c->max_len) c->max_len = nq;
    if (nk > c->max_len) c->max_len = nk;
}

static void count_call(const counting *o, const pare_call *call)
{
    const pare_call_partial *const p = &call->u.p;
    const pare_call_qkv *const a = &call->u.a;
    const pare_call_strict *const s = &call->u.s;
    o->count->calls++;
    switch (call->kind) {
    case PARE_CALL_PARTIAL:
        count_head(o, p->nq, p->nk, p->dk, p->dv, p->vis0, 2);
        break;
    case PARE_CALL_QKV:
        count_head(o, a->n, a->n, a->dk, (uint64_t)a->dv + a->dv2, a->causal ? 1 : PARE_VIS_ALL, 0);
        break;
    case PARE_CALL_STRICT: /* only the backend knows its flops */
        o->count->bytes_in += o->bytes * s->n * s->din;
        o->count->bytes_out += o->bytes * s->n * s->dout;
        if (s->n > o->count->max_len) o->count->max_len = s->n;
        break;
    }
}

static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    const counting *const o = self;
    const pare_status st = o->inner.ops->evaluate(o->inner.self, calls, n, err);
    for (size_t i = 0; !st && i < n; i++) count_call(o, &calls[i]);
    return st;
}

static pare_status barrier(void *self, pare_err *err)
{
    const counting *const o = self;
    o->count->rounds++;
    return o->inner.ops->barrier(o->inner.self, err);
}

static void destroy(void *self)
{
    counting *const o = self;
    pare_oracle_free(&o->inner);
    free(o);
}

pare_status pare_oracle_counting(pare_oracle *out, pare_oracle inner, pare_oracle_count *count,
                                 pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, destroy};
    counting *const o = malloc(sizeof *o);
    if (!o) {
        pare_oracle_free(&inner);
        return pare_no_memory(err);
    }
    pare_oracle_caps c;
    inner.ops->caps(inner.self, &c);
    *o = (counting){inner, count, pare_dtype_size(c.dtype)};
    out->ops = &ops;
    out->self = o;
    return PARE_OK;
}

void pare_oracle_free(pare_oracle *o)
{
    if (o->ops) o->ops->destroy(o->self);
    *o = (pare_oracle){0};
}
