/* Tests src/model/random_source.c and src/ticket/{fit,fit_block,fit_best,fit_trade,column}.c. */
#include "fit_problems.h"
#include "base/json.h"
#include "linalg/matrix.h"
#include "model/source.h"
#include "model/ticket_store.h"

enum { A_STREAM = 0, B_STREAM = 1 };

static fit_problem problem(pare_arena *ar, size_t a, size_t b, size_t n, uint64_t seed)
{
    return (fit_problem){.a = a,
                         .b = b,
                         .n = n,
                         .w = pare_mat_new(ar, a, b),
                         .scale = 1,
                         .A = drawn(ar, seed, A_STREAM, a * n),
                         .B = drawn(ar, seed, B_STREAM, n * b)};
}

/* Normal entries, about 1 / (2 sqrt(d)) each: a spectral norm of about 1. */
static void fill(fit_problem *p, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 99);
    const double size = 0.5 / sqrt((double)(p->a > p->b ? p->a : p->b));
    for (size_t i = 0; i < p->a; i++)
        for (size_t j = 0; j < p->b; j++) pare_row_mut(&p->w, i)[j] = size * pare_rng_normal(&r);
}

/* Everything once more from the masks, by other means: long double, all units. */
static void check_residual(const fit_problem *p, const fit_result *r)
{
    for (size_t i = 0; i < p->a; i++)
        for (size_t j = 0; j < p->b; j++) {
            long double s = 0;
            for (size_t k = 0; k < p->n; k++)
                if (pare_bit(&r->ma, i, k) && pare_bit(&r->mb, k, j))
                    s += (long double)p->A[i * p->n + k] * p->B[k * p->b + j];
            const long double e = pare_row(&p->w, i)[j] - p->scale * s * 0x1p-48L;
            assert_near(pare_row(&r->e, i)[j], (double)e, 1e-15 * p->scale);
        }
}

static void the_source_gives_known_answers(void **state)
{
    (void)state;
    static const int32_t want[] = {6803087,  -15026673, 6977581,  4979339, -13922825,
                                   -2753727, 5514793,   13969273, 3414929, 14639131};
    int32_t got[10], part[3];
    const uint64_t stream = pare_source_stream(1, 2, PARE_SOURCE_O);
    assert_true(stream == 0x0001000203000000);
    pare_source_weights(got, 20240229, 0x0001000200030000, 0, 10);
    assert_memory_equal(got, want, sizeof want);
    pare_source_weights(part, 20240229, 0x0001000200030000, 5, 3);
    assert_memory_equal(part, want + 5, sizeof part);
    double sum = 0, squares = 0;
    enum { MANY = 100000 };
    int32_t *const w = malloc(MANY * sizeof *w);
    pare_source_weights(w, 7, 0, 0, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(w[i] % 2 != 0 && abs(w[i]) < 1 << 24);
        sum += w[i] * 0x1p-24;
        squares += w[i] * 0x1p-24 * w[i] * 0x1p-24;
    }
    free(w);
    assert_near(sum / MANY, 0, 4 * sqrt(1.0 / 3 / MANY));
    assert_near(squares / MANY, 1.0 / 3, 4 * sqrt(4.0 / 45 / MANY));
}

static void residuals_are_those_of_the_masks(void **state)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        fit_problem p = problem(*state, 7, 3 + seed % 3, 40 + 5 * seed, seed);
        fill(&p, seed);
        if (seed > 3) p.scale = 4;
        fit_result r;
        pare_err err;
        assert_ok(fit_block(&r, *state, &p, NULL, &err), &err);
        check_residual(&p, &r);
        assert_ok(fit_best(&r, *state, &p, NULL, NULL, &err), &err);
        check_residual(&p, &r);
    }
}

/* The masks of Otsuka 2025 give a unit to one column only. */
static void blocks_are_blocks(void **state)
{
    fit_problem p = problem(*state, 5, 4, 50, 3);
    fill(&p, 3);
    fit_result r;
    assert_ok(fit_block(&r, *state, &p, NULL, NULL), NULL);
    for (size_t k = 0; k < 50; k++)
        for (size_t j = 0; j < 4; j++) assert_true(pare_bit(&r.mb, k, j) == (k / 12 == j));
}

