/* Tests src/cert/output_difference.c: the proven distance of two models on a set of inputs. */
#include <prove_each.h>
#include "cert/outputs.h"
#include <enclose_models.h>
#include <enclose_quad.h>
#include "cert/enclose.h"

static pare_inputs one(pare_input *in)
{
    return (pare_inputs){1, in};
}

static void a_model_is_within_its_own_radius_of_itself(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 60; s++) {
        pare_model *const m = some_model(s, 1);
        pare_input in = some_input(m, s, 1, 0);
        const pare_inputs set = one(&in);
        pare_gap gap;
        pare_err err = {0};
        assert_ok(pare_prove_gap(&gap, m, m, &set, NULL, &err), &err);
        assert_true(gap.measured == 0);
        assert_true(gap.proven.v < 1e-8 * gap.f64_radius); /* wide: only its radius is left */
        assert_true(gap.radius <= gap.proven.v);
        assert_true(gap.f64_radius < 1e-3 && gap.rounding.v > 0);
        pare_model_free(m);
    }
}

/* g = f with its last bias moved by a known amount: the distance is that amount. */
static void a_known_distance_is_found_and_enclosed(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, -4, 5, 6}, w[] = {0.25, -0.5, 1, 2};
    static const double b0[] = {0, 0}, b1[] = {0.125, -0.75};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 2;
    f->head.out.w = (pare_weight){PARE_F64, 2, 2, w};
    f->head.out.b = (pare_weight){PARE_F64, 1, 2, b0};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->head.out.b.data = b1;
    pare_input in = {.batch = 3, .tokens = 1, .width = 2, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    pare_err err = {0};
    assert_ok(pare_prove_gap(&gap, f, g, &set, NULL, &err), &err);
    assert_true(gap.measured == 0.75);
    assert_true(gap.scale == 17); /* 5 + 2 * 6 */
    assert_true(gap.proven.v > 0.75 && gap.proven.v <= 0.75 + 1e-13);
    assert_false(enclose_goes_wide(&gap, f, g, &set)); /* f64 was enough */
    assert_true(gap.radius > 0 && gap.radius < 1e-13 && gap.f64_radius == gap.radius);
    assert_true(gap.rounding.v > 0 && gap.rounding.v < 1e-4);
    pare_model_free(g);
    pare_model_free(f);
}

/* Two unrelated models with the same shapes: the exact distance is below the proven one. */
static void the_proven_distance_holds_in_113_bits(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 40; s++) {
        pare_model *const f = some_model(s, 1);
        pare_model *g = NULL;
        assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
        maker k = {.m = g, .r = pare_rng_at(s, 5), .sigma = 1};
        if (pare_has(&g->head.out.w))
            g->head.out.w = matrix(&k, g->head.out.w.rows, g->head.out.w.cols);
        g->head.norm = (pare_norm){.kind = PARE_NORM_MEAN};
        pare_input in = some_input(f, s, 1, 0);
        const pare_inputs set = one(&in);
        pare_gap gap;
        pare_err err = {0};
        assert_ok(pare_prove_gap(&gap, f, g, &set, NULL, &err), &err);
        pare_arena *const a = pare_arena_new();
        double apart = 0;
        for (size_t b = 0; b < in.batch; b++) {
            const qmat y = q_model(a, f, &in, b), z = q_model(a, g, &in, b);
            for (size_t i = 0; i < y.n * y.d; i++)
                apart = fmax(apart, (double)q_abs(y.v[i] - z.v[i]));
        }
        assert_le(apart, gap.proven.v);
        assert_le(gap.proven.v, (gap.measured + gap.radius) * (1 + 1e-12));
        assert_le(fabs(gap.measured - apart), gap.radius * (1 + 1e-9) + 1e-15 * apart);
        assert_le(gap.radius, gap.f64_radius);
        pare_arena_free(a);
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* 1200 sequences of one token go in three groups: all of them count, first and last. */
static void long_batches_are_cut_without_losing_a_sequence(void **state)
{
    (void)state;
    enum { N = 1200 };
    static double x[N];
    static const double w0[] = {1}, w1[] = {1.5};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 1;
    f->head.out.w = (pare_weight){PARE_F64, 1, 1, w0};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->head.out.w.data = w1;
    pare_input in = {.batch = N, .tokens = 1, .width = 1, .x = x};
    const pare_inputs set = one(&in);
    static const size_t where[] = {0, 511, 512, 700, N - 1};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        pare_gap gap;
        x[where[i]] = 8;
        assert_int_equal(pare_prove_gap(&gap, f, g, &set, NULL, NULL), PARE_OK);
        assert_true(gap.measured == 4 && gap.scale == 8);
        x[where[i]] = 0;
    }
    pare_model_free(g);
    pare_model_free(f);
}

