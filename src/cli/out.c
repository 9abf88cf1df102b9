/* out.c - prints results: lines of text, tables of fields, or one JSON object (out.h). */
#include "out.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LABEL_WIDTH 13
#define TIER_WIDTH  38
/* What out_text needs beyond the text: one escaped byte and the end. */
#define OUT_TEXT_SPARE 6

/* ---- lines --------------------------------------------------------------------------------- */

void out_escaped(FILE *to, const char *fmt, va_list args)
{
    char *text = NULL;
    const int n = vasprintf(&text, fmt, args);
    if (n < 0) return;
    const size_t most = 4 * (size_t)n + OUT_TEXT_SPARE;
    char *const shown = malloc(most);
    if (shown) fputs(out_text(shown, most, text, (size_t)n), to);
    free(shown);
    free(text);
}

void out_part(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    out_escaped(stdout, fmt, args);
    va_end(args);
}

void out_line(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    out_escaped(stdout, fmt, args);
    va_end(args);
    putchar('\n');
}

void out_error(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    out_escaped(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

void out_lines(const char *text)
{
    while (*text) {
        const size_t n = strcspn(text, "\n");
        out_line("%.*s", (int)n, text);
        text += n + (text[n] != '\0');
    }
}

void out_row(const char *label, const char *fmt, ...)
{
    va_list args;
    out_part("%-*s", LABEL_WIDTH, label);
    va_start(args, fmt);
    out_escaped(stdout, fmt, args);
    va_end(args);
    putchar('\n');
}

void out_verdict(const char *label, bool good, const char *word, const char *fmt, ...)
{
    const char *const no = getenv("NO_COLOR"), *const term = getenv("TERM");
    const bool color =
        isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
    va_list args;
    out_part("%-*s", LABEL_WIDTH, label);
    if (color) fputs(good ? "\033[32m" : "\033[31m", stdout);
    out_part("%s", word);
    if (color) fputs("\033[0m", stdout);
    va_start(args, fmt);
    out_escaped(stdout, fmt, args);
    va_end(args);
    putchar('\n');
}

const char *out_count(char buf[32], uint64_t v)
{
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)v);
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

const char *out_bytes(char buf[64], uint64_t v)
{
    static const char *const unit[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    char count[32];
    double x = (double)v;
    size_t u = 0;
    while (x >= 999.5) x /= 1000, u++;
    if (u == 0)
        snprintf(buf, 64, "%s", out_count(count, v));
    else
        snprintf(buf, 64, "%s (%.3g %s)", out_count(count, v), x, unit[u]);
    return buf;
}

const char *out_text(char *buf, size_t capacity, const char *text, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0, n; i < bytes && at + OUT_TEXT_SPARE <= capacity; i += n) {
        const uint32_t c = pare_utf8_next(text + i, bytes - i, &n);
        if (c == PARE_NO_CHAR || pare_char_is_hidden(c)) {
            at += (size_t)snprintf(buf + at, capacity - at, "\\x%02x", (unsigned char)text[i]);
            n = 1;
            continue;
        }
        memcpy(buf + at, text + i, n);
        at += n;
    }
    buf[at] = '\0';
    return buf;
}

static void pair_row(const char *label, uint64_t before, uint64_t after)
{
    char b[32], a[32];
    out_row(label, "%18s %18s", out_count(b, before), out_count(a, after));
}

/* The best of both, and how many times as fast it is. */
void out_ms(const char *label, double before, double after)
{
    if (after > 0)
        out_row(label, "%18.3f %18.3f  (%.1f x)", before, after, before / after);
    else
        out_row(label, "%18.3f %18.3f", before, after);
}

void out_before_after(const facts *before, const facts *after, double ms_before, double ms_after)
{
    out_row("", "%18s %18s", "before", "after");
    pair_row("parameters", before->size.parameters, after->size.parameters);
    pair_row("bytes", before->file_bytes, after->file_bytes);
    pair_row("MACs", before->size.macs, after->size.macs);
    out_ms("ms", ms_before, ms_after);
}

/* ---- certificates -------------------------------------------------------------------------- */

const char *out_probability(char buf[40], double p)
{
    double shown = floor(1e6 * p) / 1e6;
    snprintf(buf, 40, "%.6f", shown);
    if (strtod(buf, NULL) > p) snprintf(buf, 40, "%.6f", shown - 1e-6);
    for (size_t n = strlen(buf); n > 3 && buf[n - 1] == '0'; n--) buf[n - 1] = '\0';
    return buf;
}

const char *out_bound(char buf[40], const pare_claim *c)
{
    return pare_kinds[c->kind].lower ? pare_lb_format(buf, pare_lb_exact(c->value), 4)
                                     : pare_ub_format(buf, pare_ub_exact(c->value), 4);
}

/* As many decimals as show the first two digits of 1 - cosine; the last one is rounded down. */
const char *out_cosine(char buf[40], double distance)
{
    int decimals = 4;
    while (decimals < 15 && distance * pow(10, decimals) < 10) decimals++;
    const double unit = pow(10, decimals);
    if (distance > 0 && distance * unit < 1) { /* nearer to 1 than a double can say */
        char small[40];
        snprintf(buf, 40, "1 - %.32s", pare_ub_format(small, pare_ub_exact(distance), 2));
    } else {
        const double lost = ceil(distance * unit * (1 + 0x1p-50));
        snprintf(buf, 40, "%.*f", distance > 0 ? decimals : 0, (unit - lost) / unit);
    }
    return buf;
}

static void tier_bound(const char *label, double v)
{
    char buf[40];
    out_line("  %-*s%s%s", TIER_WIDTH, label, pare_ub_format(buf, pare_ub_exact(v), 4),
             isinf(v) ? "  (no bound holds)" : "");
}

const char *const out_section_words[PARE_SECTIONS] = {"hypothesis", "theorem", "observation",
                                                      "evidence", "paper"};
static const char *const truth_words[] = {"fails", "holds", "undecided"};

const char *out_claim_words(pare_arena *a, const pare_claim *c)
{
    const pare_kind_row *const row = &pare_kinds[c->kind];
    const char *const sentence = pare_claim_sentence(a, c);
    char bound[40], p[40], value[64] = "", limit[64] = "";
    if (!sentence) return "";
    if (row->section == PARE_THEOREM) {
        const char *const side = row->lower ? "at least" : "at most";
        if (!pare_kind_is_drawn(c->kind))
            return pare_sprintf(a, "%s: %s %s", sentence, side, out_bound(bound, c));
        return pare_sprintf(a, "%s: %s %s, with probability %s", sentence, side,
                            out_bound(bound, c), out_probability(p, c->probability));
    }
    if (row->has_value) snprintf(value, sizeof value, "%.4g", c->value);
    if (row->has_limit) snprintf(limit, sizeof limit, "%slimit %.4g", *value ? ", " : "", c->limit);
    if (row->section == PARE_HYPOTHESIS)
        return pare_sprintf(a, "%s: %s%s%s%s", sentence, truth_words[c->holds],
                            *value || *limit ? ", value " : "", value, limit);
    return pare_sprintf(a, "%s: %s%s%s", sentence, value, limit,
                        row->section == PARE_PAPER ? " (not sound)" : "");
}

void out_tiers(pare_arena *a, const pare_cert *cert)
{
    const double apriori = pare_cert_apriori(cert);
    const pare_claim *const engine = pare_cert_find(cert, PARE_ENGINE_DISTANCE);
    const pare_claim *const rounding = pare_cert_find(cert, PARE_ENGINE_ROUNDING);
    out_row("difference", "%s", cert->norm);
    tier_bound("a priori (all inputs of the domain)", apriori);
    tier_bound("proven (these weights, these inputs)", cert->proven);
    out_line("  %-*s%.4g", TIER_WIDTH, "measured (not a bound)", cert->measured);
    if (apriori < cert->proven) puts("  the a-priori bound is the tighter one here");
    if (engine)
        out_line("  %-*s%.4g", TIER_WIDTH, "rounding of the f32 engine, measured", engine->value);
    if (rounding) tier_bound("rounding of the f32 engine, proven", rounding->value);
    out_row("domain", "%s", cert->domain);
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const c = &cert->claims[i];
        const char *const words = out_claim_words(a, c);
        out_row("", "%-11s %s", out_section_words[pare_kinds[c->kind].section], words ? words : "");
    }
}

