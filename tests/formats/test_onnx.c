/* Tests src/formats/onnx_*.c: whatever a model of sequences may have, its ONNX file computes the
 * same. The file is evaluated in f64 by tests/peers/onnx_numpy.py, which shares nothing with the
 * writer. */
#include <pare/run.h>
#include <pare_test.h>

enum { TOKENS = 11, SEED = 8 };

typedef void change_fn(pare_model *m);

static pare_model *new_model(pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = kind, o.dim = 8, o.heads = 2, o.layers = 2, o.ffn = 12, o.vocab = 9;
    o.context = TOKENS, o.seed = SEED;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

/* rows x cols of random numbers, in the model. */
static pare_weight random_weight(pare_model *m, size_t rows, size_t cols)
{
    pare_rng r = pare_rng_at(SEED, rows * 1000 + cols);
    double *const v = pare_alloc(m->arena, rows * cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < rows * cols; i++) v[i] = pare_rng_normal(&r) / sqrt((double)cols);
    return (pare_weight){PARE_F64, rows, cols, v};
}

static bool numpy_is_here(void)
{
    return system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0;
}

static void write_input(const char *path, const pare_input *in)
{
    pare_err err = {0};
    pare_array a = {.dtype = in->ids ? PARE_I64 : PARE_F64, .ndim = in->ids ? 2 : 3};
    a.shape[0] = in->batch, a.shape[1] = in->tokens, a.shape[2] = in->width;
    a.data = in->ids ? (const void *)in->ids : (const void *)in->x;
    assert_ok(pare_npy_write(path, &a, true, &err), &err);
}

/* Exports, evaluates, compares; frees the model. */
static void same_function(pare_model *m, const char *what)
{
    char dir[200], onnx[300], x[300], y[300], command[1200];
    pare_arena *const arena = pare_arena_new();
    pare_inputs set;
    pare_array got;
    pare_err err = {0};
    test_mkdir(dir);
    test_path(onnx, dir, "m.onnx");
    test_path(x, dir, "x.npy");
    test_path(y, dir, "y.npy");
    assert_ok(pare_model_check(m, &err), &err);
    assert_ok(pare_inputs_random(&set, arena, m, 1, TOKENS, SEED, &err), &err);
    const size_t n = pare_output_rows(m, &set.in[0]) * pare_model_outputs(m);
    double *const want = pare_alloc(arena, n, sizeof *want), most = 0, off = 0;
    assert_ok(pare_forward_f64(want, m, &set.in[0], NULL, NULL, &err), &err);
    assert_ok(pare_export_onnx(m, onnx, false, NULL, &err), &err);
    write_input(x, &set.in[0]);
    snprintf(command, sizeof command, "/usr/bin/python3 tests/peers/onnx_numpy.py %s %s %s", onnx,
             x, y);
    assert_int_equal(system(command), 0);
    assert_ok(pare_npy_read(&got, arena, y, &err), &err);
    assert_int_equal(pare_array_count(&got), n);
    for (size_t i = 0; i < n; i++) {
        const double d = fabs(pare_array_f64(&got, i) - want[i]);
        if (fabs(want[i]) > most) most = fabs(want[i]);
        if (!(d <= off)) off = d;
    }
    if (!(off <= 1e-6 * most)) fail_msg("%s: off by %g of %g", what, off, most);
    test_rmdir(dir);
    pare_arena_free(arena);
    pare_model_free(m);
}

static void vectors_and_batch_norms(pare_model *m)
{
    m->pattern = (pare_pattern){.kind = PARE_FULL};
}

static void window_and_sinks(pare_model *m)
{
    m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 3, .sinks = 2};
}

static void sinusoidal(pare_model *m)
{
    m->stem.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 100};
}

static void late_sinusoidal_behind_a_map(pare_model *m)
{
    sinusoidal(m);
    m->stem.pos.after_map = true;
    m->stem.map = (pare_dense){random_weight(m, 8, 8), random_weight(m, 1, 8)};
}

static void mean_pool(pare_model *m)
{
    m->top.pool = PARE_POOL_MEAN;
}

