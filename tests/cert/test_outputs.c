/* Tests src/cert/outputs.c: every term of what a row of two enclosures says, with enclosures made
 * by hand in which that term is the largest. */
#include <claims.h>
#include "cert/outputs.h"

/* b >= x, and above it by no more than a few roundings. */
static void assert_just_above(double b, double x)
{
    assert_le(x, b);
    assert_le(b, x * (1 + 1e-15));
}

/* Two rows of two entries. The first has the larger distance, the second the larger radii. */
static void a_row_is_bounded_by_its_distance_and_both_radii(void **state)
{
    (void)state;
    double fm[] = {1, 5, -8, 0.5}, gm[] = {1.5, 3, -8, 0.25};
    double fr[] = {0.25, 2}, gr[] = {0.0625, 1}, f32[] = {100, 200}, g32[] = {0.5, 0.75};
    const pare_enclosure f = {2, 2, fm, NULL, fr, f32}, g = {2, 2, gm, NULL, gr, g32};
    pare_output_bound o = {0};
    assert_just_above(pare_outputs_row(&o, &f, &g, 0).v, 2.3125);
    assert_just_above(o.gap.proven.v, 2.3125);
    assert_just_above(o.gap.radius, 0.3125);
    assert_true(o.gap.measured == 2 && o.gap.scale == 5 && o.gap.rounding.v == 0.5);
    assert_just_above(pare_outputs_row(&o, &f, &g, 1).v, 3.25);
    assert_just_above(o.gap.proven.v, 3.25);
    assert_just_above(o.gap.radius, 3);
    assert_true(o.gap.measured == 2 && o.gap.scale == 8 && o.gap.rounding.v == 0.75);
    assert_true(o.rows == 2);
    /* Once more the first: the largest figures stay. */
    assert_just_above(pare_outputs_row(&o, &f, &g, 0).v, 2.3125);
    assert_just_above(o.gap.proven.v, 3.25);
    assert_just_above(o.gap.radius, 3);
    assert_true(o.gap.scale == 8 && o.gap.rounding.v == 0.75 && o.rows == 3);
    /* Equal midpoints: the radii alone, to the last bit. */
    pare_output_bound same = {0};
    fr[0] = 0.25;
    gr[0] = 0;
    assert_true(pare_outputs_row(&same, &f, &f, 0).v >= 0.5);
    assert_true(pare_outputs_row(&same, &g, &g, 0).v == 0);
    assert_true(same.gap.measured == 0);
    /* A radius that is not known, or no number, is no bound. */
    fr[0] = NAN;
    assert_true(isinf(pare_outputs_row(&same, &f, &g, 0).v) && isinf(same.gap.proven.v));
    fr[0] = 0;
    fm[1] = NAN;
    assert_true(isinf(pare_outputs_row(&same, &f, &g, 0).v) && isinf(same.gap.measured));
}

/* In 113 bits: the distance is rounded, so is each sum. */
static void what_is_rounded_is_rounded_up(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(3, 0);
    for (int t = 0; t < 20000; t++) {
        double fm = pare_rng_normal(&rng), gm = pare_rng_normal(&rng), fl, gl;
        double fr = t % 3 ? ldexp(pare_rng_uniform(&rng), -(t % 70)) : 0;
        double gr = t % 5 ? ldexp(pare_rng_uniform(&rng), -(t % 60)) : 0, r32 = 0;
        if (t % 7 == 0) gm = ldexp(gm, -30);
        fl = ldexp(fm * pare_rng_uniform(&rng), -54);
        gl = ldexp(gm * pare_rng_uniform(&rng), -54);
        const bool wide = t % 2;
        if (wide && t % 11 == 0) gm = fm; /* the low parts alone are apart */
        const pare_enclosure f = {1, 1, &fm, wide ? &fl : NULL, &fr, &r32};
        const pare_enclosure g = {1, 1, &gm, wide ? &gl : NULL, &gr, &r32};
        pare_output_bound o = {0};
        const double bound = pare_outputs_row(&o, &f, &g, 0).v;
        const __float128 d = ((__float128)fm - gm) + (wide ? (__float128)fl - gl : 0);
        const __float128 exact = (d < 0 ? -d : d) + fr + gr;
        assert_true((__float128)bound >= exact);
        assert_true((__float128)bound <= exact * (1 + (__float128)1e-15) + 1e-300);
        assert_true((__float128)o.gap.radius >= (__float128)fr + gr);
        assert_le(fabs(o.gap.measured - (double)(d < 0 ? -d : d)), 0x1p-53 * o.gap.measured);
        float y = (float)(gm + (t % 13 ? ldexp(1, -(t % 50)) : 0));
        pare_outputs_engine(&o, &g, &y, 0);
        const __float128 e = (__float128)y - gm - (wide ? (__float128)gl : 0);
        assert_true((__float128)o.gap.engine >= (e < 0 ? -e : e) + gr);
    }
}

