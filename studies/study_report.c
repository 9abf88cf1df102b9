/* study_report.c - what a study made (study.h), as text for a terminal and as JSON. */
#include "study.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const row_class_names[] = {"ours", "printed in the paper", "own reference",
                                       "self-consistency", NULL};

const outcome outcomes[OUTCOMES + 1] = {
    {ROW_PRINTED, REPRODUCED, "reproduced", "reproduced"},
    {ROW_PRINTED, DIFFERS, "differs", "differs"},
    {ROW_PRINTED, MISPRINT, "false as printed", "false"},
    {ROW_PRINTED, STEP_FALSE, "proof step false, statement may hold", "step"},
    {ROW_PRINTED, IMPRECISE, "loose or imprecise", "loose"},
    {ROW_PRINTED, UNDECIDED, "not decided", "not decided"},
    {ROW_PRINTED, NOT_MADE, "not made", "not made"},
    {ROW_REFERENCE, REPRODUCED, "agrees", "agrees"},
    {ROW_REFERENCE, DIFFERS, "differs", "differs"},
    {ROW_SELF, REPRODUCED, "holds", "holds"},
    {ROW_SELF, DIFFERS, "fails", "fails"},
    {ROW_OURS, ADDED, "ours", "ours"},
    {ROW_OURS, ADDED, NULL, NULL}};

size_t outcome_of(row_class of, row_verdict is)
{
    size_t i = 0;
    while (i < OUTCOMES && (outcomes[i].of != of || outcomes[i].is != is)) i++;
    return i;
}

static const char *word_of(const table_row *row)
{
    return outcomes[outcome_of(row->source, row->verdict)].word;
}

void study_free(study *r)
{
    if (r) pare_arena_free(r->arena); /* r itself lives there */
}

/* ---- text ----------------------------------------------------------------------------------- */

/* "0.9430 +- 0.0010", "78804", "". */
static const char *figure(char buf[64], double v, double std, int digits)
{
    if (isnan(v)) return "";
    if (digits < 0 && isnan(std))
        snprintf(buf, 64, "%.*g", -digits, v);
    else if (digits < 0)
        snprintf(buf, 64, "%.*g +- %.2g", -digits, v, std);
    else if (v == floor(v) && fabs(v) >= 2 && isnan(std))
        snprintf(buf, 64, "%.0f", v);
    else if (isnan(std))
        snprintf(buf, 64, "%.*f", digits, v);
    else
        snprintf(buf, 64, "%.*f +- %.*f", digits, v, digits, std);
    return buf;
}

static int longest(const study_table *t)
{
    size_t most = 32;
    for (size_t i = 0; i < t->nrows; i++)
        if (strlen(t->rows[i].what) > most) most = strlen(t->rows[i].what);
    return (int)most;
}

static int longest_data(const study_table *t)
{
    size_t most = 12;
    for (size_t i = 0; i < t->nrows; i++)
        if (strlen(t->rows[i].data) > most) most = strlen(t->rows[i].data);
    return (int)most;
}

/* As the paper has it: the deviation with its own digits. */
static const char *printed_figure(char buf[64], const table_row *row, int digits)
{
    if (row->claim) return row->claim;
    figure(buf, row->published, NAN, digits - (digits > 3));
    const size_t n = isnan(row->published) ? 0 : strlen(buf);
    if (n > 0 && !isnan(row->published_std))
        snprintf(buf + n, 64 - n, " +- %.4g", row->published_std);
    return n > 0 ? buf : "";
}

/* Whether a table has numbers that are not the paper's to compare with. */
static bool has_reference(const study_table *t)
{
    for (size_t i = 0; i < t->nrows; i++)
        if (!isnan(t->rows[i].reference)) return true;
    return false;
}

