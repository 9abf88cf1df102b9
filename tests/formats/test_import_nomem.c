/* The n-th allocation fails, alone or with all after it, for every n: each importer says so and
 * leaves nothing behind. */
#include "../model/sample_models.h"
#include "fail_alloc.h"
#include <dirent.h>
#include <sys/stat.h>

static void load_refusing(const char *path, const char *what, void (*refuse)(long n))
{
    bool ran_out = true;
    for (long n = 0; ran_out; n++) {
        pare_model *m = NULL;
        pare_err err = {0};
        refuse(n);
        const pare_status st = pare_model_load(&m, path, &err);
        ran_out = fail_alloc_hit();
        fail_alloc_after(-1);
        if (st != (ran_out ? PARE_ERR_MEMORY : PARE_OK))
            fail_msg("%s, allocation %ld: status %d, %s", what, n, (int)st, err.msg);
        assert_int_equal(m == NULL, ran_out);
        pare_model_free(m);
        assert_true(n < 100000);
    }
}

static void load_without_memory(const char *path, const char *what)
{
    load_refusing(path, what, fail_alloc_after);
    load_refusing(path, what, fail_alloc_once);
}

static void importing_without_memory_is_an_error_and_no_crash(void **state)
{
    (void)state;
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "a");
    sample_gpt2(path);
    load_without_memory(path, "gpt2");
    sample_bin(path);
    load_without_memory(path, "bin");
    sample_npz(path);
    load_without_memory(path, "npz");
    test_rmdir(dir);
}

/* A seed of fuzz_import: 16 bits of length, config.json, the file beside it. */
static void load_seed(const char *seed, const char *name)
{
    char dir[200], path[300];
    size_t bytes;
    uint8_t *const data = test_read_file(seed, &bytes);
    const size_t config = (size_t)data[0] | (size_t)data[1] << 8;
    assert_true(bytes >= 2 && config <= bytes - 2);
    test_mkdir(dir);
    if (config) test_write_file(test_path(path, dir, "config.json"), data + 2, config);
    test_write_file(test_path(path, dir, "model.safetensors"), data + 2 + config,
                    bytes - 2 - config);
    load_without_memory(path, name);
    if (config) load_without_memory(dir, name); /* the folder as a whole */
    free(data);
    test_rmdir(dir);
}

static void every_seed_of_the_importers_is_loaded_without_memory(void **state)
{
    (void)state;
    static const char folder[] = "fuzz/corpus/import";
    size_t n = 0;
    DIR *const d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        char path[600];
        if (e->d_name[0] == '.' || strncmp(e->d_name, "bug-", 4) == 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        load_seed(path, e->d_name);
        n++;
    }
    closedir(d);
    assert_true(n >= 11); /* every family of importers */
}

/* A seed of fuzz_folder: records of a file's number, 16 bits of length, the file. */
static void load_folder_seed(const char *seed, const char *what)
{
    static const char *const names[] = {"config.json",
                                        "model.safetensors",
                                        "modules.json",
                                        "1_Pooling/config.json",
                                        "2_Dense/config.json",
                                        "2_Dense/model.safetensors",
                                        "sentence_bert_config.json",
                                        "config_sentence_transformers.json",
                                        "model.safetensors.index.json",
                                        "model-00001-of-00002.safetensors",
                                        "model-00002-of-00002.safetensors",
                                        "other.safetensors",
                                        "tokenizer.json"};
    char dir[200], path[300];
    size_t bytes, n = 0;
    uint8_t *const data = test_read_file(seed, &bytes);
    test_mkdir(dir);
    assert_int_equal(mkdir(test_path(path, dir, "1_Pooling"), 0700), 0);
    assert_int_equal(mkdir(test_path(path, dir, "2_Dense"), 0700), 0);
    for (size_t at = 0; at < bytes; at += 3 + n) {
        n = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
        assert_true(data[at] < sizeof names / sizeof *names && at + 3 + n <= bytes);
        test_write_file(test_path(path, dir, names[data[at]]), data + at + 3, n);
    }
    load_without_memory(dir, what);
    free(data);
    pare_folder_remove(dir);
}

static void whole_folders_are_loaded_without_memory(void **state)
{
    (void)state;
    load_folder_seed("fuzz/corpus/folder/encoder", "encoder");
    load_folder_seed("fuzz/corpus/folder/dense", "dense");
    load_folder_seed("fuzz/corpus/folder/shards", "shards");
    load_folder_seed("fuzz/corpus/folder/shards-alone", "shards-alone");
    load_folder_seed("fuzz/corpus/folder/tokenizer", "tokenizer");
}

/* The index of two shards, which an importer opens one by one. */
static void shards_are_loaded_without_memory(void **state)
{
    (void)state;
    char dir[200], path[300];
    static const char index[] =
        "{\"weight_map\":{\"wte.weight\":\"1\",\"wpe.weight\":\"1\",\"h.0.ln_1.weight\":\"1\","
        "\"h.0.ln_2.weight\":\"1\",\"h.0.attn.c_attn.weight\":\"1\","
        "\"h.0.attn.c_proj.weight\":\"1\",\"h.0.mlp.c_fc.weight\":\"1\","
        "\"h.0.mlp.c_proj.weight\":\"1\",\"ln_f.weight\":\"1\"}}";
    test_mkdir(dir);
    sample_gpt2(test_path(path, dir, "1"));
    test_write_file(test_path(path, dir, "model.safetensors.index.json"), index, sizeof index - 1);
    load_without_memory(dir, "shards");
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(importing_without_memory_is_an_error_and_no_crash),
        cmocka_unit_test(every_seed_of_the_importers_is_loaded_without_memory),
        cmocka_unit_test(whole_folders_are_loaded_without_memory),
        cmocka_unit_test(shards_are_loaded_without_memory),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
