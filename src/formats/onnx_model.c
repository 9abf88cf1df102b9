/* onnx_model.c - a whole model as one ONNX graph: the forward pass of forward.c, node by node. */
#include "onnx_parts.h"
#include <math.h>
#include <pare/model.h>
#include <stdio.h>

/* ---- embedding --------------------------------------------------------------------------------------
 */

/* Positions that are added: [tokens, d], or NULL. */
static value added_positions(writer *x, size_t d)
{
    onnx *const g = &x->g;
    const pare_positions *const p = &x->m->embedding.pos;
    if (p->kind == PARE_POS_LEARNED) {
        const value in[] = {put_weight(x, "positions", &p->table, ONNX_MATRIX), x->positions};
        return onnx_node(g, "Gather", in, 2, ONE_NUMBER("axis", 0));
    }
    if (p->kind != PARE_POS_SINUSOIDAL) return NULL;
    double *const f = pare_alloc(g->arena, 2 * d, sizeof *f);
    if (!f) {
        onnx_no_memory(g);
        return NULL;
    }
    for (size_t j = 0; j < d; j++) {
        f[j] = pow(p->base, -(double)(j / 2 * 2) / (double)d);
        f[d + j] = j % 2 ? acos(-1) / 2 : 0;
    }
    return put_waves(x, f, f + d, d);
}

static value positioned(writer *x, value v, size_t d)
{
    const value p = added_positions(x, d);
    return p ? onnx_op2(&x->g, "Add", v, p) : v;
}

static value put_embedding(writer *x)
{
    onnx *const g = &x->g;
    const pare_embedding *const s = &x->m->embedding;
    snprintf(x->where, sizeof x->where, "embedding");
    value v = "x";
    if (s->ids) {
        const value in[] = {put_weight(x, "embedding", &s->table, ONNX_MATRIX), "ids"};
        v = onnx_node(g, "Gather", in, 2, ONE_NUMBER("axis", 0));
    }
    if (!s->pos.after_map) v = positioned(x, v, s->width);
    if (pare_has(&s->map.w)) v = put_dense(x, v, "map.weight", "map.bias", &s->map.w, &s->map.b);
    if (s->pos.after_map) v = positioned(x, v, pare_model_width(x->m, 0));
    return put_norm(x, v, "norm", &s->norm);
}

/* ---- blocks and top ----------------------------------------------------------------------------
 */

static value put_block(writer *x, value v, size_t b)
{
    const pare_attn *const a = &x->m->blocks[b].attn;
    const pare_ffn *const f = &x->m->blocks[b].ffn;
    if (a->kind != PARE_ATTN_NONE) {
        snprintf(x->where, sizeof x->where, "blocks.%zu.attn", b);
        const value z = put_norm(x, v, "in_norm", &a->in_norm);
        v = put_finish(x, put_attention(x, z, a), v, &a->skip, &a->out_norm);
    }
    if (f->kind != PARE_FFN_NONE) {
        snprintf(x->where, sizeof x->where, "blocks.%zu.ffn", b);
        const value z = put_norm(x, v, "in_norm", &f->in_norm);
        v = put_finish(x, put_ffn(x, z, f), v, &f->skip, &f->out_norm);
    }
    return v;
}

static value pooled(writer *x, value v)
{
    onnx *const g = &x->g;
    const value first[] = {v, onnx_number(g, 0)};
    const int64_t axis = 1;
    if (x->m->head.pool == PARE_POOL_NONE) return v;
    if (x->m->head.pool == PARE_POOL_FIRST)
        return onnx_node(g, "Gather", first, 2, ONE_NUMBER("axis", 1));
    const value mean = onnx_node(g, "ReduceMean", &v, 1, NUMBERS("axes", 1, 1));
    return onnx_op2(g, "Squeeze", mean, onnx_numbers(g, 1, &axis));
}

static value classified(writer *x, value v)
{
    onnx *const g = &x->g;
    const pare_output_head *const t = &x->m->head;
    if (t->tied) {
        const value table =
            onnx_weight(g, "embedding.embedding", &x->m->embedding.table, ONNX_MATRIX);
        const value transposed = onnx_node(g, "Transpose", &table, 1, NUMBERS("perm", 2, 1, 0));
        return put_bias(x, onnx_op2(g, "MatMul", v, transposed), "out.bias", &t->out.b);
    }
    if (!pare_has(&t->out.w)) return v;
    return put_dense(x, v, "out.weight", "out.bias", &t->out.w, &t->out.b);
}

static value put_head(writer *x, value v)
{
    const pare_output_head *const t = &x->m->head;
    snprintf(x->where, sizeof x->where, "head");
    v = pooled(x, put_norm(x, v, "norm", &t->norm));
    if (pare_has(&t->dense.w))
        v = put_dense(x, v, "dense.weight", "dense.bias", &t->dense.w, &t->dense.b);
    return classified(x, put_act(x, v, t->act));
}

/* ---- the graph ---------------------------------------------------------------------------------
 */

static void ends(writer *x)
{
    const pare_model *const m = x->m;
    const dimension batch = {"batch", 0}, tokens = {"tokens", 0};
    const dimension in[] = {batch, tokens, {NULL, m->embedding.width}};
    const dimension each[] = {batch, tokens, {NULL, pare_model_outputs(m)}};
    const dimension one[] = {batch, {NULL, pare_model_outputs(m)}};
    if (m->embedding.ids)
        onnx_value(&x->g, ONNX_INPUT, "ids", ONNX_INT64, in, 2);
    else
        onnx_value(&x->g, ONNX_INPUT, "x", ONNX_FLOAT, in, 3);
    if (m->head.pool == PARE_POOL_NONE)
        onnx_value(&x->g, ONNX_OUTPUT, "y", ONNX_FLOAT, each, 3);
    else
        onnx_value(&x->g, ONNX_OUTPUT, "y", ONNX_FLOAT, one, 2);
}

/* How many sequences, how many tokens, and 0, 1, ... */
static void sizes(writer *x)
{
    onnx *const g = &x->g;
    const value shape = onnx_op1(g, "Shape", x->m->embedding.ids ? "ids" : "x");
    const value second[] = {shape, onnx_number(g, 1)};
    x->rows = put_slice(x, shape, 0, 0, 2, 1);
    x->tokens = onnx_node(g, "Gather", second, 2, ONE_NUMBER("axis", 0));
    x->positions = onnx_op3(g, "Range", onnx_number(g, 0), x->tokens, onnx_number(g, 1));
}

static void check(writer *x)
{
    const pare_model *const m = x->m;
    if (m->pattern.kind == PARE_GRAPH)
        onnx_fail(&x->g, PARE_ERR_INPUT,
                  "attention over a graph (pattern graph) has no ONNX form: export takes models "
                  "of sequences");
}

pare_status pare_export_onnx(const pare_model *m, const char *path, bool overwrite, uint64_t *bytes,
                             pare_err *err)
{
    writer x = {.m = m};
    x.g.err = err;
    if (!(x.g.arena = pare_arena_new())) return pare_no_memory(err);
    check(&x);
    ends(&x);
    sizes(&x);
    value v = put_embedding(&x);
    for (size_t b = 0; b < m->nblocks; b++) v = put_block(&x, v, b);
    onnx_rename(&x.g, put_head(&x, v), "y");
    const pare_status st = onnx_write(&x.g, m->name ? m->name : "model", path, overwrite, bytes);
    onnx_free(&x.g);
    pare_arena_free(x.g.arena);
    return st;
}