static void models_with_other_outputs_are_refused(void **state)
{
    (void)state;
    static const double x[] = {1, 2}, w[] = {1, 2, 3, 4};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 2;
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->head.out.w = (pare_weight){PARE_F64, 1, 2, w};
    pare_input in = {.batch = 1, .tokens = 1, .width = 2, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    pare_err err = {0};
    assert_status(pare_prove_gap(&gap, f, g, &set, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "[1, 2] and [1, 1]");
    assert_true(isinf(gap.proven.v) && isinf(gap.rounding.v)); /* nothing is claimed */
    pare_output_bound all;
    assert_status(pare_outputs_compare(&all, NULL, f, g, &set, true, NULL, &err), PARE_ERR_INPUT,
                  &err);
    for (int k = 0; k < 2; k++) assert_true(all.auc[k].low == 1 && all.auc[k].high == 0);
    /* As many columns, not as many rows. */
    g->head.out.w.rows = 2;
    g->head.pool = PARE_POOL_MEAN;
    in = (pare_input){.batch = 1, .tokens = 2, .width = 2, .x = w};
    assert_status(pare_prove_gap(&gap, f, g, &set, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "[2, 2] and [1, 2]");
    pare_model_free(g);
    pare_model_free(f);
}

static void a_nan_on_the_way_claims_nothing(void **state)
{
    (void)state;
    static const double x[] = {1e200, 1}, w[] = {1e200, 0};
    pare_model *f = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 2;
    f->head.out.w = (pare_weight){PARE_F64, 1, 2, w};
    pare_input in = {.batch = 1, .tokens = 1, .width = 2, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    assert_int_equal(pare_prove_gap(&gap, f, f, &set, NULL, NULL), PARE_OK);
    assert_true(isinf(gap.proven.v) && isinf(gap.rounding.v) && isinf(gap.measured));
    pare_model_free(f);
}

/* ---- deep models ------------------------------------------------------------------------------
 */

/* Pre-norm blocks of heads and feed-forward, as trained models have them, with weights so large
 * that the f64 radius passes every difference. */
static pare_model *deep_model(uint64_t seed, size_t layers, bool gated)
{
    enum { D = 16, HEADS = 2, DK = 8, F = 24 };
    maker k = {.r = pare_rng_at(seed, 9), .sigma = 5};
    assert_int_equal(pare_model_new(&k.m, NULL), PARE_OK);
    pare_model *const m = k.m;
    m->pattern.kind = PARE_CAUSAL;
    m->embedding.width = D;
    m->embedding.pos.kind = gated ? PARE_POS_ROTARY : PARE_POS_SINUSOIDAL;
    m->embedding.pos.base = 10000;
    m->nblocks = layers;
    m->blocks = make(&k, layers, sizeof *m->blocks);
    const pare_norm norm = {
        .kind = gated ? PARE_NORM_RMS : PARE_NORM_LAYER, .eps = 1e-5, .divisor = D};
    for (size_t b = 0; b < layers; b++) {
        pare_attn *const at = &m->blocks[b].attn;
        *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = D, .dout = D, .nheads = HEADS};
        at->heads = make(&k, HEADS, sizeof *at->heads);
        for (size_t h = 0; h < HEADS; h++)
            at->heads[h] = (pare_head){.dk = DK,
                                       .dv = DK,
                                       .q = h * DK,
                                       .k = h * DK,
                                       .v = h * DK,
                                       .o = h * DK,
                                       .scale = 1 / sqrt(DK),
                                       .planes = gated ? DK / 2 : 0};
        at->wq = matrix(&k, D, D);
        at->wk = matrix(&k, D, D);
        at->wv = matrix(&k, D, D);
        at->wo = matrix(&k, D, D);
        if (gated) at->freqs = weight(&k, 1, DK / 2, 0, 1);
        pare_ffn *const f = &m->blocks[b].ffn;
        *f = (pare_ffn){.kind = gated ? PARE_FFN_GATED : PARE_FFN_MLP, .din = D, .dout = D};
        f->act = gated ? PARE_ACT_SILU : PARE_ACT_GELU_TANH;
        f->nlayers = gated ? 3 : 2;
        f->layers = make(&k, f->nlayers, sizeof *f->layers);
        for (size_t l = 0; l < f->nlayers; l++)
            f->layers[l].w = l + 1 < f->nlayers ? matrix(&k, F, D) : matrix(&k, D, F);
        at->in_norm = f->in_norm = norm;
        at->skip.kind = f->skip.kind = PARE_SKIP_IDENTITY;
    }
    m->head.norm = norm;
    assert_int_equal(pare_model_check(m, NULL), PARE_OK);
    return m;
}

/* One matrix of the last block times 1 + 1e-11: the true difference is far below the f64 radius,
 * and the proven one is next to it. */
static void deep_models_are_proven_to_within_a_tenth_of_what_is_measured(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 8; s++) {
        pare_model *const f = deep_model(s, 4 + s % 3, s % 2);
        pare_model *const g = deep_model(s, 4 + s % 3, s % 2);
        pare_weight *const w = &g->blocks[3].ffn.layers[0].w;
        double *const v = pare_alloc(g->arena, w->rows * w->cols, sizeof *v);
        for (size_t i = 0; i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i) * (1 + 1e-11);
        *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
        pare_input in = some_input(f, s, 1, 0);
        in.tokens = in.batch * in.tokens;
        in.batch = 1;
        const pare_inputs set = one(&in);
        pare_gap gap;
        pare_err err = {0};
        assert_ok(pare_prove_gap(&gap, f, g, &set, NULL, &err), &err);
        print_message("measured %g, proven %g, radius in f64 %g\n", gap.measured, gap.proven.v,
                      gap.f64_radius);
        assert_true(gap.measured > 0);
        assert_true(gap.f64_radius > 10 * gap.measured); /* f64 alone would say nothing */
        assert_le(gap.proven.v, 1.1 * gap.measured);
        assert_le(0.9 * gap.measured, gap.proven.v);
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* The rule looks at the radius and at the shapes, and at nothing else. */
static void proofs_go_wide_where_f64_is_not_enough_and_the_work_is_bounded(void **state)
{
    (void)state;
    static const double w[1] = {1};
    pare_model *m = NULL;
    assert_int_equal(pare_model_new(&m, NULL), PARE_OK);
    m->embedding.width = 1000;
    m->head.out.w = (pare_weight){PARE_F64, 1000, 1000, w}; /* never read: shapes count */
    pare_input in = {.batch = 100, .tokens = 999, .width = 1000};
    pare_inputs set = one(&in);
    pare_gap gap = {.proven = pare_ub_exact(1.001), .measured = 1};
    assert_true(enclose_goes_wide(&gap, m, m, &set)); /* 2 x 9.99e10 */
    in.batch = 101;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    in.batch = 100;
    gap.proven = pare_ub_exact(1.00002); /* writers add more than that */
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    gap.proven = pare_ub_exact(1.00004);
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    gap.proven = pare_ub_inf();
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    gap.proven = pare_ub_exact(0);
    gap.measured = 0;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    gap.proven = pare_ub_exact(1e-9);
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    pare_block block = {.attn = {.kind = PARE_ATTN_EXACT, .nheads = 80, .din = 1000, .dout = 1000}};
    pare_head heads[80] = {{0}};
    block.attn.heads = heads;
    m->head.out.w = (pare_weight){0};
    m->blocks = &block;
    m->nblocks = 1;
    in.batch = 5;
    assert_false(enclose_goes_wide(&gap, m, m, &set)); /* 80 heads x 998,001 pairs */
    in.tokens = 500;
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    pare_model_free(m);
}

/* Shapes whose work is 2e11, the most that is done, and one unit more. */
static void the_work_that_is_too_much_is_known_to_the_unit(void **state)
{
    (void)state;
    static const double w[1] = {1};
    pare_model *m = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&m, NULL), PARE_OK);
    m->embedding.width = 1000;
    m->head.out.w = (pare_weight){PARE_F64, 1000, 1000, w}; /* never read: shapes count */
    assert_int_equal(pare_model_clone(&g, m, NULL), PARE_OK);
    pare_input in[2] = {{.batch = 100, .tokens = 1000, .width = 1000}, {.batch = 1, .tokens = 1}};
    pare_inputs set = one(in), two = {2, in};
    const pare_gap gap = {.proven = pare_ub_exact(2), .measured = 1};
    assert_true(enclose_goes_wide(&gap, m, m, &set)); /* 1000 x 1000 x 1000 x 100, twice */
    assert_false(enclose_goes_wide(&gap, m, m, &two));
    g->head.out.w.rows = 1001;
    assert_false(enclose_goes_wide(&gap, m, g, &set));
    assert_false(enclose_goes_wide(&gap, g, m, &set));
    g->head.out.w.rows = 999;
    assert_true(enclose_goes_wide(&gap, m, g, &set));
    pare_model_free(g);
    /* 256 for the weight of a key in a head: 512 x 6250^2 x 10 = 2e11 for both models. */
    pare_head heads[2] = {{0}};
    pare_block blocks[2] = {{.attn = {.kind = PARE_ATTN_EXACT, .nheads = 1, .heads = heads}}};
    m->head.out.w = (pare_weight){0};
    m->blocks = blocks;
    m->nblocks = 2;
    blocks[1].attn.nheads = 1; /* of a kind without attention: none of its heads runs */
    in[0] = (pare_input){.batch = 10, .tokens = 6250, .width = 1000};
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    in[0].tokens = 6251;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    in[0] = (pare_input){.batch = 40, .tokens = 3125, .width = 1000};
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    in[0].batch = 41;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    blocks[1].attn = blocks[0].attn;
    in[0].batch = 20;
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    in[0].batch = 21;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    m->nblocks = 1;
    blocks[0].attn.nheads = 2;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    in[0].batch = 20;
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    /* One token sees itself. */
    in[0] = (pare_input){.batch = 390625000, .tokens = 1, .width = 1000};
    blocks[0].attn.nheads = 1;
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    in[0].batch++;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    /* Causal: token i sees i + 1 keys, 4417 x 4418 / 2 = 9757153 pairs; 40 batches. */
    m->pattern.kind = PARE_CAUSAL;
    in[0] = (pare_input){.batch = 40, .tokens = 4417, .width = 1000};
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    in[0].tokens = 4419; /* 9766 - 1 thousand: 9765990 pairs, 490 above a quarter of the most */
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    /* Graphs: the edges, itself and three of an expander for each of two nodes. */
    size_t ptr[] = {0, 0, 390625000 - 8};
    const pare_graph graph = {2, ptr, NULL};
    m->pattern = (pare_pattern){.kind = PARE_GRAPH, .expander_degree = 3};
    in[0] = (pare_input){.batch = 1, .tokens = 2, .width = 1000, .graph = &graph};
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    ptr[2]++;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    /* Products of queries and keys, of weights and values: dk + dv more for each pair. */
    heads[0] = (pare_head){.dk = 100, .dv = 44};
    ptr[2] = 250000000 - 8;
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    ptr[2]++;
    assert_false(enclose_goes_wide(&gap, m, m, &set));
    in[0].graph = NULL;
    assert_true(enclose_goes_wide(&gap, m, m, &set));
    m->blocks = NULL;
    m->nblocks = 0;
    pare_model_free(m);
}

/* ---- groups of sequences ----------------------------------------------------------------------
 */

/* y = 1e8 (x0 - x1) + s x2, with s = 1 in f and 1.5 in g: the distance is |x2| / 2, and the radius
 * in f64 so large that all of it is proven again in double-double. */
typedef struct cancelling {
    pare_model *f, *g;
    double wf[3], wg[3];
} cancelling;

static void cancelling_open(cancelling *c)
{
    memcpy(c->wf, (double[]){1e8, -1e8, 1}, sizeof c->wf);
    memcpy(c->wg, (double[]){1e8, -1e8, 1.5}, sizeof c->wg);
    assert_int_equal(pare_model_new(&c->f, NULL), PARE_OK);
    c->f->embedding.width = 3;
    c->f->head.out.w = (pare_weight){PARE_F64, 1, 3, c->wf};
    assert_int_equal(pare_model_clone(&c->g, c->f, NULL), PARE_OK);
    c->g->head.out.w.data = c->wg;
}

static void cancelling_close(cancelling *c)
{
    pare_model_free(c->g);
    pare_model_free(c->f);
}

/* Sequences of 3 tokens, 171 to a group and 170 in the last one. Each has its own distance, at a
 * token of its own; what is behind the last one is not looked at. */
static void each_sequence_has_the_bound_of_its_own_tokens(void **state)
{
    (void)state;
    enum { B = 341, T = 3, SECOND = 2, BEHIND = 400 };
    static double x[(B + BEHIND) * T * 3], y[(SECOND + BEHIND) * T * 3], each[B + SECOND + BEHIND];
    cancelling c;
    cancelling_open(&c);
    for (size_t i = 0; i < (B + BEHIND) * T; i++) x[3 * i + 2] = i < B * T ? 0 : 1e9;
    for (size_t i = 0; i < (SECOND + BEHIND) * T; i++) y[3 * i + 2] = i < SECOND * T ? 0 : 1e9;
    for (size_t i = 0; i < B * T; i++) x[3 * i] = x[3 * i + 1] = 1;
    for (size_t i = 0; i < SECOND * T; i++) y[3 * i] = y[3 * i + 1] = 1;
    for (size_t b = 0; b < B; b++) x[3 * (b * T + b % T) + 2] = 1e-6 * (double)(b + 1);
    for (size_t b = 0; b < SECOND; b++) y[3 * (b * T + b) + 2] = 1e-6 * (double)(B + b + 1);
    pare_input in[2] = {{.batch = B, .tokens = T, .width = 3, .x = x},
                        {.batch = SECOND, .tokens = T, .width = 3, .x = y}};
    const pare_inputs set = {2, in};
    pare_err err = {0};
    assert_ok(prove_each(each, c.f, c.g, &set, &err), &err);
    for (size_t b = 0; b < B + SECOND; b++) {
        const double apart = 0.5e-6 * (double)(b + 1);
        assert_le(apart, each[b] * (1 + 1e-12));
        assert_le(each[b], apart * (1 + 1e-9));
    }
    for (size_t b = 0; b < BEHIND; b++) assert_true(each[B + SECOND + b] == 0);
    pare_gap gap;
    assert_ok(pare_prove_gap(&gap, c.f, c.g, &set, NULL, &err), &err);
    assert_true(gap.f64_radius > 1e-8 && gap.radius < 1e-18); /* it went wide */
    assert_near(gap.proven.v, 0.5e-6 * (B + SECOND), 1e-15);
    pare_output_bound all;
    assert_ok(pare_outputs_compare(&all, NULL, c.f, c.g, &set, false, NULL, &err), &err);
    assert_true(all.rows == (B + SECOND) * T); /* each of them once */
    cancelling_close(&c);
}

/* The better of the two proofs, sequence by sequence: beyond 2^400 nothing is claimed in
 * double-double, and f64 alone speaks. */
static void a_sequence_keeps_the_bound_of_f64_where_that_is_better(void **state)
{
    (void)state;
    double x[] = {1, 1, 1e-6, 1e150, 1e150, 1e145}, each[2];
    cancelling c;
    cancelling_open(&c);
    pare_input in = {.batch = 2, .tokens = 1, .width = 3, .x = x};
    const pare_inputs set = one(&in);
    pare_err err = {0};
    assert_ok(prove_each(each, c.f, c.g, &set, &err), &err);
    assert_near(each[0], 0.5e-6, 1e-15);
    assert_le(0.5e145, each[1]);
    assert_le(each[1], 0.6e145);
    cancelling_close(&c);
}

/* Token numbers are cut like vectors: the distance is at one token of one sequence. */
static void groups_of_token_numbers_are_cut_where_sequences_end(void **state)
{
    (void)state;
    enum { B = 300, T = 2 };
    static int64_t ids[B * T];
    static const double rows_f[] = {0, 1, 8}, rows_g[] = {0, 1, 9};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.ids = true;
    f->embedding.vocab = 3;
    f->embedding.width = 1;
    f->embedding.table = (pare_weight){PARE_F64, 3, 1, rows_f};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->embedding.table.data = rows_g;
    pare_input in = {.batch = B, .tokens = T, .ids = ids};
    const pare_inputs set = one(&in);
    pare_err err = {0};
    static const size_t where[] = {0, 255, 256, B - 1};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        static double each[B];
        ids[where[i] * T + 1] = 2;
        assert_ok(prove_each(each, f, g, &set, &err), &err);
        for (size_t b = 0; b < B; b++) assert_near(each[b], b == where[i], 1e-12);
        ids[where[i] * T + 1] = 0;
    }
    pare_model_free(g);
    pare_model_free(f);
}

/* A sequence longer than a group is one. */
static void long_sequences_are_enclosed_one_by_one(void **state)
{
    (void)state;
    static const size_t lengths[] = {511, 512, 513, 1025};
    static double x[3 * 1025];
    static const double w0[] = {1}, w1[] = {1.5};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 1;
    f->head.out.w = (pare_weight){PARE_F64, 1, 1, w0};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->head.out.w.data = w1;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const size_t t = lengths[i];
        double each[3];
        pare_input in = {.batch = 3, .tokens = t, .width = 1, .x = x};
        const pare_inputs set = one(&in);
        for (size_t b = 0; b < 3; b++) x[b * t + b * (t - 1) / 2] = 2 * (double)(b + 1);
        assert_int_equal(prove_each(each, f, g, &set, NULL), PARE_OK);
        for (size_t b = 0; b < 3; b++) assert_near(each[b], (double)(b + 1), 1e-12);
        memset(x, 0, sizeof x);
    }
    pare_model_free(g);
    pare_model_free(f);
}

