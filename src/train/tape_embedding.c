/* tape_embedding.c - the input layer, from ids or vectors to the stream: embedding or raw vectors,
 * linear map, norm, and absolute positions before or after the map. */
#include "tape.h"
#include "model/shared_rows.h"
#include <string.h>

typedef struct embedding_job {
    const pare_tape *t;
    const pare_input *in; /* NULL: `to` is there already, and positions are added to it */
    rows *to;
} embedding_job;

static void embedding_span(void *self, const span *s)
{
    const embedding_job *const w = self;
    const pare_embedding *const embedding = &w->t->m->embedding;
    const pare_positions *const p = &embedding->pos;
    const size_t d = w->to->d;
    for (size_t i = s->first; i < s->end; i++) {
        const size_t input_row = tape_input_row(w->t, i), at = i % w->t->tokens * d;
        double *const v = row_write(w->to, i, s->row[0]);
        if (!w->in)
            (void)row_read(w->to, i, v);
        else if (embedding->ids)
            for (size_t j = 0; j < d; j++)
                v[j] = pare_weight_at(&embedding->table, w->t->embedding.rows[i] * d + j);
        else
            memcpy(v, w->in->x + input_row * d, d * sizeof *v);
        if ((w->in == NULL) == p->after_map) {
            if (p->kind == PARE_POS_LEARNED)
                for (size_t j = 0; j < d; j++) v[j] += pare_weight_at(&p->table, at + j);
            if (p->kind == PARE_POS_SINUSOIDAL)
                for (size_t j = 0; j < d; j++) v[j] += w->t->sinusoids[at + j];
        }
        row_done(w->to, i, v);
    }
}

rows tape_embedding(pare_tape *t, const pare_input *in)
{
    const pare_embedding *const s = &t->m->embedding;
    embedding_saved *const k = &t->embedding;
    embedding_job w = {.t = t, .in = in, .to = &k->raw};
    if (s->ids) {
        k->rows = tape_alloc(t, t->n, sizeof *k->rows);
        for (size_t i = 0; k->rows && i < t->n; i++)
            k->rows[i] = pare_token_row(s, in->ids[tape_input_row(t, i)]);
    }
    k->raw = tape_new_rows(t, t->n, s->width);
    tape_spans(t, t->n, s->width, 0, NULL, embedding_span, &w);
    rows mapped = k->raw;
    if (pare_has(&s->map.w)) mapped = tape_dense(t, &k->raw, &s->map.w, &s->map.b);
    if (s->pos.after_map) {
        w.in = NULL;
        w.to = &mapped;
        tape_spans(t, t->n, mapped.d, 0, NULL, embedding_span, &w);
    }
    return tape_norm(t, &k->norm, &mapped, &s->norm);
}

/* ---- backward -------------------------------------------------------------------------------- */

enum { COLUMNS = 32 }; /* of a table that one thread adds to: each in the order of the rows */

typedef struct scatter_job {
    const rows *d;
    void *grad;
    const size_t *rows; /* of the table; NULL: the position */
    size_t tokens;
} scatter_job;

static void scatter_columns(void *self, size_t b)
{
    const scatter_job *const w = self;
    const rows *const d = w->d;
    const size_t from = b * COLUMNS, to = from + COLUMNS < d->d ? from + COLUMNS : d->d;
    for (size_t i = 0; i < d->n; i++) {
        const size_t row = w->rows ? w->rows[i] : i % w->tokens;
        for (size_t j = from; j < to; j++) {
            if (d->t == PARE_F64)
                ((double *)w->grad)[row * d->d + j] += *(double *)rows_at(d, i, j);
            else
                ((float *)w->grad)[row * d->d + j] += *(float *)rows_at(d, i, j);
        }
    }
}

/* Adds row i of d to the row of the table's gradient that it was read from. */
static void scatter_add(pare_tape *t, const pare_weight *table, const rows *d, const size_t *of)
{
    scatter_job w = {d, tape_grad(t, table), of, t->tokens};
    if (w.grad && !t->work.st)
        pare_parallel(t->work.exec, (d->d + COLUMNS - 1) / COLUMNS, scatter_columns, &w);
}

void tape_embedding_backward(pare_tape *t, const rows *dx)
{
    const pare_embedding *const s = &t->m->embedding;
    const embedding_saved *const k = &t->embedding;
    const bool learned = s->pos.kind == PARE_POS_LEARNED;
    const bool raw_gradient = s->ids || (learned && !s->pos.after_map);
    rows d = tape_new_rows(t, dx->n, dx->d), raw = d;
    tape_norm_backward(t, &k->norm, &d, dx, NULL, &s->norm);
    if (learned && s->pos.after_map) scatter_add(t, &s->pos.table, &d, NULL);
    if (pare_has(&s->map.w)) {
        if (raw_gradient) raw = tape_new_rows(t, dx->n, s->width);
        tape_dense_backward_into(t, raw_gradient ? &raw : NULL, false, &d, &k->raw, &s->map.w,
                                 &s->map.b);
    }
    if (learned && !s->pos.after_map) scatter_add(t, &s->pos.table, &raw, NULL);
    if (s->ids) scatter_add(t, &s->table, &raw, k->rows);
}
