/* required_units.c - how many products an entry needs (Lemma S), and how many units n_K, n_V a
 * layer needs (Theorem 3, mended), before anything is drawn (docs/theory/ticket.md "Lemma S: how
 * many items an entry needs", "Theorem 3, beforehand").
 *
 * Lemma S. Items i.i.d. with density g, a > 0, kappa = 2 a inf_{|z| <= 2a} g. After m items the
 * probability that some |z| <= a is farther than eta from every subset sum is at most
 *     (1 - kappa / 2)^m 8 a^2 / eta^2           (eta <= 2 a).
 * Proof. Let v be the share of [-a, a] within eta / 2 of a sum that was reached without leaving it;
 * v starts at eta / (2 a). One more item adds w, 0 <= w <= min(v, 1 - v), E w >= kappa v (1 - v)
 * (translate, intersect, Fubini). 1/v - 1 is convex and falls, so its mean shrinks by 1 - kappa / 2
 * at least. Markov at 1 - v = eta / (4 a): less than eta / 2 of length uncovered means that every z
 * has a covered point within eta / 2.  []
 *
 * Products of two U[-1, 1] have g(z) = -ln|z| / 2: kappa = -a ln(2 a), best 1 / (2 e) at a = .184.
 * Larger entries, |w| <= R: the first m0 items are taken while they are in (0, s], s = 2 a, have
 * the right sign, and more than a is left. Their mean is mu = s^2 (1 - 2 ln s) / 8; by Hoeffding m0
 * are enough but for probability exp(-2 t^2 / (m0 s^2)), t = m0 mu - (R - a) > 0. Each part may
 * fail with p / 2.
 *
 * The generator. A weight is an odd multiple of 2^-24. Add to it an independent uniform number of
 * at most 2^-24: that is U(-1, 1). Products move by less than 2^-23, sums of n' by less than n'
 * 2^-23. So the lemma for a density and eta' = eta - n' 2^-23 > 0 proves the generator's statement
 * for eta, and where there is no such eta' nothing is claimed. */
#include "linalg/bounds.h"
#include "ticket_bounds.h"
#include "bounds.h"
#include <math.h>

double pare_ticket_coupling(size_t units)
{
    return (double)units * 0x1p-23;
}

/* Up to the next whole number, and over the rounding of the formulas; logarithms round upwards. */
static double round_up_whole(double x)
{
    return ceil(x * (1 + 1e-12) + 1e-9);
}

/* Items that bring any |w| <= reach to within a, but for probability `fail`. */
static double first_items(double reach, double fail, double a)
{
    const double s = 2 * a, mu = s * s * (1 - 2 * pare_log_up(s)) / 8, gap = reach - a;
    if (gap <= 0) return 0;
    /* m mu - gap >= sqrt(m l) s with l = ln(1 / fail) / 2: a quadratic in sqrt(m) */
    const double l = s * sqrt(pare_log_up(1 / fail) / 2);
    const double root = (l + sqrt(l * l + 4 * mu * gap)) / (2 * mu);
    return round_up_whole(root * root);
}

static double later_items(double eta, double fail, double a)
{
    const double kappa = -a * pare_log_up(2 * a);
    if (!(kappa > 0)) return INFINITY;
    eta = fmin(eta, 2 * a); /* the lemma asks for it, and what is met within less is met */
    const double need = pare_log_up(8 * a * a / (eta * eta)) + pare_log_up(1 / fail);
    return need > 0 ? round_up_whole(need / -pare_log_up(1 - kappa / 2)) : 1;
}

/* For weights with a density: the least over a; *at is that a. */
static double density_units(double *at, double eta, double p, double reach)
{
    double best = INFINITY;
    for (int i = 1; i < 500; i++) {
        const double a = i / 1000.0;
        const bool near = reach <= a;
        const double n =
            (near ? 0 : first_items(reach, p / 2, a)) + later_items(eta, near ? p : p / 2, a);
        if (n >= best) continue;
        best = n;
        *at = a;
    }
    return best;
}

pare_ticket_need pare_ticket_units(double eta, double p, double reach)
{
    enum { MOST = 1 << 20 };
    pare_ticket_need out = {0};
    if (!(eta > 0 && p > 0 && p < 1 && reach >= 0)) return out;
    /* The sum of no products is 0: a unit is there only because a ticket has one. */
    if (reach <= eta) return (pare_ticket_need){1, 0, 0, 1};
    double at = 0;
    double n = density_units(&at, eta, p, reach);
    if (!(n < MOST)) return out;
    out = (pare_ticket_need){0, at, pare_ticket_coupling((size_t)n), (size_t)n};
    for (;;) { /* n grows, so this ends */
        const double left = eta - pare_ticket_coupling((size_t)n);
        if (!(left > 0)) return out;
        const double next = density_units(&at, left, p, reach);
        if (!(next < MOST)) return out;
        if (next <= n) break;
        n = next;
    }
    out.units = (size_t)n;
    out.a = at;
    out.coupling = pare_ticket_coupling(out.units);
    return out;
}

/* Theorem 3, repaired: Theorem B with |E| <= sqrt(ab) eta and tanh z <= z gives
 *     H omega alpha^3 d1 eta_q + H alpha sqrt(d1 d2) eta_v = eps,
 * a failure of p is split evenly over the entries. Otsuka 2025 has eta_q = eps / (8 H alpha^3
 * d1^1.5), eta_v = eps / (2 H alpha d1 sqrt(d2)), p = eps, blocks on the input side, and widths
 * d1 C ln(1 / eta) with a C that it does not give. */
pare_ticket_plan pare_ticket_plan_layer(const pare_ticket_layer_size *s, double eps, double p)
{
    const double h = (double)s->heads, d1 = (double)s->d1, d2 = (double)s->d2, a = s->alpha;
    const size_t side = s->d1 < s->d2 ? s->d1 : s->d2;
    const double paper_q = eps / (8 * h * a * a * a * pow(d1, 1.5)),
                 paper_v = eps / (2 * h * a * d1 * sqrt(d2));
    const double down = 1 - 1e-12; /* over the rounding of the formulas */
    pare_ticket_plan out = {.eta_q = down * eps / (2 * h * s->omega * a * a * a * d1),
                            .eta_v = down * eps / (2 * h * a * sqrt(d1 * d2))};
    out.q = pare_ticket_units(out.eta_q, p / (2 * h * d1 * d1), s->rq);
    out.v = pare_ticket_units(out.eta_v, p / (2 * h * d1 * d2), s->rv);
    out.n_k = d1 * (double)out.q.units;
    out.n_v = (double)side * (double)out.v.units;
    out.paper_k = d1 * log(1 / paper_q);
    out.paper_v = d1 * log(1 / paper_v);
    out.least_k = pare_ticket_least_units(s->d1, s->d1, s->dk ? s->dk : s->d1, s->rq, out.eta_q);
    out.least_v = pare_ticket_least_units(s->d1, s->d2, s->dv ? s->dv : side, s->rv, out.eta_v);
    return out;
}
