/* Tests src/quant/viterbi*.c: the path is the cheapest, on any instruction set the same. */
#include "base/simd.h"
#include "quant/viterbi.h"
#include <pare_test.h>

enum { MOST_BITS = 16, MOST_RUN = 24 };

static int clamped(int v)
{
    return v > INT16_MAX ? INT16_MAX : v < INT16_MIN ? INT16_MIN : v;
}

static int cost(const viterbi_run *r, size_t t, uint32_t state)
{
    int d = clamped(r->target[t] - r->table[state]);
    if (r->weight) d = (d * r->weight[t] + (1 << 14)) >> 15;
    for (unsigned k = 0; k < r->shift; k++) d = clamped(2 * d);
    return d * d >> 16;
}

static size_t bits_before(const viterbi_run *r, size_t t)
{
    return t * r->eighths / 8;
}

/* The state of weight t when the bits of the ring, oldest highest, are `ring`. */
static uint32_t state_of(const viterbi_run *r, size_t t, uint32_t ring)
{
    const size_t n = bits_before(r, r->n), end = bits_before(r, t + 1);
    uint32_t s = 0;
    for (size_t b = 0; b < r->state_bits; b++)
        s |= (ring >> (n - 1 - (end + n - 1 - b) % n) & 1) << b;
    return s;
}

static int cost_of_ring(const viterbi_run *r, uint32_t ring)
{
    int sum = 0;
    for (size_t t = 0; t < r->n; t++) sum += cost(r, t, state_of(r, t, ring));
    return sum;
}

/* The ring whose states these are; fails where they are none's. */
static uint32_t ring_of(const viterbi_run *r, const uint32_t *state)
{
    uint32_t ring = 0;
    for (size_t t = 0; t < r->n; t++) {
        const size_t k = bits_before(r, t + 1) - bits_before(r, t);
        ring = ring << k | (state[t] & ((1u << k) - 1));
    }
    for (size_t t = 0; t < r->n; t++) assert_int_equal(state[t], state_of(r, t, ring));
    return ring;
}

static void draw_table(int16_t *table, unsigned bits, pare_rng *r)
{
    for (size_t s = 0; s < (size_t)1 << bits; s++)
        table[s] = (int16_t)(7000 * pare_rng_normal(r) / 2);
}

/* Of all rings with the same bits where the run is closed: those are chosen first, on a window. */
static void no_ring_of_a_tiny_run_is_cheaper(void **state)
{
    (void)state;
    static int16_t table[(1 << 8) + VITERBI_PAD], memory[1 << 18];
    int16_t target[MOST_RUN], weight[MOST_RUN];
    for (uint64_t seed = 0; seed < 24; seed++) {
        pare_rng rng = pare_rng_at(11, seed);
        const unsigned eighths = (unsigned[]){8, 12, 16, 18}[seed % 4];
        viterbi_run r = {.table = table,
                         .state_bits = 8,
                         .eighths = eighths,
                         .n = 13 * 8 / eighths,
                         .target = target,
                         .weight = seed % 3 == 1 ? weight : NULL,
                         .shift = seed % 3 == 2};
        draw_table(table, 8, &rng);
        for (size_t t = 0; t < r.n; t++) {
            target[t] = (int16_t)(3000 * pare_rng_normal(&rng));
            weight[t] = (int16_t)(8000 + pare_rng_below(&rng, 24000));
        }
        uint32_t out[MOST_RUN];
        assert_le(viterbi_memory(&r), sizeof memory / sizeof *memory);
        viterbi(out, &r, memory);
        const uint32_t ring = ring_of(&r, out);
        const int found = cost_of_ring(&r, ring);
        int closed = found;
        const size_t n = bits_before(&r, r.n);
        const uint32_t close = (UINT32_C(1) << (8 - bits_before(&r, 1))) - 1;
        for (uint32_t other = 0; other < UINT32_C(1) << n; other++) {
            const int c = cost_of_ring(&r, other);
            if (c < closed && ((other ^ ring) & close) == 0) closed = c;
        }
        if (closed != found)
            fail_msg("seed %d: cost %d, another ring has %d", (int)seed, found, closed);
    }
}

static void instruction_sets_agree(void **state)
{
    (void)state;
#if defined(__x86_64__)
    static viterbi_step_fn *const fn[] = {viterbi_portable, viterbi_avx2, viterbi_avx512};
    static int16_t table[(1 << 13) + VITERBI_PAD], in[(1 << 13) + VITERBI_PAD],
        out[3][(1 << 13) + VITERBI_PAD];
    const int sets = (int)simd_best() + 1;
    for (uint64_t seed = 0; seed < 400; seed++) {
        pare_rng rng = pare_rng_at(12, seed);
        const unsigned bits = 10 + (unsigned)(seed % 4);
        viterbi_step s = {.table = table,
                          .in = in,
                          .states = (size_t)1 << bits,
                          .from = 1 + (unsigned)pare_rng_below(&rng, 6),
                          .to = 1 + (unsigned)pare_rng_below(&rng, 5),
                          .target = (int16_t)(20000 * (pare_rng_uniform(&rng) - 0.5)),
                          .weight = (int16_t)(seed % 2 ? pare_rng_below(&rng, 32768) : 0),
                          .shift = (unsigned)pare_rng_below(&rng, VITERBI_MOST_SHIFT + 1)};
        int least[3];
        for (size_t k = 0; k < s.states; k++) {
            table[k] = (int16_t)(pare_rng_below(&rng, 65536) - 32768);
            in[k] = (int16_t)pare_rng_below(&rng, VITERBI_RENEW + 1000);
        }
        for (int k = 0; k < sets; k++) {
            s.out = out[k];
            least[k] = fn[k](&s);
            assert_int_equal(least[k], least[0]);
            assert_memory_equal(out[k], out[0], (s.states >> s.to) * sizeof **out);
        }
        int own = VITERBI_FAR; /* and what a step is, said once more */
        for (size_t p = 0; p < s.states >> s.to; p++) {
            int best = VITERBI_FAR;
            for (size_t j = p; j < s.states; j += s.states >> s.to) {
                int d = clamped(s.target - table[j]);
                if (s.weight) d = (d * s.weight + (1 << 14)) >> 15;
                for (unsigned k = 0; k < s.shift; k++) d = clamped(2 * d);
                const int c = clamped((d * d >> 16) + in[j >> s.from]);
                if (c < best) best = c;
            }
            assert_int_equal(out[0][p], best);
            if (best < own) own = best;
        }
        assert_int_equal(least[0], own);
    }
    print_message("%d instruction sets\n", sets);
#else
    SKIP("one instruction set");
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_ring_of_a_tiny_run_is_cheaper),
        cmocka_unit_test(instruction_sets_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
