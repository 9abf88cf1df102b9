/* Tests src/attention/{attend_f32,attend_f64,tiled_backward}.c: f64 against softmax differentiated
 * by hand with whole n x n matrices and against central differences; every f32 variant against f64
 * within a bound.
 *
 * The bound, per row i with kernel_cases.h's lambda and u = 2^-24: a weight is off by a factor
 * e^+-E, E = 2 lambda + u (|lse| + range) + gamma(2 n + 40); y, and so mean = dy.y, by as much of
 * their absolute sums; a gradient p (t - mean) by E |p (t - mean)| + p times the errors of t and
 * mean. Sums over rows or keys add gamma(n + 70) of their absolute values, and products below
 * 2^-126 vanish. */
#include "kernel_cases.h"
#include "attention/attend_f32.h"

static const pare_pattern PATTERNS[] = {
    {.kind = PARE_FULL},
    {.kind = PARE_CAUSAL},
    {.kind = PARE_GRAPH},
    {.kind = PARE_WINDOW, .window = 1},
    {.kind = PARE_WINDOW, .window = 3, .sinks = 1},
    {.kind = PARE_WINDOW, .window = 23, .sinks = 5},
    {.kind = PARE_WINDOW, .window = 2, .sinks = 30},
    {.kind = PARE_WINDOW, .window = 24, .sinks = 66},
    {.kind = PARE_WINDOW, .window = 65, .sinks = 3},
    {.kind = PARE_WINDOW, .window = 100},
    {.kind = PARE_WINDOW, .window = SIZE_MAX, .sinks = 2},
};
enum { NPATTERNS = sizeof PATTERNS / sizeof *PATTERNS };

typedef struct back_case {
    head_case h;
    pare_mat32 dy, dq, dk, dv, dq0, dk0, dv0; /* 0: what was there before */
    float *lse;
    pare_mat dy64, dq64, dk64, dv64, bq, bk, bv; /* b: bounds of the errors of f32 */
    double *lse64, *p, *t, *slack; /* n; n x n: weights, gradients of scores, their errors */
    double *e;                     /* n: E of a row */
    pare_graph g;
    pare_transposed_graph transpose;
} back_case;

/* The graph transpose, which is compared with plain loops. */
static pare_transposed_graph transpose_of(pare_arena *a, const pare_graph *g, size_t width)
{
    size_t *const ptr = pare_alloc(a, g->n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, g->ptr[g->n] + 1, sizeof *idx);
    uint32_t *const edge = pare_alloc(a, g->ptr[g->n] + 1, sizeof *edge);
    assert_true(ptr && idx && edge);
    for (size_t j = 0, at = 0; j < g->n; j++) {
        for (size_t i = 0; i < g->n; i++)
            for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
                if (g->idx[e] == j) idx[at] = (uint32_t)i, edge[at++] = (uint32_t)e;
        ptr[j + 1] = at;
    }
    pare_transposed_graph t;
    pare_err err = {0};
    assert_ok(pare_graph_transpose(&t, a, g, width, &err), &err);
    assert_memory_equal(t.by_key.ptr, ptr, (g->n + 1) * sizeof *ptr);
    assert_memory_equal(t.by_key.idx, idx, g->ptr[g->n] * sizeof *idx);
    assert_memory_equal(t.edge, edge, g->ptr[g->n] * sizeof *edge);
    return t;
}

static void fill_pair(pare_arena *a, pare_mat32 *x, pare_mat *x64, size_t n, size_t c, pare_rng *r,
                      double size)
{
    *x = mat32_new(a, n, c), *x64 = pare_mat_new(a, n, c);
    fill_mat(x, x64, PEAKED, r, size);
}

static back_case back_new(pare_arena *a, size_t n, size_t dk, size_t dv, data_kind kind,
                          uint64_t seed)
{
    back_case b = {.h = case_new(a, n, dk, dv, kind, seed)};
    pare_rng r = pare_rng_at(seed, 12);
    fill_pair(a, &b.dy, &b.dy64, n, dv, &r, kind == DENORMAL ? 0x1p-130 : 1);
    fill_pair(a, &b.dq0, &b.dq64, n, dk, &r, 1);
    fill_pair(a, &b.dk0, &b.dk64, n, dk, &r, 1);
    fill_pair(a, &b.dv0, &b.dv64, n, dv, &r, 1);
    b.dq = mat32_new(a, n, dk), b.dk = mat32_new(a, n, dk), b.dv = mat32_new(a, n, dv);
    b.bq = pare_mat_new(a, n, dk), b.bk = pare_mat_new(a, n, dk), b.bv = pare_mat_new(a, n, dv);
    b.lse = pare_alloc(a, n + 1, sizeof *b.lse);
    b.lse64 = pare_alloc(a, n + 1, sizeof *b.lse64);
    b.e = pare_alloc(a, n + 1, sizeof *b.e);
    b.p = pare_alloc(a, n * n + 1, sizeof *b.p), b.t = pare_alloc(a, n * n + 1, sizeof *b.t);
    b.slack = pare_alloc(a, n * n + 1, sizeof *b.slack);
    assert_true(b.lse && b.lse64 && b.e && b.p && b.t && b.slack);
    b.g = odd_graph(a, n);
    b.transpose = transpose_of(a, &b.g, b.h.dk + b.h.dv);
    return b;
}

