/* Does everything fit? Run after every load, import and reduction: what passes here can be run
 * without another thought. */
#include "scalar_ranges.h"
#include <pare/model.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct checker {
    pare_err *err;
    char at[64]; /* "blocks.3.attn": the tensors below it */
} checker;

typedef enum need { OPTIONAL, REQUIRED, FORBIDDEN } need;

static pare_status bad(const checker *c, const char *fmt, ...) PARE_PRINTF(2, 3);
static pare_status bad(const checker *c, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return pare_fail(c->err, PARE_ERR_INPUT, "%s: %s", c->at, text);
}

static pare_status want(const checker *c, const char *name, const pare_weight *w, size_t rows,
                        size_t cols, need n)
{
    if (!pare_has(w)) {
        if (n != REQUIRED) return PARE_OK;
        return bad(c, "tensor %s.%s is missing (must be [%zu, %zu])", c->at, name, rows, cols);
    }
    if (n == FORBIDDEN) return bad(c, "tensor %s.%s is there but has no meaning here", c->at, name);
    if (w->dtype != PARE_F32 && w->dtype != PARE_F64)
        return bad(c, "tensor %s.%s is %s, must be F32 or F64", c->at, name,
                   pare_dtype_name(w->dtype));
    if (w->rows != rows || w->cols != cols)
        return bad(c, "tensor %s.%s is [%zu, %zu], must be [%zu, %zu]", c->at, name, w->rows,
                   w->cols, rows, cols);
    return PARE_OK;
}

static pare_status number(const checker *c, scalar what, double v)
{
    return range_check(what, c->at, RANGE_NO_INDEX, v, c->err);
}

static pare_status entry(const checker *c, scalar what, size_t i, double v)
{
    return range_check(what, c->at, i, v, c->err);
}

static pare_status norm(const checker *c, const char *name, const pare_norm *n, size_t d)
{
    checker k = {.err = c->err};
    snprintf(k.at, sizeof k.at, "%.40s.%s", c->at, name);
    if (n->kind == PARE_NORM_NONE) return PARE_OK;
    const bool batch = n->kind == PARE_NORM_BATCH;
    const bool divides = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    pare_status st;
    if ((st = want(&k, "gain", &n->gain, 1, d, OPTIONAL)) ||
        (st = want(&k, "bias", &n->bias, 1, d, OPTIONAL)) ||
        (st = want(&k, "offset", &n->offset, 1, d, batch ? FORBIDDEN : OPTIONAL)) ||
        (st = want(&k, "mean", &n->mean, 1, d, batch ? REQUIRED : FORBIDDEN)) ||
        (st = want(&k, "var", &n->var, 1, d, batch ? REQUIRED : FORBIDDEN)) ||
        (st = number(&k, SCALAR_EPS, n->eps)) || (st = number(&k, SCALAR_SHIFT, n->shift)) ||
        (divides && (st = number(&k, SCALAR_DIVISOR, n->divisor))))
        return st;
    for (size_t i = 0; batch && i < d; i++) {
        const double v = pare_weight_at(&n->var, i);
        if ((st = entry(&k, SCALAR_VARIANCE, i, v)) || (st = entry(&k, SCALAR_ROOT, i, v + n->eps)))
            return st;
    }
    return PARE_OK;
}

static pare_status skip(const checker *c, const pare_skip *s, size_t din, size_t dout)
{
    switch (s->kind) {
    case PARE_SKIP_NONE:
        return want(c, "skip", &s->w, 0, 0, FORBIDDEN);
    case PARE_SKIP_IDENTITY:
        if (din != dout) return bad(c, "identity skip from width %zu to width %zu", din, dout);
        return want(c, "skip", &s->w, 0, 0, FORBIDDEN);
    case PARE_SKIP_DIAGONAL:
        if (din != dout) return bad(c, "diagonal skip from width %zu to width %zu", din, dout);
        return want(c, "skip", &s->w, 1, din, REQUIRED);
    case PARE_SKIP_DENSE:
        return want(c, "skip", &s->w, dout, din, REQUIRED);
    }
    return PARE_OK;
}

static bool has_heads(pare_attn_kind k)
{
    return pare_attn_has_softmax(k) || k == PARE_ATTN_POOL;
}

