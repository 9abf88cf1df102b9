/* Tables 1, 3 and 4 and the histograms of figure 1 of Shirzad 2024: what is printed beside ours. */
#include "study_width.h"
#include "study.h"
#include <math.h>
#include <string.h>

/* ---- as printed in Shirzad 2024, Tables 1, 3 and 4 ------------------------------------------- */

typedef struct printed {
    double value, std;
} printed;

#define NONE NAN
static const printed operator_norm[GRAPHS] = {{2.62, 0.07}, {2.83, 0.13}, {2.15, 0.06}};
static const printed vector_norm[GRAPHS] = {{3.44, 0.21}, {3.71, 0.10}, {3.64, 0.23}};
static const printed mlp[GRAPHS] = {{0.509, 0.014}, {0.730, 0.0106}, {0.696, 0.038}};
static const printed gcn[GRAPHS] = {{0.898, 0.005}, {0.836, 0.007}, {0.927, 0.002}};
static const printed nodeformer[GRAPHS] = {{0.867, 0.009}, {0.781, 0.001}, {0.935, 0.004}};
static const printed exphormer[GRAPHS] = {{0.923, 0.006}, {0.835, 0.003}, {0.954, 0.002}};
static const printed large[GRAPHS] = {{0.943, 0.001}, {0.844, 0.002}, {0.953, 0.004}};
static const printed small_mean[GRAPHS] = {{0.886, 0.054}, {0.821, 0.011}, {0.910, 0.016}};
static const printed small_max[GRAPHS] = {{0.938, NONE}, {0.844, NONE}, {0.944, NONE}};
/* nodes, edges, features, classes, homophily */
static const double statistics[GRAPHS][5] = {
    {10000, 78804, 7, 2, 0.009}, {11758, 1038000, 10, 10, 0.187}, {7487, 238162, 745, 8, 0.772}};

#define NEAR 0.01 /* of an AUC or an accuracy: as good as the same */

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct bench { /* what a table is made on */
    table_writer s;
    const graph_set *set;
    run_group (*group)[GROUPS];
} bench;

static table_row blank(graph_id id, const char *what, printed p)
{
    return (table_row){.data = graph_names[id],
                       .what = what,
                       .published = p.value,
                       .published_std = p.std,
                       .ours = NAN,
                       .ours_std = NAN,
                       .verdict = isnan(p.value) ? ADDED : NOT_MADE,
                       .note = "",
                       .from = "",
                       .source = isnan(p.value) ? ROW_OURS : ROW_PRINTED};
}

static char *no_file(bench *b, graph_id id)
{
    return b->s.st ? NULL : pare_sprintf(b->s.r->arena, "no file (--data %s.npz)", graph_stems[id]);
}

/* ---- many runs ------------------------------------------------------------------------------- */

/* Of one number of the results, over those that have it. */
static pare_norms spread(const run_group *g, size_t offset)
{
    size_t n = 0;
    double sum = 0, square = 0, best = -INFINITY;
    for (size_t i = 0; i < g->n; i++) {
        double v;
        memcpy(&v, (const char *)&g->result[i] + offset, sizeof v);
        if (isnan(v)) continue;
        n++;
        sum += v;
        if (v > best) best = v;
    }
    for (size_t i = 0; i < g->n; i++) {
        double v;
        memcpy(&v, (const char *)&g->result[i] + offset, sizeof v);
        if (!isnan(v)) square += (v - sum / (double)n) * (v - sum / (double)n);
    }
    return (pare_norms){.n = n,
                        .mean = n ? sum / (double)n : NAN,
                        .std = n > 1 ? sqrt(square / (double)(n - 1))
                               : n   ? 0
                                     : NAN,
                        .sup = n ? best : NAN};
}

static size_t diverged(const run_group *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) n += g->result[i].diverged;
    return n;
}

static char *files_of(bench *b, const run_group *g)
{
    char dim[24] = "";
    if (g->role == RUN_CUT) snprintf(dim, sizeof dim, "%zu", g->dim);
    return b->s.st ? NULL
                   : pare_sprintf(b->s.r->arena, "%s/runs/%s-%s%s-*.json", b->s.r->folder,
                                  graph_stems[g->g->id], role_names[g->role], dim);
}