static void inputs_without_tokens_are_refused(void **state)
{
    (void)state;
    static const double x[3] = {1, 2, 3};
    cancelling c;
    cancelling_open(&c);
    for (size_t k = 0; k < 2; k++) {
        pare_input in = {.batch = k, .tokens = 1 - k, .width = 3, .x = x};
        const pare_inputs set = one(&in);
        pare_gap gap;
        pare_err err = {0};
        assert_status(pare_prove_gap(&gap, c.f, c.g, &set, NULL, &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, "no tokens");
        assert_true(isinf(gap.proven.v) && isinf(gap.radius) && isinf(gap.f64_radius));
        assert_true(isinf(gap.engine) && isinf(gap.rounding.v));
    }
    cancelling_close(&c);
}

typedef struct heard {
    size_t calls, wide;
    uint64_t done, total;
} heard;

static void hear(void *self, const char *what, uint64_t done, uint64_t total)
{
    heard *const h = self;
    h->calls++;
    h->wide += strstr(what, "double-double") != NULL;
    assert_true(done >= h->done && done <= total);
    h->done = done;
    h->total = total;
}

/* Norms, both passes over all inputs, in f64 and again: one range. */
static void a_proof_reports_one_range_that_never_goes_back(void **state)
{
    (void)state;
    double x[] = {1, 1, 1e-6, 1, 1, 1e-6, 1, 1, 1e-6};
    cancelling c;
    cancelling_open(&c);
    pare_input in[3];
    for (size_t i = 0; i < 3; i++)
        in[i] = (pare_input){.batch = 1, .tokens = i + 1, .width = 3, .x = x};
    const pare_inputs set = {3, in};
    heard h = {0};
    const pare_exec exec = {.threads = 1, .progress = hear, .self = &h};
    pare_gap gap;
    assert_int_equal(pare_prove_gap(&gap, c.f, c.g, &set, &exec, NULL), PARE_OK);
    assert_true(h.calls >= 12 && h.wide >= 6 && h.done >= h.total - h.total / 4);
    cancelling_close(&c);
}

/* ---- labels -----------------------------------------------------------------------------------
 */

/* Four rows of two outputs, y = (0, w x): f orders them as they are labeled, g the other way. */
static void areas_are_of_the_only_sequence_there_is(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4}, wf[] = {0, 1}, wg[] = {0, -1};
    int64_t target[] = {0, 0, 1, 1};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 1;
    f->head.out.w = (pare_weight){PARE_F64, 2, 1, wf};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->head.out.w.data = wg;
    pare_input in[2] = {{.batch = 1, .tokens = 4, .width = 1, .x = x, .target = target},
                        {.batch = 1, .tokens = 4, .width = 1, .x = x, .target = target}};
    pare_inputs set = one(in);
    const pare_inputs two = {2, in};
    pare_output_bound o;
    pare_err err = {0};
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &set, true, NULL, &err), &err);
    assert_true(o.auc[0].low > 0.999 && o.auc[0].high == 1);
    assert_true(o.auc[1].low == 0 && o.auc[1].high < 0.001);
    assert_true(o.rows == 4 && o.certain == 0);
    wg[1] = 1.5;
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &set, true, NULL, &err), &err);
    assert_true(o.auc[1].low > 0.999 && o.rows == 4 && o.certain == 4);
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &two, true, NULL, &err), &err);
    for (int k = 0; k < 2; k++) assert_true(o.auc[k].low == 1 && o.auc[k].high == 0);
    assert_true(o.rows == 8);
    in[0].batch = 2;
    in[0].tokens = 2;
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &set, true, NULL, &err), &err);
    assert_true(o.auc[0].low > o.auc[0].high && o.auc[1].low > o.auc[1].high && o.rows == 4);
    in[0] = in[1];
    in[0].target = NULL;
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &set, true, NULL, &err), &err);
    assert_true(o.auc[0].low > o.auc[0].high && o.auc[1].low > o.auc[1].high);
    pare_model_free(g);
    pare_model_free(f);
}

