/* Tests src/width/apriori.c: every term of the bounds from norms, against the same formulas by
 * plain sums with norms from singular values. */
#include "model/model_facts.h"
#include "width/jl_bounds.h"
#include "width_nets.h"
#include "width/prove.h"

/* ---- the formulas, by hand ------------------------------------------------------------------- */

static double length(const double *v, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum);
}

static double norm(stage *s, const pare_mat *m)
{
    return m->v ? mat_norm_est(&s->w, m) : 0;
}

static double rows_after(stage *s, const net_layer *l, double h)
{
    double z = norm(s, &l->r1) * h + length(l->c1, l->heads[0].wo.rows);
    for (size_t i = 0; i < l->nheads; i++) {
        const net_head *const k = &l->heads[i];
        z += norm(s, &k->wo) * (norm(s, &k->wv) * h + length(k->bv, k->wv.rows));
    }
    const double hidden = norm(s, &l->w1) * z + length(l->b1, l->w1.rows);
    return norm(s, &l->r2) * z + length(l->c2, l->w2.rows) +
           norm(s, &l->w2) * pare_act_lipschitz(l->act) * hidden;
}

static double output_by_hand(stage *s, const net *n, double x)
{
    double h = norm(s, &n->we) * x + length(n->be, n->we.rows), most = 0;
    for (size_t l = 0; l < n->nlayers; l++) h = rows_after(s, &n->layers[l], h);
    for (size_t c = 0; c < n->wh.rows; c++)
        most = fmax(most, length(pare_row(&n->wh, c), n->wh.cols) * h + fabs(n->bh[c]));
    return most;
}

/* |[Wq bq]^T Wk - [Wq' bq']^T Wk'|_2 by plain sums, and what computing it in f64 may be off by. */
static double forms_apart(stage *s, const net_head *a, const net_head *b)
{
    const size_t d = a->wq.cols;
    pare_mat gap = mat_zeros(&s->w, d + 1, d);
    double size = 0;
    const net_head *const both[] = {a, b};
    for (int k = 0; k < 2; k++) {
        const net_head *const hd = both[k];
        double q = 0, keys = 0;
        for (size_t r = 0; r < hd->wq.rows; r++) {
            for (size_t i = 0; i <= d; i++) {
                const double x = i < d ? pare_row(&hd->wq, r)[i] : hd->bq[r];
                q += x * x;
                for (size_t j = 0; j < d; j++)
                    pare_row_mut(&gap, i)[j] += (k ? -1 : 1) * x * pare_row(&hd->wk, r)[j];
            }
            for (size_t j = 0; j < d; j++) keys += pow(pare_row(&hd->wk, r)[j], 2);
        }
        size += sqrt(q * keys);
    }
    const double terms = (double)(a->wq.rows + b->wq.rows + 2);
    return mat_norm_est(&s->w, &gap) + terms * 0x1p-53 / (1 - terms * 0x1p-53) * size +
           terms * 0x1p-990;
}

static double gap_by_hand(stage *s, const net *f, const net *g, double x)
{
    double h = norm(s, &f->we) * x + length(f->be, f->we.rows), e = 0, most = 0;
    for (size_t l = 0; l < f->nlayers; l++) {
        const net_layer *const a = &f->layers[l];
        double z = norm(s, &a->r1) * e;
        for (size_t i = 0; i < a->nheads; i++) {
            const net_head *const k = &a->heads[i];
            const double q = norm(s, &k->wq), keys = norm(s, &k->wk), v = norm(s, &k->wv);
            const double form = forms_apart(s, k, &g->layers[l].heads[i]), far = h + e;
            const double scores = fabs(k->scale) * ((q * h + length(k->bq, k->wq.rows)) * keys * e +
                                                    q * e * keys * h + q * keys * e * e +
                                                    sqrt(1 + far * far) * form * far);
            const double weights = 2 * tanh(scores / 2);
            z += norm(s, &k->wo) * (v * e + weights * (v * h + length(k->bv, k->wv.rows)));
        }
        e = (norm(s, &a->r2) + pare_act_lipschitz(a->act) * norm(s, &a->w1) * norm(s, &a->w2)) * z;
        h = rows_after(s, a, h);
    }
    for (size_t c = 0; c < f->wh.rows; c++)
        most = fmax(most, length(pare_row(&f->wh, c), f->wh.cols));
    return most * e;
}

/* Not below, and above by no more than norms are (1e-10 each, in a chain of them). */
static void assert_just_above(double bound, double exact)
{
    assert_le(exact * (1 - 1e-12), bound);
    assert_le(bound, exact * (1 + 1e-7));
}

/* ---- queries and keys ------------------------------------------------------------------------ */

