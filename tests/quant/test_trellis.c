/* Tests src/quant/trellis.c: matrices as paths: how near, how many bytes, the same for any number of
 * threads, and weighted as they are asked to be. */
#include "linalg/matrix.h"
#include "quant/trellis.h"
#include <math.h>
#include <pare_test.h>

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

static float *normal(size_t rows, size_t cols, uint64_t seed)
{
    float *const w = pare_alloc(arena, rows * cols, sizeof *w);
    pare_rng r = pare_rng_at(21, seed);
    assert_true(w);
    for (size_t i = 0; i < rows * cols; i++) w[i] = (float)pare_rng_normal(&r);
    return w;
}

static const float *encode(pare_coded *coded, const trellis_job *job)
{
    float *out = NULL;
    pare_err err = {0};
    assert_ok(trellis_matrix(coded, &out, arena, job, &err), &err);
    assert_int_equal(coded->bytes, trellis_bytes(job->rows, job->cols, job->bits, job->each_row));
    return out;
}

/* |E|^2 / |W|^2 over rows first .. first + n - 1. */
static double error_of(const trellis_job *job, const float *out, size_t first, size_t n)
{
    double e = 0, of = 0;
    for (size_t i = first * job->cols; i < (first + n) * job->cols; i++) {
        const double gap = (double)job->w[i] - (double)out[i];
        e += gap * gap;
        of += (double)job->w[i] * (double)job->w[i];
    }
    return e / of;
}

/* Shannon: no code of B bits does better than 4^-B on normal weights; 4096 states come within a
 * third of it at 4 bits, and side information is as little as it says. */
static void normal_weights_come_near_shannons_limit(void **state)
{
    (void)state;
    static const double bits[] = {1.5, 2, 2.625, 3, 4, 6};
    static const double most[] = {1.18, 1.2, 1.25, 1.28, 1.37, 2}; /* times the limit */
    for (size_t k = 0; k < sizeof bits / sizeof *bits; k++) {
        const trellis_job job = {.rows = 256,
                                 .cols = 80,
                                 .w = normal(256, 80, k),
                                 .bits = bits[k],
                                 .state_bits = 12,
                                 .deviation = 1,
                                 .seed = k};
        pare_coded c;
        const double e = error_of(&job, encode(&c, &job), 0, job.rows);
        print_message("%g bits: %.5f, Shannon %.5f\n", bits[k], e, pow(4, -bits[k]));
        assert_le(pow(4, -bits[k]), e);
        assert_le(e, most[k] * pow(4, -bits[k]));
        assert_le(8 * (double)c.bytes / (256 * 80), bits[k] + 0.07);
    }
}

static void bytes_do_not_depend_on_threads(void **state)
{
    (void)state;
    const pare_mat m = pare_mat_new(arena, 48, 48);
    pare_rng r = pare_rng_at(22, 0);
    for (size_t i = 0; i < 48; i++)
        for (size_t j = 0; j <= i; j++)
            m.v[i * 48 + j] = m.v[j * 48 + i] = i == j ? 3 + (double)i : pare_rng_uniform(&r);
    for (int each = 0; each < 2; each++) {
        pare_coded c[3];
        for (int threads = 1; threads <= 3; threads++) {
            const pare_exec exec = {.threads = threads};
            const trellis_job job = {.rows = 700,
                                     .cols = 48,
                                     .w = normal(700, 48, 5),
                                     .bits = 2.5,
                                     .state_bits = 10,
                                     .rotate = true,
                                     .each_row = each,
                                     .moments = &m,
                                     .seed = 4,
                                     .exec = &exec};
            encode(&c[threads - 1], &job);
            assert_int_equal(c[threads - 1].bytes, c[0].bytes);
            assert_memory_equal(c[threads - 1].data, c[0].data, c[0].bytes);
        }
    }
}

/* Without rotation outliers take the code's range; with it every matrix looks normal. */
static void rotation_makes_outliers_harmless(void **state)
{
    (void)state;
    float *const w = normal(128, 96, 6);
    for (size_t j = 0; j < 96; j += 12)
        for (size_t i = 0; i < 128; i++) w[i * 96 + j] *= 12;
    trellis_job job = {.rows = 128, .cols = 96, .w = w, .bits = 3, .state_bits = 11, .seed = 1};
    pare_coded c;
    const double plain = error_of(&job, encode(&c, &job), 0, 128);
    job.rotate = true;
    const double rotated = error_of(&job, encode(&c, &job), 0, 128);
    print_message("error %.4f, rotated %.4f\n", plain, rotated);
    assert_le(rotated, 1.35 / 64);
    assert_le(1.3 * rotated, plain);
}

