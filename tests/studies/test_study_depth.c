/* Tests studies/depth_*.c and attention_nets.c: the experiments that are quick, whole; rows and
 * slopes; networks by hand. The whole study is tests/studies/long_study_depth.c. */
#include <pare_test.h>
#include "../../studies/study_depth.h"

typedef struct scene {
    pare_arena *a;
    pare_err err;
    study r;
    study_table table[4];
    figure_curve curve[400];
    table_writer s;
} scene;

static void scene_open(scene *c)
{
    memset(c, 0, sizeof *c);
    c->a = pare_arena_new();
    c->r = (study){.arena = c->a, .tables = c->table, .curves = c->curve};
    c->s = (table_writer){.r = &c->r, .err = &c->err};
}

/* All parts of an experiment, and its table. */
static const study_table *make(scene *c, const experiment *e)
{
    const setting s = {.seed = 0};
    const pare_exec exec = {.threads = 1};
    numbers *const part = pare_alloc(c->a, e->parts, sizeof *part);
    assert_non_null(part);
    for (size_t i = 0; i < e->parts; i++) {
        trial t = {.s = &s,
                   .part = i,
                   .a = pare_arena_new(),
                   .exec = &exec,
                   .err = &c->err,
                   .out = {.a = c->a}};
        assert_ok(e->run(&t), &c->err);
        assert_false(t.out.no_memory);
        pare_arena_free(t.a);
        part[i] = t.out;
    }
    e->table(&c->s, part, e->parts);
    assert_ok(c->s.st, &c->err);
    return c->s.t;
}

static void every_shape_holds(const study_table *t)
{
    size_t shapes = 0;
    for (size_t i = 0; i < t->nrows; i++) {
        const table_row *const row = &t->rows[i];
        if (strcmp(row->note, "shape") != 0) continue;
        shapes++;
        if (row->verdict != REPRODUCED) fail_msg("%s, %s: %g", row->data, row->what, row->ours);
    }
    assert_true(shapes > 0);
}

static const table_row *find_row(const study_table *t, const char *data, const char *what)
{
    for (size_t i = 0; i < t->nrows; i++)
        if (strcmp(t->rows[i].data, data) == 0 && strcmp(t->rows[i].what, what) == 0)
            return &t->rows[i];
    fail_msg("no row %s, %s", data, what);
    return NULL;
}

/* ---- experiments ----------------------------------------------------------------------------- */

static void errors_grow_with_slopes_1_2_3_4(void **state)
{
    (void)state;
    scene c;
    scene_open(&c);
    const study_table *const t = make(&c, &orders);
    every_shape_holds(t);
    assert_near(find_row(t, "zero mean", "keep: slope")->ours, 1, 0.1);
    assert_near(find_row(t, "zero mean", "parallel: slope")->ours, 2, 0.1);
    assert_near(find_row(t, "zero mean", "uniform: slope")->ours, 3, 0.1);
    assert_near(find_row(t, "zero mean", "parallel+uniform: slope")->ours, 4, 0.1);
    pare_arena_free(c.a);
}

static void ranks_fall_without_skips_and_subsets_are_found(void **state)
{
    (void)state;
    scene c;
    scene_open(&c);
    every_shape_holds(make(&c, &rank_collapse));
    every_shape_holds(make(&c, &subsets));
    assert_true(c.r.ncurves > 0);
    pare_arena_free(c.a);
}

/* The printed bound falls as 1 / L, the error of the layer of Rank collapse 2025 does not. */
static void the_printed_bound_crosses_below_the_truth(void **state)
{
    (void)state;
    scene c;
    scene_open(&c);
    const study_table *const t = make(&c, &lscale);
    every_shape_holds(t);
    assert_le(find_row(t, "all +eta", "the printed bound is below the truth from L on")->ours, 4);
    assert_near(find_row(t, "all +eta", "uniform: slope over L = 8 .. 64")->ours, -2, 0.1);
    pare_arena_free(c.a);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void slopes_and_verdicts(void **state)
{
    (void)state;
    scene c;
    const double x[] = {1, 2, 4}, y[] = {3, 24, 192};
    scene_open(&c);
    assert_near(log_slope(x, y, 3), 3, 1e-12);
    begin_table(&c.s, "t", "a", -3);
    row_ratio(&c.s, "d", "up", 1, 3.9, 4);
    row_ratio(&c.s, "d", "down", 1, 0.2, 4);
    row_ratio(&c.s, "d", "none", NAN, 7, 1);
    row_near(&c.s, "d", "nan", 1, NAN, 1);
    row_shape(&c.s, "d", "no", false, 1);
    row_at_most(&c.s, "d", "smaller", 1, 0.01, 4);
    row_at_most(&c.s, "d", "larger", 1, 4.1, 4);
    row_holds(&c.s, "d", "fails", false, NAN);
    const row_verdict want[] = {REPRODUCED, DIFFERS,    ADDED,   DIFFERS,
                                DIFFERS,    REPRODUCED, DIFFERS, DIFFERS};
    for (size_t i = 0; i < 8; i++) assert_int_equal(c.s.t->rows[i].verdict, want[i]);
    const row_class of[] = {ROW_REFERENCE, ROW_REFERENCE, ROW_OURS,      ROW_REFERENCE,
                            ROW_REFERENCE, ROW_REFERENCE, ROW_REFERENCE, ROW_SELF};
    for (size_t i = 0; i < 8; i++) assert_int_equal(c.s.t->rows[i].source, of[i]);
    assert_string_equal(c.s.t->rows[0].note, "within a factor 4, the spread of nine seeds");
    pare_arena_free(c.a);
}

/* Width 1, Wv = eta, no scores: x (1 + eta)^L on a constant input. */
static void a_network_by_hand(void **state)
{
    (void)state;
    scene c;
    pare_model *m = NULL, *twice = NULL;
    double *y, one[] = {1, 1};
    size_t n;
    pare_input in = {.batch = 1, .tokens = 2, .width = 1, .x = one};
    const pare_inputs set = {1, &in};
    const san_shape shape = {
        .layers = 3, .heads = 2, .dim = 1, .scale = 1, .size = 0.25, .draw = SAN_SAME};
    pare_rng rng = pare_rng_at(1, 1);
    scene_open(&c);
    assert_ok(san_new(&m, &shape, &rng, &c.err), &c.err);
    assert_ok(san_answers(&y, &n, c.a, m, &set, &c.err), &c.err);
    assert_int_equal(n, 2);
    assert_near(y[0], 1.5 * 1.5 * 1.5, 1e-15); /* two heads of 1/4 */
    assert_ok(san_scaled(&twice, m, 1, 2, &c.err), &c.err);
    assert_ok(san_answers(&y, &n, c.a, twice, &set, &c.err), &c.err);
    assert_near(y[1], 8, 1e-14);
    pare_model_free(twice);
    pare_model_free(m);
    pare_arena_free(c.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_grow_with_slopes_1_2_3_4),
        cmocka_unit_test(ranks_fall_without_skips_and_subsets_are_found),
        cmocka_unit_test(the_printed_bound_crosses_below_the_truth),
        cmocka_unit_test(slopes_and_verdicts),
        cmocka_unit_test(a_network_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
