/* Memory runs out, or one allocation is refused, at every place of a ticket's proofs: a status and
 * nothing else. */
#include <fail_alloc.h>
#include "relu_tickets.h"

typedef struct play {
    pare_model *f, *g;
    pare_inputs set;
    pare_mat x;
    pare_err err;
} play;

typedef pare_status work_fn(play *p);

static pare_status all(play *p)
{
    pare_ticket_bound b;
    return pare_ticket_bound_free(&b, p->f, p->g, 1, NULL, &p->err);
}

static pare_status given(play *p)
{
    pare_ticket_bound b;
    return pare_ticket_bound_given(&b, p->f, p->g, &p->set, NULL, &p->err);
}

static pare_status rows(play *p)
{
    pare_ub out[4];
    return pare_ticket_rows_bound(out, p->f, p->g, 0, &p->x, NULL, NULL, &p->err);
}

static pare_status one(play *p)
{
    pare_ticket_layer b;
    return pare_ticket_layer_bound(&b, p->f, p->g, 0, 1, NULL, &p->err);
}

static pare_status plan(play *p)
{
    pare_ticket_blocks_plan b;
    return pare_ticket_plan_blocks(&b, p->f, &(pare_ticket_goal){.alpha = 1, .eps = .1, .p = .1},
                                   NULL, &p->err);
}

static pare_status plan_each(play *p)
{
    pare_ticket_layer_plan l[2];
    char why[200];
    return pare_ticket_plan_layers(
        l, why, p->f, &(pare_ticket_goal){.alpha = 1, .eps = .1, .p = .1}, NULL, &p->err);
}

static void refuse_each(play *p, work_fn *run)
{
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        long n = 0;
        for (; hit; n += 1 + n / 8) {
            p->err = (pare_err){0};
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const pare_status st = run(p);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK))
                fail_msg("allocation %ld%s: status %d, %s", n, once ? " alone" : "", (int)st,
                         p->err.msg);
        }
        assert_true(n > 1);
    }
}

static void proofs_without_memory_are_a_status(void **state)
{
    (void)state;
    for (int rotary = 0; rotary < 2; rotary++) {
        pare_rng r = pare_rng_at(1, 1);
        const pair_shape s = {.d1 = 3,
                              .d2 = 3,
                              .heads = 2,
                              .dk = 2,
                              .blocks = 2,
                              .size = 1,
                              .biases = true,
                              .skip = true,
                              .ffn = true,
                              .norms = true,
                              .rotary = rotary};
        double v[12] = {1, 0, 0, 0, 1, 0, .5, .5, 0, 0, .3, .2};
        pare_input in = {.batch = 1, .tokens = 4, .width = 3, .x = v};
        play p = {.f = pair_target(&r, &s), .set = {1, &in}, .x = pare_mat_of(v, 4, 3)};
        p.g = pair_ticket(p.f, 1, .01, 1, true);
        refuse_each(&p, all);
        refuse_each(&p, given);
        refuse_each(&p, rows);
        refuse_each(&p, one);
        refuse_each(&p, plan);
        refuse_each(&p, plan_each);
        pare_model_free(p.g);
        pare_model_free(p.f);
    }
}

static void proofs_of_relu_tickets_without_memory_are_a_status(void **state)
{
    pare_rng r = pare_rng_at(1, 2);
    double v[6] = {1, 0, 0, .5, -.3, .2};
    pare_input in = {.batch = 1, .tokens = 2, .width = 3, .x = v};
    pare_ticket_report report;
    play p = {.f = relu_target(&r, 3, 2, 1, true), .set = {1, &in}};
    (void)state;
    p.g = relu_ticket(&report, p.f, 4, PARE_TICKET_BLOCK, true, 0);
    refuse_each(&p, all);
    refuse_each(&p, given);
    pare_model_free(p.g);
    pare_model_free(p.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proofs_without_memory_are_a_status),
        cmocka_unit_test(proofs_of_relu_tickets_without_memory_are_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
