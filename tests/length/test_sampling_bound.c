/* Tests src/length/sampling_bound.c term by term: heads, sums and draws made by hand, beside the
 * formulas of docs/theory/length.md (Sampling) in long double. Below the formula a bound is false,
 * TIGHT above it needlessly large. test_mode_sample.c has runs. */
#include "length/rounding.h"
#include "length/sampling.h"
#include "length_cases.h"

#define TIGHT 0x1p-33L

static void check_within(double got, long double want, long double tight, const char *what)
{
    if ((long double)got >= want && (long double)got <= want * (1 + tight)) return;
    fail_msg("%s: %.17g, the formula says %.17Lg", what, got, want);
}

/* A last digit less, for what is rounded to f64 here. */
static long double less(long double x)
{
    return x * (1 - 0x1p-45L);
}

/* ---- a run by hand --------------------------------------------------------------------------- */

enum { HEADS = 2 };

typedef struct trial {
    length_case c[HEADS];
    head_state heads[HEADS + 1]; /* the last is nobody's */
    pare_length_stats stats;
    pare_err err;
    length_run r;
    sampling s;
} trial;

static void trial_new(trial *t, size_t n, size_t dk, size_t dv, pare_dtype type, uint32_t m,
                      uint64_t seed)
{
    *t = (trial){
        .r = {.in = {.caps = {.dtype = type, .exp_flush = 104, .exp_err = 4, .w_min = 0x1p-40},
                     .rule = {.m = m},
                     .nheads = HEADS,
                     .n = n},
              .window = {.rows = n}}};
    for (size_t a = 0; a < HEADS; a++) {
        length_case *const c = &t->c[a];
        *c = length_case_new(n, dk, dv, BENIGN, seed + a);
        t->heads[a].job = job_of(c, type);
        t->heads[a].acc = doubles(c->a, n * dv), t->heads[a].weight_sum = doubles(c->a, n);
        for (size_t i = 0; i < n; i++) {
            t->heads[a].weight_sum[i] = 2 + (double)i;
            for (size_t e = 0; e < dv; e++)
                t->heads[a].acc[i * dv + e] = (3 + (double)e) * (2 + (double)i) / (1 + (double)a);
        }
    }
    t->r.arena = t->c[0].a;
}

static void measure(trial *t)
{
    t->r.heads = t->heads, t->r.stats = &t->stats, t->r.in.err = &t->err;
    assert_ok(sampling_new(&t->s, &t->r), &t->err);
}

static void trial_free(trial *t)
{
    for (size_t a = 0; a < HEADS; a++) length_case_free(&t->c[a]);
}

/* ---- what is known of the heads -------------------------------------------------------------- */

static void mean_of(long double *mean, const double *x, size_t n, size_t cols)
{
    memset(mean, 0, cols * sizeof *mean);
    for (size_t i = 0; i < n * cols; i++) mean[i % cols] += (long double)x[i] / n;
}

/* Largest distance of a row from `from`; NULL: 0. */
static long double far_from(const long double *from, const double *x, size_t n, size_t cols)
{
    long double most = 0;
    for (size_t i = 0; i < n; i++) {
        long double s = 0;
        for (size_t e = 0; e < cols; e++) {
            const long double d = (long double)x[i * cols + e] - (from ? from[e] : 0);
            s += d * d;
        }
        most = fmaxl(most, sqrtl(s));
    }
    return most;
}

static void heads_are_measured(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        trial t;
        const size_t n = 3 + seed, dk = seed % 5 ? 2 + seed % 4 : 8, dv = 1 + seed % 3;
        trial_new(&t, n, dk, dv, seed % 2 ? PARE_F32 : PARE_F64, 3, seed);
        t.c[1].q[n * dk] = (double)(t.c[1].qf[n * dk] = 1); /* nobody's */
        measure(&t);
        assert_true(*doubles(t.r.arena, 1) == 0); /* behind all arrays nothing was written */
        for (size_t a = 0; a < HEADS; a++) {
            const geometry *const g = &t.s.geo[a];
            const length_case *const c = &t.c[a];
            long double kbar[8], vbar[8];
            mean_of(kbar, c->k, n, dk), mean_of(vbar, c->v, n, dv);
            for (size_t e = 0; e < dk; e++) assert_near(g->kbar[e], kbar[e], 1e-14);
            for (size_t e = 0; e < dv; e++) assert_near(g->vbar[e], vbar[e], 1e-14);
            assert_near(g->key_radius, far_from(kbar, c->k, n, dk), 1e-13);
            assert_near(g->value_radius, far_from(vbar, c->v, n, dv), 1e-13);
            assert_near(g->longest_key, far_from(NULL, c->k, n, dk), 1e-13);
            assert_near(g->longest_value, far_from(NULL, c->v, n, dv), 1e-13);
            for (size_t i = 0; i < n; i++) {
                long double x = 0;
                for (size_t e = 0; e < dk; e++) x += (long double)c->q[i * dk + e] * kbar[e];
                assert_near(t.heads[a].ref_logit[i], x, seed % 2 ? 1e-6 : 1e-13);
                if (seed % 2)
                    assert_true(t.heads[a].ref_logit[i] == (double)(float)t.heads[a].ref_logit[i]);
            }
        }
        assert_int_equal(t.stats.reference, PARE_REF_MEAN);
        assert_null(t.heads[HEADS].ref_logit);
        trial_free(&t);
    }
}

