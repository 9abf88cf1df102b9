/* task_graph.c - nodes of a graph: the whole graph in every step, the labels of the training
 * mask. */
#include "data/graph_data.h"
#include "task.h"

#include <math.h>
#include <string.h>

typedef struct graph_task {
    pare_graph_data data;
    size_t split;
    bool full;
    int64_t *label[PARTS]; /* n each; -1: of another part */
    size_t count[PARTS];
    pare_input in[2]; /* of a model that attends over the edges, and of others */
} graph_task;

/* ---- the largest component ----------------------------------------------------------------- */

/* The nodes of the largest component, ascending; of two of one size, the one with the first
 * node. */
static pare_status largest_component(uint32_t **node, size_t *count, pare_arena *a,
                                     const pare_graph *g, pare_err *err)
{
    uint32_t *const of = pare_alloc(a, g->n, sizeof *of); /* the first node of its component */
    *node = pare_alloc(a, g->n, sizeof **node);
    if (!of || !*node) return pare_no_memory(err);
    uint32_t largest = 0;
    *count = 0;
    for (size_t i = 0; i < g->n; i++) of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < g->n; i++) { /* breadth first; *node is the queue */
        size_t first = 0, end = 0;
        if (of[i] != UINT32_MAX) continue;
        of[i] = i;
        for ((*node)[end++] = i; first < end; first++) {
            const uint32_t at = (*node)[first];
            for (size_t e = g->ptr[at]; e < g->ptr[at + 1]; e++) {
                if (of[g->idx[e]] != UINT32_MAX) continue;
                of[g->idx[e]] = i;
                (*node)[end++] = g->idx[e];
            }
        }
        if (end > *count) {
            *count = end;
            largest = i;
        }
    }
    size_t k = 0;
    for (uint32_t i = 0; i < g->n; i++)
        if (of[i] == largest) (*node)[k++] = i;
    return PARE_OK;
}

/* Reduces edges, features, labels and masks to the largest component; no edge leaves it. */
static pare_status keep_largest_component(pare_graph_data *d, const uint8_t *mask[PARTS],
                                          pare_arena *a, pare_err *err)
{
    const pare_graph *const g = &d->graph;
    uint32_t *node;
    size_t n = 0, edges = 0;
    const pare_status st = largest_component(&node, &n, a, g, err);
    if (st || n == g->n) return st;
    for (size_t k = 0; k < n; k++) edges += g->ptr[node[k] + 1] - g->ptr[node[k]];
    double *x = pare_alloc(a, n * d->features + 1, sizeof *x);
    int64_t *labels = pare_alloc(a, n, sizeof *labels);
    uint8_t *masks = pare_alloc(a, n, PARTS);
    size_t *ptr = pare_alloc(a, n + 1, sizeof *ptr);
    uint32_t *idx = pare_alloc(a, edges ? edges : 1, sizeof *idx);
    uint32_t *number = pare_alloc(a, g->n, sizeof *number); /* of the kept nodes */
    if (!x || !labels || !masks || !ptr || !idx || !number) return pare_no_memory(err);
    for (size_t k = 0; k < n; k++) number[node[k]] = (uint32_t)k;
    for (size_t k = 0; k < n; k++) {
        const size_t old = node[k];
        memcpy(x + k * d->features, d->x + old * d->features, d->features * sizeof *x);
        labels[k] = d->labels[old];
        for (size_t p = 0; p < PARTS; p++) masks[p * n + k] = mask[p][old];
        ptr[k + 1] = ptr[k];
        for (size_t e = g->ptr[old]; e < g->ptr[old + 1]; e++)
            idx[ptr[k + 1]++] = number[g->idx[e]];
    }
    d->graph = (pare_graph){n, ptr, idx};
    d->x = x;
    d->labels = labels;
    for (size_t p = 0; p < PARTS; p++) mask[p] = masks + p * n;
    return PARE_OK;
}

/* ---- labels and parts ---------------------------------------------------------------------- */

/* Distributes the labels by the masks and checks every part: it has a node, and both classes where
 * it is scored by AUC. */
