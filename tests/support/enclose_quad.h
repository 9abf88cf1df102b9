/* enclose_quad.h - a model evaluated by the definitions of model.h in __float128 (113 bits), one
 * number at a time: what enclosures are held against. Shares no code with the library. The
 * elementary functions are series of our own, so that no library beside libgcc is needed. */
#ifndef TEST_ENCLOSE_QUAD_H
#define TEST_ENCLOSE_QUAD_H
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include <pare/run.h>
#include <pare_test.h>

typedef __float128 quad;

static inline quad q_abs(quad x)
{
    return x < 0 ? -x : x;
}

static inline quad q_sqrt(quad x)
{
    if (!(x > 0) || x > (quad)0x1p1000 * (quad)0x1p1000) return x > 0 ? x : 0;
    quad scale = 1;
    while (x < (quad)0x1p-200) x *= (quad)0x1p200, scale *= (quad)0x1p-100;
    while (x > (quad)0x1p200) x *= (quad)0x1p-200, scale *= (quad)0x1p100;
    quad y = (quad)sqrt((double)x);
    for (int i = 0; i < 3; i++) y = (y + x / y) / 2;
    return y * scale;
}

/* e^x - 1 by its series; |x| <= 1 */
static inline quad q_em1_small(quad x)
{
    quad term = x, sum = 0;
    for (int k = 2; k < 60; k++) {
        sum += term;
        term *= x / k;
    }
    return sum;
}

static inline quad q_exp(quad x)
{
    if (x < -11000) return 0;
    if (x < 0) return 1 / q_exp(-x); /* 1 + y would cancel */
    int halvings = 0;
    while (q_abs(x) > (quad)0x1p-4) x /= 2, halvings++;
    quad y = q_em1_small(x); /* (1 + y)^2 - 1 = y (2 + y) keeps small results accurate */
    for (int i = 0; i < halvings; i++) y = y * (2 + y);
    return 1 + y;
}

static inline quad q_tanh(quad x)
{
    if (x < 0) return -q_tanh(-x);
    if (x > 100) return 1;
    const quad y = x < (quad)0.5 ? q_em1_small(2 * x) : q_exp(2 * x) - 1;
    return y / (y + 2);
}

static inline quad q_pi(void) /* three doubles add up to pi within 2^-160 */
{
    return (quad)3.141592653589793116 + (quad)1.2246467991473532072e-16 +
           (quad)-2.9947698097183396659e-33;
}

/* erf(x) = 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!!: only positive terms. */
static inline quad q_erf(quad x)
{
    if (x < 0) return -q_erf(-x);
    if (x > 11) return 1;
    quad term = x, sum = 0;
    for (int n = 0; n < 700; n++) {
        sum += term;
        term *= 2 * x * x / (2 * n + 3);
    }
    return 2 / q_sqrt(q_pi()) * q_exp(-x * x) * sum;
}

static inline void q_sincos(quad x, quad *s, quad *c)
{
    const quad two_pi = 2 * q_pi();
    const quad turns = x / two_pi;
    x -= (quad)floor((double)turns + 0.5) * two_pi;
    quad st = x, ct = 1;
    *s = *c = 0;
    for (int k = 1; k < 45; k++) {
        *s += st;
        *c += ct;
        ct *= -x * x / ((2 * k - 1) * (2 * k));
        st *= -x * x / ((2 * k) * (2 * k + 1));
    }
}

static inline quad q_log(quad x) /* Newton on exp */
{
    quad y = (quad)log((double)x);
    for (int i = 0; i < 3; i++) y += x / q_exp(y) - 1;
    return y;
}

static inline quad q_act(pare_act a, quad x)
{
    const quad half = (quad)0.5;
    switch (a) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x > 0 ? x : 0;
    case PARE_ACT_TANH:
        return q_tanh(x);
    case PARE_ACT_GELU:
        return half * x * (1 + q_erf(x / q_sqrt(2)));
    case PARE_ACT_GELU_TANH: {
        const quad c = (quad)44715 / 1000000;
        return half * x * (1 + q_tanh(q_sqrt(2 / q_pi()) * (x + c * x * x * x)));
    }
    case PARE_ACT_SILU:
        return x > -11000 ? x / (1 + q_exp(-x)) : 0;
    }
    return 0;
}

/* ---- matrices of quads; never freed, a test program is short ------------------------------- */

typedef struct qmat {
    size_t n, d;
    quad *v;
} qmat;

static inline qmat q_new(pare_arena *a, size_t n, size_t d)
{
    qmat m = {n, d, pare_alloc(a, n * d + 1, sizeof(quad))};
    assert_non_null(m.v);
    return m;
}

static inline quad q_at(const pare_weight *w, size_t i)
{
    return pare_has(w) ? (quad)pare_weight_at(w, i) : 0;
}

