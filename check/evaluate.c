/* evaluate.c - a model on an input in ball arithmetic, straight from the architecture of its file:
 * docs/format.md, "A model computes", with the names of its tensors.
 *
 * A ball is a midpoint and a radius; Arb rounds every operation outwards, so the exact value is in
 * the ball that comes out. Weights, settings and inputs are doubles, which are balls of radius 0.
 * Nothing is clever here: products are arb_dot over rows, softmax is exp over its sum. Loops over
 * rows are shared by OpenMP; each entry is computed by one thread in one order, so the result does
 * not depend on their number. Inside of such loops nothing can fail, and nothing is taken.
 *
 * Attention of the kind `poly` is evaluated as exact softmax attention: that is the function which
 * certificates speak of, and `tolerance` is about the f32 engine. */
#include "check.h"

#include <arb_hypgeom.h>

/* Less than this many products are not worth waking the other threads for. */
enum { FEW = 1 << 14 };

/* ---- rows of balls --------------------------------------------------------------------------- */

balls new_balls(size_t n, size_t d)
{
    size_t count;
    must(!__builtin_mul_overflow(n, d, &count), "%zu x %zu balls", n, d);
    return (balls){n, d, take_balls(count)};
}

/* They are exact. */
balls balls_of(const double *v, size_t n, size_t d)
{
    const balls x = new_balls(n, d);
    for (size_t i = 0; i < n * d; i++) arb_set_d(x.v + i, v[i]);
    return x;
}

arb_ptr row_of(balls b, size_t i)
{
    return b.v + i * b.d;
}

/* Columns `first` to `first + d - 1`. */
static balls columns(balls x, size_t first, size_t d)
{
    must(first <= x.d && d <= x.d - first, "columns %zu and %zu more, of %zu", first, d, x.d);
    const balls y = new_balls(x.n, d);
    for (size_t i = 0; i < x.n; i++) _arb_vec_set(row_of(y, i), row_of(x, i) + first, (slong)d);
    return y;
}

static void add_to(balls y, balls x)
{
    must(y.d == x.d, "widths %zu and %zu do not fit", y.d, x.d);
    _arb_vec_add(y.v, y.v, x.v, (slong)(y.n * y.d), bits);
}

/* The vector AT.NAME of d numbers (0: any) as one row; no rows: it is absent. */
static balls vector_of(const evaluation *e, const char *at, const char *name, size_t d)
{
    const array *const t = find_tensor(e->m, at, name);
    if (!t) return (balls){0};
    must(t->ndim == 1 && (!d || t->count == d), "tensor %s: not a vector of %zu", t->name, d);
    return balls_of(t->v, 1, t->count);
}

typedef void row_operation(arb_ptr out, arb_srcptr a, arb_srcptr b, slong n, slong prec);

static void multiply(arb_ptr out, arb_srcptr a, arb_srcptr b, slong n, slong prec)
{
    for (slong k = 0; k < n; k++) arb_mul(out + k, a + k, b + k, prec);
}

/* Every row with a vector, if there is one. */
static void each_row(balls x, row_operation *operation, balls v)
{
    for (size_t i = 0; v.n && i < x.n; i++)
        operation(row_of(x, i), row_of(x, i), v.v, (slong)x.d, bits);
}

/* ---- matrices -------------------------------------------------------------------------------- */

static const array *matrix_of(const evaluation *e, const char *at, const char *name, size_t cols)
{
    const array *const t = find_tensor(e->m, at, name);
    must(t, "tensor %s.%s is missing", at, name);
    must(t->ndim == 2 && t->shape[1] == cols, "tensor %s: not of %zu columns", t->name, cols);
    return t;
}

