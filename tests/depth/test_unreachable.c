/* Tests src/depth/unreachable.c: Theorem D.1 is false for EVERY one-layer network. */
#include "depth_nets.h"

static const double deep[2][2] = {{3, -2}, {-3, 1}};

/* Width k d, entries divided by k: W kron J / k (queries: J / k^2), inputs repeated k times. */
static pare_model *replicated(const double (*layers)[2], size_t n, size_t k)
{
    pare_rng r = pare_rng_at(0, 0);
    const net_shape s = {.layers = n, .heads = 1, .d = k, .eta = 0, .beta = 1};
    pare_model *const m = net_of(&r, &s);
    for (size_t b = 0; b < n; b++) {
        pare_attn *const at = &m->blocks[b].attn;
        double *const q = net_room(m, k * k), *const key = net_room(m, k * k);
        double *const v = net_room(m, k * k);
        for (size_t i = 0; i < k * k; i++) {
            q[i] = layers[b][0] / (double)(k * k);
            key[i] = 1 / (double)k;
            v[i] = layers[b][1] / (double)k;
        }
        at->wq.data = q, at->wk.data = key, at->wv.data = v;
    }
    return m;
}

static void every_one_layer_network_is_far_from_a_deep_one(void **state)
{
    (void)state;
    depth_lower low;
    pare_err err = {0};
    assert_ok(depth_lower_bound(&low, deep, 2, 2, 32, &err), &err);
    print_message("every one-layer network is at least %.4f away\n", low.lb);
    assert_true(low.lb >= 0.93);
    assert_le(low.lb, 0.94); /* what a finer grid tends to */
    /* replicated 1000 times all hypotheses of the theorem hold, and what it says is far less */
    const depth_paper p = depth_paper_of(.003, 2, 1, 2);
    assert_true(p.holds && p.bound < .1 && p.claim < .01);
    assert_true(low.lb > 9 * p.bound);
}

/* One-layer networks that try hard: none is closer than the bound. */
static void no_search_comes_closer(void **state)
{
    (void)state;
    depth_lower low;
    pare_err err = {0};
    assert_ok(depth_lower_bound(&low, deep, 2, 2, 20, &err), &err);
    pare_model *const f = replicated(deep, 2, 1);
    enum { GRID = 13, HEADS = 4 };
    double best = INFINITY;
    pare_rng r = pare_rng_at(3, 0);
    double heads[HEADS][2], x[2], y[2];
    for (size_t h = 0; h < HEADS; h++) heads[h][0] = heads[h][1] = 0;
    for (size_t t = 0; t < 800; t++) {
        double old[HEADS][2], far = 0;
        memcpy(old, heads, sizeof old);
        for (size_t h = 0; h < HEADS; h++)
            for (size_t i = 0; i < 2; i++) heads[h][i] += (t ? .3 : 0) * pare_rng_normal(&r);
        for (size_t i = 0; i < GRID * GRID; i++) {
            x[0] = 4 * (double)(i / GRID) / (GRID - 1) - 2,
            x[1] = 4 * (double)(i % GRID) / (GRID - 1) - 2;
            net_run(y, f, x, 2, 1);
            double out = x[0];
            for (size_t h = 0; h < HEADS; h++) {
                const double p = 1 / (1 + exp(-heads[h][0] * x[0] * (x[0] - x[1])));
                out += heads[h][1] * (p * x[0] + (1 - p) * x[1]);
            }
            far = fmax(far, fabs(out - y[0]));
        }
        if (far < best)
            best = far;
        else
            memcpy(heads, old, sizeof old);
    }
    print_message("best found %.3f, none can be below %.3f\n", best, low.lb);
    assert_le(low.lb, best + 0.05); /* the search looks at a grid, the bound at the box */
    assert_le(best, 3);
    pare_model_free(f);
}

static void a_one_layer_network_is_reachable(void **state)
{
    (void)state;
    static const double shallow[1][2] = {{3, -2}};
    depth_lower low;
    pare_err err = {0};
    assert_ok(depth_lower_bound(&low, shallow, 1, 2, 16, &err), &err);
    assert_le(low.lb, 1e-12);
    assert_ok(depth_lower_bound(&low, deep, 2, 0, 16, &err), &err);
    assert_true(low.lb == 0);
    assert_ok(depth_lower_bound(&low, deep, 2, NAN, 16, &err), &err);
    assert_true(low.lb == 0);
}

static void replication_divides_entries_and_changes_nothing(void **state)
{
    (void)state;
    enum { K = 50 };
    pare_model *const f = replicated(deep, 2, 1), *const g = replicated(deep, 2, K);
    const double x[] = {1, .3};
    double wide[2 * K], y[2], z[2 * K];
    for (size_t i = 0; i < 2 * K; i++) wide[i] = x[i / K];
    net_run(y, f, x, 2, 1);
    net_run(z, g, wide, 2, K);
    for (size_t i = 0; i < 2 * K; i++) assert_near(z[i], y[i / K], 1e-9);
    const pare_weight *const v = &f->blocks[0].attn.wv, *const w = &g->blocks[0].attn.wv;
    assert_near(pare_norm_max(w).v, pare_norm_max(v).v / K, 1e-15);
    assert_near(pare_norm_max_row(w).v, pare_norm_max_row(v).v, 1e-12); /* what theory looks at */
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_one_layer_network_is_far_from_a_deep_one),
        cmocka_unit_test(no_search_comes_closer),
        cmocka_unit_test(a_one_layer_network_is_reachable),
        cmocka_unit_test(replication_divides_entries_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
