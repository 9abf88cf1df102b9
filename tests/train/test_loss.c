/* Tests src/train/loss.c and softmax_row.c: the losses, and their gradients against differences. */
#include "train/optimizer.h"
#include <pare_test.h>

enum { ROWS = 7, COLS = 5 };

typedef struct sample {
    double y[ROWS * COLS], t[ROWS * COLS], value[ROWS * COLS];
    int64_t label[ROWS];
} sample;

static sample draw(uint64_t seed, double sigma)
{
    sample s;
    pare_rng g = pare_rng_at(seed, 0);
    for (size_t i = 0; i < ROWS * COLS; i++) {
        s.y[i] = sigma * pare_rng_normal(&g);
        s.t[i] = sigma * pare_rng_normal(&g);
        s.value[i] = i % 3 == 1 ? NAN : pare_rng_normal(&g);
    }
    for (size_t r = 0; r < ROWS; r++)
        s.label[r] = r % 3 == 2 ? -1 : (int64_t)pare_rng_below(&g, COLS);
    return s;
}

typedef enum kind { ENTROPY, SQUARE, SOFT, KINDS } kind;

static double loss_of(kind k, void *dy, const pare_logits *y, const sample *s, const void *teacher,
                      double weight, const pare_exec *exec)
{
    pare_err err = {0};
    double loss = NAN;
    if (k == ENTROPY)
        assert_ok(pare_loss_cross_entropy(&loss, dy, y, s->label, weight, exec, &err), &err);
    else if (k == SQUARE)
        assert_ok(pare_loss_mse(&loss, dy, y, s->value, weight, exec, &err), &err);
    else
        assert_ok(pare_loss_kl(&loss, dy, y, teacher, 2.5, weight, exec, &err), &err);
    return loss;
}

static double loss_f64(kind k, double *dy, const sample *s, double weight)
{
    const pare_logits y = {PARE_F64, ROWS, COLS, s->y};
    return loss_of(k, dy, &y, s, s->t, weight, NULL);
}

static void gradients_are_central_differences_and_are_added(void **state)
{
    (void)state;
    const double h = 1e-5, weight = 0.75, before = 3;
    for (uint64_t seed = 1; seed <= 5; seed++)
        for (kind k = 0; k < KINDS; k++) {
            sample s = draw(seed, 2);
            double dy[ROWS * COLS], unused[ROWS * COLS];
            for (size_t i = 0; i < ROWS * COLS; i++) dy[i] = before;
            loss_f64(k, dy, &s, weight);
            for (size_t i = 0; i < ROWS * COLS; i++) {
                const double at = s.y[i];
                s.y[i] = at + h;
                const double up = loss_f64(k, unused, &s, 0);
                s.y[i] = at - h;
                const double down = loss_f64(k, unused, &s, 0);
                s.y[i] = at;
                assert_near(dy[i] - before, weight * (up - down) / (2 * h), 1e-9);
            }
        }
}

static void f32_is_f64_up_to_rounding(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (kind k = 0; k < KINDS; k++) {
            sample s = draw(seed, seed % 2 ? 1 : 20);
            float y[ROWS * COLS], t[ROWS * COLS], dy[ROWS * COLS] = {0};
            double wide[ROWS * COLS] = {0};
            for (size_t i = 0; i < ROWS * COLS; i++) {
                y[i] = (float)s.y[i], t[i] = (float)s.t[i];
                s.y[i] = (double)y[i], s.t[i] = (double)t[i];
            }
            const pare_logits l = {PARE_F32, ROWS, COLS, y};
            const double a = loss_of(k, dy, &l, &s, t, 1, NULL), b = loss_f64(k, wide, &s, 1);
            assert_near(a, b, 1e-5 * (1 + fabs(b)));
            for (size_t i = 0; i < ROWS * COLS; i++)
                assert_near(dy[i], wide[i], 1e-6 * (1 + fabs(wide[i])));
        }
}

