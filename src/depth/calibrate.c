/* What is gathered about every attention layer, from passes of the f64 reference over the data.
 *
 * With z the normed input of the layer, U the uniform weights over the visible keys and F(z) what
 * the attention says, rows of [z, Uz, 1] give in one Gram matrix and one product with F all that
 * const, constq, linear and affmix ask for: the mean of F is its last row, and so is the mean of z,
 * hence the mean query of each head. The values that these mean queries gather need a second pass.
 * Memory is that of one input: nothing is kept of the others but the sums. */
#include "replace_layers.h"
#include <math.h>
#include <string.h>

size_t list_softmax_layers(layer *out, const pare_model *m)
{
    size_t n = 0;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        if (!pare_attn_is_softmax(a->kind)) continue;
        if (out) out[n] = (layer){.block = b, .a = a};
        n++;
    }
    return n;
}

typedef struct pass {
    pare_arena *a; /* of one input */
    const pare_model *m;
    const pare_input *in;
    const pare_exec *exec;
    pare_err *err;
} pass;

/* ---- sums ------------------------------------------------------------------------------------ */

/* Parts side by side, and a column of ones behind them. */
static pare_status features(pare_mat *out, const pass *p, const pare_mat *part, size_t parts)
{
    size_t cols = 1, at = 0;
    for (size_t k = 0; k < parts; k++) cols += part[k].cols;
    *out = pare_mat_new(p->a, part[0].rows, cols);
    if (!out->v) return pare_no_memory(p->err);
    for (size_t k = 0; k < parts; at += part[k++].cols)
        for (size_t i = 0; i < out->rows; i++)
            memcpy(pare_row_mut(out, i) + at, pare_row(&part[k], i), part[k].cols * sizeof *out->v);
    for (size_t i = 0; i < out->rows; i++) pare_row_mut(out, i)[at] = 1;
    return PARE_OK;
}

/* gram += x^T x, cross += x^T f */
static pare_status add_products(pare_mat *gram, pare_mat *cross, const pass *p,
                                const pare_mat *part, size_t parts, const pare_mat *f)
{
    pare_mat x;
    const pare_status st = features(&x, p, part, parts);
    if (st) return st;
    pare_gemm(gram, 1, &x, true, &x, false, 1);
    pare_gemm(cross, 1, &x, true, f, false, 1);
    return PARE_OK;
}

/* ---- one layer, one input -------------------------------------------------------------------- */

static pare_status run(pare_mat *out, const pass *p, const pare_model *section, const pare_mat *x)
{
    return submodel_run(out, p->a, section, p->in, x, p->exec, p->err);
}

static pare_status branch(pare_mat *out, const pass *p, const pare_attn *a, const pare_mat *x)
{
    pare_block block;
    const pare_model s = submodel_branch(&block, p->m, a);
    return run(out, p, &s, x);
}

static pare_status normed(pare_mat *out, const pass *p, const pare_attn *a, const pare_mat *x)
{
    const pare_model s = submodel_norm(p->m, &a->in_norm, a->din);
    return run(out, p, &s, x);
}

/* U z: uniform attention whose values are the tokens themselves. */
static pare_status visible_mean(pare_mat *out, const pass *p, const pare_attn *a, const pare_mat *x)
{
    pare_attn u = {.kind = PARE_ATTN_UNIFORM, .din = a->din, .dout = a->din, .in_norm = a->in_norm};
    const pare_status st = pare_weight_identity(&u.mix, p->a, a->din, PARE_F64, p->err);
    return st ? st : branch(out, p, &u, x);
}

static pare_status first_sums(layer *l, const pass *p, const pare_mat *x)
{
    pare_mat part[2], f;
    pare_status st = branch(&f, p, l->a, x);
    if (!st) st = normed(&part[0], p, l->a, x);
    if (!st && l->mix) st = visible_mean(&part[1], p, l->a, x);
    if (!st) st = add_products(&l->gram, &l->cross, p, part, l->mix ? 2 : 1, &f);
    l->tokens += (double)x->rows;
    return st;
}

/* The heads with one query each, side by side. */
static pare_status pooled_heads(pare_attn *out, const layer *l, const pass *p)
{
    *out = *l->a;
    out->kind = PARE_ATTN_CONSTQ;
    out->bq = (pare_weight){PARE_F64, 1, out->wq.rows, l->query};
    out->wq = out->wo = out->bo = out->bk = out->freqs = (pare_weight){0};
    out->dout = l->pool_gram.rows - 1 - out->din;
    return heads_without_rotary(&out->heads, p->a, l->a, p->err);
}

