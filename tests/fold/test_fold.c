/* Tests src/fold/fold.c: in real numbers nothing changes, and each rule keeps its condition. */
#include <enclose_quad.h>
#include <enclose_models.h>
#include "base/support.h"
#include "fold/fold_parts.h"

/* Every weight as f64, so that what folding rounds is far below what a mistake would change. */
static pare_status widen(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)name, (void)vector, (void)err;
    pare_model *const m = self;
    if (!pare_has(w) || w->dtype == PARE_F64) return PARE_OK;
    double *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
    for (size_t i = 0; i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i);
    w->dtype = PARE_F64;
    w->data = v;
    return PARE_OK;
}

static double distance(const pare_model *f, const pare_model *g, const pare_input *in)
{
    pare_arena *const a = pare_arena_new();
    double worst = 0;
    for (size_t s = 0; s < in->batch; s++) {
        const qmat x = q_model(a, f, in, s), y = q_model(a, g, in, s);
        assert_true(x.n == y.n && x.d == y.d);
        for (size_t i = 0; i < x.n * x.d; i++) {
            const double scale = 1 + fabs((double)x.v[i]);
            worst = fmax(worst, fabs((double)(x.v[i] - y.v[i])) / scale);
        }
    }
    pare_arena_free(a);
    return worst;
}

static void folding_does_not_change_the_function(void **state)
{
    (void)state;
    size_t folded = 0;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        pare_model *const m = some_model(seed, 0.7);
        pare_model *g = NULL;
        pare_fold_report r;
        pare_err err = {0};
        assert_ok(pare_model_each_weight(m, widen, m, &err), &err);
        assert_ok(pare_fold(&g, &r, m, &err), &err);
        const pare_input in = some_input(m, seed, 1, 0.3);
        const double d = distance(m, g, &in);
        if (!(d <= 1e-7))
            fail_msg("seed %llu: folding moved an output by %g", (unsigned long long)seed, d);
        folded += r.norms + r.key_biases + r.value_biases;
        pare_model_free(g);
        pare_model_free(m);
    }
    assert_true(folded > 600);
}

/* Heads that are the output, under a batch norm, with value biases: the values carry the scale. */
static void heads_without_wo_are_scaled_in_their_values(void **state)
{
    (void)state;
    size_t seen = 0;
    for (uint64_t seed = 1; seed <= 900; seed++) {
        pare_model *const m = some_model(seed, 0.7), *g = NULL;
        pare_attn *const a = &m->blocks[0].attn;
        maker k = {.m = m, .r = pare_rng_at(seed, 79)};
        if (a->kind == PARE_ATTN_EXACT && !pare_has(&a->wo)) {
            pare_fold_report r;
            pare_err err = {0};
            seen++;
            while (a->out_norm.kind != PARE_NORM_BATCH) a->out_norm = some_norm(&k, a->dout);
            a->bv = weight(&k, 1, a->wv.rows, 1, 1);
            assert_ok(pare_model_each_weight(m, widen, m, &err), &err);
            assert_ok(pare_fold(&g, &r, m, &err), &err);
            const pare_input in = some_input(m, seed, 1, 0.3);
            const double d = distance(m, g, &in);
            if (!(d <= 1e-7))
                fail_msg("seed %llu: folding moved an output by %g", (unsigned long long)seed, d);
        }
        pare_model_free(g);
        pare_model_free(m);
    }
    assert_true(seen > 20);
}

static pare_status is_of_type(void *self, const char *name, pare_weight *w, bool vector,
                              pare_err *err)
{
    (void)vector;
    const pare_dtype *const want = self;
    if (!pare_has(w) || w->dtype == *want) return PARE_OK;
    return pare_fail(err, PARE_ERR_VERIFY, "%s is of another type", name);
}

/* Two heads with the same values, side by side in the output: folding the norm behind them makes a
 * wo, and it must not be of another type than the rest. */
static void a_wo_that_folding_makes_has_the_models_type(void **state)
{
    (void)state;
    for (pare_dtype t = PARE_F32;; t = PARE_F64) {
        pare_err err = {0};
        pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
        pare_fold_report r;
        pare_model *m = NULL, *g = NULL;
        o.kind = PARE_RANDOM_GRAPH;
        o.dim = 8;
        o.heads = 2;
        o.layers = 1;
        assert_ok(pare_random_model(&m, &o, &err), &err);
        pare_attn *const a = &m->blocks[0].attn;
        assert_true(a->out_norm.kind == PARE_NORM_BATCH && a->nheads == 2);
        a->wo = (pare_weight){0};
        a->heads[1].v = a->heads[0].v;
        a->wv.rows = 4;
        if (pare_has(&a->bv)) a->bv.cols = 4;
        if (t == PARE_F64) assert_ok(pare_model_each_weight(m, widen, m, &err), &err);
        assert_ok(pare_model_check(m, &err), &err);
        assert_ok(pare_fold(&g, &r, m, &err), &err);
        assert_true(pare_has(&g->blocks[0].attn.wo) && g->blocks[0].attn.wo.dtype == t);
        assert_ok(pare_model_each_weight(g, is_of_type, &t, &err), &err);
        pare_model_free(g);
        pare_model_free(m);
        if (t == PARE_F64) break;
    }
}

