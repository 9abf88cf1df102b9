/* Tests src/depth/replacement.c and calibrate.c: every kind is exact where it should be, fits are the
 * least squares they say, and what a kind does not use is gone. */
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "depth_models.h"
#include "depth/replace_layers.h"

static const pare_random_kind all_kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT,
                                             PARE_RANDOM_GRAPH};

/* Queries that are the same for all tokens: 0, or the bias. */
static void still_queries(stage *s, double bias)
{
    for (size_t b = 0; b < s->m->nblocks; b++) {
        pare_attn *const a = &s->m->blocks[b].attn;
        a->wq = filled(s, &a->wq, 0);
        const pare_weight row = {PARE_F64, 1, a->wq.rows, NULL};
        a->bq = filled(s, &row, bias);
    }
}

static void uniform_is_exact_where_scores_are_all_alike(void **state)
{
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        stage s;
        pare_depth_report r;
        stage_open(&s, all_kinds[k], 2, 3 + k);
        still_queries(&s, 0);
        pare_model *const g = cut_to(&s, PARE_ATTN_UNIFORM, 0, &r);
        assert_true(apart(&s, s.m, g) < 1e-6); /* mix is rounded to f32 */
        for (size_t b = 0; b < g->nblocks; b++) {
            const pare_attn *const a = &g->blocks[b].attn;
            assert_true(!pare_has(&a->wq) && !pare_has(&a->wk) && !pare_has(&a->wv));
        }
        pare_model_free(g);
        stage_close(&s);
    }
}

/* The same with heads side by side in the place of wo. */
static void uniform_needs_no_wo(void **state)
{
    (void)state;
    stage s;
    pare_depth_report r;
    stage_open(&s, PARE_RANDOM_GPT, 2, 8);
    still_queries(&s, 0);
    for (size_t b = 0; b < 2; b++) s.m->blocks[b].attn.wo = (pare_weight){0};
    assert_ok(pare_model_check(s.m, &s.err), &s.err);
    pare_model *const g = cut_to(&s, PARE_ATTN_UNIFORM, 0, &r);
    assert_true(apart(&s, s.m, g) < 1e-6);
    pare_model_free(g);
    stage_close(&s);
}

static void one_query_is_exact_where_all_are_alike(void **state)
{
    (void)state;
    static const pare_attn_kind kinds_to_try[] = {PARE_ATTN_CONSTQ, PARE_ATTN_MEANQ};
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < 2; i++) {
            stage s;
            pare_depth_report r;
            stage_open(&s, all_kinds[k], 2, 13 + k);
            still_queries(&s, 0.7);
            /* Rotary positions turn that one query: only without them is it the same everywhere. */
            const bool same = !pare_model_is_rotary(s.m);
            if (kinds_to_try[i] == PARE_ATTN_MEANQ && s.m->pattern.kind != PARE_FULL) {
                stage_close(&s);
                continue;
            }
            pare_model *const g = cut_to(&s, kinds_to_try[i], 0, &r);
            const double off = apart(&s, s.m, g);
            assert_int_equal(off < 1e-6, same);
            pare_model_free(g);
            stage_close(&s);
        }
}

/* Values that do not depend on the token: the layer says one row, and every fitted kind says it. */
static void const_and_linear_are_exact_for_constant_values(void **state)
{
    (void)state;
    static const pare_attn_kind fits[] = {PARE_ATTN_CONST, PARE_ATTN_LINEAR, PARE_ATTN_AFFMIX,
                                          PARE_ATTN_POOL};
    for (size_t i = 0; i < 4; i++) {
        stage s;
        pare_depth_report r;
        stage_open(&s, PARE_RANDOM_GPT, 1, 23);
        pare_attn *const a = &s.m->blocks[0].attn;
        a->wv = filled(&s, &a->wv, 0);
        pare_model *const g = cut_to(&s, fits[i], 0, &r);
        /* A ridge shrinks the constant too: by about its share. */
        assert_true(apart(&s, s.m, g) < (i == 0 ? 1e-6 : 2e-2));
        pare_model_free(g);
        stage_close(&s);
    }
}

/* ---- fits ------------------------------------------------------------------------------------ */

