/* claims.c - the claims of a certificate, most of them about the given inputs.
 *
 * Both models are evaluated on the inputs; then a claim is confirmed or refuted where the balls are
 * on one side of its bound. Where they are not, everything is evaluated again with more bits. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BITS = 128, MOST_BITS = 1024 };

/* ---- kinds ----------------------------------------------------------------------------------- */

static const char engine[] = "it is about the f32 engine of pare";

/* docs/format.md, "Kinds": how each is checked, by which figure. Others are not checked. */
static const claim_kind kinds[] = {
    {HYPOTHESES, "layers.merged", IN_FILES, 0, false, NULL},
    {HYPOTHESES, "layer.replaced", IN_FILES, 0, false, NULL},
    {HYPOTHESES, "link.hypotheses", IN_FILES, 0, false, NULL},
    {HYPOTHESES, "fold.not_rotary", IN_FILES, 0, false, NULL},
    {HYPOTHESES, "fold.rows_not_empty", IN_FILES, 0, false, NULL},
    {HYPOTHESES, "new_input.independent", UNCHECKED, 0, false, "no file can show it"},
    {HYPOTHESES, "", UNCHECKED, 0, false, "it explains a cut; no theorem above rests on it"},
    {THEOREMS, "local.outputs", ON_GIVEN, DIFFERENCE, false, NULL},
    {THEOREMS, "given.outputs", ON_GIVEN, DIFFERENCE, false, NULL},
    {THEOREMS, "theorem44.outputs", ON_GIVEN, DIFFERENCE, false, NULL},
    {THEOREMS, "outputs.least", ON_GIVEN, DIFFERENCE, true, NULL},
    {THEOREMS, "attention.ratio", ON_GIVEN, RATIO, false, NULL},
    {THEOREMS, "rows.changed", ROWS_CHANGED, 0, false, NULL},
    {THEOREMS, "auc.most", AUC, 0, false, NULL},
    {THEOREMS, "auc.least", AUC, 0, true, NULL},
    {THEOREMS, "auc.difference", AUC, 0, false, NULL},
    {THEOREMS, "new_input.outputs", NEW_INPUT, 0, false, NULL},
    {THEOREMS, "new_inputs.share", NEW_SHARE, 0, false, NULL},
    {THEOREMS, "apriori.outputs", SEARCHED, DIFFERENCE, false, NULL},
    {THEOREMS, "apriori.score", SEARCHED, SCORE, false, NULL},
    {THEOREMS, "apriori.hidden", SEARCHED, HIDDEN, false, NULL},
    {THEOREMS, "diameter.outputs", SEARCHED, DIFFERENCE, false, NULL},
    {THEOREMS, "diameter.score", SEARCHED, SCORE, false, NULL},
    {THEOREMS, "diameter.rank_collapse", SEARCHED, COLLAPSE, false, NULL},
    {THEOREMS, "rank_collapse", SEARCHED, COLLAPSE, false, NULL},
    {THEOREMS, "layer.injected", SEARCHED, ATTENTION, false, NULL},
    {THEOREMS, "layer.ticket", SEARCHED, ATTENTION, false, NULL}, /* or FFN: its part */
    {THEOREMS, "ball.outputs", SEARCHED, DIFFERENCE, false, NULL},
    {THEOREMS, "ball.score", SEARCHED, SCORE, false, NULL},
    {THEOREMS, "ball.rows_changed", ROWS_SEARCHED, 0, false, NULL},
    {THEOREMS, "edits.outputs", SEARCHED, DIFFERENCE, false, NULL},
    {THEOREMS, "edits.rows_changed", ROWS_SEARCHED, 0, false, NULL},
    {THEOREMS, "one_layer.least", ONE_LAYER, DIFFERENCE, true, NULL},
    {THEOREMS, "engine.rounding", UNCHECKED, 0, false, engine},
    {THEOREMS, "theorem42.outputs", UNCHECKED, 0, false,
     "it is about some net, not about this cut"},
    {THEOREMS, "", UNCHECKED, 0, false, "this program does not know the kind"},
    {OBSERVATIONS, "relative_error", MEASURED, APART, false, NULL},
    {OBSERVATIONS, "lost_fraction", MEASURED, WITHOUT, false, NULL},
    {OBSERVATIONS, "row_error", MEASURED, ROW, false, NULL},
    {OBSERVATIONS, "attention.ratio_seen", MEASURED, RATIO, false, NULL},
    {OBSERVATIONS, "engine.distance", UNCHECKED, 0, false, engine},
    {OBSERVATIONS, "", UNCHECKED, 0, false, "this program does not measure it"},
    {EVIDENCE, "", UNCHECKED, 0, false, "f64 figures that prove nothing"},
    {PAPER, "", UNCHECKED, 0, false, "a printed formula, not a theorem of pare"},
};

