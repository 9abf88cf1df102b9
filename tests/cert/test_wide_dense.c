/* Tests src/cert/wide_dense.c and wide_rows.c: sums of double-double are within one unit (16 v^2)
 * of the sum of their terms' sizes, products within one unit of the product of the norms, whatever
 * their length, and have the same bits on every level of the processor and with any number of
 * threads. */
#include "base/array.h"
#include "linalg/matrix.h"
#include "wide_quad.h"
#include <float.h>

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

/* What weights look like: as f16 holds them (one slice), f32 and f64 of about one size (two and
 * three), and f64 of very different sizes (four). */
typedef enum weights { HALF, SINGLE, DOUBLE, SPREAD, WEIGHTS } weights;

static product product_new(uint64_t seed, weights kind, size_t n, size_t out, size_t in)
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
    for (size_t i = 0; i < out * in; i++) {
        w[i] = pare_rng_normal(&r);
        if (kind == SPREAD) w[i] = ldexp(w[i], -(int)pare_rng_below(&r, 80));
        if (kind == HALF) w[i] = (double)pare_f16_to_f32(pare_f16_of(0.1 * w[i]));
        slim[i] = (float)w[i];
    }
    for (size_t i = 0; i < out; i++) b[i] = 100 * pare_rng_normal(&r);
    const bool f32 = kind == HALF || kind == SINGLE;
    p.w = (pare_weight){f32 ? PARE_F32 : PARE_F64, out, in, f32 ? (void *)slim : w};
    if (seed % 3) p.b = (pare_weight){PARE_F64, 1, out, b};
    return p;
}

static double norm_of(const double *v, size_t n)
{
    double s = 0;
    for (size_t k = 0; k < n; k++) s += v[k] * v[k];
    return sqrt(s);
}

/* How far one entry is from itself, in v^2 |x|_2 |w|_2 + |b|; the reference is off by n 2^-113. */
static double entry_off(const product *p, size_t i, size_t o)
{
    const double *const hi = pare_row(&p->x.hi, i), *const lo = pare_row(&p->x.lo, i);
    const size_t in = p->w.cols;
    quad sum = q_at(&p->b, o), size = q_abs(sum);
    double *const w = pare_alloc(p->a, in + 1, sizeof *w);
    for (size_t k = 0; k < in; k++) {
        w[k] = pare_weight_at(&p->w, o * in + k);
        sum += ((quad)hi[k] + (quad)lo[k]) * (quad)w[k];
    }
    size += (quad)norm_of(hi, in) * (quad)norm_of(w, in);
    const dd y = {pare_row(&p->y.hi, i)[o], pare_row(&p->y.lo, i)[o]};
    if (size == 0) assert_true(y.hi == 0);
    return size == 0 ? 0 : off(y, sum, size);
}

static void maps_are_within_one_unit(void **state)
{
    (void)state;
    static const size_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},    {4, 16, 192},  {65, 17, 193},
                                       {2, 33, 600}, {130, 3, 20}, {1, 16, 2000}, {5, 1, 0}};
    for (int kind = HALF; kind < WEIGHTS; kind++) {
        double worst = 0;
        for (size_t s = 0; s < 8; s++) {
            const size_t *const shape = shapes[s];
            product p = product_new(s, (weights)kind, shape[0], shape[1], shape[2]);
            assert_int_equal(wide_dense(&p.y, &p.x, &p.w, &p.b, NULL, NULL), PARE_OK);
            for (size_t i = 0; i < p.y.hi.rows; i++)
                for (size_t o = 0; o < p.y.hi.cols; o++) worst = fmax(worst, entry_off(&p, i, o));
            pare_arena_free(p.a);
        }
        print_message("map: %.2f v^2\n", worst);
        assert_true(worst > 0.1 && worst < 1); /* one rounding; the lemma says 12 */
    }
}

/* The two plain sums of the lemma as large as they get: in each run one number that says how fine
 * the slices are, and all others as far from their grids as possible, in the same direction. */
