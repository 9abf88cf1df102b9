/* E6: two networks on every input near a given one. */
#include "study_depth.h"
#include <pare/ball.h>
#include <pare/depth.h>
#include <math.h>

static const double ball_gain[] = {.05, .2, .5, 1}, radius[] = {0, .01, .1, .5};
enum { GAINS = 4, RADII = 4, WAYS = 2, EACH = 4, TOKENS = 16, DIM = 8 };

static size_t ball_parts(bool full)
{
    (void)full;
    return GAINS * WAYS;
}

static double longest_row(const double *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i += DIM) most = fmax(most, san_distance(a + i, b + i, DIM));
    return most;
}

/* All but the last layer gone, or all uniform. */
static pare_status replaced(pare_model **g, const pare_model *m, bool uniform, pare_err *err)
{
    const size_t last = m->nblocks - 1;
    pare_depth_report report;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    o.kind = uniform ? PARE_ATTN_UNIFORM : PARE_ATTN_ZERO;
    o.layers = !uniform;
    o.exact = &last;
    o.nexact = !uniform;
    return pare_depth(g, &report, m, NULL, &o, NULL, err);
}

/* The worst of `tries` perturbations: every row for itself, or all alike. */
static pare_status worst_near(double *out, const pare_model *m, const pare_model *g,
                              const pare_input *at, double r, size_t tries, pare_rng *rng,
                              pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    double x[TOKENS * DIM], step[DIM];
    pare_input in = *at;
    const pare_inputs one = {1, &in};
    compared c;
    pare_status st = a ? PARE_OK : pare_no_memory(err);
    in.x = x;
    for (size_t t = 0; !st && t < tries; t++) {
        const pare_mark mark = pare_arena_mark(a);
        double off = 0;
        for (size_t i = 0; i < TOKENS; i++) {
            for (size_t k = 0; (i == 0 || t % 5) && k < DIM; k++) step[k] = pare_rng_normal(rng);
            const double size = san_distance(step, NULL, DIM);
            for (size_t k = 0; k < DIM; k++)
                x[i * DIM + k] = at->x[i * DIM + k] + r * step[k] / size;
        }
        st = compared_open(&c, a, m, &one, NULL, err);
        if (!st) st = compared_model(&off, &c, g, longest_row);
        *out = fmax(*out, off);
        pare_arena_reset(a, mark);
    }
    pare_arena_free(a);
    return st;
}

static pare_status ball_at(numbers *out, const pare_model *m, const pare_model *g,
                           const pare_inputs *x, double r, const setting *s, pare_rng *rng,
                           pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    compared c;
    pare_ball b = {.rows2 = pare_ub_inf()};
    double centre = NAN;
    pare_status st = a ? compared_open(&c, a, m, x, NULL, err) : pare_no_memory(err);
    if (!st) st = compared_model(&centre, &c, g, longest_row);
    double worst = centre;
    if (!st && r > 0) st = worst_near(&worst, m, g, &x->in[0], r, s->full ? 250 : 60, rng, err);
    if (!st) st = pare_prove_ball(&b, m, g, x, r, PARE_BALL_TWO, NULL, err);
    number_put(out, centre);
    number_put(out, worst);
    number_put(out, b.rows2.v);
    number_put(out, r);
    pare_arena_free(a);
    return st;
}

static pare_status ball_run(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                            pare_err *err)
{
    const double size = ball_gain[part / WAYS] / sqrt(DIM);
    const san_shape shape = {.layers = 4,
                             .heads = 2,
                             .dim = DIM,
                             .scale = 1 / sqrt(DIM),
                             .size = size,
                             .draw = SAN_NORMAL};
    const san_tokens t = {.n = 1, .tokens = TOKENS, .dim = DIM, .normal = true, .spread = 1};
    pare_rng rng = pare_rng_at(s->seed, 600 + part / WAYS);
    pare_arena *const a = pare_arena_new();
    pare_model *m = NULL, *g = NULL;
    pare_inputs x;
    pare_status st = a ? san_new(&m, &shape, &rng, err) : pare_no_memory(err);
    if (!st) st = san_inputs(&x, a, &t, &rng, err);
    if (!st) st = replaced(&g, m, part % WAYS, err);
    for (size_t i = 0; !st && i < RADII; i++) {
        st = ball_at(out, m, g, &x, radius[i], s, &rng, err);
        if (!st) st = pare_progress(exec, "", i + 1, RADII, err);
    }
    pare_model_free(g);
    pare_model_free(m);
    pare_arena_free(a);
    return st;
}

