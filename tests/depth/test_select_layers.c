/* Tests src/depth/select_layers.c and depth.c: errors that are reported are those of the written model,
 * choices are what they say, and nothing is done where nothing is asked. */
#include "depth_models.h"

/* |h - h'|_F / |h|_F of the hidden rows, by the models themselves. */
static double relative_error(stage *s, const pare_model *f, const pare_model *g)
{
    double err2 = 0, size = 0;
    pare_model a = *f, b = *g;
    a.head = b.head = (pare_output_head){.norm = f->head.norm, .pool = f->head.pool};
    for (size_t i = 0; i < s->set.n; i++) {
        const pare_mat y = outputs(s, &a, &s->set.in[i]), z = outputs(s, &b, &s->set.in[i]);
        for (size_t k = 0; k < y.rows * y.cols; k++) {
            err2 += (y.v[k] - z.v[k]) * (y.v[k] - z.v[k]);
            size += y.v[k] * y.v[k];
        }
    }
    return sqrt(err2 / size);
}

static pare_model *cut(stage *s, pare_depth_report *r, pare_attn_kind kind, size_t layers,
                       pare_depth_select how)
{
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_model *g = NULL;
    o.kind = kind;
    o.layers = layers;
    o.select = how;
    assert_ok(pare_depth(&g, r, s->m, &s->set, &o, NULL, &s->err), &s->err);
    return g;
}

static void reported_errors_are_those_of_the_model(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        stage s;
        stage_open(&s, (pare_random_kind)kind, 3, 5);
        for (size_t layers = 0; layers <= 3; layers++)
            for (int how = PARE_DEPTH_GREEDY; how <= PARE_DEPTH_INFLUENCE; how++) {
                pare_depth_report r;
                pare_model *const g = cut(&s, &r, PARE_ATTN_AFFMIX, layers, (pare_depth_select)how);
                /* Fits are made in f64 and stored in f32. */
                assert_near(relative_error(&s, s.m, g), r.error_est, 1e-6);
                assert_int_equal(r.exact, layers);
                size_t left = 0;
                for (size_t l = 0; l < 3; l++) left += r.layers[l].kind == PARE_ATTN_EXACT;
                assert_int_equal(left, layers);
                if (layers == 3) assert_true(r.error_est == 0);
                pare_model_free(g);
            }
        stage_close(&s);
    }
}

/* All layers kept, or nothing to keep: the same model, bit for bit. */
static void nothing_asked_is_nothing_done(void **state)
{
    (void)state;
    for (size_t layers = 0; layers < 2; layers++) {
        stage s;
        pare_depth_report r;
        char before[PARE_SHA256_HEX], after[PARE_SHA256_HEX];
        stage_open(&s, PARE_RANDOM_GPT, 1, 6);
        if (layers == 0) s.m->blocks[0].attn = (pare_attn){0};
        pare_model *const g = cut(&s, &r, PARE_ATTN_ZERO, layers, PARE_DEPTH_GREEDY);
        assert_ok(pare_model_sha256(before, s.m, &s.err), &s.err);
        assert_ok(pare_model_sha256(after, g, &s.err), &s.err);
        assert_string_equal(before, after);
        assert_int_equal(r.nlayers, layers);
        pare_model_free(g);
        stage_close(&s);
    }
}

static void looking_at_all_choices_is_at_least_as_good(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        stage s;
        stage_open(&s, PARE_RANDOM_GPT, 5, seed);
        for (size_t layers = 1; layers < 5; layers++) {
            pare_depth_report best, r;
            pare_model_free(cut(&s, &best, PARE_ATTN_UNIFORM, layers, PARE_DEPTH_EXHAUSTIVE));
            for (int how = PARE_DEPTH_GREEDY; how <= PARE_DEPTH_INFLUENCE; how++) {
                if (how == PARE_DEPTH_EXHAUSTIVE) continue;
                pare_model_free(cut(&s, &r, PARE_ATTN_UNIFORM, layers, (pare_depth_select)how));
                assert_le(best.error_est, r.error_est * (1 + 1e-6));
            }
        }
        stage_close(&s);
    }
}

/* What each layer costs alone is what greedy goes by first, and loo altogether. */
static void the_cheapest_layer_goes_first(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, PARE_RANDOM_BERT, 4, 9);
    for (int how = 0; how < 2; how++) {
        pare_depth_report r;
        pare_model *const g =
            cut(&s, &r, PARE_ATTN_CONST, 3, how ? PARE_DEPTH_LOO : PARE_DEPTH_GREEDY);
        size_t best = 0;
        for (size_t l = 1; l < 4; l++)
            if (r.layers[l].loo_est < r.layers[best].loo_est) best = l;
        for (size_t l = 0; l < 4; l++)
            assert_int_equal(r.layers[l].kind, l == best ? PARE_ATTN_CONST : PARE_ATTN_EXACT);
        assert_near(r.layers[best].loo_est, r.error_est, 1e-12);
        pare_model_free(g);
    }
    stage_close(&s);
}

