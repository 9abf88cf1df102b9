/* evaluate.c - the layers of a model in ball arithmetic.
 *
 * A ball is a midpoint and a radius; Arb rounds every operation outwards, so the exact value is in
 * the ball that comes out. Weights, settings and inputs are doubles, which are balls of radius 0.
 * Nothing is clever here: products are arb_dot over rows, softmax is exp over its sum. Loops over
 * rows are shared by OpenMP; each entry is computed by one thread in one order, so the result does
 * not depend on their number. Memory is not taken inside of such loops, but for local vectors.
 *
 * Attention of the kind `poly` is evaluated as exact softmax attention: that is the function which
 * certificates speak of, and `tolerance` is about the f32 engine. */
#include "check.h"

#include <arb_hypgeom.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Less than this many products are not worth waking the other threads for. */
enum { FEW = 1 << 17 };

/* ---- rows ------------------------------------------------------------------------------------ */

balls new_balls(job *j, size_t n, size_t d)
{
    size_t count;
    if (__builtin_mul_overflow(n, d, &count)) fail(j, UNREADABLE, "%zu x %zu balls", n, d);
    return (balls){n, d, take_balls(j, count)};
}

arb_ptr row_of(balls b, size_t i)
{
    return b.v + i * b.d;
}

static void add_d(arb_t x, double v, slong prec)
{
    arb_t y;
    arb_init(y);
    arb_set_d(y, v);
    arb_add(x, x, y, prec);
    arb_clear(y);
}

static void mul_d(arb_t x, double v, slong prec)
{
    arb_t y;
    arb_init(y);
    arb_set_d(y, v);
    arb_mul(x, x, y, prec);
    arb_clear(y);
}

static balls copy(const evaluation *e, balls x)
{
    const balls y = new_balls(e->j, x.n, x.d);
    _arb_vec_set(y.v, x.v, (slong)(x.n * x.d));
    return y;
}

static void add_to(const evaluation *e, balls y, balls x)
{
    _arb_vec_add(y.v, y.v, x.v, (slong)(y.n * y.d), e->prec);
}

static void add_vector(const evaluation *e, balls y, const tensor *b)
{
    for (size_t i = 0; b && i < y.n * y.d; i++) add_d(y.v + i, weight_at(b, i % y.d), e->prec);
}

/* The mean of some rows; 0 of none. */
static void mean_of(arb_ptr out, balls x, const uint32_t *which, size_t n, slong prec)
{
    for (size_t k = 0; k < n; k++) _arb_vec_add(out, out, row_of(x, which[k]), (slong)x.d, prec);
    if (n) _arb_vec_scalar_div_ui(out, out, (slong)x.d, n, prec);
}

/* y = x W^T + b, of rows `first` to `first + out - 1` of W. */
static balls dense_part(const evaluation *e, balls x, const tensor *w, size_t first, size_t out,
                        const tensor *b)
{
    const balls y = new_balls(e->j, x.n, out);
#pragma omp parallel if (y.n * x.d * out > FEW)
    {
        arb_ptr weights = _arb_vec_init((slong)x.d + 1), bias = weights + x.d;
#pragma omp for schedule(static)
        for (size_t o = 0; o < y.d; o++) {
            for (size_t k = 0; k < x.d; k++)
                arb_set_d(weights + k, weight_at(w, (first + o) * w->cols + k));
            if (b) arb_set_d(bias, weight_at(b, o));
            for (size_t i = 0; i < y.n; i++)
                arb_dot(row_of(y, i) + o, bias, 0, row_of(x, i), 1, weights, 1, (slong)x.d,
                        e->prec);
        }
        _arb_vec_clear(weights, (slong)x.d + 1);
    }
    return y;
}

