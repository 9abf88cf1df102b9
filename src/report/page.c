/* page.c - the frame of a report: escaping, numbers, and the one style sheet (page.h). */
#include "base/utf8.h"
#include <pare/linalg.h>
#include "page.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- writing --------------------------------------------------------------------------------- */

void *page_alloc(page *p, size_t n, size_t size)
{
    return pare_work_alloc(&p->w, n, size);
}

const char *page_format(page *p, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    char *const text = page_alloc(p, n < 0 ? 1 : (size_t)n + 1, 1);
    if (text && n >= 0) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text ? text : "";
}

/* Bytes as they are: only of literals, and of what was escaped. */
static void write_raw(page *p, const char *bytes, size_t n)
{
    if (!p->w.st && n > 0) p->w.st = pare_out_write(p->out, bytes, n, p->w.err);
}

static void write_escaped(page *p, const char *text, size_t bytes)
{
    size_t written = 0;
    for (size_t i = 0, n; i < bytes && !p->w.st; i += n) {
        const uint32_t c = pare_utf8_next(text + i, bytes - i, &n);
        const bool blank = c == '\n' || c == '\t';
        const char *const escaped = c == PARE_NO_CHAR || (pare_char_is_hidden(c) && !blank)
                                        ? "\xEF\xBF\xBD"
                                    : c == '&'  ? "&amp;"
                                    : c == '<'  ? "&lt;"
                                    : c == '>'  ? "&gt;"
                                    : c == '"'  ? "&quot;"
                                    : c == '\'' ? "&#39;"
                                                : NULL;
        if (!escaped) continue;
        write_raw(p, text + written, i - written);
        write_raw(p, escaped, strlen(escaped));
        written = i + n;
    }
    write_raw(p, text + written, bytes - written);
}

void page_text(page *p, const char *text)
{
    if (text) write_escaped(p, text, strlen(text));
}

/* One conversion of a format, from its % on. */
typedef struct conversion {
    const char *end; /* behind it */
    char word[16];   /* "%.2f" */
    bool counted;    /* %.*s */
    char letter;     /* z: %zu */
} conversion;

void page_printf(page *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    while (*fmt && !p->w.st) {
        const size_t plain = strcspn(fmt, "%");
        write_raw(p, fmt, plain);
        fmt += plain;
        if (!*fmt) break;
        conversion v = {.end = fmt + 1};
        v.end += strspn(v.end, ".*0123456789");
        v.letter = *v.end;
        v.end += v.letter == 'z' ? 2 : 1;
        PARE_ASSERT(v.letter && (size_t)(v.end - fmt) < sizeof v.word);
        memcpy(v.word, fmt, (size_t)(v.end - fmt));
        v.counted = strcmp(v.word, "%.*s") == 0;
        PARE_ASSERT(v.counted || !strchr(v.word, '*'));
        PARE_ASSERT(v.letter != 's' || v.counted || v.word[1] == 's');
        char buf[400] = ""; /* %.2f of 1e308 has 312 characters */
        const int most = v.counted ? va_arg(args, int) : 0;
        const char *text = buf;
        switch (v.letter) {
        case 's':
            text = va_arg(args, const char *);
            break;
        case 'c':
            buf[0] = (char)va_arg(args, int);
            break;
        case '%':
            buf[0] = '%';
            break;
        case 'd':
            snprintf(buf, sizeof buf, v.word, va_arg(args, int));
            break;
        case 'u':
            snprintf(buf, sizeof buf, v.word, va_arg(args, unsigned));
            break;
        case 'z':
            snprintf(buf, sizeof buf, v.word, va_arg(args, size_t));
            break;
        case 'f':
        case 'g':
            snprintf(buf, sizeof buf, v.word, va_arg(args, double));
            break;
        default:
            PARE_ASSERT(false); /* a conversion that page_put does not know */
        }
        if (text) write_escaped(p, text, v.counted ? strnlen(text, (size_t)most) : strlen(text));
        fmt = v.end;
    }
    va_end(args);
}

