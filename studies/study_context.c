/* study_context.c - what every study has (study.h): its arena, its folders, its jobs, its
 * tables. */
#include "study.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

pare_status study_allocate(study *r, pare_err *err)
{
    r->tables = pare_alloc(r->arena, MOST_TABLES, sizeof *r->tables);
    r->series = pare_alloc(r->arena, MOST_SERIES, sizeof *r->series);
    r->curves = pare_alloc(r->arena, MOST_CURVES, sizeof *r->curves);
    r->notes = pare_alloc(r->arena, MOST_NOTES, sizeof *r->notes);
    return r->tables && r->series && r->curves && r->notes ? PARE_OK : pare_no_memory(err);
}

pare_status study_begin(study_context *c, const char *name, const study_opts *o,
                        const pare_exec *exec, const pare_ranks *ranks, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    study *const r = a ? pare_alloc(a, 1, sizeof *r) : NULL;
    *c = (study_context){
        .r = r, .o = o, .exec = exec, .ranks = ranks, .err = err, .all = {.name = name}};
    if (r) *r = (study){.name = name, .full = o->full, .seed = o->seed, .arena = a};
    if (r) r->folder = pare_strdup(a, o->folder);
    const pare_status st = r && r->folder ? study_allocate(r, err) : pare_no_memory(err);
    if (!r) pare_arena_free(a);
    return pare_ranks_agree(ranks, st, err);
}

pare_status study_end(study **out, study_context *c, pare_status st)
{
    study *const r = c->r;
    if (!st && !(r->line = study_command(c, NULL))) st = pare_no_memory(c->err);
    /* What nobody gave a command of its own is made by the study's. */
    for (size_t i = 0; !st && i < r->ntables; i++)
        if (!r->tables[i].command) r->tables[i].command = r->line;
    *out = st ? NULL : r;
    if (st) study_free(r);
    return st;
}

bool is_first_rank(const study_context *c)
{
    return pare_ranks_rank(c->ranks) == 0;
}

pare_status add_note(study_context *c, const char *line)
{
    if (!line) return pare_no_memory(c->err);
    PARE_ASSERT(c->r->nnotes < MOST_NOTES);
    c->r->notes[c->r->nnotes++] = line;
    return PARE_OK;
}

/* ---- parts ----------------------------------------------------------------------------------- */

bool names_part(const char *only, const char *part)
{
    const size_t n = strlen(part);
    for (const char *at = only; at && *at; at += strcspn(at, ",")) {
        if (*at == ',') at++;
        if (strcspn(at, ",") == n && strncmp(at, part, n) == 0) return true;
    }
    return !only;
}

bool wants_part(const study_context *c, const char *part)
{
    return names_part(c->o->only, part);
}

/* Only what is not the default, so that it is short where it can be. */
const char *study_command(const study_context *c, const char *part)
{
    static const study_opts none = STUDY_OPTS_DEFAULT;
    const study_opts *const o = c->o;
    pare_arena *const a = c->r->arena;
    const char *const only = part ? part : o->only;
    const struct {
        const char *name;
        size_t is, was;
    } number[] = {{"large", o->large, none.large},
                  {"runs", o->small, none.small},
                  {"epochs", o->epochs, none.epochs},
                  {"side", o->side, none.side}};
    char *line = pare_sprintf(a, "pare repro %s%s%s%s", c->r->name, only ? " --only " : "",
                              only ? only : "", o->full ? " --full" : "");
    if (line && o->model) line = pare_sprintf(a, "%s --model %s", line, o->model);
    for (size_t i = 0; line && i < o->ndata; i++)
        line = pare_sprintf(a, "%s --data %s", line, o->data[i]);
    for (size_t i = 0; line && i < sizeof number / sizeof *number; i++)
        if (number[i].is != number[i].was)
            line = pare_sprintf(a, "%s --%s %zu", line, number[i].name, number[i].is);
    if (line && o->seed)
        line = pare_sprintf(a, "%s --seed %llu", line, (unsigned long long)o->seed);
    return line;
}

/* ---- folders and jobs ------------------------------------------------------------------------ */

pare_status make_folder(const char *path, pare_err *err)
{
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && pare_is_dir(path))) return PARE_OK;
    return pare_fail(err, PARE_ERR_IO, "%s: %s", path,
                     errno == EEXIST ? "is there, and no folder" : strerror(errno));
}

pare_status make_study_folders(study_context *c)
{
    c->runs = pare_sprintf(c->r->arena, "%s/runs", c->r->folder);
    if (!c->runs) return pare_no_memory(c->err);
    if (!is_first_rank(c)) return PARE_OK;
    const pare_status st = make_folder(c->r->folder, c->err);
    return st ? st : make_folder(c->runs, c->err);
}

pare_status new_jobs(study_context *c, jobs *b, size_t n)
{
    *b = (jobs){.job = pare_alloc(c->r->arena, n ? n : 1, sizeof *b->job)};
    return b->job ? PARE_OK : pare_no_memory(c->err);
}

pare_status do_jobs(study_context *c, jobs *b, pare_status st)
{
    st = pare_ranks_agree(c->ranks, st, c->err);
    if (st) return st;
    b->folder = c->runs;
    b->again = c->o->again;
    b->note = is_first_rank(c) ? c->o->note : NULL;
    b->state = is_first_rank(c) ? c->o->state : NULL;
    b->note_self = c->o->self;
    b->all = &c->all;
    st = jobs_run(b, c->r->arena, c->exec, c->ranks, c->err);
    c->r->jobs += b->n;
    for (size_t i = 0; i < b->n; i++) c->r->found += b->job[i].found;
    return st;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void begin_table(table_writer *w, const char *name, const char *about, int digits)
{
    if (w->st) return;
    PARE_ASSERT(w->r->ntables < MOST_TABLES);
    w->t = &w->r->tables[w->r->ntables++];
    *w->t = (study_table){.name = name, .about = about, .digits = digits};
    w->capacity = 0;
}

void add_row(table_writer *w, table_row row)
{
    if (!w->st && (!row.data || !row.what || !row.note || !row.from))
        w->st = pare_no_memory(w->err);
    if (w->st) return;
    /* The column of the paper's numbers has no other ones in it, and no other row is reproduced
     * from a paper. */
    PARE_ASSERT(row.source == ROW_PRINTED || (isnan(row.published) && !row.claim));
    PARE_ASSERT(row.source != ROW_PRINTED || !isnan(row.published) || row.claim ||
                row.verdict == NOT_MADE);
    PARE_ASSERT(outcome_of(row.source, row.verdict) < OUTCOMES);
    if (row.source != ROW_REFERENCE && row.source != ROW_SELF) row.reference = NAN;
    if (w->t->nrows == w->capacity) {
        w->capacity = w->capacity ? 2 * w->capacity : 32;
        table_row *const more = pare_alloc(w->r->arena, w->capacity, sizeof *more);
        if (!more) {
            w->st = pare_no_memory(w->err);
            return;
        }
        if (w->t->nrows) memcpy(more, w->t->rows, w->t->nrows * sizeof *more);
        w->t->rows = more;
    }
    w->t->rows[w->t->nrows++] = row;
}

const char *row_text(table_writer *w, const char *fmt, ...)
{
    va_list args;
    if (w->st) return NULL;
    va_start(args, fmt);
    const int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *const text = n < 0 ? NULL : pare_alloc(w->r->arena, (size_t)n + 1, 1);
    if (!text) {
        w->st = pare_no_memory(w->err);
        return NULL;
    }
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}
