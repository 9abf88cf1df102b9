/* Tests src/train/adamw.c: the optimizer against a few plain lines in f64, and clipping. */
#include "train/optimizer.h"
#include "train/adamw.h"
#include <pare_test.h>

enum { COUNT = 40000, STEPS = 100 };

/* A matrix, a vector, a matrix that begins off every lane: side by side. */
static const pare_slot slots[3] = {
    {"a", 0, 100, 133, false}, {"b", 13300, 1, 17, true}, {"c", 13317, 1, COUNT - 13317, false}};

typedef struct state {
    float x[COUNT], m[COUNT], v[COUNT], g[COUNT];
} opt_state;

static void fill(float *x, size_t n, uint64_t seed, uint64_t stream)
{
    pare_rng g = pare_rng_at(seed, stream);
    for (size_t i = 0; i < n; i++) x[i] = (float)pare_rng_normal(&g);
}

static void run(opt_state *s, const pare_adamw_opts *o, size_t steps, int threads)
{
    const pare_exec exec = {.threads = threads};
    pare_slot copy[3];
    memcpy(copy, slots, sizeof copy);
    pare_params p = {.dtype = PARE_F32, .count = COUNT, .nslots = 3, .slots = copy, .values = s->x};
    memset(s->m, 0, sizeof s->m);
    memset(s->v, 0, sizeof s->v);
    fill(s->x, COUNT, 1, 0);
    for (size_t t = 1; t <= steps; t++) {
        fill(s->g, COUNT, 2, t);
        pare_adamw_step(&p, s->g, &(pare_adamw_state){.m = s->m, .v = s->v, .step = t}, 1e-2, o,
                        &exec);
    }
}

/* The book, number by number. */
static double book(size_t i, const pare_adamw_opts *o, size_t steps)
{
    const bool vector = i >= 13300 && i < 13317;
    const double decay = vector && !o->decay_vectors ? 0 : o->weight_decay, lr = 1e-2;
    static float g[COUNT];
    double x, m = 0, v = 0;
    fill(g, i + 1, 1, 0);
    x = (double)g[i];
    for (size_t t = 1; t <= steps; t++) {
        fill(g, i + 1, 2, t);
        const double d = (double)g[i];
        m = o->beta1 * m + (1 - o->beta1) * d;
        v = o->beta2 * v + (1 - o->beta2) * d * d;
        const double mh = m / (1 - pow(o->beta1, (double)t)),
                     vh = v / (1 - pow(o->beta2, (double)t));
        x -= lr * (mh / (sqrt(vh) + o->eps) + decay * x);
    }
    return x;
}

static void a_hundred_steps_are_those_of_the_book(void **state)
{
    (void)state;
    static opt_state s;
    const size_t at[] = {0, 1, 15, 16, 13299, 13300, 13316, 13317, 16383, 16384, COUNT - 1};
    for (int all = 0; all < 2; all++) {
        pare_adamw_opts o = PARE_ADAMW_OPTS_DEFAULT;
        o.weight_decay = 0.5; /* so that it shows */
        o.eps = 1e-3;
        o.decay_vectors = all;
        run(&s, &o, STEPS, 1);
        for (size_t i = 0; i < sizeof at / sizeof *at; i++)
            assert_near(s.x[at[i]], book(at[i], &o, STEPS), 2e-6);
    }
}

static void decay_leaves_vectors_alone(void **state)
{
    (void)state;
    static opt_state s;
    pare_adamw_opts o = PARE_ADAMW_OPTS_DEFAULT;
    o.weight_decay = 10;
    memset(&s, 0, sizeof s);
    pare_slot copy[3];
    memcpy(copy, slots, sizeof copy);
    pare_params p = {.dtype = PARE_F32, .count = COUNT, .nslots = 3, .slots = copy, .values = s.x};
    for (size_t i = 0; i < COUNT; i++) s.x[i] = 1;
    pare_adamw_step(&p, s.g, &(pare_adamw_state){.m = s.m, .v = s.v, .step = 1}, 0.05, &o,
                    NULL); /* no gradient: decay alone */
    for (size_t i = 0; i < COUNT; i++) assert_near(s.x[i], i >= 13300 && i < 13317 ? 1 : 0.5, 1e-7);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    static opt_state one, more;
    const pare_adamw_opts o = PARE_ADAMW_OPTS_DEFAULT;
    run(&one, &o, 10, 1);
    for (int threads = 2; threads <= 4; threads++) {
        run(&more, &o, 10, threads);
        assert_memory_equal(&one, &more, sizeof one);
    }
}

