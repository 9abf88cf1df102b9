/* pair_models.h - a wild model, the same with other kinds of attention, and a search in the ball
 * around an input for the largest difference of the two. */
#ifndef TEST_PAIR_MODELS_H
#define TEST_PAIR_MODELS_H
#include "cert/pair.h"
#include <enclose_models.h>
#include "train/gradient.h"
#include <pare/cert.h>

typedef struct pair_case {
    uint64_t seed;
    pare_model *f, *g;
    pare_input in;
    pare_rng r;
    pare_err err;
} pair_case;

/* ---- models --------------------------------------------------------------------------------- */

/* Ids become the rows they name: that is where the ball is. */
static inline void vectors_for_ids(pair_case *t)
{
    pare_embedding *const s = &t->f->embedding;
    if (!s->ids) return;
    assert_ok(pare_model_expand_rows(t->f, &t->err), &t->err);
    maker k = {.m = t->f};
    const size_t n = t->in.batch * t->in.tokens, d = s->width;
    double *const x = make(&k, n * d, sizeof *x);
    for (size_t i = 0; i < n * d; i++)
        x[i] = pare_weight_at(&s->table, (size_t)t->in.ids[i / d] * d + i % d);
    if (t->f->head.tied) t->f->head.out.w = s->table;
    t->f->head.tied = s->ids = false;
    s->table = (pare_weight){0};
    s->vocab = 0;
    t->in.ids = NULL;
    t->in.x = x;
    t->in.width = d;
}

/* sum over the heads of Wo Wv, and of Wo bv where `bias`. */
static inline pare_weight value_map(maker *k, const pare_attn *at, bool bias)
{
    const size_t cols = bias ? 1 : at->din;
    double *const y = make(k, at->dout * cols, sizeof *y);
    const size_t width = pare_has(&at->wo) ? at->wo.cols : 0;
    for (size_t h = 0; h < at->nheads; h++)
        for (size_t v = 0; v < at->heads[h].dv; v++)
            for (size_t o = 0; o < at->dout; o++) {
                const pare_head *const d = &at->heads[h];
                const double wo =
                    width ? pare_weight_at(&at->wo, o * width + d->o + v) : (o == d->o + v ? 1 : 0);
                for (size_t c = 0; c < cols; c++) {
                    const double b = pare_has(&at->bv) ? pare_weight_at(&at->bv, d->v + v) : 0;
                    y[o * cols + c] +=
                        wo * (bias ? b : pare_weight_at(&at->wv, (d->v + v) * at->din + c));
                }
            }
    return (pare_weight){PARE_F64, bias ? 1 : at->dout, bias ? at->dout : at->din, y};
}

/* [z, heads] matrix^T that does what wo does. */
static inline pare_weight pool_matrix(maker *k, const pare_attn *at)
{
    size_t o = 0;
    for (size_t h = 0; h < at->nheads; h++) o = at->heads[h].o + at->heads[h].dv;
    pare_weight m = weight(k, at->dout, at->din + o, 0, 0.05);
    double *const y = make(k, m.rows * m.cols, sizeof *y);
    for (size_t i = 0; i < m.rows * m.cols; i++) y[i] = pare_weight_at(&m, i);
    for (size_t i = 0; i < m.rows; i++)
        for (size_t j = 0; j < o; j++)
            y[i * m.cols + at->din + j] +=
                pare_has(&at->wo) ? pare_weight_at(&at->wo, i * o + j) : (i == j ? 1 : 0);
    return (pare_weight){PARE_F64, m.rows, m.cols, y};
}

static inline void constant_queries(maker *k, pare_attn *at)
{
    size_t q = 0;
    for (size_t h = 0; h < at->nheads; h++) q = at->heads[h].q + at->heads[h].dk;
    at->wq = (pare_weight){0};
    if (!pare_has(&at->bq)) at->bq = weight(k, 1, q, 0, 0.3);
}

