/* Tests src/length/length.c and the rest: what is refused, what is the same whatever the machine
 * does, what a broken engine leads to, and golden vectors. */
#include "oracle_wrappers.h"
#include "base/json.h"
#include "length_cases.h"

static pare_status attend(length_case *c, const pare_pattern *p, uint32_t m, pare_dtype t,
                          const pare_length_opts *o, pare_length_stats *s, const pare_exec *x,
                          pare_err *err)
{
    pare_oracle orc = cpu_oracle(t, m, x);
    const pare_length_job job = job_of(c, t);
    const pare_status st = pare_length_attend(
        &orc, o, &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p}, s, x, err);
    pare_oracle_free(&orc);
    return st;
}

static const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL},
                          sinks = {.kind = PARE_WINDOW, .window = 9, .sinks = 2};
static const pare_length_opts native = {.mode = PARE_LENGTH_NATIVE},
                              on_full = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
                              on_causal = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL},
                              one_vector = {.mode = PARE_LENGTH_ZEROREF,
                                            .features = QKV_FULL,
                                            .one_vector = true};

/* Any M gives the same attention, from 2 (one usable key) to beyond N. */
static void any_length_will_do(void **state)
{
    (void)state;
    const pare_pattern *const patterns[] = {&full, &causal, &sinks};
    const pare_length_opts *const ways[] = {&native, &on_full, &on_causal, &one_vector};
    for (size_t p = 0; p < 3; p++) {
        length_case c = length_case_new(23, 3, 2, PEAKY, p);
        length_case_exact(&c, patterns[p], NULL);
        for (uint32_t m = 2; m <= 24; m++)
            for (size_t w = 0; w < (m > 2 && !p ? 4 : 3); w++)
                for (int f = 0; f < 2; f++) {
                    const pare_dtype t = f ? PARE_F32 : PARE_F64;
                    pare_length_stats s;
                    pare_err err = {0};
                    assert_ok(attend(&c, patterns[p], m, t, ways[w], &s, NULL, &err), &err);
                    assert_true(error_in(&c, t) <= allowed(&c, t));
                    assert_int_equal(s.simulated, m < 23);
                    if (m >= 23 && ((w == 1 && p == 0) || (w == 2 && p == 1)))
                        assert_int_equal(s.calls, 1);
                }
        pare_err err = {0};
        assert_ok(attend(&c, patterns[p], 1, PARE_F64, &native, NULL, NULL, &err), &err);
        assert_true(error_in(&c, PARE_F64) <= allowed(&c, PARE_F64));
        length_case_free(&c);
    }
}

/* A constant added to a row's logits changes nothing; the fall-back says so. */
static void shifts_do_no_harm(void **state)
{
    (void)state;
    bool fell_back = false, probed = false;
    for (int f = 0; f < 2; f++)
        for (double shift = 1; shift <= (f ? 300 : 3000); shift *= 3.3) {
            const pare_dtype t = f ? PARE_F32 : PARE_F64;
            length_case c = length_case_new(70, 4, 3, BENIGN, 4);
            for (size_t i = 0; i < c.n; i++) {
                c.k[i * 4] = (double)(c.kf[i * 4] = 1);
                c.q[i * 4] = (double)(c.qf[i * 4] = (float)(i % 2 ? shift : -shift));
            }
            length_case_exact(&c, &causal, NULL);
            for (int way = 0; way < 3; way++) {
                pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF};
                o.reference = way == 1 ? PARE_REF_ZERO : way == 2 ? PARE_REF_MEAN : PARE_REF_AUTO;
                pare_length_stats s;
                pare_err err = {0};
                assert_ok(attend(&c, &causal, 16, t, &o, &s, NULL, &err), &err);
                const double u = f ? 0x1p-24 : 0x1p-53;
                assert_true(error_in(&c, t) <= 4 * allowed(&c, t) + 128 * u);
                fell_back |= s.bad_rows > 0 && s.fallback_calls > 0 && s.rounds == 3;
                probed |= s.reference == PARE_REF_PROBE;
            }
            length_case_free(&c);
        }
    assert_true(fell_back && probed);
}