static double dot64(const double *x, const double *y, size_t n, bool absolute)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += absolute ? fabs(x[i] * y[i]) : x[i] * y[i];
    return s;
}

static double gamma32(double k)
{
    return k * U32 / (1 - k * U32);
}

/* Row i of p, t, slack, and its lse; rows of the n x n matrices are queries. */
static void slow_row(back_case *b, const pare_pattern *pat, const pare_graph *g, size_t i)
{
    const head_case *const h = &b->h;
    const size_t n = h->n, dv = h->dv;
    const pare_keys keys = pare_visible(pat, g, n, i);
    double *const w = malloc((n + 1) * sizeof *w), *const dy = pare_row_mut(&b->dy64, i);
    assert_non_null(w);
    const row_facts f = row_weights(h, &keys, i, w);
    double mean = 0, size = 0, row_max = -INFINITY, sum = 0;
    for (size_t a = 0; a < keys.count; a++) {
        const size_t j = pare_key(&keys, a);
        const double s =
            (double)h->scale * dot64(pare_row(&h->q64, i), pare_row(&h->k64, j), h->dk, false);
        row_max = fmax(row_max, s);
        mean += w[a] * dot64(dy, pare_row(&h->v64, j), dv, false);
        size += w[a] * dot64(dy, pare_row(&h->v64, j), dv, true);
    }
    for (size_t a = 0; a < keys.count; a++) {
        const size_t j = pare_key(&keys, a);
        const double *const q = pare_row(&h->q64, i), *const k = pare_row(&h->k64, j);
        sum += exp((double)h->scale * dot64(q, k, h->dk, false) - row_max);
    }
    b->lse64[i] = keys.count ? row_max + log(sum) : -INFINITY;
    const double e = keys.count == 0
                         ? 0
                         : expm1(2 * f.lambda + U32 * (2 * fabs(b->lse64[i]) + f.range) +
                                 gamma32(2 * (double)n + 40));
    b->e[i] = e;
    for (size_t j = 0; j < n; j++) b->p[i * n + j] = b->t[i * n + j] = b->slack[i * n + j] = 0;
    for (size_t a = 0; a < keys.count; a++) {
        const size_t j = pare_key(&keys, a), at = i * n + j;
        const double *const v = pare_row(&h->v64, j);
        const double t = dot64(dy, v, dv, false), big = dot64(dy, v, dv, true);
        const double under = (double)(n + dv) * 0x1p-124;
        b->p[at] = w[a];
        b->t[at] = w[a] * (t - mean);
        b->slack[at] = e * fabs(b->t[at]) +
                       (1 + e) * (w[a] + 0x1p-126) *
                           ((4 * e + gamma32((double)dv + 5)) * (size + big) + under) +
                       under;
    }
    free(w);
}

/* to[at][c] += by x[c] and bound[at][c] += slack |x[c]|. */
static void add_row(pare_mat *to, pare_mat *bound, size_t at, double by, double slack,
                    const double *x)
{
    for (size_t c = 0; c < to->cols; c++) {
        pare_row_mut(to, at)[c] += by * x[c];
        pare_row_mut(bound, at)[c] += slack * (fabs(x[c]) + 0x1p-120);
    }
}

