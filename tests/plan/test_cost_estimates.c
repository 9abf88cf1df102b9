/* Tests src/plan/cost_estimates.c: each direction in one line. A price is what the cut really costs,
 * and what was not looked at is said to be so. */
#include <pare_test.h>
#include "cert/prove.h"
#include <pare/plan.h>

typedef struct scene {
    pare_arena *a;
    pare_err err;
    pare_model *m;
    pare_dataset data;
    pare_probe *p;
    char dir[200];
} scene;

static void scene_open(scene *s, double sigma)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    char path[256];
    *s = (scene){.a = pare_arena_new()};
    assert_non_null(s->a);
    o.kind = PARE_RANDOM_GRAPH;
    o.dim = 8;
    o.heads = 2;
    o.sigma = sigma;
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    test_mkdir(s->dir);
    snprintf(path, sizeof path, "%s/b.npz", s->dir);
    assert_ok(pare_make_minesweeper(path, 6, 1, false, &s->err), &s->err);
    assert_ok(pare_dataset_load(&s->data, s->a, s->m, path, NULL, &s->err), &s->err);
}

static void look(scene *s, bool with, bool no_cuts, pare_probe_part part)
{
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    o.no_cuts = no_cuts;
    o.part = part;
    assert_ok(pare_probe_model(&s->p, s->m, with ? &s->data : NULL, &o, NULL, &s->err), &s->err);
}

static void scene_close(scene *s)
{
    pare_probe_free(s->p);
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static const pare_cost_estimate *line(const scene *s, const char *direction)
{
    for (size_t i = 0; i < s->p->nestimates; i++)
        if (strcmp(s->p->estimates[i].direction, direction) == 0) return &s->p->estimates[i];
    fail_msg("no line about %s", direction);
    return NULL;
}

/* The words of the cut make the same cut, and it costs the same. */
static void a_price_is_what_the_cut_costs(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 0.5);
    look(&s, true, false, PARE_PROBE_ALL);
    const pare_cost_estimate *const t = line(&s, "weights");
    assert_string_equal(t->cut, "ticket --bits 10");
    pare_model *g = NULL;
    double off;
    const pare_plan_step step = {.direction = PARE_PLAN_WEIGHTS, .setting = 10};
    assert_ok(pare_plan_make(&g, &step, s.m, &s.data.inputs, 0, NULL, &s.err), &s.err);
    assert_ok(pare_measure(&off, s.m, g, &s.data.inputs, NULL, &s.err), &s.err);
    assert_near(t->measured, off, 1e-9);
    assert_true(off > 0);
    pare_model_free(g);
    for (size_t i = 0; i < s.p->nestimates; i++) {
        const pare_cost_estimate *const each = &s.p->estimates[i];
        if (isnan(each->measured)) continue;
        assert_le(each->measured, each->proven.v);
        assert_true(*each->cut && *each->left && *each->domain);
    }
    scene_close(&s);
}

/* Attention that does next to nothing may go, with a bound to show for it. */
static void what_may_be_borne_is_a_yes(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, 1e-3);
    look(&s, true, false, PARE_PROBE_DEPTH);
    assert_int_equal(s.p->nestimates, 1);
    const pare_cost_estimate *const t = line(&s, "depth");
    assert_string_equal(t->cut, "depth --layers 0");
    assert_int_equal(t->can, PARE_TRUE);
    assert_le(t->proven.v, 1e-3);
    scene_close(&s);
}

static void what_nobody_looked_at_is_unknown(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        scene s;
        scene_open(&s, 0.5);
        look(&s, with, true, PARE_PROBE_ALL);
        for (size_t i = 0; i < 2; i++) {
            const pare_cost_estimate *const t = line(&s, i ? "depth" : "width");
            assert_int_equal(t->can, PARE_UNKNOWN);
            assert_string_equal(t->cut, "");
            assert_true(isinf(t->proven.v) && isnan(t->measured));
            assert_non_null(strstr(t->why, with ? "no cuts were tried" : "depends on data"));
        }
        assert_non_null(strstr(line(&s, "weights")->left, "of the bytes"));
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_price_is_what_the_cut_costs),
        cmocka_unit_test(what_may_be_borne_is_a_yes),
        cmocka_unit_test(what_nobody_looked_at_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
