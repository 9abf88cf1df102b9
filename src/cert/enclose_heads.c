/* enclose_heads.c - queries, keys and values of softmax heads, with radii per row and head.
 *
 * They are rows of dense maps, so their radii follow from the norms of the head's own row blocks;
 * rotary positions are rotations and move nothing apart. The softmax is in enclose_softmax.c. */
#include "linalg/elementary.h"
#include "model/model_facts.h"
#include "enclose_heads.h"
#include <string.h>

/* ---- queries, keys, values ------------------------------------------------------------------ */

static const dense_norms *part_norms(const heads *h, char which, size_t g)
{
    const head_norms *const n = &h->n->heads[g];
    return which == 'q' ? &n->q : which == 'k' ? &n->k : &n->v;
}

static pare_status side_new(side *s, const heads *h, size_t rows, char which, pare_err *err)
{
    const size_t n = h->at->nheads;
    size_t total = 0;
    s->at = pare_alloc(h->c->a, n, sizeof *s->at);
    s->width = pare_alloc(h->c->a, n, sizeof *s->width);
    if (!s->at || !s->width) return pare_no_memory(err);
    for (size_t g = 0; g < n; g++) {
        s->at[g] = total;
        s->width[g] = which == 'v' ? h->at->heads[g].dv : h->at->heads[g].dk;
        total += s->width[g];
    }
    s->x = pare_mat_new(h->c->a, rows, total);
    s->norm = pare_alloc(h->c->a, rows, n * sizeof *s->norm);
    for (size_t e = 0; e < ENGINES; e++) s->r[e] = pare_alloc(h->c->a, rows, n * sizeof(double));
    if (h->c->wide) s->lo = pare_mat_new(h->c->a, rows, total);
    if (h->c->wide && !s->lo.v) return pare_no_memory(err);
    return s->x.v && s->norm && s->r[0] && s->r[1] ? PARE_OK : pare_no_memory(err);
}

static void set_norms(side *s, const heads *h)
{
    const size_t nh = h->at->nheads;
    for (size_t i = 0; i < s->x.rows; i++)
        for (size_t g = 0; g < nh; g++) {
            const double hi = enclose_norm_up(part(s, i, g), s->width[g]);
            s->norm[i * nh + g] = h->c->wide ? up_mul(hi, 1 + LO_SHARE) : hi;
        }
}

/* Copies each head's part of packed rows: heads may share keys that they turn differently. */
static void spread(side *s, const heads *h, const pare_mat *packed, const pare_mat *packed_lo,
                   char which)
{
    for (size_t i = 0; i < s->x.rows; i++)
        for (size_t g = 0; g < h->at->nheads; g++) {
            const pare_head *const d = &h->at->heads[g];
            const size_t from = which == 'q' ? d->q : which == 'k' ? d->k : d->v;
            memcpy(part(s, i, g), pare_row(packed, i) + from, s->width[g] * sizeof(double));
            if (h->c->wide)
                memcpy(part_lo(s, i, g), pare_row(packed_lo, i) + from,
                       s->width[g] * sizeof(double));
        }
}

static pare_status project(side *s, const heads *h, const flow *z, char which, pare_err *err)
{
    const pare_attn *const at = h->at;
    const pare_weight *const w = which == 'q' ? &at->wq : which == 'k' ? &at->wk : &at->wv;
    const pare_weight *const b = which == 'q' ? &at->bq : which == 'k' ? &at->bk : &at->bv;
    pare_status st = side_new(s, h, z->x.rows, which, err);
    if (st != PARE_OK) return st;
    pare_mat packed = pare_mat_new(h->c->a, z->x.rows, w->rows), low = {0};
    if (h->c->wide) low = pare_mat_new(h->c->a, z->x.rows, w->rows);
    if (!packed.v || (h->c->wide && !low.v)) return pare_no_memory(err);
    st = enclose_product(&packed, &low, z, w, b, h->c->exec, err);
    if (st != PARE_OK) return st;
    spread(s, h, &packed, &low, which);
    for (size_t i = 0; i < z->x.rows; i++) {
        const radii r = flow_radii(z, i);
        const double norm = flow_norm(z, i);
        for (size_t g = 0; g < at->nheads; g++)
            for (size_t e = 0; e < ENGINES; e++)
                s->r[e][i * at->nheads + g] =
                    enclose_dense_radius(enclose_engine(h->c->wide, e), part_norms(h, which, g),
                                         reach(norm, r, e), r.r[e]);
    }
    set_norms(s, h);
    return PARE_OK;
}

