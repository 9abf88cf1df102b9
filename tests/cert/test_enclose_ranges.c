/* Tests src/cert/enclose*.c at the ends of the legal ranges (src/model/scalar_ranges.c): both enclosures
 * hold the function in 113 bits, the f64 pass and the f32 engine there, or say inf. Beyond them,
 * too: what the model check refuses today may be legal tomorrow. */
#include "cert/prove.h"
#include <enclose_models.h>
#include <enclose_quad.h>
#include <float.h>

enum { SEEDS = 60 };

/* The reference's own error beside a wide radius; see test_enclose.c. */
static const double own_share = 1.0 / 30;

typedef struct tally {
    size_t rows, open, open32; /* rows with a radius that is inf */
} tally;

static void miss(const char *what, uint64_t seed, size_t row, double off, double rad)
{
    print_error("%s, seed %llu, row %zu: off by %g, radius %g\n", what, (unsigned long long)seed,
                row, off, rad);
    fail();
}

/* One enclosure against the reference, and the f32 engine. */
static void hold_one(tally *t, const pare_enclosure *e, const qmat *y, const double *f64,
                     const float *f32, size_t first, const char *what, uint64_t seed)
{
    for (size_t i = 0; i < y->n * y->d; i++) {
        const size_t at = first * e->cols + i, row = at / e->cols;
        const double rad = e->rad[row], rad32 = e->rad32[row];
        const quad mid = (quad)e->mid[at] + (quad)(e->lo ? e->lo[at] : 0);
        const double dm = (double)q_abs(mid - y->v[i]),
                     d32 = (double)q_abs((quad)f32[at] - y->v[i]);
        const double d64 = e->lo ? 0 : (double)q_abs((quad)f64[at] - y->v[i]);
        if (!isinf(rad) && !(dm <= rad * (1 + (e->lo ? own_share : 0))))
            miss(what, seed, row, dm, rad);
        if (!isinf(rad) && !(d64 <= rad)) miss(what, seed, row, d64, rad);
        if (!isinf(rad32) && !(d32 <= rad32)) miss(what, seed, row, d32, rad32);
        t->rows += i % y->d == 0;
        t->open += isinf(rad) && i % y->d == 0;
        t->open32 += isinf(rad32) && i % y->d == 0;
    }
}

static void hold(tally *t, const pare_model *m, const pare_input *in, const char *what,
                 uint64_t seed)
{
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    pare_model_norms *norms = NULL;
    pare_enclosure e, w;
    assert_ok(pare_model_norms_new(&norms, a, m, NULL, &err), &err);
    assert_ok(pare_enclose(&e, a, m, norms, in, NULL, &err), &err);
    assert_ok(pare_enclose_wide(&w, a, m, norms, in, NULL, &err), &err);
    double *const f64 = pare_alloc(a, e.rows * e.cols, sizeof *f64);
    float *const f32 = pare_alloc(a, e.rows * e.cols, sizeof *f32);
    assert_ok(pare_forward_f64(f64, m, in, NULL, NULL, &err), &err);
    assert_ok(pare_forward_f32(f32, m, in, NULL, NULL, &err), &err);
    const size_t per = e.rows / in->batch;
    for (size_t s = 0; s < in->batch; s++) {
        const qmat y = q_model(a, m, in, s);
        hold_one(t, &e, &y, f64, f32, s * per, what, seed);
        hold_one(t, &w, &y, f64, f32, s * per, what, seed);
    }
    pare_arena_free(a);
}

/* What a test changes in a model; false: nothing in it to change. */
typedef bool change(pare_model *m, double value);

static tally hold_changed(change *set, double value, const char *what)
{
    tally t = {0};
    size_t changed = 0;
    char text[80];
    snprintf(text, sizeof text, "%s %g", what, value);
    for (uint64_t seed = 1; changed < SEEDS && seed < 40 * SEEDS; seed++) {
        pare_model *const m = some_model(seed, 1);
        if (set(m, value)) {
            const pare_input in = some_input(m, seed, 1, 0);
            hold(&t, m, &in, text, seed);
            changed++;
        }
        pare_model_free(m);
    }
    print_message("%s: %zu rows, inf %zu (f64 and wide) %zu (f32)\n", text, t.rows, t.open,
                  t.open32);
    assert_int_equal(changed, SEEDS);
    return t;
}

static bool set_base(pare_model *m, double value)
{
    if (m->stem.pos.kind == PARE_POS_ROTARY) return false; /* heads would turn */
    m->stem.pos.kind = PARE_POS_SINUSOIDAL;
    m->stem.pos.base = value;
    return true;
}

/* 2e130 was proven wrong: ln of it came from an exponential that was 0. */
static void sinusoidal_bases_are_right_from_1_to_the_largest_double(void **state)
{
    (void)state;
    static const double bases[] = {1 + 0x1p-52, 1.5, 1e30, 2e130, 1e300, DBL_MAX};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++)
        assert_int_equal(hold_changed(set_base, bases[i], "base").open, 0);
}

