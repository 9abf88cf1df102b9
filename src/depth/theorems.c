/* theorems.c - adds to a certificate what the theorems of depth prove about a pair of models:
 * theorem 1 or 2 for all inputs like the given ones (for ids: all token sequences), the error that
 * each replaced layer injects behind its norm, rank collapse where there are no skips, and the
 * bound that Rank collapse 2025 prints. Each is a function of the two models and of the size of
 * the inputs. */
#include "theorems.h"
#include "depth_bounds.h"
#include <pare/publish.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The layers of a wide model are not looked at one by one: that would take minutes. */
#define INJECTED_WIDTH 512
#define UNSEEN         1e-9

typedef struct book {
    pare_cert *cert;
    pare_arena *a;
    const pare_model *f, *g;
    const pare_exec *exec;
    pare_err *err;
} book;

static pare_status add(const book *b, pare_claim c)
{
    return pare_cert_add(b->cert, b->a, c, b->err);
}

/* A theorem on that domain; vacuous bounds are left out. */
static pare_status bound_by(const book *b, pare_claim c, const char *domain, pare_ub bound)
{
    if (!domain) return pare_no_memory(b->err);
    if (isinf(bound.v)) return PARE_OK;
    c.value = bound.v;
    c.domain = domain;
    return add(b, c);
}

static pare_status applies(const book *b, pare_truth holds, const char *why)
{
    char *const text = pare_strdup(b->a, why);
    if (!text) return pare_no_memory(b->err);
    return add(b, (pare_claim){.kind = PARE_APRIORI_APPLIES, .holds = holds, .text = text});
}

/* ---- how large the inputs are ---------------------------------------------------------------- */

static void widen_by(depth_domain *d, const pare_input *in)
{
    for (size_t j = 0; j < in->width; j++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < in->batch * in->tokens; i++) {
            const double x = in->x[i * in->width + j];
            low = fmin(low, x);
            high = fmax(high, x);
        }
        if (!(low <= high)) continue;
        d->phi0 = fmax(d->phi0, fmax(fabs(low), fabs(high)));
        if (high > low) d->diam0 = fmax(d->diam0, nextafter(high - low, INFINITY));
    }
}

