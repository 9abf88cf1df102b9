/* show_cut.c - what every cut prints (show_cut.h): results first, then what is proven. */
#include "show_cut.h"

#include <math.h>
#include <string.h>

/* ---- figures -------------------------------------------------------------------------------- */

const char *show_bytes(char buf[32], uint64_t v)
{
    static const char *const unit[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double x = (double)v;
    size_t u = 0;
    while (x >= 999.95) x /= 1000, u++;
    snprintf(buf, 32, "%.4g %s", x, unit[u]);
    return buf;
}

const char *show_metric_name(const char *metric)
{
    return strcmp(metric, "nats") == 0  ? "loss"
           : strcmp(metric, "auc") == 0 ? "AUC"
           : strcmp(metric, "mse") == 0 ? "mean squared error"
                                        : metric;
}

/* ---- before and after ----------------------------------------------------------------------- */

/* A measured cosine, rounded down; beyond six decimals it is rounding of the f32 engine. */
static const char *seen_cosine(char buf[40], double cosine)
{
    if (1 - cosine > 1e-5) return out_cosine(buf, 1 - cosine);
    snprintf(buf, 40, "%.6f", floor(1e6 * cosine) / 1e6);
    return buf;
}

static void print_metric(const pare_reduction *r)
{
    static const char *const counted[] = {[PARE_TASK_NODES] = "test nodes",
                                          [PARE_TASK_TEXT] = "tokens",
                                          [PARE_TASK_SENTENCE] = "",
                                          [PARE_TASK_TOKENS] = "tokens",
                                          [PARE_TASK_VALUES] = "values"};
    const pare_evaluation *const b = &r->metric_before, *const a = &r->metric_after;
    const bool cosine = strcmp(b->metric, "cosine") == 0;
    const char *const what = cosine ? "" : counted[r->task];
    const size_t n = r->metric_inputs;
    char count[32], mean[40], least[40];
    out_part("%-13s%s%s ", "quality", cosine ? "mean " : "", show_metric_name(b->metric));
    if (cosine)
        out_part("%s to the original, worst %s", seen_cosine(mean, r->cosine.mean),
                 seen_cosine(least, r->cosine.least));
    else if (strcmp(b->metric, "accuracy") == 0)
        out_part("%.4g %% -> %.4g %%", 100 * b->value, 100 * a->value);
    else
        out_part("%.4g -> %.4g", b->value, a->value);
    if (strcmp(b->metric, "nats") == 0)
        out_part(" nats per token (perplexity %.4g -> %.4g)", b->scores.perplexity,
                 a->scores.perplexity);
    /* "on 165 tokens of 15 held-out inputs" */
    out_part(", on ");
    if (*what) out_part("%s %s", out_count(count, b->scores.counted), what);
    if (r->task != PARE_TASK_NODES || n != 1)
        out_part("%s%zu %sinput%s", *what ? " of " : "", n, r->held_out ? "held-out " : "",
                 n == 1 ? "" : "s");
    if (r->held_out && r->inputs.documents)
        out_part(" (%zu of %zu documents, drawn by the seed)", r->inputs.units, r->inputs.of);
    else if (r->held_out && r->inputs.units < r->inputs.of)
        out_part(" (of %zu, drawn by the seed)", r->inputs.of);
    putchar('\n');
}

/* What the outputs themselves do, where nothing says which of them are right, and where attention
 * was replaced. */
static void print_outputs(const pare_reduction *r)
{
    const pare_claim *const relative = pare_cert_find(&r->cert, PARE_RELATIVE_ERROR);
    const pare_claim *const row = pare_cert_find(&r->cert, PARE_ROW_ERROR);
    const pare_claim *const lost = pare_cert_find(&r->cert, PARE_LOST_FRACTION);
    const char *label = r->has_metric ? "" : "quality";
    const bool measured = r->error_inputs > 0;
    if (measured)
        out_row(label, "the outputs change by %.3g %% (root mean square), on %zu %sinput%s",
                100 * r->output_error, r->error_inputs, r->held_out ? "held-out " : "",
                r->error_inputs == 1 ? "" : "s");
    else if (relative && row)
        out_row(label,
                "the outputs change by %.3g %% (root mean square), a row by at most %.4g "
                "(Euclidean length)",
                100 * relative->value, row->value);
    /* Where feed-forward layers are gone as well the outputs do not say what attention did. */
    if (lost && r->shape_after.ffn == r->shape_before.ffn)
        out_row(measured || (relative && row) ? "" : label,
                "%.*g %% of attention's effect on the outputs is lost", lost->value < 1 ? 2 : 3,
                100 * lost->value);
}

/* ---- what is proven ------------------------------------------------------------------------- */

/* A bound that a model which always returns 0 meets as well. NaN: nothing to compare with. */
static bool is_vacuous(const pare_reduction *r, double bound)
{
    return isinf(bound) || bound > r->largest_output;
}

/* Without `part`, if it is there. */
static void leave_out(char *words, const char *part)
{
    char *const at = strstr(words, part);
    if (at) memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
}

/* Said behind a bound that is vacuous; other inputs than the given ones may have larger outputs. */
static const char *vacuous_words(char buf[64], const pare_reduction *r, double bound)
{
    buf[0] = '\0';
    if (!isinf(bound) && is_vacuous(r, bound))
        snprintf(buf, 64, "; vacuous: the outputs reach only %.4g", r->largest_output);
    return buf;
}

static void print_headline(const pare_reduction *r)
{
    const pare_cert *const cert = &r->cert;
    const bool usual = strcmp(cert->norm, PARE_NORM_HEADLINE) == 0;
    char bound[40];
    if (isinf(cert->proven)) {
        out_row("proven", "nothing: the bound is infinite (largest change measured: %.4g)",
                cert->measured);
    } else {
        pare_ub_format(bound, pare_ub_exact(cert->proven), 4);
        out_part("%-13s%s%s%s (measured: %.4g", "proven",
                 usual ? "no output moves by more than " : cert->norm, usual ? "" : " is at most ",
                 bound, cert->measured);
        if (usual && is_vacuous(r, cert->proven))
            out_line("); vacuous: no output exceeds %.4g", r->largest_output);
        else if (usual && !isnan(r->largest_output))
            out_line("; the outputs reach %.4g)", r->largest_output);
        else
            out_line(")");
    }
    /* The domain in the certificate's words, without what is empty here. */
    static const char data_file[] = "the data file";
    const pare_data_ref *const d = &cert->data;
    char words[256], part[64];
    snprintf(words, sizeof words, "%s", cert->domain);
    snprintf(part, sizeof part, ", its first %zu tokens at most", d->tokens);
    if (r->all_tokens) leave_out(words, part);
    snprintf(part, sizeof part, " (split %zu)", d->split);
    if (r->no_splits) leave_out(words, part);
    const char *const file = r->heldout ? strstr(words, data_file) : NULL;
    if (file)
        out_row("", "on %.*s%s%s", (int)(file - words), words, r->heldout,
                file + strlen(data_file));
    else
        out_row("", "on %s", words);
    if (r->of_inputs > 0)
        out_row("", "(%zu of the %zu %sinputs%s)", d->count, r->of_inputs,
                r->held_out ? "held-out " : "", r->prove_more ? "; --prove N for more" : "");
}

/* ---- in the user's terms: cosines and neighbors of embeddings, distributions, labels ---------- */

/* "all 128" or "120 of 128", of a claim about a share that may have changed. */
static const char *stay_words(char buf[48], const pare_claim *changed, size_t n)
{
    const size_t stay = n - out_rows_changed(changed, n);
    if (stay < n)
        snprintf(buf, 48, "%zu of %zu", stay, n);
    else
        snprintf(buf, 48, "all %zu", n);
    return buf;
}

static void print_cosines(const pare_cert *cert, const pare_claim *first)
{
    char all[40], part[160] = "", least[40];
    for (const pare_claim *t = first + 1; t < cert->claims + cert->nclaims; t++) {
        if (t->kind != PARE_COSINE_DISTANCE) continue;
        const size_t at = strlen(part);
        snprintf(part + at, sizeof part - at, "%s%.4g %% of them: %s", at ? ", " : "; ",
                 100 * (1 - t->p[1] / t->p[0]), out_cosine(least, t->value));
    }
    if (first->value >= 2)
        out_row("", "nothing about cosines: an output may be 0%s", part);
    else
        out_row("", "no cosine between old and new output falls below %s%s",
                out_cosine(all, first->value), part);
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i];
        char words[48];
        if (t->kind != PARE_NEIGHBORS_CHANGED) continue;
        if (t->p[0] == 1)
            out_row("", "the nearest neighbor stays the same for %s",
                    stay_words(words, t, (size_t)first->p[0]));
        else
            out_row("", "the %.0f nearest neighbors stay the same for %s", t->p[0],
                    stay_words(words, t, (size_t)first->p[0]));
    }
}

