/* Experiments: their jobs, the numbers these leave, and the tables made of them. */
#include "experiments.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

void number_put(numbers *to, double v)
{
    if (to->n == to->room) {
        const size_t room = to->room ? 2 * to->room : 64;
        double *const more = pare_alloc(to->a, room, sizeof *more);
        if (!more) {
            to->no_memory = true;
            return;
        }
        if (to->n) memcpy(more, to->v, to->n * sizeof *more);
        to->v = more;
        to->room = room;
    }
    to->v[to->n++] = v;
}

double log_slope(const double *x, const double *y, size_t n)
{
    double mx = 0, my = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < n; i++) {
        mx += log(x[i]) / (double)n;
        my += log(y[i]) / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xx += (log(x[i]) - mx) * (log(x[i]) - mx);
        xy += (log(x[i]) - mx) * (log(y[i]) - my);
    }
    return xy / xx;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static table_row row_of(const char *data, const char *what, double ours)
{
    return (table_row){.data = data,
                       .what = what,
                       .published = NAN,
                       .published_std = NAN,
                       .ours = ours,
                       .ours_std = NAN,
                       .verdict = ADDED,
                       .note = "",
                       .from = "",
                       .reference = NAN};
}

/* A row of our own reference says how near is near. */
static void put_reference(table_writer *s, table_row row, double reference, bool near,
                          const char *within)
{
    row.source = ROW_REFERENCE;
    row.reference = reference;
    row.verdict = near ? REPRODUCED : DIFFERS;
    row.note = within;
    add_row(s, row);
}

void row_ours(table_writer *s, const char *data, const char *what, double ours)
{
    add_row(s, row_of(data, what, ours));
}

void row_ratio(table_writer *s, const char *data, const char *what, double reference, double ours,
               double factor)
{
    if (s->st) return;
    if (isnan(reference)) {
        row_ours(s, data, what, ours);
        return;
    }
    put_reference(s, row_of(data, what, ours), reference,
                  ours <= factor * reference && reference <= factor * ours,
                  pare_sprintf(s->r->arena, "within a factor %g%s", factor,
                               factor > 2 ? ", the spread of nine seeds" : ""));
}

void row_at_most(table_writer *s, const char *data, const char *what, double reference, double ours,
                 double factor)
{
    if (s->st) return;
    put_reference(s, row_of(data, what, ours), reference, ours <= factor * reference,
                  pare_sprintf(s->r->arena, "at most %g times: the spread of nine seeds", factor));
}

void row_near(table_writer *s, const char *data, const char *what, double reference, double ours,
              double within)
{
    if (s->st) return;
    put_reference(s, row_of(data, what, ours), reference, fabs(ours - reference) <= within,
                  pare_sprintf(s->r->arena, "within %g", within));
}

/* A yes is a 1. */
static table_row yes_or_number(const char *data, const char *what, bool holds, double ours)
{
    table_row row = row_of(data, what, isnan(ours) ? holds : ours);
    row.reference = isnan(ours) ? 1 : NAN;
    row.verdict = holds ? REPRODUCED : DIFFERS;
    return row;
}

static const char shape_note[] = "shape";

void row_shape(table_writer *s, const char *data, const char *what, bool holds, double ours)
{
    const table_row row = yes_or_number(data, what, holds, ours);
    put_reference(s, row, row.reference, holds, shape_note);
}

void row_holds(table_writer *s, const char *data, const char *what, bool holds, double ours)
{
    table_row row = yes_or_number(data, what, holds, ours);
    row.source = ROW_SELF;
    add_row(s, row);
}

void row_printed(table_writer *s, const char *data, const char *what, double published, double ours,
                 row_verdict verdict, const char *note)
{
    table_row row = row_of(data, what, ours);
    row.source = ROW_PRINTED;
    row.published = published;
    row.verdict = verdict;
    row.note = note;
    add_row(s, row);
}

void row_claim(table_writer *s, const char *data, const char *what, const char *claim, double ours,
               row_verdict verdict, const char *note)
{
    table_row row = row_of(data, what, ours);
    row.source = ROW_PRINTED;
    row.claim = claim;
    row.verdict = verdict;
    row.note = note;
    add_row(s, row);
}

void row_curve(table_writer *s, const char *data, const char *what, const double *x,
               const double *y, size_t n)
{
    if (s->st) return;
    PARE_ASSERT(s->r->ncurves < MOST_CURVES);
    figure_curve *const c = &s->r->curves[s->r->ncurves++];
    double *const v = pare_alloc(s->r->arena, 2 * n + 1, sizeof *v);
    *c = (figure_curve){s->t->name, data, what, n, v, v + n};
    if (!v) {
        s->st = pare_no_memory(s->err);
        s->r->ncurves--;
        return;
    }
    memcpy(v, x, n * sizeof *v);
    memcpy(v + n, y, n * sizeof *v);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

typedef struct task {
    const experiment *e;
    size_t part;
} task;

static pare_status run_job(void *self, const job *j, cJSON *result, const pare_exec *exec,
                           pare_err *err)
{
    const task *const t = j->own;
    numbers out = {.a = pare_arena_new()};
    pare_status st = out.a ? t->e->run(&out, self, t->part, exec, err) : pare_no_memory(err);
    cJSON *const list = st ? NULL : pare_json_add_array(result, "values");
    if (!st && (!list || out.no_memory)) st = pare_no_memory(err);
    /* JSON has no infinities and no nan: as text */
    for (size_t i = 0; !st && i < out.n; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.17g", out.v[i]);
        if (!pare_json_add_string(list, NULL, text)) st = pare_no_memory(err);
    }
    pare_arena_free(out.a);
    return st;
}

static pare_status read_values(numbers *out, const job *j, pare_err *err)
{
    const cJSON *const list = cJSON_GetObjectItemCaseSensitive(j->result, "values"), *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return pare_fail(err, PARE_ERR_INPUT, "%s.json: values: not numbers in text", j->stem);
        number_put(out, strtod(item->valuestring, NULL));
    }
    if (out->n == 0) return pare_fail(err, PARE_ERR_INPUT, "%s.json: no values", j->stem);
    return out->no_memory ? pare_no_memory(err) : PARE_OK;
}

