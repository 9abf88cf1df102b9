/* Softmax calls as an oracle sees them: queries, keys and values in their rows, the reference's
 * logit, the two columns that tell how much the keys and the reference weigh, and the codes of
 * packed tiles (docs/theory/length.md "Codes", "The zero reference", "Engines with one mask").
 * Three constructions are made of them: with a reference, plain, and with the keys themselves as
 * values, which gives their softmax mean. */
#include "group_codes.h"
#include "rounds.h"
#include <math.h>
#include <string.h>

/* ---- building -------------------------------------------------------------------------------- */

typedef struct shape { /* of a construction: what stands in the values */
    bool extras;       /* the two columns, and a reference */
    bool keys;         /* the keys themselves instead of the values */
} shape;

static size_t fit_width(const run *r, size_t need, uint32_t have, const char *what)
{
    if (!have || need <= have) return have ? have : need;
    (void)pare_fail(r->err, PARE_ERR_INPUT,
                    "length: a call needs %s of %zu numbers, the oracle takes %u", what, need,
                    (unsigned)have);
    return 0;
}

/* Whether the two columns stand in an array of their own: values are then in whole lines of the
 * cache as they were, and the weights of all rows are side by side. */
static bool is_split(const run *r, const shape *s)
{
    return s->extras && r->caps.features & PARE_ORC_SPLIT && !r->strict && !r->caps.d_v;
}

static bool has_logits(const run *r, const shape *s, const entry *e)
{
    return s->extras && (s->keys || r->heads[e->head].c);
}

/* Keys in rows 1, 2, ... of a full call, a whole block of the pattern's: the same for every block
 * of queries, so they are laid out once. */
static bool in_block(const run *r, const entry *e, const pare_tile *t)
{
    return r->rule.kind == CALL_FULL && r->p->kind == PARE_FULL && e->tiles == 1 && !t->keys &&
           !t->k_down && t->k0 % (r->rule.m - 1) == 0 && r->heads[e->head].blocks_k;
}

/* The two columns of the block of keys from k0 on: all blocks but the last have the same ones. */
static char *side_of_block(const run *r, const head *h, size_t k0)
{
    const size_t whole = r->n - k0 >= r->rule.m - 1 ? 0 : run_bytes(r, (size_t)r->rule.m * 2);
    return h->blocks_side + whole;
}

/* Queries as they stand: rows behind the tile's own do no harm. */
static bool stands_ready(const run *r, const entry *e, const placed *p, const shape *s)
{
    const pare_length_job *const j = &r->heads[e->head].job;
    return e->tiles == 1 && !e->code && e->dk == j->dk && j->ldq == j->dk && !p->q_at &&
           !p->t.rows && !p->t.q_down && p->t.q0 + e->n <= r->n && !has_logits(r, s, e);
}

/* What a call has to itself, one part after the other from e->y on; how many bytes that is. */
static size_t divide_up(const run *r, entry *e)
{
    const bool bias = r->rule.kind == CALL_TILE;
    const size_t n = e->n, own = e->shared ? 0 : n, out = r->adds ? 0 : n;
    if (!own && !out && e->ready && !bias) return 0; /* mostly, where rows are added up */
    const size_t parts[] = {e->ready ? 0 : n * e->dk,
                            own * e->dk,
                            own * e->dv,
                            bias ? n * n : 0,
                            e->split ? own * 2 : 0,
                            e->split ? out * 2 : 0,
                            out * e->dv};
    char **const to[] = {&e->q, &e->k, &e->v, &e->bias, &e->side, &e->mass, &e->y};
    char *const at = e->y;
    size_t bytes = 0;
    for (size_t i = 0; i < 7; i++) {
        if (at) *to[i] = at + bytes;
        bytes += run_bytes(r, parts[i]);
    }
    if (!bias) e->bias = NULL;
    if (!e->split) e->side = e->mass = NULL;
    return bytes;
}

