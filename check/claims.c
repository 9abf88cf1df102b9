/* claims.c - the claims of a certificate, most of them about the given inputs.
 *
 * Both models are evaluated on the inputs. The figure that a claim is about then lies in an interval,
 * and the claim is confirmed or refuted where that is on one side of its bound. Where it is not,
 * everything is evaluated again with more bits. */
#include "check.h"

#include <arb_hypgeom.h>

enum { LEAST_BITS = 128, MOST_BITS = 1024, TAIL_BITS = 256 };

typedef struct searched { /* all theorems about a domain share one search */
    const char *domain, *why_not;
    interval *all;
    size_t tries;
    struct searched *next;
} searched;

typedef struct found { /* on the given inputs */
    const certificate *c;
    size_t n, *order;      /* how many of c->set are evaluated, and in which order */
    interval **each, *all; /* figures of each, and joined */
    balls (*y)[2];         /* the outputs of f and g on each, where a claim needs them */
    bool open;             /* a claim is not decided */
    unsigned wanted;       /* figures */
    searched *searched;
    /* the claim at hand: */
    const cJSON *claim;
    const struct kind *kind;
    const char *why; /* if there is more to say */
} found;

typedef struct kind {
    const char *name;
    /* An interval with the figure of the claim, or `none`, where there is none, or `untrue`. */
    interval (*value)(found *f);
    figure figure;
    const char *why; /* not checked: why */
} kind;

static const interval none = {-1, -1}, untrue = {INFINITY, INFINITY};

static double parameter(const cJSON *claim, const char *name) /* nan: not there */
{
    return cJSON_GetNumberValue(find(find(claim, "parameters"), name));
}

/* ---- figures of claims ----------------------------------------------------------------------- */

/* The figure of the claim: of a layer, if it names one. */
static interval in_place(const found *f, const interval *all)
{
    const double layer = parameter(f->claim, "layer"), n = (double)f->c->model[0].blocks;
    figure x = f->kind->figure;
    if (x < RATIO) return all[x];
    if (is_text(find(find(f->claim, "parameters"), "part"), "feed-forward part")) x = FFN;
    return layer >= 0 && layer < n ? all[figure_place(x, (size_t)layer)] : none;
}

static interval largest(found *f)
{
    return in_place(f, f->all);
}

/* a / b, rounded outwards where it is not exact. */
static interval quotient(interval a, interval b)
{
    const double low = a.low / b.high, high = a.high / b.low;
    return (interval){fma(low, b.high, -a.low) == 0 ? low : nextafter(low, 0),
                      fma(high, b.low, -a.high) == 0 ? high : nextafter(high, INFINITY)};
}

static interval mean_of_rows(found *f)
{
    const interval v = f->all[f->kind->figure];
    return v.low < 0 ? none : quotient(v, f->all[ROWS]);
}

/* |f - g| / |f| */
static interval relative(found *f)
{
    const interval apart = f->all[APART], q = quotient(apart, f->all[SQUARES]);
    return apart.high > 0 ? (interval){sqrt(q.low), sqrt(q.high)} : apart;
}

/* The (k + 1)-th largest over the inputs, of sums over rows their mean: that of the lower ends is
 * below it, that of the upper ends above. */
static interval order_statistic(const found *f, double k)
{
    const figure x = f->kind->figure;
    const size_t at = f->n - 1 - (size_t)k;
    double *const low = take(f->n, sizeof *low), *const high = take(f->n, sizeof *high);
    for (size_t i = 0; i < f->n; i++) {
        const interval *const v = f->each[i];
        const interval one = x == KL_SUM ? quotient(v[x], v[ROWS]) : v[x];
        low[i] = one.low;
        high[i] = one.high;
    }
    qsort(low, f->n, sizeof *low, ascending);
    qsort(high, f->n, sizeof *high, ascending);
    return (interval){low[at], high[at]};
}

/* Of embeddings: every input has one row. */
static interval cosines(found *f)
{
    const double n = (double)f->n, k = parameter(f->claim, "left_out");
    if (!f->c->model[0].pools) return none;
    if (parameter(f->claim, "rows") != n || (k != 0 && k != floor(n / 20) && k != floor(n / 2)))
        return untrue;
    return order_statistic(f, k);
}

static int by_midpoint(const void *a, const void *b)
{
    return arf_cmp(arb_midref(*(const arb_ptr *)a), arb_midref(*(const arb_ptr *)b));
}