static row_verdict judge(double ours, printed p, double near)
{
    if (isnan(p.value)) return ADDED;
    if (isnan(ours)) return NOT_MADE;
    const double room = fmax(near, isnan(p.std) ? 0 : 2 * p.std);
    return fabs(ours - p.value) <= room ? REPRODUCED : DIFFERS;
}

static const char *note_of(bench *b, const run_group *g, bool board)
{
    const size_t lost = diverged(g);
    if (b->s.st) return NULL;
    if (lost == 0) return board && g->g->generated ? "a board of ours" : "";
    return pare_sprintf(b->s.r->arena, "%zu of %zu runs diverged%s", lost, g->n,
                        board && g->g->generated ? "; a board of ours" : "");
}

/* The first run's; the others are its neighbours. */
static const char *command_of(bench *b, const run_group *g)
{
    const char *const first = g->result[0].command;
    if (!first || b->s.st || g->n == 1) return first;
    const char *const all = pare_sprintf(
        b->s.r->arena, "%s # the first of %zu; the files have the others'", first, g->n);
    if (!all) b->s.st = pare_no_memory(b->s.err);
    return all;
}

/* A row of the runs of one group: their mean, or the largest. */
static void put_runs(bench *b, graph_id id, const run_group *g, const char *what, printed p,
                     size_t offset, bool largest, double near)
{
    table_row row = blank(id, what, p);
    if (b->s.st) return;
    if (g->n == 0) {
        row.note = no_file(b, id);
        add_row(&b->s, row);
        return;
    }
    const pare_norms s = spread(g, offset);
    row.ours = largest ? s.sup : s.mean;
    row.ours_std = largest ? NAN : s.std;
    row.runs = s.n;
    row.parameters = near > 0 ? g->result[0].parameters : 0;
    row.verdict = judge(row.ours, p, near);
    row.note = note_of(b, g, true);
    row.from = files_of(b, g);
    row.command = command_of(b, g);
    add_row(&b->s, row);
}

/* ---- Table 1 --------------------------------------------------------------------------------- */

#define FIELD(name) offsetof(run_result, name)

static void table_1(bench *b)
{
    begin_table(
        &b->s, "Table 1",
        "norms of trained models, D = 64: operator norms of Wq, Wk, Wv, W1, W2; norms of the "
        "rows that enter a layer (mean and standard deviation over the runs of their means)",
        2, 4 * GRAPHS);
    for (int k = 0; k < GRAPHS; k++) {
        const graph_id id = (graph_id)k;
        const run_group *const g = &b->group[k][RUN_LARGE];
        const printed none = {NAN, NAN};
        put_runs(b, id, g, "operator norm, mean", operator_norm[k], FIELD(norm), false, 0);
        if (g->n) put_runs(b, id, g, "operator norm, largest", none, FIELD(norm_sup), true, 0);
        put_runs(b, id, g, "vector norm, mean", vector_norm[k], FIELD(vector), false, 0);
        if (g->n) put_runs(b, id, g, "vector norm, largest", none, FIELD(vector_sup), true, 0);
    }
}

/* ---- Table 3 --------------------------------------------------------------------------------- */

static const char *why_not(const graph_set *g, int column)
{
    if (g->id == GRAPH_TOLOKERS && column == 3)
        return "the labels of the file are 0 and 1: two classes";
    if (g->id == GRAPH_PHOTO && column == 1)
        return "238,162 are the edges of all 7,650 nodes; the component of 7,487 has 238,086";
    return "";
}

static void table_3(bench *b)
{
    static const char *const column[] = {"nodes", "edges", "features", "classes",
                                         "homophily (class-insensitive)"};
    begin_table(
        &b->s, "Table 3",
        "the graphs: edges in both directions; homophily as Lim et al., classes weighed alike", 4,
        6 * GRAPHS);
    for (int k = 0; k < GRAPHS; k++) {
        const graph_set *const g = &b->set[k];
        const double ours[] = {(double)g->nodes, (double)g->edges, (double)g->features,
                               (double)g->classes, g->homophily};
        for (int i = 0; i < 5; i++) {
            const printed p = {statistics[k][i], NAN};
            table_row row = blank((graph_id)k, column[i], p);
            if (!g->path) {
                row.note = no_file(b, (graph_id)k);
                add_row(&b->s, row);
                continue;
            }
            const char *const why = why_not(g, i);
            row.ours = ours[i];
            row.from = g->path;
            row.verdict = judge(ours[i], p, i < 4 ? 0 : 5e-4);
            if (row.verdict == DIFFERS && *why) row.verdict = MISPRINT;
            if (g->generated) row.verdict = UNDECIDED; /* counts of a board that we made */
            row.note = g->generated ? "a board of ours" : row.verdict == MISPRINT ? why : "";
            add_row(&b->s, row);
        }
        table_row row = blank((graph_id)k, "edges within a class", (printed){NAN, NAN});
        row.ours = g->same;
        row.from = g->path ? g->path : "";
        if (g->path) add_row(&b->s, row);
    }
}