/* ln(2 rows heads looks / delta): a look at k, 2 k, ... keys, below n of them. */
static void every_look_is_in_the_log_term(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        uint32_t m, blocks;
        double delta;
        size_t keys, looks;
    } cases[] = {{40, 11, 0, 0, 10, 2},    {41, 11, 0, 0.2, 10, 3}, {20, 11, 0, 0.2, 10, 1},
                 {21, 11, 1, 1e-9, 10, 2}, {90, 11, 3, 0.3, 30, 2}, {91, 4, 3, 0.3, 9, 4}};
    for (size_t x = 0; x < sizeof cases / sizeof *cases; x++) {
        trial t;
        trial_new(&t, cases[x].n, 2, 1, PARE_F64, cases[x].m, x);
        t.r.in.opts =
            (pare_length_opts){.blocks = cases[x].blocks, .delta = cases[x].delta, .eps = 0.1};
        measure(&t);
        const long double delta = cases[x].delta > 0 ? cases[x].delta : 0.01;
        const long double events = 2.0L * cases[x].n * HEADS * cases[x].looks / delta;
        check_within(t.s.log_term, less(sqrtl(2 * logl(events))), TIGHT, "log term");
        assert_int_equal(t.s.keys, cases[x].keys);
        assert_true(t.s.eps == 0.1);
        t.r.in.opts.eps = 0;
        assert_ok(sampling_new(&t.s, &t.r), &t.err);
        assert_true(t.s.eps == 0.5);
        trial_free(&t);
    }
}

/* ---- the bound of a row ---------------------------------------------------------------------- */

static long double norm(const double *x, size_t n)
{
    return far_from(NULL, x, 1, n);
}

/* Of the length of a row that has seen n keys; *factor: of its sums. */
static long double rounded(const trial *t, size_t a, size_t i, double n, long double *factor)
{
    const length_case *const c = &t->c[a];
    const double m = t->r.in.rule.m;
    const long double q = norm(c->q + i * c->dk, c->dk), k = far_from(NULL, c->k, c->n, c->dk),
                      v = far_from(NULL, c->v, c->n, c->dv);
    const row_facts f = {.dk = c->dk,
                         .size = (double)(q * k),
                         .entries = (double)(sqrtl(c->dk) * (q + k)),
                         .range =
                             (double)(2 * q * k + fabsl((long double)t->heads[a].ref_logit[i])),
                         .max_logit = -INFINITY,
                         .n = n,
                         .m = m,
                         .parts = 2 * n / (m - 1) + 72};
    const rounding e = rounding_of(&t->r.in.caps, &f);
    *factor = e.factor;
    return (long double)e.factor * v + (long double)e.absent * sqrtl(c->dv) * (v + 1);
}