/* A matrix that is absent is the identity. */
static balls dense(const evaluation *e, balls x, const tensor *w, const tensor *b)
{
    return w ? dense_part(e, x, w, 0, w->rows, b) : x;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* x / sqrt((|x|^2 + shift) / divisor + eps); a row of zeros whose root is 0 stays zero. t: room. */
static void divide_by_size(arb_ptr x, size_t d, const norm *n, arb_ptr t, slong prec)
{
    arb_dot(t, NULL, 0, x, 1, x, 1, (slong)d, prec);
    add_d(t, n->shift, prec);
    arb_set_d(t + 1, n->divisor);
    arb_div(t, t, t + 1, prec);
    add_d(t, n->eps, prec);
    if (arb_is_zero(t)) return;
    arb_rsqrt(t, t, prec);
    _arb_vec_scalar_mul(x, x, (slong)d, t, prec);
}

static void norm_row(arb_ptr x, size_t d, const norm *n, arb_ptr t, slong prec)
{
    for (size_t k = 0; n->offset && k < d; k++) add_d(x + k, weight_at(n->offset, k), prec);
    if (n->kind == NORM_LAYER || n->kind == NORM_MEAN) {
        arb_zero(t);
        for (size_t k = 0; k < d; k++) arb_add(t, t, x + k, prec);
        arb_div_ui(t, t, d, prec);
        for (size_t k = 0; k < d; k++) arb_sub(x + k, x + k, t, prec);
    }
    if (n->kind == NORM_LAYER || n->kind == NORM_RMS) divide_by_size(x, d, n, t, prec);
    for (size_t k = 0; n->kind == NORM_BATCH && k < d; k++) {
        add_d(x + k, -weight_at(n->mean, k), prec);
        arb_set_d(t, weight_at(n->var, k));
        add_d(t, n->eps, prec);
        arb_rsqrt(t, t, prec);
        arb_mul(x + k, x + k, t, prec);
    }
    for (size_t k = 0; n->gain && k < d; k++) mul_d(x + k, weight_at(n->gain, k), prec);
    for (size_t k = 0; n->bias && k < d; k++) add_d(x + k, weight_at(n->bias, k), prec);
}

static void norm_rows(const evaluation *e, balls x, const norm *n)
{
    arb_ptr t = take_balls(e->j, 2);
    for (size_t i = 0; n->kind != NORM_NONE && i < x.n; i++)
        norm_row(row_of(x, i), x.d, n, t, e->prec);
}

balls normalized(const evaluation *e, balls x, const norm *n)
{
    const balls z = copy(e, x);
    norm_rows(e, z, n);
    return z;
}

/* ---- activations ----------------------------------------------------------------------------- */

/* v = sqrt(8 / pi) (x + 0.044715 x^3), where 0.044715 is the decimal number: then gelu_tanh is
 * x (1 + tanh(v / 2)) / 2 = x / (1 + exp(-v)). */
static void inside_gelu_tanh(arb_ptr v, const arb_t x, slong prec)
{
    arb_pow_ui(v, x, 3, prec);
    arb_mul_ui(v, v, 44715, prec);
    arb_div_ui(v, v, 1000000, prec);
    arb_add(v, v, x, prec);
    arb_const_pi(v + 1, prec);
    arb_mul_2exp_si(v + 1, v + 1, -3);
    arb_rsqrt(v + 1, v + 1, prec);
    arb_mul(v, v, v + 1, prec);
}

static void activate_one(arb_t x, act a, arb_ptr v, slong prec) /* v: room for 2 */
{
    arb_zero(v);
    if (a == ACT_RELU) arb_max(x, x, v, prec);
    if (a == ACT_TANH) arb_tanh(x, x, prec);
    if (a == ACT_GELU) { /* x (1 + erf(x / sqrt 2)) / 2 */
        arb_set_d(v, 0.5);
        arb_sqrt(v, v, prec);
        arb_mul(v, v, x, prec);
        arb_hypgeom_erf(v, v, prec);
        arb_add_ui(v, v, 1, prec);
        arb_mul(x, x, v, prec);
        arb_mul_2exp_si(x, x, -1);
    }
    if (a == ACT_SILU || a == ACT_GELU_TANH) { /* x / (1 + exp(-v)) */
        arb_set(v, x);
        if (a == ACT_GELU_TANH) inside_gelu_tanh(v, x, prec);
        arb_neg(v, v);
        arb_exp(v, v, prec);
        arb_add_ui(v, v, 1, prec);
        arb_div(x, x, v, prec);
    }
}

static void activate(const evaluation *e, balls x, act a)
{
#pragma omp parallel if (x.n * x.d > FEW / 64)
    {
        arb_ptr v = _arb_vec_init(2);
#pragma omp for schedule(static)
        for (size_t i = 0; i < x.n * x.d; i++) activate_one(x.v + i, a, v, e->prec);
        _arb_vec_clear(v, 2);
    }
}

/* ---- the embedding --------------------------------------------------------------------------- */

evaluation begin_evaluation(job *j, const model *m, const input *in, slong prec)
{
    must_fit(j, m, in);
    return (evaluation){j, m, in, m->pattern == GRAPH ? complete_graph(j, m, in->edges) : NULL,
                        prec};
}

/* Entry k of d at a position: sin or cos of position / base^(2 (k / 2) / d). */
static void wave(arb_ptr v, double base, size_t position, size_t k, size_t d, slong prec)
{
    arb_set_ui(v + 1, k / 2 * 2);
    arb_div_ui(v + 1, v + 1, d, prec);
    arb_set_d(v, base);
    arb_pow(v, v, v + 1, prec);
    arb_ui_div(v, position, v, prec);
    (k % 2 ? arb_cos : arb_sin)(v, v, prec);
}

static void add_positions(const evaluation *e, balls x)
{
    const model *const m = e->m;
    arb_ptr v = take_balls(e->j, 2);
    if (m->positions != POS_LEARNED && m->positions != POS_SINUSOIDAL) return;
    for (size_t i = 0; i < x.n * x.d; i++) {
        if (m->positions == POS_LEARNED)
            arb_set_d(v, weight_at(m->position_table, i));
        else
            wave(v, m->base, i / x.d, i % x.d, x.d, e->prec + 32);
        arb_add(x.v + i, x.v + i, v, e->prec);
    }
}

balls embed(const evaluation *e)
{
    const model *const m = e->m;
    const input *const in = e->in;
    balls x = new_balls(e->j, in->tokens, m->width);
    arb_ptr radius = take_balls(e->j, 1);
    arb_set_d(radius, in->radius);
    for (size_t at = 0; at < x.n * x.d; at++) {
        const size_t i = at / m->width, k = at % m->width;
        arb_set_d(x.v + at,
                  m->ids ? weight_at(m->table, (size_t)in->ids[i] * m->width + k) : in->x[at]);
        if (in->shift) add_d(x.v + at, in->shift[at], e->prec);
        if (in->radius > 0) arb_add_error(x.v + at, radius);
    }
    if (!m->after_map) add_positions(e, x);
    x = dense(e, x, m->map, m->map_bias);
    if (m->after_map) add_positions(e, x);
    norm_rows(e, x, &m->norm);
    return x;
}

/* ---- attention ------------------------------------------------------------------------------- */

size_t visible(const evaluation *e, size_t query, uint32_t *keys)
{
    const model *const m = e->m;
    const size_t last = m->pattern == FULL ? e->in->tokens : query + 1;
    size_t n = 0;
    if (m->pattern == GRAPH) {
        n = e->edges->from[query + 1] - e->edges->from[query];
        memcpy(keys, e->edges->list + e->edges->from[query], n * sizeof *keys);
        return n;
    }
    for (size_t k = 0; k < last; k++)
        if (m->pattern != WINDOW || k + m->window > query || k < m->sinks) keys[n++] = (uint32_t)k;
    return n;
}

/* U x: the plain mean of the rows that a row sees; 0 where it sees none. */
static balls visible_means(const evaluation *e, balls x)
{
    const balls y = new_balls(e->j, x.n, x.d);
    uint32_t *const keys = take(e->j, x.n + 1, sizeof *keys);
    for (size_t i = 0; i < y.n; i++) {
        if (e->m->pattern == FULL && i > 0)
            _arb_vec_set(row_of(y, i), y.v, (slong)x.d);
        else
            mean_of(row_of(y, i), x, keys, visible(e, i, keys), e->prec);
    }
    return y;
}

/* Rotary positions: planes (2p, 2p + 1) or (p, p + planes) of a head's part, at each position. */
static void rotate(const evaluation *e, balls x, const sublayer *at, const head *h, size_t first)
{
    const slong prec = e->prec;
    arb_ptr t = take_balls(e->j, 4), s = t + 1, c = t + 2, a = t + 3;
    for (size_t i = 0; i < x.n; i++)
        for (size_t p = 0; p < h->planes; p++) {
            arb_ptr one = row_of(x, i) + first + (e->m->interleaved ? 2 * p : p);
            arb_ptr two = one + (e->m->interleaved ? 1 : h->planes);
            arb_set_d(a, weight_at(at->freqs, h->freq + p));
            arb_mul_ui(a, a, i, prec + 64);
            arb_sin_cos(s, c, a, prec + 32);
            arb_mul(a, one, s, prec);
            arb_mul(t, two, s, prec);
            arb_mul(one, one, c, prec);
            arb_sub(one, one, t, prec);
            arb_mul(two, two, c, prec);
            arb_add(two, two, a, prec);
        }
}

void queries_and_keys(const evaluation *e, const sublayer *a, balls z, balls *q, balls *k)
{
    *k = a->wk ? dense(e, z, a->wk, a->bk) : z;
    *q = a->wq ? dense(e, z, a->wq, a->bq) : new_balls(e->j, z.n, a->nq);
    if (!a->wq) add_vector(e, *q, a->bq); /* the same for all */
    if (a->kind == ATTN_MEANQ) *q = visible_means(e, *q); /* the mean of all: its pattern is full */
    for (size_t h = 0; a->freqs && h < a->nheads; h++) {
        bool turned = false; /* heads that share keys turn them alike: once */
        for (size_t g = 0; g < h; g++) turned = turned || a->heads[g].k == a->heads[h].k;
        rotate(e, *q, a, &a->heads[h], a->heads[h].q);
        if (!turned) rotate(e, *k, a, &a->heads[h], a->heads[h].k);
    }
}

/* s_j - ln sum exp s. The midpoint of the largest is taken off first: exp then does not overflow. */
void log_softmax(arb_ptr s, size_t n, slong prec)
{
    arb_ptr sum = _arb_vec_init(3), v = sum + 1, most = sum + 2;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || arf_cmp(arb_midref(s + i), arb_midref(most)) > 0)
            arf_set(arb_midref(most), arb_midref(s + i));
    for (size_t i = 0; i < n; i++) {
        if (arb_is_finite(most)) arb_sub(s + i, s + i, most, prec);
        arb_exp(v, s + i, prec);
        arb_add(sum, sum, v, prec);
    }
    arb_log(sum, sum, prec);
    for (size_t i = 0; i < n; i++) arb_sub(s + i, s + i, sum, prec);
    _arb_vec_clear(sum, 3);
}

