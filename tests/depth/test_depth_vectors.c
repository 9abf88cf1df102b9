/* Golden vectors of an independent numpy implementation (A, B): outputs of every collapse to 1e-12,
 * and a-priori bounds. Ours are the golden ones to 1e-9 where it is the same formula, though
 * spectral norms are proven by residuals. Elsewhere ours may be smaller, as a step can be bounded
 * in more ways. Needs
 * ../shared. */
#include "depth_nets.h"
#include "../cert/splitmix_nets.h"
#include "base/json.h"
#include "depth/theorem2_parallel.h"
#include <pare/depth.h>

#define VECTORS "../shared/reference/depth/vectors.json"

typedef struct vectors {
    pare_arena *a;
    cJSON *root, *now; /* the case at hand */
    pare_model *m;
    pare_input in;
} vectors;

static void open_case(vectors *v, const char *name, pare_pattern_kind pattern)
{
    char *text = NULL;
    size_t bytes = 0;
    pare_err err = {0};
    v->a = pare_arena_new();
    assert_ok(pare_text_read(&text, &bytes, v->a, VECTORS, &err), &err);
    v->root = cJSON_Parse(text);
    assert_non_null(v->root);
    v->now = cJSON_GetObjectItem(v->root, name);
    assert_non_null(v->now);
    stream s = {.x = 1};
    v->m = san_of(&s, 3, 2, 4, .2, .5, pattern);
    v->in = rows_of(&s, 5, 4, 1);
}

static void close_case(vectors *v)
{
    cJSON_Delete(v->root);
    pare_model_free(v->m);
    pare_arena_free(v->a);
}

static double number_at(const vectors *v, const char *group, const char *key)
{
    const cJSON *const from = group ? cJSON_GetObjectItem(v->now, group) : v->now;
    const cJSON *const n = cJSON_GetObjectItem(from, key);
    assert_non_null(n);
    return n->valuedouble;
}

static void assert_output(const vectors *v, const pare_model *m, const char *key)
{
    const cJSON *const want = cJSON_GetObjectItem(v->now, key);
    double y[20];
    assert_non_null(want);
    net_run(y, m, v->in.x, 5, 4);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            assert_near(y[i * 4 + j],
                        cJSON_GetArrayItem(cJSON_GetArrayItem(want, i), j)->valuedouble, 1e-12);
}

/* The first collapse of f that g may be by its shapes; *keep is set where it has one. */
static pare_collapse recognize_collapse(size_t *keep, const pare_model *f, const pare_model *g)
{
    for (pare_collapse kind = 0; kind < PARE_ONES; kind++)
        for (*keep = 0; *keep < f->nblocks; (*keep)++)
            if (collapse_fits(f, g, kind, *keep)) return kind;
    *keep = 0;
    return PARE_ONES;
}

static void check_collapse(const vectors *v, pare_collapse kind, const char *key)
{
    const pare_inputs calib = {1, (pare_input *)(uintptr_t)&v->in};
    pare_model *const g = collapsed(v->m, kind, 2, &calib);
    size_t keep = 9;
    assert_output(v, g, key);
    assert_int_equal(recognize_collapse(&keep, v->m, g), kind);
    if (kind == PARE_ONE_KEEP || kind == PARE_ONE_KEEPBIAS || kind == PARE_ONE_UNIFORM_KEEP)
        assert_int_equal(keep, 2);
    pare_model_free(g);
}

static void every_collapse_gives_the_golden_outputs(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    vectors v;
    open_case(&v, "A_full", PARE_FULL);
    assert_output(&v, v.m, "S");
    check_collapse(&v, PARE_ONE_IDENTITY, "collapse_identity");
    check_collapse(&v, PARE_ONE_KEEP, "collapse_keep");
    check_collapse(&v, PARE_ONE_PARALLEL, "collapse_parallel");
    check_collapse(&v, PARE_ONE_UNIFORM, "collapse_uniform");
    check_collapse(&v, PARE_ONE_UNIFORM_KEEP, "collapse_uniform+keep");
    check_collapse(&v, PARE_ONE_PARALLEL_UNIFORM, "collapse_parallel+uniform");
    check_collapse(&v, PARE_ONE_RANKONE, "collapse_rankone_calib=[X]");
    check_collapse(&v, PARE_ONE_KEEPBIAS, "collapse_keepbias_calib=[X]");
    close_case(&v);
}

