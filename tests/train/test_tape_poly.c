/* Tests src/train/tape_poly.c: heads of kind poly are taught by polynomials where it pays. */
#include "train/gradient.h"
#include "poly_model.h"

enum { TOKENS = 2000, FULL = 1200, BATCH = 2, ROWS = TOKENS * BATCH };

typedef struct wide_pass {
    double dy[ROWS * VOCAB], grad[200000];
    float dy32[ROWS * VOCAB], grad32[200000], again[200000];
    int64_t ids[ROWS];
} wide_pass;

static wide_pass *setup(pare_input *in)
{
    wide_pass *const w = calloc(1, sizeof *w);
    assert_non_null(w);
    pare_rng r = pare_rng_at(6, 0);
    for (size_t i = 0; i < ROWS * VOCAB; i++) {
        w->dy32[i] = (float)pare_rng_normal(&r);
        w->dy[i] = (double)w->dy32[i];
    }
    for (size_t i = 0; i < ROWS; i++) w->ids[i] = (int64_t)pare_rng_below(&r, VOCAB);
    *in = (pare_input){.batch = BATCH, .tokens = TOKENS, .ids = w->ids};
    return w;
}

/* In f64 kind poly is exact: the gradient that the polynomial one must be near to, part by part. */
static double largest_gap(const wide_pass *w, const pare_params *p)
{
    double worst = 0, all = 0;
    for (size_t i = 0; i < p->count; i++) all = fmax(all, fabs(w->grad[i]));
    for (size_t s = 0; s < p->nslots; s++) {
        const pare_slot *const slot = &p->slots[s];
        double size = 0.01 * all, gap = 0; /* a bias of keys has no slope at all */
        for (size_t i = slot->offset; i < slot->offset + slot->rows * slot->cols; i++) {
            size = fmax(size, fabs(w->grad[i]));
            gap = fmax(gap, fabs(w->grad[i] - (double)w->grad32[i]));
        }
        worst = fmax(worst, gap / size);
    }
    return worst;
}

static void gradients_are_near_those_of_exact_attention(void **state)
{
    (void)state;
    /* causal: a constant would do for the values at 1e-2, but would give queries no slope */
    static const double tolerance[] = {1e-2, 1e-3}, most[2][2] = {{2e-2, 4e-3}, {1e-3, 0}};
    for (int causal = 0; causal < 2; causal++)
        for (int i = 0; i < 2 - causal; i++) {
            pare_input in;
            wide_pass *const w = setup(&in);
            in.tokens = causal ? TOKENS : FULL;
            in.batch = causal ? 1 : BATCH;
            pare_model *const m = poly_model(causal, TOKENS, tolerance[i]);
            poly_pass narrow = {.grad = w->grad32}, wide = {.grad = w->grad};
            pare_err err = {0};
            assert_ok(poly_pass_run(&wide, m, &in, PARE_F64, w->dy, NULL, &err), &err);
            assert_ok(poly_pass_run(&narrow, m, &in, PARE_F32, w->dy32, NULL, &err), &err);
            for (size_t b = 0; b < m->nblocks; b++) {
                const pare_poly_use *const use = pare_tape_poly_use(narrow.t, b);
                assert_int_equal(use->polynomial, 2 * in.batch);
                assert_int_equal(use->exact, 0);
                assert_contains(use->why, "degree");
                assert_int_equal(pare_tape_poly_use(wide.t, b)->polynomial, 0);
            }
            assert_le(largest_gap(w, wide.p), most[causal][i]);
            poly_pass_free(&narrow);
            poly_pass_free(&wide);
            pare_model_free(m);
            free(w);
        }
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    pare_input in;
    wide_pass *const w = setup(&in);
    pare_model *const m = poly_model(true, TOKENS, 1e-3);
    poly_pass one = {.grad = w->grad32}, more = {.grad = w->again};
    const pare_exec three = {.threads = 3};
    pare_err err = {0};
    assert_ok(poly_pass_run(&one, m, &in, PARE_F32, w->dy32, NULL, &err), &err);
    assert_ok(poly_pass_run(&more, m, &in, PARE_F32, w->dy32, &three, &err), &err);
    assert_memory_equal(w->grad32, w->again, one.count * sizeof(float));
    poly_pass_free(&one);
    poly_pass_free(&more);
    pare_model_free(m);
    free(w);
}

/* A few tokens, numbers that are none, other patterns: exact, and it says why. */
static void where_it_does_not_pay_it_is_exact_and_says_so(void **state)
{
    (void)state;
    pare_input in;
    wide_pass *const w = setup(&in);
    pare_model *m = poly_model(true, TOKENS, 1e-3);
    poly_pass s = {.grad = w->grad32};
    pare_err err = {0};
    in.tokens = 20;
    assert_ok(poly_pass_run(&s, m, &in, PARE_F32, w->dy32, NULL, &err), &err);
    assert_int_equal(pare_tape_poly_use(s.t, 1)->polynomial, 0);
    assert_int_equal(pare_tape_poly_use(s.t, 1)->exact, 2 * BATCH);
    assert_contains(pare_tape_poly_use(s.t, 1)->why, "20 tokens are too few");
    poly_pass_free(&s);
    in.tokens = TOKENS;
    m->pattern = (pare_pattern){.kind = PARE_WINDOW, .window = 30};
    assert_ok(poly_pass_run(&s, m, &in, PARE_F32, w->dy32, NULL, &err), &err);
    assert_contains(pare_tape_poly_use(s.t, 0)->why, "the pattern is a window");
    poly_pass_free(&s);
    m->pattern = (pare_pattern){.kind = PARE_CAUSAL};
    assert_ok(poly_pass_run(&s, m, &in, PARE_F32, w->dy32, NULL, &err), &err);
    for (size_t i = 0; i < s.p->count; i++) ((float *)s.p->values)[i] = NAN; /* it has diverged */
    assert_ok(pare_tape_forward(s.t, &in, &(pare_mode){.training = true}, NULL, &err), &err);
    assert_ok(pare_tape_backward(s.t, w->dy32, NULL, w->grad32, &err), &err);
    assert_contains(pare_tape_poly_use(s.t, 0)->why, "finite");
    assert_true(isnan(w->grad32[0]));
    poly_pass_free(&s);
    pare_model_free(m);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_near_those_of_exact_attention),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(where_it_does_not_pay_it_is_exact_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
