/* Tests src/model/ticket_{codec,factored,factored_write,units,mask_coder,mask_choice,identity}.c
 * and random_source.c: weights that a file holds as a seed and masks. */
#include "ticket_samples.h"
#include "model/source.h"
#include "model/ticket_store.h"

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
    assert_ok(pare_coded_expand(&w, &h, ar, c->data, c->bytes, SIZE_MAX, &err), &err);
    assert_true(w.rows == s->f.rows && w.cols == s->f.cols && w.dtype == PARE_F32);
    assert_true(h.kind == PARE_CODED_FACTORED && h.seed == s->f.seed && h.stream == s->f.stream);
    const float *const v = w.data;
    for (size_t i = 0; i < s->a; i++)
        for (size_t j = 0; j < s->b; j++) {
            const size_t at = s->f.transposed ? j * w.cols + i : i * w.cols + j;
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
    enum { MOST = CODER_UNITS, ENTRIES = 400 };
    uint8_t *const bits = pare_alloc(*state, ENTRIES * MOST, 1);
    uint8_t *const bytes = pare_alloc(*state, 2 * ENTRIES * MOST, 1), got[MOST];
    int64_t item[MOST];
    static const pare_bridge models[] = {
        {.width = 1},
        {.width = 3000},
        {.width = 65536},
        {.width = CODER_MAX_WIDTH},
        {.width = 1, .ranks = MOST, .prior = {-128, 127, -30}},
        {.width = CODER_MAX_WIDTH, .ranks = MOST, .prior = {-128, 127, -30}},
    };
    for (size_t w = 0; w < sizeof models / sizeof *models; w++)
        for (int what = 0; what < 3; what++) {
            mask_encoder e;
            mask_encode_open(&e, bytes, 2 * ENTRIES * MOST, &models[w]);
            for (int pass = 0; pass < 2; pass++) {
                mask_decoder d;
                pare_rng r = pare_rng_at(w, (uint64_t)what);
                if (pass) mask_decode_open(&d, bytes, mask_encode_close(&e), &models[w]);
                for (size_t k = 0; k < ENTRIES; k++) {
                    const size_t count = (size_t)pare_rng_below(&r, MOST + 1);
                    for (size_t u = 0; u < count; u++) {
                        item[u] =
                            (int64_t)pare_rng_below(&r, UINT64_C(1) << 49) - (INT64_C(1) << 48);
                        if (what == 1) item[u] = (int64_t)pare_rng_below(&r, 3) - 1;
                        bits[k * MOST + u] = what == 2 ? 1 : (uint8_t)pare_rng_below(&r, 2);
                    }
                    if (!pass)
                        mask_encode(&e, bits + k * MOST, item, count);
                    else
                        mask_decode(&d, got, item, count);
                    if (pass) assert_memory_equal(got, bits + k * MOST, count);
                }
                if (pass) assert_true(mask_decode_closed(&d));
            }
        }
}

/* ---- bits that cost something ---- */

static double bits_of(const mask_entry *e, uint64_t mask, const pare_bridge *b)
{
    double bits = 0;
    int64_t sum = 0;
    for (size_t k = 0; k < e->count; k++) {
        const bool one = mask >> e->order[k] & 1;
        const double p = mask_probability(e, k, sum, b) / 4096.0;
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
        mask_entry e;
        int64_t item[ITEMS];
        double least = INFINITY;
        for (size_t u = 0; u < ITEMS; u++)
            item[u] = (int64_t)pare_rng_below(&r, UINT64_C(1) << 49) - (INT64_C(1) << 48);
        mask_entry_init(&e, item, ITEMS);
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
    sample s = few_ones(*state);
    pare_coded even, sparse;
    assert_ok(pare_coded_factored(&sparse, *state, &s.f, PARE_CODING_BRIDGE, NULL), NULL);
    s.f.bridge = (pare_bridge){0};
    assert_ok(pare_coded_factored(&even, *state, &s.f, PARE_CODING_BRIDGE, NULL), NULL);
    print_message("%zu bytes, few ones expected %zu\n", even.bytes, sparse.bytes);
    assert_le((double)sparse.bytes, 0.8 * (double)even.bytes);
    check_expansion(*state, &s, &sparse);
}

/* ---- a ReLU between the two matrices ---- */

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
            assert_ok(pare_coded_expand(&w, &h, *state, out.data, out.bytes, SIZE_MAX, &err), &err);
            assert_true(h.kind == PARE_CODED_RELU && w.rows == s.a && w.cols == s.b);
            for (size_t i = 0; i < s.a; i++)
                for (size_t j = 0; j < s.b; j++) {
                    const float want = relu_entry(*state, &s, inputs, i, j);
                    assert_memory_equal((const float *)w.data + i * s.b + j, &want, sizeof want);
                }
        }
}

