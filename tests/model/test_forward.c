/* Tests src/model/forward*.c on random models of every kind. That a pass computes the definition is
 * shown in tests/cert/test_enclose.c (against 113-bit arithmetic) and test_golden.c. */
#include <enclose_models.h>
#include "model/inputs.h"

enum { MODELS = 400 };

typedef struct outputs {
    double *f64;
    float *f32;
    size_t n;
} outputs;

static outputs run(const pare_model *m, const pare_input *in, const pare_trace *trace, int threads)
{
    const pare_exec x = {.threads = threads};
    outputs o = {.n = pare_output_rows(m, in) * pare_model_outputs(m)};
    pare_err err = {0};
    o.f64 = calloc(o.n, sizeof *o.f64);
    o.f32 = calloc(o.n, sizeof *o.f32);
    assert_ok(pare_forward_f64(o.f64, m, in, trace, &x, &err), &err);
    assert_ok(pare_forward_f32(o.f32, m, in, NULL, &x, &err), &err);
    return o;
}

static void done(outputs *o)
{
    free(o->f64);
    free(o->f32);
}

static void both_passes_agree_up_to_f32(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        pare_model *const m = some_model(seed, 0.5);
        const pare_input in = some_input(m, seed, 1, 0);
        outputs o = run(m, &in, NULL, 1);
        double scale = 1;
        for (size_t i = 0; i < o.n; i++) scale = fmax(scale, fabs(o.f64[i]));
        for (size_t i = 0; i < o.n; i++)
            if (!(fabs(o.f64[i] - (double)o.f32[i]) <= 2e-3 * scale))
                fail_msg("seed %llu: f64 %g, f32 %g", (unsigned long long)seed, o.f64[i],
                         (double)o.f32[i]);
        done(&o);
        pare_model_free(m);
    }
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MODELS / 4; seed++) {
        pare_model *const m = some_model(seed, 1);
        const pare_input in = some_input(m, seed, 1, 0);
        outputs one = run(m, &in, NULL, 1), three = run(m, &in, NULL, 3);
        assert_memory_equal(one.f64, three.f64, one.n * sizeof *one.f64);
        assert_memory_equal(one.f32, three.f32, one.n * sizeof *one.f32);
        done(&one);
        done(&three);
        pare_model_free(m);
    }
}

static void a_batch_is_its_sequences(void **state)
{
    (void)state;
    size_t batches = 0;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        pare_model *const m = some_model(seed, 1);
        const pare_input in = some_input(m, seed, 1, 0);
        outputs all = run(m, &in, NULL, 1);
        for (size_t b = 0; in.batch > 1 && b < in.batch; b++) {
            pare_input one = in;
            one.batch = 1;
            if (in.ids) one.ids = in.ids + b * in.tokens;
            if (in.x) one.x = in.x + b * in.tokens * in.width;
            outputs o = run(m, &one, NULL, 1);
            for (size_t i = 0; i < o.n; i++)
                assert_near(all.f64[b * o.n + i], o.f64[i], 1e-10 * (1 + fabs(o.f64[i])));
            done(&o);
            batches++;
        }
        done(&all);
        pare_model_free(m);
    }
    assert_true(batches > 100);
}

/* What the taps show: each sublayer's input is the output of the one before it. */
typedef struct chain {
    double *last;
    size_t rows, cols, taps;
} chain;

static void follow(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v,
                   size_t rows, size_t cols)
{
    (void)block;
    chain *const c = self;
    const size_t bytes = rows * cols * sizeof(double);
    assert_int_equal(dtype, PARE_F64);
    if (tap == PARE_TAP_ATTN_IN || tap == PARE_TAP_FFN_IN) {
        assert_true(c->last && c->rows == rows && c->cols == cols);
        assert_memory_equal(c->last, v, bytes);
    }
    c->last = realloc(c->last, bytes);
    memcpy(c->last, v, bytes);
    c->rows = rows;
    c->cols = cols;
    c->taps++;
}

static void the_trace_shows_every_sublayer_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MODELS / 4; seed++) {
        pare_model *const m = some_model(seed, 1);
        const pare_input in = some_input(m, seed, 1, 0);
        chain c = {0};
        const pare_trace trace = {.fn = follow, .self = &c};
        outputs with = run(m, &in, &trace, 1), without = run(m, &in, NULL, 1);
        size_t sublayers = 0;
        for (size_t b = 0; b < m->nblocks; b++)
            sublayers += (m->blocks[b].attn.kind != PARE_ATTN_NONE ? 1u : 0u) +
                         (m->blocks[b].ffn.kind != PARE_FFN_NONE ? 1u : 0u);
        assert_int_equal(c.taps, 2 + 2 * sublayers);
        assert_int_equal(c.rows, in.batch * in.tokens);
        assert_memory_equal(with.f64, without.f64, with.n * sizeof *with.f64);
        free(c.last);
        done(&with);
        done(&without);
        pare_model_free(m);
    }
}

