/* width_graphs.c - the three graphs of Shirzad 2024: what a file is, and its line of Table 3. */
#include "study_width.h"
#include <pare/data.h>
#include <pare/train.h>
#include <math.h>

const char *const graph_names[GRAPHS] = {"Minesweeper", "Tolokers", "Photo"};
const char *const graph_stems[GRAPHS] = {"minesweeper", "tolokers", "photo"};
static const struct {
    size_t features, classes;
} shape[GRAPHS] = {{7, 2}, {10, 2}, {745, 8}};

bool graph_component(graph_id id)
{
    return id == GRAPH_PHOTO;
}

double class_homophily(const pare_graph *g, const int64_t *label, size_t classes, double *same)
{
    double sum = 0, within = 0;
    for (size_t k = 0; k < classes; k++) {
        size_t nodes = 0, ends = 0, stay = 0;
        for (size_t i = 0; i < g->n; i++) {
            if ((size_t)label[i] != k) continue;
            nodes++;
            ends += g->ptr[i + 1] - g->ptr[i];
            for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
                stay += (size_t)label[g->idx[e]] == k;
        }
        within += (double)stay;
        if (ends > 0) sum += fmax(0, (double)stay / (double)ends - (double)nodes / (double)g->n);
    }
    *same = g->ptr[g->n] > 0 ? within / (double)g->ptr[g->n] : NAN;
    return classes > 1 ? sum / (double)(classes - 1) : NAN;
}

static pare_status recognize(graph_set *out, const pare_graph_data *d, const char *path,
                             pare_err *err)
{
    for (int k = 0; k < GRAPHS; k++)
        if (d->features == shape[k].features && d->classes == shape[k].classes) {
            out->id = (graph_id)k;
            return PARE_OK;
        }
    return pare_fail(err, PARE_ERR_INPUT,
                     "%s: %zu features and %zu classes are neither of Minesweeper (7 and 2), nor "
                     "of Tolokers (10 and 2), nor of Photo (745 and 8)",
                     path, d->features, d->classes);
}

/* Nodes and edges that are learned from. */
static pare_status component(graph_set *out, pare_arena *a, const char *path, pare_err *err)
{
    const pare_task_graph_opts o = {.path = path, .largest_component = graph_component(out->id)};
    pare_task task;
    pare_task_facts facts;
    pare_batch b;
    pare_status st = pare_task_graph(&task, &facts, a, &o, err);
    if (!st) st = task.batch(task.self, &b, a, 0, 0, err);
    if (st) return st;
    const pare_graph *const g = b.in.in[0].graph;
    out->nodes = g->n;
    out->edges = g->ptr[g->n];
    return PARE_OK;
}

pare_status graph_read(graph_set *out, const char *path, pare_err *err)
{
    pare_graph_data d;
    pare_arena *const a = pare_arena_new();
    *out = (graph_set){.path = path};
    pare_status st = a ? pare_graph_load(&d, a, path, err) : pare_no_memory(err);
    if (!st) st = recognize(out, &d, path, err);
    if (!st) {
        out->features = d.features;
        out->classes = d.classes;
        out->splits = d.splits;
        out->whole_nodes = d.graph.n;
        out->whole_edges = d.graph.ptr[d.graph.n];
        out->homophily = class_homophily(&d.graph, d.labels, d.classes, &out->same);
        st = component(out, a, path, err);
    }
    if (!st) st = pare_sha256_file(out->sha256, path, err);
    pare_arena_free(a);
    return st;
}
