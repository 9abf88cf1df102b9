/* lm_svd.c - the method svd: singular value decompositions of the weights alone, without data, the
 * baseline.
 *
 *   stream   V = first d right singular vectors of all maps that read the stream, one below the
 *            other: W ~ W V V^T, and V goes into the maps on both sides
 *   Q K      of every group of shared keys: the product [Wq bq]^T Wk to rank r; rotary dimensions
 *            only as whole planes, those with the largest |Wq_f||Wk_f|
 *   V O      the products Wo [Wv bv] to rank r
 *   hidden   units by |w1||w2| (gated: |w1||w3||w2|), the largest stay
 *
 * Every part is exact at full size. */
#include "base/support.h"
#include "linalg/matrix.h"
#include "balance.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- choosing ------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static double squares(const double *v, size_t n)
{
    return vec_dot(v, v, n);
}

/* ---- queries and keys ----------------------------------------------------------------------- */

/* A matrix as a product of which the directions can be cut. */
typedef struct factored {
    pare_mat l;     /* R x n */
    pare_mat q;     /* n x R: pseudo-inverse of l */
    pare_mat v;     /* n x n: directions, the largest energy first */
    double *energy; /* n: sum of squares of the product with its partners */
    size_t n;
} factored;

/* wk = (u s) vt: with l = u s and q = l^+ = s^-1 u^T, keys q k have orthonormal rows vt. */
static factored factor_map(pare_work *w, const pare_mat *wk)
{
    const svd_factors s = svd_of(w, wk);
    factored f = {.n = w->st ? 0 : svd_rank(&s, 1e-12)}, *const p = &f;
    p->l = mat_zeros(w, wk->rows, p->n);
    p->q = mat_zeros(w, p->n, wk->rows);
    for (size_t i = 0; !w->st && i < wk->rows; i++)
        for (size_t k = 0; k < p->n; k++) {
            pare_row_mut(&p->l, i)[k] = pare_row(&s.u, i)[k] * s.s[k];
            pare_row_mut(&p->q, k)[i] = pare_row(&s.u, i)[k] / s.s[k];
        }
    p->v = mat_zeros(w, p->n, p->n);
    p->energy = vec_zeros(w, p->n);
    return f;
}

static double plane_energy(const lm *m, const lm_attn *a, size_t g, size_t f)
{
    const lm_keys *const k = &a->keys[g];
    size_t row[2];
    lm_plane_rows(m, f, k->planes, row);
    const size_t one = row[0], two = row[1];
    const double keys = squares(pare_row(&k->wk, one), k->wk.cols) + k->bk[one] * k->bk[one] +
                        squares(pare_row(&k->wk, two), k->wk.cols) + k->bk[two] * k->bk[two];
    double sum = 0;
    for (size_t i = 0; i < a->nheads; i++) {
        const lm_head *const h = &a->heads[i];
        if (h->keys != g) continue;
        const double q = squares(pare_row(&h->wq, one), h->wq.cols) + h->bq[one] * h->bq[one] +
                         squares(pare_row(&h->wq, two), h->wq.cols) + h->bq[two] * h->bq[two];
        sum += h->scale * h->scale * q * keys / 2; /* the mean over all rotations */
    }
    return sum;
}

/* Group g to qk dimensions: planes cost two, others one; those with the largest energy for their
 * cost stay while there is space. */
