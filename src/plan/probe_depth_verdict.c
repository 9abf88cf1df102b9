/* probe_depth_verdict.c - can the attention of this model be collapsed, how sure is that, and what
 * prevents it. */
#include "probe.h"
#include <math.h>
#include <string.h>

const char *const pare_depth_verdict_names[] = {"collapsible (proved)", "collapsible (measured)",
                                                "not collapsible by the kinds tried", "not known",
                                                NULL};

static char *describe_proved(const pare_probe *p, const pare_probe_bound *b)
{
    const pare_attention_stats *const x = &p->depth.stats;
    const size_t n = x->nlayers;
    char bound[40], apart[40], *how; /* the model that the bound is about */
    const bool two = isfinite(b->difference.v);
    double widest_range = 0;
    for (size_t h = 0; h < x->nheads; h++) widest_range = fmax(widest_range, x->heads[h].range_max);
    if (strcmp(b->what, "keep") == 0)
        how = pare_sprintf(p->arena, "without %zu of %zu attentions (the last stays)", n - 1, n);
    else if (strcmp(b->what, "parallel") == 0)
        how = pare_sprintf(p->arena, "with all %zu attentions beside one another in one layer", n);
    else if (strcmp(b->what, "parallel+uniform") == 0)
        how = pare_sprintf(p->arena,
                           "with uniform weights in all %zu attentions, beside one another in one "
                           "layer (parallel+uniform),",
                           n);
    else
        how = pare_sprintf(p->arena, "with %s weights in all %zu attentions", b->what, n);
    if (!how) return NULL;
    return pare_sprintf(
        p->arena,
        "%s no output moves by more than %s%s%s, for %s; the largest output is "
        "%.3g; logit ranges are at most %.2g on this data",
        how, pare_ub_format(bound, b->bound, 2), two ? ", their difference by " : "",
        two ? pare_ub_format(apart, b->difference, 2) : "", b->domain, p->output, widest_range);
}

const pare_replacement_point *probe_best_point(const pare_replacement_costs *c, size_t exact,
                                               pare_attn_kind *kind)
{
    const pare_replacement_point *best = NULL;
    for (size_t i = 0; i < c->ncurves; i++)
        for (size_t k = 0; k <= c->nlayers; k++) {
            const pare_replacement_point *const at = &c->curves[i].points[k];
            if (at->exact > exact || (best && !(at->lost < best->lost))) continue;
            best = at;
            *kind = c->curves[i].kind;
        }
    return best;
}

static char *describe_point(const pare_probe *p, const pare_replacement_point *at,
                            pare_attn_kind kind)
{
    const size_t all = p->depth.stats.nlayers, removed = all - at->exact;
    const double before = p->depth.costs.curves[0].points[0].metric; /* nothing replaced */
    char metric[120] = "";
    if (p->metric && !isnan(at->metric))
        snprintf(metric, sizeof metric, ", %s %.4g, before %.4g", p->metric, at->metric, before);
    return pare_sprintf(p->arena,
                        "%s in place of %zu of %zu attentions loses %.2g %% of attention's effect "
                        "on the outputs (relative error %.2g%s), measured%s",
                        pare_attn_name(kind), removed, all, 100 * at->lost, at->error, metric,
                        p->inputs == 1 ? " on the input it was fitted to" : "");
}

/* The first that fails of: the norms are affine, and what else the proof needs; logit ranges are
 * small; the proof's bound is small. */
static char *first_violated(const pare_probe *p)
{
    const pare_depth_probe *const d = &p->depth;
    const pare_head_stats *worst = &d->stats.heads[0];
    for (size_t i = 0; i < d->nbounds; i++)
        if (strcmp(d->bounds[i].what, "uniform") == 0 && !isfinite(d->bounds[i].bound.v))
            return pare_sprintf(p->arena, "nothing is proven a priori: %s",
                                *d->bounds[i].why ? d->bounds[i].why : "the bound overflows");
    for (size_t h = 0; h < d->stats.nheads; h++)
        if (d->stats.heads[h].range_mean > worst->range_mean) worst = &d->stats.heads[h];
    if (worst->range_mean > PARE_PROBE_RANGE)
        return pare_sprintf(
            p->arena,
            "logit ranges are not small: block %zu head %zu has a mean of %.3g, at most "
            "%g would do",
            worst->block, worst->head, worst->range_mean, PARE_PROBE_RANGE);
    for (size_t i = 0; i < d->nbounds; i++)
        if (strcmp(d->bounds[i].what, "uniform") == 0 &&
            !(d->bounds[i].bound.v <= PARE_PROBE_SMALL * p->output))
            return pare_sprintf(p->arena,
                                "the a-priori bound is not small: %.3g for uniform, %g of the "
                                "largest output would be %.3g",
                                d->bounds[i].bound.v, PARE_PROBE_SMALL,
                                PARE_PROBE_SMALL * p->output);
    return pare_strdup(p->arena, "");
}

pare_status probe_verdict(pare_probe *p, const pare_model *m, pare_err *err)
{
    pare_depth_probe *const d = &p->depth;
    const pare_probe_bound *proved = NULL; /* the least bound that is of use */
    pare_attn_kind kind = PARE_ATTN_NONE;
    (void)m;
    for (size_t i = 0; i < d->nbounds; i++) {
        const pare_probe_bound *const b = &d->bounds[i];
        if (b->bound.v <= PARE_PROBE_SMALL * p->output && (!proved || b->bound.v < proved->bound.v))
            proved = b;
    }
    /* One of several may stay; of one alone none. None at all is better where both will do. */
    const pare_replacement_point *at = probe_best_point(&d->costs, 0, &kind);
    if (d->stats.nlayers > 1 && !(at && at->lost <= PARE_PROBE_LOST))
        at = probe_best_point(&d->costs, 1, &kind);
    d->violated = proved ? "" : first_violated(p);
    if (!d->violated) return pare_no_memory(err);
    if (proved) {
        d->verdict = PARE_DEPTH_PROVED;
        d->why = describe_proved(p, proved);
    } else if (at && at->lost <= PARE_PROBE_LOST) {
        d->verdict = PARE_DEPTH_MEASURED;
        d->why = describe_point(p, at, kind);
    } else if (!d->costs.kinds || d->costs.skipped) {
        d->verdict = PARE_DEPTH_UNKNOWN;
        d->why = pare_sprintf(
            p->arena, "replacing attention was not tried (%s), and no a-priori bound is small",
            d->costs.skipped ? d->costs.skipped : "no_cuts is set");
    } else if (!at) {
        d->verdict = PARE_DEPTH_NOT;
        d->why = "no kind can stand in the place of every attention";
    } else {
        const char *const point = describe_point(p, at, kind);
        d->verdict = PARE_DEPTH_NOT;
        d->why = point
                     ? pare_sprintf(p->arena,
                                    "the best of %zu kinds, %s; at most %g %% would be acceptable",
                                    d->costs.ncurves, point, 100 * PARE_PROBE_LOST)
                     : NULL;
    }
    return d->why ? PARE_OK : pare_no_memory(err);
}
