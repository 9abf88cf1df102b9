/* What the heads of a sublayer see on the calibration rows: how much the outputs move with their
 * queries (lm_keys.c says why), and how far their keys are spread. Every head for itself, some
 * thousand queries of all sequences. */
#include "lm_auto.h"
#include "folded_net.h"
#include <math.h>
#include <string.h>

enum { QUERIES = 4096 }; /* that are looked at, all sequences together */

/* ---- one query ------------------------------------------------------------------------------ */

typedef struct room {      /* of one head, for one query */
    pare_mat keys, values; /* of the tokens it sees, centered */
    pare_mat c, one;       /* dv x dk, dk x dk */
    double *weight, *mean, *angle;
} room;

typedef struct look { /* at one sequence */
    const lm *m;
    const lm_attn *a;
    const pare_graph *graph;
    const pare_mat *q, *k, *v; /* of heads, of groups, of heads in the metric; q, k are turned */
    attention_stats *seen;
    room *room;
    size_t first, stride;
} look;

/* cos and sin of every plane at token t. */
static void angles(double *angle, const lm_keys *k, double t)
{
    for (size_t f = 0; f < k->planes; f++) {
        angle[2 * f] = cos(t * k->freqs[f]);
        angle[2 * f + 1] = sin(t * k->freqs[f]);
    }
}

/* sign -1: back. */
static void turn(const lm *m, const lm_keys *k, double *x, const double *angle, double sign)
{
    for (size_t f = 0; f < k->planes; f++) {
        size_t row[2];
        lm_plane_rows(m, f, k->planes, row);
        const double c = angle[2 * f], s = sign * angle[2 * f + 1], a = x[row[0]], b = x[row[1]];
        x[row[0]] = a * c - b * s;
        x[row[1]] = a * s + b * c;
    }
}

/* The attention weights of query q over the first n of the keys. */
static void attend_row(room *s, const double *q, double scale, size_t n)
{
    double most = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) {
        double dot = 0;
        for (size_t t = 0; t < s->keys.cols; t++) dot += q[t] * pare_row(&s->keys, j)[t];
        s->weight[j] = scale * dot;
        most = fmax(most, s->weight[j]);
    }
    for (size_t j = 0; j < n; j++) sum += s->weight[j] = exp(s->weight[j] - most);
    for (size_t j = 0; j < n; j++) s->weight[j] /= sum;
}

static void center(pare_mat *m, size_t n, const double *weight, double *mean)
{
    memset(mean, 0, m->cols * sizeof *mean);
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < m->cols; t++) mean[t] += weight[j] * pare_row(m, j)[t];
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < m->cols; t++) pare_row_mut(m, j)[t] -= mean[t];
}

/* spread += R^T K^T diag(weight) K R */
static void add_spread(const look *l, const lm_keys *g, pare_mat *spread, room *s, size_t n)
{
    pare_mat keys = pare_mat_part(&s->keys, 0, 0, n, s->keys.cols);
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < keys.cols; t++) pare_row_mut(&keys, j)[t] *= sqrt(s->weight[j]);
    pare_gemm(&s->one, 1, &keys, true, &keys, false, 0);
    for (size_t side = 0; side < 2; side++)
        for (size_t t = 0; t < keys.cols; t++) {
            turn(l->m, g, pare_row_mut(&s->one, t), s->angle, -1);
            for (size_t e = 0; e < t; e++) { /* the other side */
                const double x = pare_row(&s->one, t)[e];
                pare_row_mut(&s->one, t)[e] = pare_row(&s->one, e)[t];
                pare_row_mut(&s->one, e)[t] = x;
            }
        }
    for (size_t t = 0; t < keys.cols; t++)
        for (size_t e = 0; e < keys.cols; e++)
            pare_row_mut(spread, t)[e] += pare_row(&s->one, t)[e];
}

/* What query i, which sees n keys, adds to the sums. */
static void add_query(const look *l, size_t h, size_t i, const uint32_t *idx, size_t n)
{
    const lm_head *const hd = &l->a->heads[h];
    const lm_keys *const g = &l->a->keys[hd->keys];
    attention_stats *const seen = &l->seen[h];
    room *const s = &l->room[h];
    const size_t dk = s->keys.cols, dv = s->values.cols;
    for (size_t j = 0; j < n; j++) {
        memcpy(pare_row_mut(&s->keys, j), pare_row(&l->k[hd->keys], idx[j]), dk * sizeof(double));
        memcpy(pare_row_mut(&s->values, j), pare_row(&l->v[h], idx[j]), dv * sizeof(double));
    }
    attend_row(s, pare_row(&l->q[h], i), hd->scale, n);
    center(&s->keys, n, s->weight, s->mean);
    center(&s->values, n, s->weight, s->mean);
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < dv; t++) {
            double *const x = &pare_row_mut(&s->values, j)[t];
            *x *= s->weight[j];
            seen->moves += *x * *x;
        }
    const pare_mat keys = pare_mat_part(&s->keys, 0, 0, n, dk);
    const pare_mat values = pare_mat_part(&s->values, 0, 0, n, dv);
    angles(s->angle, g, (double)i);
    pare_gemm(&s->c, 1, &values, true, &keys, false, 0);
    for (size_t t = 0; t < dv; t++) turn(l->m, g, pare_row_mut(&s->c, t), s->angle, -1);
    pare_gemm(&seen->first, 1, &s->c, true, &s->c, false, 1);
    add_spread(l, g, &seen->spread, s, n);
}

