/* Tests src/cert/enclose_poly.c and attention of kind poly in the engine: what polynomials leave
 * out is in the radius of the f32 engine. */
#include "cert/prove.h"
#include <pare_test.h>

enum { TOKENS = 1200, WIDTH = 5 };

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

static pare_weight weight_of(pare_model *m, size_t rows, size_t cols, const float *v)
{
    float *const w = pare_alloc(m->arena, rows * cols, sizeof *w);
    assert_non_null(w);
    memcpy(w, v, rows * cols * sizeof *w);
    return (pare_weight){PARE_F32, rows, cols, w};
}

/* One head that reads two queries, two keys and a value off its input. */
static pare_model *reader(void)
{
    static const float wq[] = {1, 0, 0, 0, 0, 0, 1, 0, 0, 0}, v[] = {0, 0, 0, 0, 1};
    static const float wk[] = {0, 0, 1, 0, 0, 0, 0, 0, 1, 0};
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_new(&m, &err), &err);
    m->stem.width = WIDTH;
    m->pattern = (pare_pattern){.kind = PARE_FULL};
    m->blocks = pare_alloc(m->arena, m->nblocks = 1, sizeof *m->blocks);
    assert_non_null(m->blocks);
    pare_attn *const at = &m->blocks[0].attn;
    *at = (pare_attn){
        .kind = PARE_ATTN_POLY, .tolerance = 1e-3, .din = WIDTH, .dout = WIDTH, .nheads = 1};
    at->heads = pare_alloc(m->arena, 1, sizeof *at->heads);
    assert_non_null(at->heads);
    at->heads[0] = (pare_head){.dk = 2, .dv = 1, .scale = 1};
    at->skip.kind = PARE_SKIP_IDENTITY;
    at->wq = weight_of(m, 2, WIDTH, wq), at->wk = weight_of(m, 2, WIDTH, wk);
    at->wv = weight_of(m, 1, WIDTH, v), at->wo = weight_of(m, WIDTH, 1, v);
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

/* Of two long keys one has the largest weight and e^-87, the other a weight that is 0 in f32 and
 * e^87: it is nearly all of a row. */
static void weights_that_f32_cannot_hold_are_not_lost(void **state)
{
    (void)state;
    pare_model *const m = reader();
    pare_arena *const a = pare_arena_new();
    double *const x = pare_alloc(a, TOKENS * WIDTH, sizeof *x);
    float *const y = pare_alloc(a, TOKENS * WIDTH, sizeof *y);
    assert_true(x && y);
    for (size_t i = 0; i < TOKENS; i++) {
        const double row[] = {1, i % 2 ? -1 : 1, -33, ((double)(i % 3) - 1) / 128, 0};
        memcpy(x + i * WIDTH, row, sizeof row);
    }
    x[4 * WIDTH + 2] = 0, x[4 * WIDTH + 3] = -87;
    x[5 * WIDTH + 2] = -105, x[5 * WIDTH + 3] = 87, x[5 * WIDTH + 4] = 1;
    const pare_input in = {.batch = 1, .tokens = TOKENS, .width = WIDTH, .x = x};
    pare_err err = {0};
    pare_enclosure e;
    pare_model_norms *norms;
    assert_ok(pare_model_norms_new(&norms, a, m, NULL, &err), &err);
    assert_ok(pare_enclose(&e, a, m, norms, &in, NULL, &err), &err);
    assert_ok(pare_forward_f32(y, m, &in, NULL, NULL, &err), &err);
    assert_le(0.99, e.mid[4]);
    assert_le(e.rad32[0], 0.01);
    assert_le(part_used(&e, y), 1);
    pare_arena_free(a);
    pare_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_radius_of_f32_contains_the_polynomial),
        cmocka_unit_test(weights_that_f32_cannot_hold_are_not_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
