/* Tests src/depth/stats*.c: figures of heads whose answers are known, the lemmas that relate them,
 * the engine's own branch beside them, an independent implementation's table, the threads. */
#include <pare_test.h>
#include <pare/depth.h>
#include "depth/replace_layers.h"
#include "depth/attn_stats.h"
#include "../../studies/attention_nets.h"

typedef struct scene {
    pare_arena *a;
    pare_err err;
    pare_rng rng;
    pare_model *m;
    pare_inputs in;
    pare_attention_stats x;
} scene;

static void scene_open(scene *s, const san_shape *shape, size_t inputs, size_t tokens,
                       uint64_t seed)
{
    memset(s, 0, sizeof *s);
    s->a = pare_arena_new();
    s->rng = pare_rng_at(seed, 0);
    assert_non_null(s->a);
    assert_ok(san_new(&s->m, shape, &s->rng, &s->err), &s->err);
    const san_tokens t = {.n = inputs, .tokens = tokens, .dim = shape->dim, .spread = 1};
    assert_ok(san_inputs(&s->in, s->a, &t, &s->rng, &s->err), &s->err);
}

static void heldout(scene *s, int threads)
{
    const pare_exec exec = {.threads = threads};
    assert_ok(pare_depth_attention_stats(&s->x, s->a, s->m,
                                         &(pare_input_split){.fit = &s->in, .heldout = &s->in},
                                         &exec, &s->err),
              &s->err);
}

static void scene_close(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
}

static const pare_input *first(const scene *s)
{
    return &s->in.in[0];
}

/* ---- exact small cases ----------------------------------------------------------------------- */

/* Width 1, tokens 0 and 2, Wq = Wk = 1, Wv = 3, scale 1/2: logits {0 0; 0 2}. */
static void two_tokens_by_hand(void **state)
{
    (void)state;
    scene s;
    const double x[] = {0, 2}, p = 1 / (1 + exp(-2.0));
    scene_open(&s,
               &(san_shape){.layers = 1,
                            .heads = 1,
                            .dim = 1,
                            .scale = 0.5,
                            .size = 1,
                            .values = 3,
                            .draw = SAN_SAME},
               1, 2, 1);
    s.in.in[0].x = x;
    heldout(&s, 1);
    const pare_head_stats *const h = &s.x.heads[0];
    assert_int_equal(s.x.nlayers, 1);
    assert_int_equal(s.x.nheads, 1);
    assert_near(h->eta, 3, 0);
    assert_near(h->b2.v, 0.5, 1e-6);
    assert_near(h->bil.v, 0.5, 1e-6);
    assert_near(h->v2.v, 3, 1e-3);
    assert_near(h->vinf.v, 3, 1e-12);
    assert_near(h->range_max, 2, 1e-15);
    assert_near(h->range_mean, 1, 1e-15);
    assert_near(h->theta, 1, 1e-15); /* Res = -1, 1: rows {.5 -.5} */
    assert_near(h->rho, 2, 1e-15);
    assert_near(h->tau, p - 0.5, 1e-15);
    assert_near(h->tv_uniform, (p - 0.5) / 2, 1e-15);
    /* The mean query is 1: logits {0 1} in both rows. */
    const double q = 1 / (1 + exp(-1.0));
    assert_near(h->tv_meanq, (fabs(q - 0.5) + fabs(p - q)) / 2, 1e-15);
    assert_near(h->tv_constq, h->tv_meanq, 1e-15);
    assert_near(h->meanq_max, 1, 1e-15);
    assert_near(h->entropy, (1 - (p * log(p) + (1 - p) * log(1 - p)) / log(2)) / 2, 1e-14);
    assert_near(h->k_paper, 3 * (exp(1) - 1), 1e-12);
    assert_near(h->k_sound, 3 * tanh(0.5), 1e-9);
    assert_near(h->k_seen, 3 * (p - 0.5), 1e-14); /* outputs 3 and 6 p: half of 6 p - 3, Res 1 */
    assert_near(h->diam, 6, 1e-15);
    assert_near(h->poly_b, 0.5, 1e-15);
    const pare_layer_stats *const l = &s.x.layers[0];
    assert_near(l->x, 2, 0);
    assert_near(l->res_x, 1, 0);
    assert_near(l->res_x1, sqrt(2), 1e-15); /* column 1 + 1, rows 1 */
    assert_near(l->res_f, 3 * (p - 0.5), 1e-14);
    assert_near(l->share, sqrt(9 + 36 * p * p) / 2, 1e-14);
    assert_near(l->bound[PARE_ATTN_ZERO - PARE_ATTN_ZERO].v, 6, 1e-9);
    assert_near(l->bound[PARE_ATTN_UNIFORM - PARE_ATTN_ZERO].v, 6 * tanh(0.5), 1e-9);
    assert_near(l->bound[PARE_ATTN_MEANQ - PARE_ATTN_ZERO].v, 6 * tanh(0.25), 1e-9);
    scene_close(&s);
}