/* The last of a section stands for all others. */
const claim_kind *find_kind(section list, const char *name)
{
    const claim_kind *k = kinds;
    while (k->list != list || (*k->name && strcmp(k->name, name) != 0)) k++;
    return k;
}

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

/* The layer that a claim names; SIZE_MAX: none. */
static size_t layer_of(const claim *c)
{
    const double l = parameter(c, "layer");
    return l >= 0 && l < 1e9 ? (size_t)l : SIZE_MAX / 8;
}

arb_srcptr figure_of(const claim *c, const figures *f)
{
    const bool ffn_part = strncmp(parameter_text(c, "part"), "feed", 4) == 0;
    const figure x = c->kind->figure == ATTENTION && ffn_part ? FFN : c->kind->figure;
    const size_t at = figure_place(x, x >= RATIO ? layer_of(c) : 0);
    return at < f->n && f->has[at] ? f->v + at : NULL;
}

double middle(const arb_t x)
{
    return arf_get_d(arb_midref(x), ARF_RND_NEAR);
}

/* ---- outcomes -------------------------------------------------------------------------------- */

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

static bool some_left_out(const found *f)
{
    return f->n < f->c->set.n;
}

static outcome not_checked(const char *why)
{
    return (outcome){NOT_CHECKED, false, why};
}

static outcome decided(bool right, const char *why)
{
    return (outcome){right ? CONFIRMED : REFUTED, false, why};
}

/* `yes` and `no` are sure; neither: it is open. */
static outcome weigh(bool yes, bool no, const char *why)
{
    return (outcome){yes ? CONFIRMED : no ? REFUTED : NOT_REFUTED, !yes && !no, why};
}

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
    const char *const comparison = !yes && !no ? "and balls do not decide about"
                                   : yes       ? (lower ? "at least" : "at most")
                                               : (lower ? "below" : "above");
    return weigh(yes, no, words(j, "%s is %.9g, %s %.9g", name, middle(x), comparison, bound));
}

/* A measured number: within a thousandth of it, or within the slack. f64 measures with an error of
 * about 1e-13 of the outputs: a slack of 1e-9 of them is enough. */
static outcome near(job *j, const found *f, const arb_t x, double value, double slack)
{
    const double now = middle(x), off = fabs(now - value);
    if (some_left_out(f))
        return not_checked("it is measured on all inputs, and some were left out");
    if (!arb_is_finite(x)) return weigh(false, false, "the balls do not decide");
    return decided(off <= 1e-3 * fmax(fabs(value), fabs(now)) || off <= slack,
                   words(j, "it is %.9g, the certificate has %.9g", now, value));
}

/* ---- held-out statistics --------------------------------------------------------------------- */

/* P(at most k of n tries succeed), each with probability p: the sum of C(n, i) p^i (1 - p)^(n - i).
 * Each term is the one before it times (n - i + 1) p / (i (1 - p)). */
static void binomial_tail(arb_t out, size_t n, size_t k, double p, slong prec)
{
    arb_ptr term = _arb_vec_init(3), odds = term + 1, rest = term + 2;
    arb_set_d(odds, p);
    arb_sub_ui(rest, odds, 1, prec);
    arb_neg(rest, rest);
    arb_div(odds, odds, rest, prec);
    arb_pow_ui(term, rest, n, prec);
    arb_set(out, term);
    for (size_t i = 1; i <= k; i++) {
        arb_mul(term, term, odds, prec);
        arb_mul_ui(term, term, n - i + 1, prec);
        arb_div_ui(term, term, i, prec);
        arb_add(out, out, term, prec);
    }
    _arb_vec_clear(term, 3);
}

/* Whether at most k of n tries succeed with probability at most 1 - confidence. */
static bool share_is_enough(size_t draws, size_t left_out, double share, double confidence)
{
    bool enough = false, decided = false;
    if (!(share > 0)) return false;
    if (share >= 1) return true;
    arb_ptr tail = _arb_vec_init(2), limit = tail + 1;
    for (slong prec = 256; !decided && prec <= 65536; prec *= 4) {
        arb_set_d(limit, confidence);
        arb_sub_ui(limit, limit, 1, prec);
        arb_neg(limit, limit);
        binomial_tail(tail, draws, left_out, share, prec);
        enough = arb_le(tail, limit);
        decided = enough || arb_gt(tail, limit);
    }
    _arb_vec_clear(tail, 2);
    return enough;
}