static void identities_are_identities(void **state)
{
    pare_coded c;
    pare_weight w;
    assert_ok(pare_coded_identity(&c, *state, 3, 6, NULL), NULL);
    assert_int_equal(c.bytes, TICKET_HEADER_BYTES + TICKET_CHECKSUM_BYTES);
    assert_ok(pare_coded_expand(&w, NULL, *state, c.data, c.bytes, SIZE_MAX, NULL), NULL);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 6; j++)
            assert_true(((const float *)w.data)[i * 6 + j] == (j % 3 == i));
    assert_ok(pare_coded_identity(&c, *state, 6, 3, NULL), NULL); /* one above its negative */
    assert_ok(pare_coded_expand(&w, NULL, *state, c.data, c.bytes, SIZE_MAX, NULL), NULL);
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
    pare_random_model_opts opts = PARE_RANDOM_MODEL_OPTS_DEFAULT;
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
        assert_ok(pare_coded_expand(w[k], NULL, s->m->arena, s->coded[k].data, s->coded[k].bytes,
                                    SIZE_MAX, &err),
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

/* Four identities of a million entries each, in a file of about two thousand bytes. */
static void identities_share_what_their_file_allows(void **state)
{
    enum { D = 1024 };
    static const char *const names[4] = {"blocks.0.attn.wq", "blocks.0.attn.wk", "blocks.0.attn.wv",
                                         "blocks.0.attn.wo"};
    stage s;
    pare_coded eye[4];
    pare_model *again = NULL;
    pare_err err = {0};
    open_stage(&s, *state, false);
    pare_model *const m = s.m;
    pare_head head = {.dk = D, .dv = D, .scale = 1};
    pare_attn *const at = &m->blocks[0].attn;
    pare_weight *const w[4] = {&at->wq, &at->wk, &at->wv, &at->wo};
    *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = D, .dout = D, .nheads = 1, .heads = &head};
    m->embedding = (pare_embedding){.width = D};
    m->head = (pare_output_head){0};
    m->blocks[0].ffn = (pare_ffn){.din = D, .dout = D, .kind = PARE_FFN_NONE};
    m->nblocks = 1;
    m->tokenizer = PARE_TOK_NONE;
    for (size_t k = 0; k < 4; k++) {
        assert_ok(pare_coded_identity(&eye[k], *state, D, D, &err), &err);
        eye[k].name = names[k];
        assert_ok(pare_coded_expand(w[k], NULL, *state, eye[k].data, eye[k].bytes, SIZE_MAX, &err),
                  &err);
    }
    m->coded = eye;
    m->ncoded = 4;
    assert_ok(pare_model_save(m, s.path, false, NULL, &err), &err);
    assert_status(pare_model_load(&again, s.path, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "blocks.0.attn.wv.ticket"); /* two of them fit */
    assert_contains(err.msg, "more entries than a file of this size can hold");
    char padding[4000];
    memset(padding, 'x', sizeof padding); /* a longer file may have them all */
    m->name = padding;
    padding[sizeof padding - 1] = '\0';
    assert_ok(pare_model_save(m, s.path, true, NULL, &err), &err);
    assert_ok(pare_model_load(&again, s.path, &err), &err);
    pare_model_free(again);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(masks_expand_to_the_exact_product_of_both_matrices),
        ARENA_TEST(small_weights_cost_less_than_a_bit_for_a_bit),
        ARENA_TEST(coding_never_costs_bytes),
        ARENA_TEST(the_coder_gives_back_what_it_was_given),
        ARENA_TEST(what_is_chosen_is_the_best_of_all),
        ARENA_TEST(sparse_masks_cost_less_when_few_ones_are_expected),
        ARENA_TEST(units_behind_a_relu_expand_to_what_they_pass_on),
        ARENA_TEST(identities_are_identities),
        ARENA_TEST(a_saved_ticket_is_the_model_bit_for_bit),
        ARENA_TEST(a_ticket_that_is_not_the_weight_is_not_saved),
        ARENA_TEST(identities_share_what_their_file_allows),
        ARENA_TEST(two_tickets_of_one_source_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