static size_t size_of(const run *r, entry *e, const placed *tiles, const shape *s)
{
    head *const h = &r->heads[e->head];
    const pare_length_job *const j = &h->job;
    const bool bias = r->rule.kind == CALL_TILE;
    e->code = group_width(e->tiles);
    const size_t dk = j->dk + e->code + (has_logits(r, s, e) && !bias ? 1 : 0);
    const bool split = e->split = is_split(r, s);
    const size_t dv = (s->keys ? j->dk : j->dv) + (s->extras && !split ? 2 : 0);
    e->dk = (uint32_t)fit_width(r, dk, r->caps.d_k, "queries");
    e->dv = (uint32_t)fit_width(r, dv, r->caps.d_v, "values");
    if (!e->dk || (!e->dv && !split)) return SIZE_MAX;
    e->shared = s->extras && in_block(r, e, &tiles->t);
    e->ready = stands_ready(r, e, tiles, s);
    const size_t bytes = divide_up(r, e);
    if (e->ready) e->q = (char *)j->q + tiles->t.q0 * j->ldq * num_size(r->caps.dtype);
    if (e->shared) {
        const size_t rows = tiles->t.k0 / (r->rule.m - 1) * r->rule.m;
        e->k = h->blocks_k + rows * e->dk * num_size(r->caps.dtype);
        e->v = h->blocks_v + rows * e->dv * num_size(r->caps.dtype);
        if (split) e->side = side_of_block(r, h, tiles->t.k0);
    }
    return bytes;
}

/* Logit of the reference for query i; of calls for the mean, far below all keys. */
static double logit_of(const run *r, const shape *s, const head *h, size_t i)
{
    if (!s->keys) return h->c ? h->c[i] : 0;
    const double flush = isfinite(r->caps.exp_flush) ? r->caps.exp_flush : 104;
    return -(h->lmax + flush + 16);
}

static double largest_logit(const run *r, const shape *s, const head *h)
{
    double most = h->lmax;
    if (s->keys) return -logit_of(r, s, h, 0);
    for (size_t i = 0; h->c && i < r->n; i++) most = fmax(most, fabs(h->c[i]));
    return most;
}

static void put_code(pare_dtype t, char *row, size_t at, uint32_t width, uint64_t bits, bool query,
                     double p)
{
    for (uint32_t b = 0; b < width; b++) {
        const bool in = bits >> b & 1;
        if (query ? !in : in) num_put(t, row, at + b, query ? -p : 1);
    }
}

static void place_queries(const run *r, const entry *e, const placed *t, uint64_t bits, double p,
                          const shape *s)
{
    const head *const h = &r->heads[e->head];
    const pare_dtype type = r->caps.dtype;
    const size_t b = num_size(type), dk = h->job.dk;
    for (uint32_t x = 0; x < t->t.nq; x++) {
        const size_t i = pare_tile_query(&t->t, x);
        char *const row = e->q + (size_t)(t->q_at + x) * e->dk * b;
        memcpy(row, (const char *)h->job.q + i * h->job.ldq * b, dk * b);
        put_code(type, row, dk, e->code, bits, true, p);
        if (has_logits(r, s, e) && !e->bias) num_put(type, row, dk + e->code, logit_of(r, s, h, i));
    }
}

/* Row `at` of the values has a 1 in the first of the two columns (a key) or in the second, unless
 * another call has put it there. */
static void put_extra(const run *r, const entry *e, size_t at, size_t wide, size_t which)
{
    if (e->side)
        num_put(r->caps.dtype, e->side, at * 2 + which, 1);
    else if (!e->split)
        num_put(r->caps.dtype, e->v, at * e->dv + wide + which, 1);
}

