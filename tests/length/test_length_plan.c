/* Tests src/length/{length_plan,length_plan_json,call_counts,call_rule}.c: plans, closed forms and
 * executed calls agree, and agree with golden vectors. */
#include "length/attend_plan.h"
#include "length_cases.h"

static pare_length_plan plan_of(pare_arena *a, size_t n, const pare_pattern *p, uint32_t m,
                                uint32_t features, const pare_length_opts *o)
{
    const pare_oracle_caps caps = {
        .max_len = m, .features = features, .dtype = PARE_F64, .exp_flush = 746, .w_min = 0x1p-900};
    const pare_length_head h = {0, 3, 2};
    pare_length_plan plan;
    pare_err err = {0};
    assert_ok(pare_length_plan_make(
                  &plan, a,
                  &(pare_length_shape){.heads = &h, .count = 1, .tokens = n, .pattern = p}, &caps,
                  o, &err),
              &err);
    return plan;
}

static pare_pattern pattern_of(const cJSON *mask)
{
    const char *const kind = cJSON_GetArrayItem(mask, 0)->valuestring;
    pare_pattern p = {.kind = strcmp(kind, "full") == 0     ? PARE_FULL
                              : strcmp(kind, "causal") == 0 ? PARE_CAUSAL
                                                            : PARE_WINDOW};
    if (p.kind == PARE_WINDOW) p.window = (size_t)cJSON_GetArrayItem(mask, 1)->valuedouble;
    if (strcmp(kind, "sink") == 0) p.sinks = (size_t)cJSON_GetArrayItem(mask, 2)->valuedouble;
    return p;
}

static size_t size_of_key(const cJSON *o, const char *key)
{
    size_t v = 0;
    assert_int_equal(pare_json_size(&v, o, key, NULL), PARE_OK);
    return v;
}

/* 120 plans of an independent numpy implementation. */
static void plans_are_the_golden_ones(void **state)
{
    (void)state;
    cJSON *all = NULL;
    const char *const path = "../shared/reference/length/golden/manifest.json";
    NEED_SHARED(path);
    assert_int_equal(pare_json_read(&all, path, NULL), PARE_OK);
    const cJSON *at;
    size_t plans = 0;
    cJSON_ArrayForEach(at, all)
    {
        const char *kind, *oracle;
        bool pack;
        assert_int_equal(pare_json_string(&kind, at, "kind", NULL), PARE_OK);
        if (strcmp(kind, "plan") != 0) continue;
        assert_int_equal(pare_json_string(&oracle, at, "oracle", NULL), PARE_OK);
        assert_int_equal(pare_json_bool(&pack, at, "pack", NULL), PARE_OK);
        const cJSON *mask;
        assert_int_equal(pare_json_array(&mask, at, "mask", NULL), PARE_OK);
        const pare_pattern p = pattern_of(mask);
        const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .no_pack = !pack};
        pare_arena *const a = pare_arena_new();
        const pare_length_plan plan =
            plan_of(a, size_of_key(at, "N"), &p, (uint32_t)size_of_key(at, "M"),
                    strcmp(oracle, "causal") == 0 ? QKV_CAUSAL : QKV_FULL, &o);
        assert_int_equal(plan.cost.calls, size_of_key(at, "calls"));
        assert_int_equal(plan.cost.max_partials, size_of_key(at, "max_partials"));
        if (plan.cost.formula) assert_int_equal(plan.cost.formula, plan.cost.calls);
        pare_arena_free(a);
        plans++;
    }
    assert_int_equal(plans, 120);
    cJSON_Delete(all);
}

