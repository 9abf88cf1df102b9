#include "rotary.h"
#include <pare/elementary.h>
#include <string.h>

typedef struct turn {
    const pare_attn *a;
    const angles *by;
    size_t first, tokens;
    bool interleaved, keys;
} turn;

static bool same_freqs(const pare_weight *a, const pare_weight *b)
{
    return a->dtype == b->dtype && a->cols == b->cols &&
           memcmp(a->data, b->data, a->cols * pare_dtype_size(a->dtype)) == 0;
}

static const angles *find(const angles *list, const pare_weight *freqs)
{
    while (list && !same_freqs(&list->freqs, freqs)) list = list->next;
    return list;
}

static angles *new_table(scratch *from, const pare_weight *freqs, size_t tokens, pare_dtype t)
{
    const size_t n = tokens * freqs->cols, size = pare_dtype_size(t);
    angles *const table = scratch_get(from, 1, sizeof *table);
    void *const cosine = scratch_get(from, n, size), *const sine = scratch_get(from, n, size);
    if (!table || !cosine || !sine) return NULL;
    *table = (angles){NULL, *freqs, cosine, sine};
    for (size_t i = 0; i < n; i++) {
        const double angle = (double)(i / freqs->cols) * pare_weight_at(freqs, i % freqs->cols);
        double s, c;
        pare_sincos(angle, &s, &c);
        if (t == PARE_F64) {
            ((double *)cosine)[i] = c;
            ((double *)sine)[i] = s;
        } else {
            ((float *)cosine)[i] = (float)c;
            ((float *)sine)[i] = (float)s;
        }
    }
    return table;
}

pare_status angles_new(const angles **out, scratch *s, const pare_model *m, size_t tokens,
                       pare_dtype t, pare_err *err)
{
    *out = NULL;
    if (!pare_model_is_rotary(m)) return PARE_OK;
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_weight *const freqs = &m->blocks[b].attn.freqs;
        if (!pare_has(freqs) || find(*out, freqs)) continue;
        angles *const table = new_table(s, freqs, tokens, t);
        if (!table) return pare_no_memory(err);
        table->next = *out;
        *out = table;
    }
    return PARE_OK;
}

/* Has an earlier head turned these keys already? */
static bool seen(const pare_attn *a, size_t h)
{
    for (size_t e = 0; e < h; e++)
        if (a->heads[e].k == a->heads[h].k) return true;
    return false;
}

static void turn_row(const void *ctx, size_t i, double *v)
{
    const turn *const t = ctx;
    const size_t at = (t->first + i) % t->tokens * t->by->freqs.cols;
    const double *const cosine = t->by->cosine, *const sine = t->by->sine;
    for (size_t h = 0; h < t->a->nheads; h++) {
        const pare_head *const head = &t->a->heads[h];
        if (t->keys && seen(t->a, h)) continue;
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

/* One head of one row, planes apart or side by side: `step` from plane to plane, `apart` from one
 * side to the other. */
static void turn_planes(float *x, const float *cosine, const float *sine, size_t planes,
                        size_t step, size_t apart)
{
    for (size_t f = 0; f < planes; f++) {
        const float a = x[f * step], b = x[f * step + apart];
        x[f * step] = a * cosine[f] - b * sine[f];
        x[f * step + apart] = a * sine[f] + b * cosine[f];
    }
}

static void turn_f32(rows *r, const turn *t)
{
    const size_t cols = t->by->freqs.cols;
    const float *const cosine = t->by->cosine, *const sine = t->by->sine;
    for (size_t h = 0; h < t->a->nheads; h++) {
        const pare_head *const head = &t->a->heads[h];
        if (t->keys && seen(t->a, h)) continue;
        float *x = (float *)r->v + (t->keys ? head->k : head->q);
        for (size_t i = 0; i < r->n; i++, x += r->d) {
            const size_t at = (t->first + i) % t->tokens * cols + head->freq;
            if (t->interleaved)
                turn_planes(x, cosine + at, sine + at, head->planes, 2, 1);
            else
                turn_planes(x, cosine + at, sine + at, head->planes, 1, head->planes);
        }
    }
}

pare_status rotate(rows *q, rows *k, const pare_attn *a, const angles *list, size_t first,
                   size_t tokens, bool interleaved, const rows_ctx *c)
{
    const angles *const by = pare_has(&a->freqs) ? find(list, &a->freqs) : NULL;
    if (!by) return PARE_OK;
    const turn queries = {a, by, first, tokens, interleaved, false};
    const turn keys = {a, by, first, tokens, interleaved, true};
    if (q->t == PARE_F32) {
        turn_f32(q, &queries);
        turn_f32(k, &keys);
        return PARE_OK;
    }
    const pare_status st = rows_map(q, q, turn_row, &queries, c);
    return st ? st : rows_map(k, k, turn_row, &keys, c);
}
