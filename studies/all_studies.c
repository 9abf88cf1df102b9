/* all_studies.c - run_all_studies: every study of every paper, one after the other, in folders of
 * their own. */
#include "study.h"
#include <string.h>

const study_kind study_kinds[STUDIES] = {
    {"width", width_part, study_width, true, true},
    {"depth", depth_part, study_depth, false, false},
    {"ticket", ticket_part, study_ticket, false, true},
    {"length", length_part, study_length, false, false},
    {"errata", errata_part, study_errata, false, false},
};

const study_kind *find_study(const char *name)
{
    for (size_t i = 0; i < STUDIES; i++)
        if (strcmp(study_kinds[i].name, name) == 0) return &study_kinds[i];
    return NULL;
}

/* ---- which parts ----------------------------------------------------------------------------- */

static bool has_part(const study_kind *s, const char *word, size_t n)
{
    for (size_t i = 0; s->part(i); i++)
        if (strlen(s->part(i)) == n && strncmp(s->part(i), word, n) == 0) return true;
    return false;
}

/* Whether any part of the study is asked for. */
static bool is_wanted(const study_kind *s, const char *only)
{
    for (size_t i = 0; s->part(i); i++)
        if (names_part(only, s->part(i))) return true;
    return false;
}

static pare_status refuse(const study_kind *s, const char *word, size_t n, pare_err *err)
{
    char all[200] = "";
    for (size_t k = 0; k < STUDIES; k++)
        for (size_t i = 0; study_kinds[k].part(i); i++) {
            if (s && s != &study_kinds[k]) continue;
            strncat(all, *all ? ", " : "", sizeof all - strlen(all) - 1);
            strncat(all, study_kinds[k].part(i), sizeof all - strlen(all) - 1);
        }
    return pare_fail(err, PARE_ERR_USAGE, "--only %.*s: the parts are %s", (int)n, word, all);
}

pare_status check_parts(const study_kind *s, const char *only, pare_err *err)
{
    for (const char *at = only; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t n = strcspn(at, ",");
        bool known = false;
        for (size_t k = 0; k < STUDIES; k++)
            if (!s || s == &study_kinds[k]) known = known || has_part(&study_kinds[k], at, n);
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
    const study_opts *o;
    bool alone; /* its stages are all there is */
} meter;

static void show(void *self, const char *what, uint64_t done, uint64_t total)
{
    const meter *const m = self;
    double before = 0, all = 0;
    bool found = false;
    for (size_t i = 0; i < STAGES; i++) {
        const study_kind *const of = find_study(stages[i].study);
        const double cost = m->o->full ? stages[i].full : stages[i].quick;
        const bool counts =
            m->alone ? strcmp(stages[i].study, m->study) == 0 : is_wanted(of, m->o->only);
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

pare_status run_study(study **out, const study_kind *s, const study_opts *o, const pare_exec *exec,
                      const pare_ranks *ranks, pare_err *err)
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
static pare_status options_of(study_opts *out, pare_arena *a, const study_kind *s,
                              const study_opts *o, pare_err *err)
{
    const study_opts none = STUDY_OPTS_DEFAULT;
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

static pare_status make_one(study **out, pare_arena *a, const study_kind *s, const study_opts *o,
                            const pare_exec *exec, const pare_ranks *ranks, pare_err *err)
{
    study_opts own;
    char line[100];
    meter m = {exec, s->name, o, false};
    const pare_exec counted = counting(exec, &m);
    const bool first = pare_ranks_rank(ranks) == 0;
    snprintf(line, sizeof line, "%s begins", s->name);
    if (first && o->note) o->note(o->self, line);
    pare_status st = pare_ranks_agree(ranks, options_of(&own, a, s, o, err), err);
    if (!st) st = s->make(out, &own, &counted, ranks, err);
    st = pare_ranks_agree(ranks, st, err);
    if (!st && first) st = study_write(*out, err);
    return pare_ranks_agree(ranks, st, err);
}

pare_status run_all_studies(study_set *out, const study_opts *o, const pare_exec *exec,
                            const pare_ranks *ranks, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    *out = (study_set){0};
    pare_status st = a ? check_parts(NULL, o->only, err) : pare_no_memory(err);
    if (!st && pare_ranks_rank(ranks) == 0) st = make_folder(o->folder, err);
    st = pare_ranks_agree(ranks, st, err);
    for (size_t i = 0; !st && i < STUDIES; i++) {
        const study_kind *const s = &study_kinds[i];
        if (!is_wanted(s, o->only)) continue;
        st = make_one(&out->study[out->n], a, s, o, exec, ranks, err);
        if (!st) out->n++;
    }
    if (st) study_set_free(out);
    pare_arena_free(a);
    return st;
}

void study_set_free(study_set *s)
{
    for (size_t i = 0; i < STUDIES; i++) study_free(s->study[i]);
    *s = (study_set){0};
}

/* ---- summary --------------------------------------------------------------------------------- */

/* Two lines: the classes, each over its outcomes; the outcomes. */
static void put_heads(FILE *to)
{
    fprintf(to, "%-45s", "");
    for (size_t i = 0; i < OUTCOMES;) {
        const row_class of = outcomes[i].of;
        size_t wide = 0;
        for (; i < OUTCOMES && outcomes[i].of == of; i++) wide += 2 + strlen(outcomes[i].head);
        if (of != ROW_OURS) fprintf(to, "  %-*s", (int)wide - 2, row_class_names[of]);
    }
    fprintf(to, "\n%-45s", "");
    for (size_t i = 0; i < OUTCOMES; i++) fprintf(to, "  %s", outcomes[i].head);
    fputc('\n', to);
}

static void put_counts(FILE *to, const char *name, const char *table, const size_t count[OUTCOMES])
{
    fprintf(to, "%-8s %-36s", name, table);
    for (size_t i = 0; i < OUTCOMES; i++) {
        const int wide = (int)strlen(outcomes[i].head);
        if (count[i])
            fprintf(to, "  %*zu", wide, count[i]);
        else
            fprintf(to, "  %*s", wide, "-");
    }
    fputc('\n', to);
}

static void put_summary(FILE *to, const void *set)
{
    const study_set *const s = set;
    size_t all[OUTCOMES] = {0};
    put_heads(to);
    for (size_t i = 0; i < s->n; i++)
        for (size_t t = 0; t < s->study[i]->ntables; t++) {
            const study_table *const table = &s->study[i]->tables[t];
            size_t count[OUTCOMES] = {0};
            for (size_t k = 0; k < table->nrows; k++) {
                const table_row *const row = &table->rows[k];
                const size_t at = outcome_of(row->source, row->verdict);
                count[at]++;
                all[at]++;
            }
            put_counts(to, t == 0 ? s->study[i]->name : "", table->name, count);
        }
    put_counts(to, "all", "", all);
}

pare_status study_set_summary(char **out, pare_arena *a, const study_set *s, pare_err *err)
{
    return print_text(out, a, put_summary, s, err);
}
