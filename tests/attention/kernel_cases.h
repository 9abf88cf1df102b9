/* kernel_cases.h - heads of chosen data, and how far an f32 kernel may be from the f64 reference.
 *
 * Row i, visible keys j, n of them, T tiles at most, u = 2^-24, gamma_k = k u / (1 - k u). An
 * engine computes scores off by at most lambda = gamma_{dk+3} |scale| max_j sum_c |q_c k_jc|  +
 * what underflows, subtracts the largest (u times the range of the scores), takes e^x within 2 ulp
 * (4 u), and rescales at most T times (e^x and one product, 5 u each; the arguments of the steps
 * add up to the range). So each weight is its exact value times e^+-delta (and a factor common to
 * the row), delta = lambda + u min(range + 2 lambda, 105) + 5 u (T + 1), and a ratio of sums of
 * such terms, each sum off by gamma_{n+T+2}, obeys |y' - y| <= (e^(2 delta) (1 + gamma_{2n+2T+8}) -
 * 1) sum_j p_j |v_j|
 *                 + n (T + 2) 2^-126 (max|v| + 1),
 * the last term for weights and products below the smallest normal number: the largest weight is 1,
 * so the sum that divides them is at least 1. */
#ifndef KERNEL_CASES_H
#define KERNEL_CASES_H
#include <pare_test.h>
#include "linalg/matrix.h"
#include <pare/attention.h>

#define U32 0x1p-24
enum { GAP = 3 }; /* floats between two rows that belong to nobody */
#define CANARY 12345.5f

typedef struct head_case {
    size_t n, dk, dv;
    float scale;
    pare_mat32 q, k, v, y;
    pare_mat q64, k64, v64, y64;
} head_case;

typedef enum data_kind { RANDOM, PEAKED, CONSTANT, DENORMAL, DATA_KINDS } data_kind;

static inline pare_mat32 mat32_new(pare_arena *a, size_t rows, size_t cols)
{
    const pare_mat32 m = {rows, cols, cols + GAP,
                          pare_alloc(a, rows * (cols + GAP) + 1, sizeof(float))};
    assert_non_null(m.v);
    for (size_t i = 0; i < rows * m.ld; i++) m.v[i] = CANARY;
    return m;
}

static inline double datum(data_kind kind, pare_rng *r, double peak)
{
    switch (kind) {
    case PEAKED:
        return peak * pare_rng_normal(r);
    case CONSTANT:
        return 0.75;
    case DENORMAL:
        return 0x1p-130 * pare_rng_normal(r);
    case RANDOM:
    case DATA_KINDS:
        break;
    }
    return pare_rng_normal(r);
}

static inline void fill_mat(pare_mat32 *x, pare_mat *x64, data_kind kind, pare_rng *r, double peak)
{
    for (size_t i = 0; i < x->rows; i++)
        for (size_t c = 0; c < x->cols; c++) {
            x->v[i * x->ld + c] = (float)datum(kind, r, peak);
            pare_row_mut(x64, i)[c] = (double)x->v[i * x->ld + c];
        }
}

/* PEAKED: logits to about +-1e4. */
static inline head_case case_new(pare_arena *a, size_t n, size_t dk, size_t dv, data_kind kind,
                                 uint64_t seed)
{
    head_case h = {.n = n, .dk = dk, .dv = dv, .scale = (float)(1 / sqrt((double)dk))};
    pare_rng r = pare_rng_at(seed, 11);
    h.q = mat32_new(a, n, dk), h.k = mat32_new(a, n, dk);
    h.v = mat32_new(a, n, dv), h.y = mat32_new(a, n, dv);
    h.q64 = pare_mat_new(a, n, dk), h.k64 = pare_mat_new(a, n, dk);
    h.v64 = pare_mat_new(a, n, dv), h.y64 = pare_mat_new(a, n, dv);
    fill_mat(&h.q, &h.q64, kind, &r, 60);
    fill_mat(&h.k, &h.k64, kind, &r, 60);
    fill_mat(&h.v, &h.v64, kind == CONSTANT ? RANDOM : kind, &r, 1);
    return h;
}

static inline void reference(head_case *h, const pare_pattern *p, const pare_graph *g)
{
    pare_err err = {0};
    assert_ok(pare_attend_f64(&h->y64,
                              &(pare_attention_args){.q = &h->q64,
                                                     .k = &h->k64,
                                                     .v = &h->v64,
                                                     .scale = (double)h->scale,
                                                     .pattern = p,
                                                     .graph = g},
                              NULL, &err),
              &err);
}

