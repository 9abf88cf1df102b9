/* Tests src/quant/gptq.c: beside an implementation in numpy (tests/peers/gptq.py), and beside
 * rounding to nearest. */
#include "../base/numpy_run.h"
#include "base/array.h"
#include "linalg/matrix.h"
#include "quant/encode.h"
#include <math.h>

enum { SEED = 21, ROWS = 12, COLS = 40, SAMPLES = 160, GROUP = 16 };

typedef struct stage {
    pare_arena *a;
    float w[ROWS * COLS];
    pare_mat moments;
} stage;

/* Inputs that depend on one another and differ in size: what feedback lives on. */
static void open_stage(stage *s, uint64_t seed)
{
    pare_rng g = pare_rng_at(SEED, seed);
    s->a = pare_arena_new();
    assert_non_null(s->a);
    s->moments = pare_mat_new(s->a, COLS, COLS);
    pare_mat x = pare_mat_new(s->a, SAMPLES, COLS), hidden = pare_mat_new(s->a, SAMPLES, 8),
             mix = pare_mat_new(s->a, 8, COLS);
    assert_true(s->moments.v && x.v && hidden.v && mix.v);
    for (size_t i = 0; i < ROWS * COLS; i++) s->w[i] = (float)pare_rng_normal(&g);
    for (size_t i = 0; i < SAMPLES * 8; i++) hidden.v[i] = pare_rng_normal(&g);
    for (size_t i = 0; i < 8 * COLS; i++) mix.v[i] = pare_rng_normal(&g);
    pare_gemm(&x, 1, &hidden, false, &mix, false, 0);
    for (size_t i = 0; i < SAMPLES; i++)
        for (size_t j = 0; j < COLS; j++)
            x.v[i * COLS + j] = (x.v[i * COLS + j] + pare_rng_normal(&g)) * (1 + (double)(j % 5));
    pare_gemm(&s->moments, 1.0 / SAMPLES, &x, true, &x, false, 0);
}

static void make(pare_int_groups *g, float **made, stage *s, pare_quant_method method,
                 unsigned bits, bool affine)
{
    const quant_job job = {.rows = ROWS,
                           .cols = COLS,
                           .w = s->w,
                           .moments = &s->moments,
                           .method = method,
                           .bits = bits,
                           .group = GROUP,
                           .affine = affine};
    pare_coded c;
    pare_err err = {0};
    assert_ok(quant_matrix(&c, made, s->a, &job, &err), &err);
    assert_ok(pare_coded_integers(g, s->a, c.data, c.bytes, &err), &err);
}

/* tr(E H E^T): what the outputs move by. */
static double output_error(const stage *s, const float *made)
{
    double sum = 0;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < COLS; i++)
            for (size_t j = 0; j < COLS; j++)
                sum += ((double)s->w[r * COLS + i] - (double)made[r * COLS + i]) *
                       ((double)s->w[r * COLS + j] - (double)made[r * COLS + j]) *
                       s->moments.v[i * COLS + j];
    return sum;
}

static void save(const char *dir, const char *name, pare_dtype t, const void *v, size_t rows,
                 size_t cols)
{
    char path[300];
    pare_err err = {0};
    const pare_array array = {.dtype = t, .ndim = 2, .shape = {rows, cols}, .data = v};
    snprintf(path, sizeof path, "%s/%s.npy", dir, name);
    assert_ok(pare_npy_write(path, &array, true, &err), &err);
}

static void the_integers_are_those_of_numpy(void **state)
{
    (void)state;
    NEED_NUMPY();
    for (unsigned t = 0; t < 6; t++) {
        stage s;
        pare_int_groups g;
        float *made, zeros[ROWS * 3] = {0}, q[ROWS * COLS];
        char dir[200], path[300], text[300], out[400];
        const bool affine = t & 1;
        const unsigned bits = 2 + t / 2;
        open_stage(&s, t);
        make(&g, &made, &s, PARE_QUANT_GPTQ, bits, affine);
        for (size_t i = 0; i < ROWS * COLS; i++) q[i] = g.q[i];
        test_mkdir(dir);
        save(dir, "w", PARE_F32, s.w, ROWS, COLS);
        save(dir, "h", PARE_F64, s.moments.v, COLS, COLS);
        save(dir, "scale", PARE_F32, g.scale, ROWS, 3);
        save(dir, "offset", PARE_F32, affine ? g.offset : zeros, ROWS, 3);
        save(dir, "q", PARE_F32, q, ROWS, COLS);
        snprintf(text, sizeof text, "%d %d %d 0.01", GROUP, pare_int_groups_least(bits, affine),
                 pare_int_groups_most(bits, affine));
        test_write_file(test_path(path, dir, "numbers.txt"), text, strlen(text));
        snprintf(text, sizeof text, PYTHON " tests/peers/gptq.py '%s'", dir);
        FILE *const f = popen(text, "r");
        assert_true(f && fgets(out, sizeof out, f));
        assert_int_equal(pclose(f), 0);
        size_t differ;
        double ours, numpy, plain;
        assert_int_equal(sscanf(out, "%zu %lf %lf %lf", &differ, &ours, &numpy, &plain), 4);
        print_message("%u bits: %zu of %d integers differ, errors %.4g %.4g, nearest %.4g\n", bits,
                      differ, ROWS * COLS, ours, numpy, plain);
        assert_int_equal(differ, 0);
        assert_near(output_error(&s, made), ours, 1e-4 * ours);
        assert_le(ours, 0.5 * plain);
        pare_arena_free(s.a);
        test_rmdir(dir);
    }
}

static void outputs_are_nearer_than_by_rounding_to_nearest(void **state)
{
    (void)state;
    for (unsigned bits = 2; bits <= 8; bits++)
        for (int affine = 0; affine < 2; affine++) {
            stage s;
            pare_int_groups g;
            float *by[2];
            open_stage(&s, bits);
            make(&g, &by[0], &s, PARE_QUANT_RTN, bits, affine);
            make(&g, &by[1], &s, PARE_QUANT_GPTQ, bits, affine);
            assert_le(output_error(&s, by[1]), 0.7 * output_error(&s, by[0]));
            pare_arena_free(s.a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_integers_are_those_of_numpy),
        cmocka_unit_test(outputs_are_nearer_than_by_rounding_to_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
