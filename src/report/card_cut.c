/* card_cut.c - the card of one cut: what it saves, what it proves, what was measured (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <string.h>

/* ---- before and after ------------------------------------------------------------------------ */

static before_after run_figure(page *p, const item *it, const char *key)
{
    return (before_after){item_number(p, item_object(p, it->json, "input"), key),
                          item_number(p, item_object(p, it->json, "output"), key), false};
}

before_after parameters_of(page *p, const item *it)
{
    return it->counted
               ? (before_after){(double)it->before.parameters, (double)it->after.parameters, true}
               : run_figure(p, it, "parameters");
}

before_after bytes_of(page *p, const item *it)
{
    return it->counted ? (before_after){(double)it->before.bytes, (double)it->after.bytes, true}
                       : run_figure(p, it, "bytes");
}

before_after file_bytes_of(page *p, const item *it)
{
    if (it->counted) return (before_after){it->file_before, it->file_after, true};
    const before_after v = run_figure(p, it, "file_bytes");
    return isnan(v.before) || isnan(v.after) ? bytes_of(p, it) : v;
}

double inputs_of(const item *it)
{
    return it->cert && it->cert->data.count > 0 ? (double)it->cert->data.count : NAN;
}

/* "before 4,000 (4x smaller)" */
static void change_fact(page *p, const char *label, const char *before, const char *after,
                        double ratio, const char *less, const char *more, bool verified)
{
    const char *how = "";
    if (isfinite(ratio) && ratio > 1) how = page_format(p, " (%.3gx %s)", ratio, less);
    if (ratio > 0 && ratio < 1) how = page_format(p, " (%.3gx %s)", 1 / ratio, more);
    /* A ratio that rounds to 1. */
    if (fmax(ratio, 1 / ratio) < 1.005) how = " (the same)";
    page_fact(p, label, after, NULL, page_format(p, "before %s%s", before, how), verified);
}

static void count_fact(page *p, const char *label, before_after v)
{
    number b, a;
    if (isnan(v.before) || isnan(v.after)) return;
    change_fact(p, label, show_count(b, v.before), show_count(a, v.after), v.before / v.after,
                "smaller", "larger", v.verified);
}

static void measured_fact(page *p, const cJSON *from, const char *label, const char *unit,
                          bool timed)
{
    number b, a;
    const double before = item_number(p, from, "before"), after = item_number(p, from, "after");
    if (isnan(before) || isnan(after)) return;
    show_value(b, before);
    show_value(a, after);
    strncat(a, unit, sizeof a - strlen(a) - 1);
    change_fact(p, label, b, a, timed ? before / after : NAN, "faster", "slower", false);
}

/* "between old and new output; at least 0.98 for 95 % of the inputs, 0.99 for 50 %" */
static const char *cosine_words(page *p, const pare_cert *cert, const pare_claim *all)
{
    const char *words = "between old and new output", *between = "; at least ";
    for (const pare_claim *t = all + 1; t < cert->claims + cert->nclaims; t++) {
        if (t->kind != PARE_COSINE_DISTANCE) continue;
        words = page_format(p, "%s%s%.6g for %.4g %% of the inputs", words, between,
                            floor(1e6 * (1 - t->value)) / 1e6, 100 * (1 - t->p[1] / t->p[0]));
        between = ", ";
    }
    return words;
}

