/* Tests src/width/eliminate.c and lm_values.c: inputs of a map are removed, and the others are
 * refitted. */
#include "width_nets.h"
#include "width/lm_auto.h"

enum { ROWS = 300, INPUTS = 12, OUTPUTS = 5 };

typedef struct scene {
    stage s;
    pare_mat f, residual, map0, root;
    double *bias0;
    ridge_fit r;
} scene;

/* Inputs that say something about one another, a target that the map misses. */
static void scene_open(scene *c, uint64_t seed)
{
    stage_open(&c->s, seed);
    pare_work *const w = &c->s.w;
    c->f = rand_product(&c->s, ROWS, INPUTS - 3, INPUTS);
    const pare_mat noise = rand_mat(&c->s, ROWS, INPUTS, 0.3);
    for (size_t i = 0; i < ROWS * INPUTS; i++) c->f.v[i] += noise.v[i] + 0.5;
    c->residual = rand_mat(&c->s, ROWS, OUTPUTS, 0.5);
    c->map0 = rand_mat(&c->s, OUTPUTS, INPUTS, 1);
    c->bias0 = rand_vec(&c->s, OUTPUTS, 1);
    const pare_mat half = rand_mat(&c->s, OUTPUTS, OUTPUTS, 1);
    const pare_mat g = mat_mul(w, &half, true, &half, false);
    c->root = sym_roots_of(w, &g, 1e-9).root;
    moments m = moments_new(w, INPUTS, OUTPUTS);
    const pare_mat f1 = pare_mat_part(&c->f, 0, 0, 100, INPUTS);
    const pare_mat f2 = pare_mat_part(&c->f, 100, 0, ROWS - 100, INPUTS);
    const pare_mat r1 = pare_mat_part(&c->residual, 0, 0, 100, OUTPUTS);
    const pare_mat r2 = pare_mat_part(&c->residual, 100, 0, ROWS - 100, OUTPUTS);
    moments_add(w, &m, &f1, &r1);
    moments_add(w, &m, &f2, &r2);
    c->r = ridge_fit_of(w, &m, &c->map0, c->bias0);
    assert_work(&c->s);
}

/* tr G (V - W) H (V - W)^T for the map V with inputs `kept`. */
static double loss_of(scene *c, const pare_mat *map, const size_t *kept, size_t n)
{
    pare_work *const w = &c->s.w;
    pare_mat gap = mat_copy(w, &c->r.map);
    for (size_t o = 0; o < OUTPUTS; o++) {
        for (size_t i = 0; i < n; i++) pare_row_mut(&gap, o)[kept[i]] -= pare_row(map, o)[i];
        pare_row_mut(&gap, o)[INPUTS] -= pare_row(map, o)[n];
    }
    const pare_mat seen = mat_mul(w, &c->root, false, &gap, false);
    const pare_mat by = mat_mul(w, &seen, false, &c->r.h, false);
    double sum = 0;
    for (size_t i = 0; i < by.rows * by.cols; i++) sum += by.v[i] * seen.v[i];
    return sum;
}

static size_t *all_but(scene *c, const size_t *order, size_t removed)
{
    bool out[INPUTS] = {false};
    size_t *const kept = pare_work_alloc(&c->s.w, INPUTS, sizeof *kept), n = 0;
    for (size_t i = 0; i < removed; i++) out[order[i]] = true;
    for (size_t i = 0; i < INPUTS; i++)
        if (!out[i]) kept[n++] = i;
    assert_int_equal(n, INPUTS - removed);
    return kept;
}

/* On the rows themselves: |[f, 1] map^T - target|^2. */
static double misfit(const scene *c, const pare_mat *map, const size_t *kept, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t o = 0; o < OUTPUTS; o++) {
            double y = pare_row(map, o)[n], target = c->bias0[o] + pare_row(&c->residual, i)[o];
            for (size_t k = 0; k < n; k++) y += pare_row(map, o)[k] * pare_row(&c->f, i)[kept[k]];
            for (size_t k = 0; k < INPUTS; k++)
                target += pare_row(&c->map0, o)[k] * pare_row(&c->f, i)[k];
            sum += (y - target) * (y - target);
        }
    return sum;
}

static void prices_add_up_to_what_the_repaired_map_loses(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        scene c;
        size_t order[INPUTS];
        double cost[INPUTS], sum = 0;
        scene_open(&c, seed);
        const bundles b = bundles_single(&c.s.w, INPUTS);
        elimination_order(&c.s.w, order, cost, &c.r, &c.root, &b, 1);
        for (size_t removed = 1; removed < INPUTS; removed++) {
            const size_t *const kept = all_but(&c, order, removed);
            const pare_mat map = ridge_fit_restricted(&c.s.w, &c.r, kept, INPUTS - removed);
            assert_work(&c.s);
            sum += cost[removed - 1];
            const double loss = loss_of(&c, &map, kept, INPUTS - removed);
            if (!(fabs(sum - loss) <= 1e-8 * loss))
                fail_msg("seed %d: %zu gone, %g is not %g", (int)seed, removed, sum, loss);
        }
        stage_close(&c.s);
    }
}

