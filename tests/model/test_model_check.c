/* Tests src/model/model_check.c: what does not fit is refused with its name, whatever it is. */
#include <pare_test.h>
#include <pare/model.h>

static pare_model *small(pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    pare_err err = {0};
    o.kind = kind;
    o.dim = 8;
    o.heads = 2;
    o.ffn = 12;
    o.vocab = 11;
    o.context = 9;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    return m;
}

typedef struct nth {
    size_t at, now;
    bool done;
    char name[160];
    pare_weight *w;
} nth;

static pare_status find_nth(void *self, const char *name, pare_weight *w, bool vector,
                            pare_err *err)
{
    (void)vector, (void)err;
    nth *const n = self;
    if (!pare_has(w) || n->now++ != n->at) return PARE_OK;
    snprintf(n->name, sizeof n->name, "%s", name);
    n->w = w;
    n->done = true;
    return PARE_OK;
}

static bool weight_number(nth *n, pare_model *m, size_t i)
{
    pare_err err = {0};
    *n = (nth){.at = i};
    assert_ok(pare_model_each_weight(m, find_nth, n, &err), &err);
    return n->done;
}

static void refused(const pare_model *m, const char *name, const char *what)
{
    pare_err err = {0};
    const pare_status st = pare_model_check(m, &err);
    if (pare_exit_code(st) != 2) {
        print_error("%s of %s passes\n", what, name);
        fail();
    }
}

static void every_wrong_shape_is_refused(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        pare_model *const m = small((pare_random_kind)kind);
        pare_err err = {0};
        nth n;
        assert_ok(pare_model_check(m, &err), &err);
        for (size_t i = 0; weight_number(&n, m, i); i++) {
            const pare_weight was = *n.w;
            n.w->cols++;
            refused(m, n.name, "one column too many");
            n.w->cols = was.cols - 1;
            refused(m, n.name, "one column too few");
            *n.w = was;
            /* One row fewer: the last head, id, class or neighbor is missing. Free are the number
             * of classes, and hidden widths whose partner would have to change as well. */
            n.w->rows = was.rows - 1;
            if (was.rows > 1 && !strstr(n.name, "out.weight")) refused(m, n.name, "a missing row");
            *n.w = was;
            n.w->dtype = PARE_I32;
            refused(m, n.name, "an integer type");
            *n.w = was;
        }
        assert_ok(pare_model_check(m, &err), &err);
        pare_model_free(m);
    }
}

static void every_nan_is_found_and_named(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        pare_model *const m = small((pare_random_kind)kind);
        nth n;
        for (size_t i = 0; weight_number(&n, m, i); i++) {
            const size_t count = n.w->rows * n.w->cols;
            const size_t size = pare_dtype_size(n.w->dtype);
            char *const bad = malloc(count * size);
            const void *const was = n.w->data;
            pare_err err = {0};
            memcpy(bad, was, count * size);
            memset(bad + (count - 1) * size, 0xff, size);
            n.w->data = bad;
            const pare_status st = pare_model_check(m, &err);
            assert_int_equal(pare_exit_code(st), 2);
            if (!strstr(n.name, "var")) assert_contains(err.msg, n.name);
            n.w->data = was;
            free(bad);
        }
        pare_model_free(m);
    }
}

static void senseless_architectures_are_refused(void **state)
{
    (void)state;
    pare_model *const m = small(PARE_RANDOM_GPT);
    pare_attn *const a = &m->blocks[1].attn;
    const pare_attn attn = *a;
    a->heads[1].o = 3;
    refused(m, "heads", "columns that overlap");
    a->heads[1].o = 4;
    a->heads[1].k = 5;
    refused(m, "heads", "keys beyond the end");
    a->heads[1].k = 4;
    a->heads[0].scale = NAN;
    refused(m, "heads", "a scale that is no number");
    a->heads[0].scale = 1;
    a->heads[0].planes = 1;
    refused(m, "heads", "planes without rotary positions");
    a->heads[0].planes = 0;
    a->skip.kind = PARE_SKIP_DENSE;
    refused(m, "skip", "a dense skip without a matrix");
    *a = attn;
    a->kind = PARE_ATTN_CONSTQ;
    refused(m, "constq", "a query map");
    *a = attn;
    a->kind = PARE_ATTN_MEANQ;
    refused(m, "meanq", "a causal mean of all queries");
    *a = attn;
    a->in_norm.divisor = 0;
    refused(m, "norm", "a zero divisor");
    *a = attn;
    a->in_norm.eps = -1;
    refused(m, "norm", "a negative eps");
    *a = attn;
    m->context = 10; /* the table has 9 rows */
    refused(m, "context", "more positions than the table has");
    m->context = 9;
    m->pattern = (pare_pattern){.kind = PARE_WINDOW};
    refused(m, "pattern", "an empty window");
    pare_model_free(m);
}

