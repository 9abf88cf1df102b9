/* The box of the tables and figures of a paper, ours beside theirs (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <string.h>

static const char *verdict_class(const char *word)
{
    if (!word) return "chip dim";
    if (strcmp(word, "reproduced") == 0) return "chip good";
    return strncmp(word, "false", 5) == 0 ? "chip bad" : "chip warn";
}

static void spread(page *p, double mean, double std)
{
    number m, s;
    page_put(p, "<td class=\"n\">%s", isnan(mean) ? "" : show_value(m, mean));
    if (!isnan(std)) page_put(p, " &plusmn; %s", show_value(s, std));
    page_put(p, "</td>");
}

static void row(page *p, const cJSON *r)
{
    page_put(p, "<tr>");
    page_tag(p, "td", NULL, item_string(r, "data"));
    page_put(p, "<td>");
    page_text(p, item_string(r, "what"));
    page_put(p, "</td>");
    spread(p, item_number(r, "published"), item_number(r, "published_std"));
    spread(p, item_number(r, "ours"), item_number(r, "ours_std"));
    page_put(p, "<td>");
    page_tag(p, "span", verdict_class(item_string(r, "verdict")), item_string(r, "verdict"));
    page_put(p, "</td><td class=\"small\">");
    page_text(p, item_string(r, "note"));
    page_put(p, "</td></tr>\n");
}

static void table(page *p, const cJSON *t)
{
    const cJSON *r;
    page_tag(p, "h3", NULL, item_string(t, "name"));
    page_tag(p, "p", "small dim", item_string(t, "about"));
    page_put(p, "<div class=\"wide\"><table><tr><th>on</th><th>what</th><th class=\"n\">published"
                "</th><th class=\"n\">ours</th><th>verdict</th><th>note</th></tr>\n");
    cJSON_ArrayForEach(r, item_at(t, "rows"))
    {
        row(p, r);
    }
    page_put(p, "</table></div>\n");
}

static size_t take(page *p, const cJSON *list, double **out)
{
    const size_t n = list ? (size_t)cJSON_GetArraySize(list) : 0;
    const cJSON *at;
    size_t i = 0;
    *out = page_alloc(p, n, sizeof **out);
    if (!*out) return 0;
    cJSON_ArrayForEach(at, list)
    {
        (*out)[i++] = cJSON_IsNumber(at) ? at->valuedouble : NAN;
    }
    return n;
}

/* Curves that belong to one table, in one picture. */
static void curves(page *p, const cJSON *all, const char *name)
{
    enum { MOST = 12 };
    series s[MOST];
    size_t n = 0;
    bool log_y = true;
    const cJSON *c;
    cJSON_ArrayForEach(c, all)
    {
        double *x, *y;
        const char *of = item_string(c, "table"), *what = item_string(c, "what");
        if (!of || strcmp(of, name) != 0 || n == MOST) continue;
        const size_t nx = take(p, item_at(c, "x"), &x), ny = take(p, item_at(c, "y"), &y);
        if (nx != ny || p->st) continue;
        for (size_t i = 0; i < ny; i++) log_y = log_y && !(y[i] <= 0);
        s[n++] = (series){what ? what : "", nx, x, y};
    }
    if (n > 0) plot_chart(p, &(chart){name, "x", "y", .log_y = log_y, .s = s, .n = n});
}

void card_repro(page *p, const item *it)
{
    const cJSON *repro = item_at(it->json, "repro") ? item_at(it->json, "repro") : it->json;
    const cJSON *t, *note;
    const char *name = item_string(repro, "name");
    page_card(p, it->id, "repro",
              page_words(p, "The %s paper, ours beside theirs", name ? name : ""));
    cJSON_ArrayForEach(t, item_at(repro, "tables"))
    {
        table(p, t);
    }
    page_put(p, "<div class=\"grid\">\n");
    cJSON_ArrayForEach(t, item_at(repro, "tables"))
    {
        const char *of = item_string(t, "name");
        if (of) curves(p, item_at(repro, "curves"), of);
    }
    page_put(p, "</div>\n<ul class=\"small\">\n");
    cJSON_ArrayForEach(note, item_at(repro, "notes"))
    {
        page_tag(p, "li", NULL, cJSON_GetStringValue(note));
    }
    page_put(p, "</ul>\n");
    page_source(p, it->path, item_string(it->json, "line"));
    page_card_end(p);
}