static void cut_keys(pare_work *w, const lm *m, lm_attn *a, size_t g, size_t qk)
{
    const lm_keys *const keys = &a->keys[g];
    const size_t planes = keys->planes, rotary = 2 * planes, rest = keys->wk.rows - rotary;
    /* Dimensions without rotary positions. */
    const pare_mat wk = pare_mat_part(&keys->wk, rotary, 0, rest, keys->wk.cols);
    factored p = factor_map(w, &wk);
    pare_mat gram = mat_zeros(w, p.n, p.n);
    for (size_t i = 0; !w->st && i < a->nheads; i++) {
        const lm_head *const h = &a->heads[i];
        if (h->keys != g) continue;
        const pare_mat wq = pare_mat_part(&h->wq, rotary, 0, rest, h->wq.cols);
        const pare_mat bq = pare_mat_of(h->bq + rotary, 1, rest);
        const double scale = h->scale * h->scale;
        const pare_mat lq = mat_mul(w, &p.l, true, &wq, false);
        const pare_mat lb = mat_mul(w, &bq, false, &p.l, false);
        if (w->st) break;
        pare_gemm(&gram, scale, &lq, false, &lq, true, 1);
        pare_gemm(&gram, scale, &lb, true, &lb, false, 1);
    }
    leading_eigenvectors(w, &p.v, p.energy, &gram);

    const size_t n = planes + p.n;
    size_t left = qk, kept = 0;
    pare_keyed *const all = pare_work_alloc(w, n, sizeof *all);
    lm_key_cut c = {.which = pare_work_alloc(w, planes, sizeof *c.which)};
    if (w->st) return;
    for (size_t f = 0; f < planes; f++)
        all[f] = (pare_keyed){plane_energy(m, a, g, f) / 2, (uint32_t)f};
    for (size_t i = 0; i < p.n; i++)
        all[planes + i] = (pare_keyed){p.energy[i], (uint32_t)(planes + i)};
    pare_largest_first(all, n);
    for (size_t i = 0; i < n; i++) {
        const size_t cost = all[i].id < planes ? 2 : 1;
        if (cost > left) continue;
        left -= cost;
        if (all[i].id < planes)
            c.which[c.planes++] = all[i].id;
        else
            kept++;
    }
    qsort(c.which, c.planes, sizeof *c.which, ascending);
    if (c.planes == 0 && kept == 0) /* a head needs one dimension */
        pare_work_fail(w, PARE_ERR_USAGE,
                       "qk-dim %zu: rotary queries and keys go in whole planes of 2", qk);
    const pare_mat v = mat_first_cols(w, &p.v, kept);
    c.keys = mat_mul(w, &v, true, &p.q, false);
    c.queries = mat_mul(w, &v, true, &p.l, true);
    lm_cut_keys(w, m, a, g, &c);
}

/* ---- values --------------------------------------------------------------------------------- */

static void cut_values(pare_work *w, lm_attn *a, size_t g, size_t dv)
{
    const pare_mat wv = mat_append_col(w, &a->keys[g].wv, a->keys[g].bv);
    factored p = factor_map(w, &wv);
    pare_mat gram = mat_zeros(w, p.n, p.n);
    for (size_t i = 0; !w->st && i < a->nheads; i++) {
        if (a->heads[i].keys != g) continue;
        const pare_mat m = mat_mul(w, &a->heads[i].wo, false, &p.l, false);
        if (!w->st) pare_gemm(&gram, 1, &m, true, &m, false, 1);
    }
    leading_eigenvectors(w, &p.v, p.energy, &gram);
    const size_t r = dv < p.n ? dv : p.n;
    if (!w->st && r == 0) { /* values that are all zero: one dimension of zeros */
        const pare_mat none = mat_zeros(w, 1, wv.rows), back = mat_zeros(w, wv.rows, 1);
        lm_cut_values(w, a, g, &none, &back);
        return;
    }
    const pare_mat v = mat_first_cols(w, &p.v, r);
    const pare_mat values = mat_mul(w, &v, true, &p.q, false);
    const pare_mat back = mat_mul(w, &p.l, false, &v, false);
    lm_cut_values(w, a, g, &values, &back);
}

lm_attn lm_svd_heads(pare_work *w, const lm *m, const lm_attn *a, size_t qk, size_t dv)
{
    lm_attn to = lm_shallow(w, a);
    for (size_t g = 0; !w->st && a->present && g < a->nkeys; g++) {
        if (qk && qk < a->keys[g].wk.rows) cut_keys(w, m, &to, g, qk);
        if (!w->st && dv && dv < a->keys[g].wv.rows) cut_values(w, &to, g, dv);
    }
    return to;
}

/* ---- hidden units --------------------------------------------------------------------------- */

lm_ffn lm_svd_units(pare_work *w, const lm_ffn *f, size_t n)
{
    if (w->st || !f->present || n == 0 || n >= f->w1.rows) return *f;
    const size_t all = f->w1.rows;
    pare_keyed *const r = pare_work_alloc(w, all, sizeof *r);
    size_t *const which = pare_work_alloc(w, n, sizeof *which);
    const pare_mat down = mat_transpose(w, &f->w2);
    if (w->st) return *f;
    for (size_t u = 0; u < all; u++) {
        double e = squares(pare_row(&f->w1, u), f->w1.cols) + f->b1[u] * f->b1[u];
        if (f->gated) e *= squares(pare_row(&f->w3, u), f->w3.cols) + f->b3[u] * f->b3[u];
        r[u] = (pare_keyed){e * squares(pare_row(&down, u), down.cols), (uint32_t)u};
    }
    pare_largest_first(r, all);
    for (size_t i = 0; i < n; i++) which[i] = r[i].id;
    qsort(which, n, sizeof *which, ascending);
    return lm_select_units(w, f, which, n);
}

