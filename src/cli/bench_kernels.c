/* bench_kernels.c - the kernels below a model: attention, a dense layer, hashing, the certified
 * spectral norm (bench.h). */
#include "bench.h"

#include <math.h>
#include <string.h>

#define CHECKED 16 /* rows or entries that are computed again in f64 */

/* ---- attention: p = causal?, heads, n, d ---------------------------------------------------- */

typedef struct attention {
    bool causal;
    size_t heads, n, d;
    float *q, *k, *v, *y; /* n x heads d: heads side by side, as a forward pass has them */
} attention;

static pare_status attention_input(bench_job *j, const size_t *p)
{
    attention *s = j->state = bench_alloc(j, 1, sizeof *s);
    if (!s) return j->c->err.code;
    *s = (attention){.causal = p[0] != 0, .heads = p[1], .n = p[2], .d = p[3]};
    const size_t width = s->heads * s->d, count = s->n * width;
    s->q = bench_normal(j, count, 1);
    s->k = bench_normal(j, count, 2);
    s->v = bench_normal(j, count, 3);
    s->y = bench_alloc(j, count, sizeof *s->y);
    if (!s->q || !s->k || !s->v || !s->y) return j->c->err.code;
    const char *mask = s->causal ? "causal" : "full";
    snprintf(j->shape, sizeof j->shape, "%s heads=%zu n=%zu d=%zu", mask, s->heads, s->n, s->d);
    j->flops = 4 * (double)s->n * (double)s->n * (double)width * (s->causal ? 0.5 : 1);
    j->amount = (double)s->n;
    j->result = s->y;
    j->nresult = count;
    j->tolerance = 2e-5;
    pare_status st = bench_give_array(j, "q", PARE_F32, s->n, width, s->q);
    if (!st) st = bench_give_array(j, "k", PARE_F32, s->n, width, s->k);
    if (!st) st = bench_give_array(j, "v", PARE_F32, s->n, width, s->v);
    if (st) return st;
    return bench_give_case(j,
                           "{\"kind\": \"attention\", \"mask\": \"%s\", \"heads\": %zu, "
                           "\"n\": %zu, \"d\": %zu}",
                           mask, s->heads, s->n, s->d);
}

static pare_mat32 head_view(const attention *s, float *v, size_t h)
{
    return (pare_mat32){s->n, s->d, s->heads * s->d, v + h * s->d};
}

static pare_status attention_run(bench_job *j)
{
    const attention *s = j->state;
    const pare_pattern pattern = {.kind = s->causal ? PARE_CAUSAL : PARE_FULL};
    const float scale = 1 / sqrtf((float)s->d);
    for (size_t h = 0; h < s->heads; h++) {
        const pare_mat32 q = head_view(s, s->q, h), k = head_view(s, s->k, h),
                         v = head_view(s, s->v, h);
        pare_mat32 y = head_view(s, s->y, h);
        const pare_status st =
            pare_attend_f32(&y,
                            &(pare_attention_args32){
                                .q = &q, .k = &k, .v = &v, .scale = scale, .pattern = &pattern},
                            &j->exec, &j->c->err);
        if (st) return st;
    }
    return PARE_OK;
}

/* Row i of head h in f64; w holds a weight for every key. */
static void exact_row(double *y, const attention *s, size_t h, size_t i, double *w)
{
    const size_t width = s->heads * s->d, keys = s->causal ? i + 1 : s->n;
    const float *q = s->q + i * width + h * s->d, *k = s->k + h * s->d, *v = s->v + h * s->d;
    double row_max = -INFINITY, sum = 0;
    for (size_t t = 0; t < keys; t++) {
        w[t] = 0;
        for (size_t c = 0; c < s->d; c++) w[t] += (double)q[c] * (double)k[t * width + c];
        w[t] /= sqrt((double)s->d);
        row_max = fmax(row_max, w[t]);
    }
    for (size_t c = 0; c < s->d; c++) y[c] = 0;
    for (size_t t = 0; t < keys; t++) {
        w[t] = exp(w[t] - row_max);
        sum += w[t];
        for (size_t c = 0; c < s->d; c++) y[c] += w[t] * (double)v[t * width + c];
    }
    for (size_t c = 0; c < s->d; c++) y[c] /= sum;
}

static pare_status attention_check(bench_job *j, double *error)
{
    const attention *s = j->state;
    const pare_mark mark = pare_arena_mark(j->arena);
    double *w = bench_alloc(j, s->n, sizeof *w), *y = bench_alloc(j, s->d, sizeof *y);
    if (!w || !y) return j->c->err.code;
    *error = 0;
    for (size_t at = 0; at < CHECKED; at++)
        for (size_t h = 0; h < s->heads; h++) {
            const size_t i = at * (s->n - 1) / (CHECKED - 1); /* the first and the last, too */
            exact_row(y, s, h, i, w);
            const double e = bench_distance(s->y + i * s->heads * s->d + h * s->d, y, s->d);
            if (!(e <= *error)) *error = e;
        }
    pare_arena_reset(j->arena, mark);
    return PARE_OK;
}

const bench_kind bench_attention = {attention_input, NULL, NULL, attention_run,
                                    attention_check, NULL};

/* ---- a dense layer: p = rows, in, out ------------------------------------------------------- */

typedef struct dense {
    size_t n, in, out;
    float *x, *w, *b, *y;
} dense;

