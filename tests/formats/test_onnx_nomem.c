/* Memory runs out, or one allocation is refused, at every place of writing an ONNX file or a folder
 * under Hugging Face's names: a status, no leak, no file. */
#include "fail_alloc.h"
#include <pare/model.h>
#include <pare_test.h>

typedef struct stage {
    char dir[200], path[300];
    pare_model *m;
    pare_err err;
} stage;

static pare_status whole_model(stage *s)
{
    return pare_export_onnx(s->m, s->path, false, NULL, &s->err);
}

static pare_status engine(stage *s)
{
    pare_engine_shape shape = {0};
    const pare_status st = pare_engine_for(&shape, s->m, 8, 2, &s->err);
    return st ? st : pare_export_engine(&shape, s->path, false, NULL, &s->err);
}

static pare_status folder(stage *s)
{
    return pare_export_hf(s->m, s->path, false, &s->err);
}

static void refuse_each(stage *s, pare_status (*work)(stage *s), bool once)
{
    for (long n = 0;; n++) {
        s->err = (pare_err){0};
        (once ? fail_alloc_once : fail_alloc_after)(n);
        const pare_status st = work(s);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || s->err.code != st)
            fail_msg("allocation %ld%s: status %d, %s", n, once ? " alone" : "", (int)st,
                     s->err.msg);
        assert_int_equal(pare_file_exists(s->path), !hit);
        if (!hit) break;
        assert_true(n < 100000);
    }
    if (pare_is_dir(s->path)) {
        test_rmdir(s->path);
        return;
    }
    assert_int_equal(remove(s->path), 0);
}

static void a_refused_allocation_leaves_no_file(void **state)
{
    (void)state;
    for (int kind = PARE_RANDOM_GPT; kind <= PARE_RANDOM_BERT; kind++) {
        pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
        stage s = {0};
        o.kind = (pare_random_kind)kind;
        o.dim = 8, o.heads = 2, o.layers = 1, o.ffn = 8, o.vocab = 7, o.context = 9;
        test_mkdir(s.dir);
        test_path(s.path, s.dir, "m.onnx");
        assert_ok(pare_random_model(&s.m, &o, &s.err), &s.err);
        for (int once = 0; once < 2; once++) {
            refuse_each(&s, whole_model, once);
            refuse_each(&s, engine, once);
            refuse_each(&s, folder, once);
        }
        pare_model_free(s.m);
        test_rmdir(s.dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_allocation_leaves_no_file),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
