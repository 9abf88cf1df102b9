/* Tests src/length/{mode_sample,sampling_bound,mode_chunk}.c: the bound of a sampled row
 * holds, and rows that cannot be proven are computed exactly. */
#include "length_cases.h"

enum { N = 1200, D = 4, M = 401, SEEDS = 200 };

/* Logits of deviation `std`, values around `mean`. */
static length_case gentle(double std, double mean, uint64_t seed)
{
    length_case c = length_case_new(N, D, 3, BENIGN, seed);
    for (size_t i = 0; i < N * D; i++) c.q[i] = (double)(c.qf[i] = (float)(c.q[i] * std));
    for (size_t i = 0; i < N * 3; i++) c.v[i] = (double)(c.vf[i] = (float)(c.v[i] + mean));
    return c;
}

static const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL};

static double row_error(const length_case *c, pare_dtype t, size_t i)
{
    double s = 0;
    for (size_t e = 0; e < c->dv; e++) {
        const double y = t == PARE_F32 ? (double)c->yf[i * c->dv + e] : c->y[i * c->dv + e];
        s += (y - c->exact[i * c->dv + e]) * (y - c->exact[i * c->dv + e]);
    }
    return sqrt(s);
}

static pare_length_stats sample_by(length_case *c, pare_dtype t, uint32_t m, const pare_pattern *p,
                                   const pare_length_opts *o, double *bound)
{
    pare_oracle orc = cpu_oracle(t, m, NULL);
    pare_length_job job = job_of(c, t);
    pare_length_stats s;
    pare_err err = {0};
    job.bound = bound;
    assert_ok(pare_length_attend(&orc, o,
                                 &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p}, &s,
                                 NULL, &err),
              &err);
    pare_oracle_free(&orc);
    return s;
}

static pare_length_stats sample(length_case *c, pare_dtype t, const pare_length_opts *o,
                                double *bound)
{
    return sample_by(c, t, M, &full, o, bound);
}

/* All rows at once in at least 1 - delta of the seeds; here in all of them. */
static void the_bound_holds_for_all_rows(void **state)
{
    (void)state;
    static double bound[N];
    double used = 0;
    size_t broken = 0, sampled = 0;
    for (int kind = 0; kind < 2; kind++) {
        length_case c = gentle(kind ? 0.2 : 0.02, 3, 11);
        length_case_exact(&c, &full, NULL);
        for (uint64_t seed = (uint64_t)kind; seed < SEEDS; seed += 2) {
            const pare_dtype t = seed % 4 < 2 ? PARE_F32 : PARE_F64;
            const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE, .seed = seed, .delta = 0.1};
            const pare_length_stats s = sample(&c, t, &o, bound);
            bool held = true;
            for (size_t i = 0; i < N; i++) {
                const double off = row_error(&c, t, i);
                if (!(off <= bound[i])) held = false;
                if (bound[i] > 0) used = fmax(used, off / bound[i]);
            }
            broken += !held;
            sampled += N - s.exact_rows;
            assert_int_equal(s.unproven_rows, 0);
            assert_true(s.relative <= 0.5);
            assert_int_equal(s.calls, (N + M - 1) / M);
        }
        length_case_free(&c);
    }
    print_message("seeds 0..%d: %zu broken, largest error / bound %.3f, sampled rows %zu\n",
                  SEEDS - 1, broken, used, sampled);
    assert_int_equal(broken, 0);
    assert_true(sampled > SEEDS * N / 4); /* else nothing was tested */
    assert_true(used > 0.1);              /* as tight as it was: 0.124, of errors that are random */
}

