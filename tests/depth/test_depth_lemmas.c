/* The lemmas everything in depth rests on, by random search and at equality: T (softmax), Res, R
 * (contraction), and the norms of heads that the bounds use (effective_maps.c, imat.c, token_norm.c). */
#include "linalg/matrix.h"
#include "depth_nets.h"
#include "depth/walk.h"

static void softmax(double *p, const double *a, size_t n)
{
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, a[i]);
    for (size_t i = 0; i < n; i++) sum += p[i] = exp(a[i] - top);
    for (size_t i = 0; i < n; i++) p[i] /= sum;
}

static double tv(const double *p, const double *q, size_t n)
{
    double t = 0;
    for (size_t i = 0; i < n; i++) t += fabs(p[i] - q[i]) / 2;
    return t;
}

static void softmax_moves_by_tanh_of_a_quarter_of_the_range(void **state)
{
    (void)state;
    static const double sizes[] = {.1, 1, 5}, moves[] = {.01, 1, 4};
    pare_rng r = pare_rng_at(1, 1);
    for (size_t t = 0; t < 3000; t++) {
        const size_t n = 2 + pare_rng_below(&r, 7);
        const double size = sizes[pare_rng_below(&r, 3)], by = moves[pare_rng_below(&r, 3)];
        double a[9], b[9], p[9], q[9], low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            const double m = by * pare_rng_normal(&r);
            a[i] = size * pare_rng_normal(&r);
            b[i] = a[i] + m;
            low = fmin(low, m), high = fmax(high, m);
        }
        softmax(p, a, n);
        softmax(q, b, n);
        assert_le(tv(p, q, n), softmax_variation(pare_ub_of(high - low)).v + 1e-15);
    }
    const double w = .7, a[] = {-w / 2, 0}, b[] = {w / 2, 0};
    double p[2], q[2];
    softmax(p, a, 2);
    softmax(q, b, 2);
    assert_near(tv(p, q, 2), tanh(w / 4), 1e-15);
    assert_le(tanh(w / 4), softmax_variation(pare_ub_exact(w)).v);
}

static void res_moves_by_twice_its_argument_and_its_size_by_once(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(2, 1);
    for (size_t t = 0; t < 2000; t++) {
        const size_t n = 2 + pare_rng_below(&r, 5), d = 3;
        double z[18], moved[18], shifted[18], by = 0, off = 0, apart = 0;
        double ra[18], rb[18], rc[18], most[2] = {0, 0};
        const double common[] = {pare_rng_normal(&r), 4, -2};
        for (size_t i = 0; i < n * d; i++) {
            const double e = .3 * (2 * pare_rng_uniform(&r) - 1);
            z[i] = pare_rng_normal(&r);
            moved[i] = z[i] + e;
            shifted[i] = z[i] + common[i % d];
            by = fmax(by, fabs(moved[i] - z[i]));
        }
        pare_mat a = pare_mat_of(z, n, d), b = pare_mat_of(moved, n, d);
        pare_mat c = pare_mat_of(shifted, n, d), oa = pare_mat_of(ra, n, d);
        pare_mat ob = pare_mat_of(rb, n, d), oc = pare_mat_of(rc, n, d);
        pare_ub ua, ub, uc;
        assert_int_equal(pare_res(&oa, &ua, &a), PARE_OK);
        assert_int_equal(pare_res(&ob, &ub, &b), PARE_OK);
        assert_int_equal(pare_res(&oc, &uc, &c), PARE_OK);
        for (size_t i = 0; i < n * d; i++) {
            off = fmax(off, fabs(ra[i] - rb[i]));
            apart = fmax(apart, fabs(ra[i] - rc[i]));
            most[0] = fmax(most[0], fabs(ra[i])), most[1] = fmax(most[1], fabs(rb[i]));
        }
        double widest = 0;
        for (size_t j = 0; j < d; j++) {
            double low = INFINITY, high = -INFINITY;
            for (size_t i = 0; i < n; i++)
                low = fmin(low, z[i * d + j]), high = fmax(high, z[i * d + j]);
            widest = fmax(widest, high - low);
        }
        assert_le(off, 2 * by * (1 + 1e-12));
        assert_le(fabs(most[0] - most[1]), by * (1 + 1e-12));
        assert_le(apart, 1e-12);
        assert_near(ua.v, widest / 2, 1e-12);
    }
}

/* ---- contraction ----------------------------------------------------------------------------- */

typedef struct head_at { /* one head of a net of width d at X */
    eff_attn e;
    pare_work k;
    size_t n, d;
    double x[48], p[64], out[48];
} head_at;

