/* forward_layers.c - embedding, feed-forward branches and head of a forward pass. */
#include "model_facts.h"
#include "forward_parts.h"
#include "linalg/elementary.h"
#include "shared_rows.h"
#include <math.h>
#include <pare/run.h>
#include <string.h>

/* ---- embedding ------------------------------------------------------------------------------- */

typedef struct embedding_ctx {
    const pare_embedding *s;
    const pare_input *in;
    const sequence_layout *layout;
    size_t first;        /* row of the input where the rows at hand begin */
    size_t d;            /* width of what positions are added to */
    const double *power; /* sinusoidal: base^(2i/d) of the pair i of columns */
} embedding_ctx;

static void add_position(const void *self, size_t i, double *v)
{
    const embedding_ctx *const c = self;
    const pare_positions *const p = &c->s->pos;
    const size_t pos = sequence_position(c->layout, c->first + i);
    if (p->kind == PARE_POS_LEARNED)
        for (size_t j = 0; j < c->d; j++) v[j] += pare_weight_at(&p->table, pos * c->d + j);
    if (p->kind == PARE_POS_SINUSOIDAL) {
        for (size_t j = 0; j < c->d; j += 2) {
            double sine, cosine;
            pare_sincos((double)pos / c->power[j / 2], &sine, &cosine);
            v[j] += sine;
            if (j + 1 < c->d) v[j + 1] += cosine;
        }
    }
}

static void input_row(const void *self, size_t i, double *v)
{
    const embedding_ctx *const c = self;
    const size_t row = c->first + i, d = c->s->width;
    if (c->s->ids) {
        const size_t at = pare_token_row(c->s, c->in->ids[row]) * d;
        for (size_t j = 0; j < d; j++) v[j] = pare_weight_at(&c->s->table, at + j);
    } else {
        memcpy(v, c->in->x + row * d, d * sizeof *v);
    }
    if (!c->s->pos.after_map) add_position(c, i, v);
}

void forward_embedding(pass *p, rows *x, const pare_input *in)
{
    const pare_embedding *const s = &p->m->embedding;
    rows_ctx *const c = &p->ctx;
    embedding_ctx e = {s, in, p->layout, p->row + p->first, s->width, NULL};
    if (s->pos.kind == PARE_POS_SINUSOIDAL) {
        const size_t d = s->pos.after_map ? x->d : s->width;
        double *const power = rows_scratch(c, d / 2 + 1, sizeof *power);
        for (size_t j = 0; power && j < d; j += 2)
            power[j / 2] = pare_power(s->pos.base, (double)j, (double)d);
        e.power = power;
    }
    const bool mapped = pare_has(&s->map.w);
    rows raw = mapped ? rows_new(c, x->t, x->n, s->width) : *x;
    rows_each(&raw, &raw, input_row, &e, c);
    if (mapped) rows_dense(x, &raw, &s->map.w, &s->map.b, c);
    e.d = x->d;
    if (s->pos.after_map) rows_each(x, x, add_position, &e, c);
    rows_norm(x, x, &s->norm, c);
}

/* ---- feed-forward ---------------------------------------------------------------------------- */

void ffn_branch(pass *p, rows *y, const rows *z, const pare_ffn *f)
{
    rows_ctx *const c = &p->ctx;
    const pare_dense *const layer = f->layers, *const last = &layer[f->nlayers - 1];
    rows x = *z;
    if (f->kind == PARE_FFN_GATED) {
        x = rows_new(c, z->t, z->n, layer[0].w.rows);
        rows up = rows_new(c, z->t, z->n, layer[1].w.rows);
        rows_dense(&x, z, &layer[0].w, &layer[0].b, c);
        rows_dense(&up, z, &layer[1].w, &layer[1].b, c);
        rows_act(&x, &up, f->act, c);
    } else {
        for (size_t l = 0; l + 1 < f->nlayers; l++) {
            rows h = rows_new(c, z->t, z->n, layer[l].w.rows);
            rows_dense(&h, &x, &layer[l].w, &layer[l].b, c);
            rows_act(&h, NULL, f->act, c);
            x = h;
        }
    }
    rows_dense(y, &x, &last->w, &last->b, c);
}

/* ---- head ------------------------------------------------------------------------------------ */