/* |F - fit|^2 + t |M|^2 over the calibration tokens, for the fit that a cut has made. */
static double objective(stage *s, const pare_attn *fit, double nudge, size_t at)
{
    double sum = 0, trace = 0;
    const pare_attn *const a = &s->m->blocks[0].attn;
    const size_t d = a->din;
    pare_mat moved = pare_mat_new(s->a, a->dout, d);
    pare_weight_widen(&moved, &fit->matrix, 0, 0);
    moved.v[at % (a->dout * d)] += nudge;
    for (size_t i = 0; i < s->set.n; i++) {
        pare_work w = {.arena = s->a, .err = &s->err};
        const residual_streams st = residual_streams_of(&w, s->m, &s->set.in[i]);
        pare_block block;
        const pare_model norm = submodel_norm(s->m, &a->in_norm, d);
        const pare_model branch = submodel_branch(&block, s->m, a);
        const pare_mat z = submodel_run(&w, &norm, &s->set.in[i], &st.at[0]);
        const pare_mat f = submodel_run(&w, &branch, &s->set.in[i], &st.at[0]);
        assert_ok(w.st, &s->err);
        for (size_t t = 0; t < z.rows; t++) {
            for (size_t j = 0; j < d; j++) trace += pare_row(&z, t)[j] * pare_row(&z, t)[j];
            trace += 1;
            for (size_t o = 0; o < a->dout; o++) {
                double y = pare_weight_at(&fit->bo, o);
                for (size_t j = 0; j < d; j++) y += pare_row(&moved, o)[j] * pare_row(&z, t)[j];
                sum += (pare_row(&f, t)[o] - y) * (pare_row(&f, t)[o] - y);
            }
        }
    }
    const double ridge = 1e-3 * trace / (double)(d + 1);
    for (size_t i = 0; i < a->dout * d; i++) sum += ridge * moved.v[i] * moved.v[i];
    return sum;
}

static void linear_is_the_ridge_regression(void **state)
{
    (void)state;
    stage s;
    pare_depth_report r;
    stage_open(&s, PARE_RANDOM_GPT, 1, 31);
    pare_model *const g = cut_to(&s, PARE_ATTN_LINEAR, 0, &r);
    const pare_attn *const fit = &g->blocks[0].attn;
    const double best = objective(&s, fit, 0, 0);
    for (size_t at = 0; at < 64; at += 7)
        for (int side = -1; side < 2; side += 2)
            assert_true(objective(&s, fit, 1e-3 * side, at) > best);
    assert_int_equal(r.tokens, INPUTS * TOKENS);
    assert_int_equal(r.unknowns, 9);
    pare_model_free(g);
    stage_close(&s);
}

/* More to fit with is never worse on what is fitted to, up to the ridge. */
static void more_features_fit_better(void **state)
{
    (void)state;
    static const pare_attn_kind order[] = {PARE_ATTN_CONST, PARE_ATTN_LINEAR, PARE_ATTN_AFFMIX};
    for (size_t k = 0; k < 4; k++) {
        stage s;
        pare_depth_report r;
        double last = INFINITY;
        stage_open(&s, all_kinds[k], 1, 41 + k);
        /* Only the branch is to be seen. */
        s.m->blocks[0].ffn = (pare_ffn){0};
        s.m->blocks[0].attn.out_norm = s.m->head.norm = (pare_norm){0};
        s.m->head.pool = PARE_POOL_NONE;
        for (size_t i = 0; i < 3; i++) {
            pare_model *const g = cut_to(&s, order[i], 0, &r);
            assert_true(r.error_est <= last * 1.02);
            last = r.error_est;
            pare_model_free(g);
        }
        pare_model *const g = cut_to(&s, PARE_ATTN_POOL, 0, &r);
        print_message("%s: pool %.3g, affmix %.3g\n", pare_random_kinds[k], r.error_est, last);
        assert_true(r.error_est < 1);
        pare_model_free(g);
        stage_close(&s);
    }
}

/* ---- symmetries ------------------------------------------------------------------------------ */

/* A row added to all keys changes nothing: not the model, not the cut. */
static void key_biases_change_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
        stage s;
        pare_depth_report r;
        stage_open(&s, PARE_RANDOM_BERT, 2, 51);
        pare_model *const g = cut_to(&s, (pare_attn_kind)(PARE_ATTN_ZERO + k), 1, &r);
        for (size_t b = 0; b < 2; b++) {
            pare_attn *const a = &s.m->blocks[b].attn;
            const pare_weight row = {PARE_F64, 1, a->wk.rows, NULL};
            a->bk = filled(&s, &row, 0.3 + (double)b);
        }
        pare_model *const h = cut_to(&s, (pare_attn_kind)(PARE_ATTN_ZERO + k), 1, &r);
        assert_true(apart(&s, g, h) < 1e-5); /* fits are stored in f32 */
        pare_model_free(g);
        pare_model_free(h);
        stage_close(&s);
    }
}

