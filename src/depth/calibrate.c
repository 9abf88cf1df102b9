/* calibrate.c - sums over the data for every attention layer, by passes of the f64 reference.
 *
 * With z the normed input of the layer, U the uniform weights over the visible keys and F(z) the
 * output of the attention, the rows r = [z, Uz, 1] give
 *
 *     gram = sum r^T r,     cross = sum r^T F(z),
 *
 * which is all that const, constq, linear and affmix need: the mean of F is the last row of cross,
 * the mean of z the last row of gram, and the mean query of each head is a map of that. The values
 * that these mean queries gather need a second pass. Memory is that of one input. */
#include "linalg/matrix.h"
#include "replace_layers.h"
#include <math.h>
#include <string.h>

size_t list_softmax_layers(softmax_layer *out, const pare_model *m)
{
    size_t n = 0;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        if (!pare_attn_is_softmax(a->kind)) continue;
        if (out) out[n] = (softmax_layer){.block = b, .attn = a};
        n++;
    }
    return n;
}

/* gram += x^T x, cross += x^T f with x the parts side by side and a column of ones. */
static void add_products(pare_work *w, pare_mat *gram, pare_mat *cross, const pare_mat *part,
                         size_t parts, const pare_mat *f)
{
    size_t at = 0;
    pare_mat x = w->st ? (pare_mat){0} : work_matrix(w, f->rows, gram->cols);
    if (w->st) return;
    for (size_t k = 0; k < parts; at += part[k++].cols)
        for (size_t i = 0; i < x.rows; i++)
            memcpy(pare_row_mut(&x, i) + at, pare_row(&part[k], i), part[k].cols * sizeof *x.v);
    PARE_ASSERT(at + 1 == x.cols);
    for (size_t i = 0; i < x.rows; i++) pare_row_mut(&x, i)[at] = 1;
    pare_gemm(gram, 1, &x, true, &x, false, 1);
    pare_gemm(cross, 1, &x, true, f, false, 1);
}

static pare_mat run_branch(pare_work *w, const pare_model *m, const pare_input *in,
                           const pare_attn *a, const pare_mat *x)
{
    pare_block block;
    const pare_model s = submodel_branch(&block, m, a);
    return submodel_run(w, &s, in, x);
}

/* Adds one input, whose stream before the layer is x: [z, Uz, 1] in the first pass, [z, the values
 * that the mean queries gather, 1] in the second. */
static void add_input(pare_work *w, softmax_layer *l, const pare_model *m, const pare_input *in,
                      const pare_mat *x, bool second)
{
    const pare_attn *const a = l->attn;
    const pare_model norm = submodel_norm(m, &a->in_norm, a->din);
    const pare_mat f = run_branch(w, m, in, a, x);
    pare_mat part[2] = {submodel_run(w, &norm, in, x), {0}};
    if (second) { /* heads side by side, each with its mean query */
        pare_attn pooled = *a;
        pooled.kind = PARE_ATTN_CONSTQ;
        pooled.bq = (pare_weight){PARE_F64, 1, a->wq.rows, l->query};
        pooled.wq = pooled.wo = pooled.bo = pooled.bk = pooled.freqs = (pare_weight){0};
        pooled.dout = l->pool_gram.rows - 1 - a->din;
        pooled.heads = heads_without_rotary(w, a);
        part[1] = run_branch(w, m, in, &pooled, x);
        add_products(w, &l->pool_gram, &l->pool_cross, part, 2, &f);
        return;
    }
    if (l->mix) { /* U z: uniform attention whose values are the tokens themselves */
        pare_attn u = {
            .kind = PARE_ATTN_UNIFORM, .din = a->din, .dout = a->din, .in_norm = a->in_norm};
        if (!w->st) w->st = pare_weight_identity(&u.mix, w->arena, a->din, PARE_F64, w->err);
        part[1] = run_branch(w, m, in, &u, x);
    }
    add_products(w, &l->gram, &l->cross, part, l->mix ? 2 : 1, &f);
    l->tokens += (double)x->rows;
}

/* Sum over the tokens of 1 - cosine between a block's input x and output y; a row of zeros that
 * stays one counts as unchanged. */
static double block_influence(const pare_mat *x, const pare_mat *y)
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

static void run_pass(pare_work *w, softmax_layer *layers, size_t n, const pare_model *m,
                     const pare_inputs *data, calibration what, bool second)
{
    for (size_t i = 0; !w->st && i < data->n; i++) {
        pare_work scratch = scratch_open(w);
        const residual_streams s = residual_streams_of(&scratch, m, &data->in[i]);
        for (size_t k = 0; !scratch.st && k < n; k++) {
            softmax_layer *const l = &layers[k];
            const pare_mark mark = pare_arena_mark(scratch.arena);
            const pare_mat *const x = &s.at[l->block];
            if (!second && what.influence) l->influence += block_influence(x, x + 1);
            if (!second && what.influence && !what.fit) l->tokens += (double)x->rows;
            if (second || what.fit) add_input(&scratch, l, m, &data->in[i], x, second);
            pare_arena_reset(scratch.arena, mark);
        }
        scratch_close(&scratch, w);
        if (!w->st)
            w->st = pare_progress(w->exec, "calibrate", (second ? data->n : 0) + i + 1,
                                  (what.fit && what.pool ? 2 : 1) * data->n, w->err);
    }
}

void calibrate(pare_work *w, softmax_layer *layers, size_t n, const pare_model *m,
               const pare_inputs *data, calibration what)
{
    for (size_t k = 0; what.fit && k < n; k++) {
        softmax_layer *const l = &layers[k];
        const pare_attn *const a = l->attn;
        const size_t cols = (what.mix ? 2 : 1) * a->din + 1;
        size_t pooled = a->din + 1;
        for (size_t h = 0; h < a->nheads; h++) pooled += a->heads[h].dv;
        l->mix = what.mix;
        l->gram = work_matrix(w, cols, cols);
        l->cross = work_matrix(w, cols, a->dout);
        l->query = pare_work_alloc(w, a->wq.rows + 1, sizeof *l->query);
        if (what.pool) l->pool_gram = work_matrix(w, pooled, pooled);
        if (what.pool) l->pool_cross = work_matrix(w, pooled, a->dout);
    }
    run_pass(w, layers, n, m, data, what, false);
    for (size_t k = 0; !w->st && what.fit && k < n; k++) {
        /* the mean of wq z + bq is that of the mean z */
        softmax_layer *const l = &layers[k];
        const pare_attn *const a = l->attn;
        const double *const sum = pare_row(&l->gram, l->gram.rows - 1);
        for (size_t i = 0; pare_has(&a->wq) && i < a->wq.rows; i++) {
            double q = 0;
            for (size_t j = 0; j < a->din; j++)
                q += pare_weight_at(&a->wq, i * a->din + j) * sum[j];
            l->query[i] = q / l->tokens + (pare_has(&a->bq) ? pare_weight_at(&a->bq, i) : 0);
        }
    }
    if (what.fit && what.pool) run_pass(w, layers, n, m, data, what, true);
}
