/* Tests src/model/{input_moments,feedback}.c and src/ticket/{fit_feedback,feedback_rate}.c: errors that later entries make
 * good, and bits that are chosen by what they cost. */
#include "pare_test.h"
#include "ticket/fit_feedback.h"
#include "ticket/ticket_matrix.h"
#include "linalg/matrix.h"
#include "model/source.h"
#include "ticket/ticket_internal.h"
#include <pare/pare.h>

/* E y y^T of 3 n rows whose k-th direction has the size (k + 1)^-power. */
static input_moments correlated(pare_arena *a, size_t n, double power, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 5);
    input_moments e = {pare_mat_new(a, n, n), pare_mat_new(a, n, n)};
    pare_mat turn = pare_mat_new(a, n, n), y = pare_mat_new(a, 3 * n, n),
             x = pare_mat_new(a, 3 * n, n);
    for (size_t i = 0; i < n * n; i++) turn.v[i] = pare_rng_normal(&r);
    for (size_t i = 0; i < 3 * n * n; i++)
        x.v[i] = pare_rng_normal(&r) * pow((double)(i % n + 1), -power);
    pare_gemm(&y, 1, &x, false, &turn, false, 0);
    pare_gemm(&e.square, 1 / (3.0 * (double)n), &y, true, &y, false, 0);
    e.cross = e.square;
    return e;
}

/* ---- the order and the pushes ---------------------------------------------------------------- */

/* The first `coarse` weights of an output are settled at 0, all others where they are asked to be.
 */
typedef struct stubborn {
    size_t settled, coarse;
    double error[8]; /* by input */
    const double *w;
} stubborn;

static double settle_stubborn(void *self, size_t output, size_t input, double goal, double worth)
{
    stubborn *const s = self;
    (void)output, (void)worth;
    const double v = s->settled++ < s->coarse ? 0 : goal;
    s->error[input] = s->w[input] - v;
    return v;
}

static double cost_of(const double *e, const pare_mat *h, double ridge)
{
    double sum = 0;
    for (size_t i = 0; i < h->rows; i++)
        for (size_t j = 0; j < h->rows; j++)
            sum += e[i] * e[j] * (pare_row(h, i)[j] + (i == j ? ridge : 0));
    return sum;
}

/* Whatever the first errors are, no other choice of the rest costs less. */
static void the_rest_makes_good_what_it_can(void **state)
{
    const input_moments e = correlated(*state, 8, 1, 3);
    double trace = 0, room[8];
    feedback f;
    for (size_t i = 0; i < 8; i++) trace += pare_row(&e.square, i)[i];
    const double ridge = 0.01 * trace / 8;
    assert_ok(feedback_of(&f, *state, 8, &e, NULL), NULL);
    for (size_t coarse = 0; coarse <= 8; coarse++) {
        static const double w[8] = {.3, -.2, .5, .1, -.4, .25, -.15, .05};
        stubborn s = {.coarse = coarse, .w = w};
        feedback_run(&f, w, room, 0, settle_stubborn, &s);
        const double least = cost_of(s.error, &e.square, ridge);
        if (coarse == 0) assert_near(least, 0, 1e-15);
        for (size_t k = coarse; k < 8; k++)
            for (int sign = -1; sign <= 1; sign += 2) {
                double other[8];
                memcpy(other, s.error, sizeof other);
                other[f.order[k]] += sign * 1e-3;
                assert_true(cost_of(other, &e.square, ridge) > least);
            }
    }
}

static void without_inputs_nothing_is_pushed(void **state)
{
    feedback f;
    double room[3];
    static const double w[3] = {1, 2, 3};
    stubborn s = {.coarse = 1, .w = w};
    assert_ok(feedback_of(&f, *state, 3, NULL, NULL), NULL);
    feedback_run(&f, w, room, 0, settle_stubborn, &s);
    assert_true(s.error[0] == 1 && s.error[1] == 0 && s.error[2] == 0);
}