/* x W^T + b: W has `out` rows, which begin at w or are those of the list `rows`. */
static balls product(balls x, const double *w, const size_t *rows, size_t out, balls b)
{
    const balls y = new_balls(x.n, out);
#pragma omp parallel for if (y.n * x.d * out > FEW)
    for (size_t o = 0; o < y.d; o++) {
        arb_ptr row = _arb_vec_init((slong)x.d);
        const double *const from = w + (rows ? rows[o] : o) * x.d;
        for (size_t k = 0; k < x.d; k++) arb_set_d(row + k, from[k]);
        for (size_t i = 0; i < y.n; i++)
            arb_dot(row_of(y, i) + o, b.n ? b.v + o : NULL, 0, row_of(x, i), 1, row, 1, (slong)x.d,
                    bits);
        _arb_vec_clear(row, (slong)x.d);
    }
    return y;
}

/* x W^T + b with the tensors AT.WEIGHT and, if there is one, AT.BIAS. */
static balls linear(const evaluation *e, balls x, const char *at, const char *weight,
                    const char *bias)
{
    const array *const w = matrix_of(e, at, weight, x.d);
    return product(x, w->v, NULL, w->shape[0], vector_of(e, at, bias, w->shape[0]));
}

/* The same where there is such a matrix; else x. */
static balls maybe_linear(const evaluation *e, balls x, const char *at, const char *weight,
                          const char *bias)
{
    return find_tensor(e->m, at, weight) ? linear(e, x, at, weight, bias) : x;
}

/* ---- norms and activations ------------------------------------------------------------------- */

/* x / sqrt((|x|^2 + shift) / divisor + eps); a row of zeros whose root is 0 stays zero. */
static void divide_by_size(arb_ptr x, size_t d, double shift, double divisor, double eps)
{
    arb_ptr size = ball(shift);
    arb_dot(size, size, 0, x, 1, x, 1, (slong)d, bits);
    arb_div(size, size, ball(divisor), bits);
    arb_add(size, size, ball(eps), bits);
    if (arb_is_zero(size)) return;
    arb_rsqrt(size, size, bits);
    _arb_vec_scalar_mul(x, x, (slong)d, size, bits);
}

/* The norm o, if there is one, whose tensors begin with AT. */
static void apply_norm(const evaluation *e, balls x, const cJSON *o, const char *at)
{
    if (!o) return;
    const char *const kind = get_text(o, "kind");
    const bool center = is_one_of(kind, " layer mean "), size = is_one_of(kind, " layer rms "),
               batch = same(kind, "batch");
    const double eps = size || batch ? get_number(o, "eps") : 0,
                 shift = find(o, "shift") ? get_number(o, "shift") : 0,
                 divisor = size ? get_number(o, "divisor") : 1;
    must(center || size || batch, "%s: unknown norm %.40s", at, kind);
    if (batch) { /* (x - mean) / sqrt(var + eps) with the stored vectors */
        const balls var = vector_of(e, at, "var", x.d);
        must(var.n && find_tensor(e->m, at, "mean"), "%s: mean or var is missing", at);
        each_row(x, _arb_vec_sub, vector_of(e, at, "mean", x.d));
        for (size_t k = 0; k < x.d; k++) {
            arb_add(var.v + k, var.v + k, ball(eps), bits);
            arb_rsqrt(var.v + k, var.v + k, bits);
        }
        each_row(x, multiply, var);
    } else {
        each_row(x, _arb_vec_add, vector_of(e, at, "offset", x.d));
    }
    for (size_t i = 0; i < x.n; i++) {
        arb_ptr row = row_of(x, i), mean = ball(0);
        for (size_t k = 0; center && k < x.d; k++) arb_add(mean, mean, row + k, bits);
        arb_div_ui(mean, mean, x.d, bits);
        for (size_t k = 0; center && k < x.d; k++) arb_sub(row + k, row + k, mean, bits);
        if (size) divide_by_size(row, x.d, shift, divisor, eps);
    }
    each_row(x, multiply, vector_of(e, at, "gain", x.d));
    each_row(x, _arb_vec_add, vector_of(e, at, "bias", x.d));
}

