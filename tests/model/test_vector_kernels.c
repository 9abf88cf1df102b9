/* Tests src/model/vector_activation.c and vector_norm.c: the f32 engine's element-wise kernels keep
 * what src/cert/enclose.h grants them, on every instruction set this CPU has. */
#include "model/vector_kernels.h"
#include "pare_test.h"

enum { MOST = 1 << 12 };
static const double u32 = 0x1p-24, tiny = 0x1p-126;

typedef struct numbers {
    float v[MOST];
    size_t n;
} numbers;

/* Every exponent and both signs, and finely where functions bend. */
static numbers sample(unsigned part, unsigned parts)
{
    numbers s = {.n = 0};
    pare_rng r = pare_rng_at(7, part);
    for (size_t i = 0; i < MOST; i++) {
        uint32_t bits = (uint32_t)(pare_rng_u32(&r) & 0x807FFFFFu);
        bits |= (uint32_t)((i * parts + part) % 255) << 23;
        memcpy(&s.v[s.n], &bits, sizeof bits);
        if (i % 2 == 1) s.v[s.n] = (float)(40 * (pare_rng_uniform(&r) - 0.5));
        if (i % 32 == 3) s.v[s.n] = (float)(220 * (pare_rng_uniform(&r) - 0.5));
        s.n++;
    }
    return s;
}

static double ulp_of(double y)
{
    return y == 0 ? 0x1p-149 : fmax(ldexp(1, ilogb(y) - 23), 0x1p-149);
}

static void functions_are_within_two_ulp(void **state)
{
    (void)state;
    for (unsigned part = 0; part < 100; part++) {
        const numbers s = sample(part, 100);
        for (const char *f = "etf"; *f; f++) {
            numbers y = s;
            vector_function(simd_best(), y.v, y.n, *f);
            for (size_t i = 0; i < s.n; i++) {
                const double x = (double)s.v[i];
                const double want = *f == 'e' ? exp(x) : *f == 't' ? tanh(x) : erf(x);
                if (want > 0x1.ffffffp127) {
                    assert_true(isinf(y.v[i]));
                } else if (!(fabs((double)y.v[i] - want) <= 2 * ulp_of(want))) {
                    fail_msg("%c(%.9g) = %.9g, not %.9g", *f, x, (double)y.v[i], want);
                }
            }
        }
    }
}

static void functions_at_the_ends_are_exact(void **state)
{
    (void)state;
    float e[] = {0, -0.0f, -105, -1e30f, -INFINITY, 89, 1e30f, INFINITY, NAN};
    float t[] = {0, -0.0f, 20, -1e30f, -INFINITY, INFINITY, 1e-40f, NAN};
    float f[] = {0, -0.0f, 20, -1e30f, -INFINITY, INFINITY, NAN};
    vector_function(simd_best(), e, 9, 'e');
    vector_function(simd_best(), t, 8, 't');
    vector_function(simd_best(), f, 7, 'f');
    assert_true(e[0] == 1 && e[1] == 1 && e[2] == 0 && e[3] == 0 && e[4] == 0);
    assert_true(isinf(e[5]) && isinf(e[6]) && isinf(e[7]) && isnan(e[8]));
    assert_true(t[0] == 0 && signbit(t[1]) && t[2] == 1 && t[3] == -1 && t[4] == -1 && t[5] == 1);
    assert_true(t[6] == 1e-40f && isnan(t[7]));
    assert_true(f[0] == 0 && signbit(f[1]) && f[2] == 1 && f[3] == -1 && f[4] == -1 && f[5] == 1);
    assert_true(isnan(f[6]));
}

static double act_of(pare_act a, double x)
{
    switch (a) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x > 0 ? x : 0;
    case PARE_ACT_GELU:
        return 0.5 * x * erfc(-x * 0.70710678118654752440);
    case PARE_ACT_GELU_TANH:
        return x / (1 + exp(-1.59576912160573071176 * (x + 0.044715 * x * x * x)));
    case PARE_ACT_SILU:
        return x / (1 + exp(-x));
    case PARE_ACT_TANH:
        return tanh(x);
    }
    return NAN;
}