static void put_row(FILE *to, const study_table *t, const table_row *row, bool first)
{
    const bool compared = row->source == ROW_REFERENCE || row->source == ROW_SELF;
    char a[64], b[64], c[64], runs[32] = "", size[32] = "";
    if (row->runs) snprintf(runs, sizeof runs, "%zu", row->runs);
    if (row->parameters) snprintf(size, sizeof size, "%zu", row->parameters);
    fprintf(to, "  %-*s %-*s %20s", longest_data(t), first ? row->data : "", longest(t), row->what,
            printed_figure(a, row, t->digits));
    if (has_reference(t)) fprintf(to, " %14s", figure(b, row->reference, NAN, t->digits));
    fprintf(to, " %18s %5s %8s  %s%s%s%s%s%s\n",
            figure(c, row->ours, row->runs > 1 ? row->ours_std : NAN, t->digits), runs, size,
            word_of(row), compared ? " (" : "", compared ? row_class_names[row->source] : "",
            compared ? ")" : "", *row->note ? ": " : "", row->note);
}

/* The files behind a table, each once. */
static void put_sources(FILE *to, const study_table *t)
{
    for (size_t i = 0; i < t->nrows; i++) {
        bool before = !*t->rows[i].from;
        for (size_t k = 0; !before && k < i; k++)
            before = strcmp(t->rows[k].from, t->rows[i].from) == 0;
        if (!before) fprintf(to, "  from %s (%s)\n", t->rows[i].from, t->rows[i].data);
    }
}

static void put_table(FILE *to, const study_table *t)
{
    fprintf(to, "%s: %s\n", t->name, t->about);
    fprintf(to, "  %-*s %-*s %20s", longest_data(t), "", longest(t), "", "printed in the paper");
    if (has_reference(t)) fprintf(to, " %14s", "compared with");
    fprintf(to, " %18s %5s %8s\n", "ours", "runs", "size");
    for (size_t i = 0; i < t->nrows; i++)
        put_row(to, t, &t->rows[i], i == 0 || strcmp(t->rows[i - 1].data, t->rows[i].data) != 0);
    put_sources(to, t);
    fputc('\n', to);
}

/* ---- bars ----------------------------------------------------------------------------------- */

static void put_bars(FILE *to, const histogram *h, const run_series *s)
{
    fprintf(to, "  %s, %s (%zu run%s)\n", s->data, s->what, s->n, s->n == 1 ? "" : "s");
    for (size_t i = 0; i < h->bins; i++) {
        fprintf(to, "    %7.4f ", histogram_edge(h, i));
        for (size_t k = 0; k < histogram_count(h, s, i); k++) fputc('#', to);
        fputc('\n', to);
    }
}

static void put_figure(FILE *to, const study *r)
{
    if (r->nseries == 0) return;
    fprintf(to, "%s: how the runs are spread (a # is a run; left, where its bin begins)\n",
            r->figure);
    for (size_t i = 0; i < r->nseries; i++) {
        const histogram h = histogram_of(r, i);
        put_bars(to, &h, &r->series[i]);
    }
    fprintf(to, "  from %s/figure.csv, %s/figure.svg\n\n", r->folder, r->folder);
}

static void put_study(FILE *to, const void *made)
{
    const study *const r = made;
    for (size_t i = 0; i < r->ntables; i++) put_table(to, &r->tables[i]);
    put_figure(to, r);
    for (size_t i = 0; i < r->nnotes; i++) fprintf(to, "note: %s\n", r->notes[i]);
}

pare_status print_text(char **out, pare_arena *a, void (*put)(FILE *to, const void *what),
                       const void *what, pare_err *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const to = open_memstream(&text, &n);
    *out = NULL;
    if (!to) return pare_no_memory(err);
    put(to, what);
    const bool bad = ferror(to) != 0, worse = fclose(to) != 0;
    if (!bad && !worse && text) *out = pare_strndup(a, text, n);
    free(text);
    return *out ? PARE_OK : pare_no_memory(err);
}