/* silu is x / (1 + exp(-v)) with v = x; so is gelu_tanh, x (1 + tanh(v / 2)) / 2, with
 * v = sqrt(8 / pi) (x + 0.044715 x^3), where 0.044715 is the decimal number. */
static void activate_one(arb_t x, const char *name)
{
    arb_ptr v = _arb_vec_init(2);
    if (same(name, "relu")) arb_max(x, x, v, bits);
    if (same(name, "tanh")) arb_tanh(x, x, bits);
    if (same(name, "gelu")) { /* x (1 + erf(x / sqrt 2)) / 2 */
        arb_sqrt_ui(v, 2, bits);
        arb_div(v, x, v, bits);
        arb_hypgeom_erf(v, v, bits);
        arb_add_ui(v, v, 1, bits);
        arb_mul(x, x, v, bits);
        arb_mul_2exp_si(x, x, -1);
    }
    if (same(name, "silu")) arb_set(v, x);
    if (same(name, "gelu_tanh")) {
        arb_pow_ui(v, x, 3, bits);
        arb_mul_ui(v, v, 44715, bits);
        arb_div_ui(v, v, 1000000, bits);
        arb_add(v, v, x, bits);
        arb_const_pi(v + 1, bits);
        arb_mul_2exp_si(v + 1, v + 1, -3);
        arb_rsqrt(v + 1, v + 1, bits);
        arb_mul(v, v, v + 1, bits);
    }
    if (same(name, "silu") || same(name, "gelu_tanh")) {
        arb_neg(v, v);
        arb_exp(v, v, bits);
        arb_add_ui(v, v, 1, bits);
        arb_div(x, x, v, bits);
    }
    _arb_vec_clear(v, 2);
}

static void activate(balls x, const char *name)
{
    must(is_one_of(name, " none relu gelu gelu_tanh silu tanh "), "unknown activation %.40s", name);
    if (same(name, "none")) return;
#pragma omp parallel for if (x.n * x.d > FEW / 64)
    for (size_t i = 0; i < x.n * x.d; i++) activate_one(x.v + i, name);
}

/* ---- the embedding --------------------------------------------------------------------------- */

evaluation begin_evaluation(const model *m, const input *in)
{
    const cJSON *const p = get(m->architecture, "pattern");
    const char *const kind = get_text(p, "kind");
    evaluation e = {.m = m, .in = in, .full = same(kind, "full"), .window = in->tokens};
    must_fit(m, in);
    must(is_one_of(kind, " full causal window graph "), "unknown pattern %.40s", kind);
    if (m->graph) e.edges = complete_graph(m, in->edges);
    if (same(kind, "window")) e.window = get_count(p, "window");
    if (same(kind, "window")) e.sinks = get_count(p, "sinks");
    return e;
}

/* A table, or sin and cos of position / base^(2 (k / 2) / d) in entry k of d. */
static void add_positions(const evaluation *e, balls x, const cJSON *positions)
{
    const char *const kind = get_text(positions, "kind");
    const bool learned = same(kind, "learned"), waves = same(kind, "sinusoidal");
    const array *const t = learned ? matrix_of(e, "embedding", "positions", x.d) : NULL;
    const double base = waves ? get_number(positions, "base") : 2;
    const slong prec = bits + 32;
    arb_ptr v = take_balls(2);
    must(learned || waves || same(kind, "rotary"), "unknown positions %.40s", kind);
    must(base > 1 && base <= 1e30, "base: %g is not from 1 to 1e30", base);
    must(!t || t->shape[0] >= x.n, "embedding.positions: has too few rows");
    if (t) add_to(x, balls_of(t->v, x.n, x.d));
    for (size_t i = 0; waves && i < x.n * x.d; i++) {
        arb_set_ui(v + 1, i % x.d / 2 * 2);
        arb_div_ui(v + 1, v + 1, x.d, prec);
        arb_set_d(v, base);
        arb_pow(v, v, v + 1, prec);
        arb_ui_div(v, i / x.d, v, prec);
        (i % x.d % 2 ? arb_cos : arb_sin)(v, v, prec);
        arb_add(x.v + i, x.v + i, v, bits);
    }
}

