/* study_errata.c - a table for each class of errata, a row for each statement. A statement that
 * turns out to hold on its counter-example says so. */
#include "experiments.h"
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
    return e->evaluate ? e->evaluate(out, e, err) : PARE_OK;
}

bool erratum_refuted(const erratum *e, const sides *s)
{
    const double slack = 1e-9 * (fabs(s->printed) + fabs(s->is));
    if (s->outside) return false;
    if (e->claim == AT_MOST) return s->is > s->printed + slack;
    if (e->claim == AT_LEAST) return s->is < s->printed - slack;
    return fabs(s->is - s->printed) > slack;
}

/* ---- the study ------------------------------------------------------------------------------- */

enum { EACH = 4 }; /* numbers of a row in its run's file */

static pare_status errata_run(trial *t)
{
    const errata *const list = errata_lists[t->part]; /* the same for any seed */
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < list->n; i++) {
        sides v;
        st = erratum_evaluate(&v, &list->v[i], t->err);
        if (st) {
            pare_err_prefix(t->err, list->v[i].where);
            return st;
        }
        append_numbers(t, (double[]){v.printed, v.is, v.holds, v.outside}, EACH);
        st = trial_progress(t, i + 1, list->n);
    }
    return st;
}

static void put_erratum(table_writer *w, const erratum *e, const sides *v)
{
    static const char *const relation[] = {"at most", "at least", "equal to"};
    const bool unseen = isnan(v->printed) || isnan(v->is);
    const row_verdict verdict = unseen                               ? NOT_MADE
                                : e->stands || erratum_refuted(e, v) ? e->class
                                                                     : REPRODUCED;
    char seen[60] = "is not computed here", holds[60] = "";
    if (!unseen) snprintf(seen, sizeof seen, "is %.4g", v->is);
    if (!isnan(v->holds)) snprintf(holds, sizeof holds, " (here: %.4g)", v->holds);
    row_printed(
        w, e->paper, row_text(w, "%s: %s", e->where, e->says), v->printed, NULL, v->is, verdict,
        row_text(w, "%s: %s %.*g, %s. Holds: %s%s. Test: %s", e->example, relation[e->claim],
                 unseen ? 6 : 4, v->printed, seen, e->instead, holds, e->test));
}

static void errata_tables(table_writer *w, const numbers *part, size_t n)
{
    for (size_t k = 0; k < n && !w->st; k++)
        if (part[k].n != EACH * errata_lists[k]->n)
            w->st = pare_fail(w->err, PARE_ERR_INPUT,
                              "%s/runs: is of another version; -f makes it again", w->r->folder);
    for (size_t g = 0; g < GROUPS && !w->st; g++) {
        begin_table(w, erratum_class(groups[g].class), groups[g].about, -4);
        for (size_t k = 0; k < n; k++)
            for (size_t i = 0; i < errata_lists[k]->n; i++) {
                const double *const v = part[k].v + EACH * i;
                if (errata_lists[k]->v[i].class == groups[g].class)
                    put_erratum(w, &errata_lists[k]->v[i], &(sides){v[0], v[1], v[2], v[3] != 0});
            }
    }
}

static const experiment examples = {.file_prefix = "errata",
                                    .parts = ERRATA_LISTS,
                                    .cost = 1,
                                    .run = errata_run,
                                    .table = errata_tables};

const char *errata_part(size_t i)
{
    return i == 0 ? examples.file_prefix : NULL;
}

pare_status study_errata(study **out, const study_opts *o, const pare_exec *exec,
                         const pare_ranks *ranks, pare_err *err)
{
    static const experiment *const list[] = {&examples};
    const setting s = {.seed = o->seed, .full = o->full};
    study_context c;
    pare_status st = study_begin(&c, "errata", o, exec, ranks, err);
    if (!st) st = run_experiments(&c, list, 1, &s, "repro errata 2", make_study_folders(&c));
    if (!st)
        st = add_note(
            &c, "printed: what the statement says of the example; ours: what is. docs/errata.md");
    if (!st && c.r->ntables == GROUPS) {
        const study_table *const t = c.r->tables;
        st = add_note(&c,
                      pare_sprintf(c.r->arena, "rows by class: %zu %s; %zu %s; %zu %s", t[0].nrows,
                                   t[0].name, t[1].nrows, t[1].name, t[2].nrows, t[2].name));
    }
    return study_end(out, &c, st);
}
