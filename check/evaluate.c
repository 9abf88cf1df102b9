/* evaluate.c - the layers of a model in ball arithmetic.
 *
 * A ball is a midpoint and a radius; Arb rounds every operation outwards, so the exact value is in
 * the ball that comes out. Weights, settings and inputs are doubles, which are balls of radius 0.
 * Nothing is clever here: products are arb_dot over rows, softmax is exp over its sum. Loops over
 * rows are shared by OpenMP; each entry is computed by one thread in one order, so the result does
 * not depend on their number.
 *
 * Attention of the kind `poly` is evaluated as exact softmax attention: that is the function which
 * certificates speak of, and `tolerance` is about the f32 engine. */
#include "check.h"

#include <arb_hypgeom.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Less than this many balls are not worth waking the other threads for. */
enum { FEW = 1 << 17 };

/* ---- rows ------------------------------------------------------------------------------------ */

struct balls_list {
    balls rows;
    balls_list *next;
};

balls new_balls(evaluation *r, size_t n, size_t d)
{
    size_t count;
    if (__builtin_mul_overflow(n, d, &count) || count > r->j->o->most_balls)
        fail(r->j, UNREADABLE, "%zu x %zu balls are too many", n, d);
    if (r->j->t.code) return (balls){0};
    balls_list *const k = flint_malloc(sizeof *k);
    *k = (balls_list){{n, d, _arb_vec_init((slong)count)}, r->kept};
    r->kept = k;
    return k->rows;
}

void drop_since(evaluation *r, balls_list *mark, balls but)
{
    balls_list **at = &r->kept;
    while (*at != mark) {
        balls_list *const k = *at;
        if (k->rows.v == but.v) {
            at = &k->next;
            continue;
        }
        *at = k->next;
        _arb_vec_clear(k->rows.v, (slong)(k->rows.n * k->rows.d));
        flint_free(k);
    }
}

arb_ptr row_of(balls b, size_t i)
{
    return b.v + i * b.d;
}

/* Numbers of a model are doubles, which are exact. */
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

/* ---- maps ------------------------------------------------------------------------------------ */

/* y = x W^T + b, of rows `first` to `first + out - 1` of W. */
static balls dense_part(evaluation *r, balls x, const tensor *w, size_t first, size_t out,
                        const tensor *b)
{
    const balls y = new_balls(r, x.n, out);
#pragma omp parallel if (y.n * x.d * out > FEW)
    {
        arb_ptr weights = _arb_vec_init((slong)x.d);
        arb_t bias;
        arb_init(bias);
#pragma omp for schedule(static)
        for (size_t o = 0; o < y.d; o++) {
            for (size_t k = 0; k < x.d; k++)
                arb_set_d(weights + k, weight_at(w, (first + o) * w->cols + k));
            if (b) arb_set_d(bias, weight_at(b, o));
            for (size_t i = 0; i < y.n; i++)
                arb_dot(row_of(y, i) + o, bias, 0, row_of(x, i), 1, weights, 1, (slong)x.d,
                        r->prec);
        }
        _arb_vec_clear(weights, (slong)x.d);
        arb_clear(bias);
    }
    return y;
}

/* A matrix that is absent is the identity. */
static balls dense(evaluation *r, balls x, const tensor *w, const tensor *b)
{
    return w ? dense_part(r, x, w, 0, w->rows, b) : x;
}

static void add_to(balls y, balls x, slong prec)
{
    if (x.v) _arb_vec_add(y.v, y.v, x.v, (slong)(y.n * y.d), prec);
}

static void add_vector(balls y, const tensor *b, slong prec)
{
    for (size_t i = 0; b && i < y.n * y.d; i++) add_d(y.v + i, weight_at(b, i % y.d), prec);
}