/* A head reads rows [at, at + n) of a packed matrix of `rows`. */
static bool inside(size_t at, size_t n, size_t rows)
{
    return at <= rows && n <= rows - at;
}

static bool overlap(size_t a, size_t na, size_t b, size_t nb)
{
    return a < b + nb && b < a + na;
}

/* Rotary positions turn rows in place: rows that two heads read must be turned the same way once.
 * Queries are never shared; keys only whole and with the same frequencies. */
static pare_status turns_are_clear(const checker *c, const pare_attn *a)
{
    for (size_t h = 0; h < a->nheads; h++)
        for (size_t g = 0; g < h; g++) {
            const pare_head *const x = &a->heads[h], *const y = &a->heads[g];
            const bool alike = x->k == y->k && x->dk == y->dk && x->planes == y->planes &&
                               (x->freq == y->freq || x->planes == 0);
            if (x->planes == 0 && y->planes == 0) continue;
            if (overlap(x->q, x->dk, y->q, y->dk))
                return bad(c, "heads %zu and %zu share rotary queries", g, h);
            if (overlap(x->k, x->dk, y->k, y->dk) && !alike)
                return bad(c, "heads %zu and %zu share keys but turn them differently", g, h);
        }
    return PARE_OK;
}

static void reach(size_t *end, size_t at, size_t n)
{
    if (at + n > *end) *end = at + n;
}

/* Rows that the heads read of wq, wk and wv: what a tensor that is missing would have to have. */
static void rows_read(size_t *q, size_t *k, size_t *v, const pare_attn *a)
{
    *q = *k = *v = 0;
    for (size_t h = 0; h < a->nheads; h++) {
        reach(q, a->heads[h].q, a->heads[h].dk);
        reach(k, a->heads[h].k, a->heads[h].dk);
        reach(v, a->heads[h].v, a->heads[h].dv);
    }
}

/* Rows behind the last head would be weights that nobody reads. */
static pare_status no_leftovers(const checker *c, const pare_attn *a, size_t q_rows)
{
    size_t q, k, v, freq = 0;
    rows_read(&q, &k, &v, a);
    for (size_t h = 0; h < a->nheads; h++)
        if (a->heads[h].planes) reach(&freq, a->heads[h].freq, a->heads[h].planes);
    if (q == q_rows && k == a->wk.rows && v == a->wv.rows && freq == a->freqs.cols) return PARE_OK;
    return bad(c,
               "the heads read %zu, %zu, %zu rows of wq, wk, wv and %zu of freqs, which have %zu, "
               "%zu, %zu and %zu",
               q, k, v, freq, q_rows, a->wk.rows, a->wv.rows, a->freqs.cols);
}

static pare_status heads(const checker *c, const pare_attn *a, bool rotary)
{
    if (a->nheads == 0) return bad(c, "attention kind %s without heads", pare_attn_name(a->kind));
    size_t columns = 0;
    const size_t q_rows = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    for (size_t h = 0; h < a->nheads; h++) {
        const pare_head *const d = &a->heads[h];
        if (d->dk == 0 || d->dv == 0) return bad(c, "head %zu has width 0", h);
        const pare_status st = entry(c, SCALAR_SCALE, h, d->scale);
        if (st) return st;
        if (!inside(d->q, d->dk, q_rows) || !inside(d->k, d->dk, a->wk.rows) ||
            !inside(d->v, d->dv, a->wv.rows))
            return bad(c, "head %zu reads beyond wq (%zu rows), wk (%zu) or wv (%zu)", h, q_rows,
                       a->wk.rows, a->wv.rows);
        /* Heads own their columns of wo in order: the proofs add their squares up. */
        if (d->o != columns)
            return bad(c, "columns of head %zu begin at %zu, must be %zu", h, d->o, columns);
        columns += d->dv;
        if (d->planes &&
            (!rotary || d->planes > d->dk / 2 || !inside(d->freq, d->planes, a->freqs.cols)))
            return bad(c, "head %zu turns %zu planes, but has width %zu and %zu frequencies", h,
                       d->planes, d->dk, a->freqs.cols);
    }
    const pare_status st = rotary ? turns_are_clear(c, a) : PARE_OK;
    return st ? st : no_leftovers(c, a, q_rows);
}

