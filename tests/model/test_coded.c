/* Tests src/model/{coded,coded_factored,coded_bridge,coded_eye,source}.c: weights that a file holds
 * as a seed and masks. */
#include "pare_test.h"
#include "../../src/model/coded_factored.h"
#include <pare/random_model.h>
#include <sys/resource.h>
#include <zlib.h>

typedef struct sample {
    pare_factored f;
    size_t a, b;
    uint32_t *own;
} sample;

static int open_arena(void **state)
{
    *state = pare_arena_new();
    return *state ? 0 : -1;
}
static int close_arena(void **state)
{
    pare_arena_free(*state);
    return 0;
}

/* Random masks; units 0 .. each b - 1 in blocks, of the others some are pruned; a donor or none. */
static sample draw(pare_arena *ar, size_t rows, size_t cols, size_t n, size_t each, bool donor,
                   uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 5);
    sample s = {.f = {.seed = seed,
                      .stream = pare_source_stream(1, 0, PARE_SOURCE_V),
                      .rows = rows,
                      .cols = cols,
                      .n = n,
                      .turned = rows < cols,
                      .exponent = -3}};
    s.a = rows < cols ? cols : rows;
    s.b = rows < cols ? rows : cols;
    s.own = pare_alloc(ar, n, sizeof *s.own);
    s.f.ma = pare_bits_new(ar, s.a, n);
    s.f.mb = pare_bits_new(ar, n, s.b);
    for (size_t k = 0; k < n; k++) {
        s.own[k] = (uint32_t)(k < each * s.b ? k / each : pare_rng_below(&r, s.b));
        if (k >= each * s.b && pare_rng_below(&r, 4) == 0) s.own[k] = PARE_NO_COLUMN;
        if (s.own[k] == PARE_NO_COLUMN) continue;
        pare_bit_set(&s.f.mb, k, s.own[k]);
        for (size_t i = 0; i < s.a; i++)
            if (pare_rng_below(&r, 2)) pare_bit_set(&s.f.ma, i, k);
    }
    s.f.own = s.own;
    s.f.donor = donor ? 1 : PARE_NO_COLUMN;
    for (size_t k = 0; donor && k < n; k++)
        for (size_t j = 0; s.own[k] == 1 && j < s.b; j++)
            if (j != 1 && pare_rng_below(&r, 2)) pare_bit_set(&s.f.mb, k, j);
    return s;
}

/* Both source matrices whole, all units. */
static float entry(pare_arena *ar, const sample *s, size_t i, size_t j)
{
    const size_t n = s->f.n;
    int32_t *const A = pare_alloc(ar, n, sizeof *A), *const B = pare_alloc(ar, n * s->b, sizeof *B);
    pare_source_weights(A, s->f.seed, s->f.stream, i * n, n);
    pare_source_weights(B, s->f.seed, s->f.stream + 1, 0, n * s->b);
    int64_t sum = 0;
    for (size_t k = 0; k < n; k++)
        if (pare_bit(&s->f.ma, i, k) && pare_bit(&s->f.mb, k, j))
            sum += (int64_t)A[k] * B[k * s->b + j];
    return ldexpf((float)sum, s->f.exponent - 48);
}

static void check_expansion(pare_arena *ar, const sample *s, const pare_coded *c)
{
    pare_weight w;
    pare_coded_head h;
    pare_err err = {0};
    assert_ok(pare_coded_expand(&w, &h, ar, c->data, c->bytes, &err), &err);
    assert_true(w.rows == s->f.rows && w.cols == s->f.cols && w.dtype == PARE_F32);
    assert_true(h.kind == PARE_CODED_FACTORED && h.seed == s->f.seed && h.stream == s->f.stream);
    const float *const v = w.data;
    for (size_t i = 0; i < s->a; i++)
        for (size_t j = 0; j < s->b; j++) {
            const size_t at = s->f.turned ? j * w.cols + i : i * w.cols + j;
            const float want = entry(ar, s, i, j);
            assert_memory_equal(&v[at], &want, sizeof want);
        }
}

