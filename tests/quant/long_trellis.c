/* Tests src/quant/trellis.c at its usual setting: a million normal weights at 4, 3 and 2 bits, the
 * scale fixed beforehand, are met within .0050, .0190 and .070 with at most .07 bits of side
 * information a weight. */
#include "quant/trellis.h"
#include <pare_test.h>

static void a_million_weights_are_met_as_docs_say(void **state)
{
    (void)state;
    enum { N = 1000 };
    static const double bits[] = {4, 3, 2}, most[] = {0.0050, 0.0190, 0.070};
    pare_arena *const a = pare_arena_new();
    float *const w = pare_alloc(a, N * N, sizeof *w);
    pare_rng r = pare_rng_at(31, 0);
    assert_true(a && w);
    for (size_t i = 0; i < N * N; i++) w[i] = (float)pare_rng_normal(&r);
    for (int k = 0; k < 3; k++) {
        const pare_exec exec = {.threads = 2};
        const trellis_job job = {.rows = N,
                                 .cols = N,
                                 .w = w,
                                 .bits = bits[k],
                                 .deviation = 1,
                                 .seed = 5,
                                 .exec = &exec};
        pare_coded c;
        pare_err err = {0};
        float *out = NULL;
        double e = 0, of = 0;
        assert_ok(trellis_matrix(&c, &out, a, &job, &err), &err);
        for (size_t i = 0; i < N * N; i++) {
            const double gap = (double)w[i] - (double)out[i];
            e += gap * gap;
            of += (double)w[i] * (double)w[i];
        }
        print_message("%g bits: %.5f, %.4f bits stored\n", bits[k], e / of,
                      8 * (double)c.bytes / (N * N));
        assert_le(e / of, most[k]);
        assert_le(8 * (double)c.bytes / (N * N), bits[k] + 0.07);
    }
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_weights_are_met_as_docs_say)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
