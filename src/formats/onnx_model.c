/* onnx_model.c - a whole model as one ONNX graph: the forward pass of forward.c, node by node. */
#include "onnx_parts.h"
#include "model/shared_rows.h"
#include <float.h>
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

/* The row of the table of each token. */
static value token_rows(writer *x)
{
    const pare_embedding *const s = &x->m->embedding;
    int64_t *const rows = pare_alloc(x->g.arena, s->vocab, sizeof *rows);
    if (!rows) {
        onnx_no_memory(&x->g);
        return NULL;
    }
    for (size_t id = 0; id < s->vocab; id++) rows[id] = s->rows[id];
    return onnx_list(&x->g, "embedding.rows", s->vocab, rows);
}

static value put_embedding(writer *x)
{
    onnx *const g = &x->g;
    const pare_embedding *const s = &x->m->embedding;
    snprintf(x->where, sizeof x->where, "embedding");
    value v = "x";
    if (s->ids) {
        value id = "ids";
        if (s->rows) {
            const value row[] = {token_rows(x), id};
            id = onnx_node(g, "Gather", row, 2, ONE_NUMBER("axis", 0));
        }
        const value in[] = {put_weight(x, "embedding", &s->table, ONNX_MATRIX), id};
        v = onnx_node(g, "Gather", in, 2, ONE_NUMBER("axis", 0));
    }
    if (!s->pos.after_map) v = positioned(x, v, s->width);
    if (pare_has(&s->map.w)) v = put_dense(x, v, "map.weight", "map.bias", &s->map.w, &s->map.b);
    if (s->pos.after_map) v = positioned(x, v, pare_model_width(x->m, 0));
    return put_norm(x, v, "norm", &s->norm);
}

/* ---- blocks and top ----------------------------------------------------------------------------
 */

static value pooled(writer *x, value v)
{
    onnx *const g = &x->g;
    const pare_pool kind = x->m->head.pool;
    const int64_t axis = 1;
    if (kind == PARE_POOL_NONE) return v;
    if (kind == PARE_POOL_FIRST || kind == PARE_POOL_LAST) {
        const value one[] = {v, onnx_number(g, kind == PARE_POOL_FIRST ? 0 : -1)};
        return onnx_node(g, "Gather", one, 2, ONE_NUMBER("axis", 1));
    }
    const char *const reduce = kind == PARE_POOL_MEAN ? "ReduceMean" : "ReduceMax";
    const value row = onnx_reduce(g, reduce, v, 1);
    return onnx_op2(g, "Squeeze", row, onnx_numbers(g, 1, &axis));
}

/* Not LpNormalization, which leaves open what becomes of a row of zeros: the length is at least the
 * smallest normal number here, and zeros stay. */
static value normalized(writer *x, value v)
{
    onnx *const g = &x->g;
    if (!x->m->head.normalize) return v;
    const value length = onnx_reduce(g, "ReduceL2", v, -1);
    return onnx_op2(g, "Div", v, onnx_op2(g, "Max", length, onnx_real(g, FLT_MIN)));
}

static value classified(writer *x, value v)
{
    onnx *const g = &x->g;
    const pare_output_head *const t = &x->m->head;
    if (t->tied) {
        snprintf(x->where, sizeof x->where, "embedding");
        const value table = put_weight(x, "embedding", &x->m->embedding.table, ONNX_MATRIX);
        snprintf(x->where, sizeof x->where, "head");
        const value transposed = onnx_node(g, "Transpose", &table, 1, NUMBERS("perm", 2, 1, 0));
        v = onnx_op2(g, "MatMul", v, transposed);
        if (pare_output_map(x->m)) {
            const value in[] = {v, token_rows(x)};
            v = onnx_node(g, "Gather", in, 2, ONE_NUMBER("axis", -1));
        }
        return put_bias(x, v, "out.bias", &t->out.b);
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
    return normalized(x, classified(x, put_act(x, v, t->act)));
}

/* ---- the graph ---------------------------------------------------------------------------------
 */

static int opset_of(const pare_model *m)
{
    for (size_t i = 0; i < m->nints; i++)
        if (m->ints[i].bits <= 4) return ONNX_OPSET_INT4;
    return ONNX_OPSET;
}

pare_status pare_export_onnx(const pare_model *m, const char *path, bool overwrite, uint64_t *bytes,
                             pare_err *err)
{
    writer x = {.m = m};
    x.g.err = err;
    if (!(x.g.arena = pare_arena_new())) return pare_no_memory(err);
    x.g.opset = opset_of(m);
    if (x.m->pattern.kind == PARE_GRAPH)
        onnx_fail(&x.g, PARE_ERR_INPUT,
                  "attention over a graph (pattern graph) has no ONNX form: export takes models "
                  "of sequences");
    const dimension batch = {"batch", 0}, tokens = {"tokens", 0};
    const dimension in[] = {batch, tokens, {NULL, x.m->embedding.width}};
    const dimension each[] = {batch, tokens, {NULL, pare_model_outputs(x.m)}};
    const dimension one[] = {batch, {NULL, pare_model_outputs(x.m)}};
    if (x.m->embedding.ids)
        onnx_value(&x.g, ONNX_INPUT, "ids", ONNX_INT64, in, 2);
    else
        onnx_value(&x.g, ONNX_INPUT, "x", ONNX_FLOAT, in, 3);
    if (x.m->head.pool == PARE_POOL_NONE)
        onnx_value(&x.g, ONNX_OUTPUT, "y", ONNX_FLOAT, each, 3);
    else
        onnx_value(&x.g, ONNX_OUTPUT, "y", ONNX_FLOAT, one, 2);
    /* How many sequences, how many tokens, and 0, 1, ... */
    onnx *const g = &x.g;
    const value shape = onnx_op1(g, "Shape", x.m->embedding.ids ? "ids" : "x");
    const value second[] = {shape, onnx_number(g, 1)};
    x.rows = put_slice(&x, shape, 0, 0, 2, 1);
    x.tokens = onnx_node(g, "Gather", second, 2, ONE_NUMBER("axis", 0));
    x.positions = onnx_op3(g, "Range", onnx_number(g, 0), x.tokens, onnx_number(g, 1));
    value v = put_embedding(&x);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &x.m->blocks[b].attn;
        const pare_ffn *const f = &x.m->blocks[b].ffn;
        if (a->kind != PARE_ATTN_NONE) {
            snprintf(x.where, sizeof x.where, "blocks.%zu.attn", b);
            const value z = put_norm(&x, v, "in_norm", &a->in_norm);
            v = put_finish(&x, put_attention(&x, z, a), v, &a->skip, &a->out_norm);
        }
        if (f->kind != PARE_FFN_NONE) {
            snprintf(x.where, sizeof x.where, "blocks.%zu.ffn", b);
            const value z = put_norm(&x, v, "in_norm", &f->in_norm);
            v = put_finish(&x, put_ffn(&x, z, f), v, &f->skip, &f->out_norm);
        }
    }
    onnx_rename(&x.g, put_head(&x, v), "y");
    const pare_status st = onnx_write(&x.g, m->name ? m->name : "model", path, overwrite, bytes);
    onnx_free(&x.g);
    pare_arena_free(x.g.arena);
    return st;
}