/* By blocks / by fit_best, largest errors, geometric mean over sources. */
static double gain_of(pare_arena *a, size_t d, size_t items, uint64_t seeds)
{
    double gain = 0;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        fit_problem p = problem(a, d, d, d * items, 400 + seed);
        fill(&p, 3);
        fit_result block, best;
        assert_ok(fit_block(&block, a, &p, NULL, NULL), NULL);
        assert_ok(fit_best(&best, a, &p, NULL, NULL, NULL), NULL);
        gain += log(largest(&block.e) / largest(&best.e));
        print_message("d %zu, seed %d: largest error %.1e, by blocks %.1e\n", d, (int)(400 + seed),
                      largest(&best.e), largest(&block.e));
    }
    print_message("d %zu, %zu items: %.0f times below the blocks\n", d, items,
                  exp(gain / (double)seeds));
    return exp(gain / (double)seeds);
}

static void the_same_source_is_used_far_better_than_by_blocks(void **state)
{
    assert_le(50, gain_of(*state, 16, 12, 4));
    assert_le(8, gain_of(*state, 64, 12, 1));
}

/* A source whose weights are U[-n^(1/4), n^(1/4)] and whose scores are divided by sqrt(n) computes
 * with the same matrix: in f32, up to its roundings. */
static void the_source_of_the_paper_computes_the_same(void **state)
{
    fit_problem p = problem(*state, 6, 6, 6 * 10, 31);
    fill(&p, 31);
    fit_result r;
    assert_ok(fit_best(&r, *state, &p, NULL, NULL, NULL), NULL);
    const float root = (float)pow(60, 0.25);
    double most = 0;
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 6; j++) {
            float sum = 0;
            for (size_t k = 0; k < 60; k++) {
                const float q = root * (float)p.A[i * 60 + k] * 0x1p-24f;
                const float b = root * (float)p.B[k * 6 + j] * 0x1p-24f;
                if (pare_bit(&r.ma, i, k) && pare_bit(&r.mb, k, j)) sum += q * b;
            }
            const double ours = pare_row(&p.w, i)[j] - pare_row(&r.e, i)[j];
            most = fmax(most, fabs((double)(sum / sqrtf(60)) - ours));
        }
    assert_le(most, 1e-5 * largest(&p.w));
}

static void it_is_better_for_almost_every_seed(void **state)
{
    int better = 0;
    double gain = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        fit_problem p = problem(*state, 8, 8, 80, seed);
        fill(&p, seed);
        fit_result block, best;
        const fit_best_opts o = {.seed = seed};
        assert_ok(fit_block(&block, *state, &p, NULL, NULL), NULL);
        assert_ok(fit_best(&best, *state, &p, &o, NULL, NULL), NULL);
        better += largest(&best.e) <= largest(&block.e);
        gain += log(largest(&block.e) / largest(&best.e));
    }
    assert_le(38, better);
    assert_le(30, exp(gain / 40));
}

/* One column of eight entries: 32 units are 32 items for each when the blocks are on its side. */
static void the_smaller_side_is_worth_its_items(void **state)
{
    double gain = 0;
    for (uint64_t seed = 0; seed < 6; seed++) {
        fit_problem p = problem(*state, 1, 8, 32, seed), transposed;
        fill(&p, seed);
        fit_result wide, narrow, back;
        assert_ok(fit_block(&wide, *state, &p, NULL, NULL), NULL);
        assert_ok(fit_transpose(&transposed, *state, &p, NULL), NULL);
        assert_ok(fit_block(&narrow, *state, &transposed, NULL, NULL), NULL);
        assert_ok(fit_transpose_back(&back, *state, &narrow, NULL), NULL);
        check_residual(&p, &back);
        gain += log(largest(&wide.e) / largest(&back.e));
    }
    assert_le(5e5, exp(gain / 6));
}

static void same_masks_for_any_number_of_threads(void **state)
{
    fit_problem p = problem(*state, 9, 6, 70, 5);
    fill(&p, 5);
    fit_result one, two;
    const pare_exec many = {.threads = 3};
    assert_ok(fit_best(&one, *state, &p, NULL, NULL, NULL), NULL);
    assert_ok(fit_best(&two, *state, &p, NULL, &many, NULL), NULL);
    assert_memory_equal(one.ma.v, two.ma.v, one.ma.rows * one.ma.words * sizeof *one.ma.v);
    assert_memory_equal(one.mb.v, two.mb.v, one.mb.rows * one.mb.words * sizeof *one.mb.v);
}

