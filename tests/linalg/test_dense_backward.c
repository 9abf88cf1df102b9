/* Tests src/linalg/dense_backward.c against plain sums in f64. A sum of k products in f32 in any
 * order is within gamma_k of its absolute value; what was there before counts as one more term. */
#include <pare_test.h>
#include "linalg/bounds.h"
#include "linalg/matrix.h"

enum { GAP = 3 };
#define CANARY 12345.5

typedef struct shape {
    size_t n, in, out;
} shape;

/* Odd sizes, more than one tile of each kind, rows cut into chunks, one row. */
static const shape SHAPES[] = {{1, 1, 1},      {2, 3, 5},      {63, 64, 65},  {65, 257, 2},
                               {257, 1, 63},   {300, 65, 130}, {2050, 7, 33}, {1100, 513, 9},
                               {2500, 64, 64}, {70, 520, 600}, {1, 100, 80},  {64, 33, 1100}};
enum { NSHAPES = sizeof SHAPES / sizeof *SHAPES };

typedef struct data {
    shape s;
    size_t lddx, lddy, ldx;
    double *dx, *dw, *db, *dy, *x, *w; /* what there is before; all are f32 numbers */
    float *dx32, *dw32, *db32, *dy32, *x32, *w32;
} data;

static double *numbers(pare_arena *a, float **f32, size_t rows, size_t cols, size_t ld, double size,
                       pare_rng *r)
{
    double *const v = pare_alloc(a, rows * ld + 1, sizeof *v);
    *f32 = pare_alloc(a, rows * ld + 1, sizeof **f32);
    assert_true(v && *f32);
    for (size_t i = 0; i < rows * ld; i++)
        v[i] = (*f32)[i] = i % ld < cols ? (float)(size * pare_rng_normal(r)) : (float)CANARY;
    return v;
}

static data data_new(pare_arena *a, shape s, double size, uint64_t seed)
{
    data d = {.s = s, .lddx = s.in + GAP, .lddy = s.out + GAP, .ldx = s.in + 2 * GAP};
    pare_rng r = pare_rng_at(seed, 5);
    d.dx = numbers(a, &d.dx32, s.n, s.in, d.lddx, size, &r);
    d.dw = numbers(a, &d.dw32, s.out, s.in, s.in, size, &r);
    d.db = numbers(a, &d.db32, 1, s.out, s.out, size, &r);
    d.dy = numbers(a, &d.dy32, s.n, s.out, d.lddy, size, &r);
    d.x = numbers(a, &d.x32, s.n, s.in, d.ldx, size, &r);
    d.w = numbers(a, &d.w32, s.out, s.in, s.in, size, &r);
    return d;
}

static double bound(double k, double u, double sum)
{
    return k * u / (1 - k * u) * sum + k * (u == PARE_UNIT_F32 ? 0x1p-126 : 0);
}

typedef double result_fn(const data *d, size_t r, size_t c, double *size);

static double dx_at(const data *d, size_t i, size_t c, double *size)
{
    double s = 0;
    for (size_t o = 0; o < d->s.out; o++) {
        s += d->dy[i * d->lddy + o] * d->w[o * d->s.in + c];
        *size += fabs(d->dy[i * d->lddy + o] * d->w[o * d->s.in + c]);
    }
    return s;
}

static double dw_at(const data *d, size_t o, size_t c, double *size)
{
    double s = 0;
    for (size_t i = 0; i < d->s.n; i++) {
        s += d->dy[i * d->lddy + o] * d->x[i * d->ldx + c];
        *size += fabs(d->dy[i * d->lddy + o] * d->x[i * d->ldx + c]);
    }
    return s;
}

static double db_at(const data *d, size_t zero, size_t o, double *size)
{
    double s = 0;
    (void)zero;
    for (size_t i = 0; i < d->s.n; i++)
        s += d->dy[i * d->lddy + o], *size += fabs(d->dy[i * d->lddy + o]);
    return s;
}

/* got (rows x cols) is before (if added to) + what fn says, from terms many; gaps are untouched. */
static void check(const data *d, result_fn *fn, const double *got64, const float *got32,
                  const double *before, size_t rows, size_t cols, size_t ld, bool added,
                  double terms)
{
    for (size_t i = 0; i < rows * ld; i++) {
        const size_t r = i / ld, c = i % ld;
        if (c >= cols) {
            assert_true(got32[i] == (float)CANARY && got64[i] == CANARY);
            continue;
        }
        double size = added ? fabs(before[i]) : 0;
        const double want = fn(d, r, c, &size) + (added ? before[i] : 0);
        assert_near(got64[i], want, 2 * bound(terms + 2, PARE_UNIT_F64, size));
        assert_near((double)got32[i], want, bound(terms + 2, PARE_UNIT_F32, size));
    }
}

static double *copy64(pare_arena *a, const double *x, size_t n)
{
    double *const y = pare_alloc(a, n + 1, sizeof *y);
    assert_non_null(y);
    return memcpy(y, x, n * sizeof *y);
}

static float *copy32(pare_arena *a, const float *x, size_t n)
{
    float *const y = pare_alloc(a, n + 1, sizeof *y);
    assert_non_null(y);
    return memcpy(y, x, n * sizeof *y);
}