/* The same query for every row: bq, exact but for its own rounding in a narrower engine. */
static pare_status constant_query(side *s, const heads *h, size_t rows, pare_err *err)
{
    const pare_attn *const at = h->at;
    const pare_status st = side_new(s, h, rows, 'q', err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < rows; i++)
        for (size_t g = 0; g < at->nheads; g++) {
            const dense_norms *const d = &h->n->heads[g].q;
            for (size_t k = 0; k < s->width[g]; k++)
                part(s, i, g)[k] = pare_weight_at(&at->bq, at->heads[g].q + k);
            for (size_t e = 0; e < ENGINES; e++) {
                const engine *const m = enclose_engine(h->c->wide, e);
                const double under = up_mul(m->tiny, up_sqrt((double)d->out));
                const double own = d->wide && m->narrows ? up_fma(m->u, d->b2, under) : 0;
                s->r[e][i * at->nheads + g] = in_range(m, d->b2, own);
            }
        }
    set_norms(s, h);
    return PARE_OK;
}

/* Mean of the radii of one head's queries over a sequence, and what averaging adds: gamma_{n+2} of
 * the mean size, wherever an engine averages (|W|_F |z| + |b| bounds it before and after the map).
 */
static double mean_radius(const side *s, const heads *h, const flow *z, size_t from, size_t g,
                          size_t e)
{
    const engine *const m = enclose_engine(h->c->wide, e);
    const dense_norms *const d = &h->n->heads[g].q;
    const size_t t = h->c->tokens;
    double r = 0, size = 0;
    for (size_t i = from; i < from + t; i++) {
        const double own = s->r[e][i * h->at->nheads + g];
        const double at = reach(flow_norm(z, i), flow_radii(z, i), e);
        r = up_add(r, own);
        size = up_add(size, up_add(own, up_fma(d->fro, at, d->b2)));
    }
    const double local = up_mul(roundings(m, t, 3, 1 + t / 4), up_div(size, (double)t));
    const double under = up_mul(m->tiny, up_mul((double)t + 3, (double)d->out));
    return in_range(m, size, up_add(up_div(r, (double)t), up_add(local, under)));
}

/* Each of rows [from, from + n) becomes their mean. */
static void average(side *s, size_t from, size_t n)
{
    for (size_t k = 0; k < s->x.cols; k++) {
        double sum = 0;
        for (size_t i = from; i < from + n; i++) sum += pare_row(&s->x, i)[k];
        for (size_t i = from; i < from + n; i++) pare_row_mut(&s->x, i)[k] = sum / (double)n;
    }
}

static void average_wide(side *s, size_t from, size_t n)
{
    const size_t d = s->x.cols;
    double *const hi = pare_row_mut(&s->x, from), *const lo = pare_row_mut(&s->lo, from);
    for (size_t i = from + 1; i < from + n; i++)
        wide_sum_row(hi, lo, pare_row(&s->x, i), pare_row(&s->lo, i), d);
    wide_div_row(hi, lo, (double)n, d);
    for (size_t i = from + 1; i < from + n; i++) {
        memcpy(pare_row_mut(&s->x, i), hi, d * sizeof *hi);
        memcpy(pare_row_mut(&s->lo, i), lo, d * sizeof *lo);
    }
}

