/* Tests the theorems about one ticket layer (softmax_tv.c, bound_free.c, bound_rows.c, bound_paper.c,
 * relu_pair.c): exact cases, order of the bounds, what must not matter. */
#include "ticket/ticket_bounds.h"
#include "ticket_pairs.h"

/* ---- Lemma A --------------------------------------------------------------------------------- */

static double variation(const double *l, const double *e, size_t n)
{
    double top = -INFINITY, moved = -INFINITY, a = 0, b = 0, tv = 0;
    for (size_t k = 0; k < n; k++) top = fmax(top, l[k]), moved = fmax(moved, l[k] + e[k]);
    for (size_t k = 0; k < n; k++) a += exp(l[k] - top), b += exp(l[k] + e[k] - moved);
    for (size_t k = 0; k < n; k++)
        tv += fabs(exp(l[k] - top) / a - exp(l[k] + e[k] - moved) / b) / 2;
    return tv;
}

static double range_of(const double *e, size_t n)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t k = 0; k < n; k++) low = fmin(low, e[k]), high = fmax(high, e[k]);
    return high - low;
}

static void softmax_never_moves_by_more_than_lemma_a(void **state)
{
    pare_rng r = pare_rng_at(4, 1);
    double tightest = 0;
    (void)state;
    for (int i = 0; i < 100000; i++) {
        double l[12], e[12];
        const size_t n = 1 + pare_rng_below(&r, 12);
        const double wide = exp(3 * pare_rng_normal(&r)), size = exp(2 * pare_rng_normal(&r));
        for (size_t k = 0; k < n; k++) {
            l[k] = wide * pare_rng_normal(&r);
            e[k] = size * (pare_rng_below(&r, 2) ? pare_rng_normal(&r) : (double)(k % 2));
        }
        const double bound = pare_softmax_moves(pare_ub_of(range_of(e, n))).v;
        const double tv = variation(l, e, n);
        assert_le(tv, bound * (1 + 1e-12) + 1e-15);
        tightest = fmax(tightest, bound > 1e-6 ? tv / bound : 0);
    }
    assert_true(tightest > .98);
}

static void lemma_a_is_attained(void **state)
{
    (void)state;
    for (double r = 1e-3; r < 20; r *= 2) {
        const double a = 1 / (1 + exp(r / 2)), l[2] = {log(a), log1p(-a)}, e[2] = {r, 0};
        assert_near(variation(l, e, 2), pare_softmax_moves(pare_ub_exact(r)).v, 1e-9);
    }
}

/* ---- one layer ------------------------------------------------------------------------------- */

typedef struct layer {
    pare_model *f, *g;
    pare_graph graph;
    pare_arena *a;
    pare_mat x;
    double alpha;
} layer;

static layer layer_of(const pair_shape *s, size_t tokens, double alpha, double size, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 31);
    layer l = {.a = pare_arena_new(), .alpha = alpha};
    assert_non_null(l.a);
    l.f = pair_target(&r, s);
    l.g = pair_ticket(l.f, seed, size, 1, false);
    l.graph = pair_graph(l.a, &r, tokens);
    l.x = pare_mat_new(l.a, tokens, s->d1);
    assert_non_null(l.x.v);
    pair_rows(l.x.v, &r, tokens, s->d1, alpha);
    return l;
}

static pare_input layer_input(const layer *l)
{
    return (pare_input){.batch = 1,
                        .tokens = l->x.rows,
                        .width = l->x.cols,
                        .x = l->x.v,
                        .graph = l->f->pattern.kind == PARE_GRAPH ? &l->graph : NULL};
}

static void layer_close(layer *l)
{
    pare_model_free(l->g);
    pare_model_free(l->f);
    pare_arena_free(l->a);
}

static void rows_bound(pare_ub *out, const layer *l)
{
    pare_err err = {0};
    const pare_graph *const g = l->f->pattern.kind == PARE_GRAPH ? &l->graph : NULL;
    assert_ok(pare_ticket_rows_bound(out, l->f, l->g, 0, &l->x, g, NULL, &err), &err);
}

static double vo_norm(const layer *l)
{
    pare_err err = {0};
    pare_ticket_layer b;
    assert_ok(pare_ticket_layer_bound(&b, l->f, l->g, 0, l->alpha, NULL, &err), &err);
    return b.largest_vo;
}

