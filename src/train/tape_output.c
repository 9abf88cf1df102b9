/* From the stream to the outputs: norm, pooling, dense + activation, classifier. */
#include "tape.h"
#include <string.h>

typedef struct pool_job {
    const rows *x;
    rows *y;
    size_t tokens;
    bool mean;
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

static void pool_back_span(void *self, const span *s)
{
    const pool_job *const w = self; /* x: d y of a sequence, y: d x of its tokens */
    for (size_t i = s->first; i < s->end; i++) {
        const double *const dy = row_read(w->x, i / w->tokens, s->row[0]);
        double *const dx = row_write(w->y, i, s->row[1]);
        const double by = w->mean ? 1 / (double)w->tokens : i % w->tokens == 0;
        for (size_t j = 0; j < w->y->d; j++) dx[j] = dy[j] * by;
        row_done(w->y, i, dx);
    }
}

static const pare_weight *out_weight(const pare_model *m)
{
    return m->top.tied ? &m->stem.embedding : &m->top.out.w;
}

static pare_status pooling(pare_tape *t, rows *y, const rows *x)
{
    const pare_top *const top = &t->m->top;
    pool_job w = {x, y, t->tokens, top->pool == PARE_POOL_MEAN};
    *y = *x;
    if (top->pool == PARE_POOL_NONE) return PARE_OK;
    const pare_status st = tape_new_rows(t, y, t->batch, x->d);
    return st ? st : tape_spans(t, t->batch, x->d, 0, NULL, pool_span, &w);
}

pare_status tape_output(pare_tape *t, rows *y, const rows *x)
{
    const pare_top *const top = &t->m->top;
    const pare_weight *const w = out_weight(t->m);
    output_saved *const k = &t->output;
    const act_step a = {top->act, &k->pre, NULL, NULL};
    pare_status st;
    if ((st = tape_norm(t, &k->norm, &k->normed, x, &top->norm)) ||
        (st = pooling(t, &k->pooled, &k->normed)))
        return st;
    k->pre = k->pooled;
    if (pare_has(&top->dense.w) &&
        ((st = tape_new_rows(t, &k->pre, k->pooled.n, top->dense.w.rows)) ||
         (st = tape_dense(t, &k->pre, &k->pooled, &top->dense.w, &top->dense.b))))
        return st;
    k->act = k->pre;
    if (top->act != PARE_ACT_NONE &&
        ((st = tape_new_rows(t, &k->act, k->pre.n, k->pre.d)) || (st = tape_act(t, &a, &k->act))))
        return st;
    *y = k->act;
    if (!pare_has(w)) return PARE_OK;
    st = tape_new_rows(t, y, k->act.n, w->rows);
    return st ? st : tape_dense(t, y, &k->act, w, &top->out.b);
}

static pare_status pooling_back(pare_tape *t, rows *dx, const rows *dy)
{
    const pare_top *const top = &t->m->top;
    pool_job w = {dy, dx, t->tokens, top->pool == PARE_POOL_MEAN};
    *dx = *dy;
    if (top->pool == PARE_POOL_NONE) return PARE_OK;
    const pare_status st = tape_new_rows(t, dx, t->n, dy->d);
    return st ? st : tape_spans(t, t->n, dy->d, 0, NULL, pool_back_span, &w);
}

pare_status tape_output_backward(pare_tape *t, rows *dx, const rows *dy)
{
    const pare_top *const top = &t->m->top;
    const pare_weight *const w = out_weight(t->m);
    const output_saved *const k = &t->output;
    const act_step a = {top->act, &k->pre, NULL, NULL};
    rows d, dpooled, dnormed;
    pare_status st = tape_new_rows(t, &d, k->act.n, k->act.d);
    if (!st)
        st = pare_has(w) ? tape_dense_backward(t, &d, false, dy, &k->act, w, &top->out.b)
                         : tape_sum(t, &d, dy, NULL);
    if (!st && top->act != PARE_ACT_NONE) st = tape_act_backward(t, &a, &d, NULL);
    if (st) return st;
    dpooled = d;
    if (pare_has(&top->dense.w) && ((st = tape_new_rows(t, &dpooled, k->pooled.n, k->pooled.d)) ||
                                    (st = tape_dense_backward(t, &dpooled, false, &d, &k->pooled,
                                                              &top->dense.w, &top->dense.b))))
        return st;
    if ((st = pooling_back(t, &dnormed, &dpooled))) return st;
    return tape_norm_backward(t, &k->norm, dx, &dnormed, NULL, &top->norm);
}