/* probability <= (N - k) / (N + 1), where N is below 2^53 */
static bool probability_is_right(size_t draws, size_t left_out, double probability)
{
    arb_t p;
    arb_init(p);
    arb_set_d(p, probability);
    arb_mul_ui(p, p, draws + 1, 256);
    arb_sub_ui(p, p, draws - left_out, 256);
    const bool right = arb_is_nonpositive(p);
    arb_clear(p);
    return right;
}

/* How many inputs have an error above the bound: at most `left_out` may. */
static outcome order_statistic(job *j, const found *f, double bound, size_t left_out)
{
    size_t above = 0, open = 0;
    arb_t b;
    arb_init(b);
    arb_set_d(b, bound);
    for (size_t i = 0; i < f->n && isfinite(bound); i++) {
        const bool known = arb_is_finite(f->each + i);
        const bool is_above = known && arb_gt(f->each + i, b);
        above += is_above;
        open += !is_above && !(known && arb_le(f->each + i, b));
    }
    arb_clear(b);
    return weigh(above + open <= left_out, above > left_out,
                 words(j, "%zu of %zu inputs have a larger error, %zu may", above, f->n, left_out));
}

/* Of N held-out inputs the (k + 1)-th largest error is the bound (docs/format.md). */
static outcome new_inputs(job *j, const found *f, const claim *c)
{
    const double draws = parameter(c, "draws"), out = parameter(c, "left_out");
    const data_claim *const d = &f->c->data;
    if (some_left_out(f)) return not_checked("a statistic of all inputs, and some were left out");
    if (!d->heldout || d->candidates != 1)
        return decided(false, "the certificate does not name its held-out inputs");
    const size_t n = f->n, fewer = (n + 1) / 20 > 1 ? (n + 1) / 20 - 1 : 0;
    if (draws != (double)n || (out != 0 && out != (double)fewer) || !(out < draws))
        return decided(false, words(j, "there are %zu held-out inputs", n));
    const size_t k = (size_t)out;
    if (c->kind->how == NEW_SHARE) {
        const bool enough =
            c->probability <= 0.95 && share_is_enough(n, k, c->bound, c->probability);
        return decided(enough, words(j, "the binomial tail of %zu draws %s the confidence %g", n,
                                     enough ? "allows" : "does not allow", c->probability));
    }
    if (!probability_is_right(n, k, c->probability))
        return decided(false, words(j, "the probability is above %zu / %zu", n - k, n + 1));
    return order_statistic(j, f, c->bound, k);
}

/* ---- theorems on the given inputs ------------------------------------------------------------ */

static outcome rows_changed(job *j, const figures *f, double bound)
{
    const double n = (double)f->rows, may = (double)(f->changed + f->open);
    return weigh(may / n <= bound, (double)f->changed / n > bound,
                 words(j, "%zu of %zu rows have another largest entry, %zu are not decided or tied",
                       f->changed, f->rows, f->open));
}

static outcome auc(job *j, const found *f, const claim *c)
{
    if (!f->has_auc) return not_checked("the data have no labels of two classes");
    const interval x = f->auc[0], y = f->auc[1];
    interval v = y;
    if (strcmp(c->kind->name, "auc.difference") == 0) {
        v.low = fmax(0, fmax(x.low - y.high, y.low - x.high));
        v.high = fmax(x.high - y.low, y.high - x.low);
    }
    const bool lower = c->kind->lower;
    return weigh(lower ? v.low >= c->bound : v.high <= c->bound,
                 lower ? v.high < c->bound : v.low > c->bound,
                 words(j, "it is from %.9g to %.9g", v.low, v.high));
}

static bool is_searched(const claim *c)
{
    return c->kind->how >= SEARCHED && c->kind->how <= ONE_LAYER;
}

static outcome theorem(job *j, const found *f, const claim *c)
{
    const checking how = c->kind->how;
    if (how == UNCHECKED) return not_checked(c->kind->why);
    if (how == NEW_INPUT || how == NEW_SHARE) return new_inputs(j, f, c);
    if (strcmp(c->domain, f->c->domain) != 0)
        return not_checked("its domain is not that of the headline");
    if (how == ROWS_CHANGED) return rows_changed(j, f->all, c->bound);
    if (how == AUC) return auc(j, f, c);
    arb_srcptr x = figure_of(c, f->all);
    if (!x) return not_checked("the models do not have this figure in common");
    outcome o = against(j, x, c->bound, c->kind->lower, "the largest found");
    if (c->kind->lower && o.verdict == CONFIRMED)
        o.verdict = NOT_REFUTED; /* it is about all cuts */
    return o;
}

