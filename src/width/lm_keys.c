/* lm_keys.c - queries and keys in a metric of the data in which dimensions can be removed one by
 * one: whole planes where positions rotate the keys, any direction elsewhere.
 *
 * A score is linear in the key: s_ij = scale q_i . k_ij, where k_ij is the key of token j as token
 * i sees it, rotated back by i. To first order, queries that are off by dq_i change the output of
 * the head by
 *
 *     C_i dq_i,     C_i = scale Wo sum_j a_ij (v_j - mean_i) k_ij^T     (softmax sees no constant).
 *
 * With M = E C_i^T G C_i, G the metric of the outputs, and Cq the second moment of [u, 1], the rows
 * that queries read, a change dW of [Wq bq] costs
 *
 *     tr dW Cq dW^T M,
 *
 * in the unit of all other parts (if u_i and C_i are independent). That is the loss of the linear
 * map [Wq bq]^T of the keys, whose inputs eliminate.h removes. The first-order metric is blind
 * where attention is saturated: so M also has a share of the covariance of the keys, weighted by
 * how much a score changes the output at all.
 *
 * For heads with keys of their own, without rotary positions, the directions are those of the
 * truncated singular value decomposition of Cq^1/2 [Wq bq]^T M^1/2, which is optimal
 * (Eckart-Young). Heads that share keys lose the same directions. */
#include "linalg/matrix.h"
#include "lm_auto.h"
#include <math.h>
#include <string.h>

#define COVARIANCE 1    /* share of the covariance of the keys beside the first-order metric */
#define RIDGE      1e-6 /* of the mean square of a key's entry */

/* ---- queries as a map of keys --------------------------------------------------------------- */

/* The metric of one head, and a ridge, to its place in h:
 *     scale^2 (query_metric + COVARIANCE value_moment key_covariance) */
static void put_metric(pare_mat *h, size_t at, const attention_stats *s, double scale)
{
    const size_t n = s->query_metric.rows;
    const double by = COVARIANCE * s->value_moment;
    double mean = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            pare_row_mut(h, at + i)[at + j] =
                scale * scale *
                (pare_row(&s->query_metric, i)[j] + by * pare_row(&s->key_covariance, i)[j]);
        mean += pare_row(h, at + i)[at + i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) pare_row_mut(h, at + i)[at + i] += fmax(RIDGE * mean, 1e-100);
}

key_directions key_directions_of(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *rows,
                                 const pare_mat *root)
{
    const size_t *const at = head_columns(w, a, true);
    const size_t d = a->din;
    key_directions t = {.to = pare_work_alloc(w, a->nkeys, sizeof *t.to)};
    moments moment = moments_new(w, d, 1);
    const attention_stats *const s = lm_attention_stats(w, m, a, rows, root, &moment);
    if (w->st) return t;
    const double ntokens = (double)rows->x.rows;
    for (size_t i = 0; i < moment.square.rows * moment.square.cols; i++)
        moment.square.v[i] /= ntokens;
    t.root = sym_roots_of(w, &moment.square, 0).root;
    bool any = false; /* dimension without rotary positions */
    for (size_t g = 0; !w->st && g < a->nkeys; g++) {
        const size_t left = a->keys[g].wk.rows - 2 * a->keys[g].planes;
        t.to[g] = mat_zeros(w, left, left);
        any |= left > 0;
    }
    const size_t n = at[a->nheads];
    t.fit = (ridge_fit){n, mat_zeros(w, n + 1, n + 1), mat_zeros(w, d + 1, n + 1)};
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        const lm_head *const hd = &a->heads[h];
        put_metric(&t.fit.h, at[h], &s[h], hd->scale);
        for (size_t i = 0; i < hd->wq.rows; i++) {
            for (size_t j = 0; j < d; j++)
                pare_row_mut(&t.fit.map, j)[at[h] + i] = pare_row(&hd->wq, i)[j];
            pare_row_mut(&t.fit.map, d)[at[h] + i] = hd->bq[i];
        }
    }
    if (!w->st) pare_row_mut(&t.fit.h, n)[n] = 1; /* the constant, which the map does not read */
    if (!w->st && any) { /* dimensions without rotary positions, in the basis t.to */
        size_t *const plain = head_columns(w, a, true);
        for (size_t h = 0; !w->st && h < a->nheads; h++)
            plain[h] += 2 * a->keys[a->heads[h].keys].planes;
        pare_mat all;
        if (!w->st) t.fit = group_fit(w, t.to, &all, a, plain, &t.fit, &t.root);
    }
    t.b = group_bundles(w, m, a, at, true);
    return t;
}

/* ---- removing them --------------------------------------------------------------------------- */

