/* Tests src/attention/poly_chosen.c: chosen monomials are fewer where coordinates are of unequal
 * size, and every row keeps its promise. */
#include "../../src/attention/poly.h"
#include <pare_test.h>

enum { N = 3000, D = 12, DV = 3 };

typedef struct heads {
    pare_mat32 q, k, v, y;
} heads;

static pare_mat32 normal32(pare_arena *a, size_t d, double sigma, double decay, pare_rng *r)
{
    const pare_mat32 m = {N, d, d, pare_alloc(a, N * d, sizeof(float))};
    assert_non_null(m.v);
    for (size_t i = 0; i < N * d; i++)
        m.v[i] = (float)(sigma * pow(decay, (double)(i % d)) * pare_rng_normal(r));
    return m;
}

static heads heads_new(pare_arena *a, double sigma, double decay, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 0);
    heads h = {.q = normal32(a, D, sigma, decay, &r), .k = normal32(a, D, sigma, decay, &r)};
    h.v = normal32(a, DV, 1, 1, &r);
    h.y = normal32(a, DV, 0, 1, &r);
    return h;
}

static double dot(const float *x, const float *y, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += (double)x[i] * (double)y[i];
    return s;
}

static void check_row(const heads *h, bool causal, size_t i, double bound)
{
    double sum = 0, y[DV] = {0}, low[DV], high[DV];
    for (size_t c = 0; c < DV; c++) low[c] = INFINITY, high[c] = -INFINITY;
    for (size_t j = 0; j < N; j++) {
        const float *const v = h->v.v + j * DV;
        const double w = exp(dot(h->q.v + i * D, h->k.v + j * D, D));
        for (size_t c = 0; c < DV; c++) {
            low[c] = fmin(low[c], (double)v[c]);
            high[c] = fmax(high[c], (double)v[c]);
            if (!causal || j <= i) y[c] += w * (double)v[c];
        }
        if (!causal || j <= i) sum += w;
    }
    for (size_t c = 0; c < DV; c++) {
        const double got = (double)h->y.v[i * DV + c];
        assert_le(fabs(got - y[c] / sum), bound * (high[c] - low[c]) + 0x1p-24 * fabs(got));
    }
}

static void rows_keep_their_promise(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++)
        for (int i = 0; i < 3; i++) {
            static const double tolerance[] = {1e-1, 1e-3, 1e-4};
            pare_arena *const a = pare_arena_new();
            heads h = heads_new(a, 0.3, 0.5, 3 + (uint64_t)i);
            const pare_pattern p = {.kind = causal ? PARE_CAUSAL : PARE_FULL};
            const pare_poly_opts o = {.tolerance = tolerance[i],
                                      .kind = PARE_POLY_ADAPTIVE,
                                      .degree = -1,
                                      .always = true};
            pare_poly_plan plan;
            pare_poly_report report;
            pare_err err = {0};
            double bound[N];
            assert_ok(pare_poly_plan_f32(&plan, a, &h.q, &h.k, DV, 1, &p, &o, NULL, &err), &err);
            assert_true(plan.kind == PARE_POLY_ADAPTIVE);
            assert_le(plan.tv.v, tolerance[i]);
            assert_ok(pare_poly_attend_f32(&h.y, &(pare_poly_kept){.bound = bound}, &report, &plan,
                                           &h.q, &h.k, &h.v, NULL, &err),
                      &err);
            assert_int_equal(report.rows_exact, 0);
            for (size_t r = 0; r < N; r += 97) {
                assert_le(bound[r], tolerance[i]);
                check_row(&h, causal, r, bound[r]);
            }
            pare_arena_free(a);
        }
}

static pare_poly_plan plan_of(pare_arena *a, double sigma, double decay, double tolerance)
{
    const heads h = heads_new(a, sigma, decay, 9);
    const pare_poly_opts o = {.tolerance = tolerance, .degree = -1, .always = true};
    pare_poly_plan plan;
    pare_err err = {0};
    assert_ok(pare_poly_plan_f32(&plan, a, &h.q, &h.k, DV, 1, &(pare_pattern){.kind = PARE_FULL},
                                 &o, NULL, &err),
              &err);
    return plan;
}

static void the_planner_takes_them_where_they_are_fewer(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const pare_poly_plan decays = plan_of(a, 0.3, 0.4, 1e-4), equal = plan_of(a, 0.1, 1, 1e-3);
    assert_true(decays.kind == PARE_POLY_ADAPTIVE);
    assert_contains(decays.why, "adaptive");
    assert_true(equal.kind != PARE_POLY_ADAPTIVE && equal.kind != PARE_POLY_EXACT);
    size_t least = 0;
    pare_ub tv;
    assert_true(pare_poly_degree(&least, &tv, decays.B.v, 1e-4));
    assert_true(3 * decays.table.count < pare_monomials_count(D, least));
    pare_arena_free(a);
}

/* The relative error at the pair that fills the box: T e^B is no smaller. */
static void the_relative_error_holds_at_the_worst_pair(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const pare_poly_plan p = plan_of(a, 0.3, 0.4, 1e-2);
    assert_true(p.kind == PARE_POLY_ADAPTIVE);
    for (int sign = -1; sign <= 1; sign += 2) {
        double x = 0, sum = 0, *const phi = malloc(p.table.count * sizeof *phi);
        assert_non_null(phi);
        for (size_t c = 0; c < D; c++) x += sign * p.box[c];
        for (size_t e = 0; e < p.table.count; e++) {
            phi[e] = e ? phi[p.table.parent[e]] * sign * p.box[p.table.var[e]] : 1;
            sum += p.coef[p.table.power[e]] * p.table.weight[e] * phi[e];
        }
        assert_le(fabs(sum - exp(x)), p.eps.v * exp(-p.B.v));
        free(phi);
    }
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_keep_their_promise),
        cmocka_unit_test(the_planner_takes_them_where_they_are_fewer),
        cmocka_unit_test(the_relative_error_holds_at_the_worst_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