/* Neither threads nor batches change a bit. */
static void bits_depend_on_nothing_but_the_input(void **state)
{
    (void)state;
    const pare_length_opts *const ways[] = {&native, &on_full, &on_causal};
    for (size_t w = 0; w < 6; w++) {
        const bool wide =
            w >= 3; /* whole vectors, and blocks of queries with many blocks of keys */
        length_case c =
            wide ? length_case_new(420, 32, 36, PEAKY, 12) : length_case_new(150, 5, 6, PEAKY, 12);
        const size_t bytes = c.n * c.dv * sizeof(float);
        float *const want = floats(c.a, c.n * c.dv);
        for (int threads = 1; threads <= 8; threads += threads < 2 ? 1 : 3)
            for (size_t batch = 0; batch <= 5000; batch = batch * 10 + 500) {
                const pare_exec x = {.threads = threads};
                pare_length_opts o = *ways[w % 3];
                pare_err err = {0};
                o.batch_bytes = batch;
                assert_ok(attend(&c, wide ? &full : &sinks, 16, PARE_F32, &o, NULL, &x, &err),
                          &err);
                if (threads == 1 && batch == 0) memcpy(want, c.yf, bytes);
                assert_memory_equal(c.yf, want, bytes);
            }
        length_case_free(&c);
    }
}

/* Later tokens do not change earlier rows, bit for bit. */
static void the_future_is_not_seen(void **state)
{
    (void)state;
    const pare_length_opts *const ways[] = {&native, &on_full, &on_causal};
    for (size_t w = 0; w < 3; w++) {
        length_case c = length_case_new(60, 4, 3, BENIGN, 2);
        float *const want = floats(c.a, c.n * c.dv);
        pare_err err = {0};
        assert_ok(attend(&c, &causal, 8, PARE_F32, ways[w], NULL, NULL, &err), &err);
        memcpy(want, c.yf, c.n * c.dv * sizeof *want);
        for (size_t i = 40 * 4; i < 60 * 4; i++) c.qf[i] /= 2, c.kf[i] /= 2; /* norms: not larger */
        for (size_t i = 40 * 3; i < 60 * 3; i++) c.vf[i] += 1;
        assert_ok(attend(&c, &causal, 8, PARE_F32, ways[w], NULL, NULL, &err), &err);
        assert_memory_equal(c.yf, want, 40 * c.dv * sizeof *want);
        assert_true(memcmp(c.yf, want, c.n * c.dv * sizeof *want) != 0);
        length_case_free(&c);
    }
}

/* Full attention does not know the order of its keys, up to rounding. */
static void the_order_of_keys_does_not_matter(void **state)
{
    (void)state;
    const pare_length_opts *const ways[] = {&native, &on_full, &on_causal};
    for (int kind = 0; kind < REGIMES; kind++)
        for (size_t w = 0; w < 3; w++)
            for (int f = 0; f < 2; f++) {
                const pare_dtype t = f ? PARE_F32 : PARE_F64;
                length_case c = length_case_new(61, 4, 3, (regime)kind, 21);
                pare_rng r = pare_rng_at(21, w);
                pare_err err = {0};
                length_case_exact(&c, &full, NULL);
                for (size_t i = c.n; i-- > 1;) { /* keys and values: the exact answer stays */
                    const size_t j = pare_rng_below(&r, i + 1);
                    for (size_t e = 0; e < c.dk; e++) {
                        const double x = c.k[i * c.dk + e];
                        c.k[i * c.dk + e] = c.k[j * c.dk + e], c.k[j * c.dk + e] = x;
                    }
                    for (size_t e = 0; e < c.dv; e++) {
                        const double x = c.v[i * c.dv + e];
                        c.v[i * c.dv + e] = c.v[j * c.dv + e], c.v[j * c.dv + e] = x;
                    }
                }
                for (size_t i = 0; i < c.n * c.dk; i++) c.kf[i] = (float)c.k[i];
                for (size_t i = 0; i < c.n * c.dv; i++) c.vf[i] = (float)c.v[i];
                assert_ok(attend(&c, &full, 8, t, ways[w], NULL, NULL, &err), &err);
                assert_le(error_in(&c, t), allowed(&c, t));
                length_case_free(&c);
            }
}