static pare_status second_sums(layer *l, const pass *p, const pare_mat *x)
{
    pare_mat part[2], f;
    pare_attn heads;
    pare_status st = pooled_heads(&heads, l, p);
    if (!st) st = branch(&f, p, l->a, x);
    if (!st) st = normed(&part[0], p, l->a, x);
    if (!st) st = branch(&part[1], p, &heads, x);
    return st ? st : add_products(&l->pool_gram, &l->pool_cross, p, part, 2, &f);
}

/* Sum over the tokens of 1 - cosine of what enters a block and what leaves it; a row of zeros that
 * stays one has not been touched. */
static double influence(const pare_mat *x, const pare_mat *y)
{
    double sum = 0;
    for (size_t i = 0; x->cols == y->cols && i < x->rows; i++) {
        double xx = 0, yy = 0, xy = 0;
        for (size_t j = 0; j < x->cols; j++) {
            const double a = pare_row(x, i)[j], b = pare_row(y, i)[j];
            xx += a * a;
            yy += b * b;
            xy += a * b;
        }
        sum += xx > 0 && yy > 0 ? 1 - xy / sqrt(xx * yy) : xx != yy;
    }
    return sum;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static size_t head_columns(const pare_attn *a)
{
    size_t n = 0;
    for (size_t h = 0; h < a->nheads; h++) n += a->heads[h].dv;
    return n;
}

static pare_status open_layer(layer *l, pare_arena *a, wanted what, pare_err *err)
{
    const size_t d = l->a->din, dout = l->a->dout, n = (what.mix ? 2 : 1) * d + 1;
    const size_t pooled = d + head_columns(l->a) + 1;
    l->mix = what.mix;
    l->gram = pare_mat_new(a, n, n);
    l->cross = pare_mat_new(a, n, dout);
    l->query = pare_alloc(a, l->a->wq.rows + 1, sizeof *l->query);
    if (!l->gram.v || !l->cross.v || !l->query) return pare_no_memory(err);
    if (!what.pool) return PARE_OK;
    l->pool_gram = pare_mat_new(a, pooled, pooled);
    l->pool_cross = pare_mat_new(a, pooled, dout);
    return l->pool_gram.v && l->pool_cross.v ? PARE_OK : pare_no_memory(err);
}

/* The mean of wq z + bq is that of the mean z. */
static void mean_queries(layer *l)
{
    const pare_attn *const a = l->a;
    const double *const sum = pare_row(&l->gram, l->gram.rows - 1);
    for (size_t i = 0; pare_has(&a->wq) && i < a->wq.rows; i++) {
        double q = 0;
        for (size_t j = 0; j < a->din; j++) q += pare_weight_at(&a->wq, i * a->din + j) * sum[j];
        l->query[i] = q / l->tokens + (pare_has(&a->bq) ? pare_weight_at(&a->bq, i) : 0);
    }
}

static pare_status one_input(layer *layers, size_t n, const pass *p, wanted what, bool second)
{
    residual_streams s = {0};
    pare_status st = residual_streams_of(&s, p->a, p->m, p->in, p->exec, p->err);
    for (size_t k = 0; !st && k < n; k++) {
        layer *const l = &layers[k];
        const pare_mark mark = pare_arena_mark(p->a);
        const pare_mat *const x = &s.at[l->block];
        if (!second && what.influence) l->influence += influence(x, &s.at[l->block + 1]);
        if (!second && what.influence && !what.fit) l->tokens += (double)x->rows;
        if (!second && what.fit) st = first_sums(l, p, x);
        if (second) st = second_sums(l, p, x);
        pare_arena_reset(p->a, mark);
    }
    return st;
}

static pare_status all_inputs(layer *layers, size_t n, const pare_model *m, const pare_inputs *data,
                              wanted what, bool second, const pare_exec *exec, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < data->n; i++) {
        const pass p = {pare_arena_new(), m, &data->in[i], exec, err};
        st = p.a ? one_input(layers, n, &p, what, second) : pare_no_memory(err);
        pare_arena_free(p.a);
        if (!st)
            st = pare_progress(exec, "calibrate", (second ? data->n : 0) + i + 1,
                               (what.fit && what.pool ? 2 : 1) * data->n, err);
    }
    return st;
}

pare_status calibrate(layer *layers, size_t n, pare_arena *a, const pare_model *m,
                      const pare_inputs *data, wanted what, const pare_exec *exec, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t k = 0; !st && what.fit && k < n; k++) st = open_layer(&layers[k], a, what, err);
    if (!st) st = all_inputs(layers, n, m, data, what, false, exec, err);
    for (size_t k = 0; !st && what.fit && k < n; k++) mean_queries(&layers[k]);
    if (!st && what.fit && what.pool) st = all_inputs(layers, n, m, data, what, true, exec, err);
    return st;
}
