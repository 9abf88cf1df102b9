/* instances.c - several independent pieces of attention in one call of L' layers and H' heads (Yu
 * 2025, Lemma 3.3, repaired; docs/theory/length.md "Strict plans and Lemma 3.3").
 *
 * The state of a token is one slot for each instance, q | k | v side by side, and a position code.
 * A head that computes reads one slot; psi puts its result into that slot. What must survive a
 * layer is carried by copy heads: q = beta p_i, k = p_i, whose softmax is exactly the identity,
 * because every other logit is lower by at least 2 beta. Yu 2025 lets identity columns of the same
 * head pass values on, but its own attention matrix multiplies these, too (docs/errata.md).
 * Instances in a call:
 *
 *     residual stream        every head of every layer computes         H' L'
 *     one wide copy head     the others compute in every layer          (H' - 1) L'
 *     equal widths           pairs of a computing and a copying head    floor(H'/2) L'
 *     or: all H' heads compute in the last layer, and copy before it    H' */
#include "instances.h"
#include "group_codes.h"
#include "numbers.h"
#include <string.h>

typedef struct task { /* of one head of one layer */
    enum { IDLE, COMPUTE, COPY } kind;
    size_t slot;       /* COMPUTE */
    size_t from, wide; /* columns of the state; for COMPUTE the slot's own */
    uint32_t out;      /* columns the head gives */
} task;

typedef struct token_call { /* one call */
    const run_inputs *in;
    const instance *list;
    size_t count;
    uint32_t layers, heads, n;
    size_t *at;    /* slots begin here; at[count]: the codes */
    uint32_t bits; /* of a code */
    size_t width;  /* of the state */
    bool residual;
    task *tasks;
    size_t layer; /* of this token function */
} token_call;

bool instance_alloc(instance *i, pare_arena *a, pare_dtype t)
{
    const size_t b = pare_dtype_size(t), n = i->n;
    i->q = pare_alloc(a, n * i->dk, b);
    i->k = pare_alloc(a, n * i->dk, b);
    i->v = pare_alloc(a, n * i->dv, b);
    i->y = pare_alloc(a, n * i->dv, b);
    return i->q && i->k && i->v && i->y;
}

/* Columns of a token before phi. */
static uint32_t raw_width(const instance *i)
{
    return i->phi ? i->phi->din : 2 * i->dk + i->dv;
}

/* ---- token functions ------------------------------------------------------------------------- */

static void put_codes(const token_call *b, char *row, uint32_t pos)
{
    for (uint32_t e = 0; e < b->bits; e++)
        num_put(b->in->caps.dtype, row, b->at[b->count] + e, position_bit(pos, e));
}

/* Raw rows side by side become slots. */
static void lay_out_tokens(const void *ctx, uint32_t pos, const void *in, void *out)
{
    const token_call *const b = ctx;
    const size_t size = pare_dtype_size(b->in->caps.dtype);
    const char *from = in;
    memset(out, 0, b->width * size);
    for (size_t s = 0; s < b->count; s++) {
        const instance *const i = &b->list[s];
        const uint32_t din = raw_width(i);
        char *const to = (char *)out + b->at[s] * size;
        if (i->phi)
            i->phi->fn(i->phi->ctx, pos, from, to);
        else
            memcpy(to, from, din * size);
        from += din * size;
    }
    put_codes(b, out, pos);
}

/* Results into their slots, copies where they were, codes anew. */
static void place_results(const void *ctx, uint32_t pos, const void *in, void *out)
{
    const token_call *const b = ctx;
    const size_t size = pare_dtype_size(b->in->caps.dtype);
    const char *from = in;
    if (b->residual) {
        memcpy(out, in, b->width * size);
        from += b->width * size;
    } else {
        memset(out, 0, b->width * size);
    }
    const task *const tasks = b->tasks + b->layer * b->heads;
    for (int pass = 0; pass < 2; pass++) { /* results win over copies of what they came from */
        const char *at = from;
        for (uint32_t h = 0; h < b->heads; at += tasks[h].out * size, h++) {
            char *const to = (char *)out + tasks[h].from * size;
            if (tasks[h].kind == COPY && pass == 0) memcpy(to, at, tasks[h].wide * size);
            if (tasks[h].kind != COMPUTE || pass == 0) continue;
            memset(to, 0, tasks[h].wide * size);
            memcpy(to, at, b->list[tasks[h].slot].dv * size);
        }
    }
    put_codes(b, out, pos);
}

/* ---- which head does what -------------------------------------------------------------------- */

