/* Properties of a ticket's parts that no file of its own stands for: the source's streams, the
 * search under changes that must not matter, residuals, and golden vectors. */
#include "subset_cases.h"
#include "ticket_pairs.h"
#include "ticket/fit.h"
#include "base/json.h"
#include "base/support.h"
#include "linalg/matrix.h"
#include "model/source.h"
#include "ticket/ticket_bounds.h"

/* A million draws of each stream have the mean of U(-1, 1), and two streams know nothing of one
 * another: neighbors, the two of one ticket, other seeds. */
static void streams_are_uniform_and_independent(void **state)
{
    enum { MANY = 1000000, STREAMS = 5 };
    const uint64_t stream[STREAMS] = {0, 1, pare_source_stream(0, 0, PARE_SOURCE_K),
                                      pare_source_stream(1, 0, PARE_SOURCE_Q), 0};
    int32_t *const w = malloc((size_t)STREAMS * MANY * sizeof *w);
    (void)state;
    assert_non_null(w);
    for (size_t s = 0; s < STREAMS; s++)
        pare_source_weights(w + s * MANY, s == 4 ? 2 : 1, stream[s], 0, MANY);
    for (size_t s = 0; s < STREAMS; s++) {
        double sum = 0;
        for (size_t i = 0; i < MANY; i++) {
            assert_true(w[s * MANY + i] % 2 != 0 && abs(w[s * MANY + i]) < 1 << 24);
            sum += w[s * MANY + i] * 0x1p-24;
        }
        assert_near(sum / MANY, 0, 4 * sqrt(1.0 / 3 / MANY));
        for (size_t t = 0; t < s; t++) {
            double both = 0;
            for (size_t i = 0; i < MANY; i++)
                both += (w[s * MANY + i] * 0x1p-24) * (w[t * MANY + i] * 0x1p-24);
            assert_near(both / MANY, 0, 4 * (1.0 / 3) / sqrt(MANY));
        }
    }
    free(w);
}

static int64_t least(const int64_t *x, size_t n, int64_t t)
{
    uint64_t mask[1];
    pare_subset s;
    pare_err err = {0};
    assert_ok(pare_subset_sum(&s, mask, x, n, t, NULL, &err), &err);
    return llabs(s.error);
}

static void order_does_not_matter_and_more_items_never_hurt(void **state)
{
    pare_rng r = pare_rng_at(21, 0);
    (void)state;
    for (int it = 0; it < 600; it++) {
        int64_t x[24], moved[24];
        uint32_t at[24];
        const size_t n = 1 + (size_t)below(&r, 23);
        const int64_t t = make_problem(x, n + 1, it % KINDS, &r), best = least(x, n, t);
        for (size_t k = 0; k < n; k++) at[k] = (uint32_t)k;
        pare_rng_shuffle(&r, at, n);
        for (size_t k = 0; k < n; k++) moved[k] = x[at[k]];
        if (least(moved, n, t) != best) fail_msg("case %d, %zu items, seed 21: order", it, n);
        if (least(x, n + 1, t) > best) fail_msg("case %d, %zu items, seed 21: more", it, n);
    }
}

/* A residual from the masks is the error of the search, times the unit and the scale. */
static void residuals_are_the_errors_of_the_search(void **state)
{
    pare_arena *const a = pare_arena_new();
    (void)state;
    assert_non_null(a);
    for (uint64_t seed = 0; seed < 4; seed++) {
        enum { ROWS = 5, COLS = 3, EACH = 9, UNITS = COLS * EACH };
        int32_t left[ROWS * UNITS], right[UNITS * COLS];
        pare_rng r = pare_rng_at(seed, 4);
        fit_result f;
        fit_problem p = {.a = ROWS, .b = COLS, .n = UNITS, .w = pare_mat_new(a, ROWS, COLS)};
        p.scale = seed % 2 ? 1 : .25;
        pare_source_weights(left, seed, 0, 0, ROWS * UNITS);
        pare_source_weights(right, seed, 1, 0, UNITS * COLS);
        p.A = left, p.B = right;
        for (size_t i = 0; i < ROWS * COLS; i++) p.w.v[i] = .2 * pare_rng_normal(&r);
        assert_ok(fit_block(&f, a, &p, NULL, NULL), NULL);
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < COLS; j++) {
                int64_t item[EACH];
                for (size_t c = 0; c < EACH; c++) item[c] = fit_item(&p, i, j * EACH + c, j);
                const double w = pare_row(&p.w, i)[j];
                const int64_t t = llrint(w / p.scale / PARE_SOURCE_UNIT);
                assert_near(fabs(pare_row(&f.e, i)[j]),
                            (double)least(item, EACH, t) * PARE_SOURCE_UNIT * p.scale, 1e-14);
            }
    }
    pare_arena_free(a);
}

/* ---- golden vectors of an independent numpy implementation ----------------------------------- */

