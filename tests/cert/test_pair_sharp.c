/* How sharp the balls of src/cert/pair*.c are: never looser than an independent numpy
 * implementation's ball_certificate on the same networks, and its figures beside ours. The numbers
 * in the tables are the golden ones (splitmix stream, seeds 1, 3 and 7), in the norm of the ball.
 */
#include "pair_models.h"
#include "splitmix_nets.h"

typedef struct golden {
    double a;
    pare_pattern_kind pattern;
    pare_attn_kind kind;
    bool keep; /* the last layer stays exact */
    pare_ball_norm norm;
    double want[3]; /* radius .01, .1, .5 */
} golden;

static const double radius_of[] = {.01, .1, .5};
static const golden table[] = {
    {0.05, PARE_FULL, PARE_ATTN_ZERO, false, PARE_BALL_TWO, {0.16693, 0.24911, 0.61545}},
    {0.05, PARE_FULL, PARE_ATTN_ZERO, false, PARE_BALL_MAX, {0.1301, 0.31119, 1.1264}},
    {0.05, PARE_FULL, PARE_ATTN_ZERO, true, PARE_BALL_TWO, {0.13072, 0.19422, 0.47923}},
    {0.05, PARE_FULL, PARE_ATTN_ZERO, true, PARE_BALL_MAX, {0.1101, 0.25389, 0.91922}},
    {0.05, PARE_FULL, PARE_ATTN_UNIFORM, false, PARE_BALL_TWO, {0.00077446, 0.0025895, 0.014262}},
    {0.05, PARE_FULL, PARE_ATTN_UNIFORM, false, PARE_BALL_MAX, {0.00083114, 0.0058344, 0.065758}},
    {0.05, PARE_FULL, PARE_ATTN_UNIFORM, true, PARE_BALL_TWO, {0.00072246, 0.0031065, 0.018187}},
    {0.05, PARE_FULL, PARE_ATTN_UNIFORM, true, PARE_BALL_MAX, {0.00086769, 0.0072348, 0.083808}},
    {0.05, PARE_CAUSAL, PARE_ATTN_ZERO, false, PARE_BALL_TWO, {0.49728, 0.57935, 0.94518}},
    {0.05, PARE_CAUSAL, PARE_ATTN_ZERO, false, PARE_BALL_MAX, {0.32643, 0.50738, 1.3214}},
    {0.05, PARE_CAUSAL, PARE_ATTN_ZERO, true, PARE_BALL_TWO, {0.40696, 0.4703, 0.75426}},
    {0.05, PARE_CAUSAL, PARE_ATTN_ZERO, true, PARE_BALL_MAX, {0.25798, 0.40123, 1.063}},
    {0.05, PARE_CAUSAL, PARE_ATTN_UNIFORM, false, PARE_BALL_TWO, {0.00078349, 0.0025818, 0.014161}},
    {0.05, PARE_CAUSAL, PARE_ATTN_UNIFORM, false, PARE_BALL_MAX, {0.00084982, 0.0057558, 0.065565}},
    {0.05, PARE_CAUSAL, PARE_ATTN_UNIFORM, true, PARE_BALL_TWO, {0.00074379, 0.003046, 0.018054}},
    {0.05, PARE_CAUSAL, PARE_ATTN_UNIFORM, true, PARE_BALL_MAX, {0.00087405, 0.0071917, 0.083611}},
    {0.2, PARE_FULL, PARE_ATTN_ZERO, false, PARE_BALL_TWO, {0.75351, 1.7749, 7.1045}},
    {0.2, PARE_FULL, PARE_ATTN_ZERO, false, PARE_BALL_MAX, {0.76144, 5.2298, 24.125}},
    {0.2, PARE_FULL, PARE_ATTN_ZERO, true, PARE_BALL_TWO, {0.60359, 1.5713, 7.4715}},
    {0.2, PARE_FULL, PARE_ATTN_ZERO, true, PARE_BALL_MAX, {0.68355, 5.3568, 24.938}},
    {0.2, PARE_FULL, PARE_ATTN_UNIFORM, false, PARE_BALL_TWO, {0.078279, 0.54531, 5.6013}},
    {0.2, PARE_FULL, PARE_ATTN_UNIFORM, false, PARE_BALL_MAX, {0.19555, 4.8464, 27.967}},
    {0.2, PARE_FULL, PARE_ATTN_UNIFORM, true, PARE_BALL_TWO, {0.082691, 0.64662, 6.5399}},
    {0.2, PARE_FULL, PARE_ATTN_UNIFORM, true, PARE_BALL_MAX, {0.22502, 5.3958, 30.975}},
    {0.2, PARE_CAUSAL, PARE_ATTN_ZERO, false, PARE_BALL_TWO, {1.8991, 2.896, 8.0262}},
    {0.2, PARE_CAUSAL, PARE_ATTN_ZERO, false, PARE_BALL_MAX, {1.5427, 5.8432, 24.537}},
    {0.2, PARE_CAUSAL, PARE_ATTN_ZERO, true, PARE_BALL_TWO, {1.7146, 2.6224, 8.3433}},
    {0.2, PARE_CAUSAL, PARE_ATTN_ZERO, true, PARE_BALL_MAX, {1.3854, 5.8963, 25.297}},
    {0.2, PARE_CAUSAL, PARE_ATTN_UNIFORM, false, PARE_BALL_TWO, {0.075426, 0.5354, 5.5772}},
    {0.2, PARE_CAUSAL, PARE_ATTN_UNIFORM, false, PARE_BALL_MAX, {0.18883, 4.7959, 27.707}},
    {0.2, PARE_CAUSAL, PARE_ATTN_UNIFORM, true, PARE_BALL_TWO, {0.081647, 0.63173, 6.4821}},
    {0.2, PARE_CAUSAL, PARE_ATTN_UNIFORM, true, PARE_BALL_MAX, {0.22022, 5.3338, 30.661}},
    {0.5, PARE_FULL, PARE_ATTN_ZERO, false, PARE_BALL_TWO, {13.677, 54.244, 145.53}},
    {0.5, PARE_FULL, PARE_ATTN_ZERO, false, PARE_BALL_MAX, {33.34, 157.43, 433.85}},
    {0.5, PARE_FULL, PARE_ATTN_ZERO, true, PARE_BALL_TWO, {13.532, 54.469, 147.78}},
    {0.5, PARE_FULL, PARE_ATTN_ZERO, true, PARE_BALL_MAX, {33.353, 158.26, 438.34}},
    {0.5, PARE_FULL, PARE_ATTN_UNIFORM, false, PARE_BALL_TWO, {11.516, 54.326, 155.8}},
    {0.5, PARE_FULL, PARE_ATTN_UNIFORM, false, PARE_BALL_MAX, {32.872, 167.26, 489.63}},
    {0.5, PARE_FULL, PARE_ATTN_UNIFORM, true, PARE_BALL_TWO, {12.161, 58.968, 165.88}},
    {0.5, PARE_FULL, PARE_ATTN_UNIFORM, true, PARE_BALL_MAX, {35.381, 174.83, 507.69}},
    {0.5, PARE_CAUSAL, PARE_ATTN_ZERO, false, PARE_BALL_TWO, {13.863, 55.252, 146.98}},
    {0.5, PARE_CAUSAL, PARE_ATTN_ZERO, false, PARE_BALL_MAX, {34.341, 159.44, 436.79}},
    {0.5, PARE_CAUSAL, PARE_ATTN_ZERO, true, PARE_BALL_TWO, {14.257, 56.108, 150.01}},
    {0.5, PARE_CAUSAL, PARE_ATTN_ZERO, true, PARE_BALL_MAX, {34.729, 160.58, 441.65}},
    {0.5, PARE_CAUSAL, PARE_ATTN_UNIFORM, false, PARE_BALL_TWO, {11.603, 54.483, 156.88}},
    {0.5, PARE_CAUSAL, PARE_ATTN_UNIFORM, false, PARE_BALL_MAX, {33.713, 169.22, 492.19}},
    {0.5, PARE_CAUSAL, PARE_ATTN_UNIFORM, true, PARE_BALL_TWO, {12.222, 59.234, 167.2}},
    {0.5, PARE_CAUSAL, PARE_ATTN_UNIFORM, true, PARE_BALL_MAX, {35.946, 176.59, 510.05}},
};