static double score(const head_at *h, size_t i, size_t j)
{
    double s = 0;
    for (size_t a = 0; a < h->d; a++)
        for (size_t b = 0; b < h->d; b++)
            s += h->x[i * h->d + a] * pare_row(&h->e.heads[0].b.mid, a)[b] * h->x[j * h->d + b];
    return s;
}

static void attend(head_at *h)
{
    for (size_t i = 0; i < h->n; i++) {
        double a[8];
        for (size_t j = 0; j < h->n; j++) a[j] = score(h, i, j);
        softmax(h->p + i * h->n, a, h->n);
        for (size_t c = 0; c < h->d; c++) {
            h->out[i * h->d + c] = 0;
            for (size_t j = 0; j < h->n; j++)
                for (size_t b = 0; b < h->d; b++)
                    h->out[i * h->d + c] += h->p[i * h->n + j] * h->x[j * h->d + b] *
                                            pare_row(&h->e.heads[0].v.mid, b)[c];
        }
    }
}

static double diameter(const double *x, size_t n, size_t d, depth_norm nu)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            double two = 0, inf = 0;
            for (size_t c = 0; c < d; c++) {
                const double e = fabs(x[i * d + c] - x[j * d + c]);
                two += e * e, inf = fmax(inf, e);
            }
            most = fmax(most, nu == DEPTH_NORM_INF ? inf : sqrt(two));
        }
    return most;
}

/* max (x_i - x_i') B (x_j - x_j') and, of the residual, the largest row range. */
static void interactions(const head_at *h, double *rho, double *theta)
{
    double res[48], lowest, highest;
    *rho = *theta = 0;
    for (size_t i = 0; i < h->n; i++)
        for (size_t k = 0; k < h->n; k++) {
            lowest = INFINITY, highest = -INFINITY;
            for (size_t j = 0; j < h->n; j++) {
                const double e = score(h, i, j) - score(h, k, j);
                lowest = fmin(lowest, e), highest = fmax(highest, e);
            }
            *rho = fmax(*rho, highest - lowest);
        }
    head_at r = *h;
    pare_mat x = pare_mat_of(r.x, h->n, h->d), out = pare_mat_of(res, h->n, h->d);
    assert_int_equal(pare_res(&out, NULL, &x), PARE_OK);
    memcpy(r.x, res, h->n * h->d * sizeof *res);
    for (size_t i = 0; i < h->n; i++) {
        lowest = INFINITY, highest = -INFINITY;
        for (size_t j = 0; j < h->n; j++) {
            const double e = score(&r, i, j);
            lowest = fmin(lowest, e), highest = fmax(highest, e);
        }
        *theta = fmax(*theta, highest - lowest);
    }
}

static void attention_contracts_by_the_interaction_of_scores(void **state)
{
    (void)state;
    static const double sizes[] = {.05, .5, 2};
    for (uint64_t seed = 0; seed < 400; seed++) {
        pare_rng r = pare_rng_at(seed, 3);
        const net_shape s = {.layers = 1,
                             .heads = 1,
                             .d = 1 + pare_rng_below(&r, 5),
                             .eta = sizes[seed % 3],
                             .beta = 1,
                             .law = LAW_GAUSS};
        pare_model *const m = net_of(&r, &s);
        head_at h = {.k = {.arena = pare_arena_new()}, .n = 2 + pare_rng_below(&r, 6), .d = s.d};
        const char *why;
        assert_true(effective_attn(&h.k, &h.e, &m->blocks[0].attn, s.d, &why));
        for (size_t i = 0; i < h.n * h.d; i++) h.x[i] = 2 * pare_rng_uniform(&r) - 1;
        attend(&h);
        double rho, theta, tau = 0;
        interactions(&h, &rho, &theta);
        for (size_t i = 0; i < h.n; i++)
            for (size_t j = 0; j < i; j++) tau = fmax(tau, tv(h.p + i * h.n, h.p + j * h.n, h.n));
        assert_le(tau, tanh(rho / 4) + 1e-12);
        assert_le(rho, 2 * theta + 1e-12);
        for (depth_norm nu = 0; nu < DEPTH_NORMS; nu++) {
            const token_norm at = norm_plain(nu == DEPTH_NORM_INF ? NORM_INF : NORM_TWO, h.d);
            const double bil = norm_of_form(&h.k, &at, &h.e.heads[0].b).v[0];
            const double norm = norm_of_map(&h.k, &at, &at, &h.e.heads[0].v).v[0];
            const double d = diameter(h.x, h.n, h.d, nu), out = diameter(h.out, h.n, h.d, nu);
            assert_le(rho, bil * d * d + 1e-12);
            assert_le(out, tau * norm * d + 1e-12);
            assert_le(out, tanh(bil * d * d / 4) * norm * d + 1e-12);
            if (nu == DEPTH_NORM_INF) assert_le(out / 2, tanh(theta / 2) * norm * d / 2 + 1e-12);
        }
        pare_arena_free(h.k.arena);
        pare_model_free(m);
    }
}

