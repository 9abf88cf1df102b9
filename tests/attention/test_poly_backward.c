/* Tests src/attention/poly_backward*.c: gradients of the function that is computed. */
#include "poly_reference.h"
#include "attention/attend.h"
#include "poly_cases.h"
#include "attention/poly.h"

typedef struct grads {
    pare_mat dq, dk, dv;
} grads;

static grads grads_new(pare_arena *a, const poly_case *c)
{
    const grads g = {pare_mat_new(a, c->n, c->d), pare_mat_new(a, c->n, c->d),
                     pare_mat_new(a, c->n, c->dv)};
    assert_true(g.dq.v && g.dk.v && g.dv.v);
    return g;
}

static void backward_to(grads *g, const poly_case *c)
{
    pare_err err = {0};
    assert_ok(pare_poly_backward_f64(&g->dq, &g->dk, &g->dv, &c->dy, &c->plan, &c->q, &c->k, &c->v,
                                     c->exact, c->chunk, &err),
              &err);
}

static grads backward(pare_arena *a, const poly_case *c)
{
    grads g = grads_new(a, c);
    backward_to(&g, c);
    return g;
}

/* The center of the keys goes along with their mean. */
static void set_number(poly_case *c, pare_mat *x, size_t i, double to)
{
    if (x == &c->k)
        ((double *)(uintptr_t)c->plan.kc)[i % x->cols] += (to - x->v[i]) / (double)x->rows;
    x->v[i] = to;
}

static void check_differences(poly_case *c, pare_mat *x, const pare_mat *dx, const char *name)
{
    const double h = 1e-5;
    for (size_t i = 0; i < x->rows * x->cols; i++) {
        const double keep = x->v[i];
        set_number(c, x, i, keep + h);
        const double up = poly_loss(c);
        set_number(c, x, i, keep - h);
        const double difference = (up - poly_loss(c)) / (2 * h);
        set_number(c, x, i, keep);
        if (!(fabs(difference - dx->v[i]) <= 1e-8)) print_error("%s, number %zu:\n", name, i);
        assert_near(dx->v[i], difference, 1e-8);
    }
}

static void check_case(pare_arena *a, poly_case *c)
{
    const grads g = backward(a, c);
    check_differences(c, &c->q, &g.dq, "q");
    check_differences(c, &c->k, &g.dk, "k");
    check_differences(c, &c->v, &g.dv, "v");
}

static void gradients_are_differences_with_a_fixed_plan(void **state)
{
    (void)state;
    static const size_t heavy[] = {1, 6, 9};
    for (int mask = 0; mask < 16; mask++) {
        const bool causal = mask & 1, exact = mask & 2, heavies = mask & 4, some = mask & 8;
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 11, 3, 2, 3, some, 0.5, causal, 7 + (uint64_t)mask);
        c.chunk = 4;
        if (heavies) c.plan.nheavy = 3, c.plan.heavy = heavy;
        if (exact) {
            c.exact = pare_alloc(a, c.n, 1);
            c.exact[0] = c.exact[5] = c.exact[6] = 1;
        }
        check_case(a, &c);
        pare_arena_free(a);
    }
}

static void every_degree_and_width(void **state)
{
    (void)state;
    static const size_t shape[][4] = {{1, 1, 1, 0}, {2, 1, 3, 1}, {7, 1, 1, 5},
                                      {6, 4, 1, 2}, {9, 2, 5, 4}, {5, 6, 2, 1}};
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int causal = 0; causal < 2; causal++) {
            pare_arena *const a = pare_arena_new();
            poly_case c = poly_case_new(a, shape[s][0], shape[s][1], shape[s][2], shape[s][3],
                                        false, 0.4, causal, 30 + s);
            c.chunk = 2;
            check_case(a, &c);
            pare_arena_free(a);
        }
}

static double largest_gap(const pare_mat *x, const pare_mat *y)
{
    double largest = 0;
    for (size_t i = 0; i < x->rows * x->cols; i++) largest = fmax(largest, fabs(x->v[i] - y->v[i]));
    return largest;
}

/* Holding the centres leaves the gradient of attention itself: the better the polynomial, the
 * nearer. */
