/* Tests src/train/popup.c, frozen_gpt.c and what train_loop.c makes of them. */
#include "train/popup.h"
#include "tiny_task.h"
#include <pare/train.h>

static const pare_popup third = {.keep = 0.3};

static pare_model *frozen_gpt(pare_frozen_kind kind, double scale, uint64_t seed)
{
    const pare_frozen_gpt from = {kind, seed, scale};
    const pare_init o = {.kind = PARE_INIT_GPT,
                         .dim = 8,
                         .layers = 1,
                         .heads = 2,
                         .vocab = TINY_VOCAB,
                         .context = TINY_TOKENS,
                         .source = &from};
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_init_model(&m, &o, &err), &err);
    return m;
}

/* One matrix, nothing else: y = W x. */
static pare_model *linear(void)
{
    static const float w[12] = {0.5f, -1, 2, 0.25f, -0.5f, 1.5f, 0.75f, -2, 1, -0.125f, 0.3f, 1.1f};
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_new(&m, &err), &err);
    m->name = pare_strdup(m->arena, "linear");
    m->embedding.width = 4;
    m->pattern.kind = PARE_FULL;
    m->head.out.w = (pare_weight){PARE_F32, 3, 4, w};
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

static size_t ones(const float *v, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += v[i] != 0;
    return k;
}

/* ---- the gradient --------------------------------------------------------------------------- */

typedef struct
    soft_mask { /* f64: weights w (m + |s| - |s0|), of which the scores' gradient is exact */
    pare_params *p;
    pare_tape *tape;
    const pare_input *in;
    const int64_t *label;
} soft_mask;

static double soft_loss(soft_mask *x)
{
    static const pare_mode still = {.training = true};
    pare_err err = {0};
    const size_t rows = pare_output_rows(x->p->model, x->in);
    pare_logits y = {PARE_F64, rows, pare_model_outputs(x->p->model), NULL};
    double loss = 0, dy[64 * TINY_VOCAB] = {0};
    assert_ok(pare_tape_forward(x->tape, x->in, &still, &y.v, &err), &err);
    assert_ok(pare_loss_cross_entropy(&loss, dy, &y, x->label, 1, NULL, &err), &err);
    return loss;
}

static void score_gradient(float *g, pare_params *p, popup *pop, const soft_mask *x)
{
    static const pare_mode still = {.training = true};
    pare_err err = {0};
    pare_tape *tape = NULL;
    const size_t rows = pare_output_rows(p->model, x->in);
    pare_logits y = {PARE_F32, rows, pare_model_outputs(p->model), NULL};
    float dy[64 * TINY_VOCAB] = {0};
    double loss;
    assert_ok(pare_tape_new(&tape, p, NULL, &err), &err);
    assert_ok(pare_tape_forward(tape, x->in, &still, &y.v, &err), &err);
    assert_ok(pare_loss_cross_entropy(&loss, dy, &y, x->label, 1, NULL, &err), &err);
    assert_ok(pare_tape_backward(tape, dy, NULL, g, &err), &err);
    popup_score_gradient(pop, g);
    pare_tape_free(tape);
}