/* Two classes by hand: log(1 + e^-2) where the label leads by 2. */
static void small_cases_are_those_of_the_book(void **state)
{
    (void)state;
    pare_err err = {0};
    const double y[2] = {3, 1}, t[2] = {1, 3}, value[2] = {1, NAN};
    const int64_t label[1] = {0};
    double dy[2] = {0}, loss = 0;
    const pare_logits l = {PARE_F64, 1, 2, y};
    const double p = 1 / (1 + exp(-2));
    assert_ok(pare_loss_cross_entropy(&loss, dy, &l, label, 1, NULL, &err), &err);
    assert_near(loss, -log(p), 1e-15);
    assert_near(dy[0], p - 1, 1e-15);
    assert_near(dy[1], 1 - p, 1e-15);
    assert_ok(pare_loss_mse(&loss, dy, &l, value, 0, NULL, &err), &err);
    assert_near(loss, 4, 0); /* the nan does not count, also in the mean */
    assert_ok(pare_loss_kl(&loss, dy, &l, t, 1, 0, NULL, &err), &err);
    assert_near(loss, 2 * (2 * p - 1), 1e-14); /* sum p log(p/q) with p, q transposed round */
    assert_ok(pare_loss_kl(&loss, dy, &l, y, 3, 0, NULL, &err), &err);
    assert_near(loss, 0, 1e-15);
}

static void logits_of_ten_thousand_are_no_trouble(void **state)
{
    (void)state;
    pare_err err = {0};
    const float y[6] = {1e4f, 1e4f - 2, -1e4f, -1e4f, 1e4f, 0}, t[6] = {-1e4f, 1e4f, 0, 0, 0, 1e4f};
    const int64_t label[2] = {1, 0};
    float dy[6] = {0};
    double loss = 0;
    const pare_logits l = {PARE_F32, 2, 3, y};
    assert_ok(pare_loss_cross_entropy(&loss, dy, &l, label, 2, NULL, &err), &err);
    assert_near(loss, (2 + log1p(exp(-2)) + 2e4) / 2, 1e-3);
    assert_near(dy[3], -1, 1e-6); /* label 0 has no share at all, label 1 all of it */
    assert_near(dy[4], 1, 1e-6);
    assert_ok(pare_loss_kl(&loss, dy, &l, t, 2, 1, NULL, &err), &err);
    assert_true(isfinite(loss) && loss > 1e4);
    for (size_t i = 0; i < 6; i++) assert_true(isfinite(dy[i]));
}

static void what_is_not_finite_comes_back_as_such(void **state)
{
    (void)state;
    const float bad[3] = {NAN, INFINITY, -INFINITY};
    for (size_t b = 0; b < 3; b++) {
        pare_err err = {0};
        float y[40] = {0}, t[40] = {0}, dy[40] = {0};
        const int64_t label[1] = {3};
        double loss = 0;
        const pare_logits l = {PARE_F32, 1, 40, y};
        y[3] = bad[b];
        assert_ok(pare_loss_cross_entropy(&loss, dy, &l, label, 1, NULL, &err), &err);
        assert_true(isnan(loss - loss));
        assert_ok(pare_loss_kl(&loss, dy, &l, t, 1, 1, NULL, &err), &err);
        assert_true(isnan(loss - loss));
    }
}

static void one_class_costs_nothing(void **state)
{
    (void)state;
    pare_err err = {0};
    const double y[3] = {-5, 0, 1e300};
    const int64_t label[3] = {0, -1, 0};
    double dy[3] = {0}, loss = 1;
    const pare_logits l = {PARE_F64, 3, 1, y};
    assert_ok(pare_loss_cross_entropy(&loss, dy, &l, label, 1, NULL, &err), &err);
    assert_true(loss == 0 && dy[0] == 0 && dy[1] == 0 && dy[2] == 0);
}

static void rows_that_do_not_count_get_no_gradient(void **state)
{
    (void)state;
    sample s = draw(3, 1);
    double dy[ROWS * COLS] = {0};
    loss_f64(ENTROPY, dy, &s, 1);
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0;
        for (size_t c = 0; c < COLS; c++) sum += fabs(dy[r * COLS + c]);
        assert_true(s.label[r] < 0 ? sum == 0 : sum > 0);
    }
}

