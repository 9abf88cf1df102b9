/* claims.c - the claims of a certificate, most of them about the given inputs.
 *
 * Both models are evaluated on the inputs; then a claim is confirmed or refuted where the balls are
 * on one side of its bound. Where they are not, everything is evaluated again with more bits. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BITS = 128, MOST_BITS = 1024 };

/* What was found on the given inputs. */
typedef struct found {
    const certificate *c;
    size_t n; /* inputs that were evaluated, of c->set.n */
    const uint32_t *order;
    arb_ptr *each, all; /* figures of each, and joined */
    balls *y; /* the outputs on each, where a claim needs them: rows of f and g side by side */
    slong bits;
    bool open; /* the balls do not decide a claim */
} found;

/* What can be said of a claim, and why. */
typedef struct outcome {
    verdict verdict;
    const char *why;
} outcome;

typedef struct claim claim;
typedef struct kind {
    const char *section, *name;
    outcome (*judge)(job *j, found *f, const claim *c); /* NULL: not checked */
    figure figure;
    const char *why; /* not checked: why */
    bool lower;
} kind;

struct claim {
    const kind *kind;
    const cJSON *json;
    const char *what; /* the kind with its parameters */
    double bound;     /* of a theorem; elsewhere the value */
};

static double parameter(const cJSON *o, const char *name)
{
    const cJSON *const v = find(find(o, "parameters"), name);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *parameter_text(const cJSON *o, const char *name)
{
    const cJSON *const v = find(find(o, "parameters"), name);
    return cJSON_IsString(v) ? v->valuestring : "";
}

double middle(const arb_t x)
{
    return arf_get_d(arb_midref(x), ARF_RND_NEAR);
}

int is_above(const arb_t x, double bound)
{
    arb_t b;
    arb_init(b);
    arb_set_d(b, bound);
    const bool finite = arb_is_finite(x) && isfinite(bound);
    const int above = bound == INFINITY ? -1
                      : !finite         ? 0
                      : arb_gt(x, b)    ? 1
                      : arb_le(x, b)    ? -1
                                        : 0;
    arb_clear(b);
    return above;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

static outcome not_checked(const char *why)
{
    return (outcome){NOT_CHECKED, why};
}

static outcome decided(bool right, const char *why)
{
    return (outcome){right ? CONFIRMED : REFUTED, why};
}

/* `yes` and `no` are sure; neither: it is open. */
static outcome weigh(found *f, bool yes, bool no, const char *why)
{
    f->open = f->open || (!yes && !no);
    return (outcome){yes ? CONFIRMED : no ? REFUTED : NOT_REFUTED, why};
}

static bool some_left_out(const found *f)
{
    return f->n < f->c->set.n;
}

/* The place of a claim's figure; SIZE_MAX: the models do not have it in common. */
static size_t place_of(const certificate *c, const claim *t)
{
    const double layer = parameter(t->json, "layer"), n = (double)count_blocks(&c->model[0]);
    const bool ffn = strncmp(parameter_text(t->json, "part"), "feed", 4) == 0;
    const figure x = t->kind->figure == ATTENTION && ffn ? FFN : t->kind->figure;
    if (x < RATIO) return x;
    return layer >= 0 && layer < n ? figure_place(x, (size_t)layer) : SIZE_MAX;
}

/* The joined figure; NULL: there is none. */
static arb_srcptr figure_of(const found *f, const claim *c)
{
    const size_t at = place_of(f->c, c);
    return at == SIZE_MAX || arb_equal_si(f->all + at, -1) ? NULL : f->all + at;
}

/* ---- theorems on the given inputs ------------------------------------------------------------ */

static outcome against(job *j, found *f, const arb_t x, double bound)
{
    static const char *const where[] = {"at most", "undecided beside", "above"};
    const int above = is_above(x, bound);
    return weigh(
        f, above<0, above> 0,
        words(j, "the largest found is %.9g, %s %.9g", middle(x), where[above + 1], bound));
}

static outcome largest(job *j, found *f, const claim *c)
{
    arb_srcptr x = figure_of(f, c);
    return x ? against(j, f, x, c->bound)
             : not_checked("the models do not have this figure in common");
}

/* A least that no cut can beat: this one must not be below it. */
static outcome least(job *j, found *f, const claim *c)
{
    const int above = is_above(f->all + DIFFERENCE, nextafter(c->bound, 0));
    if (some_left_out(f)) return not_checked("it is about all inputs, and some were left out");
    f->open = f->open || above == 0;
    return (outcome){above < 0 ? REFUTED : NOT_REFUTED,
                     words(j, "the cut is %.9g off", middle(f->all + DIFFERENCE))};
}

static outcome rows_changed(job *j, found *f, const claim *c)
{
    const double n = middle(f->all + ROWS), changed = middle(f->all + CHANGED);
    const double open = middle(f->all + OPEN);
    if (some_left_out(f)) return not_checked("a share of all rows, and some were left out");
    return weigh(f, (changed + open) / n <= c->bound, changed / n > c->bound,
                 words(j,
                       "%.0f of %.0f rows have another largest entry, %.0f are undecided or tied",
                       changed, n, open));
}

/* The figure of one input: of sums over rows the mean. */
static void figure_on(arb_t out, const found *f, size_t i, figure x)
{
    if (x == KL_SUM)
        arb_div(out, f->each[i] + x, f->each[i] + ROWS, f->bits);
    else
        arb_set(out, f->each[i] + x);
}

/* At most `left_out` of the inputs have a larger figure than the bound. */
static outcome order_statistic(job *j, found *f, const claim *c, double left_out)
{
    size_t above = 0, open = 0;
    arb_ptr x = take_balls(j, 1);
    for (size_t i = 0; i < f->n; i++) {
        figure_on(x, f, i, c->kind->figure);
        above += is_above(x, c->bound) > 0;
        open += is_above(x, c->bound) == 0;
    }
    return weigh(f, (double)(above + open) <= left_out, (double)above > left_out,
                 words(j, "%zu of %zu inputs have a larger one, %zu may", above, f->n, open));
}

/* Of embeddings: every input has one row. */
static outcome cosines(job *j, found *f, const claim *c)
{
    const double n = (double)f->c->set.n, out = parameter(c->json, "left_out");
    if (!f->c->model[0].pools) return not_checked("the model does not pool");
    if (parameter(c->json, "rows") != n ||
        (out != 0 && out != floor(n / 20) && out != floor(n / 2)))
        return decided(false, words(j, "there are %.0f rows", n));
    return order_statistic(j, f, c, out);
}

static outcome mean_of_rows(job *j, found *f, const claim *c)
{
    arb_ptr x = take_balls(j, 1);
    if (some_left_out(f)) return not_checked("a mean over all rows, and some were left out");
    if (!figure_of(f, c)) return not_checked("the models do not have this figure in common");
    arb_div(x, f->all + c->kind->figure, f->all + ROWS, f->bits);
    return against(j, f, x, c->bound);
}

/* ---- nearest neighbors ----------------------------------------------------------------------- */

/* Marks the k inputs whose rows are nearest to that of i by their cosine; false: it is not sure. */
static bool find_nearest(const found *f, size_t i, size_t side, size_t k, bool *in, arb_ptr away)
{
    const size_t d = f->y[i].d / 2, first = side * d;
    arb_ptr room = away + f->n;
    for (size_t l = 0; l < f->n; l++) {
        cosine_distance(away + l, f->y[i].v + first, f->y[l].v + first, d, room, f->bits);
        in[l] = false;
    }
    for (size_t t = 0; t < k; t++) {
        size_t best = SIZE_MAX;
        for (size_t l = 0; l < f->n; l++)
            if (l != i && !in[l] &&
                (best == SIZE_MAX || arf_cmp(arb_midref(away + l), arb_midref(away + best)) < 0))
                best = l;
        in[best] = true;
    }
    bool sure = true;
    for (size_t l = 0; l < f->n * f->n; l++) /* every one of them is nearer than every other */
        if (l / f->n != i && l % f->n != i && in[l / f->n] && !in[l % f->n])
            sure = sure && arb_lt(away + l / f->n, away + l % f->n);
    return sure;
}

static outcome neighbors(job *j, found *f, const claim *c)
{
    const double k = parameter(c->json, "nearest"), n = (double)f->n;
    if (!f->c->model[0].pools || some_left_out(f) || !(k >= 1 && k < n - 1))
        return not_checked("it is about one output row of each of more inputs");
    bool *const in[2] = {take(j, f->n, 1), take(j, f->n, 1)};
    arb_ptr away = take_balls(j, f->n + 3);
    double changed = 0, open = 0;
    for (size_t i = 0; i < f->n; i++) {
        const bool sure = find_nearest(f, i, 0, (size_t)k, in[0], away) &&
                          find_nearest(f, i, 1, (size_t)k, in[1], away);
        open += !sure;
        changed += sure && memcmp(in[0], in[1], f->n) != 0;
    }
    return weigh(f, (changed + open) / n <= c->bound, changed / n > c->bound,
                 words(j, "%.0f of %.0f inputs have other neighbors, %.0f are undecided or tied",
                       changed, n, open));
}

/* ---- the area under the ROC curve ------------------------------------------------------------ */

typedef struct interval {
    double low, high; /* rounded outwards */
} interval;

/* A pair of a negative and a positive counts 1 where the positive is above, 1/2 where both are equal:
 * pairs that surely count, and those that may. */
static interval auc_of(job *j, const found *f, size_t side)
{
    const balls y = f->y[0];
    const int64_t *const target = f->c->set.list[0].target;
    const balls s = new_balls(j, y.n, 1);
    double all = 0, sure = 0, may = 0;
    for (size_t i = 0; i < y.n; i++)
        arb_sub(s.v + i, row_of(y, i) + 2 * side + 1, row_of(y, i) + 2 * side, f->bits);
    for (size_t p = 0; p < y.n; p++)
        for (size_t q = 0; target[p] == 1 && q < y.n; q++) {
            if (target[q] != 0) continue;
            all++;
            sure += arb_gt(s.v + p, s.v + q);
            may += !arb_lt(s.v + p, s.v + q);
        }
    return (interval){sure > 0 ? nextafter(sure / all, 0) : 0,
                      may < all ? nextafter(may / all, 2) : 1};
}

static outcome auc(job *j, found *f, const claim *c)
{
    const inputs *const in = &f->c->set;
    if (in->n != 1 || !in->list[0].target || f->c->model[0].pools || f->y[0].d != 4)
        return not_checked("the data have no labels of two classes");
    const interval x = auc_of(j, f, 0), y = auc_of(j, f, 1);
    interval v = y;
    if (same(c->kind->name, "auc.difference")) {
        v.low = fmax(0, fmax(x.low - y.high, y.low - x.high));
        v.high = fmax(x.high - y.low, y.high - x.low);
    }
    return weigh(f, c->kind->lower ? v.low >= c->bound : v.high <= c->bound,
                 c->kind->lower ? v.high < c->bound : v.low > c->bound,
                 words(j, "it is from %.9g to %.9g", v.low, v.high));
}

/* ---- held-out statistics --------------------------------------------------------------------- */

/* P(at most k of n tries succeed), each with probability p: the sum of C(n, i) p^i (1 - p)^(n - i).
 * Each term is the one before it times (n - i + 1) p / (i (1 - p)). t: room for 3. */
static void binomial_tail(arb_t out, size_t n, size_t k, double p, arb_ptr t, slong prec)
{
    arb_ptr term = t, odds = t + 1, rest = t + 2;
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
}

/* At most k of n tries succeed with a probability of at most 1 - confidence. */
static outcome share(job *j, size_t n, size_t k, double p, double confidence)
{
    arb_ptr tail = take_balls(j, 4);
    int above = p >= 1 ? -1 : p > 0 ? 0 : 1;
    arb_t most;
    for (slong prec = 256; above == 0 && prec <= 65536; prec *= 4) {
        binomial_tail(tail, n, k, p, tail + 1, prec);
        arb_init(most);
        arb_set_d(most, confidence);
        arb_add(tail, tail, most, prec);
        arb_clear(most);
        above = is_above(tail, 1);
    }
    return decided(above < 0 && confidence <= 0.95,
                   words(j, "the binomial tail of %zu draws %s the confidence %g", n,
                         above < 0 ? "allows" : "does not allow", confidence));
}

/* Of N held-out inputs the (k + 1)-th largest error is the bound (docs/format.md). */
static outcome new_inputs(job *j, found *f, const claim *c)
{
    const cJSON *const data = f->c->data;
    const double draws = parameter(c->json, "draws"), out = parameter(c->json, "left_out");
    const double p = get_number(j, c->json, "probability"), n = (double)f->c->set.n;
    arb_ptr x = take_balls(j, 1);
    if (some_left_out(f)) return not_checked("a statistic of all inputs, and some were left out");
    if (!find(data, "heldout") || get_count(j, get(j, data, "writers_word"), "candidates") != 1)
        return decided(false, "the certificate does not name its held-out inputs");
    if (draws != n || !(out >= 0 && out < n) || (out != 0 && out != floor((n + 1) / 20) - 1))
        return decided(false, words(j, "there are %.0f held-out inputs", n));
    if (!(p > 0 && p < 1)) return decided(false, "a probability that cannot be");
    if (same(c->kind->name, "new_inputs.share")) return share(j, f->n, (size_t)out, c->bound, p);
    arb_set_d(x, p); /* p (N + 1) <= N - k */
    arb_mul_ui(x, x, f->n + 1, 256);
    if (is_above(x, n - out) > 0)
        return decided(false, words(j, "the probability is above %.0f / %.0f", n - out, n + 1));
    return order_statistic(j, f, c, out);
}

/* ---- observations, hypotheses, evidence ------------------------------------------------------ */

/* A measured number: within a thousandth of it, or within the slack. f64 measures with an error of
 * about 1e-13 of the outputs: a slack of 1e-9 of them is enough. */
static outcome near(job *j, found *f, const arb_t x, double value, double slack)
{
    const double now = middle(x), off = fabs(now - value);
    if (some_left_out(f)) return not_checked("measured on all inputs, and some were left out");
    if (!arb_is_finite(x)) return weigh(f, false, false, "the balls do not decide");
    return decided(off <= 1e-3 * fmax(fabs(value), fabs(now)) || off <= slack,
                   words(j, "it is %.9g, the certificate has %.9g", now, value));
}

static outcome measured(job *j, found *f, const claim *c)
{
    arb_srcptr x = figure_of(f, c);
    const double slack = 1e-9 * sqrt(middle(f->all + SQUARES));
    return x ? near(j, f, x, c->bound, c->kind->figure == RATIO ? 1e-9 : slack)
             : not_checked("the models do not have this figure in common");
}

/* |f - g| / |f|, or / |f - f without attention| */
static outcome ratio_of_sums(job *j, found *f, const claim *c)
{
    arb_srcptr below = figure_of(f, c);
    arb_ptr x = take_balls(j, 1);
    if (!below) return not_checked("the models do not have this figure in common");
    if (!arb_is_zero(f->all + APART)) arb_div(x, f->all + APART, below, f->bits);
    arb_sqrtpos(x, x, f->bits);
    return near(j, f, x, c->bound, 1e-9 * sqrt(middle(f->all + SQUARES) / middle(below)));
}

static outcome replaced(job *j, found *f, const claim *c)
{
    const double l = parameter(c->json, "layer");
    const cJSON *kinds[2] = {NULL, NULL};
    for (int s = 0; l >= 0 && l < 1e6 && s < 2; s++)
        kinds[s] = find(part_of(j, &f->c->model[s], (size_t)l, false).o, "kind");
    const bool right =
        cJSON_IsString(kinds[0]) && cJSON_IsString(kinds[1]) && flag(c->json, "holds") &&
        same(parameter_text(c->json, "by"),
             words(j, "%s (it was %s)", kinds[1]->valuestring, kinds[0]->valuestring));
    return decided(right, right ? "so it is in the files" : "it is not so in the files");
}

/* A least that no cut can beat, above what this cut reaches. */
static outcome optimality(job *j, found *f, const claim *c)
{
    const cJSON *const limit = find(c->json, "limit");
    (void)f;
    if (!cJSON_IsNumber(limit) || !(limit->valuedouble > c->bound))
        return not_checked("f64 figures that prove nothing");
    return decided(false, words(j, "the least of any, %.17g, is above what is reached, %.17g",
                                limit->valuedouble, c->bound));
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Never called: search.c looks for an input that refutes the claim. */
static outcome searched_for(job *j, found *f, const claim *c)
{
    (void)j, (void)f, (void)c;
    return not_checked("");
}

/* Both sides of one figure: they must not contradict each other. This program proves neither. */
static outcome one_layer(job *j, found *f, const claim *c)
{
    const cJSON *o;
    cJSON_ArrayForEach(o, get(j, f->c->json, "theorems"))
    {
        if (is_text(find(o, "kind"), "apriori.outputs") &&
            is_text(find(c->json, "domain"), get_text(j, o, "domain")) &&
            get_number(j, o, "bound") < c->bound)
            return decided(false, "apriori.outputs, on the same domain, says that it is less");
    }
    return not_checked("it is about all cuts of a class");
}

static const char engine[] = "it is about the f32 engine of pare";
static const char hypotheses[] = "hypotheses", theorems[] = "theorems",
                  observations[] = "observations";

/* docs/format.md, "Kinds": how each is checked, by which figure. The last of a section stands for all
 * others. */
static const kind kinds[] = {
    {hypotheses, "layer.replaced", replaced, 0, NULL, false},
    {hypotheses, "new_input.independent", NULL, 0, "no file can show it", false},
    {hypotheses, "", NULL, 0, "it explains a cut; no theorem above rests on it", false},
    {theorems, "local.outputs", largest, DIFFERENCE, NULL, false},
    {theorems, "given.outputs", largest, DIFFERENCE, NULL, false},
    {theorems, "theorem44.outputs", largest, DIFFERENCE, NULL, false},
    {theorems, "attention.ratio", largest, RATIO, NULL, false},
    {theorems, "kl.most", largest, KL, NULL, false},
    {theorems, "kl.mean", mean_of_rows, KL_SUM, NULL, false},
    {theorems, "cosine.distance", cosines, COSINE, NULL, false},
    {theorems, "neighbors.changed", neighbors, OUTPUTS, NULL, false},
    {theorems, "rows.changed", rows_changed, 0, NULL, false},
    {theorems, "auc.most", auc, OUTPUTS, NULL, false},
    {theorems, "auc.least", auc, OUTPUTS, NULL, true},
    {theorems, "auc.difference", auc, OUTPUTS, NULL, false},
    {theorems, "outputs.least", least, DIFFERENCE, NULL, true},
    {theorems, "new_input.outputs", new_inputs, DIFFERENCE, NULL, false},
    {theorems, "new_input.cosine_distance", new_inputs, COSINE, NULL, false},
    {theorems, "new_input.kl", new_inputs, KL_SUM, NULL, false},
    {theorems, "new_inputs.share", new_inputs, 0, NULL, false},
    {theorems, "apriori.outputs", searched_for, DIFFERENCE, NULL, false},
    {theorems, "apriori.score", searched_for, SCORE, NULL, false},
    {theorems, "apriori.hidden", searched_for, HIDDEN, NULL, false},
    {theorems, "diameter.outputs", searched_for, DIFFERENCE, NULL, false},
    {theorems, "diameter.score", searched_for, SCORE, NULL, false},
    {theorems, "diameter.rank_collapse", searched_for, COLLAPSE, NULL, false},
    {theorems, "rank_collapse", searched_for, COLLAPSE, NULL, false},
    {theorems, "layer.injected", searched_for, ATTENTION, NULL, false},
    {theorems, "layer.ticket", searched_for, ATTENTION, NULL, false}, /* or FFN: its part */
    {theorems, "ball.outputs", searched_for, DIFFERENCE, NULL, false},
    {theorems, "ball.score", searched_for, SCORE, NULL, false},
    {theorems, "ball.rows_changed", searched_for, CHANGED, NULL, false},
    {theorems, "edits.outputs", searched_for, DIFFERENCE, NULL, false},
    {theorems, "edits.rows_changed", searched_for, CHANGED, NULL, false},
    {theorems, "one_layer.least", one_layer, 0, NULL, true},
    {theorems, "engine.rounding", NULL, 0, engine, false},
    {theorems, "", NULL, 0, "this program does not check the kind", false},
    {observations, "relative_error", ratio_of_sums, SQUARES, NULL, false},
    {observations, "lost_fraction", ratio_of_sums, WITHOUT, NULL, false},
    {observations, "row_error", measured, ROW, NULL, false},
    {observations, "attention.ratio_seen", measured, RATIO, NULL, false},
    {observations, "engine.distance", NULL, 0, engine, false},
    {observations, "", NULL, 0, "this program does not measure it", false},
    {"evidence", "", optimality, 0, NULL, false},
    {"paper", "", NULL, 0, "a printed formula, not a theorem of pare", false},
};

static const kind *find_kind(const char *section, const char *name)
{
    const kind *k = kinds;
    while (!same(k->section, section) || (*k->name && !same(k->name, name))) k++;
    return k;
}

/* "kind name value ...: bound" */
static const char *describe(job *j, const cJSON *o)
{
    const char *what = words(j, "%.60s", get_text(j, o, "kind"));
    for (const cJSON *v = get(j, o, "parameters")->child; v; v = v->next) {
        if (cJSON_IsNumber(v))
            what = words(j, "%s %.40s %.9g", what, v->string, v->valuedouble);
        else if (cJSON_IsString(v) && v->string)
            what = words(j, "%s %.40s \"%.100s\"", what, v->string, v->valuestring);
    }
    return find(o, "bound") ? words(j, "%s: %.9g", what, get_number(j, o, "bound")) : what;
}

static claim read_claim(job *j, const char *section, const cJSON *o)
{
    const kind *const k = find_kind(section, get_text(j, o, "kind"));
    const bool theorem = same(section, theorems);
    const cJSON *const value = find(o, theorem ? "bound" : "value");
    claim c = {k, o, describe(j, o), NAN};
    if (theorem || same(section, observations) || cJSON_IsNumber(value))
        c.bound = get_number(j, o, theorem ? "bound" : "value");
    if (theorem && !(c.bound >= 0)) fail(j, NOT_TRUE, "%s: a bound that cannot be", c.what);
    if (theorem && k->judge && !is_text(find(o, "side"), k->lower ? "lower" : "upper"))
        fail(j, NOT_TRUE, "%s: is not a bound on that side", c.what);
    return c;
}

static outcome judge(job *j, found *f, const claim *c)
{
    const bool of_domain = c->kind->judge == new_inputs || c->kind->judge == one_layer;
    if (!c->kind->judge) return not_checked(c->kind->why);
    if (same(c->kind->section, theorems) && !of_domain &&
        !is_text(find(c->json, "domain"), f->c->domain))
        return not_checked("its domain is not that of the headline");
    return c->kind->judge(j, f, c);
}

/* A confirmation on some of the inputs is none. */
static void say(job *j, const found *f, const char *what, outcome o)
{
    if (some_left_out(f) && o.verdict == CONFIRMED)
        state(j, NOT_REFUTED, what, "on %zu of %zu inputs: %s", f->n, f->c->set.n, o.why);
    else
        state(j, o.verdict, what, "%s", o.why);
}

static void say_all(job *j, found *f)
{
    static const char *const sections[] = {hypotheses, theorems, observations, "evidence", "paper"};
    const cJSON *const line = get(j, f->c->json, "headline"), *o;
    const double proven = get_number(j, line, "proven"), seen = get_number(j, line, "measured");
    arb_srcptr x = f->all + DIFFERENCE;
    if (!(proven >= 0) || !(seen >= 0)) fail(j, NOT_TRUE, "headline: a bound below 0");
    say(j, f, words(j, "headline.proven %.9g", proven), against(j, f, x, proven));
    say(j, f, words(j, "headline.measured %.9g", seen),
        seen > proven ? decided(false, "it is above what is proven")
                      : near(j, f, x, seen, 1e-9 * middle(f->all + LARGEST)));
    for (size_t s = 0; s < sizeof sections / sizeof *sections; s++) {
        cJSON_ArrayForEach(o, get_list(j, f->c->json, sections[s]))
        {
            const claim c = read_claim(j, sections[s], o);
            if (c.kind->judge != searched_for) say(j, f, c.what, judge(j, f, &c));
        }
    }
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static unsigned what_is_wanted(job *j, const certificate *c)
{
    const cJSON *o;
    unsigned wanted = 0;
    cJSON_ArrayForEach(o, get_list(j, c->json, theorems)) wanted |=
        BIT(find_kind(theorems, get_text(j, o, "kind"))->figure);
    cJSON_ArrayForEach(o, get_list(j, c->json, observations)) wanted |=
        BIT(find_kind(observations, get_text(j, o, "kind"))->figure);
    if (wanted & BIT(ATTENTION)) wanted |= BIT(FFN);
    return wanted & BIT(KL_SUM) ? wanted | BIT(KL) : wanted;
}

typedef struct one_input {
    found *f;
    size_t i;
    unsigned wanted;
} one_input;

static void evaluate_one(job *j, void *with)
{
    const one_input *const it = with;
    found *const f = it->f;
    const model *const m = f->c->model;
    balls y[2], both;
    compare(j, &m[0], &m[1], &f->c->set.list[f->order[it->i]], it->wanted, f->each[it->i], y,
            f->bits);
    if (!(it->wanted & BIT(OUTPUTS))) return;
    both = f->y[it->i] = new_balls(j, y->n, 2 * y->d);
    for (size_t k = 0; k < 2 * y->n; k++)
        _arb_vec_set(both.v + k * y->d, row_of(y[k % 2], k / 2), (slong)y->d);
    release(j, NULL, both.v);
}

/* Inputs are shared by the threads; one input alone is shared row by row (evaluate.c). What is found
 * is joined in the order of the inputs. */
static void evaluate_all(job *j, found *f, unsigned wanted)
{
    const size_t count = count_figures(&f->c->model[0]);
    job *const own = take(j, f->n, sizeof *own);
    f->each = take(j, f->n, sizeof *f->each);
    f->y = take(j, f->n, sizeof *f->y);
    f->all = new_figures(j, count);
    for (size_t i = 0; i < f->n; i++) f->each[i] = new_figures(j, count);
#pragma omp parallel for schedule(dynamic) if (f->n > 1)
    for (size_t i = 0; i < f->n; i++) {
        one_input it = {f, i, wanted};
        own[i] = (job){.o = j->o, .link = "", .main = j};
        if (!attempt(&own[i], evaluate_one, &it) || !f->y[i].v) release(&own[i], NULL, NULL);
    }
    for (size_t i = 0; i < f->n; i++) adopt(j, &own[i]);
    for (size_t i = 0; i < f->n; i++) {
        if (own[i].t.code) fail(j, own[i].t.code, "%s", own[i].t.text);
        for (size_t p = 0; p < count; p++) join_figure(f->all, p, f->each[i] + p, f->bits);
    }
}

/* A tensor that nothing reads may mean something that this program does not know. */
static void all_are_used(job *j, const model *m)
{
    for (size_t i = 0; i < m->ntensors; i++)
        if (!m->tensors[i].used && !same(m->tensors[i].name, "vocab"))
            fail(j, UNREADABLE, "tensor %s has no meaning here", m->tensors[i].name);
}

/* ---- theorems about domains ------------------------------------------------------------------ */

/* Output rows of all inputs. */
static double rows_of_set(const certificate *c)
{
    double n = 0;
    for (size_t i = 0; i < c->set.n; i++)
        n += c->model[0].pools ? 1 : (double)c->set.list[i].tokens;
    return n;
}

static void judge_searched(job *j, const found *f, const claim *c, arb_srcptr all, size_t tries)
{
    const size_t place = place_of(f->c, c);
    const bool edits = same(c->kind->name, "edits.rows_changed");
    const double n = rows_of_set(f->c), of = c->kind->figure == CHANGED ? edits ? n * n * n : n : 1;
    const double before = edits ? middle(f->all + CHANGED) : 0;
    if (place == SIZE_MAX || arb_equal_si(all + place, -1)) {
        state(j, NOT_CHECKED, c->what, "the models do not have this figure in common");
        return;
    }
    const bool refuted = of > 1 ? (middle(all + place) - before) / of > c->bound
                                : is_above(all + place, c->bound) > 0;
    state(j, refuted ? REFUTED : NOT_REFUTED, c->what, "%.9g was found%s, in %zu tries",
          middle(all + place), of > 1 ? " at once" : "", tries);
}

/* One search for all theorems about the same domain. */
static void search_domains(job *j, const found *f, unsigned wanted)
{
    const cJSON *const list = get_list(j, f->c->json, theorems);
    const char *searched = "";
    for (const cJSON *o = list->child; o; o = o->next) {
        const char *const domain = get_text(j, o, "domain"), *why;
        const claim first = read_claim(j, theorems, o);
        arb_ptr all = new_figures(j, count_figures(&f->c->model[0]));
        size_t tries = 0;
        if (first.kind->judge != searched_for || strstr(searched, words(j, "\n%s\n", domain)))
            continue;
        searched = words(j, "%s\n%s\n", searched, domain);
        why = search_domain(j, f->c, domain, wanted, f->all, f->n, all, &tries);
        for (const cJSON *p = o; p; p = p->next) {
            const claim c = read_claim(j, theorems, p);
            if (c.kind->judge != searched_for || !is_text(find(p, "domain"), domain)) continue;
            if (why)
                state(j, NOT_CHECKED, c.what, "%s", why);
            else
                judge_searched(j, f, &c, all, tries);
        }
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* All inputs, or K of them by a seeded draw. */
void check_claims(job *j, const certificate *c)
{
    const size_t some = j->o->inputs;
    const bool draw = some && some < c->set.n;
    const unsigned wanted = what_is_wanted(j, c);
    philox random = philox_at(j->o->seed, 0);
    found f = {.c = c, .n = draw ? some : c->set.n, .bits = LEAST_BITS / 2, .open = true};
    const job before = *j;
    double work = 0;
    f.order = philox_order(j, &random, c->set.n, draw);
    for (size_t i = 0; i < f.n; i++)
        for (int s = 0; s < 2; s++) work += work_of(j, &c->model[s], &c->set.list[f.order[i]]);
    if (work > j->o->most_work) {
        state(j, NOT_CHECKED, "all claims", "%.3g multiply-adds are above the limit", work);
        return;
    }
    while (f.open && f.bits < MOST_BITS) { /* what was said with fewer bits is taken back */
        f.bits *= 2;
        f.open = false;
        j->work_all += work;
        take_back(j, &before);
        evaluate_all(j, &f, wanted);
        for (int s = 0; s < 2; s++) all_are_used(j, &c->model[s]);
        say_all(j, &f);
    }
    search_domains(j, &f, wanted);
}
