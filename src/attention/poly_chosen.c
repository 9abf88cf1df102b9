/* A plan with chosen monomials (spec depth 8.5), where coordinates are of unequal size.
 *
 * With |q'_c k'_c| <= box_c for all pairs, the Taylor terms of a set leave at most
 * T = sum over the others of box^alpha/alpha!, absolutely; so the relative error of the weights is
 * at most T e^B. The set is the best there is for its size; the question is whether it is small
 * enough to be worth its shorter runs. Of equal sizes it would be all monomials up to a degree, and
 * nothing is gained: then it is not even looked for. */
#include "poly.h"
#include <math.h>
#include <stdio.h>

enum { MOST_CHOSEN = 1 << 15 };
#define MOST_B    6.0  /* beyond it e^B leaves nothing */
#define UNEQUAL   0.5  /* mean of the box over its largest side, at most */
#define RUNS_COST 1.25 /* a monomial of a short run beside one of a long run */
#define EXP_SLACK 0x1p-48

static bool unequal(const double *box, size_t d)
{
    double sum = 0, top = 0;
    for (size_t c = 0; c < d; c++) {
        sum += box[c];
        top = fmax(top, box[c]);
    }
    return d > 1 && sum <= UNEQUAL * (double)d * top;
}

/* The most monomials whose work is below `work`; poly_work is affine in their number. */
static size_t affordable(const pare_poly_plan *p, double work)
{
    const double one = poly_work((double)p->n, 1, p->d, p->dv + 1, p->causal);
    const double each = poly_work((double)p->n, 2, p->d, p->dv + 1, p->causal) - one;
    const double count = (work - one) / (RUNS_COST * each);
    return count >= MOST_CHOSEN ? MOST_CHOSEN : count > 0 ? (size_t)count : 0;
}

static pare_status fill(pare_poly_plan *p, pare_arena *a, pare_ub eps, pare_err *err)
{
    double *const coef = pare_alloc(a, p->table.degree + 1, sizeof *coef);
    if (!coef) return pare_no_memory(err);
    for (size_t m = 0; m <= p->table.degree; m++) coef[m] = m ? coef[m - 1] / (double)m : 1;
    p->kind = PARE_POLY_ADAPTIVE;
    p->degree = p->table.degree;
    p->coef = coef;
    p->eps = eps;
    p->tv = poly_variation(eps);
    snprintf(p->why, sizeof p->why, "adaptive degree %zu, %zu features, logits up to %.3g",
             p->degree, p->table.count, p->B.v);
    return PARE_OK;
}

pare_status poly_choose(bool *found, pare_poly_plan *p, pare_arena *a, double work, size_t most,
                        bool asked, pare_err *err)
{
    *found = false;
    const double B = p->B.v, noise = 0x1p-24 * 400 * exp(B);
    const double room = 0.98 * p->tolerance - noise; /* for the polynomial */
    size_t count = affordable(p, work);
    if (count > most) count = most;
    if (!(B <= MOST_B) || !(room > 0) || count < 2 || !(asked || unequal(p->box, p->d)))
        return PARE_OK;
    const pare_ub grow = pare_ub_mul(pare_ub_of(exp(B)), pare_ub_exact(1 + EXP_SLACK));
    pare_ub tail;
    pare_monomials table;
    const double target = fmin(2 * room / (1 + room * room), 0.9) / grow.v;
    const pare_status st =
        pare_monomials_adaptive(&table, &tail, a, p->box, p->d, target, count, err);
    if (st) return st;
    /* coefficients 1/m! and orderings are rounded: a few units of f64, far below f32's */
    const pare_ub eps =
        pare_ub_add(pare_ub_mul(tail, grow), pare_ub_mul(grow, pare_ub_exact(0x1p-40)));
    *found = poly_variation(eps).v <= room && table.degree <= POLY_F32_DEGREE;
    if (!*found) return PARE_OK;
    p->table = table;
    return fill(p, a, eps, err);
}