static pair_case case_of(pare_model *f, pare_input in, pare_attn_kind kind, size_t blocks)
{
    pair_case t = {.f = f, .in = in};
    assert_ok(pare_model_clone(&t.g, f, &t.err), &t.err);
    maker k = {.m = t.g, .r = pare_rng_at(1, 1)};
    for (size_t b = 0; b < blocks; b++) replace_attn(&k, &t.g->blocks[b].attn, kind);
    assert_ok(pare_model_check(t.g, &t.err), &t.err);
    return t;
}

static pare_ball prove(const pair_case *t, double radius, pare_ball_norm norm)
{
    pare_ball b;
    pare_err err = {0};
    pare_input in = t->in;
    const pare_inputs set = {1, &in};
    assert_ok(pare_prove_ball(&b, t->f, t->g, &set,
                              (pare_neighborhood){.radius = radius, .norm = norm}, NULL, &err),
              &err);
    return b;
}

/* The figure of the ball's own norm. */
static double figure(const pare_ball *b, pare_ball_norm norm)
{
    return norm == PARE_BALL_TWO ? b->rows2.v : b->apart.v;
}

static void no_looser_than_the_golden_radii(void **state)
{
    (void)state;
    double worst = 0, best = INFINITY;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const golden *const w = &table[i];
        stream s = {.x = 7};
        pare_model *const f = san_of(&s, 4, 2, 8, w->a * sqrt(3. / 8), 1 / sqrt(8.), w->pattern);
        pair_case t = case_of(f, rows_of(&s, 16, 8, sqrt(3.)), w->kind, w->keep ? 3 : 4);
        for (size_t k = 0; k < 3; k++) {
            const pare_ball b = prove(&t, radius_of[k], w->norm);
            const double got = figure(&b, w->norm);
            const found seen = search(&t, radius_of[k], w->norm, 30, 3);
            const double low = w->norm == PARE_BALL_TWO ? seen.rows2 : seen.apart;
            if (w->a == .05 && k == 1 && w->kind == PARE_ATTN_UNIFORM && !w->keep)
                print_message("a=.05 uniform %s r=.1, norm %s: found %.4g, ours %.4g, reference "
                              "%.4g\n",
                              pare_pattern_name(w->pattern), w->norm ? "2" : "inf", low, got,
                              w->want[k]);
            assert_le(low, got);
            assert_le(got, w->want[k]);
            worst = fmax(worst, got / w->want[k]);
            best = fmin(best, got / w->want[k]);
        }
        pair_close(&t);
    }
    print_message("ours / reference: %.3f to %.3f\n", best, worst);
}

