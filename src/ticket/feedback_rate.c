/* feedback_rate.c - chooses the scale, coder and price that give a number of bits per weight with
 * the least error, on a sample of the outputs (outputs are independent of one another).
 *
 * Coder and price are found together, round by round: what is chosen teaches the coder, and the
 * price rises while too many bits are taken. Where errors are as small as they can be for their
 * bits, four times the price is one bit less. */
#include "fit_feedback.h"
#include <math.h>
#include "linalg/matrix.h"
#include "model/ticket_store.h"
#include <pare/ticket.h>

enum { SAMPLE = 2048 /* weights, about */, ROUNDS = 6, LAST_ROUNDS = 6, WORSE = 2 };
enum { UNLIKELY = -18 /* log odds of one item in four, in 1/16 */ };
#define BEHIND     1.5 /* bits that such sums need more than the best code would */
#define WIDTH_UNIT 0x1p-16

typedef struct rate_search {
    fit_problem *p;
    fit_feedback_opts *o;
    double rate, square; /* mean square of the aim */
    size_t step;
    pare_arena *scratch;
    const pare_exec *exec;
    pare_err *err;
} rate_search;

/* *loss: in squares of weights, as it would be with just so many bits. */
static pare_status learn_coder(double *loss, const rate_search *s, int n)
{
    const double scale = s->p->scale;
    pare_status st = PARE_OK;
    for (int k = 0; !st && k < n; k++) {
        fit_cost cost;
        st = fit_feedback_cost(&cost, s->scratch, s->p, s->o, s->step, s->exec, s->err);
        const double above = s->rate > 0 ? cost.bits - s->rate : 0;
        *loss = cost.loss * scale * scale * exp2(2 * above);
        if (!(s->rate > 0)) break;
        pare_bridge_learn(&s->o->bridge, &cost.seen);
        s->o->price *= exp2(2 * fmax(-2, fmin(2, above)));
    }
    return st;
}

/* Where the rounds begin. */
static void guess_coder(const rate_search *s)
{
    const double square = s->square / (s->p->scale * s->p->scale);
    pare_bridge *const b = &s->o->bridge;
    b->width = (uint32_t)fmax(1, fmin(sqrt(square) / WIDTH_UNIT, 0x1p24));
    b->ranks = s->p->n / s->p->b;
    for (size_t k = 0; k < b->ranks; k++) b->prior[k] = UNLIKELY;
    s->o->price = 2 * M_LN2 * square * exp2(-2 * fmax(0, s->rate - BEHIND));
}

/* The scale with the least loss, from above the largest entry downwards. */
static pare_status search_scale(int *exponent, fit_feedback_opts *best, const rate_search *s,
                                double largest)
{
    double least = INFINITY;
    pare_status st = PARE_OK;
    int e = *exponent == PARE_TICKET_CHOOSE ? fit_first_exponent(largest, 2) : *exponent;
    const int last = *exponent == PARE_TICKET_CHOOSE ? -64 : e;
    *exponent = e;
    for (int worse = 0; !st && worse < WORSE && e >= last; e--) {
        double loss = INFINITY;
        s->p->scale = ldexp(1, e);
        if (s->rate > 0) guess_coder(s);
        st = learn_coder(&loss, s, ROUNDS);
        worse = loss < least ? 0 : worse + 1;
        if (loss < least) {
            *exponent = e;
            *best = *s->o;
        }
        least = fmin(least, loss);
    }
    return st;
}

pare_status feedback_choose_rate(fit_feedback_opts *o, int *exponent, pare_arena *scratch,
                                 fit_problem *p, double rate, const pare_exec *exec, pare_err *err)
{
    double largest, loss;
    const size_t few = SAMPLE / o->aim.cols > 1 ? SAMPLE / o->aim.cols : 1;
    rate_search s = {.p = p, .o = o, .rate = rate, .scratch = scratch, .exec = exec, .err = err};
    fit_feedback_opts best = *o;
    largest = pare_mat_max_abs(&o->aim);
    for (size_t i = 0; i < o->aim.rows; i++)
        for (size_t j = 0; j < o->aim.cols; j++) {
            const double v = pare_row(&o->aim, i)[j];
            s.square += v * v / (double)(o->aim.rows * o->aim.cols);
        }
    s.step = o->aim.rows > few ? o->aim.rows / few : 1;
    if (!isfinite(largest) || !(largest > 0)) { /* nothing to choose by */
        if (*exponent == PARE_TICKET_CHOOSE) *exponent = 0;
        p->scale = ldexp(1, *exponent);
        return PARE_OK;
    }
    pare_status st = search_scale(exponent, &best, &s, largest);
    p->scale = ldexp(1, *exponent);
    *o = best;
    if (!st && rate > 0) st = learn_coder(&loss, &s, LAST_ROUNDS);
    return st;
}
