/* compare.c - what was claimed against what was proven again. A claim that says less than was
 * proven (a larger upper bound) is still true; one that says more, or something else, is not. */
#include "prove.h"
#include "cert_internal.h"

#include <math.h>
#include <string.h>

static const double relative = 1e-3;

/* ---- one claim ------------------------------------------------------------------------------ */

/* Both figures with as many digits as it takes to tell them apart, four at least. */
static void two_figures(char x[40], char y[40], double a, double b)
{
    for (int digits = 4; digits <= 17; digits++) {
        snprintf(x, 40, "%.*g", digits, a);
        snprintf(y, 40, "%.*g", digits, b);
        if (strcmp(x, y) != 0) return;
    }
}

/* Refuses, naming the claim: "ball.outputs (ball of radius 0.1 ...): the certificate claims 1, 2 is
 * the least that can be proven". `what`: the words behind the second figure. */
static pare_status refuse(const pare_claim *c, const char *what, double claimed, double again,
                          pare_err *err)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    pare_arena *const a = pare_arena_new();
    const char *const sentence = a ? pare_claim_sentence(a, c) : NULL;
    char x[40], y[40];
    two_figures(x, y, claimed, again);
    const pare_status st =
        pare_fail(err, PARE_ERR_VERIFY, "%s (%.160s): the certificate claims %s; %s is %s",
                  row->name, sentence ? sentence : "", x, y, what);
    pare_arena_free(a);
    return st;
}

static bool nearly_equal(double a, double b, double slack)
{
    if (isinf(a) || isinf(b) || isnan(a) || isnan(b)) return a == b;
    return fabs(a - b) <= fmax(relative * fmax(fabs(a), fabs(b)), isfinite(slack) ? slack : 0);
}

static const char *truth_text(pare_truth t)
{
    return t == PARE_TRUE ? "true" : t == PARE_FALSE ? "false" : "undecided";
}

/* Value and limit, where the kind has them. */
static pare_status same_figures(const pare_claim *x, const pare_claim *y, double limit_slack,
                                pare_err *err)
{
    const pare_kind_row *const row = &pare_kinds[x->kind];
    if (row->has_value && !nearly_equal(x->value, y->value, y->slack))
        return refuse(x, "the value computed again", x->value, y->value, err);
    if (row->has_limit && !nearly_equal(x->limit, y->limit, limit_slack))
        return refuse(x, "the limit computed again", x->limit, y->limit, err);
    return PARE_OK;
}

static pare_status same_hypothesis(const pare_claim *x, const pare_claim *y, pare_err *err)
{
    const pare_kind_row *const row = &pare_kinds[x->kind];
    if (x->holds != y->holds)
        return pare_fail(
            err, PARE_ERR_VERIFY,
            "%s: the certificate says that this hypothesis is %s; checked again it is %s",
            row->name, truth_text(x->holds), truth_text(y->holds));
    return same_figures(x, y, 0, err);
}

static pare_status still_theorem(const pare_claim *x, const pare_claim *y, pare_err *err)
{
    const pare_kind_row *const row = &pare_kinds[x->kind];
    if (row->lower ? !(x->value <= y->value) : !(x->value >= y->value))
        return refuse(x,
                      row->lower ? "the largest lower bound that can be proven"
                                 : "the least that can be proven",
                      x->value, y->value, err);
    if (pare_kind_is_drawn(x->kind) && !(x->probability <= y->probability))
        return refuse(x, "the largest probability that can be proven", x->probability,
                      y->probability, err);
    if (strcmp(x->domain, y->domain) != 0)
        return pare_fail(
            err, PARE_ERR_VERIFY,
            "%s: the certificate claims it on \"%.160s\"; the proof holds on \"%.160s\"", row->name,
            x->domain, y->domain);
    return PARE_OK;
}

static pare_status same_observation(const pare_claim *x, const pare_claim *y, pare_err *err)
{
    const pare_kind_row *const row = &pare_kinds[x->kind];
    const double slack = isfinite(y->slack) ? y->slack : 0;
    if (!(x->value >= 0))
        return refuse(x, "measured again (it is never below 0)", x->value, y->value, err);
    bool same = x->value == y->value;
    if (row->one_sided)
        same = same || y->value <= fma(row->tolerance, x->value, x->value);
    else if (isfinite(x->value)) /* within a thousandth of inf is everything */
        same = same || fabs(y->value - x->value) <= fmax(row->tolerance * fabs(x->value), slack);
    return same ? PARE_OK : refuse(x, "measured again", x->value, y->value, err);
}