/* Which labels or tokens stay the largest, and how far the distribution moves. */
static void print_distribution(const pare_cert *cert, const pare_reduction *r)
{
    const pare_claim *const changed = pare_cert_find(cert, PARE_ROWS_CHANGED);
    const pare_claim *const mean = pare_cert_find(cert, PARE_KL_MEAN);
    const pare_claim *const most = pare_cert_find(cert, PARE_KL_MOST);
    const char *const row = r ? r->row_word : "output row";
    char a[48], b[40];
    if (changed && r && r->rows > 0)
        out_row("", "the %s stays the same for %s %s%s", r->label_word,
                stay_words(a, changed, r->rows), row, r->rows == 1 ? "" : "s");
    else if (changed && !r && most)
        out_row("", "the largest output stays the same for %.4g %% of the output rows",
                floor(1e4 * (1 - fmin(1, changed->value))) / 100);
    if (mean && most && cert->proven > 0 && !isinf(most->value))
        out_row("", "KL divergence to the original at most %s nats per %s, on average at most %s",
                out_bound(a, most), row, out_bound(b, mean));
}

void show_terms(const pare_cert *cert, const pare_reduction *r)
{
    const pare_claim *const cosine = pare_cert_find(cert, PARE_COSINE_DISTANCE);
    if (!cosine) /* the largest entry of an embedding means nothing */
        print_distribution(cert, r);
    else if (cert->proven > 0) /* equal outputs need no words */
        print_cosines(cert, cosine);
}

