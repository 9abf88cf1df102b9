/* A plan chooses among what it made, keeps the order it promises, and tells what was refused. */
#include <pare_test.h>
#include "base/support.h"
#include "plan/plan_directions.h"
#include "cert/prove.h"
#include "model/model_facts.h"
#include "model/model_file.h"
#include <pare/plan.h>
#include <sys/stat.h>

typedef struct scene {
    pare_arena *a;
    pare_model *m;
    pare_inputs in;
    pare_err err;
} scene;

static void open_scene(scene *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    *s = (scene){.a = pare_arena_new()};
    o.dim = 8;
    o.layers = 2;
    o.heads = 2;
    o.vocab = 8;
    o.context = 8;
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_inputs_random(&s->in, s->a, s->m, 6, 6, 1, &s->err), &s->err);
}

static void close_scene(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
}

/* Without tickets, which take their time. */
static pare_plan search(scene *s, pare_plan_opts o)
{
    pare_plan p;
    o.directions &= 3;
    assert_ok(pare_plan_search(&p, s->a, s->m,
                               &(pare_input_split){.fit = &s->in, .heldout = &s->in}, &o, NULL,
                               &s->err),
              &s->err);
    return p;
}

static void the_smallest_that_keeps_eps_comes_first(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    const pare_plan wide = search(&s, o); /* no budget: all fit, the exact model first */
    assert_int_equal(wide.tries[0].nsteps, 0);
    double middle = 0; /* an eps that some keep and some break */
    for (size_t i = 0; i < wide.n; i++)
        if (!wide.tries[i].refused && i < wide.n / 2) middle = wide.tries[i].error;
    o.eps = middle;
    const pare_plan p = search(&s, o);
    assert_true(p.fit > 0 && p.fit < p.n && p.singles < p.n);
    for (size_t i = 0; i < p.n; i++) {
        const pare_plan_try *t = &p.tries[i];
        assert_true((t->over <= 1) == (i < p.fit));
        if (i < p.fit) {
            assert_le(t->error, o.eps);
            assert_true(p.tries[0].bytes <= t->bytes);
        } else if (!t->refused)
            assert_true(t->error > o.eps);
    }
    close_scene(&s);
}

static void with_bytes_the_smallest_error_comes_first(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    assert_ok(model_file_bytes(&o.max_bytes, s.m, &s.err), &s.err);
    o.max_bytes = o.max_bytes * 7 / 10;
    const pare_plan p = search(&s, o);
    assert_true(p.fit > 0);
    for (size_t i = 0; i < p.fit; i++) {
        assert_true(p.tries[i].bytes <= o.max_bytes);
        assert_le(p.tries[0].error, p.tries[i].error);
    }
    close_scene(&s);
}

static uint64_t saved_bytes(const pare_model *m)
{
    char dir[200], path[300];
    struct stat info;
    pare_err err = {0};
    test_mkdir(dir);
    assert_ok(pare_model_save(m, test_path(path, dir, "m.st"), false, NULL, &err), &err);
    assert_int_equal(stat(path, &info), 0);
    test_rmdir(dir);
    return (uint64_t)info.st_size;
}

/* What is measured of a try is what making it again gives; its bytes are those of the file. */
static void a_try_can_be_made_again(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    o.eps = 1e9;
    const pare_plan p = search(&s, o);
    size_t mixed = 0;
    for (size_t i = 0; i < p.n; i++) {
        const pare_plan_try *t = &p.tries[i];
        if (t->refused || t->nsteps != 2 || mixed++ > 0) continue;
        pare_model *one = NULL, *two = NULL;
        double a, b;
        assert_true(t->steps[0].direction < t->steps[1].direction);
        assert_ok(pare_plan_make(&one, &t->steps[0], s.m, &s.in, 0, NULL, &s.err), &s.err);
        assert_ok(pare_plan_make(&two, &t->steps[1], one, &s.in, 0, NULL, &s.err), &s.err);
        assert_ok(pare_measure(&a, s.m, one, &s.in, NULL, &s.err), &s.err);
        assert_ok(pare_measure(&b, one, two, &s.in, NULL, &s.err), &s.err);
        assert_true(t->error == a + b);
        assert_int_equal(t->bytes, saved_bytes(two));
        pare_model_free(two);
        pare_model_free(one);
    }
    assert_true(mixed > 0);
    close_scene(&s);
}