/* With low parts the distance is theirs too, and whatever looks at the high parts alone adds the
 * largest of them to the radius. */
static void low_parts_of_midpoints_count(void **state)
{
    (void)state;
    double mid[] = {1, 2, 3, 4}, fl[] = {0x1p-60, 0, -0x1p-54, 0x1p-55}, gl[] = {0, 0x1p-61, 0, 0};
    double fr[] = {0, 0x1p-70}, gr[] = {0, 0}, none[] = {0, 0};
    const pare_enclosure f = {2, 2, mid, fl, fr, none}, g = {2, 2, mid, gl, gr, none};
    pare_output_bound o = {0};
    assert_just_above(pare_outputs_row(&o, &f, &g, 0).v, 0x1p-60);
    assert_true(o.gap.measured == 0x1p-60);
    assert_just_above(pare_outputs_row(&o, &f, &g, 1).v, 0x1p-54 + 0x1p-70);
    assert_true(o.gap.measured == 0x1p-54);
    pare_arena *const a = pare_arena_new();
    pare_enclosure flat;
    assert_non_null(a);
    assert_ok(pare_enclosure_flatten(&flat, a, &f, NULL), NULL);
    assert_true(flat.mid == mid && !flat.lo && flat.rows == 2 && flat.cols == 2);
    assert_true(flat.rad32 == none && flat.rad[0] == 0x1p-60);
    assert_just_above(flat.rad[1], 0x1p-54 + 0x1p-70);
    assert_true(fr[0] == 0 && fr[1] == 0x1p-70); /* its own are as they were */
    const pare_enclosure plain = {2, 2, mid, NULL, fr, none};
    assert_ok(pare_enclosure_flatten(&flat, a, &plain, NULL), NULL);
    assert_true(flat.rad == fr && flat.mid == mid && !flat.lo);
    /* Eight rows of a longer list: nothing behind them is written. */
    double ones[9];
    for (size_t i = 0; i < 9; i++) ones[i] = 1;
    const pare_enclosure eight = {8, 1, ones, ones, ones, ones};
    assert_ok(pare_enclosure_flatten(&flat, a, &eight, NULL), NULL);
    const double *const behind = pare_alloc(a, 8, sizeof *behind);
    assert_non_null(behind);
    for (size_t i = 0; i < 8; i++) assert_true(behind[i] == 0);
    pare_arena_free(a);
}

/* Whether the only row of f and g, of three entries, surely keeps its largest one. */
static bool sure(const double f[3], double rf, const double g[3], double rg, const double *lo)
{
    double a[4] = {0, 0, 0, 1e9}, b[4] = {0, 0, 0, 1e9}, l[3] = {0}, none = 0;
    memcpy(a, f, 3 * sizeof *a); /* what is behind the row is not its */
    memcpy(b, g, 3 * sizeof *b);
    if (lo) memcpy(l, lo, sizeof l);
    const pare_enclosure x = {1, 3, a, lo ? l : NULL, &rf, &none};
    const pare_enclosure y = {1, 3, b, lo ? l : NULL, &rg, &none};
    pare_output_bound o = {0};
    (void)pare_outputs_row(&o, &x, &y, 0);
    assert_true(o.rows == 1 && o.certain <= 1);
    return o.certain == 1;
}

/* The largest entry stays where it is beyond the others by more than two radii, in both models. */
static void a_row_is_certain_beyond_two_radii(void **state)
{
    (void)state;
    const double v[3] = {0, 1, -2}, first[3] = {1, 0, -2}, last[3] = {0, -1, 1};
    const double under = nextafter(0.5, 0);
    assert_true(sure(v, under, v, under, NULL));
    assert_false(sure(v, 0.5, v, under, NULL));
    assert_false(sure(v, under, v, 0.5, NULL));
    assert_true(sure(first, under, first, under, NULL));
    assert_true(sure(last, under, last, under, NULL));
    assert_false(sure(last, under, last, 0.5, NULL));
    assert_false(sure(v, 0.25, first, 0.25, NULL)); /* another one is */
    assert_false(sure(v, 0.25, last, 0.25, NULL));
    const double tie[3] = {1, 1, 0}, late[3] = {0, 1, 1};
    assert_false(sure(tie, 0, tie, 0, NULL));
    assert_false(sure(late, 0, late, 0, NULL));
    const double lo[3] = {0, 0, -0.125}; /* as large as no low part is */
    assert_true(sure(v, 0.375 - 0x1p-50, v, 0.25, lo));
    assert_false(sure(v, 0.375, v, 0.25, lo));
    assert_false(sure(v, 0.25, v, 0.375, lo));
    assert_false(sure(v, NAN, v, 0, NULL));
    assert_false(sure(v, 0, v, INFINITY, NULL));
    const double bad[3] = {0, INFINITY, NAN};
    assert_false(sure(bad, 0, bad, 0, NULL));
}