/* Our audit: centre, worst and certificate for each radius. */
static const double ball_seen[GAINS][WAYS][RADII][3] = {
    {{{.0259, .0259, .0259}, {.0259, .0272, .0331}, {.0259, .0403, .0978}, {.0259, .122, .389}},
     {{6.72e-4, 6.72e-4, 6.72e-4},
      {6.72e-4, 6.75e-4, 8.15e-4},
      {6.72e-4, 7.05e-4, 2.31e-3},
      {6.72e-4, 9.21e-4, 1.28e-2}}},
    {{{.241, .241, .241}, {.241, .245, .331}, {.241, .276, 1.24}, {.241, .553, 7.12}},
     {{.0291, .0291, .0291}, {.0291, .0293, .0654}, {.0291, .0305, .475}, {.0291, .0391, 4.88}}},
    {{{3.71, 3.71, 3.71}, {3.71, 3.74, 21.1}, {3.71, 4.07, 77.5}, {3.71, 5.53, 191}},
     {{1.06, 1.06, 1.06}, {1.06, 1.06, 18.8}, {1.06, 1.10, 76.7}, {1.06, 1.39, 198}}},
    {{{13.1, 13.1, 13.1}, {13.1, 13.2, 312}, {13.1, 15.0, 788}, {13.1, 19.1, 1699}},
     {{10.9, 10.9, 10.9}, {10.9, 11.0, 311}, {10.9, 12.3, 797}, {10.9, 20.4, 1762}}}};

static void ball_part(table_writer *s, const numbers *n, size_t part, bool *sound, bool *grows)
{
    const bool uniform = part % WAYS;
    char *const data = s->st ? NULL : pare_sprintf(s->r->arena, "a = %g", ball_gain[part / WAYS]);
    double worst[RADII], proven[RADII];
    if (!s->st && !data) s->st = pare_no_memory(s->err);
    if (s->st) return;
    for (size_t i = 0; i < RADII; i++) {
        const double *const v = n->v + EACH * i;
        const double *const seen = ball_seen[part / WAYS][uniform][i];
        worst[i] = v[1];
        proven[i] = v[2];
        /* at radius 0 it is the error itself, up to rounding */
        if (!(v[2] >= v[1]) || (i == 0 && !(v[2] <= v[0] * (1 + 1e-6)))) *sound = false;
        if (i > 0 && !(proven[i] >= proven[i - 1])) *grows = false;
        /* proven / worst beside the audit's: a tighter certificate is no failure */
        if (i > 0)
            row_at_most(s, data,
                        pare_sprintf(s->r->arena, "%s, r = %g: proven / worst",
                                     uniform ? "uniform" : "zero", radius[i]),
                        seen[2] / seen[1], v[2] / v[1], 4.5);
    }
    row_curve(s, data, uniform ? "uniform, worst" : "zero, worst", radius + 1, worst + 1,
              RADII - 1);
    row_curve(s, data, uniform ? "uniform, proven" : "zero, proven", radius + 1, proven + 1,
              RADII - 1);
}

static void ball_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    bool sound = true, grows = true;
    (void)of;
    begin_table(
        s, "E6 balls",
        "certificate for every input within r of a given one / worst of random ones (rows, "
        "euclidean): the error itself at r = 0, useful for small weights, vacuous for large "
        "ones; 4 layers, 2 heads, width 8, 16 tokens",
        -3, GAINS * WAYS * RADII + 3);
    for (size_t i = 0; i < n; i++) ball_part(s, &part[i], i, &sound, &grows);
    row_holds(s, "all", "never below the worst; the error itself at r = 0", sound, NAN);
    row_holds(s, "all", "grows with r", grows, NAN);
    const double small = part[1].v[EACH * 2 + 2] / part[1].v[EACH * 2 + 1];
    row_shape(s, "all", "a = 0.05, uniform, r = 0.1: within 5 of the worst", small < 5, small);
}

const experiment balls = {
    .stem = "ball", .parts = ball_parts, .cost = 6, .run = ball_run, .table = ball_table};