/* ---- observations, hypotheses, evidence ------------------------------------------------------ */

static outcome observation(job *j, const found *f, const claim *c)
{
    const figures *const all = f->all;
    const figure x = c->kind->figure;
    if (c->kind->how == UNCHECKED) return not_checked(c->kind->why);
    arb_srcptr seen = figure_of(c, all);
    if (!seen) return not_checked("the models do not have this figure in common");
    const double width = (double)f->c->model[0].outputs, slack = 1e-9 * middle(all->v + LARGEST);
    if (x == RATIO) return near(j, f, seen, c->value, 1e-9);
    if (x == ROW) return near(j, f, seen, c->value, slack * sqrt(width));
    /* |f - g| / |f|, or / |f - f without attention| */
    arb_srcptr below = all->v + (x == WITHOUT ? WITHOUT : SQUARES);
    const double entries = sqrt((double)all->rows * width);
    arb_t share;
    arb_init(share);
    if (!arb_is_zero(all->v + APART)) arb_div(share, all->v + APART, below, f->bits);
    arb_sqrtpos(share, share, f->bits);
    const outcome o = near(j, f, share, c->value, slack * entries / sqrt(middle(below)));
    arb_clear(share);
    return o;
}

/* false if a hypothesis of a link is false, else null if one is null */
static int all_hold(const certificate *link)
{
    int all = 1;
    for (size_t i = 0; i < link->n[HYPOTHESES]; i++) {
        const int holds = link->claims[HYPOTHESES][i].holds;
        if (holds == 0 || (holds < 0 && all == 1)) all = holds;
    }
    return all;
}

/* What the two architectures and the other claims show. */
static outcome hypothesis(job *j, const certificate *c, const claim *h)
{
    const model *const f = &c->model[0], *const g = &c->model[1];
    const char *const name = h->kind->name;
    bool right = false;
    if (h->kind->how == UNCHECKED) return not_checked(h->kind->why);
    if (strcmp(name, "layers.merged") == 0) {
        right = parameter(h, "before") == (double)f->nlayers &&
                parameter(h, "after") == (double)g->nlayers && h->holds == 1;
    } else if (strcmp(name, "layer.replaced") == 0) {
        const size_t l = layer_of(h);
        if (l < f->nlayers && l < g->nlayers && h->holds == 1)
            right = strcmp(parameter_text(h, "by"),
                           words(j, "%s (it was %s)", attention_words[g->layers[l].attn.kind],
                                 attention_words[f->layers[l].attn.kind])) == 0;
    } else if (strcmp(name, "link.hypotheses") == 0) {
        const double l = parameter(h, "link");
        if (l >= 0 && l < (double)c->nlinks)
            right = h->holds == all_hold(&c->links[(size_t)l]) &&
                    strcmp(parameter_text(h, "reduction"), c->links[(size_t)l].reduction) == 0;
    } else if (strcmp(name, "fold.not_rotary") == 0) {
        right = h->holds == (f->positions != POS_ROTARY);
    } else {
        right = h->holds == (f->pattern != GRAPH || f->self_loops);
    }
    return decided(right, right ? "so it is in the files" : "it is not so in the files");
}