/* The model of that finding: positions alone, times a map, with a large bias. */
static void positions_of_a_huge_base_are_not_lost_beside_a_large_bias(void **state)
{
    (void)state;
    static const double x[8] = {0}, w[2] = {5.5, -3}, b[1] = {1e10};
    pare_model *m = NULL;
    assert_int_equal(pare_model_new(&m, NULL), PARE_OK);
    m->stem.width = 2;
    m->stem.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 2e130};
    m->top.out.w = (pare_weight){PARE_F64, 1, 2, w};
    m->top.out.b = (pare_weight){PARE_F64, 1, 1, b};
    const pare_input in = {.batch = 1, .tokens = 4, .width = 2, .x = x};
    tally t = {0};
    hold(&t, m, &in, "bias", 0);
    assert_true(t.rows == 8 && t.open == 0);
    pare_model_free(m);
}

static bool set_norms(pare_model *m, double value, size_t field)
{
    bool any = false;
    for (size_t b = 0; b < m->nblocks; b++) {
        pare_norm *const all[] = {&m->blocks[b].attn.in_norm, &m->blocks[b].attn.out_norm,
                                  &m->blocks[b].ffn.in_norm, &m->blocks[b].ffn.out_norm};
        for (size_t i = 0; i < 4; i++) {
            pare_norm *const n = all[i];
            const bool root = n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS;
            if (field == 0 && n->kind == PARE_NORM_BATCH) n->eps = value > 0 ? value : n->eps;
            if (!root) continue;
            any = true;
            *(field == 0 ? &n->eps : field == 1 ? &n->shift : &n->divisor) = value;
        }
    }
    return any;
}

static bool set_eps(pare_model *m, double value)
{
    return set_norms(m, value, 0);
}
static bool set_shift(pare_model *m, double value)
{
    return set_norms(m, value, 1);
}
static bool set_divisor(pare_model *m, double value)
{
    return set_norms(m, value, 2);
}

static void norms_are_right_at_both_ends(void **state)
{
    (void)state;
    static const double eps[] = {0, 0x1p-1074, 1e-310, 1e-45, 1e-30, 1e30};
    for (size_t i = 0; i < sizeof eps / sizeof *eps; i++) {
        (void)hold_changed(set_eps, eps[i], "eps");
        (void)hold_changed(set_shift, eps[i], "shift");
    }
    (void)hold_changed(set_divisor, 1e-6, "divisor");
    (void)hold_changed(set_divisor, 1e30, "divisor");
}

static bool set_variance(pare_model *m, double value)
{
    bool any = false;
    for (size_t b = 0; b < m->nblocks; b++) {
        pare_norm *const all[] = {&m->blocks[b].attn.in_norm, &m->blocks[b].attn.out_norm,
                                  &m->blocks[b].ffn.in_norm, &m->blocks[b].ffn.out_norm};
        for (size_t i = 0; i < 4; i++) {
            pare_norm *const n = all[i];
            if (n->kind != PARE_NORM_BATCH) continue;
            double *const var = pare_alloc(m->arena, n->var.cols, sizeof *var);
            for (size_t k = 0; k < n->var.cols; k++)
                var[k] = k % 2 ? value : pare_weight_at(&n->var, k);
            n->var = (pare_weight){PARE_F64, 1, n->var.cols, var};
            any = true;
        }
    }
    return any;
}

static void variances_are_right_at_both_ends(void **state)
{
    (void)state;
    (void)hold_changed(set_variance, 0, "var");
    (void)hold_changed(set_variance, 1e-40, "var");
    (void)hold_changed(set_variance, 1e30, "var");
}

static bool set_scale(pare_model *m, double value)
{
    bool any = false;
    for (size_t b = 0; b < m->nblocks; b++)
        for (size_t h = 0; h < m->blocks[b].attn.nheads; h++) {
            m->blocks[b].attn.heads[h].scale = value;
            any = true;
        }
    return any;
}

static void scales_are_right_at_both_ends(void **state)
{
    (void)state;
    static const double scales[] = {1e30, -1e30, 1e10, 0x1p-1074, 1e-45, 1e-39, 0};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        (void)hold_changed(set_scale, scales[i], "scale");
}

static bool set_frequency(pare_model *m, double value)
{
    bool any = false;
    for (size_t b = 0; b < m->nblocks; b++) {
        pare_weight *const f = &m->blocks[b].attn.freqs;
        if (!pare_has(f)) continue;
        double *const v = pare_alloc(m->arena, f->cols, sizeof *v);
        for (size_t k = 0; k < f->cols; k++) v[k] = k % 2 ? pare_weight_at(f, k) : value;
        *f = (pare_weight){PARE_F64, 1, f->cols, v};
        any = true;
    }
    return any;
}

static void frequencies_are_right_at_both_ends(void **state)
{
    (void)state;
    static const double freqs[] = {1e9, -1e9, 1e6, 0x1p-1074, 0, 1e300};
    for (size_t i = 0; i < sizeof freqs / sizeof *freqs; i++)
        (void)hold_changed(set_frequency, freqs[i], "freqs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sinusoidal_bases_are_right_from_1_to_the_largest_double),
        cmocka_unit_test(positions_of_a_huge_base_are_not_lost_beside_a_large_bias),
        cmocka_unit_test(norms_are_right_at_both_ends),
        cmocka_unit_test(variances_are_right_at_both_ends),
        cmocka_unit_test(scales_are_right_at_both_ends),
        cmocka_unit_test(frequencies_are_right_at_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
