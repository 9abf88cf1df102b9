/* Tests src/linalg/dense.c: the same bits on any number of threads, any mix of precisions. */
#include "linalg_test.h"

typedef struct shape {
    size_t n, in, out;
} shape;

/* One tile, several in each direction, several conversions (in > 512), tall tiles (n >= 2048), f32
 * tiles (more than 2^22 multiplications; 2^17 for few tokens). */
static const shape shapes[] = {{1, 7, 3},       {3, 1, 2},      {1, 600, 300},  {5, 1100, 290},
                               {64, 33, 400},   {65, 100, 257}, {129, 513, 70}, {300, 40, 530},
                               {2100, 16, 300}, {300, 60, 500}, {257, 600, 70}, {40, 100, 300}};
enum { n_shapes = sizeof shapes / sizeof *shapes, pad = 3 };

static void by_hand(pare_mat *y, const pare_mat *x, const pare_weight *w, const pare_weight *b)
{
    for (size_t i = 0; i < x->rows; i++)
        for (size_t o = 0; o < w->rows; o++) {
            double s = b ? pare_weight_at(b, o) : 0;
            for (size_t k = 0; k < w->cols; k++)
                s += pare_row(x, i)[k] * pare_weight_at(w, o * w->cols + k);
            pare_row_mut(y, i)[o] = s;
        }
}

static void check_f64(pare_arena *a, shape s, bool narrow, bool bias)
{
    const pare_mat x_all = normal_mat(a, s.n, s.in + pad, 1), wm = normal_mat(a, s.out, s.in, 2);
    const pare_mat bm = normal_mat(a, 1, s.out, 3), x = pare_mat_part(&x_all, 0, 1, s.n, s.in);
    const pare_weight w = narrow ? narrow_weight(a, &wm) : weight_of(&wm), b = weight_of(&bm);
    const pare_weight absent = {PARE_F64, 0, 0, NULL};
    pare_mat want = pare_mat_new(a, s.n, s.out + pad), y[3];
    pare_mat inside = pare_mat_part(&want, 0, 0, s.n, s.out);
    by_hand(&inside, &x, &w, bias ? &b : NULL);
    for (int t = 0; t < 3; t++) {
        const pare_exec exec = {.threads = t + 1};
        y[t] = pare_mat_new(a, s.n, s.out + pad);
        pare_mat part = pare_mat_part(&y[t], 0, 0, s.n, s.out);
        assert_int_equal(pare_dense_f64(&part, &x, &w, bias ? &b : &absent, &exec, NULL), PARE_OK);
        CHECK(memcmp(y[0].v, y[t].v, s.n * y[t].ld * sizeof(double)) == 0,
              "%zu x %zu x %zu: other bits on %d threads", s.n, s.in, s.out, t + 1);
    }
    CHECK(distance(&y[0], &want) <= 1e-11, "%zu x %zu x %zu, narrow %d", s.n, s.in, s.out, narrow);
}

static void f64_is_right_and_its_bits_do_not_depend_on_threads(void **state)
{
    for (size_t i = 0; i < n_shapes; i++)
        for (int f = 0; f < 4; f++) {
            const pare_mark mark = pare_arena_mark(*state);
            check_f64(*state, shapes[i], f & 1, f & 2);
            pare_arena_reset(*state, mark);
        }
}

static void check_f32(pare_arena *a, shape s, bool narrow, bool bias)
{
    const pare_mat x = normal_mat(a, s.n, s.in, 1), wm = normal_mat(a, s.out, s.in, 2);
    const pare_mat bm = normal_mat(a, 1, s.out, 3);
    const pare_weight xf = narrow_weight(a, &x), bf = narrow_weight(a, &bm), b = weight_of(&bm);
    const pare_weight wf = narrow_weight(a, &wm), w = narrow ? wf : weight_of(&wm);
    pare_mat want = pare_mat_new(a, s.n, s.out);
    by_hand(&want, &x, &wf, bias ? &b : NULL);
    const size_t ldy = s.out + (narrow ? pad : 0); /* rows apart, or close */
    float *y[3];
    for (int t = 0; t < 3; t++) {
        const pare_exec exec = {.threads = t + 1};
        y[t] = pare_alloc(a, s.n * ldy, sizeof(float));
        assert_non_null(y[t]);
        assert_int_equal(pare_dense_f32(&(pare_mat32){s.n, s.out, ldy, y[t]},
                                        &(pare_mat32){s.n, s.in, s.in, (float *)(uintptr_t)xf.data},
                                        &w, bias ? (narrow ? &bf : &b) : NULL, &exec, NULL),
                         PARE_OK);
        assert_memory_equal(y[0], y[t], s.n * ldy * sizeof(float));
    }
    for (size_t i = 0; i < s.n; i++)
        for (size_t o = 0; o < ldy; o++) {
            const double expected = o < s.out ? pare_row(&want, i)[o] : 0;
            CHECK(fabs((double)y[0][i * ldy + o] - expected) <= 2e-3, "%zu x %zu x %zu", s.n, s.in,
                  s.out);
        }
}

static void f32_is_right_and_its_bits_do_not_depend_on_threads(void **state)
{
    for (size_t i = 0; i < n_shapes; i++)
        for (int f = 0; f < 4; f++) {
            const pare_mark mark = pare_arena_mark(*state);
            check_f32(*state, shapes[i], f & 1, f & 2);
            pare_arena_reset(*state, mark);
        }
}

static void empty_sides_are_legal(void **state)
{
    const double b[] = {1, 2};
    const pare_weight bias = {PARE_F64, 1, 2, b}, none = {PARE_F64, 2, 0, b};
    const pare_mat x = pare_mat_new(*state, 3, 0);
    pare_mat y = pare_mat_new(*state, 3, 2);
    assert_int_equal(pare_dense_f64(&y, &x, &none, &bias, NULL, NULL), PARE_OK);
    for (size_t i = 0; i < 3; i++) assert_true(y.v[2 * i] == 1 && y.v[2 * i + 1] == 2);
    const pare_weight w = {PARE_F64, 2, 1, b};
    const pare_mat no_x = pare_mat_new(*state, 0, 1);
    pare_mat no_y = pare_mat_new(*state, 0, 2);
    assert_int_equal(pare_dense_f64(&no_y, &no_x, &w, &bias, NULL, NULL), PARE_OK);
    assert_int_equal(pare_dense_f32(&(pare_mat32){0, w.rows, w.rows, NULL},
                                    &(pare_mat32){0, w.cols, w.cols, NULL}, &w, NULL, NULL, NULL),
                     PARE_OK);
}

static void a_nan_in_the_output_before_is_gone_and_one_in_the_input_stays(void **state)
{
    const double one[] = {1, 1};
    const pare_weight w = {PARE_F64, 1, 2, one};
    pare_mat x = pare_mat_new(*state, 2, 2), y = pare_mat_new(*state, 2, 1);
    y.v[0] = y.v[1] = NAN;
    x.v[3] = NAN;
    assert_int_equal(pare_dense_f64(&y, &x, &w, NULL, NULL, NULL), PARE_OK);
    assert_true(y.v[0] == 0 && isnan(y.v[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(f64_is_right_and_its_bits_do_not_depend_on_threads),
        ARENA_TEST(f32_is_right_and_its_bits_do_not_depend_on_threads),
        ARENA_TEST(empty_sides_are_legal),
        ARENA_TEST(a_nan_in_the_output_before_is_gone_and_one_in_the_input_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