/* Where the ticket's rows are twice the model's, half the map does the same. */
static void the_aim_makes_good_what_came_before(void **state)
{
    input_moments e = correlated(*state, 6, .5, 4);
    pare_mat w = pare_mat_new(*state, 2, 6), aim = pare_mat_new(*state, 2, 6),
             half = pare_mat_new(*state, 6, 6);
    for (size_t i = 0; i < 12; i++) w.v[i] = (double)i - 5;
    for (size_t i = 0; i < 36; i++) half.v[i] = e.square.v[i] / 2; /* E x y^T, y = 2 x */
    assert_ok(feedback_aim(&aim, &w, &e, *state, NULL), NULL);
    for (size_t i = 0; i < 12; i++) assert_near(aim.v[i], w.v[i], 1e-9);
    e.cross = half;
    assert_ok(feedback_aim(&aim, &w, &e, *state, NULL), NULL);
    double apart = 0, size = 0;
    for (size_t i = 0; i < 12; i++) {
        apart += (aim.v[i] - w.v[i] / 2) * (aim.v[i] - w.v[i] / 2);
        size += w.v[i] * w.v[i];
    }
    assert_le(sqrt(apart / size), 0.2); /* the ridge holds it a little */
}

/* ---- what enters a matrix -------------------------------------------------------------------- */

static pare_model *random_model(pare_random_kind kind)
{
    pare_model *m = NULL;
    pare_err err = {0};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = kind, o.dim = 16, o.layers = 2, o.heads = 2, o.vocab = 30, o.context = 12;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

typedef struct visitor {
    const pare_model *m;
    const pare_inputs *set;
    pare_arena *a;
    size_t known;
} visitor;

static pare_status look(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    visitor *const v = self;
    input_moments e;
    if (!pare_has(w) || vector) return PARE_OK;
    assert_ok(input_moments_of(&e, v->a, v->m, v->m, pare_source_of(name), v->set, NULL, err), err);
    if (!e.square.v) return PARE_OK;
    v->known++;
    assert_int_equal(e.square.rows, w->cols);
    for (size_t i = 0; i < w->cols * w->cols; i++) assert_true(e.square.v[i] == e.cross.v[i]);
    for (size_t i = 0; i < w->cols; i++) assert_true(pare_row(&e.square, i)[i] > 0);
    return PARE_OK;
}

static void every_map_of_every_model_has_its_rows(void **state)
{
    static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        pare_model *const m = random_model(kinds[k]);
        pare_inputs set;
        visitor v = {m, &set, *state, 0};
        assert_ok(pare_inputs_random(&set, *state, m, 3, 7, 1, NULL), NULL);
        assert_ok(pare_model_each_weight(m, look, &v, NULL), NULL);
        print_message("%s: %zu maps\n", pare_random_kinds[kinds[k]], v.known);
        assert_true(v.known >= 12); /* four of attention and two of the rest, two blocks */
        pare_model_free(m);
    }
}

/* The outputs of the last map are its rows times it: E out out^T = W (E y y^T) W^T. */
static void the_rows_of_the_last_map_give_the_outputs(void **state)
{
    pare_model *const m = random_model(PARE_RANDOM_GPT);
    pare_inputs set;
    input_moments e;
    const pare_weight *const w = m->head.tied ? &m->embedding.table : &m->head.out.w;
    const char *const name = m->head.tied ? "embedding.embedding" : "head.out.weight";
    assert_ok(pare_inputs_random(&set, *state, m, 1, 12, 1, NULL), NULL);
    assert_ok(input_moments_of(&e, *state, m, m, pare_source_of(name), &set, NULL, NULL), NULL);
    pare_mat wide = pare_mat_new(*state, w->rows, w->cols),
             half = pare_mat_new(*state, w->rows, w->cols),
             got = pare_mat_new(*state, w->rows, w->rows), out = pare_mat_new(*state, 12, w->rows),
             want = pare_mat_new(*state, w->rows, w->rows);
    pare_weight_widen(&wide, w, 0, 0);
    pare_gemm(&half, 1, &wide, false, &e.square, false, 0);
    pare_gemm(&got, 1, &half, false, &wide, true, 0);
    assert_ok(pare_forward_f64(out.v, m, &set.in[0], NULL, NULL, NULL), NULL);
    if (pare_has(&m->head.out.b))
        for (size_t i = 0; i < 12; i++)
            for (size_t j = 0; j < w->rows; j++)
                pare_row_mut(&out, i)[j] -= pare_weight_at(&m->head.out.b, j);
    pare_gemm(&want, 1.0 / 12, &out, true, &out, false, 0);
    for (size_t i = 0; i < w->rows * w->rows; i++) assert_near(got.v[i], want.v[i], 1e-4);
    pare_model_free(m);
}