static void print_near(const cli *c, const pare_reduction *r)
{
    const pare_claim *const edits = pare_cert_find(&r->cert, PARE_EDITS_OUTPUTS);
    const pare_claim *const share = pare_cert_find(&r->cert, PARE_EDITS_ROWS_CHANGED);
    char bound[40], vacuous[64];
    if (edits && share) {
        out_row("edits", "no output moves by more than %s%s", out_bound(bound, edits),
                vacuous_words(vacuous, r, edits->value));
        out_row("", "on %s", edits->domain);
        out_row("", "the class stays the same for %.2f %% of the nodes that edits reach",
                floor(1e4 * (1 - share->value)) / 1e2);
    }
    const char *label = "nearby";
    for (size_t i = 0; i < r->cert.nclaims; i++) {
        const pare_claim *const t = &r->cert.claims[i];
        if (t->kind == PARE_BALL_OUTPUTS) {
            /* The sentence of the claim without its last part: "within radius ...". */
            const char *const words = pare_claim_sentence(c->arena, t);
            const char *last = words;
            for (const char *at = words; at && (at = strstr(at, ": ")); at += 2) last = at;
            out_row(label, "%.*s: no output moves by more than %s%s",
                    words ? (int)(last - words) : 0, words ? words : "", out_bound(bound, t),
                    vacuous_words(vacuous, r, t->value));
        } else if (t->kind == PARE_BALL_ROWS_CHANGED || t->kind == PARE_BALL_SCORE) {
            const char *const words = out_claim_words(c->arena, t);
            out_row(label, "%s", words ? words : "");
        } else {
            continue;
        }
        label = "";
    }
}