static size_t head_columns(const pare_attn *a)
{
    size_t n = 0;
    for (size_t h = 0; h < a->nheads; h++) n += a->heads[h].dv;
    return n;
}

static pare_status head_weights(const checker *c, const pare_attn *a, bool rotary)
{
    const bool queries = a->kind != PARE_ATTN_CONSTQ && a->kind != PARE_ATTN_POOL;
    size_t q, k, v;
    rows_read(&q, &k, &v, a);
    if (pare_has(&a->wq) || pare_has(&a->bq)) q = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    if (pare_has(&a->wk)) k = a->wk.rows;
    if (pare_has(&a->wv)) v = a->wv.rows;
    pare_status st;
    if ((st = want(c, "wq", &a->wq, q, a->din, queries ? REQUIRED : FORBIDDEN)) ||
        (st = want(c, "bq", &a->bq, 1, q, queries ? OPTIONAL : REQUIRED)) ||
        (st = want(c, "wk", &a->wk, k, a->din, REQUIRED)) ||
        (st = want(c, "bk", &a->bk, 1, a->wk.rows, OPTIONAL)) ||
        (st = want(c, "wv", &a->wv, v, a->din, REQUIRED)) ||
        (st = want(c, "bv", &a->bv, 1, a->wv.rows, OPTIONAL)) ||
        (st = want(c, "freqs", &a->freqs, 1, a->freqs.cols, rotary ? OPTIONAL : FORBIDDEN)))
        return st;
    if ((st = heads(c, a, rotary))) return st;
    for (size_t i = 0; pare_has(&a->freqs) && i < a->freqs.cols; i++)
        if ((st = entry(c, SCALAR_FREQUENCY, i, pare_weight_at(&a->freqs, i)))) return st;
    if (pare_has(&a->freqs) && !queries)
        return bad(c, "kind %s has one query for all positions: its keys cannot turn",
                   pare_attn_name(a->kind));
    if (a->kind == PARE_ATTN_POOL) return want(c, "wo", &a->wo, 0, 0, FORBIDDEN);
    if (!pare_has(&a->wo) && head_columns(a) != a->dout)
        return bad(c, "without wo the heads are the output: %zu columns, must be %zu",
                   head_columns(a), a->dout);
    return want(c, "wo", &a->wo, a->dout, head_columns(a), OPTIONAL);
}

static pare_status replacement(const checker *c, const pare_attn *a)
{
    const pare_attn_kind k = a->kind;
    const size_t pooled = a->din + (k == PARE_ATTN_POOL ? head_columns(a) : 0);
    const bool matrix = k == PARE_ATTN_LINEAR || k == PARE_ATTN_AFFMIX || k == PARE_ATTN_POOL;
    const bool mix = k == PARE_ATTN_UNIFORM || k == PARE_ATTN_AFFMIX || k == PARE_ATTN_UMIX;
    const size_t powers = k == PARE_ATTN_UMIX && a->dout ? a->mix.rows / a->dout : 1;
    const need bias = k == PARE_ATTN_CONST ? REQUIRED : OPTIONAL;
    pare_status st;
    if ((st = want(c, "matrix", &a->matrix, a->dout, pooled, matrix ? REQUIRED : FORBIDDEN)) ||
        (st = want(c, "mix", &a->mix, a->dout * (powers ? powers : 1), a->din,
                   mix ? REQUIRED : FORBIDDEN)) ||
        (st = want(c, "bo", &a->bo, 1, a->dout, bias)))
        return st;
    if (has_heads(k)) return PARE_OK;
    if ((st = want(c, "wq", &a->wq, 0, 0, FORBIDDEN)) ||
        (st = want(c, "wk", &a->wk, 0, 0, FORBIDDEN)) ||
        (st = want(c, "wv", &a->wv, 0, 0, FORBIDDEN)) ||
        (st = want(c, "wo", &a->wo, 0, 0, FORBIDDEN)) ||
        (st = want(c, "bq", &a->bq, 0, 0, FORBIDDEN)) ||
        (st = want(c, "bk", &a->bk, 0, 0, FORBIDDEN)) ||
        (st = want(c, "freqs", &a->freqs, 0, 0, FORBIDDEN)))
        return st;
    return want(c, "bv", &a->bv, 1, a->dout, k == PARE_ATTN_UNIFORM ? OPTIONAL : FORBIDDEN);
}