/* Every query of a sequence becomes the mean of its queries. */
static void mean_query(side *s, const heads *h, const flow *z)
{
    const size_t t = h->c->tokens, nh = h->at->nheads;
    for (size_t from = 0; t > 0 && from + t <= s->x.rows; from += t) {
        if (h->c->wide)
            average_wide(s, from, t);
        else
            average(s, from, t);
        for (size_t g = 0; g < nh; g++)
            for (size_t e = 0; e < ENGINES; e++) {
                const double r = mean_radius(s, h, z, from, g, e);
                for (size_t i = from; i < from + t; i++) s->r[e][i * nh + g] = r;
            }
    }
    set_norms(s, h);
}

/* ---- rotary positions ----------------------------------------------------------------------- */

static void turn(double *x, const pare_head *d, const pare_attn *at, bool interleaved, double pos)
{
    for (size_t p = 0; p < d->planes; p++) {
        const size_t a = interleaved ? 2 * p : p, b = interleaved ? 2 * p + 1 : p + d->planes;
        const double angle = pos * pare_weight_at(&at->freqs, d->freq + p), xa = x[a], xb = x[b];
        double s, c;
        pare_sincos(angle, &s, &c);
        x[a] = xa * c - xb * s;
        x[b] = xa * s + xb * c;
    }
}

static dd pair_at(const double *hi, const double *lo, size_t k)
{
    return (dd){hi[k], lo[k]};
}

/* turns: sine and cosine of each plane of at->freqs at this position. */
static void turn_wide(double *hi, double *lo, const pare_head *d, bool interleaved, const dd *turns)
{
    for (size_t p = 0; p < d->planes; p++) {
        const size_t a = interleaved ? 2 * p : p, b = interleaved ? 2 * p + 1 : p + d->planes;
        const dd s = turns[2 * (d->freq + p)], c = turns[2 * (d->freq + p) + 1];
        const dd xa = pair_at(hi, lo, a), xb = pair_at(hi, lo, b);
        const dd ya = dd_sub(dd_mul(xa, c), dd_mul(xb, s));
        const dd yb = dd_add(dd_mul(xa, s), dd_mul(xb, c));
        hi[a] = ya.hi, lo[a] = ya.lo;
        hi[b] = yb.hi, lo[b] = yb.lo;
    }
}

/* Sine and cosine of pos freq for every position and frequency. */
static dd *turns_new(const heads *h)
{
    const size_t n = h->at->freqs.rows * h->at->freqs.cols, t = h->c->tokens;
    dd *const turns = pare_alloc(h->c->a, t, 2 * n * sizeof *turns);
    for (size_t i = 0; turns && i < t * n; i++) {
        const double freq = pare_weight_at(&h->at->freqs, i % n);
        pare_dd_sincos(dd_product((double)(i / n), freq), &turns[2 * i], &turns[2 * i + 1]);
    }
    return turns;
}

/* A rotation moves nothing apart. The angle pos freq is off by v |angle|, cos and sin by that and
 * 8 v (v: the engine's unit for angles), then u of the engine; with two products and a sum per
 * entry a plane is off by at most ((2 |angle| + 16) v + 8 u) of its length. */
static double turn_factor(const engine *e, const pare_head *d, const pare_attn *at, double pos)
{
    double most = 0;
    for (size_t p = 0; p < d->planes; p++)
        most = up_max(most, fabs(pare_weight_at(&at->freqs, d->freq + p)));
    const double angle = up_mul(most, pos);
    if (!(angle <= PARE_SINCOS_MOST)) return INFINITY; /* no sine is proven beyond */
    return up_fma(e->angle, up_fma(2, angle, 16), up_mul(8, e->u));
}

