/* Tests src/linalg/small_dense.c: every shape it serves, within the rounding that the certificates allow
 * for (enclose_dense.c): an entry is a sum of in + 1 terms, gamma_{in + 2} of their sizes. */
#include "linalg_test.h"
#include "linalg/small_dense.h"

enum { GAP = 3 };
#define CANARY 12345.5f
#define U32    0x1p-24

typedef struct rows_case {
    size_t n, in, out;
    pare_weight w, b;
    float *x, *y; /* rows GAP apart */
} rows_case;

static float *room(pare_arena *a, size_t n, size_t d)
{
    float *const v = pare_alloc(a, n * (d + GAP) + 1, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < n * (d + GAP); i++) v[i] = CANARY;
    return v;
}

static rows_case case_of(pare_arena *a, size_t n, size_t in, size_t out, bool wide)
{
    const pare_mat wm = normal_mat(a, out, in, 1 + in), bm = normal_mat(a, 1, out, 2 + out);
    const pare_mat x = normal_mat(a, n, in, 3);
    rows_case c = {n,
                   in,
                   out,
                   wide ? weight_of(&wm) : narrow_weight(a, &wm),
                   wide ? weight_of(&bm) : narrow_weight(a, &bm),
                   room(a, n, in),
                   room(a, n, out)};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < in; k++) c.x[i * (in + GAP) + k] = (float)pare_row(&x, i)[k];
    return c;
}

/* Products of two f32 are exact in f64, and so, for what is compared here, are their sums. */
static void check_entry(const rows_case *c, const pare_weight *b, size_t i, size_t o)
{
    double sum = b ? (double)(float)pare_weight_at(b, o) : 0, size = fabs(sum);
    for (size_t k = 0; k < c->in; k++) {
        const double term = (double)(float)pare_weight_at(&c->w, o * c->in + k) *
                            (double)c->x[i * (c->in + GAP) + k];
        sum += term;
        size += fabs(term);
    }
    const double nu = (double)(c->in + 2) * U32;
    const double off = fabs((double)c->y[i * (c->out + GAP) + o] - sum);
    CHECK(off <= nu / (1 - nu) * size, "%zu -> %zu, row %zu of %zu, output %zu: off by %g", c->in,
          c->out, i, c->n, o, off);
}

static void check_case(const rows_case *c, const pare_weight *b)
{
    const size_t ld = c->out + GAP;
    assert_true(narrow_f32(c->y, ld, c->x, c->in + GAP, c->n, &c->w, b));
    for (size_t i = 0; i < c->n; i++) {
        for (size_t o = 0; o < c->out; o++) check_entry(c, b, i, o);
        for (size_t o = c->out; o < ld; o++) assert_true(c->y[i * ld + o] == CANARY);
    }
}

static bool served(void)
{
    const float one = 1;
    const pare_weight w = {PARE_F32, 1, 1, &one};
    float y;
    return narrow_f32(&y, 1, &one, 1, 1, &w, NULL);
}

static void every_shape_is_within_its_rounding_bound(void **state)
{
    const size_t counts[] = {1, 7, 8, 9, 21};
    if (!served()) skip();
    for (size_t in = 1; in <= NARROW; in++)
        for (size_t out = 1; out <= NARROW; out++)
            for (size_t f = 0; f < 4; f++) {
                const pare_mark mark = pare_arena_mark(*state);
                const rows_case c = case_of(*state, counts[(in + out + f) % 5], in, out, f & 1);
                check_case(&c, f & 2 ? &c.b : NULL);
                pare_arena_reset(*state, mark);
            }
}

/* A certificate speaks of rows: it must not matter which ones came along. */
static void the_bits_of_a_row_depend_on_nothing_else(void **state)
{
    if (!served()) skip();
    for (size_t out = 3; out <= NARROW; out += 4) {
        const rows_case all = case_of(*state, 20, 8, out, false);
        const size_t ldx = all.in + GAP, ldy = out + GAP;
        check_case(&all, &all.b);
        for (size_t i = 0; i < all.n; i++) {
            float alone[NARROW];
            assert_true(narrow_f32(alone, NARROW, all.x + i * ldx, ldx, 1, &all.w, &all.b));
            assert_memory_equal(alone, all.y + i * ldy, out * sizeof *alone);
        }
    }
}

static void wider_ones_are_left_to_others(void **state)
{
    const rows_case in = case_of(*state, 2, NARROW + 1, 2, false);
    const rows_case out = case_of(*state, 2, 2, NARROW + 1, false);
    assert_false(narrow_f32(in.y, 2 + GAP, in.x, NARROW + 1 + GAP, 2, &in.w, NULL));
    assert_false(narrow_f32(out.y, NARROW + 1 + GAP, out.x, 2 + GAP, 2, &out.w, NULL));
    assert_true(in.y[0] == CANARY && out.y[0] == CANARY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(every_shape_is_within_its_rounding_bound),
        ARENA_TEST(the_bits_of_a_row_depend_on_nothing_else),
        ARENA_TEST(wider_ones_are_left_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