void page_tag(page *p, const char *tag, const char *cls, const char *text)
{
    if (cls)
        page_put(p, "<%s class=\"%s\">", tag, cls);
    else
        page_put(p, "<%s>", tag);
    page_text(p, text);
    page_put(p, "</%s>", tag);
}

/* ---- numbers --------------------------------------------------------------------------------- */

const char *show_value(number buf, double v)
{
    snprintf(buf, sizeof(number), "%.4g", v);
    if (isnan(v)) snprintf(buf, sizeof(number), "-");
    if (isinf(v)) snprintf(buf, sizeof(number), v > 0 ? "infinite" : "-infinite");
    return buf;
}

const char *show_lower(number buf, double v)
{
    pare_lb_format(buf, pare_lb_exact(v), 4);
    return buf;
}

const char *show_bound(number buf, double v)
{
    char digits[40];
    const char *word = isnan(v) ? "-" : isinf(v) ? "no bound" : NULL;
    snprintf(buf, sizeof(number), "%s", word ? word : pare_ub_format(digits, pare_ub_exact(v), 4));
    return buf;
}

const char *show_count(number buf, double v)
{
    char plain[32];
    if (!(v >= 0 && v < 1e15)) return show_value(buf, v);
    const int n = snprintf(plain, sizeof plain, "%.0f", v);
    size_t k = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) buf[k++] = ',';
        buf[k++] = plain[i];
    }
    buf[k] = 0;
    return buf;
}

const char *show_file_size(number buf, double v)
{
    static const char *const unit[] = {"bytes", "kB", "MB", "GB", "TB"};
    size_t k = 0;
    if (!(v >= 0 && v < 1e15)) return show_value(buf, v);
    while (v >= 999.5 && k < 4) v /= 1000, k++;
    snprintf(buf, sizeof(number), "%.3g %s", v, unit[k]);
    return buf;
}

/* ---- the frame ------------------------------------------------------------------------------- */

/* Colors are named once for light and once for dark. The colors of series 0..7 differ also for
 * people who do not see red and green; marks and dashes differ without any color. */
