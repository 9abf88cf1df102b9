/* Tests src/width/ball_bound.c and layerwise_bound.c: nothing inside a ball breaks what is stated
 * of it, by chance or by climbing; the layer-local bound is above the truth; a certificate proves
 * the balls it names. */
#include "width_nets.h"
#include <claims.h>
#include "width/prove.h"
#include "cert/ball.h"
#include "cert/outputs.h"
#include "linalg/matrix.h"
#include <pare/fold.h>
#include <pare/width.h>

enum { NODES = 12, FEATURES = 4 };

typedef struct match { /* two models on one graph */
    stage s;
    pare_model *f, *g, *ff, *gf;
    net nf, ng;
    pare_graph graph;
    pare_mat x;
    pare_input in;
    pare_inputs set;
    model_pair p;
    pare_width_method method;
} match;

static pare_width_opts opts_of(uint64_t seed)
{
    static const pare_width_method methods[] = {PARE_WIDTH_LOWRANK, PARE_WIDTH_QK, PARE_WIDTH_AUTO,
                                                PARE_WIDTH_JL, PARE_WIDTH_LEVERAGE};
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = methods[seed % 5];
    o.trials = 3;
    if (o.method == PARE_WIDTH_QK || o.method == PARE_WIDTH_JL)
        o.qk_dim = 2;
    else
        o.dim = 4;
    return o;
}

/* With batch norms (as `pare data model` makes them), in f32; else folded already, in f64. */
static pare_model *some_model(stage *s, uint64_t seed, bool batch)
{
    if (!batch) {
        const net n = rand_net(s, (net_shape){.features = FEATURES,
                                              .dim = 6,
                                              .layers = 1 + seed % 2,
                                              .classes = 1 + seed % 3,
                                              .heads = 1 + seed % 2,
                                              .ffn = 7,
                                              .residual = seed % 4 != 3,
                                              .gain = seed % 3 == 0 ? 2 : 1});
        return model_of(s, &n);
    }
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    o.kind = PARE_RANDOM_GRAPH;
    o.seed = seed;
    o.features = FEATURES;
    o.dim = 6;
    o.heads = 2;
    o.layers = 2;
    o.classes = 2;
    assert_ok(pare_random_model(&m, &o, &s->err), &s->err);
    return m;
}

static size_t folded(stage *s, pare_model **out, net *n, const pare_model *m)
{
    pare_fold_report r;
    assert_ok(pare_fold(out, &r, m, &s->err), &s->err);
    *n = net_read(&s->w, *out);
    assert_work(s);
    return r.rounded;
}

static void match_open(match *m, uint64_t seed, bool batch)
{
    static const size_t alone[] = {5, SIZE_MAX};
    stage_open(&m->s, seed);
    m->f = some_model(&m->s, seed, batch);
    m->graph = rand_graph(&m->s, NODES, 3, alone);
    m->x = rand_mat(&m->s, NODES, FEATURES, 1);
    m->in = input_of(&m->x, &m->graph);
    m->set = (pare_inputs){1, &m->in};
    const pare_width_opts o = opts_of(seed);
    pare_width_report r;
    m->method = o.method;
    assert_ok(pare_width(&m->g, &r, m->f, &m->set, &o, NULL, &m->s.err), &m->s.err);
    const size_t rf = folded(&m->s, &m->ff, &m->nf, m->f), rg = folded(&m->s, &m->gf, &m->ng, m->g);
    assert_true(batch == (rf > 0) && rg == 0);
    m->p = (model_pair){m->f, m->g, m->gf, &m->nf, &m->ng, rf, rg, o.qk_dim > 0};
}

static void match_close(match *m)
{
    pare_model *const all[] = {m->f, m->g, m->ff, m->gf};
    for (size_t i = 0; i < 4; i++) pare_model_free(all[i]);
    stage_close(&m->s);
}

/* ---- attacks ---- */

