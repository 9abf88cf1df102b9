/* Tests src/cert/wide_dense.c and wide_rows.c: sums of double-double are within one unit (16 v^2)
 * of the sum of their terms' sizes, whatever their length, and have the same bits on every level of
 * the processor and with any number of threads. */
#include "linalg/matrix.h"
#include "wide_quad.h"

enum { MOST = 3000 };

typedef struct rows {
    double xh[MOST], xl[MOST], yh[MOST], yl[MOST];
} rows;

/* Terms of very different sizes that cancel in pairs but for their last bits. */
static void fill(rows *v, pare_rng *r, size_t n, bool cancels)
{
    for (size_t k = 0; k < n; k++) {
        const double size = ldexp(1, (int)pare_rng_below(r, cancels ? 20 : 3));
        dd x = random_dd(r, size);
        const dd y = random_dd(r, 1);
        if (cancels && k % 2 == 1) x = dd_neg((dd){v->xh[k - 1], v->xl[k - 1]});
        v->xh[k] = x.hi;
        v->xl[k] = x.lo;
        v->yh[k] = cancels && k % 2 == 1 ? v->yh[k - 1] : y.hi;
        v->yl[k] = cancels && k % 2 == 1 && k + 1 < n ? v->yl[k - 1] : y.lo;
    }
    if (!cancels)
        for (size_t k = 0; k < n; k++) v->xh[k] = fabs(v->xh[k]), v->yh[k] = fabs(v->yh[k]);
}

static double off(dd got, quad exact, quad sizes)
{
    assert_true(fabs(got.lo) <= 0x1p-53 * fabs(got.hi));
    return (double)(q_abs(q_of(got) - exact) / sizes / (quad)V2);
}

static void sums_are_within_one_unit_whatever_their_length(void **state)
{
    (void)state;
    static rows v;
    double dots = 0, totals = 0;
    for (uint64_t t = 0; t < 400; t++) {
        pare_rng r = pare_rng_at(t, 1);
        const size_t n = t < 40 ? t + 1 : 1 + (size_t)pare_rng_below(&r, MOST);
        fill(&v, &r, n, t % 2);
        quad dot = 0, sizes = 0, total = 0, all = 0;
        for (size_t k = 0; k < n; k++) {
            const quad x = (quad)v.xh[k] + (quad)v.xl[k], y = (quad)v.yh[k] + (quad)v.yl[k];
            dot += x * y;
            sizes += q_abs(x * y);
            total += x;
            all += q_abs(x);
        }
        dots = fmax(dots, off(wide_dot(v.xh, v.xl, v.yh, v.yl, n), dot, sizes));
        totals = fmax(totals, off(wide_total(v.xh, v.xl, n), total, all));
    }
    print_message("dot: %.2f v^2, total: %.2f v^2\n", dots, totals);
    assert_le(dots, 16); /* the reference itself: below n 2^-113 = 0.01 n v^2 at worst */
    assert_le(totals, 16);
}

static void gathered_rows_are_the_sums(void **state)
{
    (void)state;
    enum { D = 7, N = 900 };
    static double xh[N][D], xl[N][D];
    double h[D] = {0}, l[D] = {0}, m[D] = {0}, worst = 0;
    const wide_sums y = {h, l, m};
    quad exact[D] = {0}, sizes[D] = {0};
    pare_rng r = pare_rng_at(3, 3);
    for (size_t j = 0; j < N; j++) {
        const dd p = random_dd(&r, 1);
        for (size_t k = 0; k < D; k++) {
            const dd x = random_dd(&r, ldexp(1, (int)pare_rng_below(&r, 30)));
            xh[j][k] = x.hi;
            xl[j][k] = x.lo;
            exact[k] += q_of(p) * q_of(x);
            sizes[k] += q_abs(q_of(p) * q_of(x));
        }
        wide_gather(y, p, xh[j], xl[j], D);
    }
    wide_tidy(y, D);
    for (size_t k = 0; k < D; k++) worst = fmax(worst, off((dd){h[k], l[k]}, exact[k], sizes[k]));
    assert_le(worst, 16);
    assert_true(worst > 0.07 && worst < 0.15); /* the same on every CPU */
}

typedef struct product {
    wide_mat x, y;
    pare_weight w, b;
    pare_arena *a;
} product;