/* ---- Table 4 --------------------------------------------------------------------------------- */

static void put_only_printed(bench *b, graph_id id, const char *what, printed p)
{
    table_row row = blank(id, what, p);
    row.note = "printed, not made again here";
    add_row(&b->s, row);
}

static void put_cuts(bench *b, graph_id id)
{
    const printed none = {NAN, NAN};
    const struct {
        int group;
        const char *plain, *taught;
    } cut[] = {{CUT_8, "large cut to d = 8, no training", "large cut to d = 8, taught"},
               {CUT_4, "large cut to d = 4, no training", "large cut to d = 4, taught"}};
    for (size_t i = 0; i < 2; i++) {
        const run_group *const g = &b->group[id][cut[i].group];
        if (g->n == 0) continue;
        put_runs(b, id, g, cut[i].plain, none, FIELD(plain), false, NEAR);
        put_runs(b, id, g, cut[i].taught, none, FIELD(test), false, NEAR);
    }
}

static void table_4(bench *b)
{
    begin_table(
        &b->s, "Table 4",
        "AUC (Minesweeper, Tolokers) or accuracy (Photo) on the test nodes, at the epoch that "
        "validation chose",
        4, 12 * GRAPHS);
    for (int k = 0; k < GRAPHS; k++) {
        const graph_id id = (graph_id)k;
        const run_group *const g = b->group[k];
        put_runs(b, id, &g[RUN_MLP], "MLP", mlp[k], FIELD(test), false, NEAR);
        put_runs(b, id, &g[RUN_GCN], "GCN", gcn[k], FIELD(test), false, NEAR);
        put_only_printed(b, id, "NodeFormer", nodeformer[k]);
        put_only_printed(b, id, "Exphormer", exphormer[k]);
        put_runs(b, id, &g[RUN_LARGE], "large, D = 64: mean", large[k], FIELD(test), false, NEAR);
        put_runs(b, id, &g[RUN_SMALL], "small, d = 4: mean", small_mean[k], FIELD(test), false,
                 NEAR);
        put_runs(b, id, &g[RUN_SMALL], "small, d = 4: max", small_max[k], FIELD(test), true, NEAR);
        put_cuts(b, id);
    }
}

/* ---- figure 1 -------------------------------------------------------------------------------- */

static void put_series(bench *b, const run_group *g, const char *what, printed p)
{
    if (b->s.st || g->n == 0) return;
    run_series *const s = &b->s.r->series[b->s.r->nseries++];
    *s = (run_series){.data = graph_names[g->g->id],
                      .what = what,
                      .metric = g->g->classes == 2 ? "AUC" : "accuracy",
                      .from = files_of(b, g),
                      .published = p.value,
                      .value = pare_alloc(b->s.r->arena, g->n, sizeof *s->value)};
    if (!s->value || !s->from) {
        b->s.st = pare_no_memory(b->s.err);
        return;
    }
    for (size_t i = 0; i < g->n; i++)
        if (!isnan(g->result[i].test)) s->value[s->n++] = g->result[i].test;
}

pare_status width_tables(study *r, const graph_set set[GRAPHS], run_group group[GRAPHS][GROUPS],
                         pare_err *err)
{
    bench b = {.s = {.r = r, .err = err}, .set = set, .group = group};
    r->tables = pare_alloc(r->arena, 3, sizeof *r->tables);
    r->series = pare_alloc(r->arena, 2 * GRAPHS, sizeof *r->series);
    if (!r->tables || !r->series) return pare_no_memory(err);
    table_1(&b);
    table_3(&b);
    table_4(&b);
    r->figure = "Figure 1";
    for (int k = 0; k < GRAPHS; k++) {
        put_series(&b, &group[k][RUN_LARGE], "large, D = 64", large[k]);
        put_series(&b, &group[k][RUN_SMALL], "small, d = 4", small_mean[k]);
    }
    return b.s.st;
}
