/* Memory runs out, or one allocation is refused, at every place of saving, loading and running a
 * model, also inside the blocks that threads work on: a status, no leak, no output taken for good.
 */
#include "sample_models.h"
#include "../support/fail_alloc.h"
#include <dirent.h>
#include "model/inputs.h"

enum { TOKENS = 40, MOST = 100000 };

typedef struct stage {
    char dir[200], path[300];
    pare_model *m;
    pare_arena *a;
    pare_inputs set;
    double *y;
    float *z;
    pare_exec exec;
    pare_err err;
} stage;

typedef pare_status work_fn(stage *s);

static pare_status run_f64(stage *s)
{
    return pare_forward_f64(s->y, s->m, &s->set.in[0], NULL, &s->exec, &s->err);
}

static pare_status run_f32(stage *s)
{
    return pare_forward_f32(s->z, s->m, &s->set.in[0], NULL, &s->exec, &s->err);
}

static pare_status draw(stage *s)
{
    char hex[PARE_SHA256_HEX];
    pare_inputs set;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(&s->err);
    pare_status st = pare_inputs_random(&set, a, s->m, 3, TOKENS, 1, &s->err);
    if (!st) st = pare_inputs_sha256(hex, &set, &s->err);
    pare_arena_free(a);
    return st;
}

static pare_status save(stage *s)
{
    char hex[PARE_SHA256_HEX];
    return pare_model_save(s->m, s->path, true, hex, &s->err);
}

static pare_status load(stage *s)
{
    pare_model *m = NULL;
    const pare_status st = pare_model_load(&m, s->path, &s->err);
    assert_int_equal(m == NULL, st != PARE_OK);
    pare_model_free(m);
    return st;
}

static pare_status clone(stage *s)
{
    pare_model *m = NULL;
    const pare_status st = pare_model_clone(&m, s->m, &s->err);
    assert_int_equal(m == NULL, st != PARE_OK);
    pare_model_free(m);
    return st;
}

static pare_status draw_model(stage *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    o.dim = 8, o.heads = 2, o.vocab = 7;
    o.exec = &s->exec;
    const pare_status st = pare_random_model(&m, &o, &s->err);
    assert_int_equal(m == NULL, st != PARE_OK);
    pare_model_free(m);
    return st;
}

static pare_status narrow(stage *s)
{
    pare_model *m = NULL;
    pare_status st = pare_model_clone(&m, s->m, &s->err);
    for (int i = 0; !st && i < 40; i++) { /* one round fits into the arena that there is */
        st = pare_model_round(m, NULL, PARE_F64, &s->err);
        if (!st) st = pare_model_round(m, s->m, (pare_dtype)0, &s->err);
        if (!st) st = pare_model_round(m, NULL, PARE_BF16, &s->err);
    }
    pare_model_free(m);
    return st;
}

static int files_in(const char *dir)
{
    int n = 0;
    DIR *const d = opendir(dir);
    for (const struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* How many allocations there are: each was refused, alone and with all after it. */
static long refuse_each(stage *s, work_fn *work)
{
    const int files = files_in(s->dir);
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
            assert_int_equal(files_in(s->dir), files);
            assert_true(n < MOST);
        }
    }
    return n - 1;
}

static void open_stage(stage *s, pare_random_kind kind, int threads)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    *s = (stage){.exec = {.threads = threads}};
    o.kind = kind;
    o.dim = 8, o.heads = 2, o.layers = 1, o.ffn = 8, o.vocab = 7, o.context = TOKENS;
    test_mkdir(s->dir);
    test_path(s->path, s->dir, "m");
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    s->m->pattern.expander_degree = kind == PARE_RANDOM_GRAPH ? 2 : 0;
    assert_ok(pare_model_save(s->m, s->path, false, NULL, &s->err), &s->err);
    s->a = pare_arena_new();
    assert_ok(pare_inputs_random(&s->set, s->a, s->m, 1, TOKENS, 1, &s->err), &s->err);
    const size_t count = pare_output_rows(s->m, &s->set.in[0]) * pare_model_outputs(s->m);
    s->y = pare_alloc(s->a, count, sizeof *s->y);
    s->z = pare_alloc(s->a, count, sizeof *s->z);
    assert_true(s->y && s->z);
}

static void close_stage(stage *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static void a_refused_allocation_is_said_by_every_kind_of_model(void **state)
{
    (void)state;
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_GRAPH; kind++) {
        stage s;
        open_stage(&s, (pare_random_kind)kind, 1);
        assert_true(refuse_each(&s, run_f64) > 3);
        assert_true(refuse_each(&s, run_f32) > 3);
        assert_true(refuse_each(&s, draw) > 0);
        assert_true(refuse_each(&s, save) > 10);
        assert_true(refuse_each(&s, load) > 10);
        assert_true(refuse_each(&s, clone) > 1);
        assert_true(refuse_each(&s, draw_model) > 1);
        close_stage(&s);
    }
}

static void a_refused_allocation_is_said_where_precision_changes(void **state)
{
    (void)state;
    stage s;
    open_stage(&s, PARE_RANDOM_LLAMA, 1);
    assert_true(refuse_each(&s, narrow) > 2);
    assert_ok(pare_model_round(s.m, NULL, PARE_F16, &s.err), &s.err);
    assert_ok(pare_model_save(s.m, s.path, true, NULL, &s.err), &s.err);
    assert_true(refuse_each(&s, save) > 10);
    assert_true(refuse_each(&s, load) > 10);
    close_stage(&s);
}

static void a_refusal_inside_a_thread_reaches_the_caller(void **state)
{
    (void)state;
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_GRAPH; kind++) {
        stage s;
        open_stage(&s, (pare_random_kind)kind, 4);
        for (int round = 0; round < 3; round++) { /* which thread is refused is chance */
            assert_true(refuse_each(&s, run_f64) > 3);
            assert_true(refuse_each(&s, run_f32) > 3);
        }
        assert_true(refuse_each(&s, draw_model) > 1);
        close_stage(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_allocation_is_said_by_every_kind_of_model),
        cmocka_unit_test(a_refused_allocation_is_said_where_precision_changes),
        cmocka_unit_test(a_refusal_inside_a_thread_reaches_the_caller),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