/* What is executed is what was planned, and what the closed forms say. */
static void executed_calls_are_planned_calls(void **state)
{
    (void)state;
    static const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                            {.kind = PARE_CAUSAL},
                                            {.kind = PARE_WINDOW, .window = 1},
                                            {.kind = PARE_WINDOW, .window = 6},
                                            {.kind = PARE_WINDOW, .window = 23},
                                            {.kind = PARE_WINDOW, .window = 6, .sinks = 2}};
    static const pare_length_opts ways[] = {
        {.mode = PARE_LENGTH_NATIVE},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL, .no_pack = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .host_remainder = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL | PARE_ORC_STATIC},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .reference = PARE_REF_MEAN},
        {.mode = PARE_LENGTH_ZEROREF,
         .features = QKV_CAUSAL,
         .no_pack = true,
         .reference = PARE_REF_MEAN}};
    size_t formulas = 0;
    for (size_t n = 33; n <= 46; n += 1)
        for (uint32_t m = 3; m <= 48; m = m * 3 / 2 + 1)
            for (size_t p = 0; p < 6; p++)
                for (size_t w = 0; w < 8; w++) {
                    pare_arena *const a = pare_arena_new();
                    pare_length_plan plan =
                        plan_of(a, n, &patterns[p], m,
                                PARE_ORC_PARTIAL | PARE_ORC_QKV | PARE_ORC_FULL | PARE_ORC_CAUSAL,
                                &ways[w]);
                    length_case c = length_case_new(n, 3, 2, BENIGN, n);
                    pare_oracle_count count = {0};
                    pare_oracle orc;
                    pare_length_stats s;
                    pare_err err = {0};
                    assert_int_equal(
                        pare_oracle_counting(&orc, cpu_oracle(PARE_F64, m, NULL), &count, NULL),
                        PARE_OK);
                    const pare_length_job job = job_of(&c, PARE_F64);
                    plan.opts.batch_bytes = 16 << 20; /* a round in one piece */
                    assert_ok(pare_length_plan_attend(&plan, &orc, &job, 1, &s, NULL, &err), &err);
                    assert_int_equal(count.calls, plan.cost.calls);
                    assert_int_equal(s.calls, plan.cost.calls);
                    assert_int_equal(s.fallback_calls, 0);
                    assert_int_equal(plan.cost.rounds, count.rounds);
                    assert_int_equal(plan.cost.rounds, s.rounds);
                    assert_true(count.rounds == 1 || ways[w].reference == PARE_REF_MEAN);
                    assert_int_equal(count.max_len, plan.cost.max_len);
                    assert_near((double)count.flops, plan.cost.flops, 0);
                    assert_near((double)count.bytes_in, plan.cost.bytes_in, 0);
                    assert_near((double)count.bytes_out, plan.cost.bytes_out, 0);
                    assert_true(plan.cost.calls >= plan.cost.lower && plan.cost.lower > 0);
                    if (plan.cost.formula) {
                        if (plan.cost.formula != plan.cost.calls)
                            fail_msg("n %zu, M %u, pattern %zu, way %zu: formula %llu, calls %llu",
                                     n, m, p, w, (unsigned long long)plan.cost.formula,
                                     (unsigned long long)plan.cost.calls);
                        formulas++;
                    }
                    length_case_free(&c);
                    pare_oracle_free(&orc);
                    pare_arena_free(a);
                }
    assert_true(formulas > 500);
}

/* "At least" must not be more than what is done: calls that hold several pieces, modes that cover
 * nothing. */