static void place_keys(const run *r, const entry *e, const placed *t, uint64_t bits, const shape *s)
{
    const pare_length_job *const j = &r->heads[e->head].job;
    const pare_dtype type = r->caps.dtype;
    const size_t b = num_size(type), wide = s->keys ? j->dk : j->dv;
    for (uint32_t x = 0; x < t->t.nk; x++) {
        const size_t key = pare_tile_key(&t->t, x), at = placed_key_row(t, x);
        char *const row = e->k + at * e->dk * b, *const value = e->v + at * e->dv * b;
        memcpy(row, (const char *)j->k + key * j->ldk * b, j->dk * b);
        if (x >= t->shared) put_code(type, row, j->dk, e->code, bits, false, 0);
        if (has_logits(r, s, e) && !e->bias) num_put(type, row, j->dk + e->code, 0);
        memcpy(value, s->keys ? row : (const char *)j->v + key * j->ldv * b, wide * b);
        if (s->extras) put_extra(r, e, at, wide, 0);
    }
}

/* Who sees whom as a bias, which also holds the reference's logit. */
static void place_bias(const run *r, const entry *e, const placed *t, const shape *s)
{
    const head *const h = &r->heads[e->head];
    for (uint32_t p = 0; p < t->t.nq; p++) {
        const size_t sees = pare_tile_sees(&t->t, p), row = (size_t)(t->q_at + p) * e->n;
        const double c = logit_of(r, s, h, pare_tile_query(&t->t, p));
        for (uint32_t x = 0; x < e->n; x++) {
            const bool key = x >= t->k_at && x < t->k_at + t->t.nk;
            num_put(r->caps.dtype, e->bias, row + x,
                    !key                 ? c
                    : x - t->k_at < sees ? 0
                                         : -(double)INFINITY);
        }
    }
}

/* Everything zero, the reference and the rows without a key silent. */
static void lay_out_keys(const run *r, const entry *e, const shape *s)
{
    const head *const h = &r->heads[e->head];
    const pare_dtype type = r->caps.dtype;
    const size_t b = num_size(type);
    memset(e->k, 0, e->n * e->dk * b);
    memset(e->v, 0, e->n * e->dv * b);
    if (e->side) memset(e->side, 0, e->n * 2 * b);
    if (has_logits(r, s, e) && !e->bias)
        for (size_t i = 0; i < e->n; i++) num_put(type, e->k, i * e->dk + h->job.dk + e->code, 1);
    if (s->extras) put_extra(r, e, 0, s->keys ? h->job.dk : h->job.dv, 1);
}

static void build(const run *r, const entry *e, pare_call *out, const shape *s)
{
    const head *const h = &r->heads[e->head];
    const size_t b = num_size(r->caps.dtype), n = e->n;
    const double p =
        e->tiles > 1 ? penalty(r->caps.dtype, r->caps.exp_flush, largest_logit(r, s, h)) : 0;
    if (!e->ready) memset(e->q, 0, n * e->dk * b);
    if (!e->shared) lay_out_keys(r, e, s);
    if (e->bias) memset(e->bias, 0, n * n * b);
    for (size_t g = 0; g < e->tiles; g++) {
        const placed *const t = &r->b.tiles[e->tile + g];
        const uint64_t bits = e->code ? group_bits(e->code, g) : 0;
        if (!e->ready) place_queries(r, e, t, bits, p, s);
        if (!e->shared) place_keys(r, e, t, bits, s);
        if (e->bias) place_bias(r, e, t, s);
    }
    if (e->dv) run_poison(r, e->y, n, e->dv);
    if (e->mass) run_poison(r, e->mass, n, 2);
    *out = (pare_call){.kind = PARE_CALL_QKV,
                       .u.a = {.q = e->q,
                               .k = e->k,
                               .v = e->v,
                               .n = e->n,
                               .dk = e->dk,
                               .dv = e->dv,
                               .causal = r->rule.kind == CALL_CAUSAL,
                               .bias = e->bias,
                               .y = e->y,
                               .v2 = e->side,
                               .y2 = e->mass,
                               .dv2 = e->split ? 2 : 0},
                       .into = adding_sums(r, e)};
}