/* The vectors: L=3, H=2, d=4, n=5, radius .1, all but the last replaced. */
static void the_test_vectors(void **state)
{
    (void)state;
    static const struct {
        pare_pattern_kind pattern;
        pare_attn_kind kind;
        double max, two;
    } want[] = {{PARE_FULL, PARE_ATTN_ZERO, 0.726932180694748, 0.40300656466895735},
                {PARE_FULL, PARE_ATTN_UNIFORM, 0.18186377366431397, 0.06490626320944501},
                {PARE_CAUSAL, PARE_ATTN_ZERO, 0.8277013263139199, 0.5569105375498232},
                {PARE_CAUSAL, PARE_ATTN_UNIFORM, 0.1598568486320626, 0.057369996284209704}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        stream s = {.x = 1};
        pare_model *const f = san_of(&s, 3, 2, 4, .2, .5, want[i].pattern);
        pair_case t = case_of(f, rows_of(&s, 5, 4, 1), want[i].kind, 2);
        const pare_ball max = prove(&t, .1, PARE_BALL_MAX), two = prove(&t, .1, PARE_BALL_TWO);
        print_message("inf: %.5f of %.5f, 2: %.5f of %.5f\n", max.apart.v, want[i].max, two.rows2.v,
                      want[i].two);
        assert_le(max.apart.v, want[i].max);
        assert_le(two.rows2.v, want[i].two);
        pair_close(&t);
    }
}

/* Two blocks with layer norms, gelu and biases; the first attention replaced, radius .001. */
static void the_test_vectors_with_norms(void **state)
{
    (void)state;
    static const struct {
        pare_attn_kind kind;
        double want;
    } list[] = {{PARE_ATTN_ZERO, 10.994131849595743}, {PARE_ATTN_UNIFORM, 16.393064240774244}};
    for (size_t i = 0; i < 2; i++) {
        stream s = {.x = 3};
        pare_model *const f = block_net(&s, PARE_CAUSAL);
        pair_case t = case_of(f, rows_of(&s, 5, 4, 1), list[i].kind, 1);
        if (list[i].kind == PARE_ATTN_ZERO) t.g->blocks[0].attn.bo = (pare_weight){0};
        const pare_ball b = prove(&t, 1e-3, PARE_BALL_TWO), none = prove(&t, 0, PARE_BALL_TWO);
        const found seen = search(&t, 1e-3, PARE_BALL_TWO, 30, 3);
        print_message("%s: at the centre %.4f, found %.4f, ours %.4f, reference %.4f\n",
                      pare_attn_name(list[i].kind), none.rows2.v, seen.rows2, b.rows2.v,
                      list[i].want);
        assert_le(seen.rows2, b.rows2.v);
        assert_le(b.rows2.v, list[i].want);
        pair_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_looser_than_the_golden_radii),
        cmocka_unit_test(the_test_vectors),
        cmocka_unit_test(the_test_vectors_with_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
