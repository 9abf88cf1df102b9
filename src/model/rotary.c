#include "rotary.h"
#include <math.h>

typedef struct turn {
    const pare_attn *a;
    const double *cosine, *sine; /* tokens x freqs */
    size_t tokens;
    bool interleaved, keys;
} turn;

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
    const size_t at = i % t->tokens * t->a->freqs.cols;
    for (size_t h = 0; h < t->a->nheads; h++) {
        const pare_head *const head = &t->a->heads[h];
        if (t->keys && seen(t->a, h)) continue;
        double *const x = v + (t->keys ? head->k : head->q);
        for (size_t f = 0; f < head->planes; f++) {
            const size_t one = t->interleaved ? 2 * f : f;
            const size_t two = t->interleaved ? 2 * f + 1 : f + head->planes;
            const double c = t->cosine[at + head->freq + f], s = t->sine[at + head->freq + f];
            const double a = x[one], b = x[two];
            x[one] = a * c - b * s;
            x[two] = a * s + b * c;
        }
    }
}

static pare_status angles(pass *p, const pare_weight *freqs, double **cosine, double **sine)
{
    const size_t n = p->tokens * freqs->cols;
    *cosine = pare_alloc(p->scratch, n ? n : 1, sizeof **cosine);
    *sine = pare_alloc(p->scratch, n ? n : 1, sizeof **sine);
    if (!*cosine || !*sine) return pare_no_memory(p->err);
    for (size_t i = 0; i < n; i++) {
        const double angle = (double)(i / freqs->cols) * pare_weight_at(freqs, i % freqs->cols);
        (*cosine)[i] = cos(angle);
        (*sine)[i] = sin(angle);
    }
    return PARE_OK;
}

pare_status rotate(pass *p, rows *q, rows *k, const pare_attn *a)
{
    double *cosine, *sine;
    if (!pare_model_is_rotary(p->m) || !pare_has(&a->freqs)) return PARE_OK;
    pare_status st = angles(p, &a->freqs, &cosine, &sine);
    if (st) return st;
    turn t = {a, cosine, sine, p->tokens, p->m->stem.pos.interleaved, false};
    if ((st = rows_map(q, q, turn_row, &t, p->exec, p->err))) return st;
    t.keys = true;
    return rows_map(k, k, turn_row, &t, p->exec, p->err);
}
