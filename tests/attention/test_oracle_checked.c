/* Tests tests/support/oracle_checked.c and oracle_faulty.c: sound engines pass, every fault is
 * found and named. */
#include "kernel_cases.h"
#include "oracle_wrappers.h"

enum { N = 64, DK = 6, DV = 5, CALLS = 4 };

/* One set of inputs and outputs in either type. */
typedef struct calls {
    pare_arena *arena;
    void *y[CALLS], *m[CALLS], *l[CALLS];
    pare_call call[CALLS]; /* qkv, causal qkv, partial of all keys, partial with empty rows */
} calls;

static void *numbers(pare_arena *a, pare_dtype t, size_t n, data_kind kind, pare_rng *r,
                     double peak)
{
    void *const v = pare_alloc(a, n, pare_dtype_size(t));
    assert_non_null(v);
    for (size_t i = 0; i < n; i++) {
        const float x = (float)datum(kind, r, peak);
        if (t == PARE_F32)
            ((float *)v)[i] = x;
        else
            ((double *)v)[i] = (double)x;
    }
    return v;
}

static calls some_calls(pare_dtype t, data_kind kind, uint64_t seed)
{
    calls c = {.arena = pare_arena_new()};
    pare_rng r = pare_rng_at(seed, 3);
    assert_non_null(c.arena);
    for (size_t i = 0; i < CALLS; i++) {
        const void *const q = numbers(c.arena, t, N * DK, kind, &r, 30);
        const void *const k = numbers(c.arena, t, N * DK, kind, &r, 30);
        const void *const v = numbers(c.arena, t, N * DV, RANDOM, &r, 1);
        c.y[i] = numbers(c.arena, t, N * DV, CONSTANT, &r, 1);
        c.m[i] = numbers(c.arena, t, N, CONSTANT, &r, 1);
        c.l[i] = numbers(c.arena, t, N, CONSTANT, &r, 1);
        if (i < 2)
            c.call[i] = (pare_call){.kind = PARE_CALL_QKV,
                                    .u.a = {.q = q,
                                            .k = k,
                                            .v = v,
                                            .n = N,
                                            .dk = DK,
                                            .dv = DV,
                                            .causal = i == 1,
                                            .y = c.y[i]}};
        else
            c.call[i] = (pare_call){.kind = PARE_CALL_PARTIAL,
                                    .u.p = {.q = q,
                                            .k = k,
                                            .v = v,
                                            .ldq = DK,
                                            .ldk = DK,
                                            .ldv = DV,
                                            .ldacc = DV,
                                            .nq = N,
                                            .nk = N / 2,
                                            .dk = DK,
                                            .dv = DV,
                                            .vis0 = i == 2 ? PARE_VIS_ALL : -5,
                                            .m = c.m[i],
                                            .l = c.l[i],
                                            .acc = c.y[i]}};
    }
    return c;
}

static pare_oracle checked_faulty(pare_dtype t, const pare_fault *f, size_t n,
                                  pare_oracle_check *check)
{
    pare_oracle o;
    assert_int_equal(pare_oracle_cpu(&o, t, N, NULL, NULL), PARE_OK);
    assert_int_equal(pare_oracle_faulty(&o, o, f, n, NULL), PARE_OK);
    assert_int_equal(pare_oracle_checked(&o, o, check, NULL), PARE_OK);
    return o;
}

static pare_status round_of(const pare_oracle *o, const calls *c, pare_err *err)
{
    const pare_status st = o->ops->evaluate(o->self, c->call, CALLS, err);
    return st ? st : o->ops->barrier(o->self, err);
}

static void sound_engines_pass_on_all_data_and_use_their_bounds(void **state)
{
    (void)state;
    for (int f32 = 0; f32 < 2; f32++) {
        const pare_dtype t = f32 ? PARE_F32 : PARE_F64;
        pare_oracle_check check = {.fraction = 1};
        pare_oracle o = checked_faulty(t, NULL, 0, &check);
        pare_oracle_caps caps;
        pare_err err = {0};
        o.ops->caps(o.self, &caps);
        assert_true(caps.max_len == N && caps.dtype == t);
        for (uint64_t seed = 0; seed < 40; seed++) {
            calls c = some_calls(t, (data_kind)(seed % DATA_KINDS), seed);
            assert_ok(round_of(&o, &c, &err), &err);
            pare_arena_free(c.arena);
        }
        assert_true(check.calls == 40 * CALLS && check.checked == check.calls);
        /* In f64 the engine is the referee, operation by operation. */
        assert_true(f32 ? check.used < 0.2 && check.used > 0.06 : check.used == 0);
        assert_true((check.deviation > 0) == f32);
        pare_oracle_free(&o);
    }
}

