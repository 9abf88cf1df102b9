/* The attention branch: softmax heads, and the kinds that may stand in their place. */
#include "tape.h"

/* ---- heads ------------------------------------------------------------------------------------
 */

static pare_status heads(pare_tape *t, sublayer *s, rows *y)
{
    attn_saved *const k = &s->attn_saved;
    pare_status st;
    if ((st = tape_new_rows(t, &k->y, s->z.n, tape_heads_width(s->attn))) ||
        (st = tape_heads(t, s)))
        return st;
    if (pare_has(&s->attn->wo)) return tape_dense(t, y, &k->y, &s->attn->wo, &s->attn->bo);
    if (!pare_has(&s->attn->bo)) {
        *y = k->y;
        return PARE_OK;
    }
    st = tape_fill(t, y, &s->attn->bo);
    return st ? st : tape_sum(t, y, y, &k->y);
}

static pare_status heads_back(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const attn_saved *const k = &s->attn_saved;
    rows dheads;
    pare_status st;
    if (!pare_has(&s->attn->wo)) {
        st = tape_bias_backward(t, &s->attn->bo, dy);
        return st ? st : tape_heads_backward(t, s, dz, add, dy);
    }
    if ((st = tape_new_rows(t, &dheads, k->y.n, k->y.d)) ||
        (st = tape_dense_backward(t, &dheads, false, dy, &k->y, &s->attn->wo, &s->attn->bo)))
        return st;
    return tape_heads_backward(t, s, dz, add, &dheads);
}

/* [z, heads] matrix^T + bo */
static pare_status pool(pare_tape *t, sublayer *s, rows *y)
{
    attn_saved *const k = &s->attn_saved;
    const size_t d = s->z.d, wide = tape_heads_width(s->attn);
    pare_status st = tape_new_rows(t, &k->both, s->z.n, d + wide);
    if (st) return st;
    rows left = rows_columns(&k->both, 0, d);
    k->y = rows_columns(&k->both, d, wide);
    if ((st = tape_sum(t, &left, &s->z, NULL)) || (st = tape_heads(t, s))) return st;
    return tape_dense(t, y, &k->both, &s->attn->matrix, &s->attn->bo);
}

static pare_status pool_back(pare_tape *t, const sublayer *s, rows *dz, const rows *dy)
{
    const attn_saved *const k = &s->attn_saved;
    rows dboth;
    pare_status st;
    if ((st = tape_new_rows(t, &dboth, k->both.n, k->both.d)) ||
        (st = tape_dense_backward(t, &dboth, false, dy, &k->both, &s->attn->matrix, &s->attn->bo)))
        return st;
    const rows left = rows_columns(&dboth, 0, s->z.d), right = rows_columns(&dboth, s->z.d, k->y.d);
    if ((st = tape_heads_backward(t, s, dz, false, &right))) return st;
    return tape_sum(t, dz, dz, &left);
}

/* ---- means ------------------------------------------------------------------------------------
 */

/* U (z mix^T + bv) + bo */
static pare_status uniform(pare_tape *t, sublayer *s, rows *y)
{
    const stack_mark mark = stack_top(&t->stack);
    rows values, bias;
    pare_status st;
    if ((st = tape_new_rows(t, &values, y->n, y->d)) ||
        (st = tape_dense(t, &values, &s->z, &s->attn->mix, &s->attn->bv)) ||
        (st = tape_mean(t, y, &values, false)))
        return st;
    bias = values; /* done with */
    if (pare_has(&s->attn->bo) &&
        ((st = tape_fill(t, &bias, &s->attn->bo)) || (st = tape_sum(t, y, y, &bias))))
        return st;
    stack_reset(&t->stack, mark);
    return PARE_OK;
}

static pare_status uniform_back(pare_tape *t, const sublayer *s, rows *dz, const rows *dy)
{
    rows dvalues;
    pare_status st;
    if ((st = tape_bias_backward(t, &s->attn->bo, dy)) ||
        (st = tape_new_rows(t, &dvalues, dy->n, dy->d)) || (st = tape_mean(t, &dvalues, dy, true)))
        return st;
    return tape_dense_backward(t, dz, false, &dvalues, &s->z, &s->attn->mix, &s->attn->bv);
}

