/* width_tables.c - tables 1, 3 and 4 and the histograms of figure 1 of Shirzad 2024: what is
 * printed beside ours. */
#include <pare/plan.h>
#include "study_width.h"
#include "experiments.h"
#include <math.h>
#include <string.h>

/* ---- as printed in Shirzad 2024, Tables 1, 3 and 4 ------------------------------------------- */

typedef struct printed {
    double value, std;
} printed;

#define NONE NAN
static const printed none[GRAPHS] = {{NAN, NAN}, {NAN, NAN}, {NAN, NAN}};
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

/* A row without a number of ours. */
static table_row blank_row(int graph, const char *what, printed p)
{
    table_row row = row_of(graph_names[graph], what, NAN);
    row.published = p.value;
    row.published_std = p.std;
    row.verdict = isnan(p.value) ? ADDED : NOT_MADE;
    row.source = isnan(p.value) ? ROW_OURS : ROW_PRINTED;
    return row;
}

static const char *no_file(table_writer *w, int graph)
{
    return row_text(w, "no file (--data %s.npz)", graph_stems[graph]);
}

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

static const char *files_of(table_writer *w, const run_group *g)
{
    char dim[24] = "";
    if (g->role == RUN_CUT) snprintf(dim, sizeof dim, "%zu", g->dim);
    return row_text(w, "%s/runs/%s-%s%s-*.json", w->r->folder, graph_stems[g->g->id],
                    role_names[g->role], dim);
}

static row_verdict compare_with_printed(double ours, printed p, double near)
{
    if (isnan(p.value)) return ADDED;
    if (isnan(ours)) return NOT_MADE;
    const double tolerance = fmax(near, isnan(p.std) ? 0 : 2 * p.std);
    return fabs(ours - p.value) <= tolerance ? REPRODUCED : DIFFERS;
}

/* A row of a table whose numbers are those of runs, one for each graph. */
typedef struct run_row {
    const char *what;
    int group;        /* whose runs; NOT_RUN: printed, not made again here */
    const printed *p; /* of each graph */
    size_t offset;    /* of the number in a run_result */
    bool largest;     /* of the runs, not their mean */
} run_row;
enum { NOT_RUN = -1 };
#define FIELD(name) offsetof(run_result, name)

static void put_run_row(table_writer *w, int graph, const run_group *groups, const run_row *of,
                        double near)
{
    const printed p = of->p[graph];
    table_row row = blank_row(graph, of->what, p);
    const run_group *const g = of->group == NOT_RUN ? NULL : &groups[of->group];
    if (!g) {
        row.note = "printed, not made again here";
    } else if (g->n == 0) {
        if (isnan(p.value)) return; /* neither printed nor made */
        row.note = no_file(w, graph);
    } else {
        const pare_norms s = spread(g, of->offset);
        const char *const board = g->g->generated ? "a board of ours" : "";
        const char *const first = g->result[0].command;
        size_t diverged = 0;
        for (size_t i = 0; i < g->n; i++) diverged += g->result[i].diverged;
        row.ours = of->largest ? s.sup : s.mean;
        row.ours_std = of->largest ? NAN : s.std;
        row.runs = s.n;
        row.parameters = near > 0 ? g->result[0].parameters : 0;
        row.verdict = compare_with_printed(row.ours, p, near);
        row.note = diverged ? row_text(w, "%zu of %zu runs diverged%s%s", diverged, g->n,
                                       *board ? "; " : "", board)
                            : board;
        row.from = files_of(w, g);
        /* The first run's; the others are its neighbors. */
        row.command =
            !first || g->n == 1
                ? first
                : row_text(w, "%s # the first of %zu; the files have the others'", first, g->n);
    }
    add_row(w, row);
}

static const run_row norm_rows[] = {
    {"operator norm, mean", RUN_LARGE, operator_norm, FIELD(norm), false},
    {"operator norm, largest", RUN_LARGE, none, FIELD(norm_sup), true},
    {"vector norm, mean", RUN_LARGE, vector_norm, FIELD(vector), false},
    {"vector norm, largest", RUN_LARGE, none, FIELD(vector_sup), true}};

