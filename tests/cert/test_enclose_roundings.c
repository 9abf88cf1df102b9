/* Tests the pieces of src/cert/enclose*.c one at a time, where no other term can cover for a
 * missing one: single roundings, which a piece must add. What it must carry on:
 * test_enclose_pieces.c. */
#include "enclose_bench.h"

/* Both engines on a model with next to nothing in it. *f32: the largest error of that engine. */
static pare_enclosure hold_small(bench *b, const double *x, size_t tokens, double *f32)
{
    const pare_input in = {.batch = 1, .tokens = tokens, .width = b->m->embedding.width, .x = x};
    pare_enclosure e;
    bench_ready(b, tokens);
    assert_int_equal(pare_enclose(&e, b->a, b->m, b->norms, &in, NULL, NULL), PARE_OK);
    float *const y32 = pare_alloc(b->a, e.rows * e.cols, sizeof *y32);
    double *const y64 = pare_alloc(b->a, e.rows * e.cols, sizeof *y64);
    assert_int_equal(pare_forward_f32(y32, b->m, &in, NULL, NULL, NULL), PARE_OK);
    assert_int_equal(pare_forward_f64(y64, b->m, &in, NULL, NULL, NULL), PARE_OK);
    pare_enclosure w;
    assert_int_equal(pare_enclose_dd(&w, b->a, b->m, b->norms, &in, NULL, NULL), PARE_OK);
    const qmat y = q_model(b->a, b->m, &in, 0);
    *f32 = 0;
    for (size_t i = 0; i < y.n * y.d; i++) {
        const double d32 = (double)q_abs(y.v[i] - (quad)y32[i]);
        assert_le((double)q_abs(y.v[i] - (quad)e.mid[i]), e.rad[i / e.cols]);
        assert_le((double)q_abs(y.v[i] - (quad)y64[i]), e.rad[i / e.cols]);
        assert_le(d32, e.rad32[i / e.cols]);
        /* a thirtieth: what the reference may be off by itself (test_enclose.c) */
        assert_le((double)q_abs(y.v[i] - (quad)w.mid[i] - (quad)w.lo[i]),
                  w.rad[i / e.cols] * (1 + 1.0 / 30));
        assert_le(d32, w.rad32[i / e.cols]);
        *f32 = fmax(*f32, d32);
    }
    return e;
}

static void one_rounding_each_is_counted(void **state)
{
    (void)state;
    static const double tenth[] = {0.1}, w[] = {3e-46}, far[] = {1e30};
    static const float slight[] = {0x1.8p-24f};
    static const double one[] = {1};
    bench b;
    double f32;
    bench_start(&b, 0); /* the input itself */
    b.m->nblocks = 0;
    hold_small(&b, tenth, 1, &f32);
    assert_true(f32 > 0);
    bench_end(&b);
    bench_start(&b, 0); /* a constant in place of attention */
    b.block.attn = (pare_attn){.kind = PARE_ATTN_CONST, .din = 1, .dout = 1};
    b.block.attn.bo = (pare_weight){PARE_F64, 1, 1, tenth};
    hold_small(&b, one, 1, &f32);
    assert_true(f32 > 0);
    bench_end(&b);
    bench_start(&b, 0); /* the sum of skip and branch */
    b.block.attn = (pare_attn){.kind = PARE_ATTN_CONST, .din = 1, .dout = 1};
    b.block.attn.bo = (pare_weight){PARE_F32, 1, 1, slight};
    b.block.attn.skip.kind = PARE_SKIP_IDENTITY;
    hold_small(&b, one, 1, &f32);
    assert_true(f32 > 0);
    bench_end(&b);
    bench_start(&b, 0); /* a weight that is nothing in f32, times something large */
    b.m->nblocks = 0;
    b.m->head.out.w = (pare_weight){PARE_F64, 1, 1, w};
    hold_small(&b, far, 1, &f32);
    assert_true(f32 > 1e-17);
    bench_end(&b);
}

