/* oracle_faulty.c - an oracle that fails at chosen calls: a backend that is down, loses a round or
 * computes wrong numbers. Its numbers are changed at the barrier, since they need not be there
 * before. */
#include "oracle_wrappers.h"
#include "attention/oracle_calls.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A fault whose call was made, and the last row of its output. */
typedef struct pending_fault {
    const pare_fault *fault;
    char *row;
    void *before; /* PARE_FAULT_SHORT: what the row held */
    size_t bytes;
} pending_fault;

typedef struct faulty {
    pare_oracle inner;
    const pare_fault *faults;
    size_t n;
    pare_dtype dtype;
    uint64_t calls;
    pending_fault *pending; /* capacity: all faults */
    size_t npending;
} faulty;

static void caps(void *self, pare_oracle_caps *out)
{
    const faulty *const o = self;
    o->inner.ops->caps(o->inner.self, out);
    out->features &= ~(uint32_t)(PARE_ORC_WHOLE | PARE_ORC_ADD);
}

static pare_status add_pending(faulty *o, const pare_fault *f, const pare_call *c, pare_err *err)
{
    const size_t size = pare_dtype_size(o->dtype);
    pending_fault *const s = &o->pending[o->npending];
    *s = (pending_fault){.fault = f};
    if (c->kind == PARE_CALL_STRICT) {
        const pare_call_strict *const x = &c->u.s;
        s->row = (char *)x->y + (x->n - 1) * (size_t)x->dout * size;
        s->bytes = x->dout * size;
    } else {
        const pare_call_partial p = oracle_partial_of(c);
        s->row = (char *)p.acc + (p.nq - 1) * p.ldacc * size;
        s->bytes = p.dv * size;
    }
    if (f->kind == PARE_FAULT_SHORT) {
        s->before = malloc(s->bytes ? s->bytes : 1);
        if (!s->before) return pare_no_memory(err);
        memcpy(s->before, s->row, s->bytes);
    }
    o->npending++;
    return PARE_OK;
}

static void drop_pending(faulty *o)
{
    while (o->npending) free(o->pending[--o->npending].before);
}

static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    faulty *const o = self;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) {
        const pare_fault *f = NULL; /* of this call */
        for (size_t k = 0; k < o->n && !f; k++)
            if (o->faults[k].call == o->calls + i) f = &o->faults[k];
        if (f && f->kind == PARE_FAULT_REFUSE)
            st = pare_fail(err, PARE_ERR_IO, "oracle call %llu: failed as told",
                           (unsigned long long)f->call);
        else if (f)
            st = add_pending(o, f, &calls[i], err);
    }
    o->calls += n;
    if (!st) st = o->inner.ops->evaluate(o->inner.self, calls, n, err);
    if (st) drop_pending(o);
    return st;
}

static pare_status barrier(void *self, pare_err *err)
{
    faulty *const o = self;
    pare_status st = o->inner.ops->barrier(o->inner.self, err);
    for (size_t i = 0; i < o->npending && !st; i++) {
        const pending_fault *const s = &o->pending[i];
        const double by = s->fault->kind == PARE_FAULT_NAN ? NAN : s->fault->by;
        if (s->fault->kind == PARE_FAULT_LOSE)
            st = pare_fail(err, PARE_ERR_IO, "oracle call %llu: lost as told",
                           (unsigned long long)s->fault->call);
        else if (s->fault->kind == PARE_FAULT_SHORT)
            memcpy(s->row, s->before, s->bytes);
        else if (o->dtype == PARE_F32)
            *(float *)(void *)s->row += (float)by;
        else
            *(double *)(void *)s->row += by;
    }
    drop_pending(o);
    return st;
}

static void destroy(void *self)
{
    faulty *const o = self;
    drop_pending(o);
    pare_oracle_free(&o->inner);
    free(o->pending);
    free(o);
}

pare_status pare_oracle_faulty(pare_oracle *out, pare_oracle inner, const pare_fault *faults,
                               size_t n, pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, destroy};
    faulty *const o = malloc(sizeof *o);
    pending_fault *const pending = calloc(n + 1, sizeof *pending);
    if (!o || !pending) {
        free(o);
        free(pending);
        pare_oracle_free(&inner);
        return pare_no_memory(err);
    }
    pare_oracle_caps c;
    inner.ops->caps(inner.self, &c);
    *o = (faulty){.inner = inner, .faults = faults, .n = n, .dtype = c.dtype, .pending = pending};
    out->ops = &ops;
    out->self = o;
    return PARE_OK;
}
