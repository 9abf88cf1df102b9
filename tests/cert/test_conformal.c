/* Tests src/cert/conformal.c: a new input is above what is said no more often than it says, whatever
 * the errors are; and what a certificate says of each draw is what is proven of it. */
#include <prove_each.h>
#include <enclose_models.h>
#include "cert/conformal.h"
#include "cert/prove.h"

enum { MOST = 6, VALUES = 4 };

static const pare_data_ref whole = {.kind = "file", .candidates = 1};

static int falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The largest of all but one, but for k. */
static double bound_without(const double *e, size_t n, size_t one, size_t k)
{
    double v[MOST];
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (i != one) v[m++] = e[i];
    qsort(v, m, sizeof *v, falling);
    return v[k];
}

/* n + 1 errors in every order: the new one is each of them equally often. All lists of up to six
 * errors of four values, most of them with ties. */
static void no_list_of_errors_breaks_the_probability(void **state)
{
    (void)state;
    for (size_t n = 1; n < MOST; n++)
        for (size_t k = 0; k < n; k++) {
            const double may = 1 - pare_new_input(PARE_NEW_INPUT_OUTPUTS, n, k, 1, "").probability;
            size_t ways = 1, sharp = 0;
            for (size_t i = 0; i <= n; i++) ways *= VALUES;
            for (size_t way = 0; way < ways; way++) {
                double e[MOST];
                size_t rest = way, above = 0;
                for (size_t i = 0; i <= n; i++, rest /= VALUES) e[i] = (double)(rest % VALUES);
                for (size_t i = 0; i <= n; i++) above += e[i] > bound_without(e, n + 1, i, k);
                assert_le((double)above / (double)(n + 1), may);
                sharp += above == k + 1;
            }
            assert_near(may, (double)(k + 1) / (double)(n + 1), 1e-15);
            assert_true(sharp > 0 || k + 1 >= VALUES); /* four values have three above others */
        }
}

/* What is claimed is at most (n - k) / (n + 1) itself, not its nearest double. */
static void probabilities_are_rounded_down(void **state)
{
    (void)state;
    for (size_t n = 1; n < 1000; n++) {
        const pare_claim c = pare_new_input(PARE_NEW_INPUT_OUTPUTS, n, n / 3, 1, "here");
        const long double exact = (long double)(n - n / 3) / (long double)(n + 1);
        assert_true(c.probability <= exact && c.probability >= exact * (1 - 3e-16L));
        assert_true(c.kind == PARE_NEW_INPUT_OUTPUTS && c.value == 1);
        assert_true(c.p[0] == (double)n && c.p[1] == (double)(n / 3));
        assert_string_equal(c.domain, "here");
    }
}

static void a_share_has_the_confidence_of_every_certificate(void **state)
{
    (void)state;
    const pare_claim c = pare_new_inputs(40, 1, "here");
    assert_true(c.kind == PARE_NEW_INPUTS_SHARE && c.probability == PARE_CONFIDENCE);
    assert_true(c.p[0] == 40 && c.p[1] == 1);
    assert_true(c.value == pare_share_above(40, 1, 0.95));
}

/* About one error in 20 is left out, and none where that would be the only statement: the next
 * input is then above the bound with probability at most one in 20, as (k + 1) / (N + 1) says. */
static void how_many_errors_are_left_out_follows_from_their_number(void **state)
{
    (void)state;
    static const size_t by_hand[][2] = {{1, 0},  {19, 0}, {38, 0},  {39, 1},   {58, 1},
                                        {59, 2}, {99, 4}, {100, 4}, {999, 49}, {1000, 49}};
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
        assert_int_equal(pare_left_out_count(by_hand[i][0]), by_hand[i][1]);
    for (size_t n = 1; n <= 1000; n++) {
        size_t most = 0; /* the largest k with (k + 1) / (n + 1) <= 1 / 20 */
        while ((most + 2) * 20 <= n + 1) most++;
        assert_int_equal(pare_left_out_count(n), most);
        assert_true(pare_left_out_count(n) < n);
    }
}

