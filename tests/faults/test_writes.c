/* Every call that changes the disk fails once, at every place: the old files are whole, nothing is
 * left lying about, and the message names the file. */
#include "fail_io.h"
#include <pare_test.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include "base/array.h"
#include <pare/fold.h>
#include <signal.h>
#include <sys/resource.h>

typedef struct stage {
    char dir[200], in[300], out[300], cert[320];
    pare_model *m;
    pare_arena *a;
    pare_inputs set;
    pare_cert made; /* something to write */
    uint64_t seed;
    bool overwrite;
    pare_err err;
} stage;

typedef pare_status work_fn(stage *s);

static pare_status save(stage *s)
{
    return pare_model_save(s->m, s->out, s->overwrite, NULL, &s->err);
}

static pare_status write_npz(stage *s)
{
    static double v[20000]; /* larger than any buffer */
    static const char *const names[] = {"a", "b"};
    v[0] = (double)s->seed;
    const pare_array x = {.dtype = PARE_F64, .ndim = 1, .shape = {20000}, .data = v};
    const pare_array both[] = {x, x};
    return pare_npz_write(s->out, 2, names, both, false, s->overwrite, &s->err);
}

static pare_status write_npy(stage *s)
{
    const double v = (double)s->seed;
    const pare_array x = {.dtype = PARE_F64, .data = &v};
    return pare_npy_write(s->out, &x, s->overwrite, &s->err);
}

static pare_status write_cert(stage *s)
{
    s->made.seed = s->seed;
    return pare_cert_write(&s->made, s->out, s->overwrite, &s->err);
}

static pare_status publish(stage *s)
{
    const pare_publish_opts o = {.in_path = s->in,
                                 .out_path = s->out,
                                 .overwrite = s->overwrite,
                                 .max_error = INFINITY,
                                 .seed = s->seed,
                                 .tokens = 4,
                                 .set = &s->set,
                                 .prover = &pare_fold_prover};
    pare_model *g = NULL;
    pare_fold_report r;
    pare_cert cert;
    assert_ok(pare_fold(&g, &r, s->m, &s->err), &s->err);
    const pare_mark mark = pare_arena_mark(s->a);
    const pare_status st = pare_publish(&cert, s->a, s->m, &g, &o, &s->err);
    if (st == PARE_OK) s->made = (pare_cert){0}; /* it lived in the arena */
    pare_arena_reset(s->a, mark);
    pare_model_free(g);
    return st;
}

/* The model of the stage; another seed is another model and another file. */
static void open_stage(stage *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    *s = (stage){.overwrite = true, .seed = 1};
    o.dim = 4, o.heads = 1, o.layers = 1, o.ffn = 4, o.vocab = 5, o.context = 4;
    test_mkdir(s->dir);
    test_path(s->in, s->dir, "in");
    test_path(s->out, s->dir, "out");
    snprintf(s->cert, sizeof s->cert, "%s.cert.json", s->out);
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_model_save(s->m, s->in, false, NULL, &s->err), &s->err);
    s->a = pare_arena_new();
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, 1, 4, 5, &s->err), &s->err);
    static char zeros[PARE_SHA256_HEX];
    memset(zeros, '0', PARE_SHA256_HEX - 1);
    s->made = (pare_cert){.reduction = "fold",
                          .input = {.path = "in"},
                          .output = {.path = "out"},
                          .data = {.kind = "random", .count = 1, .tokens = 4},
                          .norm = "norm",
                          .domain = "domain"};
    memcpy(s->made.input.architecture, zeros, sizeof zeros);
    memcpy(s->made.output.architecture, zeros, sizeof zeros);
    memcpy(s->made.input.sha256, zeros, sizeof zeros);
    memcpy(s->made.output.sha256, zeros, sizeof zeros);
    memcpy(s->made.data.inputs_sha256, zeros, sizeof zeros);
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

/* "name=hash name=hash ..." of the folder, sorted: everything there is to see from outside. */
static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void look(char out[2000], const char *dir)
{
    static char line[20][400];
    size_t n = 0;
    DIR *const d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        char path[300], hex[PARE_SHA256_HEX];
        pare_err err;
        if (e->d_name[0] == '.') continue;
        assert_true(n < 20);
        assert_ok(pare_sha256_file(hex, test_path(path, dir, e->d_name), &err), &err);
        snprintf(line[n++], sizeof line[0], "%.150s=%.16s ", e->d_name, hex);
    }
    closedir(d);
    qsort(line, n, sizeof line[0], by_text);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) strncat(out, line[i], 1999 - strlen(out));
}