/* Rows that f64 cannot decide are decided in double-double where labels are asked for: outputs 1e8
 * (x0 - x1) +- 1e-9, and a distance so large that it does not ask for more itself. */
static void labels_that_f64_cannot_decide_are_looked_at_again(void **state)
{
    (void)state;
    static const double w[] = {1e8, -1e8, 0, 1e8, -1e8, 1e-9, 0, 0, -1};
    static const double v[] = {1e8, -1e8, 0, 1e8, -1e8, 1e-9, 0, 0, -2};
    double x[] = {1, 1, 1};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 3;
    f->head.out.w = (pare_weight){PARE_F64, 3, 3, w};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->head.out.w.data = v;
    pare_input in = {.batch = 1, .tokens = 1, .width = 3, .x = x};
    const pare_inputs set = one(&in);
    pare_output_bound o;
    pare_err err = {0};
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &set, false, NULL, &err), &err);
    assert_true(o.rows == 1 && o.certain == 0 && o.gap.radius == o.gap.f64_radius);
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &set, true, NULL, &err), &err);
    assert_true(o.rows == 1 && o.certain == 1 && o.gap.radius < o.gap.f64_radius);
    /* Nothing is left to decide: nothing is done. */
    static const double sure_f[] = {1e8, -1e8, 0, 1e8, -1e8, 1, 0, 0, -1},
                        sure_g[] = {1e8, -1e8, 0, 1e8, -1e8, 1, 0, 0, -2};
    f->head.out.w.data = sure_f;
    g->head.out.w.data = sure_g;
    assert_ok(pare_outputs_compare(&o, NULL, f, g, &set, true, NULL, &err), &err);
    assert_true(o.certain == 1 && o.gap.radius == o.gap.f64_radius);
    pare_model_free(g);
    pare_model_free(f);
}

