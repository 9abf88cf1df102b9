/* Tests src/attention/partial.c: partial results are what they say, and merge to the whole. */
#include "merge_partials.h"
#include "attention/attend.h"
#include "kernel_cases.h"

enum { N = 150, DK = 10, DV = 70 /* more than the merge takes at a time */, MOST_PARTS = 150 };

static pare_mat32 rows_of(const pare_mat32 *m, size_t first, size_t rows)
{
    return (pare_mat32){rows, m->cols, m->ld, m->v + first * m->ld};
}

static pare_partial partial_new(pare_arena *a, size_t rows, size_t dv)
{
    pare_partial p = {.acc = mat32_new(a, rows, dv),
                      .m = pare_alloc(a, rows + 1, sizeof(float)),
                      .l = pare_alloc(a, rows + 1, sizeof(float))};
    assert_true(p.m && p.l);
    return p;
}

static void attend_range(pare_partial *out, const head_case *h, size_t q0, size_t nq, size_t k0,
                         size_t nk, int64_t vis0, int threads)
{
    const pare_mat32 q = rows_of(&h->q, q0, nq), k = rows_of(&h->k, k0, nk),
                     v = rows_of(&h->v, k0, nk);
    const pare_exec x = {.threads = threads};
    pare_err err = {0};
    assert_ok(pare_attend_partial_f32(out, &q, &k, &v, h->scale, vis0, &x, &err), &err);
}

/* The definition, in f64. */
static void check_row(const pare_partial *p, const head_case *h, size_t row, size_t i, size_t k0,
                      size_t seen)
{
    double row_max = -INFINITY, sum = 0, *const s = malloc((seen + 1) * sizeof *s);
    assert_non_null(s);
    for (size_t j = 0; j < seen; j++) {
        s[j] = 0;
        for (size_t c = 0; c < h->dk; c++)
            s[j] += pare_row(&h->q64, i)[c] * pare_row(&h->k64, k0 + j)[c] * (double)h->scale;
        row_max = fmax(row_max, s[j]);
    }
    for (size_t j = 0; j < seen; j++) sum += exp(s[j] - row_max);
    assert_near(p->m[row], row_max, 1e-5);
    assert_near(p->l[row], sum, 1e-5 * (1 + sum));
    for (size_t c = 0; c < h->dv; c++) {
        double acc = 0;
        for (size_t j = 0; j < seen; j++) acc += exp(s[j] - row_max) * pare_row(&h->v64, k0 + j)[c];
        assert_near(p->acc.v[row * p->acc.ld + c], acc, 2e-5 * (1 + sum));
    }
    for (size_t c = h->dv; c < p->acc.ld; c++) assert_true(p->acc.v[row * p->acc.ld + c] == CANARY);
    free(s);
}

static void a_partial_result_is_max_sum_and_unnormalized_average(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const head_case h = case_new(a, N, DK, 5, RANDOM, 1);
    const size_t blocks[][4] = {{0, 1, 0, 1},    {5, 70, 3, 66},     {0, 66, 0, 150},
                                {140, 10, 0, 1}, {20, 130, 20, 130}, {7, 3, 100, 50}};
    const int64_t stairs[] = {PARE_VIS_ALL,  1,   0,   -1, -64, -1000, 60, INT64_MIN, -INT64_MAX,
                              INT64_MAX - 1, 149, -129};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
        for (size_t t = 0; t < sizeof stairs / sizeof *stairs; t++) {
            const size_t *const w = blocks[b];
            pare_partial p = partial_new(a, w[1], 5);
            attend_range(&p, &h, w[0], w[1], w[2], w[3], stairs[t], 1);
            for (size_t i = 0; i < w[1]; i++) {
                const double n = (double)stairs[t] + (double)i;
                const size_t seen = n <= 0 ? 0 : n < (double)w[3] ? (size_t)n : w[3];
                check_row(&p, &h, i, w[0] + i, w[2], seen);
            }
        }
    pare_arena_free(a);
}

/* Cuts the keys at every multiple of `size` and merges; queries in blocks of `size` too. */
static void merge_blocks(head_case *h, const pare_pattern *pat, size_t size, pare_arena *a)
{
    for (size_t q0 = 0; q0 < h->n; q0 += size) {
        const size_t nq = h->n - q0 < size ? h->n - q0 : size;
        pare_partial parts[MOST_PARTS];
        size_t count = 0;
        for (size_t k0 = 0; k0 < h->n; k0 += size) {
            const size_t nk = h->n - k0 < size ? h->n - k0 : size;
            const bool causal = pat->kind == PARE_CAUSAL;
            parts[count] = partial_new(a, nq, h->dv);
            attend_range(&parts[count++], h, q0, nq, k0, nk,
                         causal ? (int64_t)q0 + 1 - (int64_t)k0 : PARE_VIS_ALL, 1);
        }
        pare_mat32 y = rows_of(&h->y, q0, nq);
        pare_merge_partials(&y, parts, count);
    }
}