/* Layers that say nothing cost nothing: of equals the lower one goes. */
static void ties_go_to_the_lower_layer(void **state)
{
    (void)state;
    static const pare_depth_select ways[] = {PARE_DEPTH_GREEDY, PARE_DEPTH_EXHAUSTIVE,
                                             PARE_DEPTH_LOO};
    stage s;
    stage_open(&s, PARE_RANDOM_LLAMA, 4, 10);
    for (size_t b = 1; b < 4; b++) {
        pare_attn *const a = &s.m->blocks[b].attn;
        a->wo = filled(&s, &a->wo, 0);
        a->bo = (pare_weight){0};
    }
    for (size_t i = 0; i < 3; i++) {
        pare_depth_report r;
        pare_model *const g = cut(&s, &r, PARE_ATTN_ZERO, 2, ways[i]);
        assert_int_equal(r.layers[0].kind, PARE_ATTN_EXACT);
        assert_int_equal(r.layers[1].kind, PARE_ATTN_ZERO);
        assert_int_equal(r.layers[2].kind, PARE_ATTN_ZERO);
        assert_int_equal(r.layers[3].kind, PARE_ATTN_EXACT);
        assert_true(r.error_est == 0);
        pare_model_free(g);
    }
    stage_close(&s);
}

/* 1 - cosine of what enters a block and leaves it, by taps of a pass. */
typedef struct taps {
    double in[TOKENS * 8], influence[4];
} taps;

static void on_tap(void *self, pare_tap tap, size_t block, pare_dtype t, const void *v, size_t rows,
                   size_t cols)
{
    taps *const k = self;
    const double *const x = v;
    assert_true(t == PARE_F64 && rows * cols == TOKENS * 8);
    if (tap == PARE_TAP_ATTN_IN) memcpy(k->in, x, sizeof k->in);
    if (tap != PARE_TAP_FFN_OUT) return;
    for (size_t i = 0; i < rows; i++) {
        double xx = 0, yy = 0, xy = 0;
        for (size_t j = 0; j < cols; j++) {
            xx += k->in[i * cols + j] * k->in[i * cols + j];
            yy += x[i * cols + j] * x[i * cols + j];
            xy += k->in[i * cols + j] * x[i * cols + j];
        }
        k->influence[block] += 1 - xy / sqrt(xx * yy);
    }
}

static void block_influence_is_that_of_whole_blocks(void **state)
{
    (void)state;
    stage s;
    taps k = {0};
    pare_depth_report r;
    stage_open(&s, PARE_RANDOM_GPT, 4, 12);
    const pare_trace trace = {.fn = on_tap, .self = &k};
    for (size_t i = 0; i < s.set.n; i++) {
        pare_mat y = outputs(&s, s.m, &s.set.in[i]);
        assert_ok(pare_forward_f64(y.v, s.m, &s.set.in[i], &trace, NULL, &s.err), &s.err);
    }
    pare_model *const g = cut(&s, &r, PARE_ATTN_ZERO, 2, PARE_DEPTH_INFLUENCE);
    for (size_t l = 0; l < 4; l++) {
        size_t lower = 0;
        assert_near(r.layers[l].influence_est, k.influence[l] / (INPUTS * TOKENS), 1e-12);
        for (size_t e = 0; e < 4; e++) lower += k.influence[e] < k.influence[l];
        assert_int_equal(r.layers[l].kind, lower < 2 ? PARE_ATTN_ZERO : PARE_ATTN_EXACT);
    }
    pare_model_free(g);
    stage_close(&s);
}

/* Each layer gets what costs least alone, unless one kind for all is better; never worse than any
 * kind alone at the same layers. */
static void auto_is_no_worse_than_one_kind(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        stage s;
        pare_depth_report any, r;
        stage_open(&s, (pare_random_kind)kind, 2, 14);
        pare_model *const best = cut(&s, &any, PARE_ATTN_NONE, 0, PARE_DEPTH_GREEDY);
        for (int k = 0; k < PARE_DEPTH_KINDS; k++) {
            if (PARE_ATTN_ZERO + k == PARE_ATTN_MEANQ && s.m->pattern.kind != PARE_FULL) continue;
            pare_model *const g =
                cut(&s, &r, (pare_attn_kind)(PARE_ATTN_ZERO + k), 0, PARE_DEPTH_GREEDY);
            assert_le(any.error_est, r.error_est * (1 + 1e-9));
            for (size_t l = 0; l < 2; l++) /* each of them alone */
                if (any.layers[l].kind == r.layers[l].kind)
                    assert_near(any.layers[l].loo_est, r.layers[l].loo_est, 1e-12);
            pare_model_free(g);
        }
        pare_model_free(best);
        stage_close(&s);
    }
}

/* The same bits for any number of threads. */
static void threads_change_nothing(void **state)
{
    (void)state;
    stage s;
    char hex[2][PARE_SHA256_HEX];
    stage_open(&s, PARE_RANDOM_LLAMA, 3, 15);
    for (int k = 0; k < 2; k++) {
        const pare_exec exec = {.threads = k ? 3 : 1};
        pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
        pare_depth_report r;
        pare_model *g = NULL;
        o.layers = 1;
        assert_ok(pare_depth(&g, &r, s.m, &s.set, &o, &exec, &s.err), &s.err);
        assert_ok(pare_model_sha256(hex[k], g, &s.err), &s.err);
        pare_model_free(g);
    }
    assert_string_equal(hex[0], hex[1]);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reported_errors_are_those_of_the_model),
        cmocka_unit_test(nothing_asked_is_nothing_done),
        cmocka_unit_test(looking_at_all_choices_is_at_least_as_good),
        cmocka_unit_test(the_cheapest_layer_goes_first),
        cmocka_unit_test(ties_go_to_the_lower_layer),
        cmocka_unit_test(block_influence_is_that_of_whole_blocks),
        cmocka_unit_test(auto_is_no_worse_than_one_kind),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