static pare_status attention(const checker *c, const pare_attn *a, const pare_model *m, size_t d)
{
    const bool rotary = pare_model_is_rotary(m);
    pare_status st;
    if (a->kind == PARE_ATTN_NONE) return PARE_OK;
    if (a->din != d) return bad(c, "reads width %zu, but the stream has width %zu", a->din, d);
    if (a->dout == 0) return bad(c, "writes width 0");
    if (a->kind == PARE_ATTN_MEANQ && m->pattern.kind != PARE_FULL)
        return bad(c, "kind meanq needs the full pattern");
    if (a->kind == PARE_ATTN_POLY && (st = number(c, SCALAR_TOLERANCE, a->tolerance))) return st;
    if (has_heads(a->kind) && (st = head_weights(c, a, rotary))) return st;
    if ((st = replacement(c, a)) || (st = norm(c, "in_norm", &a->in_norm, a->din)) ||
        (st = norm(c, "out_norm", &a->out_norm, a->dout)))
        return st;
    return skip(c, &a->skip, a->din, a->dout);
}

static pare_status mlp(const checker *c, const pare_ffn *f)
{
    size_t d = f->din;
    for (size_t l = 0; l < f->nlayers; l++) {
        char name[40];
        const size_t out = l + 1 == f->nlayers ? f->dout : f->layers[l].w.rows;
        pare_status st;
        snprintf(name, sizeof name, "%zu.weight", l);
        if ((st = want(c, name, &f->layers[l].w, out, d, REQUIRED))) return st;
        snprintf(name, sizeof name, "%zu.bias", l);
        if ((st = want(c, name, &f->layers[l].b, 1, out, OPTIONAL))) return st;
        d = out;
    }
    return PARE_OK;
}

static pare_status gated(const checker *c, const pare_ffn *f)
{
    if (f->nlayers != 3) return bad(c, "a gated ffn has 3 layers, not %zu", f->nlayers);
    const size_t h = f->layers[0].w.rows;
    const pare_dense *const l = f->layers;
    pare_status st;
    if ((st = want(c, "0.weight", &l[0].w, h, f->din, REQUIRED)) ||
        (st = want(c, "0.bias", &l[0].b, 1, h, OPTIONAL)) ||
        (st = want(c, "1.weight", &l[1].w, h, f->din, REQUIRED)) ||
        (st = want(c, "1.bias", &l[1].b, 1, h, OPTIONAL)) ||
        (st = want(c, "2.weight", &l[2].w, f->dout, h, REQUIRED)))
        return st;
    return want(c, "2.bias", &l[2].b, 1, f->dout, OPTIONAL);
}

static pare_status ffn(const checker *c, const pare_ffn *f, size_t d)
{
    pare_status st;
    if (f->kind == PARE_FFN_NONE) return PARE_OK;
    if (f->din != d) return bad(c, "reads width %zu, but the stream has width %zu", f->din, d);
    if (f->nlayers == 0 || f->dout == 0) return bad(c, "no layers");
    if ((st = f->kind == PARE_FFN_MLP ? mlp(c, f) : gated(c, f))) return st;
    if ((st = norm(c, "in_norm", &f->in_norm, f->din)) ||
        (st = norm(c, "out_norm", &f->out_norm, f->dout)))
        return st;
    return skip(c, &f->skip, f->din, f->dout);
}

static pare_status positions(const checker *c, const pare_model *m)
{
    const pare_positions *const p = &m->stem.pos;
    const size_t d = p->after_map ? pare_model_width(m, 0) : m->stem.width;
    const bool table = p->kind == PARE_POS_LEARNED;
    if (table && (m->context == 0 || m->context > p->table.rows))
        return bad(c, "context %zu, but tensor stem.positions has %zu rows", m->context,
                   p->table.rows);
    if (p->kind == PARE_POS_SINUSOIDAL) {
        const pare_status st = number(c, SCALAR_BASE, p->base);
        if (st) return st;
    }
    return want(c, "positions", &p->table, p->table.rows, d, table ? REQUIRED : FORBIDDEN);
}

