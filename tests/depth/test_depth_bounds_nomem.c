/* Memory runs out, or one allocation is refused, at every place of a collapse and of every proof: a
 * status and nothing else. */
#include <fail_alloc.h>
#include "depth/certify_theorems.h"
#include "depth_nets.h"
#include <pare/depth.h>

typedef struct play {
    pare_model *f, *g;
    pare_inputs calib;
    pare_collapse kind;
    pare_err err;
} play;

typedef pare_status work_fn(play *p);

static pare_status prove(play *p)
{
    depth_bound b;
    const depth_domain d = {1, -1};
    return depth_apriori(&b, p->f, p->g, &d, NULL, &p->err);
}

static pare_status collapse(play *p)
{
    pare_model *g = NULL;
    const one_layer_opts o = {.kind = p->kind, .calib = &p->calib};
    const pare_status st = collapse_to_one_layer(&g, p->f, &o, &p->err);
    assert_int_equal(g == NULL, st != PARE_OK);
    pare_model_free(g);
    return st;
}

static pare_status rank(play *p)
{
    depth_rank k;
    const depth_domain d = {1, -1};
    return depth_rank_collapse(&k, p->f, &d, NULL, &p->err);
}

static pare_status inject(play *p)
{
    pare_ub u;
    return depth_injected(&u, p->f, p->g, 0, NULL, &p->err);
}

static pare_status reach_for(play *p)
{
    static const double layers[2][2] = {{3, -2}, {-3, 1}};
    depth_lower low;
    return depth_lower_bound(&low, layers, 2, 2, 3, &p->err);
}

static pare_status reach_for_model(play *p)
{
    depth_lower low;
    const depth_domain d = {1, -1};
    return depth_lower_model(&low, p->f, &d, NULL, &p->err);
}

/* The words of a domain that a user names, and what is proven there. */
static pare_status within(play *p)
{
    pare_arena *const a = pare_arena_new();
    pare_cert cert = {0};
    if (!a) return PARE_ERR_MEMORY;
    cert_builder b = {.work = {.arena = a, .err = &p->err}, .cert = &cert};
    theorems_within(&b, p->f, p->g, &p->calib, .5);
    const pare_status st = b.work.st;
    pare_arena_free(a);
    return st;
}

static void refuse_each(play *p, work_fn *run)
{
    long total = 0;
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        long n = 0;
        for (; hit; n += 1 + n / 8) { /* all of the first, then some */
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
        total += n; /* reached */
    }
    print_message("%ld allocations reached\n", total);
}

static void proofs_without_memory_are_a_status(void **state)
{
    (void)state;
    pare_random_model_opts shape = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    play p = {0};
    shape.kind = PARE_RANDOM_BERT;
    shape.dim = 6, shape.heads = 2, shape.layers = 1, shape.ffn = 6, shape.vocab = 9;
    assert_ok(pare_random_model(&p.f, &shape, &p.err), &p.err);
    p.f->embedding.norm.kind = PARE_NORM_MEAN;
    p.f->blocks[0].attn.out_norm.kind = p.f->blocks[0].ffn.out_norm.kind = PARE_NORM_MEAN;
    p.g = all_uniform(p.f);
    refuse_each(&p, prove);
    p.f->blocks[0].attn.in_norm = p.g->blocks[0].attn.in_norm =
        (pare_norm){.kind = PARE_NORM_RMS, .divisor = 6, .eps = 1e-5};
    refuse_each(&p, inject);
    refuse_each(&p, reach_for);
    pare_model_free(p.g);
    pare_model_free(p.f);
}

static void collapses_without_memory_are_a_status(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(0, 0);
    net_shape s = {.layers = 2, .heads = 1, .d = 5, .eta = .1, .beta = 1, .bias = .1};
    double x[3 * 5];
    for (pare_collapse k = 0; k < PARE_ONES; k++) {
        play p = {.f = net_of(&r, &s), .kind = k};
        hostile_input(x, &r, 3, 5, 1);
        pare_input in = net_input(x, 3, 5);
        p.calib = (pare_inputs){1, &in};
        refuse_each(&p, collapse);
        p.g = collapsed(p.f, k, 0, &p.calib);
        refuse_each(&p, prove);
        if (k == PARE_ONE_UNIFORM) refuse_each(&p, within);
        if (k == PARE_ONE_UNIFORM) refuse_each(&p, reach_for_model);
        pare_model_free(p.g);
        pare_model_free(p.f);
    }
    s.no_skip = true;
    play p = {.f = net_of(&r, &s)};
    refuse_each(&p, rank);
    pare_model_free(p.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(proofs_without_memory_are_a_status),
        cmocka_unit_test(collapses_without_memory_are_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
