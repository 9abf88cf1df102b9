/* Tests src/model/coded*.c: bytes that are no ticket, or no longer the one that was written. */
#include "ticket_samples.h"
#include <sys/resource.h>

static void every_changed_byte_and_every_cut_is_refused(void **state)
{
    const sample s = draw(*state, 4, 3, 12, 3, true, 9);
    pare_coded c;
    pare_weight w;
    pare_err err = {0};
    assert_ok(pare_coded_factored(&c, *state, &s.f, PARE_CODING_BRIDGE, NULL), NULL);
    uint8_t *const copy = pare_alloc(*state, c.bytes, 1);
    for (size_t i = 0; i < c.bytes; i++) {
        memcpy(copy, c.data, c.bytes);
        copy[i] ^= (uint8_t)(1u << (i % 8));
        assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, SIZE_MAX, &err),
                      PARE_ERR_INPUT, &err);
        assert_status(pare_coded_expand(&w, NULL, *state, c.data, i, SIZE_MAX, &err),
                      PARE_ERR_INPUT, &err);
    }
}

typedef struct damage {
    size_t at;
    uint32_t value;
    const char *says;
} damage;

/* With a right checksum: what only a writer that means harm, or has a fault, would write. */
static void impossible_headers_are_refused_by_name(void **state)
{
    static const damage cases[] = {
        {8, 99, "kind 99"},
        {12, 8, "flags"},
        {12, 4, "flags"},
        {32, 0, "0 x 3"},
        {32, UINT32_MAX, "masks"},
        {40, 2, "hidden units"},
        {40, UINT32_MAX, "hidden units"},
        {44, 65, "2^65"},
        {48, 3, "donor is column 3 of 3"},
        {56, 5, "hidden units"},
        {56, UINT32_MAX, "hidden units"},
    };
    const sample s = draw(*state, 4, 3, 12, 3, true, 9);
    pare_coded c;
    pare_weight w;
    assert_ok(pare_coded_factored(&c, *state, &s.f, PARE_CODING_RAW, NULL), NULL);
    uint8_t *const copy = pare_alloc(*state, c.bytes, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pare_err err = {0};
        memcpy(copy, c.data, c.bytes);
        put_u32(copy + cases[i].at, cases[i].value);
        put_crc(copy, c.bytes);
        assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, SIZE_MAX, &err),
                      PARE_ERR_INPUT, &err);
        print_message("%zu: %s\n", cases[i].at, err.msg);
        if (cases[i].value != UINT32_MAX || cases[i].at == 32)
            assert_contains(err.msg, cases[i].says);
    }
    pare_err err = {0};
    memcpy(copy, c.data, c.bytes);
    copy[TICKET_HEADER_BYTES + 12] |=
        0x3; /* own + 1 of unit 9 in two bits: 3 is column 2, so make b smaller */
    put_u32(copy + 36, 2);
    put_crc(copy, c.bytes);
    assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, SIZE_MAX, &err),
                  PARE_ERR_INPUT, &err);
}

/* A few bytes must not ask for all memory: 2^40 entries in a ticket of 200 bytes. */
static void a_small_ticket_cannot_ask_for_all_memory(void **state)
{
    const sample s = draw(*state, 4, 3, 12, 4, false, 9);
    pare_coded c;
    pare_weight w;
    for (int coding = 0; coding < PARE_CODINGS; coding++) {
        pare_err err = {0};
        assert_ok(pare_coded_factored(&c, *state, &s.f, (pare_coding)coding, NULL), NULL);
        uint8_t *const copy = pare_alloc(*state, c.bytes, 1);
        memcpy(copy, c.data, c.bytes);
        put_u32(copy + 32, UINT32_C(1) << 31);
        put_crc(copy, c.bytes);
        assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, SIZE_MAX, &err),
                      PARE_ERR_INPUT, &err);
        assert_contains(err.msg, "masks");
    }
}

/* Units in blocks cost no bits of their own: 64 bytes that name 2^26 of them must not be believed
 * before the masks are seen. Room for the lists alone would be a gigabyte. */
