/* study_width.c - which runs the tables of Shirzad 2024 need, in the order they can be made.
 *
 *   grid (full)   every learning rate and number of epochs, GRID_RUNS runs each: the best mean
 *                 validation is the setting of the role
 *   runs          MLP, GCN, D = 64, d = 4
 *   cuts          every model with D = 64 to 8 and to 4 dimensions, and taught
 *
 * How many runs is decided by the graph and by quick or full, never by a clock: the tables are the
 * same on a slow machine. The counts of quick are such that two cores of 2024 need some minutes. */
#include <pare/data.h>
#include "study_width.h"
#include "study.h"
#include <math.h>
#include <string.h>

enum { GRID_RUNS = 4, RATES = 3, LENGTHS = 4 };
static const double rates[RATES] = {0.1, 0.01, 0.001};
static const size_t lengths[LENGTHS] = {50, 100, 150, 200};

static const size_t quick_runs[GRAPHS][RUN_ROLES] = {
    {1, 1, 2, 6, 0}, {1, 1, 1, 4, 0}, {1, 1, 2, 6, 0}};
static const size_t full_runs[RUN_ROLES] = {5, 5, 20, 100, 0};
enum { TEACHER_EPOCHS = 200, TEACHER_QUICK = 100, CUTS = 2 };
static const size_t cut_dims[CUTS] = {8, 4};

typedef struct width_study {
    study_context f;
    graph_set set[GRAPHS];
    size_t count[GRAPHS][RUN_ROLES];
    double rate[GRAPHS][RUN_ROLES]; /* chosen by the grid; 0: the recipe's */
    size_t length[GRAPHS][RUN_ROLES];
    run_group group[GRAPHS][GROUPS];
} width_study;

