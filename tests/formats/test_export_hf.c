/* Tests src/formats/export_hf*.c: every block that has no place under Hugging Face's names is refused, in
 * words that name it, and nothing is written. (That what is written computes the same is in
 * tests/cli/export.sh.) */
#include <pare/model.h>
#include <pare_test.h>

#include <unistd.h>

static pare_model *new_model(pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = kind, o.dim = 8, o.heads = 2, o.layers = 2, o.ffn = 12, o.vocab = 9, o.context = 5;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

typedef void change_fn(pare_block *b);

static void no_ffn(pare_block *b)
{
    b->ffn = (pare_ffn){.kind = PARE_FFN_NONE};
}
static void no_skip(pare_block *b)
{
    b->attn.skip.kind = PARE_SKIP_NONE;
}
static void other_act(pare_block *b)
{
    b->ffn.act = PARE_ACT_RELU;
}
static void fewer_heads(pare_block *b)
{
    b->attn.nheads = 1;
}
static void other_eps(pare_block *b)
{
    b->attn.in_norm.eps = b->attn.out_norm.eps = 0.5;
}
static void no_norms(pare_block *b)
{
    b->attn.in_norm.kind = b->attn.out_norm.kind = PARE_NORM_NONE;
}
static void no_softmax(pare_block *b)
{
    b->attn.kind = PARE_ATTN_UNIFORM;
}

/* Block 1 changed: said so, no folder. */
static void refused(pare_random_kind kind, change_fn *change, const char *says)
{
    char dir[200], folder[300];
    pare_err err = {0};
    pare_model *const m = new_model(kind);
    test_mkdir(dir);
    test_path(folder, dir, "hf");
    change(&m->blocks[1]);
    print_message("%s: %s\n", pare_random_kinds[kind], says);
    assert_int_equal(pare_export_hf(m, folder, false, &err), PARE_ERR_INPUT);
    assert_non_null(strstr(err.msg, "block 1"));
    if (!strstr(err.msg, says)) fail_msg("\"%s\" does not say \"%s\"", err.msg, says);
    assert_int_not_equal(access(folder, F_OK), 0);
    pare_model_free(m);
    test_rmdir(dir);
}

static void blocks_that_do_not_fit(void **state)
{
    (void)state;
    const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};
    for (size_t k = 0; k < 3; k++) {
        refused(kinds[k], no_skip, "a skip is not the identity");
        refused(kinds[k], other_act, "differs from that of block 0");
        refused(kinds[k], fewer_heads, "heads");
        refused(kinds[k], other_eps, "eps");
        refused(kinds[k], no_norms, "norm");
        refused(kinds[k], no_softmax, "the attention is uniform, not softmax");
    }
}

/* There are no maps to look at. */
static void blocks_without_ffn(void **state)
{
    (void)state;
    refused(PARE_RANDOM_GPT, no_ffn, "a skip is not the identity");
    refused(PARE_RANDOM_LLAMA, no_ffn, "norm");
    refused(PARE_RANDOM_BERT, no_ffn, "a skip is not the identity");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_that_do_not_fit),
        cmocka_unit_test(blocks_without_ffn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