typedef struct tightness {
    double measured, c, b, paper;
    size_t n;
} tightness;

/* measured <= C <= B, and B <= the printed form where that form's own conditions hold. */
static void order_of_bounds(tightness *sum, const pair_shape *s, size_t tokens, uint64_t seed)
{
    pare_err err = {0};
    layer l = layer_of(s, tokens, sqrt((double)s->d1), .01, seed);
    pare_ticket_layer b;
    pare_ub *const c = calloc(tokens + 1, sizeof *c);
    double *const far = calloc(tokens + 1, sizeof *far), scale;
    assert_true(c && far);
    const pare_input in = layer_input(&l);
    (void)pair_apart(l.f, l.g, &in, far, &scale);
    rows_bound(c, &l);
    assert_ok(pare_ticket_layer_bound(&b, l.f, l.g, 0, l.alpha, NULL, &err), &err);
    double most_c = 0, most = 0;
    for (size_t i = 0; i < tokens; i++) {
        assert_le(far[i], c[i].v + 1e-11 * scale);
        assert_le(c[i].v, b.free.v * (1 + 1e-9) + 1e-12);
        most_c = fmax(most_c, c[i].v);
        most = fmax(most, far[i]);
    }
    if (b.largest_vo <= 1 && !s->biases) assert_le(b.free.v, b.paper_est * (1 + 1e-9));
    *sum = (tightness){sum->measured + most, sum->c + most_c, sum->b + b.free.v,
                       sum->paper + b.paper_est, sum->n + 1};
    free(far);
    free(c);
    layer_close(&l);
}

static void measured_is_below_c_below_b_below_the_printed_form(void **state)
{
    static const size_t widths[] = {2, 4, 8, 16}, tokens[] = {1, 2, 24, 257};
    (void)state;
    for (size_t w = 0; w < 4; w++) {
        tightness t = {0};
        for (uint64_t seed = 0; seed < 16; seed++) {
            const pair_shape s = {.d1 = widths[w],
                                  .d2 = widths[w],
                                  .heads = 1 + seed % 4,
                                  .dk = widths[w],
                                  .blocks = 1,
                                  .size = .6,
                                  .biases = seed % 5 == 4,
                                  .pattern = {.kind = (pare_pattern_kind)(seed % 4), .window = 5}};
            order_of_bounds(&t, &s, seed == 7 ? tokens[3] : tokens[seed / 4 % 3], seed);
        }
        const double n = (double)t.n;
        print_message("d = %zu: measured %.3g, C %.3g, B %.3g, printed %.3g (means)\n", widths[w],
                      t.measured / n, t.c / n, t.b / n, t.paper / n);
    }
}

/* Values that point in one direction and a form whose error does too: B is nearly met. */
static void theorem_b_is_nearly_met(void **state)
{
    pare_err err = {0};
    pare_ticket_layer b;
    (void)state;
    const double eps = 1e-3;
    const pair_shape s = {.d1 = 1, .d2 = 1, .heads = 1, .dk = 1, .blocks = 1, .size = 0};
    layer l = layer_of(&s, 2, 1, 0, 1);
    const double one = 1, none = 0, little = eps;
    l.f->blocks[0].attn.wq.data = &one, l.f->blocks[0].attn.wk.data = &none;
    l.g->blocks[0].attn.wq.data = &one, l.g->blocks[0].attn.wk.data = &little;
    l.f->blocks[0].attn.wv.data = l.g->blocks[0].attn.wv.data = &one;
    l.f->blocks[0].attn.wo.data = l.g->blocks[0].attn.wo.data = &one;
    l.x.v[0] = 1, l.x.v[1] = -1; /* uniform weights, then x_0 is preferred by 2 eps */
    const pare_input in = layer_input(&l);
    const double far = pair_apart(l.f, l.g, &in, NULL, NULL);
    assert_ok(pare_ticket_layer_bound(&b, l.f, l.g, 0, 1, NULL, &err), &err);
    assert_true(far <= b.free.v && b.free.v <= far * 1.002);
    layer_close(&l);
}