/* A figure above an optimum: it must not have shrunk, nor the optimum have grown. */
static pare_status same_evidence(const pare_claim *x, const pare_claim *y, pare_err *err)
{
    const pare_kind_row *const row = &pare_kinds[x->kind];
    const pare_status st = same_figures(x, y, y->slack, err);
    if (st) return st;
    if (row->has_value && row->has_limit && !(x->value >= x->limit))
        return refuse(x, "its value, and the limit is above it", x->limit, x->value, err);
    return PARE_OK;
}

static pare_status same_claim(const pare_claim *x, const pare_claim *y, pare_err *err)
{
    switch (pare_kinds[x->kind].section) {
    case PARE_HYPOTHESIS:
        return same_hypothesis(x, y, err);
    case PARE_THEOREM:
        return still_theorem(x, y, err);
    case PARE_OBSERVATION:
        return same_observation(x, y, err);
    case PARE_EVIDENCE:
        return same_evidence(x, y, err);
    default: /* a printed formula: a value alone */
        return same_figures(x, y, 0, err);
    }
}

/* ---- the lists ------------------------------------------------------------------------------ */

static const pare_claim *find_claim(const pare_cert *c, const pare_claim *like)
{
    for (size_t i = 0; i < c->nclaims; i++)
        if (pare_same_claim(&c->claims[i], like)) return &c->claims[i];
    return NULL;
}

/* Every claim is found again. */
static pare_status all_again(const pare_cert *c, const pare_cert *again, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; st == PARE_OK && i < c->nclaims; i++) {
        const pare_claim *const x = &c->claims[i];
        const pare_kind_row *const row = &pare_kinds[x->kind];
        if (row->section == PARE_EVIDENCE && !again->evidence) continue;
        const pare_claim *const y = find_claim(again, x);
        st = y ? same_claim(x, y, err)
               : pare_fail(err, PARE_ERR_VERIFY,
                           "%s: the proof makes no such claim with these parameters", row->name);
    }
    return st;
}

/* No hypothesis and no observation is left out: one may be what speaks against the cut. A theorem
 * that is left out makes the certificate say less. */
static pare_status none_left_out(const pare_cert *c, const pare_cert *again, pare_err *err)
{
    for (size_t i = 0; i < again->nclaims; i++) {
        const pare_claim *const y = &again->claims[i];
        const pare_section s = pare_kinds[y->kind].section;
        if (s != PARE_HYPOTHESIS && s != PARE_OBSERVATION) continue;
        if (!find_claim(c, y))
            return pare_fail(
                err, PARE_ERR_VERIFY, "%s: the certificate leaves out this %s, which the proof has",
                pare_kinds[y->kind].name, s == PARE_HYPOTHESIS ? "hypothesis" : "observation");
    }
    return PARE_OK;
}

/* ---- the headline --------------------------------------------------------------------------- */

static pare_status same_text(const char *key, const char *claimed, const char *again, pare_err *err)
{
    if (claimed && again && strcmp(claimed, again) == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_VERIFY,
                     "%s: the certificate says \"%.160s\"; the proof says \"%.160s\"", key,
                     claimed ? claimed : "", again ? again : "");
}

/* Both figures are differences of midpoints, each within the proven radius of the exact largest
 * difference: further apart than both radii they cannot be of the same models. */
static pare_status compare_headline(const pare_cert *c, const pare_cert *again, pare_err *err)
{
    const double radius = again->measured_radius;
    if (isnan(radius))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "measured: the proof does not bound its own rounding");
    if (!(c->proven >= again->proven)) {
        char x[40], y[40];
        two_figures(x, y, c->proven, again->proven);
        return pare_fail(
            err, PARE_ERR_VERIFY,
            "proven: the certificate claims %s; %s is the least that can be proven (%s)", x, y,
            again->norm);
    }
    /* An infinite radius knows nothing, and must not excuse everything. */
    const double apart = isinf(radius) ? 0 : 2 * radius;
    if (!(fabs(c->measured - again->measured) <= fmax(relative * again->measured, apart)))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "measured: the certificate says %.9g; measured again it is %.9g (within "
                         "%.3g of the exact difference)",
                         c->measured, again->measured, radius);
    if (!(c->measured <= c->proven + radius))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "measured %.9g is above the proven bound %.9g: one of them is wrong",
                         c->measured, c->proven);
    return PARE_OK;
}

pare_status pare_cert_compare(const pare_cert *claimed, const pare_cert *again, pare_err *err)
{
    pare_status st = same_text("reduction", claimed->reduction, again->reduction, err);
    if (st == PARE_OK) st = same_text("norm", claimed->norm, again->norm, err);
    if (st == PARE_OK) st = same_text("domain", claimed->domain, again->domain, err);
    if (st == PARE_OK) st = compare_headline(claimed, again, err);
    if (st == PARE_OK) st = all_again(claimed, again, err);
    if (st == PARE_OK) st = none_left_out(claimed, again, err);
    if (st == PARE_OK) st = cert_bounds_meet(claimed, err);
    return st;
}
