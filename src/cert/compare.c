/* What was claimed against what was proven again. A claim that says less than was proven (a larger
 * bound) is still true; one that says more, or something else, is not. */
#include "cert_parts.h"

#include <math.h>
#include <string.h>

static const double relative = 1e-3;

double pare_measured_slack(const pare_gap *gap)
{
    const double most = 1e-9 * gap->scale;
    return gap->slack <= most ? gap->slack : most;
}

/* ---- one value ------------------------------------------------------------------------------ */

/* Who is compared: "statements[2]", or "" for the headline. */
typedef struct spot {
    const char *list;
    size_t i;
} spot;

static const char *spot_text(char buf[64], spot at)
{
    if (!*at.list) return "";
    snprintf(buf, 64, "%s[%zu].", at.list, at.i);
    return buf;
}

static pare_status same_text(spot at, const char *key, const char *claimed, const char *again,
                             pare_err *err)
{
    char buf[64];
    if (claimed && again && strcmp(claimed, again) == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_VERIFY,
                     "%s%s: the certificate says \"%.160s\", the proof \"%.160s\"",
                     spot_text(buf, at), key, claimed ? claimed : "", again ? again : "");
}

static bool near(double a, double b, double rel)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b); /* does not apply, in both */
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= rel * fmax(fabs(a), fabs(b));
}

static pare_status same_number(spot at, const char *key, double claimed, double again, double rel,
                               pare_err *err)
{
    char buf[64];
    if (near(claimed, again, rel)) return PARE_OK;
    return pare_fail(err, PARE_ERR_VERIFY, "%s%s: the certificate says %.9g, found again is %.9g",
                     spot_text(buf, at), key, claimed, again);
}

static pare_status still_bound(spot at, const char *key, double claimed, double again,
                               pare_err *err)
{
    char buf[64];
    if (claimed >= again) return PARE_OK;
    return pare_fail(err, PARE_ERR_VERIFY, "%s%s: the certificate says %.9g, provable is %.9g",
                     spot_text(buf, at), key, claimed, again);
}

static pare_status same_count(const char *list, size_t claimed, size_t again, pare_err *err)
{
    if (claimed == again) return PARE_OK;
    return pare_fail(err, PARE_ERR_VERIFY, "%s: the certificate has %zu of them, the proof %zu",
                     list, claimed, again);
}

/* ---- the lists ------------------------------------------------------------------------------ */

static const char *truth_text(pare_truth t)
{
    return t == PARE_TRUE ? "true" : t == PARE_FALSE ? "false" : "null";
}

/* A limit that nothing can beat is a bound from below: it must not have grown, nor the value have
 * come below it. */
static pare_status still_least(spot at, const pare_hypothesis *x, const pare_hypothesis *y,
                               pare_err *err)
{
    if (x->limit > y->limit * (1 + 1e-6))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "%s[%zu].limit: the certificate says %.9g, provable is no more than %.9g",
                         at.list, at.i, x->limit, y->limit);
    if (x->value < x->limit && y->value >= y->limit)
        return pare_fail(err, PARE_ERR_VERIFY, "%s[%zu].value: %.9g is below the limit %.9g",
                         at.list, at.i, x->value, x->limit);
    return PARE_OK;
}

static pare_status hypotheses(const pare_cert *c, const pare_cert *again, pare_err *err)
{
    pare_status st = same_count("hypotheses", c->nhypotheses, again->nhypotheses, err);
    for (size_t i = 0; st == PARE_OK && i < c->nhypotheses; i++) {
        const pare_hypothesis *const x = &c->hypotheses[i], *const y = &again->hypotheses[i];
        const spot at = {"hypotheses", i};
        st = same_text(at, "name", x->name, y->name, err);
        if (st == PARE_OK)
            st = same_text(at, "holds", truth_text(x->holds), truth_text(y->holds), err);
        if (st == PARE_OK) st = same_number(at, "value", x->value, y->value, relative, err);
        if (st == PARE_OK) st = same_number(at, "limit", x->limit, y->limit, relative, err);
        if (st == PARE_OK && strstr(x->name, PARE_LEAST)) st = still_least(at, x, y, err);
    }
    return st;
}

static pare_status statements(const pare_cert *c, const pare_cert *again, pare_err *err)
{
    pare_status st = same_count("statements", c->nstatements, again->nstatements, err);
    for (size_t i = 0; st == PARE_OK && i < c->nstatements; i++) {
        const pare_statement *const x = &c->statements[i], *const y = &again->statements[i];
        const spot at = {"statements", i};
        st = same_text(at, "name", x->name, y->name, err);
        if (st == PARE_OK) st = same_text(at, "norm", x->norm, y->norm, err);
        if (st == PARE_OK) st = same_text(at, "domain", x->domain, y->domain, err);
        if (st == PARE_OK)
            st = same_number(at, "probability", x->probability, y->probability, 1e-15, err);
        if (st == PARE_OK) st = still_bound(at, "bound", x->bound, y->bound, err);
    }
    return st;
}

static pare_status paper(const pare_cert *c, const pare_cert *again, pare_err *err)
{
    pare_status st = same_count("paper_not_sound", c->npaper, again->npaper, err);
    for (size_t i = 0; st == PARE_OK && i < c->npaper; i++) {
        const spot at = {"paper_not_sound", i};
        st = same_text(at, "name", c->paper[i].name, again->paper[i].name, err);
        if (st == PARE_OK)
            st = same_number(at, c->paper[i].name, c->paper[i].value, again->paper[i].value,
                             relative, err);
    }
    return st;
}

/* ---- the headline --------------------------------------------------------------------------- */

static pare_status measured(const pare_cert *c, const pare_cert *again, pare_err *err)
{
    const double slack = isfinite(again->measured_slack) ? again->measured_slack : 0;
    if (!(fabs(c->measured - again->measured) <= fmax(relative * again->measured, slack)))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "measured: the certificate says %.9g, measured again is %.9g (slack %.3g)",
                         c->measured, again->measured, slack);
    /* The measurement is in f64 and may be off by the slack; the bound is on real numbers. */
    if (!(c->measured <= c->proven + slack))
        return pare_fail(err, PARE_ERR_VERIFY,
                         "measured %.9g is above the proven bound %.9g: one of them is wrong",
                         c->measured, c->proven);
    return PARE_OK;
}

pare_status pare_cert_compare(const pare_cert *claimed, const pare_cert *again, pare_err *err)
{
    const spot top = {"", 0};
    pare_status st = same_text(top, "reduction", claimed->reduction, again->reduction, err);
    if (st == PARE_OK) st = same_text(top, "norm", claimed->norm, again->norm, err);
    if (st == PARE_OK) st = same_text(top, "domain", claimed->domain, again->domain, err);
    if (st == PARE_OK) st = still_bound(top, "apriori", claimed->apriori, again->apriori, err);
    if (st == PARE_OK) st = still_bound(top, "proven", claimed->proven, again->proven, err);
    if (st == PARE_OK) st = still_bound(top, "rounding", claimed->rounding, again->rounding, err);
    if (st == PARE_OK) st = measured(claimed, again, err);
    if (st == PARE_OK) st = hypotheses(claimed, again, err);
    if (st == PARE_OK) st = statements(claimed, again, err);
    if (st == PARE_OK) st = paper(claimed, again, err);
    return st;
}
