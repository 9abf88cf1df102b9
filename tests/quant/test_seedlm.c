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

static void errors_of_normal_weights_are_those_of_the_method(void **state)
{
    (void)state;
    enum { ROWS = 96, COLS = 96 };
    const float *const w = normal(ROWS * COLS, 0);
    for (unsigned bits = 2; bits <= 8; bits++) {
        pare_coded c;
        const float *const is = encode(&c, w, ROWS, COLS, bits);
        printf("bits %u: %.5f\n", bits, relative(w, is, ROWS * COLS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_normal_weights_are_those_of_the_method),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