static inline pare_weight stacked(maker *k, const pare_weight *low, size_t blocks)
{
    const size_t each = low->rows * low->cols;
    double *const y = make(k, blocks * each, sizeof *y);
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = 0; i < each; i++)
            y[b * each + i] = b == 1 ? pare_weight_at(low, i) : 0.05 * pare_rng_normal(&k->r);
    return (pare_weight){PARE_F64, blocks * low->rows, low->cols, y};
}

/* Heads of their own whose keys do not turn. */
static inline void still_heads(maker *k, pare_attn *at)
{
    pare_head *const h = make(k, at->nheads, sizeof *h);
    for (size_t i = 0; i < at->nheads; i++) {
        h[i] = at->heads[i];
        h[i].freq = h[i].planes = 0;
    }
    at->heads = h;
    at->freqs = (pare_weight){0};
}

/* What stands in the place of exact attention: near it where the kind can be. */
static inline void replace_attn(maker *k, pare_attn *at, pare_attn_kind kind)
{
    const pare_attn old = *at;
    const bool heads =
        kind == PARE_ATTN_CONSTQ || kind == PARE_ATTN_MEANQ || kind == PARE_ATTN_POOL;
    at->kind = kind;
    if (!heads) {
        at->nheads = 0;
        at->heads = NULL;
        at->wq = at->bq = at->wk = at->bk = at->wv = at->bv = at->wo = at->freqs = (pare_weight){0};
    }
    if (heads) still_heads(k, at); /* also beside heads that turn */
    const pare_weight v = value_map(k, &old, false);
    if (kind == PARE_ATTN_UNIFORM) at->bv = value_map(k, &old, true);
    if (kind == PARE_ATTN_UNIFORM || kind == PARE_ATTN_AFFMIX) at->mix = v;
    if (kind == PARE_ATTN_UMIX) at->mix = stacked(k, &v, 3);
    if (kind == PARE_ATTN_LINEAR || kind == PARE_ATTN_AFFMIX)
        at->matrix = weight(k, at->dout, at->din, 0, 0.1);
    if (kind == PARE_ATTN_CONSTQ || kind == PARE_ATTN_POOL) constant_queries(k, at);
    if (kind == PARE_ATTN_POOL) {
        at->matrix = pool_matrix(k, &old);
        at->wo = (pare_weight){0};
    }
    if (kind == PARE_ATTN_ZERO || kind == PARE_ATTN_CONST) at->in_norm = (pare_norm){0};
    if (kind == PARE_ATTN_CONST && !pare_has(&at->bo)) at->bo = weight(k, 1, at->dout, 0, 0.3);
}

static inline pare_attn_kind other_kind(maker *k)
{
    static const pare_attn_kind kinds[] = {
        PARE_ATTN_ZERO,   PARE_ATTN_CONST,  PARE_ATTN_UNIFORM, PARE_ATTN_CONSTQ, PARE_ATTN_MEANQ,
        PARE_ATTN_LINEAR, PARE_ATTN_AFFMIX, PARE_ATTN_POOL,    PARE_ATTN_UMIX,   PARE_ATTN_UNIFORM};
    pare_attn_kind kind;
    do kind = kinds[pick(k, 10)];
    while (kind == PARE_ATTN_MEANQ && k->m->pattern.kind != PARE_FULL);
    return kind;
}

/* A pair of f, which is taken over, and g: at least one attention is replaced where any can be. */
static inline void pair_open_of(pair_case *t, pare_model *f, uint64_t seed, double sigma,
                                double size)
{
    *t = (pair_case){.seed = seed, .f = f, .r = pare_rng_at(seed, 5)};
    t->in = some_input(t->f, seed, size, 0);
    vectors_for_ids(t);
    assert_ok(pare_model_check(t->f, &t->err), &t->err);
    assert_ok(pare_model_clone(&t->g, t->f, &t->err), &t->err);
    maker k = {.m = t->g, .r = pare_rng_at(seed, 6), .sigma = sigma};
    for (size_t b = 0, first = 1; b < t->g->nblocks; b++) {
        pare_attn *const at = &t->g->blocks[b].attn;
        if (at->kind != PARE_ATTN_EXACT && at->kind != PARE_ATTN_POLY) continue;
        if (first || maybe(&k)) replace_attn(&k, at, other_kind(&k));
        first = 0;
    }
    assert_ok(pare_model_check(t->g, &t->err), &t->err);
}