static pare_status split_labels(graph_task *g, const uint8_t *const mask[PARTS], pare_arena *a,
                                pare_err *err)
{
    const size_t n = g->data.graph.n;
    for (size_t p = 0; p < PARTS; p++) {
        size_t positive = 0, count = 0;
        g->label[p] = pare_alloc(a, n, sizeof *g->label[p]);
        if (!g->label[p]) return pare_no_memory(err);
        for (size_t i = 0; i < n; i++) {
            g->label[p][i] = mask[p][i] ? g->data.labels[i] : -1;
            count += mask[p][i];
            positive += g->label[p][i] == 1;
        }
        g->count[p] = count;
        if (count == 0)
            return pare_fail(err, PARE_ERR_INPUT, "split %zu has no %s node", g->split,
                             task_part_name[p]);
        if (p != TRAIN && g->data.classes == 2 && (positive == 0 || positive == count))
            return pare_fail(err, PARE_ERR_INPUT,
                             "split %zu: all %zu %s nodes have the label %d, and AUC needs both",
                             g->split, count, task_part_name[p], positive > 0);
    }
    return PARE_OK;
}

static pare_status read_graph(graph_task *g, pare_arena *a, const pare_task_graph_opts *o,
                              pare_err *err)
{
    const uint8_t *mask[PARTS];
    pare_graph_data *const d = &g->data;
    pare_status st = pare_graph_load(d, a, o->path, err);
    for (size_t i = 0; !st && i < d->graph.n; i++) {
        const long long label = (long long)d->labels[i];
        if (o->classes && (uint64_t)label >= o->classes)
            st = pare_fail(err, PARE_ERR_INPUT,
                           "node %zu has the label %lld, the model has %zu outputs", i, label,
                           o->classes);
        else if ((uint64_t)label >= d->graph.n)
            st = pare_fail(err, PARE_ERR_INPUT,
                           "node %zu has the label %lld: more classes than the %zu nodes", i, label,
                           d->graph.n);
    }
    if (!st && d->classes < 2 && !o->classes)
        st = pare_fail(err, PARE_ERR_INPUT, "every node has the label 0: nothing to learn");
    if (!st) st = pare_graph_masks(&mask[TRAIN], &mask[VAL], &mask[TEST], a, d, o->split, err);
    if (!st && o->largest_component) st = keep_largest_component(d, mask, a, err);
    if (!st && d->features == 0) st = pare_fail(err, PARE_ERR_INPUT, "the nodes have no features");
    if (!st && o->classes) d->classes = o->classes;
    return st ? st : split_labels(g, mask, a, err);
}

/* ---- the task ------------------------------------------------------------------------------ */

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    graph_task *g = self;
    (void)a, (void)seed, (void)step, (void)err;
    *out = (pare_batch){.in = {1, &g->in[g->full]}, .label = g->label[TRAIN]};
    return PARE_OK;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part part,
                         const pare_exec *exec, pare_err *err)
{
    graph_task *g = self;
    const int64_t *const label = g->label[part == PARE_PART_VAL ? VAL : TEST];
    const pare_dataset d = {.task = PARE_TASK_NODES,
                            .inputs = {1, &g->in[m->pattern.kind != PARE_GRAPH]},
                            .target = &label};
    return task_score(out, m, &d, exec, err);
}

pare_status pare_task_graph(pare_task *out, pare_task_facts *facts, pare_arena *a,
                            const pare_task_graph_opts *o, pare_err *err)
{
    graph_task *g = pare_alloc(a, 1, sizeof *g);
    if (!g) return pare_no_memory(err);
    g->split = o->split;
    g->full = o->full;
    pare_status st = read_graph(g, a, o, err);
    if (st) return st == PARE_ERR_USAGE ? st : task_prefix_error(st, err, o->path);
    const size_t classes = g->data.classes;
    g->in[1] = (pare_input){
        .batch = 1, .tokens = g->data.graph.n, .width = g->data.features, .x = g->data.x};
    g->in[0] = g->in[1];
    g->in[0].graph = &g->data.graph;
    const char *id = pare_sprintf(a, "graph split %zu component %d full %d", o->split,
                                  o->largest_component, o->full);
    st = task_fingerprint(&id, a, &o->path, 1, err);
    if (st) return st;
    *out = (pare_task){.self = g,
                       .id = id,
                       .metric = classes == 2 ? "auc" : "accuracy",
                       .more_is_better = true,
                       .fixed = true,
                       .epoch = 1,
                       .batch = batch,
                       .score = score};
    *facts = (pare_task_facts){
        .features = g->data.features,
        .outputs = classes,
        .tokens = g->data.graph.n,
        .pool = PARE_POOL_NONE,
        .train = g->count[TRAIN],
        .val = g->count[VAL],
        .test = g->count[TEST],
        .on = {[PARE_PART_VAL] = {.inputs = g->count[VAL], .counted = g->count[VAL]},
               [PARE_PART_TEST] = {.inputs = g->count[TEST], .counted = g->count[TEST]}}};
    return PARE_OK;
}