static balls copy(evaluation *r, balls x)
{
    const balls y = new_balls(r, x.n, x.d);
    if (y.v) _arb_vec_set(y.v, x.v, (slong)(x.n * x.d));
    return y;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* x / sqrt((|x|^2 + shift) / divisor + eps); a row of zeros whose root is 0 stays zero. */
static void divide_by_size(arb_ptr x, size_t d, const norm *n, slong prec)
{
    arb_ptr size = _arb_vec_init(2), divisor = size + 1;
    arb_set_d(divisor, n->divisor);
    arb_dot(size, NULL, 0, x, 1, x, 1, (slong)d, prec);
    add_d(size, n->shift, prec);
    arb_div(size, size, divisor, prec);
    add_d(size, n->eps, prec);
    if (!arb_is_zero(size)) {
        arb_rsqrt(size, size, prec);
        _arb_vec_scalar_mul(x, x, (slong)d, size, prec);
    }
    _arb_vec_clear(size, 2);
}

static void subtract_mean(arb_ptr x, size_t d, slong prec)
{
    arb_t mean;
    arb_init(mean);
    for (size_t k = 0; k < d; k++) arb_add(mean, mean, x + k, prec);
    arb_div_ui(mean, mean, d, prec);
    for (size_t k = 0; k < d; k++) arb_sub(x + k, x + k, mean, prec);
    arb_clear(mean);
}

static void norm_row(arb_ptr x, size_t d, const norm *n, slong prec)
{
    arb_t root;
    arb_init(root);
    for (size_t k = 0; n->offset && k < d; k++) add_d(x + k, weight_at(n->offset, k), prec);
    if (n->kind == NORM_LAYER || n->kind == NORM_MEAN) subtract_mean(x, d, prec);
    if (n->kind == NORM_LAYER || n->kind == NORM_RMS) divide_by_size(x, d, n, prec);
    for (size_t k = 0; n->kind == NORM_BATCH && k < d; k++) {
        add_d(x + k, -weight_at(n->mean, k), prec);
        arb_set_d(root, weight_at(n->var, k));
        add_d(root, n->eps, prec);
        arb_rsqrt(root, root, prec);
        arb_mul(x + k, x + k, root, prec);
    }
    for (size_t k = 0; n->gain && k < d; k++) mul_d(x + k, weight_at(n->gain, k), prec);
    for (size_t k = 0; n->bias && k < d; k++) add_d(x + k, weight_at(n->bias, k), prec);
    arb_clear(root);
}

static void norm_rows(balls x, const norm *n, slong prec)
{
    if (n->kind == NORM_NONE) return;
#pragma omp parallel for schedule(static) if (x.n * x.d > FEW)
    for (size_t i = 0; i < x.n; i++) norm_row(row_of(x, i), x.d, n, prec);
}

balls normalized(evaluation *r, balls x, const norm *n)
{
    const balls z = copy(r, x);
    norm_rows(z, n, r->prec);
    return z;
}

/* ---- activations ----------------------------------------------------------------------------- */

static void gelu(arb_t x, slong prec)
{
    arb_t v;
    arb_init(v);
    arb_set_d(v, 0.5);
    arb_sqrt(v, v, prec);
    arb_mul(v, v, x, prec);
    arb_hypgeom_erf(v, v, prec);
    arb_add_ui(v, v, 1, prec);
    arb_mul(x, x, v, prec);
    arb_mul_2exp_si(x, x, -1);
    arb_clear(v);
}

/* x / (1 + exp(-v)) */
static void times_sigmoid(arb_t x, arb_t v, slong prec)
{
    arb_neg(v, v);
    arb_exp(v, v, prec);
    arb_add_ui(v, v, 1, prec);
    arb_div(x, x, v, prec);
}

/* x (1 + tanh(v / 2)) / 2 with v = sqrt(8 / pi) (x + 0.044715 x^3), where 0.044715 is the decimal
 * number. */
static void gelu_tanh(arb_t x, slong prec)
{
    arb_ptr v = _arb_vec_init(2), w = v + 1;
    arb_pow_ui(v, x, 3, prec);
    arb_mul_ui(v, v, 44715, prec);
    arb_div_ui(v, v, 1000000, prec);
    arb_add(v, v, x, prec);
    arb_const_pi(w, prec);
    arb_mul_2exp_si(w, w, -3);
    arb_rsqrt(w, w, prec);
    arb_mul(v, v, w, prec);
    times_sigmoid(x, v, prec);
    _arb_vec_clear(v, 2);
}

static void silu(arb_t x, slong prec)
{
    arb_t v;
    arb_init(v);
    arb_set(v, x);
    times_sigmoid(x, v, prec);
    arb_clear(v);
}

static void relu(arb_t x, slong prec)
{
    arb_t zero;
    arb_init(zero);
    arb_max(x, x, zero, prec);
    arb_clear(zero);
}

static void activate(balls x, act a, slong prec)
{
    if (a == ACT_NONE) return;
#pragma omp parallel for schedule(static) if (x.n * x.d > FEW / 64)
    for (size_t i = 0; i < x.n * x.d; i++) {
        if (a == ACT_RELU) relu(x.v + i, prec);
        if (a == ACT_GELU) gelu(x.v + i, prec);
        if (a == ACT_GELU_TANH) gelu_tanh(x.v + i, prec);
        if (a == ACT_SILU) silu(x.v + i, prec);
        if (a == ACT_TANH) arb_tanh(x.v + i, x.v + i, prec);
    }
}

/* ---- the embedding --------------------------------------------------------------------------- */

/* Entry k of d at a position: sin or cos of position / base^(2 (k / 2) / d). */
static void wave(arb_t out, double base, size_t position, size_t k, size_t d, slong prec)
{
    arb_ptr power = _arb_vec_init(2), v = power + 1;
    arb_set_ui(power, k / 2 * 2);
    arb_div_ui(power, power, d, prec);
    arb_set_d(v, base);
    arb_pow(v, v, power, prec);
    arb_ui_div(v, position, v, prec);
    if (k % 2)
        arb_cos(out, v, prec);
    else
        arb_sin(out, v, prec);
    _arb_vec_clear(power, 2);
}

static void add_positions(const model *m, balls x, slong prec)
{
    const bool table = m->positions == POS_LEARNED;
    if (!table && m->positions != POS_SINUSOIDAL) return;
#pragma omp parallel for schedule(static) if (x.n * x.d > FEW)
    for (size_t i = 0; i < x.n; i++) {
        arb_t v;
        arb_init(v);
        for (size_t k = 0; k < x.d; k++) {
            if (table)
                arb_set_d(v, weight_at(m->position_table, i * x.d + k));
            else
                wave(v, m->base, i, k, x.d, prec + 32);
            arb_add(row_of(x, i) + k, row_of(x, i) + k, v, prec);
        }
        arb_clear(v);
    }
}

balls embed(evaluation *r)
{
    const model *const m = r->m;
    const input *const in = &r->in;
    balls x = new_balls(r, in->tokens, m->width);
    arb_t radius;
    arb_init(radius);
    arb_set_d(radius, in->radius);
    for (size_t at = 0; at < x.n * x.d; at++) {
        const size_t i = at / m->width, k = at % m->width;
        arb_set_d(x.v + at,
                  m->ids ? weight_at(m->table, (size_t)in->ids[i] * m->width + k) : in->x[at]);
        if (in->shift) add_d(x.v + at, in->shift[at], r->prec);
        if (in->radius > 0) arb_add_error(x.v + at, radius);
    }
    arb_clear(radius);
    if (!m->after_map) add_positions(m, x, r->prec);
    x = dense(r, x, m->map, m->map_bias);
    if (m->after_map) add_positions(m, x, r->prec);
    norm_rows(x, &m->norm, r->prec);
    return x;
}

/* ---- attention ------------------------------------------------------------------------------- */

size_t visible(const evaluation *r, size_t query, uint32_t *keys)
{
    const model *const m = r->m;
    size_t n = 0;
    if (m->pattern == GRAPH) {
        const graph *const g = r->in.complete;
        for (size_t e = g->from[query]; e < g->from[query + 1]; e++) keys[n++] = g->list[e];
        return n;
    }
    const size_t last = m->pattern == FULL ? r->in.tokens : query + 1;
    for (size_t k = 0; k < last; k++)
        if (m->pattern != WINDOW || k + m->window > query || k < m->sinks) keys[n++] = (uint32_t)k;
    return n;
}

/* U x: the plain mean of the rows that a row sees; 0 where it sees none. */
static balls visible_means(evaluation *r, balls x)
{
    const balls y = new_balls(r, x.n, x.d);
    uint32_t *const keys = flint_malloc((x.n + 1) * sizeof *keys);
    for (size_t i = 0; i < y.n; i++) {
        const size_t n = visible(r, i, keys);
        if (r->m->pattern == FULL && i > 0) {
            _arb_vec_set(row_of(y, i), y.v, (slong)x.d);
            continue;
        }
#pragma omp parallel for schedule(static) if (n * x.d > FEW)
        for (size_t c = 0; c < x.d; c++) {
            arb_ptr to = row_of(y, i) + c;
            for (size_t k = 0; k < n; k++) arb_add(to, to, row_of(x, keys[k]) + c, r->prec);
            if (n) arb_div_ui(to, to, n, r->prec);
        }
    }
    flint_free(keys);
    return y;
}

/* Rotary positions: planes (2p, 2p + 1) or (p, p + planes) of a head's part, at each position. */
static void rotate(const evaluation *r, balls x, const attention *at, const head *h, size_t first)
{
    const bool interleaved = r->m->interleaved;
    const slong prec = r->prec;
#pragma omp parallel for schedule(static) if (x.n * h->planes > FEW / 64)
    for (size_t i = 0; i < x.n; i++) {
        arb_ptr t = _arb_vec_init(4);
        arb_ptr s = t, c = t + 1, a = t + 2, b = t + 3;
        for (size_t p = 0; p < h->planes; p++) {
            arb_ptr one = row_of(x, i) + first + (interleaved ? 2 * p : p);
            arb_ptr two = row_of(x, i) + first + (interleaved ? 2 * p + 1 : p + h->planes);
            arb_set_d(a, weight_at(at->freqs, h->freq + p));
            arb_mul_ui(a, a, i, prec + 64);
            arb_sin_cos(s, c, a, prec + 32);
            arb_mul(a, one, s, prec);
            arb_mul(b, two, s, prec);
            arb_mul(one, one, c, prec);
            arb_sub(one, one, b, prec);
            arb_mul(two, two, c, prec);
            arb_add(two, two, a, prec);
        }
        _arb_vec_clear(t, 4);
    }
}

static balls make_queries(evaluation *r, const attention *a, balls z)
{
    const balls q = a->wq ? dense(r, z, a->wq, a->bq) : new_balls(r, z.n, a->nq);
    if (!a->wq) add_vector(q, a->bq, r->prec);                         /* the same for all */
    for (size_t k = 0; a->kind == ATTN_MEANQ && q.n && k < q.d; k++) { /* the mean of all */
        for (size_t i = 1; i < q.n; i++) arb_add(q.v + k, q.v + k, row_of(q, i) + k, r->prec);
        arb_div_ui(q.v + k, q.v + k, q.n, r->prec);
        for (size_t i = 1; i < q.n; i++) arb_set(row_of(q, i) + k, q.v + k);
    }
    return q;
}

void queries_and_keys(evaluation *r, const attention *a, balls z, balls *q, balls *k)
{
    *q = make_queries(r, a, z);
    *k = dense(r, z, a->wk, a->bk);
    for (size_t h = 0; a->freqs && h < a->nheads; h++) {
        bool turned = false; /* heads that share keys turn them alike: once */
        for (size_t g = 0; g < h; g++) turned = turned || a->heads[g].k == a->heads[h].k;
        rotate(r, *q, a, &a->heads[h], a->heads[h].q);
        if (!turned) rotate(r, *k, a, &a->heads[h], a->heads[h].k);
    }
}

/* The midpoint of the largest score, taken from all of them: exp then does not overflow. */
static void lower_by_largest(arb_ptr s, size_t n, slong prec)
{
    arf_t most;
    arf_init(most);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || arf_cmp(arb_midref(s + i), most) > 0) arf_set(most, arb_midref(s + i));
    if (arf_is_finite(most))
        for (size_t i = 0; i < n; i++) arb_sub_arf(s + i, s + i, most, prec);
    arf_clear(most);
}

