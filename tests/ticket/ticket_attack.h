/* ticket_attack.h - tries to break what is proven of a ticket: targets with weights of one sign and
 * of extreme sizes, tickets that err in one direction, rows as long as they may be, improved by
 * gradient ascent on the worst output. */
#ifndef TEST_TICKET_ATTACK_H
#define TEST_TICKET_ATTACK_H
#include "ticket/ticket_bounds.h"
#include "train/gradient.h"
#include "ticket_pairs.h"

typedef struct attack {
    pair_shape s;
    pare_model *f, *g;
    pare_model *plain; /* merged f, from which g borrows; NULL: f itself */
    pare_graph graph;
    size_t n;
    double alpha, *x;
    pare_arena *a;
} attack;

typedef struct attack_sum { /* over all attacks */
    size_t n, finite;
    double free, given; /* largest measured / bound */
} attack_sum;

static inline pare_input attack_input(const attack *t)
{
    return (pare_input){.batch = 1,
                        .tokens = t->n,
                        .width = t->s.d1,
                        .x = t->x,
                        .graph = t->s.pattern.kind == PARE_GRAPH ? &t->graph : NULL};
}

/* Slack of f64 passes, which the bounds on real numbers do not know. */
static inline double attack_slack(double scale)
{
    return 1e-10 * scale + 1e-300;
}

/* d/dx of output `at` of a model, added with a sign. */
static inline void attack_slope(double *dx, const pare_model *m, const pare_input *in, size_t at,
                                double sign)
{
    pare_err err = {0};
    pare_params *p;
    pare_tape *t;
    assert_ok(pare_params_new(&p, m, PARE_F64, &err), &err);
    assert_ok(pare_tape_new(&t, p, NULL, &err), &err);
    const size_t n = pare_output_rows(m, in) * pare_model_outputs(m);
    double *const dy = calloc(n + 1, sizeof *dy);
    const pare_mode mode = {0};
    assert_non_null(dy);
    dy[at] = sign;
    assert_ok(pare_tape_forward(t, in, &mode, NULL, &err), &err);
    assert_ok(pare_tape_backward(t, dy, NULL, NULL, &err), &err);
    const double *const back = pare_tape_dstream(t, 0);
    for (size_t i = 0; i < in->tokens * in->width; i++) dx[i] += back[i];
    free(dy);
    pare_tape_free(t);
    pare_params_free(p);
}

/* The entry that is worst, and its sign. */
static inline size_t attack_worst(const attack *t, double *sign)
{
    pare_err err = {0};
    const pare_input in = attack_input(t);
    const size_t n = pare_output_rows(t->f, &in) * pare_model_outputs(t->f);
    double *const y = calloc(2 * n + 1, sizeof *y), far = -1;
    size_t at = 0;
    assert_non_null(y);
    assert_ok(pare_forward_f64(y, t->f, &in, NULL, NULL, &err), &err);
    assert_ok(pare_forward_f64(y + n, t->g, &in, NULL, NULL, &err), &err);
    for (size_t i = 0; i < n; i++)
        if (fabs(y[i] - y[n + i]) > far) {
            far = fabs(y[i] - y[n + i]);
            *sign = y[i] > y[n + i] ? 1 : -1;
            at = i;
        }
    free(y);
    return at;
}