static void other_skips(pare_model *m)
{
    m->blocks[0].attn.skip = (pare_skip){PARE_SKIP_DIAGONAL, random_weight(m, 1, 8)};
    m->blocks[0].ffn.skip = (pare_skip){PARE_SKIP_DENSE, random_weight(m, 8, 8)};
    m->blocks[1].attn.skip.kind = PARE_SKIP_NONE;
}

static void other_norms(pare_model *m)
{
    m->blocks[0].attn.in_norm.kind = PARE_NORM_MEAN;
    m->blocks[0].ffn.in_norm.kind = PARE_NORM_RMS;
    m->blocks[0].ffn.in_norm.divisor = 5;
    m->blocks[0].ffn.in_norm.shift = 0.75;
    m->blocks[0].ffn.in_norm.offset = random_weight(m, 1, 8);
    m->blocks[1].attn.in_norm.divisor = 13;
    m->blocks[1].ffn.in_norm.kind = PARE_NORM_NONE;
}

static void interleaved_turns(pare_model *m)
{
    m->stem.pos.interleaved = true;
}

static void turns_of_some_planes(pare_model *m)
{
    for (size_t h = 0; h < 2; h++) {
        m->blocks[0].attn.heads[h].planes = 1;
        m->blocks[0].attn.heads[h].freq = 1;
    }
}

/* Ragged: the second head has fewer queries and keys than the first. */
static void heads_of_two_widths(pare_model *m)
{
    pare_attn *const a = &m->blocks[0].attn;
    a->heads[1].dk = 2;
    a->heads[1].scale = 0.3;
    a->wq = random_weight(m, 6, 8), a->wk = random_weight(m, 6, 8);
    a->bq = random_weight(m, 1, 6), a->bk = (pare_weight){0};
}

static void powers_of_the_mean(pare_model *m)
{
    pare_attn *const a = &m->blocks[1].attn;
    a->kind = PARE_ATTN_UMIX;
    a->mix = random_weight(m, 24, 8);
    a->nheads = 0;
    a->wq = a->wk = a->wv = a->wo = a->bq = a->bk = a->bv = (pare_weight){0};
}

static void every_activation(pare_model *m)
{
    static int which = PARE_ACT_RELU;
    m->blocks[0].ffn.act = (pare_act)which;
    which = which == PARE_ACT_TANH ? PARE_ACT_RELU : which + 1;
}

static const struct variant {
    const char *name;
    pare_random_kind kind;
    change_fn *change;
} variants[] = {
    {"vectors and batch norms", PARE_RANDOM_GRAPH, vectors_and_batch_norms},
    {"window and sinks", PARE_RANDOM_LLAMA, window_and_sinks},
    {"sinusoidal positions", PARE_RANDOM_GPT, sinusoidal},
    {"positions behind a map", PARE_RANDOM_GPT, late_sinusoidal_behind_a_map},
    {"mean pool", PARE_RANDOM_BERT, mean_pool},
    {"other skips", PARE_RANDOM_GPT, other_skips},
    {"other norms", PARE_RANDOM_GPT, other_norms},
    {"interleaved turns", PARE_RANDOM_LLAMA, interleaved_turns},
    {"turns of some planes", PARE_RANDOM_LLAMA, turns_of_some_planes},
    {"heads of two widths", PARE_RANDOM_GPT, heads_of_two_widths},
    {"powers of the mean", PARE_RANDOM_GPT, powers_of_the_mean},
    {"relu", PARE_RANDOM_LLAMA, every_activation},
    {"gelu", PARE_RANDOM_GPT, every_activation},
    {"gelu_tanh", PARE_RANDOM_LLAMA, every_activation},
    {"silu", PARE_RANDOM_GPT, every_activation},
    {"tanh", PARE_RANDOM_LLAMA, every_activation},
};

static void the_file_computes_what_the_model_does(void **state)
{
    (void)state;
    if (!numpy_is_here()) SKIP("needs numpy");
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        pare_model *const m = new_model(variants[i].kind);
        variants[i].change(m);
        same_function(m, variants[i].name);
    }
}

static void what_has_no_onnx_form_is_refused(void **state)
{
    pare_model *const m = new_model(PARE_RANDOM_GRAPH);
    pare_err err = {0};
    (void)state;
    assert_status(pare_export_onnx(m, "/nowhere/m.onnx", false, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "pattern graph");
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_computes_what_the_model_does),
        cmocka_unit_test(what_has_no_onnx_form_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
