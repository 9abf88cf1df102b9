/* Tests src/attention/{attend_f32,tiled,tile,sparse}.c: every variant this CPU can run, against the
 * f64 reference and the bound that kernel_cases.h derives. */
#include "kernel_cases.h"
#include "attention/attend_f32.h"
#include <sys/mman.h>
#include <unistd.h>

static const pare_pattern PATTERNS[] = {
    {.kind = PARE_FULL},
    {.kind = PARE_CAUSAL},
    {.kind = PARE_GRAPH},
    {.kind = PARE_WINDOW, .window = 1},
    {.kind = PARE_WINDOW, .window = 3, .sinks = 1},
    {.kind = PARE_WINDOW, .window = 23, .sinks = 5},
    {.kind = PARE_WINDOW, .window = 24},
    {.kind = PARE_WINDOW, .window = 2, .sinks = 30},
    {.kind = PARE_WINDOW, .window = 24, .sinks = 66},
    {.kind = PARE_WINDOW, .window = 64, .sinks = 64},
    {.kind = PARE_WINDOW, .window = 65, .sinks = 3},
    {.kind = PARE_WINDOW, .window = 100, .sinks = 70},
    {.kind = PARE_WINDOW, .window = SIZE_MAX, .sinks = 2},
};
enum { NPATTERNS = sizeof PATTERNS / sizeof *PATTERNS };

static void run(const attend_kernels *k, head_case *h, const pare_pattern *p, const pare_graph *g,
                int threads)
{
    const pare_exec x = {.threads = threads};
    pare_err err = {0};
    assert_ok(attend_f32_with(k, &h->y, &h->q, &h->k, &h->v, h->scale, p,
                              p->kind == PARE_GRAPH ? g : NULL, &x, &err),
              &err);
}

/* All variants and patterns for one shape and kind of data; returns the largest used part. */
static double check_shape(size_t n, size_t dk, size_t dv, data_kind kind, uint64_t seed)
{
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels);
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, n, dk, dv, kind, seed);
    const pare_graph g = odd_graph(a, n);
    double used = 0;
    for (size_t p = 0; p < NPATTERNS; p++) {
        const pare_graph *const graph = PATTERNS[p].kind == PARE_GRAPH ? &g : NULL;
        reference(&h, &PATTERNS[p], graph);
        for (size_t i = 0; i < variants; i++) {
            for (size_t r = 0; r < n; r++)
                for (size_t c = 0; c < dv; c++) h.y.v[r * h.y.ld + c] = NAN;
            run(&kernels[i], &h, &PATTERNS[p], &g, 1);
            used = fmax(used, check_bound(&h, &PATTERNS[p], graph));
        }
    }
    pare_arena_free(a);
    return used;
}

static void every_variant_is_within_its_rounding_bound(void **state)
{
    (void)state;
    const size_t tokens[] = {1, 2, 63, 64, 65, 200};
    double used = 0;
    for (size_t t = 0; t < 6; t++)
        for (data_kind kind = RANDOM; kind < DATA_KINDS; kind++) {
            used = fmax(used, check_shape(tokens[t], 16, 16, kind, 1 + t));
            used = fmax(used, check_shape(tokens[t], 5, 3, kind, 11 + t));
        }
    print_message("at most %.3f of a bound is used\n", used);
}

static void every_width_of_a_head_is_served(void **state)
{
    (void)state;
    const size_t widths[][2] = {{1, 1},   {2, 7},   {8, 64},  {15, 17},  {33, 1},
                                {64, 64}, {1, 130}, {70, 65}, {256, 81}, {300, 4}};
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        check_shape(77, widths[w][0], widths[w][1], RANDOM, 31 + w);
}

/* Row i sees 0 to 10 keys, in all combinations of two rows that follow one another. */
static pare_graph small_rows(pare_arena *a, size_t n)
{
    enum { MOST = 10 };
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, n * MOST, sizeof *idx);
    assert_true(ptr && idx && n > 2 * MOST);
    for (size_t i = 0, at = 0; i < n; i++) {
        const size_t keys = i % 2 ? i / 2 % (MOST + 1) : i / 2 / (MOST + 1) % (MOST + 1);
        const size_t first = i * 7 % (n - 2 * MOST);
        for (size_t j = 0; j < keys; j++) idx[at++] = (uint32_t)(first + 2 * j);
        ptr[i + 1] = at;
    }
    return (pare_graph){n, ptr, idx};
}

