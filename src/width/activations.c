/* activations.c - the activations of a model on its data: the residual stream h_0, z_0, h_1, ...,
 * h_L by the f64 reference, and the hidden units of every feed-forward part. Every cut that is
 * fitted to data uses these, and nothing else. */
#include "folded_net.h"
#include <string.h>

typedef struct collector {
    pare_work *w;
    activations *p;
} collector;

static pare_mat copy_rows(pare_work *w, const void *v, size_t rows, size_t cols)
{
    pare_mat m = mat_zeros(w, rows, cols);
    if (!w->st) memcpy(m.v, v, rows * cols * sizeof(double));
    return m;
}

static void collect(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v,
                    size_t rows, size_t cols)
{
    collector *const l = self;
    PARE_ASSERT(dtype == PARE_F64);
    if (tap == PARE_TAP_ATTN_IN) l->p->h[block] = copy_rows(l->w, v, rows, cols);
    if (tap == PARE_TAP_ATTN_OUT) l->p->z[block] = copy_rows(l->w, v, rows, cols);
    if (tap == PARE_TAP_FFN_OUT && block + 1 == l->p->nlayers)
        l->p->h[block + 1] = copy_rows(l->w, v, rows, cols);
}

pare_graph key_graph(pare_work *w, const pare_pattern *p, const pare_graph *data, size_t n)
{
    pare_graph g = {0};
    if (w->st) return g;
    if (p->kind == PARE_GRAPH) {
        w->st = pare_graph_complete(&g, w->arena, data, p, w->err);
        return g;
    }
    size_t *const ptr = pare_work_alloc(w, n + 1, sizeof *ptr);
    for (size_t i = 0; !w->st && i < n; i++)
        ptr[i + 1] = ptr[i] + pare_visible(p, NULL, n, i).count;
    uint32_t *const idx = pare_work_alloc(w, w->st ? 0 : ptr[n], sizeof *idx);
    for (size_t i = 0; !w->st && i < n; i++) {
        const pare_keys keys = pare_visible(p, NULL, n, i);
        for (size_t k = 0; k < keys.count; k++) idx[ptr[i] + k] = (uint32_t)pare_key(&keys, k);
    }
    return (pare_graph){n, ptr, idx};
}

activations activations_of(pare_work *w, const pare_model *folded, const net *n,
                           const pare_input *in)
{
    activations p = {.nlayers = n->nlayers};
    if (w->st) return p;
    if (in->batch != 1 || in->tokens == 0) {
        pare_work_fail(w, PARE_ERR_INPUT,
                       "width needs one graph with nodes, not %zu inputs of %zu tokens", in->batch,
                       in->tokens);
        return p;
    }
    p.h = pare_work_alloc(w, n->nlayers + 1, sizeof *p.h);
    p.z = pare_work_alloc(w, n->nlayers, sizeof *p.z);
    p.p = pare_work_alloc(w, n->nlayers, sizeof *p.p);
    pare_mat y = mat_zeros(w, in->tokens, n->wh.rows);
    if (!w->st) w->st = pare_input_check(folded, in, w->err);
    if (w->st) return p;
    collector l = {w, &p};
    const pare_trace trace = {.fn = collect, .self = &l};
    const pare_status st = pare_forward_f64(y.v, folded, in, &trace, w->exec, w->err);
    if (!w->st) w->st = st;
    p.graph = key_graph(w, &folded->pattern, in->graph, in->tokens);
    p.x = copy_rows(w, in->x, in->tokens, in->width);
    for (size_t i = 0; !w->st && i < n->nlayers; i++)
        p.p[i] = layer_hidden(w, &n->layers[i], &p.z[i]);
    return p;
}