static void what_cannot_be_proven_is_computed(void **state)
{
    (void)state;
    static double bound[N];
    for (int kind = 0; kind < REGIMES; kind++) {
        length_case c = length_case_new(N, D, 3, (regime)kind, 5); /* values around 0 */
        length_case_exact(&c, &full, NULL);
        for (int f = 0; f < 2; f++) {
            const pare_dtype t = f ? PARE_F32 : PARE_F64;
            const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE, .eps = 1e-3};
            const pare_length_stats s = sample(&c, t, &o, bound);
            assert_int_equal(s.exact_rows, N);
            assert_true(s.fallback_calls > s.calls);
            assert_true(error_in(&c, t) <= allowed(&c, t));
            for (size_t i = 0; i < N; i++) assert_true(row_error(&c, t, i) <= bound[i]);
            const pare_length_opts no = {
                .mode = PARE_LENGTH_SAMPLE, .eps = 1e-3, .no_fallback = true};
            const pare_length_stats r = sample(&c, t, &no, bound);
            assert_int_equal(r.unproven_rows, N);
            assert_int_equal(r.fallback_calls, 0);
            assert_int_equal(r.exact_rows, 0);
        }
        length_case_free(&c);
    }
}

static void all_blocks_are_exact(void **state)
{
    (void)state;
    length_case c = gentle(1, 0, 3);
    length_case_exact(&c, &full, NULL);
    const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE, .blocks = 3}; /* 3 x 400 = N */
    const pare_length_stats s = sample(&c, PARE_F64, &o, NULL);
    assert_true(error_in(&c, PARE_F64) <= 1e-13);
    assert_int_equal(s.calls, 9);
    length_case_free(&c);
}

/* ---- under a causal mask --------------------------------------------------------------------- */

enum { SHORT = 201, CAUSAL_SEEDS = 40 };

static uint64_t planned_calls(const pare_length_opts *o, uint32_t m)
{
    const pare_oracle_caps caps = {.max_len = m,
                                   .features = QKV_FULL | QKV_CAUSAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_length_head h = {0, D, 3};
    pare_arena *const a = pare_arena_new();
    pare_length_plan plan;
    pare_err err = {0};
    assert_ok(pare_length_plan_make(
                  &plan, a,
                  &(pare_length_shape){.heads = &h, .count = 1, .tokens = N, .pattern = &causal},
                  &caps, o, &err),
              &err);
    pare_arena_free(a);
    return plan.cost.calls;
}

/* The own block is seen, what is before it is drawn: on either softmax, and as planned. */
static void the_causal_bound_holds_for_all_rows(void **state)
{
    (void)state;
    static double bound[N];
    double used = 0;
    size_t broken = 0, exact = 0;
    length_case c = gentle(0.1, 10, 11);
    length_case_exact(&c, &causal, NULL);
    for (uint64_t seed = 0; seed < CAUSAL_SEEDS; seed++) {
        const pare_dtype t = seed % 4 < 2 ? PARE_F32 : PARE_F64;
        const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE,
                                    .features = seed % 2 ? QKV_FULL : QKV_CAUSAL,
                                    .seed = seed,
                                    .delta = 0.1};
        const pare_length_stats s = sample_by(&c, t, SHORT, &causal, &o, bound);
        bool held = true;
        for (size_t i = 0; i < N; i++) {
            const double off = row_error(&c, t, i);
            if (!(off <= bound[i])) held = false;
            if (i >= 2 * (SHORT - 1)) used = fmax(used, off / bound[i]); /* drawn ones */
        }
        broken += !held;
        exact += s.exact_rows;
        assert_int_equal(s.unproven_rows, 0);
        assert_true(s.relative <= 0.5 && s.relative > 0);
        assert_int_equal(s.calls, planned_calls(&o, SHORT));
    }
    print_message("seeds 0..%d: %zu broken, largest error / bound %.3f, computed rows %zu\n",
                  CAUSAL_SEEDS - 1, broken, used, exact);
    assert_int_equal(broken, 0);
    assert_true(exact < CAUSAL_SEEDS * N / 4); /* else nothing was tested */
    assert_true(used > 0.025);                 /* as tight as it was: 0.033 */
    length_case_free(&c);
}

/* Values that grow with the position: only when every drawn key counts for all that it stands for
 * is the past as heavy as it should be. */
