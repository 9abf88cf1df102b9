/* Tests src/cert/exchange.c: a new input is above what is said no more often than it says, whatever
 * the errors are; and what a certificate says of each draw is what is proven of it. */
#include <enclose_models.h>
#include <pare/exchange.h>
#include <pare/publish.h>

enum { MOST = 6, VALUES = 4 };

static const pare_data_ref whole = {.kind = "file"};

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
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    for (size_t n = 1; n < MOST; n++)
        for (size_t k = 0; k < n; k++) {
            const pare_statement s = pare_exchangeable(a, (pare_new_input){k, 0}, n, &whole, 1);
            const double may = 1 - s.probability;
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
    pare_arena_free(a);
}

/* What is claimed is at most (n - k) / (n + 1) itself, not its nearest double. */
static void probabilities_are_rounded_down(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    for (size_t n = 1; n < 1000; n++) {
        const pare_statement s = pare_exchangeable(a, (pare_new_input){n / 3, 0}, n, &whole, 1);
        const long double exact = (long double)(n - n / 3) / (long double)(n + 1);
        assert_true(s.probability <= exact && s.probability >= exact * (1 - 3e-16L));
    }
    pare_arena_free(a);
}

static void names_say_what_is_asked_for(void **state)
{
    (void)state;
    static const pare_new_input what[] = {{0, 0}, {1, 0}, {41, 0}, {0, 0.95}, {7, 0.999}, {0, 0.5}};
    static const char *const other[] = {"a new input",
                                        PARE_NEW_INPUT " of mine",
                                        PARE_NEW_INPUT ", largest errors left out: 0",
                                        PARE_NEW_INPUT ", largest errors left out: -1",
                                        PARE_NEW_INPUT ", largest errors left out: 1x",
                                        PARE_NEW_SHARE,
                                        PARE_NEW_SHARE ", confidence ",
                                        PARE_NEW_SHARE ", confidence 1",
                                        PARE_NEW_SHARE ", confidence 0.4",
                                        PARE_NEW_SHARE ", confidence nan",
                                        PARE_NEW_SHARE ", confidence 0.9 or so",
                                        PARE_NEW_INPUT_UNSEEN,
                                        ""};
    pare_arena *const a = pare_arena_new();
    pare_new_input got;
    assert_non_null(a);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        const char *const name = pare_new_input_name(a, what[i]);
        assert_non_null(name);
        assert_true(pare_new_input_read(&got, name));
        assert_true(got.left_out == what[i].left_out && got.confidence == what[i].confidence);
    }
    assert_string_equal(pare_new_input_name(a, what[0]), PARE_NEW_INPUT);
    assert_string_equal(pare_new_input_name(a, what[4]),
                        PARE_NEW_SHARE ", confidence 0.999, largest errors left out: 7");
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_false(pare_new_input_read(&got, other[i]));
    assert_false(pare_new_input_read(&got, NULL));
    pare_arena_free(a);
}

static void new_inputs_are_cut_as_the_others_are(void **state)
{
    (void)state;
    static const pare_data_ref part = {.kind = "part", .count = 2, .tokens = 64},
                               all = {.kind = "part", .count = 2},
                               /* they are that long */
        random = {.kind = "random", .count = 2, .tokens = 64};
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    const pare_new_input one = {0, 0}, share = {1, 0.9};
    pare_statement s = pare_exchangeable(a, one, 3, &part, 1);
    assert_string_equal(s.domain, "one more input drawn, and cut to its first 64 tokens at most, "
                                  "like the 3 of the data that neither the training of the model "
                                  "nor the cut has seen");
    assert_true(s.probability == 0.75 && s.bound == 1);
    s = pare_exchangeable(a, share, 3, &part, 1);
    assert_string_equal(s.domain, "all inputs drawn, and cut to their first 64 tokens at most, "
                                  "like the 3 of the data that neither the training of the model "
                                  "nor the cut has seen");
    assert_true(s.probability == 0.9 && s.bound == pare_share_above(3, 1, 0.9));
    for (int i = 0; i < 2; i++) {
        s = pare_exchangeable(a, one, 3, i ? &random : &all, 1);
        assert_string_equal(s.domain, "one more input drawn like the 3 of the data that neither "
                                      "the training of the model nor the cut has seen");
    }
    pare_arena_free(a);
}

/* ---- of two models --------------------------------------------------------------------------- */

/* y = x and y = 1.5 x, one token of one number: the error of an input is half of it. */
typedef struct pair {
    pare_model *f, *g;
    pare_arena *a;
    pare_err err;
    pare_statement said[16];
    pare_hypothesis supposed[2];
    pare_cert cert;
} pair;

