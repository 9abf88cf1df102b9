/* Tests src/model/decode*.c: one token after the other gives what the whole pass gives. */
#include <enclose_models.h>
#include "model/decode.h"
#include "linalg/matrix.h"
#include "model/decode_state.h"

enum { MODELS = 300, TOKENS = 14 };

/* The next seed from *seed on whose wild model can be decoded. */
static pare_model *next_model(uint64_t *seed, double sigma)
{
    for (;; ++*seed) {
        pare_model *const m = some_model(*seed, sigma);
        if (!pare_decoder_refuses(m)) return m;
        pare_model_free(m);
    }
}

static pare_decoder *decoder(const pare_model *m, size_t max, int threads)
{
    const pare_exec x = {.threads = threads};
    pare_err err = {0};
    pare_decoder *d = NULL;
    assert_ok(pare_decoder_new(&d, m, max, &x, &err), &err);
    return d;
}

static void some_ids(int64_t *ids, size_t n, const pare_model *m, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 5);
    for (size_t i = 0; i < n; i++) ids[i] = (int64_t)pare_rng_below(&r, m->stem.vocab);
}

static void assert_row(const double *want, const float *got, size_t n, double tol, uint64_t seed,
                       size_t row)
{
    double scale = 1;
    for (size_t j = 0; j < n; j++) scale = fmax(scale, fabs(want[j]));
    for (size_t j = 0; j < n; j++)
        if (!(fabs(want[j] - (double)got[j]) <= tol * scale))
            fail_msg("seed %llu, token %zu, column %zu: pass %g, decoder %g",
                     (unsigned long long)seed, row, j, want[j], (double)got[j]);
}

/* Every row of the f64 pass, against the decoder fed token by token. */
static void assert_like_the_pass(pare_model *m, const int64_t *ids, size_t n, double tol,
                                 const decode_kernels *go, uint64_t seed)
{
    const size_t cols = pare_model_outputs(m);
    const pare_input in = {.batch = 1, .tokens = n, .ids = ids};
    double *const want = calloc(n * cols, sizeof *want);
    const float *got;
    pare_err err = {0};
    assert_ok(pare_forward_f64(want, m, &in, NULL, NULL, &err), &err);
    pare_decoder *const d = decoder(m, n, 1);
    if (go) d->kernels = go;
    for (size_t i = 0; i < n; i++) {
        assert_ok(pare_decoder_step(d, ids[i], &got, &err), &err);
        assert_row(want + i * cols, got, cols, tol, seed, i);
    }
    pare_decoder_free(d);
    free(want);
}

static void step_by_step_is_the_whole_pass_on_wild_models(void **state)
{
    (void)state;
    size_t windows = 0, kinds[16] = {0};
    uint64_t seed = 1;
    for (size_t k = 0; k < MODELS; k++, seed++) {
        pare_model *const m = next_model(&seed, 0.5);
        int64_t ids[TOKENS];
        some_ids(ids, TOKENS, m, seed);
        windows += m->pattern.kind == PARE_WINDOW;
        for (size_t b = 0; b < m->nblocks; b++) kinds[m->blocks[b].attn.kind]++;
        m->pattern.window = 1 + k % 5;
        m->pattern.sinks = k % 4;
        assert_like_the_pass(m, ids, TOKENS, 2e-3, NULL, seed);
        pare_model_free(m);
    }
    assert_true(windows > MODELS / 4 && windows < 3 * MODELS / 4);
    for (int kind = PARE_ATTN_NONE; kind <= PARE_ATTN_POLY; kind++)
        assert_true(kinds[kind] > 0 || kind == PARE_ATTN_MEANQ);
}

static pare_model *shaped(pare_random_kind kind, size_t dim, size_t heads, size_t context)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = kind;
    o.dim = dim;
    o.heads = heads;
    o.context = context;
    o.layers = 3;
    o.vocab = 97;
    o.seed = 3;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

/* Contexts of many groups of lanes, windows and sinks that begin and end anywhere in a group. */
static void long_contexts_are_the_whole_pass(void **state)
{
    (void)state;
    static const size_t window[][2] = {{0, 0}, {1, 0}, {16, 16}, {33, 1}, {40, 17}, {7, 33}};
    enum { N = 75 };
    int64_t ids[N];
    for (size_t k = 0; k < 2 * sizeof window / sizeof *window; k++) {
        pare_model *const m =
            k % 2 ? shaped(PARE_RANDOM_LLAMA, 48, 4, 128) : shaped(PARE_RANDOM_GPT, 40, 5, 128);
        some_ids(ids, N, m, k);
        if (window[k / 2][0])
            m->pattern = (pare_pattern){
                .kind = PARE_WINDOW, .window = window[k / 2][0], .sinks = window[k / 2][1]};
        assert_like_the_pass(m, ids, N, 2e-5, NULL, k);
        pare_model_free(m);
    }
}

