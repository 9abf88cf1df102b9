/* Tests src/train/task_series.c. */
#include <pare/data.h>
#include <pare/train.h>
#include "task_cases.h"

static char dir[200], sort[300], turn[300], bad[300];
static pare_arena *arena;

static int set_up(void **state)
{
    (void)state;
    pare_err err = {0};
    test_mkdir(dir);
    arena = pare_arena_new();
    test_path(bad, dir, "bad.npz");
    assert_ok(pare_make_sort(test_path(sort, dir, "s.npz"), 50, 4, 3, 0, false, &err), &err);
    assert_ok(pare_make_angular(test_path(turn, dir, "a.npz"), 40, 6, 0, false, &err), &err);
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    test_rmdir(dir);
    pare_arena_free(arena);
    return 0;
}

static pare_task make(pare_task_series_opts o, pare_task_facts *f)
{
    pare_task l;
    pare_err err = {0};
    assert_ok(pare_task_series(&l, f, arena, &o, &err), &err);
    return l;
}

static void sorting_is_ids_with_targets_in_the_second_half(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task l = make((pare_task_series_opts){.train = sort, .shares = true, .batch = 8}, &f);
    pare_batch b;
    pare_err err = {0};
    assert_true(f.ids == 3 && f.outputs == 3 && f.features == 0 && f.tokens == 7);
    assert_true(f.pool == PARE_POOL_NONE && f.train == 40 && f.val == 5 && f.test == 5);
    assert_string_equal(l.metric, "accuracy");
    assert_true(l.epoch == 5 && l.more_is_better);
    assert_ok(l.batch(l.self, &b, arena, 0, 0, &err), &err);
    assert_true(b.in.n == 1 && b.in.in[0].batch == 8 && b.in.in[0].tokens == 7 && !b.value);
    for (size_t r = 0; r < 8; r++) {
        const int64_t *id = b.in.in[0].ids + 7 * r, *want = b.label + 7 * r;
        for (size_t i = 0; i < 3; i++) assert_int_equal(want[i], -1);
        for (size_t i = 3; i < 6; i++) assert_int_equal(want[i], id[i + 1]);
        for (size_t i = 4; i < 7; i++) assert_true(want[i - 1] <= want[i]);
    }
}

static void the_regression_token_is_a_row_of_zeros_in_front(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task l = make((pare_task_series_opts){.train = turn, .shares = true, .batch = 5}, &f);
    pare_batch b;
    pare_err err = {0};
    assert_true(f.features == 2 && f.ids == 0 && f.tokens == 7 && f.outputs == 1);
    assert_int_equal(f.pool, PARE_POOL_FIRST);
    assert_string_equal(l.metric, "mse");
    assert_true(!l.more_is_better);
    assert_ok(l.batch(l.self, &b, arena, 0, 3, &err), &err);
    assert_true(b.in.in[0].batch == 5 && b.in.in[0].tokens == 7 && b.in.in[0].width == 2 &&
                !b.label);
    for (size_t r = 0; r < 5; r++) {
        const double *x = b.in.in[0].x + 14 * r;
        assert_true(x[0] == 0 && x[1] == 0);
        const double transposed = atan2(x[5], x[4]) - atan2(x[3], x[2]);
        assert_near(cos(transposed), cos(b.value[r]), 1e-9); /* the value belongs to the row */
        assert_near(sin(transposed), sin(b.value[r]), 1e-9);
    }
}

/* No row is in two parts: a part of a file holds what the others do not. */
static void parts_do_not_overlap_and_follow_the_split(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task zero =
        make((pare_task_series_opts){.train = turn, .shares = true, .batch = 2000}, &f);
    pare_task one =
        make((pare_task_series_opts){.train = turn, .shares = true, .batch = 2000, .split = 1}, &f);
    pare_batch b[2];
    pare_err err = {0};
    size_t seen[2] = {0, 0}, both = 0;
    pare_npz *z = NULL;
    pare_array v;
    assert_ok(zero.batch(zero.self, &b[0], arena, 0, 0, &err), &err);
    assert_ok(one.batch(one.self, &b[1], arena, 0, 0, &err), &err);
    assert_ok(pare_npz_open(&z, arena, turn, &err), &err);
    assert_ok(pare_npz_get(&v, z, "values", &err), &err);
    for (size_t i = 0; i < 40; i++) {
        bool in[2] = {false, false};
        for (size_t k = 0; k < 2; k++)
            for (size_t r = 0; r < 2000; r++) in[k] |= b[k].value[r] == pare_array_f64(&v, i);
        seen[0] += in[0];
        seen[1] += in[1];
        both += in[0] && in[1];
    }
    pare_npz_close(z);
    assert_true(seen[0] == 32 && seen[1] == 32); /* 40 - 4 - 4, all of them drawn */
    assert_true(both < 32);
}

