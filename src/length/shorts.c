/* Many short inputs in one long call, without a mask (Yu 2025, Theorem 4.2, repaired;
 * docs/theory/length.md "Many short inputs in one call (Theorem 4.2)").
 *
 * Input g's queries carry P u_g and its keys v_g: logits within an input get exactly +0, those
 * between inputs at most -P. For |q.k| <= C1 and |v| <= C2 the leak of a finite P is at most 2 C2
 * (G - 1) e^(2 C1 - P) (inputs of one length), and with the P that is chosen here it is exactly 0:
 * the weights of other inputs are. */
#include "codes.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct packing {
    const pare_oracle *orc;
    pare_oracle_caps caps;
    const pare_length_job *jobs;
    size_t count;
    bool causal;
    double penalty;
    uint64_t calls;
    pare_err *err;
} packing;

static double longest(const packing *p, const pare_length_job *j, const void *x, size_t ld)
{
    double most = 0;
    for (size_t i = 0; i < j->n; i++) {
        double s = 0;
        for (size_t c = 0; c < j->dk; c++) {
            const double v = num_at(p->caps.dtype, x, i * ld + c);
            s += v * v;
        }
        most = fmax(most, s);
    }
    return sqrt(most) * (1 + 0x1p-40);
}

static void place(const packing *p, size_t job, size_t g, size_t row, uint32_t code, char *q,
                  char *k, char *v)
{
    const pare_length_job *const j = &p->jobs[job];
    const pare_dtype t = p->caps.dtype;
    const size_t wide = j->dk + code;
    const uint64_t bits = code ? group_bits(code, g) : 0;
    for (size_t i = 0; i < j->n; i++) {
        const size_t at = (row + i) * wide;
        for (size_t c = 0; c < j->dk; c++) {
            num_put(t, q, at + c, j->scale * num_at(t, j->q, i * j->ldq + c));
            num_put(t, k, at + c, num_at(t, j->k, i * j->ldk + c));
        }
        for (uint32_t b = 0; b < code; b++) {
            num_put(t, q, at + j->dk + b, bits >> b & 1 ? 0 : -p->penalty);
            num_put(t, k, at + j->dk + b, bits >> b & 1 ? 1 : 0);
        }
        for (size_t c = 0; c < j->dv; c++)
            num_put(t, v, (row + i) * j->dv + c, num_at(t, j->v, i * j->ldv + c));
    }
}

/* Jobs [first, end) in one call of n rows. */
static pare_status one_call(packing *p, size_t first, size_t end, size_t n)
{
    const size_t dk = p->jobs[0].dk, dv = p->jobs[0].dv, b = pare_dtype_size(p->caps.dtype);
    const uint32_t code = group_width(end - first);
    char *const q = calloc(n * (dk + code) + 1, b), *const k = calloc(n * (dk + code) + 1, b);
    char *const v = calloc(n * dv + 1, b), *const y = calloc(n * dv + 1, b);
    pare_status st = q && k && v && y ? PARE_OK : pare_no_memory(p->err);
    for (size_t x = first, row = 0; !st && x < end; row += p->jobs[x++].n)
        place(p, x, x - first, row, code, q, k, v);
    if (!st) {
        const pare_call c = {.kind = PARE_CALL_QKV,
                             .u.a = {.q = q,
                                     .k = k,
                                     .v = v,
                                     .n = (uint32_t)n,
                                     .dk = (uint32_t)(dk + code),
                                     .dv = (uint32_t)dv,
                                     .causal = p->causal,
                                     .y = y}};
        st = p->orc->ops->evaluate(p->orc->self, &c, 1, p->err);
        if (!st) st = p->orc->ops->barrier(p->orc->self, p->err);
        p->calls++;
    }
    for (size_t x = first, row = 0; !st && x < end; x++)
        for (size_t i = 0; i < p->jobs[x].n; i++, row++)
            memcpy((char *)p->jobs[x].y + i * p->jobs[x].ldy * b, y + row * dv * b, dv * b);
    free(q), free(k), free(v), free(y);
    return st;
}

static pare_status check(packing *p, const pare_pattern *pattern)
{
    p->orc->ops->caps(p->orc->self, &p->caps);
    if (pattern->kind != PARE_FULL && pattern->kind != PARE_CAUSAL)
        return pare_fail(p->err, PARE_ERR_INPUT, "length: short inputs are packed full or causal");
    p->causal = pattern->kind == PARE_CAUSAL;
    const uint32_t need = PARE_ORC_QKV | (p->causal ? PARE_ORC_CAUSAL : PARE_ORC_FULL);
    if ((p->caps.features & need) != need || (p->caps.features & PARE_ORC_STATIC))
        return pare_fail(p->err, PARE_ERR_INPUT,
                         "length: packing needs a %s softmax over calls of any length",
                         p->causal ? "causal" : "full");
    double q = 0, k = 0; /* logits between two inputs are bounded by the longest of all */
    for (size_t x = 0; x < p->count; x++) {
        const pare_length_job *const j = &p->jobs[x];
        PARE_ASSERT(j->dk == p->jobs[0].dk && j->dv == p->jobs[0].dv);
        if (j->n > p->caps.max_len)
            return pare_fail(p->err, PARE_ERR_INPUT,
                             "length: input %zu has %zu tokens, the oracle takes %u", x, j->n,
                             (unsigned)p->caps.max_len);
        q = fmax(q, fabs(j->scale) * longest(p, j, j->q, j->ldq));
        k = fmax(k, longest(p, j, j->k, j->ldk));
    }
    if (!(p->penalty > 0)) p->penalty = penalty(p->caps.dtype, p->caps.exp_flush, q * k);
    if (isfinite(p->penalty)) return PARE_OK;
    return pare_fail(p->err, PARE_ERR_NUMERIC, "length: logit overflow: inputs may give %.3g",
                     q * k);
}

pare_status pare_length_pack(const pare_oracle *orc, const pare_length_job *jobs, size_t count,
                             const pare_pattern *p, double by, uint64_t *calls, pare_err *err)
{
    packing w = {.orc = orc, .jobs = jobs, .count = count, .penalty = by, .err = err};
    pare_status st = count ? check(&w, p) : PARE_OK;
    for (size_t first = 0; first < count && !st;) {
        size_t end = first, n = 0;
        while (end < count && n + jobs[end].n <= w.caps.max_len) n += jobs[end++].n;
        st = n ? one_call(&w, first, end, n) : PARE_OK;
        first = end;
    }
    if (calls) *calls = w.calls;
    return st;
}