static void without_queries_every_row_is_uniform(void **state)
{
    (void)state;
    scene s;
    scene_open(
        &s, &(san_shape){.layers = 2, .heads = 2, .dim = 4, .scale = 0, .size = 1, .causal = true},
        2, 7, 2);
    heldout(&s, 1);
    for (size_t i = 0; i < s.x.nheads; i++) {
        const pare_head_stats *const h = &s.x.heads[i];
        assert_near(h->range_max, 0, 0);
        assert_near(h->tv_uniform, 0, 1e-15);
        assert_near(h->tv_constq, 0, 1e-15);
        assert_near(h->entropy, 1, 1e-14);
        assert_near(h->rho, 0, 0);
        assert_true(isnan(h->tau) && isnan(h->tv_meanq)); /* of full attention only */
        assert_near(h->poly_b, 0, 0);
    }
    assert_near(s.x.layers[1].bound[PARE_ATTN_UNIFORM - PARE_ATTN_ZERO].v, 0, 1e-300);
    assert_true(isinf(s.x.layers[1].bound[PARE_ATTN_MEANQ - PARE_ATTN_ZERO].v));
    scene_close(&s);
}

/* ---- lemmas ---------------------------------------------------------------------------------- */

static pare_mat branch_of(scene *s, const pare_attn *a)
{
    pare_block block;
    pare_work w = {.arena = s->a, .err = &s->err};
    pare_mat x = pare_mat_new(s->a, first(s)->tokens, a->din);
    const pare_model branch = submodel_branch(&block, s->m, a);
    assert_non_null(x.v);
    memcpy(x.v, first(s)->x, x.rows * x.cols * sizeof *x.v);
    const pare_mat y = submodel_run(&w, &branch, first(s), &x);
    assert_ok(w.st, &s->err);
    return y;
}

static double branch_gap(scene *s, const pare_attn *a, const pare_attn *b)
{
    const pare_mat y = branch_of(s, a), z = branch_of(s, b);
    return san_largest(y.v, z.v, y.rows * y.cols);
}

/* The uniform kind of a layer: mix is the sum of the heads' Wo Wv. */
static pare_attn uniform_of(scene *s, const pare_attn *a)
{
    pare_attn u = *a;
    double *const mix = pare_alloc(s->a, a->dout * a->din, sizeof *mix);
    assert_non_null(mix);
    for (size_t h = 0; h < a->nheads; h++)
        for (size_t i = 0; i < a->dout * a->din; i++)
            mix[i] += pare_weight_at(&a->wv, h * a->dout * a->din + i);
    u.kind = PARE_ATTN_UNIFORM;
    u.mix = (pare_weight){PARE_F64, a->dout, a->din, mix};
    u.nheads = 0;
    u.wq = u.wk = u.wv = u.wo = (pare_weight){0};
    return u;
}

static void what_is_seen_keeps_to_the_lemmas(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        scene s;
        const bool same = seed % 4 == 0, causal = seed % 2;
        const double size = 0.05 * pow(1.15, (double)seed);
        scene_open(&s,
                   &(san_shape){.layers = 1,
                                .heads = 1 + seed % 3,
                                .dim = 5,
                                .scale = 0.5,
                                .size = size,
                                .draw = same ? SAN_SAME : SAN_NORMAL,
                                .causal = causal},
                   1, 9, seed);
        heldout(&s, 1);
        print_message("seed %llu\n", (unsigned long long)seed);
        const pare_attn *const a = &s.m->blocks[0].attn;
        const pare_layer_stats *const l = &s.x.layers[0];
        for (size_t i = 0; i < s.x.nheads; i++) {
            const pare_head_stats *const h = &s.x.heads[i];
            const double ds = 2 * l->res_x;
            assert_le(h->rho, 2 * h->theta * (1 + 1e-12));
            assert_le(h->rho, h->bil.v * ds * ds * (1 + 1e-12));
            if (!causal) assert_le(h->tau, tanh(h->rho / 4) * (1 + 1e-12));
            assert_le(h->k_seen, h->k_sound * (1 + 1e-12));
            assert_le(h->tv_uniform, tanh(h->range_max / 4) * (1 + 1e-12));
            assert_le(h->b2.v, h->bil.v);
            assert_le(h->vinf.v, sqrt(5) * h->v2.v * (1 + 1e-9));
        }
        pare_attn zero = *a;
        zero.kind = PARE_ATTN_ZERO;
        pare_attn mean = *a;
        mean.kind = PARE_ATTN_MEANQ;
        const pare_attn uniform = uniform_of(&s, a);
        assert_le(branch_gap(&s, a, &zero), l->bound[PARE_ATTN_ZERO - PARE_ATTN_ZERO].v);
        assert_near(branch_gap(&s, a, &zero), l->f, 1e-12);
        assert_le(branch_gap(&s, a, &uniform),
                  l->bound[PARE_ATTN_UNIFORM - PARE_ATTN_ZERO].v * (1 + 1e-12));
        if (!causal)
            assert_le(branch_gap(&s, a, &mean),
                      l->bound[PARE_ATTN_MEANQ - PARE_ATTN_ZERO].v * (1 + 1e-12));
        scene_close(&s);
    }
}