balls embed(const evaluation *e)
{
    const input *const in = e->in;
    const size_t width = e->m->width, vocab = e->m->vocab;
    const cJSON *const o = find(e->m->architecture, "embedding"), *const p = find(o, "positions");
    const array *const t = vocab ? matrix_of(e, "embedding", "embedding", width) : NULL;
    balls x = t ? new_balls(in->tokens, width) : balls_of(in->x, in->tokens, width);
    must(!t || t->shape[0] == (e->m->row ? vocab + 1 - e->m->shared : vocab),
         "embedding.embedding: has not a row for each token, or for those that share");
    for (size_t i = 0; t && i < x.n * width; i++) {
        const size_t id = (size_t)in->x[i / width], row = e->m->row ? e->m->row[id] : id;
        arb_set_d(x.v + i, t->v[row * width + i % width]);
    }
    if (in->shift) add_to(x, balls_of(in->shift, x.n, width));
    if (p && !flag(p, "after_map")) add_positions(e, x, p);
    x = maybe_linear(e, x, "embedding", "map.weight", "map.bias");
    if (flag(p, "after_map")) add_positions(e, x, p);
    apply_norm(e, x, find(o, "norm"), "embedding.norm");
    return x;
}

/* ---- attention ------------------------------------------------------------------------------- */

size_t visible(const evaluation *e, size_t query, uint32_t *keys)
{
    size_t n = 0;
    if (e->edges) {
        for (size_t k = e->edges->from[query]; k < e->edges->from[query + 1]; k++)
            keys[n++] = e->edges->list[k];
        return n;
    }
    for (size_t k = 0; k < (e->full ? e->in->tokens : query + 1); k++)
        if (k + e->window > query || k < e->sinks) keys[n++] = (uint32_t)k;
    return n;
}

/* U x: the plain mean of the rows that a row sees; 0 where it sees none. */
static balls visible_means(const evaluation *e, balls x)
{
    const balls y = new_balls(x.n, x.d);
    uint32_t *const keys = take(x.n, sizeof *keys);
    for (size_t i = 0; i < y.n; i++) {
        const size_t n = i > 0 && e->full ? 0 : visible(e, i, keys);
        if (i > 0 && e->full) _arb_vec_set(row_of(y, i), y.v, (slong)x.d);
        for (size_t k = 0; k < n; k++)
            _arb_vec_add(row_of(y, i), row_of(y, i), row_of(x, keys[k]), (slong)x.d, bits);
        for (size_t k = 0; n && k < x.d; k++)
            arb_div_ui(row_of(y, i) + k, row_of(y, i) + k, n, bits);
    }
    return y;
}

/* Rotary positions: planes (2p, 2p + 1) or (p, p + planes) of the head o turn with each position. */
static void turn(const evaluation *e, balls x, const cJSON *o, const char *at)
{
    const cJSON *const positions = find(find(e->m->architecture, "embedding"), "positions");
    const size_t planes = find(o, "planes") ? get_count(o, "planes") : 0;
    const size_t first = planes ? get_count(o, "freq") : 0;
    const bool pairs = flag(positions, "interleaved");
    const balls freqs = planes ? vector_of(e, at, "freqs", 0) : (balls){0};
    arb_ptr t = take_balls(4), s = t + 1, c = t + 2, a = t + 3;
    must(planes <= x.d / 2 && (!planes || (first <= freqs.d && planes <= freqs.d - first)),
         "%s: %zu planes", at, planes);
    for (size_t i = 0; i < x.n * planes; i++) {
        const size_t row = i / planes, p = i % planes;
        arb_ptr one = row_of(x, row) + (pairs ? 2 * p : p), two = one + (pairs ? 1 : planes);
        arb_mul_ui(a, freqs.v + first + p, row, bits + 64);
        arb_sin_cos(s, c, a, bits + 32);
        arb_mul(a, one, s, bits);
        arb_mul(t, two, s, bits);
        arb_mul(one, one, c, bits);
        arb_sub(one, one, t, bits);
        arb_mul(two, two, c, bits);
        arb_add(two, two, a, bits);
    }
}

