/* Tests src/cert/vertex_softmax.c against every corner of the box, and points inside it. */
#include "cert/pair.h"
#include <pare_test.h>

enum { MOST = 10, BOXES = 400, INSIDE = 40 };

typedef struct box {
    size_t n;
    double c[MOST], low[MOST], high[MOST];
    uint32_t order[MOST];
} box;

static void sort_order(box *b)
{
    for (size_t i = 0; i < b->n; i++) b->order[i] = (uint32_t)i;
    for (size_t i = 0; i < b->n; i++)
        for (size_t j = i + 1; j < b->n; j++)
            if (b->c[b->order[j]] > b->c[b->order[i]]) {
                const uint32_t t = b->order[i];
                b->order[i] = b->order[j];
                b->order[j] = t;
            }
}

static box some_box(pare_rng *r)
{
    static const double widths[] = {0, 1e-9, 0.1, 1, 8};
    box b = {.n = 1 + (size_t)pare_rng_below(r, MOST)};
    const double width = widths[pare_rng_below(r, 5)], size = exp(4 * pare_rng_normal(r));
    for (size_t j = 0; j < b.n; j++) {
        const double s = 2 * pare_rng_normal(r), d = width * pare_rng_uniform(r);
        b.c[j] = size * pare_rng_normal(r);
        if (j > 0 && pare_rng_below(r, 4) == 0) b.c[j] = b.c[j - 1]; /* ties */
        b.low[j] = exp(s - d);
        b.high[j] = exp(s + d);
    }
    sort_order(&b);
    return b;
}

/* sum (c - least) w / sum w */
static long double value(const box *b, const double *w)
{
    long double num = 0, den = 0;
    const double least = b->c[b->order[b->n - 1]];
    for (size_t j = 0; j < b->n; j++) {
        num += ((long double)b->c[j] - least) * w[j];
        den += w[j];
    }
    return num / den;
}

static long double best_corner(const box *b)
{
    long double best = 0;
    for (size_t bits = 0; bits < (size_t)1 << b->n; bits++) {
        double w[MOST];
        for (size_t j = 0; j < b->n; j++) w[j] = bits >> j & 1 ? b->high[j] : b->low[j];
        const long double v = value(b, w);
        if (v > best) best = v;
    }
    return best;
}

static void it_is_the_best_corner(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(11, 0);
    for (size_t t = 0; t < BOXES; t++) {
        const box b = some_box(&r);
        const long double want = best_corner(&b);
        const double got = vertex_softmax(b.c, b.order, b.low, b.high, b.n);
        assert_true(got >= want);
        assert_le((double)(got - want), 1e-13 * (double)want + 1e-120);
    }
}

static void no_point_of_the_box_is_above_it(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(12, 0);
    for (size_t t = 0; t < BOXES; t++) {
        const box b = some_box(&r);
        const double got = vertex_softmax(b.c, b.order, b.low, b.high, b.n);
        for (size_t k = 0; k < INSIDE; k++) {
            double w[MOST];
            for (size_t j = 0; j < b.n; j++)
                w[j] = b.low[j] + (b.high[j] - b.low[j]) * pare_rng_uniform(&r);
            assert_true(got >= value(&b, w));
        }
    }
}

/* A box as wide as numbers go: the largest c, never more, and never a nan. */
static void wide_boxes_give_the_largest_value(void **state)
{
    (void)state;
    const double c[] = {-1, 3}, low[] = {0, 0}, high[] = {1, 1e300}, one[] = {1, 1};
    const uint32_t order[] = {1, 0};
    assert_near(vertex_softmax(c, order, low, high, 2), 4, 1e-14);
    assert_near(vertex_softmax(c, order, one, one, 2), 2, 1e-14);
    assert_true(vertex_softmax(c, order, one, one, 2) >= 2);
    const double huge[] = {INFINITY, INFINITY};
    assert_near(vertex_softmax(c, order, one, huge, 2), 4, 1e-14);
    const uint32_t only[] = {0};
    assert_true(vertex_softmax(c, only, one, high, 1) <= 1e-300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_best_corner),
        cmocka_unit_test(no_point_of_the_box_is_above_it),
        cmocka_unit_test(wide_boxes_give_the_largest_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
