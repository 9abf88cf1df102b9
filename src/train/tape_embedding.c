/* From ids or vectors to the stream. */
#include "tape.h"
#include <string.h>

typedef struct stem_job {
    const pare_tape *t;
    const pare_input *in;
    rows *to;
    bool start; /* rows begin as ids or vectors; else `to` is added to */
} stem_job;

static void add_position(const stem_job *w, size_t pos, double *v)
{
    const pare_positions *const p = &w->t->m->stem.pos;
    const size_t d = w->to->d;
    if (p->kind == PARE_POS_LEARNED)
        for (size_t j = 0; j < d; j++) v[j] += pare_weight_at(&p->table, pos * d + j);
    if (p->kind == PARE_POS_SINUSOIDAL)
        for (size_t j = 0; j < d; j++) v[j] += w->t->waves[pos * d + j];
}

static void stem_span(void *self, const span *s)
{
    const stem_job *const w = self;
    const pare_stem *const stem = &w->t->m->stem;
    const size_t d = w->to->d;
    for (size_t i = s->first; i < s->end; i++) {
        const size_t given = tape_input_row(w->t, i);
        double *const v = row_write(w->to, i, s->row[0]);
        if (!w->start)
            (void)row_read(w->to, i, v);
        else if (stem->ids)
            for (size_t j = 0; j < d; j++)
                v[j] = pare_weight_at(&stem->embedding, (size_t)w->in->ids[given] * d + j);
        else
            memcpy(v, w->in->x + given * d, d * sizeof *v);
        if (w->start != stem->pos.after_map) add_position(w, i % w->t->tokens, v);
        row_done(w->to, i, v);
    }
}

pare_status tape_embedding(pare_tape *t, rows *x, const pare_input *in)
{
    const pare_stem *const s = &t->m->stem;
    embedding_saved *const k = &t->embedding;
    stem_job w = {.t = t, .in = in, .to = &k->raw, .start = true};
    rows mapped;
    pare_status st;
    if (s->ids) {
        k->ids = stack_alloc(&t->stack, t->n, sizeof *k->ids);
        if (!k->ids) return pare_no_memory(t->err);
        for (size_t i = 0; i < t->n; i++) k->ids[i] = in->ids[tape_input_row(t, i)];
    }
    if ((st = tape_new_rows(t, &k->raw, t->n, s->width)) ||
        (st = tape_spans(t, t->n, s->width, 0, NULL, stem_span, &w)))
        return st;
    mapped = k->raw;
    if (pare_has(&s->map.w) && ((st = tape_new_rows(t, &mapped, t->n, s->map.w.rows)) ||
                                (st = tape_dense(t, &mapped, &k->raw, &s->map.w, &s->map.b))))
        return st;
    w.to = &mapped;
    w.start = false;
    if (s->pos.after_map && (st = tape_spans(t, t->n, mapped.d, 0, NULL, stem_span, &w))) return st;
    return tape_norm(t, &k->norm, x, &mapped, &s->norm);
}

/* ---- back ------------------------------------------------------------------------------------ */

enum { COLUMNS = 32 }; /* of a table that one thread adds to: each in the order of the rows */

typedef struct scatter {
    const rows *d;
    void *grad;
    const int64_t *ids; /* NULL: the position */
    size_t tokens;
} scatter;

static void scatter_columns(void *self, size_t b)
{
    const scatter *const w = self;
    const rows *const d = w->d;
    const size_t from = b * COLUMNS, to = from + COLUMNS < d->d ? from + COLUMNS : d->d;
    for (size_t i = 0; i < d->n; i++) {
        const size_t row = w->ids ? (size_t)w->ids[i] : i % w->tokens;
        for (size_t j = from; j < to; j++) {
            if (d->t == PARE_F64)
                ((double *)w->grad)[row * d->d + j] += *(double *)rows_at(d, i, j);
            else
                ((float *)w->grad)[row * d->d + j] += *(float *)rows_at(d, i, j);
        }
    }
}

static void add_to_table(pare_tape *t, const pare_weight *table, const rows *d, const int64_t *ids)
{
    scatter w = {d, tape_grad(t, table), ids, t->tokens};
    if (w.grad) pare_parallel(t->exec, (d->d + COLUMNS - 1) / COLUMNS, scatter_columns, &w);
}

pare_status tape_embedding_backward(pare_tape *t, const rows *dx)
{
    const pare_stem *const s = &t->m->stem;
    const embedding_saved *const k = &t->embedding;
    const bool learned = s->pos.kind == PARE_POS_LEARNED;
    const bool deep = s->ids || (learned && !s->pos.after_map); /* the raw rows matter */
    rows d, raw;
    pare_status st;
    if ((st = tape_new_rows(t, &d, dx->n, dx->d)) ||
        (st = tape_norm_backward(t, &k->norm, &d, dx, NULL, &s->norm)))
        return st;
    if (learned && s->pos.after_map) add_to_table(t, &s->pos.table, &d, NULL);
    raw = d;
    if (pare_has(&s->map.w)) {
        if (deep && (st = tape_new_rows(t, &raw, dx->n, s->width))) return st;
        st = tape_dense_backward(t, deep ? &raw : NULL, false, &d, &k->raw, &s->map.w, &s->map.b);
        if (st) return st;
    }
    if (learned && !s->pos.after_map) add_to_table(t, &s->pos.table, &raw, NULL);
    if (s->ids) add_to_table(t, &s->embedding, &raw, k->ids);
    return PARE_OK;
}
