/* rotary.c - rotary positions (rotary.h). */
#include "rotary.h"
#include "linalg/elementary.h"
#include "model_equality.h"
#include "model_facts.h"

typedef struct rotation {
    const pare_attn *a;
    const angles *by;
    const sequence_layout *layout;
    size_t first;
    bool interleaved, keys;
} rotation;

static const angles *find(const angles *tables, const pare_weight *freqs)
{
    while (tables && !pare_same_weight(&tables->freqs, freqs)) tables = tables->next;
    return tables;
}

const angles *angles_new(rows_ctx *c, const pare_model *m, size_t tokens, pare_dtype t)
{
    const angles *tables = NULL;
    if (!pare_model_is_rotary(m)) return NULL;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_weight *const freqs = &m->blocks[b].attn.freqs;
        if (!pare_has(freqs) || find(tables, freqs)) continue;
        const size_t n = tokens * freqs->cols, size = pare_dtype_size(t);
        angles *const table = rows_scratch(c, 1, sizeof *table);
        void *const cosine = rows_scratch(c, n, size), *const sine = rows_scratch(c, n, size);
        if (c->work.st) return NULL;
        *table = (angles){tables, *freqs, cosine, sine};
        tables = table;
        for (size_t i = 0; i < n; i++) {
            const double angle = (double)(i / freqs->cols) * pare_weight_at(freqs, i % freqs->cols);
            double sin, cos;
            pare_sincos(angle, &sin, &cos);
            if (t == PARE_F64) {
                ((double *)cosine)[i] = cos;
                ((double *)sine)[i] = sin;
            } else {
                ((float *)cosine)[i] = (float)cos;
                ((float *)sine)[i] = (float)sin;
            }
        }
    }
    return tables;
}

bool rotary_keys_done(const pare_attn *a, size_t h)
{
    for (size_t e = 0; e < h; e++)
        if (a->heads[e].k == a->heads[h].k) return true;
    return false;
}

static void rotate_row(const void *self, size_t i, double *v)
{
    const rotation *const t = self;
    const size_t at = sequence_position(t->layout, t->first + i) * t->by->freqs.cols;
    const double *const cosine = t->by->cosine, *const sine = t->by->sine;
    for (size_t h = 0; h < t->a->nheads; h++) {
        const pare_head *const head = &t->a->heads[h];
        if (t->keys && rotary_keys_done(t->a, h)) continue;
        double *const x = v + (t->keys ? head->k : head->q);
        for (size_t f = 0; f < head->planes; f++) {
            const size_t one = t->interleaved ? 2 * f : f;
            const size_t two = t->interleaved ? 2 * f + 1 : f + head->planes;
            const double c = cosine[at + head->freq + f], s = sine[at + head->freq + f];
            const double a = x[one], b = x[two];
            x[one] = a * c - b * s;
            x[two] = a * s + b * c;
        }
    }
}

static void rotate_f32(rows *r, const rotation *t)
{
    const size_t cols = t->by->freqs.cols;
    const float *const cosine = t->by->cosine, *const sine = t->by->sine;
    for (size_t h = 0; h < t->a->nheads; h++) {
        const pare_head *const head = &t->a->heads[h];
        if (t->keys && rotary_keys_done(t->a, h)) continue;
        float *x = (float *)r->v + (t->keys ? head->k : head->q);
        for (size_t i = 0; i < r->n; i++, x += r->d) {
            const size_t at = sequence_position(t->layout, t->first + i) * cols + head->freq;
            rotary_head(x, cosine + at, sine + at, head->planes, t->interleaved);
        }
    }
}

void rotate(rows *q, rows *k, const pare_attn *a, const angles *tables,
            const sequence_layout *layout, size_t first, bool interleaved, rows_ctx *c)
{
    const angles *const by = pare_has(&a->freqs) ? find(tables, &a->freqs) : NULL;
    if (!by || c->work.st) return;
    const rotation queries = {a, by, layout, first, interleaved, false};
    const rotation keys = {a, by, layout, first, interleaved, true};
    if (q->t == PARE_F32) {
        rotate_f32(q, &queries);
        rotate_f32(k, &keys);
    } else {
        rows_each(q, q, rotate_row, &queries, c);
        rows_each(k, k, rotate_row, &keys, c);
    }
}
