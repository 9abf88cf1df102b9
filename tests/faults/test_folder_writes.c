/* Tests src/formats/export_like.c, folder_out.c and the folders of src/cert/publish.c: every call that
 * changes the disk fails once, or the process is killed there. At OUT is then the old folder or the
 * new one, whole and with its own certificate, and what a killed process has left is taken away by
 * the next one. */
#include "fail_io.h"
#include <pare_test.h>

#include "cert/prove.h"
#include <dirent.h>
#include <errno.h>
#include <pare/depth.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct stage {
    char dir[200], in[2][300], out[300], cert[320];
    pare_model *m[2];
    pare_arena *a;
    pare_inputs set;
} stage;

/* Two folders of sentence encoders; each has files beside the weights. */
static void open_stage(stage *s)
{
    static const char *const names[] = {"in0", "in1"};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    const pare_load_opts told = {.pool = PARE_POOL_MEAN, .normalize = true};
    pare_err err = {0};
    *s = (stage){.a = pare_arena_new()};
    test_mkdir(s->dir);
    test_path(s->out, s->dir, "out");
    snprintf(s->cert, sizeof s->cert, "%s/pare.cert.json", s->out);
    o.kind = PARE_RANDOM_BERT;
    o.dim = 4, o.heads = 1, o.layers = 2, o.ffn = 4, o.vocab = 5, o.context = 4;
    for (int i = 0; i < 2; i++) {
        char path[320];
        pare_model *m = NULL;
        pare_files *const files = pare_files_new_unhashed();
        o.seed = (uint64_t)i + 1;
        assert_ok(pare_random_model(&m, &o, &err), &err);
        assert_ok(pare_export_hf(m, test_path(s->in[i], s->dir, names[i]), false, &err), &err);
        test_write_file(test_path(path, s->in[i], "README.md"), "a card", 6);
        assert_ok(pare_model_load_as(&s->m[i], s->in[i], &told, files, &err), &err);
        pare_files_free(files);
        pare_model_free(m);
    }
    assert_ok(pare_inputs_random(&s->set, s->a, s->m[0], 1, 4, 5, &err), &err);
}

static void close_stage(stage *s)
{
    for (int i = 0; i < 2; i++) pare_model_free(s->m[i]);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

/* The folder `which` without its last block. */
static pare_status publish(stage *s, int which, bool overwrite, pare_err *err)
{
    const pare_publish_opts o = {.in_path = s->in[which],
                                 .out_path = s->out,
                                 .folder = true,
                                 .overwrite = overwrite,
                                 .max_error = INFINITY,
                                 .seed = 5,
                                 .tokens = 4,
                                 .set = &s->set,
                                 .prover = &pare_depth_prover};
    pare_model *g = NULL;
    pare_cert cert;
    const pare_mark mark = pare_arena_mark(s->a);
    pare_status st = pare_model_clone(&g, s->m[which], err);
    if (!st) g->nblocks = 1;
    if (!st) st = pare_publish(&cert, s->a, s->m[which], &g, &o, err);
    pare_arena_reset(s->a, mark);
    pare_model_free(g);
    return st;
}

/* "name=hash" of all files below, sorted. */
typedef struct view {
    char line[40][300];
    size_t n;
} view;

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void look_into(view *v, const char *dir, const char *name)
{
    DIR *const d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        char path[600], below[300], hex[PARE_SHA256_HEX];
        pare_err err;
        struct stat info;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        snprintf(below, sizeof below, "%s/%s", name, e->d_name);
        assert_int_equal(lstat(path, &info), 0);
        if (S_ISDIR(info.st_mode)) {
            look_into(v, path, below);
            continue;
        }
        assert_true(v->n < 40);
        assert_ok(pare_sha256_file(hex, path, &err), &err);
        snprintf(v->line[v->n++], sizeof v->line[0], "%.200s=%.16s", below, hex);
    }
    closedir(d);
}

static view look(const char *dir)
{
    view v = {.n = 0};
    look_into(&v, dir, "");
    qsort(v.line, v.n, sizeof v.line[0], by_text);
    return v;
}

