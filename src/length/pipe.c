/* pipe.c - an oracle that is another program (docs/pipe.md). One frame of calls goes out, one frame
 * of results comes back; everything that comes back is checked before it is used. */
#include "pipe.h"
#include "child_process.h"
#include "backend.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 300 };
static const uint64_t FRAME_BYTES = 8 << 20; /* of calls sent at once, unless one alone is larger */

typedef struct pipe_oracle {
    child child;
    early early;
    pare_oracle_caps caps;
    size_t number; /* bytes of one */
    uint64_t done; /* calls so far */
    uint64_t left; /* bytes of the answer at hand */
    uint8_t *buffer;
    size_t capacity, used;
} pipe_oracle;

/* ---- frames ---------------------------------------------------------------------------------- */

/* The next bytes of the buffer; NULL: no memory. */
static uint8_t *append(pipe_oracle *o, size_t bytes)
{
    if (bytes > o->capacity - o->used) {
        const size_t capacity = o->used + bytes + o->capacity / 2;
        uint8_t *const more = realloc(o->buffer, capacity);
        if (!more) return NULL;
        o->buffer = more;
        o->capacity = capacity;
    }
    o->used += bytes;
    return o->buffer + o->used - bytes;
}

static pare_status send_frame(pipe_oracle *o, pipe_kind kind, const void *body, size_t bytes,
                              pare_err *err)
{
    const pipe_frame f = {PIPE_MAGIC, (uint32_t)kind, bytes};
    child_start_clock(&o->child);
    const pare_status st = child_send(&o->child, &f, sizeof f, &o->early, err);
    return st ? st : child_send(&o->child, body, bytes, &o->early, err);
}

static pare_status receive(pipe_oracle *o, void *to, size_t bytes, pare_err *err)
{
    return child_receive(&o->child, to, bytes, &o->early, err);
}

/* The program's own words for its failure. */
static pare_status read_failure(pipe_oracle *o, uint64_t bytes, uint64_t *call, pare_err *err)
{
    char words[MOST_WORDS + 1] = "";
    uint64_t at = 0;
    const size_t n = bytes < sizeof at ? 0 : (size_t)(bytes - sizeof at);
    pare_status st = PARE_OK;
    if (bytes < sizeof at || n > MOST_WORDS)
        return pare_fail(err, PARE_ERR_IO, "a message of failure of %llu bytes: %s",
                         (unsigned long long)bytes, o->child.name);
    if ((st = receive(o, &at, sizeof at, err)) || (st = receive(o, words, n, err))) return st;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)words[i] < ' ') words[i] = ' ';
    *call = at;
    return pare_fail(err, PARE_ERR_IO, "the program failed: %s: %s", words, o->child.name);
}

/* The head of the answer, which must be of that kind. */
static pare_status read_frame(pipe_oracle *o, pipe_kind kind, uint64_t *call, pare_err *err)
{
    pipe_frame f;
    const pare_status st = receive(o, &f, sizeof f, err);
    if (st) return st;
    if (f.magic != PIPE_MAGIC)
        return pare_fail(err, PARE_ERR_IO, "the answer begins with %08x and not with \"PARE\": %s",
                         f.magic, o->child.name);
    if (f.kind == PIPE_FAILED) return read_failure(o, f.bytes, call, err);
    if (f.kind != (uint32_t)kind)
        return pare_fail(err, PARE_ERR_IO, "the answer is of kind %u, not %u: %s", f.kind,
                         (unsigned)kind, o->child.name);
    o->left = f.bytes;
    return PARE_OK;
}

/* Bytes of the answer, never more than its head has promised. */
static pare_status read_bytes(pipe_oracle *o, void *to, size_t bytes, pare_err *err)
{
    if (bytes > o->left)
        return pare_fail(err, PARE_ERR_IO, "the answer is %llu bytes too short: %s",
                         (unsigned long long)(bytes - o->left), o->child.name);
    o->left -= bytes;
    return receive(o, to, bytes, err);
}

