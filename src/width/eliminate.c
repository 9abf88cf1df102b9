/* eliminate.c - backward elimination with compensation (Optimal Brain Surgeon on whole columns),
 * see eliminate.h.
 *
 * With V = G^1/2 W and the inverse K = H^-1, removing the columns b costs
 *
 *     tr V_b K_bb^-1 V_b^T,
 *
 * and the best map without them, and its inverse, are
 *
 *     V <- V - V_b K_bb^-1 K_b,     K <- K - K_b^T K_bb^-1 K_b.
 *
 * Some inputs are removed at a time, the cheapest together, so that the update is a matrix
 * product. The map itself is solved for at the end, from H, because a thousand updates are a
 * thousand roundings. */
#include "base/support.h"
#include "linalg/matrix.h"
#include "eliminate.h"
#include <math.h>
#include <string.h>

/* Of the mean square of an input, times inputs / rows: few rows prove little. */
#define RIDGE 0.1
#define FLOOR 1e-9 /* of the mean square of an input, at least */

enum { STEP = 256 }; /* 1 / STEP of the bundles that are left are removed together */

/* ---- moments -------------------------------------------------------------------------------- */

moments moments_new(pare_work *w, size_t inputs, size_t outputs)
{
    moments m = {.square = mat_zeros(w, inputs + 1, inputs + 1)};
    m.cross = mat_zeros(w, inputs + 1, outputs);
    return m;
}

void moments_add(pare_work *w, moments *m, const pare_mat *f, const pare_mat *r)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat one = mat_append_col(w, f, NULL);
    mat_add_product(w, &m->square, 1, &one, &one);
    if (r) mat_add_product(w, &m->cross, 1, &one, r);
    m->rows += f->rows;
    pare_arena_reset(w->arena, mark);
}

/* ---- the best map --------------------------------------------------------------------------- */

static pare_mat inverse_of(pare_work *w, const pare_mat *h)
{
    pare_mat k = mat_zeros(w, h->rows, h->cols);
    if (!w->st) w->st = pare_spd_inverse(&k, h, w->err);
    return k;
}

ridge_fit ridge_fit_of(pare_work *w, const moments *m, const pare_mat *map0, const double *bias0)
{
    const size_t n = map0->cols;
    ridge_fit r = {.inputs = n, .h = m->square, .map = mat_zeros(w, map0->rows, n + 1)};
    const double share = 1 / (double)(m->rows ? m->rows : 1);
    for (size_t i = 0; !w->st && i < (n + 1) * (n + 1); i++) r.h.v[i] *= share;
    double mean = 0;
    for (size_t i = 0; !w->st && i < n; i++) mean += pare_row(&r.h, i)[i] / (double)n;
    const double rows = (double)(m->rows ? m->rows : 1);
    const double ridge = fmax(RIDGE * (double)n / rows, FLOOR) * fmax(mean, 1e-300);
    for (size_t i = 0; !w->st && i < n; i++) pare_row_mut(&r.h, i)[i] += ridge;
    if (!w->st) pare_row_mut(&r.h, n)[n] *= 1 + 1e-12;  /* the constant has no other ridge */
    for (size_t i = 0; !w->st && !bias0 && i <= n; i++) /* it is apart from all inputs */
        pare_row_mut(&r.h, i)[n] = pare_row_mut(&r.h, n)[i] = i == n;
    for (size_t o = 0; !w->st && o < map0->rows; o++) {
        memcpy(pare_row_mut(&r.map, o), pare_row(map0, o), n * sizeof *map0->v);
        pare_row_mut(&r.map, o)[n] = bias0 ? bias0[o] : 0;
        if (!bias0) pare_row_mut((pare_mat *)&m->cross, n)[o] = 0;
    }
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat k = inverse_of(w, &r.h);
    if (!w->st) pare_gemm(&r.map, share, &m->cross, true, &k, false, 1);
    pare_arena_reset(w->arena, mark);
    return r;
}

