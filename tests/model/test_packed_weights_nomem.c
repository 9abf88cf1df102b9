/* Every allocation of loading a model packed, of a pass and of a decoder fails once: a status, no
 * crash, no leak. */
#include <fail_alloc.h>
#include <packed_files.h>
#include <pare/run.h>

static char folder[200];

static pare_status all_of_it(const char *path, pare_err *err)
{
    const pare_load_opts opts = {.packed = true};
    const pare_exec exec = {.threads = 1, .int8 = true};
    const int64_t ids[] = {1, 2, 3};
    const pare_input in = {.batch = 1, .tokens = 3, .ids = ids};
    const float *logits;
    static float out[3 * 40];
    pare_model *m = NULL;
    pare_decoder *d = NULL;
    pare_files *const files = pare_files_new_unhashed();
    if (!files) return PARE_ERR_MEMORY;
    pare_status st = pare_model_load_as(&m, path, &opts, files, err);
    if (!st) st = pare_forward_f32(out, m, &in, NULL, &exec, err);
    if (!st) st = pare_decoder_new(&d, m, 0, &exec, err);
    if (!st) st = pare_decoder_prefill(d, ids, 3, &logits, err);
    pare_decoder_free(d);
    pare_model_free(m);
    pare_files_free(files);
    return st;
}

static void any_failing_allocation_is_a_status(void **state)
{
    (void)state;
    char path[300];
    test_path(path, folder, "packed.safetensors");
    pare_err err = {0};
    pare_model *m = NULL;
    const pare_random_model_opts o = {.kind = PARE_RANDOM_LLAMA,
                                      .dim = 16,
                                      .layers = 1,
                                      .heads = 2,
                                      .vocab = 40,
                                      .context = 8,
                                      .seed = 4};
    assert_ok(pare_random_model(&m, &o, &err), &err);
    save_quantized(m, path, 3);
    pare_model_free(m);
    long n = 0;
    for (;; n++) {
        fail_alloc_after(n);
        const pare_status st = all_of_it(path, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (!hit) {
            assert_ok(st, &err);
            break;
        }
        assert_int_equal(st, PARE_ERR_MEMORY);
    }
    assert_true(n > 20);
}

static int open_folder(void **state)
{
    (void)state;
    test_mkdir(folder);
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    test_rmdir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_failing_allocation_is_a_status)};
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
