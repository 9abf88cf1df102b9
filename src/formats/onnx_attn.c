/* onnx_attn.c - the attention branch as ONNX nodes. Heads of one shape go together as [batch,
 * groups, heads of a group, tokens, d]: heads of a group share keys and values, and MatMul repeats
 * those by itself. Ragged heads go one by one. */
#include "onnx_parts.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- what a query sees -------------------------------------------------------------------------
 */

static value sees(writer *x)
{
    onnx *const g = &x->g;
    const pare_pattern *const p = &x->m->pattern;
    const int64_t first = 0, last = 1;
    const value key = onnx_op2(g, "Unsqueeze", x->positions, onnx_numbers(g, 1, &first));
    const value query = onnx_op2(g, "Unsqueeze", x->positions, onnx_numbers(g, 1, &last));
    const value past = onnx_op2(g, "LessOrEqual", key, query);
    if (p->kind == PARE_CAUSAL) return past;
    const int64_t window = (int64_t)p->window, sinks = (int64_t)p->sinks;
    const value oldest = onnx_op2(g, "Sub", query, onnx_number(g, window));
    const value near = onnx_op2(g, "Greater", key, oldest);
    const value sink = onnx_op2(g, "Less", key, onnx_number(g, sinks));
    return onnx_op2(g, "And", past, onnx_op2(g, "Or", near, sink));
}

/* NULL where every query sees every key. */
static value visible(writer *x)
{
    onnx *const g = &x->g;
    if (x->m->pattern.kind == PARE_FULL || x->visible) return x->visible;
    return x->visible = onnx_op3(g, "Where", sees(x), onnx_real(g, 0), onnx_real(g, -FLT_MAX));
}

/* ---- positions that turn -----------------------------------------------------------------------
 */

static bool same_weight(const pare_weight *a, const pare_weight *b)
{
    return a->dtype == b->dtype && a->cols == b->cols &&
           memcmp(a->data, b->data, a->cols * pare_dtype_size(a->dtype)) == 0;
}

static value wave_table(writer *x, const pare_weight *freqs, double phase)
{
    onnx *const g = &x->g;
    const size_t n = freqs->cols;
    const int64_t middle[] = {1, 2};
    double *const f = pare_alloc(g->arena, 2 * n, sizeof *f);
    if (!f) {
        onnx_no_memory(g);
        return NULL;
    }
    for (size_t j = 0; j < n; j++) {
        f[j] = pare_weight_at(freqs, j);
        f[n + j] = phase;
    }
    return onnx_op2(g, "Unsqueeze", put_waves(x, f, f + n, n), onnx_numbers(g, 2, middle));
}

static const turns *turns_for(writer *x, const pare_weight *freqs)
{
    for (const turns *t = x->turns; t; t = t->next)
        if (same_weight(t->freqs, freqs)) return t;
    turns *const t = pare_alloc(x->g.arena, 1, sizeof *t);
    if (!t) {
        onnx_no_memory(&x->g);
        return NULL;
    }
    /* a cosine is a sine a quarter turn later; runtimes have the sine in f64, few the cosine */
    *t = (turns){x->turns, freqs, wave_table(x, freqs, acos(-1) / 2), wave_table(x, freqs, 0)};
    return x->turns = t;
}

/* Turns the planes of v [batch, tokens, groups, heads, dk]. Pairs that were interleaved come out
 * half by half: queries and keys in the same order, which is all that their products ask for. */
static value rotated(writer *x, value v, const pare_attn *a, const pare_head *h)
{
    onnx *const g = &x->g;
    if (!h->planes) return v;
    const turns *const t = turns_for(x, &a->freqs);
    if (!t) return NULL;
    const int64_t n = (int64_t)h->planes, f = (int64_t)h->freq, dk = (int64_t)h->dk;
    const bool mixed = x->m->embedding.pos.interleaved;
    const value c = put_slice(x, t->cosine, 3, f, f + n, 1);
    const value s = put_slice(x, t->sine, 3, f, f + n, 1);
    const value one = mixed ? put_slice(x, v, 4, 0, 2 * n, 2) : put_slice(x, v, 4, 0, n, 1);
    const value two = mixed ? put_slice(x, v, 4, 1, 2 * n, 2) : put_slice(x, v, 4, n, 2 * n, 1);
    const value parts[] = {
        onnx_op2(g, "Sub", onnx_op2(g, "Mul", one, c), onnx_op2(g, "Mul", two, s)),
        onnx_op2(g, "Add", onnx_op2(g, "Mul", one, s), onnx_op2(g, "Mul", two, c)),
        2 * n < dk ? put_slice(x, v, 4, 2 * n, dk, 1) : NULL};
    return onnx_node(g, "Concat", parts, 2 * n < dk ? 3 : 2, ONE_NUMBER("axis", 4));
}