void attention_weights(arb_ptr out, bool logarithms, const head *h, arb_srcptr q, balls k,
                       const uint32_t *keys, size_t n, slong prec)
{
    for (size_t i = 0; i < n; i++) {
        arb_dot(out + i, NULL, 0, q, 1, row_of(k, keys[i]) + h->k, 1, (slong)h->dk, prec);
        mul_d(out + i, h->scale, prec);
    }
    log_softmax(out, n, prec);
    for (size_t i = 0; !logarithms && i < n; i++) arb_exp(out + i, out + i, prec);
}

/* All heads side by side; 0 where a query sees no key. */
static balls softmax_heads(const evaluation *e, const sublayer *a, balls z)
{
    balls q, k;
    queries_and_keys(e, a, z, &q, &k);
    const balls v = dense(e, z, a->wv, a->bv), o = new_balls(e->j, z.n, a->no);
#pragma omp parallel if (o.n * o.n * a->nheads > FEW / 64)
    {
        uint32_t *const keys = flint_malloc((z.n + 1) * sizeof *keys);
        arb_ptr weight = _arb_vec_init((slong)z.n);
#pragma omp for schedule(static)
        for (size_t i = 0; i < o.n; i++) {
            const size_t n = visible(e, i, keys);
            for (size_t t = 0; t < a->nheads; t++) {
                const head *const h = &a->heads[t];
                attention_weights(weight, false, h, row_of(q, i) + h->q, k, keys, n, e->prec);
                for (size_t c = 0; c < h->dv; c++)
                    for (size_t s = 0; s < n; s++)
                        arb_addmul(row_of(o, i) + h->o + c, weight + s,
                                   row_of(v, keys[s]) + h->v + c, e->prec);
            }
        }
        _arb_vec_clear(weight, (slong)z.n);
        flint_free(keys);
    }
    return o;
}

