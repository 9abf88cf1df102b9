/* Tickets of everything a target may be: many heads, every pattern, rectangular layers, biases from
 * the source, norms, any activation, rotary positions; in both modes, against what is proven. */
#include "relu_tickets.h"

static pare_model *ticket_of(const pare_model *f, pare_ticket_mode mode, size_t bits, bool biases)
{
    pare_err err = {0};
    pare_model *g;
    pare_ticket_report report;
    pare_ticket_opts o = PARE_TICKET_OPTS_DEFAULT;
    o.mode = mode;
    o.bits = bits;
    o.biases = biases;
    assert_ok(pare_ticket(&g, &report, f, &o, NULL, &err), &err);
    return g;
}

/* The attack of ticket_attack.h, with a ticket that was found and not made up. */
static void found_tickets_keep_to_what_is_proven(void **state)
{
    attack_sum sum = {0};
    size_t rectangular = 0, patterns[4] = {0}, merged = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        pare_err err = {0};
        attack t = attack_new(seed);
        pare_ticket_bound all;
        const bool merge = !t.s.rotary && seed % 2;
        pare_model_free(t.g);
        t.g = ticket_of(t.f, merge ? PARE_TICKET_MERGED : PARE_TICKET_FACTORED, 4 + seed % 5,
                        seed % 3 == 0);
        rectangular += t.s.d1 != t.s.d2;
        patterns[t.s.pattern.kind]++;
        merged += merge;
        assert_ok(pare_ticket_bound_free(&all, t.f, t.g, t.alpha, NULL, &err), &err);
        attack_check(&sum, &t, seed, &all);
        double step = .3;
        for (int i = 0; i < 5; i++) step *= attack_step(&t, step) ? 1.3 : .4;
        attack_check(&sum, &t, seed, &all);
        pare_model_free(t.g);
        pare_model_free(t.plain);
        pare_model_free(t.f);
        pare_arena_free(t.a);
    }
    print_message("%zu rectangular, %zu merged: up to %.2f of the bound for all inputs, %.2f for "
                  "the given\n",
                  rectangular, merged, sum.free, sum.given);
    assert_true(rectangular > 3 && merged > 8);
    for (int k = 0; k < 4; k++) assert_true(patterns[k] > 2);
}

/* With many bits nothing is left of the error, whatever the shape: the forms are the target's. */
static void many_bits_leave_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        pare_rng r = pare_rng_at(seed, 12);
        const pair_shape s = {.d1 = 6,
                              .d2 = seed % 2 ? 6 : 3,
                              .heads = 1 + seed % 3,
                              .dk = 2,
                              .blocks = seed % 2 ? 2 : 1,
                              .size = .7,
                              .biases = true,
                              .skip = seed % 2,
                              .pattern = {.kind = (pare_pattern_kind)(seed % 4), .window = 2}};
        pare_model *const f = pair_target(&r, &s);
        pare_arena *const a = pare_arena_new();
        double x[5 * 6];
        assert_non_null(a);
        const pare_graph graph = pair_graph(a, &r, 5);
        pair_rows(x, &r, 5, 6, 1.5);
        const pare_input in = {.batch = 1,
                               .tokens = 5,
                               .width = 6,
                               .x = x,
                               .graph = s.pattern.kind == PARE_GRAPH ? &graph : NULL};
        for (int mode = PARE_TICKET_FACTORED; mode <= PARE_TICKET_MERGED; mode++) {
            pare_model *const g = ticket_of(f, (pare_ticket_mode)mode, 14, seed % 4 < 2);
            assert_le(pair_apart(f, g, &in, NULL, NULL), 1e-2);
            pare_model_free(g);
        }
        pare_model_free(f);
        pare_arena_free(a);
    }
}

/* A scale of its own for each matrix: entries that scale 1 cannot reach are met. */
static void large_entries_get_a_larger_scale(void **state)
{
    pare_err err = {0};
    pare_rng r = pare_rng_at(1, 13);
    const pair_shape s = {.d1 = 8, .d2 = 8, .heads = 2, .dk = 4, .blocks = 1, .size = 1};
    pare_model *const f = pair_target(&r, &s), *g;
    pare_ticket_report chosen, strict;
    (void)state;
    f->blocks[0].attn.wq = pair_weight(f, &r, 8, 8, PAIR_GAUSS, 40);
    f->blocks[0].attn.wk = pair_weight(f, &r, 8, 8, PAIR_GAUSS, .02);
    for (int how = 0; how < 2; how++) {
        pare_ticket_opts o = PARE_TICKET_OPTS_DEFAULT;
        o.mode = PARE_TICKET_FACTORED;
        o.strict = how;
        assert_ok(pare_ticket(&g, how ? &strict : &chosen, f, &o, NULL, &err), &err);
        if (how) assert_true(strict.matrix[0].reach > 1 && strict.matrix[0].exponent == 0);
        if (how) assert_true(chosen.matrix[0].largest < .05 * strict.matrix[0].largest);
        if (!how) assert_true(chosen.matrix[0].exponent >= 3 && chosen.matrix[1].exponent <= -3);
        if (!how) { /* the report lives in the ticket */
            pare_ticket_matrix *const copy = pare_alloc(f->arena, chosen.n, sizeof *copy);
            assert_non_null(copy);
            memcpy(copy, chosen.matrix, chosen.n * sizeof *copy);
            chosen.matrix = copy;
        }
        pare_model_free(g);
    }
    pare_model_free(f);
}

/* Keys and values may differ in width, and so may what goes in and out, but not with a skip. */
static void a_skip_needs_equal_widths(void **state)
{
    pare_err err = {0};
    pare_rng r = pare_rng_at(2, 13);
    const pair_shape s = {.d1 = 5, .d2 = 3, .heads = 1, .dk = 2, .blocks = 1, .size = 1};
    pare_model *const f = pair_target(&r, &s), *g = NULL;
    pare_ticket_report report;
    pare_ticket_opts o = PARE_TICKET_OPTS_DEFAULT;
    (void)state;
    o.bits = 4;
    f->blocks[0].attn.skip.kind = PARE_SKIP_IDENTITY;
    assert_status(pare_ticket(&g, &report, f, &o, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "identity skip from width 5 to width 3");
    assert_null(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_tickets_keep_to_what_is_proven),
        cmocka_unit_test(many_bits_leave_nothing),
        cmocka_unit_test(large_entries_get_a_larger_scale),
        cmocka_unit_test(a_skip_needs_equal_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
