/* Tests src/depth/lower_bound.c: Theorem D.1 is false for EVERY one-layer network. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
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

/* A stored model, replicated or not: the coarser grid loses little. */
static void a_stored_model_has_its_bound_at_any_width(void **state)
{
    (void)state;
    const depth_domain box = {2, -1}, narrow = {2, 1};
    for (size_t k = 1; k <= 9; k += 4) {
        pare_model *const f = replicated(deep, 2, k);
        pare_model *const g = collapsed(f, PARE_ONE_PARALLEL, 0, NULL);
        depth_lower low, less;
        pare_err err = {0};
        assert_true(depth_lower_applies(f, g));
        assert_ok(depth_lower_model(&low, f, &box, NULL, &err), &err);
        assert_ok(depth_lower_model(&less, f, &narrow, NULL, &err), &err);
        print_message("width %zu: %.4f, tokens at most 1 apart: %.4f\n", k, low.lb, less.lb);
        assert_true(low.lb > .9 && low.lb < .9305); /* what the fine grid has */
        assert_true(less.lb > 0 && less.lb < low.lb);
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* Largest |f - g| over two tokens with all entries alike: where the bound looks. */
static double farthest(const pare_model *f, const pare_model *g, size_t d, double box)
{
    double far = 0, x[8];
    for (int i = -12; i <= 12; i++)
        for (int j = -12; j <= 12; j++) {
            for (size_t k = 0; k < 2 * d; k++) x[k] = box * (k < d ? i : j) / 12;
            far = fmax(far, net_apart(f, g, x, 2, d));
        }
    return far;
}

/* Random nets against their collapses, and against one-layer nets that a search brings near. */
static void no_one_layer_network_is_nearer_than_the_bound(void **state)
{
    (void)state;
    static const pare_collapse kinds[] = {PARE_ONE_KEEP, PARE_ONE_PARALLEL, PARE_ONE_UNIFORM,
                                          PARE_ONE_PARALLEL_UNIFORM};
    double closest = INFINITY;
    for (uint64_t seed = 0; seed < 8; seed++) {
        pare_rng r = pare_rng_at(seed, 0);
        const net_shape s = {.layers = 2 + pare_rng_below(&r, 2),
                             .heads = 1 + pare_rng_below(&r, 2),
                             .d = 1 + pare_rng_below(&r, 3),
                             .eta = seed % 2 ? 1 : .3,
                             .beta = 1,
                             .law = seed % 3 ? LAW_GAUSS : LAW_SIGNS};
        pare_model *const f = net_of(&r, &s);
        const depth_domain box = {1, -1};
        depth_lower low;
        pare_err err = {0};
        assert_ok(depth_lower_model(&low, f, &box, NULL, &err), &err);
        for (size_t k = 0; k < 4; k++) {
            pare_model *const g = collapsed(f, kinds[k], 0, NULL);
            assert_true(depth_lower_applies(f, g));
            pare_weight *const w = &g->blocks[0].attn.wv; /* f's own, or none (uniform) */
            double *const v = pare_has(w) ? net_room(g, w->rows * w->cols) : NULL;
            for (size_t i = 0; v && i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i);
            if (v) *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
            double best = farthest(f, g, s.d, 1);
            for (size_t t = 0; t < 12 && v; t++) {
                const size_t at = pare_rng_below(&r, w->rows * w->cols);
                const double old = v[at];
                v[at] += best * pare_rng_normal(&r);
                const double now = farthest(f, g, s.d, 1);
                if (now < best)
                    best = now;
                else
                    v[at] = old;
            }
            if (!(low.lb <= best * (1 + 1e-12)))
                fail_msg("seed %u, %s: %g is below %g", (unsigned)seed,
                         pare_collapse_names[kinds[k]], best, low.lb);
            if (low.lb > 1e-9) closest = fmin(closest, best / low.lb);
            pare_model_free(g);
        }
        pare_model_free(f);
    }
    print_message("closest network found: %.3g times the bound\n", closest);
    assert_true(closest < 1.6);
}

static void it_speaks_of_bare_networks_without_biases_alone(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 0);
    const net_shape plain = {.layers = 2, .heads = 1, .d = 2, .eta = .3, .beta = 1};
    net_shape other = plain;
    pare_model *const f = net_of(&r, &plain), *const g = collapsed(f, PARE_ONE_UNIFORM, 0, NULL);
    assert_true(depth_lower_applies(f, g) && !depth_lower_applies(f, f));
    other.bias = .1;
    pare_model *const biased = net_of(&r, &other);
    assert_false(depth_lower_applies(biased, g) || depth_lower_applies(f, biased));
    other = plain, other.pattern = PARE_CAUSAL;
    pare_model *const masked = net_of(&r, &other);
    assert_false(depth_lower_applies(masked, g));
    other = plain, other.no_skip = true;
    pare_model *const bare = net_of(&r, &other);
    assert_false(depth_lower_applies(bare, g));
    other = plain, other.d = 65;
    pare_model *const wide = net_of(&r, &other);
    assert_false(depth_lower_applies(wide, g));
    pare_model *const mixed = collapsed(f, PARE_ONE_UMIX, 0, NULL);
    assert_int_equal(mixed->blocks[0].attn.kind, PARE_ATTN_UMIX); /* maps the own token as well */
    assert_false(depth_lower_applies(f, mixed));
    pare_model *const none = collapsed(f, PARE_ONE_IDENTITY, 0, NULL);
    assert_true(depth_lower_applies(f, none));
    none->blocks[0].attn.skip.kind = PARE_SKIP_NONE;
    assert_false(depth_lower_applies(f, none));
    pare_model *const all[] = {f, g, biased, masked, bare, wide, mixed, none};
    for (size_t i = 0; i < 8; i++) pare_model_free(all[i]);
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

/* ---- nets of the lemma, and no others -------------------------------------------------------- */

/* What a model can have beside attention and skips. */
typedef enum extra {
    HEAD_RELU,
    HEAD_GELU,
    HEAD_GELU_TANH,
    HEAD_SILU,
    HEAD_TANH,
    HEAD_LAYER_NORM,
    HEAD_RMS_NORM,
    HEAD_MEAN_NORM,
    HEAD_BATCH_NORM,
    HEAD_FIRST,
    HEAD_MEAN,
    HEAD_DENSE,
    HEAD_OUT,
    HEAD_OUT_BIAS,
    INPUT_MAP,
    INPUT_LAYER_NORM,
    INPUT_RMS_NORM,
    INPUT_SINUSOIDAL,
    INPUT_LEARNED,
    BLOCK_IN_NORM,
    BLOCK_OUT_NORM,
    BLOCK_FFN,
    BLOCK_BQ,
    BLOCK_BV,
    BLOCK_BO,
    BLOCK_DIAGONAL_SKIP,
    BLOCK_DENSE_SKIP,
    BLOCK_NO_SKIP,
    BLOCK_ROTARY,
    PATTERN_CAUSAL,
    PATTERN_WINDOW,
    CONTEXT_ONE,
    EXTRAS,
    NO_EXTRA,
    KEY_BIAS /* of the lemma's nets: softmax does not see it */
} extra;

static pare_norm norm_like(pare_model *m, pare_norm_kind kind, size_t d)
{
    pare_rng r = pare_rng_at(9, 0);
    pare_norm n = {.kind = kind, .eps = 1e-5, .divisor = (double)d};
    if (kind != PARE_NORM_BATCH) return n;
    n.mean = net_weight(m, &r, 1, d, LAW_UNIFORM, 1);
    n.var = net_weight(m, &r, 1, d, LAW_POSITIVE, 1);
    return n;
}

static void add_to_head(pare_model *m, extra e, pare_rng *r, size_t d)
{
    static const pare_act acts[] = {PARE_ACT_RELU, PARE_ACT_GELU, PARE_ACT_GELU_TANH, PARE_ACT_SILU,
                                    PARE_ACT_TANH};
    static const pare_norm_kind norms[] = {PARE_NORM_LAYER, PARE_NORM_RMS, PARE_NORM_MEAN,
                                           PARE_NORM_BATCH};
    if (e <= HEAD_TANH) m->top.act = acts[e - HEAD_RELU];
    if (e >= HEAD_LAYER_NORM && e <= HEAD_BATCH_NORM)
        m->top.norm = norm_like(m, norms[e - HEAD_LAYER_NORM], d);
    if (e == HEAD_FIRST) m->top.pool = PARE_POOL_FIRST;
    if (e == HEAD_MEAN) m->top.pool = PARE_POOL_MEAN;
    if (e == HEAD_DENSE) m->top.dense.w = net_weight(m, r, d, d, LAW_GAUSS, 1);
    if (e == HEAD_OUT || e == HEAD_OUT_BIAS) m->top.out.w = net_weight(m, r, d, d, LAW_GAUSS, 1);
    if (e == HEAD_OUT_BIAS) m->top.out.b = net_weight(m, r, 1, d, LAW_GAUSS, 1);
}

static void add_to_input(pare_model *m, extra e, pare_rng *r, size_t d)
{
    if (e == INPUT_MAP) m->stem.map.w = net_weight(m, r, d, d, LAW_GAUSS, 1);
    if (e == INPUT_LAYER_NORM) m->stem.norm = norm_like(m, PARE_NORM_LAYER, d);
    if (e == INPUT_RMS_NORM) m->stem.norm = norm_like(m, PARE_NORM_RMS, d);
    if (e == INPUT_SINUSOIDAL)
        m->stem.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 100};
    if (e == INPUT_LEARNED) {
        m->context = 4;
        m->stem.pos = (pare_positions){.kind = PARE_POS_LEARNED,
                                       .table = net_weight(m, r, 4, d, LAW_GAUSS, 1)};
    }
    if (e == PATTERN_CAUSAL) m->pattern.kind = PARE_CAUSAL;
    if (e == PATTERN_WINDOW) m->pattern.kind = PARE_WINDOW;
    if (e == CONTEXT_ONE) m->context = 1;
}

static void add_to_block(pare_model *m, extra e, pare_rng *r, size_t d)
{
    pare_block *const b = &m->blocks[0];
    pare_attn *const a = &b->attn;
    const size_t n = a->nheads * d;
    if (e == BLOCK_IN_NORM) a->in_norm = norm_like(m, PARE_NORM_LAYER, d);
    if (e == BLOCK_OUT_NORM) a->out_norm = norm_like(m, PARE_NORM_RMS, d);
    if (e == BLOCK_BQ) a->bq = net_weight(m, r, 1, n, LAW_GAUSS, 1);
    if (e == KEY_BIAS) a->bk = net_weight(m, r, 1, n, LAW_GAUSS, 1);
    if (e == BLOCK_BV) a->bv = net_weight(m, r, 1, n, LAW_GAUSS, 1);
    if (e == BLOCK_BO) a->bo = net_weight(m, r, 1, d, LAW_GAUSS, 1);
    if (e == BLOCK_DIAGONAL_SKIP)
        a->skip = (pare_skip){PARE_SKIP_DIAGONAL, net_weight(m, r, 1, d, LAW_GAUSS, 1)};
    if (e == BLOCK_DENSE_SKIP)
        a->skip = (pare_skip){PARE_SKIP_DENSE, net_weight(m, r, d, d, LAW_GAUSS, 1)};
    if (e == BLOCK_NO_SKIP) a->skip.kind = PARE_SKIP_NONE;
    if (e == BLOCK_ROTARY) {
        m->stem.pos.kind = PARE_POS_ROTARY;
        a->freqs = net_weight(m, r, 1, 1, LAW_ALL_ETA, 1);
        a->heads[0].planes = 1;
    }
    if (e == BLOCK_FFN) {
        b->ffn = (pare_ffn){.kind = PARE_FFN_MLP,
                            .din = d,
                            .dout = d,
                            .nlayers = 2,
                            .act = PARE_ACT_RELU,
                            .skip = {.kind = PARE_SKIP_IDENTITY}};
        b->ffn.layers = pare_alloc(m->arena, 2, sizeof *b->ffn.layers);
        for (size_t i = 0; i < 2; i++) b->ffn.layers[i].w = net_weight(m, r, d, d, LAW_GAUSS, 1);
    }
}

/* f: one layer, the extra, and a second layer that adds nothing; g: without that layer. They are
 * the same function: a positive lower bound would be false. */
static void pair_with(pare_model *out[2], extra e, uint64_t seed)
{
    for (size_t k = 0; k < 2; k++) {
        pare_err err = {0};
        pare_rng r = pare_rng_at(seed, 0), more = pare_rng_at(seed, 1);
        const net_shape s = {
            .layers = 2, .heads = 2, .d = 3, .eta = 1, .beta = 1, .law = LAW_GAUSS};
        pare_model *const m = out[k] = net_of(&r, &s);
        m->blocks[1].attn.wv.data = net_room(m, 18); /* zeros */
        add_to_head(m, e, &more, 3);
        add_to_input(m, e, &more, 3);
        add_to_block(m, e, &more, 3);
        if (k == 1) m->nblocks = 1;
        assert_ok(pare_model_check(m, &err), &err);
    }
}

static void it_speaks_of_exactly_the_nets_of_the_lemma(void **state)
{
    (void)state;
    const depth_domain box = {1, -1};
    for (size_t e = 0; e <= KEY_BIAS; e++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            pare_model *m[2];
            depth_lower low = {0};
            pare_err err = {0};
            if (e == EXTRAS) continue;
            pair_with(m, (extra)e, seed);
            const bool applies = depth_lower_applies(m[0], m[1]);
            if (applies) assert_ok(depth_lower_model(&low, m[0], &box, NULL, &err), &err);
            if (applies != (e > EXTRAS) || low.lb > 1e-9)
                fail_msg("extra %zu: applies %d, at least %g between equal nets", e, applies,
                         low.lb);
            pare_model_free(m[0]);
            pare_model_free(m[1]);
        }
}

/* ---- an attack ------------------------------------------------------------------------------- */

enum { STRENGTHS = 33, SIDE = 12, SPOTS = (2 * SIDE + 1) * (2 * SIDE + 1), ROUNDS = 30 };

/* b from -40 to 40, denser near 0. */
static double strength(size_t k)
{
    const double t = 2 * (double)k / (STRENGTHS - 1) - 1;
    return 40 * t * t * t;
}

/* The least largest error of sum_k v_k (p_k x1 + (1 - p_k) x2) to y over the spots that was found:
 * Lawson's iteration (weighted least squares whose weights follow the errors) tends to the
 * Chebyshev approximation, the optimum of the linear program over the v of so many heads. */
static double chebyshev(const pare_mat *phi, const double *y, pare_arena *a)
{
    double weight[SPOTS], best = INFINITY;
    for (size_t i = 0; i < SPOTS; i++) weight[i] = 1.0 / SPOTS;
    for (size_t t = 0; t < ROUNDS; t++) {
        const pare_mark mark = pare_arena_mark(a);
        pare_mat h = pare_mat_new(a, STRENGTHS, STRENGTHS),
                 k = pare_mat_new(a, STRENGTHS, STRENGTHS);
        double right[STRENGTHS] = {0}, v[STRENGTHS] = {0}, far = 0, sum = 0, off[SPOTS];
        for (size_t i = 0; i < SPOTS; i++)
            for (size_t p = 0; p < STRENGTHS; p++) {
                const double at = weight[i] * pare_row(phi, i)[p];
                right[p] += at * y[i];
                for (size_t q = 0; q < STRENGTHS; q++)
                    pare_row_mut(&h, p)[q] += at * pare_row(phi, i)[q];
            }
        for (size_t p = 0; p < STRENGTHS; p++) pare_row_mut(&h, p)[p] += 1e-10;
        assert_int_equal(pare_spd_inverse(&k, &h, NULL), PARE_OK);
        for (size_t p = 0; p < STRENGTHS; p++)
            for (size_t q = 0; q < STRENGTHS; q++) v[p] += pare_row(&k, p)[q] * right[q];
        for (size_t i = 0; i < SPOTS; i++) {
            off[i] = -y[i];
            for (size_t p = 0; p < STRENGTHS; p++) off[i] += pare_row(phi, i)[p] * v[p];
            far = fmax(far, fabs(off[i]));
            sum += weight[i] * fabs(off[i]);
        }
        best = fmin(best, far);
        for (size_t i = 0; i < SPOTS; i++) weight[i] = weight[i] * fabs(off[i]) / sum + 1e-15;
        pare_arena_reset(a, mark);
    }
    return best;
}

/* The nearest net of one layer, over two tokens with all entries alike: every output entry is a
 * linear program of its own, because heads are free. */
static double nearest(const pare_model *f, size_t d, double box)
{
    pare_arena *const a = pare_arena_new();
    pare_mat phi = pare_mat_new(a, SPOTS, STRENGTHS);
    double x[2 * 8], y[2 * 8], far = 0;
    double *const out = pare_alloc(a, d * SPOTS, sizeof *out);
    for (size_t s = 0; s < SPOTS; s++) {
        const double x1 = box * ((double)(s / (2 * SIDE + 1)) / SIDE - 1);
        const double x2 = box * ((double)(s % (2 * SIDE + 1)) / SIDE - 1);
        for (size_t k = 0; k < STRENGTHS; k++) {
            const double p = 1 / (1 + exp(-strength(k) * x1 * (x1 - x2)));
            pare_row_mut(&phi, s)[k] = p * x1 + (1 - p) * x2;
        }
        for (size_t k = 0; k < 2 * d; k++) x[k] = k < d ? x1 : x2;
        net_run(y, f, x, 2, d);
        for (size_t c = 0; c < d; c++) out[c * SPOTS + s] = y[c] - x1;
    }
    for (size_t c = 0; c < d; c++) far = fmax(far, chebyshev(&phi, out + c * SPOTS, a));
    pare_arena_free(a);
    return far;
}

static void no_linear_program_finds_a_nearer_one_layer_network(void **state)
{
    (void)state;
    double closest = INFINITY;
    size_t positive = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pare_rng r = pare_rng_at(seed, 7);
        const net_shape s = {.layers = 2 + pare_rng_below(&r, 3),
                             .heads = 1 + pare_rng_below(&r, 2),
                             .d = 1 + pare_rng_below(&r, 4),
                             .eta = .3 + pare_rng_uniform(&r),
                             .beta = 1,
                             .law = seed % 3 ? LAW_GAUSS : LAW_SIGNS};
        pare_model *const f = net_of(&r, &s);
        const depth_domain box = {1, -1};
        depth_lower low;
        pare_err err = {0};
        assert_ok(depth_lower_model(&low, f, &box, NULL, &err), &err);
        const double found = nearest(f, s.d, 1);
        if (!(low.lb <= found * (1 + 1e-9)))
            fail_msg("seed %u: a net at %g, none can be below %g", (unsigned)seed, found, low.lb);
        if (low.lb > 1e-6) closest = fmin(closest, found / low.lb), positive++;
        pare_model_free(f);
    }
    print_message("%zu of 40 bounds are positive; the nearest net found is %.3f times its bound\n",
                  positive, closest);
    assert_true(positive > 20);
    assert_true(closest < 1.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_one_layer_network_is_far_from_a_deep_one),
        cmocka_unit_test(no_search_comes_closer),
        cmocka_unit_test(a_stored_model_has_its_bound_at_any_width),
        cmocka_unit_test(no_one_layer_network_is_nearer_than_the_bound),
        cmocka_unit_test(it_speaks_of_bare_networks_without_biases_alone),
        cmocka_unit_test(it_speaks_of_exactly_the_nets_of_the_lemma),
        cmocka_unit_test(no_linear_program_finds_a_nearer_one_layer_network),
        cmocka_unit_test(a_one_layer_network_is_reachable),
        cmocka_unit_test(replication_divides_entries_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