static void norms_count_their_own_roundings(void **state)
{
    (void)state;
    for (int kind = PARE_NORM_LAYER; kind <= PARE_NORM_MEAN; kind++) {
        double seen = 0;
        for (uint64_t t = 0; t < 60; t++) {
            bench b;
            bench_start(&b, t);
            maker k = {.m = b.m, .r = b.r};
            enum { D = 5 };
            double x[D], f32;
            for (size_t i = 0; i < D; i++) x[i] = (double)(float)pare_rng_normal(&b.r);
            b.m->embedding.width = D;
            b.m->nblocks = 0;
            b.m->embedding.norm =
                (pare_norm){.kind = (pare_norm_kind)kind, .eps = 1e-5, .divisor = D};
            if (t % 3 == 1) b.m->embedding.norm.gain = weight(&k, 1, D, 1, 0.1);
            if (t % 3 == 2) b.m->embedding.norm.bias = weight(&k, 1, D, 1e4, 1);
            if (kind == PARE_NORM_BATCH) {
                static const double var[D] = {1, 0.3, 2, 0.1, 5};
                b.m->embedding.norm.var = (pare_weight){PARE_F64, 1, D, var};
                b.m->embedding.norm.mean = weight(&k, 1, D, 0, 1);
            } else if (t % 2) {
                b.m->embedding.norm.offset = weight(&k, 1, D, 1000, 1);
                for (size_t i = 0; i < D; i++) x[i] = (double)(float)(x[i] - 1000);
            }
            hold_small(&b, x, 1, &f32);
            seen += f32;
            bench_end(&b);
        }
        assert_true(seen > 0);
    }
}

/* An rms norm written in f32 throughout: its squares underflow long before the numbers do. */
static void squares_that_underflow_are_counted(void **state)
{
    (void)state;
    for (int p = -10; p > -140; p--) {
        bench b;
        bench_start(&b, 0);
        const double x[] = {ldexp(1.25, p), ldexp(-0.75, p), ldexp(1.5, p)};
        double f32;
        b.m->embedding.width = 3;
        b.m->nblocks = 0;
        b.m->embedding.norm = (pare_norm){.kind = PARE_NORM_RMS, .divisor = 3};
        const pare_enclosure e = hold_small(&b, x, 1, &f32);
        float s = 0, y[3];
        for (size_t i = 0; i < 3; i++) s += (float)x[i] * (float)x[i];
        for (size_t i = 0; i < 3; i++) y[i] = (float)x[i] / sqrtf(s / 3);
        const double root = sqrt((1.25 * 1.25 + 0.75 * 0.75 + 1.5 * 1.5) / 3);
        for (size_t i = 0; i < 3; i++)
            assert_true(fabs((double)y[i] - ldexp(x[i], -p) / root) <= e.rad32[0] ||
                        isinf(e.rad32[0]));
        if (p > -50) assert_true(e.rad32[0] < 1e-4);
        bench_end(&b);
    }
}

static void activations_of_the_smallest_numbers_are_counted(void **state)
{
    (void)state;
    static const pare_act acts[] = {PARE_ACT_GELU, PARE_ACT_GELU_TANH, PARE_ACT_SILU};
    static const float smallest[] = {0x3p-149f}; /* half of it is between two floats */
    static const int64_t id[] = {0};
    for (size_t i = 0; i < 3; i++) {
        bench b;
        bench_start(&b, 0);
        float y = 0;
        b.m->nblocks = 0;
        b.m->embedding.ids = true;
        b.m->embedding.vocab = 1;
        b.m->embedding.table = (pare_weight){PARE_F32, 1, 1, smallest};
        b.m->head.act = acts[i];
        bench_ready(&b, 1);
        const pare_input in = {.batch = 1, .tokens = 1, .ids = id};
        pare_enclosure e;
        assert_int_equal(pare_enclose(&e, b.a, b.m, b.norms, &in, NULL, NULL), PARE_OK);
        assert_int_equal(pare_forward_f32(&y, b.m, &in, NULL, NULL, NULL), PARE_OK);
        const double off = (double)q_abs(q_model(b.a, b.m, &in, 0).v[0] - (quad)y);
        assert_true(off > 1e-46);
        assert_le(off, e.rad32[0]);
        bench_end(&b);
    }
}

/* 0.1 added 5000 times drifts one way. */
static void long_means_are_counted(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double x[N];
    static const double one[] = {1};
    double f32;
    for (size_t i = 0; i < N; i++) x[i] = 0.1;
    bench b;
    bench_start(&b, 0);
    b.m->nblocks = 0;
    b.m->head.pool = PARE_POOL_MEAN;
    hold_small(&b, x, N, &f32);
    bench_end(&b);
    bench_start(&b, 0);
    b.m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = N, .sinks = 1};
    b.block.attn = (pare_attn){.kind = PARE_ATTN_UNIFORM, .din = 1, .dout = 1};
    b.block.attn.mix = (pare_weight){PARE_F64, 1, 1, one};
    b.m->head.pool = PARE_POOL_NONE;
    hold_small(&b, x, 2000, &f32);
    bench_end(&b);
}