static long double formula_of(const trial *t, size_t a, size_t i, const drawn *d,
                              long double *length, long double *kappa)
{
    const length_case *const c = &t->c[a];
    const head_state *const h = &t->heads[a];
    const long double u = t->r.in.caps.dtype == PARE_F32 ? 0x1p-24L : 0x1p-53L,
                      den = h->weight_sum[i];
    long double kbar[8], vbar[8], factor, far = 0;
    mean_of(kbar, c->k, c->n, c->dk), mean_of(vbar, c->v, c->n, c->dv);
    const long double q = norm(c->q + i * c->dk, c->dk), k = far_from(NULL, c->k, c->n, c->dk);
    const long double amax =
        expl(q * far_from(kbar, c->k, c->n, c->dk) + (u + c->dk * 0x1p-53L) * q * k);
    const long double off =
        rounded(t, a, i, d->n + (d->beside ? (double)t->r.in.rule.m : 0), &factor);
    *kappa = (d->beside ? 2 : 1) * (long double)d->of * amax * (1 + factor) / den *
             (long double)t->s.log_term / sqrtl((long double)d->n);
    *length = 0;
    for (size_t e = 0; e < c->dv; e++) {
        const long double y = (long double)h->acc[i * c->dv + e] / den;
        far += (y - vbar[e]) * (y - vbar[e]), *length += y * y;
    }
    *length = sqrtl(*length);
    const long double spread = sqrtl(far) + far_from(vbar, c->v, c->n, c->dv);
    return *kappa * (spread + off) / (1 - *kappa) + off;
}

/* Each of exp_err (the sums), exp_flush (what is lost), the size of the logits and the number of
 * draws is most of the bound at times. */
static void the_bound_is_its_formula(void **state)
{
    (void)state;
    size_t proven = 0, unproven = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        trial t;
        pare_rng r = pare_rng_at(seed, 3);
        const size_t dk = 2 + seed % 3, dv = 1 + seed % 4, n = 4;
        const bool f32 = seed / 2 % 2;
        trial_new(&t, n, dk, dv, f32 ? PARE_F32 : PARE_F64, 3 + (uint32_t)pare_rng_below(&r, 3),
                  seed);
        t.r.in.caps.exp_err = seed % 3 ? 4 : (f32 ? 1e4 : 1e12) * pare_rng_uniform(&r);
        if (seed % 5 == 0) t.r.in.caps.exp_flush = 40;
        for (size_t a = 0; a < HEADS; a++)
            for (size_t i = 0; i < n * dk; i++)
                t.c[a].q[i] = (double)(t.c[a].qf[i] = (float)(t.c[a].q[i] * 0.3));
        for (size_t i = 0; seed % 7 == 0 && i < HEADS * n * dk; i++) {
            length_case *const c = &t.c[i / (n * dk)]; /* keys at their mean: c is rounded */
            c->k[i % (n * dk)] = (double)(c->kf[i % (n * dk)] = f32 ? 8 : 0x1p26F);
        }
        measure(&t);
        for (int x = 0; x < 8; x++) {
            const size_t a = pare_rng_below(&r, HEADS), i = pare_rng_below(&r, n);
            const double drawn_keys = exp(14 * pare_rng_uniform(&r)) + 10;
            const drawn d = {drawn_keys,
                             x % 2 ? drawn_keys * (1 + pare_rng_uniform(&r)) : drawn_keys, x % 2};
            double size;
            long double length, kappa;
            for (size_t e = 0; e < dv; e++)
                t.heads[a].acc[i * dv + e] *= d.of / t.heads[a].weight_sum[i];
            t.heads[a].weight_sum[i] = d.of;
            long double want = formula_of(&t, a, i, &d, &length, &kappa);
            if (x > 5) { /* just below 1, where its roundings count a millionfold */
                const double by = (double)kappa * (1 + 1e-6);
                for (size_t e = 0; e < dv; e++) t.heads[a].acc[i * dv + e] *= by;
                t.heads[a].weight_sum[i] *= by;
                want = formula_of(&t, a, i, &d, &length, &kappa);
            }
            const double got = sampling_bound(&t.s, a, i, &d, &size);
            check_within(size * (1 + 0x1p-38), length, 0x1p-37L, "size");
            assert_true((long double)size <= length);
            if (kappa < 1 - 1e-7L)
                proven++, check_within(got, less(want), TIGHT + 0x1p-38L / (1 - kappa), "bound");
            else if (kappa > 1)
                unproven++, assert_true(isinf(got));
        }
        trial_free(&t);
    }
    assert_true(proven > 1000 && unproven > 300);
}

