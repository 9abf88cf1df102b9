/* pare_repro_all: every study of every paper, one after the other, in folders of their own. */
#include "study.h"
#include <string.h>

const pare_repro_study pare_repro_studies[PARE_REPRO_STUDIES] = {
    {"width", width_part, pare_repro_width, true, true},
    {"depth", depth_part, pare_repro_depth, false, false},
    {"ticket", ticket_part, pare_repro_ticket, false, true},
    {"length", length_part, pare_repro_length, false, false},
    {"errata", errata_part, pare_repro_errata, false, false},
};

const pare_repro_study *pare_repro_find(const char *name)
{
    for (size_t i = 0; i < PARE_REPRO_STUDIES; i++)
        if (strcmp(pare_repro_studies[i].name, name) == 0) return &pare_repro_studies[i];
    return NULL;
}

/* ---- which parts ----------------------------------------------------------------------------- */

static bool has_part(const pare_repro_study *s, const char *word, size_t n)
{
    for (size_t i = 0; s->part(i); i++)
        if (strlen(s->part(i)) == n && strncmp(s->part(i), word, n) == 0) return true;
    return false;
}

/* Whether any part of the study is asked for. */
static bool wanted(const pare_repro_study *s, const char *only)
{
    for (size_t i = 0; s->part(i); i++)
        if (names_part(only, s->part(i))) return true;
    return false;
}

static pare_status refuse(const pare_repro_study *s, const char *word, size_t n, pare_err *err)
{
    char all[200] = "";
    for (size_t k = 0; k < PARE_REPRO_STUDIES; k++)
        for (size_t i = 0; pare_repro_studies[k].part(i); i++) {
            if (s && s != &pare_repro_studies[k]) continue;
            strncat(all, *all ? ", " : "", sizeof all - strlen(all) - 1);
            strncat(all, pare_repro_studies[k].part(i), sizeof all - strlen(all) - 1);
        }
    return pare_fail(err, PARE_ERR_USAGE, "--only %.*s: the parts are %s", (int)n, word, all);
}

pare_status pare_repro_check(const pare_repro_study *s, const char *only, pare_err *err)
{
    for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t n = strcspn(at, ",");
        bool known = false;
        for (size_t k = 0; k < PARE_REPRO_STUDIES; k++)
            if (!s || s == &pare_repro_studies[k])
                known = known || has_part(&pare_repro_studies[k], at, n);
        if (!known) return refuse(s, at, n, err);
    }
    return PARE_OK;
}

/* ---- one progress over all ------------------------------------------------------------------- */

/* Seconds of two cores, roughly, by what a study calls its stages, in their order: only the bar
 * knows them. */
static const struct stage {
    const char *study, *title;
    double quick, full;
} stages[] = {
    {"width", "grid", 0, 9000},           {"width", "train", 380, 6500},
    {"width", "cut and teach", 60, 1500}, {"depth", "train", 10, 10},
    {"depth", "experiments", 30, 200},    {"ticket", "experiments", 15, 40},
    {"ticket", "edge-popup", 240, 2000},  {"length", "experiments", 5, 5},
    {"errata", "experiments", 5, 5},
};
enum { STAGES = sizeof stages / sizeof *stages };

typedef struct meter {
    const pare_exec *exec;
    const char *study;
    const pare_repro_opts *o;
    bool alone; /* its stages are all there is */
} meter;

static void show(void *self, const char *what, uint64_t done, uint64_t total)
{
    const meter *const m = self;
    double before = 0, all = 0;
    bool found = false;
    for (size_t i = 0; i < STAGES; i++) {
        const pare_repro_study *const of = pare_repro_find(stages[i].study);
        const double cost = m->o->full ? stages[i].full : stages[i].quick;
        const bool counts =
            m->alone ? strcmp(stages[i].study, m->study) == 0 : wanted(of, m->o->only);
        const double share = counts ? cost : 0;
        const bool here =
            strcmp(stages[i].study, m->study) == 0 && strcmp(stages[i].title, what) == 0;
        all += share;
        if (here && total > 0) before += share * (double)done / (double)total;
        if (!found && !here) before += share;
        found = found || here;
    }
    if (!found || !(all > 0)) return;
    const pare_status st = pare_progress(m->exec, m->alone ? m->study : "repro all",
                                         (uint64_t)(1e6 * before / all), 1000000, NULL);
    (void)st; /* the study looks at the flag itself */
}

static pare_exec counting(const pare_exec *exec, meter *m)
{
    pare_exec x = pare_exec_silent(exec);
    x.progress = show;
    x.self = m;
    return x;
}

pare_status pare_repro_run(pare_repro **out, const pare_repro_study *s, const pare_repro_opts *o,
                           const pare_exec *exec, const pare_ranks *ranks, pare_err *err)
{
    meter m = {exec, s->name, o, true};
    const pare_exec counted = counting(exec, &m);
    return s->make(out, o, &counted, ranks, err);
}

/* ---- the studies ----------------------------------------------------------------------------- */

static bool is_graph(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}