static pare_status check_end(const pipe_oracle *o, pare_err *err)
{
    if (o->left == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_IO, "the answer is %llu bytes too long: %s",
                     (unsigned long long)o->left, o->child.name);
}

/* ---- the handshake --------------------------------------------------------------------------- */

static pare_status handshake(pipe_oracle *o, const pare_pipe_opts *p, pare_err *err)
{
    const uint32_t known = PARE_ORC_FULL | PARE_ORC_CAUSAL | PARE_ORC_BIAS | PARE_ORC_PARTIAL |
                           PARE_ORC_QKV | PARE_ORC_STATIC;
    const pipe_hello hello = {PARE_PIPE_VERSION, p->length, (uint32_t)o->number, p->dk, p->dv, {0}};
    pipe_caps c;
    uint64_t call;
    pare_status st;
    if ((st = send_frame(o, PIPE_HELLO, &hello, sizeof hello, err)) ||
        (st = read_frame(o, PIPE_CAPS, &call, err)) || (st = read_bytes(o, &c, sizeof c, err)) ||
        (st = check_end(o, err)))
        return st;
    const char *wrong = NULL;
    if (c.version != PARE_PIPE_VERSION)
        wrong = "version";
    else if (c.features & ~known || !(c.features & (PARE_ORC_PARTIAL | PARE_ORC_QKV)))
        wrong = "features";
    else if (c.max_len == 0)
        wrong = "max_len";
    else if (c.number_bytes != o->number)
        wrong =
            o->number == 4 ? "number_bytes (f32 is asked for)" : "number_bytes (f64 is asked for)";
    else if (!(c.exp_flush > 0 && c.exp_err >= 0 && c.w_min > 0 && c.w_min < 1))
        wrong = "exp_flush, exp_err, w_min";
    if (wrong)
        return pare_fail(err, PARE_ERR_IO, "the program's hello has an impossible %s: %s", wrong,
                         o->child.name);
    if (p->length && c.max_len > p->length)
        return pare_fail(err, PARE_ERR_INPUT, "the program takes %u tokens, asked for were %u: %s",
                         c.max_len, p->length, o->child.name);
    o->caps = (pare_oracle_caps){.size = sizeof o->caps,
                                 .features = c.features,
                                 .max_len = c.max_len,
                                 .d_k = c.dk,
                                 .d_v = c.dv,
                                 .batch = c.batch,
                                 .dtype = o->number == 4 ? PARE_F32 : PARE_F64,
                                 .exp_flush = c.exp_flush,
                                 .exp_err = c.exp_err,
                                 .w_min = c.w_min};
    return PARE_OK;
}

static void caps(void *self, pare_oracle_caps *out)
{
    *out = ((const pipe_oracle *)self)->caps;
}

/* ---- calls out ------------------------------------------------------------------------------- */

/* A call as it goes over the pipe, and where it comes from. */
typedef struct outgoing {
    pipe_call head;
    const void *q, *k, *v, *bias;
    size_t ldq, ldk, ldv;
} outgoing;

static outgoing as_outgoing(const pare_call *c)
{
    const pare_call_partial *const p = &c->u.p;
    const pare_call_qkv *const a = &c->u.a;
    if (c->kind == PARE_CALL_PARTIAL) {
        const pipe_call head = {PIPE_PARTIAL, p->nq, p->nk, p->dk, p->dv, 0, p->vis0};
        return (outgoing){head, p->q, p->k, p->v, NULL, p->ldq, p->ldk, p->ldv};
    }
    const uint32_t flags = (a->causal ? PIPE_CAUSAL : 0u) | (a->bias ? PIPE_BIAS : 0u);
    const int64_t sees = a->causal ? 1 : PARE_VIS_ALL;
    const pipe_call head = {PIPE_QKV, a->n, a->n, a->dk, a->dv, flags, sees};
    return (outgoing){head, a->q, a->k, a->v, a->bias, a->dk, a->dk, a->dv};
}