/* Marks the k inputs whose rows are nearest to that of i by their cosine; false: it is not sure. */
static bool find_nearest(const found *f, size_t i, size_t side, size_t k, bool *in)
{
    const balls own = f->y[i][side];
    arb_ptr away = take_balls(f->n + 3), *const order = take(f->n, sizeof *order);
    bool sure = true;
    for (size_t l = 0; l < f->n; l++)
        cosine_distance(order[l] = away + l, own.v, f->y[l][side].v, own.d, away + f->n);
    arb_pos_inf(away + i);
    qsort(order, f->n, sizeof *order, by_midpoint);
    for (size_t t = 0; t < f->n; t++) {
        in[order[t] - away] = t < k;
        sure = sure && (t < k ? arb_lt(order[t], order[k]) : arb_lt(order[k - 1], order[t]));
    }
    return sure;
}

/* The share of the inputs with another set of nearest ones. */
static interval neighbors(found *f)
{
    const double k = parameter(f->claim, "nearest"), n = (double)f->n;
    bool *const in[2] = {take(f->n, 1), take(f->n, 1)};
    interval changed = {0, 0};
    if (!f->c->model[0].pools || !(k >= 1 && k < n - 1)) return none;
    for (size_t i = 0; i < f->n; i++) {
        chunk *const mark = now->memory;
        const bool sure =
            find_nearest(f, i, 0, (size_t)k, in[0]) && find_nearest(f, i, 1, (size_t)k, in[1]);
        const bool differ = sure && memcmp(in[0], in[1], f->n) != 0;
        changed.low += differ;
        changed.high += !sure || differ;
        release(mark, NULL, NULL);
    }
    return quotient(changed, (interval){n, n});
}

/* Area under the ROC curve: pairs of a negative and a positive in which the positive is surely above,
 * and those in which it may be. */
static interval auc_of(const found *f, balls y)
{
    const double *const target = f->c->set.list[0].target;
    arb_ptr score = take_balls(y.n);
    interval above = {0, 0}, all = {0, 0};
    for (size_t i = 0; i < y.n; i++) arb_sub(score + i, row_of(y, i) + 1, row_of(y, i), bits);
    for (size_t p = 0; p < y.n; p++)
        for (size_t q = 0; target[p] == 1 && q < y.n; q++) {
            if (target[q] != 0) continue;
            all.low = all.high += 1;
            above.low += arb_gt(score + p, score + q);
            above.high += !arb_lt(score + p, score + q);
        }
    return quotient(above, all);
}

static interval auc(found *f)
{
    const inputs *const in = &f->c->set;
    if (in->n != 1 || !in->list[0].target || f->c->model[0].pools || f->y[0]->d != 2) return none;
    const interval a = auc_of(f, f->y[0][0]), b = auc_of(f, f->y[0][1]);
    if (!same(f->kind->name, "auc.difference")) return b;
    return (interval){fmax(0, fmax(a.low - b.high, b.low - a.high)),
                      fmax(a.high - b.low, b.high - a.low)};
}

/* ---- held-out statistics --------------------------------------------------------------------- */

/* P(at most k of n tries succeed), each with probability p: the regularized incomplete beta function. */
static interval binomial_tail(double n, double k, double p)
{
    arb_ptr tail = take_balls(1), rest = ball(1);
    arb_sub(rest, rest, ball(p), TAIL_BITS);
    arb_hypgeom_beta_lower(tail, ball(n - k), ball(k + 1), rest, 1, TAIL_BITS);
    return interval_of(tail);
}

/* Of N held-out inputs the (k + 1)-th largest error is the bound, with probability (N - k) / (N + 1); a
 * larger share than the bound of `new_inputs.share` would leave at most k above it in at most one of
 * twenty draws. */
static interval new_inputs(found *f)
{
    const cJSON *const data = f->c->data;
    const double k = parameter(f->claim, "left_out"), n = (double)f->n;
    const double p = get_number(f->claim, "probability"), share = get_number(f->claim, "bound");
    if (!find(data, "heldout") || get_count(get(data, "writers_word"), "candidates") != 1 ||
        parameter(f->claim, "draws") != n || !(k >= 0 && k < n) || !(p > 0 && p < 1) ||
        (k != 0 && k != floor((n + 1) / 20) - 1))
        return untrue;
    if (!same(f->kind->name, "new_inputs.share"))
        return fma(p, n + 1, k - n) > 0 ? untrue : order_statistic(f, k);
    const double tail = share >= 1 ? 0 : share > 0 ? binomial_tail(n, k, share).high : 1;
    return p <= 0.95 && tail <= 1 - p ? (interval){share, share} : untrue;
}

/* ---- theorems about domains ------------------------------------------------------------------ */