typedef struct pool_ctx {
    const pass *p;
    const rows *x;
    pare_pool kind;
} pool_ctx;

static double entry(const rows *x, size_t at)
{
    return x->t == PARE_F64 ? ((const double *)x->v)[at] : (double)((const float *)x->v)[at];
}

static void pool_row(const void *self, size_t i, double *v)
{
    const pool_ctx *const c = self;
    const rows *const x = c->x;
    const size_t first = pass_row(c->p, i), n = pass_tokens(c->p, i);
    const bool mean = c->kind == PARE_POOL_MEAN, most = c->kind == PARE_POOL_MAX;
    rows_load(v, x, c->kind == PARE_POOL_LAST ? first + n - 1 : first);
    for (size_t t = 1; (mean || most) && t < n; t++) {
        const size_t at = (first + t) * x->d;
        for (size_t j = 0; mean && j < x->d; j++) v[j] += entry(x, at + j);
        for (size_t j = 0; most && j < x->d; j++) /* a nan stays, wherever it is */
            if (!(entry(x, at + j) <= v[j]) && v[j] == v[j]) v[j] = entry(x, at + j);
    }
    for (size_t j = 0; mean && j < x->d; j++) v[j] /= (double)n;
}

/* y / |y|_2. The squares are those of entries of at most 1, so that neither a tiny nor a huge row
 * is lost; in f32 it is rounded once. */
static void normalize_row(const void *self, size_t i, double *v)
{
    const size_t d = *(const size_t *)self;
    double most = 0, squares = 0;
    (void)i;
    for (size_t j = 0; j < d; j++)
        if (!(fabs(v[j]) <= most)) most = fabs(v[j]);
    if (most == 0) return; /* a row of zeros stays zero */
    int exponent = 0;
    (void)frexp(most, &exponent);
    for (size_t j = 0; j < d; j++) {
        v[j] = ldexp(v[j], -exponent);
        squares += v[j] * v[j];
    }
    const double length = sqrt(squares);
    for (size_t j = 0; j < d; j++) v[j] /= length;
}

typedef struct spread_ctx {
    const rows *x;
    const uint32_t *map;
    const pare_weight *bias;
    size_t outputs;
} spread_ctx;

static void spread_row(const void *self, size_t i, double *v)
{
    const spread_ctx *const c = self;
    for (size_t o = 0; o < c->outputs; o++) v[o] = entry(c->x, i * c->x->d + c->map[o]);
    for (size_t o = 0; pare_has(c->bias) && o < c->outputs; o++)
        v[o] += pare_weight_at(c->bias, o);
}

/* The last map: a row that tokens share is multiplied once. */
static void output_map(rows *out, const rows *h, const pare_model *m, rows_ctx *c)
{
    const pare_weight *const w = pare_head_weight(m), *const bias = &m->head.out.b, none = {0};
    const uint32_t *const map = pare_output_map(m);
    if (!map) {
        rows_dense(out, h, w, bias, c);
        return;
    }
    rows stored = rows_new(c, h->t, h->n, w->rows);
    rows_dense(&stored, h, w, &none, c);
    const spread_ctx spread = {&stored, map, bias, out->d};
    rows_each(out, &stored, spread_row, &spread, c);
}

void forward_head(pass *p, rows *out, const rows *x)
{
    const pare_output_head *const head = &p->m->head;
    rows_ctx *const c = &p->ctx;
    rows h = *x;
    if (head->pool != PARE_POOL_NONE) {
        const pool_ctx pool = {p, x, head->pool};
        h = rows_new(c, x->t, p->count, x->d);
        rows_each(&h, &h, pool_row, &pool, c);
    }
    if (pare_has(&head->dense.w)) {
        rows dense = rows_new(c, h.t, h.n, head->dense.w.rows);
        rows_dense(&dense, &h, &head->dense.w, &head->dense.b, c);
        h = dense;
    }
    rows_act(&h, NULL, head->act, c);
    if (pare_has(pare_head_weight(p->m)))
        output_map(out, &h, p->m, c);
    else if (!c->work.st)
        memcpy(out->v, h.v, h.n * h.d * pare_dtype_size(h.t));
    if (head->normalize) rows_each(out, out, normalize_row, &out->d, c);
}