/* What the bound of row i needs: weights p (capacity n) and the error of the scores. */
typedef struct row_facts {
    double lambda, range;
    size_t count;
} row_facts;

static inline row_facts row_weights(const head_case *h, const pare_keys *keys, size_t i, double *p)
{
    double row_max = -INFINITY, low = INFINITY, size = 0, sum = 0, big = 0;
    const double *const q = pare_row(&h->q64, i), scale = fabs((double)h->scale);
    for (size_t j = 0; j < keys->count; j++) {
        const double *const k = pare_row(&h->k64, pare_key(keys, j));
        double s = 0, a = 0;
        for (size_t c = 0; c < h->dk; c++) {
            s += q[c] * k[c], a += fabs(q[c] * k[c]);
            big = fmax(big, fmax(fabs(q[c]), fabs(k[c])));
        }
        p[j] = s * (double)h->scale;
        row_max = fmax(row_max, p[j]), low = fmin(low, p[j]), size = fmax(size, a * scale);
    }
    for (size_t j = 0; j < keys->count; j++) sum += p[j] = exp(p[j] - row_max);
    for (size_t j = 0; j < keys->count; j++) p[j] /= sum;
    const double g = (double)(h->dk + 3) * U32, under = (double)(h->dk + 2) * 0x1p-126;
    return (row_facts){g / (1 - g) * size + under * (1 + scale) * (1 + big), row_max - low,
                       keys->count};
}

/* The bound above for entry c, tiles of 64 keys that need not begin where the row does. */
static inline double entry_bound(const head_case *h, const pare_keys *keys, const row_facts *f,
                                 const double *p, size_t c)
{
    const double n = (double)f->count, tiles = floor(n / 64) + 4;
    const double range = fmin(f->range + 2 * f->lambda, 105);
    const double delta = f->lambda + U32 * range + 5 * U32 * (tiles + 1);
    const double k = (2 * n + 2 * tiles + 8) * U32, sums = k / (1 - k);
    double weighted = 0, most = 0;
    for (size_t j = 0; j < keys->count; j++) {
        const double v = fabs(pare_row(&h->v64, pare_key(keys, j))[c]);
        weighted += p[j] * v, most = fmax(most, v);
    }
    return expm1(2 * delta + log1p(sums)) * weighted + n * (tiles + 2) * 0x1p-126 * (most + 1);
}

/* Every entry of h->y is within its bound of h->y64; returns the largest part of a bound that was
 * used. What lies between the rows is untouched. */
static inline double check_bound(const head_case *h, const pare_pattern *pat, const pare_graph *g)
{
    double *const p = malloc(h->n * sizeof *p), used = 0;
    assert_non_null(p);
    for (size_t i = 0; i < h->n; i++) {
        const pare_keys keys = pare_visible(pat, g, h->n, i);
        const row_facts f = row_weights(h, &keys, i, p);
        for (size_t c = 0; c < h->dv; c++) {
            const double got = (double)h->y.v[i * h->y.ld + c], want = pare_row(&h->y64, i)[c];
            if (keys.count == 0) {
                assert_true(got == 0 && want == 0);
                continue;
            }
            const double bound = entry_bound(h, &keys, &f, p, c);
            if (!(fabs(got - want) <= bound))
                print_error("row %zu column %zu of n %zu dk %zu dv %zu\n", i, c, h->n, h->dk,
                            h->dv);
            assert_le(fabs(got - want), bound);
            used = fmax(used, fabs(got - want) / bound);
        }
        for (size_t c = h->dv; c < h->y.ld; c++) assert_true(h->y.v[i * h->y.ld + c] == CANARY);
    }
    free(p);
    return used;
}

/* Node i sees i+1, i+5, 7 i and, every eighth node, all the others; every tenth node sees
 * nobody. */
static inline pare_graph odd_graph(pare_arena *a, size_t n)
{
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, n * n + 1, sizeof *idx);
    assert_true(ptr && idx);
    for (size_t i = 0, at = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            if (i % 10 != 3 &&
                (i % 8 == 0 || j == (i + 1) % n || j == (i + 5) % n || j == i * 7 % n))
                idx[at++] = (uint32_t)j;
        ptr[i + 1] = at;
    }
    return (pare_graph){n, ptr, idx};
}

#endif
