/* The stop flag of pare_exec through every kind of long work: set at the k-th report of progress
 * (or before anything begins), it ends the call soon with PARE_ERR_STOPPED and nothing in its
 * outputs; never set, it changes no bit. */
#include <pare_test.h>
#include "cert/outputs.h"
#include "ticket/ticket_internal.h"
#include <pare/plan.h>

#define SOON 2.0 /* seconds, on a machine that does something else as well */

typedef struct watch {
    volatile int stop;
    size_t calls, at; /* reports so far; the one that sets the flag */
    double when;      /* it was set */
    uint64_t last;
    bool back; /* a report went back */
} watch;

static void hear(void *self, const char *what, uint64_t done, uint64_t total)
{
    watch *const w = self;
    (void)what;
    (void)total;
    if (done < w->last) w->back = true;
    w->last = done;
    if (++w->calls != w->at) return;
    __atomic_store_n(&w->stop, 1, __ATOMIC_RELAXED);
    w->when = pare_seconds();
}

typedef struct scene {
    pare_arena *a;
    pare_model *text, *graph;
    pare_inputs in;     /* of text */
    pare_dataset board; /* of graph */
    char dir[200];
} scene;

static void scene_open(scene *s)
{
    pare_err err = {0};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    char path[256];
    *s = (scene){.a = pare_arena_new()};
    o.dim = 16;
    o.heads = 2;
    o.vocab = 16;
    o.context = 16;
    assert_ok(pare_random_model(&s->text, &o, &err), &err);
    assert_ok(pare_inputs_random(&s->in, s->a, s->text, 6, 12, 1, &err), &err);
    o.kind = PARE_RANDOM_GRAPH;
    assert_ok(pare_random_model(&s->graph, &o, &err), &err);
    test_mkdir(s->dir);
    snprintf(path, sizeof path, "%s/b.npz", s->dir);
    assert_ok(pare_make_minesweeper(path, 8, 1, false, &err), &err);
    assert_ok(pare_dataset_load(&s->board, s->a, s->graph, path, NULL, &err), &err);
}

static void scene_close(scene *s)
{
    pare_model_free(s->text);
    pare_model_free(s->graph);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

/* ---- the work ------------------------------------------------------------------------------- */

/* What it makes, if it makes a model. */
typedef pare_status work(scene *s, pare_model **out, const pare_exec *x, pare_err *err);

static pare_status forward(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    double y[12 * 16];
    pare_status st = PARE_OK;
    (void)out;
    for (size_t i = 0; !st && i < s->in.n; i++) {
        st = pare_forward_f64(y, s->text, &s->in.in[i], NULL, x, err);
        if (!st) st = pare_progress(x, "forward", i + 1, s->in.n, err);
    }
    return st;
}

static pare_status gap(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    pare_output_bound b;
    (void)out;
    return pare_outputs_compare(&b, NULL, s->text, s->text, &s->in, true, x, err);
}

static pare_status width_text(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    const pare_width_opts o = {.method = PARE_WIDTH_AUTO, .keep = 0.75, .trials = 1};
    pare_width_report r;
    return pare_width(out, &r, s->text, &s->in, &o, x, err);
}

static pare_status width_graph(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    const pare_width_opts o = {.method = PARE_WIDTH_AUTO, .dim = 4, .trials = 1};
    pare_width_report r;
    return pare_width(out, &r, s->graph, &s->board.inputs, &o, x, err);
}

static pare_status depth(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report r;
    o.layers = 1;
    return pare_depth(out, &r, s->text, &s->in, &o, x, err);
}

static pare_status ticket(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    const pare_ticket_opts o = {.bits = 8, .exponent = PARE_TICKET_CHOOSE};
    pare_ticket_report r;
    return pare_ticket(out, &r, s->text, &o, x, err);
}

static pare_status plan(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    pare_plan_opts o = PARE_PLAN_OPTS_DEFAULT;
    pare_plan p;
    (void)out;
    o.directions = 3;
    return pare_plan_search(&p, s->a, s->text,
                            &(pare_input_split){.fit = &s->in, .heldout = &s->in}, &o, x, err);
}

static pare_status probe(scene *s, pare_model **out, const pare_exec *x, pare_err *err)
{
    const pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    pare_probe *p = NULL;
    (void)out;
    const pare_status st = pare_probe_model(&p, s->graph, &s->board, &o, x, err);
    if (st) assert_null(p);
    pare_probe_free(p);
    return st;
}

static const struct {
    const char *name;
    work *fn;
} works[] = {{"forward", forward},
             {"prove", gap},
             {"width of a text model", width_text},
             {"width of a graph", width_graph},
             {"depth", depth},
             {"ticket", ticket},
             {"plan", plan},
             {"probe", probe}};
enum { WORKS = sizeof works / sizeof *works };

/* ---- the claims ----------------------------------------------------------------------------- */

static size_t reports_of(scene *s, size_t i)
{
    watch w = {.at = SIZE_MAX};
    pare_err err = {0};
    pare_model *m = NULL;
    const pare_exec x = {.threads = 2, .progress = hear, .self = &w, .stop = &w.stop};
    assert_ok(works[i].fn(s, &m, &x, &err), &err);
    if (w.back) fail_msg("%s: its progress went back", works[i].name);
    pare_model_free(m);
    return w.calls;
}

static void stop_at(scene *s, size_t i, size_t k)
{
    watch w = {.at = k, .stop = k == 0, .when = pare_seconds()};
    pare_err err = {0};
    pare_model *m = NULL;
    const pare_exec x = {.threads = 2, .progress = hear, .self = &w, .stop = &w.stop};
    const pare_status st = works[i].fn(s, &m, &x, &err);
    const double took = pare_seconds() - w.when;
    if (st != PARE_ERR_STOPPED)
        fail_msg("%s, stopped at report %zu: status %d (%s)", works[i].name, k, (int)st, err.msg);
    assert_contains(err.msg, "stopped");
    assert_null(m);
    assert_le(took, SOON);
}

/* The last report may be of work that is done: it is left out. */
static void set_at_any_report_it_ends_the_call(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    for (size_t i = 0; i < WORKS; i++) {
        const size_t n = reports_of(&s, i);
        if (n < 3) fail_msg("%s: %zu reports only", works[i].name, n);
        const size_t at[] = {0, 1, 2, n / 2};
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) stop_at(&s, i, at[k]);
    }
    scene_close(&s);
}

static void never_set_it_changes_no_bit(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    for (size_t i = 0; i < WORKS; i++) {
        pare_err err = {0};
        pare_model *m[2] = {NULL, NULL};
        char hex[2][PARE_SHA256_HEX], path[256];
        watch w = {.at = SIZE_MAX};
        const pare_exec x = {.threads = 2, .progress = hear, .self = &w, .stop = &w.stop};
        assert_ok(works[i].fn(&s, &m[0], &x, &err), &err);
        assert_ok(works[i].fn(&s, &m[1], NULL, &err), &err);
        for (int k = 0; m[0] && k < 2; k++) {
            snprintf(path, sizeof path, "%s/m%d", s.dir, k);
            assert_ok(pare_model_save(m[k], path, true, hex[k], &err), &err);
        }
        if (m[0]) assert_string_equal(hex[0], hex[1]);
        pare_model_free(m[0]);
        pare_model_free(m[1]);
    }
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_at_any_report_it_ends_the_call),
        cmocka_unit_test(never_set_it_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