/* ---- the f32 engine ----------------------------------------------------------------------------
 */

/* How far the engine really was, by 113 bits: never more than what is said, which is at most four
 * times it (a certificate is compared by that factor) where f32 rounds at all. */
static void the_distance_of_the_engine_is_not_below_the_true_one(void **state)
{
    (void)state;
    size_t close = 0;
    for (uint64_t s = 0; s < 40; s++) {
        pare_model *const m = some_model(s, 1);
        pare_input in = some_input(m, s, 1, 0);
        const pare_inputs set = one(&in);
        pare_gap gap;
        pare_err err = {0};
        pare_arena *const a = pare_arena_new();
        const size_t n = pare_output_rows(m, &in) * pare_model_outputs(m);
        float *const y = pare_alloc(a, n, sizeof *y);
        assert_non_null(y);
        assert_ok(pare_prove_gap(&gap, m, m, &set, NULL, &err), &err);
        assert_ok(pare_forward_f32(y, m, &in, NULL, NULL, &err), &err);
        __float128 off = 0;
        for (size_t b = 0; b < in.batch; b++) {
            const qmat z = q_model(a, m, &in, b);
            for (size_t i = 0; i < z.n * z.d; i++) {
                const __float128 d = q_abs((__float128)y[b * z.n * z.d + i] - z.v[i]);
                if (d > off) off = d;
            }
        }
        assert_true(off <= (__float128)gap.engine);
        assert_le(gap.engine, 4 * (double)off + 1e-12 * gap.scale);
        assert_le(gap.engine, gap.rounding.v + 2 * gap.f64_radius);
        close += gap.engine <= 1.01 * (double)off;
        pare_arena_free(a);
        pare_model_free(m);
    }
    assert_true(close > 20); /* mostly it is next to it */
}