static void the_cheapest_goes_first(void **state)
{
    (void)state;
    for (size_t seed = 1; seed <= 5; seed++) {
        scene c;
        size_t order[INPUTS];
        double cost[INPUTS];
        scene_open(&c, seed);
        const bundles b = bundles_single(&c.s.w, INPUTS);
        elimination_order(&c.s.w, order, cost, &c.r, &c.root, &b, INPUTS - 1);
        for (size_t one = 0; one < INPUTS; one++) {
            const size_t *const kept = all_but(&c, &one, 1);
            const pare_mat map = ridge_fit_restricted(&c.s.w, &c.r, kept, INPUTS - 1);
            assert_true(loss_of(&c, &map, kept, INPUTS - 1) >= cost[0] * (1 - 1e-9));
        }
        stage_close(&c.s);
    }
}

static void repair_is_never_worse_than_none_on_the_rows_it_saw(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        scene c;
        scene_open(&c, seed);
        for (size_t removed = 0; removed < INPUTS; removed++) {
            size_t first[INPUTS];
            for (size_t i = 0; i < INPUTS; i++) first[i] = i;
            const size_t n = INPUTS - removed, *const kept = all_but(&c, first, removed);
            const pare_mat map = ridge_fit_restricted(&c.s.w, &c.r, kept, n);
            pare_mat none = mat_zeros(&c.s.w, OUTPUTS, n + 1);
            assert_work(&c.s);
            for (size_t o = 0; o < OUTPUTS; o++) {
                for (size_t i = 0; i < n; i++)
                    pare_row_mut(&none, o)[i] = pare_row(&c.map0, o)[kept[i]];
                pare_row_mut(&none, o)[n] = c.bias0[o];
            }
            const double with = misfit(&c, &map, kept, n), without = misfit(&c, &none, kept, n);
            if (!(with <= without)) fail_msg("seed %d: %g > %g", (int)seed, with, without);
            /* It is not the map as it was, either. */
            if (removed > 0) assert_true(with <= 0.99 * without);
        }
        stage_close(&c.s);
    }
}

/* An input that another one repeats costs next to nothing; a dead one nothing at all. */
static void what_others_say_already_goes_for_little(void **state)
{
    (void)state;
    scene c;
    size_t order[INPUTS];
    double cost[INPUTS];
    scene_open(&c, 3);
    pare_work *const w = &c.s.w;
    pare_mat f = rand_mat(&c.s, 20000, INPUTS, 1);
    for (size_t i = 0; i < f.rows; i++) {
        pare_row_mut(&f, i)[4] = 0;
        pare_row_mut(&f, i)[7] = 2 * pare_row(&f, i)[2];
    }
    moments m = moments_new(w, INPUTS, OUTPUTS);
    moments_add(w, &m, &f, NULL);
    const ridge_fit r = ridge_fit_of(w, &m, &c.map0, c.bias0);
    const bundles b = bundles_single(w, INPUTS);
    elimination_order(w, order, cost, &r, &c.root, &b, 1);
    assert_work(&c.s);
    assert_true((order[0] == 4 && (order[1] == 2 || order[1] == 7)) ||
                (order[1] == 4 && (order[0] == 2 || order[0] == 7)));
    assert_true(cost[1] <= 1e-2 * cost[2]);
    stage_close(&c.s);
}

/* ---- values --------------------------------------------------------------------------------- */

/* Two groups; the first has two heads. */
static lm_attn two_groups(scene *c)
{
    pare_work *const w = &c->s.w;
    lm_attn a = {
        .present = true, .din = 6, .dout = OUTPUTS, .nheads = 3, .nkeys = 2, .bo = c->bias0};
    a.heads = pare_work_alloc(w, 3, sizeof *a.heads);
    a.keys = pare_work_alloc(w, 2, sizeof *a.keys);
    for (size_t h = 0; h < 3; h++) {
        a.heads[h].keys = h == 2;
        const pare_mat part = pare_mat_part(&c->map0, 0, 4 * h, OUTPUTS, 4);
        a.heads[h].wo = mat_copy(w, &part);
    }
    for (size_t g = 0; g < 2; g++)
        a.keys[g] = (lm_keys){.wv = rand_mat(&c->s, 4, 6, 1), .bv = rand_vec(&c->s, 4, 1)};
    return a;
}

/* For one head alone, what r directions lose is the least of any r (Eckart-Young): the prices are
 * the smallest eigenvalues, and no random choice of directions does better. */