/* Every score of every matrix, kept or not; and nothing for what has no score. */
static void compare(const pare_model *m, const pare_input *in, const int64_t *label)
{
    pare_err err = {0};
    pare_params *p = NULL, *p64 = NULL;
    popup *pop = NULL;
    assert_ok(pare_params_new(&p, m, PARE_F32, &err), &err);
    assert_ok(pare_params_new(&p64, m, PARE_F64, &err), &err);
    assert_ok(popup_new(&pop, p, &third, 5, NULL, &err), &err);
    soft_mask x = {.p = p64, .in = in, .label = label};
    assert_ok(pare_tape_new(&x.tape, p64, NULL, &err), &err);
    float *const g = calloc(p->count, sizeof *g), *const eff = p->values;
    float *const w = malloc(p->count * sizeof *w);
    bool *const scored = calloc(p->count, sizeof *scored);
    const float *const s = popup_scores(pop)->values;
    double *const v = p64->values;
    assert_true(g && w && scored);
    memcpy(w, p->values, p->count * sizeof *w);
    popup_apply(pop);
    for (size_t i = 0; i < p->count; i++) v[i] = (double)eff[i];
    score_gradient(g, p, pop, &x);
    for (size_t i = 0; i < p->nslots; i++)
        for (size_t k = 0; k < p->slots[i].rows * p->slots[i].cols; k++)
            scored[p->slots[i].offset + k] = !p->slots[i].vector;
    double most = 0;
    for (size_t i = 0; i < p->count; i++) most = fmax(most, fabs((double)g[i]));
    assert_true(most > 0);
    for (size_t i = 0; i < p->count; i++) {
        if (!scored[i]) {
            assert_true(g[i] == 0);
            continue;
        }
        const double h = 1e-5, side = s[i] > 0 ? 1 : -1, step = h * side * (double)w[i];
        v[i] = (double)eff[i] + step;
        const double up = soft_loss(&x);
        v[i] = (double)eff[i] - step;
        const double down = soft_loss(&x);
        v[i] = (double)eff[i];
        assert_near(g[i], (up - down) / (2 * h), 2e-5 * most + 1e-9);
    }
    free(g), free(w), free(scored);
    pare_tape_free(x.tape);
    popup_free(pop);
    pare_params_free(p), pare_params_free(p64);
}

static void the_gradient_of_scores_is_that_of_the_soft_mask(void **state)
{
    (void)state;
    static const double rows[8] = {1, -2, 0.5, 3, -1, 0.25, 2, -0.75};
    static const int64_t ids[2 * TINY_TOKENS] = {0, 3, 1, 4, 2, 2, 1, 1, 0, 4, 3, 2};
    static const int64_t label[2 * TINY_TOKENS] = {2, 0, 1, 1, 4, 3, 0, 2, 4, 4, 3, 1};
    const pare_input vectors = {.batch = 1, .tokens = 2, .x = rows, .width = 4};
    const pare_input text = {.batch = 2, .tokens = TINY_TOKENS, .ids = ids};
    pare_model *m = linear();
    compare(m, &vectors, label);
    pare_model_free(m);
    for (int kind = 0; kind < 2; kind++) {
        m = frozen_gpt((pare_frozen_kind)kind, 4, 1);
        compare(m, &text, label);
        pare_model_free(m);
    }
    tiny t; /* biases and gains have no scores */
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    compare(t.start, &text, label);
    tiny_close(&t);
}

/* ---- runs ----------------------------------------------------------------------------------- */

/* Every weight is what it was, or 0; so many of each matrix are left. */
static void only_masked(const pare_model *start, pare_model *found, double keep)
{
    pare_params *a = NULL, *b = NULL;
    pare_err err = {0};
    assert_ok(pare_params_new(&a, start, PARE_F32, &err), &err);
    assert_ok(pare_params_new(&b, found, PARE_F32, &err), &err);
    assert_int_equal(a->nslots, b->nslots);
    for (size_t i = 0; i < a->nslots; i++) {
        const pare_slot *const k = &a->slots[i];
        const size_t n = k->rows * k->cols;
        const float *const x = (float *)a->values + k->offset, *const y =
                                                                   (float *)b->values + k->offset;
        if (k->vector) {
            assert_memory_equal(x, y, n * sizeof *x);
            continue;
        }
        assert_int_equal(ones(y, n), n - (size_t)floor((1 - keep) * (double)n));
        for (size_t j = 0; j < n; j++)
            assert_true(y[j] == 0 || memcmp(&x[j], &y[j], sizeof *x) == 0);
    }
    pare_params_free(a), pare_params_free(b);
}