/* One step up, and back into the ball. False: it did not help. */
static inline bool attack_step(attack *t, double step)
{
    const size_t d = t->s.d1, all = t->n * d;
    const pare_input in = attack_input(t);
    double *const dx = calloc(2 * all + 1, sizeof *dx), *const old = dx + all, sign = 1, size = 0;
    assert_non_null(dx);
    const double before = pair_apart(t->f, t->g, &in, NULL, NULL);
    const size_t at = attack_worst(t, &sign);
    attack_slope(dx, t->f, &in, at, sign);
    attack_slope(dx, t->g, &in, at, -sign);
    for (size_t i = 0; i < all; i++) size = fmax(size, fabs(dx[i]));
    for (size_t i = 0; i < all; i++) old[i] = t->x[i];
    for (size_t i = 0; size > 0 && i < t->n; i++) {
        double sum = 0;
        for (size_t j = 0; j < d; j++) {
            t->x[i * d + j] += step * t->alpha * dx[i * d + j] / size;
            sum += t->x[i * d + j] * t->x[i * d + j];
        }
        const double shrink = fmin(1, t->alpha / sqrt(sum)) * (1 - 1e-14);
        for (size_t j = 0; j < d && sum > 0; j++) t->x[i * d + j] *= shrink;
    }
    const bool better = pair_apart(t->f, t->g, &in, NULL, NULL) > before;
    for (size_t i = 0; !better && i < all; i++) t->x[i] = old[i];
    free(dx);
    return better;
}

static inline attack attack_new(uint64_t seed)
{
    static const double alphas[] = {.1, 1, 3, 50};
    static const double sizes[] = {1e-9, 1e-4, 1e-2, .2, 1};
    attack t = {.a = pare_arena_new()};
    pare_rng r = pare_rng_at(seed, 901);
    assert_non_null(t.a);
    t.s = pair_shape_of(&r);
    t.n = 1 + pare_rng_below(&r, 9);
    t.alpha = alphas[pare_rng_below(&r, 4)];
    t.f = pair_target(&r, &t.s);
    if (!t.s.rotary && pare_rng_below(&r, 3) == 0) t.plain = pair_merged(t.f);
    const double size = sizes[pare_rng_below(&r, 5)];
    t.g = pair_ticket(t.plain ? t.plain : t.f, seed, size, (int)pare_rng_below(&r, 3),
                      pare_rng_below(&r, 2));
    t.graph = pair_graph(t.a, &r, t.n);
    t.x = pare_alloc(t.a, t.n * t.s.d1, sizeof *t.x);
    assert_non_null(t.x);
    pair_rows(t.x, &r, t.n, t.s.d1, t.alpha);
    return t;
}

static inline void attack_check(attack_sum *sum, const attack *t, uint64_t seed,
                                const pare_ticket_bound *all)
{
    pare_err err = {0};
    pare_ticket_bound given;
    pare_input in = attack_input(t);
    const pare_inputs set = {1, &in};
    double scale;
    const double far = pair_apart(t->f, t->g, &in, NULL, &scale), slack = attack_slack(scale);
    assert_ok(pare_ticket_bound_given(&given, t->f, t->g, &set, NULL, &err), &err);
    if (!(far <= all->outputs.v + slack) || !(far <= given.outputs.v + slack))
        print_error("seed %llu: measured %.17g, all inputs %.17g, given %.17g\n",
                    (unsigned long long)seed, far, all->outputs.v, given.outputs.v);
    assert_le(far, all->outputs.v + slack);
    assert_le(far, given.outputs.v + slack);
    if (isinf(all->outputs.v) || far <= 100 * slack) return;
    sum->finite++;
    sum->free = fmax(sum->free, far / all->outputs.v);
    sum->given = fmax(sum->given, far / given.outputs.v);
}

/* One target, one ticket, one input that was made as bad as `steps` steps of ascent can. */
static inline void attack_run(attack_sum *sum, uint64_t seed, int steps)
{
    pare_err err = {0};
    attack t = attack_new(seed);
    pare_ticket_bound all;
    assert_ok(pare_ticket_bound_free(&all, t.f, t.g, t.alpha, NULL, &err), &err);
    assert_string_equal(all.why[0] ? "overflow" : "", isinf(all.outputs.v) ? "overflow" : "");
    sum->n++;
    attack_check(sum, &t, seed, &all);
    double step = .3;
    for (int i = 0; i < steps; i++) step *= attack_step(&t, step) ? 1.3 : .4;
    attack_check(sum, &t, seed, &all);
    pare_model_free(t.g);
    pare_model_free(t.plain);
    pare_model_free(t.f);
    pare_arena_free(t.a);
}
#endif