static void the_score_of_a_constant_is_the_mean_square(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task l = make((pare_task_series_opts){.train = turn, .val = turn, .batch = 7}, &f);
    pare_model *m = NULL;
    pare_err err = {0};
    pare_npz *z = NULL;
    pare_array v;
    double got, want = 0;
    static const float none[16] = {0}, half[1] = {0.5F};
    assert_int_equal(f.val, 40);
    const pare_init init = {.kind = PARE_INIT_ENCODER,
                            .dim = 8,
                            .layers = 1,
                            .heads = 1,
                            .features = 2,
                            .context = 7,
                            .outputs = 1,
                            .pool = PARE_POOL_FIRST};
    assert_ok(pare_init_model(&m, &init, &err), &err);
    m->head.out.w.data = none;
    m->head.out.b.data = half;
    assert_ok(pare_npz_open(&z, arena, turn, &err), &err);
    assert_ok(pare_npz_get(&v, z, "values", &err), &err);
    for (size_t i = 0; i < 40; i++) want += pow(pare_array_f64(&v, i) - 0.5, 2) / 40;
    pare_npz_close(z);
    assert_ok(l.score(l.self, &got, m, PARE_PART_VAL, NULL, &err), &err);
    assert_near(got, want, 1e-9);
    pare_model_free(m);
}

static void a_wrong_guess_counts_once(void **state)
{
    (void)state;
    pare_task_facts f;
    pare_task l = make((pare_task_series_opts){.train = sort, .val = sort, .batch = 9}, &f);
    pare_model *m = NULL;
    pare_err err = {0};
    double got;
    const pare_init init = {
        .kind = PARE_INIT_GPT, .dim = 8, .layers = 1, .heads = 1, .vocab = 3, .context = 7};
    assert_ok(pare_init_model(&m, &init, &err), &err);
    static const float none[24] = {0};
    m->embedding.table.data = none; /* every logit is 0: the guess is id 0 */
    assert_ok(l.score(l.self, &got, m, PARE_PART_VAL, NULL, &err), &err);
    size_t zeros = 0;
    pare_npz *z = NULL;
    pare_array v;
    assert_ok(pare_npz_open(&z, arena, sort, &err), &err);
    assert_ok(pare_npz_get(&v, z, "targets", &err), &err);
    for (size_t i = 0; i < 350; i++) zeros += pare_array_i64(&v, i) == 0;
    pare_npz_close(z);
    assert_near(got, (double)zeros / 200, 1e-12);
    pare_model_free(m);
}

static void write_bad(const pare_array *inputs, const char *key, const pare_array *targets)
{
    const char *const names[] = {"inputs", key};
    const pare_array arrays[] = {*inputs, *targets};
    pare_err err = {0};
    assert_ok(pare_npz_write(bad, key ? 2 : 1, names, arrays, false, true, &err), &err);
}

static void refused(pare_task_series_opts o, const char *why)
{
    pare_task l;
    pare_task_facts f;
    pare_err err = {0};
    o.batch = 2;
    o.shares = true;
    if (!o.train) o.train = bad;
    assert_status(pare_task_series(&l, &f, arena, &o, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, ".npz");
    assert_contains(err.msg, why);
}

static void bad_files_are_named_by_row(void **state)
{
    (void)state;
    int64_t ids[20] = {0}, none[20];
    double x[20] = {0}, y[10] = {0};
    for (size_t i = 0; i < 20; i++) none[i] = -1;
    const pare_array in = {PARE_I64, 2, {10, 2}, ids}, vec = {PARE_F64, 3, {10, 2, 1}, x};
    const pare_array to = {PARE_I64, 2, {10, 2}, ids}, off = {PARE_I64, 2, {10, 2}, none};
    const pare_array few = {PARE_I64, 1, {9}, ids}, values = {PARE_F64, 1, {10}, y};
    const pare_task_series_opts o = PARE_TASK_SERIES_OPTS_DEFAULT;
    write_bad(&in, NULL, &to);
    refused(o, "neither targets nor values");
    write_bad(&in, "targets", &few);
    refused(o, "targets is I64 [9], expected");
    write_bad(&in, "targets", &off);
    refused(o, "no target counts in the 8 training rows");
    ids[7] = -4;
    write_bad(&in, "targets", &to);
    refused(o, "inputs: row 3 holds -4");
    ids[7] = 0;
    x[9] = INFINITY;
    write_bad(&vec, "values", &values);
    refused(o, "inputs: row 4 holds inf");
    x[9] = 0;
    y[6] = NAN;
    write_bad(&vec, "values", &values);
    refused(o, "values: row 6 holds nan");
    y[6] = 0;
    write_bad(&values, "values", &values);
    refused(o, "inputs is F64 [10], expected ids [n, T]");
    refused((pare_task_series_opts){.train = sort, .ids = 2}, "id 2 is not among the model's 2");
    refused((pare_task_series_opts){.train = sort, .outputs = 2}, "target 2 is not among");
    refused((pare_task_series_opts){.train = sort, .val = turn}, "a row;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_is_ids_with_targets_in_the_second_half),
        cmocka_unit_test(the_regression_token_is_a_row_of_zeros_in_front),
        cmocka_unit_test(parts_do_not_overlap_and_follow_the_split),
        cmocka_unit_test(the_score_of_a_constant_is_the_mean_square),
        cmocka_unit_test(a_wrong_guess_counts_once),
        cmocka_unit_test(bad_files_are_named_by_row),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