static void lower_bounds_are_below(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL};
    const pare_length_head heads[] = {{0, 3, 2}, {0, 3, 2}, {1, 3, 2}, {1, 3, 2}};
    const uint32_t strict = PARE_ORC_STRICT | PARE_ORC_FULL | PARE_ORC_WIDE_HEAD;
    for (size_t n = 1; n <= 64; n++)
        for (uint32_t layers = 1; layers <= 3; layers++)
            for (uint32_t h = 1; h <= 3; h++)
                for (int w = 0; w < 4; w++) {
                    static const pare_length_mode modes[] = {PARE_LENGTH_STRICT, PARE_LENGTH_SAMPLE,
                                                             PARE_LENGTH_CHUNK,
                                                             PARE_LENGTH_ZEROREF};
                    const pare_oracle_caps caps = {.max_len = 12,
                                                   .layers = layers,
                                                   .heads = h,
                                                   .features = w ? QKV_FULL : strict,
                                                   .dtype = PARE_F64,
                                                   .exp_flush = 746,
                                                   .w_min = 0x1p-900};
                    const pare_length_opts o = {.mode = modes[w], .host_remainder = w == 3};
                    pare_arena *const a = pare_arena_new();
                    pare_length_plan plan;
                    pare_err err = {0};
                    assert_ok(pare_length_plan_make(
                                  &plan, a,
                                  &(pare_length_shape){
                                      .heads = heads, .count = 4, .tokens = n, .pattern = &full},
                                  &caps, &o, &err),
                              &err);
                    assert_true(plan.cost.calls - plan.cost.merge_calls >= plan.cost.lower);
                    assert_int_equal(plan.cost.lower > 0, w == 0 || w == 3);
                    pare_arena_free(a);
                }
}

/* With two rows a causal call has one key (docs/theory/length.md "Closed forms"). */
static void two_rows_are_counted_by_execution(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL};
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF};
    pare_arena *const a = pare_arena_new();
    const pare_length_plan f = plan_of(a, 4, &full, 2, QKV_CAUSAL, &o);
    const pare_length_plan c = plan_of(a, 4, &causal, 2, QKV_CAUSAL, &o);
    assert_int_equal(f.cost.calls, 16);
    assert_int_equal(c.cost.calls, 10);
    assert_int_equal(f.cost.formula, 0);
    assert_int_equal(c.cost.formula, 0);
    pare_arena_free(a);
}

/* The table of docs/theory/length.md "Closed forms", M = 128. */
static void the_table_of_calls_at_128_tokens(void **state)
{
    (void)state;
    static const struct {
        size_t k, native, full, causal, causal_on_full, full_on_causal, unions, paper, window, sink;
    } rows[] = {{2, 4, 6, 9, 18, 18, 13, 30, 4, 5},
                {8, 64, 72, 81, 93, 162, 145, 306, 16, 18},
                {32, 1024, 1056, 1089, 754, 2178, 2178, 4422, 64, 70},
                {64, 4096, 4160, 4225, 2531, 8450, 8581, 17292, 128, 138}};
    const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL},
                       window = {.kind = PARE_WINDOW, .window = 16},
                       sink = {.kind = PARE_WINDOW, .window = 16, .sinks = 4};
    const pare_length_opts native = {.mode = PARE_LENGTH_NATIVE},
                           zero = {.mode = PARE_LENGTH_ZEROREF},
                           apart = {.mode = PARE_LENGTH_ZEROREF, .no_pack = true},
                           one = {.mode = PARE_LENGTH_ZEROREF, .one_vector = true};
    for (size_t i = 0; i < 4; i++) {
        pare_arena *const a = pare_arena_new();
        const size_t n = rows[i].k * 128;
        const pare_length_plan direct = plan_of(a, n, &full, 128, PARE_ORC_PARTIAL, &native);
        assert_int_equal(direct.cost.calls, rows[i].native);
        assert_int_equal(direct.cost.theorem, rows[i].paper);
        assert_int_equal(plan_of(a, n, &full, 128, QKV_FULL, &zero).cost.calls, rows[i].full);
        assert_int_equal(plan_of(a, n, &causal, 128, QKV_CAUSAL, &zero).cost.calls, rows[i].causal);
        assert_int_equal(plan_of(a, n, &causal, 128, QKV_FULL, &zero).cost.calls,
                         rows[i].causal_on_full);
        assert_int_equal(plan_of(a, n, &full, 128, QKV_CAUSAL, &apart).cost.calls,
                         rows[i].full_on_causal);
        const pare_length_plan unions = plan_of(a, n, &full, 128, QKV_FULL, &one);
        assert_int_equal(unions.cost.calls, rows[i].unions);
        assert_int_equal(unions.cost.formula, rows[i].unions);
        assert_int_equal(plan_of(a, n, &window, 128, QKV_CAUSAL, &zero).cost.calls, rows[i].window);
        assert_int_equal(plan_of(a, n, &sink, 128, QKV_CAUSAL, &zero).cost.calls, rows[i].sink);
        pare_arena_free(a);
    }
}