/* Results of early layers survive the later ones. */
static void assign_every_layer(token_call *b)
{
    const bool wide = b->in->caps.features & PARE_ORC_WIDE_HEAD;
    const uint32_t step = b->residual || wide ? 1 : 2;
    const uint32_t computing = b->residual ? b->heads : wide ? b->heads - 1 : b->heads / 2;
    for (uint32_t l = 0; l < b->layers; l++) {
        task *const t = b->tasks + l * b->heads;
        for (uint32_t h = 0; h < computing; h++) {
            /* pairs own `layers` slots side by side */
            const size_t slot = step == 2 ? (size_t)h * b->layers + l : (size_t)l * computing + h;
            if (slot < b->count)
                t[h * step] = (task){COMPUTE, slot, b->at[slot], b->at[slot + 1] - b->at[slot], 0};
            if (step == 1) continue;
            const size_t first = (size_t)h * b->layers, end = first + b->layers;
            if (first >= b->count) continue;
            const size_t to = b->at[end < b->count ? end : b->count];
            t[h * 2 + 1] = (task){COPY, 0, b->at[first], to - b->at[first], 0};
        }
        if (!b->residual && wide) t[b->heads - 1] = (task){COPY, 0, 0, b->at[b->count], 0};
    }
}

static pare_status assign_heads(token_call *b, pare_arena *a)
{
    size_t widest = 0;
    b->at = pare_alloc(a, b->count + 1, sizeof *b->at);
    b->tasks = pare_alloc(a, (size_t)b->layers * b->heads, sizeof *b->tasks);
    if (!b->at || !b->tasks) return pare_no_memory(b->in->err);
    for (size_t s = 0; s < b->count; s++) {
        const size_t w = 2 * b->list[s].dk + b->list[s].dv;
        if (w > widest) widest = w;
    }
    const bool equal = !(b->in->caps.features & PARE_ORC_WIDE_HEAD);
    for (size_t s = 0; s < b->count; s++)
        b->at[s + 1] = b->at[s] + (equal ? widest : 2 * b->list[s].dk + b->list[s].dv);
    b->bits = position_width(b->n);
    b->width = b->at[b->count] + b->bits;
    if (b->count > b->heads || b->residual)
        assign_every_layer(b);
    else
        for (uint32_t l = 0; l < b->layers; l++)
            for (uint32_t h = 0; h < b->count; h++)
                b->tasks[l * b->heads + h] = (task){l + 1 == b->layers ? COMPUTE : COPY, h,
                                                    b->at[h], b->at[h + 1] - b->at[h], 0};
    uint32_t most = 1; /* columns each head gives: as many as it needs, or all the same */
    for (size_t x = 0; x < (size_t)b->layers * b->heads; x++) {
        task *const t = &b->tasks[x];
        t->out = t->kind == COPY ? (uint32_t)t->wide : t->kind == COMPUTE ? b->list[t->slot].dv : 1;
        if (t->out > most) most = t->out;
    }
    for (size_t x = 0; x < (size_t)b->layers * b->heads && equal; x++) b->tasks[x].out = most;
    if (!b->in->caps.d_model || b->width <= b->in->caps.d_model) return PARE_OK;
    return pare_fail(b->in->err, PARE_ERR_INPUT,
                     "length: a call needs tokens of %zu numbers, the oracle takes %u", b->width,
                     (unsigned)b->in->caps.d_model);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* rows x cols with `one` on (from + i, i) for i < wide. */
static void *selector(pare_arena *a, pare_dtype t, size_t rows, size_t cols, size_t from,
                      size_t wide, double one)
{
    void *const w = pare_alloc(a, rows * cols + 1, pare_dtype_size(t));
    for (size_t i = 0; w && i < wide; i++) num_put(t, w, (from + i) * cols + i, one);
    return w;
}

static bool head_weights(pare_head_w *out, const token_call *b, const task *t, pare_arena *a)
{
    const pare_dtype type = b->in->caps.dtype;
    const size_t d = b->width, code = b->at[b->count];
    const instance *const i = t->kind == COMPUTE ? &b->list[t->slot] : NULL;
    const uint32_t dk = i ? i->dk : t->kind == COPY ? b->bits : 1;
    const size_t q = i ? t->from : code, k = i ? t->from + dk : code;
    const size_t v = i ? t->from + 2 * (size_t)dk : t->from;
    const size_t wide = i ? i->dv : t->kind == COPY ? t->wide : 0;
    const size_t keys = t->kind == IDLE ? 0 : dk;
    const double beta = i ? 1 : position_beta(type);
    *out = (pare_head_w){.wq = selector(a, type, d, dk, q, keys, beta),
                         .wk = selector(a, type, d, dk, k, keys, 1),
                         .wv = selector(a, type, d, t->out, v, wide, 1),
                         .din = (uint32_t)d,
                         .dk = dk,
                         .dv = t->out};
    return out->wq && out->wk && out->wv;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static pare_status build_call(pare_call *out, token_call *b, pare_arena *a)
{
    const size_t size = pare_dtype_size(b->in->caps.dtype);
    pare_status st = assign_heads(b, a);
    if (st) return st;
    uint32_t din = 0;
    for (size_t s = 0; s < b->count; s++) din += raw_width(&b->list[s]);
    char *const x = pare_alloc(a, (size_t)b->n * din, size);
    char *const y = pare_alloc(a, b->n * b->width, size);
    const size_t nheads = (size_t)b->layers * b->heads;
    pare_head_w *const heads = pare_alloc(a, nheads, sizeof *heads);
    pare_tokfn *const fns = pare_alloc(a, b->layers + 1, sizeof *fns);
    token_call *const contexts = pare_alloc(a, b->layers + 1, sizeof *contexts);
    bool ok = x && y && heads && fns && contexts;
    for (size_t h = 0; ok && h < nheads; h++) ok = head_weights(&heads[h], b, &b->tasks[h], a);
    if (!ok) return pare_no_memory(b->in->err);
    for (uint32_t l = 0; l <= b->layers; l++) {
        contexts[l] = *b;
        contexts[l].layer = l;
        uint32_t inputs = b->residual ? (uint32_t)b->width : 0;
        for (uint32_t h = 0; l < b->layers && h < b->heads; h++)
            inputs += b->tasks[l * b->heads + h].out;
        fns[l] = (pare_tokfn){.name = l < b->layers ? "slots" : "lay out",
                              .din = l < b->layers ? inputs : din,
                              .dout = (uint32_t)b->width,
                              .fn = l < b->layers ? place_results : lay_out_tokens,
                              .ctx = &contexts[l]};
    }
    for (size_t s = 0, at = 0; s < b->count; at += raw_width(&b->list[s++])) {
        const instance *const i = &b->list[s];
        for (size_t row = 0; row < b->n; row++) {
            char *const to = x + (row * din + at) * size;
            if (i->phi) {
                memcpy(to, i->raw + row * i->phi->din * size, i->phi->din * size);
                continue;
            }
            memcpy(to, i->q + row * i->dk * size, i->dk * size);
            memcpy(to + i->dk * size, i->k + row * i->dk * size, i->dk * size);
            memcpy(to + 2 * i->dk * size, i->v + row * i->dv * size, i->dv * size);
        }
    }
    *out = (pare_call){.kind = PARE_CALL_STRICT,
                       .u.s = {.x = x,
                               .n = b->n,
                               .din = din,
                               .causal = b->list[0].causal,
                               .phi = &fns[b->layers],
                               .heads = heads,
                               .psi = fns,
                               .y = y,
                               .dout = (uint32_t)b->width}};
    return PARE_OK;
}

pare_status instances_run(const run_inputs *in, const instance *list, size_t count, uint64_t *calls)
{
    const size_t capacity = (size_t)rule_capacity(&in->caps);
    const size_t n = (count + capacity - 1) / capacity, size = pare_dtype_size(in->caps.dtype);
    pare_arena *const a = pare_arena_new();
    pare_call *const all = a ? pare_alloc(a, n + 1, sizeof *all) : NULL;
    token_call *const token_calls = a ? pare_alloc(a, n + 1, sizeof *token_calls) : NULL;
    pare_status st = all && token_calls ? PARE_OK : pare_no_memory(in->err);
    for (size_t i = 0; i < n && !st; i++) {
        const size_t left = count - i * capacity;
        token_calls[i] = (token_call){.in = in,
                                      .list = list + i * capacity,
                                      .count = left < capacity ? left : capacity,
                                      .layers = in->caps.layers ? in->caps.layers : 1,
                                      .heads = in->caps.heads ? in->caps.heads : 1,
                                      .n = list[i * capacity].n,
                                      .residual = in->caps.features & PARE_ORC_RESIDUAL};
        st = build_call(&all[i], &token_calls[i], a);
    }
    if (!st) st = in->oracle->ops->evaluate(in->oracle->self, all, n, in->err);
    if (!st) st = in->oracle->ops->barrier(in->oracle->self, in->err);
    for (size_t i = 0; i < n && !st; i++) {
        const token_call *const b = &token_calls[i];
        const char *const y = all[i].u.s.y;
        for (size_t s = 0; s < b->count; s++)
            for (size_t row = 0; row < b->n; row++)
                memcpy(b->list[s].y + row * b->list[s].dv * size,
                       y + (row * b->width + b->at[s]) * size, b->list[s].dv * size);
    }
    *calls += st ? 0 : n;
    pare_arena_free(a);
    return st;
}

pare_status instances_run_any(const run_inputs *in, const instance *list, size_t count,
                              uint64_t *calls)
{
    if (in->strict) return instances_run(in, list, count, calls);
    pare_status st = PARE_OK;
    for (size_t i = 0; i < count && !st; i++) {
        const instance *const x = &list[i];
        const pare_call c = {.kind = PARE_CALL_QKV,
                             .u.a = {.q = x->q,
                                     .k = x->k,
                                     .v = x->v,
                                     .n = x->n,
                                     .dk = x->dk,
                                     .dv = x->dv,
                                     .causal = x->causal,
                                     .y = x->y}};
        st = in->oracle->ops->evaluate(in->oracle->self, &c, 1, in->err);
    }
    if (!st) st = in->oracle->ops->barrier(in->oracle->self, in->err);
    *calls += st ? 0 : count;
    return st;
}