/* tr(E M E^T) */
static double cost_of(const trellis_job *job, const float *out, const pare_mat *m)
{
    double sum = 0;
    for (size_t i = 0; i < job->rows; i++)
        for (size_t j = 0; j < job->cols; j++)
            for (size_t k = 0; k < job->cols; k++) {
                const size_t a = i * job->cols + j, b = i * job->cols + k;
                sum += ((double)job->w[a] - (double)out[a]) * ((double)job->w[b] - (double)out[b]) *
                       pare_row(m, j)[k];
            }
    return sum;
}

static void feedback_brings_the_outputs_nearer(void **state)
{
    (void)state;
    enum { N = 64, ROWS = 160 };
    pare_mat y = pare_mat_new(arena, 300, N), m = pare_mat_new(arena, N, N);
    pare_rng r = pare_rng_at(23, 0);
    for (size_t i = 0; i < y.rows; i++) { /* of a few strong directions, with a mean */
        const double common = pare_rng_normal(&r) + 1;
        for (size_t j = 0; j < N; j++)
            pare_row_mut(&y, i)[j] = 2 * common + (j % 5 ? 0.3 : 1.5) * pare_rng_normal(&r);
    }
    pare_gemm(&m, 1.0 / 300, &y, true, &y, false, 0);
    trellis_job job = {.rows = ROWS,
                       .cols = N,
                       .w = normal(ROWS, N, 8),
                       .bits = 2.25,
                       .state_bits = 11,
                       .rotate = true,
                       .seed = 2};
    pare_coded c;
    const float *out = encode(&c, &job);
    const double without = cost_of(&job, out, &m);
    job.moments = &m;
    out = encode(&c, &job);
    const double with = cost_of(&job, out, &m);
    print_message("outputs' error %.3f without feedback, %.3f with it\n", without, with);
    assert_le(3 * with, without);
}

static void rows_of_embeddings_have_scales_and_worths_of_their_own(void **state)
{
    (void)state;
    float *const w = normal(512, 48, 9);
    double *const worth = pare_alloc(arena, 512, sizeof *worth);
    for (size_t i = 0; i < 512; i++) {
        worth[i] = i % 4 ? 0.25 : 1;
        for (size_t j = 0; j < 48; j++) w[i * 48 + j] *= i < 256 ? 1 : 0.01f;
    }
    trellis_job job = {.rows = 512,
                       .cols = 48,
                       .w = w,
                       .bits = 3,
                       .state_bits = 11,
                       .seed = 3,
                       .rotate = true,
                       .each_row = true};
    pare_coded c;
    const float *out = encode(&c, &job);
    assert_le(error_of(&job, out, 0, 256), 1.3 / 64);
    assert_le(error_of(&job, out, 256, 256), 1.5 / 64); /* small rows are met as well */
    job.worth = worth;
    out = encode(&c, &job);
    double e[2] = {0};
    for (size_t i = 0; i < 256; i++)
        e[i % 4 == 0] += error_of(&job, out, i, 1) / (i % 4 ? 192 : 64);
    print_message("errors of rows of worth 1 and 0.25: %.4f %.4f\n", e[1], e[0]);
    assert_le(1.2 * e[1], e[0]);
}

static void what_is_too_small_or_too_large_is_refused(void **state)
{
    (void)state;
    assert_false(trellis_possible(1, 4, 2));
    assert_true(trellis_possible(1, 8, 2));
    assert_false(trellis_possible(0, 8, 2));
    float w[32];
    for (size_t i = 0; i < 32; i++) w[i] = 1e30f;
    pare_coded c;
    float *out;
    pare_err err = {0};
    const trellis_job job = {.rows = 4, .cols = 8, .w = w, .bits = 3, .state_bits = 10};
    assert_status(trellis_matrix(&c, &out, arena, &job, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "no scale from 2^-64 to 2^64 fits");
}

/* Zeros have a deviation of 0: they come back as zeros. */
static void zeros_stay_zeros(void **state)
{
    (void)state;
    static const float w[16 * 16];
    const trellis_job job = {
        .rows = 16, .cols = 16, .w = w, .bits = 2, .state_bits = 10, .rotate = true};
    pare_coded c;
    const float *const out = encode(&c, &job);
    for (size_t i = 0; i < 256; i++) assert_true(out[i] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_weights_come_near_shannons_limit),
        cmocka_unit_test(bytes_do_not_depend_on_threads),
        cmocka_unit_test(rotation_makes_outliers_harmless),
        cmocka_unit_test(feedback_brings_the_outputs_nearer),
        cmocka_unit_test(rows_of_embeddings_have_scales_and_worths_of_their_own),
        cmocka_unit_test(what_is_too_small_or_too_large_is_refused),
        cmocka_unit_test(zeros_stay_zeros),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
