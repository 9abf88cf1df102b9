/* Tests src/attention/{mean,attend_equal_queries}.c: against sums in long double over what each row
 * sees. */
#include "pare_test.h"
#include "attention/attend.h"
#include <math.h>

enum { MOST = 700 };

typedef struct world {
    pare_graph g;
    size_t ptr[MOST + 1];
    uint32_t idx[MOST * 40];
    float x[MOST * 70], k[MOST * 20], q[MOST * 20], y[MOST * 70], again[MOST * 70];
    double w[MOST];
} world;

static world W;

static void fill(float *v, size_t n, double size, pare_rng *r)
{
    for (size_t i = 0; i < n; i++) v[i] = (float)(size * pare_rng_normal(r));
}

/* Rows without neighbors, rows with many. */
static void make_graph(size_t n, pare_rng *r)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        W.ptr[i] = at;
        const size_t count = i % 5 == 0 ? 0 : pare_rng_below(r, i % 7 == 0 ? 39 : 5) + 1;
        for (size_t e = 0; e < count; e++) W.idx[at++] = (uint32_t)pare_rng_below(r, n);
    }
    W.ptr[n] = at;
    W.g = (pare_graph){n, W.ptr, W.idx};
}

static double expected(const pare_pattern *p, size_t n, size_t d, const double *w, size_t i,
                       size_t c)
{
    const pare_keys keys = pare_visible(p, &W.g, n, i);
    long double sum = 0, by = 0;
    for (size_t e = 0; e < keys.count; e++) {
        const size_t j = pare_key(&keys, e);
        sum += (long double)(w ? w[j] : 1) * (long double)W.x[j * d + c];
        by += w ? w[j] : 1;
    }
    return keys.count ? (double)(sum / by) : 0;
}

static void check(const pare_pattern *p, size_t n, size_t d, const double *w)
{
    const pare_exec two = {.threads = 2};
    pare_mat32 y = {n, d, d, W.y}, z = {n, d, d, W.again};
    const pare_mat32 x = {n, d, d, W.x};
    assert_ok(pare_mean_f32(&y, &x, w, p, &W.g, NULL, NULL), NULL);
    assert_ok(pare_mean_f32(&z, &x, w, p, &W.g, &two, NULL), NULL);
    assert_memory_equal(W.y, W.again, n * d * sizeof *W.y);
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < d; c++) {
            const double want = expected(p, n, d, w, i, c);
            if (fabs(W.y[i * d + c] - want) > 4e-6)
                fail_msg("%s of %zu, window %zu, sinks %zu, row %zu: %.9g, not %.9g",
                         p->kind == PARE_GRAPH ? "graph" : "ranges", n, p->window, p->sinks, i,
                         (double)W.y[i * d + c], want);
        }
}

static const pare_pattern PATTERNS[] = {
    {.kind = PARE_FULL},
    {.kind = PARE_CAUSAL},
    {.kind = PARE_WINDOW, .window = 1},
    {.kind = PARE_WINDOW, .window = 3, .sinks = 2},
    {.kind = PARE_WINDOW, .window = 7, .sinks = 30},
    {.kind = PARE_WINDOW, .window = 300, .sinks = 1},
    {.kind = PARE_WINDOW, .window = 5000, .sinks = 5000},
    {.kind = PARE_GRAPH},
};
enum { NPATTERNS = sizeof PATTERNS / sizeof *PATTERNS };

static void means_are_those_of_what_a_row_sees(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 3, 17, 255, 256, 257, 700}, widths[] = {1, 5, 16, 70};
    pare_rng r = pare_rng_at(5, 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < NPATTERNS; p++) {
            const size_t n = sizes[s], d = widths[(s + p) % 4];
            make_graph(n, &r);
            fill(W.x, n * d, 1, &r);
            check(&PATTERNS[p], n, d, NULL);
            for (size_t j = 0; j < n; j++)
                W.w[j] = exp(pare_rng_uniform(&r) * (PATTERNS[p].kind == PARE_GRAPH ? 20 : 600));
            check(&PATTERNS[p], n, d, W.w);
        }
}

