/* Tests src/width/lowrank_bound.c: each figure that Theorem 4.2 of Shirzad 2024 reads off a net
 * and its data, against singular values and rows computed here, with nets in which one place after
 * the other is the largest. */
#include "model/model_facts.h"
#include "width_nets.h"
#include "width/prove.h"

enum { NODES = 20, D = 5, RANK = 2 };

static double row_length(const pare_mat *m, size_t i)
{
    double sum = 0;
    for (size_t j = 0; j < m->cols; j++) sum += pow(pare_row(m, i)[j], 2);
    return sqrt(sum);
}

static double longest(const pare_mat *m)
{
    double most = 0;
    for (size_t i = 0; i < m->rows; i++) most = fmax(most, row_length(m, i));
    return most;
}

/* The farthest row from the d directions of the largest singular values. */
static double farthest(stage *s, const pare_mat *m, size_t d)
{
    const svd_factors f = svd_of(&s->w, m);
    pare_mat left = mat_copy(&s->w, m);
    assert_work(s);
    for (size_t i = 0; i < m->rows; i++)
        for (size_t k = 0; k < d; k++) {
            double c = 0;
            for (size_t j = 0; j < m->cols; j++) c += pare_row(m, i)[j] * pare_row(&f.vt, k)[j];
            for (size_t j = 0; j < m->cols; j++)
                pare_row_mut(&left, i)[j] -= c * pare_row(&f.vt, k)[j];
        }
    return longest(&left);
}

static void assert_just_above(double bound, double exact)
{
    assert_le(exact * (1 - 1e-9), bound);
    assert_le(bound, exact * (1 + 1e-6));
}

/* Without the map of the features, where that is the identity: they are the rows, exactly. */
static lowrank_facts facts_of(stage *s, const net *n, const pare_mat *x, const pare_graph *g,
                              size_t d)
{
    pare_model *const m = model_of(s, n);
    if (n->we.rows == n->we.cols) m->stem.map = (pare_dense){0};
    pare_input in = input_of(x, g);
    const pare_inputs set = {1, &in};
    const lowrank_facts p = lowrank_measure(&s->w, m, n, &set, d);
    assert_work(s);
    assert_true(p.bound.v == pare_lowrank_bound(p.maps, p.rows, n->nlayers, p.eps).v);
    pare_model_free(m);
    return p;
}

static void times(pare_mat *m, double by)
{
    for (size_t i = 0; i < m->rows * m->cols; i++) m->v[i] *= by;
}

/* A net of two layers whose hidden rows have rank D, and rows of any rank. */
static net two_layers(stage *s, pare_mat *x, pare_graph *g)
{
    const net n = rand_net(
        s, (net_shape){.features = D, .dim = D, .layers = 2, .heads = 1, .ffn = 7, .gain = 1});
    *g = rand_graph(s, NODES, 3, NULL);
    *x = rand_mat(s, NODES, D, 1);
    return n;
}

/* eps: rows at the start and hidden rows of both layers; rows behind a layer do not count. The
 * size: what layers read; neither hidden rows nor the last ones count. */
