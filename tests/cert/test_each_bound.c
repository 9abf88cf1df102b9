/* Tests src/cert/each_bound.c: what is proven of each row of two models, against __float128. */
#include <enclose_quad.h>
#include "cert/conformal.h"
#include "cert/enclose.h"

typedef struct pair {
    pare_model *f, *g;
    pare_arena *a;
    pare_err err;
    pare_rng rng;
} pair;

/* g alone ends with a map that is nearly the identity, and does not normalize before it. */
static void put_map(pair *p)
{
    const size_t d = pare_model_outputs(p->f);
    double *const w = pare_alloc(p->a, d * d, sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < d * d; i++) w[i] = (i % (d + 1) == 0) + 1e-3 * pare_rng_normal(&p->rng);
    p->g->head.out.w = (pare_weight){PARE_F64, d, d, w};
}

/* A random model, and one whose embedding is off by `apart`. */
static void pair_open(pair *p, pare_random_kind kind, bool embedding, double apart, uint64_t seed)
{
    *p = (pair){.a = pare_arena_new(), .rng = pare_rng_at(seed, 1)};
    assert_non_null(p->a);
    const pare_random_model_opts o = {.kind = kind,
                                      .dim = 8,
                                      .layers = 1 + seed % 2,
                                      .heads = 2,
                                      .vocab = 23,
                                      .context = 16,
                                      .classes = 3,
                                      .seed = seed};
    assert_ok(pare_random_model(&p->f, &o, &p->err), &p->err);
    if (embedding) {
        p->f->head.out = (pare_dense){0};
        p->f->head.pool = (pare_pool)(1 + seed % 4);
        p->f->head.normalize = seed % 3 == 1;
    }
    assert_ok(pare_model_clone(&p->g, p->f, &p->err), &p->err);
    if (embedding && seed % 5 == 2) put_map(p);
    const pare_weight *const w = &p->f->embedding.table;
    double *const table = pare_alloc(p->a, w->rows * w->cols, sizeof *table);
    assert_non_null(table);
    for (size_t i = 0; i < w->rows * w->cols; i++)
        table[i] = (double)q_at(w, i) + apart * pare_rng_normal(&p->rng);
    p->g->embedding.table = (pare_weight){PARE_F64, w->rows, w->cols, table};
}

static void pair_close(pair *p)
{
    pare_model_free(p->f);
    pare_model_free(p->g);
    pare_arena_free(p->a);
}

static pare_input draw_input(pair *p, size_t batch, size_t tokens)
{
    int64_t *const ids = pare_alloc(p->a, batch * tokens, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < batch * tokens; i++) ids[i] = (int64_t)pare_rng_below(&p->rng, 23);
    return (pare_input){.batch = batch, .tokens = tokens, .ids = ids};
}

static const pare_each_bound *prove(pair *p, const pare_inputs *set)
{
    pare_output_bound o;
    assert_ok(pare_outputs_compare(&o, p->a, p->f, p->g, set, false, NULL, &p->err), &p->err);
    assert_non_null(o.each);
    return o.each;
}

static double quad_distance(const quad *f, const quad *g, size_t n)
{
    quad ff = 0, gg = 0, apart = 0;
    for (size_t k = 0; k < n; k++) ff += f[k] * f[k], gg += g[k] * g[k];
    ff = q_sqrt(ff), gg = q_sqrt(gg);
    for (size_t k = 0; k < n; k++) {
        const quad d = f[k] / ff - g[k] / gg;
        apart += d * d;
    }
    return (double)(apart / 2);
}

static double quad_kl(const quad *f, const quad *g, size_t n)
{
    quad zf = 0, zg = 0, sum = 0;
    for (size_t k = 0; k < n; k++) zf += q_exp(f[k]), zg += q_exp(g[k]);
    zf = q_log(zf), zg = q_log(zg);
    for (size_t k = 0; k < n; k++) sum += q_exp(f[k] - zf) * ((f[k] - zf) - (g[k] - zg));
    return (double)sum;
}