/* ---- heads -------------------------------------------------------------------------------------
 */

/* [batch, tokens, groups * each * d] as five axes. */
static value unfold(onnx *g, value v, size_t groups, size_t each, size_t d)
{
    const int64_t shape[] = {0, 0, (int64_t)groups, (int64_t)each, (int64_t)d};
    return onnx_op2(g, "Reshape", v, onnx_numbers(g, 5, shape));
}

/* `groups` times `each` heads like h over q, k, v that hold nothing else: [batch, tokens, all dv].
 */
static value head_set(writer *x, value q, value k, value v, const pare_attn *a, const pare_head *h,
                      size_t groups, size_t each)
{
    onnx *const g = &x->g;
    const int64_t flat[] = {0, 0, (int64_t)(groups * each * h->dv)};
    q = rotated(x, unfold(g, q, groups, each, h->dk), a, h);
    k = rotated(x, unfold(g, k, groups, 1, h->dk), a, h);
    v = unfold(g, v, groups, 1, h->dv);
    q = onnx_op2(g, "Mul", q, onnx_real(g, h->scale));
    q = onnx_node(g, "Transpose", &q, 1, NUMBERS("perm", 5, 0, 2, 3, 1, 4));
    k = onnx_node(g, "Transpose", &k, 1, NUMBERS("perm", 5, 0, 2, 3, 4, 1));
    v = onnx_node(g, "Transpose", &v, 1, NUMBERS("perm", 5, 0, 2, 3, 1, 4));
    value s = onnx_op2(g, "MatMul", q, k);
    if (x->m->pattern.kind != PARE_FULL) s = onnx_op2(g, "Add", s, visible(x));
    const value p = onnx_node(g, "Softmax", &s, 1, ONE_NUMBER("axis", -1));
    value y = onnx_op2(g, "MatMul", p, v);
    y = onnx_node(g, "Transpose", &y, 1, NUMBERS("perm", 5, 0, 3, 1, 2, 4));
    return onnx_op2(g, "Reshape", y, onnx_numbers(g, 3, flat));
}

/* How many heads share keys and values when all heads are alike and lie in order; 0: they do not.
 */
static size_t group_size(const pare_attn *a, size_t q_columns)
{
    const pare_head *const h = a->heads;
    const size_t groups = h->dk ? a->wk.rows / h->dk : 0;
    if (!groups || !h->dv || a->nheads % groups || a->wk.rows != groups * h->dk ||
        a->wv.rows != groups * h->dv || q_columns != a->nheads * h->dk)
        return 0;
    const size_t each = a->nheads / groups;
    for (size_t i = 0; i < a->nheads; i++) {
        const pare_head *const o = &h[i];
        if (o->dk != h->dk || o->dv != h->dv || o->scale != h->scale || o->planes != h->planes ||
            o->freq != h->freq || o->q != i * h->dk || o->k != i / each * h->dk ||
            o->v != i / each * h->dv)
            return 0;
    }
    return each;
}

static value head_columns(writer *x, value v, size_t from, size_t d)
{
    return put_slice(x, v, 2, (int64_t)from, (int64_t)(from + d), 1);
}

static value queries(writer *x, value z, const pare_attn *a)
{
    if (!pare_has(&a->wq)) return put_spread(x, put_weight(x, "bq", &a->bq, ONNX_ROW), a->bq.cols);
    const value q = put_dense(x, z, "wq", "bq", &a->wq, &a->bq);
    if (a->kind != PARE_ATTN_MEANQ) return q;
    return put_spread(x, onnx_reduce(&x->g, "ReduceMean", q, 1), a->wq.rows);
}

