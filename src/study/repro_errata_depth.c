/* The depth paper's errata, computed. Networks are run where the statement is about networks. */
#include "repro_depth.h"
#include "repro_errata.h"
#include <math.h>

/* ---- by hand --------------------------------------------------------------------------------- */

static double largest(const double *x, size_t n)
{
    double m = 0;
    for (size_t i = 0; i < n; i++) m = fmax(m, fabs(x[i]));
    return m;
}

static sides fact_3_3_2(void)
{
    double a[] = {1, 1, 1, 1}, c[4];
    pare_mat product = pare_mat_of(c, 2, 2);
    const pare_mat ones = pare_mat_of(a, 2, 2);
    const pare_weight one = {PARE_F64, 2, 2, a};
    pare_gemm(&product, 1, &ones, false, &ones, false, 0);
    return (sides){largest(a, 4) * largest(a, 4), largest(c, 4),
                   largest(a, 4) * pare_norm_max_col(&one).v};
}

static sides fact_3_3_3(void)
{
    const double a = 1, b[] = {1, 1};
    return (sides){fabs(a) * largest(b, 2), fabs(a * b[0]) + fabs(a * b[1]),
                   2 * fabs(a) * largest(b, 2)};
}

/* One column without its midrange, entry i. */
static double res_at(const double *x, size_t n, size_t i)
{
    double low = x[0], high = x[0];
    for (size_t k = 1; k < n; k++) low = fmin(low, x[k]), high = fmax(high, x[k]);
    return x[i] - (low + high) / 2;
}

static sides lemma_4_1(void)
{
    const double eps = .25, a[] = {-8 - eps, 8 - eps, eps}, b[] = {-8, 8, 0};
    double apart = 0, moved = 0;
    for (size_t i = 0; i < 3; i++) {
        apart = fmax(apart, fabs(a[i] - b[i]));
        moved = fmax(moved, fabs(res_at(a, 3, i) - res_at(b, 3, i)));
    }
    return (sides){apart, moved, 2 * apart};
}

/* Two rows that leave the same largest entry: how far apart are they? */
static sides definition_3_4(void)
{
    const double z[] = {-1, -.5, 1, .5}, shift = .4;
    const double moved[] = {z[0], z[1] - shift, z[2], z[3] - shift};
    return (sides){0, largest(moved, 4) <= largest(z, 4) ? shift : 0, NAN};
}

static sides lemma_c1(void)
{
    const double eps = .7, a[] = {-eps, 0}, b[] = {eps, 0}, v[] = {1, -1};
    double p[2], q[2];
    softmax_of(p, a, 2);
    softmax_of(q, b, 2);
    const double moved[] = {p[0] - q[0], p[1] - q[1]};
    return (sides){largest(moved, 2) * largest(v, 2), fabs(moved[0] * v[0] + moved[1] * v[1]),
                   tanh(2 * eps / 4) * (v[0] - v[1])};
}

/* Scores score x_i x_j of rows with equal entries x_i. */
static void flat_softmax(double *p, const double *x, size_t n, size_t i, double score)
{
    double a[8];
    for (size_t j = 0; j < n; j++) a[j] = score * x[i] * x[j];
    softmax_of(p, a, n);
}

static sides lemma_5_1(void)
{
    const double d = 6, w = .05, x[] = {-.3, -.3, .3, .3}, score = w * w * d * d * d;
    double y[4], theta = 0, res = 0;
    for (size_t i = 0; i < 4; i++) {
        double p[4];
        flat_softmax(p, x, 4, i, score);
        y[i] = 0;
        for (size_t j = 0; j < 4; j++) y[i] += p[j] * x[j] * w * d;
        theta = fmax(theta, 2 * score * fabs(x[i]) * .3);
    }
    for (size_t i = 0; i < 4; i++) res = fmax(res, fabs(res_at(y, 4, i)));
    return (sides){expm1(theta) * w * .3, res, tanh(theta / 2) * w * d * .3};
}