/* Every row of every input by its own exact figures; and the bounds are no larger than they must be. */
static void check_rows(pair *p, const pare_inputs *set, const pare_each_bound *each)
{
    size_t row = 0, input = 0;
    for (size_t i = 0; i < set->n; i++)
        for (size_t b = 0; b < set->in[i].batch; b++, input++) {
            const qmat f = q_model(p->a, p->f, &set->in[i], b);
            const qmat g = q_model(p->a, p->g, &set->in[i], b);
            double apart = 0;
            assert_int_equal(each->first[input], row);
            for (size_t k = 0; k < f.n * f.d; k++)
                apart = fmax(apart, (double)q_abs(f.v[k] - g.v[k]));
            assert_le(apart, each->apart[input] * (1 + 1e-15));
            for (size_t k = 0; k < f.n; k++, row++) {
                const quad *const x = f.v + k * f.d, *const y = g.v + k * g.d;
                const double figure = each->kl ? quad_kl(x, y, f.d) : quad_distance(x, y, f.d);
                const double bound = each->kl ? each->kl[row] : each->distance[row];
                assert_le(figure, bound);
                assert_le(bound, figure * 1.01 + 1e-24);
            }
        }
    assert_true(row == each->rows && input == each->inputs && each->first[input] == row);
}

static void every_row_is_within_its_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        const double apart = pow(10, -(double)(seed % 7));
        for (int kind = 0; kind < (seed < 8 ? 3 : 1); kind++) {
            pair p;
            pair_open(&p, kind == 2 ? PARE_RANDOM_GPT : PARE_RANDOM_BERT, kind == 0, apart, seed);
            pare_input in[2] = {draw_input(&p, 3, 5), draw_input(&p, 2, 1 + seed % 12)};
            const pare_inputs set = {2, in};
            const pare_each_bound *const each = prove(&p, &set);
            assert_true((each->distance != NULL) == (kind == 0));
            assert_true((each->kl != NULL) == (kind > 0));
            assert_int_equal(each->inputs, 5);
            assert_int_equal(each->rows, kind == 2 ? 15 + 2 * in[1].tokens : 5);
            assert_true((each->stay[0] != NULL) == (kind == 0) && !each->stay[1]);
            check_rows(&p, &set, each);
            pair_close(&p);
        }
    }
}

/* Long batches are enclosed in groups; each row is found at its own place. */
static void rows_of_all_groups_are_found(void **state)
{
    (void)state;
    pair p;
    pair_open(&p, PARE_RANDOM_BERT, true, 1e-2, 3);
    pare_input in = draw_input(&p, 300, 2), one = in;
    const pare_inputs set = {1, &in}, alone = {1, &one};
    const pare_each_bound *const all = prove(&p, &set);
    assert_true(all->rows == 300 && all->stay[0] && all->stay[1]);
    one.batch = 1;
    for (size_t i = 0; i < 300; i += 13) {
        one.ids = in.ids + 2 * i;
        const double d = prove(&p, &alone)->distance[0];
        assert_near(d, all->distance[i], 1e-9 * d);
    }
    pair_close(&p);
}

static void models_without_such_outputs_get_no_such_bound(void **state)
{
    (void)state;
    pair p;
    pair_open(&p, PARE_RANDOM_BERT, true, 1e-2, 2);
    pare_input in = draw_input(&p, 2, 3);
    const pare_inputs set = {1, &in};
    p.f->head.pool = p.g->head.pool = PARE_POOL_NONE; /* rows of tokens */
    const pare_each_bound *const each = prove(&p, &set);
    assert_true(each->apart && !each->distance && !each->kl && !each->stay[0]);
    /* Nothing is asked for: nothing is kept. */
    pare_output_bound o;
    assert_ok(pare_outputs_compare(&o, NULL, p.f, p.g, &set, false, NULL, &p.err), &p.err);
    assert_null(o.each);
    pair_close(&p);
}

