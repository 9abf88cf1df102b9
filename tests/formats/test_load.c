/* Tests src/formats/load.c and import_open.c: every file that a model is made of is read once, and
 * all of them are what identifies it. */
#include "../model/sample_models.h"
#include "base/support.h"
#include <pare/model.h>

#include <sys/stat.h>

static const char CONFIG[] = "{\"model_type\":\"gpt2\",\"n_head\":2,\"layer_norm_epsilon\":0.01}";
static const char DOCTORED[] = "{\"model_type\":\"gpt2\",\"n_head\":2,\"layer_norm_epsilon\":50}";

static const char *const tensors[] = {"wte.weight",
                                      "wpe.weight",
                                      "h.0.ln_1.weight",
                                      "h.0.ln_2.weight",
                                      "h.0.attn.c_attn.weight",
                                      "h.0.attn.c_proj.weight",
                                      "h.0.mlp.c_fc.weight",
                                      "h.0.mlp.c_proj.weight",
                                      "ln_f.weight"};

/* A GPT-2 whose config.json says the rest; first and last tensor. */
static void hf_file(const char *path, size_t from, size_t to)
{
    static const size_t shape[9][2] = {{3, 4}, {3, 4}, {4, 0}, {4, 0}, {4, 12},
                                       {4, 4}, {4, 5}, {5, 4}, {4, 0}};
    store s = store_new();
    for (size_t i = 0; i < 9; i++) make(&s, tensors[i], shape[i][0], shape[i][1], 0);
    write_tensors(&s, path, from, to, PARE_F32, "{\"format\":\"pt\"}", 0);
    pare_arena_free(s.a);
}

static void hf_shards(const char *dir)
{
    char path[300], index[2000];
    hf_file(test_path(path, dir, "one.safetensors"), 0, 4);
    hf_file(test_path(path, dir, "two.safetensors"), 4, 9);
    size_t n = (size_t)snprintf(index, sizeof index, "{\"weight_map\":{");
    for (size_t i = 0; i < 9; i++)
        n += (size_t)snprintf(index + n, sizeof index - n, "%s\"%s\":\"%s.safetensors\"",
                              i ? "," : "", tensors[i], i < 4 ? "one" : "two");
    snprintf(index + n, sizeof index - n, "}}");
    write_text(test_path(path, dir, "model.safetensors.index.json"), index);
}

static void read_through(char model[PARE_SHA256_HEX], const char *path, pare_files *files)
{
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_load_as(&m, path, NULL, files, &err), &err);
    assert_ok(pare_model_sha256(model, m, &err), &err);
    pare_model_free(m);
}

/* What a fresh set of files reads: so many, with this identity; `model` is its hash. */
static void read_afresh(char id[PARE_SHA256_HEX], char model[PARE_SHA256_HEX], const char *path,
                        size_t count)
{
    pare_err err = {0};
    pare_files *const files = pare_files_new();
    read_through(model, path, files);
    assert_int_equal(pare_files_count(files), count);
    assert_ok(pare_files_identity(id, files, path, &err), &err);
    pare_files_free(files);
}

static void one_file_is_identified_by_its_own_hash(void **state)
{
    (void)state;
    char dir[200], path[300], id[PARE_SHA256_HEX], model[PARE_SHA256_HEX], hex[PARE_SHA256_HEX];
    pare_err err = {0};
    pare_model *m = NULL;
    test_mkdir(dir);
    test_path(path, dir, "m");
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = 8;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    for (int kind = 0; kind < 4; kind++) {
        if (kind == 0)
            assert_ok(pare_model_save(m, path, true, NULL, &err), &err);
        else if (kind == 1)
            sample_gpt2(path); /* its metadata say what a config.json would */
        else if (kind == 2)
            sample_bin(path);
        else
            sample_npz(path);
        read_afresh(id, model, path, 1);
        assert_ok(pare_sha256_file(hex, path, &err), &err);
        assert_string_equal(id, hex);
    }
    pare_model_free(m);
    test_rmdir(dir);
}

static void a_config_beside_the_file_belongs_to_the_model(void **state)
{
    (void)state;
    char dir[200], path[300], config[300], id[3][PARE_SHA256_HEX], m[3][PARE_SHA256_HEX];
    char one[PARE_SHA256_HEX], two[PARE_SHA256_HEX], lines[300], want[PARE_SHA256_HEX];
    pare_err err = {0};
    test_mkdir(dir);
    hf_file(test_path(path, dir, "model.safetensors"), 0, 9);
    write_text(test_path(config, dir, "config.json"), CONFIG);
    read_afresh(id[0], m[0], path, 2);
    assert_ok(pare_sha256_file(one, config, &err), &err);
    assert_ok(pare_sha256_file(two, path, &err), &err);
    const bool first = strcmp(one, two) < 0;
    snprintf(lines, sizeof lines, "%s  %s\n%s  %s\n", first ? one : two,
             first ? "config.json" : "model.safetensors", first ? two : one,
             first ? "model.safetensors" : "config.json");
    assert_ok(pare_sha256_of(want, lines, strlen(lines), &err), &err);
    assert_string_equal(id[0], want);
    read_afresh(id[1], m[1], dir, 2); /* and the folder is the same model */
    assert_string_equal(id[1], id[0]);
    assert_string_equal(m[1], m[0]);
    write_text(config, DOCTORED);
    read_afresh(id[2], m[2], path, 2);
    assert_string_not_equal(id[2], id[0]);
    assert_string_not_equal(m[2], m[0]);
    test_rmdir(dir);
}