/* ---- fits ------------------------------------------------------------------------------------ */

typedef struct sample {
    fit_problem p;
    feedback f;
    input_moments e;
    fit_feedback_opts o;
} sample;

/* Outputs are rows of a problem that is not transposed. */
static void make_sample(sample *s, pare_arena *a, size_t outputs, size_t inputs, size_t items,
                        double power)
{
    pare_rng r = pare_rng_at(7, outputs);
    int32_t *const A = pare_alloc(a, outputs * inputs * items, sizeof *A);
    int32_t *const B = pare_alloc(a, inputs * items * inputs, sizeof *B);
    assert_true(A && B && outputs >= inputs);
    s->p =
        (fit_problem){.a = outputs, .b = inputs, .n = inputs * items, .scale = 1, .A = A, .B = B};
    pare_source_weights(A, 9, 0, 0, outputs * s->p.n);
    pare_source_weights(B, 9, 1, 0, s->p.n * inputs);
    s->p.w = pare_mat_new(a, outputs, inputs);
    for (size_t i = 0; i < outputs * inputs; i++) s->p.w.v[i] = .2 * pare_rng_normal(&r);
    s->e = correlated(a, inputs, power, 6);
    assert_ok(feedback_of(&s->f, a, inputs, &s->e, NULL), NULL);
    s->o = (fit_feedback_opts){.f = &s->f, .aim = s->p.w};
}

/* tr E H E^T */
static double output_loss(const fit_result *r, const input_moments *e)
{
    double sum = 0;
    for (size_t i = 0; i < r->e.rows; i++) sum += cost_of(pare_row(&r->e, i), &e->square, 0);
    return sum;
}

static void feedback_errs_less_where_inputs_are_correlated(void **state)
{
    sample s;
    fit_result plain, fed, two;
    const pare_exec many = {.threads = 3};
    make_sample(&s, *state, 24, 16, 8, 1.5);
    assert_ok(fit_block(&plain, *state, &s.p, NULL, NULL), NULL);
    assert_ok(fit_feedback(&fed, *state, &s.p, &s.o, NULL, NULL), NULL);
    assert_ok(fit_feedback(&two, *state, &s.p, &s.o, &many, NULL), NULL);
    assert_memory_equal(fed.ma.v, two.ma.v, fed.ma.rows * fed.ma.words * sizeof *fed.ma.v);
    const double gain = sqrt(output_loss(&plain, &s.e) / output_loss(&fed, &s.e));
    print_message("feedback: outputs err %.2f times less\n", gain);
    assert_le(1.5, gain);
}

static void without_a_price_and_inputs_the_fit_is_that_of_blocks(void **state)
{
    sample s;
    fit_result block, fed;
    make_sample(&s, *state, 12, 6, 9, 0);
    assert_ok(feedback_of(&s.f, *state, 6, NULL, NULL), NULL);
    assert_ok(fit_block(&block, *state, &s.p, NULL, NULL), NULL);
    assert_ok(fit_feedback(&fed, *state, &s.p, &s.o, NULL, NULL), NULL);
    for (size_t i = 0; i < 12 * 6; i++) assert_true(fabs(block.e.v[i]) == fabs(fed.e.v[i]));
}