/* Behind a map the radius is that of each entry: a row in a corner of its box is within its bound. */
static void a_corner_of_the_box_is_within_the_bound(void **state)
{
    (void)state;
    pair p;
    pair_open(&p, PARE_RANDOM_BERT, true, 1e-2, 2);
    assert_true(pare_has(&p.g->head.out.w) && !p.g->head.normalize);
    pare_input in = draw_input(&p, 1, 2);
    const pare_inputs set = {1, &in};
    pare_each_bound *each;
    pare_unit_rows units[2];
    assert_ok(pare_each_bound_new(&each, p.a, p.f, p.g, &set, &p.err), &p.err);
    double mid[8] = {1}, none = 0, radius = 0.1;
    quad f[8] = {1}, g[8];
    for (size_t k = 0; k < 8; k++) g[k] = f[k] + (k ? 0.1 : -0.1);
    for (size_t k = 0; k < 2; k++)
        assert_ok(pare_unit_rows_new(&units[k], p.a, each, 8, &p.err), &p.err);
    const pare_enclosure ef = {.rows = 1, .cols = 8, .mid = mid, .rad = &none};
    const pare_enclosure eg = {.rows = 1, .cols = 8, .mid = mid, .rad = &radius};
    assert_ok(pare_each_bound_rows(each, units, 0, &ef, &eg, NULL, &p.err), &p.err);
    assert_le(quad_distance(f, g, 8), each->distance[0]);
    assert_le(each->distance[0], 2 * quad_distance(f, g, 8));
    pair_close(&p);
}

/* Outputs behind a map are those of a classifier unless they are normalized: no cosines of one, no KL of the
 * other. */
static void what_embeds(void **state)
{
    (void)state;
    for (int normalize = 0; normalize < 2; normalize++) {
        pair p;
        pair_open(&p, PARE_RANDOM_BERT, false, 1e-2, 4);
        pare_input in = draw_input(&p, 3, 4);
        const pare_inputs set = {1, &in};
        p.f->head.normalize = p.g->head.normalize = normalize;
        const pare_each_bound *const each = prove(&p, &set);
        assert_true((each->distance != NULL) == normalize && (each->kl != NULL) == !normalize);
        check_rows(&p, &set, each);
        pair_close(&p);
    }
}

static const pare_claim *claim_of(const pare_cert *c, pare_kind kind, double p0, double p1)
{
    for (size_t i = 0; i < c->nclaims; i++)
        if (c->claims[i].kind == kind && c->claims[i].p[0] == p0 && c->claims[i].p[1] == p1)
            return &c->claims[i];
    return NULL;
}

