/* pare_repro_errata: tables for each paper, a row for each statement that is false as printed. A
 * statement that turns out to hold on its example says so. */
#include "repro_errata.h"
#include <math.h>

static const struct paper {
    const char *name, *about;
    const errata *list;
} papers[] = {
    {"width", "statements of the width paper: as printed, and on a counter-example", &errata_width},
    {"depth: lemmas", "facts and lemmas of the depth paper: as printed, and on a counter-example",
     &errata_lemmas},
    {"depth: networks",
     "what the depth paper says of networks: as printed, and on a counter-example", &errata_depth},
    {"ticket", "statements of the ticket paper: as printed, and on a counter-example",
     &errata_ticket},
    {"length", "statements of the length paper: as printed, and on a counter-example",
     &errata_length},
};
enum { PAPERS = sizeof papers / sizeof *papers };

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

/* ---- a paper --------------------------------------------------------------------------------- */

static pare_status look_at(numbers *out, const errata *list, const pare_exec *exec, pare_err *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const erratum *const e = &list->v[i];
        sides s = {NAN, NAN, NAN};
        const pare_status st = e->look ? e->look(&s, e, err) : PARE_OK;
        if (st) {
            pare_err_prefix(err, e->where);
            return st;
        }
        if (e->hand) s = e->hand();
        number_put(out, s.printed);
        number_put(out, s.is);
        number_put(out, s.holds);
        pare_progress(exec, "", i + 1, list->n);
    }
    return PARE_OK;
}

/* A rounding is no counter-example. */
static bool fails(claim c, double printed, double is)
{
    const double slack = 1e-9 * (fabs(printed) + fabs(is));
    if (c == AT_MOST) return is > printed + slack;
    if (c == AT_LEAST) return is < printed - slack;
    return fabs(is - printed) > slack;
}

static void put_erratum(sheet *s, const erratum *e, const double v[3])
{
    static const char *const relation[] = {"at most", "at least", "equal to"};
    const pare_verdict verdict = isnan(v[0]) || isnan(v[1])     ? PARE_NOT_MADE
                                 : !fails(e->claim, v[0], v[1]) ? PARE_REPRODUCED
                                 : e->open                      ? PARE_DIFFERS
                                                                : PARE_MISPRINT;
    char holds[60] = "";
    if (s->st) return;
    if (!isnan(v[2])) snprintf(holds, sizeof holds, " (here: %.4g)", v[2]);
    sheet_put(s, (pare_repro_row){.data = e->where,
                                  .what = e->says,
                                  .source = PARE_ROW_PRINTED,
                                  .published = v[0],
                                  .published_std = NAN,
                                  .ours = v[1],
                                  .ours_std = NAN,
                                  .verdict = verdict,
                                  .note = pare_sprintf(
                                      s->r->arena, "%s: %s %.4g, is %.4g. Holds: %s%s. Test: %s",
                                      e->example, relation[e->claim], v[0], v[1], e->instead, holds,
                                      e->test),
                                  .from = ""});
}

/* ---- the study ------------------------------------------------------------------------------- */

static size_t all_papers(bool full)
{
    (void)full;
    return PAPERS;
}

static pare_status run(numbers *out, const repro_study *s, size_t part, const pare_exec *exec,
                       pare_err *err)
{
    (void)s; /* the same for any seed */
    return look_at(out, papers[part].list, exec, err);
}

static void tables(sheet *s, const numbers *part, size_t n, const repro_study *of)
{
    (void)of;
    for (size_t p = 0; p < n && !s->st; p++) {
        if (part[p].n != 3 * papers[p].list->n) {
            s->st = pare_fail(s->err, PARE_ERR_INPUT,
                              "%s/runs: is of another version; -f makes it again", s->r->folder);
            return;
        }
        sheet_open(s, papers[p].name, papers[p].about, -4, papers[p].list->n);
        for (size_t i = 0; i < papers[p].list->n; i++)
            put_erratum(s, &papers[p].list->v[i], part[p].v + 3 * i);
    }
}

static const experiment examples = {
    .stem = "errata", .parts = all_papers, .cost = 1, .run = run, .table = tables};

const char *errata_part(size_t i)
{
    return i == 0 ? examples.stem : NULL;
}

static pare_status make(frame *f)
{
    static const experiment *const list[] = {&examples};
    const repro_study s = {.seed = f->o->seed, .full = f->o->full};
    pare_status st = frame_folders(f);
    if (!st) st = experiments_room(f, PAPERS, 0, 1);
    st = experiments_run(f, list, 1, &s, "repro errata 1", st);
    if (!st)
        f->r->notes[f->r->nnotes++] =
            "printed: what the statement says of the example; ours: what is. docs/errata.md";
    return st;
}

pare_status pare_repro_errata(pare_repro **out, const pare_repro_opts *o, const pare_exec *exec,
                              const pare_ranks *ranks, pare_err *err)
{
    frame f;
    pare_status st = frame_open(&f, "errata", o, exec, ranks, err);
    if (!st) st = make(&f);
    return frame_close(out, &f, st);
}