/* One query for all tokens: sums in the place of keys and values, however the scores grow. */
static void one_query_for_all_keeps_a_state_of_one_size(void **state)
{
    (void)state;
    static const double scales[] = {0, 1, 30, 3000};
    enum { N = 75 };
    int64_t ids[N];
    for (size_t k = 0; k < 2 * sizeof scales / sizeof *scales; k++) {
        pare_model *const m =
            k % 2 ? shaped(PARE_RANDOM_LLAMA, 48, 4, 128) : shaped(PARE_RANDOM_GPT, 40, 5, 128);
        for (size_t b = 0; b < m->nblocks; b++) {
            pare_attn *const a = &m->blocks[b].attn;
            a->kind = PARE_ATTN_CONSTQ;
            a->bq = (pare_weight){a->wq.dtype, 1, a->wq.rows, a->wq.data}; /* some numbers */
            a->wq = (pare_weight){0};
            for (size_t h = 0; h < a->nheads; h++) a->heads[h].scale *= scales[k / 2];
        }
        some_ids(ids, N, m, k);
        pare_decoder *const d = decoder(m, N, 1);
        for (size_t b = 0; b < m->nblocks; b++) {
            const decode_attn *const a = &d->attn[b];
            const bool rotary = m->blocks[b].attn.heads[0].planes > 0; /* queries differ again */
            assert_true(rotary == (a->kcache != NULL) && rotary == (a->vcache != NULL));
            assert_true(rotary || a->running_size == a->head_columns + 2 * a->a->nheads);
        }
        pare_decoder_free(d);
        assert_like_the_pass(m, ids, N, scales[k / 2] > 100 ? 1e-3 : 2e-5, NULL, k);
        m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 7, .sinks = 3};
        assert_like_the_pass(m, ids, N, scales[k / 2] > 100 ? 1e-3 : 2e-5, NULL, k);
        pare_model_free(m);
    }
}

/* All tables of kernels this CPU has. */
static size_t variants(const decode_kernels *variant[3])
{
    size_t n = 0;
    variant[n++] = &decode_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        variant[n++] = &decode_avx2;
    if (__builtin_cpu_supports("avx512f")) variant[n++] = &decode_avx512;
#endif
    return n;
}

/* eps = 0 and a zero row stays zero; a nearly constant row keeps its shape. */
static void norms_follow_their_definition_at_the_edges(void **state)
{
    (void)state;
    const decode_kernels *variant[3];
    for (size_t v = 0; v < variants(variant); v++) {
        float gain[PARE_PANEL] = {2, 2, 2, 2, 2}, x[PARE_PANEL] = {0}, y[PARE_PANEL];
        decode_norm n = {.on = true, .divide = true, .d = 5, .divisor = 5, .gain = gain};
        variant[v]->norm(y, x, &n);
        for (size_t j = 0; j < PARE_PANEL; j++) assert_true(y[j] == 0);
        for (size_t j = 0; j < 5; j++) x[j] = 1000 + (float)j;
        n.center = true;
        variant[v]->norm(y, x, &n);
        for (size_t j = 0; j < 5; j++)
            assert_near((double)y[j], 2 * ((double)j - 2) / sqrt(2), 1e-5);
        for (size_t j = 5; j < PARE_PANEL; j++) assert_true(y[j] == 0);
    }
}

/* Blocks that turn by other frequencies than the ones before them. */
static void every_block_has_its_own_frequencies(void **state)
{
    (void)state;
    int64_t ids[20];
    pare_model *const m = shaped(PARE_RANDOM_LLAMA, 48, 4, 64);
    pare_weight *const f = &m->blocks[1].attn.freqs;
    double other[64];
    for (size_t j = 0; j < f->cols; j++) other[j] = 0.3 + (double)j;
    *f = (pare_weight){PARE_F64, 1, f->cols, other};
    m->blocks[2].attn.freqs.data = other + 1;
    m->blocks[2].attn.freqs.dtype = PARE_F64;
    some_ids(ids, 20, m, 1);
    assert_like_the_pass(m, ids, 20, 2e-5, NULL, 1);
    pare_model_free(m);
}

static void every_kernel_variant_is_the_whole_pass(void **state)
{
    (void)state;
    const decode_kernels *variant[3];
    const size_t n = variants(variant);
    int64_t ids[40];
    pare_model *const m = shaped(PARE_RANDOM_LLAMA, 48, 4, 64);
    some_ids(ids, 40, m, 1);
    for (size_t v = 0; v < n; v++) assert_like_the_pass(m, ids, 40, 2e-5, variant[v], v);
    pare_model_free(m);
    for (uint64_t seed = 1, k = 0; k < MODELS / 4; k++, seed++) {
        pare_model *const wild = next_model(&seed, 0.5);
        some_ids(ids, TOKENS, wild, seed);
        for (size_t v = 0; v < n; v++)
            assert_like_the_pass(wild, ids, TOKENS, 2e-3, variant[v], seed);
        pare_model_free(wild);
    }
}

