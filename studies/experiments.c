/* experiments.c - the jobs of experiments, the numbers these leave, and the tables made of them. */
#include "experiments.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

void append_number(numbers *to, double v)
{
    if (to->n == to->capacity) {
        const size_t capacity = to->capacity ? 2 * to->capacity : 64;
        double *const more = pare_alloc(to->a, capacity, sizeof *more);
        if (!more) {
            to->no_memory = true;
            return;
        }
        if (to->n) memcpy(more, to->v, to->n * sizeof *more);
        to->v = more;
        to->capacity = capacity;
    }
    to->v[to->n++] = v;
}

void append_numbers(trial *t, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) append_number(&t->out, v[i]);
}

pare_status trial_progress(const trial *t, size_t done, size_t total)
{
    return pare_progress(t->exec, "", done, total, t->err);
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

table_row row_of(const char *data, const char *what, double ours)
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

void row_ours(table_writer *w, const char *data, const char *what, double ours)
{
    add_row(w, row_of(data, what, ours));
}

/* A row that is compared with something of our own; the note says how near is near. */
static void add_compared(table_writer *w, table_row row, row_class source, double reference,
                         bool agrees, const char *note)
{
    row.source = source;
    row.reference = reference;
    row.verdict = agrees ? REPRODUCED : DIFFERS;
    row.note = note;
    add_row(w, row);
}

void row_ratio(table_writer *w, const char *data, const char *what, double reference, double ours,
               double factor)
{
    if (isnan(reference))
        row_ours(w, data, what, ours);
    else
        add_compared(w, row_of(data, what, ours), ROW_REFERENCE, reference,
                     ours <= factor * reference && reference <= factor * ours,
                     row_text(w, "within a factor %g%s", factor,
                              factor > 2 ? ", the spread of nine seeds" : ""));
}

void row_at_most(table_writer *w, const char *data, const char *what, double reference, double ours,
                 double factor)
{
    add_compared(w, row_of(data, what, ours), ROW_REFERENCE, reference, ours <= factor * reference,
                 row_text(w, "at most %g times: the spread of nine seeds", factor));
}

void row_near(table_writer *w, const char *data, const char *what, double reference, double ours,
              double within)
{
    add_compared(w, row_of(data, what, ours), ROW_REFERENCE, reference,
                 fabs(ours - reference) <= within, row_text(w, "within %g", within));
}

static const char shape_note[] = "shape";

/* Without a number of ours a yes is a 1, and a 1 is expected. */
void row_shape(table_writer *w, const char *data, const char *what, bool holds, double ours)
{
    add_compared(w, row_of(data, what, isnan(ours) ? holds : ours), ROW_REFERENCE,
                 isnan(ours) ? 1 : NAN, holds, shape_note);
}

void row_holds(table_writer *w, const char *data, const char *what, bool holds, double ours)
{
    add_compared(w, row_of(data, what, isnan(ours) ? holds : ours), ROW_SELF, isnan(ours) ? 1 : NAN,
                 holds, "");
}

void row_printed(table_writer *w, const char *data, const char *what, double published,
                 const char *claim, double ours, row_verdict verdict, const char *note)
{
    table_row row = row_of(data, what, ours);
    row.source = ROW_PRINTED;
    row.published = published;
    row.claim = claim;
    row.verdict = verdict;
    row.note = note;
    add_row(w, row);
}

void row_curve(table_writer *w, const char *data, const char *what, const double *x,
               const double *y, size_t n)
{
    if (w->st) return;
    PARE_ASSERT(w->r->ncurves < MOST_CURVES);
    double *const v = pare_alloc(w->r->arena, 2 * n + 1, sizeof *v);
    if (!v) {
        w->st = pare_no_memory(w->err);
        return;
    }
    memcpy(v, x, n * sizeof *v);
    memcpy(v + n, y, n * sizeof *v);
    w->r->curves[w->r->ncurves++] = (figure_curve){w->t->name, data, what, n, v, v + n};
}

/* ---- jobs ------------------------------------------------------------------------------------ */

typedef struct task {
    const experiment *e;
    size_t part;
} task;

static pare_status run_task(void *self, const job *j, cJSON *result, const pare_exec *exec,
                            pare_err *err)
{
    const task *const of = j->own;
    trial t = {.s = self,
               .part = of->part,
               .a = pare_arena_new(),
               .exec = exec,
               .err = err,
               .out = {.a = pare_arena_new()}};
    pare_status st = t.a && t.out.a ? of->e->run(&t) : pare_no_memory(err);
    cJSON *const list = st ? NULL : pare_json_add_array(result, "values");
    if (!st && (!list || t.out.no_memory)) st = pare_no_memory(err);
    /* JSON has no infinities and no nan: as text */
    for (size_t i = 0; !st && i < t.out.n; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.17g", t.out.v[i]);
        if (!pare_json_add_string(list, NULL, text)) st = pare_no_memory(err);
    }
    pare_arena_free(t.a);
    pare_arena_free(t.out.a);
    return st;
}

static pare_status read_values(numbers *out, const job *j, pare_err *err)
{
    const cJSON *const list = cJSON_GetObjectItemCaseSensitive(j->result, "values"), *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return pare_fail(err, PARE_ERR_INPUT, "%s.json: values: not numbers in text",
                             j->file_prefix);
        append_number(out, strtod(item->valuestring, NULL));
    }
    if (out->n == 0) return pare_fail(err, PARE_ERR_INPUT, "%s.json: no values", j->file_prefix);
    return out->no_memory ? pare_no_memory(err) : PARE_OK;
}