static void duplicated_tokens_change_neither_b_nor_c(void **state)
{
    const pair_shape s = {.d1 = 4, .d2 = 3, .heads = 2, .dk = 3, .blocks = 1, .size = 1};
    layer l = layer_of(&s, 9, 2, .05, 3);
    pare_ub one[9], two[18];
    (void)state;
    rows_bound(one, &l);
    const pare_mat once = l.x;
    l.x = pare_mat_new(l.a, 18, 4);
    for (size_t i = 0; i < 18 * 4; i++) l.x.v[i] = once.v[i % 36];
    rows_bound(two, &l);
    for (size_t i = 0; i < 18; i++) assert_near(two[i].v, one[i % 9].v, 1e-12);
    layer_close(&l);
}

/* A key bias shifts every score of a row by the same; under rotary positions it does not. */
static void a_key_bias_matters_under_rotary_positions_only(void **state)
{
    pare_err err = {0};
    (void)state;
    for (int rotary = 0; rotary < 2; rotary++) {
        const pair_shape s = {.d1 = 4,
                              .d2 = 4,
                              .heads = 2,
                              .dk = 4,
                              .blocks = 1,
                              .size = 1,
                              .biases = true,
                              .rotary = rotary};
        layer l = layer_of(&s, 6, 2, 0, 5);
        pare_ticket_layer b;
        double bias[8];
        for (size_t i = 0; i < 8; i++) bias[i] = 3 * pare_weight_at(&l.f->blocks[0].attn.bk, i);
        l.g->blocks[0].attn.bk.data = bias;
        const pare_input in = layer_input(&l);
        const double far = pair_apart(l.f, l.g, &in, NULL, NULL);
        assert_ok(pare_ticket_layer_bound(&b, l.f, l.g, 0, l.alpha, NULL, &err), &err);
        if (rotary)
            assert_true(far > 1e-3 && b.free.v > far);
        else
            assert_true(far < 1e-12 && b.free.v < 1e-10);
        layer_close(&l);
    }
}

/* Merged heads with the query bias as one more dimension are the same function. */
static void merged_heads_are_the_same_function(void **state)
{
    pare_err err = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        const pair_shape s = {.d1 = 5,
                              .d2 = 3,
                              .heads = 2,
                              .dk = 2,
                              .blocks = 1,
                              .size = 1,
                              .biases = true,
                              .pattern = {.kind = (pare_pattern_kind)(seed % 4), .window = 2}};
        layer l = layer_of(&s, 8, 2, 0, seed);
        pare_model *const m = pair_merged(l.f);
        pare_ticket_layer b;
        const pare_input in = layer_input(&l);
        assert_le(pair_apart(l.f, m, &in, NULL, NULL), 1e-12);
        assert_ok(pare_ticket_layer_bound(&b, l.f, m, 0, l.alpha, NULL, &err), &err);
        assert_le(b.free.v, 1e-10); /* only what the products were rounded by */
        pare_model_free(m);
        layer_close(&l);
    }
}

/* A row without keys is legal, gives bo in both models, and errs by nothing else. */
static void a_row_without_keys_errs_by_the_output_bias_alone(void **state)
{
    const pair_shape s = {.d1 = 4,
                          .d2 = 4,
                          .heads = 2,
                          .dk = 3,
                          .blocks = 1,
                          .size = 1,
                          .biases = true,
                          .pattern = {.kind = PARE_GRAPH}};
    layer l = layer_of(&s, 8, 2, .05, 9);
    pare_ub c[8];
    double far[8];
    (void)state;
    const pare_input in = layer_input(&l);
    (void)pair_apart(l.f, l.g, &in, far, NULL);
    rows_bound(c, &l);
    for (size_t i = 3; i < 8; i += 4) assert_true(far[i] == 0 && c[i].v == 0);
    for (size_t i = 0; i < 3; i++) assert_true(c[i].v > 0);
    layer_close(&l);
}