static size_t largest(const double *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

typedef struct view { /* one attack's input: the features of m and a step, on the balls' surface */
    match *m;
    double rho;
    const pare_mat *center; /* f at the given features */
    double apart;
    size_t changed; /* rows that do not have the center's class in both models */
} view;

/* Rows of `step` cut to length rho. */
static pare_mat moved(const view *v, const pare_mat *step)
{
    pare_mat x = mat_copy(&v->m->s.w, &v->m->x);
    for (size_t i = 0; i < x.rows; i++) {
        double len = 0;
        for (size_t j = 0; j < x.cols; j++) len += pow(pare_row(step, i)[j], 2);
        const double by = len > 0 ? v->rho * (1 - 1e-9) / sqrt(len) : 0;
        for (size_t j = 0; j < x.cols; j++) pare_row_mut(&x, i)[j] += by * pare_row(step, i)[j];
    }
    return x;
}

/* |f - g| of entry (i, c), or its largest over all with i = SIZE_MAX, which is also looked at. */
static double gap_at(view *v, const pare_mat *x, size_t i, size_t c)
{
    stage *const s = &v->m->s;
    const pare_input in = input_of(x, &v->m->graph);
    const pare_mat y = output_of(s, v->m->f, &in), z = output_of(s, v->m->g, &in);
    if (i != SIZE_MAX) return fabs(pare_row(&y, i)[c] - pare_row(&z, i)[c]);
    size_t changed = 0;
    for (size_t k = 0; k < y.rows; k++) {
        const size_t was = largest(pare_row(v->center, k), y.cols);
        changed +=
            largest(pare_row(&y, k), y.cols) != was || largest(pare_row(&z, k), z.cols) != was;
    }
    v->apart = fmax(v->apart, mats_apart(&y, &z));
    if (changed > v->changed) v->changed = changed;
    return v->apart;
}

/* Climbs on one entry by differences. */
static void climb(view *v, size_t i, size_t c)
{
    stage *const s = &v->m->s;
    pare_mat step = rand_mat(s, NODES, FEATURES, 1);
    for (int round = 0; round < 4; round++) {
        const pare_mark mark = pare_arena_mark(s->w.arena);
        const pare_mat at = moved(v, &step);
        double slope[NODES * FEATURES];
        const double h = 1e-3 * v->rho;
        for (size_t k = 0; k < NODES * FEATURES; k++) {
            pare_mat there = mat_copy(&s->w, &at);
            there.v[k] += h;
            const double up = gap_at(v, &there, i, c);
            there.v[k] -= 2 * h;
            slope[k] = up - gap_at(v, &there, i, c);
        }
        pare_arena_reset(s->w.arena, mark);
        memcpy(step.v, slope, sizeof slope);
        const pare_mat x = moved(v, &step);
        (void)gap_at(v, &x, SIZE_MAX, 0);
    }
}

static void attack(match *m, uint64_t seed, double rho, double *tight)
{
    stage *const s = &m->s;
    const pare_mark mark = pare_arena_mark(s->w.arena);
    const ball_bound b = ball_of_set(&s->w, &m->p, &m->set, rho);
    assert_work(s);
    const pare_mat y = output_of(s, m->f, &m->in);
    view v = {m, rho, &y, 0, 0};
    for (int go = 0; go < 12; go++) {
        const pare_mat step = rand_mat(s, NODES, FEATURES, 1), x = moved(&v, &step);
        (void)gap_at(&v, &x, SIZE_MAX, 0);
    }
    for (size_t go = 0; go < 2; go++)
        climb(&v, (size_t)pare_rng_below(&s->rng, NODES), go % y.cols);
    if (!(v.apart <= b.apart.v + 1e-12) || v.changed > b.rows - b.certain)
        fail_msg("seed %d rho %g: %.9g apart, bound %.9g; %zu rows changed, %zu certain", (int)seed,
                 rho, v.apart, b.apart.v, v.changed, b.certain);
    *tight = fmax(*tight, v.apart / b.apart.v);
    pare_arena_reset(s->w.arena, mark);
}

static void nothing_inside_a_ball_breaks_it(void **state)
{
    (void)state;
    static const double rhos[] = {1e-6, 1e-3, 0.1};
    double tight = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        match m;
        match_open(&m, seed, seed >= 7);
        for (size_t k = 0; k < 3; k++) attack(&m, seed, rhos[k], &tight);
        match_close(&m);
    }
    print_message("largest share of a bound that was reached: %.6f\n", tight);
    assert_true(tight > 0.9); /* small balls: hardly more than the difference at the center */
}

/* A class is only certain where it could not change: small balls keep all, large ones none. */
static void small_balls_keep_classes_and_large_ones_do_not(void **state)
{
    (void)state;
    match m;
    match_open(&m, 4, false);
    const ball_bound none = ball_of_set(&m.s.w, &m.p, &m.set, 1e-12);
    const ball_bound large = ball_of_set(&m.s.w, &m.p, &m.set, 1e6);
    pare_output_bound o;
    assert_ok(pare_outputs_compare(&o, NULL, m.f, m.g, &m.set, false, NULL, &m.s.err), &m.s.err);
    assert_work(&m.s);
    assert_int_equal(none.rows, NODES);
    assert_int_equal(none.certain, o.certain);
    assert_le(o.gap.proven.v, none.apart.v * (1 + 1e-9));
    assert_le(none.apart.v, o.gap.proven.v * 1.001 + 1e-6);
    assert_int_equal(large.certain, 0);
    match_close(&m);
}