static void what_slices_leave_is_summed_up_well_enough(void **state)
{
    (void)state;
    for (int kind = HALF; kind < WEIGHTS; kind++) {
        product p = product_new(7, (weights)kind, 3, 18, 960);
        float *const slim = (float *)p.w.data;
        double *const wide = (double *)p.w.data, worst = 0;
        for (size_t i = 0; i < p.x.hi.rows * p.w.cols; i++) {
            const bool first = i % 192 == 0;
            /* just below halfway between multiples of 2^-20, 2^-41 and 2^-62 */
            const double hi = first ? 1 - 0x1p-53 : 0x1p-21 - 0x1p-42 + 0x1p-62;
            p.x.hi.v[i] = i % 3 ? hi : nextafter(hi, 0);
            p.x.lo.v[i] = first ? 0x1.fffp-55 : (i % 2 ? 0x1.234567p-76 : 0x1.fffffp-76);
        }
        for (size_t i = 0; i < p.w.rows * p.w.cols; i++) {
            const double small = 0x1p-26 - 0x1p-52 + (kind == SINGLE ? 0 : 0x1p-78);
            const double w = i % 192 == 0 ? 1 - 0x1p-11 : kind == HALF ? 0x1.ffcp-1 : small;
            if (p.w.dtype == PARE_F32)
                slim[i] = (float)w;
            else
                wide[i] = w * (i % 2 ? 1 : 1 + 0x1p-45);
        }
        assert_int_equal(wide_dense(&p.y, &p.x, &p.w, NULL, NULL, NULL), PARE_OK);
        p.b = (pare_weight){0};
        for (size_t i = 0; i < p.y.hi.rows; i++)
            for (size_t o = 0; o < p.y.hi.cols; o++) worst = fmax(worst, entry_off(&p, i, o));
        print_message("left over: %.2f v^2\n", worst);
        assert_le(worst, 16);
        pare_arena_free(p.a);
    }
}

/* Numbers that slices cannot hold give no number, and nothing else is touched. */
static void what_is_no_number_stays_none(void **state)
{
    (void)state;
    product p = product_new(4, SINGLE, 4, 17, 200);
    p.x.hi.v[199] = NAN;
    p.x.hi.v[200] = INFINITY;
    p.x.hi.v[600] = DBL_MAX;
    assert_int_equal(wide_dense(&p.y, &p.x, &p.w, &p.b, NULL, NULL), PARE_OK);
    for (size_t o = 0; o < 17; o++) {
        assert_true(isnan(pare_row(&p.y.hi, 0)[o]) && isnan(pare_row(&p.y.hi, 1)[o]));
        assert_true(isnan(pare_row(&p.y.hi, 3)[o]));
        assert_le(entry_off(&p, 2, o), 1);
    }
    pare_arena_free(p.a);
}

static void bits_do_not_depend_on_the_processor_or_the_threads(void **state)
{
    (void)state;
    const pare_exec two = {.threads = 2};
    for (uint64_t s = 0; s < 12; s++) {
        product p = product_new(s, (weights)(s % WEIGHTS), 1 + 17 * s % 150, 1 + 13 * s % 50,
                                1 + 97 * s % 600);
        const size_t bytes = p.y.hi.rows * p.y.hi.cols * sizeof(double);
        double *const hi = pare_alloc(p.a, 1, bytes), *const lo = pare_alloc(p.a, 1, bytes);
        assert_int_equal(wide_dense_on(WIDE_PLAIN, &p.y, &p.x, &p.w, &p.b, NULL, NULL), PARE_OK);
        memcpy(hi, p.y.hi.v, bytes);
        memcpy(lo, p.y.lo.v, bytes);
        for (int level = WIDE_PLAIN; level <= (int)wide_best_level(); level++) {
            memset(p.y.hi.v, 0, bytes);
            assert_int_equal(wide_dense_on((wide_level)level, &p.y, &p.x, &p.w, &p.b,
                                           level % 2 ? &two : NULL, NULL),
                             PARE_OK);
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
        cmocka_unit_test(what_slices_leave_is_summed_up_well_enough),
        cmocka_unit_test(what_is_no_number_stays_none),
        cmocka_unit_test(bits_do_not_depend_on_the_processor_or_the_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
