/* lm_attention_stats.c - what the heads of a sublayer do on the calibration rows: how much the
 * outputs move with their queries (lm_keys.c says why), and the covariance of their keys. Each head
 * by itself, on some thousand queries of all sequences. */
#include "linalg/matrix.h"
#include "lm_auto.h"
#include "folded_net.h"
#include <math.h>
#include <string.h>

enum { QUERIES = 4096 }; /* in the sample, all sequences together */

/* ---- one query ------------------------------------------------------------------------------ */

typedef struct scratch {   /* of one head, for one query */
    pare_mat keys, values; /* of the tokens it sees, centered */
    pare_mat c, gram;      /* dv x dk, dk x dk */
    double *weight, *mean, *angle;
} scratch;

typedef struct sequence_job { /* one sequence, all heads */
    const lm *m;
    const lm_attn *a;
    const pare_graph *graph;
    const pare_mat *q, *k, *v; /* of heads, of groups, of heads in the metric; q, k are rotated */
    attention_stats *stats;
    scratch *scratch;
    size_t first, stride; /* the queries of the sample */
} sequence_job;

/* cos and sin of every plane at token t. */
static void set_angles(double *angle, const lm_keys *k, double t)
{
    for (size_t f = 0; f < k->planes; f++) {
        angle[2 * f] = cos(t * k->freqs[f]);
        angle[2 * f + 1] = sin(t * k->freqs[f]);
    }
}

/* sign -1: back. */
static void rotate(const lm *m, const lm_keys *k, double *x, const double *angle, double sign)
{
    for (size_t f = 0; f < k->planes; f++) {
        size_t row[2];
        lm_plane_rows(m, f, k->planes, row);
        const double c = angle[2 * f], s = sign * angle[2 * f + 1], a = x[row[0]], b = x[row[1]];
        x[row[0]] = a * c - b * s;
        x[row[1]] = a * s + b * c;
    }
}

/* The rows of x, row i rotated to position i. */
static void rotate_rows(pare_work *w, const lm *m, const lm_keys *k, pare_mat *x)
{
    double *const angle = vec_zeros(w, 2 * k->planes);
    for (size_t i = 0; !w->st && k->planes && i < x->rows; i++) {
        set_angles(angle, k, (double)i);
        rotate(m, k, pare_row_mut(x, i), angle, 1);
    }
}

/* The attention weights of query q over the first n of the keys. */
static void attend_row(scratch *s, const double *q, double scale, size_t n)
{
    double row_max = -INFINITY, sum = 0;
    for (size_t j = 0; j < n; j++) {
        double dot = 0;
        for (size_t t = 0; t < s->keys.cols; t++) dot += q[t] * pare_row(&s->keys, j)[t];
        s->weight[j] = scale * dot;
        row_max = fmax(row_max, s->weight[j]);
    }
    for (size_t j = 0; j < n; j++) sum += s->weight[j] = exp(s->weight[j] - row_max);
    for (size_t j = 0; j < n; j++) s->weight[j] /= sum;
}

/* The first n rows of m less their weighted mean. */
static void center_rows(pare_mat *m, size_t n, const double *weight, double *mean)
{
    memset(mean, 0, m->cols * sizeof *mean);
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < m->cols; t++) mean[t] += weight[j] * pare_row(m, j)[t];
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < m->cols; t++) pare_row_mut(m, j)[t] -= mean[t];
}

/* covariance += R^T K^T diag(weight) K R, R the rotation by s->angle. */
static void add_covariance(const lm *m, const lm_keys *g, pare_mat *covariance, scratch *s,
                           size_t n)
{
    pare_mat keys = pare_mat_part(&s->keys, 0, 0, n, s->keys.cols);
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < keys.cols; t++) pare_row_mut(&keys, j)[t] *= sqrt(s->weight[j]);
    pare_gemm(&s->gram, 1, &keys, true, &keys, false, 0);
    for (size_t side = 0; side < 2; side++)
        for (size_t t = 0; t < keys.cols; t++) {
            rotate(m, g, pare_row_mut(&s->gram, t), s->angle, -1);
            for (size_t e = 0; e < t; e++) { /* transposed in place for the other side */
                const double x = pare_row(&s->gram, t)[e];
                pare_row_mut(&s->gram, t)[e] = pare_row(&s->gram, e)[t];
                pare_row_mut(&s->gram, e)[t] = x;
            }
        }
    for (size_t t = 0; t < keys.cols; t++)
        for (size_t e = 0; e < keys.cols; e++)
            pare_row_mut(covariance, t)[e] += pare_row(&s->gram, t)[e];
}

