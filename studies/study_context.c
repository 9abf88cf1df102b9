/* What every study has (study.h): its arena, its folders, its jobs, its tables. */
#include "study.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

pare_status study_begin(study_context *f, const char *name, const study_opts *o,
                        const pare_exec *exec, const pare_ranks *ranks, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    study *const r = a ? pare_alloc(a, 1, sizeof *r) : NULL;
    *f = (study_context){
        .r = r, .o = o, .exec = exec, .ranks = ranks, .err = err, .all = {.name = name}};
    if (r) *r = (study){.name = name, .full = o->full, .seed = o->seed, .arena = a};
    if (r) r->folder = pare_strdup(a, o->folder);
    const pare_status st = r && r->folder ? PARE_OK : pare_no_memory(err);
    if (!r) pare_arena_free(a);
    return pare_ranks_agree(ranks, st, err);
}

/* What nobody gave a command of its own is made by the study's. */
static pare_status add_commands(study_context *f)
{
    study *const r = f->r;
    r->line = study_command(f, NULL);
    for (size_t i = 0; r->line && i < r->ntables; i++)
        if (!r->tables[i].command) r->tables[i].command = r->line;
    return r->line ? PARE_OK : pare_no_memory(f->err);
}

pare_status study_end(study **out, study_context *f, pare_status st)
{
    if (!st) st = add_commands(f);
    *out = st ? NULL : f->r;
    if (st) study_free(f->r);
    return st;
}

bool is_first_rank(const study_context *f)
{
    return pare_ranks_rank(f->ranks) == 0;
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

bool wants_part(const study_context *f, const char *part)
{
    return names_part(f->o->only, part);
}

static char *with_data(pare_arena *a, char *line, const study_opts *o)
{
    if (line && o->model) line = pare_sprintf(a, "%s --model %s", line, o->model);
    for (size_t i = 0; line && i < o->ndata; i++)
        line = pare_sprintf(a, "%s --data %s", line, o->data[i]);
    return line;
}

/* Only what is not the default, so that it is short where it can be. */
static char *with_sizes(pare_arena *a, char *line, const study_opts *o)
{
    static const study_opts none = STUDY_OPTS_DEFAULT;
    const struct {
        const char *name;
        size_t is, was;
    } number[] = {{"large", o->large, none.large},
                  {"runs", o->small, none.small},
                  {"epochs", o->epochs, none.epochs},
                  {"side", o->side, none.side}};
    for (size_t i = 0; line && i < sizeof number / sizeof *number; i++)
        if (number[i].is != number[i].was)
            line = pare_sprintf(a, "%s --%s %zu", line, number[i].name, number[i].is);
    if (line && o->seed)
        line = pare_sprintf(a, "%s --seed %llu", line, (unsigned long long)o->seed);
    return line;
}

const char *study_command(const study_context *f, const char *part)
{
    pare_arena *const a = f->r->arena;
    const char *const only = part ? part : f->o->only;
    char *line = pare_sprintf(a, "pare repro %s%s%s%s", f->r->name, only ? " --only " : "",
                              only ? only : "", f->o->full ? " --full" : "");
    return with_sizes(a, with_data(a, line, f->o), f->o);
}

/* ---- folders --------------------------------------------------------------------------------- */

pare_status make_folder(const char *path, pare_err *err)
{
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && pare_is_dir(path))) return PARE_OK;
    return pare_fail(err, PARE_ERR_IO, "%s: %s", path,
                     errno == EEXIST ? "is there, and no folder" : strerror(errno));
}

pare_status make_study_folders(study_context *f)
{
    f->runs = pare_sprintf(f->r->arena, "%s/runs", f->r->folder);
    if (!f->runs) return pare_no_memory(f->err);
    if (!is_first_rank(f)) return PARE_OK;
    const pare_status st = make_folder(f->r->folder, f->err);
    return st ? st : make_folder(f->runs, f->err);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

pare_status new_jobs(study_context *f, jobs *b, size_t n)
{
    *b = (jobs){.job = pare_alloc(f->r->arena, n ? n : 1, sizeof *b->job)};
    return b->job ? PARE_OK : pare_no_memory(f->err);
}

pare_status do_jobs(study_context *f, jobs *b, pare_status st)
{
    st = pare_ranks_agree(f->ranks, st, f->err);
    if (st) return st;
    b->folder = f->runs;
    b->again = f->o->again;
    b->note = is_first_rank(f) ? f->o->note : NULL;
    b->state = is_first_rank(f) ? f->o->state : NULL;
    b->note_self = f->o->self;
    b->all = &f->all;
    st = jobs_run(b, f->r->arena, f->exec, f->ranks, f->err);
    f->r->jobs += b->n;
    for (size_t i = 0; i < b->n; i++) f->r->found += b->job[i].found;
    return st;
}

/* ---- tables ---------------------------------------------------------------------------------- */

void begin_table(table_writer *s, const char *name, const char *about, int digits, size_t room)
{
    if (s->st) return;
    s->t = &s->r->tables[s->r->ntables++];
    *s->t = (study_table){.name = name, .about = about, .digits = digits};
    s->t->rows = pare_alloc(s->r->arena, room ? room : 1, sizeof *s->t->rows);
    s->room = room;
    if (!s->t->rows) s->st = pare_no_memory(s->err);
}

void add_row(table_writer *s, table_row row)
{
    if (!s->st && (!row.what || !row.note || !row.from)) s->st = pare_no_memory(s->err);
    if (s->st) return;
    PARE_ASSERT(s->t->nrows < s->room);
    /* The column of the paper's numbers has no other ones in it, and no other row is reproduced
     * from a paper. */
    PARE_ASSERT(row.source == ROW_PRINTED || (isnan(row.published) && !row.claim));
    PARE_ASSERT(row.source != ROW_PRINTED || !isnan(row.published) || row.claim ||
                row.verdict == NOT_MADE);
    PARE_ASSERT(outcome_of(row.source, row.verdict) < OUTCOMES);
    if (row.source != ROW_REFERENCE && row.source != ROW_SELF) row.reference = NAN;
    s->t->rows[s->t->nrows++] = row;
}
