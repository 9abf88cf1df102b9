/* one_layer.c - one-layer collapses of a pure residual attention network.
 *
 * V_b is the sum over the heads of block b of Wv Wo, c_b its constant row, Pi the product of
 * I + V_b over the blocks in order.
 *     identity          X                                                       error O(eta)
 *     keep k            X + F_k(X)                   Rank collapse 2025, with k the last: O(eta)
 *     keepbias k        X + F_k(X) with the weights it has at X + a, and + b: a and b from the mean
 *                       tokens of calibration inputs
 *     parallel          X + sum_b F_b(X)                                         O(eta^2)
 *     uniform           X + U X (Pi - I) + bias      one mean                    O(eta^3)
 *     uniform+keep k    heads of block k, and a uniform head Pi - I - V_k        O(eta^3)
 *     parallel+uniform  all heads, and a uniform head Pi - I - sum V_b           O(eta^4)
 *     rankone           all heads with constant calibrated queries, values V_h Pi_>b
 *     umix              sum_j U^j X E_j + bias, for masks (U^2 != U)
 * bias: b <- b (I + V_b) + c_b. Why uniform and rankone fold exactly is said in
 * collapse_chain.c, where the rounding of what is stored here is proven. */
#include "attention/attend.h"
#include "linalg/matrix.h"
#include "one_layer.h"
#include "theorem2_parallel.h"
#include <string.h>

/* ---- what is allowed ------------------------------------------------------------------------- */

const char *impure_block(const pare_block *b, size_t d)
{
    const pare_attn *const at = &b->attn;
    if (b->ffn.kind != PARE_FFN_NONE) return "has an FFN";
    if (at->kind == PARE_ATTN_NONE) return NULL;
    if (!pare_attn_is_softmax(at->kind)) return "has attention of another kind than exact";
    if (at->in_norm.kind != PARE_NORM_NONE || at->out_norm.kind != PARE_NORM_NONE)
        return "has a norm (pare fold removes affine ones)";
    if (at->skip.kind != PARE_SKIP_IDENTITY) return "has no residual connection (identity skip)";
    if (at->din != d || at->dout != d) return "changes the width";
    for (size_t h = 0; h < at->nheads; h++)
        if (at->heads[h].planes) return "has rotary positions";
    return NULL;
}

const char *impure_model(pare_arena *a, const pare_model *m)
{
    if (m->nblocks == 0) return "the model has no blocks";
    for (size_t b = 0; b < m->nblocks; b++) {
        const char *const fault = impure_block(&m->blocks[b], pare_model_width(m, 0));
        if (!fault) continue;
        const char *const text = a ? pare_sprintf(a, "block %zu %s", b, fault) : fault;
        return text ? text : fault;
    }
    return NULL;
}

bool needs_full_attention(pare_collapse k)
{
    return k == PARE_ONE_UNIFORM || k == PARE_ONE_UNIFORM_KEEP || k == PARE_ONE_PARALLEL_UNIFORM ||
           k == PARE_ONE_RANKONE;
}

bool pare_collapse_keeps(pare_collapse k)
{
    return k == PARE_ONE_KEEP || k == PARE_ONE_KEEPBIAS || k == PARE_ONE_UNIFORM_KEEP;
}

static pare_status refuse(const pare_model *m, const one_layer_opts *o, pare_arena *a,
                          pare_err *err)
{
    PARE_ASSERT(o->kind < PARE_ONES);
    const char *const name = pare_collapse_names[o->kind], *const fault = impure_model(a, m);
    if (fault)
        return pare_fail(err, PARE_ERR_INPUT,
                         "one layer '%s' needs a pure residual attention network: %s", name, fault);
    if (needs_full_attention(o->kind) && m->pattern.kind != PARE_FULL)
        return pare_fail(err, PARE_ERR_INPUT,
                         "one layer '%s' needs full attention, the pattern is %s%s", name,
                         pare_pattern_name(m->pattern.kind),
                         o->kind == PARE_ONE_UNIFORM ? " (umix is the same for masks)" : "");
    if (o->kind == PARE_ONE_UMIX && !pare_never_empty(&m->pattern))
        return pare_fail(err, PARE_ERR_INPUT,
                         "one layer 'umix' needs a pattern in which every token sees one: a graph "
                         "without self loops may have empty rows");
    if (pare_collapse_keeps(o->kind) && o->keep >= m->nblocks)
        return pare_fail(err, PARE_ERR_USAGE,
                         "one layer '%s' cannot keep layer %zu: the model has %zu, counted from 0",
                         name, o->keep, m->nblocks);
    if (pare_collapse_keeps(o->kind) && m->blocks[o->keep].attn.kind == PARE_ATTN_NONE)
        return pare_fail(err, PARE_ERR_INPUT, "one layer '%s': block %zu has no attention", name,
                         o->keep);
    if ((o->kind == PARE_ONE_KEEPBIAS || o->kind == PARE_ONE_RANKONE) &&
        (!o->calib || o->calib->n == 0))
        return pare_fail(err, PARE_ERR_USAGE, "one layer '%s' needs calibration inputs", name);
    return PARE_OK;
}

