/* Tests src/width/width.c: what is asked for is done, what is not covered is refused by name, and
 * the bits do not depend on the threads. */
#include "width_nets.h"
#include <pare/width.h>

typedef struct board {
    stage s;
    pare_model *m;
    pare_mat x;
    pare_graph g;
    pare_input in;
    pare_inputs set;
} board;

static void board_open(board *b, pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    stage_open(&b->s, 21);
    o.kind = kind;
    o.dim = 12;
    o.heads = 2;
    o.layers = 2;
    assert_ok(pare_random_model(&b->m, &o, &b->s.err), &b->s.err);
    b->x = rand_mat(&b->s, 50, 7, 1);
    b->g = rand_graph(&b->s, 50, 4, NULL);
    b->in = input_of(&b->x, &b->g);
    b->set = (pare_inputs){1, &b->in};
}

static void board_close(board *b)
{
    pare_model_free(b->m);
    stage_close(&b->s);
}

static void same_model(const pare_model *a, const pare_model *b)
{
    assert_int_equal(a->nblocks, b->nblocks);
    for (size_t i = 0; i < a->nblocks; i++) {
        const pare_weight *const x[] = {&a->blocks[i].attn.wq, &a->blocks[i].attn.wo,
                                        &a->blocks[i].ffn.layers[1].w, &a->blocks[i].attn.bo};
        const pare_weight *const y[] = {&b->blocks[i].attn.wq, &b->blocks[i].attn.wo,
                                        &b->blocks[i].ffn.layers[1].w, &b->blocks[i].attn.bo};
        for (size_t k = 0; k < 4; k++) {
            assert_int_equal(x[k]->rows * x[k]->cols, y[k]->rows * y[k]->cols);
            assert_memory_equal(x[k]->data, y[k]->data,
                                x[k]->rows * x[k]->cols * pare_dtype_size(x[k]->dtype));
        }
    }
}

static pare_width_opts opts_of(pare_width_method method, size_t dim, size_t qk)
{
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = method;
    o.dim = dim;
    o.qk_dim = qk;
    o.trials = 5;
    return o;
}

/* Batch norms, self loops, f32: cut, and the same bits with one thread and with three, and again
 * with the same seed; another seed draws another map. */
static void bits_depend_on_the_seed_and_not_on_the_threads(void **state)
{
    (void)state;
    static const pare_width_method methods[] = {PARE_WIDTH_EXACT,    PARE_WIDTH_LOWRANK,
                                                PARE_WIDTH_LEVERAGE, PARE_WIDTH_JL,
                                                PARE_WIDTH_QK,       PARE_WIDTH_AUTO};
    const pare_exec three = {.threads = 3};
    board b;
    board_open(&b, PARE_RANDOM_GRAPH);
    for (size_t k = 0; k < 6; k++) {
        pare_width_opts o = opts_of(methods[k], k == 1 || k == 2 || k == 5 ? 5 : 0, k > 2 ? 3 : 0);
        if (k == 2) o.rows = PARE_ROWS_SAMPLE;
        pare_model *one = NULL, *many = NULL, *other = NULL;
        pare_width_report r;
        assert_ok(pare_width(&one, &r, b.m, &b.set, &o, NULL, &b.s.err), &b.s.err);
        assert_ok(pare_width(&many, &r, b.m, &b.set, &o, &three, &b.s.err), &b.s.err);
        same_model(one, many);
        assert_int_equal(one->blocks[0].attn.wq.dtype, PARE_F32);
        assert_true(one->blocks[1].attn.out_norm.kind == PARE_NORM_NONE);
        assert_false(pare_has(&one->blocks[1].attn.bv)); /* no row is empty: merged */
        o.seed = 1;
        assert_ok(pare_width(&other, &r, b.m, &b.set, &o, NULL, &b.s.err), &b.s.err);
        if (methods[k] == PARE_WIDTH_JL)
            assert_true(memcmp(one->blocks[0].attn.wq.data, other->blocks[0].attn.wq.data,
                               one->blocks[0].attn.wq.rows * 12 * sizeof(float)) != 0);
        pare_model_free(one);
        pare_model_free(many);
        pare_model_free(other);
    }
    board_close(&b);
}

