/* tape_output.c - the output head, from the stream to the outputs: norm, pooling, dense layer with
 * activation, classifier. */
#include "model/model_facts.h"
#include "tape.h"
#include <string.h>

typedef struct pool_job {
    const rows *x;
    rows *y;
    size_t tokens;
    bool mean; /* over the tokens of a sequence; else its first token */
} pool_job;

static void pool_span(void *self, const span *s)
{
    const pool_job *const w = self;
    const size_t d = w->x->d, n = w->mean ? w->tokens : 1;
    for (size_t b = s->first; b < s->end; b++) {
        double *const y = row_write(w->y, b, s->row[0]);
        memset(y, 0, d * sizeof *y);
        for (size_t i = 0; i < n; i++) {
            const double *const x = row_read(w->x, b * w->tokens + i, s->row[1]);
            for (size_t j = 0; j < d; j++) y[j] += x[j];
        }
        for (size_t j = 0; j < d; j++) y[j] /= (double)n;
        row_done(w->y, b, y);
    }
}

/* x: dy of a sequence, y: dx of its tokens. */
static void pool_backward_span(void *self, const span *s)
{
    const pool_job *const w = self;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const dy = row_read(w->x, i / w->tokens, s->row[0]);
        double *const dx = row_write(w->y, i, s->row[1]);
        const double share = w->mean ? 1 / (double)w->tokens : i % w->tokens == 0;
        for (size_t j = 0; j < w->y->d; j++) dx[j] = dy[j] * share;
        row_done(w->y, i, dx);
    }
}

/* n rows, pooled or in the backward pass; x itself where the model does not pool. */
static rows pool(pare_tape *t, const rows *x, size_t n, span_fn *fn)
{
    const pare_pool kind = t->m->head.pool;
    if (kind == PARE_POOL_NONE) return *x;
    rows y = tape_new_rows(t, n, x->d);
    pool_job w = {x, &y, t->tokens, kind == PARE_POOL_MEAN};
    tape_spans(t, n, x->d, 0, NULL, fn, &w);
    return y;
}

rows tape_output(pare_tape *t, const rows *x)
{
    const pare_output_head *const head = &t->m->head;
    const pare_weight *const w = pare_head_weight(t->m);
    output_saved *const k = &t->output;
    k->normed = tape_norm(t, &k->norm, x, &head->norm);
    k->pooled = pool(t, &k->normed, t->batch, pool_span);
    k->pre = k->pooled;
    if (pare_has(&head->dense.w))
        k->pre = tape_dense(t, &k->pooled, &head->dense.w, &head->dense.b);
    k->act = k->pre;
    if (head->act != PARE_ACT_NONE) {
        const act_step step = {head->act, &k->pre, NULL, NULL};
        k->act = tape_new_rows(t, k->pre.n, k->pre.d);
        tape_act(t, &step, &k->act);
    }
    return pare_has(w) ? tape_dense(t, &k->act, w, &head->out.b) : k->act;
}

void tape_output_backward(pare_tape *t, rows *dx, const rows *dy)
{
    const pare_output_head *const head = &t->m->head;
    const pare_weight *const w = pare_head_weight(t->m);
    const output_saved *const k = &t->output;
    rows d;
    if (pare_has(w)) {
        d = tape_dense_backward(t, dy, &k->act, w, &head->out.b);
    } else {
        d = tape_new_rows(t, k->act.n, k->act.d);
        tape_sum(t, &d, dy, NULL);
    }
    if (head->act != PARE_ACT_NONE) {
        const act_step step = {head->act, &k->pre, NULL, NULL};
        tape_act_backward(t, &step, &d, NULL);
    }
    if (pare_has(&head->dense.w))
        d = tape_dense_backward(t, &d, &k->pooled, &head->dense.w, &head->dense.b);
    const rows dnormed = pool(t, &d, t->n, pool_backward_span);
    tape_norm_backward(t, &k->norm, dx, &dnormed, NULL, &head->norm);
}