/* What src/cert/enclose_ffn.c adds for an activation's own rounding: 16 u |x| + 1024 tiny. */
static void activations_stay_within_what_the_proof_adds(void **state)
{
    (void)state;
    double worst[PARE_ACT_TANH + 1] = {0};
    for (unsigned part = 0; part < 100; part++) {
        const numbers s = sample(part, 100);
        for (pare_act a = PARE_ACT_NONE; a <= PARE_ACT_TANH; a++) {
            numbers y = s;
            vector_activation(simd_best(), y.v, NULL, y.n, a);
            for (size_t i = 0; i < s.n; i++) {
                const double x = (double)s.v[i], got = (double)y.v[i], want = act_of(a, x);
                if (!(fabs(got - want) <= 16 * u32 * fabs(x) + 1024 * tiny))
                    fail_msg("%s(%.9g) = %.9g, not %.9g", pare_act_name(a), x, got, want);
                if (fabs(x) > 1e-30) worst[a] = fmax(worst[a], fabs(got - want) / (u32 * fabs(x)));
            }
        }
    }
    assert_true(worst[PARE_ACT_NONE] == 0 && worst[PARE_ACT_RELU] == 0);
    for (pare_act a = PARE_ACT_GELU; a <= PARE_ACT_TANH; a++) assert_le(worst[a], 8);
}

static void a_gate_is_the_activation_times_the_other(void **state)
{
    (void)state;
    for (size_t n = 0; n < 70; n++) {
        float y[70], u[70], want[70];
        for (size_t i = 0; i < n; i++) {
            y[i] = want[i] = (float)i / 8 - 4;
            u[i] = 3 - (float)i / 16;
        }
        vector_activation(simd_best(), want, NULL, n, PARE_ACT_SILU);
        for (size_t i = 0; i < n; i++) want[i] *= u[i];
        vector_activation(simd_best(), y, u, n, PARE_ACT_SILU);
        assert_memory_equal(y, want, n * sizeof *y);
    }
}

/* ---- norms --------------------------------------------------------------------------------- */

enum { ROWS = 5, WIDEST = 203 };

typedef struct norm_case {
    float x[ROWS * WIDEST], offset[WIDEST], gain[WIDEST], bias[WIDEST];
    vector_norm k;
    size_t d;
} norm_case;

static norm_case some_norm(uint64_t seed)
{
    norm_case c = {.d = 1};
    pare_rng r = pare_rng_at(seed, 1);
    const size_t d =
        seed % 5 == 0 ? 16 * (1 + pare_rng_below(&r, 12)) : 1 + pare_rng_below(&r, 200);
    c.d = d;
    const double size = pow(10, 8 * pare_rng_uniform(&r) - 4);
    for (size_t i = 0; i < ROWS * d; i++)
        c.x[i] = (float)(size * (pare_rng_normal(&r) + (double)(seed % 3)));
    for (size_t j = 0; j < d; j++) {
        c.offset[j] = (float)(size * pare_rng_normal(&r));
        c.gain[j] = (float)pare_rng_normal(&r);
        c.bias[j] = (float)pare_rng_normal(&r);
    }
    c.k = (vector_norm){.kind = PARE_NORM_LAYER + seed % 4, .eps = 1e-5, .divisor = (double)d};
    if (seed % 7 == 0) c.k.shift = size;
    return c;
}

static void set_vectors(norm_case *c, uint64_t seed)
{
    c->k.gain = seed & 8 ? c->gain : NULL;
    c->k.bias = seed & 16 ? c->bias : NULL;
    c->k.offset = seed & 32 && c->k.kind != PARE_NORM_BATCH ? c->offset : NULL;
}

/* The definition in f64; returns how far off an entry may be: a few d u of the row's size. */
static double plain_norm(double *y, const norm_case *c, size_t row)
{
    const vector_norm *const k = &c->k;
    const bool centered = k->kind == PARE_NORM_LAYER || k->kind == PARE_NORM_MEAN;
    const bool divided = k->kind == PARE_NORM_LAYER || k->kind == PARE_NORM_RMS;
    double mean = 0, squares = 0, most = 0, gain = 1, bias = 0;
    for (size_t j = 0; j < c->d; j++) {
        y[j] = (double)c->x[row * c->d + j] + (k->offset ? (double)k->offset[j] : 0);
        most = fmax(most, fabs((double)c->x[row * c->d + j]) + fabs(y[j]));
        mean += y[j] / (double)c->d;
        if (k->gain) gain = fmax(gain, fabs((double)k->gain[j]));
        if (k->bias) bias = fmax(bias, fabs((double)k->bias[j]));
    }
    for (size_t j = 0; j < c->d; j++) {
        if (centered) y[j] -= mean;
        squares += y[j] * y[j];
    }
    const double by = sqrt((squares + k->shift) / k->divisor + k->eps);
    for (size_t j = 0; j < c->d; j++) {
        if (divided) y[j] = by > 0 ? y[j] / by : 0;
        if (k->gain) y[j] *= (double)k->gain[j];
        if (k->bias) y[j] += (double)k->bias[j];
    }
    const double scale = divided && by > 0 ? 1 / by : 1;
    return (20 + (double)c->d) * u32 * (most * scale * gain + bias);
}