/* All weights alike: the printed K is below what is seen (Lemma 5.1 of Rank collapse 2025 is
 * false), ours is not. */
static void the_printed_contraction_is_broken_by_weights_of_one_sign(void **state)
{
    (void)state;
    scene s;
    double x[6 * 6];
    scene_open(
        &s,
        &(san_shape){.layers = 1, .heads = 1, .dim = 6, .scale = 1, .size = 0.05, .draw = SAN_SAME},
        1, 6, 3);
    for (size_t i = 0; i < 36; i++) x[i] = i < 18 ? -1 : 1;
    s.in.in[0].x = x;
    heldout(&s, 1);
    assert_true(s.x.heads[0].k_seen > 1.5 * s.x.heads[0].k_paper);
    assert_le(s.x.heads[0].k_seen, s.x.heads[0].k_sound);
    scene_close(&s);
}

/* ---- the engine beside it -------------------------------------------------------------------- */

static void one_head_of_a_rotary_model_gives_the_branch(void **state)
{
    (void)state;
    scene s = {.a = pare_arena_new()};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = PARE_RANDOM_LLAMA;
    o.dim = 16;
    o.heads = 1;
    o.layers = 1;
    assert_ok(pare_random_model(&s.m, &o, &s.err), &s.err);
    assert_ok(pare_inputs_random(&s.in, s.a, s.m, 1, 12, 5, &s.err), &s.err);
    /* no norm: what enters is what is projected */
    s.m->blocks[0].attn.in_norm = (pare_norm){0};
    heldout(&s, 1);
    const pare_head_stats *const h = &s.x.heads[0];
    assert_near(h->k_seen * s.x.layers[0].res_x, s.x.layers[0].res_f, 1e-12);
    assert_true(isnan(h->theta) && h->rho > 0); /* Res(Z) B Res(Z)^T is no function of Z here */
    assert_true(h->tv_constq > 0);
    scene_close(&s);
}

/* ---- the table of an independent numpy implementation ---------------------------------------- */

#define TINY "../shared/reference/depth/tiny.npz"

static void load_windows(scene *s, pare_inputs *fit)
{
    pare_npz *z = NULL;
    pare_array val;
    assert_ok(pare_npz_open(&z, s->a, TINY, &s->err), &s->err);
    assert_ok(pare_npz_get(&val, z, "val", &s->err), &s->err);
    pare_npz_close(z);
    assert_int_equal(val.shape[1], 65);
    pare_input *const in = pare_alloc(s->a, 60, sizeof *in);
    assert_non_null(in);
    for (size_t i = 0; i < 60; i++) {
        const size_t row = i < 50 ? i : i + 50;
        in[i] = (pare_input){.batch = 1, .tokens = 64, .ids = (const int64_t *)val.data + row * 65};
    }
    *fit = (pare_inputs){50, in};
    s->in = (pare_inputs){10, in + 50};
}