/* As many outputs as there are: 600 of each of 512 tokens. */
static void the_engine_has_all_outputs(void **state)
{
    (void)state;
    enum { TOKENS = 512, OUTPUTS = 600 };
    static double x[TOKENS], w[OUTPUTS];
    for (size_t i = 0; i < TOKENS; i++) x[i] = 1;
    for (size_t i = 0; i < OUTPUTS; i++) w[i] = 1;
    w[OUTPUTS - 1] = 1 + 0x1p-30; /* f32 takes it for 1 */
    pare_model *f = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 1;
    f->head.out.w = (pare_weight){PARE_F64, OUTPUTS, 1, w};
    pare_input in = {.batch = 1, .tokens = TOKENS, .width = 1, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    pare_err err = {0};
    assert_ok(pare_prove_gap(&gap, f, f, &set, NULL, &err), &err);
    assert_near(gap.engine, 0x1p-30, 1e-15);
    pare_model_free(f);
}

/* The distance is one of g's outputs: those of f play no role. */
static void an_engine_that_overflows_is_infinitely_far(void **state)
{
    (void)state;
    static const double x[] = {1e30}, small[] = {1}, large[] = {1e30};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->embedding.width = 1;
    f->head.out.w = (pare_weight){PARE_F64, 1, 1, small};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->head.out.w.data = large;
    pare_input in = {.batch = 1, .tokens = 1, .width = 1, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    pare_err err = {0};
    assert_ok(pare_prove_gap(&gap, f, g, &set, NULL, &err), &err);
    assert_true(isinf(gap.engine) && isfinite(gap.proven.v) && isfinite(gap.measured));
    assert_ok(pare_prove_gap(&gap, g, f, &set, NULL, &err), &err);
    assert_true(isfinite(gap.engine) && gap.engine < 1e24);
    pare_model_free(g);
    /* inf - inf is no number, and not a distance of 0. */
    static const double two[] = {1e30, 1e30}, apart[] = {1e30, -1e30};
    f->embedding.width = 2;
    f->head.out.w = (pare_weight){PARE_F64, 1, 2, apart};
    in = (pare_input){.batch = 1, .tokens = 1, .width = 2, .x = two};
    assert_ok(pare_prove_gap(&gap, f, f, &set, NULL, &err), &err);
    assert_true(isinf(gap.engine));
    pare_model_free(f);
}

/* One digit, not below the figure: 0.9e-7 is written as 9e-8, 0.91e-7 as 1e-7. */
static void the_distance_is_written_with_one_digit_rounded_up(void **state)
{
    (void)state;
    static const double cases[][2] = {
        {9e-8, 9e-8},       {9.1e-8, 1e-7},       {1e-300, 1e-300}, {0, 0},
        {123, 200},         {INFINITY, INFINITY}, {1e22, 1e22},     {1.0000001, 2},
        {0.3, 0.3},         {5e-324, 5e-324},     {9.6, 10},        {9.4, 10},
        {1.5e-323, 2e-323}, {0.7, 0.7},           {6.4999, 7},      {1.7e308, INFINITY}};
    pare_arena *const a = pare_arena_new();
    pare_err err;
    assert_non_null(a);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pare_cert c = {.domain = "here"};
        const pare_gap gap = {.proven = {2},
                              .measured = 1,
                              .radius = 0.25,
                              .f64_radius = 0.5,
                              .scale = 3,
                              .rounding = {i % 2 ? 2.9 : 3},
                              .engine = cases[i][0]};
        assert_ok(pare_cert_take_gap(&c, a, &gap, &err), &err);
        assert_true(c.proven == 2 && c.measured == 1);
        assert_true(c.measured_radius == 0.25 && c.f64_radius == 0.5);
        assert_true(pare_cert_find(&c, PARE_ENGINE_DISTANCE)->value == cases[i][1]);
        /* A rounding as large as the outputs tells nobody anything. */
        const pare_claim *const rounding = pare_cert_find(&c, PARE_ENGINE_ROUNDING);
        assert_true((rounding != NULL) == (i % 2 == 1));
        if (rounding) assert_true(rounding->value == 2.9);
    }
    pare_arena_free(a);
}

/* Both hold the exact difference: the better figure of each is taken, and figures further apart
 * than both radii are a fault in pare, not a proof. */
static void enclosures_that_do_not_meet_prove_nothing(void **state)
{
    (void)state;
    pare_err err = {0};
    const pare_output_bound narrow = {.gap = {.proven = {1.5},
                                              .measured = 1,
                                              .radius = 0.25,
                                              .f64_radius = 0.25,
                                              .rounding = {3},
                                              .engine = 0.5},
                                      .rows = 4,
                                      .certain = 2,
                                      .auc = {{0.5, 0.9}, {0.4, 0.8}}};
    pare_output_bound wide = narrow, out = narrow;
    wide.gap.proven.v = 1.2;
    wide.gap.measured = 1.125;
    wide.gap.radius = 0.0625;
    wide.gap.rounding.v = 4;
    wide.gap.engine = 0.25;
    wide.certain = 3;
    wide.auc[0] = (pare_auc_bound){0.6, 0.95};
    assert_ok(enclose_merge(&out, &wide, &err), &err);
    assert_true(out.gap.proven.v == 1.2 && out.gap.measured == 1.125 && out.gap.radius == 0.0625);
    assert_true(out.gap.f64_radius == 0.25 && out.gap.rounding.v == 3 && out.gap.engine == 0.25);
    assert_true(out.certain == 3 && out.auc[0].low == 0.6 && out.auc[0].high == 0.9);
    assert_true(out.auc[1].low == 0.4 && out.auc[1].high == 0.8);
    /* The other way round: what the first has better stays. */
    out = wide;
    pare_output_bound second = narrow;
    second.gap.rounding.v = 5;
    second.auc[0] = (pare_auc_bound){0.5, 0.97};
    second.auc[1] = (pare_auc_bound){0.45, 0.7};
    assert_ok(enclose_merge(&out, &second, &err), &err);
    assert_true(out.gap.proven.v == 1.2 && out.gap.measured == 1.125 && out.gap.radius == 0.0625);
    assert_true(out.gap.rounding.v == 4 && out.gap.engine == 0.25 && out.certain == 3);
    assert_true(out.auc[0].low == 0.6 && out.auc[0].high == 0.95);
    assert_true(out.auc[1].low == 0.45 && out.auc[1].high == 0.7);
    assert_true(out.rows == 4);
    /* Of equal radii the first has the say. */
    out = second = narrow;
    second.gap.measured = 1.25;
    second.gap.rounding.v = 2;
    assert_ok(enclose_merge(&out, &second, &err), &err);
    assert_true(out.gap.measured == 1 && out.gap.rounding.v == 2);
    /* Both differences were rounded: without radii they may be a few units apart, not more. */
    out = second = narrow;
    out.gap.radius = second.gap.radius = 0;
    out.gap.measured = 4;
    second.gap.measured = 4 + 0x1p-48;
    assert_ok(enclose_merge(&out, &second, &err), &err);
    second.gap.measured = 4 + 0x1p-47;
    assert_status(enclose_merge(&out, &second, &err), PARE_ERR_VERIFY, &err);
    out.gap.measured = second.gap.measured = 0;
    assert_ok(enclose_merge(&out, &second, &err), &err);
    /* Two areas, and nothing behind them. */
    struct {
        pare_output_bound o;
        pare_auc_bound behind;
    } first = {narrow, {0.25, 0.75}}, other = {narrow, {0.5, 0.5}};
    assert_ok(enclose_merge(&first.o, &other.o, &err), &err);
    assert_true(first.behind.low == 0.25 && first.behind.high == 0.75);
    /* Nothing is known of nan. */
    out = narrow;
    second = narrow;
    out.gap.measured = out.gap.radius = second.gap.measured = INFINITY;
    assert_ok(enclose_merge(&out, &second, &err), &err);
    assert_true(out.gap.proven.v == 1.5);
    out = narrow;
    wide.gap.measured = 0.6875; /* just within both radii */
    assert_ok(enclose_merge(&out, &wide, &err), &err);
    out = narrow;
    wide.gap.measured = 0.687;
    assert_status(enclose_merge(&out, &wide, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "0.687 (double-double)");
    out = narrow;
    wide.gap.measured = 1.3125;
    assert_ok(enclose_merge(&out, &wide, &err), &err);
    out = narrow;
    wide.gap.measured = 1.313;
    assert_status(enclose_merge(&out, &wide, &err), PARE_ERR_VERIFY, &err);
    out = narrow;
    wide.gap.measured = 5e-7; /* A wrong logarithm claimed this beside 5.55. */
    wide.gap.radius = 1e-20;
    out.gap.measured = 5.55;
    assert_status(enclose_merge(&out, &wide, &err), PARE_ERR_VERIFY, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_within_its_own_radius_of_itself),
        cmocka_unit_test(a_known_distance_is_found_and_enclosed),
        cmocka_unit_test(the_proven_distance_holds_in_113_bits),
        cmocka_unit_test(long_batches_are_cut_without_losing_a_sequence),
        cmocka_unit_test(models_with_other_outputs_are_refused),
        cmocka_unit_test(deep_models_are_proven_to_within_a_tenth_of_what_is_measured),
        cmocka_unit_test(proofs_go_wide_where_f64_is_not_enough_and_the_work_is_bounded),
        cmocka_unit_test(the_work_that_is_too_much_is_known_to_the_unit),
        cmocka_unit_test(each_sequence_has_the_bound_of_its_own_tokens),
        cmocka_unit_test(a_sequence_keeps_the_bound_of_f64_where_that_is_better),
        cmocka_unit_test(groups_of_token_numbers_are_cut_where_sequences_end),
        cmocka_unit_test(long_sequences_are_enclosed_one_by_one),
        cmocka_unit_test(inputs_without_tokens_are_refused),
        cmocka_unit_test(a_proof_reports_one_range_that_never_goes_back),
        cmocka_unit_test(the_engine_has_all_outputs),
        cmocka_unit_test(areas_are_of_the_only_sequence_there_is),
        cmocka_unit_test(labels_that_f64_cannot_decide_are_looked_at_again),
        cmocka_unit_test(a_nan_on_the_way_claims_nothing),
        cmocka_unit_test(the_distance_of_the_engine_is_not_below_the_true_one),
        cmocka_unit_test(an_engine_that_overflows_is_infinitely_far),
        cmocka_unit_test(the_distance_is_written_with_one_digit_rounded_up),
        cmocka_unit_test(enclosures_that_do_not_meet_prove_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
