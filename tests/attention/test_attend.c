/* Tests src/attention/attend_*.c against softmax written in long double. */
#include <pare_test.h>
#include <pare/attention.h>

enum { N = 70, DK = 5, DV = 3 }; /* N spans three blocks of rows */

typedef struct head {
    double q[N * DK], k[N * DK], v[N * DV], y[N * DV];
    float q32[N * DK], k32[N * DK], v32[N * DV], y32[N * DV];
} head;

static void fill(head *h, uint64_t seed, double size)
{
    pare_rng r = pare_rng_at(seed, 1);
    for (size_t i = 0; i < N * DK; i++) {
        h->q[i] = h->q32[i] = (float)(size * pare_rng_normal(&r));
        h->k[i] = h->k32[i] = (float)(size * pare_rng_normal(&r));
    }
    for (size_t i = 0; i < N * DV; i++) h->v[i] = h->v32[i] = (float)pare_rng_normal(&r);
}

static long double slow(const head *h, const pare_pattern *p, const pare_graph *g, double scale,
                        size_t i, size_t c)
{
    const pare_keys keys = pare_visible(p, g, N, i);
    long double row_max = -INFINITY, sum = 0, out = 0, s[N];
    for (size_t j = 0; j < keys.count; j++) {
        s[j] = 0;
        for (size_t d = 0; d < DK; d++)
            s[j] += (long double)h->q[i * DK + d] * h->k[pare_key(&keys, j) * DK + d];
        s[j] *= scale;
        if (s[j] > row_max) row_max = s[j];
    }
    for (size_t j = 0; j < keys.count; j++) sum += s[j] = expl(s[j] - row_max);
    for (size_t j = 0; j < keys.count; j++) out += s[j] / sum * h->v[pare_key(&keys, j) * DV + c];
    return out;
}

static void run(head *h, const pare_pattern *p, const pare_graph *g, double scale, int threads)
{
    pare_mat y = pare_mat_of(h->y, N, DV);
    const pare_mat q = pare_mat_of(h->q, N, DK), k = pare_mat_of(h->k, N, DK),
                   v = pare_mat_of(h->v, N, DV);
    pare_mat32 y32 = {N, DV, DV, h->y32};
    const pare_mat32 q32 = {N, DK, DK, h->q32}, k32 = {N, DK, DK, h->k32},
                     v32 = {N, DV, DV, h->v32};
    const pare_exec x = {.threads = threads};
    pare_err err = {0};
    assert_ok(
        pare_attend_f64(&y,
                        &(pare_attention_args){
                            .q = &q, .k = &k, .v = &v, .scale = scale, .pattern = p, .graph = g},
                        &x, &err),
        &err);
    assert_ok(pare_attend_f32(
                  &y32,
                  &(pare_attention_args32){
                      .q = &q32, .k = &k32, .v = &v32, .scale = scale, .pattern = p, .graph = g},
                  &x, &err),
              &err);
}

static void check(head *h, const pare_pattern *p, const pare_graph *g, double scale)
{
    run(h, p, g, scale, 1);
    for (size_t i = 0; i < N; i++)
        for (size_t c = 0; c < DV; c++) {
            const double want = (double)slow(h, p, g, scale, i, c);
            assert_near(h->y[i * DV + c], want, 1e-12);
            assert_near(h->y32[i * DV + c], want, 2e-4);
        }
}

/* Node i is joined to i+1, i+5 and i*7; every tenth node to nobody. */
static pare_graph odd_graph(pare_arena *a)
{
    size_t *const ptr = pare_alloc(a, N + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, N * N, sizeof *idx);
    size_t at = 0;
    for (size_t i = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++)
            if (i % 10 && (j == (i + 1) % N || j == (i + 5) % N || j == i * 7 % N))
                idx[at++] = (uint32_t)j;
        ptr[i + 1] = at;
    }
    return (pare_graph){N, ptr, idx};
}

static void every_pattern_gives_the_softmax_average(void **state)
{
    (void)state;
    static head h;
    pare_arena *const a = pare_arena_new();
    const pare_graph g = odd_graph(a);
    const double scale = 0.25; /* exact in both types */
    for (uint64_t seed = 1; seed < 4; seed++) {
        fill(&h, seed, seed == 3 ? 30 : 1); /* the last: one key takes all */
        check(&h, &(pare_pattern){.kind = PARE_FULL}, NULL, scale);
        check(&h, &(pare_pattern){.kind = PARE_CAUSAL}, NULL, scale);
        check(&h, &(pare_pattern){.kind = PARE_WINDOW, .window = 4, .sinks = 2}, NULL, scale);
        check(&h, &(pare_pattern){.kind = PARE_GRAPH}, &g, scale);
    }
    pare_arena_free(a);
}

static void a_row_without_keys_is_zero(void **state)
{
    (void)state;
    static head h;
    pare_arena *const a = pare_arena_new();
    const pare_graph g = odd_graph(a);
    fill(&h, 9, 1);
    memset(h.y, 0xff, sizeof h.y);
    memset(h.y32, 0xff, sizeof h.y32);
    run(&h, &(pare_pattern){.kind = PARE_GRAPH}, &g, 1, 1);
    for (size_t c = 0; c < DV; c++)
        assert_true(h.y[20 * DV + c] == 0 && h.y32[20 * DV + c] == 0 && h.y[21 * DV + c] != 0);
    pare_arena_free(a);
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    static head one, more;
    const pare_pattern patterns[] = {
        {.kind = PARE_FULL}, {.kind = PARE_CAUSAL}, {.kind = PARE_WINDOW, .window = 3, .sinks = 1}};
    for (size_t p = 0; p < 3; p++) {
        fill(&one, 3, 1);
        fill(&more, 3, 1);
        run(&one, &patterns[p], NULL, 0.3, 1);
        run(&more, &patterns[p], NULL, 0.3, 3);
        assert_memory_equal(one.y, more.y, sizeof one.y);
        assert_memory_equal(one.y32, more.y32, sizeof one.y32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_gives_the_softmax_average),
        cmocka_unit_test(a_row_without_keys_is_zero),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
