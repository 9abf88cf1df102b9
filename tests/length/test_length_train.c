/* Tests src/length/length_train.c and src/train/tape_heads_provider.c: the gradients of whole models whose
 * attention goes through an oracle of M tokens are those of ordinary training. */
#include "base/support.h"
#include "train/gradient.h"
#include <pare/length.h>
#include <pare_test.h>
#include <string.h>

enum { BATCH = 3, TOKENS = 41, VOCAB = 31 };

typedef struct training_case {
    const char *name;
    pare_random_kind kind;
    pare_pattern pattern; /* in the place of the kind's own, unless it is PARE_GRAPH */
} training_case;
static const training_case cases[] = {
    {"gpt", PARE_RANDOM_GPT, {.kind = PARE_CAUSAL}},
    {"llama: rotary, shared keys", PARE_RANDOM_LLAMA, {.kind = PARE_CAUSAL}},
    {"encoder", PARE_RANDOM_BERT, {.kind = PARE_FULL}},
    {"window", PARE_RANDOM_GPT, {.kind = PARE_WINDOW, .window = 9}},
    {"window with sinks", PARE_RANDOM_LLAMA, {.kind = PARE_WINDOW, .window = 6, .sinks = 3}},
};

static pare_model *model_of(const training_case *c)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m;
    pare_err err = {0};
    o.kind = c->kind, o.dim = 16, o.heads = 4, o.vocab = VOCAB, o.context = TOKENS;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    m->pattern = c->pattern;
    return m;
}

/* Gradient of sum c y, with dropout, by the tape's own attention or by a provider. */
static void *gradient(const pare_model *m, pare_dtype t, const pare_attention_provider *by,
                      size_t *count, pare_params **params)
{
    static const pare_mode mode = {.training = true, .dropout = 0.2, .momentum = 0.1, .seed = 5};
    int64_t ids[BATCH * TOKENS];
    pare_rng r = pare_rng_at(3, 1);
    for (size_t i = 0; i < BATCH * TOKENS; i++) ids[i] = (int64_t)(pare_rng_u64(&r) % VOCAB);
    const pare_input in = {.batch = BATCH, .tokens = TOKENS, .ids = ids};
    const size_t n = pare_output_rows(m, &in) * pare_model_outputs(m);
    const size_t size = pare_dtype_size(t);
    pare_tape *tape;
    pare_err err = {0};
    assert_ok(pare_params_new(params, m, t, &err), &err);
    assert_ok(pare_tape_new(&tape, *params, NULL, &err), &err);
    assert_ok(pare_tape_attend_by(tape, by, &err), &err);
    void *const c = calloc(n, size), *const g = calloc((*params)->count, size);
    for (size_t i = 0; i < n; i++) {
        if (t == PARE_F32)
            ((float *)c)[i] = (float)pare_rng_normal(&r);
        else
            ((double *)c)[i] = pare_rng_normal(&r);
    }
    assert_ok(pare_tape_forward(tape, &in, &mode, NULL, &err), &err);
    assert_ok(pare_tape_backward(tape, c, NULL, g, &err), &err);
    *count = (*params)->count;
    free(c);
    pare_tape_free(tape);
    return g;
}

static double number(pare_dtype t, const void *v, size_t i)
{
    return t == PARE_F32 ? (double)((const float *)v)[i] : ((const double *)v)[i];
}

/* |a - b| / |b| over the numbers [from, from + n). */
static double apart(pare_dtype t, const void *a, const void *b, size_t from, size_t n)
{
    double off = 0, size = 0;
    for (size_t i = from; i < from + n; i++) {
        const double d = number(t, a, i) - number(t, b, i);
        off += d * d;
        size += number(t, b, i) * number(t, b, i);
    }
    return sqrt(off / size);
}

/* 1e-5 of the gradient of the whole model, 1e-4 of each weight's by itself in f32 (keys' biases
 * have a gradient of 0 but for rounding: they are left out there). */