/* ---- the collapses --------------------------------------------------------------------------- */

/* y += x w^T for the rows of wq: what a common row adds to the queries. */
static void add_queries(double *bq, const pare_attn *at, const double *x)
{
    for (size_t i = 0; i < at->wq.rows; i++)
        for (size_t j = 0; j < at->wq.cols; j++)
            bq[i] += pare_weight_at(&at->wq, i * at->wq.cols + j) * x[j];
}

static void identity(builder *k, pare_attn *out)
{
    *out = (pare_attn){.kind = PARE_ATTN_ZERO, .din = k->d, .dout = k->d};
    out->skip.kind = PARE_SKIP_IDENTITY;
}

/* The shift a is seen by the queries and not by the values: that is of second order. */
static void keepbias(builder *k, pare_attn *out)
{
    const size_t b = k->o->keep, last = k->in->nblocks;
    const pare_attn *const at = &k->in->blocks[b].attn;
    mean_tokens(k);
    pare_mat a = work_matrix(&k->s.work, 1, k->d), bo = work_matrix(&k->s.work, 1, k->d),
             bq = work_matrix(&k->s.work, 1, at->wq.rows);
    if (k->s.work.st) return;
    for (size_t i = 0; i < k->d; i++) {
        const double first = pare_row(&k->mean, 0)[i], before = pare_row(&k->mean, b)[i];
        a.v[i] = before - first;
        bo.v[i] = (pare_row(&k->mean, last)[i] - first) - (pare_row(&k->mean, b + 1)[i] - before);
        bo.v[i] += pare_has(&at->bo) ? pare_weight_at(&at->bo, i) : 0;
    }
    for (size_t i = 0; pare_has(&at->bq) && i < bq.cols; i++) bq.v[i] = pare_weight_at(&at->bq, i);
    add_queries(bq.v, at, a.v);
    *out = *at;
    out->bq = work_weight(&k->s.work, bq.v, 1, bq.cols, k->dtype);
    out->bo = work_weight(&k->s.work, bo.v, 1, k->d, k->dtype);
}

/* uniform: one power, X + U X E. umix: all powers, where E_0 is the skip and the stored one is
 * zero. */
static void uniform(builder *k, pare_attn *out, bool all_powers)
{
    const size_t first = all_powers ? 1 : 0, powers = all_powers ? k->in->nblocks : 1, d = k->d;
    sum_layers(k);
    const pare_mat bias = uniform_bias(k), e = all_powers ? uniform_powers(k) : uniform_product(k);
    pare_mat transposed = work_matrix(&k->s.work, (first + powers) * d, d);
    for (size_t p = 0; !k->s.work.st && p < powers; p++)
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++)
                pare_row_mut(&transposed, (first + p) * d + j)[i] = pare_row(&e, p * d + i)[j];
    identity(k, out);
    out->kind = all_powers ? PARE_ATTN_UMIX : PARE_ATTN_UNIFORM;
    if (k->s.work.st) return;
    out->mix = work_weight(&k->s.work, transposed.v, transposed.rows, d, k->dtype);
    out->bo = work_weight(&k->s.work, bias.v, 1, d, k->dtype);
}

/* Heads of the kept blocks (all, or one), and, where `rest`, a uniform head for what they lack. */
static void side_by_side(builder *k, pare_attn *out, bool one, bool rest)
{
    sum_layers(k);
    stack_begin(&k->s, k->in);
    pare_mat bias = uniform_bias(k), e = uniform_product(k);
    if (k->s.work.st) return;
    if (!rest) memset(bias.v, 0, k->d * sizeof *bias.v);
    for (size_t b = 0; b < k->in->nblocks; b++) {
        const pare_attn *const at = &k->in->blocks[b].attn;
        if (at->kind == PARE_ATTN_NONE || (one && b != k->o->keep)) continue;
        stack_attn(&k->s, at, NULL);
        for (size_t i = 0; i < k->d * k->d; i++) e.v[i] -= k->v[b].v[i];
        /* parallel: bo alone; else what the heads add themselves is taken from the bias */
        for (size_t i = 0; i < k->d; i++)
            bias.v[i] +=
                rest ? -pare_row(&k->own, b)[i] : pare_row(&k->c, b)[i] - pare_row(&k->own, b)[i];
    }
    if (rest) stack_uniform(&k->s, &e);
    stack_end(&k->s, out, PARE_ATTN_EXACT, bias.v, k->dtype);
}