/* Moving a value bias into bo is right only where no row can be empty. */
static void a_value_bias_may_leave_the_sum_only_where_no_row_is_empty(void **state)
{
    pare_err err = {0};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const pair_shape s = {.d1 = 3,
                              .d2 = 3,
                              .heads = 1,
                              .dk = 3,
                              .blocks = 1,
                              .size = 1,
                              .biases = true,
                              .pattern = {.kind = kind ? PARE_GRAPH : PARE_CAUSAL}};
        layer l = layer_of(&s, 8, 2, 0, 11);
        pare_attn *const at = &l.g->blocks[0].attn;
        double bo[3], bv[3] = {0};
        pare_ticket_layer b;
        for (size_t i = 0; i < 3; i++) {
            bo[i] = pare_weight_at(&at->bo, i);
            for (size_t j = 0; j < 3; j++)
                bo[i] += pare_weight_at(&at->wo, i * 3 + j) * pare_weight_at(&at->bv, j);
        }
        at->bo.data = bo, at->bv.data = bv;
        const pare_input in = layer_input(&l);
        const double far = pair_apart(l.f, l.g, &in, NULL, NULL);
        assert_ok(pare_ticket_layer_bound(&b, l.f, l.g, 0, l.alpha, NULL, &err), &err);
        assert_le(far, b.free.v + 1e-12);
        assert_true(kind ? far > .01 : b.free.v < 1e-10);
        layer_close(&l);
    }
}

/* Wide heads are bounded by their factors: looser, never broken. */
static void wide_heads_are_bounded_by_their_factors(void **state)
{
    pare_err err = {0};
    (void)state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        const pair_shape s = {
            .d1 = 260, .d2 = 3, .heads = 2, .dk = 2, .blocks = 1, .size = 1, .biases = seed == 1};
        layer l = layer_of(&s, 5, 3, .01, seed);
        pare_ticket_layer b;
        pare_ub c[5];
        double far[5], scale;
        const pare_input in = layer_input(&l);
        (void)pair_apart(l.f, l.g, &in, far, &scale);
        rows_bound(c, &l);
        assert_ok(pare_ticket_layer_bound(&b, l.f, l.g, 0, l.alpha, NULL, &err), &err);
        for (size_t i = 0; i < 5; i++) {
            assert_le(far[i], c[i].v + 1e-11 * scale);
            assert_le(c[i].v, b.free.v * (1 + 1e-9));
        }
        assert_true(isfinite(b.free.v) && b.free.v > 0);
        layer_close(&l);
    }
}

static void without_alpha_nothing_is_said_and_overflow_is_inf(void **state)
{
    pare_err err = {0};
    static const double bad[] = {0, -1, NAN, INFINITY};
    const pair_shape s = {.d1 = 8, .d2 = 8, .heads = 2, .dk = 8, .blocks = 1, .size = 1};
    layer l = layer_of(&s, 4, 2, .1, 13);
    pare_ticket_layer b;
    pare_ticket_bound m;
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_ok(pare_ticket_layer_bound(&b, l.f, l.g, 0, bad[i], NULL, &err), &err);
        assert_true(isinf(b.free.v) && isinf(b.paper_est) && strstr(b.why, "length"));
        assert_ok(pare_ticket_bound_free(&m, l.f, l.g, bad[i], NULL, &err), &err);
        assert_true(isinf(m.outputs.v) && strstr(m.why, "length"));
    }
    assert_ok(pare_ticket_layer_bound(&b, l.f, l.g, 0, 1e200, NULL, &err), &err);
    assert_true(isinf(b.paper_est) && b.paper_est > 0 && !isnan(b.free.v));
    assert_true(vo_norm(&l) > 0);
    layer_close(&l);
}

/* ---- ReLU pairs ------------------------------------------------------------------------------ */

