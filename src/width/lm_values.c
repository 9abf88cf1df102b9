/* lm_values.c - the values of heads in a basis whose directions can be removed one by one.
 *
 * The inputs of Wo are the pooled values of all heads. In one group of shared keys and values let
 *
 *     A = sum over its heads of W_h^T G W_h,     B = sum of the blocks (H^-1)_hh.
 *
 * Removing the direction u of the group's values costs, for one head, u^T A u / u^T B u when all
 * other inputs compensate what they can; so the eigenvectors of B^-1/2 A B^-1/2 are the
 * directions, and for one head the r largest are the best r dimensions there are (reduced-rank
 * regression: Eckart-Young in that metric). Heads that share values lose the same directions. */
#include "linalg/matrix.h"
#include "lm_auto.h"
#include <string.h>

#define RIDGE 1e-12

size_t *head_columns(pare_work *w, const lm_attn *a, bool keys)
{
    size_t *const at = pare_work_alloc(w, a->nheads + 1, sizeof *at);
    for (size_t h = 0; !w->st && h < a->nheads; h++)
        at[h + 1] = at[h] + (keys ? a->heads[h].wq.rows : a->heads[h].wo.cols);
    return at;
}

/* The directions of group g among inputs of which each head has to->rows, beginning at[h]: k = H^-1
 * and v = G^1/2 W of all inputs. to = E^T B^1/2 and back = B^-1/2 E, its inverse. */
static void group_directions(pare_work *w, pare_mat *to, pare_mat *back, const lm_attn *a, size_t g,
                             const size_t *at, const pare_mat *k, const pare_mat *v)
{
    const size_t n = to->rows;
    pare_mat gram = mat_zeros(w, n, n), within = mat_zeros(w, n, n), e = mat_zeros(w, n, n);
    double *const values = vec_zeros(w, n);
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        if (a->heads[h].keys != g) continue;
        const pare_mat part = pare_mat_part(v, 0, at[h], v->rows, n);
        const pare_mat block = pare_mat_part(k, at[h], at[h], n, n);
        pare_gemm(&gram, 1, &part, true, &part, false, 1);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) pare_row_mut(&within, i)[j] += pare_row(&block, i)[j];
    }
    const sym_roots b = sym_roots_of(w, &within, RIDGE);
    const pare_mat seen = mat_mul3(w, &b.inverse, false, &gram, &b.inverse, false);
    if (!w->st) w->st = pare_eigh(values, &e, &seen, w->arena, w->err);
    if (w->st) return;
    pare_gemm(to, 1, &e, true, &b.root, false, 0);
    pare_gemm(back, 1, &b.inverse, false, &e, false, 0);
}

/* Copies a square block to the diagonal of `big`, from row `at`. */
static void set_diagonal_block(pare_mat *big, size_t at, const pare_mat *block)
{
    for (size_t i = 0; i < block->rows; i++)
        memcpy(pare_row_mut(big, at + i) + at, pare_row(block, i), block->cols * sizeof *block->v);
}

ridge_fit group_fit(pare_work *w, pare_mat *to, pare_mat *all, const lm_attn *a, const size_t *at,
                    const ridge_fit *r, const pare_mat *root)
{
    pare_mat back = mat_identity(w, r->inputs), k = mat_zeros(w, r->h.rows, r->h.cols);
    *all = mat_identity(w, r->inputs);
    const pare_mat v = mat_mul(w, root, false, &r->map, false);
    if (!w->st) w->st = pare_spd_inverse(&k, &r->h, w->err);
    for (size_t g = 0; !w->st && g < a->nkeys; g++) {
        const size_t n = to[g].rows;
        if (n == 0) continue;
        pare_mat from = mat_zeros(w, n, n);
        group_directions(w, &to[g], &from, a, g, at, &k, &v);
        for (size_t h = 0; !w->st && h < a->nheads; h++) {
            if (a->heads[h].keys != g) continue;
            set_diagonal_block(all, at[h], &to[g]);
            set_diagonal_block(&back, at[h], &from);
        }
    }
    return w->st ? *r : ridge_fit_rebased(w, r, all, &back);
}