static bool wanted(const study_context *f, const experiment *e, const setting *s)
{
    return wants_part(f, e->stem) && (!e->trained || s->trained);
}

typedef struct batch { /* of experiments */
    const experiment *const *list;
    size_t n;
    const char *label;
} batch;

static pare_status list_jobs(study_context *f, jobs *b, const batch *of, const setting *s)
{
    pare_arena *const a = f->r->arena;
    for (size_t i = 0; i < of->n; i++) {
        const experiment *const e = of->list[i];
        for (size_t p = 0; wanted(f, e, s) && p < e->parts(s->full); p++) {
            job *const j = &b->job[b->n++];
            task *const t = pare_alloc(a, 1, sizeof *t);
            j->name = pare_sprintf(a, "%s-%02zu", e->stem, p);
            j->what = pare_sprintf(a, "%s: %s, part %zu, %s, seed %llu%s%s", of->label, e->stem, p,
                                   s->full ? "full" : "quick", (unsigned long long)s->seed,
                                   e->trained ? ", of " : "", e->trained ? s->trained_name : "");
            j->cost = e->cost;
            j->own = t;
            if (!t || !j->name || !j->what) return pare_no_memory(f->err);
            *t = (task){e, p};
        }
    }
    return PARE_OK;
}

static size_t count_jobs(const study_context *f, const batch *of, const setting *s)
{
    size_t n = 0;
    for (size_t i = 0; i < of->n; i++)
        if (wanted(f, of->list[i], s)) n += of->list[i]->parts(s->full);
    return n;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static pare_status make_tables(study_context *f, const jobs *b, const batch *of, const setting *s)
{
    study *const r = f->r;
    table_writer sh = {.r = r, .err = f->err};
    const job *at = b->job;
    for (size_t i = 0; !sh.st && i < of->n; i++) {
        const experiment *const e = of->list[i];
        if (!wanted(f, e, s)) continue;
        const size_t n = e->parts(s->full);
        numbers *const part = pare_alloc(r->arena, n, sizeof *part);
        if (!part) return pare_no_memory(f->err);
        for (size_t p = 0; !sh.st && p < n; p++, at++) {
            part[p].a = r->arena;
            sh.st = read_values(&part[p], at, f->err);
        }
        const size_t first = r->ntables;
        if (!sh.st) e->table(&sh, part, n, s);
        char *const from =
            sh.st ? NULL : pare_sprintf(r->arena, "%s/runs/%s-*.json", r->folder, e->stem);
        const char *const command = from ? study_command(f, e->stem) : NULL;
        if (!sh.st && !command) sh.st = pare_no_memory(f->err);
        for (size_t t = first; !sh.st && t < r->ntables; t++) {
            r->tables[t].command = command;
            for (size_t k = 0; k < r->tables[t].nrows; k++) r->tables[t].rows[k].from = from;
        }
    }
    return sh.st;
}

pare_status run_experiments(study_context *f, const experiment *const *list, size_t n,
                            const setting *s, const char *label, pare_status st)
{
    jobs b = {0};
    setting copy = *s; /* jobs borrow it */
    const batch of = {list, n, label};
    if (!st) st = new_jobs(f, &b, count_jobs(f, &of, s));
    if (!st) st = list_jobs(f, &b, &of, s);
    b.title = "experiments";
    b.run = run_job;
    b.self = &copy;
    st = do_jobs(f, &b, st);
    if (!st) st = make_tables(f, &b, &of, s);
    jobs_close(&b);
    return st;
}

pare_status allocate_tables(study_context *f, size_t tables, size_t curves, size_t notes)
{
    study *const r = f->r;
    r->tables = pare_alloc(r->arena, tables, sizeof *r->tables);
    r->curves = pare_alloc(r->arena, MOST_CURVES + curves, sizeof *r->curves);
    r->notes = pare_alloc(r->arena, notes, sizeof *r->notes);
    return r->tables && r->curves && r->notes ? PARE_OK : pare_no_memory(f->err);
}

const char *count_shapes(const study *r)
{
    size_t shapes[2] = {0, 0}, held[2] = {0, 0}; /* of our reference; of this run by itself */
    for (size_t i = 0; i < r->ntables; i++)
        for (size_t k = 0; k < r->tables[i].nrows; k++) {
            const table_row *const row = &r->tables[i].rows[k];
            const bool self = row->source == ROW_SELF;
            if (!self && strcmp(row->note, shape_note) != 0) continue;
            shapes[self]++;
            held[self] += row->verdict == REPRODUCED;
        }
    return pare_sprintf(r->arena,
                        "shapes: %zu of %zu as expected; proofs and plans: %zu of %zu "
                        "hold",
                        held[0], shapes[0], held[1], shapes[1]);
}