static void broken_engines_are_named(void **state)
{
    (void)state;
    static const pare_fault_kind kinds[] = {PARE_FAULT_REFUSE, PARE_FAULT_LOSE, PARE_FAULT_NAN,
                                            PARE_FAULT_SHORT};
    for (size_t k = 0; k < 4; k++)
        for (int w = 0; w < 2; w++) {
            length_case c = length_case_new(40, 3, 2, BENIGN, 6);
            pare_fault faults[64];
            for (uint64_t i = 0; i < 64; i++) faults[i] = (pare_fault){i + 3, kinds[k], 0};
            pare_oracle orc;
            pare_err err = {0};
            assert_int_equal(
                pare_oracle_faulty(&orc, cpu_oracle(PARE_F32, 16, NULL), faults, 64, &err),
                PARE_OK);
            const pare_length_job job = job_of(&c, PARE_F32);
            const pare_status st = pare_length_attend(
                &orc, w ? &on_full : &native,
                &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &full}, NULL, NULL, &err);
            assert_int_equal(st, k < 2 ? PARE_ERR_IO : PARE_ERR_NUMERIC);
            if (k >= 2 && !w) assert_contains(err.msg, "oracle call 3 ");
            if (k >= 2 && w) assert_contains(err.msg, "length:");
            pare_oracle_free(&orc);
            length_case_free(&c);
        }
}

static void bad_inputs_are_refused(void **state)
{
    (void)state;
    length_case c = length_case_new(20, 3, 2, BENIGN, 1);
    const pare_pattern none = {.kind = PARE_WINDOW};
    pare_length_stats s;
    pare_err err = {0};
    assert_int_equal(attend(&c, &full, 1, PARE_F64, &on_full, &s, NULL, &err), PARE_ERR_INPUT);
    assert_contains(err.msg, "no room for the reference");
    assert_int_equal(attend(&c, &none, 8, PARE_F64, &native, &s, NULL, &err), PARE_ERR_INPUT);
    const pare_length_opts longer = {.length = 9};
    assert_int_equal(attend(&c, &full, 8, PARE_F64, &longer, &s, NULL, &err), PARE_ERR_INPUT);
    const pare_length_opts strict = {.mode = PARE_LENGTH_STRICT};
    assert_int_equal(attend(&c, &full, 8, PARE_F64, &strict, &s, NULL, &err), PARE_ERR_INPUT);
    const pare_length_opts sample = {.mode = PARE_LENGTH_SAMPLE};
    assert_int_equal(attend(&c, &sinks, 8, PARE_F64, &sample, &s, NULL, &err), PARE_ERR_INPUT);
    c.k[7] = NAN;
    assert_int_equal(attend(&c, &full, 8, PARE_F64, &native, &s, NULL, &err), PARE_ERR_NONFINITE);
    assert_contains(err.msg, "k of head 0: row 2, column 1");
    c.n = 0;
    assert_ok(attend(&c, &full, 8, PARE_F64, &native, &s, NULL, &err), &err);
    assert_int_equal(s.calls, 0);
    length_case_free(&c);
}

/* Windows and sinks that are as long as the input are causal. */
static void wide_windows_are_causal(void **state)
{
    (void)state;
    const pare_pattern wide = {.kind = PARE_WINDOW, .window = 500},
                       sunk = {.kind = PARE_WINDOW, .window = 2, .sinks = 100};
    length_case c = length_case_new(50, 3, 2, BENIGN, 1);
    length_case_exact(&c, &causal, NULL);
    pare_err err = {0};
    assert_ok(attend(&c, &wide, 8, PARE_F64, &on_causal, NULL, NULL, &err), &err);
    assert_true(error_in(&c, PARE_F64) <= allowed(&c, PARE_F64));
    assert_ok(attend(&c, &sunk, 8, PARE_F64, &on_causal, NULL, NULL, &err), &err);
    assert_true(error_in(&c, PARE_F64) <= allowed(&c, PARE_F64));
    length_case_free(&c);
}

/* Zero queries, zero values, equal keys: means and zeros. */
static void degenerate_inputs_are_exact(void **state)
{
    (void)state;
    length_case c = length_case_new(40, 3, 2, BENIGN, 1);
    pare_err err = {0};
    memset(c.q, 0, c.n * c.dk * sizeof *c.q);
    length_case_exact(&c, &full, NULL);
    assert_ok(attend(&c, &full, 8, PARE_F64, &on_full, NULL, NULL, &err), &err);
    assert_true(error_in(&c, PARE_F64) <= allowed(&c, PARE_F64));
    memset(c.v, 0, c.n * c.dv * sizeof *c.v);
    assert_ok(attend(&c, &full, 8, PARE_F64, &on_full, NULL, NULL, &err), &err);
    for (size_t i = 0; i < c.n * c.dv; i++) assert_true(c.y[i] == 0);
    length_case_free(&c);
}

