/* Tests src/linalg/gemm.c against three loops. */
#include "linalg_test.h"

static double at(const pare_mat *m, bool t, size_t i, size_t j)
{
    return t ? pare_row(m, j)[i] : pare_row(m, i)[j];
}

static void by_hand(pare_mat *c, double alpha, const pare_mat *a, bool ta, const pare_mat *b,
                    bool tb, double beta)
{
    const size_t k = ta ? a->rows : a->cols;
    for (size_t i = 0; i < c->rows; i++)
        for (size_t j = 0; j < c->cols; j++) {
            double s = 0;
            for (size_t l = 0; l < k; l++) s += at(a, ta, i, l) * at(b, tb, l, j);
            double *x = pare_row_mut(c, i) + j;
            *x = alpha * s + (beta == 0 ? 0 : beta * *x);
        }
}

/* A rows x cols view with two more columns around it. */
static pare_mat padded(pare_arena *a, size_t rows, size_t cols, uint64_t seed)
{
    const pare_mat m = normal_mat(a, rows, cols + 2, seed);
    return (pare_mat){rows, cols, cols + 2, m.v + 1};
}

static const size_t sizes[] = {0, 1, 2, 5, 17};
enum { n_sizes = sizeof sizes / sizeof *sizes };

static void one_shape(pare_arena *a, size_t m, size_t n, size_t k)
{
    for (unsigned f = 0; f < 16; f++) {
        const bool ta = f & 1, tb = f & 2;
        const double alpha = f & 4 ? 1 : -0.5, beta = f & 8 ? 0 : 2;
        const pare_mat x = ta ? padded(a, k, m, 1) : padded(a, m, k, 1);
        const pare_mat y = tb ? padded(a, n, k, 2) : padded(a, k, n, 2);
        pare_mat c = padded(a, m, n, 3), want = padded(a, m, n, 3);
        if (beta == 0 && m && n) c.v[0] = NAN; /* beta = 0 must not read c */
        pare_gemm(&c, alpha, &x, ta, &y, tb, beta);
        by_hand(&want, alpha, &x, ta, &y, tb, beta);
        CHECK(distance(&c, &want) <= 1e-13, "%zu x %zu x %zu, flags %u", m, n, k, f);
        for (size_t i = 0; i < m; i++)
            assert_true(c.v[i * c.ld + n] == want.v[i * c.ld + n] &&
                        pare_row(&c, i)[-1] == pare_row(&want, i)[-1]);
    }
}

static void product_is_that_of_three_loops_and_stays_inside(void **state)
{
    for (size_t m = 0; m < n_sizes; m++)
        for (size_t n = 0; n < n_sizes; n++)
            for (size_t k = 0; k < n_sizes; k++) {
                const pare_mark mark = pare_arena_mark(*state);
                one_shape(*state, sizes[m], sizes[n], sizes[k]);
                pare_arena_reset(*state, mark);
            }
}

/* Small integers: f32 is exact, whatever the order. */
static float small(size_t i)
{
    return (float)((int)(i * 7 % 11) - 5);
}

static void one_shape_f32(size_t m, size_t n, size_t k, unsigned f)
{
    enum { ld = 20 };
    static float a[ld * ld], b[ld * ld], c[ld * ld];
    const bool ta = f & 1, tb = f & 2;
    const float alpha = f & 4 ? 1 : -2, beta = f & 8 ? 0 : 3;
    for (size_t i = 0; i < ld * ld; i++) {
        a[i] = small(i);
        b[i] = small(i + 3);
        c[i] = small(i + 5);
    }
    if (beta == 0) c[0] = NAN;
    if (m == 0 || n == 0) c[0] = small(5);
    pare_gemm_f32(m, n, k, alpha, a, ld, ta, b, ld, tb, beta, c, ld);
    for (size_t i = 0; i < ld; i++)
        for (size_t j = 0; j < ld; j++) {
            float s = 0, old = small(i * ld + j + 5);
            for (size_t l = 0; l < k; l++)
                s += (ta ? a[l * ld + i] : a[i * ld + l]) * (tb ? b[j * ld + l] : b[l * ld + j]);
            const float want = i < m && j < n ? alpha * s + beta * old : old;
            CHECK(c[i * ld + j] == want, "%zu x %zu x %zu, flags %u, at %zu %zu", m, n, k, f, i, j);
        }
}

static void f32_product_of_integers_is_exact(void **state)
{
    (void)state;
    for (size_t m = 0; m < n_sizes; m++)
        for (size_t n = 0; n < n_sizes; n++)
            for (size_t k = 0; k < n_sizes; k++)
                for (unsigned f = 0; f < 16; f++) one_shape_f32(sizes[m], sizes[n], sizes[k], f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(product_is_that_of_three_loops_and_stays_inside),
        ARENA_TEST(f32_product_of_integers_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
