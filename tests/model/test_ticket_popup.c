/* Tests src/model/ticket_popup.c and range_coder.c: masks to bytes and back. */
#include "model/frozen.h"
#include "model/ticket_store.h"
#include <pare_test.h>
#include <zlib.h>

enum { SEED = 7, HEAD = 48 };
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

static pare_frozen source(pare_frozen_kind kind)
{
    return (pare_frozen){kind, SEED, UINT64_C(5) << 48, pare_frozen_unit(kind, 0.1)};
}

/* Each weight is kept with this chance; at least one is. */
static pare_weight masked(const pare_frozen *f, size_t rows, size_t cols, double keep, size_t *ones)
{
    float *const v = pare_alloc(arena, rows * cols, sizeof *v);
    assert_non_null(v);
    pare_rng r = pare_rng_at(SEED, rows * cols);
    pare_frozen_fill(v, f, 0, rows * cols);
    *ones = 0;
    for (size_t i = 0; i < rows * cols; i++) {
        const bool kept = pare_rng_uniform(&r) < keep || (i + 1 == rows * cols && *ones == 0);
        *ones += kept;
        if (!kept) v[i] = 0;
    }
    return (pare_weight){PARE_F32, rows, cols, v};
}

static pare_coded code(const pare_frozen *f, const pare_weight *w)
{
    pare_coded c = {0};
    pare_err err = {0};
    assert_ok(pare_coded_popup(&c, arena, f, w, &err), &err);
    return c;
}

static void what_was_coded_expands_to_the_same_bits(void **state)
{
    (void)state;
    static const double keep[] = {0, 0.001, 0.1, 0.3, 0.5, 0.97, 1};
    static const size_t shape[][2] = {{1, 1}, {1, 3}, {7, 9}, {64, 257}};
    for (int kind = 0; kind < 2; kind++)
        for (size_t s = 0; s < 4; s++)
            for (size_t k = 0; k < sizeof keep / sizeof *keep; k++) {
                size_t ones;
                const pare_frozen f = source((pare_frozen_kind)kind);
                const pare_weight w = masked(&f, shape[s][0], shape[s][1], keep[k], &ones);
                const pare_coded c = code(&f, &w);
                pare_weight back;
                pare_coded_head h;
                pare_err err = {0};
                assert_ok(pare_coded_expand(&back, &h, arena, c.data, c.bytes, SIZE_MAX, &err),
                          &err);
                assert_true(h.kind == PARE_CODED_POPUP && h.n == ones && h.seed == SEED);
                assert_true(back.rows == w.rows && back.cols == w.cols);
                assert_memory_equal(back.data, w.data, w.rows * w.cols * sizeof(float));
            }
}

static void a_mask_takes_its_entropy_and_little_more(void **state)
{
    (void)state;
    static const double keep[] = {0.01, 0.1, 0.3, 0.5, 0.9};
    for (size_t k = 0; k < 5; k++) {
        enum { N = 400 * 500 };
        size_t ones;
        const pare_frozen f = source(PARE_FROZEN_NORMAL);
        const pare_weight w = masked(&f, 400, 500, keep[k], &ones);
        const pare_coded c = code(&f, &w);
        const double p = (double)ones / N, h = -p * log2(p) - (1 - p) * log2(1 - p);
        assert_le(8 * (double)(c.bytes - HEAD - 4 - 4), N * h * 1.001 + 64);
        assert_le(N * h - 64, 8 * (double)(c.bytes - HEAD - 4 - 4));
    }
}

static void a_number_that_is_not_of_the_source_is_refused(void **state)
{
    (void)state;
    size_t ones;
    pare_coded c;
    pare_err err = {0};
    pare_frozen f = source(PARE_FROZEN_NORMAL);
    pare_weight w = masked(&f, 6, 5, 0.5, &ones);
    float v[30];
    memcpy(v, w.data, sizeof v);
    w.data = v;
    v[13] = 0.25f;
    assert_status(pare_coded_popup(&c, arena, &f, &w, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "[2, 3] is 0.25, neither 0 nor ");
    v[13] = -0.0f; /* is no +0: it would not come back */
    assert_status(pare_coded_popup(&c, arena, &f, &w, &err), PARE_ERR_VERIFY, &err);
    memset(v, 0, sizeof v);
    assert_status(pare_coded_popup(&c, arena, &f, &w, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "keeps 0 of 6 x 5");
}

/* ---- bytes that no writer wrote ---------------------------------------------------------------
 */

typedef struct change {
    size_t at;
    uint32_t to;
    const char *why;
} change;

static pare_status expand_changed(pare_coded c, size_t bytes, const change *ch, pare_err *err)
{
    uint8_t *const d = pare_alloc(arena, bytes, 1);
    pare_weight w;
    assert_non_null(d);
    memcpy(d, c.data, bytes - 4 < c.bytes ? bytes - 4 : c.bytes);
    for (int i = 0; ch && i < 4; i++) d[ch->at + (size_t)i] = (uint8_t)(ch->to >> (8 * i));
    const uint32_t sum = (uint32_t)crc32_z(0, d, bytes - 4);
    for (int i = 0; i < 4; i++) d[bytes - 4 + (size_t)i] = (uint8_t)(sum >> (8 * i));
    return pare_coded_expand(&w, NULL, arena, d, bytes, SIZE_MAX, err);
}

static void bytes_that_say_nonsense_are_refused(void **state)
{
    (void)state;
    size_t ones;
    const pare_frozen f = source(PARE_FROZEN_NORMAL);
    const pare_weight w = masked(&f, 40, 50, 0.3, &ones);
    const pare_coded c = code(&f, &w);
    const change changes[] = {
        {12, 2, "unknown flags"},
        {44, 1, "scale 2^1"},
        {40, 0, "keeps 0 of 2000"},
        {40, 2001, "keeps 2001 of 2000"},
        {40, (uint32_t)ones + 1, "whose mask keeps"},
        {32, 1u << 30, "whose mask has"},
        {48, 0, "unit is 0"},
        {48, 0x7fc00000, "unit is nan"},
        {48, 0xbf800000, "unit is -1"},
        {48, 0x7f800000, "unit is inf"},
    };
    pare_err err = {0};
    assert_ok(expand_changed(c, c.bytes, NULL, &err), &err);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        assert_status(expand_changed(c, c.bytes, &changes[i], &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, changes[i].why);
    }
    for (size_t bytes = HEAD + 4; bytes < c.bytes; bytes++) /* cut, with a checksum that fits */
        assert_status(expand_changed(c, bytes, NULL, &err), PARE_ERR_INPUT, &err);
    assert_status(expand_changed(c, c.bytes + 1, NULL, &err), PARE_ERR_INPUT, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_coded_expands_to_the_same_bits),
        cmocka_unit_test(a_mask_takes_its_entropy_and_little_more),
        cmocka_unit_test(a_number_that_is_not_of_the_source_is_refused),
        cmocka_unit_test(bytes_that_say_nonsense_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