static const run_row score_rows[] = {
    {"MLP", RUN_MLP, mlp, FIELD(test), false},
    {"GCN", RUN_GCN, gcn, FIELD(test), false},
    {"NodeFormer", NOT_RUN, nodeformer, 0, false},
    {"Exphormer", NOT_RUN, exphormer, 0, false},
    {"large, D = 64: mean", RUN_LARGE, large, FIELD(test), false},
    {"small, d = 4: mean", RUN_SMALL, small_mean, FIELD(test), false},
    {"small, d = 4: max", RUN_SMALL, small_max, FIELD(test), true},
    {"large cut to d = 8, no training", CUT_8, none, FIELD(plain), false},
    {"large cut to d = 8, taught", CUT_8, none, FIELD(test), false},
    {"large cut to d = 4, no training", CUT_4, none, FIELD(plain), false},
    {"large cut to d = 4, taught", CUT_4, none, FIELD(test), false}};

/* ---- Table 3 --------------------------------------------------------------------------------- */

static const char *why_not(const graph_set *g, int column)
{
    if (g->id == GRAPH_TOLOKERS && column == 3)
        return "the labels of the file are 0 and 1: two classes";
    if (g->id == GRAPH_PHOTO && column == 1)
        return "238,162 are the edges of all 7,650 nodes; the component of 7,487 has 238,086";
    return "";
}

static void table_3(table_writer *w, const graph_set *set)
{
    static const char *const column[] = {"nodes", "edges", "features", "classes",
                                         "homophily (class-insensitive)"};
    begin_table(
        w, "Table 3",
        "the graphs: edges in both directions; homophily as Lim et al., classes weighed alike", 4);
    for (int k = 0; k < GRAPHS; k++) {
        const graph_set *const g = &set[k];
        const double ours[] = {(double)g->nodes, (double)g->edges, (double)g->features,
                               (double)g->classes, g->homophily};
        for (int i = 0; i < 5; i++) {
            const printed p = {statistics[k][i], NAN};
            const char *const why = why_not(g, i);
            table_row row = blank_row(k, column[i], p);
            if (g->path) {
                row.ours = ours[i];
                row.from = g->path;
                row.verdict = compare_with_printed(ours[i], p, i < 4 ? 0 : 5e-4);
                if (row.verdict == DIFFERS && *why) row.verdict = MISPRINT;
                if (g->generated) row.verdict = UNDECIDED; /* counts of a board that we made */
                row.note = g->generated ? "a board of ours" : row.verdict == MISPRINT ? why : "";
            } else {
                row.note = no_file(w, k);
            }
            add_row(w, row);
        }
        table_row row = blank_row(k, "edges within a class", none[k]);
        row.ours = g->same;
        row.from = g->path;
        if (g->path) add_row(w, row);
    }
}

/* ---- figure 1 -------------------------------------------------------------------------------- */

static void put_series(table_writer *w, const run_group *g, const char *what, printed p)
{
    if (w->st || g->n == 0) return;
    PARE_ASSERT(w->r->nseries < MOST_SERIES);
    run_series *const s = &w->r->series[w->r->nseries++];
    *s = (run_series){.data = graph_names[g->g->id],
                      .what = what,
                      .metric = g->g->classes == 2 ? "AUC" : "accuracy",
                      .from = files_of(w, g),
                      .published = p.value,
                      .value = pare_alloc(w->r->arena, g->n, sizeof *s->value)};
    if (!s->value) w->st = pare_no_memory(w->err);
    for (size_t i = 0; !w->st && i < g->n; i++)
        if (!isnan(g->result[i].test)) s->value[s->n++] = g->result[i].test;
}

pare_status width_tables(study *r, const graph_set set[GRAPHS], run_group group[GRAPHS][GROUPS],
                         pare_err *err)
{
    table_writer w = {.r = r, .err = err};
    begin_table(&w, "Table 1",
                "norms of trained models, D = 64: operator norms of Wq, Wk, Wv, W1, W2; norms of "
                "the rows that enter a layer (mean and standard deviation over the runs of their "
                "means)",
                2);
    for (int k = 0; k < GRAPHS; k++)
        for (size_t i = 0; i < sizeof norm_rows / sizeof *norm_rows; i++)
            put_run_row(&w, k, group[k], &norm_rows[i], 0);
    table_3(&w, set);
    begin_table(&w, "Table 4",
                "AUC (Minesweeper, Tolokers) or accuracy (Photo) on the test nodes, at the epoch "
                "that validation chose",
                4);
    for (int k = 0; k < GRAPHS; k++)
        for (size_t i = 0; i < sizeof score_rows / sizeof *score_rows; i++)
            put_run_row(&w, k, group[k], &score_rows[i], NEAR);
    r->figure = "Figure 1";
    for (int k = 0; k < GRAPHS; k++) {
        put_series(&w, &group[k][RUN_LARGE], "large, D = 64", large[k]);
        put_series(&w, &group[k][RUN_SMALL], "small, d = 4", small_mean[k]);
    }
    return w.st;
}
