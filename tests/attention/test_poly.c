/* Tests src/attention/poly_*.c in f64: monomials, the plan, the f64 form and its bounds. */
#include <pare_test.h>
#include "attention/polynomial.h"
#include "base/json.h"
#include "linalg/matrix.h"

typedef struct head {
    size_t n, d, dv;
    double scale;
    pare_mat q, k, v, y, exact;
    double *bound;
    pare_arena *a;
} head;

static const pare_pattern FULL = {.kind = PARE_FULL}, CAUSAL = {.kind = PARE_CAUSAL};

static head head_new(size_t n, size_t d, size_t dv)
{
    head h = {.n = n, .d = d, .dv = dv, .scale = 1, .a = pare_arena_new()};
    assert_non_null(h.a);
    h.q = pare_mat_new(h.a, n, d), h.k = pare_mat_new(h.a, n, d), h.v = pare_mat_new(h.a, n, dv);
    h.y = pare_mat_new(h.a, n, dv), h.exact = pare_mat_new(h.a, n, dv);
    h.bound = pare_alloc(h.a, n, sizeof *h.bound);
    assert_true(h.q.v && h.k.v && h.v.v && h.y.v && h.exact.v && h.bound);
    return h;
}

/* Queries and keys around offsets of their own. */
static head random_head(pare_rng *r, size_t n, size_t d, size_t dv, double size)
{
    head h = head_new(n, d, dv);
    h.scale = 1 / sqrt((double)d);
    for (size_t c = 0; c < d; c++) {
        const double q = pare_rng_normal(r), k = 2 * pare_rng_normal(r);
        for (size_t i = 0; i < n; i++) {
            pare_row_mut(&h.q, i)[c] = q + size * pare_rng_normal(r);
            pare_row_mut(&h.k, i)[c] = k + size * pare_rng_normal(r);
        }
    }
    for (size_t i = 0; i < n * dv; i++) h.v.v[i] = pare_rng_normal(r);
    return h;
}

static double range_of(const pare_mat *v)
{
    double most = 0;
    for (size_t c = 0; c < v->cols; c++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < v->rows; i++) {
            low = fmin(low, pare_row(v, i)[c]);
            high = fmax(high, pare_row(v, i)[c]);
        }
        most = fmax(most, high - low);
    }
    return most;
}

static double row_error(const head *h, size_t i)
{
    double worst = 0;
    for (size_t c = 0; c < h->dv; c++)
        worst = fmax(worst, fabs(pare_row(&h->y, i)[c] - pare_row(&h->exact, i)[c]));
    return worst;
}

static pare_poly_plan run(head *h, const pare_pattern *p, const pare_poly_opts *o, size_t chunk,
                          pare_poly_report *report)
{
    pare_poly_plan plan;
    pare_err err = {0};
    assert_ok(pare_poly_plan_f64(&plan, h->a, &h->q, &h->k, h->dv, h->scale, p, o, &err), &err);
    assert_ok(
        pare_attend_f64(&h->exact,
                        &(pare_attention_args){
                            .q = &h->q, .k = &h->k, .v = &h->v, .scale = h->scale, .pattern = p},
                        NULL, &err),
        &err);
    assert_ok(
        pare_poly_attend_f64(&h->y, h->bound, report, &plan, &h->q, &h->k, &h->v, chunk, &err),
        &err);
    return plan;
}

/* ---- monomials ------------------------------------------------------------------------------ */