/* The gradients by whole matrices into d?64, which hold what was there; bounds beside them. */
static void slow(back_case *b, const pare_pattern *pat, const pare_graph *g)
{
    const head_case *const h = &b->h;
    const size_t n = h->n;
    const double s = (double)h->scale, many = gamma32((double)n + 70);
    for (size_t i = 0; i < n; i++) slow_row(b, pat, g, i);
    pare_mat *const all[][2] = {{&b->dq64, &b->bq}, {&b->dk64, &b->bk}, {&b->dv64, &b->bv}};
    const pare_mat32 *const before[] = {&b->dq0, &b->dk0, &b->dv0};
    for (size_t m = 0; m < 3; m++)
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < all[m][0]->cols; c++) {
                const double x = (double)before[m]->v[i * before[m]->ld + c];
                pare_row_mut(all[m][0], i)[c] = x;
                pare_row_mut(all[m][1], i)[c] = 4 * U32 * fabs(x) + 0x1p-120;
            }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            const double p = b->p[i * n + j], t = s * b->t[i * n + j];
            const double st = fabs(s) * b->slack[i * n + j] + many * fabs(t) * 2;
            const double sp = p * (b->e[i] + many) + 0x1p-126 * (double)(p > 0);
            add_row(&b->dq64, &b->bq, i, t, st, pare_row(&h->k64, j));
            add_row(&b->dk64, &b->bk, j, t, st, pare_row(&h->q64, i));
            add_row(&b->dv64, &b->bv, j, p, sp, pare_row(&b->dy64, i));
        }
}

static void copy32(pare_mat32 *to, const pare_mat32 *from)
{
    memcpy(to->v, from->v, from->rows * from->ld * sizeof *to->v);
}

static void run32(const attend_kernels *k, back_case *b, const pare_pattern *p, int threads)
{
    const pare_exec x = {.threads = threads};
    const bool graph = p->kind == PARE_GRAPH;
    head_case *const h = &b->h;
    pare_err err = {0};
    copy32(&b->dq, &b->dq0), copy32(&b->dk, &b->dk0), copy32(&b->dv, &b->dv0);
    const pare_saved32 saved = {.lse = b->lse};
    assert_ok(attend_save_f32_with(k, &h->y, &saved, &h->q, &h->k, &h->v, h->scale, p,
                                   graph ? &b->g : NULL, graph ? &b->transpose : NULL, &x, &err),
              &err);
    assert_ok(attend_backward_f32_with(k, &b->dq, &b->dk, &b->dv, &b->dy, &h->q, &h->k, &h->v,
                                       &h->y, &saved, h->scale, p, graph ? &b->g : NULL,
                                       graph ? &b->transpose : NULL, &x, &err),
              &err);
}

/* Returns the largest part of a bound that was used; what lies between the rows is untouched. */
static double within(const char *what, const pare_mat32 *got, const pare_mat *want,
                     const pare_mat *bound)
{
    double used = 0;
    for (size_t i = 0; i < got->rows; i++) {
        for (size_t c = 0; c < got->cols; c++) {
            const double d = fabs((double)got->v[i * got->ld + c] - pare_row(want, i)[c]);
            if (!(d <= pare_row(bound, i)[c])) print_error("%s, row %zu, column %zu\n", what, i, c);
            assert_le(d, pare_row(bound, i)[c]);
            used = fmax(used, d / pare_row(bound, i)[c]);
        }
        for (size_t c = got->cols; c < got->ld; c++) assert_true(got->v[i * got->ld + c] == CANARY);
    }
    return used;
}

static double check32(back_case *b)
{
    for (size_t i = 0; i < b->h.n; i++) {
        const double off = fabs(log1p(b->e[i])) + U32 * fabs(b->lse64[i]);
        if (isinf(b->lse64[i]))
            assert_true(isinf(b->lse[i]) && b->lse[i] < 0);
        else
            assert_near((double)b->lse[i], b->lse64[i], off);
    }
    return fmax(
        within("dq", &b->dq, &b->dq64, &b->bq),
        fmax(within("dk", &b->dk, &b->dk64, &b->bk), within("dv", &b->dv, &b->dv64, &b->bv)));
}

static void near64(const pare_mat *got, const pare_mat *want, double peak)
{
    for (size_t i = 0; i < got->rows; i++)
        for (size_t c = 0; c < got->cols; c++) {
            const double x = pare_row(want, i)[c];
            assert_near(pare_row(got, i)[c], x, peak * (1 + fabs(x)));
        }
}

static pare_mat widened(pare_arena *a, const pare_mat32 *x)
{
    const pare_mat m = pare_mat_new(a, x->rows, x->cols);
    for (size_t i = 0; i < x->rows; i++)
        for (size_t c = 0; c < x->cols; c++) m.v[i * m.ld + c] = (double)x->v[i * x->ld + c];
    return m;
}

