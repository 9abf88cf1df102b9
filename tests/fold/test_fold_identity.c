/* Which model a certificate speaks of: the weights and the settings, from every file that loading
 * it reads. A file of weights whose settings stand in config.json beside it is another function
 * when that file is changed. */
#include "cert/prove.h"
#include "model/model_facts.h"
#include <pare/fold.h>
#include <pare_test.h>

typedef struct stage {
    char dir[200], weights[300], config[300], out[300], cert[320];
    pare_arena *a;
    pare_err err;
    pare_cert made;
} stage;

/* A model as Hugging Face has it, loaded by the path of its weights, and its fold. */
static void open_stage(stage *s, pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL, *g = NULL;
    pare_inputs set;
    pare_fold_report r;
    *s = (stage){.a = pare_arena_new()};
    assert_non_null(s->a);
    o.kind = kind;
    o.dim = 8, o.heads = 2, o.layers = 1, o.ffn = 8, o.vocab = 7, o.context = 6;
    test_mkdir(s->dir);
    assert_ok(pare_random_model(&m, &o, &s->err), &s->err);
    assert_ok(pare_export_hf(m, s->dir, true, &s->err), &s->err);
    pare_model_free(m);
    test_path(s->weights, s->dir, "model.safetensors");
    test_path(s->config, s->dir, "config.json");
    test_path(s->out, s->dir, "out");
    snprintf(s->cert, sizeof s->cert, "%s.cert.json", s->out);
    pare_files *const files = pare_files_new();
    assert_non_null(files);
    assert_ok(pare_model_load_as(&m, s->weights, NULL, files, &s->err), &s->err);
    assert_ok(pare_inputs_random(&set, s->a, m, 3, 6, 5, &s->err), &s->err);
    assert_ok(pare_fold(&g, &r, m, &s->err), &s->err);
    const pare_publish_opts p = {.in_path = s->weights,
                                 .in_files = files,
                                 .out_path = s->out,
                                 .max_error = INFINITY,
                                 .seed = 5,
                                 .tokens = 6,
                                 .set = &set,
                                 .prover = &pare_fold_prover};
    assert_ok(pare_publish(&s->made, s->a, m, &g, &p, &s->err), &s->err);
    pare_files_free(files);
    pare_model_free(m);
    pare_model_free(g);
}

static void close_stage(stage *s)
{
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static pare_status verify(stage *s)
{
    const pare_verify_opts o = {.provers = &pare_fold_prover, .nprovers = 1};
    s->err = (pare_err){0};
    return pare_cert_verify(s->cert, &o, &s->err);
}

/* config.json with a value of a key replaced. */
static void doctor(stage *s, const char *text, const char *key, const char *value)
{
    char name[64];
    snprintf(name, sizeof name, "\"%s\":", key);
    const char *const at = strstr(text, name);
    if (!at) fail_msg("config.json has no %s", key);
    const char *const from = at + strlen(name);
    const char *const bad = pare_sprintf(s->a, "%.*s %s%s", (int)(from - text), text, value,
                                         from + strcspn(from, ",}\n"));
    assert_non_null(bad);
    test_write_file(s->config, bad, strlen(bad));
}

static void settings_beside_the_weights_are_part_of_the_model(void **state)
{
    (void)state;
    static const char *const change[][3] = {
        {"\1", "rms_norm_eps", "50"},     {"\1", "rms_norm_eps", "1.1e-5"},
        {"\1", "hidden_act", "\"gelu\""}, {"\1", "rope_theta", "500"},
        {"", "layer_norm_epsilon", "50"}, {"", "activation_function", "\"relu\""},
        {"\2", "layer_norm_eps", "1"},    {"\2", "hidden_act", "\"relu\""},
    };
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_BERT; kind++) {
        stage s;
        char *text = NULL;
        size_t n = 0;
        open_stage(&s, (pare_random_kind)kind);
        assert_ok(verify(&s), &s.err);
        assert_ok(pare_text_read(&text, &n, s.a, s.config, &s.err), &s.err);
        for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
            if (change[i][0][0] != kind) continue;
            doctor(&s, text, change[i][1], change[i][2]);
            assert_status(verify(&s), PARE_ERR_VERIFY, &s.err);
            assert_contains(s.err.msg, "input model");
        }
        test_write_file(s.config, text, n);
        assert_ok(verify(&s), &s.err);
        assert_int_equal(unlink(s.config), 0);
        assert_true(verify(&s) != PARE_OK);
        close_stage(&s);
    }
}