/* What of the options is this study's. */
static pare_status options_of(pare_repro_opts *out, pare_arena *a, const pare_repro_study *s,
                              const pare_repro_opts *o, pare_err *err)
{
    const pare_repro_opts none = PARE_REPRO_OPTS_DEFAULT;
    const bool width = strcmp(s->name, "width") == 0, ticket = strcmp(s->name, "ticket") == 0;
    const char **const data = pare_alloc(a, o->ndata + 1, sizeof *data);
    *out = *o;
    out->folder = pare_sprintf(a, "%s/%s", o->folder, s->name);
    if (!data || !out->folder) return pare_no_memory(err);
    out->data = data;
    out->ndata = 0;
    for (size_t i = 0; i < o->ndata; i++)
        if (is_graph(o->data[i]) ? width : ticket) data[out->ndata++] = o->data[i];
    if (strcmp(s->name, "depth") != 0) out->model = NULL;
    if (!s->boards) out->side = none.side, out->large = none.large, out->small = none.small;
    if (!s->trains) out->epochs = none.epochs;
    return PARE_OK;
}

static pare_status make_one(pare_repro **out, pare_arena *a, const pare_repro_study *s,
                            const pare_repro_opts *o, const pare_exec *exec,
                            const pare_ranks *ranks, pare_err *err)
{
    pare_repro_opts own;
    char line[100];
    meter m = {exec, s->name, o, false};
    const pare_exec counted = counting(exec, &m);
    const bool first = pare_ranks_rank(ranks) == 0;
    snprintf(line, sizeof line, "%s begins", s->name);
    if (first && o->note) o->note(o->self, line);
    pare_status st = pare_ranks_agree(ranks, options_of(&own, a, s, o, err), err);
    if (!st) st = s->make(out, &own, &counted, ranks, err);
    st = pare_ranks_agree(ranks, st, err);
    if (!st && first) st = pare_repro_write(*out, err);
    return pare_ranks_agree(ranks, st, err);
}

pare_status pare_repro_all(pare_repro_set *out, const pare_repro_opts *o, const pare_exec *exec,
                           const pare_ranks *ranks, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    *out = (pare_repro_set){0};
    pare_status st = a ? pare_repro_check(NULL, o->only, err) : pare_no_memory(err);
    if (!st && pare_ranks_rank(ranks) == 0) st = frame_make_folder(o->folder, err);
    st = pare_ranks_agree(ranks, st, err);
    for (size_t i = 0; !st && i < PARE_REPRO_STUDIES; i++) {
        const pare_repro_study *const s = &pare_repro_studies[i];
        if (!wanted(s, o->only)) continue;
        st = make_one(&out->study[out->n], a, s, o, exec, ranks, err);
        if (!st) out->n++;
    }
    if (st) pare_repro_set_free(out);
    pare_arena_free(a);
    return st;
}

void pare_repro_set_free(pare_repro_set *s)
{
    for (size_t i = 0; i < PARE_REPRO_STUDIES; i++) pare_repro_free(s->study[i]);
    *s = (pare_repro_set){0};
}

/* ---- summary --------------------------------------------------------------------------------- */

/* Two lines: the classes, each over its outcomes; the outcomes. */
static void put_heads(FILE *to)
{
    fprintf(to, "%-45s", "");
    for (size_t i = 0; i < PARE_OUTCOMES;) {
        const pare_row_class of = pare_outcomes[i].of;
        size_t wide = 0;
        for (; i < PARE_OUTCOMES && pare_outcomes[i].of == of; i++)
            wide += 2 + strlen(pare_outcomes[i].head);
        if (of != PARE_ROW_OURS) fprintf(to, "  %-*s", (int)wide - 2, pare_row_class_names[of]);
    }
    fprintf(to, "\n%-45s", "");
    for (size_t i = 0; i < PARE_OUTCOMES; i++) fprintf(to, "  %s", pare_outcomes[i].head);
    fputc('\n', to);
}

static void put_counts(FILE *to, const char *study, const char *table,
                       const size_t count[PARE_OUTCOMES])
{
    fprintf(to, "%-8s %-36s", study, table);
    for (size_t i = 0; i < PARE_OUTCOMES; i++) {
        const int wide = (int)strlen(pare_outcomes[i].head);
        if (count[i])
            fprintf(to, "  %*zu", wide, count[i]);
        else
            fprintf(to, "  %*s", wide, "-");
    }
    fputc('\n', to);
}

static void put_summary(FILE *to, const void *set)
{
    const pare_repro_set *const s = set;
    size_t all[PARE_OUTCOMES] = {0};
    put_heads(to);
    for (size_t i = 0; i < s->n; i++)
        for (size_t t = 0; t < s->study[i]->ntables; t++) {
            const pare_repro_table *const table = &s->study[i]->tables[t];
            size_t count[PARE_OUTCOMES] = {0};
            for (size_t k = 0; k < table->nrows; k++) {
                const pare_repro_row *const row = &table->rows[k];
                const size_t at = pare_outcome_of(row->source, row->verdict);
                count[at]++;
                all[at]++;
            }
            put_counts(to, t == 0 ? s->study[i]->name : "", table->name, count);
        }
    put_counts(to, "all", "", all);
}

pare_status pare_repro_summary(char **out, pare_arena *a, const pare_repro_set *s, pare_err *err)
{
    return print_text(out, a, put_summary, s, err);
}