static const char *const style[] = {
    ":root{--bg:#f6f7f9;--box:#fff;--ink:#1b2330;--dim:#5c6675;--line:#dde2ea;--track:#e9edf3;"
    "--good:#0b7a53;--bad:#b3261e;--warn:#8a5a00;--hot:#d1495b;",
    "--c0:#3366cc;--c1:#d1742c;--c2:#0b8f6c;--c3:#8a4fbf;--c4:#c23b6b;--c5:#5f7a12;--c6:#1b8fb0;"
    "--c7:#7a6a5a}\n",
    "@media(prefers-color-scheme:dark){:root{--bg:#12161c;--box:#1a2029;--ink:#e6eaf0;"
    "--dim:#9aa5b4;--line:#2d3643;--track:#262e39;--good:#4cc38a;--bad:#ff8a80;--warn:#f0b75a;"
    "--hot:#e0576a;--c0:#7aa2ff;--c1:#f0a35e;--c2:#4cc3a0;--c3:#bb93f0;--c4:#f07ba4;--c5:#a9c24f;"
    "--c6:#63c3e0;--c7:#bfae9c}}\n",
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);"
    "font:16px/1.5 system-ui,sans-serif}main{max-width:1180px;margin:0 auto;padding:24px 16px}\n",
    "h1{font-size:1.7rem;margin:0 0 4px}h2{font-size:1.15rem;margin:0;display:inline;"
    "overflow-wrap:anywhere}h3{font-size:1rem;margin:20px 0 6px}p{margin:6px 0}"
    "code{font-family:ui-monospace,monospace;font-size:.92em;overflow-wrap:anywhere}"
    "a{color:var(--c0)}\n",
    ".top,.card,.summary{background:var(--box);border:1px solid var(--line);border-radius:10px;"
    "padding:14px 18px;margin:14px 0}.kind{color:var(--dim);font-size:.95rem;margin-right:8px;"
    "white-space:nowrap}"
    ".dim{color:var(--dim)}.small{font-size:.86rem}\n",
    /* The top: what this is, the words, the contents. */
    ".words{columns:2 420px;column-gap:32px;margin:10px 0;font-size:.92rem}.words div{"
    "break-inside:avoid;margin-bottom:4px}.words dt{display:inline;font-weight:600}.words "
    "dt::after{content:':'}.words dd{display:inline;margin:0}\n",
    ".terms{display:grid;grid-template-columns:max-content 1fr;gap:3px 14px;margin:8px 0;"
    "align-content:start;font-size:.92rem}.terms dt{font-weight:600}.terms dd{margin:0}"
    "nav ol{columns:3;margin:4px 0;font-size:.92rem}"
    "nav li{break-inside:avoid;overflow-wrap:anywhere}nav ol{padding-left:2em}\n",
    /* Cards and what is folded inside them. */
    "summary{cursor:pointer}.card>details>summary{list-style-position:outside;margin-left:16px}"
    ".card>details>summary p{margin:2px 0 0}.card>details[open]>summary{margin-bottom:10px}"
    ".inside{scroll-margin-top:100px}.fold{border-top:1px solid var(--line);margin-top:8px;"
    "padding-top:6px}.fold>summary{font-weight:600}.fold>summary span{font-weight:400}\n",
    "table{border-collapse:collapse;width:100%;font-size:.9rem}"
    "th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line);"
    "vertical-align:top;overflow-wrap:break-word}td "
    "a{overflow-wrap:anywhere}th{font-weight:600;color:var(--dim);"
    "vertical-align:bottom;overflow-wrap:normal}td.n,th.n{text-align:right;"
    "font-variant-numeric:tabular-nums}td.n{white-space:nowrap}td:last-child,th:last-child{"
    "padding-right:0}td.what{min-width:10em}.all td:first-child{width:24%}"
    ".all td:nth-child(2),td.try{white-space:nowrap}table.pack{width:auto}"
    ".pack td,.pack th{padding-right:36px}\n",
    ".good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}.chip{display:"
    "inline-block;border:1px solid currentColor;border-radius:99px;padding:0 8px;font-size:.8rem;"
    "white-space:nowrap}td "
    ".chip{white-space:normal;border-radius:12px}.claim{white-space:normal;display:block;text-"
    "align:left}\n",
    ".grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(320px,100%),1fr));gap:"
    "16px "
    "24px}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px}"
    ".fact{border:1px solid var(--line);border-radius:8px;padding:6px 12px}.fact b{display:block;"
    "font-size:1.1rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}\n",
    ".tier{display:grid;grid-template-columns:minmax(120px,34%) 1fr 84px;gap:2px 10px;"
    "align-items:center;font-size:.9rem;margin:3px 0}.tier .v{text-align:right;"
    "font-variant-numeric:tabular-nums}.track{background:var(--track);border-radius:4px;height:"
    "14px;position:relative;overflow:hidden}.fill{position:absolute;inset:0 auto 0 "
    "0;border-radius:4px}.tier .none{grid-column:2/-1;color:var(--dim)}\n",
    ".vacuous .fill{background:repeating-linear-gradient(45deg,var(--dim) 0 4px,transparent 4px "
    "9px)!important}.ticks{display:flex;justify-content:space-between;color:var(--dim);"
    "font-size:.75rem;margin-left:calc(34% + 10px);margin-right:94px}\n",
    "svg{display:block}svg.plot,svg.plan{width:100%;height:auto;max-width:460px}"
    "svg text{fill:var(--dim);font-size:11px}svg .ink{fill:var(--ink)}"
    ".axis{stroke:var(--line);stroke-width:1}.series{fill:none;stroke-width:2}"
    ".legend{font-size:.82rem;color:var(--dim);display:flex;flex-wrap:wrap;gap:2px 12px}"
    ".legend span{display:inline-flex;align-items:center;gap:5px}.legend svg{flex:none}\n",
    "figure{margin:0;min-width:0}figcaption{font-size:.9rem;font-weight:600;margin:0 0 4px}"
    ".heatbox{container-type:inline-size;margin:0 0 16px}.wide{overflow-x:auto}"
    ".hint{display:none;font-size:.8rem;color:var(--warn);margin:0 0 4px}"
    "table.heat{width:auto;font-size:.78rem}table.heat td,table.heat th{padding:3px 7px;"
    "border:1px solid var(--box);text-align:right;font-variant-numeric:tabular-nums;"
    "overflow-wrap:normal}table.heat th:first-child{text-align:left;white-space:nowrap;"
    "position:sticky;left:0;background:var(--box)}\n",
    ".source{border-top:1px solid var(--line);margin-top:14px;padding-top:8px;color:var(--dim);"
    "font-size:.8rem;overflow-wrap:anywhere}\n",
    /* A phone: rows of tables become cards, the name of its column before each cell. */
    "@media(max-width:640px){.chip{white-space:normal;border-radius:12px}main{padding:12px "
    "8px}.top,.card,.summary{padding:12px}"
    ".terms{display:block}.terms dt,.terms dd{display:inline}.terms dt::after{content:': '}"
    ".terms dd::after{content:'';display:block;height:4px}nav ol{columns:1}"
    ".tier{grid-template-columns:1fr 84px}.tier .track,.tier .none{grid-column:1/-1;order:3}"
    ".ticks{margin:0}.facts{grid-template-columns:repeat(auto-fit,minmax(120px,1fr))}\n",
    "table.rows,table.rows tbody{display:block}table.rows tr{display:block;padding:8px 0;"
    "border-bottom:1px solid var(--line)}table.rows tr.head{display:none}"
    "table.rows td{display:grid;grid-template-columns:minmax(96px,34%) 1fr;gap:0 10px;border:0;"
    "padding:1px 0;text-align:left!important;white-space:normal!important;min-width:0}"
    "table.rows td::before{content:attr(data-l);color:var(--dim);font-size:.82rem}"
    "table.rows td:has(>div:empty){display:none}table.rows td:first-child{display:block;"
    "font-weight:600;width:auto}table.rows td:first-child::before{content:none}"
    "table.rows td:first-child .small{font-weight:400}"
    "table.rows td>div{min-width:0;overflow-wrap:anywhere}}\n",
    "@media print{body{background:#fff}.card,.summary{break-inside:avoid;border-color:#999}*{"
    "print-color-adjust:exact;-webkit-print-color-adjust:exact}nav{display:none}"
    "details::details-content{content-visibility:visible;display:block}}\n",
};