/* Also where somebody makes the hashes of the files fit: the architecture speaks, and the proof. */
static void a_doctored_config_with_doctored_hashes_is_refused(void **state)
{
    (void)state;
    stage s;
    char *text = NULL;
    size_t n = 0;
    pare_model *m = NULL;
    pare_file_ref ref;
    open_stage(&s, PARE_RANDOM_LLAMA);
    assert_ok(pare_text_read(&text, &n, s.a, s.config, &s.err), &s.err);
    doctor(&s, text, "rms_norm_eps", "50");
    pare_files *const files = pare_files_new();
    assert_non_null(files);
    assert_ok(pare_model_load_as(&m, s.weights, NULL, files, &s.err), &s.err);
    assert_ok(pare_file_ref_make(&ref, s.a, s.cert, s.weights, files, m, &s.err), &s.err);
    char old[PARE_SHA256_HEX];
    memcpy(old, s.made.input.architecture, sizeof old);
    assert_string_not_equal(ref.architecture, old);
    s.made.input = ref;
    memcpy(s.made.input.architecture, old, sizeof old);
    assert_ok(pare_cert_write(&s.made, s.cert, true, &s.err), &s.err);
    assert_status(verify(&s), PARE_ERR_VERIFY, &s.err);
    assert_contains(s.err.msg, "another architecture");
    s.made.input = ref;
    assert_ok(pare_cert_write(&s.made, s.cert, true, &s.err), &s.err);
    assert_status(verify(&s), PARE_ERR_VERIFY, &s.err); /* it is no fold of that function */
    pare_files_free(files);
    pare_model_free(m);
    close_stage(&s);
}

static void a_certificate_names_every_file_and_the_architecture(void **state)
{
    (void)state;
    stage s;
    char hex[PARE_SHA256_HEX];
    open_stage(&s, PARE_RANDOM_LLAMA);
    const pare_file_ref *const in = &s.made.input;
    assert_int_equal(in->nfiles, 2);
    assert_string_equal(in->files[0].name, "config.json");
    assert_string_equal(in->files[1].name, "model.safetensors");
    assert_ok(pare_sha256_file(hex, s.config, &s.err), &s.err);
    assert_string_equal(in->files[0].sha256, hex);
    assert_ok(pare_sha256_file(hex, s.weights, &s.err), &s.err);
    assert_string_equal(in->files[1].sha256, hex);
    assert_int_equal(strlen(in->architecture), 64);
    assert_int_equal(s.made.output.nfiles, 1);
    assert_string_equal(s.made.output.files[0].name, "out");
    assert_ok(pare_sha256_file(hex, s.out, &s.err), &s.err);
    assert_string_equal(s.made.output.files[0].sha256, hex);
    assert_string_equal(s.made.output.sha256, hex);
    pare_model *g = NULL;
    assert_ok(pare_model_load(&g, s.out, &s.err), &s.err);
    assert_ok(pare_architecture_sha256(hex, g, &s.err), &s.err);
    assert_string_equal(s.made.output.architecture, hex);
    pare_model_free(g);
    close_stage(&s);
}

/* The same function in a file of pare: other bytes, the same architecture and tensors. */
static void a_plain_copy_is_the_same_model(void **state)
{
    (void)state;
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_BERT; kind++) {
        stage s;
        char copy[300];
        pare_model *m = NULL, *twin = NULL;
        pare_file_ref ref;
        open_stage(&s, (pare_random_kind)kind);
        test_path(copy, s.dir, "copy");
        assert_ok(pare_model_load(&m, s.weights, &s.err), &s.err);
        assert_ok(pare_model_save(m, copy, false, NULL, &s.err), &s.err);
        pare_files *const files = pare_files_new();
        assert_non_null(files);
        assert_ok(pare_model_load_as(&twin, copy, NULL, files, &s.err), &s.err);
        assert_ok(pare_file_ref_make(&ref, s.a, s.cert, copy, files, twin, &s.err), &s.err);
        const pare_file_ref *const in = &s.made.input;
        assert_string_not_equal(ref.sha256, in->sha256);
        assert_string_equal(ref.architecture, in->architecture);
        assert_true(ref.ntensors == in->ntensors && in->ntensors > 5);
        for (size_t i = 0; i < in->ntensors; i++) {
            assert_string_equal(ref.tensors[i].name, in->tensors[i].name);
            assert_string_equal(ref.tensors[i].sha256, in->tensors[i].sha256);
        }
        pare_files_free(files);
        pare_model_free(m);
        pare_model_free(twin);
        close_stage(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_beside_the_weights_are_part_of_the_model),
        cmocka_unit_test(a_doctored_config_with_doctored_hashes_is_refused),
        cmocka_unit_test(a_certificate_names_every_file_and_the_architecture),
        cmocka_unit_test(a_plain_copy_is_the_same_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
