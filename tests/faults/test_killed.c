/* kill -9 in place of every call that changes the disk, one after the other, while a model and its
 * certificate are replaced: what is there afterwards is whole, and a certificate that does not
 * belong to the model beside it is refused. */
#include "fail_io.h"
#include <pare_test.h>

#include <dirent.h>
#include <fcntl.h>
#include "cert/prove.h"
#include <pare/fold.h>
#include <signal.h>
#include <sys/wait.h>

typedef struct stage {
    char dir[200], in0[300], in1[300], out[300], cert[320];
    pare_model *m[2];
    pare_arena *a;
    char hash[2][PARE_SHA256_HEX]; /* of what is made of m[0] and m[1] */
} stage;

static void open_stage(stage *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    pare_err err = {0};
    *s = (stage){0};
    o.dim = 4, o.heads = 1, o.layers = 1, o.ffn = 4, o.vocab = 5, o.context = 4;
    test_mkdir(s->dir);
    test_path(s->out, s->dir, "out");
    snprintf(s->cert, sizeof s->cert, "%s.cert.json", s->out);
    s->a = pare_arena_new();
    test_path(s->in0, s->dir, "in0");
    test_path(s->in1, s->dir, "in1");
    for (o.seed = 0; o.seed < 2; o.seed++) {
        const char *const path = o.seed ? s->in1 : s->in0;
        assert_ok(pare_random_model(&s->m[o.seed], &o, &err), &err);
        assert_ok(pare_model_save(s->m[o.seed], path, false, NULL, &err), &err);
    }
}

static void close_stage(stage *s)
{
    for (int i = 0; i < 2; i++) pare_model_free(s->m[i]);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static pare_status publish(stage *s, int which, pare_err *err)
{
    pare_inputs set;
    pare_model *g = NULL;
    pare_fold_report r;
    pare_cert cert;
    pare_status st = pare_inputs_random(&set, s->a, s->m[which], 1, 4, 5, err);
    const pare_publish_opts o = {.in_path = which ? s->in1 : s->in0,
                                 .out_path = s->out,
                                 .overwrite = true,
                                 .max_error = INFINITY,
                                 .seed = 5,
                                 .tokens = 4,
                                 .set = &set,
                                 .prover = &pare_fold_prover};
    if (!st) st = pare_fold(&g, &r, s->m[which], err);
    if (!st) st = pare_publish(&cert, s->a, s->m[which], &g, &o, err);
    pare_model_free(g);
    return st;
}

static pare_status save(stage *s, int which, pare_err *err)
{
    return pare_model_save(s->m[which], s->out, true, NULL, err);
}

typedef pare_status work_fn(stage *s, int which, pare_err *err);

static pare_status verify(const stage *s)
{
    pare_err err = {0};
    const pare_verify_opts o = {.provers = &pare_fold_prover, .nprovers = 1};
    return pare_cert_verify(s->cert, &o, &err);
}

/* 0: the old model, 1: the new one; anything else fails the test. */
static int which_is_there(const stage *s)
{
    pare_model *m = NULL;
    pare_err err = {0};
    char hex[PARE_SHA256_HEX];
    assert_ok(pare_model_load(&m, s->out, &err), &err);
    pare_model_free(m);
    assert_ok(pare_sha256_file(hex, s->out, &err), &err);
    if (strcmp(hex, s->hash[0]) == 0) return 0;
    assert_string_equal(hex, s->hash[1]);
    return 1;
}

/* Files beside the inputs, the model and its certificate; each must say by its name what it is. */
static int leftovers(const stage *s)
{
    int n = 0;
    DIR *const d = opendir(s->dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        const char *const name = e->d_name;
        if (name[0] == '.' || strncmp(name, "in", 2) == 0 || strcmp(name, "out") == 0 ||
            strcmp(name, "out.cert.json") == 0)
            continue;
        assert_true(strstr(name, ".tmp") || strstr(name, ".part-"));
        n++;
    }
    closedir(d);
    return n;
}

/* True when the child was killed, false when it came to its end. */
static bool run_and_kill(stage *s, work_fn *work, long n)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pare_err err = {0};
        fail_io_kill_after(n);
        _exit(work(s, 1, &err) == PARE_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) assert_int_equal(WTERMSIG(status), SIGKILL);
    if (!WIFSIGNALED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

/* What was seen over all moments. */
typedef struct tally {
    long moments;
    int old, new, mixed, left;
} tally;

static tally kill_at_every_call(stage *s, work_fn *work, bool certified)
{
    tally t = {0};
    pare_err err = {0};
    for (int i = 1; i >= 0; i--) {
        assert_ok(work(s, i, &err), &err);
        assert_ok(pare_sha256_file(s->hash[i], s->out, &err), &err);
    }
    for (bool killed = true; killed; t.moments++) {
        assert_ok(work(s, 0, &err), &err); /* also with what the last one left behind */
        if (certified) assert_int_equal(verify(s), PARE_OK);
        killed = run_and_kill(s, work, t.moments);
        const int there = which_is_there(s);
        t.left += leftovers(s) > 0;
        if (!certified || verify(s) == PARE_OK) {
            t.old += there == 0;
            t.new += there == 1;
        } else {
            assert_int_equal(verify(s), PARE_ERR_VERIFY); /* exit 4, and never accepted */
            assert_int_equal(there, 0);                   /* the certificate goes first */
            t.mixed++;
        }
        assert_true(t.moments < 1000);
    }
    return t;
}

static void a_model_is_the_old_or_the_new_one_whenever_the_writer_dies(void **state)
{
    (void)state;
    stage s;
    open_stage(&s);
    const tally t = kill_at_every_call(&s, save, false);
    assert_true(t.moments > 4 && t.old > 3 && t.new >= 1 && t.left >= 1);
    close_stage(&s);
}

static void no_certificate_vouches_for_another_model_whenever_the_writer_dies(void **state)
{
    (void)state;
    stage s;
    open_stage(&s);
    const tally t = kill_at_every_call(&s, publish, true);
    assert_true(t.moments > 10 && t.old > 8 && t.new >= 1);
    assert_true(t.mixed >= 1); /* the one moment the test is about was met */
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_the_old_or_the_new_one_whenever_the_writer_dies),
        cmocka_unit_test(no_certificate_vouches_for_another_model_whenever_the_writer_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
