/* near_inputs.c - E6: two networks on every input near a given one. */
#include "study_depth.h"
#include <pare/depth.h>
#include <math.h>

static const double ball_gain[] = {.05, .2, .5, 1}, radius[] = {0, .01, .1, .5};
enum { GAINS = 4, RADII = 4, WAYS = 2, EACH = 4, TOKENS = 16, DIM = 8 };

/* The worst of `tries` perturbations: every row for itself, or all alike. */
static pare_status worst_near(double *out, const trial *t, const pare_model *m, const pare_model *g,
                              const pare_input *at, double r, pare_rng *rng)
{
    const size_t tries = t->s->full ? 250 : 60;
    double x[TOKENS * DIM], step[DIM];
    pare_input in = *at;
    const pare_inputs one = {1, &in};
    compared c;
    pare_status st = PARE_OK;
    in.x = x;
    for (size_t k = 0; !st && k < tries; k++) {
        const pare_mark mark = pare_arena_mark(t->a);
        double off = 0;
        for (size_t i = 0; i < TOKENS; i++) {
            for (size_t e = 0; (i == 0 || k % 5) && e < DIM; e++) step[e] = pare_rng_normal(rng);
            const double size = san_distance(step, NULL, DIM);
            for (size_t e = 0; e < DIM; e++)
                x[i * DIM + e] = at->x[i * DIM + e] + r * step[e] / size;
        }
        st = compared_open(&c, t->a, m, &one, NULL, t->err);
        if (!st) st = compared_model(&off, &c, g, longest_row_of_8);
        *out = fmax(*out, off);
        pare_arena_reset(t->a, mark);
    }
    return st;
}

static pare_status ball_run(trial *t)
{
    const bool uniform = t->part % WAYS;
    const size_t last = 4 - 1;
    const san_shape shape = {.layers = 4,
                             .heads = 2,
                             .dim = DIM,
                             .scale = 1 / sqrt(DIM),
                             .size = ball_gain[t->part / WAYS] / sqrt(DIM),
                             .draw = SAN_NORMAL};
    const san_tokens tokens = {.n = 1, .tokens = TOKENS, .dim = DIM, .normal = true, .spread = 1};
    pare_rng rng = pare_rng_at(t->s->seed, 600 + t->part / WAYS);
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report report;
    pare_model *g = NULL;
    compared c;
    double center = NAN;
    pare_status st = compared_new(&c, t->a, &shape, tokens, 0, &rng, t->err);
    /* all but the last layer gone, or all uniform */
    o.kind = uniform ? PARE_ATTN_UNIFORM : PARE_ATTN_ZERO;
    o.layers = !uniform;
    o.exact = &last;
    o.nexact = !uniform;
    if (!st) st = pare_depth(&g, &report, c.m, NULL, &o, NULL, t->err);
    if (!st) st = compared_model(&center, &c, g, longest_row_of_8);
    for (size_t i = 0; !st && i < RADII; i++) {
        const double r = radius[i];
        pare_ball b = {.rows2 = pare_ub_inf()};
        double worst = center;
        if (r > 0) st = worst_near(&worst, t, c.m, g, &c.in->in[0], r, &rng);
        if (!st)
            st = pare_prove_ball(&b, c.m, g, c.in,
                                 (pare_neighborhood){.radius = r, .norm = PARE_BALL_TWO}, NULL,
                                 t->err);
        append_numbers(t, (double[]){center, worst, b.rows2.v, r}, EACH);
        if (!st) st = trial_progress(t, i + 1, RADII);
    }
    pare_model_free(g);
    pare_model_free(c.own);
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

static void ball_table(table_writer *w, const numbers *part, size_t n)
{
    bool sound = true, grows = true;
    begin_table(w, "E6 balls",
                "certificate for every input within r of a given one / worst of random ones (rows, "
                "euclidean): the error itself at r = 0, useful for small weights, vacuous for "
                "large ones; 4 layers, 2 heads, width 8, 16 tokens",
                -3);
    for (size_t p = 0; p < n; p++) {
        const bool uniform = p % WAYS;
        const char *const data = row_text(w, "a = %g", ball_gain[p / WAYS]);
        double worst[RADII], proven[RADII];
        for (size_t i = 0; i < RADII; i++) {
            const double *const v = part[p].v + EACH * i;
            const double *const seen = ball_seen[p / WAYS][uniform][i];
            worst[i] = v[1];
            proven[i] = v[2];
            /* at radius 0 it is the error itself, up to rounding */
            if (!(v[2] >= v[1]) || (i == 0 && !(v[2] <= v[0] * (1 + 1e-6)))) sound = false;
            if (i == 0) continue;
            if (!(proven[i] >= proven[i - 1])) grows = false;
            /* proven / worst beside the audit's: a tighter certificate is no failure */
            row_at_most(
                w, data,
                row_text(w, "%s, r = %g: proven / worst", uniform ? "uniform" : "zero", radius[i]),
                seen[2] / seen[1], v[2] / v[1], 4.5);
        }
        row_curve(w, data, uniform ? "uniform, worst" : "zero, worst", radius + 1, worst + 1,
                  RADII - 1);
        row_curve(w, data, uniform ? "uniform, proven" : "zero, proven", radius + 1, proven + 1,
                  RADII - 1);
    }
    row_holds(w, "all", "never below the worst; the error itself at r = 0", sound, NAN);
    row_holds(w, "all", "grows with r", grows, NAN);
    const double small = part[1].v[EACH * 2 + 2] / part[1].v[EACH * 2 + 1];
    row_shape(w, "all", "a = 0.05, uniform, r = 0.1: within 5 of the worst", small < 5, small);
}

const experiment balls = {
    .file_prefix = "ball", .parts = GAINS * WAYS, .cost = 6, .run = ball_run, .table = ball_table};
