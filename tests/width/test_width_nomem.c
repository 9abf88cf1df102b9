/* Memory runs out, or one allocation is refused, at every place of a cut and of its proof: a
 * status, no leak, no model. */
#include "width_nets.h"
#include "width_nomem.h"
#include <pare/width.h>

/* A model of the kind that the method covers. */
static pare_model *model_for(stage *s, pare_width_method method)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m = NULL;
    if (method == PARE_WIDTH_CLUSTER) {
        const net n = rand_net(s, (net_shape){.features = 6, .dim = 6, .layers = 1, .heads = 1});
        return model_of(s, &n);
    }
    o.kind = method == PARE_WIDTH_SLICE ? PARE_RANDOM_LLAMA
             : method == PARE_WIDTH_SVD ? PARE_RANDOM_GPT
                                        : PARE_RANDOM_GRAPH;
    o.dim = 4, o.heads = 2, o.layers = 1, o.ffn = 4, o.vocab = 6, o.context = 8;
    assert_ok(pare_random_model(&m, &o, &s->err), &s->err);
    return m;
}

static void without_memory_there_is_a_status_and_nothing_else(void **state)
{
    (void)state;
    for (int method = 0; method < PARE_WIDTH_METHODS; method++) {
        stage s;
        play p = {.o = PARE_WIDTH_OPTS_DEFAULT, .ask = pare_width_edits(0)};
        pare_width_report r;
        stage_open(&s, 9);
        p.m = model_for(&s, (pare_width_method)method);
        p.a = s.w.arena;
        p.o.method = (pare_width_method)method;
        p.o.trials = 2;
        if (method == PARE_WIDTH_LOWRANK || method == PARE_WIDTH_LEVERAGE ||
            method == PARE_WIDTH_AUTO)
            p.o.dim = 3;
        if (method == PARE_WIDTH_LOWRANK) p.o.basis = PARE_BASIS_MINMAX;
        if (method == PARE_WIDTH_LEVERAGE) p.o.rows = PARE_ROWS_SAMPLE;
        if (method == PARE_WIDTH_CLUSTER) p.o.dim = 6;
        if (method == PARE_WIDTH_SLICE || method == PARE_WIDTH_SVD) p.o.dim = 3;
        if (method == PARE_WIDTH_SVD) p.o.qk_dim = p.o.v_dim = 1, p.o.ffn_dim = 3;
        if (method == PARE_WIDTH_JL) p.o.qk_dim = 1;
        if (method == PARE_WIDTH_QK) p.o.keep = 0.95;
        assert_ok(pare_inputs_random(&p.set, p.a, p.m, 1, 8, 5, &s.err), &s.err);
        double *const x = (double *)(uintptr_t)p.set.in[0].x; /* drawn for this test alone */
        for (size_t i = 0; method == PARE_WIDTH_CLUSTER && i < 8; i++)
            for (size_t j = 0; j < 6; j++) x[6 * i + j] = j == i % 2 ? 1 : 0;
        assert_true(refuse_each(&p, cut) > 3);
        assert_ok(pare_width(&p.g, &r, p.m, &p.set, &p.o, NULL, &s.err), &s.err);
        assert_true(refuse_each(&p, prove) > 3);
        pare_model_free(p.g);
        pare_model_free(p.m);
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_a_status_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