/* kappa alone, with round numbers: one key at its mean, so that amax is 1. */
static void kappa_is_what_the_theorem_says(void **state)
{
    (void)state;
    trial t;
    double size;
    trial_new(&t, 2, 2, 1, PARE_F64, 3, 1);
    for (size_t i = 0; i < 4; i++) t.c[0].k[i] = 0;
    t.c[0].v[0] = 1, t.c[0].v[1] = -1; /* vbar 0, radius 1 */
    t.heads[0].acc[0] = 0, t.heads[0].weight_sum[0] = 100;
    measure(&t);
    const double log_term = sqrt(2 * log(2 * 2 * HEADS / 0.01)); /* 3.66 */
    const drawn d = {100, 100, false};
    const double kappa = log_term / 10;
    assert_near(sampling_bound(&t.s, 0, 0, &d, &size), kappa / (1 - kappa), 1e-9);
    const drawn beside = {1e4, 200, true}; /* a population of 200 in a sum of 100: 2 x 2 */
    const double twice = 4 * log_term / 100;
    assert_near(sampling_bound(&t.s, 0, 0, &beside, &size), twice / (1 - twice), 1e-9);
    trial_free(&t);
}

static void rows_that_cannot_be_trusted_have_none(void **state)
{
    (void)state;
    trial t;
    double size;
    const drawn d = {1e6, 1, true};
    trial_new(&t, 2, 2, 1, PARE_F64, 3, 1);
    measure(&t);
    t.heads[0].weight_sum[0] = 1, t.heads[0].acc[0] = 0.5;
    t.r.in.caps.w_min = 1;
    assert_true(isfinite(sampling_bound(&t.s, 0, 0, &d, &size)));
    t.r.in.caps.w_min = nextafter(1, 2);
    assert_true(isinf(sampling_bound(&t.s, 0, 0, &d, &size)));
    t.r.in.caps.w_min = 0.5, t.heads[0].acc[0] = NAN;
    assert_true(isinf(sampling_bound(&t.s, 0, 0, &d, &size)));
    t.heads[0].acc[0] = 0, t.heads[0].weight_sum[0] = NAN;
    assert_true(isinf(sampling_bound(&t.s, 0, 0, &d, &size)));
    trial_free(&t);
}

/* Of all n keys, and nothing but rounding. */
static void exact_rows_are_within_rounding(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        trial t;
        long double factor;
        trial_new(&t, 3 + seed, 2 + seed % 3, 1 + seed % 4, seed % 2 ? PARE_F32 : PARE_F64, 4,
                  seed);
        if (seed % 3 == 0) t.r.in.caps.exp_flush = 30;
        for (size_t i = 0; seed % 4 == 1 && i < t.r.in.n * t.c[0].dk;
             i++) { /* f32: entries are lost */
            t.c[0].qf[i] *= 0, t.c[0].kf[i] *= 0x1p120F;
            t.c[1].kf[i] *= 0, t.c[1].qf[i] *= 0x1p120F;
            for (size_t a = 0; a < HEADS; a++)
                t.c[a].q[i] = (double)t.c[a].qf[i], t.c[a].k[i] = (double)t.c[a].kf[i];
        }
        measure(&t);
        for (size_t a = 0; a < HEADS; a++)
            check_within(sampling_exact_bound(&t.s, a, seed % 3),
                         less(rounded(&t, a, seed % 3, (double)t.r.in.n, &factor)), TIGHT, "exact");
        trial_free(&t);
    }
}

enum { LONG = 1 << 17 };

/* 1 and very many numbers whose squares f64 loses when it adds them to 1. */
static void norms_are_taken_up(void **state)
{
    (void)state;
    trial t;
    double size;
    const double x = nextafter(sqrt(0x1p-53), 0), all = 1 + LONG * 0x1p-53;
    trial_new(&t, 2, LONG, LONG, PARE_F64, 3, 1);
    length_case *const c = &t.c[0];
    for (size_t i = 0; i < 2 * LONG; i++) {
        const double y = i % LONG ? x : 1;
        c->q[i] = y, c->k[i] = c->v[i] = i < LONG ? y : -y;
        t.heads[0].acc[i] = y;
    }
    t.heads[0].weight_sum[0] = 1;
    measure(&t);
    const geometry *const g = &t.s.geo[0];
    const double radii[] = {g->key_radius, g->value_radius, g->longest_key, g->longest_value};
    for (size_t e = 0; e < 4; e++)
        check_within(radii[e], less(sqrtl((long double)all)), 0x1p-39L, "radius");
    t.s.log_term = 0x1p-20;
    const drawn d = {1, 1, true};
    const long double kappa = 2 * expl(all + (1 + LONG) * 0x1p-53L * all) * 0x1p-20L;
    const double got = sampling_bound(&t.s, 0, 0, &d, &size);
    long double factor;
    const long double off = rounded(&t, 0, 0, d.n + 3, &factor);
    check_within(got,
                 less(kappa * (1 + factor) * (2 * sqrtl((long double)all) + off) /
                          (1 - kappa * (1 + factor)) +
                      off),
                 0x1p-38L, "bound");
    /* squares that are rounded up, all of them: the length is from below all the same */
    for (size_t i = 1; i < LONG; i++) t.heads[0].acc[LONG + i] = nextafter(sqrt(0x1p-53), 1);
    t.heads[0].weight_sum[1] = 1;
    sampling_bound(&t.s, 0, 1, &d, &size);
    assert_true((long double)size <= sqrtl((long double)all));
    check_within(size * (1 + 0x1p-39), sqrtl((long double)all), 0x1p-39L, "size");
    trial_free(&t);
}