static void masks_expand_to_the_exact_product_of_both_matrices(void **state)
{
    static const struct {
        size_t rows, cols, n, each;
        bool donor;
    } cases[] = {{5, 3, 30, 10, false}, {3, 5, 31, 8, true},  {8, 8, 100, 0, true},
                 {1, 1, 1, 1, false},   {2, 9, 40, 20, true}, {20, 2, 140, 30, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int coding = 0; coding < PARE_CODINGS; coding++) {
            pare_coded out;
            const sample s = draw(*state, cases[c].rows, cases[c].cols, cases[c].n, cases[c].each,
                                  cases[c].donor, 70 + c);
            assert_ok(pare_coded_factored(&out, *state, &s.f, (pare_coding)coding, NULL), NULL);
            check_expansion(*state, &s, &out);
        }
}

/* Masks of small sums: of each entry's units those that keep it near 0. */
static sample small_sums(pare_arena *ar, size_t d, size_t items)
{
    sample s = draw(ar, d, d, items * d, items, false, 3);
    memset(s.f.ma.v, 0, s.f.ma.rows * s.f.ma.words * sizeof *s.f.ma.v);
    int32_t *const A = pare_alloc(ar, d * items * d, sizeof *A);
    int32_t *const B = pare_alloc(ar, items * d * d, sizeof *B);
    pare_source_weights(A, s.f.seed, s.f.stream, 0, d * items * d);
    pare_source_weights(B, s.f.seed, s.f.stream + 1, 0, items * d * d);
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k < items * d; k++) {
            const size_t j = k / items;
            int64_t sum = 0;
            for (size_t l = j * items; l < k; l++)
                if (pare_bit(&s.f.ma, i, l)) sum += (int64_t)A[i * s.f.n + l] * B[l * d + j];
            const int64_t x = (int64_t)A[i * s.f.n + k] * B[k * d + j];
            if (llabs(sum + x) < llabs(sum) || llabs(x) < INT64_C(1) << 45)
                pare_bit_set(&s.f.ma, i, k);
        }
    return s;
}

static void small_weights_cost_less_than_a_bit_for_a_bit(void **state)
{
    const sample s = small_sums(*state, 32, 12);
    pare_coded raw, coded;
    assert_ok(pare_coded_factored(&raw, *state, &s.f, PARE_CODING_RAW, NULL), NULL);
    assert_ok(pare_coded_factored(&coded, *state, &s.f, PARE_CODING_BRIDGE, NULL), NULL);
    print_message("raw %zu bytes, coded %zu\n", raw.bytes, coded.bytes);
    assert_le(coded.bytes, 0.82 * (double)raw.bytes);
    check_expansion(*state, &s, &coded);
}

/* Bits that nobody could expect are not made longer: they are stored as they are. */
static void coding_never_costs_bytes(void **state)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        pare_coded raw, coded;
        const sample s = draw(*state, 6, 6, 36, 6, false, seed);
        assert_ok(pare_coded_factored(&raw, *state, &s.f, PARE_CODING_RAW, NULL), NULL);
        assert_ok(pare_coded_factored(&coded, *state, &s.f, PARE_CODING_BRIDGE, NULL), NULL);
        assert_le(coded.bytes, raw.bytes);
        check_expansion(*state, &s, &coded);
    }
}

static void the_coder_gives_back_what_it_was_given(void **state)
{
    enum { MOST = BRIDGE_UNITS, ENTRIES = 400 };
    uint8_t *const bits = pare_alloc(*state, ENTRIES * MOST, 1);
    uint8_t *const bytes = pare_alloc(*state, 2 * ENTRIES * MOST, 1), got[MOST];
    int64_t item[MOST];
    static const pare_bridge models[] = {
        {.width = 1},
        {.width = 3000},
        {.width = 65536},
        {.width = BRIDGE_WIDEST},
        {.width = 1, .ranks = MOST, .prior = {-128, 127, -30}},
        {.width = BRIDGE_WIDEST, .ranks = MOST, .prior = {-128, 127, -30}},
    };
    for (size_t w = 0; w < sizeof models / sizeof *models; w++)
        for (int what = 0; what < 3; what++) {
            bridge_encoder e;
            bridge_encode_open(&e, bytes, 2 * ENTRIES * MOST, &models[w]);
            for (int pass = 0; pass < 2; pass++) {
                bridge_decoder d;
                pare_rng r = pare_rng_at(w, (uint64_t)what);
                if (pass) bridge_decode_open(&d, bytes, bridge_encode_close(&e), &models[w]);
                for (size_t k = 0; k < ENTRIES; k++) {
                    const size_t count = (size_t)pare_rng_below(&r, MOST + 1);
                    for (size_t u = 0; u < count; u++) {
                        item[u] =
                            (int64_t)pare_rng_below(&r, UINT64_C(1) << 49) - (INT64_C(1) << 48);
                        if (what == 1) item[u] = (int64_t)pare_rng_below(&r, 3) - 1;
                        bits[k * MOST + u] = what == 2 ? 1 : (uint8_t)pare_rng_below(&r, 2);
                    }
                    if (!pass)
                        bridge_encode(&e, bits + k * MOST, item, count);
                    else
                        bridge_decode(&d, got, item, count);
                    if (pass) assert_memory_equal(got, bits + k * MOST, count);
                }
                if (pass) assert_true(bridge_decode_closed(&d));
            }
        }
}