static inline qmat q_dense(pare_arena *a, const qmat *x, const pare_weight *w, size_t row0,
                           size_t rows, const pare_weight *b)
{
    qmat y = q_new(a, x->n, rows);
    for (size_t i = 0; i < x->n; i++)
        for (size_t o = 0; o < rows; o++) {
            quad s = b ? q_at(b, row0 + o) : 0;
            for (size_t k = 0; k < x->d; k++)
                s += q_at(w, (row0 + o) * w->cols + k) * x->v[i * x->d + k];
            y.v[i * rows + o] = s;
        }
    return y;
}

static inline void q_add(qmat *y, const qmat *x)
{
    assert_int_equal(y->n * y->d, x->n * x->d);
    for (size_t i = 0; i < y->n * y->d; i++) y->v[i] += x->v[i];
}

static inline void q_norm(qmat *x, const pare_norm *n)
{
    const size_t d = x->d;
    if (n->kind == PARE_NORM_NONE) return;
    for (size_t i = 0; i < x->n; i++) {
        quad *const v = x->v + i * d;
        quad mean = 0, squares = 0;
        for (size_t k = 0; k < d; k++) v[k] += q_at(&n->offset, k);
        for (size_t k = 0; k < d; k++) mean += v[k];
        mean /= (quad)d;
        const bool centered = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_MEAN;
        for (size_t k = 0; centered && k < d; k++) v[k] -= mean;
        for (size_t k = 0; k < d; k++) squares += v[k] * v[k];
        const bool divides = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
        const quad divisor = divides ? (quad)n->divisor : 1;
        const quad root = q_sqrt((squares + (quad)n->shift) / divisor + (quad)n->eps);
        for (size_t k = 0; k < d; k++) {
            if (divides) v[k] /= root;
            if (n->kind == PARE_NORM_BATCH)
                v[k] = (v[k] - q_at(&n->mean, k)) / q_sqrt(q_at(&n->var, k) + (quad)n->eps);
            if (pare_has(&n->gain)) v[k] *= q_at(&n->gain, k);
            v[k] += q_at(&n->bias, k);
        }
    }
}

/* ---- attention ------------------------------------------------------------------------------ */

static inline void q_turn(quad *x, const pare_head *h, const pare_weight *freqs, bool interleaved,
                          size_t pos)
{
    for (size_t p = 0; p < h->planes; p++) {
        const size_t a = interleaved ? 2 * p : p, b = interleaved ? a + 1 : p + h->planes;
        quad s, c;
        q_sincos((quad)pos * q_at(freqs, h->freq + p), &s, &c);
        const quad xa = x[a], xb = x[b];
        x[a] = xa * c - xb * s;
        x[b] = xa * s + xb * c;
    }
}

/* One head on the rows of one sequence; out has room at column `o`. */
static inline void q_head(pare_arena *a, qmat *out, const qmat *z, const pare_model *m,
                          const pare_attn *at, const pare_head *h, const pare_graph *g)
{
    const bool rotary = pare_model_is_rotary(m) && pare_has(&at->freqs);
    qmat q =
        pare_has(&at->wq) ? q_dense(a, z, &at->wq, h->q, h->dk, &at->bq) : q_new(a, z->n, h->dk);
    qmat k = q_dense(a, z, &at->wk, h->k, h->dk, &at->bk);
    const qmat v = q_dense(a, z, &at->wv, h->v, h->dv, &at->bv);
    for (size_t i = 0; i < z->n; i++)
        for (size_t c = 0; c < h->dk; c++) {
            if (!pare_has(&at->wq)) q.v[i * h->dk + c] = q_at(&at->bq, h->q + c);
        }
    for (size_t c = 0; at->kind == PARE_ATTN_MEANQ && c < h->dk; c++) {
        quad mean = 0;
        for (size_t i = 0; i < z->n; i++) mean += q.v[i * h->dk + c] / (quad)z->n;
        for (size_t i = 0; i < z->n; i++) q.v[i * h->dk + c] = mean;
    }
    for (size_t i = 0; rotary && i < z->n; i++) {
        q_turn(q.v + i * h->dk, h, &at->freqs, m->embedding.pos.interleaved, i);
        q_turn(k.v + i * h->dk, h, &at->freqs, m->embedding.pos.interleaved, i);
    }
    for (size_t i = 0; i < z->n; i++) {
        const pare_keys keys = pare_visible(&m->pattern, g, z->n, i);
        quad *const s = q_new(a, 1, keys.count).v, top = 0, sum = 0;
        for (size_t j = 0; j < keys.count; j++) {
            for (size_t c = 0; c < h->dk; c++)
                s[j] += q.v[i * h->dk + c] * k.v[pare_key(&keys, j) * h->dk + c];
            s[j] *= (quad)h->scale;
            if (j == 0 || s[j] > top) top = s[j];
        }
        for (size_t j = 0; j < keys.count; j++) sum += s[j] = q_exp(s[j] - top);
        for (size_t j = 0; j < keys.count; j++)
            for (size_t c = 0; c < h->dv; c++)
                out->v[i * out->d + h->o + c] += s[j] / sum * v.v[pare_key(&keys, j) * h->dv + c];
    }
}