/* Scores, the largest of which is about 0, their exponentials (in place: weight == out) and the sum. */
static void scores_of(arb_ptr out, arb_ptr weight, arb_t sum, const head *h, arb_srcptr q, balls k,
                      const uint32_t *keys, size_t n, slong prec)
{
    for (size_t i = 0; i < n; i++) {
        arb_dot(out + i, NULL, 0, q, 1, row_of(k, keys[i]) + h->k, 1, (slong)h->dk, prec);
        mul_d(out + i, h->scale, prec);
    }
    lower_by_largest(out, n, prec);
    for (size_t i = 0; i < n; i++) {
        arb_exp(weight + i, out + i, prec);
        arb_add(sum, sum, weight + i, prec);
    }
}

/* s_j - ln sum exp s */
void log_weights(arb_ptr out, const head *h, arb_srcptr q, balls k, const uint32_t *keys, size_t n,
                 slong prec)
{
    arb_ptr weight = _arb_vec_init((slong)n);
    arb_t sum;
    arb_init(sum);
    scores_of(out, weight, sum, h, q, k, keys, n, prec);
    arb_log(sum, sum, prec);
    for (size_t i = 0; i < n; i++) arb_sub(out + i, out + i, sum, prec);
    arb_clear(sum);
    _arb_vec_clear(weight, (slong)n);
}