static cJSON *reference(pare_arena *a)
{
    static const char path[] = "../shared/reference/ticket/vectors.json";
    char *text;
    size_t size;
    assert_ok(pare_text_read(&text, &size, a, path, NULL), NULL);
    cJSON *const all = cJSON_Parse(text);
    assert_non_null(all);
    return all;
}

static void the_search_is_the_golden_one(void **state)
{
    NEED_SHARED("../shared/reference/ticket/vectors.json");
    pare_arena *const a = pare_arena_new();
    (void)state;
    assert_non_null(a);
    cJSON *const all = reference(a);
    const cJSON *one;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(all, "subset_sum"))
    {
        int32_t u[2 * 24];
        int64_t x[24];
        const size_t n = (size_t)cJSON_GetObjectItem(one, "n")->valuedouble;
        pare_source_weights(u, 7, n, 0, 2 * n);
        for (size_t k = 0; k < n; k++) x[k] = (int64_t)u[k] * u[n + k];
        const int64_t t = (int64_t)cJSON_GetObjectItem(one, "target")->valuedouble;
        assert_true(least(x, n, t) == (int64_t)cJSON_GetObjectItem(one, "abs_err")->valuedouble);
    }
    cJSON_Delete(all);
    pare_arena_free(a);
}

/* rows x cols numbers, transposed or not. */
static pare_weight matrix_of(pare_model *m, const cJSON *from, const char *name, bool turn,
                             double sign, const double *plus)
{
    const cJSON *const list = cJSON_GetObjectItem(from, name);
    const size_t r = (size_t)cJSON_GetArraySize(list),
                 c = (size_t)cJSON_GetArraySize(cJSON_GetArrayItem(list, 0));
    double *const v = pare_alloc(m->arena, r * c, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < r; i++)
        for (size_t j = 0; j < c; j++) {
            const cJSON *const row = cJSON_GetArrayItem(list, (int)i);
            const size_t at = turn ? j * r + i : i * c + j;
            v[at] = (plus ? plus[at] : 0) + sign * cJSON_GetArrayItem(row, (int)j)->valuedouble;
        }
    return (pare_weight){PARE_F64, turn ? c : r, turn ? r : c, v};
}

/* Scores of f are 0, those of g -E; values V and V - E. Ours may be smaller: it also looks at g's
 * own values, and at other centres of the attended ones. */
static void bounds_are_at_most_the_golden_ones(void **state)
{
    NEED_SHARED("../shared/reference/ticket/vectors.json");
    pare_arena *const a = pare_arena_new();
    pare_err err = {0};
    pare_rng r = pare_rng_at(1, 1);
    const pair_shape s = {
        .d1 = 4, .d2 = 3, .heads = 1, .dk = 4, .blocks = 1, .pattern = {.kind = PARE_CAUSAL}};
    static const double eye[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    pare_model *const f = pair_target(&r, &s), *g;
    pare_ticket_layer b;
    pare_ub c[6];
    (void)state;
    assert_non_null(a);
    cJSON *const all = reference(a);
    const cJSON *const cert = cJSON_GetObjectItem(all, "cert");
    pare_attn *const x = &f->blocks[0].attn;
    x->heads[0].scale = 1;
    x->wq = x->wv = (pare_weight){PARE_F64, 4, 4, eye};
    x->wo = matrix_of(f, cert, "VO", true, 1, NULL);
    assert_ok(pare_model_clone(&g, f, &err), &err);
    pare_attn *const y = &g->blocks[0].attn;
    y->wk = matrix_of(g, cert, "EQK", false, -1, NULL);
    y->wo = matrix_of(g, cert, "EVO", true, -1, x->wo.data);
    assert_ok(pare_ticket_layer_bound(&b, f, g, 0, 2, NULL, &err), &err);
    const double free_ref = cJSON_GetObjectItem(cert, "free")->valuedouble,
                 paper = cJSON_GetObjectItem(cert, "paper")->valuedouble;
    assert_near(b.paper_est, paper, 1e-12 * paper);
    assert_le(b.free.v, free_ref * (1 + 1e-4)); /* norms are from above */
    assert_le(.999 * free_ref, b.free.v);
    const pare_weight rows = matrix_of(f, cert, "X", false, 1, NULL);
    const pare_mat z = pare_mat_of((double *)(uintptr_t)rows.data, 6, 4);
    assert_ok(pare_ticket_rows_bound(c, f, g, 0, &z, NULL, NULL, &err), &err);
    for (int i = 0; i < 6; i++) {
        const double ref = cJSON_GetArrayItem(cJSON_GetObjectItem(cert, "data"), i)->valuedouble;
        assert_le(c[i].v, ref * (1 + 1e-4));
        assert_le(.95 * ref, c[i].v);
    }
    cJSON_Delete(all);
    pare_model_free(g);
    pare_model_free(f);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_uniform_and_independent),
        cmocka_unit_test(order_does_not_matter_and_more_items_never_hurt),
        cmocka_unit_test(residuals_are_the_errors_of_the_search),
        cmocka_unit_test(the_search_is_the_golden_one),
        cmocka_unit_test(bounds_are_at_most_the_golden_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