static void check_shape(shape s, double size, bool add, uint64_t seed)
{
    pare_arena *const a = pare_arena_new();
    const data d = data_new(a, s, size, seed);
    const size_t nx = s.n * d.lddx, nw = s.out * s.in;
    const pare_weight w64 = {PARE_F64, s.out, s.in, d.w}, w32 = {PARE_F32, s.out, s.in, d.w32};
    double *const dx = copy64(a, d.dx, nx), *const dw = copy64(a, d.dw, nw);
    double *const db = copy64(a, d.db, s.out);
    float *const dx32 = copy32(a, d.dx32, nx), *const dw32 = copy32(a, d.dw32, nw);
    float *const db32 = copy32(a, d.db32, s.out);
    pare_err err = {0};
    assert_ok(pare_dense_backward_f64(dx, d.lddx, add, dw, db, d.dy, d.lddy, d.x, d.ldx, s.n, &w64,
                                      NULL, &err),
              &err);
    assert_ok(pare_dense_backward_f32(dx32, d.lddx, add, dw32, db32, d.dy32, d.lddy, d.x32, d.ldx,
                                      s.n, &w32, NULL, &err),
              &err);
    check(&d, dx_at, dx, dx32, d.dx, s.n, s.in, d.lddx, add, (double)s.out);
    check(&d, dw_at, dw, dw32, d.dw, s.out, s.in, s.in, true, (double)s.n);
    check(&d, db_at, db, db32, d.db, 1, s.out, s.out, true, 40);
    pare_arena_free(a);
}

static void gradients_are_the_sums_they_stand_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < NSHAPES; i++) check_shape(SHAPES[i], 1, i % 2, 3 + i);
    for (size_t i = 0; i < 4; i++) check_shape(SHAPES[i], 1, !(i % 2), 3 + i);
}

static void denormal_numbers_are_served(void **state)
{
    (void)state;
    check_shape((shape){70, 40, 50}, 0x1p-70, true, 1);
}

/* Each part alone is the part of all together, and NULL is left alone. */
static void parts_that_are_not_asked_for_are_not_needed(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const data d = data_new(a, (shape){300, 65, 70}, 1, 9), all = data_new(a, d.s, 1, 9);
    const pare_weight w = {PARE_F32, 70, 65, d.w32}, shape_only = {PARE_F32, 70, 65, NULL};
    assert_int_equal(pare_dense_backward_f32(all.dx32, d.lddx, false, all.dw32, all.db32, d.dy32,
                                             d.lddy, d.x32, d.ldx, 300, &w, NULL, NULL),
                     PARE_OK);
    assert_int_equal(pare_dense_backward_f32(d.dx32, d.lddx, false, NULL, NULL, d.dy32, d.lddy,
                                             NULL, 0, 300, &w, NULL, NULL),
                     PARE_OK);
    assert_int_equal(pare_dense_backward_f32(NULL, 0, false, d.dw32, NULL, d.dy32, d.lddy, d.x32,
                                             d.ldx, 300, &shape_only, NULL, NULL),
                     PARE_OK);
    assert_int_equal(pare_dense_backward_f32(NULL, 0, false, NULL, d.db32, d.dy32, d.lddy, NULL, 0,
                                             300, &shape_only, NULL, NULL),
                     PARE_OK);
    assert_memory_equal(all.dx32, d.dx32, 300 * d.lddx * sizeof(float));
    assert_memory_equal(all.dw32, d.dw32, (size_t)65 * 70 * sizeof(float));
    assert_memory_equal(all.db32, d.db32, 70 * sizeof(float));
    pare_arena_free(a);
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (size_t i = 5; i < NSHAPES; i++) {
        pare_arena *const a = pare_arena_new();
        const shape s = SHAPES[i];
        const data one = data_new(a, s, 1, i);
        const pare_weight w = {PARE_F32, s.out, s.in, one.w32};
        const pare_weight w64 = {PARE_F64, s.out, s.in, one.w};
        for (int threads = 1; threads <= 3; threads++) {
            const pare_exec x = {.threads = threads};
            const data d = data_new(a, s, 1, i);
            const data *const to = threads == 1 ? &one : &d;
            assert_int_equal(pare_dense_backward_f32(to->dx32, d.lddx, true, to->dw32, to->db32,
                                                     d.dy32, d.lddy, d.x32, d.ldx, s.n, &w, &x,
                                                     NULL),
                             PARE_OK);
            assert_int_equal(pare_dense_backward_f64(to->dx, d.lddx, true, to->dw, to->db, d.dy,
                                                     d.lddy, d.x, d.ldx, s.n, &w64, &x, NULL),
                             PARE_OK);
            if (threads == 1) continue;
            assert_memory_equal(d.dx32, one.dx32, s.n * d.lddx * sizeof(float));
            assert_memory_equal(d.dw32, one.dw32, s.out * s.in * sizeof(float));
            assert_memory_equal(d.db32, one.db32, s.out * sizeof(float));
            assert_memory_equal(d.dx, one.dx, s.n * d.lddx * sizeof(double));
            assert_memory_equal(d.dw, one.dw, s.out * s.in * sizeof(double));
            assert_memory_equal(d.db, one.db, s.out * sizeof(double));
        }
        pare_arena_free(a);
    }
}

static void no_rows_are_no_work(void **state)
{
    (void)state;
    float w[6] = {0}, dw[6] = {1, 2, 3, 4, 5, 6}, db[2] = {7, 8};
    const pare_weight weight = {PARE_F32, 2, 3, w};
    assert_int_equal(
        pare_dense_backward_f32(NULL, 3, false, dw, db, NULL, 2, NULL, 3, 0, &weight, NULL, NULL),
        PARE_OK);
    for (size_t i = 0; i < 6; i++) assert_true(dw[i] == (float)(i + 1));
    assert_true(db[0] == 7 && db[1] == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_the_sums_they_stand_for),
        cmocka_unit_test(denormal_numbers_are_served),
        cmocka_unit_test(parts_that_are_not_asked_for_are_not_needed),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(no_rows_are_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
