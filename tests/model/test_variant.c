/* Tests src/model/variant.c. */
#include <pare/model.h>
#include <pare_test.h>

static pare_model *make(pare_random_kind kind, pare_variant v)
{
    pare_model *m = NULL;
    pare_err err = {0};
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.kind = kind;
    o.dim = 8;
    o.heads = 2;
    o.variant = v;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

/* What is there of a model. */
typedef struct tally {
    size_t matrices, biases, norms; /* norms: gains and figures of batch norms */
    double sum;                     /* of the matrices' numbers */
} tally;

static pare_status add(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    tally *const t = self;
    (void)err;
    if (!pare_has(w)) return PARE_OK;
    const char *const last = strrchr(name, '.') + 1;
    const bool of_norm = strstr(name, "norm") != NULL;
    t->biases += strcmp(last, "bias") == 0 || (!of_norm && vector && last[0] == 'b');
    t->norms += of_norm && strcmp(last, "bias") != 0;
    t->matrices += !vector;
    for (size_t i = 0; !vector && i < w->rows * w->cols; i++)
        t->sum += pare_weight_at(w, i) * (double)(i % 7 + 1);
    return PARE_OK;
}

static tally count(pare_model *m)
{
    tally t = {0};
    pare_err err = {0};
    assert_ok(pare_model_visit(m, add, &t, &err), &err);
    assert_ok(pare_model_check(m, &err), &err);
    return t;
}

static bool has_skips(const pare_model *m)
{
    return m->blocks[1].attn.skip.kind != PARE_SKIP_NONE ||
           m->blocks[1].ffn.skip.kind != PARE_SKIP_NONE;
}

/* Every set of parts, of every kind: they are gone, and every matrix is what it was. */
static void what_is_left_out_is_gone_and_the_rest_stays(void **state)
{
    (void)state;
    for (int kind = 0; kind <= PARE_RANDOM_GRAPH; kind++) {
        pare_model *const usual = make((pare_random_kind)kind, (pare_variant){0});
        const tally all = count(usual);
        for (int set = 0; set < 8; set++) {
            const pare_variant v = {.no_skips = set & 1, .no_norms = set & 2, .no_biases = set & 4};
            if (kind == PARE_RANDOM_LLAMA && v.no_biases) continue;
            pare_model *const m = make((pare_random_kind)kind, v);
            const tally t = count(m);
            assert_true(has_skips(m) == !v.no_skips);
            assert_true((t.norms == 0) == v.no_norms);
            assert_true((t.biases == 0) == (v.no_biases || all.biases == 0 ||
                                            (v.no_norms && kind == PARE_RANDOM_LLAMA)));
            assert_int_equal(t.matrices, all.matrices);
            assert_true(t.sum == all.sum);
            assert_true(m->blocks[0].ffn.act == usual->blocks[0].ffn.act);
            assert_true(pare_variant_is_usual(&v) == (set == 0));
            pare_model_free(m);
        }
        pare_model_free(usual);
    }
}

static void the_activation_is_what_was_asked_for(void **state)
{
    (void)state;
    const pare_variant v = {.has_act = true, .act = PARE_ACT_NONE};
    pare_model *const m = make(PARE_RANDOM_GPT, v);
    assert_false(pare_variant_is_usual(&v));
    for (size_t b = 0; b < m->nblocks; b++) assert_int_equal(m->blocks[b].ffn.act, PARE_ACT_NONE);
    pare_model_free(m);
}

static void a_llama_has_no_biases_to_leave_out(void **state)
{
    (void)state;
    pare_model *m = NULL;
    pare_err err = {0};
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.kind = PARE_RANDOM_LLAMA;
    o.variant.no_biases = true;
    assert_status(pare_random_model(&m, &o, &err), PARE_ERR_USAGE, &err);
    assert_non_null(strstr(err.msg, "no biases"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_out_is_gone_and_the_rest_stays),
        cmocka_unit_test(the_activation_is_what_was_asked_for),
        cmocka_unit_test(a_llama_has_no_biases_to_leave_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
