/* Tests src/ticket/{ticket,matrix,merged,rounded}.c: whole models as tickets. */
#include "pare_test.h"
#include "cert/prove.h"
#include "linalg/bounds.h"
#include "ticket/ticket_internal.h"
#include <pare/pare.h>

static pare_model *model_of_width(pare_random_kind kind, size_t dim, double sigma)
{
    pare_model *m = NULL;
    pare_err err = {0};
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.kind = kind;
    o.dim = dim;
    o.layers = 1;
    o.heads = 2;
    o.vocab = 30;
    o.context = 12;
    o.sigma = sigma;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

static pare_model *random_model(pare_random_kind kind, double sigma)
{
    return model_of_width(kind, 16, sigma);
}

static pare_model *ticket_of(pare_ticket_report *r, const pare_model *m, const pare_ticket_opts *o,
                             int threads)
{
    pare_model *t = NULL;
    pare_err err = {0};
    const pare_exec exec = {.threads = threads};
    assert_ok(pare_ticket(&t, r, m, o, &exec, &err), &err);
    return t;
}

static void hash_of_file(char hex[PARE_SHA256_HEX], const pare_model *m, const char *path)
{
    pare_err err = {0};
    assert_ok(pare_model_save(m, path, true, hex, &err), &err);
}

static void every_kind_of_model_is_a_ticket_of_the_same_bytes_on_any_threads(void **state)
{
    char dir[200], path[300], one[PARE_SHA256_HEX], two[PARE_SHA256_HEX];
    (void)state;
    test_mkdir(dir);
    snprintf(path, sizeof path, "%s/m.ticket", dir);
    for (int kind = 0; pare_random_kinds[kind]; kind++)
        for (int method = kind % 2; method <= kind % 2; method++) {
            pare_model *const m = random_model((pare_random_kind)kind, 0);
            pare_ticket_opts o = PARE_TICKET_OPTS;
            pare_ticket_report r;
            o.bits = 8;
            o.method = (pare_ticket_method)method;
            o.mode = PARE_TICKET_FACTORED;
            pare_model *t = ticket_of(&r, m, &o, 1);
            hash_of_file(one, t, path);
            pare_model_free(t);
            t = ticket_of(&r, m, &o, 2);
            hash_of_file(two, t, path);
            assert_string_equal(one, two);
            assert_true(r.n > 4 && r.weights > 0);
            for (size_t i = 0; i < r.n; i++) assert_le(r.matrix[i].rms, 0.2);
            pare_model_free(t);
            pare_model_free(m);
        }
    test_rmdir(dir);
}

typedef struct wanted {
    const char *name;
    const pare_weight *w;
} wanted;
static pare_status look(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    wanted *const k = self;
    (void)vector, (void)err;
    if (strcmp(name, k->name) == 0) k->w = w;
    return PARE_OK;
}
static const pare_weight *weight_named(const pare_model *m, const char *name)
{
    wanted k = {name, NULL};
    assert_ok(pare_model_visit((pare_model *)m, look, &k, NULL), NULL);
    assert_non_null(k.w);
    return k.w;
}

/* What the report says is true of the weights; biases and gains are the model's own. */
static void the_report_speaks_of_the_weights_that_are_stored(void **state)
{
    (void)state;
    pare_model *const m = random_model(PARE_RANDOM_GPT, 0);
    const pare_ticket_opts o = PARE_TICKET_OPTS;
    pare_ticket_report r;
    pare_model *const t = ticket_of(&r, m, &o, 2);
    uint64_t bytes = 0;
    for (size_t i = 0; i < r.n; i++) {
        const pare_weight *const x = weight_named(m, r.matrix[i].name);
        const pare_weight *const y = weight_named(t, r.matrix[i].name);
        double most = 0;
        for (size_t k = 0; k < x->rows * x->cols; k++)
            most = fmax(most, fabs(pare_weight_at(x, k) - pare_weight_at(y, k)));
        assert_true(most == r.matrix[i].largest);
        assert_le(most, 0.1);
        bytes += r.matrix[i].bytes;
    }
    assert_true(bytes == r.bytes);
    const pare_weight *const b = weight_named(m, "blocks.0.attn.bq");
    assert_memory_equal(b->data, weight_named(t, "blocks.0.attn.bq")->data, b->cols * 4);
    const pare_size size = pare_model_size(m, 1, 0);
    assert_true(size.parameters == r.weights + r.numbers);
    pare_model_free(t);
    pare_model_free(m);
}

static void expect_refused(const pare_model *m, const pare_ticket_opts *o, pare_status want,
                           const char *says)
{
    pare_model *t = NULL;
    pare_ticket_report r;
    pare_err err = {0};
    assert_status(pare_ticket(&t, &r, m, o, NULL, &err), want, &err);
    print_message("%s\n", err.msg);
    assert_contains(err.msg, says);
    assert_null(t);
}

/* With so many bits that little is left of the error, merging must not have changed anything:
 * biases, a value bias, two heads that share keys and values. */
static void merged_heads_compute_the_same(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    for (int shared = 0; shared < 2; shared++) {
        pare_model *const m = random_model(shared ? PARE_RANDOM_GPT : PARE_RANDOM_BERT, 0);
        pare_attn *const at = &m->blocks[0].attn;
        if (shared) {
            at->heads[1].k = at->heads[0].k;
            at->heads[1].v = at->heads[0].v;
            at->wk.rows = at->wv.rows = at->heads[0].dk;
            at->bk.cols = at->bv.cols = at->heads[0].dk;
        }
        pare_ticket_opts o = PARE_TICKET_OPTS;
        pare_ticket_report r;
        pare_inputs set;
        double apart;
        o.bits = 12;
        o.mode = PARE_TICKET_MERGED;
        pare_model *const t = ticket_of(&r, m, &o, 2);
        assert_true(r.merged && t->blocks[0].attn.heads[1].dk == 16);
        assert_ok(pare_inputs_random(&set, a, m, 4, 12, 1, NULL), NULL);
        assert_ok(pare_measure(&apart, m, t, &set, NULL, NULL), NULL);
        print_message("merged: outputs %.1e apart\n", apart);
        assert_le(apart, 0.02);
        pare_model_free(t);
        pare_model_free(m);
    }
    pare_arena_free(a);
}

static void merging_is_chosen_where_it_is_smaller_and_refused_under_rotary(void **state)
{
    (void)state;
    pare_model *const m = random_model(PARE_RANDOM_GPT, 0), *const l =
                                                                random_model(PARE_RANDOM_LLAMA, 0);
    pare_ticket_opts o = PARE_TICKET_OPTS;
    pare_ticket_report r;
    o.bits = 4;
    pare_model *t = ticket_of(&r, m, &o, 1); /* two heads: as many weights either way */
    assert_false(r.merged);
    pare_model_free(t);
    o.mode = PARE_TICKET_MERGED;
    expect_refused(l, &o, PARE_ERR_INPUT, "rotary");
    pare_model_free(m);
    pare_model_free(l);
}

/* More bits, less error: four bits more are at least 4 times as close. */
static void bits_buy_accuracy(void **state)
{
    (void)state;
    pare_model *const m = random_model(PARE_RANDOM_LLAMA, 0);
    double last = INFINITY;
    for (size_t bits = 6; bits <= 14; bits += 4) {
        pare_ticket_opts o = PARE_TICKET_OPTS;
        pare_ticket_report r;
        o.bits = bits;
        pare_model *const t = ticket_of(&r, m, &o, 2);
        double logs = 0; /* of all matrices alike: one that is out of reach is not the rule */
        for (size_t i = 0; i < r.n; i++) logs += log(r.matrix[i].rms);
        const double rms = exp(logs / (double)r.n);
        print_message("%zu bits, %.4g stored: rms error %.2e (geometric mean)\n", bits,
                      8 * (double)r.bytes / (double)r.weights, rms);
        assert_le(4 * rms, last);
        last = rms;
        pare_model_free(t);
    }
    pare_model_free(m);
}

static void a_matrix_of_zeros_is_a_ticket_of_empty_masks(void **state)
{
    (void)state;
    pare_model *const m = random_model(PARE_RANDOM_GPT, 0);
    pare_weight *const w = &m->blocks[0].attn.wq;
    w->data = pare_alloc(m->arena, w->rows * w->cols, sizeof(float));
    const pare_ticket_opts o = PARE_TICKET_OPTS;
    pare_ticket_report r;
    pare_model *const t = ticket_of(&r, m, &o, 1);
    assert_memory_equal(t->blocks[0].attn.wq.data, w->data, w->rows * w->cols * sizeof(float));
    pare_model_free(t);
    pare_model_free(m);
}

/* Matrices that training left with next to nothing, or that are larger than any scale: the scale is
 * the nearest that a ticket can have. */
static void a_matrix_beyond_all_scales_gets_the_nearest(void **state)
{
    (void)state;
    static const float sizes[] = {0x1p-60f, 0x1p-70f, 0x1p-100f, 0x1p62f, 0x1p63f};
    for (size_t t = 0; t < 15; t++) {
        pare_model *const m = model_of_width(PARE_RANDOM_GPT, 12, 0);
        pare_weight *const w = &m->blocks[0].attn.wq;
        const float size = sizes[t / 3];
        float *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
        for (size_t i = 0; i < w->rows * w->cols; i++) v[i] = (i % 7 > 3 ? -size : size);
        w->data = v;
        pare_ticket_opts o = PARE_TICKET_OPTS;
        o.method = t % 3 ? PARE_TICKET_FEEDBACK : PARE_TICKET_BEST;
        o.stored = t % 3 == 2 ? 10 : 0;
        o.bits = 12;
        pare_ticket_report r;
        pare_model *const g = ticket_of(&r, m, &o, 2);
        const pare_weight *const x = weight_named(g, "blocks.0.attn.wq");
        const double count = (double)(w->rows * w->cols);
        double sum = 0;
        for (size_t i = 0; i < w->rows * w->cols; i++) {
            const double e = (pare_weight_at(x, i) - (double)v[i]) / (double)size;
            sum += e * e / count;
        }
        assert_le(sqrt(sum) * (double)size, fmax(0.2 * (double)size, 0x1p-68));
        pare_model_free(g);
        pare_model_free(m);
    }
}

static void what_cannot_be_a_ticket_is_refused_by_name(void **state)
{
    (void)state;
    pare_model *const m = random_model(PARE_RANDOM_GPT, 0);
    pare_ticket_opts o = PARE_TICKET_OPTS;
    o.hidden = 15;
    expect_refused(m, &o, PARE_ERR_INPUT, "tensor stem.embedding: 30 x 16 needs at least 16");
    o = (pare_ticket_opts)PARE_TICKET_OPTS;
    o.exponent = -20;
    expect_refused(m, &o, PARE_ERR_INPUT, "a larger scale is needed");
    o.exponent = 70;
    expect_refused(m, &o, PARE_ERR_USAGE, "scale 2^70");
    o.exponent = 1;
    o.strict = true;
    expect_refused(m, &o, PARE_ERR_USAGE, "strict");
    o = (pare_ticket_opts)PARE_TICKET_OPTS;
    o.bits = PARE_TICKET_MOST_BITS + 1;
    expect_refused(m, &o, PARE_ERR_USAGE, "65 bits");
    float *const bad = pare_alloc(m->arena, 16 * 16, sizeof *bad);
    bad[17] = NAN;
    m->blocks[0].attn.wv.data = bad;
    o = (pare_ticket_opts)PARE_TICKET_OPTS;
    expect_refused(m, &o, PARE_ERR_NONFINITE, "blocks.0.attn.wv");
    pare_model_free(m);
}

/* With as many levels as fit the bytes, each entry is within half a step. */
static void the_quantiser_beside_it_has_the_same_bytes(void **state)
{
    (void)state;
    pare_model *const m = random_model(PARE_RANDOM_GPT, 0);
    const pare_ticket_opts o = PARE_TICKET_OPTS;
    pare_ticket_report r;
    pare_model *const t = ticket_of(&r, m, &o, 2), *q = NULL;
    double bits;
    assert_ok(pare_ticket_rounded(&q, &bits, m, &r, NULL, NULL, NULL), NULL);
    assert_le(bits * (double)r.weights, 8 * (double)r.bytes);
    assert_le(8 * (double)r.bytes, (bits + 0.1) * (double)r.weights);
    for (size_t i = 0; i < r.n; i++) {
        const pare_weight *const x = weight_named(m, r.matrix[i].name);
        const pare_weight *const y = weight_named(q, r.matrix[i].name);
        const double count = (double)(x->rows * x->cols), most = pare_norm_max(x).v;
        const double levels = floor(exp2((8 * (double)r.matrix[i].bytes - 32) / count));
        for (size_t k = 0; k < x->rows * x->cols; k++)
            assert_le(fabs(pare_weight_at(x, k) - pare_weight_at(y, k)),
                      most / (levels - 1) * (1 + 1e-5));
    }
    pare_model_free(q);
    pare_model_free(t);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_model_is_a_ticket_of_the_same_bytes_on_any_threads),
        cmocka_unit_test(the_report_speaks_of_the_weights_that_are_stored),
        cmocka_unit_test(merged_heads_compute_the_same),
        cmocka_unit_test(merging_is_chosen_where_it_is_smaller_and_refused_under_rotary),
        cmocka_unit_test(bits_buy_accuracy),
        cmocka_unit_test(a_matrix_of_zeros_is_a_ticket_of_empty_masks),
        cmocka_unit_test(a_matrix_beyond_all_scales_gets_the_nearest),
        cmocka_unit_test(what_cannot_be_a_ticket_is_refused_by_name),
        cmocka_unit_test(the_quantiser_beside_it_has_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