static void what_cannot_be_learnt_from_is_refused(void **state)
{
    (void)state;
    pare_err err = {0};
    const double y[4] = {0}, none[4] = {NAN, NAN, NAN, NAN};
    double dy[4] = {0}, loss = 0;
    const pare_logits l = {PARE_F64, 2, 2, y}, empty = {PARE_F64, 0, 2, y};
    const int64_t masked[2] = {-1, -1}, high[2] = {0, 2}, low[2] = {-2, 0};
    assert_status(pare_loss_cross_entropy(&loss, dy, &l, masked, 1, NULL, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "no row counts");
    assert_status(pare_loss_cross_entropy(&loss, dy, &l, high, 1, NULL, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "label 2 of row 1 is out of range: there are 2 classes");
    assert_status(pare_loss_cross_entropy(&loss, dy, &l, low, 1, NULL, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_loss_mse(&loss, dy, &l, none, 1, NULL, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_loss_kl(&loss, dy, &empty, y, 1, 1, NULL, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_loss_kl(&loss, dy, &l, y, 0, 1, NULL, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_loss_kl(&loss, dy, &l, y, NAN, 1, NULL, &err), PARE_ERR_USAGE, &err);
    for (size_t i = 0; i < 4; i++) assert_true(dy[i] == 0);
}

/* Widths around the pieces and lanes, against sums in f64; and no thread changes a bit. */
static void every_width_and_any_threads(void **state)
{
    (void)state;
    static float y[600 * 9], t[600 * 9], dy[2][600 * 9];
    const size_t width[] = {1, 2, 15, 16, 17, 31, 255, 256, 257, 512, 599};
    const pare_exec two = {.threads = 2};
    pare_rng g = pare_rng_at(5, 5);
    for (size_t i = 0; i < 600 * 9; i++)
        y[i] = (float)pare_rng_normal(&g), t[i] = (float)pare_rng_normal(&g);
    for (size_t w = 0; w < sizeof width / sizeof *width; w++) {
        pare_err err = {0};
        const size_t n = width[w];
        const pare_logits l = {PARE_F32, 9, n, y};
        int64_t label[9];
        double loss[2], kl[2], want = 0;
        for (size_t r = 0; r < 9; r++) {
            double sum = 0;
            label[r] = (int64_t)(n - 1 - r % n);
            for (size_t c = 0; c < n; c++) sum += exp((double)y[r * n + c]);
            want += (log(sum) - (double)y[r * n + (size_t)label[r]]) / 9;
        }
        for (size_t x = 0; x < 2; x++) {
            const pare_exec *const exec = x ? &two : NULL;
            memset(dy[x], 0, sizeof dy[x]);
            assert_ok(pare_loss_cross_entropy(&loss[x], dy[x], &l, label, 1, exec, &err), &err);
            assert_ok(pare_loss_kl(&kl[x], dy[x], &l, t, 1.5, 1, exec, &err), &err);
        }
        assert_near(loss[0], want, 1e-6 * (1 + want));
        assert_true(loss[0] == loss[1] && kl[0] == kl[1]);
        assert_memory_equal(dy[0], dy[1], sizeof dy[0]);
        for (size_t r = 0; r < 9; r++) { /* the gradient of a row sums to 0 */
            double sum = 0;
            for (size_t c = 0; c < n; c++) sum += (double)dy[0][r * n + c];
            assert_near(sum, 0, 1e-6);
        }
        for (size_t i = 9 * n; i < 600 * 9; i++) assert_true(dy[0][i] == 0); /* nothing beyond */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_central_differences_and_are_added),
        cmocka_unit_test(f32_is_f64_up_to_rounding),
        cmocka_unit_test(small_cases_are_those_of_the_book),
        cmocka_unit_test(logits_of_ten_thousand_are_no_trouble),
        cmocka_unit_test(what_is_not_finite_comes_back_as_such),
        cmocka_unit_test(one_class_costs_nothing),
        cmocka_unit_test(rows_that_do_not_count_get_no_gradient),
        cmocka_unit_test(what_cannot_be_learnt_from_is_refused),
        cmocka_unit_test(every_width_and_any_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
