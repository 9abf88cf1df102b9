/* claims.c - the claims of a certificate, most of them about the given inputs.
 *
 * Both models are evaluated on the inputs. The figure that a claim is about then lies in an interval,
 * and the claim is confirmed or refuted where that is on one side of its bound. Where it is not,
 * everything is evaluated again with more bits. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BITS = 128, MOST_BITS = 1024 };

typedef struct found { /* on the given inputs */
    const certificate *c;
    size_t n; /* inputs that were evaluated, of c->set.n */
    const uint32_t *order;
    interval **each, *all; /* figures of each, and joined */
    balls *y; /* the outputs on each, where a claim needs them: rows of f and g side by side */
    slong bits;
    bool open;                 /* a claim is not decided */
    struct searched *searched; /* domains */
    const char *why;           /* of the last claim, if there is more to say */
    unsigned wanted;           /* figures */
} found;

static const interval none = {-1, -1}, untrue = {INFINITY, INFINITY};

static double parameter(const cJSON *claim, const char *name) /* nan: not there */
{
    const cJSON *const v = find(find(claim, "parameters"), name);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *parameter_text(const cJSON *claim, const char *name)
{
    const cJSON *const v = find(find(claim, "parameters"), name);
    return cJSON_IsString(v) ? v->valuestring : "";
}

/* ---- figures of claims ----------------------------------------------------------------------- */

/* Where the figure of a claim is: of a layer, if it names one. */
static interval at_place(const found *f, const cJSON *claim, figure x, const interval *all)
{
    const double layer = parameter(claim, "layer"), n = (double)count_blocks(&f->c->model[0]);
    if (x < RATIO) return all[x];
    if (x == ATTENTION && strncmp(parameter_text(claim, "part"), "feed", 4) == 0) x = FFN;
    return layer >= 0 && layer < n ? all[figure_place(x, (size_t)layer)] : none;
}

static interval largest(job *j, found *f, const cJSON *claim, figure x)
{
    (void)j;
    return at_place(f, claim, x, f->all);
}

/* a / b, rounded outwards where it is not exact. */
static double divide(double a, double b, double towards)
{
    const double q = a / b;
    return fma(q, b, -a) == 0 ? q : nextafter(q, towards);
}

static interval quotient(interval a, interval b)
{
    return (interval){divide(a.low, b.high, 0), divide(a.high, b.low, INFINITY)};
}

static interval mean_of_rows(job *j, found *f, const cJSON *claim, figure x)
{
    (void)j, (void)claim;
    return f->all[x].low < 0 ? none : quotient(f->all[x], f->all[ROWS]);
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* The (k + 1)-th largest over the inputs, of sums over rows their mean: that of the lower ends is
 * below it, that of the upper ends above. */
static interval order_statistic(job *j, const found *f, figure x, size_t k)
{
    double *const low = take(j, f->n, sizeof *low), *const high = take(j, f->n, sizeof *high);
    for (size_t i = 0; i < f->n; i++) {
        const interval *const v = f->each[i];
        const interval one = x == KL_SUM ? quotient(v[x], v[ROWS]) : v[x];
        low[i] = one.low;
        high[i] = one.high;
    }
    qsort(low, f->n, sizeof *low, descending);
    qsort(high, f->n, sizeof *high, descending);
    return (interval){low[k], high[k]};
}

/* Of embeddings: every input has one row. */
static interval cosines(job *j, found *f, const cJSON *claim, figure x)
{
    const double n = (double)f->n, k = parameter(claim, "left_out");
    if (!f->c->model[0].pools) return none;
    if (parameter(claim, "rows") != n || (k != 0 && k != floor(n / 20) && k != floor(n / 2)))
        return untrue;
    return order_statistic(j, f, x, (size_t)k);
}

/* Marks the k inputs whose rows are nearest to that of i by their cosine; false: it is not sure. */
static bool find_nearest(const found *f, size_t i, size_t side, size_t k, bool *in, arb_ptr away)
{
    const size_t d = f->y[i].d / 2, first = side * d;
    size_t within = i, beyond = i; /* the farthest of them, the nearest of the others */
    for (size_t l = 0; l < f->n; l++) {
        cosine_distance(away + l, f->y[i].v + first, f->y[l].v + first, d, away + f->n, f->bits);
        in[l] = false;
    }
    for (size_t t = 0; t <= k; t++) { /* the last of these is the nearest of the others */
        beyond = i;
        for (size_t l = 0; l < f->n; l++)
            if (l != i && !in[l] &&
                (beyond == i || arf_cmp(arb_midref(away + l), arb_midref(away + beyond)) < 0))
                beyond = l;
        if (t < k) in[within = beyond] = true;
    }
    bool sure = true;
    for (size_t l = 0; l < f->n; l++)
        if (l != i && (in[l] ? !arb_lt(away + l, away + beyond) : !arb_lt(away + within, away + l)))
            sure = false;
    return sure;
}

/* The share of the inputs with another set of nearest ones. */
static interval neighbors(job *j, found *f, const cJSON *claim, figure x)
{
    const double k = parameter(claim, "nearest"), n = (double)f->n;
    bool *const in[2] = {take(j, f->n, 1), take(j, f->n, 1)};
    arb_ptr away = take_balls(j, f->n + 3);
    interval changed = {0, 0};
    (void)x;
    if (!f->c->model[0].pools || !(k >= 1 && k < n - 1)) return none;
    for (size_t i = 0; i < f->n; i++) {
        const bool sure = find_nearest(f, i, 0, (size_t)k, in[0], away) &&
                          find_nearest(f, i, 1, (size_t)k, in[1], away);
        const bool differ = sure && memcmp(in[0], in[1], f->n) != 0;
        changed.low += differ;
        changed.high += !sure || differ;
    }
    return quotient(changed, (interval){n, n});
}

/* Area under the ROC curve: pairs of a negative and a positive in which the positive is surely above,
 * and those in which it may be. */
static interval auc_of(job *j, const found *f, size_t side)
{
    const balls y = f->y[0];
    const int64_t *const target = f->c->set.list[0].target;
    arb_ptr s = take_balls(j, y.n), v;
    interval above = {0, 0}, all = {0, 0};
    for (size_t i = 0; i < y.n; i++) {
        v = row_of(y, i) + 2 * side;
        arb_sub(s + i, v + 1, v, f->bits);
    }
    for (size_t p = 0; p < y.n; p++)
        for (size_t q = 0; target[p] == 1 && q < y.n; q++) {
            if (target[q] != 0) continue;
            all.low = all.high += 1;
            above.low += arb_gt(s + p, s + q);
            above.high += !arb_lt(s + p, s + q);
        }
    return quotient(above, all);
}

static interval auc(job *j, found *f, const cJSON *claim, figure x)
{
    const inputs *const in = &f->c->set;
    (void)x;
    if (in->n != 1 || !in->list[0].target || f->c->model[0].pools || f->y[0].d != 4) return none;
    const interval a = auc_of(j, f, 0), b = auc_of(j, f, 1);
    if (!is_text(find(claim, "kind"), "auc.difference")) return b;
    return (interval){fmax(0, fmax(a.low - b.high, b.low - a.high)),
                      fmax(a.high - b.low, b.high - a.low)};
}

/* ---- held-out statistics --------------------------------------------------------------------- */

/* P(at most k of n tries succeed), each with probability p: the sum of C(n, i) p^i (1 - p)^(n - i).
 * Each term is the one before it times (n - i + 1) p / (i (1 - p)). */
static interval binomial_tail(job *j, size_t n, size_t k, double p, slong prec)
{
    arb_ptr sum = take_balls(j, 4), term = sum + 1, odds = sum + 2, rest = sum + 3;
    arb_set_d(odds, p);
    arb_sub_ui(rest, odds, 1, prec);
    arb_neg(rest, rest);
    arb_div(odds, odds, rest, prec);
    arb_pow_ui(term, rest, n, prec);
    arb_set(sum, term);
    for (size_t i = 1; i <= k; i++) {
        arb_mul(term, term, odds, prec);
        arb_mul_ui(term, term, n - i + 1, prec);
        arb_div_ui(term, term, i, prec);
        arb_add(sum, sum, term, prec);
    }
    return interval_of(sum);
}

/* Of N held-out inputs the (k + 1)-th largest error is the bound, with probability (N - k) / (N + 1); a
 * larger share than the bound of `new_inputs.share` would leave at most k above it in at most one of
 * twenty draws. */
static interval new_inputs(job *j, found *f, const cJSON *claim, figure x)
{
    const cJSON *const data = f->c->data;
    const double k = parameter(claim, "left_out"), n = (double)f->n;
    const double p = get_number(j, claim, "probability"), share = get_number(j, claim, "bound");
    const bool held =
        find(data, "heldout") && get_count(j, get(j, data, "writers_word"), "candidates") == 1;
    if (!held || parameter(claim, "draws") != n || !(k >= 0 && k < n) || !(p > 0 && p < 1) ||
        (k != 0 && k != floor((n + 1) / 20) - 1))
        return untrue;
    if (is_text(find(claim, "kind"), "new_inputs.share")) {
        const interval tail = share > 0 && share < 1 ? binomial_tail(j, f->n, (size_t)k, share, 256)
                                                     : (interval){0, share >= 1 ? 0 : 1};
        return p <= 0.95 && tail.high <= 1 - p ? (interval){share, share} : untrue;
    }
    return fma(p, n + 1, k - n) > 0 ? untrue : order_statistic(j, f, x, (size_t)k);
}

/* |f - g| / |f| */
static interval relative(job *j, found *f, const cJSON *claim, figure x)
{
    const interval apart = f->all[APART], q = quotient(apart, f->all[SQUARES]);
    (void)j, (void)claim, (void)x;
    return apart.high > 0 ? (interval){sqrt(q.low), sqrt(q.high)} : apart;
}

/* Two claims on the same domain must not contradict each other; this program proves neither. */
static interval one_layer(job *j, found *f, const cJSON *claim, figure x)
{
    (void)x;
    for (const cJSON *o = get_list(j, f->c->json, "theorems")->child; o; o = o->next)
        if (is_text(find(o, "kind"), "apriori.outputs") &&
            is_text(find(claim, "domain"), get_text(j, o, "domain")))
            return (interval){0, get_number(j, o, "bound")};
    return none;
}

/* ---- theorems about domains ------------------------------------------------------------------ */

typedef struct searched {
    const char *domain, *why_not;
    interval *all;
    size_t tries;
    struct searched *next;
} searched;

/* All theorems about a domain share one search. */
static const searched *search_once(job *j, found *f, const char *domain)
{
    const size_t count = count_figures(&f->c->model[0]);
    searched *s = f->searched;
    while (s && !same(s->domain, domain)) s = s->next;
    if (s) return s;
    s = take(j, 1, sizeof *s);
    *s = (searched){domain, NULL, new_figures(j, count), 0, f->searched};
    s->why_not = search_domain(j, f->c, domain, f->wanted, f->all, f->n, s->all, &s->tries);
    return f->searched = s;
}

/* Of rows the share with another largest entry at once; of edits that of all pairs of an edit and a
 * node, which are at most the cube of the nodes: one was counted. */
static interval by_search(job *j, found *f, const cJSON *claim, figure x)
{
    const searched *const s = search_once(j, f, get_text(j, claim, "domain"));
    const bool edits = is_text(find(claim, "kind"), "edits.rows_changed");
    interval seen = at_place(f, claim, x, s->all);
    double rows = 0;
    for (size_t i = 0; i < f->c->set.n; i++)
        rows += f->c->model[0].pools ? 1 : (double)f->c->set.list[i].tokens;
    if (x == CHANGED && edits) seen.low = fmax(0, seen.low - f->all[x].high) / rows / rows;
    if (x == CHANGED) seen.low /= rows;
    f->why = s->why_not ? s->why_not : words(j, "%.9g was found, in %zu tries", seen.low, s->tries);
    return s->why_not ? none : seen;
}

/* Tokens that share a row: what is found lies between a search and what the files prove. */
static interval shared_rows(job *j, found *f, const cJSON *claim, figure x)
{
    interval seen = by_search(j, f, claim, x);
    const double cost = parameter(claim, "tokens") == (double)f->c->model[1].shared
                            ? shared_rows_cost(j, f->c, x)
                            : INFINITY;
    if (seen.low < 0) seen.low = 0;
    f->why = words(j, "%.120s; at most %.9g is proven from the files", f->why, cost);
    return (interval){seen.low, cost};
}

/* ---- kinds ----------------------------------------------------------------------------------- */

typedef struct kind {
    const char *name;
    /* An interval with the figure of the claim, or `none`, where there is none, or `untrue`. */
    interval (*value)(job *j, found *f, const cJSON *claim, figure x);
    figure figure;
    const char *why; /* not checked: why */
} kind;

/* docs/format.md, "Kinds": how each is checked, by which figure. Those in .least are lower bounds. The
 * last of a list stands for all others. */
static const kind theorems[] = {
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
    {"shared_rows.others", shared_rows, OTHERS, NULL},
    {"shared_rows.outputs", shared_rows, DIFFERENCE, NULL},
    {"shared_rows.kl", shared_rows, KL, NULL},
    {"layer.injected", by_search, ATTENTION, NULL},
    {"layer.ticket", by_search, ATTENTION, NULL}, /* or FFN: its part */
    {"ball.outputs", by_search, DIFFERENCE, NULL},
    {"ball.score", by_search, SCORE, NULL},
    {"ball.rows_changed", by_search, CHANGED, NULL},
    {"edits.outputs", by_search, DIFFERENCE, NULL},
    {"edits.rows_changed", by_search, CHANGED, NULL},
    {"one_layer.least", one_layer, 0, "it is about all cuts of a class"},
    {"engine.rounding", NULL, 0, "it is about the f32 engine of pare"},
    {"", NULL, 0, "this program does not check the kind"},
};

static const kind observations[] = {
    {"relative_error", relative, SQUARES, NULL},
    {"row_error", largest, ROW, NULL},
    {"attention.ratio_seen", largest, RATIO, NULL},
    {"engine.distance", NULL, 0, "it is about the f32 engine of pare"},
    {"", NULL, 0, "this program does not check the kind"},
};

static const kind others[] = {
    {"new_input.independent", NULL, 0, "no file can show it"},
    {"", NULL, 0, "no claim that is checked rests on it"},
};

/* About a domain of its own, not the given inputs. */
static bool searches(const kind *k)
{
    return k->value == by_search || k->value == shared_rows;
}

static const kind *find_kind(job *j, const kind *k, const cJSON *claim)
{
    const char *const name = get_text(j, claim, "kind");
    while (*k->name && !same(k->name, name)) k++;
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

/* ---- what is said ---------------------------------------------------------------------------- */

/* A figure against its bound. */
static void say_bound(job *j, found *f, const char *what, const kind *k, interval v, double bound)
{
    const bool tried = k->value == by_search || (k->value == shared_rows && isinf(v.high)),
               lower = strstr(k->name, ".least");
    const bool yes = lower ? v.low >= bound : v.high <= bound;
    const bool no = lower ? v.high < bound : v.low > bound;
    const bool some = f->n < f->c->set.n && k->value != shared_rows,
               all_cuts = lower && k->value != auc;
    f->open = f->open || (!yes && !no && !tried);
    if (isinf(v.low)) f->why = "its parameters or its probability do not fit the inputs";
    if (!f->why) f->why = words(j, "it is from %.9g to %.9g", v.low, v.high);
    if (some && yes) f->why = words(j, "on %zu of %zu inputs: %s", f->n, f->c->set.n, f->why);
    state(j,
          no                                  ? REFUTED
          : !yes || tried || all_cuts || some ? NOT_REFUTED
                                              : CONFIRMED,
          what, f->why);
}

/* A measured number: within a thousandth of it, or within 1e-9 of the outputs, which f64 measures to
 * about 1e-13 (ratios: of 1). */
static void say_value(job *j, found *f, const char *what, figure x, interval v, double value)
{
    const bool of_outputs = x == DIFFERENCE || x == ROW;
    const double slack = 1e-9 * (of_outputs ? sqrt(f->all[SQUARES].high) : 1);
    const double off = fmax(v.high - value, value - v.low);
    f->open = f->open || !(v.high <= v.low * (1 + 1e-6) + slack);
    state(j, off <= 1e-3 * fmax(value, v.high) || off <= slack ? CONFIRMED : REFUTED, what,
          words(j, "it is %.9g, the certificate has %.9g", v.high, value));
}

/* Its domain must be that of the headline. */
static bool is_about_data(const kind *k)
{
    return k->value && !searches(k) && k->value != new_inputs && k->value != one_layer;
}

/* A theorem or an observation. Where some inputs were left out, only maxima say something. */
static void say_claim(job *j, found *f, const cJSON *o, bool theorem)
{
    const kind *const k = find_kind(j, theorem ? theorems : observations, o);
    const char *const what = describe(j, o);
    const bool lower = strstr(k->name, ".least"), maximum = k->value == largest && !lower;
    const bool some = f->n < f->c->set.n && !(theorem && maximum) && !searches(k);
    const double number = get_number(j, o, theorem ? "bound" : "value");
    if (theorem && k->value && !is_text(get(j, o, "side"), lower ? "lower" : "upper"))
        fail(j, NOT_TRUE, "%s: is not a bound on that side", what);
    if (!(number >= 0)) fail(j, NOT_TRUE, "%s: a number that cannot be", what);
    const bool elsewhere =
        theorem && is_about_data(k) && !is_text(get(j, o, "domain"), f->c->domain);
    f->why = !k->value || k->why ? k->why
             : elsewhere         ? "its domain is not that of the headline"
             : some              ? "it is about all inputs, and some were left out"
                                 : NULL;
    const interval v = k->value && !elsewhere && !some ? k->value(j, f, o, k->figure) : none;
    if (v.low < 0)
        state(j, NOT_CHECKED, what, f->why ? f->why : "the models or the data have no such figure");
    else if (theorem)
        say_bound(j, f, what, k, v, number);
    else
        say_value(j, f, what, k->figure, v, number);
}

/* Hypotheses: what the cut replaced. Evidence: a least that no cut can beat must not be above what this
 * one reaches. The others prove nothing by themselves. */
static void say_other(job *j, const found *f, const cJSON *o)
{
    const cJSON *const value = find(o, "value"), *const limit = find(o, "limit");
    const char *const what = describe(j, o), *now[2] = {"", ""};
    const double l = parameter(o, "layer");
    const bool replaced = is_text(find(o, "kind"), "layer.replaced");
    for (int s = 0; l >= 0 && l < 1e6 && s < 2; s++) {
        const cJSON *const v = find(part_of(j, &f->c->model[s], (size_t)l, false).o, "kind");
        if (cJSON_IsString(v)) now[s] = v->valuestring;
    }
    const char *const by = words(j, "%s (it was %s)", now[1], now[0]);
    const bool right = flag(o, "holds") && same(parameter_text(o, "by"), by);
    if (!find(o, "holds") && cJSON_IsNumber(value) && cJSON_IsNumber(limit) &&
        limit->valuedouble > value->valuedouble)
        state(j, REFUTED, what, "the least of any is above what is reached");
    else
        state(j,
              !replaced ? NOT_CHECKED
              : right   ? CONFIRMED
                        : REFUTED,
              what, replaced ? words(j, "in the files: %s", by) : find_kind(j, others, o)->why);
}

static void say_all(job *j, found *f)
{
    static const char *const sections[] = {"hypotheses", "theorems", "observations", "evidence",
                                           "paper"};
    const cJSON *const line = get(j, f->c->json, "headline");
    const double proven = get_number(j, line, "proven"), seen = get_number(j, line, "measured");
    const char *const what = words(j, "headline.measured %.9g", seen);
    if (!(proven >= 0) || !(seen >= 0)) fail(j, NOT_TRUE, "headline: a number below 0");
    f->why = NULL;
    say_bound(j, f, words(j, "headline.proven %.9g", proven), theorems, f->all[DIFFERENCE], proven);
    if (seen > proven)
        state(j, REFUTED, what, "it is above what is proven");
    else if (f->n < f->c->set.n)
        state(j, NOT_CHECKED, what, "it is about all inputs, and some were left out");
    else
        say_value(j, f, what, DIFFERENCE, f->all[DIFFERENCE], seen);
    for (size_t s = 0; s < 5; s++)
        for (const cJSON *o = get_list(j, f->c->json, sections[s])->child; o; o = o->next) {
            if (s == 1 || s == 2)
                say_claim(j, f, o, s == 1);
            else
                say_other(j, f, o);
        }
}

/* ---- all inputs ------------------------------------------------------------------------------ */

static unsigned what_is_wanted(job *j, const certificate *c)
{
    unsigned wanted = 0;
    for (const cJSON *o = get_list(j, c->json, "theorems")->child; o; o = o->next)
        wanted |= BIT(find_kind(j, theorems, o)->figure);
    for (const cJSON *o = get_list(j, c->json, "observations")->child; o; o = o->next)
        wanted |= BIT(find_kind(j, observations, o)->figure);
    if (wanted & BIT(ATTENTION)) wanted |= BIT(FFN);
    return wanted & BIT(KL_SUM) ? wanted | BIT(KL) : wanted;
}

typedef struct one_input {
    found *f;
    size_t i;
} one_input;

static void evaluate_one(job *j, void *with)
{
    const one_input *const it = with;
    found *const f = it->f;
    const model *const m = f->c->model;
    balls y[2], both;
    compare(j, &m[0], &m[1], &f->c->set.list[f->order[it->i]], f->wanted, f->each[it->i], y,
            f->bits);
    if (!(f->wanted & BIT(OUTPUTS))) return;
    both = f->y[it->i] = new_balls(j, y->n, 2 * y->d);
    for (size_t k = 0; k < 2 * y->n; k++)
        _arb_vec_set(both.v + k * y->d, row_of(y[k % 2], k / 2), (slong)y->d);
    release(j, NULL, both.v);
}

/* Inputs are shared by the threads; one input alone is shared row by row (evaluate.c). What is found
 * is joined in the order of the inputs. */
static void evaluate_all(job *j, found *f)
{
    const size_t count = count_figures(&f->c->model[0]);
    job *const own = take(j, f->n, sizeof *own);
    f->each = take(j, f->n, sizeof *f->each);
    f->y = take(j, f->n, sizeof *f->y);
    f->all = new_figures(j, count);
    for (size_t i = 0; i < f->n; i++) f->each[i] = new_figures(j, count);
#pragma omp parallel for schedule(dynamic) if (f->n > 1)
    for (size_t i = 0; i < f->n; i++) {
        one_input it = {f, i};
        own[i] = (job){.o = j->o, .link = "", .main = j};
        if (!attempt(&own[i], evaluate_one, &it) || !f->y[i].v) release(&own[i], NULL, NULL);
    }
    for (size_t i = 0; i < f->n; i++) adopt(j, &own[i]);
    for (size_t i = 0; i < f->n; i++) {
        if (own[i].t.code) fail(j, own[i].t.code, "%s", own[i].t.text);
        for (size_t p = 0; p < count; p++) join_figure(f->all, p, f->each[i][p]);
    }
}

/* A tensor that nothing reads may mean something that this program does not know. */
static void all_are_used(job *j, const model *m)
{
    for (size_t i = 0; i < m->ntensors; i++)
        if (!m->tensors[i].used && !same(m->tensors[i].name, "vocab"))
            fail(j, UNREADABLE, "tensor %s has no meaning here", m->tensors[i].name);
}

/* All inputs, or K of them by a seeded draw. */
void check_claims(job *j, const certificate *c)
{
    const bool draw = j->o->inputs && j->o->inputs < c->set.n;
    philox random = {.seed = j->o->seed};
    found f = {.c = c, .n = draw ? j->o->inputs : c->set.n, .bits = LEAST_BITS / 2, .open = true};
    const job before = *j;
    double work = 0;
    f.wanted = what_is_wanted(j, c);
    f.order = philox_order(j, &random, c->set.n, draw);
    for (size_t i = 0; i < 2 * f.n; i++)
        work += work_of(&c->model[i % 2], &c->set.list[f.order[i / 2]]);
    if (work > j->o->most_work) {
        state(j, NOT_CHECKED, "all claims", "too many multiply-adds");
        return;
    }
    while (f.open && f.bits < MOST_BITS) { /* what was said with fewer bits is taken back */
        f.bits *= 2;
        f.open = false;
        j->work_all += work;
        take_back(j, &before);
        evaluate_all(j, &f);
        for (int s = 0; s < 2; s++) all_are_used(j, &c->model[s]);
        say_all(j, &f);
    }
}