/* ---- of two models --------------------------------------------------------------------------- */

/* y = x and y = 1.5 x, one token of one number: the error of an input is half of it. */
typedef struct pair {
    pare_model *f, *g;
    pare_arena *a;
    pare_err err;
    pare_cert cert;
} pair;

static void pair_open(pair *p)
{
    static const double w0[] = {1}, w1[] = {1.5};
    *p = (pair){.a = pare_arena_new()};
    assert_non_null(p->a);
    assert_ok(pare_model_new(&p->f, &p->err), &p->err);
    p->f->embedding.width = 1;
    p->f->head.out.w = (pare_weight){PARE_F64, 1, 1, w0};
    assert_ok(pare_model_clone(&p->g, p->f, &p->err), &p->err);
    p->g->head.out.w.data = w1;
}

static void pair_close(pair *p)
{
    pare_model_free(p->f);
    pare_model_free(p->g);
    pare_arena_free(p->a);
}

static void say(pair *p, const pare_inputs *set, const pare_data_ref *data)
{
    p->cert = (pare_cert){.proven = 1000};
    assert_ok(add_new_inputs(&p->cert, p->a, data, p->f, p->g, set, &p->err), &p->err);
}

/* 43 inputs, most of them in a batch, however they are arranged: one is left out. */
static void the_next_error_is_the_bound(void **state)
{
    (void)state;
    enum { N = 42 };
    static double x[N], y[] = {-86};
    for (size_t i = 0; i < N; i++) x[i] = 2 * (double)((i * 11) % N + 1); /* 2, 4, ..., 84 */
    pare_input in[2] = {{.batch = N, .tokens = 1, .width = 1, .x = x},
                        {.batch = 1, .tokens = 1, .width = 1, .x = y}};
    const pare_inputs set = {2, in};
    pair p;
    pair_open(&p);
    say(&p, &set, &whole);
    const pare_claim *const c = p.cert.claims;
    assert_int_equal(p.cert.nclaims, 5);
    assert_true(c[0].kind == PARE_NEW_INPUT_OUTPUTS && c[0].p[0] == 43 && c[0].p[1] == 0);
    assert_true(c[0].value == 1000); /* the headline, which is of all of them */
    assert_near(c[0].probability, 43.0 / 44, 1e-15);
    assert_true(c[1].kind == PARE_NEW_INPUTS_SHARE && c[1].p[1] == 0);
    assert_true(c[1].value == pare_share_above(43, 0, PARE_CONFIDENCE));
    assert_true(c[2].kind == PARE_NEW_INPUT_OUTPUTS && c[2].p[1] == 1);
    assert_true(c[2].value >= 42 && c[2].value <= 42 + 1e-12); /* half of 84, not of 86 */
    assert_near(c[2].probability, 42.0 / 44, 1e-15);
    assert_true(c[3].kind == PARE_NEW_INPUTS_SHARE && c[3].p[1] == 1);
    assert_true(c[3].value == pare_share_above(43, 1, PARE_CONFIDENCE));
    assert_true(c[4].kind == PARE_NEW_INPUT_INDEPENDENT && c[4].holds == PARE_UNKNOWN);
    /* The headline may be sharper than what is proven of each by itself. */
    p.cert = (pare_cert){.proven = 41};
    assert_ok(add_new_inputs(&p.cert, p.a, &whole, p.f, p.g, &set, &p.err), &p.err);
    assert_true(p.cert.claims[2].value == 41);
    pair_close(&p);
}

static void few_inputs_leave_out_none(void **state)
{
    (void)state;
    static const double x[] = {-8, 2, 6};
    pare_input in = {.batch = 3, .tokens = 1, .width = 1, .x = x};
    const pare_inputs set = {1, &in};
    pair p;
    pair_open(&p);
    say(&p, &set, &whole);
    assert_int_equal(p.cert.nclaims, 3);
    assert_true(p.cert.claims[0].p[1] == 0 && p.cert.claims[1].p[1] == 0);
    assert_int_equal(p.cert.claims[2].kind, PARE_NEW_INPUT_INDEPENDENT);
    pair_close(&p);
}