static void the_trained_model_has_the_golden_figures(void **state)
{
    (void)state;
    NEED_SHARED(TINY);
    scene s = {.a = pare_arena_new()};
    pare_inputs fit;
    const pare_exec exec = {.threads = 2};
    assert_ok(pare_model_load(&s.m, TINY, &s.err), &s.err);
    load_windows(&s, &fit);
    assert_ok(pare_depth_attention_stats(&s.x, s.a, s.m,
                                         &(pare_input_split){.fit = &fit, .heldout = &s.in}, &exec,
                                         &s.err),
              &s.err);
    static const struct {
        size_t head;
        double eta, b, v, range, theta, tvu, tvq, share, res_x, res_f, varied;
    } want[] = {{0, .36, .82, .43, 14.14, 27.5, .650, .256, 1.384, .33, .51, .738},
                {4, .31, .51, .50, 8.36, 11.4, .637, .200, .296, 2.10, .61, .606},
                {12, .29, .58, .51, 4.26, 12.8, .369, .346, .221, 3.03, .62, .566},
                {20, .38, .54, .69, 6.18, 10.5, .500, .369, .202, 3.37, .56, .678}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const pare_head_stats *const h = &s.x.heads[want[i].head];
        const pare_layer_stats *const l = &s.x.layers[want[i].head / 4];
        assert_near(h->eta, want[i].eta, 0.005);
        assert_near(h->b2.v, want[i].b, 0.006);
        assert_near(h->v2.v, want[i].v, 0.006);
        assert_near(h->range_mean, want[i].range, 0.006);
        assert_near(h->theta_mean, want[i].theta, 0.06);
        assert_near(h->tv_uniform, want[i].tvu, 6e-4);
        assert_near(h->tv_constq, want[i].tvq, 6e-4);
        assert_near(l->share, want[i].share, 6e-4);
        assert_near(l->res_x, want[i].res_x, 0.006);
        assert_near(l->res_f, want[i].res_f, 0.006);
        assert_near(l->varied, want[i].varied, 6e-4);
    }
    scene_close(&s);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void the_figures_do_not_depend_on_the_threads(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, &(san_shape){.layers = 2, .heads = 3, .dim = 6, .scale = 1, .size = 0.5}, 3, 11,
               9);
    heldout(&s, 1);
    const pare_attention_stats one = s.x;
    heldout(&s, 5);
    for (size_t i = 0; i < one.nheads; i++)
        assert_memory_equal(&one.heads[i].range_mean, &s.x.heads[i].range_mean,
                            sizeof *one.heads - offsetof(pare_head_stats, range_mean));
    for (size_t i = 0; i < one.nlayers; i++)
        assert_memory_equal(&one.layers[i].x, &s.x.layers[i].x,
                            sizeof *one.layers - offsetof(pare_layer_stats, x));
    scene_close(&s);
}

/* Rows that see nothing are not counted. */
static void empty_rows_of_a_graph_are_left_out(void **state)
{
    (void)state;
    scene s;
    const size_t ptr[] = {0, 2, 2, 3};
    const uint32_t idx[] = {0, 1, 2};
    const pare_graph g = {3, ptr, idx};
    scene_open(&s, &(san_shape){.layers = 1, .heads = 1, .dim = 2, .scale = 1, .size = 1}, 1, 3, 4);
    s.m->pattern.kind = PARE_GRAPH;
    s.in.in[0].graph = &g;
    heldout(&s, 1);
    const pare_head_stats *const h = &s.x.heads[0];
    assert_near(h->range_mean, h->range_max / 2, 1e-15); /* row 2 sees one key: 0 */
    assert_true(isnan(h->rho) && isnan(h->tau) && !isnan(h->theta));
    assert_true(h->entropy > 0 && h->entropy < 1);
    scene_close(&s);
}

static void a_model_without_heads_has_nothing_to_show(void **state)
{
    (void)state;
    scene s;
    scene_open(&s, &(san_shape){.layers = 1, .heads = 1, .dim = 2, .scale = 1, .size = 1}, 1, 3, 4);
    s.m->blocks[0].attn.kind = PARE_ATTN_ZERO;
    heldout(&s, 1);
    assert_int_equal(s.x.nlayers, 0);
    assert_int_equal(s.x.nheads, 0);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tokens_by_hand),
        cmocka_unit_test(without_queries_every_row_is_uniform),
        cmocka_unit_test(what_is_seen_keeps_to_the_lemmas),
        cmocka_unit_test(the_printed_contraction_is_broken_by_weights_of_one_sign),
        cmocka_unit_test(one_head_of_a_rotary_model_gives_the_branch),
        cmocka_unit_test(the_trained_model_has_the_golden_figures),
        cmocka_unit_test(the_figures_do_not_depend_on_the_threads),
        cmocka_unit_test(empty_rows_of_a_graph_are_left_out),
        cmocka_unit_test(a_model_without_heads_has_nothing_to_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