/* An engine that clamps small weights cannot isolate by them: tiles are not packed. A plan that
 * nobody could count is an error. */
static void what_cannot_be_is_refused_or_left_out(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL}, window = {.kind = PARE_WINDOW, .window = 4};
    const pare_length_opts apart = {.mode = PARE_LENGTH_ZEROREF, .no_pack = true},
                           any = {.mode = PARE_LENGTH_ZEROREF};
    pare_oracle_caps caps = {.max_len = 16,
                             .features = QKV_CAUSAL,
                             .dtype = PARE_F64,
                             .exp_flush = INFINITY,
                             .w_min = 0x1p-900};
    const pare_length_head h = {0, 3, 2};
    pare_arena *const a = pare_arena_new();
    pare_length_plan plan;
    pare_err err = {0};
    assert_ok(pare_length_plan_make(
                  &plan, a,
                  &(pare_length_shape){.heads = &h, .count = 1, .tokens = 100, .pattern = &window},
                  &caps, &any, &err),
              &err);
    assert_int_equal(plan.cost.calls, plan_of(a, 100, &window, 16, QKV_CAUSAL, &apart).cost.calls);
    assert_true(plan.cost.calls > plan_of(a, 100, &window, 16, QKV_CAUSAL, &any).cost.calls);
    assert_int_equal(
        pare_length_plan_make(
            &plan, a,
            &(pare_length_shape){.heads = &h, .count = 1, .tokens = 10000000, .pattern = &full},
            &caps, &any, &err),
        PARE_ERR_INPUT);
    assert_contains(err.msg, "a plan has at most 1.67e+08 of these");
    const pare_length_opts drawn = {.mode = PARE_LENGTH_SAMPLE, .blocks = 1000};
    const pare_pattern causal = {.kind = PARE_CAUSAL};
    assert_int_equal(
        pare_length_plan_make(
            &plan, a,
            &(pare_length_shape){.heads = &h, .count = 1, .tokens = 100000000, .pattern = &causal},
            &caps, &drawn, &err),
        PARE_ERR_INPUT);
    assert_contains(err.msg, "calls of 16 tokens");
    assert_int_equal(
        pare_length_plan_make(
            &plan, a,
            &(pare_length_shape){
                .heads = &h, .count = 1, .tokens = PARE_LENGTH_MOST_TOKENS + 1, .pattern = &full},
            &caps, &drawn, &err),
        PARE_ERR_INPUT);
    assert_contains(err.msg, "134217729 tokens");
    const pare_length_opts strict = {.mode = PARE_LENGTH_STRICT};
    caps.features = PARE_ORC_FULL | PARE_ORC_STRICT;
    caps.max_len = 2;
    assert_int_equal(
        pare_length_plan_make(
            &plan, a, &(pare_length_shape){.heads = &h, .count = 1, .tokens = 7, .pattern = &full},
            &caps, &strict, &err),
        PARE_ERR_INPUT);
    assert_contains(err.msg, "too short to merge 7");
    pare_arena_free(a);
}

/* ---- tokens of one vector -------------------------------------------------------------------- */

typedef struct tokens_seen {
    unsigned char times[47 * 47]; /* of every pair */
} tokens_seen;