/* Each row by itself: the second is certain, the others are not, in f or in g. */
static void a_row_is_judged_by_its_own_entries(void **state)
{
    (void)state;
    double fm[] = {0, 1, 3, -1, 5, 6}, gm[] = {0, 7, 8, 1, 8, 2}, rad[] = {1, 1, 1};
    const pare_enclosure f = {3, 2, fm, NULL, rad, rad}, g = {3, 2, gm, NULL, rad, rad};
    for (size_t i = 0; i < 3; i++) {
        pare_output_bound o = {0};
        (void)pare_outputs_row(&o, &f, &g, i);
        assert_true(o.certain == (i == 1));
    }
}

/* |y - G| + rg, of the row asked for. */
static void the_engine_is_as_far_as_it_was_and_the_radius_more(void **state)
{
    (void)state;
    double mid[] = {1, 2, 3, 4}, lo[] = {0, 0, 0.25, -0.5}, rad[] = {0.125, 0.0625};
    const float y[] = {1.5f, 2, 3, 3.75f};
    const pare_enclosure g = {2, 2, mid, NULL, rad, rad}, wide = {2, 2, mid, lo, rad, rad};
    pare_output_bound o = {0};
    pare_outputs_engine(&o, &g, y, 1);
    assert_just_above(o.gap.engine, 0.3125);
    pare_outputs_engine(&o, &g, y, 0);
    assert_just_above(o.gap.engine, 0.625);
    pare_outputs_engine(&o, &g, y, 1); /* the largest stays */
    assert_just_above(o.gap.engine, 0.625);
    pare_outputs_engine(&o, &wide, y, 1);
    assert_just_above(o.gap.engine, 0.8125);
    pare_outputs_engine(&o, &g, NULL, 0); /* it overflowed */
    assert_true(isinf(o.gap.engine));
    o.gap.engine = 0;
    const float second[] = {9, 9, 3, 3.75f}, first[] = {1.5f, 2, 9, 9}; /* their rows alone */
    pare_outputs_engine(&o, &g, second, 1);
    assert_just_above(o.gap.engine, 0.3125);
    o.gap.engine = 0;
    pare_outputs_engine(&o, &g, first, 0);
    assert_just_above(o.gap.engine, 0.625);
    o.gap.engine = 0;
    const float bad[] = {NAN, 0, 0, 0};
    pare_outputs_engine(&o, &g, bad, 0);
    assert_true(isinf(o.gap.engine));
}

/* Two inputs, one of them a batch; a map of 6 weights and one of 4. */
static void the_work_of_a_pass_is_that_of_both_models_on_every_token(void **state)
{
    (void)state;
    static const double w[6] = {0};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->stem.width = 2;
    f->top.out.w = (pare_weight){PARE_F64, 3, 2, w};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->top.out.w = (pare_weight){PARE_F64, 2, 2, w};
    pare_input in[2] = {{.batch = 5, .tokens = 7, .width = 2}, {.batch = 1, .tokens = 3}};
    const pare_inputs set = {2, in}, one = {1, in}, none = {0, in};
    assert_true(pare_passes_work(f, g, &none) == 0);
    assert_true(pare_passes_work(f, g, &one) == 5 * 7 * (6 + 4));
    assert_true(pare_passes_work(f, g, &set) == (5 * 7 + 3) * (6 + 4));
    /* Edges of a graph are pairs of the attention: two multiply-adds of one head of one number. */
    const size_t ptr[] = {0, 2, 3, 4};
    const uint32_t idx[] = {0, 1, 2, 0};
    const pare_graph graph = {3, ptr, idx};
    pare_head head = {.dk = 1, .dv = 1};
    pare_block block = {
        .attn = {.kind = PARE_ATTN_EXACT, .nheads = 1, .heads = &head, .din = 2, .dout = 2}};
    in[1].graph = &graph;
    f->pattern.kind = PARE_GRAPH;
    f->blocks = &block;
    f->nblocks = 1;
    const pare_inputs second = {1, &in[1]};
    assert_true(pare_passes_work(f, g, &second) == 3 * (6 + 4) + 2 * 4);
    assert_true(pare_passes_work(g, f, &second) == 3 * (6 + 4) + 2 * 4);
    f->pattern.kind = PARE_FULL; /* without a graph every token sees all */
    in[1].graph = NULL;
    assert_true(pare_passes_work(f, g, &second) == 3 * (6 + 4) + 2 * 9);
    f->blocks = NULL;
    f->nblocks = 0;
    pare_model_free(g);
    pare_model_free(f);
}