static void check_sums(const head_case *h, const pare_graph *g, const float *lse)
{
    for (size_t i = 0; i < h->n; i++) {
        double row_max = -INFINITY, sum = 0;
        for (int pass = 0; pass < 2; pass++)
            for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
                double s = 0;
                for (size_t c = 0; c < h->dk; c++)
                    s += pare_row(&h->q64, i)[c] * pare_row(&h->k64, g->idx[e])[c];
                s *= (double)h->scale;
                if (pass == 0) row_max = fmax(row_max, s);
                if (pass == 1) sum += exp(s - row_max);
            }
        if (g->ptr[i] == g->ptr[i + 1])
            assert_true(lse[i] == -INFINITY);
        else
            assert_near((double)lse[i], row_max + log(sum), 1e-5);
    }
}

/* Narrow rows with few keys are served in pairs: every width, every pair of counts. */
static void narrow_rows_with_few_keys_are_within_their_bound(void **state)
{
    (void)state;
    enum { N = 2 * 11 * 11 + 1 };
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels);
    const pare_pattern *const p = &PATTERNS[2];
    for (size_t w = 0; w < 81; w += w == 70 ? 10 : 7) { /* the last: 8 and 8 */
        pare_arena *const a = pare_arena_new();
        head_case h = case_new(a, N, w / 9 + (w / 9 == 0), w % 9 + (w % 9 == 0), RANDOM, 50 + w);
        const pare_graph g = small_rows(a, N);
        float *const lse = pare_alloc(a, N, sizeof *lse);
        reference(&h, p, &g);
        for (size_t i = 0; i < variants; i++) {
            const pare_saved32 saved = {.lse = lse};
            assert_int_equal(attend_save_f32_with(&kernels[i], &h.y, &saved, &h.q, &h.k, &h.v,
                                                  h.scale, p, &g, NULL, NULL, NULL),
                             PARE_OK);
            check_bound(&h, p, &g);
            check_sums(&h, &g, lse);
        }
        pare_arena_free(a);
    }
}

/* The same numbers without gaps: behind the last row there is nothing to read. */
static void tighten(pare_arena *a, pare_mat32 *m)
{
    float *const v = pare_alloc(a, m->rows * m->cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < m->rows; i++)
        memcpy(v + i * m->cols, m->v + i * m->ld, m->cols * sizeof *v);
    *m = (pare_mat32){m->rows, m->cols, m->cols, v};
}

/* Keys that fill half a register with values that fill less of it, and the other way round. */
static void widths_below_eight_read_no_farther_than_their_rows(void **state)
{
    (void)state;
    enum { N = 2 * 11 * 11 + 1 };
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels);
    const pare_pattern *const p = &PATTERNS[2];
    for (size_t w = 1; w < 16; w++) {
        pare_arena *const a = pare_arena_new();
        head_case h = case_new(a, N, w < 8 ? 8 : 16 - w, w < 8 ? w : 8, RANDOM, 150 + w);
        const pare_graph g = small_rows(a, N);
        float *const lse = pare_alloc(a, N, sizeof *lse);
        reference(&h, p, &g);
        tighten(a, &h.q), tighten(a, &h.k), tighten(a, &h.v);
        for (size_t i = 0; i < variants; i++) {
            const pare_saved32 saved = {.lse = lse};
            assert_int_equal(attend_save_f32_with(&kernels[i], &h.y, &saved, &h.q, &h.k, &h.v,
                                                  h.scale, p, &g, NULL, NULL, NULL),
                             PARE_OK);
            check_bound(&h, p, &g);
            check_sums(&h, &g, lse);
        }
        pare_arena_free(a);
    }
}