/* The heads, side by side: each has its columns of queries, keys and values. */
heads attention_heads(const evaluation *e, part p, balls z)
{
    const cJSON *const list = find(p.o, "heads");
    const char *const kind = get_text(p.o, "kind");
    const bool own = !is_one_of(kind, " constq pool "); /* else bq is the query of all */
    if (!is_one_of(kind, " exact poly constq meanq pool ")) return (heads){0};
    balls q = own ? linear(e, z, p.at, "wq", "bq") : new_balls(z.n, vector_of(e, p.at, "bq", 0).d);
    if (!own) each_row(q, _arb_vec_add, vector_of(e, p.at, "bq", q.d));
    if (same(kind, "meanq")) q = visible_means(e, q);
    const balls k = linear(e, z, p.at, "wk", "bk"), v = linear(e, z, p.at, "wv", "bv");
    must(cJSON_IsArray(list) && list->child, "%s: has no heads", p.at);
    heads out = {0, 0, take(length_of(list), sizeof *out.list)};
    for (const cJSON *c = list->child; c; c = c->next) {
        const size_t dk = get_count(c, "dk"), dv = get_count(c, "dv");
        head *const h = &out.list[out.n++];
        *h = (head){columns(q, get_count(c, "q"), dk), columns(k, get_count(c, "k"), dk),
                    columns(v, get_count(c, "v"), dv), get_number(c, "scale")};
        must(get_count(c, "o") == out.width, "%s: a head does not follow the one before it", p.at);
        out.width += dv;
        turn(e, h->q, c, p.at);
        turn(e, h->k, c, p.at);
    }
    return out;
}

/* Logarithms of the weights. The midpoint of the largest score comes off first: exp then does not
 * overflow. */
void log_softmax(arb_ptr s, size_t n)
{
    arb_ptr sum = _arb_vec_init(3), v = sum + 1, most = sum + 2;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || arf_cmp(arb_midref(s + i), arb_midref(most)) > 0)
            arf_set(arb_midref(most), arb_midref(s + i));
    for (size_t i = 0; i < n; i++) {
        if (arb_is_finite(most)) arb_sub(s + i, s + i, most, bits);
        arb_exp(v, s + i, bits);
        arb_add(sum, sum, v, bits);
    }
    arb_log(sum, sum, bits);
    for (size_t i = 0; i < n; i++) arb_sub(s + i, s + i, sum, bits);
    _arb_vec_clear(sum, 3);
}

void log_weights(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n)
{
    arb_t scale;
    arb_init(scale);
    arb_set_d(scale, h->scale);
    for (size_t i = 0; i < n; i++) {
        arb_ptr q = row_of(h->q, query), k = row_of(h->k, keys[i]);
        arb_dot(out + i, NULL, 0, q, 1, k, 1, (slong)h->q.d, bits);
        arb_mul(out + i, out + i, scale, bits);
    }
    arb_clear(scale);
    log_softmax(out, n);
}

/* Adds the weighted mean of the values; of no keys 0. */
void attend(arb_ptr out, const head *h, size_t query, const uint32_t *keys, size_t n)
{
    arb_ptr weight = _arb_vec_init((slong)n);
    log_weights(weight, h, query, keys, n);
    for (size_t i = 0; i < n; i++) {
        arb_exp(weight + i, weight + i, bits);
        _arb_vec_scalar_addmul(out, row_of(h->v, keys[i]), (slong)h->v.d, weight + i, bits);
    }
    _arb_vec_clear(weight, (slong)n);
}