static void rotary_rows_that_two_heads_would_turn_are_refused(void **state)
{
    (void)state;
    pare_model *const m = small(PARE_RANDOM_LLAMA); /* two heads, one key head */
    pare_head *const h = m->blocks[0].attn.heads;
    pare_err err = {0};
    assert_ok(pare_model_check(m, &err), &err);
    const pare_head was = h[1];
    h[1].q = h[0].q;
    refused(m, "queries", "sharing");
    h[1] = was;
    h[1].planes--;
    refused(m, "keys", "turning differently");
    h[1] = was;
    assert_ok(pare_model_check(m, &err), &err);
    pare_model_free(m);
}

/* Beyond these the engines overflow on the setting alone (x / inf = 0, inf * 0 = nan), and sizes
 * wrap around: a proof that goes through would be false. */
static void settings_that_overflow_are_refused(void **state)
{
    (void)state;
    pare_model *const m = small(PARE_RANDOM_GPT);
    pare_attn *const a = &m->blocks[0].attn;
    const pare_norm norm = a->in_norm;
    pare_err err = {0};
    static const double wild[] = {1e-300, 1e300, INFINITY, NAN};
    for (size_t i = 0; i < 4; i++) {
        a->in_norm.divisor = wild[i];
        refused(m, "norm", "a wild divisor");
        a->in_norm = norm;
        if (i == 0) continue; /* tiny is fine for the others */
        a->in_norm.eps = wild[i];
        refused(m, "norm", "a wild eps");
        a->in_norm = norm;
        a->in_norm.shift = wild[i];
        refused(m, "norm", "a wild shift");
        a->in_norm = norm;
        a->heads[0].scale = -wild[i];
        refused(m, "heads", "a wild scale");
        a->heads[0].scale = 1;
    }
    a->in_norm = norm;
    assert_ok(pare_model_check(m, &err), &err);
    pare_model_free(m);
}

typedef struct scalar_case {
    double *at;
    double low, high;
    bool open; /* low itself is refused */
    const char *name;
} scalar_case;

static void refused_as(const pare_model *m, const scalar_case *c, double value)
{
    pare_err err = {0};
    *c->at = value;
    assert_int_equal(pare_exit_code(pare_model_check(m, &err)), 2);
    char want[80];
    snprintf(want, sizeof want, "must be %s %g and at most %g", c->open ? "above" : "at least",
             c->low, c->high);
    assert_contains(err.msg, c->name);
    assert_contains(err.msg, want);
    if (isnan(value)) return;
    snprintf(want, sizeof want, " is %.17g,", value); /* or %g, where that is the number itself */
    if (!strstr(err.msg, want)) snprintf(want, sizeof want, " is %g,", value);
    assert_contains(err.msg, want);
}