/* ---- bits that cost something ---- */

static double bits_of(const bridge_entry *e, uint64_t mask, const pare_bridge *b)
{
    double bits = 0;
    int64_t sum = 0;
    for (size_t k = 0; k < e->count; k++) {
        const bool one = mask >> e->order[k] & 1;
        const double p = bridge_chance(e, k, sum, b) / 4096.0;
        bits -= log2(one ? p : 1 - p);
        if (one) sum += e->item[k];
    }
    return bits;
}

/* No subset has a smaller (sum - target)^2 + price bits. */
static void what_is_chosen_is_the_best_of_all(void **state)
{
    enum { ITEMS = 9 };
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        pare_rng r = pare_rng_at(seed, 12);
        pare_bridge b = {.width = 2000 + (uint32_t)pare_rng_below(&r, 60000),
                         .ranks = seed % 2 * 9};
        for (size_t k = 0; k < 9; k++) b.prior[k] = (int8_t)(-40 + (int)pare_rng_below(&r, 60));
        const double target = pare_rng_normal(&r) / 3, price = exp2(-(double)(seed % 14));
        bridge_entry e;
        int64_t item[ITEMS];
        double least = INFINITY;
        for (size_t u = 0; u < ITEMS; u++)
            item[u] = (int64_t)pare_rng_below(&r, UINT64_C(1) << 49) - (INT64_C(1) << 48);
        bridge_entry_open(&e, item, ITEMS);
        for (uint64_t mask = 0; mask < 1 << ITEMS; mask++) {
            int64_t sum = 0;
            for (size_t u = 0; u < ITEMS; u++) sum += mask >> u & 1 ? item[u] : 0;
            const double off = (double)sum * PARE_SOURCE_UNIT - target;
            least = fmin(least, off * off + price * bits_of(&e, mask, &b));
        }
        const pare_chosen got = pare_bridge_choose(item, ITEMS, target, price, &b);
        int64_t sum = 0;
        for (size_t u = 0; u < ITEMS; u++) sum += got.mask >> u & 1 ? item[u] : 0;
        const double off = (double)sum * PARE_SOURCE_UNIT - target;
        assert_near(got.bits, bits_of(&e, got.mask, &b), 1e-4);
        assert_near(off * off + price * got.bits, least, 1e-4 * least);
    }
}

/* Masks of few ones are coded by one who expects few. */
static void sparse_masks_cost_less_when_few_ones_are_expected(void **state)
{
    sample s = draw(*state, 16, 16, 16 * 12, 12, false, 5);
    pare_coded even, sparse;
    pare_rng r = pare_rng_at(5, 5);
    memset(s.f.ma.v, 0, s.f.ma.rows * s.f.ma.words * sizeof *s.f.ma.v);
    for (size_t i = 0; i < 16; i++)
        for (size_t k = 0; k < s.f.n; k++)
            if (pare_rng_below(&r, 8) == 0) pare_bit_set(&s.f.ma, i, k);
    assert_ok(pare_coded_factored(&even, *state, &s.f, PARE_CODING_BRIDGE, NULL), NULL);
    s.f.bridge = (pare_bridge){.width = 26000, .ranks = 12};
    for (size_t k = 0; k < 12; k++) s.f.bridge.prior[k] = -31;
    assert_ok(pare_coded_factored(&sparse, *state, &s.f, PARE_CODING_BRIDGE, NULL), NULL);
    print_message("%zu bytes, few ones expected %zu\n", even.bytes, sparse.bytes);
    assert_le((double)sparse.bytes, 0.8 * (double)even.bytes);
    check_expansion(*state, &s, &sparse);
}

