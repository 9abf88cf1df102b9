/* Tests src/length/mode_paper.c: the algorithm of Yu 2025, where it works and where it does not.
 */
#include "length_cases.h"

static pare_status paper(length_case *c, const pare_pattern *p, uint32_t m, pare_dtype t,
                         const pare_length_opts *o, pare_length_stats *s, pare_err *err)
{
    pare_oracle orc = cpu_oracle(t, m, NULL);
    const pare_length_job job = job_of(c, t);
    const pare_status st = pare_length_attend(
        &orc, o, &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p}, s, NULL, err);
    pare_oracle_free(&orc);
    return st;
}

static uint64_t planned(size_t n, const pare_pattern *p, uint32_t m, uint64_t *rounds,
                        uint64_t *theorem)
{
    pare_arena *const a = pare_arena_new();
    pare_length_plan plan;
    pare_err err = {0};
    const pare_oracle_caps caps = {.max_len = m,
                                   .features = PARE_ORC_QKV | PARE_ORC_FULL | PARE_ORC_CAUSAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_length_opts o = {.mode = PARE_LENGTH_PAPER};
    const pare_length_head h = {0, 4, 3};
    assert_ok(pare_length_plan_make(
                  &plan, a,
                  &(pare_length_shape){.heads = &h, .count = 1, .tokens = n, .pattern = p}, &caps,
                  &o, &err),
              &err);
    *rounds = plan.cost.rounds;
    *theorem = plan.cost.theorem;
    pare_arena_free(a);
    return plan.cost.calls;
}

static void benign_data_is_within_its_promise(void **state)
{
    (void)state;
    static const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                            {.kind = PARE_CAUSAL},
                                            {.kind = PARE_WINDOW, .window = 4},
                                            {.kind = PARE_WINDOW, .window = 4, .sinks = 2}};
    for (size_t p = 0; p < 4; p++)
        for (uint32_t m = 8; m <= 17; m += 9) {
            length_case c = length_case_new(50, 4, 3, BENIGN, 21);
            length_case_exact(&c, &patterns[p], NULL);
            pare_length_stats s;
            pare_err err = {0};
            uint64_t rounds, theorem;
            const pare_length_opts plain = {.mode = PARE_LENGTH_PAPER, .eps = 1e-9};
            assert_ok(paper(&c, &patterns[p], m, PARE_F64, &plain, &s, &err), &err);
            assert_le(error_in(&c, PARE_F64), 1e-11); /* far below eps */
            assert_int_equal(s.calls, planned(50, &patterns[p], m, &rounds, &theorem));
            assert_int_equal(s.calls - s.merge_calls, theorem);
            assert_int_equal(s.rounds, rounds);
            assert_true(s.merge_calls > 0);
            if (p < 2) {
                const pare_length_opts inverse = {
                    .mode = PARE_LENGTH_PAPER, .eps = 1e-9, .inverse = true};
                assert_ok(paper(&c, &patterns[p], m, PARE_F64, &inverse, &s, &err), &err);
                assert_le(error_in(&c, PARE_F64), 4e-15);
            }
            length_case_free(&c);
        }
}

/* Rows shifted by +-45 underflow in f32: reported, not returned. */
static void failures_are_reported(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL};
    length_case c = length_case_new(64, 4, 3, WIDE, 3);
    const pare_length_opts o = {.mode = PARE_LENGTH_PAPER};
    pare_length_stats s;
    pare_err err = {0};
    assert_int_equal(paper(&c, &full, 9, PARE_F32, &o, &s, &err), PARE_ERR_NUMERIC);
    assert_contains(err.msg, "paper mode: row");
    length_case_free(&c);
}

/* Yu 2025, Theorem 5.1: a window as a difference of prefixes is wrong by any measure when a heavy
 * key leaves it, in f64.
 */
static void windows_by_subtraction_are_wrong(void **state)
{
    (void)state;
    const pare_pattern p = {.kind = PARE_WINDOW, .window = 8};
    const pare_length_opts o = {.mode = PARE_LENGTH_PAPER, .eps = 1e-9};
    length_case c = length_case_new(256, 4, 3, HOT, 8);
    length_case_exact(&c, &p, NULL);
    pare_length_stats s;
    pare_err err = {0};
    const pare_status st = paper(&c, &p, 32, PARE_F64, &o, &s, &err);
    print_message("paper mode: status %d, error %.2g\n", (int)st, st ? 0 : error_in(&c, PARE_F64));
    assert_true(st == PARE_ERR_NUMERIC || error_in(&c, PARE_F64) > 1e-3);
    const pare_length_opts zero = {.mode = PARE_LENGTH_ZEROREF};
    assert_ok(paper(&c, &p, 32, PARE_F64, &zero, &s, &err), &err);
    assert_true(error_in(&c, PARE_F64) <= allowed(&c, PARE_F64));
    length_case_free(&c);
}

static void too_short_oracles_are_named(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL}, window = {.kind = PARE_WINDOW, .window = 8};
    const pare_length_opts o = {.mode = PARE_LENGTH_PAPER};
    length_case c = length_case_new(20, 4, 3, BENIGN, 1);
    pare_length_stats s;
    pare_err err = {0};
    assert_int_equal(paper(&c, &full, 2, PARE_F64, &o, &s, &err), PARE_ERR_INPUT);
    assert_contains(err.msg, "M >= 3");
    assert_int_equal(paper(&c, &window, 9, PARE_F64, &o, &s, &err), PARE_ERR_INPUT);
    assert_contains(err.msg, "M >= 10");
    length_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(benign_data_is_within_its_promise),
        cmocka_unit_test(failures_are_reported),
        cmocka_unit_test(windows_by_subtraction_are_wrong),
        cmocka_unit_test(too_short_oracles_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