static pare_status dense_input(bench_job *j, const size_t *p)
{
    dense *s = j->state = bench_alloc(j, 1, sizeof *s);
    if (!s) return j->c->err.code;
    *s = (dense){.n = p[0], .in = p[1], .out = p[2]};
    s->x = bench_normal(j, s->n * s->in, 4);
    s->w = bench_normal(j, s->out * s->in, 5);
    s->b = bench_normal(j, s->out, 6);
    s->y = bench_alloc(j, s->n * s->out, sizeof *s->y);
    if (!s->x || !s->w || !s->b || !s->y) return j->c->err.code;
    snprintf(j->shape, sizeof j->shape, "n=%zu in=%zu out=%zu", s->n, s->in, s->out);
    j->flops = 2 * (double)s->n * (double)s->in * (double)s->out;
    j->result = s->y;
    j->nresult = s->n * s->out;
    j->tolerance = 2e-5;
    pare_status st = bench_give_array(j, "x", PARE_F32, s->n, s->in, s->x);
    if (!st) st = bench_give_array(j, "w", PARE_F32, s->out, s->in, s->w);
    if (!st) st = bench_give_array(j, "b", PARE_F32, 1, s->out, s->b);
    return st ? st : bench_give_case(j, "{\"kind\": \"dense\"}");
}

static pare_status dense_run(bench_job *j)
{
    const dense *s = j->state;
    const pare_weight w = {PARE_F32, s->out, s->in, s->w}, b = {PARE_F32, 1, s->out, s->b};
    return pare_dense_f32(&(pare_mat32){s->n, s->out, s->out, s->y},
                          &(pare_mat32){s->n, s->in, s->in, s->x}, &w, &b, &j->exec, &j->c->err);
}

/* Some rows, all their entries; relative to the largest entry of the row. */
static pare_status dense_check(bench_job *j, double *error)
{
    const dense *s = j->state;
    const pare_mark mark = pare_arena_mark(j->arena);
    double *row = bench_alloc(j, s->out, sizeof *row);
    if (!row) return j->c->err.code;
    *error = 0;
    for (size_t at = 0; at < CHECKED; at++) {
        const size_t i = at * (s->n - 1) / (CHECKED - 1);
        for (size_t o = 0; o < s->out; o++) {
            row[o] = (double)s->b[o];
            for (size_t k = 0; k < s->in; k++)
                row[o] += (double)s->x[i * s->in + k] * (double)s->w[o * s->in + k];
        }
        const double e = bench_distance(s->y + i * s->out, row, s->out);
        if (!(e <= *error)) *error = e;
    }
    pare_arena_reset(j->arena, mark);
    return PARE_OK;
}

const bench_kind bench_dense = {dense_input, NULL, NULL, dense_run, dense_check, NULL};

/* ---- hashing: p = times --------------------------------------------------------------------- */

#define MILLION 1000000

typedef struct hash {
    size_t times;
    char *text, hex[PARE_SHA256_HEX];
} hash;

static pare_status hash_input(bench_job *j, const size_t *p)
{
    hash *s = j->state = bench_alloc(j, 1, sizeof *s);
    if (s) s->text = bench_alloc(j, MILLION, 1);
    if (!s || !s->text) return j->c->err.code;
    memset(s->text, 'a', MILLION);
    s->times = p[0];
    snprintf(j->shape, sizeof j->shape, "sha256 bytes=%d times=%zu", MILLION, s->times);
    j->amount = MILLION * (double)s->times;
    return PARE_OK;
}

static pare_status hash_run(bench_job *j)
{
    hash *s = j->state;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < s->times && !st; i++)
        st = pare_sha256_of(s->hex, s->text, MILLION, &j->c->err);
    return st;
}

/* The last of the examples in FIPS 180: a million times the letter a. */
static pare_status hash_check(bench_job *j, double *error)
{
    static const char known[] = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    const hash *s = j->state;
    *error = strcmp(s->hex, known) == 0 ? 0 : INFINITY;
    return PARE_OK;
}

const bench_kind bench_hash = {hash_input, NULL, NULL, hash_run, hash_check, NULL};

/* ---- the certified spectral norm: p = n ----------------------------------------------------- */

typedef struct spectral {
    pare_weight w;
    double largest; /* singular value, by the SVD */
    pare_ub norm;
} spectral;

static pare_status spectral_input(bench_job *j, const size_t *p)
{
    const size_t n = p[0];
    spectral *s = j->state = bench_alloc(j, 1, sizeof *s);
    pare_mat m = pare_mat_new(j->arena, n, n);
    double *values = bench_alloc(j, n, sizeof *values);
    if (!m.v) return pare_no_memory(&j->c->err);
    if (!s || !values) return j->c->err.code;
    pare_rng r = pare_rng_at(j->c->seed, 7);
    for (size_t i = 0; i < n * n; i++) m.v[i] = pare_rng_normal(&r);
    snprintf(j->shape, sizeof j->shape, "f64 n=%zu", n);
    s->w = (pare_weight){PARE_F64, n, n, m.v};
    const pare_status st = pare_svd(NULL, values, NULL, &m, j->arena, &j->c->err);
    s->largest = values[0];
    j->tolerance = 1e-3; /* what the header promises */
    return st;
}

static pare_status spectral_run(bench_job *j)
{
    spectral *s = j->state;
    const pare_mark mark = pare_arena_mark(j->arena);
    const pare_status st = pare_norm_spectral(&s->norm, &s->w, j->arena, &j->c->err);
    pare_arena_reset(j->arena, mark);
    return st;
}

/* A bound below the truth is wrong however close it is; the SVD is right to its rounding. */
static pare_status spectral_check(bench_job *j, double *error)
{
    const spectral *s = j->state;
    const double e = s->norm.v / s->largest - 1;
    *error = e >= -1e-12 ? fabs(e) : INFINITY;
    return PARE_OK;
}

const bench_kind bench_spectral = {spectral_input, NULL, NULL, spectral_run, spectral_check, NULL};