/* The last columns of a matrix whose last row ends where a page does that must not be read. */
static void the_last_head_of_a_matrix_is_read_to_its_end_only(void **state)
{
    (void)state;
    enum { N = 64, LD = 8 };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = N * LD * sizeof(float);
    const size_t whole = (bytes + page - 1) / page * page;
    char *const at =
        mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED && mprotect(at + whole, page, PROT_NONE) == 0);
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels);
    for (size_t dv = 1; dv <= LD; dv++) {
        pare_arena *const a = pare_arena_new();
        head_case h = case_new(a, N, 4, dv, RANDOM, 190 + dv);
        const pare_mat32 v = {N, dv, LD, (float *)(at + whole - bytes) + LD - dv};
        for (size_t i = 0; i < N; i++) memcpy(v.v + i * LD, h.v.v + i * h.v.ld, dv * sizeof *v.v);
        h.v = v;
        reference(&h, &PATTERNS[0], NULL);
        for (size_t i = 0; i < variants; i++) {
            run(&kernels[i], &h, &PATTERNS[0], NULL, 1);
            check_bound(&h, &PATTERNS[0], NULL);
        }
        pare_arena_free(a);
    }
    assert_int_equal(munmap(at, whole + page), 0);
}

/* A pair is filled up with keys that are not there: an infinite value of the last one that is must
 * not become a nan by way of a weight of 0. */
static void an_infinite_value_stays_infinite(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels), n = 2 * 11 * 11;
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, n, 8, 8, RANDOM, 9);
    const pare_graph g = small_rows(a, n);
    for (size_t i = 0; i < n; i++) h.v.v[i * h.v.ld + i % 8] = INFINITY;
    for (size_t k = 0; k < variants; k++) {
        run(&kernels[k], &h, &PATTERNS[2], &g, 1);
        for (size_t i = 0; i < n * h.y.ld; i++) assert_true(!isnan(h.y.v[i]));
    }
    pare_arena_free(a);
}

/* A bound that is never nearly met would hide errors. */
static void the_bound_is_not_needlessly_large(void **state)
{
    (void)state;
    const double used = check_shape(64, 1, 1, RANDOM, 5);
    assert_le(0.02, used);
}

/* What underflows (docs/theory/length.md "Rounding"): logits (0, -gap), values (0, 1). */
static void weights_that_underflow_are_off_by_the_absolute_term_only(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels);
    const double gaps[] = {86, 88, 100, 103, 104, 110, 1e4};
    for (size_t t = 0; t < sizeof gaps / sizeof *gaps; t++) {
        pare_arena *const a = pare_arena_new();
        head_case h = case_new(a, 2, 1, 1, CONSTANT, 1);
        const float k[] = {0, -(float)gaps[t]}, v[] = {0, 1};
        h.scale = 1;
        for (size_t i = 0; i < 2; i++) {
            h.q64.v[i] = (double)(h.q.v[i * h.q.ld] = 1);
            h.k64.v[i] = (double)(h.k.v[i * h.k.ld] = k[i]);
            h.v64.v[i] = (double)(h.v.v[i * h.v.ld] = v[i]);
        }
        reference(&h, &PATTERNS[0], NULL);
        assert_near(h.y64.v[0], exp(-gaps[t]), exp(-gaps[t]) * 1e-12);
        for (size_t i = 0; i < variants; i++) {
            run(&kernels[i], &h, &PATTERNS[0], NULL, 1);
            check_bound(&h, &PATTERNS[0], NULL);
            /* far better in truth: e^x itself is right to the last denormal */
            assert_le(fabs((double)h.y.v[0] - h.y64.v[0]), 0x1p-149 + 1e-6 * h.y64.v[0]);
            if (gaps[t] > 104) assert_true(h.y.v[0] == 0);
        }
        pare_arena_free(a);
    }
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels), n = 700;
    pare_arena *const a = pare_arena_new();
    head_case one = case_new(a, n, 12, 9, RANDOM, 3), more = case_new(a, n, 12, 9, RANDOM, 3);
    const pare_graph g = odd_graph(a, n);
    for (size_t p = 0; p < NPATTERNS; p++)
        for (size_t i = 0; i < variants; i++) {
            run(&kernels[i], &one, &PATTERNS[p], &g, 1);
            for (int threads = 2; threads <= 3; threads++) {
                run(&kernels[i], &more, &PATTERNS[p], &g, threads);
                assert_memory_equal(one.y.v, more.y.v, n * one.y.ld * sizeof(float));
            }
        }
    pare_arena_free(a);
}