static void norms_are_their_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        norm_case c = some_norm(seed);
        set_vectors(&c, seed);
        float y[ROWS * WIDEST], in_place[ROWS * WIDEST];
        double want[WIDEST];
        memcpy(in_place, c.x, sizeof c.x);
        vector_normalize(simd_best(), y, c.x, ROWS, c.d, &c.k);
        vector_normalize(simd_best(), in_place, in_place, ROWS, c.d, &c.k);
        assert_memory_equal(y, in_place, ROWS * c.d * sizeof *y);
        for (size_t i = 0; i < ROWS; i++) {
            const double off = plain_norm(want, &c, i);
            for (size_t j = 0; j < c.d; j++)
                if (!(fabs((double)y[i * c.d + j] - want[j]) <= off))
                    fail_msg("seed %llu, kind %d, width %zu: %.9g, not %.9g",
                             (unsigned long long)seed, (int)c.k.kind, c.d, (double)y[i * c.d + j],
                             want[j]);
        }
    }
}

static void a_zero_row_stays_zero_without_eps(void **state)
{
    (void)state;
    float x[40] = {0};
    const vector_norm rms = {.kind = PARE_NORM_RMS, .divisor = 40};
    const vector_norm layer = {.kind = PARE_NORM_LAYER, .divisor = 40};
    vector_normalize(simd_best(), x, x, 1, 40, &rms);
    for (size_t j = 0; j < 40; j++) assert_true(x[j] == 0);
    for (size_t j = 0; j < 40; j++) x[j] = 3;
    vector_normalize(simd_best(), x, x, 1, 40, &layer);
    for (size_t j = 0; j < 40; j++) assert_true(x[j] == 0);
}

static void sums_are_entry_by_entry(void **state)
{
    (void)state;
    for (size_t d = 1; d < 70; d++) {
        float y[3 * 70], z[3 * 70], x[3 * 70], w[70];
        for (size_t i = 0; i < 3 * d; i++) {
            y[i] = z[i] = (float)i;
            x[i] = 1 + (float)i / 4;
        }
        for (size_t j = 0; j < d; j++) w[j] = (float)j - 20;
        vector_add(simd_best(), y, x, NULL, 3, d);
        vector_add(simd_best(), z, x, w, 3, d);
        for (size_t i = 0; i < 3 * d; i++) {
            assert_true(y[i] == (float)i + x[i]);
            assert_true(z[i] == (float)i + w[i % d] * x[i]);
        }
    }
}

/* ---- instruction sets ------------------------------------------------------------------------ */

static void every_instruction_set_gives_the_same_bits(void **state)
{
    (void)state;
    for (simd_isa isa = SIMD_PORTABLE; isa < simd_best(); isa++) {
        for (unsigned part = 0; part < 20; part++) {
            const numbers s = sample(part, 20);
            for (pare_act a = PARE_ACT_NONE; a <= PARE_ACT_TANH; a++) {
                numbers one = s, two = s;
                vector_activation(isa, one.v, s.v, one.n - part, a);
                vector_activation(simd_best(), two.v, s.v, two.n - part, a);
                assert_memory_equal(one.v, two.v, sizeof one.v);
            }
        }
        for (uint64_t seed = 1; seed <= 500; seed++) {
            norm_case c = some_norm(seed);
            set_vectors(&c, seed);
            float one[ROWS * WIDEST] = {0}, two[ROWS * WIDEST] = {0};
            vector_normalize(isa, one, c.x, ROWS, c.d, &c.k);
            vector_normalize(simd_best(), two, c.x, ROWS, c.d, &c.k);
            vector_add(isa, one, c.x, c.gain, ROWS, c.d);
            vector_add(simd_best(), two, c.x, c.gain, ROWS, c.d);
            assert_memory_equal(one, two, sizeof one);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_within_two_ulp),
        cmocka_unit_test(functions_at_the_ends_are_exact),
        cmocka_unit_test(activations_stay_within_what_the_proof_adds),
        cmocka_unit_test(a_gate_is_the_activation_times_the_other),
        cmocka_unit_test(norms_are_their_definition),
        cmocka_unit_test(a_zero_row_stays_zero_without_eps),
        cmocka_unit_test(sums_are_entry_by_entry),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