/* Logits that f32 cannot hold are an error, never a nan. */
static void overflow_is_an_error(void **state)
{
    (void)state;
    length_case c = length_case_new(40, 3, 2, BENIGN, 1);
    for (size_t i = 0; i < c.n * c.dk; i++) c.qf[i] *= 1e20f, c.kf[i] *= 1e20f;
    pare_err err = {0};
    assert_int_equal(attend(&c, &full, 8, PARE_F32, &on_full, NULL, NULL, &err), PARE_ERR_NUMERIC);
    assert_contains(err.msg, "logit overflow");
    assert_int_equal(attend(&c, &full, 8, PARE_F32, &native, NULL, NULL, &err), PARE_ERR_NUMERIC);
    length_case_free(&c);
}

/* ---- an engine of half precision: inputs, weights and outputs are rounded to f16 ------------- */

static double half(double x)
{
    int e;
    if (x == 0 || !isfinite(x)) return x;
    frexp(x, &e);
    const double unit = ldexp(1, e - 11 < -24 ? -24 : e - 11); /* 11 bits, or the smallest number */
    return rint(x / unit) * unit;
}

static void half_caps(void *self, pare_oracle_caps *out)
{
    (void)self;
    *out = (pare_oracle_caps){.size = sizeof *out,
                              .features = QKV_FULL,
                              .max_len = 64,
                              .dtype = PARE_F32,
                              .exp_flush = 17.5,
                              .exp_err = 8192,
                              .w_min = 0x1p-12};
}

static pare_status half_evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    (void)self, (void)err;
    for (size_t x = 0; x < n; x++) {
        const pare_call_qkv *const a = &calls[x].u.a;
        const float *const q = a->q, *const k = a->k, *const v = a->v;
        for (size_t i = 0; i < a->n; i++) {
            double s[64], top = -INFINITY, sum = 0;
            for (size_t j = 0; j < a->n; j++) {
                s[j] = 0;
                for (size_t e = 0; e < a->dk; e++)
                    s[j] += half((double)q[i * a->dk + e]) * half((double)k[j * a->dk + e]);
                top = fmax(top, s[j]);
            }
            for (size_t j = 0; j < a->n; j++) sum += s[j] = exp(s[j] - top);
            for (size_t e = 0; e < a->dv; e++) {
                double y = 0;
                for (size_t j = 0; j < a->n; j++)
                    y += half(s[j] / sum) * half((double)v[j * a->dv + e]);
                ((float *)a->y)[i * a->dv + e] = (float)half(y);
            }
        }
    }
    return PARE_OK;
}

static pare_status half_barrier(void *self, pare_err *err)
{
    (void)self, (void)err;
    return PARE_OK;
}

static void half_destroy(void *self)
{
    (void)self;
}

/* w_min says how coarse it is; the mean key keeps every row within reach (docs/theory/length.md
 * "The zero reference").
 */
static void half_precision_will_do(void **state)
{
    (void)state;
    static const pare_oracle_ops ops = {half_caps, half_evaluate, half_barrier, half_destroy};
    const pare_oracle orc = {&ops, NULL};
    for (double std = 1; std <= 8; std *= 2) {
        length_case c = length_case_new(300, 8, 4, BENIGN, 3);
        for (size_t i = 0; i < c.n * c.dk; i++) {
            c.q[i] = (double)(c.qf[i] = (float)half(c.q[i] * std)); /* numbers it can hold */
            c.k[i] = (double)(c.kf[i] = (float)half(c.k[i]));
        }
        for (size_t i = 0; i < c.n * c.dv; i++) c.v[i] = (double)(c.vf[i] = (float)half(c.v[i]));
        for (size_t i = 0; i < c.n; i++) exact_row(&c, &full, NULL, i);
        const pare_length_job job = job_of(&c, PARE_F32);
        pare_length_stats s;
        pare_err err = {0};
        assert_ok(pare_length_attend(
                      &orc, NULL, &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &full},
                      &s, NULL, &err),
                  &err);
        assert_true(error_in(&c, PARE_F32) <= 0.03);
        assert_int_equal(s.reference, PARE_REF_MEAN);
        length_case_free(&c);
    }
}

