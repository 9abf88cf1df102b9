#include "popup.h"
#include "popup_topk.h"

#include <math.h>
#include <string.h>

#define FIRST_STREAM ((uint64_t)5 << 60) /* far from those of weights, batches and dropout */
enum { BLOCK = 1 << 15 };

struct popup {
    const pare_exec *exec;
    pare_params *student;
    pare_params scores;  /* the slots that have scores; offsets as in the student */
    const float *weight; /* frozen: what the student had */
    topk_matrix *matrix;
    topk *top;
    pare_arena *arena;
};

size_t pare_popup_kept(double keep, size_t n)
{
    return n - (size_t)floor((1 - keep) * (double)n);
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static pare_status room(popup *p, pare_err *err)
{
    const pare_params *const s = p->student;
    const size_t n = s->count ? s->count : 1;
    float *const weight = pare_alloc(p->arena, n, sizeof *weight);
    p->scores = *s;
    p->scores.values = pare_alloc(p->arena, n, sizeof(float));
    p->scores.slots = pare_alloc(p->arena, s->nslots ? s->nslots : 1, sizeof *s->slots);
    p->matrix = pare_alloc(p->arena, s->nslots ? s->nslots : 1, sizeof *p->matrix);
    if (!weight || !p->scores.values || !p->scores.slots || !p->matrix) return pare_no_memory(err);
    memcpy(weight, s->values, s->count * sizeof *weight);
    p->weight = weight;
    return PARE_OK;
}

static pare_status choose_slots(popup *p, double keep, pare_err *err)
{
    const pare_params *const s = p->student;
    if (!(keep > 0 && keep <= 1))
        return pare_fail(err, PARE_ERR_USAGE, "keep is %g: it must be above 0 and at most 1", keep);
    p->scores.nslots = 0;
    for (size_t i = 0; i < s->nslots; i++) {
        const pare_slot *const k = &s->slots[i];
        const size_t n = k->rows * k->cols, left = pare_popup_kept(keep, n);
        if (k->vector) continue;
        if (left == 0)
            return pare_fail(err, PARE_ERR_USAGE, "keep %g leaves none of the %zu weights of %s",
                             keep, n, k->name);
        p->matrix[p->scores.nslots] = (topk_matrix){k->offset, n, left};
        p->scores.slots[p->scores.nslots++] = *k;
    }
    return p->scores.nslots ? PARE_OK
                            : pare_fail(err, PARE_ERR_USAGE, "the model has no matrix to mask");
}

/* U(-1, 1) / sqrt(columns), a stream for each matrix. */
static void draw_scores(popup *p, uint64_t seed)
{
    for (size_t i = 0; i < p->scores.nslots; i++) {
        const pare_slot *const k = &p->scores.slots[i];
        float *const s = (float *)p->scores.values + k->offset;
        const double most = 1 / sqrt((double)k->cols);
        pare_rng r = pare_rng_at(seed, FIRST_STREAM + i);
        for (size_t j = 0; j < k->rows * k->cols; j++)
            s[j] = (float)(most * (2 * pare_rng_uniform(&r) - 1));
    }
}

pare_status popup_new(popup **out, pare_params *student, const pare_popup *o, uint64_t seed,
                      const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(student->dtype == PARE_F32);
    *out = NULL;
    pare_arena *const a = pare_arena_new();
    popup *const p = a ? pare_alloc(a, 1, sizeof *p) : NULL;
    if (!p) {
        pare_arena_free(a);
        return pare_no_memory(err);
    }
    *p = (popup){.exec = exec, .student = student, .arena = a};
    pare_status st = room(p, err);
    if (!st) st = choose_slots(p, o->keep, err);
    if (!st) st = topk_new(&p->top, a, p->matrix, p->scores.nslots, err);
    if (st) {
        popup_free(p);
        return st;
    }
    draw_scores(p, seed);
    *out = p;
    return PARE_OK;
}

void popup_free(popup *p)
{
    if (p) pare_arena_free(p->arena); /* p itself lives there */
}

pare_params *popup_scores(popup *p)
{
    return &p->scores;
}

/* ---- a step -----------------------------------------------------------------------------------
 */

void popup_apply(popup *p)
{
    topk_apply(p->top, p->student->values, p->weight, p->scores.values, p->exec);
}

typedef struct turning {
    const popup *p;
    float *grad;
} turning;

/* w sign(s) by the sign bit; a score of 0 has no side. */
static void turn_span(float *g, const float *w, const float *s, size_t n)
{
    for (size_t i = 0; i < n; i++) g[i] *= s[i] == 0 ? 0 : copysignf(1, s[i]) * w[i];
}

/* Numbers of one block; what has no scores has no gradient either. */
static void turn_block(void *ctx, size_t block)
{
    const turning *const t = ctx;
    const pare_params *const k = &t->p->scores;
    const float *const score = k->values;
    const size_t from = block * BLOCK, to = k->count - from < BLOCK ? k->count : from + BLOCK;
    size_t at = from;
    for (size_t i = 0; i < k->nslots; i++) {
        const size_t begin = k->slots[i].offset, end = begin + k->slots[i].rows * k->slots[i].cols;
        const size_t a = begin > from ? begin : from, b = end < to ? end : to;
        if (a >= b) continue;
        memset(t->grad + at, 0, (a - at) * sizeof *t->grad);
        turn_span(t->grad + a, t->p->weight + a, score + a, b - a);
        at = b;
    }
    memset(t->grad + at, 0, (to - at) * sizeof *t->grad);
}

void popup_score_gradient(const popup *p, float *grad)
{
    turning t = {p, grad};
    pare_parallel(p->exec, (p->scores.count + BLOCK - 1) / BLOCK, turn_block, &t);
}