/* The table of docs/format.md: both ends, and the doubles next to them. */
static void numbers_of_the_architecture_stay_in_their_ranges(void **state)
{
    (void)state;
    pare_model *const m = small(PARE_RANDOM_LLAMA), *const g = small(PARE_RANDOM_GPT);
    pare_attn *const a = &m->blocks[1].attn, *const b = &g->blocks[0].attn;
    double freqs[16] = {0}, var[8] = {1, 1, 1, 1, 1, 1, 1, 1}, mean[8] = {0};
    assert_true(a->freqs.cols <= 16);
    a->freqs = (pare_weight){PARE_F64, 1, a->freqs.cols, freqs};
    b->kind = PARE_ATTN_POLY;
    b->tolerance = 0.5;
    g->embedding.pos = (pare_positions){.kind = PARE_POS_SINUSOIDAL, .base = 10000};
    pare_norm *const batch = &g->blocks[1].attn.in_norm;
    *batch = (pare_norm){.kind = PARE_NORM_BATCH, .eps = 1e-5};
    batch->mean = (pare_weight){PARE_F64, 1, 8, mean};
    batch->var = (pare_weight){PARE_F64, 1, 8, var};
    const scalar_case cases[] = {
        {&g->embedding.pos.base, 1, 1e30, true, "embedding.positions.base is "},
        {&freqs[1], -1e9, 1e9, false, "blocks.1.attn.freqs[1] is "},
        {&a->in_norm.eps, 0, 1e30, false, "blocks.1.attn.in_norm.eps is "},
        {&a->in_norm.shift, 0, 1e30, false, "blocks.1.attn.in_norm.shift is "},
        {&a->in_norm.divisor, 1e-6, 1e30, false, "blocks.1.attn.in_norm.divisor is "},
        {&m->head.norm.eps, 0, 1e30, false, "head.norm.eps is "},
        {&m->blocks[0].ffn.in_norm.eps, 0, 1e30, false, "blocks.0.ffn.in_norm.eps is "},
        {&a->heads[1].scale, -1e30, 1e30, false, "blocks.1.attn.heads[1].scale is "},
        {&b->tolerance, 0, 1, true, "blocks.0.attn.tolerance is "},
        {&var[3], 0, 1e30, false, "blocks.1.attn.in_norm.var[3] is "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const scalar_case *const c = &cases[i];
        const pare_model *const of = i == 0 || i >= 8 ? g : m;
        const double was = *c->at;
        pare_err err = {0};
        assert_ok(pare_model_check(of, &err), &err);
        *c->at = c->open ? nextafter(c->low, INFINITY) : c->low;
        assert_ok(pare_model_check(of, &err), &err);
        *c->at = c->high;
        assert_ok(pare_model_check(of, &err), &err);
        refused_as(of, c, c->open ? c->low : nextafter(c->low, -INFINITY));
        refused_as(of, c, nextafter(c->high, INFINITY));
        refused_as(of, c, INFINITY);
        refused_as(of, c, -INFINITY);
        refused_as(of, c, NAN);
        *c->at = was;
    }
    a->in_norm.eps = 1e-30; /* of real models */
    g->embedding.pos.base = 2e130;
    pare_err err = {0};
    assert_ok(pare_model_check(m, &err), &err);
    assert_int_equal(pare_model_check(g, &err), PARE_ERR_INPUT);
    assert_contains(err.msg,
                    "embedding.positions.base is 2e+130, must be above 1 and at most 1e+30");
    g->embedding.pos.base = 10000;
    var[2] = batch->eps = 0;
    assert_int_equal(pare_model_check(g, &err), PARE_ERR_INPUT);
    assert_contains(err.msg, "blocks.1.attn.in_norm.var[2] + eps is 0, must be above 0");
    batch->eps = 1e-30;
    assert_ok(pare_model_check(g, &err), &err);
    pare_model_free(m);
    pare_model_free(g);
}

static void an_expander_of_senseless_degree_is_refused(void **state)
{
    (void)state;
    pare_model *const m = small(PARE_RANDOM_GRAPH);
    pare_err err = {0};
    m->pattern.expander_degree = 6;
    assert_ok(pare_model_check(m, &err), &err);
    m->pattern.expander_degree = 7;
    refused(m, "pattern", "an odd degree");
    m->pattern.expander_degree = (size_t)1 << 53; /* times 2048 nodes it is 0 */
    refused(m, "pattern", "a degree that overflows");
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_shape_is_refused),
        cmocka_unit_test(every_nan_is_found_and_named),
        cmocka_unit_test(rotary_rows_that_two_heads_would_turn_are_refused),
        cmocka_unit_test(senseless_architectures_are_refused),
        cmocka_unit_test(settings_that_overflow_are_refused),
        cmocka_unit_test(numbers_of_the_architecture_stay_in_their_ranges),
        cmocka_unit_test(an_expander_of_senseless_degree_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
