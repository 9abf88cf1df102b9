/* An oracle that fails at chosen calls: a backend that is down, loses a round or computes nonsense.
 * Its numbers are spoilt at the barrier, since they need not be there before. */
#include "oracle_calls.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A fault whose call has been made, and the last row of its output. */
typedef struct spoilt {
    const pare_fault *fault;
    char *row;
    void *before; /* PARE_FAULT_SHORT: what the row held */
    size_t bytes;
} spoilt;

typedef struct faulty {
    pare_oracle inner;
    const pare_fault *faults;
    size_t n;
    pare_dtype dtype;
    uint64_t calls;
    spoilt *now; /* room for all faults */
    size_t nnow;
} faulty;

static void caps(void *self, pare_oracle_caps *out)
{
    const faulty *const o = self;
    o->inner.ops->caps(o->inner.self, out);
    out->features &= ~(uint32_t)(PARE_ORC_WHOLE | PARE_ORC_ADD);
}

static const pare_fault *fault_of(const faulty *o, uint64_t call)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->faults[i].call == call) return &o->faults[i];
    return NULL;
}

static void last_row(const faulty *o, const pare_call *c, spoilt *s)
{
    const size_t size = pare_dtype_size(o->dtype);
    if (c->kind == PARE_CALL_STRICT) {
        const pare_call_strict *const x = &c->u.s;
        s->row = (char *)x->y + (x->n - 1) * (size_t)x->dout * size;
        s->bytes = x->dout * size;
    } else {
        const pare_call_partial p = oracle_as_partial(c);
        s->row = (char *)p.acc + (p.nq - 1) * p.ldacc * size;
        s->bytes = p.dv * size;
    }
}

static pare_status remember(faulty *o, const pare_fault *f, const pare_call *c, pare_err *err)
{
    spoilt *const s = &o->now[o->nnow];
    *s = (spoilt){.fault = f};
    last_row(o, c, s);
    if (f->kind == PARE_FAULT_SHORT) {
        s->before = malloc(s->bytes ? s->bytes : 1);
        if (!s->before) return pare_no_memory(err);
        memcpy(s->before, s->row, s->bytes);
    }
    o->nnow++;
    return PARE_OK;
}

static void forget(faulty *o)
{
    while (o->nnow) free(o->now[--o->nnow].before);
}

static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    faulty *const o = self;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) {
        const pare_fault *const f = fault_of(o, o->calls + i);
        if (f && f->kind == PARE_FAULT_REFUSE)
            st = pare_fail(err, PARE_ERR_IO, "oracle call %llu: failed as told",
                           (unsigned long long)f->call);
        else if (f)
            st = remember(o, f, &calls[i], err);
    }
    o->calls += n;
    if (!st) st = o->inner.ops->evaluate(o->inner.self, calls, n, err);
    if (st) forget(o);
    return st;
}

static void spoil(const faulty *o, const spoilt *s)
{
    const double by = s->fault->kind == PARE_FAULT_NAN ? NAN : s->fault->by;
    if (s->fault->kind == PARE_FAULT_SHORT)
        memcpy(s->row, s->before, s->bytes);
    else if (o->dtype == PARE_F32)
        *(float *)(void *)s->row += (float)by;
    else
        *(double *)(void *)s->row += by;
}

static pare_status barrier(void *self, pare_err *err)
{
    faulty *const o = self;
    pare_status st = o->inner.ops->barrier(o->inner.self, err);
    for (size_t i = 0; i < o->nnow && !st; i++) {
        if (o->now[i].fault->kind == PARE_FAULT_LOSE)
            st = pare_fail(err, PARE_ERR_IO, "oracle call %llu: lost as told",
                           (unsigned long long)o->now[i].fault->call);
        else
            spoil(o, &o->now[i]);
    }
    forget(o);
    return st;
}

static void destroy(void *self)
{
    faulty *const o = self;
    forget(o);
    pare_oracle_free(&o->inner);
    free(o->now);
    free(o);
}

pare_status pare_oracle_faulty(pare_oracle *out, pare_oracle inner, const pare_fault *faults,
                               size_t n, pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, destroy};
    faulty *const o = malloc(sizeof *o);
    spoilt *const now = calloc(n + 1, sizeof *now);
    if (!o || !now) {
        free(o);
        free(now);
        pare_oracle_free(&inner);
        return pare_no_memory(err);
    }
    pare_oracle_caps c;
    inner.ops->caps(inner.self, &c);
    *o = (faulty){.inner = inner, .faults = faults, .n = n, .dtype = c.dtype, .now = now};
    out->ops = &ops;
    out->self = o;
    return PARE_OK;
}
