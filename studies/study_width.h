/* study_width.h - the parts of `repro width`: graphs, runs, tables. */
#ifndef PARE_STUDIES_STUDY_WIDTH_H
#define PARE_STUDIES_STUDY_WIDTH_H
#include "study.h"
#include "base/json.h"
#include <pare/attention.h>

/* ---- graphs (width_graphs.c) ---- */

typedef enum graph_id { GRAPH_MINESWEEPER, GRAPH_TOLOKERS, GRAPH_PHOTO, GRAPHS } graph_id;
extern const char *const graph_names[GRAPHS]; /* "Minesweeper", ... */
extern const char *const graph_stems[GRAPHS]; /* "minesweeper", ... */

typedef struct graph_set {
    graph_id id;
    const char *path; /* NULL: there is none */
    bool generated;
    char sha256[PARE_SHA256_HEX];
    size_t nodes, edges, features, classes; /* edges: both directions */
    size_t whole_nodes, whole_edges;        /* before the largest component was taken */
    size_t splits;                          /* 0: as many as one likes */
    double homophily, same;                 /* class-insensitive; share of edges within a class */
} graph_set;

/* Photo is read as its largest component. */
bool graph_component(graph_id id);
/* What the file at `path` holds; PARE_ERR_INPUT when it is none of the three. */
PARE_MUST_USE pare_status graph_read(graph_set *out, const char *path, pare_err *err);
/* Lim et al.: sum over classes of max(0, h_k - n_k / n) / (C - 1), h_k the share of the edges of
 * class k that stay within it. */
double class_homophily(const pare_graph *g, const int64_t *label, size_t classes, double *same);

/* ---- runs (width_runs.c) ---- */

typedef enum run_role { RUN_MLP, RUN_GCN, RUN_LARGE, RUN_SMALL, RUN_CUT, RUN_ROLES } run_role;
extern const char *const role_names[RUN_ROLES]; /* "mlp", ... as in file names */

typedef struct run_spec {
    const graph_set *g;
    run_role role;
    size_t number, dim, layers, mark;
    double lr, dropout;
    size_t epochs; /* of a cut: of teaching it */
    uint64_t seed;
    size_t split;
    const char *teacher, *teacher_what; /* of a cut: the model's file, and what it came from */
} run_spec;

/* The recipe of the graph and the role, without grid. */
run_spec run_recipe(const graph_set *g, run_role role, size_t number, uint64_t seed);
/* In any unit: for the order of the runs and the estimate of their time. */
double run_cost(const run_spec *s);
/* Fills in name, what, cost and own (a copy of the spec). */
PARE_MUST_USE pare_status run_job(job *out, pare_arena *a, const run_spec *s, pare_err *err);
/* The run itself: jobs.run. */
pare_status run_do(void *self, const job *j, cJSON *result, const pare_exec *exec, pare_err *err);

/* A result that was read back. */
typedef struct run_result {
    double val, test, plain; /* plain: of a cut, before it was taught; nan elsewhere */
    double norm, norm_sup, vector, vector_sup;
    size_t parameters;
    bool diverged;
    const char *command; /* that gives it; NULL: nobody knows */
} run_result;
PARE_MUST_USE pare_status run_read(run_result *out, const job *j, pare_err *err);

/* ---- tables (width_tables.c) ---- */

typedef struct run_group { /* all runs of one role on one graph */
    const graph_set *g;
    run_role role;
    size_t dim, n;
    const job *job; /* n, side by side */
    run_result *result;
} run_group;

/* groups: [GRAPHS][RUN_ROLES + 1], the last two are cuts to 8 and to 4; n = 0: not made. */
enum { CUT_8 = RUN_CUT, CUT_4 = RUN_CUT + 1, GROUPS };
PARE_MUST_USE pare_status width_tables(study *r, const graph_set set[GRAPHS],
                                       run_group group[GRAPHS][GROUPS], pare_err *err);
#endif