static balls side_by_side(const evaluation *e, balls a, balls b)
{
    const balls both = new_balls(e->j, a.n, a.d + b.d);
    for (size_t i = 0; i < both.n; i++) {
        _arb_vec_set(row_of(both, i), row_of(a, i), (slong)a.d);
        _arb_vec_set(row_of(both, i) + a.d, row_of(b, i), (slong)b.d);
    }
    return both;
}

/* What attention adds to its rows: docs/format.md has one line for each kind. */
static balls attention_branch(const evaluation *e, const sublayer *a, balls z)
{
    balls y = new_balls(e->j, z.n, a->out), u = z;
    switch (a->kind) {
    case ATTN_ABSENT:
    case ATTN_ZERO:
    case ATTN_CONST:
        break;
    case ATTN_EXACT:
    case ATTN_POLY:
    case ATTN_CONSTQ:
    case ATTN_MEANQ:
        y = dense(e, softmax_heads(e, a, z), a->wo, NULL);
        break;
    case ATTN_UNIFORM: /* U (z mix^T + bv) */
        y = visible_means(e, dense(e, z, a->mix, a->bv));
        break;
    case ATTN_AFFMIX: /* z matrix^T + U z mix^T */
        y = dense(e, z, a->matrix, NULL);
        add_to(e, y, dense(e, visible_means(e, z), a->mix, NULL));
        break;
    case ATTN_LINEAR:
        y = dense(e, z, a->matrix, NULL);
        break;
    case ATTN_POOL: /* [z, heads] matrix^T */
        y = dense(e, side_by_side(e, z, softmax_heads(e, a, z)), a->matrix, NULL);
        break;
    case ATTN_UMIX: /* sum_p U^p z E_p: the E_p^T are stacked in mix */
        for (size_t p = 0; p < a->mix->rows / a->out; p++) {
            if (p > 0) u = visible_means(e, u);
            add_to(e, y, dense_part(e, u, a->mix, p * a->out, a->out, NULL));
        }
        break;
    }
    add_vector(e, y, a->bo);
    return y;
}