/* Two claims on the same domain must not contradict each other; this program proves neither. */
static interval one_layer(found *f)
{
    f->why = "it is about all cuts of a class";
    for (const cJSON *o = get_list(f->c->json, "theorems")->child; o; o = o->next)
        if (is_text(find(o, "kind"), "apriori.outputs") &&
            is_text(find(f->claim, "domain"), get_text(o, "domain")))
            return (interval){0, get_number(o, "bound")};
    return none;
}

/* Of rows the share with another largest entry at once; of edits that of all pairs of an edit and a
 * node, which are at most the cube of the nodes: one was counted. */
static interval by_search(found *f)
{
    const char *const domain = get_text(f->claim, "domain");
    searched *s = f->searched;
    while (s && !same(s->domain, domain)) s = s->next;
    if (!s) {
        s = take(1, sizeof *s);
        *s = (searched){domain, NULL, new_figures(count_figures(f->c->model)), 0, f->searched};
        f->searched = s;
        s->why_not = search_domain(f->c, domain, f->wanted, f->all, f->n, s->all, &s->tries);
    }
    interval seen = in_place(f, s->all);
    double rows = 0;
    for (size_t i = 0; i < f->c->set.n; i++)
        rows += f->c->model[0].pools ? 1 : (double)f->c->set.list[i].tokens;
    if (same(f->kind->name, "edits.rows_changed"))
        seen.low = fmax(0, seen.low - f->all[CHANGED].high) / rows / rows;
    if (f->kind->figure == CHANGED) seen.low /= rows;
    f->why = s->why_not ? s->why_not : words("%.9g was found, in %zu tries", seen.low, s->tries);
    return s->why_not ? none : seen;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static const char of_engine[] = "it is about the f32 engine of pare",
                  unknown_kind[] = "this program does not check the kind";

/* docs/format.md, "Kinds": how each is checked, by which figure. Those in .least are lower bounds; the
 * last stands for all others. */
static const kind kinds[] = {
    {"local.outputs", largest, DIFFERENCE, NULL},
    {"given.outputs", largest, DIFFERENCE, NULL},
    {"theorem44.outputs", largest, DIFFERENCE, NULL},
    {"outputs.least", largest, DIFFERENCE, NULL},
    {"attention.ratio", largest, RATIO, NULL},
    {"kl.most", largest, KL, NULL},
    {"kl.mean", mean_of_rows, KL_SUM, NULL},
    {"cosine.distance", cosines, COSINE, NULL},
    {"neighbors.changed", neighbors, OUTPUTS, NULL},
    {"rows.changed", mean_of_rows, CHANGED, NULL},
    {"auc.most", auc, OUTPUTS, NULL},
    {"auc.least", auc, OUTPUTS, NULL},
    {"auc.difference", auc, OUTPUTS, NULL},
    {"new_input.outputs", new_inputs, DIFFERENCE, NULL},
    {"new_input.cosine_distance", new_inputs, COSINE, NULL},
    {"new_input.kl", new_inputs, KL_SUM, NULL},
    {"new_inputs.share", new_inputs, 0, NULL},
    {"apriori.outputs", by_search, DIFFERENCE, NULL},
    {"apriori.score", by_search, SCORE, NULL},
    {"apriori.hidden", by_search, HIDDEN, NULL},
    {"diameter.outputs", by_search, DIFFERENCE, NULL},
    {"diameter.score", by_search, SCORE, NULL},
    {"diameter.rank_collapse", by_search, COLLAPSE, NULL},
    {"rank_collapse", by_search, COLLAPSE, NULL},
    {"shared_rows.others", by_search, OTHERS, NULL},
    {"shared_rows.outputs", by_search, DIFFERENCE, NULL},
    {"shared_rows.kl", by_search, KL, NULL},
    {"layer.injected", by_search, ATTENTION, NULL},
    {"layer.ticket", by_search, ATTENTION, NULL}, /* or FFN: its part */
    {"ball.outputs", by_search, DIFFERENCE, NULL},
    {"ball.score", by_search, SCORE, NULL},
    {"ball.rows_changed", by_search, CHANGED, NULL},
    {"edits.outputs", by_search, DIFFERENCE, NULL},
    {"edits.rows_changed", by_search, CHANGED, NULL},
    {"one_layer.least", one_layer, 0, NULL},
    {"engine.rounding", NULL, 0, of_engine},
    {"relative_error", relative, SQUARES, NULL},
    {"row_error", largest, ROW, NULL},
    {"attention.ratio_seen", largest, RATIO, NULL},
    {"engine.distance", NULL, 0, of_engine},
    {"", NULL, 0, unknown_kind},
};

static const kind *find_kind(const cJSON *claim)
{
    const char *const name = get_text(claim, "kind");
    const kind *k = kinds;
    while (*k->name && !same(k->name, name)) k++;
    return k;
}

/* "kind name value ...: bound" */
static const char *describe(const cJSON *o)
{
    const char *what = words("%.60s", get_text(o, "kind"));
    for (const cJSON *v = get(o, "parameters")->child; v; v = v->next) {
        if (cJSON_IsNumber(v))
            what = words("%s %.40s %.9g", what, v->string, v->valuedouble);
        else if (cJSON_IsString(v) && v->string)
            what = words("%s %.40s \"%.100s\"", what, v->string, v->valuestring);
    }
    return find(o, "bound") ? words("%s: %.9g", what, get_number(o, "bound")) : what;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* A figure against its bound. It does not confirm what is about a whole domain, all cuts, or inputs that
 * were left out. */
static void say_bound(found *f, const char *what, interval v, double bound)
{
    const bool tried = f->kind->value == by_search, lower = strstr(f->kind->name, ".least");
    const bool yes = lower ? v.low >= bound : v.high <= bound;
    const bool no = lower ? v.high < bound : v.low > bound;
    const bool some = f->n < f->c->set.n, all_cuts = lower && f->kind->value != auc;
    const verdict right = yes && !tried && !all_cuts && !some ? CONFIRMED : NOT_REFUTED;
    f->open = f->open || (!yes && !no && !tried);
    if (isinf(v.low)) f->why = "its parameters or its probability do not fit the inputs";
    if (!f->why) f->why = words("it is from %.9g to %.9g", v.low, v.high);
    if (some && yes) f->why = words("on %zu of %zu inputs: %s", f->n, f->c->set.n, f->why);
    state(no ? REFUTED : right, what, "%s", f->why);
}

/* A measured number: within a thousandth of it, or within 1e-9 of the outputs, which f64 measures to
 * about 1e-13 (ratios: of 1). */
static void say_value(found *f, const char *what, interval v, double value)
{
    const bool of_outputs = f->kind->figure == DIFFERENCE || f->kind->figure == ROW;
    const double slack = 1e-9 * (of_outputs ? sqrt(f->all[SQUARES].high) : 1);
    const double off = fmax(v.high - value, value - v.low);
    f->open = f->open || !(v.high <= v.low * (1 + 1e-6) + slack);
    state(off <= 1e-3 * fmax(value, v.high) || off <= slack ? CONFIRMED : REFUTED, what,
          "it is %.9g, the certificate has %.9g", v.high, value);
}

/* A theorem or an observation of the kind k; o has its domain. Where some inputs were left out, only
 * maxima say something. The domain of a theorem about the given inputs must be that of the headline. */
static void say_number(found *f, const kind *k, const cJSON *o, const char *what, double number,
                       bool theorem)
{
    const bool lower = strstr(k->name, ".least"), maximum = k->value == largest && !lower;
    const bool tried = k->value == by_search, all = f->n == f->c->set.n;
    const bool given = !tried && k->value != new_inputs && k->value != one_layer;
    if (!(number >= 0)) fail(NOT_TRUE, "%s: a number that cannot be", what);
    f->kind = k;
    f->claim = o;
    f->why = k->why;
    if (k->value && theorem && given && !is_text(get(o, "domain"), f->c->domain))
        f->why = "its domain is not that of the headline";
    else if (tried && !theorem)
        f->why = "what is searched cannot be observed";
    else if (k->value && !all && !tried && !(theorem && maximum))
        f->why = "it is about all inputs, and some were left out";
    const interval v = f->why ? none : k->value(f);
    if (v.low < 0)
        state(NOT_CHECKED, what, "%s", f->why ? f->why : "there is no such figure");
    else if (theorem)
        say_bound(f, what, v, number);
    else
        say_value(f, what, v, number);
}

static void say_headline(found *f)
{
    const cJSON *const o = get(f->c->json, "headline");
    const double proven = get_number(o, "proven"), seen = get_number(o, "measured");
    const char *const measured = words("headline.measured %.9g", seen);
    say_number(f, kinds, o, words("headline.proven %.9g", proven), proven, true);
    if (seen > proven)
        state(REFUTED, measured, "it is above what is proven");
    else
        say_number(f, kinds, o, measured, seen, false);
}

static void say_claim(found *f, const cJSON *o, bool theorem)
{
    const kind *const k = find_kind(o);
    const char *const what = describe(o), *const side =
                                              strstr(k->name, ".least") ? "lower" : "upper";
    if (theorem && k->value && !is_text(get(o, "side"), side))
        fail(NOT_TRUE, "%s: is not a bound on that side", what);
    say_number(f, k, o, what, get_number(o, theorem ? "bound" : "value"), theorem);
}

/* Hypotheses: what the cut replaced. Evidence: a least that no cut can beat must not be above what this
 * one reaches. */
static void say_other(const found *f, const cJSON *o)
{
    const cJSON *const value = find(o, "value"), *const limit = find(o, "limit");
    const char *const what = describe(o), *attention[2] = {"", ""};
    const double l = parameter(o, "layer");
    for (int s = 0; l >= 0 && l < 1e6 && s < 2; s++) {
        const cJSON *const v = find(part_of(&f->c->model[s], (size_t)l, false).o, "kind");
        if (cJSON_IsString(v)) attention[s] = v->valuestring;
    }
    const char *const by = words("%s (it was %s)", attention[1], attention[0]);
    const bool replaced = flag(o, "holds") && is_text(find(find(o, "parameters"), "by"), by);
    if (!find(o, "holds") && cJSON_IsNumber(value) && cJSON_IsNumber(limit) &&
        limit->valuedouble > value->valuedouble)
        state(REFUTED, what, "the least of any is above what is reached");
    else if (is_text(find(o, "kind"), "layer.replaced"))
        state(replaced ? CONFIRMED : REFUTED, what, "in the files: %s", by);
    else
        state(NOT_CHECKED, what, "no file can show it, or nothing checked rests on it");
}

static void say_all(found *f)
{
    static const char *const sections[] = {"hypotheses", "theorems", "observations", "evidence",
                                           "paper"};
    say_headline(f);
    for (size_t s = 0; s < 5; s++)
        for (const cJSON *o = get_list(f->c->json, sections[s])->child; o; o = o->next) {
            if (s == 1 || s == 2)
                say_claim(f, o, s == 1);
            else
                say_other(f, o);
        }
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static unsigned what_is_wanted(const cJSON *json)
{
    static const char *const sections[] = {"theorems", "observations"};
    unsigned wanted = 0;
    for (int s = 0; s < 2; s++)
        for (const cJSON *o = get_list(json, sections[s])->child; o; o = o->next)
            wanted |= BIT(find_kind(o)->figure);
    return wanted & BIT(ATTENTION) ? wanted | BIT(FFN) : wanted;
}

static void evaluate_all(found *f)
{
    const size_t count = count_figures(f->c->model);
    f->each = take(f->n, sizeof *f->each);
    f->y = take(f->n, sizeof *f->y);
    f->all = new_figures(count);
    for (size_t i = 0; i < f->n; i++) {
        f->each[i] = new_figures(count);
        chunk *const mark = now->memory;
        compare(f->c->model, &f->c->set.list[f->order[i]], f->wanted, f->each[i], f->y[i]);
        if (!(f->wanted & BIT(OUTPUTS))) release(mark, NULL, NULL);
        for (size_t p = 0; p < count; p++) join_figure(f->all, p, f->each[i][p]);
    }
}

/* All inputs, or K of them by a seeded draw. A tensor that nothing reads may mean something that this
 * program does not know. */
void check_claims(const certificate *c)
{
    const bool draw = now->o->inputs && now->o->inputs < c->set.n;
    philox random = {.seed = now->o->seed};
    found f = {.c = c, .n = draw ? now->o->inputs : c->set.n, .open = true};
    statement **const before = now->end;
    double work = 0;
    f.wanted = what_is_wanted(c->json);
    f.order = whole_numbers(c->set.n);
    if (draw) philox_shuffle(&random, f.order, c->set.n, true);
    for (size_t i = 0; i < 2 * f.n; i++)
        work += work_of(&c->model[i % 2], &c->set.list[f.order[i / 2]]);
    if (work > now->o->most_work) {
        state(NOT_CHECKED, "all claims", "too many multiply-adds");
        return;
    }
    for (bits = LEAST_BITS; f.open && bits <= MOST_BITS; bits *= 2) {
        f.open = false;
        now->work_all += work;
        *(now->end = before) = NULL; /* what was said with fewer bits is taken back */
        evaluate_all(&f);
        for (int s = 0; s < 2; s++)
            for (const array *t = c->model[s].tensors.list; t->name; t++)
                must(t->used || same(t->name, "vocab"), "tensor %s has no meaning here", t->name);
        say_all(&f);
    }
    bits = LEAST_BITS;
}