static void the_farthest_and_the_longest_row_are_found_where_they_are(void **state)
{
    (void)state;
    /* What the input, W1 and W2 of both layers are multiplied with. */
    static const double by[][5] = {{1, 0.1, 1, 0.1, 1},     {0.1, 3, 1, 0.1, 1},
                                   {0.1, 1, 3, 100, 1},     {0.1, 1, 30, 0.01, 1},
                                   {0.1, 0.1, 1, 0.1, 100}, {1, 100, 0.001, 1, 1}};
    size_t far[3] = {0}, size[2] = {0}, behind = 0;
    for (size_t t = 0; t < sizeof by / sizeof *by; t++) {
        stage st, *const s = &st;
        stage_open(s, 20 + t);
        pare_mat x;
        pare_graph g;
        net n = two_layers(s, &x, &g);
        times(&x, by[t][0]);
        for (size_t l = 0; l < 2; l++) {
            times(&n.layers[l].w1, by[t][1 + 2 * l]);
            times(&n.layers[l].w2, by[t][2 + 2 * l]);
        }
        const lowrank_facts p = facts_of(s, &n, &x, &g, RANK);
        double eps[3] = {farthest(s, &x, RANK)}, rows[2] = {longest(&x)};
        pare_mat h = x;
        for (size_t l = 0; l < 2; l++) {
            const pare_mat z = layer_attention(&s->w, &n.layers[l], &h, &g);
            const pare_mat hidden = layer_hidden(&s->w, &n.layers[l], &z);
            eps[1 + l] = farthest(s, &hidden, RANK);
            h = layer_ffn(&s->w, &n.layers[l], &z, &hidden);
            if (l == 0) rows[1] = longest(&h);
            behind += farthest(s, &h, RANK) > 2 * p.eps.v;
        }
        assert_just_above(p.eps.v, fmax(eps[0], fmax(eps[1], eps[2])));
        assert_just_above(p.rows.v, fmax(rows[0], rows[1]));
        for (size_t k = 0; k < 3; k++) far[k] += p.eps.v <= eps[k] * (1 + 1e-6);
        for (size_t k = 0; k < 2; k++) size[k] += p.rows.v <= rows[k] * (1 + 1e-6);
        stage_close(s);
    }
    for (size_t k = 0; k < 3; k++) assert_true(far[k] > 0);
    for (size_t k = 0; k < 2; k++) assert_true(size[k] > 0);
    assert_true(behind > 0);
}

/* Each map of each layer in turn is the largest: queries with their scale, keys, output and values
 * together, and the hidden layer's two. */
static void the_largest_map_is_found_where_it_is(void **state)
{
    (void)state;
    for (size_t t = 0; t <= 12; t++) { /* the last: all of them far below 1 */
        stage st, *const s = &st;
        stage_open(s, 40);
        pare_mat x;
        pare_graph g;
        net n = two_layers(s, &x, &g);
        double norms[2][6];
        for (size_t l = 0; l < 2; l++) {
            net_layer *const k = &n.layers[l];
            net_head *const h = &k->heads[0];
            times(&h->wo, 1.25);
            h->scale = l ? -0.3 : 0.3;
            pare_mat *const all[] = {&h->wq, &h->wk, &h->wo, &h->wv, &k->w1, &k->w2};
            for (size_t i = 0; i < 6; i++) {
                if (t == 6 * l + i) times(all[i], 10);
                if (t == 12) times(all[i], 0.01);
                norms[l][i] = mat_norm_est(&s->w, all[i]);
            }
            norms[l][0] *= 0.3;
            norms[l][2] *= norms[l][3];
        }
        double most = 0;
        for (size_t l = 0; l < 2; l++)
            for (size_t i = 0; i < 6; i++)
                if (i != 3) most = fmax(most, norms[l][i]);
        const size_t meant = t % 6 == 3 ? 2 : t % 6; /* values count with their output */
        assert_true(t == 12 ? most < 0.1 : most == norms[t / 6][meant]);
        assert_just_above(facts_of(s, &n, &x, &g, RANK).maps.v, most);
        stage_close(s);
    }
}

/* One map of the features, 1e7 (x_j - x_(j+D)), that loses digits: what its rows may be off by is
 * added to their distance and to their length, sqrt(D) times the radius of an entry. */