static void umix_gives_the_golden_outputs(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    vectors v;
    open_case(&v, "B_causal", PARE_CAUSAL);
    assert_output(&v, v.m, "S");
    check_collapse(&v, PARE_ONE_UMIX, "umix_out");
    close_case(&v);
}

static void check_bound(const vectors *v, pare_collapse kind, const char *key)
{
    pare_model *const g = collapsed(v->m, kind, 2, NULL);
    const depth_bound b = bound_of(v->m, g, 1, -1);
    const double inf = number_at(v, "apriori_inf", key), two = number_at(v, "apriori_2", key);
    const double seen = net_apart(v->m, g, v->in.x, 5, 4);
    print_message("%s: %.6g %.6g, reference %.6g %.6g; all %.6g, seen %.3g\n", key,
                  b.by[DEPTH_NORM_INF].v, b.by[DEPTH_NORM_TWO].v, inf, two, b.bound.v, seen);
    assert_le(b.by[DEPTH_NORM_INF].v, inf * (1 + 1e-9));
    assert_le(b.by[DEPTH_NORM_TWO].v, two * (1 + 1e-9));
    assert_le(seen, b.bound.v);
    assert_le(b.bound.v, fmin(b.by[DEPTH_NORM_INF].v, b.by[DEPTH_NORM_TWO].v));
    if (kind == PARE_ONE_UNIFORM)
        assert_le(inf * .95, b.by[DEPTH_NORM_INF].v); /* the mean for itself */
    if (kind == PARE_ONE_PARALLEL || kind == PARE_ONE_PARALLEL_UNIFORM) {
        assert_le(inf * (1 - 1e-9), b.by[DEPTH_NORM_INF].v); /* the very same formula */
        assert_le(two * (1 - 1e-9), b.by[DEPTH_NORM_TWO].v);
    }
    pare_model_free(g);
}

static void bounds_are_the_golden_ones_or_smaller(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    vectors v;
    open_case(&v, "A_full", PARE_FULL);
    check_bound(&v, PARE_ONE_IDENTITY, "identity");
    check_bound(&v, PARE_ONE_KEEP, "keep");
    check_bound(&v, PARE_ONE_UNIFORM, "uniform");
    check_bound(&v, PARE_ONE_PARALLEL, "parallel");
    check_bound(&v, PARE_ONE_PARALLEL_UNIFORM, "parallel_uniform");
    close_case(&v);
    open_case(&v, "B_causal", PARE_CAUSAL);
    pare_model *const g = all_uniform(v.m), *const one = collapsed(v.m, PARE_ONE_UMIX, 0, NULL);
    const depth_bound b = bound_of(v.m, g, 1, -1), u = bound_of(v.m, one, 1, -1);
    const double want = number_at(&v, "apriori_uniform", "inf");
    const double two = number_at(&v, "apriori_uniform", "2");
    assert_near(b.by[DEPTH_NORM_INF].v, want, 1e-9 * want);
    assert_near(b.by[DEPTH_NORM_TWO].v, two, 1e-9 * two);
    assert_near(u.by[DEPTH_NORM_INF].v, want, 1e-9 * want); /* one layer, the same function */
    pare_model_free(g);
    pare_model_free(one);
    close_case(&v);
}

static void printed_formulas_are_the_golden_ones(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    vectors v;
    open_case(&v, "A_full", PARE_FULL);
    const depth_paper p = depth_paper_of(.2, 1, 2, 3);
    assert_near(p.eps, number_at(&v, "paper", "eps"), 1e-12);
    assert_near(p.delta, number_at(&v, "paper", "delta"), 1e-9);
    assert_near(p.k, number_at(&v, "paper", "C"), 1e-12);
    assert_near(p.bound, number_at(&v, "paper", "bound"), 1e-8);
    assert_near(p.claim, number_at(&v, "paper", "claim"), 1e-12);
    assert_false(p.holds);
    close_case(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collapse_gives_the_golden_outputs),
        cmocka_unit_test(umix_gives_the_golden_outputs),
        cmocka_unit_test(bounds_are_the_golden_ones_or_smaller),
        cmocka_unit_test(printed_formulas_are_the_golden_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
