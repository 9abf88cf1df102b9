/* Tests src/attention/poly_backward*.c: gradients of the function that is computed. */
#include "poly_cases.h"

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

static grads backward(pare_arena *a, const poly_case *c)
{
    grads g = grads_new(a, c);
    pare_err err = {0};
    assert_ok(pare_poly_backward_f64(&g.dq, &g.dk, &g.dv, &c->dy, &c->plan, &c->q, &c->k, &c->v,
                                     c->exact, c->chunk, &err),
              &err);
    return g;
}

static void check_slopes(poly_case *c, pare_mat *x, const pare_mat *dx, const char *name)
{
    const double h = 1e-5;
    for (size_t i = 0; i < x->rows * x->cols; i++) {
        const double keep = x->v[i];
        x->v[i] = keep + h;
        const double up = poly_loss(c);
        x->v[i] = keep - h;
        const double slope = (up - poly_loss(c)) / (2 * h);
        x->v[i] = keep;
        if (!(fabs(slope - dx->v[i]) <= 1e-8)) print_error("%s, number %zu:\n", name, i);
        assert_near(dx->v[i], slope, 1e-8);
    }
}

static void check_case(pare_arena *a, poly_case *c)
{
    const grads g = backward(a, c);
    check_slopes(c, &c->q, &g.dq, "q");
    check_slopes(c, &c->k, &g.dk, "k");
    check_slopes(c, &c->v, &g.dv, "v");
}

static void gradients_are_slopes_with_the_plan_held(void **state)
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
    double top = 0;
    for (size_t i = 0; i < x->rows * x->cols; i++) top = fmax(top, fabs(x->v[i] - y->v[i]));
    return top;
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
            pare_attend_keep_f64(&y, lse, &c.q, &c.k, &c.v, c.plan.scale, &p, NULL, NULL, &err),
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes_with_the_plan_held),
        cmocka_unit_test(every_degree_and_width),
        cmocka_unit_test(a_better_polynomial_is_nearer_to_the_gradient_of_attention),
        cmocka_unit_test(exact_rows_are_the_exact_gradient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
