/* All single-node edits against all of them done one by one with 113 bits. */
#include "edit_models.h"
#include "width/edits.h"
#include "width/prove.h"
#include <enclose_quad.h>

enum { NODES = 12, KINDS = 4 };

typedef struct truth {
    double most;           /* largest |f - g| over all edits and nodes */
    size_t pairs, changed; /* nodes within reach; those whose largest entry is another one */
} truth;

static size_t largest(const quad *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

/* Steps from `from` to every node against the direction in which queries see keys. */
static void steps_from(size_t *steps, const pare_graph *g, size_t from)
{
    for (size_t i = 0; i < g->n; i++) steps[i] = i == from ? 0 : SIZE_MAX;
    for (size_t round = 0; round < g->n; round++)
        for (size_t i = 0; i < g->n; i++)
            for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
                if (steps[g->idx[e]] == round && steps[i] > round + 1) steps[i] = round + 1;
}

static void look_at(truth *t, stage *s, const pare_model *f, const pare_model *g,
                    const pare_input *in, const size_t *steps)
{
    const qmat a = q_model(s->w.arena, f, in, 0), b = q_model(s->w.arena, g, in, 0);
    for (size_t i = 0; i < a.n; i++) {
        for (size_t c = 0; c < a.d; c++)
            t->most = fmax(t->most, (double)q_abs(a.v[i * a.d + c] - b.v[i * a.d + c]));
        if (!steps || steps[i] > f->nblocks) continue;
        t->pairs++;
        t->changed += largest(a.v + i * a.d, a.d) != largest(b.v + i * a.d, a.d);
    }
}

/* Every node is given the row of every other node, once each. */
static truth try_all(stage *s, const pare_model *f, const pare_model *g, const pare_mat *x,
                     const pare_graph *graph)
{
    truth t = {0};
    size_t steps[NODES];
    const pare_graph whole = key_graph(&s->w, &f->pattern, graph, x->rows);
    pare_mat y = mat_copy(&s->w, x);
    const pare_input in = input_of(&y, graph);
    look_at(&t, s, f, g, &in, NULL);
    for (size_t i = 0; i < x->rows; i++) {
        steps_from(steps, &whole, i);
        for (size_t k = 0; k < KINDS; k++) { /* the first KINDS rows are the different ones */
            const pare_mark mark = pare_arena_mark(s->w.arena);
            if (memcmp(pare_row(x, k), pare_row(x, i), x->cols * sizeof *x->v) == 0) continue;
            memcpy(pare_row_mut(&y, i), pare_row(x, k), x->cols * sizeof *x->v);
            look_at(&t, s, f, g, &in, steps);
            pare_arena_reset(s->w.arena, mark);
        }
        memcpy(pare_row_mut(&y, i), pare_row(x, i), x->cols * sizeof *x->v);
    }
    return t;
}

static void no_edit_is_beyond_the_bound(void **state)
{
    (void)state;
    static const size_t alone[] = {3, SIZE_MAX};
    double loosest = 0;
    for (size_t temper = 0; temper < TEMPERS; temper++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            stage s;
            stage_open(&s, 7 * temper + seed);
            pare_model *const f = temper_model(&s, seed, temper, 2);
            pare_model *const g = temper_model(&s, seed + 30, temper, 2); /* of the same shape */
            const pare_graph graph = rand_graph(&s, NODES, seed, seed % 3 ? NULL : alone);
            const pare_mat x = repeating_rows(&s, NODES, KINDS);
            const pare_input in = input_of(&x, &graph);
            const edits_bound e = edits_prove(&s.w, f, g, &in, 0);
            assert_work(&s);
            const truth t = try_all(&s, f, g, &x, &graph);
            if (!(t.most <= e.proven.v && t.changed <= e.pairs - e.certain))
                fail_msg("%s, seed %llu: %.17g found, %.17g proven; %zu changed, %zu may",
                         temper_names[temper], (unsigned long long)seed, t.most, e.proven.v,
                         t.changed, e.pairs - e.certain);
            assert_int_equal(e.rows, KINDS);
            assert_int_equal(e.pairs, t.pairs);
            assert_true(e.edits == NODES * (KINDS - 1));
            /* Nothing was left out and nothing is counted twice: the same numbers are found. */
            assert_true(fabs(e.measured - t.most) <= e.slack);
            if (temper != 1 && temper != 4) loosest = fmax(loosest, e.proven.v / t.most);
            pare_model_free(f);
            pare_model_free(g);
            stage_close(&s);
        }
    print_message("proven at most 1 + %.2g times the truth\n", loosest - 1);
    assert_true(loosest < 1 + 1e-6);
}

/* The same model twice: exactly nothing but radii. */
static void a_model_does_not_differ_from_itself(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 5);
    pare_model *const f = temper_model(&s, 4, 0, 2);
    const pare_graph graph = rand_graph(&s, NODES, 3, NULL);
    const pare_mat x = repeating_rows(&s, NODES, KINDS);
    const pare_input in = input_of(&x, &graph);
    const edits_bound e = edits_prove(&s.w, f, f, &in, 0);
    assert_work(&s);
    assert_true(e.measured == 0 && e.proven.v <= e.slack * 1.001 && e.certain == e.pairs);
    pare_model_free(f);
    stage_close(&s);
}