/* pare_attend_saving_f64 and _backward_f64 against the matrices; `tol` relative. */
static void check64(pare_arena *a, back_case *b, const pare_pattern *p, const pare_graph *g,
                    double tol)
{
    head_case *const h = &b->h;
    const pare_exec two = {.threads = 2};
    pare_err err = {0};
    pare_mat y = pare_mat_new(a, h->n, h->dv);
    pare_mat dq = widened(a, &b->dq0), dk = widened(a, &b->dk0), dv = widened(a, &b->dv0);
    double *const lse = pare_alloc(a, h->n + 1, sizeof *lse);
    reference(h, p, g);
    assert_ok(pare_attend_saving_f64(&y, lse, &h->q64, &h->k64, &h->v64, (double)h->scale, p, g,
                                     &two, &err),
              &err);
    near64(&y, &h->y64, tol);
    for (size_t i = 0; i < h->n; i++)
        assert_near(lse[i], b->lse64[i], tol * (1 + fabs(b->lse64[i])));
    assert_ok(pare_attend_backward_f64(&dq, &dk, &dv, &b->dy64, &h->q64, &h->k64, &h->v64, &y, lse,
                                       (double)h->scale, p, g, g ? &b->transpose : NULL, &two,
                                       &err),
              &err);
    near64(&dq, &b->dq64, tol);
    near64(&dk, &b->dk64, tol);
    near64(&dv, &b->dv64, tol);
}

static double check_shape(size_t n, size_t dk, size_t dv, data_kind kind, uint64_t seed)
{
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels);
    pare_arena *const a = pare_arena_new();
    back_case b = back_new(a, n, dk, dv, kind, seed);
    double used = 0;
    for (size_t p = 0; p < NPATTERNS; p++) {
        const pare_graph *const g = PATTERNS[p].kind == PARE_GRAPH ? &b.g : NULL;
        slow(&b, &PATTERNS[p], g);
        check64(a, &b, &PATTERNS[p], g, kind == PEAKED ? 1e-8 : 1e-11);
        for (size_t v = 0; v < variants; v++) {
            run32(&kernels[v], &b, &PATTERNS[p], 1);
            used = fmax(used, check32(&b));
        }
    }
    pare_arena_free(a);
    return used;
}

static void every_variant_is_within_its_bound(void **state)
{
    (void)state;
    const size_t tokens[] = {1, 2, 63, 64, 65, 150};
    double used = 0;
    for (size_t t = 0; t < 6; t++)
        for (data_kind kind = RANDOM; kind < DATA_KINDS; kind++) {
            used = fmax(used, check_shape(tokens[t], 8, 8, kind, 1 + t));
            used = fmax(used, check_shape(tokens[t], 5, 3, kind, 11 + t));
        }
    print_message("at most %.3f of a bound is used\n", used);
}

static void every_width_of_a_head_is_served(void **state)
{
    (void)state;
    const size_t widths[][2] = {{1, 1}, {2, 7}, {15, 17}, {33, 1}, {64, 64}, {1, 130}, {70, 65}};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        check_shape(70, widths[w][0], widths[w][1], RANDOM, 31 + w);
}

/* A bound that is never nearly met would hide errors. */
static void the_bound_is_not_needlessly_large(void **state)
{
    (void)state;
    assert_le(0.01, check_shape(8, 1, 1, RANDOM, 5));
}

/* ---- central differences: shares nothing with the formulas above ----------------------------- */

/* sum_i dy_i.y_i of pare_attend_f64. */
static double loss(back_case *b, const pare_pattern *p, const pare_graph *g)
{
    double s = 0;
    reference(&b->h, p, g);
    for (size_t i = 0; i < b->h.n; i++)
        s += dot64(pare_row(&b->dy64, i), pare_row(&b->h.y64, i), b->h.dv, false);
    return s;
}

static void check_differences(back_case *b, pare_mat *x, const pare_mat *got, const pare_pattern *p,
                              const pare_graph *g)
{
    for (size_t i = 0; i < x->rows; i++)
        for (size_t c = 0; c < x->cols; c++) {
            double *const at = pare_row_mut(x, i) + c, was = *at, step = 1e-5;
            *at = was + step;
            const double up = loss(b, p, g);
            *at = was - step;
            const double down = loss(b, p, g);
            *at = was;
            assert_near(pare_row(got, i)[c], (up - down) / (2 * step), 1e-7);
        }
}