/* sum_j exp(s_j) v_j / sum_j exp(s_j), or 0 without keys. `column` gets shallow copies of the
 * values: arb_dot wants them side by side. */
void attend(arb_ptr out, const head *h, arb_srcptr q, balls k, balls v, const uint32_t *keys,
            size_t n, slong prec)
{
    arb_ptr weight = _arb_vec_init((slong)n);
    arb_struct *const column = flint_malloc((n + 1) * sizeof *column);
    arb_t sum;
    arb_init(sum);
    scores_of(weight, weight, sum, h, q, k, keys, n, prec);
    for (size_t c = 0; n > 0 && c < h->dv; c++) {
        for (size_t i = 0; i < n; i++) column[i] = row_of(v, keys[i])[h->v + c];
        arb_dot(out + c, NULL, 0, weight, 1, column, 1, (slong)n, prec);
        arb_div(out + c, out + c, sum, prec);
    }
    arb_clear(sum);
    flint_free(column);
    _arb_vec_clear(weight, (slong)n);
}

/* All heads side by side. */
static balls softmax_heads(evaluation *r, const attention *a, balls z)
{
    balls q, k;
    queries_and_keys(r, a, z, &q, &k);
    const balls v = dense(r, z, a->wv, a->bv), o = new_balls(r, z.n, a->no);
#pragma omp parallel if (o.n * o.n * a->nheads > FEW / 64)
    {
        uint32_t *const keys = flint_malloc((z.n + 1) * sizeof *keys);
#pragma omp for schedule(static)
        for (size_t i = 0; i < o.n; i++) {
            const size_t n = visible(r, i, keys);
            for (size_t h = 0; h < a->nheads; h++)
                attend(row_of(o, i) + a->heads[h].o, &a->heads[h], row_of(q, i) + a->heads[h].q, k,
                       v, keys, n, r->prec);
        }
        flint_free(keys);
    }
    return o;
}

