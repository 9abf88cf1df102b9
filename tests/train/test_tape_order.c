/* Tests src/train/tape_order.c: whatever order the rows of a tape are in, nobody can tell. */
#include "base/support.h"
#include "order_cases.h"

typedef struct named {
    pare_graph graph;
    double *x;
    pare_input in;
    pare_params *p;
    pare_tape *t;
    const float *y;
    float *dy, *given, *grad; /* given: d loss / d the stream after the first block */
} named;

static const pare_mode mode = {.training = true, .momentum = 0.1};

/* Everything that is given to node i is given to the one called name[i]. */
static void run(named *s, pare_arena *a, const pare_model *m, const uint32_t *name, int threads)
{
    static const pare_exec execs[] = {{.threads = 1}, {.threads = 2}};
    pare_rng r = pare_rng_at(2, 32);
    pare_err err = {0};
    *s = (named){.graph = groups_graph(a, name)};
    s->x = pare_alloc(a, NODES * FEATURES, sizeof *s->x);
    s->dy = pare_alloc(a, NODES * 3, sizeof *s->dy);
    s->given = pare_alloc(a, NODES * WIDE, sizeof *s->given);
    for (size_t i = 0; i < NODES; i++) {
        for (size_t c = 0; c < FEATURES; c++) s->x[name[i] * FEATURES + c] = pare_rng_normal(&r);
        for (size_t c = 0; c < 3; c++) s->dy[name[i] * 3 + c] = (float)pare_rng_normal(&r);
        for (size_t c = 0; c < WIDE; c++)
            s->given[name[i] * WIDE + c] = (float)pare_rng_normal(&r) / 64;
    }
    s->in = (pare_input){.batch = 1, .tokens = NODES, .width = FEATURES, .x = s->x};
    s->in.graph = &s->graph;
    const void *y, *const dstream[] = {NULL, s->given, NULL};
    assert_ok(pare_params_new(&s->p, m, PARE_F32, &err), &err);
    assert_ok(pare_tape_new(&s->t, s->p, &execs[threads - 1], &err), &err);
    s->grad = pare_alloc(a, s->p->count, sizeof *s->grad);
    assert_ok(pare_tape_forward(s->t, &s->in, &mode, &y, &err), &err);
    s->y = y;
    assert_ok(pare_tape_backward(s->t, s->dy, dstream, s->grad, &err), &err);
}

static void done(named *s)
{
    pare_tape_free(s->t);
    pare_params_free(s->p);
}

/* Rows of b under their names are rows of a, up to rounding. */
static void assert_rows(const float *a, const float *b, size_t n, size_t d, const uint32_t *name,
                        const char *what)
{
    double most = 0, off = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < d; c++) {
            const double x = (double)a[i * d + c], y = (double)b[(name ? name[i] : i) * d + c];
            most = fmax(most, fabs(x)), off = fmax(off, fabs(x - y));
        }
    if (!(off <= 2e-4 * most)) print_error("%s: off by %g of %g\n", what, off, most);
    assert_true(most > 0 && off <= 2e-4 * most);
}

static void names_of_nodes_do_not_matter(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_model *const m = wide_model();
    uint32_t same[NODES], other[NODES];
    pare_rng r = pare_rng_at(3, 33);
    for (size_t i = 0; i < NODES; i++) same[i] = other[i] = (uint32_t)i;
    pare_rng_shuffle(&r, other, NODES);
    named s, o;
    run(&s, a, m, same, 1);
    run(&o, a, m, other, 1);
    assert_true(s.t->order && o.t->order);
    assert_rows(s.y, o.y, NODES, 3, other, "y");
    for (size_t b = 0; b <= m->nblocks; b++) {
        assert_rows(pare_tape_stream(s.t, b), pare_tape_stream(o.t, b), NODES, WIDE, other, "x");
        assert_rows(pare_tape_dstream(s.t, b), pare_tape_dstream(o.t, b), NODES, WIDE, other, "dx");
    }
    for (size_t k = 0; k < s.p->nslots; k++) {
        const pare_slot *const w = &s.p->slots[k];
        double most = 0;
        for (size_t e = 0; e < w->rows * w->cols; e++)
            most = fmax(most, fabs((double)s.grad[w->offset + e]));
        if (most > 1e-3) /* others are sums that cancel: a bias before a batch norm */
            assert_rows(s.grad + w->offset, o.grad + w->offset, w->rows, w->cols, NULL, w->name);
    }
    done(&s), done(&o);
    pare_model_free(m);
    pare_arena_free(a);
}

static void an_ordered_tape_gives_what_a_pass_gives(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_model *const m = wide_model();
    uint32_t name[NODES];
    for (size_t i = 0; i < NODES; i++) name[i] = (uint32_t)(i * 7 % NODES);
    const pare_mode still = {.momentum = 0.1};
    named s;
    const void *y;
    pare_err err = {0};
    run(&s, a, m, name, 1);
    float *const want = pare_alloc(a, NODES * 3, sizeof *want);
    assert_ok(pare_forward_f32(want, s.p->model, &s.in, NULL, NULL, &err), &err);
    assert_ok(pare_tape_forward(s.t, &s.in, &still, &y, &err), &err);
    assert_rows(want, y, NODES, 3, NULL, "y");
    done(&s);
    pare_model_free(m);
    pare_arena_free(a);
}

static void threads_do_not_change_a_bit(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_model *const m = wide_model();
    uint32_t name[NODES];
    for (size_t i = 0; i < NODES; i++) name[i] = (uint32_t)(i * 11 % NODES);
    named one, two;
    run(&one, a, m, name, 1);
    run(&two, a, m, name, 2);
    assert_memory_equal(one.y, two.y, NODES * 3 * sizeof(float));
    assert_memory_equal(one.grad, two.grad, one.p->count * sizeof(float));
    done(&one), done(&two);
    pare_model_free(m);
    pare_arena_free(a);
}

/* Positions and a pooled first token know where a row was given. */
static void only_models_blind_to_the_order_are_ordered(void **state)
{
    (void)state;
    pare_model *const m = wide_model();
    assert_true(tape_can_reorder(m));
    m->stem.pos.kind = PARE_POS_SINUSOIDAL;
    assert_false(tape_can_reorder(m));
    m->stem.pos.kind = PARE_POS_NONE;
    m->top.pool = PARE_POOL_FIRST;
    assert_false(tape_can_reorder(m));
    m->top.pool = PARE_POOL_NONE;
    m->pattern.kind = PARE_CAUSAL;
    assert_false(tape_can_reorder(m));
    m->pattern.kind = PARE_GRAPH;
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_nodes_do_not_matter),
        cmocka_unit_test(an_ordered_tape_gives_what_a_pass_gives),
        cmocka_unit_test(threads_do_not_change_a_bit),
        cmocka_unit_test(only_models_blind_to_the_order_are_ordered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