/* Attention itself is the other way to say it. */
static void one_query_for_all_is_attention(void **state)
{
    (void)state;
    enum { N = 300, DK = 9, DV = 12 };
    static const double sizes[] = {0, .1, 1, 5, 60};
    pare_rng r = pare_rng_at(6, 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < NPATTERNS; p++) {
            make_graph(N, &r);
            fill(W.x, N * DV, 1, &r);
            fill(W.k, N * DK, sizes[s], &r);
            fill(W.q, DK, 1, &r);
            for (size_t i = 1; i < N; i++) memcpy(W.q + i * DK, W.q, DK * sizeof *W.q);
            const pare_mat32 q = {N, DK, DK, W.q}, k = {N, DK, DK, W.k}, v = {N, DV, DV, W.x};
            pare_mat32 y = {N, DV, DV, W.y}, z = {N, DV, DV, W.again};
            const pare_graph *const g = PATTERNS[p].kind == PARE_GRAPH ? &W.g : NULL;
            assert_ok(pare_attend_same_f32(&y,
                                           &(pare_attention_args32){.q = &q,
                                                                    .k = &k,
                                                                    .v = &v,
                                                                    .scale = .5f,
                                                                    .pattern = &PATTERNS[p],
                                                                    .graph = g},
                                           NULL, NULL),
                      NULL);
            assert_ok(pare_attend_f32(&z,
                                      &(pare_attention_args32){.q = &q,
                                                               .k = &k,
                                                               .v = &v,
                                                               .scale = .5f,
                                                               .pattern = &PATTERNS[p],
                                                               .graph = g},
                                      NULL, NULL),
                      NULL);
            for (size_t i = 0; i < N * DV; i++)
                if (fabsf(W.y[i] - W.again[i]) > 1e-6f * (float)(8 + 40 * sizes[s]))
                    fail_msg("pattern %zu, keys of size %g: %.9g and %.9g, seed 6", p, sizes[s],
                             (double)W.y[i], (double)W.again[i]);
        }
}

/* A key that only late rows see must not blot out the early ones. */
static void early_rows_survive_a_large_key(void **state)
{
    (void)state;
    const pare_pattern causal = {.kind = PARE_CAUSAL};
    for (double high = 0; high <= 2000; high += 250) {
        float kv[] = {0, 1, (float)high}, qv[] = {1, 1, 1}, xv[] = {3, 5, 7}, yv[3];
        const pare_mat32 q = {3, 1, 1, qv}, k = {3, 1, 1, kv}, v = {3, 1, 1, xv};
        pare_mat32 y = {3, 1, 1, yv};
        assert_ok(
            pare_attend_same_f32(
                &y,
                &(pare_attention_args32){.q = &q, .k = &k, .v = &v, .scale = 1, .pattern = &causal},
                NULL, NULL),
            NULL);
        assert_near(yv[0], 3, 0);
        assert_near(yv[1], (3 + 5 * exp(1)) / (1 + exp(1)), 1e-6);
        if (high > 0) assert_near(yv[2], 7, 1e-6);
    }
}

/* Weights of a list are up to e^20: a value of 1e33 would not survive them. */
static void large_values_of_a_graph_stay_finite(void **state)
{
    (void)state;
    const pare_pattern graph = {.kind = PARE_GRAPH};
    size_t ptr[] = {0, 2, 4};
    uint32_t idx[] = {0, 1, 0, 1};
    const pare_graph g = {2, ptr, idx};
    float kv[] = {0, 19}, qv[] = {1, 1}, xv[] = {1e33f, 2e33f}, yv[2];
    const pare_mat32 q = {2, 1, 1, qv}, k = {2, 1, 1, kv}, v = {2, 1, 1, xv};
    pare_mat32 y = {2, 1, 1, yv};
    assert_ok(pare_attend_same_f32(
                  &y,
                  &(pare_attention_args32){
                      .q = &q, .k = &k, .v = &v, .scale = 1, .pattern = &graph, .graph = &g},
                  NULL, NULL),
              NULL);
    assert_near(yv[0] / 2e33f, 1, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_are_those_of_what_a_row_sees),
        cmocka_unit_test(one_query_for_all_is_attention),
        cmocka_unit_test(early_rows_survive_a_large_key),
        cmocka_unit_test(large_values_of_a_graph_stay_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