size_t out_rows(const pare_model *m, const pare_inputs *set)
{
    size_t rows = 0;
    for (size_t i = 0; i < set->n; i++) rows += pare_output_rows(m, &set->in[i]);
    return rows;
}

/* A share of at most t is a whole number of rows: at most floor(t rows). */
size_t out_rows_changed(const pare_claim *t, size_t rows)
{
    const double most = floor(t->value * (double)rows + 1e-6);
    return most < (double)rows ? (size_t)most : rows;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

cJSON *out_json_begin(const cli *c)
{
    cJSON *root = cJSON_CreateObject();
    if (root && pare_json_add_string(root, "command", c->spec.command) &&
        pare_json_add_u64(root, "seed", c->seed) && pare_json_add_size(root, "threads", c->threads))
        return root;
    cJSON_Delete(root);
    return NULL;
}

/* JSON escapes the control characters of ASCII but for DEL. Those of Latin-1 and what reorders a
 * line are escaped here; they stand only in strings. */
static void print_escaped_json(const char *text)
{
    const size_t bytes = strlen(text);
    for (size_t i = 0, n; i < bytes; i += n) {
        const uint32_t c = pare_utf8_next(text + i, bytes - i, &n);
        if (c != PARE_NO_CHAR && pare_char_is_hidden(c))
            printf("\\u%04x", (unsigned)c);
        else
            fwrite(text + i, 1, n, stdout);
    }
    putchar('\n');
}

pare_status out_json(cli *c, cJSON *root, bool complete)
{
    char *text = NULL;
    pare_status st = root && complete ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = pare_json_print(&text, NULL, c->arena, root, 0, &c->err);
    if (!st) print_escaped_json(text);
    if (!st) c->json_printed = true;
    cJSON_Delete(root);
    return st;
}

void out_json_object(const cJSON *root)
{
    pare_arena *const a = pare_arena_new();
    char *text = NULL;
    if (a && pare_json_print(&text, NULL, a, root, 0, NULL) == PARE_OK) print_escaped_json(text);
    pare_arena_free(a);
}

pare_status out_json_file(cli *c, cJSON *root, bool complete, const char *path)
{
    char *text = NULL;
    pare_out *out = NULL;
    pare_status st = root && complete ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = pare_json_print(&text, NULL, c->arena, root, 2, &c->err);
    cJSON_Delete(root);
    if (!st) st = pare_out_open(&out, path, c->force, &c->err);
    if (st) return st;
    st = pare_out_printf(out, &c->err, "%s\n", text);
    if (!st) return pare_out_commit(out, &c->err);
    pare_out_abort(out);
    return st;
}

bool out_json_facts(cJSON *to, const char *key, const facts *f)
{
    return pare_json_add_record(to, key,
                                "path:s sha256:s parameters:z bytes:z macs:z tokens:z file_bytes:z",
                                f->path, *f->sha256 ? f->sha256 : NULL, f->size.parameters,
                                f->size.bytes, f->size.macs, f->tokens, f->file_bytes);
}

bool out_json_text(cJSON *to, const char *key, const char *text)
{
    cJSON *item = NULL;
    if (pare_json_parse(&item, text, strlen(text), NULL) != PARE_OK) return false;
    const bool ok = cJSON_AddItemToObject(to, key, item);
    if (!ok) cJSON_Delete(item);
    return ok;
}

/* What is proven in the user's terms, where it is. */
static bool add_terms(cJSON *to, const pare_cert *cert)
{
    static const struct {
        const char *key;
        pare_kind kind;
        double of; /* cosines: one of so many rows is left out; neighbors: how many */
    } terms[] = {{"rows_changed", PARE_ROWS_CHANGED, 0},
                 {"cosine_distance", PARE_COSINE_DISTANCE, INFINITY},
                 {"cosine_distance_95", PARE_COSINE_DISTANCE, 20},
                 {"cosine_distance_50", PARE_COSINE_DISTANCE, 2},
                 {"neighbors_changed", PARE_NEIGHBORS_CHANGED, 1},
                 {"neighbors_10_changed", PARE_NEIGHBORS_CHANGED, 10},
                 {"kl_mean", PARE_KL_MEAN, 0},
                 {"kl_most", PARE_KL_MOST, 0}};
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof terms / sizeof *terms; i++)
        for (size_t k = 0; ok && k < cert->nclaims; k++) {
            const pare_claim *const t = &cert->claims[k];
            const bool cosine = t->kind == PARE_COSINE_DISTANCE;
            const bool it =
                cosine ? t->p[1] == floor(t->p[0] / terms[i].of) : t->p[0] == terms[i].of;
            if (t->kind == terms[i].kind && it)
                ok = pare_json_add_number(to, terms[i].key, t->value);
        }
    return ok;
}