typedef struct bytes {
    size_t n;
    pare_sha256 hash;
} bytes;

static pare_status add_bytes(void *self, const char *name, pare_weight *w, bool vector,
                             pare_err *err)
{
    (void)vector, (void)err;
    bytes *const b = self;
    if (!pare_has(w)) return PARE_OK;
    pare_sha256_add(&b->hash, name, strlen(name));
    pare_sha256_add(&b->hash, w->data, w->rows * w->cols * pare_dtype_size(w->dtype));
    return PARE_OK;
}

static void digest(char hex[65], pare_model *m)
{
    bytes b = {0};
    pare_err err = {0};
    assert_ok(pare_sha256_begin(&b.hash, &err), &err);
    assert_ok(pare_model_each_weight(m, add_bytes, &b, &err), &err);
    pare_sha256_end(&b.hash, hex);
}

static void folding_twice_is_folding_once_and_leaves_its_input_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        pare_model *const m = some_model(seed, 0.7);
        pare_model *once = NULL, *twice = NULL;
        pare_fold_report r;
        pare_err err = {0};
        char before[65], after[65], one[65], two[65];
        digest(before, m);
        assert_ok(pare_fold(&once, &r, m, &err), &err);
        digest(after, m);
        assert_string_equal(before, after);
        assert_ok(pare_fold(&twice, &r, once, &err), &err);
        assert_true(r.norms == 0 && r.key_biases == 0 && r.value_biases == 0 && r.rounded == 0);
        digest(one, once);
        digest(two, twice);
        assert_string_equal(one, two);
        pare_model_free(twice);
        pare_model_free(once);
        pare_model_free(m);
    }
}

static pare_model *random_kind(pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = kind;
    o.dim = 8;
    o.heads = 2;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static void a_gpt_loses_gains_biases_and_key_biases_but_not_its_tied_norm(void **state)
{
    (void)state;
    pare_model *const m = random_kind(PARE_RANDOM_GPT), *g = NULL;
    pare_fold_report r;
    pare_err err = {0};
    assert_ok(pare_fold(&g, &r, m, &err), &err);
    for (size_t b = 0; b < g->nblocks; b++) {
        const pare_attn *const a = &g->blocks[b].attn;
        assert_true(a->in_norm.kind == PARE_NORM_LAYER && !pare_has(&a->in_norm.gain));
        assert_true(!pare_has(&a->bk) && !pare_has(&a->bv) && pare_has(&a->bq));
        assert_false(pare_has(&g->blocks[b].ffn.in_norm.bias));
    }
    assert_true(g->head.tied && pare_has(&g->head.norm.gain));
    assert_int_equal(r.norms, 2 * m->nblocks);
    assert_int_equal(r.key_biases, m->nblocks);
    assert_int_equal(r.value_biases, m->nblocks);
    pare_model_free(g);
    pare_model_free(m);
}

/* With rotary positions q.R bk depends on the key's position: it must stay. */
static void key_biases_stay_under_rotary_positions(void **state)
{
    (void)state;
    pare_model *const m = random_kind(PARE_RANDOM_LLAMA), *g = NULL;
    pare_attn *const a = &m->blocks[0].attn;
    pare_fold_report r;
    pare_err err = {0};
    float *const bk = pare_alloc(m->arena, a->wk.rows, sizeof *bk);
    for (size_t i = 0; i < a->wk.rows; i++) bk[i] = 1;
    a->bk = (pare_weight){PARE_F32, 1, a->wk.rows, bk};
    assert_ok(pare_fold(&g, &r, m, &err), &err);
    assert_true(pare_has(&g->blocks[0].attn.bk));
    assert_int_equal(r.key_biases, 0);
    pare_model_free(g);
    pare_model_free(m);
}

static void value_biases_stay_where_a_row_can_be_empty(void **state)
{
    (void)state;
    for (int loops = 0; loops < 2; loops++) {
        pare_model *const m = random_kind(PARE_RANDOM_GRAPH), *g = NULL;
        pare_fold_report r;
        pare_err err = {0};
        m->pattern.self_loops = loops;
        assert_ok(pare_fold(&g, &r, m, &err), &err);
        assert_int_equal(pare_has(&g->blocks[0].attn.bv), !loops);
        assert_true(g->blocks[0].attn.out_norm.kind == PARE_NORM_NONE);
        assert_true(g->blocks[0].attn.skip.kind == PARE_SKIP_DIAGONAL);
        pare_model_free(g);
        pare_model_free(m);
    }
}

/* "No weight was rounded" makes the a-priori bound zero, so it must be exactly true: whenever the
 * report says so, 113-bit arithmetic must find no difference at all beyond its own. */
static void a_fold_that_claims_no_rounding_has_none(void **state)
{
    (void)state;
    size_t exact = 0, inexact = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        pare_model *const m = some_model(seed, 0.7);
        pare_model *g = NULL;
        pare_fold_report r;
        pare_err err = {0};
        if (seed % 2) assert_ok(pare_model_each_weight(m, widen, m, &err), &err);
        assert_ok(pare_fold(&g, &r, m, &err), &err);
        const pare_input in = some_input(m, seed, 1, 0.3);
        const double d = distance(m, g, &in);
        if (r.rounded == 0 && !(d <= 1e-27))
            fail_msg("seed %llu claims no rounding, but moved by %g", (unsigned long long)seed, d);
        if (r.norms + r.key_biases + r.value_biases) *(r.rounded ? &inexact : &exact) += 1;
        pare_model_free(g);
        pare_model_free(m);
    }
    print_message("%zu folds without rounding, %zu with\n", exact, inexact);
    assert_true(exact > 0 && inexact > 100);
}

