/* Tests src/length/length_forward.c, distributed.c: a model through an oracle is the model. */
#include <float.h>
#include "oracle_wrappers.h"
#include <pare/length.h>
#include <pare_test.h>

enum { TOKENS = 66, LENGTH = 16, SEED = 20261116 };
static const uint32_t FULL_ORACLE = PARE_ORC_FULL | PARE_ORC_QKV;
static const uint32_t CAUSAL_ORACLE = PARE_ORC_CAUSAL | PARE_ORC_QKV;

typedef struct stage {
    pare_arena *a;
    pare_model *m;
    pare_inputs set;
    size_t rows, cols;
    double *want, *wide;  /* by the f64 pass; through an oracle of f64 */
    float *direct, *seen; /* by the f32 pass; through an oracle of f32 */
    pare_err err;
} stage;

static void new_buffers(stage *s, size_t tokens)
{
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, 1, tokens, SEED, &s->err), &s->err);
    s->rows = pare_output_rows(s->m, &s->set.in[0]);
    s->cols = pare_model_outputs(s->m);
    const size_t n = s->rows * s->cols;
    s->want = pare_alloc(s->a, n, sizeof *s->want);
    s->wide = pare_alloc(s->a, n, sizeof *s->wide);
    s->direct = pare_alloc(s->a, n, sizeof *s->direct);
    s->seen = pare_alloc(s->a, n, sizeof *s->seen);
    assert_true(s->want && s->wide && s->direct && s->seen);
    assert_ok(pare_forward_f64(s->want, s->m, &s->set.in[0], NULL, NULL, &s->err), &s->err);
    assert_ok(pare_forward_f32(s->direct, s->m, &s->set.in[0], NULL, NULL, &s->err), &s->err);
}

static void open_stage(stage *s, pare_random_kind kind, size_t layers, size_t heads)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    *s = (stage){.a = pare_arena_new()};
    assert_non_null(s->a);
    o.kind = kind, o.layers = layers, o.heads = heads;
    o.dim = 8 * heads, o.vocab = 20, o.context = TOKENS, o.seed = SEED;
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
}

/* The largest |x_i - want_i| / |want_i| of a row. */
static double error(const stage *s, const float *x, const double *wide)
{
    double worst = 0;
    for (size_t i = 0; i < s->rows; i++) {
        double off = 0, size = 0;
        for (size_t j = 0; j < s->cols; j++) {
            const double w = s->want[i * s->cols + j];
            const double d = (x ? (double)x[i * s->cols + j] : wide[i * s->cols + j]) - w;
            off += d * d;
            size += w * w;
        }
        if (!(sqrt(off / size) <= worst)) worst = sqrt(off / size);
    }
    return worst;
}

static pare_length_stats through(stage *s, void *out, pare_dtype t, uint32_t length,
                                 const pare_length_opts *opts)
{
    pare_oracle orc;
    pare_length_stats stats;
    assert_ok(pare_oracle_cpu(&orc, t, length, NULL, &s->err), &s->err);
    assert_ok(
        pare_length_forward(out, &stats,
                            &(pare_length_pass){.oracle = &orc, .model = s->m, .in = &s->set.in[0]},
                            opts, NULL, &s->err),
        &s->err);
    pare_oracle_free(&orc);
    return stats;
}

/* Both oracles and both modes that are exact. */
static void all_agree(stage *s)
{
    const pare_length_opts how[] = {{.mode = PARE_LENGTH_NATIVE},
                                    {.mode = PARE_LENGTH_ZEROREF, .features = FULL_ORACLE},
                                    {.mode = PARE_LENGTH_ZEROREF, .features = CAUSAL_ORACLE}};
    const double own = error(s, s->direct, NULL), least = 4 * 0x1p-24;
    for (size_t i = 0; i < 3; i++) {
        const pare_length_stats f32 = through(s, s->seen, PARE_F32, LENGTH, &how[i]);
        assert_int_equal(f32.rounds, s->m->nblocks);
        assert_true(f32.simulated && f32.calls > 0);
        assert_le(error(s, s->seen, NULL), 8 * (own > least ? own : least));
        through(s, s->wide, PARE_F64, LENGTH, &how[i]);
        assert_le(error(s, NULL, s->wide), 256 * 0x1p-53);
    }
}