/* Sides of every matrix differ, so that no length is taken for another. */
static net some_net(stage *s, uint64_t seed)
{
    const size_t heads = 1 + seed % 2;
    const net n = rand_net(s, (net_shape){.features = 3,
                                          .dim = 4,
                                          .layers = 1 + seed % 3,
                                          .classes = 2,
                                          .heads = heads,
                                          .ffn = 5,
                                          .residual = seed % 4 != 3,
                                          .gain = 0.25 + 0.5 * pare_rng_uniform(&s->rng)});
    for (size_t l = 0; l < n.nlayers; l++) {
        n.layers[l].act = (pare_act)(seed % 6);
        for (size_t i = 0; i < heads; i++)
            n.layers[l].heads[i].scale *= seed % 5 == 0 ? -1 : 1 + pare_rng_uniform(&s->rng);
    }
    return n;
}

/* Its queries and keys moved by about `by` of themselves. */
static net moved_scores(stage *s, const net *n, double by)
{
    const net g = net_shallow(&s->w, n);
    for (size_t l = 0; l < g.nlayers; l++)
        for (size_t i = 0; i < g.layers[l].nheads; i++) {
            net_head *const k = &g.layers[l].heads[i];
            k->wq = mat_copy(&s->w, &k->wq);
            k->wk = mat_copy(&s->w, &k->wk);
            double *const bq = vec_zeros(&s->w, k->wq.rows);
            for (size_t r = 0; r < k->wq.rows; r++) bq[r] = k->bq[r] * (1 + by);
            k->bq = bq;
            for (size_t j = 0; j < k->wq.rows * k->wq.cols; j++) {
                k->wq.v[j] *= 1 + by * pare_rng_normal(&s->rng);
                k->wk.v[j] *= 1 + by * pare_rng_normal(&s->rng);
            }
        }
    return g;
}

static void the_bound_is_its_formula(void **state)
{
    (void)state;
    static const double by[] = {1e-3, 3e-3, 1e-2, 0.1, 1};
    size_t from_scores = 0;
    for (uint64_t seed = 0; seed < 120; seed++) {
        stage st, *const s = &st;
        stage_open(s, seed);
        const net f = some_net(s, seed), g = moved_scores(s, &f, by[seed % 5]);
        const double x = 0.1 + pare_rng_uniform(&s->rng);
        const double gap = gap_by_hand(s, &f, &g, x);
        const double cap = output_by_hand(s, &f, x) + output_by_hand(s, &g, x);
        const double bound = apriori_gap(&s->w, &f, &g, pare_ub_exact(x)).v;
        assert_work(s);
        assert_just_above(bound, fmin(gap, cap));
        from_scores += gap < 0.9 * cap;
        stage_close(s);
    }
    assert_true(from_scores > 80);
}

/* Queries doubled, keys halved, and a row of zeros beside them: the same form, of small whole
 * numbers, so that its computed distance is 0. What is left is what its roundings could have
 * been. */
static void equal_forms_are_as_far_apart_as_their_rounding(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 5);
    const net f = some_net(s, 2), g = net_shallow(&s->w, &f); /* three layers, residual, one head */
    for (size_t l = 0; l < f.nlayers; l++) {
        net_head *const a = &f.layers[l].heads[0], *const b = &g.layers[l].heads[0];
        const size_t k = a->wq.rows, d = a->wq.cols;
        for (size_t i = 0; i < k * d; i++) {
            a->wq.v[i] = 2 * (double)pare_rng_below(&s->rng, 5) - 4;
            a->wk.v[i] = 2 * (double)pare_rng_below(&s->rng, 5) - 4;
        }
        for (size_t r = 0; r < k; r++) a->bq[r] = (double)r;
        b->wq = mat_zeros(&s->w, k + 1, d);
        b->wk = mat_zeros(&s->w, k + 1, d);
        b->bq = vec_zeros(&s->w, k + 1);
        for (size_t r = 0; r < k; r++) {
            b->bq[r] = 2 * a->bq[r];
            for (size_t j = 0; j < d; j++) {
                pare_row_mut(&b->wq, r)[j] = 2 * pare_row(&a->wq, r)[j];
                pare_row_mut(&b->wk, r)[j] = pare_row(&a->wk, r)[j] / 2;
            }
        }
        for (size_t j = 0; j < d; j++) pare_row_mut(&b->wk, k)[j] = 3; /* meets the row of zeros */
    }
    const double exact = gap_by_hand(s, &f, &g, 0.5);
    assert_true(exact > 0 && exact < 1e-5);
    assert_just_above(apriori_gap(&s->w, &f, &g, pare_ub_exact(0.5)).v, exact);
    stage_close(s);
}

