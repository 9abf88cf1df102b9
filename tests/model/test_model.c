/* Who holds the weights of a model: clones, and what is made from them. */
#include <pare_test.h>
#include <pare/pare.h>
#include "model/model_facts.h"
#include <string.h>

static pare_model *random_gpt(pare_err *err)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    o.dim = 16;
    assert_ok(pare_random_model(&m, &o, err), err);
    return m;
}

/* Memory that was freed reads otherwise: the allocator of the tests writes over it. */
static void scribble(void)
{
    enum { BLOCKS = 64 };
    void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc((size_t)300 << 10);
        assert_non_null(block[i]);
        memset(block[i], 0x5a, (size_t)300 << 10);
    }
    for (size_t i = 0; i < BLOCKS; i++) free(block[i]);
}

static void a_clone_outlives_the_model_it_is_of(void **state)
{
    (void)state;
    pare_err err = {0};
    char before[PARE_SHA256_HEX], after[PARE_SHA256_HEX];
    pare_model *const m = random_gpt(&err);
    pare_model *first = NULL, *second = NULL;
    assert_ok(pare_model_sha256(before, m, &err), &err);
    assert_ok(pare_model_clone(&first, m, &err), &err);
    assert_ok(pare_model_clone(&second, first, &err), &err);
    assert_ptr_equal(first->blocks[0].attn.wq.data, m->blocks[0].attn.wq.data);
    assert_int_equal(second->nshared, 2);
    pare_model_free(m);
    pare_model_free(first);
    scribble();
    assert_ok(pare_model_sha256(after, second, &err), &err);
    assert_string_equal(before, after);
    pare_model_free(second);
}

static void a_cut_outlives_the_model_it_is_of(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_depth_report depth;
    pare_fold_report fold;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    o.layers = 0;
    o.kind = PARE_ATTN_UNIFORM;
    for (int k = 0; k < 2; k++) {
        char before[PARE_SHA256_HEX], after[PARE_SHA256_HEX];
        pare_model *const m = random_gpt(&err);
        pare_model *small = NULL;
        assert_ok(k ? pare_depth(&small, &depth, m, NULL, &o, NULL, &err)
                    : pare_fold(&small, &fold, m, &err),
                  &err);
        assert_ok(pare_model_sha256(before, small, &err), &err);
        pare_model_free(m);
        scribble();
        assert_ok(pare_model_sha256(after, small, &err), &err);
        assert_string_equal(before, after);
        pare_model_free(small);
    }
}

static void a_model_that_is_unshared_holds_nothing_of_others(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_model *const m = random_gpt(&err);
    pare_model *clone = NULL;
    assert_ok(pare_model_clone(&clone, m, &err), &err);
    assert_int_equal(clone->nshared, 1);
    pare_model_unshare(clone);
    assert_int_equal(clone->nshared, 0);
    pare_model_free(clone);
    char hex[PARE_SHA256_HEX];
    assert_ok(pare_model_sha256(hex, m, &err), &err);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clone_outlives_the_model_it_is_of),
        cmocka_unit_test(a_cut_outlives_the_model_it_is_of),
        cmocka_unit_test(a_model_that_is_unshared_holds_nothing_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
