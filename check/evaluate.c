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

bool balls_new(job *j, balls *b, size_t n, size_t d)
{
    size_t count;
    *b = (balls){0};
    if (j->t.code) return false;
    if (__builtin_mul_overflow(n, d, &count) || count > j->o->most_balls)
        return fail(j, UNREADABLE, "%zu x %zu balls are too many", n, d);
    *b = (balls){n, d, _arb_vec_init((slong)count)};
    return true;
}

void balls_free(balls *b)
{
    if (b->v) _arb_vec_clear(b->v, (slong)(b->n * b->d));
    *b = (balls){0};
}

arb_ptr row_of(const balls *b, size_t i)
{
    return b->v + i * b->d;
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

static void set_weights(arb_ptr to, const tensor *w, size_t from, size_t n)
{
    for (size_t i = 0; i < n; i++) arb_set_d(to + i, weight_at(w, from + i));
}

/* y = x W^T + b, of rows `first` to `first + out - 1` of W. */
static bool dense_part(job *j, const balls *x, const tensor *w, size_t first, size_t out,
                       const tensor *b, balls *y, slong prec)
{
    if (!balls_new(j, y, x->n, out)) return false;
#pragma omp parallel if (x->n * x->d * out > FEW)
    {
        arb_ptr weights = _arb_vec_init((slong)x->d);
        arb_t bias;
        arb_init(bias);
#pragma omp for schedule(static)
        for (size_t o = 0; o < out; o++) {
            set_weights(weights, w, (first + o) * w->cols, x->d);
            if (b) arb_set_d(bias, weight_at(b, o));
            for (size_t i = 0; i < x->n; i++)
                arb_dot(row_of(y, i) + o, b ? bias : NULL, 0, row_of(x, i), 1, weights, 1,
                        (slong)x->d, prec);
        }
        _arb_vec_clear(weights, (slong)x->d);
        arb_clear(bias);
    }
    return true;
}

static bool dense(job *j, const balls *x, const tensor *w, const tensor *b, balls *y, slong prec)
{
    return dense_part(j, x, w, 0, w->rows, b, y, prec);
}

static void add_to(balls *y, const balls *x, slong prec)
{
    for (size_t i = 0; i < y->n * y->d; i++) arb_add(y->v + i, y->v + i, x->v + i, prec);
}

static void add_vector(balls *y, const tensor *b, slong prec)
{
    for (size_t i = 0; b && i < y->n * y->d; i++) add_d(y->v + i, weight_at(b, i % y->d), prec);
}

static bool copy(job *j, const balls *x, balls *y)
{
    if (!balls_new(j, y, x->n, x->d)) return false;
    _arb_vec_set(y->v, x->v, (slong)(x->n * x->d));
    return true;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* x / sqrt((|x|^2 + shift) / divisor + eps); a row of zeros whose root is 0 stays zero. */
static void divide_by_size(arb_ptr x, size_t d, const norm *n, slong prec)
{
    arb_t size, divisor;
    arb_init(size);
    arb_init(divisor);
    arb_set_d(divisor, n->divisor);
    arb_dot(size, NULL, 0, x, 1, x, 1, (slong)d, prec);
    add_d(size, n->shift, prec);
    arb_div(size, size, divisor, prec);
    add_d(size, n->eps, prec);
    if (!arb_is_zero(size)) {
        arb_rsqrt(size, size, prec);
        _arb_vec_scalar_mul(x, x, (slong)d, size, prec);
    }
    arb_clear(size);
    arb_clear(divisor);
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

static void norm_rows(balls *x, const norm *n, slong prec)
{
    if (n->kind == NORM_NONE) return;
#pragma omp parallel for schedule(static) if (x->n * x->d > FEW)
    for (size_t i = 0; i < x->n; i++) norm_row(row_of(x, i), x->d, n, prec);
}

bool normalized(job *j, const balls *x, const norm *n, balls *z, slong prec)
{
    if (!copy(j, x, z)) return false;
    norm_rows(z, n, prec);
    return true;
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

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, where 0.044715 is the decimal number */
static void gelu_tanh(arb_t x, slong prec)
{
    arb_t v, w;
    arb_init(v);
    arb_init(w);
    arb_pow_ui(v, x, 3, prec);
    arb_mul_ui(v, v, 44715, prec);
    arb_div_ui(v, v, 1000000, prec);
    arb_add(v, v, x, prec);
    arb_const_pi(w, prec);
    arb_mul_2exp_si(w, w, -1);
    arb_rsqrt(w, w, prec);
    arb_mul(v, v, w, prec);
    arb_tanh(v, v, prec);
    arb_add_ui(v, v, 1, prec);
    arb_mul(x, x, v, prec);
    arb_mul_2exp_si(x, x, -1);
    arb_clear(v);
    arb_clear(w);
}

static void silu(arb_t x, slong prec)
{
    arb_t v;
    arb_init(v);
    arb_neg(v, x);
    arb_exp(v, v, prec);
    arb_add_ui(v, v, 1, prec);
    arb_div(x, x, v, prec);
    arb_clear(v);
}

static void relu(arb_t x, slong prec)
{
    arb_t zero;
    arb_init(zero);
    arb_max(x, x, zero, prec);
    arb_clear(zero);
}

static void activate(balls *x, act a, slong prec)
{
    if (a == ACT_NONE) return;
#pragma omp parallel for schedule(static) if (x->n * x->d > FEW / 64)
    for (size_t i = 0; i < x->n * x->d; i++) {
        if (a == ACT_RELU) relu(x->v + i, prec);
        if (a == ACT_GELU) gelu(x->v + i, prec);
        if (a == ACT_GELU_TANH) gelu_tanh(x->v + i, prec);
        if (a == ACT_SILU) silu(x->v + i, prec);
        if (a == ACT_TANH) arb_tanh(x->v + i, x->v + i, prec);
    }
}

/* ---- the embedding --------------------------------------------------------------------------- */

/* Entry k of d at a position: sin or cos of position / base^(2 (k / 2) / d). */
static void wave(arb_t out, double base, size_t position, size_t k, size_t d, slong prec)
{
    arb_t power, v;
    arb_init(power);
    arb_init(v);
    arb_set_ui(power, k / 2 * 2);
    arb_div_ui(power, power, d, prec);
    arb_set_d(v, base);
    arb_pow(v, v, power, prec);
    arb_ui_div(v, position, v, prec);
    if (k % 2)
        arb_cos(out, v, prec);
    else
        arb_sin(out, v, prec);
    arb_clear(power);
    arb_clear(v);
}

static void add_positions(const model *m, balls *x, slong prec)
{
    const bool table = m->positions == POS_LEARNED;
    if (!table && m->positions != POS_SINUSOIDAL) return;
#pragma omp parallel for schedule(static) if (x->n * x->d > FEW)
    for (size_t i = 0; i < x->n; i++) {
        arb_t v;
        arb_init(v);
        for (size_t k = 0; k < x->d; k++) {
            if (table)
                arb_set_d(v, weight_at(m->position_table, i * x->d + k));
            else
                wave(v, m->base, i, k, x->d, prec + 32);
            arb_add(row_of(x, i) + k, row_of(x, i) + k, v, prec);
        }
        arb_clear(v);
    }
}

bool embed(job *j, const model *m, const input *in, balls *x, slong prec)
{
    balls y = {0};
    arb_t v;
    if (!balls_new(j, x, in->tokens, m->width)) return false;
    arb_init(v);
    for (size_t i = 0; i < in->tokens; i++)
        for (size_t k = 0; k < m->width; k++) {
            arb_ptr to = row_of(x, i) + k;
            const size_t at = i * m->width + k;
            arb_set_d(to,
                      m->ids ? weight_at(m->table, (size_t)in->ids[i] * m->width + k) : in->x[at]);
            if (in->shift) add_d(to, in->shift[at], prec);
            arb_set_d(v, in->radius);
            if (in->radius > 0) arb_add_error(to, v);
        }
    arb_clear(v);
    if (!m->after_map) add_positions(m, x, prec);
    if (m->map) {
        const bool good = dense(j, x, m->map, m->map_bias, &y, prec);
        balls_free(x);
        if (!good) return false;
        *x = y;
    }
    if (m->after_map) add_positions(m, x, prec);
    norm_rows(x, &m->norm, prec);
    return true;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* The keys that a query sees, ascending; `keys` has room for all tokens. */
size_t visible(const model *m, const input *in, size_t query, uint32_t *keys)
{
    size_t n = 0;
    if (m->pattern == GRAPH) {
        const graph *const g = in->complete;
        for (size_t e = g->from[query]; e < g->from[query + 1]; e++) keys[n++] = g->list[e];
        return n;
    }
    const size_t last = m->pattern == FULL ? in->tokens : query + 1;
    for (size_t k = 0; k < last; k++)
        if (m->pattern != WINDOW || k + m->window > query || k < m->sinks) keys[n++] = (uint32_t)k;
    return n;
}

/* U x: the plain mean of the rows that a row sees; 0 where it sees none. */
static bool visible_means(job *j, const model *m, const input *in, const balls *x, balls *y,
                          slong prec)
{
    uint32_t *const keys = malloc(in->tokens * sizeof *keys);
    if (!keys) return fail(j, UNREADABLE, "out of memory");
    const bool good = balls_new(j, y, x->n, x->d);
    for (size_t i = 0; good && i < x->n; i++) {
        const size_t n = visible(m, in, i, keys);
        if (m->pattern == FULL && i > 0) {
            _arb_vec_set(row_of(y, i), row_of(y, 0), (slong)x->d);
            continue;
        }
#pragma omp parallel for schedule(static) if (n * x->d > FEW)
        for (size_t c = 0; c < x->d; c++) {
            arb_ptr to = row_of(y, i) + c;
            for (size_t k = 0; k < n; k++) arb_add(to, to, row_of(x, keys[k]) + c, prec);
            if (n) arb_div_ui(to, to, n, prec);
        }
    }
    free(keys);
    return good;
}

/* Rotary positions: planes (2p, 2p + 1) or (p, p + planes) of a head's part, at each position. */
static void rotate(balls *x, const head *h, size_t first, const tensor *freqs, bool interleaved,
                   slong prec)
{
#pragma omp parallel for schedule(static) if (x->n * h->planes > FEW / 64)
    for (size_t i = 0; i < x->n; i++) {
        arb_t s, c, a, b;
        arb_init(s), arb_init(c), arb_init(a), arb_init(b);
        for (size_t p = 0; p < h->planes; p++) {
            arb_ptr one = row_of(x, i) + first + (interleaved ? 2 * p : p);
            arb_ptr two = row_of(x, i) + first + (interleaved ? 2 * p + 1 : p + h->planes);
            arb_set_d(a, weight_at(freqs, h->freq + p));
            arb_mul_ui(a, a, i, prec + 64);
            arb_sin_cos(s, c, a, prec + 32);
            arb_mul(a, one, s, prec);
            arb_mul(b, two, s, prec);
            arb_mul(one, one, c, prec);
            arb_sub(one, one, b, prec);
            arb_mul(two, two, c, prec);
            arb_add(two, two, a, prec);
        }
        arb_clear(s), arb_clear(c), arb_clear(a), arb_clear(b);
    }
}

static bool make_queries(job *j, const attention *a, const balls *z, balls *q, slong prec)
{
    if (a->wq && !dense(j, z, a->wq, a->bq, q, prec)) return false;
    if (!a->wq) { /* the same for all */
        if (!balls_new(j, q, z->n, a->nq)) return false;
        add_vector(q, a->bq, prec);
    }
    if (a->kind != ATTN_MEANQ) return true;
    for (size_t k = 0; k < q->d; k++) { /* the mean of all */
        for (size_t i = 1; i < q->n; i++) arb_add(q->v + k, q->v + k, row_of(q, i) + k, prec);
        arb_div_ui(q->v + k, q->v + k, q->n, prec);
        for (size_t i = 1; i < q->n; i++) arb_set(row_of(q, i) + k, q->v + k);
    }
    return true;
}

bool queries_and_keys(job *j, const model *m, const attention *a, const balls *z, balls *q,
                      balls *k, slong prec)
{
    *q = *k = (balls){0};
    if (!make_queries(j, a, z, q, prec) || !dense(j, z, a->wk, a->bk, k, prec)) return false;
    for (size_t h = 0; a->freqs && h < a->nheads; h++) {
        bool turned = false; /* heads that share keys turn them alike: once */
        for (size_t g = 0; g < h; g++) turned = turned || a->heads[g].k == a->heads[h].k;
        rotate(q, &a->heads[h], a->heads[h].q, a->freqs, m->interleaved, prec);
        if (!turned) rotate(k, &a->heads[h], a->heads[h].k, a->freqs, m->interleaved, prec);
    }
    return true;
}

static void scores_of(arb_ptr out, const head *h, arb_srcptr q, const balls *k,
                      const uint32_t *keys, size_t n, slong prec)
{
    for (size_t i = 0; i < n; i++) {
        arb_dot(out + i, NULL, 0, q, 1, row_of(k, keys[i]) + h->k, 1, (slong)h->dk, prec);
        mul_d(out + i, h->scale, prec);
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

/* s_j - ln sum exp s */
void log_weights(arb_ptr out, const head *h, arb_srcptr q, const balls *k, const uint32_t *keys,
                 size_t n, slong prec)
{
    arb_t sum, e;
    arb_init(sum);
    arb_init(e);
    scores_of(out, h, q, k, keys, n, prec);
    lower_by_largest(out, n, prec);
    for (size_t i = 0; i < n; i++) {
        arb_exp(e, out + i, prec);
        arb_add(sum, sum, e, prec);
    }
    arb_log(sum, sum, prec);
    for (size_t i = 0; i < n; i++) arb_sub(out + i, out + i, sum, prec);
    arb_clear(sum);
    arb_clear(e);
}

/* One query of one head: sum_j exp(s_j) v_j / sum_j exp(s_j), or 0 without keys. `column` gets
 * shallow copies of the values: arb_dot wants them side by side. */
static void attend(arb_ptr out, const head *h, arb_srcptr q, const balls *k, const balls *v,
                   const uint32_t *keys, size_t n, arb_ptr weight, arb_ptr column, slong prec)
{
    arb_t sum;
    arb_init(sum);
    scores_of(weight, h, q, k, keys, n, prec);
    lower_by_largest(weight, n, prec);
    for (size_t i = 0; i < n; i++) {
        arb_exp(weight + i, weight + i, prec);
        arb_add(sum, sum, weight + i, prec);
    }
    for (size_t c = 0; n > 0 && c < h->dv; c++) {
        for (size_t i = 0; i < n; i++) column[i] = row_of(v, keys[i])[h->v + c];
        arb_dot(out + c, NULL, 0, weight, 1, column, 1, (slong)n, prec);
        arb_div(out + c, out + c, sum, prec);
    }
    arb_clear(sum);
}

void attend_row(arb_ptr out, const head *h, arb_srcptr q, const balls *k, const balls *v,
                const uint32_t *keys, size_t n, slong prec)
{
    arb_ptr weight = _arb_vec_init((slong)n);
    arb_struct *const column = flint_malloc((n + 1) * sizeof *column);
    attend(out, h, q, k, v, keys, n, weight, column, prec);
    flint_free(column);
    _arb_vec_clear(weight, (slong)n);
}

/* All heads side by side. */
static bool softmax_heads(job *j, const model *m, const input *in, const attention *a,
                          const balls *z, balls *o, slong prec)
{
    balls q, k, v = {0};
    bool memory = true;
    *o = (balls){0};
    const bool good = queries_and_keys(j, m, a, z, &q, &k, prec) &&
                      dense(j, z, a->wv, a->bv, &v, prec) && balls_new(j, o, z->n, a->no);
#pragma omp parallel if (good && z->n * z->n * a->nheads > FEW / 64)
    {
        uint32_t *const keys = malloc(in->tokens * sizeof *keys);
        arb_ptr weight = _arb_vec_init((slong)in->tokens);
        arb_struct *const column = malloc(in->tokens * sizeof *column);
        if (!keys || !column) {
#pragma omp atomic write
            memory = false;
        }
#pragma omp for schedule(static)
        for (size_t i = 0; i < z->n; i++) {
            if (!good || !keys || !column) continue;
            const size_t n = visible(m, in, i, keys);
            for (size_t h = 0; h < a->nheads; h++)
                attend(row_of(o, i) + a->heads[h].o, &a->heads[h], row_of(&q, i) + a->heads[h].q,
                       &k, &v, keys, n, weight, column, prec);
        }
        free(keys);
        free(column);
        _arb_vec_clear(weight, (slong)in->tokens);
    }
    balls_free(&q);
    balls_free(&k);
    balls_free(&v);
    return memory ? good : fail(j, UNREADABLE, "out of memory");
}

/* sum_j U^j z E_j: the E_j^T are stacked in mix. */
static bool power_mix(job *j, const model *m, const input *in, const attention *a, const balls *z,
                      balls *y, slong prec)
{
    balls x, next, term;
    bool good = copy(j, z, &x) && balls_new(j, y, z->n, a->out);
    for (size_t p = 0; good && p < a->mix->rows / a->out; p++) {
        if (p > 0) {
            good = visible_means(j, m, in, &x, &next, prec);
            balls_free(&x);
            x = next;
        }
        if (good) good = dense_part(j, &x, a->mix, p * a->out, a->out, NULL, &term, prec);
        if (good) add_to(y, &term, prec);
        if (good) balls_free(&term);
    }
    balls_free(&x);
    return good;
}

/* [z, heads] matrix^T */
static bool pooled_heads(job *j, const model *m, const input *in, const attention *a,
                         const balls *z, balls *y, slong prec)
{
    balls o, both = {0};
    bool good = softmax_heads(j, m, in, a, z, &o, prec) && balls_new(j, &both, z->n, z->d + o.d);
    for (size_t i = 0; good && i < z->n; i++) {
        _arb_vec_set(row_of(&both, i), row_of(z, i), (slong)z->d);
        _arb_vec_set(row_of(&both, i) + z->d, row_of(&o, i), (slong)o.d);
    }
    if (good) good = dense(j, &both, a->matrix, NULL, y, prec);
    balls_free(&o);
    balls_free(&both);
    return good;
}

static bool mixed(job *j, const model *m, const input *in, const attention *a, const balls *z,
                  balls *y, slong prec)
{
    balls x = {0}, mean = {0};
    bool good;
    if (a->kind == ATTN_UNIFORM) { /* U (z mix^T + bv) */
        good = dense(j, z, a->mix, a->bv, &x, prec) && visible_means(j, m, in, &x, y, prec);
    } else { /* z matrix^T + U z mix^T */
        good = visible_means(j, m, in, z, &mean, prec) && dense(j, &mean, a->mix, NULL, &x, prec) &&
               dense(j, z, a->matrix, NULL, y, prec);
        if (good) add_to(y, &x, prec);
    }
    balls_free(&x);
    balls_free(&mean);
    return good;
}

bool attention_branch(job *j, const model *m, const input *in, const attention *a, const balls *z,
                      balls *y, slong prec)
{
    balls o;
    bool good = false;
    *y = (balls){0};
    switch (a->kind) {
    case ATTN_ABSENT:
    case ATTN_ZERO:
    case ATTN_CONST:
        good = balls_new(j, y, z->n, a->out);
        break;
    case ATTN_EXACT:
    case ATTN_POLY:
    case ATTN_CONSTQ:
    case ATTN_MEANQ:
        good = softmax_heads(j, m, in, a, z, &o, prec);
        if (good && a->wo) good = dense(j, &o, a->wo, NULL, y, prec);
        if (!a->wo)
            *y = o;
        else
            balls_free(&o);
        break;
    case ATTN_UNIFORM:
    case ATTN_AFFMIX:
        good = mixed(j, m, in, a, z, y, prec);
        break;
    case ATTN_LINEAR:
        good = dense(j, z, a->matrix, NULL, y, prec);
        break;
    case ATTN_POOL:
        good = pooled_heads(j, m, in, a, z, y, prec);
        break;
    case ATTN_UMIX:
        good = power_mix(j, m, in, a, z, y, prec);
        break;
    }
    if (good) add_vector(y, a->bo, prec);
    return good;
}

/* ---- sublayers ------------------------------------------------------------------------------- */

/* y += skip(x) */
static bool add_skip(job *j, skip_kind kind, const tensor *w, const balls *x, balls *y, slong prec)
{
    balls term;
    if (kind == SKIP_NONE) return true;
    if (kind == SKIP_DENSE) {
        if (!dense(j, x, w, NULL, &term, prec)) return false;
    } else if (!copy(j, x, &term)) {
        return false;
    }
    for (size_t i = 0; kind == SKIP_DIAGONAL && i < term.n * term.d; i++)
        mul_d(term.v + i, weight_at(w, i % term.d), prec);
    add_to(y, &term, prec);
    balls_free(&term);
    return true;
}

/* x' = out_norm(skip(x) + attention(in_norm(x))). skip_only: without the attention and its norm. */
bool attention_sublayer(job *j, const model *m, const input *in, size_t l, balls *x, bool skip_only,
                        slong prec)
{
    const attention *const a = &m->layers[l].attn;
    balls z = {0}, y = {0};
    if (a->kind == ATTN_ABSENT) return true;
    bool good = skip_only ? balls_new(j, &y, x->n, a->out)
                          : normalized(j, x, &a->in_norm, &z, prec) &&
                                attention_branch(j, m, in, a, &z, &y, prec);
    if (good) good = add_skip(j, a->skip, a->skip_w, x, &y, prec);
    if (good) norm_rows(&y, &a->out_norm, prec);
    balls_free(&z);
    balls_free(x);
    *x = y;
    return good;
}

bool ffn_branch(job *j, const ffn *f, const balls *z, balls *y, slong prec)
{
    balls x, up = {0};
    if (!dense(j, z, f->w[0], f->b[0], y, prec)) return false;
    if (f->gated) { /* down(act(gate z) * up z) */
        activate(y, f->act, prec);
        bool good = dense(j, z, f->w[1], f->b[1], &up, prec);
        for (size_t i = 0; good && i < y->n * y->d; i++)
            arb_mul(y->v + i, y->v + i, up.v + i, prec);
        balls_free(&up);
        x = *y;
        if (good) good = dense(j, &x, f->w[2], f->b[2], y, prec);
        balls_free(&x);
        return good;
    }
    for (size_t l = 1; l < f->nlayers; l++) {
        x = *y;
        activate(&x, f->act, prec);
        const bool good = dense(j, &x, f->w[l], f->b[l], y, prec);
        balls_free(&x);
        if (!good) return false;
    }
    return true;
}

bool ffn_sublayer(job *j, const model *m, size_t l, balls *x, slong prec)
{
    const ffn *const f = &m->layers[l].ffn;
    balls z, y = {0};
    if (!f->there) return true;
    bool good = normalized(j, x, &f->in_norm, &z, prec) && ffn_branch(j, f, &z, &y, prec) &&
                add_skip(j, f->skip, f->skip_w, x, &y, prec);
    if (good) norm_rows(&y, &f->out_norm, prec);
    balls_free(&z);
    balls_free(x);
    *x = y;
    return good;
}

/* ---- the head -------------------------------------------------------------------------------- */

bool apply_head(job *j, const model *m, balls *x, balls *y, slong prec)
{
    balls h;
    norm_rows(x, &m->head_norm, prec);
    for (size_t i = 1; m->pool == 2 && i < x->n; i++)
        _arb_vec_add(x->v, x->v, row_of(x, i), (slong)x->d, prec);
    for (size_t k = 0; m->pool == 2 && k < x->d; k++) arb_div_ui(x->v + k, x->v + k, x->n, prec);
    const balls pooled = {m->pool ? 1 : x->n, x->d, x->v};
    if (m->dense ? !dense(j, &pooled, m->dense, m->dense_bias, &h, prec) : !copy(j, &pooled, &h))
        return false;
    activate(&h, m->head_act, prec);
    if (!m->out) {
        *y = h;
        return true;
    }
    const bool good = dense(j, &h, m->out, m->out_bias, y, prec);
    balls_free(&h);
    return good;
}

/* ---- what it costs --------------------------------------------------------------------------- */

static double size_of(const tensor *t)
{
    return t ? (double)t->rows * (double)t->cols : 0;
}

/* Multiply-adds of one pass: every matrix once for every token, and scores and values of a key. */
double work_of(const model *m, const input *in)
{
    const double n = (double)in->tokens;
    const double pairs =
        m->pattern == GRAPH && in->edges
            ? (double)in->edges->from[in->edges->n] + n * (double)(m->degree + m->self_loops)
        : m->pattern == WINDOW ? n * fmin(n, (double)(m->window + m->sinks))
                               : n * n;
    double a_token = size_of(m->map), keys = 0;
    for (size_t l = 0; l < m->nlayers; l++) {
        const attention *const a = &m->layers[l].attn;
        const ffn *const f = &m->layers[l].ffn;
        const tensor *const list[] = {a->wq, a->wk, a->wv, a->wo, a->matrix, a->mix, a->skip_w};
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) a_token += size_of(list[i]);
        for (size_t i = 0; i < f->nlayers; i++) a_token += size_of(f->w[i]);
        for (size_t h = 0; h < a->nheads; h++)
            keys += (double)(a->heads[h].dk + a->heads[h].dv + 50); /* 50: an exponential */
    }
    return n * a_token + pairs * keys + (m->pool ? 1 : n) * (size_of(m->dense) + size_of(m->out));
}