static void monomials_are_all_there_and_multiply_out(void **state)
{
    (void)state;
    static const size_t cases[][2] = {{1, 5}, {3, 4}, {6, 3}, {10, 2}, {4, 0}};
    pare_rng r = pare_rng_at(3, 0);
    for (size_t t = 0; t < 5; t++) {
        const size_t d = cases[t][0], g = cases[t][1];
        pare_arena *const a = pare_arena_new();
        pare_monomials m;
        pare_err err = {0};
        assert_ok(pare_monomials_graded(&m, a, d, g, &err), &err);
        double binomial = 1;
        for (size_t i = 1; i <= g; i++) binomial = binomial * (double)(d + i) / (double)i;
        assert_near(m.count, binomial, 1e-9);
        assert_int_equal(m.count, pare_monomials_count(d, g));
        double x[10], y[10], px[300], py[300], dot = 0, sum[6] = {0};
        for (size_t i = 0; i < d; i++) {
            x[i] = 0.5 * pare_rng_normal(&r), y[i] = 0.5 * pare_rng_normal(&r);
            dot += x[i] * y[i];
        }
        px[0] = py[0] = 1;
        for (size_t e = 0; e < m.count; e++) {
            if (e) px[e] = px[m.parent[e]] * x[m.var[e]], py[e] = py[m.parent[e]] * y[m.var[e]];
            assert_true(e == 0 || (m.parent[e] < e && m.power[e] == m.power[m.parent[e]] + 1));
            sum[m.power[e]] += m.weight[e] * px[e] * py[e];
        }
        for (size_t p = 0; p <= g; p++) assert_near(sum[p], pow(dot, (double)p), 1e-12);
        pare_arena_free(a);
    }
    assert_true(pare_monomials_count(4000, 9) == SIZE_MAX);
    pare_err err = {0};
    pare_monomials m;
    pare_arena *const a = pare_arena_new();
    assert_status(pare_monomials_graded(&m, a, 4000, 4, &err), PARE_ERR_INPUT, &err);
    pare_arena_free(a);
}

/* ---- vectors.json, case C ------------------------------------------------------------------- */

#define VECTORS "../shared/reference/depth/vectors.json"

static double number(const cJSON *rows, size_t i, size_t c)
{
    return cJSON_GetArrayItem(cJSON_GetArrayItem(rows, (int)i), (int)c)->valuedouble;
}

static void read_mat(pare_mat *m, const cJSON *from, const char *key)
{
    const cJSON *rows = NULL;
    pare_err err = {0};
    assert_ok(pare_json_array(&rows, from, key, &err), &err);
    for (size_t i = 0; i < m->rows; i++)
        for (size_t c = 0; c < m->cols; c++) pare_row_mut(m, i)[c] = number(rows, i, c);
}

static void same(const pare_mat *y, const cJSON *from, const char *key)
{
    const cJSON *rows = NULL;
    pare_err err = {0};
    assert_ok(pare_json_array(&rows, from, key, &err), &err);
    for (size_t i = 0; i < y->rows; i++)
        for (size_t c = 0; c < y->cols; c++)
            assert_near(pare_row(y, i)[c], number(rows, i, c), 1e-12);
}

static cJSON *vectors(const cJSON **c, head *h)
{
    cJSON *all = NULL;
    pare_err err = {0};
    assert_ok(pare_json_read(&all, VECTORS, &err), &err);
    assert_ok(pare_json_object(c, all, "C_poly", &err), &err);
    *h = head_new(7, 3, 2);
    h->scale = 0.5;
    read_mat(&h->q, *c, "Q"), read_mat(&h->k, *c, "K"), read_mat(&h->v, *c, "V");
    return all;
}

static void taylor_polynomials_give_the_vectors(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    const cJSON *c, *t = NULL;
    head h;
    cJSON *const all = vectors(&c, &h);
    for (int g = 0; g < 4; g++) {
        char key[16];
        double B = 0, r = 0;
        pare_err err = {0};
        snprintf(key, sizeof key, "taylor%d", g);
        assert_ok(pare_json_object(&t, c, key, &err), &err);
        assert_ok(pare_json_number(&B, t, "B", &err), &err);
        assert_ok(pare_json_number(&r, t, "r", &err), &err);
        const pare_poly_opts o = {.tolerance = INFINITY, .kind = PARE_POLY_TAYLOR, .degree = g};
        const pare_poly_plan p = run(&h, &FULL, &o, 0, NULL);
        assert_near(p.B.v, B, 1e-9 * B);
        assert_near(p.table.count, r, 0);
        same(&h.y, t, "full");
        run(&h, &CAUSAL, &o, 4, NULL);
        same(&h.y, t, "causal_chunk4");
    }
    same(&h.exact, c, "exact_causal");
    cJSON_Delete(all);
    pare_arena_free(h.a);
}

