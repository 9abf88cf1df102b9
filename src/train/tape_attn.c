/* tape_attn.c - the attention branch: softmax heads, and the cheaper kinds that replace them.
 *
 * U is the matrix of plain means over the keys of each row. */
#include "tape.h"

/* ---- powers of U ------------------------------------------------------------------------------ */

/* The matrix E_j of U^j: rows [j dout, (j + 1) dout) of mix, or `matrix` and `mix`. */
static pare_weight power_weight(const pare_attn *a, size_t j)
{
    if (a->kind == PARE_ATTN_AFFMIX) return j == 0 ? a->matrix : a->mix;
    const size_t bytes = a->dout * a->mix.cols * pare_dtype_size(a->mix.dtype);
    return (pare_weight){a->mix.dtype, a->dout, a->mix.cols, (const char *)a->mix.data + j * bytes};
}

/* sum_j U^j z E_j^T + bo: umix, and affmix, which has two powers. */
static void powers(pare_tape *t, sublayer *s, rows *y)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    k->powers = a->kind == PARE_ATTN_AFFMIX ? 2 : a->mix.rows / a->dout;
    k->power = tape_alloc(t, k->powers, sizeof *k->power);
    if (!k->power) return;
    k->power[0] = s->z;
    for (size_t j = 1; j < k->powers; j++) {
        k->power[j] = tape_new_rows(t, s->z.n, s->z.d);
        tape_mean(t, &k->power[j], &k->power[j - 1], false);
    }
    const stack_mark mark = stack_top(&t->stack);
    rows part = tape_new_rows(t, y->n, y->d);
    for (size_t j = 0; j < k->powers; j++) {
        const pare_weight e = power_weight(a, j);
        tape_dense_into(t, j ? &part : y, &k->power[j], &e, j ? NULL : &a->bo);
        if (j) tape_sum(t, y, y, &part);
    }
    stack_reset(&t->stack, mark);
}

/* From the highest power down: d_j = dy E_j + U^T d_{j+1}. */
static void powers_backward(pare_tape *t, const sublayer *s, rows *dz, const rows *dy)
{
    const pare_attn *const a = s->attn;
    const attn_saved *const k = &s->attn_saved;
    rows above = tape_new_rows(t, dz->n, dz->d), here = tape_new_rows(t, dz->n, dz->d);
    for (size_t j = k->powers; j-- > 0;) {
        const pare_weight e = power_weight(a, j);
        const bool last = j + 1 == k->powers;
        rows *const to = j == 0 ? dz : &here;
        if (!last) tape_mean(t, to, &above, true);
        tape_dense_backward_into(t, to, !last, dy, &k->power[j], &e, j ? NULL : &a->bo);
        const rows swap = above;
        above = here;
        here = swap;
    }
}

/* ---- all kinds -------------------------------------------------------------------------------- */

/* Those that have read all of dy before they write dz. */
bool tape_can_add(const sublayer *s)
{
    if (s->ffn) return s->ffn->nlayers > 1;
    const pare_attn_kind k = s->attn->kind;
    return k == PARE_ATTN_EXACT || k == PARE_ATTN_POLY || k == PARE_ATTN_CONSTQ ||
           k == PARE_ATTN_MEANQ;
}

void tape_attn(pare_tape *t, sublayer *s, rows *y)
{
    const pare_attn *const a = s->attn;
    attn_saved *const k = &s->attn_saved;
    const size_t n = s->z.n, d = s->z.d;
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY: /* by polynomials where that is faster: tape_poly.c */
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        k->y = tape_new_rows(t, n, tape_heads_width(a));
        tape_heads(t, s);
        if (pare_has(&a->wo)) {
            tape_dense_into(t, y, &k->y, &a->wo, &a->bo);
        } else if (pare_has(&a->bo)) {
            tape_fill(t, y, &a->bo);
            tape_sum(t, y, y, &k->y);
        } else {
            *y = k->y;
        }
        return;
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        tape_fill(t, y, &a->bo);
        return;
    case PARE_ATTN_UNIFORM: { /* U (z mix^T + bv) + bo */
        const stack_mark mark = stack_top(&t->stack);
        rows values = tape_dense(t, &s->z, &a->mix, &a->bv);
        tape_mean(t, y, &values, false);
        if (pare_has(&a->bo)) {
            tape_fill(t, &values, &a->bo); /* the values are no longer needed */
            tape_sum(t, y, y, &values);
        }
        stack_reset(&t->stack, mark);
        return;
    }
    case PARE_ATTN_LINEAR:
        tape_dense_into(t, y, &s->z, &a->matrix, &a->bo);
        return;
    case PARE_ATTN_POOL: { /* [z, heads] matrix^T + bo */
        k->concat = tape_new_rows(t, n, d + tape_heads_width(a));
        rows left = rows_columns(&k->concat, 0, d);
        k->y = rows_columns(&k->concat, d, tape_heads_width(a));
        tape_sum(t, &left, &s->z, NULL);
        tape_heads(t, s);
        tape_dense_into(t, y, &k->concat, &a->matrix, &a->bo);
        return;
    }
    case PARE_ATTN_AFFMIX:
    case PARE_ATTN_UMIX:
        powers(t, s, y);
        return;
    }
}

void tape_attn_backward(pare_tape *t, const sublayer *s, rows *dz, bool add, const rows *dy)
{
    const pare_attn *const a = s->attn;
    const attn_saved *const k = &s->attn_saved;
    PARE_ASSERT(!add || tape_can_add(s));
    switch (a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY:
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ: {
        rows dheads = *dy;
        if (pare_has(&a->wo))
            dheads = tape_dense_backward(t, dy, &k->y, &a->wo, &a->bo);
        else
            tape_bias_backward(t, &a->bo, dy);
        tape_heads_backward(t, s, dz, add, &dheads);
        return;
    }
    case PARE_ATTN_NONE:
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        tape_zero(t, dz);
        tape_bias_backward(t, &a->bo, dy);
        return;
    case PARE_ATTN_UNIFORM: {
        rows dvalues = tape_new_rows(t, dy->n, dy->d);
        tape_bias_backward(t, &a->bo, dy);
        tape_mean(t, &dvalues, dy, true);
        tape_dense_backward_into(t, dz, false, &dvalues, &s->z, &a->mix, &a->bv);
        return;
    }
    case PARE_ATTN_LINEAR:
        tape_dense_backward_into(t, dz, false, dy, &s->z, &a->matrix, &a->bo);
        return;
    case PARE_ATTN_POOL: {
        const rows both = tape_dense_backward(t, dy, &k->concat, &a->matrix, &a->bo);
        const rows left = rows_columns(&both, 0, s->z.d);
        const rows right = rows_columns(&both, s->z.d, k->y.d);
        tape_heads_backward(t, s, dz, false, &right);
        tape_sum(t, dz, dz, &left);
        return;
    }
    case PARE_ATTN_AFFMIX:
    case PARE_ATTN_UMIX:
        powers_backward(t, s, dz, dy);
        return;
    }
}