/* With the constant, which stays what it is. */
static pare_mat with_constant(pare_work *w, const pare_mat *t)
{
    pare_mat all = mat_zeros(w, t->rows + 1, t->cols + 1);
    for (size_t i = 0; !w->st && i < t->rows; i++)
        memcpy(pare_row_mut(&all, i), pare_row(t, i), t->cols * sizeof *t->v);
    if (!w->st) pare_row_mut(&all, t->rows)[t->cols] = 1;
    return all;
}

ridge_fit ridge_fit_rebased(pare_work *w, const ridge_fit *r, const pare_mat *t,
                            const pare_mat *inverse)
{
    const pare_mat to = with_constant(w, t), back = with_constant(w, inverse);
    ridge_fit out = {.inputs = r->inputs};
    out.h = mat_mul3(w, &to, false, &r->h, &to, true);
    out.map = mat_mul(w, &r->map, false, &back, false);
    return out;
}

pare_mat ridge_fit_restricted(pare_work *w, const ridge_fit *r, const size_t *kept, size_t n)
{
    pare_mat map = mat_zeros(w, r->map.rows, n + 1);
    const pare_mark mark = pare_arena_mark(w->arena);
    size_t *const which = pare_work_alloc(w, n + 1, sizeof *which);
    if (w->st) return map;
    memcpy(which, kept, n * sizeof *which);
    which[n] = r->inputs;
    const pare_mat all = mat_mul(w, &r->map, false, &r->h, false);
    const pare_mat seen = mat_take_cols(w, &all, which, n + 1);
    pare_mat square = mat_zeros(w, n + 1, n + 1);
    for (size_t i = 0; !w->st && i <= n; i++)
        for (size_t j = 0; j <= n; j++)
            pare_row_mut(&square, i)[j] = pare_row(&r->h, which[i])[which[j]];
    const pare_mat k = inverse_of(w, &square);
    if (!w->st) pare_gemm(&map, 1, &seen, false, &k, false, 0);
    pare_arena_reset(w->arena, mark);
    return map;
}

/* ---- elimination ---------------------------------------------------------------------------- */

bundles bundles_single(pare_work *w, size_t inputs)
{
    bundle *const all = pare_work_alloc(w, inputs, sizeof *all);
    size_t *const column = pare_work_alloc(w, inputs, sizeof *column);
    for (size_t i = 0; !w->st && i < inputs; i++) {
        all[i] = (bundle){i, 1, 0};
        column[i] = i;
    }
    return (bundles){inputs, 1, all, column};
}

typedef struct elimination {
    pare_work *w;
    const bundles *b;
    pare_mat k, v; /* H^-1; G^1/2 W */
    bool *removed; /* of each bundle */
    size_t *left;  /* of each group */
} elimination;

/* The part of k and the columns of v that belong to some columns. */
static void bundle_parts(elimination *s, const size_t *column, size_t n, pare_mat *kk,
                         pare_mat *rows, pare_mat *vb)
{
    *rows = mat_take_rows(s->w, &s->k, column, n);
    *kk = mat_take_cols(s->w, rows, column, n);
    *vb = mat_take_cols(s->w, &s->v, column, n);
}

static double trace_of(const pare_mat *a, const pare_mat *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) sum += pare_row(a, i)[j] * pare_row(b, i)[j];
    return sum;
}

/* tr V_b K_bb^-1 V_b^T of one bundle; squares: |v|^2 of every column. */
static double removal_cost(elimination *s, const bundle *b, const double *squares)
{
    const size_t *const column = s->b->column + b->from;
    if (b->count == 1) return squares[*column] / fmax(pare_row(&s->k, *column)[*column], 1e-300);
    const pare_mark mark = pare_arena_mark(s->w->arena);
    pare_mat kk, rows, vb;
    bundle_parts(s, column, b->count, &kk, &rows, &vb);
    const pare_mat inverse = inverse_of(s->w, &kk), gram = mat_mul(s->w, &vb, true, &vb, false);
    const double cost = s->w->st ? NAN : trace_of(&inverse, &gram);
    pare_arena_reset(s->w->arena, mark);
    return cost;
}