/* Layer 1 is fitted to the stream that the cut layer 0 gives, not to the original one. */
static void later_layers_see_the_stream_that_is_already_cut(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        stage s;
        pare_model *cut = NULL;
        pare_width_report r;
        stage_open(&s, 4);
        const net n = rand_net(
            &s,
            (net_shape){
                .features = 5, .dim = 8, .layers = 2, .classes = 2, .heads = 1, .residual = true});
        const pare_mat x = rand_mat(&s, 30, 5, 1);
        const pare_graph g = rand_graph(&s, 30, 4, NULL);
        const pare_width_opts o = opts_of(k ? PARE_WIDTH_JL : PARE_WIDTH_QK, 0, 3);
        (void)cut_moves(&s, &cut, &r, NULL, &n, &x, &g, &o);
        const net few = net_read(&s.w, cut);
        const pare_input in = input_of(&x, &g);
        const activations p = activations_of(&s.w, cut, &few, &in);
        const double *const a = head_scores(&s.w, &n.layers[1].heads[0], &p.h[1], &g);
        const double *const b = head_scores(&s.w, &few.layers[1].heads[0], &p.h[1], &g);
        assert_work(&s);
        assert_near(score_half_range(a, b, &g), r.heads[1].scores_est, 1e-9);
        pare_model_free(cut);
        stage_close(&s);
    }
}

static void a_share_of_the_parameters_is_kept_and_no_less_than_possible(void **state)
{
    (void)state;
    board b;
    board_open(&b, PARE_RANDOM_GRAPH);
    const double all = (double)pare_model_size(b.m, 1, 1).parameters;
    static const double keep[] = {0.3, 0.6, 0.9};
    for (size_t k = 0; k < 3; k++) {
        pare_width_opts o = opts_of(PARE_WIDTH_LOWRANK, 0, 0);
        pare_model *cut = NULL, *next = NULL;
        pare_width_report r;
        o.keep = keep[k];
        assert_ok(pare_width(&cut, &r, b.m, &b.set, &o, NULL, &b.s.err), &b.s.err);
        assert_le((double)pare_model_size(cut, 1, 1).parameters, keep[k] * all);
        o = opts_of(PARE_WIDTH_LOWRANK, r.dim + 1, 0);
        if (r.dim < 12) {
            assert_ok(pare_width(&next, &r, b.m, &b.set, &o, NULL, &b.s.err), &b.s.err);
            assert_true((double)pare_model_size(next, 1, 1).parameters > keep[k] * all);
        }
        pare_model_free(cut);
        pare_model_free(next);
    }
    pare_width_opts o = opts_of(PARE_WIDTH_LOWRANK, 0, 0);
    pare_model *cut = NULL;
    pare_width_report r;
    o.keep = 1e-3;
    assert_status(pare_width(&cut, &r, b.m, &b.set, &o, NULL, &b.s.err), PARE_ERR_PROMISE,
                  &b.s.err);
    assert_null(cut);
    board_close(&b);
}

static void a_largest_move_finds_the_narrowest(void **state)
{
    (void)state;
    board b;
    board_open(&b, PARE_RANDOM_GRAPH);
    const pare_mat y = output_of(&b.s, b.m, &b.in);
    static const double most[] = {1, 0.1, 1e-5};
    size_t before = 1;
    for (size_t k = 0; k < 3; k++) {
        pare_width_opts o = opts_of(PARE_WIDTH_QK, 0, 0);
        pare_model *cut = NULL;
        pare_width_report r;
        o.max_move = most[k];
        assert_ok(pare_width(&cut, &r, b.m, &b.set, &o, NULL, &b.s.err), &b.s.err);
        const pare_mat z = output_of(&b.s, cut, &b.in);
        assert_le(mats_apart(&y, &z), most[k]);
        assert_true(r.qk_dim >= before);
        before = r.qk_dim;
        pare_model_free(cut);
    }
    pare_width_opts o = opts_of(PARE_WIDTH_QK, 0, 0);
    pare_model *cut = NULL;
    pare_width_report r;
    o.max_move = 1e-12; /* the weights are f32 */
    assert_status(pare_width(&cut, &r, b.m, &b.set, &o, NULL, &b.s.err), PARE_ERR_PROMISE,
                  &b.s.err);
    board_close(&b);
}