/* (suffix^T wo): what head outputs of block b have become at the end. */
static pare_mat late_outputs(builder *k, const pare_attn *at, const pare_mat *suffix)
{
    const pare_head *const last = &at->heads[at->nheads - 1];
    const size_t cols = pare_has(&at->wo) ? at->wo.cols : last->o + last->dv;
    pare_mat wo = work_matrix(&k->s.work, k->d, cols), late = work_matrix(&k->s.work, k->d, cols);
    if (k->s.work.st) return late;
    if (pare_has(&at->wo)) pare_weight_widen(&wo, &at->wo, 0, 0);
    for (size_t i = 0; !pare_has(&at->wo) && i < k->d; i++) pare_row_mut(&wo, i)[i] = 1;
    pare_gemm(&late, 1, suffix, true, &wo, false, 0);
    return late;
}

static void rankone(builder *k, pare_attn *out)
{
    const size_t n = k->in->nblocks;
    mean_tokens(k);
    sum_layers(k);
    stack_begin(&k->s, k->in);
    const pare_mat bias = uniform_bias(k);
    pare_mat *const suffix = pare_work_alloc(&k->s.work, n + 1, sizeof *suffix);
    for (size_t b = n + 1; !k->s.work.st && b-- > 0;) {
        suffix[b] = work_matrix(&k->s.work, k->d, k->d);
        if (k->s.work.st) return;
        for (size_t i = 0; b == n && i < k->d; i++) pare_row_mut(&suffix[b], i)[i] = 1;
        if (b == n) continue;
        memcpy(suffix[b].v, suffix[b + 1].v, k->d * k->d * sizeof(double));
        pare_gemm(&suffix[b], 1, &k->v[b], false, &suffix[b + 1], false, 1);
    }
    for (size_t b = 0; !k->s.work.st && b < n; b++) {
        const pare_attn *const at = &k->in->blocks[b].attn;
        if (at->kind == PARE_ATTN_NONE) continue;
        const pare_mat late = late_outputs(k, at, &suffix[b + 1]);
        double *const bq = k->s.bq + k->s.nq;
        stack_attn(&k->s, at, &late);
        if (!k->s.work.st) add_queries(bq, at, pare_row(&k->mean, b));
    }
    k->s.any_bv = false; /* they are in the bias */
    stack_end(&k->s, out, PARE_ATTN_CONSTQ, bias.v, k->dtype);
}

static void build_collapse(builder *k, pare_attn *out)
{
    switch (k->o->kind) {
    case PARE_ONE_IDENTITY:
        identity(k, out);
        break;
    case PARE_ONE_KEEP:
        *out = k->in->blocks[k->o->keep].attn;
        break;
    case PARE_ONE_KEEPBIAS:
        keepbias(k, out);
        break;
    case PARE_ONE_PARALLEL:
        side_by_side(k, out, false, false);
        break;
    case PARE_ONE_UNIFORM:
        uniform(k, out, false);
        break;
    case PARE_ONE_UNIFORM_KEEP:
        side_by_side(k, out, true, true);
        break;
    case PARE_ONE_PARALLEL_UNIFORM:
        side_by_side(k, out, false, true);
        break;
    case PARE_ONE_RANKONE:
        rankone(k, out);
        break;
    case PARE_ONE_UMIX:
        uniform(k, out, true);
        break;
    case PARE_ONES:
        break;
    }
}

pare_status collapse_to_one_layer(pare_model **out, const pare_model *in,
                                  const one_layer_opts *opts, pare_err *err)
{
    pare_model *m = NULL;
    *out = NULL;
    pare_status st = pare_model_clone(&m, in, err);
    if (st) return st;
    st = refuse(in, opts, m->arena, err);
    pare_block *const block = st ? NULL : pare_alloc(m->arena, 1, sizeof *block);
    if (!st && !block) st = pare_no_memory(err);
    if (!st) {
        builder k = {.in = in, .o = opts, .s.work = {.arena = m->arena, .err = err}};
        k.d = pare_model_width(in, 0);
        k.dtype = PARE_F64; /* of the first values there are */
        for (size_t b = in->nblocks; b-- > 0;)
            if (pare_has(&in->blocks[b].attn.wv)) k.dtype = in->blocks[b].attn.wv.dtype;
        /* `m` has its own copies of the structs: what is kept is borrowed from there */
        build_collapse(&k, &block->attn);
        if (opts->kind == PARE_ONE_KEEP) block->attn = m->blocks[opts->keep].attn;
        m->blocks = block;
        m->nblocks = 1;
        st = k.s.work.st ? k.s.work.st : pare_model_round(m, in, opts->dtype, err);
        if (!st) st = pare_model_check(m, err);
    }
    if (st) pare_model_free(m);
    if (!st) *out = m;
    return st;
}