static sides lemma_b4(void)
{
    const double eta = .05, beta = .5, r = 1.2, d = 6;
    const double most = beta * (d * eta * eta) * (d * r) * (d * r); /* an entry of R W R' */
    return (sides){beta * eta * eta * r * r, 2 * most, 2 * beta * d * d * d * eta * eta * r * r};
}

static sides lemma_5_2(void)
{
    const double x[] = {4, 5, 6.5};
    double r[3], worst = 0;
    for (size_t i = 0; i < 3; i++) r[i] = res_at(x, 3, i);
    for (size_t i = 0; i < 3; i++) {
        double p[3], q[3];
        flat_softmax(p, x, 3, i, 1);
        flat_softmax(q, r, 3, i, 1);
        worst = fmax(worst, variation_of(p, q, 3));
    }
    return (sides){0, worst, NAN};
}

static sides lemma_d5(void)
{
    sides out = {NAN, NAN, NAN};
    const double a[] = {2, 0}, b[] = {.01, -.01}, sum[] = {2.01, -.01};
    double p[2], q[2];
    softmax_of(p, sum, 2);
    softmax_of(q, b, 2);
    out.printed = 4 * largest(b, 2);
    out.is = fabs(p[0] - q[0]);
    softmax_of(q, a, 2);
    out.holds = fabs(p[0] - q[0]);
    return out;
}

static sides lemma_d6(void)
{
    const double w = 1e-4, step = 1e-3, d = 8, x[] = {1, -1}, y[] = {1 + step, -1 - step};
    double p[2], q[2];
    flat_softmax(p, x, 2, 0, w * d * d);
    flat_softmax(q, y, 2, 0, w * d * d);
    const double range = w * d * d * (step * 2 + (1 + step) * 2 * step);
    return (sides){12 * w * step, fabs(p[0] - q[0]), tanh(range / 4)};
}

static sides lemma_d7(void)
{
    const double eta = .1, x = 2, y = -1; /* no scores, one token */
    return (sides){eta, fabs(eta * x - eta * y), eta * fabs(x - y)};
}

static sides remark_d3(void)
{
    double m[3][4] = {{1, 1, 0, 0}, {1, 0, 1, 0}, {2, 1, 1, 0}}, norm[3];
    for (size_t i = 0; i < 3; i++) {
        const double *const v = m[i];
        const double rows = fmax(v[0] + v[1], v[2] + v[3]), cols = fmax(v[0] + v[2], v[1] + v[3]);
        norm[i] = sqrt(rows * cols);
    }
    return (sides){norm[0] + norm[1], norm[2], NAN};
}

/* ---- networks whose weights are all eta, on tokens of ones ----------------------------------- */

typedef struct bench {
    pare_arena *a;
    pare_model *m;
    compared c;
    pare_inputs x;
} bench;

static void bench_close(bench *b)
{
    pare_model_free(b->m);
    pare_arena_free(b->a);
}

/* Close it in any case. */
static pare_status bench_open(bench *b, size_t d, size_t heads, size_t layers, double eta,
                              pare_err *err)
{
    const san_shape shape = {
        .layers = layers, .heads = heads, .dim = d, .scale = 1, .size = eta, .draw = SAN_SAME};
    pare_rng rng = pare_rng_at(0, 0);
    *b = (bench){.a = pare_arena_new()};
    double *const one = b->a ? pare_alloc(b->a, d, sizeof *one) : NULL;
    for (size_t i = 0; one && i < d; i++) one[i] = 1;
    const san_tokens t = {.n = 1, .tokens = 2, .dim = d, .offset = one};
    pare_status st = one ? san_new(&b->m, &shape, &rng, err) : pare_no_memory(err);
    if (!st) st = san_inputs(&b->x, b->a, &t, &rng, err);
    if (!st) st = compared_open(&b->c, b->a, b->m, &b->x, NULL, err);
    return st;
}

