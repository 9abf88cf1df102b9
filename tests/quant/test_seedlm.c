/* Tests src/quant/seedlm.c and src/model/coded_seeds.c: the nearest seed, its bytes, and what they
 * expand to. */
#include "base/simd.h"
#include "model/seeds.h"
#include "model/ticket_codec.h"
#include "quant/seedlm.h"
#include <math.h>
#include <pare/pare.h>
#include <pare_test.h>
#include <zlib.h>

enum { SEED = 5, HEAD = 48 };
#define GOLDEN 0xdaf30437u
static pare_arena *arena;

static int set_up(void **state)
{
    (void)state;
    return (arena = pare_arena_new()) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    pare_arena_free(arena);
    return 0;
}

static float *normal(size_t n, uint64_t stream)
{
    pare_rng r = pare_rng_at(SEED, stream);
    float *const w = pare_alloc(arena, n, sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < n; i++) w[i] = (float)pare_rng_normal(&r);
    return w;
}

static float *encode(pare_coded *c, const float *w, size_t rows, size_t cols, unsigned bits)
{
    const quant_job job = {.rows = rows, .cols = cols, .w = w, .bits = bits};
    pare_err err = {0};
    float *out = NULL;
    assert_ok(seedlm_matrix(c, &out, arena, &job, &err), &err);
    assert_int_equal(c->bytes, seedlm_bytes(rows, cols, bits));
    return out;
}

static double relative(const float *w, const float *is, size_t n)
{
    double error = 0, of = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)w[i] - (double)is[i]) * ((double)w[i] - (double)is[i]);
        of += (double)w[i] * (double)w[i];
    }
    return error / of;
}

/* The figures of the method, from a program in numpy: .01539 and .05049 of 6144 weights. */
static void errors_of_normal_weights_are_those_of_the_method(void **state)
{
    (void)state;
    enum { ROWS = 96, COLS = 96 };
    static const double limits[][2] = {[2] = {0.155, 0.165},
                                       [3] = {0.0495, 0.0512},
                                       [4] = {0.0148, 0.0157},
                                       [5] = {0.0033, 0.0037}};
    const float *const w = normal(ROWS * COLS, 0);
    for (unsigned bits = 2; bits <= 5; bits++) {
        pare_coded c;
        const float *const is = encode(&c, w, ROWS, COLS, bits);
        const double e = relative(w, is, ROWS * COLS);
        assert_true(e > limits[bits][0] && e < limits[bits][1]);
        assert_int_equal(c.bytes, HEAD + 4 + ROWS * COLS * bits / 8 + 4);
    }
}

/* ---- the search ------------------------------------------------------------------------------ */

/* x of A x = b, three unknowns, by Cramer's rule. */
static double det3(double a[3][3])
{
    return a[0][0] * (a[1][1] * a[2][2] - a[1][2] * a[2][1]) -
           a[0][1] * (a[1][0] * a[2][2] - a[1][2] * a[2][0]) +
           a[0][2] * (a[1][0] * a[2][1] - a[1][1] * a[2][0]);
}

/* The squared error of a block of 8 under this seed, by the normal equations. */
static double error_under(const float *w, uint32_t seed)
{
    double u[8][3], a[3][3] = {{0}}, b[3] = {0}, t[3], most = 0, error = 0;
    for (size_t i = 0; i < 8; i++)
        for (size_t p = 0; p < 3; p++) {
            seed = seeds_next(seed);
            u[i][p] = (double)seed / 0x1p15 - 1;
        }
    for (size_t i = 0; i < 8; i++)
        for (size_t p = 0; p < 3; p++) {
            b[p] += u[i][p] * (double)w[i];
            for (size_t k = 0; k < 3; k++) a[p][k] += u[i][p] * u[i][k];
        }
    const double d = det3(a);
    if (!(fabs(d) > 1e-6)) return INFINITY;
    for (size_t p = 0; p < 3; p++) {
        double changed[3][3];
        memcpy(changed, a, sizeof a);
        for (size_t k = 0; k < 3; k++) changed[k][p] = b[k];
        t[p] = det3(changed) / d;
        most = fmax(most, fabs(t[p]));
    }
    const double unit = exp2(ceil(log2(most / 7.5)));
    for (size_t i = 0; i < 8; i++) {
        double is = 0;
        for (size_t p = 0; p < 3; p++)
            is += fmax(-8, fmin(7, nearbyint(t[p] / unit))) * unit * u[i][p];
        error += ((double)w[i] - is) * ((double)w[i] - is);
    }
    return error;
}