static product product_new(uint64_t seed, size_t n, size_t out, size_t in)
{
    product p = {.a = pare_arena_new()};
    pare_rng r = pare_rng_at(seed, 2);
    p.x = (wide_mat){pare_mat_new(p.a, n, in), pare_mat_new(p.a, n, in)};
    p.y = (wide_mat){pare_mat_new(p.a, n, out), pare_mat_new(p.a, n, out)};
    for (size_t i = 0; i < n * in; i++) {
        const dd x = random_dd(&r, ldexp(1, (int)pare_rng_below(&r, 12)));
        p.x.hi.v[i] = x.hi;
        p.x.lo.v[i] = x.lo;
    }
    double *const w = pare_alloc(p.a, out * in, sizeof *w), *const b = pare_alloc(p.a, out, 8);
    float *const slim = pare_alloc(p.a, out * in, sizeof *slim);
    for (size_t i = 0; i < out * in; i++) slim[i] = (float)(w[i] = pare_rng_normal(&r));
    for (size_t i = 0; i < out; i++) b[i] = 100 * pare_rng_normal(&r);
    p.w = (pare_weight){seed % 2 ? PARE_F32 : PARE_F64, out, in, seed % 2 ? (void *)slim : w};
    if (seed % 3) p.b = (pare_weight){PARE_F64, 1, out, b};
    return p;
}

static void maps_are_within_one_unit(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},    {4, 16, 256},  {65, 17, 257},
                                       {2, 33, 600}, {130, 3, 20}, {1, 16, 2000}, {5, 1, 0}};
    double worst = 0;
    for (size_t s = 0; s < 8; s++) {
        product p = product_new(s, shapes[s][0], shapes[s][1], shapes[s][2]);
        wide_dense(&p.y, &p.x, &p.w, &p.b, NULL);
        for (size_t i = 0; i < p.y.hi.rows; i++)
            for (size_t o = 0; o < p.y.hi.cols; o++) {
                quad sum = q_at(&p.b, o), sizes = q_abs(sum);
                for (size_t k = 0; k < p.w.cols; k++) {
                    const quad x = (quad)pare_row(&p.x.hi, i)[k] + (quad)pare_row(&p.x.lo, i)[k];
                    sum += x * q_at(&p.w, o * p.w.cols + k);
                    sizes += q_abs(x * q_at(&p.w, o * p.w.cols + k));
                }
                const dd y = {pare_row(&p.y.hi, i)[o], pare_row(&p.y.lo, i)[o]};
                if (sizes != 0) worst = fmax(worst, off(y, sum, sizes));
                if (sizes == 0) assert_true(y.hi == 0);
            }
        pare_arena_free(p.a);
    }
    print_message("map: %.2f v^2\n", worst);
    assert_le(worst, 16);
    assert_true(worst > 0.4 && worst < 0.8);
}

static void bits_do_not_depend_on_the_processor_or_the_threads(void **state)
{
    (void)state;
    const pare_exec two = {.threads = 2};
    for (uint64_t s = 0; s < 12; s++) {
        product p = product_new(s, 1 + 17 * s % 70, 1 + 13 * s % 50, 1 + 97 * s % 600);
        const size_t bytes = p.y.hi.rows * p.y.hi.cols * sizeof(double);
        double *const hi = pare_alloc(p.a, 1, bytes), *const lo = pare_alloc(p.a, 1, bytes);
        wide_dense_on(WIDE_PLAIN, &p.y, &p.x, &p.w, &p.b, NULL);
        memcpy(hi, p.y.hi.v, bytes);
        memcpy(lo, p.y.lo.v, bytes);
        for (int level = WIDE_PLAIN; level <= (int)wide_best_level(); level++) {
            memset(p.y.hi.v, 0, bytes);
            wide_dense_on((wide_level)level, &p.y, &p.x, &p.w, &p.b, level % 2 ? &two : NULL);
            assert_memory_equal(hi, p.y.hi.v, bytes);
            assert_memory_equal(lo, p.y.lo.v, bytes);
        }
        pare_arena_free(p.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_within_one_unit_whatever_their_length),
        cmocka_unit_test(gathered_rows_are_the_sums),
        cmocka_unit_test(maps_are_within_one_unit),
        cmocka_unit_test(bits_do_not_depend_on_the_processor_or_the_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