const char *width_part(size_t i)
{
    return i == 0 ? "tables" : NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* The board of the side and seed; one of an earlier call is the same. */
static pare_status make_board(width_study *s, const char **path)
{
    study *const r = s->f.r;
    *path = pare_sprintf(r->arena, "%s/minesweeper-%zu-%llu.npz", r->folder, s->f.o->side,
                         (unsigned long long)s->f.o->seed);
    if (!*path) return pare_no_memory(s->f.err);
    if (!is_first_rank(&s->f) || pare_file_exists(*path)) return PARE_OK;
    return pare_make_minesweeper(*path, s->f.o->side, s->f.o->seed, true, s->f.err);
}

static pare_status read_files(width_study *s)
{
    for (size_t i = 0; i < s->f.o->ndata; i++) {
        graph_set g;
        const pare_status st = graph_read(&g, s->f.o->data[i], s->f.err);
        if (st) return st;
        if (s->set[g.id].path)
            return pare_fail(s->f.err, PARE_ERR_USAGE, "%s and %s are both %s", s->set[g.id].path,
                             g.path, graph_names[g.id]);
        s->set[g.id] = g;
    }
    return PARE_OK;
}

static void count_runs(width_study *s)
{
    for (int k = 0; k < GRAPHS; k++)
        for (int role = 0; role < RUN_ROLES; role++) {
            size_t n = s->f.o->full ? full_runs[role] : quick_runs[k][role];
            if (role == RUN_LARGE && s->f.o->large) n = s->f.o->large;
            if (role == RUN_SMALL && s->f.o->small) n = s->f.o->small;
            s->count[k][role] = s->set[k].path ? n : 0;
        }
}

static pare_status open_graphs(width_study *s)
{
    graph_set *const board = &s->set[GRAPH_MINESWEEPER];
    const char *path = NULL;
    pare_status st = read_files(s);
    if (!st) st = make_study_folders(&s->f);
    if (!st && !board->path) st = make_board(s, &path);
    st = pare_ranks_agree(s->f.ranks, st, s->f.err);
    if (st) return st;
    if (!board->path) {
        st = graph_read(board, path, s->f.err);
        board->generated = true;
    }
    count_runs(s);
    return st;
}

/* ---- runs ----------------------------------------------------------------------------------- */

static size_t cap(const width_study *s, size_t epochs)
{
    return s->f.o->epochs && s->f.o->epochs < epochs ? s->f.o->epochs : epochs;
}

static size_t teacher_epochs(const width_study *s)
{
    return cap(s, s->f.o->full ? TEACHER_EPOCHS : TEACHER_QUICK);
}

static run_spec spec_of(const width_study *s, int graph, int role, size_t number)
{
    run_spec p = run_recipe(&s->set[graph], (run_role)role, number, s->f.o->seed);
    if (s->rate[graph][role] > 0) {
        p.lr = s->rate[graph][role];
        p.epochs = s->length[graph][role];
    }
    p.epochs = cap(s, p.epochs);
    return p;
}

static pare_status run_stage(width_study *s, jobs *b, const char *title, pare_status st)
{
    b->title = title;
    b->run = run_do;
    return do_jobs(&s->f, b, st);
}

static pare_status keep_command(width_study *s, run_result *r, const job *j)
{
    const char *command = NULL;
    const pare_status st = pare_json_string_opt(&command, j->result, "command", s->f.err);
    if (st || !command) return st;
    char *const kept = pare_strdup(s->f.r->arena, command); /* the result itself is let go of */
    for (char *at = kept; at && *at; at++)
        if (*at == '\n' || *at == '\r') *at = ' '; /* it stands on one line of a table */
    r->command = kept;
    return kept ? PARE_OK : pare_no_memory(s->f.err);
}

/* One group of the list is all runs of a role on a graph. */
static pare_status read_group(width_study *s, run_group *g, const job *first, size_t n,
                              const run_spec *p)
{
    *g = (run_group){.g = p->g, .role = p->role, .dim = p->dim, .n = n, .job = first};
    g->result = pare_alloc(s->f.r->arena, n ? n : 1, sizeof *g->result);
    if (!g->result) return pare_no_memory(s->f.err);
    for (size_t i = 0; i < n; i++) {
        pare_status st = run_read(&g->result[i], &first[i], s->f.err);
        if (!st) st = keep_command(s, &g->result[i], &first[i]);
        if (st) return st;
    }
    return PARE_OK;
}

/* What the stages after this one will have to do, for the estimate: trainings at the recipe's
 * length, and every model with D = 64 cut twice. */
static void expect_trainings(width_study *s)
{
    for (int k = 0; k < GRAPHS; k++)
        for (int role = 0; role < RUN_ROLES; role++) {
            const run_spec p = spec_of(s, k, role, 0);
            s->f.all.later += s->count[k][role];
            s->f.all.later_cost += (double)s->count[k][role] * run_cost(&p);
        }
}

static void expect_cuts(width_study *s)
{
    for (int k = 0; k < GRAPHS; k++)
        for (size_t d = 0; d < CUTS && s->count[k][RUN_LARGE] > 0; d++) {
            run_spec p = run_recipe(&s->set[k], RUN_CUT, 0, 0);
            p.dim = cut_dims[d];
            p.epochs = teacher_epochs(s);
            s->f.all.later += s->count[k][RUN_LARGE];
            s->f.all.later_cost += (double)s->count[k][RUN_LARGE] * run_cost(&p);
        }
}

static void expect(width_study *s, bool trainings_too)
{
    s->f.all.later = 0;
    s->f.all.later_cost = 0;
    if (trainings_too) expect_trainings(s);
    expect_cuts(s);
}

/* ---- the grid ------------------------------------------------------------------------------- */

static bool has_grid(int role)
{
    return role == RUN_LARGE || role == RUN_SMALL;
}

static size_t grid_runs(const width_study *s, int graph, int role)
{
    const size_t n = s->count[graph][role];
    return !has_grid(role) ? 0 : n < GRID_RUNS ? n : GRID_RUNS;
}

/* The best mean validation of the settings; a run without a mark counts as the worst. */
static pare_status choose(width_study *s, int graph, int role, const job *first)
{
    const size_t n = grid_runs(s, graph, role);
    double best = -INFINITY;
    for (size_t at = 0; n > 0 && at < RATES * LENGTHS; at++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            run_result r;
            const pare_status st = run_read(&r, &first[at * n + i], s->f.err);
            if (st) return st;
            sum += isnan(r.val) ? 0 : r.val;
        }
        if (!(sum > best)) continue;
        best = sum;
        s->rate[graph][role] = rates[at / LENGTHS];
        s->length[graph][role] = lengths[at % LENGTHS];
    }
    return PARE_OK;
}

static pare_status list_grid(width_study *s, jobs *b, int graph, int role)
{
    for (size_t at = 0; at < RATES * LENGTHS; at++)
        for (size_t i = 0; i < grid_runs(s, graph, role); i++) {
            run_spec p = run_recipe(&s->set[graph], (run_role)role, i, s->f.o->seed);
            p.lr = rates[at / LENGTHS];
            p.epochs = cap(s, lengths[at % LENGTHS]);
            const pare_status st = run_job(&b->job[b->n++], s->f.r->arena, &p, s->f.err);
            if (st) return st;
        }
    return PARE_OK;
}

static pare_status grid(width_study *s)
{
    jobs b;
    if (!s->f.o->full) return PARE_OK;
    expect(s, true);
    pare_status st = new_jobs(&s->f, &b, (size_t)GRAPHS * RUN_ROLES * GRID_RUNS * RATES * LENGTHS);
    for (int k = 0; !st && k < GRAPHS; k++)
        for (int role = 0; !st && role < RUN_ROLES; role++) st = list_grid(s, &b, k, role);
    st = run_stage(s, &b, "grid", st);
    const job *at = b.job;
    for (int k = 0; !st && k < GRAPHS; k++)
        for (int role = 0; !st && role < RUN_ROLES; role++) {
            st = choose(s, k, role, at);
            at += grid_runs(s, k, role) * RATES * LENGTHS;
        }
    jobs_close(&b);
    return st;
}

/* ---- trainings, cuts ------------------------------------------------------------------------ */