/* ---- interval matrices ----------------------------------------------------------------------- */

/* The product of three matrices in long sums of __float128 lies within the radii. */
static void products_of_weights_hold_the_exact_one(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pare_rng r = pare_rng_at(seed, 4);
        const size_t n = 1 + pare_rng_below(&r, 9);
        double v[3][81];
        pare_work k = {.arena = pare_arena_new()};
        imat m[3];
        for (size_t t = 0; t < 3; t++) {
            for (size_t i = 0; i < n * n; i++)
                v[t][i] = pare_rng_normal(&r) * (seed % 2 ? 1 : pow(10, 20 * pare_rng_uniform(&r)));
            const pare_weight w = {PARE_F64, n, n, v[t]};
            m[t] = imat_weight(&k, &w, 0, 0, n, n, false);
        }
        const imat two = imat_mul(&k, &m[0], &m[1]), all = imat_mul(&k, &two, &m[2]);
        const imat sum = imat_sum(&k, &all, &m[0]);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                __float128 exact = v[0][i * n + j];
                for (size_t a = 0; a < n; a++)
                    for (size_t b = 0; b < n; b++)
                        exact += (__float128)v[0][i * n + a] * v[1][a * n + b] * v[2][b * n + j];
                const __float128 off = exact - pare_row(&sum.mid, i)[j];
                assert_le((double)(off < 0 ? -off : off), pare_row(&sum.rad, i)[j]);
                assert_le(pare_row(&sum.rad, i)[j], 1e-12 * imat_sum_abs(&k, &sum).v *
                                                        pow((double)n, 3) * (seed % 2 ? 1 : 1e40));
            }
        pare_arena_free(k.arena);
    }
}

/* size(x M) <= size(x) |M| for every norm, in a basis too. */
static void norms_bound_what_they_measure(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        pare_rng r = pare_rng_at(seed, 5);
        const size_t d = 1 + pare_rng_below(&r, 6);
        pare_work k = {.arena = pare_arena_new()};
        pare_mat g = pare_mat_new(k.arena, d, d), q = pare_mat_new(k.arena, d, d);
        pare_mat rr = pare_mat_new(k.arena, d, d);
        imat m = imat_zero(&k, d, d), x = imat_zero(&k, 1, d), y = imat_zero(&k, 1, d);
        for (size_t i = 0; i < d * d; i++)
            g.v[i] = pare_rng_normal(&r), m.mid.v[i] = pare_rng_normal(&r);
        for (size_t i = 0; i < d; i++)
            x.mid.v[i] = pare_rng_normal(&r), y.mid.v[i] = pare_rng_normal(&r);
        assert_int_equal(pare_qr(&q, &rr, &g, k.arena, NULL), PARE_OK);
        const token_norm norms[] = {norm_plain(NORM_INF, d), norm_plain(NORM_TWO, d),
                                    norm_plain(NORM_BOX, d), norm_in_basis(&k, &q)};
        const imat xm = imat_mul(&k, &x, &m), transposed = imat_transposed(&k, &y);
        const imat form = imat_mul(&k, &xm, &transposed), dual = imat_mul(&k, &x, &transposed);
        assert_non_null(norms[3].q.mid.v);
        for (size_t t = 0; t < 4; t++) {
            const token_norm *const at = &norms[t];
            const pare_mat sx = norm_of_row(&k, at, &x), sy = norm_of_row(&k, at, &y);
            const pare_mat sm = norm_of_row(&k, at, &xm), map = norm_of_map(&k, at, at, &m);
            const pare_mat through = up_mul(&k, &sx, &map), b = norm_of_form(&k, at, &m);
            const pare_mat half = up_mul(&k, &sx, &b), l = norm_of_functional(&k, at, &y);
            for (size_t i = 0; i < at->k; i++) assert_le(sm.v[i], through.v[i] * (1 + 1e-13));
            assert_le(fabs(form.mid.v[0]), up_dot(&half, &sy).v * (1 + 1e-13));
            assert_le(fabs(dual.mid.v[0]), up_dot(&sx, &l).v * (1 + 1e-13));
        }
        assert_int_equal(k.st, PARE_OK);
        pare_arena_free(k.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_moves_by_tanh_of_a_quarter_of_the_range),
        cmocka_unit_test(res_moves_by_twice_its_argument_and_its_size_by_once),
        cmocka_unit_test(attention_contracts_by_the_interaction_of_scores),
        cmocka_unit_test(products_of_weights_hold_the_exact_one),
        cmocka_unit_test(norms_bound_what_they_measure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
