/* lm_shrink.c - smaller heads and hidden layers (lm.h): what any method does once it knows which
 * part to keep. */
#include "linalg/matrix.h"
#include "lm.h"
#include <string.h>

static double *take_entries(pare_work *w, const double *v, const size_t *which, size_t n)
{
    double *const t = vec_zeros(w, n);
    for (size_t i = 0; !w->st && i < n; i++) t[i] = v[which[i]];
    return t;
}

lm_ffn lm_select_units(pare_work *w, const lm_ffn *f, const size_t *which, size_t n)
{
    lm_ffn to = *f;
    to.w1 = mat_take_rows(w, &f->w1, which, n);
    to.b1 = take_entries(w, f->b1, which, n);
    if (f->gated) to.w3 = mat_take_rows(w, &f->w3, which, n);
    if (f->gated) to.b3 = take_entries(w, f->b3, which, n);
    to.w2 = mat_take_cols(w, &f->w2, which, n);
    return to;
}

lm_attn lm_shallow(pare_work *w, const lm_attn *a)
{
    lm_attn to = *a;
    to.heads = pare_work_alloc(w, a->nheads, sizeof *to.heads);
    to.keys = pare_work_alloc(w, a->nkeys, sizeof *to.keys);
    if (w->st || !a->present) return to;
    memcpy(to.heads, a->heads, a->nheads * sizeof *to.heads);
    memcpy(to.keys, a->keys, a->nkeys * sizeof *to.keys);
    return to;
}

/* ---- queries and keys ----------------------------------------------------------------------- */

void lm_plane_rows(const lm *m, size_t f, size_t planes, size_t row[2])
{
    row[0] = m->interleaved ? 2 * f : f;
    row[1] = m->interleaved ? 2 * f + 1 : f + planes;
}

/* m (dk x din) and b (dk): the kept planes, then `rest_map` times the rest. */
static void cut_rows(pare_work *w, const lm *m, pare_mat *mat, double **b, size_t planes,
                     const lm_key_cut *c, const pare_mat *rest_map)
{
    const size_t rotary = 2 * c->planes, r = rest_map->rows, rest = mat->rows - 2 * planes;
    pare_mat to = mat_zeros(w, rotary + r, mat->cols);
    double *const bias = vec_zeros(w, rotary + r);
    for (size_t f = 0; !w->st && f < c->planes; f++) {
        size_t from[2], at[2];
        lm_plane_rows(m, c->which[f], planes, from);
        lm_plane_rows(m, f, c->planes, at);
        for (int k = 0; k < 2; k++) {
            memcpy(pare_row_mut(&to, at[k]), pare_row(mat, from[k]), mat->cols * sizeof *mat->v);
            bias[at[k]] = (*b)[from[k]];
        }
    }
    if (!w->st && r > 0) {
        pare_mat low = pare_mat_part(&to, rotary, 0, r, mat->cols);
        const pare_mat old = pare_mat_part(mat, 2 * planes, 0, rest, mat->cols);
        pare_gemm(&low, 1, rest_map, false, &old, false, 0);
        for (size_t i = 0; i < r; i++)
            for (size_t k = 0; k < rest; k++)
                bias[rotary + i] += pare_row(rest_map, i)[k] * (*b)[2 * planes + k];
    }
    *mat = to;
    *b = bias;
}

void lm_cut_keys(pare_work *w, const lm *m, lm_attn *a, size_t g, const lm_key_cut *c)
{
    lm_keys *const k = &a->keys[g];
    if (w->st) return;
    cut_rows(w, m, &k->wk, &k->bk, k->planes, c, &c->keys);
    for (size_t i = 0; !w->st && i < a->nheads; i++)
        if (a->heads[i].keys == g)
            cut_rows(w, m, &a->heads[i].wq, &a->heads[i].bq, k->planes, c, &c->queries);
    k->freqs = take_entries(w, k->freqs, c->which, c->planes);
    k->planes = c->planes;
}

/* ---- values --------------------------------------------------------------------------------- */

void lm_cut_values(pare_work *w, lm_attn *a, size_t g, const pare_mat *values, const pare_mat *back)
{
    lm_keys *const k = &a->keys[g];
    if (w->st) return;
    k->wv = mat_mul(w, values, false, &k->wv, false);
    k->bv = mat_vec(w, values, false, k->bv, NULL);
    for (size_t i = 0; !w->st && i < a->nheads; i++)
        if (a->heads[i].keys == g) a->heads[i].wo = mat_mul(w, &a->heads[i].wo, false, back, false);
}