static void one_case(const training_case *c, pare_dtype t, uint32_t m)
{
    pare_model *const model = model_of(c);
    pare_length_training w;
    pare_oracle engine;
    pare_params *p, *q;
    pare_err err = {0};
    size_t n, same;
    assert_ok(pare_oracle_cpu(&engine, t, m, NULL, &err), &err);
    assert_ok(pare_length_training_open(&w, engine, NULL, &err), &err);
    void *const want = gradient(model, t, NULL, &n, &p), *const got =
                                                             gradient(model, t, &w.by, &same, &q);
    assert_int_equal(n, same);
    const double whole = t == PARE_F32 ? 1e-5 : 1e-12, off = apart(t, got, want, 0, n);
    if (!(off <= whole))
        fail_msg("%s, M = %u: gradients differ by %.3g", c->name, (unsigned)m, off);
    for (size_t s = 0; s < p->nslots; s++) {
        const pare_slot *const x = &p->slots[s];
        const double part = apart(t, got, want, x->offset, x->rows * x->cols);
        if (!strstr(x->name, "attn.bk") && !(part <= 10 * whole))
            fail_msg("%s, M = %u, %s: differs by %.3g", c->name, (unsigned)m, x->name, part);
    }
    assert_true(w.forward.calls > 0 && w.forward.calls == w.backward.calls);
    assert_true(w.forward.max_len >= 1 && w.forward.max_len <= m);
    assert_true(w.backward.max_len >= 1 && w.backward.max_len <= m);
    if (c->pattern.kind == PARE_FULL) { /* 2 layers of 4 heads, tiles of M x M */
        const uint64_t k = (TOKENS + m - 1) / m;
        assert_int_equal(w.forward.calls, BATCH * 2 * 4 * k * k);
    }
    free(want), free(got);
    pare_params_free(p), pare_params_free(q);
    pare_length_training_close(&w);
    pare_model_free(model);
}

static void gradients_are_those_of_ordinary_training(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t m = 7; m <= 64; m *= 3) {
            one_case(&cases[i], PARE_F32, m);
            one_case(&cases[i], PARE_F64, m);
        }
}

/* Graphs and polynomials are refused, and so is an engine that gives no partial results. */
static void what_cannot_be_trained_so_is_refused(void **state)
{
    (void)state;
    static const training_case gpt = {"gpt", PARE_RANDOM_GPT, {.kind = PARE_CAUSAL}};
    pare_length_training w;
    pare_oracle engine;
    pare_err err = {0};
    assert_ok(pare_oracle_cpu(&engine, PARE_F32, 8, NULL, &err), &err);
    assert_ok(pare_length_training_open(&w, engine, NULL, &err), &err);
    for (int poly = 0; poly < 2; poly++) {
        pare_model *const m = model_of(&gpt);
        pare_params *p;
        pare_tape *t;
        if (poly)
            m->blocks[1].attn.kind = PARE_ATTN_POLY, m->blocks[1].attn.tolerance = 0.1;
        else
            m->pattern.kind = PARE_GRAPH;
        assert_ok(pare_params_new(&p, m, PARE_F32, &err), &err);
        assert_ok(pare_tape_new(&t, p, NULL, &err), &err);
        assert_int_equal(pare_tape_attend_by(t, &w.by, &err), PARE_ERR_INPUT);
        assert_non_null(strstr(err.msg, poly ? "oracle 8: block 1 attends by polynomials"
                                             : "oracle 8: the model attends over a graph"));
        pare_tape_free(t);
        pare_params_free(p);
        pare_model_free(m);
    }
    pare_length_training_close(&w);
    assert_ok(pare_oracle_paper(&engine,
                                &(pare_oracle_caps){.max_len = 8,
                                                    .layers = 1,
                                                    .heads = 1,
                                                    .features = PARE_ORC_FULL,
                                                    .dtype = PARE_F32},
                                NULL, &err),
              &err);
    assert_int_equal(pare_length_training_open(&w, engine, NULL, &err), PARE_ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_ordinary_training),
        cmocka_unit_test(what_cannot_be_trained_so_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
