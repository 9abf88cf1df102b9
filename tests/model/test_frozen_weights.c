/* Tests src/model/frozen_weights.c. The expected integers are those of a few lines of Python. */
#include "model/frozen.h"
#include <pare_test.h>

#define SEED   20240229
#define STREAM 0x0001000200030000

static pare_frozen frozen(pare_frozen_kind kind, double std)
{
    return (pare_frozen){kind, SEED, STREAM, pare_frozen_unit(kind, std)};
}

static uint32_t bits(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

static void weights_are_the_same_bits_on_every_machine(void **state)
{
    (void)state;
    static const uint32_t want[6] = {0xbcf5e6b6, 0x3c4dc043, 0x3c9aa798,
                                     0xbc8dfcdc, 0xbcd56195, 0xb8f2349f};
    static const char sign[] = "-+--++----++";
    pare_frozen f = frozen(PARE_FROZEN_NORMAL, 0.02);
    float w[12];
    assert_int_equal(bits(f.unit), 0x34c8a986);
    pare_frozen_fill(w, &f, 0, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(bits(w[i]), want[i]);
    f.unit = 1;
    pare_frozen_fill(w, &f, UINT64_C(5000000000), 1); /* a block beyond 32 bits */
    assert_true(w[0] == -38957);
    f = frozen(PARE_FROZEN_SIGNED, 0.25);
    pare_frozen_fill(w, &f, 0, 12);
    for (int i = 0; i < 12; i++) assert_true(w[i] == (sign[i] == '-' ? -0.25f : 0.25f));
}

static void any_part_is_made_by_itself(void **state)
{
    (void)state;
    enum { N = 103 };
    for (int kind = 0; kind < 2; kind++) {
        const pare_frozen f = frozen((pare_frozen_kind)kind, 1);
        float all[N], part[N];
        pare_frozen_fill(all, &f, 0, N);
        for (size_t from = 0; from < 9; from++) {
            pare_frozen_fill(part, &f, from, N - from);
            assert_memory_equal(part, all + from, (N - from) * sizeof *all);
        }
        for (size_t i = 0; i < N; i++) {
            pare_frozen_fill(part, &f, i, 1);
            assert_memory_equal(part, all + i, sizeof *all);
        }
    }
}

/* Mean, variance and fourth moment (of eight uniform ones: 3 - 1.2 / 8) within four sigma. */
static void normal_weights_have_the_moments_of_their_sum(void **state)
{
    (void)state;
    enum { N = 1000000 };
    static float w[N];
    const pare_frozen f = frozen(PARE_FROZEN_NORMAL, 0.5);
    double m1 = 0, m2 = 0, m4 = 0;
    pare_frozen_fill(w, &f, 0, N);
    for (size_t i = 0; i < N; i++) {
        const double x = (double)w[i] / 0.5;
        assert_true(w[i] != 0);
        m1 += x / N, m2 += x * x / N, m4 += x * x * x * x / N;
    }
    assert_near(m1, 0, 4 / sqrt(N));
    assert_near(m2, 1, 4 * sqrt(2.0 / N));
    assert_near(m4, 3 - 1.2 / 8, 4 * sqrt(96.0 / N));
}

static void streams_and_seeds_do_not_share_weights(void **state)
{
    (void)state;
    enum { N = 2000 };
    float a[N], b[N], c[N];
    pare_frozen f = frozen(PARE_FROZEN_NORMAL, 1);
    pare_frozen_fill(a, &f, 0, N);
    f.stream++;
    pare_frozen_fill(b, &f, 0, N);
    f.stream--, f.seed += UINT64_C(1) << 32;
    pare_frozen_fill(c, &f, 0, N);
    double ab = 0, ac = 0;
    for (size_t i = 0; i < N; i++) {
        ab += (double)a[i] * (double)b[i];
        ac += (double)a[i] * (double)c[i];
    }
    assert_near(ab / N, 0, 4 / sqrt(N));
    assert_near(ac / N, 0, 4 / sqrt(N));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_the_same_bits_on_every_machine),
        cmocka_unit_test(any_part_is_made_by_itself),
        cmocka_unit_test(normal_weights_have_the_moments_of_their_sum),
        cmocka_unit_test(streams_and_seeds_do_not_share_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
