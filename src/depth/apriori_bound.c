/* apriori_bound.c - the smallest bound on |f - g| that any of the theorems proves. */
#include "collapse_chain.h"
#include "theorem2_parallel.h"
#include "model/model_equality.h"
#include <pare/depth.h>
#include <math.h>
#include <stdio.h>

const char *depth_domain_words(pare_arena *a, const pare_model *f, const depth_domain *d)
{
    const double diam = d->diam0 >= 0 && d->diam0 < 2 * d->phi0 ? d->diam0 : 2 * d->phi0;
    if (f->embedding.ids && f->context)
        return pare_sprintf(a, "all token sequences of up to %zu tokens", f->context);
    if (f->embedding.ids) return pare_strdup(a, "all token sequences");
    return pare_sprintf(a, "all inputs with entries up to %.17g, tokens up to %.17g apart", d->phi0,
                        diam);
}

depth_bound depth_nothing_proven(const char *theorem, const char *why)
{
    depth_bound b = {.bound = pare_ub_inf(),
                     .by = {pare_ub_inf(), pare_ub_inf()},
                     .difference = pare_ub_inf(),
                     .theorem = theorem};
    if (why) snprintf(b.why, sizeof b.why, "%s", why);
    return b;
}

/* Shapes alone may allow several readings of g. Each bound is true; the least stands. */
static pare_status one_layer(depth_bound *out, const pare_model *f, const pare_model *g,
                             const depth_domain *d, const pare_exec *exec, pare_err *err)
{
    *out = depth_nothing_proven("none", "the models have different numbers of blocks, and the "
                                        "second is no one-layer collapse of the first that is "
                                        "known");
    for (pare_collapse kind = 0; kind < PARE_ONES; kind++)
        for (size_t keep = 0; keep < f->nblocks; keep++) {
            depth_bound b;
            if (!collapse_fits(f, g, kind, keep)) continue;
            const bool parallel = kind == PARE_ONE_PARALLEL || kind == PARE_ONE_PARALLEL_UNIFORM ||
                                  kind == PARE_ONE_UNIFORM_KEEP;
            const pare_status st = parallel ? depth_parallel(&b, f, g, d, kind, keep, err)
                                            : depth_recurrence(&b, f, g, d, kind, keep, exec, err);
            if (st) return st;
            b.theorem = pare_collapse_names[kind];
            /* of two vacuous bounds the later one has the better reason */
            const bool vacuous = isinf(out->bound.v) && isinf(b.bound.v);
            if (vacuous || b.bound.v < out->bound.v) *out = b;
        }
    return PARE_OK;
}

pare_status depth_apriori(depth_bound *out, const pare_model *f, const pare_model *g,
                          const depth_domain *d, const pare_exec *exec, pare_err *err)
{
    if (f->nblocks == g->nblocks) return depth_recurrence(out, f, g, d, PARE_ONES, 0, exec, err);
    const char *const why = pare_model_ends_differ(f, g);
    *out = depth_nothing_proven("none", why);
    return why ? PARE_OK : one_layer(out, f, g, d, exec, err);
}
