/* The ends of a forward pass: from ids or vectors to the stream, and from the stream to outputs. */
#include "forward_parts.h"
#include <pare/elementary.h>
#include <string.h>

/* ---- stem --------------------------------------------------------------------------------- */

typedef struct stem_ctx {
    const pare_stem *s;
    const pare_input *in;
    size_t first;        /* row of the input where the rows at hand begin */
    size_t tokens, d;    /* d: width of what positions are added to */
    const double *power; /* sinusoidal: base^(2i/d) of the pair i of columns */
} stem_ctx;

static void add_position(const stem_ctx *c, size_t pos, double *v)
{
    const pare_positions *const p = &c->s->pos;
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

static void input_row(const void *ctx, size_t i, double *v)
{
    const stem_ctx *const c = ctx;
    const size_t row = c->first + i, d = c->s->width;
    if (c->s->ids) {
        const size_t at = (size_t)c->in->ids[row] * d;
        for (size_t j = 0; j < d; j++) v[j] = pare_weight_at(&c->s->embedding, at + j);
    } else {
        memcpy(v, c->in->x + row * d, d * sizeof *v);
    }
    if (!c->s->pos.after_map) add_position(c, row % c->tokens, v);
}

static void late_position(const void *ctx, size_t i, double *v)
{
    const stem_ctx *const c = ctx;
    add_position(c, (c->first + i) % c->tokens, v);
}

static pare_status powers_new(stem_ctx *c, size_t d, const rows_ctx *rc)
{
    if (c->s->pos.kind != PARE_POS_SINUSOIDAL) return PARE_OK;
    double *const power = scratch_get(rc->scratch, d / 2 + 1, sizeof *power);
    if (!power) return pare_no_memory(rc->err);
    for (size_t j = 0; j < d; j += 2)
        power[j / 2] = pare_power(c->s->pos.base, (double)j, (double)d);
    c->power = power;
    return PARE_OK;
}

pare_status forward_stem(const pass *p, rows *x, const pare_input *in, size_t first)
{
    const pare_stem *const s = &p->m->stem;
    const rows_ctx *const rc = &p->ctx;
    stem_ctx c = {s, in, first, p->tokens, s->width, NULL};
    const bool mapped = pare_has(&s->map.w);
    rows raw = *x;
    pare_status st;
    if ((st = powers_new(&c, s->pos.after_map ? x->d : s->width, rc))) return st;
    if (mapped && (st = rows_new(&raw, rc, x->t, x->n, s->width))) return st;
    if ((st = rows_map(&raw, &raw, input_row, &c, rc))) return st;
    if (mapped && (st = rows_dense(x, &raw, &s->map.w, &s->map.b, rc))) return st;
    c.d = x->d;
    if (s->pos.after_map && (st = rows_map(x, x, late_position, &c, rc))) return st;
    return rows_norm(x, x, &s->norm, rc);
}

/* ---- top ----------------------------------------------------------------------------------- */

typedef struct pool_ctx {
    const rows *x;
    size_t tokens;
    bool mean;
} pool_ctx;

static void pool_row(const void *ctx, size_t i, double *v)
{
    const pool_ctx *const c = ctx;
    const rows *const x = c->x;
    rows_load(v, x, i * c->tokens);
    if (!c->mean) return;
    for (size_t t = 1; t < c->tokens; t++) {
        const size_t at = (i * c->tokens + t) * x->d;
        for (size_t j = 0; j < x->d; j++)
            v[j] += x->t == PARE_F64 ? ((const double *)x->v)[at + j]
                                     : (double)((const float *)x->v)[at + j];
    }
    for (size_t j = 0; j < x->d; j++) v[j] /= (double)c->tokens;
}

const pare_weight *forward_top_weight(const pare_model *m)
{
    return m->top.tied ? &m->stem.embedding : &m->top.out.w;
}

pare_status forward_top(const pass *p, rows *out, const rows *x)
{
    const pare_top *const t = &p->m->top;
    const rows_ctx *const c = &p->ctx;
    rows h = *x;
    pare_status st;
    if (t->pool != PARE_POOL_NONE) {
        const pool_ctx pool = {x, p->tokens, t->pool == PARE_POOL_MEAN};
        if ((st = rows_new(&h, c, x->t, x->n / p->tokens, x->d)) ||
            (st = rows_map(&h, &h, pool_row, &pool, c)))
            return st;
    }
    if (pare_has(&t->dense.w)) {
        rows d;
        if ((st = rows_new(&d, c, h.t, h.n, t->dense.w.rows)) ||
            (st = rows_dense(&d, &h, &t->dense.w, &t->dense.b, c)))
            return st;
        h = d;
    }
    if ((st = rows_act(&h, NULL, t->act, c))) return st;
    const pare_weight *const w = forward_top_weight(p->m);
    if (pare_has(w)) return rows_dense(out, &h, w, &t->out.b, c);
    memcpy(out->v, h.v, h.n * h.d * pare_dtype_size(h.t));
    return PARE_OK;
}