/* Bounds for all inputs of a kind: those that were asked for, and those that say something. */
static void print_everywhere(const cli *c, const pare_reduction *r)
{
    const char *label = "all inputs";
    for (size_t i = 0; i < r->cert.nclaims; i++) {
        const pare_claim *const t = &r->cert.claims[i];
        const bool outputs = t->kind == PARE_APRIORI_OUTPUTS || t->kind == PARE_DIAMETER_OUTPUTS;
        const bool asked = t->kind == PARE_DIAMETER_OUTPUTS || t->kind == PARE_DIAMETER_SCORE ||
                           t->kind == PARE_DIAMETER_RANK_COLLAPSE ||
                           t->kind == PARE_ONE_LAYER_LEAST;
        const bool free = t->kind == PARE_APRIORI_OUTPUTS || t->kind == PARE_APRIORI_SCORE;
        if (!asked && !(free && !is_vacuous(r, t->value))) continue;
        char bound[40], empty[64];
        if (outputs) {
            out_row(label, "no output moves by more than %s%s", out_bound(bound, t),
                    vacuous_words(empty, r, t->value));
        } else {
            const char *const words = out_claim_words(c->arena, t);
            out_row(label, "%s", words ? words : "");
        }
        out_row("", "on %s", t->domain);
        label = "";
    }
}

/* The other errors with as many left out; true if there are any. */
static bool print_new_terms(const pare_cert *cert, double left_out)
{
    bool any = false;
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i];
        char bound[40], p[40];
        if (t->p[1] != left_out) continue;
        if (t->kind == PARE_NEW_INPUT_COSINE_DISTANCE)
            out_row("", "no cosine falls below %s, with probability %s",
                    out_cosine(bound, t->value), out_probability(p, t->probability));
        else if (t->kind == PARE_NEW_INPUT_KL)
            out_row("", "its mean KL divergence is at most %s nats, with probability %s",
                    out_bound(bound, t), out_probability(p, t->probability));
        else
            continue;
        any = true;
    }
    return any;
}

/* Statements about inputs that are not there yet. */
static void print_new_inputs(const pare_cert *cert)
{
    const char *label = "new input";
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i];
        const size_t left_out = (size_t)t->p[1];
        char bound[40], p[40], left[64] = "";
        if (t->kind != PARE_NEW_INPUT_OUTPUTS && t->kind != PARE_NEW_INPUTS_SHARE) continue;
        if (left_out)
            snprintf(left, sizeof left, " (%zu larger error%s left out)", left_out,
                     left_out == 1 ? "" : "s");
        out_bound(bound, t);
        out_probability(p, t->probability);
        if (t->kind == PARE_NEW_INPUTS_SHARE) {
            const bool more = print_new_terms(cert, t->p[1]);
            out_row("", "at most %.1f %% of new inputs exceed that (confidence %.4g %%%s)",
                    fmin(100, ceil(1e3 * t->value) / 10), 100 * t->probability,
                    more ? ", each of these by itself" : "");
            continue;
        }
        out_row(label, "no output moves by more than %s%s, with probability %s", bound, left, p);
        if (*label) {
            /* What follows it is the hypothesis, which has a row of its own. */
            const char *const end = strstr(t->domain, ", which neither");
            out_row("", "on %.*s", (int)(end ? (size_t)(end - t->domain) : strlen(t->domain)),
                    t->domain);
            out_row("", "provided that those were drawn independently and the model was not "
                        "trained on them");
        }
        label = "";
    }
}