static void refused(board *b, pare_width_opts o, pare_status want, const char *why)
{
    pare_model *cut = NULL;
    pare_width_report r;
    assert_status(pare_width(&cut, &r, b->m, &b->set, &o, NULL, &b->s.err), want, &b->s.err);
    assert_null(cut);
    assert_contains(b->s.err.msg, why);
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    board b;
    board_open(&b, PARE_RANDOM_GRAPH);
    refused(&b, opts_of(PARE_WIDTH_LOWRANK, 0, 0), PARE_ERR_USAGE, "lowrank needs dim");
    refused(&b, opts_of(PARE_WIDTH_LOWRANK, 13, 0), PARE_ERR_USAGE,
            "dim 13 is larger than the model's 12");
    refused(&b, opts_of(PARE_WIDTH_QK, 0, 7), PARE_ERR_USAGE,
            "qk-dim 7 is larger than the model's 6");
    refused(&b, opts_of(PARE_WIDTH_QK, 0, 0), PARE_ERR_USAGE, "qk needs qk_dim");
    refused(&b, opts_of(PARE_WIDTH_JL, 4, 3), PARE_ERR_USAGE, "only queries and keys");
    refused(&b, opts_of(PARE_WIDTH_EXACT, 4, 0), PARE_ERR_USAGE, "itself");
    refused(&b, opts_of(PARE_WIDTH_CLUSTER, 4, 3), PARE_ERR_USAGE, "takes dim only");
    pare_width_opts o = opts_of(PARE_WIDTH_LOWRANK, 4, 0);
    o.trials = 0;
    refused(&b, o, PARE_ERR_USAGE, "trials");
    o = opts_of(PARE_WIDTH_LOWRANK, 4, 0);
    o.keep = NAN;
    refused(&b, o, PARE_ERR_USAGE, "keep must be");
    pare_input two[2] = {b.in, b.in};
    b.set = (pare_inputs){2, two};
    refused(&b, opts_of(PARE_WIDTH_LOWRANK, 4, 0), PARE_ERR_INPUT, "one graph");
    board_close(&b);
}

static void models_it_does_not_cover_are_refused_by_layer(void **state)
{
    (void)state;
    static const struct {
        pare_random_kind kind;
        const char *why;
    } all[] = {{PARE_RANDOM_GPT, "input: tokens are ids"},
               {PARE_RANDOM_LLAMA, "input: tokens are ids"},
               {PARE_RANDOM_BERT, "input: tokens are ids"}};
    for (size_t k = 0; k < 3; k++) {
        board b;
        board_open(&b, all[k].kind);
        refused(&b, opts_of(PARE_WIDTH_LOWRANK, 4, 0), PARE_ERR_INPUT, all[k].why);
        board_close(&b);
    }
    board b;
    board_open(&b, PARE_RANDOM_GRAPH);
    pare_norm *const norm = &b.m->blocks[1].ffn.out_norm;
    const pare_norm batch = *norm;
    *norm = (pare_norm){.kind = PARE_NORM_LAYER, .eps = 1e-5, .divisor = 12};
    refused(&b, opts_of(PARE_WIDTH_LOWRANK, 4, 0), PARE_ERR_INPUT,
            "block 1, feed-forward: a norm of kind layer");
    *norm = batch;
    b.m->top.pool = PARE_POOL_MEAN;
    refused(&b, opts_of(PARE_WIDTH_LOWRANK, 4, 0), PARE_ERR_INPUT, "head: it pools");
    board_close(&b);
}

/* An input of another width, or with a nan, is the forward pass's to refuse. */
static void bad_features_are_refused(void **state)
{
    (void)state;
    board b;
    board_open(&b, PARE_RANDOM_GRAPH);
    b.in.width = 6;
    refused(&b, opts_of(PARE_WIDTH_LOWRANK, 4, 0), PARE_ERR_INPUT, "6");
    b.in.width = 7;
    b.x.v[3] = NAN;
    refused(&b, opts_of(PARE_WIDTH_LOWRANK, 4, 0), PARE_ERR_NONFINITE, "nan");
    board_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_depend_on_the_seed_and_not_on_the_threads),
        cmocka_unit_test(later_layers_see_the_stream_that_is_already_cut),
        cmocka_unit_test(a_share_of_the_parameters_is_kept_and_no_less_than_possible),
        cmocka_unit_test(a_largest_move_finds_the_narrowest),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
        cmocka_unit_test(models_it_does_not_cover_are_refused_by_layer),
        cmocka_unit_test(bad_features_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