/* Power j of U has the matrix E_j: rows [j dout, (j + 1) dout) of mix, or `matrix` and `mix`. */
static pare_weight power_weight(const pare_attn *a, size_t j)
{
    if (a->kind == PARE_ATTN_AFFMIX) return j == 0 ? a->matrix : a->mix;
    const size_t bytes = a->dout * a->mix.cols * pare_dtype_size(a->mix.dtype);
    return (pare_weight){a->mix.dtype, a->dout, a->mix.cols, (const char *)a->mix.data + j * bytes};
}

/* sum_j U^j z E_j^T + bo: umix, and affmix, which has two. */
static pare_status powers(pare_tape *t, sublayer *s, rows *y)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    k->powers = a->kind == PARE_ATTN_AFFMIX ? 2 : a->mix.rows / a->dout;
    k->power = stack_alloc(&t->stack, k->powers, sizeof *k->power);
    if (!k->power) return pare_no_memory(t->err);
    rows part;
    pare_status st = PARE_OK;
    k->power[0] = s->z;
    for (size_t j = 1; !st && j < k->powers; j++)
        if (!(st = tape_new_rows(t, &k->power[j], s->z.n, s->z.d)))
            st = tape_mean(t, &k->power[j], &k->power[j - 1], false);
    const stack_mark mark = stack_top(&t->stack);
    if (!st) st = tape_new_rows(t, &part, y->n, y->d);
    for (size_t j = 0; !st && j < k->powers; j++) {
        const pare_weight e = power_weight(a, j);
        st = tape_dense(t, j ? &part : y, &k->power[j], &e, j ? NULL : &a->bo);
        if (!st && j) st = tape_sum(t, y, y, &part);
    }
    stack_reset(&t->stack, mark);
    return st;
}

/* From the highest power down: d_j = dy E_j + U^T d_{j+1}. */
static pare_status powers_back(pare_tape *t, const sublayer *s, rows *dz, const rows *dy)
{
    const pare_attn *const a = s->attn;
    const attn_saved *const k = &s->attn_saved;
    rows above, here;
    pare_status st;
    if ((st = tape_new_rows(t, &above, dz->n, dz->d)) ||
        (st = tape_new_rows(t, &here, dz->n, dz->d)))
        return st;
    for (size_t j = k->powers; j-- > 0;) {
        const pare_weight e = power_weight(a, j);
        const bool last = j + 1 == k->powers;
        rows *const to = j == 0 ? dz : &here;
        if (!last && (st = tape_mean(t, to, &above, true))) return st;
        if ((st = tape_dense_backward(t, to, !last, dy, &k->power[j], &e, j ? NULL : &a->bo)))
            return st;
        const rows swap = above;
        above = here;
        here = swap;
    }
    return PARE_OK;
}

/* Those that are done with dy before they reach dz. */
bool tape_can_add(const sublayer *s)
{
    if (s->ffn) return s->ffn->nlayers > 1;
    const pare_attn_kind k = s->attn->kind;
    return k == PARE_ATTN_EXACT || k == PARE_ATTN_POLY || k == PARE_ATTN_CONSTQ ||
           k == PARE_ATTN_MEANQ;
}

/* ---- all --------------------------------------------------------------------------------------
 */

pare_status tape_attn(pare_tape *t, sublayer *s, rows *y)
{
    const pare_attn *const a = s->attn;
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY: /* by polynomials where it pays: tape_poly.c */
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        return heads(t, s, y);
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        return tape_fill(t, y, &a->bo);
    case PARE_ATTN_UNIFORM:
        return uniform(t, s, y);
    case PARE_ATTN_LINEAR:
        return tape_dense(t, y, &s->z, &a->matrix, &a->bo);
    case PARE_ATTN_POOL:
        return pool(t, s, y);
    case PARE_ATTN_AFFMIX:
    case PARE_ATTN_UMIX:
        return powers(t, s, y);
    }
    return PARE_OK;
}

pare_status tape_attn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_attn *const a = s->attn;
    pare_status st;
    PARE_ASSERT(!add || tape_can_add(s));
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        return heads_back(t, s, dz, add, dy);
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        st = tape_zero(t, dz);
        return st ? st : tape_bias_backward(t, &a->bo, dy);
    case PARE_ATTN_UNIFORM:
        return uniform_back(t, s, dz, dy);
    case PARE_ATTN_LINEAR:
        return tape_dense_backward(t, dz, false, dy, &s->z, &a->matrix, &a->bo);
    case PARE_ATTN_POOL:
        return pool_back(t, s, dz, dy);
    case PARE_ATTN_AFFMIX:
    case PARE_ATTN_UMIX:
        return powers_back(t, s, dz, dy);
    }
    return PARE_OK;
}