static void radii_of_rows_count(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 3);
    pare_mat unused;
    pare_graph g;
    net n = two_layers(s, &unused, &g);
    for (size_t l = 0; l < 2; l++) times(&n.layers[l].w1, 1e-9);
    const double far = 1e12;
    n.we = mat_zeros(&s->w, D, 2 * D);
    for (size_t j = 0; j < D; j++) {
        pare_row_mut(&n.we, j)[j] = far;
        pare_row_mut(&n.we, j)[j + D] = -far;
    }
    pare_mat x = mat_zeros(&s->w, NODES, 2 * D);
    for (size_t i = 0; i < NODES; i++)
        for (size_t j = 0; j < D; j++) {
            pare_row_mut(&x, i)[j + D] = pare_rng_normal(&s->rng);
            pare_row_mut(&x, i)[j] = pare_row(&x, i)[j + D] + (double)(i + 1) / far;
        }
    pare_model *const m = model_of(s, &n);
    pare_model start = *m;
    start.nblocks = 0;
    start.top = (pare_top){0};
    pare_model_norms *norms = NULL;
    pare_enclosure e;
    const pare_input in = input_of(&x, &g);
    assert_ok(pare_model_norms_new(&norms, s->w.arena, &start, NULL, &s->err), &s->err);
    assert_ok(pare_enclose(&e, s->w.arena, &start, norms, &in, NULL, &s->err), &s->err);
    assert_true(e.rows == NODES && e.cols == D);
    const pare_mat mid = pare_mat_of(e.mid, NODES, D);
    double size = 0, eps = 0;
    const svd_factors f = svd_of(&s->w, &mid);
    for (size_t i = 0; i < NODES; i++) {
        double c = 0, left = 0;
        for (size_t j = 0; j < D; j++) c += pare_row(&mid, i)[j] * pare_row(&f.vt, 0)[j];
        for (size_t j = 0; j < D; j++)
            left += pow(pare_row(&mid, i)[j] - c * pare_row(&f.vt, 0)[j], 2);
        eps = fmax(eps, sqrt(left) + sqrt(D) * e.rad[i]);
        size = fmax(size, row_length(&mid, i) + sqrt(D) * e.rad[i]);
        assert_true(e.rad[i] > 1e-5);
    }
    assert_true(eps > 1e-8 * size && sqrt(D) * e.rad[0] > 0.5 * farthest(s, &mid, 1));
    const lowrank_facts p = facts_of(s, &n, &x, &g, 1);
    assert_just_above(p.eps.v, eps);
    assert_just_above(p.rows.v, size);
    pare_model_free(m);
    stage_close(s);
}

/* Rows (H, r) and (H, -r) with the rows H of a Hadamard matrix of 64: they are r from the 64
 * directions of H. Beside r = 1e-8 the roundings of that distance are seen: sums of 65 terms, of
 * lengths 8 (the row), and 8 times 8 (its coordinates, the directions). */
static void roundings_of_the_distance_count(void **state)
{
    (void)state;
    enum { N = 64 };
    stage st, *const s = &st;
    stage_open(s, 4);
    const double r = 1e-8;
    net n = rand_net(
        s, (net_shape){.features = N + 1, .dim = N + 1, .layers = 1, .heads = 1, .gain = 1e-12});
    pare_mat x = mat_zeros(&s->w, 2 * N, N + 1);
    for (size_t i = 0; i < 2 * N; i++) {
        for (size_t j = 0; j < N; j++)
            pare_row_mut(&x, i)[j] = __builtin_popcountll((i % N) & j) % 2 ? -1 : 1;
        pare_row_mut(&x, i)[N] = i < N ? r : -r;
    }
    const pare_graph g = rand_graph(s, 2 * N, 2, NULL);
    const lowrank_facts p = facts_of(s, &n, &x, &g, N);
    const double off = (N + 3) * 0x1p-53 * (8 + 8 * 8);
    assert_near(p.eps.v, r + off, 0.01 * off);
    assert_near(p.rows.v, 8, 1e-12);
    stage_close(s);
}