static pare_status trainings(width_study *s)
{
    jobs b;
    size_t n = 0;
    for (int k = 0; k < GRAPHS; k++)
        for (int role = 0; role < RUN_ROLES; role++) n += s->count[k][role];
    expect(s, false);
    pare_status st = new_jobs(&s->f, &b, n);
    for (int k = 0; !st && k < GRAPHS; k++)
        for (int role = 0; !st && role < RUN_ROLES; role++)
            for (size_t i = 0; !st && i < s->count[k][role]; i++) {
                const run_spec p = spec_of(s, k, role, i);
                job *const j = &b.job[b.n++];
                st = run_job(j, s->f.r->arena, &p, s->f.err);
                j->counted = s->rate[k][role] > 0 && i < grid_runs(s, k, role);
            }
    st = run_stage(s, &b, "train", st);
    const job *at = b.job;
    for (int k = 0; !st && k < GRAPHS; k++)
        for (int role = 0; !st && role < RUN_ROLES; role++) {
            const run_spec p = spec_of(s, k, role, 0);
            st = read_group(s, &s->group[k][role], at, s->count[k][role], &p);
            at += s->count[k][role];
        }
    jobs_close(&b);
    return st;
}

/* A cut of large run i; false where that run came to nothing. */
static bool cut_of(const width_study *s, run_spec *out, int graph, size_t i, size_t dim)
{
    const run_group *const g = &s->group[graph][RUN_LARGE];
    if (isnan(g->result[i].test)) return false;
    *out = run_recipe(g->g, RUN_CUT, i, s->f.o->seed);
    out->dim = dim;
    out->epochs = teacher_epochs(s);
    out->teacher = pare_sprintf(s->f.r->arena, "%s.safetensors", g->job[i].file_prefix);
    out->teacher_what = g->job[i].what;
    return true;
}

static pare_status cuts(width_study *s)
{
    size_t n = 0, made[GRAPHS][CUTS] = {{0}};
    jobs b;
    for (int k = 0; k < GRAPHS; k++) n += CUTS * s->group[k][RUN_LARGE].n;
    s->f.all.later = 0;
    s->f.all.later_cost = 0;
    pare_status st = new_jobs(&s->f, &b, n);
    run_spec p = {0};
    for (int k = 0; !st && k < GRAPHS; k++)
        for (size_t d = 0; !st && d < CUTS; d++)
            for (size_t i = 0; !st && i < s->group[k][RUN_LARGE].n; i++) {
                if (!cut_of(s, &p, k, i, cut_dims[d])) continue;
                st = p.teacher ? run_job(&b.job[b.n++], s->f.r->arena, &p, s->f.err)
                               : pare_no_memory(s->f.err);
                made[k][d]++;
            }
    st = run_stage(s, &b, "cut and teach", st);
    const job *at = b.job;
    for (int k = 0; !st && k < GRAPHS; k++)
        for (size_t d = 0; !st && d < CUTS; d++) {
            const run_spec of = {.g = &s->set[k], .role = RUN_CUT, .dim = cut_dims[d]};
            st = read_group(s, &s->group[k][d ? CUT_4 : CUT_8], at, made[k][d], &of);
            at += made[k][d];
        }
    jobs_close(&b);
    return st;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static pare_status add_notes(width_study *s)
{
    study *const r = s->f.r;
    r->notes = pare_alloc(r->arena, 2 * GRAPHS + 2, sizeof *r->notes);
    if (!r->notes) return pare_no_memory(s->f.err);
    r->notes[r->nnotes++] =
        "every run's command stands in its file in runs/: it gives the same figures again";
    for (int k = 0; k < GRAPHS; k++)
        for (int role = 0; role < RUN_ROLES; role++) {
            if (!(s->rate[k][role] > 0)) continue;
            const char *const line = pare_sprintf(
                r->arena,
                "%s, %s: the grid chose lr %g and %zu epochs (mean validation of %zu runs)",
                graph_names[k], role_names[role], s->rate[k][role], cap(s, s->length[k][role]),
                grid_runs(s, k, role));
            if (!line) return pare_no_memory(s->f.err);
            r->notes[r->nnotes++] = line;
        }
    if (!s->f.o->full)
        r->notes[r->nnotes++] = "few runs: --full makes 20 + 100 and searches the grid";
    return PARE_OK;
}

static pare_status make(width_study *s)
{
    static pare_status (*const phase[])(width_study *) = {open_graphs, grid, trainings, cuts};
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < sizeof phase / sizeof *phase; i++)
        st = pare_ranks_agree(s->f.ranks, phase[i](s), s->f.err);
    if (!st) st = width_tables(s->f.r, s->set, s->group, s->f.err);
    return st ? st : add_notes(s);
}

pare_status study_width(study **out, const study_opts *o, const pare_exec *exec,
                        const pare_ranks *ranks, pare_err *err)
{
    width_study s = {0};
    pare_status st = study_begin(&s.f, "width", o, exec, ranks, err);
    if (!st) st = make(&s);
    return study_end(out, &s.f, st);
}