/* Of a folder: what has moved is gone from where it was, no bias is made where there was none, and
 * the second time there is nothing to do. */
static void a_fold_into_the_tensors_of_a_folder_makes_none(void **state)
{
    (void)state;
    const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};
    for (size_t k = 0; k < 3; k++)
        for (int value_biases = 0; value_biases < 2; value_biases++) {
            pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
            pare_model *m = NULL, *g = NULL, *h = NULL;
            pare_fold_report r, again;
            pare_err err = {0};
            double ones[8], zeros[8] = {0};
            o.kind = kinds[k], o.dim = 8, o.heads = 2, o.layers = 1, o.ffn = 8, o.vocab = 7;
            assert_ok(pare_random_model(&m, &o, &err), &err);
            assert_ok(pare_model_each_weight(m, widen, m, &err), &err);
            for (size_t i = 0; i < 8; i++) ones[i] = 1.25;
            pare_attn *const a = &m->blocks[0].attn;
            const pare_weight v = {PARE_F64, 1, 8, ones}, none = {0};
            a->bv = value_biases ? v : none;
            if (pare_has(&a->in_norm.gain)) a->in_norm.gain = v;
            if (kinds[k] == PARE_RANDOM_LLAMA && a->wv.rows != 8) a->bv = none;
            if (kinds[k] == PARE_RANDOM_LLAMA) a->bo = none;
            assert_ok(fold_model(&g, &r, m, true, &err), &err);
            const pare_attn *const b = &g->blocks[0].attn;
            assert_true(r.norms + r.key_biases + r.value_biases > 0);
            assert_int_equal(pare_has(&b->bo) && !pare_has(&a->bo), 0);
            assert_int_equal(pare_has(&b->bq) && !pare_has(&a->bq), 0);
            if (kinds[k] == PARE_RANDOM_LLAMA) assert_int_equal(r.value_biases, 0);
            /* as the folder has it: gains of 1, biases of 0 */
            pare_attn *const c = &g->blocks[0].attn;
            for (size_t i = 0; i < 8; i++) ones[i] = 1;
            if (pare_has(&a->bk)) c->bk = (pare_weight){PARE_F64, 1, c->wk.rows, zeros};
            if (pare_has(&a->bv) && !pare_has(&c->bv)) c->bv = (pare_weight){PARE_F64, 1, 8, zeros};
            if (c->in_norm.kind != PARE_NORM_NONE) c->in_norm.gain = v;
            assert_ok(fold_model(&h, &again, g, true, &err), &err);
            assert_int_equal(again.norms + again.key_biases + again.value_biases, 0);
            pare_model_free(h);
            pare_model_free(g);
            pare_model_free(m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding_does_not_change_the_function),
        cmocka_unit_test(heads_without_wo_are_scaled_in_their_values),
        cmocka_unit_test(a_wo_that_folding_makes_has_the_models_type),
        cmocka_unit_test(a_fold_that_claims_no_rounding_has_none),
        cmocka_unit_test(folding_twice_is_folding_once_and_leaves_its_input_alone),
        cmocka_unit_test(a_gpt_loses_gains_biases_and_key_biases_but_not_its_tied_norm),
        cmocka_unit_test(key_biases_stay_under_rotary_positions),
        cmocka_unit_test(value_biases_stay_where_a_row_can_be_empty),
        cmocka_unit_test(a_fold_into_the_tensors_of_a_folder_makes_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
