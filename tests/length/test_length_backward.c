/* Tests src/length/length_backward.c and src/attention/partial.c: tiles of M x M give the
 * gradient that the direct kernels give. */
#include "attention/attend.h"
#include "length/attend_plan.h"
#include "length_cases.h"

static const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                        {.kind = PARE_CAUSAL},
                                        {.kind = PARE_WINDOW, .window = 9},
                                        {.kind = PARE_WINDOW, .window = 6, .sinks = 3}};

typedef struct slopes {
    double *dq, *dk, *dv;
} slopes;

static slopes direct(length_case *c, const pare_pattern *p, double *dy)
{
    slopes s = {doubles(c->a, c->n * c->dk), doubles(c->a, c->n * c->dk),
                doubles(c->a, c->n * c->dv)};
    double *const lse = doubles(c->a, c->n);
    pare_mat y = pare_mat_of(c->direct, c->n, c->dv), dq = pare_mat_of(s.dq, c->n, c->dk),
             dk = pare_mat_of(s.dk, c->n, c->dk), dv = pare_mat_of(s.dv, c->n, c->dv);
    const pare_mat q = pare_mat_of(c->q, c->n, c->dk), k = pare_mat_of(c->k, c->n, c->dk),
                   v = pare_mat_of(c->v, c->n, c->dv), d = pare_mat_of(dy, c->n, c->dv);
    assert_int_equal(pare_attend_saving_f64(&y, lse, &q, &k, &v, 0.5, p, NULL, NULL, NULL),
                     PARE_OK);
    assert_int_equal(pare_attend_backward_f64(&dq, &dk, &dv, &d, &q, &k, &v, &y, lse, 0.5, p, NULL,
                                              NULL, NULL, NULL),
                     PARE_OK);
    return s;
}

static double largest(const double *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

static void check(const char *what, pare_dtype t, const void *got, const double *want, size_t n,
                  double slack)
{
    const double size = largest(want, n);
    for (size_t i = 0; i < n; i++) {
        const double x = t == PARE_F32 ? (double)((const float *)got)[i] : ((const double *)got)[i];
        if (!(fabs(x - want[i]) <= slack * (size + 1)))
            fail_msg("%s %zu: %.9g, directly %.9g", what, i, x, want[i]);
    }
}

static void one_case(const pare_pattern *p, uint32_t m, pare_dtype t, regime kind)
{
    length_case c = length_case_new(70, 5, 4, kind, m);
    double *const dy = doubles(c.a, c.n * c.dv);
    float *const dyf = floats(c.a, c.n * c.dv);
    pare_rng r = pare_rng_at(m, 2);
    for (size_t i = 0; i < c.n * c.dv; i++) dy[i] = (double)(dyf[i] = (float)pare_rng_normal(&r));
    const slopes want = direct(&c, p, dy);
    pare_length_grad g = {.job = job_of(&c, t)};
    pare_oracle orc = cpu_oracle(t, m, NULL);
    pare_length_stats s;
    pare_err err = {0};
    pare_oracle_count count = {0};
    g.job.scale = 0.5;
    g.job.lse = doubles(c.a, c.n);
    assert_ok(pare_length_attend(&orc, NULL,
                                 &(pare_length_layer){.jobs = &g.job, .count = 1, .pattern = p}, &s,
                                 NULL, &err),
              &err);
    g.dy = t == PARE_F32 ? (void *)dyf : dy, g.lddy = g.lddv = c.dv, g.lddq = g.lddk = c.dk;
    g.dq = doubles(c.a, c.n * c.dk), g.dk = doubles(c.a, c.n * c.dk),
    g.dv = doubles(c.a, c.n * c.dv);
    assert_ok(pare_length_backward(&g, t, m, p, NULL, &count, NULL, &err), &err);
    assert_int_equal(count.calls, s.calls);
    assert_true(count.max_len <= m);
    const double slack = t == PARE_F32 ? (kind == BENIGN ? 3e-6 : 1e-4) : 1e-12;
    check("dq", t, g.dq, want.dq, c.n * c.dk, slack);
    check("dk", t, g.dk, want.dk, c.n * c.dk, slack);
    check("dv", t, g.dv, want.dv, c.n * c.dv, slack);
    pare_oracle_free(&orc);
    length_case_free(&c);
}

static void tiles_give_the_gradient(void **state)
{
    (void)state;
    for (size_t p = 0; p < 4; p++)
        for (uint32_t m = 1; m <= 128; m *= 4)
            for (int kind = 0; kind < REGIMES; kind++) {
                one_case(&patterns[p], m, PARE_F64, (regime)kind);
                one_case(&patterns[p], m, PARE_F32, (regime)kind);
            }
}

/* Against differences of the loss sum(dy * y). */
static void the_gradient_is_a_derivative(void **state)
{
    (void)state;
    length_case c = length_case_new(20, 3, 2, BENIGN, 5);
    double *const lse = doubles(c.a, c.n), *const dy = doubles(c.a, c.n * c.dv);
    double *const dk = doubles(c.a, c.n * c.dk);
    for (size_t i = 0; i < c.n * c.dv; i++) dy[i] = sin((double)i);
    pare_oracle orc = cpu_oracle(PARE_F64, 6, NULL);
    pare_err err = {0};
    pare_length_grad g = {.job = job_of(&c, PARE_F64),
                          .dy = dy,
                          .lddy = c.dv,
                          .lddq = c.dk,
                          .lddk = c.dk,
                          .lddv = c.dv};
    g.job.lse = lse, g.dk = dk, g.dq = doubles(c.a, 60), g.dv = doubles(c.a, 40);
    assert_ok(pare_length_attend(
                  &orc, NULL,
                  &(pare_length_layer){.jobs = &g.job, .count = 1, .pattern = &patterns[3]}, NULL,
                  NULL, &err),
              &err);
    assert_ok(pare_length_backward(&g, PARE_F64, 6, &patterns[3], NULL, NULL, NULL, &err), &err);
    for (size_t x = 0; x < c.n * c.dk; x += 7) {
        double loss[2] = {0};
        for (int side = 0; side < 2; side++) {
            c.k[x] += side ? -2e-5 : 1e-5;
            assert_ok(pare_length_attend(
                          &orc, NULL,
                          &(pare_length_layer){.jobs = &g.job, .count = 1, .pattern = &patterns[3]},
                          NULL, NULL, &err),
                      &err);
            for (size_t i = 0; i < c.n * c.dv; i++) loss[side] += dy[i] * c.y[i];
        }
        c.k[x] += 1e-5;
        assert_near((loss[0] - loss[1]) / 2e-5, dk[x], 1e-8);
    }
    pare_oracle_free(&orc);
    length_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_give_the_gradient),
        cmocka_unit_test(the_gradient_is_a_derivative),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