/* A least that no cut can beat, above what this cut reaches. */
static outcome evidence(job *j, const claim *c)
{
    if (!(c->limit > c->value)) return not_checked(c->kind->why);
    return decided(false, words(j, "the least of any, %.17g, is above what is reached, %.17g",
                                c->limit, c->value));
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static wanted what_is_wanted(const certificate *c)
{
    wanted w = {0};
    for (section s = THEOREMS; s <= OBSERVATIONS; s++)
        for (size_t i = 0; i < c->n[s]; i++) w.of[c->claims[s][i].kind->figure] = true;
    w.of[FFN] = w.of[ATTENTION];
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

/* Labels of two classes, on the one input: AUC claims are about graphs. */
static void find_auc(job *j, found *f, arb_ptr scores[2])
{
    const input *const in = &f->c->set.list[0];
    f->has_auc = true;
    for (int s = 0; s < 2; s++)
        f->has_auc &= auc_interval(j, scores[s], in->tokens, in->target, &f->auc[s]);
}

/* Inputs are shared by the threads; one input alone is shared row by row (evaluate.c). What is found
 * is joined in the order of the inputs. */
static bool evaluate_all(job *j, found *f, const wanted *w, const uint32_t *order)
{
    const certificate *const c = f->c;
    const model *const a = &c->model[0], *const b = &c->model[1];
    const bool with_scores = c->set.n == 1 && c->set.list[0].target && a->outputs == 2 && !a->pool;
    const slong rows = with_scores ? (slong)c->set.list[0].tokens : 0;
    figures **const one = take(j, f->n, sizeof *one);
    for (size_t i = 0; one && i < f->n; i++) one[i] = figures_new(j, a->nlayers);
    f->all = figures_new(j, a->nlayers);
    const bool ready = j->t.code == 0;
    arb_ptr scores[2] = {_arb_vec_init(rows), _arb_vec_init(rows)};
#pragma omp parallel for schedule(dynamic) if (f->n > 1)
    for (size_t i = 0; i < f->n; i++) {
        job own = {.o = j->o, .main = j};
        if (!ready) continue;
        if (!compare(&own, a, b, &c->set.list[order[i]], w, one[i], with_scores ? scores : NULL,
                     f->bits)) {
#pragma omp critical
            fail(j, own.t.code, "%s", own.t.text);
        }
        give_back(&own);
    }
    for (size_t i = 0; j->t.code == 0 && i < f->n; i++) {
        figures_join(f->all, one[i], f->bits);
        arb_set(f->each + i, one[i]->v + DIFFERENCE);
    }
    if (j->t.code == 0 && with_scores) find_auc(j, f, scores);
    for (size_t i = 0; one && i < f->n; i++) figures_free(one[i]);
    for (int s = 0; s < 2; s++) _arb_vec_clear(scores[s], rows);
    return j->t.code == 0;
}

static outcome proven(job *j, const found *f)
{
    return against(j, f->all->v + DIFFERENCE, f->c->proven, false, "the largest difference");
}

static bool something_is_open(job *j, const found *f)
{
    const certificate *const c = f->c;
    bool open = proven(j, f).open;
    for (size_t i = 0; !open && i < c->n[THEOREMS]; i++)
        open = !is_searched(&c->claims[THEOREMS][i]) && theorem(j, f, &c->claims[THEOREMS][i]).open;
    return open;
}

/* A confirmation on some of the inputs is none. */
static void say(job *j, const found *f, const char *what, outcome o)
{
    if (some_left_out(f) && o.verdict == CONFIRMED)
        state(j, NOT_REFUTED, what, "on %zu of %zu inputs: %s", f->n, f->c->set.n, o.why);
    else
        state(j, o.verdict, what, "%s", o.why);
}

static void say_all(job *j, const found *f, const wanted *w)
{
    const certificate *const c = f->c;
    const double slack = 1e-9 * middle(f->all->v + LARGEST);
    say(j, f, words(j, "headline.proven %.9g", c->proven), proven(j, f));
    say(j, f, words(j, "headline.measured %.9g", c->measured),
        c->measured > c->proven && !some_left_out(f)
            ? decided(false, "it is above what is proven")
            : near(j, f, f->all->v + DIFFERENCE, c->measured, slack));
    for (section s = HYPOTHESES; s < SECTIONS; s++) {
        for (size_t i = 0; i < c->n[s]; i++) {
            const claim *const t = &c->claims[s][i];
            const outcome o = s == HYPOTHESES     ? hypothesis(j, c, t)
                              : s == OBSERVATIONS ? observation(j, f, t)
                              : s == EVIDENCE     ? evidence(j, t)
                              : s == PAPER        ? not_checked(t->kind->why)
                              : is_searched(t)    ? (outcome){0}
                                                  : theorem(j, f, t);
            if (s == HYPOTHESES) state(j, o.verdict, t->what, "%s", o.why);
            if (s != HYPOTHESES && o.why) say(j, f, t->what, o);
        }
        if (s == THEOREMS) search_domains(j, c, w, f->all, f->n);
    }
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
    j->work_all += work;
    bool good = evaluate_all(j, &f, &w, order);
    while (good && f.bits < MOST_BITS && something_is_open(j, &f)) {
        figures_free(f.all);
        f.bits *= 2;
        j->work_all += work;
        good = evaluate_all(j, &f, &w, order);
    }
    if (good) say_all(j, &f, &w);
    figures_free(f.all);
    _arb_vec_clear(f.each, (slong)f.n);
}