static void a_few_bytes_cannot_deal_many_units(void **state)
{
    for (uint32_t flags = 0; flags <= 2; flags += 2) { /* raw, and coded */
        uint8_t data[64] = "PARETKT1";
        struct rusage before, after;
        pare_weight w;
        pare_err err = {0};
        put_u32(data + 8, PARE_CODED_FACTORED);
        put_u32(data + 12, flags);
        put_u32(data + 32, 1);
        put_u32(data + 36, 16384);
        put_u32(data + 40, 1u << 26);
        put_u32(data + 48, PARE_NO_COLUMN);
        put_u32(data + 52, flags ? 1 : 0);
        put_u32(data + 56, 4096);
        put_crc(data, sizeof data);
        assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
        const pare_status st =
            pare_coded_expand(&w, NULL, *state, data, sizeof data, SIZE_MAX, &err);
        assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
        assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); /* in KiB */
        assert_int_equal(st, PARE_ERR_INPUT);
        assert_contains(err.msg, "masks have 0 bytes");
    }
}

/* Identities have no body: only the file that they lie in can bound them. The 48 bytes of the
 * corpus asked for 340 MB. */
static void identities_cannot_be_larger_than_their_file_allows(void **state)
{
    static const size_t sizes[][2] = {{9216, 9216}, {1, 1 << 28}, {16, 64}, {64, 32}};
    for (size_t i = 0; i < 4; i++) {
        const size_t entries = sizes[i][0] * sizes[i][1];
        struct rusage before, after;
        pare_coded c;
        pare_weight w;
        pare_err err = {0};
        assert_ok(pare_coded_identity(&c, *state, sizes[i][0], sizes[i][1], &err), &err);
        assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
        assert_status(pare_coded_expand(&w, NULL, *state, c.data, c.bytes, entries - 1, &err),
                      PARE_ERR_INPUT, &err);
        assert_contains(err.msg, "more entries than a file of this size can hold");
        assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
        assert_true(after.ru_maxrss - before.ru_maxrss < 1 << 10); /* in KiB */
        if (entries < 1 << 20)
            assert_ok(pare_coded_expand(&w, NULL, *state, c.data, c.bytes, entries, &err), &err);
    }
}