/* ---- sublayers and the head ------------------------------------------------------------------ */

static balls ffn_branch(const evaluation *e, const sublayer *f, balls z)
{
    balls y = dense(e, z, f->w[0], f->b[0]);
    if (f->gated) { /* down(act(gate z) * up z) */
        const balls up = dense(e, z, f->w[1], f->b[1]);
        activate(e, y, f->act);
        for (size_t i = 0; i < up.n * up.d; i++) arb_mul(y.v + i, y.v + i, up.v + i, e->prec);
        return dense(e, y, f->w[2], f->b[2]);
    }
    for (size_t l = 1; l < f->nlayers; l++) {
        activate(e, y, f->act);
        y = dense(e, y, f->w[l], f->b[l]);
    }
    return y;
}

balls branch(const evaluation *e, const sublayer *s, balls z)
{
    return s->w ? ffn_branch(e, s, z) : attention_branch(e, s, z);
}

/* out_norm(skip(x) + branch(in_norm(x))); nothing else is kept. */
balls apply_sublayer(const evaluation *e, const sublayer *s, balls x, bool skip_only)
{
    if (!s->there) return x;
    const balls out = new_balls(e->j, x.n, s->out);
    block *const mark = e->j->blocks;
    balls y = copy(e, skip_only ? out : branch(e, s, normalized(e, x, &s->in_norm)));
    balls term = s->skip == SKIP_DENSE ? dense(e, x, s->skip_w, NULL) : copy(e, x);
    for (size_t i = 0; s->skip == SKIP_DIAGONAL && i < term.n * term.d; i++)
        mul_d(term.v + i, weight_at(s->skip_w, i % term.d), e->prec);
    if (s->skip != SKIP_NONE) add_to(e, y, term);
    norm_rows(e, y, &s->out_norm);
    _arb_vec_swap(out.v, y.v, (slong)(y.n * y.d));
    release(e->j, mark);
    return out;
}