static void every_shard_belongs_to_the_model(void **state)
{
    (void)state;
    char dir[200], path[300], id[PARE_SHA256_HEX], again[PARE_SHA256_HEX], m[PARE_SHA256_HEX];
    test_mkdir(dir);
    hf_shards(dir);
    write_text(test_path(path, dir, "config.json"), CONFIG);
    write_text(test_path(path, dir, "README.md"), "not read");
    read_afresh(id, m, dir, 4);
    read_afresh(again, m, test_path(path, dir, "model.safetensors.index.json"), 4);
    assert_string_equal(again, id);
    test_rmdir(dir);
}

/* The second load through the same files sees what the first has seen. */
static void what_happens_to_files_that_were_read_has_no_effect(void **state)
{
    (void)state;
    char dir[200], path[300], config[300], first[PARE_SHA256_HEX], again[PARE_SHA256_HEX];
    for (int folder = 0; folder < 2; folder++) {
        test_mkdir(dir);
        hf_file(test_path(path, dir, "model.safetensors"), 0, 9);
        write_text(test_path(config, dir, "config.json"), CONFIG);
        pare_files *const files = pare_files_new();
        read_through(first, folder ? dir : path, files);
        write_text(config, DOCTORED);
        write_text(path, "no model at all");
        read_through(again, folder ? dir : path, files);
        assert_string_equal(again, first);
        unlink(config);
        unlink(path);
        if (folder) rmdir(dir);
        read_through(again, folder ? dir : path, files);
        assert_string_equal(again, first);
        assert_int_equal(pare_files_count(files), 2);
        pare_files_free(files);
        test_rmdir(dir);
    }
}

static void a_config_that_was_not_there_does_not_appear(void **state)
{
    (void)state;
    char dir[200], path[300], config[300], first[PARE_SHA256_HEX], again[PARE_SHA256_HEX];
    test_mkdir(dir);
    sample_gpt2(test_path(path, dir, "model.safetensors"));
    pare_files *const files = pare_files_new();
    read_through(first, path, files);
    write_text(test_path(config, dir, "config.json"), "{\"scale_attn_weights\":false}");
    read_through(again, path, files);
    assert_string_equal(again, first);
    assert_int_equal(pare_files_count(files), 1);
    pare_files_free(files);
    read_afresh(first, again, path, 2);
    test_rmdir(dir);
}

static void a_model_outlives_the_files_it_was_read_through(void **state)
{
    (void)state;
    char dir[200], path[300], hex[PARE_SHA256_HEX], want[PARE_SHA256_HEX];
    pare_err err = {0};
    pare_model *m = NULL;
    test_mkdir(dir);
    hf_shards(dir);
    write_text(test_path(path, dir, "config.json"), CONFIG);
    pare_files *const files = pare_files_new();
    assert_ok(pare_model_load_as(&m, dir, NULL, files, &err), &err);
    assert_ok(pare_model_sha256(want, m, &err), &err);
    pare_files_free(files);
    test_rmdir(dir);
    assert_ok(pare_model_sha256(hex, m, &err), &err);
    assert_string_equal(hex, want);
    pare_model_free(m);
}

static void pipes_are_no_models(void **state)
{
    (void)state;
    char dir[200], path[300], pipe[300];
    pare_err err = {0};
    pare_model *m = NULL;
    test_mkdir(dir);
    alarm(60); /* a test that waits is a test that fails */
    assert_int_equal(mkfifo(test_path(pipe, dir, "config.json"), 0600), 0);
    assert_status(pare_model_load(&m, pipe, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "is not a regular file (a pipe)");
    hf_file(test_path(path, dir, "model.safetensors"), 0, 9);
    assert_status(pare_model_load(&m, path, &err), PARE_ERR_IO, &err); /* beside it */
    assert_contains(err.msg, pipe);
    assert_contains(err.msg, "is not a regular file (a pipe)");
    assert_status(pare_model_load(&m, dir, &err), PARE_ERR_IO, &err); /* inside */
    assert_status(pare_model_load(&m, "/dev/zero", &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "is not a regular file (a device)");
    alarm(0);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_file_is_identified_by_its_own_hash),
        cmocka_unit_test(a_config_beside_the_file_belongs_to_the_model),
        cmocka_unit_test(every_shard_belongs_to_the_model),
        cmocka_unit_test(what_happens_to_files_that_were_read_has_no_effect),
        cmocka_unit_test(a_config_that_was_not_there_does_not_appear),
        cmocka_unit_test(a_model_outlives_the_files_it_was_read_through),
        cmocka_unit_test(pipes_are_no_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