/* An error of 2e-4 (f32), 1e-12 (f64) in one number of one call, a nan, a row that is missing. */
static void every_fault_is_found_and_its_call_is_named(void **state)
{
    (void)state;
    for (int f32 = 0; f32 < 2; f32++)
        for (uint64_t call = 0; call < 2 * CALLS; call++)
            for (int kind = PARE_FAULT_NAN; kind <= PARE_FAULT_WRONG; kind++) {
                const pare_dtype t = f32 ? PARE_F32 : PARE_F64;
                const pare_fault fault = {call, (pare_fault_kind)kind, f32 ? 2e-4 : 1e-12};
                pare_oracle_check check = {.fraction = 1};
                pare_oracle o = checked_faulty(t, &fault, 1, &check);
                calls c = some_calls(t, RANDOM, call);
                pare_err err = {0};
                char name[40];
                if (call >= CALLS) assert_ok(round_of(&o, &c, &err), &err);
                /* a round that writes what is there already cannot be told from a missing one */
                memset(c.y[call % CALLS], 0, N * DV * pare_dtype_size(t));
                assert_status(round_of(&o, &c, &err), PARE_ERR_VERIFY, &err);
                snprintf(name, sizeof name, "oracle call %u (", (unsigned)call);
                assert_contains(err.msg, name);
                assert_contains(err.msg, "of query 63");
                assert_true(check.checked == call);
                assert_ok(round_of(&o, &c, &err), &err); /* the round after it is sound */
                pare_oracle_free(&o);
                pare_arena_free(c.arena);
            }
}

/* Also where values stand in two arrays, and the fault in the second. */
static void results_beside_the_others_are_checked(void **state)
{
    (void)state;
    calls c = some_calls(PARE_F32, RANDOM, 5);
    float v2[N * 2], y2[N * 2];
    for (size_t i = 0; i < N * 2; i++) v2[i] = (float)(i % 2);
    for (size_t wrong = 0; wrong < 3; wrong++) {
        pare_oracle_check check = {.fraction = 1};
        pare_oracle o = checked_faulty(PARE_F32, NULL, 0, &check);
        pare_err err = {0};
        pare_call call = c.call[0];
        call.u.a.v2 = v2, call.u.a.y2 = y2, call.u.a.dv2 = 2;
        assert_ok(o.ops->evaluate(o.self, &call, 1, &err), &err);
        if (wrong) y2[2 * 7 + wrong - 1] += 2e-4F;
        assert_status(o.ops->barrier(o.self, &err), wrong ? PARE_ERR_VERIFY : PARE_OK, &err);
        if (wrong) assert_contains(err.msg, wrong == 1 ? "column 5" : "column 6");
        pare_oracle_free(&o);
    }
    pare_arena_free(c.arena);
}

static void a_fraction_of_the_calls_is_checked_evenly(void **state)
{
    (void)state;
    pare_oracle_check check = {.fraction = 0.25};
    const pare_fault unseen = {0, PARE_FAULT_WRONG, 1};
    pare_oracle o = checked_faulty(PARE_F32, &unseen, 1, &check);
    calls c = some_calls(PARE_F32, RANDOM, 1);
    pare_err err = {0};
    for (size_t i = 0; i < 5; i++) assert_ok(round_of(&o, &c, &err), &err);
    assert_true(check.calls == 5 * CALLS && check.checked == 5);
    pare_oracle_free(&o);
    pare_arena_free(c.arena);
}

static void refused_and_lost_calls_are_errors_of_their_own(void **state)
{
    (void)state;
    static const pare_fault faults[] = {{1, PARE_FAULT_REFUSE, 0}, {4, PARE_FAULT_LOSE, 0}};
    pare_oracle_check check = {.fraction = 1};
    pare_oracle o = checked_faulty(PARE_F32, faults, 2, &check);
    calls c = some_calls(PARE_F32, RANDOM, 1);
    pare_err err = {0};
    const float before = *(float *)c.y[0];
    assert_status(o.ops->evaluate(o.self, c.call, CALLS, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "oracle call 1");
    assert_true(*(float *)c.y[0] == before && check.calls == 0);
    assert_ok(o.ops->evaluate(o.self, c.call, CALLS, &err), &err);
    assert_status(o.ops->barrier(o.self, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "oracle call 4");
    assert_ok(round_of(&o, &c, &err), &err);
    const pare_call strict = {.kind = PARE_CALL_STRICT};
    assert_status(o.ops->evaluate(o.self, &strict, 1, &err), PARE_ERR_INPUT, &err);
    pare_oracle_free(&o);
    pare_arena_free(c.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_engines_pass_on_all_data_and_use_their_bounds),
        cmocka_unit_test(every_fault_is_found_and_its_call_is_named),
        cmocka_unit_test(results_beside_the_others_are_checked),
        cmocka_unit_test(a_fraction_of_the_calls_is_checked_evenly),
        cmocka_unit_test(refused_and_lost_calls_are_errors_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