static pare_status stem(const pare_model *m, pare_err *err)
{
    const checker c = {.err = err, .at = "stem"};
    const pare_stem *const s = &m->stem;
    const size_t d = pare_model_width(m, 0);
    pare_status st;
    if (s->width == 0) return bad(&c, "width is 0");
    if (s->ids && s->vocab == 0) return bad(&c, "ids without a vocabulary");
    if ((st = want(&c, "embedding", &s->embedding, s->vocab, s->width,
                   s->ids ? REQUIRED : FORBIDDEN)) ||
        (st = want(&c, "map.weight", &s->map.w, d, s->width, OPTIONAL)) ||
        (st = want(&c, "map.bias", &s->map.b, 1, d, pare_has(&s->map.w) ? OPTIONAL : FORBIDDEN)) ||
        (st = positions(&c, m)))
        return st;
    return norm(&c, "norm", &s->norm, d);
}

static pare_status top(const pare_model *m, size_t d, pare_err *err)
{
    const checker c = {.err = err, .at = "top"};
    const pare_top *const t = &m->top;
    const size_t inner = pare_has(&t->dense.w) ? t->dense.w.rows : d;
    const size_t out = t->out.w.rows;
    pare_status st;
    if (t->tied && (!m->stem.ids || inner != m->stem.width))
        return bad(&c, "a tied head needs an embedding of width %zu", inner);
    if ((st = want(&c, "dense.weight", &t->dense.w, inner, d, OPTIONAL)) ||
        (st = want(&c, "dense.bias", &t->dense.b, 1, inner,
                   pare_has(&t->dense.w) ? OPTIONAL : FORBIDDEN)) ||
        (st = want(&c, "out.weight", &t->out.w, out, inner, t->tied ? FORBIDDEN : OPTIONAL)) ||
        (st = want(&c, "out.bias", &t->out.b, 1, t->tied ? m->stem.vocab : out,
                   t->tied || pare_has(&t->out.w) ? OPTIONAL : FORBIDDEN)))
        return st;
    return norm(&c, "norm", &t->norm, d);
}

static pare_status all_finite(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    (void)self, (void)vector;
    size_t where = 0;
    if (!pare_has(w) || pare_weight_finite(w, &where)) return PARE_OK;
    return pare_fail(err, PARE_ERR_NONFINITE, "tensor %s holds %g at [%zu, %zu]", name,
                     pare_weight_at(w, where), where / w->cols, where % w->cols);
}

static pare_status pattern(const pare_model *m, pare_err *err)
{
    const checker c = {.err = err, .at = "pattern"};
    if (m->pattern.kind == PARE_WINDOW && m->pattern.window == 0)
        return bad(&c, "window is 0, must be at least 1");
    if (m->pattern.expander_degree % 2 || m->pattern.expander_degree > PARE_MAX_EXPANDER)
        return bad(&c, "expander degree is %zu, must be even and at most %d",
                   m->pattern.expander_degree, PARE_MAX_EXPANDER);
    return PARE_OK;
}

pare_status pare_model_check(const pare_model *m, pare_err *err)
{
    pare_status st;
    if ((st = pattern(m, err)) || (st = stem(m, err))) return st;
    for (size_t b = 0; b < m->nblocks; b++) {
        checker c = {.err = err};
        snprintf(c.at, sizeof c.at, "blocks.%zu.attn", b);
        if ((st = attention(&c, &m->blocks[b].attn, m, pare_model_width(m, b)))) return st;
        const size_t d = m->blocks[b].attn.kind == PARE_ATTN_NONE ? pare_model_width(m, b)
                                                                  : m->blocks[b].attn.dout;
        snprintf(c.at, sizeof c.at, "blocks.%zu.ffn", b);
        if ((st = ffn(&c, &m->blocks[b].ffn, d))) return st;
    }
    if ((st = top(m, pare_model_width(m, m->nblocks), err))) return st;
    return pare_model_visit((pare_model *)m, all_finite, NULL, err);
}