/* A row is computed in a panel of up to 64: the others must not show. */
static void a_row_does_not_depend_on_later_tokens(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels), n = 150;
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, n, 12, 9, RANDOM, 4), part = case_new(a, n, 12, 9, RANDOM, 4);
    for (size_t i = 0; i < variants; i++)
        for (size_t keep = 1; keep < n; keep += 37) {
            run(&kernels[i], &h, &PATTERNS[1], NULL, 1);
            part.q.rows = part.k.rows = part.v.rows = part.y.rows = keep;
            run(&kernels[i], &part, &PATTERNS[1], NULL, 1);
            assert_memory_equal(h.y.v, part.y.v, keep * h.y.ld * sizeof(float));
        }
    pare_arena_free(a);
}

static void a_nan_or_an_infinity_stays_visible_and_harms_nothing_else(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    const size_t variants = attention_kernels(kernels), n = 70;
    const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    pare_arena *const a = pare_arena_new();
    head_case clean = case_new(a, n, 6, 5, RANDOM, 8), h = case_new(a, n, 6, 5, RANDOM, 8);
    const pare_graph g = odd_graph(a, n);
    for (size_t i = 0; i < variants; i++)
        for (size_t p = 0; p < NPATTERNS; p++)
            for (size_t b = 0; b < 5; b++) {
                run(&kernels[i], &clean, &PATTERNS[p], &g, 1);
                float *const at[] = {&h.q.v[41 * h.q.ld + 2], &h.k.v[41 * h.k.ld + 2],
                                     &h.v.v[41 * h.v.ld + 2]};
                for (size_t w = 0; w < 3; w++) {
                    const float saved = *at[w];
                    *at[w] = bad[b];
                    run(&kernels[i], &h, &PATTERNS[p], &g, 1);
                    *at[w] = saved;
                    if (b == 0 && pare_visible(&PATTERNS[p], &g, n, 41).count > 1 && w == 0)
                        assert_true(isnan(h.y.v[41 * h.y.ld]));
                    for (size_t r = 0; w == 0 && r < n; r++) /* a query is nobody else's */
                        if (r != 41)
                            assert_memory_equal(h.y.v + r * h.y.ld, clean.y.v + r * h.y.ld,
                                                5 * sizeof(float));
                }
            }
    pare_arena_free(a);
}

static void no_tokens_are_no_work(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, 0, 4, 4, RANDOM, 1);
    const pare_exec x = {.threads = 2};
    assert_int_equal(
        pare_attend_f32(&h.y,
                        &(pare_attention_args32){
                            .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &PATTERNS[0]},
                        &x, NULL),
        PARE_OK);
    pare_arena_free(a);
}

static void the_best_variant_is_the_one_that_is_used(void **state)
{
    (void)state;
    attend_kernels kernels[3];
    attention_kernels(kernels);
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, 70, 9, 9, RANDOM, 2), same = case_new(a, 70, 9, 9, RANDOM, 2);
    run(&kernels[0], &h, &PATTERNS[1], NULL, 1);
    assert_int_equal(pare_attend_f32(&same.y,
                                     &(pare_attention_args32){.q = &same.q,
                                                              .k = &same.k,
                                                              .v = &same.v,
                                                              .scale = same.scale,
                                                              .pattern = &PATTERNS[1]},
                                     NULL, NULL),
                     PARE_OK);
    assert_memory_equal(h.y.v, same.y.v, 70 * h.y.ld * sizeof(float));
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_is_within_its_rounding_bound),
        cmocka_unit_test(every_width_of_a_head_is_served),
        cmocka_unit_test(narrow_rows_with_few_keys_are_within_their_bound),
        cmocka_unit_test(widths_below_eight_read_no_farther_than_their_rows),
        cmocka_unit_test(the_last_head_of_a_matrix_is_read_to_its_end_only),
        cmocka_unit_test(an_infinite_value_stays_infinite),
        cmocka_unit_test(the_bound_is_not_needlessly_large),
        cmocka_unit_test(weights_that_underflow_are_off_by_the_absolute_term_only),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(a_row_does_not_depend_on_later_tokens),
        cmocka_unit_test(a_nan_or_an_infinity_stays_visible_and_harms_nothing_else),
        cmocka_unit_test(no_tokens_are_no_work),
        cmocka_unit_test(the_best_variant_is_the_one_that_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
