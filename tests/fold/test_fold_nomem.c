/* Memory runs out, or one allocation is refused, at every place of folding, publishing, verifying
 * and composing: a status, no leak; no file is changed, no verdict is given. */
#include <pare_test.h>

#include <dirent.h>
#include <fail_alloc.h>
#include "cert/prove.h"
#include "fold/share_rows.h"
#include <pare/fold.h>

typedef struct stage {
    char dir[200], in[300], out[300], cert[320];
    pare_model *m;
    pare_arena *a;
    pare_inputs set;
    pare_exec exec;
    pare_err err;
} stage;

typedef pare_status work_fn(stage *s);

static pare_status fold(stage *s)
{
    pare_model *g = NULL;
    pare_fold_report r;
    const pare_status st = pare_fold(&g, &r, s->m, &s->err);
    assert_int_equal(g == NULL, st != PARE_OK);
    pare_model_free(g);
    return st;
}

static pare_status share(stage *s)
{
    pare_model *g = NULL, *again = NULL;
    pare_share_report r;
    char path[340], hex[PARE_SHA256_HEX];
    snprintf(path, sizeof path, "%s.copy", s->out);
    pare_status st = pare_share_rows(&g, &r, s->m, &s->set, 100, &s->exec, &s->err);
    assert_int_equal(g == NULL, st != PARE_OK);
    if (!st) st = pare_model_save(g, path, true, NULL, &s->err);
    if (!st) st = pare_model_load(&again, path, &s->err);
    if (!st) st = pare_model_sha256(hex, again, &s->err);
    pare_model_free(g);
    pare_model_free(again);
    return st;
}

static pare_status publish(stage *s)
{
    const pare_publish_opts o = {.in_path = s->in,
                                 .out_path = s->out,
                                 .overwrite = true,
                                 .max_error = INFINITY,
                                 .seed = 5,
                                 .tokens = 4,
                                 .set = &s->set,
                                 .prover = &pare_fold_prover,
                                 .exec = &s->exec};
    const pare_mark mark = pare_arena_mark(s->a);
    pare_model *g = NULL;
    pare_fold_report r;
    pare_cert cert;
    pare_status st = pare_fold(&g, &r, s->m, &s->err);
    if (!st) st = pare_publish(&cert, s->a, s->m, &g, &o, &s->err);
    pare_model_free(g);
    pare_arena_reset(s->a, mark);
    return st;
}

static pare_status verify(stage *s)
{
    const pare_verify_opts o = {.provers = &pare_fold_prover, .nprovers = 1, .exec = &s->exec};
    return pare_cert_verify(s->cert, &o, &s->err);
}

static pare_status read_and_write(stage *s)
{
    char path[340];
    pare_cert *c = NULL;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(&s->err);
    snprintf(path, sizeof path, "%s.copy", s->cert);
    pare_status st = pare_cert_read(&c, a, s->cert, &s->err);
    if (!st) st = pare_cert_write(c, path, true, &s->err);
    pare_arena_free(a);
    return st;
}

/* Names and hashes of all files, each hash folded into one number. */
static uint64_t state_of(const char *dir)
{
    uint64_t sum = 0;
    DIR *const d = opendir(dir);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));) {
        char path[300], both[400], hex[PARE_SHA256_HEX];
        pare_err err;
        if (e->d_name[0] == '.' || strstr(e->d_name, ".copy")) continue;
        assert_ok(pare_sha256_file(hex, test_path(path, dir, e->d_name), &err), &err);
        snprintf(both, sizeof both, "%.200s %s", e->d_name, hex);
        assert_ok(pare_sha256_of(hex, both, strlen(both), &err), &err);
        hex[16] = '\0';
        sum += strtoull(hex, NULL, 16);
    }
    closedir(d);
    return sum;
}

static long refuse_each(stage *s, work_fn *work)
{
    const uint64_t before = state_of(s->dir);
    long n = 0;
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        for (n = 0; hit; n++) {
            s->err = (pare_err){0};
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const pare_status st = work(s);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || s->err.code != st)
                fail_msg("allocation %ld%s: status %d, %s", n, once ? " alone" : "", (int)st,
                         s->err.msg);
            assert_true(state_of(s->dir) == before); /* the same fold writes the same bytes */
            assert_true(n < 100000);
        }
    }
    return n - 1;
}

static void open_stage(stage *s, pare_random_kind kind, int threads)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    *s = (stage){.exec = {.threads = threads}};
    o.kind = kind;
    o.dim = 4, o.heads = 2, o.layers = 1, o.ffn = 4, o.vocab = 5, o.context = 4;
    test_mkdir(s->dir);
    test_path(s->in, s->dir, "in");
    test_path(s->out, s->dir, "out");
    snprintf(s->cert, sizeof s->cert, "%s.cert.json", s->out);
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_model_save(s->m, s->in, false, NULL, &s->err), &s->err);
    s->a = pare_arena_new();
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, 2, 4, 5, &s->err), &s->err);
    assert_ok(publish(s), &s->err);
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static void a_fold_without_memory_changes_no_file(void **state)
{
    (void)state;
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_GRAPH; kind++) {
        stage s;
        open_stage(&s, (pare_random_kind)kind, 1);
        assert_true(refuse_each(&s, fold) >= 2); /* the arena of the model, its first block */
        s.set.n = 0;                             /* their tokens would keep their rows */
        if (kind != PARE_RANDOM_GRAPH) assert_true(refuse_each(&s, share) > 10);
        s.set.n = 2;
        if (kind == PARE_RANDOM_GRAPH) { /* thousands of places, the same for every kind */
            assert_true(refuse_each(&s, publish) > 200);
            assert_true(refuse_each(&s, read_and_write) > 100);
        }
        close_stage(&s);
    }
}

static void a_verification_without_memory_gives_no_verdict(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, PARE_RANDOM_LLAMA, 3);
    assert_true(refuse_each(&s, verify) > 200);
    close_stage(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fold_without_memory_changes_no_file),
        cmocka_unit_test(a_verification_without_memory_gives_no_verdict),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
