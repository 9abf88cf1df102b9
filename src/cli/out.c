/* Lines for people, one JSON object for programs. */
#include "out.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LABEL_WIDTH 13
#define TIER_WIDTH  38

/* ---- lines --------------------------------------------------------------------------------- */

static bool colours(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

void out_row(const char *label, const char *fmt, ...)
{
    va_list args;
    printf("%-*s", LABEL_WIDTH, label);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

void out_verdict(const char *label, bool good, const char *word, const char *fmt, ...)
{
    const bool c = colours();
    va_list args;
    printf("%-*s%s%s%s", LABEL_WIDTH, label,
           !c     ? ""
           : good ? "\033[32m"
                  : "\033[31m",
           word, c ? "\033[0m" : "");
    va_start(args, fmt);
    vprintf(fmt, args);
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

size_t out_utf8_length(const unsigned char *p, size_t left)
{
    const size_t n = p[0] < 0x80   ? 1
                     : p[0] < 0xC2 ? 0
                     : p[0] < 0xE0 ? 2
                     : p[0] < 0xF0 ? 3
                     : p[0] < 0xF5 ? 4
                                   : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if (p[0] == 0xE0 && p[1] < 0xA0) return 0;  /* longer than needed */
    if (p[0] == 0xED && p[1] >= 0xA0) return 0; /* half of a surrogate pair */
    if (p[0] == 0xF0 && p[1] < 0x90) return 0;
    if (p[0] == 0xF4 && p[1] >= 0x90) return 0;
    return n;
}

const char *out_text(char *buf, size_t room, const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0;
    for (size_t i = 0; i < bytes && at + 5 < room;) {
        const size_t n = out_utf8_length(p + i, bytes - i);
        const bool c1 = n == 2 && p[i] == 0xC2 && p[i + 1] < 0xA0; /* control characters too */
        if (n == 0 || c1 || p[i] < 0x20 || p[i] == 0x7F) {
            at += (size_t)snprintf(buf + at, room - at, "\\x%02x", p[i]);
            i++;
            continue;
        }
        memcpy(buf + at, p + i, n);
        at += n;
        i += n;
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
    pair_row("bytes", before->size.bytes, after->size.bytes);
    pair_row("MACs", before->size.macs, after->size.macs);
    out_ms("ms", ms_before, ms_after);
}

/* ---- tiers --------------------------------------------------------------------------------- */

static void tier_bound(const char *label, double v)
{
    char buf[40];
    printf("  %-*s%s%s\n", TIER_WIDTH, label, pare_ub_format(buf, pare_ub_exact(v), 4),
           isinf(v) ? "  (says nothing)" : "");
}

bool out_is_evidence(const pare_hypothesis *h)
{
    return !isnan(h->value) && isnan(h->limit) && strstr(h->name, "measured") != NULL;
}

static void hypothesis_row(const pare_hypothesis *h)
{
    static const char *const word[] = {"fails", "holds", "undecided"};
    if (out_is_evidence(h)) {
        printf("  evidence   %s: %.4g\n", h->name, h->value);
        return;
    }
    printf("  hypothesis %s: %s", h->name, word[h->holds]);
    if (!isnan(h->value)) printf(", value %.4g", h->value);
    if (!isnan(h->limit)) printf(", limit %.4g", h->limit);
    putchar('\n');
}

void out_tiers(const pare_cert *cert, bool verbose)
{
    out_row("difference", "%s", cert->norm);
    tier_bound("a priori (theorem)", cert->apriori);
    tier_bound("proven (these weights, these inputs)", cert->proven);
    printf("  %-*s%.4g\n", TIER_WIDTH, "measured (evidence, not a bound)", cert->measured);
    if (cert->apriori < cert->proven) puts("  the theorem is the tighter of the two bounds here");
    tier_bound("rounding of the f32 engine (proven)", cert->rounding);
    out_row("domain", "%s", cert->domain);
    for (size_t i = 0; i < cert->nhypotheses; i++)
        if (verbose || cert->hypotheses[i].holds != PARE_TRUE) hypothesis_row(&cert->hypotheses[i]);
    for (size_t i = 0; verbose && i < cert->nstatements; i++) {
        const pare_statement *s = &cert->statements[i];
        char buf[40];
        printf("  statement %s: %s in %s on %s, probability %g\n", s->name,
               pare_ub_format(buf, pare_ub_exact(s->bound), 4), s->norm, s->domain, s->probability);
    }
}

void out_least(const pare_hypothesis *h)
{
    char times[48] = "";
    if (!h) return;
    if (h->limit > 0) snprintf(times, sizeof times, " (%.3g times that)", h->value / h->limit);
    out_row("at best", "%s: %.4g, %.4g%s", h->name, h->value, h->limit, times);
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

pare_status out_json(cli *c, cJSON *root, bool complete)
{
    char *text = NULL;
    pare_status st = root && complete ? PARE_OK : pare_no_memory(&c->err);
    if (!st) st = pare_json_print(&text, NULL, c->arena, root, 0, &c->err);
    if (!st) puts(text);
    cJSON_Delete(root);
    return st;
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
    cJSON *o = pare_json_add_object(to, key);
    return o && pare_json_add_string(o, "path", f->path) &&
           (*f->sha256 ? pare_json_add_string(o, "sha256", f->sha256)
                       : pare_json_add_null(o, "sha256")) &&
           pare_json_add_size(o, "parameters", f->size.parameters) &&
           pare_json_add_size(o, "bytes", f->size.bytes) &&
           pare_json_add_size(o, "macs", f->size.macs) &&
           pare_json_add_size(o, "tokens", f->tokens) &&
           pare_json_add_size(o, "file_bytes", f->file_bytes);
}

static bool add_if_number(cJSON *to, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(to, key) : pare_json_add_number(to, key, v);
}

static bool json_hypotheses(cJSON *to, const pare_cert *cert)
{
    cJSON *list = pare_json_add_array(to, "hypotheses");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < cert->nhypotheses; i++) {
        const pare_hypothesis *h = &cert->hypotheses[i];
        cJSON *o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "name", h->name) &&
             (h->holds == PARE_UNKNOWN ? pare_json_add_null(o, "holds")
                                       : pare_json_add_bool(o, "holds", h->holds == PARE_TRUE)) &&
             add_if_number(o, "value", h->value) && add_if_number(o, "limit", h->limit);
    }
    return ok;
}

bool out_json_cert(cJSON *to, const char *path, const pare_cert *cert)
{
    cJSON *o = pare_json_add_object(to, "certificate");
    return o && pare_json_add_string(o, "path", path) &&
           pare_json_add_string(o, "norm", cert->norm) &&
           pare_json_add_string(o, "domain", cert->domain) &&
           pare_json_add_number(o, "apriori", cert->apriori) &&
           pare_json_add_number(o, "proven", cert->proven) &&
           pare_json_add_number(o, "measured", cert->measured) &&
           pare_json_add_number(o, "rounding", cert->rounding) && json_hypotheses(o, cert);
}

bool out_json_statements(cJSON *to, const pare_cert *cert)
{
    cJSON *const list = pare_json_add_array(to, "statements");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < cert->nstatements; i++) {
        const pare_statement *const s = &cert->statements[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "name", s->name) &&
             pare_json_add_string(o, "norm", s->norm) &&
             pare_json_add_string(o, "domain", s->domain) &&
             pare_json_add_number(o, "bound", s->bound);
    }
    return ok;
}

bool out_json_shape(cJSON *to, const char *key, const size_t *shape, size_t ndim)
{
    cJSON *list = pare_json_add_array(to, key);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < ndim; i++) ok = pare_json_add_size(list, NULL, shape[i]);
    return ok;
}
