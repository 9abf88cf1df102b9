/* study_errata: a table for each class of errata, a row for each statement. A statement that
 * turns out to hold on its counter-example says so. */
#include "study_errata.h"
#include <math.h>
#include <string.h>

const errata *const errata_lists[ERRATA_LISTS] = {&errata_lemmas, &errata_depth, &errata_width,
                                                  &errata_ticket, &errata_length};

static const struct group {
    row_verdict class;
    const char *about;
} groups[] = {
    {MISPRINT, "a counter-example inside the hypotheses"},
    {STEP_FALSE, "a step of a proof fails; that alone does not refute its theorem"},
    {IMPRECISE, "true but weaker than it looks, or open to a reading that is false"},
};
enum { GROUPS = sizeof groups / sizeof *groups };

void softmax_of(double *p, const double *a, size_t n)
{
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++) top = fmax(top, a[i]);
    for (size_t i = 0; i < n; i++) sum += p[i] = exp(a[i] - top);
    for (size_t i = 0; i < n; i++) p[i] /= sum;
}

double variation_of(const double *p, const double *q, size_t n)
{
    double t = 0;
    for (size_t i = 0; i < n; i++) t += fabs(p[i] - q[i]) / 2;
    return t;
}

const char *erratum_class(row_verdict class)
{
    return outcomes[outcome_of(ROW_PRINTED, class)].word;
}

/* ---- a row ----------------------------------------------------------------------------------- */

const erratum *erratum_of(const char *test)
{
    for (size_t k = 0; k < ERRATA_LISTS; k++)
        for (size_t i = 0; i < errata_lists[k]->n; i++)
            if (strcmp(errata_lists[k]->v[i].test, test) == 0) return &errata_lists[k]->v[i];
    return NULL;
}

pare_status erratum_evaluate(sides *out, const erratum *e, pare_err *err)
{
    *out = (sides){e->at[0], NAN, NAN, false};
    if (e->hand) *out = e->hand();
    return e->look ? e->look(out, e, err) : PARE_OK;
}

bool erratum_refuted(const erratum *e, const sides *s)
{
    const double slack = 1e-9 * (fabs(s->printed) + fabs(s->is));
    if (s->outside) return false;
    if (e->claim == AT_MOST) return s->is > s->printed + slack;
    if (e->claim == AT_LEAST) return s->is < s->printed - slack;
    return fabs(s->is - s->printed) > slack;
}

static void put_erratum(table_writer *s, const erratum *e, const sides *v)
{
    static const char *const relation[] = {"at most", "at least", "equal to"};
    const bool unseen = isnan(v->printed) || isnan(v->is);
    const row_verdict verdict = unseen                               ? NOT_MADE
                                : e->stands || erratum_refuted(e, v) ? e->class
                                                                     : REPRODUCED;
    char seen[60] = "is not computed here", holds[60] = "";
    if (s->st) return;
    if (!unseen) snprintf(seen, sizeof seen, "is %.4g", v->is);
    if (!isnan(v->holds)) snprintf(holds, sizeof holds, " (here: %.4g)", v->holds);
    add_row(s,
            (table_row){.source = ROW_PRINTED,
                        .data = e->paper,
                        .what = pare_sprintf(s->r->arena, "%s: %s", e->where, e->says),
                        .published = v->printed,
                        .published_std = NAN,
                        .ours = v->is,
                        .ours_std = NAN,
                        .verdict = verdict,
                        .note = pare_sprintf(s->r->arena, "%s: %s %.*g, %s. Holds: %s%s. Test: %s",
                                             e->example, relation[e->claim], unseen ? 6 : 4,
                                             v->printed, seen, e->instead, holds, e->test),
                        .from = ""});
}

/* ---- the study ------------------------------------------------------------------------------- */

static size_t all_lists(bool full)
{
    (void)full;
    return ERRATA_LISTS;
}

enum { EACH = 4 }; /* numbers of a row in its run's file */

static pare_status run(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                       pare_err *err)
{
    const errata *const list = errata_lists[part];
    (void)s; /* the same for any seed */
    for (size_t i = 0; i < list->n; i++) {
        sides v;
        const pare_status st = erratum_evaluate(&v, &list->v[i], err);
        if (st) {
            pare_err_prefix(err, list->v[i].where);
            return st;
        }
        number_put(out, v.printed);
        number_put(out, v.is);
        number_put(out, v.holds);
        number_put(out, v.outside);
        const pare_status stopped = pare_progress(exec, "", i + 1, list->n, err);
        if (stopped) return stopped;
    }
    return PARE_OK;
}

static size_t rows_of(row_verdict class)
{
    size_t n = 0;
    for (size_t k = 0; k < ERRATA_LISTS; k++)
        for (size_t i = 0; i < errata_lists[k]->n; i++) n += errata_lists[k]->v[i].class == class;
    return n;
}

static void put_group(table_writer *s, const struct group *g, const numbers *part)
{
    begin_table(s, erratum_class(g->class), g->about, -4, rows_of(g->class));
    for (size_t k = 0; k < ERRATA_LISTS; k++)
        for (size_t i = 0; i < errata_lists[k]->n; i++) {
            const double *const v = part[k].v + EACH * i;
            const sides both = {v[0], v[1], v[2], v[3] != 0};
            if (errata_lists[k]->v[i].class == g->class)
                put_erratum(s, &errata_lists[k]->v[i], &both);
        }
}

static void tables(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    (void)of;
    for (size_t k = 0; k < n && !s->st; k++)
        if (part[k].n != EACH * errata_lists[k]->n)
            s->st = pare_fail(s->err, PARE_ERR_INPUT,
                              "%s/runs: is of another version; -f makes it again", s->r->folder);
    for (size_t g = 0; g < GROUPS && !s->st; g++) put_group(s, &groups[g], part);
}

static const experiment examples = {
    .stem = "errata", .parts = all_lists, .cost = 1, .run = run, .table = tables};

const char *errata_part(size_t i)
{
    return i == 0 ? examples.stem : NULL;
}

static pare_status make(study_context *f)
{
    static const experiment *const list[] = {&examples};
    const setting s = {.seed = f->o->seed, .full = f->o->full};
    size_t count[GROUPS];
    for (size_t g = 0; g < GROUPS; g++) count[g] = rows_of(groups[g].class);
    pare_status st = make_study_folders(f);
    if (!st) st = allocate_tables(f, GROUPS, 0, 2);
    st = run_experiments(f, list, 1, &s, "repro errata 2", st);
    if (st) return st;
    char *const counts =
        pare_sprintf(f->r->arena, "rows by class: %zu %s; %zu %s; %zu %s", count[0],
                     erratum_class(groups[0].class), count[1], erratum_class(groups[1].class),
                     count[2], erratum_class(groups[2].class));
    if (!counts) return pare_no_memory(f->err);
    f->r->notes[f->r->nnotes++] =
        "printed: what the statement says of the example; ours: what is. docs/errata.md";
    f->r->notes[f->r->nnotes++] = counts;
    return PARE_OK;
}

pare_status study_errata(study **out, const study_opts *o, const pare_exec *exec,
                         const pare_ranks *ranks, pare_err *err)
{
    study_context f;
    pare_status st = study_begin(&f, "errata", o, exec, ranks, err);
    if (!st) st = make(&f);
    return study_end(out, &f, st);
}
