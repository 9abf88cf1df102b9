/* claims.c - the claims of a certificate that are about the given inputs.
 *
 * Both models are evaluated on the inputs; then a claim is confirmed or refuted where the balls are
 * on one side of its bound. Where they are not, everything is evaluated again with more bits. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BITS = 128, MOST_BITS = 1024 };

/* What was found on the given inputs. */
typedef struct found {
    const certificate *c;
    size_t n; /* inputs that were evaluated, of c->set.n */
    figures *all;
    arb_ptr each; /* largest difference on each */
    interval auc[2];
    bool has_auc;
    slong bits;
} found;

/* What can be said of a claim, and why. */
typedef struct outcome {
    verdict verdict;
    bool open; /* the balls do not decide */
    const char *why;
} outcome;

double parameter(const claim *c, const char *name)
{
    const cJSON *const v = find(c->parameters, name);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

const char *parameter_text(const claim *c, const char *name)
{
    const cJSON *const v = find(c->parameters, name);
    return cJSON_IsString(v) ? v->valuestring : "";
}

static double middle(const arb_t x)
{
    return arf_get_d(arb_midref(x), ARF_RND_NEAR);
}

static bool is(const claim *c, const char *kind)
{
    return strcmp(c->kind, kind) == 0;
}

/* ---- comparisons ----------------------------------------------------------------------------- */

/* x <= bound, or x >= bound. */
static outcome against(job *j, const arb_t x, double bound, bool lower, const char *name)
{
    arb_t b;
    arb_init(b);
    arb_set_d(b, bound); /* inf too */
    const bool vacuous = !lower && isinf(bound);
    const bool yes = vacuous || (arb_is_finite(x) && (lower ? arb_ge(x, b) : arb_le(x, b)));
    const bool no = !vacuous && arb_is_finite(x) && (lower ? arb_lt(x, b) : arb_gt(x, b));
    arb_clear(b);
    if (!yes && !no)
        return (outcome){NOT_REFUTED, true,
                         words(j, "the balls do not decide (%s is about %.9g)", name, middle(x))};
    const char *const comparison =
        yes ? (lower ? "at least" : "at most") : (lower ? "below" : "above");
    return (outcome){yes ? CONFIRMED : REFUTED, false,
                     words(j, "%s is %.9g, %s %.9g", name, middle(x), comparison, bound)};
}

static outcome not_checked(const char *why)
{
    return (outcome){NOT_CHECKED, false, why};
}

/* A measured number: within a share of it, or within the slack. */
static outcome near(job *j, const arb_t x, double value, double share, double slack)
{
    const double is_now = middle(x), off = fabs(is_now - value);
    if (!arb_is_finite(x)) return (outcome){NOT_REFUTED, true, "the balls do not decide"};
    const bool good = off <= share * fmax(fabs(value), fabs(is_now)) || off <= slack;
    return (outcome){good ? CONFIRMED : REFUTED, false,
                     words(j, "it is %.9g, the certificate has %.9g", is_now, value)};
}

/* ---- theorems -------------------------------------------------------------------------------- */

static outcome rows_changed(job *j, const figures *f, double bound)
{
    const double n = (double)f->rows, sure = (double)f->changed / n;
    const double may = (double)(f->changed + f->open) / n;
    const char *const text =
        words(j, "%zu of %zu rows have another largest entry, %zu are not decided or tied",
              f->changed, f->rows, f->open);
    if (may <= bound) return (outcome){CONFIRMED, false, text};
    return (outcome){sure > bound ? REFUTED : NOT_REFUTED, sure <= bound, text};
}

static outcome auc(job *j, const found *f, const claim *c)
{
    if (!f->has_auc) return not_checked("the data have no labels of two classes");
    const interval x = f->auc[0], y = f->auc[1];
    interval v = y;
    if (is(c, "auc.difference")) {
        v.low = fmax(0, fmax(x.low - y.high, y.low - x.high));
        v.high = fmax(x.high - y.low, y.high - x.low);
    }
    const bool yes = c->lower ? v.low >= c->bound : v.high <= c->bound;
    const bool no = c->lower ? v.high < c->bound : v.low > c->bound;
    const char *const text = words(j, "it is from %.9g to %.9g", v.low, v.high);
    return (outcome){yes ? CONFIRMED : no ? REFUTED : NOT_REFUTED, !yes && !no, text};
}

static outcome ratio(job *j, const found *f, const claim *c)
{
    const double l = parameter(c, "layer");
    if (!(l >= 0 && l < (double)f->all->nlayers) || !f->all->has_ratio[(size_t)l])
        return not_checked("this layer has no attention weights in both models");
    return against(j, f->all->ratio + (size_t)l, c->bound, false, "the largest |ln(a / a^)|");
}

/* How many inputs have an error above the bound: at most `left_out` may. */
static outcome order_statistic(job *j, const found *f, const claim *c, size_t left_out)
{
    size_t above = 0, open = 0;
    arb_t b;
    arb_init(b);
    arb_set_d(b, c->bound);
    for (size_t i = 0; i < f->n && isfinite(c->bound); i++) {
        above += arb_is_finite(f->each + i) && arb_gt(f->each + i, b);
        open += !(arb_is_finite(f->each + i) && (arb_gt(f->each + i, b) || arb_le(f->each + i, b)));
    }
    arb_clear(b);
    const char *const text =
        words(j, "%zu of %zu inputs have a larger error, %zu may", above, f->n, left_out);
    if (above + open <= left_out) return (outcome){CONFIRMED, false, text};
    return (outcome){above > left_out ? REFUTED : NOT_REFUTED, above <= left_out, text};
}

static outcome new_inputs(job *j, const found *f, const claim *c)
{
    const double draws = parameter(c, "draws"), out = parameter(c, "left_out");
    const data_claim *const d = &f->c->data;
    if (f->n < f->c->set.n) return not_checked("a statistic of all inputs, and some were left out");
    if (!d->heldout || d->candidates != 1)
        return (outcome){REFUTED, false, "the certificate does not name its held-out inputs"};
    const size_t n = f->n, fewer = (n + 1) / 20 > 1 ? (n + 1) / 20 - 1 : 0;
    if (draws != (double)n || (out != 0 && out != (double)fewer) || !(out < draws))
        return (outcome){REFUTED, false, words(j, "there are %zu held-out inputs", n)};
    const size_t k = (size_t)out;
    if (is(c, "new_inputs.share")) {
        const bool enough =
            c->probability <= 0.95 && share_is_enough(n, k, c->bound, c->probability);
        return (outcome){enough ? CONFIRMED : REFUTED, false,
                         words(j, "the binomial tail of %zu draws %s the confidence %g", n,
                               enough ? "allows" : "does not allow", c->probability)};
    }
    if (!probability_is_right(n, k, c->probability))
        return (outcome){REFUTED, false,
                         words(j, "the probability is above %zu / %zu", n - k, n + 1)};
    return order_statistic(j, f, c, k);
}

/* Whether the claim is about the given inputs at all; the others are searched (search.c). */
bool is_about_given(const certificate *c, const claim *t)
{
    static const char *const kinds[] = {"rows.changed",    "auc.most",          "auc.least",
                                        "auc.difference",  "attention.ratio",   "local.outputs",
                                        "given.outputs",   "theorem44.outputs", "outputs.least",
                                        "engine.rounding", "theorem42.outputs", NULL};
    size_t i = 0;
    while (kinds[i] && !is(t, kinds[i])) i++;
    return strncmp(t->kind, "new_input", 9) == 0 || (kinds[i] && strcmp(t->domain, c->domain) == 0);
}

static outcome theorem(job *j, const found *f, const claim *c)
{
    const figures *const all = f->all;
    if (is(c, "engine.rounding")) return not_checked("it is about the f32 engine of pare");
    if (is(c, "theorem42.outputs")) return not_checked("it is about some net, not about this cut");
    if (strncmp(c->kind, "new_input", 9) == 0) return new_inputs(j, f, c);
    if (is(c, "rows.changed")) return rows_changed(j, all, c->bound);
    if (strncmp(c->kind, "auc.", 4) == 0) return auc(j, f, c);
    if (is(c, "attention.ratio")) return ratio(j, f, c);
    if (is(c, "outputs.least")) {
        outcome o = against(j, all->difference, c->bound, true, "the cut's own largest difference");
        if (o.verdict == CONFIRMED) o.verdict = NOT_REFUTED; /* it is about all cuts */
        return o;
    }
    return against(j, all->difference, c->bound, false, "the largest difference");
}

/* ---- observations, hypotheses, evidence ------------------------------------------------------ */

/* f64 measures with an error of about 1e-13 of the outputs: a slack of 1e-9 of them is enough. */
static outcome observation(job *j, const found *f, const claim *c)
{
    const figures *const all = f->all;
    outcome o = not_checked("this program does not measure it");
    arb_t x;
    arb_init(x);
    arb_sqrtpos(x, all->squares, f->bits);
    const double largest = middle(all->largest), size = middle(x);
    const double entries = sqrt((double)all->rows * (double)f->c->model[0].outputs);
    if (is(c, "engine.distance")) o = not_checked("it is about the f32 engine of pare");
    if (is(c, "relative_error")) {
        arb_div(x, all->apart, all->squares, f->bits);
        arb_sqrtpos(x, x, f->bits);
        if (arb_is_zero(all->apart)) arb_zero(x);
        o = near(j, x, c->value, 1e-3, 1e-9 * largest * entries / size);
    }
    if (is(c, "row_error")) {
        arb_sqrtpos(x, all->row, f->bits);
        o = near(j, x, c->value, 1e-3, 1e-9 * largest * sqrt((double)f->c->model[0].outputs));
    }
    if (is(c, "lost_fraction") && all->has_without) {
        arb_div(x, all->apart, all->without, f->bits);
        arb_sqrtpos(x, x, f->bits);
        if (arb_is_zero(all->apart)) arb_zero(x);
        o = near(j, x, c->value, 1e-3, 1e-9 * largest * entries / sqrt(middle(all->without)));
    }
    const double l = parameter(c, "layer");
    if (is(c, "attention.ratio_seen") && l >= 0 && l < (double)all->nlayers &&
        all->has_ratio[(size_t)l])
        o = near(j, all->ratio + (size_t)l, c->value, 1e-3, 1e-9);
    arb_clear(x);
    if (o.verdict != NOT_CHECKED && f->n < f->c->set.n)
        o = not_checked("it is measured on all inputs, and some were left out");
    return o;
}

/* What the two architectures and the other claims show. */
static outcome hypothesis(job *j, const certificate *c, const claim *h)
{
    static const char *const names[] = {"none",  "exact",  "zero",   "const", "uniform", "constq",
                                        "meanq", "linear", "affmix", "pool",  "umix",    "poly"};
    const model *const f = &c->model[0], *const g = &c->model[1];
    bool right = true;
    if (is(h, "layers.merged")) {
        right = parameter(h, "before") == (double)f->nlayers &&
                parameter(h, "after") == (double)g->nlayers && h->holds == 1;
    } else if (is(h, "layer.replaced")) {
        const double l = parameter(h, "layer");
        right = l >= 0 && l < (double)f->nlayers && l < (double)g->nlayers && h->holds == 1;
        if (right)
            right = strcmp(parameter_text(h, "by"),
                           words(j, "%s (it was %s)", names[g->layers[(size_t)l].attn.kind],
                                 names[f->layers[(size_t)l].attn.kind])) == 0;
    } else if (is(h, "link.hypotheses")) {
        const double l = parameter(h, "link");
        right = l >= 0 && l < (double)c->nlinks;
        int all = 1; /* false if one is false, else null if one is null */
        for (size_t i = 0; right && i < c->links[(size_t)l].n[HYPOTHESES]; i++) {
            const int holds = c->links[(size_t)l].claims[HYPOTHESES][i].holds;
            if (holds == 0 || (holds < 0 && all == 1)) all = holds;
        }
        right = right && h->holds == all &&
                strcmp(parameter_text(h, "reduction"), c->links[(size_t)l].reduction) == 0;
    } else if (is(h, "fold.not_rotary")) {
        right = h->holds == (f->positions != POS_ROTARY);
    } else if (is(h, "fold.rows_not_empty")) {
        right = h->holds == (f->pattern != GRAPH || f->self_loops);
    } else if (is(h, "new_input.independent")) {
        return not_checked("no file can show it");
    } else {
        return not_checked("it explains a cut; no theorem above rests on it");
    }
    return (outcome){right ? CONFIRMED : REFUTED, false,
                     right ? "so it is in the files" : "it is not so in the files"};
}

/* A least that no cut can beat, above what this cut reaches. */
static outcome evidence(job *j, const claim *c)
{
    if (isnan(c->value) || isnan(c->limit)) return not_checked("f64 figures that prove nothing");
    const bool contradiction = c->limit > c->value;
    return (outcome){contradiction ? REFUTED : NOT_CHECKED, false,
                     words(j,
                           contradiction
                               ? "the least of any, %.17g, is above what is reached, %.17g"
                               : "f64 figures that prove nothing (%.6g is not above %.6g)",
                           c->limit, c->value)};
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static wanted what_is_wanted(const certificate *c)
{
    wanted w = {0};
    for (section s = THEOREMS; s <= OBSERVATIONS; s++)
        for (size_t i = 0; i < c->n[s]; i++) {
            const claim *const t = &c->claims[s][i];
            w.ratios |= strncmp(t->kind, "attention.ratio", 15) == 0;
            w.branches |= is(t, "layer.injected") || is(t, "layer.ticket");
            w.collapse |= strstr(t->kind, "rank_collapse") != NULL;
            w.hidden |= is(t, "apriori.hidden");
            w.without |= is(t, "lost_fraction");
            w.scores |= strncmp(t->kind, "auc.", 4) == 0;
        }
    return w;
}

/* Which inputs: all, or K of them by a seeded draw. */
static uint32_t *choose(job *j, size_t n, size_t *count)
{
    uint32_t *const order = take(j, n + 1, sizeof *order);
    for (size_t i = 0; order && i < n; i++) order[i] = (uint32_t)i;
    philox random = philox_at(j->o->seed, 0);
    if (order && j->o->inputs && j->o->inputs < n) philox_shuffle(&random, order, n);
    *count = j->o->inputs && j->o->inputs < n ? j->o->inputs : n;
    return order;
}

/* Inputs are shared by the threads; one input alone is shared row by row (evaluate.c). What is found
 * is joined in the order of the inputs. */
static bool evaluate_all(job *j, found *f, wanted w, const uint32_t *order)
{
    const certificate *const c = f->c;
    const model *const a = &c->model[0], *const b = &c->model[1];
    const bool with_scores = w.scores && c->set.n == 1 && c->set.list[0].target && a->outputs == 2;
    balls scores[2] = {{0}};
    figures **const one = take(j, f->n, sizeof *one);
    for (size_t i = 0; one && i < f->n; i++) one[i] = figures_new(j, a->nlayers);
    f->all = one ? figures_new(j, a->nlayers) : NULL;
    bool good = f->all && j->t.code == 0;
#pragma omp parallel for schedule(dynamic) if (f->n > 1)
    for (size_t i = 0; i < f->n; i++) {
        job own = {.o = j->o, .main = j};
        if (!good) continue;
        if (!compare(&own, a, b, &c->set.list[order[i]], w, one[i], with_scores ? scores : NULL,
                     f->bits)) {
#pragma omp critical
            fail(j, own.t.code, "%s", own.t.text);
        }
        give_back(&own);
    }
    good = good && j->t.code == 0;
    for (size_t i = 0; good && i < f->n; i++) {
        figures_join(f->all, one[i], f->bits);
        arb_set(f->each + i, one[i]->difference);
    }
    for (size_t i = 0; one && i < f->n; i++) figures_free(one[i]);
    f->has_auc = good && with_scores;
    for (int s = 0; f->has_auc && s < 2; s++)
        f->has_auc = auc_interval(j, &scores[s], c->set.list[0].target, &f->auc[s]);
    balls_free(&scores[0]);
    balls_free(&scores[1]);
    return good;
}

static bool something_is_open(job *j, const found *f)
{
    const certificate *const c = f->c;
    if (against(j, f->all->difference, c->proven, false, "").open) return true;
    for (size_t i = 0; i < c->n[THEOREMS]; i++)
        if (is_about_given(c, &c->claims[THEOREMS][i]) &&
            theorem(j, f, &c->claims[THEOREMS][i]).open)
            return true;
    return false;
}

/* A confirmation on some of the inputs is none. */
static void say(job *j, const found *f, const claim *c, outcome o)
{
    if (f->n < f->c->set.n && o.verdict == CONFIRMED)
        state(j, NOT_REFUTED, c->what, "on %zu of %zu inputs: %s", f->n, f->c->set.n, o.why);
    else
        state(j, o.verdict, c->what, "%s", o.why);
}

static void say_headline(job *j, const found *f)
{
    const certificate *const c = f->c;
    const claim proven = {.what = words(j, "headline.proven %.9g", c->proven)};
    const claim measured = {.what = words(j, "headline.measured %.9g", c->measured)};
    say(j, f, &proven, against(j, f->all->difference, c->proven, false, "the largest difference"));
    if (f->n < c->set.n)
        say(j, f, &measured, not_checked("it is measured on all inputs, and some were left out"));
    else if (c->measured > c->proven)
        say(j, f, &measured, (outcome){REFUTED, false, "it is above what is proven"});
    else
        say(j, f, &measured,
            near(j, f->all->difference, c->measured, 1e-3, 1e-9 * middle(f->all->largest)));
}

void check_claims(job *j, certificate *c)
{
    found f = {.c = c, .bits = LEAST_BITS};
    const wanted w = what_is_wanted(c);
    const uint32_t *const order = choose(j, c->set.n, &f.n);
    double work = 0;
    if (!order) return;
    for (size_t i = 0; i < f.n; i++)
        work += work_of(&c->model[0], &c->set.list[order[i]]) +
                work_of(&c->model[1], &c->set.list[order[i]]);
    if (work > j->o->most_work) {
        state(j, NOT_CHECKED, "all claims", "%.3g multiply-adds are above the limit", work);
        return;
    }
    f.each = _arb_vec_init((slong)f.n);
    bool good = true;
    for (bool again = true; good && again;) {
        j->work_all += work;
        good = evaluate_all(j, &f, w, order);
        again = good && f.bits < MOST_BITS && something_is_open(j, &f);
        if (again) {
            figures_free(f.all);
            f.bits *= 2;
        }
    }
    if (good) say_headline(j, &f);
    for (size_t i = 0; good && i < c->n[HYPOTHESES]; i++) {
        const claim *const h = &c->claims[HYPOTHESES][i];
        const outcome o = hypothesis(j, c, h);
        state(j, o.verdict, h->what, "%s", o.why);
    }
    for (size_t i = 0; good && i < c->n[THEOREMS]; i++)
        if (is_about_given(c, &c->claims[THEOREMS][i]))
            say(j, &f, &c->claims[THEOREMS][i], theorem(j, &f, &c->claims[THEOREMS][i]));
    if (good) search_domains(j, c, f.all, f.n);
    for (size_t i = 0; good && i < c->n[OBSERVATIONS]; i++)
        say(j, &f, &c->claims[OBSERVATIONS][i], observation(j, &f, &c->claims[OBSERVATIONS][i]));
    for (size_t i = 0; good && i < c->n[EVIDENCE]; i++) {
        const outcome o = evidence(j, &c->claims[EVIDENCE][i]);
        state(j, o.verdict, c->claims[EVIDENCE][i].what, "%s", o.why);
    }
    for (size_t i = 0; good && i < c->n[PAPER]; i++)
        state(j, NOT_CHECKED, c->claims[PAPER][i].what, "a printed formula, not a theorem of pare");
    figures_free(f.all);
    _arb_vec_clear(f.each, (slong)f.n);
}
