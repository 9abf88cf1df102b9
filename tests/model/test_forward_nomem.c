/* Whatever allocation fails on the way, both passes end with PARE_ERR_MEMORY. */
#include <enclose_models.h>
#include <fail_alloc.h>
#include <pare/run.h>

static void check(const pare_model *m, const pare_input *in, bool wide)
{
    const pare_exec x = {.threads = 2};
    const size_t n = pare_output_rows(m, in) * pare_model_outputs(m);
    double *const y = calloc(n, sizeof *y);
    pare_err err = {0};
    pare_status st;
    long at = 0;
    assert_non_null(y);
    do {
        fail_alloc_after(at);
        at += 1 + at / 16; /* a pass allocates once per few rows: not every one of these */
        st = wide ? pare_forward_f64(y, m, in, NULL, &x, &err)
                  : pare_forward_f32((float *)y, m, in, NULL, &x, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
    } while (st != PARE_OK && at < 100000);
    assert_int_equal(st, PARE_OK);
    assert_true(at > 3);
    free(y);
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 25; s++) {
        pare_model *const m = some_model(s, 1);
        const pare_input in = some_input(m, s, 1, 0);
        check(m, &in, true);
        check(m, &in, false);
        pare_model_free(m);
    }
}

/* Several ranges of rows, and chunks that are shared out whole. */
static void also_where_rows_are_cut_into_ranges(void **state)
{
    (void)state;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m;
    pare_err err = {0};
    o.kind = PARE_RANDOM_LLAMA;
    o.dim = 16;
    o.layers = 1;
    o.context = 300;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    int64_t *const ids = calloc(8 * 600, sizeof *ids);
    pare_input in = {.batch = 1, .tokens = 300, .ids = ids};
    check(m, &in, false);
    in = (pare_input){.batch = 8, .tokens = 600, .ids = ids};
    m->context = 600;
    check(m, &in, false);
    free(ids);
    pare_model_free(m);
}

static void also_where_inputs_go_together(void **state)
{
    (void)state;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m;
    pare_err err = {0};
    static const int64_t ids[] = {1, 2, 3, 4, 5};
    pare_input in[] = {{.batch = 1, .tokens = 3, .ids = ids},
                       {.batch = 1, .tokens = 5, .ids = ids}};
    static float y[8 * 256];
    pare_status st;
    long at = 0;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    do {
        fail_alloc_after(at++);
        st = pare_forward_set(y, PARE_F32, m, &(pare_inputs){2, in}, NULL, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
    } while (st != PARE_OK && at < 1000);
    assert_int_equal(st, PARE_OK);
    assert_true(at > 4);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_is_an_error),
        cmocka_unit_test(also_where_rows_are_cut_into_ranges),
        cmocka_unit_test(also_where_inputs_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
