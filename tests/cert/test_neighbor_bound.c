/* Tests src/cert/neighbor_bound.c: which nearest neighbors stay, against the definition. */
#include "cert/outputs.h"
#include <pare_test.h>

enum { N = 24, D = 6 };

typedef struct corpus {
    double row[N * D], unit[N * D], error[N];
    pare_unit_rows rows;
} corpus;

static void corpus_know(corpus *c, size_t n, size_t d, double radius)
{
    for (size_t i = 0; i < n; i++)
        c->error[i] = pare_unit_row(c->unit + i * d, c->row + i * d, d, radius);
    c->rows = (pare_unit_rows){n, d, c->unit, c->error};
}

static long double cosine(const double *x, const double *y, size_t d)
{
    long double xy = 0, xx = 0, yy = 0;
    for (size_t k = 0; k < d; k++) {
        xy += (long double)x[k] * y[k];
        xx += (long double)x[k] * x[k];
        yy += (long double)y[k] * y[k];
    }
    return xy / sqrtl(xx * yy);
}

/* Whether j is among the `count` nearest of i: fewer than that are at least as near. */
static bool is_near(const double *row, size_t n, size_t d, size_t i, size_t j, size_t count)
{
    size_t nearer = 0;
    for (size_t l = 0; l < n; l++)
        nearer += l != i && l != j &&
                  cosine(row + i * d, row + l * d, d) >= cosine(row + i * d, row + j * d, d);
    return nearer < count;
}

/* By the definition: exactly `count` inputs are near, and the same ones in both. */
static bool really_stays(const double *f, const double *g, size_t n, size_t d, size_t i,
                         size_t count)
{
    size_t both = 0;
    for (size_t j = 0; j < n; j++)
        both += j != i && is_near(f, n, d, i, j, count) && is_near(g, n, d, i, j, count);
    return both == count;
}

static void stays(bool *stay, corpus *f, corpus *g, size_t count)
{
    pare_err err = {0};
    assert_ok(pare_neighbors_stay(stay, &f->rows, &g->rows, count, &err), &err);
}

/* Four rows on a circle: 0 and 10 degrees, 90 and 95; in g the second has turned to 80. */
static void by_hand(void **state)
{
    (void)state;
    static const double at[2][4] = {{0, 10, 90, 95}, {0, 80, 90, 95}};
    corpus c[2];
    bool stay[4];
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < 4; i++) {
            c[k].row[2 * i] = cos(at[k][i] * 0.017453292519943295);
            c[k].row[2 * i + 1] = sin(at[k][i] * 0.017453292519943295);
        }
        corpus_know(&c[k], 4, 2, 0);
    }
    stays(stay, &c[0], &c[0], 1);
    assert_true(stay[0] && stay[1] && stay[2] && stay[3]);
    stays(stay, &c[0], &c[1], 1);
    assert_true(stay[0] && !stay[1] && stay[2] && stay[3]);
    /* The second nearest of the third is 10 degrees in f, 80 in g: still the same one. */
    stays(stay, &c[0], &c[1], 2);
    assert_true(stay[2] && stay[3]);
}

static void a_tie_does_not_count_as_kept(void **state)
{
    (void)state;
    corpus c;
    bool stay[4];
    /* The first is as near to the second as to the third; the fourth equals the third, with another length. */
    static const double rows[] = {1, 0, 1, 1, 1, -1, 2, -2};
    memcpy(c.row, rows, sizeof rows);
    corpus_know(&c, 4, 2, 0);
    stays(stay, &c, &c, 1);
    assert_true(!stay[0] && stay[1] && stay[2] && stay[3]);
    stays(stay, &c, &c, 2); /* third and fourth are ties with the second */
    assert_true(!stay[0]);
    stays(stay, &c, &c, 3); /* all others: nothing is beyond them */
    assert_true(stay[0] && stay[1] && stay[2] && stay[3]);
}

static void nothing_is_kept_beside_a_row_that_may_be_zero(void **state)
{
    (void)state;
    corpus c;
    bool stay[3];
    static const double rows[] = {1, 0, 1, 0.1, 0, 0};
    memcpy(c.row, rows, sizeof rows);
    corpus_know(&c, 3, 2, 0);
    stays(stay, &c, &c, 1);
    assert_true(!stay[0] && !stay[1] && !stay[2]);
}

/* Rows anywhere within their radius, and g near f: what is said to stay does. */
static void what_is_said_to_stay_stays(void **state)
{
    (void)state;
    size_t said = 0, real = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        pare_rng r = pare_rng_at(seed, 1);
        static corpus f, g;
        static double x[N * D], y[N * D];
        const double apart = pow(10, -4 * pare_rng_uniform(&r));
        const double radius = seed % 3 ? apart * pare_rng_uniform(&r) : 0;
        const size_t count = seed % 2 ? 1 : 5;
        for (size_t k = 0; k < N * D; k++) {
            f.row[k] = seed % 5 ? pare_rng_normal(&r) : (double)pare_rng_below(&r, 3) + 0.5;
            g.row[k] = 3 * (f.row[k] + apart * pare_rng_normal(&r));
            const double most = radius / sqrt(D) * (1 - 1e-9);
            x[k] = f.row[k] + most * (2 * pare_rng_uniform(&r) - 1);
            y[k] = g.row[k] + most * (2 * pare_rng_uniform(&r) - 1);
        }
        bool stay[N];
        corpus_know(&f, N, D, radius);
        corpus_know(&g, N, D, radius);
        stays(stay, &f, &g, count);
        for (size_t i = 0; i < N; i++) {
            const bool really = really_stays(x, y, N, D, i, count);
            if (stay[i] && !really) fail_msg("seed %d: row %d does not stay", (int)seed, (int)i);
            if (radius == 0) said += stay[i], real += really;
        }
    }
    /* Without radii only ties are lost. */
    assert_true(said <= real && (double)said >= 0.97 * (double)real);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(a_tie_does_not_count_as_kept),
        cmocka_unit_test(nothing_is_kept_beside_a_row_that_may_be_zero),
        cmocka_unit_test(what_is_said_to_stay_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
