/* What the theorems of depth say about a pair of models, put into its certificate: theorem 1 or 2
 * for all inputs like the given ones (for ids: all token sequences), what each replaced layer
 * injects behind its norm, rank collapse where there are no skips, and what the paper has printed.
 * Each is a function of the two models and of how large the inputs are. */
#include "theorems.h"
#include "theory.h"
#include <pare/publish.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The layers of a wide model are not looked at one by one: that would take minutes. */
#define INJECTED_WIDTH 512
#define UNSEEN         1e-9

#define DIAM_OUTPUTS    ": outputs"
#define DIFFERENCE_NORM "largest change of the difference of both outputs"
#define RANK_NAME       "rank collapse of the input model: how far tokens are apart at the end"
#define RANK_NORM       "largest difference of an entry between two tokens of one input"

typedef struct book {
    pare_cert *cert;
    pare_arena *a;
    const pare_model *f, *g;
    const pare_exec *exec;
    pare_err *err;
} book;

static pare_status suppose(const book *b, pare_truth holds, const char *name)
{
    if (!name) return pare_no_memory(b->err);
    b->cert->hypotheses[b->cert->nhypotheses++] = (pare_hypothesis){name, holds, NAN, NAN};
    return PARE_OK;
}

/* Bounds that say nothing are left out. */
static pare_status state(const book *b, const char *name, const char *norm, const char *domain,
                         pare_ub bound)
{
    if (!name || !domain) return pare_no_memory(b->err);
    if (isinf(bound.v)) return PARE_OK;
    b->cert->statements[b->cert->nstatements++] = (pare_statement){name, norm, domain, 1, bound.v};
    return PARE_OK;
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

/* What no one-layer network can beat, beside what is proven of this one; on the same inputs. Below
 * what f64 sees of them it is left out. */
static pare_status unreachable(const book *b, const depth_domain *d, pare_ub bound)
{
    depth_lower low = {0};
    if (!depth_lower_applies(b->f, b->g)) return PARE_OK;
    const pare_status st = depth_lower_model(&low, b->f, d, b->exec, b->err);
    if (st || !(low.lb > UNSEEN * d->phi0)) return st;
    /* One part in 1e4 lower, so that another CPU can prove it again. */
    b->cert->hypotheses[b->cert->nhypotheses++] =
        (pare_hypothesis){PARE_DEPTH_LEAST, PARE_TRUE, bound.v, low.lb * (1 - 1e-4)};
    return PARE_OK;
}

static pare_status whole_domain(const book *b, const depth_domain *d)
{
    depth_bound t;
    pare_status st = depth_apriori(&t, b->f, b->g, d, b->exec, b->err);
    if (st) return st;
    const char *const words = depth_domain_words(b->a, b->f, d);
    b->cert->apriori = t.bound.v;
    if (isinf(t.bound.v))
        return suppose(b, PARE_FALSE,
                       pare_sprintf(b->a, "a priori: %s", *t.why ? t.why : "the bound overflows"));
    st = suppose(b, PARE_TRUE, pare_sprintf(b->a, "a priori: %s", t.theorem));
    if (!st) st = state(b, PARE_DEPTH_ALL, PARE_NORM_HEADLINE, words, t.bound);
    if (!st) st = state(b, PARE_DEPTH_ALL_DIFFERENCE, DIFFERENCE_NORM, words, t.difference);
    return st ? st : unreachable(b, d, t.bound);
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
            st = state(b, pare_sprintf(b->a, "layer %zu: what the replaced attention adds", l),
                       "largest euclidean length of a token's change at that layer", "all inputs",
                       bound);
    }
    return st;
}

static pare_status collapse_of_rank(const book *b, const depth_domain *d)
{
    depth_rank r;
    const pare_status st = depth_rank_collapse(&r, b->f, d, b->exec, b->err);
    if (st || *r.why) return st;
    return state(b, RANK_NAME, RANK_NORM, depth_domain_words(b->a, b->f, d), r.bound);
}

/* ---- the domain that was asked for ------------------------------------------------------------
 */

/* "inputs of diameter 0.5" */
const char *pare_depth_diam_name(pare_arena *a, double diam)
{
    char text[40];
    pare_ball_text(text, diam);
    return pare_sprintf(a, PARE_DEPTH_DIAM "%s", text);
}

double theorems_diam_asked(const char *name)
{
    const size_t n = strlen(PARE_DEPTH_DIAM);
    char *end = NULL;
    if (!name || strncmp(name, PARE_DEPTH_DIAM, n) != 0) return 0;
    const double diam = strtod(name + n, &end);
    const bool whole = end != name + n && (*end == '\0' || strcmp(end, DIAM_OUTPUTS) == 0);
    return whole && diam > 0 && isfinite(diam) ? diam : 0;
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
    const char *const name = pare_depth_diam_name(a, diam);
    const char *const words = depth_domain_words(a, f, &d);
    depth_bound t = {.bound = pare_ub_inf(), .difference = pare_ub_inf()};
    depth_rank r = {.bound = pare_ub_inf()};
    if (!name || !words) return pare_no_memory(err);
    pare_status st = f->stem.ids ? PARE_OK : depth_apriori(&t, f, g, &d, exec, err);
    if (!st && !f->stem.ids) st = depth_rank_collapse(&r, f, &d, exec, err);
    if (st) return st;
    const char *const outputs = pare_sprintf(a, "%s" DIAM_OUTPUTS, name);
    if (!outputs) return pare_no_memory(err);
    /* It stands there also when it says nothing: a verifier reads the diameter from it. */
    cert->statements[cert->nstatements++] =
        (pare_statement){outputs, PARE_NORM_HEADLINE, words, 1, t.bound.v};
    st = state(&b, pare_sprintf(a, "%s: difference of the two outputs", name), DIFFERENCE_NORM,
               words, t.difference);
    if (!st) st = state(&b, pare_sprintf(a, "%s: " RANK_NAME, name), RANK_NORM, words, r.bound);
    return st;
}

/* ---- what the paper has printed ----------------------------------------------------------------
 */

/* The paper's nets: attention and identity skips, nothing else. */
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
    b->cert->paper = pare_alloc(b->a, 2, sizeof *b->cert->paper);
    if (!b->cert->paper) return pare_no_memory(b->err);
    b->cert->paper[0] = (pare_named){"Theorem D.1: bound of its proof", p.bound};
    b->cert->paper[1] = (pare_named){"Theorem D.1: 2A/L", p.claim};
    b->cert->npaper = 2;
    return PARE_OK;
}

pare_status theorems_near(pare_ub *out, const pare_model *f, const pare_model *g,
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

pare_status theorems_say(pare_cert *cert, pare_arena *a, const pare_model *f, const pare_model *g,
                         const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    const book b = {cert, a, f, g, exec, err};
    const depth_domain d = domain_of(set);
    pare_status st = whole_domain(&b, &d);
    if (!st) st = injected(&b);
    if (!st) st = collapse_of_rank(&b, &d);
    return st ? st : printed(&b, &d);
}