bool out_json_cert(cJSON *to, const char *path, const pare_cert *cert)
{
    cJSON *const o = pare_json_add_object(to, "certificate"), *json = NULL;
    const pare_claim *const engine = pare_cert_find(cert, PARE_ENGINE_DISTANCE);
    bool ok =
        pare_json_add_values(o, "path:s norm:s domain:s apriori:g proven:g measured:g rounding:n",
                             path, cert->norm, cert->domain, pare_cert_apriori(cert), cert->proven,
                             cert->measured, engine ? engine->value : NAN);
    ok = ok && add_terms(o, cert);
    /* The lists as they are in the file. */
    char *text = NULL;
    pare_arena *const a = pare_arena_new();
    ok = ok && a && pare_cert_text(&text, a, cert, NULL) == PARE_OK &&
         pare_json_parse(&json, text, strlen(text), NULL) == PARE_OK;
    pare_arena_free(a);
    for (size_t i = 0; ok && i < PARE_SECTIONS; i++) {
        cJSON *const list = cJSON_DetachItemFromObjectCaseSensitive(json, pare_section_keys[i]);
        ok = list && cJSON_AddItemToObject(o, pare_section_keys[i], list);
    }
    cJSON_Delete(json);
    return ok;
}

bool out_json_shape(cJSON *to, const char *key, const size_t *shape, size_t ndim)
{
    cJSON *list = pare_json_add_array(to, key);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < ndim; i++) ok = pare_json_add_size(list, NULL, shape[i]);
    return ok;
}