/* A unit of the other sign, a donor, an odd number of sides: no ReLU source is like that. */
static void what_no_relu_source_can_be_is_refused(void **state)
{
    pare_coded c;
    pare_weight w;
    pare_err err = {0};
    sample s = draw_relu(*state, 4, 3, 30, true, 2);
    assert_ok(pare_coded_factored(&c, *state, &s.f, PARE_CODING_RAW, &err), &err);
    uint8_t *const copy = pare_alloc(*state, c.bytes, 1);
    memcpy(copy, c.data, c.bytes);
    put_u32(copy + TICKET_HEADER_BYTES, 1);
    put_crc(copy, c.bytes);
    assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, SIZE_MAX, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "donor");
    memcpy(copy, c.data, c.bytes);
    put_u32(copy + 36, 5);
    put_crc(copy, c.bytes);
    assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, SIZE_MAX, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "signs of an input");
    size_t k = 0;
    while (s.own[k] == PARE_NO_COLUMN) k++;
    s.own[k] = (s.own[k] + 3) % 6;
    assert_status(pare_coded_factored(&c, *state, &s.f, PARE_CODING_RAW, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "the other sign");
    for (k = 0; k < 30; k++) s.own[k] = PARE_NO_COLUMN; /* zeros of any size for a few bytes */
    assert_status(pare_coded_factored(&c, *state, &s.f, PARE_CODING_RAW, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "6 columns have 0 hidden units");
}

/* Any bytes behind a right checksum: refused or expanded, never a crash (test-asan looks). */
static void changed_tickets_are_refused_or_expanded(void **state)
{
    pare_rng r = pare_rng_at(11, 0);
    size_t expanded = 0;
    for (int round = 0; round < 8; round++) {
        const sample s = round < 4 ? draw(*state, 4, 3, 14, 3, round % 2, 9)
                                   : draw_relu(*state, 4, 3, 30, round % 2, 9);
        pare_coded c;
        assert_ok(pare_coded_factored(&c, *state, &s.f, (pare_coding)(round / 2 % 2), NULL), NULL);
        uint8_t *const copy = pare_alloc(*state, c.bytes, 1);
        for (int t = 0; t < 1000; t++) {
            pare_weight w;
            pare_err err = {0};
            const pare_mark mark = pare_arena_mark(*state);
            memcpy(copy, c.data, c.bytes);
            const size_t bytes = c.bytes - (size_t)pare_rng_below(&r, 4);
            for (uint64_t k = pare_rng_below(&r, 3) + 1; k > 0; k--)
                copy[8 + pare_rng_below(&r, bytes - 8)] ^= (uint8_t)(1u << pare_rng_below(&r, 8));
            put_crc(copy, bytes);
            const pare_status st = pare_coded_expand(&w, NULL, *state, copy, bytes, SIZE_MAX, &err);
            assert_true(st == PARE_OK || (st == PARE_ERR_INPUT && *err.msg));
            expanded += st == PARE_OK;
            pare_arena_reset(*state, mark);
        }
    }
    print_message("%zu of 8000 expanded (seed 11)\n", expanded);
    assert_true(expanded > 100);
}

/* ---- one bit of a ticket, behind a right checksum ---- */

/* What it stands for: its source, and the numbers. */
static bool same_weight(const pare_weight *x, const pare_coded_head *hx, const pare_weight *y,
                        const pare_coded_head *hy)
{
    return hx->kind == hy->kind && x->rows == y->rows && x->cols == y->cols &&
           memcmp(x->data, y->data, x->rows * x->cols * sizeof(float)) == 0;
}

/* How many bits can be changed and nobody would know. The last bit of a coder's width is let pass:
 * a part in many thousands may change no chance that it computes. */
static size_t idle_bits(pare_arena *a, const pare_coded *c)
{
    pare_weight want, got;
    pare_coded_head h, other;
    size_t idle = 0;
    uint8_t *const copy = pare_alloc(a, c->bytes, 1);
    assert_ok(pare_coded_expand(&want, &h, a, c->data, c->bytes, SIZE_MAX, NULL), NULL);
    for (size_t bit = 8 * 8; bit < 8 * (c->bytes - TICKET_CHECKSUM_BYTES); bit++) {
        const pare_mark mark = pare_arena_mark(a);
        memcpy(copy, c->data, c->bytes);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        put_crc(copy, c->bytes);
        if (bit != 8 * (TICKET_HEADER_BYTES + 4) &&
            !pare_coded_expand(&got, &other, a, copy, c->bytes, SIZE_MAX, NULL) &&
            same_weight(&want, &h, &got, &other)) {
            print_message("byte %zu, bit %zu\n", bit / 8, bit % 8);
            idle++;
        }
        pare_arena_reset(a, mark);
    }
    return idle;
}

/* Raw with and without a donor; coded, by ranks or not; with a ReLU. */
static pare_coded one_ticket(pare_arena *a, int how)
{
    pare_coded c;
    const sample s = how < 2    ? draw(a, 5, 3, 9, 3, how == 1, 9)
                     : how == 2 ? small_sums(a, 16, 12)
                     : how == 3 ? few_ones(a)
                                : draw_relu(a, 5, 3, 30, how == 5, 9);
    const pare_coding coding = how < 2 ? PARE_CODING_RAW : PARE_CODING_BRIDGE;
    assert_ok(pare_coded_factored(&c, a, &s.f, coding, NULL), NULL);
    const uint32_t coded = get_u32(c.data + 12) & (FACTORED_CODED | FACTORED_RANKED);
    if (how == 2) assert_int_equal(coded, FACTORED_CODED);
    if (how == 3) assert_int_equal(coded, FACTORED_CODED | FACTORED_RANKED);
    return c;
}

/* Every field of the header, every bit of the body: read, or refused where it means nothing. */
static void no_bit_of_a_ticket_is_idle(void **state)
{
    for (int how = 0; how < 6; how++) {
        const pare_coded c = one_ticket(*state, how);
        assert_int_equal(idle_bits(*state, &c), 0);
    }
    pare_coded eye;
    assert_ok(pare_coded_identity(&eye, *state, 3, 6, NULL), NULL);
    assert_int_equal(idle_bits(*state, &eye), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(every_changed_byte_and_every_cut_is_refused),
        ARENA_TEST(impossible_headers_are_refused_by_name),
        ARENA_TEST(a_small_ticket_cannot_ask_for_all_memory),
        ARENA_TEST(a_few_bytes_cannot_deal_many_units),
        ARENA_TEST(identities_cannot_be_larger_than_their_file_allows),
        ARENA_TEST(what_no_relu_source_can_be_is_refused),
        ARENA_TEST(changed_tickets_are_refused_or_expanded),
        ARENA_TEST(no_bit_of_a_ticket_is_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