static const pare_output_bound somewhere = {.gap = {.proven = {2},
                                                    .measured = 1,
                                                    .radius = 0.25,
                                                    .f64_radius = 0.5,
                                                    .scale = 3,
                                                    .rounding = {1},
                                                    .engine = 0.5},
                                            .rows = 4,
                                            .certain = 3,
                                            .auc = {{0.5, 0.75}, {0.625, 0.875}}};

static pare_cert taken(void **state, const pare_output_bound *o)
{
    pare_cert c = {.domain = "here"};
    pare_err err = {0};
    assert_ok(pare_cert_take_outputs(&c, *state, o, &err), &err);
    return c;
}

static void a_certificate_takes_rows_and_areas(void **state)
{
    pare_output_bound o = somewhere;
    pare_cert c = taken(state, &o);
    assert_true(c.proven == 2 && claim_value(&c, PARE_ENGINE_DISTANCE) == 0.5);
    assert_true(claim_value(&c, PARE_ROWS_CHANGED) == nextafter(0.25, 1));
    assert_true(claim_value(&c, PARE_AUC_MOST) == 0.875);
    assert_true(claim_value(&c, PARE_AUC_LEAST) == 0.625);
    assert_true(claim_value(&c, PARE_AUC_DIFFERENCE) == nextafter(0.375, 1));
    o.auc[0] = somewhere.auc[1];
    o.auc[1] = somewhere.auc[0];
    c = taken(state, &o);
    assert_true(claim_value(&c, PARE_AUC_DIFFERENCE) == nextafter(0.375, 1));
    assert_true(claim_value(&c, PARE_AUC_MOST) == 0.75);
    o.auc[0] = o.auc[1] = (pare_auc_bound){0, 1};
    c = taken(state, &o);
    assert_true(claim_value(&c, PARE_AUC_DIFFERENCE) == 1); /* never above it */
    o.auc[0] = o.auc[1] = (pare_auc_bound){0.5, 0.5};       /* a point is an interval */
    c = taken(state, &o);
    assert_true(claim_value(&c, PARE_AUC_DIFFERENCE) < 1e-300);
    for (int k = 0; k < 2; k++) {
        o = somewhere;
        o.auc[k] = (pare_auc_bound){1, 0};
        c = taken(state, &o);
        assert_null(pare_cert_find(&c, PARE_AUC_MOST));
        assert_null(pare_cert_find(&c, PARE_AUC_DIFFERENCE));
    }
}

static void the_share_of_changed_rows_is_rounded_up_and_at_most_1(void **state)
{
    static const struct {
        size_t rows, certain;
        double share;
    } cases[] = {{4, 4, 0}, {0, 0, 0}, {4, 0, 1}, {1, 0, 1}, {3, 2, 1. / 3}, {10, 9, 0.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pare_output_bound o = somewhere;
        o.rows = cases[i].rows;
        o.certain = cases[i].certain;
        const pare_cert c = taken(state, &o);
        const double share = claim_value(&c, PARE_ROWS_CHANGED);
        assert_true(share <= 1 && share >= cases[i].share);
        assert_true((__float128)share * cases[i].rows >= cases[i].rows - cases[i].certain);
        assert_le(share, cases[i].share * (1 + 1e-15));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_is_bounded_by_its_distance_and_both_radii),
        cmocka_unit_test(what_is_rounded_is_rounded_up),
        cmocka_unit_test(low_parts_of_midpoints_count),
        cmocka_unit_test(a_row_is_certain_beyond_two_radii),
        cmocka_unit_test(a_row_is_judged_by_its_own_entries),
        cmocka_unit_test(the_engine_is_as_far_as_it_was_and_the_radius_more),
        cmocka_unit_test(the_work_of_a_pass_is_that_of_both_models_on_every_token),
        ARENA_TEST(a_certificate_takes_rows_and_areas),
        ARENA_TEST(the_share_of_changed_rows_is_rounded_up_and_at_most_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
