/* Tests src/plan/reduce*.c and src/plan/verify_file.c: a reduction by one call, its certificate
 * proven again by another, in the caller's arena. */
#include <pare_test.h>
#include "plan/verify_file.h"
#include <pare/plan.h>

typedef struct scene {
    char dir[200], from[300], to[300];
    pare_arena *a;
    pare_err err;
    pare_model *m;
    int events[4];
    bool refuse;
} scene;

static void open_scene(scene *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = 8;
    o.heads = 2;
    o.vocab = 16;
    *s = (scene){.a = pare_arena_new()};
    assert_non_null(s->a);
    test_mkdir(s->dir);
    test_path(s->from, s->dir, "model.st");
    test_path(s->to, s->dir, "small.st");
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_model_save(s->m, s->from, false, NULL, &s->err), &s->err);
}

static void close_scene(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static pare_status on_event(void *self, pare_reduce_event e, const pare_reduction *r)
{
    scene *const s = self;
    s->events[e]++;
    if (e == PARE_REDUCE_PROVING) assert_true(r->proof_work > 0 && !r->published);
    return s->refuse && e == PARE_REDUCE_PROVING ? pare_fail(&s->err, PARE_ERR_USAGE, "no")
                                                 : PARE_OK;
}

static pare_reduce_opts options(scene *s, pare_reduce_kind kind)
{
    pare_reduce_opts o = PARE_REDUCE_OPTS_DEFAULT(kind);
    o.from = s->from;
    o.to = s->to;
    o.event = on_event;
    o.self = s;
    return o;
}

static void a_fold_is_published_measured_and_verified(void **state)
{
    (void)state;
    scene s;
    pare_reduction r;
    open_scene(&s);
    const pare_reduce_opts o = options(&s, PARE_REDUCE_FOLD);
    assert_ok(pare_reduce(&r, s.a, s.m, &o, NULL, &s.err), &s.err);
    assert_true(r.published && s.events[PARE_REDUCE_LOADED] == 1 &&
                s.events[PARE_REDUCE_PROVING] == 1 && s.events[PARE_REDUCE_PUBLISHED] == 1);
    assert_le(r.cert.measured, r.cert.proven);
    assert_true(r.after.file_bytes > 0 && r.ms_after > 0 && !r.has_metric && r.rows > 0);
    assert_true(r.after.size.parameters < r.before.size.parameters);
    /* By the model, by the certificate, and as a report. */
    assert_ok(pare_verify_file(s.to, NULL, &s.err), &s.err);
    assert_ok(pare_verify_file(r.cert_path, NULL, &s.err), &s.err);
    pare_verified v;
    assert_ok(pare_verify_file_report(&v, s.a, s.to, NULL, &s.err), &s.err);
    assert_true(!v.is_length && strcmp(v.path, r.cert_path) == 0);
    assert_le(v.again->proven, v.claimed->proven);
    assert_ptr_equal(pare_prover_of("fold")->prove, pare_fold_prover.prove);
    assert_null(pare_prover_of("something"));
    close_scene(&s);
}

static void options_that_mean_nothing_and_other_files_are_refused(void **state)
{
    (void)state;
    scene s;
    pare_reduction r;
    char path[300];
    open_scene(&s);
    assert_status(pare_verify_file(s.from, NULL, &s.err), PARE_ERR_INPUT, &s.err);
    assert_contains(s.err.msg, "is a model, and there is no certificate");
    const pare_reduce_opts o = options(&s, PARE_REDUCE_FOLD);
    assert_ok(pare_reduce(&r, s.a, s.m, &o, NULL, &s.err), &s.err);
    assert_status(pare_verify_file(s.to, &(pare_verify_file_opts){.data = s.from}, &s.err),
                  PARE_ERR_USAGE, &s.err);
    assert_contains(s.err.msg, "data has no effect");
    assert_status(
        pare_verify_file(s.to, &(pare_verify_file_opts){.engine = &(pare_engine){.name = "cpu"}},
                         &s.err),
        PARE_ERR_USAGE, &s.err);
    assert_status(pare_verify_file(s.to, &(pare_verify_file_opts){.output = s.from}, &s.err),
                  PARE_ERR_VERIFY, &s.err);
    assert_status(pare_verify_file(s.dir, NULL, &s.err), PARE_ERR_INPUT, &s.err);
    assert_contains(s.err.msg, "is a folder");
    test_write_file(test_path(path, s.dir, "x.cert.json"), "{}", 2);
    assert_status(pare_verify_file(path, NULL, &s.err), PARE_ERR_INPUT, &s.err);
    test_write_file(path, "{\"pare_plan\": 1}", 16);
    assert_status(pare_verify_file(path, NULL, &s.err), PARE_ERR_INPUT, &s.err);
    assert_contains(s.err.msg, "is a plan without a certificate");
    test_write_file(path, "{\"pare\": ", 9);
    assert_status(pare_verify_file(path, NULL, &s.err), PARE_ERR_INPUT, &s.err);
    assert_contains(s.err.msg, "is not a certificate: ");
    close_scene(&s);
}

/* The report of a cut outlives the cut model. */
static void reports_are_in_the_arena_of_the_caller(void **state)
{
    (void)state;
    scene s;
    pare_reduction r;
    open_scene(&s);
    pare_reduce_opts o = options(&s, PARE_REDUCE_TICKET);
    o.ticket.bits = 8;
    assert_ok(pare_reduce(&r, s.a, s.m, &o, NULL, &s.err), &s.err);
    assert_true(s.events[PARE_REDUCE_MADE] == 1 && r.ticket.n > 0);
    for (size_t i = 0; i < r.ticket.n; i++) assert_true(strlen(r.ticket.matrix[i].name) > 0);
    assert_true(r.rounded.measured > 0 && isnan(r.rounded_with_feedback.measured));
    assert_true(r.error_inputs == PARE_RANDOM_INPUTS && r.output_error > 0);
    o.kind = PARE_REDUCE_DEPTH;
    o.overwrite = true;
    o.depth.layers = 0;
    o.depth.kind = PARE_ATTN_ZERO;
    assert_ok(pare_reduce(&r, s.a, s.m, &o, NULL, &s.err), &s.err);
    assert_int_equal(r.depth.nlayers, 2);
    for (size_t l = 0; l < 2; l++) assert_int_equal(r.depth.layers[l].kind, PARE_ATTN_ZERO);
    close_scene(&s);
}

static void nothing_is_written_that_breaks_its_promise_or_is_stopped(void **state)
{
    (void)state;
    scene s;
    pare_reduction r;
    open_scene(&s);
    pare_reduce_opts o = options(&s, PARE_REDUCE_FOLD);
    o.max_error = 1e-30;
    assert_status(pare_reduce(&r, s.a, s.m, &o, NULL, &s.err), PARE_ERR_PROMISE, &s.err);
    assert_contains(s.err.msg, "larger than max_error 1e-30");
    o.max_error = INFINITY;
    s.refuse = true;
    assert_status(pare_reduce(&r, s.a, s.m, &o, NULL, &s.err), PARE_ERR_USAGE, &s.err);
    assert_false(r.published || pare_file_exists(s.to));
    close_scene(&s);
}

static void cuts_make_a_chain(void **state)
{
    (void)state;
    scene s;
    pare_reduction r;
    char last[300], chain[300];
    open_scene(&s);
    pare_reduce_opts o = options(&s, PARE_REDUCE_FOLD);
    assert_ok(pare_reduce(&r, s.a, s.m, &o, NULL, &s.err), &s.err);
    char *const first = pare_strdup(s.a, r.cert_path);
    pare_model *small = NULL;
    assert_ok(pare_model_load(&small, s.to, &s.err), &s.err);
    o = options(&s, PARE_REDUCE_DEPTH);
    o.from = s.to;
    o.to = test_path(last, s.dir, "last.st");
    o.depth.layers = 0;
    o.depth.kind = PARE_ATTN_UNIFORM;
    assert_ok(pare_reduce(&r, s.a, small, &o, NULL, &s.err), &s.err);
    pare_model_free(small);
    char *const links[] = {first, pare_strdup(s.a, r.cert_path)};
    test_path(chain, s.dir, "both.cert.json");
    o.to = chain;
    assert_ok(pare_reduce_chain(&r, s.a, links, 2, &o, NULL, &s.err), &s.err);
    assert_int_equal(r.cert.nchain, 2);
    assert_true(r.published && strstr(r.from, "model.st") && strstr(r.to, "last.st"));
    assert_ok(pare_verify_file(chain, NULL, &s.err), &s.err);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fold_is_published_measured_and_verified),
        cmocka_unit_test(options_that_mean_nothing_and_other_files_are_refused),
        cmocka_unit_test(reports_are_in_the_arena_of_the_caller),
        cmocka_unit_test(nothing_is_written_that_breaks_its_promise_or_is_stopped),
        cmocka_unit_test(cuts_make_a_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