static void moment_certificates_give_the_vectors(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    const cJSON *c, *t = NULL, *bound = NULL;
    head h;
    cJSON *const all = vectors(&c, &h);
    static const char *const keys[] = {"certified_g1", "certified_g3_heavy2"};
    for (size_t s = 0; s < 2; s++) {
        pare_err err = {0};
        assert_ok(pare_json_object(&t, c, keys[s], &err), &err);
        assert_ok(pare_json_array(&bound, t, "bound", &err), &err);
        const pare_poly_opts o = {.tolerance = INFINITY,
                                  .kind = PARE_POLY_TAYLOR,
                                  .degree = s ? 3 : 1,
                                  .heavy = s ? 2 : 0};
        run(&h, &FULL, &o, 0, NULL);
        same(&h.y, t, "out");
        const double range = range_of(&h.v);
        for (size_t i = 0; i < 7; i++) {
            const double want = cJSON_GetArrayItem(bound, (int)i)->valuedouble;
            assert_near(h.bound[i] * range, want, 1e-9 * want);
        }
    }
    cJSON_Delete(all);
    pare_arena_free(h.a);
}

static void monomials_are_those_of_the_vectors(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    const cJSON *c, *rows = NULL;
    head h;
    cJSON *const all = vectors(&c, &h);
    pare_err err = {0};
    pare_monomials m;
    assert_ok(pare_json_array(&rows, c, "multi_indices_d3_g2", &err), &err);
    assert_ok(pare_monomials_graded(&m, h.a, 3, 2, &err), &err);
    assert_int_equal(m.count, cJSON_GetArraySize(cJSON_GetArrayItem(rows, 0)));
    /* Ours are in another order: compared as the numbers they take at one point. */
    const double x[3] = {2, 3, 5};
    double ours[10], theirs[10];
    for (size_t e = 0; e < m.count; e++) {
        const size_t p = (size_t)number(rows, 0, e), v = (size_t)number(rows, 1, e);
        theirs[e] = e ? theirs[p] * x[v] : 1;
        ours[e] = e ? ours[m.parent[e]] * x[m.var[e]] : 1;
    }
    for (size_t e = 0; e < m.count; e++) {
        size_t at = 0;
        while (at < m.count && theirs[at] != ours[e]) at++;
        assert_true(at < m.count);
        assert_near(m.weight[e], number(rows, 3, at), 0);
    }
    cJSON_Delete(all);
    pare_arena_free(h.a);
}

/* ---- bounds --------------------------------------------------------------------------------- */

static void errors_stay_below_the_variation_times_the_range(void **state)
{
    (void)state;
    static const double sizes[] = {0.2, 0.7, 1.2};
    pare_rng r = pare_rng_at(11, 0);
    size_t polynomial = 0;
    for (int t = 0; t < 60; t++) {
        const size_t n = 2 + pare_rng_below(&r, 60), d = 1 + pare_rng_below(&r, 4);
        head h = random_head(&r, n, d, 1 + pare_rng_below(&r, 3), sizes[t % 3]);
        const pare_poly_opts o = {.tolerance = pow(10, -1 - (double)(t % 5)),
                                  .kind = t % 2 ? PARE_POLY_REMEZ : PARE_POLY_TAYLOR,
                                  .degree = -1};
        const double range = range_of(&h.v);
        for (int s = 0; s < 4; s++) { /* full, and chunks of three sizes */
            static const size_t chunks[] = {0, 1, 7, 64};
            pare_poly_report report;
            const pare_poly_plan p = run(&h, s ? &CAUSAL : &FULL, &o, chunks[s], &report);
            if (p.kind == PARE_POLY_EXACT) assert_int_equal(report.rows_exact, n);
            if (p.kind != PARE_POLY_EXACT) assert_le(p.tv.v, o.tolerance);
            polynomial += p.kind != PARE_POLY_EXACT;
            for (size_t i = 0; i < n; i++)
                assert_le(row_error(&h, i), fmin(p.tv.v, o.tolerance) * range + 1e-11);
        }
        pare_arena_free(h.a);
    }
    assert_true(polynomial > 100);
}

