/* naive.h - for the importer tests: named random tensors, a safetensors writer, and transformer
 * parts written once more in plain loops over the tensors as the FILE has them. Nothing here is
 * shared with the library but the random numbers. */
#ifndef NAIVE_H
#define NAIVE_H
#include <pare/run.h>
#include "../support/pare_test.h"

#define NAIVE_SEED 20240917u

typedef struct tensor {
    char name[100];
    size_t ndim, shape[4], count;
    double *v; /* multiples of 1/64 up to 1.5: exact in every float type there is */
} tensor;

typedef struct store {
    tensor t[160];
    size_t n;
    pare_arena *a;
    pare_rng rng;
} store;

static inline store store_new(void)
{
    store s = {.a = pare_arena_new(), .rng = pare_rng_at(NAIVE_SEED, 7)};
    assert_non_null(s.a);
    return s;
}

static inline double *make(store *s, const char *name, size_t a, size_t b, size_t c)
{
    assert_true(s->n < sizeof s->t / sizeof *s->t);
    tensor *t = &s->t[s->n++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->shape[0] = a, t->shape[1] = b, t->shape[2] = c;
    t->ndim = c ? 3 : b ? 2 : 1;
    t->count = a * (b ? b : 1) * (c ? c : 1);
    t->v = pare_alloc(s->a, t->count, sizeof *t->v);
    assert_non_null(t->v);
    for (size_t i = 0; i < t->count; i++)
        t->v[i] = ((double)pare_rng_below(&s->rng, 193) - 96) / 64;
    return t->v;
}

PARE_PRINTF(5, 6)
static inline double *makef(store *s, size_t a, size_t b, size_t c, const char *fmt, ...)
{
    char name[100];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    return make(s, name, a, b, c);
}

static inline tensor *seek_tensor(store *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->t[i].name, name) == 0) return &s->t[i];
    print_error("the test has no tensor %s\n", name);
    fail();
    return NULL;
}

PARE_PRINTF(2, 3) static inline const double *get(store *s, const char *fmt, ...)
{
    char name[100];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    return seek_tensor(s, name)->v;
}