static void instruction_sets_change_no_bit(void **state)
{
    (void)state;
    static opt_state want, got;
    adamw_variant v[3];
    const size_t n = adamw_variants(v);
    const adamw_rates r = {.b1 = 0.9f,
                           .a1 = 0.1f,
                           .b2 = 0.999f,
                           .a2 = 1e-3f,
                           .eps = 1e-8f,
                           .lr = 0.1f,
                           .root = 3,
                           .decay = 0.01f};
    for (size_t k = 0; k < n; k++)
        for (size_t len = 0; len < 70; len++) {
            opt_state *const s = k == n - 1 ? &want : &got;
            for (size_t w = 0; w < 2; w++) {
                opt_state *const x = w ? &want : s;
                fill(x->x, 80, 1, 1), fill(x->m, 80, 1, 2), fill(x->g, 80, 1, 3);
                for (size_t i = 0; i < 80; i++) x->v[i] = x->g[i] * x->g[i];
                v[w ? n - 1 : k].run((adamw_piece){x->x, x->m, x->v, x->g}, len, &r);
            }
            assert_memory_equal(s->x, want.x, 80 * sizeof(float));
            assert_memory_equal(s->m, want.m, 80 * sizeof(float));
            assert_memory_equal(s->v, want.v, 80 * sizeof(float));
        }
}

static void clipping_keeps_the_direction_and_the_norm(void **state)
{
    (void)state;
    static float g[5000], old[5000];
    fill(g, 5000, 7, 7);
    memcpy(old, g, sizeof g);
    double want = 0, got = 0;
    for (size_t i = 0; i < 5000; i++) want += (double)g[i] * (double)g[i];
    want = sqrt(want);
    assert_near(pare_clip(g, 5000, 0, NULL), want, 1e-12 * want);
    assert_memory_equal(g, old, sizeof g); /* 0: no clip */
    assert_near(pare_clip(g, 5000, 2 * want, NULL), want, 1e-12 * want);
    assert_memory_equal(g, old, sizeof g); /* short enough */
    const pare_exec two = {.threads = 2};
    assert_near(pare_clip(g, 5000, 0.5, &two), want, 1e-12 * want);
    for (size_t i = 0; i < 5000; i++) {
        got += (double)g[i] * (double)g[i];
        assert_near(g[i], (double)old[i] * 0.5 / want, 1e-6);
    }
    assert_near(sqrt(got), 0.5, 1e-6);
}

static void large_gradients_do_not_overflow_and_bad_ones_are_left_alone(void **state)
{
    (void)state;
    float g[3] = {3e38f, -3e38f, 0}, bad[3] = {1, NAN, 2}, over[3] = {1, INFINITY, 2};
    assert_near(pare_clip(g, 3, 1, NULL), 3e38 * sqrt(2), 1e32);
    assert_near(g[0], sqrt(0.5), 1e-6);
    assert_true(isnan(pare_clip(bad, 3, 1, NULL)));
    assert_true(isinf(pare_clip(over, 3, 1, NULL)));
    assert_true(bad[0] == 1 && bad[2] == 2 && over[0] == 1 && over[2] == 2);
    assert_true(pare_clip(g, 0, 1, NULL) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hundred_steps_are_those_of_the_book),
        cmocka_unit_test(decay_leaves_vectors_alone),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(instruction_sets_change_no_bit),
        cmocka_unit_test(clipping_keeps_the_direction_and_the_norm),
        cmocka_unit_test(large_gradients_do_not_overflow_and_bad_ones_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