/* The heads' outputs side by side. */
static value heads(writer *x, value z, const pare_attn *a)
{
    const value q = queries(x, z, a);
    const value k = put_dense(x, z, "wk", "bk", &a->wk, &a->bk);
    const value v = put_dense(x, z, "wv", "bv", &a->wv, &a->bv);
    const size_t each = group_size(a, pare_has(&a->wq) ? a->wq.rows : a->bq.cols);
    if (!each) {
        value *const y = pare_alloc(x->g.arena, a->nheads, sizeof *y);
        if (!y) {
            onnx_no_memory(&x->g);
            return NULL;
        }
        for (size_t i = 0; i < a->nheads; i++) {
            const pare_head *const h = &a->heads[i];
            y[i] = head_set(x, head_columns(x, q, h->q, h->dk), head_columns(x, k, h->k, h->dk),
                            head_columns(x, v, h->v, h->dv), a, h, 1, 1);
        }
        return onnx_node(&x->g, "Concat", y, a->nheads, ONE_NUMBER("axis", 2));
    }
    return head_set(x, q, k, v, a, &a->heads[0], a->nheads / each, each);
}

/* ---- replacements ------------------------------------------------------------------------------
 */

/* The mean of what each token sees. */
static value averaged(writer *x, value v, size_t d)
{
    onnx *const g = &x->g;
    if (x->m->pattern.kind == PARE_FULL)
        return put_spread(x, onnx_reduce(g, "ReduceMean", v, 1), d);
    const value s = visible(x);
    return onnx_op2(g, "MatMul", onnx_node(g, "Softmax", &s, 1, ONE_NUMBER("axis", -1)), v);
}

static value constant(writer *x, const pare_attn *a)
{
    const value row =
        pare_has(&a->bo) ? put_weight(x, "bo", &a->bo, ONNX_ROW) : onnx_real(&x->g, 0);
    return put_spread(x, row, a->dout);
}

/* sum_j U^j z E_j + bo; mix stacks the E_j^T. */
static value umix(writer *x, value z, const pare_attn *a)
{
    onnx *const g = &x->g;
    const size_t powers = a->mix.rows / a->dout;
    const value all = put_weight(x, "mix", &a->mix, ONNX_TRANSPOSED); /* [din, powers * dout] */
    value sum = constant(x, a);
    for (size_t j = 0; j < powers; j++) {
        if (j > 0) z = averaged(x, z, a->din);
        const value e =
            put_slice(x, all, 1, (int64_t)(j * a->dout), (int64_t)((j + 1) * a->dout), 1);
        sum = onnx_op2(g, "Add", sum, onnx_op2(g, "MatMul", z, e));
    }
    return sum;
}

value put_attention(writer *x, value z, const pare_attn *a)
{
    value y;
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY: /* approximates exact attention to its tolerance */
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        y = heads(x, z, a);
        if (!pare_has(&a->wo)) return put_bias(x, y, "bo", &a->bo);
        return put_dense(x, y, "wo", "bo", &a->wo, &a->bo);
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        return constant(x, a);
    case PARE_ATTN_UNIFORM:
        y = averaged(x, put_dense(x, z, "mix", "bv", &a->mix, &a->bv), a->dout);
        return put_bias(x, y, "bo", &a->bo);
    case PARE_ATTN_LINEAR:
        return put_dense(x, z, "matrix", "bo", &a->matrix, &a->bo);
    case PARE_ATTN_AFFMIX: {
        const value own = put_dense(x, z, "matrix", "bo", &a->matrix, &a->bo);
        const value mean = put_dense(x, averaged(x, z, a->din), "mix", NULL, &a->mix, NULL);
        return onnx_op2(&x->g, "Add", own, mean);
    }
    case PARE_ATTN_POOL: {
        const value both[] = {z, heads(x, z, a)};
        const value wide = onnx_node(&x->g, "Concat", both, 2, ONE_NUMBER("axis", 2));
        return put_dense(x, wide, "matrix", "bo", &a->matrix, &a->bo);
    }
    case PARE_ATTN_UMIX:
        return umix(x, z, a);
    }
    return NULL;
}