/* One node that sees 5000 equal values: nothing but the weighted sum can be wrong. */
static void long_weighted_sums_are_counted(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double x[N];
    static size_t ptr[N + 1];
    static uint32_t idx[N];
    static const float one[] = {1}, zero[] = {0};
    bench b;
    bench_start(&b, 0);
    for (size_t i = 0; i < N; i++) {
        x[i] = (double)0.1f;
        idx[i] = (uint32_t)i;
        ptr[i + 1] = N;
    }
    const pare_graph g = {N, ptr, idx};
    b.m->pattern.kind = PARE_GRAPH;
    b.m->head.pool = PARE_POOL_FIRST;
    b.head = (pare_head){.dk = 1, .dv = 1, .scale = 1};
    b.block.attn =
        (pare_attn){.kind = PARE_ATTN_EXACT, .din = 1, .dout = 1, .nheads = 1, .heads = &b.head};
    b.block.attn.wq = b.block.attn.wk = (pare_weight){PARE_F32, 1, 1, zero};
    b.block.attn.wv = b.block.attn.wo = (pare_weight){PARE_F32, 1, 1, one};
    const pare_input in = {.batch = 1, .tokens = N, .width = 1, .x = x, .graph = &g};
    pare_enclosure e;
    float y;
    bench_ready(&b, N);
    assert_int_equal(pare_enclose(&e, b.a, b.m, b.norms, &in, NULL, NULL), PARE_OK);
    assert_int_equal(pare_forward_f32(&y, b.m, &in, NULL, NULL, NULL), PARE_OK);
    assert_true(fabs((double)y - x[0]) > 1e-6);
    assert_le(fabs((double)y - x[0]), e.rad32[0]);
    assert_le(fabs(e.mid[0] - x[0]), e.rad[0]);
    bench_end(&b);
}

/* Far positions: the angle itself is rounded. */
static void angles_of_far_positions_are_counted(void **state)
{
    (void)state;
    enum { N = 6000 };
    static double x[N * 6];
    static const double id[] = {1, 0, 0, 1}, turn[] = {0.9};
    double f32;
    bench b;
    bench_start(&b, 0);
    b.m->embedding.width = 6;
    b.m->nblocks = 0;
    b.m->embedding.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 3};
    hold_small(&b, x, N, &f32);
    bench_end(&b);
    for (size_t i = 0; i < 2 * N; i++) x[i] = i % 2 ? 30 : 0.1;
    x[1] = -30;
    bench_start(&b, 0);
    b.m->embedding.width = 2;
    b.m->embedding.pos.kind = PARE_POS_ROTARY;
    b.m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 1, .sinks = 1};
    b.head = (pare_head){.dk = 2, .dv = 2, .scale = 0.01, .planes = 1};
    b.block.attn =
        (pare_attn){.kind = PARE_ATTN_EXACT, .din = 2, .dout = 2, .nheads = 1, .heads = &b.head};
    const pare_weight w = {PARE_F64, 2, 2, id};
    b.block.attn.wq = b.block.attn.wk = b.block.attn.wv = b.block.attn.wo = w;
    b.block.attn.freqs = (pare_weight){PARE_F64, 1, 1, turn};
    hold_small(&b, x, N, &f32);
    bench_end(&b);
}

/* Two heads that turn the same queries, or the same keys by other angles: not said what that
 * means, so nothing is promised. */