/* No held-out inputs, several candidates, windows of one text, no input: nothing is said. */
static void nothing_is_said_where_nothing_follows(void **state)
{
    (void)state;
    static const double x[] = {-8, 2, 6};
    pare_input in = {.batch = 3, .tokens = 1, .width = 1, .x = x};
    const pare_inputs set = {1, &in};
    pair p;
    pair_open(&p);
    for (size_t candidates = 0; candidates < 4; candidates++) {
        const pare_data_ref d = {.kind = "file", .candidates = candidates};
        say(&p, &set, &d);
        assert_int_equal(p.cert.nclaims, candidates == 1 ? 3 : 0);
    }
    in.continues = true;
    say(&p, &set, &whole);
    assert_int_equal(p.cert.nclaims, 0);
    say(&p, &(pare_inputs){0}, &whole);
    assert_int_equal(p.cert.nclaims, 0);
    pair_close(&p);
}

static void new_inputs_are_cut_as_the_others_are(void **state)
{
    (void)state;
    static const pare_data_ref part = {.kind = "part", .count = 2, .tokens = 64, .candidates = 1},
                               all = {.kind = "part", .count = 2, .candidates = 1};
    static const double x[] = {-8, 2, 6};
    pare_input in = {.batch = 3, .tokens = 1, .width = 1, .x = x};
    const pare_inputs set = {1, &in};
    pair p;
    pair_open(&p);
    say(&p, &set, &part);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(p.cert.claims[i].domain,
                            "an input drawn, cut to its first 64 tokens at most, like the 3 "
                            "held-out ones, which neither the training of the model nor the cut "
                            "has seen");
    say(&p, &set, &all);
    assert_string_equal(p.cert.claims[0].domain,
                        "an input drawn like the 3 held-out ones, which neither the training of "
                        "the model nor the cut has seen");
    pair_close(&p);
}

/* ---- what they rest on -------------------------------------------------------------------------
 */