/* What is in the folder before and after the work when nothing fails. */
typedef struct views {
    char before[2000], after[2000];
} views;

static void begin(stage *s, work_fn *work, bool exists)
{
    fail_io_after(-1, 0, false);
    unlink(s->out);
    unlink(s->cert);
    s->seed = 1;
    s->overwrite = true;
    if (exists) assert_ok(work(s), &s->err);
    s->seed = 2;
    s->overwrite = exists;
}

/* The n-th call fails, for every n; how many there were. */
static long fail_each(stage *s, work_fn *work, bool exists, int why, bool forever)
{
    views v;
    begin(s, work, exists);
    look(v.before, s->dir);
    assert_ok(work(s), &s->err);
    look(v.after, s->dir);
    for (long n = 0;; n++) {
        char now[2000];
        begin(s, work, exists);
        s->err = (pare_err){0};
        fail_io_after(n, why, forever);
        const pare_status st = work(s);
        const char *const hit = fail_io_hit();
        fail_io_after(-1, 0, false);
        look(now, s->dir);
        /* When only the folder could not be synced the files are there, old or new. */
        const bool in_doubt = strstr(s->err.msg, "sync its folder") != NULL;
        const bool is_old = strcmp(now, v.before) == 0, is_new = strcmp(now, v.after) == 0;
        const bool good = st == PARE_OK ? is_new
                                        : st == PARE_ERR_IO && strstr(s->err.msg, s->dir) &&
                                              (is_old || (in_doubt && is_new));
        if (!good)
            fail_msg("call %ld (%s): status %d, %s\nbefore %s\nafter  %s\nnow    %s", n,
                     hit ? hit : "none", (int)st, s->err.msg, v.before, v.after, now);
        if (!hit) return n;
        assert_true(n < 1000);
    }
}

static void old_files_are_whole_after_any_single_failure(void **state)
{
    (void)state;
    static work_fn *const all[] = {save, write_npz, write_npy, write_cert, publish};
    stage s;
    open_stage(&s);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int exists = 0; exists < 2; exists++) {
            assert_true(fail_each(&s, all[i], exists, ENOSPC, false) >= 4);
            assert_true(fail_each(&s, all[i], exists, EIO, false) >= 4);
        }
    close_stage(&s);
}

static void old_files_are_whole_when_the_disk_is_gone_for_good(void **state)
{
    (void)state;
    static work_fn *const all[] = {save, write_npz, write_npy, write_cert};
    stage s;
    open_stage(&s);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int exists = 0; exists < 2; exists++)
            assert_true(fail_each(&s, all[i], exists, ENOSPC, true) >= 3);
    close_stage(&s);
}

static void signals_and_short_writes_change_nothing(void **state)
{
    (void)state;
    static work_fn *const all[] = {save, write_npz, write_npy, write_cert, publish};
    stage s;
    open_stage(&s);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char whole[2000], now[2000];
        begin(&s, all[i], true);
        assert_ok(all[i](&s), &s.err);
        look(whole, s.dir);
        begin(&s, all[i], true);
        fail_io_short(true);
        fail_io_first_tries(3, EINTR);
        const pare_status st = all[i](&s);
        assert_non_null(fail_io_hit());
        fail_io_after(-1, 0, false);
        fail_io_short(false);
        assert_ok(st, &s.err);
        look(now, s.dir);
        assert_string_equal(now, whole);
    }
    close_stage(&s);
}

static void a_full_disk_names_the_file_and_keeps_the_old_one(void **state)
{
    (void)state;
    static work_fn *const all[] = {save, write_npz, write_cert, publish};
    struct rlimit old, small;
    stage s;
    open_stage(&s);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 300;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char before[2000], now[2000];
        begin(&s, all[i], true);
        look(before, s.dir);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const pare_status st = all[i](&s);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_status(st, PARE_ERR_IO, &s.err);
        assert_int_equal(pare_exit_code(st), 2);
        assert_contains(s.err.msg, s.out);
        assert_contains(s.err.msg, "File too large");
        look(now, s.dir);
        assert_string_equal(now, before);
    }
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_files_are_whole_after_any_single_failure),
        cmocka_unit_test(old_files_are_whole_when_the_disk_is_gone_for_good),
        cmocka_unit_test(signals_and_short_writes_change_nothing),
        cmocka_unit_test(a_full_disk_names_the_file_and_keeps_the_old_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