/* at: d, H, eta. A layer grows the largest entry, which is 1, by 1 + H eta. */
static pare_status one_layer_grows(sides *out, const erratum *e, pare_err *err)
{
    const double d = e->at[0], h = e->at[1], eta = e->at[2];
    bench b;
    const pare_status st = bench_open(&b, (size_t)d, (size_t)h, 1, eta, err);
    if (!st) *out = (sides){1 + h * eta, san_largest(b.c.y, NULL, b.c.n), 1 + h * d * eta};
    bench_close(&b);
    return st;
}

/* at: d, H, L, eta. One layer kept, Theorem D.1 as printed; what holds where it is quick. */
static pare_status theorem_d1(sides *out, const erratum *e, pare_err *err)
{
    const size_t d = (size_t)e->at[0], h = (size_t)e->at[1], layers = (size_t)e->at[2];
    bench b;
    pare_model *g = NULL;
    pare_collapse_bound sound = {.bound = {NAN}};
    pare_status st = bench_open(&b, d, h, layers, e->at[3], err);
    if (!st) st = compared_make(&g, b.m, PARE_ONE_KEEP, layers - 1, NULL, err);
    if (!st) st = compared_model(&out->is, &b.c, g, san_largest);
    if (!st && d < 64) st = pare_collapse_apriori(&sound, b.m, g, 1, NULL, err);
    const pare_collapse_printed p = pare_collapse_paper(e->at[3], 1, h, layers);
    if (!st && p.holds) out->printed = p.bound;
    out->holds = sound.bound.v;
    pare_model_free(g);
    bench_close(&b);
    return st;
}

/* at: d, H, L, eta. The last line takes 2 A / L for what the bound is. */
static pare_status d1_last_line(sides *out, const erratum *e, pare_err *err)
{
    const pare_collapse_printed p =
        pare_collapse_paper(e->at[3], 1, (size_t)e->at[1], (size_t)e->at[2]);
    (void)err;
    *out = (sides){p.claim, 8 * e->at[1] * p.eps, NAN};
    return PARE_OK;
}

static sides d1_contraction(void)
{
    const pare_collapse_printed p = pare_collapse_paper(.003, 1, 1, 100);
    const double eta = .003, x = 1, y = .5; /* one token: P = 1 */
    return (sides){p.c * fabs(x - y), fabs((x + eta * x) - (y + eta * y)), (1 + eta) * fabs(x - y)};
}

static sides d1_residual_path(void)
{
    const double eta = .003;
    double x = 1;
    for (int l = 0; l < 99; l++) x += eta * x;
    return (sides){fabs(eta * x - eta), (x + eta * x) - (1 + eta), NAN};
}

/* Every one-layer network is far from this one; written a thousand times over, its entries are
 * .002 and the hypotheses hold. */
static pare_status d1_any_network(sides *out, const erratum *e, pare_err *err)
{
    static const double layers[2][2] = {{3, -2}, {-3, 1}};
    const pare_collapse_printed p = pare_collapse_paper(2 / 1000.0, 2, 1, 2);
    (void)e;
    out->printed = p.holds ? p.bound : NAN;
    return pare_collapse_lower(&out->is, layers, 2, 2, 48, err);
}

/* Order in eta of what a collapse loses, from eta = 1e-3 and 2e-3; random tokens and weights. */
static pare_status order_of(double *out, pare_collapse kind, pare_err *err)
{
    const double eta[] = {1e-3, 2e-3};
    double off[2] = {0, 0};
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < 2; i++) {
        const san_shape shape = {
            .layers = 3, .heads = 2, .dim = 4, .scale = 1, .size = eta[i], .draw = SAN_EVEN};
        const san_tokens t = {.n = 4, .tokens = 6, .dim = 4, .spread = 1};
        pare_rng rng = pare_rng_at(3, 0);
        bench b = {.a = pare_arena_new()};
        st = b.a ? san_new(&b.m, &shape, &rng, err) : pare_no_memory(err);
        if (!st) st = san_inputs(&b.x, b.a, &t, &rng, err);
        if (!st) st = compared_open(&b.c, b.a, b.m, &b.x, NULL, err);
        if (!st) st = compared_collapse(&off[i], &b.c, kind, 0, san_largest);
        bench_close(&b);
    }
    *out = log_slope(eta, off, 2);
    return st;
}

