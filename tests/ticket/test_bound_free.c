/* Tests src/ticket/bound_free.c term by term: sizes are handed in, so that each term of Theorem B
 * dominates somewhere, and what comes out is compared with the formula of docs/theory/ticket.md in
 * plain doubles, from both sides. Then with what one-dimensional heads really do. */
#include <pare_test.h>
#include "ticket/bounds.h"

static pare_ub ub(double x)
{
    return pare_ub_exact(x);
}

/* The proven figure is the formula's: not below it, and above it by roundings alone. */
#define assert_is(bound, formula) is_formula((bound).v, (formula), #bound, __LINE__)
static void is_formula(double bound, double formula, const char *what, int line)
{
    if (bound >= formula * (1 - 1e-14) && bound <= formula * (1 + 1e-12)) return;
    print_error("%s is %.17g, the formula gives %.17g\n", what, bound, formula);
    _fail(__FILE__, line);
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Of very different sizes, so that any term of a sum may be the largest; 0 at times. */
static double some_size(pare_rng *r)
{
    return pare_rng_below(r, 5) ? exp(2 * pare_rng_normal(r)) : 0;
}

static affine some_affine(pare_rng *r)
{
    return (affine){ub(some_size(r)), ub(some_size(r)), ub(some_size(r))};
}

static span some_span(pare_rng *r)
{
    return (span){ub(some_size(r)), ub(some_size(r)), ub(some_size(r)), .5};
}

/* ---- the formulas in plain doubles ----------------------------------------------------------- */

/* |w x + b| */
static double at(const affine *m, double x)
{
    return least(m->w.v * x + m->b.v, m->whole.v * sqrt(x * x + 1));
}

/* |[x 1] G| d + d |G_0| g + |[x~ 1] E| g, or the weights of g and E at f's rows */
static double plain(const head_sizes *h, double f, double g, double d)
{
    return least(at(&h->g, f) * d + d * h->g.w.v * g + at(&h->ge, g) * g,
                 at(&h->gt, f) * d + d * h->gt.w.v * g + at(&h->ge, f) * f);
}

/* |q||k - k~| + |q - q~||k~|, or exchanged */
static double rotary(const head_sizes *h, double f, double g, double d)
{
    const double dq = least(h->q.w.v * d + at(&h->qe, g), h->qt.w.v * d + at(&h->qe, f));
    const double dk = least(h->k.w.v * d + at(&h->ke, g), h->kt.w.v * d + at(&h->ke, f));
    return least(at(&h->q, f) * dk + dq * at(&h->kt, g), at(&h->qt, g) * dk + dq * at(&h->k, f));
}

static double branch(const head_sizes *h, double f, double g, double d)
{
    const double lambda = h->factored ? rotary(h, f, g, d) : plain(h, f, g, d);
    const double v = h->v.v, vt = h->vt.v, ve = h->ve.v;
    return 2 * least(f * v, g * vt) * tanh(lambda / 2) + least(v * d + g * ve, vt * d + f * ve);
}

static head_sizes some_head(pare_rng *r, bool factored)
{
    return (head_sizes){.factored = factored,
                        .g = some_affine(r),
                        .gt = some_affine(r),
                        .ge = some_affine(r),
                        .q = some_affine(r),
                        .qt = some_affine(r),
                        .qe = some_affine(r),
                        .k = some_affine(r),
                        .kt = some_affine(r),
                        .ke = some_affine(r),
                        .v = ub(some_size(r)),
                        .vt = ub(some_size(r)),
                        .ve = ub(some_size(r))};
}

static void a_span_keeps_the_triangle_inequality(void **state)
{
    (void)state;
    const span far = span_tightened((span){ub(1), ub(10), ub(3), .25});
    assert_is(far.f, 1);
    assert_is(far.g, 4);
    assert_is(far.d, 3);
    assert_true(far.least == .25);
    const span long_f = span_tightened((span){ub(10), ub(2), ub(5), 0});
    assert_is(long_f.f, 7);
    assert_is(long_f.g, 2);
    assert_is(long_f.d, 5);
    const span apart = span_tightened((span){ub(2), ub(3), ub(50), 0});
    assert_is(apart.f, 2);
    assert_is(apart.g, 3);
    assert_is(apart.d, 5);
    const span fits = span_tightened((span){ub(4), ub(3), ub(2), 0});
    assert_is(fits.f, 4);
    assert_is(fits.g, 3);
    assert_is(fits.d, 2);
}

static void an_affine_map_is_the_lesser_of_its_two_sizes(void **state)
{
    (void)state;
    const affine parts = {ub(3), ub(4), ub(1000)}, whole = {ub(1000), ub(1000), ub(2)};
    assert_is(affine_at(&parts, ub(5)), 19);
    assert_is(affine_at(&parts, ub(0)), 4);
    assert_is(affine_at(&whole, ub(0)), 2);
    assert_is(affine_at(&whole, ub(.75)), 2.5); /* 2 sqrt(9/16 + 1) */
}

/* Every term of a score's change alone: all sizes but those that are named are 0 (or, where a
 * lesser of two stands, out of the way). */
static void each_term_of_a_plain_score_counts(void **state)
{
    (void)state;
    const double far = 1e9;
    const affine none = {ub(0), ub(0), ub(far)}, out = {ub(far), ub(far), ub(far)};
    const affine map = {ub(3), ub(0), ub(far)}, bias = {ub(0), ub(5), ub(far)};
    const span s = {ub(7), ub(2), ub(.5), 0};
    head_sizes h = {.g = bias, .gt = out, .ge = none};
    assert_is(head_scores_move(&h, s), 5 * .5); /* b d */
    h.g = map;
    assert_is(head_scores_move(&h, s), 3 * 7 * .5 + .5 * 3 * 2); /* w f d + d w g */
    h.g = none, h.ge = map;
    assert_is(head_scores_move(&h, s), 3 * 2 * 2); /* E g g */
    h.ge = bias;
    assert_is(head_scores_move(&h, s), 5 * 2);
    h.g = out, h.gt = bias, h.ge = none;
    assert_is(head_scores_move(&h, s), 5 * .5);
    h.gt = map;
    assert_is(head_scores_move(&h, s), 3 * 7 * .5 + .5 * 3 * 2);
    h.gt = none, h.ge = map;
    assert_is(head_scores_move(&h, s), 3 * 7 * 7); /* E f f */
    h.ge = bias;
    assert_is(head_scores_move(&h, s), 5 * 7);
}

static void scores_move_by_the_formula(void **state)
{
    pare_rng r = pare_rng_at(22, 1);
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        const head_sizes h = some_head(&r, i % 2);
        const span s = some_span(&r);
        const double f = s.f.v, g = s.g.v, d = s.d.v;
        assert_is(head_scores_move(&h, s), i % 2 ? rotary(&h, f, g, d) : plain(&h, f, g, d));
    }
}