static inline qmat q_heads(pare_arena *a, const qmat *z, const pare_model *m, const pare_attn *at,
                           const pare_graph *g)
{
    const pare_head *const last = &at->heads[at->nheads - 1];
    qmat o = q_new(a, z->n, last->o + last->dv);
    for (size_t h = 0; h < at->nheads; h++) q_head(a, &o, z, m, at, &at->heads[h], g);
    return o;
}

static inline qmat q_uniform(pare_arena *a, const qmat *x, const pare_model *m, const pare_graph *g)
{
    qmat y = q_new(a, x->n, x->d);
    for (size_t i = 0; i < x->n; i++) {
        const pare_keys keys = pare_visible(&m->pattern, g, x->n, i);
        for (size_t j = 0; j < keys.count; j++)
            for (size_t c = 0; c < x->d; c++)
                y.v[i * x->d + c] += x->v[pare_key(&keys, j) * x->d + c] / (quad)keys.count;
    }
    return y;
}

static inline qmat q_attn(pare_arena *a, const qmat *z, const pare_model *m, const pare_attn *at,
                          const pare_graph *g)
{
    qmat y = q_new(a, z->n, at->dout), t, u;
    for (size_t i = 0; i < z->n * at->dout; i++) y.v[i] = q_at(&at->bo, i % at->dout);
    switch (at->kind) {
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        return y;
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        u = q_heads(a, z, m, at, g);
        t = pare_has(&at->wo) ? q_dense(a, &u, &at->wo, 0, at->dout, NULL) : u;
        break;
    case PARE_ATTN_UNIFORM:
        u = q_dense(a, z, &at->mix, 0, at->dout, &at->bv);
        t = q_uniform(a, &u, m, g);
        break;
    case PARE_ATTN_LINEAR:
        t = q_dense(a, z, &at->matrix, 0, at->dout, NULL);
        break;
    case PARE_ATTN_AFFMIX:
        t = q_dense(a, z, &at->matrix, 0, at->dout, NULL);
        q_add(&y, &t);
        u = q_uniform(a, z, m, g);
        t = q_dense(a, &u, &at->mix, 0, at->dout, NULL);
        break;
    case PARE_ATTN_POOL: {
        u = q_heads(a, z, m, at, g);
        qmat both = q_new(a, z->n, z->d + u.d);
        for (size_t i = 0; i < z->n; i++)
            for (size_t c = 0; c < both.d; c++)
                both.v[i * both.d + c] = c < z->d ? z->v[i * z->d + c] : u.v[i * u.d + c - z->d];
        t = q_dense(a, &both, &at->matrix, 0, at->dout, NULL);
        break;
    }
    case PARE_ATTN_UMIX:
        u = *z;
        for (size_t j = 0; j + 1 < at->mix.rows / at->dout; j++) {
            t = q_dense(a, &u, &at->mix, j * at->dout, at->dout, NULL);
            q_add(&y, &t);
            u = q_uniform(a, &u, m, g);
        }
        t = q_dense(a, &u, &at->mix, at->mix.rows - at->dout, at->dout, NULL);
        break;
    }
    q_add(&y, &t);
    return y;
}

/* ---- the rest ------------------------------------------------------------------------------- */

static inline qmat q_ffn(pare_arena *a, const qmat *z, const pare_ffn *f)
{
    const pare_dense *const l = f->layers;
    if (f->kind == PARE_FFN_GATED) {
        qmat g = q_dense(a, z, &l[0].w, 0, l[0].w.rows, &l[0].b);
        const qmat u = q_dense(a, z, &l[1].w, 0, l[1].w.rows, &l[1].b);
        for (size_t i = 0; i < g.n * g.d; i++) g.v[i] = q_act(f->act, g.v[i]) * u.v[i];
        return q_dense(a, &g, &l[2].w, 0, l[2].w.rows, &l[2].b);
    }
    qmat x = *z;
    for (size_t i = 0; i < f->nlayers; i++) {
        x = q_dense(a, &x, &l[i].w, 0, l[i].w.rows, &l[i].b);
        for (size_t k = 0; i + 1 < f->nlayers && k < x.n * x.d; k++) x.v[k] = q_act(f->act, x.v[k]);
    }
    return x;
}