bundles group_bundles(pare_work *w, const lm *m, const lm_attn *a, const size_t *at, bool keys)
{
    size_t n = 0, c = 0, k = 0;
    for (size_t g = 0; g < a->nkeys; g++)
        n += keys ? a->keys[g].wk.rows - a->keys[g].planes : a->keys[g].wv.rows;
    bundle *const all = pare_work_alloc(w, n, sizeof *all);
    size_t *const column = pare_work_alloc(w, w->st ? 0 : at[a->nheads], sizeof *column);
    for (size_t g = 0; !w->st && g < a->nkeys; g++) {
        const size_t planes = keys ? a->keys[g].planes : 0;
        const size_t dims = keys ? a->keys[g].wk.rows : a->keys[g].wv.rows;
        for (size_t i = 0; i < dims - planes; i++, k++) {
            size_t row[2] = {planes + i};
            if (i < planes) lm_plane_rows(m, i, planes, row);
            all[k] = (bundle){.from = c, .group = g};
            for (size_t h = 0; h < a->nheads; h++)
                for (size_t e = 0; a->heads[h].keys == g && e < (i < planes ? 2 : 1); e++)
                    column[c++] = at[h] + row[e];
            all[k].count = c - all[k].from;
        }
    }
    return (bundles){n, a->nkeys, all, column};
}

value_directions value_directions_of(pare_work *w, const lm_attn *a, const ridge_fit *r,
                                     const pare_mat *root)
{
    const size_t *const at = head_columns(w, a, false);
    value_directions t = {.to = pare_work_alloc(w, a->nkeys, sizeof *t.to)};
    for (size_t g = 0; !w->st && g < a->nkeys; g++)
        t.to[g] = mat_zeros(w, a->keys[g].wv.rows, a->keys[g].wv.rows);
    if (w->st) return t;
    t.fit = group_fit(w, t.to, &t.all, a, at, r, root);
    t.b = group_bundles(w, NULL, a, at, false);
    return t;
}

lm_attn attn_without_values(pare_work *w, const lm_attn *a, const value_directions *t,
                            const bool *removed, const pare_mat *map)
{
    lm_attn out = lm_shallow(w, a);
    out.bo = vec_zeros(w, a->dout);
    for (size_t g = 0, k = 0, n; !w->st && g < a->nkeys; g++, k += n) {
        size_t kept = 0;
        n = a->keys[g].wv.rows;
        size_t *const which = pare_work_alloc(w, n, sizeof *which);
        for (size_t i = 0; !w->st && i < n; i++)
            if (!removed[k + i]) which[kept++] = i;
        const pare_mat to = mat_take_rows(w, &t->to[g], which, kept);
        const pare_mat none = mat_zeros(w, n, kept); /* the maps behind come from the fit */
        lm_cut_values(w, &out, g, &to, &none);
    }
    for (size_t h = 0, at = 0; !w->st && h < a->nheads; h++) {
        const size_t n = out.heads[h].wo.cols;
        const pare_mat part = pare_mat_part(map, 0, at, a->dout, n);
        out.heads[h].wo = mat_copy(w, &part);
        at += n;
    }
    for (size_t o = 0; !w->st && o < a->dout; o++) out.bo[o] = pare_row(map, o)[map->cols - 1];
    return out;
}

pare_mat concat_wo(pare_work *w, const lm_attn *a)
{
    const size_t *const at = head_columns(w, a, false);
    pare_mat m = mat_zeros(w, a->dout, w->st ? 0 : at[a->nheads]);
    for (size_t h = 0; !w->st && h < a->nheads; h++)
        for (size_t o = 0; o < a->dout; o++)
            memcpy(pare_row_mut(&m, o) + at[h], pare_row(&a->heads[h].wo, o),
                   a->heads[h].wo.cols * sizeof *m.v);
    return m;
}
