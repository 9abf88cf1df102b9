/* tape_output.c - the output head, from the stream to the outputs: norm, pooling, dense layer with
 * activation, classifier, division by the length of the row.
 *
 * A maximum over tokens gives its gradient to the first token that attains it; that is a
 * subgradient where several do. A row of zeros is normalized to zero, with gradient zero. */
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include "tape.h"
#include <string.h>

typedef struct pool_job {
    const rows *x;
    rows *y;
    size_t tokens;
    pare_pool kind;
    const rows *from; /* backward, max: what was pooled */
} pool_job;

static void pool_span(void *self, const span *s)
{
    const pool_job *const w = self;
    const size_t d = w->x->d, n = w->kind == PARE_POOL_FIRST ? 1 : w->tokens;
    const bool mean = w->kind == PARE_POOL_MEAN, last = w->kind == PARE_POOL_LAST;
    for (size_t b = s->first; b < s->end; b++) {
        double *const y = row_write(w->y, b, s->row[0]);
        for (size_t i = last ? n - 1 : 0, first = i; i < n; i++) {
            const double *const x = row_read(w->x, b * w->tokens + i, s->row[1]);
            for (size_t j = 0; j < d; j++) {
                if (i == first || (!mean && x[j] > y[j]))
                    y[j] = x[j];
                else if (mean)
                    y[j] += x[j];
            }
        }
        for (size_t j = 0; mean && j < d; j++) y[j] /= (double)n;
        row_done(w->y, b, y);
    }
}

/* x: dy of a sequence, y: dx of its tokens. */
static void pool_backward_span(void *self, const span *s)
{
    const pool_job *const w = self;
    for (size_t i = s->first; i < s->end; i++) {
        const size_t at = i % w->tokens;
        const bool chosen = at == (w->kind == PARE_POOL_LAST ? w->tokens - 1 : 0);
        const double *const dy = row_read(w->x, i / w->tokens, s->row[0]);
        double *const dx = row_write(w->y, i, s->row[1]);
        const double share = w->kind == PARE_POOL_MEAN ? 1 / (double)w->tokens : chosen;
        for (size_t j = 0; j < w->y->d; j++) dx[j] = dy[j] * share;
        row_done(w->y, i, dx);
    }
}

/* By sequences: each entry of dy goes to the first token with the largest entry. */
static void max_backward_span(void *self, const span *s)
{
    const pool_job *const w = self;
    const size_t d = w->y->d, n = w->tokens;
    for (size_t b = s->first; b < s->end; b++) {
        double *const most = s->row[0], *const left = s->row[1];
        for (size_t i = 0; i < n; i++) {
            const double *const x = row_read(w->from, b * n + i, s->row[2]);
            for (size_t j = 0; j < d; j++)
                if (i == 0 || x[j] > most[j]) most[j] = x[j];
        }
        memcpy(left, row_read(w->x, b, s->row[2]), d * sizeof *left);
        for (size_t i = 0; i < n; i++) {
            const double *const x = row_read(w->from, b * n + i, s->row[2]);
            double *const dx = row_write(w->y, b * n + i, s->row[3]);
            for (size_t j = 0; j < d; j++) {
                dx[j] = x[j] == most[j] ? left[j] : 0;
                if (x[j] == most[j]) left[j] = 0;
            }
            row_done(w->y, b * n + i, dx);
        }
    }
}

/* x itself where the model does not pool. */
static rows pooled(pare_tape *t, const rows *x)
{
    const pare_pool kind = t->m->head.pool;
    if (kind == PARE_POOL_NONE) return *x;
    rows y = tape_new_rows(t, t->batch, x->d);
    pool_job w = {.x = x, .y = &y, .tokens = t->tokens, .kind = kind};
    tape_spans(t, t->batch, x->d, 0, NULL, pool_span, &w);
    return y;
}

static rows pooled_backward(pare_tape *t, const rows *dy, const rows *from)
{
    const pare_pool kind = t->m->head.pool;
    if (kind == PARE_POOL_NONE) return *dy;
    rows dx = tape_new_rows(t, t->n, dy->d);
    pool_job w = {.x = dy, .y = &dx, .tokens = t->tokens, .kind = kind, .from = from};
    if (kind == PARE_POOL_MAX)
        tape_spans(t, t->batch, dy->d, 0, NULL, max_backward_span, &w);
    else
        tape_spans(t, t->n, dy->d, 0, NULL, pool_backward_span, &w);
    return dx;
}

/* ---- a tied head of which tokens share a row ---------------------------------------------------- */