static void a_better_polynomial_is_nearer_to_the_gradient_of_attention(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        double last = INFINITY;
        for (size_t degree = 1; degree <= 5; degree += 2) {
            pare_arena *const a = pare_arena_new();
            poly_case c = poly_case_new(a, 40, 3, 2, degree, false, 0.2, causal, 5);
            c.chunk = 8;
            const grads g = backward(a, &c);
            c.plan.kind = PARE_POLY_EXACT;
            const grads e = backward(a, &c);
            const double gap = fmax(largest_gap(&g.dq, &e.dq), largest_gap(&g.dk, &e.dk));
            assert_le(gap, last / 5);
            last = gap;
            pare_arena_free(a);
        }
        assert_le(last, 2e-4);
    }
}

/* An exact plan is attention, and so are all its rows one by one. */
static void exact_rows_are_the_exact_gradient(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 30, 3, 2, 2, false, 1, causal, 8);
        const pare_pattern p = {.kind = causal ? PARE_CAUSAL : PARE_FULL};
        pare_mat y = pare_mat_new(a, c.n, c.dv);
        double lse[30];
        pare_err err = {0};
        grads want = grads_new(a, &c);
        assert_ok(
            pare_attend_saving_f64(&y, lse, &c.q, &c.k, &c.v, c.plan.scale, &p, NULL, NULL, &err),
            &err);
        assert_ok(pare_attend_backward_f64(&want.dq, &want.dk, &want.dv, &c.dy, &c.q, &c.k, &c.v,
                                           &y, lse, c.plan.scale, &p, NULL, NULL, NULL, &err),
                  &err);
        c.exact = pare_alloc(a, c.n, 1);
        memset(c.exact, 1, c.n);
        for (int kind = 0; kind < 2; kind++) {
            if (kind) c.plan.kind = PARE_POLY_EXACT;
            const grads g = backward(a, &c);
            assert_le(largest_gap(&g.dq, &want.dq), 1e-12);
            assert_le(largest_gap(&g.dk, &want.dk), 1e-12);
            assert_le(largest_gap(&g.dv, &want.dv), 1e-12);
        }
        pare_arena_free(a);
    }
}

/* ---- f32 ------------------------------------------------------------------------------------- */

enum { GAP = 3 }; /* floats between two rows, that belong to nobody */
#define CANARY 12345.5f

static pare_mat32 mat32_new(pare_arena *a, size_t rows, size_t cols)
{
    const pare_mat32 m = {rows, cols, cols + GAP,
                          pare_alloc(a, rows * (cols + GAP) + 1, sizeof(float))};
    assert_non_null(m.v);
    for (size_t i = 0; i < rows * m.ld; i++) m.v[i] = i % m.ld < cols ? 0 : CANARY;
    return m;
}

static pare_mat32 narrow_mat(pare_arena *a, const pare_mat *x)
{
    const pare_mat32 m = mat32_new(a, x->rows, x->cols);
    for (size_t i = 0; i < x->rows; i++)
        for (size_t c = 0; c < x->cols; c++) m.v[i * m.ld + c] = (float)pare_row(x, i)[c];
    return m;
}

typedef struct grads32 {
    pare_mat32 dq, dk, dv;
} grads32;

static grads32 backward32(pare_arena *a, const poly_case *c, const poly_kernel *kernel, int threads)
{
    const pare_mat32 q = narrow_mat(a, &c->q), k = narrow_mat(a, &c->k), v = narrow_mat(a, &c->v);
    const pare_mat32 dy = narrow_mat(a, &c->dy);
    grads32 g = {mat32_new(a, c->n, c->d), mat32_new(a, c->n, c->d), mat32_new(a, c->n, c->dv)};
    const pare_exec exec = {.threads = threads};
    pare_err err = {0};
    assert_ok(poly_backward_with(kernel, &g.dq, &g.dk, &g.dv, &dy, &c->plan, &q, &k, &v, c->exact,
                                 &exec, &err),
              &err);
    return g;
}

static void check_near(const pare_mat32 *x, const pare_mat *want, const char *name)
{
    double size = 1e-6;
    for (size_t i = 0; i < want->rows * want->cols; i++) size = fmax(size, fabs(want->v[i]));
    for (size_t i = 0; i < x->rows; i++) {
        for (size_t c = 0; c < x->cols; c++) {
            const double gap = fabs((double)x->v[i * x->ld + c] - pare_row(want, i)[c]);
            if (!(gap <= 2e-5 * size)) print_error("%s, row %zu, column %zu:\n", name, i, c);
            assert_le(gap, 2e-5 * size);
        }
        for (size_t c = x->cols; c < x->ld; c++) assert_true(x->v[i * x->ld + c] == CANARY);
    }
}