static void no_seed_comes_nearer_than_the_one_that_is_taken(void **state)
{
    (void)state;
    enum { BLOCKS = 6 };
    const float *const w = normal(BLOCKS * 8, 1);
    pare_coded c;
    const float *const is = encode(&c, w, BLOCKS, 8, 4);
    for (size_t k = 0; k < BLOCKS; k++) {
        double least = INFINITY, error = 0;
        for (uint32_t seed = 1; seed <= SEEDS_STATES; seed++)
            least = fmin(least, error_under(w + 8 * k, seed));
        for (size_t i = 8 * k; i < 8 * k + 8; i++)
            error += ((double)w[i] - (double)is[i]) * ((double)w[i] - (double)is[i]);
        assert_near(error / least, 1, 1e-5);
    }
}

/* Of the k-th instruction set; NULL where this machine lacks it. */
static seedlm_scan_fn *scan_of(int k)
{
#if defined(__x86_64__)
    if (k == 1 && simd_best() >= SIMD_AVX2) return seedlm_avx2;
    if (k == 2 && simd_best() >= SIMD_AVX512) return seedlm_avx512;
#endif
    return k == 0 ? seedlm_portable : NULL;
}

static void every_instruction_set_finds_the_same_spans(void **state)
{
    (void)state;
    enum { N = 8, P = 3, MOST = SEEDLM_TILE * SEEDLM_LANES * SEEDLM_TOGETHER };
    static seedlm_hit hit[3][MOST];
    static const float least[SEEDLM_TOGETHER] = {6, 10, 14, 30};
    const seedlm_scan s = {.shape = {N, P},
                           .basis = normal(SEEDLM_TILE * SEEDLM_LANES * N * P, 2),
                           .groups = SEEDLM_TILE,
                           .w = normal(SEEDLM_TOGETHER * N, 3),
                           .least = least};
    size_t n[3] = {0};
    for (int k = 0; k < 3; k++) {
        seedlm_scan_fn *const scan = scan_of(k);
        if (!scan) continue;
        const size_t all = scan(hit[k], &s);
        for (size_t i = 0; i < all; i++) /* those on the edge are anybody's */
            if (hit[k][i].share > least[hit[k][i].block] + 1e-3f) hit[k][n[k]++] = hit[k][i];
        assert_true(n[k] > 100 && n[k] < MOST && n[k] == n[0]);
    }
    for (int k = 1; k < 3; k++)
        for (size_t i = 0; scan_of(k) && i < n[0]; i++) { /* each list in its own order */
            size_t j = 0;
            while (j < n[k] &&
                   (hit[k][j].block != hit[0][i].block || hit[k][j].seed != hit[0][i].seed))
                j++;
            assert_true(j < n[k]);
            assert_near((double)hit[k][j].share, (double)hit[0][i].share, 1e-4);
        }
}

