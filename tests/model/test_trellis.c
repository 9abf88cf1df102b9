/* Tests src/model/{ticket_trellis,trellis_table}.c and src/linalg/hadamard.c: the numbers that a path
 * through a random table stands for, beside a decoder of this file that knows the format alone
 * (docs/format.md#paths), and bytes that are refused. */
#include "model/ticket_codec.h"
#include "model/trellis.h"
#include <math.h>
#include <pare_test.h>
#include <zlib.h>

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

/* ---- a decoder of its own -------------------------------------------------------------------- */

static unsigned u16_at(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static int symbol(long a, long q) /* Legendre, by trying */
{
    a = (a % q + q) % q;
    if (a == 0) return 0;
    for (long i = 1; i < q; i++)
        if (i * i % q == a) return 1;
    return -1;
}

/* H[i][j] of paley (x) two (x) two ... */
static int entry_of(size_t i, size_t j, hadamard h)
{
    const size_t twos = (size_t)1 << h.twos;
    int sign = __builtin_popcountll(i % twos & j % twos) & 1 ? -1 : 1;
    const long r = (long)(i / twos), c = (long)(j / twos), q = (long)h.paley - 1;
    if (h.paley == 1 || r == c || r == 0) return sign;
    return c == 0 ? -sign : sign * symbol(r - c, q);
}

/* Bit b of the ring that begins at `at` and has `ring` bits. */
static uint32_t ring_bit(const uint8_t *path, size_t at, size_t ring, long b)
{
    const size_t k = at + (size_t)((b % (long)ring + (long)ring) % (long)ring);
    return path[k / 8] >> (k % 8) & 1;
}

static void decode(float *out, const uint8_t *data, size_t bytes)
{
    const uint32_t flags = get_u32(data + 12);
    const size_t rows = get_u32(data + 32), cols = get_u32(data + 36), L = get_u32(data + 40);
    const int exponent = (int32_t)get_u32(data + 44);
    const uint8_t *const d = data + 48;
    const unsigned eighths = u16_at(d);
    const hadamard hr = {u16_at(d + 4), d[2]}, hc = {u16_at(d + 6), d[3]};
    const size_t row_parts = get_u32(d + 8), col_parts = get_u32(d + 12);
    const size_t scales = flags & 1 ? rows : 1, states = (size_t)1 << L;
    const uint8_t *const path = d + 16 + 2 * scales;
    pare_trellis t = {.seed = get_u64(data + 16),
                      .stream = get_u64(data + 24),
                      .rows = rows,
                      .cols = cols,
                      .row = hr,
                      .col = hc,
                      .shuffled = flags & 2};
    int16_t *const table = pare_alloc(arena, states, sizeof *table);
    uint32_t *const order = pare_alloc(arena, states, sizeof *order);
    int8_t *const sr = pare_alloc(arena, rows, 1), *const sc = pare_alloc(arena, cols, 1);
    int64_t *const x = pare_alloc(arena, rows * cols, sizeof *x);
    int64_t *const y = pare_alloc(arena, rows * cols, sizeof *y);
    assert_true(table && order && sr && sc && x && y);
    trellis_table(table, order, t.seed, t.stream, (unsigned)L);
    uint32_t *const turn = pare_alloc(arena, rows, sizeof *turn);
    assert_true(turn);
    trellis_order(turn, &t);
    trellis_signs(sr, &t, 1);
    trellis_signs(sc, &t, 2);
    size_t at = 0;
    for (size_t c = 0; c < col_parts; c++)
        for (size_t r = 0; r < row_parts; r++) {
            const size_t r0 = rows * r / row_parts, r1 = rows * (r + 1) / row_parts;
            const size_t c0 = cols * c / col_parts, c1 = cols * (c + 1) / col_parts;
            const size_t ring = (r1 - r0) * (c1 - c0) * eighths / 8;
            size_t n = 0;
            for (size_t j = c0; j < c1; j++)
                for (size_t i = r0; i < r1; i++) {
                    const long end = (long)(++n * eighths / 8);
                    uint32_t s = 0;
                    for (long b = 0; b < (long)L; b++)
                        s |= ring_bit(path, at, ring, end - (long)L + b) << b;
                    x[turn[i] * cols + j] = table[s];
                }
            at += ring;
        }
    assert_int_equal(48 + 16 + 2 * scales + (at + 7) / 8 + 4, bytes);
    const size_t nr = hadamard_order(hr), nc = hadamard_order(hc);
    for (size_t i = 0; i < rows; i++) /* x H_c^T */
        for (size_t j = 0; j < cols; j++) {
            y[i * cols + j] = 0;
            for (size_t k = 0; k < nc; k++)
                y[i * cols + j] += entry_of(j % nc, k, hc) * x[i * cols + j / nc * nc + k];
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            int64_t sum = 0;
            for (size_t k = 0; k < nr; k++)
                sum += entry_of(i % nr, k, hr) * y[(i / nr * nr + k) * cols + j];
            const int64_t scale = u16_at(d + 16 + (flags & 1 ? 2 * i : 0));
            out[i * cols + j] = ldexpf((float)(sum * scale * sr[i] * sc[j]), exponent);
        }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static pare_coded draw(const pare_trellis *t, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 7);
    const size_t bits = (size_t)trellis_path_bits(t), scales = t->row_scales ? t->rows : 1;
    uint8_t *const path = pare_alloc(arena, bits / 8 + 1, 1);
    uint16_t *const scale = pare_alloc(arena, scales, sizeof *scale);
    pare_coded c = {.name = "w"};
    pare_err err = {0};
    assert_true(path && scale);
    for (size_t b = 0; b < bits; b++) path[b / 8] |= (uint8_t)((pare_rng_u32(&r) & 1) << (b % 8));
    for (size_t i = 0; i < scales; i++) scale[i] = (uint16_t)pare_rng_below(&r, 65536);
    assert_ok(pare_coded_trellis(&c, arena, t, -17, scale, path, &err), &err);
    assert_int_equal(c.bytes, pare_coded_trellis_bytes(t));
    return c;
}

static void numbers_are_those_of_another_decoder(void **state)
{
    (void)state;
    static const pare_trellis cases[] = {
        {.rows = 1,
         .cols = 16,
         .state_bits = 8,
         .eighths = 8,
         .row = {1, 0},
         .col = {1, 0},
         .row_parts = 1,
         .col_parts = 1},
        {.rows = 24,
         .cols = 40,
         .state_bits = 10,
         .eighths = 17,
         .row = {12, 1},
         .col = {20, 1},
         .row_parts = 2,
         .col_parts = 40},
        {.rows = 33,
         .cols = 48,
         .state_bits = 15,
         .eighths = 26,
         .row = {1, 0},
         .col = {12, 2},
         .row_parts = 1,
         .col_parts = 7,
         .row_scales = true},
        {.rows = 64,
         .cols = 12,
         .state_bits = 16,
         .eighths = 48,
         .row = {1, 6},
         .col = {12, 0},
         .row_parts = 3,
         .col_parts = 5},
        {.rows = 7,
         .cols = 96,
         .state_bits = 13,
         .eighths = 12,
         .row = {1, 0},
         .col = {24, 2},
         .row_parts = 7,
         .col_parts = 2,
         .row_scales = true},
        {.rows = 70,
         .cols = 24,
         .state_bits = 11,
         .eighths = 21,
         .row = {1, 0},
         .col = {24, 0},
         .row_parts = 2,
         .col_parts = 24,
         .row_scales = true,
         .shuffled = true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        pare_trellis t = cases[k];
        t.seed = 5 + k, t.stream = (uint64_t)k << 24;
        const pare_coded c = draw(&t, k);
        pare_weight w;
        pare_err err = {0};
        float *const own = pare_alloc(arena, t.rows * t.cols, sizeof *own);
        assert_true(own);
        assert_ok(pare_coded_expand(&w, NULL, arena, c.data, c.bytes, SIZE_MAX, &err), &err);
        decode(own, c.data, c.bytes);
        assert_true(w.rows == t.rows && w.cols == t.cols && w.dtype == PARE_F32);
        assert_memory_equal(w.data, own, t.rows * t.cols * sizeof *own);
    }
}

/* One run of four weights, two bits each, L = 8: the ring has 8 bits, so that every state is the
 * whole ring, turned by two bits from weight to weight. */
static void a_run_is_a_ring(void **state)
{
    (void)state;
    const pare_trellis t = {.seed = 9,
                            .stream = 1 << 24,
                            .rows = 4,
                            .cols = 1,
                            .state_bits = 8,
                            .eighths = 16,
                            .row = {1, 0},
                            .col = {1, 0},
                            .row_parts = 1,
                            .col_parts = 1};
    const uint8_t path = 0xb4;
    const uint16_t scale = 1;
    int16_t table[256];
    uint32_t order[256];
    pare_coded c = {.name = "w"};
    pare_weight w;
    pare_err err = {0};
    assert_ok(pare_coded_trellis(&c, arena, &t, 0, &scale, &path, &err), &err);
    assert_ok(pare_coded_expand(&w, NULL, arena, c.data, c.bytes, SIZE_MAX, &err), &err);
    trellis_table(table, order, 9, 1 << 24, 8);
    for (unsigned k = 0; k < 4; k++) {
        const unsigned turn = 2 * (k + 1) % 8; /* its last bit is before this one */
        const unsigned s = (path >> turn | path << (8 - turn)) & 255;
        assert_true(((const float *)w.data)[k] == (float)table[s]);
    }
}

/* The order of a shuffled path has every row once, and is none that anybody would choose. */
static void a_shuffled_path_visits_every_row(void **state)
{
    (void)state;
    enum { N = 300 };
    pare_trellis t = {.seed = 2, .stream = 5 << 24, .rows = N};
    uint32_t order[N];
    bool seen[N] = {false};
    size_t near = 0;
    trellis_order(order, &t);
    for (size_t i = 0; i < N; i++) assert_int_equal(order[i], i);
    t.shuffled = true;
    trellis_order(order, &t);
    for (size_t i = 0; i < N; i++) {
        assert_true(order[i] < N && !seen[order[i]]);
        seen[order[i]] = true;
        near += order[i] + 10 > i && order[i] < i + 10;
    }
    assert_le(near, 60);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Entries are round(448 x) for the quantiles x, and no quantile is so near to a threshold that an
 * error of 1e-10 in the integral would matter. */
static void entries_are_rounded_normal_quantiles(void **state)
{
    (void)state;
    for (unsigned bits = TRELLIS_LEAST_STATE; bits <= TRELLIS_MOST_STATE; bits++) {
        const size_t n = (size_t)1 << bits;
        int16_t *const q = pare_alloc(arena, n, sizeof *q);
        assert_true(q);
        trellis_quantiles(q, n);
        for (size_t i = n / 2; i < n; i++) {
            const double p = ((double)i + 0.5) / (double)n;
            const double low = ((double)q[i] - 0.5) / TRELLIS_UNIT,
                         high = ((double)q[i] + 0.5) / TRELLIS_UNIT;
            const double below = i == n / 2 && q[i] == 0 ? 0.5 : 0.5 * erfc(-low / sqrt(2));
            assert_true(q[n - 1 - i] == -q[i]);
            assert_le(below, p - (q[i] ? 1e-10 : 0));
            assert_le(p + 1e-10, 0.5 * erfc(-high / sqrt(2)));
        }
    }
}

static void rotations_have_orthogonal_rows(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 12, 20, 24, 40, 96, 128, 288, 384, 576, 1536};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const hadamard h = hadamard_for(sizes[s], 1 << 20);
        const size_t n = hadamard_order(h);
        assert_true(hadamard_exists(h) && sizes[s] % n == 0);
        double *const v = pare_alloc(arena, n, sizeof *v);
        int32_t *const lanes = pare_alloc(arena, n * HADAMARD_LANES, sizeof *lanes);
        assert_true(v && lanes);
        for (size_t k = 0; k < n; k += 1 + n / 7) {
            for (size_t i = 0; i < n; i++) {
                v[i] = i == k;
                lanes[i * HADAMARD_LANES + 3] = i == k;
            }
            hadamard_apply(v, n, 1, h, false); /* column k */
            hadamard_lanes(lanes, n, h);
            for (size_t i = 0; i < n; i++) {
                assert_true(v[i] == entry_of(i, k, h));
                assert_int_equal(lanes[i * HADAMARD_LANES + 3], (int)v[i]);
                for (size_t l = 0; l < HADAMARD_LANES; l++) lanes[i * HADAMARD_LANES + l] = 0;
            }
            hadamard_apply(v, n, 1, h, true); /* and back: n times the unit vector */
            for (size_t i = 0; i < n; i++) assert_true(v[i] == (i == k ? (double)n : 0));
        }
    }
}

/* ---- refused --------------------------------------------------------------------------------- */

typedef struct damage {
    size_t at;
    uint8_t value;
    const char *says;
} damage;

static void hostile_bodies_are_refused_by_name(void **state)
{
    (void)state;
    const pare_trellis t = {.seed = 1,
                            .stream = 0,
                            .rows = 24,
                            .cols = 40,
                            .state_bits = 10,
                            .eighths = 17,
                            .row = {12, 1},
                            .col = {20, 1},
                            .row_parts = 2,
                            .col_parts = 40,
                            .row_scales = true};
    const pare_coded c = draw(&t, 3);
    static const damage cases[] = {
        {12, 5, "unknown flags"},
        {12, 0, "whose path has"},
        {40, 7, "states of 7 bits"},
        {40, 17, "states of 17 bits"},
        {41, 255, "states of 255 bits"},
        {48, 7, "a path of 0.875 bits"},
        {48, 65, "a path of 8.125 bits"},
        {48, 18, "whose path has"},
        {50, 30, "rotations of order"},
        {52, 13, "rotations of order"},
        {54, 13, "rotations of order"},
        {56, 0, "in 0 x 40 runs"},
        {56, 25, "runs"},
        {60, 0, "runs"},
        {63, 255, "runs"},
        {32, 48, "whose path has"},
        {33, 255, "too short"},
        {36, 80, "whose path has"},
        {44, 65, "scale 2^-191"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t *const bad = pare_alloc(arena, c.bytes, 1);
        pare_weight w;
        pare_err err = {0};
        memcpy(bad, c.data, c.bytes);
        bad[cases[k].at] = cases[k].value;
        put_u32(bad + c.bytes - 4, (uint32_t)crc32_z(0, bad, c.bytes - 4));
        assert_status(pare_coded_expand(&w, NULL, arena, bad, c.bytes, SIZE_MAX, &err),
                      PARE_ERR_INPUT, &err);
        assert_contains(err.msg, cases[k].says);
    }
    for (size_t cut = 48; cut < c.bytes - 4; cut += 5) { /* shorter, with a true checksum */
        uint8_t *const bad = pare_alloc(arena, c.bytes, 1);
        pare_weight w;
        memcpy(bad, c.data, cut);
        put_u32(bad + cut, (uint32_t)crc32_z(0, bad, cut));
        assert_int_equal(pare_coded_expand(&w, NULL, arena, bad, cut + 4, SIZE_MAX, NULL),
                         PARE_ERR_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_another_decoder),
        cmocka_unit_test(a_run_is_a_ring),
        cmocka_unit_test(a_shuffled_path_visits_every_row),
        cmocka_unit_test(entries_are_rounded_normal_quantiles),
        cmocka_unit_test(rotations_have_orthogonal_rows),
        cmocka_unit_test(hostile_bodies_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