static inline void pair_open(pair_case *t, uint64_t seed, double sigma, double size)
{
    pair_open_of(t, some_model(seed, sigma), seed, sigma, size);
}

static inline void pair_close(pair_case *t)
{
    pare_model_free(t->g);
    pare_model_free(t->f);
}

/* ---- the search ------------------------------------------------------------------------------ */

typedef struct found { /* largest, over all points tried */
    double apart, rows2, difference, moves;
    size_t tried;
    bool relabeled; /* a row that began with one label has another, or the models disagree */
} found;

typedef struct hunt {
    const pair_case *t;
    pare_ball_norm norm;
    double radius;
    size_t rows, cols, count; /* of the output; numbers of the input */
    double *x, *f, *g, *f0;
    bool *certain_at_start;
    found *best;
    size_t where; /* the output entry that is furthest apart */
} hunt;

static inline size_t label_of(const double *y, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (y[i] > y[best]) best = i;
    return best;
}

static inline void run_at(const hunt *h, double *out, const pare_model *m)
{
    pare_input in = h->t->in;
    pare_err err = {0};
    in.x = h->x;
    assert_ok(pare_forward_f64(out, m, &in, NULL, NULL, &err), &err);
}

/* Both models at h->x; what is larger than before is kept. Returns the largest difference. */
static inline double look(hunt *h)
{
    run_at(h, h->f, h->t->f);
    run_at(h, h->g, h->t->g);
    double most = -1;
    for (size_t i = 0; i < h->rows; i++) {
        const double *const f = h->f + i * h->cols, *const g = h->g + i * h->cols;
        double two = 0;
        for (size_t o = 0; o < h->cols; o++) {
            const double apart = fabs(f[o] - g[o]);
            two += apart * apart;
            if (apart > most) most = apart, h->where = i * h->cols + o;
            h->best->moves = fmax(h->best->moves, fabs(f[o] - h->f0[i * h->cols + o]));
        }
        h->best->rows2 = fmax(h->best->rows2, sqrt(two));
        if (h->cols == 2)
            h->best->difference = fmax(h->best->difference, fabs((f[1] - f[0]) - (g[1] - g[0])));
        const size_t label = label_of(h->f0 + i * h->cols, h->cols);
        if (label_of(f, h->cols) != label || label_of(g, h->cols) != label)
            h->best->relabeled = true;
    }
    h->best->apart = fmax(h->best->apart, most);
    h->best->tried++;
    return most;
}

/* x = centre + a step of the whole radius along `way`, row by row. */
static inline void step_to(hunt *h, const double *way, double share)
{
    const size_t d = h->t->in.width;
    for (size_t i = 0; i < h->count / d; i++) {
        double size = 0;
        for (size_t k = 0; k < d; k++) {
            const double x = fabs(way[i * d + k]);
            size = h->norm == PARE_BALL_MAX ? fmax(size, x) : size + x * x;
        }
        if (h->norm == PARE_BALL_TWO) size = sqrt(size);
        const double by = size > 0 ? share * h->radius * (1 - 1e-15) / size : 0;
        for (size_t k = 0; k < d; k++)
            h->x[i * d + k] = h->t->in.x[i * d + k] + by * way[i * d + k];
    }
}

static inline void some_way(double *way, size_t n, size_t d, pare_rng *r)
{
    const size_t kind = (size_t)pare_rng_below(r, 4), row = (size_t)pare_rng_below(r, n / d);
    for (size_t i = 0; i < n; i++) {
        way[i] = pare_rng_normal(r);
        if (kind == 1) way[i] = way[i] > 0 ? 1 : -1;  /* a corner */
        if (kind == 2 && i >= d) way[i] = way[i % d]; /* all rows alike */
        if (kind == 3 && i / d != row) way[i] = 0;    /* one row alone */
    }
}