static void shapes_that_do_not_divide_and_odd_weights_are_taken(void **state)
{
    (void)state;
    static const size_t shape[][2] = {{1, 1}, {3, 7}, {1, 33}, {65, 17}};
    for (size_t k = 0; k < sizeof shape / sizeof *shape; k++)
        for (unsigned bits = 2; bits <= 6; bits += 2) {
            const size_t n = shape[k][0] * shape[k][1];
            float *const w = normal(n, 10 + k);
            pare_coded c;
            for (size_t i = 0; i < n; i++) w[i] *= 0x1p-40f;
            const float *const is = encode(&c, w, shape[k][0], shape[k][1], bits);
            assert_true(relative(w, is, n) < (bits == 2 ? 0.3 : 0.05));
        }
    float zeros[20] = {0}, mixed[16] = {0};
    pare_coded c;
    const float *is = encode(&c, zeros, 4, 5, 4);
    for (size_t i = 0; i < 20; i++) assert_true(is[i] == 0);
    for (size_t i = 0; i < 8; i++)
        mixed[i] = (float)i, mixed[8 + i] = 1e-20f; /* far too small beside */
    is = encode(&c, mixed, 2, 8, 4);
    assert_true(relative(mixed, is, 16) < 0.05);
    pare_err err = {0};
    float *out = NULL;
    for (size_t i = 0; i < 20; i++) zeros[i] = 0x1p-90f;
    const quant_job job = {.rows = 4, .cols = 5, .w = zeros, .bits = 4};
    assert_status(seedlm_matrix(&c, &out, arena, &job, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "no scale");
}

static void threads_do_not_change_a_byte(void **state)
{
    (void)state;
    enum { ROWS = 40, COLS = 31 };
    float *const w = pare_alloc(arena, ROWS * COLS, sizeof *w);
    pare_rng r = pare_rng_at(SEED, 4);
    pare_coded c[2];
    assert_non_null(w);
    for (size_t i = 0; i < ROWS * COLS; i++) w[i] = (float)(pare_rng_u32(&r) >> 8) - 0x1p23f;
    for (size_t k = 0; k < 2; k++) {
        const pare_exec exec = {.threads = 3};
        const quant_job job = {
            .rows = ROWS, .cols = COLS, .w = w, .bits = 3, .exec = k ? &exec : NULL};
        pare_err err = {0};
        float *out = NULL;
        assert_ok(seedlm_matrix(&c[k], &out, arena, &job, &err), &err);
    }
    assert_int_equal(c[0].bytes, c[1].bytes);
    assert_memory_equal(c[0].data, c[1].data, c[0].bytes);
    /* On any machine: the choice is made in f64. */
    assert_int_equal(crc32_z(0, c[0].data, c[0].bytes - 4), GOLDEN);
}

/* ---- the bytes ------------------------------------------------------------------------------- */

static void the_register_comes_back_after_all_states(void **state)
{
    (void)state;
    uint32_t s = 1, steps = 0;
    do s = seeds_next(s), steps++;
    while (s != 1);
    assert_int_equal(steps, SEEDS_STATES);
}

static pare_status expand(pare_weight *w, const uint8_t *body, size_t bytes, uint32_t cols,
                          uint32_t n, pare_err *err)
{
    pare_coded c;
    const pare_coded_head h = {
        .kind = PARE_CODED_SEEDS, .rows = 1, .cols = cols, .n = n, .exponent = -6};
    const ticket_body b = {body, bytes};
    assert_ok(ticket_frame(&c, arena, &h, &b, err), err);
    return pare_coded_expand(w, NULL, arena, c.data, c.bytes, 0, err);
}

/* Two blocks, the second one shorter; numbers by a program in Python. */
static const uint8_t known[] = {2, 0, 0, 0, 0xe1, 0xac, 0xbf, 0x10, 0x00, 0x30, 0xf7};

static void known_bytes_have_known_numbers(void **state)
{
    (void)state;
    static const float numbers[] = {-1881.75f,    2217.5625f, -1621.546875f,
                                    2282.671875f, -0.4375f,   -0.671875f};
    pare_weight w;
    pare_err err = {0};
    assert_ok(expand(&w, known, sizeof known, 6, 4, &err), &err);
    assert_memory_equal(w.data, numbers, sizeof numbers);
}

static void impossible_bytes_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t value;
        const char *says;
    } cases[] = {{0, 0, "blocks of 0 columns"},
                 {0, 9, "blocks of 9 columns"},
                 {0, 3, "must be"},
                 {3, 1, "columns"},
                 {0, 1, "must be"}};
    uint8_t copy[sizeof known];
    pare_weight w;
    pare_err err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(copy, known, sizeof known);
        copy[cases[i].at] = cases[i].value;
        assert_status(expand(&w, copy, sizeof copy, 6, 4, &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, cases[i].says);
    }
    memcpy(copy, known, sizeof known);
    copy[4] = copy[5] = 0;
    assert_status(expand(&w, copy, sizeof copy, 6, 4, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "block 0 has the seed 0");
    for (size_t n = 0; n < 66; n += n ? 62 : 1) { /* 0, 1, 63: too many blocks or too few */
        assert_status(expand(&w, known, sizeof known, 6, (uint32_t)n, &err), PARE_ERR_INPUT, &err);
    }
    assert_status(expand(&w, known, sizeof known, 65, 65, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "blocks of 65 weights");
    assert_status(expand(&w, known, 3, 6, 4, &err), PARE_ERR_INPUT, &err);
    assert_status(expand(&w, known, sizeof known, 1u << 31, 4, &err), PARE_ERR_INPUT, &err);
    /* One column: 24 bits a block, no idle ones; three of 32; two of 28, one block: 4 idle bits. */
    static const uint8_t idle[] = {2, 0, 0, 0, 0xe1, 0xac, 0xbf, 0x10};
    assert_status(expand(&w, idle, sizeof idle, 4, 4, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "unused bits");
    /* A header that says more than the kind has. */
    pare_coded c;
    const pare_coded_head heads[] = {
        {.kind = PARE_CODED_SEEDS, .rows = 1, .cols = 6, .n = 4, .flags = 1},
        {.kind = PARE_CODED_SEEDS, .rows = 1, .cols = 6, .n = 4, .seed = 1},
        {.kind = PARE_CODED_SEEDS, .rows = 1, .cols = 6, .n = 4, .stream = 1}};
    const ticket_body b = {known, sizeof known};
    for (size_t i = 0; i < 3; i++) {
        assert_ok(ticket_frame(&c, arena, &heads[i], &b, &err), &err);
        assert_status(pare_coded_expand(&w, NULL, arena, c.data, c.bytes, 0, &err), PARE_ERR_INPUT,
                      &err);
        assert_contains(err.msg, "seeds of their own");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_normal_weights_are_those_of_the_method),
        cmocka_unit_test(no_seed_comes_nearer_than_the_one_that_is_taken),
        cmocka_unit_test(every_instruction_set_finds_the_same_spans),
        cmocka_unit_test(shapes_that_do_not_divide_and_odd_weights_are_taken),
        cmocka_unit_test(threads_do_not_change_a_byte),
        cmocka_unit_test(the_register_comes_back_after_all_states),
        cmocka_unit_test(known_bytes_have_known_numbers),
        cmocka_unit_test(impossible_bytes_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