/* A target of one layer and a ReLU ticket of two, whose units read one input each. */
static void relu_pair(pare_model **f, pare_model **g, pare_rng *r, size_t d, size_t layers)
{
    enum { UNITS = 10 };
    const pair_shape s = {.d1 = d, .d2 = d, .heads = 1, .dk = 1, .blocks = 1, .size = .1};
    pare_err err = {0};
    *f = pair_target(r, &s);
    pare_ffn *const ff = &(*f)->blocks[0].ffn;
    *ff = (pare_ffn){
        .kind = PARE_FFN_MLP, .din = d, .dout = d, .nlayers = layers, .act = PARE_ACT_RELU};
    ff->layers = pare_alloc((*f)->arena, layers, sizeof *ff->layers);
    assert_non_null(ff->layers);
    for (size_t l = 0; l < layers; l++) {
        ff->layers[l].w = pair_weight(*f, r, d, d, PAIR_GAUSS, .5);
        ff->layers[l].b = pair_weight(*f, r, 1, d, PAIR_GAUSS, .5);
    }
    (*f)->blocks[0].attn = (pare_attn){0};
    assert_ok(pare_model_clone(g, *f, &err), &err);
    pare_ffn *const gf = &(*g)->blocks[0].ffn;
    gf->nlayers = 2 * layers;
    gf->layers = pare_alloc((*g)->arena, 2 * layers, sizeof *gf->layers);
    assert_non_null(gf->layers);
    const size_t n = UNITS * d;
    for (size_t l = 0; l < layers; l++) {
        double *const b = pare_alloc((*g)->arena, n * d, sizeof *b),
                      *const c = pare_alloc((*g)->arena, n, sizeof *c),
                      *const a = pare_alloc((*g)->arena, d * n, sizeof *a);
        assert_true(a && b && c);
        for (size_t k = 0; k + 1 < n; k++) b[k * d + k % d] = k / d % 2 ? 1 : -1;
        c[n - 1] = .5; /* a unit that carries a bias */
        for (size_t i = 0; i < d; i++)
            for (size_t k = 0; k < n; k++) {
                const double w = pare_weight_at(&ff->layers[l].w, i * d + k % d);
                a[i * n + k] = (k / d % 2 ? 1 : -1) * w / (UNITS / 2) + .01 * pare_rng_normal(r);
            }
        gf->layers[2 * l].w = (pare_weight){PARE_F64, n, d, b};
        gf->layers[2 * l].b = (pare_weight){PARE_F64, 1, n, c};
        gf->layers[2 * l + 1].w = (pare_weight){PARE_F64, d, n, a};
        gf->layers[2 * l + 1].b = ff->layers[l].b;
    }
    assert_ok(pare_model_check(*g, &err), &err);
}

/* The recursion is never exceeded on 100 nets of up to 3 layers, and nearly met by some. */
static void relu_tickets_keep_to_their_recursion(void **state)
{
    pare_rng r = pare_rng_at(2, 17);
    pare_err err = {0};
    double tightest = 0;
    (void)state;
    for (int i = 0; i < 100; i++) {
        const size_t d = 1 + pare_rng_below(&r, 4), layers = 1 + pare_rng_below(&r, 3);
        pare_model *f, *g;
        double x[64];
        pare_ticket_bound b;
        relu_pair(&f, &g, &r, d, layers);
        pair_rows(x, &r, 16, d, 1.5);
        const pare_input in = {.batch = 1, .tokens = 16, .width = d, .x = x};
        const double far = pair_apart(f, g, &in, NULL, NULL);
        assert_ok(pare_ticket_bound_free(&b, f, g, 1.5, NULL, &err), &err);
        assert_string_equal(b.why, "");
        assert_le(far, b.outputs.v);
        tightest = fmax(tightest, far / b.outputs.v);
        pare_model_free(g);
        pare_model_free(f);
    }
    assert_true(tightest > .95);
}

static void a_unit_that_reads_two_inputs_is_refused(void **state)
{
    pare_rng r = pare_rng_at(3, 17);
    pare_err err = {0};
    pare_model *f, *g;
    pare_ticket_bound b;
    (void)state;
    relu_pair(&f, &g, &r, 3, 1);
    double *const w = pare_alloc(g->arena, 90, sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < 90; i++) w[i] = pare_weight_at(&g->blocks[0].ffn.layers[0].w, i);
    w[3 * 7] = w[3 * 7 + 1] = 1;
    g->blocks[0].ffn.layers[0].w.data = w;
    assert_ok(pare_ticket_bound_free(&b, f, g, 1, NULL, &err), &err);
    assert_true(isinf(b.outputs.v));
    assert_contains(b.why, "unit 7");
    pare_model_free(g);
    pare_model_free(f);
}

/* ---- exact cases of the other steps ---------------------------------------------------------- */