static depth_domain domain_of(const pare_inputs *set)
{
    depth_domain d = {0, 0};
    for (size_t i = 0; i < set->n; i++)
        if (set->in[i].x) widen_by(&d, &set->in[i]);
    return d;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* What no one-layer network can beat, on the same inputs. */
static pare_status unreachable(const book *b, const depth_domain *d, const char *domain)
{
    depth_lower low = {0};
    if (!depth_lower_applies(b->f, b->g)) return PARE_OK;
    const pare_status st = depth_lower_model(&low, b->f, d, b->exec, b->err);
    if (st || !(low.lb > UNSEEN * d->phi0)) return st;
    return add(b, (pare_claim){.kind = PARE_ONE_LAYER_LEAST, .value = low.lb, .domain = domain});
}

static pare_status whole_domain(const book *b, const depth_domain *d)
{
    depth_bound t;
    pare_status st = depth_apriori(&t, b->f, b->g, d, b->exec, b->err);
    if (st) return st;
    const char *const words = depth_domain_words(b->a, b->f, d);
    if (isinf(t.bound.v)) return applies(b, PARE_FALSE, *t.why ? t.why : "the bound overflows");
    st = applies(b, PARE_TRUE, t.theorem);
    if (!st) st = bound_by(b, (pare_claim){.kind = PARE_APRIORI_OUTPUTS}, words, t.bound);
    if (!st) st = bound_by(b, (pare_claim){.kind = PARE_APRIORI_SCORE}, words, t.difference);
    return st ? st : unreachable(b, d, words);
}

static pare_status injected(const book *b)
{
    pare_status st = PARE_OK;
    if (b->f->nblocks != b->g->nblocks) return PARE_OK;
    for (size_t l = 0; !st && l < b->f->nblocks; l++) {
        const pare_attn *const x = &b->f->blocks[l].attn, *const y = &b->g->blocks[l].attn;
        pare_ub bound = pare_ub_inf();
        if (x->kind == y->kind || x->din > INJECTED_WIDTH) continue;
        st = depth_injected(&bound, b->f, b->g, l, b->exec, b->err);
        if (!st)
            st = bound_by(b, (pare_claim){.kind = PARE_LAYER_INJECTED, .p = {(double)l}},
                          "all inputs", bound);
    }
    return st;
}

static pare_status collapse_of_rank(const book *b, const depth_domain *d)
{
    depth_rank r;
    const pare_status st = depth_rank_collapse(&r, b->f, d, b->exec, b->err);
    if (st || *r.why) return st;
    return bound_by(b, (pare_claim){.kind = PARE_RANK_COLLAPSE}, depth_domain_words(b->a, b->f, d),
                    r.bound);
}

/* ---- the domain that was asked for ----------------------------------------------------------- */

pare_claim pare_depth_diameter(double diameter)
{
    return (pare_claim){.kind = PARE_DIAMETER_OUTPUTS, .p = {diameter}};
}

/* As long as the data's entries, or as the diameter needs them to be. */
static depth_domain domain_within(const pare_inputs *set, double diam)
{
    depth_domain d = domain_of(set);
    d.phi0 = fmax(d.phi0, diam / 2);
    d.diam0 = diam;
    return d;
}

pare_status theorems_within(pare_cert *cert, pare_arena *a, const pare_model *f,
                            const pare_model *g, const pare_inputs *set, double diam,
                            const pare_exec *exec, pare_err *err)
{
    const book b = {cert, a, f, g, exec, err};
    const depth_domain d = domain_within(set, diam);
    const char *const words = depth_domain_words(a, f, &d);
    depth_bound t = {.bound = pare_ub_inf(), .difference = pare_ub_inf()};
    depth_rank r = {.bound = pare_ub_inf()};
    if (!words) return pare_no_memory(err);
    pare_status st = f->stem.ids ? PARE_OK : depth_apriori(&t, f, g, &d, exec, err);
    if (!st && !f->stem.ids) st = depth_rank_collapse(&r, f, &d, exec, err);
    if (st) return st;
    pare_claim c = pare_depth_diameter(diam);
    /* It stands there also when it is vacuous: a verifier reads the diameter from it. */
    c.value = t.bound.v;
    c.domain = words;
    st = add(&b, c);
    c.kind = PARE_DIAMETER_SCORE;
    if (!st) st = bound_by(&b, c, words, t.difference);
    c.kind = PARE_DIAMETER_RANK_COLLAPSE;
    if (!st) st = bound_by(&b, c, words, r.bound);
    return st;
}

/* ---- what Rank collapse 2025 prints ---------------------------------------------------------- */

/* The nets of Rank collapse 2025: attention and identity skips, nothing else. */
static bool is_papers_net(const pare_model *f)
{
    bool yes = !f->stem.ids && f->nblocks > 0;
    for (size_t l = 0; l < f->nblocks; l++) {
        const pare_block *const b = &f->blocks[l];
        yes &= b->attn.kind == PARE_ATTN_EXACT && b->ffn.kind == PARE_FFN_NONE &&
               b->attn.in_norm.kind == PARE_NORM_NONE && b->attn.out_norm.kind == PARE_NORM_NONE &&
               b->attn.skip.kind == PARE_SKIP_IDENTITY;
    }
    return yes;
}

static pare_status printed(const book *b, const depth_domain *d)
{
    if (!is_papers_net(b->f)) return PARE_OK;
    const depth_paper p = depth_paper_model(b->f, d->phi0);
    const pare_status st =
        add(b, (pare_claim){.kind = PARE_PAPER_COLLAPSE_BOUND, .value = p.bound});
    return st ? st : add(b, (pare_claim){.kind = PARE_PAPER_COLLAPSE_CLAIM, .value = p.claim});
}

pare_status theorems_near_inputs(pare_ub *out, const pare_model *f, const pare_model *g,
                                 const pare_inputs *set, double radius, const pare_exec *exec,
                                 pare_err *err)
{
    depth_domain d = domain_of(set);
    depth_bound t;
    *out = pare_ub_inf();
    if (f->stem.ids) return PARE_OK;
    d.phi0 = nextafter(d.phi0 + radius, INFINITY);
    d.diam0 = nextafter(d.diam0 + 2 * radius, INFINITY);
    const pare_status st = depth_apriori(&t, f, g, &d, exec, err);
    if (!st) *out = t.bound;
    return st;
}

pare_status theorems_add(pare_cert *cert, pare_arena *a, const pare_model *f, const pare_model *g,
                         const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    const book b = {cert, a, f, g, exec, err};
    const depth_domain d = domain_of(set);
    pare_status st = whole_domain(&b, &d);
    if (!st) st = injected(&b);
    if (!st) st = collapse_of_rank(&b, &d);
    return st ? st : printed(&b, &d);
}
