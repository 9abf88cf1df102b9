/* evaluate.c - a model on an input in ball arithmetic, straight from the architecture of its file:
 * docs/format.md, "A model computes", with the names of its tensors.
 *
 * A ball is a midpoint and a radius; Arb rounds every operation outwards, so the exact value is in
 * the ball that comes out. Weights, settings and inputs are doubles, which are balls of radius 0.
 * Nothing is clever here: products are arb_dot over rows, softmax is exp over its sum. Loops over
 * rows are shared by OpenMP; each entry is computed by one thread in one order, so the result does
 * not depend on their number. Inside of such loops nothing can fail.
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

/* ---- rows of balls --------------------------------------------------------------------------- */

balls new_balls(job *j, size_t n, size_t d)
{
    size_t count;
    must(j, !__builtin_mul_overflow(n, d, &count), "%zu x %zu balls", n, d);
    return (balls){n, d, take_balls(j, count)};
}

arb_ptr row_of(balls b, size_t i)
{
    return b.v + i * b.d;
}

/* x + v */
static void add_d(arb_t x, double v, slong prec)
{
    arb_t y;
    arb_init(y);
    arb_set_d(y, v);
    arb_add(x, x, y, prec);
    arb_clear(y);
}

/* Columns `first` to `first + d - 1`. */
static balls columns(const evaluation *e, balls x, size_t first, size_t d)
{
    must(e->j, first <= x.d && d <= x.d - first, "columns %zu and %zu more, of %zu", first, d, x.d);
    const balls y = new_balls(e->j, x.n, d);
    for (size_t i = 0; i < x.n; i++) _arb_vec_set(row_of(y, i), row_of(x, i) + first, (slong)d);
    return y;
}

static balls copy(const evaluation *e, balls x)
{
    return columns(e, x, 0, x.d);
}

static void add_to(const evaluation *e, balls y, balls x)
{
    must(e->j, y.d == x.d, "widths %zu and %zu do not fit", y.d, x.d);
    _arb_vec_add(y.v, y.v, x.v, (slong)(y.n * y.d), e->prec);
}

/* The vector AT.NAME of d numbers (0: any) as one row; no rows: it is absent. */
static balls vector_of(const evaluation *e, const char *at, const char *name, size_t d)
{
    const tensor *const t = find_tensor(e->j, e->m, at, name);
    if (!t) return (balls){0};
    must(e->j, t->ndim == 1 && (!d || t->cols == d), "tensor %s is not a vector of %zu numbers",
         t->name, d);
    const balls v = new_balls(e->j, 1, t->cols);
    for (size_t k = 0; k < v.d; k++) arb_set_d(v.v + k, weight_at(t, k));
    return v;
}

typedef void row_operation(arb_ptr out, arb_srcptr a, arb_srcptr b, slong n, slong prec);

static void multiply(arb_ptr out, arb_srcptr a, arb_srcptr b, slong n, slong prec)
{
    for (slong k = 0; k < n; k++) arb_mul(out + k, a + k, b + k, prec);
}

/* Every row with the vector AT.NAME, if it is there. */
static void with_vector(const evaluation *e, balls x, row_operation *op, const char *at,
                        const char *name)
{
    const balls v = vector_of(e, at, name, x.d);
    for (size_t i = 0; v.n && i < x.n; i++)
        op(row_of(x, i), row_of(x, i), v.v, (slong)x.d, e->prec);
}

/* ---- matrices -------------------------------------------------------------------------------- */

static const tensor *matrix_of(const evaluation *e, const char *at, const char *name, size_t cols)
{
    const tensor *const t = find_tensor(e->j, e->m, at, name);
    must(e->j, t, "tensor %s.%s is missing", at, name);
    must(e->j, t->ndim == 2 && t->cols == cols, "tensor %s is not a matrix of %zu columns", t->name,
         cols);
    return t;
}

/* x W^T + b, of rows `first` to `first + out - 1` of W. */
static balls product(const evaluation *e, balls x, const tensor *w, size_t first, size_t out,
                     balls b)
{
    const balls y = new_balls(e->j, x.n, out);
#pragma omp parallel if (y.n * x.d * out > FEW)
    {
        arb_ptr weights = _arb_vec_init((slong)x.d);
#pragma omp for schedule(static)
        for (size_t o = 0; o < y.d; o++) {
            for (size_t k = 0; k < x.d; k++)
                arb_set_d(weights + k, weight_at(w, (first + o) * w->cols + k));
            for (size_t i = 0; i < y.n; i++)
                arb_dot(row_of(y, i) + o, b.n ? b.v + o : NULL, 0, row_of(x, i), 1, weights, 1,
                        (slong)x.d, e->prec);
        }
        _arb_vec_clear(weights, (slong)x.d);
    }
    return y;
}