/* ---- blocks of keys that many calls share ---------------------------------------------------- */

typedef struct blocks {
    run *r;
    const shape *s;
    size_t count;
    uint32_t dk, dv;
} blocks;

static void lay_out_block(void *ctx, size_t x)
{
    const blocks *const w = ctx;
    const run *const r = w->r;
    const size_t b = num_size(r->caps.dtype), m = r->rule.m, at = x % w->count;
    const size_t k0 = at * (m - 1), left = r->n - k0;
    const head *const h = &r->heads[x / w->count];
    const entry e = {.head = x / w->count,
                     .n = r->rule.m,
                     .dk = w->dk,
                     .dv = w->dv,
                     .k = h->blocks_k + at * m * w->dk * b,
                     .v = h->blocks_v + at * m * w->dv * b,
                     .split = h->blocks_side,
                     .side =
                         h->blocks_side && (!at || left < m - 1) ? side_of_block(r, h, k0) : NULL};
    const placed t = {
        .t = {.k0 = k0, .nk = (uint32_t)(left < m - 1 ? left : m - 1), .vis0 = PARE_VIS_ALL},
        .k_at = 1};
    lay_out_keys(r, &e, w->s);
    place_keys(r, &e, &t, 0, w->s);
}

/* For all heads, where all have the same widths; otherwise every call has its own. */
static pare_status lay_out_blocks(run *r, const shape *s)
{
    for (size_t i = 0; i < r->count; i++) {
        r->heads[i].blocks_k = r->heads[i].blocks_v = r->heads[i].blocks_side = NULL;
        if (r->heads[i].job.dk != r->heads[0].job.dk || r->heads[i].job.dv != r->heads[0].job.dv)
            return PARE_OK;
    }
    if (r->rule.kind != CALL_FULL || r->p->kind != PARE_FULL || r->only_bad) return PARE_OK;
    const size_t m = r->rule.m;
    blocks w = {.r = r, .s = s, .count = (r->n + m - 2) / (m - 1)};
    const placed one = {.t = {.nq = 1, .nk = 1}};
    entry e = {.n = r->rule.m, .tiles = 1};
    if (size_of(r, &e, &one, s) == SIZE_MAX) return PARE_ERR_INPUT;
    w.dk = e.dk, w.dv = e.dv;
    const size_t keys = run_bytes(r, w.count * m * w.dk), values = run_bytes(r, w.count * m * w.dv);
    for (size_t i = 0; i < r->count; i++) {
        head *const h = &r->heads[i];
        h->blocks_k = run_room(r, keys + values + 2 * run_bytes(r, m * 2), 1);
        if (!h->blocks_k) return pare_no_memory(r->err);
        h->blocks_v = h->blocks_k + keys;
        h->blocks_side = is_split(r, s) ? h->blocks_v + values : NULL;
    }
    pare_parallel(r->exec, w.count * r->count, lay_out_block, &w);
    return PARE_OK;
}

/* ---- calls with a reference ------------------------------------------------------------------ */

static const shape with_values = {true, false}, with_keys = {true, true}, bare = {false, false};

static size_t zeroref_size(const run *r, entry *e, const placed *tiles)
{
    return size_of(r, e, tiles, &with_values);
}

static void zeroref_build(const run *r, const entry *e, pare_call *out)
{
    build(r, e, out, &with_values);
}

/* What the keys weigh in a row, and, behind it, what the reference does. `wide`: its values. */
static const void *extras_of(const run *r, const entry *e, size_t row, size_t wide)
{
    const size_t b = num_size(r->caps.dtype);
    return e->mass ? e->mass + row * 2 * b : e->y + (row * e->dv + wide) * b;
}

/* Softmax weights are no more than 1 together, but for the rounding of their sum: an engine that
 * answers more would make the keys of a call vanish, or count twice. */
