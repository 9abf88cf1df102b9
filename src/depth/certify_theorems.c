/* certify_theorems.c - adds to a certificate what the theorems of depth prove about two models:
 * theorem 1 or 2 for all inputs like the given ones (for ids: all token sequences), the error that
 * each replaced layer injects behind its norm, rank collapse where there are no skips, and the
 * bound that Rank collapse 2025 prints. Each is a function of the two models and of the size of
 * the inputs. */
#include "certify_theorems.h"
#include "base/work.h"
#include "depth_bounds.h"
#include "cert/prove.h"
#include <pare/depth.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The layers of a wide model are not looked at one by one: that would take minutes. */
#define INJECTED_WIDTH 512
#define UNSEEN         1e-9

/* The smallest box and diameter that hold all given vectors. */
static depth_domain domain_of(const pare_inputs *set)
{
    depth_domain d = {0, 0};
    for (size_t k = 0; k < set->n; k++) {
        const pare_input *const in = &set->in[k];
        for (size_t j = 0; in->x && j < in->width; j++) {
            double low = INFINITY, high = -INFINITY;
            for (size_t i = 0; i < in->batch * in->tokens; i++) {
                const double x = in->x[i * in->width + j];
                low = fmin(low, x);
                high = fmax(high, x);
            }
            if (!(low <= high)) continue;
            d.phi0 = fmax(d.phi0, fmax(fabs(low), fabs(high)));
            if (high > low) d.diam0 = fmax(d.diam0, nextafter(high - low, INFINITY));
        }
    }
    return d;
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static void add_whole_domain(cert_builder *b, const pare_model *f, const pare_model *g,
                             const depth_domain *d)
{
    pare_work *const w = &b->work;
    depth_bound t;
    w->st = depth_apriori(&t, f, g, d, w->exec, w->err);
    if (w->st) return;
    const bool bounded = !isinf(t.bound.v);
    const char *const domain = depth_domain_words(w->arena, f, d);
    char *const text = pare_strdup(w->arena, bounded  ? t.theorem
                                             : *t.why ? t.why
                                                      : "the bound overflows");
    if (!text) w->st = pare_no_memory(w->err);
    add_statement(b, (pare_claim){.kind = PARE_APRIORI_APPLIES,
                                  .holds = bounded ? PARE_TRUE : PARE_FALSE,
                                  .text = text});
    if (!bounded) return;
    add_bound(b, (pare_claim){.kind = PARE_APRIORI_OUTPUTS}, domain, t.bound);
    add_bound(b, (pare_claim){.kind = PARE_APRIORI_SCORE}, domain, t.difference);
    /* what no one-layer network can beat, on the same inputs */
    depth_lower low = {0};
    if (w->st || !depth_lower_applies(f, g)) return;
    w->st = depth_lower_model(&low, f, d, w->exec, w->err);
    if (low.lb > UNSEEN * d->phi0)
        add_statement(
            b, (pare_claim){.kind = PARE_ONE_LAYER_LEAST, .value = low.lb, .domain = domain});
}

static void add_injected_errors(cert_builder *b, const pare_model *f, const pare_model *g)
{
    pare_work *const w = &b->work;
    for (size_t l = 0; f->nblocks == g->nblocks && l < f->nblocks; l++) {
        const pare_attn *const x = &f->blocks[l].attn, *const y = &g->blocks[l].attn;
        pare_ub bound = pare_ub_inf();
        if (x->kind == y->kind || x->din > INJECTED_WIDTH || w->st) continue;
        w->st = depth_injected(&bound, f, g, l, w->exec, w->err);
        add_bound(b, (pare_claim){.kind = PARE_LAYER_INJECTED, .p = {(double)l}}, "all inputs",
                  bound);
    }
}

/* The printed bound, of the networks of Rank collapse 2025: attention, identity skips, no more. */
static void add_printed_bound(cert_builder *b, const pare_model *f, const depth_domain *d)
{
    bool applies = !f->embedding.ids && f->nblocks > 0;
    for (size_t l = 0; l < f->nblocks; l++) {
        const pare_attn *const at = &f->blocks[l].attn;
        applies &= at->kind == PARE_ATTN_EXACT && f->blocks[l].ffn.kind == PARE_FFN_NONE &&
                   at->in_norm.kind == PARE_NORM_NONE && at->out_norm.kind == PARE_NORM_NONE &&
                   at->skip.kind == PARE_SKIP_IDENTITY;
    }
    if (!applies || b->work.st) return;
    const depth_paper p = depth_paper_model(f, d->phi0);
    add_statement(b, (pare_claim){.kind = PARE_PAPER_COLLAPSE_BOUND, .value = p.bound});
    add_statement(b, (pare_claim){.kind = PARE_PAPER_COLLAPSE_CLAIM, .value = p.claim});
}

void theorems_add(cert_builder *b, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    pare_work *const w = &b->work;
    const depth_domain d = domain_of(set);
    depth_rank r;
    if (w->st) return;
    add_whole_domain(b, f, g, &d);
    add_injected_errors(b, f, g);
    if (!w->st) w->st = depth_rank_collapse(&r, f, &d, w->exec, w->err);
    if (!w->st && !*r.why)
        add_bound(b, (pare_claim){.kind = PARE_RANK_COLLAPSE}, depth_domain_words(w->arena, f, &d),
                  r.bound);
    add_printed_bound(b, f, &d);
}

/* ---- a domain that was requested ------------------------------------------------------------- */

pare_claim pare_depth_diameter(double diameter)
{
    return (pare_claim){.kind = PARE_DIAMETER_OUTPUTS, .p = {diameter}};
}

void theorems_within(cert_builder *b, const pare_model *f, const pare_model *g,
                     const pare_inputs *set, double diam)
{
    pare_work *const w = &b->work;
    /* entries as large as the data's, or as the diameter needs them to be */
    const depth_domain d = {fmax(domain_of(set).phi0, diam / 2), diam};
    const char *const domain = depth_domain_words(w->arena, f, &d);
    depth_bound t = {.bound = pare_ub_inf(), .difference = pare_ub_inf()};
    depth_rank r = {.bound = pare_ub_inf()};
    if (!domain) pare_work_keep(w, pare_no_memory(w->err));
    if (!w->st && !f->embedding.ids) w->st = depth_apriori(&t, f, g, &d, w->exec, w->err);
    if (!w->st && !f->embedding.ids) w->st = depth_rank_collapse(&r, f, &d, w->exec, w->err);
    pare_claim c = pare_depth_diameter(diam);
    /* this one is added also when it is vacuous: a verifier reads the diameter from it */
    c.value = t.bound.v;
    c.domain = domain;
    add_statement(b, c);
    c.kind = PARE_DIAMETER_SCORE;
    add_bound(b, c, domain, t.difference);
    c.kind = PARE_DIAMETER_RANK_COLLAPSE;
    add_bound(b, c, domain, r.bound);
}

pare_ub theorems_near_inputs(pare_work *w, const pare_model *f, const pare_model *g,
                             const pare_inputs *set, double radius)
{
    depth_domain d = domain_of(set);
    depth_bound t = {.bound = pare_ub_inf()};
    d.phi0 = nextafter(d.phi0 + radius, INFINITY);
    d.diam0 = nextafter(d.diam0 + 2 * radius, INFINITY);
    if (!w->st && !f->embedding.ids) w->st = depth_apriori(&t, f, g, &d, w->exec, w->err);
    return w->st ? pare_ub_inf() : t.bound;
}