static void zeros_and_single_products_are_exact(void **state)
{
    fit_problem p = problem(*state, 4, 4, 24, 8);
    fit_result r;
    assert_ok(fit_best(&r, *state, &p, NULL, NULL, NULL), NULL);
    assert_true(largest(&r.e) == 0);
    for (size_t i = 0; i < r.ma.rows * r.ma.words; i++) assert_true(r.ma.v[i] == 0);
    for (size_t i = 0; i < 4; i++) /* unit 6 j + 1 belongs to column j */
        for (size_t j = 0; j < 4; j++)
            pare_row_mut(&p.w, i)[j] = (double)fit_item(&p, i, 6 * j + 1, j) * PARE_SOURCE_UNIT;
    assert_ok(fit_block(&r, *state, &p, NULL, NULL), NULL);
    assert_true(largest(&r.e) == 0);
}

static void what_cannot_be_fitted_is_refused(void **state)
{
    pare_err err;
    fit_result r;
    fit_problem p = problem(*state, 3, 5, 4, 1);
    assert_status(fit_block(&r, *state, &p, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "at least 5 hidden units");
    p = problem(*state, 3, 5, 40, 1);
    pare_row_mut(&p.w, 2)[1] = 5000;
    assert_status(fit_best(&r, *state, &p, NULL, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "(2, 1)");
    pare_row_mut(&p.w, 2)[1] = NAN;
    assert_status(fit_best(&r, *state, &p, NULL, NULL, &err), PARE_ERR_NONFINITE, &err);
}

/* ---- golden vectors of an independent numpy implementation ----------------------------------- */

static double number(const cJSON *list, size_t i, size_t j)
{
    return cJSON_GetArrayItem(cJSON_GetArrayItem(list, (int)i), (int)j)->valuedouble;
}

static void blocks_are_the_golden_ones(void **state)
{
    static const char path[] = "../shared/reference/ticket/vectors.json";
    NEED_SHARED(path);
    char *text;
    size_t size;
    assert_ok(pare_text_read(&text, &size, *state, path, NULL), NULL);
    cJSON *const all = cJSON_Parse(text), *const f = cJSON_GetObjectItem(all, "fit_block");
    const cJSON *w = cJSON_GetObjectItem(f, "W"), *fit;
    const size_t a = (size_t)cJSON_GetArraySize(w),
                 b = (size_t)cJSON_GetArraySize(cJSON_GetArrayItem(w, 0));
    fit_problem p = problem(*state, a, b, (size_t)cJSON_GetObjectItem(f, "n")->valuedouble,
                            (uint64_t)cJSON_GetObjectItem(f, "seed")->valuedouble);
    for (size_t i = 0; i < a; i++)
        for (size_t j = 0; j < b; j++) pare_row_mut(&p.w, i)[j] = number(w, i, j);
    cJSON_ArrayForEach(fit, cJSON_GetObjectItem(f, "fits"))
    {
        fit_result r, back;
        if (cJSON_GetObjectItem(fit, "side")->valuestring[0] == 'B') {
            assert_ok(fit_block(&back, *state, &p, NULL, NULL), NULL);
        } else {
            fit_problem transposed;
            assert_ok(fit_transpose(&transposed, *state, &p, NULL), NULL);
            assert_ok(fit_block(&r, *state, &transposed, NULL, NULL), NULL);
            assert_ok(fit_transpose_back(&back, *state, &r, NULL), NULL);
        }
        const cJSON *const e = cJSON_GetObjectItem(fit, "E");
        for (size_t i = 0; i < a; i++)
            for (size_t j = 0; j < b; j++)
                assert_near(pare_row(&back.e, i)[j], number(e, i, j), 1e-15);
    }
    fit_result best;
    assert_ok(fit_best(&best, *state, &p, NULL, NULL, NULL), NULL);
    assert_le(
        largest(&best.e),
        cJSON_GetObjectItem(cJSON_GetObjectItem(all, "fit_best_upper_bounds"), "max")->valuedouble);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(the_source_gives_known_answers),
        ARENA_TEST(residuals_are_those_of_the_masks),
        ARENA_TEST(blocks_are_blocks),
        ARENA_TEST(the_source_of_the_paper_computes_the_same),
        ARENA_TEST(the_same_source_is_used_far_better_than_by_blocks),
        ARENA_TEST(it_is_better_for_almost_every_seed),
        ARENA_TEST(the_smaller_side_is_worth_its_items),
        ARENA_TEST(same_masks_for_any_number_of_threads),
        ARENA_TEST(zeros_and_single_products_are_exact),
        ARENA_TEST(what_cannot_be_fitted_is_refused),
        ARENA_TEST(blocks_are_the_golden_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