static void what_is_said_of_held_out_inputs_is_checked(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4, 5};
    pare_input in = {.batch = 3, .tokens = 1, .width = 1, .x = x};
    pare_input other = {.batch = 2, .tokens = 1, .width = 1, .x = x + 3};
    pare_input shares = {.batch = 2, .tokens = 1, .width = 1, .x = x + 2};
    const pare_inputs set = {1, &in}, fitted = {1, &other}, meets = {1, &shares};
    pare_arena *const a = pare_arena_new();
    pare_err err = {0};
    pare_data_ref good = {.kind = "file", .candidates = 1}, d;
    assert_non_null(a);
    assert_ok(pare_input_hashes_make(&good.fitted, a, &fitted, 0, &err), &err);
    assert_ok(pare_input_hashes_make(&good.heldout, a, &set, 0, &err), &err);
    assert_ok(pare_heldout_check(&good, a, &set, &err), &err);
    /* other held-out inputs, one fewer, none */
    assert_status(pare_heldout_check(&good, a, &fitted, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "data.heldout");
    d = good, d.heldout.n--;
    assert_status(pare_heldout_check(&d, a, &set, &err), PARE_ERR_VERIFY, &err);
    d = good, d.heldout.n = 0;
    assert_status(pare_heldout_check(&d, a, &set, &err), PARE_ERR_VERIFY, &err);
    /* one of them was fitted to */
    d = good;
    assert_ok(pare_input_hashes_make(&d.fitted, a, &meets, 0, &err), &err);
    assert_status(pare_heldout_check(&d, a, &set, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "fitted to");
    d.fitted.tokens = 1; /* and cannot hide behind another way to hash them */
    assert_status(pare_heldout_check(&d, a, &set, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "tokens");
    /* the held-out inputs chose */
    d = good, d.candidates = 2;
    assert_status(pare_heldout_check(&d, a, &set, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "between 2 cuts");
    /* windows of one text */
    in.continues = true;
    assert_ok(pare_input_hashes_make(&good.heldout, a, &set, 0, &err), &err);
    assert_status(pare_heldout_check(&good, a, &set, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "windows");
    /* nothing is said of them: nothing to check */
    d = good, d.candidates = 0, d.heldout.n = 0;
    assert_ok(pare_heldout_check(&d, a, &set, &err), &err);
    pare_arena_free(a);
}

/* A batch that is enclosed group by group. */
static void no_input_of_a_long_batch_is_taken_for_another(void **state)
{
    (void)state;
    enum { N = 1200 };
    static double x[N], each[N];
    for (size_t i = 0; i < N; i++) x[i] = (double)i;
    pare_input in = {.batch = N, .tokens = 1, .width = 1, .x = x};
    const pare_inputs set = {1, &in};
    pair p;
    pair_open(&p);
    assert_ok(prove_each(each, p.f, p.g, &set, &p.err), &p.err);
    for (size_t i = 0; i < N; i++) assert_near(each[i], 0.5 * (double)i, 1e-9);
    pair_close(&p);
}

/* One by one each is what the proof of that input alone says; the largest is the headline's. */
static void each_input_has_its_own_bound(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 12; s++) {
        pare_model *const f = some_model(s, 1);
        pare_model *g = NULL;
        pare_err err = {0};
        assert_ok(pare_model_clone(&g, f, &err), &err);
        maker k = {.m = g, .r = pare_rng_at(s, 5), .sigma = 1};
        if (pare_has(&g->head.out.w))
            g->head.out.w = matrix(&k, g->head.out.w.rows, g->head.out.w.cols);
        g->head.norm = (pare_norm){.kind = PARE_NORM_MEAN};
        pare_input in[2] = {some_input(f, s, 1, 0), some_input(f, s + 100, 1, 0)};
        const pare_inputs both = {2, in};
        const size_t n = pare_draw_count(&both);
        double each[64], largest = 0;
        pare_gap all;
        assert_true(n <= 64 && n == in[0].batch + in[1].batch);
        assert_ok(prove_each(each, f, g, &both, &err), &err);
        assert_ok(pare_prove_gap(&all, f, g, &both, NULL, &err), &err);
        for (size_t i = 0; i < n; i++) {
            const bool second = i >= in[0].batch;
            const size_t b = second ? i - in[0].batch : i;
            pare_input one = in[second];
            one.batch = 1;
            if (one.ids) one.ids += b * one.tokens;
            if (one.x) one.x += b * one.tokens * one.width;
            const pare_inputs alone = {1, &one};
            pare_gap gap;
            assert_ok(pare_prove_gap(&gap, f, g, &alone, NULL, &err), &err);
            assert_true(each[i] >= gap.measured - gap.radius);
            assert_near(each[i], gap.proven.v, gap.radius + 1e-9 * gap.proven.v);
            largest = fmax(largest, each[i]);
        }
        assert_near(largest, all.proven.v, 1e-12 * largest);
        pare_model_free(g);
        pare_model_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_list_of_errors_breaks_the_probability),
        cmocka_unit_test(probabilities_are_rounded_down),
        cmocka_unit_test(a_share_has_the_confidence_of_every_certificate),
        cmocka_unit_test(how_many_errors_are_left_out_follows_from_their_number),
        cmocka_unit_test(the_next_error_is_the_bound),
        cmocka_unit_test(few_inputs_leave_out_none),
        cmocka_unit_test(nothing_is_said_where_nothing_follows),
        cmocka_unit_test(new_inputs_are_cut_as_the_others_are),
        cmocka_unit_test(what_is_said_of_held_out_inputs_is_checked),
        cmocka_unit_test(no_input_of_a_long_batch_is_taken_for_another),
        cmocka_unit_test(each_input_has_its_own_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