pare_status study_text(char **out, pare_arena *a, const study *r, pare_err *err)
{
    return print_text(out, a, put_study, r, err);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static bool number(cJSON *to, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(to, key) : pare_json_add_number(to, key, v);
}

static bool json_row(cJSON *o, const study_table *t, const table_row *row)
{
    const char *const command = row->command ? row->command : t->command;
    return o && pare_json_add_string(o, "data", row->data) &&
           pare_json_add_string(o, "what", row->what) && number(o, "published", row->published) &&
           number(o, "published_std", row->published_std) &&
           (!row->claim || pare_json_add_string(o, "claim", row->claim)) &&
           number(o, "reference", row->reference) && number(o, "ours", row->ours) &&
           number(o, "ours_std", row->ours_std) && pare_json_add_size(o, "runs", row->runs) &&
           pare_json_add_size(o, "parameters", row->parameters) &&
           pare_json_add_string(o, "class", row_class_names[row->source]) &&
           pare_json_add_string(o, "verdict", word_of(row)) &&
           pare_json_add_string(o, "note", row->note) &&
           pare_json_add_string(o, "from", row->from) &&
           pare_json_add_string(o, "command", command ? command : "");
}

static bool json_tables(cJSON *to, const study *r)
{
    cJSON *const list = pare_json_add_array(to, "tables");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < r->ntables; i++) {
        const study_table *const t = &r->tables[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "name", t->name) &&
             pare_json_add_string(o, "about", t->about) &&
             pare_json_add_string(o, "command", t->command ? t->command : "");
        cJSON *const rows = ok ? pare_json_add_array(o, "rows") : NULL;
        ok = rows != NULL;
        for (size_t k = 0; ok && k < t->nrows; k++)
            ok = json_row(pare_json_add_object(rows, NULL), t, &t->rows[k]);
    }
    return ok;
}

static bool json_figure(cJSON *to, const study *r)
{
    cJSON *const o = pare_json_add_object(to, "figure");
    bool ok = o && pare_json_add_string(o, "name", r->figure ? r->figure : "");
    cJSON *const list = ok ? pare_json_add_array(o, "series") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < r->nseries; i++) {
        const run_series *const s = &r->series[i];
        cJSON *const at = pare_json_add_object(list, NULL);
        ok = at && pare_json_add_string(at, "data", s->data) &&
             pare_json_add_string(at, "what", s->what) &&
             pare_json_add_string(at, "metric", s->metric) &&
             pare_json_add_string(at, "from", s->from) && number(at, "published", s->published);
        cJSON *const values = ok ? pare_json_add_array(at, "values") : NULL;
        ok = values != NULL;
        for (size_t k = 0; ok && k < s->n; k++)
            ok = pare_json_add_number(values, NULL, s->value[k]);
    }
    return ok;
}

static bool json_curves(cJSON *to, const study *r)
{
    cJSON *const list = r->ncurves ? pare_json_add_array(to, "curves") : NULL;
    bool ok = list || r->ncurves == 0;
    for (size_t i = 0; ok && i < r->ncurves; i++) {
        const figure_curve *const c = &r->curves[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "table", c->table) &&
             pare_json_add_string(o, "data", c->data) && pare_json_add_string(o, "what", c->what);
        cJSON *const x = ok ? pare_json_add_array(o, "x") : NULL;
        cJSON *const y = x ? pare_json_add_array(o, "y") : NULL;
        ok = y != NULL;
        for (size_t k = 0; ok && k < c->n; k++)
            ok = number(x, NULL, c->x[k]) && number(y, NULL, c->y[k]);
    }
    return ok;
}

static bool json_notes(cJSON *to, const study *r)
{
    cJSON *const list = pare_json_add_array(to, "notes");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < r->nnotes; i++) ok = pare_json_add_string(list, NULL, r->notes[i]);
    return ok;
}

pare_status study_json(cJSON **out, const study *r, pare_err *err)
{
    cJSON *const o = cJSON_CreateObject();
    const bool ok = o && pare_json_add_string(o, "name", r->name) &&
                    pare_json_add_string(o, "folder", r->folder) &&
                    pare_json_add_string(o, "line", r->line ? r->line : "") &&
                    pare_json_add_bool(o, "full", r->full) &&
                    pare_json_add_u64(o, "seed", r->seed) && json_tables(o, r) &&
                    json_figure(o, r) && json_curves(o, r) && json_notes(o, r);
    if (!ok) cJSON_Delete(o);
    *out = ok ? o : NULL;
    return ok ? PARE_OK : pare_no_memory(err);
}