/* ---- the stream ----------------------------------------------------------------------------- */

/* The output head, some rows at a time. */
static void add_output_head(pare_work *w, pare_mat *g, const lm *m)
{
    enum { ROWS = 1024 };
    const pare_output_head *const t = &m->m->head;
    const pare_weight *const v = pare_has(&t->dense.w) ? &t->dense.w
                                 : t->tied             ? &m->m->embedding.table
                                                       : &t->out.w;
    for (size_t r = 0; !w->st && pare_has(v) && r < v->rows; r += ROWS) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const size_t n = v->rows - r < ROWS ? v->rows - r : ROWS;
        pare_mat part = read_matrix_part(w, v, r, 0, n, v->cols);
        lm_fold_in(w, &part, NULL, &m->head_input);
        if (!w->st) lm_gram(w, g, &part);
        pare_arena_reset(w->arena, mark);
    }
}

/* The first right singular vectors of all maps that read the stream. */
static lm_basis stream_basis(lm_job *j)
{
    pare_work *const w = j->w;
    const size_t d = j->m->width[0];
    lm_basis basis = {.read = mat_zeros(w, d, j->size.dim < d ? j->size.dim : d)};
    const pare_mark mark = pare_arena_mark(w->arena);
    pare_mat g = mat_zeros(w, d, d);
    for (size_t b = 0; !w->st && b < j->m->m->nblocks; b++) {
        const pare_mark here = pare_arena_mark(w->arena);
        const lm_block k = lm_read(w, j->m, b);
        for (size_t i = 0; !w->st && i < k.attn.nkeys; i++) {
            lm_gram(w, &g, &k.attn.keys[i].wk);
            lm_gram(w, &g, &k.attn.keys[i].wv);
        }
        for (size_t i = 0; !w->st && i < k.attn.nheads; i++) lm_gram(w, &g, &k.attn.heads[i].wq);
        if (k.ffn.present) lm_gram(w, &g, &k.ffn.w1);
        if (k.ffn.present && k.ffn.gated) lm_gram(w, &g, &k.ffn.w3);
        pare_arena_reset(w->arena, here);
    }
    add_output_head(w, &g, j->m);
    if (j->m->centered) { /* C g C: a stream without its mean is read through C */
        lm_center_columns(w, &g);
        g = mat_transpose(w, &g);
        if (!w->st) lm_center_columns(w, &g);
    }
    leading_eigenvectors(w, &basis.read, NULL, &g);
    pare_arena_reset(w->arena, mark);
    return basis;
}

void lm_svd(lm_job *j)
{
    pare_work *const w = j->w;
    const bool stream = j->m->stream;
    if (stream) lm_need_one_width(w, j->m);
    const lm_basis basis = stream && !w->st ? stream_basis(j) : (lm_basis){0};
    for (size_t b = 0; !w->st && b < j->m->m->nblocks; b++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        lm_block k = lm_read(w, j->m, b);
        if (stream) k.attn = lm_project_attn(w, &k.attn, &basis, &basis);
        if (stream) k.ffn = lm_project_ffn(w, &k.ffn, &basis, &basis);
        k.attn = lm_svd_heads(w, j->m, &k.attn, j->size.qk, j->size.v);
        if (stream || j->size.qk) lm_balance_scores(w, j->m, &k.attn);
        if (stream || j->size.v) lm_balance_values(w, &k.attn);
        k.ffn = lm_svd_units(w, &k.ffn, j->size.ffn);
        lm_write_block(w, j->out, b, &k);
        pare_arena_reset(w->arena, mark);
        if (!w->st) w->st = pare_progress(w->exec, "cut", b + 1, j->m->m->nblocks, w->err);
    }
    lm_job_write_ends(j, stream ? &basis : NULL, stream ? &basis : NULL);
}