static void put_savings(page *p, const item *it)
{
    const cJSON *metric = item_object(p, it->json, "metric");
    const char *name = item_string(p, metric, "name");
    const bool ticket = strcmp(cut_kind_of(it)->prefix, "ticket") == 0;
    const bool verified = it->holds == PARE_TRUE;
    char buf[40];
    page_put(p, "<div class=\"facts\">\n");
    count_fact(p, "parameters", parameters_of(p, it));
    count_fact(p, "file, bytes", file_bytes_of(p, it));
    /* A file of masks is smaller than what they become. */
    count_fact(p, ticket ? "weights after unpacking, bytes" : "weights, bytes", bytes_of(p, it));
    count_fact(p, "multiply-adds", run_figure(p, it, "macs"));
    measured_fact(p, item_object(p, it->json, "time_ms"), "time of one pass", " ms", true);
    if (name && strcmp(name, "cosine") != 0) measured_fact(p, metric, name, "", false);
    const cJSON *const cosine = item_object(p, it->json, "cosine");
    const double mean = item_number(p, cosine, "mean"), worst = item_number(p, cosine, "least");
    if (isfinite(mean) && isfinite(worst))
        page_fact(p, "mean cosine", page_format(p, "%.6g", floor(1e6 * mean) / 1e6), NULL,
                  page_format(p, "to the original; worst %.6g", floor(1e6 * worst) / 1e6), false);
    /* Rows whose largest entry may have changed: the rest keeps its label for certain. */
    const pare_claim *const changed = pare_cert_find(it->cert, PARE_ROWS_CHANGED);
    const pare_claim *const distance = pare_cert_find(it->cert, PARE_COSINE_DISTANCE);
    const pare_claim *const most = pare_cert_find(it->cert, PARE_KL_MOST);
    const pare_claim *const nearest = pare_cert_find(it->cert, PARE_NEIGHBORS_CHANGED);
    const pare_claim *const kl = pare_cert_find(it->cert, PARE_KL_MEAN);
    if (distance)
        page_fact(p, verified ? "least cosine, proven" : "least cosine, claimed",
                  page_format(p, "%.6g", floor(1e6 * (1 - distance->value)) / 1e6),
                  verified ? "good" : NULL, cosine_words(p, it->cert, distance), verified);
    const double inputs = distance ? distance->p[0] : 0;
    if (nearest && distance)
        page_fact(
            p, verified ? "nearest neighbors proven to stay" : "nearest neighbors claimed to stay",
            page_format(p, "%.0f of %.0f", inputs - floor(inputs * nearest->value + 1e-6), inputs),
            verified ? "good" : NULL, "inputs", verified);
    if (kl && isfinite(kl->value))
        page_fact(p, verified ? "mean KL divergence, proven" : "mean KL divergence, claimed",
                  page_format(p, "%s nats", pare_ub_format(buf, pare_ub_exact(kl->value), 3)),
                  verified ? "good" : NULL,
                  most ? page_format(p, "the largest of an output row: %s",
                                     pare_ub_format(buf, pare_ub_exact(most->value), 3))
                       : "",
                  verified);
    if (changed && !distance) /* the largest entry of an embedding means nothing */
        page_fact(p, verified ? "labels proven unchanged" : "labels claimed to be unchanged",
                  page_format(p, "%.4g %%", floor(1e4 * (1 - fmin(1, changed->value))) / 100),
                  verified ? "good" : NULL, "of the output rows", verified);
    page_put(p, "</div>\n");
    if (it->json)
        page_put(p,
                 "<p class=\"small dim\">%s multiply-adds, times and the metric are what "
                 "<code>%s</code> reports. No certificate covers them.</p>\n",
                 it->counted ? "The" : "Sizes,", it->from);
    if (it->run_refused) page_tag(p, "p", "warn small", it->run_refused);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* As in `pare width` and the other cuts: a model that always returns 0 meets such a bound, too. */
bool is_vacuous(const item *it, double bound)
{
    return isinf(bound) || bound > it->largest; /* false where that is nan */
}

static bar bar_of(page *p, const item *it, const pare_claim *t)
{
    const bool seen = t->kind == PARE_ENGINE_DISTANCE;
    const char *const label = claim_sentence(p, t);
    return (bar){
        pare_kind_is_drawn(t->kind)
            ? page_format(p, "%s (probability %.6f)", label, floor(1e6 * t->probability) / 1e6)
            : label,
        seen ? "on the same inputs" : t->domain,
        t->value,
        seen ? 7 : 6,
        .measured = seen,
        .vacuous = !seen && is_vacuous(it, t->value),
        .claimed = it->holds != PARE_TRUE,
        .none = seen ? NULL : page_format(p, "No bound holds for %s (inf).", t->domain),
    };
}

static void put_bounds(page *p, const item *it)
{
    const pare_cert *const c = it->cert;
    const bool claimed = it->holds != PARE_TRUE;
    bar *const t = page_alloc(p, 2 + c->nclaims, sizeof *t);
    bar *const vacuous = page_alloc(p, 1 + c->nclaims, sizeof *vacuous);
    size_t n = 0, nvacuous = 0;
    if (!t || !vacuous) return;
    const bar proven = {claimed ? "claimed bound" : "proven bound",
                        c->domain,
                        c->proven,
                        0,
                        .vacuous = is_vacuous(it, c->proven),
                        .claimed = claimed,
                        .none = page_format(p, "No bound holds for %s (inf).", c->domain)};
    t[n++] = (bar){claimed ? "measured, says the certificate" : "measured",
                   c->domain,
                   c->measured,
                   1,
                   .measured = true,
                   .claimed = claimed};
    t[n++] = proven;
    for (size_t i = 0; i < c->nclaims; i++) {
        if (!claim_is_bar(c, &c->claims[i])) continue;
        const bar one = bar_of(p, it, &c->claims[i]);
        if (one.vacuous)
            vacuous[nvacuous++] = one;
        else
            t[n++] = one;
    }
    page_put(p, "<h3>How far the outputs can move%s</h3>\n",
             claimed ? ", according to the certificate" : "");
    plot_bars(p, t, n);
    page_put(p,
             "<p class=\"small dim\">The bars show the %s, on a logarithmic scale. Domain of the "
             "first two: %s.%s</p>\n",
             c->norm, c->domain,
             proven.vacuous && !isinf(c->proven)
                 ? " The hatched bound is vacuous: it is larger than the largest output."
                 : "");
    if (nvacuous > 0) { /* apart from those that say something */
        page_fold(
            p, nvacuous == 1 ? "One vacuous bound" : page_format(p, "%zu vacuous bounds", nvacuous),
            "true, but too large to say anything");
        plot_bars(p, vacuous, nvacuous);
        page_fold_end(p);
    }
}

/* ---- the card -------------------------------------------------------------------------------- */

const char *verdict_word(const item *it)
{
    static const char *const word[] = {"refuted", "verified", "not verified"};
    return word[it->holds];
}

const char *verdict_class(const item *it)
{
    static const char *const cls[] = {"chip bad", "chip good", "chip dim"};
    return cls[it->holds];
}

void page_verdict(page *p, const item *it)
{
    page_put(p, "<p class=\"small dim\">");
    if (it->holds == PARE_FALSE)
        page_text(p, it->why);
    else if (it->holds == PARE_TRUE)
        page_put(p,
                 "Verified by this page: every theorem was proven again from the files. To check "
                 "it yourself: <code>pare verify %s</code>",
                 it->path);
    else
        page_put(p,
                 "Not verified by this page: the figures are what the certificate claims. To check "
                 "them: <code>pare verify %s</code>, or <code>pare report --verify</code>",
                 it->path);
    page_put(p, "</p>\n");
}

void page_refuted(page *p, const item *it, const char *norm, const char *domain, double claimed)
{
    number v;
    page_card(p,
              &(card){it->id, it->number, cut_kind_of(it)->word,
                      page_format(p, "REFUTED: %s", it->path), verdict_class(it), verdict_word(it),
                      "This certificate is false. None of its other figures is shown.", true});
    page_verdict(p, it);
    page_put(p,
             "<p class=\"small\">It claims that the %s is at most %s, on %s. A certificate is true "
             "as a whole or not at all.</p>\n",
             norm, show_value(v, claimed), domain);
    page_source(p, it->path, NULL, NULL);
    page_card_end(p);
}

/* "13.2 kB in place of 348 kB (3.8 %). No output entry differs from the original's by more than
 * 0.553, on 8 inputs." */
static const char *sentence(page *p, const item *it)
{
    const pare_cert *const c = it->cert;
    const before_after size = file_bytes_of(p, it);
    const double left = 100 * size.after / size.before;
    number before, after, bound;
    const char *const saves = left >= 0 ? page_format(p, "%s in place of %s (%.3g %%). ",
                                                      show_file_size(after, size.after),
                                                      show_file_size(before, size.before), left)
                                        : "";
    const char *const who = it->holds == PARE_TRUE ? "Proven" : "Claimed, not verified";
    if (isinf(c->proven)) return page_format(p, "%sNo bound holds for %s (inf).", saves, c->domain);
    if (strcmp(c->norm, OUTPUT_ENTRIES) == 0)
        return page_format(p,
                           "%s%s: no output entry differs from the original's by more than %s, on "
                           "%s.",
                           saves, who, show_bound(bound, c->proven), c->domain);
    return page_format(p, "%s%s: the %s is at most %s, on %s.", saves, who, c->norm,
                       show_bound(bound, c->proven), c->domain);
}

void card_cut(page *p, const item *it)
{
    const pare_cert *const c = it->cert;
    if (it->holds == PARE_FALSE) {
        page_refuted(p, it, c->norm, c->domain, c->proven);
        return;
    }
    page_card(p, &(card){it->id, it->number, cut_kind_of(it)->word, c->output.path,
                         verdict_class(it), verdict_word(it), sentence(p, it), false});
    page_put(p,
             "<p class=\"small dim\">Method <code>%s</code>, from <code>%s</code> to "
             "<code>%s</code>.</p>\n",
             c->reduction, c->input.path, c->output.path);
    page_verdict(p, it);
    put_savings(p, it);
    put_bounds(p, it);
    claim_tables(p, it);
    if (c->nchain > 0) {
        number v;
        page_put(p, "<h3>The chain</h3><ol>\n");
        for (size_t i = 0; i < c->nchain; i++)
            page_put(p, "<li><b>%s</b>: %s to %s, %s %s</li>\n", c->chain[i]->reduction,
                     c->chain[i]->input.path, c->chain[i]->output.path,
                     it->holds == PARE_TRUE ? "proven" : "claimed",
                     show_bound(v, c->chain[i]->proven));
        page_put(p, "</ol>\n");
    }
    page_source(p, it->path, item_string(p, it->json, "line"), it->from);
    page_card_end(p);
}