static void nothing_keeps_an_impossible_budget(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    o.max_bytes = 10;
    o.mixtures = 0;
    const pare_plan p = search(&s, o);
    assert_int_equal(p.fit, 0);
    assert_int_equal(p.n, p.singles);
    for (size_t i = 1; i < p.n; i++) assert_le(p.tries[i - 1].over, p.tries[i].over);
    close_scene(&s);
}

/* An eps and a size that one share of the parameters keeps, and its neighbors in the list of
 * settings do not: that share, or a smaller file, is found. */
static void what_meets_two_budgets_is_found_between_the_settings(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    size_t alone = 0;
    for (double share = 0.94; share > 0.25; share -= 0.03) {
        const pare_plan_step step = {.direction = PARE_PLAN_WIDTH, .setting = share};
        pare_model *small = NULL;
        uint64_t bytes;
        double error;
        assert_ok(pare_plan_make(&small, &step, s.m, &s.in, 0, NULL, &s.err), &s.err);
        assert_ok(model_file_bytes(&bytes, small, &s.err), &s.err);
        assert_ok(pare_measure(&error, s.m, small, &s.in, NULL, &s.err), &s.err);
        pare_model_free(small);
        pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
        o.mixtures = 0;
        o.directions = 1u << PARE_PLAN_WIDTH;
        o.eps = error * (1 + 1e-9);
        o.max_bytes = bytes;
        const pare_plan p = search(&s, o);
        if (p.fit == 0)
            fail_msg("share %.2f: %llu bytes, error %g", share, (unsigned long long)bytes, error);
        assert_true(p.tries[0].bytes <= bytes && p.tries[0].error <= o.eps);
        alone += p.fit == 1;
    }
    print_message("%zu budgets are kept by one try alone\n", alone);
    assert_true(alone > 3);
    close_scene(&s);
}

static void what_is_not_a_number_meets_no_budget(void **state)
{
    (void)state;
    const pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    assert_true(pare_plan_over(&o, 0, 1, 1) <= 1);
    assert_true(pare_plan_over(&o, NAN, 1, 1) > 1);
    assert_true(pare_plan_over(&o, INFINITY, 1, 1) > 1);
    assert_true(pare_plan_over(&o, 0, 1, NAN) > 1);
}

/* Inputs longer than the context: every try is refused, with its reason. */
static void a_caller_without_an_error_gets_the_reasons_all_the_same(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    pare_plan p;
    pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    o.directions = 1u << PARE_PLAN_DEPTH;
    s.m->context = 3;
    const pare_input_split data = {.fit = &s.in, .heldout = &s.in};
    const pare_status st = pare_plan_search(&p, s.a, s.m, &data, &o, NULL, NULL);
    assert_int_equal(st, PARE_OK);
    size_t refused = 0;
    for (size_t i = 0; i < p.n; i++) refused += p.tries[i].refused && *p.tries[i].refused;
    assert_true(refused > 0);
    close_scene(&s);
}

static uint64_t bytes_of_folder(const char *folder, const pare_model *expected)
{
    char is[PARE_SHA256_HEX], want[PARE_SHA256_HEX];
    pare_err err = {0};
    pare_model *m = NULL;
    pare_files *const files = pare_files_new_unhashed();
    assert_non_null(files);
    assert_ok(pare_model_load_as(&m, folder, NULL, files, &err), &err);
    assert_ok(pare_architecture_sha256(is, m, &err), &err);
    assert_ok(pare_architecture_sha256(want, expected, &err), &err);
    assert_string_equal(is, want);
    const uint64_t bytes = pare_files_bytes(files);
    pare_files_free(files);
    pare_model_free(m);
    return bytes;
}