/* The logits after ids, fed in pieces of `cut` tokens on `threads` threads; malloc'ed. */
static float *fed(const pare_model *m, const int64_t *ids, size_t n, size_t cut, int threads)
{
    const size_t cols = pare_model_outputs(m);
    float *const out = calloc(cols, sizeof *out);
    const float *got = NULL;
    pare_err err = {0};
    pare_decoder *const d = decoder(m, n, threads);
    for (size_t i = 0; i < n; i += cut)
        assert_ok(pare_decoder_feed(d, ids + i, n - i < cut ? n - i : cut, &got, &err), &err);
    assert_int_equal(pare_decoder_tokens(d), n);
    assert_non_null(got);
    if (got) memcpy(out, got, cols * sizeof *out);
    pare_decoder_free(d);
    return out;
}

static void bits_depend_neither_on_the_cut_nor_on_the_threads(void **state)
{
    (void)state;
    enum { N = 230 };
    static const size_t cut[] = {1, 7, 12, 96, 97, N};
    int64_t ids[N];
    for (size_t k = 0; k < 2; k++) {
        /* Wide enough that products and heads are spread over the threads. */
        pare_model *const m = shaped(k ? PARE_RANDOM_LLAMA : PARE_RANDOM_GPT, 384, 6, 256);
        const size_t bytes = pare_model_outputs(m) * sizeof(float);
        some_ids(ids, N, m, k);
        float *const want = fed(m, ids, N, N, 1);
        for (size_t c = 0; c < sizeof cut / sizeof *cut; c++) {
            float *const got = fed(m, ids, N, cut[c], c % 2 ? 3 : 2);
            assert_memory_equal(want, got, bytes);
            free(got);
        }
        free(want);
        pare_model_free(m);
    }
}

static void after_a_reset_nothing_is_left(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (size_t k = 0; k < MODELS / 4; k++, seed++) {
        pare_model *const m = next_model(&seed, 1);
        int64_t ids[2 * TOKENS];
        const float *got;
        pare_err err = {0};
        some_ids(ids, 2 * TOKENS, m, seed);
        float *const want = fed(m, ids, 9, 9, 1);
        pare_decoder *const d = decoder(m, 0, 1);
        assert_int_equal(pare_decoder_room(d), 16);
        assert_ok(pare_decoder_feed(d, ids + TOKENS, TOKENS, &got, &err), &err);
        pare_decoder_reset(d);
        assert_ok(pare_decoder_feed(d, ids, 9, &got, &err), &err);
        assert_memory_equal(want, got, pare_model_outputs(m) * sizeof *got);
        free(want);
        pare_decoder_free(d);
        pare_model_free(m);
    }
}

static void what_cannot_be_read_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    pare_model *const m = shaped(PARE_RANDOM_GPT, 16, 2, 8);
    const int64_t ids[9] = {0}, high[] = {1, 97}, low[] = {-1};
    const float *got;
    pare_err err = {0};
    pare_decoder *d = NULL;
    assert_status(pare_decoder_new(&d, m, 9, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "9 tokens are too many, the model takes at most 8");
    d = decoder(m, 0, 1);
    assert_status(pare_decoder_feed(d, ids, 0, &got, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_decoder_feed(d, ids, 9, &got, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "9 tokens after 0; there is room for 8");
    assert_status(pare_decoder_feed(d, high, 2, &got, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "id 97 at position 1");
    assert_status(pare_decoder_feed(d, low, 1, &got, &err), PARE_ERR_INPUT, &err);
    assert_int_equal(pare_decoder_tokens(d), 0);
    assert_ok(pare_decoder_feed(d, ids, 8, &got, &err), &err);
    assert_status(pare_decoder_step(d, 0, &got, &err), PARE_ERR_INPUT, &err);
    assert_null(got);
    pare_decoder_free(d);
    pare_model_free(m);
}

static void models_that_see_the_future_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        pare_random_kind kind;
        const char *why;
    } refused[] = {{PARE_RANDOM_BERT, "come after them"}, {PARE_RANDOM_GRAPH, "vectors"}};
    for (size_t k = 0; k < 2; k++) {
        pare_model *const m = shaped(refused[k].kind, 16, 2, 8);
        pare_decoder *d = NULL;
        pare_err err = {0};
        assert_status(pare_decoder_new(&d, m, 0, NULL, &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, refused[k].why);
        assert_null(d);
        if (k == 0) {
            m->pattern.kind = PARE_CAUSAL;
            assert_status(pare_decoder_new(&d, m, 0, NULL, &err), PARE_ERR_INPUT, &err);
            assert_contains(err.msg, "one row for all tokens");
        }
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_by_step_is_the_whole_pass_on_wild_models),
        cmocka_unit_test(long_contexts_are_the_whole_pass),
        cmocka_unit_test(one_query_for_all_keeps_a_state_of_one_size),
        cmocka_unit_test(norms_follow_their_definition_at_the_edges),
        cmocka_unit_test(every_block_has_its_own_frequencies),
        cmocka_unit_test(every_kernel_variant_is_the_whole_pass),
        cmocka_unit_test(bits_depend_neither_on_the_cut_nor_on_the_threads),
        cmocka_unit_test(after_a_reset_nothing_is_left),
        cmocka_unit_test(what_cannot_be_read_is_refused_and_changes_nothing),
        cmocka_unit_test(models_that_see_the_future_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