static void the_most_frequent_rows_come_first(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 1);
    const double kinds[] = {3, 1, 2, 1, 2, 2, 3, 4};
    pare_mat x = mat_zeros(&s.w, 8, 1);
    memcpy(x.v, kinds, sizeof kinds);
    edit_rows r = edit_rows_of(&s.w, &x, 0);
    assert_work(&s);
    assert_int_equal(r.different, 4);
    assert_int_equal(r.n, 4);
    const size_t order[] = {2, 0, 1, 7}; /* 2 three times; 3 before 1; 4 once */
    assert_memory_equal(r.row, order, sizeof order);
    r = edit_rows_of(&s.w, &x, 2);
    assert_int_equal(r.n, 2);
    assert_true(r.of[0] == 1 && r.of[1] == SIZE_MAX && r.of[2] == 0 && r.of[7] == SIZE_MAX);
    stage_close(&s);
}

static void too_much_work_is_refused(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 2);
    pare_model *const f = temper_model(&s, 2, 0, 2);
    const pare_graph graph = rand_graph(&s, 3000, 40, NULL);
    const pare_mat x = rand_mat(&s, 3000, 4, 1);
    const pare_input in = input_of(&x, &graph);
    (void)edits_prove(&s.w, f, f, &in, 0);
    assert_int_equal(s.w.st, PARE_ERR_INPUT);
    assert_non_null(strstr(s.err.msg, "3000 different rows"));
    pare_model_free(f);
    stage_close(&s);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    edits_bound e[2];
    for (int k = 0; k < 2; k++) {
        stage s;
        const pare_exec exec = {.threads = k ? 3 : 1};
        stage_open(&s, 9);
        s.w.exec = &exec;
        pare_model *const f = temper_model(&s, 2, 0, 2), *const g = temper_model(&s, 2, 0, 2);
        const pare_graph graph = rand_graph(&s, 400, 4, NULL);
        const pare_mat x = repeating_rows(&s, 400, KINDS);
        const pare_input in = input_of(&x, &graph);
        e[k] = edits_prove(&s.w, f, g, &in, 0);
        assert_work(&s);
        pare_model_free(f);
        pare_model_free(g);
        stage_close(&s);
    }
    assert_true(e[0].proven.v == e[1].proven.v && e[0].measured == e[1].measured);
    assert_true(e[0].slack == e[1].slack && e[0].certain == e[1].certain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_edit_is_beyond_the_bound),
                                       cmocka_unit_test(a_model_does_not_differ_from_itself),
                                       cmocka_unit_test(the_most_frequent_rows_come_first),
                                       cmocka_unit_test(too_much_work_is_refused),
                                       cmocka_unit_test(threads_change_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