static void gradients_are_the_differences_of_the_forward_pass(void **state)
{
    (void)state;
    enum { N = 13 };
    pare_arena *const a = pare_arena_new();
    back_case b = back_new(a, N, 3, 2, RANDOM, 7);
    head_case *const h = &b.h;
    pare_err err = {0};
    double lse[N];
    for (size_t p = 0; p < NPATTERNS; p++) {
        const bool graph = PATTERNS[p].kind == PARE_GRAPH;
        const pare_graph *const g = graph ? &b.g : NULL;
        pare_mat dq = pare_mat_new(a, N, 3), dk = pare_mat_new(a, N, 3), dv = pare_mat_new(a, N, 2);
        assert_ok(pare_attend_saving_f64(&h->y64, lse, &h->q64, &h->k64, &h->v64, (double)h->scale,
                                         &PATTERNS[p], g, NULL, &err),
                  &err);
        assert_ok(pare_attend_backward_f64(&dq, &dk, &dv, &b.dy64, &h->q64, &h->k64, &h->v64,
                                           &h->y64, lse, (double)h->scale, &PATTERNS[p], g,
                                           graph ? &b.transpose : NULL, NULL, &err),
                  &err);
        check_differences(&b, &h->q64, &dq, &PATTERNS[p], g);
        check_differences(&b, &h->k64, &dk, &PATTERNS[p], g);
        check_differences(&b, &h->v64, &dv, &PATTERNS[p], g);
    }
    pare_arena_free(a);
}

/* ---- threads, groups, edges ------------------------------------------------------------------ */

/* 700 tokens: two groups of key tiles; 1300: five. */
static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels), tokens[] = {65, 700, 1300};
    for (size_t t = 0; t < 3; t++) {
        pare_arena *const a = pare_arena_new();
        back_case b = back_new(a, tokens[t], 9, 7, RANDOM, 3);
        const size_t nq = b.dq.rows * b.dq.ld, nv = b.dv.rows * b.dv.ld;
        pare_mat32 q = mat32_new(a, tokens[t], 9), k = mat32_new(a, tokens[t], 9);
        pare_mat32 v = mat32_new(a, tokens[t], 7);
        for (size_t p = 0; p < NPATTERNS; p++)
            for (size_t i = 0; i < variants; i++) {
                run32(&kernels[i], &b, &PATTERNS[p], 1);
                copy32(&q, &b.dq), copy32(&k, &b.dk), copy32(&v, &b.dv);
                for (int threads = 2; threads <= 3; threads++) {
                    run32(&kernels[i], &b, &PATTERNS[p], threads);
                    assert_memory_equal(q.v, b.dq.v, nq * sizeof(float));
                    assert_memory_equal(k.v, b.dk.v, nq * sizeof(float));
                    assert_memory_equal(v.v, b.dv.v, nv * sizeof(float));
                }
            }
        pare_arena_free(a);
    }
}

static void long_inputs_are_the_sum_of_their_groups(void **state)
{
    (void)state;
    check_shape(700, 4, 3, RANDOM, 9);
}

static void no_tokens_are_no_work(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    back_case b = back_new(a, 0, 3, 2, RANDOM, 1);
    attend_kernels kernels[3];
    attention_kernels(kernels);
    run32(&kernels[0], &b, &PATTERNS[0], 2);
    pare_arena_free(a);
}

static void the_best_variant_is_the_one_that_is_used(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    attention_kernels(kernels);
    pare_arena *const a = pare_arena_new();
    back_case b = back_new(a, 70, 9, 9, RANDOM, 2), same = back_new(a, 70, 9, 9, RANDOM, 2);
    head_case *const h = &same.h;
    run32(&kernels[0], &b, &PATTERNS[1], 1);
    const pare_saved32 saved = {.lse = same.lse};
    assert_int_equal(pare_attend_saving_f32(&h->y, &saved, &h->q, &h->k, &h->v, h->scale,
                                            &PATTERNS[1], NULL, NULL, NULL, NULL),
                     PARE_OK);
    assert_int_equal(pare_attend_backward_f32(&same.dq0, &same.dk0, &same.dv0, &same.dy, &h->q,
                                              &h->k, &h->v, &h->y, &saved, h->scale, &PATTERNS[1],
                                              NULL, NULL, NULL, NULL),
                     PARE_OK);
    assert_memory_equal(b.lse, same.lse, 70 * sizeof(float));
    assert_memory_equal(b.dq.v, same.dq0.v, 70 * b.dq.ld * sizeof(float));
    assert_memory_equal(b.dv.v, same.dv0.v, 70 * b.dv.ld * sizeof(float));
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_is_within_its_bound),
        cmocka_unit_test(every_width_of_a_head_is_served),
        cmocka_unit_test(the_bound_is_not_needlessly_large),
        cmocka_unit_test(gradients_are_the_differences_of_the_forward_pass),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(long_inputs_are_the_sum_of_their_groups),
        cmocka_unit_test(no_tokens_are_no_work),
        cmocka_unit_test(the_best_variant_is_the_one_that_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