/* A table that needs so many pixels says that it can be moved sideways where there are fewer. */
enum { NEED_STEP = 20, NEED_LEAST = 200, NEED_MOST = 1600 };

int page_need(double pixels)
{
    const int n = NEED_STEP * (int)ceil(fmin(pixels, NEED_MOST) / NEED_STEP);
    return n < NEED_LEAST ? NEED_LEAST : n;
}

void page_begin(page *p, const char *title)
{
    page_put(p, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                "<meta name=\"color-scheme\" content=\"light dark\">\n"
                "<link rel=\"icon\" href=\"data:,\">\n");
    page_tag(p, "title", NULL, title);
    page_put(p, "\n<style>\n");
    for (size_t i = 0; i < sizeof style / sizeof *style; i++)
        write_raw(p, style[i], strlen(style[i]));
    for (int n = NEED_LEAST; n <= NEED_MOST; n += NEED_STEP)
        page_put(p, "@container(max-width:%dpx){.need%d{display:block}}\n", n, n);
    page_put(p, "</style>\n</head>\n<body>\n<main>\n");
    page_tag(p, "h1", NULL, title);
}

void page_end(page *p)
{
    page_put(p, "</main>\n</body>\n</html>\n");
}

void page_card(page *p, const card *c)
{
    page_put(
        p,
        "<section class=\"card\"><details%s><summary><span class=\"kind\">%zu %s</span><h2>%s</h2>",
        p->open || c->open ? " open" : "", c->number, c->kind, c->title);
    if (c->word) page_put(p, " <span class=\"%s\">%s</span>", c->cls, c->word);
    if (c->sentence) page_tag(p, "p", "small", c->sentence);
    /* A link to what is inside opens the card. */
    page_put(p, "</summary>\n<div class=\"inside\" id=\"%s\">\n", c->id);
}

