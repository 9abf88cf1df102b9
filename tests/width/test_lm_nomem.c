/* Memory runs out, or one allocation is refused, at every place of a cut of a language model or an
 * encoder and of its proof: a status, no leak, no model. Small models fit into the first block of
 * an arena, larger ones ask for memory in the middle of the work. */
#include "width_nomem.h"
#include <pare/width.h>

static void one_case(pare_random_kind kind, size_t dim, size_t inputs, pare_width_opts o)
{
    pare_random_model_opts shape = PARE_RANDOM_MODEL_DEFAULT;
    pare_width_report r;
    play p = {.o = o, .new_inputs = true, .a = pare_arena_new()};
    assert_non_null(p.a);
    p.o.max_move = INFINITY;
    shape.kind = kind;
    shape.dim = dim, shape.heads = 2, shape.layers = 1, shape.ffn = dim;
    shape.vocab = 6, shape.context = 8;
    assert_ok(pare_random_model(&p.m, &shape, &p.err), &p.err);
    assert_ok(pare_inputs_random(&p.set, p.a, p.m, inputs, 8, 5, &p.err), &p.err);
    const long cuts = refuse_each(&p, cut);
    assert_ok(pare_width(&p.g, &r, p.m, &p.set, &p.o, NULL, &p.err), &p.err);
    const long proofs = refuse_each(&p, prove);
    print_message("%s, dim %zu, %s: %ld allocations of the cut, %ld of the proof\n",
                  pare_random_kinds[kind], dim, pare_width_method_names[o.method], cuts, proofs);
    assert_true(cuts > 3 && proofs > 3);
    pare_model_free(p.g);
    pare_model_free(p.m);
    pare_arena_free(p.a);
}

static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};

static void auto_without_memory_is_a_status_and_nothing_else(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++)
        one_case(kinds[k], 4, 1, (pare_width_opts){.method = PARE_WIDTH_AUTO, .keep = 0.9});
    one_case(PARE_RANDOM_LLAMA, 20, 2, (pare_width_opts){.method = PARE_WIDTH_AUTO, .keep = 0.9});
    one_case(PARE_RANDOM_BERT, 8, 1,
             (pare_width_opts){.method = PARE_WIDTH_AUTO, .v_dim = 2, .ffn_dim = 5});
    one_case(PARE_RANDOM_GPT, 8, 1, (pare_width_opts){.method = PARE_WIDTH_QK, .qk_dim = 1});
    one_case(PARE_RANDOM_LLAMA, 16, 1, (pare_width_opts){.method = PARE_WIDTH_QK, .keep = 0.98});
}

static void so_are_slice_and_svd(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        const pare_width_basis basis = k ? PARE_BASIS_SHARED : PARE_BASIS_PCA;
        one_case(kinds[k], 8, 1,
                 (pare_width_opts){.method = PARE_WIDTH_SLICE, .dim = 6, .basis = basis});
        one_case(kinds[k], 8, 1,
                 (pare_width_opts){.method = PARE_WIDTH_SVD, .keep = 0.8, .untie = k == 0});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_without_memory_is_a_status_and_nothing_else),
        cmocka_unit_test(so_are_slice_and_svd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