/* One block without attention, width 1: x -> act(x + b1) at b1 = sqrt 2, where gelu is steepest. */
static void the_steepest_slope_of_an_activation_is_counted(void **state)
{
    static const pare_act acts[] = {PARE_ACT_GELU, PARE_ACT_GELU_TANH, PARE_ACT_SILU};
    static const double at[] = {1.41421356237, 1.42, 2.3993572805};
    pare_err err = {0};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        pare_rng r = pare_rng_at(1, 1);
        const pair_shape s = {.d1 = 1, .d2 = 1, .heads = 1, .dk = 1, .blocks = 1};
        pare_model *const f = pair_target(&r, &s), *g;
        const double one = 1, b = at[i], c = b + 1e-4;
        double x = 0;
        pare_ticket_bound m;
        pare_dense layers[2] = {{{PARE_F64, 1, 1, &one}, {PARE_F64, 1, 1, &b}},
                                {{PARE_F64, 1, 1, &one}, {0}}};
        pare_dense moved[2] = {{{PARE_F64, 1, 1, &one}, {PARE_F64, 1, 1, &c}}, layers[1]};
        f->blocks[0].attn = (pare_attn){0};
        f->blocks[0].ffn = (pare_ffn){.kind = PARE_FFN_MLP,
                                      .din = 1,
                                      .dout = 1,
                                      .nlayers = 2,
                                      .layers = layers,
                                      .act = acts[i]};
        assert_ok(pare_model_clone(&g, f, &err), &err);
        g->blocks[0].ffn.layers = moved;
        const pare_input in = {.batch = 1, .tokens = 1, .width = 1, .x = &x};
        const double far = pair_apart(f, g, &in, NULL, NULL);
        assert_ok(pare_ticket_bound_free(&m, f, g, 1, NULL, &err), &err);
        assert_true(far > 1.09e-4 && far <= m.outputs.v && m.outputs.v < far * 1.001);
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* A norm alone: what differs in gain and bias is all there is. */
static void gains_and_biases_of_norms_are_counted(void **state)
{
    pare_err err = {0};
    pare_rng r = pare_rng_at(2, 1);
    const pair_shape s = {.d1 = 4, .d2 = 4, .heads = 1, .dk = 1, .blocks = 1};
    pare_model *const f = pair_target(&r, &s), *g;
    const double gain[4] = {1, 1, 1, 1}, more[4] = {1.5, 1, 1, 1};
    const double bias[4] = {0, 0, 0, 0}, other[4] = {.25, 0, 0, 0};
    double x[8] = {100, 0, 0, 0, 0, 1, 0, 0};
    pare_ticket_bound m;
    (void)state;
    f->blocks[0].attn = (pare_attn){0};
    f->top.norm = (pare_norm){.kind = PARE_NORM_RMS,
                              .divisor = 4,
                              .eps = 1e-6,
                              .gain = {PARE_F64, 1, 4, gain},
                              .bias = {PARE_F64, 1, 4, bias}};
    assert_ok(pare_model_clone(&g, f, &err), &err);
    g->top.norm.gain.data = more;
    g->top.norm.bias.data = other;
    const pare_input in = {.batch = 1, .tokens = 2, .width = 4, .x = x};
    const double far = pair_apart(f, g, &in, NULL, NULL); /* .5 sqrt(4) + .25 */
    assert_ok(pare_ticket_bound_free(&m, f, g, 100, NULL, &err), &err);
    assert_near(far, 1.25, 1e-6);
    assert_true(far <= m.outputs.v && m.outputs.v < 1.2501);
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_never_moves_by_more_than_lemma_a),
        cmocka_unit_test(lemma_a_is_attained),
        cmocka_unit_test(measured_is_below_c_below_b_below_the_printed_form),
        cmocka_unit_test(theorem_b_is_nearly_met),
        cmocka_unit_test(duplicated_tokens_change_neither_b_nor_c),
        cmocka_unit_test(a_key_bias_matters_under_rotary_positions_only),
        cmocka_unit_test(merged_heads_are_the_same_function),
        cmocka_unit_test(a_row_without_keys_errs_by_the_output_bias_alone),
        cmocka_unit_test(a_value_bias_may_leave_the_sum_only_where_no_row_is_empty),
        cmocka_unit_test(wide_heads_are_bounded_by_their_factors),
        cmocka_unit_test(without_alpha_nothing_is_said_and_overflow_is_inf),
        cmocka_unit_test(the_steepest_slope_of_an_activation_is_counted),
        cmocka_unit_test(gains_and_biases_of_norms_are_counted),
        cmocka_unit_test(relu_tickets_keep_to_their_recursion),
        cmocka_unit_test(a_unit_that_reads_two_inputs_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
