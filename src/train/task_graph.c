/* Nodes of a graph: the whole graph in every step, the labels of the training mask. */
#include "task.h"

#include <math.h>
#include <string.h>

enum { TRAIN, VAL, TEST, PARTS };
static const char *const part_name[PARTS] = {"training", "validation", "test"};

typedef struct graph_task {
    pare_graph_data data;
    size_t split;
    bool full;
    int64_t *label[PARTS]; /* n each; -1 = of another part */
    size_t count[PARTS];
} graph_task;

/* ---- the largest component ----------------------------------------------------------------- */

typedef struct component {
    uint32_t *of;   /* n: which component a node belongs to, by its first node */
    uint32_t *node; /* the nodes of the largest, ascending */
    size_t n;
} component;

/* Breadth first from `start`; `queue` has room for every node. Returns how many were reached. */
static size_t flood(uint32_t *of, uint32_t *queue, const pare_graph *g, uint32_t start)
{
    size_t head = 0, tail = 0;
    queue[tail++] = start;
    of[start] = start;
    while (head < tail) {
        const uint32_t i = queue[head++];
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) {
            const uint32_t j = g->idx[e];
            if (of[j] != UINT32_MAX) continue;
            of[j] = start;
            queue[tail++] = j;
        }
    }
    return tail;
}

/* Of two of one size the one with the first node. */
static pare_status find_largest(component *c, pare_arena *a, const pare_graph *g, pare_err *err)
{
    c->of = pare_alloc(a, g->n, sizeof *c->of);
    c->node = pare_alloc(a, g->n, sizeof *c->node);
    if (!c->of || !c->node) return pare_no_memory(err);
    uint32_t largest = 0;
    c->n = 0;
    for (size_t i = 0; i < g->n; i++) c->of[i] = UINT32_MAX;
    for (uint32_t i = 0; i < g->n; i++) {
        if (c->of[i] != UINT32_MAX) continue;
        const size_t n = flood(c->of, c->node, g, i);
        if (n > c->n) {
            c->n = n;
            largest = i;
        }
    }
    size_t k = 0;
    for (uint32_t i = 0; i < g->n; i++)
        if (c->of[i] == largest) c->node[k++] = i;
    return PARE_OK;
}

/* The graph of the kept nodes under their new numbers; no edge leaves a component. */
static pare_status keep_edges(pare_graph *out, pare_arena *a, const pare_graph *g,
                              const component *c, pare_err *err)
{
    size_t edges = 0;
    for (size_t k = 0; k < c->n; k++) edges += g->ptr[c->node[k] + 1] - g->ptr[c->node[k]];
    size_t *ptr = pare_alloc(a, c->n + 1, sizeof *ptr);
    uint32_t *idx = pare_alloc(a, edges ? edges : 1, sizeof *idx);
    uint32_t *now = pare_alloc(a, g->n, sizeof *now);
    if (!ptr || !idx || !now) return pare_no_memory(err);
    for (size_t k = 0; k < c->n; k++) now[c->node[k]] = (uint32_t)k;
    for (size_t k = 0; k < c->n; k++) {
        const size_t old = c->node[k];
        ptr[k + 1] = ptr[k];
        for (size_t e = g->ptr[old]; e < g->ptr[old + 1]; e++) idx[ptr[k + 1]++] = now[g->idx[e]];
    }
    *out = (pare_graph){c->n, ptr, idx};
    return PARE_OK;
}

/* Keeps features, labels and masks of the largest component. */
static pare_status keep_largest(pare_graph_data *d, const uint8_t *mask[PARTS], pare_arena *a,
                                pare_err *err)
{
    component c = {0};
    pare_status st = find_largest(&c, a, &d->graph, err);
    if (st || c.n == d->graph.n) return st;
    double *x = pare_alloc(a, c.n * d->features + 1, sizeof *x);
    int64_t *labels = pare_alloc(a, c.n, sizeof *labels);
    uint8_t *kept = pare_alloc(a, c.n, PARTS);
    if (!x || !labels || !kept) return pare_no_memory(err);
    for (size_t k = 0; k < c.n; k++) {
        const size_t old = c.node[k];
        memcpy(x + k * d->features, d->x + old * d->features, d->features * sizeof *x);
        labels[k] = d->labels[old];
        for (size_t p = 0; p < PARTS; p++) kept[p * c.n + k] = mask[p][old];
    }
    st = keep_edges(&d->graph, a, &d->graph, &c, err);
    d->x = x;
    d->labels = labels;
    for (size_t p = 0; p < PARTS; p++) mask[p] = kept + p * c.n;
    return st;
}

/* ---- is it a lesson? ----------------------------------------------------------------------- */

static pare_status check_labels(const pare_graph_data *d, size_t classes, pare_err *err)
{
    for (size_t i = 0; i < d->graph.n; i++) {
        if (classes && (uint64_t)d->labels[i] >= classes)
            return pare_fail(err, PARE_ERR_INPUT,
                             "node %zu has the label %lld, the model has %zu outputs", i,
                             (long long)d->labels[i], classes);
        if ((uint64_t)d->labels[i] >= d->graph.n)
            return pare_fail(err, PARE_ERR_INPUT,
                             "node %zu has the label %lld: more classes than the %zu nodes", i,
                             (long long)d->labels[i], d->graph.n);
    }
    if (d->classes < 2 && !classes)
        return pare_fail(err, PARE_ERR_INPUT, "every node has the label 0: nothing to learn");
    return PARE_OK;
}