void page_card_end(page *p)
{
    page_put(p, "</div></details></section>\n");
}

void page_fold(page *p, const char *title, const char *beside)
{
    page_put(p, "<details class=\"fold\"><summary>%s", title);
    if (beside) page_put(p, " <span class=\"dim small\">%s</span>", beside);
    page_put(p, "</summary>\n");
}

void page_fold_end(page *p)
{
    page_put(p, "</details>\n");
}

void page_fact(page *p, const char *label, const char *value, const char *cls, const char *beside,
               bool verified)
{
    page_put(p, "<div class=\"fact\">");
    page_tag(p, "span", "dim small", label);
    page_tag(p, "b", cls, value);
    page_tag(p, "span", "dim small", beside);
    if (!verified) page_put(p, " <span class=\"chip dim\">not verified</span>");
    page_put(p, "</div>\n");
}

void page_source(page *p, const char *file, const char *command, const char *says)
{
    page_put(p, "<p class=\"source\">From <code>%s</code>.", file);
    if (command)
        page_put(p, " Made by <code>%s</code>, as %s reports (not verified).", command, says);
    page_put(p, "</p>\n");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static size_t name_length(const char *at)
{
    return strcspn(at, "|");
}

void table_begin(page *p, table *t, const char *columns, const char *cls)
{
    *t = (table){.columns = columns};
    page_put(p, "<table class=\"rows%s%s\"><tr class=\"head\">", cls ? " " : "", cls ? cls : "");
    for (const char *at = columns; *at; at += name_length(at), at += *at == '|')
        if (*at == '#')
            page_put(p, "<th class=\"n\">%.*s</th>", (int)name_length(at + 1), at + 1);
        else
            page_put(p, "<th>%.*s</th>", (int)name_length(at), at);
    page_put(p, "</tr>\n");
}

void table_row(page *p, table *t)
{
    t->next = t->columns;
    page_put(p, "<tr>");
}

void table_cell(page *p, table *t, const char *cls)
{
    const bool figure = *t->next == '#';
    const char *const name = t->next + figure;
    const char *const as = cls ? cls : figure ? "n" : NULL;
    page_put(p, "<td");
    if (as) page_put(p, " class=\"%s\"", as);
    if (name_length(name) > 0) page_put(p, " data-l=\"%.*s\"", (int)name_length(name), name);
    page_put(p, "><div>"); /* one thing beside the name of its column */
    t->next = name + name_length(name);
    t->next += *t->next == '|';
}

void table_cell_end(page *p)
{
    page_put(p, "</div></td>");
}

void table_text(page *p, table *t, const char *text)
{
    table_cell(p, t, NULL);
    page_text(p, text);
    table_cell_end(p);
}

void table_tag(page *p, table *t, const char *tag, const char *tag_cls, const char *text)
{
    table_cell(p, t, NULL);
    page_tag(p, tag, tag_cls, text);
    table_cell_end(p);
}

void table_row_end(page *p)
{
    page_put(p, "</tr>\n");
}

void table_end(page *p)
{
    page_put(p, "</table>\n");
}