/* Fewer bits are asked for, fewer are taken, and the error grows. */
static void the_price_buys_the_bits_that_are_asked_for(void **state)
{
    double last = 0;
    for (double rate = 6; rate > 2.5; rate -= 1) {
        sample s;
        fit_cost cost;
        int exponent = PARE_TICKET_CHOOSE;
        make_sample(&s, *state, 64, 16, 12, 0);
        assert_ok(feedback_choose_rate(&s.o, &exponent, *state, &s.p, rate, NULL, NULL), NULL);
        assert_ok(fit_feedback_cost(&cost, *state, &s.p, &s.o, 1, NULL, NULL), NULL);
        const double loss = cost.loss * s.p.scale * s.p.scale;
        print_message("asked for %.1f bits: %.3f, scale 2^%d, mean square %.2e\n", rate, cost.bits,
                      exponent, loss);
        assert_near(cost.bits, rate, 0.15);
        assert_true(loss > last);
        last = loss;
    }
}

/* Its units come in blocks, which those of a ReLU source do not; and a bias has no rows before it.
 */
static void feed_forward_parts_and_biases_stay_as_they_are(void **state)
{
    pare_model *m = NULL, *t = NULL;
    pare_ticket_report r;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_ticket_opts by = PARE_TICKET_OPTS_DEFAULT;
    pare_err err = {0};
    (void)state;
    o.kind = PARE_RANDOM_GRAPH, o.dim = 4, o.heads = 1, o.layers = 1, o.ffn = 3;
    by.bits = 6, by.mode = PARE_TICKET_MERGED, by.method = PARE_TICKET_FEEDBACK;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_ticket(&t, &r, m, &by, NULL, &err), &err);
    assert_true(r.merged);
    assert_int_equal(r.relu_parts, 0);
    pare_model_free(t);
    by.biases = true;
    assert_int_equal(pare_ticket(&t, &r, m, &by, NULL, &err), PARE_ERR_USAGE);
    assert_null(t);
    assert_non_null(strstr(err.msg, "biases"));
    pare_model_free(m);
}

/* Hidden units that no input wakes: what enters the map behind them says nothing about it, and it
 * is fitted for its own sake. */
static void a_part_that_is_never_awake_is_fitted_as_it_is(void **state)
{
    pare_arena *const a = *state;
    pare_model *m = NULL, *t = NULL, *q = NULL;
    pare_ticket_report r;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_ticket_opts by = PARE_TICKET_OPTS_DEFAULT;
    pare_err err = {0};
    double bits;
    o.kind = PARE_RANDOM_BERT, o.dim = 4, o.heads = 1, o.layers = 1, o.ffn = 3, o.vocab = 5;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    pare_ffn *const f = &m->blocks[0].ffn;
    float *const asleep = pare_alloc(a, 3, sizeof *asleep);
    for (size_t i = 0; i < 3; i++) asleep[i] = -1000;
    f->act = PARE_ACT_RELU;
    f->layers[0].b = (pare_weight){PARE_F32, 1, 3, asleep};
    const int64_t ids[] = {0, 1, 2, 3, 4};
    pare_input in = {.batch = 1, .tokens = 5, .ids = ids};
    const pare_inputs set = {1, &in};
    by.bits = 12, by.method = PARE_TICKET_FEEDBACK, by.fit = &set;
    for (int k = 0; k < 2; k++) {
        by.stored = k ? 8 : 0;
        assert_ok(pare_ticket(&t, &r, m, &by, NULL, &err), &err);
        assert_ok(pare_ticket_rounded(&q, &bits, m, &r, &set, NULL, &err), &err);
        pare_model_free(q);
        pare_model_free(t);
    }
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(the_rest_makes_good_what_it_can),
        ARENA_TEST(without_inputs_nothing_is_pushed),
        ARENA_TEST(the_aim_makes_good_what_came_before),
        ARENA_TEST(every_map_of_every_model_has_its_rows),
        ARENA_TEST(the_rows_of_the_last_map_give_the_outputs),
        ARENA_TEST(feedback_errs_less_where_inputs_are_correlated),
        ARENA_TEST(without_a_price_and_inputs_the_fit_is_that_of_blocks),
        ARENA_TEST(the_price_buys_the_bits_that_are_asked_for),
        ARENA_TEST(feed_forward_parts_and_biases_stay_as_they_are),
        ARENA_TEST(a_part_that_is_never_awake_is_fitted_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