static double most_weight(const run *r)
{
    const double u = r->caps.dtype == PARE_F32 ? 0x1p-24 : 0x1p-53;
    return 1 + fmax(0.0625, 4 * (r->caps.exp_err + 2) * u * (r->rule.m + 4.0));
}

static void share(const run *r, const head *h, size_t i, size_t n, const void *keys,
                  const void *reference, bool f32, double *keep, double *by)
{
    const sharing s = {keys, reference, h->den + i, keep, by, r->caps.w_min, most_weight(r)};
    share_rows(&s, n, f32);
}

static void zeroref_weigh(const run *r, const head *h, size_t i, size_t n, const void *keys,
                          const void *reference, double *keep, double *by)
{
    share(r, h, i, n, keys, reference, r->caps.dtype == PARE_F32, keep, by);
}

bool zeroref_part(run *r, const entry *e, size_t row, size_t i, size_t n, double *keep, double *by)
{
    enum { AHEAD = 16 }; /* rows that are asked for before they are read: they may lie apart */
    const head *const h = &r->heads[e->head];
    double keys[STRIPE], reference[STRIPE];
    for (size_t p = 0; p < n; p++) {
        const void *const here = extras_of(r, e, row + p, h->job.dv);
        __builtin_prefetch(extras_of(r, e, row + p + AHEAD, h->job.dv));
        keys[p] = num_at(r->caps.dtype, here, 0);
        reference[p] = num_at(r->caps.dtype, here, 1);
    }
    share(r, h, i, n, keys, reference, false, keep, by);
    return true;
}

const construction zeroref_calls = {zeroref_size, zeroref_build, zeroref_part, sums_finite,
                                    true,         zeroref_done,  zeroref_weigh};

/* ---- the plain call: n <= M ------------------------------------------------------------------ */

static size_t plain_size(const run *r, entry *e, const placed *tiles)
{
    return size_of(r, e, tiles, &bare);
}

static void plain_build(const run *r, const entry *e, pare_call *out)
{
    build(r, e, out, &bare);
}

static bool plain_part(run *r, const entry *e, size_t row, size_t i, size_t n, double *keep,
                       double *by)
{
    (void)row;
    for (size_t p = 0; p < n; p++) {
        r->heads[e->head].den[i + p] = by[p] = 1;
        keep[p] = 0;
    }
    return true;
}

const construction plain_calls = {plain_size, plain_build, plain_part, sums_finite,
                                  false,      NULL,        NULL};

/* ---- the mean key ---------------------------------------------------------------------------- */

static size_t mean_size(const run *r, entry *e, const placed *tiles)
{
    return size_of(r, e, tiles, &with_keys);
}

static void mean_build(const run *r, const entry *e, pare_call *out)
{
    build(r, e, out, &with_keys);
}

/* c_i = max over the calls of q_i times their mean key. */
static void mean_row(const run *r, const entry *e, size_t row, size_t i)
{
    const pare_dtype type = r->caps.dtype;
    head *const h = &r->heads[e->head];
    const size_t dk = h->job.dk;
    const char *const y = e->y + row * e->dv * num_size(type);
    const double mass = num_at(type, extras_of(r, e, row, dk), 0);
    double s = 0;
    for (size_t c = 0; c < dk; c++)
        s += num_at(type, h->job.q, i * h->job.ldq + c) * num_at(type, y, c);
    if (!(mass > 0.5) || !isfinite(s))
        h->den[i] = NAN;
    else
        h->top[i] = fmax(h->top[i], s / mass);
}

static bool mean_part(run *r, const entry *e, size_t row, size_t i, size_t n, double *keep,
                      double *by)
{
    (void)keep, (void)by;
    for (size_t p = 0; p < n; p++) mean_row(r, e, row + p, i + p);
    return false;
}

const construction mean_calls = {mean_size, mean_build, mean_part, sums_finite, false, NULL, NULL};

pare_status softmax_blocks(run *r, bool keys)
{
    return lay_out_blocks(r, keys ? &with_keys : &with_values);
}
