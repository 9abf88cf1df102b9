/* probe_theorems.c - which hypothesis of which theorem of Shirzad 2024 holds, and by what factor it
 * fails. The theorems are the repaired ones (docs/errata.md). The limits of the two that are
 * recursions are found by asking how small their eps must be for the bound to be below the largest
 * output. */
#include "probe.h"
#include <math.h>

enum { MOST = 16 };

typedef struct findings {
    pare_probe *p;
    pare_err *err;
    pare_status st;
} findings;

/* value must not be above limit. */
static pare_finding at_most(double value, double limit)
{
    const bool yes = value <= limit;
    return (pare_finding){.holds = yes ? PARE_TRUE : PARE_FALSE,
                          .value = value,
                          .limit = limit,
                          .factor = limit > 0 ? value / limit
                                    : yes     ? 1
                                              : INFINITY};
}

static void add_finding(findings *f, pare_finding it, const char *theorem, const char *method,
                        const char *what, const char *where)
{
    it.theorem = theorem;
    it.method = method;
    it.what = what;
    it.where = where;
    if (!f->st && !where) f->st = pare_no_memory(f->err);
    if (f->st) return;
    PARE_ASSERT(f->p->nfindings < MOST);
    f->p->findings[f->p->nfindings++] = it;
}

/* Layers are as the theorems have them. */
static void check_layers(findings *f, bool cluster)
{
    const pare_width_facts *const s = &f->p->width_facts;
    bool skip = false, bias = false, scaled = false, heads = false, act = false;
    size_t bad = 0;
    for (size_t i = 0; i < s->nlayers; i++) {
        const pare_width_facts_layer *const l = &s->layers[i];
        skip = skip || l->skip;
        heads = heads || l->nheads > 1;
        bias = bias || (l->bias && !cluster);
        scaled = scaled || (l->scaled && !cluster);
        act = act || (!l->relu && cluster);
        bad += l->skip || l->nheads > 1 || (cluster ? !l->relu : l->bias || l->scaled);
    }
    pare_finding it = at_most((double)bad, 0);
    it.factor = NAN;
    add_finding(f, it, cluster ? "Theorem 4.4" : "Theorems 3.3, 4.2",
                cluster ? "cluster" : "jl, lowrank",
                cluster ? "layers are plain: relu, one head, no skips"
                        : "layers are plain: one head, no skips, biases or score scales",
                bad == 0 ? ""
                         : pare_sprintf(f->p->arena, "of %zu layers%s%s%s%s%s", s->nlayers,
                                        skip ? ", skips" : "", heads ? ", several heads" : "",
                                        bias ? ", biases" : "", scaled ? ", score scales" : "",
                                        act ? ", another activation" : ""));
}

/* Theorem 3.3: the dimension of its lemma. */
static void check_jl_dimension(findings *f)
{
    const pare_width_facts *const s = &f->p->width_facts;
    size_t worst = 0;
    for (size_t i = 0; i < s->nlayers; i++)
        if ((double)s->layers[i].jl_dim / (double)s->layers[i].qk_dim >
            (double)s->layers[worst].jl_dim / (double)s->layers[worst].qk_dim)
            worst = i;
    const pare_width_facts_layer *const l = &s->layers[worst];
    add_finding(f, at_most((double)l->jl_dim, (double)l->qk_dim), "Theorem 3.3", "jl",
                "the dimension the lemma asks for is at most that of queries and keys",
                pare_sprintf(f->p->arena,
                             "layer %zu: eps %g, delta %g, %zu different rows, %zu pairs", worst,
                             s->eps, s->delta, l->rows, l->pairs));
}

/* The largest eps with which the theorem's bound does not exceed the largest output: halving, as
 * the bounds grow with eps. */
static double useful_eps(pare_ub (*bound)(pare_ub, pare_ub, size_t, pare_ub), double beta,
                         double root_alpha, size_t layers, double output)
{
    double low = -300, high = 3; /* powers of ten */
    for (int i = 0; i < 60; i++) {
        const double mid = (low + high) / 2;
        const pare_ub b =
            bound(pare_ub_of(beta), pare_ub_of(root_alpha), layers, pare_ub_of(pow(10, mid)));
        *(b.v <= output ? &low : &high) = mid;
    }
    return pow(10, low);
}