/* All heads side by side, behind `before` (or nothing). */
static balls softmax_heads(const evaluation *e, part p, balls z, balls before)
{
    const heads h = attention_heads(e, p, z);
    const balls y = new_balls(z.n, before.d + h.width);
#pragma omp parallel for if (y.n * y.n * h.n > FEW / 64)
    for (size_t i = 0; i < y.n; i++) {
        uint32_t *const keys = flint_malloc((y.n + 1) * sizeof *keys);
        const size_t seen = visible(e, i, keys);
        arb_ptr to = row_of(y, i) + before.d;
        _arb_vec_set(row_of(y, i), row_of(before, i), (slong)before.d);
        for (const head *t = h.list; t < h.list + h.n; to += t++->v.d) attend(to, t, i, keys, seen);
        flint_free(keys);
    }
    return y;
}

/* What attention adds to its rows: docs/format.md has one line for each kind. */
static balls attention_branch(const evaluation *e, part p, balls z)
{
    const char *const kind = get_text(p.o, "kind"), *const at = p.at;
    const size_t out = get_count(p.o, "out");
    balls y = new_balls(z.n, out);
    if (same(kind, "pool")) /* [z, heads] matrix^T */
        y = linear(e, softmax_heads(e, p, z, z), at, "matrix", "");
    else if (is_one_of(kind, " exact poly constq meanq "))
        y = maybe_linear(e, softmax_heads(e, p, z, new_balls(z.n, 0)), at, "wo", "");
    else if (same(kind, "uniform")) /* U (z mix^T + bv) */
        y = visible_means(e, linear(e, z, at, "mix", "bv"));
    else if (is_one_of(kind, " linear affmix ")) /* z matrix^T, and + U z mix^T */
        y = linear(e, z, at, "matrix", "");
    else
        must(is_one_of(kind, " zero const umix "), "%s: unknown kind %.40s", at, kind);
    if (same(kind, "affmix")) add_to(y, linear(e, visible_means(e, z), at, "mix", ""));
    if (same(kind, "umix")) { /* sum_p U^p z E_p: the E_p^T are stacked in mix */
        const array *const mix = matrix_of(e, at, "mix", z.d);
        for (size_t row = 0; out && row + out <= mix->shape[0]; row += out) {
            if (row > 0) z = visible_means(e, z);
            add_to(y, product(z, mix->v + row * z.d, NULL, out, (balls){0}));
        }
    }
    each_row(y, _arb_vec_add, vector_of(e, at, "bo", y.d));
    return y;
}

/* ---- blocks and the head --------------------------------------------------------------------- */

static balls ffn_branch(const evaluation *e, part p, balls z)
{
    const char *const at = p.at, *const act = get_text(p.o, "activation");
    const bool gated = is_text(find(p.o, "kind"), "gated");
    const size_t layers = get_count(p.o, "layers");
    must(layers > 0 && (gated ? layers == 3 : is_text(find(p.o, "kind"), "mlp")),
         "%s: %zu layers, or an unknown kind", at, layers);
    balls y = linear(e, z, at, "0.weight", "0.bias");
    for (size_t l = 1; l < layers; l++) {
        const char *const weight = words("%zu.weight", l), *const bias = words("%zu.bias", l);
        const bool up = gated && l == 1; /* down(act(gate z) * up z) */
        if (!gated || up) activate(y, act);
        const balls x = linear(e, up ? z : y, at, weight, bias);
        must(!up || x.d == y.d, "%s: gate and up have other widths", at);
        if (up) multiply(x.v, x.v, y.v, (slong)(x.n * x.d), bits);
        y = x;
    }
    return y;
}

part part_of(const model *m, size_t block, bool ffn)
{
    const cJSON *const o = cJSON_GetArrayItem(find(m->architecture, "blocks"), (int)block);
    const char *const at = words("blocks.%zu.%s", block, ffn ? "ffn" : "attn");
    return (part){ffn, find(o, ffn ? "ffn" : "attention"), at};
}