static void shared_rows_that_turn_differently_are_open(void **state)
{
    (void)state;
    static const double w[] = {1, 0, 0, 1}, wo[] = {1, 0, 0, 1, 1, 0, 0, 1}, turn[] = {0.9, 0.3};
    static const double x[] = {1, 2, 3, 4};
    for (int shared = 0; shared < 3; shared++) {
        bench b;
        bench_start(&b, 0);
        pare_head heads[2] = {{.dk = 2, .dv = 2, .scale = 1, .planes = 1},
                              {.dk = 2, .dv = 2, .scale = 1, .planes = 1, .o = 2}};
        static const double twice[] = {1, 0, 0, 1, 1, 0, 0, 1};
        if (shared != 1) heads[1].q = 2; /* 1: the queries are shared */
        if (shared == 2) heads[1].freq = 1;
        b.m->embedding.width = 2;
        b.m->embedding.pos.kind = PARE_POS_ROTARY;
        b.block.attn =
            (pare_attn){.kind = PARE_ATTN_EXACT, .din = 2, .dout = 2, .nheads = 2, .heads = heads};
        b.block.attn.wq = (pare_weight){PARE_F64, 4, 2, twice};
        b.block.attn.wk = b.block.attn.wv = (pare_weight){PARE_F64, 2, 2, w};
        b.block.attn.wo = (pare_weight){PARE_F64, 2, 4, wo};
        b.block.attn.freqs = (pare_weight){PARE_F64, 1, 2, turn};
        const pare_input in = {.batch = 1, .tokens = 2, .width = 2, .x = x};
        pare_enclosure e;
        bench_ready(&b, 2);
        assert_int_equal(pare_enclose(&e, b.a, b.m, b.norms, &in, NULL, NULL), PARE_OK);
        assert_true(isinf(e.rad[0]) == (shared != 0) && isinf(e.rad32[1]) == (shared != 0));
        bench_end(&b);
    }
}

/* One step each that double-double must round: what is left of a third has no end. The radius must
 * be there, and be of the size of a few units. */
static void wide_steps_count_their_own_roundings(void **state)
{
    (void)state;
    static const double x[] = {1 / 3.0, -0.7, 0.1, 5.3}, var[] = {0.3, 7, 0.11};
    static const double w[] = {1 / 7.0, 0.9, -1 / 3.0, 0.77, 1 / 9.0, 0.5, 1 / 11.0, 0.3, 0.13};
    double f32, seen[9] = {0};
    for (int kind = 0; kind < 9; kind++) {
        bench b;
        bench_start(&b, 0);
        b.m->nblocks = 0;
        b.m->embedding.width = 3;
        b.m->embedding.norm = (pare_norm){.kind = PARE_NORM_RMS, .eps = 0.1, .divisor = 3};
        pare_model *const m = b.m;
        if (kind == 1) m->head.out.w = (pare_weight){PARE_F64, 3, 3, w};
        if (kind == 2) m->head.act = PARE_ACT_SILU;
        if (kind == 3) m->head.act = PARE_ACT_GELU;
        if (kind == 4) m->head.norm = (pare_norm){.kind = PARE_NORM_MEAN};
        if (kind == 5) m->embedding.norm.gain = (pare_weight){PARE_F64, 1, 3, w};
        if (kind == 6) {
            m->embedding.norm = (pare_norm){.kind = PARE_NORM_BATCH};
            m->embedding.norm.mean = (pare_weight){PARE_F64, 1, 3, w};
            m->embedding.norm.var = (pare_weight){PARE_F64, 1, 3, var};
        }
        if (kind == 7) m->embedding.norm.offset = (pare_weight){PARE_F64, 1, 3, w};
        if (kind == 8)
            m->embedding.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 10000};
        hold_small(&b, x, 1, &f32);
        const pare_input in = {.batch = 1, .tokens = 1, .width = 3, .x = x};
        pare_enclosure e;
        assert_int_equal(pare_enclose_dd(&e, b.a, m, b.norms, &in, NULL, NULL), PARE_OK);
        const qmat y = q_model(b.a, m, &in, 0);
        for (size_t i = 0; i < y.d; i++)
            seen[kind] = fmax(seen[kind], (double)q_abs(y.v[i] - (quad)e.mid[i] - (quad)e.lo[i]));
        assert_true(seen[kind] > 0x1p-112);
        assert_le(e.rad[0], (kind == 3 ? 300 : 60) * WIDE_UNIT);
        bench_end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rounding_each_is_counted),
        cmocka_unit_test(norms_count_their_own_roundings),
        cmocka_unit_test(squares_that_underflow_are_counted),
        cmocka_unit_test(activations_of_the_smallest_numbers_are_counted),
        cmocka_unit_test(long_means_are_counted),
        cmocka_unit_test(long_weighted_sums_are_counted),
        cmocka_unit_test(angles_of_far_positions_are_counted),
        cmocka_unit_test(wide_steps_count_their_own_roundings),
        cmocka_unit_test(shared_rows_that_turn_differently_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