static double *golden(pare_arena *a, const cJSON *at, const char *key, size_t shape[2])
{
    const cJSON *const part = cJSON_GetObjectItemCaseSensitive(at, key);
    const cJSON *const dims = cJSON_GetObjectItemCaseSensitive(part, "shape");
    const char *file;
    char path[300];
    assert_int_equal(pare_json_string(&file, part, "file", NULL), PARE_OK);
    shape[0] = (size_t)cJSON_GetArrayItem(dims, 0)->valuedouble;
    shape[1] = (size_t)cJSON_GetArrayItem(dims, 1)->valuedouble;
    snprintf(path, sizeof path, "../shared/reference/length/golden/%s", file);
    FILE *const f = fopen(path, "rb");
    assert_non_null(f);
    double *const x = doubles(a, shape[0] * shape[1]);
    assert_int_equal(fread(x, sizeof *x, shape[0] * shape[1], f), shape[0] * shape[1]);
    fclose(f);
    return x;
}

/* 32 attention cases of an independent numpy implementation, native and with a reference. */
static void attention_is_the_golden_one(void **state)
{
    (void)state;
    const char *const path = "../shared/reference/length/golden/manifest.json";
    NEED_SHARED(path);
    cJSON *all = NULL;
    assert_int_equal(pare_json_read(&all, path, NULL), PARE_OK);
    const cJSON *at;
    size_t seen = 0;
    cJSON_ArrayForEach(at, all)
    {
        const char *kind;
        size_t q[2], k[2], v[2], y[2], m;
        assert_int_equal(pare_json_string(&kind, at, "kind", NULL), PARE_OK);
        if (strcmp(kind, "attention") != 0) continue;
        pare_arena *const a = pare_arena_new();
        pare_length_job job = {.scale = 1};
        job.q = golden(a, at, "Q", q), job.k = golden(a, at, "K", k), job.v = golden(a, at, "V", v);
        const double *const want = golden(a, at, "Y", y);
        job.n = q[0], job.dk = job.ldq = job.ldk = q[1], job.dv = job.ldv = job.ldy = v[1];
        double *const got = job.y = doubles(a, job.n * job.dv);
        const cJSON *const mask = cJSON_GetObjectItemCaseSensitive(at, "mask");
        const char *const name = cJSON_GetArrayItem(mask, 0)->valuestring;
        pare_pattern p = {.kind = strcmp(name, "full") == 0     ? PARE_FULL
                                  : strcmp(name, "causal") == 0 ? PARE_CAUSAL
                                                                : PARE_WINDOW};
        if (p.kind == PARE_WINDOW) p.window = (size_t)cJSON_GetArrayItem(mask, 1)->valuedouble;
        if (strcmp(name, "sink") == 0) p.sinks = (size_t)cJSON_GetArrayItem(mask, 2)->valuedouble;
        assert_int_equal(pare_json_size(&m, at, "M", NULL), PARE_OK);
        const pare_length_opts *const ways[] = {&native, &on_full, &on_causal};
        for (size_t w = 0; w < 3; w++) {
            pare_oracle orc = cpu_oracle(PARE_F64, (uint32_t)m, NULL);
            pare_length_stats s;
            pare_err err = {0};
            assert_ok(
                pare_length_attend(&orc, ways[w],
                                   &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &p},
                                   &s, NULL, &err),
                &err);
            for (size_t i = 0; i < job.n * job.dv; i++) assert_near(got[i], want[i], 1e-12);
            if (w == 0) {
                size_t tiles;
                assert_int_equal(pare_json_size(&tiles, at, "native_tiles", NULL), PARE_OK);
                assert_int_equal(s.calls, tiles);
            }
            pare_oracle_free(&orc);
        }
        pare_arena_free(a);
        seen++;
    }
    assert_int_equal(seen, 32);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_length_will_do),
        cmocka_unit_test(shifts_do_no_harm),
        cmocka_unit_test(bits_depend_on_nothing_but_the_input),
        cmocka_unit_test(the_future_is_not_seen),
        cmocka_unit_test(the_order_of_keys_does_not_matter),
        cmocka_unit_test(broken_engines_are_named),
        cmocka_unit_test(bad_inputs_are_refused),
        cmocka_unit_test(wide_windows_are_causal),
        cmocka_unit_test(degenerate_inputs_are_exact),
        cmocka_unit_test(overflow_is_an_error),
        cmocka_unit_test(half_precision_will_do),
        cmocka_unit_test(attention_is_the_golden_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