/* Behind a layer of some heads, by the formula, triangle inequality included. */
static void check_layer(const attn_sizes *m, span s)
{
    double f = 0, g = 0, d = 0;
    for (size_t h = 0; h < m->nheads; h++) {
        f += m->heads[h].v.v * s.f.v;
        g += m->heads[h].vt.v * s.g.v;
        d += branch(&m->heads[h], s.f.v, s.g.v, s.d.v);
    }
    f += m->bias.v, g += m->bias_g.v, d += m->bias_e.v;
    if (m->may_be_empty)
        f = fmax(f, m->empty.v), g = fmax(g, m->empty_g.v), d = fmax(d, m->empty_e.v);
    const span y = attn_move(m, s);
    g = least(g, f + d);
    f = least(f, g + d);
    assert_is(y.f, f);
    assert_is(y.g, g);
    assert_is(y.d, least(d, f + g));
    assert_true(y.least == 0);
}

static void a_layer_moves_by_the_formula(void **state)
{
    pare_rng r = pare_rng_at(22, 2);
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        head_sizes heads[3];
        for (size_t h = 0; h < 3; h++) heads[h] = some_head(&r, pare_rng_below(&r, 2));
        const attn_sizes m = {.nheads = i % 4,
                              .heads = heads,
                              .bias = ub(some_size(&r)),
                              .bias_g = ub(some_size(&r)),
                              .bias_e = ub(some_size(&r)),
                              .empty = ub(some_size(&r)),
                              .empty_g = ub(some_size(&r)),
                              .empty_e = ub(some_size(&r)),
                              .may_be_empty = pare_rng_below(&r, 2)};
        check_layer(&m, some_span(&r));
    }
}