/* Every try of a folder is a folder that loads, as large as the plan says; sides that are told are
 * counted too. */
static void a_folder_is_planned_in_the_shapes_of_its_config(void **state)
{
    (void)state;
    const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};
    for (size_t k = 0; k < 4; k++) {
        pare_random_model_opts r = PARE_RANDOM_MODEL_OPTS_DEFAULT;
        scene s = {.a = pare_arena_new()};
        char dir[200], folder[300], out[300];
        const pare_load_opts told = {.pool = k == 3 ? PARE_POOL_MEAN : PARE_POOL_NONE,
                                     .normalize = k == 3};
        pare_model *m = NULL;
        r.kind = kinds[k < 3 ? k : 2], r.dim = 8, r.heads = 2, r.layers = 3, r.ffn = 24;
        r.vocab = 9, r.context = 8;
        test_mkdir(dir);
        assert_ok(pare_random_model(&m, &r, &s.err), &s.err);
        assert_ok(pare_export_hf(m, test_path(folder, dir, "in"), false, &s.err), &s.err);
        pare_model_free(m);
        pare_files *const files = pare_files_new_unhashed();
        assert_ok(pare_model_load_as(&s.m, folder, &told, files, &s.err), &s.err);
        assert_ok(pare_inputs_random(&s.in, s.a, s.m, 4, 6, 1, &s.err), &s.err);
        pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
        o.folder = folder, o.files = files, o.mixtures = 2;
        o.eps = INFINITY, o.max_ms = 1e9; /* without a budget of its own every setting is tried */
        o.dtype = k == 0 ? PARE_F16 : 0;
        const pare_plan p = search(&s, o);
        size_t made = 0, depth = 0, both = 0;
        for (size_t i = 0; i < p.n; i++) {
            const pare_plan_try *const t = &p.tries[i];
            pare_model *one = NULL, *two = NULL;
            if (t->nsteps == 0) continue;
            if (t->refused) fail_msg("%s", t->refused);
            assert_ok(pare_plan_make(&one, &t->steps[0], s.m, &s.in, 0, NULL, &s.err), &s.err);
            if (t->nsteps == 2)
                assert_ok(pare_plan_make(&two, &t->steps[1], one, &s.in, 0, NULL, &s.err), &s.err);
            const pare_model *const cut = two ? two : one;
            assert_ok(
                pare_export_like(cut, s.m, folder, test_path(out, dir, "out"), o.dtype, &s.err),
                &s.err);
            assert_int_equal(bytes_of_folder(out, cut), t->bytes);
            made++;
            depth += t->steps[t->nsteps - 1].direction == PARE_PLAN_DEPTH;
            both += t->nsteps == 2;
            pare_folder_remove(out);
            pare_model_free(one);
            pare_model_free(two);
        }
        assert_true(made >= 6 && depth >= 2 && both == 2);
        pare_files_free(files);
        close_scene(&s);
        test_rmdir(dir);
    }
}

/* A plain pare file has no config whose shapes could be kept to. */
static void a_family_without_a_config_is_refused_as_a_folder(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    pare_plan p;
    pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    o.folder = "x";
    const pare_input_split data = {.fit = &s.in, .heldout = &s.in};
    assert_int_equal(pare_plan_search(&p, s.a, s.m, &data, &o, NULL, &s.err), PARE_ERR_USAGE);
    assert_contains(s.err.msg, "is not written as a folder");
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_that_keeps_eps_comes_first),
        cmocka_unit_test(with_bytes_the_smallest_error_comes_first),
        cmocka_unit_test(a_try_can_be_made_again),
        cmocka_unit_test(nothing_keeps_an_impossible_budget),
        cmocka_unit_test(a_folder_is_planned_in_the_shapes_of_its_config),
        cmocka_unit_test(a_family_without_a_config_is_refused_as_a_folder),
        cmocka_unit_test(what_meets_two_budgets_is_found_between_the_settings),
        cmocka_unit_test(what_is_not_a_number_meets_no_budget),
        cmocka_unit_test(a_caller_without_an_error_gets_the_reasons_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