static void unfit_inputs_are_refused(void **state)
{
    (void)state;
    pare_err err = {0};
    size_t tried = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        pare_model *const m = some_model(seed, 1);
        pare_input in = some_input(m, seed, 1, 0);
        const pare_input good = in;
        int64_t id = (int64_t)m->stem.vocab;
        double bad = NAN;
        in.batch = in.tokens = 1;
        if (in.ids) in.ids = &id;
        if (in.x) in.x = &bad;
        if (m->pattern.kind != PARE_GRAPH) {
            assert_int_equal(pare_exit_code(pare_input_check(m, &in, &err)), 2);
            tried++;
        }
        in = good;
        in.tokens = 0;
        assert_int_equal(pare_exit_code(pare_input_check(m, &in, &err)), 2);
        in = good;
        in.ids = NULL;
        in.x = NULL;
        assert_int_equal(pare_exit_code(pare_input_check(m, &in, &err)), 2);
        in = good;
        in.graph = NULL;
        if (m->pattern.kind == PARE_GRAPH)
            assert_int_equal(pare_exit_code(pare_input_check(m, &in, &err)), 2);
        in = good;
        if (m->context) {
            in.tokens = m->context + 1;
            assert_int_equal(pare_exit_code(pare_input_check(m, &in, &err)), 2);
        }
        pare_model_free(m);
    }
    assert_true(tried > 10);
}

static void random_inputs_follow_their_seed_and_their_hash_sees_everything(void **state)
{
    (void)state;
    char one[65], two[65], other[65];
    pare_err err = {0};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        pare_model *const m = some_model(seed, 1);
        pare_inputs a, b, c;
        const size_t tokens = m->context && m->context < 5 ? m->context : 5;
        assert_ok(pare_inputs_random(&a, m->arena, m, 3, tokens, 1, &err), &err);
        assert_ok(pare_inputs_random(&b, m->arena, m, 3, tokens, 1, &err), &err);
        assert_ok(pare_inputs_random(&c, m->arena, m, 3, tokens, 2, &err), &err);
        assert_ok(pare_input_check(m, &a.in[2], &err), &err);
        assert_ok(pare_inputs_sha256(one, &a, &err), &err);
        assert_ok(pare_inputs_sha256(two, &b, &err), &err);
        assert_ok(pare_inputs_sha256(other, &c, &err), &err);
        assert_string_equal(one, two);
        assert_string_not_equal(one, other);
        b.n = 2;
        assert_ok(pare_inputs_sha256(two, &b, &err), &err);
        assert_string_not_equal(one, two);
        pare_model_free(m);
    }
}

/* ---- shapes whose rows are cut: ranges, long ranges, chunks that are shared out whole ---------
 */

typedef struct cut {
    pare_random_kind kind;
    size_t dim, ffn, vocab, batch, tokens;
} cut;

static const cut cuts[] = {
    {PARE_RANDOM_LLAMA, 16, 44, 64, 1, 301},  /* ranges */
    {PARE_RANDOM_GPT, 16, 0, 64, 1, 2100},    /* long ranges */
    {PARE_RANDOM_LLAMA, 16, 44, 64, 9, 601},  /* chunks of one sequence, shared out */
    {PARE_RANDOM_GPT, 16, 0, 64, 50, 211},    /* chunks of several, the last one short */
    {PARE_RANDOM_BERT, 16, 0, 64, 3, 400},    /* pooled: the top looks at whole sequences */
    {PARE_RANDOM_GPT, 16, 0, 40000, 1, 150},  /* a large head on a small model */
    {PARE_RANDOM_GPT, 256, 1100, 64, 2, 300}, /* a large model: no ranges */
    {PARE_RANDOM_GRAPH, 16, 0, 0, 1, 3000},
};
enum { CUTS = sizeof cuts / sizeof *cuts };

static pare_model *cut_model(const cut *c)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m;
    pare_err err = {0};
    o.kind = c->kind;
    o.dim = c->dim;
    o.ffn = c->ffn;
    o.vocab = c->vocab;
    o.context = c->tokens;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static pare_input cut_input(const cut *c, pare_model *m)
{
    pare_inputs in;
    pare_err err = {0};
    assert_ok(pare_inputs_random(&in, m->arena, m, 1, c->tokens, 3, &err), &err);
    if (c->batch == 1) return in.in[0];
    int64_t *const ids = pare_alloc(m->arena, c->batch * c->tokens, sizeof *ids);
    assert_non_null(ids);
    pare_rng r = pare_rng_at(4, 0);
    for (size_t i = 0; i < c->batch * c->tokens; i++)
        ids[i] = (int64_t)pare_rng_below(&r, c->vocab);
    return (pare_input){.batch = c->batch, .tokens = c->tokens, .ids = ids};
}