static void a_model_through_an_oracle_is_the_model(void **state)
{
    (void)state;
    for (size_t l = 1; l <= 4; l += 3)
        for (size_t h = 1; h <= 4; h *= 2)
            for (int k = PARE_RANDOM_GPT; k <= PARE_RANDOM_BERT; k++) {
                stage s;
                open_stage(&s, (pare_random_kind)k, l, h);
                new_buffers(&s, TOKENS);
                all_agree(&s);
                close_stage(&s);
            }
}

static void windows_and_sinks_go_through_as_well(void **state)
{
    static const size_t windows[] = {1, 5, 40};
    (void)state;
    for (size_t w = 0; w < 3; w++)
        for (size_t sinks = 0; sinks < 4; sinks += 3) {
            stage s;
            open_stage(&s, PARE_RANDOM_LLAMA, 2, 2);
            s.m->pattern = (pare_pattern){PARE_WINDOW, windows[w], sinks, false, 0, 0};
            new_buffers(&s, TOKENS);
            all_agree(&s);
            close_stage(&s);
        }
}

static void an_engine_as_long_as_the_input_is_one_plain_call_a_head(void **state)
{
    stage s;
    (void)state;
    open_stage(&s, PARE_RANDOM_BERT, 2, 2);
    new_buffers(&s, TOKENS);
    const pare_length_opts zeroref = {.mode = PARE_LENGTH_ZEROREF};
    const pare_length_stats stats = through(&s, s.seen, PARE_F32, TOKENS, &zeroref);
    assert_int_equal(stats.calls, 4);
    assert_false(stats.simulated);
    close_stage(&s);
}

static void only_learned_positions_end_with_the_context(void **state)
{
    (void)state;
    for (int k = PARE_RANDOM_GPT; k <= PARE_RANDOM_LLAMA; k++) {
        stage s;
        open_stage(&s, (pare_random_kind)k, 1, 1);
        assert_int_equal(pare_length_may_exceed(s.m), k == PARE_RANDOM_LLAMA);
        close_stage(&s);
    }
}

static void a_failing_oracle_fails_the_pass_with_its_words(void **state)
{
    stage s;
    pare_oracle cpu, orc;
    const pare_fault fault = {.call = 3, .kind = PARE_FAULT_REFUSE};
    (void)state;
    open_stage(&s, PARE_RANDOM_GPT, 2, 2);
    new_buffers(&s, TOKENS);
    assert_ok(pare_oracle_cpu(&cpu, PARE_F32, LENGTH, NULL, &s.err), &s.err);
    assert_ok(pare_oracle_faulty(&orc, cpu, &fault, 1, &s.err), &s.err);
    assert_status(
        pare_length_forward(s.seen, NULL,
                            &(pare_length_pass){.oracle = &orc, .model = s.m, .in = &s.set.in[0]},
                            NULL, NULL, &s.err),
        PARE_ERR_IO, &s.err);
    assert_contains(s.err.msg, "block 0: ");
    pare_oracle_free(&orc);
    close_stage(&s);
}

/* ---- what is drawn --------------------------------------------------------------------------- */

/* Our own engine, and a sum over the keys of every call that tells their order. */
typedef struct listener {
    pare_oracle inner;
    uint64_t heard[4096];
    size_t calls;
} listener;

static void listener_caps(void *self, pare_oracle_caps *out)
{
    const listener *const o = self;
    o->inner.ops->caps(o->inner.self, out);
}

static pare_status listener_evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    listener *const o = self;
    for (size_t i = 0; i < n; i++) {
        const pare_call_qkv *const a = &calls[i].u.a;
        const uint8_t *const k = a->k;
        uint64_t sum = a->n;
        assert_int_equal(calls[i].kind, PARE_CALL_QKV);
        assert_true(o->calls < 4096);
        for (size_t b = 0; b < (size_t)a->n * a->dk * sizeof(float); b++) sum = sum * 31 + k[b];
        o->heard[o->calls++] = sum;
    }
    return o->inner.ops->evaluate(o->inner.self, calls, n, err);
}

static pare_status listener_barrier(void *self, pare_err *err)
{
    listener *const o = self;
    return o->inner.ops->barrier(o->inner.self, err);
}

static void listener_destroy(void *self)
{
    (void)self;
}