/* 43 inputs with distances 1/64, ..., 43/64 in some order. */
static void claims_are_order_statistics(void **state)
{
    (void)state;
    enum { N = 43 };
    double distance[N], kl[N], apart[N];
    size_t first[N + 1];
    bool stay[2][N];
    for (size_t i = 0; i < N; i++) {
        distance[i] = (double)((i * 11) % N + 1) / 64;
        apart[i] = 2 * distance[i];
        kl[i] = 4 * distance[i];
        first[i] = i;
        stay[0][i] = i != 7;
        stay[1][i] = false;
    }
    first[N] = N;
    pare_each_bound each = {N, N, first, apart, distance, NULL, {stay[0], stay[1]}, {1, 1}};
    pare_arena *const a = pare_arena_new();
    pare_err err = {0};
    pare_cert c = {.domain = "here", .proven = 2};
    assert_ok(pare_cert_take_each(&c, a, &each, &err), &err);
    assert_int_equal(c.nclaims, 5);
    assert_true(claim_of(&c, PARE_COSINE_DISTANCE, N, 0)->value == 43.0 / 64);
    assert_true(claim_of(&c, PARE_COSINE_DISTANCE, N, 2)->value == 41.0 / 64);
    assert_true(claim_of(&c, PARE_COSINE_DISTANCE, N, 21)->value == 22.0 / 64);
    const double changed = claim_of(&c, PARE_NEIGHBORS_CHANGED, 1, 0)->value;
    assert_true(changed >= 1.0 / 43 && changed <= 1.0 / 43 * (1 + 1e-15));
    assert_true(claim_of(&c, PARE_NEIGHBORS_CHANGED, 10, 0)->value == 1);
    assert_string_equal(c.claims[0].domain, "here");
    /* of new inputs: none and one left out */
    pare_input in = {.batch = N, .tokens = 1};
    const pare_inputs set = {1, &in};
    const pare_data_ref data = {.kind = "file", .candidates = 1};
    c.nclaims = 0;
    assert_ok(pare_add_new_inputs(&c, a, &data, &set, &each, &err), &err);
    assert_int_equal(c.nclaims, 7);
    assert_true(claim_of(&c, PARE_NEW_INPUT_COSINE_DISTANCE, N, 0)->value == 43.0 / 64);
    const pare_claim *const left = claim_of(&c, PARE_NEW_INPUT_COSINE_DISTANCE, N, 1);
    assert_true(left->value == 42.0 / 64);
    assert_near(left->probability, 42.0 / 44, 1e-15);
    /* KL: the mean over the rows of an input. Two inputs, of 40 and of 3 rows. */
    size_t two[] = {0, 40, 43};
    each = (pare_each_bound){2, N, two, apart, NULL, kl, {NULL, NULL}, {1, 1}};
    double sums[2] = {0, 0}, most = 0;
    for (size_t i = 0; i < N; i++) sums[i >= 40] += kl[i], most = fmax(most, kl[i]);
    c.nclaims = 0;
    assert_ok(pare_cert_take_each(&c, a, &each, &err), &err);
    assert_int_equal(c.nclaims, 2);
    assert_true(claim_of(&c, PARE_KL_MOST, 0, 0)->value == most);
    const double mean = claim_of(&c, PARE_KL_MEAN, 0, 0)->value, all = sums[0] + sums[1];
    assert_true(mean >= all / N && mean <= all / N * (1 + 1e-13));
    in.batch = 2;
    assert_ok(pare_add_new_inputs(&c, a, &data, &set, &each, &err), &err);
    assert_near(claim_of(&c, PARE_NEW_INPUT_KL, 2, 0)->value, fmax(sums[0] / 40, sums[1] / 3),
                1e-13);
    pare_arena_free(a);
}

static void of_two_proofs_the_better_one_counts(void **state)
{
    (void)state;
    double apart[] = {1, 2}, distance[] = {0.5, INFINITY}, kl[] = {3, 4};
    double apart2[] = {2, 1}, distance2[] = {INFINITY, 0.25}, kl2[] = {4, 3};
    bool stay[] = {true, false}, stay2[] = {false, false};
    size_t first[] = {0, 1, 2};
    pare_each_bound x = {2, 2, first, apart, distance, kl, {stay, NULL}, {1, 1}};
    const pare_each_bound y = {2, 2, first, apart2, distance2, kl2, {stay2, NULL}, {1, 1}};
    pare_each_bound_merge(&x, &y);
    assert_true(apart[0] == 1 && apart[1] == 1 && distance[0] == 0.5 && distance[1] == 0.25);
    assert_true(kl[0] == 3 && kl[1] == 3 && stay[0] && !stay[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_within_its_bound),
        cmocka_unit_test(rows_of_all_groups_are_found),
        cmocka_unit_test(models_without_such_outputs_get_no_such_bound),
        cmocka_unit_test(a_corner_of_the_box_is_within_the_bound),
        cmocka_unit_test(what_embeds),
        cmocka_unit_test(claims_are_order_statistics),
        cmocka_unit_test(of_two_proofs_the_better_one_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