/* Products below the smallest number are lost: forms of 2^-1200 and 3 * 2^-1200 both come out as
 * 0. */
static void forms_that_underflow_are_not_taken_for_equal(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 1);
    const net f = rand_net(s, (net_shape){.features = 1, .dim = 1, .layers = 1, .heads = 1});
    net_head *const a = &f.layers[0].heads[0];
    a->wq.v[0] = a->wk.v[0] = 0x1p-600;
    a->wv.v[0] = f.layers[0].w1.v[0] = f.layers[0].w2.v[0] = 1;
    const net g = net_shallow(&s->w, &f);
    g.layers[0].heads[0].wq = mat_copy(&s->w, &a->wq);
    g.layers[0].heads[0].wq.v[0] = 3 * 0x1p-600;
    const double x = 0x1p480, exact = gap_by_hand(s, &f, &g, x);
    assert_true(exact > 1e-9 * x && exact < 1e-7 * x);
    assert_just_above(apriori_gap(&s->w, &f, &g, pare_ub_exact(x)).v, exact);
    stage_close(s);
}

/* ---- nets that differ elsewhere -------------------------------------------------------------- */

typedef struct difference {
    const char *what;
    void (*make)(net *g, net_layer *l, net_head *h);
} difference;

#define DIFFERENCE(name, change)                                                                   \
    static void in_##name(net *g, net_layer *l, net_head *h)                                       \
    {                                                                                              \
        (void)g, (void)l, (void)h;                                                                 \
        change;                                                                                    \
    }
DIFFERENCE(we, g->we.v[11] *= 1.5)
DIFFERENCE(we_first, g->we.v[0] *= 1.5)
DIFFERENCE(be_first, g->be[0] += 1)
DIFFERENCE(first_wv, l->heads[0].wv.v[0] *= 1.5)
DIFFERENCE(be, g->be[3] += 1)
DIFFERENCE(wh, g->wh.v[7] *= 1.5)
DIFFERENCE(bh, g->bh[1] += 1)
DIFFERENCE(layers, g->nlayers--)
DIFFERENCE(r1, l->r1.v[15] *= 1.5)
DIFFERENCE(no_r1, l->r1.v = NULL)
DIFFERENCE(r2, l->r2.v[15] *= 1.5)
DIFFERENCE(no_r2, l->r2.v = NULL)
DIFFERENCE(w1, l->w1.v[19] *= 1.5)
DIFFERENCE(w2, l->w2.v[19] *= 1.5)
DIFFERENCE(fewer, (l->w1.rows--, l->w2.cols--, l->w2.ld--))
DIFFERENCE(c1, l->c1[3] += 1)
DIFFERENCE(b1, l->b1[4] += 1)
DIFFERENCE(c2, l->c2[3] += 1)
DIFFERENCE(act, l->act = PARE_ACT_TANH)
DIFFERENCE(heads, l->nheads--)
DIFFERENCE(wv, h->wv.v[7] *= 1.5)
DIFFERENCE(wo, h->wo.v[7] *= 1.5)
DIFFERENCE(bv, h->bv[1] += 1)
DIFFERENCE(scale, h->scale *= 1.5)
static const difference differences[] = {{"first of we", in_we_first},
                                         {"first of be", in_be_first},
                                         {"wv of the first head", in_first_wv},
                                         {"we", in_we},
                                         {"be", in_be},
                                         {"wh", in_wh},
                                         {"bh", in_bh},
                                         {"layers", in_layers},
                                         {"r1", in_r1},
                                         {"no r1", in_no_r1},
                                         {"r2", in_r2},
                                         {"w1", in_w1},
                                         {"no r2", in_no_r2},
                                         {"w2", in_w2},
                                         {"fewer", in_fewer},
                                         {"c1", in_c1},
                                         {"b1", in_b1},
                                         {"c2", in_c2},
                                         {"wv", in_wv},
                                         {"act", in_act},
                                         {"heads", in_heads},
                                         {"wo", in_wo},
                                         {"bv", in_bv},
                                         {"scale", in_scale}};