/* AUC compares nodes of the two classes: a part must have both. */
static pare_status check_part(const graph_task *g, size_t part, bool auc, pare_err *err)
{
    size_t ones = 0;
    if (g->count[part] == 0)
        return pare_fail(err, PARE_ERR_INPUT, "split %zu has no %s node", g->split,
                         part_name[part]);
    for (size_t i = 0; i < g->data.graph.n; i++) ones += g->label[part][i] == 1;
    if (auc && (ones == 0 || ones == g->count[part]))
        return pare_fail(err, PARE_ERR_INPUT,
                         "split %zu: all %zu %s nodes have the label %d, and AUC needs both",
                         g->split, g->count[part], part_name[part], ones > 0);
    return PARE_OK;
}

static pare_status put_labels(graph_task *g, const uint8_t *const mask[PARTS], pare_arena *a,
                              pare_err *err)
{
    const size_t n = g->data.graph.n;
    for (size_t p = 0; p < PARTS; p++) {
        g->label[p] = pare_alloc(a, n, sizeof *g->label[p]);
        if (!g->label[p]) return pare_no_memory(err);
        for (size_t i = 0; i < n; i++) {
            g->label[p][i] = mask[p][i] ? g->data.labels[i] : -1;
            g->count[p] += mask[p][i];
        }
    }
    return PARE_OK;
}

/* ---- the lesson ---------------------------------------------------------------------------- */

static pare_input whole(const graph_task *g, bool full)
{
    return (pare_input){.batch = 1,
                        .tokens = g->data.graph.n,
                        .width = g->data.features,
                        .x = g->data.x,
                        .graph = full ? NULL : &g->data.graph};
}

static pare_status batch(void *self, pare_batch *out, pare_arena *a, uint64_t seed, uint64_t step,
                         pare_err *err)
{
    (void)a, (void)seed, (void)step, (void)err;
    const graph_task *g = self;
    *out = (pare_batch){.in = whole(g, g->full), .label = g->label[TRAIN]};
    return PARE_OK;
}

static pare_status score_in(const graph_task *g, double *out, pare_arena *a, const pare_model *m,
                            size_t part, const pare_exec *exec, pare_err *err)
{
    const pare_input in = whole(g, m->pattern.kind != PARE_GRAPH);
    pare_metric *metric = NULL;
    pare_scores s;
    float *y;
    pare_status st = task_forward(&y, a, m, &in, exec, err);
    if (!st) st = pare_metric_new(&metric, a, pare_model_outputs(m), err);
    if (!st) st = pare_metric_add(metric, y, g->label[part], in.tokens, err);
    if (!st) st = pare_metric_scores(&s, metric, err);
    if (!st) *out = pare_model_outputs(m) == 2 ? s.auc : s.accuracy;
    return st;
}

static pare_status score(void *self, double *out, const pare_model *m, pare_fold_part part,
                         const pare_exec *exec, pare_err *err)
{
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st = score_in(self, out, a, m, part == PARE_PART_VAL ? VAL : TEST, exec, err);
    pare_arena_free(a);
    return task_score_status(st, out, err);
}

static pare_status open_graph(graph_task *g, pare_arena *a, const pare_graph_lesson *o,
                              pare_err *err)
{
    const uint8_t *mask[PARTS];
    pare_status st = pare_graph_load(&g->data, a, o->path, err);
    if (!st) st = check_labels(&g->data, o->classes, err);
    if (!st)
        st = pare_graph_masks(&mask[TRAIN], &mask[VAL], &mask[TEST], a, &g->data, o->split, err);
    if (!st && o->largest_component) st = keep_largest(&g->data, mask, a, err);
    if (!st && g->data.features == 0)
        st = pare_fail(err, PARE_ERR_INPUT, "the nodes have no features");
    if (!st) st = put_labels(g, mask, a, err);
    if (!st && o->classes) g->data.classes = o->classes;
    const bool auc = g->data.classes == 2;
    for (size_t p = 0; !st && p < PARTS; p++) st = check_part(g, p, auc && p != TRAIN, err);
    return st;
}

pare_status pare_lesson_graph(pare_lesson *out, pare_lesson_facts *facts, pare_arena *a,
                              const pare_graph_lesson *o, pare_err *err)
{
    graph_task *g = pare_alloc(a, 1, sizeof *g);
    if (!g) return pare_no_memory(err);
    g->split = o->split;
    g->full = o->full;
    pare_status st = open_graph(g, a, o, err);
    if (st) return st == PARE_ERR_USAGE ? st : task_prefix_error(st, err, o->path);
    const size_t classes = g->data.classes;
    const char *id = pare_sprintf(a, "graph split %zu component %d full %d", o->split,
                                  o->largest_component, o->full);
    st = id ? task_fingerprint(&id, a, id, &o->path, 1, err) : pare_no_memory(err);
    if (st) return st;
    *out = (pare_lesson){.self = g,
                         .id = id,
                         .metric = classes == 2 ? "auc" : "accuracy",
                         .more_is_better = true,
                         .fixed = true,
                         .epoch = 1,
                         .batch = batch,
                         .score = score};
    *facts = (pare_lesson_facts){.features = g->data.features,
                                 .outputs = classes,
                                 .tokens = g->data.graph.n,
                                 .pool = PARE_POOL_NONE,
                                 .train = g->count[TRAIN],
                                 .val = g->count[VAL],
                                 .test = g->count[TEST]};
    return PARE_OK;
}