/* sum_j U^j z E_j: the E_j^T are stacked in mix. */
static balls power_mix(evaluation *r, const attention *a, balls z)
{
    const balls y = new_balls(r, z.n, a->out);
    for (size_t p = 0; p < a->mix->rows / a->out; p++) {
        if (p > 0) z = visible_means(r, z);
        add_to(y, dense_part(r, z, a->mix, p * a->out, a->out, NULL), r->prec);
    }
    return y;
}

/* [z, heads] matrix^T */
static balls pooled_heads(evaluation *r, const attention *a, balls z)
{
    const balls o = softmax_heads(r, a, z), both = new_balls(r, z.n, z.d + o.d);
    for (size_t i = 0; i < both.n; i++) {
        _arb_vec_set(row_of(both, i), row_of(z, i), (slong)z.d);
        _arb_vec_set(row_of(both, i) + z.d, row_of(o, i), (slong)o.d);
    }
    return dense(r, both, a->matrix, NULL);
}

balls attention_branch(evaluation *r, const attention *a, balls z)
{
    balls y = {0};
    switch (a->kind) {
    case ATTN_ABSENT:
    case ATTN_ZERO:
    case ATTN_CONST:
        y = new_balls(r, z.n, a->out);
        break;
    case ATTN_EXACT:
    case ATTN_POLY:
    case ATTN_CONSTQ:
    case ATTN_MEANQ:
        y = dense(r, softmax_heads(r, a, z), a->wo, NULL);
        break;
    case ATTN_UNIFORM: /* U (z mix^T + bv) */
        y = visible_means(r, dense(r, z, a->mix, a->bv));
        break;
    case ATTN_AFFMIX: /* z matrix^T + U z mix^T */
        y = dense(r, z, a->matrix, NULL);
        add_to(y, dense(r, visible_means(r, z), a->mix, NULL), r->prec);
        break;
    case ATTN_LINEAR:
        y = dense(r, z, a->matrix, NULL);
        break;
    case ATTN_POOL:
        y = pooled_heads(r, a, z);
        break;
    case ATTN_UMIX:
        y = power_mix(r, a, z);
        break;
    }
    add_vector(y, a->bo, r->prec);
    return y;
}