static inline void q_skip(pare_arena *a, qmat *y, const qmat *x, const pare_skip *s)
{
    if (s->kind == PARE_SKIP_NONE) return;
    qmat t = *x;
    if (s->kind == PARE_SKIP_DENSE) t = q_dense(a, x, &s->w, 0, s->w.rows, NULL);
    if (s->kind == PARE_SKIP_DIAGONAL) {
        t = q_new(a, x->n, x->d);
        for (size_t i = 0; i < x->n * x->d; i++) t.v[i] = x->v[i] * q_at(&s->w, i % x->d);
    }
    q_add(y, &t);
}

static inline qmat q_copy(pare_arena *a, const qmat *x)
{
    qmat y = q_new(a, x->n, x->d);
    memcpy(y.v, x->v, x->n * x->d * sizeof *y.v);
    return y;
}

static inline void q_positions(qmat *x, const pare_positions *p)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < x->d; k++) {
            quad s, c;
            if (p->kind == PARE_POS_LEARNED) x->v[i * x->d + k] += q_at(&p->table, i * x->d + k);
            if (p->kind != PARE_POS_SINUSOIDAL) continue;
            const quad power = (quad)(k / 2 * 2) / (quad)x->d * q_log((quad)p->base);
            q_sincos((quad)i / q_exp(power), &s, &c);
            x->v[i * x->d + k] += k % 2 ? c : s;
        }
}

/* Sequence `seq` of the input: its output rows. */
static inline qmat q_model(pare_arena *a, const pare_model *m, const pare_input *in, size_t seq)
{
    pare_graph graph;
    const pare_graph *g = NULL;
    const pare_embedding *const s = &m->embedding;
    if (m->pattern.kind == PARE_GRAPH) {
        assert_int_equal(pare_graph_complete(&graph, a, in->graph, &m->pattern, NULL), PARE_OK);
        g = &graph;
    }
    qmat x = q_new(a, in->tokens, s->width);
    for (size_t i = 0; i < x.n * x.d; i++) {
        const size_t row = seq * in->tokens + i / x.d, col = i % x.d;
        x.v[i] = s->ids ? q_at(&s->table, pare_token_row(s, in->ids[row]) * x.d + col)
                        : (quad)in->x[row * x.d + col];
    }
    if (!s->pos.after_map) q_positions(&x, &s->pos);
    if (pare_has(&s->map.w)) x = q_dense(a, &x, &s->map.w, 0, s->map.w.rows, &s->map.b);
    if (s->pos.after_map) q_positions(&x, &s->pos);
    q_norm(&x, &s->norm);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const at = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        if (at->kind != PARE_ATTN_NONE) {
            qmat z = q_copy(a, &x);
            q_norm(&z, &at->in_norm);
            qmat y = q_attn(a, &z, m, at, g);
            q_skip(a, &y, &x, &at->skip);
            q_norm(&y, &at->out_norm);
            x = y;
        }
        if (f->kind != PARE_FFN_NONE) {
            qmat z = q_copy(a, &x);
            q_norm(&z, &f->in_norm);
            qmat y = q_ffn(a, &z, f);
            q_skip(a, &y, &x, &f->skip);
            q_norm(&y, &f->out_norm);
            x = y;
        }
    }
    q_norm(&x, &m->head.norm);
    if (m->head.pool != PARE_POOL_NONE) {
        qmat y = q_new(a, 1, x.d);
        for (size_t i = 0; i < x.n * x.d; i++) {
            const size_t t = i / x.d, k = i % x.d;
            const quad v = x.v[i];
            if (m->head.pool == PARE_POOL_MEAN) y.v[k] += v / (quad)x.n;
            if (m->head.pool == PARE_POOL_MAX && (t == 0 || v > y.v[k])) y.v[k] = v;
            if (m->head.pool == PARE_POOL_FIRST && t == 0) y.v[k] = v;
            if (m->head.pool == PARE_POOL_LAST && t + 1 == x.n) y.v[k] = v;
        }
        x = y;
    }
    if (pare_has(&m->head.dense.w))
        x = q_dense(a, &x, &m->head.dense.w, 0, m->head.dense.w.rows, &m->head.dense.b);
    for (size_t i = 0; i < x.n * x.d; i++) x.v[i] = q_act(m->head.act, x.v[i]);
    const pare_weight whole = pare_head_weight_whole(a, m), *const w = &whole;
    if (pare_has(w)) x = q_dense(a, &x, w, 0, w->rows, &m->head.out.b);
    for (size_t i = 0; m->head.normalize && i < x.n; i++) {
        quad squares = 0;
        for (size_t k = 0; k < x.d; k++) squares += x.v[i * x.d + k] * x.v[i * x.d + k];
        for (size_t k = 0; k < x.d && squares > 0; k++) x.v[i * x.d + k] /= q_sqrt(squares);
    }
    return x;
}
#endif