/* Full attention without positions does not care in which order tokens come, nor does a cut. */
static void tokens_may_change_places(void **state)
{
    (void)state;
    for (size_t k = 0; k < PARE_DEPTH_KINDS; k++) {
        stage s;
        pare_depth_report r;
        stage_open(&s, PARE_RANDOM_BERT, 2, 61);
        s.m->embedding.pos = (pare_positions){0};
        s.m->head.pool = PARE_POOL_NONE;
        pare_model *const g = cut_to(&s, (pare_attn_kind)(PARE_ATTN_ZERO + k), 0, &r);
        int64_t transposed[TOKENS];
        for (size_t t = 0; t < TOKENS; t++) transposed[t] = s.set.in[0].ids[(t + 4) % TOKENS];
        pare_input in = s.set.in[0];
        const pare_mat y = outputs(&s, g, &in);
        in.ids = transposed;
        const pare_mat z = outputs(&s, g, &in);
        for (size_t t = 0; t < TOKENS; t++)
            for (size_t j = 0; j < y.cols; j++)
                assert_near(pare_row(&z, t)[j], pare_row(&y, (t + 4) % TOKENS)[j], 1e-12);
        pare_model_free(g);
        stage_close(&s);
    }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refused(stage *s, pare_depth_opts o, const pare_inputs *data, pare_status want,
                    const char *word)
{
    pare_depth_report r;
    pare_model *g = NULL;
    assert_status(pare_depth(&g, &r, s->m, data, &o, NULL, &s->err), want, &s->err);
    assert_null(g);
    assert_contains(s->err.msg, word);
}

static void a_layer_without_skip_is_never_dropped(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, PARE_RANDOM_GPT, 3, 71);
    s.m->blocks[1].attn.skip.kind = PARE_SKIP_NONE;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    o.kind = PARE_ATTN_ZERO;
    o.layers = 1;
    refused(&s, o, &s.set, PARE_ERR_INPUT, "layer 1 cannot be zero");
    /* Named as one that stays it is no hindrance, and auto finds another kind. */
    const size_t stays = 1;
    pare_depth_report r;
    pare_model *g = NULL;
    o.exact = &stays;
    o.nexact = 1;
    assert_ok(pare_depth(&g, &r, s.m, &s.set, &o, NULL, &s.err), &s.err);
    assert_int_equal(g->blocks[1].attn.kind, PARE_ATTN_EXACT);
    pare_model_free(g);
    g = cut_to(&s, PARE_ATTN_NONE, 0, &r);
    assert_true(g->blocks[1].attn.kind != PARE_ATTN_ZERO);
    pare_model_free(g);
    stage_close(&s);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    stage s;
    const size_t twice[] = {1, 1}, far[] = {7}, both[] = {0, 1};
    const pare_depth_opts none = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_opts o = none;
    stage_open(&s, PARE_RANDOM_GPT, 2, 73);
    refused(&s, o, &s.set, PARE_ERR_USAGE, "how many");
    o.layers = 3;
    refused(&s, o, &s.set, PARE_ERR_USAGE, "3 attention layers");
    o.layers = 1;
    o.exact = both;
    o.nexact = 2;
    refused(&s, o, &s.set, PARE_ERR_USAGE, "2 are named");
    o = none;
    o.exact = twice;
    o.nexact = 2;
    refused(&s, o, &s.set, PARE_ERR_USAGE, "twice");
    o.exact = far;
    o.nexact = 1;
    refused(&s, o, &s.set, PARE_ERR_USAGE, "layer 7");
    o = none;
    o.layers = 0;
    o.kind = PARE_ATTN_MEANQ;
    refused(&s, o, &s.set, PARE_ERR_INPUT, "full pattern");
    o.kind = PARE_ATTN_LINEAR;
    refused(&s, o, NULL, PARE_ERR_USAGE, "fitted");
    o.kind = PARE_ATTN_ZERO;
    o.layers = 1;
    refused(&s, o, NULL, PARE_ERR_USAGE, "chosen");
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_is_exact_where_scores_are_all_alike),
        cmocka_unit_test(uniform_needs_no_wo),
        cmocka_unit_test(one_query_is_exact_where_all_are_alike),
        cmocka_unit_test(const_and_linear_are_exact_for_constant_values),
        cmocka_unit_test(linear_is_the_ridge_regression),
        cmocka_unit_test(more_features_fit_better),
        cmocka_unit_test(key_biases_change_nothing),
        cmocka_unit_test(tokens_may_change_places),
        cmocka_unit_test(a_layer_without_skip_is_never_dropped),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
