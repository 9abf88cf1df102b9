/* Tests src/cert/auc_interval.c: the interval against the definition, pair by pair. */
#include <pare_test.h>
#include "cert/outputs.h"
#include "data/graph_data.h"

typedef struct stage {
    pare_arena *a;
    pare_err err;
    pare_rng rng;
} stage;

static void stage_open(stage *s, uint64_t seed)
{
    *s = (stage){.a = pare_arena_new(), .rng = pare_rng_at(seed, 0)};
    assert_non_null(s->a);
}

static void stage_close(stage *s)
{
    pare_arena_free(s->a);
}

enum { N = 60 };

typedef struct scores {
    double mid[2 * N], rad[N];
    int64_t target[N];
} scores;

/* Scores with many ties when `coarse`. */
static scores draw(pare_rng *r, bool coarse, double rad)
{
    scores s;
    for (size_t i = 0; i < N; i++) {
        s.target[i] = i < 2 ? (int64_t)i : (int64_t)pare_rng_below(r, 3) - 1;
        const double at = pare_rng_normal(r) + 0.5 * (double)s.target[i];
        s.mid[2 * i] = 0;
        s.mid[2 * i + 1] = coarse ? round(2 * at) : at;
        s.rad[i] = rad * pare_rng_uniform(r);
    }
    return s;
}

/* By the definition, both entries of every row moved by a share of their radius: drawn, or (r NULL)
 * by `all` of it, positives up and negatives down. */
static double auc_of(const scores *s, pare_rng *r, double all)
{
    double at[N], sum = 0, pairs = 0;
    for (size_t i = 0; i < N; i++) {
        const double way = s->target[i] == 1 ? all : -all;
        const double a = r ? 2 * pare_rng_uniform(r) - 1 : way;
        const double b = r ? 2 * pare_rng_uniform(r) - 1 : -way;
        at[i] = (s->mid[2 * i + 1] + a * s->rad[i]) - (s->mid[2 * i] + b * s->rad[i]);
    }
    for (size_t p = 0; p < N; p++)
        for (size_t n = 0; n < N; n++)
            if (s->target[p] == 1 && s->target[n] == 0) {
                sum += at[p] > at[n] ? 1 : at[p] == at[n] ? 0.5 : 0;
                pairs++;
            }
    return sum / pairs;
}

static pare_auc_bound interval(stage *st, scores *s)
{
    const pare_enclosure e = {.rows = N, .cols = 2, .mid = s->mid, .rad = s->rad};
    pare_auc_bound b;
    assert_ok(pare_auc_interval(&b, st->a, &e, s->target, &st->err), &st->err);
    return b;
}

static void moved_scores_stay_inside(void **state)
{
    (void)state;
    stage st;
    stage_open(&st, 21);
    for (int k = 0; k < 40; k++) {
        scores s = draw(&st.rng, k % 2, k % 4 < 2 ? 0.2 : 1e-3);
        const pare_auc_bound b = interval(&st, &s);
        assert_true(0 <= b.low && b.low <= b.high && b.high <= 1);
        /* ... and no wider than it must be. */
        assert_true(b.high >= auc_of(&s, NULL, 1) && b.low <= auc_of(&s, NULL, -1));
        assert_near(b.high, auc_of(&s, NULL, 1), 1e-12);
        assert_near(b.low, auc_of(&s, NULL, -1), 1e-12);
        for (int i = 0; i < 200; i++) {
            const double auc = auc_of(&s, &st.rng, 0);
            if (!(b.low <= auc && auc <= b.high))
                fail_msg("draw %d: %.17g is not in [%.17g, %.17g]", k, auc, b.low, b.high);
        }
    }
    stage_close(&st);
}

/* Without radii and ties the interval is the one number; ties count between 0 and 1. */
static void exact_scores_give_the_auc(void **state)
{
    (void)state;
    stage st;
    stage_open(&st, 22);
    for (int k = 0; k < 20; k++) {
        scores s = draw(&st.rng, k % 2, 0);
        uint8_t positive[N];
        double score[N], auc;
        size_t n = 0;
        for (size_t i = 0; i < N; i++) {
            if (s.target[i] < 0) continue;
            positive[n] = s.target[i] == 1;
            score[n++] = s.mid[2 * i + 1];
        }
        assert_ok(pare_auc(&auc, score, positive, n, &st.err), &st.err);
        assert_near(auc, auc_of(&s, NULL, 0), 1e-15);
        const pare_auc_bound b = interval(&st, &s);
        assert_true(b.low <= auc && auc <= b.high);
        if (k % 2 == 0) assert_true(b.high - b.low < 1e-15);
        for (size_t i = 0; i < N; i++) s.mid[2 * i + 1] = -s.mid[2 * i + 1];
        const pare_auc_bound transposed = interval(&st, &s);
        assert_near(transposed.low, 1 - b.high, 1e-15);
        assert_near(transposed.high, 1 - b.low, 1e-15);
    }
    stage_close(&st);
}

static void where_nothing_is_known_nothing_is_said(void **state)
{
    (void)state;
    stage st;
    stage_open(&st, 23);
    scores s = draw(&st.rng, false, 0.1);
    s.rad[0] = s.rad[1] = INFINITY;
    pare_auc_bound b = interval(&st, &s);
    assert_true(b.low < b.high);
    for (size_t i = 0; i < N; i++) s.rad[i] = INFINITY;
    b = interval(&st, &s);
    assert_true(b.low == 0 && b.high == 1);
    s.mid[3] = NAN;
    b = interval(&st, &s);
    assert_true(b.low == 0 && b.high == 1);
    for (size_t i = 0; i < N; i++) s.target[i] = 1; /* one class: there is no auc */
    b = interval(&st, &s);
    assert_true(b.low > b.high);
    stage_close(&st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(moved_scores_stay_inside),
                                       cmocka_unit_test(exact_scores_give_the_auc),
                                       cmocka_unit_test(where_nothing_is_known_nothing_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