static void value_directions_are_the_best_of_their_head(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        scene c;
        scene_open(&c, seed);
        pare_work *const w = &c.s.w;
        const lm_attn a = two_groups(&c);
        const value_directions t = value_directions_of(w, &a, &c.r, &c.root);
        assert_work(&c.s);
        const size_t lost[] = {8, 9}; /* of the second group, which has one head */
        const size_t *const kept = all_but(&c, lost, 2);
        const pare_mat map = ridge_fit_restricted(w, &t.fit, kept, INPUTS - 2);
        scene transposed = c;
        transposed.r = t.fit;
        const double best = loss_of(&transposed, &map, kept, INPUTS - 2);
        for (size_t k = 0; k < 20; k++) {
            const pare_mat q = rand_orthonormal(&c.s, 4, 4);
            pare_mat any = mat_identity(w, INPUTS);
            for (size_t i = 0; i < 4; i++)
                for (size_t j = 0; j < 4; j++)
                    pare_row_mut(&any, 8 + i)[8 + j] = pare_row(&q, i)[j];
            const pare_mat back = mat_transpose(w, &any);
            transposed.r = ridge_fit_rebased(w, &c.r, &any, &back);
            const pare_mat other = ridge_fit_restricted(w, &transposed.r, kept, INPUTS - 2);
            assert_work(&c.s);
            assert_true(loss_of(&transposed, &other, kept, INPUTS - 2) >= best * (1 - 1e-9));
        }
        stage_close(&c.s);
    }
}

/* Nothing gone: the sublayer writes what it wrote; shared values go together, none goes whole. */
static void turned_values_say_the_same(void **state)
{
    (void)state;
    scene c;
    size_t order[8];
    double cost[8];
    bool removed[8] = {false};
    scene_open(&c, 4);
    pare_work *const w = &c.s.w;
    const lm_attn a = two_groups(&c);
    moments m = moments_new(w, INPUTS, OUTPUTS);
    moments_add(w, &m, &c.f, NULL);
    const ridge_fit r = ridge_fit_of(w, &m, &c.map0, c.bias0);
    const value_directions t = value_directions_of(w, &a, &r, &c.root);
    const lm_attn b = attn_without_values(w, &a, &t, removed, &t.fit.map);
    assert_work(&c.s);
    for (size_t h = 0; h < 3; h++) {
        const pare_mat x = mat_mul(w, &a.heads[h].wo, false, &a.keys[a.heads[h].keys].wv, false);
        const pare_mat y = mat_mul(w, &b.heads[h].wo, false, &b.keys[b.heads[h].keys].wv, false);
        for (size_t i = 0; i < x.rows * x.cols; i++) assert_true(fabs(x.v[i] - y.v[i]) <= 1e-9);
    }
    assert_int_equal(t.b.n, 8);
    assert_int_equal(t.b.all[0].count, 2);
    assert_int_equal(t.b.all[4].count, 1);
    elimination_order(w, order, cost, &t.fit, &c.root, &t.b, 2);
    size_t left[2] = {4, 4};
    for (size_t i = 0; i < 6; i++) left[t.b.all[order[i]].group]--;
    assert_true(left[0] == 1 && left[1] == 1);
    stage_close(&c.s);
}

/* ---- shares --------------------------------------------------------------------------------- */

static void cheap_parts_give_more_and_no_part_gives_all(void **state)
{
    (void)state;
    double low[9], high[9];
    size_t size[9];
    for (size_t i = 0; i < 9; i++) low[i] = 1, high[i] = 5, size[i] = 10;
    low[4] = 0.1; /* met late: costs that fall do not make a bargain */
    part_cost p[] = {{.count = 10, .n = 9, .cost = low, .size = size},
                     {.count = 10, .n = 9, .cost = high, .size = size},
                     {.count = 0, .n = 0}};
    assert_int_equal(allocate_removals(p, 3, 75), 80);
    assert_true(p[0].removed > p[1].removed && p[1].removed > 0 &&
                p[0].removed + p[1].removed == 8);
    assert_int_equal(allocate_removals(p, 3, 1000), 180);
    assert_true(p[0].removed == 9 && p[1].removed == 9 && p[2].removed == 0);
    size[0] = 1; /* the first one gives little: its price is that for what it gives */
    p[1].size = (size_t[9]){100, 100, 100, 100, 100, 100, 100, 100, 100};
    assert_int_equal(allocate_removals(p, 2, 250), 300);
    assert_true(p[0].removed == 0 && p[1].removed == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prices_add_up_to_what_the_repaired_map_loses),
        cmocka_unit_test(the_cheapest_goes_first),
        cmocka_unit_test(repair_is_never_worse_than_none_on_the_rows_it_saw),
        cmocka_unit_test(what_others_say_already_goes_for_little),
        cmocka_unit_test(value_directions_are_the_best_of_their_head),
        cmocka_unit_test(turned_values_say_the_same),
        cmocka_unit_test(cheap_parts_give_more_and_no_part_gives_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