/* ---- what is settled, what is drawn ---------------------------------------------------------- */

static void rows_are_settled_by_their_relative_bound(void **state)
{
    (void)state;
    trial t;
    double bound[2] = {-1, -1};
    trial_new(&t, 2, 2, 1, PARE_F64, 3, 1);
    t.r.in.opts.eps = 0.5;
    t.heads[1].job.bound = bound;
    measure(&t);
    assert_true(sampling_accept(&t.s, 1, 0, 1, 3, false)); /* 1 / (3 - 1) */
    assert_true(bound[0] == 1 && t.stats.bound == 1 && t.stats.relative == 0.5);
    assert_false(sampling_accept(&t.s, 1, 1, 1, 2.999, false));
    assert_true(bound[1] == -1 && t.stats.bound == 1 && t.stats.unproven_rows == 0);
    assert_true(sampling_accept(&t.s, 0, 1, 0.5, 100, false));
    assert_true(t.stats.bound == 1 && t.stats.relative == 0.5);
    assert_true(sampling_accept(&t.s, 1, 1, 2, 1, true)); /* larger than the row itself */
    assert_true(bound[1] == 2 && t.stats.bound == 2 && isinf(t.stats.relative));
    assert_int_equal(t.stats.unproven_rows, 1);
    t.stats.relative = 0;
    assert_true(sampling_accept(&t.s, 1, 1, NAN, 1, true) && isinf(t.stats.relative));
    t.stats.relative = 0;
    assert_true(sampling_accept(&t.s, 1, 1, 0, 0, true) && isinf(t.stats.relative)); /* 0 / 0 */
    assert_int_equal(t.stats.unproven_rows, 3);
    trial_free(&t);
}

/* The first keys of a random order, from a stream of their own for each look, head and block. */
static void draws_are_the_beginning_of_a_shuffle(void **state)
{
    (void)state;
    enum { OF = 50 };
    trial t;
    uint32_t order[OF + 1], mine[OF];
    trial_new(&t, OF, 2, 1, PARE_F64, 3, 1);
    t.r.in.opts.seed = 77;
    measure(&t);
    t.s.order = order;
    order[OF] = 12345;
    for (size_t x = 0; x < 40; x++) {
        const size_t a = x % 3, block = x / 2, of = x % 4 ? OF : 30;
        t.s.passes = x % 5;
        t.s.keys = x % 7 ? 1 + x % 30 : of;
        const uint32_t *const keys = sampling_draw(&t.s, a, block, of);
        assert_non_null(keys);
        pare_rng g = pare_rng_at(77, ((uint64_t)t.s.passes << 48) ^ ((uint64_t)a << 32) ^ block);
        for (uint32_t i = 0; i < of; i++) mine[i] = i;
        for (size_t i = 0; i < t.s.keys; i++) {
            const size_t j = i + pare_rng_below(&g, of - i);
            const uint32_t key = mine[j];
            mine[j] = mine[i], mine[i] = key;
            assert_int_equal(keys[i], key);
        }
        assert_int_equal(order[OF], 12345);
    }
    trial_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_measured),
        cmocka_unit_test(every_look_is_in_the_log_term),
        cmocka_unit_test(the_bound_is_its_formula),
        cmocka_unit_test(kappa_is_what_the_theorem_says),
        cmocka_unit_test(rows_that_cannot_be_trusted_have_none),
        cmocka_unit_test(exact_rows_are_within_rounding),
        cmocka_unit_test(norms_are_taken_up),
        cmocka_unit_test(rows_are_settled_by_their_relative_bound),
        cmocka_unit_test(draws_are_the_beginning_of_a_shuffle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