/* ---- bytes that are not right ---- */

static void put_crc(uint8_t *data, size_t bytes)
{
    coded_put32(data + bytes - 4, (uint32_t)crc32_z(0, data, bytes - 4));
}

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
        assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, &err), PARE_ERR_INPUT,
                      &err);
        assert_status(pare_coded_expand(&w, NULL, *state, c.data, i, &err), PARE_ERR_INPUT, &err);
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
        coded_put32(copy + cases[i].at, cases[i].value);
        put_crc(copy, c.bytes);
        assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, &err), PARE_ERR_INPUT,
                      &err);
        print_message("%zu: %s\n", cases[i].at, err.msg);
        if (cases[i].value != UINT32_MAX || cases[i].at == 32)
            assert_contains(err.msg, cases[i].says);
    }
    pare_err err = {0};
    memcpy(copy, c.data, c.bytes);
    copy[CODED_HEAD + 12] |=
        0x3; /* own + 1 of unit 9 in two bits: 3 is column 2, so make b smaller */
    coded_put32(copy + 36, 2);
    put_crc(copy, c.bytes);
    assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, &err), PARE_ERR_INPUT, &err);
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
        coded_put32(copy + 32, UINT32_C(1) << 31);
        put_crc(copy, c.bytes);
        assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, &err), PARE_ERR_INPUT,
                      &err);
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
        coded_put32(data + 8, PARE_CODED_FACTORED);
        coded_put32(data + 12, flags);
        coded_put32(data + 32, 1);
        coded_put32(data + 36, 16384);
        coded_put32(data + 40, 1u << 26);
        coded_put32(data + 48, PARE_NO_COLUMN);
        coded_put32(data + 52, flags ? 1 : 0);
        coded_put32(data + 56, 4096);
        put_crc(data, sizeof data);
        assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
        const pare_status st = pare_coded_expand(&w, NULL, *state, data, sizeof data, &err);
        assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
        assert_true(after.ru_maxrss - before.ru_maxrss < 64 << 10); /* in KiB */
        assert_int_equal(st, PARE_ERR_INPUT);
        assert_contains(err.msg, "masks have 0 bytes");
    }
}

/* ---- a ReLU between the two matrices ---- */

/* Units that serve a column of their sign, some of them nobody; some columns have no unit. */
static sample draw_relu(pare_arena *ar, size_t rows, size_t inputs, size_t n, bool signs,
                        uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 6);
    sample s = {.a = rows, .b = signs ? 2 * inputs : inputs};
    s.f = (pare_factored){.seed = seed,
                          .stream = pare_source_stream(0, 0, PARE_SOURCE_W2),
                          .rows = rows,
                          .cols = s.b,
                          .n = n,
                          .exponent = 2,
                          .donor = PARE_NO_COLUMN,
                          .relu = signs ? PARE_RELU_SIGNS : PARE_RELU_POSITIVE};
    s.own = pare_alloc(ar, n, sizeof *s.own);
    s.f.ma = pare_bits_new(ar, rows, n);
    s.f.mb = pare_bits_new(ar, n, s.b);
    s.f.own = s.own;
    int32_t *const B = pare_alloc(ar, n * inputs, sizeof *B);
    pare_source_weights(B, seed, s.f.stream + 1, 0, n * inputs);
    for (size_t k = 0; k < n; k++) {
        const size_t j = (size_t)pare_rng_below(&r, inputs);
        const bool positive = B[k * inputs + j] > 0;
        s.own[k] = (uint32_t)(positive ? j : inputs + j);
        if (pare_rng_below(&r, 5) == 0 || (!positive && !signs)) s.own[k] = PARE_NO_COLUMN;
        for (size_t i = 0; s.own[k] != PARE_NO_COLUMN && i < rows; i++)
            if (pare_rng_below(&r, 2)) pare_bit_set(&s.f.ma, i, k);
    }
    return s;
}