/* ---- sublayers ------------------------------------------------------------------------------- */

/* out_norm(skip(x) + branch); nothing else is kept. */
static balls finish_sublayer(evaluation *r, skip_kind skip, const tensor *w, const norm *out_norm,
                             balls x, balls y)
{
    balls term = {0};
    if (skip == SKIP_DENSE) term = dense(r, x, w, NULL);
    if (skip == SKIP_IDENTITY || skip == SKIP_DIAGONAL) term = copy(r, x);
    for (size_t i = 0; skip == SKIP_DIAGONAL && i < term.n * term.d; i++)
        mul_d(term.v + i, weight_at(w, i % term.d), r->prec);
    add_to(y, term, r->prec);
    norm_rows(y, out_norm, r->prec);
    drop_since(r, NULL, y);
    return y;
}

/* skip_only: without what attention adds. */
balls attention_sublayer(evaluation *r, const attention *a, balls x, bool skip_only)
{
    if (a->kind == ATTN_ABSENT) return x;
    const balls y = skip_only ? new_balls(r, x.n, a->out)
                              : attention_branch(r, a, normalized(r, x, &a->in_norm));
    return finish_sublayer(r, a->skip, a->skip_w, &a->out_norm, x, y);
}

balls ffn_branch(evaluation *r, const ffn *f, balls z)
{
    balls y = dense(r, z, f->w[0], f->b[0]);
    if (f->gated) { /* down(act(gate z) * up z) */
        const balls up = dense(r, z, f->w[1], f->b[1]);
        activate(y, f->act, r->prec);
        for (size_t i = 0; i < up.n * up.d; i++) arb_mul(y.v + i, y.v + i, up.v + i, r->prec);
        return dense(r, y, f->w[2], f->b[2]);
    }
    for (size_t l = 1; l < f->nlayers; l++) {
        activate(y, f->act, r->prec);
        y = dense(r, y, f->w[l], f->b[l]);
    }
    return y;
}

balls ffn_sublayer(evaluation *r, const ffn *f, balls x)
{
    if (!f->there) return x;
    const balls y = ffn_branch(r, f, normalized(r, x, &f->in_norm));
    return finish_sublayer(r, f->skip, f->skip_w, &f->out_norm, x, y);
}

/* ---- the head -------------------------------------------------------------------------------- */

balls apply_head(evaluation *r, balls x)
{
    const model *const m = r->m;
    balls h = normalized(r, x, &m->head_norm);
    for (size_t i = 1; m->pool == 2 && i < h.n; i++)
        _arb_vec_add(h.v, h.v, row_of(h, i), (slong)h.d, r->prec);
    for (size_t k = 0; m->pool == 2 && h.n && k < h.d; k++)
        arb_div_ui(h.v + k, h.v + k, h.n, r->prec);
    if (m->pool && h.n) h.n = 1;
    h = dense(r, h, m->dense, m->dense_bias);
    activate(h, m->head_act, r->prec);
    return dense(r, h, m->out, m->out_bias);
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
