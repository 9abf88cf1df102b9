/* model_check.c - do the shapes and numbers of a model fit together?
 *
 * Runs after every load, import and reduction; a model that passes can be run without further
 * checks. The first thing that does not fit is reported; after it the checks do nothing
 * (base/work.h). */
#include "scalar_ranges.h"
#include "base/work.h"
#include "linalg/matrix.h"
#include "linalg/packed.h"
#include "model_facts.h"
#include "shared_rows.h"
#include <stdarg.h>
#include <stdio.h>

typedef struct checker {
    pare_work *work;
    char at[64]; /* the part that is checked, "blocks.3.attn": prefix of its tensors */
} checker;

typedef enum presence { OPTIONAL, REQUIRED, FORBIDDEN } presence;

static void refuse(const checker *c, const char *fmt, ...) PARE_PRINTF(2, 3);
static void refuse(const checker *c, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pare_work_fail(c->work, PARE_ERR_INPUT, "%s: %s", c->at, text);
}

static void check_weight(const checker *c, const char *name, const pare_weight *w, size_t rows,
                         size_t cols, presence p)
{
    if (!pare_has(w)) {
        if (p == REQUIRED)
            refuse(c, "tensor %s.%s is missing (must be [%zu, %zu])", c->at, name, rows, cols);
    } else if (p == FORBIDDEN) {
        refuse(c, "tensor %s.%s is there but has no meaning here", c->at, name);
    } else if (w->dtype != PARE_F32 && w->dtype != PARE_F64 && !packed_of(w)) {
        refuse(c, "tensor %s.%s is %s, must be F32 or F64", c->at, name, pare_dtype_name(w->dtype));
    } else if (w->rows != rows || w->cols != cols) {
        refuse(c, "tensor %s.%s is [%zu, %zu], must be [%zu, %zu]", c->at, name, w->rows, w->cols,
               rows, cols);
    }
}

/* index: of an entry, or RANGE_NO_INDEX. */
static void check_range(const checker *c, scalar what, size_t index, double v)
{
    if (!c->work->st) c->work->st = range_check(what, c->at, index, v, c->work->err);
}

static void check_norm(const checker *parent, const char *name, const pare_norm *n, size_t d)
{
    checker c = {.work = parent->work};
    snprintf(c.at, sizeof c.at, "%.40s.%s", parent->at, name);
    if (n->kind == PARE_NORM_NONE) return;
    const bool batch = n->kind == PARE_NORM_BATCH;
    const bool divides = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
    check_weight(&c, "gain", &n->gain, 1, d, OPTIONAL);
    check_weight(&c, "bias", &n->bias, 1, d, OPTIONAL);
    check_weight(&c, "offset", &n->offset, 1, d, batch ? FORBIDDEN : OPTIONAL);
    check_weight(&c, "mean", &n->mean, 1, d, batch ? REQUIRED : FORBIDDEN);
    check_weight(&c, "var", &n->var, 1, d, batch ? REQUIRED : FORBIDDEN);
    check_range(&c, SCALAR_EPS, RANGE_NO_INDEX, n->eps);
    check_range(&c, SCALAR_SHIFT, RANGE_NO_INDEX, n->shift);
    if (divides) check_range(&c, SCALAR_DIVISOR, RANGE_NO_INDEX, n->divisor);
    for (size_t i = 0; batch && i < d && !c.work->st; i++) {
        const double v = pare_weight_at(&n->var, i);
        check_range(&c, SCALAR_VARIANCE, i, v);
        check_range(&c, SCALAR_ROOT, i, v + n->eps);
    }
}

static void check_skip(const checker *c, const pare_skip *s, size_t din, size_t dout)
{
    const bool diagonal = s->kind == PARE_SKIP_DIAGONAL;
    if ((diagonal || s->kind == PARE_SKIP_IDENTITY) && din != dout)
        refuse(c, "%s skip from width %zu to width %zu", diagonal ? "diagonal" : "identity", din,
               dout);
    if (diagonal)
        check_weight(c, "skip", &s->w, 1, din, REQUIRED);
    else if (s->kind == PARE_SKIP_DENSE)
        check_weight(c, "skip", &s->w, dout, din, REQUIRED);
    else
        check_weight(c, "skip", &s->w, 0, 0, FORBIDDEN);
}