/* What multiplies relu(x_j) or relu(-x_j) in A relu(B x), over all units. */
static float relu_entry(pare_arena *ar, const sample *s, size_t inputs, size_t i, size_t j)
{
    const size_t n = s->f.n;
    int32_t *const A = pare_alloc(ar, n, sizeof *A);
    int32_t *const B = pare_alloc(ar, n * inputs, sizeof *B);
    pare_source_weights(A, s->f.seed, s->f.stream, i * n, n);
    pare_source_weights(B, s->f.seed, s->f.stream + 1, 0, n * inputs);
    int64_t sum = 0;
    for (size_t k = 0; k < n; k++)
        if (s->own[k] == j && pare_bit(&s->f.ma, i, k))
            sum += (int64_t)A[k] * abs(B[k * inputs + j % inputs]);
    return ldexpf((float)sum, s->f.exponent - 48);
}

static void units_behind_a_relu_expand_to_what_they_pass_on(void **state)
{
    static const struct {
        size_t rows, inputs, n;
    } cases[] = {{5, 3, 40}, {1, 1, 9}, {7, 4, 8}, {20, 2, 140}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int how = 0; how < 4; how++) {
            pare_coded out;
            pare_weight w;
            pare_coded_head h;
            pare_err err = {0};
            const size_t inputs = cases[c].inputs;
            const sample s = draw_relu(*state, cases[c].rows, inputs, cases[c].n, how % 2, 30 + c);
            assert_ok(pare_coded_factored(&out, *state, &s.f, (pare_coding)(how / 2), &err), &err);
            assert_ok(pare_coded_expand(&w, &h, *state, out.data, out.bytes, &err), &err);
            assert_true(h.kind == PARE_CODED_RELU && w.rows == s.a && w.cols == s.b);
            for (size_t i = 0; i < s.a; i++)
                for (size_t j = 0; j < s.b; j++) {
                    const float want = relu_entry(*state, &s, inputs, i, j);
                    assert_memory_equal((const float *)w.data + i * s.b + j, &want, sizeof want);
                }
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
    coded_put32(copy + CODED_HEAD, 1);
    put_crc(copy, c.bytes);
    assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "donor");
    memcpy(copy, c.data, c.bytes);
    coded_put32(copy + 36, 5);
    put_crc(copy, c.bytes);
    assert_status(pare_coded_expand(&w, NULL, *state, copy, c.bytes, &err), PARE_ERR_INPUT, &err);
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
            const pare_status st = pare_coded_expand(&w, NULL, *state, copy, bytes, &err);
            assert_true(st == PARE_OK || (st == PARE_ERR_INPUT && *err.msg));
            expanded += st == PARE_OK;
            pare_arena_reset(*state, mark);
        }
    }
    print_message("%zu of 8000 expanded (seed 11)\n", expanded);
    assert_true(expanded > 100);
}

static void identities_are_identities(void **state)
{
    pare_coded c;
    pare_weight w;
    assert_ok(pare_coded_eye(&c, *state, 3, 6, NULL), NULL);
    assert_int_equal(c.bytes, CODED_HEAD + CODED_TAIL);
    assert_ok(pare_coded_expand(&w, NULL, *state, c.data, c.bytes, NULL), NULL);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 6; j++)
            assert_true(((const float *)w.data)[i * 6 + j] == (j % 3 == i));
    assert_ok(pare_coded_eye(&c, *state, 6, 3, NULL), NULL); /* one above its negative */
    assert_ok(pare_coded_expand(&w, NULL, *state, c.data, c.bytes, NULL), NULL);
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 3; j++) {
            const float sign = i < 3 ? 1 : -1;
            assert_true(((const float *)w.data)[i * 3 + j] == (i % 3 == j ? sign : 0));
        }
}

/* ---- in a model ---- */

typedef struct stage {
    char dir[200], path[300];
    pare_model *m;
    pare_coded coded[2];
    pare_arena *a;
} stage;