/* Marks the cheapest bundles as removed, at most `most`, so that every group keeps one. */
static size_t mark_cheapest(elimination *s, size_t *chosen, size_t most, pare_keyed *list)
{
    const bundles *const b = s->b;
    double *const squares = vec_zeros(s->w, s->v.cols);
    size_t n = 0, k = 0;
    for (size_t o = 0; !s->w->st && o < s->v.rows; o++)
        for (size_t j = 0; j < s->v.cols; j++)
            squares[j] += pare_row(&s->v, o)[j] * pare_row(&s->v, o)[j];
    for (size_t i = 0; !s->w->st && i < b->n; i++)
        if (!s->removed[i] && s->left[b->all[i].group] > 1)
            list[n++] = (pare_keyed){
                -removal_cost(s, &b->all[i], squares) / (double)b->all[i].count, (uint32_t)i};
    if (s->w->st) return 0;
    pare_largest_first(list, n);
    for (size_t i = 0; i < n && k < most; i++) {
        size_t *const left = &s->left[b->all[list[i].id].group];
        if (*left <= 1) continue;
        --*left;
        s->removed[list[i].id] = true;
        chosen[k++] = list[i].id;
    }
    return k;
}

/* Removes them; returns what that costs. */
static double remove_bundles(elimination *s, const size_t *chosen, size_t n)
{
    pare_work *const w = s->w;
    size_t count = 0, at = 0;
    for (size_t i = 0; i < n; i++) count += s->b->all[chosen[i]].count;
    size_t *const column = pare_work_alloc(w, count, sizeof *column);
    for (size_t i = 0; !w->st && i < n; i++)
        for (size_t c = 0; c < s->b->all[chosen[i]].count; c++)
            column[at++] = s->b->column[s->b->all[chosen[i]].from + c];
    if (w->st) return NAN;
    pare_mat kk, rows, vb;
    bundle_parts(s, column, count, &kk, &rows, &vb);
    const pare_mat inverse = inverse_of(w, &kk), gram = mat_mul(w, &vb, true, &vb, false);
    const pare_mat by = mat_mul(w, &inverse, false, &rows, false), vt = mat_transpose(w, &vb);
    if (w->st) return NAN;
    mat_add_product(w, &s->v, -1, &vt, &by);
    mat_add_product(w, &s->k, -1, &rows, &by);
    return trace_of(&inverse, &gram);
}

void elimination_order(pare_work *w, size_t *order, double *cost, const ridge_fit *r,
                       const pare_mat *root, const bundles *b, size_t keep)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    elimination s = {.w = w, .b = b, .k = inverse_of(w, &r->h)};
    s.v = mat_mul(w, root, false, &r->map, false);
    s.removed = pare_work_alloc(w, b->n, sizeof *s.removed);
    s.left = pare_work_alloc(w, b->ngroups, sizeof *s.left);
    pare_keyed *const list = pare_work_alloc(w, b->n, sizeof *list);
    for (size_t i = 0; !w->st && i < b->n; i++) s.left[b->all[i].group]++;
    for (size_t done = 0, n; !w->st && done + keep < b->n; done += n) {
        const pare_mark step = pare_arena_mark(w->arena);
        const size_t left = b->n - done, some = 1 + left / STEP, most = left - keep;
        n = mark_cheapest(&s, order + done, some < most ? some : most, list);
        PARE_ASSERT(w->st || n > 0);
        const double all = w->st ? NAN : remove_bundles(&s, order + done, n);
        for (size_t i = 0; i < n; i++) cost[done + i] = all / (double)n;
        pare_arena_reset(w->arena, step);
    }
    pare_arena_reset(w->arena, mark);
}