size_t experiment_parts(const experiment *e, bool full)
{
    return full && e->parts_full ? e->parts_full : e->parts;
}

/* Jobs of an experiment; 0 where it is not wanted or its model is missing. */
static size_t count_jobs(const study_context *c, const experiment *e, const setting *s)
{
    const bool wanted = wants_part(c, e->file_prefix) && (!e->trained || s->trained);
    return wanted ? experiment_parts(e, s->full) : 0;
}

/* The table of an experiment, from the results of its jobs. Its rows name the files they come
 * from. */
static pare_status add_table(study_context *c, const experiment *e, const job *first, size_t n,
                             const setting *s)
{
    study *const r = c->r;
    table_writer w = {.r = r, .err = c->err, .s = s};
    const size_t before = r->ntables;
    numbers *const part = pare_alloc(r->arena, n, sizeof *part);
    const char *const from = row_text(&w, "%s/runs/%s-*.json", r->folder, e->file_prefix);
    const char *const command = study_command(c, e->file_prefix);
    if (!part || !command) return pare_no_memory(c->err);
    for (size_t p = 0; !w.st && p < n; p++) {
        part[p].a = r->arena;
        w.st = read_values(&part[p], &first[p], c->err);
    }
    if (!w.st) e->table(&w, part, n);
    for (size_t t = before; !w.st && t < r->ntables; t++) {
        r->tables[t].command = command;
        for (size_t k = 0; k < r->tables[t].nrows; k++) r->tables[t].rows[k].from = from;
    }
    return w.st;
}

pare_status run_experiments(study_context *c, const experiment *const *list, size_t n,
                            const setting *s, const char *label, pare_status st)
{
    pare_arena *const a = c->r->arena;
    setting shared = *s; /* jobs borrow it */
    jobs b = {0};
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += count_jobs(c, list[i], s);
    if (!st) st = new_jobs(c, &b, count);
    for (size_t i = 0; i < n; i++)
        for (size_t p = 0; !st && p < count_jobs(c, list[i], s); p++) {
            const experiment *const e = list[i];
            job *const j = &b.job[b.n++];
            task *const t = pare_alloc(a, 1, sizeof *t);
            j->name = pare_sprintf(a, "%s-%02zu", e->file_prefix, p);
            j->what = pare_sprintf(a, "%s: %s, part %zu, %s, seed %llu%s%s", label, e->file_prefix,
                                   p, s->full ? "full" : "quick", (unsigned long long)s->seed,
                                   e->trained ? ", of " : "", e->trained ? s->trained_name : "");
            j->cost = e->cost;
            j->own = t;
            if (!t || !j->name || !j->what)
                st = pare_no_memory(c->err);
            else
                *t = (task){e, p};
        }
    b.title = "experiments";
    b.run = run_task;
    b.self = &shared;
    st = do_jobs(c, &b, st);
    const job *at = b.job;
    for (size_t i = 0; !st && i < n; i++) {
        const size_t parts = count_jobs(c, list[i], s);
        if (parts) st = add_table(c, list[i], at, parts, s);
        at += parts;
    }
    jobs_close(&b);
    return st;
}

pare_status note_shapes(study_context *c)
{
    const study *const r = c->r;
    size_t shapes[2] = {0, 0}, held[2] = {0, 0}; /* of our reference; of this run by itself */
    for (size_t i = 0; i < r->ntables; i++)
        for (size_t k = 0; k < r->tables[i].nrows; k++) {
            const table_row *const row = &r->tables[i].rows[k];
            const bool self = row->source == ROW_SELF;
            if (!self && strcmp(row->note, shape_note) != 0) continue;
            shapes[self]++;
            held[self] += row->verdict == REPRODUCED;
        }
    return add_note(c, pare_sprintf(r->arena,
                                    "shapes: %zu of %zu as expected; proofs and plans: %zu of %zu "
                                    "hold",
                                    held[0], shapes[0], held[1], shapes[1]));
}
