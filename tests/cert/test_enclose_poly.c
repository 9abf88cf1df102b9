/* Tests src/cert/enclose_poly.c and attention of kind poly in the engine: what polynomials leave
 * out is in the radius of the f32 engine. */
#include <pare/cert.h>
#include <pare/random_model.h>
#include <pare_test.h>

enum { TOKENS = 1200 };

typedef struct told {
    size_t heads, polynomial, rows_exact;
    double proven;
} told;

static void listen(void *self, size_t block, size_t head, const pare_poly_report *r)
{
    told *const t = self;
    assert_true(block < 1 && head == 0);
    t->heads++;
    t->polynomial += r->kind != PARE_POLY_EXACT;
    t->rows_exact += r->rows_exact;
    t->proven = fmax(t->proven, r->proven.v);
}

static pare_model *model_of(pare_random_kind kind, double tolerance)
{
    const pare_random_model_opts o = {.kind = kind,
                                      .dim = 4,
                                      .layers = 1,
                                      .heads = 1,
                                      .vocab = 256,
                                      .context = TOKENS,
                                      .classes = 2,
                                      .sigma = 0.25,
                                      .seed = 5};
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_random_model(&m, &o, &err), &err);
    m->blocks[0].attn.kind = tolerance > 0 ? PARE_ATTN_POLY : PARE_ATTN_EXACT;
    m->blocks[0].attn.tolerance = tolerance;
    m->top.out = (pare_dense){{0}, {0}}; /* the hidden rows: nothing hides the attention */
    m->top.tied = false;
    m->top.pool = PARE_POOL_NONE;
    m->top.dense = (pare_dense){{0}, {0}};
    return m;
}

/* The largest part of a radius that the f32 engine used. */
static double part_used(const pare_enclosure *e, const float *y)
{
    double used = 0;
    for (size_t i = 0; i < e->rows; i++)
        for (size_t c = 0; c < e->cols; c++) {
            const double off = fabs((double)y[i * e->cols + c] - e->mid[i * e->cols + c]);
            used = fmax(used, (off - e->rad[i]) / e->rad32[i]);
        }
    return used;
}

static void the_radius_of_f32_contains_the_polynomial(void **state)
{
    (void)state;
    pare_model *const m = model_of(PARE_RANDOM_BERT, 0.05);
    pare_model *const plain = model_of(PARE_RANDOM_BERT, 0);
    pare_arena *const a = pare_arena_new();
    pare_inputs in;
    pare_err err = {0};
    pare_enclosure e, exact;
    pare_model_norms *norms;
    assert_ok(pare_inputs_random(&in, a, m, 1, TOKENS, 3, &err), &err);
    assert_ok(pare_model_norms_new(&norms, a, m, NULL, &err), &err);
    assert_ok(pare_enclose(&e, a, m, norms, &in.in[0], NULL, &err), &err);
    assert_ok(pare_enclose(&exact, a, plain, norms, &in.in[0], NULL, &err), &err);
    float *const y = pare_alloc(a, e.rows * e.cols, sizeof *y);
    assert_non_null(y);
    told t = {0};
    const pare_trace trace = {.self = &t, .poly = listen};
    assert_ok(pare_forward_f32(y, m, &in.in[0], &trace, NULL, &err), &err);
    assert_int_equal(t.heads, 1);
    assert_true(t.polynomial == 1 && t.rows_exact < TOKENS / 2);
    assert_le(t.proven, 0.05);
    assert_le(part_used(&e, y), 1);
    assert_le(1, part_used(&exact, y)); /* the exact kernel's radius would be a lie */
    pare_arena_free(a);
    pare_model_free(m);
    pare_model_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_radius_of_f32_contains_the_polynomial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