/* Cuts group g, whose bundles begin at `first`; place: of every column of the fit in the map. */
static void cut_group(pare_work *w, const lm *m, lm_attn *out, size_t g, const key_directions *t,
                      size_t first, const bool *removed, const pare_mat *map, const size_t *place)
{
    const size_t planes = out->keys[g].planes, rest = t->to[g].rows, n = planes + rest;
    size_t *const other = pare_work_alloc(w, rest, sizeof *other), nother = 0;
    lm_key_cut c = {.which = pare_work_alloc(w, planes, sizeof *c.which)};
    /* The first column of each bundle that stays. */
    size_t *const from = pare_work_alloc(w, n, sizeof *from);
    for (size_t i = 0; !w->st && i < n; i++) {
        if (removed[first + i]) continue;
        from[c.planes + nother] = t->b.all[first + i].from;
        if (i < planes)
            c.which[c.planes++] = i;
        else
            other[nother++] = i - planes;
    }
    c.keys = mat_take_rows(w, &t->to[g], other, nother);
    c.queries = mat_zeros(w, nother, rest); /* set from the map below */
    lm_cut_keys(w, m, out, g, &c);
    for (size_t h = 0, e = 0; !w->st && h < out->nheads; h++) {
        if (out->heads[h].keys != g) continue;
        for (size_t i = 0; i < c.planes + nother; i++) {
            const bool plane = i < c.planes;
            const size_t *const column = t->b.column + from[i] + (plane ? 2 * e : e);
            size_t row[2] = {c.planes + i};
            if (plane) lm_plane_rows(m, i, c.planes, row);
            for (size_t k = 0; k < (plane ? 2 : 1); k++) {
                const size_t from_col = place[column[k]];
                lm_head *const hd = &out->heads[h];
                for (size_t j = 0; j < hd->wq.cols; j++)
                    pare_row_mut(&hd->wq, row[k])[j] = pare_row(map, j)[from_col];
                hd->bq[row[k]] = pare_row(map, hd->wq.cols)[from_col];
            }
        }
        e++;
    }
}

lm_attn attn_without_keys(pare_work *w, const lm *m, const lm_attn *a, const key_directions *t,
                          const removal *c)
{
    lm_attn out = lm_shallow(w, a);
    if (w->st) return out;
    const pare_mat map = ridge_fit_restricted(w, &t->fit, c->kept, c->n);
    size_t *const place = pare_work_alloc(w, t->fit.inputs, sizeof *place);
    for (size_t i = 0; !w->st && i < c->n; i++) place[c->kept[i]] = i;
    for (size_t g = 0, first = 0; !w->st && g < a->nkeys; g++) {
        cut_group(w, m, &out, g, t, first, c->removed, &map, place);
        first += a->keys[g].wk.rows - a->keys[g].planes;
    }
    return out;
}

/* ---- how many ------------------------------------------------------------------------------- */

/* The dimensions of a key in bundle i: 2 for a plane. */
static size_t bundle_dims(const key_directions *t, const lm_attn *a, size_t i)
{
    size_t heads = 0;
    for (size_t h = 0; h < a->nheads; h++) heads += a->heads[h].keys == t->b.all[i].group;
    return heads > 0 ? t->b.all[i].count / heads : 1; /* every group has a head */
}

removal choose_keys_within(pare_work *w, const lm_attn *a, const key_directions *t, size_t max_dim)
{
    const size_t n = t->b.n - t->b.ngroups;
    size_t *const order = pare_work_alloc(w, n, sizeof *order);
    size_t *const left = pare_work_alloc(w, a->nkeys, sizeof *left);
    double *const cost = vec_zeros(w, n);
    bool *const removed = pare_work_alloc(w, t->b.n, sizeof *removed);
    if (!w->st) elimination_order(w, order, cost, &t->fit, &t->root, &t->b, t->b.ngroups);
    for (size_t g = 0; !w->st && g < a->nkeys; g++) left[g] = a->keys[g].wk.rows;
    /* Groups do not disturb one another: the order of one is the same whatever others lose. */
    for (size_t i = 0; !w->st && i < n; i++) {
        const size_t g = t->b.all[order[i]].group;
        if (left[g] <= max_dim) continue;
        removed[order[i]] = true;
        left[g] -= bundle_dims(t, a, order[i]);
    }
    for (size_t g = 0; !w->st && g < a->nkeys; g++)
        if (left[g] > max_dim)
            pare_work_fail(w, PARE_ERR_USAGE,
                           "qk-dim %zu: rotary queries and keys go in whole planes of 2", max_dim);
    return removal_of(w, &t->b, removed, t->fit.inputs);
}

/* Rows of Wq and Wk with their biases, and a frequency. Groups that lose different planes each need
 * a list of frequencies of their own: the first removal pays for it. */
void key_parameters(size_t *size, const lm_attn *a, const key_directions *t, const size_t *order,
                    size_t n)
{
    lm_shape s = {0};
    lm_shape_attn(&s, a);
    for (size_t i = 0; i < n; i++) {
        const size_t d = bundle_dims(t, a, order[i]), heads = t->b.all[order[i]].count / d;
        size[i] =
            d * (a->din * (1 + heads) + (s.bq ? heads : 0) + (s.bk ? 1 : 0)) + (d > 1 ? 1 : 0);
    }
    const size_t lists = s.planes - s.freqs;
    if (n > 0) size[0] = size[0] > lists ? size[0] - lists : 0;
}