static uint64_t out_bytes(const pipe_oracle *o, const outgoing *g)
{
    const pipe_call *const c = &g->head;
    const uint64_t numbers = (uint64_t)c->nq * c->dk + (uint64_t)c->nk * (c->dk + c->dv) +
                             (g->bias ? (uint64_t)c->nq * c->nk : 0);
    return sizeof *c + numbers * o->number;
}

static uint8_t *put_rows(const pipe_oracle *o, uint8_t *to, const void *v, size_t rows, size_t cols,
                         size_t ld)
{
    for (size_t i = 0; i < rows && cols; i++, to += cols * o->number)
        memcpy(to, (const uint8_t *)v + i * ld * o->number, cols * o->number);
    return to;
}

static pare_status check_call(const pipe_oracle *o, const pare_call *c, pare_err *err)
{
    const uint32_t f = o->caps.features;
    const char *missing = NULL;
    if (c->kind == PARE_CALL_STRICT || (c->kind == PARE_CALL_QKV && !(f & PARE_ORC_QKV)) ||
        (c->kind == PARE_CALL_PARTIAL && !(f & PARE_ORC_PARTIAL)))
        missing = "calls of this kind";
    else if (c->kind == PARE_CALL_QKV && c->u.a.bias && !(f & PARE_ORC_BIAS))
        missing = "a bias";
    else if (c->kind == PARE_CALL_QKV && !c->u.a.bias &&
             !(f & (c->u.a.causal ? PARE_ORC_CAUSAL : PARE_ORC_FULL)))
        missing = c->u.a.causal ? "causal calls" : "calls without a mask";
    if (missing)
        return pare_fail(err, PARE_ERR_INPUT, "oracle call: the program takes no %s", missing);
    const pipe_call h = as_outgoing(c).head;
    const pare_oracle_caps *const is = &o->caps;
    if (h.nq > is->max_len || h.nk > is->max_len ||
        (f & PARE_ORC_STATIC && (h.nq != is->max_len || h.nk != is->max_len)))
        return pare_fail(err, PARE_ERR_INPUT,
                         "oracle call: %u queries and %u keys, the program takes %s%u", h.nq, h.nk,
                         f & PARE_ORC_STATIC ? "" : "at most ", is->max_len);
    if ((is->d_k && h.dk != is->d_k) || (is->d_v && h.dv != is->d_v))
        return pare_fail(err, PARE_ERR_INPUT,
                         "oracle call: widths %u and %u, the program takes %u and %u", h.dk, h.dv,
                         is->d_k, is->d_v);
    return PARE_OK;
}

static pare_status send_calls(pipe_oracle *o, const pare_call *calls, size_t n, pare_err *err)
{
    const pipe_calls head = {(uint32_t)n, 0};
    o->used = 0;
    uint8_t *to = append(o, sizeof head);
    if (!to) return pare_no_memory(err);
    memcpy(to, &head, sizeof head);
    for (size_t i = 0; i < n; i++) {
        const outgoing g = as_outgoing(&calls[i]);
        const pipe_call *const c = &g.head;
        if (!(to = append(o, (size_t)out_bytes(o, &g)))) return pare_no_memory(err);
        memcpy(to, c, sizeof *c);
        to = put_rows(o, to + sizeof *c, g.q, c->nq, c->dk, g.ldq);
        to = put_rows(o, to, g.k, c->nk, c->dk, g.ldk);
        to = put_rows(o, to, g.v, c->nk, c->dv, g.ldv);
        if (g.bias) put_rows(o, to, g.bias, c->nq, c->nk, c->nk);
    }
    return send_frame(o, PIPE_CALLS, o->buffer, o->used, err);
}

/* ---- results in ------------------------------------------------------------------------------ */

static pare_status read_rows(pipe_oracle *o, void *to, size_t rows, size_t cols, size_t ld,
                             pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; i < rows && cols && !st; i++)
        st = read_bytes(o, (uint8_t *)to + i * ld * o->number, cols * o->number, err);
    return st;
}

static const uint64_t NONE = UINT64_MAX;