/* Doing nothing, all weights eta, on ones: (1 + H d eta)^L - 1. */
static pare_status theorem_1_2(sides *out, const erratum *e, pare_err *err)
{
    const double eta[] = {1e-3, 2e-3};
    double off[2] = {0, 0};
    pare_status st = PARE_OK;
    (void)e;
    for (size_t i = 0; !st && i < 2; i++) {
        bench b;
        st = bench_open(&b, 4, 2, 3, eta[i], err);
        if (!st) st = compared_collapse(&off[i], &b.c, PARE_ONE_IDENTITY, 0, san_largest);
        bench_close(&b);
    }
    out->printed = 1;
    out->is = log_slope(eta, off, 2);
    return st ? st : order_of(&out->holds, PARE_ONE_UNIFORM, err);
}

/* ---- skips, masks ---------------------------------------------------------------------------- */

/* Largest difference of two rows of one column. */
static double spread_of(const double *y, size_t rows, size_t d)
{
    double most = 0;
    for (size_t i = 0; i < rows * d; i++)
        for (size_t k = i % d; k < rows * d; k += d) most = fmax(most, fabs(y[i] - y[k]));
    return most;
}

/* How far tokens are apart behind three layers, with and without skips; Wv = 0 with them. */
static pare_status conclusion(sides *out, const erratum *e, pare_err *err)
{
    san_shape shape = {.layers = 3,
                       .heads = 2,
                       .dim = 4,
                       .scale = .5,
                       .size = .5,
                       .draw = SAN_EVEN,
                       .no_skip = true};
    const san_tokens t = {.n = 1, .tokens = 5, .dim = 4, .spread = 1};
    pare_rng rng = pare_rng_at(4, 0);
    pare_arena *const a = pare_arena_new();
    pare_model *without = NULL, *with = NULL, *still = NULL;
    pare_inputs x;
    double *y = NULL, *z = NULL;
    size_t n;
    (void)e;
    pare_status st = a ? san_new(&without, &shape, &rng, err) : pare_no_memory(err);
    shape.no_skip = false;
    if (!st) st = san_new(&with, &shape, &rng, err);
    if (!st) st = san_scaled(&still, with, 1, 0, err);
    if (!st) st = san_inputs(&x, a, &t, &rng, err);
    if (!st) st = san_answers(&y, &n, a, without, &x, err);
    if (!st) st = san_answers(&z, &n, a, still, &x, err);
    if (!st) *out = (sides){spread_of(y, 5, 4), spread_of(z, 5, 4), NAN};
    pare_model_free(still);
    pare_model_free(with);
    pare_model_free(without);
    pare_arena_free(a);
    return st;
}

/* at: d, L, A. Tokens of 1 and of -1 under a causal mask. */
static pare_status corollary_5_2(sides *out, const erratum *e, pare_err *err)
{
    enum { N = 16 };
    const double d = e->at[0], layers = e->at[1], a = e->at[2];
    double x[N * 4], *y, *z;
    size_t n;
    bench b;
    pare_model *g = NULL, *umix = NULL;
    pare_input in = {.batch = 1, .tokens = N, .width = (size_t)d, .x = x};
    const pare_inputs set = {1, &in};
    pare_status st = bench_open(&b, (size_t)d, 1, (size_t)layers, a / (layers * d), err);
    for (size_t i = 0; i < N * 4; i++) x[i] = i < N * 2 ? 1 : -1;
    out->printed = d * a * a * a * exp(4 * a) / (layers * layers);
    if (!st) st = compared_make(&g, b.m, PARE_ONE_UNIFORM, 0, NULL, err);
    if (!st) b.m->pattern.kind = g->pattern.kind = PARE_CAUSAL;
    if (!st) st = compared_make(&umix, b.m, PARE_ONE_UMIX, 0, NULL, err);
    if (!st) st = san_answers(&y, &n, b.a, b.m, &set, err);
    if (!st) st = san_answers(&z, &n, b.a, g, &set, err);
    if (!st) out->is = san_largest(y, z, n);
    if (!st) st = san_answers(&z, &n, b.a, umix, &set, err);
    if (!st) out->holds = san_largest(y, z, n);
    pare_model_free(umix);
    pare_model_free(g);
    bench_close(&b);
    return st;
}