static bool same(const view *a, const view *b)
{
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++)
        if (strcmp(a->line[i], b->line[i]) != 0) return false;
    return true;
}

static void begin(stage *s, bool exists)
{
    pare_err err = {0};
    fail_io_after(-1, 0, false);
    pare_folder_remove(s->out);
    if (exists) assert_ok(publish(s, 0, false, &err), &err);
}

/* The n-th call fails, for every n; how many there were. */
static long fail_each(stage *s, bool exists, int why)
{
    pare_err err = {0};
    begin(s, exists);
    const view before = look(s->dir);
    assert_ok(publish(s, 1, exists, &err), &err);
    const view after = look(s->dir);
    assert_false(same(&before, &after));
    for (long n = 0;; n++) {
        begin(s, exists);
        err = (pare_err){0};
        fail_io_after(n, why, false);
        const pare_status st = publish(s, 1, exists, &err);
        const char *const hit = fail_io_hit();
        fail_io_after(-1, 0, false);
        const view now = look(s->dir);
        const bool in_doubt = strstr(err.msg, "cannot sync the folder") != NULL;
        const bool is_old = same(&now, &before), is_new = same(&now, &after);
        const bool good = st == PARE_OK ? is_new
                                        : st == PARE_ERR_IO && strstr(err.msg, s->dir) &&
                                              (is_old || (in_doubt && is_new));
        if (!good)
            fail_msg("call %ld (%s): status %d, %s; %s", n, hit ? hit : "none", (int)st, err.msg,
                     is_old   ? "the old folder"
                     : is_new ? "the new folder"
                              : "neither the old nor the new folder");
        if (!hit) return n;
        assert_true(n < 1000);
    }
}

static void the_old_folder_is_whole_after_any_single_failure(void **state)
{
    (void)state;
    stage s;
    open_stage(&s);
    assert_true(fail_each(&s, false, ENOSPC) >= 30);
    assert_true(fail_each(&s, true, EIO) >= 30);
    assert_true(fail_each(&s, true, EINVAL) >= 30); /* renameat2: it cannot exchange names here */
    close_stage(&s);
}

/* True when the child was killed at its n-th call, false when it came to its end. */
static bool run_and_kill(stage *s, long n)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pare_err err = {0};
        fail_io_kill_after(n);
        _exit(publish(s, 1, true, &err) == PARE_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

static void a_killed_process_leaves_a_whole_folder(void **state)
{
    (void)state;
    const pare_verify_opts o = {.provers = &pare_depth_prover, .nprovers = 1};
    stage s;
    pare_err err = {0};
    long n = 0, leftovers = 0, old = 0;
    open_stage(&s);
    begin(&s, false);
    assert_ok(publish(&s, 1, true, &err), &err);
    const view after = look(s.out);
    assert_ok(publish(&s, 0, true, &err), &err);
    const view before = look(s.out), all = look(s.dir);
    for (bool killed = true; killed; n++) {
        pare_model *m = NULL;
        assert_ok(publish(&s, 0, true, &err), &err); /* takes away what the last one has left */
        const view clean = look(s.dir);
        assert_true(same(&clean, &all));
        killed = run_and_kill(&s, n);
        const view now = look(s.out), beside = look(s.dir);
        const bool is_old = same(&now, &before);
        if (!is_old && !same(&now, &after)) fail_msg("killed at call %ld: neither old nor new", n);
        leftovers += beside.n > all.n;
        old += is_old;
        assert_ok(pare_model_load(&m, s.out, &err), &err);
        pare_model_free(m);
        assert_ok(pare_cert_verify(s.cert, &o, &err), &err);
    }
    print_message("%ld moments, %ld of them old, %ld with leftovers\n", n, old, leftovers);
    assert_true(old > 20 && old < n && leftovers > 20);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_old_folder_is_whole_after_any_single_failure),
        cmocka_unit_test(a_killed_process_leaves_a_whole_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
