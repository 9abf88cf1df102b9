/* merged_heads.c - heads as the theorems have them: one matrix for the scores and one for the
 * values.
 *
 *   score(x, y) = c (Wq x + bq)(Wk y + bk)  =  (G x + g) y  + what does not depend on y
 *   G = c Wk^T Wq,  g = c Wk^T bq           (softmax does not see the rest)
 *   values      Wo (Wv y + bv)  =  V y + v,  V = Wo Wv,  v = Wo bv
 *
 * So a head has the queries G, g with scale 1, the identity as keys, which all heads share, the
 * values V, v, and an identity as its part of Wo. The value bias stays inside the sum, where a row
 * without keys does not get it. Shared keys and values are multiplied out: every head has its own
 * two matrices, of din x din and dout x din entries. Rotary positions stand between Wq and Wk: they
 * cannot be merged. */
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "merged_heads.h"

static bool has_softmax_heads(const pare_attn *a)
{
    return a->kind == PARE_ATTN_EXACT;
}

const char *merge_refused(const pare_model *m)
{
    if (pare_model_is_rotary(m))
        return "rotary positions stand between queries and keys, so that the heads cannot be "
               "merged; mode factored can do it";
    for (size_t b = 0; b < m->nblocks; b++)
        if (has_softmax_heads(&m->blocks[b].attn) || is_relu_ffn(&m->blocks[b].ffn)) return NULL;
    return "there is no softmax attention whose heads could be merged, and no ReLU; mode "
           "factored can do it";
}

static uint64_t weight_entries(const pare_weight *w)
{
    return pare_has(w) ? (uint64_t)w->rows * w->cols : 0;
}

void merge_sizes(uint64_t *now, uint64_t *merged, const pare_model *m)
{
    *now = *merged = 0;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const a = &m->blocks[b].attn;
        if (!has_softmax_heads(a)) continue;
        *now += weight_entries(&a->wq) + weight_entries(&a->wk) + weight_entries(&a->wv) +
                weight_entries(&a->wo);
        *merged += (uint64_t)a->nheads * a->din * a->din;
        *merged +=
            pare_has(&a->wo) ? (uint64_t)a->nheads * a->dout * a->din : weight_entries(&a->wv);
    }
}

/* ---- one layer ------------------------------------------------------------------------------- */

/* rows x cols of w from (r, c), in f64. */
static pare_mat weight_part(pare_arena *a, const pare_weight *w, size_t r, size_t c, size_t rows,
                            size_t cols)
{
    pare_mat m = pare_mat_new(a, rows, cols);
    if (m.v && pare_has(w)) pare_weight_widen(&m, w, r, c);
    return m;
}

static pare_weight weight_of(const pare_mat *m)
{
    return (pare_weight){PARE_F64, m->rows, m->cols, m->v};
}

/* Biases are numbers in the file: f32. */
static pare_status store_f32(pare_weight *out, pare_arena *a, const pare_mat *m, pare_err *err)
{
    float *const v = pare_alloc(a, m->cols, sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t i = 0; i < m->cols; i++) v[i] = (float)m->v[i];
    *out = (pare_weight){PARE_F32, 1, m->cols, v};
    return PARE_OK;
}

/* Identities side by side. */
static pare_status identities(pare_weight *out, pare_arena *a, size_t rows, size_t cols,
                              pare_err *err)
{
    float *const v = pare_alloc(a, rows * cols, sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t j = 0; j < cols; j++) v[j % rows * cols + j] = 1;
    *out = (pare_weight){PARE_F32, rows, cols, v};
    return PARE_OK;
}

/* One below the other c Wk^T Wq of every head (`scores`), or Wo Wv; its bias is stored, too, where
 * there is one. */
static pare_status multiply_heads(pare_attn *a, bool scores, pare_arena *keep, pare_arena *s,
                                  pare_err *err)
{
    const size_t rows = scores ? a->din : a->dout;
    pare_weight *const bias = scores ? &a->bq : &a->bv;
    pare_mat all = pare_mat_new(keep, a->nheads * rows, a->din);
    pare_mat all_bias = pare_mat_new(s, 1, a->nheads * rows);
    if (!all.v || !all_bias.v) return pare_no_memory(err);
    for (size_t h = 0; h < a->nheads; h++) {
        const pare_head *const head = &a->heads[h];
        const size_t from = scores ? head->q : head->v, inner = scores ? head->dk : head->dv;
        const double scale = scores ? head->scale : 1;
        const pare_mat left = scores ? weight_part(s, &a->wk, head->k, 0, inner, a->din)
                                     : weight_part(s, &a->wo, 0, head->o, a->dout, inner);
        const pare_mat right = weight_part(s, scores ? &a->wq : &a->wv, from, 0, inner, a->din);
        const pare_mat b = weight_part(s, bias, 0, from, 1, inner);
        if (!left.v || !right.v || !b.v) return pare_no_memory(err);
        pare_mat to = pare_mat_part(&all, h * rows, 0, rows, a->din);
        pare_mat to_bias = pare_mat_part(&all_bias, 0, h * rows, 1, rows);
        pare_gemm(&to, scale, &left, scores, &right, false, 0);
        pare_gemm(&to_bias, scale, &b, false, &left, !scores, 0);
    }
    *(scores ? &a->wq : &a->wv) = weight_of(&all);
    return pare_has(bias) ? store_f32(bias, keep, &all_bias, err) : PARE_OK;
}

static pare_status merge_scores(pare_attn *a, pare_arena *keep, pare_arena *s, pare_err *err)
{
    pare_status st = multiply_heads(a, true, keep, s, err);
    if (!st) st = identities(&a->wk, keep, a->din, a->din, err);
    if (st) return st;
    a->bk = (pare_weight){0};
    for (size_t h = 0; h < a->nheads; h++) {
        a->heads[h].q = h * a->din;
        a->heads[h].k = 0;
        a->heads[h].dk = a->din;
        a->heads[h].scale = 1;
    }
    return PARE_OK;
}

static pare_status merge_values(pare_attn *a, pare_arena *keep, pare_arena *s, pare_err *err)
{
    if (!pare_has(&a->wo)) return PARE_OK; /* the heads side by side: nothing to multiply */
    pare_status st = multiply_heads(a, false, keep, s, err);
    if (!st) st = identities(&a->wo, keep, a->dout, a->nheads * a->dout, err);
    if (st) return st;
    for (size_t h = 0; h < a->nheads; h++) {
        a->heads[h].v = a->heads[h].o = h * a->dout;
        a->heads[h].dv = a->dout;
    }
    return PARE_OK;
}

pare_status merge_heads(pare_model *m, pare_err *err)
{
    pare_arena *const s = pare_arena_new();
    pare_status st = s ? PARE_OK : pare_no_memory(err);
    for (size_t b = 0; !st && b < m->nblocks; b++) {
        pare_attn *const a = &m->blocks[b].attn;
        if (!has_softmax_heads(a)) continue;
        st = merge_scores(a, m->arena, s, err);
        if (!st) st = merge_values(a, m->arena, s, err);
    }
    pare_arena_free(s);
    return st;
}