void show_results(const cli *c, const pare_reduction *r)
{
    const facts *const before = &r->before, *const after = &r->after;
    char b[40], a[32], p[32], q[32], times[32] = "";
    out_part("%-13s%s -> %s", "size", show_bytes(b, before->file_bytes),
             show_bytes(a, after->file_bytes));
    if (before->file_bytes > 0)
        out_part(" (%.3g %%)", 100 * (double)after->file_bytes / (double)before->file_bytes);
    if (before->size.parameters == after->size.parameters)
        out_line(", %s parameters as before", out_count(p, before->size.parameters));
    else
        out_line(", %s -> %s parameters", out_count(p, before->size.parameters),
                 out_count(q, after->size.parameters));
    if (r->ms_after > 0) snprintf(times, sizeof times, "%.2gx, ", r->ms_before / r->ms_after);
    out_row("speed", "%.3g -> %.3g ms for one input of %zu %s%s (%s%zu thread%s)", r->ms_before,
            r->ms_after, before->tokens, strcmp(r->row_word, "node") == 0 ? "node" : "token",
            before->tokens == 1 ? "" : "s", times, c->threads, c->threads == 1 ? "" : "s");
    if (r->has_metric) print_metric(r);
    print_outputs(r);
    print_headline(r);
    show_terms(&r->cert, r);
    const pare_claim *const high = pare_cert_find(&r->cert, PARE_AUC_MOST);
    const pare_claim *const low = pare_cert_find(&r->cert, PARE_AUC_LEAST);
    if (low && high && (c->verbose || low->value > 0 || high->value < 1))
        out_row("", "the AUC of the smaller model is between %.5f and %.5f",
                floor(1e5 * low->value) / 1e5, fmin(1, ceil(1e5 * high->value) / 1e5));
    /* The proof is about real numbers; what f32 adds is measured, and proven where that says
     * something. */
    const pare_claim *const seen = pare_cert_find(&r->cert, PARE_ENGINE_DISTANCE);
    const pare_claim *const bound = pare_cert_find(&r->cert, PARE_ENGINE_ROUNDING);
    if (bound && bound->value <= fmax(r->cert.proven, 1e-3 * r->largest_output))
        out_row("", "in exact arithmetic; rounding in f32 adds at most %s (proven)",
                out_bound(b, bound));
    else if (seen)
        out_row("", "in exact arithmetic; rounding in f32 adds about %.1g (measured, not proven)",
                seen->value);
    if (c->verbose && isinf(r->cert.f64_radius) && !isinf(r->cert.proven))
        out_row("", "proven in double-double alone: in f64 nothing could be proven of these "
                    "outputs, so that "
                    "the self-check by the f64 pass cannot fail");
    print_near(c, r);
    print_everywhere(c, r);
    print_new_inputs(&r->cert);
}

/* ---- what was cut --------------------------------------------------------------------------- */

/* "192 -> 120 to 184", where it changes and places differ. */
static void range_part(bool *begun, const char *name, const pare_width_range *before,
                       const pare_width_range *after)
{
    const bool same_mean = before->sum * after->n == after->sum * before->n;
    if (before->n == 0 || after->n == 0 ||
        (same_mean && before->least == after->least && before->most == after->most))
        return;
    out_part("%s%s", *begun ? ", " : "             ", name);
    for (const pare_width_range *r = before; r; r = r == before ? after : NULL) {
        out_part(r == before ? " %zu" : " -> %zu", r->least);
        if (r->least != r->most) out_part(" to %zu", r->most);
    }
    *begun = true;
}

void show_shapes(const pare_reduction *r, const char *words)
{
    const pare_model_shape *const b = &r->shape_before, *const a = &r->shape_after;
    const struct {
        const char *name;
        uint64_t before, after;
    } part[] = {{"attention", b->attention, a->attention},
                {"feed-forward", b->ffn, a->ffn},
                {"embedding and head", b->rest, a->rest}};
    bool begun = false;
    out_row("cut", "%s", words);
    range_part(&begun, "residual stream", &b->stream, &a->stream);
    range_part(&begun, "queries and keys of a head", &b->qk, &a->qk);
    range_part(&begun, "values of a head", &b->values, &a->values);
    range_part(&begun, "hidden units", &b->hidden, &a->hidden);
    if (begun) putchar('\n');
    begun = false;
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) { /* one of them may grow */
        if (part[i].before == part[i].after || part[i].before == 0) continue;
        out_part("%s%s %+.3g %%", begun ? ", " : "             parameters: ", part[i].name,
                 100 * ((double)part[i].after / (double)part[i].before - 1));
        begun = true;
    }
    if (begun) putchar('\n');
}

/* ---- the end -------------------------------------------------------------------------------- */

void show_end(const cli *c, const pare_reduction *r)
{
    if (c->verbose) {
        out_tiers(c->arena, &r->cert);
        out_before_after(&r->before, &r->after, r->ms_before, r->ms_after);
        if (r->has_attention_ms) out_ms("ms attention", r->attn_before, r->attn_after);
        if (r->has_metric)
            out_row(r->metric_before.metric, "%18.6g %18.6g", r->metric_before.value,
                    r->metric_after.value);
    }
    const size_t n = strlen(r->to);
    const bool beside =
        strncmp(r->cert_path, r->to, n) == 0 && (strcmp(r->cert_path + n, ".cert.json") == 0 ||
                                                 strcmp(r->cert_path + n, "/pare.cert.json") == 0);
    out_row("model", "%s", r->to);
    out_row("certificate", "%s (check it: pare verify %s)", r->cert_path,
            beside ? r->to : r->cert_path);
}