balls part_input(const evaluation *e, part p, balls x)
{
    const balls z = columns(x, 0, x.d);
    must(get_count(p.o, "in") == x.d, "%s: reads %zu", p.at, x.d);
    apply_norm(e, z, find(p.o, "in_norm"), words("%s.in_norm", p.at));
    return z;
}

balls branch(const evaluation *e, part p, balls z)
{
    return p.ffn ? ffn_branch(e, p, z) : attention_branch(e, p, z);
}

/* out_norm(skip(x) + branch(in_norm(x))); nothing else is kept. */
balls apply_part(const evaluation *e, part p, balls x)
{
    chunk *const mark = now->memory;
    if (!p.o) return x;
    const char *const skip = get_text(p.o, "skip");
    const balls y = branch(e, p, part_input(e, p, x));
    must(y.d == get_count(p.o, "out"), "%s: does not have `out` columns", p.at);
    must(is_one_of(skip, " none identity diagonal dense "), "%s: unknown skip %.40s", p.at, skip);
    if (same(skip, "diagonal")) {
        x = columns(x, 0, x.d);
        each_row(x, multiply, vector_of(e, p.at, "skip", x.d));
    }
    if (same(skip, "dense")) x = linear(e, x, p.at, "skip", "");
    if (!same(skip, "none")) add_to(y, x);
    apply_norm(e, y, find(p.o, "out_norm"), words("%s.out_norm", p.at));
    release(mark, y.v, NULL);
    return y;
}

/* One row of all, in place. */
static balls pool_rows(balls h, const char *kind)
{
    const bool mean = same(kind, "mean"), most = same(kind, "max");
    must(is_one_of(kind, " first mean max last "), "unknown pooling %.40s", kind);
    if (same(kind, "last")) _arb_vec_set(h.v, row_of(h, h.n - 1), (slong)h.d);
    for (size_t i = h.d; (mean || most) && i < h.n * h.d; i++)
        (mean ? arb_add : arb_max)(h.v + i % h.d, h.v + i % h.d, h.v + i, bits);
    for (size_t k = 0; mean && k < h.d; k++) arb_div_ui(h.v + k, h.v + k, h.n, bits);
    return (balls){1, h.d, h.v};
}

/* normalize(out(act(dense(pool(norm x))))); a tied map is the embedding, with a row for each token. */
balls apply_head(const evaluation *e, balls x)
{
    const cJSON *const o = find(e->m->architecture, "head");
    balls h = columns(x, 0, x.d);
    apply_norm(e, h, find(o, "norm"), "head.norm");
    if (e->m->pools) h = pool_rows(h, get_text(o, "pool"));
    h = maybe_linear(e, h, "head", "dense.weight", "dense.bias");
    activate(h, find(o, "activation") ? get_text(o, "activation") : "none");
    if (flag(o, "tied"))
        h = product(h, matrix_of(e, "embedding", "embedding", h.d)->v, e->m->row, e->m->vocab,
                    vector_of(e, "head", "out.bias", e->m->vocab));
    else
        h = maybe_linear(e, h, "head", "out.weight", "out.bias");
    for (size_t i = 0; flag(o, "normalize") && i < h.n; i++)
        divide_by_size(row_of(h, i), h.d, 0, 1, 0); /* of zeros: it stays zero */
    return h;
}

/* Multiply-adds of one pass, roughly: every matrix once for every token; in every block the scores and
 * values of every pair of a query and a key, and 50 for an exponential. */
double work_of(const model *m, const input *in)
{
    const double n = (double)in->tokens;
    const double pairs = m->graph && in->edges ? n + (double)in->edges->from[in->edges->n] : n * n;
    double work = (double)m->blocks * pairs * (2 * (double)m->width + 50);
    for (size_t i = 0; i < m->tensors.n; i++) {
        const array *const t = &m->tensors.list[i];
        const bool table = strncmp(t->name, "embedding.", 10) == 0 && !strstr(t->name, ".map.");
        if (t->ndim == 2 && !table) work += n * (double)t->count;
    }
    return work;
}