/* ---- attention ------------------------------------------------------------------------------- */

static bool has_heads(pare_attn_kind k)
{
    return pare_attn_has_softmax(k) || k == PARE_ATTN_POOL;
}

/* A head reads rows [at, at + n) of a packed matrix of `rows`. */
static bool is_inside(size_t at, size_t n, size_t rows)
{
    return at <= rows && n <= rows - at;
}

static bool overlap(size_t a, size_t na, size_t b, size_t nb)
{
    return a < b + nb && b < a + na;
}

static void extend(size_t *end, size_t at, size_t n)
{
    if (at + n > *end) *end = at + n;
}

/* Rows that the heads read of wq, wk and wv: what a missing tensor would have to have. */
static void rows_read(size_t *q, size_t *k, size_t *v, const pare_attn *a)
{
    *q = *k = *v = 0;
    for (size_t h = 0; h < a->nheads; h++) {
        extend(q, a->heads[h].q, a->heads[h].dk);
        extend(k, a->heads[h].k, a->heads[h].dk);
        extend(v, a->heads[h].v, a->heads[h].dv);
    }
}

static size_t head_columns(const pare_attn *a)
{
    size_t n = 0;
    for (size_t h = 0; h < a->nheads; h++) n += a->heads[h].dv;
    return n;
}

static void check_heads(const checker *c, const pare_attn *a, bool rotary)
{
    const size_t q_rows = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    size_t columns = 0, q, k, v, freq = 0;
    if (a->nheads == 0) refuse(c, "attention kind %s without heads", pare_attn_name(a->kind));
    for (size_t h = 0; h < a->nheads && !c->work->st; h++) {
        const pare_head *const d = &a->heads[h];
        if (d->dk == 0 || d->dv == 0) refuse(c, "head %zu has width 0", h);
        check_range(c, SCALAR_SCALE, h, d->scale);
        if (!is_inside(d->q, d->dk, q_rows) || !is_inside(d->k, d->dk, a->wk.rows) ||
            !is_inside(d->v, d->dv, a->wv.rows))
            refuse(c, "head %zu reads beyond wq (%zu rows), wk (%zu) or wv (%zu)", h, q_rows,
                   a->wk.rows, a->wv.rows);
        /* Heads own their columns of wo in order: the proofs add their squares up. */
        if (d->o != columns)
            refuse(c, "columns of head %zu begin at %zu, must be %zu", h, d->o, columns);
        columns += d->dv;
        if (d->planes &&
            (!rotary || d->planes > d->dk / 2 || !is_inside(d->freq, d->planes, a->freqs.cols)))
            refuse(c, "head %zu turns %zu planes, but has width %zu and %zu frequencies", h,
                   d->planes, d->dk, a->freqs.cols);
        if (d->planes) extend(&freq, d->freq, d->planes);
    }
    /* Rotary positions rotate rows in place, so rows that two heads read must be rotated the same
     * way once. Queries are never shared; keys only whole and with the same frequencies. */
    for (size_t h = 0; rotary && h < a->nheads; h++)
        for (size_t g = 0; g < h; g++) {
            const pare_head *const x = &a->heads[h], *const y = &a->heads[g];
            const bool same = x->k == y->k && x->dk == y->dk && x->planes == y->planes &&
                              (x->freq == y->freq || x->planes == 0);
            if (x->planes == 0 && y->planes == 0) continue;
            if (overlap(x->q, x->dk, y->q, y->dk))
                refuse(c, "heads %zu and %zu share rotary queries", g, h);
            if (overlap(x->k, x->dk, y->k, y->dk) && !same)
                refuse(c, "heads %zu and %zu share keys but turn them differently", g, h);
        }
    /* Rows behind the last head would be weights that nobody reads. */
    rows_read(&q, &k, &v, a);
    if (q != q_rows || k != a->wk.rows || v != a->wv.rows || freq != a->freqs.cols)
        refuse(c,
               "the heads read %zu, %zu, %zu rows of wq, wk, wv and %zu of freqs, which have %zu, "
               "%zu, %zu and %zu",
               q, k, v, freq, q_rows, a->wk.rows, a->wv.rows, a->freqs.cols);
}