/* d |f - g| at the entry that is furthest apart / d x; false: the embedding is in the way. */
static inline bool slope_of(hunt *h, double *way, pare_tape *tapes[2])
{
    pare_err err = {0};
    pare_input in = h->t->in;
    in.x = h->x;
    const pare_mode mode = {0};
    double *const dy = calloc(h->rows * h->cols, sizeof *dy);
    assert_non_null(dy);
    dy[h->where] = h->f[h->where] > h->g[h->where] ? 1 : -1;
    for (size_t p = 0; p < 2; p++) {
        assert_ok(pare_tape_forward(tapes[p], &in, &mode, NULL, &err), &err);
        assert_ok(pare_tape_backward(tapes[p], dy, NULL, NULL, &err), &err);
        const double *const dx = pare_tape_dstream(tapes[p], 0);
        for (size_t i = 0; i < h->count; i++) way[i] = (p ? way[i] : 0) + (p ? -dx[i] : dx[i]);
    }
    free(dy);
    if (h->norm == PARE_BALL_MAX)
        for (size_t i = 0; i < h->count; i++) way[i] = way[i] > 0 ? 1 : way[i] < 0 ? -1 : 0;
    return true;
}

/* Ascent by whole steps: x goes where the slope points, as far as the ball reaches. */
static inline void climb(hunt *h, double *way, size_t starts, size_t steps)
{
    pare_params *params[2];
    pare_tape *tapes[2];
    pare_err err = {0};
    const pare_model *const m[2] = {h->t->f, h->t->g};
    if (pare_has(&m[0]->embedding.map.w) || m[0]->embedding.norm.kind != PARE_NORM_NONE) return;
    for (size_t p = 0; p < 2; p++) {
        assert_ok(pare_params_new(&params[p], m[p], PARE_F64, &err), &err);
        assert_ok(pare_tape_new(&tapes[p], params[p], NULL, &err), &err);
    }
    pare_rng r = pare_rng_at(h->t->seed, 9);
    for (size_t s = 0; s < starts; s++) {
        some_way(way, h->count, h->t->in.width, &r);
        step_to(h, way, pare_rng_uniform(&r));
        double last = look(h);
        for (size_t k = 0; k < steps && slope_of(h, way, tapes); k++) {
            step_to(h, way, 1);
            const double now = look(h);
            if (!(now > last * (1 + 1e-9))) break;
            last = now;
        }
    }
    for (size_t p = 0; p < 2; p++) {
        pare_tape_free(tapes[p]);
        pare_params_free(params[p]);
    }
}

static inline found search(const pair_case *t, double radius, pare_ball_norm norm, size_t random,
                           size_t starts)
{
    found best = {0};
    hunt h = {.t = t, .norm = norm, .radius = radius, .best = &best};
    h.rows = pare_output_rows(t->f, &t->in);
    h.cols = pare_model_outputs(t->f);
    h.count = t->in.batch * t->in.tokens * t->in.width;
    const size_t out = h.rows * h.cols;
    double *const way = calloc(h.count, sizeof *way);
    h.x = calloc(h.count, sizeof *h.x);
    h.f = calloc(out, sizeof *h.f), h.g = calloc(out, sizeof *h.g);
    h.f0 = calloc(out, sizeof *h.f0);
    assert_true(way && h.x && h.f && h.g && h.f0);
    memcpy(h.x, t->in.x, h.count * sizeof *h.x);
    run_at(&h, h.f0, t->f);
    look(&h);
    pare_rng r = pare_rng_at(t->seed, 8);
    for (size_t k = 0; k < random; k++) {
        some_way(way, h.count, t->in.width, &r);
        step_to(&h, way, k % 3 == 2 ? pare_rng_uniform(&r) : 1);
        look(&h);
    }
    climb(&h, way, starts, 8);
    free(way), free(h.x), free(h.f), free(h.g), free(h.f0);
    return best;
}
#endif