static void merged_results_are_attention_over_the_union(void **state)
{
    (void)state;
    const pare_pattern patterns[] = {{.kind = PARE_FULL}, {.kind = PARE_CAUSAL}};
    const size_t sizes[] = {1, 7, 64, 100, 150};
    for (data_kind kind = RANDOM; kind < DATA_KINDS; kind++)
        for (size_t s = 0; s < 5; s++)
            for (size_t p = 0; p < 2; p++) {
                pare_arena *const a = pare_arena_new();
                head_case h = case_new(a, N, DK, DV, kind, 3 + s);
                reference(&h, &patterns[p], NULL);
                merge_blocks(&h, &patterns[p], sizes[s], a);
                check_bound(&h, &patterns[p], NULL);
                pare_arena_free(a);
            }
}

/* Largest weights e^200 apart: only a merge by maxima survives, and only in f64 is nothing lost. */
static void a_merge_adds_no_rounding_of_its_own(void **state)
{
    (void)state;
    float m[2][1] = {{1000}, {800}}, l[2][1] = {{3}, {1}}, acc[2][2] = {{6, 9}, {1e30f, -4e30f}};
    pare_partial parts[2];
    for (size_t t = 0; t < 2; t++)
        parts[t] = (pare_partial){.acc = {1, 2, 2, acc[t]}, .m = m[t], .l = l[t]};
    float out[2];
    pare_mat32 y = {1, 2, 2, out};
    pare_merge_partials(&y, parts, 2);
    assert_true(out[0] == 2 && out[1] == 3); /* e^-200 1e30 is 1e-57 of it */
    m[1][0] = 1000;
    acc[1][0] = 2, acc[1][1] = 3;
    pare_merge_partials(&y, parts, 2);
    assert_true(out[0] == 2 && out[1] == 3);
    m[0][0] = -1e30f, m[1][0] = -1e30f; /* the level does not matter */
    pare_merge_partials(&y, parts, 2);
    assert_true(out[0] == 2 && out[1] == 3);
}

static void parts_that_saw_nothing_do_not_count(void **state)
{
    (void)state;
    float m[] = {-INFINITY, 5}, l[] = {0, 2}, acc[] = {0, 8}, out[2] = {7, 7};
    pare_partial parts[] = {{{1, 1, 1, &acc[0]}, &m[0], &l[0]}, {{1, 1, 1, &acc[1]}, &m[1], &l[1]}};
    pare_mat32 y = {1, 1, 1, out};
    pare_merge_partials(&y, parts, 2);
    assert_true(out[0] == 4);
    pare_merge_partials(&y, parts, 1);
    assert_true(out[0] == 0);
    pare_merge_partials(&y, parts, 0);
    assert_true(out[0] == 0 && out[1] == 7);
    l[1] = NAN; /* an engine that fails must be seen */
    pare_merge_partials(&y, parts, 2);
    assert_true(isnan(out[0]));
}

/* The bits of a row are the same alone, among others, and for any number of threads. */
static void a_row_does_not_depend_on_its_neighbors(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const head_case h = case_new(a, N, DK, DV, RANDOM, 9);
    pare_partial all = partial_new(a, N, DV), more = partial_new(a, N, DV),
                 one = partial_new(a, 1, DV);
    attend_range(&all, &h, 0, N, 0, N, 40, 1);
    attend_range(&more, &h, 0, N, 0, N, 40, 3);
    assert_memory_equal(all.acc.v, more.acc.v, N * all.acc.ld * sizeof(float));
    assert_memory_equal(all.m, more.m, N * sizeof(float));
    assert_memory_equal(all.l, more.l, N * sizeof(float));
    for (size_t i = 0; i < N; i++) {
        attend_range(&one, &h, i, 1, 0, N, 40 + (int64_t)i, 1);
        assert_memory_equal(one.acc.v, all.acc.v + i * all.acc.ld, DV * sizeof(float));
        assert_true(one.m[0] == all.m[i] && one.l[0] == all.l[i]);
    }
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partial_result_is_max_sum_and_unnormalized_average),
        cmocka_unit_test(merged_results_are_attention_over_the_union),
        cmocka_unit_test(a_merge_adds_no_rounding_of_its_own),
        cmocka_unit_test(parts_that_saw_nothing_do_not_count),
        cmocka_unit_test(a_row_does_not_depend_on_its_neighbors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