static void check_head_weights(const checker *c, const pare_attn *a, bool rotary)
{
    const bool queries = a->kind != PARE_ATTN_CONSTQ && a->kind != PARE_ATTN_POOL;
    size_t q, k, v;
    rows_read(&q, &k, &v, a);
    if (pare_has(&a->wq) || pare_has(&a->bq)) q = pare_has(&a->wq) ? a->wq.rows : a->bq.cols;
    if (pare_has(&a->wk)) k = a->wk.rows;
    if (pare_has(&a->wv)) v = a->wv.rows;
    check_weight(c, "wq", &a->wq, q, a->din, queries ? REQUIRED : FORBIDDEN);
    check_weight(c, "bq", &a->bq, 1, q, queries ? OPTIONAL : REQUIRED);
    check_weight(c, "wk", &a->wk, k, a->din, REQUIRED);
    check_weight(c, "bk", &a->bk, 1, a->wk.rows, OPTIONAL);
    check_weight(c, "wv", &a->wv, v, a->din, REQUIRED);
    check_weight(c, "bv", &a->bv, 1, a->wv.rows, OPTIONAL);
    check_weight(c, "freqs", &a->freqs, 1, a->freqs.cols, rotary ? OPTIONAL : FORBIDDEN);
    if (!c->work->st) check_heads(c, a, rotary);
    for (size_t i = 0; !c->work->st && pare_has(&a->freqs) && i < a->freqs.cols; i++)
        check_range(c, SCALAR_FREQUENCY, i, pare_weight_at(&a->freqs, i));
    if (pare_has(&a->freqs) && !queries)
        refuse(c, "kind %s has one query for all positions: its keys cannot turn",
               pare_attn_name(a->kind));
    const bool pool = a->kind == PARE_ATTN_POOL;
    if (!pool && !pare_has(&a->wo) && head_columns(a) != a->dout)
        refuse(c, "without wo the heads are the output: %zu columns, must be %zu", head_columns(a),
               a->dout);
    check_weight(c, "wo", &a->wo, a->dout, head_columns(a), pool ? FORBIDDEN : OPTIONAL);
}

/* The weights of kinds that stand in the place of softmax attention. */
static void check_replacement(const checker *c, const pare_attn *a)
{
    const pare_attn_kind k = a->kind;
    const size_t pooled = a->din + (k == PARE_ATTN_POOL ? head_columns(a) : 0);
    const bool matrix = k == PARE_ATTN_LINEAR || k == PARE_ATTN_AFFMIX || k == PARE_ATTN_POOL;
    const bool mix = k == PARE_ATTN_UNIFORM || k == PARE_ATTN_AFFMIX || k == PARE_ATTN_UMIX;
    const size_t powers = k == PARE_ATTN_UMIX && a->dout ? a->mix.rows / a->dout : 1;
    check_weight(c, "matrix", &a->matrix, a->dout, pooled, matrix ? REQUIRED : FORBIDDEN);
    check_weight(c, "mix", &a->mix, a->dout * (powers ? powers : 1), a->din,
                 mix ? REQUIRED : FORBIDDEN);
    check_weight(c, "bo", &a->bo, 1, a->dout, k == PARE_ATTN_CONST ? REQUIRED : OPTIONAL);
    if (has_heads(k)) return;
    check_weight(c, "wq", &a->wq, 0, 0, FORBIDDEN);
    check_weight(c, "wk", &a->wk, 0, 0, FORBIDDEN);
    check_weight(c, "wv", &a->wv, 0, 0, FORBIDDEN);
    check_weight(c, "wo", &a->wo, 0, 0, FORBIDDEN);
    check_weight(c, "bq", &a->bq, 0, 0, FORBIDDEN);
    check_weight(c, "bk", &a->bk, 0, 0, FORBIDDEN);
    check_weight(c, "freqs", &a->freqs, 0, 0, FORBIDDEN);
    check_weight(c, "bv", &a->bv, 1, a->dout, k == PARE_ATTN_UNIFORM ? OPTIONAL : FORBIDDEN);
}