typedef struct spread_job {
    const rows *from;
    rows *to;
    const pare_embedding *s;
    const pare_weight *bias;
} spread_job;

static void spread_span(void *self, const span *s)
{
    const spread_job *const w = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const stored = row_read(w->from, i, s->row[0]);
        double *const y = row_write(w->to, i, s->row[1]);
        for (size_t o = 0; o < w->s->vocab; o++)
            y[o] = stored[w->s->rows[o]] + (pare_has(w->bias) ? pare_weight_at(w->bias, o) : 0);
        row_done(w->to, i, y);
    }
}

static void gather_span(void *self, const span *s)
{
    const spread_job *const w = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const dy = row_read(w->from, i, s->row[0]);
        double *const stored = row_write(w->to, i, s->row[1]);
        memset(stored, 0, w->to->d * sizeof *stored);
        for (size_t o = 0; o < w->s->vocab; o++) stored[w->s->rows[o]] += dy[o];
        row_done(w->to, i, stored);
    }
}

static rows output_map(pare_tape *t, const rows *x, const pare_weight *w, const pare_weight *b)
{
    const pare_embedding *const s = &t->m->embedding;
    if (!pare_output_map(t->m)) return tape_dense(t, x, w, b);
    const rows stored = tape_dense(t, x, w, NULL);
    rows y = tape_new_rows(t, x->n, s->vocab);
    spread_job job = {&stored, &y, s, b};
    tape_spans(t, x->n, s->vocab, 0, NULL, spread_span, &job);
    return y;
}

static rows output_map_backward(pare_tape *t, const rows *dy, const rows *x, const pare_weight *w,
                                const pare_weight *b)
{
    const pare_embedding *const s = &t->m->embedding;
    if (!pare_output_map(t->m)) return tape_dense_backward(t, dy, x, w, b);
    rows stored = tape_new_rows(t, dy->n, w->rows);
    spread_job job = {dy, &stored, s, b};
    tape_bias_backward(t, b, dy);
    tape_spans(t, dy->n, s->vocab, 0, NULL, gather_span, &job);
    return tape_dense_backward(t, &stored, x, w, NULL);
}

rows tape_output(pare_tape *t, const rows *x)
{
    const pare_output_head *const head = &t->m->head;
    const pare_weight *const w = pare_head_weight(t->m);
    output_saved *const k = &t->output;
    k->normed = tape_norm(t, &k->norm, x, &head->norm);
    k->pooled = pooled(t, &k->normed);
    k->pre = k->pooled;
    if (pare_has(&head->dense.w))
        k->pre = tape_dense(t, &k->pooled, &head->dense.w, &head->dense.b);
    k->act = k->pre;
    if (head->act != PARE_ACT_NONE) {
        const act_step step = {head->act, &k->pre, NULL, NULL};
        k->act = tape_new_rows(t, k->pre.n, k->pre.d);
        tape_act(t, &step, &k->act);
    }
    const rows y = pare_has(w) ? output_map(t, &k->act, w, &head->out.b) : k->act;
    const pare_norm unit = pare_head_unit_norm(t->m);
    return head->normalize ? tape_norm(t, &k->unit, &y, &unit) : y;
}

void tape_output_backward(pare_tape *t, rows *dx, const rows *dy)
{
    const pare_output_head *const head = &t->m->head;
    const pare_weight *const w = pare_head_weight(t->m);
    const output_saved *const k = &t->output;
    const pare_norm unit = pare_head_unit_norm(t->m);
    rows d = *dy;
    if (head->normalize) {
        d = tape_new_rows(t, dy->n, dy->d);
        tape_norm_backward(t, &k->unit, &d, dy, NULL, &unit);
    }
    if (pare_has(w)) {
        d = output_map_backward(t, &d, &k->act, w, &head->out.b);
    } else if (!head->normalize) { /* dy is not ours to change */
        d = tape_new_rows(t, k->act.n, k->act.d);
        tape_sum(t, &d, dy, NULL);
    }
    if (head->act != PARE_ACT_NONE) {
        const act_step step = {head->act, &k->pre, NULL, NULL};
        tape_act_backward(t, &step, &d, NULL);
    }
    if (pare_has(&head->dense.w))
        d = tape_dense_backward(t, &d, &k->pooled, &head->dense.w, &head->dense.b);
    const rows dnormed = pooled_backward(t, &d, &k->normed);
    tape_norm_backward(t, &k->norm, dx, &dnormed, NULL, &head->norm);
}