/* x W^T + b with the tensors AT.WEIGHT and, if there is one, AT.BIAS. */
static balls linear(const evaluation *e, balls x, const char *at, const char *weight,
                    const char *bias)
{
    const tensor *const w = matrix_of(e, at, weight, x.d);
    return product(e, x, w, 0, w->rows, vector_of(e, at, bias, w->rows));
}

/* The same where there is such a matrix; else x. */
static balls maybe_linear(const evaluation *e, balls x, const char *at, const char *weight,
                          const char *bias)
{
    return find_tensor(e->j, e->m, at, weight) ? linear(e, x, at, weight, bias) : x;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* x / sqrt((|x|^2 + shift) / divisor + eps); a row of zeros whose root is 0 stays zero. */
static void divide_by_size(arb_ptr x, size_t d, double shift, double divisor, double eps,
                           slong prec)
{
    arb_ptr t = _arb_vec_init(2);
    arb_dot(t, NULL, 0, x, 1, x, 1, (slong)d, prec);
    add_d(t, shift, prec);
    arb_set_d(t + 1, divisor);
    arb_div(t, t, t + 1, prec);
    add_d(t, eps, prec);
    if (!arb_is_zero(t)) {
        arb_rsqrt(t, t, prec);
        _arb_vec_scalar_mul(x, x, (slong)d, t, prec);
    }
    _arb_vec_clear(t, 2);
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

/* (x - mean) / sqrt(var + eps) with the stored vectors. */
static void batch_norm(const evaluation *e, balls x, const char *at, double eps)
{
    const balls var = vector_of(e, at, "var", x.d);
    must(e->j, var.n && find_tensor(e->j, e->m, at, "mean"), "%s: mean or var is missing", at);
    for (size_t k = 0; k < x.d; k++) {
        add_d(var.v + k, eps, e->prec);
        arb_rsqrt(var.v + k, var.v + k, e->prec);
    }
    with_vector(e, x, _arb_vec_sub, at, "mean");
    for (size_t i = 0; i < x.n; i++)
        multiply(row_of(x, i), row_of(x, i), var.v, (slong)x.d, e->prec);
}

/* The norm o, if there is one, whose tensors begin with AT. */
static void apply_norm(const evaluation *e, balls x, const cJSON *o, const char *at)
{
    job *const j = e->j;
    if (!o) return;
    const char *const kind = get_text(j, o, "kind");
    const bool mean = same(kind, "mean"), layer = same(kind, "layer");
    const bool size = layer || same(kind, "rms"), batch = same(kind, "batch");
    const double eps = mean ? 0 : get_number(j, o, "eps");
    const double divisor = size ? get_number(j, o, "divisor") : 1;
    const double shift = find(o, "shift") ? get_number(j, o, "shift") : 0;
    must(j, mean || size || batch, "%s: unknown norm %.40s", at, kind);
    if (batch) batch_norm(e, x, at, eps);
    if (!batch) with_vector(e, x, _arb_vec_add, at, "offset");
    for (size_t i = 0; i < x.n; i++) {
        if (mean || layer) subtract_mean(row_of(x, i), x.d, e->prec);
        if (size) divide_by_size(row_of(x, i), x.d, shift, divisor, eps, e->prec);
    }
    with_vector(e, x, multiply, at, "gain");
    with_vector(e, x, _arb_vec_add, at, "bias");
}

/* ---- activations ----------------------------------------------------------------------------- */

/* v = sqrt(8 / pi) (x + 0.044715 x^3), where 0.044715 is the decimal number: then gelu_tanh is
 * x (1 + tanh(v / 2)) / 2 = x / (1 + exp(-v)). v: room for 2. */
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

static void activate_one(arb_t x, const char *name, arb_ptr v, slong prec) /* v: room for 2 */
{
    arb_zero(v);
    if (same(name, "relu")) arb_max(x, x, v, prec);
    if (same(name, "tanh")) arb_tanh(x, x, prec);
    if (same(name, "gelu")) { /* x (1 + erf(x / sqrt 2)) / 2 */
        arb_set_d(v, 0.5);
        arb_sqrt(v, v, prec);
        arb_mul(v, v, x, prec);
        arb_hypgeom_erf(v, v, prec);
        arb_add_ui(v, v, 1, prec);
        arb_mul(x, x, v, prec);
        arb_mul_2exp_si(x, x, -1);
    }
    if (same(name, "silu") || same(name, "gelu_tanh")) { /* x / (1 + exp(-v)) */
        arb_set(v, x);
        if (same(name, "gelu_tanh")) inside_gelu_tanh(v, x, prec);
        arb_neg(v, v);
        arb_exp(v, v, prec);
        arb_add_ui(v, v, 1, prec);
        arb_div(x, x, v, prec);
    }
}

static void activate(const evaluation *e, balls x, const char *name)
{
    must(e->j, strstr(" none relu gelu gelu_tanh silu tanh ", words(e->j, " %s ", name)),
         "unknown activation %.40s", name);
#pragma omp parallel if (x.n * x.d > FEW / 64 && !same(name, "none"))
    {
        arb_ptr room = _arb_vec_init(2);
#pragma omp for schedule(static)
        for (size_t i = 0; i < x.n * x.d; i++) activate_one(x.v + i, name, room, e->prec);
        _arb_vec_clear(room, 2);
    }
}

/* ---- the embedding --------------------------------------------------------------------------- */

evaluation begin_evaluation(job *j, const model *m, const input *in, slong prec)
{
    const cJSON *const p = get(j, m->architecture, "pattern");
    evaluation e = {.j = j, .m = m, .in = in, .prec = prec};
    must_fit(j, m, in);
    e.pattern = get_text(j, p, "kind");
    if (m->graph) e.edges = complete_graph(j, m, in->edges);
    if (same(e.pattern, "window")) {
        e.window = get_count(j, p, "window");
        e.sinks = get_count(j, p, "sinks");
    } else if (!m->graph && !same(e.pattern, "full") && !same(e.pattern, "causal")) {
        fail(j, UNREADABLE, "unknown pattern %.40s", e.pattern);
    }
    return e;
}

/* Entry k of d at a position: sin or cos of position / base^(2 (k / 2) / d). v: room for 2. */
static void wave(arb_ptr v, double base, size_t position, size_t k, size_t d, slong prec)
{
    arb_set_ui(v + 1, k / 2 * 2);
    arb_div_ui(v + 1, v + 1, d, prec);
    arb_set_d(v, base);
    arb_pow(v, v, v + 1, prec);
    arb_ui_div(v, position, v, prec);
    (k % 2 ? arb_cos : arb_sin)(v, v, prec);
}

static void add_positions(const evaluation *e, balls x, const cJSON *positions)
{
    const char *const kind = get_text(e->j, positions, "kind");
    const bool learned = same(kind, "learned"), waves = same(kind, "sinusoidal");
    const tensor *const t = learned ? matrix_of(e, "embedding", "positions", x.d) : NULL;
    const double base = waves ? get_number(e->j, positions, "base") : 0;
    arb_ptr v = take_balls(e->j, 2);
    must(e->j, learned || waves || same(kind, "rotary"), "unknown positions %.40s", kind);
    must(e->j, !waves || (base > 1 && base <= 1e30), "base: %g is not from 1 to 1e30", base);
    must(e->j, !t || t->rows >= x.n, "embedding.positions: has too few rows");
    for (size_t i = 0; (learned || waves) && i < x.n * x.d; i++) {
        if (t)
            arb_set_d(v, weight_at(t, i));
        else
            wave(v, base, i / x.d, i % x.d, x.d, e->prec + 32);
        arb_add(x.v + i, x.v + i, v, e->prec);
    }
}

balls embed(const evaluation *e)
{
    const input *const in = e->in;
    const size_t width = e->m->width, vocab = e->m->vocab;
    const cJSON *const o = find(e->m->architecture, "embedding"), *const p = find(o, "positions");
    const tensor *const t = vocab ? matrix_of(e, "embedding", "embedding", width) : NULL;
    balls x = new_balls(e->j, in->tokens, width);
    must(e->j, !t || t->rows == (e->m->row ? vocab + 1 - e->m->shared : vocab),
         "embedding.embedding: has not a row for each token, or for those that share");
    for (size_t at = 0; at < x.n * x.d; at++) {
        const size_t i = at / width;
        arb_set_d(x.v + at,
                  t ? weight_at(t, row_of_token(e->m, (size_t)in->ids[i]) * width + at % width)
                    : in->x[at]);
        if (in->shift) add_d(x.v + at, in->shift[at], e->prec);
    }
    if (p && !flag(p, "after_map")) add_positions(e, x, p);
    x = maybe_linear(e, x, "embedding", "map.weight", "map.bias");
    if (flag(p, "after_map")) add_positions(e, x, p);
    apply_norm(e, x, find(o, "norm"), "embedding.norm");
    return x;
}

/* ---- attention ------------------------------------------------------------------------------- */

size_t visible(const evaluation *e, size_t query, uint32_t *keys)
{
    const bool window = same(e->pattern, "window");
    const size_t last = same(e->pattern, "full") ? e->in->tokens : query + 1;
    size_t n = 0;
    if (e->m->graph) {
        n = e->edges->from[query + 1] - e->edges->from[query];
        if (n) memcpy(keys, e->edges->list + e->edges->from[query], n * sizeof *keys);
        return n;
    }
    for (size_t k = 0; k < last; k++)
        if (!window || k + e->window > query || k < e->sinks) keys[n++] = (uint32_t)k;
    return n;
}

/* U x: the plain mean of the rows that a row sees; 0 where it sees none. */
static balls visible_means(const evaluation *e, balls x)
{
    const balls y = new_balls(e->j, x.n, x.d);
    uint32_t *const keys = take(e->j, x.n + 1, sizeof *keys);
    for (size_t i = 0; i < y.n; i++) {
        if (i > 0 && same(e->pattern, "full")) {
            _arb_vec_set(row_of(y, i), y.v, (slong)x.d);
            continue;
        }
        const size_t n = visible(e, i, keys);
        for (size_t k = 0; k < n; k++)
            _arb_vec_add(row_of(y, i), row_of(y, i), row_of(x, keys[k]), (slong)x.d, e->prec);
        for (size_t k = 0; n && k < x.d; k++)
            arb_div_ui(row_of(y, i) + k, row_of(y, i) + k, n, e->prec);
    }
    return y;
}

/* Rotary positions: planes (2p, 2p + 1) or (p, p + planes) of the head o turn with each position. */
static void turn(const evaluation *e, balls x, const cJSON *o, const char *at)
{
    const size_t planes = count_or_0(e->j, o, "planes"), first = count_or_0(e->j, o, "freq");
    const bool pairs =
        flag(find(find(e->m->architecture, "embedding"), "positions"), "interleaved");
    const balls freqs = planes ? vector_of(e, at, "freqs", 0) : (balls){0};
    const slong prec = e->prec;
    arb_ptr t = take_balls(e->j, 4), s = t + 1, c = t + 2, a = t + 3;
    must(e->j, planes <= x.d / 2 && (!planes || (first <= freqs.d && planes <= freqs.d - first)),
         "%s: %zu planes", at, planes);
    for (size_t at_p = 0; at_p < x.n * planes; at_p++) {
        const size_t i = at_p / planes, p = at_p % planes;
        arb_ptr one = row_of(x, i) + (pairs ? 2 * p : p), two = one + (pairs ? 1 : planes);
        arb_mul_ui(a, freqs.v + first + p, i, prec + 64);
        arb_sin_cos(s, c, a, prec + 32);
        arb_mul(a, one, s, prec);
        arb_mul(t, two, s, prec);
        arb_mul(one, one, c, prec);
        arb_sub(one, one, t, prec);
        arb_mul(two, two, c, prec);
        arb_add(two, two, a, prec);
    }
}

size_t attention_heads(const evaluation *e, part p, balls z, head **out)
{
    job *const j = e->j;
    const cJSON *const list = find(p.o, "heads");
    const char *const kind = get_text(j, p.o, "kind"), *const at = p.at;
    const size_t n = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    size_t i = 0;
    if (n == 0) return 0;
    balls q = vector_of(e, at, "bq", 0); /* the same for all */
    if (same(kind, "constq") || same(kind, "pool")) {
        q = new_balls(j, z.n, q.d);
        with_vector(e, q, _arb_vec_add, at, "bq");
    } else {
        q = linear(e, z, at, "wq", "bq");
    }
    if (same(kind, "meanq")) q = visible_means(e, q);
    const balls k = linear(e, z, at, "wk", "bk"), v = linear(e, z, at, "wv", "bv");
    *out = take(j, n, sizeof **out);
    for (const cJSON *c = list->child; c; c = c->next, i++) {
        const size_t dk = get_count(j, c, "dk"), dv = get_count(j, c, "dv");
        (*out)[i] =
            (head){columns(e, q, get_count(j, c, "q"), dk), columns(e, k, get_count(j, c, "k"), dk),
                   columns(e, v, get_count(j, c, "v"), dv), get_number(j, c, "scale")};
        turn(e, (*out)[i].q, c, at);
        turn(e, (*out)[i].k, c, at);
    }
    return n;
}

void attention_scores(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n,
                      slong prec)
{
    arb_t scale;
    arb_init(scale);
    arb_set_d(scale, h->scale);
    for (size_t i = 0; i < n; i++) {
        arb_dot(out + i, NULL, 0, row_of(h->q, query), 1, row_of(h->k, keys[i]), 1, (slong)h->q.d,
                prec);
        arb_mul(out + i, out + i, scale, prec);
    }
    arb_clear(scale);
}

/* The midpoint of the largest comes off first: exp then does not overflow. */
void softmax(arb_ptr s, size_t n, bool logarithms, slong prec)
{
    arb_ptr sum = _arb_vec_init(3), v = sum + 1, most = sum + 2;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || arf_cmp(arb_midref(s + i), arb_midref(most)) > 0)
            arf_set(arb_midref(most), arb_midref(s + i));
    for (size_t i = 0; i < n; i++) {
        if (arb_is_finite(most)) arb_sub(s + i, s + i, most, prec);
        arb_exp(v, s + i, prec);
        arb_add(sum, sum, v, prec);
        if (!logarithms) arb_swap(s + i, v);
    }
    if (logarithms) arb_log(sum, sum, prec);
    for (size_t i = 0; i < n; i++) (logarithms ? arb_sub : arb_div)(s + i, s + i, sum, prec);
    _arb_vec_clear(sum, 3);
}

/* The weighted mean of the values; of no keys 0. `column` gets shallow copies: arb_dot wants the
 * values side by side. */
void attend(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n, slong prec)
{
    arb_ptr weight = _arb_vec_init((slong)n);
    arb_struct *const column = flint_malloc((n + 1) * sizeof *column);
    attention_scores(weight, h, query, keys, n, prec);
    softmax(weight, n, false, prec);
    for (size_t c = 0; c < h->v.d; c++) {
        for (size_t i = 0; i < n; i++) column[i] = row_of(h->v, keys[i])[c];
        arb_dot(out + c, NULL, 0, weight, 1, column, 1, (slong)n, prec);
    }
    flint_free(column);
    _arb_vec_clear(weight, (slong)n);
}

/* All heads side by side, behind `before` (or nothing). */
static balls softmax_heads(const evaluation *e, part p, balls z, balls before)
{
    head *h = NULL;
    size_t width = before.d;
    const size_t n = attention_heads(e, p, z, &h);
    must(e->j, n != 0, "%s: has no heads", p.at);
    const cJSON *o = find(p.o, "heads")->child;
    for (size_t i = 0; i < n; width += h[i++].v.d, o = o->next)
        must(e->j, get_count(e->j, o, "o") == width - before.d,
             "%s: a head does not follow the one before it", p.at);
    const balls y = new_balls(e->j, z.n, width);
#pragma omp parallel if (y.n * y.n * n > FEW / 64)
    {
        uint32_t *const keys = flint_malloc((y.n + 1) * sizeof *keys);
#pragma omp for schedule(static)
        for (size_t i = 0; i < y.n; i++) {
            const size_t seen = visible(e, i, keys);
            arb_ptr to = row_of(y, i) + before.d;
            if (before.d) _arb_vec_set(row_of(y, i), row_of(before, i), (slong)before.d);
            for (size_t t = 0; t < n; to += h[t++].v.d) attend(to, &h[t], i, keys, seen, e->prec);
        }
        flint_free(keys);
    }
    return y;
}

/* What attention adds to its rows: docs/format.md has one line for each kind. */
static balls attention_branch(const evaluation *e, part o, balls z)
{
    job *const j = e->j;
    const char *const kind = get_text(j, o.o, "kind"), *const at = o.at;
    const size_t out = get_count(j, o.o, "out");
    balls y = {0};
    if (same(kind, "exact") || same(kind, "poly") || same(kind, "constq") || same(kind, "meanq")) {
        y = maybe_linear(e, softmax_heads(e, o, z, (balls){0}), at, "wo", "");
    } else if (same(kind, "uniform")) { /* U (z mix^T + bv) */
        y = visible_means(e, linear(e, z, at, "mix", "bv"));
    } else if (same(kind, "linear")) {
        y = linear(e, z, at, "matrix", "");
    } else if (same(kind, "affmix")) { /* z matrix^T + U z mix^T */
        y = linear(e, z, at, "matrix", "");
        add_to(e, y, linear(e, visible_means(e, z), at, "mix", ""));
    } else if (same(kind, "pool")) { /* [z, heads] matrix^T */
        y = linear(e, softmax_heads(e, o, z, z), at, "matrix", "");
    } else if (same(kind, "umix")) { /* sum_p U^p z E_p: the E_p^T are stacked in mix */
        const tensor *const mix = matrix_of(e, at, "mix", z.d);
        y = new_balls(j, z.n, out);
        for (size_t p = 0; p < mix->rows / out; p++) {
            if (p > 0) z = visible_means(e, z);
            add_to(e, y, product(e, z, mix, p * out, out, (balls){0}));
        }
    } else if (same(kind, "zero") || same(kind, "const")) {
        y = new_balls(j, z.n, out);
    } else {
        fail(j, UNREADABLE, "%s: unknown kind %.40s", at, kind);
    }
    with_vector(e, y, _arb_vec_add, at, "bo");
    return y;
}

/* ---- blocks and the head --------------------------------------------------------------------- */

static balls ffn_branch(const evaluation *e, part o, balls z)
{
    job *const j = e->j;
    const char *const at = o.at, *const act = get_text(j, o.o, "activation");
    const bool gated = is_text(find(o.o, "kind"), "gated");
    const size_t layers = get_count(j, o.o, "layers");
    must(j, layers > 0 && (gated ? layers == 3 : is_text(find(o.o, "kind"), "mlp")),
         "%s: %zu layers, or an unknown kind", at, layers);
    balls y = linear(e, z, at, "0.weight", "0.bias");
    if (gated) { /* down(act(gate z) * up z) */
        const balls up = linear(e, z, at, "1.weight", "1.bias");
        must(j, up.d == y.d, "%s: gate and up have other widths", at);
        activate(e, y, act);
        multiply(y.v, y.v, up.v, (slong)(y.n * y.d), e->prec);
    }
    for (size_t l = gated ? 2 : 1; l < layers; l++) {
        if (!gated) activate(e, y, act);
        y = linear(e, y, at, words(j, "%zu.weight", l), words(j, "%zu.bias", l));
    }
    return y;
}

size_t count_blocks(const model *m)
{
    return (size_t)cJSON_GetArraySize(find(m->architecture, "blocks"));
}

part part_of(job *j, const model *m, size_t block, bool ffn)
{
    const cJSON *const o = cJSON_GetArrayItem(find(m->architecture, "blocks"), (int)block);
    const char *const at = words(j, "blocks.%zu.%s", block, ffn ? "ffn" : "attn");
    return (part){ffn, find(o, ffn ? "ffn" : "attention"), at};
}

balls part_input(const evaluation *e, part p, balls x)
{
    const balls z = copy(e, x);
    must(e->j, get_count(e->j, p.o, "in") == x.d, "%s: reads %zu", p.at, x.d);
    apply_norm(e, z, find(p.o, "in_norm"), words(e->j, "%s.in_norm", p.at));
    return z;
}

balls branch(const evaluation *e, part p, balls z)
{
    return p.ffn ? ffn_branch(e, p, z) : attention_branch(e, p, z);
}

/* out_norm(skip(x) + branch(in_norm(x))); nothing else is kept. */
balls apply_part(const evaluation *e, part p, balls x)
{
    job *const j = e->j;
    chunk *const mark = j->memory;
    if (!p.o) return x;
    const char *const skip = get_text(j, p.o, "skip");
    const balls zero = new_balls(j, x.n, get_count(j, p.o, "out"));
    const balls y = branch(e, p, part_input(e, p, x));
    balls kept = zero;
    if (same(skip, "identity") || same(skip, "diagonal")) kept = copy(e, x);
    if (same(skip, "diagonal")) with_vector(e, kept, multiply, p.at, "skip");
    if (same(skip, "dense")) kept = linear(e, x, p.at, "skip", "");
    must(j, kept.v != zero.v || same(skip, "none"), "%s: unknown skip %.40s", p.at, skip);
    add_to(e, y, kept);
    apply_norm(e, y, find(p.o, "out_norm"), words(j, "%s.out_norm", p.at));
    release(j, mark, y.v);
    return y;
}

/* One row of all. */
static void pool_rows(const evaluation *e, balls *h, const char *kind)
{
    arb_ptr first = h->v, last = row_of(*h, h->n - 1);
    const slong d = (slong)h->d;
    for (size_t i = 1; same(kind, "mean") && i < h->n; i++)
        _arb_vec_add(first, first, row_of(*h, i), d, e->prec);
    for (size_t k = 0; same(kind, "mean") && k < h->d; k++)
        arb_div_ui(first + k, first + k, h->n, e->prec);
    for (size_t i = h->d; same(kind, "max") && i < h->n * h->d; i++)
        arb_max(first + i % h->d, first + i % h->d, first + i, e->prec);
    if (same(kind, "last") && h->n > 1) _arb_vec_swap(first, last, d);
    must(e->j, strstr(" first mean max last ", words(e->j, " %s ", kind)), "unknown pooling %.40s",
         kind);
    h->n = 1;
}

/* normalize(out(act(dense(pool(norm x))))) */
/* The last map is the embedding; tokens that share a row have one product. */
static balls tied_outputs(const evaluation *e, balls h)
{
    const tensor *const w = matrix_of(e, "embedding", "embedding", h.d);
    const balls b = vector_of(e, "head", "out.bias", e->m->vocab);
    if (!e->m->row) return product(e, h, w, 0, w->rows, b);
    const balls stored = product(e, h, w, 0, w->rows, (balls){0});
    const balls y = new_balls(e->j, h.n, e->m->vocab);
    for (size_t i = 0; i < y.n; i++)
        for (size_t o = 0; o < y.d; o++)
            arb_set(row_of(y, i) + o, row_of(stored, i) + e->m->row[o]);
    for (size_t i = 0; b.n && i < y.n; i++)
        _arb_vec_add(row_of(y, i), row_of(y, i), b.v, (slong)y.d, e->prec);
    return y;
}

balls apply_head(const evaluation *e, balls x)
{
    const cJSON *const o = find(e->m->architecture, "head"), *const act = find(o, "activation");
    balls h = copy(e, x);
    apply_norm(e, h, find(o, "norm"), "head.norm");
    if (e->m->pools) pool_rows(e, &h, get_text(e->j, o, "pool"));
    h = maybe_linear(e, h, "head", "dense.weight", "dense.bias");
    activate(e, h, act ? get_text(e->j, o, "activation") : "none");
    if (flag(o, "tied")) {
        h = tied_outputs(e, h);
    } else {
        h = maybe_linear(e, h, "head", "out.weight", "out.bias");
    }
    for (size_t i = 0; flag(o, "normalize") && i < h.n; i++)
        divide_by_size(row_of(h, i), h.d, 0, 1, 0, e->prec); /* of zeros: it stays zero */
    return h;
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* Multiply-adds of one pass, roughly: every matrix once for every token; in every block the scores and
 * values of every pair of a query and a key, and 50 for an exponential. */
double work_of(const model *m, const input *in)
{
    const double n = (double)in->tokens;
    const double pairs = m->graph && in->edges ? n + (double)in->edges->from[in->edges->n] : n * n;
    double work = (double)count_blocks(m) * pairs * (2 * (double)m->width + 50);
    for (size_t i = 0; i < m->ntensors; i++) {
        const tensor *const t = &m->tensors[i];
        const bool table = strncmp(t->name, "embedding.", 10) == 0 && !strstr(t->name, ".map.");
        if (t->ndim == 2 && !table) work += n * (double)t->rows * (double)t->cols;
    }
    return work;
}