static void check_attention(const checker *c, const pare_attn *a, const pare_model *m, size_t d)
{
    if (a->kind == PARE_ATTN_NONE) return;
    if (a->din != d) refuse(c, "reads width %zu, but the stream has width %zu", a->din, d);
    if (a->dout == 0) refuse(c, "writes width 0");
    if (a->kind == PARE_ATTN_MEANQ && m->pattern.kind != PARE_FULL)
        refuse(c, "kind meanq needs the full pattern");
    if (a->kind == PARE_ATTN_POLY) check_range(c, SCALAR_TOLERANCE, RANGE_NO_INDEX, a->tolerance);
    if (has_heads(a->kind)) check_head_weights(c, a, pare_model_is_rotary(m));
    check_replacement(c, a);
    check_norm(c, "in_norm", &a->in_norm, a->din);
    check_norm(c, "out_norm", &a->out_norm, a->dout);
    check_skip(c, &a->skip, a->din, a->dout);
}

/* ---- the other layers ------------------------------------------------------------------------ */

static void check_ffn(const checker *c, const pare_ffn *f, size_t d)
{
    const bool gated = f->kind == PARE_FFN_GATED; /* layers: gate, up, down */
    if (f->kind == PARE_FFN_NONE) return;
    if (f->din != d) refuse(c, "reads width %zu, but the stream has width %zu", f->din, d);
    if (f->nlayers == 0 || f->dout == 0) refuse(c, "no layers");
    if (gated && f->nlayers != 3) refuse(c, "a gated ffn has 3 layers, not %zu", f->nlayers);
    size_t in = f->din;
    for (size_t l = 0; l < f->nlayers && !c->work->st; l++) {
        char name[40];
        const size_t hidden = f->layers[gated ? 0 : l].w.rows;
        const size_t out = l + 1 == f->nlayers ? f->dout : hidden;
        snprintf(name, sizeof name, "%zu.weight", l);
        check_weight(c, name, &f->layers[l].w, out, in, REQUIRED);
        snprintf(name, sizeof name, "%zu.bias", l);
        check_weight(c, name, &f->layers[l].b, 1, out, OPTIONAL);
        if (!(gated && l == 0)) in = out; /* gate and up both read the input */
    }
    check_norm(c, "in_norm", &f->in_norm, f->din);
    check_norm(c, "out_norm", &f->out_norm, f->dout);
    check_skip(c, &f->skip, f->din, f->dout);
}

static pare_status check_finite(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    (void)self, (void)vector;
    size_t where = 0;
    if (!pare_has(w) || pare_weight_finite(w, &where)) return PARE_OK;
    return pare_fail(err, PARE_ERR_NONFINITE, "tensor %s holds %g at [%zu, %zu]", name,
                     pare_weight_at(w, where), where / w->cols, where % w->cols);
}

/* Those that share have the last row, the others theirs in order. */
static void check_rows(const checker *c, const pare_embedding *s)
{
    size_t next = 0;
    for (size_t id = 0; s->rows && !c->work->st && id < s->vocab; id++)
        if (!pare_token_shares(s, id) && s->rows[id] != next++)
            refuse(c, "token %zu has row %u, must have row %zu or the last of %zu", id, s->rows[id],
                   next - 1, s->table.rows);
    if (s->rows && next + 1 != s->table.rows)
        refuse(c, "%zu rows and one that tokens share, must be %zu", next, s->table.rows);
}