/* Row by row, query and key are the same token's; pairs are counted. */
static pare_status same_tokens(void *ctx, const pare_placed *t, size_t count, uint32_t rows)
{
    tokens_seen *const s = ctx;
    size_t key[64], query[64];
    for (size_t i = 0; i < 64; i++) key[i] = query[i] = SIZE_MAX;
    assert_true(rows <= 64 && count <= 2);
    for (size_t x = 0; x < count; x++) {
        for (size_t p = 0; p < t[x].t.nq; p++) query[t[x].q_at + p] = pare_tile_query(&t[x].t, p);
        for (size_t p = 0; p < t[x].t.nk; p++) key[t[x].k_at + p] = pare_tile_key(&t[x].t, p);
        for (size_t p = 0; p < t[x].t.nq; p++)
            for (size_t k = 0; k < t[x].t.nk; k++)
                s->times[pare_tile_query(&t[x].t, p) * 47 + pare_tile_key(&t[x].t, k)]++;
    }
    assert_true(key[0] == SIZE_MAX && query[0] == SIZE_MAX); /* the reference's */
    assert_memory_equal(key, query, sizeof key);
    return PARE_OK;
}

static void one_vector_is_one_token(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL};
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .one_vector = true},
                           native = {.mode = PARE_LENGTH_NATIVE, .one_vector = true};
    for (size_t n = 4; n <= 47; n++)
        for (uint32_t m = 3; m < n && m <= 20; m++) {
            static tokens_seen s;
            pare_arena *const a = pare_arena_new();
            pare_err err = {0};
            const pare_length_plan plan = plan_of(a, n, &full, m, QKV_FULL, &o);
            memset(&s, 0, sizeof s);
            assert_ok(pare_length_plan_calls(&plan, same_tokens, &s, &err), &err);
            for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < n; k++) assert_int_equal(s.times[i * 47 + k], 1);
            assert_int_equal(plan.cost.calls, plan.cost.formula);
            pare_arena_free(a);
        }
    const pare_oracle_caps caps = {.max_len = 8,
                                   .features = QKV_FULL | PARE_ORC_PARTIAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_length_head h = {0, 3, 2};
    pare_arena *const a = pare_arena_new();
    pare_length_plan plan;
    pare_err err = {0};
    assert_int_equal(
        pare_length_plan_make(
            &plan, a,
            &(pare_length_shape){.heads = &h, .count = 1, .tokens = 20, .pattern = &causal}, &caps,
            &o, &err),
        PARE_ERR_INPUT);
    assert_int_equal(
        pare_length_plan_make(
            &plan, a, &(pare_length_shape){.heads = &h, .count = 1, .tokens = 20, .pattern = &full},
            &caps, &native, &err),
        PARE_ERR_INPUT);
    pare_arena_free(a);
}

static void a_plan_survives_its_file(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const pare_pattern p = {.kind = PARE_WINDOW, .window = 9, .sinks = 2};
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .seed = UINT64_MAX};
    const pare_length_plan plan = plan_of(a, 100, &p, 16, QKV_CAUSAL, &o);
    cJSON *json = NULL, *more = NULL;
    char *text, *again;
    pare_length_plan back;
    pare_err err = {0};
    assert_ok(pare_length_plan_json(&json, &plan, &err), &err);
    assert_ok(pare_json_print(&text, NULL, a, json, 1, &err), &err);
    assert_ok(pare_length_plan_parse(&back, a, json, NULL, &err), &err);
    assert_ok(pare_length_plan_json(&more, &back, &err), &err);
    assert_ok(pare_json_print(&again, NULL, a, more, 1, &err), &err);
    assert_string_equal(text, again);
    cJSON *const calls =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(json, "cost"), "calls");
    cJSON_SetNumberValue(calls, 7); /* a cost that the sizes do not give */
    assert_int_equal(pare_length_plan_parse(&back, a, json, NULL, &err), PARE_ERR_INPUT);
    assert_non_null(strstr(err.msg, "7 calls"));
    cJSON_Delete(json);
    cJSON_Delete(more);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_the_golden_ones),
        cmocka_unit_test(executed_calls_are_planned_calls),
        cmocka_unit_test(lower_bounds_are_below),
        cmocka_unit_test(two_rows_are_counted_by_execution),
        cmocka_unit_test(the_table_of_calls_at_128_tokens),
        cmocka_unit_test(what_cannot_be_is_refused_or_left_out),
        cmocka_unit_test(one_vector_is_one_token),
        cmocka_unit_test(a_plan_survives_its_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
