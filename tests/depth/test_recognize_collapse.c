/* Tests src/depth/recognize_collapse.c: what is not the collapse it looks like has no theorem. */
#include "pare_test.h"
#include "depth/depth_bounds.h"
#include <pare/depth.h>

static pare_weight number(pare_model *m, double v)
{
    double *const p = pare_alloc(m->arena, 1, sizeof *p);
    *p = v;
    return (pare_weight){PARE_F64, 1, 1, p};
}

/* One head of width 1: no queries, value v, biases. */
static void layer(pare_model *m, size_t b, double qk, double v, double bv, double bo)
{
    pare_attn *const at = &m->blocks[b].attn;
    *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = 1, .dout = 1, .nheads = 1};
    at->heads = pare_alloc(m->arena, 1, sizeof *at->heads);
    at->heads[0] = (pare_head){.dk = 1, .dv = 1, .scale = 1};
    at->skip.kind = PARE_SKIP_IDENTITY;
    at->wq = at->wk = number(m, qk);
    at->wv = number(m, v);
    at->wo = number(m, 1);
    at->bv = number(m, bv);
    at->bo = number(m, bo);
}

static pare_model *two_layers(pare_pattern pattern)
{
    pare_model *m;
    assert_ok(pare_model_new(&m, NULL), NULL);
    m->stem.width = 1;
    m->pattern = pattern;
    m->nblocks = 2;
    m->blocks = pare_alloc(m->arena, 2, sizeof *m->blocks);
    return m;
}

static double apart(const pare_model *f, const pare_model *g, const pare_input *in)
{
    double y[2], z[2];
    assert_ok(pare_forward_f64(y, f, in, NULL, NULL, NULL), NULL);
    assert_ok(pare_forward_f64(z, g, in, NULL, NULL, NULL), NULL);
    return fmax(fabs(y[0] - z[0]), fabs(y[1] - z[1]));
}

static double bound(const pare_model *f, const pare_model *g, double phi)
{
    depth_bound b;
    const depth_domain d = {phi, -1};
    assert_ok(depth_apriori(&b, f, g, &d, NULL, NULL), NULL);
    return b.bound.v;
}

/* Node 0 sees node 1, which sees nothing and does not take part in what cancels for others. */
static void rows_that_see_nothing_do_not_move_with_the_others(void **state)
{
    (void)state;
    pare_model *const f = two_layers((pare_pattern){.kind = PARE_GRAPH}), *g;
    layer(f, 0, 0, 0, 5, -5);
    layer(f, 1, 0, 1, 0, 0);
    const one_layer_opts o = {.kind = PARE_ONE_PARALLEL};
    assert_ok(collapse_to_one_layer(&g, f, &o, NULL), NULL);
    size_t ptr[] = {0, 1, 1};
    uint32_t idx[] = {1};
    const pare_graph graph = {2, ptr, idx};
    const double x[] = {.1, .1};
    const pare_input in = {.batch = 1, .tokens = 2, .width = 1, .x = x, .graph = &graph};
    assert_near(apart(f, g, &in), 5, 1e-9);
    assert_le(5, bound(f, g, .1));
    pare_model_free(g);
    pare_model_free(f);
}

static void a_collapse_without_its_skip_is_another_network(void **state)
{
    (void)state;
    pare_model *const f = two_layers((pare_pattern){.kind = PARE_FULL}), *g;
    layer(f, 0, .01, .01, 0, 0);
    layer(f, 1, .01, .01, 0, 0);
    const double x[] = {1, 1};
    pare_input in = {.batch = 1, .tokens = 2, .width = 1, .x = x};
    const pare_inputs calib = {1, &in};
    const one_layer_opts o = {.kind = PARE_ONE_RANKONE, .calib = &calib};
    assert_ok(collapse_to_one_layer(&g, f, &o, NULL), NULL);
    assert_le(bound(f, g, 1), 1e-4);
    g->blocks[0].attn.skip.kind = PARE_SKIP_NONE;
    assert_le(.9, apart(f, g, &in));
    assert_le(.9, bound(f, g, 1));
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_see_nothing_do_not_move_with_the_others),
        cmocka_unit_test(a_collapse_without_its_skip_is_another_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