/* ---- the list -------------------------------------------------------------------------------- */

static const erratum list[] = {
    {"Fact 3.3 (2)", "max-entry norms: |AB| <= |A||B|", "A = B = ones(2,2)",
     "|A| times the largest column sum of |B|",
     "depth_fact_3_3_max_entry_norm_is_not_submultiplicative", AT_MOST, .hand = fact_3_3_2},
    {"Fact 3.3 (3)", "sums of entries: |AB| <= |A| |B|_max", "A = [1], B = [1 1]",
     "times the number of columns of B", "depth_fact_3_3_entrywise_sum_needs_the_number_of_columns",
     AT_MOST, .hand = fact_3_3_3},
    {"Definition 3.4", "the row that is taken away is the only one: others are 0 away",
     "columns (-1, 1) and (-.5, .5)", "the midrange in every column",
     "depth_definition_3_4_has_many_minimisers", AT_MOST, .hand = definition_3_4},
    {"Lemma 4.1", "|Res(A) - Res(B)| <= |A - B|", "A = (-8.25, 7.75, .25), B = (-8, 8, 0)",
     "2 |A - B|, which is met", "res_moves_by_two_eps_not_one", AT_MOST, .hand = lemma_4_1},
    {"Lemma 5.1", "|Res SAtt| <= (e^theta - 1)|Wv||Res X|", "d = 6, all weights .05",
     "tanh(theta / 2) times the largest column sum, met here",
     "depth_lemma_5_1_is_false_by_the_width", AT_MOST, .hand = lemma_5_1},
    {"Lemma 5.2, C.1", "attention does not see a shift of X: total variation 0",
     "X = (4, 5, 6.5), width 1", "keys may be shifted, queries not",
     "depth_lemma_5_2_scores_see_the_shift", AT_MOST, .hand = lemma_5_2},
    {"Lemma B.2, Corollary D.4, Lemma C.1 (2)", "|(P - P') V| <= |P - P'|_max |V|_max",
     "logits (-.7, 0) and (.7, 0), V = (1, -1)", "total variation times the diameter of V",
     "depth_lemma_c1_needs_the_sum_of_weights_not_the_largest", AT_MOST, .hand = lemma_c1},
    {"Lemma B.4", "theta <= beta eta^2 |Res X|^2", "d = 6, all weights eta", "2 d^3 times that",
     "depth_lemma_b4_misses_the_cube_of_the_width", AT_MOST, .hand = lemma_b4},
    {"Lemma C.2", "a layer grows entries by 1 + H eta at most", "H = 2, d = 8, all weights .01",
     "1 + H d eta, met here", "depth_lemma_d8_misses_the_width", AT_MOST, .look = one_layer_grows,
     .at = {8, 2, .01}},
    {"Lemma D.5", "|softmax(a + b) - softmax(b)| <= 4|b|", "a = (2, 0), b = (.01, -.01)",
     "softmax(a) in the place of softmax(b), then |b| / 2",
     "depth_lemma_d5_compares_with_the_wrong_softmax", AT_MOST, .hand = lemma_d5},
    {"Lemma D.6", "|softm(X) - softm(Y)| <= 12|X||W||X - Y|", "d = 8, all weights equal",
     "tanh of a quarter of the range of the change of scores", "depth_lemma_d6_misses_the_width",
     AT_MOST, .hand = lemma_d6},
    {"Lemma D.7", "|SAtt(X) - SAtt(Y)| <= K2, without |X - Y|", "Wq = 0, Wv = .1, tokens 2 and -1",
     "K2 |X - Y|", "depth_lemma_d7_drops_the_distance", AT_MOST, .hand = lemma_d7},
    {"Lemma D.8", "a layer grows entries by 1 + H eta at most", "d = 16, all weights .01",
     "1 + H d eta, met here", "depth_lemma_d8_misses_the_width", AT_MOST, .look = one_layer_grows,
     .at = {16, 1, .01}},
    {"Theorem 1.2", "one layer is O(eta) away: the order is 1 or more", "no layer at all",
     "it holds for doing nothing; one uniform head has order 3",
     "depth_theorem_1_2_holds_for_doing_nothing", AT_LEAST, .look = theorem_1_2},
    {"Theorem D.1", "its bound for the network of its proof (keep the last layer)",
     "d = 1, L = 100, eta = .003, X = 1",
     "the network of the proof is O(A phi0) away for every L; the bound of docs/depth.md",
     "depth_theorem_d1_fails_for_the_network_of_its_proof", AT_MOST, .look = theorem_d1,
     .at = {1, 1, 100, .003}},
    {"Theorem D.1", "its bound, all hypotheses hold", "d = 16, H = 1, L = 10, eta = .01, X = 1",
     "Theorem 1 of docs/depth.md", "depth_theorem_d1_bound_is_violated", AT_MOST,
     .look = theorem_d1, .at = {16, 1, 10, .01}},
    {"Theorem D.1", "its bound, all hypotheses hold", "d = 64, H = 1, L = 4, eta = .01, X = 1",
     "Theorem 1 of docs/depth.md", "depth_theorem_d1_bound_is_violated", AT_MOST,
     .look = theorem_d1, .at = {64, 1, 4, .01}},
    {"Theorem D.1", "its bound, all hypotheses hold", "d = 64, H = 8, L = 12, eta = .001, X = 1",
     "Theorem 1 of docs/depth.md", "depth_theorem_d1_bound_is_violated", AT_MOST,
     .look = theorem_d1, .at = {64, 8, 12, .001}},
    {"Theorem D.1", "some one-layer network is within the bound",
     "layers (wq wk, wv) = (3, -2), (-3, 1) on |x| <= 2, written 1,000 times over: proven lower "
     "bound for every one-layer network",
     "a 1/d in the hypothesis, and a uniform head",
     "every_one_layer_network_is_far_from_a_deep_one", AT_MOST, .look = d1_any_network},
    {"Theorem D.1, proof", "distances shrink by C < 1 a layer", "one token, 1 and .5, Wv = .003",
     "they grow by 1 + eta", "depth_theorem_d1_residual_layers_do_not_contract", AT_MOST,
     .hand = d1_contraction},
    {"Theorem D.1, proof", "what the last attention moves by is all that is lost",
     "d = 1, L = 100, eta = .003", "the removed layers' sum on the residual path counts too",
     "depth_theorem_d1_does_not_count_the_residual_path", AT_MOST, .hand = d1_residual_path},
    {"Theorem D.1, last line", "8 H eps <= 2 A / L", "d = 1, L = 100, eta = .003",
     "the factor 16 e^A phi0 is lost", "depth_theorem_d1_claim_does_not_follow_from_its_bound",
     AT_MOST, .look = d1_last_line, .at = {1, 1, 100, .003}},
    {"Remark D.3", "the composite norm of Dong et al. has a triangle inequality",
     "[1 1; 0 0] + [1 0; 1 0]", "it is made of induced norms and is none",
     "depth_remark_d3_composite_norm_has_no_triangle_inequality", AT_MOST, .hand = remark_d3},
    {"Conclusion", "skips do not help: tokens come as near to each other as without",
     "three layers; Wv = 0 with a skip", "small operators are a small perturbation of the identity",
     "depth_with_a_skip_the_rank_stays", AT_MOST, .look = conclusion},
    {"our specification, 5.2", "uniform is of third order under any mask",
     "causal, d = 4, L = 4, A = .1", "full attention; under a mask umix",
     "depth_corollary_5_2_needs_full_attention", AT_MOST, .look = corollary_5_2, .at = {4, 4, .1}},
};

const errata errata_depth = {list, sizeof list / sizeof *list};