static void moments_bound_the_error_of_every_row(void **state)
{
    (void)state;
    static const double sizes[] = {0.2, 0.7, 1.5};
    pare_rng r = pare_rng_at(12, 0);
    double nearest = 0;
    for (int t = 0; t < 120; t++) {
        const size_t n = 2 + pare_rng_below(&r, 60);
        head h = random_head(&r, n, 1 + pare_rng_below(&r, 4), 3, sizes[t % 3]);
        const double range = range_of(&h.v);
        const pare_poly_opts o = {.tolerance = t % 2 ? 0.05 : INFINITY,
                                  .kind = PARE_POLY_TAYLOR,
                                  .degree = t % 4 < 2 ? 1 : 3,
                                  .heavy = t % 8 < 4 ? 0 : 4};
        pare_poly_report report;
        run(&h, t % 3 == 2 ? &CAUSAL : &FULL, &o, 5, &report);
        for (size_t i = 0; i < n; i++) {
            assert_le(h.bound[i], o.tolerance);
            if (!isfinite(h.bound[i])) continue;
            assert_le(row_error(&h, i), h.bound[i] * range + 1e-11);
            if (h.bound[i] > 1e-6) nearest = fmax(nearest, row_error(&h, i) / h.bound[i] / range);
        }
        pare_arena_free(h.a);
    }
    assert_le(0.5, nearest); /* the bound is not needlessly large */
}

static void degree_zero_is_one_query_for_all(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(13, 0);
    head h = random_head(&r, 20, 3, 2, 0.5);
    const pare_poly_opts o = {.tolerance = INFINITY, .kind = PARE_POLY_TAYLOR, .degree = 0};
    const pare_poly_plan p = run(&h, &FULL, &o, 0, NULL);
    for (size_t i = 0; i < h.n; i++)
        memcpy(pare_row_mut(&h.q, i), p.qc, h.d * sizeof(double)); /* the midrange query */
    pare_err err = {0};
    assert_ok(
        pare_attend_f64(&h.exact,
                        &(pare_attention_args){
                            .q = &h.q, .k = &h.k, .v = &h.v, .scale = h.scale, .pattern = &FULL},
                        NULL, &err),
        &err);
    for (size_t i = 0; i < h.n; i++) assert_le(row_error(&h, i), 1e-12);
    pare_arena_free(h.a);
}

static void a_number_that_is_none_is_refused(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(14, 0);
    head h = random_head(&r, 5, 2, 1, 1);
    pare_poly_plan plan;
    pare_err err = {0};
    const pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
    pare_row_mut(&h.k, 3)[1] = NAN;
    assert_status(pare_poly_plan_f64(&plan, h.a, &h.q, &h.k, 1, 1, &FULL, &o, &err),
                  PARE_ERR_NONFINITE, &err);
    assert_contains(err.msg, "keys: row 3, column 1 is nan");
    pare_arena_free(h.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(monomials_are_all_there_and_multiply_out),
        cmocka_unit_test(taylor_polynomials_give_the_vectors),
        cmocka_unit_test(moment_certificates_give_the_vectors),
        cmocka_unit_test(monomials_are_those_of_the_vectors),
        cmocka_unit_test(errors_stay_below_the_variation_times_the_range),
        cmocka_unit_test(moments_bound_the_error_of_every_row),
        cmocka_unit_test(degree_zero_is_one_query_for_all),
        cmocka_unit_test(a_number_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