static void a_run_leaves_weights_and_keeps_as_many_as_said(void **state)
{
    (void)state;
    static const double keep[] = {0.01, 0.3, 0.5, 1};
    for (size_t i = 0; i < 4; i++) {
        tiny t;
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result r;
        const pare_popup pop = {keep[i]};
        tiny_open(&t, PARE_RANDOM_GPT, 1);
        pare_model_free(t.start);
        t.start = frozen_gpt(PARE_FROZEN_NORMAL, 1, 3);
        pare_train_opts o = tiny_opts(20);
        o.popup = &pop;
        o.lr = 0.05;
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        only_masked(t.start, m, keep[i]);
        pare_model_free(m);
        tiny_close(&t);
    }
}

static void a_mask_learns(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result first, last;
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    pare_model_free(t.start);
    t.start = frozen_gpt(PARE_FROZEN_NORMAL, 2, 3);
    pare_train_opts o = tiny_opts(1);
    o.popup = &third, o.dropout = 0, o.lr = 0.03, o.warmup = 0;
    assert_ok(pare_train(&m, &first, t.start, &t.task, &o, NULL, &err), &err);
    pare_model_free(m);
    o.steps = 200;
    assert_ok(pare_train(&m, &last, t.start, &t.task, &o, NULL, &err), &err);
    pare_model_free(m);
    assert_le(last.test, 0.7 * first.test);
    tiny_close(&t);
}

/* Whether it is stopped in between, and on how many threads it runs, shows in no bit. */
static void a_run_that_was_stopped_ends_in_the_same_bits(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    char dir[200], path[300], a[PARE_SHA256_HEX], b[PARE_SHA256_HEX];
    test_mkdir(dir);
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    pare_model_free(t.start);
    t.start = frozen_gpt(PARE_FROZEN_SIGNED, 2, 3);
    pare_train_opts o = tiny_opts(12);
    o.popup = &third;
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    tiny_hash(a, m);
    o.checkpoint = test_path(path, dir, "x.ckpt");
    o.checkpoint_every = 5;
    t.poison = 7; /* a loss that is not finite ends the run behind the checkpoint of step 5 */
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    assert_true(r.diverged && r.steps == 8);
    pare_model_free(m);
    t.poison = 0;
    o.resume = true;
    for (int threads = 1; threads <= 2; threads++) {
        const pare_exec exec = {.threads = threads};
        pare_train_opts again = o;
        if (threads == 2) again.checkpoint = NULL;
        assert_ok(pare_train(&m, &r, t.start, &t.task, &again, &exec, &err), &err);
        tiny_hash(b, m);
        assert_string_equal(a, b);
    }
    const pare_popup other = {0.4};
    o.popup = &other;
    assert_status(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "popup_keep");
    o.popup = NULL;
    assert_status(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), PARE_ERR_INPUT, &err);
    tiny_close(&t);
    test_rmdir(dir);
}

static void a_share_outside_of_0_and_1_is_refused(void **state)
{
    (void)state;
    static const double bad[] = {0, -0.3, 1.0001, NAN, INFINITY, 1e-300};
    tiny t;
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result r;
        const pare_popup pop = {bad[i]};
        pare_train_opts o = tiny_opts(2);
        o.popup = &pop;
        assert_status(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), PARE_ERR_USAGE, &err);
        assert_contains(err.msg, i < 5 ? "it must be above 0"
                                       : "leaves none of the 40 weights of "
                                         "embedding.embedding");
        assert_null(m);
    }
    tiny_close(&t);
}

/* ---- the source ----------------------------------------------------------------------------- */

static double spread(const pare_weight *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++) sum += pow(pare_weight_at(w, i), 2);
    return sqrt(sum / (double)(w->rows * w->cols));
}