/* ---- what really happens, in one dimension --------------------------------------------------- */

typedef struct scalar_head {
    double g, b, v; /* score of key y for query x: (x g + b) y; value v y */
} scalar_head;

static affine scalar_affine(double w, double b)
{
    return (affine){ub(fabs(w)), ub(fabs(b)), ub(hypot(w, b) * (1 + 1e-15))};
}

static head_sizes sizes_of(const scalar_head *f, const scalar_head *g)
{
    return (head_sizes){.g = scalar_affine(f->g, f->b),
                        .gt = scalar_affine(g->g, g->b),
                        .ge = scalar_affine(f->g - g->g, f->b - g->b),
                        .v = ub(fabs(f->v)),
                        .vt = ub(fabs(g->v)),
                        .ve = ub(fabs(f->v - g->v))};
}

/* Scores f^2 and g^2 of tokens f and g = f - d: their difference is f d + d g, both terms of it. */
static void the_products_of_moved_rows_are_met(void **state)
{
    (void)state;
    for (double d = .125; d < 4; d *= 2) {
        const scalar_head h = {.g = 1.5};
        const head_sizes s = sizes_of(&h, &h);
        const double f = 4, g = f - d, truth = 1.5 * (f * f - g * g);
        const double bound = head_scores_move(&s, (span){ub(f), ub(g), ub(d), 0}).v;
        assert_true(bound >= truth && bound <= truth * (1 + 1e-14));
    }
}

static double attend(const scalar_head *h, const double *x, size_t i)
{
    const double a = (x[i] * h->g + h->b) * x[0], b = (x[i] * h->g + h->b) * x[1];
    const double p = 1 / (1 + exp(b - a));
    return h->v * (p * x[0] + (1 - p) * x[1]);
}

/* Two tokens, one head: what is drawn stays below, and comes near. */
static void scalar_attention_stays_within_and_comes_near(void **state)
{
    pare_rng r = pare_rng_at(22, 3);
    double nearest = 0;
    (void)state;
    for (size_t i = 0; i < 20000; i++) {
        const double f = 2 * pare_rng_uniform(&r), d = pare_rng_uniform(&r) * (i % 2 ? .1 : 2);
        const double size = i % 3 ? .1 : 2;
        const scalar_head a = {pare_rng_normal(&r), pare_rng_normal(&r), pare_rng_normal(&r)};
        const scalar_head b = {a.g + size * pare_rng_normal(&r), a.b + size * pare_rng_normal(&r),
                               i % 4 ? a.v : a.v + size * pare_rng_normal(&r)};
        double x[2], y[2], g = 0, apart = 0;
        for (size_t k = 0; k < 2; k++) {
            x[k] = pare_rng_below(&r, 2) ? f : -f;
            y[k] = x[k] + (pare_rng_below(&r, 2) ? d : -d);
            g = fmax(g, fabs(y[k]));
            apart = fmax(apart, fabs(x[k] - y[k]));
        }
        head_sizes h = sizes_of(&a, &b);
        const attn_sizes m = {.nheads = 1, .heads = &h};
        const double bound = attn_move(&m, (span){ub(f), ub(g), ub(apart), 0}).d.v;
        for (size_t k = 0; k < 2; k++) {
            const double moved = fabs(attend(&a, x, k) - attend(&b, y, k));
            assert_le(moved, bound * (1 + 1e-12) + 1e-15);
            nearest = fmax(nearest, bound > 1e-6 ? moved / bound : 0);
        }
    }
    print_message("at most %.4f of the bound\n", nearest);
    assert_true(nearest > .95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_span_keeps_the_triangle_inequality),
        cmocka_unit_test(an_affine_map_is_the_lesser_of_its_two_sizes),
        cmocka_unit_test(each_term_of_a_plain_score_counts),
        cmocka_unit_test(scores_move_by_the_formula),
        cmocka_unit_test(a_layer_moves_by_the_formula),
        cmocka_unit_test(the_products_of_moved_rows_are_met),
        cmocka_unit_test(scalar_attention_stays_within_and_comes_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
