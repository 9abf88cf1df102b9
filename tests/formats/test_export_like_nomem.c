/* Tests src/formats/export_like.c when memory is out: an error, no folder, and no crash. */
#include <fail_alloc.h>
#include <pare/model.h>
#include <pare_test.h>

/* A cut (m has a block less than in) and a copy (m is in), with pooling that was told. */
static void export_without_memory(const pare_model *m, const pare_model *in, const char *source,
                                  const char *out)
{
    for (long n = 0;; n++) {
        pare_err err = {0};
        fail_alloc_once(n);
        const pare_status st = pare_export_like(m, in, source, out, 0, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_once(-1);
        if (st != (hit ? PARE_ERR_MEMORY : PARE_OK))
            fail_msg("allocation %ld: status %d, %s", n, (int)st, err.msg);
        if (pare_file_exists(out) != (st == PARE_OK))
            fail_msg("allocation %ld: the folder %s", n, st ? "is still there" : "is missing");
        if (!hit) break;
        assert_true(n < 100000);
    }
    pare_folder_remove(out);
}

static void a_folder_is_not_written_without_memory(void **state)
{
    (void)state;
    char dir[200], source[300], out[300];
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    const pare_load_opts told = {.pool = PARE_POOL_MEAN, .normalize = true};
    pare_model *m = NULL, *in = NULL, *cut = NULL;
    pare_err err = {0};
    pare_files *const files = pare_files_new_unhashed();
    test_mkdir(dir);
    o.kind = PARE_RANDOM_BERT;
    o.dim = 4, o.heads = 1, o.layers = 2, o.ffn = 4, o.vocab = 5, o.context = 4;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_export_hf(m, test_path(source, dir, "in"), false, &err), &err);
    assert_ok(pare_model_load_as(&in, source, &told, files, &err), &err);
    assert_ok(pare_model_clone(&cut, in, &err), &err);
    cut->nblocks = 1;
    test_path(out, dir, "out");
    export_without_memory(cut, in, source, out);
    export_without_memory(in, in, source, out);
    pare_model_free(m);
    pare_model_free(cut);
    pare_model_free(in);
    pare_files_free(files);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_not_written_without_memory),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