static void look_at_head(void *self, size_t h)
{
    const look *const l = self;
    for (size_t i = l->first; i < l->graph->n; i += l->stride) {
        const size_t from = l->graph->ptr[i], n = l->graph->ptr[i + 1] - from;
        l->seen[h].queries++;
        if (n > 1) add_query(l, h, i, l->graph->idx + from, n); /* one key has weight 1 */
    }
}

/* ---- all sequences -------------------------------------------------------------------------- */

static void make_room(pare_work *w, look *l, size_t longest)
{
    const lm_attn *const a = l->a;
    l->seen = pare_work_alloc(w, a->nheads, sizeof *l->seen);
    l->room = pare_work_alloc(w, a->nheads, sizeof *l->room);
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        const size_t dk = a->heads[h].wq.rows, dv = a->heads[h].wo.cols, most = dk > dv ? dk : dv;
        l->seen[h] =
            (attention_stats){.first = mat_zeros(w, dk, dk), .spread = mat_zeros(w, dk, dk)};
        l->room[h] = (room){.keys = mat_zeros(w, longest, dk), .values = mat_zeros(w, longest, dv)};
        l->room[h].c = mat_zeros(w, dv, dk);
        l->room[h].one = mat_zeros(w, dk, dk);
        l->room[h].weight = vec_zeros(w, longest);
        l->room[h].mean = vec_zeros(w, most);
        l->room[h].angle = vec_zeros(w, dk);
    }
}

static void turn_rows(pare_work *w, const lm *m, const lm_keys *k, pare_mat *x)
{
    double *const angle = vec_zeros(w, 2 * k->planes);
    for (size_t i = 0; !w->st && k->planes && i < x->rows; i++) {
        angles(angle, k, (double)i);
        turn(m, k, pare_row_mut(x, i), angle, 1);
    }
}

/* Queries, keys and values of one sequence; out: (Wo^T G Wo)^1/2 of each head. */
static void look_at_sequence(pare_work *w, look *l, const pare_mat *u, const pare_mat *out)
{
    const lm_attn *const a = l->a;
    pare_mat *const q = pare_work_alloc(w, a->nheads, sizeof *q), *const k = pare_work_alloc(
                                                                      w, a->nkeys, sizeof *k);
    pare_mat *const v = pare_work_alloc(w, a->nheads, sizeof *v);
    for (size_t g = 0; !w->st && g < a->nkeys; g++) {
        k[g] = affine_rows(w, u, &a->keys[g].wk, a->keys[g].bk);
        turn_rows(w, l->m, &a->keys[g], &k[g]);
    }
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        const lm_keys *const g = &a->keys[a->heads[h].keys];
        const pare_mat seen =
            mat_mul(w, &out[h], false, &g->wv, false); /* a constant is centered */
        q[h] = affine_rows(w, u, &a->heads[h].wq, a->heads[h].bq);
        turn_rows(w, l->m, g, &q[h]);
        v[h] = affine_rows(w, u, &seen, NULL);
    }
    l->q = q;
    l->k = k;
    l->v = v;
    if (!w->st) pare_parallel(w->exec, a->nheads, look_at_head, l);
}

static size_t longest_of(const lm_rows *r)
{
    size_t most = 0;
    for (size_t i = 0; i < r->n; i++) most = r->tokens[i] > most ? r->tokens[i] : most;
    return most;
}

/* (Wo^T G Wo)^1/2 of each head. */
static pare_mat *roots_of(pare_work *w, const lm_attn *a, const pare_mat *root)
{
    pare_mat *const out = pare_work_alloc(w, a->nheads, sizeof *out);
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        const pare_mat seen = mat_mul(w, root, false, &a->heads[h].wo, false);
        const pare_mat gram = mat_mul(w, &seen, true, &seen, false);
        out[h] = sym_roots_of(w, &gram, 0).root;
    }
    return out;
}

static void mean_of(attention_stats *s)
{
    const double by = 1 / (double)(s->queries ? s->queries : 1);
    for (size_t i = 0; i < s->first.rows * s->first.cols; i++) {
        s->first.v[i] *= by;
        s->spread.v[i] *= by;
    }
    s->moves *= by;
}

attention_stats *lm_attention_stats(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *r,
                                    const pare_mat *root, moments *moment)
{
    look l = {.m = m, .a = a, .stride = 1 + r->x.rows / QUERIES};
    const pare_mat *const out = roots_of(w, a, root);
    make_room(w, &l, longest_of(r));
    for (size_t i = 0, at = 0; !w->st && i < r->n; at += r->tokens[i], i++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat x = pare_mat_part(&r->x, at, 0, r->tokens[i], r->x.cols);
        const pare_mat u = lm_normed(w, &a->in, &x);
        const pare_graph g = key_graph(w, &m->m->pattern, r->graph[i], r->tokens[i]);
        l.graph = &g;
        l.first = (l.stride - at % l.stride) % l.stride; /* every stride-th of all tokens */
        if (!w->st) look_at_sequence(w, &l, &u, out);
        if (!w->st) moments_add(w, moment, &u, NULL);
        pare_arena_reset(w->arena, mark);
    }
    for (size_t h = 0; !w->st && h < a->nheads; h++) mean_of(&l.seen[h]);
    return l.seen;
}