static void pair_open(pair *p)
{
    static const double w0[] = {1}, w1[] = {1.5};
    *p = (pair){.a = pare_arena_new()};
    assert_non_null(p->a);
    assert_ok(pare_model_new(&p->f, &p->err), &p->err);
    p->f->stem.width = 1;
    p->f->top.out.w = (pare_weight){PARE_F64, 1, 1, w0};
    assert_ok(pare_model_clone(&p->g, p->f, &p->err), &p->err);
    p->g->top.out.w.data = w1;
}

static void pair_close(pair *p)
{
    pare_model_free(p->f);
    pare_model_free(p->g);
    pare_arena_free(p->a);
}

static void say(pair *p, const pare_inputs *set, const char *const *name, size_t n)
{
    pare_statement asked[16] = {{0}};
    for (size_t i = 0; i < n; i++) asked[i].name = name[i];
    p->cert = (pare_cert){.statements = p->said, .hypotheses = p->supposed, .proven = 100};
    assert_ok(pare_exchange_say(&p->cert, p->a, &whole, asked, n, p->f, p->g, set, NULL, &p->err),
              &p->err);
}

/* Four inputs, three of them in a batch; what is larger is left out, however they are arranged. */
static void the_next_error_is_the_bound(void **state)
{
    (void)state;
    static const double x[] = {-8, 2, 6}, y[] = {4};
    static const double half[] = {4, 3, 2, 1};
    static const char *const name[] = {
        "another statement",
        PARE_NEW_INPUT,
        PARE_NEW_SHARE ", confidence 0.95, largest errors left out: 3",
        PARE_NEW_INPUT ", largest errors left out: 1",
        PARE_NEW_INPUT ", largest errors left out: 2",
        PARE_NEW_INPUT ", largest errors left out: 3",
        PARE_NEW_INPUT ", largest errors left out: 4", /* there are no more */
    };
    pare_input in[2] = {{.batch = 3, .tokens = 1, .width = 1, .x = x},
                        {.batch = 1, .tokens = 1, .width = 1, .x = y}};
    const pare_inputs set = {2, in};
    pair p;
    pair_open(&p);
    say(&p, &set, name, sizeof name / sizeof *name);
    assert_true(p.cert.nstatements == 5 && p.cert.nhypotheses == 1);
    for (size_t i = 0; i < 5; i++) assert_string_equal(p.said[i].name, name[i + 1]);
    assert_true(p.said[0].bound == 100 && p.said[0].probability <= 0.8L); /* what is proven */
    assert_true(p.said[1].bound == pare_share_above(4, 3, 0.95) && p.said[1].probability == 0.95);
    for (size_t k = 1; k < 4; k++) {
        assert_true(p.said[k + 1].bound >= half[k] && p.said[k + 1].bound <= half[k] + 1e-12);
        assert_near(p.said[k + 1].probability, (double)(4 - k) / 5, 1e-15);
    }
    say(&p, &set, name, 1);
    assert_true(p.cert.nstatements == 0 && p.cert.nhypotheses == 0); /* nothing was asked for */
    say(&p, &(pare_inputs){0}, name, 2);
    assert_true(p.cert.nstatements == 0 && p.cert.nhypotheses == 0); /* nothing was drawn */
    pair_close(&p);
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
    assert_ok(pare_prove_each(each, p.f, p.g, &set, NULL, &p.err), &p.err);
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
        if (pare_has(&g->top.out.w))
            g->top.out.w = matrix(&k, g->top.out.w.rows, g->top.out.w.cols);
        g->top.norm = (pare_norm){.kind = PARE_NORM_MEAN};
        pare_input in[2] = {some_input(f, s, 1, 0), some_input(f, s + 100, 1, 0)};
        const pare_inputs both = {2, in};
        const size_t n = pare_draws(&both);
        double each[64], largest = 0;
        pare_gap all;
        assert_true(n <= 64 && n == in[0].batch + in[1].batch);
        assert_ok(pare_prove_each(each, f, g, &both, NULL, &err), &err);
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
            assert_true(each[i] >= gap.measured - gap.slack);
            assert_near(each[i], gap.proven.v, gap.slack + 1e-9 * gap.proven.v);
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
        cmocka_unit_test(names_say_what_is_asked_for),
        cmocka_unit_test(new_inputs_are_cut_as_the_others_are),
        cmocka_unit_test(the_next_error_is_the_bound),
        cmocka_unit_test(no_input_of_a_long_batch_is_taken_for_another),
        cmocka_unit_test(each_input_has_its_own_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