/* Adds query i, which sees the n tokens idx, to the sums of head h. */
static void add_query(const sequence_job *l, size_t h, size_t i, const uint32_t *idx, size_t n)
{
    const lm_head *const hd = &l->a->heads[h];
    const lm_keys *const g = &l->a->keys[hd->keys];
    attention_stats *const stats = &l->stats[h];
    scratch *const s = &l->scratch[h];
    const size_t dk = s->keys.cols, dv = s->values.cols;
    for (size_t j = 0; j < n; j++) {
        memcpy(pare_row_mut(&s->keys, j), pare_row(&l->k[hd->keys], idx[j]), dk * sizeof(double));
        memcpy(pare_row_mut(&s->values, j), pare_row(&l->v[h], idx[j]), dv * sizeof(double));
    }
    attend_row(s, pare_row(&l->q[h], i), hd->scale, n);
    center_rows(&s->keys, n, s->weight, s->mean);
    center_rows(&s->values, n, s->weight, s->mean);
    for (size_t j = 0; j < n; j++)
        for (size_t t = 0; t < dv; t++) {
            double *const x = &pare_row_mut(&s->values, j)[t];
            *x *= s->weight[j];
            stats->value_moment += *x * *x;
        }
    const pare_mat keys = pare_mat_part(&s->keys, 0, 0, n, dk);
    const pare_mat values = pare_mat_part(&s->values, 0, 0, n, dv);
    set_angles(s->angle, g, (double)i);
    pare_gemm(&s->c, 1, &values, true, &keys, false, 0);
    for (size_t t = 0; t < dv; t++) rotate(l->m, g, pare_row_mut(&s->c, t), s->angle, -1);
    pare_gemm(&stats->query_metric, 1, &s->c, true, &s->c, false, 1);
    add_covariance(l->m, g, &stats->key_covariance, s, n);
}

static void add_head(void *self, size_t h)
{
    const sequence_job *const l = self;
    for (size_t i = l->first; i < l->graph->n; i += l->stride) {
        const size_t from = l->graph->ptr[i], n = l->graph->ptr[i + 1] - from;
        l->stats[h].queries++;
        if (n > 1) add_query(l, h, i, l->graph->idx + from, n); /* one key has weight 1 */
    }
}

/* ---- all sequences -------------------------------------------------------------------------- */

/* out: (Wo^T G Wo)^1/2 of each head; u: what the sublayer's maps read. */
static void add_sequence(pare_work *w, sequence_job *l, const pare_mat *u, const pare_mat *out)
{
    const lm_attn *const a = l->a;
    pare_mat *const q = pare_work_alloc(w, a->nheads, sizeof *q);
    pare_mat *const k = pare_work_alloc(w, a->nkeys, sizeof *k);
    pare_mat *const v = pare_work_alloc(w, a->nheads, sizeof *v);
    for (size_t g = 0; !w->st && g < a->nkeys; g++) {
        k[g] = affine_rows(w, u, &a->keys[g].wk, a->keys[g].bk);
        rotate_rows(w, l->m, &a->keys[g], &k[g]);
    }
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        const lm_keys *const g = &a->keys[a->heads[h].keys];
        const pare_mat ov = mat_mul(w, &out[h], false, &g->wv, false);
        q[h] = affine_rows(w, u, &a->heads[h].wq, a->heads[h].bq);
        rotate_rows(w, l->m, g, &q[h]);
        v[h] = affine_rows(w, u, &ov, NULL); /* without bias: values are centered */
    }
    l->q = q;
    l->k = k;
    l->v = v;
    if (!w->st) pare_parallel(w->exec, a->nheads, add_head, l);
}

attention_stats *lm_attention_stats(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *r,
                                    const pare_mat *root, moments *moment)
{
    sequence_job l = {.m = m, .a = a, .stride = 1 + r->x.rows / QUERIES};
    size_t longest = 0;
    for (size_t i = 0; i < r->n; i++) longest = r->tokens[i] > longest ? r->tokens[i] : longest;
    pare_mat *const out = pare_work_alloc(w, a->nheads, sizeof *out);
    l.stats = pare_work_alloc(w, a->nheads, sizeof *l.stats);
    l.scratch = pare_work_alloc(w, a->nheads, sizeof *l.scratch);
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        const size_t dk = a->heads[h].wq.rows, dv = a->heads[h].wo.cols;
        const pare_mat ow = mat_mul(w, root, false, &a->heads[h].wo, false);
        const pare_mat gram = mat_mul(w, &ow, true, &ow, false);
        out[h] = sym_roots_of(w, &gram, 0).root;
        l.stats[h].query_metric = mat_zeros(w, dk, dk);
        l.stats[h].key_covariance = mat_zeros(w, dk, dk);
        l.scratch[h].keys = mat_zeros(w, longest, dk);
        l.scratch[h].values = mat_zeros(w, longest, dv);
        l.scratch[h].c = mat_zeros(w, dv, dk);
        l.scratch[h].gram = mat_zeros(w, dk, dk);
        l.scratch[h].weight = vec_zeros(w, longest);
        l.scratch[h].mean = vec_zeros(w, dk > dv ? dk : dv);
        l.scratch[h].angle = vec_zeros(w, dk);
    }
    for (size_t i = 0, at = 0; !w->st && i < r->n; at += r->tokens[i], i++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const pare_mat x = pare_mat_part(&r->x, at, 0, r->tokens[i], r->x.cols);
        const pare_mat u = lm_normed(w, &a->in, &x);
        const pare_graph g = key_graph(w, &m->m->pattern, r->graph[i], r->tokens[i]);
        l.graph = &g;
        l.first = (l.stride - at % l.stride) % l.stride; /* every stride-th of all tokens */
        if (!w->st) add_sequence(w, &l, &u, out);
        if (!w->st) moments_add(w, moment, &u, NULL);
        pare_arena_reset(w->arena, mark);
    }
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        attention_stats *const s = &l.stats[h];
        const double by = 1 / (double)(s->queries ? s->queries : 1);
        for (size_t i = 0; i < s->query_metric.rows * s->query_metric.cols; i++) {
            s->query_metric.v[i] *= by;
            s->key_covariance.v[i] *= by;
        }
        s->value_moment *= by;
    }
    return l.stats;
}