/* Forgets a tensor: the file is written without it. */
static inline void drop(store *s, const char *name)
{
    tensor *t = seek_tensor(s, name);
    memmove(t, t + 1, (size_t)(&s->t[--s->n] - t) * sizeof *t);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Exact for our values, none of which is subnormal in half precision. */
static inline uint16_t to_half(double v, int mantissa, int bias)
{
    if (v == 0) return 0;
    int e;
    const double f = frexp(fabs(v), &e); /* f in [1/2, 1) */
    const double m = (2 * f - 1) * (double)(1 << mantissa);
    assert_true(m == floor(m));
    return (uint16_t)((v < 0 ? 0x8000 : 0) | (e - 1 + bias) << mantissa | (int)m);
}

static inline size_t put_number(uint8_t *to, pare_dtype dtype, double v)
{
    if (dtype == PARE_F64) {
        memcpy(to, &v, 8);
    } else if (dtype == PARE_F32) {
        const float f = (float)v;
        memcpy(to, &f, 4);
    } else {
        const uint16_t h = dtype == PARE_F16 ? to_half(v, 10, 15) : to_half(v, 7, 127);
        memcpy(to, &h, 2);
    }
    return pare_dtype_size(dtype);
}

/* Tensors [from, to) of the store; `pad` blanks more in the header move the data. */
static inline void write_tensors(store *s, const char *path, size_t from, size_t to,
                                 pare_dtype dtype, const char *metadata, int pad)
{
    char *h = pare_alloc(s->a, 65536, 1);
    assert_non_null(h);
    size_t n = 0, bytes = 0;
    n += (size_t)snprintf(h + n, 65536 - n, "{");
    if (metadata) n += (size_t)snprintf(h + n, 65536 - n, "\"__metadata__\":%s", metadata);
    for (size_t i = from; i < to; i++) {
        const tensor *t = &s->t[i];
        const size_t end = bytes + t->count * pare_dtype_size(dtype);
        n += (size_t)snprintf(h + n, 65536 - n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                              n > 1 ? "," : "", t->name, pare_dtype_name(dtype));
        for (size_t k = 0; k < t->ndim; k++)
            n += (size_t)snprintf(h + n, 65536 - n, "%s%zu", k ? "," : "", t->shape[k]);
        n += (size_t)snprintf(h + n, 65536 - n, "],\"data_offsets\":[%zu,%zu]}", bytes, end);
        bytes = end;
    }
    n += (size_t)snprintf(h + n, 65536 - n, "}");
    while (n % 8) h[n++] = ' ';
    for (int i = 0; i < pad; i++) h[n++] = ' ';
    uint8_t *file = pare_alloc(s->a, 8 + n + bytes, 1);
    assert_non_null(file);
    for (size_t i = 0; i < 8; i++) file[i] = (uint8_t)(n >> (8 * i));
    memcpy(file + 8, h, n);
    size_t at = 8 + n;
    for (size_t i = from; i < to; i++)
        for (size_t k = 0; k < s->t[i].count; k++) at += put_number(file + at, dtype, s->t[i].v[k]);
    test_write_file(path, file, at);
}

static inline void write_text(const char *path, const char *text)
{
    test_write_file(path, text, strlen(text));
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* y[n, out] = x[n, in] times w, which is [in, out] when input_first, else [out, in]; plus b. */
static inline double *affine(store *s, const double *x, size_t n, size_t in, size_t out,
                             const double *w, const double *b, bool input_first)
{
    double *y = pare_alloc(s->a, n * out, sizeof *y);
    assert_non_null(y);
    for (size_t t = 0; t < n; t++)
        for (size_t o = 0; o < out; o++) {
            double sum = b ? b[o] : 0;
            for (size_t i = 0; i < in; i++)
                sum += x[t * in + i] * (input_first ? w[i * out + o] : w[o * in + i]);
            y[t * out + o] = sum;
        }
    return y;
}

/* Mean and deviation taken away (rms: only the root mean square). */
static inline double *normed(store *s, const double *x, size_t n, size_t d, bool rms, double eps,
                             const double *gain, const double *bias)
{
    double *y = pare_alloc(s->a, n * d, sizeof *y);
    assert_non_null(y);
    for (size_t t = 0; t < n; t++) {
        double mean = 0, square = 0;
        for (size_t i = 0; i < d && !rms; i++) mean += x[t * d + i] / (double)d;
        for (size_t i = 0; i < d; i++)
            square += (x[t * d + i] - mean) * (x[t * d + i] - mean) / (double)d;
        for (size_t i = 0; i < d; i++)
            y[t * d + i] =
                (x[t * d + i] - mean) / sqrt(square + eps) * gain[i] + (bias ? bias[i] : 0);
    }
    return y;
}

static inline void add_to(double *x, const double *y, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] += y[i];
}

static inline double gelu(double x)
{
    return x * (1 + erf(x / sqrt(2))) / 2;
}
static inline double gelu_new(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}
static inline double silu(double x)
{
    return x / (1 + exp(-x));
}
static inline double relu(double x)
{
    return x > 0 ? x : 0;
}
static inline void apply(double *x, size_t n, double (*f)(double))
{
    for (size_t i = 0; i < n; i++) x[i] = f(x[i]);
}

/* Turns the first `transposed` dims of every head of x[n, heads * dk] by position * base^(-2i/transposed).
 */
static inline void rotate(double *x, size_t n, size_t heads, size_t dk, size_t transposed,
                          double base, bool interleaved)
{
    for (size_t t = 0; t < n; t++)
        for (size_t h = 0; h < heads; h++)
            for (size_t i = 0; i < transposed / 2; i++) {
                const double angle = (double)t * pow(base, -2.0 * (double)i / (double)transposed);
                double *head = x + (t * heads + h) * dk;
                double *a = &head[interleaved ? 2 * i : i];
                double *b = &head[interleaved ? 2 * i + 1 : i + transposed / 2];
                const double u = *a, v = *b;
                *a = u * cos(angle) - v * sin(angle);
                *b = u * sin(angle) + v * cos(angle);
            }
}

static inline bool sees_all(size_t query, size_t key, size_t n)
{
    (void)query, (void)key, (void)n;
    return true;
}
static inline bool sees_past(size_t query, size_t key, size_t n)
{
    (void)n;
    return key <= query;
}

/* q[n, heads * dk], k and v [n, kv * dk] -> [n, heads * dk]. */
static inline double *attend(store *s, const double *q, const double *k, const double *v, size_t n,
                             size_t heads, size_t kv, size_t dk, double scale,
                             bool (*sees)(size_t query, size_t key, size_t n))
{
    double *y = pare_alloc(s->a, n * heads * dk, sizeof *y);
    double *p = pare_alloc(s->a, n, sizeof *p);
    assert_true(y && p);
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < n; i++) {
            const size_t g = h / (heads / kv);
            double top = -INFINITY, sum = 0;
            for (size_t j = 0; j < n; j++) {
                double dot = 0;
                for (size_t c = 0; c < dk; c++)
                    dot += q[(i * heads + h) * dk + c] * k[(j * kv + g) * dk + c];
                p[j] = sees(i, j, n) ? scale * dot : -INFINITY;
                top = fmax(top, p[j]);
            }
            for (size_t j = 0; j < n; j++) sum += p[j] = exp(p[j] - top);
            for (size_t j = 0; j < n; j++)
                for (size_t c = 0; c < dk; c++)
                    y[(i * heads + h) * dk + c] += p[j] / sum * v[(j * kv + g) * dk + c];
        }
    return y;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* Loads `path`, runs it and compares with want, [rows, cols] row-major. */
static inline void assert_model_gives(const char *path, const pare_input *in, const double *want,
                                      size_t rows, size_t cols)
{
    pare_model *m = NULL;
    pare_err err = {0};
    double y[2000];
    assert_true(rows * cols <= 2000);
    assert_ok(pare_model_load(&m, path, &err), &err);
    assert_int_equal(pare_model_outputs(m), cols);
    assert_int_equal(pare_output_rows(m, in), rows);
    assert_ok(pare_forward_f64(y, m, in, NULL, NULL, &err), &err);
    double largest = 1, spread = 0;
    for (size_t i = 0; i < rows * cols; i++) {
        largest = fmax(largest, fabs(want[i]));
        spread = fmax(spread, fabs(want[i] - want[0]));
    }
    assert_true(spread > 1e-3); /* else the comparison says nothing */
    for (size_t i = 0; i < rows * cols; i++) {
        if (fabs(y[i] - want[i]) <= 1e-11 * largest) continue;
        print_error("%s: entry %zu is %.15g, expected %.15g (seed %u)\n", path, i, y[i], want[i],
                    NAIVE_SEED);
        fail();
    }
    pare_model_free(m);
}

/* Loading `path` fails as bad input, and the message has every one of the words (NULL ends). */
static inline void assert_refused(const char *path, const char *const *words)
{
    pare_model *m = NULL;
    pare_err err = {0};
    assert_status(pare_model_load(&m, path, &err), PARE_ERR_INPUT, &err);
    assert_null(m);
    for (size_t i = 0; words[i]; i++) assert_contains(err.msg, words[i]);
    assert_contains(err.msg, path);
}
#define REFUSED(path, ...) assert_refused((path), (const char *const[]){__VA_ARGS__, NULL})
#endif