static void check_kernels(pare_arena *a, poly_case *c)
{
    poly_kernel kernels[3];
    const size_t count = poly_kernels(kernels);
    c->chunk = POLY_KEYS;
    const grads want = backward(a, c);
    for (size_t i = 0; i < count; i++) {
        const grads32 g = backward32(a, c, &kernels[i], 1);
        check_near(&g.dq, &want.dq, kernels[i].name);
        check_near(&g.dk, &want.dk, kernels[i].name);
        check_near(&g.dv, &want.dv, kernels[i].name);
    }
}

/* A common shift of all keys changes nothing in attention: a bias of keys has no gradient.
 * Gradients are added to what is there, which is no part of the mean. */
static void gradients_of_keys_sum_to_zero(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 130, 3, 2, 1, false, 0.6, causal, 6);
        poly_kernel kernels[3];
        poly_kernels(kernels);
        c.chunk = POLY_KEYS;
        grads g = grads_new(a, &c);
        for (size_t i = 0; i < 130 * 3; i++) g.dk.v[i] = 5;
        backward_to(&g, &c);
        const grads32 f = backward32(a, &c, &kernels[0], 1);
        for (size_t e = 0; e < 3; e++) {
            double wide = 0, narrow = 0;
            for (size_t j = 0; j < 130; j++) {
                wide += pare_row(&g.dk, j)[e] - 5;
                narrow += (double)f.dk.v[j * f.dk.ld + e];
            }
            assert_near(wide, 0, 1e-11);
            assert_near(narrow, 0, 1e-5);
        }
        pare_arena_free(a);
    }
}

static void f32_is_the_f64_form_for_every_shape_and_kernel(void **state)
{
    (void)state;
    static const size_t shape[][4] = {
        /* n, d, dv, degree */
        {1, 1, 1, 0},    {5, 3, 2, 1},    {64, 3, 4, 2},  {65, 5, 7, 3},   {130, 2, 3, 5},
        {300, 8, 16, 3}, {70, 16, 70, 2}, {70, 70, 5, 1}, {1300, 4, 4, 2}, {200, 7, 1, 0}};
    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++)
        for (int causal = 0; causal < 2; causal++) {
            pare_arena *const a = pare_arena_new();
            poly_case c = poly_case_new(a, shape[s][0], shape[s][1], shape[s][2], shape[s][3],
                                        false, 0.6 / sqrt((double)shape[s][1]), causal, 50 + s);
            check_kernels(a, &c);
            pare_arena_free(a);
        }
}

static void f32_knows_heavy_keys_exact_rows_and_chosen_monomials(void **state)
{
    (void)state;
    static const size_t heavy[] = {0, 3, 63, 64, 130, 199};
    for (int mask = 0; mask < 16; mask++) {
        const bool causal = mask & 1, exact = mask & 2, heavies = mask & 4, some = mask & 8;
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 200, 5, 6, 3, some, 0.3, causal, 70 + (uint64_t)mask);
        for (size_t i = 0; i < 200 * 5; i++) c.q.v[i] *= 16, c.k.v[i] /= 16; /* not of one size */
        c.plan.qc = midrange(a, &c.q), c.plan.kc = midrange(a, &c.k);
        measure(&c, a);
        if (heavies) c.plan.nheavy = 6, c.plan.heavy = heavy;
        if (exact) {
            c.exact = pare_alloc(a, c.n, 1);
            c.exact[0] = c.exact[66] = c.exact[67] = c.exact[199] = 1;
        }
        check_kernels(a, &c);
        if (exact) memset(c.exact, 1, c.n);
        check_kernels(a, &c);
        c.plan.kind = PARE_POLY_EXACT;
        check_kernels(a, &c);
        pare_arena_free(a);
    }
}

/* Weights that grow by e^30 along the keys, and fall: rescaling that only ever shrinks. */
static void f32_survives_weights_that_run_away(void **state)
{
    (void)state;
    for (int down = 0; down < 2; down++) {
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 400, 3, 3, 3, false, 0.2, true, 90);
        double *const qc = pare_alloc(a, 3, sizeof *qc);
        for (size_t i = 0; i < c.n; i++) {
            pare_row_mut(&c.k, i)[0] = 0.01 * (down ? -(double)i : (double)i);
            pare_row_mut(&c.k, i)[0] = (double)(float)pare_row(&c.k, i)[0];
            for (size_t e = 0; e < 3; e++)
                pare_row_mut(&c.q, i)[e] = (double)(float)(e == 0 ? 10 + 0.05 * pare_row(&c.q, i)[0]
                                                                  : pare_row(&c.q, i)[e]);
        }
        qc[0] = 10;
        c.plan.qc = qc;
        measure(&c, a);
        check_kernels(a, &c);
        pare_arena_free(a);
    }
}