/* A model whose wq and wk are tickets; `same`: of one stream. */
static void open_stage(stage *s, pare_arena *a, bool same)
{
    pare_err err = {0};
    test_mkdir(s->dir);
    snprintf(s->path, sizeof s->path, "%s/m.ticket", s->dir);
    pare_random_model_opts opts = PARE_RANDOM_MODEL_DEFAULT;
    opts.dim = 8;
    opts.heads = 2;
    assert_ok(pare_random_model(&s->m, &opts, &err), &err);
    s->a = a;
    pare_attn *const at = &s->m->blocks[0].attn;
    pare_weight *const w[2] = {&at->wq, &at->wk};
    static const char *const names[2] = {"blocks.0.attn.wq", "blocks.0.attn.wk"};
    for (int k = 0; k < 2; k++) {
        sample one = draw(a, w[k]->rows, w[k]->cols, 3 * w[k]->cols, 3, false, 8);
        one.f.stream = pare_source_stream(0, 0, same || !k ? PARE_SOURCE_Q : PARE_SOURCE_K);
        assert_ok(pare_coded_factored(&s->coded[k], a, &one.f, PARE_CODING_RAW, &err), &err);
        s->coded[k].name = names[k];
        assert_ok(
            pare_coded_expand(w[k], NULL, s->m->arena, s->coded[k].data, s->coded[k].bytes, &err),
            &err);
    }
    s->m->coded = s->coded;
    s->m->ncoded = 2;
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    test_rmdir(s->dir);
}

static void a_saved_ticket_is_the_model_bit_for_bit(void **state)
{
    stage s;
    open_stage(&s, *state, false);
    pare_model *again = NULL, *clone = NULL;
    pare_err err = {0};
    char before[PARE_SHA256_HEX], after[PARE_SHA256_HEX];
    assert_ok(pare_model_save(s.m, s.path, false, NULL, &err), &err);
    assert_ok(pare_model_load(&again, s.path, &err), &err);
    assert_ok(pare_model_sha256(before, s.m, &err), &err);
    assert_ok(pare_model_sha256(after, again, &err), &err);
    assert_string_equal(before, after);
    assert_true(again->ncoded == 0); /* a loaded model is made of numbers */
    assert_ok(pare_model_clone(&clone, s.m, &err), &err);
    assert_true(clone->ncoded == 0);
    pare_model_free(clone);
    pare_model_free(again);
    close_stage(&s);
}

static void a_ticket_that_is_not_the_weight_is_not_saved(void **state)
{
    stage s;
    open_stage(&s, *state, false);
    pare_err err = {0};
    s.coded[0].data = s.coded[1].data;
    assert_status(pare_model_save(s.m, s.path, false, NULL, &err), PARE_ERR_VERIFY, &err);
    assert_contains(err.msg, "blocks.0.attn.wq");
    assert_int_equal(access(s.path, F_OK), -1);
    close_stage(&s);
}

static void two_tickets_of_one_source_are_refused(void **state)
{
    stage s;
    open_stage(&s, *state, true);
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_save(s.m, s.path, false, NULL, &err), &err);
    assert_status(pare_model_load(&m, s.path, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, s.path);
    assert_contains(err.msg, "blocks.0.attn.wk.ticket");
    assert_contains(err.msg, "stream of tensor blocks.0.attn.wq.ticket");
    close_stage(&s);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_arena, close_arena)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(masks_expand_to_the_exact_product_of_both_matrices),
        TEST(small_weights_cost_less_than_a_bit_for_a_bit),
        TEST(coding_never_costs_bytes),
        TEST(the_coder_gives_back_what_it_was_given),
        TEST(what_is_chosen_is_the_best_of_all),
        TEST(sparse_masks_cost_less_when_few_ones_are_expected),
        TEST(every_changed_byte_and_every_cut_is_refused),
        TEST(impossible_headers_are_refused_by_name),
        TEST(a_small_ticket_cannot_ask_for_all_memory),
        TEST(a_few_bytes_cannot_deal_many_units),
        TEST(changed_tickets_are_refused_or_expanded),
        TEST(units_behind_a_relu_expand_to_what_they_pass_on),
        TEST(what_no_relu_source_can_be_is_refused),
        TEST(identities_are_identities),
        TEST(a_saved_ticket_is_the_model_bit_for_bit),
        TEST(a_ticket_that_is_not_the_weight_is_not_saved),
        TEST(two_tickets_of_one_source_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