static void frozen_models_have_the_spread_of_the_recipe(void **state)
{
    (void)state;
    const pare_frozen_gpt from = {PARE_FROZEN_SIGNED, 1, 3};
    pare_init o = {.kind = PARE_INIT_GPT,
                   .dim = 12,
                   .layers = 2,
                   .heads = 2,
                   .vocab = 9,
                   .context = 7,
                   .source = &from};
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_init_model(&m, &o, &err), &err);
    const double std = 0.02 * 8; /* sqrt(768 / 12) */
    assert_near(spread(&m->embedding.table), std, 1e-7);
    assert_near(spread(&m->embedding.pos.table), std, 1e-7);
    assert_near(pare_weight_at(&m->head.norm.gain, 11), 8, 1e-7);
    assert_true(m->head.tied && !pare_has(&m->head.norm.bias));
    for (size_t b = 0; b < 2; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        const pare_ffn *const f = &m->blocks[b].ffn;
        assert_near(spread(&a->wq), 3 * std, 1e-6);
        assert_near(spread(&a->wk), 3 * std, 1e-6);
        assert_near(spread(&a->wv), std, 1e-7);
        assert_near(spread(&a->wo), std / 2, 1e-7); /* sqrt(2 layers) */
        assert_near(spread(&f->layers[0].w), std, 1e-7);
        assert_near(spread(&f->layers[1].w), std / 2, 1e-7);
        assert_true(!pare_has(&a->bq) && !pare_has(&a->bo) && !pare_has(&f->layers[0].b));
        assert_true(!pare_has(&a->in_norm.gain) && !pare_has(&f->in_norm.bias));
    }
    assert_near(pare_popup_theory_scale(64), 2.8284271, 1e-6);
    pare_model_free(m);
    o.kind = PARE_INIT_ENCODER, o.outputs = 2;
    assert_status(pare_init_model(&m, &o, &err), PARE_ERR_USAGE, &err);
    const pare_frozen_gpt bad = {PARE_FROZEN_NORMAL, 1, NAN};
    o.kind = PARE_INIT_GPT, o.outputs = 0, o.source = &bad;
    assert_status(pare_init_model(&m, &o, &err), PARE_ERR_USAGE, &err);
}

static void a_found_model_is_saved_as_a_seed_and_masks(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL, *back = NULL;
    pare_train_result r;
    char dir[200], path[300], a[PARE_SHA256_HEX], b[PARE_SHA256_HEX];
    test_mkdir(dir);
    for (int kind = 0; kind < 2; kind++) {
        tiny_open(&t, PARE_RANDOM_GPT, 1);
        pare_model_free(t.start);
        t.start = frozen_gpt((pare_frozen_kind)kind, 2, 3);
        pare_train_opts o = tiny_opts(8);
        o.popup = &third;
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        const pare_frozen_gpt other = {(pare_frozen_kind)kind, 4, 2};
        const pare_frozen_gpt from = {(pare_frozen_kind)kind, 3, 2};
        assert_status(pare_popup_code(m, &other, &err), PARE_ERR_VERIFY, &err);
        assert_contains(err.msg, "embedding.embedding: [");
        assert_ok(pare_popup_code(m, &from, &err), &err);
        assert_int_equal(m->ncoded, 8);
        assert_ok(pare_model_save(m, test_path(path, dir, "t.safetensors"), true, NULL, &err),
                  &err);
        assert_ok(pare_model_load(&back, path, &err), &err);
        tiny_hash(a, m);
        tiny_hash(b, back);
        assert_string_equal(a, b);
        tiny_close(&t);
    }
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_of_scores_is_that_of_the_soft_mask),
        cmocka_unit_test(a_run_leaves_weights_and_keeps_as_many_as_said),
        cmocka_unit_test(a_mask_learns),
        cmocka_unit_test(a_run_that_was_stopped_ends_in_the_same_bits),
        cmocka_unit_test(a_share_outside_of_0_and_1_is_refused),
        cmocka_unit_test(frozen_models_have_the_spread_of_the_recipe),
        cmocka_unit_test(a_found_model_is_saved_as_a_seed_and_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