/* Two layers that are the same and see the same, for the first one adds nothing: only the draw
 * tells them apart. A draw that the layer before has made already is not independent of what it
 * gave. */
static void every_layer_draws_anew(void **state)
{
    static const pare_oracle_ops ops = {listener_caps, listener_evaluate, listener_barrier,
                                        listener_destroy};
    static listener l, again;
    stage s;
    (void)state;
    open_stage(&s, PARE_RANDOM_LLAMA, 2, 2);
    s.m->pattern = (pare_pattern){.kind = PARE_FULL};
    pare_block *const b = s.m->blocks;
    b[0].attn.wo.data = pare_alloc(s.a, b[0].attn.wo.rows * b[0].attn.wo.cols, sizeof(double));
    assert_non_null(b[0].attn.wo.data);
    b[0].ffn.kind = PARE_FFN_NONE;
    b[1].attn = b[0].attn;
    new_buffers(&s, TOKENS);
    const pare_length_opts how = {
        .mode = PARE_LENGTH_SAMPLE, .features = FULL_ORACLE, .no_fallback = true, .seed = SEED};
    for (int i = 0; i < 2; i++) {
        listener *const to = i ? &again : &l;
        *to = (listener){0};
        const pare_oracle orc = {&ops, to};
        assert_ok(pare_oracle_cpu(&to->inner, PARE_F32, LENGTH, NULL, &s.err), &s.err);
        assert_ok(pare_length_forward(
                      s.seen, NULL,
                      &(pare_length_pass){.oracle = &orc, .model = s.m, .in = &s.set.in[0]}, &how,
                      NULL, &s.err),
                  &s.err);
        pare_oracle_free(&to->inner);
    }
    assert_true(l.calls >= 8 && l.calls % 2 == 0);
    for (size_t i = 0; i < l.calls / 2; i++) assert_true(l.heard[i] != l.heard[l.calls / 2 + i]);
    assert_memory_equal(l.heard, again.heard, sizeof l.heard); /* and the seed decides */
    close_stage(&s);
}

static void shared_model(const char *path, const uint32_t *lengths, size_t n, size_t tokens)
{
    stage s = {.a = pare_arena_new()};
    assert_non_null(s.a);
    assert_ok(pare_model_load(&s.m, path, &s.err), &s.err);
    s.m->context = 0;
    new_buffers(&s, tokens);
    double most = 0;
    for (size_t j = 0; j < s.rows * s.cols; j++) most = fmax(most, fabs((double)s.direct[j]));
    for (size_t i = 0; i < 2 * n; i++) {
        const pare_length_opts how = {.mode = i % 2 ? PARE_LENGTH_ZEROREF : PARE_LENGTH_NATIVE};
        through(&s, s.seen, PARE_F32, lengths[i / 2], &how);
        double off = 0;
        for (size_t j = 0; j < s.rows * s.cols; j++) {
            const double d = fabs((double)s.seen[j] - (double)s.direct[j]);
            if (!(d <= off)) off = d;
        }
        print_message("%s, N %zu, M %u, %s: %.2g of the largest entry\n", strrchr(path, '/') + 1,
                      tokens, lengths[i / 2], pare_length_mode_name(how.mode), off / most);
        assert_le(off, 1e-5 * most);
    }
    close_stage(&s);
}

static void stories_and_moonshine_agree_to_1e_5(void **state)
{
    static const char stories[] = "../shared/data/models/stories260K.safetensors";
    static const char moonshine[] = "../shared/data/models/moonshine_tiny_encoder.safetensors";
    (void)state;
    NEED_SHARED(stories);
    shared_model(stories, (const uint32_t[]){16, 64}, 2, 512);
    shared_model(moonshine, (const uint32_t[]){64}, 1, 457);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_through_an_oracle_is_the_model),
        cmocka_unit_test(windows_and_sinks_go_through_as_well),
        cmocka_unit_test(an_engine_as_long_as_the_input_is_one_plain_call_a_head),
        cmocka_unit_test(only_learned_positions_end_with_the_context),
        cmocka_unit_test(a_failing_oracle_fails_the_pass_with_its_words),
        cmocka_unit_test(every_layer_draws_anew),
        cmocka_unit_test(stories_and_moonshine_agree_to_1e_5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
