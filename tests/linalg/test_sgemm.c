/* Tests src/linalg/sgemm.c: entries are small whole numbers, so that every order of summation gives
 * the same result and a plain loop must be met exactly. */
#include <pare_test.h>
#include "linalg/sgemm.h"

enum { GAP = 5 };
#define CANARY 12345.5f

static float *numbers(pare_rng *r, size_t rows, size_t cols, size_t ld)
{
    float *const v = malloc((rows * ld + 1) * sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < rows * ld; i++)
        v[i] = i % ld < cols ? (float)((int)pare_rng_below(r, 17) - 8) : NAN;
    return v;
}

/* False where the CPU leaves the product to BLAS. */
static bool check(size_t m, size_t n, size_t k, bool ta, bool tb, bool add, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 1);
    const size_t lda = (ta ? m : k) + GAP, ldb = (tb ? k : n) + GAP, ldc = n + GAP;
    float *const a = numbers(&r, ta ? k : m, ta ? m : k, lda);
    float *const b = numbers(&r, tb ? n : k, tb ? k : n, ldb);
    float *const c = malloc(m * ldc * sizeof *c);
    assert_non_null(c);
    for (size_t i = 0; i < m * ldc; i++) c[i] = i % ldc >= n ? CANARY : add ? (float)(i % 7) : NAN;
    const bool ours = sgemm_avx512(m, n, k, a, lda, ta, b, ldb, tb, add ? c : NULL, ldc, c, ldc);
    for (size_t i = 0; ours && i < m * ldc; i++) {
        const size_t row = i / ldc, col = i % ldc;
        float want = col >= n ? CANARY : add ? (float)(i % 7) : 0;
        for (size_t l = 0; col < n && l < k; l++)
            want += (ta ? a[l * lda + row] : a[row * lda + l]) *
                    (tb ? b[col * ldb + l] : b[l * ldb + col]);
        if (c[i] != want)
            print_error("entry %zu %zu of %zu x %zu x %zu %d %d\n", row, col, m, n, k, ta, tb);
        assert_true(c[i] == want);
    }
    free(a), free(b), free(c);
    return ours;
}

static void every_shape_and_order_gives_the_exact_product(void **state)
{
    (void)state;
    const size_t sizes[][3] = {{64, 64, 64},   {65, 63, 70},   {4, 2000, 64},  {2000, 16, 17},
                               {13, 513, 257}, {120, 17, 256}, {133, 48, 300}, {121, 33, 512},
                               {257, 1030, 1}, {71, 531, 65},  {12, 32, 2050}, {250, 47, 31},
                               {1, 1, 1},      {1, 40, 300},   {2, 3, 5},      {3, 1, 700},
                               {5, 15, 40},    {13, 2, 17}};
    size_t done = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (unsigned how = 0; how < 8; how++)
            done += check(sizes[s][0], sizes[s][1], sizes[s][2], how & 1, how & 2, how & 4, s);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        assert_int_equal(done, 8 * (sizeof sizes / sizeof *sizes));
        return;
    }
#endif
    assert_int_equal(done, 0);
}

static void an_empty_product_is_left_to_blas(void **state)
{
    (void)state;
    float c = CANARY;
    assert_false(sgemm_avx512(1, 1, 0, &c, 1, false, &c, 1, false, NULL, 0, &c, 1));
    assert_false(sgemm_avx512(0, 1, 1, &c, 1, false, &c, 1, false, NULL, 0, &c, 1));
    assert_true(c == CANARY);
}

static void a_row_is_added_to_all(void **state)
{
    (void)state;
    enum { M = 70, N = 90, K = 600 };
    static float a[M * K], b[K * N], c[M * N], bias[N];
    for (size_t i = 0; i < (size_t)M * K; i++) a[i] = 1;
    for (size_t i = 0; i < (size_t)K * N; i++) b[i] = 2;
    for (size_t i = 0; i < N; i++) bias[i] = (float)i;
    if (!sgemm_avx512(M, N, K, a, K, false, b, N, false, bias, 0, c, N)) return;
    for (size_t i = 0; i < (size_t)M * N; i++) assert_true(c[i] == (float)(2 * K + i % N));
}

/* A row by itself: the bits of an entry depend on its row of a, its column of b and k alone. */
static void a_row_does_not_depend_on_the_others(void **state)
{
    (void)state;
    enum { M = 150, N = 90, K = 300 };
    pare_rng r = pare_rng_at(4, 1);
    static float a[M * K], b[K * N], all[M * N], some[M * N];
    for (size_t i = 0; i < (size_t)M * K; i++) a[i] = (float)pare_rng_normal(&r);
    for (size_t i = 0; i < (size_t)K * N; i++) b[i] = (float)pare_rng_normal(&r);
    if (!sgemm_avx512(M, N, K, a, K, false, b, N, false, NULL, 0, all, N)) return;
    assert_true(
        sgemm_avx512(M - 7, N, K, a + (size_t)7 * K, K, false, b, N, false, NULL, 0, some, N));
    assert_memory_equal(all + (size_t)7 * N, some, (size_t)(M - 7) * N * sizeof(float));
    for (size_t i = 0; i < M; i++) {
        assert_true(sgemm_avx512(1, N, K, a + i * K, K, false, b, N, false, NULL, 0, some, N));
        assert_memory_equal(all + i * N, some, N * sizeof(float));
    }
}

static void a_nan_stays_in_its_row(void **state)
{
    (void)state;
    enum { N = 64 };
    static float a[N * N], b[N * N], c[N * N];
    for (size_t i = 0; i < (size_t)N * N; i++) a[i] = b[i] = 1;
    a[5 * N + 3] = NAN;
    if (!sgemm_avx512(N, N, N, a, N, false, b, N, true, NULL, 0, c, N)) return;
    for (size_t i = 0; i < (size_t)N * N; i++)
        assert_true(i / N == 5 ? c[i] != c[i] : c[i] == (float)N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_and_order_gives_the_exact_product),
        cmocka_unit_test(an_empty_product_is_left_to_blas),
        cmocka_unit_test(a_row_is_added_to_all),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
        cmocka_unit_test(a_nan_stays_in_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
