/* Tests the local bounds of src/depth/attn_stats_bounds.c: what a layer says when another kind stands there
 * moves by no more than is printed beside it, for models of every kind, for weights and inputs of
 * any size, and for inputs that climb towards the bound. */
#include <pare_test.h>
#include <pare/depth.h>
#include "../../studies/attention_nets.h"

enum { BOUNDED = 4 };
static const pare_attn_kind bounded[BOUNDED] = {PARE_ATTN_ZERO, PARE_ATTN_UNIFORM, PARE_ATTN_CONSTQ,
                                                PARE_ATTN_MEANQ};

/* measured / bound, the largest over the layers and kinds; what is rounding in f64 is left out. */
static double worst_of(double ratio[BOUNDED], const pare_model *m, const pare_inputs *in)
{
    pare_arena *const a = pare_arena_new();
    pare_attention_stats x;
    pare_replacement_costs costs;
    pare_err err = {0};
    double worst = 0;
    const pare_replacement_costs_opts o = PARE_REPLACEMENT_COSTS_OPTS_DEFAULT;
    assert_non_null(a);
    assert_ok(pare_depth_attention_stats(&x, a, m, &(pare_input_split){.fit = in, .heldout = in},
                                         NULL, &err),
              &err);
    assert_ok(pare_depth_replacement_costs(
                  &costs, a, m, &(pare_input_split){.fit = in, .heldout = in}, &o, NULL, &err),
              &err);
    for (size_t k = 0; k < BOUNDED; k++) ratio[k] = 0;
    for (size_t l = 0; l < x.nlayers; l++)
        for (size_t k = 0; k < BOUNDED; k++) {
            const size_t at = bounded[k] - PARE_ATTN_ZERO;
            if (costs.kinds[l][at].refused) continue;
            const double noise = 1e-13 * (x.layers[l].f + x.layers[l].constant.v);
            const double over = costs.kinds[l][at].local - noise;
            if (over <= 0) continue;
            ratio[k] = fmax(ratio[k], over / x.layers[l].bound[at].v);
            worst = fmax(worst, ratio[k]);
        }
    pare_arena_free(a);
    return worst;
}

/* ---- models of every kind -------------------------------------------------------------------- */

static void resize(pare_weight *w, double by)
{
    float *const v = (float *)(uintptr_t)w->data;
    assert_int_equal(w->dtype, PARE_F32);
    for (size_t i = 0; i < w->rows * w->cols; i++) v[i] *= (float)by;
}

static void every_model_keeps_its_local_bounds(void **state)
{
    (void)state;
    static const double sizes[] = {1e-12, 1e-3, 1, 10, 1e3};
    double best[BOUNDED] = {0}, ratio[BOUNDED];
    for (int kind = 0; kind < 4; kind++)
        for (size_t s = 0; s < 5; s++)
            for (uint64_t seed = 1; seed <= 2; seed++) {
                pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
                pare_model *m = NULL;
                pare_inputs in;
                pare_arena *const a = pare_arena_new();
                pare_err err = {0};
                o.kind = (pare_random_kind)kind;
                o.dim = 16, o.heads = 2, o.layers = 2, o.seed = seed;
                assert_ok(pare_random_model(&m, &o, &err), &err);
                if (m->pattern.kind == PARE_CAUSAL && seed == 2)
                    m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 4, .sinks = 1};
                for (size_t b = 0; b < m->nblocks; b++) {
                    resize(&m->blocks[b].attn.wq, sizes[s]);
                    resize(&m->blocks[b].attn.wv, sizes[(s + seed) % 5]);
                }
                assert_ok(pare_inputs_random(&in, a, m, 3, 1 + 6 * seed, seed, &err), &err);
                const double worst = worst_of(ratio, m, &in);
                if (!(worst <= 1))
                    print_error("model kind %d, size %g, seed %d: %g\n", kind, sizes[s], (int)seed,
                                worst);
                assert_le(worst, 1);
                for (size_t k = 0; k < BOUNDED; k++) best[k] = fmax(best[k], ratio[k]);
                pare_model_free(m);
                pare_arena_free(a);
            }
    print_message("closest: zero %.2f uniform %.2f constq %.2f meanq %.2f\n", best[0], best[1],
                  best[2], best[3]);
    for (size_t k = 0; k < BOUNDED; k++) assert_le(0.55, best[k]); /* not needlessly large */
}

/* ---- inputs that climb ----------------------------------------------------------------------- */

static void no_input_climbs_over_a_local_bound(void **state)
{
    (void)state;
    double best[BOUNDED] = {0};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const san_shape shape = {.layers = 1,
                                 .heads = 1 + seed % 2,
                                 .dim = 3,
                                 .scale = 1,
                                 .size = seed % 3 ? 0.5 : 2,
                                 .draw = seed % 4 ? SAN_NORMAL : SAN_SAME,
                                 .causal = seed % 2};
        pare_rng r = pare_rng_at(seed, 0);
        pare_model *m = NULL;
        pare_err err = {0};
        double x[15], ratio[BOUNDED];
        assert_ok(san_new(&m, &shape, &r, &err), &err);
        pare_input one = {.batch = 1, .tokens = 5, .width = 3, .x = x};
        const pare_inputs in = {1, &one};
        for (size_t i = 0; i < 15; i++) x[i] = pare_rng_normal(&r);
        const size_t target = seed % BOUNDED;
        double top = 0;
        for (size_t step = 0; step < 50; step++) {
            const size_t at = pare_rng_below(&r, 15);
            const double was = x[at];
            x[at] += (step < 25 ? 1 : 0.1) * pare_rng_normal(&r);
            assert_le(worst_of(ratio, m, &in), 1);
            for (size_t k = 0; k < BOUNDED; k++) best[k] = fmax(best[k], ratio[k]);
            if (ratio[target] < top)
                x[at] = was;
            else
                top = ratio[target];
        }
        pare_model_free(m);
    }
    print_message("closest: zero %.2f uniform %.2f constq %.2f meanq %.2f\n", best[0], best[1],
                  best[2], best[3]);
    for (size_t k = 0; k < BOUNDED; k++) assert_le(0.6, best[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_keeps_its_local_bounds),
        cmocka_unit_test(no_input_climbs_over_a_local_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