/* Data of rank 2: what is left is rounding, and 1e-9 of the rows is said. */
static void exact_subspaces_are_within_1e_9_of_the_rows(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 6);
    const net n = rand_net(
        s, (net_shape){.features = D, .dim = D, .layers = 1, .heads = 1, .lowrank = 1, .gain = 1});
    const pare_graph g = rand_graph(s, NODES, 3, NULL);
    pare_mat x = rand_product(s, NODES, RANK, D);
    times(&x, 0.01);
    const lowrank_facts p = facts_of(s, &n, &x, &g, RANK);
    assert_just_above(p.eps.v, 1e-9 * p.rows.v);
    assert_just_above(p.rows.v, longest(&x));
    stage_close(s);
}

/* An input that is no number is refused; a weight that is none bounds nothing. */
static void what_is_not_finite_bounds_nothing(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 9);
    pare_mat x;
    pare_graph g;
    const net n = two_layers(s, &x, &g);
    pare_model *const m = model_of(s, &n);
    pare_input in = input_of(&x, &g);
    const pare_inputs set = {1, &in};
    const double kept = x.v[3], *const w1 = m->blocks[0].ffn.layers[0].w.data;
    double bad[D * 7];
    for (size_t i = 0; i < D * 7; i++) bad[i] = INFINITY;
    m->blocks[0].ffn.layers[0].w.data = bad;
    assert_true(isinf(lowrank_measure(&s->w, m, &n, &set, RANK).bound.v));
    m->blocks[0].ffn.layers[0].w.data = w1;
    s->w.st = PARE_OK;
    x.v[3] = INFINITY;
    assert_true(isinf(lowrank_measure(&s->w, m, &n, &set, RANK).bound.v));
    assert_status(s->w.st, PARE_ERR_NONFINITE, &s->err);
    s->w.st = PARE_OK;
    x.v[3] = kept;
    assert_true(isfinite(lowrank_measure(&s->w, m, &n, &set, RANK).bound.v));
    assert_work(s);
    pare_model_free(m);
    stage_close(s);
}

/* Lists with one number more than counts, in a net of two layers whose second one breaks a
 * hypothesis. */
static void every_hypothesis_is_looked_at_in_every_layer(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 8);
    pare_mat x;
    pare_graph g;
    net n = two_layers(s, &x, &g);
    net_layer *const l = &n.layers[1];
    double **const lists[] = {&l->heads[0].bq, &l->heads[0].bv, &l->c1, &l->b1, &l->c2};
    static const size_t sizes[] = {D, D, D, 7, D};
    assert_null(lowrank_refuses(&n));
    for (size_t i = 0; i < 5; i++) {
        double *const list = vec_zeros(&s->w, sizes[i] + 1);
        *lists[i] = list;
        list[sizes[i]] = 1; /* behind it */
        assert_null(lowrank_refuses(&n));
        for (size_t j = 0; j < sizes[i]; j++) {
            list[j] = -1;
            assert_string_equal(lowrank_refuses(&n), "no biases");
            list[j] = 0;
        }
    }
    pare_mat *const skips[] = {&l->r1, &l->r2};
    for (size_t i = 0; i < 2; i++) {
        *skips[i] = mat_identity(&s->w, D);
        assert_string_equal(lowrank_refuses(&n), "no skips");
        skips[i]->v = NULL;
    }
    for (int act = 0; act < 6; act++) {
        l->act = (pare_act)act;
        assert_true((lowrank_refuses(&n) == NULL) == (pare_act_lipschitz(l->act) <= 1));
    }
    l->act = PARE_ACT_NONE;
    l->nheads = 2;
    assert_string_equal(lowrank_refuses(&n), "one head");
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_farthest_and_the_longest_row_are_found_where_they_are),
        cmocka_unit_test(the_largest_map_is_found_where_it_is),
        cmocka_unit_test(radii_of_rows_count),
        cmocka_unit_test(roundings_of_the_distance_count),
        cmocka_unit_test(exact_subspaces_are_within_1e_9_of_the_rows),
        cmocka_unit_test(what_is_not_finite_bounds_nothing),
        cmocka_unit_test(every_hypothesis_is_looked_at_in_every_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