/* Of two such nets only |f| + |g| is known; with the recursion it would be nearly 0. */
static void nets_that_differ_elsewhere_are_as_far_as_both_outputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        stage st, *const s = &st;
        const net_shape shape = {.features = 3,
                                 .dim = 4,
                                 .layers = 2,
                                 .classes = 2,
                                 .heads = 2,
                                 .ffn = 5,
                                 .residual = true,
                                 .gain = 0.5};
        stage_open(s, 7);
        const net f = rand_net(s, shape);
        s->rng = pare_rng_at(7, 0);
        net g = rand_net(s, shape); /* the same one once more */
        const net *const both[] = {&f, &g};
        for (size_t k = 0; k < 2 * (i % 2); k++) { /* outputs far below 1 */
            for (size_t j = 0; j < 8; j++) both[k]->wh.v[j] *= 1e-4;
            for (size_t j = 0; j < 2; j++) both[k]->bh[j] *= 1e-4;
        }
        assert_le(apriori_gap(&s->w, &f, &g, pare_ub_exact(0.5)).v, 1e-10);
        differences[i].make(&g, &g.layers[1], &g.layers[1].heads[1]);
        const double cap = output_by_hand(s, &f, 0.5) + output_by_hand(s, &g, 0.5);
        const double bound = apriori_gap(&s->w, &f, &g, pare_ub_exact(0.5)).v;
        if (!(bound >= 0.5 * cap)) print_error("%s: %g of %g\n", differences[i].what, bound, cap);
        assert_just_above(bound, cap);
        assert_work(s);
        stage_close(s);
    }
}

/* What is behind a list or a matrix is not compared. */
static void nets_are_compared_to_the_end_of_their_lists(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 7);
    const net f = some_net(s, 0);
    net g = f;
    g.be = vec_zeros(&s->w, f.we.rows + 1);
    memcpy(g.be, f.be, f.we.rows * sizeof *g.be);
    g.be[f.we.rows] = NAN;
    g.we.v = vec_zeros(&s->w, f.we.rows * f.we.cols + 1);
    memcpy(g.we.v, f.we.v, f.we.rows * f.we.cols * sizeof *g.we.v);
    g.we.v[f.we.rows * f.we.cols] = NAN;
    assert_le(apriori_gap(&s->w, &f, &g, pare_ub_exact(0.5)).v, 1e-10);
    assert_work(s);
    stage_close(s);
}

static void a_weight_that_is_no_number_bounds_nothing(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 7);
    const net f = some_net(s, 0);
    f.layers[0].w1.v[3] = INFINITY;
    assert_true(isinf(apriori_gap(&s->w, &f, &f, pare_ub_exact(0.5)).v));
    assert_status(s->w.st, PARE_ERR_NONFINITE, &s->err);
    stage_close(s);
}

/* ---- one norm for all ------------------------------------------------------------------------ */

static double moved(double w)
{
    return 2 * tanh(w / 2);
}

/* Theorems 3.3 and 4.2 of Shirzad 2024 as they are true, and the linear form of the first. */
static void the_recursions_are_their_formulas(void **state)
{
    (void)state;
    pare_rng rng = pare_rng_at(11, 0);
    for (int t = 0; t < 3000; t++) {
        const double b = 0.1 + 2 * pare_rng_uniform(&rng), s = 3 * pare_rng_uniform(&rng);
        const double eps = pow(10, -8 * pare_rng_uniform(&rng));
        const size_t layers = (size_t)(t % 5);
        const double c1 = pow(b, 3) + pow(b, 5) * s * (2 * s + 1);
        double jl = 0, low = eps, sum = 0;
        for (size_t l = 0; l < layers; l++) {
            const double w = b * b * (s + jl) * (s + jl) * eps + b * b * (2 * s * jl + jl * jl);
            jl = b * b * (b * jl + b * s * moved(w));
            const double through = pow(b, 3) * (low + s * moved(b * b * (2 * s * low + low * low)));
            low = hypot(b * eps, through);
            sum += pow(c1, (double)l);
        }
        const double linear = pow(b, 5) * s * pow(1 + s, 2) * sum * eps;
        const pare_ub bu = pare_ub_exact(b), su = pare_ub_exact(s), eu = pare_ub_exact(eps);
        const double got[] = {pare_jl_bound(bu, su, layers, eu).v,
                              pare_lowrank_bound(bu, su, layers, eu).v,
                              pare_jl_bound_linear(bu, su, layers, eu).v};
        const double want[] = {jl, low, linear};
        for (int k = 0; k < 3; k++) {
            assert_le(want[k] * (1 - 1e-13), got[k]);
            assert_le(got[k], want[k] * (1 + 1e-12));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_its_formula),
        cmocka_unit_test(equal_forms_are_as_far_apart_as_their_rounding),
        cmocka_unit_test(forms_that_underflow_are_not_taken_for_equal),
        cmocka_unit_test(nets_that_differ_elsewhere_are_as_far_as_both_outputs),
        cmocka_unit_test(nets_are_compared_to_the_end_of_their_lists),
        cmocka_unit_test(a_weight_that_is_no_number_bounds_nothing),
        cmocka_unit_test(the_recursions_are_their_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