static void rows_cut_any_way_give_the_same_function(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        pare_model *const m = cut_model(&cuts[i]);
        const pare_input in = cut_input(&cuts[i], m);
        outputs one = run(m, &in, NULL, 1), three = run(m, &in, NULL, 3);
        assert_memory_equal(one.f32, three.f32, one.n * sizeof *one.f32);
        for (size_t k = 0; k < one.n; k++)
            if (!(fabs(one.f64[k] - (double)one.f32[k]) <= 1e-4 * (1 + fabs(one.f64[k]))))
                fail_msg("case %zu, entry %zu: f64 %g, f32 %g", i, k, one.f64[k],
                         (double)one.f32[k]);
        done(&one);
        done(&three);
        pare_model_free(m);
    }
}

/* Wild models (widths that change, every kind of attention) on many copies of one sequence, some
 * hundred rows: each copy must come out like the one. */
static void many_copies_of_a_sequence_give_many_copies_of_its_output(void **state)
{
    (void)state;
    enum { COPIES = 100 };
    size_t tried = 0;
    for (uint64_t seed = 1; seed <= MODELS / 2; seed++) {
        pare_model *const m = some_model(seed, 0.5);
        pare_input in = some_input(m, seed, 1, 0);
        in.batch = 1;
        if (m->pattern.kind != PARE_GRAPH && in.tokens > 1) {
            outputs one = run(m, &in, NULL, 1);
            pare_input many = in;
            const size_t size = in.tokens * (in.ids ? 1 : in.width);
            int64_t *const ids = pare_alloc(m->arena, COPIES * size, sizeof *ids);
            double *const x = pare_alloc(m->arena, COPIES * size, sizeof *x);
            for (size_t c = 0; c < COPIES * size; c++) {
                ids[c] = in.ids ? in.ids[c % size] : 0;
                x[c] = in.x ? in.x[c % size] : 0;
            }
            many.batch = COPIES;
            many.ids = in.ids ? ids : NULL;
            many.x = in.x ? x : NULL;
            outputs all = run(m, &many, NULL, 3);
            double scale = 1;
            for (size_t i = 0; i < one.n; i++) scale = fmax(scale, fabs(one.f64[i]));
            for (size_t i = 0; i < all.n; i++)
                if (!(fabs((double)all.f32[i] - one.f64[i % one.n]) <= 2e-3 * scale))
                    fail_msg("seed %llu, copy %zu: %g, not %g", (unsigned long long)seed, i / one.n,
                             (double)all.f32[i], one.f64[i % one.n]);
            done(&one);
            done(&all);
            tried++;
        }
        pare_model_free(m);
    }
    assert_true(tried > 50);
}

typedef struct taps {
    size_t n;
    double size;
} taps;

static void count_taps(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v,
                       size_t rows, size_t cols)
{
    (void)tap, (void)block;
    taps *const t = self;
    assert_int_equal(dtype, PARE_F32);
    for (size_t i = 0; i < rows * cols; i++) t->size += fabs((double)((const float *)v)[i]);
    assert_true(isfinite(t->size));
    t->n++;
}

static void a_traced_f32_pass_is_the_same_pass(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        pare_model *const m = cut_model(&cuts[i]);
        const pare_input in = cut_input(&cuts[i], m);
        const size_t n = pare_output_rows(m, &in) * pare_model_outputs(m);
        float *const plain = calloc(n, sizeof *plain), *const traced = calloc(n, sizeof *traced);
        taps t = {0};
        const pare_trace trace = {.fn = count_taps, .self = &t};
        pare_err err = {0};
        assert_ok(pare_forward_f32(plain, m, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f32(traced, m, &in, &trace, NULL, &err), &err);
        assert_int_equal(t.n, 2 + 4 * m->nblocks);
        for (size_t k = 0; k < n; k++)
            assert_near((double)plain[k], (double)traced[k], 1e-4 * (1 + fabs((double)plain[k])));
        free(plain);
        free(traced);
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_passes_agree_up_to_f32),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(a_batch_is_its_sequences),
        cmocka_unit_test(the_trace_shows_every_sublayer_in_order),
        cmocka_unit_test(rows_cut_any_way_give_the_same_function),
        cmocka_unit_test(many_copies_of_a_sequence_give_many_copies_of_its_output),
        cmocka_unit_test(a_traced_f32_pass_is_the_same_pass),
        cmocka_unit_test(unfit_inputs_are_refused),
        cmocka_unit_test(random_inputs_follow_their_seed_and_their_hash_sees_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