static void drawn_keys_stand_for_the_others(void **state)
{
    (void)state;
    length_case c = gentle(0.02, 0, 4);
    for (size_t i = 0; i < N * 3; i++) {
        const double x = (double)(i / 3) / N;
        c.v[i] = (double)(c.vf[i] = (float)(1 + 9 * x * x * x * x));
    }
    length_case_exact(&c, &causal, NULL);
    for (uint64_t seed = 0; seed < 4; seed++) {
        const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE,
                                    .features = seed % 2 ? QKV_FULL : QKV_CAUSAL,
                                    .seed = seed,
                                    .no_fallback = true};
        sample_by(&c, PARE_F64, SHORT, &causal, &o, NULL);
        for (size_t i = 0; i < N; i++) assert_le(row_error(&c, PARE_F64, i), 0.2 * c.exact[3 * i]);
    }
    length_case_free(&c);
}

static void causal_rows_that_cannot_be_proven_are_computed(void **state)
{
    (void)state;
    static double bound[N];
    for (int kind = 0; kind < REGIMES; kind++) {
        length_case c = length_case_new(N, D, 3, (regime)kind, 5);
        length_case_exact(&c, &causal, NULL);
        for (int w = 0; w < 4; w++) {
            const pare_dtype t = w & 1 ? PARE_F32 : PARE_F64;
            const pare_length_opts o = {
                .mode = PARE_LENGTH_SAMPLE, .features = w & 2 ? QKV_FULL : QKV_CAUSAL, .eps = 1e-3};
            const pare_length_stats s = sample_by(&c, t, SHORT, &causal, &o, bound);
            assert_true(s.exact_rows > 0 && s.exact_rows <= N - 2 * (SHORT - 1));
            assert_true(s.fallback_calls > 0);
            assert_true(error_in(&c, t) <= allowed(&c, t));
            for (size_t i = 0; i < N; i++) assert_true(row_error(&c, t, i) <= bound[i]);
        }
        const pare_length_opts all = {.mode = PARE_LENGTH_SAMPLE, .blocks = 6}; /* 6 x 200 = N */
        const pare_length_stats s = sample_by(&c, PARE_F64, SHORT, &causal, &all, bound);
        assert_int_equal(s.calls, planned_calls(&all, SHORT));
        assert_true(error_in(&c, PARE_F64) <= allowed(&c, PARE_F64));
        length_case_free(&c);
    }
}

/* The baseline knows nothing of other chunks. */
static void chunks_see_only_themselves(void **state)
{
    (void)state;
    length_case c = gentle(1, 0, 9);
    const pare_length_opts o = {.mode = PARE_LENGTH_CHUNK};
    const pare_length_stats s = sample(&c, PARE_F64, &o, NULL);
    assert_int_equal(s.calls, (N + M - 1) / M);
    for (size_t b = 0; b < N; b += M) {
        const size_t n = N - b < M ? N - b : M;
        static double y[M * 3];
        pare_mat out = pare_mat_of(y, n, 3);
        const pare_mat q = pare_mat_of(c.q + b * D, n, D), k = pare_mat_of(c.k + b * D, n, D),
                       v = pare_mat_of(c.v + b * 3, n, 3);
        assert_int_equal(
            pare_attend_f64(
                &out,
                &(pare_attention_args){.q = &q, .k = &k, .v = &v, .scale = 1, .pattern = &full},
                NULL, NULL),
            PARE_OK);
        for (size_t i = 0; i < n * 3; i++) assert_near(c.y[b * 3 + i], y[i], 1e-13);
    }
    length_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_holds_for_all_rows),
        cmocka_unit_test(what_cannot_be_proven_is_computed),
        cmocka_unit_test(all_blocks_are_exact),
        cmocka_unit_test(the_causal_bound_holds_for_all_rows),
        cmocka_unit_test(drawn_keys_stand_for_the_others),
        cmocka_unit_test(causal_rows_that_cannot_be_proven_are_computed),
        cmocka_unit_test(chunks_see_only_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
