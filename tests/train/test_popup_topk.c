/* Tests src/train/popup_topk.c against a sort. */
#include "train/popup_topk.h"
#include <pare_test.h>

typedef struct place {
    uint32_t size;
    size_t at;
} place;

static int larger_first(const void *x, const void *y)
{
    const place *const a = x, *const b = y;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->at < b->at ? -1 : 1;
}

/* The plain way: sort by |score|, then by place. */
static void by_sorting(float *out, const float *weight, const float *score, size_t n, size_t keep)
{
    place *const all = malloc(n * sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < n; i++) {
        memcpy(&all[i].size, &score[i], sizeof(float));
        all[i].size &= 0x7fffffff;
        all[i].at = i;
        out[i] = 0;
    }
    qsort(all, n, sizeof *all, larger_first);
    for (size_t i = 0; i < keep; i++) out[all[i].at] = weight[all[i].at];
    free(all);
}

typedef enum scores { SMOOTH, FEW_VALUES, ALL_EQUAL, EXTREME, KINDS } scores;

static float draw(pare_rng *r, scores kind)
{
    static const float odd[] = {0.0f, -0.0f, 1e-45f, -1e-45f, 1e38f, -1e38f, INFINITY, 1, -1};
    if (kind == SMOOTH) return (float)pare_rng_normal(r);
    if (kind == FEW_VALUES) return (float)pare_rng_below(r, 7) - 3;
    if (kind == ALL_EQUAL) return pare_rng_below(r, 2) ? 0.5f : -0.5f;
    return odd[pare_rng_below(r, 9)];
}

static void check(const topk_matrix *m, size_t matrices, size_t edge_scratch, scores kind,
                  int threads)
{
    float *const s = malloc(edge_scratch * sizeof *s), *const w = malloc(edge_scratch * sizeof *w);
    float *const out = malloc(edge_scratch * sizeof *out), *const want =
                                                               malloc(edge_scratch * sizeof *want);
    pare_arena *const a = pare_arena_new();
    topk *sel = NULL;
    pare_err err = {0};
    assert_true(s && w && out && want && a);
    assert_ok(topk_new(&sel, a, m, matrices, &err), &err);
    for (uint64_t round = 0; round < 2; round++) { /* the second one finds a used table */
        pare_rng r = pare_rng_at(3, 10 * round + (uint64_t)kind);
        const pare_exec exec = {.threads = threads};
        for (size_t i = 0; i < edge_scratch; i++) {
            s[i] = draw(&r, kind);
            w[i] = (float)pare_rng_normal(&r);
            out[i] = want[i] = 123;
        }
        for (size_t i = 0; i < matrices; i++)
            by_sorting(want + m[i].offset, w + m[i].offset, s + m[i].offset, m[i].count, m[i].keep);
        topk_apply(sel, out, w, s, &exec);
        assert_memory_equal(out, want, edge_scratch * sizeof *out); /* and +0, not -0 */
    }
    pare_arena_free(a);
    free(s), free(w), free(out), free(want);
}

static void the_largest_are_kept_and_of_equals_the_first(void **state)
{
    (void)state;
    const topk_matrix m[] = {{0, 1, 1},
                             {3, 2, 1},
                             {5, 1000, 300},
                             {1010, 1000, 1000},
                             {2010, 70000, 21000},
                             {72010, 32768, 32767},
                             {104778, 33000, 1}};
    for (scores kind = 0; kind < KINDS; kind++)
        for (int threads = 1; threads <= 3; threads += 2) check(m, 7, 138000, kind, threads);
}

static void every_number_that_can_be_kept(void **state)
{
    (void)state;
    for (size_t keep = 1; keep <= 40; keep++) {
        const topk_matrix m = {2, 40, keep};
        for (scores kind = 0; kind < KINDS; kind++) check(&m, 1, 44, kind, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_are_kept_and_of_equals_the_first),
        cmocka_unit_test(every_number_that_can_be_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