static void rotate(side *s, const heads *h, const dd *turns)
{
    const pare_attn *const at = h->at;
    const size_t nh = at->nheads, nf = at->freqs.rows * at->freqs.cols;
    for (size_t i = 0; i < s->x.rows; i++) {
        const double pos = (double)(i % h->c->tokens);
        for (size_t g = 0; g < nh; g++) {
            const pare_head *const d = &at->heads[g];
            const size_t k = i * nh + g;
            if (d->planes == 0) continue;
            const radii r = {{s->r[0][k], s->r[1][k]}};
            for (size_t e = 0; e < ENGINES; e++) {
                const engine *const m = enclose_engine(h->c->wide, e);
                const double size = reach(s->norm[k], r, e);
                const double under = up_mul(m->tiny, up_mul(4, up_sqrt((double)d->dk)));
                const double local = up_fma(turn_factor(m, d, at, pos), size, under);
                s->r[e][k] = in_range(m, size, up_add(r.r[e], local));
            }
            const bool interleaved = h->c->m->stem.pos.interleaved;
            if (turns)
                turn_wide(part(s, i, g), part_lo(s, i, g), d, interleaved,
                          turns + 2 * nf * (i % h->c->tokens));
            else
                turn(part(s, i, g), d, at, interleaved, pos);
        }
    }
    set_norms(s, h);
}

/* ---- together ------------------------------------------------------------------------------- */

static bool overlap(size_t a, size_t na, size_t b, size_t nb)
{
    return a < b + nb && b < a + na;
}

/* Under rotary positions heads may share keys only when they turn them alike, and never queries:
 * otherwise it is not said which turn counts. */
static bool turns_are_clear(const pare_attn *at)
{
    for (size_t h = 0; h < at->nheads; h++)
        for (size_t g = 0; g < h; g++) {
            const pare_head *const a = &at->heads[h], *const b = &at->heads[g];
            const bool alike = a->k == b->k && a->dk == b->dk && a->planes == b->planes &&
                               (a->freq == b->freq || a->planes == 0);
            if (a->planes + b->planes == 0) continue;
            if (overlap(a->q, a->dk, b->q, b->dk)) return false;
            if (overlap(a->k, a->dk, b->k, b->dk) && !alike) return false;
        }
    return true;
}

static bool is_turned(const enclose_ctx *c, const pare_attn *at)
{
    return pare_model_is_rotary(c->m) && pare_has(&at->freqs);
}

bool enclose_heads_clear(const enclose_ctx *c, const pare_attn *at, const attn_norms *n)
{
    return n->apart && (!is_turned(c, at) || turns_are_clear(at));
}

static pare_status query_side(heads *h, const flow *z, pare_err *err)
{
    if (!pare_has(&h->at->wq)) return constant_query(&h->q, h, z->x.rows, err);
    const pare_status st = project(&h->q, h, z, 'q', err);
    if (st == PARE_OK && h->at->kind == PARE_ATTN_MEANQ) mean_query(&h->q, h, z);
    return st;
}

/* Queries, keys and values, turned where positions are rotary. */
pare_status enclose_sides(heads *h, const flow *z, pare_err *err)
{
    const enclose_ctx *const c = h->c;
    pare_status st = query_side(h, z, err);
    if (st == PARE_OK) st = project(&h->k, h, z, 'k', err);
    if (st == PARE_OK) st = project(&h->v, h, z, 'v', err);
    if (st != PARE_OK || !is_turned(c, h->at)) return st;
    const dd *const turns = c->wide ? turns_new(h) : NULL;
    if (c->wide && !turns) return pare_no_memory(err);
    rotate(&h->q, h, turns);
    rotate(&h->k, h, turns);
    return PARE_OK;
}

pare_status enclose_heads(flow *o, const enclose_ctx *c, const flow *z, const pare_attn *at,
                          const attn_norms *n, pare_err *err)
{
    heads h = {.c = c, .at = at, .n = n, .o = o};
    size_t columns = 0;
    for (size_t g = 0; g < at->nheads; g++) {
        const size_t end = at->heads[g].o + at->heads[g].dv;
        if (end > columns) columns = end;
    }
    pare_status st = enclose_flow_new(o, c, z->x.rows, columns, err);
    if (st == PARE_OK) st = enclose_sides(&h, z, err);
    if (st == PARE_OK) st = enclose_softmax(&h, err);
    if (st != PARE_OK || enclose_heads_clear(c, at, n)) return st;
    for (size_t e = 0; e < ENGINES; e++)
        for (size_t i = 0; i < z->x.rows; i++) o->r[e][i] = INFINITY;
    return st;
}