static void pool_rows(const evaluation *e, balls h) /* into the first row */
{
    uint32_t *const all = take(e->j, h.n + 1, sizeof *all);
    arb_ptr sum = take_balls(e->j, h.d);
    for (size_t i = 0; i < h.n; i++) all[i] = (uint32_t)i;
    if (e->m->pool == POOL_MEAN) {
        mean_of(sum, h, all, h.n, e->prec);
        _arb_vec_swap(h.v, sum, (slong)h.d);
    }
    if (e->m->pool == POOL_LAST && h.n > 1) _arb_vec_swap(h.v, row_of(h, h.n - 1), (slong)h.d);
    for (size_t i = h.d; e->m->pool == POOL_MAX && i < h.n * h.d; i++)
        arb_max(h.v + i % h.d, h.v + i % h.d, h.v + i, e->prec);
}

/* y = normalize(out(act(dense(pool(norm x))))) */
balls apply_head(const evaluation *e, balls x)
{
    static const norm unit = {NORM_RMS, 0, 1, 0, NULL, NULL, NULL, NULL, NULL};
    const model *const m = e->m;
    balls h = normalized(e, x, &m->head_norm);
    if (m->pool) pool_rows(e, h);
    if (m->pool) h.n = 1;
    h = dense(e, h, m->dense, m->dense_bias);
    activate(e, h, m->head_act);
    h = dense(e, h, m->out, m->out_bias);
    if (m->normalize) norm_rows(e, h, &unit); /* x / |x|; a row of zeros stays zero */
    return h;
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* Multiply-adds of one pass: every matrix once for every token, and scores and values of a key. */
double work_of(const model *m, const input *in)
{
    const double n = (double)in->tokens;
    const double pairs =
        m->pattern == GRAPH && in->edges
            ? (double)in->edges->from[in->edges->n] + n * (double)(m->degree + m->self_loops)
        : m->pattern == WINDOW ? n * fmin(n, (double)(m->window + m->sinks))
                               : n * n;
    double work = 0;
    for (size_t i = 0; i < m->ntensors; i++) {
        const tensor *const t = &m->tensors[i];
        const bool once = m->pool && (t == m->dense || t == m->out);
        if (t->ndim == 2 && ((t != m->table && t != m->position_table) || t == m->out))
            work += (once ? 1 : n) * (double)t->rows * (double)t->cols;
    }
    for (size_t l = 0; l < m->nlayers; l++)
        for (size_t h = 0; h < m->layers[l].attn.nheads; h++)
            work += pairs * (double)(m->layers[l].attn.heads[h].dk + m->layers[l].attn.heads[h].dv +
                                     50); /* 50: an exponential */
    return work;
}
