/* A real language model at a quarter less: auto loses less than slicing and plain svd, on stories
 * that none of them has seen. */
#include <pare/width.h>
#include <pare_test.h>

#define MODEL "../shared/data/models/stories260K.safetensors"
#define VOCAB "../shared/data/models/stories260K_tok512.bin"
#define TALES "../shared/data/text/tinystories_1000.txt"

#define BETWEEN "<|endoftext|>\n"

enum { LENGTH = 64, FIT = 60, HELD = 20 };

static pare_tokenizer *open_vocab(pare_arena *a)
{
    pare_err err = {0};
    pare_tokenizer *t;
    char *vocab;
    size_t bytes;
    assert_ok(pare_text_read(&vocab, &bytes, a, VOCAB, &err), &err);
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_LLAMA2C, (uint8_t *)vocab, bytes, &err), &err);
    return t;
}

/* The beginnings of stories, one for each input. */
static pare_inputs beginnings(pare_arena *a)
{
    pare_err err = {0};
    const pare_tokenizer *const t = open_vocab(a);
    const pare_inputs set = {FIT + HELD, pare_alloc(a, FIT + HELD, sizeof *set.in)};
    char *at;
    size_t bytes;
    assert_non_null(set.in);
    assert_ok(pare_text_read(&at, &bytes, a, TALES, &err), &err);
    for (size_t i = 0; i < set.n; i++) {
        int64_t *ids;
        const char *const end = strstr(at, BETWEEN);
        assert_non_null(end);
        assert_ok(pare_encode(&ids, &bytes, a, t, at, (size_t)(end - at), &err), &err);
        assert_true(bytes >= LENGTH);
        set.in[i] = (pare_input){.batch = 1, .tokens = LENGTH, .ids = ids};
        at += end - at + (ptrdiff_t)strlen(BETWEEN);
    }
    return set;
}

/* Nats per token. */
static double nats(const pare_model *m, const pare_inputs *set)
{
    pare_err err = {0};
    const size_t n = pare_model_outputs(m);
    float *const y = malloc(LENGTH * n * sizeof *y);
    double sum = 0;
    assert_non_null(y);
    for (size_t i = 0; i < set->n; i++) {
        assert_ok(pare_forward_f32(y, m, &set->in[i], NULL, NULL, &err), &err);
        for (size_t t = 0; t + 1 < LENGTH; t++) {
            double all = 0;
            for (size_t j = 0; j < n; j++) all += exp((double)y[t * n + j]);
            sum += log(all) - (double)y[t * n + (size_t)set->in[i].ids[t + 1]];
        }
    }
    free(y);
    return sum / (double)(set->n * (LENGTH - 1));
}

static double cut_heads(const pare_model *m, pare_width_method method, const pare_inputs *fit,
                        const pare_inputs *held)
{
    pare_err err = {0};
    pare_width_report r;
    pare_model *g = NULL;
    const pare_width_opts o = {.method = method, .qk_dim = 6, .max_move = INFINITY};
    assert_ok(pare_width(&g, &r, m, fit, &o, NULL, &err), &err);
    assert_int_equal(r.qk_dim, 6);
    const double loss = nats(g, held);
    pare_model_free(g);
    return loss;
}

static double after(const pare_model *m, pare_width_opts o, const pare_inputs *fit,
                    const pare_inputs *held)
{
    pare_err err = {0};
    pare_width_report r;
    pare_model *g = NULL;
    o.keep = 0.75;
    o.max_move = INFINITY;
    assert_ok(pare_width(&g, &r, m, fit, &o, NULL, &err), &err);
    const double now = (double)pare_model_size(g, 1, 1).parameters;
    assert_le(now, 0.75 * (double)pare_model_size(m, 1, 1).parameters);
    const double loss = nats(g, held);
    pare_model_free(g);
    return loss;
}

static void a_quarter_less_costs_less_than_by_slicing_or_plain_svd(void **state)
{
    (void)state;
    NEED_SHARED(MODEL);
    static const pare_width_opts others[] = {
        {.method = PARE_WIDTH_SLICE, .basis = PARE_BASIS_SHARED},
        {.method = PARE_WIDTH_SLICE},
        {.method = PARE_WIDTH_SVD}};
    pare_err err = {0};
    pare_model *m = NULL;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    assert_ok(pare_model_load(&m, MODEL, &err), &err);
    const pare_inputs all = beginnings(a), fit = {FIT, all.in}, held = {HELD, all.in + FIT};
    const double before = nats(m, &held);
    const double ours = after(m, (pare_width_opts){.method = PARE_WIDTH_AUTO}, &fit, &held);
    print_message("nats per token: %.3f before, auto %.3f\n", before, ours);
    assert_true(before < 2); /* the vocabulary is the right one */
    /* One plane of four: by what they do on the data, not by their norms. */
    const double planes = cut_heads(m, PARE_WIDTH_QK, &fit, &held);
    const double plain = cut_heads(m, PARE_WIDTH_SVD, &fit, &held);
    print_message("queries and keys 8 to 6: qk %.3f, svd %.3f\n", planes, plain);
    assert_true(planes - before < 0.9 * (plain - before));
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        const double theirs = after(m, others[k], &fit, &held);
        print_message("%s %.3f\n", pare_width_method_names[others[k].method], theirs);
        assert_true(ours - before < 0.8 * (theirs - before));
    }
    pare_model_free(m);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quarter_less_costs_less_than_by_slicing_or_plain_svd)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