/* *call: the one of the frame that failed, or NONE. */
static pare_status read_results(pipe_oracle *o, const pare_call *calls, size_t n, uint64_t *call,
                                pare_err *err)
{
    pipe_calls head;
    pare_status st;
    if ((st = read_frame(o, PIPE_RESULTS, call, err)) ||
        (st = read_bytes(o, &head, sizeof head, err)))
        return st;
    if (head.count != n)
        return pare_fail(err, PARE_ERR_IO, "%u results came for %zu calls: %s", head.count, n,
                         o->child.name);
    for (size_t i = 0; i < n && !st; i++) {
        const pare_call *const c = &calls[i];
        const pipe_call h = as_outgoing(c).head;
        pipe_result r;
        *call = i;
        if ((st = read_bytes(o, &r, sizeof r, err))) return st;
        if (r.rows != h.nq || r.cols != h.dv)
            return pare_fail(err, PARE_ERR_IO,
                             "the result has %u rows of %u numbers, not %u of %u: %s", r.rows,
                             r.cols, h.nq, h.dv, o->child.name);
        if (c->kind == PARE_CALL_QKV) {
            st = read_rows(o, c->u.a.y, h.nq, h.dv, h.dv, err);
            continue;
        }
        st = read_rows(o, c->u.p.m, 1, h.nq, h.nq, err);
        if (!st) st = read_rows(o, c->u.p.l, 1, h.nq, h.nq, err);
        if (!st) st = read_rows(o, c->u.p.acc, h.nq, h.dv, c->u.p.ldacc, err);
    }
    return st ? st : check_end(o, err);
}

/* ---- the oracle ------------------------------------------------------------------------------ */

/* One frame there and back. */
static pare_status exchange(pipe_oracle *o, const pare_call *calls, size_t n, pare_err *err)
{
    const unsigned long long first = o->done, last = first + n - 1;
    uint64_t call = NONE;
    char where[64];
    pare_status st = send_calls(o, calls, n, err);
    if (!st) st = read_results(o, calls, n, &call, err);
    o->done += n;
    if (st == PARE_OK || st == PARE_ERR_MEMORY) return st;
    if (call < n || n == 1)
        snprintf(where, sizeof where, "call %llu", call < n ? first + call : first);
    else
        snprintf(where, sizeof where, "one of calls %llu to %llu", first, last);
    pare_err_prefix(err, where);
    return st;
}

static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    pipe_oracle *const o = self;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n && !st; i++) st = check_call(o, &calls[i], err);
    for (size_t first = 0, end; first < n && !st; first = end) {
        const size_t left = n - first;
        const size_t most = o->caps.batch && o->caps.batch < left ? o->caps.batch : left;
        uint64_t bytes = 0;
        for (end = first; end < first + most; end++) { /* one frame */
            const outgoing g = as_outgoing(&calls[end]);
            bytes += out_bytes(o, &g);
            if (end > first && bytes > FRAME_BYTES) break;
        }
        st = exchange(o, calls + first, end - first, err);
    }
    return st;
}

static pare_status barrier(void *self, pare_err *err)
{
    (void)self, (void)err; /* evaluate has waited */
    return PARE_OK;
}

static void destroy(void *self)
{
    pipe_oracle *const o = self;
    child_stop(&o->child);
    free(o->early.data);
    free(o->buffer);
    free(o);
}

pare_status pare_oracle_pipe(pare_oracle *out, const pare_pipe_opts *p, pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, destroy};
    pipe_oracle *const o = calloc(1, sizeof *o);
    if (!o) return pare_no_memory(err);
    o->number = pare_dtype_size(p->dtype);
    const double timeout = p->timeout > 0 ? p->timeout : PARE_PIPE_TIMEOUT;
    pare_status st = child_start(&o->child, p->command, timeout, err);
    if (!st) st = handshake(o, p, err);
    if (st) {
        destroy(o);
        return st;
    }
    out->ops = &ops;
    out->self = o;
    return PARE_OK;
}