pare_status pare_model_check(const pare_model *m, pare_err *err)
{
    pare_work w = {.err = err};
    const checker pattern = {.work = &w, .at = "pattern"};
    if (m->pattern.kind == PARE_WINDOW && m->pattern.window == 0)
        refuse(&pattern, "window is 0, must be at least 1");
    if (m->pattern.expander_degree % 2 || m->pattern.expander_degree > PARE_MAX_EXPANDER)
        refuse(&pattern, "expander degree is %zu, must be even and at most %d",
               m->pattern.expander_degree, PARE_MAX_EXPANDER);
    const checker embedding = {.work = &w, .at = "embedding"};
    const pare_embedding *const s = &m->embedding;
    const pare_positions *const p = &s->pos;
    const size_t width = pare_model_width(m, 0);
    const bool table = p->kind == PARE_POS_LEARNED;
    if (s->width == 0) refuse(&embedding, "width is 0");
    if (s->ids && s->vocab == 0) refuse(&embedding, "ids without a vocabulary");
    check_weight(&embedding, "embedding", &s->table, s->rows ? s->table.rows : s->vocab, s->width,
                 s->ids ? REQUIRED : FORBIDDEN);
    check_rows(&embedding, s);
    check_weight(&embedding, "map.weight", &s->map.w, width, s->width, OPTIONAL);
    check_weight(&embedding, "map.bias", &s->map.b, 1, width,
                 pare_has(&s->map.w) ? OPTIONAL : FORBIDDEN);
    if (table && (m->context == 0 || m->context > p->table.rows))
        refuse(&embedding, "context %zu, but tensor embedding.positions has %zu rows", m->context,
               p->table.rows);
    if (p->kind == PARE_POS_SINUSOIDAL)
        check_range(&embedding, SCALAR_BASE, RANGE_NO_INDEX, p->base);
    check_weight(&embedding, "positions", &p->table, p->table.rows, p->after_map ? width : s->width,
                 table ? REQUIRED : FORBIDDEN);
    check_norm(&embedding, "norm", &s->norm, width);
    for (size_t b = 0; b < m->nblocks && !w.st; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const size_t d = pare_model_width(m, b);
        checker c = {.work = &w};
        snprintf(c.at, sizeof c.at, "blocks.%zu.attn", b);
        check_attention(&c, a, m, d);
        snprintf(c.at, sizeof c.at, "blocks.%zu.ffn", b);
        check_ffn(&c, &m->blocks[b].ffn, a->kind == PARE_ATTN_NONE ? d : a->dout);
    }
    const checker top = {.work = &w, .at = "head"};
    const pare_output_head *const t = &m->head;
    const size_t last = pare_model_width(m, m->nblocks), out = t->out.w.rows;
    const size_t inner = pare_has(&t->dense.w) ? t->dense.w.rows : last;
    if (t->tied && (!s->ids || inner != s->width))
        refuse(&top, "a tied head needs an embedding of width %zu", inner);
    if (t->tied && s->rows && t->normalize)
        refuse(&top, "outputs that are normalized, of a tied head of which tokens share a row");
    check_weight(&top, "dense.weight", &t->dense.w, inner, last, OPTIONAL);
    check_weight(&top, "dense.bias", &t->dense.b, 1, inner,
                 pare_has(&t->dense.w) ? OPTIONAL : FORBIDDEN);
    check_weight(&top, "out.weight", &t->out.w, out, inner, t->tied ? FORBIDDEN : OPTIONAL);
    check_weight(&top, "out.bias", &t->out.b, 1, t->tied ? s->vocab : out,
                 t->tied || pare_has(&t->out.w) ? OPTIONAL : FORBIDDEN);
    check_norm(&top, "norm", &t->norm, last);
    return w.st ? w.st : pare_model_each_weight((pare_model *)m, check_finite, NULL, err);
}