/* A row that the exact kernel has computed may be far outside of what f32 can raise to a power. */
static void a_row_far_out_spoils_nothing(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 150, 3, 2, 4, false, 0.3, causal, 91);
        c.exact = pare_alloc(a, c.n, 1);
        c.exact[70] = 1;
        for (size_t e = 0; e < 3; e++) pare_row_mut(&c.q, 70)[e] = (double)(e ? 0x1p40f : -0x1p40f);
        check_kernels(a, &c);
        pare_arena_free(a);
    }
}

/* The whole way as a trainer goes it: a plan of the data, there with its exact rows, and back. */
static void plan_there_and_back_are_of_one_function(void **state)
{
    (void)state;
    for (int mask = 0; mask < 4; mask++) {
        const bool causal = mask & 1, taylor = mask & 2;
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 500, 4, 3, 3, false, 0.35, causal, 95);
        for (size_t e = 0; e < 4; e++) pare_row_mut(&c.q, 77)[e] *= 4; /* a row that must fail */
        const pare_poly_opts o = {.tolerance = 2e-2,
                                  .kind = taylor ? PARE_POLY_TAYLOR : PARE_POLY_REMEZ,
                                  .degree = taylor ? 3 : 9,
                                  .heavy = taylor ? 3 : 0,
                                  .always = true};
        const pare_pattern p = {.kind = causal ? PARE_CAUSAL : PARE_FULL};
        const pare_mat32 q = narrow_mat(a, &c.q), k = narrow_mat(a, &c.k), v = narrow_mat(a, &c.v);
        pare_mat32 y = mat32_new(a, c.n, c.dv);
        pare_poly_report report;
        pare_err err = {0};
        c.exact = pare_alloc(a, c.n, 1);
        const double scale = c.plan.scale;
        assert_ok(pare_poly_plan_f32(&c.plan, a, &q, &k, c.dv, scale, &p, &o, NULL, &err), &err);
        assert_true(c.plan.kind == o.kind);
        assert_ok(pare_poly_attend_f32(&y, &(pare_poly_saved){.exact = c.exact}, &report, &c.plan,
                                       &q, &k, &v, NULL, &err),
                  &err);
        if (taylor) assert_true(report.rows_exact > 0 && report.rows_exact < c.n);
        c.chunk = POLY_KEYS;
        for (size_t i = 0; i < c.n; i++) {
            double want[3];
            poly_result(&c, i, want);
            for (size_t e = 0; e < 3; e++) assert_near(y.v[i * y.ld + e], want[e], 2e-5);
        }
        check_kernels(a, &c);
        pare_arena_free(a);
    }
}

static void the_bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    static const size_t heavy[] = {5, 900};
    poly_kernel kernels[3];
    poly_kernels(kernels);
    for (int causal = 0; causal < 2; causal++) {
        pare_arena *const a = pare_arena_new();
        poly_case c = poly_case_new(a, 3000, 4, 3, 2, false, 0.3, causal, 92);
        c.plan.nheavy = 2, c.plan.heavy = heavy;
        const grads32 one = backward32(a, &c, &kernels[0], 1),
                      more = backward32(a, &c, &kernels[0], 3);
        assert_memory_equal(one.dq.v, more.dq.v, c.n * one.dq.ld * sizeof(float));
        assert_memory_equal(one.dk.v, more.dk.v, c.n * one.dk.ld * sizeof(float));
        assert_memory_equal(one.dv.v, more.dv.v, c.n * one.dv.ld * sizeof(float));
        pare_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_differences_with_a_fixed_plan),
        cmocka_unit_test(every_degree_and_width),
        cmocka_unit_test(a_better_polynomial_is_nearer_to_the_gradient_of_attention),
        cmocka_unit_test(gradients_of_keys_sum_to_zero),
        cmocka_unit_test(exact_rows_are_the_exact_gradient),
        cmocka_unit_test(f32_is_the_f64_form_for_every_shape_and_kernel),
        cmocka_unit_test(f32_knows_heavy_keys_exact_rows_and_chosen_monomials),
        cmocka_unit_test(f32_survives_weights_that_run_away),
        cmocka_unit_test(a_row_far_out_spoils_nothing),
        cmocka_unit_test(plan_there_and_back_are_of_one_function),
        cmocka_unit_test(the_bits_do_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