/* Theorems 3.3 and 4.2: their a-priori bounds. */
static void check_bounds(findings *f)
{
    const pare_probe *const p = f->p;
    const pare_width_facts *const s = &p->width_facts;
    const double jl =
        useful_eps(pare_jl_bound, p->operators.sup, p->vectors.sup, s->nlayers, p->output);
    const double low =
        useful_eps(pare_lowrank_bound, p->operators.sup, p->vectors.sup, s->nlayers, p->output);
    size_t worst = 0;
    for (size_t i = 0; i < s->npoints; i++)
        if (s->points[i].residual_est > s->points[worst].residual_est) worst = i;
    add_finding(f, at_most(s->eps, jl), "Theorem 3.3", "jl",
                "with eps its a-priori bound is below the largest output",
                pare_sprintf(p->arena, "norms %.3g and %.3g, %zu layers", p->operators.sup,
                             p->vectors.sup, s->nlayers));
    add_finding(f, at_most(s->points[worst].residual_est, low), "Theorem 4.2", "lowrank",
                "rows are so near a subspace that its a-priori bound is below the largest output",
                pare_sprintf(p->arena, "%s at width %zu", s->points[worst].name, s->dim));
}

/* Proposition 4.1. */
static void check_ranks(findings *f)
{
    const pare_probe *const p = f->p;
    size_t full = 0, first = p->nstreams;
    for (size_t i = 0; i < p->nstreams; i++)
        if (p->streams[i].affine_est >= p->streams[i].width) {
            full++;
            if (first == p->nstreams) first = i;
        }
    pare_finding it = at_most((double)full, 0);
    it.factor = NAN;
    add_finding(f, it, "Proposition 4.1", "exact",
                "every place of the stream has a rank below its width",
                full == 0 ? ""
                          : pare_sprintf(p->arena, "full rank at %zu of %zu places, first at %s",
                                         full, p->nstreams, p->streams[first].name));
}

/* Proposition 4.3. */
static void check_sampling(findings *f)
{
    const pare_width_facts *const s = &f->p->width_facts;
    size_t worst = 0;
    for (size_t i = 0; i < s->nlayers; i++)
        if (s->layers[i].draws / (double)s->layers[i].units >
            s->layers[worst].draws / (double)s->layers[worst].units)
            worst = i;
    const pare_width_facts_layer *const l = &s->layers[worst];
    add_finding(f, at_most(l->draws, (double)l->units), "Proposition 4.3", "leverage",
                "sampling asks for at most as many rows as there are hidden units",
                pare_sprintf(f->p->arena, "layer %zu at rank %zu, largest leverage %.3g", worst,
                             l->rank, l->leverage_est));
}

/* Theorem 4.4. */
static void check_clusters(findings *f)
{
    const pare_width_facts *const s = &f->p->width_facts;
    size_t wide = 0, near = 0;
    for (size_t i = 0; i < s->nlayers; i++) {
        if (s->layers[i].radius_est > s->layers[wide].radius_est) wide = i;
        if (s->layers[i].separation_est > s->layers[near].separation_est) near = i;
    }
    add_finding(
        f, at_most(s->layers[wide].radius_est, 1), "Theorem 4.4", "cluster",
        "clusters have a radius below the norm of their centres",
        pare_sprintf(f->p->arena, "layer %zu, %zu clusters", wide, s->layers[wide].clusters));
    add_finding(
        f, at_most(s->layers[near].separation_est, 1), "Theorem 4.4", "cluster",
        "centres are nearly orthogonal",
        pare_sprintf(f->p->arena, "layer %zu, %zu clusters", near, s->layers[near].clusters));
}

pare_status probe_theorems(pare_probe *p, const pare_model *m, pare_err *err)
{
    findings f = {.p = p, .err = err};
    p->findings = pare_alloc(p->arena, MOST, sizeof *p->findings);
    if (!p->findings) return pare_no_memory(err);
    if (m->nblocks == 0 || !p->has_width_facts) return PARE_OK;
    check_layers(&f, false);
    check_jl_dimension(&f);
    check_bounds(&f);
    check_ranks(&f);
    check_sampling(&f);
    check_layers(&f, true);
    check_clusters(&f);
    return f.st;
}