/* ---- layer by layer ---- */

static void layer_by_layer_is_above_the_truth(void **state)
{
    (void)state;
    double tight = 0;
    for (uint64_t seed = 0; seed < 15; seed++) {
        match m;
        match_open(&m, seed, seed >= 10);
        const pare_mat y = output_of(&m.s, m.f, &m.in), z = output_of(&m.s, m.g, &m.in);
        const double truth = mats_apart(&y, &z),
                     bound = layerwise_gap_of_set(&m.s.w, &m.p, &m.set).v;
        assert_work(&m.s);
        if (!(truth <= bound)) fail_msg("seed %d: %.9g apart, bound %.9g", (int)seed, truth, bound);
        if (truth > 1e-9) tight = fmax(tight, truth / bound);
        match_close(&m);
    }
    print_message("largest share of the bound that was reached: %.3f\n", tight);
    assert_true(tight > 0.5);
}

/* A model beside itself: rounding alone is left. */
static void a_model_beside_itself_is_near(void **state)
{
    (void)state;
    match m;
    match_open(&m, 1, false);
    const model_pair same = {m.f, m.f, m.ff, &m.nf, &m.nf, 0, 0, true};
    model_pair fitted = same;
    fitted.same = false;
    const double exact = layerwise_gap_of_set(&m.s.w, &same, &m.set).v;
    const double least_squares = layerwise_gap_of_set(&m.s.w, &fitted, &m.set).v;
    assert_work(&m.s);
    assert_true(exact > 0 && exact < 1e-9);
    assert_true(least_squares > 0 && least_squares < 1e-7);
    match_close(&m);
}

/* ---- in a certificate ---- */

static void a_certificate_proves_the_balls_it_names(void **state)
{
    (void)state;
    match m;
    match_open(&m, 8, true);
    const pare_prover *const prover = &pare_width_provers[m.method];
    const pare_data_ref data = {.kind = "random", .count = 1, .tokens = NODES};
    pare_claim asked[2] = {pare_ball_claim(1e-5, PARE_BALL_TWO),
                           pare_ball_claim(0.1, PARE_BALL_TWO)};
    const pare_cert blank = {.reduction = prover->reduction, .data = data};
    pare_cert wish = blank, cert = blank, again = blank;
    wish.nclaims = 2;
    wish.claims = asked;
    assert_ok(prover->prove(&cert, m.s.w.arena, &wish, m.f, m.g, &m.set, NULL, &m.s.err), &m.s.err);
    assert_ok(pare_cert_inflate(&cert, &m.s.err), &m.s.err);
    assert_ok(prover->prove(&again, m.s.w.arena, &cert, m.f, m.g, &m.set, NULL, &m.s.err),
              &m.s.err);
    assert_int_equal(again.nclaims, cert.nclaims);
    assert_ok(pare_cert_compare(&cert, &again, &m.s.err), &m.s.err);
    size_t balls = 0;
    for (size_t i = 0; i < cert.nclaims; i++) {
        const pare_claim was = cert.claims[i];
        double rho;
        pare_ball_norm norm;
        if (!pare_ball_asked(&rho, &norm, &was)) continue;
        balls++;
        assert_true(was.kind == PARE_BALL_OUTPUTS && norm == PARE_BALL_TWO);
        /* A larger ball with the same bound; radii and norms that are none. */
        static const struct {
            double radius;
            const char *norm;
        } wrong[] = {{0.2, "in the euclidean norm"}, {NAN, "in the euclidean norm"},
                     {-1, "in the euclidean norm"},  {0, "in the euclidean norm"},
                     {1e-5, "in every entry"},       {1e-5, "in the norm"}};
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            cert.claims[i].p[0] = wrong[k].radius;
            cert.claims[i].text = wrong[k].norm;
            again = blank;
            assert_ok(prover->prove(&again, m.s.w.arena, &cert, m.f, m.g, &m.set, NULL, &m.s.err),
                      &m.s.err);
            assert_status(pare_cert_compare(&cert, &again, &m.s.err), PARE_ERR_VERIFY, &m.s.err);
        }
        cert.claims[i] = was;
    }
    assert_int_equal(balls, 2);
    match_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_inside_a_ball_breaks_it),
        cmocka_unit_test(small_balls_keep_classes_and_large_ones_do_not),
        cmocka_unit_test(layer_by_layer_is_above_the_truth),
        cmocka_unit_test(a_model_beside_itself_is_near),
        cmocka_unit_test(a_certificate_proves_the_balls_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
