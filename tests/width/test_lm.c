/* Tests src/width/lm*.c, slice.c and svd.c: cuts of models with norms, positions and ids. */
#include <pare/random_model.h>
#include <pare/width.h>
#include <pare_test.h>
#include <math.h>
#include <string.h>

enum { SEED = 7 };

/* ---- models --------------------------------------------------------------------------------- */

static pare_status widen(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)name, (void)vector, (void)err;
    pare_model *const m = self;
    if (!pare_has(w)) return PARE_OK;
    double *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i);
    *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
    return PARE_OK;
}

/* In f64, so that a cut rounds as little as the reference. */
static pare_model *random_model(pare_random_kind kind)
{
    pare_err err = {0};
    pare_model *m = NULL;
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.kind = kind;
    o.dim = 16;
    o.vocab = 40;
    o.context = 24;
    o.seed = SEED;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_model_visit(m, widen, m, &err), &err);
    return m;
}

static pare_inputs inputs_for(pare_arena *a, const pare_model *m, size_t n)
{
    pare_err err = {0};
    pare_inputs set;
    assert_ok(pare_inputs_random(&set, a, m, n, 12, SEED, &err), &err);
    return set;
}

static double *outputs(pare_arena *a, const pare_model *m, const pare_input *in, size_t *n)
{
    pare_err err = {0};
    *n = pare_output_rows(m, in) * pare_model_outputs(m);
    double *const y = pare_alloc(a, *n, sizeof *y);
    assert_non_null(y);
    assert_ok(pare_forward_f64(y, m, in, NULL, NULL, &err), &err);
    return y;
}

/* Largest difference, relative to the largest output. */
static double apart(const pare_model *f, const pare_model *g)
{
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    const pare_inputs set = inputs_for(a, f, 3);
    double most = 0, size = 0;
    for (size_t i = 0; i < set.n; i++) {
        size_t n, k;
        const double *const x = outputs(a, f, &set.in[i], &n);
        const double *const y = outputs(a, g, &set.in[i], &k);
        assert_int_equal(n, k);
        for (size_t e = 0; e < n; e++) {
            most = fmax(most, fabs(x[e] - y[e]));
            size = fmax(size, fabs(x[e]));
        }
    }
    pare_arena_free(a);
    return most / size;
}

static pare_model *cut(const pare_model *m, pare_width_opts o)
{
    pare_err err = {0};
    pare_width_report report;
    pare_model *out = NULL;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    const pare_inputs set = inputs_for(a, m, 8);
    o.trials = 1;
    assert_ok(pare_width(&out, &report, m, &set, &o, NULL, &err), &err);
    pare_arena_free(a);
    return out;
}

/* ---- exactness ------------------------------------------------------------------------------ */

static void full_width_changes_nothing(pare_random_kind kind, pare_width_opts o)
{
    pare_model *const m = random_model(kind);
    pare_model *const g = cut(m, o);
    const double off = apart(m, g);
    if (!(off <= 1e-9)) fail_msg("%s: off by %g", pare_random_kinds[kind], off);
    pare_model_free(g);
    pare_model_free(m);
}

static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};

static void slicing_to_full_width_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        pare_width_opts o = {.method = PARE_WIDTH_SLICE, .dim = 16, .max_move = INFINITY};
        full_width_changes_nothing(kinds[k], o);
        o.basis = PARE_BASIS_SHARED;
        full_width_changes_nothing(kinds[k], o);
        o.untie = true;
        full_width_changes_nothing(kinds[k], o);
    }
}

static void svd_of_full_size_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        pare_width_opts o = {.method = PARE_WIDTH_SVD, .dim = 16, .max_move = INFINITY};
        full_width_changes_nothing(kinds[k], o);
        o = (pare_width_opts){.method = PARE_WIDTH_SVD, .qk_dim = 4, .max_move = INFINITY};
        full_width_changes_nothing(kinds[k], o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slicing_to_full_width_changes_nothing),
        cmocka_unit_test(svd_of_full_size_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
